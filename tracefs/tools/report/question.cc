#include "tracefs/tools/report/question.h"

#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr size_t kMaxParts = 64;
constexpr std::string_view kWords[] = {"filter", "analysis", "sort", "top",
                                       "columns"};

Status SetTop(std::string_view value, QuestionPart* part) {
  const auto top = value == "all" ? 0 : ParseUnsigned(value);
  if (!top) {
    return Status::Invalid("top is a number or all, not \"" + Printable(value) +
                           "\"");
  }
  part->top = static_cast<size_t>(*top);
  return {};
}

Status SetAnalysis(std::string_view value, QuestionPart* part) {
  part->analysis = query::FindAnalysis(value);
  if (part->analysis != nullptr) return {};
  std::vector<std::string_view> names;
  for (const query::AnalysisRow& row : query::Analyses()) {
    names.push_back(row.name);
  }
  return Status::Invalid("there is no analysis \"" + Printable(value) + "\"" +
                         DidYouMean(value, names));
}

Status Set(std::string_view word, std::string_view value, QuestionPart* part) {
  if (word == "filter") {
    part->filter = value;
  } else if (word == "analysis") {
    return SetAnalysis(value, part);
  } else if (word == "sort") {
    part->sort = value;
  } else if (word == "top") {
    return SetTop(value, part);
  } else if (word == "columns") {
    for (std::string_view rest = value; !rest.empty();) {
      part->columns.emplace_back(Trim(TakeUpTo(rest, ',')));
    }
  } else {
    return Status::Invalid("\"" + Printable(word) + "\" means nothing here" +
                           DidYouMean(word, kWords));
  }
  return {};
}

}  // namespace

Result<std::vector<QuestionPart>> ParseQuestion(std::string_view text,
                                                std::string_view file) {
  std::vector<QuestionPart> parts;
  size_t number = 0;
  const auto wrong = [&](const std::string& what) {
    return Status::Invalid(Printable(file) + ":" + std::to_string(number) +
                           ": " + what);
  };
  while (!text.empty()) {
    ++number;
    const std::string_view line = Trim(TakeUpTo(text, '\n'));
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      if (line.back() != ']') return wrong("a title ends with ]");
      if (parts.size() == kMaxParts) return wrong("there are too many tables");
      parts.emplace_back().title = line.substr(1, line.size() - 2);
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return wrong("expected [TITLE] or WORD = VALUE");
    }
    if (parts.empty()) return wrong("a [TITLE] comes first");
    const Status set = Set(Trim(line.substr(0, equals)),
                           Trim(line.substr(equals + 1)), &parts.back());
    if (!set.ok()) return wrong(set.message());
  }
  if (parts.empty()) return wrong("there is no [TITLE]");
  for (const QuestionPart& part : parts) {
    if (part.analysis == nullptr) {
      return wrong("[" + Printable(part.title) + "] has no analysis");
    }
  }
  return parts;
}

}  // namespace tracefs
