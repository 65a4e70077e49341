// KeptFolder: where a mount puts what operations are about to destroy.
//
//   FOLDER          private (0700), of one user, with a mark (kept_mark.h) and
//                   nothing that is not a mount's; may serve several traces
//   FOLDER/NAME     one trace's, NAME being made of its serial number
//   FOLDER/NAME/N   an object: a clone (reflink) of one file, or the copies of
//                   many parts, one after the other
//
// Nothing in it says what it is: the trace does (kept_part.h). Objects are
// removed oldest first when the budget is used up, those of earlier traces
// before all; those that a running mount has are never touched by another.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/keep/kept_part.h"

namespace tracefs::keep {

struct KeptTotals {
  uint64_t parts = 0;    // kept
  uint64_t bytes = 0;    // of these
  uint64_t same = 0;     // bytes of these that were there already
  uint64_t cloned = 0;   // bytes of these that share their blocks
  uint64_t held = 0;     // bytes that count against the budget now
  uint64_t removed = 0;  // objects that had to go
  uint64_t failed = 0;   // parts that could not be kept
};

// Threads: any.
class KeptFolder {
 public:
  struct Options {
    std::string path;  // FOLDER
    std::string name;
    uint64_t max_bytes = 0;
    int source = -1;  // a directory in which it must not lie
  };

  // Makes FOLDER, if it is not there, and in it NAME, which nobody had.
  // kInvalid where others own it or may look into it, it lies in `source`, or
  // something is in it that no mount has made.
  static Result<std::unique_ptr<KeptFolder>> Make(const Options& options);

  // Keeps the bytes [begin, end) of `fd`, which is open for reading and is
  // `size` bytes long; nobody changes it meanwhile. Waits for the store. 0 or
  // an errno, EFBIG if the budget will never hold it: then nothing is kept.
  int Keep(int fd, uint64_t begin, uint64_t end, uint64_t size, KeptPart* part);
  // They were not destroyed: what was kept of them takes no room any more.
  void Drop(const KeptPart& part);
  // They were, and count from now on. Makes room within the budget; the first
  // object that is still there if some had to go for that, else 0.
  uint64_t Settle(const KeptPart& part);
  // It could not be kept, for that errno.
  void NoteFailure(int error);

  KeptTotals Totals() const;
  const std::string& path() const { return path_; }  // of NAME

 private:
  struct Object {
    uint64_t number = 0;
    UniqueFd fd;         // of one that is added to
    uint64_t bytes = 0;  // against the budget
    uint64_t end = 0;    // of what is taken of it
  };
  struct Place {
    std::shared_ptr<Object> object;
    uint64_t at = 0;
  };
  struct Older {  // an earlier trace's
    std::string name;
    uint64_t bytes = 0;
  };

  KeptFolder(UniqueFd parent, UniqueFd folder, std::string path,
             uint64_t max_bytes);

  void FindOlder(const std::string& own);
  std::shared_ptr<Object> NewObject(int* error);
  Result<Place> Take(uint64_t begin, uint64_t length);
  int Clone(int fd, uint64_t begin, uint64_t end, uint64_t size,
            KeptPart* part);
  int CopySmall(int fd, uint64_t begin, uint64_t length, KeptPart* part);
  int CopyLarge(int fd, uint64_t begin, uint64_t length, KeptPart* part);
  void GiveBack(const std::shared_ptr<Object>& object, uint64_t at,
                uint64_t length);
  bool FindSame(ByteSpan bytes, KeptPart* part);
  void Remove(uint64_t number);
  bool RemoveOlder();
  uint64_t MakeRoom();

  const UniqueFd parent_;
  const UniqueFd folder_;
  const std::string path_;
  const uint64_t max_bytes_;
  std::atomic<bool> clones_{true};  // as far as is known

  mutable std::mutex mu_;                        // guards what follows
  std::deque<std::shared_ptr<Object>> objects_;  // oldest first
  std::shared_ptr<Object> open_;                 // that is added to
  std::deque<Older> older_;                      // oldest first
  uint64_t next_ = 1;
  uint64_t first_ = 1;  // objects before that are gone
  // By length and checksum: copies that others may be the same as.
  std::unordered_map<uint64_t, KeptPart> copies_;
  KeptTotals totals_;
  std::atomic<uint64_t> failed_{0};
};

}  // namespace tracefs::keep
