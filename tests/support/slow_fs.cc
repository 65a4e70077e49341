// slow_fs MNT COUNT MIB DELAY_MS: a read-only file system of COUNT files of MIB
// mebibytes, slow1, slow2, …, each of whose reads takes DELAY_MS. It stands for
// a slow disk below a mount: many reads may be on their way at a time. Runs in
// the foreground until it is unmounted.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/fs/fuse_api.h"

namespace {

struct Options {
  unsigned long files;
  off_t bytes;
  std::chrono::milliseconds delay;
} options;

constexpr fuse_ino_t kFirst = 2;

struct stat StatOf(fuse_ino_t ino) {
  struct stat st {};
  st.st_ino = ino;
  st.st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0444;
  st.st_nlink = 1;
  st.st_size = ino == FUSE_ROOT_ID ? 0 : options.bytes;
  return st;
}

void Lookup(fuse_req_t req, fuse_ino_t, const char* name) {
  const unsigned long number = std::strncmp(name, "slow", 4) == 0
                                   ? std::strtoul(name + 4, nullptr, 10)
                                   : 0;
  if (number == 0 || number > options.files) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kFirst + number - 1;
  entry.attr = StatOf(entry.ino);
  entry.attr_timeout = entry.entry_timeout = 60;
  fuse_reply_entry(req, &entry);
}

void Getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  const struct stat st = StatOf(ino);
  fuse_reply_attr(req, &st, 60);
}

void Open(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  fi->direct_io = 1;  // every read is slow
  fuse_reply_open(req, fi);
}

void Read(fuse_req_t req, fuse_ino_t, size_t size, off_t offset,
          fuse_file_info*) {
  std::this_thread::sleep_for(options.delay);
  const off_t left = std::max<off_t>(options.bytes - offset, 0);
  const std::vector<char> zeros(std::min(size, static_cast<size_t>(left)));
  fuse_reply_buf(req, zeros.data(), zeros.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  options.files = std::strtoul(argv[2], nullptr, 10);
  options.bytes = std::strtol(argv[3], nullptr, 10) << 20;
  options.delay = std::chrono::milliseconds(std::strtol(argv[4], nullptr, 10));
  fuse_lowlevel_ops ops{};
  ops.lookup = Lookup;
  ops.getattr = Getattr;
  ops.open = Open;
  ops.read = Read;
  const char* mount_argv[] = {"slow_fs", "-o", "allow_other,subtype=slow_fs"};
  fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(mount_argv));
  fuse_session* session = fuse_session_new(&args, &ops, sizeof ops, nullptr);
  if (session == nullptr || fuse_session_mount(session, argv[1]) != 0) return 3;
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, 64);
  const int rc = fuse_session_loop_mt(session, config);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  fuse_loop_cfg_destroy(config);
  return rc;
}
