#include "tracefs/export/strace.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/trace_builder.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs {
namespace {

using test::TraceBuilder;

class StraceTest : public ::testing::Test {
 protected:
  StraceTest() { root_ = trace_.DefinePath(0, ""); }

  // One millisecond after the one before.
  void Do(Op op, uint32_t path) {
    Event event;
    event.op = op;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + ++made_ * 1'000'000);
    event.Set(Field::kTid, 813);
    event.SetResult(0, 0);
    trace_.Add(event, {.path = path});
  }

  std::string Exported() {
    trace_.EndBlock();
    trace_.Finish();
    const std::string bytes = trace_.bytes();
    StringOutput out;
    const auto exporter = MakeStraceExporter(out, {});
    format::TraceReader reader(
        std::make_unique<format::MemorySource>(AsBytes(bytes)), {});
    std::unique_ptr<format::BlockDecoder> block;
    for (;;) {
      const auto step = reader.NextBlock(&block);
      EXPECT_TRUE(step.ok());
      if (!step.ok() || *step != format::ReadStep::kItem) break;
      while (!block->at_end()) {
        format::Record record;
        block->Next(&record);
        exporter->Write(record);
      }
    }
    exporter->Finish();
    EXPECT_TRUE(out.Flush().ok());
    return out.text();
  }

  TraceBuilder trace_;
  uint32_t root_ = 0;
  uint64_t made_ = 0;
};

// The kernel sends a release when it has time: the request of another file may
// come in between.
TEST_F(StraceTest, AReleaseBetweenALookOnTheWayAndItsFileMakesNoStatOfTheLook) {
  const uint32_t folder = trace_.DefinePath(root_, "folder");
  const uint32_t file = trace_.DefinePath(folder, "file");
  const uint32_t other = trace_.DefinePath(root_, "other");
  Do(Op::getattr_, folder);
  Do(Op::release_, other);
  Do(Op::create_, file);
  const std::string told = Exported();
  EXPECT_EQ(told.find("newfstatat"), std::string::npos) << told;
  EXPECT_NE(told.find("openat"), std::string::npos) << told;
}

TEST_F(StraceTest, AStatAfterWhichTheThreadGoesElsewhereIsTold) {
  const uint32_t folder = trace_.DefinePath(root_, "folder");
  const uint32_t other = trace_.DefinePath(root_, "other");
  Do(Op::getattr_, folder);
  Do(Op::release_, other);
  Do(Op::unlink_, other);
  const std::string told = Exported();
  EXPECT_NE(told.find("newfstatat"), std::string::npos) << told;
}

}  // namespace
}  // namespace tracefs
