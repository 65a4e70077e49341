#include "tracefs/export/jsonl.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "tracefs/feed/aggregate_lines.h"
#include "tracefs/feed/alarm_lines.h"
#include "tracefs/feed/process_lines.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/constants.h"
#include "tracefs/text/decimal.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"
#include "tracefs/text/put_text.h"

namespace tracefs {
namespace {

using format::ExtraArgument;
using format::Record;

// A key as it is written: ,"key":
struct Key {
  std::array<char, 32> bytes{};
  uint8_t size = 0;

  Key() = default;
  // At most 28 bytes.
  explicit Key(std::string_view name) {
    bytes[size++] = ',';
    bytes[size++] = '"';
    for (const char c : name) bytes[size++] = c;
    bytes[size++] = '"';
    bytes[size++] = ':';
  }
};

char* PutKey(char* out, const Key& key) {
  // A constant size makes this two moves.
  std::memcpy(out, key.bytes.data(), key.bytes.size());
  return out + key.size;
}

// How a numeric field is written.
enum class Style : uint8_t { kUnsigned, kSigned, kErrno, kType, kTrue, kCall };

struct NumberPlan {
  uint64_t bit = 0;
  uint8_t index = 0;
  Style style{};
  Key key;
};

struct TextPlan {
  Field field{};
  Key key;
  Key base64_key;
};

// Written where a line has a place for them; names only without their paths.
constexpr Field kPlacedTexts[] = {Field::kComm,    Field::kPath,
                                  Field::kNewPath, Field::kName,
                                  Field::kNewName, Field::kData};

Style StyleOf(const FieldInfo& f) {
  if (IsFlag(f.field)) return Style::kTrue;
  if (f.type == FieldType::kErrno) return Style::kErrno;
  if (f.type == FieldType::kFileType) return Style::kType;
  if (f.field == Field::kSyscall) return Style::kCall;
  return f.type == FieldType::kSigned ? Style::kSigned : Style::kUnsigned;
}

// Most of a record that does not depend on its contents: every key, every
// number and the shortest texts.
constexpr size_t kFixedJsonBytes =
    (kFieldCount + 16) * (sizeof(Key) + 2 * kMaxDecimal);
constexpr size_t kMaxJsonEscape = 6;  // bytes of JSON for a byte

static_assert(Record::TextIndex(Field::kData) == kTextFieldCount - 1,
              "the bytes of data are counted apart from those of text");

class JsonlExporter final : public Exporter {
 public:
  explicit JsonlExporter(OutputBuffer& out) : out_(out) {
    const auto add = [this](std::vector<NumberPlan>& plans, Field f) {
      const FieldInfo& info = Info(f);
      plans.push_back({Bit(f), static_cast<uint8_t>(Index(f)), StyleOf(info),
                       Key(info.json_key)});
      planned_ |= Bit(f);
    };
    planned_ = Bit(Field::kTime);  // written as ts
    for (const Field f : {Field::kTid, Field::kPid, Field::kUid, Field::kGid}) {
      add(callers_, f);
    }
    for (const Field f : {Field::kInode, Field::kFh, Field::kFlags,
                          Field::kArgMode, Field::kOffset, Field::kLength,
                          Field::kResult, Field::kErrno, Field::kInferred}) {
      add(common_, f);
    }
    planned_ |= Bit(Field::kLatency);
    for (const FieldInfo& f : Fields()) {
      if (IsNumeric(f.field) && (planned_ & Bit(f.field)) == 0) {
        add(others_, f.field);
        other_bits_ |= Bit(f.field);
      }
    }
    const auto add_text = [this](Field f) {
      const uint32_t bit = 1u << Record::TextIndex(f);
      if ((text_bits_ & bit) == 0) texts_.push_back(PlanOf(f));
      text_bits_ |= bit;
    };
    add_text(Field::kTarget);
    add_text(Field::kXattrName);
    for (const FieldInfo& f : Fields()) {
      if (f.width == 0 && std::ranges::count(kPlacedTexts, f.field) == 0) {
        add_text(f.field);
      }
    }
    for (size_t op = 0; op < kOpCount; ++op) {
      ops_[op] = "\"op\":\"" + std::string(OpName(static_cast<Op>(op))) + "\"";
    }
  }

  void Write(const Record& record) override {
    const Event& event = record.event;
    PathBuffer buffer;
    PathBuffer buffer2;
    const std::string_view path = format::PathOf(record, buffer);
    const std::string_view path2 = format::NewPathOf(record, buffer2);
    char* const line = out_.Reserve(Room(record, path, path2));
    char* at = line;

    *at++ = '{';
    if (record.time_resolution_ns != 0) {
      at = PutText(at, "\"ts\":");
      at = PutDecimal(at, record.real_ns);
      *at++ = ',';
    }
    if (event.Has(Field::kLatency)) {
      at = PutText(at, "\"dur\":");
      at = PutDecimal(at, event.Get(Field::kLatency));
      *at++ = ',';
    }
    at = PutText(at, ops_[Index(event.op)]);
    at = PutNumbers(at, record, callers_);
    if (record.HasText(Field::kComm)) {
      at = PutString(at, comm_, record.Text(Field::kComm));
    }
    if (!path.empty()) at = PutString(at, path_, path);
    if (!path2.empty()) at = PutString(at, path2_, path2);
    at = PutNumbers(at, record, common_);
    at = PutKey(at, tracer_);
    at = PutDecimal(at, record.tracer_id);

    if ((event.present & other_bits_) != 0) {
      at = PutNumbers(at, record, others_);
    }
    if (path.empty() && !event.name.empty()) {
      at = PutString(at, name_, event.name);
    }
    if (path2.empty() && !event.new_name.empty()) {
      at = PutString(at, new_name_, event.new_name);
    }
    if ((record.text_present & text_bits_) != 0) {
      for (const TextPlan& plan : texts_) {
        if (record.HasText(plan.field)) {
          at = PutString(at, plan, record.Text(plan.field));
        }
      }
    }
    if (record.HasText(Field::kData)) {
      at = PutBase64String(at, data_.base64_key, record.Text(Field::kData));
    }
    if (event.before) at = PutText(at, ",\"before\":true");
    for (const ExtraArgument& extra : record.extra) {
      at = PutExtra(at, record, extra);
    }
    *at++ = '}';
    *at++ = '\n';
    out_.Commit(at);
  }

  void WriteAggregate(const format::AggregateRecord& record) override {
    out_.Append(AggregateJson(record));
  }

  void WriteProcess(const ProcessRecord& record) override {
    out_.Append(ProcessJson(record));
  }
  void WriteAlarm(const format::AlarmRecord& record) override {
    out_.Append(AlarmLine(record));
  }
  std::string AlarmLine(const format::AlarmRecord& record) override {
    return AlarmJson(record);
  }

 private:
  static TextPlan PlanOf(Field f) {
    const std::string key(Info(f).json_key);
    return {f, Key(key), Key(key + "_b64")};
  }

  // An upper bound of the line's length.
  static size_t Room(const Record& record, std::string_view path,
                     std::string_view path2) {
    size_t text = path.size() + path2.size();
    for (size_t i = 0; i < Record::TextIndex(Field::kData); ++i) {
      if ((record.text_present >> i) & 1) text += record.text[i].size();
    }
    const size_t data = Base64Size(record.Text(Field::kData).size());
    for (const ExtraArgument& extra : record.extra) {
      text += extra.value.size() + 2 * kMaxDecimal +
              record.trace->NameOfArgument(extra.id).size() + 16;
    }
    return kFixedJsonBytes + kMaxJsonEscape * text + data;
  }

  static char* PutNumbers(char* at, const Record& record,
                          const std::vector<NumberPlan>& plans) {
    const Event& event = record.event;
    for (const NumberPlan& plan : plans) {
      if ((event.present & plan.bit) == 0) continue;
      const uint64_t value = event.value[plan.index];
      switch (plan.style) {
        case Style::kUnsigned:
          at = PutDecimal(PutKey(at, plan.key), value);
          break;
        case Style::kSigned:
          at = PutSignedDecimal(PutKey(at, plan.key),
                                static_cast<int64_t>(value));
          break;
        case Style::kTrue:
          if (value != 0) at = PutText(PutKey(at, plan.key), "true");
          break;
        case Style::kErrno:
          if (value != 0) at = PutName(at, plan.key, ErrnoName(value), value);
          break;
        case Style::kType:
          at = PutName(at, plan.key, FileTypeName(value), value);
          break;
        case Style::kCall:
          at = PutName(at, plan.key, record.trace->CallName(value), value);
          break;
      }
    }
    return at;
  }

  // A name where there is one, else the number, as a string.
  static char* PutName(char* at, const Key& key, std::string_view name,
                       uint64_t number) {
    at = PutKey(at, key);
    *at++ = '"';
    at = name.empty() ? PutDecimal(at, number) : PutText(at, name);
    *at++ = '"';
    return at;
  }

  static char* PutString(char* at, const TextPlan& plan,
                         std::string_view text) {
    char* end = PutKey(at, plan.key);
    *end++ = '"';
    end = PutJsonIfUtf8(end, text);
    if (end == nullptr) return PutBase64String(at, plan.base64_key, text);
    *end++ = '"';
    return end;
  }

  static char* PutBase64String(char* at, const Key& key,
                               std::string_view bytes) {
    at = PutKey(at, key);
    *at++ = '"';
    at = PutBase64(at, bytes);
    *at++ = '"';
    return at;
  }

  static char* PutExtra(char* at, const Record& record,
                        const ExtraArgument& extra) {
    std::string name = record.trace->NameOfArgument(extra.id);
    if (name.empty() || !IsUtf8(name)) {
      name = "ARG_" + std::to_string(extra.id);
    }
    using Kind = format::ExtraValue::Kind;
    format::ExtraValue value = format::Interpret(*record.trace, extra);
    const std::string_view bytes = AsText(extra.value);
    if (value.kind == Kind::kText && !IsUtf8(bytes)) value.kind = Kind::kBytes;
    *at++ = ',';
    *at++ = '"';
    at = PutJsonEscaped(at, name);
    at = PutText(at, value.kind == Kind::kBytes ? "_b64\":" : "\":");
    switch (value.kind) {
      case Kind::kUnsigned:
        return PutDecimal(at, value.number);
      case Kind::kSigned:
        return PutSignedDecimal(at, static_cast<int64_t>(value.number));
      case Kind::kText:
      case Kind::kBytes:
        break;
    }
    *at++ = '"';
    at = value.kind == Kind::kText ? PutJsonEscaped(at, bytes)
                                   : PutBase64(at, bytes);
    *at++ = '"';
    return at;
  }

  OutputBuffer& out_;
  std::array<std::string, kOpCount> ops_;
  std::vector<NumberPlan> callers_, common_, others_;
  uint64_t planned_ = 0;
  uint64_t other_bits_ = 0;
  std::vector<TextPlan> texts_;
  uint32_t text_bits_ = 0;
  const TextPlan comm_ = PlanOf(Field::kComm);
  const TextPlan path_ = PlanOf(Field::kPath);
  const TextPlan path2_ = PlanOf(Field::kNewPath);
  const TextPlan name_ = PlanOf(Field::kName);
  const TextPlan new_name_ = PlanOf(Field::kNewName);
  const TextPlan data_ = PlanOf(Field::kData);
  const Key tracer_ = Key("tracer");
};

}  // namespace

std::unique_ptr<Exporter> MakeJsonlExporter(OutputBuffer& out,
                                            const ExportOptions&) {
  return std::make_unique<JsonlExporter>(out);
}

}  // namespace tracefs
