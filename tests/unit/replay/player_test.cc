// When a player does what: times, orders, lanes, ends before the end, and what
// it counts. The plans are written here; the folder tells what was done.
#include "tracefs/replay/player.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/replay/prepare.h"

namespace tracefs::replay {
namespace {

constexpr uint64_t kMs = 1'000'000;

class PlayerTest : public testing::Test {
 protected:
  PlayerTest() {
    EXPECT_EQ(::mkdir(folder_.Path("root").c_str(), 0700), 0);
    header_.lanes = 1;
    header_.dir_slots = 1;
    header_.handle_slots = 2;
    actions_.reserve(100);
  }

  Action& Add(Op op, std::string_view name, uint64_t at_ms, uint32_t lane = 0) {
    Action a;
    a.sequence = actions_.size() + 1;
    a.op = op;
    a.place = Place::kName;
    a.dir = kRootSlot;
    a.name = name;
    a.mode = 0755;
    a.begin_ns = at_ms * kMs;
    a.duration_ns = 100;
    a.lane = lane;
    actions_.push_back(a);
    return actions_.back();
  }
  Action& Through(Op op, uint32_t handle) {
    Action& a = Add(op, {}, 0);
    a.place = Place::kHandle;
    a.dir = kNoSlot;
    a.handle = handle;
    return a;
  }
  void Write() {
    auto writer = PlanWriter::CreateUnnamed("/tmp");
    ASSERT_TRUE(writer.ok());
    for (const Action& a : actions_) ASSERT_TRUE(writer->Add(a).ok());
    auto plan = writer->Finish(header_);
    ASSERT_TRUE(plan.ok());
    plan_ = *std::move(plan);
    TargetOptions target;
    target.max_bytes = max_bytes_;
    tree_ = TargetTree::Open(
        UniqueFd(::open(folder_.Path("root").c_str(), O_PATH | O_DIRECTORY)),
        header_, target);
  }
  Status Play(const PlayOptions& options) {
    Write();
    Player player(plan_.get(), header_, tree_.get(), options);
    outcome_ = {};
    return player.Run(&outcome_);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.Path("root"))) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  const OpOutcome& Of(Op op) const { return outcome_.ops[Index(op)]; }

  TempFolder folder_;
  PlanHeader header_;
  uint64_t max_bytes_ = UINT64_MAX;
  std::vector<Action> actions_;
  UniqueFd plan_;
  std::unique_ptr<TargetTree> tree_;
  Outcome outcome_;
};

TEST_F(PlayerTest, EachIsDoneAtItsTimeAndNotBefore) {
  Add(Op::mkdir_, "a", 0);
  Add(Op::mkdir_, "b", 60);
  Add(Op::rmdir_, "a", 61);
  Add(Op::rmdir_, "b", 62);
  for (const auto& [timing, scale, least] :
       {std::tuple(TimingMode::kOriginal, 5.0, 60u),
        {TimingMode::kScale, 0.5, 30u},
        {TimingMode::kScale, 2.0, 120u},
        {TimingMode::kThink, 0.5, 30u},
        {TimingMode::kAsap, 1.0, 0u}}) {
    PlayOptions options;
    options.timing = timing;
    options.scale = scale;
    ASSERT_TRUE(Play(options).ok());
    EXPECT_EQ(outcome_.matched(), 4u);
    EXPECT_GE(outcome_.elapsed_ns, least * kMs);
    // However busy the machine is.
    EXPECT_LT(outcome_.elapsed_ns, (least + 2000) * kMs);
    EXPECT_EQ(outcome_.lateness_ns.count(),
              timing == TimingMode::kAsap ? 0u : 4u);
  }
}

TEST_F(PlayerTest, WhatIsMadeUpWaitsForNoTime) {
  Add(Op::mkdir_, "a", 3'600'000).flags = kUntimed;
  Add(Op::mkdir_, "a", 3'600'000).flags = kUntimed;
  PlayOptions options;
  options.timing = TimingMode::kOriginal;
  ASSERT_TRUE(Play(options).ok());
  EXPECT_EQ(outcome_.untimed, 2u);
  EXPECT_EQ(outcome_.untimed_failed, 1u);
  EXPECT_EQ(outcome_.operations(), 0u);
}

TEST_F(PlayerTest, WhoIsTooLateEndsIt) {
  Add(Op::mkdir_, "a", 0);
  Add(Op::mkdir_, "b", 1);
  PlayOptions options;
  options.timing = TimingMode::kOriginal;
  options.order = OrderMode::kGlobal;
  options.max_lag_ns = 20 * kMs;
  options.before = [](const Action& a) {
    if (a.sequence == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(80));
    }
    return true;
  };
  const Status late = Play(options);
  EXPECT_EQ(late.code(), StatusCode::kCorrupt);
  EXPECT_THAT(late.message(),
              testing::HasSubstr("operation 2 is later than --max-lag"));
  EXPECT_THAT(Names(), testing::ElementsAre("a"));
}

TEST_F(PlayerTest, StopsAtATimeAndWhereItIsStopped) {
  Add(Op::mkdir_, "a", 0);
  Add(Op::mkdir_, "b", 10);
  Add(Op::mkdir_, "c", 11);
  PlayOptions options;
  options.until_ns = 10 * kMs;
  ASSERT_TRUE(Play(options).ok());
  EXPECT_THAT(Names(), testing::ElementsAre("a", "b"));
  EXPECT_EQ(outcome_.operations(), 2u);
  // In the midst of a long wait.
  actions_.clear();
  Add(Op::mkdir_, "x", 0);
  Add(Op::mkdir_, "y", 3'600'000);
  Write();
  options = {};
  options.timing = TimingMode::kOriginal;
  Player player(plan_.get(), header_, tree_.get(), options);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    player.Stop();
  });
  Outcome outcome;
  EXPECT_TRUE(player.Run(&outcome).ok());
  stopper.join();
  EXPECT_EQ(outcome.operations(), 1u);
}

TEST_F(PlayerTest, RepeatedLooksAreLeftOutWhereThatIsAskedFor) {
  Add(Op::mkdir_, "a", 0);
  Add(Op::lookup_, "a", 0).flags = kRepeated;
  Add(Op::lookup_, "a", 0);
  for (const bool skip : {false, true}) {
    PlayOptions options;
    options.skip_repeated = skip;
    ASSERT_TRUE(Play(options).ok());
    EXPECT_EQ(outcome_.skipped, skip ? 1u : 0u);
    EXPECT_EQ(Of(Op::lookup_).count, skip ? 1u : 2u);
    ASSERT_EQ(::rmdir(folder_.Path("root/a").c_str()), 0);
  }
}

TEST_F(PlayerTest, ThreadsWaitForEachOtherAsTheyDid) {
  // Each by turns, in lanes that know nothing of each other but a counter.
  header_.lanes = 3;
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back("n" + std::to_string(i));
  for (uint32_t i = 0; i < 30; ++i) {
    Action& a = Add(Op::rename_, names[i], 0, i % 3);
    a.new_dir = kRootSlot;
    a.new_name = i == 29 ? std::string_view("end") : names[i + 1];
    a.orders[0] = {.counter = 7, .need = i, .waits = true};
    a.order_count = 1;
  }
  for (const OrderMode order : {OrderMode::kRoot, OrderMode::kGlobal}) {
    ASSERT_EQ(::mkdir(folder_.Path("root/n0").c_str(), 0700), 0);
    PlayOptions options;
    options.order = order;
    ASSERT_TRUE(Play(options).ok());
    EXPECT_EQ(outcome_.matched(), 30u);
    EXPECT_THAT(Names(), testing::ElementsAre("end"));
    EXPECT_EQ(::rmdir(folder_.Path("root/end").c_str()), 0);
  }
  // Where it ends before the end nobody waits for what is not done.
  ASSERT_EQ(::mkdir(folder_.Path("root/n0").c_str(), 0700), 0);
  PlayOptions until;
  until.until_sequence = 20;
  ASSERT_TRUE(Play(until).ok());
  EXPECT_EQ(outcome_.operations(), 20u);
  EXPECT_THAT(Names(), testing::ElementsAre("n20"));
  EXPECT_EQ(::rmdir(folder_.Path("root/n20").c_str()), 0);
  // Without order nobody waits, and in one lane there is only one order.
  for (Action& a : actions_) a.lane = 0;
  for (const OrderMode order : {OrderMode::kThread, OrderMode::kNone}) {
    ASSERT_EQ(::mkdir(folder_.Path("root/n0").c_str(), 0700), 0);
    PlayOptions options;
    options.order = order;
    header_.lanes = order == OrderMode::kThread ? 3 : 1;
    ASSERT_TRUE(Play(options).ok());
    EXPECT_EQ(outcome_.waits, 0u);
    EXPECT_EQ(outcome_.matched(), 30u);
    EXPECT_EQ(::rmdir(folder_.Path("root/end").c_str()), 0);
  }
}

TEST_F(PlayerTest, WhatDiffersIsCountedByItsErrors) {
  Add(Op::mkdir_, "a", 0);
  Add(Op::mkdir_, "a", 0);               // it fails now
  Add(Op::rmdir_, "none", 0).error = 2;  // as then
  Add(Op::rmdir_, "a", 0).error = ENOTEMPTY;
  Add(Op::mknod_, "n", 0).mode = S_IFCHR | 0600;  // left out
  PlayOptions options;
  ASSERT_TRUE(Play(options).ok());
  EXPECT_EQ(outcome_.operations(), 5u);
  EXPECT_EQ(outcome_.matched(), 2u);
  EXPECT_EQ(outcome_.mismatched(), 2u);
  EXPECT_EQ(outcome_.explained(), 1u);
  using Pair = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(Of(Op::mkdir_).errors.at(Pair(0, EEXIST)), 1u);
  EXPECT_EQ(Of(Op::rmdir_).errors.at(Pair(ENOTEMPTY, 0)), 1u);
  EXPECT_EQ(Of(Op::rmdir_).errors.size(), 1u);
  EXPECT_TRUE(Of(Op::mknod_).errors.empty());
  EXPECT_EQ(Of(Op::mkdir_).then_ns.count(), 2u);
  EXPECT_EQ(Of(Op::mkdir_).now_ns.count(), 2u);
  ASSERT_EQ(outcome_.mismatches.size(), 2u);
  EXPECT_THAT(outcome_.mismatches[0].text,
              testing::StartsWith("mkdir of a: result"));
  // Or it ends there.
  options.on_mismatch = OnMismatch::kAbort;
  ASSERT_EQ(::unlink(folder_.Path("root/n").c_str()), 0);
  const Status aborted = Play(options);
  EXPECT_THAT(aborted.message(),
              testing::StartsWith("operation 2: mkdir of a"));
  EXPECT_EQ(outcome_.operations(), 2u);
}

TEST_F(PlayerTest, BytesAreCountedWhereTheyWereMovedAndCompared) {
  Action& create = Add(Op::create_, "f", 0);
  create.mode = S_IFREG | 0644;
  create.arg_flags = O_RDWR;
  create.handle = 0;
  Action& write = Through(Op::write_, 0);
  write.data = AsBytes("0123456789");
  write.length = 10;
  write.flags = kHasData;
  write.result = 10;
  Action& read = Through(Op::read_, 0);
  read.length = 4;
  read.result = 4;
  Action& compared = Through(Op::read_, 0);
  compared.length = 100;
  compared.result = 10;
  compared.flags = kHasHash;
  compared.hash = Crc32c(AsBytes("0123456789"));
  Action& copy = Through(Op::copy_file_range_, 0);
  copy.handle_out = 0;
  copy.offset_out = 10;
  copy.length = 3;
  copy.result = 3;
  ASSERT_TRUE(Play({}).ok());
  EXPECT_EQ(outcome_.matched(), 5u);
  EXPECT_EQ(outcome_.bytes_read, 17u);
  EXPECT_EQ(outcome_.bytes_compared, 10u);
  EXPECT_EQ(outcome_.bytes_written, 13u);
  // More than is allowed ends it.
  max_bytes_ = 9;
  ASSERT_EQ(::unlink(folder_.Path("root/f").c_str()), 0);
  const Status over = Play({});
  EXPECT_EQ(over.error(), EDQUOT);
  EXPECT_THAT(over.message(), testing::HasSubstr("operation 2 needs more"));
  EXPECT_EQ(outcome_.operations(), 2u);
}

// The tree before, with what its files hold.
TEST_F(PlayerTest, WhatIsThereIsComparedWithWhatWas) {
  auto writer = PlanWriter::CreateUnnamed("/tmp");
  ASSERT_TRUE(writer.ok());
  const auto add = [&](const char* name, uint32_t known, uint32_t checksum) {
    TreeEntry entry;
    entry.name = name;
    entry.mode = S_IFREG | 0644;
    entry.known = known;
    entry.checksum = checksum;
    ASSERT_TRUE(writer->AddInitial(entry).ok());
    InitialData data;
    data.name = name;
    data.bytes = AsBytes(std::string_view(name));
    ASSERT_TRUE(writer->AddInitialData(data).ok());
  };
  const auto crc = [](std::string_view text) { return Crc32c(AsBytes(text)); };
  add("same", TreeEntry::kChecksum, crc("same"));
  add("other", TreeEntry::kChecksum, crc("same"));
  add("unknown", 0, 0);
  add("nameless", TreeEntry::kNameless, 0);
  TreeEntry further;
  further.name = "further";
  further.mode = S_IFREG | 0644;
  further.known = TreeEntry::kChecksum;
  further.other_parent = kRootSlot;
  further.other_name = "same";
  ASSERT_TRUE(writer->AddInitial(further).ok());
  auto plan = writer->Finish(header_);
  ASSERT_TRUE(plan.ok());
  Write();  // for a tree
  auto made = PrepareTree(plan->get(), true, tree_.get());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->entries, 5u);
  EXPECT_EQ(made->failed, 0u);
  EXPECT_EQ(made->checked, 2u) << "each file once";
  EXPECT_EQ(made->other_contents, 1u);
  EXPECT_THAT(made->others, testing::ElementsAre("other"));
  EXPECT_EQ(TempFolder::Read(folder_.Path("root/unknown")), "unknown");
  // Where it is there already only what had no name is made.
  ASSERT_EQ(::unlink(folder_.Path("root/nameless").c_str()), 0);
  folder_.Write("root/same", "changed");
  folder_.Write("root/unknown", "kept");
  auto there = PrepareTree(plan->get(), false, tree_.get());
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there->other_contents, 2u);
  EXPECT_EQ(TempFolder::Read(folder_.Path("root/unknown")), "kept");
  EXPECT_EQ(TempFolder::Read(folder_.Path("root/nameless")), "nameless");
  // What fails is said, and the rest is made.
  made = PrepareTree(plan->get(), true, tree_.get());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->failed, 5u);
  EXPECT_EQ(made->errors.size(), 5u);
  EXPECT_THAT(made->errors[0], testing::HasSubstr("same"));
}

// More than is in memory at once.
TEST_F(PlayerTest, LongPlansAreReadAsTheyAreDone) {
  const std::string bytes(60'000, 'b');
  Action& create = Add(Op::create_, "f", 0);
  create.arg_flags = O_RDWR;
  create.handle = 0;
  for (int i = 0; i < 400; ++i) {
    Action& write = Through(Op::write_, 0);
    write.data = AsBytes(bytes);
    write.length = bytes.size();
    write.offset = 0;
    write.flags = kHasData;
    write.result = static_cast<int64_t>(bytes.size());
  }
  ASSERT_TRUE(Play({}).ok());
  EXPECT_EQ(outcome_.matched(), 401u);
  EXPECT_EQ(outcome_.bytes_written, 400 * bytes.size());
}

}  // namespace
}  // namespace tracefs::replay
