#include "tracefs/tools/ctl/ctl.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "tracefs/base/printable.h"
#include "tracefs/control/client.h"
#include "tracefs/control/place.h"
#include "tracefs/export/table.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/ctl/as_owner.h"
#include "tracefs/tools/ctl/live_table.h"
#include "tracefs/tools/ctl/live_trace.h"
#include "tracefs/tools/ctl/reload.h"
#include "tracefs/tools/ctl/request.h"
#include "tracefs/tools/ctl/text.h"
#include "tracefs/tools/ctl/top.h"
#include "tracefs/tools/ctl/undo.h"
#include "tracefs/tools/ctl/unmount.h"
#include "tracefs/tools/ctl/upgrade.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

constexpr auto kBetweenLooks = 250ms;

constexpr char kCommand[] = "tracefs-ctl: ";

// Some of the text comes from the other end, or contains names of files.
void Tell(OutputBuffer& err, const std::string& text) {
  err.Append(kCommand + Printable(text) + '\n');
  static_cast<void>(err.Flush());
}

class Runner {
 public:
  Runner(const CtlOptions& options, ControlClient client, OutputBuffer& out,
         OutputBuffer& err, const std::atomic<bool>& stop)
      : options_(options),
        client_(std::move(client)),
        out_(out),
        err_(err),
        stop_(stop) {}

  Status Run() {
    switch (options_.command) {
      case CtlCommand::kList:
        return Show("list", ListText);
      case CtlCommand::kExplain:
        return Show("explain", ExplainText);
      case CtlCommand::kStats:
        return Show("stats", StatsText);
      case CtlCommand::kRules:
        return options_.follow ? FollowRules() : Show("rules", RulesText);
      case CtlCommand::kFlush:
        return client_.Call(SimpleRequest("flush")).status();
      case CtlCommand::kAdd:
        return Add();
      case CtlCommand::kRemove:
        return OfTracer("remove").status();
      case CtlCommand::kStop:
        return OfTracer("stop").status();
      case CtlCommand::kStart:
        return OfTracer("start").status();
      case CtlCommand::kSetFilter:
        return SetFilter();
      case CtlCommand::kReload:
        return Reload(client_, options_.file, [this](const std::string& text) {
          out_.Append(TerminalText(text) + '\n');
          return out_.Flush();
        });
      case CtlCommand::kSnapshot:
        return Snapshot();
      case CtlCommand::kHeld:
        return Show("held", HeldText);
      case CtlCommand::kRelease:
        return Release();
      case CtlCommand::kUndo:
        return Undo(options_);
      case CtlCommand::kTail:
        return Tail();
      case CtlCommand::kTop:
      case CtlCommand::kUpgrade:
      case CtlCommand::kUnmount:
        break;  // have connections of their own
    }
    return Status::Ok();
  }

 private:
  Status Show(const std::string& command,
              Result<std::string> (*text)(std::string_view)) {
    const Result<std::string> answer = client_.Call(SimpleRequest(command));
    if (!answer.ok()) return answer.status();
    if (options_.json) {
      out_.Append(*answer + '\n');
      return out_.Flush();
    }
    const Result<std::string> shown = text(*answer);
    if (!shown.ok()) return shown.status();
    out_.Append(*shown);
    return out_.Flush();
  }

  // The answer to a command about the tracer that was named.
  Result<std::string> OfTracer(const std::string& command) {
    const Result<uint32_t> tracer = TracerNamed(client_, options_.tracer);
    if (!tracer.ok()) return tracer.status();
    return client_.Call(TracerRequest(command, *tracer));
  }

  // Alarms as they come. What the mount remembers of them is more than comes
  // between two looks, as a rule.
  Status FollowRules() {
    const std::string request = AlarmsRequest();
    AlarmsSeen seen;
    for (uint64_t look = 0; !stop_.load(); ++look) {
      Result<std::string> answer = client_.Call(request);
      if (!answer.ok() && look != 0) {
        // The connection may have been passed to another process.
        Result<ControlClient> again =
            ControlClient::Connect(options_.mount, options_.patience);
        if (!again.ok()) return Status::Ok();  // the mount has ended
        client_ = std::move(*again);
        answer = client_.Call(request);
      }
      if (!answer.ok()) return answer.status();
      const Result<std::string> text = NewAlarms(*answer, options_.json, &seen);
      if (!text.ok()) return text.status();
      out_.Append(*text);
      for (const auto& [tracer, count] : seen.unseen) {
        if (count == 0) continue;
        Say(std::to_string(count) + " more alarms of tracer " +
            std::to_string(tracer) + "; they are in its trace");
      }
      if (Status s = out_.Flush(); !s.ok()) {
        return s.error() == EPIPE ? Status::Ok() : s;
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
    return Status::Ok();
  }

  Status Add() {
    const Result<std::string> text =
        ReadConfigText(options_.file, NamedBy::kCaller);
    if (!text.ok()) return text.status();
    NewFiles files;
    const Result<std::string> request =
        AddRequest(client_, options_.file, *text, &files);
    if (!request.ok()) return request.status();
    const Result<std::string> answer =
        client_.Call(*request, files.Descriptors());
    if (!answer.ok()) {
      files.KeepIfUnknown(answer.status());
      return answer.status();
    }
    files.Keep();
    if (options_.json) {
      out_.Append(*answer + '\n');
      return out_.Flush();
    }
    const Result<std::string> ids = AddText(*answer);
    if (!ids.ok()) return ids.status();
    out_.Append(*ids);
    SayWarnings(*answer);
    return out_.Flush();
  }

  void SayWarnings(const std::string& answer) {
    const Json json = Json::parse(answer, nullptr, false);
    if (!json.is_object()) return;
    for (const Json& warning : json.value("warnings", Json::array())) {
      if (warning.is_string()) Say(warning.get<std::string>());
    }
  }

  Status SetFilter() {
    const Result<uint32_t> tracer = TracerNamed(client_, options_.tracer);
    if (!tracer.ok()) return tracer.status();
    const Result<std::string> request =
        FilterRequest("set-filter", &*tracer, options_.filter);
    if (!request.ok()) return request.status();
    const Result<std::string> answer = client_.Call(*request);
    if (answer.ok()) SayWarnings(*answer);
    return answer.status();
  }

  // Nothing is killed but what the caller has named.
  Status Release() {
    using End = CtlOptions::HoldEnd;
    Status undone;
    if (options_.end == End::kUndo) {
      const Result<std::string> held = client_.Call(SimpleRequest("held"));
      if (!held.ok()) return held.status();
      const Result<uint32_t> process = HeldProcess(*held, options_.hold);
      if (!process.ok()) return process.status();
      // A change that waits keeps its file locked: nobody could put it right.
      const Result<std::string> refused =
          client_.Call(ReleaseRequest(options_.hold, "refuse"));
      if (!refused.ok()) return refused.status();
      CtlOptions undo = options_;
      undo.filter = "under(cpid = " + std::to_string(*process) + ")";
      undone = Undo(undo);
      // That may have taken longer than an idle connection lasts.
      Result<ControlClient> again =
          ControlClient::Connect(options_.mount, options_.patience);
      if (!again.ok()) return again.status();
      client_ = std::move(*again);
    }
    if (options_.kill != 0 &&
        ::kill(static_cast<pid_t>(options_.kill), SIGKILL) != 0) {
      return Status::System(errno, "process " + std::to_string(options_.kill));
    }
    const Status released =
        client_
            .Call(ReleaseRequest(options_.hold,
                                 options_.end == End::kGoOn ? "go-on" : "fail"))
            .status();
    return undone.ok() ? released : undone;
  }

  Status Undo(const CtlOptions& options) {
    const Result<uint64_t> left = UndoOnMount(
        options, client_, out_, [this](const std::string& text) { Say(text); });
    const Status written = out_.Flush();
    if (!left.ok()) return left.status();
    if (!written.ok() || *left == 0) return written;
    return Status::Corrupt("undo: not all was taken back");
  }

  Status Snapshot() {
    const Result<std::string> answer = OfTracer("snapshot");
    if (!answer.ok()) return answer.status();
    const Json json = Json::parse(*answer, nullptr, false);
    if (!json.is_object() || !json.contains("file") ||
        !json["file"].is_string()) {
      return Status::Corrupt("the mount's answer makes no sense");
    }
    out_.Append(TerminalText(json["file"].get<std::string>()) + '\n');
    return out_.Flush();
  }

  // The stream of operations that the filter keeps.
  Result<std::unique_ptr<LiveTrace>> Listen() {
    const Result<std::string> request =
        FilterRequest("tail", nullptr, options_.filter);
    if (!request.ok()) return request.status();
    const Result<std::string> answer = client_.Call(*request);
    if (!answer.ok()) return answer.status();
    SayWarnings(*answer);
    return std::make_unique<LiveTrace>(
        client_.TakeStream(), [this](const format::Report& report) {
          if (report.kind != format::ReportKind::kNoFinal) {
            Say(report.Text());
          }
        });
  }

  Status Tail() {
    const Result<std::unique_ptr<LiveTrace>> listening = Listen();
    if (!listening.ok()) return listening.status();
    LiveTrace& live = **listening;
    const auto exporter =
        FindLineFormat(options_.format)
            ->make(out_, {.time = options_.time, .form = options_.form});
    format::Record record;
    uint64_t count = 0;
    for (;;) {
      if (stop_.load()) live.Stop();
      const format::ReadStep step = live.Next(&record);
      if (step == format::ReadStep::kEnd) break;
      if (step == format::ReadStep::kItem) {
        exporter->Write(record);
        if (!out_.status().ok() || ++count == options_.rounds) break;
        continue;
      }
      if (!out_.Flush().ok()) break;
      live.Wait(1s);
    }
    exporter->Finish();
    if (Status s = out_.Flush(); !s.ok()) {
      // A reader that has seen enough (head, less) is not an error.
      return s.error() == EPIPE ? Status::Ok() : s;
    }
    return live.status();
  }

  void Say(const std::string& text) { Tell(err_, text); }

  const CtlOptions& options_;
  ControlClient client_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  const std::atomic<bool>& stop_;
};

Status Unmount(const CtlOptions& options, OutputBuffer& out, OutputBuffer& err,
               const std::atomic<bool>& stop) {
  const auto tell = [&err](const std::string& text) { Tell(err, text); };
  const Result<std::string> line =
      UnmountAndWait(options.mount, options.patience, tell, stop);
  if (!line.ok()) return line.status();
  const Result<std::string> text = UnmountText(*line);
  if (!text.ok()) return text.status();
  if (options.json) {
    out.Append(*line + '\n');
  } else if (!text->empty()) {
    err.Append(*text);
  }
  if (Status s = out.Flush(); !s.ok()) return s;
  return text->empty() ? Status::Ok()
                       : Status::Corrupt("unmounted; not all is in its traces");
}

Status Upgrade(const CtlOptions& options, OutputBuffer& out) {
  const Result<std::string> now =
      UpgradeAndWait(options.mount, options.patience);
  if (!now.ok()) return now.status();
  const Result<std::string> text = UpgradeText(*now);
  if (!text.ok()) return text.status();
  out.Append(options.json ? *now + '\n' : *text);
  return out.Flush();
}

int CtlOne(const CtlOptions& options, OutputBuffer& out, OutputBuffer& err,
           const std::atomic<bool>& stop) {
  Status status;
  if (options.command == CtlCommand::kUnmount) {
    status = Unmount(options, out, err, stop);
  } else if (options.command == CtlCommand::kUpgrade) {
    status = Upgrade(options, out);
  } else if (options.command == CtlCommand::kTop) {
    status =
        options.table ? LiveTable(options, out, stop) : Top(options, out, stop);
  } else {
    Result<ControlClient> client =
        ControlClient::Connect(options.mount, options.patience);
    status = client.ok()
                 ? Runner(options, std::move(*client), out, err, stop).Run()
                 : client.status();
  }
  if (!status.ok()) Tell(err, status.message());
  static_cast<void>(err.Flush());
  return ExitStatus(status);
}

// Root acts on another user's mount only when told so, and as that user.
int CtlAsOwner(const CtlOptions& options, OutputBuffer& out, OutputBuffer& err,
               const std::atomic<bool>& stop) {
  const auto act = [&] { return CtlOne(options, out, err, stop); };
  if (!options.as_owner) return act();
  const Result<MountIdentity> mount = IdentifyMount(options.mount);
  if (!mount.ok() || !IsForeign(*mount)) return act();
  const Result<int> status = AsOwner(*mount, act, stop);
  if (status.ok()) return *status;
  Tell(err, status.status().message());
  return ExitStatus(status.status());
}

}  // namespace

int Ctl(const CtlOptions& options, OutputBuffer& out, OutputBuffer& err,
        const std::atomic<bool>& stop) {
  if (!options.all) return CtlAsOwner(options, out, err, stop);
  const bool everybodys = options.as_owner && ::geteuid() == 0;
  std::vector<std::string> mounts =
      MountsOf(everybodys ? std::nullopt : std::optional<uid_t>(::geteuid()));
  if (mounts.empty()) {
    Tell(err, std::string("--all: there is no tracefs mount") +
                  (everybodys ? "" : " of yours"));
    return ExitStatus(Status::System(ENOENT, ""));
  }
  CtlOptions one = options;
  if (options.command == CtlCommand::kTop) {
    one.mount = mounts[0];
    one.also.assign(mounts.begin() + 1, mounts.end());
    return CtlAsOwner(one, out, err, stop);
  }
  // What was mounted last may lie in what was mounted first.
  if (options.command == CtlCommand::kUnmount) std::ranges::reverse(mounts);
  int status = 0;
  for (const std::string& mount : mounts) {
    one.mount = mount;
    // As JSON each answer is a line; it names the mount, or it is told apart by
    // its place.
    if (!options.json) out.Append(TerminalText(mount) + ":\n");
    (void)out.Flush();
    // One that does not answer does not hold up the others.
    status = std::max(status, CtlAsOwner(one, out, err, stop));
  }
  return status;
}

}  // namespace tracefs
