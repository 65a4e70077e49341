#include "tracefs/tools/anon/trace_rewriter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tracefs/base/thread.h"
#include "tracefs/crypto/hash.h"

namespace tracefs::anonymize {
namespace {

using format::Frame;
using format::FrameHeader;
using format::ReadStep;
using format::Report;
using format::ReportKind;

// Blocks that are finished but not written, because one before them is not.
constexpr size_t kMaxWaitingPerThread = 3;
constexpr size_t kMaxWaitingBytes = size_t{128} << 20;

// The serial of the new trace: as random to others as any, and the same each
// time the same is done to the same trace.
format::Serial NewSerial(const format::Serial& serial, const Plan& plan) {
  SecretKey key;
  std::string message = "tracefs-anon-serial";
  message += plan.options().reveal ? '-' : '+';
  message += AsText(serial);
  message += PolicyText(plan.policy(), false);
  for (const auto& [domain, id] : plan.key_ids()) message += domain + id;
  for (const NumberSlot& slot : plan.numbers()) {
    HmacSha256(key.get(), slot.key.get(), key.get());
  }
  for (const TextSlot& slot : plan.texts()) {
    HmacSha256(key.get(), slot.key.get(), key.get());
  }
  Digest digest;
  HmacSha256(key.get(), AsBytes(message), digest);
  format::Serial made;
  std::copy_n(digest.begin(), made.size(), made.begin());
  return made;
}

class TraceRewriter {
 public:
  TraceRewriter(format::TraceReader* trace, const RewriteOptions& options,
                MapTables* maps, TraceSink& sink, RewriteCounts* counts)
      : options_(options),
        maps_(maps),
        sink_(sink),
        counts_(*counts),
        trace_(*trace) {
    trace_.mutable_context().report = [this](const Report& r) { Note(r); };
  }
  ~TraceRewriter() { trace_.mutable_context().report = nullptr; }

  Status Run(const PlanMaker& make_plan) {
    const uint64_t bytes_before = counts_.bytes_read;
    const Result<ReadStep> ready = trace_.ReadPreamble();
    if (!ready.ok()) return ready.status();
    if (!damage_.ok()) return damage_;
    bytes_before_ = bytes_before;
    bytes_read_ = trace_.stats().bytes;
    if (Status s = Begin(make_plan); !s.ok()) return s;
    const unsigned threads = std::max(1U, options_.threads);
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) {
      std::thread other;
      // Fewer do it as well.
      if (!StartThread(
               "tracefs-anon", [this] { Work(); }, &other)
               .ok())
        break;
      others.push_back(std::move(other));
    }
    Work();
    for (std::thread& thread : others) thread.join();
    if (!error_.ok()) return error_;
    if (!saw_final_ && !options_.salvage) {
      return Status::Corrupt(
          "the trace has no end: it was cut, or is still being written; "
          "--salvage takes what there is");
    }
    return Status::Ok();
  }

 private:
  struct Job {
    uint64_t index = 0;
    FrameHeader header;
    uint64_t offset = 0;
    std::vector<std::byte> payload;
  };

  // What is found wrong while blocks are read.
  void Note(const Report& report) {
    if (options_.salvage || !damage_.ok()) return;
    switch (report.kind) {
      case ReportKind::kDamaged:
      case ReportKind::kCut:
      case ReportKind::kGap:
      case ReportKind::kDuplicate:
        damage_ = Status::Corrupt(report.Text() + "; --salvage leaves it out");
        return;
      case ReportKind::kUnknownFrame:
        damage_ = Status::Invalid(
            "at byte " + std::to_string(report.offset) +
            " stands a block of kind " + std::to_string(report.number) +
            ", which a later version writes and no policy can cover; "
            "--salvage leaves it out");
        return;
      default:
        return;
    }
  }

  // Reads the header, makes the plan, and writes what stands before the first
  // block of operations.
  Status Begin(const PlanMaker& make_plan) {
    Job first;
    bool any = false;
    if (Status s = ReadJob(&first, &any); !s.ok()) return s;
    if (!any) return Status::Corrupt("the trace holds no block");
    Result<std::unique_ptr<format::PayloadDecoder>> decoder =
        trace_.MakeDecoder();
    if (!decoder.ok()) return decoder.status();
    format::SelfDescription description;
    std::vector<std::byte> block;
    const bool has_header =
        first.header.sequence == 0 &&
        (*decoder)->Decode(first.header, first.payload, &block).ok() &&
        ReadDescription(block, &description);
    if (!has_header) {
      // Why, once more: keys may be missing.
      if (first.header.sequence == 0) {
        const Status why =
            (*decoder)->Decode(first.header, first.payload, &block);
        if (!why.ok()) return why.Prefixed("block 0");
      }
      if (!options_.salvage) {
        return Status::Corrupt(
            "the trace has lost its header, block 0; --salvage goes on "
            "without");
      }
      description = {};
    }
    Result<std::unique_ptr<const Plan>> plan = make_plan(description);
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    serial_ = NewSerial(trace_.preamble().serial, *plan_);
    chain_ = WrittenChainFor(trace_.preamble().chain);
    counts_.left_out = chain_.left_out;
    const std::string preamble =
        format::EncodePreamble({.serial = serial_, .chain = chain_.Text()});
    if (Status s = Emit(AsBytes(preamble)); !s.ok()) return s;
    Result<std::unique_ptr<BlockRewriter>> rewriter =
        BlockRewriter::Create(plan_.get(), serial_, 0, maps_);
    if (!rewriter.ok()) return rewriter.status();
    ByteBuffer start;
    if (Status s = (*rewriter)->WriteStart(description, &start); !s.ok()) {
      return s.Prefixed("block 0");
    }
    ++counts_.messages;
    PayloadMaker payloads(chain_);
    ByteBuffer out;
    if (Status s = PutFrame(FrameHeader(), payloads, start.bytes(), &out);
        !s.ok()) {
      return s;
    }
    if (Status s = Emit(out.bytes()); !s.ok()) return s;
    if (!has_header) {
      first.index = jobs_++;
      pending_ = std::move(first);
    }
    return Status::Ok();
  }

  static bool ReadDescription(ByteSpan block,
                              format::SelfDescription* description) {
    format::MessageCursor in(block);
    format::Message message;
    return in.Next(&message) &&
           message.msg_id == static_cast<uint16_t>(format::MessageId::kStart) &&
           format::ReadStart(message.arguments, description);
  }

  // Appends the frame of a block to `out`.
  Status PutFrame(FrameHeader header, PayloadMaker& payloads, ByteSpan block,
                  ByteBuffer* out) const {
    const Result<ByteSpan> payload = payloads.Make(block);
    if (!payload.ok()) return payload.status();
    header.serial = serial_;
    header.kind = static_cast<uint16_t>(format::FrameKind::kMessages);
    std::array<std::byte, format::kFrameHeaderBytes> encoded;
    format::EncodeFrameHeader(encoded, header, *payload);
    out->Append(encoded.data(), encoded.size());
    out->Append(payload->data(), payload->size());
    return Status::Ok();
  }

  // The next block of messages; `*any` is false at the end.
  Status ReadJob(Job* job, bool* any) {
    *any = false;
    Frame frame;
    const Result<ReadStep> step = trace_.NextPayload(&frame);
    if (!step.ok()) return step.status();
    if (!damage_.ok()) return damage_;
    if (*step != ReadStep::kItem) return Status::Ok();
    job->header = frame.header;
    job->offset = frame.offset;
    job->payload.assign(frame.payload.begin(), frame.payload.end());
    *any = true;
    return Status::Ok();
  }

  bool NextJob(Job* job) {
    const std::lock_guard lock(read_mu_);
    if (stop_ || failed_) return false;
    if (pending_) {
      *job = *std::move(pending_);
      pending_.reset();
      return true;
    }
    bool any = false;
    const Status status = ReadJob(job, &any);
    bytes_read_ = trace_.stats().bytes;
    if (!status.ok()) Fail(status);
    if (!any || !status.ok()) {
      stop_ = true;
      return false;
    }
    job->index = jobs_++;
    return true;
  }

  // One thread: reads, rewrites and writes whatever is next.
  void Work() {
    Result<std::unique_ptr<format::PayloadDecoder>> decoder =
        trace_.MakeDecoder();
    Result<std::unique_ptr<BlockRewriter>> rewriter = BlockRewriter::Create(
        plan_.get(), serial_, options_.cache_entries, maps_);
    if (!decoder.ok() || !rewriter.ok()) {
      return Fail(decoder.ok() ? rewriter.status() : decoder.status());
    }
    Job job;
    std::vector<std::byte> block;
    PayloadMaker payloads(chain_);
    ByteBuffer rewritten;
    while (NextJob(&job)) {
      ByteBuffer out = TakeBuffer();
      rewritten.Clear();
      const uint64_t messages = (*rewriter)->messages();
      const uint64_t operations = (*rewriter)->operations();
      Status status = (*decoder)->Decode(job.header, job.payload, &block);
      if (status.ok()) {
        if (plan_->needs_order()) WaitForMapTurn(job.index);
        status = (*rewriter)->Rewrite(block, job.header.sequence, &rewritten);
      }
      if (plan_->needs_order()) PassMapTurn(job.index);
      if (status.ok()) {
        status = PutFrame(job.header, payloads, rewritten.bytes(), &out);
      }
      if (!status.ok()) {
        status =
            status.Prefixed("block " + std::to_string(job.header.sequence) +
                            " at byte " + std::to_string(job.offset));
        if (!options_.salvage || status.code() == StatusCode::kInvalid ||
            status.code() == StatusCode::kSystem) {
          return Fail(status);
        }
        out.Clear();  // nothing of it
      }
      const RewriteCounts more = {
          .messages = (*rewriter)->messages() - messages,
          .operations = (*rewriter)->operations() - operations};
      if (!Put(job.index, std::move(out), more)) return;
    }
    const std::lock_guard lock(write_mu_);
    saw_final_ |= (*rewriter)->saw_final();
    counts_.left_as_they_are += (*rewriter)->left_as_they_are();
  }

  // Values are numbered in the order of blocks, so blocks must take turns.
  void WaitForMapTurn(uint64_t index) {
    std::unique_lock lock(map_mu_);
    map_turn_changed_.wait(lock, [&] { return map_turn_ == index; });
  }
  void PassMapTurn(uint64_t index) {
    std::unique_lock lock(map_mu_);
    map_turn_changed_.wait(lock, [&] { return map_turn_ == index; });
    ++map_turn_;
    map_turn_changed_.notify_all();
  }

  ByteBuffer TakeBuffer() {
    const std::lock_guard lock(write_mu_);
    if (free_.empty()) return {};
    ByteBuffer buffer = std::move(free_.back());
    free_.pop_back();
    buffer.Clear();
    return buffer;
  }

  // Hands on a finished block: written now if it is its turn, with those that
  // waited for it, else kept. False if all is over.
  bool Put(uint64_t index, ByteBuffer out, const RewriteCounts& more) {
    std::unique_lock lock(write_mu_);
    const size_t limit = kMaxWaitingPerThread * options_.threads;
    written_.wait(lock, [&] {
      return index == next_ || !error_.ok() ||
             (waiting_.size() < limit && waiting_bytes_ < kMaxWaitingBytes);
    });
    if (!error_.ok()) return false;
    counts_.messages += more.messages;
    counts_.operations += more.operations;
    waiting_bytes_ += out.size();
    waiting_.emplace(index, std::move(out));
    if (writing_) return true;  // that thread goes on with this one
    writing_ = true;
    while (!waiting_.empty() && waiting_.begin()->first == next_ &&
           error_.ok()) {
      ByteBuffer buffer = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      waiting_bytes_ -= buffer.size();
      ++next_;
      written_.notify_all();
      lock.unlock();
      const Status status = Emit(buffer.bytes());
      lock.lock();
      if (!status.ok() && error_.ok()) {
        error_ = status;
        failed_ = true;
      }
      if (free_.size() < limit) free_.push_back(std::move(buffer));
      if (options_.progress) options_.progress(counts_);
    }
    writing_ = false;
    const bool go_on = error_.ok();
    lock.unlock();
    written_.notify_all();
    return go_on;
  }

  // Called by the writer, one at a time.
  Status Emit(ByteSpan bytes) {
    counts_.bytes_written += bytes.size();
    counts_.bytes_read = bytes_before_ + bytes_read_;
    return sink_.Write(bytes);
  }

  void Fail(const Status& status) {
    {
      const std::lock_guard lock(write_mu_);
      if (error_.ok()) error_ = status;
    }
    failed_ = true;
    written_.notify_all();
  }

  const RewriteOptions& options_;
  MapTables* const maps_;
  TraceSink& sink_;
  RewriteCounts& counts_;
  Status damage_;  // what reading blocks found
  uint64_t bytes_before_ = 0;
  std::unique_ptr<const Plan> plan_;
  WrittenChain chain_;
  format::Serial serial_{};

  // No thread holds two of the locks, but Fail under read_mu_ takes write_mu_.
  std::mutex read_mu_;
  format::TraceReader& trace_;  // guarded by read_mu_, as is all to the blank
                                // line
  uint64_t jobs_ = 0;
  std::optional<Job> pending_;
  bool stop_ = false;

  std::mutex write_mu_;
  std::condition_variable written_;
  uint64_t next_ = 0;  // guarded by write_mu_, as is all to the blank line
  std::map<uint64_t, ByteBuffer> waiting_;
  size_t waiting_bytes_ = 0;
  std::vector<ByteBuffer> free_;
  bool writing_ = false;
  bool saw_final_ = false;
  Status error_;

  std::mutex map_mu_;
  std::condition_variable map_turn_changed_;
  uint64_t map_turn_ = 0;  // guarded by map_mu_

  std::atomic<bool> failed_ = false;  // there is an error_
  std::atomic<uint64_t> bytes_read_ = 0;
};

}  // namespace

Status RewriteTrace(format::TraceReader* trace, const RewriteOptions& options,
                    const PlanMaker& make_plan, MapTables* maps,
                    TraceSink& sink, RewriteCounts* counts) {
  TraceRewriter rewriter(trace, options, maps, sink, counts);
  return rewriter.Run(make_plan).Prefixed(options.name);
}

}  // namespace tracefs::anonymize
