// Undo gives back who may do what with a file, also where the kernel changes
// that along with something else; and never more than there was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/unit/replay/acl_text.h"
#include "tests/unit/replay/undo_world.h"
#include "tracefs/replay/acl.h"

namespace tracefs::replay {
namespace {

using testing::IsEmpty;

class UndoRightsTest : public UndoWorld {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "ACLs of others take root";
    if (::removexattr(live_.c_str(), kAccessAcl) != 0 && errno == EOPNOTSUPP) {
      GTEST_SKIP() << "no ACLs here";
    }
    Grant(Privilege::kOwner);
    Grant(Privilege::kSecurityXattr);
  }
  // Of what was there before.
  void HadXattr(const char* name, const char* key, const std::string& value) {
    mine_ = false;
    SetXattr(kRootSlot, name, key, value);
    mine_ = true;
  }
  void TakesBack(const std::map<std::string, std::string>& before) {
    EXPECT_THAT(Decide(), IsEmpty());
    EXPECT_THAT(Apply(), IsEmpty());
    EXPECT_EQ(Listing(live_), before);
  }
};

TEST_F(UndoRightsTest, TheMaskOfAnAclIsNotWhatTheGroupMayDo) {
  Has(kRootSlot, "f", S_IFREG | 0644, "F");
  const auto before = Listing(live_);
  SetXattr(kRootSlot, "f", kAccessAcl, AclText("u:rw 1234:rwx g:r m:rwx o:"));
  TakesBack(before);
}

TEST_F(UndoRightsTest, AnAclOfModesAloneIsAMode) {
  Has(kRootSlot, "f", S_IFREG | 0640, "F");
  const auto before = Listing(live_);
  SetXattr(kRootSlot, "f", kAccessAcl, AclText("u:rw g:rw o:r"));
  TakesBack(before);
}

TEST_F(UndoRightsTest, AnAclThatWasChangedOrRemovedIsThereAgain) {
  Has(kRootSlot, "f", S_IFREG | 0640, "F");
  HadXattr("f", kAccessAcl, AclText("u:rw 1234:rw g:r m:rw o:"));
  const auto before = Listing(live_);
  SetXattr(kRootSlot, "f", kAccessAcl, AclText("u:rwx 1234:r g: m:r o:r"));
  Chmod(kRootSlot, "f", 0600);
  RemoveXattr(kRootSlot, "f", kAccessAcl);
  TakesBack(before);
}

TEST_F(UndoRightsTest, WhatIsMadeAgainInheritsNoAcl) {
  const std::string all = AclText("u:rwx 1234:rwx g:rwx m:rwx o:rwx");
  Has(kRootSlot, "d", S_IFDIR | 0750, {}, 1);
  Has(1, "secret", S_IFREG | 0640, "F");
  Has(1, "e", S_IFDIR | 0700, {}, 2);
  HadXattr("d", kDefaultAcl, all);
  // So has the directory in which undo works.
  for (const std::string& top : {Live(kRoomOfUndo), live_}) {
    ASSERT_EQ(::setxattr(top.c_str(), kDefaultAcl, all.data(), all.size(), 0),
              0);
  }
  const auto before = Listing(live_);
  Unlink(1, "secret");
  RemoveDir(1, "e", 2);
  TakesBack(before);
}

TEST_F(UndoRightsTest, CapabilitiesThatTheKernelEndedAreThereAgain) {
  // cap_net_raw+ep (linux/capability.h: revision 2; two words of each).
  const std::string capability("\1\0\0\2\0\40\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  for (const char* name : {"written", "cut", "given", "moded"}) {
    Has(kRootSlot, name, S_IFREG | 0755, "0123456789");
    HadXattr(name, "security.capability", capability);
  }
  const auto before = Listing(live_);
  Write(kRootSlot, "written", 2, "abc");
  Resize(kRootSlot, "cut", 3);
  Chown(kRootSlot, "given", 7, 8);
  Chmod(kRootSlot, "moded", 0700);
  for (const char* name : {"written", "cut", "given"}) {
    ASSERT_LT(::getxattr(Live(name).c_str(), "security.capability", nullptr, 0),
              0)
        << name;
  }
  TakesBack(before);
}

}  // namespace
}  // namespace tracefs::replay
