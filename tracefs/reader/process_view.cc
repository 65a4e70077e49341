#include "tracefs/reader/process_view.h"

#include <string_view>

namespace tracefs::reader {
namespace {

static_assert(static_cast<int>(ProcessRecord::Kind::kFork) + 1 ==
                  TRACEFS_PROCESS_FORK &&
              static_cast<int>(ProcessRecord::Kind::kRunning) + 1 ==
                  TRACEFS_PROCESS_RUNNING);

tracefs_text TextOf(std::string_view text) {
  return text.empty() ? tracefs_text{} : tracefs_text{text.data(), text.size()};
}

template <typename T>
T OrMinusOne(const auto& value) {
  return value ? static_cast<T>(*value) : T{-1};
}

}  // namespace

tracefs_process ViewOf(const ProcessRecord& record, size_t trace,
                       std::vector<tracefs_pipe>* pipes) {
  tracefs_process view = {};
  view.kind = static_cast<uint32_t>(record.kind) + 1;
  if (record.late) view.flags |= TRACEFS_PROCESS_LATE;
  if (record.incomplete) view.flags |= TRACEFS_PROCESS_INCOMPLETE;
  if (record.core_dumped) view.flags |= TRACEFS_PROCESS_CORE;
  view.time = record.real_ns;
  view.trace = trace;
  view.tracer = record.tracer_id;
  view.source = static_cast<uint32_t>(record.source);
  view.pid = record.process.pid;
  view.tid = record.tid;
  view.ppid = record.ppid;
  view.ns_pid = record.ns_pid;
  view.key = record.process.Upid();
  view.child_key = record.child.Upid();
  view.child_pid = record.child.pid;
  view.child_tid = record.child_tid;
  view.child_ns_pid = record.child_ns_pid;
  view.exit_code = OrMinusOne<int32_t>(record.exit_code);
  view.exit_signal = OrMinusOne<int32_t>(record.signal);
  view.cpu = OrMinusOne<int32_t>(record.cpu);
  view.clone_flags = OrMinusOne<int64_t>(record.clone_flags);
  view.program = TextOf(record.program);
  view.exe = TextOf(record.exe);
  view.cwd = TextOf(record.cwd);
  view.argv = TextOf(record.argv);
  view.environment = TextOf(record.environ);
  view.comm = TextOf(record.comm);
  view.cgroup = TextOf(record.cgroup);
  pipes->clear();
  for (const PipeEnd& end : record.pipes) {
    pipes->push_back({end.fd, end.access, end.inode});
  }
  view.pipes = pipes->empty() ? nullptr : pipes->data();
  view.pipe_count = pipes->size();
  return view;
}

}  // namespace tracefs::reader
