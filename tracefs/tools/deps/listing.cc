#include "tracefs/tools/deps/listing.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/build/compilation.h"
#include "tracefs/feed/feed_parts.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using build::BuildGraph;
using build::Dependencies;
using build::ExecutionId;
using build::PathId;
using build::ProcessId;

// Of a process in a note, and notes of one kind about a target.
constexpr size_t kProcessWidth = 100;
constexpr size_t kMostLines = 5;

bool IsWritten(const BuildGraph& graph, PathId path) {
  return graph.LastWriterOf(path) != build::kNobody;
}

// As make reads names in rules.
std::string MakeEscaped(std::string_view path) {
  std::string out;
  size_t backslashes = 0;  // right before
  for (const char c : path) {
    if (c == '$') out += '$';
    if (c == ' ' || c == '#' || c == '\t') {
      out.append(backslashes + 1, '\\');
    }
    backslashes = c == '\\' ? backslashes + 1 : 0;
    out += c;
  }
  // A blank or a colon follows.
  return out.append(backslashes, '\\');
}

std::string NinjaEscaped(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '$' || c == ' ' || c == ':' || c == '|') out += '$';
    out += c;
  }
  return out;
}

Status CheckOneLine(std::string_view path, std::string_view format) {
  if (path.find_first_of("\n\r") == path.npos) return {};
  return Status::Invalid("--format " + std::string(format) +
                         " cannot hold the name " + Printable(path) +
                         ", which has a line end: use --format json");
}

std::string DotString(std::string_view text) {
  std::string out = "\"";
  for (const char c : Utf8Text(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return Printable(out) + "\"";
}

}  // namespace

std::vector<PathId> FilesOf(const BuildGraph& graph, const Answered& answer,
                            bool sources) {
  std::vector<std::pair<std::string, PathId>> named;
  for (const PathId file : answer.dependencies.files) {
    if (sources && IsWritten(graph, file)) continue;
    named.emplace_back(graph.paths().Text(file), file);
  }
  std::sort(named.begin(), named.end());
  std::vector<PathId> files;
  for (const auto& [name, file] : named) files.push_back(file);
  return files;
}

std::string ListText(const BuildGraph& graph, const Answered& answer,
                     bool sources) {
  std::string out;
  for (const PathId file : FilesOf(graph, answer, sources)) {
    out += TerminalText(graph.paths().Text(file)) + "\n";
  }
  return out;
}

std::string JsonText(const BuildGraph& graph,
                     const std::vector<Answered>& answers, bool sources) {
  std::string out = "[";
  for (const Answered& answer : answers) {
    const Dependencies& all = answer.dependencies;
    out += out.size() == 1 ? "\n" : ",\n";
    out += "{\"target\":" + JsonString(graph.paths().Text(answer.target)) +
           ",\"written\":" + (all.written ? "true" : "false") + ",\"files\":[";
    const char* comma = "";
    for (const PathId file : FilesOf(graph, answer, sources)) {
      out += comma + JsonString(graph.paths().Text(file));
      comma = ",";
    }
    out += "],\"processes\":[";
    comma = "";
    for (const ProcessId id : all.processes) {
      const build::GraphProcess& process = graph.processes()[id];
      out +=
          std::string(comma) + "{\"pid\":" + std::to_string(process.key.pid) +
          ",\"command\":" + JsonString(graph.LastExecution(id).CommandLine()) +
          "}";
      comma = ",";
    }
    out += "],\"graph\":[";
    comma = "";
    for (const Dependencies::Step& step : all.steps) {
      out += std::string(comma) +
             "{\"file\":" + JsonString(graph.paths().Text(step.written)) +
             ",\"pid\":" +
             std::to_string(graph.processes()[step.process].key.pid) +
             ",\"files\":[";
      const char* inner = "";
      for (const PathId read : *step.reads) {
        out += inner + JsonString(graph.paths().Text(read));
        inner = ",";
      }
      out += "]}";
      comma = ",";
    }
    out += "],\"no_traced_input\":[";
    comma = "";
    for (const Dependencies::NoInput& none : all.no_inputs) {
      out +=
          std::string(comma) +
          "{\"file\":" + JsonString(graph.paths().Text(none.written)) +
          ",\"pid\":" + std::to_string(graph.processes()[none.writer].key.pid);
      if (none.instead != build::kNobody) {
        out += ",\"instead\":" +
               std::to_string(graph.processes()[none.instead].key.pid);
      }
      out += "}";
      comma = ",";
    }
    out += "]}";
  }
  return out + "\n]\n";
}

std::string DotText(const BuildGraph& graph,
                    const std::vector<Answered>& answers, bool reverse) {
  std::string out =
      "digraph dependencies {\nrankdir=LR\nnode [fontsize=10, shape=box]\n";
  std::set<PathId> targets;
  std::set<PathId> files;
  std::set<ProcessId> processes;
  // Sorted afterwards: a million edges in a set take seconds.
  std::vector<std::pair<PathId, ProcessId>> written;
  std::vector<std::pair<PathId, ProcessId>> read;
  for (const Answered& answer : answers) {
    targets.insert(answer.target);
    for (const Dependencies::Step& step : answer.dependencies.steps) {
      processes.insert(step.process);
      files.insert(step.written);
      written.emplace_back(step.written, step.process);
      for (const PathId path : *step.reads) {
        if (path == step.written) continue;
        files.insert(path);
        read.emplace_back(path, step.process);
      }
    }
  }
  const auto file = [](PathId path) { return "f" + std::to_string(path); };
  const auto process = [](ProcessId id) { return "p" + std::to_string(id); };
  files.insert(targets.begin(), targets.end());
  for (const PathId path : files) {
    out += file(path) + " [label=" + DotString(graph.paths().Text(path));
    out += targets.contains(path) ? ", style=bold]\n" : "]\n";
  }
  for (const ProcessId id : processes) {
    out += process(id) + " [label=" + DotString(graph.NameOfProcess(id)) +
           ", shape=ellipse]\n";
  }
  const auto add_edges = [&](auto* edges, bool into_file) {
    std::sort(edges->begin(), edges->end());
    edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
    for (const auto& [path, id] : *edges) {
      out += into_file ? process(id) + " -> " + file(path) + "\n"
                       : file(path) + " -> " + process(id) + "\n";
    }
  };
  add_edges(&written, !reverse);
  add_edges(&read, reverse);
  return out + "}\n";
}

Result<std::string> DepfileText(const BuildGraph& graph, const Answered& answer,
                                bool sources) {
  std::string target = graph.paths().Text(answer.target);
  if (Status s = CheckOneLine(target, "depfile"); !s.ok()) return s;
  std::string out = MakeEscaped(target) + ":";
  for (const PathId file : FilesOf(graph, answer, sources)) {
    const std::string path = graph.paths().Text(file);
    if (Status s = CheckOneLine(path, "depfile"); !s.ok()) return s;
    out += " \\\n " + MakeEscaped(path);
  }
  return out + "\n";
}

Result<std::string> DyndepText(const BuildGraph& graph,
                               const std::vector<Answered>& answers,
                               const std::string& folder, bool sources) {
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  const auto name = [&](PathId path) {
    std::string text = graph.paths().Text(path);
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
    return text;
  };
  std::string out = "ninja_dyndep_version = 1\n";
  for (const Answered& answer : answers) {
    const std::string target = name(answer.target);
    if (Status s = CheckOneLine(target, "dyndep"); !s.ok()) return s;
    out += "build " + NinjaEscaped(target) + ": dyndep";
    const char* bar = " |";
    for (const PathId file : FilesOf(graph, answer, sources)) {
      const std::string path = name(file);
      if (Status s = CheckOneLine(path, "dyndep"); !s.ok()) return s;
      out += bar;
      out += " " + NinjaEscaped(path);
      bar = "";
    }
    out += "\n";
  }
  return out;
}

namespace {

// Who tells what a process compiles.
class Tellers {
 public:
  Tellers(const BuildGraph& graph, const build::BuildConfig& config)
      : launchers_(graph.processes().size(), build::kNobody) {
    for (const ProcessId id : graph.Walk()) {
      const build::GraphProcess& process = graph.processes()[id];
      if (process.parent == build::kNobody) continue;
      const build::GraphProcess& parent = graph.processes()[process.parent];
      if (parent.executions.empty()) continue;
      const size_t index =
          std::min<size_t>(process.parent_index, parent.executions.size() - 1);
      const ExecutionId above = parent.executions[index];
      launchers_[id] = launchers_[process.parent];
      const bool launched =
          LaunchesDriver(config, *graph.executions()[above].image);
      if (launchers_[id] == build::kNobody && launched) launchers_[id] = above;
      for (const ExecutionId execution : process.executions) {
        const auto& image = graph.executions()[execution].image;
        if (!IsCompilerProper(*image)) continue;
        compilers_[IsLaunched(id) ? launchers_[id] : above].push_back(image);
      }
    }
  }

  // By a launcher of compilers: that was told the same.
  bool IsLaunched(ProcessId process) const {
    return launchers_[process] != build::kNobody;
  }
  // Those that a driver or a launcher ran.
  const build::Compilers& CompilersOf(ExecutionId execution) {
    return compilers_[execution];
  }

 private:
  std::vector<ExecutionId> launchers_;  // the topmost one, by process
  std::unordered_map<ExecutionId, build::Compilers> compilers_;
};

}  // namespace

std::string CompileCommands(const BuildGraph& graph,
                            const build::BuildConfig& config, size_t* untold) {
  Tellers tellers(graph, config);
  std::string out = "[";
  for (ExecutionId id = 0; id < graph.executions().size(); ++id) {
    const build::GraphExecution& execution = graph.executions()[id];
    const ProcessId process = execution.process;
    const bool last = graph.processes()[process].executions.back() == id;
    if (execution.index == 0 || !last || tellers.IsLaunched(process)) continue;
    const build::Image image = build::Launched(*execution.image);
    const auto made = ReadDriver(config, image, tellers.CompilersOf(id));
    if (!made) {
      // Of other drivers the compilers would have told.
      const bool silent =
          IsLauncher(*execution.image) || IsIntegrated(config, image);
      if (silent && IsDriver(config, image) && HasMoreInFiles(image)) {
        ++*untold;
      }
      continue;
    }
    for (size_t i = 0; i < made->files.size(); ++i) {
      out += out.size() == 1 ? "\n" : ",\n";
      out += "{\"directory\":" + JsonString(image.cwd) +
             ",\"file\":" + JsonString(made->files[i]) + ",\"arguments\":[";
      const char* comma = "";
      for (const std::string& word : image.argv) {
        out += comma + JsonString(word);
        comma = ",";
      }
      out += "]";
      const bool one_each = made->objects.size() == made->files.size();
      if (one_each) out += ",\"output\":" + JsonString(made->objects[i]);
      out += "}";
    }
  }
  return out + "\n]\n";
}

std::vector<std::string> NoInputLines(const BuildGraph& graph,
                                      const Dependencies& dependencies) {
  const auto process = [&](build::ProcessId id) {
    return CutMiddle(TerminalText(graph.NameOfProcess(id)), kProcessWidth);
  };
  std::vector<std::string> lines;
  for (const Dependencies::NoInput& none : dependencies.no_inputs) {
    if (lines.size() == kMostLines) {
      lines.push_back(
          std::to_string(dependencies.no_inputs.size() - kMostLines) +
          " more processes that wrote read nothing that was traced: --format "
          "json lists them");
      break;
    }
    lines.push_back(TerminalText(graph.paths().Text(none.written)) + ": " +
                    process(none.writer) + " read nothing that was traced; " +
                    (none.instead == build::kNobody
                         ? "what it was made from is not known"
                         : "what was read below " + process(none.instead) +
                               " counts instead"));
  }
  return lines;
}

}  // namespace tracefs
