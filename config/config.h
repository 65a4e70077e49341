// A config: text -> plain structs that remember where each word stood
// (REFERENCE.md). Nothing is opened, resolved or built here; the filter's text
// is handed to filters/input as it is.
//
// Tested by tests/unit/config and tests/fuzz/config_fuzz.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "tracefs/base/status.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs {

// Limits on what a file may hold: it may come from anyone who can reach the
// control socket.
inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;
inline constexpr size_t kMaxConfigTracers = 64;
inline constexpr size_t kMaxConfigEntries = 64;      // in one section
inline constexpr size_t kMaxConfigOptions = 64;      // of one entry
inline constexpr size_t kMaxConfigNesting = 64;      // braces in braces
inline constexpr size_t kMaxConfigWordBytes = 64;    // names
inline constexpr size_t kMaxConfigTextBytes = 4096;  // values

struct ConfigWord {
  std::string text;
  SourcePosition position;
};

struct ConfigValue {
  // The word, the string without quotes and escapes, or all between the
  // braces.
  std::string text;
  SourcePosition position;  // of its first byte; of a block, behind its brace
  ValueType type = ValueType::kNone;
  uint64_t number = 0;            // kCount, kSize (bytes), kDuration (ns)
  std::vector<ConfigWord> flags;  // kFlags
  std::string argument;  // of kChoice: the text behind the word, if it has one
};

struct ConfigOption {
  std::string name;
  SourcePosition position;
  ConfigValue value;  // of type kNone: a bare word
};

struct ConfigEntry {
  std::string name;  // as in the table: aliases are replaced
  SourcePosition position;
  EntryRole role{};
  ConfigValue value;  // of type kNone: there was no '='
  std::vector<ConfigOption> options;

  // The option of that name, or null.
  const ConfigOption* Find(std::string_view option) const;
  bool Has(std::string_view option) const { return Find(option) != nullptr; }
  // What the option of that name says, or `otherwise` where it is not given: a
  // count or bytes, a duration, a text or the word of a choice. The text lives
  // as long as this.
  uint64_t Number(std::string_view option, uint64_t otherwise = 0) const;
  std::chrono::nanoseconds Duration(std::string_view option,
                                    std::chrono::nanoseconds otherwise) const;
  std::string_view Text(std::string_view option,
                        std::string_view otherwise = {}) const;
};

struct TracerConfig {
  std::string name;  // the word before the tracer's '{'; may be empty
  SourcePosition position;
  // The text between the filter section's braces: filters/input reads it, and
  // counts lines and columns from here.
  std::string filter;
  SourcePosition filter_position;
  // In the order of the file; `assembly` may be empty (the mount's default).
  std::vector<ConfigEntry> assembly;
  // Output filters, then the output driver.
  std::vector<ConfigEntry> output;
};

struct Config {
  std::string file_name;
  std::vector<TracerConfig> tracers;  // at least one
};

// Reads `text`; `file_name` is for messages. Errors are kInvalid and say
// "file:line:column: what is wrong; what was probably meant".
Result<Config> ParseConfig(std::string_view text, std::string_view file_name,
                           const ConfigSchema& schema);

// The same from a file: kSystem where it cannot be read.
Result<Config> LoadConfig(const std::string& path, const ConfigSchema& schema);

// A tracer as config text again: the effective config of a trace header. What
// it makes parses to the same structs, positions aside.
std::string ToText(const TracerConfig& tracer);

}  // namespace tracefs
