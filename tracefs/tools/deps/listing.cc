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
constexpr size_t kProgramWidth = 100;
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
    if (c == ' ' || c == '#' || c == '\t' || c == ':') {
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

Status CannotHold(std::string_view path, std::string_view format,
                  const std::string& what) {
  return Status::Invalid("--format " + std::string(format) +
                         " cannot hold the name " + Printable(path) + what +
                         ": use --format json");
}

Status CheckOneLine(std::string_view path, std::string_view format) {
  if (path.find_first_of("\n\r") == path.npos) return {};
  return CannotHold(path, format, ", which has a line end");
}

// What make takes for the begin of a command, or of another list, whatever is
// before it; in a target also what makes it a variable or a pattern.
Status CheckMakeName(std::string_view path, bool target) {
  if (Status s = CheckOneLine(path, "depfile"); !s.ok()) return s;
  const size_t mark = path.find_first_of(target ? ";|=%" : ";|");
  if (mark != path.npos) {
    return CannotHold(path, "depfile",
                      std::string(", in which make takes ") + path[mark] +
                          " for something else");
  }
  return {};
}

std::string PidText(const BuildGraph& graph, ExecutionId id) {
  return std::to_string(graph.processes()[graph.ProcessOf(id)].key.pid);
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
    for (const ExecutionId id : all.executions) {
      out +=
          std::string(comma) + "{\"pid\":" + PidText(graph, id) +
          ",\"command\":" + JsonString(graph.executions()[id].CommandLine()) +
          "}";
      comma = ",";
    }
    out += "],\"graph\":[";
    comma = "";
    for (const Dependencies::Step& step : all.steps) {
      out += std::string(comma) +
             "{\"file\":" + JsonString(graph.paths().Text(step.written)) +
             ",\"pid\":" + PidText(graph, step.writer) + ",\"files\":[";
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
      out += std::string(comma) +
             "{\"file\":" + JsonString(graph.paths().Text(none.written)) +
             ",\"pid\":" + PidText(graph, none.writer);
      if (none.instead != build::kNobody) {
        out += ",\"instead\":" + PidText(graph, none.instead);
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
  std::set<ExecutionId> executions;
  // Sorted afterwards: a million edges in a set take seconds.
  std::vector<std::pair<PathId, ExecutionId>> written;
  std::vector<std::pair<PathId, ExecutionId>> read;
  for (const Answered& answer : answers) {
    targets.insert(answer.target);
    for (const Dependencies::Step& step : answer.dependencies.steps) {
      executions.insert(step.writer);
      files.insert(step.written);
      written.emplace_back(step.written, step.writer);
      for (const PathId path : *step.reads) {
        if (path == step.written) continue;
        files.insert(path);
        read.emplace_back(path, step.writer);
      }
    }
  }
  const auto file = [](PathId path) { return "f" + std::to_string(path); };
  const auto node = [](ExecutionId id) { return "p" + std::to_string(id); };
  files.insert(targets.begin(), targets.end());
  for (const PathId path : files) {
    out += file(path) + " [label=" + DotString(graph.paths().Text(path));
    out += targets.contains(path) ? ", style=bold]\n" : "]\n";
  }
  for (const ExecutionId id : executions) {
    out += node(id) + " [label=" + DotString(graph.NameOfExecution(id)) +
           ", shape=ellipse]\n";
  }
  const auto add_edges = [&](auto* edges, bool into_file) {
    std::sort(edges->begin(), edges->end());
    edges->erase(std::unique(edges->begin(), edges->end()), edges->end());
    for (const auto& [path, id] : *edges) {
      out += into_file ? node(id) + " -> " + file(path) + "\n"
                       : file(path) + " -> " + node(id) + "\n";
    }
  };
  add_edges(&written, !reverse);
  add_edges(&read, reverse);
  return out + "}\n";
}

Result<std::string> DepfileText(const BuildGraph& graph, const Answered& answer,
                                bool sources) {
  const std::string target = graph.paths().Text(answer.target);
  if (Status s = CheckMakeName(target, /*target=*/true); !s.ok()) return s;
  std::vector<std::string> paths;
  for (const PathId file : FilesOf(graph, answer, sources)) {
    paths.push_back(graph.paths().Text(file));
    if (Status s = CheckMakeName(paths.back(), false); !s.ok()) return s;
  }
  // Only the first may be taken for the name of a variable.
  const auto is_plain = [](const std::string& path) {
    return path.find('=') == path.npos;
  };
  const auto plain = std::ranges::find_if(paths, is_plain);
  if (plain == paths.end() && !paths.empty()) {
    return CannotHold(paths[0], "depfile",
                      ", which make takes for a variable's value");
  }
  if (plain != paths.end()) {
    std::rotate(paths.begin(), plain, std::next(plain));
  }
  std::string out = MakeEscaped(target) + ":";
  for (const std::string& path : paths) out += " \\\n " + MakeEscaped(path);
  // At the end of a line backslashes mean themselves, but before one that says
  // that the next line, here an empty one, belongs to it.
  if (out.ends_with('\\')) out += "\\\n";
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
      const ExecutionId above = graph.ParentExecution(id);
      if (above == build::kNobody) continue;
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
  const auto program = [&](build::ExecutionId id) {
    return CutMiddle(TerminalText(graph.NameOfExecution(id)), kProgramWidth);
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
                    program(none.writer) + " read nothing that was traced; " +
                    (none.instead == build::kNobody
                         ? "what it was made from is not known"
                         : "what was read below " + program(none.instead) +
                               " counts instead"));
  }
  return lines;
}

}  // namespace tracefs
