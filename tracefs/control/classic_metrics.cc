#include "tracefs/control/classic_metrics.h"

#include <algorithm>

namespace tracefs {
namespace {

// "# TYPE NAME WORD…" and its like.
struct Comment {
  std::string_view kind, name, rest;
};

std::string_view TakeWord(std::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return word;
}

Comment ReadComment(std::string_view line) {
  TakeWord(&line);  // "#"
  Comment comment;
  comment.kind = TakeWord(&line);
  comment.name = TakeWord(&line);
  comment.rest = line;
  return comment;
}

}  // namespace

std::string ClassicMetrics(std::string_view open_metrics) {
  std::string text;
  text.reserve(open_metrics.size() + open_metrics.size() / 16);
  std::string_view suffix;  // of the samples of this family
  while (!open_metrics.empty()) {
    const size_t end = std::min(open_metrics.find('\n'), open_metrics.size());
    const std::string_view line = open_metrics.substr(0, end);
    open_metrics.remove_prefix(std::min(end + 1, open_metrics.size()));
    if (!line.starts_with('#')) {
      text.append(line) += '\n';
      continue;
    }
    Comment comment = ReadComment(line);
    if (comment.kind == "TYPE") {
      suffix = comment.rest == "counter" ? "_total"
               : comment.rest == "info"  ? "_info"
                                         : "";
      if (comment.rest == "info") comment.rest = "gauge";
    } else if (comment.kind != "HELP") {
      continue;  // UNIT and EOF are not known there
    }
    text.append("# ").append(comment.kind) += ' ';
    text.append(comment.name).append(suffix) += ' ';
    text.append(comment.rest) += '\n';
  }
  return text;
}

}  // namespace tracefs
