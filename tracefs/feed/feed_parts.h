// What the feeds have in common: an operation seen as a file event, JSON that
// nests, times as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/format/block_decoder.h"
#include "tracefs/format/record.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/time_text.h"

namespace tracefs {

// What it did, by its operation and, where these say more, its arguments.
FileActivity ActivityOf(const format::Record& record);

// A record with its paths, worked out once. Views point into this object and
// into the record.
struct FileEvent {
  explicit FileEvent(const format::Record& record);
  FileEvent(const FileEvent&) = delete;
  FileEvent& operator=(const FileEvent&) = delete;

  const format::Record& record;
  std::string_view path;   // empty if it is not known
  std::string_view path2;  // of rename and link
  const format::Outcome outcome;
  std::string_view error;  // name of the errno, if it failed and tells why

  bool failed() const { return outcome == format::Outcome::kFailure; }

  bool Has(Field f) const { return record.event.Has(f); }
  uint64_t Get(Field f) const { return record.event.Get(f); }
  // The file's type, st_mode >> 12; 0 if it is not known.
  uint64_t FileType() const;

 private:
  PathBuffer buffer_;
  PathBuffer buffer2_;
};

// "/a/b.c" -> "b.c", "/a"; the root is in itself.
std::string_view NameOfPath(std::string_view path);
std::string_view DirectoryOfPath(std::string_view path);

// Writes one object, in order, with objects and arrays inside.
class JsonLine {
 public:
  explicit JsonLine(std::string* out) : out_(*out) { out_ += '{'; }

  void Open(std::string_view key);  // an object
  // A list of one object; closed by CloseList.
  void OpenList(std::string_view key);
  void CloseList() {
    out_ += "}]";
    first_ = false;
  }
  void Close() {
    out_ += '}';
    first_ = false;
  }
  void End() { out_ += '}'; }

  void Put(std::string_view key, uint64_t value);
  void PutSigned(std::string_view key, int64_t value);
  void Put(std::string_view key, std::string_view text);
  // Nothing if the text is empty.
  void PutIf(std::string_view key, std::string_view text) {
    if (!text.empty()) Put(key, text);
  }
  // The number of a field, if the event has it: as a number or as text.
  void PutField(std::string_view key, const FileEvent& event, Field field);
  void PutFieldText(std::string_view key, const FileEvent& event, Field field);
  void PutList(std::string_view key, std::string_view only_entry);
  // What a rule counted, and what was done.
  void PutAlarm(const format::AlarmRecord& alarm);
  // What no foreign schema has a place for: the operation as it is.
  void PutOperation(const FileEvent& event);

 private:
  void Key(std::string_view key);
  void PutBytes(std::string_view key, std::string_view bytes);

  std::string& out_;
  bool first_ = true;
};

}  // namespace tracefs
