// A question as text: what --print shows and --query reads again.
//
//   # Who fails, and how?
//   [errors]                 a table and its title
//   filter = errno != 0
//   analysis = group         one of tracefs/query/analyses.h
//   by = errno,op
//   values = count
//   sort = count
//   top = 20
//   columns = …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/query/analyses.h"

namespace tracefs {

struct QuestionPart {
  std::string title;
  std::string filter;  // "": every operation
  const query::AnalysisRow* analysis = nullptr;
  std::string sort;           // "": as the analysis has it
  std::optional<size_t> top;  // 0: all
  std::vector<std::string> columns;
  std::string by;      // of group
  std::string values;  // likewise
  uint64_t every_ns = 0;

  // What group counts; kInvalid as ParseQuestion.
  Result<query::GroupSpec> Group() const;
};

// Errors are kInvalid: "file:line: what is wrong". At least one part.
Result<std::vector<QuestionPart>> ParseQuestion(std::string_view text,
                                                std::string_view file);

}  // namespace tracefs
