#include "tracefs/base/pid_namespace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace tracefs {
namespace {

TEST(PidNamespaceTest, KnowsTheInitialOneByItsNumber) {
  struct stat st;
  ASSERT_EQ(::stat("/proc/self/ns/pid", &st), 0);
  EXPECT_EQ(InInitialPidNamespace(), st.st_ino == 0xeffffffc);
  EXPECT_FALSE(InInitialPidNamespace("/proc/self/ns/user"));
}

TEST(PidNamespaceTest, IsTheOnlyOneWhereTheKernelKnowsNone) {
  EXPECT_TRUE(InInitialPidNamespace("/proc/self/ns/of-another-kind"));
}

TEST(PidNamespaceTest, IsNotTakenForItWhereItCannotBeFoundOut) {
  EXPECT_FALSE(InInitialPidNamespace("/proc/self/stat/pid"));
}

}  // namespace
}  // namespace tracefs
