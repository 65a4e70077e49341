// QuasiGroups: how many operations share their values of some fields. Who is
// alone in a group can be told from all others by them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/format/block_decoder.h"
#include "tracefs/format/frame_reader.h"

namespace tracefs::anonymize {

class QuasiGroups {
 public:
  // Fields by their names, which outlive it.
  explicit QuasiGroups(const std::vector<std::string>& names) : names_(names) {}

  // Counts the operations of a block.
  void Count(format::TraceContext* context, std::vector<std::byte> block,
             const format::Frame& frame);
  // For people; empty if there was no operation.
  std::string Text() const;

 private:
  const std::vector<std::string>& names_;
  std::unordered_map<std::string, uint64_t> groups_;
  bool groups_full_ = false;
};

}  // namespace tracefs::anonymize
