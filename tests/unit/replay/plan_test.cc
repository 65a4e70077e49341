// Plans as bytes: what was put comes back, and nothing hostile gets through.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tracefs/replay/action.h"
#include "tracefs/replay/interval_set.h"
#include "tracefs/replay/plan_file.h"

namespace tracefs::replay {
namespace {

Action Rename() {
  Action a;
  a.sequence = 12;
  a.op = Op::rename_;
  a.place = Place::kName;
  a.dir = 3;
  a.name = "old";
  a.new_dir = 4;
  a.new_name = "new";
  a.result = -1;
  a.error = 17;
  a.begin_ns = 1234567890123;
  a.orders[0] = {.counter = 99, .need = 5, .waits = true};
  a.orders[1] = {.counter = 100, .need = 0, .waits = false};
  a.order_count = 2;
  return a;
}

TEST(ActionTest, ComesBackAsItWasPut) {
  std::vector<std::byte> bytes;
  EncodeAction(Rename(), &bytes);
  Action a;
  size_t size = 0;
  ASSERT_TRUE(DecodeAction(bytes, &a, &size).ok());
  EXPECT_EQ(size, bytes.size());
  EXPECT_EQ(a.name, "old");
  EXPECT_EQ(a.new_name, "new");
  EXPECT_EQ(a.dir, 3u);
  EXPECT_EQ(a.handle, kNoSlot);
  EXPECT_EQ(a.result, -1);
  EXPECT_EQ(a.begin_ns, 1234567890123u);
  EXPECT_EQ(a.orders[0].need, 5u);
  EXPECT_FALSE(a.orders[1].waits);
}

TEST(ActionTest, OrdersComeBackWhateverTheyAre) {
  std::mt19937 random(5);
  Action back;
  for (int i = 0; i < 500; ++i) {
    Action a = Rename();
    a.order_count = static_cast<uint32_t>(random() % (Action::kMaxOrders + 1));
    for (uint32_t k = 0; k < a.order_count; ++k) {
      a.orders[k] = {.counter = static_cast<uint32_t>(random()) %
                                (i % 2 == 0 ? 8 : kOrderCounters),
                     .need = static_cast<uint32_t>(random()),
                     .waits = random() % 2 == 0};
    }
    std::vector<std::byte> bytes;
    EncodeAction(a, &bytes);
    size_t size = 0;
    ASSERT_TRUE(DecodeAction(bytes, &back, &size).ok());
    ASSERT_EQ(back.order_count, a.order_count);
    for (uint32_t k = 0; k < a.order_count; ++k) {
      ASSERT_EQ(back.orders[k].counter, a.orders[k].counter);
      ASSERT_EQ(back.orders[k].waits, a.orders[k].waits);
      if (!a.orders[k].waits) continue;
      ASSERT_EQ(back.orders[k].need, a.orders[k].need);
    }
  }
}

TEST(PlanFileTest, NothingIsLeftOfTheEntryBefore) {
  TreeEntry full;
  full.slot = 3;
  full.name = "full";
  full.mode = 0120777;
  full.uid = 1;
  full.gid = 2;
  full.size = 3;
  full.mtime_ns = 4;
  full.rdev = 5;
  full.file = 6;
  full.target = "target";
  full.other_parent = 7;
  full.other_name = "other";
  full.known = 8;
  full.xattrs = "xattrs";
  full.checksum = 9;
  TreeEntry least;
  least.name = "least";
  auto writer = PlanWriter::CreateUnnamed("/tmp");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->AddInitial(full).ok());
  ASSERT_TRUE(writer->AddInitial(least).ok());
  auto plan = writer->Finish({});
  ASSERT_TRUE(plan.ok());
  auto chunk = PlanReader(plan->get(), ChunkKind::kInitial).Next();
  ASSERT_TRUE(chunk.ok() && *chunk);
  TreeEntry entry;
  size_t size = 0;
  ASSERT_TRUE(DecodeEntry(**chunk, false, &entry, &size).ok());
  EXPECT_EQ(entry.slot, 3u);
  EXPECT_EQ(entry.mtime_ns, 4);
  EXPECT_EQ(entry.other_parent, 7u);
  EXPECT_EQ(entry.other_name, "other");
  EXPECT_EQ(entry.target, "target");
  EXPECT_EQ(entry.xattrs, "xattrs");
  EXPECT_EQ(entry.checksum, 9u);
  EXPECT_EQ(entry.rdev + entry.file + entry.known, 5u + 6 + 8);
  EXPECT_EQ(entry.uid + entry.gid + entry.size, 1u + 2 + 3);
  ASSERT_TRUE(
      DecodeEntry(ByteSpan(**chunk).subspan(size), false, &entry, &size).ok());
  EXPECT_EQ(entry.name, "least");
  EXPECT_EQ(entry.slot, kNoSlot);
  EXPECT_EQ(entry.other_parent, kNoSlot);
  EXPECT_EQ(entry.target + entry.xattrs + entry.other_name, "");
  EXPECT_EQ(entry.mode + entry.uid + entry.gid + entry.known, 0u);
  EXPECT_EQ(entry.checksum, 0u);
  EXPECT_EQ(entry.size + entry.rdev + entry.file, 0u);
  EXPECT_EQ(entry.mtime_ns, 0);
}

TEST(ActionTest, Malicious_NumbersBeyondTheirTablesAreRefused) {
  const auto taken = [](const std::function<void(Action&)>& change) {
    Action a = Rename();
    change(a);
    std::vector<std::byte> bytes;
    EncodeAction(a, &bytes);
    size_t size = 0;
    Action back;
    return DecodeAction(bytes, &back, &size).ok();
  };
  EXPECT_TRUE(taken([](Action&) {}));
  EXPECT_TRUE(taken([](Action& a) { a.lane = kMaxLanes - 1; }));
  EXPECT_FALSE(taken([](Action& a) { a.lane = kMaxLanes; }));
  for (uint32_t Action::*const slot :
       {&Action::dir, &Action::new_dir, &Action::made_dir, &Action::handle,
        &Action::handle_out}) {
    EXPECT_TRUE(taken([&](Action& a) { a.*slot = kMaxSlots - 1; }));
    EXPECT_FALSE(taken([&](Action& a) { a.*slot = kMaxSlots; }));
  }
  EXPECT_TRUE(
      taken([](Action& a) { a.orders[1].counter = kOrderCounters - 1; }));
  for (const size_t i : {0, 1}) {
    EXPECT_FALSE(
        taken([&](Action& a) { a.orders[i].counter = kOrderCounters; }));
  }
  EXPECT_FALSE(taken([](Action& a) { a.dir = kNoSlot; }));
  EXPECT_FALSE(taken([](Action& a) {
    a.place = Place::kDir;
    a.dir = kNoSlot;
  }));
  EXPECT_FALSE(taken([](Action& a) { a.place = Place::kHandle; }));
  EXPECT_TRUE(taken([](Action& a) { a.text = std::string_view("to"); }));
  EXPECT_FALSE(taken([](Action& a) { a.text = std::string_view("t\0o", 3); }));
  static const std::string most(4096, 't');
  static const std::string more(4097, 't');
  EXPECT_TRUE(taken([](Action& a) { a.text = most; }));
  EXPECT_FALSE(taken([](Action& a) { a.text = more; }));
}

TEST(ActionTest, Malicious_NamesThatLeadElsewhereAreRefused) {
  const std::string names[] = {
      "..", ".", "a/b", "/", std::string("a\0b", 3), std::string(5000, 'x')};
  for (const std::string& name : names) {
    for (const bool second : {false, true}) {
      Action a = Rename();
      (second ? a.new_name : a.name) = name;
      std::vector<std::byte> bytes;
      EncodeAction(a, &bytes);
      size_t size = 0;
      EXPECT_FALSE(DecodeAction(bytes, &a, &size).ok()) << name;
    }
  }
  Action a = Rename();
  a.dir = kMaxSlots;
  std::vector<std::byte> bytes;
  EncodeAction(a, &bytes);
  size_t size = 0;
  EXPECT_FALSE(DecodeAction(bytes, &a, &size).ok());
}

TEST(ActionTest, Malicious_DamagedBytesNeverReadPastTheirEnd) {
  std::vector<std::byte> good;
  EncodeAction(Rename(), &good);
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = good;
    for (int k = 0; k < 3; ++k) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    Action a;
    size_t size = 0;
    if (DecodeAction(bytes, &a, &size).ok()) {
      EXPECT_LE(size, bytes.size());
      EXPECT_TRUE(a.place != Place::kName || IsSafeName(a.name));
    }
  }
}

TEST(PlanFileTest, KeepsChunksApartAndNoticesDamage) {
  auto writer = PlanWriter::CreateUnnamed("/tmp");
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(writer->Add(Rename()).ok());
  TreeEntry entry;
  entry.name = "was";
  entry.mode = 0100644;
  ASSERT_TRUE(writer->AddInitial(entry).ok());
  entry.name = "is/there";
  ASSERT_TRUE(writer->AddFinal(entry).ok());
  PlanHeader header;
  header.actions = 20000;
  header.lanes = 2;
  auto fd = writer->Finish(header);
  ASSERT_TRUE(fd.ok());
  auto read = PlanReader::ReadHeader(fd->get());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->actions, 20000u);
  const auto count = [&] {
    PlanReader reader(fd->get(), ChunkKind::kActions);
    int actions = 0;
    while (true) {
      auto chunk = reader.Next();
      if (!chunk.ok()) return -1;
      if (!*chunk) return actions;
      for (size_t at = 0, size = 0; at < (*chunk)->size(); at += size) {
        Action a;
        if (!DecodeAction(ByteSpan(**chunk).subspan(at), &a, &size).ok()) {
          return -2;
        }
        ++actions;
      }
    }
  };
  EXPECT_EQ(count(), 20000);
  ASSERT_EQ(::pwrite(fd->get(), "x", 1, 5000), 1);
  EXPECT_EQ(count(), -1);
  ASSERT_EQ(::pwrite(fd->get(), "x", 1, 50), 1);
  EXPECT_FALSE(PlanReader::ReadHeader(fd->get()).ok());
}

TEST(IntervalSetTest, KnowsWhatASetOfBytesKnows) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    IntervalSet set;
    std::vector<bool> bytes(200);
    for (int i = 0; i < 40; ++i) {
      const size_t begin = random() % 180;
      const size_t end = begin + random() % 20;
      const bool adds = random() % 3 != 0;
      std::vector<bool> fresh(200);
      if (adds) {
        ASSERT_TRUE(set.Add(begin, end, [&](uint64_t from, uint64_t to) {
          for (uint64_t at = from; at < to; ++at) fresh[at] = true;
        }));
      } else {
        set.Remove(begin, end);
      }
      for (size_t at = 0; at < bytes.size(); ++at) {
        const bool in = at >= begin && at < end;
        ASSERT_EQ(fresh[at], adds && in && !bytes[at]);
        if (in) bytes[at] = adds;
      }
      for (size_t at = 0; at < bytes.size(); ++at) {
        ASSERT_EQ(set.Covers(at, at + 1), bytes[at]);
        ASSERT_EQ(set.Touches(at, at + 1), bytes[at]);
      }
      const size_t from = random() % 180;
      const size_t to = from + random() % 20;
      const auto some = bytes.begin() + static_cast<ptrdiff_t>(from);
      const auto last = bytes.begin() + static_cast<ptrdiff_t>(to);
      ASSERT_EQ(set.Covers(from, to), std::find(some, last, false) == last);
      ASSERT_EQ(set.Touches(from, to), std::find(some, last, true) != last);
    }
  }
}

TEST(IntervalSetTest, Malicious_PiecesAreBounded) {
  IntervalSet set;
  for (uint64_t i = 0; i < IntervalSet::kMost; ++i) {
    ASSERT_TRUE(set.Add(4 * i, 4 * i + 3));
  }
  EXPECT_FALSE(set.Add(1'000'000, 1'000'001));
  EXPECT_FALSE(set.Covers(1'000'000, 1'000'001));
  EXPECT_TRUE(set.Add(8, 11)) << "it is there";
  set.Remove(9, 10);  // it would be one piece more
  EXPECT_TRUE(set.Covers(8, 11));
  set.Remove(8, 9);
  EXPECT_FALSE(set.Touches(8, 9));
  EXPECT_TRUE(set.Covers(9, 11));
  set.Remove(4, 7);
  EXPECT_FALSE(set.Touches(4, 7));
  EXPECT_TRUE(set.Add(1'000'000, 1'000'001)) << "there is room again";
}

}  // namespace
}  // namespace tracefs::replay
