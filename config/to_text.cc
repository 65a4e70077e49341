// Prints a tracer's config as config text.
#include "config/config.h"

namespace tracefs {
namespace {

std::string QuoteString(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kDigits[byte >> 4];
      quoted += kDigits[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string ValueText(const ConfigValue& value) {
  switch (value.type) {
    case ValueType::kNone:
      return {};
    case ValueType::kRest:
      // It may end in a comment, which must not swallow what follows.
      return " " + value.text + "\n";
    case ValueType::kText:
      return " = " + QuoteString(value.text);
    case ValueType::kChoice:
      return " = " + value.text +
             (value.argument.empty() ? "" : ' ' + QuoteString(value.argument));
    case ValueType::kCount:
    case ValueType::kSize:
    case ValueType::kDuration:
      return " = " + value.text;
    case ValueType::kBlock:
      return " = {" + value.text + "}";
    case ValueType::kFlags: {
      std::string text = " = {";
      for (const ConfigWord& flag : value.flags) {
        if (&flag != &value.flags.front()) text += " |";
        text += ' ';
        text += flag.text;
      }
      return text + " }";
    }
  }
  return {};
}

std::string SectionText(const std::vector<ConfigEntry>& entries) {
  std::string text = " {";
  for (const ConfigEntry& entry : entries) {
    if (&entry != &entries.front()) text += ";\n  ";
    text += ' ' + entry.name + ValueText(entry.value);
    for (const ConfigOption& option : entry.options) {
      text += ' ' + option.name + ValueText(option.value);
    }
  }
  return text + " }\n";
}

}  // namespace

std::string ToText(const TracerConfig& tracer) {
  std::string text = tracer.name;
  if (!text.empty()) text += ' ';
  text += "{\n {" + tracer.filter + "}\n";
  return text + SectionText(tracer.assembly) + SectionText(tracer.output) +
         "}\n";
}

}  // namespace tracefs
