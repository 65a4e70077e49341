// Process records: from a source, through the pipeline, into the traces of the
// tracers that keep them, and back in their order among the operations.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drivers/assembly/stream.h"
#include "drivers/output/framing.h"
#include "tests/support/read_records.h"
#include "tracefs/base/clock.h"
#include "tracefs/pipeline/pipeline.h"

namespace tracefs {
namespace {

using Kind = ProcessRecord::Kind;

class KeepAll final : public InputFilter {
 public:
  FilterNeeds Needs(Op) const override {
    FilterNeeds needs;
    needs.constant = Verdict::kKeep;
    return needs;
  }
  Verdict DecideEarly(Event&) const override { return Verdict::kKeep; }
  bool Keep(Event&) const override { return true; }
};

class MemoryDriver final : public OutputDriver {
 public:
  explicit MemoryDriver(std::string& bytes) : bytes_(bytes) {}
  Status Initialize(const TraceIdentity& identity) override {
    bytes_ = identity.preamble;
    return Status::Ok();
  }
  Status Write(ByteSpan header, ByteSpan payload, const BlockInfo&) override {
    bytes_ += AsText(header);
    bytes_ += AsText(payload);
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 4096; }

 private:
  std::string& bytes_;
};

TracerParts Parts(uint32_t id, uint32_t flags, std::string& bytes) {
  TracerParts parts;
  parts.id = id;
  parts.filter = std::make_unique<KeepAll>();
  parts.assembly.push_back(MakeStream(flags));
  parts.output = MakeFraming(std::make_unique<MemoryDriver>(bytes));
  parts.header.clock = ClockPair::Now();
  parts.output_chain = "memory";
  return parts;
}

// A record that owns its texts, and what stood before it.
struct Found {
  ProcessRecord record;
  std::string argv;
  std::string environ;
  uint64_t operations_before = 0;
};

struct Trace {
  std::deque<Found> records;
  uint64_t operations = 0;
  format::ReadStats stats;
};

Trace Read(const std::string& bytes) {
  Trace trace;
  format::TraceReaderOptions options;
  options.process = [&](const ProcessRecord& record) {
    trace.records.push_back({record, std::string(record.argv),
                             std::string(record.environ), trace.operations});
  };
  trace.stats = test::ReadRecords(
      bytes, [&](const format::Record&) { ++trace.operations; },
      std::move(options));
  return trace;
}

ProcessRecord Exec(uint32_t pid, std::string_view argv) {
  ProcessRecord record;
  record.kind = Kind::kExec;
  record.time_ns = MonotonicNs();
  record.process = {.pid = pid, .start_ticks = 5};
  record.argv = argv;
  record.environ = {"A=1\0", 4};
  return record;
}

void Operation(EventSink& sink) {
  Recording recording(sink, Op::open_, sink.InterestIn(Op::open_));
  recording.event.SetResult(0, 0);
  recording.End([] { return 0; });
}

TEST(ProcessRecordsTest, OnlyTracersThatAskForThemGetThem) {
  std::string with;
  std::string without;
  std::string environment;
  Pipeline pipeline(std::chrono::hours(1));
  EXPECT_FALSE(pipeline.Wanted().records);
  ASSERT_TRUE(pipeline.Add(Parts(1, kStrTsNsec, without)).ok());
  EXPECT_FALSE(pipeline.Wanted().records);
  ASSERT_TRUE(pipeline.Add(Parts(2, kStrProcessRecords, with)).ok());
  EXPECT_TRUE(pipeline.Wanted().records);
  EXPECT_FALSE(pipeline.Wanted().environment);
  ASSERT_TRUE(
      pipeline.Add(Parts(3, kStrProcessRecords | kStrEnvironment, environment))
          .ok());
  EXPECT_TRUE(pipeline.Wanted().environment);
  pipeline.Take(Exec(7, {"ls\0", 3}));
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_TRUE(Read(without).records.empty());
  const Trace plain = Read(with);
  ASSERT_EQ(plain.records.size(), 1u);
  EXPECT_EQ(plain.records[0].argv, std::string("ls\0", 3));
  EXPECT_EQ(plain.records[0].environ, "");
  ASSERT_EQ(Read(environment).records.size(), 1u);
  EXPECT_EQ(Read(environment).records[0].environ, std::string("A=1\0", 4));
}

TEST(ProcessRecordsTest, TheyStandBetweenTheOperationsBeforeAndAfter) {
  std::string bytes;
  Pipeline pipeline(std::chrono::milliseconds(1));
  ASSERT_TRUE(
      pipeline.Add(Parts(1, kStrProcessRecords | kStrTsNsec, bytes)).ok());
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    Operation(pipeline);
    pipeline.HoldBack(MonotonicNs());
    const ProcessRecord record = Exec(static_cast<uint32_t>(i + 1), {});
    pipeline.Take(record);
    pipeline.HoldBack(ProcessSink::kNothingHeld);
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Trace trace = Read(bytes);
  ASSERT_EQ(trace.records.size(), static_cast<size_t>(kRounds));
  for (size_t i = 0; i < trace.records.size(); ++i) {
    EXPECT_EQ(trace.records[i].record.process.pid, i + 1);
    EXPECT_EQ(trace.records[i].operations_before, i + 1);
  }
  EXPECT_EQ(trace.stats.unordered_events, 0u);
}

// As of a ring that is read now and then.
TEST(ProcessRecordsTest, WhatIsHeldBackKeepsItsPlaceThoughItComesLate) {
  std::string bytes;
  Pipeline pipeline(std::chrono::milliseconds(1));
  ASSERT_TRUE(
      pipeline.Add(Parts(1, kStrProcessRecords | kStrTsNsec, bytes)).ok());
  pipeline.HoldBack(MonotonicNs());
  const ProcessRecord early = Exec(7, {});
  for (int i = 0; i < 20; ++i) {
    Operation(pipeline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pipeline.Take(early);
  pipeline.HoldBack(ProcessSink::kNothingHeld);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Trace trace = Read(bytes);
  ASSERT_EQ(trace.records.size(), 1u);
  EXPECT_EQ(trace.records[0].operations_before, 0u);
  EXPECT_EQ(trace.operations, 20u);
}

TEST(ProcessRecordsTest, ARecordLongerThanABlockIsKeptWhole) {
  std::string bytes;
  Pipeline pipeline(std::chrono::hours(1));
  ASSERT_TRUE(pipeline.Add(Parts(1, kStrProcessRecords, bytes)).ok());
  std::string argv = "cc";
  argv.push_back('\0');
  argv.append(300'000, 'x');
  argv.push_back('\0');
  pipeline.Take(Exec(1, {"ls\0", 3}));
  pipeline.Take(Exec(2, argv));
  pipeline.Take(Exec(3, {"rm\0", 3}));
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Trace trace = Read(bytes);
  ASSERT_EQ(trace.records.size(), 3u);
  EXPECT_EQ(trace.records[1].argv, argv);
  EXPECT_FALSE(trace.records[1].record.incomplete);
}

TEST(ProcessRecordsTest, DataLoss_AnOverrunIsInTheTrace) {
  std::string bytes;
  Pipeline pipeline(std::chrono::hours(1));
  ASSERT_TRUE(pipeline.Add(Parts(1, kStrProcessRecords, bytes)).ok());
  pipeline.NoteOverrun(3, 10, 20);
  pipeline.NoteOverrun(0, 20, 30);  // how many is not known
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Trace trace = Read(bytes);
  EXPECT_EQ(trace.stats.losses.at("overrun"), 4u);
  ASSERT_TRUE(trace.stats.final_record);
  ASSERT_EQ(trace.stats.final_record->loss_totals.size(), 1u);
  EXPECT_EQ(trace.stats.final_record->loss_totals[0].reason, "overrun");
}

TEST(ProcessRecordsTest, EveryKindComesBackAsItWas) {
  ProcessRecord record;
  record.kind = Kind::kPipes;
  record.time_ns = 12;
  record.process = {.pid = 4'000'000, .start_ticks = 1ull << 40};
  record.tid = 3;
  record.ppid = 2;
  record.ns_pid = 9;
  record.cpu = 0;
  record.child = {.pid = 5, .start_ticks = 6};
  record.child_tid = 5;
  record.child_ns_pid = 8;
  record.clone_flags = 0;
  record.program = "p";
  record.exe = "e";
  record.cwd = "/";
  record.argv = {"\0", 1};
  record.environ = {"=\0", 2};
  record.exit_code = 0;
  record.signal = 9;
  record.core_dumped = record.late = record.incomplete = true;
  record.comm = "c";
  record.cgroup = "/";
  record.pipes = {
      {.fd = UINT32_MAX, .inode = UINT64_MAX, .access = PipeEnd::kReadWrite},
      {.fd = 0, .inode = 1, .access = PipeEnd::kRead}};
  record.source = ProcessSource::kPerf;
  std::vector<std::byte> memory(4096);
  format::MessageWriter out(memory);
  ASSERT_TRUE(format::WriteProcessRecord(out, record));
  const ByteSpan arguments = out.bytes().subspan(format::kMessageHeaderBytes);
  ProcessRecord back;
  back.kind = Kind::kPipes;
  ASSERT_TRUE(
      format::ReadProcessRecord(arguments, format::BuiltInWidths(), &back));
  EXPECT_EQ(back.process, record.process);
  EXPECT_EQ(back.process.Upid(), (1ull << 62) + 4'000'000);
  EXPECT_EQ(back.tid, 3u);
  EXPECT_EQ(back.ppid, 2u);
  EXPECT_EQ(back.ns_pid, 9u);
  EXPECT_EQ(back.cpu, 0u);
  EXPECT_EQ(back.child, record.child);
  EXPECT_EQ(back.child_tid, 5u);
  EXPECT_EQ(back.child_ns_pid, 8u);
  EXPECT_EQ(back.clone_flags, 0u);
  EXPECT_EQ(back.program, "p");
  EXPECT_EQ(back.exe, "e");
  EXPECT_EQ(back.cwd, "/");
  EXPECT_EQ(back.argv, record.argv);
  EXPECT_EQ(back.environ, record.environ);
  EXPECT_EQ(back.exit_code, 0u);
  EXPECT_EQ(back.signal, 9u);
  EXPECT_TRUE(back.core_dumped && back.late && back.incomplete);
  EXPECT_EQ(back.comm, "c");
  EXPECT_EQ(back.cgroup, "/");
  EXPECT_EQ(back.pipes, record.pipes);
  EXPECT_EQ(back.source, ProcessSource::kPerf);
  EXPECT_EQ(back.time_ns, 12u);

  // Cut anywhere it is either whole up to there or said to be malformed.
  for (size_t size = 0; size < arguments.size(); ++size) {
    ProcessRecord cut;
    static_cast<void>(format::ReadProcessRecord(arguments.first(size),
                                                format::BuiltInWidths(), &cut));
    EXPECT_LE(cut.pipes.size(), 2u);
  }
}

// As the engines of today name them, by their own documents and by looking.
TEST(ProcessRecordsTest, ContainersAreKnownByTheirControlGroups) {
  const std::string id(64, 'a');
  const std::string outer(64, 'b');
  // Docker, with cgroupfs and with systemd; within Docker.
  EXPECT_EQ(ContainerOf("/docker/" + id), id);
  EXPECT_EQ(ContainerOf("/system.slice/docker-" + id + ".scope"), id);
  EXPECT_EQ(ContainerOf("/docker/" + outer + "/docker/" + id), id);
  EXPECT_EQ(ContainerOf("/docker/" + outer + "/init.scope"), outer);
  // Podman, rootless and not.
  EXPECT_EQ(ContainerOf("/machine.slice/libpod-" + id + ".scope"), id);
  EXPECT_EQ(ContainerOf("/user.slice/user-1000.slice/user@1000.service/"
                        "user.slice/libpod-" +
                        id + ".scope/container"),
            id);
  EXPECT_EQ(ContainerOf("/machine.slice/libpod-conmon-" + id + ".scope"), "");
  // Kubernetes: containerd and CRI-O, cgroupfs and systemd.
  EXPECT_EQ(ContainerOf("/kubepods/burstable/"
                        "pod8c5a2d4e-1f1b-4f4e-9a35-0f7a5c6b7d8e/" +
                        id),
            id);
  EXPECT_EQ(ContainerOf("/kubepods.slice/kubepods-besteffort.slice/"
                        "kubepods-besteffort-pod8c5a2d4e_1f1b.slice/"
                        "cri-containerd-" +
                        id + ".scope"),
            id);
  EXPECT_EQ(
      ContainerOf("/kubepods.slice/kubepods-pod1.slice/crio-" + id + ".scope"),
      id);
  EXPECT_EQ(ContainerOf("/system.slice/containerd.service/"
                        "kubepods-burstable-pod1.slice:cri-containerd:" +
                        id),
            id);
  // systemd-nspawn, by machinectl and by the template unit; LXC.
  EXPECT_EQ(ContainerOf("/machine.slice/machine-my\\x2dbox.scope/payload"),
            "my-box");
  EXPECT_EQ(ContainerOf("/machine.slice/systemd-nspawn@web.service/payload/"
                        "system.slice/cron.service"),
            "web");
  EXPECT_EQ(ContainerOf("/lxc.payload.web/system.slice"), "web");
  EXPECT_EQ(ContainerOf("/lxc/web"), "web");
  EXPECT_EQ(ContainerOf("/lxc.monitor.web"), "");
  EXPECT_EQ(
      ContainerOf("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt"),
      "");
  // None.
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("///"),
        std::string("/user.slice/user-1000.slice/session-3.scope"),
        "/docker/" + id + "a", "/docker/x" + id, "/docker/" + id.substr(1),
        std::string("/machine.slice/machine-")}) {
    EXPECT_EQ(ContainerOf(path), "") << path;
  }
}

}  // namespace
}  // namespace tracefs
