// The main of every GoogleTest executable. It differs from GoogleTest's own in
// one thing: when every case was skipped (no /dev/fuse, not root), the process
// ends with TRACEFS_SKIPPED, so that ctest counts the test as skipped instead
// of as passed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  const bool all_skipped =
      unit.skipped_test_count() > 0 && unit.successful_test_count() == 0;
  return status == 0 && all_skipped ? TRACEFS_SKIPPED : status;
}
