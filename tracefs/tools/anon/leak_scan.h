// LeakScan: finds any of many protected values in bytes, in every form in which
// a value gets into places it should not be in: as it is, as UTF-16, as hex, as
// base64 at any alignment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracefs/base/bytes.h"

namespace tracefs::anonymize {

// Used by one thread.
class LeakScan {
 public:
  // What is shorter than this is found as a whole argument only (Audit): it
  // occurs everywhere by chance.
  static constexpr size_t kMinBytes = 4;
  static constexpr size_t kMaxValues = 1'000'000;

  // Takes a value to look for. `what` says in messages what it is. Text is
  // found between characters that are not part of a word; data anywhere.
  void AddText(std::string_view value, std::string_view what);
  void AddData(std::string_view value, std::string_view what);

  struct Hit {
    std::string value;
    std::string_view what;
    std::string_view form;  // "as it is", "in hex", …
    size_t offset = 0;
  };
  // Appends hits in `bytes`, each value once in the scan's life. Shorter values
  // than min_bytes do not count: they are in random bytes by chance.
  void Find(ByteSpan bytes, size_t min_bytes, std::vector<Hit>* hits);

  size_t values() const { return seen_.size(); }
  bool full() const { return full_; }

 private:
  struct Pattern {
    std::string bytes;
    uint32_t value = 0;  // in values_
    std::string_view form;
    bool word = false;  // between characters that are not part of a word
  };
  void Add(std::string_view value, std::string_view what, bool word);
  void AddPattern(std::string bytes, uint32_t value, std::string_view form,
                  bool word);

  struct Value {
    std::string text;
    std::string_view what;
    bool found = false;
  };
  std::vector<Value> values_;
  std::unordered_set<std::string> seen_;
  std::vector<Pattern> patterns_;
  // Patterns by their first four bytes; bits tell quickly that there is none.
  std::unordered_multimap<uint32_t, uint32_t> by_start_;
  std::vector<uint64_t> bits_;
  bool full_ = false;
};

}  // namespace tracefs::anonymize
