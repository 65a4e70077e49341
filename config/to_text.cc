// Prints a tracer's config as config text.
#include "config/config.h"
#include "tracefs/base/string_literal.h"

namespace tracefs {
namespace {

std::string ValueText(const ConfigValue& value) {
  switch (value.type) {
    case ValueType::kNone:
      return {};
    case ValueType::kRest:
      // It may end in a comment, which must not swallow what follows.
      return " " + value.text + "\n";
    case ValueType::kText:
      return " = " + StringLiteral(value.text);
    case ValueType::kChoice:
      return " = " + value.text +
             (value.argument.empty() ? ""
                                     : ' ' + StringLiteral(value.argument));
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
