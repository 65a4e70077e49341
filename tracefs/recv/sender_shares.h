// SenderShares: how much of a directory each sender has, and how much of it is
// its share where there is not enough for all.
//
// Senders known by a certificate or as a user have equal shares. All that are
// known by their address alone have one such share together, in equal parts:
// a client with many addresses takes nothing from authenticated senders.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tracefs {

// Who sent it, by its name: "cn-host1", "uid-1000", "ip-10.0.0.7", "host=web1"
// of a day of a fleet; empty if unknown.
std::string SenderOf(const std::string& name);
// The trace that a file is, or that it was cut off from; empty: it is neither.
std::string TraceNameOf(const std::string& name);
// By a certificate, or as a user of this machine.
bool IsProvenSender(const std::string& sender);

// Used by one thread at a time.
class SenderShares {
 public:
  void Add(const std::string& sender, uint64_t amount);
  void Take(const std::string& sender, uint64_t amount);

  uint64_t total() const { return total_; }
  uint64_t of_addresses() const { return of_addresses_; }
  uint64_t Of(const std::string& sender) const;
  // Of `limit`, among those who have anything, and this one.
  uint64_t Share(uint64_t limit, const std::string& sender) const;
  // Of `limit`, what those have together who are known by an address alone.
  uint64_t ShareOfAddresses(uint64_t limit) const;

 private:
  std::map<std::string, uint64_t> of_;  // those with more than nothing
  size_t proven_ = 0;                   // of these
  uint64_t total_ = 0;
  uint64_t of_addresses_ = 0;
};

}  // namespace tracefs
