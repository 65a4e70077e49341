#include "tracefs/replay/acl.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/replay/acl_text.h"
#include "tracefs/format/state_message.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs::replay {
namespace {

constexpr char kForAll[] = "u:rwx 1234:rwx g:rwx m:rwx o:rwx";

std::optional<mode_t> ModeOf(std::string_view words) {
  return ModeOfAcl(AsBytes(AclText(words)));
}

TEST(AclTest, TheModeThatAFileHasWithIt) {
  EXPECT_EQ(ModeOf("u:rw g:r o:"), 0640u);
  EXPECT_EQ(ModeOf("u:rwx g: o:x"), 0701u);
  EXPECT_EQ(ModeOf("u:r 1234:rwx g:r m:rw o:w"), 0462u);
  EXPECT_EQ(ModeOf("m: u:r g:rwx o:r"), 0404u);
}

TEST(AclTest, AnUnreadableOneSaysNothing) {
  EXPECT_EQ(ModeOf(""), std::nullopt) << "it stands for none";
  EXPECT_EQ(ModeOf("u:rw g:r"), std::nullopt);
  EXPECT_EQ(ModeOf("g:r o:r"), std::nullopt);
  EXPECT_EQ(ModeOf("u:r 1:r o:r"), std::nullopt);
  EXPECT_EQ(ModeOfAcl({}), std::nullopt);
  const std::string whole = AclText("u:rw g:r o:");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(ModeOfAcl(AsBytes(whole.substr(0, size))), std::nullopt) << size;
  }
}

// The mode that the kernel gives a file with it is the judge.
TEST(AclTest, TheKernelAgrees) {
  const TempFolder folder;
  const std::string f = folder.Path("f");
  const UniqueFd fd(::open(f.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  for (const char* words :
       {"u:rw g:r o:", "u:rwx g: o:x", "u:r 1234:rwx g:r m:rw o:w"}) {
    const std::string acl = AclText(words);
    if (::setxattr(f.c_str(), kAccessAcl, acl.data(), acl.size(), 0) != 0) {
      GTEST_SKIP() << "no ACLs here";
    }
    struct stat st;
    ASSERT_EQ(::fstat(fd.get(), &st), 0);
    EXPECT_EQ(ModeOf(words), st.st_mode & 0777u) << words;
  }
}

TEST(AclTest, FilesOfTheInitialTreeInheritNone) {
  const TempFolder folder;
  PlanHeader header;
  header.dir_slots = 4;
  TargetOptions options;
  options.grants.Add(Privilege::kOwner);
  const auto tree = TargetTree::Open(
      UniqueFd(::open(folder.Path("").c_str(), O_PATH | O_DIRECTORY)), header,
      options);
  const auto place = [&](uint32_t parent, const char* name, uint32_t mode,
                         uint32_t slot, const std::string& acl = {}) {
    TreeEntry entry;
    entry.parent = parent;
    entry.name = name;
    entry.mode = mode;
    entry.slot = slot;
    const auto add = [&](std::string_view text) {
      for (size_t n = text.size(), i = 0; i < 4; ++i, n >>= 8) {
        entry.xattrs += static_cast<char>(n & 255);
      }
      entry.xattrs += text;
    };
    if (!acl.empty()) {
      add(kDefaultAcl);
      add(acl);
    }
    ASSERT_TRUE(tree->Place(entry, /*make=*/true).ok()) << name;
  };
  place(kRootSlot, "d", S_IFDIR | 0750, 1, AclText(kForAll));
  if (::getxattr(folder.Path("d").c_str(), kDefaultAcl, nullptr, 0) <= 0) {
    GTEST_SKIP() << "no ACLs here";
  }
  place(1, "f", S_IFREG | 0640, kNoSlot);
  place(1, "e", S_IFDIR | 0700, 2);
  place(1, "own", S_IFDIR | 0700, 3, AclText("u:rwx g: o:"));
  place(1, "l", S_IFLNK | 0777, kNoSlot);
  place(1, "p", S_IFIFO | 0604, kNoSlot);
  const auto has = [&](const std::string& name, const char* acl) {
    return ::getxattr(folder.Path("d/" + name).c_str(), acl, nullptr, 0) > 0;
  };
  for (const char* name : {"f", "e", "own", "p"}) {
    EXPECT_FALSE(has(name, kAccessAcl)) << name;
    EXPECT_EQ(has(name, kDefaultAcl), std::string_view(name) == "own") << name;
  }
  struct stat st;
  ASSERT_EQ(::stat(folder.Path("d/p").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777u, 0604u);
}

}  // namespace
}  // namespace tracefs::replay
