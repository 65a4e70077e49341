#include "tracefs/format/trace_header.h"

#include "tracefs/format/constants.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

constexpr size_t kLengthArgumentBytes = 2 + 4;  // id and length
constexpr size_t kConstantPartBytes =
    kMessageHeaderBytes + (2 + 4) + 2 * (2 + 8);

// The variable arguments of START, each as `emit(id, value)`.
template <typename Emit>
void ForEachText(const TraceHeader& header, Emit emit) {
  std::string value;
  const auto append_u16 = [&value](uint16_t n) {
    char bytes[2];
    StoreLe<uint16_t>(bytes, n);
    value.append(bytes, 2);
  };
  for (const uint16_t msg_id : BuiltInMessages()) {
    value.clear();
    append_u16(msg_id);
    value += MessageName(msg_id);
    emit(ArgId::kMessageName, value);
  }
  for (const ArgumentInfo& argument : BuiltInArguments()) {
    value.clear();
    append_u16(argument.arg_id);
    append_u16(argument.width);
    value += static_cast<char>(argument.type);
    value += argument.name;
    emit(ArgId::kArgumentName, value);
  }
  for (const auto& [key, text] : header.properties) {
    value.clear();
    value += key;
    value += '=';
    value += text;
    emit(ArgId::kProperty, value);
  }
}

}  // namespace

void TraceHeader::Set(std::string_view key, std::string_view value) {
  for (auto& [known, text] : properties) {
    if (known == key) {
      text = value;
      return;
    }
  }
  properties.emplace_back(key, value);
}

std::string_view TraceHeader::Get(std::string_view key) const {
  for (const auto& [known, text] : properties) {
    if (known == key) return text;
  }
  return {};
}

bool WriteStart(MessageWriter& out, const TraceHeader& header) {
  out.Begin(static_cast<uint16_t>(MessageId::kStart));
  out.Put<uint32_t>(ArgId::kTracerId, header.tracer_id);
  out.Put<uint64_t>(ArgId::kClockMonotonic, header.clock.monotonic_ns);
  out.Put<uint64_t>(ArgId::kClockReal, header.clock.real_ns);
  ForEachText(header, [&out](ArgId id, const std::string& value) {
    out.PutText(id, value);
  });
  return out.End();
}

size_t StartBytes(const TraceHeader& header) {
  size_t size = kConstantPartBytes;
  ForEachText(header, [&size](ArgId, const std::string& value) {
    size += kLengthArgumentBytes + value.size();
  });
  return size;
}

std::vector<std::byte> EncodeStartBlock(const TraceHeader& header) {
  std::vector<std::byte> block(StartBytes(header));
  MessageWriter out(block);
  WriteStart(out, header);
  return block;
}

bool ReadStart(ByteSpan arguments, SelfDescription* description) {
  bool has_monotonic = false;
  bool has_real = false;
  ArgumentCursor in(arguments, BuiltInWidths());
  Argument argument;
  while (in.Next(&argument)) {
    const ByteSpan value = argument.value;
    switch (static_cast<ArgId>(argument.id)) {
      case ArgId::kTracerId:
        description->header.tracer_id = argument.As<uint32_t>();
        break;
      case ArgId::kClockMonotonic:
        description->header.clock.monotonic_ns = argument.As<uint64_t>();
        has_monotonic = true;
        break;
      case ArgId::kClockReal:
        description->header.clock.real_ns = argument.As<uint64_t>();
        has_real = true;
        break;
      case ArgId::kMessageName:
        if (value.size() < 2) break;
        description->messages[LoadLe<uint16_t>(value.data())] =
            AsText(value.subspan(2)).substr(0, SelfDescription::kMaxNameBytes);
        break;
      case ArgId::kArgumentName: {
        if (value.size() < 5) break;
        const auto id = LoadLe<uint16_t>(value.data());
        description->arguments[id & ~kHasLength] = {
            LoadLe<uint16_t>(value.data() + 2),
            std::to_integer<uint8_t>(value[4]),
            std::string(AsText(value.subspan(5))
                            .substr(0, SelfDescription::kMaxNameBytes))};
        break;
      }
      case ArgId::kProperty: {
        const std::string_view text = AsText(value);
        const size_t equals = text.find('=');
        if (equals == std::string_view::npos) break;
        if (description->header.properties.size() >=
            SelfDescription::kMaxProperties) {
          break;
        }
        // Not Set: a search for each of thousands takes a while.
        description->header.properties.emplace_back(text.substr(0, equals),
                                                    text.substr(equals + 1));
        break;
      }
      default:
        break;  // of a later version
    }
  }
  description->has_clock = has_monotonic && has_real;
  return !in.malformed();
}

}  // namespace tracefs::format
