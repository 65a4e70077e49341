#include "tracefs/export/text.h"

#include <sys/sysmacros.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "tracefs/base/units.h"
#include "tracefs/feed/aggregate_lines.h"
#include "tracefs/feed/alarm_lines.h"
#include "tracefs/feed/process_lines.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/decimal.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"
#include "tracefs/text/time_text.h"

namespace tracefs {
namespace {

using format::ExtraArgument;
using format::Record;

constexpr size_t kCallerColumns = 20;
constexpr size_t kOpColumns = 8;
constexpr size_t kDataShown = 32;     // bytes of ARG_DATA
constexpr size_t kExtraShown = 32;    // bytes of an unknown argument
constexpr size_t kMaxTextEscape = 4;  // characters for a byte
constexpr size_t kFixedTextBytes = 4096 + 2 * kMaxFlagText;

// In this order; the others follow in that of the table.
constexpr Field kFirstArguments[] = {
    Field::kFlags,     Field::kValid,     Field::kArgMode, Field::kUmask,
    Field::kRdev,      Field::kNewUid,    Field::kNewGid,  Field::kNewSize,
    Field::kNewAtime,  Field::kNewMtime,  Field::kOffset,  Field::kOffsetOut,
    Field::kLength,    Field::kXattrName, Field::kCommand, Field::kLockType,
    Field::kLockOwner, Field::kMapped,    Field::kLockPid, Field::kFh,
    Field::kFhOut,     Field::kInodeOut,  Field::kSyscall, Field::kExe,
    Field::kCmdline,   Field::kCgroup,    Field::kTty};

struct Arguments {
  std::array<Field, kFieldCount> fields{};
  size_t size = 0;

  constexpr void Add(const FieldInfo& f) {
    if (f.text == TextStyle::kOwnPlace || f.text == TextStyle::kNotShown)
      return;
    for (size_t i = 0; i < size; ++i) {
      if (fields[i] == f.field) return;
    }
    fields[size++] = f.field;
  }
};
constexpr Arguments kArguments = [] {
  Arguments all;
  for (const Field f : kFirstArguments) all.Add(Info(f));
  for (const FieldInfo& f : Fields()) all.Add(f);
  return all;
}();

// Appends to a line whose buffer has room.
class Line {
 public:
  explicit Line(char* begin) : begin_(begin), at_(begin) {}

  Line& Put(char c) {
    *at_++ = c;
    return *this;
  }
  Line& Put(std::string_view text) {
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  Line& Decimal(uint64_t value) {
    at_ = PutDecimal(at_, value);
    return *this;
  }
  Line& Signed(int64_t value) {
    at_ = PutSignedDecimal(at_, value);
    return *this;
  }
  Line& Hex(uint64_t value) {
    Put("0x");
    at_ = std::to_chars(at_, at_ + 16, value, 16).ptr;
    return *this;
  }
  Line& Octal(uint64_t value) {
    Put('0');
    if (value != 0) at_ = std::to_chars(at_, at_ + 22, value, 8).ptr;
    return *this;
  }
  Line& Word(std::string_view text, std::string_view more = {}) {
    at_ = PutTerminalWord(at_, text, more);
    return *this;
  }
  // Fills with blanks up to `columns` from `start`.
  Line& PadFrom(const char* start, size_t columns) {
    while (static_cast<size_t>(at_ - start) < columns) *at_++ = ' ';
    return *this;
  }
  // Takes back blanks at the end.
  Line& TrimBlanks() {
    while (at_ != begin_ && at_[-1] == ' ') --at_;
    return *this;
  }
  char* at() { return at_; }
  void Goto(char* at) { at_ = at; }

 private:
  char* begin_;
  char* at_;
};

// Right-aligned in seven columns.
void PutDurationColumn(Line& line, uint64_t ns) {
  std::array<char, 24> text;
  const std::string_view duration(
      text.data(),
      static_cast<size_t>(PutDuration(text.data(), ns) - text.data()));
  for (size_t i = WidthOf(duration); i < 7; ++i) line.Put(' ');
  line.Put(duration);
}

class TextExporter final : public Exporter {
 public:
  TextExporter(OutputBuffer& out, const ExportOptions& options)
      : out_(out), time_(options.time, options.form) {}

  void Write(const Record& record) override {
    const Event& event = record.event;
    PathBuffer buffer;
    PathBuffer buffer2;
    const std::string_view path = format::PathOf(record, buffer);
    const std::string_view path2 = format::NewPathOf(record, buffer2);
    if (record.time_resolution_ns != 0) TellDay(record.real_ns);
    Line line(out_.Reserve(Room(record, path, path2)));

    const char* const start = line.at();
    PutTime(line, record.real_ns, record.time_resolution_ns);
    line.PadFrom(start, time_.columns()).Put(' ');
    if (event.Has(Field::kLatency)) {
      PutDurationColumn(line, event.Get(Field::kLatency));
    } else {
      line.Put("      -");
    }
    line.Put(' ');
    PutCaller(line, record);
    const char* const op = line.Put(' ').at();
    line.Put(OpName(event.op)).PadFrom(op, kOpColumns);
    if (!path.empty()) {
      line.Put(' ').Word(path);
    } else if (!event.name.empty()) {
      // Without its directory it has no '/' to be known by.
      line.Put(' ').Word(event.name, ":=>[]");
    } else if (event.Has(Field::kInode)) {
      line.Put(" inode:").Decimal(event.Get(Field::kInode));
    }
    if (!path2.empty()) {
      line.Put(" => ").Word(path2);
    } else if (!event.new_name.empty()) {
      line.Put(" => ").Word(event.new_name);
    }
    if (record.HasText(Field::kTarget)) {
      line.Put(" => ").Word(event.target);
    }
    PutArguments(line, record, std::make_index_sequence<kArguments.size>());
    PutResult(line, event);
    PutAttributes(line, event);
    line.TrimBlanks().Put('\n');
    out_.Commit(line.at());
  }

  void WriteAggregate(const format::AggregateRecord& record) override {
    const std::string text = AggregateText(record);
    Line line(out_.Reserve(kFixedTextBytes + text.size()));
    PutTime(line, record.real_to_ns, 1);
    line.Put(' ').Put(text).Put('\n');
    out_.Commit(line.at());
  }

  void WriteProcess(const ProcessRecord& record) override {
    std::array<char, TimeText::kRoom> time;
    Line line(time.data());
    PutTime(line, record.real_ns, 1);
    const auto size = static_cast<size_t>(line.at() - time.data());
    out_.Append(std::string(time.data(), size) + ' ' + ProcessText(record) +
                '\n');
  }
  void WriteAlarm(const format::AlarmRecord& record) override {
    out_.Append(AlarmLine(record));
  }
  std::string AlarmLine(const format::AlarmRecord& record) override {
    std::array<char, TimeText::kRoom> time;
    Line line(time.data());
    PutTime(line, record.operation->real_ns,
            record.operation->time_resolution_ns);
    const auto size = static_cast<size_t>(line.at() - time.data());
    return std::string(time.data(), size) + ' ' + AlarmText(record) + '\n';
  }

 private:
  static size_t Room(const Record& record, std::string_view path,
                     std::string_view path2) {
    size_t text = path.size() + path2.size();
    for (size_t i = 0; i < Record::TextIndex(Field::kData); ++i) {
      if ((record.text_present >> i) & 1) text += record.text[i].size();
    }
    for (const ExtraArgument& extra : record.extra) {
      text += record.trace->NameOfArgument(extra.id).size() + kExtraShown + 16;
    }
    return kFixedTextBytes + kMaxTextEscape * text;
  }

  void PutTime(Line& line, uint64_t real_ns, uint32_t resolution_ns) {
    line.Goto(time_.Put(line.at(), real_ns, resolution_ns));
  }

  // A line, if it is another day than that of the operation before.
  void TellDay(uint64_t real_ns) {
    if (time_.IsNewDay(real_ns)) {
      out_.Append("=== " + std::string(time_.day()) + '\n');
    }
  }

  static void PutCaller(Line& line, const Record& record) {
    const Event& event = record.event;
    const char* const start = line.at();
    if (event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0) {
      line.Put('~');
    }
    if (record.HasText(Field::kComm)) {
      line.Word(record.Text(Field::kComm), "[]~");
    }
    const bool has_pid = event.Has(Field::kPid);
    const bool has_tid = event.Has(Field::kTid);
    if (has_pid || has_tid) {
      line.Put('[');
      if (has_pid) line.Decimal(event.Get(Field::kPid));
      if (has_tid &&
          (!has_pid || event.Get(Field::kTid) != event.Get(Field::kPid))) {
        line.Put('/').Decimal(event.Get(Field::kTid));
      }
      line.Put(']');
    }
    if (line.at() == start) line.Put('-');
    line.PadFrom(start, kCallerColumns).Put(' ');
    const char* const user = line.at();
    if (event.Has(Field::kUid)) {
      line.Put('u').Decimal(event.Get(Field::kUid));
    } else {
      line.Put('-');
    }
    line.PadFrom(user, 5);
  }

  // Code of its own for each argument: nothing is looked up for a line.
  template <size_t... kIndex>
  static void PutArguments(Line& line, const Record& record,
                           std::index_sequence<kIndex...>) {
    (PutArgument<kArguments.fields[kIndex]>(line, record), ...);
    for (const ExtraArgument& extra : record.extra) {
      PutExtra(line, record, extra);
    }
  }

  template <Field kField>
  static void PutArgument(Line& line, const Record& record) {
    if constexpr (IsNumeric(kField)) {
      if (!record.event.Has(kField)) return;
      if constexpr (Info(kField).text == TextStyle::kSyscall) {
        const uint64_t call = record.event.Get(kField);
        line.Put(' ').Put(Info(kField).json_key).Put('=');
        const std::string_view name = record.trace->CallName(call);
        name.empty() ? line.Decimal(call) : line.Put(name);
      } else {
        PutNumber<kField>(line, record.event);
      }
    } else {
      if (record.HasText(kField)) PutText<kField>(line, record.Text(kField));
    }
  }

  template <Field kField>
  static void PutNumber(Line& line, const Event& event) {
    constexpr const FieldInfo& info = Info(kField);
    const uint64_t value = event.Get(kField);
    const auto key = [&]() -> Line& {
      return line.Put(' ').Put(info.json_key).Put('=');
    };
    switch (info.text) {
      case TextStyle::kDecimal:
        key().Decimal(value);
        break;
      case TextStyle::kSigned:
        key().Signed(static_cast<int64_t>(value));
        break;
      case TextStyle::kHex:
        key().Hex(value);
        break;
      case TextStyle::kOctal:
        key().Octal(value);
        break;
      case TextStyle::kFlag:
        if (value != 0) line.Put(' ').Put(info.json_key);
        break;
      case TextStyle::kTimestamp:
        key().Put(SecondsText(static_cast<int64_t>(value)));
        break;
      case TextStyle::kFlags:
        PutFlagsOf(line, event);
        break;
      case TextStyle::kSetMask:
        if (event.op == Op::setattr_) {
          line.Put(" set=").Goto(
              PutSetattrValid(line.at(), static_cast<uint32_t>(value)));
        } else {
          line.Put(" mask=").Hex(value);
        }
        break;
      case TextStyle::kAccessMode:
        if (event.op == Op::access_) {
          line.Goto(PutAccessMode(key().at(), static_cast<uint32_t>(value)));
        } else {
          key().Octal(static_cast<uint32_t>(value));
        }
        break;
      case TextStyle::kDevice:
        key().Decimal(major(value)).Put(':').Decimal(minor(value));
        break;
      case TextStyle::kLockType: {
        const std::string_view name = LockTypeName(value);
        line.Put(" lock=");
        name.empty() ? line.Decimal(value) : line.Put(name);
        break;
      }
      case TextStyle::kLockOwner:
        line.Put(" owner=").Hex(value);
        break;
      case TextStyle::kOwnPlace:
      case TextStyle::kNotShown:
      case TextStyle::kWord:
      case TextStyle::kBytes:
      case TextStyle::kSyscall:
        break;
    }
  }

  template <Field kField>
  static void PutText(Line& line, std::string_view text) {
    constexpr const FieldInfo& info = Info(kField);
    const bool cut = info.text == TextStyle::kBytes && text.size() > kDataShown;
    line.Put(' ').Put(info.json_key).Put('=');
    line.Word(cut ? text.substr(0, kDataShown) : text);
    if (cut) line.Put("...");
  }

  static void PutFlagsOf(Line& line, const Event& event) {
    const auto flags = static_cast<uint32_t>(event.Get(Field::kFlags));
    switch (Info(event.op).flags) {
      case OpFlags::kOpened:
        return;  // in JSON Lines
      case OpFlags::kOpen:
      case OpFlags::kWhence:
        break;  // even if 0: O_RDONLY, SEEK_SET
      default:
        if (flags == 0) return;
    }
    line.Put(' ').Goto(PutFlags(line.at(), event.op, flags));
  }

  static void PutExtra(Line& line, const Record& record,
                       const ExtraArgument& extra) {
    line.Put(' ').Word(record.trace->NameOfArgument(extra.id)).Put('=');
    using Kind = format::ExtraValue::Kind;
    const format::ExtraValue value = format::Interpret(*record.trace, extra);
    if (value.kind == Kind::kUnsigned) {
      line.Decimal(value.number);
    } else if (value.kind == Kind::kSigned) {
      line.Signed(static_cast<int64_t>(value.number));
    } else {
      const std::string_view bytes = AsText(extra.value);
      line.Word(bytes.substr(0, kExtraShown));
      if (bytes.size() > kExtraShown) line.Put("...");
    }
  }

  static void PutResult(Line& line, const Event& event) {
    if (event.before) {
      line.Put(" ...");
      return;
    }
    const uint64_t error = event.GetOr0(Field::kErrno);
    if (error != 0) {
      const std::string_view name = ErrnoName(error);
      line.Put(" -> ");
      name.empty() ? line.Put("errno ").Decimal(error) : line.Put(name);
    } else if (event.Has(Field::kResult)) {
      line.Put(" -> ").Signed(static_cast<int64_t>(event.Get(Field::kResult)));
    }
  }

  static void PutAttributes(Line& line, const Event& event) {
    constexpr uint64_t kAttributes = Bit(Field::kMode) | Bit(Field::kNlink) |
                                     Bit(Field::kSize) | Bit(Field::kFuid) |
                                     Bit(Field::kFgid);
    if ((event.present & kAttributes) == 0) return;
    line.Put(" [");
    const char* const start = line.at();
    const auto gap = [&] {
      if (line.at() != start) line.Put(' ');
    };
    if (event.Has(Field::kMode)) {
      line.Goto(PutModeLetters(line.at(),
                               static_cast<uint32_t>(event.Get(Field::kMode))));
    }
    if (event.Has(Field::kNlink)) {
      gap();
      line.Decimal(event.Get(Field::kNlink));
    }
    if (event.Has(Field::kFuid) || event.Has(Field::kFgid)) {
      gap();
      if (event.Has(Field::kFuid)) line.Decimal(event.Get(Field::kFuid));
      line.Put(':');
      if (event.Has(Field::kFgid)) line.Decimal(event.Get(Field::kFgid));
    }
    if (event.Has(Field::kSize)) {
      gap();
      line.Decimal(event.Get(Field::kSize)).Put(" B");
    }
    line.Put(']');
  }

  OutputBuffer& out_;
  TimeText time_;
};

}  // namespace

std::unique_ptr<Exporter> MakeTextExporter(OutputBuffer& out,
                                           const ExportOptions& options) {
  return std::make_unique<TextExporter>(out, options);
}

}  // namespace tracefs
