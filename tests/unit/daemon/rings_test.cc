// What somebody who steers a daemon can have its rings do (ring_limits.h), and
// that he gets no others.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "tests/unit/daemon/in_child.h"
#include "tracefs/base/sanitizers.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/ring_limits.h"
#include "tracefs/daemon/sandbox.h"

namespace tracefs {
namespace {

// Higher numbers are nobody's yet.
constexpr int kOps = 128;

// A ring without any library, of one thread.
class Ring {
 public:
  Ring() {
    params_.flags = IORING_SETUP_R_DISABLED;
    fd_.Reset(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &params_)));
    if (!fd_) return;
    const size_t queues =
        params_.cq_off.cqes + params_.cq_entries * sizeof(io_uring_cqe);
    queues_ = Map(queues, IORING_OFF_SQ_RING);
    entries_ = Map(params_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  }
  int fd() const { return fd_.get(); }

  // What comes of one call.
  int Do(uint8_t op, int file, const void* at = nullptr, uint32_t size = 0,
         uint64_t offset = 0) {
    auto* const entry = reinterpret_cast<io_uring_sqe*>(entries_);
    *entry = {};
    entry->opcode = op;
    entry->fd = file;
    entry->addr = reinterpret_cast<uintptr_t>(at);
    entry->len = size;
    entry->off = offset;
    At(params_.sq_off.array) = 0;
    std::atomic_ref(At(params_.sq_off.tail)).fetch_add(1);
    if (::syscall(SYS_io_uring_enter, fd_.get(), 1, 1, IORING_ENTER_GETEVENTS,
                  nullptr, 0) < 0) {
      return -errno;
    }
    const uint32_t head = std::atomic_ref(At(params_.cq_off.head)).fetch_add(1);
    const auto* const completions =
        reinterpret_cast<io_uring_cqe*>(queues_ + params_.cq_off.cqes);
    return completions[head % params_.cq_entries].res;
  }

 private:
  char* Map(size_t size, off_t offset) const {
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_POPULATE, fd_.get(), offset);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }
  uint32_t& At(uint32_t offset) const {
    return *reinterpret_cast<uint32_t*>(queues_ + offset);
  }

  io_uring_params params_{};
  UniqueFd fd_;
  char* queues_ = nullptr;
  char* entries_ = nullptr;
};

class RingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Ring().fd() < 0) GTEST_SKIP() << "no io_uring here";
  }
};

TEST_F(RingsTest, DoWhatFuseTakesAndNothingElse) {
  Ring ring;
  ASSERT_EQ(LimitRing(ring.fd()), 0);
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(ring.Do(IORING_OP_READ, ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  for (int op = 0; op < kOps; ++op) {
    if (op == IORING_OP_READ || op == IORING_OP_POLL_ADD ||
        op == IORING_OP_URING_CMD) {
      continue;
    }
    const int error = ring.Do(static_cast<uint8_t>(op), ends[0]);
    EXPECT_TRUE(error == -EACCES || error == -EINVAL) << op << ": " << error;
  }
  EXPECT_EQ(ring.Do(IORING_OP_SOCKET, AF_INET, nullptr, 0, SOCK_STREAM),
            -EACCES);
  EXPECT_EQ(ring.Do(IORING_OP_OPENAT, AT_FDCWD, "/etc/passwd"), -EACCES);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RingsTest, StayLimited) {
  const Ring ring;
  ASSERT_EQ(LimitRing(ring.fd()), 0);
  EXPECT_NE(LimitRing(ring.fd()), 0);
  for (unsigned op = 0; op < kOps; ++op) {
    if (op == IORING_REGISTER_FILES) continue;
    const long result =
        ::syscall(SYS_io_uring_register, ring.fd(), op, nullptr, 0);
    EXPECT_EQ(result, -1) << op;
    EXPECT_TRUE(errno == EACCES || errno == EINVAL) << op << ": " << errno;
  }
}

TEST_F(RingsTest, AreTheOnlyOnesInTheSandbox) {
  if (kSanitized) GTEST_SKIP() << "no filter in this build";
  if (!HasCapability(CAP_SYS_ADMIN)) GTEST_SKIP() << "needs root";
  EXPECT_EQ(InChild([]() -> std::string {
              auto sandbox = Sandbox::Enter({.uring = true});
              if (!sandbox.ok()) return sandbox.status().message();
              ::close(STDERR_FILENO);
              Ring ring;
              if (const int error = LimitRing(ring.fd()); error != 0) {
                return std::strerror(error);
              }
              const auto refused = [] {
                return ::syscall(SYS_io_uring_setup, 1, nullptr) == -1 &&
                       errno == EPERM;
              };
              if (refused()) return "refused before";
              std::atomic<int> turn{0};
              bool other_refused = false;
              std::thread other([&] {
                turn.wait(0);
                other_refused = refused();
              });
              const Status shut = (*sandbox)->RefuseMoreRings();
              turn = 1;
              turn.notify_all();
              other.join();
              if (!shut.ok()) return shut.message();
              if (!refused() || !other_refused) return "one more ring";
              if (::syscall(SYS_io_uring_register, ring.fd(),
                            IORING_REGISTER_FILES, nullptr, 0) != -1 ||
                  errno != EPERM) {
                return "changed";
              }
              // What is there still works, and nothing else does.
              std::array<int, 2> ends;
              char byte = 0;
              if (::pipe2(ends.data(), O_CLOEXEC) != 0 ||
                  ::write(ends[1], "x", 1) != 1 ||
                  ring.Do(IORING_OP_READ, ends[0], &byte, 1) != 1) {
                return "broken";
              }
              return std::to_string(
                  ring.Do(IORING_OP_SOCKET, AF_INET, nullptr, 0, SOCK_STREAM));
            }),
            std::to_string(-EACCES));
}

}  // namespace
}  // namespace tracefs
