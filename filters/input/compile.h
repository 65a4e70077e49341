// Third stage of the filter language: checked tree -> programs, one for events
// of any operation and one specialised for each.
//
// Tested by tests/unit/filters/input/compile_test.cc (the programs' text) and
// oracle_test.cc (their answers).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "filters/input/check.h"
#include "filters/input/name_table.h"
#include "filters/input/program.h"
#include "tracefs/base/status.h"
#include "tracefs/event/op.h"

namespace tracefs {

struct CompiledFilter {
  CompiledFilter() = default;
  CompiledFilter(CompiledFilter&&) = default;  // program_of stays right
  CompiledFilter& operator=(CompiledFilter&&) = default;

  // [0] is for every operation. The others are specialised: tests on the
  // operation and on fields its requests never carry are folded away.
  std::vector<Program> programs;
  // The one of each operation, in `programs`; several may share it.
  std::array<const Program*, kOpCount> program_of{};
  // Keep the name predicates' bits; as long as the programs run.
  std::vector<NameTable::Handle> names;

  const Program& general() const { return programs[0]; }
  const Program& program(Op op) const { return *program_of[Index(op)]; }
};

// `filter` comes from CheckFilter. An error (kInvalid) means that the compiler
// made a program that Validate refuses: a defect, not a wrong filter.
Result<CompiledFilter> CompileFilter(const CheckedFilter& filter,
                                     NameTable& names);

}  // namespace tracefs
