// The backlog on disk.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>

#include "drivers/output/remote/backlog.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/text.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/frame_scan.h"

namespace tracefs {
namespace {

constexpr uint64_t kMinSegmentBytes = 1 << 20;
constexpr std::string_view kSuffix = ".spill";
constexpr std::string_view kDamagedSuffix = ".damaged";
constexpr size_t kSerialDigits = 2 * format::kSerialBytes;
// Files that a directory may hold for one who takes what was left: hostile
// hands cannot get at it, but a disk may be damaged.
constexpr size_t kMaxLeftoverFiles = 65536;

// All of `pieces` at `offset`, or an errno value.
int WriteAll(int fd, std::array<ByteSpan, 2> pieces, uint64_t offset) {
  while (!pieces[0].empty() || !pieces[1].empty()) {
    std::array<iovec, 2> iov;
    for (size_t i = 0; i < pieces.size(); ++i) {
      iov[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
    }
    const ssize_t n = ::pwritev(fd, iov.data(), static_cast<int>(iov.size()),
                                static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    offset += static_cast<uint64_t>(n);
    auto taken = static_cast<size_t>(n);
    for (ByteSpan& piece : pieces) {
      const size_t part = std::min(taken, piece.size());
      piece = piece.subspan(part);
      taken -= part;
    }
  }
  return 0;
}

// All that can be sent of it was. What cannot is not thrown away.
void RemoveFile(int directory, const SpillSegment& segment) {
  if (!segment.damaged) {
    ::unlinkat(directory, segment.name.c_str(), 0);
    return;
  }
  const std::string aside = segment.name + std::string(kDamagedSuffix);
  (void)::renameat(directory, segment.name.c_str(), directory, aside.c_str());
}

class SpillBacklog final : public Backlog {
 public:
  SpillBacklog(std::shared_ptr<const SpillDirectory> directory,
               std::string preamble, const format::Serial& serial,
               uint64_t limit)
      : directory_(std::move(directory)),
        preamble_(std::move(preamble)),
        serial_(serial),
        segment_bytes_(std::max(limit / 8, kMinSegmentBytes)) {}
  ~SpillBacklog() override {
    if (current_ != nullptr && current_->frames == 0) Remove(*current_);
  }

  Status Append(ByteSpan header, ByteSpan payload,
                const BlockInfo& info) override {
    const uint64_t bytes = header.size() + payload.size();
    if (current_ == nullptr || current_->size + bytes > segment_bytes_) {
      if (current_ != nullptr && current_->frames == 0) {
        Remove(*current_);
        current_.reset();
      }
      if (Status s = NewSegment(); !s.ok()) return s;
    }
    const int error =
        WriteAll(current_->fd.get(), {header, payload}, current_->size);
    if (error != 0) {
      // What was written of it goes, so that the file ends well.
      (void)!::ftruncate(current_->fd.get(),
                         static_cast<off_t>(current_->size));
      return Status::System(error, "spill directory '" + directory_->path() +
                                       "': free some space");
    }
    Adopt(current_, bytes, info);
    return Status::Ok();
  }
  uint64_t bytes() const override { return bytes_; }
  bool persistent() const override { return true; }

  // A frame that `segment` holds at its end.
  void Adopt(const std::shared_ptr<SpillSegment>& segment, uint64_t bytes,
             const BlockInfo& info) {
    Frame frame{.bytes = bytes, .info = info};
    frame.segment = segment;
    frame.offset = segment->size;
    segment->size += bytes;
    ++segment->frames;
    bytes_ += bytes;
    frames_.push_back(std::move(frame));
  }
  void AddSize(uint64_t bytes) { bytes_ += bytes; }

 protected:
  void Forget(const Frame& frame) override {
    if (--frame.segment->frames == 0 && frame.segment != current_) {
      Remove(*frame.segment);
    }
  }

  void Shrink() override {
    // All was delivered: what the kernel has not put on the disk yet, it need
    // not.
    if (current_ == nullptr || current_->frames != 0 ||
        current_->size == preamble_.size()) {
      return;
    }
    if (::ftruncate(current_->fd.get(), static_cast<off_t>(preamble_.size())) ==
        0) {
      bytes_ -= current_->size - preamble_.size();
      current_->size = preamble_.size();
    }
  }

 private:
  Status NewSegment() {
    char number[24];
    std::snprintf(number, sizeof number, ".%08llu",
                  static_cast<unsigned long long>(++segments_));
    auto segment = std::make_shared<SpillSegment>();
    segment->name = format::SerialText(serial_) + number;
    segment->name += kSuffix;
    const std::string what = "spill directory '" + directory_->path() + "'";
    segment->fd.Reset(
        ::openat(directory_->fd(), segment->name.c_str(),
                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!segment->fd) return Status::System(errno, what);
    ::flock(segment->fd.get(), LOCK_EX | LOCK_NB);
    const int error = WriteAll(segment->fd.get(), {AsBytes(preamble_), {}}, 0);
    if (error != 0) {
      ::unlinkat(directory_->fd(), segment->name.c_str(), 0);
      return Status::System(error, what + ": free some space");
    }
    segment->size = preamble_.size();
    bytes_ += segment->size;
    current_ = std::move(segment);
    return Status::Ok();
  }

  void Remove(const SpillSegment& segment) {
    RemoveFile(directory_->fd(), segment);
    bytes_ -= segment.size;
  }

  const std::shared_ptr<const SpillDirectory> directory_;
  const std::string preamble_;
  const format::Serial serial_;
  const uint64_t segment_bytes_;
  std::shared_ptr<SpillSegment> current_;  // null: the next frame makes one
  uint64_t segments_ = 0;
  uint64_t bytes_ = 0;  // of all files
};

// --- What a process that is gone left.

bool IsSpillName(std::string_view name) {
  return name.size() > kSerialDigits + kSuffix.size() &&
         name.substr(name.size() - kSuffix.size()) == kSuffix &&
         IsMadeOf(name.substr(0, kSerialDigits), kHexDigits);
}

// Names by serial; those of one trace in order.
std::map<std::string, std::vector<std::string>> SpillFiles(int directory) {
  std::map<std::string, std::vector<std::string>> files;
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return files;
  DIR* const list = ::fdopendir(copy);
  if (list == nullptr) {
    ::close(copy);
    return files;
  }
  size_t count = 0;
  while (const dirent* entry = ::readdir(list)) {
    const std::string name = entry->d_name;
    if (!IsSpillName(name) || ++count > kMaxLeftoverFiles) continue;
    files[name.substr(0, kSerialDigits)].push_back(name);
  }
  ::closedir(list);
  for (auto& [serial, names] : files) std::sort(names.begin(), names.end());
  return files;
}

// Opens a file that nobody else uses and checks its preamble.
std::shared_ptr<SpillSegment> OpenLeft(int directory, const std::string& name,
                                       SpillDirectory::Leftover* trace) {
  auto segment = std::make_shared<SpillSegment>();
  segment->name = name;
  segment->fd.Reset(::openat(directory, name.c_str(),
                             O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  // The directory is ours alone now; it need not always have been.
  if (!segment->fd ||
      !CheckOwnership(segment->fd.get(), {.one_name = true}, name).ok() ||
      ::flock(segment->fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return nullptr;
  }
  std::string preamble(12, '\0');
  const auto room = [&] {
    return std::span(reinterpret_cast<std::byte*>(preamble.data()),
                     preamble.size());
  };
  if (!ReadAllAt(segment->fd.get(), room(), 0)) return nullptr;
  const Result<size_t> length = format::PreambleLength(AsBytes(preamble));
  if (!length.ok()) return nullptr;
  preamble.resize(*length);
  if (!ReadAllAt(segment->fd.get(), room(), 0)) return nullptr;
  const Result<format::Preamble> decoded =
      format::DecodePreamble(AsBytes(preamble));
  if (!decoded.ok() ||
      format::SerialText(decoded->serial) != name.substr(0, kSerialDigits)) {
    return nullptr;
  }
  trace->serial = decoded->serial;
  trace->preamble = preamble;
  segment->size = preamble.size();
  return segment;
}

// Takes up the whole frames of a file; what was cut off at its end is no
// damage.
void TakeFrames(const std::shared_ptr<SpillSegment>& segment,
                const format::Serial& serial, SpillBacklog* backlog) {
  struct stat st;
  if (::fstat(segment->fd.get(), &st) != 0) return;
  const uint64_t next =
      backlog->empty() ? 0
                       : backlog->frame(backlog->size() - 1).info.sequence + 1;
  using Step = format::FrameScan::Step;
  format::FrameScan scan(segment->fd.get(), segment->size,
                         static_cast<uint64_t>(st.st_size), serial, next);
  for (;;) {
    const uint64_t begin = scan.at();
    const auto step = scan.Next(/*check_payload=*/true);
    if (!step.ok()) {
      segment->damaged = true;
      return;
    }
    if (*step == Step::kFrame) {
      backlog->AddSize(begin - segment->size);  // what was left out
      segment->size = begin;
      backlog->Adopt(segment, scan.at() - begin, {.sequence = scan.next() - 1});
      continue;
    }
    const auto more = scan.Skip();
    const bool goes_on = more.ok() && *more;
    segment->damaged |= *step == Step::kDamaged || goes_on || !more.ok();
    if (!goes_on) return;
  }
}

}  // namespace

Result<std::shared_ptr<const SpillDirectory>> SpillDirectory::Open(
    const std::string& path, UniqueFd given) {
  auto directory = std::make_shared<SpillDirectory>();
  const std::string what = "spill directory '" + path + "'";
  directory->path_ = path;
  directory->fd_ = std::move(given);
  const bool opened_here = !directory->fd_;
  if (opened_here) {
    directory->fd_.Reset(
        ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (!directory->fd_) {
    return Status::System(
        errno, what + (errno == ENOENT ? " (make it first, mode 0700)" : ""));
  }
  if (Status s = CheckOwnership(directory->fd(), {.type = S_IFDIR}, what);
      !s.ok()) {
    return s;
  }
  if (opened_here) {
    directory->fd_ = EncloseFolder(std::move(directory->fd_));
  }
  return std::shared_ptr<const SpillDirectory>(std::move(directory));
}

std::vector<SpillDirectory::Leftover> SpillDirectory::TakeLeftovers() const {
  std::vector<Leftover> all;
  for (const auto& [serial, names] : SpillFiles(fd_.get())) {
    Leftover trace;
    std::unique_ptr<SpillBacklog> backlog;
    for (const std::string& name : names) {
      const auto segment = OpenLeft(fd_.get(), name, &trace);
      if (segment == nullptr) continue;
      if (backlog == nullptr) {
        auto self = std::make_shared<SpillDirectory>();
        self->path_ = path_;
        self->fd_.Reset(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
        backlog = std::make_unique<SpillBacklog>(
            std::move(self), trace.preamble, trace.serial, /*limit=*/0);
      }
      backlog->AddSize(segment->size);
      TakeFrames(segment, trace.serial, backlog.get());
      if (segment->damaged) {
        Notify(NoticeId::kOutputFailed,
               "'" + name + "' in spill directory '" + path_ +
                   "' is damaged: " + std::to_string(segment->frames) +
                   " blocks of it are sent, and it stays as '" + name +
                   std::string(kDamagedSuffix) + "'");
      }
      // Nothing in it was still to be sent.
      if (segment->frames == 0) RemoveFile(fd_.get(), *segment);
    }
    if (backlog == nullptr || backlog->empty()) continue;
    trace.backlog = std::move(backlog);
    all.push_back(std::move(trace));
  }
  return all;
}

std::unique_ptr<Backlog> MakeSpillBacklog(
    std::shared_ptr<const SpillDirectory> directory,
    const std::string& preamble, const format::Serial& serial, uint64_t limit) {
  return std::make_unique<SpillBacklog>(std::move(directory), preamble, serial,
                                        limit);
}

}  // namespace tracefs
