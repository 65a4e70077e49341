#include "filters/input/check.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/support/filter_dump.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

using testing::Dump;
using testing::FakeNames;

std::string Checked(std::string_view text) {
  const auto ast = ParseFilter(text, "f");
  if (!ast.ok()) return ast.status().message();
  const auto checked = CheckFilter(*ast, "f", FakeNames());
  if (!checked.ok()) return checked.status().message();
  std::string dump = Dump(*checked);
  if (dump.ends_with('\n')) dump.pop_back();
  return dump;
}

TEST(CheckTest, WhatIsNotKnownCanBeAskedFor) {
  const std::pair<const char*, const char*> cases[] = {
      {"cname = unknown", "not\n  cname is known"},
      {"cname != UNKNOWN", "cname is known"},
      {"cname = \"unknown\"", "cname = unknown"},
      {"cppid = unknown", "not\n  cppid is known"},
      {"cpid != unknown", "cpid is known"},
      {"syscall = unknown", "not\n  syscall is known"},
      {"cexe = unknown", "not\n  cexe is known"},
      {"cargs != unknown", "cargs is known"},
      {"descendant of unknown", "not\n  descendant is known"},
      {"NOT ctty = unknown", "not\n  not\n    ctty is known"},
      {"cname IN { unknown sh }",
       "f:1:12: 'unknown' is compared with = and != only; quote it if it is "
       "meant literally"},
      {"cpid < unknown",
       "f:1:8: 'unknown' is compared with = and != only; quote it if it is "
       "meant literally"},
      // What is there or not by the operation has no third answer.
      {"name = unknown", "name = unknown"},
      {"offset = unknown",
       "f:1:10: 'offset' takes a number, as 4096, 0x1000 or 4K, not "
       "'unknown'"},
  };
  for (const auto& [text, dump] : cases) EXPECT_EQ(Checked(text), dump) << text;
}

TEST(CheckTest, CallersAndTheirCalls) {
  const std::pair<const char*, const char*> cases[] = {
      {"cppid = 1", "cppid = 1"},
      {"ppid > 1", "cppid >= 2"},
      {"cexe = /bin/sh", "cexe = /bin/sh"},
      {"cexe ~ /usr/**", "cexe ~ /usr/**"},
      {"exe != /bin/sh", "cexe != /bin/sh"},
      {"ccgroup IN { /a /b }", "ccgroup in { /a /b }"},
      {"cargs ~ \"* -c *\"", "cargs ~ \"* -c *\""},
      {"ctty = none", "ctty = none"},
      {"syscall = 0x7fffffff", "syscall = 2147483647"},
      {"syscall != openat", "syscall != openat"},
      {"syscall IN { openat OpenAt2 }", "syscall in { openat openat2 }"},
      {"descendant of make", "descendant of make"},
      {"DESCENDANT OF 42", "descendant of 42"},
      {"syscall = opennat",
       "f:1:11: unknown system call 'opennat'; did you mean 'openat'?"},
      {"syscall > read",
       "f:1:9: 'syscall' cannot be compared with >; it takes = != IN"},
      {"descendant = make",
       "f:1:12: expected 'of' after 'descendant', found '='"},
      {"cname of make",
       "f:1:7: expected an operator (= != < <= > >= IN ~) after 'cname', "
       "found 'of'"},
  };
  for (const auto& [text, dump] : cases) EXPECT_EQ(Checked(text), dump) << text;
}

TEST(CheckTest, WhatAnOperationAsksFor) {
  const std::pair<const char*, const char*> cases[] = {
      {"new_size < 4K", "new_size <= 4095"},
      {"new_mode ~ 04000", "new_mode & 04000 = 04000"},
      {"new_mode = 644", "new_mode = 0644"},
      {"new_uid = alice", "new_uid = 5"},
      {"new_gid IN { staff 7 }", "new_gid in { 1 7 }"},
      {"sets = size", "sets = size"},
      {"SETS IN { mode UID }", "sets in { mode uid }"},
      {"sets != mode", "sets in { uid gid size atime mtime }"},
      {"sets = mtime_now", "sets = mtime_now"},
      {"sets = sise",
       "f:1:8: unknown attribute 'sise' (known: mode uid gid size atime mtime "
       "atime_now mtime_now); did you mean 'size'?"},
      // Bits that say how the kernel asks, not what for.
      {"sets = fh",
       "f:1:8: unknown attribute 'fh' (known: mode uid gid size atime mtime "
       "atime_now mtime_now)"},
      {"sets ~ size",
       "f:1:6: 'sets' cannot be compared with ~; it takes = != IN"},
      {"sets = mode | uid",
       "f:1:15: '|' joins flags, and 'sets' has none; use IN { … }"},
      {"new_mode > 1",
       "f:1:10: 'new_mode' cannot be compared with >; it takes = != IN ~"},
  };
  for (const auto& [text, dump] : cases) EXPECT_EQ(Checked(text), dump) << text;
}

TEST(CheckTest, ValuesOfEveryType) {
  const std::pair<const char*, const char*> cases[] = {
      {"cuid = 0", "cuid = 0"},
      {"cuid = root", "cuid = 0"},
      {"cuid = \"alice\"", "cuid = 5"},
      {"cgid != staff", "cgid != 1"},
      {"fuid IN { root 4294967295 alice }", "fuid in { 0 5 4294967295 }"},
      {"fgid >= 100", "fgid >= 100"},
      {"cpid < 0x10", "cpid <= 15"},
      {"ctid > 5", "ctid >= 6"},
      {"offset >= 4K", "offset >= 4096"},
      {"length IN { 1 2 3 7 }", "length in { 1..3 7 }"},
      {"size <= 1g", "size <= 1073741824"},
      {"inode = 18446744073709551615", "inode = 18446744073709551615"},
      {"op = close", "op = release"},
      {"op != read", "op != read"},
      {"op IN { open, close read }",
       "op in { open create tmpfile read release }"},
      {"op = create", "op = create"},
      {"op != tmpfile", "op != tmpfile"},
      {"errno = EIO", "errno = EIO"},
      {"errno = 5", "errno = EIO"},
      {"errno = EWOULDBLOCK", "errno = EAGAIN"},
      {"errno > 0", "errno >= EPERM"},
      {"result = -1", "result = -1"},
      {"result < 0", "result <= -1"},
      {"result >= -4K", "result >= -4096"},
      {"result IN { -1 0 1 }", "result in { -1..1 }"},
      {"result > -9223372036854775808", "result >= -9223372036854775807"},
      {"latency >= 10ms", "latency >= 10000000"},
      {"latency < 1500", "latency <= 1499"},
      {"mode = 0644", "mode = 0644"},
      {"mode = 755", "mode = 0755"},
      {"mode ~ 0111", "mode & 0111 = 0111"},
      {"mode != 0600", "mode != 0600"},
      {"type = dir", "type = dir"},
      {"type IN { file link }", "type in { file link }"},
      {"flags = O_RDWR | O_CREAT", "flags = 0x42"},
      {"flags = O_RDONLY", "flags = 0x0"},
      {"flags ~ O_CREAT|O_EXCL", "flags & 0xc0 = 0xc0"},
      {"flags ~ O_RDONLY", "flags & 0x3 = 0x0"},
      {"flags ~ O_WRONLY | O_APPEND", "flags & 0x403 = 0x401"},
      {"flags ~ 0x400", "flags & 0x400 = 0x400"},
      {"flags IN { 0, RENAME_EXCHANGE }", "flags in { 0x0 0x2 }"},
      {"name = a", "name = a"},
      {"name != \"a b\"", "name != \"a b\""},
      {"name IN { b a b }", "name in { a b }"},
      {"name ~ *.[ch]", "name ~ *.[ch]"},
      {"name = \"*\"", "name = *"},
      {"ext = tex", "ext = tex"},
      {"path ~ /d/**", "path ~ /d/**"},
      {"path ~ **/x", "path ~ **/x"},
      {"path = /", "path = /"},
      {"path1 ~ /d/*", "path1 ~ /d/*"},
      {"PATH2 IN { /b /a }", "path2 in { /a /b }"},
      {"inode2 = 7", "inode2 = 7"},
      {"cname = sh", "cname = sh"},
      {"cname ~ kworker/*", "cname ~ kworker/*"},
      {"", "all"},
      {"NOT (cuid = 0 AND cgid = 1) OR ctid = 2",
       "or\n  not\n    and\n      cuid = 0\n      cgid = 1\n  ctid = 2"},
  };
  for (const auto& [text, dump] : cases) EXPECT_EQ(Checked(text), dump) << text;
}

// Figure 3 of the paper is written so.
TEST(CheckTest, WordsAreKnownInUpperAndLowerCase) {
  EXPECT_EQ(
      Checked("((UID = 0) && (Name = foo)) || ((GID = 4) && (Op = OPEN))"),
      "or\n  and\n    cuid = 0\n    name = foo\n  and\n    cgid = 4\n"
      "    op in { open create tmpfile }");
  EXPECT_EQ(Checked("CUID = root AND OP IN { CLOSE Read }"),
            "and\n  cuid = 0\n  op in { read release }");
  EXPECT_EQ(Checked("TYPE = DIR"), "type = dir");
  EXPECT_EQ(Checked("flags ~ o_creat"), "flags & 0x40 = 0x40");
  EXPECT_EQ(Checked("ERRNO = eio"), "errno = EIO");
  // What is not ours stays as it is.
  EXPECT_EQ(Checked("Name = FOO"), "name = FOO");
  EXPECT_EQ(Checked("uid = Root"), "f:1:7: there is no user 'Root'");
}

TEST(CheckTest, WhatIsOfTheCallerIsKnownWithAndWithoutItsC) {
  const std::pair<const char*, const char*> cases[] = {
      {"uid = 0", "cuid = 0"},     {"gid = 0", "cgid = 0"},
      {"tid = 5", "ctid = 5"},     {"pid = 5", "cpid = 5"},
      {"sid = 5", "csid = 5"},     {"pgid = 5", "cpgid = 5"},
      {"comm = sh", "cname = sh"}, {"name = sh", "name = sh"},
      {"size = 5", "size = 5"},    {"mode = 5", "mode = 05"},
  };
  for (const auto& [text, dump] : cases) EXPECT_EQ(Checked(text), dump) << text;
  // The keys of JSON Lines mean other things there.
  EXPECT_EQ(Checked("dur = 5").substr(0, 6), "f:1:1:");
  EXPECT_EQ(Checked("fsize = 5").substr(0, 6), "f:1:1:");
}

TEST(CheckTest, ErrorsNameThePlaceTheWordAndTheNearestKnownOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"cudi = 0", "f:1:1: unknown predicate 'cudi'; did you mean 'cuid'?"},
      {"frobnicate = 0", "f:1:1: unknown predicate 'frobnicate'"},
      {"cuid = 0 OR\n xuid = 1",
       "f:2:2: unknown predicate 'xuid'; did you mean 'cuid'?"},
      {"op < read", "f:1:4: 'op' cannot be compared with <; it takes = != IN"},
      {"cuid ~ 5",
       "f:1:6: 'cuid' cannot be compared with ~; it takes = != < "
       "<= > >= IN"},
      {"name > a",
       "f:1:6: 'name' cannot be compared with >; it takes = != IN "
       "~"},
      {"mode >= 0600",
       "f:1:6: 'mode' cannot be compared with >=; it takes = "
       "!= IN ~"},
      {"type ~ dir",
       "f:1:6: 'type' cannot be compared with ~; it takes = != "
       "IN"},
      {"op = wirte", "f:1:6: unknown operation 'wirte'; did you mean 'write'?"},
      {"op IN { read sync }",
       "f:1:14: unknown operation 'sync'; did you mean "
       "'fsync'?"},
      {"cuid = nobody", "f:1:8: there is no user 'nobody'"},
      {"cuid = -1", "f:1:8: there is no user '-1'"},
      {"cgid = wheel", "f:1:8: there is no group 'wheel'"},
      {"cuid = 4294967296",
       "f:1:8: '4294967296' is too large for 'cuid', "
       "which ends at 4294967295"},
      {"cpid = 4G",
       "f:1:8: '4G' is too large for 'cpid', which ends at "
       "4294967295"},
      {"offset = 18446744073709551616",
       "f:1:10: 'offset' takes a number, as "
       "4096, 0x1000 or 4K, not "
       "'18446744073709551616'"},
      {"offset = -1",
       "f:1:10: 'offset' takes a number, as 4096, 0x1000 or 4K, "
       "not '-1'"},
      {"offset < 0", "f:1:10: no value of 'offset' lies below '0'"},
      {"cuid > 4294967295",
       "f:1:8: no value of 'cuid' lies above "
       "'4294967295'"},
      {"result = 1x",
       "f:1:10: 'result' takes a number, as -1 or 4K, not "
       "'1x'"},
      {"result = 9223372036854775808",
       "f:1:10: 'result' takes a number, as -1 "
       "or 4K, not '9223372036854775808'"},
      {"result > 9223372036854775807",
       "f:1:10: no value of 'result' lies "
       "above '9223372036854775807'"},
      {"errno = EI0",
       "f:1:9: 'errno' takes an error, as EIO or 5, not 'EI0'; "
       "did you mean 'EIO'?"},
      {"latency = 1.5x",
       "f:1:11: 'latency' takes a duration, as 250us, 10ms "
       "or 2s, not '1.5x'"},
      {"mode = 0888",
       "f:1:8: 'mode' takes an octal number, as 0644, not "
       "'0888'"},
      {"mode = 0100644",
       "f:1:8: '0100644' is too large for 'mode', which ends "
       "at 07777"},
      {"mode ~ 0", "f:1:8: '0' has no bit to look for; use ="},
      {"flags ~ O_CRAET",
       "f:1:9: unknown flag 'O_CRAET'; did you mean "
       "'O_CREAT'?"},
      {"flags ~ 0", "f:1:9: '0' has no bit to look for; use ="},
      {"flags ~ O_RDONLY | O_WRONLY",
       "f:1:20: 'O_WRONLY' and the words before "
       "it exclude each other"},
      {"flags = 4294967296",
       "f:1:9: '4294967296' is too large for 'flags', "
       "which ends at 0xffffffff"},
      {"type = directory",
       "f:1:8: unknown file type 'directory' (known: file "
       "dir link fifo sock char block)"},
      {"type = dri",
       "f:1:8: unknown file type 'dri' (known: file dir link "
       "fifo sock char block); did you mean 'dir'?"},
      {"cuid = 0 | 1",
       "f:1:12: '|' joins flags, and 'cuid' has none; use IN { "
       "… }"},
      {"name = a/b", "f:1:8: a name holds no '/': 'a/b' can only be a path"},
      {"name = \"\"", "f:1:8: no 'name' is ever empty"},
      {"name = *.tex",
       "f:1:8: '*.tex' looks like a pattern: use ~, or quote "
       "it if it is meant literally"},
      {"name ~ [ab", "f:1:8: '[ab' is a '[' without its ']'"},
      {"name ~ a\\", "f:1:8: 'a\\' is a backslash with nothing after it"},
      {"ext = .tex",
       "f:1:7: an extension holds no '.' and no '/': '.tex'; it "
       "is written without its dot"},
      {"ext ~ *.gz",
       "f:1:7: an extension holds no '.' and no '/': '*.gz'; it "
       "is written without its dot"},
      {"path = etc/passwd",
       "f:1:8: a path begins with '/', the mount point; "
       "'etc/passwd' does not"},
      {"path ~ d/**",
       "f:1:8: a path begins with '/', the mount point; 'd/**' "
       "does not"},
      {"path = /d/", "f:1:8: no path ends in '/', as '/d/' does"},
      {"path = /d//e", "f:1:8: no path holds '//', as '/d//e' does"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Checked(text), message) << text;
  }
  EXPECT_EQ(Checked("name = " + std::string(256, 'x')),
            "f:1:8: no 'name' is longer than 255 bytes");
  EXPECT_EQ(Checked("cname = " + std::string(64, 'x')),
            "f:1:9: no 'cname' is longer than 63 bytes");
  EXPECT_EQ(Checked("name ~ " + std::string(1025, '*')).substr(0, 6), "f:1:8:");
}

TEST(CheckTest, ANameServiceThatFailsIsTheSystemsRefusal) {
  const auto ast = ParseFilter("cuid = broken", "f");
  ASSERT_TRUE(ast.ok());
  const auto checked = CheckFilter(*ast, "f", FakeNames());
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(ExitStatus(checked.status()), 3);
  EXPECT_EQ(checked.status().message().substr(0, 13), "f:1:8: cuid: ");
}

TEST(CheckTest, TheSystemsNameServiceKnowsRoot) {
  const NameService& names = SystemNameService();
  const auto root = names.UserId("root");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(*root, 0u);
  const auto group = names.GroupId("root");
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(*group, 0u);
  const auto nobody = names.UserId("no such user, surely");
  ASSERT_TRUE(nobody.ok());
  EXPECT_EQ(*nobody, std::nullopt);
}

// Every row of the table with a predicate name is either usable or refused
// with a reason.
TEST(CheckTest, EveryPredicateOfTheFieldTableIsKnown) {
  for (const FieldInfo& info : Fields()) {
    if (info.predicate.empty()) continue;
    const std::string name(info.predicate);
    const std::string message = Checked(name + " = \"\x7f\"");
    EXPECT_EQ(message.find("unknown predicate"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tracefs
