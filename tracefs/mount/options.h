// The command line of tracefs-mount, checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/choice.h"
#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/thread_policy.h"
#include "tracefs/fs/file_system.h"

namespace tracefs {

enum class KernelTransport { kAuto, kUring, kDev };

// Words of options that tracefs-run has, too.
inline constexpr Choice<Visibility> kVisibilities[] = {
    {"exact", Visibility::kExact},
    {"auto", Visibility::kAuto},
    {"fast", Visibility::kFast}};
inline constexpr Choice<KernelTransport> kTransports[] = {
    {"auto", KernelTransport::kAuto},
    {"uring", KernelTransport::kUring},
    {"dev", KernelTransport::kDev}};
// Whether all that passing operations through does not need is given up; with
// "strict" file handles, too.
inline constexpr char kSandboxWords[] = "on strict off";

struct MountOptions {
  enum class Command { kMount, kCheck, kDoctor, kReload };

  std::vector<std::string> words;  // the command line itself
  HelpWish help = {};
  bool version = false;
  Command command = Command::kMount;
  std::string source;  // of kMount and, if wanted, kDoctor
  std::string mount_point;
  std::string config;  // of kMount, kCheck and, if wanted, kReload
  // Signed configs (tracefs/signed); empty: none. All paths are absolute.
  std::string config_dir;
  std::vector<std::string> config_keys;
  std::string config_state;
  // What `config` holds, where that was read already, or of tracefs-run.
  std::string config_text;
  // The trace of a mount without a config (default_trace.h).
  std::string trace;
  bool records_all = false;  // there is no config
  std::string rules;         // a file of rules, with records_all
  // Mounts below the source are visible, too.
  bool mounts_below = false;
  // More variables of the environment that headers have, besides the usual.
  std::vector<std::string> variables;
  // Where users find the mount, if that is not the mount point.
  std::string shown_at;
  bool dot = false;  // kCheck: Graphviz
  bool fix = false;  // kDoctor: change what can be changed
  bool foreground = false;
  Visibility visibility = Visibility::kAuto;
  KernelTransport transport = KernelTransport::kAuto;
  std::optional<ThreadPolicy> queue_threads;  // none: measured
  bool sandbox = true;
  bool file_handles = true;  // not with the sandbox `strict`
  LogPlace log;
  bool lasting_handles = false;  // handles of its files can be opened
  bool survive = false;          // its daemon may be killed (tracefs/survive)
  std::string metrics;           // address of --metrics; empty: not served
  std::string metrics_group;
  bool metrics_names = false;
  std::vector<std::string> fuse_options;  // of -o, split at commas
};

// kInvalid with a message that says what to do.
Result<MountOptions> ParseOptions(int argc, const char* const* argv);
// The text of --help.
HelpPage MountHelp();

// Whether metrics are served at a Unix socket, which has an owner.
bool MetricsAtSocket(const MountOptions& options);

const char* VisibilityName(Visibility visibility);
// What that visibility hides from every tracer, for headers and `explain`.
const char* InvisibleText(Visibility visibility);

}  // namespace tracefs
