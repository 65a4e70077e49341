#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/append_le.h"
#include "tracefs/base/clock.h"
#include "tracefs/export/xray.h"
#include "tracefs/export/xray_calls.h"
#include "tracefs/export/xray_map.h"

namespace tracefs {
namespace {

constexpr size_t kBufferBytes = 16'384;
constexpr size_t kRecordBytes = 16;
// What comes before the records of a buffer, a change of processor, a wrap, and
// the end of the buffer.
constexpr size_t kBefore = 12 * kRecordBytes;
// Numbers of metadata records.
constexpr uint8_t kNewBuffer = 0;
constexpr uint8_t kEndOfBuffer = 1;
constexpr uint8_t kNewCpu = 2;
constexpr uint8_t kTscWrap = 3;
constexpr uint8_t kWallTime = 4;
constexpr uint8_t kCustomEvent = 5;
constexpr uint8_t kExtents = 7;
constexpr uint8_t kPid = 9;
// Threads whose buffers are open at a time: 64 MiB.
constexpr size_t kMaxBuffers = 4096;

class FdrExporter final : public XrayExporter {
 public:
  FdrExporter(OutputBuffer& out, const ExportOptions& options)
      : XrayExporter(out, options),
        version_(options.Choice("version") == "1"   ? 1
                 : options.Choice("version") == "5" ? 5
                                                    : 3) {
    PutHeader(version_, 1, version_ == 1 ? kBufferBytes : 0);
  }

 protected:
  void Put(const FunctionCall& call) override {
    Thread& thread = ThreadOf(call);
    EndCalls(thread, call.begin);
    // In one buffer, so that the event stands beside its entry.
    const std::string payload = PayloadOf(call);
    MakeRoom(thread, 2 * kRecordBytes + payload.size(), call.begin);
    AppendFunction(thread, call.function, 0, call.begin);
    AppendCustom(payload, call.begin, &thread);
    thread.open.push_back({call.function, call.end});
  }

  void PutEvent(const FunctionCall& event) override {
    Thread& thread = ThreadOf(event);
    EndCalls(thread, event.begin);
    const std::string payload = PayloadOf(event);
    MakeRoom(thread, kRecordBytes + payload.size(), event.begin);
    AppendCustom(payload, event.begin, &thread);
  }

  void End() override {
    for (auto& [key, thread] : threads_) {
      EndCalls(thread, UINT64_MAX);
      Flush(thread);
    }
    threads_.clear();
  }

 private:
  struct Open {
    int32_t function;
    uint64_t end;
  };
  struct Thread {
    uint32_t pid = 0;
    uint32_t tid = 0;
    uint16_t cpu = FunctionCall::kNoCpu;
    std::string buffer;  // the records, without what comes before them
    uint64_t tsc = 0;    // of the last one
    std::vector<Open> open;
    bool started = false;
    std::list<uint32_t>::iterator used;
  };

  static void AppendMetadata(uint8_t kind, std::string_view data,
                             std::string* out) {
    *out += static_cast<char>(kind << 1 | 1);
    *out += data;
    out->append(kRecordBytes - 1 - data.size(), '\0');
  }

  Thread& ThreadOf(const FunctionCall& call) {
    const auto found = threads_.find(call.tid);
    if (found != threads_.end()) {
      Thread& thread = found->second;
      if (thread.pid == 0) thread.pid = call.pid;
      used_.splice(used_.begin(), used_, thread.used);
      if (thread.cpu != call.cpu) {
        EndCalls(thread, call.begin);
        thread.cpu = call.cpu;
        if (!thread.buffer.empty()) AppendCpu(thread, call.begin);
      }
      return thread;
    }
    if (threads_.size() >= kMaxBuffers) {
      // The one that has been silent for longest. What it had not ended yet
      // ends in a buffer by itself.
      const auto oldest = threads_.find(used_.back());
      EndCalls(oldest->second, UINT64_MAX);
      Flush(oldest->second);
      used_.pop_back();
      threads_.erase(oldest);
    }
    Thread& thread = threads_[call.tid];
    thread.pid = call.pid;
    thread.tid = call.tid;
    thread.cpu = call.cpu;
    used_.push_front(call.tid);
    thread.used = used_.begin();
    return thread;
  }

  void EndCalls(Thread& thread, uint64_t until) {
    while (!thread.open.empty() && thread.open.back().end <= until) {
      const Open call = thread.open.back();
      thread.open.pop_back();
      PutFunction(thread, call.function, 1, call.end);
    }
  }

  void PutFunction(Thread& thread, int32_t function, uint32_t action,
                   uint64_t tsc) {
    MakeRoom(thread, kRecordBytes, tsc);
    AppendFunction(thread, function, action, tsc);
  }

  void MakeRoom(Thread& thread, size_t bytes, uint64_t tsc) {
    if (thread.buffer.size() + kBefore + bytes > kBufferBytes) Flush(thread);
    if (thread.buffer.empty()) Begin(thread, tsc);
  }

  // JSON, with blanks so that records stay aligned; empty where there is no
  // room for it: buffers of version 1 have one size.
  std::string PayloadOf(const FunctionCall& call) {
    std::string payload(call.json);
    payload.resize((payload.size() + 7) / 8 * 8, ' ');
    if (version_ == 1 &&
        kBefore + 2 * kRecordBytes + payload.size() > kBufferBytes) {
      LeaveOut();
      payload.clear();
    }
    return payload;
  }

  void AppendCustom(std::string_view payload, uint64_t tsc, Thread* thread) {
    if (payload.empty()) return;
    std::string data;
    AppendLe(static_cast<int32_t>(payload.size()), &data);
    if (version_ >= 5) {
      AppendWrap(*thread, tsc);
      AppendLe(static_cast<int32_t>(tsc - thread->tsc), &data);
      thread->tsc = tsc;
    } else {
      AppendLe(tsc, &data);
    }
    AppendMetadata(kCustomEvent, data, &thread->buffer);
    thread->buffer += payload;
  }

  // Where the next record is too far from the last one.
  static void AppendWrap(Thread& thread, uint64_t tsc) {
    if (tsc - thread.tsc <= INT32_MAX) return;
    std::string data;
    AppendLe(tsc, &data);
    AppendMetadata(kTscWrap, data, &thread.buffer);
    thread.tsc = tsc;
  }

  static void AppendCpu(Thread& thread, uint64_t tsc) {
    std::string data;
    AppendLe(thread.cpu, &data);
    AppendLe(tsc, &data);
    AppendMetadata(kNewCpu, data, &thread.buffer);
    thread.tsc = tsc;
  }

  static void AppendFunction(Thread& thread, int32_t function, uint32_t action,
                             uint64_t tsc) {
    AppendWrap(thread, tsc);
    AppendLe(static_cast<uint32_t>(function) << 4 | action << 1,
             &thread.buffer);
    AppendLe(static_cast<uint32_t>(tsc - thread.tsc), &thread.buffer);
    thread.tsc = tsc;
  }

  // The first records of a buffer.
  void Begin(Thread& thread, uint64_t tsc) {
    // A thread that comes again must not go back behind its own beginning.
    const uint64_t first = thread.started ? tsc : origin_ns();
    AppendCpu(thread, first);
    if (thread.started) return;
    thread.started = true;
    std::string data;
    AppendLe(first, &data);
    AppendMetadata(kTscWrap, data, &thread.buffer);
    AppendFunction(thread, kXrayStart, 0, first);
    AppendFunction(thread, kXrayStart, 1, first);
  }

  void Flush(Thread& thread) {
    if (thread.buffer.empty()) return;
    std::string block;
    std::string data;
    AppendLe(static_cast<int32_t>(thread.tid), &data);
    AppendMetadata(kNewBuffer, data, &block);
    data.clear();
    // llvm-xray takes a buffer for an earlier one if both its seconds and its
    // parts of a second are less: true ones would be put out of order.
    AppendLe<uint64_t>(origin_ns() / kNsPerSecond + flushed_, &data);
    AppendLe(static_cast<uint32_t>(flushed_), &data);
    ++flushed_;
    AppendMetadata(kWallTime, data, &block);
    if (version_ >= 3) {
      data.clear();
      AppendLe(static_cast<int32_t>(thread.pid), &data);
      AppendMetadata(kPid, data, &block);
    }
    block += thread.buffer;
    if (version_ == 1) {
      Fill(thread.tsc, &block);
      AppendMetadata(kEndOfBuffer, {}, &block);
    } else {
      data.clear();
      AppendLe(static_cast<uint64_t>(block.size()), &data);
      std::string extents;
      AppendMetadata(kExtents, data, &extents);
      out().Append(extents);
    }
    out().Append(block);
    thread.buffer.clear();
  }

  // Readers differ in whether they skip what follows the end of a buffer: it
  // is at its very end, after records that say nothing.
  static void Fill(uint64_t tsc, std::string* block) {
    constexpr size_t kFull = kBufferBytes - kRecordBytes;
    std::string data;
    if (block->size() % kRecordBytes != 0) {
      AppendLe<uint32_t>(8, &data);
      AppendLe(tsc, &data);
      AppendMetadata(kCustomEvent, data, block);
      *block += "(filler)";
    }
    data.clear();
    AppendLe(tsc, &data);
    while (block->size() < kFull) AppendMetadata(kTscWrap, data, block);
  }

  const uint16_t version_;
  uint64_t flushed_ = 0;  // buffers
  std::unordered_map<uint32_t, Thread> threads_;
  std::list<uint32_t> used_;  // the one used last is at the front
};

}  // namespace

std::unique_ptr<Exporter> MakeXrayFdrExporter(OutputBuffer& out,
                                              const ExportOptions& options) {
  return std::make_unique<FdrExporter>(out, options);
}

}  // namespace tracefs
