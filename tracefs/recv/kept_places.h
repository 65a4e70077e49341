// KeptPlaces: how many files of a directory, and how many bytes, senders may
// have before others would have too few.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tracefs/recv/retention.h"
#include "tracefs/recv/sender_shares.h"

namespace tracefs {

// Threads: any.
class KeptPlaces {
 public:
  // `max_bytes` 0: no limit.
  KeptPlaces(uint64_t max_files, uint64_t max_bytes)
      : max_files_(max_files), max_bytes_(max_bytes) {}

  void AddFile(const std::string& name);
  void RemoveFile(const std::string& name);
  // Beyond the limit only for those who have less than their share, and for
  // those whom anybody could be only up to twice the limit.
  bool MayAddFile(const std::string& sender) const;

  // What retention has found.
  void Look(const std::vector<KeptTrace>& all);
  // True if retention should look again soon.
  bool AddBytes(const std::string& sender, uint64_t bytes);
  // Whether one that is known by its address alone has so much, more than its
  // share while all have too much, that it must wait until some of it is gone.
  bool IsOver(const std::string& sender) const;

 private:
  const uint64_t max_files_;
  const uint64_t max_bytes_;
  mutable std::mutex mu_;
  // Guarded by mu_.
  SenderShares files_;
  SenderShares bytes_;
  uint64_t looked_at_ = 0;  // bytes then
};

}  // namespace tracefs
