// Which files there are, as far as a trace has named them: BuildXL reports the
// rename of a directory for each file below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/build/file_step.h"
#include "tracefs/build/path_table.h"

namespace tracefs::buildxl {

// Used by one thread. Memory: a byte for each path of the table.
class Names {
 public:
  struct Moved {
    build::PathTable::Id from;
    build::PathTable::Id to;
    bool is_directory;
  };

  // `paths` outlives it.
  explicit Names(build::PathTable& paths) : paths_(paths) {}

  // What an operation tells of its names; a rename, see Rename.
  void Take(const build::FileStep& step);
  // What a rename that succeeded moves: the file itself, then what is below it,
  // directories before what they hold, by name; of an exchange both ways.
  // `budget`: how many names may be looked at; it is lessened by those that
  // were. Where it does not suffice, what is beyond keeps its old name.
  std::vector<Moved> Rename(const build::FileStep& step, size_t* budget);

 private:
  enum class State : uint8_t { kUnknown, kFile, kDirectory };

  void Set(build::PathTable::Id id, State state);
  void Exists(build::PathTable::Id id, State state);
  State Get(build::PathTable::Id id) const {
    return id < states_.size() ? states_[id] : State::kUnknown;
  }
  // The id, and all below it that there are.
  std::vector<build::PathTable::Id> TreeOf(build::PathTable::Id top,
                                           size_t* budget) const;
  void AddTree(build::PathTable::Id from, build::PathTable::Id to,
               size_t* budget, std::vector<Moved>* moved);

  build::PathTable& paths_;
  std::vector<State> states_;
};

}  // namespace tracefs::buildxl
