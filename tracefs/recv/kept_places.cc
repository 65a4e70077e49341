#include "tracefs/recv/kept_places.h"

#include <algorithm>

namespace tracefs {
namespace {

// So much more than the limit there may be until retention has been there.
uint64_t Slack(uint64_t limit) { return limit / 8; }

}  // namespace

void KeptPlaces::AddFile(const std::string& name) {
  const std::lock_guard lock(mu_);
  files_.Add(SenderOf(name), 1);
}

void KeptPlaces::RemoveFile(const std::string& name) {
  const std::lock_guard lock(mu_);
  files_.Take(SenderOf(name), 1);
}

bool KeptPlaces::MayAddFile(const std::string& sender) const {
  const std::lock_guard lock(mu_);
  if (files_.total() < max_files_) return true;
  if (!IsProvenSender(sender) && files_.total() >= 2 * max_files_) return false;
  return files_.Of(sender) <
         std::max<uint64_t>(files_.Share(max_files_, sender), 1);
}

void KeptPlaces::Look(const std::vector<KeptTrace>& all) {
  SenderShares found;
  for (const KeptTrace& trace : all)
    found.Add(SenderOf(trace.name), trace.bytes);
  const std::lock_guard lock(mu_);
  bytes_ = std::move(found);
  looked_at_ = bytes_.total();
}

bool KeptPlaces::AddBytes(const std::string& sender, uint64_t bytes) {
  if (max_bytes_ == 0) return false;
  const std::lock_guard lock(mu_);
  bytes_.Add(sender, bytes);
  const uint64_t most = std::max(max_bytes_, looked_at_) + Slack(max_bytes_);
  if (bytes_.total() <= most) return false;
  looked_at_ = bytes_.total();
  return true;
}

bool KeptPlaces::IsOver(const std::string& sender) const {
  if (max_bytes_ == 0 || IsProvenSender(sender)) return false;
  const std::lock_guard lock(mu_);
  return bytes_.total() > max_bytes_ + Slack(max_bytes_) &&
         bytes_.Of(sender) > bytes_.Share(max_bytes_, sender);
}

}  // namespace tracefs
