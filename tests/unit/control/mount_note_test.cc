// Notes of the configs of mounts: written, read back, and those of others.
#include "tracefs/control/mount_note.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

using namespace std::string_literals;

TEST(MountNoteTest, RoundTrip_AFileWithAnyName) {
  const MountNote note{.config = "/etc/a b=\n\xff.conf"};
  const auto read = ParseMountNote(MountNoteText(note, "/mnt\n"), "/mnt\n");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->config, note.config);
  EXPECT_TRUE(read->config_dir.empty());
}

TEST(MountNoteTest, RoundTrip_ADirectoryOfSignedConfigs) {
  const MountNote note{.config_dir = "/configs",
                       .config_keys = {"/one.pub", "/two.pub"},
                       .config_state = "/state"};
  const auto read = ParseMountNote(MountNoteText(note, "/mnt"), "/mnt");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->config_dir, note.config_dir);
  EXPECT_EQ(read->config_keys, note.config_keys);
  EXPECT_EQ(read->config_state, note.config_state);
}

TEST(MountNoteTest, RoundTrip_TracesOfAMountWithoutConfig) {
  const MountNote note{.traces = {"/a.trace", "/b"}, .kept = "/kept/7"};
  const auto read = ParseMountNote(MountNoteText(note, "/mnt"), "/mnt");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->traces, note.traces);
  EXPECT_EQ(read->kept, note.kept);
  EXPECT_FALSE(read->names_config());
}

TEST(MountNoteTest, IsWrittenAnewOrRemoved) {
  const TempFolder folder;
  const UniqueFd fd(::open(folder.Path("").c_str(), O_RDONLY | O_DIRECTORY));
  const MountIdentity mount{};
  const auto in_it = [&] {
    std::vector<std::string> texts;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder.Path(""))) {
      texts.push_back(TempFolder::Read(entry.path()));
    }
    return texts;
  };
  ASSERT_TRUE(WriteMountNote(fd.get(), mount, "/mnt", {.config = "/a"}).ok());
  EXPECT_EQ(in_it(),
            std::vector{MountNoteText(MountNote{.config = "/a"}, "/mnt")});
  const MountNote other{.config_dir = "/d"};
  errno = EIO;  // of something before
  ASSERT_TRUE(WriteMountNote(fd.get(), mount, "/mnt", other).ok());
  EXPECT_EQ(in_it(), std::vector{MountNoteText(other, "/mnt")});
  ASSERT_TRUE(WriteMountNote(fd.get(), mount, "/mnt", {}).ok());
  EXPECT_TRUE(in_it().empty());
  ASSERT_TRUE(WriteMountNote(fd.get(), mount, "/mnt", {}).ok());
}

// The device number of a mount is used again when it has ended.
TEST(MountNoteTest, TheNoteOfAnotherMountIsRefused) {
  const std::string text = MountNoteText({.config = "/a.conf"}, "/mnt");
  EXPECT_FALSE(ParseMountNote(text, "/other").ok());
  EXPECT_FALSE(ParseMountNote(text, "/mn").ok());
}

TEST(MountNoteTest, Malicious_WhatIsNoNoteIsRefused) {
  for (const std::string& text :
       {""s, "\0"s, "mount=/mnt"s, "config=/a\0"s, "mount=/mnt\0x=/a\0"s,
        "mount=/mnt\0config=a.conf\0"s, "mount=/mnt\0config=\0"s,
        "mount=/mnt\0config_dir=/a\0"s, "mount=/mnt\0config\0"s,
        "mount=/mnt\0config=/a\0x"s}) {
    EXPECT_EQ(ParseMountNote(text, "/mnt").status().code(),
              StatusCode::kCorrupt)
        << text;
  }
}

}  // namespace
}  // namespace tracefs
