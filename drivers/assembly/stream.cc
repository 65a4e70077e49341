#include "drivers/assembly/stream.h"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <bit>

#include "drivers/assembly/touched_inodes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/format/state_message.h"
#include "tracefs/pipeline/block_builder.h"

namespace tracefs {
namespace {

using format::ArgId;
using format::MessageWriter;

constexpr uint64_t kAll = kStrPostOp | kStrCaller | kStrTsNsec | kStrDuration |
                          kStrFname | kStrFext | kStrPath | kStrInode |
                          kStrDentry | kStrFile | kStrArgs | kStrRetval;

// What tracefs-replay needs; the bytes are a matter of their own.
constexpr uint64_t kReplay = kStrReplay | kStrPostOp | kStrTid | kStrUid |
                             kStrGid | kStrTsNsec | kStrDuration | kStrFname |
                             kStrPath | kStrInode | kStrDentry | kStrFile |
                             kStrArgs | kStrRetval;

// Chooses no field: a bit behind those of verbosity.h.
constexpr uint64_t kFirstContents = uint64_t{1} << 33;
constexpr uint64_t kMostContents = uint64_t{64} << 20;

constexpr uint64_t kKeep = kReplay | kStrKeep;

constexpr StreamFlagInfo kStreamFlags[] = {
    {"STR_POST_OP", kStrPostOp, "a message when the operation is done"},
    {"STR_PRE_OP", kStrPreOp,
     "a message before it runs, to see what hangs or crashes"},
    {"STR_PID", kStrPid | kStrTid, "process id, and thread id"},
    {"STR_TID", kStrTid, "thread id alone: costs no look-up"},
    {"STR_PPID", kStrPpid, "parent's process id"},
    {"STR_SID", kStrSid, "session id"},
    {"STR_PGID", kStrPgid, "process-group id"},
    {"STR_UID", kStrUid, "user id of the caller"},
    {"STR_GID", kStrGid, "group id of the caller"},
    {"STR_PNAME", kStrPname, "process name"},
    {"STR_TIMESTAMP", kStrTsNsec, "begin time in nanoseconds"},
    {"STR_EXE", kStrExe, "the file that the process runs"},
    {"STR_CMDLINE", kStrCmdline, "its arguments: may hold secrets"},
    {"STR_CGROUP", kStrCgroup, "its control group"},
    {"STR_TTY", kStrTty, "its terminal"},
    {"STR_TS_SEC", kStrTsSec, "begin time in seconds"},
    {"STR_TS_USEC", kStrTsUsec, "begin time in microseconds"},
    {"STR_TS_NSEC", kStrTsNsec, "begin time in nanoseconds"},
    {"STR_DURATION", kStrDuration, "how long it took, in nanoseconds"},
    {"STR_FNAME", kStrFname, "the names it was given"},
    {"STR_FEXT", kStrFext, "the extension of its name"},
    {"STR_PATH", kStrPath, "the path of the file below the mount point"},
    {"STR_INODE", kStrInode,
     "inode: number, and type, mode, links, size, owner where the operation "
     "itself returns them"},
    {"STR_ATTR", kStrAttr | kStrInode,
     "all of them with every operation on a file, reads and writes too: costs "
     "an fstat where the operation does not return them"},
    {"STR_DENTRY", kStrDentry, "inode number of the directory, and the name"},
    {"STR_FILE", kStrFile, "file handle and open flags"},
    {"STR_ARGS", kStrArgs, "all other arguments: offset, length, mode, …"},
    {"STR_RETVAL", kStrRetval, "result or errno"},
    {"STR_SYSCALL", kStrSyscall,
     "the system call that the caller is in: takes tracepoints of the kernel, "
     "which cost every process of the machine a little"},
    {"STR_DATA", kStrData, "the data read, written and copied"},
    {"STR_DATA_CKSUM", kStrDataCksum,
     "CRC-32C of the data read, written and copied"},
    {"STR_PROCESS", kStrProcessRecords,
     "a message for each process that begins, runs another program or ends"},
    {"STR_ENVIRONMENT", kStrProcessRecords | kStrEnvironment,
     "the same, with the environment of each program"},
    {"STR_REPLAY", kReplay,
     "what tracefs-replay needs: names, numbers, arguments, results, times, "
     "who; "
     "and what each file was when it was first touched and in the end, with "
     "attributes, links, extended attributes and holes. With STR_DATA the "
     "bytes "
     "read and written, too, and a checksum of each file in the end"},
    {"STR_REPLAY_CONTENTS", kReplay | kFirstContents,
     "the same, with a checksum of what each file of at most 64 MiB held when "
     "it was first touched: all of it is read for that, once, while who "
     "touched it may go on"},
    {"STR_KEEP", kKeep,
     "STR_REPLAY, and what an operation is about to destroy (bytes that are "
     "overwritten or cut off, a file that loses its last name) is kept first, "
     "where keep_in says, so that tracefs-replay --undo gives it back"},
    {"STR_EXTENTS", kStrExtents,
     "where on the device lies what an fsync or the close of a file wrote, and "
     "what a read had to fetch: costs an ioctl, mostly after the answer"},
    {"STR_ALL", kAll,
     "everything but STR_PRE_OP, coarser times, STR_EXE, STR_CMDLINE, "
     "STR_CGROUP, STR_TTY, STR_ATTR, STR_SYSCALL, STR_DATA, STR_DATA_CKSUM, "
     "STR_PROCESS, STR_ENVIRONMENT, STR_REPLAY, STR_REPLAY_CONTENTS, "
     "STR_KEEP, STR_EXTENTS"},
};

static_assert(
    [] {
      for (const FieldInfo& f : Fields()) {
        const bool known = f.field == Field::kInferred ||
                           f.field == Field::kMapped ||
                           f.field == Field::kDataLeftOut;
        if (IsFlag(f.field) && !known) return false;
      }
      return true;
    }(),
    "PutNumbers leaves a flag out where it is 0");

class Stream final : public AssemblyDriver {
 public:
  explicit Stream(uint64_t flags) : flags_(flags) {
    if ((flags_ & kStrPreOp) == 0) flags_ |= kStrPostOp;
    if ((flags_ & kStrDentry) != 0) flags_ |= kStrFname;
    process_ = {.pid = (flags_ & kStrPid) != 0,
                .ppid = (flags_ & kStrPpid) != 0,
                .sid = (flags_ & kStrSid) != 0,
                .pgid = (flags_ & kStrPgid) != 0,
                .comm = (flags_ & kStrPname) != 0,
                .exe = (flags_ & kStrExe) != 0,
                .cgroup = (flags_ & kStrCgroup) != 0,
                .tty = (flags_ & kStrTty) != 0,
                .cmdline = (flags_ & kStrCmdline) != 0};
    for (size_t i = 0; i < kNumericFieldCount; ++i) {
      const FieldInfo& info = Fields()[i];
      numeric_[i] = {info.arg_id, info.width};
      // The caller is in the process definition.
      if (Chosen(info.field) && info.source != FieldSource::kCaller) {
        numeric_mask_ |= Bit(info.field);
      }
    }
    numeric_mask_ &= ~Bit(Field::kDataChecksum);  // worked out here
  }

  AssemblyNeeds Needs(Op op) const override {
    const bool moves_data =
        op == Op::read_ || op == Op::write_ || op == Op::copy_file_range_;
    return {.after = (flags_ & kStrPostOp) != 0,
            .before = (flags_ & kStrPreOp) != 0,
            .caller = process_.any(),
            .syscall = (flags_ & kStrSyscall) != 0,
            .details = (flags_ & kStrDetails) != 0,
            .data = (moves_data && keeps_contents()) ||
                    (op == Op::setxattr_ && keeps_states()),
            .order = keeps_states(),
            .keep = (flags_ & kStrKeep) != 0 && DestroysContents(op),
            .extents = (flags_ & kStrExtents) != 0 && TellsExtents(op)};
  }

  ProcessNeeds process_needs() const override {
    return {.records = (flags_ & kStrProcessRecords) != 0,
            .environment = (flags_ & kStrEnvironment) != 0};
  }

  bool NamesDefined(const Event& event,
                    const BlockBuilder& block) const override {
    if ((flags_ & kStrPath) == 0) {
      // Without paths the name comes from the inode each time.
      return (flags_ & (kStrFname | kStrFext)) == 0 || !event.name.empty() ||
             event.node == 0;
    }
    const bool named = event.parent != 0;
    return block.HasPath(named ? event.parent : event.node,
                         named ? event.parent_version : event.node_version,
                         event.rename_epoch) &&
           block.HasPath(event.new_parent, event.new_parent_version,
                         event.rename_epoch);
  }

  bool Assemble(Event& event, BlockBuilder& block) const override {
    // Attributes from before it say nothing of what the operation has done.
    if ((flags_ & kStrAttr) != 0 && !event.before) event.NeedAttributes();
    ExtentSource::Answer extents;
    if ((flags_ & kStrExtents) != 0 && event.extents != nullptr &&
        !event.before) {
      extents = event.extents->Ask(event);
    }
    // Definitions come before the message that refers to them.
    uint32_t process = 0;
    uint32_t path = 0;
    uint32_t parent_path = 0;
    uint32_t new_parent_path = 0;
    if (event.caller != nullptr && process_.any()) {
      process = block.ProcessId(*event.caller, event.details, process_);
    }
    if ((flags_ & kStrPath) != 0 && event.resolver != nullptr) {
      // A file that is named by the operation needs no definition of its own.
      if (event.parent == 0) {
        path = block.PathId(*event.resolver, event.node, event.node_version,
                            event.rename_epoch);
      } else {
        parent_path = block.PathId(*event.resolver, event.parent,
                                   event.parent_version, event.rename_epoch);
      }
      new_parent_path =
          block.PathId(*event.resolver, event.new_parent,
                       event.new_parent_version, event.rename_epoch);
    }
    if (block.full()) return false;

    MessageWriter& w = block.writer();
    w.Begin(format::OperationMessage(event.op, event.before));
    PutNumbers(event, w);
    PutTimes(event, w);
    if (process != 0) w.Put<uint32_t>(ArgId::kProcessId, process);
    if (path != 0) w.Put<uint32_t>(ArgId::kPathId, path);
    if (parent_path != 0) w.Put<uint32_t>(ArgId::kParentPathId, parent_path);
    if (new_parent_path != 0) {
      w.Put<uint32_t>(ArgId::kNewParentPathId, new_parent_path);
    }
    PutTexts(event, w);
    PutText(w, Field::kExtentsOf, extents.of);
    PutText(w, Field::kExtents, extents.list);
    if (!w.End()) return false;
    return !keeps_states() || event.before || PutState(event, block);
  }

  void AtBegin(FileStates& states, const PutMessage& put) const override {
    if (!keeps_states()) return;
    file_states_.store(&states, std::memory_order_relaxed);
    states.ForEachOpen([&](const OpenFile& file) {
      const uint64_t now = MonotonicNs();
      touched_.Add(file.state.st.st_ino);
      put([&](MessageWriter& out) {
        return format::WriteOpenFile(out, file, now);
      });
    });
  }

  void AtEnd(const PutMessage& put) const override {
    EventResolver* const resolver = resolver_.load();
    if (!keeps_states() || resolver == nullptr) return;
    resolver->ForEachTouched(
        [this](uint64_t inode) { return touched_.Has(inode); },
        keeps_contents() || (flags_ & kStrKeep) != 0,
        [&](std::string_view path, const FileState& state) {
          const uint64_t now = MonotonicNs();
          put([&](MessageWriter& out) {
            return format::WriteState(out, state, now, /*late=*/false,
                                      /*at_end=*/true, path);
          });
        });
  }

 private:
  struct NumericArg {
    uint16_t arg_id;
    uint16_t width;
  };

  bool keeps_states() const { return (flags_ & kStrReplay) != 0; }
  bool keeps_contents() const {
    return (flags_ & (kStrData | kStrDataCksum)) != 0;
  }

  // What a file was, behind the first operation on it. False if that needs a
  // new block.
  bool PutState(const Event& event, BlockBuilder& block) const {
    if (event.resolver == nullptr || event.node == 0 ||
        !event.Has(Field::kInode)) {
      return true;
    }
    if (resolver_.load(std::memory_order_relaxed) == nullptr) {
      resolver_.store(event.resolver, std::memory_order_relaxed);
    }
    const uint64_t inode = event.Get(Field::kInode);
    if (!touched_.Add(inode)) return true;
    FileState state;
    if (Makes(event.op) || !event.resolver->StateOf(event.node, &state)) {
      return true;
    }
    const bool late = ChangedMeanwhile(event, state.st);
    FileStates* const contents = file_states_.load(std::memory_order_relaxed);
    if ((flags_ & kFirstContents) != 0 && !late && contents != nullptr &&
        S_ISREG(state.st.st_mode)) {
      state.checksum = contents->ChecksumOf(event.node, kMostContents);
      // A file that was only looked at may have been written to since.
      state.incomplete |= !state.checksum;
    }
    if (format::WriteState(block.writer(), state, MonotonicNs(), late,
                           /*at_end=*/false, {})) {
      return true;
    }
    if (block.block().empty()) return true;  // it fits into no block
    touched_.Remove(inode);
    return false;
  }

  static bool Makes(Op op) {
    return op == Op::symlink_ || op == Op::mknod_ || op == Op::mkdir_ ||
           op == Op::create_ || op == Op::tmpfile_;
  }

  static bool Changes(Op op) {
    return op == Op::setattr_ || op == Op::link_ || op == Op::write_ ||
           op == Op::setxattr_ || op == Op::removexattr_ ||
           op == Op::fallocate_;
  }

  // Whether the file may not be what it was before the operation.
  static bool ChangedMeanwhile(const Event& event, const struct stat& st) {
    if (Changes(event.op)) return true;
    // It is about the file that is copied from.
    if (event.op == Op::copy_file_range_ &&
        event.Get(Field::kInode) == event.Get(Field::kInodeOut)) {
      return true;
    }
    if (event.op == Op::open_) {
      return (event.Get(Field::kFlags) & O_TRUNC) != 0;
    }
    if (!event.Has(Field::kMode) || !event.Has(Field::kMtime)) return false;
    Event now;
    now.SetAttributes(st);
    // Whoever has taken a name away meanwhile has left the file as it was.
    for (const Field f : {Field::kMode, Field::kSize, Field::kFuid,
                          Field::kFgid, Field::kMtime}) {
      if (now.Get(f) != event.Get(f)) return true;
    }
    return false;
  }

  bool Chosen(Field f) const { return (Info(f).verbosity & flags_) != 0; }

  // The hot loop: id and value are stored eight bytes wide whatever the
  // width, and the next argument overwrites the surplus.
  void PutNumbers(const Event& event, MessageWriter& w) const {
    std::byte* const room = w.Room(kNumericFieldCount * 10 + 8);
    if (room == nullptr) return;
    std::byte* at = room;
    uint64_t left = event.present & numeric_mask_;
    // A success needs no errno.
    if ((left & Bit(Field::kErrno)) != 0 && event.Get(Field::kErrno) == 0) {
      left &= ~Bit(Field::kErrno);
    }
    if ((left & Bit(Field::kMapped)) != 0 && event.Get(Field::kMapped) == 0) {
      left &= ~Bit(Field::kMapped);
    }
    while (left != 0) {
      const auto i = static_cast<size_t>(std::countr_zero(left));
      left &= left - 1;
      StoreLe<uint16_t>(at, numeric_[i].arg_id);
      StoreLe<uint64_t>(at + 2, event.value[i]);
      at += 2 + numeric_[i].width;
    }
    w.Advance(static_cast<size_t>(at - room));
  }

  void PutTimes(const Event& event, MessageWriter& w) const {
    if ((flags_ & (kStrTsSec | kStrTsUsec)) == 0) return;
    const uint64_t ns = event.Get(Field::kTime);
    if ((flags_ & kStrTsSec) != 0) {
      w.Put<uint32_t>(ArgId::kTimeSec, static_cast<uint32_t>(ns / 1000000000));
    }
    if ((flags_ & kStrTsUsec) != 0) {
      w.Put<uint64_t>(ArgId::kTimeUsec, ns / 1000);
    }
  }

  void PutTexts(const Event& event, MessageWriter& w) const {
    if (Chosen(Field::kName) || Chosen(Field::kExt)) PutName(event, w);
    for (const RequestText& of : kRequestTexts) {
      if (Chosen(of.field)) PutText(w, of.field, event.*of.text);
    }
    if (event.second_file() != 0 && Chosen(Field::kNewName)) {
      PutSecondName(event, w);
    }
    if (event.data.data() == nullptr || event.before) return;
    if (event.op == Op::setxattr_) {
      // The value; it is there because somebody asked, maybe another tracer.
      if (keeps_states()) w.PutBytes(Info(Field::kData).arg_id, event.data);
      return;
    }
    if (Chosen(Field::kDataChecksum)) {
      w.Put<uint32_t>(Info(Field::kDataChecksum).arg_id, Crc32c(event.data));
    }
    if (Chosen(Field::kData)) {
      w.PutBytes(Info(Field::kData).arg_id, event.data);
    }
  }

  void PutName(const Event& event, MessageWriter& w) const {
    std::string_view name = event.name;
    NodeLink link;
    // With a path the last component need not be said again.
    if (name.empty() && (flags_ & kStrPath) == 0 && event.node != 0 &&
        event.resolver != nullptr &&
        event.resolver->LinkOf(event.node, &link)) {
      name = link.name.view();
    }
    if (Chosen(Field::kName)) {
      PutText(w, Field::kName, name);
    } else {
      PutText(w, Field::kExt, ExtensionOf(name));
    }
  }

  // Of a copy's destination, which comes without a name of its own.
  void PutSecondName(const Event& event, MessageWriter& w) const {
    NodeLink link;
    if ((flags_ & kStrPath) == 0 && event.resolver != nullptr &&
        event.resolver->LinkOf(event.new_parent, &link)) {
      PutText(w, Field::kNewName, link.name.view());
    }
  }

  static void PutText(MessageWriter& w, Field field, std::string_view text) {
    if (!text.empty()) w.PutText(Info(field).arg_id, text);
  }

  uint64_t flags_;
  ProcessFields process_;
  uint64_t numeric_mask_ = 0;
  std::array<NumericArg, kNumericFieldCount> numeric_{};
  // For STR_REPLAY. All events of a mount have the same resolver.
  mutable TouchedInodes touched_;
  mutable std::atomic<EventResolver*> resolver_ = nullptr;
  mutable std::atomic<FileStates*> file_states_ = nullptr;
};

}  // namespace

std::span<const StreamFlagInfo> StreamFlags() { return kStreamFlags; }

uint64_t StreamFlagBits(std::string_view name) {
  for (const StreamFlagInfo& flag : kStreamFlags) {
    if (flag.name == name) return flag.bits;
  }
  return 0;
}

std::unique_ptr<AssemblyDriver> MakeStream(uint64_t flags) {
  return std::make_unique<Stream>(flags);
}

}  // namespace tracefs
