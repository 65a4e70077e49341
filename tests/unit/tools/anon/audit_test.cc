// The audit finds a leak planted in each channel, and none where there is none.
#include "tracefs/tools/anon/audit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "anonymize/base64url.h"
#include "tests/unit/anonymize/anon_world.h"
#include "tests/unit/filters/output/filter_chain.h"
#include "tracefs/base/hex.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/marks.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"
#include "tracefs/pipeline/loss.h"
#include "tracefs/tools/anon/leak_scan.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;
using format::MessageId;

uint16_t Id(auto of) { return static_cast<uint16_t>(of); }

// A plain trace: one of each kind of secret.
std::string Original() {
  test::TraceBuilder trace;
  trace.header().Set("host.name", "zeus.example.org");
  trace.header().Set("mount.point", "/home/alice/project");
  trace.header().Set("filter.text", "cname = alice-editor");
  trace.header().Set("config.text", "file = \"/home/alice/my.trace\"\n");
  trace.header().Set("command.line", "tracefs-mount --secret-option");
  trace.header().Set("environment", "PASSWORD=hunter2hunter2");
  CallerInfo caller;
  caller.pid = 31234;
  caller.ppid = 31200;
  caller.start_time = 88'123'456;
  std::memcpy(caller.comm_bytes.data(), "payrolld", 8);
  caller.comm_size = 8;
  for (int block = 0; block < 3; ++block) {
    const uint32_t process = trace.DefineProcess(caller);
    const uint32_t root = trace.DefinePath(0, "");
    const uint32_t file = trace.DefinePath(root, "salaries-2026.ods");
    for (uint64_t i = 0; i < 40; ++i) {
      Event event;
      event.op = i % 2 == 0 ? Op::setxattr_ : Op::symlink_;
      event.Set(Field::kTime,
                test::TraceBuilder::kMonotonicNs + block * 1000 + i);
      event.Set(Field::kUid, 1234);
      event.Set(Field::kGid, 5678);
      event.Set(Field::kTid, 31235);
      event.Set(Field::kInode, 7654321 + i);
      event.Set(Field::kDataChecksum, 0xdeadbeef + i);
      event.Set(Field::kMtime, test::TraceBuilder::kRealNs - i);
      event.name = "q";
      event.target = "/srv/confidential";
      event.xattr_name = "user.clearance-level";
      event.data = AsBytes("the quick brown fox is classified");
      trace.Add(
          event,
          {.path = file, .parent = root, .new_parent = 0, .process = process});
    }
    trace.EndBlock();
  }
  trace.Finish();
  return trace.bytes();
}

// Takes a trace apart into blocks, lets `change` loose on one of them, and puts
// it together again, CRCs and all.
std::string Changed(const std::string& trace, uint64_t number,
                    const std::function<void(std::string*)>& change) {
  format::ReadStats stats;
  const format::ReportSink report;
  format::FrameReader frames(
      std::make_unique<format::MemorySource>(AsBytes(trace)), false, &stats,
      &report);
  EXPECT_TRUE(frames.ReadPreamble().ok());
  std::string out = format::EncodePreamble(frames.preamble());
  format::Frame frame;
  while (*frames.Next(&frame) == format::ReadStep::kItem) {
    std::string block(AsText(frame.payload));
    if (frame.header.sequence == number) change(&block);
    std::array<std::byte, format::kFrameHeaderBytes> head;
    format::EncodeFrameHeader(head, frame.header, AsBytes(block));
    out += AsText(head);
    out += block;
  }
  return out;
}

// Appends a message with one argument.
std::function<void(std::string*)> Plant(uint16_t msg_id, uint16_t arg_id,
                                        std::string value, bool text = true) {
  return [=](std::string* block) {
    std::vector<std::byte> memory(65536);
    format::MessageWriter out(memory);
    out.Begin(msg_id);
    if (text) {
      out.PutText(arg_id, value);
    } else if (value.size() == 8) {
      out.Put<uint64_t>(arg_id, LoadLe<uint64_t>(value.data()));
    } else {
      out.Put<uint32_t>(arg_id, LoadLe<uint32_t>(value.data()));
    }
    EXPECT_TRUE(out.End());
    *block += AsText(out.bytes());
  };
}

// Adds a property to START, whose length is in its bytes 2 to 5.
std::function<void(std::string*)> Property(std::string text) {
  return [=](std::string* block) {
    std::vector<std::byte> memory(65536);
    format::MessageWriter out(memory);
    out.Begin(1);
    out.PutText(ArgId::kProperty, text);
    EXPECT_TRUE(out.End());
    *block += AsText(out.bytes().subspan(format::kMessageHeaderBytes));
    StoreLe<uint32_t>(block->data() + 2, static_cast<uint32_t>(block->size()));
  };
}

template <typename T>
std::string Number(T value) {
  std::string bytes(sizeof value, '\0');
  StoreLe(bytes.data(), value);
  return bytes;
}

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    std::string name = testing::TempDir() + "audit.XXXXXX";
    folder_ = ::mkdtemp(name.data());
    original_ = Original();
    // Everything is hidden, whatever it is, so that all channels count.
    const std::string policy =
        "structure, totals, duration, size, io, result, mode, request, device "
        "= keep;\n"
        "uid, gid, pid, inode, handle, lock-owner, checksum = fpe;\n"
        "name, comm, exe, cgroup, xattr, data = encrypt;\n"
        "time, clock = shift;\n"
        "property visibility, property tracefs.version = keep;\n"
        "property host.name = encrypt;\nproperty * = drop;\n";
    hidden_ = MustHide(original_, policy);
  }
  ~AuditTest() override { std::filesystem::remove_all(folder_); }

  Status Run(const std::string& trace, std::vector<std::string> ok = {}) {
    std::ofstream(folder_ / "original", std::ios::binary) << original_;
    std::ofstream(folder_ / "hidden", std::ios::binary) << trace;
    report_.clear();
    AuditOptions options;
    options.trace = folder_ / "hidden";
    options.original = folder_ / "original";
    options.quasi = {"uid", "gid", "comm"};
    options.ok_words = std::move(ok);
    // Blocks are as they are, whatever the chain text says.
    if (plain_) {
      options.how.decoder = [](const format::Preamble&) {
        return format::MakePlainDecoder({});
      };
    }
    return Audit(options, &report_);
  }
  // One leak, and it is told with these words.
  void ExpectLeak(const std::string& channel, const std::string& trace,
                  const std::string& words) {
    const Status status = Run(trace);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << channel;
    std::string told;
    std::istringstream lines(report_);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("LEAK")) told += line + '\n';
    }
    EXPECT_NE(told.find(words), std::string::npos)
        << channel << ": " << words << " not in:\n"
        << told;
  }

  std::filesystem::path folder_;
  std::string original_;
  std::string hidden_;
  std::string report_;
  bool plain_ = true;
};

// The blocks of a trace as the filter checksum passes them on.
std::string Sealed(const std::string& trace, bool hides_times) {
  format::ReadStats stats;
  const format::ReportSink report;
  format::FrameReader frames(
      std::make_unique<format::MemorySource>(AsBytes(trace)), false, &stats,
      &report);
  EXPECT_TRUE(frames.ReadPreamble().ok());
  format::Preamble preamble = frames.preamble();
  preamble.chain = "checksum alg=crc32c; file";
  TraceIdentity identity;
  identity.serial = preamble.serial;
  identity.preamble = format::EncodePreamble(preamble);
  identity.hides_times = hides_times;
  std::vector<std::string> blocks;
  format::Frame frame;
  while (*frames.Next(&frame) == format::ReadStep::kItem) {
    blocks.emplace_back(AsText(frame.payload));
  }
  std::string out = identity.preamble;
  for (const Written& written :
       RunChain("checksum alg = crc32c; file = x", blocks, identity)) {
    std::array<std::byte, format::kFrameHeaderBytes> head;
    format::EncodeFrameHeader(
        head, {.sequence = written.info.sequence, .serial = preamble.serial},
        AsBytes(written.payload));
    out += std::string(AsText(head)) + written.payload;
  }
  return out;
}

// A real time beside one that was shifted undoes the shift.
TEST_F(AuditTest, FindsRealTimesThatStandBesideBlocks) {
  const size_t begin = *format::PreambleLength(AsBytes(hidden_).first(12));
  const format::Serial serial =
      format::DecodePreamble(AsBytes(hidden_).first(begin))->serial;
  for (const uint64_t time : {uint64_t{0}, test::TraceBuilder::kRealNs}) {
    std::string snapshot = hidden_;
    snapshot.insert(
        begin, format::EncodeSnapshotMark(
                   serial, {.number = 1, .real_ns = time, .reason = "signal"}));
    if (time == 0) {
      EXPECT_TRUE(Run(snapshot).ok()) << report_;
    } else {
      ExpectLeak("snapshot", snapshot, "1 seals or marks of snapshots");
    }
  }
  plain_ = false;
  EXPECT_TRUE(Run(Sealed(hidden_, /*hides_times=*/true)).ok()) << report_;
  ExpectLeak("seals", Sealed(hidden_, /*hides_times=*/false),
             "seals or marks of snapshots with the time of day");
}

TEST_F(AuditTest, FindsNothingWhereThereIsNothing) {
  const Status status = Run(hidden_);
  EXPECT_TRUE(status.ok()) << report_;
  EXPECT_NE(report_.find("No leak found"), std::string::npos);
  EXPECT_NE(report_.find("smallest k"), std::string::npos);
  EXPECT_NE(report_.find("What risk remains"), std::string::npos);
  // The block taken apart and put together is the same.
  EXPECT_EQ(Changed(hidden_, 1, [](std::string*) {}), hidden_);
}

// Nothing more is claimed than was looked for, and by whose policy.
TEST_F(AuditTest, AVerdictSaysWhatItCovers) {
  ASSERT_TRUE(Run(hidden_).ok());
  EXPECT_NE(report_.find("name yours with --policy"), std::string::npos)
      << report_;
  AuditOptions options;
  options.trace = folder_ / "hidden";
  std::string report;
  ASSERT_TRUE(Audit(options, &report).ok()) << report;
  EXPECT_NE(report.find("values were not searched for"), std::string::npos)
      << report;
  // The original of something else has no values that could be found.
  test::TraceBuilder other;
  other.EndBlock();
  other.Finish();
  original_ = other.bytes();
  const Status status = Run(hidden_);
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  EXPECT_NE(status.message().find("was not made from it"), std::string::npos)
      << status.message();
  EXPECT_EQ(report_.find("No leak found"), std::string::npos) << report_;
}

// A number says by its form whether the rule can have made it.
TEST_F(AuditTest, FindsNumbersThatTheirRuleCannotHaveMade) {
  const std::string rest =
      "structure, totals, mode, request, device, handle, lock-owner = keep;\n"
      "name, comm, exe, cgroup, xattr = hmac;\ndata = drop;\n"
      "property * = drop;\n";
  hidden_ = MustHide(original_, rest +
                                    "uid, gid, pid, inode = map keep { 0 };\n"
                                    "checksum = zero;\n"
                                    "time, clock, duration = keep;\n"
                                    "size, io, result = bucket;\n");
  ASSERT_TRUE(Run(hidden_).ok()) << report_;
  const uint16_t open = format::OperationMessage(Op::open_, false);
  const auto plant = [&](Field field, auto value) {
    return Changed(hidden_, 1,
                   Plant(open, Info(field).arg_id, Number(value), false));
  };
  ExpectLeak("uid", plant(Field::kUid, uint32_t{1234}), "numbers of uid: 1 of");
  ExpectLeak("gid", plant(Field::kGid, uint32_t{5678}), "numbers of gid: 1 of");
  ExpectLeak("inode", plant(Field::kInode, uint64_t{7654325}),
             "numbers of inode: 1 of");
  ExpectLeak(
      "inode of a pipe",
      Changed(hidden_, 1,
              Plant(Id(MessageId::kProcessPipes), Id(ArgId::kPipes),
                    Number<uint32_t>(1) + Number<uint64_t>(7654321) + '\1')),
      "numbers of inode: 1 of");
  ExpectLeak("checksum", plant(Field::kDataChecksum, uint32_t{17}),
             "17 is not zero");
  ExpectLeak("size", plant(Field::kSize, uint64_t{12345}),
             "12345 is not a power of two");
  ExpectLeak("offset", plant(Field::kOffset, uint64_t{12345}),
             "12345 is not a power of two");
  ExpectLeak("sum of an aggregate",
             Changed(hidden_, 1,
                     Plant(Id(MessageId::kAggregate), Id(ArgId::kByteCount),
                           Number(uint64_t{12345}), false)),
             "ARG_BYTE_COUNT: the policy hides sizes");
  ExpectLeak("histogram of an aggregate",
             Changed(hidden_, 1,
                     Plant(Id(MessageId::kAggregate), Id(ArgId::kSizeHistogram),
                           std::string("\x21\0\1\0\0\0\0\0\0\0", 10))),
             "ARG_SIZE_HISTOGRAM: the policy hides sizes");
  ExpectLeak("holes of a file",
             Changed(hidden_, 1,
                     Plant(Id(MessageId::kState), Id(ArgId::kDataRanges),
                           std::string(16, '\1'))),
             "ARG_DATA_RANGES: the policy hides sizes");
  // Where numbers are rounded to other steps.
  hidden_ = MustHide(original_, rest +
                                    "uid, gid, pid, inode, checksum = keep;\n"
                                    "time, clock = quantise 1us;\n"
                                    "duration = quantise 1us;\n"
                                    "size, io, result = quantise 4K;\n");
  ASSERT_TRUE(Run(hidden_).ok()) << report_;
  ExpectLeak("time", plant(Field::kTime, uint64_t{12345}),
             "12345 is not a multiple of 1000");
  ExpectLeak("length", plant(Field::kLength, uint64_t{5000}),
             "5000 is not a multiple of 4096");
}

// A trace of before, whose policy hid the sizes of files and nothing else that
// tells them.
TEST_F(AuditTest, FindsSizesThatFollowFromWhatIsInClear) {
  test::TraceBuilder trace;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{8192}}) {
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
    event.Set(Field::kOffset, offset);
    event.Set(Field::kLength, 8192);
    event.Set(Field::kSize, 12'345);
    event.SetResult(offset == 0 ? 8192 : 12'345 - 8192, 0);
    trace.Add(event);
  }
  trace.EndBlock();
  trace.Finish();
  original_ = trace.bytes();
  const std::string policy = KeepAllBut("time = keep;\n");
  std::string hidden = MustHide(original_, policy);
  // What its header says is what the old version let pass.
  for (size_t at; (at = hidden.find("size = keep;")) != hidden.npos;) {
    hidden = Changed(hidden, 0, [](std::string* block) {
      block->replace(block->find("size = keep;"), 12, "size = zero;");
    });
  }
  ExpectLeak("offset and result", hidden,
             "1 sizes of the original follow, for example 12345");
}

// Files have everyday names, and so have the things that a header tells of the
// machine.
TEST_F(AuditTest, AWordOfTheMachineIsNoLeakOfAFileThatIsCalledSo) {
  test::TraceBuilder trace;
  trace.header().Set("visibility", "auto");
  trace.header().Set("visibility.invisible", "reads of mapped files, flush");
  const uint32_t root = trace.DefinePath(0, "");
  for (const char* name : {"auto", "reads.c", "flush", "files", "mapped"}) {
    Event event;
    event.op = Op::unlink_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
    event.name = name;
    trace.Add(event, {.parent = root});
  }
  trace.EndBlock();
  trace.Finish();
  original_ = trace.bytes();
  hidden_ = MustHide(original_,
                     "structure, totals, duration, size, io, result, "
                     "mode, request, device, uid, gid, pid, inode, "
                     "handle, lock-owner, checksum = keep;\n"
                     "name, comm, exe, cgroup, xattr, data = "
                     "encrypt;\ntime, clock = shift;\n"
                     "property visibility, property "
                     "visibility.invisible = keep;\n"
                     "property * = drop;\n");
  EXPECT_TRUE(Run(hidden_).ok()) << report_;
  // Said by anybody else it is.
  ExpectLeak("changed", Changed(hidden_, 0, Property("visibility=reads.c")),
             "'reads' of name");
}

TEST_F(AuditTest, FindsALeakInEachChannel) {
  const uint16_t open = format::OperationMessage(Op::open_, false);
  const auto field = [](Field f) { return Info(f).arg_id; };
  const auto arg = [](ArgId id) { return static_cast<uint16_t>(id); };
  const auto process = static_cast<uint16_t>(format::MessageId::kDefProcess);
  struct Channel {
    const char* name;
    const char* words;
    std::string trace;
  };
  const Channel channels[] = {
      {"host name", "'zeus.example.org' of property host.name",
       Changed(hidden_, 0, Property("x.note=on zeus.example.org today"))},
      {"mount point", "'/home/alice/project' of property mount.point",
       Changed(hidden_, 0, Property("visibility=/home/alice/project"))},
      {"command line", "of property command.line",
       Changed(hidden_, 0,
               Property("tracefs.version=1 "
                        "tracefs-mount "
                        "--secret-option"))},
      {"filter text", "of property filter.text",
       Changed(hidden_, 0, Property("visibility=cname = alice-editor"))},
      {"config text", "of property config.text",
       Changed(hidden_, 0,
               Property("visibility=file = "
                        "\"/home/alice/my.trace\""))},
      {"environment", "of property environment",
       Changed(hidden_, 0, Property("visibility=PASSWORD=hunter2hunter2"))},
      {"dropped property", "'os.name': the policy says 'drop'",
       Changed(hidden_, 0, Property("os.name=Linux"))},
      {"own property", "'anon.policy': not as tracefs-anon writes it",
       Changed(hidden_, 0, Property("anon.policy=uid = keep; # zeus"))},
      {"name", "ARG_NAME: holds 'salaries-2026' of name",
       Changed(hidden_, 1,
               Plant(open, field(Field::kName), "salaries-2026.ods"))},
      {"short name", "ARG_NAME: holds 'q' of name",
       Changed(hidden_, 1, Plant(open, field(Field::kName), "q"))},
      {"path", "ARG_PATH: holds 'salaries-2026' of name",
       Changed(hidden_, 1,
               Plant(open, field(Field::kPath), "/x/salaries-2026.ods"))},
      {"aggregate key", "ARG_DIRECTORY: holds 'confidential' of name",
       Changed(hidden_, 1,
               Plant(static_cast<uint16_t>(format::MessageId::kAggregate),
                     arg(ArgId::kDirectory), "/srv/confidential"))},
      {"symlink target", "ARG_TARGET: holds 'confidential' of name",
       Changed(hidden_, 1,
               Plant(open, field(Field::kTarget), "/srv/confidential"))},
      {"attribute name", "holds 'clearance-level' of xattr",
       Changed(hidden_, 1,
               Plant(open, field(Field::kXattrName), "user.clearance-level"))},
      {"process name", "ARG_COMM: holds 'payrolld' of comm",
       Changed(hidden_, 1, Plant(process, field(Field::kComm), "payrolld"))},
      {"process record", "numbers of pid: 1 of",
       Changed(
           hidden_, 1,
           Plant(process, field(Field::kPid), Number<uint32_t>(31234), false))},
      {"inode of a pipe", "numbers of inode: 1 of",
       Changed(hidden_, 1,
               Plant(static_cast<uint16_t>(format::MessageId::kProcessPipes),
                     arg(ArgId::kPipes),
                     Number<uint32_t>(1) + Number<uint64_t>(7654321) + '\1'))},
      {"start of a process", "numbers of time: 1 of",
       Changed(hidden_, 1,
               Plant(process, arg(ArgId::kStartTime),
                     Number<uint64_t>(88'123'456), false))},
      {"data", "of data",
       Changed(hidden_, 1,
               Plant(open, field(Field::kData),
                     "xx the quick brown fox is classified"))},
      {"data checksum", "numbers of checksum: 1 of",
       Changed(hidden_, 1,
               Plant(open, field(Field::kDataChecksum),
                     Number<uint32_t>(0xdeadbeef), false))},
      {"user", "numbers of uid: 1 of",
       Changed(hidden_, 1,
               Plant(open, field(Field::kUid), Number<uint32_t>(1234), false))},
      {"user as text", "holds '1234' of uid",
       Changed(hidden_, 0, Property("visibility=owned by 1234"))},
      {"inode", "numbers of inode: 1 of",
       Changed(hidden_, 1,
               Plant(open, field(Field::kInode), Number<uint64_t>(7654321),
                     false))},
      {"time", "numbers of time: 1 of",
       Changed(hidden_, 1,
               Plant(open, field(Field::kTime),
                     Number(test::TraceBuilder::kMonotonicNs), false))},
      {"time of a file", "numbers of clock: 1 of",
       Changed(hidden_, 1,
               Plant(open, field(Field::kMtime),
                     Number(test::TraceBuilder::kRealNs), false))},
      {"undescribed argument", "an argument 9999 in",
       Changed(hidden_, 1, Plant(open, 9999, "payrolld"))},
      {"behind the last block", "8 bytes between blocks or after the last",
       hidden_ + "payrolld"},
      {"between blocks", "1 bytes between blocks or after the last",
       hidden_.substr(0, hidden_.find("TFB", 200)) + "x" +
           hidden_.substr(hidden_.find("TFB", 200))},
      {"serial", "the serial is that of the original",
       [&] {
         std::string trace = hidden_;
         const format::Serial serial = test::TraceBuilder().serial();
         format::ReadStats stats;
         const format::ReportSink report;
         format::FrameReader frames(
             std::make_unique<format::MemorySource>(AsBytes(hidden_)), false,
             &stats, &report);
         EXPECT_TRUE(frames.ReadPreamble().ok());
         std::string out =
             format::EncodePreamble({.serial = serial, .chain = "file"});
         format::Frame frame;
         while (*frames.Next(&frame) == format::ReadStep::kItem) {
           format::FrameHeader header = frame.header;
           header.serial = serial;
           std::array<std::byte, format::kFrameHeaderBytes> head;
           format::EncodeFrameHeader(head, header, frame.payload);
           out += AsText(head);
           out += AsText(frame.payload);
         }
         return out;
       }()},
  };
  for (const Channel& one : channels) {
    ExpectLeak(one.name, one.trace, one.words);
  }
}

// Whatever an argument is for: text can stand in any of them.
TEST_F(AuditTest, FindsALeakInEachArgumentThereIs) {
  size_t arguments = 0;
  for (uint16_t id = 1; id < 1000; ++id) {
    if (format::FindArgument(id) == nullptr) continue;
    ++arguments;
    for (const auto message : {MessageId::kLoss, MessageId::kProcessExec,
                               MessageId::kDefPath, MessageId::kAggregate}) {
      ExpectLeak(format::FindArgument(id)->name.data(),
                 Changed(hidden_, 1, Plant(Id(message), id, "a b payrolld")),
                 "'payrolld' of comm");
    }
  }
  EXPECT_GT(arguments, 100u);
}

// What a policy can only keep is no place for words of others, wherever the
// original has them from.
TEST_F(AuditTest, FindsTextsWhereOnlyWordsOfTracefsBelong) {
  const std::string count(8, '\1');
  const struct {
    uint16_t message;
    uint16_t argument;
    std::string before;
    std::string own;
  } places[] = {
      {Id(MessageId::kLoss), Id(ArgId::kLossReason), "", "refused"},
      {Id(MessageId::kLoss), Id(ArgId::kLossTotal), count, "throttled"},
      {Id(MessageId::kLoss), Id(ArgId::kEndReason), "", "exit"},
      {Id(MessageId::kAlarm), Id(ArgId::kRuleKey), "", "cname"},
  };
  for (const auto& place : places) {
    const auto planted = [&](std::string text) {
      text.insert(0, place.before);
      return Changed(hidden_, 1, Plant(place.message, place.argument, text));
    };
    ExpectLeak("argument " + std::to_string(place.argument),
               planted("eve was here"), "no word that Tracefs writes");
    EXPECT_TRUE(Run(planted(place.own)).ok()) << report_;
  }
  for (size_t i = 0; i < kLossReasonCount; ++i) {
    const std::string reason(LossReasonName(LossReason(i)));
    const auto in_loss = Plant(places[0].message, places[0].argument, reason);
    EXPECT_TRUE(Run(Changed(hidden_, 1, in_loss)).ok()) << reason << report_;
  }
}

// Each argument and each setting of a program is looked for, not their begin.
TEST_F(AuditTest, FindsWhatProgramsWereGiven) {
  const std::string nul(1, '\0');
  const struct {
    ArgId argument;
    std::string value;
    std::string secret;
  } given[] = {
      {ArgId::kArgv,
       "/usr/bin/a-command-with-a-long-name" + nul + "--password=opensesame" +
           nul,
       "--password=opensesame"},
      {ArgId::kEnviron,
       "PATH=/usr/local/bin:/usr/bin:/bin:/sbin" + nul + "TOKEN=xyzzy-plugh" +
           nul,
       "TOKEN=xyzzy-plugh"},
      {ArgId::kCwd, "/home/wonderland", "wonderland"},
      {ArgId::kProgram, "bin/jabberwocky", "jabberwocky"},
  };
  const std::string plain = original_;
  for (const auto& one : given) {
    original_ = Changed(
        plain, 1,
        Plant(Id(MessageId::kProcessExec), Id(one.argument), one.value));
    EXPECT_TRUE(Run(hidden_).ok()) << report_;
    for (const std::string& place :
         {Changed(hidden_, 0, Property("visibility=" + one.secret)),
          Changed(hidden_, 1,
                  Plant(Id(MessageId::kDefPath), Info(Field::kName).arg_id,
                        one.secret)),
          Changed(hidden_, 1,
                  Plant(Id(MessageId::kProcessExec), Id(ArgId::kCwd),
                        one.secret))}) {
      ExpectLeak(one.secret, place, "'" + one.secret + "'");
    }
  }
}

// The same trace behind another preamble.
std::string WithChain(const std::string& trace, const std::string& chain) {
  const ByteSpan bytes = AsBytes(trace);
  const Result<size_t> length = format::PreambleLength(bytes.first(12));
  EXPECT_TRUE(length.ok());
  Result<format::Preamble> preamble =
      format::DecodePreamble(bytes.first(*length));
  EXPECT_TRUE(preamble.ok());
  preamble->chain = chain;
  return format::EncodePreamble(*preamble) + trace.substr(*length);
}

// The output filter writes traces of any chain.
TEST_F(AuditTest, ChainsOfTheTracedHostAreNoLeak) {
  for (const char* chain :
       {"file", "tcp", "async; compress alg=zstd; file",
        "compress alg=zlib; encrypt cipher=aes-256-gcm; throttle; "
        "checksum alg=hmac-sha256 seal=forward sign=ed25519; device"}) {
    EXPECT_TRUE(Run(WithChain(hidden_, chain)).ok()) << chain << report_;
  }
}

TEST_F(AuditTest, FindsWhatIsHiddenInTheChainText) {
  for (const char* chain :
       {"", "file;", "zeus.example.org", "zeus; file",
        "compress alg=zeus; file", "compress alg=zstd level=7; file",
        "compress alg=zstd zeus=1; file", "compress alg=zstd alg=zlib; file",
        "compress  alg=zstd; file", "async;file", "async; file on-zeus",
        "payrolld", "FILE", "compress alg=zstd; anotherdriverthatistoolong",
        "encrypt key=file:/home/alice/secret; file"}) {
    ExpectLeak(chain, WithChain(hidden_, chain),
               chain == std::string("payrolld")
                   ? "preamble: holds 'payrolld' of comm"
                   : "preamble: the chain text is");
  }
}

// A reader stops at FINAL: what comes after it is seen by nobody but whoever
// looks for it.
TEST_F(AuditTest, FindsBlocksBehindTheEndOfTheTrace) {
  // There need be no secret in it.
  format::ReadStats stats;
  const format::ReportSink report;
  format::FrameReader frames(
      std::make_unique<format::MemorySource>(AsBytes(hidden_)), false, &stats,
      &report);
  ASSERT_TRUE(frames.ReadPreamble().ok());
  format::FrameHeader last;
  std::string block;  // one of the middle
  format::Frame frame;
  while (*frames.Next(&frame) == format::ReadStep::kItem) {
    last = frame.header;
    if (last.sequence == 1) block = AsText(frame.payload);
  }
  ++last.sequence;
  std::array<std::byte, format::kFrameHeaderBytes> head;
  format::EncodeFrameHeader(head, last, AsBytes(block));
  const std::string more = std::string(AsText(head)) + block;
  ExpectLeak("behind FINAL", hidden_ + more,
             "1 blocks after the end of the trace");
}

// The original's names of attributes, under a policy that keeps namespaces, and
// a trace in which such a name was planted.
TEST_F(AuditTest, FindsWhatStandsBeforeADotAndIsNoNamespace) {
  test::TraceBuilder trace;
  for (const char* name : {"payroll-2026.draft", "user.clearance-level", "qz.x",
                           "user.", "security.selinux"}) {
    Event event;
    event.op = Op::setxattr_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
    event.xattr_name = name;
    trace.Add(event);
  }
  trace.EndBlock();
  trace.Finish();
  original_ = trace.bytes();
  hidden_ =
      MustHide(original_, KeepAllBut("xattr = encrypt keep-namespace;\n"));
  EXPECT_TRUE(Run(hidden_).ok()) << report_;
  const uint16_t open = format::OperationMessage(Op::open_, false);
  const uint16_t xattr = Info(Field::kXattrName).arg_id;
  const std::pair<const char*, const char*> planted[] = {
      {"payroll-2026.AbCdEfGhIjKlMnOpQrStUvWx", "'payroll-2026' of xattr"},
      {"qz.AbCdEfGhIjKlMnOpQrStUvWx", "'qz' of xattr"},
      {"user.clearance-level", "'clearance-level' of xattr"},
      {"payroll-2026.draft", "'draft' of xattr"}};
  for (const auto& [name, words] : planted) {
    ExpectLeak(name, Changed(hidden_, 1, Plant(open, xattr, name)), words);
  }
  // A namespace says nothing. (In no operation: one more than the original has
  // would be refused.)
  const auto process = static_cast<uint16_t>(format::MessageId::kDefProcess);
  EXPECT_TRUE(
      Run(Changed(hidden_, 1,
                  Plant(process, xattr, "user.AbCdEfGhIjKlMnOpQrStUvWx")))
          .ok())
      << report_;
}

TEST_F(AuditTest, FindsValuesInOtherForms) {
  const std::string secret = "salaries-2026";
  std::string wide;
  for (const char c : secret) wide += std::string{c, '\0'};
  std::string encoded;
  AppendBase64url(AsBytes("so " + secret + "!"), &encoded);
  const std::pair<const char*, std::string> forms[] = {
      {"as UTF-16", wide},
      {"in hex", Hex(AsBytes(secret))},
      {"in base64", encoded},
      {"as it is", "(" + secret + ")"}};
  for (const auto& [form, text] : forms) {
    ExpectLeak(form, Changed(hidden_, 0, Property("visibility=" + text)),
               "holds '" + secret + "' of name, " + form);
  }
  // A part of another word is none.
  EXPECT_TRUE(
      Run(Changed(hidden_, 0, Property("visibility=x" + secret + "x"))).ok())
      << report_;
}

TEST_F(AuditTest, WordsThatMayBeFoundAreNoLeak) {
  EXPECT_TRUE(
      Run(Changed(hidden_, 0, Property("visibility=payrolld")), {"payrolld"})
          .ok())
      << report_;
}

TEST_F(AuditTest, BadInput_ATraceThatIsNotAnonymisedIsRefused) {
  EXPECT_EQ(Run(original_).code(), StatusCode::kInvalid);
  EXPECT_FALSE(Run("no trace at all").ok());
}

}  // namespace
}  // namespace tracefs::anonymize
