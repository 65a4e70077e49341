// Process records from tracefs-run, which may trace others, to the process of
// its mount, which is in a sandbox and may not.
//
// A record goes over a socket as the message that it becomes in a trace. The
// mount must always know up to which time all records have arrived, or a block
// of operations would overtake a record: one word of shared memory says that
// the sender has taken the time of a record that it has not sent yet. Beside it
// are the counts that tell the mount at once that a task has changed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/worker.h"
#include "tracefs/event/process_sink.h"
#include "tracefs/process/task_versions.h"

namespace tracefs {

// Both ends, made before the processes part. Each uses its own.
class ProcessFeed {
 public:
  static Result<std::unique_ptr<ProcessFeed>> Create();
  ~ProcessFeed();
  ProcessFeed(const ProcessFeed&) = delete;
  ProcessFeed& operator=(const ProcessFeed&) = delete;

  // --- The sender.

  void BecomeSender() { receiver_.Reset(); }
  // What the mount's tracers want; known once it is mounted.
  ProcessNeeds Wanted() const;
  // Stamps the record with the time and sends it. Waits if the mount does not
  // keep up; does nothing if the mount is gone.
  void Send(ProcessRecord& record);
  // Ends the traces: all that was sent is in them, and FINAL, when this returns
  // true. False if the mount is gone or does not say so in time. The mount goes
  // on.
  bool EndTraces(std::chrono::milliseconds patience);
  // Before the processes part: messages come at the end (SendMessages), which
  // the mount waits for before it ends its traces.
  void WillAdd() { shared_->adds.store(true); }
  // Returns true once all that was recorded is in the outputs: of a mount that
  // has ended, or is to `go_on`. False if the mount is gone, or does not say so
  // in time.
  bool AwaitFlushed(bool go_on, std::chrono::milliseconds patience);
  // Whole messages, which become a block of each trace.
  void SendMessages(ByteSpan messages);
  // The same, once what was sent is in the outputs.
  bool FlushSent(std::chrono::milliseconds patience);
  // A task has changed; reported before it goes on.
  void TellChanged(uint32_t tid) { shared_->versions.Changed(tid); }
  // No more records are sent, and this is not an accident.
  void SayGoodbye();
  // Nothing is sent any more.
  void Close();

  // --- The mount.

  void BecomeReceiver() { sender_.Reset(); }
  void TellWanted(ProcessNeeds needs);
  // Of TellChanged; as long as the feed.
  TaskVersions& versions() { return shared_->versions; }
  struct Hooks {
    std::function<void()> end_traces;
    // Of WillAdd: hands all that was recorded to the outputs; writes a block.
    std::function<void()> flush = {};
    std::function<void(ByteSpan messages)> add = {};
    // The sender is gone without a goodbye.
    std::function<void()> abandoned;
  };
  // Takes records in a thread of its own until Stop. `sink` outlives it.
  Status Start(ProcessSink& sink, Hooks hooks);
  void Stop() { worker_.Stop(); }
  // After Stop, when nothing is recorded any more: takes what the sender adds,
  // until it closes the feed. At once without WillAdd.
  void TakeMessagesAtEnd();

 private:
  struct Shared {
    std::atomic<uint64_t> stamping{0};  // 0: nothing is
    std::atomic<bool> records{false};
    std::atomic<bool> environment{false};
    std::atomic<bool> adds{false};
    TaskVersions versions;
  };
  ProcessFeed() = default;
  void SendAll(const std::byte* bytes, size_t size);
  void Loop();
  bool AwaitAnswer(std::chrono::milliseconds patience);
  void Order(uint16_t id);
  void Answer();
  // Takes what is there; false at the end.
  bool Receive();
  void TakeMessages();

  Shared* shared_ = nullptr;  // a mapping of its own
  UniqueFd sender_;
  UniqueFd receiver_;
  std::vector<std::byte> buffer_;
  ProcessSink* sink_ = nullptr;
  Hooks hooks_;
  bool ended_traces_ = false;
  bool goodbye_ = false;
  Worker worker_;
};

}  // namespace tracefs
