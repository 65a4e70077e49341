#include "tracefs/format/block_decoder.h"

#include <algorithm>
#include <charconv>

#include "tracefs/base/clock.h"
#include "tracefs/event/system_call_names.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

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
  if (pid == 0 || (trace->processes->size() >= KnownProcess::kMost &&
                   !trace->processes->contains(pid))) {
    return;
  }
  KnownProcess& known = (*trace->processes)[pid];
  if (ppid != 0) known.ppid = ppid;
  if (!comm.empty()) {
    known.comm = comm.substr(0, sizeof CallerInfo::comm_bytes);
  }
}

// From a process record: which process began which, and its name.
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
  const auto parent = trace->processes->find(record.process.pid);
  const std::string comm =
      parent != trace->processes->end() ? parent->second.comm : "";
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

void CountLoss(const LossRecord& loss, ReadStats* stats) {
  stats->lost_events += loss.count;
  ReadStats::CountOf(loss.reason, &stats->losses) += loss.count;
  for (const OpTotal& total : loss.op_totals) {
    if (stats->lost_messages.size() >= ReadStats::kMaxReasons &&
        !stats->lost_messages.contains(total.msg_id)) {
      continue;
    }
    stats->lost_messages[total.msg_id] += total.count;
  }
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

void BlockDecoder::TellChanges(const Message& message) {
  ChangeRecord change;
  ReadChange(message.arguments, &change);
  for (const auto& [key, value] : change.properties) {
    const std::string text = std::string(key) + '=' + std::string(value);
    Report report = MakeReport(ReportKind::kChange);
    report.detail = text;
    trace_->Tell(report);
  }
}

void BlockDecoder::TellLoss(const LossRecord& loss) {
  const auto real = [this](uint64_t ns) {
    return ns == 0 ? 0 : head_.clock.ToReal(ns);
  };
  Report report = MakeReport(ReportKind::kLoss);
  report.count = loss.count;
  report.detail = loss.reason;
  report.begin_ns = real(loss.first_ns);
  report.end_ns = std::max(report.begin_ns, real(loss.last_ns));
  const TimeWindow& window = trace_->loss_window;
  const bool outside =
      report.begin_ns != 0 &&
      (report.end_ns < window.from_ns || report.begin_ns >= window.to_ns);
  if (outside) return;
  CountLoss(loss, &trace_->stats);
  trace_->Tell(report);
}

void BlockDecoder::ReadOtherMessage(const Message& message) {
  ReadStats& stats = trace_->stats;
  // What is malformed is counted, and nobody gets it.
  const auto hand_on = [&](bool good, const auto& use, const auto& record) {
    if (good) return use(record);
    Malformed(ReportKind::kMalformedMessage, &stats.malformed_messages);
  };
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
      TellLoss(loss);
      return;
    }
    case MessageId::kChange:
      ++stats.changes;
      TellChanges(message);
      return;
    case MessageId::kAlarm: {
      ++stats.alarms;
      if (!trace_->alarm) return;
      AlarmRecord alarm;
      // Whether it ends within an argument, DecodeAs says.
      (void)ReadAlarm(message.arguments, trace_->widths, &alarm);
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
      (void)ReadState(message.arguments, trace_->widths, &state);  // likewise
      Record record;
      DecodeAs(Op::statx_, /*before=*/false, message, &record);
      state.file = &record;
      trace_->state(state);
      return;
    }
    case MessageId::kFile: {
      ++stats.files;
      if (!trace_->file) return;
      EmbeddedFile file;
      const bool good =
          ReadEmbeddedFile(message.arguments, trace_->widths, &file);
      hand_on(good, trace_->file, file);
      return;
    }
    case MessageId::kIndex: {
      ++stats.index_pieces;
      if (!trace_->index) return;
      IndexPiece piece;
      const bool good =
          ReadIndexPiece(message.arguments, trace_->widths, &piece);
      hand_on(good, trace_->index, piece);
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

void BlockDecoder::Decode(const Message& message, Record* record) {
  bool before = false;
  const Op op = *OperationOf(message.msg_id, &before);
  DecodeAs(op, before, message, record);
}

}  // namespace tracefs::format
