#include "drivers/output/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <span>
#include <utility>

#include "drivers/output/lasting_parts.h"
#include "drivers/output/trace_file.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/ownership.h"
#include "tracefs/format/marks.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

using format::FrameKind;

std::string QuotedTraceFile(const std::string& path) {
  return "trace file '" + path + "'";
}

uint32_t CrcOf(ByteSpan frame_header) {
  return LoadLe<uint32_t>(frame_header.data() + format::kFrameHeaderBytes - 4);
}

int OpenFlags(const FileOptions& options) {
  return O_WRONLY | (options.sync ? O_DSYNC : 0);
}

class File final : public OutputDriver {
 public:
  // `folder`: needed with a rotation, and if we `made` the file.
  File(FileOptions options, std::optional<OutputFolder> folder, UniqueFd fd,
       const OutputFileId& id, bool made)
      : options_(std::move(options)),
        folder_(std::move(folder)),
        file_(std::make_unique<TraceFile>(std::move(fd),
                                          QuotedTraceFile(options_.path))),
        id_(id),
        made_(made) {}
  // What is left behind would be in the way of the next start.
  ~File() override {
    const bool stays =
        options_.stay != nullptr ? options_.stay->load() : begun_;
    if (made_ && !stays) folder_->Remove(folder_->base(), id_);
  }

  Status Initialize(const TraceIdentity& identity) override {
    full_ = identity.full;
    preamble_ = identity.preamble;
    serial_ = identity.serial;
    survives_ = identity.survives;
    if (identity.resumes) return GoOn();
    if (survives_ != nullptr) survives_->fd = -1;
    std::string mark;
    if (options_.rotation.any()) {
      name_ = folder_->base();
      if (survives_ != nullptr) {
        if (!parts_.Make(&survives_->memory)) {
          return Status::Invalid(QuotedTraceFile(options_.path) +
                                 ": there is no memory that survives the "
                                 "daemon for what its parts are");
        }
        parts_.Note(0, {.number = 0, .id = id_});
      }
      mark = BeginPart(/*first_block=*/1, /*link_before=*/0);
    }
    file_->Reserve(preamble_.size() + mark.size());
    const Status begun = file_->Append({AsBytes(preamble_), AsBytes(mark)});
    begun_ = begun.ok();
    NoteState();
    return begun;
  }

  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    const uint64_t needed = frame_header.size() + payload.size();
    if (info.under_way != 0 && !file_->can_reserve()) {
      return Status::Invalid(
          QuotedTraceFile(options_.path) +
          ": its file system cannot reserve room (fallocate), so what is under "
          "way when it fills up would be lost; with when_full = fail choose "
          "one that can, such as ext4, XFS, btrfs or tmpfs");
    }
    if (options_.rotation.any()) {
      if (info.sequence == 0) {
        head_ =
            std::string(AsText(frame_header)) + std::string(AsText(payload));
        if (parts_.there() && !parts_.NoteHead(head_)) {
          return Status::Invalid(QuotedTraceFile(options_.path) +
                                 ": what each of its parts would begin with is "
                                 "too long to be kept for a later daemon");
        }
      } else if (!info.last && IsDue(needed, info)) {
        BeginNextFile(info);
      }
    }
    if (!info.last && !file_->Reserve(needed)) {
      return Refused(Status::System(ENOSPC, QuotedTraceFile(options_.path)));
    }
    if (Status s = file_->Append({frame_header, payload}); !s.ok()) {
      return Refused(std::move(s));
    }
    // A feed has no frames, and is never in several files.
    if (options_.rotation.any()) link_.Add(CrcOf(frame_header));
    if (info.sequence != 0) ++blocks_;
    events_ += info.events;
    NoteState();
    if (info.under_way != 0) KeepRoom(info);
    return Status::Ok();
  }

  // What a later process would not come back to.
  void Noted() override { Leave(); }
  Status Flush() override { return Status::Ok(); }
  Status Release() override {
    Leave();
    return file_->Close(options_.sync);
  }
  size_t PreferredBlockSize() const override { return options_.buffer_bytes; }

 private:
  // For a later process.
  void NoteState() const {
    if (survives_ == nullptr) return;
    survives_->bytes = file_->size();
    survives_->part = part_;
    survives_->oldest = part_ - older_.size();
    survives_->next_number = next_number_;
    survives_->blocks = blocks_;
    survives_->events = events_;
    survives_->began_ns = began_ns_;
    survives_->link = link_.value();
    if (part_ != 0) survives_->fd = file_->fd();
  }

  // Where another process had stopped.
  Status GoOn() {
    begun_ = true;
    const survive::OutputState& state = *survives_;
    if (!options_.rotation.any()) return file_->Resume(state.bytes);
    if (!parts_.Find(state.memory)) {
      return Status::SystemSaid(
          EUCLEAN, QuotedTraceFile(options_.path) +
                       ": what the daemon before has left about its parts is "
                       "wrong");
    }
    head_ = parts_.head();
    part_ = state.part;
    next_number_ = state.next_number;
    blocks_ = state.blocks;
    events_ = state.events;
    began_ns_ = state.began_ns;
    link_ = format::PartLink(state.link);
    const auto name_of = [this](const LastingParts::Part& part) {
      return part.number == 0 ? folder_->base()
                              : folder_->Numbered(part.number);
    };
    const uint64_t first_known =
        part_ - std::min(part_, LastingParts::kMost - 1);
    for (uint64_t p = std::max(std::min(state.oldest, part_), first_known);
         p < part_; ++p) {
      older_.emplace_back(name_of(parts_.Get(p)), parts_.Get(p).id);
    }
    const LastingParts::Part now = parts_.Get(part_);
    name_ = name_of(now);
    id_ = now.id;
    if (state.fd >= 0) {
      file_ = std::make_unique<TraceFile>(
          UniqueFd(state.fd), QuotedTraceFile(folder_->PathOf(name_)));
      if (options_.changed) options_.changed(id_, true);
    }
    RemoveBegun();
    if (Status s = file_->Resume(state.bytes); !s.ok()) return s;
    RemoveOld();
    return Status::Ok();
  }

  // The other process may have begun the next part, and not come to write a
  // block into it.
  void RemoveBegun() {
    LastingParts::Part next = parts_.Get(part_ + 1);
    if (next.number < next_number_) return;
    const std::string name = folder_->Numbered(next.number);
    if (next.id == OutputFileId{}) {
      // Made and not noted. One of somebody else is not empty.
      const UniqueFd there = folder_->Find(name, O_PATH);
      struct stat st;
      if (!there || ::fstat(there.get(), &st) != 0 || st.st_size != 0) return;
      next.id = {st.st_dev, st.st_ino};
    }
    folder_->Remove(name, next.id);
  }

  // The part before is done with.
  void Leave() {
    if (left_ == nullptr) return;
    if (Status s = left_->Close(options_.sync); !s.ok()) TellOnce(s);
    left_.reset();
    RemoveOld();
  }

  void RemoveOld() {
    while (options_.rotation.keep != 0 &&
           older_.size() >= options_.rotation.keep) {
      folder_->Remove(older_.front().first, older_.front().second);
      older_.pop_front();
    }
    if (survives_ != nullptr) survives_->oldest = part_ - older_.size();
  }
  // Says whether there is room for what may still come, before it comes.
  void KeepRoom(const BlockInfo& info) {
    const bool full = !file_->Reserve(info.under_way);
    if (std::exchange(said_full_, full) != full && full_) full_(full);
    if (full) {
      TellOnce(Status::System(ENOSPC, QuotedTraceFile(options_.path))
                   .Prefixed("operations are refused until there is room for "
                             "what they may come to"));
    }
  }

  // Each file has one block at least, so that a limit that is too small for
  // what a file begins with does not end in files without anything else.
  bool IsDue(uint64_t bytes, const BlockInfo& info) {
    const Rotation& r = options_.rotation;
    const uint64_t now = MonotonicNs();
    if (blocks_ == 0 || now < retry_ns_ || left_ != nullptr) return false;
    return (r.bytes != 0 && file_->size() + bytes > r.bytes) ||
           (r.age_ns != 0 && now - began_ns_ >= r.age_ns) ||
           (r.events != 0 && events_ + info.events > r.events);
  }

  // Returns the mark that a part begins with and starts to count for it.
  std::string BeginPart(uint64_t first_block, uint32_t link_before) {
    const std::string mark = format::EncodePartMark(
        FrameKind::kPart, serial_,
        {.part = part_, .block = first_block, .link = link_before});
    link_ = {};
    link_.Add(CrcOf(AsBytes(mark)));
    blocks_ = events_ = 0;
    began_ns_ = MonotonicNs();
    return mark;
  }

  // On failure everything stays as it is, for a while.
  void BeginNextFile(const BlockInfo& first) {
    const uint64_t first_block = first.sequence;
    OutputFileId id;
    std::string name;
    Result<UniqueFd> fd = Status();
    // A number that is taken belongs to another trace.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      name = folder_->Numbered(next_number_);
      if (parts_.there())
        parts_.Note(part_ + 1, {.number = next_number_, .id = {}});
      ++next_number_;
      fd = folder_->Make(name, OpenFlags(options_), &id);
      if (fd.ok() || fd.status().error() != EEXIST) break;
    }
    if (!fd.ok()) {
      retry_ns_ = MonotonicNs() + kNsPerSecond;
      TellOnce(fd.status().Prefixed("the trace goes on in the file before"));
      return;
    }
    if (parts_.there()) {
      parts_.Note(part_ + 1, {.number = next_number_ - 1, .id = id});
    }
    auto next = std::make_unique<TraceFile>(
        *std::move(fd), QuotedTraceFile(folder_->PathOf(name)));
    const format::PartLink link_so_far = link_;
    const uint64_t blocks = blocks_;
    const uint64_t events = events_;
    const uint64_t began = began_ns_;
    ++part_;
    const std::string mark = BeginPart(first_block, link_so_far.value());
    Status status =
        next->Reserve(preamble_.size() + mark.size() + head_.size() +
                      first.under_way)
            ? next->Append({AsBytes(preamble_), AsBytes(mark), AsBytes(head_)})
            : Status::System(ENOSPC, QuotedTraceFile(name));
    if (!status.ok()) {
      --part_;
      link_ = link_so_far;
      blocks_ = blocks;
      events_ = events;
      began_ns_ = began;
      folder_->Remove(name, id);
      retry_ns_ = MonotonicNs() + kNsPerSecond;
      TellOnce(status.Prefixed("the trace goes on in the file before"));
      return;
    }
    link_.Add(CrcOf(AsBytes(head_)));
    // The end mark goes into what was reserved for FINAL.
    const std::string end = format::EncodePartMark(
        FrameKind::kPartEnd, serial_,
        {.part = part_ - 1, .block = first_block, .link = link_so_far.value()});
    status = file_->Append({AsBytes(end)});
    if (!status.ok()) TellOnce(status);
    left_ = std::move(file_);
    if (options_.changed) {
      options_.changed(id, true);
      options_.changed(id_, false);
    }
    older_.emplace_back(std::exchange(name_, name), std::exchange(id_, id));
    file_ = std::move(next);
    if (survives_ == nullptr) Leave();
  }

  Status Refused(Status status) {
    TellOnce(status.Prefixed(
        "events are lost and counted in the trace until there is room"));
    return status;
  }

  void TellOnce(const Status& status) {
    if (std::exchange(reported_, true)) return;
    const bool full = status.error() == ENOSPC || status.error() == EDQUOT;
    Notify(full ? NoticeId::kDiskFull : NoticeId::kOutputFailed,
           status.message());
  }

  const FileOptions options_;
  const std::optional<OutputFolder> folder_;
  std::unique_ptr<TraceFile> file_;
  std::string name_;  // of file_ in folder_
  OutputFileId id_;   // of file_
  const bool made_;   // the first one, by us
  bool begun_ = false;
  bool reported_ = false;
  OutputFull full_;
  bool said_full_ = false;
  survive::OutputState* survives_ = nullptr;  // may be null

  // For rotation.
  std::string preamble_;
  format::Serial serial_{};
  std::string head_;  // the frame of block 0
  uint64_t part_ = 0;
  uint64_t next_number_ = 1;
  std::deque<std::pair<std::string, OutputFileId>> older_;
  // The part before, as long as another process may have to go on there.
  std::unique_ptr<TraceFile> left_;
  LastingParts parts_;
  uint64_t retry_ns_ = 0;
  // This part's.
  format::PartLink link_;
  uint64_t blocks_ = 0;
  uint64_t events_ = 0;
  uint64_t began_ns_ = 0;
};

// A later part would stand among those of another trace.
Status CheckNoParts(const OutputFolder& folder) {
  const std::string first = folder.FindNumbered();
  if (first.empty()) return Status::Ok();
  return Status::System(
      EEXIST, QuotedTraceFile(folder.PathOf(first)) +
                  " (a part of an earlier trace; remove its files, choose "
                  "another name, or write %date or %serial into it)");
}

// The kind of what has the name; 0: nothing has it.
mode_t TypeOf(const OutputFolder& folder) {
  const UniqueFd there = folder.Find(folder.base(), O_PATH);
  struct stat st;
  if (!there || ::fstat(there.get(), &st) != 0) return 0;
  return st.st_mode & S_IFMT;
}

// What devices are good for.
Status CheckDevice(const FileOptions& options, mode_t type) {
  if (type == S_IFBLK) {
    return Status::Invalid("'" + options.path +
                           "' is a device; write device = \"" + options.path +
                           "\", which overwrites what is on it");
  }
  if (type == S_IFCHR && options.rotation.any()) {
    return Status::Invalid("'" + options.path +
                           "' is a device, and cannot be rotated");
  }
  return Status::Ok();
}

Status CheckNoTerminal(const FileOptions& options, int fd) {
  if (::isatty(fd) == 0) return Status::Ok();
  return Status::Invalid("'" + options.path +
                         "' is a terminal; tracefs-ctl MNT tail shows "
                         "operations there");
}

Result<UniqueFd> OpenDevice(const FileOptions& options,
                            const OutputFolder& folder, OutputFileId* id) {
  UniqueFd fd = folder.Find(folder.base(), OpenFlags(options) | O_NOCTTY);
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, QuotedTraceFile(options.path));
  }
  if (Status s = CheckNoTerminal(options, fd.get()); !s.ok()) return s;
  *id = {st.st_dev, st.st_ino};
  return fd;
}

}  // namespace

Status FileDriver::Probe(const FileOptions& options) {
  const Result<OutputFolder> folder = OutputFolder::Open(options.path);
  if (!folder.ok()) return folder.status();
  const mode_t type = TypeOf(*folder);
  if (Status s = CheckDevice(options, type); !s.ok()) return s;
  if (type == S_IFCHR) {
    OutputFileId id;
    return OpenDevice(options, *folder, &id).status();
  }
  if (options.rotation.any()) {
    if (Status s = CheckNoParts(*folder); !s.ok()) return s;
  }
  return folder->CheckMake(folder->base());
}

Result<std::unique_ptr<OutputDriver>> FileDriver::Create(FileOptions options,
                                                         OutputFileId* id) {
  Result<OutputFolder> folder = OutputFolder::Open(options.path);
  if (!folder.ok()) return folder.status();
  const mode_t type = TypeOf(*folder);
  if (Status s = CheckDevice(options, type); !s.ok()) return s;
  const bool device = type == S_IFCHR;
  if (options.rotation.any()) {
    if (Status s = CheckNoParts(*folder); !s.ok()) return s;
  }
  Result<UniqueFd> fd =
      device ? OpenDevice(options, *folder, id)
             : folder->Make(folder->base(), OpenFlags(options), id);
  if (!fd.ok()) return fd.status();
  folder->Enclose();
  return std::unique_ptr<OutputDriver>(
      std::make_unique<File>(std::move(options), *std::move(folder),
                             *std::move(fd), *id, /*made=*/!device));
}

Result<std::unique_ptr<OutputDriver>> FileDriver::Adopt(FileOptions options,
                                                        const Given& given,
                                                        OutputFileId* id) {
  const std::span<UniqueFd> files = given.rest();
  const std::string what = QuotedTraceFile(options.path);
  if (files.size() != (options.rotation.any() ? 2 : 1)) {
    return Status::Invalid(what + ": another number of files was sent");
  }
  struct stat st;
  if (::fstat(files[0].get(), &st) != 0) return Status::System(errno, what);
  const int flags = ::fcntl(files[0].get(), F_GETFL);
  if (flags < 0) return Status::System(errno, what);
  const bool writable =
      (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
  const bool device = S_ISCHR(st.st_mode) && !options.rotation.any();
  const bool is_new = st.st_size == 0 || given.again();
  if (!(device || (S_ISREG(st.st_mode) && is_new)) || !writable ||
      (flags & O_APPEND) != 0) {
    return Status::Invalid(what +
                           ": the descriptor that was sent is not a new file, "
                           "open for writing");
  }
  // The sender made it; no one else can write to it or has a name for it.
  Status fit;
  if (device) {
    fit = CheckNoTerminal(options, files[0].get());
  } else if (!given.again()) {
    fit = CheckOwnership(files[0].get(), {.one_name = true}, what);
  }
  if (!fit.ok()) return fit;
  if (options.sync && (flags & O_DSYNC) == 0) {
    return Status::Invalid(what + ": the descriptor lacks O_DSYNC");
  }
  *id = {st.st_dev, st.st_ino};
  std::optional<OutputFolder> folder;
  if (options.rotation.any()) {
    Result<OutputFolder> adopted =
        OutputFolder::Adopt(options.path, std::move(files[1]));
    if (!adopted.ok()) return adopted.status();
    if (!given.again()) {
      if (Status s = CheckNoParts(*adopted); !s.ok()) return s;
    }
    folder = *std::move(adopted);
  }
  return std::unique_ptr<OutputDriver>(std::make_unique<File>(
      std::move(options), std::move(folder), std::move(files[0]), *id,
      /*made=*/false));
}

}  // namespace tracefs
