#include "tracefs/event/process_record.h"

#include <algorithm>
#include <charconv>

#include "tracefs/base/choice.h"

namespace tracefs {
namespace {

constexpr size_t kContainerIdBytes = 64;

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool TakeStart(std::string_view start, std::string_view* text) {
  if (!text->starts_with(start)) return false;
  text->remove_prefix(start.size());
  return true;
}

bool TakeEnd(std::string_view end, std::string_view* text) {
  if (!text->ends_with(end)) return false;
  text->remove_suffix(end.size());
  return true;
}

// "ID", "docker-ID", "crio-ID", "…:cri-containerd:ID"; not "libpod-conmon-ID":
// that stands beside its container.
std::string_view IdAtEnd(std::string_view name) {
  if (name.size() < kContainerIdBytes) return {};
  const std::string_view id = name.substr(name.size() - kContainerIdBytes);
  name.remove_suffix(kContainerIdBytes);
  const bool alone = name.empty() || name.ends_with('-') || name.ends_with(':');
  const bool digits = std::all_of(id.begin(), id.end(), IsHexDigit);
  return alone && digits && !name.ends_with("conmon-") ? id
                                                       : std::string_view();
}

// The name of a systemd unit: "my\\x2dbox" is "my-box".
std::string Unescaped(std::string_view name) {
  std::string text;
  for (; !name.empty(); name.remove_prefix(1)) {
    unsigned value = 0;
    if (name.size() >= 4 && name.starts_with("\\x") &&
        std::from_chars(name.data() + 2, name.data() + 4, value, 16).ptr ==
            name.data() + 4) {
      text += static_cast<char>(value);
      name.remove_prefix(3);
    } else {
      text += name.front();
    }
  }
  return text;
}

// The container that a directory of the hierarchy is of, if it is one's own.
std::string ContainerNamed(std::string_view name, std::string_view above) {
  const bool scope = TakeEnd(".scope", &name);
  if (const std::string_view id = IdAtEnd(name); !id.empty()) {
    return std::string(id);
  }
  // systemd-machined's; those of QEMU are machines, no containers.
  if (scope && TakeStart("machine-", &name) && !name.starts_with("qemu\\x2d")) {
    return Unescaped(name);
  }
  if (TakeStart("systemd-nspawn@", &name) && TakeEnd(".service", &name)) {
    return Unescaped(name);
  }
  if (TakeStart("lxc.payload.", &name) || above == "lxc") {
    return std::string(name);
  }
  return {};
}

}  // namespace

std::string_view ProcessKindName(ProcessRecord::Kind kind) {
  using Kind = ProcessRecord::Kind;
  static constexpr Choice<Kind> kNames[] = {
      {"fork", Kind::kFork},   {"exec", Kind::kExec},
      {"exit", Kind::kExit},   {"comm", Kind::kComm},
      {"pipes", Kind::kPipes}, {"running", Kind::kRunning},
  };
  return WordOf(kNames, kind, "unknown");
}

std::string_view ProcessSourceName(ProcessSource source) {
  static constexpr Choice<ProcessSource> kNames[] = {
      {"ptrace", ProcessSource::kPtrace},
      {"connector", ProcessSource::kConnector},
      {"perf", ProcessSource::kPerf},
  };
  return WordOf(kNames, source);
}

std::string ContainerOf(std::string_view cgroup) {
  while (!cgroup.empty()) {
    const size_t slash = cgroup.rfind('/');
    const std::string_view name = cgroup.substr(slash + 1);
    cgroup = cgroup.substr(0, slash == cgroup.npos ? 0 : slash);
    const std::string_view above = cgroup.substr(cgroup.rfind('/') + 1);
    if (std::string found = ContainerNamed(name, above); !found.empty()) {
      return found;
    }
  }
  return {};
}

}  // namespace tracefs
