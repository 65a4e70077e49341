#include "filters/output/anchor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "tracefs/base/hex.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr int kPatienceMs = 20;
constexpr std::string_view kWord = "tracefs-anchor ";

class FileAnchors final : public AnchorSink {
 public:
  FileAnchors(UniqueFd fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)) {
    struct stat st;
    char last = 0;
    at_line_ =
        ::fstat(fd_.get(), &st) == 0 &&
        (st.st_size == 0 ||
         (::pread(fd_.get(), &last, 1, st.st_size - 1) == 1 && last == '\n'));
  }

  void Put(const Anchor& anchor) override {
    // A full disk or a loss of power may have left half a line.
    const std::string line = (at_line_ ? "" : "\n") + AnchorText(anchor) + '\n';
    ssize_t n;
    do {
      n = ::write(fd_.get(), line.data(), line.size());
    } while (n < 0 && errno == EINTR);
    at_line_ = n == static_cast<ssize_t>(line.size());
    if (at_line_ || reported_) return;
    reported_ = true;
    const Status status =
        Status::System(n < 0 ? errno : ENOSPC, "anchor file '" + path_ + "'");
    Notify(NoticeId::kAnchorMissing,
           status.message() + "; anchors are missing from now on");
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
  bool at_line_ = true;  // what is written next begins a line
  bool reported_ = false;
};

class SyslogAnchors final : public AnchorSink {
 public:
  explicit SyslogAnchors(UniqueFd fd) : fd_(std::move(fd)) {}

  void Put(const Anchor& anchor) override {
    const std::string line =
        SyslogLine(LOG_NOTICE, "tracefs", AnchorText(anchor));
    Status status = SendLog(fd_.get(), line);
    if (status.error() == EAGAIN) {
      // A moment for a busy log; not more, for this may be a user's thread.
      pollfd room = {.fd = fd_.get(), .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, kPatienceMs);
      status = SendLog(fd_.get(), line);
    }
    if (status.ok() || std::exchange(reported_, true)) return;
    Notify(NoticeId::kAnchorMissing,
           status.message() +
               ": an anchor for syslog is missing, and all that fail after it");
  }

 private:
  const UniqueFd fd_;
  bool reported_ = false;
};

// The word behind "name=" in `line`, which starts with it. Takes it off.
std::optional<std::string_view> Take(std::string_view& line,
                                     std::string_view name) {
  if (line.substr(0, name.size()) != name) return std::nullopt;
  line.remove_prefix(name.size());
  const size_t end = std::min(line.find_first_of(" \r\n"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

std::string AnchorText(const Anchor& anchor) {
  return std::string(kWord) + "serial=" + Hex(anchor.serial) +
         " block=" + std::to_string(anchor.block) +
         " last=" + (anchor.last ? "1" : "0") + " hash=" + Hex(anchor.hash);
}

std::optional<Anchor> ParseAnchor(std::string_view line) {
  const size_t start = line.find(kWord);
  if (start == line.npos) return std::nullopt;
  line.remove_prefix(start + kWord.size());
  Anchor anchor;
  const auto serial = Take(line, "serial=");
  const auto block = Take(line, "block=");
  const auto last = Take(line, "last=");
  const auto hash = Take(line, "hash=");
  if (!serial || !block || !last || !hash) return std::nullopt;
  const auto [end, error] = std::from_chars(
      block->data(), block->data() + block->size(), anchor.block);
  if (error != std::errc() || end != block->data() + block->size() ||
      !FromHex(*serial, anchor.serial) || !FromHex(*hash, anchor.hash)) {
    return std::nullopt;
  }
  anchor.last = *last == "1";
  return anchor;
}

namespace {

// One that may have been there before.
Status CheckAnchors(int fd, const std::string& path) {
  return CheckOwnership(fd, {.one_name = true}, "anchor file '" + path + "'");
}

// `make`: O_CREAT or 0.
Result<UniqueFd> OpenAnchors(const std::string& path, int make) {
  // Not to follow a link, not to hang on a FIFO.
  UniqueFd fd(::open(
      path.c_str(),
      O_RDWR | O_APPEND | make | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
      0600));
  if (!fd) {
    const int error = errno;
    return Status::System(
        error, "anchor file '" + path + "'" +
                   (error == ELOOP ? " (it must not be a link)" : ""));
  }
  if (Status s = CheckAnchors(fd.get(), path); !s.ok()) return s;
  return fd;
}

}  // namespace

Result<std::unique_ptr<AnchorSink>> MakeFileAnchors(const std::string& path,
                                                    UniqueFd given) {
  if (!given) {
    Result<UniqueFd> fd = OpenAnchors(path, O_CREAT);
    if (!fd.ok()) return fd.status();
    given = *std::move(fd);
  } else if (Status s = CheckAnchors(given.get(), path); !s.ok()) {
    return s;
  }
  return std::unique_ptr<AnchorSink>(
      std::make_unique<FileAnchors>(std::move(given), path));
}

Status ProbeFileAnchors(const std::string& path) {
  const Status there = OpenAnchors(path, 0).status();
  if (there.error() != ENOENT) return there;
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == path.npos ? "." : path.substr(0, slash + 1);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
    return Status::Ok();
  }
  return Status::System(errno, "anchor file '" + path + "'");
}

Result<std::unique_ptr<AnchorSink>> MakeSyslogAnchors(UniqueFd given) {
  if (!given) {
    Result<UniqueFd> fd = ConnectLog(kSyslogSocket);
    if (!fd.ok()) return fd.status();
    given = *std::move(fd);
  }
  return std::unique_ptr<AnchorSink>(
      std::make_unique<SyslogAnchors>(std::move(given)));
}

}  // namespace tracefs
