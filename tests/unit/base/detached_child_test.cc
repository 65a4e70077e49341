// A child that goes on beside its parent keeps nothing of it.
#include "tracefs/base/detached_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

// What `work` returns in a detached child that kept `fd`; -1 if it did not end
// by itself.
int InDetachedChild(int fd, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    DetachChild("test-child", {fd});
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class DetachedChildTest : public testing::Test {
 protected:
  DetachedChildTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe(ends.data()), 0);
    reads_.Reset(ends[0]);
    writes_.Reset(ends[1]);
  }

  UniqueFd reads_;
  UniqueFd writes_;
};

TEST_F(DetachedChildTest, StandardFilesAreEmptyAndSwallowWhatIsWritten) {
  const int wrong = InDetachedChild(writes_.get(), [] {
    for (const int fd : {0, 1, 2}) {
      char byte = 0;
      if (::read(fd, &byte, 1) != 0) return 10 + fd;
      if (::write(fd, &byte, 1) != 1) return 20 + fd;
    }
    return 0;
  });
  EXPECT_EQ(wrong, 0);
}

// Over /dev a mount that nobody serves yet would have the child wait for it.
TEST_F(DetachedChildTest, NothingIsLookedUpThatWasPreparedFor) {
  if (::geteuid() != 0) GTEST_SKIP() << "changing the root takes root";
  PrepareToDetach();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chroot("/proc/self/fdinfo") != 0) ::_exit(9);
    DetachChild("test-child", {});
    char byte = 0;
    const bool first = ::write(1, &byte, 1) == 1 && ::read(0, &byte, 1) == 0;
    // And its own child, which has no other descriptors.
    DetachChild("test-child", {});
    ::_exit(first && ::write(2, &byte, 1) == 1 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(DetachedChildTest, OnlyWhatItKeepsIsOpen) {
  const int kept = writes_.get();
  const int closed = reads_.get();
  const int wrong = InDetachedChild(kept, [=] {
    if (::fcntl(closed, F_GETFD) != -1) return 1;
    return ::write(kept, "k", 1) == 1 ? 0 : 2;
  });
  EXPECT_EQ(wrong, 0);
  char byte = 0;
  EXPECT_EQ(::read(reads_.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'k');
}

TEST_F(DetachedChildTest, ItIsInASessionOfItsOwn) {
  EXPECT_EQ(InDetachedChild(writes_.get(),
                            [] { return ::getsid(0) == ::getpid() ? 0 : 1; }),
            0);
}

}  // namespace
}  // namespace tracefs
