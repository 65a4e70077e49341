// Scenarios of the transparency suite: what a process can do in a directory,
// told in a few system calls.
//
// A scenario runs once in a fresh directory of the backing file system and once
// in a fresh one seen through the mount, each time in a process of its own
// whose working directory it is. All it does and sees goes into a log; the logs
// must be equal, and so must the trees left behind (runner.h). A log line is
// the text of the call and its result, so that a failure reads like strace.
// Nothing that differs by nature (inode numbers, clocks, descriptors) may be
// logged.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tracefs::transparency {

// A group that the user with supplementary groups is in, and one that no user
// but root can give away.
inline constexpr gid_t kExtraGroup = 61002;
inline constexpr gid_t kForeignGroup = 61009;
// A user who is never the one that runs.
inline constexpr uid_t kForeignUser = 61010;

class Run {
 public:
  // Lines go to `log_fd` as they come, so that a crash keeps what was before.
  Run(int log_fd, std::string prefix)
      : log_fd_(log_fd), prefix_(std::move(prefix)) {}

  // "text = value" or "text = -1 ENAME" (errno as it is on entry). Returns
  // `value`.
  long Ret(const char* text, long value);
  // The same for a descriptor, whose number says nothing: "text = fd".
  int Fd(const char* text, int fd);
  void Note(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // "what: <bytes>", unprintable ones escaped, long ones as length and hash.
  void Bytes(const char* what, std::string_view bytes);

  // Type, mode, owner, group, size, links (not of directories: file systems
  // count them differently over time), device number.
  void Stat(const char* path, int at_flags = AtSymlinkNofollow());
  void FStat(int fd);
  // Access and modification time, to the nanosecond: only after they were set.
  void Times(const char* path);
  // All that read() gives until its end.
  void Content(const char* path);
  // Names in the directory, sorted, with types.
  void List(const char* path);

  bool is_root() const;

  // A second process (a fork) that runs `body` and is waited for by Join(). Its
  // lines come after those of its parent, at Join(), in one piece.
  class Peer;

  int log_fd() const { return log_fd_; }
  const std::string& prefix() const { return prefix_; }

 private:
  static int AtSymlinkNofollow();
  void Line(const std::string& text);
  void StatLine(const char* what, int result, const struct stat& st);

  const int log_fd_;
  const std::string prefix_;
};

// Parent and peer take turns with Signal() and Wait(); a wait ends after ten
// seconds with a note, so that a lost turn shows as a difference.
class Run::Peer {
 public:
  Peer(Run& run, const std::function<void(Run& run, Peer& peer)>& body);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void Signal();
  void Wait();
  // In the parent: until the peer sleeps (in a system call), or half a second.
  void UntilAsleep();
  // In the parent: waits for the peer's end, then logs its lines and status.
  void Join();
  pid_t pid() const { return pid_; }

 private:
  Run& run_;
  pid_t pid_ = -1;
  int to_[2];    // parent to peer
  int from_[2];  // peer to parent
  bool in_peer_ = false;
  int log_fd_ = -1;
};

enum Who : uint8_t { kAll, kRootOnly, kUsersOnly };

struct Scenario {
  const char* name;
  Who who;
  void (*body)(Run& run);
  // Runs first, always as root, in the same directory.
  void (*prepare)(Run& run) = nullptr;
};

// One table per subject, one file each.
std::span<const Scenario> OpenScenarios();
std::span<const Scenario> IoScenarios();
std::span<const Scenario> SpaceScenarios();
std::span<const Scenario> NameScenarios();
std::span<const Scenario> AttributeScenarios();
std::span<const Scenario> PermissionScenarios();
std::span<const Scenario> XattrScenarios();
std::span<const Scenario> FreshScenarios();
std::span<const Scenario> SpecialScenarios();
std::span<const Scenario> DirectoryScenarios();
std::span<const Scenario> LockScenarios();
std::span<const Scenario> MemoryScenarios();
std::span<const Scenario> MiscScenarios();

// Small helpers for bodies. None logs anything.
void WriteFile(const char* path, std::string_view content, mode_t mode = 0644);
// `n` bytes that repeat nothing soon.
std::string Pattern(size_t n, uint32_t seed = 1);
void SleepMs(int ms);

}  // namespace tracefs::transparency

// CALL(unlink("a")) logs `unlink("a") = 0`; FD(open("a", 0)) logs `… = fd`.
#define CALL(expression) run.Ret(#expression, static_cast<long>(expression))
#define FD(expression) run.Fd(#expression, (expression))
// The same in a peer, whose log is called `side`.
#define PEER_CALL(expression) \
  side.Ret(#expression, static_cast<long>(expression))
#define PEER_FD(expression) side.Fd(#expression, (expression))
