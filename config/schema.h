// The schema of a config: which words it may use, and what each takes. The
// caller of ParseConfig hands it in as small tables, made from the tables of
// the drivers and filters themselves, so that the grammar knows no driver and
// every error can name what is known.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace tracefs {

// What follows a name, or its '='.
enum class ValueType : uint8_t {
  kNone,      // nothing: `compress`, `unbuffered`
  kText,      // a string or a bare word, not empty
  kChoice,    // one of the row's words
  kCount,     // an integer, decimal or 0x…
  kSize,      // bytes: an integer, or one with K, M, G, T
  kDuration,  // an integer with ns, us, ms, s, m, h; kept as nanoseconds
  kFlags,     // { WORD | WORD … }, each one of the row's words
  kBlock,     // { anything with balanced braces }, kept as text
  kRest,      // no '=': everything up to the ';', kept as text
};

// An option of an entry: `buf = 262144`, `unbuffered`.
struct OptionRow {
  std::string_view name = {};
  // Taken as well, and kept as `name`; empty: none.
  std::string_view alias = {};
  ValueType type = ValueType::kNone;
  bool required = false;
  // The range of kCount, kSize and kDuration, both ends included.
  uint64_t min = 0;
  uint64_t max = std::numeric_limits<uint64_t>::max();
  std::span<const std::string_view> words = {};  // of kChoice and kFlags
  // The word of kChoice that a text follows: `when_full = spill "DIR"`.
  std::string_view word_with_text = {};
};

enum class EntryRole : uint8_t {
  kAssembly,  // an assembly driver
  kRule,      // a rule of the assembly section: `when …`
  kFilter,    // an output filter
  kDriver,    // an output driver: exactly one a tracer, and the last entry
};

// A driver, filter or rule: `stream = { … }`, `file = "…" buf = 1M`.
struct EntryRow {
  std::string_view name = {};
  EntryRole role = EntryRole::kAssembly;
  std::span<const std::string_view> aliases = {};
  // What its own '=' gives it; `value.name` is not used.
  OptionRow value = {};
  std::span<const OptionRow> options = {};
};

struct ConfigSchema {
  std::span<const EntryRow> assembly;
  std::span<const EntryRow> output;
};

}  // namespace tracefs
