#include "tracefs/recv/options.h"

#include <algorithm>

#include "tracefs/base/clock.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"
#include "tracefs/export/table.h"
#include "tracefs/format/constants.h"
#include "tracefs/recv/fleet/options.h"
#include "tracefs/recv/live_printer.h"

namespace tracefs {
namespace {

constexpr char kSeeHelp[] = " (see tracefs-recv --help)";

constexpr Choice<bool> kSandboxes[] = {{"on", true}, {"off", false}};

CommandOptions VisibleOptions() {
  return {
      {"listen", "ADDRESS",
       "tcp:HOST:PORT, tls:HOST:PORT, unix:PATH or seqpacket:PATH; an empty "
       "HOST is every address, port 0 any free one; may be given several times",
       /*repeated=*/true},
      {"out", "DIR",
       "keep each trace in a file of this directory, and acknowledge what is "
       "on the disk"},
      {.name = "format",
       .value = "NAME",
       .help = "print operations as they come instead: " + LineFormatNames() +
               ", or (with --from: tables) parquet",
       .words = LineFormatNames() + " parquet"},
      {"ca", "FILE",
       "tls: certificates of the authorities that senders' are from"},
      {"cert", "FILE", "tls: our certificate"},
      {"tls-key", "FILE", "tls: its private key, mode 0600"},
      {"key", "FILE",
       "with --format: keys for encrypted traces; also env:NAME, keyring:NAME, "
       "credential:NAME; may be given several times",
       /*repeated=*/true},
      {"max-clients", "N", "connections; default 1024"},
      {"max-per-peer", "N", "connections from one address or user; default 64"},
      {"max-block", "SIZE", "a block of a trace; default 17M"},
      {"max-memory", "SIZE",
       "with --format: of all senders together; default 512M"},
      {"max-trace", "SIZE", "a trace; default: no limit"},
      {"max-traces", "N", "files in DIR; default 65536"},
      {"keep", "TIME",
       "--out: remove traces that got nothing for this long: 36h, 14d"},
      {"keep-size", "SIZE",
       "--out: if all together are larger, remove the oldest of the sender "
       "that has most"},
      {"keep-sender", "SIZE",
       "--out: remove the oldest of each sender that has more"},
      {"keep-free", "SIZE|N%",
       "--out: the same as --keep-size where the file system has less room"},
      {"systemd", "",
       "listen at the sockets that the service manager hands over, too"},
      {"list", "DIR",
       "list the traces in it, with sender, size and age, and exit"},
      {"user", "NAME",
       "turn into this user once all sockets, keys and DIR are open"},
      {.name = "sandbox",
       .value = "on|off",
       .help = "give up what receiving does not need; default on",
       .words = WordsOf(kSandboxes)},
      {.name = "log",
       .value = "WHERE",
       .help =
           "journal, syslog (either with :SOCKET after it), stderr or none; "
           "default: standard error",
       .words = "journal syslog stderr none",
       .open = true},
      {"metrics", "ADDRESS",
       "serve OpenMetrics text at unix:PATH or HOST:PORT, /metrics, and "
       "whether all is well at /health"},
      {"metrics-group", "GROUP",
       "who else may use the socket of --metrics unix:PATH"},
      {"quiet,q", "", "say nothing of senders that come and go"},
      HelpOption(),
      VersionOption()};
}

// All of them, as they are read.
CommandOptions KnownOptions() {
  CommandOptions all = VisibleOptions();
  const OptionGroup fleet = FleetOptionRows();
  all.insert(all.end(), fleet.rows.begin(), fleet.rows.end());
  return all;
}

Status TakeRetention(const CommandLine& given, RecvOptions* result) {
  RetentionRules& rules = result->retention;
  if (given.Has("keep")) {
    std::string text = given.Text("keep");
    uint64_t unit = 1;
    // Days are no unit of configs, where nothing lasts that long.
    if (!text.empty() && text.back() == 'd') {
      text.back() = 'h';
      unit = 24;
    }
    const std::optional<uint64_t> ns = ParseDuration(text);
    if (!ns || *ns < kNsPerSecond) {
      return Status::Invalid("--keep: " + Quoted(given.Text("keep")) +
                             " is no time from 1s on, such as 36h or 14d");
    }
    rules.max_age_s = *ns / kNsPerSecond * unit;
  }
  constexpr uint64_t kMost = UINT64_MAX;
  for (Status s :
       {given.TakeSize("keep-size", 1, kMost, &rules.max_bytes),
        given.TakeSize("keep-sender", 1, kMost, &rules.max_sender_bytes)}) {
    if (!s.ok()) return s;
  }
  if (std::string text = given.Text("keep-free"); text.ends_with('%')) {
    text.pop_back();
    const std::optional<uint64_t> percent = ParseUnsigned(text);
    if (!percent || *percent == 0 || *percent > 99) {
      return Status::Invalid("--keep-free: give 1% to 99%, or a size");
    }
    rules.min_free_percent = static_cast<unsigned>(*percent);
  } else if (Status s =
                 given.TakeSize("keep-free", 1, kMost, &rules.min_free_bytes);
             !s.ok()) {
    return s;
  }
  if (rules.any() && result->out.empty()) {
    return Status::Invalid("--keep and its like are for --out DIR");
  }
  return Status::Ok();
}

Status TakeLimits(const CommandLine& given, RecvOptions* result) {
  ReceiverLimits& limits = result->limits;
  constexpr uint64_t kMany = 1'000'000;
  constexpr uint64_t kMaxBlock =
      format::kMaxPayloadBytes + format::kFrameHeaderBytes;
  for (Status s :
       {given.Take("max-clients", 1, kMany, &limits.max_clients),
        given.Take("max-per-peer", 1, kMany, &limits.max_clients_per_peer),
        given.TakeSize("max-block", 8192, kMaxBlock, &limits.max_block_bytes),
        given.TakeSize("max-trace", 1, uint64_t{1} << 60,
                       &result->max_trace_bytes),
        given.Take("max-traces", 1, uint64_t{1} << 40, &result->max_traces),
        given.TakeSize("max-memory", 1, uint64_t{1} << 40,
                       &result->max_memory)}) {
    if (!s.ok()) return s;
  }
  if (!given.Has("format") && given.Has("max-memory")) {
    return Status::Invalid("--max-memory is for --format: files take none");
  }
  const uint64_t needed = MinLiveMemory(limits.max_block_bytes);
  if (given.Has("format") && result->max_memory < needed) {
    return Status::Invalid(
        "--max-memory " + std::to_string(result->max_memory) +
        " is too small for blocks of " +
        std::to_string(limits.max_block_bytes) + " bytes: give at least " +
        std::to_string(needed) + ", or a smaller --max-block");
  }
  return Status::Ok();
}

// How it is watched, wherever traces come from.
Status TakeWatching(const CommandLine& given, RecvOptions* result) {
  if (given.Has("log")) {
    Result<LogPlace> log = ParseLogPlace(given.Text("log"));
    if (!log.ok()) return log.status();
    result->log = *std::move(log);
  }
  result->metrics = given.Text("metrics");
  result->metrics_group = given.Text("metrics-group");
  if (given.Has("metrics-group") && !result->metrics.starts_with("unix:")) {
    return Status::Invalid("--metrics-group goes with --metrics unix:PATH");
  }
  return Status::Ok();
}

Status Check(const RecvOptions& options) {
  if (options.listen.empty() && !options.systemd) {
    return Status::Invalid("no --listen given" + std::string(kSeeHelp));
  }
  if (options.out.empty() == options.format.empty()) {
    return Status::Invalid("give either --out DIR or --format NAME" +
                           std::string(kSeeHelp));
  }
  if (!options.format.empty() && FindLineFormat(options.format) == nullptr) {
    return Status::Invalid("--format: there is no " + Quoted(options.format) +
                           "; there are " + LineFormatNames());
  }
  if (!options.keys.empty() && options.format.empty()) {
    return Status::Invalid(
        "--key is for --format: what is kept in files stays encrypted");
  }
  const bool tls = std::any_of(
      options.listen.begin(), options.listen.end(), [](const auto& address) {
        return address.transport == net::Transport::kTls;
      });
  const int files = !options.tls.ca.empty() + !options.tls.cert.empty() +
                    !options.tls.key.empty();
  if (tls && files != 3) {
    return Status::Invalid("--listen tls:… needs --ca, --cert and --tls-key");
  }
  // A socket that is handed over may be for TLS.
  if (!tls && !options.systemd && files != 0) {
    return Status::Invalid(
        "--ca, --cert and --tls-key are for --listen tls:HOST:PORT");
  }
  if (files != 0 && files != 3) {
    return Status::Invalid("--ca, --cert and --tls-key go together");
  }
  return Status::Ok();
}

}  // namespace

HelpPage RecvHelp() {
  return {
      .command = "tracefs-recv",
      .begin =
          "Usage: tracefs-recv --listen ADDRESS... (--out DIR | --format "
          "NAME) [OPTION]...\n"
          "       tracefs-recv --from BROKER --out DIR [--format NAME] "
          "[OPTION]...\n"
          "       tracefs-recv --list DIR\n"
          "Receive the traces of tracefs-mount's output drivers tcp, tls "
          "and unix,\nor take them from a broker between hosts.\n",
      .rows = VisibleOptions(),
      .groups = {FleetOptionRows()},
      .common =
          "listen out format user ca cert tls-key keep keep-free list "
          "help",
      .details =
          "\nSIGHUP has it read certificates and --key again; open connections "
          "stay.\n"
          "It ends in order with SIGTERM or SIGINT: all that came is then on "
          "the disk, and\nacknowledged.\n",
      .examples =
          {"tracefs-recv --listen tcp::9900 --out /var/lib/traces --user "
           "traces",
           "tracefs-recv --listen unix:/run/traces.sock --format jsonl | jq .",
           "tracefs-recv --from nats:n1:4222,n2:4222 --out /srv/fleet --format "
           "parquet",
           "tracefs-recv --listen tls::9901 --ca ca.pem --cert host.pem "
           "--tls-key host.key \\\n"
           "      --out /var/lib/traces --user traces",
           "tracefs-recv --listen tcp::9900 --out /var/lib/traces --user "
           "traces \\\n"
           "      --keep 14d --keep-free 10%"},
      .end =
          "Exit status: 0 it was ended; 2 wrong usage, certificates or keys; "
          "3 the system\nrefused.\n"};
}

Result<RecvOptions> ParseRecvOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, KnownOptions(), "", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  RecvOptions result;
  if (given.AsksOnly(&result)) return result;
  if (given.Has("list")) {
    result.list = given.Text("list");
    if (given.Has("listen") || given.Has("out") || given.Has("format")) {
      return Status::Invalid("--list takes a directory and nothing else");
    }
    return result;
  }
  if (Status s = TakeWatching(given, &result); !s.ok()) return s;
  if (given.Has("from")) {
    Result<FleetOptions> fleet = ParseFleetOptions(given);
    if (!fleet.ok()) return fleet.status();
    result.fleet = *std::move(fleet);
    result.keys = given.Texts("key");
    result.user = given.Text("user");
    result.out = given.Text("out");
    if (Status s = TakeRetention(given, &result); !s.ok()) return s;
    result.fleet->housekeeping.rules = result.retention;
    return result;
  }
  if (Status s = CheckNoFleetOptions(given); !s.ok()) return s;
  result.systemd = given.Has("systemd");
  for (const std::string& word : given.Texts("listen")) {
    Result<net::Address> address = net::ParseListenAddress(word);
    if (!address.ok()) return address.status().Prefixed("--listen");
    result.listen.push_back(*std::move(address));
  }
  result.out = given.Text("out");
  result.format = given.Text("format");
  result.tls = {.ca = given.Text("ca"),
                .cert = given.Text("cert"),
                .key = given.Text("tls-key")};
  result.keys = given.Texts("key");
  result.user = given.Text("user");
  given.Take("sandbox", kSandboxes, &result.sandbox);
  result.quiet = given.Has("quiet");
  if (Status s = TakeRetention(given, &result); !s.ok()) return s;
  if (Status s = TakeLimits(given, &result); !s.ok()) return s;
  if (Status s = Check(result); !s.ok()) return s;
  return result;
}

}  // namespace tracefs
