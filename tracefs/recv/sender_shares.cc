#include "tracefs/recv/sender_shares.h"

#include <algorithm>
#include <string_view>

namespace tracefs {
namespace {

constexpr std::string_view kTraceEnding = ".trace";

}  // namespace

std::string SenderOf(const std::string& name) {
  if (name.starts_with("host=")) return name.substr(0, name.find('/'));
  if (!name.starts_with("cn-") && !name.starts_with("uid-") &&
      !name.starts_with("ip-")) {
    return "";
  }
  // SENDER.SERIAL.trace and what was cut off from it; a sender has dots, too.
  const std::string trace = TraceNameOf(name);
  if (trace.empty()) return "";
  const size_t serial =
      trace.rfind('.', trace.size() - kTraceEnding.size() - 1);
  return serial == trace.npos ? "" : trace.substr(0, serial);
}

std::string TraceNameOf(const std::string& name) {
  // A sender may be called so, too.
  const size_t end = name.rfind(kTraceEnding);
  return end == name.npos ? "" : name.substr(0, end + kTraceEnding.size());
}

bool IsProvenSender(const std::string& sender) {
  return sender.starts_with("cn-") || sender.starts_with("uid-");
}

void SenderShares::Add(const std::string& sender, uint64_t amount) {
  if (amount == 0) return;
  uint64_t& has = of_[sender];
  const bool proven = IsProvenSender(sender);
  if (has == 0 && proven) ++proven_;
  has += amount;
  total_ += amount;
  if (!proven) of_addresses_ += amount;
}

void SenderShares::Take(const std::string& sender, uint64_t amount) {
  const auto found = of_.find(sender);
  if (found == of_.end()) return;
  amount = std::min(amount, found->second);
  const bool proven = IsProvenSender(sender);
  total_ -= amount;
  if (!proven) of_addresses_ -= amount;
  if ((found->second -= amount) != 0) return;
  if (proven) --proven_;
  of_.erase(found);
}

uint64_t SenderShares::Of(const std::string& sender) const {
  const auto found = of_.find(sender);
  return found == of_.end() ? 0 : found->second;
}

uint64_t SenderShares::Share(uint64_t limit, const std::string& sender) const {
  const size_t newcomer = of_.contains(sender) ? 0 : 1;
  if (!IsProvenSender(sender)) {
    return ShareOfAddresses(limit) / (of_.size() - proven_ + newcomer);
  }
  const size_t addresses = of_addresses_ != 0 ? 1 : 0;
  return limit / (proven_ + newcomer + addresses);
}

uint64_t SenderShares::ShareOfAddresses(uint64_t limit) const {
  return limit / (proven_ + 1);
}

}  // namespace tracefs
