#include "tracefs/control/tail_stream.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

TEST(TailStreamTest, WakesItsReaderAndTellsWhenItIsDropped) {
  auto queue = std::make_shared<BlockQueue>(20);
  const auto output = MakeBlockQueueOutput(queue);
  int woken = 0;
  int dropped = 0;
  auto stream = MakeTailStream(queue, [&] { ++dropped; });
  stream->OnMore([&] { ++woken; });
  ASSERT_TRUE(output->Write(AsBytes("x"), {}, {.sequence = 1}).ok());
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(stream->ended());
  ASSERT_TRUE(output->Release().ok());
  EXPECT_EQ(woken, 2);
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->Take(10), "x");
  stream.reset();
  EXPECT_EQ(dropped, 1);
  ASSERT_TRUE(output->Write(AsBytes("y"), {}, {.sequence = 2}).ok());
  EXPECT_EQ(woken, 2);  // nobody listens any more
}

}  // namespace
}  // namespace tracefs
