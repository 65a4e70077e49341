// Answers a question: runs its analyses in one pass and prints their tables.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

inline constexpr std::array<std::string_view, 4> kQuestionFormats = {
    "text", "csv", "json", "md"};
// Of what is a page, too.
inline constexpr std::array<std::string_view, 5> kDiffFormats = {
    "text", "csv", "json", "md", "html"};

// Rows of a table where the query names no number.
inline constexpr size_t kDefaultTop = 20;

// The query of a question, or of the file that was given.
Result<std::string> QueryText(const ReportOptions& options);

int RunQuestion(const ReportOptions& options, OutputBuffer& out,
                OutputBuffer& err);

}  // namespace tracefs
