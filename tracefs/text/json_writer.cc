#include "tracefs/text/json_writer.h"

#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

void AppendBase64(std::string_view bytes, std::string* out) {
  *out += '"';
  const size_t at = out->size();
  out->resize(at + Base64Size(bytes.size()));
  PutBase64(out->data() + at, bytes);
  *out += '"';
}

}  // namespace

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

void JsonWriter::Key(std::string_view key) {
  Separate();
  out_ += '"';
  out_ += key;
  out_ += "\":";
}

void JsonWriter::Put(std::string_view key, uint64_t value) {
  Key(key);
  out_ += std::to_string(value);
}

void JsonWriter::PutSigned(std::string_view key, int64_t value) {
  Key(key);
  out_ += std::to_string(value);
}

void JsonWriter::Put(std::string_view key, std::string_view text) {
  Key(key);
  AppendJsonString(Utf8Text(text), &out_);
}

void JsonWriter::PutExact(std::string_view key, std::string_view text) {
  if (!IsUtf8(text)) return PutBytes(key, text);
  Key(key);
  AppendJsonString(text, &out_);
}

void JsonWriter::PutBytes(std::string_view key, std::string_view bytes) {
  Key(std::string(key) + "_b64");
  AppendBase64(bytes, &out_);
}

void JsonWriter::PutJson(std::string_view key, std::string_view json) {
  Key(key);
  out_ += json;
}

void JsonWriter::Open(std::string_view key) {
  Key(key);
  BeginWith('{');
}

void JsonWriter::OpenList(std::string_view key) {
  Key(key);
  BeginWith('[');
}

void JsonWriter::Open() {
  Separate();
  BeginWith('{');
}

void JsonWriter::OpenList() {
  Separate();
  BeginWith('[');
}

void JsonWriter::Add(uint64_t value) {
  Separate();
  out_ += std::to_string(value);
}

void JsonWriter::Add(std::string_view text) {
  Separate();
  AppendJsonString(Utf8Text(text), &out_);
}

void JsonWriter::AddBytes(std::string_view bytes) {
  Separate();
  AppendBase64(bytes, &out_);
}

}  // namespace tracefs
