// Retention: which stored traces go, so that a receiver can run for years.
//
// A thread of its own looks at the directory now and then. It removes whole
// files, of each sender the one that was written to longest ago first, and
// never one whose sender is connected. If space is short, the sender with the
// most data pays (sender_shares.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/worker.h"

namespace tracefs {

struct RetentionRules {
  uint64_t max_age_s = 0;         // since the last block; 0: no limit
  uint64_t max_bytes = 0;         // of all; 0: no limit
  uint64_t max_sender_bytes = 0;  // of each sender; 0: no limit
  uint64_t min_free_bytes = 0;    // of the file system
  unsigned min_free_percent = 0;  // likewise

  bool any() const {
    return (max_age_s | max_bytes | max_sender_bytes | min_free_bytes) != 0 ||
           min_free_percent != 0;
  }
};

// A file of the directory.
struct KeptTrace {
  std::string name;
  uint64_t bytes = 0;     // that it takes on the disk
  int64_t written_s = 0;  // since 1970
  uint64_t size = 0;      // of the file, in bytes
};
// All of a directory (a descriptor), oldest first.
Result<std::vector<KeptTrace>> ListTraces(int directory);

// Which of `all`, oldest first, have to go. `free` and `total`: bytes of the
// file system. `held` says which must stay.
std::vector<KeptTrace> ChooseToRemove(
    const std::vector<KeptTrace>& all, const RetentionRules& rules,
    int64_t now_s, uint64_t free, uint64_t total,
    const std::function<bool(const std::string&)>& held);

class Retention {
 public:
  // `directory` outlives it. On the thread, `removed` is called for each file,
  // and before that `listed`, unless it is empty, with all there are.
  Retention(int directory, RetentionRules rules,
            std::function<void(const KeptTrace&)> removed,
            std::function<void(const std::vector<KeptTrace>&)> listed = {});

  // Before anything else; nothing happens before. Without rules nothing does.
  Status Start();
  // A file that is about to be used, and one that is so no longer. As many
  // Releases as Holds. Threads: any.
  void Hold(const std::string& name);
  void Release(const std::string& name);
  // Looks soon: a disk is full. Threads: any.
  void Hurry() { worker_.Wake(); }

 private:
  void Loop();
  void Look();

  const int directory_;
  const RetentionRules rules_;
  const std::function<void(const KeptTrace&)> removed_;
  const std::function<void(const std::vector<KeptTrace>&)> listed_;
  std::mutex mu_;
  std::map<std::string, unsigned> held_;  // guarded by mu_
  Worker worker_;
};

}  // namespace tracefs
