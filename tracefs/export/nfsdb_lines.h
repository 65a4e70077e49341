// Lines of CAS's raw .nfsdb, as its parser takes them (etrace_parser of
// Samsung/CAS): each is an event's name, '|' and a list of numbers or a text;
// in front of it stands who, where and when (NfsdbClock).
//
// The parser sorts the lines of a process by time alone, in no stable order: no
// two lines may have one time. It takes lines of up to 2,046 bytes, and stops
// reading at the first longer one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "tracefs/base/clock.h"

namespace tracefs {

// The lines of one event, each with its end, but without what stands in front.
class NfsdbLines {
 public:
  // Of a text between two ends of lines. What is in front of it has room.
  static constexpr size_t kMostBytes = 1900;

  using Numbers = std::initializer_list<std::pair<std::string_view, uint64_t>>;

  // Whether a name can be told: only arguments go on in another line.
  static bool Fits(std::string_view name) {
    if (name.find('\0') != name.npos) return false;
    while (name.size() > kMostBytes) {
      const size_t end = name.find('\n');
      if (end > kMostBytes) return false;
      name.remove_prefix(end + 1);
    }
    return true;
  }

  // NAME|a=1,b=2. A comma after the last one is one too many for the parser.
  void Add(std::string_view name, Numbers numbers = {}) {
    text_ += name;
    char separator = '|';
    if (numbers.size() == 0) text_ += separator;
    for (const auto& [key, value] : numbers) {
      text_ += separator;
      text_ += key;
      text_ += '=';
      text_ += std::to_string(value);
      separator = ',';
    }
    text_ += '\n';
  }

  // KEY|name, for one that Fits(). What comes after an end of a line is in
  // Cont|…; an empty Cont_end| ends it.
  void AddName(std::string_view key, std::string_view name) {
    AddPieces(std::string(key) + "|", name, {});
  }

  // A[index]argument, without a bar. One that is too long for a line goes on in
  // another one with the same index.
  void AddArgument(size_t index, std::string_view argument) {
    const std::string begin = "A[" + std::to_string(index) + "]";
    AddPieces(begin, argument, begin);
  }

  const std::string& text() const { return text_; }

 private:
  void AddPieces(std::string begin, std::string_view text,
                 std::string_view again) {
    bool continued = false;
    for (;;) {
      const size_t end = std::min(text.find('\n'), text.size());
      AddPiece(begin, text.substr(0, end), again);
      if (end == text.size()) break;
      text.remove_prefix(end + 1);
      begin = "Cont|";
      continued = true;
    }
    if (continued) text_ += "Cont_end|\n";
  }
  void AddPiece(std::string_view begin, std::string_view piece,
                std::string_view again) {
    for (;;) {
      const std::string_view part =
          again.empty() ? piece : piece.substr(0, kMostBytes);
      text_ += begin;
      text_ += part;
      text_ += '\n';
      piece.remove_prefix(part.size());
      if (piece.empty()) return;
      begin = again;
    }
  }

  std::string text_;
};

// Puts "0: upid,cpu,seconds,ns!" in front of lines, each with a time of its
// own: that of its event, or one more than the line before has.
class NfsdbClock {
 public:
  void Append(uint32_t upid, uint32_t cpu, uint64_t time_ns,
              std::string_view lines, std::string* out) {
    const std::string who =
        "0: " + std::to_string(upid) + "," + std::to_string(cpu) + ",";
    while (!lines.empty()) {
      last_ns_ = std::max(last_ns_ + 1, time_ns);
      *out += who;
      *out += std::to_string(last_ns_ / kNsPerSecond) + "," +
              std::to_string(last_ns_ % kNsPerSecond) + "!";
      const size_t size = lines.find('\n') + 1;
      *out += lines.substr(0, size);
      lines.remove_prefix(size);
    }
  }

 private:
  uint64_t last_ns_ = 0;
};

}  // namespace tracefs
