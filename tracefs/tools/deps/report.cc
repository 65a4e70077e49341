#include "tracefs/tools/deps/report.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "tracefs/base/join.h"
#include "tracefs/feed/feed_parts.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using build::BuildGraph;
using build::ExecutionId;
using build::FileUse;
using build::PathId;
using build::ProcessId;

// [\n{…},\n{…}\n]
class JsonList {
 public:
  // Begins an object; members follow as `,"key":value`.
  void Begin(const std::string& first_member) {
    text_ += text_.size() == 1 ? "\n{" : ",\n{";
    text_ += first_member;
  }
  void Text(const char* key, std::string_view value) {
    text_ += std::string(",\"") + key + "\":" + JsonString(value);
  }
  void Number(const char* key, uint64_t value) {
    text_ += std::string(",\"") + key + "\":" + std::to_string(value);
  }
  void Raw(const std::string& more) { text_ += more; }
  void End() { text_ += '}'; }
  std::string Take() { return text_ + "\n]\n"; }

 private:
  std::string text_ = "[";
};

uint64_t PidOf(const BuildGraph& graph, ProcessId id) {
  return graph.processes()[id].key.pid;
}

std::string Shown(const BuildGraph& graph, PathId path) {
  return TerminalText(graph.paths().Text(path));
}

std::string ShownExecution(const BuildGraph& graph, ExecutionId execution) {
  return TerminalText(graph.NameOfExecution(execution));
}

std::string CommandOf(const BuildGraph& graph, ExecutionId execution) {
  return graph.executions()[execution].CommandLine();
}

bool IsWanted(const BuildGraph& graph, ProcessId id,
              const std::vector<std::string>& wanted) {
  if (wanted.empty()) return true;
  const std::string line =
      graph.LastExecution(id).CommandLine() + " " + graph.processes()[id].comm;
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const std::string& word) {
                       return word == std::to_string(PidOf(graph, id)) ||
                              line.find(word) != line.npos;
                     });
}

struct SetOf {
  const char* name;
  std::vector<PathId> files;
};

// What a process did with each file is in the first set that has it.
std::vector<SetOf> SetsOf(const BuildGraph& graph, ProcessId id) {
  std::map<PathId, uint16_t> access;
  for (const auto execution : graph.processes()[id].executions) {
    for (const FileUse& use : graph.UsesOf(execution)) {
      access[use.path] |= use.access;
    }
  }
  std::vector<SetOf> sets = {{"read", {}},    {"written", {}}, {"removed", {}},
                             {"listed", {}},  {"probed", {}},  {"absent", {}},
                             {"changed", {}}, {"run", {}}};
  for (const auto& [path, bits] : access) {
    using namespace build;  // NOLINT: the bits
    if ((bits & kRead) != 0 && (bits & kRun) == 0) {
      sets[0].files.push_back(path);
    }
    if ((bits & (kWrite | kCreate)) != 0) sets[1].files.push_back(path);
    if ((bits & kRemove) != 0) sets[2].files.push_back(path);
    if ((bits & kList) != 0) sets[3].files.push_back(path);
    if ((bits & kRun) != 0) sets[7].files.push_back(path);
    if ((bits & kChange) != 0) sets[6].files.push_back(path);
    constexpr uint16_t kUsed =
        kRead | kWrite | kList | kCreate | kRemove | kChange | kRun;
    if ((bits & kUsed) != 0) continue;
    if ((bits & kAbsent) != 0) {
      sets[5].files.push_back(path);
    } else if ((bits & kProbe) != 0) {
      sets[4].files.push_back(path);
    }
  }
  return sets;
}

}  // namespace

std::string SetsText(const BuildGraph& graph,
                     const std::vector<std::string>& wanted, bool json) {
  std::string out;
  JsonList list;
  for (ProcessId id = 0; id < graph.processes().size(); ++id) {
    if (!IsWanted(graph, id, wanted)) continue;
    const std::vector<SetOf> sets = SetsOf(graph, id);
    list.Begin("\"pid\":" + std::to_string(PidOf(graph, id)));
    list.Text("command", graph.LastExecution(id).CommandLine());
    out += TerminalText(graph.NameOfProcess(id)) + "\n";
    for (const SetOf& set : sets) {
      std::string files;
      for (const PathId path : set.files) {
        AppendWord(JsonString(graph.paths().Text(path)), ",", &files);
        out += "  " + std::string(set.name) + " " + Shown(graph, path) + "\n";
      }
      list.Raw(std::string(",\"") + set.name + "\":[" + files + "]");
    }
    list.End();
  }
  return json ? list.Take() : out;
}

std::string DoubleWritesText(const BuildGraph& graph, bool all, bool json) {
  std::string out;
  JsonList list;
  for (const build::DoubleWrite& twice : graph.double_writes()) {
    const ProcessId first = graph.ProcessOf(twice.first);
    const ProcessId second = graph.ProcessOf(twice.second);
    const bool related =
        graph.IsAncestor(first, second) || graph.IsAncestor(second, first);
    if (related && !all) continue;
    const std::string_view kind = DoubleWriteName(twice.kind);
    list.Begin("\"file\":" + JsonString(graph.paths().Text(twice.path)));
    list.Text("kind", kind);
    list.Number("first_pid", PidOf(graph, first));
    list.Text("first", CommandOf(graph, twice.first));
    list.Number("second_pid", PidOf(graph, second));
    list.Text("second", CommandOf(graph, twice.second));
    list.Number("gap_ns", twice.second_ns - twice.first_ns);
    list.End();
    out += Shown(graph, twice.path) + ": " + std::string(kind) + "\n  " +
           ShownExecution(graph, twice.first) + "\n  " +
           ShownExecution(graph, twice.second) + " " +
           DurationText(twice.second_ns - twice.first_ns) + " later\n";
  }
  return json ? list.Take() : out;
}

std::string RacesText(const BuildGraph& graph, const build::Races& races,
                      bool json) {
  std::string out;
  JsonList list;
  for (const build::Race& race : races.list) {
    list.Begin("\"file\":" + JsonString(graph.paths().Text(race.path)));
    list.Text("kind", RaceName(race.kind));
    list.Number("reader_pid", PidOf(graph, graph.ProcessOf(race.reader)));
    list.Text("reader", CommandOf(graph, race.reader));
    list.Number("writer_pid", PidOf(graph, graph.ProcessOf(race.writer)));
    list.Text("writer", CommandOf(graph, race.writer));
    list.Number("gap_ns", race.gap_ns);
    list.End();
    out += Shown(graph, race.path) + ": " + std::string(RaceName(race.kind)) +
           "\n  read by " + ShownExecution(graph, race.reader) +
           "\n  written by " + ShownExecution(graph, race.writer) + " " +
           DurationText(race.gap_ns) + " later\n";
  }
  return json ? list.Take() : out;
}

std::string AbsentText(const BuildGraph& graph, bool json) {
  std::string out;
  JsonList list;
  for (const build::AbsentPath& absent : FindAbsent(graph)) {
    list.Begin("\"file\":" + JsonString(graph.paths().Text(absent.path)));
    list.Number("executions", absent.executions);
    list.End();
    out += std::to_string(absent.executions) + " " + Shown(graph, absent.path) +
           "\n";
  }
  return json ? list.Take() : out;
}

std::string UnusedText(const BuildGraph& graph,
                       const std::vector<PathId>& wanted, bool json) {
  std::string out;
  JsonList list;
  for (const PathId path : FindUnused(graph)) {
    if (std::find(wanted.begin(), wanted.end(), path) != wanted.end()) continue;
    list.Begin("\"file\":" + JsonString(graph.paths().Text(path)));
    list.Number("size", graph.Facts(path).size);
    list.End();
    out += Shown(graph, path) + "\n";
  }
  return json ? list.Take() : out;
}

std::string RebuildText(const BuildGraph& graph,
                        const std::vector<build::RebuildReason>& reasons,
                        bool json) {
  using Kind = build::RebuildReason::Kind;
  std::string out;
  JsonList list;
  for (const build::RebuildReason& reason : reasons) {
    list.Begin("\"file\":" + JsonString(graph.paths().Text(reason.target)));
    list.Text("reason", RebuildReasonName(reason.kind));
    if (!reason.path.empty()) list.Text("input", reason.path);
    if (!reason.before.empty()) list.Text("before", reason.before);
    if (!reason.after.empty()) list.Text("after", reason.after);
    list.End();
    out += Shown(graph, reason.target) + ": ";
    const std::string path = TerminalText(reason.path);
    switch (reason.kind) {
      case Kind::kNew:
        out += "the build before did not make it";
        break;
      case Kind::kCommand:
        out += "another command\n  before: " + TerminalText(reason.before) +
               "\n  now:    " + TerminalText(reason.after);
        break;
      case Kind::kInputAdded:
        out += "reads " + path + ", which it did not before";
        break;
      case Kind::kInputRemoved:
        out += "does not read " + path + " any more";
        break;
      case Kind::kInputChanged:
        out += path + " was changed\n  before: " + reason.before +
               "\n  now:    " + reason.after;
        break;
      case Kind::kInputMade:
        out += path + " was made again";
        break;
      case Kind::kNothingSeen:
        out += "nothing that was traced has changed";
        break;
    }
    out += "\n";
  }
  return json ? list.Take() : out;
}

std::string DifferenceText(const DeclaredDifference& difference, bool json) {
  std::string out;
  JsonList list;
  const auto add = [&](const char* kind, const char* words,
                       const std::vector<DeclaredDifference::Pair>& pairs) {
    for (const DeclaredDifference::Pair& pair : pairs) {
      list.Begin(std::string("\"kind\":\"") + kind + "\"");
      list.Text("output", pair.output);
      list.Text("file", pair.input);
      if (!pair.command.empty()) list.Text("command", pair.command);
      list.End();
      out += TerminalText(pair.output) + ": " + words + " " +
             TerminalText(pair.input);
      if (!pair.command.empty()) out += ", by " + TerminalText(pair.command);
      out += "\n";
    }
  };
  add("undeclared-input", "undeclared input", difference.undeclared_inputs);
  add("undeclared-output", "undeclared output beside it",
      difference.undeclared_outputs);
  add("unused-input", "declared but not read:", difference.unused_inputs);
  for (const std::string& output : difference.never_made) {
    list.Begin("\"kind\":\"never-made\"");
    list.Text("output", output);
    list.End();
    out += TerminalText(output) + ": declared, and never seen\n";
  }
  return json ? list.Take() : out;
}

}  // namespace tracefs
