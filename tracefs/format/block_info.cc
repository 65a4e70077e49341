#include "tracefs/format/block_info.h"

#include "tracefs/format/argument_rows.h"

namespace tracefs::format {

bool WriteBlockHead(MessageWriter& out, const BlockHead& head) {
  out.Begin(static_cast<uint16_t>(MessageId::kBlock));
  out.Put<uint32_t>(ArgId::kTracerId, head.tracer_id);
  out.Put<uint64_t>(ArgId::kClockMonotonic, head.clock.monotonic_ns);
  out.Put<uint64_t>(ArgId::kClockReal, head.clock.real_ns);
  out.Put<uint64_t>(ArgId::kFirstTime, head.first_ns);
  out.Put<uint64_t>(ArgId::kLastTime, head.last_ns);
  out.Put<uint64_t>(ArgId::kWatermark, head.watermark_ns);
  out.Put<uint64_t>(ArgId::kEventCount, head.events);
  return out.End();
}

bool ReadBlockHead(ByteSpan arguments, BlockHead* head) {
  static constexpr ArgumentRow<BlockHead> kRows[] = {
      {ArgId::kTracerId, &Into<&BlockHead::tracer_id>::Take},
      {ArgId::kClockMonotonic,
       &Into<&BlockHead::clock, &ClockPair::monotonic_ns>::Take},
      {ArgId::kClockReal, &Into<&BlockHead::clock, &ClockPair::real_ns>::Take},
      {ArgId::kFirstTime, &Into<&BlockHead::first_ns>::Take},
      {ArgId::kLastTime, &Into<&BlockHead::last_ns>::Take},
      {ArgId::kWatermark, &Into<&BlockHead::watermark_ns>::Take},
      {ArgId::kEventCount, &Into<&BlockHead::events>::Take},
  };
  return TakeArguments(arguments, BuiltInWidths(), kRows, head);
}

namespace {

void PutOpTotals(MessageWriter& out, const std::vector<OpTotal>& totals) {
  for (const OpTotal& total : totals) {
    std::byte value[10];
    StoreLe<uint16_t>(value, total.msg_id);
    StoreLe<uint64_t>(value + 2, total.count);
    out.PutBytes(static_cast<uint16_t>(ArgId::kOpTotal), value);
  }
}

template <typename Record>
void TakeOpTotal(const Argument& argument, Record* record) {
  const ByteSpan value = argument.value;
  if (value.size() != 10 || record->op_totals.size() >= kMaxOpTotals) return;
  record->op_totals.push_back(
      {LoadLe<uint16_t>(value.data()), LoadLe<uint64_t>(value.data() + 2)});
}

}  // namespace

bool WriteLoss(MessageWriter& out, const LossRecord& loss) {
  out.Begin(static_cast<uint16_t>(MessageId::kLoss));
  out.Put<uint64_t>(ArgId::kLossCount, loss.count);
  out.PutText(ArgId::kLossReason, loss.reason);
  out.Put<uint64_t>(ArgId::kFirstTime, loss.first_ns);
  out.Put<uint64_t>(ArgId::kLastTime, loss.last_ns);
  PutOpTotals(out, loss.op_totals);
  return out.End();
}

void ReadLoss(ByteSpan arguments, LossRecord* loss) {
  static constexpr ArgumentRow<LossRecord> kRows[] = {
      {ArgId::kLossCount, &Into<&LossRecord::count>::Take},
      {ArgId::kLossReason, &Into<&LossRecord::reason>::Take},
      {ArgId::kFirstTime, &Into<&LossRecord::first_ns>::Take},
      {ArgId::kLastTime, &Into<&LossRecord::last_ns>::Take},
      {ArgId::kOpTotal, &TakeOpTotal<LossRecord>},
  };
  TakeArguments(arguments, BuiltInWidths(), kRows, loss);
}

bool WriteChange(MessageWriter& out, const ChangeRecord& change) {
  out.Begin(static_cast<uint16_t>(MessageId::kChange));
  out.Put<uint64_t>(ArgId::kFirstTime, change.from_ns);
  for (const auto& [key, value] : change.properties) {
    std::string text(key);
    text += '=';
    text += value;
    out.PutText(ArgId::kProperty, text);
  }
  return out.End();
}

void ReadChange(ByteSpan arguments, ChangeRecord* change) {
  static constexpr ArgumentRow<ChangeRecord> kRows[] = {
      {ArgId::kFirstTime, &Into<&ChangeRecord::from_ns>::Take},
      {ArgId::kProperty,
       [](const Argument& argument, ChangeRecord* record) {
         const std::string_view text = AsText(argument.value);
         const size_t equals = text.find('=');
         if (equals == std::string_view::npos ||
             record->properties.size() >= ChangeRecord::kMaxProperties) {
           return;
         }
         record->properties.emplace_back(text.substr(0, equals),
                                         text.substr(equals + 1));
       }},
  };
  TakeArguments(arguments, BuiltInWidths(), kRows, change);
}

bool WriteFinal(MessageWriter& out, const FinalRecord& final_record) {
  out.Begin(static_cast<uint16_t>(MessageId::kFinal));
  out.Put<uint32_t>(ArgId::kTracerId, final_record.tracer_id);
  out.Put<uint64_t>(ArgId::kEventCount, final_record.events);
  out.Put<uint64_t>(ArgId::kBlockCount, final_record.blocks);
  PutOpTotals(out, final_record.op_totals);
  for (const FinalRecord::LossTotal& total : final_record.loss_totals) {
    std::string value(8, '\0');
    StoreLe<uint64_t>(value.data(), total.count);
    value += total.reason;
    out.PutText(ArgId::kLossTotal, value);
  }
  out.PutText(ArgId::kEndReason, final_record.end_reason);
  out.Put<uint64_t>(ArgId::kClockMonotonic, final_record.clock.monotonic_ns);
  out.Put<uint64_t>(ArgId::kClockReal, final_record.clock.real_ns);
  return out.End();
}

void ReadFinal(ByteSpan arguments, FinalRecord* final_record) {
  static constexpr ArgumentRow<FinalRecord> kRows[] = {
      {ArgId::kTracerId, &Into<&FinalRecord::tracer_id>::Take},
      {ArgId::kEventCount, &Into<&FinalRecord::events>::Take},
      {ArgId::kBlockCount, &Into<&FinalRecord::blocks>::Take},
      {ArgId::kOpTotal, &TakeOpTotal<FinalRecord>},
      {ArgId::kLossTotal,
       [](const Argument& argument, FinalRecord* record) {
         const ByteSpan value = argument.value;
         if (value.size() < 8 ||
             record->loss_totals.size() >= FinalRecord::kMaxTotals) {
           return;
         }
         record->loss_totals.push_back({std::string(AsText(value.subspan(8))),
                                        LoadLe<uint64_t>(value.data())});
       }},
      {ArgId::kEndReason, &Into<&FinalRecord::end_reason>::Take},
      {ArgId::kClockMonotonic,
       &Into<&FinalRecord::clock, &ClockPair::monotonic_ns>::Take},
      {ArgId::kClockReal,
       &Into<&FinalRecord::clock, &ClockPair::real_ns>::Take},
  };
  TakeArguments(arguments, BuiltInWidths(), kRows, final_record);
}

}  // namespace tracefs::format
