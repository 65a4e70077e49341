// What is counted through a pipeline, read back from the trace, against what
// was sent.
#include "drivers/assembly/aggregate.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "drivers/assembly/stream.h"
#include "drivers/output/framing.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/sanitizers.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/pipeline/pipeline.h"

namespace tracefs {
namespace {

struct Memory {
  std::mutex mu;
  std::string bytes;
  std::atomic<bool> failing{false};
  // Refuses blocks that hold counts, and takes the others.
  std::atomic<bool> refusing_counts{false};
};

class MemoryDriver final : public OutputDriver {
 public:
  explicit MemoryDriver(Memory& memory) : memory_(memory) {}
  Status Initialize(const TraceIdentity& identity) override {
    memory_.bytes = identity.preamble;
    return Status::Ok();
  }
  Status Write(ByteSpan header, ByteSpan payload,
               const BlockInfo& info) override {
    if (memory_.failing || (memory_.refusing_counts && info.counted != 0)) {
      return Status::System(ENOSPC, "memory");
    }
    std::lock_guard lock(memory_.mu);
    memory_.bytes += AsText(header);
    memory_.bytes += AsText(payload);
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 4096; }

 private:
  Memory& memory_;
};

class KeepAll final : public InputFilter {
 public:
  FilterNeeds Needs(Op) const override { return {.constant = Verdict::kKeep}; }
  Verdict DecideEarly(Event&) const override { return Verdict::kKeep; }
  bool Keep(Event&) const override { return true; }
};

// Node n is the file "f<n>.c" in directory n % 4 + 2, "d<n>" in the root, 1.
class World final : public EventResolver {
 public:
  void ResolveCaller(Event& event) override {
    event.caller = &caller_;
    event.Set(Field::kPid, 77);
  }
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override {
    link->parent = node == 1 ? 0 : node < 10 ? 1 : node % 4 + 2;
    link->parent_version = 0;
    link->name.Set(node == 1   ? ""
                   : node < 10 ? "d" + std::to_string(node)
                               : "f" + std::to_string(node) + ".c");
    return true;
  }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}

  World() {
    std::memcpy(caller_.comm_bytes.data(), "cc1", 3);
    caller_.comm_size = 3;
    caller_.serial = 1;
  }

 private:
  CallerInfo caller_;
};

TracerParts Parts(Memory& memory, std::string_view clauses,
                  bool with_stream = false) {
  TracerParts parts;
  parts.id = 1;
  parts.filter = std::make_unique<KeepAll>();
  auto spec = ParseAggregateSpec(clauses, "test", {});
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  parts.assembly.push_back(MakeAggregate(*spec));
  if (with_stream) {
    parts.assembly.push_back(MakeStream(StreamFlagBits("STR_ALL")));
  }
  parts.output = MakeFraming(std::make_unique<MemoryDriver>(memory));
  parts.header.clock = ClockPair::Now();
  parts.output_chain = "memory";
  return parts;
}

Event MakeEvent(World& world, Op op, uint64_t node, uint32_t uid,
                uint64_t latency, int64_t result = 0, int error = 0) {
  Event e;
  e.op = op;
  e.resolver = &world;
  e.node = node;
  e.Set(Field::kTime, MonotonicNs());
  e.Set(Field::kUid, uid);
  e.Set(Field::kType, 8);
  e.Set(Field::kLatency, latency);
  e.SetResult(result, error);
  return e;
}

void Send(
    EventSink& sink, const Event& e,
    const std::function<void()>& reply = [] {}) {
  const uint32_t interest = sink.InterestIn(e.op);
  if (interest == 0) return;
  Recording recording(sink, e.op, interest);
  recording.event = e;
  recording.End([&] {
    reply();
    return 0;
  });
}

// True if it was counted before the reply.
bool CountedInTime(Pipeline& pipeline, const Event& e) {
  const uint64_t before = pipeline.Stats().at(0).counted;
  uint64_t counted = 0;
  Send(pipeline, e, [&] { counted = pipeline.Stats().at(0).counted; });
  return counted != before;
}

// A key as text: "op=14 uid=5".
std::string KeyText(const format::AggregateRecord& record) {
  std::string text = record.other ? "other" : "";
  for (const format::AggregateKeyPart& part : record.key) {
    if (!text.empty()) text += ' ';
    text +=
        std::string(format::AggregateKeyLabel(part.arg_id)) + '=' +
        (format::AggregateKeyIsText(part.arg_id) ? std::string(part.text)
                                                 : std::to_string(part.number));
  }
  return text;
}

struct Decoded {
  std::map<std::string, format::AggregateRecord> totals;   // by key
  std::map<std::string, format::AggregateRecord> periods;  // summed
  size_t period_messages = 0;
  uint64_t last_end = 0;
  bool contiguous = true;  // periods follow each other
  size_t events = 0;
  uint64_t lost_from_ns = 0;  // of the last loss that is told
  uint64_t lost_to_ns = 0;
  format::ReadStats stats;
};

Decoded Read(Memory& memory) {
  std::lock_guard lock(memory.mu);
  Decoded decoded;
  format::TraceReaderOptions options;
  options.name = "memory";
  options.aggregate = [&](const format::AggregateRecord& record) {
    const std::string key = KeyText(record);
    if (record.total) {
      EXPECT_TRUE(decoded.totals.emplace(key, record).second) << key;
      return;
    }
    ++decoded.period_messages;
    if (decoded.last_end != 0 && record.to_ns != decoded.last_end) {
      decoded.contiguous &= record.from_ns >= decoded.last_end;
    }
    decoded.last_end = record.to_ns;
    format::AggregateRecord& sum = decoded.periods[key];
    sum.count += record.count;
    sum.bytes = sum.bytes.value_or(0) + record.bytes.value_or(0);
  };
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(memory.bytes)),
      std::move(options));
  std::unique_ptr<format::BlockDecoder> block;
  for (;;) {
    const Result<format::ReadStep> step = reader.NextBlock(&block);
    EXPECT_TRUE(step.ok()) << step.status().message();
    if (!step.ok() || *step != format::ReadStep::kItem) break;
    format::MessageCursor messages(block->bytes());
    for (format::Message message; messages.Next(&message);) {
      if (message.msg_id != static_cast<uint16_t>(format::MessageId::kLoss)) {
        continue;
      }
      format::LossRecord loss;
      format::ReadLoss(message.arguments, &loss);
      decoded.lost_from_ns = loss.first_ns;
      decoded.lost_to_ns = loss.last_ns;
    }
    while (!block->at_end()) {
      format::Record record;
      block->Next(&record);
      ++decoded.events;
    }
  }
  decoded.stats = reader.stats();
  return decoded;
}

constexpr std::chrono::milliseconds kQuick{5};

TEST(AggregateTest, EveryEventOfEveryThreadIsCountedOnce) {
  constexpr uint64_t kEvents = 20'000;
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline
                  .Add(Parts(memory,
                             "by op, uid; values count errors bytes "
                             "latency size"))
                  .ok());
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEvents; ++i) {
        const bool fails = i % 10 == 0;
        Send(pipeline,
             MakeEvent(world, i % 2 == 0 ? Op::read_ : Op::getattr_, 10, t,
                       1000 + i, fails ? 0 : 100, fails ? EIO : 0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.events, 0u);
  EXPECT_EQ(decoded.totals.size(), 8u);
  EXPECT_EQ(decoded.period_messages, 0u);
  EXPECT_FALSE(decoded.stats.Bad());
  EXPECT_EQ(decoded.stats.MissingEvents(), 0u);
  EXPECT_TRUE(decoded.stats.unknown_messages.empty());
  for (uint32_t t = 0; t < 4; ++t) {
    const auto& read = decoded.totals.at("op=14 uid=" + std::to_string(t));
    EXPECT_EQ(read.count, kEvents / 2);
    EXPECT_EQ(read.missed, 0u);
    EXPECT_EQ(read.errors, kEvents / 10);  // all of the even ones
    EXPECT_EQ(read.bytes, 100 * (kEvents / 2 - kEvents / 10));
    EXPECT_EQ(read.latency.Count(), kEvents / 2);
    EXPECT_EQ(read.latency.max, 1000 + kEvents - 2);
    EXPECT_EQ(read.latency.sum, kEvents / 2 * (1000 + kEvents / 2 - 1));
    EXPECT_NEAR(static_cast<double>(read.latency.Quantile(0.5)),
                1000 + kEvents / 2.0, 0.01 * (1000 + kEvents / 2.0));
    EXPECT_EQ(read.size.Count(), kEvents / 2 - kEvents / 10);
    EXPECT_EQ(read.size.Quantile(0.5), 100u);
    const auto& stat = decoded.totals.at("op=1 uid=" + std::to_string(t));
    EXPECT_EQ(stat.count, kEvents / 2);
    EXPECT_EQ(stat.errors, 0u);
    EXPECT_EQ(stat.bytes, 0u);
  }
}

TEST(AggregateTest, KeysNameTheCallerAndTheFile) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(
      pipeline.Add(Parts(memory, "by pid, cname, ext, name, dir, path")).ok());
  Send(pipeline, MakeEvent(world, Op::read_, 12, 1, 5));
  Event named = MakeEvent(world, Op::create_, 13, 1, 5);
  named.parent = 3;
  named.name = "new.tar.gz";
  Send(pipeline, named);
  Event directory = MakeEvent(world, Op::readdir_, 5, 1, 5);
  directory.Set(Field::kType, 4);
  Send(pipeline, directory);
  Event nothing = MakeEvent(world, Op::statfs_, 0, 1, 5);
  Send(pipeline, nothing);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  std::vector<std::string> keys;
  for (const auto& [key, record] : decoded.totals) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{
                      "pid=77 comm=cc1 ext= name= dir=",
                      "pid=77 comm=cc1 ext= name=d5 dir=/ path=/d5",
                      "pid=77 comm=cc1 ext=c name=f12.c dir=/d2 path=/d2/f12.c",
                      "pid=77 comm=cc1 ext=gz name=new.tar.gz dir=/d3 "
                      "path=/d3/new.tar.gz"}));
}

TEST(AggregateTest, ACopyIsReadOfItsSourceAndWrittenToItsDestination) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(
      pipeline
          .Add(Parts(memory, "by op, path; values count bytes size latency"))
          .ok());
  const auto copy = [&](uint64_t to, uint64_t bytes, int error = 0) {
    Event event =
        MakeEvent(world, Op::copy_file_range_, 12, 1, 5,
                  error == 0 ? static_cast<int64_t>(bytes) : -1, error);
    event.new_parent = to;
    Send(pipeline, event);
  };
  copy(13, 100);
  copy(13, 20);
  copy(13, 4000, EIO);
  copy(12, 1);  // within a file
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  ASSERT_EQ(decoded.totals.size(), 2u);
  const auto& from = decoded.totals.at("op=34 path=/d2/f12.c");
  EXPECT_EQ(from.count, 4u);
  EXPECT_EQ(from.bytes, 100u + 20 + 1 + 1) << "1 is read and written";
  EXPECT_EQ(from.size.Count(), 4u) << "transfers";
  EXPECT_EQ(from.latency.Count(), 4u);
  const auto& to = decoded.totals.at("op=34 path=/d3/f13.c");
  EXPECT_EQ(to.count, 0u) << "each operation counts once";
  EXPECT_EQ(to.bytes, 100u + 20);
  EXPECT_EQ(to.size.Count(), 2u);
  EXPECT_EQ(to.latency.Count(), 0u);
}

TEST(AggregateTest, ACopyMovesItsBytesOnceWhereKeysAreNotAboutFiles) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(
      pipeline.Add(Parts(memory, "by op; values count bytes size")).ok());
  Event event = MakeEvent(world, Op::copy_file_range_, 12, 1, 5, 100);
  event.new_parent = 13;
  Send(pipeline, event);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  const auto& sum = decoded.totals.at("op=34");
  EXPECT_EQ(sum.count, 1u);
  EXPECT_EQ(sum.bytes, 100u);
  EXPECT_EQ(sum.size.Count(), 1u);
  EXPECT_EQ(sum.size.max, 100u);
}

TEST(AggregateTest, DirectoriesAreCutAtTheirDepth) {
  class Deep final : public EventResolver {
   public:
    void ResolveCaller(Event&) override {}
    void ResolveAttributes(Event&) override {}
    bool LinkOf(uint64_t node, NodeLink* link) override {
      link->parent = node - 1;
      link->name.Set(
          node == 1 ? "" : std::string(1, static_cast<char>('a' + node - 2)));
      return true;
    }
    void ForEachName(uint64_t, void*,
                     void (*)(void*, std::string_view)) override {}
  };
  Memory memory;
  World world;
  Deep deep;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by dir(2)")).ok());
  for (const uint64_t node : {2, 3, 4, 5, 9}) {
    Event e = MakeEvent(world, Op::read_, node, 0, 1);
    e.resolver = &deep;
    Send(pipeline, e);
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  ASSERT_EQ(decoded.totals.size(), 3u);
  EXPECT_EQ(decoded.totals.at("dir=/").count, 1u);
  EXPECT_EQ(decoded.totals.at("dir=/a").count, 1u);
  EXPECT_EQ(decoded.totals.at("dir=/a/b").count, 3u);
}

// What a trace says of the path of a file without a name is its directory.
TEST(AggregateTest, AFileWithoutANameCountsAsItsDirectoryDoes) {
  for (const auto& [clause, key] : {std::pair{"by path", "path=/d2"},
                                    {"by dir", "dir=/"},
                                    {"by name", "name=d2"},
                                    {"by ext", "ext="}}) {
    Memory memory;
    World world;
    Pipeline pipeline(kQuick);
    ASSERT_TRUE(pipeline.Add(Parts(memory, clause)).ok());
    Event e = MakeEvent(world, Op::tmpfile_, 12, 0, 1);
    e.parent = 2;
    EXPECT_TRUE(CountedInTime(pipeline, e)) << clause;
    ASSERT_TRUE(pipeline.Stop("test").ok());
    const Decoded decoded = Read(memory);
    ASSERT_EQ(decoded.totals.size(), 1u);
    EXPECT_EQ(decoded.totals.begin()->first, key);
  }
}

TEST(AggregateTest, AFileThatMovesCountsWhereItIs) {
  class Moving final : public EventResolver {
   public:
    void ResolveCaller(Event&) override {}
    void ResolveAttributes(Event&) override {}
    bool LinkOf(uint64_t node, NodeLink* link) override {
      link->parent = node == 1 ? 0 : 1;
      link->name.Set(node == 1 ? std::string_view() : name);
      return true;
    }
    void ForEachName(uint64_t, void*,
                     void (*)(void*, std::string_view)) override {}
    std::string_view name = "x.old";
  };
  Memory memory;
  World world;
  Moving moving;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by ext")).ok());
  Event e = MakeEvent(world, Op::read_, 7, 0, 1);
  e.resolver = &moving;
  EXPECT_TRUE(CountedInTime(pipeline, e));   // its name may change
  EXPECT_FALSE(CountedInTime(pipeline, e));  // it is known by now
  moving.name = "x.new";
  e.node_version = 1;
  EXPECT_TRUE(CountedInTime(pipeline, e));
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.totals.at("ext=old").count, 2u);
  EXPECT_EQ(decoded.totals.at("ext=new").count, 1u);
}

// A machine that slept, or a flusher that was late: what was counted meanwhile
// is one period, however many it would have been.
TEST(AggregateTest, APeriodThatIsLateIsReportedOnce) {
  auto spec = ParseAggregateSpec("by op; every 1s", "test", {});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const auto driver = MakeAggregate(*spec);
  const std::shared_ptr<EventCounter> counter = driver->counter();
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t late = MonotonicNs() + 10 * kSecond;
  ASSERT_TRUE(counter->Due(late));
  counter->Report(late, /*end=*/false, [](const format::AggregateRecord&) {});
  EXPECT_FALSE(counter->Due(late));
  EXPECT_TRUE(counter->Due(late + kSecond));
}

TEST(AggregateTest, PeriodsAddUpToTheTotal) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by op; every 1s")).ok());
  const uint64_t end = MonotonicNs() + 2'300'000'000;
  uint64_t sent = 0;
  while (MonotonicNs() < end) {
    Send(pipeline, MakeEvent(world, Op::write_, 10, 0, 9, 5));
    ++sent;
    if (sent % 64 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.period_messages, 3u);
  EXPECT_TRUE(decoded.contiguous);
  EXPECT_EQ(decoded.periods.at("op=15").count, sent);
  EXPECT_EQ(decoded.totals.at("op=15").count, sent);
  EXPECT_EQ(decoded.totals.at("op=15").bytes, 5 * sent);
}

// What is asked for while a tracer runs is what has been counted by then:
// never more than was sent, never less than was there before, and, as soon as
// the flusher has been by, all of it.
TEST(AggregateTest, TotalsCanBeAskedForWhileItRuns) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  TracerParts parts = Parts(memory, "by op");
  parts.name = "always";
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  const auto counted = [&] {
    uint64_t sum = 0;
    size_t records = 0;
    pipeline.ForEachTotal(
        [&](const std::string& name, const format::AggregateRecord& record) {
          ++records;
          EXPECT_EQ(name, "always");
          EXPECT_EQ(record.tracer_id, 1u);
          EXPECT_TRUE(record.total);
          EXPECT_EQ(KeyText(record), "op=11");
          sum += record.count;
        });
    EXPECT_LE(records, 1u);
    return sum;
  };
  EXPECT_EQ(counted(), 0u);
  uint64_t sent = 0;
  uint64_t before = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i, ++sent) {
      Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
    }
    uint64_t now = counted();
    for (int wait = 0; now != sent && wait < 10'000; ++wait) {
      EXPECT_GE(now, before);
      EXPECT_LE(now, sent);
      before = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      now = counted();
    }
    ASSERT_EQ(now, sent);
    before = now;
  }
  ASSERT_TRUE(pipeline.Suspend(1).ok());
  EXPECT_EQ(counted(), sent);
  EXPECT_EQ(pipeline.Stats()[0].counted, sent);
  EXPECT_EQ(pipeline.Stats()[0].encoded, 0u);
  ASSERT_TRUE(pipeline.Resume(1).ok());
  Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).totals.at("op=11").count, sent + 1);
}

TEST(AggregateTest, StandsBesideAStream) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by op", true)).ok());
  for (int i = 0; i < 100; ++i) {
    Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.events, 100u);
  EXPECT_EQ(decoded.totals.at("op=11").count, 100u);
  EXPECT_EQ(decoded.stats.MissingEvents(), 0u);
}

TEST(AggregateTest, OnlyTheTopIsShownAndTheRestIsOther) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by uid; top 3; values count")).ok());
  for (uint32_t uid = 0; uid < 20; ++uid) {
    for (uint32_t i = 0; i <= uid; ++i) {
      Send(pipeline, MakeEvent(world, Op::open_, 10, uid, 9));
    }
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  ASSERT_EQ(decoded.totals.size(), 4u);
  EXPECT_EQ(decoded.totals.at("uid=19").count, 20u);
  EXPECT_EQ(decoded.totals.at("uid=17").count, 18u);
  EXPECT_EQ(decoded.totals.at("other").count, 17u * 18 / 2);
  EXPECT_FALSE(decoded.totals.at("other").errors.has_value());
}

TEST(AggregateTest, OfFilesBeyondTheTopTheOtherKeysAreTold) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  auto spec = ParseAggregateSpec(
      "by op, uid, path; top 4; values count errors bytes latency", "test", {});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  spec->rest_without_files = true;
  TracerParts parts = Parts(memory, "by op");
  parts.assembly = {MakeAggregate(*spec)};
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  std::map<std::string, uint64_t> sent;  // by operation and user
  for (uint64_t node = 10; node < 60; ++node) {
    for (const Op op : {Op::open_, Op::getattr_}) {
      const uint32_t uid = node % 2;
      Send(pipeline, MakeEvent(world, op, node, uid, /*latency=*/node));
      ++sent[std::to_string(Index(op)) + ' ' + std::to_string(uid)];
    }
  }
  // Users of whom there are more than rows.
  for (uint32_t uid = 2; uid < 12; ++uid) {
    Send(pipeline, MakeEvent(world, Op::unlink_, 10, uid, 5));
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  std::map<std::string, uint64_t> told;
  uint64_t histograms = 0;
  uint64_t other = 0;
  for (const auto& [key, record] : decoded.totals) {
    for (const auto& bucket : record.latency.buckets) {
      histograms += bucket.count;
    }
    if (record.other) {
      other = record.count;
      continue;
    }
    told[std::to_string(record.key[0].number) + ' ' +
         std::to_string(record.key[1].number)] += record.count;
  }
  EXPECT_EQ(histograms, 110u);
  EXPECT_EQ(other, 10u);  // the users with one operation each
  EXPECT_EQ(told, sent);
  EXPECT_EQ(decoded.totals.size(), 4u + 4u + 1u);
}

TEST(AggregateTest, TheTopIsInTheOrderThatIsAskedFor) {
  struct Case {
    const char* sort;
    std::set<std::string> shown;
  };
  // uid 1 has most operations, 2 the longest one, 3 the most time, 4 most
  // bytes, 5 most errors; 6 has least of all.
  const Case cases[] = {
      {"count", {"uid=1"}}, {"max", {"uid=2"}},   {"mean", {"uid=2"}},
      {"time", {"uid=3"}},  {"bytes", {"uid=4"}}, {"errors", {"uid=5"}},
      {"-time", {"uid=6"}}, {"-max", {"uid=6"}},
  };
  for (const Case& c : cases) {
    Memory memory;
    World world;
    Pipeline pipeline(kQuick);
    ASSERT_TRUE(
        pipeline
            .Add(Parts(memory, "by uid; top 1; sort " + std::string(c.sort)))
            .ok());
    const auto send = [&](uint32_t uid, uint32_t times, uint64_t latency,
                          int64_t result, int error) {
      for (uint32_t i = 0; i < times; ++i) {
        Send(pipeline,
             MakeEvent(world, Op::read_, 10, uid, latency, result, error));
      }
    };
    send(1, 100, 1000, 1, 0);
    send(2, 2, 5'000'000, 1, 0);
    send(3, 50, 1'000'000, 1, 0);
    send(4, 20, 1000, 1 << 20, 0);
    send(5, 10, 1000, 0, EIO);
    send(6, 11, 10, 1, 0);
    ASSERT_TRUE(pipeline.Stop("test").ok());
    const Decoded decoded = Read(memory);
    std::set<std::string> shown;
    uint64_t all = 0;
    for (const auto& [key, record] : decoded.totals) {
      if (key != "other") shown.insert(key);
      all += record.count;
    }
    EXPECT_EQ(shown, c.shown) << c.sort;
    EXPECT_EQ(all, 193u) << c.sort;
  }
}

TEST(AggregateTest, CountsThatCannotBeWrittenAreLosses) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by op")).ok());
  for (int i = 0; i < 10; ++i) {
    Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
  }
  memory.failing = true;
  EXPECT_FALSE(pipeline.Remove(1, "stop").ok());
  // Nothing after the header; and who asked for the end knows why.
  EXPECT_TRUE(Read(memory).totals.empty());
}

// What the trace says of itself when its counts were refused: each operation is
// lost once, also where the totals repeat what periods had told.
TEST(AggregateTest, DataLoss_RefusedCountsAreLostOnceInTheTracesAccount) {
  for (const char* clauses : {"by op", "by op; every 1h"}) {
    Memory memory;
    World world;
    Pipeline pipeline(kQuick);
    ASSERT_TRUE(pipeline.Add(Parts(memory, clauses)).ok());
    for (int i = 0; i < 10; ++i) {
      Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
    }
    memory.refusing_counts = true;
    EXPECT_FALSE(pipeline.Stop("test").ok());
    const Decoded decoded = Read(memory);
    EXPECT_TRUE(decoded.totals.empty()) << clauses;
    EXPECT_EQ(decoded.stats.lost_events, 10u) << clauses;
    ASSERT_TRUE(decoded.stats.final_record) << clauses;
    const auto& losses = decoded.stats.final_record->loss_totals;
    ASSERT_EQ(losses.size(), 1u) << clauses;
    EXPECT_EQ(losses[0].reason, "output_error");
    EXPECT_EQ(losses[0].count, 10u) << clauses;
  }
}

// One block may hold counts of several drivers, and is lost as one.
TEST(AggregateTest, DataLoss_LostCountsAreOfTheTimeOfAllThatTheyWereCountedIn) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  TracerParts parts = Parts(memory, "by op");  // counts from here on
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const uint64_t later = MonotonicNs();
  auto spec = ParseAggregateSpec("by uid", "test", {});
  ASSERT_TRUE(spec.ok());
  parts.assembly.push_back(MakeAggregate(*spec));
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
  memory.refusing_counts = true;
  EXPECT_FALSE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_LT(decoded.lost_from_ns, later);
  EXPECT_GT(decoded.lost_to_ns, later);
}

// A period is lost, and the total tells it all the same: what it says again is
// no second loss, and what comes through is none.
TEST(AggregateTest, DataLoss_ALostPeriodIsLostOnceThoughTheTotalHasIt) {
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, "by op; every 1s")).ok());
  memory.refusing_counts = true;
  for (int i = 0; i < 10; ++i) {
    Send(pipeline, MakeEvent(world, Op::open_, 10, 0, 9));
  }
  for (int wait = 0; pipeline.Stats()[0].TotalLost() == 0 && wait < 10'000;
       ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(pipeline.Stats()[0].TotalLost(), 10u);
  memory.refusing_counts = false;
  static_cast<void>(pipeline.Stop("test"));
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.totals.at("op=11").count, 10u);
  EXPECT_EQ(decoded.stats.lost_events, 10u);
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The promise: a million distinct keys in at most 64 MiB, and of the heavy ones
// none is missed.
TEST(AggregateTest, AMillionKeysStayWithin64MiB) {
  constexpr uint64_t kKeys = 1'000'000;
  constexpr uint32_t kThreads = 4;
  Memory memory;
  World world;
  Pipeline pipeline(kQuick);
  const uint64_t before = ResidentBytes();
  ASSERT_TRUE(pipeline
                  .Add(Parts(memory,
                             "by op, inode; every 1s; values count "
                             "bytes errors latency size"))
                  .ok());
  std::atomic<uint64_t> heavy{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = t; i < kKeys; i += kThreads) {
        Event e = MakeEvent(world, Op::read_, 10, 0, 1000 + i % 100'000, 10);
        e.Set(Field::kInode, 1'000'000 + i);
        Send(pipeline, e);
        if (i % 64 == t) {  // and a heavy one
          e.Set(Field::kInode, 7);
          Send(pipeline, e);
          ++heavy;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t grown = ResidentBytes() - before;
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const uint64_t at_end = ResidentBytes() - before;
  const Decoded decoded = Read(memory);
  RecordProperty("resident_mib", static_cast<int>(grown >> 20));
  if (!kSanitized) {
    EXPECT_LE(grown, uint64_t{64} << 20);
    EXPECT_LE(at_end, uint64_t{64} << 20);
  }
  uint64_t counted = 0;
  for (const auto& [key, record] : decoded.totals) counted += record.count;
  EXPECT_EQ(counted, kKeys + heavy);
  const format::AggregateRecord& found = decoded.totals.at("op=14 ino=7");
  EXPECT_LE(found.count, heavy);
  EXPECT_GE(found.count + found.missed, heavy);
  // Most of it was counted, too.
  EXPECT_GE(found.count, heavy / 2);
}

}  // namespace
}  // namespace tracefs
