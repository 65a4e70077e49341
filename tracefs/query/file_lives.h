// FileLives: follows files by inode generation over creation, links, renames
// and removal, and notes who read and wrote them. What sharing, life times,
// churn and double writes are made from. Each mount has files of its own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/format/record.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/query/path_tree.h"
#include "tracefs/query/process_numbers.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::query {

// A file from its creation, or the first operation on it, to its end.
struct FileLife {
  static constexpr size_t kMostUsers = 8;  // that are kept by name
  enum class End : uint8_t { kNone, kRemoved, kReplaced };
  // What came after what, by another process or the same: RAR RAW WAR WAW.
  enum Order : uint8_t { kRar, kRaw, kWar, kWaw };

  using Process = ProcessNumbers::Number;

  // Processes that used it, with their names.
  struct Users {
    std::vector<std::pair<Process, std::string>> kept;
    DistinctCount more;  // others, whose names had no room
    void Add(Process process, std::string_view name);
    uint64_t count() const { return kept.size() + more.Estimate(); }
    std::string Names() const;  // "cc1plus as (and more)"
  };

  uint32_t mount = 0;                      // format::TraceOrigin
  uint64_t inode = 0;                      // 0: not known
  std::string path;                        // as it was last called
  PathTree::Node node = PathTree::kNone;   // the same while it may change
  PathTree::Node other = PathTree::kNone;  // a further name, or what was one
  std::string born_path;                   // where it was created
  // Made by O_TMPFILE, and no link has named it: born_path is its directory.
  bool nameless = false;
  bool created = false;   // its creation was seen, and asked about
  uint64_t begin_ns = 0;  // of its creation
  uint64_t end_ns = 0;
  uint64_t ended_by_ns = 0;  // when what ended it had run
  End end = End::kNone;
  std::string maker;  // the process that created it
  std::string ender;  // and that removed or replaced it
  uint64_t read = 0;
  uint64_t written = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t links = 1;    // names that are known
  uint64_t handles = 0;  // opens that were not released
  bool open_at_end = false;
  uint64_t replaced_by = 0;  // number of the file that took its name
  Users readers;
  Users writers;
  std::array<uint64_t, 4> by_same{};
  std::array<uint64_t, 4> by_other{};
  // The last use.
  Process user = 0;
  bool used = false;
  bool wrote = false;
};

// Used by one thread.
class FileLives {
 public:
  // Files that are followed at the same time.
  static constexpr size_t kMost = size_t{1} << 18;

  // `ended` gets each file when it is gone (one without names when it is no
  // longer open), with the one that took its name (null if none did), or at
  // Finish.
  explicit FileLives(
      std::function<void(const FileLife&, const FileLife* by)> ended)
      : ended_(std::move(ended)) {}

  // An operation that has run. `counts`: it was asked about; else it is only
  // seen what files there are.
  void Take(const format::Record& record, bool counts = true);
  // In its place among them.
  void TakeProcess(const ProcessRecord& record) { processes_.Take(record); }
  // Those that are still there go to `ended`, in the order of their begins.
  void Finish();
  // Operations on files that there was no room for.
  uint64_t not_followed() const { return not_followed_; }
  // Sentence about them; empty if there is nothing to say.
  std::string Note() const;

 private:
  using Number = uint64_t;
  static constexpr Number kNone = 0;

  // What files of one mount are called.
  struct Names {
    std::unordered_map<uint64_t, Number> by_inode;
    PathTree by_path;
  };

  void GoTo(uint32_t mount);
  Number Find(uint64_t inode, std::string_view path) const;
  Number FindOrMake(uint64_t inode, std::string_view path);
  void Name(Number number, std::string_view path);
  bool IsNameOf(PathTree::Node node, Number number) const;
  std::string PathOf(Number number, const FileLife& life) const;
  void TakeRename(const format::Record& record, std::string_view path,
                  std::string_view to);
  void Unname(std::string_view path, const format::Record& record,
              FileLife::End end, Number by);
  void TakeTransfers(const format::Record& record, FileLife::Process process);
  static void Use(FileLife& life, const format::Record& record,
                  FileLife::Process process, const tally::Transfer& transfer);
  void TakeCreation(const format::Record& record, uint64_t inode,
                    std::string_view path);
  void TakeLink(uint64_t inode, std::string_view path, std::string_view to);
  void TakeOpen(uint64_t inode, std::string_view path);
  void TakeRelease(const format::Record& record, uint64_t inode,
                   std::string_view path);
  static void End(FileLife& life, const format::Record& record,
                  FileLife::End end);
  void Drop(PathTree::Node node, Number number);
  // Tells of its end, and forgets it.
  void Part(Number number);

  const std::function<void(const FileLife&, const FileLife* by)> ended_;
  Number last_ = 0;
  std::unordered_map<Number, FileLife> lives_;
  std::map<uint32_t, Names> mounts_;
  // The mount that is told of.
  uint32_t mount_ = 0;
  Names* names_ = nullptr;
  uint64_t not_followed_ = 0;
  ProcessNumbers processes_;
  bool counts_ = true;  // the operation that is being taken
};

}  // namespace tracefs::query
