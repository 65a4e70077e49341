#include "filters/input/advice.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "filters/input/filter.h"
#include "filters/input/glob.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

using testing::FakeNames;

// The warnings about a filter, one a line.
std::string Said(std::string_view text) {
  NameTable names;
  const auto filter = Filter::Compile(text, {.file = "f"}, FakeNames(), names);
  if (!filter.ok()) return filter.status().message();
  std::string said;
  for (const std::string& warning : filter->warnings()) {
    said += (said.empty() ? "" : "\n") + warning;
  }
  return said;
}

TEST(AdviceTest, SaysWhatWasProbablyMeant) {
  const std::pair<const char*, const char*> cases[] = {
      {"path ~ *.c",
       "f:1:8: '*.c' matches no path: a path begins with '/', which neither * "
       "nor ? nor [ ] match; did you mean name ~ *.c or path ~ **/*.c?"},
      {"cuid = 0 AND\n path ~ ?ome/x",
       "f:2:9: '?ome/x' matches no path: a path begins with '/', which neither "
       "* nor ? nor [ ] match; did you mean path ~ **/?ome/x?"},
      {"cname = updatedb.plocate",
       "f:1:9: 'updatedb.plocate' is longer than the 15 bytes that the kernel "
       "keeps of a program's name; did you mean 'updatedb.plocat'?"},
      {"comm IN { sh systemd-networkd }",
       "f:1:14: 'systemd-networkd' is longer than the 15 bytes that the kernel "
       "keeps of a program's name; did you mean 'systemd-network'?"},
      {"cname ~ *-thumbnailer-server",
       "f:1:9: '*-thumbnailer-server' is longer than the 15 bytes that the "
       "kernel keeps of a program's name"},
      {"latency > 5",
       "f:1:11: '5' has no unit and means nanoseconds; did you mean 5ms? (ns "
       "us "
       "ms s m h)"},
      {"uid = 0 AND uid = 1",
       "f:1:13: nothing satisfies both 'uid = 1' and 'uid = 0'; did you mean "
       "OR?"},
      {"op = read OR (op = write AND op = close)",
       "f:1:30: nothing satisfies both 'op = close' and 'op = write'; did you "
       "mean OR?"},
      {"size > 10 AND size < 5",
       "f:1:15: nothing satisfies both 'size < 5' and 'size > 10'; did you "
       "mean "
       "OR?"},
      {"cname = sh AND comm = bash",
       "f:1:16: nothing satisfies both 'comm = bash' and 'cname = sh'; did you "
       "mean OR?"},
      {"uid = 0 AND NOT uid = 0",
       "f:1:17: nothing satisfies both 'NOT (uid = 0)' and 'uid = 0'; did you "
       "mean OR?"},
      {"errno = EIO AND result >= 0",
       "f:1:17: nothing satisfies both 'result >= 0' and 'errno = EIO'; did "
       "you "
       "mean OR?"},
      {"result = -2",
       "f:1:10: the result of what fails is -1, whatever the error; did you "
       "mean errno = ENOENT and the like?"},
      {"op IN { unlink rmdir } AND offset > 5",
       "f:1:28: none of the operations that the rest lets through has "
       "'offset'"},
      {"op IN { read write } AND path2 = /a",
       "f:1:26: none of the operations that the rest lets through has 'path2'"},
      {"op = read AND flags ~ O_CREAT",
       "f:1:15: no operation that the rest lets through has such flags: the "
       "kernel tells O_CREAT O_EXCL O_NOCTTY only when it creates, O_TRUNC "
       "only when it opens"},
      {"path2 ~ *.c",
       "f:1:9: '*.c' matches no path: a path begins with '/', which neither * "
       "nor ? nor [ ] match; did you mean name ~ *.c or path ~ **/*.c?"},
      // What no single part shows.
      {"NOT (uid = 0 OR NOT uid = 0 OR 1=1)", "f:1:32: unknown predicate '1'"},
      {"(op = read OR op = write) AND (op = open OR op = close)",
       "f:1:1: no operation satisfies this filter"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(Said(text), said) << text;
}

TEST(AdviceTest, SaysNothingOfWhatCanMatch) {
  for (const char* text : {"",
                           "path ~ **.c",
                           "path ~ */x",
                           "path ~ /*.c",
                           "path ~ \\/x",
                           "path = /a",
                           "cname = fifteen_bytes_x",
                           "cname != sixteen_bytes_xx",
                           "cname ~ sixteen*",
                           "cname ~ [a-z][a-z]*",
                           "latency > 5ms",
                           "latency > 10000000",
                           "latency > 0",
                           "uid = 0 OR uid = 1",
                           "uid != 0 AND uid != 1",
                           "size > 5 AND size < 10",
                           "name = a AND name = b",
                           "ext = c AND ext = h",
                           "result = -1",
                           "result < 0 AND errno = EIO",
                           "errno = 0 AND result > 5",
                           "op = read AND offset > 5",
                           "op != read",
                           "NOT op = read",
                           "mode ~ 0100 AND mode ~ 0010",
                           "op = open AND flags ~ O_CREAT",
                           "op = create AND flags ~ O_CREAT | O_EXCL",
                           "op IN { read open } AND flags ~ O_TRUNC",
                           "op = read AND flags ~ O_RDWR",
                           "op = read AND NOT flags ~ O_CREAT",
                           "op = read AND flags IN { O_CREAT O_RDONLY }",
                           "flags ~ O_CREAT",
                           "op = rename AND flags = 0x40",
                           "inode = 1 AND inode = 2",
                           "op = link AND path2 = /a",
                           "op IN { read unlink } AND offset > 5",
                           "(uid = 0 AND gid = 0) OR (uid = 1 AND gid = 1)"}) {
    EXPECT_EQ(Said(text), "") << text;
  }
}

// The one rule about patterns, against patterns that run.
TEST(AdviceTest, SaysOfPathsThatNothingMatchesOnlyWhereNothingDoes) {
  const std::string alphabet = "*?/a\\[]";
  const std::vector<std::string> paths = {"/",   "/a",  "/aa",   "/a/a",
                                          "/[",  "/]",  "/a/aa", "/*",
                                          "//a", "/a/", "/a/a/a"};
  size_t quiet = 0;
  size_t warned = 0;
  for (size_t number = 0; number < 7 * 7 * 7 * 7; ++number) {
    std::string pattern;
    for (size_t n = number, i = 0; i < 4; ++i, n /= 7) {
      pattern += alphabet[n % 7];
    }
    const auto glob = Glob::Compile(pattern, GlobKind::kPath);
    const auto ast = ParseFilter("path ~ \"x\"", "f");
    ASSERT_TRUE(ast.ok());
    if (!glob.ok()) continue;
    Ast changed = *ast;
    changed.predicate.values[0].words[0].text = pattern;
    CheckedFilter checked;
    checked.kind = Ast::Kind::kPredicate;
    checked.predicate.form = Predicate::Form::kText;
    checked.predicate.field = Field::kPath;
    const bool says = !AdviseOn(changed, checked, "f").empty();
    ++(says ? warned : quiet);
    if (!says) continue;
    for (const std::string& path : paths) {
      EXPECT_FALSE(glob->Matches(path)) << pattern << ' ' << path;
    }
  }
  EXPECT_GT(warned, 100u);
  EXPECT_GT(quiet, 100u);
}

TEST(AdviceTest, Malicious_NoMoreIsSaidThanAnyoneReads) {
  std::string text = "latency > 5";
  for (int i = 0; i < 1000; ++i) text += " OR latency > 5";
  NameTable names;
  const auto filter = Filter::Compile(text, {.file = "f"}, FakeNames(), names);
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->warnings().size(), kMaxAdvice);
}

TEST(FilterTest, KnowsWhichOperationsItsTextNames) {
  NameTable names;
  const auto named = [&](std::string_view text, Op op) {
    const auto filter = Filter::Compile(text, {}, FakeNames(), names);
    return filter.ok() && filter->Names(op);
  };
  EXPECT_TRUE(named("op = flock", Op::flock_));
  EXPECT_TRUE(named("uid = 0 OR NOT (OP IN { read FLOCK })", Op::flock_));
  EXPECT_TRUE(named("op != flock", Op::flock_));
  EXPECT_FALSE(named("op != flock", Op::setlk_));
  EXPECT_FALSE(named("name = flock OR path = /flock", Op::flock_));
  EXPECT_FALSE(named("", Op::flock_));
}

}  // namespace
}  // namespace tracefs
