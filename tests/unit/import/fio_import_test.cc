// Iologs of fio, as operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/import/imported.h"

namespace tracefs::import {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

Imported Fio(std::string_view text) { return Import(Foreign::kFio, text); }

TEST(FioImportTest, Version3HasTimesAndWhatIsReadFirstWasThere) {
  const Imported made = Fio(R"(fio version 3 iolog
23 ./a/f add
40 ./new add
192 ./a/f open
195 ./a/f read 0 4096
300 ./a/f write 8192 4096
310 ./a/f read 8192 4096
400 ./new open
401 ./new write 0 10
402 ./new read 0 10
403 ./new sync 0 0
404 ./new trim 0 5
500 ./a/f close
)");
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  EXPECT_THAT(
      made.operations,
      ElementsAre("lookup /a/f", "open /a/f", "read /a/f 0+4096=4096",
                  "write /a/f 8192+4096=4096", "read /a/f 8192+4096=4096",
                  "create /new", "write /new 0+10=10", "read /new 0+10=10",
                  "fsync /new", "fallocate /new 0+5", "release /a/f",
                  "release /new"));
}

TEST(FioImportTest, Version2WaitsInsteadOfHavingTimes) {
  const Imported made =
      Fio("fio version 2 iolog\nf add\nf open\nf wait 1000 0\nf write 0 1\n"
          "f datasync 0 0\nf close\nf open\nf read 0 1\nf close\n");
  EXPECT_THAT(made.operations, ElementsAre("create /f", "write /f 0+1=1",
                                           "fsync /f", "release /f", "open /f",
                                           "read /f 0+1=1", "release /f"));
}

TEST(FioImportTest, Malicious_NumbersAndNamesAreBounded) {
  const Imported made = Fio(R"(fio version 3 iolog
1 f open
99999999999999999999 f write 0 1
2 f write 18446744073709551615 1
3 f write 0 99999999999
4 ../../f/g write 0 1
5 / write 0 1
6 f explode 0 1
7 f
)");
  ASSERT_TRUE(made.status.ok());
  EXPECT_THAT(made.operations, ElementsAre("create /f", "release /f"));
  const auto& out = made.counts.left_out.counts();
  for (const char* key : {"without a time", "numbers", "names", "explode",
                          "directories of others", "not a line"}) {
    EXPECT_THAT(out, Contains(Key(HasSubstr(key)))) << key;
  }
}

TEST(FioImportTest, OtherTextIsRefused) {
  EXPECT_FALSE(Fio("fio version 1 iolog\n").status.ok());
  EXPECT_FALSE(Fio("").status.ok());
}

}  // namespace
}  // namespace tracefs::import
