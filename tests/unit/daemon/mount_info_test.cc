// Which mount is where (mount_info.h).
#include "tracefs/daemon/mount_info.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/unit/mount/scratch_dir.h"

namespace tracefs {
namespace {

TEST(FindMountTest, NoPathNoMount) {
  EXPECT_FALSE(FindMount("/no/such/place"));
  EXPECT_FALSE(FindMount("/"));
  EXPECT_FALSE(FindMount("relative"));
}

TEST(FindMountTest, AFolderIsNotMounted) {
  const ScratchDir scratch;
  const auto place = FindMount(scratch.Folder("plain"));
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->mounted);
}

class MountedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!scratch_.MountTmpfs("m")) GTEST_SKIP() << "cannot mount here";
  }
  ScratchDir scratch_;
};

TEST_F(MountedTest, IsFoundUntilItIsUnmounted) {
  const auto place = FindMount(scratch_.Path("m"));
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->mounted);
  EXPECT_TRUE(IsStillThere(*place));
  EXPECT_THAT(MountsOfDevice(place->device),
              ::testing::ElementsAre(scratch_.Path("m")));
  ASSERT_EQ(::umount2(scratch_.Path("m").c_str(), 0), 0);
  EXPECT_FALSE(IsStillThere(*place));
  EXPECT_THAT(MountsOfDevice(place->device), ::testing::IsEmpty());
}

TEST_F(MountedTest, AnotherMountInItsPlaceIsNotTaken) {
  const auto place = FindMount(scratch_.Path("m"));
  ASSERT_TRUE(place);
  ASSERT_EQ(::umount2(scratch_.Path("m").c_str(), 0), 0);
  ASSERT_TRUE(scratch_.MountTmpfs("m"));
  EXPECT_FALSE(IsStillThere(*place));
}

TEST_F(MountedTest, ItsBindMountIsAnotherMountOfTheSameDevice) {
  const auto place = FindMount(scratch_.Path("m"));
  ASSERT_TRUE(place);
  ASSERT_TRUE(scratch_.MountTmpfs("b c"));
  ASSERT_EQ(::mount(scratch_.Path("m").c_str(), scratch_.Path("b c").c_str(),
                    nullptr, MS_BIND, nullptr),
            0);
  const auto copy = FindMount(scratch_.Path("b c"));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->device, place->device);
  EXPECT_NE(copy->id, place->id);
  EXPECT_THAT(MountsOfDevice(place->device),
              ::testing::ElementsAre(scratch_.Path("b c"), scratch_.Path("m")));
  ASSERT_EQ(::umount2(scratch_.Path("b c").c_str(), 0), 0);
}

TEST_F(MountedTest, LookingDoesNotKeepItBusy) {
  const auto place = FindMount(scratch_.Path("m"));
  ASSERT_TRUE(place);
  EXPECT_EQ(::umount2(scratch_.Path("m").c_str(), 0), 0);
}

}  // namespace
}  // namespace tracefs
