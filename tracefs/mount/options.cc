#include "tracefs/mount/options.h"

#include <filesystem>

#include "tracefs/command/command_line.h"
#include "tracefs/signed/config_folder.h"

namespace tracefs {
namespace {

constexpr char kSeeMountHelp[] = " (see tracefs-mount --help)";

constexpr Choice<std::optional<ThreadPolicy>> kThreadPolicies[] = {
    {"auto", std::nullopt},
    {"normal", ThreadPolicy::kNormal},
    {"nice", ThreadPolicy::kNice},
    {"idle", ThreadPolicy::kIdle}};
constexpr Choice<bool> kYesOrNo[] = {{"yes", true}, {"no", false}};

CommandOptions VisibleMountOptions() {
  return {
      {"config", "FILE",
       "what to trace and where to write it (config/REFERENCE.md)"},
      {"config-dir", "DIR",
       "instead of --config: the newest signed config in DIR that is for this "
       "host, now and whenever it changes; what is unsigned, forged, expired "
       "or older than the last one is refused"},
      {"config-key", "FILE",
       "with --config-dir: who may sign, PUBLIC of tracefs-keygen sign; may be "
       "given several times",
       /*repeated=*/true},
      {"config-state", "FILE",
       "with --config-dir: where it is remembered which one was taken last; "
       "default below /var/lib/tracefs"},
      {"rules", "FILE",
       "without a config: rules that watch for attacks, as those of "
       "config/samples/rules/; tracefs-ctl MNT rules tells of alarms"},
      {"foreground", "", "stay attached to the terminal"},
      {.name = "visibility",
       .value = "MODE",
       .help =
           "exact: the kernel caches nothing, every request is seen; auto: it "
           "caches what no tracer asks for, and traced metadata for at most 10 "
           "ms; "
           "fast: it caches all it can",
       .fallback = "auto",
       .words = WordsOf(kVisibilities)},
      {.name = "transport",
       .value = "HOW",
       .help = "auto, uring (FUSE over io_uring) or dev (/dev/fuse)",
       .fallback = "auto",
       .words = WordsOf(kTransports)},
      {.name = "queue-threads",
       .value = "HOW",
       .help = "how threads that serve io_uring stand beside other processes: "
               "normal, "
               "nice (-10) or idle (SCHED_IDLE, in a session of the highest "
               "priority); "
               "auto: what answers fastest, as measured",
       .fallback = "auto",
       .words = WordsOf(kThreadPolicies)},
      {.name = "sandbox",
       .value = "HOW",
       .help = "on: give up all that passing operations through does not need; "
               "strict: "
               "file handles, too; off: for debugging",
       .fallback = "on",
       .words = kSandboxWords},
      {.name = "survive",
       .value = "HOW",
       .help = "yes: the mount outlives its daemon, which may be killed at any "
               "moment: "
               "another takes its place, and no caller notices; needs root and "
               "--transport dev",
       .fallback = "no",
       .words = WordsOf(kYesOrNo)},
      {.name = "handles",
       .value = "HOW",
       .help = "yes: file handles of the mount can be opened, also by later "
               "mounts, as servers of NFS need it; root alone",
       .fallback = "no",
       .words = WordsOf(kYesOrNo)},
      {.name = "log",
       .value = "WHERE",
       .help =
           "where messages of the running mount go: journal, syslog (either "
           "with "
           ":SOCKET), stderr, none; auto: stderr with --foreground, else the "
           "journal or syslog",
       .fallback = "auto",
       .words = "auto journal syslog stderr none",
       .open = true},
      {"metrics", "ADDRESS",
       "serve OpenMetrics text at unix:PATH or HOST:PORT, /metrics"},
      {"metrics-group", "GROUP",
       "who else may use the socket of --metrics unix:PATH"},
      {"metrics-names", "",
       "names of files in what --metrics serves at HOST:PORT, too"},
      {",o", "OPT,…", "mount options, as of mount(8) and fuse(8)",
       /*repeated=*/true},
      {"check", "FILE",
       "judge a config as a mount would, print the compiled filters and exit"},
      {"dot", "", "with --check: print them for Graphviz"},
      {"reload", "MNT",
       "reload the config of a running mount without unmounting, from "
       "--config FILE or its own: tracefs-ctl MNT reload"},
      {"doctor", "",
       "say what this machine offers and what to change; SRC may be named"},
      {"fix", "",
       "with --doctor, as root: change it, now and for the next boot"},
      {"version", "", "print versions and features"},
      HelpOption()};
}

// A mount that survives is served by /dev/fuse, from which a later daemon can
// get what the dead one had taken.
Status CheckSurvive(MountOptions* options) {
  if (!options->survive) return Status::Ok();
  if (options->transport == KernelTransport::kUring) {
    return Status::Invalid(
        "--survive yes: a request that is handed over by io_uring is lost with "
        "the daemon; leave --transport away or choose dev");
  }
  if (!options->file_handles) {
    return Status::Invalid(
        "--survive yes: --sandbox strict takes the handles away by which a "
        "later daemon finds files again");
  }
  options->transport = KernelTransport::kDev;
  return Status::Ok();
}

// For a process with another working directory.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

Status ReadConfigPlaces(const CommandLine& given, MountOptions* options) {
  if (!given.Has("config-dir")) {
    for (const char* const option : {"config-key", "config-state"}) {
      if (given.Has(option)) {
        return Status::Invalid("--" + std::string(option) +
                               " goes with --config-dir");
      }
    }
    return Status::Ok();
  }
  if (given.Has("config")) {
    return Status::Invalid("--config and --config-dir exclude each other");
  }
  if (!given.Has("config-key")) {
    return Status::Invalid("--config-dir needs --config-key PUBLIC");
  }
  options->config_dir = Absolute(given.Text("config-dir"));
  for (const std::string& key : given.Texts("config-key")) {
    if (key.starts_with("env:") || key.starts_with("keyring:")) {
      return Status::Invalid("--config-key takes a file");
    }
    options->config_keys.push_back(
        Absolute(key.starts_with("file:") ? key.substr(5) : key));
  }
  options->config_state = given.Has("config-state")
                              ? Absolute(given.Text("config-state"))
                              : DefaultTakenFile(options->config_dir);
  return Status::Ok();
}

}  // namespace

HelpPage MountHelp() {
  return {
      .command = "tracefs-mount",
      .begin =
          "Usage: tracefs-mount SRC [MNT] [--config FILE] [options]\n"
          "       tracefs-mount SRC MNT --config-dir DIR --config-key FILE "
          "[options]\n"
          "       tracefs-mount --check FILE [--dot]\n"
          "       tracefs-mount --reload MNT [--config FILE]\n"
          "       tracefs-mount --doctor [--fix] [SRC]\n\n"
          "Mounts the directory SRC at MNT and traces what happens there. SRC "
          "and MNT may\nbe the same directory, and are without MNT. Without a "
          "config, all but locks is\nrecorded: to a dated trace below "
          "/var/lib/tracefs, or ~/.local/state/tracefs, of\n1 GiB at most. "
          "Returns once mounted; `umount MNT` ends the traces.\n",
      .rows = VisibleMountOptions(),
      .common =
          "config visibility rules check reload doctor metrics survive "
          "handles foreground help",
      .examples = {"tracefs-mount /data", "tracefs-ctl /data unmount",
                   "tracefs-mount /data /data --config "
                   "config/samples/full.conf"},
      .end =
          "Exit status: 0 done, 2 wrong usage or config, 3 the system "
          "refused.\n"};
}

Result<MountOptions> ParseOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line = CommandLine::Parse(
      argc, argv, VisibleMountOptions(), "where", kSeeMountHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;

  MountOptions options;
  options.words.assign(argv, argv + argc);
  if (given.AsksOnly(&options)) return options;
  options.dot = given.Has("dot");
  options.foreground = given.Has("foreground");
  given.Take("visibility", kVisibilities, &options.visibility);
  given.Take("transport", kTransports, &options.transport);
  given.Take("queue-threads", kThreadPolicies, &options.queue_threads);
  given.Take("survive", kYesOrNo, &options.survive);
  Result<LogPlace> log = ParseLogPlace(given.Text("log"));
  if (!log.ok()) return log.status();
  options.log = *std::move(log);
  options.sandbox = given.Text("sandbox") != "off";
  options.file_handles = given.Text("sandbox") != "strict";
  given.Take("handles", kYesOrNo, &options.lasting_handles);
  if (Status s = CheckSurvive(&options); !s.ok()) return s;
  if (options.lasting_handles && (options.survive || !options.file_handles)) {
    return Status::Invalid(
        "--handles yes goes with neither --survive yes nor --sandbox strict");
  }
  options.metrics = given.Text("metrics");
  options.metrics_names = given.Has("metrics-names");
  if (options.metrics_names && options.metrics.empty()) {
    return Status::Invalid("--metrics-names goes with --metrics");
  }
  options.metrics_group = given.Text("metrics-group");
  if (given.Has("metrics-group") && !MetricsAtSocket(options)) {
    return Status::Invalid("--metrics-group goes with --metrics unix:PATH");
  }
  const std::vector<std::string> where = given.Texts("where");
  options.fuse_options = SplitAtCommas(given.Texts("-o"));
  for (const std::string& word : options.fuse_options) {
    if (word != "sync" && word != "dirsync") continue;
    return Status::Invalid("-o " + word +
                           ": what waits for the disk is up to the file system "
                           "below; mount that one with " +
                           word);
  }
  if (given.Has("check")) {
    if (!where.empty() || given.Has("config") || given.Has("config-dir")) {
      return Status::Invalid("--check takes one config file and nothing else");
    }
    options.command = MountOptions::Command::kCheck;
    options.config = given.Text("check");
    return options;
  }
  if (options.dot) return Status::Invalid("--dot goes with --check");
  if (given.Has("reload")) {
    if (!where.empty() || given.Has("doctor")) {
      return Status::Invalid(
          "--reload takes one mount point, and --config FILE at most");
    }
    options.command = MountOptions::Command::kReload;
    options.mount_point = given.Text("reload");
    options.config = given.Text("config");
    return options;
  }
  options.fix = given.Has("fix");
  if (given.Has("doctor")) {
    if (where.size() > 1 || given.Has("config") || given.Has("config-dir")) {
      return Status::Invalid("--doctor takes one directory at most");
    }
    options.command = MountOptions::Command::kDoctor;
    if (!where.empty()) options.source = where[0];
    return options;
  }
  if (options.fix) return Status::Invalid("--fix goes with --doctor");
  if (where.empty() || where.size() > 2) {
    return Status::Invalid("a directory SRC is needed, and MNT at most" +
                           std::string(kSeeMountHelp));
  }
  if (Status s = ReadConfigPlaces(given, &options); !s.ok()) return s;
  if (options.survive && !options.config_dir.empty()) {
    return Status::Invalid(
        "--survive yes goes with --config: a later daemon would not know which "
        "config of --config-dir was taken last");
  }
  options.config = given.Text("config");
  options.source = where[0];
  options.mount_point = where.back();
  if (given.Has("config") || !options.config_dir.empty()) {
    if (!given.Has("rules")) return options;
    return Status::Invalid(
        "--rules is for mounts without a config: a config has rules of its "
        "own");
  }
  options.records_all = true;
  options.rules = given.Text("rules");
  if (options.survive) {
    return Status::Invalid(
        "--survive yes goes with --config: a later daemon could not name its "
        "trace");
  }
  return options;
}

bool MetricsAtSocket(const MountOptions& options) {
  return options.metrics.starts_with("unix:");
}

const char* VisibilityName(Visibility visibility) {
  for (const Choice<Visibility>& choice : kVisibilities) {
    if (choice.value == visibility) return choice.word.data();
  }
  return "";
}

const char* InvisibleText(Visibility visibility) {
  // Reference: what is never reported to a FUSE file system.
#define TRACEFS_NAMES                                                         \
  "which of a file's names (hard links) was used, for as long as the kernel " \
  "keeps a name from before there was a second; "
#define TRACEFS_NEVER                                                          \
  "lseek but for holes and data, dup, fcntl(F_SETFL), mmap, munmap, loads "    \
  "and stores of mapped pages that are there, chdir, syncfs, inotify, I/O on " \
  "FIFOs, sockets and devices; locks unless a "                                \
  "filter names getlk, setlk or flock"
  switch (visibility) {
    case Visibility::kExact:
      return TRACEFS_NEVER;
    case Visibility::kAuto:
      return "repeated lookups and getattrs of one name within 10 ms; reads "
             "and writes, mapped ones too, of files that were opened when no "
             "tracer could record them; " TRACEFS_NAMES TRACEFS_NEVER;
    case Visibility::kFast:
      return "lookups, getattrs, readdirs and readlinks that the kernel "
             "answers from its caches; reads and writes, mapped ones too, of "
             "files that were opened when no tracer could record "
             "them; " TRACEFS_NAMES TRACEFS_NEVER;
  }
#undef TRACEFS_NAMES
#undef TRACEFS_NEVER
  return "";
}

}  // namespace tracefs
