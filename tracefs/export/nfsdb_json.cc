#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/replacement.h"
#include "tracefs/build/compilation.h"
#include "tracefs/build/path_facts.h"
#include "tracefs/build/patterns.h"
#include "tracefs/build/pipe_matcher.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/build/use_collector.h"
#include "tracefs/export/nfsdb.h"
#include "tracefs/export/packed.h"
#include "tracefs/feed/feed_parts.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"
#include "tracefs/text/spool.h"

namespace tracefs {
namespace {

using build::ExecutionId;
using build::ExecutionName;
using build::FileStep;
using build::Image;
using build::PathId;
using build::PathTable;
using build::Process;
using build::ProcessId;
using build::Use;

void AppendNfsdbText(std::string_view text, std::string* out) {
  AppendJsonString(Utf8Text(text), out);
}

void AppendNfsdbTexts(const std::vector<std::string>& texts, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i != 0) *out += ',';
    AppendNfsdbText(texts[i], out);
  }
  *out += ']';
}

void AppendDefinitions(const std::vector<build::Compilation::Definition>& all,
                       std::string* out) {
  *out += '[';
  for (size_t i = 0; i < all.size(); ++i) {
    *out += i == 0 ? "{\"n\":" : ",{\"n\":";
    AppendNfsdbText(all[i].first, out);
    *out += ",\"v\":";
    AppendNfsdbText(all[i].second, out);
    *out += '}';
  }
  *out += ']';
}

// {"p":812,"x":1}
std::string NameOf(uint32_t pid, uint32_t index) {
  return "{\"p\":" + std::to_string(pid) + ",\"x\":" + std::to_string(index) +
         "}";
}

// 0emmmmxx, as CAS documents it.
unsigned ModeOf(const Use& use, const build::PathFacts& facts) {
  const unsigned access = use.open_mode == Use::kNotOpened ? 0 : use.open_mode;
  const unsigned type = facts.type != 0 ? facts.type : use.type;
  if (facts.gone || type == 0) return access;
  return 0x40 | (type & 0xf) << 2 | access;
}

class NfsdbJsonExporter final : public Exporter,
                                private build::TrackerListener {
 public:
  NfsdbJsonExporter(OutputBuffer& out, const NfsdbOptions& options)
      : out_(out),
        options_(options),
        command_patterns_(options.config.CommandPatterns()),
        tracker_(*this),
        root_(options.memory_bytes),
        entries_(options.memory_bytes) {}

  void Write(const format::Record& record) override {
    const FileStep* const step = steps_.Of(record);
    if (step == nullptr) return;
    Begin(step->time_ns);
    tracker_.Take(*step);
  }
  void WriteProcess(const ProcessRecord& record) override {
    Begin(record.time_ns);
    tracker_.Take(record);
  }
  void Summarize(const ExportSummary& summary) override {
    for (const format::TraceContext* trace : summary.traces) {
      const auto& header = trace->description.header;
      AddMount(header.Get("backing.path"), header.Get("mount.point"));
      for (const auto& [reason, count] : trace->stats.losses) {
        losses_[reason] += count;
      }
    }
  }
  void Finish() override {
    tracker_.Finish();
    FindPipes();
    out_.Append("[");
    for (EntrySpool* spool : {&root_, &entries_}) {
      Keep(spool->ForEach(
          [this](std::string_view entry) { WriteEntry(entry); }));
    }
    out_.Append("\n]\n");
    WriteSides();
  }
  uint64_t left_out() const override { return left_out_; }
  Status status() const override { return status_; }

 private:
  // What is kept of each process until the end.
  struct Known {
    uint32_t number = 0;
    ProcessId parent = build::kNobody;
    bool wraps = false;  // one of the shells that others count as
    // The topmost launcher of compilers above, which was told the same.
    ExecutionId launcher = build::kNobody;
  };
  struct Child {
    uint32_t pid;
    uint64_t flags;
  };
  struct Running {
    std::vector<Child> children;
    // When it was on which processor: where it was not before.
    std::vector<std::pair<uint64_t, uint32_t>> cpus;
    bool launches = false;       // it is a launcher of compilers
    build::Compilers compilers;  // proper, that it ran
  };

  void Begin(uint64_t time_ns) {
    if (first_ns_ == 0) first_ns_ = time_ns;
  }
  // A damaged trace may tell of something that was before.
  uint64_t SinceFirst(uint64_t time_ns) const {
    return time_ns - std::min(time_ns, first_ns_);
  }
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  // --- What the tracker tells.

  void ProcessBegan(const Process& process) override {
    known_.resize(process.id + size_t{1});
    Known& known = known_[process.id];
    known.number = process.number;
    known.parent = process.parent;
    if (process.parent_execution != build::kNobody) {
      const auto parent = running_.find(process.parent_execution);
      if (parent != running_.end()) {
        parent->second.children.push_back(
            {process.number, process.clone_flags});
      }
    }
  }
  void ExecutionBegan(const Process& process) override {
    Running& running = running_[process.now.id];
    running.launches =
        build::LaunchesDriver(options_.config, *process.now.image);
    NoteLauncher(process);
    pipes_.ExecutionBegan(process);
    const std::string binary(process.now.image->Binary());
    if (process.now.index != 0 &&
        build::MatchesAny(options_.config.rbm_wrapping_binaries, binary)) {
      known_[process.id].wraps = true;
    }
    if (build::IsCompilerProper(*process.now.image)) {
      const ExecutionId launcher = known_[process.id].launcher;
      const auto driver = running_.find(
          launcher != build::kNobody ? launcher : process.parent_execution);
      if (driver != running_.end()) {
        driver->second.compilers.push_back(process.now.image);
      }
    }
    NoteEnvironment(process);
  }
  void ForkTold(const Process& process) override { NoteLauncher(process); }
  void NoteLauncher(const Process& process) {
    ExecutionId& launcher = known_[process.id].launcher;
    if (process.parent == build::kNobody || launcher != build::kNobody) return;
    launcher = known_[process.parent].launcher;
    const auto parent = running_.find(process.parent_execution);
    const bool launched = parent != running_.end() && parent->second.launches;
    if (launcher == build::kNobody && launched) {
      launcher = process.parent_execution;
    }
  }
  void Did(const Process& process, const FileStep& step) override {
    const build::StepPaths ids = step_paths_.Of(step);
    collector_.Add(process.now.id, step, ids);
    // CAS counts every rename as two opens, also those of directories.
    if (step.op == Op::rename_ && step.error == 0 && S_ISDIR(step.mode) &&
        ids.path2 != PathTable::kNone) {
      collector_.Add(process.now.id, ids.path, build::kRead, step.time_ns);
      collector_.Add(process.now.id, ids.path2, build::kWrite, step.time_ns);
    }
    facts_.Note(step, ids, [](PathId, PathId) {});
  }
  void DidWithout(ProcessId id, uint32_t, const FileStep& step) override {
    const build::StepPaths ids = step_paths_.Of(step);
    facts_.Note(step, ids, [](PathId, PathId) {});
    if (id == build::kNobody) ++left_out_;
  }
  void Ran(const Process& process, const ProcessRecord& record) override {
    if (record.kind == ProcessRecord::Kind::kPipes) {
      pipes_.Add(process, record.pipes);
    }
    if (!record.cpu) return;
    auto& cpus = running_[process.now.id].cpus;
    if (!cpus.empty() && cpus.back().second == *record.cpu) return;
    cpus.emplace_back(record.time_ns, *record.cpu);
  }
  void ExecutionEnded(const Process& process) override {
    Packer entry;
    const build::Execution& now = process.now;
    entry.Number(process.number);
    entry.Number(now.index);
    entry.Number(now.id);
    entry.Text(Members(process));
    const std::vector<Use> uses = collector_.Take(now.id);
    entry.Number(uses.size());
    for (const Use& use : uses) {
      entry.Number(use.opened ? 1 : 0);
      if (!use.opened) continue;
      entry.Number(use.path);
      entry.Number(use.open_mode);
      entry.Number(use.type);
      entry.Number(use.size);
      entry.Number(use.first_ns);
      entry.Number(use.last_ns);
    }
    EntrySpool& spool = now.id == 0 ? root_ : entries_;
    spool.Append(entry.bytes());
    Keep(spool.status());
    running_.erase(now.id);
  }
  void NoteEnvironment(const Process& process) {
    if (options_.environment.empty() || process.now.index == 0) return;
    ForEachListed(process.now.image->environ, [&](std::string_view variable) {
      std::vector<uint32_t>& pids = environment_[std::string(variable)];
      if (pids.empty() || pids.back() != process.number) {
        pids.push_back(process.number);
      }
    });
  }

  // The nearest shell above, as a process that ran programs itself.
  uint32_t WrapperOf(ProcessId id) const {
    for (ProcessId at = known_[id].parent; at != build::kNobody;
         at = known_[at].parent) {
      if (known_[at].wraps) return known_[at].number;
    }
    return 0;
  }

  // All members but "o" and "i", from the first brace on.
  std::string Members(const Process& process) {
    const build::Execution& now = process.now;
    const Image& image = *now.image;
    std::string text = "{\"p\":" + std::to_string(process.number) +
                       ",\"x\":" + std::to_string(now.index) +
                       ",\"s\":" + std::to_string(SinceFirst(now.begin_ns)) +
                       ",\"e\":" + std::to_string(now.end_ns - now.begin_ns);
    text += ",\"r\":";
    // The process's, whichever of its programs this is.
    if (process.parent == build::kNobody) {
      text += "{\"p\":-1,\"x\":0}";
    } else {
      text += NameOf(process.parent_number, process.parent_index);
    }
    const Running& running = running_[now.id];
    text += ",\"c\":[";
    for (size_t i = 0; i < running.children.size(); ++i) {
      text += i == 0 ? "{\"p\":" : ",{\"p\":";
      text += std::to_string(running.children[i].pid) +
              ",\"f\":" + std::to_string(running.children[i].flags) + "}";
    }
    text += "],\"b\":";
    // What a fork runs before its first program is its parent's.
    const bool fork = process.forked && now.index == 0;
    const std::string program = build::ProgramPath(image);
    AppendNfsdbText(fork              ? std::string_view()
                    : program.empty() ? std::string_view(process.comm)
                                      : program,
                    &text);
    text += ",\"w\":";
    AppendNfsdbText(fork ? std::string_view() : image.cwd, &text);
    text += ",\"v\":";
    AppendNfsdbTexts(image.argv, &text);
    if (now.last && process.ended) {
      // What a shell sees of it, in eight bits.
      text +=
          ",\"!\":" + std::to_string(process.ShellStatus().value_or(0) & 0xff);
    }
    if (options_.post) AddPost(process, &text);
    text += ",\"u\":[";
    for (size_t i = 0; i < running.cpus.size(); ++i) {
      text += (i == 0 ? "{\"t\":" : ",{\"t\":") +
              std::to_string(SinceFirst(running.cpus[i].first)) +
              ",\"c\":" + std::to_string(running.cpus[i].second) + "}";
    }
    return text + "]";
  }

  // What a driver has compiled, itself or by a compiler that it ran; with the
  // folders of the system that this looked into, as far as they were seen.
  // A launcher has them, too, whether it ran a driver or had the result.
  std::optional<build::Compilation> CompilationOf(const Process& process,
                                                  const Image& image) {
    const Running& running = running_[process.now.id];
    const bool compiled = !running.compilers.empty() || running.launches ||
                          IsIntegrated(options_.config, image);
    if (!compiled || known_[process.id].launcher != build::kNobody ||
        !process.now.last) {
      return std::nullopt;
    }
    std::optional<build::Compilation> made =
        ReadDriver(options_.config, image, running.compilers);
    if (!made || running.compilers.empty()) return made;
    for (std::string& folder :
         build::SystemFolders(*running.compilers.back())) {
      const PathId id = paths_.Find(folder);
      if (id == PathTable::kNone) continue;
      const build::PathFacts& facts = facts_.Of(id);
      if (facts.gone || facts.type != S_IFDIR >> 12) continue;
      made->include_paths.push_back(std::move(folder));
    }
    return made;
  }

  void AddPost(const Process& process, std::string* text) {
    const Image& image = *process.now.image;
    if (!command_patterns_.empty()) {
      const std::string bits =
          build::MatchBits(command_patterns_, image.CommandLine());
      std::string base64(Base64Size(bits.size()), '\0');
      PutBase64(base64.data(), bits);
      *text += ",\"n\":\"" + base64 + "\"";
    }
    if (const uint32_t wrapper = WrapperOf(process.id); wrapper != 0) {
      *text += ",\"m\":" + std::to_string(wrapper);
    }
    if (process.now.index == 0) return;  // it is its parent's command yet
    const bool launcher = build::IsLauncher(image);
    const Image launched = launcher ? build::Launched(image) : Image();
    const Image& driver = launcher ? launched : image;
    if (const auto made = CompilationOf(process, driver)) {
      *text += ",\"d\":{\"f\":";
      AppendNfsdbTexts(made->files, text);
      *text += ",\"i\":";
      AppendNfsdbTexts(made->include_paths, text);
      *text += ",\"d\":";
      AppendDefinitions(made->definitions, text);
      *text += ",\"u\":";
      AppendDefinitions(made->undefinitions, text);
      *text += ",\"h\":";
      AppendNfsdbTexts(made->headers, text);
      *text += ",\"s\":" + std::to_string(made->language) + ",\"o\":";
      AppendNfsdbTexts(made->objects, text);
      *text +=
          IsIntegrated(options_.config, driver) ? ",\"p\":1}" : ",\"p\":0}";
    }
    if (const auto linking = FindLinking(options_.config, image)) {
      *text += ",\"l\":";
      AppendNfsdbText(linking->file, text);
      *text += linking->linked ? ",\"t\":1" : ",\"t\":0";
    }
  }

  // --- The end.

  void FindPipes() {
    for (const build::PipeEdge& edge : pipes_.Match()) {
      readers_[edge.writer.id].push_back(
          NameOf(known_[edge.reader.process].number, edge.reader.index));
    }
  }

  void WriteEntry(std::string_view bytes) {
    Unpacker entry(bytes);
    entry.Number();
    entry.Number();
    const auto id = static_cast<ExecutionId>(entry.Number());
    std::string text = first_entry_ ? "\n" : ",\n";
    first_entry_ = false;
    text += entry.Text();
    text += ",\"o\":[";
    bool first = true;
    for (uint64_t left = entry.Number(); left > 0; --left) {
      if (entry.Number() == 0) continue;
      Use use;
      use.path = static_cast<PathId>(entry.Number());
      use.open_mode = static_cast<uint8_t>(entry.Number());
      use.type = static_cast<uint8_t>(entry.Number());
      use.size = entry.Number();
      const uint64_t begin_ns = entry.Number();
      const uint64_t end_ns = entry.Number();
      const build::PathFacts& facts = facts_.Of(use.path);
      path_.clear();
      paths_.AppendText(use.path, &path_);
      text += first ? "{\"p\":" : ",{\"p\":";
      first = false;
      AppendNfsdbText(path_, &text);
      text += ",\"b\":" + std::to_string(begin_ns) +
              ",\"e\":" + std::to_string(end_ns) +
              ",\"m\":" + std::to_string(ModeOf(use, facts)) + ",\"s\":" +
              std::to_string(facts.size != 0 ? facts.size : use.size) + "}";
      if (text.size() > kFlushBytes) {
        out_.Append(text);
        text.clear();
      }
    }
    text += "],\"i\":[";
    if (const auto readers = readers_.find(id); readers != readers_.end()) {
      for (size_t i = 0; i < readers->second.size(); ++i) {
        if (i != 0) text += ',';
        text += readers->second[i];
      }
    }
    out_.Append(text + "]}");
  }

  void AddMount(std::string_view source, std::string_view target) {
    if (target.empty()) return;
    mounts_ += mounts_.empty() ? "[\n" : ",\n";
    mounts_ += "{\"p\":-1,\"x\":-1,\"t\":";
    AppendNfsdbText(target, &mounts_);
    mounts_ += ",\"s\":";
    AppendNfsdbText(source, &mounts_);
    mounts_ += ",\"y\":\"fuse.tracefs\",\"f\":0,\"m\":1}";
  }

  void WriteSides() {
    if (!status_.ok()) return;
    if (!options_.environment.empty()) {
      std::string text = "{";
      for (const auto& [variable, pids] : environment_) {
        text += text.size() == 1 ? "\n" : ",\n";
        AppendNfsdbText(variable, &text);
        text += ":[";
        for (size_t i = 0; i < pids.size(); ++i) {
          if (i != 0) text += ',';
          text += std::to_string(pids[i]);
        }
        text += ']';
      }
      Keep(ReplaceFile(options_.environment, text + "\n}\n"));
    }
    if (!options_.mounts.empty()) {
      Keep(ReplaceFile(options_.mounts,
                       mounts_.empty() ? "[]\n" : mounts_ + "\n]\n"));
    }
    if (!options_.stats.empty()) {
      std::string text = "{";
      uint64_t all = 0;
      for (const auto& [reason, count] : losses_) {
        AppendNfsdbText(reason, &text);
        text += ":" + std::to_string(count) + ",";
        all += count;
      }
      text += "\"dropped\":" + std::to_string(all) +
              ",\"without_caller\":" + std::to_string(left_out_) + "}\n";
      Keep(ReplaceFile(options_.stats, text));
    }
  }

  static constexpr size_t kFlushBytes = size_t{1} << 18;

  OutputBuffer& out_;
  const NfsdbOptions options_;
  const std::vector<std::string> command_patterns_;
  build::ProcessTracker tracker_;
  build::RecordSteps steps_;
  PathTable paths_;
  build::StepPathFinder step_paths_{paths_};
  build::FactsTable facts_{paths_};
  build::UseCollector collector_;
  build::PipeMatcher pipes_;
  EntrySpool root_;  // the entry that CAS's library expects before all others
  EntrySpool entries_;
  std::vector<Known> known_;  // by process
  std::unordered_map<ExecutionId, Running> running_;
  std::unordered_map<ExecutionId, std::vector<std::string>> readers_;
  std::map<std::string, std::vector<uint32_t>> environment_;
  std::map<std::string, uint64_t> losses_;
  std::string mounts_;
  std::string path_;  // of one entry, kept for its memory
  uint64_t first_ns_ = 0;
  uint64_t left_out_ = 0;
  bool first_entry_ = true;
  Status status_;
};

// Says why there will be no export.
class RefusingExporter final : public Exporter {
 public:
  explicit RefusingExporter(Status status) : status_(std::move(status)) {}
  void Write(const format::Record&) override {}
  Status status() const override { return status_; }

 private:
  const Status status_;
};

}  // namespace

std::unique_ptr<Exporter> MakeNfsdbJson(OutputBuffer& out,
                                        const NfsdbOptions& options) {
  return std::make_unique<NfsdbJsonExporter>(out, options);
}

std::unique_ptr<Exporter> MakeNfsdbJsonExporter(OutputBuffer& out,
                                                const ExportOptions& options) {
  NfsdbOptions chosen;
  chosen.post = options.Choice("post") != "no";
  chosen.environment = options.Choice("env");
  chosen.mounts = options.Choice("mounts");
  chosen.stats = options.Choice("stats");
  if (const auto config = options.Choice("config"); !config.empty()) {
    auto loaded = build::LoadBuildConfig(std::string(config));
    if (!loaded.ok())
      return std::make_unique<RefusingExporter>(loaded.status());
    chosen.config = *std::move(loaded);
  }
  return MakeNfsdbJson(out, chosen);
}

}  // namespace tracefs
