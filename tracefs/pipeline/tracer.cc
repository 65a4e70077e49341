#include "tracefs/pipeline/tracer.h"

#include <algorithm>
#include <cerrno>

#include "tracefs/base/clock.h"
#include "tracefs/base/common_clock.h"
#include "tracefs/base/own_rights.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/frame.h"
#include "tracefs/survive/kept_text.h"

namespace tracefs {
namespace {

// Paper section 2.5 measured 4 KiB and 256 KiB; the larger is our default.
constexpr size_t kDefaultBlockBytes = 256 * 1024;
constexpr size_t kMaxBlockBytes = 16 * 1024 * 1024;

// Of a message without data: usually names, process and arguments; and with two
// paths as deep as a block defines them, or the largest attribute.
constexpr size_t kUsualMessage = 64 * 1024;
constexpr size_t kLongestMessage = 512 * 1024;
constexpr size_t kMostData = 1024 * 1024;  // of one request
// For LossPolicy::kFail: this many record at the same time, or as many as there
// were.
constexpr uint64_t kLeastThreads = 16;

size_t BlockBytes(size_t preferred) {
  if (preferred == 0) preferred = kDefaultBlockBytes;
  return std::clamp(preferred, BlockBuilder::kMinBlockBytes, kMaxBlockBytes);
}

}  // namespace

Tracer::Tracer(TracerParts parts, Watermark watermark)
    : parts_(std::move(parts)),
      watermark_(std::move(watermark)),
      block_bytes_(BlockBytes(parts_.output->PreferredBlockSize())),
      plans_(
          std::make_shared<OpPlans>(std::move(parts_.filter), parts_.assembly)),
      spare_(std::make_unique<Block>(block_bytes_)) {
  for (const auto& driver : parts_.assembly) {
    if (std::shared_ptr<EventCounter> counter = driver->counter()) {
      counters_.push_back(std::move(counter));
    } else {
      makes_messages_ = true;
    }
    keeps_data_ |= driver->Needs(Op::write_).data;
    process_needs_.records |= driver->process_needs().records;
    process_needs_.environment |= driver->process_needs().environment;
  }
  if (!process_needs_.records) return;
  processes_ = std::make_unique<ProcessBlock>(
      block_bytes_, process_needs_.environment, losses_,
      [this](Block& block) { Submit(block); });
}

void Tracer::RecordProcess(const ProcessRecord& record) {
  if (!processes_) return;
  processes_->Take(record);
  if (parts_.unbuffered) processes_->HandOn();
}

std::unique_ptr<BlockBuilder> Tracer::MakeBuilder(uint32_t source) const {
  builders_.fetch_add(1, std::memory_order_relaxed);
  auto builder =
      std::make_unique<BlockBuilder>(block_bytes_, source, parts_.id);
  for (const std::shared_ptr<EventCounter>& counter : counters_) {
    builder->shards().push_back(counter->MakeShard());
  }
  return builder;
}

void Tracer::TakeCounts(BlockBuilder& builder) const {
  for (size_t i = 0; i < counters_.size(); ++i) {
    counters_[i]->Take(*builder.shards()[i]);
  }
}

void Tracer::AddUpCounts() const {
  for (const std::shared_ptr<EventCounter>& counter : counters_) {
    counter->AddUp();
  }
}

bool Tracer::CountsDue(uint64_t now_ns) const {
  return std::any_of(counters_.begin(), counters_.end(),
                     [&](const auto& c) { return c->Due(now_ns); });
}

void Tracer::SubmitCounts(bool end) {
  if (counters_.empty()) return;
  const uint64_t now = MonotonicNs();
  std::lock_guard lock(mu_);
  // A key and its histograms may be longer than the tracer's blocks of events.
  Block block(format::kBlockInfoBytes + 2 * format::kAggregateMaxBytes);
  block.Reset();
  const auto hand_on = [&] {
    if (block.writer.size() == format::kBlockInfoBytes) return;
    NoteError(WriteLocked(block, /*last=*/false));
    block.Reset();
  };
  std::vector<bool> telling;
  for (const auto& counter : counters_) {
    telling.push_back(end || counter->Due(now));
  }
  SaveCounts(telling, end);
  for (size_t i = 0; i < counters_.size(); ++i) {
    if (!telling[i]) continue;
    counters_[i]->Report(now, end, [&](format::AggregateRecord record) {
      record.aggregate = static_cast<uint32_t>(i + 1);
      if (!format::WriteAggregate(block.writer, record)) {
        hand_on();
        static_cast<void>(format::WriteAggregate(block.writer, record));
      }
      told_ += record.count;
      if (!record.repeated) block.counted += record.count;
      // Periods of several counters may be of different length.
      block.first_ns = block.first_ns == 0
                           ? record.from_ns
                           : std::min(block.first_ns, record.from_ns);
      block.last_ns = std::max(block.last_ns, record.to_ns);
    });
  }
  hand_on();
  if (!end) SaveCounts({}, /*end=*/false);
}

void Tracer::SubmitOpenFiles(FileStates& states) {
  SubmitWords([&](const AssemblyDriver& driver, const auto& put) {
    driver.AtBegin(states, put);
  });
}

// What drivers write besides messages of operations, in blocks of their own.
void Tracer::SubmitWords(const Say& say) {
  constexpr size_t kRoom = size_t{256} << 10;
  std::unique_ptr<Block> block;
  const auto hand_on = [&] {
    if (block->writer.size() == format::kBlockInfoBytes) return;
    const std::lock_guard lock(mu_);
    NoteError(WriteLocked(*block, /*last=*/false));
    block->Reset();
  };
  for (const auto& driver : parts_.assembly) {
    say(*driver, [&](const AssemblyDriver::WriteMessage& write) {
      if (block == nullptr) {
        block = std::make_unique<Block>(kRoom);
        block->Reset();
      }
      if (write(block->writer)) return;
      hand_on();
      static_cast<void>(write(block->writer));
    });
  }
  if (block != nullptr) hand_on();
}

std::shared_ptr<const OpPlans> Tracer::PlansWith(
    std::unique_ptr<InputFilter> filter) const {
  return std::make_shared<OpPlans>(std::move(filter), parts_.assembly);
}

Status Tracer::Start() {
  std::lock_guard lock(mu_);
  TraceIdentity identity;
  identity.tracer_id = parts_.id;
  identity.serial = parts_.serial;
  identity.preamble = format::EncodePreamble(
      {.serial = identity.serial, .chain = parts_.output_chain});
  identity.lost = [this](const BlockInfo& info, const Status& why) {
    NoteLate(info, why);
  };
  identity.full = [this](bool full) {
    output_full_.store(full, std::memory_order_relaxed);
  };
  if (parts_.survives != nullptr) {
    identity.survives = &parts_.survives->output;
    if (parts_.survives->turns.load() != 0) {
      return Continue(std::move(identity));
    }
  }
  if (Status s = parts_.output->Initialize(identity); !s.ok()) return s;

  clock_ = parts_.header.clock;
  const std::vector<std::byte> start = format::EncodeStartBlock(parts_.header);
  const BlockInfo info{.sequence = next_sequence_,
                       .under_way = BytesUnderWay()};
  if (Status s = parts_.output->Write(start, info); !s.ok()) return s;
  ++next_sequence_;
  blocks_.Add(1);
  last_block_ns_ = MonotonicNs();
  NoteState(/*ended=*/false);
  // The header must be there if we are killed the next moment.
  return parts_.output->Flush();
}

bool Tracer::NamesDefined(const Event& event,
                          const BlockBuilder& builder) const {
  for (const auto& driver : parts_.assembly) {
    if (!driver->NamesDefined(event, builder)) return false;
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    if (!counters_[i]->KnowsNames(event, builder.shard(i))) return false;
  }
  return true;
}

bool Tracer::Assemble(Event& event, BlockBuilder& builder) const {
  for (const auto& driver : parts_.assembly) {
    const AssemblyNeeds needs = driver->Needs(event.op);
    if (needs.counts) continue;
    if (event.before ? !needs.before : !needs.after) continue;
    if (!driver->Assemble(event, builder)) return false;
  }
  return true;
}

bool Tracer::Record(Event& event, BlockBuilder& builder) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    builder.Mark();
    if (Assemble(event, builder)) {
      builder.Commit(event);
      return true;
    }
    builder.Rollback();
    if (builder.block().empty()) break;
    SubmitFrom(builder);
  }
  if (RecordAlone(event, builder)) return true;
  const uint64_t begin = event.Get(Field::kTime);
  losses_.Add(LossReason::kTooLarge, 1, begin, begin);
  return false;
}

// With the data that a request moved, or with long names, a message may be
// larger than a block: that must not hide it.
bool Tracer::RecordAlone(Event& event, BlockBuilder& builder) {
  return RecordIn(kUsualMessage, event, builder) ||
         RecordIn(kLongestMessage, event, builder);
}

// `room`: for all but the data.
bool Tracer::RecordIn(size_t room, Event& event, BlockBuilder& builder) {
  const size_t bytes = (event.data.size() + room) * parts_.assembly.size();
  if (bytes > kMaxBlockBytes) return false;
  std::unique_ptr<Block> usual = builder.Take(std::make_unique<Block>(bytes));
  builder.Mark();
  const bool fits = Assemble(event, builder);
  if (fits) {
    builder.Commit(event);
  } else {
    builder.Rollback();
  }
  const std::unique_ptr<Block> alone = builder.Take(std::move(usual));
  if (fits) Submit(*alone);
  return fits;
}

// Each thread that records may hold a block, and the message of an operation
// that was let through; filters may make more of both.
uint64_t Tracer::BytesUnderWay() const {
  if (parts_.when_full != LossPolicy::kFail) return 0;
  const uint64_t threads =
      std::max(kLeastThreads, builders_.load(std::memory_order_relaxed));
  return threads *
         (2 * block_bytes_ + kLongestMessage + (keeps_data_ ? kMostData : 0));
}

void Tracer::SubmitFrom(BlockBuilder& builder) {
  if (builder.block().empty()) return;
  std::lock_guard lock(mu_);
  spare_ = builder.Take(std::move(spare_));
  NoteError(WriteLocked(*spare_, /*last=*/false));
}

void Tracer::Submit(Block& block) {
  std::lock_guard lock(mu_);
  NoteError(WriteLocked(block, /*last=*/false));
}

void Tracer::SubmitLosses() {
  std::lock_guard lock(mu_);
  spare_->Reset();
  std::vector<Loss> put;
  PutLosses(spare_->writer, &put);
  for (const Loss& loss : put) ReturnLoss(loss);
  if (put.empty()) return;
  spare_->Reset();
  NoteError(WriteLocked(*spare_, /*last=*/false));
}

void Tracer::SubmitHeartbeat() {
  if (parts_.heartbeat_ns == 0) return;
  std::lock_guard lock(mu_);
  if (MonotonicNs() - last_block_ns_ < parts_.heartbeat_ns) return;
  spare_->Reset();
  NoteError(WriteLocked(*spare_, /*last=*/false));
}

void Tracer::SubmitChange(const format::ChangeRecord& change) {
  std::lock_guard lock(mu_);
  spare_->Reset();
  // A filter's text may be longer than a block; then only the fact is recorded.
  if (!format::WriteChange(spare_->writer, change)) {
    format::ChangeRecord fact = change;
    fact.properties.clear();
    static_cast<void>(format::WriteChange(spare_->writer, fact));
  }
  NoteError(WriteLocked(*spare_, /*last=*/false));
}

void Tracer::SubmitAlarm(const format::AlarmRecord& alarm,
                         const format::AlarmValues& values) {
  std::lock_guard lock(mu_);
  spare_->Reset();
  spare_->counted = 1;
  spare_->first_ns = spare_->last_ns = MonotonicNs();
  if (!format::WriteAlarm(spare_->writer, alarm, values)) {
    // Texts longer than a block: the ends of paths tell files apart.
    constexpr size_t kShort = 256;
    format::AlarmRecord less = alarm;
    less.actions.clear();
    less.ancestors.clear();
    less.paths.clear();
    less.not_known = {"ancestors", "paths"};
    format::AlarmValues some = values;
    for (auto& [field, text] : some.texts) {
      if (field == Field::kCmdline) text.resize(std::min(text.size(), kShort));
      if (text.size() > kShort) text.erase(0, text.size() - kShort);
    }
    static_cast<void>(format::WriteAlarm(spare_->writer, less, some));
  }
  NoteError(WriteLocked(*spare_, /*last=*/false));
}

bool Tracer::SubmitMessages(ByteSpan messages) {
  constexpr size_t kRoomForLosses = size_t{32} << 10;
  if (messages.empty() ||
      messages.size() > format::kMaxPayloadBytes - 2 * kRoomForLosses) {
    return false;
  }
  Block block(format::kBlockInfoBytes + messages.size() + kRoomForLosses);
  block.Reset();
  block.writer.PutMessages(messages);
  const std::lock_guard lock(mu_);
  const Status written = WriteLocked(block, /*last=*/false);
  NoteError(written);
  return written.ok();
}

void Tracer::ReturnLoss(const Loss& loss) {
  losses_.Return(loss);
  degraded_.Return(loss.by_kind);
}

void Tracer::PutLosses(format::MessageWriter& writer, std::vector<Loss>* put) {
  while (std::optional<Loss> loss = losses_.TakeUnreported()) {
    format::LossRecord record{.reason = LossReasonName(loss->reason),
                              .count = loss->count,
                              .first_ns = loss->first_ns,
                              .last_ns = loss->last_ns};
    if (loss->reason == LossReason::kDegraded) {
      loss->by_kind = degraded_.Take();
      record.op_totals = loss->by_kind;
    }
    if (!format::WriteLoss(writer, record)) {
      ReturnLoss(*loss);
      return;
    }
    put->push_back(*loss);
  }
}

// Completes the block and writes it. On failure its events are lost, and
// counted as such.
Status Tracer::WriteLocked(Block& block, bool last) {
  std::vector<Loss> reported;
  PutLosses(block.writer, &reported);
  format::MessageWriter front({block.memory.get(), format::kBlockInfoBytes});
  clock_ = CommonClockPair();
  const bool front_fits =
      format::WriteBlockHead(front, {.tracer_id = parts_.id,
                                     .clock = clock_,
                                     .first_ns = block.first_event_ns(),
                                     .last_ns = block.last_event_ns(),
                                     .watermark_ns = WatermarkNow(),
                                     .events = block.events});
  const BlockInfo info{.sequence = next_sequence_,
                       .events = block.events,
                       .counted = block.counted,
                       .first_ns = block.first_ns,
                       .last_ns = block.last_ns,
                       .last = last,
                       .source = block.source,
                       .under_way = BytesUnderWay()};
  // Before we pass it on: a stage may lose it at once.
  reported_.Sent(info.sequence, reported);
  if (parts_.when_full == LossPolicy::kDegrade) {
    degraded_.Sent(info.sequence, block.by_op);
  }
  // Also of a block that was refused: what it held is counted.
  const auto done = [&block] { block.kept.bytes.store(0); };
  block.kept.written_as.store(info.sequence + 1);
  TakeBackOwnRights();  // an output may have to open files
  Status status = front_fits
                      ? parts_.output->Write(block.writer.bytes(), info)
                      : Status::Invalid("no room for the block's own message");
  if (!status.ok()) {
    TakeBack(info.sequence);
    NoteRefused(info, status);
    done();
    return status;
  }
  write_failed_.store(false, std::memory_order_relaxed);
  ++next_sequence_;
  blocks_.Add(1);
  last_block_ns_ = MonotonicNs();
  recorded_.Add(block.events);
  for (size_t phase = 0; phase < totals_.size(); ++phase) {
    for (size_t op = 0; op < kOpCount; ++op) {
      if (const uint32_t count = block.by_op[phase][op]; count != 0) {
        totals_[phase][op].Add(count);
      }
    }
  }
  NoteState(last);
  done();
  return status;
}

uint64_t Tracer::WatermarkNow() const {
  // In this order: a record on its way into the block of processes holds back
  // the first until it is there.
  const uint64_t watermark = std::min(watermark_(), left_since_ns_);
  return processes_ ? std::min(watermark, processes_->since_ns()) : watermark;
}

// The losses that a lost block reported must be reported again.
void Tracer::TakeBack(uint64_t sequence) {
  for (const Loss& loss : reported_.Take(sequence)) ReturnLoss(loss);
}

void Tracer::NoteRefused(const BlockInfo& info, const Status& why) {
  if (info.events + info.counted == 0) return;
  LossReason reason = LossReasonOf(why);
  if (parts_.when_full == LossPolicy::kFail) {
    write_failed_.store(true, std::memory_order_relaxed);
  } else if (parts_.when_full == LossPolicy::kDegrade &&
             degraded_.Lost(info.sequence)) {
    reason = LossReason::kDegraded;
  }
  // Aggregated operations are counted by other keys than their kind.
  if (info.counted != 0) {
    losses_.Add(LossReasonOf(why), info.counted, info.first_ns, info.last_ns);
  }
  if (info.events != 0) {
    losses_.Add(reason, info.events, info.first_ns, info.last_ns);
  }
  NoteLosses();
}

void Tracer::NoteRefusal() {
  const uint64_t now = MonotonicNs();
  losses_.Add(LossReason::kRefused, 1, now, now);
  NoteLosses();
}

void Tracer::NoteLate(const BlockInfo& info, const Status& why) {
  TakeBack(info.sequence);
  late_events_.fetch_add(info.events, std::memory_order_relaxed);
  late_blocks_.fetch_add(1, std::memory_order_relaxed);
  NoteRefused(info, why);
  NoteError(why);
}

void Tracer::NoteError(const Status& status) {
  // Blocks dropped by policy are counted, and are not a fault.
  if (status.ok() || LossReasonOf(status) != LossReason::kOutputError) return;
  std::lock_guard lock(error_mu_);
  if (output_error_.ok()) output_error_ = status;
}

Status Tracer::output_error() const {
  std::lock_guard lock(error_mu_);
  return output_error_;
}

void Tracer::AddTo(TracerStats* stats) const {
  stats->id = parts_.id;
  stats->kind = parts_.kind;
  stats->name = parts_.name;
  stats->chain = parts_.output_chain;
  stats->unbuffered = parts_.unbuffered;
  stats->written = recorded();
  stats->blocks = blocks_.Get() - late_blocks_.load(std::memory_order_relaxed);
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    stats->lost[r] = losses_.Total(static_cast<LossReason>(r));
  }
  for (size_t op = 0; op < kOpCount; ++op) {
    stats->by_op[op] = totals_[0][op].Get();
  }
  for (const std::unique_ptr<StageProbe>& probe : parts_.probes) {
    const StageCounters& c = probe->counters;
    TracerStats::Stage& stage = stats->stages.emplace_back();
    stage.name = c.name;
    stage.blocks = c.blocks.Get();
    stage.bytes = c.bytes.Get();
    stage.refused = c.refused.Get();
    stage.ns = c.ns.Get();
    if (probe->stage != nullptr) stage.queue = probe->stage->Queue();
  }
  stats->output_error = output_error();
}

Status Tracer::Flush() {
  std::lock_guard lock(mu_);
  TakeBackOwnRights();
  return parts_.output->Flush();
}

Status Tracer::Stop(std::string_view end_reason) {
  if (processes_) processes_->End();
  SubmitCounts(/*end=*/true);
  TakeBackOwnRights();
  SubmitWords(
      [](const AssemblyDriver& driver, const auto& put) { driver.AtEnd(put); });
  std::lock_guard lock(mu_);
  // Blocks in transit may still be lost: the totals are known only afterwards.
  // Failures were noted block by block.
  static_cast<void>(parts_.output->Flush().ok());
  Block final_block(2 * format::kFinalMaxBytes);
  final_block.Reset();
  format::FinalRecord message;
  message.tracer_id = parts_.id;
  message.clock = clock_;
  message.events = recorded();
  message.end_reason = std::string(end_reason);
  message.blocks =
      blocks_.Get() - late_blocks_.load(std::memory_order_relaxed) + 1;
  for (size_t op = 0; op < kOpCount; ++op) {
    for (const bool before : {false, true}) {
      const uint64_t count = totals_[before ? 1 : 0][op].Get();
      if (count == 0) continue;
      message.op_totals.push_back(
          {format::OperationMessage(static_cast<Op>(op), before), count});
    }
  }
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    const auto reason = static_cast<LossReason>(r);
    if (const uint64_t count = losses_.Total(reason); count != 0) {
      message.loss_totals.push_back(
          {std::string(LossReasonName(reason)), count});
    }
  }
  std::vector<Loss> reported;
  PutLosses(final_block.writer, &reported);
  Status status = Status::Ok();
  if (!format::WriteFinal(final_block.writer, message)) {
    status = Status::Invalid("FINAL does not fit into a block");
  } else {
    status = WriteLocked(final_block, /*last=*/true);
  }
  if (parts_.survives != nullptr) {
    survive::ForgetText(*survive::Area::OfProcess(), parts_.survives->counts);
  }
  const Status released = parts_.output->Release();
  if (!status.ok()) return status;
  return released.ok() ? output_error() : released;
}

}  // namespace tracefs
