// A plan as a file: what a trace was compiled to, to be replayed as often as
// wanted. Chunks of actions, of the tree that was there before, and of what is
// expected to be there in the end; each with its CRC-32C.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/action.h"

namespace tracefs::replay {

// What can be said of a plan before any of it is read.
struct PlanHeader {
  uint64_t actions = 0;
  uint64_t operations = 0;  // of the trace, that are in the plan
  uint32_t lanes = 0;
  uint32_t dir_slots = 0;
  uint32_t handle_slots = 0;
  uint64_t initial_entries = 0;
  uint64_t initial_bytes = 0;  // sizes of the files among them
  uint64_t written_bytes = 0;  // by writes, copies and growing
  uint64_t made_entries = 0;   // files and directories that it makes
  uint64_t span_ns = 0;        // from the first begin to the last end
  uint64_t first_real_ns = 0;  // since the epoch
  uint64_t lost = 0;           // operations that the trace says it has not
  uint64_t unplaced = 0;       // operations on files without a known name
  uint64_t without_data = 0;   // writes whose bytes were not kept
  // Files that were there before, and of whose contents bytes are not kept: all
  // of them, and those of them that were read or copied without their bytes.
  uint64_t unknown_content = 0;
  uint64_t unknown_sources = 0;
  uint64_t unplaced_changes = 0;  // those of `unplaced` that change something
};

// A file or directory that is to be there before, or in the end.
struct TreeEntry {
  uint32_t parent = kRootSlot;  // initial: slot of its directory
  uint32_t slot = kNoSlot;      // initial: of itself, if it is a directory
  std::string name;             // initial: its name; final: its path in DIR
  uint32_t mode = 0;            // type and permissions
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t rdev = 0;
  uint64_t file = kNoFile;  // initial: which it is
  std::string target;       // of a symbolic link
  // A further name of the file that has this one: initial only.
  uint32_t other_parent = kNoSlot;
  std::string other_name;
  uint32_t known = 0;  // KnownBit
  // Initial: as a trace has them (format/state_message.h).
  std::string xattrs;
  uint32_t checksum = 0;  // CRC-32C of the contents

  enum KnownBit : uint32_t {
    kMode = 1u << 0,
    kOwner = 1u << 1,
    kSize = 1u << 2,
    kMtime = 1u << 3,
    kTarget = 1u << 4,
    kComplete = 1u << 5,  // final, directory: all that is in it is listed
    // Final: the trace says what the file was in the end.
    kRecorded = 1u << 6,
    kChecksum = 1u << 7,
    // Final: a replay makes the file with the recorded bytes, all of them.
    kAllBytes = 1u << 8,
    // Final: some of its bytes are neither in the trace nor compared with a
    // checksum before the first operation.
    kMadeUp = 1u << 9,
    // Initial: had lost its name, and loses this one at once: it is made also
    // where the others are there.
    kNameless = 1u << 10,
  };
  bool Knows(KnownBit bit) const { return (known & bit) != 0; }
};

// Bytes of a file that was there before.
struct InitialData {
  uint32_t parent = kRootSlot;
  std::string name;
  uint64_t offset = 0;
  ByteSpan bytes;
};

enum class ChunkKind : uint32_t {
  kActions = 1,
  kInitial = 2,
  kInitialData = 3,
  kFinal = 4,
};

// Used by one thread.
class PlanWriter {
 public:
  static Result<PlanWriter> Create(const std::string& path);
  // In a file without a name below `folder`: gone when it is closed.
  static Result<PlanWriter> CreateUnnamed(const std::string& folder);

  Status Add(const Action& action);
  Status AddInitial(const TreeEntry& entry);
  Status AddInitialData(const InitialData& data);
  Status AddFinal(const TreeEntry& entry);
  // The rest and the header. Gives the file away, at its begin.
  Result<UniqueFd> Finish(const PlanHeader& header);

 private:
  struct Pending {
    ChunkKind kind;
    std::vector<std::byte> bytes;
  };
  explicit PlanWriter(UniqueFd fd) : fd_(std::move(fd)) {}
  Status FlushIfLarge(Pending* pending);
  Status Flush(Pending* pending);

  UniqueFd fd_;
  uint64_t at_ = kHeaderBytes;
  Pending actions_{ChunkKind::kActions, {}};
  Pending initial_{ChunkKind::kInitial, {}};
  Pending initial_data_{ChunkKind::kInitialData, {}};
  Pending final_{ChunkKind::kFinal, {}};

 public:
  static constexpr size_t kHeaderBytes = 256;
};

// Reads the chunks of one kind, in the order of the file. Several may read one
// file. Used by one thread.
class PlanReader {
 public:
  // `fd` outlives it. kCorrupt if it is no plan.
  static Result<PlanHeader> ReadHeader(int fd);

  PlanReader(int fd, ChunkKind kind) : fd_(fd), kind_(kind) {}
  // The next chunk; nothing at the end.
  Result<std::optional<std::vector<std::byte>>> Next();
  // The same into memory that there is; false at the end.
  Result<bool> NextInto(std::vector<std::byte>* bytes);

 private:
  const int fd_;
  const ChunkKind kind_;
  uint64_t at_ = PlanWriter::kHeaderBytes;
};

// Of chunks of their kinds: take one off the front. `*size` is what it took.
Status DecodeEntry(ByteSpan bytes, bool is_path, TreeEntry* entry,
                   size_t* size);
// One or more names that may stand in a plan, with '/' between them.
bool IsSafePath(std::string_view path);

Status DecodeInitialData(ByteSpan bytes, InitialData* data, size_t* size);

}  // namespace tracefs::replay
