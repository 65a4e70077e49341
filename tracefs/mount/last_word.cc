#include "tracefs/mount/last_word.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "tracefs/base/date_text.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/writer_lock.h"

namespace tracefs {
namespace {

constexpr size_t kMaxBytes = 4096;

// One file for each place: FNV-1a of its path.
std::string NameOf(const std::string& mount_point) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : mount_point) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "last-%016llx",
                static_cast<unsigned long long>(hash));
  return name.data();
}

std::string Now() { return UtcText(::time(nullptr), "%Y-%m-%d %H:%M:%SZ"); }

}  // namespace

std::unique_ptr<LastWord> LastWord::Open(const ControlFolder& folder,
                                         const std::string& mount_point) {
  std::unique_ptr<LastWord> word(new LastWord);
  word->name_ = NameOf(mount_point);
  word->file_.Reset(::openat(folder.fd.get(), word->name_.c_str(),
                             O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const int file = word->file_.get();
  // It belongs to a mount that this one lies upon.
  if (file < 0 || WriterLives(file) || !LockAsWriter(file)) return nullptr;
  std::string text(kMaxBytes, '\0');
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  word->before_ = OneLine(text);
  word->folder_ =
      EncloseFolder(UniqueFd(::fcntl(folder.fd.get(), F_DUPFD_CLOEXEC, 0)));
  // Unless this mount comes to serve, the word stays.
  word->keep_ = !word->before_.empty();
  return word;
}

std::unique_ptr<LastWord> LastWord::Adopt(UniqueFd folder, UniqueFd file,
                                          const std::string& mount_point) {
  std::unique_ptr<LastWord> word(new LastWord);
  word->name_ = NameOf(mount_point);
  word->folder_ = std::move(folder);
  word->file_ = std::move(file);
  word->keep_ = true;
  return word;
}

LastWord::~LastWord() { Remove(); }

void LastWord::Remove() {
  struct stat there, own;
  if (!keep_ && folder_ && ::fstat(file_.get(), &own) == 0 &&
      ::fstatat(folder_.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) ==
          0 &&
      there.st_ino == own.st_ino && there.st_dev == own.st_dev) {
    ::unlinkat(folder_.get(), name_.c_str(), 0);
  }
}

void LastWord::Put(const std::string& text) {
  const std::string some = text.substr(0, kMaxBytes);
  keep_ = ::ftruncate(file_.get(), 0) == 0 &&
          ::pwrite(file_.get(), some.data(), some.size(), 0) ==
              static_cast<ssize_t>(some.size());
}

void LastWord::Begin() {
  Put("it began " + Now() +
      " and ended without a word: it was killed, or died; its traces lack "
      "their end");
}

void LastWord::End(const std::string& losses) {
  if (losses.empty()) {
    keep_ = false;
    Remove();
  } else {
    Put("it ended " + Now() + ", and not all is in its traces: " + losses);
  }
}

}  // namespace tracefs
