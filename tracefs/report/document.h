// The document: what the panels of the report show, as JSON (docs/report.md has
// its schema). Pages, pictures and tables are made from it and from nothing
// else, so that the JSON has everything that others show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/format/trace_reader.h"
#include "tracefs/headline/headline.h"
#include "tracefs/report/collector.h"

namespace tracefs::report {

using Json = nlohmann::json;

struct DocumentOptions {
  std::string title;
  // It was asked for; else what the traces say of themselves comes first.
  bool title_given = false;
  // What was asked for, as it was given; for the reader.
  std::string filter;
  std::string from;
  std::string to;
  HeadlineFacts asked;  // the same, for the headline
};

// The same traces make the same document, byte by byte. Its size is bounded:
// `notes` says what was folded for that.
Json MakeDocument(Collector& collector,
                  const std::vector<const format::TraceReader*>& traces,
                  const DocumentOptions& options);

// JSON text that may stand in an HTML element: <, > and & are \uXXXX, and so
// are line ends that JavaScript has and JSON has not.
std::string EmbeddableJson(const Json& document);

// A text from a trace: what is hidden or no UTF-8 as \xNN, and a backslash as
// two, so that it can be undone. If it has more than `most` bytes, the middle
// is left out, and its size stands there.
inline constexpr size_t kMostTextBytes = 1000;
std::string TextOf(std::string_view bytes, size_t most = kMostTextBytes);

}  // namespace tracefs::report
