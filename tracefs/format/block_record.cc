// BlockDecoder: the operation that a message tells of.
#include <algorithm>
#include <new>

#include "tracefs/base/clock.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

constexpr size_t kMaxDetail = 4096;  // bytes, of a text of a process

// What the decoder does with an argument of an operation.
enum class Slot : uint8_t {
  kUnknown,
  kNumber,
  kText,
  kTimeUsec,
  kTimeSec,
  kPath,
  kParentPath,
  kNewParentPath,
  kProcess,
  kAlarm,  // of ALARM, read elsewhere
  kState,  // likewise of STATE
};

struct SlotEntry {
  Slot slot = Slot::kUnknown;
  uint8_t index = 0;  // of the field
  bool is_signed = false;
};

const std::array<SlotEntry, 256>& Slots() {
  static const auto kSlots = [] {
    std::array<SlotEntry, 256> slots{};
    for (const FieldInfo& f : Fields()) {
      if (f.arg_id == 0) continue;
      slots[f.arg_id] = {IsNumeric(f.field) ? Slot::kNumber : Slot::kText,
                         static_cast<uint8_t>(Index(f.field)),
                         f.type == FieldType::kSigned};
    }
    const auto set = [&slots](ArgId id, Slot slot) {
      slots[static_cast<size_t>(id)].slot = slot;
    };
    set(ArgId::kTimeUsec, Slot::kTimeUsec);
    set(ArgId::kTimeSec, Slot::kTimeSec);
    set(ArgId::kPathId, Slot::kPath);
    set(ArgId::kParentPathId, Slot::kParentPath);
    set(ArgId::kNewParentPathId, Slot::kNewParentPath);
    set(ArgId::kProcessId, Slot::kProcess);
    for (size_t id = 0; id < slots.size(); ++id) {
      if (IsAlarmArgument(static_cast<uint16_t>(id))) {
        slots[id].slot = Slot::kAlarm;
      } else if (IsStateArgument(static_cast<uint16_t>(id))) {
        slots[id].slot = Slot::kState;
      }
    }
    return slots;
  }();
  return kSlots;
}

// An operation of which nothing is known yet.
Event& BeginRecord(Op op, bool before, Record* record) {
  // Default-initialised: the slots of absent fields stay as they are.
  Event& event = *::new (&record->event) Event;
  event.op = op;
  event.before = before;
  event.caller_resolved = true;
  event.attributes_resolved = true;
  event.syscall_resolved = true;
  event.details_resolved = true;
  record->time_resolution_ns = 0;
  record->real_ns = 0;
  record->text_present = 0;
  record->extra.clear();
  return event;
}

// What follows from its arguments.
void CompleteRecord(const ClockPair& clock, Record* record) {
  Event& event = record->event;
  if (event.Has(Field::kTime)) {
    if (record->time_resolution_ns == 0) record->time_resolution_ns = 1;
    record->real_ns = clock.ToReal(event.Get(Field::kTime));
    // No digit is shown that was not recorded.
    if (record->time_resolution_ns != 1) {
      record->real_ns -= record->real_ns % record->time_resolution_ns;
    }
  }
  // What failed has an errno, unless that was hidden.
  if (event.Has(Field::kResult) && !event.Has(Field::kErrno) &&
      static_cast<int64_t>(event.Get(Field::kResult)) >= 0) {
    event.Set(Field::kErrno, 0);
  }
  event.name = record->Text(Field::kName);
  for (const RequestText& of : kRequestTexts) {
    event.*of.text = record->Text(of.field);
  }
  event.data = AsBytes(record->Text(Field::kData));
}

// Keeps an argument that is not understood.
void KeepAside(const Argument& argument, Record* record) {
  if (record->extra.size() >= Record::kMaxExtra) return;
  record->extra.push_back({argument.id, argument.has_length, argument.value});
}

}  // namespace

uint32_t BlockDecoder::CheckPath(uint32_t path_id,
                                 size_t message_offset) const {
  if (path_id == 0 || path_id > paths_.size() ||
      paths_[path_id - 1].message_offset > message_offset) {
    return 0;
  }
  return path_id;
}

void BlockDecoder::DecodeAs(Op op, bool before, const Message& message,
                            Record* record) {
  Event& event = BeginRecord(op, before, record);
  event.resolver = this;
  record->msg_id = message.msg_id;
  record->tracer_id = head_.tracer_id;
  record->trace = trace_;
  record->block = this;

  const auto& slots = Slots();
  uint32_t process_id = 0;
  ArgumentCursor in(message.arguments, trace_->widths);
  Argument argument;
  while (in.Next(&argument)) {
    const SlotEntry entry =
        argument.id < slots.size() ? slots[argument.id] : SlotEntry{};
    uint64_t number = 0;
    // If not, opaque bytes have replaced it.
    const bool is_number = !argument.has_length &&
                           LoadNumber(argument.value, entry.is_signed, &number);
    switch (entry.slot) {
      case Slot::kNumber:
        if (!is_number) {
          trace_->stats.opaque |= uint64_t{1} << entry.index;
          break;
        }
        event.value[entry.index] = number;
        event.present |= uint64_t{1} << entry.index;
        continue;
      case Slot::kText:
        record->text[entry.index - kNumericFieldCount] = AsText(argument.value);
        record->text_present |= 1u << (entry.index - kNumericFieldCount);
        continue;
      case Slot::kTimeUsec:
        if (!is_number) break;
        event.Set(Field::kTime, number * kNsPerUs);
        record->time_resolution_ns = kNsPerUs;
        continue;
      case Slot::kTimeSec:
        if (!is_number) break;
        event.Set(Field::kTime, number * kNsPerSecond);
        record->time_resolution_ns = kNsPerSecond;
        continue;
      case Slot::kPath:
        if (!is_number) break;
        event.node = CheckPath(static_cast<uint32_t>(number), message.offset);
        continue;
      case Slot::kParentPath:
        if (!is_number) break;
        event.parent = CheckPath(static_cast<uint32_t>(number), message.offset);
        continue;
      case Slot::kNewParentPath:
        if (!is_number) break;
        event.new_parent =
            CheckPath(static_cast<uint32_t>(number), message.offset);
        continue;
      case Slot::kProcess:
        if (!is_number) break;
        process_id = static_cast<uint32_t>(number);
        continue;
      case Slot::kAlarm:
      case Slot::kState:
        // Read elsewhere, but in a message that has no such argument.
        if (message.msg_id == static_cast<uint16_t>(entry.slot == Slot::kAlarm
                                                        ? MessageId::kAlarm
                                                        : MessageId::kState)) {
          continue;
        }
        CountUnknownArgument(argument.id);
        break;
      case Slot::kUnknown:
        CountUnknownArgument(argument.id);
        break;
    }
    KeepAside(argument, record);
  }
  if (in.malformed()) {
    Malformed(ReportKind::kMalformedMessage, &trace_->stats.malformed_messages);
  }

  CompleteRecord(head_.clock, record);
  SetCaller(process_id, static_cast<uint32_t>(message.offset), record);
}

void BlockDecoder::SetCaller(uint32_t process_id, uint32_t message_offset,
                             Record* record) {
  Event& event = record->event;
  if (process_id != 0 && process_id <= processes_.size() &&
      processes_[process_id - 1] < message_offset) {
    CachedCaller& cached = callers_[process_id % callers_.size()];
    if (cached.id != process_id) {
      cached = {};
      cached.id = process_id;
      cached.info.serial = process_id;
      MessageCursor messages(
          ByteSpan(block_).subspan(processes_[process_id - 1]));
      Message message;
      messages.Next(&message);
      ArgumentCursor in(message.arguments, trace_->widths);
      Argument argument;
      while (in.Next(&argument)) {
        const FieldInfo* field = FieldByArgId(argument.id);
        if (argument.id == static_cast<uint16_t>(ArgId::kStartTime)) {
          cached.info.start_time = argument.As<uint64_t>();
        } else if (field == nullptr) {
          continue;
        } else if (field->field == Field::kComm) {
          const size_t size =
              std::min(argument.value.size(), cached.info.comm_bytes.size());
          std::memcpy(cached.info.comm_bytes.data(), argument.value.data(),
                      size);
          cached.info.comm_size = static_cast<uint8_t>(size);
          cached.comm = AsText(argument.value);
          cached.has_comm = true;
        } else if (field->source == FieldSource::kDetails) {
          const std::string text(AsText(argument.value).substr(0, kMaxDetail));
          if (field->field == Field::kExe) cached.details.exe = text;
          if (field->field == Field::kCgroup) cached.details.cgroup = text;
          if (field->field == Field::kTty) cached.details.tty = text;
          if (field->field == Field::kCmdline) cached.details.cmdline = text;
          cached.has_details = true;
        } else if (argument.is<uint32_t>()) {
          const auto value = argument.As<uint32_t>();
          if (field->field == Field::kPid) cached.info.pid = value;
          if (field->field == Field::kPpid) cached.info.ppid = value;
          if (field->field == Field::kSid) cached.info.sid = value;
          if (field->field == Field::kPgid) cached.info.pgid = value;
          if (IsNumeric(field->field)) cached.present |= Bit(field->field);
        } else if (IsNumeric(field->field)) {
          cached.opaque.push_back(
              {argument.id, argument.has_length, argument.value});
          trace_->stats.opaque |= Bit(field->field);
        }
      }
    }
    record->caller = cached.info;
    for (const ExtraArgument& opaque : cached.opaque) {
      if (record->extra.size() < Record::kMaxExtra) {
        record->extra.push_back(opaque);
      }
    }
    const auto fill = [&](Field f, uint32_t value) {
      if ((cached.present & Bit(f)) != 0 && !event.Has(f)) event.Set(f, value);
    };
    fill(Field::kPid, cached.info.pid);
    fill(Field::kPpid, cached.info.ppid);
    fill(Field::kSid, cached.info.sid);
    fill(Field::kPgid, cached.info.pgid);
    if (cached.has_comm && !record->HasText(Field::kComm)) {
      record->text[Record::TextIndex(Field::kComm)] = cached.comm;
      record->text_present |= 1u << Record::TextIndex(Field::kComm);
    }
    event.caller = &record->caller;
    if (cached.has_details) {
      for (const Field f :
           {Field::kExe, Field::kCgroup, Field::kTty, Field::kCmdline}) {
        const std::string* const text = cached.details.Find(f);
        if (text == nullptr || record->HasText(f)) continue;
        record->text[Record::TextIndex(f)] = *text;
        record->text_present |= 1u << Record::TextIndex(f);
      }
      event.details = &cached.details;
    }
  } else if (record->HasText(Field::kComm)) {
    record->caller = {};
    const std::string_view comm = record->Text(Field::kComm);
    const size_t size = std::min(comm.size(), record->caller.comm_bytes.size());
    std::memcpy(record->caller.comm_bytes.data(), comm.data(), size);
    record->caller.comm_size = static_cast<uint8_t>(size);
    event.caller = &record->caller;
  } else {
    return;
  }
  const auto value_of = [&event](Field f) {
    return static_cast<uint32_t>(event.GetOr0(f));
  };
  record->caller.tid = value_of(Field::kTid);
  record->caller.pid = value_of(Field::kPid);
  record->caller.ppid = value_of(Field::kPpid);
  record->caller.sid = value_of(Field::kSid);
  record->caller.pgid = value_of(Field::kPgid);
}

}  // namespace tracefs::format
