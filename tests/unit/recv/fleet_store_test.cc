// What a fleet's store makes of disks: ones that are full, that fail, that have
// changed what they kept.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/recv/failing_sync.h"
#include "tests/unit/recv/fleet_trace.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/recv/fleet/store.h"

namespace tracefs {
namespace {

namespace fs = std::filesystem;
using test::FleetTrace;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr char kDay[] = "2026-01-01";

// A limit of this process, for a while.
class Limit {
 public:
  Limit(__rlimit_resource which, rlim_t most) : which_(which) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(which, &before_);
    const rlimit limit = {most, before_.rlim_max};
    ::setrlimit(which, &limit);
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { ::setrlimit(which_, &before_); }

 private:
  const __rlimit_resource which_;
  rlimit before_{};
};

class FleetStoreTest : public testing::Test {
 protected:
  FleetStoreTest() {
    std::string path = testing::TempDir() + "store-XXXXXX";
    root_ = ::mkdtemp(path.data());
    fd_.Reset(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~FleetStoreTest() override { fs::remove_all(root_); }

  std::unique_ptr<FleetStore> Make(const std::string& format = "") {
    FleetStoreOptions options;
    options.directory = root_;
    options.format = format;
    options.gap_patience = std::chrono::nanoseconds(0);
    return format.empty() ? MakeTraceStore(fd_.get(), options)
                          : MakeTableStore(fd_.get(), options);
  }
  // Those that need not come again.
  std::vector<uint64_t> Commit(FleetStore& store, bool ok = true) {
    std::vector<uint64_t> done;
    std::vector<FleetStore::Refused> refused;
    const Status status = store.Commit(/*hurry=*/true, &done, &refused);
    EXPECT_EQ(status.ok(), ok) << status.message();
    EXPECT_TRUE(refused.empty());
    return done;
  }
  std::string PathOf(FleetTrace& trace) const {
    return root_ / "host=web1" / ("date=" + std::string(kDay)) /
           (format::SerialText(trace.serial()) + ".trace");
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // The blocks that a file has.
  static std::vector<uint64_t> BlocksIn(const std::string& bytes) {
    std::vector<uint64_t> blocks;
    size_t at = *format::PreambleLength(AsBytes(bytes).first(12));
    while (at < bytes.size()) {
      const auto frame =
          format::FrameAt(AsBytes(bytes).subspan(at), std::nullopt);
      if (!frame) {
        ADD_FAILURE() << "no frame at " << at;
        break;
      }
      if (frame->header.kind ==
          static_cast<uint16_t>(format::FrameKind::kMessages)) {
        blocks.push_back(frame->header.sequence);
      }
      at += format::kFrameHeaderBytes + frame->payload.size();
    }
    return blocks;
  }

  fs::path root_;
  UniqueFd fd_;
};

TEST_F(FleetStoreTest, DataLoss_WhatFollowsDamageIsKeptBeside) {
  FleetTrace trace(8);
  {
    const auto store = Make();
    for (size_t i = 0; i < 6; ++i) store->Add(trace.Block(i, kDay));
    ASSERT_THAT(Commit(*store), ElementsAre(0, 1, 2, 3, 4, 5));
  }
  const std::string path = PathOf(trace);
  const std::string good = Read(path);
  const size_t block = good.find(trace.Frame(1));
  ASSERT_NE(block, good.npos);
  // The magic, the length (then it reaches beyond the end), a payload.
  for (const size_t at :
       {block, block + 6, block + format::kFrameHeaderBytes}) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    Write(path, damaged);
    const auto store = Make();
    store->Add(trace.Block(6, kDay));
    EXPECT_THAT(Commit(*store), ElementsAre(6));
    EXPECT_THAT(BlocksIn(Read(path)), ElementsAre(0, 6));
    EXPECT_TRUE(Read(path + ".rest-1") == damaged.substr(block)) << at;
    fs::remove(path + ".rest-1");
  }
}

TEST_F(FleetStoreTest, WhatWasCutIsNoDamage) {
  FleetTrace trace(8);
  {
    const auto store = Make();
    for (size_t i = 0; i < 6; ++i) store->Add(trace.Block(i, kDay));
    ASSERT_THAT(Commit(*store), ElementsAre(0, 1, 2, 3, 4, 5));
  }
  const std::string path = PathOf(trace);
  const std::string good = Read(path);
  for (const size_t cut : {size_t{1}, trace.Frame(5).size() - 1}) {
    Write(path, good.substr(0, good.size() - cut));
    const auto store = Make();
    store->Add(trace.Block(5, kDay));
    EXPECT_THAT(Commit(*store), ElementsAre(5));
    EXPECT_TRUE(Read(path) == good) << cut;
    EXPECT_FALSE(fs::exists(path + ".rest-1")) << cut;
  }
}

TEST_F(FleetStoreTest, DataLoss_NoTraceIsForgottenWhileNothingCanBeWritten) {
  std::vector<std::unique_ptr<FleetTrace>> traces;
  const auto store = Make();
  for (uint16_t t = 1; t <= 3; ++t) {
    traces.push_back(std::make_unique<FleetTrace>(2, t));
    for (size_t i = 0; i < 2; ++i) {
      FleetBlock block = traces.back()->Block(i, kDay);
      block.number = size_t{10} * t + i;
      store->Add(std::move(block));
    }
  }
  {
    const Limit full(RLIMIT_FSIZE, 1);
    EXPECT_THAT(Commit(*store, /*ok=*/false), IsEmpty());
    EXPECT_THAT(Commit(*store, /*ok=*/false), IsEmpty());
  }
  EXPECT_EQ(store->counts().blocks, 0u);
  EXPECT_THAT(Commit(*store), UnorderedElementsAre(10, 11, 20, 21, 30, 31));
  EXPECT_EQ(store->counts().blocks, 6u);
  EXPECT_EQ(store->counts().gaps, 0u);
  EXPECT_EQ(store->held_bytes(), 0u);
  for (const auto& trace : traces) {
    EXPECT_THAT(BlocksIn(Read(PathOf(*trace))), ElementsAre(0, 1));
  }
}

// A trace that does not fit keeps no other from being acknowledged.
TEST_F(FleetStoreTest, WhatCouldBeStoredIsAcknowledged) {
  FleetTrace small(1, 1);
  FleetTrace large(60, 2);
  const auto store = Make();
  store->Add(small.Block(0, kDay));
  for (size_t i = 0; i < 60; ++i) {
    FleetBlock block = large.Block(i, kDay);
    block.number = 100 + i;
    store->Add(std::move(block));
  }
  std::vector<uint64_t> done;
  {
    const Limit full(RLIMIT_FSIZE, large.preamble().size() +
                                       large.Frame(0).size() +
                                       10 * large.Frame(1).size());
    done = Commit(*store, /*ok=*/false);
  }
  EXPECT_THAT(done, testing::Contains(0));
  EXPECT_LT(done.size(), 60u);
  const std::vector<uint64_t> rest = Commit(*store);
  EXPECT_EQ(done.size() + rest.size(), 61u);
  EXPECT_EQ(BlocksIn(Read(PathOf(large))).size(), 60u);
  EXPECT_EQ(store->counts().blocks, 61u);
}

TEST_F(FleetStoreTest, DataLoss_NoTableIsForgottenWhileNothingCanBeWritten) {
  FleetTrace trace(6);
  const auto store = Make("parquet");
  store->Add(trace.Block(0, kDay));
  EXPECT_THAT(Commit(*store), ElementsAre(0));
  // Two files.
  for (const size_t i : {1, 2, 4, 5}) store->Add(trace.Block(i, kDay));
  {
    const Limit full(RLIMIT_FSIZE, 1);
    EXPECT_THAT(Commit(*store, /*ok=*/false), IsEmpty());
    EXPECT_THAT(Commit(*store, /*ok=*/false), IsEmpty());
  }
  EXPECT_THAT(Commit(*store), UnorderedElementsAre(1, 2, 4, 5));
  EXPECT_EQ(store->counts().blocks, 5u);
}

// The kernel says it once, and then takes for written what never was.
TEST_F(FleetStoreTest, DataLoss_WhatAFailedSyncMayHaveLostIsWrittenAgain) {
  for (const uint16_t traces : {1, 20}) {
    std::vector<std::unique_ptr<FleetTrace>> all;
    const auto store = Make();
    for (uint16_t t = 1; t <= traces; ++t) {
      all.push_back(std::make_unique<FleetTrace>(
          4, static_cast<uint16_t>(100 * traces + t)));
      for (size_t i = 0; i < 2; ++i) store->Add(all.back()->Block(i, kDay));
    }
    ASSERT_EQ(Commit(*store).size(), 2u * traces);
    const std::string before = Read(PathOf(*all[0]));
    for (const auto& trace : all) {
      for (size_t i = 2; i < 4; ++i) store->Add(trace->Block(i, kDay));
    }
    test::failing_syncs = 1;
    EXPECT_THAT(Commit(*store, /*ok=*/false), IsEmpty());
    EXPECT_EQ(test::failing_syncs, 0);
    for (const auto& trace : all) {
      EXPECT_EQ(Read(PathOf(*trace)).size(), before.size());
    }
    // Nor does one that knows nothing of it find them.
    EXPECT_EQ(Commit(*store).size(), 2u * traces);
    for (const auto& trace : all) {
      EXPECT_THAT(BlocksIn(Read(PathOf(*trace))), ElementsAre(0, 1, 2, 3));
    }
    EXPECT_EQ(store->counts().blocks, 4u * traces);
    EXPECT_EQ(store->counts().doubled, 0u);
  }
}

// Between two days a file is synced at once.
TEST_F(FleetStoreTest, DataLoss_AFailedSyncAtTheEndOfADayIsNoSuccess) {
  FleetTrace trace(4);
  const auto store = Make();
  store->Add(trace.Block(0, kDay));
  ASSERT_THAT(Commit(*store), ElementsAre(0));
  store->Add(trace.Block(1, kDay));
  store->Add(trace.Block(2, "2026-01-02"));
  test::failing_syncs = 1;
  EXPECT_THAT(Commit(*store, /*ok=*/false), IsEmpty());
  EXPECT_THAT(BlocksIn(Read(PathOf(trace))), ElementsAre(0));
  EXPECT_THAT(Commit(*store), ElementsAre(1, 2));
  EXPECT_THAT(BlocksIn(Read(PathOf(trace))), ElementsAre(0, 1));
  EXPECT_EQ(store->counts().blocks, 3u);
}

TEST_F(FleetStoreTest, MoreTracesThanDescriptorsAreStored) {
  const Limit few(RLIMIT_NOFILE, 120);
  const auto store = Make();
  std::vector<std::unique_ptr<FleetTrace>> traces;
  for (uint16_t t = 1; t <= 60; ++t) {
    traces.push_back(std::make_unique<FleetTrace>(2, t));
  }
  for (size_t i = 0; i < 2; ++i) {
    for (const auto& trace : traces) store->Add(trace->Block(i, kDay));
    EXPECT_EQ(Commit(*store).size(), traces.size());
  }
  for (const auto& trace : traces) {
    EXPECT_THAT(BlocksIn(Read(PathOf(*trace))), ElementsAre(0, 1));
  }
}

}  // namespace
}  // namespace tracefs
