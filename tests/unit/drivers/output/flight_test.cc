// The flight recorder: what is kept, what is counted, and what is left of it
// when its process is killed.
#include "drivers/output/flight.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/unit/drivers/output/driven_trace.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

class FlightTest : public testing::Test {
 protected:
  std::shared_ptr<FlightRecorder> Make(FlightOptions options,
                                       UniqueFd map = {}) {
    options.path = folder_.Path("f");
    auto folder = OutputFolder::Open(options.path);
    EXPECT_TRUE(folder.ok());
    auto recorder = FlightRecorder::Create(std::move(options),
                                           *std::move(folder), std::move(map));
    EXPECT_TRUE(recorder.ok()) << recorder.status().message();
    return recorder.ok() ? *std::move(recorder) : nullptr;
  }
  UniqueFd NewMap() const {
    return UniqueFd(::open(folder_.Path("map").c_str(),
                           O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }

  TempFolder folder_;
};

TEST_F(FlightTest, ASnapshotIsATraceOfWhatWasRecorded) {
  const DrivenTrace trace(10, 4, "flight");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 2});
  const auto driver = recorder->MakeDriver(recorder);
  trace.WriteAll(*driver);
  const auto path = recorder->Snapshot("command");
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_EQ(*path, folder_.Path("f.000001"));
  const ReadBack back = ReadFiles({*path});
  EXPECT_EQ(back.numbers, Range(1, 40));
  EXPECT_FALSE(back.stats.Bad()) << back.reports;
  ASSERT_TRUE(back.stats.snapshot.has_value());
  EXPECT_EQ(back.stats.snapshot->events, 40u);
  EXPECT_EQ(back.stats.snapshot->overwritten_events, 0u);
  EXPECT_EQ(back.stats.snapshot->reason, "command");
  struct stat st;
  ASSERT_EQ(::stat(path->c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
}

// A snapshot says how many blocks it has: its gaps are not faults, a block that
// was taken out of it is one.
TEST_F(FlightTest, DataLoss_ABlockThatASnapshotPromisedIsMissing) {
  const DrivenTrace trace(10, 4, "flight");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 2});
  const auto driver = recorder->MakeDriver(recorder);
  trace.WriteAll(*driver);
  const auto path = recorder->Snapshot("command");
  ASSERT_TRUE(path.ok()) << path.status().message();
  const std::string whole = TempFolder::Read(*path);
  const std::string& block = trace.frame(5);
  const size_t at = whole.find(block);
  ASSERT_NE(at, std::string::npos);
  std::string cut = whole;
  cut.erase(at, block.size());
  EXPECT_EQ(ReadBytes(whole).stats.missing_blocks, 0u);
  const ReadBack back = ReadBytes(cut);
  EXPECT_EQ(back.stats.missing_blocks, 1u) << back.reports;
  EXPECT_TRUE(back.stats.Bad());
}

TEST_F(FlightTest, OverwritesAreCountedExactlyAndRecordingGoesOn) {
  const DrivenTrace trace(3000, 7, "flight");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 1});
  const auto driver = recorder->MakeDriver(recorder);
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  ASSERT_TRUE(trace.Write(*driver, 0).ok());
  for (const size_t upto : {size_t{200}, size_t{1000}, size_t{3000}}) {
    for (size_t i = upto == 200    ? 1
                    : upto == 1000 ? 201
                                   : 1001;
         i <= upto; ++i) {
      ASSERT_TRUE(trace.Write(*driver, i).ok());
    }
    const auto path = recorder->Snapshot("signal");
    ASSERT_TRUE(path.ok());
    const ReadBack back = ReadFiles({*path});
    ASSERT_TRUE(back.stats.snapshot.has_value());
    const uint64_t lost = back.stats.snapshot->overwritten_events;
    // The newest, all of them, and a count of the rest.
    EXPECT_EQ(back.numbers, Range(lost + 1, 7 * upto));
    EXPECT_EQ(back.stats.snapshot->overwritten_blocks * 7, lost);
    EXPECT_FALSE(back.stats.Bad()) << back.reports;
    EXPECT_EQ(driver->Queue()->overwritten, lost);
  }
}

TEST_F(FlightTest, ABusyThreadDoesNotDisplaceAQuietOne) {
  const DrivenTrace trace(2000, 4, "flight");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 8});
  const auto driver = recorder->MakeDriver(recorder);
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  for (size_t i = 0; i < trace.size(); ++i) {
    ASSERT_TRUE(trace.Write(*driver, i, /*source=*/i == 5 ? 2 : 1).ok());
  }
  const ReadBack back = ReadFiles({*recorder->Snapshot("command")});
  // Block 5 holds operations 17 to 20.
  ASSERT_GE(back.numbers.size(), 4u);
  EXPECT_EQ(
      std::vector<uint64_t>(back.numbers.begin(), back.numbers.begin() + 4),
      Range(17, 20));
  EXPECT_GT(back.numbers[4], 21u);
}

TEST_F(FlightTest, SnapshotsAreNumberedAndTheOldestRemoved) {
  const DrivenTrace trace(3, 2, "flight");
  folder_.Write("f.000002", "of an earlier recorder");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 1, .keep = 2});
  const auto driver = recorder->MakeDriver(recorder);
  trace.WriteAll(*driver);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(recorder->Snapshot("x").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("f.000001")));
  EXPECT_EQ(TempFolder::Read(folder_.Path("f.000002")),
            "of an earlier recorder");
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("f.000003")));
  EXPECT_TRUE(std::filesystem::exists(folder_.Path("f.000004")));
  EXPECT_TRUE(std::filesystem::exists(folder_.Path("f.000005")));
}

TEST_F(FlightTest, ABlockLargerThanARingIsRefusedAndHarmless) {
  const DrivenTrace small(3, 2, "flight");
  const DrivenTrace large(1, 4000, "flight");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 1});
  const auto driver = recorder->MakeDriver(recorder);
  ASSERT_GT(large.frame(1).size(), 64u << 10);
  ASSERT_TRUE(driver->Initialize(small.Identity()).ok());
  ASSERT_TRUE(small.Write(*driver, 0).ok());
  ASSERT_TRUE(small.Write(*driver, 1).ok());
  EXPECT_FALSE(large.Write(*driver, 1).ok());
  EXPECT_EQ(ReadFiles({*recorder->Snapshot("x")}).numbers, Range(1, 2));
  // The tracer is told to make none.
  EXPECT_LE(driver->PreferredBlockSize(), (64u << 10) / 8);
}

TEST_F(FlightTest, BeforeItBeganThereIsNothingToWrite) {
  EXPECT_FALSE(Make({.ring_bytes = 64 << 10})->Snapshot("x").ok());
}

TEST_F(FlightTest, SnapshotsWhileItRecords) {
  const DrivenTrace trace(4000, 5, "flight");
  const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 3});
  const auto driver = recorder->MakeDriver(recorder);
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  ASSERT_TRUE(trace.Write(*driver, 0).ok());
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (size_t i = 1; i < trace.size(); ++i) {
      EXPECT_TRUE(trace.Write(*driver, i, static_cast<uint32_t>(i % 3)).ok());
    }
    done = true;
  });
  int taken = 0;
  do {
    const auto path = recorder->Snapshot("x");
    ASSERT_TRUE(path.ok());
    const ReadBack back = ReadFiles({*path});
    EXPECT_FALSE(back.stats.Bad()) << back.reports;
    EXPECT_TRUE(std::is_sorted(back.numbers.begin(), back.numbers.end()));
    ++taken;
  } while (!done.load());
  writer.join();
  EXPECT_GT(taken, 0);
}

// --- Against a model of one ring: a queue of whole records.

TEST_F(FlightTest, RandomBlocksAgainstASimpleModel) {
  constexpr size_t kBytes = 64 << 10;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> memory(kBytes);
    format::FlightRingWriter writer(memory);
    format::Serial serial{};
    serial[0] = std::byte{1};
    struct Written {
      uint64_t sequence, events;
    };
    std::vector<Written> all;
    for (uint64_t n = 1; n <= 300; ++n) {
      std::string payload(random() % (n % 7 == 0 ? 20000 : 900), 'p');
      std::array<std::byte, format::kFrameHeaderBytes> header;
      format::EncodeFrameHeader(header, {.sequence = n, .serial = serial},
                                AsBytes(payload));
      const uint64_t events = random() % 50;
      ASSERT_TRUE(writer.Write(header, AsBytes(payload), events));
      all.push_back({n, events});
      if (n % 37 != 0) continue;
      const std::string start = format::EncodePreamble({.serial = serial});
      const ByteSpan ring(memory);
      const std::string text =
          format::MakeSnapshot(start, serial, {&ring, 1}, {.reason = "x"});
      // Walk over the frames of the snapshot.
      ByteSpan rest = AsBytes(text).subspan(start.size());
      std::vector<uint64_t> found;
      std::optional<format::SnapshotMark> mark;
      while (!rest.empty()) {
        format::FrameHeader frame;
        ASSERT_TRUE(format::DecodeFrameHeader(
            rest.first<format::kFrameHeaderBytes>(), &frame));
        const ByteSpan body =
            rest.subspan(format::kFrameHeaderBytes, frame.payload_bytes);
        if (frame.kind == 18) {
          mark = format::DecodeSnapshotMark(body);
        } else {
          found.push_back(frame.sequence);
        }
        rest = rest.subspan(format::kFrameHeaderBytes + body.size());
      }
      ASSERT_TRUE(mark.has_value());
      // The newest without a gap, and as many as the ring can hold.
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(found, Range(n - found.size() + 1, n));
      uint64_t overwritten = 0;
      for (const Written& w : all) {
        if (w.sequence < found.front()) overwritten += w.events;
      }
      EXPECT_EQ(mark->overwritten_events, overwritten);
      EXPECT_EQ(mark->overwritten_blocks, found.front() - 1);
      EXPECT_EQ(writer.overwritten_events(), overwritten);
    }
  }
}

TEST_F(FlightTest, Malicious_RingsOfNoiseAreReadWithoutHarm) {
  std::mt19937 random(7);
  const DrivenTrace trace(50, 5, "flight");
  const std::string start = trace.preamble() + trace.frame(0);
  const format::Serial serial = trace.Identity().serial;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> memory(64 << 10);
    format::FlightRingWriter writer(memory);
    for (size_t i = 1; i < 50; ++i) {
      const ByteSpan frame = AsBytes(trace.frame(i));
      writer.Write(frame.first(format::kFrameHeaderBytes),
                   frame.subspan(format::kFrameHeaderBytes), 5);
    }
    for (int flips = 0; flips < 30; ++flips) {
      memory[random() % memory.size()] = std::byte(random());
    }
    const ByteSpan ring(memory);
    const ReadBack back = ReadBytes(
        format::MakeSnapshot(start, serial, {&ring, 1}, {.reason = "x"}));
    EXPECT_EQ(back.stats.damaged_bytes, 0u) << back.reports;
    EXPECT_EQ(back.stats.missing_blocks, 0u) << back.reports;
  }
}

// --- The map file.

TEST_F(FlightTest, Map_IsReadableAfterAKillAtAnyMoment) {
  const DrivenTrace trace(4000, 3, "flight");
  std::mt19937 random(1);
  for (int round = 0; round < 15; ++round) {
    // Tells how many blocks were written for sure.
    auto* const progress = static_cast<std::atomic<uint64_t>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(progress, MAP_FAILED);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto recorder =
          Make({.ring_bytes = 64 << 10, .rings = 1}, NewMap());
      if (recorder == nullptr) ::_exit(1);
      const auto driver = recorder->MakeDriver(recorder);
      if (!driver->Initialize(trace.Identity()).ok()) ::_exit(1);
      for (size_t i = 0;; i = i == 4000 ? 4000 : i + 1) {
        if (i == 4000) ::pause();
        if (!trace.Write(*driver, i).ok()) ::_exit(1);
        progress->store(i);
      }
    }
    const auto wait = std::chrono::microseconds(random() % 3000);
    while (progress->load() < 10) std::this_thread::yield();
    std::this_thread::sleep_for(wait);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const uint64_t sure = progress->load();
    ::munmap(progress, 4096);

    const ReadBack back = ReadFiles({folder_.Path("map")});
    EXPECT_EQ(back.error, "");
    ASSERT_TRUE(back.stats.snapshot.has_value());
    EXPECT_FALSE(back.stats.Bad()) << back.reports;
    ASSERT_FALSE(back.numbers.empty());
    const uint64_t total =
        back.stats.snapshot->overwritten_events + back.numbers.size();
    // What was written for sure, or one block more.
    EXPECT_GE(total, 3 * sure);
    EXPECT_LE(total, 3 * (sure + 1));
    EXPECT_EQ(back.numbers, Range(total - back.numbers.size() + 1, total));
    std::filesystem::remove(folder_.Path("map"));
  }
}

TEST_F(FlightTest, Map_CutOrChangedIsRefusedOrReadWithoutHarm) {
  const DrivenTrace trace(30, 3, "flight");
  {
    const auto recorder = Make({.ring_bytes = 64 << 10, .rings = 2}, NewMap());
    const auto driver = recorder->MakeDriver(recorder);
    trace.WriteAll(*driver);
  }
  const std::string map = TempFolder::Read(folder_.Path("map"));
  EXPECT_EQ(ReadFiles({folder_.Path("map")}).numbers, Range(1, 90));
  for (const size_t size :
       {size_t{8}, size_t{100}, size_t{4096}, size_t{5000},
        size_t{4096 + (128 << 10)}, size_t{4096 + (128 << 10) + 20}}) {
    const ReadBack back = ReadFiles(
        {folder_.Write("cut", std::string_view(map).substr(0, size))});
    EXPECT_NE(back.error, "") << size;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::string changed = map;
    for (int flips = 0; flips < 5; ++flips) {
      changed[random() % (round < 50 ? 32 : changed.size())] =
          static_cast<char>(random());
    }
    ReadFiles({folder_.Write("changed", changed)});
  }
}

TEST_F(FlightTest, Map_OfARecorderThatNeverBeganIsTakenBack) {
  int taken_back = 0;
  for (const bool begins : {false, true}) {
    auto folder = OutputFolder::Open(folder_.Path("f"));
    const auto recorder =
        FlightRecorder::Create({.path = folder_.Path("f"), .rings = 1},
                               *std::move(folder), {}, [&] { ++taken_back; });
    ASSERT_TRUE(recorder.ok());
    if (!begins) continue;
    const DrivenTrace trace(1, 1, "flight");
    const auto driver = (*recorder)->MakeDriver(*recorder);
    trace.WriteAll(*driver);
  }
  EXPECT_EQ(taken_back, 1);
}

TEST_F(FlightTest, Malicious_AMapOfOthersIsRefused) {
  const std::string path = folder_.Path("map");
  const auto refusal = [&](UniqueFd map) {
    auto folder = OutputFolder::Open(folder_.Path("f"));
    EXPECT_TRUE(folder.ok());
    return FlightRecorder::Create(
               {.path = folder_.Path("f"), .ring_bytes = 64 << 10, .rings = 1},
               *std::move(folder), std::move(map))
        .status()
        .message();
  };
  for (const mode_t mode : {0620, 0602}) {
    UniqueFd map = NewMap();
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_NE(refusal(std::move(map)).find("written by others"),
              std::string::npos);
    ASSERT_EQ(::unlink(path.c_str()), 0);
  }
  UniqueFd map = NewMap();
  ASSERT_EQ(::link(path.c_str(), folder_.Path("second").c_str()), 0);
  EXPECT_NE(refusal(std::move(map)).find("2 names"), std::string::npos);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  map = NewMap();
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal(std::move(map)).find("belongs to user 65534"),
            std::string::npos);
}

}  // namespace
}  // namespace tracefs
