#include "tracefs/format/block_info.h"

#include "tracefs/format/constants.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs::format {
namespace {

constexpr uint64_t kSteadyNs = 1'000'000;
}  // namespace

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
  ArgumentCursor in(arguments, BuiltInWidths());
  Argument argument;
  while (in.Next(&argument)) {
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kTracerId:
        head->tracer_id = argument.As<uint32_t>();
        break;
      case ArgId::kClockMonotonic:
        head->clock.monotonic_ns = argument.As<uint64_t>();
        break;
      case ArgId::kClockReal:
        head->clock.real_ns = argument.As<uint64_t>();
        break;
      case ArgId::kFirstTime:
        head->first_ns = argument.As<uint64_t>();
        break;
      case ArgId::kLastTime:
        head->last_ns = argument.As<uint64_t>();
        break;
      case ArgId::kWatermark:
        head->watermark_ns = argument.As<uint64_t>();
        break;
      case ArgId::kEventCount:
        head->events = argument.As<uint64_t>();
        break;
      default:
        break;
    }
  }
  return !in.malformed();
}

ClockPair SteadyClockPair(const ClockPair& previous, const ClockPair& now) {
  const uint64_t predicted = previous.ToReal(now.monotonic_ns);
  const uint64_t error = predicted > now.real_ns ? predicted - now.real_ns
                                                 : now.real_ns - predicted;
  return error <= kSteadyNs ? previous : now;
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

void TakeOpTotal(ByteSpan value, std::vector<OpTotal>* totals) {
  if (value.size() != 10 || totals->size() >= kMaxOpTotals) return;
  totals->push_back(
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
  ArgumentCursor in(arguments, BuiltInWidths());
  Argument argument;
  while (in.Next(&argument)) {
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kLossCount:
        loss->count = argument.As<uint64_t>();
        break;
      case ArgId::kLossReason:
        loss->reason = AsText(argument.value);
        break;
      case ArgId::kFirstTime:
        loss->first_ns = argument.As<uint64_t>();
        break;
      case ArgId::kLastTime:
        loss->last_ns = argument.As<uint64_t>();
        break;
      case ArgId::kOpTotal:
        TakeOpTotal(argument.value, &loss->op_totals);
        break;
      default:
        break;
    }
  }
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
  ArgumentCursor in(arguments, BuiltInWidths());
  Argument argument;
  while (in.Next(&argument)) {
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kFirstTime:
        change->from_ns = argument.As<uint64_t>();
        break;
      case ArgId::kProperty: {
        const std::string_view text = AsText(argument.value);
        const size_t equals = text.find('=');
        if (equals == std::string_view::npos ||
            change->properties.size() >= ChangeRecord::kMaxProperties) {
          break;
        }
        change->properties.emplace_back(text.substr(0, equals),
                                        text.substr(equals + 1));
        break;
      }
      default:
        break;
    }
  }
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
  ArgumentCursor in(arguments, BuiltInWidths());
  Argument argument;
  while (in.Next(&argument)) {
    const ByteSpan value = argument.value;
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kTracerId:
        final_record->tracer_id = argument.As<uint32_t>();
        break;
      case ArgId::kEventCount:
        final_record->events = argument.As<uint64_t>();
        break;
      case ArgId::kBlockCount:
        final_record->blocks = argument.As<uint64_t>();
        break;
      case ArgId::kOpTotal:
        TakeOpTotal(value, &final_record->op_totals);
        break;
      case ArgId::kLossTotal:
        if (value.size() < 8 ||
            final_record->loss_totals.size() >= FinalRecord::kMaxTotals) {
          break;
        }
        final_record->loss_totals.push_back(
            {std::string(AsText(value.subspan(8))),
             LoadLe<uint64_t>(value.data())});
        break;
      case ArgId::kEndReason:
        final_record->end_reason = AsText(value);
        break;
      case ArgId::kClockMonotonic:
        final_record->clock.monotonic_ns = argument.As<uint64_t>();
        break;
      case ArgId::kClockReal:
        final_record->clock.real_ns = argument.As<uint64_t>();
        break;
      default:
        break;
    }
  }
}

}  // namespace tracefs::format
