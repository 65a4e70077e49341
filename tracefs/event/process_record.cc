#include "tracefs/event/process_record.h"

#include <algorithm>

namespace tracefs {
namespace {

constexpr size_t kContainerIdBytes = 64;

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

std::string_view ProcessKindName(ProcessRecord::Kind kind) {
  using Kind = ProcessRecord::Kind;
  switch (kind) {
    case Kind::kFork:
      return "fork";
    case Kind::kExec:
      return "exec";
    case Kind::kExit:
      return "exit";
    case Kind::kComm:
      return "comm";
    case Kind::kPipes:
      return "pipes";
    case Kind::kRunning:
      return "running";
  }
  return "unknown";
}

std::string_view ProcessSourceName(ProcessSource source) {
  switch (source) {
    case ProcessSource::kUnknown:
      break;
    case ProcessSource::kPtrace:
      return "ptrace";
    case ProcessSource::kConnector:
      return "connector";
    case ProcessSource::kPerf:
      return "perf";
  }
  return {};
}

std::string_view ContainerOf(std::string_view cgroup) {
  // "/docker/ID", "…/docker-ID.scope", "…/cri-containerd-ID.scope",
  // "…/libpod-ID.scope/container"
  size_t digits = 0;
  std::string_view found;
  for (size_t i = 0; i <= cgroup.size(); ++i) {
    if (i < cgroup.size() && IsHexDigit(cgroup[i])) {
      ++digits;
      continue;
    }
    if (digits == kContainerIdBytes) {
      found = cgroup.substr(i - digits, digits);  // the innermost one
    }
    digits = 0;
  }
  return found;
}

}  // namespace tracefs
