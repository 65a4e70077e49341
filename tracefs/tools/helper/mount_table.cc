#include "tracefs/tools/helper/mount_table.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr char kUtab[] = "/run/mount/utab";
constexpr char kUtabLock[] = "/run/mount/utab.lock";
constexpr char kNote[] = " ROOT=/ OPTS=helper=fuse.tracefs";
constexpr size_t kMaxUtab = size_t{16} << 20;

// As libmount writes names: blanks and backslashes as \ooo.
std::string Mangled(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\\') {
      std::array<char, 8> octal;
      std::snprintf(octal.data(), octal.size(), "\\%03o",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      text += octal.data();
    } else {
      text += c;
    }
  }
  return text;
}

// All lines but those of ours for this place, then `more`; under libmount's
// lock, replaced as a whole, as it does.
void Rewrite(const std::string& mount_point, const std::string& more) {
  if (::geteuid() != 0) return;
  struct stat st;
  if (::stat("/run/mount", &st) != 0 &&
      (more.empty() || ::mkdir("/run/mount", 0755) != 0)) {
    return;
  }
  const UniqueFd lock(
      ::open(kUtabLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return;
  std::string kept;
  bool changed = !more.empty();
  {
    const UniqueFd there(::open(kUtab, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (there) {
      const Result<std::string> text = ReadText(there.get(), kMaxUtab, kUtab);
      if (!text.ok()) return;
      std::istringstream lines(*text);
      const std::string target = " TARGET=" + Mangled(mount_point) + " ";
      for (std::string line; std::getline(lines, line);) {
        if (line.find(target) != line.npos &&
            line.find(kNote + 1) != line.npos) {
          changed = true;
        } else {
          kept += line + '\n';
        }
      }
    }
  }
  if (!changed) return;
  kept += more;
  std::string fresh = std::string(kUtab) + ".XXXXXX";
  const UniqueFd out(::mkostemp(fresh.data(), O_CLOEXEC));
  if (!out) return;
  if (!WriteAll(out.get(), AsBytes(kept), kUtab).ok() ||
      ::fchmod(out.get(), 0644) != 0 || ::rename(fresh.c_str(), kUtab) != 0) {
    ::unlink(fresh.c_str());
  }
}

}  // namespace

void NoteHelper(const std::string& source, const std::string& mount_point) {
  Rewrite(mount_point, "SRC=" + Mangled(source) +
                           " TARGET=" + Mangled(mount_point) + kNote + "\n");
}

void ForgetHelper(const std::string& mount_point) { Rewrite(mount_point, ""); }

Status SetReadOnly(const std::string& mount_point, bool read_only) {
  const UniqueFd fs(
      static_cast<int>(::syscall(SYS_fspick, AT_FDCWD, mount_point.c_str(),
                                 FSPICK_CLOEXEC | FSPICK_NO_AUTOMOUNT)));
  if (!fs) return Status::System(errno, "'" + mount_point + "'");
  if (::syscall(SYS_fsconfig, fs.get(), FSCONFIG_SET_FLAG,
                read_only ? "ro" : "rw", nullptr, 0) != 0 ||
      ::syscall(SYS_fsconfig, fs.get(), FSCONFIG_CMD_RECONFIGURE, nullptr,
                nullptr, 0) != 0) {
    return Status::System(errno, "'" + mount_point + "' " +
                                     (read_only ? "read-only" : "writable"));
  }
  return Status::Ok();
}

}  // namespace tracefs
