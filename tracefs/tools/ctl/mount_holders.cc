#include "tracefs/tools/ctl/mount_holders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "tracefs/base/join.h"
#include "tracefs/base/mount_table.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

constexpr size_t kMostNamed = 5;

// The names in a folder of /proc that are numbers.
std::vector<std::string> NumbersIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code gone;  // it may end meanwhile, or be another user's
  for (std::filesystem::directory_iterator at(folder, gone), end;
       !gone && at != end; at.increment(gone)) {
    std::string name = at->path().filename();
    if (name[0] >= '0' && name[0] <= '9') names.push_back(std::move(name));
  }
  return names;
}

std::string LinkText(const std::string& link) {
  std::array<char, PATH_MAX> text;
  const ssize_t n = ::readlink(link.c_str(), text.data(), text.size());
  return n <= 0 ? "" : std::string(text.data(), static_cast<size_t>(n));
}

std::string Quoted(const std::string& path) {
  return "'" + TerminalText(path) + "'";
}

// Looks at processes for what they have of one mount.
class Holders {
 public:
  // `inodes`: of files that alone count; null: all of the mount does.
  explicit Holders(const MountIdentity& mount,
                   const std::set<uint64_t>* inodes = nullptr)
      : mount_(mount),
        inodes_(inodes),
        own_namespace_(LinkText("/proc/self/ns/mnt")),
        device_(std::to_string(mount.major) + ':' +
                std::to_string(mount.minor)) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%02x:%02x", mount.major,
                  mount.minor);
    mapped_device_ = text.data();
  }

  std::string Text() {
    for (const std::string& pid : NumbersIn("/proc")) {
      if (pid == std::to_string(::getpid())) continue;
      const std::string what = WhatHas("/proc/" + pid);
      if (what.empty()) continue;
      if (IsOthers("/proc/" + pid)) return "";
      if (++found_ > kMostNamed) continue;
      AppendWord("process " + pid + " (" + NameOf(pid) + ") has " + what, "; ",
                 &text_);
    }
    if (found_ > kMostNamed) {
      text_ += "; " + std::to_string(found_ - kMostNamed) + " more processes";
    }
    return text_;
  }

 private:
  static std::string NameOf(const std::string& pid) {
    std::ifstream in("/proc/" + pid + "/comm");
    std::string name;
    std::getline(in, name);
    return TerminalText(name);
  }

  // Whether the number is that of another file system by now, as the process
  // sees it: then the mount is gone, and nobody has anything of it.
  bool IsOthers(const std::string& process) const {
    for (const MountLine& line : MountTable(process + "/mountinfo")) {
      if (line.device == device_ && line.type.substr(0, 4) != "fuse") {
        return true;
      }
    }
    return false;
  }

  // Asked for nothing, the kernel says which device a file is on without a word
  // to its file system.
  bool LiesInMount(const std::string& link) const {
    struct statx st;
    return ::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC,
                   inodes_ != nullptr ? STATX_INO : 0, &st) == 0 &&
           st.stx_dev_major == mount_.major &&
           st.stx_dev_minor == mount_.minor && Counts(st.stx_ino);
  }

  bool Counts(uint64_t inode) const {
    return inodes_ == nullptr || inodes_->contains(inode);
  }

  std::string WhatHas(const std::string& process) {
    std::string what;
    const auto add = [&what](const std::string& one) {
      AppendWord(one, ", ", &what);
    };
    size_t files = 0;
    std::string example;
    for (const std::string& fd : NumbersIn(process + "/fd")) {
      const std::string link = process + "/fd/" + fd;
      if (!LiesInMount(link)) continue;
      if (++files == 1) example = LinkText(link);
    }
    if (files == 1) add("an open file, " + Quoted(example));
    if (files > 1) {
      add(std::to_string(files) + " open files, such as " + Quoted(example));
    }
    if (files == 0 && MapsIt(process)) add("a file of it mapped");
    if (inodes_ != nullptr) return what;
    if (LiesInMount(process + "/cwd")) add("its working directory in it");
    if (LiesInMount(process + "/root")) add("its root directory in it");
    if (LiesInMount(process + "/exe")) add("its program in it");
    if (std::string copy = CopyIn(process); !copy.empty()) add(copy);
    return what;
  }

  // proc_pid_maps(5): range rights offset device inode path.
  bool MapsIt(const std::string& process) const {
    std::ifstream in(process + "/maps");
    for (std::string line; std::getline(in, line);) {
      std::istringstream fields(line);
      std::string range, rights, offset, device;
      uint64_t inode = 0;
      fields >> range >> rights >> offset >> device >> inode;
      if (device == mapped_device_ && Counts(inode)) return true;
    }
    return false;
  }

  // Where the mount is in the mount namespace of a process, which is told of
  // the first one that is in it.
  std::string CopyIn(const std::string& process) {
    const std::string space = LinkText(process + "/ns/mnt");
    if (space.empty() || space == own_namespace_) return "";
    if (!namespaces_.insert(space).second) return "";
    for (const MountLine& line : MountTable(process + "/mountinfo")) {
      if (line.device != device_) continue;
      return "the mount at " + Quoted(line.point) + " in its mount namespace";
    }
    return "";
  }

  const MountIdentity mount_;
  const std::set<uint64_t>* const inodes_;
  const std::string own_namespace_;
  const std::string device_;
  std::string mapped_device_;
  std::set<std::string> namespaces_;  // looked at
  size_t found_ = 0;
  std::string text_;
};

}  // namespace

std::string HoldersText(const MountIdentity& mount) {
  return Holders(mount).Text();
}

std::string FileUsersText(const MountIdentity& mount,
                          const std::set<uint64_t>& inodes) {
  return inodes.empty() ? "" : Holders(mount, &inodes).Text();
}

bool IsStillServed(const MountIdentity& mount) {
  // In the file system fusectl: a folder for each connection, named after its
  // minor number.
  const std::string folder =
      "/sys/fs/fuse/connections/" + std::to_string(mount.minor);
  return mount.major == 0 && ::access(folder.c_str(), F_OK) == 0;
}

}  // namespace tracefs
