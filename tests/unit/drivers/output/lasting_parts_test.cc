// What a later process is told of the parts of a trace in several files.
#include "drivers/output/lasting_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/output/file.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

TEST(LastingPartsTest, Malicious_ANumberOfPartsIsNotBelieved) {
  auto area = survive::Area::Make();
  ASSERT_TRUE(area.ok()) << area.status().message();
  (*area)->Use();
  const TempFolder folder;
  OutputFileId id;
  auto driver = FileDriver::Create(
      {.path = folder.Path("t"), .rotation = {.events = 1, .keep = 2}}, &id);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  survive::OutputState state{};
  TraceIdentity identity;
  identity.survives = &state;
  ASSERT_TRUE((*driver)->Initialize(identity).ok());
  identity.resumes = true;
  for (const uint64_t part : {uint64_t{1} << 62, ~uint64_t{0}}) {
    state.part = part;
    state.oldest = 0;
    EXPECT_TRUE((*driver)->Initialize(identity).ok());
    EXPECT_LE(state.part - state.oldest, LastingParts::kMost);
  }
}

}  // namespace
}  // namespace tracefs
