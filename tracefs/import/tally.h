// Tally: how often something of a foreign trace was not taken over, by what it
// was.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tracefs::import {

class Tally {
 public:
  // Names come from the input: what is more is counted together, and longer
  // ones are cut.
  static constexpr size_t kMostNames = 256;
  static constexpr size_t kMostNameBytes = 80;

  void Add(std::string_view what) {
    what = what.substr(0, kMostNameBytes);
    const auto at = counts_.find(what);
    if (at != counts_.end()) {
      ++at->second;
    } else {
      ++counts_[counts_.size() < kMostNames ? std::string(what) : "others"];
    }
  }
  const std::map<std::string, uint64_t, std::less<>>& counts() const {
    return counts_;
  }

 private:
  std::map<std::string, uint64_t, std::less<>> counts_;
};

// What came of an import.
struct ImportCounts {
  uint64_t lines = 0;
  uint64_t operations = 0;
  uint64_t unread = 0;  // lines that could not be read
  Tally left_out;       // calls and lines that are not in the trace
  Tally guessed;        // what is in it and was not said
};

}  // namespace tracefs::import
