// fault_fs SOURCE MNT RULES [-o OPTION,…]: passes everything through to SOURCE,
// but for what the file RULES asks for. Each line of it is
//
//   OPERATION NAMES delay MILLISECONDS
//   OPERATION NAMES hang
//   OPERATION NAMES error NUMBER [from BYTES]
//
// OPERATION: getattr (look-ups, too), open, create, read, write, opendir,
// readdir, mkdir, mknod, unlink, rmdir, rename, link, symlink, readlink,
// truncate, chmod, chown, utimens, fallocate, lseek, copy, flush, release,
// fsync, fsyncdir, statfs, setxattr, getxattr, listxattr, removexattr, or
// `any`. NAMES: a glob for the path below MNT, as in /dir/*. `from`: the error
// of a read, write or readdir meets what reaches BYTES (of a readdir: entries);
// a write is done up to there. The file may be replaced at any time; what hangs
// goes on when its line is gone.
//
// It stands for a slow disk, a full one, one that breaks, and a server that
// does not answer. Runs in the foreground until it is unmounted; nothing is
// kept by the kernel unless options say so.
#define FUSE_USE_VERSION TRACEFS_FUSE_USE_VERSION
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::string source;
std::string rules_path;

std::string Below(const char* path) { return source + path; }
int Result(long rc) { return rc < 0 ? -errno : 0; }

struct Fault {
  int error = 0;
  long from = 0;
};

struct Rule {
  std::string operation;
  std::string names;
  std::string what;
  long number = 0;  // milliseconds, or of the error
  long from = 0;
};
using Rules = std::vector<Rule>;

std::shared_ptr<const Rules> ReadRules() {
  auto rules = std::make_shared<Rules>();
  std::ifstream file(rules_path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string from;
    Rule rule;
    words >> rule.operation >> rule.names >> rule.what;
    words >> rule.number >> from >> rule.from;
    rules->push_back(rule);
  }
  return rules;
}

// As they are now. They are asked for with each operation and hardly ever
// change: what stands for a store that waits should not take processor time.
std::shared_ptr<const Rules> CurrentRules() {
  static std::mutex mu;
  static std::shared_ptr<const Rules> rules;  // guarded by mu, as `seen` is
  static struct stat seen;
  struct stat now {};
  ::stat(rules_path.c_str(), &now);
  const std::lock_guard lock(mu);
  if (rules == nullptr || now.st_ino != seen.st_ino ||
      now.st_mtim.tv_sec != seen.st_mtim.tv_sec ||
      now.st_mtim.tv_nsec != seen.st_mtim.tv_nsec) {
    seen = now;
    rules = ReadRules();
  }
  return rules;
}

// Waits as the rules say, and returns the error that they ask for.
Fault Meet(std::string_view operation, const char* path) {
  for (bool waited = false;; waited = true) {
    Fault fault;
    bool hangs = false;
    for (const Rule& rule : *CurrentRules()) {
      if (rule.operation != operation && rule.operation != "any") continue;
      if (::fnmatch(rule.names.c_str(), path, 0) != 0) continue;
      if (rule.what == "hang") hangs = true;
      if (rule.what == "error") {
        fault = {.error = static_cast<int>(rule.number), .from = rule.from};
      }
      if (rule.what == "delay" && !waited) {
        std::this_thread::sleep_for(std::chrono::milliseconds(rule.number));
      }
    }
    if (!hangs) return fault;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// For calls that do one thing with a path.
template <typename Call>
int Do(const char* operation, const char* path, Call&& call) {
  const Fault fault = Meet(operation, path);
  return fault.error != 0 ? -fault.error : Result(call(Below(path).c_str()));
}

int Getattr(const char* path, struct stat* st, fuse_file_info* fi) {
  return Do("getattr", path, [&](const char* p) {
    return fi != nullptr ? ::fstat(static_cast<int>(fi->fh), st)
                         : ::lstat(p, st);
  });
}

int Open(const char* path, fuse_file_info* fi) {
  return Do("open", path, [&](const char* p) {
    // What comes from the kernel lies anywhere, not where O_DIRECT wants it.
    const int fd = ::open(p, fi->flags & ~(O_APPEND | O_DIRECT));
    fi->fh = static_cast<uint64_t>(fd);
    fi->direct_io = 1;
    return fd;
  });
}

int Create(const char* path, mode_t mode, fuse_file_info* fi) {
  return Do("create", path, [&](const char* p) {
    const int fd =
        ::open(p, (fi->flags & ~(O_APPEND | O_DIRECT)) | O_CREAT, mode);
    fi->fh = static_cast<uint64_t>(fd);
    fi->direct_io = 1;
    return fd;
  });
}

int Read(const char* path, char* to, size_t size, off_t offset,
         fuse_file_info* fi) {
  const Fault fault = Meet("read", path);
  if (fault.error != 0 && offset + static_cast<off_t>(size) > fault.from) {
    return -fault.error;
  }
  const ssize_t n = ::pread(static_cast<int>(fi->fh), to, size, offset);
  return n < 0 ? -errno : static_cast<int>(n);
}

int Write(const char* path, const char* from, size_t size, off_t offset,
          fuse_file_info* fi) {
  const Fault fault = Meet("write", path);
  if (fault.error != 0) {
    const off_t room = std::max<off_t>(fault.from - offset, 0);
    if (room == 0) return -fault.error;
    size = std::min(size, static_cast<size_t>(room));
  }
  const ssize_t n = ::pwrite(static_cast<int>(fi->fh), from, size, offset);
  return n < 0 ? -errno : static_cast<int>(n);
}

// Entries are given out one by one with their offsets, so that the kernel asks
// again where an error has to come in the midst.
int Readdir(const char* path, void* buffer, fuse_fill_dir_t fill, off_t offset,
            fuse_file_info*, fuse_readdir_flags) {
  const Fault fault = Meet("readdir", path);
  DIR* const dir = ::opendir(Below(path).c_str());
  if (dir == nullptr) return -errno;
  off_t at = 0;
  int result = 0;
  while (const dirent* entry = ::readdir(dir)) {
    if (at++ < offset) continue;
    if (fault.error != 0 && at > fault.from) {
      // What came before it is given out first.
      result = at - 1 > offset ? 0 : -fault.error;
      break;
    }
    struct stat st {};
    st.st_ino = entry->d_ino;
    st.st_mode = static_cast<mode_t>(entry->d_type) << 12;
    if (fill(buffer, entry->d_name, &st, at, fuse_fill_dir_flags{}) != 0) break;
  }
  ::closedir(dir);
  return result;
}

int Mkdir(const char* path, mode_t mode) {
  return Do("mkdir", path, [&](const char* p) { return ::mkdir(p, mode); });
}
int Unlink(const char* path) {
  return Do("unlink", path, [](const char* p) { return ::unlink(p); });
}
int Rmdir(const char* path) {
  return Do("rmdir", path, [](const char* p) { return ::rmdir(p); });
}
int Rename(const char* from, const char* to, unsigned flags) {
  if (flags != 0) return -EINVAL;
  return Do("rename", from,
            [&](const char* p) { return ::rename(p, Below(to).c_str()); });
}
int Link(const char* from, const char* to) {
  return Do("link", from,
            [&](const char* p) { return ::link(p, Below(to).c_str()); });
}
int Symlink(const char* target, const char* path) {
  return Do("symlink", path,
            [&](const char* p) { return ::symlink(target, p); });
}
int Readlink(const char* path, char* to, size_t size) {
  return Do("readlink", path, [&](const char* p) {
    const ssize_t n = ::readlink(p, to, size - 1);
    if (n >= 0) to[n] = '\0';
    return n;
  });
}
int Truncate(const char* path, off_t size, fuse_file_info*) {
  return Do("truncate", path,
            [&](const char* p) { return ::truncate(p, size); });
}
int Chmod(const char* path, mode_t mode, fuse_file_info*) {
  return Do("chmod", path, [&](const char* p) { return ::chmod(p, mode); });
}
int Chown(const char* path, uid_t uid, gid_t gid, fuse_file_info*) {
  return Do("chown", path,
            [&](const char* p) { return ::lchown(p, uid, gid); });
}
int Utimens(const char* path, const timespec times[2], fuse_file_info*) {
  return Do("utimens", path, [&](const char* p) {
    return ::utimensat(AT_FDCWD, p, times, AT_SYMLINK_NOFOLLOW);
  });
}
int Mknod(const char* path, mode_t mode, dev_t device) {
  return Do("mknod", path,
            [&](const char* p) { return ::mknod(p, mode, device); });
}
int Fallocate(const char* path, int mode, off_t offset, off_t size,
              fuse_file_info* fi) {
  return Do("fallocate", path, [&](const char*) {
    return ::fallocate(static_cast<int>(fi->fh), mode, offset, size);
  });
}
off_t Lseek(const char* path, off_t offset, int whence, fuse_file_info* fi) {
  const Fault fault = Meet("lseek", path);
  if (fault.error != 0) return -fault.error;
  const off_t at = ::lseek(static_cast<int>(fi->fh), offset, whence);
  return at < 0 ? -errno : at;
}
ssize_t Copy(const char* path, fuse_file_info* in, off_t in_offset, const char*,
             fuse_file_info* out, off_t out_offset, size_t size, int flags) {
  const Fault fault = Meet("copy", path);
  if (fault.error != 0) return -fault.error;
  const ssize_t n = ::copy_file_range(static_cast<int>(in->fh), &in_offset,
                                      static_cast<int>(out->fh), &out_offset,
                                      size, static_cast<unsigned>(flags));
  return n < 0 ? -errno : n;
}
int Opendir(const char* path, fuse_file_info*) {
  return Do("opendir", path, [](const char* p) { return ::access(p, F_OK); });
}
int Fsyncdir(const char* path, int, fuse_file_info*) {
  return Do("fsyncdir", path, [](const char*) { return 0; });
}
int Flush(const char* path, fuse_file_info*) {
  return Do("flush", path, [](const char*) { return 0; });
}
int Release(const char* path, fuse_file_info* fi) {
  Meet("release", path);
  ::close(static_cast<int>(fi->fh));
  return 0;
}
int Fsync(const char* path, int, fuse_file_info* fi) {
  return Do("fsync", path,
            [&](const char*) { return ::fsync(static_cast<int>(fi->fh)); });
}
int Statfs(const char* path, struct statvfs* st) {
  return Do("statfs", path, [&](const char* p) { return ::statvfs(p, st); });
}
int Getxattr(const char* path, const char* name, char* to, size_t size) {
  const Fault fault = Meet("getxattr", path);
  if (fault.error != 0) return -fault.error;
  const ssize_t n = ::lgetxattr(Below(path).c_str(), name, to, size);
  return n < 0 ? -errno : static_cast<int>(n);
}

int Setxattr(const char* path, const char* name, const char* value, size_t size,
             int flags) {
  return Do("setxattr", path, [&](const char* p) {
    return ::lsetxattr(p, name, value, size, flags);
  });
}
int Listxattr(const char* path, char* to, size_t size) {
  const Fault fault = Meet("listxattr", path);
  if (fault.error != 0) return -fault.error;
  const ssize_t n = ::llistxattr(Below(path).c_str(), to, size);
  return n < 0 ? -errno : static_cast<int>(n);
}
int Removexattr(const char* path, const char* name) {
  return Do("removexattr", path,
            [&](const char* p) { return ::lremovexattr(p, name); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  source = argv[1];
  rules_path = argv[3];
  ::umask(0);
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  for (const char* option :
       {"fault_fs", "-o",
        "allow_other,subtype=fault_fs,entry_timeout=0,attr_timeout=0,"
        "negative_timeout=0"}) {
    fuse_opt_add_arg(&args, option);
  }
  for (int i = 4; i < argc; ++i) fuse_opt_add_arg(&args, argv[i]);
  fuse_operations ops{};
  ops.getattr = Getattr;
  ops.readlink = Readlink;
  ops.mkdir = Mkdir;
  ops.unlink = Unlink;
  ops.rmdir = Rmdir;
  ops.symlink = Symlink;
  ops.rename = Rename;
  ops.link = Link;
  ops.chmod = Chmod;
  ops.chown = Chown;
  ops.truncate = Truncate;
  ops.open = Open;
  ops.read = Read;
  ops.write = Write;
  ops.statfs = Statfs;
  ops.flush = Flush;
  ops.release = Release;
  ops.fsync = Fsync;
  ops.getxattr = Getxattr;
  ops.setxattr = Setxattr;
  ops.listxattr = Listxattr;
  ops.removexattr = Removexattr;
  ops.utimens = Utimens;
  ops.mknod = Mknod;
  ops.fallocate = Fallocate;
  ops.lseek = Lseek;
  ops.copy_file_range = Copy;
  ops.opendir = Opendir;
  ops.fsyncdir = Fsyncdir;
  ops.readdir = Readdir;
  ops.create = Create;
  fuse* const fs = fuse_new(&args, &ops, sizeof ops, nullptr);
  if (fs == nullptr || fuse_mount(fs, argv[2]) != 0) return 3;
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, 600);
  const int rc = fuse_loop_mt(fs, config);
  fuse_unmount(fs);
  fuse_destroy(fs);
  fuse_loop_cfg_destroy(config);
  return rc;
}
