// A directory of its own for each test, gone afterwards, mounts in it too.
#pragma once

#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tracefs {

class ScratchDir {
 public:
  ScratchDir() {
    std::string name = "/tmp/tracefs-mount-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchDir() {
    for (const std::string& point : mounts_) {
      ::umount2(point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + '/' + name; }
  std::string Folder(const std::string& name) const {
    ::mkdir(Path(name).c_str(), 0755);
    return Path(name);
  }
  // A tmpfs at a new folder; false if this machine does not let us mount.
  bool MountTmpfs(const std::string& name) {
    mounts_.push_back(Folder(name));
    return ::mount("tmpfs", mounts_.back().c_str(), "tmpfs", 0, "size=64k") ==
           0;
  }

 private:
  std::string path_;
  std::vector<std::string> mounts_;
};

}  // namespace tracefs
