#include "tracefs/export/buildxl_names.h"

#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <string>
#include <vector>

namespace tracefs::buildxl {
namespace {

class NamesTest : public ::testing::Test {
 protected:
  void Do(Op op, std::string_view path, uint32_t mode = S_IFREG,
          uint32_t error = 0) {
    build::FileStep step;
    step.op = op;
    step.path = path;
    step.mode = mode;
    step.error = error;
    names_.Take(step);
  }
  std::vector<std::string> Rename(std::string_view from, std::string_view to,
                                  uint32_t mode = S_IFDIR, uint32_t flags = 0) {
    build::FileStep step;
    step.op = Op::rename_;
    step.path = from;
    step.path2 = to;
    step.mode = mode;
    step.flags = flags;
    std::vector<std::string> told;
    for (const Names::Moved& m : names_.Rename(step, &budget_)) {
      told.push_back(paths_.Text(m.from) + ">" + paths_.Text(m.to) +
                     (m.is_directory ? "/" : ""));
    }
    return told;
  }

  using Told = std::vector<std::string>;
  size_t budget_ = 1000;
  build::PathTable paths_;
  Names names_{paths_};
};

TEST_F(NamesTest, WhatIsBelowADirectoryMovesWithIt) {
  Do(Op::mkdir_, "/d");
  Do(Op::create_, "/d/b");
  Do(Op::lookup_, "/d/a");
  Do(Op::open_, "/d/sub/x");  // a directory that only this tells of
  Do(Op::create_, "/dd");
  Do(Op::lookup_, "/d/none", 0, ENOENT);
  Do(Op::create_, "/d/gone");
  Do(Op::unlink_, "/d/gone");
  EXPECT_EQ(Rename("/d", "/e"), (Told{"/d>/e/", "/d/a>/e/a", "/d/b>/e/b",
                                      "/d/sub>/e/sub/", "/d/sub/x>/e/sub/x"}));
  EXPECT_EQ(Rename("/e/sub", "/s"), (Told{"/e/sub>/s/", "/e/sub/x>/s/x"}));
  EXPECT_EQ(Rename("/e", "/d"), (Told{"/e>/d/", "/e/a>/d/a", "/e/b>/d/b"}));
}

TEST_F(NamesTest, AFileMovesAlone) {
  Do(Op::create_, "/a");
  EXPECT_EQ(Rename("/a", "/b", S_IFREG), Told{"/a>/b"});
  EXPECT_EQ(Rename("/never/seen", "/b", 0), Told{"/never/seen>/b"});
}

TEST_F(NamesTest, AnExchangeMovesBoth) {
  Do(Op::create_, "/a/x");
  Do(Op::create_, "/b/y");
  EXPECT_EQ(Rename("/a", "/b", S_IFDIR, RENAME_EXCHANGE),
            (Told{"/a>/b/", "/a/x>/b/x", "/b>/a/", "/b/y>/a/y"}));
  EXPECT_EQ(Rename("/a", "/c"), (Told{"/a>/c/", "/a/y>/c/y"}));
}

TEST_F(NamesTest, WhatNoKernelDoesMovesNothing) {
  Do(Op::create_, "/a/x");
  EXPECT_TRUE(Rename("/a", "/a/b").empty());
  EXPECT_TRUE(Rename("/a", "/").empty());
  EXPECT_TRUE(Rename("/a", "/a").empty());
}

TEST_F(NamesTest, NoMoreNamesAreLookedAtThanTheBudgetHas) {
  for (int i = 0; i < 5000; ++i) Do(Op::create_, "/d/" + std::to_string(i));
  EXPECT_LE(Rename("/d", "/e").size(), 1001u);
  EXPECT_EQ(budget_, 0u);
  EXPECT_EQ(Rename("/e", "/f").size(), 1u);
}

}  // namespace
}  // namespace tracefs::buildxl
