#include "tracefs/mount/request_loop.h"

#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "tracefs/base/thread.h"
#include "tracefs/fs/handed_request.h"
#include "tracefs/fs/left_file.h"

namespace tracefs {

using survive::Area;

namespace {

// linux/fuse.h, which lacks it in older headers.
constexpr int32_t kNotifyResend = 7;

// Daemons that crash at one request, before it is refused.
constexpr uint32_t kMostCrashesOfRequest = 3;
// Ends a read: a signal that does nothing.
constexpr int kWakeUp = SIGURG;

fuse_in_header HeaderOf(const std::byte* message) {
  fuse_in_header header;
  std::memcpy(&header, message, sizeof header);
  return header;
}

// Of those that a daemon serves; others by their number.
std::string RequestName(uint32_t opcode) {
  // enum fuse_opcode of linux/fuse.h; older headers lack the last ones.
  static constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {1, "lookup"},       {2, "forget"},       {3, "getattr"},
      {4, "setattr"},      {5, "readlink"},     {6, "symlink"},
      {8, "mknod"},        {9, "mkdir"},        {10, "unlink"},
      {11, "rmdir"},       {12, "rename"},      {13, "link"},
      {14, "open"},        {15, "read"},        {16, "write"},
      {17, "statfs"},      {18, "release"},     {20, "fsync"},
      {21, "setxattr"},    {22, "getxattr"},    {23, "listxattr"},
      {24, "removexattr"}, {25, "flush"},       {26, "init"},
      {27, "opendir"},     {28, "readdir"},     {29, "releasedir"},
      {30, "fsyncdir"},    {31, "getlk"},       {32, "setlk"},
      {33, "setlkw"},      {34, "access"},      {35, "create"},
      {36, "interrupt"},   {37, "bmap"},        {38, "destroy"},
      {39, "ioctl"},       {40, "poll"},        {43, "fallocate"},
      {44, "readdirplus"}, {45, "rename2"},     {46, "lseek"},
      {47, "copy_range"},  {50, "syncfs"},      {51, "tmpfile"},
      {52, "statx"},       {53, "copy_range64"}};
  for (const auto& [number, name] : kNames) {
    if (number == opcode) return std::string(name);
  }
  return "request " + std::to_string(opcode);
}

fuse_buf BufferOf(std::byte* message, size_t size) {
  fuse_buf buffer{};
  buffer.size = size;
  buffer.mem = message;
  return buffer;
}

bool IsForget(const fuse_in_header& header) {
  return header.opcode == FUSE_FORGET || header.opcode == FUSE_BATCH_FORGET;
}

}  // namespace

// A reader that waits for a request is woken up by a signal, which must not
// come to it later: it would end a call below.
enum class Reading : uint8_t {
  kNo,
  kYes,
  kWoken,  // a signal is about to be sent
  kSent,
};

struct RequestLoop::Reader {
  std::thread thread;
  size_t number = 0;
  std::atomic<Reading> reading{Reading::kNo};
};

RequestLoop::RequestLoop(fuse_session* session, FileSystem& fs, int readers,
                         Refused refused)
    : session_(session),
      fs_(fs),
      refused_(std::move(refused)),
      most_readers_(std::min(static_cast<size_t>(readers), Area::kReaders)),
      area_(*fs.area()),
      device_(fuse_session_fd(session)) {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  ::sigaction(kWakeUp, &nothing, nullptr);
}

RequestLoop::~RequestLoop() = default;

void RequestLoop::AwaitResume() {
  std::unique_lock lock(mu_);
  if (!paused_.load()) return;
  ++parked_;
  ended_.notify_all();
  resumed_.wait(lock, [this] { return !paused_.load(); });
  --parked_;
}

ssize_t RequestLoop::ReadOnce(std::byte* buffer, Reader* reader) {
  if (reader == nullptr) return ::read(device_, buffer, Area::kBufferBytes);
  reader->reading.store(Reading::kYes);
  ssize_t n = -1;
  int error = EINTR;
  if (!paused_.load()) [[likely]] {
    n = ::read(device_, buffer, Area::kBufferBytes);
    error = errno;
  }
  for (Reading now = Reading::kYes;
       !reader->reading.compare_exchange_strong(now, Reading::kNo);) {
    ::sched_yield();  // what was sent comes here at the latest
    if (now == Reading::kWoken) now = Reading::kSent;
  }
  if (n < 0 && paused_.load()) AwaitResume();
  errno = error;
  return n;
}

bool RequestLoop::Pause(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mu_);
  paused_.store(true);
  while (parked_ != running_.load()) {
    if (fuse_session_exited(session_) != 0 ||
        std::chrono::steady_clock::now() >= end) {
      return false;
    }
    for (Reader& reader : readers_) {
      // Again, should it have come just before the read.
      Reading now = reader.reading.load();
      if ((now != Reading::kYes && now != Reading::kSent) ||
          !reader.reading.compare_exchange_strong(now, Reading::kWoken)) {
        continue;
      }
      ::pthread_kill(reader.thread.native_handle(), kWakeUp);
      reader.reading.store(Reading::kSent);
    }
    ended_.wait_for(lock, std::chrono::milliseconds(1));
  }
  return fuse_session_exited(session_) == 0;
}

void RequestLoop::Resume() {
  const std::lock_guard lock(mu_);
  paused_.store(false);
  resumed_.notify_all();
}

size_t RequestLoop::Read(std::byte* buffer, Reader* reader) {
  while (fuse_session_exited(session_) == 0) {
    const ssize_t n = ReadOnce(buffer, reader);
    if (n >= static_cast<ssize_t>(sizeof(fuse_in_header))) {
      return static_cast<size_t>(n);
    }
    // The caller of a request was killed before it was taken.
    if (n < 0 && (errno == ENOENT || errno == EINTR)) continue;
    if (n < 0 && errno == EAGAIN) return 0;
    fuse_session_exit(session_);
  }
  return 0;
}

Status RequestLoop::Begin() {
  std::byte* const buffer = area_.buffer(0);
  const size_t size = Read(buffer);
  survive::Header& header = area_.header();
  if (size == 0 || size > header.init.size()) {
    return Status::System(ENODEV, "the first request of the mount");
  }
  std::memcpy(header.init.data(), buffer, size);
  header.init_size.store(static_cast<uint32_t>(size));
  const fuse_buf message = BufferOf(buffer, size);
  fuse_session_process_buf(session_, &message);
  if (fuse_session_exited(session_) != 0) {
    return Status::SystemSaid(
        EPROTO,
        "libfuse and the kernel do not agree on this mount; look at "
        "what -o asks for");
  }
  return Status::Ok();
}

bool RequestLoop::ServeFirstAgain(fuse_session* session, Area& area) {
  survive::Header& header = area.header();
  const size_t size = header.init_size.load();
  if (size < sizeof(fuse_in_header) || size > header.init.size()) return false;
  std::array<std::byte, sizeof header.init> init = header.init;
  const fuse_buf message = BufferOf(init.data(), size);
  fuse_session_process_buf(session, &message);
  return true;
}

Status RequestLoop::TakeOver() {
  if (!ServeFirstAgain(session_, area_)) {
    return Status::SystemSaid(EPROTO, "the daemon died before it had begun");
  }
  if (!fs_.agrees()) {
    return Status::SystemSaid(
        EPROTO,
        "the daemon before has agreed on something else with the kernel");
  }
  // Its daemon was killed while it ended the mount.
  if (area_.header().ended.load() != 0) {
    fuse_session_exit(session_);
    return Status::Ok();
  }

  fuse_out_header resend = {sizeof resend, kNotifyResend, 0};
  if (::write(device_, &resend, sizeof resend) != sizeof resend) {
    if (errno == ENODEV || errno == ENOTCONN) {
      fuse_session_exit(session_);
      return Status::Ok();
    }
    return Status::System(errno, "asking the kernel for its requests again");
  }
  fs_.FinishForgets();
  const std::unordered_set<uint64_t> unanswered = TakeSentAgain();
  fs_.TakeOverRequests(
      [&](uint64_t unique) { return unanswered.contains(unique); });
  RefuseDeadly();
  return Status::Ok();
}

// Before anybody serves: one that was sent again has no part in the next crash.
void RequestLoop::RefuseDeadly() {
  std::erase_if(left_, [this](const std::vector<std::byte>& message) {
    const fuse_in_header in = HeaderOf(message.data());
    if (in.opcode == FUSE_INTERRUPT || (in.unique & survive::kSentAgain) == 0) {
      return false;
    }
    survive::Outcome* const known = area_.Pending(in.unique);
    if (known == nullptr || known->crashes.load() < kMostCrashesOfRequest) {
      return false;
    }
    area_.header().refused.fetch_add(1);
    refused_(RequestName(in.opcode), fs_.inodes().DescribedPath(in.nodeid));
    const LeftFile left(fs_, in.unique);
    Answer(in.unique, EIO);
    known->unique.store(0);
    return true;
  });
  left_count_.store(left_.size());
}

// Those sent again are ahead of all others but FORGETs and INTERRUPTs. Their
// numbers; the messages are in left_.
std::unordered_set<uint64_t> RequestLoop::TakeSentAgain() {
  std::unordered_set<uint64_t> unanswered;
  std::byte* const buffer = area_.buffer(Area::kReaders);
  ::madvise(buffer, Area::kBufferBytes, MADV_POPULATE_WRITE);
  survive::WorkSlot& slot = *Area::OfThread();
  for (pollfd ready = {device_, POLLIN, 0}; ::poll(&ready, 1, 0) > 0;) {
    const size_t size = ReadAsForget(Area::kReaders, slot);
    if (size == 0) break;
    const fuse_in_header in = HeaderOf(buffer);
    if (IsForget(in)) {
      fs_.Forget({buffer, size}, slot);
      continue;
    }
    left_.emplace_back(buffer, buffer + size);
    if (in.opcode == FUSE_INTERRUPT) continue;
    if ((in.unique & survive::kSentAgain) == 0) break;
    unanswered.insert(in.unique & ~survive::kSentAgain);
  }
  slot.forgets.store(0);
  left_count_.store(left_.size());
  return unanswered;
}

// Reads into that buffer. Should it be a FORGET, a later daemon finds it there.
size_t RequestLoop::ReadAsForget(size_t number, survive::WorkSlot& slot,
                                 Reader* reader) {
  constexpr fuse_in_header kNothing{};
  std::byte* const buffer = area_.buffer(number);
  std::memcpy(buffer, &kNothing, sizeof kNothing);
  slot.items.store(0, std::memory_order_relaxed);
  slot.forgets.store(static_cast<uint32_t>(number) + 1,
                     std::memory_order_release);
  return Read(buffer, reader);
}

// What a dead daemon has done.
bool RequestLoop::AnswerAgain(std::byte* message, size_t size) {
  const fuse_in_header in = HeaderOf(message);
  if (in.opcode == FUSE_RELEASE || in.opcode == FUSE_RELEASEDIR) {
    uint64_t fh = 0;
    if (size < sizeof in + sizeof fh) return false;
    std::memcpy(&fh, message + sizeof in, sizeof fh);
    if (fs_.IsReleased(in.unique, fh)) {
      Answer(in.unique, 0);
      return true;
    }
  }
  return false;
}

void RequestLoop::Answer(uint64_t unique, int error) {
  const fuse_out_header out = {sizeof out, -error, unique};
  static_cast<void>(!::write(device_, &out, sizeof out));
}

void RequestLoop::Process(std::byte* message, size_t size) {
  const fuse_in_header in = HeaderOf(message);
  survive::WorkSlot& slot = *Area::OfThread();
  if (IsForget(in)) {
    fs_.Forget({message, size}, slot);
    return;
  }
  if (in.opcode == FUSE_INTERRUPT) {
    uint64_t interrupted = 0;
    if (size >= sizeof in + sizeof interrupted) {
      std::memcpy(&interrupted, message + sizeof in, sizeof interrupted);
      if (fs_.Interrupt(interrupted)) return;
    }
    // Of a request that waits for a lock libfuse knows.
    const fuse_buf buffer = BufferOf(message, size);
    fuse_session_process_buf(session_, &buffer);
    return;
  }
  if ((in.unique & survive::kSentAgain) != 0 && AnswerAgain(message, size)) {
    return;
  }
  area_.Begin(in.unique);
  RequestSource::OfThread().unique = in.unique;
  const fuse_buf buffer = BufferOf(message, size);
  fuse_session_process_buf(session_, &buffer);
}

bool RequestLoop::TakeLeft(std::vector<std::byte>* message) {
  if (left_count_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mu_);
  if (left_.empty()) return false;
  *message = std::move(left_.front());
  left_.pop_front();
  left_count_.store(left_.size());
  return true;
}

void RequestLoop::Run(Reader& reader) {
  {
    std::unique_lock lock(mu_);
    resumed_.wait(lock, [this] { return serves_; });
  }
  sigset_t wake_up;
  ::sigemptyset(&wake_up);
  ::sigaddset(&wake_up, kWakeUp);
  ::pthread_sigmask(SIG_UNBLOCK, &wake_up, nullptr);
  std::byte* const buffer = area_.buffer(reader.number);
  ::madvise(buffer, Area::kBufferBytes, MADV_POPULATE_WRITE);
  survive::WorkSlot& slot = *Area::OfThread();
  const auto busy = [&] {
    // Others can go on to read while this one is at work.
    if (idle_.fetch_sub(1) == 1) StartReader();
  };
  for (std::vector<std::byte> left; TakeLeft(&left);) {
    busy();
    Process(left.data(), left.size());
    idle_.fetch_add(1);
  }
  while (fuse_session_exited(session_) == 0) {
    const size_t size = ReadAsForget(reader.number, slot, &reader);
    if (size == 0) continue;
    if (IsForget(HeaderOf(buffer))) {
      Process(buffer, size);
      continue;
    }
    slot.forgets.store(0, std::memory_order_release);
    busy();
    Process(buffer, size);
    idle_.fetch_add(1);
  }
  idle_.fetch_sub(1);
  const std::lock_guard lock(mu_);
  running_.fetch_sub(1);
  ended_.notify_all();
}

void RequestLoop::StartReader() {
  const std::lock_guard lock(mu_);
  if (readers_.size() == most_readers_ || fuse_session_exited(session_) != 0) {
    return;
  }
  Reader& reader = readers_.emplace_back();
  reader.number = readers_.size() - 1;
  running_.fetch_add(1);
  idle_.fetch_add(1);
  const Status started = StartThread(
      "tracefs-worker", [this, &reader] { Run(reader); }, &reader.thread);
  if (started.ok()) return;
  running_.fetch_sub(1);
  idle_.fetch_sub(1);
  readers_.pop_back();
}

Status RequestLoop::Start() {
  // It may have been unmounted while nobody served it.
  if (fuse_session_exited(session_) != 0) return Status::Ok();
  StartReader();
  const std::lock_guard lock(mu_);
  return !readers_.empty()
             ? Status::Ok()
             : Status::System(EAGAIN, "starting the thread 'tracefs-worker'");
}

int RequestLoop::Serve() {
  std::unique_lock lock(mu_);
  serves_ = true;
  resumed_.notify_all();
  if (readers_.empty()) return 0;
  if (fuse_session_exited(session_) == 0) area_.header().served.store(1);
  while (running_.load() != 0) {
    ended_.wait_for(lock, std::chrono::milliseconds(100));
    if (fuse_session_exited(session_) == 0) continue;
    for (Reader& reader : readers_) {
      // One that has ended is joined later, and its number stays its own.
      ::pthread_kill(reader.thread.native_handle(), kWakeUp);
    }
  }
  lock.unlock();
  for (Reader& reader : readers_) reader.thread.join();
  return 0;
}

}  // namespace tracefs
