#include "tracefs/format/block_decoder.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>

#include "tracefs/base/clock.h"
#include "tracefs/event/system_call_names.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

constexpr int kMaxDepth = 2048;      // as in event.cc
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
};

const std::array<SlotEntry, 256>& Slots() {
  static const auto kSlots = [] {
    std::array<SlotEntry, 256> slots{};
    for (const FieldInfo& f : Fields()) {
      if (f.arg_id == 0) continue;
      slots[f.arg_id] = {IsNumeric(f.field) ? Slot::kNumber : Slot::kText,
                         static_cast<uint8_t>(Index(f.field))};
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

// "257 openat", one a line, as a header has it.
std::map<uint32_t, std::string> ReadCallNames(std::string_view table) {
  constexpr size_t kMaxCalls = 4096;
  constexpr size_t kMaxName = 64;
  std::map<uint32_t, std::string> calls;
  while (!table.empty() && calls.size() < kMaxCalls) {
    const size_t end = std::min(table.find('\n'), table.size());
    std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    uint32_t number = 0;
    const auto [stop, error] =
        std::from_chars(line.data(), line.data() + line.size(), number);
    line.remove_prefix(static_cast<size_t>(stop - line.data()));
    if (error != std::errc() || line.size() < 2 || line[0] != ' ') continue;
    line.remove_prefix(1);
    const bool plain = std::all_of(line.begin(), line.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (plain && line.size() <= kMaxName) calls[number] = line;
  }
  return calls;
}

// What is empty or 0 stays as it is known.
void Know(TraceContext* trace, uint32_t pid, uint32_t ppid,
          std::string_view comm) {
  if (pid == 0 || (trace->processes.size() >= KnownProcess::kMost &&
                   !trace->processes.contains(pid))) {
    return;
  }
  KnownProcess& known = trace->processes[pid];
  if (ppid != 0) known.ppid = ppid;
  if (!comm.empty()) {
    known.comm = comm.substr(0, sizeof CallerInfo::comm_bytes);
  }
}

// Of a process record: who began whom, and what it is called.
void Learn(const Message& message, TraceContext* trace) {
  ProcessRecord record;
  record.kind = *ProcessKindOf(message.msg_id);
  if (record.kind == ProcessRecord::Kind::kPipes) return;  // it has no names
  if (!ReadProcessRecord(message.arguments, trace->widths, &record)) return;
  if (record.kind != ProcessRecord::Kind::kFork) {
    Know(trace, record.process.pid, record.ppid, record.comm);
    return;
  }
  if (record.child.pid == record.process.pid) return;  // a thread
  const auto parent = trace->processes.find(record.process.pid);
  const std::string comm =
      parent != trace->processes.end() ? parent->second.comm : "";
  Know(trace, record.child.pid, record.process.pid, comm);
}

bool IsOperation(uint16_t msg_id) {
  bool before;
  return OperationOf(msg_id, &before).has_value();
}

// Messages that have their place in time, which Next gives.
bool IsTimed(uint16_t msg_id) {
  return IsOperation(msg_id) || ProcessKindOf(msg_id).has_value();
}

}  // namespace

std::string TraceContext::NameOfMessage(uint16_t msg_id) const {
  const auto found = description.messages.find(msg_id);
  return found == description.messages.end() ? MessageName(msg_id)
                                             : found->second;
}

std::string TraceContext::NameOfArgument(uint16_t arg_id) const {
  const auto found = description.arguments.find(arg_id);
  if (found != description.arguments.end()) return found->second.name;
  const ArgumentInfo* const known = FindArgument(arg_id);
  return known != nullptr ? std::string(known->name)
                          : "ARG_" + std::to_string(arg_id);
}

std::string_view TraceContext::CallName(uint64_t number) const {
  if (number > UINT32_MAX) return {};
  const auto call = static_cast<uint32_t>(number);
  const auto found = calls.find(call);
  if (found != calls.end()) return found->second;
  return calls.empty() ? SystemCallNameOf(call) : std::string_view();
}

ExtraValue Interpret(const TraceContext& trace, const ExtraArgument& extra) {
  ExtraValue value;
  const auto found = trace.description.arguments.find(extra.id);
  const bool described = found != trace.description.arguments.end();
  const auto type = described ? static_cast<FieldType>(found->second.type)
                              : FieldType::kBytes;
  if (!extra.has_length &&
      LoadNumber(extra.value, type == FieldType::kSigned, &value.number)) {
    value.kind = type == FieldType::kSigned ? ExtraValue::Kind::kSigned
                                            : ExtraValue::Kind::kUnsigned;
  } else if (type == FieldType::kName || type == FieldType::kText) {
    value.kind = ExtraValue::Kind::kText;
  }
  return value;
}

const ExtraArgument* OpaqueValue(const Record& record, Field field) {
  if (record.extra.empty()) return nullptr;
  for (const ExtraArgument& extra : record.extra) {
    if (extra.id == Info(field).arg_id) return &extra;
  }
  return nullptr;
}

Outcome OutcomeOf(const Record& record) {
  if (record.event.before) return Outcome::kUnknown;
  if (record.event.Has(Field::kErrno)) {
    return record.event.Get(Field::kErrno) == 0 ? Outcome::kSuccess
                                                : Outcome::kFailure;
  }
  // It failed, and why is hidden.
  const bool failed = record.event.Has(Field::kResult) ||
                      OpaqueValue(record, Field::kErrno) != nullptr;
  return failed ? Outcome::kFailure : Outcome::kUnknown;
}

// --- Opening ---------------------------------------------------------------

bool BlockDecoder::Open(std::vector<std::byte> block, uint64_t sequence,
                        uint64_t offset) {
  block_ = std::move(block);
  sequence_ = sequence;
  offset_ = offset;
  MessageCursor in(block_);
  if (!ReadFirstMessage(in)) {
    ++trace_->stats.undecodable_blocks;
    Report report = MakeReport(ReportKind::kUndecodable);
    report.detail = "it does not start with a BLOCK message";
    trace_->Tell(report);
    return false;
  }
  const bool passed_over =
      trace_->from_real_ns != 0 && head_.events != 0 &&
      head_.clock.ToReal(head_.last_ns) < trace_->from_real_ns;
  bool ordered = true;
  uint64_t last_time = 0;
  Message message;
  while (in.Next(&message)) {
    if (passed_over) {
      if (message.msg_id == static_cast<uint16_t>(MessageId::kFinal)) {
        ReadOtherMessage(message);
      }
      continue;
    }
    if (IsOperation(message.msg_id)) {
      ++trace_->stats.events;
    } else if (ProcessKindOf(message.msg_id)) {
      ++trace_->stats.process_records;
      Learn(message, trace_);
      if (!trace_->process) continue;
    } else {
      ReadOtherMessage(message);
      continue;
    }
    uint64_t time;
    if (!TimeOf(message, &time)) continue;
    ordered = ordered && time >= last_time;
    last_time = time;
  }
  if (in.malformed()) {
    Malformed(ReportKind::kMalformedBlock, &trace_->stats.malformed_blocks);
  }
  if (passed_over) return true;
  if (ordered) {
    cursor_.emplace(block_);
  } else {
    BuildIndex();
  }
  next_time_ = head_.first_ns;
  GoToNext();
  return true;
}

bool BlockDecoder::ReadFirstMessage(MessageCursor& in) {
  Message message;
  if (!in.Next(&message)) return false;
  switch (static_cast<MessageId>(message.msg_id)) {
    case MessageId::kStart: {
      SelfDescription& description = trace_->description;
      if (description.messages.empty()) {  // the first one counts
        if (!ReadStart(message.arguments, &description)) {
          Malformed(ReportKind::kMalformedMessage,
                    &trace_->stats.malformed_messages);
        }
        trace_->calls = ReadCallNames(description.header.Get("syscalls"));
        for (const auto& [id, argument] : description.arguments) {
          trace_->widths.Set(id, argument.width);
        }
      }
      head_.tracer_id = description.header.tracer_id;
      head_.clock = description.header.clock;
      return true;
    }
    case MessageId::kBlock:
      if (!ReadBlockHead(message.arguments, &head_)) {
        Malformed(ReportKind::kMalformedMessage,
                  &trace_->stats.malformed_messages);
      }
      return true;
    default:
      return false;
  }
}

void BlockDecoder::ReadOtherMessage(const Message& message) {
  ReadStats& stats = trace_->stats;
  switch (static_cast<MessageId>(message.msg_id)) {
    case MessageId::kDefPath:
      DefinePath(message);
      return;
    case MessageId::kDefProcess:
      DefineProcess(message);
      return;
    case MessageId::kLoss: {
      LossRecord loss;
      ReadLoss(message.arguments, &loss);
      stats.lost_events += loss.count;
      auto found = stats.losses.find(loss.reason);
      if (found == stats.losses.end()) {
        const bool full = stats.losses.size() >= ReadStats::kMaxReasons;
        found = stats.losses
                    .try_emplace(full ? "other"
                                      : std::string(loss.reason.substr(0, 64)))
                    .first;
      }
      found->second += loss.count;
      for (const OpTotal& total : loss.op_totals) {
        if (stats.lost_messages.size() >= ReadStats::kMaxReasons &&
            !stats.lost_messages.contains(total.msg_id)) {
          continue;
        }
        stats.lost_messages[total.msg_id] += total.count;
      }
      Report report = MakeReport(ReportKind::kLoss);
      report.count = loss.count;
      report.detail = loss.reason;
      trace_->Tell(report);
      return;
    }
    case MessageId::kChange: {
      ChangeRecord change;
      ReadChange(message.arguments, &change);
      for (const auto& [key, value] : change.properties) {
        const std::string text = std::string(key) + '=' + std::string(value);
        Report report = MakeReport(ReportKind::kChange);
        report.detail = text;
        trace_->Tell(report);
      }
      return;
    }
    case MessageId::kAlarm: {
      ++stats.alarms;
      if (!trace_->alarm) return;
      AlarmRecord alarm;
      if (!ReadAlarm(message.arguments, trace_->widths, &alarm)) {
        Malformed(ReportKind::kMalformedMessage, &stats.malformed_messages);
      }
      Record record;
      DecodeAs(alarm.op.value_or(Op{}), /*before=*/false, message, &record);
      alarm.tracer_id = head_.tracer_id;
      alarm.operation = &record;
      trace_->alarm(alarm);
      return;
    }
    case MessageId::kState: {
      ++stats.states;
      if (!trace_->state) return;
      StateRecord state;
      if (!ReadState(message.arguments, trace_->widths, &state)) {
        Malformed(ReportKind::kMalformedMessage, &stats.malformed_messages);
      }
      Record record;
      DecodeAs(Op::statx_, /*before=*/false, message, &record);
      state.file = &record;
      trace_->state(state);
      return;
    }
    case MessageId::kAggregate: {
      ++stats.aggregates;
      if (!trace_->aggregate) return;
      AggregateRecord record;
      if (!ReadAggregate(message.arguments, trace_->widths, &record)) {
        Malformed(ReportKind::kMalformedMessage, &stats.malformed_messages);
      }
      record.tracer_id = head_.tracer_id;
      record.real_from_ns = head_.clock.ToReal(record.from_ns);
      record.real_to_ns = head_.clock.ToReal(record.to_ns);
      trace_->aggregate(record);
      return;
    }
    case MessageId::kFinal:
      has_final_ = true;
      stats.final_record.emplace();
      ReadFinal(message.arguments, &*stats.final_record);
      return;
    case MessageId::kStart:
    case MessageId::kBlock:
      return;  // once is enough
    default:
      CountUnknownMessage(message.msg_id);
  }
}

void BlockDecoder::DefinePath(const Message& message) {
  PathDefinition path = {static_cast<uint32_t>(message.offset), 0, 0, 0};
  uint32_t id = 0;
  ArgumentCursor in(message.arguments, trace_->widths);
  Argument argument;
  while (in.Next(&argument)) {
    if (argument.id == static_cast<uint16_t>(ArgId::kPathId)) {
      id = argument.As<uint32_t>();
    } else if (argument.id == static_cast<uint16_t>(ArgId::kParentPathId)) {
      path.parent = argument.As<uint32_t>();
      if (path.parent == 0) path.parent = kUndefined;
    } else if (argument.id == Info(Field::kName).arg_id) {
      path.name_offset =
          static_cast<uint32_t>(argument.value.data() - block_.data());
      path.name_size = static_cast<uint32_t>(argument.value.size());
    }
  }
  if (in.malformed()) {
    Malformed(ReportKind::kMalformedMessage, &trace_->stats.malformed_messages);
  }
  if (id != paths_.size() + 1) {
    Malformed(ReportKind::kBadDefinition, &trace_->stats.bad_definitions);
    return;
  }
  if (path.parent > paths_.size()) path.parent = kUndefined;
  paths_.push_back(path);
}

void BlockDecoder::DefineProcess(const Message& message) {
  uint32_t id = 0;
  uint32_t pid = 0;
  uint32_t ppid = 0;
  std::string_view comm;
  ArgumentCursor in(message.arguments, trace_->widths);
  Argument argument;
  while (in.Next(&argument)) {
    if (argument.id == static_cast<uint16_t>(ArgId::kProcessId)) {
      id = argument.As<uint32_t>();
    } else if (argument.id == Info(Field::kPid).arg_id) {
      pid = argument.is<uint32_t>() ? argument.As<uint32_t>() : 0;
    } else if (argument.id == Info(Field::kPpid).arg_id) {
      ppid = argument.is<uint32_t>() ? argument.As<uint32_t>() : 0;
    } else if (argument.id == Info(Field::kComm).arg_id) {
      comm = AsText(argument.value).substr(0, sizeof CallerInfo::comm_bytes);
    }
  }
  if (in.malformed()) {
    Malformed(ReportKind::kMalformedMessage, &trace_->stats.malformed_messages);
  }
  if (pid != 0 && ppid != 0) {
    Know(trace_, pid, ppid, comm);
  }
  if (id != processes_.size() + 1) {
    Malformed(ReportKind::kBadDefinition, &trace_->stats.bad_definitions);
    return;
  }
  processes_.push_back(static_cast<uint32_t>(message.offset));
}

void BlockDecoder::CountUnknownMessage(uint16_t msg_id) {
  if (++trace_->stats.unknown_messages[msg_id] != 1) return;
  if (!trace_->report) return;
  Report report = MakeReport(ReportKind::kUnknownMessage);
  const std::string name = trace_->NameOfMessage(msg_id);
  report.number = msg_id;
  report.detail = name;
  trace_->Tell(report);
}

void BlockDecoder::CountUnknownArgument(uint16_t arg_id) {
  if (++trace_->stats.unknown_arguments[arg_id] != 1) return;
  if (!trace_->report) return;
  Report report = MakeReport(ReportKind::kUnknownArgument);
  const std::string name = trace_->NameOfArgument(arg_id);
  report.number = arg_id;
  report.detail = name;
  trace_->Tell(report);
}

void BlockDecoder::Malformed(ReportKind kind, uint64_t* counter) {
  ++*counter;
  trace_->Tell(MakeReport(kind));
}

size_t BlockDecoder::footprint() const {
  return sizeof *this + block_.capacity() +
         paths_.capacity() * sizeof(PathDefinition) +
         processes_.capacity() * sizeof(uint32_t) +
         index_.capacity() * sizeof(IndexEntry);
}

// --- Order -----------------------------------------------------------------

bool BlockDecoder::TimeOf(const Message& message, uint64_t* time) const {
  bool found = false;
  ArgumentCursor in(message.arguments, trace_->widths);
  Argument argument;
  while (in.Next(&argument)) {
    uint64_t factor;
    if (argument.id == Info(Field::kTime).arg_id) {
      factor = 1;
    } else if (argument.id == static_cast<uint16_t>(ArgId::kTimeUsec)) {
      factor = kNsPerUs;
    } else if (argument.id == static_cast<uint16_t>(ArgId::kTimeSec)) {
      factor = kNsPerSecond;
    } else {
      continue;
    }
    if (argument.has_length || !LoadNumber(argument.value, false, time)) {
      continue;
    }
    *time *= factor;  // a hostile one may wrap; it is only an order
    found = true;
    break;  // writers put it first
  }
  return found;
}

void BlockDecoder::BuildIndex() {
  uint64_t time = head_.first_ns;
  MessageCursor in(block_);
  Message message;
  while (in.Next(&message)) {
    if (!IsTimed(message.msg_id)) continue;
    TimeOf(message, &time);
    if (!IsDue(message.msg_id)) continue;
    index_.push_back({time, static_cast<uint32_t>(message.offset)});
  }
  std::stable_sort(
      index_.begin(), index_.end(),
      [](const IndexEntry& a, const IndexEntry& b) { return a.time < b.time; });
}

void BlockDecoder::GoToNext() {
  if (!cursor_) {
    has_next_ = index_at_ < index_.size();
    if (!has_next_) return;
    const IndexEntry& entry = index_[index_at_++];
    MessageCursor in(ByteSpan(block_).subspan(entry.offset));
    in.Next(&next_);
    next_.offset = entry.offset;
    next_time_ = entry.time;
    return;
  }
  do {
    has_next_ = cursor_->Next(&next_);
  } while (has_next_ && !IsDue(next_.msg_id));
  if (has_next_) TimeOf(next_, &next_time_);
}

// --- Decoding --------------------------------------------------------------

bool BlockDecoder::IsDue(uint16_t msg_id) const {
  return trace_->Wants(msg_id) ||
         (trace_->process && ProcessKindOf(msg_id).has_value());
}

bool BlockDecoder::Next(Record* record) {
  const std::optional<ProcessRecord::Kind> kind = ProcessKindOf(next_.msg_id);
  if (kind) {
    HandOutProcess(*kind);
  } else {
    Decode(next_, record);
  }
  GoToNext();
  return !kind;
}

void BlockDecoder::HandOutProcess(ProcessRecord::Kind kind) {
  ProcessRecord process;
  process.kind = kind;
  if (!ReadProcessRecord(next_.arguments, trace_->widths, &process)) {
    Malformed(ReportKind::kMalformedMessage, &trace_->stats.malformed_messages);
  }
  process.time_ns = next_time_;
  process.real_ns = head_.clock.ToReal(next_time_);
  process.tracer_id = head_.tracer_id;
  trace_->process(process);
}

uint32_t BlockDecoder::CheckPath(uint32_t path_id,
                                 size_t message_offset) const {
  if (path_id == 0 || path_id > paths_.size() ||
      paths_[path_id - 1].message_offset > message_offset) {
    return 0;
  }
  return path_id;
}

void BlockDecoder::Decode(const Message& message, Record* record) {
  bool before = false;
  const Op op = *OperationOf(message.msg_id, &before);
  DecodeAs(op, before, message, record);
}

void BlockDecoder::DecodeAs(Op op, bool before, const Message& message,
                            Record* record) {
  // Default-initialised: the slots of absent fields stay as they are.
  Event& event = *::new (&record->event) Event;
  event.op = op;
  event.before = before;
  event.caller_resolved = true;
  event.attributes_resolved = true;
  event.syscall_resolved = true;
  event.details_resolved = true;
  event.resolver = this;
  record->msg_id = message.msg_id;
  record->tracer_id = head_.tracer_id;
  record->time_resolution_ns = 0;
  record->real_ns = 0;
  record->text_present = 0;
  record->extra.clear();
  record->trace = trace_;
  record->block = this;

  const auto& slots = Slots();
  const auto& fields = Fields();
  uint32_t process_id = 0;
  ArgumentCursor in(message.arguments, trace_->widths);
  Argument argument;
  while (in.Next(&argument)) {
    const SlotEntry entry =
        argument.id < slots.size() ? slots[argument.id] : SlotEntry{};
    uint64_t number = 0;
    const bool elsewhere =
        entry.slot == Slot::kAlarm || entry.slot == Slot::kState;
    if (elsewhere &&
        message.msg_id == static_cast<uint16_t>(entry.slot == Slot::kAlarm
                                                    ? MessageId::kAlarm
                                                    : MessageId::kState)) {
      continue;
    }
    if (entry.slot != Slot::kText && entry.slot != Slot::kUnknown &&
        !elsewhere) {
      const bool is_signed = entry.slot == Slot::kNumber &&
                             fields[entry.index].type == FieldType::kSigned;
      if (argument.has_length ||
          !LoadNumber(argument.value, is_signed, &number)) {
        // Replaced by opaque bytes.
        if (entry.slot == Slot::kNumber) {
          trace_->stats.opaque |= uint64_t{1} << entry.index;
        }
        if (record->extra.size() < Record::kMaxExtra) {
          record->extra.push_back(
              {argument.id, argument.has_length, argument.value});
        }
        continue;
      }
    }
    switch (entry.slot) {
      case Slot::kNumber:
        event.value[entry.index] = number;
        event.present |= uint64_t{1} << entry.index;
        break;
      case Slot::kText:
        record->text[entry.index - kNumericFieldCount] = AsText(argument.value);
        record->text_present |= 1u << (entry.index - kNumericFieldCount);
        break;
      case Slot::kTimeUsec:
        event.Set(Field::kTime, number * kNsPerUs);
        record->time_resolution_ns = kNsPerUs;
        break;
      case Slot::kTimeSec:
        event.Set(Field::kTime, number * kNsPerSecond);
        record->time_resolution_ns = kNsPerSecond;
        break;
      case Slot::kPath:
        event.node = CheckPath(static_cast<uint32_t>(number), message.offset);
        break;
      case Slot::kParentPath:
        event.parent = CheckPath(static_cast<uint32_t>(number), message.offset);
        break;
      case Slot::kNewParentPath:
        event.new_parent =
            CheckPath(static_cast<uint32_t>(number), message.offset);
        break;
      case Slot::kProcess:
        process_id = static_cast<uint32_t>(number);
        break;
      case Slot::kAlarm:  // in a message that has no such argument
      case Slot::kState:
      case Slot::kUnknown:
        CountUnknownArgument(argument.id);
        if (record->extra.size() < Record::kMaxExtra) {
          record->extra.push_back(
              {argument.id, argument.has_length, argument.value});
        }
        break;
    }
  }
  if (in.malformed()) {
    Malformed(ReportKind::kMalformedMessage, &trace_->stats.malformed_messages);
  }

  if (event.Has(Field::kTime)) {
    if (record->time_resolution_ns == 0) record->time_resolution_ns = 1;
    record->real_ns = head_.clock.ToReal(event.Get(Field::kTime));
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
    return event.Has(f) ? static_cast<uint32_t>(event.Get(f)) : 0;
  };
  record->caller.tid = value_of(Field::kTid);
  record->caller.pid = value_of(Field::kPid);
  record->caller.ppid = value_of(Field::kPpid);
  record->caller.sid = value_of(Field::kSid);
  record->caller.pgid = value_of(Field::kPgid);
}

// --- Names -----------------------------------------------------------------

bool BlockDecoder::LinkOf(uint64_t node, NodeLink* link) {
  if (node == 0 || node > paths_.size()) return false;
  const PathDefinition& path = paths_[node - 1];
  link->parent = path.parent;  // kUndefined is not a node either
  link->parent_version = 0;
  link->name.Set(
      AsText(ByteSpan(block_).subspan(path.name_offset, path.name_size)));
  return true;
}

void BlockDecoder::ForEachName(uint64_t node, void* context,
                               void (*visit)(void* context,
                                             std::string_view name)) {
  NodeLink link;
  if (!LinkOf(node, &link) || link.parent == 0) return;
  visit(context, link.name.view());
}

bool BlockDecoder::ForEachAncestor(Event& event, void* context,
                                   bool (*visit)(void* context, uint32_t pid,
                                                 std::string_view comm)) {
  if (!event.Has(Field::kPpid)) return false;
  constexpr int kMaxAncestors = 64;
  auto pid = static_cast<uint32_t>(event.Get(Field::kPpid));
  for (int depth = 0; depth < kMaxAncestors; ++depth) {
    const auto found = trace_->processes.find(pid);
    const bool known = found != trace_->processes.end();
    const std::string_view comm = known ? found->second.comm : "";
    if (!visit(context, pid, comm)) return true;
    if (pid <= 1) return true;
    if (!known) return false;
    pid = found->second.ppid;
  }
  return false;
}

std::string_view BlockDecoder::Path(uint64_t path_id, std::string_view name,
                                    PathBuffer& buffer) const {
  char* const begin = buffer.bytes.data();
  char* const end = begin + buffer.bytes.size();
  char* front = end;
  const auto prepend = [&](std::string_view component) {
    if (static_cast<size_t>(front - begin) < component.size() + 1) {
      return false;
    }
    front -= component.size();
    std::memcpy(front, component.data(), component.size());
    *--front = '/';
    return true;
  };
  const auto view = [&] {
    return std::string_view(front, static_cast<size_t>(end - front));
  };
  if (!name.empty() && !prepend(name)) return view();
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (path_id == 0 || path_id > paths_.size()) {
      return depth == 0 ? std::string_view() : view();
    }
    const PathDefinition& path = paths_[path_id - 1];
    if (path.parent == 0) {
      if (front == end) prepend("");
      return view();
    }
    const std::string_view component =
        AsText(ByteSpan(block_).subspan(path.name_offset, path.name_size));
    if (!prepend(component.substr(0, NameBuffer().bytes.size()))) {
      return view();
    }
    path_id = path.parent;
  }
  return view();
}

std::string_view PathOf(const Record& record, PathBuffer& buffer) {
  if (record.HasText(Field::kPath)) return record.Text(Field::kPath);
  const Event& event = record.event;
  if (event.parent != 0) {
    return record.block->Path(event.parent, event.name, buffer);
  }
  if (event.node != 0) return record.block->Path(event.node, {}, buffer);
  return {};
}

std::string_view NewPathOf(const Record& record, PathBuffer& buffer) {
  if (record.HasText(Field::kNewPath)) return record.Text(Field::kNewPath);
  const Event& event = record.event;
  if (event.new_parent == 0) return {};
  return record.block->Path(event.new_parent, event.new_name, buffer);
}

}  // namespace tracefs::format
