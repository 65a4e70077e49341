// FileLives: what became of each file, from its creation over links and renames
// to its removal, and who read and wrote it. What sharing, life times, churn
// and double writes are made from. FileIdentities tells which file is which;
// each mount has files of its own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/format/record.h"
#include "tracefs/query/by_mount.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/query/file_identities.h"
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

  uint32_t mount = 0;     // format::TraceOrigin
  uint64_t inode = 0;     // 0: not known
  std::string path;       // as it was last called
  std::string born_path;  // where it was created
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
  bool open_at_end = false;
  uint64_t number = 0;       // larger than those of files that began earlier
  uint64_t replaced_by = 0;  // the file that took its name, as identified
  Users readers;
  Users writers;
  // Its path; of one that was never named, or of which no operation told a
  // name, what is known instead.
  std::string Called() const;
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
  uint64_t not_followed() const;
  // Sentence about them; empty if there is nothing to say.
  std::string Note() const;

 private:
  using Number = FileIdentities::Number;
  using Touched = FileIdentities::Touched;

  struct Mount {
    Mount(uint32_t mount, std::function<void(Number)> gone)
        : number(mount), files(std::move(gone)) {}

    const uint32_t number;
    FileIdentities files;
    std::unordered_map<Number, FileLife> lives;
  };

  // Null: it was not used, or is not followed.
  FileLife* Find(Number number);
  FileLife* FindOrMake(const Event& event, Number number, std::string_view path,
                       Field inode = Field::kInode);
  void TakeRename(const format::Record& record, const Touched& touched,
                  format::RecordPaths& paths);
  void TakeTransfers(const format::Record& record, const Touched& touched,
                     FileLife::Process process, format::RecordPaths& paths);
  static void Use(FileLife& life, const format::Record& record,
                  FileLife::Process process, const tally::Transfer& transfer);
  void TakeCreation(const format::Record& record, const Touched& touched,
                    Number called, std::string_view path);
  void TakeLink(const Event& event, Number number, format::RecordPaths& paths);
  void TakeRelease(const format::Record& record, Number number,
                   std::string_view path);
  // Ends a life if the last name of the file, `path`, is gone.
  void Remove(const format::Record& record, Number number,
              std::string_view path, FileLife::End end,
              Number by = FileIdentities::kNone);
  static void End(FileLife& life, const format::Record& record,
                  FileLife::End end);
  // Tells of its end, and forgets it.
  void Part(Number number);

  const std::function<void(const FileLife&, const FileLife* by)> ended_;
  uint64_t last_ = 0;
  ByMount<Mount> mounts_;
  // Of the operation that is being taken; null: there is no room.
  Mount* mount_ = nullptr;
  uint64_t not_followed_ = 0;  // of other mounts
  ProcessNumbers processes_;
  bool counts_ = true;  // the operation that is being taken
};

}  // namespace tracefs::query
