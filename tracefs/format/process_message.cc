#include "tracefs/format/process_message.h"

#include <string>

#include "tracefs/event/field.h"
#include "tracefs/format/argument_rows.h"

namespace tracefs::format {
namespace {

using Kind = ProcessRecord::Kind;

constexpr auto kFirstKind = static_cast<uint16_t>(MessageId::kProcessFork);
constexpr auto kLastKind = static_cast<uint16_t>(MessageId::kProcessRunning);
static_assert(kLastKind - kFirstKind == static_cast<int>(Kind::kRunning));

// u32 descriptor, u64 inode, u8 access

// Arguments that operations have, too.
constexpr ArgId Of(Field field) {
  return static_cast<ArgId>(Info(field).arg_id);
}
constexpr ArgId kTime = Of(Field::kTime);
constexpr ArgId kTid = Of(Field::kTid);
constexpr ArgId kPid = Of(Field::kPid);
constexpr ArgId kPpid = Of(Field::kPpid);
constexpr ArgId kComm = Of(Field::kComm);
constexpr ArgId kExe = Of(Field::kExe);
constexpr ArgId kCgroup = Of(Field::kCgroup);

void TakePipes(const Argument& argument, ProcessRecord* record) {
  ByteSpan at = argument.value;
  while (at.size() >= kPipeBytes &&
         record->pipes.size() < ProcessRecord::kMaxPipes) {
    record->pipes.push_back({.fd = LoadLe<uint32_t>(at.data()),
                             .inode = LoadLe<uint64_t>(at.data() + 4),
                             .access = static_cast<PipeEnd::Access>(
                                 static_cast<uint8_t>(at[12]) & 3)});
    at = at.subspan(kPipeBytes);
  }
}

void TakeSource(const Argument& argument, ProcessRecord* record) {
  const auto number = argument.As<uint8_t>();
  record->source = number <= static_cast<uint8_t>(ProcessSource::kPerf)
                       ? static_cast<ProcessSource>(number)
                       : ProcessSource::kUnknown;
}

template <auto kMember, typename T>
void TakeOptional(const Argument& argument, ProcessRecord* record) {
  if (argument.is<T>()) record->*kMember = argument.As<T>();
}

constexpr ArgumentRow<ProcessRecord> kProcessRows[] = {
    {kTime, &Into<&ProcessRecord::time_ns>::Take},
    {kTid, &Into<&ProcessRecord::tid>::Take},
    {kPid, &Into<&ProcessRecord::process, &ProcessKey::pid>::Take},
    {ArgId::kStartTime,
     &Into<&ProcessRecord::process, &ProcessKey::start_ticks>::Take},
    {kPpid, &Into<&ProcessRecord::ppid>::Take},
    {ArgId::kNsPid, &Into<&ProcessRecord::ns_pid>::Take},
    {ArgId::kCpu, &TakeOptional<&ProcessRecord::cpu, uint32_t>},
    {ArgId::kChildPid, &Into<&ProcessRecord::child, &ProcessKey::pid>::Take},
    {ArgId::kChildStart,
     &Into<&ProcessRecord::child, &ProcessKey::start_ticks>::Take},
    {ArgId::kChildTid, &Into<&ProcessRecord::child_tid>::Take},
    {ArgId::kChildNsPid, &Into<&ProcessRecord::child_ns_pid>::Take},
    {ArgId::kCloneFlags, &TakeOptional<&ProcessRecord::clone_flags, uint64_t>},
    {ArgId::kProgram, &Into<&ProcessRecord::program>::Take},
    {kExe, &Into<&ProcessRecord::exe>::Take},
    {ArgId::kCwd, &Into<&ProcessRecord::cwd>::Take},
    {ArgId::kArgv, &Into<&ProcessRecord::argv>::Take},
    {ArgId::kEnviron, &Into<&ProcessRecord::environ>::Take},
    {ArgId::kExitCode, &TakeOptional<&ProcessRecord::exit_code, uint32_t>},
    {ArgId::kExitSignal, &TakeOptional<&ProcessRecord::signal, uint32_t>},
    {ArgId::kCoreDumped, &Into<&ProcessRecord::core_dumped>::Take},
    {kComm, &Into<&ProcessRecord::comm>::Take},
    {kCgroup, &Into<&ProcessRecord::cgroup>::Take},
    {ArgId::kPipes, &TakePipes},
    {ArgId::kProcessSource, &TakeSource},
    {ArgId::kReadLate, &Into<&ProcessRecord::late>::Take},
    {ArgId::kIncomplete, &Into<&ProcessRecord::incomplete>::Take},
};

void PutKnown(MessageWriter& out, ArgId id, uint32_t value) {
  if (value != 0) out.Put<uint32_t>(id, value);
}
void PutKnown(MessageWriter& out, ArgId id, uint64_t value) {
  if (value != 0) out.Put<uint64_t>(id, value);
}
void PutKnown(MessageWriter& out, ArgId id, std::string_view value) {
  if (!value.empty()) out.PutText(id, value);
}
template <typename T>
void PutKnown(MessageWriter& out, ArgId id, const std::optional<T>& value) {
  if (value) out.Put<T>(id, *value);
}
void PutFlag(MessageWriter& out, ArgId id, bool value) {
  if (value) out.Put<uint8_t>(id, 1);
}

void PutPipes(MessageWriter& out, const std::vector<PipeEnd>& pipes) {
  std::string bytes(pipes.size() * kPipeBytes, '\0');
  auto* at = reinterpret_cast<std::byte*>(bytes.data());
  for (const PipeEnd& pipe : pipes) {
    StoreLe<uint32_t>(at, pipe.fd);
    StoreLe<uint64_t>(at + 4, pipe.inode);
    StoreLe<uint8_t>(at + 12, pipe.access);
    at += kPipeBytes;
  }
  out.PutText(ArgId::kPipes, bytes);
}

}  // namespace

std::optional<Kind> ProcessKindOf(uint16_t msg_id) {
  if (msg_id < kFirstKind || msg_id > kLastKind) return std::nullopt;
  return static_cast<Kind>(msg_id - kFirstKind);
}

uint16_t MessageOf(Kind kind) {
  return static_cast<uint16_t>(kFirstKind + static_cast<int>(kind));
}

bool WriteProcessRecord(MessageWriter& out, const ProcessRecord& record) {
  out.Begin(MessageOf(record.kind));
  // Readers look for the time of every message of a block.
  out.Put<uint64_t>(kTime, record.time_ns);
  PutKnown(out, kPid, record.process.pid);
  PutKnown(out, ArgId::kStartTime, record.process.start_ticks);
  PutKnown(out, kTid, record.tid);
  PutKnown(out, kPpid, record.ppid);
  PutKnown(out, ArgId::kNsPid, record.ns_pid);
  PutKnown(out, ArgId::kCpu, record.cpu);
  PutKnown(out, ArgId::kChildPid, record.child.pid);
  PutKnown(out, ArgId::kChildStart, record.child.start_ticks);
  PutKnown(out, ArgId::kChildTid, record.child_tid);
  PutKnown(out, ArgId::kChildNsPid, record.child_ns_pid);
  PutKnown(out, ArgId::kCloneFlags, record.clone_flags);
  PutKnown(out, ArgId::kProgram, record.program);
  PutKnown(out, kExe, record.exe);
  PutKnown(out, ArgId::kCwd, record.cwd);
  PutKnown(out, ArgId::kArgv, record.argv);
  PutKnown(out, ArgId::kEnviron, record.environ);
  PutKnown(out, ArgId::kExitCode, record.exit_code);
  PutKnown(out, ArgId::kExitSignal, record.signal);
  PutFlag(out, ArgId::kCoreDumped, record.core_dumped);
  PutKnown(out, kComm, record.comm);
  PutKnown(out, kCgroup, record.cgroup);
  if (record.kind == Kind::kPipes) PutPipes(out, record.pipes);
  if (record.source != ProcessSource::kUnknown) {
    out.Put<uint8_t>(ArgId::kProcessSource,
                     static_cast<uint8_t>(record.source));
  }
  PutFlag(out, ArgId::kReadLate, record.late);
  PutFlag(out, ArgId::kIncomplete, record.incomplete);
  return out.End();
}

bool ReadProcessRecord(ByteSpan arguments, const ArgumentWidths& widths,
                       ProcessRecord* record) {
  return TakeArguments(arguments, widths, kProcessRows, record);
}

}  // namespace tracefs::format
