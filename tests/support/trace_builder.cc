#include "tests/support/trace_builder.h"

#include <algorithm>
#include <utility>

#include "tests/support/definitions.h"

namespace tracefs::test {

using format::ArgId;
using format::MessageId;
using format::MessageWriter;

TraceBuilder::TraceBuilder(std::string chain) : chain_(std::move(chain)) {
  for (size_t i = 0; i < serial_.size(); ++i) serial_[i] = std::byte(0xa0 + i);
}

format::TraceHeader TraceBuilder::DefaultHeader() {
  format::TraceHeader header;
  header.tracer_id = 1;
  header.clock = {.monotonic_ns = kMonotonicNs, .real_ns = kRealNs};
  header.Set("tracefs.version", "0.1.0");
  header.Set("host.name", "testbox");
  header.Set("visibility", "exact");
  header.Set("filter.text", "");
  header.Set("output.chain", "file");
  return header;
}

void TraceBuilder::Message(uint16_t msg_id,
                           const std::function<void(MessageWriter&)>& write) {
  if (scratch_.empty()) scratch_.resize(size_t{1} << 20);
  MessageWriter out(scratch_);
  out.Begin(msg_id);
  write(out);
  if (out.End()) messages_ += AsText(out.bytes());
}

void TraceBuilder::AddRaw(uint16_t msg_id,
                          const std::function<void(MessageWriter&)>& write) {
  Message(msg_id, write);
}

uint32_t TraceBuilder::DefinePath(uint32_t parent, std::string_view name) {
  std::vector<std::byte> memory(4096);
  MessageWriter out(memory);
  format::WriteDefPath(out, ++paths_, parent, name);
  messages_ += AsText(out.bytes());
  return paths_;
}

uint32_t TraceBuilder::DefineProcess(const CallerInfo& caller) {
  std::vector<std::byte> memory(4096);
  MessageWriter out(memory);
  format::WriteDefProcess(out, ++processes_, caller);
  messages_ += AsText(out.bytes());
  return processes_;
}

void TraceBuilder::CountEvent(uint64_t time_ns) {
  if (events_ == 0) block_first_ns_ = time_ns;
  ++events_;
  ++total_events_;
  block_first_ns_ = std::min(block_first_ns_, time_ns);
  block_last_ns_ = std::max(block_last_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
}

void TraceBuilder::Add(const Event& event, const References& references) {
  if (event.Has(Field::kTime)) CountEvent(event.Get(Field::kTime));
  Message(format::OperationMessage(event.op, event.before),
          [&](MessageWriter& out) {
            for (const FieldInfo& f : Fields()) {
              if (!IsNumeric(f.field) || !event.Has(f.field)) continue;
              const bool of_process =
                  f.field == Field::kPid || f.field == Field::kPpid ||
                  f.field == Field::kSid || f.field == Field::kPgid;
              if (of_process && references.process != 0) continue;
              const uint64_t value = event.Get(f.field);
              if (f.field == Field::kErrno && value == 0) continue;
              if (f.width == 1) {
                out.Put(f.arg_id, static_cast<uint8_t>(value));
              } else if (f.width == 4) {
                out.Put(f.arg_id, static_cast<uint32_t>(value));
              } else {
                out.Put(f.arg_id, value);
              }
            }
            const auto reference = [&out](ArgId id, uint32_t value) {
              if (value != 0) out.Put<uint32_t>(id, value);
            };
            reference(ArgId::kPathId, references.path);
            reference(ArgId::kParentPathId, references.parent);
            reference(ArgId::kNewParentPathId, references.new_parent);
            reference(ArgId::kProcessId, references.process);
            const auto text = [&out](Field f, std::string_view value) {
              if (!value.empty()) out.PutText(Info(f).arg_id, value);
            };
            text(Field::kName, event.name);
            text(Field::kNewName, event.new_name);
            text(Field::kTarget, event.target);
            text(Field::kXattrName, event.xattr_name);
            text(Field::kData, AsText(event.data));
          });
}

void TraceBuilder::AddLoss(const format::LossRecord& loss) {
  std::vector<std::byte> memory(4096);
  MessageWriter out(memory);
  format::WriteLoss(out, loss);
  messages_ += AsText(out.bytes());
  lost_events_ += loss.count;
}

std::string TraceBuilder::Frame(uint64_t sequence, std::string_view payload,
                                uint16_t kind) const {
  std::array<std::byte, format::kFrameHeaderBytes> head;
  format::EncodeFrameHeader(
      head, {.sequence = sequence, .serial = serial_, .kind = kind},
      AsBytes(payload));
  return std::string(AsText(head)) + std::string(payload);
}

void TraceBuilder::WriteStartOnce() {
  if (std::exchange(started_, true)) return;
  bytes_ = format::EncodePreamble({.serial = serial_, .chain = chain_});
  AppendFrame(AsText(format::EncodeStartBlock(header_)));
}

void TraceBuilder::AppendFrame(std::string_view payload, uint16_t kind) {
  WriteStartOnce();
  offsets_.push_back(bytes_.size());
  bytes_ += Frame(sequence_++, payload, kind);
}

void TraceBuilder::EndBlock(uint64_t watermark_ns) {
  WriteStartOnce();
  std::vector<std::byte> memory(format::kBlockInfoBytes);
  MessageWriter out(memory);
  format::WriteBlockHead(out, {.tracer_id = header_.tracer_id,
                               .clock = header_.clock,
                               .first_ns = block_first_ns_,
                               .last_ns = block_last_ns_,
                               .watermark_ns = watermark_ns,
                               .events = events_});
  AppendFrame(std::string(AsText(out.bytes())) + messages_);
  messages_.clear();
  paths_ = processes_ = 0;
  events_ = block_first_ns_ = block_last_ns_ = 0;
}

void TraceBuilder::Finish(std::string_view end_reason) {
  WriteStartOnce();
  format::FinalRecord final_record;
  final_record.tracer_id = header_.tracer_id;
  final_record.clock = header_.clock;
  final_record.events = total_events_;
  final_record.blocks = sequence_ + 1;
  final_record.end_reason = end_reason;
  if (lost_events_ != 0) {
    final_record.loss_totals.push_back({"queue_full", lost_events_});
  }
  std::vector<std::byte> memory(format::kFinalMaxBytes);
  MessageWriter out(memory);
  format::WriteFinal(out, final_record);
  messages_ += AsText(out.bytes());
  EndBlock();
}

const std::string& TraceBuilder::bytes() {
  WriteStartOnce();
  return bytes_;
}

std::string TraceBuilder::Take() {
  WriteStartOnce();
  offsets_.clear();
  return std::exchange(bytes_, {});
}

}  // namespace tracefs::test
