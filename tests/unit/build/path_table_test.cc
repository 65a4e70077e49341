#include "tracefs/build/path_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tracefs::build {
namespace {

TEST(PathTableTest, APathHasOneNumberHoweverItIsSpelt) {
  PathTable paths;
  const auto id = paths.Intern("/usr/include/stdio.h");
  for (const char* spelling :
       {"/usr//include/stdio.h", "/usr/./include/stdio.h",
        "/usr/lib/../include/stdio.h", "usr/include/stdio.h",
        "/../usr/include/stdio.h", "/usr/include/stdio.h/"}) {
    EXPECT_EQ(paths.Intern(spelling), id) << spelling;
    EXPECT_EQ(paths.Find(spelling), id) << spelling;
  }
  EXPECT_EQ(paths.Text(id), "/usr/include/stdio.h");
  EXPECT_EQ(paths.Name(id), "stdio.h");
}

TEST(PathTableTest, TheRootIsAPath) {
  PathTable paths;
  EXPECT_EQ(paths.Intern("/"), PathTable::kRoot);
  EXPECT_EQ(paths.Intern("/a/.."), PathTable::kRoot);
  EXPECT_EQ(paths.Text(PathTable::kRoot), "/");
}

TEST(PathTableTest, WhatWasNeverThereIsNotFound) {
  PathTable paths;
  paths.Intern("/a/b");
  EXPECT_EQ(paths.Find("/a/c"), PathTable::kNone);
  EXPECT_EQ(paths.Find("/b"), PathTable::kNone);
  EXPECT_NE(paths.Find("/a"), PathTable::kNone);
}

TEST(PathTableTest, ManyPathsKeepTheirNumbersAndTexts) {
  PathTable paths;
  std::vector<PathTable::Id> ids;
  const auto name = [](int i) {
    return "/d" + std::to_string(i % 97) + "/\xff=,\n" + std::to_string(i);
  };
  for (int i = 0; i < 20000; ++i) ids.push_back(paths.Intern(name(i)));
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(paths.Find(name(i)), ids[i]);
    ASSERT_EQ(paths.Text(ids[i]), name(i));
  }
}

TEST(PathTableTest, ADirectoryKnowsWhatIsInIt) {
  PathTable paths;
  const auto directory = paths.Intern("/a/d");
  const auto x = paths.InternBelow(directory, "x");
  const auto y = paths.InternBelow(directory, "y/z");
  EXPECT_TRUE(paths.IsBelow(y, directory));
  EXPECT_FALSE(paths.IsBelow(directory, y));
  size_t children = 0;
  for (auto c = paths.FirstIn(directory); c != PathTable::kNone;
       c = paths.NextIn(c)) {
    ++children;
  }
  EXPECT_EQ(children, 2u);
  EXPECT_EQ(paths.Parent(x), directory);
  // From the root again.
  EXPECT_EQ(paths.InternBelow(directory, "/a"), paths.Find("/a"));
}

}  // namespace
}  // namespace tracefs::build
