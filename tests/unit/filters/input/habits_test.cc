// Words of other tools: each is answered with what it is called here, and what
// is proposed is taken.
#include "filters/input/habits.h"

#include <gtest/gtest.h>

#include "filters/input/filter.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"

namespace tracefs {
namespace {

std::string ErrorOf(const std::string& filter) {
  NameTable names;
  const Result<Filter> compiled =
      Filter::Compile(filter, {.file = "filter"}, SystemNameService(), names);
  return compiled.ok() ? "" : compiled.status().message();
}

struct Typed {
  const char* filter;
  const char* wrong;
  const char* meant;
};

TEST(HabitsTest, WordsOfOtherToolsAreAnsweredWithOurs) {
  for (const Typed& typed : std::initializer_list<Typed>{
           {"op = stat", "stat", "getattr"},
           {"op = delete", "delete", "unlink"},
           {"op IN { read mv }", "mv", "rename"},
           {"op = chmod", "chmod", "setattr"},
           {"op = pwrite64", "pwrite64", "write"},
           {"op = raed", "raed", "read"},  // a slip, no habit
           {"cmd = make", "cmd", "cname"},
           {"command = make", "command", "cname"},
           {"file = \"/a\"", "file", "path"},
           {"ret = 0", "ret", "result"},
           {"duration > 1ms", "duration", "latency"},
           {"length > 10MB", "10MB", "10M"},
           {"length > 10KiB", "10KiB", "10K"},
           {"result > 4kb", "4kb", "4K"},
           {"size >= 512bytes", "512bytes", "512"},
           {"latency > 10sec", "10sec", "10s"},
           {"latency > 5min", "5min", "5m"}}) {
    const std::string error = ErrorOf(typed.filter);
    EXPECT_NE(error.find("did you mean '" + std::string(typed.meant) + "'?"),
              std::string::npos)
        << typed.filter << ": " << error;
    std::string mended = typed.filter;
    mended.replace(mended.find(typed.wrong), std::string(typed.wrong).size(),
                   typed.meant);
    EXPECT_EQ(ErrorOf(mended), "") << mended;
  }
}

TEST(HabitsTest, NothingIsProposedForWhatNobodyMeant) {
  for (const char* filter :
       {"op = xyzzyplugh", "length > MB", "length > 10parsecs",
        "length > 99999999999999999999MB"}) {
    EXPECT_EQ(ErrorOf(filter).find("did you mean"), std::string::npos)
        << ErrorOf(filter);
    EXPECT_NE(ErrorOf(filter), "");
  }
}

}  // namespace
}  // namespace tracefs
