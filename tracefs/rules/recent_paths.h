// RecentPaths: the paths that operations touched last, and who did it, so that
// an alarm can say what else went on around it.
//
// Tested by tests/unit/rules/recent_paths_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/event/event.h"

namespace tracefs {

// Used by one thread. Memory: some 600 KiB at most.
class RecentPaths {
 public:
  // Paths that are kept, of all processes together, and bytes of each: of
  // longer ones the end.
  static constexpr size_t kKept = 512;
  static constexpr size_t kMaxPath = 1024;

  // What is kept of who touched a path.
  static constexpr std::array kNumbers = {
      Field::kPid,  Field::kPpid, Field::kTid, Field::kSid,
      Field::kPgid, Field::kUid,  Field::kGid, Field::kInode};

  struct Entry {
    std::string path;
    std::string comm;  // empty: not known
    std::array<std::optional<uint64_t>, kNumbers.size()> numbers;

    // Nothing if it is not known, or none of kNumbers.
    std::optional<uint64_t> Get(Field field) const;
    uint32_t pid() const {  // 0: not known
      return static_cast<uint32_t>(Get(Field::kPid).value_or(0));
    }
  };

  // A path was touched; an empty one is not known.
  void Note(const Event& event, std::string_view path);

  // The newest paths of those that are `mine`, at most `most`, each once, the
  // newest first.
  std::vector<std::string> Newest(
      size_t most, const std::function<bool(const Entry&)>& mine) const;

  // The parents that processes had when they last touched something.
  std::unordered_map<uint32_t, uint32_t> Parents() const;

 private:
  // Calls `use` with each, the newest first, until it returns false.
  template <typename Use>
  void ForEachNewestFirst(Use use) const;

  std::vector<Entry> entries_;  // a ring
  size_t next_ = 0;             // where the next one comes
};

}  // namespace tracefs
