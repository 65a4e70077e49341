#include "tests/support/golden_traces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/process_message.h"
#include "tracefs/format/state_message.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::test {
namespace {

using format::ArgId;
using format::MessageWriter;

constexpr uint64_t kStart = TraceBuilder::kMonotonicNs;

CallerInfo Caller(uint32_t pid, std::string_view comm) {
  CallerInfo caller;
  caller.pid = pid;
  caller.ppid = 1;
  caller.pgid = pid;
  caller.sid = 900;
  caller.start_time = 123'456;
  std::memcpy(caller.comm_bytes.data(), comm.data(), comm.size());
  caller.comm_size = static_cast<uint8_t>(comm.size());
  return caller;
}

Event Base(Op op, uint64_t time_ns) {
  Event event;
  event.op = op;
  event.Set(Field::kTime, time_ns);
  event.Set(Field::kLatency, 1'500 + 10 * Index(op));
  event.Set(Field::kTid, 4'243);
  event.Set(Field::kUid, 1000);
  event.Set(Field::kGid, 100);
  event.SetResult(0, 0);
  return event;
}

// A plausible value for each field a request carries.
void SetRequestFields(Event& event) {
  const uint64_t fields = Info(event.op).request_fields;
  const auto set = [&](Field f, uint64_t value) {
    if ((fields & Bit(f)) != 0) event.Set(f, value);
  };
  set(Field::kInode, 7'001);
  set(Field::kParentInode, 7'000);
  set(Field::kNewParentInode, 7'002);
  set(Field::kType, 8);
  set(Field::kFh, 21);
  set(Field::kFhOut, 22);
  set(Field::kInodeOut, 7'003);
  set(Field::kOffset, 65'536);
  set(Field::kOffsetOut, 131'072);
  set(Field::kLength, 4'096);
  set(Field::kArgMode, event.op == Op::access_ ? 6 : 0644);
  set(Field::kUmask, 022);
  set(Field::kRdev, 0x0103);
  set(Field::kValid, event.op == Op::setattr_ ? 0x29 : 0x7ff);
  set(Field::kNewUid, 1001);
  set(Field::kNewGid, 101);
  set(Field::kNewSize, 10);
  set(Field::kNewAtime, TraceBuilder::kRealNs);
  set(Field::kNewMtime, TraceBuilder::kRealNs + 1);
  set(Field::kCommand, 0x5401);
  set(Field::kLockType, 1);
  set(Field::kLockOwner, 0xfeedfacecafe);
  set(Field::kLockPid, 4'242);
  switch (event.op) {
    case Op::open_:
      set(Field::kFlags, O_RDWR | O_CLOEXEC);
      break;
    case Op::create_:
      set(Field::kFlags, O_WRONLY | O_CREAT | O_EXCL);
      break;
    case Op::poll_:
      set(Field::kFlags, 5);
      break;
    default:
      set(Field::kFlags, 1);
  }
}

// Every operation once, done, and every third before it runs.
std::string EveryOperation() {
  TraceBuilder trace;
  trace.header().Set("host.machine", "x86_64");
  trace.header().Set("os.name", "Linux");
  trace.header().Set("filter.text", "cuid = 1000\nOR ext = c");
  const uint32_t process = trace.DefineProcess(Caller(4'242, "cc1plus"));
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t src = trace.DefinePath(root, "src");
  const uint32_t file = trace.DefinePath(src, "main.cc");
  const uint32_t out = trace.DefinePath(root, "out");
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    Event event = Base(op, kStart + 1'000'000 * i);
    SetRequestFields(event);
    References refs = {.path = file, .process = process};
    if (HasName(op)) {
      event.name = "name.txt";
      refs = {.parent = src, .process = process};
    }
    if (op == Op::rename_ || op == Op::link_) {
      event.new_name = "new.txt";
      refs.new_parent = out;
    }
    if (op == Op::symlink_ || op == Op::readlink_) event.target = "../target";
    if (op == Op::setxattr_ || op == Op::getxattr_ || op == Op::removexattr_) {
      event.xattr_name = "user.mime";
    }
    if (op == Op::read_ || op == Op::write_) {
      event.SetResult(4096, 0);
      event.Set(Field::kDataChecksum, 0xe3069283);
    }
    if (op == Op::write_) event.data = AsBytes("123456789");
    if (op == Op::getattr_ || op == Op::lookup_ || op == Op::setattr_) {
      event.Set(Field::kMode, S_IFREG | 0644);
      event.Set(Field::kNlink, 1);
      event.Set(Field::kSize, 12'345);
      event.Set(Field::kFuid, 1000);
      event.Set(Field::kFgid, 100);
      event.Set(Field::kMtime, TraceBuilder::kRealNs - 1);
    }
    if (op == Op::unlink_) event.SetResult(0, ENOENT);
    if (op == Op::flush_) event.Set(Field::kInferred, 1);
    if (i % 3 == 0) {
      Event before = event;
      before.before = true;
      before.present &= ~(Bit(Field::kLatency) | Bit(Field::kResult) |
                          Bit(Field::kErrno) | Bit(Field::kDataChecksum));
      before.data = {};
      trace.Add(before, refs);
    }
    trace.Add(event, refs);
  }
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

// Names that are hard to print.
std::string AwkwardNames() {
  TraceBuilder trace;
  const uint32_t process = trace.DefineProcess(Caller(4'242, "a b\x1b[31m"));
  const uint32_t root = trace.DefinePath(0, "");
  const std::string names[] = {"plain",
                               "two words",
                               "quote\"d",
                               "back\\slash",
                               "new\nline",
                               "na\xc3\xafve",
                               "\xff\xfe raw",
                               "\x1b[2Jcleared",
                               "\xe2\x80\xaertl",
                               "\xf0\x9f\x90\xa7",
                               std::string(255, 'x')};
  uint64_t time = kStart;
  uint32_t parent = root;
  for (const std::string& name : names) {
    Event event = Base(Op::lookup_, ++time);
    event.name = name;
    trace.Add(event, {.parent = parent, .process = process});
    parent = trace.DefinePath(parent, name);
  }
  trace.Add(Base(Op::getattr_, ++time), {.path = root});
  trace.Add(Base(Op::getattr_, ++time), {.path = parent});
  Event unknown = Base(Op::getattr_, ++time);
  unknown.Set(Field::kInode, 99);
  trace.Add(unknown);
  Event no_parent = Base(Op::rename_, ++time);
  no_parent.name = "old";
  no_parent.new_name = "new";
  trace.Add(no_parent);
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

// Two threads whose blocks overlap, and the coarser time stamps.
std::string OrderAndResolution() {
  TraceBuilder trace;
  for (const uint64_t ms : {1, 3, 5}) {
    trace.Add(Base(Op::read_, kStart + ms * 1'000'000));
  }
  trace.EndBlock(kStart + 2'000'000);
  for (const uint64_t ms : {4, 2, 6}) {  // not even in order of time
    trace.Add(Base(Op::write_, kStart + ms * 1'000'000));
  }
  trace.EndBlock();
  trace.AddRaw(0x10b, [](MessageWriter& out) {
    out.Put<uint64_t>(ArgId::kTimeUsec, 1'007'000);
  });
  trace.AddRaw(
      0x111, [](MessageWriter& out) { out.Put<uint32_t>(ArgId::kTimeSec, 2); });
  trace.AddRaw(0x117, [](MessageWriter&) {});
  trace.EndBlock();
  // The clock of the day was set ahead by an hour.
  trace.header().clock.real_ns += 3'600'000'000'000;
  trace.Add(Base(Op::statfs_, kStart + 2'000'000'000));
  trace.EndBlock();
  trace.Finish("stop");
  return trace.bytes();
}

// Losses of the tracer, a lost block, a damaged one, one twice, and a cut.
std::string Damaged() {
  TraceBuilder trace;
  uint64_t time = kStart;
  const auto block = [&](uint64_t fh) {
    Event event = Base(Op::read_, ++time);
    event.Set(Field::kFh, fh);
    trace.Add(event);
    trace.EndBlock();
  };
  block(1);
  trace.SkipSequence();
  block(3);
  block(4);
  trace.AddLoss(
      {.reason = "queue_full", .count = 17, .first_ns = time, .last_ns = time});
  block(5);
  block(6);
  trace.Finish();
  std::string bytes = trace.bytes();
  const auto& frames = trace.frame_offsets();
  bytes[frames[3] + 50] = static_cast<char>(bytes[frames[3] + 50] ^ 4);
  const std::string last = bytes.substr(frames[5], frames[6] - frames[5]);
  bytes.resize(frames[6]);
  return bytes + last + bytes.substr(frames[5], 60);
}

// What a later version may add: messages, arguments, kinds of frames.
std::string LaterVersion() {
  TraceBuilder trace;
  std::string start(AsText(format::EncodeStartBlock(trace.header())));
  const auto append = [&start](ArgId id, uint16_t named,
                               std::string_view description) {
    std::array<std::byte, 128> memory;
    MessageWriter out(memory);
    out.Begin(0);
    std::string value(2, '\0');
    StoreLe<uint16_t>(value.data(), named);
    out.PutText(id, value + std::string(description));
    out.End();
    start += AsText(out.bytes().subspan(format::kMessageHeaderBytes));
  };
  using namespace std::string_view_literals;
  append(ArgId::kMessageName, 0x300, "MSG_NAP");
  append(ArgId::kArgumentName, 300,
         "\x02\x00\x00"
         "ARG_PRIORITY"sv);
  append(ArgId::kArgumentName, 301,
         "\x00\x00\x0d"
         "ARG_MOOD"sv);
  append(ArgId::kArgumentName, 302,
         "\x08\x00\x01"
         "ARG_BALANCE"sv);
  StoreLe<uint32_t>(start.data() + 2, static_cast<uint32_t>(start.size()));
  std::string bytes = format::EncodePreamble(
      {.format_version = 2, .serial = trace.serial(), .chain = "file"});
  bytes += trace.Frame(0, start);
  bytes += trace.Frame(1, "an index of some kind", 2);
  trace.SkipSequence();
  for (uint32_t i = 0; i < 3; ++i) {
    trace.AddRaw(0x300, [](MessageWriter& out) { out.PutText(301, "sleepy"); });
    trace.AddRaw(0x10b, [i](MessageWriter& out) {
      out.Put<uint64_t>(Info(Field::kTime).arg_id, kStart + i);
      out.Put<uint16_t>(300, static_cast<uint16_t>(i));
      out.PutText(301, "good");
      out.Put<int64_t>(static_cast<uint16_t>(302), -5);
      out.PutText(Info(Field::kUid).arg_id, "\x8f\x01 veiled");
    });
    trace.CountEvent(kStart + i);
  }
  trace.EndBlock();
  trace.Finish();
  return bytes + trace.bytes().substr(trace.frame_offsets()[1]);
}

// Stopped, given another filter, and started again.
std::string Changed() {
  TraceBuilder trace;
  const auto change = [&trace](uint64_t from_ns, std::string_view key,
                               std::string_view value) {
    std::array<std::byte, 256> memory;
    MessageWriter out(memory);
    format::WriteChange(out,
                        {.from_ns = from_ns, .properties = {{key, value}}});
    trace.AddBytes(AsText(out.bytes()));
    trace.EndBlock();
  };
  trace.Add(Base(Op::read_, kStart + 1));
  trace.EndBlock();
  change(kStart + 2, "tracer.state", "stopped");
  change(kStart + 3, "filter.text", "op = open");
  change(kStart + 4, "tracer.state", "running");
  trace.Add(Base(Op::open_, kStart + 5));
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

// Counts: two periods, the rest, the total, an awkward key and one of the
// future; beside operations.
std::string Aggregates() {
  TraceBuilder trace;
  std::vector<std::byte> memory(format::kAggregateMaxBytes);
  const auto add = [&](const format::AggregateRecord& record) {
    MessageWriter out(memory);
    format::WriteAggregate(out, record);
    trace.AddBytes(AsText(out.bytes()));
  };
  const auto histogram = [](std::vector<uint64_t> values) {
    std::map<uint16_t, uint64_t> counts;
    format::HistogramRecord h{
        .present = true, .sum = 0, .max = 0, .buckets = {}};
    for (const uint64_t value : values) {
      ++counts[tally::HistogramBucket(value)];
      h.sum += value;
      h.max = std::max(h.max, value);
    }
    for (const auto& [bucket, count] : counts) {
      h.buckets.push_back({bucket, count});
    }
    return h;
  };
  const auto op = [](Op o) {
    return format::AggregateKeyPart{
        static_cast<uint16_t>(ArgId::kKeyOp), Index(o), {}};
  };
  const auto number = [](Field f, uint64_t n) {
    return format::AggregateKeyPart{Info(f).arg_id, n, {}};
  };
  const auto directory = [](std::string_view text) {
    return format::AggregateKeyPart{static_cast<uint16_t>(ArgId::kDirectory), 0,
                                    text};
  };
  constexpr uint64_t kTenSeconds = 10'000'000'000;
  trace.Add(Base(Op::read_, kStart + 1));
  trace.EndBlock();
  format::AggregateRecord record{
      .from_ns = kStart,
      .to_ns = kStart + kTenSeconds,
      .key = {op(Op::read_), number(Field::kUid, 1000), directory("/src")},
      .count = 4,
      .errors = 1,
      .bytes = 12'288,
      .latency = histogram({900, 1'100, 90'000, 2'000'000'000}),
      .size = histogram({4096, 4096, 4096})};
  add(record);
  record.key = {op(Op::write_), number(Field::kErrno, ENOSPC),
                directory("/\xff new\nline")};
  record.count = 2;
  record.missed = 1;
  record.errors = 2;
  record.bytes = 0;
  record.latency = histogram({UINT64_MAX, 0});
  record.size = histogram({});
  add(record);
  record.key = {};
  record.other = true;
  record.missed = 0;
  add(record);
  trace.EndBlock();
  trace.Add(Base(Op::write_, kStart + kTenSeconds + 1));
  trace.EndBlock();
  add({.aggregate = 2,
       .from_ns = kStart + kTenSeconds,
       .to_ns = kStart + 2 * kTenSeconds,
       .key = {number(Field::kType, 4)},
       .count = 7});
  add({.total = true,
       .from_ns = kStart,
       .to_ns = kStart + 2 * kTenSeconds,
       .key = {op(static_cast<Op>(200)), number(Field::kPid, 4'242)},
       .count = 13,
       .errors = 2});
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

// Process records among operations: a shell makes `cat | sort`, in blocks of
// their own that come later; awkward arguments, a script, a thread, a pid that
// is used again, a crash, and what was there before.
std::string Processes() {
  using namespace std::literals;
  using Kind = ProcessRecord::Kind;
  TraceBuilder trace;
  std::vector<std::byte> memory(size_t{64} << 10);
  uint64_t now = kStart;
  const auto add = [&](ProcessRecord record) {
    record.time_ns = now += 1000;
    MessageWriter out(memory);
    format::WriteProcessRecord(out, record);
    trace.AddBytes(AsText(out.bytes()));
  };
  const ProcessKey shell{.pid = 4'242, .start_ticks = 123'456};
  const ProcessKey cat{.pid = 4'243, .start_ticks = 123'500};
  const ProcessKey sort{.pid = 4'244, .start_ticks = 123'500};
  const ProcessKey again{.pid = 4'243, .start_ticks = 123'900};
  const auto of = [](Kind kind, ProcessKey key) {
    ProcessRecord record;
    record.kind = kind;
    record.process = key;
    record.tid = key.pid;
    record.source = ProcessSource::kPtrace;
    return record;
  };
  const uint32_t caller = trace.DefineProcess(Caller(4'243, "cat"));
  const uint32_t root = trace.DefinePath(0, "");
  Event read = Base(Op::read_, kStart + 5'500);
  read.Set(Field::kTid, 4'243);
  trace.Add(read, {.path = root, .process = caller});
  trace.EndBlock(kStart);

  ProcessRecord running = of(Kind::kRunning, shell);
  running.ppid = 1;
  running.ns_pid = 7;
  running.comm = "bash";
  running.program = running.exe = "/bin/bash";
  running.argv = "bash\0build.sh\0"sv;
  running.cwd = "/home/user/src";
  running.cgroup =
      "/system.slice/docker-"
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";
  running.source = ProcessSource::kConnector;
  running.late = true;
  add(running);
  ProcessRecord fork = of(Kind::kFork, shell);
  fork.child = cat;
  fork.child_tid = cat.pid;
  fork.child_ns_pid = 8;
  fork.clone_flags = 0x01200000;
  add(fork);
  ProcessRecord exec = of(Kind::kExec, cat);
  exec.ppid = shell.pid;
  exec.cpu = 1;
  exec.comm = "cat";
  exec.program = "./cat";
  exec.exe = "/usr/bin/cat";
  exec.cwd = "/home/user/src";
  exec.argv = "cat\0\0two words\0\xff\n\"\0"sv;
  exec.environ = "PATH=/bin\0"sv;
  add(exec);
  ProcessRecord pipes = of(Kind::kPipes, cat);
  pipes.pipes = {{.fd = 1, .inode = 77, .access = PipeEnd::kWrite}};
  add(pipes);
  fork.child = sort;
  fork.child_tid = sort.pid;
  fork.child_ns_pid = 0;
  fork.clone_flags = CLONE_VM | CLONE_VFORK;
  add(fork);  // at 5,000: the read follows
  exec.process = sort;
  exec.tid = sort.pid;
  exec.program = "/home/user/src/sort.sh";
  exec.exe = "/bin/sh";
  exec.argv = "/bin/sh\0/home/user/src/sort.sh\0"sv;
  exec.environ = {};
  exec.incomplete = true;
  add(exec);
  pipes.process = sort;
  pipes.tid = sort.pid;
  pipes.pipes = {{.fd = 0, .inode = 77, .access = PipeEnd::kRead},
                 {.fd = 12, .inode = 78, .access = PipeEnd::kReadWrite}};
  add(pipes);
  ProcessRecord exit = of(Kind::kExit, cat);
  exit.exit_code = 3;
  add(exit);
  ProcessRecord thread = of(Kind::kFork, sort);
  thread.child = sort;
  thread.child_tid = 4'250;
  thread.clone_flags = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | 1ull << 40;
  add(thread);
  ProcessRecord comm = of(Kind::kComm, sort);
  comm.tid = 4'250;
  comm.comm = "a = worker";
  comm.source = ProcessSource::kPerf;
  add(comm);
  exit = of(Kind::kExit, sort);
  exit.tid = 4'250;
  exit.exit_code = 0;
  add(exit);
  exit = of(Kind::kExit, sort);
  exit.signal = 11;
  exit.core_dumped = true;
  add(exit);
  fork.child = again;
  fork.child_tid = again.pid;
  fork.clone_flags = 0;
  add(fork);
  pipes = of(Kind::kPipes, again);
  add(pipes);
  exit = of(Kind::kExit, again);
  exit.signal = 64;
  add(exit);
  trace.EndBlock(now);
  trace.AddLoss({.reason = "overrun",
                 .count = 1,
                 .first_ns = kStart,
                 .last_ns = kStart + 1});
  trace.EndBlock(now);
  trace.Finish();
  return trace.bytes();
}

// Copies: with both ends, without the second as older versions wrote them, with
// names alone, with a whole path, with their bytes and without them.
std::string Copies() {
  TraceBuilder trace;
  const uint32_t process = trace.DefineProcess(Caller(4'242, "cp"));
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t from = trace.DefinePath(root, "from");
  const uint32_t out = trace.DefinePath(root, "out");
  const uint32_t to = trace.DefinePath(out, "to.txt");
  const References both = {.path = from, .new_parent = to, .process = process};
  const auto copy = [](uint64_t at, int64_t bytes) {
    Event event = Base(Op::copy_file_range_, kStart + at);
    SetRequestFields(event);
    event.Set(Field::kFlags, 0);
    event.SetResult(bytes, 0);
    return event;
  };
  Event event = copy(1'000, 4'096);
  trace.Add(event, both);
  event.before = true;
  trace.Add(event, both);
  trace.Add(copy(2'000, 4'096), {.path = from, .process = process});
  event = copy(3'000, 9);
  event.data = AsBytes("123456789");
  event.Set(Field::kDataChecksum, 0xe3069283);
  trace.Add(event, both);
  event = copy(4'000, 1 << 30);
  event.Set(Field::kDataLeftOut, 1);
  trace.Add(event, both);
  event = copy(5'000, 4'096);
  event.name = "from";
  event.new_name = "to.txt";
  trace.Add(event, {.process = process});
  event = copy(6'000, 0);
  event.SetResult(0, EXDEV);
  trace.Add(event, both);
  trace.AddRaw(format::OperationMessage(Op::copy_file_range_, false),
               [&](MessageWriter& message) {
                 message.Put<uint64_t>(Info(Field::kTime).arg_id,
                                       kStart + 7'000);
                 message.PutText(Info(Field::kPath).arg_id, "/whole/a");
                 message.PutText(Info(Field::kNewPath).arg_id, "/whole/b");
                 message.Put<uint64_t>(Info(Field::kResult).arg_id, 5);
               });
  trace.CountEvent(kStart + 7'000);
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

std::string TooNew() {
  return format::EncodePreamble(
      {.format_version = 9, .min_reader_version = 9, .chain = "file"});
}

// What files were, beside the operations: a reader that does not know states
// lists the same.
std::string States() {
  TraceBuilder trace;
  std::vector<std::byte> memory(size_t{64} << 10);
  const auto add = [&](const FileState& state, uint64_t time_ns, bool late,
                       bool at_end, std::string_view path) {
    MessageWriter out(memory);
    format::WriteState(out, state, time_ns, late, at_end, path);
    trace.AddBytes(AsText(out.bytes()));
  };
  const auto file = [](uint64_t inode, mode_t mode, int64_t size) {
    FileState state;
    state.st.st_ino = inode;
    state.st.st_mode = mode;
    state.st.st_nlink = 1;
    state.st.st_size = size;
    state.st.st_uid = 1000;
    state.st.st_gid = 100;
    state.st.st_mtim = {1'767'323'000, 5};
    return state;
  };
  const uint32_t root = trace.DefinePath(0, "");
  const auto look_up = [&](std::string_view name, uint64_t inode,
                           uint64_t time_ns) {
    Event event = Base(Op::lookup_, time_ns);
    event.Set(Field::kParentInode, 7'000);
    event.Set(Field::kInode, inode);
    event.name = name;
    trace.Add(event, {.parent = root});
  };
  look_up("sparse", 7'001, kStart + 1'000);
  FileState sparse = file(7'001, S_IFREG | 0640, 1 << 20);
  sparse.xattrs = {{"user.a", "1"}, {"user.empty", ""}};
  sparse.data = {{{4096, 8192}, {65536, 4096}}};
  add(sparse, kStart + 3'000, false, false, {});
  look_up("link", 7'002, kStart + 4'000);
  FileState link = file(7'002, S_IFLNK | 0777, 7);
  link.target = "sp\xff/../";
  link.incomplete = true;
  add(link, kStart + 6'000, true, false, {});
  look_up("null", 7'003, kStart + 7'000);
  FileState device = file(7'003, S_IFCHR | 0666, 0);
  device.st.st_rdev = 0x0103;
  add(device, kStart + 8'000, false, false, {});
  trace.EndBlock();
  sparse.data.reset();
  sparse.checksum = 0xe3069283;
  sparse.st.st_size = 9;
  add(sparse, kStart + 20'000, false, true, "/dir/sparse");
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

}  // namespace

std::map<std::string, std::string> MakeGoldenTraces() {
  return {{"aggregates", Aggregates()},
          {"awkward_names", AwkwardNames()},
          {"changed", Changed()},
          {"copies", Copies()},
          {"damaged", Damaged()},
          {"every_operation", EveryOperation()},
          {"later_version", LaterVersion()},
          {"order_and_resolution", OrderAndResolution()},
          {"processes", Processes()},
          {"states", States()},
          {"too_new", TooNew()}};
}

}  // namespace tracefs::test
