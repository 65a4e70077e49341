#include "tracefs/export/spool.h"

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

void Spool::Spill() {
  if (memory_.empty()) return;
  if (status_.ok() && !file_) {
    Result<UniqueFd> file = OpenNameless();
    if (file.ok()) {
      file_ = *std::move(file);
    } else {
      status_ = file.status();
    }
  }
  if (status_.ok()) {
    status_ =
        WriteAllAt(file_.get(), AsBytes(memory_), spilled_, "a temporary file");
  }
  spilled_ += memory_.size();
  memory_.clear();
}

Status Spool::Read(const std::function<void(std::string_view)>& use) {
  if (!status_.ok()) return status_;
  std::vector<std::byte> piece(std::min<uint64_t>(spilled_, kReadBytes));
  for (uint64_t at = 0; at < spilled_; at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), spilled_ - at));
    if (!ReadAllAt(file_.get(), piece, at)) {
      return status_ = Status::System(EIO, "a temporary file");
    }
    use(AsText(piece));
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
