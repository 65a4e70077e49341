#include "tracefs/process/tracepoint_layout.h"

#include <charconv>

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

bool ParseNumber(std::string_view text, uint16_t* number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end && !text.empty();
}

}  // namespace

TracepointLayout ParseTracepointLayout(std::string_view text) {
  TracepointLayout layout;
  while (!text.empty()) {
    std::string_view line = TakeUpTo(text, '\n');
    const std::string name(TakeUpTo(line, ' '));
    TracepointEvent event;
    if (name.empty() || !ParseNumber(TakeUpTo(line, ' '), &event.number)) {
      continue;
    }
    while (!line.empty()) {
      std::string_view word = TakeUpTo(line, ' ');
      const std::string field(TakeUpTo(word, ':'));
      TracepointField place;
      if (!ParseNumber(TakeUpTo(word, ':'), &place.offset) ||
          !ParseNumber(word, &place.size)) {
        continue;
      }
      event.fields[field] = place;
    }
    layout[name] = std::move(event);
  }
  return layout;
}

std::optional<uint16_t> TracepointNumber(ByteSpan raw) {
  if (raw.size() < sizeof(uint16_t)) return std::nullopt;
  return LoadLe<uint16_t>(raw.data());
}

std::optional<uint64_t> TracepointValue(ByteSpan raw, TracepointField field) {
  if (field.size > raw.size() || field.offset > raw.size() - field.size) {
    return std::nullopt;
  }
  const std::byte* const at = raw.data() + field.offset;
  switch (field.size) {
    case 1:
      return LoadLe<uint8_t>(at);
    case 2:
      return LoadLe<uint16_t>(at);
    case 4:
      return LoadLe<uint32_t>(at);
    case 8:
      return LoadLe<uint64_t>(at);
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> TracepointText(ByteSpan raw,
                                               TracepointField field) {
  if (field.size == 4) {
    const std::optional<uint64_t> where = TracepointValue(raw, field);
    if (!where) return std::nullopt;
    field.offset = static_cast<uint16_t>(*where & 0xffff);
    field.size = static_cast<uint16_t>(*where >> 16);
  }
  if (field.size == 0 || field.size > raw.size() ||
      field.offset > raw.size() - field.size) {
    return std::nullopt;
  }
  const std::string_view text = AsText(raw.subspan(field.offset, field.size));
  return text.substr(0, text.find('\0'));
}

}  // namespace tracefs
