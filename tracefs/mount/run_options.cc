#include "tracefs/mount/run_options.h"

#include <algorithm>
#include <string_view>

#include "tracefs/command/command_line.h"

namespace tracefs {
namespace {

constexpr char kSeeRunHelp[] = " (see tracefs-run --help)";

// They trace others themselves.
constexpr std::string_view kTracers[] = {
    "strace", "ltrace",      "gdb",    "gdbserver", "lldb", "lldb-server",
    "rr",     "tracefs-run", "reptyr", "criu",      "proot"};

// Of --embed: the files that tools name so.
constexpr std::string_view kUsual = "usual";
// What builds go by. No others: they may be secrets.
constexpr std::string_view kBuildVariables[] = {"AR",
                                                "ARCH",
                                                "CC",
                                                "CFLAGS",
                                                "CMAKE_BUILD_TYPE",
                                                "CPP",
                                                "CPPFLAGS",
                                                "CPATH",
                                                "CROSS_COMPILE",
                                                "CXX",
                                                "CXXFLAGS",
                                                "DESTDIR",
                                                "LD",
                                                "LDFLAGS",
                                                "LIBRARY_PATH",
                                                "MAKE",
                                                "MAKEFLAGS",
                                                "PKG_CONFIG_PATH",
                                                "SOURCE_DATE_EPOCH"};

constexpr Choice<bool> kProcesses[] = {{"ptrace", true}, {"off", false}};

CommandOptions VisibleRunOptions() {
  return {{"output,o", "TRACE",
           "the trace, a new file; default a dated one in "
           "/var/lib/tracefs/traces, or in ~/.local/state/tracefs/traces"},
          {"force", "", "with -o: replace the trace that is there"},
          {"filter", "EXPR",
           "which operations to record (filters/input/LANGUAGE.md)"},
          {"config", "FILE",
           "tracers as of tracefs-mount, instead of -o and --filter"},
          {"src", "DIR",
           "the directory that is traced, with all below it; default this one"},
          {"root", "",
           "the whole root file system, but /proc, /sys, /dev and /run"},
          {"env", "", "record the environment of each program, too"},
          {.name = "embed",
           .value = "PATTERN,…",
           .help = "keep in the trace what files hold that the command read, "
                   "as far as PATTERNs match their names; without, files that "
                   "say how a project is built (Makefile, *.cmake, …). Makes "
                   "an index, too",
           .implied = "usual"},
          {.name = "embed-file-max",
           .value = "SIZE",
           .help = "leave out larger files",
           .fallback = "1M",
           .needs = "embed"},
          {.name = "embed-max",
           .value = "SIZE",
           .help = "leave out what goes beyond that in all",
           .fallback = "32M",
           .needs = "embed"},
          {"embed-env", "NAME,…",
           "keep these variables of the environment in the trace's header",
           /*repeated=*/true},
          {"index", "",
           "put into the trace what tracefs-deps answers from, so that it "
           "need not read the trace"},
          {.name = "key",
           .value = "FILE",
           .help = "keys to read an encrypted trace with, for --embed and "
                   "--index",
           .repeated = true,
           .needs = "embed index"},
          {.name = "processes",
           .value = "HOW",
           .help = "how processes are followed: ptrace or off",
           .fallback = "ptrace",
           .words = WordsOf(kProcesses)},
          {"let-go", "NAME,…",
           "programs that trace others themselves, and are not followed: these "
           "besides strace, gdb and the like",
           /*repeated=*/true},
          {"follow-daemons", "",
           "wait for all processes that the command leaves behind"},
          {.name = "visibility",
           .value = "MODE",
           .help = "exact, auto or fast, as of tracefs-mount",
           .fallback = "auto",
           .words = WordsOf(kVisibilities)},
          {.name = "transport",
           .value = "HOW",
           .help = "auto, uring or dev, as of tracefs-mount",
           .fallback = "auto",
           .words = WordsOf(kTransports)},
          {.name = "sandbox",
           .value = "HOW",
           .help = "on, strict or off, as of tracefs-mount",
           .fallback = "on",
           .words = kSandboxWords},
          {"quiet,q", "", "no summary"},
          {"verbose,v", "", "show what the mount says when it begins"},
          {"version", "", "print versions and features"},
          HelpOption()};
}

// Where the command begins: after --, or at the first word that is neither an
// option nor an option's value.
int BeginOfCommand(int argc, const char* const* argv) {
  const CommandOptions known = VisibleRunOptions();
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return i + 1;
    if (!word.starts_with('-') || word == "-") return i;
    if (word == "-o") ++i;
    if (!word.starts_with("--") || word.find('=') != word.npos) continue;
    const auto option = std::ranges::find_if(known, [&](const auto& row) {
      return row.long_name() == word.substr(2);
    });
    if (option != known.end() && !option->value.empty() &&
        option->implied.empty()) {
      ++i;
    }
  }
  return argc;
}

Status ReadAdditions(const CommandLine& given, RunOptions* options) {
  AdditionOptions& additions = options->additions;
  EmbedOptions& embed = additions.embed;
  if (given.Has("embed")) {
    for (std::string& pattern : SplitAtCommas(given.Texts("embed"))) {
      if (pattern == kUsual) {
        embed.patterns.insert(embed.patterns.end(), UsualBuildFiles().begin(),
                              UsualBuildFiles().end());
      } else {
        embed.patterns.push_back(std::move(pattern));
      }
    }
    if (embed.patterns.empty()) {
      return Status::Invalid("--embed=: name a pattern, or give it alone");
    }
  }
  if (Status s = given.TakeSize("embed-file-max", 1, EmbedOptions::kMostFile,
                                &embed.max_file);
      !s.ok()) {
    return s;
  }
  if (Status s = given.TakeSize("embed-max", 1, EmbedOptions::kMostTotal,
                                &embed.max_total);
      !s.ok()) {
    return s;
  }
  additions.index = given.Has("index") || given.Has("embed");
  additions.keys = given.Texts("key");
  options->variables = SplitAtCommas(given.Texts("embed-env"));
  if (given.Has("embed")) {
    options->variables.insert(options->variables.end(),
                              std::begin(kBuildVariables),
                              std::end(kBuildVariables));
  }
  return {};
}

}  // namespace

HelpPage RunHelp() {
  return {
      .command = "tracefs-run",
      .begin =
          "Usage: tracefs-run [options] [--] COMMAND [ARGUMENT…]\n\n"
          "Runs COMMAND with this directory, or another one, under "
          "Tracefs, and records its\noperations on files and its "
          "processes. Only the command sees the mount, which\nis gone when "
          "it ends; the trace is complete then.\n",
      .rows = VisibleRunOptions(),
      .common =
          "output force filter config src root env embed processes "
          "visibility quiet version help",
      .examples = {"tracefs-run -o build.trace -- make -j4",
                   "tracefs-dump build.trace"},
      .end =
          "Exit status: that of COMMAND, 128+n if signal n ended it; 127 if "
          "there is no such\ncommand, 126 if it cannot be run; 2 wrong "
          "usage, 3 the system refused.\n"};
}

Result<RunOptions> ParseRunOptions(int argc, const char* const* argv) {
  const int begin = BeginOfCommand(argc, argv);
  int own = begin;
  if (own > 1 && std::string_view(argv[own - 1]) == "--") --own;
  const Result<CommandLine> line =
      CommandLine::Parse(own, argv, VisibleRunOptions(), "", kSeeRunHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;

  RunOptions options;
  if (given.AsksOnly(&options)) return options;
  options.command.assign(argv + begin, argv + argc);
  if (options.command.empty()) {
    return Status::Invalid("a command to run is needed" +
                           std::string(kSeeRunHelp));
  }
  options.output = given.Text("output");
  options.force = given.Has("force");
  if (options.force && options.output.empty()) {
    return Status::Invalid("--force goes with -o TRACE");
  }
  options.filter = given.Text("filter");
  options.config = given.Text("config");
  if (!options.config.empty() &&
      (given.Has("output") || given.Has("filter") || given.Has("env"))) {
    return Status::Invalid(
        "--config says where traces go and what is in them: it does not go "
        "with -o, --filter or --env");
  }
  options.root = given.Has("root");
  if (options.root && given.Has("src")) {
    return Status::Invalid("--root is the whole tree; it needs no --src");
  }
  options.source = options.root ? "/" : given.Text("src");
  if (options.source.empty()) options.source = ".";
  options.environment = given.Has("env");
  given.Take("processes", kProcesses, &options.processes);
  if (options.environment && !options.processes) {
    return Status::Invalid("--env needs --processes");
  }
  options.let_go.insert(std::begin(kTracers), std::end(kTracers));
  for (std::string& name : SplitAtCommas(given.Texts("let-go"))) {
    options.let_go.insert(std::move(name));
  }
  if (Status s = ReadAdditions(given, &options); !s.ok()) return s;
  options.follow_daemons = given.Has("follow-daemons");
  options.quiet = given.Has("quiet");
  options.verbose = given.Has("verbose");

  options.sandbox = given.Text("sandbox");
  given.Take("visibility", kVisibilities, &options.visibility);
  given.Take("transport", kTransports, &options.transport);
  return options;
}

}  // namespace tracefs
