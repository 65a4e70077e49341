#include "tracefs/recv/fleet/day_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "tracefs/base/durable.h"
#include "tracefs/base/file_io.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/frame_scan.h"
#include "tracefs/recv/fleet/places.h"
#include "tracefs/recv/kept_rest.h"

namespace tracefs {
namespace {

using format::FrameHeader;
using format::FrameKind;

constexpr size_t kMarkBytes = 24;
// Frames this near to the end may never have reached the disk when a machine
// went down; all before were acknowledged, and so are durable.
constexpr uint64_t kDoubtedDayBytes = uint64_t{64} << 20;
constexpr size_t kMaxHeadBytes = size_t{16} << 20;

bool IsKind(const FrameHeader& header, FrameKind kind) {
  return header.kind == static_cast<uint16_t>(kind);
}

std::span<std::byte> Room(std::string* text) {
  return {reinterpret_cast<std::byte*>(text->data()), text->size()};
}

std::string HeadPath(const std::string& serial) { return ".heads/" + serial; }

bool Removed(int fd) {
  struct stat st;
  return ::fstat(fd, &st) == 0 && st.st_nlink == 0;
}

// Preamble and block 0, with which each file of a day begins, but for marks
// between; empty: it is damaged.
std::string HeadOf(int fd) {
  std::string head(kMaxHeadBytes, '\0');
  const ssize_t n = ::pread(fd, head.data(), head.size(), 0);
  const ByteSpan bytes =
      AsBytes(head).first(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (bytes.size() < 12) return {};
  const Result<size_t> length = format::PreambleLength(bytes.first(12));
  if (!length.ok() || *length > bytes.size()) return {};
  const auto preamble = format::DecodePreamble(bytes.first(*length));
  if (!preamble.ok()) return {};
  for (size_t at = *length; at < bytes.size();) {
    const auto frame = format::FrameAt(bytes.subspan(at), preamble->serial);
    if (!frame) return {};
    const size_t size = format::kFrameHeaderBytes + frame->payload.size();
    if (!format::IsMark(frame->header.kind)) {
      return frame->header.sequence == 0
                 ? head.substr(0, *length) + head.substr(at, size)
                 : std::string();
    }
    at += size;
  }
  return {};
}

}  // namespace

DayFiles::DayFiles(const HostFolder& folder, std::string preamble,
                   const format::Serial& serial)
    : folder_(folder),
      preamble_(std::move(preamble)),
      serial_(serial),
      name_(format::SerialText(serial)) {}

Status DayFiles::Refresh() {
  // Retention has taken them away; what is known of the trace stays.
  if (any_ && Removed(last_.fd.get())) {
    last_ = {};
    late_ = {};
    any_ = opened_ = false;
  }
  if (!opened_) {
    if (Status s = OpenAll(); !s.ok()) return s;
    opened_ = true;
    if (!any_ && block_zero_.empty()) ReadKeptHead();
    return Status::Ok();
  }
  if (!any_) return OpenAll();
  if (Status s = ReadOn(&last_, /*late=*/false); !s.ok()) return s;
  // Another one has begun a new day: look for it.
  if (last_.closed) return OpenAll();
  if (late_.fd.valid()) return ReadOn(&late_, /*late=*/true);
  return Status::Ok();
}

void DayFiles::ReadKeptHead() {
  const UniqueFd fd(::openat(folder_.fd(), HeadPath(name_).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) return;
  std::string head(static_cast<size_t>(st.st_size), '\0');
  if (head.size() > kMaxHeadBytes || !ReadAllAt(fd.get(), Room(&head), 0) ||
      !head.starts_with(preamble_)) {
    return;
  }
  block_zero_ = head.substr(preamble_.size());
  resumed_ = true;
}

void DayFiles::ResumeAt(uint64_t sequence) {
  if (std::exchange(resumed_, false)) next_ = std::max(next_, sequence);
}

Status DayFiles::OpenAll() {
  std::vector<std::string> days = NamesIn(folder_.fd(), kDayPrefix);
  std::sort(days.begin(), days.end());
  std::vector<File> late;
  for (const std::string& entry : days) {
    const std::string day = entry.substr(kDayPrefix.size());
    if (any_ && day < last_.day) continue;
    File file;
    if (any_ && day == last_.day) {
      file = std::move(last_);
    } else if (Status s = Open(day, FileName(/*late=*/false), &file); !s.ok()) {
      return s;
    }
    if (file.fd.valid()) {
      if (Status s = ReadOn(&file, /*late=*/false); !s.ok()) return s;
      last_ = std::move(file);
      any_ = true;
    }
    File beside;
    if (Status s = Open(day, FileName(/*late=*/true), &beside); !s.ok()) {
      return s;
    }
    if (beside.fd.valid()) late.push_back(std::move(beside));
  }
  // They fill gaps, which are all known now.
  for (File& file : late) {
    if (Status s = ReadOn(&file, /*late=*/true); !s.ok()) return s;
    late_ = std::move(file);
  }
  return Status::Ok();
}

Status DayFiles::Open(const std::string& day, const std::string& name,
                      File* file) {
  const std::string path = std::string(kDayPrefix) + day + '/' + name;
  file->fd.Reset(::openat(folder_.fd(), path.c_str(),
                          O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file->fd) {
    return errno == ENOENT ? Status::Ok() : Status::System(errno, path);
  }
  file->day = day;
  struct stat st;
  if (::fstat(file->fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
    return Status::System(EINVAL, path);
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  std::string there(std::min<uint64_t>(preamble_.size(), size), '\0');
  if (!ReadAllAt(file->fd.get(), Room(&there), 0)) {
    return Status::System(EIO, path);
  }
  if (there != preamble_.substr(0, there.size())) {
    return Status::Invalid("another trace with the same serial is in " + path);
  }
  // Its maker was killed at once.
  if (there.size() < preamble_.size()) {
    if (Status s = WriteAllAt(file->fd.get(), AsBytes(preamble_), 0, path);
        !s.ok()) {
      return s;
    }
  }
  file->end = preamble_.size();
  return SyncFound(*file, path);
}

// What is there counts as stored, although who wrote it may have been killed
// before it was durable.
Status DayFiles::SyncFound(const File& file, const std::string& path) const {
  if (::fdatasync(file.fd.get()) != 0) {
    const Status failed = Status::System(errno, path);
    // Who opens it next reads what the disk has.
    (void)::posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    return failed;
  }
  const UniqueFd day(::openat(folder_.fd(),
                              (std::string(kDayPrefix) + file.day).c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!day) return Status::System(errno, path);
  const Status named = SyncFolder(day.get(), path);
  return named.ok() ? SyncFolder(folder_.fd(), path) : named;
}

void DayFiles::Take(const FrameHeader& header, ByteSpan mark, bool late,
                    File* file) {
  if (IsKind(header, FrameKind::kPartEnd)) {
    file->closed = true;
    return;
  }
  file->link.Add(header.crc);
  if (IsKind(header, FrameKind::kPart)) {
    if (const auto part = format::DecodePartMark(mark)) {
      file->part = part->part;
    }
    return;
  }
  if (late) {
    missing_.Remove(header.sequence);
    return;
  }
  // The copy of block 0 at the beginning of each file.
  if (header.sequence == 0 && next_ != 0) return;
  missing_.Add(next_, header.sequence);
  next_ = std::max(next_, header.sequence + 1);
}

Status DayFiles::ReadOn(File* file, bool late) {
  struct stat st;
  if (::fstat(file->fd.get(), &st) != 0) return Status::System(errno, name_);
  const auto size = static_cast<uint64_t>(st.st_size);
  std::vector<std::byte> payload;
  bool damaged = false;
  while (file->end + format::kFrameHeaderBytes <= size) {
    std::array<std::byte, format::kFrameHeaderBytes> bytes;
    if (!ReadAllAt(file->fd.get(), bytes, file->end)) {
      return Status::System(EIO, name_);
    }
    format::FrameCheck check(serial_);
    damaged = check.Begin(bytes) != format::FrameFault::kNone;
    if (damaged) break;
    const FrameHeader header = check.header();
    const uint64_t at = file->end + format::kFrameHeaderBytes;
    if (at + header.payload_bytes > size) break;
    const bool mark = format::IsMark(header.kind);
    const bool zero = !mark && header.sequence == 0 && block_zero_.empty();
    payload.clear();
    if (mark || zero || size - at <= kDoubtedDayBytes) {
      payload.resize(header.payload_bytes);
      if (!ReadAllAt(file->fd.get(), payload, at)) {
        return Status::System(EIO, name_);
      }
      check.Add(payload);
      damaged = !check.good();
      if (damaged) break;
    }
    if (zero) {
      block_zero_ = std::string(AsText(bytes)) + std::string(AsText(payload));
    }
    Take(header, mark ? ByteSpan(payload) : ByteSpan(), late, file);
    file->end = at + header.payload_bytes;
  }
  return file->end == size ? Status::Ok() : CutOff(*file, size, damaged, late);
}

// Under the lock there is no writer: what is not whole was cut when a receiver
// ended, unless frames follow that were acknowledged.
Status DayFiles::CutOff(const File& file, uint64_t size, bool damaged,
                        bool late) const {
  if (!damaged) {
    const Result<bool> more =
        format::FrameScan(file.fd.get(), file.end, size, serial_, 0).Skip();
    if (!more.ok()) return more.status();
    damaged = *more;
  }
  if (damaged) {
    const Result<UniqueFd> day = folder_.Day(file.day);
    if (!day.ok()) return day.status();
    if (Status s =
            KeepRest(day->get(), FileName(late), file.fd.get(), file.end, size);
        !s.ok()) {
      return s;
    }
  }
  return ::ftruncate(file.fd.get(), static_cast<off_t>(file.end)) == 0
             ? Status::Ok()
             : Status::System(errno, name_);
}

Status DayFiles::Write(ByteSpan bytes, File* file) {
  if (!file->unsynced) file->unsynced = file->end;
  if (Status s = WriteAllAt(file->fd.get(), bytes, file->end, name_); !s.ok()) {
    // What was written of it goes, so that the file ends well.
    (void)!::ftruncate(file->fd.get(), static_cast<off_t>(file->end));
    return s;
  }
  file->end += bytes.size();
  return Status::Ok();
}

// A file for the day, with its mark and, unless it is the first, block 0.
Status DayFiles::Begin(const std::string& day, uint64_t sequence, File* file) {
  Result<UniqueFd> folder = folder_.Day(day);
  if (!folder.ok()) return folder.status();
  const bool late = file == &late_;
  const std::string name = FileName(late);
  File made;
  made.day = day;
  made.fd.Reset(::openat(folder->get(), name.c_str(),
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made.fd) return Status::System(errno, name);
  made.part = any_ && !late ? last_.part + 1 : 0;
  std::string start = preamble_;
  if (!late) {
    // It is of no use to say how the file before ended where there is none.
    start += format::EncodePartMark(
        FrameKind::kPart, serial_,
        {.part = made.part,
         .block = std::max<uint64_t>(sequence, 1),
         .link = made.part == 0 ? 0 : last_.link.value()});
  }
  if (sequence != 0) start += block_zero_;
  // One from a receiver that was killed before it wrote a block.
  (void)!::ftruncate(made.fd.get(), 0);
  made.end = 0;
  made.unsynced = 0;
  const std::string bytes = start;
  if (Status s = WriteAllAt(made.fd.get(), AsBytes(bytes), 0, name); !s.ok()) {
    ::unlinkat(folder->get(), name.c_str(), 0);
    return s;
  }
  if (Status s = SyncFolder(folder->get(), name); !s.ok()) return s;
  // Its link: of all frames that are there.
  made.end = bytes.size();
  uint64_t at = preamble_.size();
  while (at < bytes.size()) {
    FrameHeader header;
    const ByteSpan rest = AsBytes(bytes).subspan(at);
    if (!format::DecodeFrameHeader(rest.first<format::kFrameHeaderBytes>(),
                                   &header)) {
      break;
    }
    made.link.Add(header.crc);
    at += format::kFrameHeaderBytes + header.payload_bytes;
  }
  *file = std::move(made);
  return Status::Ok();
}

Status DayFiles::Append(const std::string& day, uint64_t sequence,
                        ByteSpan frame) {
  if (!any_) {
    if (Status s = Begin(day, sequence, &last_); !s.ok()) return s;
    any_ = true;
  } else if (last_.closed || day > last_.day) {
    // A day that was closed and has no successor: its receiver was killed.
    const std::string next_day = std::max(day, last_.day);
    if (!last_.closed) {
      const std::string mark =
          format::EncodePartMark(FrameKind::kPartEnd, serial_,
                                 {.part = last_.part,
                                  .block = std::max<uint64_t>(sequence, 1),
                                  .link = last_.link.value()});
      if (Status s = Write(AsBytes(mark), &last_); !s.ok()) return s;
      if (Status s = SyncFile(&last_); !s.ok()) return s;
      last_.closed = true;
    }
    if (next_day == last_.day) {
      // The mark goes: the day goes on.
      const uint64_t end = last_.end - format::kFrameHeaderBytes - kMarkBytes;
      if (::ftruncate(last_.fd.get(), static_cast<off_t>(end)) != 0) {
        return Status::System(errno, name_);
      }
      last_.end = end;
      last_.closed = false;
    } else if (Status s = Begin(next_day, sequence, &last_); !s.ok()) {
      return s;
    }
  }
  if (Status s = Write(frame, &last_); !s.ok()) return s;
  FrameHeader header;
  if (format::DecodeFrameHeader(frame.first<format::kFrameHeaderBytes>(),
                                &header)) {
    if (sequence == 0) block_zero_ = std::string(AsText(frame));
    last_.link.Add(header.crc);
  }
  missing_.Add(next_, sequence);
  next_ = sequence + 1;
  return Status::Ok();
}

Status DayFiles::AppendLate(const std::string& day, uint64_t sequence,
                            ByteSpan frame) {
  if (!late_.fd.valid() || late_.day != day) {
    if (Status s = Open(day, FileName(/*late=*/true), &late_); !s.ok()) {
      return s;
    }
    if (late_.fd.valid()) {
      if (Status s = ReadOn(&late_, /*late=*/true); !s.ok()) return s;
    } else if (Status s = Begin(day, sequence, &late_); !s.ok()) {
      return s;
    }
  }
  if (Status s = Write(frame, &late_); !s.ok()) return s;
  missing_.Remove(sequence);
  return SyncFile(&late_);
}

Status DayFiles::SyncFile(File* file) {
  if (!file->fd.valid()) return Status::Ok();
  if (::fdatasync(file->fd.get()) != 0) {
    failed_ = Status::System(errno, name_);
    Doubt();
    return failed_;
  }
  file->unsynced.reset();
  return Status::Ok();
}

Status DayFiles::Sync() {
  if (failed_.ok() && SyncFile(&last_).ok()) (void)SyncFile(&late_);
  return NoteSynced();
}

Status DayFiles::NoteSynced() {
  last_.unsynced = late_.unsynced = std::nullopt;
  return std::exchange(failed_, Status::Ok());
}

void DayFiles::Doubt() {
  for (const File* file : {&last_, &late_}) {
    if (!file->fd.valid()) continue;
    if (file->unsynced) {
      (void)!::ftruncate(file->fd.get(), static_cast<off_t>(*file->unsynced));
    }
    // What others wrote is read from the disk.
    (void)::posix_fadvise(file->fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  last_ = {};
  late_ = {};
  opened_ = any_ = resumed_ = false;
  next_ = 0;
  missing_ = {};
  block_zero_.clear();
}

Status KeepHeads(const HostFolder& folder, const std::string& date) {
  constexpr std::string_view kEnding = ".trace";
  const UniqueFd day(
      ::openat(folder.fd(), date.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!day) return Status::System(errno, date);
  for (const std::string& name : NamesIn(day.get(), "")) {
    const std::string serial = name.substr(0, name.find('.'));
    if (name != serial + std::string(kEnding)) continue;
    bool elsewhere = false;
    for (const std::string& other : NamesIn(folder.fd(), kDayPrefix)) {
      elsewhere =
          elsewhere || (other != date &&
                        ::faccessat(folder.fd(), (other + '/' + name).c_str(),
                                    F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    }
    if (elsewhere) continue;
    const UniqueFd fd(
        ::openat(day.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const std::string head = fd ? HeadOf(fd.get()) : std::string();
    if (head.empty()) continue;
    const Result<UniqueFd> heads = OpenOrMakeFolder(folder.fd(), ".heads");
    if (!heads.ok()) return heads.status();
    if (Status s = WriteFileWhole(heads->get(), serial, head); !s.ok()) {
      return s;
    }
  }
  return Status::Ok();
}

}  // namespace tracefs
