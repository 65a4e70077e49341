#include "tracefs/text/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tracefs/base/file_io.h"

namespace tracefs {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
constexpr char kFileName[] = "a temporary file";

Result<UniqueFd> OpenNameless() {
  const char* const set = ::getenv("TMPDIR");
  const std::string folder = set != nullptr && *set != '\0' ? set : "/tmp";
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string name = folder + "/tracefs-XXXXXX";
    fd = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
    if (fd) ::unlink(name.c_str());
  }
  if (!fd) {
    return Status::System(errno, "a temporary file in " + folder +
                                     " (TMPDIR names another place)");
  }
  return fd;
}

}  // namespace

Result<uint64_t> SpoolFile::Append(std::string_view text) {
  if (!fd_) {
    Result<UniqueFd> made = OpenNameless();
    if (!made.ok()) return made.status();
    fd_ = *std::move(made);
  }
  const uint64_t at = size_;
  if (Status s = WriteAllAt(fd_.get(), AsBytes(text), at, kFileName); !s.ok()) {
    return s;
  }
  size_ += text.size();
  return at;
}

Status SpoolFile::ReadAt(std::span<std::byte> out, uint64_t offset) const {
  if (ReadAllAt(fd_.get(), out, offset)) return {};
  return Status::System(EIO, kFileName);
}

void Spool::Spill() {
  if (memory_.empty() || !status_.ok()) {
    memory_.clear();
    return;
  }
  if (file_ == nullptr) file_ = std::make_shared<SpoolFile>();
  const Result<uint64_t> at = file_->Append(memory_);
  if (!at.ok()) {
    status_ = at.status();
  } else if (!pieces_.empty() &&
             pieces_.back().offset + pieces_.back().size == *at) {
    pieces_.back().size += memory_.size();
  } else {
    pieces_.push_back({*at, memory_.size()});
  }
  memory_.clear();
}

Status Spool::Read(const std::function<void(std::string_view)>& use) {
  if (!status_.ok()) return status_;
  std::vector<std::byte> buffer;
  for (const Piece& piece : pieces_) {
    for (uint64_t done = 0; done < piece.size; done += buffer.size()) {
      buffer.resize(std::min<uint64_t>(kReadBytes, piece.size - done));
      status_ = file_->ReadAt(buffer, piece.offset + done);
      if (!status_.ok()) return status_;
      use(AsText(buffer));
    }
  }
  use(memory_);
  return {};
}

Status Spool::CopyTo(OutputBuffer* out) {
  return Read([out](std::string_view text) { out->Append(text); });
}

void EntrySpool::Append(std::string_view entry) {
  const auto size = static_cast<uint32_t>(entry.size());
  std::string head(sizeof size, '\0');
  ::memcpy(head.data(), &size, sizeof size);
  spool_.Append(head);
  spool_.Append(entry);
}

Status EntrySpool::ForEach(const std::function<void(std::string_view)>& use) {
  std::string kept;  // an entry that a piece ends within
  const auto size_of = [](std::string_view text) {
    uint32_t size;
    ::memcpy(&size, text.data(), sizeof size);
    return size;
  };
  return spool_.Read([&](std::string_view piece) {
    // Pieces are large, entries small: most are used where they are.
    std::string joined;
    if (!kept.empty()) {
      joined = std::move(kept) + std::string(piece);
      kept.clear();
      piece = joined;
    }
    while (piece.size() >= sizeof(uint32_t)) {
      const uint32_t size = size_of(piece);
      if (piece.size() - sizeof size < size) break;
      use(piece.substr(sizeof size, size));
      piece.remove_prefix(sizeof size + size);
    }
    kept = piece;
  });
}

}  // namespace tracefs
