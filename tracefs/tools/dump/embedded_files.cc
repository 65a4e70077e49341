#include "tracefs/tools/dump/embedded_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tracefs/base/file_io.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

using format::EmbeddedFile;

constexpr size_t kMostProblems = 100;
constexpr size_t kMostListing = size_t{64} << 20;
constexpr size_t kDeepestFolder = 256;
constexpr size_t kLongestPath = 4096;

// The names of a path below a folder; none where it would lead out of it, or
// has another spelling than the kernel's.
std::vector<std::string> NamesOf(std::string_view path) {
  std::vector<std::string> names;
  if (path.size() > kLongestPath || !path.starts_with('/') ||
      path.find('\0') != path.npos) {
    return {};
  }
  for (std::string_view rest = path.substr(1);;) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name.empty() || name == "." || name == "..") return {};
    names.emplace_back(name);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return names.size() > kDeepestFolder ? std::vector<std::string>() : names;
}

bool HashIs(ByteSpan content, ByteSpan hash) {
  Sha256 sum;
  sum.Update(content);
  const Digest digest = sum.Finish();
  return std::ranges::equal(digest, hash);
}

}  // namespace

Status EmbeddedFiles::Begin() {
  if (folder_.empty()) return {};
  base_.Reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return base_ ? Status::Ok() : Status::System(errno, TerminalWord(folder_));
}

void EmbeddedFiles::Problem(std::string_view path, const std::string& what) {
  if (problems_.size() < kMostProblems) {
    problems_.push_back(TerminalText(std::string(path)) + ": " + what);
  } else if (problems_.size() == kMostProblems) {
    problems_.emplace_back("and more of that kind");
  }
}

void EmbeddedFiles::List(const EmbeddedFile& file) {
  if (listing_.size() > kMostListing) return;
  std::string line;
  if (!file.left_out.empty()) {
    line = "left out, " + TerminalText(std::string(file.left_out));
  } else {
    line = std::to_string(file.size) + " bytes";
    if (file.sure == EmbeddedFile::Sure::kByTime) {
      line += ", attributes changed since";
    }
  }
  listing_ += line + ": " +
              (file.path.empty() ? std::to_string(file.count) + " more"
                                 : TerminalText(std::string(file.path))) +
              "\n";
}

// Each directory is opened by its own name: what is in the way, a link too, is
// an error.
Result<UniqueFd> EmbeddedFiles::Create(std::string_view path, uint32_t mode) {
  const std::vector<std::string> names = NamesOf(path);
  if (names.empty()) return Status::Corrupt("no path of a file: left out");
  UniqueFd at(::fcntl(base_.get(), F_DUPFD_CLOEXEC, 0));
  for (size_t i = 0; at && i + 1 < names.size(); ++i) {
    if (::mkdirat(at.get(), names[i].c_str(), 0777) != 0 && errno != EEXIST) {
      return Status::System(errno, "its folder");
    }
    at.Reset(::openat(at.get(), names[i].c_str(),
                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!at) return Status::System(errno, "its folder");
  // No more than it had.
  const mode_t rights = (mode & 0777) | S_IRUSR | S_IWUSR;
  UniqueFd file(::openat(at.get(), names.back().c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         rights));
  if (!file) return Status::System(errno, "it cannot be made");
  return file;
}

Status EmbeddedFiles::Put(std::string_view path, uint32_t mode,
                          ByteSpan content) {
  if (files_ >= kMostFiles || content.size() > kMostBytes - bytes_) {
    return Status::Corrupt("left out: the trace embeds too much");
  }
  const Result<UniqueFd> file = Create(path, mode);
  if (!file.ok()) return file.status();
  if (Status s = WriteAll(file->get(), content, "it"); !s.ok()) return s;
  ++files_;
  bytes_ += content.size();
  return {};
}

void EmbeddedFiles::Take(const EmbeddedFile& file) {
  List(file);
  if (!file.left_out.empty()) return;
  if (folder_.empty()) {
    ++files_;
    return;
  }
  const std::string hash(AsText(file.hash));
  if (!file.has_content) {
    if (same_.size() < kMostFiles) {
      same_.push_back({hash, std::string(file.path), file.mode});
    }
    return;
  }
  if (!HashIs(file.content, file.hash)) {
    return Problem(file.path, "its contents are not what was read: left out");
  }
  if (Status s = Put(file.path, file.mode, file.content); !s.ok()) {
    return Problem(file.path, s.message());
  }
  written_.emplace(hash, file.path);
}

void EmbeddedFiles::Finish() {
  for (const Same& same : same_) {
    const auto other = written_.find(same.hash);
    if (other == written_.end()) {
      Problem(same.path, "its contents are not in the trace");
      continue;
    }
    const UniqueFd from(::openat(base_.get(), other->second.c_str() + 1,
                                 O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    Result<std::string> text =
        ReadText(from.get(), EmbeddedFile::kMostBytes, other->second);
    const Status status =
        text.ok() ? Put(same.path, same.mode, AsBytes(*text)) : text.status();
    if (!status.ok()) Problem(same.path, status.message());
  }
}

}  // namespace tracefs
