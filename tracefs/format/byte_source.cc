#include "tracefs/format/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tracefs/base/writer_lock.h"
#include "tracefs/format/flight_map.h"

namespace tracefs::format {
namespace {

// A folder that is read while files are made and removed in it may show none
// of those that follow each other.
constexpr unsigned kMostLooks = 4;

// Text of its own.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string text)
      : text_(std::move(text)), bytes_(AsBytes(text_)) {}
  Result<size_t> Read(std::span<std::byte> out) override {
    return bytes_.Read(out);
  }
  std::optional<uint64_t> Size() override { return bytes_.Size(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) override {
    return bytes_.ReadAt(offset, out);
  }
  Status Seek(uint64_t offset) override { return bytes_.Seek(offset); }

 private:
  const std::string text_;
  MemorySource bytes_;
};

bool IsFlightMap(int fd, const struct stat& st) {
  char magic[kFlightMagic.size()];
  return S_ISREG(st.st_mode) &&
         ::pread(fd, magic, sizeof magic, 0) ==
             static_cast<ssize_t>(sizeof magic) &&
         std::string_view(magic, sizeof magic) == kFlightMagic;
}

}  // namespace

Result<size_t> ByteSource::ReadAt(uint64_t, std::span<std::byte>) {
  return Status::System(ESPIPE, "cannot read the trace elsewhere");
}

Status ByteSource::Seek(uint64_t) {
  return Status::System(ESPIPE, "cannot read the trace elsewhere");
}

FdSource::FdSource(UniqueFd fd, bool follow)
    : fd_(std::move(fd)), follow_(follow) {
  struct stat st;
  if (::fstat(fd_.get(), &st) != 0) return;
  regular_ = S_ISREG(st.st_mode);
  writer_lives_ =
      (regular_ || S_ISBLK(st.st_mode)) && tracefs::WriterLives(fd_.get());
  had_writer_ = writer_lives_;
  const off_t begin = regular_ ? ::lseek(fd_.get(), 0, SEEK_CUR) : 0;
  if (begin > 0) begin_ = static_cast<uint64_t>(begin);
}

std::optional<uint64_t> FdSource::Size() {
  struct stat st;
  if (!regular_ || ::fstat(fd_.get(), &st) != 0) return std::nullopt;
  const auto size = static_cast<uint64_t>(st.st_size);
  return size > begin_ ? size - begin_ : 0;
}

Result<size_t> FdSource::ReadAt(uint64_t offset, std::span<std::byte> out) {
  for (;;) {
    const ssize_t n = ::pread(fd_.get(), out.data(), out.size(),
                              static_cast<off_t>(begin_ + offset));
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return Status::System(errno, "cannot read the trace");
  }
}

Status FdSource::Seek(uint64_t offset) {
  if (::lseek(fd_.get(), static_cast<off_t>(begin_ + offset), SEEK_SET) < 0) {
    return Status::System(errno, "cannot read the trace elsewhere");
  }
  read_bytes_ = begin_ + offset;
  at_end_ = false;
  return Status::Ok();
}

Result<size_t> FdSource::Read(std::span<std::byte> out) {
  if (follow_ && !regular_) {
    pollfd ready = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 0) <= 0) return size_t{0};
  }
  for (;;) {
    const ssize_t n = ::read(fd_.get(), out.data(), out.size());
    if (n >= 0) {
      read_bytes_ += static_cast<uint64_t>(n);
      at_end_ = n == 0;
      if (at_end_ && writer_lives_) {
        writer_lives_ = tracefs::WriterLives(fd_.get());
        // It has ended meanwhile, and may have written more before it did.
        if (!writer_lives_) continue;
      }
      if (n == 0) pipe_ended_ = true;
      return static_cast<size_t>(n);
    }
    if (errno != EINTR) return Status::System(errno, "cannot read the trace");
  }
}

bool FdSource::MayGrow() {
  if (!regular_) return !pipe_ended_;
  // Whose writer was seen and is gone.
  if (had_writer_ && !writer_lives_) return false;
  struct stat st;
  return ::fstat(fd_.get(), &st) == 0 &&
         static_cast<uint64_t>(st.st_size) >= read_bytes_;
}

bool FdSource::WriterLives() {
  return writer_lives_ && (at_end_ || tracefs::WriterLives(fd_.get()));
}

Result<std::unique_ptr<ByteSource>> FdSource::Open(const std::string& path,
                                                   bool follow) {
  UniqueFd fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "cannot open the trace");
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, "cannot open the trace");
  }
  if (S_ISDIR(st.st_mode)) {
    return Status::System(EISDIR, "cannot read the trace");
  }
  if (path != "-" && IsFlightMap(fd.get(), st)) {
    Result<std::string> text =
        ReadFlightMap(fd.get(), static_cast<uint64_t>(st.st_size));
    if (!text.ok()) return text.status();
    return std::unique_ptr<ByteSource>(
        std::make_unique<TextSource>(*std::move(text)));
  }
  return std::unique_ptr<ByteSource>(
      std::make_unique<FdSource>(std::move(fd), follow));
}

Result<size_t> FileChain::Read(std::span<std::byte> out) {
  for (;;) {
    if (current_ != nullptr) {
      const Result<size_t> n = current_->Read(out);
      if (!n.ok() || *n != 0) return n;
    }
    const Result<bool> more = GoOn();
    if (!more.ok()) return more.status();
    if (!*more) return size_t{0};
  }
}

Result<bool> FileChain::GoOn() {
  if (next_ == paths_.size()) FindLater();
  while (next_ < paths_.size()) {
    const Status s = OpenFile(next_);
    if (s.ok()) return true;
    // Its writer may have removed it before its turn came.
    if (!part_ || later_ == nullptr || s.error() != ENOENT) return s;
    current_.reset();
    if (++next_ == paths_.size()) FindLater();
  }
  return false;
}

void FileChain::FindLater() {
  if (!AwaitsPart()) return;
  // While the writer holds a part it may come back to it.
  if (current_ != nullptr &&
      (part_->ended ? current_->WriterLives() : current_->MayGrow())) {
    return;
  }
  ++looks_;
  for (std::string& path :
       later_(paths_.back(), part_->serial, part_->number)) {
    if (std::ranges::find(paths_, path) != paths_.end()) continue;
    paths_.push_back(std::move(path));
    sizes_.clear();
    looks_ = 0;
  }
}

void FileChain::Marked(FrameKind kind, const Serial& serial,
                       const PartMark& mark) {
  part_ = {.serial = serial,
           .number = mark.part,
           .ended = kind == FrameKind::kPartEnd};
}

bool FileChain::AwaitsPart() {
  return follow_ && later_ != nullptr && part_ && looks_ < kMostLooks;
}

Status FileChain::OpenFile(size_t number) {
  const bool last = number + 1 == paths_.size();
  auto opened = FdSource::Open(paths_[number], follow_ && last);
  if (!opened.ok()) return opened.status().Prefixed(paths_[number]);
  next_ = number + 1;
  current_ = *std::move(opened);
  return Status::Ok();
}

std::optional<uint64_t> FileChain::Size() {
  sizes_.clear();
  std::vector<uint64_t> sizes;  // of all, or none is known
  for (const std::string& path : paths_) {
    struct stat st;
    if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) {
      return std::nullopt;
    }
    sizes.push_back(static_cast<uint64_t>(st.st_size));
  }
  sizes_ = std::move(sizes);
  return std::accumulate(sizes_.begin(), sizes_.end(), uint64_t{0});
}

FileChain::Place FileChain::PlaceOf(uint64_t offset) const {
  Place place = {0, offset};
  while (place.file + 1 < sizes_.size() && place.offset >= sizes_[place.file]) {
    place.offset -= sizes_[place.file++];
  }
  return place;
}

Result<size_t> FileChain::ReadAt(uint64_t offset, std::span<std::byte> out) {
  if (sizes_.empty() && !Size()) return ByteSource::ReadAt(offset, out);
  const Place place = PlaceOf(offset);
  if (other_ == nullptr || other_number_ != place.file) {
    auto opened = FdSource::Open(paths_[place.file], /*follow=*/false);
    if (!opened.ok()) return opened.status().Prefixed(paths_[place.file]);
    other_ = *std::move(opened);
    other_number_ = place.file;
  }
  return other_->ReadAt(place.offset, out);
}

Status FileChain::Seek(uint64_t offset) {
  if (sizes_.empty() && !Size()) return ByteSource::Seek(offset);
  const Place place = PlaceOf(offset);
  if (Status s = OpenFile(place.file); !s.ok()) return s;
  return current_->Seek(place.offset);
}

bool FileChain::MayGrow() {
  return (current_ != nullptr && current_->MayGrow()) || AwaitsPart();
}

bool FileChain::WriterLives() {
  return current_ != nullptr && current_->WriterLives();
}

}  // namespace tracefs::format
