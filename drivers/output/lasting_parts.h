// What a later process has to know of the parts of a trace to go on with them
// (TraceIdentity::survives): where each is, and what each begins with.
#pragma once

#include <cstdint>
#include <string_view>

#include "drivers/output/output_folder.h"

namespace tracefs {

// One thread at a time.
class LastingParts {
 public:
  struct Part {
    uint64_t number = 0;  // in its name; 0: the first part
    OutputFileId id;      // nothing: it was about to be made
    bool operator==(const Part&) const = default;
  };
  // More are not removed by a later process.
  static constexpr uint64_t kMost = uint64_t{1} << 16;

  // A place for them: of the process that begins, its number in `*memory`; or
  // the one of that number. False if there is none.
  bool Make(uint64_t* memory);
  bool Find(uint64_t memory);

  bool there() const { return place_ != nullptr; }
  void Note(uint64_t part, const Part& what);
  Part Get(uint64_t part) const;
  // The frame of block 0. False if it is too long.
  bool NoteHead(std::string_view head);
  std::string_view head() const;

 private:
  struct Place;
  Place* place_ = nullptr;
};

}  // namespace tracefs
