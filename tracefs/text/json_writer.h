// JsonWriter: JSON that is written from its front to its end, in the order of
// the calls. What is not a stream but a document is nlohmann's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs {

// "text", which must be UTF-8.
void AppendJsonString(std::string_view text, std::string* out);
// "text"; bytes that are not UTF-8 are \xNN in it.
std::string JsonString(std::string_view text);

// Keys have nothing to escape. Bytes that are not UTF-8 are \xNN in texts.
class JsonWriter {
 public:
  // Begins an object, which End() ends.
  explicit JsonWriter(std::string* out) : out_(*out) { out_ += '{'; }
  // Writes members of an object that is begun and ended elsewhere.
  static JsonWriter Within(std::string* out) { return {out, 0}; }

  // --- Members.
  void Put(std::string_view key, uint64_t value);
  void PutSigned(std::string_view key, int64_t value);
  void PutTrue(std::string_view key) { PutJson(key, "true"); }
  void Put(std::string_view key, std::string_view text);
  // Nothing if the text is empty.
  void PutIf(std::string_view key, std::string_view text) {
    if (!text.empty()) Put(key, text);
  }
  // As KEY_b64 if it is not UTF-8.
  void PutExact(std::string_view key, std::string_view text);
  // As KEY_b64 whatever it is.
  void PutBytes(std::string_view key, std::string_view bytes);
  // A value that is JSON by now.
  void PutJson(std::string_view key, std::string_view json);

  void Open(std::string_view key);      // an object, until Close()
  void OpenList(std::string_view key);  // until CloseList()

  // --- Elements of a list.
  void Open();
  void Add(uint64_t value);
  void Add(std::string_view text);
  void AddBytes(std::string_view bytes);  // in Base64
  void OpenList();

  void Close() { EndWith('}'); }
  void CloseList() { EndWith(']'); }
  void End() { out_ += '}'; }

 private:
  JsonWriter(std::string* out, int)
      : out_(*out), first_(out->empty() || out->back() == '{') {}

  void Separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void Key(std::string_view key);
  void BeginWith(char bracket) {
    out_ += bracket;
    first_ = true;
  }
  void EndWith(char bracket) {
    out_ += bracket;
    first_ = false;
  }

  std::string& out_;
  bool first_ = true;
};

}  // namespace tracefs
