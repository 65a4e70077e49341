// ReportKeeper: what was found wrong with a trace, kept to be told when all
// else was printed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tracefs/format/report.h"

namespace tracefs {

// Keeps the first reports about a trace for the end; counts the rest.
class ReportKeeper {
 public:
  static constexpr size_t kMaxKept = 20;

  void Add(const format::Report& report);
  // One line per finding, each after `prefix`, then one that sums up. Empty if
  // there is nothing to say.
  std::string Text(const std::string& prefix,
                   const format::ReadStats& stats) const;

 private:
  struct Kept {
    format::ReportKind kind;
    std::string text;
  };
  std::vector<Kept> kept_;
  uint64_t left_out_ = 0;
  // Blocks that cannot be decoded, by why: all of a trace, as a rule.
  struct Undecodable {
    uint64_t first = 0;
    uint64_t count = 0;
    std::string text;  // of the first one
  };
  std::map<std::string, Undecodable> undecodable_;
};

}  // namespace tracefs
