// From the tracers of a mount to its end.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iostream>

#include "tracefs/base/helper_link.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/mount/mount_run.h"
#include "tracefs/tracers/loss_watch.h"

namespace tracefs {

namespace {

// What tracefs-run adds, and nothing that says what was recorded.
bool IsAddition(ByteSpan messages) {
  format::MessageCursor in(messages);
  format::Message message;
  while (in.Next(&message)) {
    const auto id = static_cast<format::MessageId>(message.msg_id);
    if (id != format::MessageId::kFile && id != format::MessageId::kIndex) {
      return false;
    }
  }
  return !in.malformed();
}

}  // namespace

ProcessWatch::Options MountRun::WatchOptions() {
  ProcessWatch::Options options;
  options.proc = processes_->proc();
  options.open = [this](int processor) -> Result<ProcessWatch::Opened> {
    Result<OpenTracepoints> opened =
        watchdog_->OpenTracepoints(TracepointUse::kProcesses, processor);
    if (!opened.ok()) return opened.status();
    return ProcessWatch::Opened{std::move(opened->files),
                                std::move(opened->layout)};
  };
  if (connector_.ok()) options.connector = *std::move(connector_);
  options.make_look = [this]() -> ProcessWatch::Options::Look {
    const auto looker = std::make_shared<LookerLink>(StartLooker());
    if (!looker->there()) return nullptr;
    return [looker](uint32_t pid, LookFor what) {
      return looker->Ask(pid, what == LookFor::kExe   ? Look::kExe
                              : what == LookFor::kCwd ? Look::kCwd
                                                      : Look::kEnvironment);
    };
  };
  return options;
}

// No request is served before Begin, so no event is missed.
Status MountRun::StartTracers() {
  watch_ = std::make_unique<ProcessWatch>(WatchOptions(), pipeline_);
  holds_.emplace(fs_->holds(), pipeline_);
  traced_.emplace(TracedMount{
      .pipeline = pipeline_,
      .names = names_,
      .processes = *processes_,
      .calls = *calls_,
      // A command's own feed tells of processes.
      .watch = feed_ == nullptr ? watch_.get() : nullptr,
      .snapshots = snapshots_,
      .header = header_,
      .note_output =
          [&inodes = fs_->inodes()](const OutputFileId& file, bool written) {
            const auto device = static_cast<dev_t>(file.device);
            if (written) {
              inodes.AddOutput(device, file.inode);
            } else {
              inodes.RemoveOutput(device, file.inode);
            }
          },
      .forget_names = [this] { session_->ForgetNames(); },
      .stay_shut = [this] { return session_->StayShut(); },
      .holds = &*holds_});
  pipeline_.SetFileStates(fs_.get());
  tracers_ = std::make_unique<TracerRegistry>(*traced_);
  if (area_ != nullptr) KeepTraces();
  if (predecessors_ != 0) return GoOnWithTraces();
  return tracers_->Add(std::move(plans_), nullptr);
}

Status MountRun::StartCommands() {
  commands_ = std::make_unique<MountCommands>(
      CommandedMount{.traced = *traced_,
                     .tracers = *tracers_,
                     .fs = *fs_,
                     .transport = transport_,
                     .queue_threads = *queue_threads_,
                     .device = socket_.device,
                     .steering = steering_.get(),
                     .survives = area_.get(),
                     .orders = orders_.get(),
                     .upgrade = area_ == nullptr ? std::function<Status()>()
                                                 : [this] { return Upgrade(); },
                     .kept = kept_folder_.get(),
                     .holds = &*holds_,
                     .unmount = [this] { return session_->Unmount(); }});
  server_ = std::move(socket_.server);
  if (server_ != nullptr) {
    if (Status s = server_->Start(*commands_); !s.ok()) return s;
  }
  if (metrics_ == nullptr) return Status::Ok();
  const NamesInLabels names_shown =
      options_.metrics_names || MetricsAtSocket(options_)
          ? NamesInLabels::Shown()
          : NamesInLabels::Withheld();
  if (Status s = metrics_->Start([this, names_shown] {
        return MetricsText(pipeline_, tracers_->TotalsOfRules(), names_shown,
                           steering_.get(), area_.get());
      });
      !s.ok()) {
    return s;
  }
  std::cerr << "tracefs-mount: metrics at " << metrics_->address() << '\n';
  return Status::Ok();
}

Status MountRun::StartHelpers() {
  if (feed_ != nullptr) {
    feed_->TellWanted(pipeline_.Wanted());
    const ProcessFeed::Hooks hooks = {
        .end_traces =
            [this] {
              tracers_->StopRules();
              static_cast<void>(pipeline_.Stop("exit"));
            },
        // What cannot be written is told at the end of the traces.
        .flush = [this] { static_cast<void>(pipeline_.FlushAll()); },
        .add =
            [this](ByteSpan messages) {
              if (!IsAddition(messages)) return;
              static_cast<void>(pipeline_.Append(messages));
            },
        .abandoned = [this] { session_->End(); }};
    if (Status s = feed_->Start(pipeline_, hooks); !s.ok()) return s;
  }
  if (Status s = losses_.Start(); !s.ok()) return s;
  // Requests come from Begin on: over io_uring they are served at once. After
  // the sandbox, so that its threads are in it.
  if (Status s = fs_->side_pool().Start(); !s.ok()) return s;
  InterruptHandler() = fs_.get();
  if (Status s = queue_threads_->Watch(proc_.get(),
                                       [this](ThreadPolicy policy) {
                                         fs_->SetWorkerPolicy(
                                             static_cast<int>(policy));
                                       });
      !s.ok()) {
    return s;
  }
  session_->OnEachSecond([this] {
    service_.Beat();
    if (area_ != nullptr) LookAtKeeper();
    static_cast<void>(LookAtHelpers());
  });
  // At a terminal it means that the terminal is gone.
  if (reloads_ && (!options_.foreground || service_.there())) {
    session_->OnHangUp([this] { Reload(); });
  }
  if (steering_ == nullptr) return Status::Ok();
  return steering_->Watch([this] { Reload(); });
}

void MountRun::TellBegin() {
  begun_to_trace_->store(true);
  if (predecessors_ != 0) TellSuccession();
  if (IsTold()) return;
  if (named_.last_word != nullptr) named_.last_word->Begin();
  Notify(NoticeId::kMounted, "serves " + options_.source + " (visibility " +
                                 VisibilityName(options_.visibility) + ", " +
                                 MountOptionsText(options_, transport_) + ")");
  service_.TellReady("traces " + options_.source + " at " +
                     session_->mount_point());
  if (area_ != nullptr) area_->header().told.store(1);
}

Status MountRun::End(const Status& served) {
  if (area_ != nullptr) area_->header().ended.store(survive::Header::kEnding);
  const ServiceManager::Patience patience(service_);
  if (steering_ != nullptr) steering_->Stop();
  queue_threads_->Stop();
  if (metrics_ != nullptr) metrics_->Stop();
  if (server_ != nullptr) server_->StopCommands();
  const bool all_ended = fs_->side_pool().Stop(std::chrono::milliseconds(500));
  fs_->ReleaseAll();
  watch_->End();
  if (feed_ != nullptr) feed_->Stop();
  tracers_->StopRules();
  snapshots_.Stop();
  losses_.Stop();
  if (feed_ != nullptr) feed_->TakeMessagesAtEnd();
  std::vector<TracerStats> last = std::move(ended_before_);
  Status stopped = pipeline_.Stop(session_->end_reason(), &last);
  constexpr auto kError = static_cast<size_t>(LossReason::kOutputError);
  for (const TracerStats& tracer : last) {
    // A daemon before this one has met with the error.
    if (stopped.ok() && tracer.lost[kError] != 0) {
      stopped =
          Status::SystemSaid(EIO, TracerText(tracer) + ": " + LossText(tracer));
    }
  }
  const Status ended = served.ok() ? stopped : served;
  commands_->TellEnd(EndLine(session_->end_reason(), ended, last));
  const std::string losses_at_end = TellEnd(session_->end_reason(), last);
  if (named_.last_word != nullptr) named_.last_word->End(losses_at_end);
  if (server_ != nullptr) server_->Stop();
  if (area_ != nullptr) {
    area_->header().end_status.store(ended.ok() ? 0 : ExitStatus(ended));
    area_->header().ended.store(survive::Header::kEnded);
  }
  if (!all_ended || fs_->may_hang_below()) LeaveThem(ended);
  return ended;
}

// Threads that hang in the file system below may go on at any time, and closing
// what is open there may hang, too: nothing is destroyed that they use. But
// callers that still wait for an answer are released.
void MountRun::LeaveThem(const Status& ended) {
  session_.reset();
  metrics_.reset();
  if (!ended.ok()) {
    if (log_.attended()) {
      std::cerr << "tracefs-mount: " << ended.message() << '\n';
    } else {
      Notify(NoticeId::kFailed, "has ended: " + ended.message());
    }
  }
  std::cerr.flush();
  log_.Flush();
  // It says goodbye: this is not a death.
  log_.ForgetReconnect();
  watchdog_.reset();
  ::_exit(ended.ok() ? 0 : ExitStatus(ended));
}

}  // namespace tracefs
