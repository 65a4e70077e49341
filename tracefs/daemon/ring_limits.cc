// io_uring_register(2), seccomp(2).
#include "tracefs/daemon/ring_limits.h"

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace tracefs {
namespace {

constexpr io_uring_restriction AllowsCall(uint8_t op) {
  io_uring_restriction rule{};
  rule.opcode = IORING_RESTRICTION_SQE_OP;
  rule.sqe_op = op;
  return rule;
}

constexpr io_uring_restriction AllowsFlags(uint8_t flags) {
  io_uring_restriction rule{};
  rule.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
  rule.sqe_flags = flags;
  return rule;
}

constexpr io_uring_restriction AllowsRegistering(uint8_t op) {
  io_uring_restriction rule{};
  rule.opcode = IORING_RESTRICTION_REGISTER_OP;
  rule.register_op = op;
  return rule;
}

int Register(int ring, unsigned op, const void* argument, unsigned count) {
  return ::syscall(SYS_io_uring_register, ring, op, argument, count) < 0 ? errno
                                                                         : 0;
}

}  // namespace

int LimitRing(int ring) {
  // Requests and their replies, and the events that wake the thread of a ring.
  // libfuse registers /dev/fuse with it.
  static constexpr std::array kRules = {
      AllowsCall(IORING_OP_URING_CMD), AllowsCall(IORING_OP_READ),
      AllowsCall(IORING_OP_POLL_ADD), AllowsFlags(IOSQE_FIXED_FILE),
      AllowsRegistering(IORING_REGISTER_FILES)};
  if (const int error = Register(ring, IORING_REGISTER_RESTRICTIONS,
                                 kRules.data(), kRules.size());
      error != 0) {
    return error;
  }
  return Register(ring, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

// Besides the filter that is there. It looks at nothing but the number, so that
// the kernel knows beforehand what it says of all other calls.
int RefuseMoreRings() {
  std::array<sock_filter, 5> steps = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                           offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 1, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0,
                           1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {steps.size(), steps.data()};
  const long result = ::syscall(
      SYS_seccomp, SECCOMP_SET_MODE_FILTER,
      SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
  // The number of a thread that could not take it.
  if (result > 0) return EBUSY;
  return result < 0 ? errno : 0;
}

}  // namespace tracefs
