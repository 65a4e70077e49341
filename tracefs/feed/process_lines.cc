#include "tracefs/feed/process_lines.h"

#include <linux/sched.h>
#include <string.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "tracefs/base/join.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using ProcessKind = ProcessRecord::Kind;

struct CloneFlagName {
  uint64_t bit;
  std::string_view name;
};
// Those of the lowest byte, which only clone3(2) can give, are left out.
constexpr CloneFlagName kCloneFlags[] = {
    {CLONE_VM, "CLONE_VM"},
    {CLONE_FS, "CLONE_FS"},
    {CLONE_FILES, "CLONE_FILES"},
    {CLONE_SIGHAND, "CLONE_SIGHAND"},
    {CLONE_PIDFD, "CLONE_PIDFD"},
    {CLONE_PTRACE, "CLONE_PTRACE"},
    {CLONE_VFORK, "CLONE_VFORK"},
    {CLONE_PARENT, "CLONE_PARENT"},
    {CLONE_THREAD, "CLONE_THREAD"},
    {CLONE_NEWNS, "CLONE_NEWNS"},
    {CLONE_SYSVSEM, "CLONE_SYSVSEM"},
    {CLONE_SETTLS, "CLONE_SETTLS"},
    {CLONE_PARENT_SETTID, "CLONE_PARENT_SETTID"},
    {CLONE_CHILD_CLEARTID, "CLONE_CHILD_CLEARTID"},
    {CLONE_DETACHED, "CLONE_DETACHED"},
    {CLONE_UNTRACED, "CLONE_UNTRACED"},
    {CLONE_CHILD_SETTID, "CLONE_CHILD_SETTID"},
    {CLONE_NEWCGROUP, "CLONE_NEWCGROUP"},
    {CLONE_NEWUTS, "CLONE_NEWUTS"},
    {CLONE_NEWIPC, "CLONE_NEWIPC"},
    {CLONE_NEWUSER, "CLONE_NEWUSER"},
    {CLONE_NEWPID, "CLONE_NEWPID"},
    {CLONE_NEWNET, "CLONE_NEWNET"},
    {CLONE_IO, "CLONE_IO"},
    {uint64_t{1} << 32, "CLONE_CLEAR_SIGHAND"},
    {uint64_t{1} << 33, "CLONE_INTO_CGROUP"},
};

std::string_view AccessName(PipeEnd::Access access) {
  switch (access) {
    case PipeEnd::kRead:
      return "r";
    case PipeEnd::kWrite:
      return "w";
    case PipeEnd::kReadWrite:
      break;
  }
  return "rw";
}

// Calls `put` with a member each, in the order of a line: numbers, texts.
// `list` gets what has several values.
template <typename Number, typename Text, typename List>
void ForEachMember(const ProcessRecord& r, Number number, Text text,
                   List list) {
  const auto known = [&](std::string_view key, uint64_t value) {
    if (value != 0) number(key, value);
  };
  const auto said = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) text(key, value);
  };
  known("pid", r.process.pid);
  known("start", r.process.start_ticks);
  known("tid", r.tid);
  known("ppid", r.ppid);
  known("ns_pid", r.ns_pid);
  known("child_pid", r.child.pid);
  known("child_start", r.child.start_ticks);
  known("child_tid", r.child_tid);
  known("child_ns_pid", r.child_ns_pid);
  if (r.clone_flags) text("clone_flags", CloneFlagsText(*r.clone_flags));
  if (r.exit_code) number("exit_code", *r.exit_code);
  if (r.signal) text("signal", SignalName(*r.signal));
  if (r.core_dumped) number("core", 1);
  said("comm", r.comm);
  said("program", r.program);
  said("exe", r.exe);
  said("cwd", r.cwd);
  if (!r.argv.empty()) list("argv", r.argv);
  if (!r.environ.empty()) list("env", r.environ);
  if (r.kind == ProcessKind::kPipes) list("pipes", std::string_view());
  said("cgroup", r.cgroup);
  said("container", ContainerOf(r.cgroup));
  if (r.cpu) number("cpu", *r.cpu);
  said("source", ProcessSourceName(r.source));
  if (r.late) number("late", 1);
  if (r.incomplete) number("incomplete", 1);
}

bool IsFlagKey(std::string_view key) {
  return key == "core" || key == "late" || key == "incomplete";
}

// An array of texts; as KEY_b64, of base64, if one of them is not UTF-8.
void PutTextList(std::string_view key, std::string_view list,
                 JsonWriter* json) {
  const bool utf8 = IsUtf8(list);
  json->OpenList(utf8 ? std::string(key) : std::string(key) + "_b64");
  ForEachListed(list, [&](std::string_view text) {
    utf8 ? json->Add(text) : json->AddBytes(text);
  });
  json->CloseList();
}

void PutPipes(const std::vector<PipeEnd>& pipes, JsonWriter* json) {
  json->OpenList("pipes");
  for (const PipeEnd& pipe : pipes) {
    json->Open();
    json->Put("fd", pipe.fd);
    json->Put("inode", pipe.inode);
    json->Put("access", AccessName(pipe.access));
    json->Close();
  }
  json->CloseList();
}

}  // namespace

std::string CloneFlagsText(uint64_t flags) {
  flags &= ~uint64_t{CSIGNAL};
  std::string text;
  for (const CloneFlagName& flag : kCloneFlags) {
    if ((flags & flag.bit) == 0) continue;
    flags &= ~flag.bit;
    AppendWord(flag.name, "|", &text);
  }
  if (flags != 0) {
    std::array<char, 24> hex{};
    std::snprintf(hex.data(), hex.size(), "0x%llx",
                  static_cast<unsigned long long>(flags));
    AppendWord(hex.data(), "|", &text);
  }
  return text.empty() ? "0" : text;
}

std::string SignalName(uint32_t signal) {
  const char* name = ::sigabbrev_np(static_cast<int>(signal));
  return "SIG" + (name != nullptr ? name : std::to_string(signal));
}

std::string ProcessText(const ProcessRecord& record) {
  std::string line = "process ";
  line += ProcessKindName(record.kind);
  const auto word = [&line](std::string_view key, std::string_view value) {
    line += ' ';
    line += key;
    line += '=';
    line += TerminalWord(value);
  };
  ForEachMember(
      record,
      [&](std::string_view key, uint64_t value) {
        if (IsFlagKey(key)) {
          line += ' ';
          line += key;
          return;
        }
        word(key, std::to_string(value));
      },
      word,
      [&](std::string_view key, std::string_view list) {
        if (key == "pipes") {
          for (const PipeEnd& pipe : record.pipes) {
            word("pipe", std::to_string(pipe.fd) + ':' +
                             std::string(AccessName(pipe.access)) + ':' +
                             std::to_string(pipe.inode));
          }
          return;
        }
        // A blank between two arguments that quotes do not hide.
        line += ' ';
        line += key;
        line += "=[";
        ForEachListed(list, [&](std::string_view text) {
          if (line.back() != '[') line += ' ';
          line += TerminalWord(text, "[]");
        });
        line += ']';
      });
  return line;
}

std::string ProcessJson(const ProcessRecord& record) {
  std::string line;
  JsonWriter json(&line);
  json.Put("ts", record.real_ns);
  json.PutExact("process", ProcessKindName(record.kind));
  ForEachMember(
      record,
      [&](std::string_view key, uint64_t value) {
        if (IsFlagKey(key)) {
          json.PutTrue(key);
          return;
        }
        json.Put(key, value);
      },
      [&](std::string_view key, std::string_view value) {
        json.PutExact(key, value);
      },
      [&](std::string_view key, std::string_view list) {
        if (key == "pipes") {
          PutPipes(record.pipes, &json);
        } else {
          PutTextList(key, list, &json);
        }
      });
  json.Put("tracer", record.tracer_id);
  return line + "}\n";
}

}  // namespace tracefs
