#include "tracefs/tools/report/question.h"

#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr std::string_view kGroup = "group";
constexpr size_t kMaxParts = 64;
constexpr std::string_view kWords[] = {
    "filter", "analysis", "sort", "top", "columns", "by", "values", "every"};

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
  } else if (word == "by") {
    part->by = value;
  } else if (word == "values") {
    part->values = value;
  } else if (word == "every") {
    const auto every = ParseDuration(value);
    if (!every || *every == 0) {
      return Status::Invalid("every is a duration, as 1s");
    }
    part->every_ns = *every;
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
  for (QuestionPart& part : parts) {
    if (part.analysis == nullptr && !part.by.empty()) {
      part.analysis = query::FindAnalysis(kGroup);
    }
    if (part.analysis == nullptr) {
      return wrong("[" + Printable(part.title) + "] has no analysis");
    }
    const bool groups =
        !part.by.empty() || !part.values.empty() || part.every_ns != 0;
    if (groups && part.analysis->name != kGroup) {
      return wrong("[" + Printable(part.title) +
                   "]: by, values and every are for analysis = group");
    }
    if (const auto group = part.Group(); !group.ok()) {
      return wrong("[" + Printable(part.title) + "] " +
                   group.status().message());
    }
  }
  return parts;
}

Result<query::GroupSpec> QuestionPart::Group() const {
  query::GroupSpec spec;
  if (!by.empty()) {
    auto keys = query::ParseGroupKeys(by, "by");
    if (!keys.ok()) return keys.status();
    spec.keys = *std::move(keys);
  }
  auto parsed = query::ParseGroupValues(values, "values");
  if (!parsed.ok()) return parsed.status();
  spec.values = *std::move(parsed);
  spec.every_ns = every_ns;
  // Several may be answered at the same time.
  spec.memory_bytes = size_t{48} << 20;
  return spec;
}

}  // namespace tracefs
