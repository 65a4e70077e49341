#include "tracefs/export/xray_calls.h"

#include <algorithm>

#include "tracefs/base/append_le.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/replacement.h"
#include "tracefs/export/jsonl.h"
#include "tracefs/export/xray.h"
#include "tracefs/export/xray_map.h"
#include "tracefs/feed/process_lines.h"

namespace tracefs {
namespace {

constexpr uint64_t kFrequency = kNsPerSecond;
constexpr uint32_t kSteady = 3;  // constant_tsc, nonstop_tsc

std::string_view WithoutLineEnd(std::string_view line) {
  while (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

int64_t ResultOf(const Event& event) {
  if (event.Has(Field::kErrno) && event.Get(Field::kErrno) != 0) {
    return -static_cast<int64_t>(event.Get(Field::kErrno));
  }
  return event.Has(Field::kResult)
             ? static_cast<int64_t>(event.Get(Field::kResult))
             : 0;
}

}  // namespace

XrayExporter::XrayExporter(OutputBuffer& out, const ExportOptions& options)
    : out_(out),
      map_(options.Choice("map")),
      jsonl_(MakeJsonlExporter(json_, {})) {}

void XrayExporter::Write(const format::Record& record) {
  const Event& event = record.event;
  // Without a time it has no place; before it has run it is no call.
  if (event.before || record.time_resolution_ns == 0) {
    ++left_out_;
    return;
  }
  FunctionCall call;
  call.function = XrayFunction(event.op);
  call.begin = Now(record.real_ns);
  call.end = call.begin + event.GetOr0(Field::kLatency);
  const auto id = [&event](Field field) {
    return static_cast<uint32_t>(event.GetOr0(field));
  };
  call.pid = id(Field::kPid);
  call.tid = event.Has(Field::kTid) ? id(Field::kTid) : call.pid;
  if (const auto cpu = cpus_.find(call.pid); cpu != cpus_.end()) {
    call.cpu = cpu->second;
  }
  call.inode = event.GetOr0(Field::kInode);
  call.result = ResultOf(event);
  // llvm-xray tells threads by their numbers alone.
  const size_t lane = lanes_.Find(call.tid, call.begin, call.end);
  call.tid = static_cast<uint32_t>((call.tid + lane * kLaneTids) %
                                   (uint64_t{1} << 31));
  json_.Clear();
  jsonl_->Write(record);
  if (status_.ok()) status_ = json_.Flush();
  call.json = WithoutLineEnd(json_.text());
  Put(call);
}

void XrayExporter::WriteProcess(const ProcessRecord& record) {
  if (record.cpu) {
    const auto cpu = static_cast<uint16_t>(
        std::min<uint32_t>(*record.cpu, FunctionCall::kNoCpu));
    NoteCpu(record.process.pid, cpu);
    // The child begins where its parent is.
    if (record.kind == ProcessRecord::Kind::kFork) {
      NoteCpu(record.child.pid, cpu);
    }
  }
  const std::string line = ProcessJson(record);
  FunctionCall event;
  event.begin = event.end = Now(record.real_ns);
  event.pid = record.process.pid;
  event.tid = record.tid != 0 ? record.tid : record.process.pid;
  if (const auto cpu = cpus_.find(event.pid); cpu != cpus_.end()) {
    event.cpu = cpu->second;
  }
  event.json = WithoutLineEnd(line);
  PutEvent(event);
}

void XrayExporter::Finish() {
  End();
  if (!map_.empty() && status_.ok()) status_ = ReplaceFile(map_, XrayMap());
}

uint64_t XrayExporter::Now(uint64_t real_ns) {
  last_ns_ = std::max(last_ns_, real_ns);
  if (origin_ns_ == 0) origin_ns_ = last_ns_;
  return last_ns_;
}

void XrayExporter::NoteCpu(uint32_t pid, uint16_t cpu) {
  if (cpus_.size() >= kMostProcesses) cpus_.clear();
  cpus_[pid] = cpu;
}

void XrayExporter::PutHeader(uint16_t version, uint16_t type,
                             uint64_t free_form) {
  std::string head;
  AppendLe(version, &head);
  AppendLe(type, &head);
  AppendLe(kSteady, &head);
  AppendLe(kFrequency, &head);
  AppendLe(free_form, &head);
  AppendLe<uint64_t>(0, &head);
  out_.Append(head);
}

}  // namespace tracefs
