#include "tracefs/text/json_member.h"

#include "tracefs/text/escape.h"

namespace tracefs {

void AppendJsonKey(std::string_view key, std::string* out) {
  *out += ",\"";
  *out += key;
  *out += "\":";
}

void AppendJsonNumber(std::string_view key, uint64_t number, std::string* out) {
  AppendJsonKey(key, out);
  *out += std::to_string(number);
}

void AppendJsonString(std::string_view text, std::string* out) {
  std::string value(6 * text.size(), '\0');
  value.resize(
      static_cast<size_t>(PutJsonEscaped(value.data(), text) - value.data()));
  *out += '"' + value + '"';
}

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(Utf8Text(text), &out);
  return out;
}

void AppendJsonText(std::string_view key, std::string_view text,
                    std::string* out) {
  if (IsUtf8(text)) {
    AppendJsonKey(key, out);
    AppendJsonString(text, out);
    return;
  }
  AppendJsonKey(std::string(key) + "_b64", out);
  std::string value(Base64Size(text.size()), '\0');
  PutBase64(value.data(), text);
  *out += '"' + value + '"';
}

}  // namespace tracefs
