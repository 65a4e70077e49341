#include "tracefs/export/xray.h"

#include <algorithm>
#include <list>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/append_le.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/replacement.h"
#include "tracefs/export/lanes.h"
#include "tracefs/export/xray_map.h"

namespace tracefs {
namespace {

using format::Record;

constexpr uint64_t kFrequency = kNsPerSecond;
constexpr uint32_t kSteady = 3;  // constant_tsc, nonstop_tsc

// Who called what, when.
struct FunctionCall {
  int32_t function = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What both formats have in common: who called, and the map.
class XrayExporter : public Exporter {
 public:
  XrayExporter(OutputBuffer& out, const ExportOptions& options)
      : out_(out), map_(options.Choice("map")) {}

  void Write(const Record& record) override {
    const Event& event = record.event;
    // Without a time it has no place; before it has run it is no call.
    if (event.before || record.time_resolution_ns == 0) {
      ++left_out_;
      return;
    }
    // Told late: then at once.
    last_ns_ = std::max(last_ns_, record.real_ns);
    if (origin_ns_ == 0) origin_ns_ = last_ns_;
    FunctionCall call;
    call.function = XrayFunction(event.op);
    call.begin = last_ns_;
    call.end = call.begin +
               (event.Has(Field::kLatency) ? event.Get(Field::kLatency) : 0);
    const auto id = [&event](Field field) {
      return event.Has(field) ? static_cast<uint32_t>(event.Get(field)) : 0;
    };
    call.pid = id(Field::kPid);
    call.tid = event.Has(Field::kTid) ? id(Field::kTid) : call.pid;
    // llvm-xray tells threads by their numbers alone.
    const size_t lane = lanes_.Find(call.tid, call.begin, call.end);
    call.tid = static_cast<uint32_t>((call.tid + lane * kLaneTids) %
                                     (uint64_t{1} << 31));
    Put(call);
  }

  void Finish() override {
    End();
    if (!map_.empty()) status_ = ReplaceFile(map_, XrayMap());
  }

  uint64_t left_out() const override { return left_out_; }
  Status status() const override { return status_; }

 protected:
  virtual void Put(const FunctionCall& call) = 0;
  virtual void End() = 0;

  OutputBuffer& out() { return out_; }
  uint64_t origin_ns() const { return origin_ns_; }

  void PutHeader(uint16_t version, uint16_t type, uint64_t free_form) {
    std::string head;
    AppendLe(version, &head);
    AppendLe(type, &head);
    AppendLe(kSteady, &head);
    AppendLe(kFrequency, &head);
    AppendLe(free_form, &head);
    AppendLe<uint64_t>(0, &head);
    out_.Append(head);
  }

 private:
  OutputBuffer& out_;
  const std::string map_;
  Lanes lanes_;
  uint64_t last_ns_ = 0;
  uint64_t origin_ns_ = 0;
  uint64_t left_out_ = 0;
  Status status_;
};

// --- Flight data recorder.

constexpr size_t kBufferBytes = 16'384;
constexpr size_t kRecordBytes = 16;
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
    PutFunction(thread, call.function, 0, call.begin);
    thread.open.push_back({call.function, call.end});
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
    std::string buffer;  // the records, without what comes before them
    uint64_t tsc = 0;    // of the last one
    std::vector<Open> open;
    uint64_t base = 0;  // where the buffer begins
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
      if (found->second.pid == 0) found->second.pid = call.pid;
      used_.splice(used_.begin(), used_, found->second.used);
      return found->second;
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
    // Room for what comes before, this, a wrap, and the end of the buffer.
    constexpr size_t kBefore = 8 * kRecordBytes;
    if (thread.buffer.size() + kBefore + 3 * kRecordBytes > kBufferBytes) {
      Flush(thread);
    }
    if (thread.buffer.empty()) Begin(thread, tsc);
    AppendFunction(thread, function, action, tsc);
  }

  static void AppendFunction(Thread& thread, int32_t function, uint32_t action,
                             uint64_t tsc) {
    if (tsc - thread.tsc > INT32_MAX) {
      std::string data;
      AppendLe(tsc, &data);
      AppendMetadata(3, data, &thread.buffer);
      thread.tsc = tsc;
    }
    AppendLe(static_cast<uint32_t>(function) << 4 | action << 1,
             &thread.buffer);
    AppendLe(static_cast<uint32_t>(tsc - thread.tsc), &thread.buffer);
    thread.tsc = tsc;
  }

  // The first records of a buffer.
  void Begin(Thread& thread, uint64_t tsc) {
    // A thread that comes again must not go back behind its own beginning.
    const uint64_t first = thread.started ? tsc : origin_ns();
    std::string data;
    AppendLe<uint16_t>(0, &data);
    AppendLe(first, &data);
    AppendMetadata(2, data, &thread.buffer);
    thread.tsc = first;
    thread.base = first;
    if (thread.started) return;
    thread.started = true;
    data.clear();
    AppendLe(first, &data);
    AppendMetadata(3, data, &thread.buffer);
    AppendFunction(thread, kXrayStart, 0, first);
    AppendFunction(thread, kXrayStart, 1, first);
  }

  void Flush(Thread& thread) {
    if (thread.buffer.empty()) return;
    std::string block;
    std::string data;
    AppendLe(static_cast<int32_t>(thread.tid), &data);
    AppendMetadata(0, data, &block);
    data.clear();
    AppendLe<uint64_t>(thread.base / kNsPerSecond, &data);
    AppendLe(static_cast<uint32_t>(thread.base % kNsPerSecond / kNsPerUs),
             &data);
    AppendMetadata(4, data, &block);
    if (version_ >= 3) {
      data.clear();
      AppendLe(static_cast<int32_t>(thread.pid), &data);
      AppendMetadata(9, data, &block);
    }
    block += thread.buffer;
    if (version_ == 1) {
      Fill(thread.tsc, &block);
      AppendMetadata(1, {}, &block);
    } else {
      data.clear();
      AppendLe(static_cast<uint64_t>(block.size()), &data);
      std::string extents;
      AppendMetadata(7, data, &extents);
      out().Append(extents);
    }
    out().Append(block);
    thread.buffer.clear();
  }

  // Readers differ in whether they skip what is behind the end of a buffer: it
  // is at its very end, after records that say nothing.
  static void Fill(uint64_t tsc, std::string* block) {
    constexpr size_t kFull = kBufferBytes - kRecordBytes;
    std::string data;
    if (block->size() % kRecordBytes != 0) {
      AppendLe<uint32_t>(8, &data);
      AppendLe(tsc, &data);
      AppendMetadata(5, data, block);  // an event with eight bytes
      *block += "(filler)";
    }
    data.clear();
    AppendLe(tsc, &data);
    while (block->size() < kFull) AppendMetadata(3, data, block);
  }

  const uint16_t version_;
  std::unordered_map<uint32_t, Thread> threads_;
  std::list<uint32_t> used_;  // the one used last is at the front
};

// --- Basic.

class BasicExporter final : public XrayExporter {
 public:
  BasicExporter(OutputBuffer& out, const ExportOptions& options)
      : XrayExporter(out, options) {
    PutHeader(3, 0, 0);
  }

 protected:
  void Put(const FunctionCall& call) override {
    EndCalls(call.begin);
    PutRecord(call, 0, call.begin);
    open_.push({call, number_++});
  }
  void End() override { EndCalls(UINT64_MAX); }

 private:
  struct Open {
    FunctionCall call;
    uint64_t number;
    // The next to end is on top; of those that end together, the innermost.
    friend bool operator<(const Open& a, const Open& b) {
      return a.call.end != b.call.end ? a.call.end > b.call.end
                                      : a.number < b.number;
    }
  };

  void EndCalls(uint64_t until) {
    while (!open_.empty() && open_.top().call.end <= until) {
      PutRecord(open_.top().call, 1, open_.top().call.end);
      open_.pop();
    }
  }

  void PutRecord(const FunctionCall& call, uint8_t kind, uint64_t tsc) {
    std::string& record = record_;
    record.clear();
    AppendLe<uint16_t>(0, &record);
    record += '\0';  // processor
    record += static_cast<char>(kind);
    AppendLe(call.function, &record);
    AppendLe(tsc, &record);
    AppendLe(call.tid, &record);
    AppendLe(call.pid, &record);
    AppendLe<uint64_t>(0, &record);
    out().Append(record);
  }

  std::priority_queue<Open> open_;
  uint64_t number_ = 0;
  std::string record_;
};

}  // namespace

std::unique_ptr<Exporter> MakeXrayFdrExporter(OutputBuffer& out,
                                              const ExportOptions& options) {
  return std::make_unique<FdrExporter>(out, options);
}

std::unique_ptr<Exporter> MakeXrayBasicExporter(OutputBuffer& out,
                                                const ExportOptions& options) {
  return std::make_unique<BasicExporter>(out, options);
}

}  // namespace tracefs
