// Why a file was made again: what was asked for, not what names were made up.
#include "tracefs/build/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/build_scene.h"
#include "tracefs/build/temporary_names.h"

namespace tracefs::build {
namespace {

using ::testing::ElementsAre;
using Scene = test::BuildScene<GraphBuilder>;

TEST(TemporaryNamesTest, AreTheSameWhateverWasMadeUp) {
  for (const auto& [text, same] :
       std::vector<std::pair<const char*, const char*>>{
           {"as --64 -o a.o /tmp/ccAb3dE9.s", "as --64 -o a.o /tmp/*.s"},
           {"ld -plugin-opt=-fresolution=/tmp/cc9hKqLz.res -o x",
            "ld -plugin-opt=-fresolution=/tmp/*.res -o x"},
           {"clang -cc1 -o /tmp/main-1a2b3c.o", "clang -cc1 -o /tmp/*.o"},
           {"cc /tmp/tmp.q8Xc2LmPz1/conf.c", "cc /tmp/*/conf.c"},
           {"gcc @/var/tmp/ccZZZZZZ", "gcc @/var/tmp/*"},
           {"python3 /tmp/tmpab12cd_f/x.py", "python3 /tmp/*/x.py"},
           {"cc /tmp/config.c /tmp/ccache/x.c",
            "cc /tmp/config.c /tmp/ccache/x.c"},
           {"cc /src/ccAb3dE9.c", "cc /src/ccAb3dE9.c"},
           {"/tmp/", "/tmp/"}}) {
    EXPECT_EQ(WithoutTemporaryNames(text), same);
  }
  EXPECT_TRUE(IsTemporary("/tmp/ccAb3dE9.s"));
  EXPECT_TRUE(IsTemporary("/tmp/ccAb3dE9"));  // words of a long command line
  EXPECT_TRUE(IsTemporary("/tmp/ccConfig.o"));
  EXPECT_FALSE(IsTemporary("/tmp/ccConfig"));
  EXPECT_FALSE(IsTemporary("/tmp/ccConfig/a.c"));
  EXPECT_FALSE(IsTemporary("/src/tmp/ccAb3dE9.s"));
  EXPECT_FALSE(IsTemporary("/tmp/build/a.s"));
}

struct Compiling {
  std::string options;
  std::string temporary = "/tmp/ccAAAAAA.s";
  uint64_t mtime_ns = 1'000'000'000;
  bool traced = false;  // the temporary file as well
};

// make runs gcc, and that cc1 and as, with a file in /tmp in between.
BuildGraph Compile(const Compiling& how) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/gcc " + how.options + " -c a.c -o a.o");
  scene.Run(2, 3,
            "/usr/lib/gcc/cc1 " + how.options + " a.c -o " + how.temporary);
  FileStep source = scene.Step(3, Op::open_, "/src/a.c");
  source.size = 100;
  source.mtime_ns = how.mtime_ns;
  source.has_attributes = true;
  scene.Take(source);
  if (how.traced) scene.Create(3, how.temporary);
  scene.Exit(3);
  scene.Run(2, 4, "/usr/bin/as -o a.o " + how.temporary);
  if (how.traced) scene.Open(4, how.temporary);
  scene.Create(4, "/src/a.o");
  scene.Exit(4);
  scene.Exit(2);
  scene.Exit(1);
  return builder.Finish();
}

using Told = std::vector<std::string>;

Told WhyAgain(const Compiling& before, const Compiling& after) {
  const BuildGraph old = Compile(before);
  const BuildGraph now = Compile(after);
  Told told;
  for (const RebuildReason& reason :
       WhyRebuilt(old, now, {}, {}, now.paths().Find("/src/a.o"))) {
    told.push_back(std::string(RebuildReasonName(reason.kind)) + " " +
                   now.paths().Text(reason.target) + reason.path + " " +
                   reason.after);
  }
  return told;
}

TEST(RebuildTest, AnOptionOfTheDriverIsTheReasonNotAName) {
  EXPECT_THAT(WhyAgain({.options = "-O1"},
                       {.options = "-O2", .temporary = "/tmp/ccBBBBBB.s"}),
              ElementsAre("command /src/a.o /usr/bin/gcc -O2 -c a.c -o a.o"));
}

TEST(RebuildTest, NothingButANameIsNoReason) {
  for (const bool traced : {false, true}) {
    EXPECT_THAT(WhyAgain({.options = "-O1", .traced = traced},
                         {.options = "-O1",
                          .temporary = "/tmp/ccBBBBBB.s",
                          .traced = traced}),
                ElementsAre("nothing-seen /src/a.o "));
  }
}

TEST(RebuildTest, WhatATemporaryFileWasMadeFromCounts) {
  ASSERT_EQ(::setenv("TZ", "XYZ-02:00", 1), 0);
  EXPECT_THAT(
      WhyAgain({.options = "-O1", .traced = true},
               {.options = "-O1",
                .temporary = "/tmp/ccBBBBBB.s",
                .mtime_ns = 2'000'000'000,
                .traced = true}),
      ElementsAre("input-changed /src/a.o/src/a.c 100 bytes, modified at "
                  "1970-01-01T02:00:02.000000"));
  ::unsetenv("TZ");
}

}  // namespace
}  // namespace tracefs::build
