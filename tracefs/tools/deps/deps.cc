#include "tracefs/tools/deps/deps.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tracefs/base/absolute_path.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/reader/trace_place.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/deps/add_index.h"
#include "tracefs/tools/deps/declared.h"
#include "tracefs/tools/deps/listing.h"
#include "tracefs/tools/deps/load_graph.h"
#include "tracefs/tools/deps/main.h"
#include "tracefs/tools/deps/report.h"

namespace tracefs {
namespace {

using build::BuildGraph;
using build::PathId;
using build::PathTable;
using reader::WorkingFolder;

constexpr size_t kMaxDeclaredBytes = size_t{1} << 30;

Result<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO)
                                : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::System(errno, TerminalWord(path));
  return ReadText(fd.get(), kMaxDeclaredBytes, TerminalWord(path));
}

class Answerer {
 public:
  Answerer(const DepsOptions& options, OutputBuffer& out, OutputBuffer& err)
      : options_(options), out_(out), err_(err) {}

  int Run() {
    if (options_.question == DepsQuestion::kIndex ||
        options_.question == DepsQuestion::kCheckIndex) {
      return EachIndex();
    }
    Result<LoadedGraph> loaded = Load(options_.traces);
    if (!loaded.ok()) return Complain(loaded.status());
    mount_point_ = std::move(loaded->mount_point);
    source_ = std::move(loaded->source);
    limits_ = std::move(loaded->limits);
    const BuildGraph graph = std::move(loaded->graph);
    Warn(graph);
    const Status status = Answer(graph);
    if (!status.ok()) Raise(Complain(status));
    const Status written = out_.Flush();
    if (!written.ok() && written.error() != EPIPE) Raise(Complain(written));
    (void)err_.Flush();  // nobody to tell
    return exit_status_;
  }

 private:
  // What the question needs of an index.
  IndexWish Wish() const {
    if (options_.no_index) return IndexWish::kNone;
    switch (options_.question) {
      case DepsQuestion::kDependencies:
      case DepsQuestion::kReverse:
      case DepsQuestion::kSets:
      case DepsQuestion::kCompileCommands:
      case DepsQuestion::kAbsent:
        return IndexWish::kUses;
      case DepsQuestion::kIndex:
      case DepsQuestion::kCheckIndex:
        return IndexWish::kNone;
      default:
        return IndexWish::kAll;
    }
  }

  int EachIndex() {
    const bool check = options_.question == DepsQuestion::kCheckIndex;
    const char* const done =
        check ? "its index is that of the trace" : "it has an index now";
    for (const std::string& name : options_.traces) {
      const Status status = check ? CheckIndex(name) : MakeIndex(name);
      out_.Append(TerminalText(name) + ": " +
                  (status.ok() ? done : status.message()) + "\n");
      if (!status.ok()) Raise(check ? 1 : ExitStatus(status));
    }
    const Status written = out_.Flush();
    if (!written.ok() && written.error() != EPIPE) Raise(Complain(written));
    (void)err_.Flush();
    return exit_status_;
  }

  Status MakeIndex(const std::string& name) {
    if (FindIndex(name, options_.keys).ok()) {
      return Status::Invalid("it has an index already");
    }
    const Result<LoadedGraph> read = Load({name});
    return read.ok() ? AddIndex(name, options_.keys, *read) : read.status();
  }

  Status CheckIndex(const std::string& name) {
    Result<TraceIndex> index = FindIndex(name, options_.keys);
    if (!index.ok()) return index.status();
    const Result<IndexSections> there = SectionsOf(*index, /*all=*/true);
    if (!there.ok()) return there.status();
    const Result<LoadedGraph> read = Load({name});
    if (!read.ok()) return read.status();
    for (size_t i = 0; i < build::kGraphSections; ++i) {
      const std::string made =
          EncodeGraph(read->graph, static_cast<build::GraphSection>(i));
      if (made != AsText((*there)[i])) {
        return Status::Corrupt("its index says something else than the trace");
      }
    }
    return {};
  }

  Result<LoadedGraph> Load(const std::vector<std::string>& traces) {
    Result<LoadedGraph> loaded =
        LoadGraph(traces, options_.keys,
                  options_.has_mount_point ? &options_.mount_point : nullptr,
                  Wish(), err_);
    if (loaded.ok() && loaded->damaged) Raise(1);
    return loaded;
  }

  void Raise(int status) { exit_status_ = std::max(exit_status_, status); }
  void Say(const std::string& text) { err_.Append(kDepsSays + text + "\n"); }
  // Once, where something was not seen.
  void SayLimits() {
    for (const std::string& limit : std::exchange(limits_, {})) Say(limit);
  }
  int Complain(const Status& status) {
    Say(status.message());
    (void)err_.Flush();
    return ExitStatus(status);
  }

  void Warn(const BuildGraph& graph) {
    if (!graph.has_process_records()) {
      Say("the trace has no process records: commands, pipes and the ends of "
          "processes are not known, and processes only by their operations");
    }
    if (graph.without_caller() != 0) {
      Say(std::to_string(graph.without_caller()) +
          " operations of callers that are not known or had ended are left "
          "out");
    }
    if (graph.unknown_copies() != 0) {
      Say(std::to_string(graph.unknown_copies()) +
          " copies wrote to files that the trace does not say: what was copied "
          "there is not known to depend on their sources");
    }
    if (graph.crowded_pipes() != 0) {
      Say(std::to_string(graph.crowded_pipes()) +
          " pipes are held by so many processes that nothing follows from "
          "them");
    }
  }

  // A path as it is, in the folder that was named or where we are; as the trace
  // has it; or the only one that ends so.
  Result<PathId> FindTarget(const BuildGraph& graph,
                            const std::string& target) const {
    const auto find = [&](const std::string& path) {
      const PathId id = graph.paths().Find(AbsolutePath("/", path));
      return id != PathTable::kNone && !graph.UsesOfPath(id).empty()
                 ? id
                 : PathTable::kNone;
    };
    const auto used = [&](PathId id) { return !graph.UsesOfPath(id).empty(); };
    std::vector<std::string> folders = {WorkingFolder()};
    if (!BuildFolder().empty()) folders.insert(folders.begin(), BuildFolder());
    const reader::TracePlace place(mount_point_, source_);
    std::vector<std::string> paths;
    for (const std::string& folder : folders) {
      paths.push_back(AbsolutePath(folder, target));
    }
    for (const std::string& folder : folders) {
      for (const std::string& path : place.Readings(target, folder)) {
        paths.push_back(mount_point_ + path);
      }
    }
    for (const std::string& path : paths) {
      if (const PathId id = find(path); id != PathTable::kNone) return id;
    }
    const auto missing = [&] {
      return Status::Corrupt(
          TerminalWord(target) + ": not in the trace: " +
          reader::WhyNotSeen({&place, 1}, target, folders[0]));
    };
    if (LeadsUpward(target)) return missing();
    const std::string ending = AbsolutePath("/", target);
    std::vector<PathId> found;
    const std::string last = ending.substr(ending.rfind('/') + 1);
    for (PathId id = 0; id < graph.paths().size(); ++id) {
      if (graph.paths().Name(id) == last && used(id) &&
          graph.paths().Text(id).ends_with(ending)) {
        found.push_back(id);
      }
    }
    if (found.size() == 1) return found[0];
    if (found.empty()) return missing();
    return Status::Corrupt(
        TerminalWord(target) + ": " + std::to_string(found.size()) +
        " files end so, one is " + TerminalText(graph.paths().Text(found[0])) +
        ": name more of the path");
  }

  std::vector<PathId> Targets(const BuildGraph& graph) {
    std::vector<PathId> targets;
    for (const std::string& name : options_.targets) {
      const Result<PathId> target = FindTarget(graph, name);
      if (target.ok()) {
        targets.push_back(*target);
      } else {
        Raise(Complain(target.status()));
        SayLimits();
      }
    }
    return targets;
  }

  Status Answer(const BuildGraph& graph) {
    const bool json = options_.format == "json";
    switch (options_.question) {
      case DepsQuestion::kDependencies:
      case DepsQuestion::kReverse:
        return AnswerDependencies(graph);
      case DepsQuestion::kSets:
        out_.Append(SetsText(graph, options_.targets, json));
        return {};
      case DepsQuestion::kCompileCommands: {
        size_t untold = 0;
        out_.Append(CompileCommands(graph, options_.config, &untold));
        if (untold != 0) {
          Say(std::to_string(untold) +
              " commands leave to files (@FILE) what they compile, and no "
              "compiler tells it: they are left out");
        }
        return {};
      }
      case DepsQuestion::kCheckNinja:
      case DepsQuestion::kCheckMake:
        return Check(graph);
      case DepsQuestion::kDoubleWrites:
        out_.Append(DoubleWritesText(graph, options_.everything, json));
        return {};
      case DepsQuestion::kRaces: {
        const build::Races races = FindRaces(graph);
        out_.Append(RacesText(graph, races, json));
        for (const std::string& note : races.Notes()) Say(note);
        return {};
      }
      case DepsQuestion::kAbsent:
        out_.Append(AbsentText(graph, json));
        SayLimits();
        return {};
      case DepsQuestion::kUnused:
        out_.Append(UnusedText(graph, Targets(graph), json));
        SayLimits();
        return {};
      case DepsQuestion::kRebuilt:
        return Compare(graph);
      case DepsQuestion::kIndex:
      case DepsQuestion::kCheckIndex:
        break;
    }
    return {};
  }

  Status AnswerDependencies(const BuildGraph& graph) {
    const bool reverse = options_.question == DepsQuestion::kReverse;
    build::DependencyFinder finder(graph, options_.dependencies);
    std::vector<Answered> answers;
    for (const PathId target : Targets(graph)) {
      answers.push_back(
          {target, reverse ? finder.MadeFrom(target) : finder.Of(target)});
      const build::Dependencies& found = answers.back().dependencies;
      if (!reverse && !found.written) {
        Say(TerminalText(graph.paths().Text(target)) +
            ": no process was seen to write it");
        SayLimits();
      }
      for (const std::string& line : NoInputLines(graph, found)) Say(line);
    }
    return Print(graph, answers, reverse);
  }

  Status Print(const BuildGraph& graph, const std::vector<Answered>& answers,
               bool reverse) {
    const std::string& format = options_.format;
    const bool sources = options_.sources;
    if (format == "json") {
      out_.Append(JsonText(graph, answers, sources));
    } else if (format == "dot") {
      out_.Append(DotText(graph, answers, reverse));
    } else if (format == "dyndep") {
      const Result<std::string> text =
          DyndepText(graph, answers, Folder(), sources);
      if (!text.ok()) return text.status();
      out_.Append(*text);
    } else {
      for (const Answered& answer : answers) {
        if (format == "list") {
          if (answers.size() > 1) {
            out_.Append(TerminalText(graph.paths().Text(answer.target)) +
                        ":\n");
          }
          out_.Append(ListText(graph, answer, sources));
          continue;
        }
        const Result<std::string> text = DepfileText(graph, answer, sources);
        if (!text.ok()) return text.status();
        out_.Append(*text);
      }
    }
    return {};
  }

  // Of --build-dir; empty without.
  std::string BuildFolder() const {
    if (options_.build_folder.empty()) return {};
    return AbsolutePath(WorkingFolder(), options_.build_folder);
  }

  std::string Folder() const {
    if (!options_.build_folder.empty()) return BuildFolder();
    return mount_point_.empty() ? WorkingFolder() : mount_point_;
  }

  Status Check(const BuildGraph& graph) {
    const Result<std::string> text = ReadFile(options_.declared);
    if (!text.ok()) return text.status();
    const Result<Declared> declared =
        options_.question == DepsQuestion::kCheckNinja
            ? ParseNinja(*text, options_.declared)
            : ParseMake(*text, options_.declared);
    if (!declared.ok()) return declared.status();
    const DeclaredDifference difference = CompareDeclared(
        *declared, Folder(), mount_point_.empty() ? "/" : mount_point_, graph,
        options_.dependencies);
    out_.Append(DifferenceText(difference, options_.format == "json"));
    const bool agree = difference.undeclared_inputs.empty() &&
                       difference.undeclared_outputs.empty();
    if (!agree) Raise(1);
    return {};
  }

  Status Compare(const BuildGraph& graph) {
    const Result<LoadedGraph> before = Load({options_.before});
    if (!before.ok()) return before.status();
    std::vector<build::RebuildReason> reasons;
    for (const PathId target : Targets(graph)) {
      auto more = WhyRebuilt(before->graph, graph, options_.dependencies,
                             options_.config, target);
      if (more.empty()) {
        Say(TerminalText(graph.paths().Text(target)) +
            ": it was not made again");
      }
      reasons.insert(reasons.end(), more.begin(), more.end());
    }
    out_.Append(RebuildText(graph, reasons, options_.format == "json"));
    return {};
  }

  const DepsOptions& options_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  std::string mount_point_;
  std::string source_;
  std::vector<std::string> limits_;
  int exit_status_ = 0;
};

}  // namespace

int Deps(const DepsOptions& options, OutputBuffer& out, OutputBuffer& err) {
  return Answerer(options, out, err).Run();
}

}  // namespace tracefs
