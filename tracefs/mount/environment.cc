#include "tracefs/mount/environment.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <climits>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "tracefs/base/join.h"
#include "tracefs/base/kernel_version.h"
#include "tracefs/base/mount_table.h"
#include "tracefs/base/version.h"
#include "tracefs/mount/kernel_promises.h"
#include "tracefs/text/shell_word.h"

namespace tracefs {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string ProcessorModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

// One a line: name, bytes, model.
std::string Disks() {
  std::string disks;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/block", error)) {
    const std::string name = entry.path().filename();
    if (name.rfind("loop", 0) == 0 || name.rfind("ram", 0) == 0) continue;
    const uint64_t sectors =
        std::strtoull(FirstLine(entry.path() / "size").c_str(), nullptr, 10);
    if (sectors == 0) continue;
    AppendWord(name + ' ' + std::to_string(sectors * 512) + ' ' +
                   FirstLine(entry.path() / "device/model"),
               "\n", &disks);
  }
  return disks;
}

// The number of the mount that `path` lies in; 0 before Linux 5.8.
uint64_t MountIdOf(const char* path) {
  struct statx st = {};
  if (::statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) != 0 ||
      (st.stx_mask & STATX_MNT_ID) == 0) {
    return 0;
  }
  return st.stx_mnt_id;
}

// Its type and source. It is found by its own number. That of the device, which
// files tell, is not the mount's on btrfs, where each subvolume has one.
void MountOf(uint64_t mount_id, dev_t device, std::string* type,
             std::string* source) {
  const std::string wanted =
      std::to_string(major(device)) + ':' + std::to_string(minor(device));
  for (MountLine& line : MountTable()) {
    const bool is_it = mount_id != 0 && line.id == mount_id;
    if (!is_it && line.device != wanted) continue;
    *type = std::move(line.type);
    *source = std::move(line.source);
    if (is_it) return;
  }
}

void DescribeMachine(format::TraceHeader* header) {
  header->Set("tracefs.version", kVersion);
  utsname name;
  if (::uname(&name) == 0) {
    header->Set("host.name", name.nodename);
    header->Set("host.machine", name.machine);
    header->Set("os.name", name.sysname);
    header->Set("os.release", name.release);
    header->Set("os.version", name.version);
  }
  struct sysinfo info;
  if (::sysinfo(&info) == 0) {
    header->Set("hw.memory_bytes",
                std::to_string(uint64_t{info.totalram} * info.mem_unit));
  }
  header->Set("hw.processors", std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)));
  header->Set("hw.processor_model", ProcessorModel());
  header->Set("hw.disks", Disks());
  header->Set("boot.id", FirstLine("/proc/sys/kernel/random/boot_id"));
  const time_t now = ::time(nullptr);
  tm local;
  if (::localtime_r(&now, &local) != nullptr) {
    header->Set("time.zone_offset_s", std::to_string(local.tm_gmtoff));
  }
}

void DescribeBacking(const std::string& path, int fd,
                     format::TraceHeader* header) {
  char resolved[PATH_MAX];
  header->Set("backing.path",
              ::realpath(path.c_str(), resolved) != nullptr ? resolved : path);
  struct stat st;
  std::string type;
  std::string source;
  if (::fstat(fd, &st) == 0) {
    MountOf(MountIdOf(path.c_str()), st.st_dev, &type, &source);
  }
  header->Set("backing.fs_type", type);
  header->Set("backing.device", source);
  struct statvfs space;
  if (::fstatvfs(fd, &space) == 0) {
    header->Set("backing.capacity_bytes",
                std::to_string(uint64_t{space.f_blocks} * space.f_frsize));
    header->Set("backing.free_bytes",
                std::to_string(uint64_t{space.f_bfree} * space.f_frsize));
  }
}

// This process's command line. It never contains keys.
std::string OwnCommandLine() {
  std::ifstream in("/proc/self/cmdline");
  std::string line;
  for (std::string word; std::getline(in, word, '\0');) {
    AppendWord(ShellWord(word), " ", &line);
  }
  return line;
}

constexpr size_t kMostOfVariable = size_t{32} << 10;

// Variables that a recording may depend on. No others: they may be secrets.
constexpr const char* kVariables[] = {"LANG", "LC_ALL", "LC_CTYPE",
                                      "PATH", "TMPDIR", "TZ"};

void DescribeCommand(const std::vector<std::string>& variables,
                     format::TraceHeader* header) {
  header->Set("command.line", OwnCommandLine());
  const auto put = [&](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr || std::string_view(value).size() > kMostOfVariable) {
      return;
    }
    header->Set("env." + name, value);
  };
  for (const char* name : kVariables) put(name);
  for (const std::string& name : variables) put(name);
  header->Set("versions",
              std::string("libfuse ") + TRACEFS_LIBFUSE_VERSION + ", OpenSSL " +
                  OpenSSL_version(OPENSSL_VERSION_STRING) + ", zlib " +
                  zlibVersion() + ", zstd " + ZSTD_versionString() +
                  ", glibc " + gnu_get_libc_version());
}

}  // namespace

format::TraceHeader CommonHeader(const MountOptions& options, int source) {
  format::TraceHeader header;
  DescribeMachine(&header);
  DescribeCommand(options.variables, &header);
  DescribeBacking(options.source, source, &header);
  header.Set("visibility", VisibilityName(options.visibility));
  header.Set("visibility.invisible", InvisibleText(options.visibility));
  if (const std::string lacking = KernelLacks(KernelRelease());
      !lacking.empty()) {
    header.Set("kernel.lacks", lacking);
  }
  return header;
}

std::string MountOptionsText(const MountOptions& options,
                             const TransportChoice& transport) {
  std::string text = transport.uring ? "transport=uring" : "transport=dev";
  if (options.survive) text += ",survive=yes";
  if (options.lasting_handles) text += ",handles=yes";
  for (const std::string& option : options.fuse_options) text += ',' + option;
  return text;
}

}  // namespace tracefs
