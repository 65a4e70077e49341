#include "tracefs/base/ownership.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tracefs/base/choice.h"

namespace tracefs {
namespace {

std::string TypeName(mode_t type) {
  static constexpr Choice<mode_t> kNames[] = {
      {"a regular file", S_IFREG},  {"a directory", S_IFDIR},
      {"a FIFO", S_IFIFO},          {"a socket", S_IFSOCK},
      {"a symbolic link", S_IFLNK}, {"a device", S_IFCHR},
      {"a device", S_IFBLK}};
  return std::string(WordOf(kNames, type, "a file of that kind"));
}

std::string Octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode));
  return text;
}

}  // namespace

Status CheckOwnership(int fd, const Ownership& wanted,
                      const std::string& what) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return Status::System(errno, what);
  if ((st.st_mode & S_IFMT) != wanted.type) {
    return Status::Invalid(what + " is " + TypeName(st.st_mode & S_IFMT) +
                           ", not " + TypeName(wanted.type) +
                           "; remove it or choose another name");
  }
  const uid_t owner = wanted.owner.value_or(::geteuid());
  if (st.st_uid != owner && st.st_uid != 0) {
    return Status::Invalid(what + " belongs to user " +
                           std::to_string(st.st_uid) + ", not to user " +
                           std::to_string(owner) +
                           "; remove it, chown it or choose another name");
  }
  if ((st.st_mode & wanted.forbidden) != 0) {
    const mode_t mode = st.st_mode & 07777;
    return Status::Invalid(
        what + " can be " +
        ((st.st_mode & wanted.forbidden & 022) != 0 ? "written" : "read") +
        " by others (mode " + Octal(mode) + "); run chmod " +
        (S_ISDIR(st.st_mode) ? "700" : "600") + ", and look who has used it");
  }
  if (wanted.one_name && st.st_nlink > 1) {
    return Status::Invalid(what + " has " + std::to_string(st.st_nlink) +
                           " names (hard links); remove it or choose another "
                           "name");
  }
  return Status::Ok();
}

}  // namespace tracefs
