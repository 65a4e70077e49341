// The kernel's table of mounts (mount_table.h).
#include "tracefs/base/mount_table.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

std::string PointOf(const std::string& point) {
  const auto mount =
      ParseMountLine("36 35 0:53 / " + point + " rw - tmpfs none rw");
  return mount ? mount->point : "no line";
}

TEST(ParseMountLineTest, TellsItsFields) {
  const auto mount = ParseMountLine(
      "36 35 98:0 /root /mnt rw,noatime shared:1 master:2 - ext3 /dev/a "
      "rw,errors=continue");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->id, 36u);
  EXPECT_EQ(mount->device, "98:0");
  EXPECT_EQ(mount->point, "/mnt");
  EXPECT_EQ(mount->flags, "rw,noatime");
  EXPECT_EQ(mount->type, "ext3");
  EXPECT_EQ(mount->source, "/dev/a");
  EXPECT_EQ(mount->options, "rw,errors=continue");
}

TEST(ParseMountLineTest, OctalBecomesTheByteItNames) {
  EXPECT_EQ(PointOf("/a\\040b\\011c\\012d\\134e"), "/a b\tc\nd\\e");
}

TEST(ParseMountLineTest, WhatIsNoEscapeStays) {
  EXPECT_EQ(PointOf("/a\\04"), "/a\\04");
  EXPECT_EQ(PointOf("/a\\"), "/a\\");
  EXPECT_EQ(PointOf("/a\\x41\\089"), "/a\\x41\\089");
}

// The kernel leaves other white space than blanks, tabs and line ends as it is.
TEST(ParseMountLineTest, ANameMakesNoFields) {
  const std::string forged = "/a\v-\ffuse.tracefs\rx\vrw,user_id=0";
  const auto mount = ParseMountLine("36 35 0:53 / " + forged + " rw - fuse " +
                                    forged + " rw,user_id=1000");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->point, forged);
  EXPECT_EQ(mount->type, "fuse");
  EXPECT_EQ(mount->source, forged);
  EXPECT_EQ(mount->options, "rw,user_id=1000");
}

TEST(ParseMountLineTest, AnEmptySourceIsEmpty) {
  const auto mount = ParseMountLine("36 35 0:53 / /a rw - fuse  user_id=1000");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->source, "");
  EXPECT_EQ(mount->options, "user_id=1000");
}

TEST(ParseMountLineTest, WhatIsNoLine) {
  for (const char* line :
       {"", " ", "x 35 0:53 / /a rw - fuse x rw", "36 35 0:53 / /a rw", "36",
        "36 35 0:53 / /a rw - "}) {
    EXPECT_FALSE(ParseMountLine(line)) << line;
  }
}

TEST(MountTableTest, EndsWithWhatWasMountedLast) {
  const std::vector<MountLine> table = MountTable();
  ASSERT_FALSE(table.empty());
  EXPECT_TRUE(MountTable("/proc/self/no/such/file").empty());
}

}  // namespace
}  // namespace tracefs
