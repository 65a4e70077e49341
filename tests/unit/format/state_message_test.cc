// STATE messages come back as written, each value by itself, and what lies in
// them is refused.
#include "tracefs/format/state_message.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/base/append_le.h"
#include "tracefs/format/record.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs {
namespace {

using format::Record;
using format::StateRecord;
using test::TraceBuilder;

class StateMessageTest : public testing::Test {
 protected:
  using Write = std::function<bool(format::MessageWriter& out)>;

  // Writes one message into a trace, reads that, and looks at what comes out.
  void Back(const Write& write,
            const std::function<void(const StateRecord&)>& look) {
    std::vector<std::byte> memory(size_t{1} << 20);
    format::MessageWriter out(memory);
    ASSERT_TRUE(write(out));
    TraceBuilder trace;
    trace.AddBytes(AsText(out.bytes()));
    trace.EndBlock(TraceBuilder::kMonotonicNs);
    trace.Finish();
    int states = 0;
    format::TraceReaderOptions options;
    options.report = [](const format::Report& report) {
      ADD_FAILURE() << report.Text();
    };
    options.state = [&](const StateRecord& state) {
      ++states;
      look(state);
    };
    format::TraceReader reader(
        std::make_unique<format::MemorySource>(AsBytes(trace.bytes())),
        std::move(options));
    std::unique_ptr<format::BlockDecoder> block;
    for (;;) {
      const auto step = reader.NextBlock(&block);
      ASSERT_TRUE(step.ok());
      if (*step != format::ReadStep::kItem) break;
    }
    EXPECT_EQ(states, 1);
    EXPECT_EQ(reader.stats().states, 1u);
    EXPECT_EQ(reader.stats().events, 0u);
    EXPECT_FALSE(reader.stats().Bad());
  }

  static FileState Every() {
    FileState state;
    state.st.st_ino = 0x1122334455667788;
    state.st.st_mode = S_IFREG | 0640;
    state.st.st_nlink = 3;
    state.st.st_size = 0x1234567890;
    state.st.st_uid = 4;
    state.st.st_gid = 5;
    state.st.st_mtim = {.tv_sec = 7, .tv_nsec = 8};
    state.target = "../to\nthere ";
    state.xattrs = {{"user.a", ""}, {"user.b", std::string("\0=x", 3)}};
    state.data = {{.offset = 0, .length = 4096},
                  {.offset = 1ULL << 40, .length = 1}};
    state.checksum = 0xfedcba98;
    return state;
  }

  using Pairs = std::vector<std::pair<std::string, std::string>>;
  static Pairs Xattrs(const StateRecord& state) {
    Pairs found;
    EXPECT_TRUE(state.ForEachXattr(
        [&](auto name, auto value) { found.emplace_back(name, value); }));
    return found;
  }
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  static Ranges RangesOf(const StateRecord& state) {
    Ranges found;
    EXPECT_TRUE(state.ForEachRange([&](uint64_t offset, uint64_t length) {
      found.emplace_back(offset, length);
    }));
    return found;
  }
};

TEST_F(StateMessageTest, EveryValueComesBack) {
  const FileState state = Every();
  Back(
      [&](auto& out) {
        return WriteState(out, state, 99, /*late=*/true, /*at_end=*/true,
                          "/a \"b\"");
      },
      [&](const StateRecord& back) {
        EXPECT_TRUE(back.at_end);
        EXPECT_FALSE(back.is_open);
        EXPECT_TRUE(back.late);
        EXPECT_FALSE(back.incomplete);
        EXPECT_EQ(Xattrs(back), state.xattrs);
        EXPECT_TRUE(back.has_ranges);
        EXPECT_EQ(RangesOf(back), (Ranges{{0, 4096}, {uint64_t{1} << 40, 1}}));
        const Event& event = back.file->event;
        EXPECT_EQ(event.Get(Field::kTime), 99u);
        EXPECT_EQ(event.Get(Field::kInode), 0x1122334455667788u);
        EXPECT_EQ(event.Get(Field::kMode), uint64_t{S_IFREG | 0640});
        EXPECT_EQ(event.Get(Field::kNlink), 3u);
        EXPECT_EQ(event.Get(Field::kSize), 0x1234567890u);
        EXPECT_EQ(event.Get(Field::kFuid), 4u);
        EXPECT_EQ(event.Get(Field::kFgid), 5u);
        EXPECT_EQ(event.Get(Field::kMtime), 7'000'000'008u);
        EXPECT_EQ(event.Get(Field::kDataChecksum), 0xfedcba98u);
        EXPECT_FALSE(event.Has(Field::kRdev)) << "it is no device";
        EXPECT_FALSE(event.Has(Field::kFh));
        EXPECT_FALSE(event.Has(Field::kFlags));
        EXPECT_EQ(back.file->Text(Field::kTarget), state.target);
        EXPECT_EQ(back.file->Text(Field::kPath), "/a \"b\"");
      });
}

TEST_F(StateMessageTest, WhatIsNotKnownIsNotThere) {
  FileState state;
  state.st.st_mode = S_IFDIR | 0755;
  state.incomplete = true;
  Back([&](auto& out) { return WriteState(out, state, 1, false, false, ""); },
       [&](const StateRecord& back) {
         EXPECT_FALSE(back.at_end);
         EXPECT_FALSE(back.is_open);
         EXPECT_FALSE(back.late);
         EXPECT_TRUE(back.incomplete);
         EXPECT_FALSE(back.has_ranges);
         EXPECT_TRUE(Xattrs(back).empty());
         EXPECT_TRUE(RangesOf(back).empty());
         EXPECT_FALSE(back.file->event.Has(Field::kDataChecksum));
         EXPECT_FALSE(back.file->HasText(Field::kTarget));
         EXPECT_FALSE(back.file->HasText(Field::kPath));
       });
  // All of it is a hole: known, and none.
  state.data.emplace();
  Back([&](auto& out) { return WriteState(out, state, 1, false, false, ""); },
       [&](const StateRecord& back) {
         EXPECT_TRUE(back.has_ranges);
         EXPECT_TRUE(RangesOf(back).empty());
       });
}

TEST_F(StateMessageTest, DevicesHaveTheirNumber) {
  for (const mode_t type : {S_IFCHR, S_IFBLK, S_IFREG, S_IFIFO}) {
    FileState state;
    state.st.st_mode = type | 0600;
    state.st.st_rdev = ::makedev(8, 1);
    Back([&](auto& out) { return WriteState(out, state, 1, false, false, ""); },
         [&](const StateRecord& back) {
           const bool device = type == S_IFCHR || type == S_IFBLK;
           EXPECT_EQ(back.file->event.Has(Field::kRdev), device) << type;
           if (!device) return;
           EXPECT_EQ(back.file->event.Get(Field::kRdev), ::makedev(8, 1));
         });
  }
}

TEST_F(StateMessageTest, OpenFilesSayWhoHasThem) {
  OpenFile file = {.fh = 11,
                   .flags = 0x8002,
                   .tid = 12,
                   .uid = 13,
                   .gid = 14,
                   .path = "/held",
                   .state = Every()};
  Back([&](auto& out) { return WriteOpenFile(out, file, 99); },
       [&](const StateRecord& back) {
         EXPECT_TRUE(back.is_open);
         EXPECT_FALSE(back.at_end);
         EXPECT_FALSE(back.late);
         const Event& event = back.file->event;
         EXPECT_EQ(event.Get(Field::kFh), 11u);
         EXPECT_EQ(event.Get(Field::kFlags), 0x8002u);
         EXPECT_EQ(event.Get(Field::kTid), 12u);
         EXPECT_EQ(event.Get(Field::kUid), 13u);
         EXPECT_EQ(event.Get(Field::kGid), 14u);
         EXPECT_EQ(back.file->Text(Field::kPath), "/held");
       });
  // Nobody was seen using it, and it has no name.
  file.tid = 0;
  file.path.clear();
  Back([&](auto& out) { return WriteOpenFile(out, file, 99); },
       [&](const StateRecord& back) {
         for (const Field field : {Field::kTid, Field::kUid, Field::kGid}) {
           EXPECT_FALSE(back.file->event.Has(field));
         }
         EXPECT_FALSE(back.file->HasText(Field::kPath));
       });
}

TEST_F(StateMessageTest, WhatDoesNotFitIsNotWritten) {
  const FileState state = Every();
  std::vector<std::byte> memory(4096);
  format::MessageWriter all(memory);
  ASSERT_TRUE(WriteState(all, state, 1, false, false, "/a"));
  for (size_t size = 0; size <= all.size(); ++size) {
    format::MessageWriter out(std::span<std::byte>(memory).first(size));
    EXPECT_EQ(WriteState(out, state, 1, false, false, "/a"),
              size == all.size());
    EXPECT_EQ(out.size(), size == all.size() ? size : 0u);
  }
}

TEST_F(StateMessageTest, Malicious_ListsThatEndWithinAnEntryAreRefused) {
  std::string xattrs;
  for (const std::string_view text : {"name", "value", "n", ""}) {
    AppendLe<uint32_t>(static_cast<uint32_t>(text.size()), &xattrs);
    xattrs += text;
  }
  std::string ranges;
  for (const uint64_t n : {1, 2, 3, 4}) AppendLe<uint64_t>(n, &ranges);
  StateRecord record;
  const size_t first = 4 + 4 + 4 + 5;
  for (size_t size = 0; size <= xattrs.size(); ++size) {
    record.xattrs = AsBytes(xattrs).first(size);
    size_t seen = 0;
    const bool good = record.ForEachXattr([&](auto, auto) { ++seen; });
    EXPECT_EQ(good, size == 0 || size == first || size == xattrs.size());
    EXPECT_EQ(seen, size == xattrs.size() ? 2u : size >= first ? 1u : 0u);
  }
  for (size_t size = 0; size <= ranges.size(); ++size) {
    record.ranges = AsBytes(ranges).first(size);
    size_t seen = 0;
    EXPECT_EQ(record.ForEachRange([&](uint64_t offset, uint64_t length) {
      EXPECT_EQ(length, offset + 1);
      ++seen;
    }),
              size % 16 == 0);
    EXPECT_EQ(seen, size / 16);
  }
}

}  // namespace
}  // namespace tracefs
