#include "tracefs/tools/deps/options.h"

#include <algorithm>
#include <utility>

#include "tracefs/build/build_config.h"
#include "tracefs/command/command_line.h"

namespace tracefs {
namespace {

using Strings = std::vector<std::string>;

constexpr char kSeeHelp[] = " (see tracefs-deps --help)";

using Closure = build::DependencyOptions::Closure;
constexpr Choice<Closure> kClosures[] = {{"flow", Closure::kFlow},
                                         {"both", Closure::kBoth},
                                         {"tree", Closure::kTree}};

CommandOptions VisibleOptions() {
  CommandOptions options = {
      {"trace,t", "TRACE",
       "the trace of a build: a file, or a folder; may be given several times",
       /*repeated=*/true},
      {"reverse", "",
       "what was made from TARGET, instead of what it was made from"},
      {"direct", "", "one step, or with --module up to these; else on and on"},
      {"no-pipes", "", "do not follow what went through pipes"},
      {.name = "closure",
       .value = "WHICH",
       .help = "flow: only who wrote and read what; both (default): a writer "
               "that read nothing counts as the nearest ancestor whose "
               "processes did; tree: a writer counts as its whole job",
       .words = WordsOf(kClosures)},
      {"wrap-shells", "",
       "a writer counts as the shell that ran it, with all that it ran"},
      {"exclude", "PATTERN",
       "files that are found but lead no further; may be given several times",
       /*repeated=*/true},
      {"exclude-command", "PATTERN",
       "processes whose command line matches lead nowhere", /*repeated=*/true},
      {.name = "negate",
       .help = "patterns exclude what they do not match",
       .needs = "exclude exclude-command config"},
      {.name = "module",
       .value = "PATTERN",
       .help = "with --direct: files that are not gone through",
       .repeated = true,
       .needs = "direct"},
      {"job-maker", "PATTERN",
       "programs whose children are jobs, besides make and ninja",
       /*repeated=*/true},
      {"config", "FILE", "patterns as CAS has them in .bas_config: JSON"},
      {"sources", "", "only files that no process was seen to write"},
      {.name = "format",
       .value = "NAME",
       .help = "list (default), json, dot (Graphviz), depfile (make's .d), "
               "dyndep (Ninja's)",
       .words = "list json dot depfile dyndep"},
      {"compile-commands", "", "print compile_commands.json of the build"},
      {"sets", "",
       "what each command read, wrote and asked for; TARGETs are then pids or "
       "words of commands"},
      {"check-ninja", "FILE",
       "compare with what ninja -t deps, query or graph printed"},
      {"check-make", "FILE", "compare with what make -pn printed"},
      {"build-dir", "DIR",
       "where relative names of these and of TARGETs begin; default: the "
       "working directory, then the mount point"},
      {"double-writes", "", "files that more than one process wrote"},
      {"races", "", "reads that race with writes of another process"},
      {"absent", "", "names that were looked for and are never there"},
      {"unused", "",
       "files that were made and never read; TARGETs are wanted anyway"},
      {"rebuilt", "OLD",
       "why was TARGET made again? OLD is the trace of the build before"},
      {.name = "all",
       .help = "--double-writes: also of a process and its descendants",
       .needs = "double-writes"},
      {"no-index", "",
       "read the trace, even if it has an index that answers the same"},
      {"index", "", "put an index into TRACE, which is replaced as a whole"},
      {"check-index", "",
       "make the trace's index once more, and compare it with the one it has"},
      {"mount-point", "DIR",
       "where the paths of the trace begin, if not where it was mounted"},
      KeyOption(),
      HelpOption(),
      VersionOption()};
  AddPagerOptions(&options);
  return options;
}

struct QuestionName {
  const char* name;
  DepsQuestion question;
};
constexpr QuestionName kQuestions[] = {
    {"reverse", DepsQuestion::kReverse},
    {"sets", DepsQuestion::kSets},
    {"compile-commands", DepsQuestion::kCompileCommands},
    {"check-ninja", DepsQuestion::kCheckNinja},
    {"check-make", DepsQuestion::kCheckMake},
    {"double-writes", DepsQuestion::kDoubleWrites},
    {"races", DepsQuestion::kRaces},
    {"absent", DepsQuestion::kAbsent},
    {"unused", DepsQuestion::kUnused},
    {"rebuilt", DepsQuestion::kRebuilt},
    {"index", DepsQuestion::kIndex},
    {"check-index", DepsQuestion::kCheckIndex},
};

Status ReadQuestion(const CommandLine& given, DepsOptions* result) {
  std::string asked;
  for (const QuestionName& question : kQuestions) {
    if (!given.Has(question.name)) continue;
    if (!asked.empty()) {
      return Status::Invalid("--" + asked + " and --" + question.name +
                             " are two questions: ask one after the other");
    }
    asked = question.name;
    result->question = question.question;
  }
  const DepsQuestion q = result->question;
  const bool needs = q == DepsQuestion::kDependencies ||
                     q == DepsQuestion::kReverse || q == DepsQuestion::kRebuilt;
  if (needs && result->targets.empty()) {
    return Status::Invalid("no TARGET given" + std::string(kSeeHelp));
  }
  result->declared = given.Text("check-ninja") + given.Text("check-make");
  result->before = given.Text("rebuilt");
  result->everything = given.Has("all");
  return {};
}

Status ReadFormat(const CommandLine& given, DepsOptions* result) {
  if (given.Has("format")) result->format = given.Text("format");
  const std::string& format = result->format;
  const DepsQuestion q = result->question;
  const bool graph =
      q == DepsQuestion::kDependencies || q == DepsQuestion::kReverse;
  const bool of_files = format == "depfile" || format == "dyndep";
  if (of_files && q != DepsQuestion::kDependencies) {
    return Status::Invalid("--format " + format +
                           " is for dependencies of TARGETs");
  }
  if (format == "dot" && !graph) {
    return Status::Invalid("--format dot is for dependencies");
  }
  if (q == DepsQuestion::kCompileCommands && given.Has("format") &&
      format != "json") {
    return Status::Invalid("--compile-commands is always JSON");
  }
  return {};
}

void Append(const Strings& more, Strings* all) {
  all->insert(all->end(), more.begin(), more.end());
}

Status ReadConfig(const CommandLine& given, build::BuildConfig* read,
                  build::DependencyOptions* options) {
  build::BuildConfig& config = *read;
  if (given.Has("config")) {
    auto loaded = build::LoadBuildConfig(given.Text("config"));
    if (!loaded.ok()) return loaded.status().Prefixed("--config");
    config = *std::move(loaded);
    options->programs = config;
    options->wrappers = config.rbm_wrapping_binaries;
    options->exclude_files = config.dependency_exclude_patterns;
  }
  for (const auto& [module, patterns] :
       config.additional_module_exclude_pattern_variants) {
    build::ModuleRule rule;
    rule.targets = module;
    rule.exclude_files = patterns;
    options->rules.push_back(std::move(rule));
  }
  for (const auto& [module, patterns] : config.exclude_command_variants) {
    build::ModuleRule rule;
    rule.targets = module;
    rule.exclude_commands = patterns;
    options->rules.push_back(std::move(rule));
  }
  for (const auto& [patterns, pipes] :
       {std::pair{&config.module_dependencies_with_pipes, true},
        std::pair{&config.module_dependencies_exclude_with_pipes, false}}) {
    for (const std::string& module : *patterns) {
      build::ModuleRule rule;
      rule.targets = module;
      rule.pipes = pipes;
      options->rules.push_back(std::move(rule));
    }
  }
  return {};
}

Status ReadDependencies(const CommandLine& given, DepsOptions* result) {
  build::DependencyOptions& options = result->dependencies;
  if (Status s = ReadConfig(given, &result->config, &options); !s.ok())
    return s;
  options.direct = given.Has("direct");
  options.pipes = !given.Has("no-pipes");
  options.wrap = given.Has("wrap-shells");
  options.negate = given.Has("negate");
  Append(given.Texts("exclude"), &options.exclude_files);
  Append(given.Texts("exclude-command"), &options.exclude_commands);
  options.modules = given.Texts("module");
  Append(given.Texts("job-maker"), &options.job_makers);
  given.Take("closure", kClosures, &options.closure);
  const bool patterns =
      !options.exclude_files.empty() || !options.exclude_commands.empty();
  if (options.negate && !patterns) {
    return Status::Invalid("--negate needs --exclude or --exclude-command");
  }
  return {};
}

}  // namespace

HelpPage DepsHelp() {
  return {
      .command = "tracefs-deps",
      .begin =
          "Usage: tracefs-deps [OPTION]... --trace TRACE TARGET...\n"
          "Say what a file was made from, and what is made from it. TARGET "
          "is a path, or its\nend.\n",
      .rows = VisibleOptions(),
      .common =
          "trace reverse sources exclude format races double-writes "
          "rebuilt key help",
      .details =
          "\nPatterns are those of fnmatch(3); * matches / too. Commands "
          "are their arguments\nwith blanks between.\n",
      .examples = {"tracefs-deps prog --trace build.trace",
                   "tracefs-deps --reverse config.h --trace build.trace",
                   "tracefs-deps --races --trace build.trace",
                   "tracefs-deps --sources --exclude '/usr/*' prog --trace "
                   "build.trace",
                   "tracefs-deps --format dot prog --trace build.trace > "
                   "prog.dot",
                   "tracefs-deps --rebuilt old.trace prog --trace new.trace"},
      .end =
          "Exit status: 0 answered; 1 a TARGET is not in the trace, a check "
          "found something,\nor the trace is damaged; 2 wrong usage; 3 the "
          "system refused.\n"};
}

Result<DepsOptions> ParseDepsOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "target", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  DepsOptions result;
  if (given.AsksOnly(&result)) return result;
  result.targets = given.Texts("target");
  result.traces = given.Texts("trace");
  result.keys = given.Texts("key");
  result.pager = ReadPagerOptions(given);
  result.build_folder = given.Text("build-dir");
  result.has_mount_point = given.Has("mount-point");
  result.mount_point = given.Text("mount-point");
  result.no_index = given.Has("no-index");
  result.sources = given.Has("sources");
  if (result.traces.empty()) {
    return Status::Invalid("no --trace given" + std::string(kSeeHelp));
  }
  if (Status s = ReadQuestion(given, &result); !s.ok()) return s;
  if (Status s = ReadFormat(given, &result); !s.ok()) return s;
  if (Status s = ReadDependencies(given, &result); !s.ok()) return s;
  return result;
}

}  // namespace tracefs
