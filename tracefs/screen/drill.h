// Drill: where a reader of screens has gone, as terms of a filter: operations
// of this process, on that file. The text of it works with --filter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/screen/activity.h"

namespace tracefs::screen {

// What rows stand for.
enum class Group : uint8_t {
  kOp,
  kProcess,
  kCommand,
  kFile,
  kDirectory,  // what is right in it
  kTree,       // a directory and all below it
  kError,
  kUser,
  kSource,
};

struct Term {
  Group group{};
  uint64_t number = 0;  // of op, process, error, user, source
  std::string text;     // of command, file, directory, tree

  bool operator==(const Term&) const = default;
  bool Matches(const ActivityKey& key) const;
  // As the filter language has it; empty of kSource, which it does not know.
  std::string FilterText() const;
};

// The directory that an operation counts for: the one that it is about, or
// else the one that holds its file. Empty if the path is not known.
std::string_view DirectoryOf(const ActivityKey& key);

struct Drill {
  std::string base;  // the filter that all has passed; may be empty
  std::vector<Term> terms;

  bool Matches(const ActivityKey& key) const;
  std::string FilterText() const;
};

// A word of the filter language that means just this text.
std::string FilterString(std::string_view text);

}  // namespace tracefs::screen
