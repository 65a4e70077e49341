// What the feeds have in common: an operation seen as a file event, its
// members of JSON, times as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/format/alarm.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/record.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"
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

// The number of a field, if the event has it: as a number or as text.
void PutField(std::string_view key, const FileEvent& event, Field field,
              JsonWriter* json);
void PutFieldText(std::string_view key, const FileEvent& event, Field field,
                  JsonWriter* json);
// A list of one of our own words.
void PutWordList(std::string_view key, std::string_view only_entry,
                 JsonWriter* json);
// A list of texts, if there are any.
void PutTexts(std::string_view key, const std::vector<std::string_view>& texts,
              JsonWriter* json);
// "120 bash", "120" where the name is not known.
std::string AncestorText(const format::AlarmAncestor& ancestor);
// What could be found out about who did it: `ancestors` from the parent up,
// each with `pid` and `comm`, `touched`, and `not_known`.
void PutAlarmSource(const format::AlarmRecord& alarm, JsonWriter* json);
// What a rule counted, who did it, and what was done.
void PutAlarm(const format::AlarmRecord& alarm, JsonWriter* json);
// What no foreign schema has a place for: the operation as it is.
void PutOperation(const FileEvent& event, JsonWriter* json);

}  // namespace tracefs
