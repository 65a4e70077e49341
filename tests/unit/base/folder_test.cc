// What is in a directory and above it, as std::filesystem has it.
#include "tracefs/base/folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

namespace fs = std::filesystem;

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    std::string name = (fs::temp_directory_path() / "tracefs_test.XXXXXX");
    root_ = ::mkdtemp(name.data());
    fs::create_directories(root_ / "a/b/c");
    fs::create_directory(root_ / "beside");
    std::ofstream(root_ / "a/file") << "x";
    fs::create_directory_symlink(root_ / "beside", root_ / "a/link");
  }
  ~FolderTest() override { fs::remove_all(root_); }

  UniqueFd Open(const std::string& path, int flags = O_PATH) const {
    return UniqueFd(::open((root_ / path).c_str(), flags | O_DIRECTORY));
  }
  std::vector<std::string> Listed(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ / path)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  fs::path root_;
};

TEST_F(FolderTest, NamesAreThoseThatAreThere) {
  for (const int flags : {O_PATH, O_RDONLY}) {
    const UniqueFd fd = Open("a", flags);
    for (int time = 0; time < 2; ++time) {  // each begins at the first name
      const auto names = NamesInFolder(fd.get());
      ASSERT_TRUE(names.ok()) << names.status().message();
      EXPECT_THAT(*names, testing::UnorderedElementsAreArray(Listed("a")));
    }
  }
  EXPECT_TRUE(NamesInFolder(Open("beside").get())->empty());
}

TEST_F(FolderTest, WhatIsNoDirectoryIsNotListed) {
  EXPECT_EQ(NamesInFolder(-1).status().error(), EBADF);
  const UniqueFd file(::open((root_ / "a/file").c_str(), O_RDONLY));
  EXPECT_EQ(NamesInFolder(file.get()).status().error(), ENOTDIR);
}

TEST_F(FolderTest, ADirectoryIsAboveThoseInItAtAnyDepth) {
  EXPECT_EQ(IsAbove(Open("a").get(), Open("a/b").get()), true);
  EXPECT_EQ(IsAbove(Open("a").get(), Open("a/b/c").get()), true);
  EXPECT_EQ(IsAbove(Open("a").get(), Open("a").get()), false);
  EXPECT_EQ(IsAbove(Open("a/b").get(), Open("a").get()), false);
  EXPECT_EQ(IsAbove(Open("beside").get(), Open("a/b/c").get()), false);
  // By what it is, not by what it is called.
  EXPECT_EQ(IsAbove(Open("a").get(), Open("a/link").get()), false);
  const UniqueFd slash(::open("/", O_PATH | O_DIRECTORY));
  EXPECT_EQ(IsAbove(slash.get(), Open("a").get()), true);
  EXPECT_EQ(IsAbove(Open("a").get(), slash.get()), false);
}

TEST_F(FolderTest, WhereThatCannotBeFoundOutItIsSaid) {
  EXPECT_EQ(IsAbove(-1, Open("a").get()), std::nullopt);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace tracefs
