// What asks a flight recorder for a snapshot.
#include "tracefs/tracers/trigger_tap.h"

#include <gtest/gtest.h>

#include "drivers/assembly/stream.h"
#include "tests/support/filter_world.h"
#include "tracefs/pipeline/block_builder.h"

namespace tracefs {
namespace {

class TriggerTapTest : public ::testing::Test {
 protected:
  TriggerTap Tap(std::string_view text, uint64_t every_ns = 0) {
    auto filter = Filter::Compile(text, {}, testing::FakeNames(), names_);
    EXPECT_TRUE(filter.ok()) << filter.status().message();
    control_->every_ns = every_ns;
    control_->on_trigger = [this] { ++fired_; };
    return TriggerTap(*std::move(filter), control_,
                      {MakeStream(StreamFlagBits("STR_ALL"))});
  }

  static Event Done(Op op, int error) {
    Event event;
    event.op = op;
    event.Set(Field::kTime, 1);
    event.SetResult(0, error);
    return event;
  }

  NameTable names_;
  std::shared_ptr<FlightControl> control_ = std::make_shared<FlightControl>();
  BlockBuilder block_{4096};
  int fired_ = 0;
};

// A path is looked up while it is certain, and ancestors while there are any:
// before the reply.
TEST_F(TriggerTapTest, OnlyATriggerOnPathsOrAncestorsNeedsThemInTime) {
  const Event event = Done(Op::unlink_, 0);
  EXPECT_FALSE(Tap("path ~ /d/**").NamesDefined(event, block_));
  EXPECT_FALSE(Tap("result < 0 AND path = /a").NamesDefined(event, block_));
  EXPECT_FALSE(Tap("descendant of sh").NamesDefined(event, block_));
  EXPECT_TRUE(Tap("result < 0").NamesDefined(event, block_));
  EXPECT_TRUE(Tap("op = read AND path = /a").NamesDefined(event, block_));
}

TEST_F(TriggerTapTest, FiresForWhatMatchesWhenItIsDone) {
  const TriggerTap tap = Tap("errno = 5");
  Event failed = Done(Op::read_, 5);
  Event fine = Done(Op::read_, 0);
  EXPECT_TRUE(tap.Assemble(fine, block_));
  EXPECT_EQ(fired_, 0);
  EXPECT_TRUE(tap.Assemble(failed, block_));
  EXPECT_EQ(fired_, 1);
  failed.before = true;
  EXPECT_TRUE(tap.Assemble(failed, block_));
  EXPECT_EQ(fired_, 1);
}

TEST_F(TriggerTapTest, FiresNoMoreThanOnceInItsTime) {
  const TriggerTap tap = Tap("", /*every_ns=*/3600'000'000'000);
  Event event = Done(Op::read_, 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(tap.Assemble(event, block_));
  EXPECT_EQ(fired_, 1);
}

TEST_F(TriggerTapTest, AsksForWhatItsFilterReads) {
  EXPECT_TRUE(Tap("cname = sh").Needs(Op::read_).caller);
  EXPECT_FALSE(Tap("cuid = 0").Needs(Op::read_).caller);
  EXPECT_TRUE(Tap("name = a").Needs(Op::read_).names);
  EXPECT_TRUE(Tap("cexe ~ **/cat").Needs(Op::read_).details);
  EXPECT_TRUE(Tap("syscall = read").Needs(Op::read_).syscall);
  EXPECT_TRUE(Tap("descendant of sh").Needs(Op::read_).ancestors);
  EXPECT_FALSE(Tap("op = write AND cexe ~ **/cat").Needs(Op::read_).details);
  EXPECT_TRUE(Tap("cuid = 0").Needs(Op::read_).after);
  EXPECT_FALSE(Tap("op = write").Needs(Op::read_).after);
}

}  // namespace
}  // namespace tracefs
