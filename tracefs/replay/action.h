// Action: one operation of a plan: what is to be called, on what, when, and
// what came of it when it was recorded. Operands are no paths: directories and
// open files have numbers (slots) that the plan gives out and takes back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/event/op.h"

namespace tracefs::replay {

inline constexpr uint32_t kRootSlot = 0;  // of directories: DIR itself
// Files have numbers of their own in a plan, which no other file ever gets.
inline constexpr uint64_t kNoFile = 0;
inline constexpr uint64_t kRootFile = 1;  // DIR itself
inline constexpr uint32_t kNoSlot = UINT32_MAX;
// Slots, lanes and sizes of a plan are bounded, so that a hostile one cannot
// make us ask for memory without end.
inline constexpr uint32_t kMaxSlots = 1u << 26;
inline constexpr uint32_t kMaxLanes = 4096;
inline constexpr size_t kMaxActionBytes = size_t{1} << 26;

// What an operation works on.
enum class Place : uint8_t {
  kNone,    // the file system as a whole
  kDir,     // directory `dir`
  kName,    // `name` in directory `dir`
  kHandle,  // the open file `handle`
};

enum ActionFlag : uint32_t {
  kUntimed = 1u << 0,      // made up by the plan, or not selected: not compared
  kRacing = 1u << 1,       // another operation on the same bytes ran then
  kHasStat = 1u << 2,      // type, mode, size and links are known
  kSizeRaces = 1u << 3,    // but the size was being changed
  kHasHash = 1u << 4,      // `hash` is CRC-32C of the bytes read or written
  kHasData = 1u << 5,      // `data` are these bytes
  kInitialData = 1u << 6,  // some bytes read, or copied, were not kept
  kMarked = 1u << 7,       // to be undone
  // Undoing it takes bytes, or extended attributes, that the trace does not
  // have.
  kUnknownBytes = 1u << 8,
  // A look at what was looked at before, and has not been changed since.
  kRepeated = 1u << 9,
  // What it removes, or looks at, has names that the trace does not tell.
  kUnknownNames = 1u << 10,
  // What it destroyed is in the folder of what was kept (STR_KEEP), and all
  // else that it takes to undo it is in the trace.
  kWasKept = 1u << 11,
  kKeptCopy = 1u << 12,  // `kept_check` is CRC-32C; else a time
  kHasMtime = 1u << 13,  // `kept_mtime_ns` is known
  // What it removes may have had an ACL that the trace does not tell.
  kUnknownAcl = 1u << 14,
};

// What keeps two operations of different lanes in order: a counter that this
// one adds to when done. It waits until that counter has `need`, if `waits`.
struct Order {
  uint32_t counter = 0;
  uint32_t need = 0;
  bool waits = false;
};
inline constexpr uint32_t kOrderCounters = 1u << 18;

// Views point into the plan that it was read from.
struct Action {
  static constexpr size_t kMaxOrders = 12;

  uint64_t sequence = 0;  // of the operation in its trace, from 1; 0: made up
  uint64_t begin_ns = 0;  // since the first operation of the plan
  uint64_t duration_ns = 0;
  Op op{};
  Place place = Place::kNone;
  uint32_t flags = 0;  // ActionFlag
  uint32_t lane = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;

  uint32_t dir = kNoSlot;
  uint32_t new_dir = kNoSlot;   // of the second name
  uint32_t made_dir = kNoSlot;  // the slot that mkdir fills, rmdir empties
  uint32_t handle = kNoSlot;
  uint32_t handle_out = kNoSlot;
  uint64_t offset = 0;
  uint64_t offset_out = 0;
  uint64_t length = 0;
  uint32_t arg_flags = 0;
  uint32_t mode = 0;
  uint32_t umask = 0;
  uint64_t rdev = 0;
  uint32_t valid = 0;
  uint32_t new_uid = 0;
  uint32_t new_gid = 0;
  uint64_t new_size = 0;
  int64_t new_atime_ns = 0;
  int64_t new_mtime_ns = 0;
  uint32_t lock_type = 0;
  uint64_t lock_owner = 0;
  // Which file it is about: that is made, moved, removed, changed, copied from.
  uint64_t file = kNoFile;
  // The other one: whose name a rename takes; that is copied to.
  uint64_t file_out = kNoFile;

  int64_t result = 0;
  uint32_t error = 0;
  uint32_t stat_mode = 0;  // type and permissions
  uint32_t stat_nlink = 0;
  uint64_t stat_size = 0;
  uint32_t hash = 0;

  // To be undone: where what it destroyed is (tracefs/keep/kept_part.h), which
  // bytes of the file these are, and when it had been changed before.
  uint64_t kept = 0;
  uint64_t kept_at = 0;
  uint64_t kept_offset = 0;
  uint64_t kept_length = 0;
  uint64_t kept_check = 0;
  int64_t kept_mtime_ns = 0;
  uint32_t not_kept = 0;  // why not: an errno

  std::string_view name;
  std::string_view new_name;
  std::string_view text;  // target, or name of an extended attribute
  ByteSpan data;

  uint32_t order_count = 0;
  std::array<Order, kMaxOrders> orders{};  // the last member: see DecodeAction

  bool Has(ActionFlag flag) const { return (flags & flag) != 0; }
};

// Appends it to `out`: its size (u32) and what it consists of.
void EncodeAction(const Action& action, std::vector<std::byte>* out);

// Takes one off the front of `bytes`, as EncodeAction put it there. Anything
// that could lead out of DIR, or out of a table, is refused: names with '/',
// "..", NUL, too long; slots and counters beyond their bounds.
Status DecodeAction(ByteSpan bytes, Action* action, size_t* size);

// The lane alone, and the size; false if there is no whole action.
bool PeekAction(ByteSpan bytes, uint32_t* lane, size_t* size);

// Whether a name may stand in a plan: 1 to 255 bytes, one component.
bool IsSafeName(std::string_view name);

}  // namespace tracefs::replay
