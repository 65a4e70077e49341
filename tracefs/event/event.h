// Event: one operation with its caller, arguments, result and times, before it
// is filtered or encoded.
//
// An event lives on the stack of the thread that serves the request. Its views
// point into memory that outlives the handler's use of it; nothing here owns
// or allocates. Fields that cost something to fetch (FieldSource) are fetched
// through the event's resolver, at most once, when a filter node or a verbosity
// flag asks.
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/event/extents.h"
#include "tracefs/event/field.h"
#include "tracefs/event/file_state.h"
#include "tracefs/event/op.h"

namespace tracefs {

struct Event;

// A process as the trace knows it (tracefs/process fills these).
struct CallerInfo {
  uint32_t tid = 0;
  uint32_t pid = 0;  // thread group
  uint32_t ppid = 0;
  uint32_t pgid = 0;
  uint32_t sid = 0;
  uint64_t start_time = 0;  // clock ticks since boot; with pid: unique
  std::array<char, 64> comm_bytes{};
  uint8_t comm_size = 0;
  // Distinct for every content this process has had in the life of the mount,
  // so that a block may define it once.
  uint64_t serial = 0;

  std::string_view comm() const { return {comm_bytes.data(), comm_size}; }
};

// What else is known of a process, found out while nobody waits for it or only
// for a moment (process/caller_details.h). A text that is not known is absent.
struct CallerDetails {
  // Distinct for every content in the life of the process that reads it; not 0.
  uint64_t number = 0;
  std::optional<std::string> exe;      // what it runs, in its own name space
  std::optional<std::string> cgroup;   // of cgroup 2, else the first named one
  std::optional<std::string> tty;      // "pts/3", or "none"
  std::optional<std::string> cmdline;  // arguments with blanks between them

  // Of kExe, kCgroup, kTty, kCmdline; null: not known.
  const std::string* Find(Field field) const {
    const std::optional<std::string>* const text =
        field == Field::kExe      ? &exe
        : field == Field::kCgroup ? &cgroup
        : field == Field::kTty    ? &tty
                                  : &cmdline;
    return *text ? &**text : nullptr;
  }
};

// Room for one name; NAME_MAX is 255 on every Linux file system.
struct NameBuffer {
  std::array<char, 256> bytes;
  uint16_t size = 0;

  std::string_view view() const { return {bytes.data(), size}; }
  void Set(std::string_view name);  // cut at 256 bytes
};

// The name under which a node was last seen: `name` in directory `parent`.
// The root of the mount has parent 0 and no name.
struct NodeLink {
  uint64_t parent = 0;
  uint32_t parent_version = 0;
  NameBuffer name;
};

// What an event's creator can find out later. One object serves all threads.
class EventResolver {
 public:
  virtual ~EventResolver() = default;

  // Sets event.caller and the kCaller fields, or leaves them absent where the
  // caller is gone. Only before the reply: the caller must still wait.
  virtual void ResolveCaller(Event& event) = 0;

  // Fills the kAttributes fields from the backing file, or leaves them absent.
  virtual void ResolveAttributes(Event& event) = 0;

  // Sets event.details where something is known of the caller; good until this
  // thread asks again. Only before the reply.
  virtual void ResolveDetails(Event& /*event*/) {}

  // Calls `visit(context, pid, comm)` for each ancestor of the caller's process
  // that is known, from its parent up, until it returns false. A name that is
  // not known is empty. Returns whether the line is known to its end, or as far
  // as it was wanted.
  virtual bool ForEachAncestor(Event& /*event*/, void* /*context*/,
                               bool (* /*visit*/)(void* context, uint32_t pid,
                                                  std::string_view comm)) {
    return false;
  }

  // Sets kSyscall, or leaves it absent where it is not known. Only before the
  // reply.
  virtual void ResolveSyscall(Event& /*event*/) {}

  // Reads what the file behind a node is now; false if that cannot be had.
  // Threads: any, also after the reply.
  virtual bool StateOf(uint64_t /*node*/, FileState* /*state*/) {
    return false;
  }

  // Calls `visit(path, state)` for each file of the traced tree that `touched`
  // says true of, by inode number; what is below a directory that it says false
  // of is not looked at. `contents`: with a checksum of regular files.
  virtual void ForEachTouched(
      const std::function<bool(uint64_t inode)>& /*touched*/, bool /*contents*/,
      const std::function<void(std::string_view path,
                               const FileState& state)>& /*visit*/) {}

  // The last known link of a node (Event::node and the like); false if it is
  // not known (any more). Threads: any.
  virtual bool LinkOf(uint64_t node, NodeLink* link) = 0;

  // Calls `visit(context, name)` for every name the node is known by.
  virtual void ForEachName(uint64_t node, void* context,
                           void (*visit)(void* context,
                                         std::string_view name)) = 0;
};

struct Event {
  // User-provided, so that `value` is not zeroed first.
  Event() {}  // NOLINT(modernize-use-equals-default)

  // Uninitialised on purpose: an event is made for every request, and only
  // the slots whose bit is set in `present` mean anything.
  std::array<uint64_t, kNumericFieldCount> value;

  uint64_t present = 0;  // bit per numeric field
  Op op{};
  bool before = false;  // a STR_PRE_OP event: the operation has not run yet
  bool caller_resolved = false;
  bool attributes_resolved = false;
  bool syscall_resolved = false;
  bool details_resolved = false;

  // The file; the directory of `name`; the directory of `new_name` or, where
  // there is none, the second file itself (the destination of a copy); 0 =
  // none. Keys for EventResolver::LinkOf and for the path definitions of a
  // block: a node's version changes when its name does.
  uint64_t node = 0;
  uint64_t parent = 0;
  uint64_t new_parent = 0;
  uint32_t node_version = 0;
  uint32_t parent_version = 0;
  uint32_t new_parent_version = 0;
  // Changes when any directory is renamed: all paths below it changed.
  uint64_t rename_epoch = 0;

  // Bit n: the file satisfies name predicate n (filters/input/name_table.h).
  uint64_t name_bits = 0;
  uint32_t name_generation = 0;  // of the table the bits belong to; 0 = none

  // The sink's own notes between BeforeReply and AfterReply.
  uint32_t sink_generation = 0;
  uint64_t sink_keep = 0;     // bit per running tracer: keep
  uint64_t sink_decided = 0;  // bit per running tracer: keep is final

  std::string_view name;      // the operand, or empty
  std::string_view new_name;  // of rename and link
  std::string_view target;    // of symlink; of readlink when done
  std::string_view xattr_name;
  ByteSpan data;  // read and write, only if some tracer wants data

  const CallerInfo* caller = nullptr;
  const CallerDetails* details = nullptr;
  EventResolver* resolver = nullptr;
  ExtentSource* extents =
      nullptr;  // of what lies somewhere; good until the end

  // The destination of a copy; 0: no operation but that has two files.
  uint64_t second_file() const { return new_name.empty() ? new_parent : 0; }

  bool Has(Field f) const { return (present & Bit(f)) != 0; }
  uint64_t Get(Field f) const { return value[Index(f)]; }
  uint64_t GetOr0(Field f) const { return Has(f) ? Get(f) : 0; }
  void Set(Field f, uint64_t v) {
    value[Index(f)] = v;
    present |= Bit(f);
  }

  // The kAttributes fields, kInode and kType of `st`.
  void SetAttributes(const struct stat& st);

  // kResult and, on failure, kErrno. `result` is what a system call would have
  // returned on success; `error` is 0 or an errno value, then kResult is -1.
  void SetResult(int64_t result, int error);

  // Makes sure that the fields of these sources were asked for.
  void NeedCaller() {
    if (caller_resolved) return;
    caller_resolved = true;
    if (resolver != nullptr) resolver->ResolveCaller(*this);
  }
  void NeedDetails() {
    if (details_resolved) return;
    details_resolved = true;
    NeedCaller();
    if (resolver != nullptr) resolver->ResolveDetails(*this);
  }
  void NeedSyscall() {
    if (syscall_resolved) return;
    syscall_resolved = true;
    if (resolver != nullptr) resolver->ResolveSyscall(*this);
  }
  void NeedAttributes() {
    if (attributes_resolved) return;
    attributes_resolved = true;
    if (resolver != nullptr) resolver->ResolveAttributes(*this);
  }
};

// The texts that come with a request, and where an event holds them.
struct RequestText {
  Field field;
  std::string_view Event::*text;
};
inline constexpr std::array kRequestTexts = {
    RequestText{Field::kNewName, &Event::new_name},
    RequestText{Field::kTarget, &Event::target},
    RequestText{Field::kXattrName, &Event::xattr_name},
};
static_assert(
    [] {
      size_t texts = 0;
      for (const FieldInfo& f : Fields()) {
        const bool held = f.width == 0 && f.field != Field::kData;
        if (held && f.source == FieldSource::kRequest) ++texts;
      }
      return texts == kRequestTexts.size();
    }(),
    "each text field of a request is listed here");

// Room for a path; longer ones keep their tail, which tells files apart.
struct PathBuffer {
  std::array<char, 4096> bytes;
};

// The path of a node below the mount point, with a leading '/', as its links
// were last seen; `name`, if not empty, is appended as one more component.
// Empty if the node is unknown. The view points into `buffer`.
std::string_view PathOf(EventResolver& resolver, uint64_t node,
                        std::string_view name, PathBuffer& buffer);

// The path an event is about: directory and operand where there is an operand,
// else the file. NewPathOf is the second one: the new path of rename and link,
// the destination of a copy.
std::string_view PathOf(const Event& event, PathBuffer& buffer);
std::string_view NewPathOf(const Event& event, PathBuffer& buffer);

// The extension of a file name, without its dot: what follows the last '.', if
// something stands before that dot ("tar.gz" has "gz", ".profile" has none).
std::string_view ExtensionOf(std::string_view name);

}  // namespace tracefs
