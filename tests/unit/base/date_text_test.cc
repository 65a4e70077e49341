#include "tracefs/base/date_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace tracefs {
namespace {

TEST(DateTextTest, WritesTimesInBothZones) {
  ::setenv("TZ", "XYZ-02:00", 1);
  ::tzset();
  EXPECT_EQ(UtcText(1767362587, "%Y-%m-%dT%H:%M:%SZ"), "2026-01-02T14:03:07Z");
  EXPECT_EQ(LocalText(1767362587, "%F %T %z"), "2026-01-02 16:03:07 +0200");
  EXPECT_EQ(UtcText(0, "date=%Y-%m-%d"), "date=1970-01-01");
}

TEST(DateTextTest, IsEmptyBeyondTheYears) {
  constexpr time_t kLast = std::numeric_limits<time_t>::max();
  EXPECT_EQ(UtcText(kLast, "%Y"), "");
  EXPECT_EQ(LocalText(kLast, "%Y"), "");
}

}  // namespace
}  // namespace tracefs
