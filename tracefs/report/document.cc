#include "tracefs/report/document.h"

#include "tracefs/base/version.h"
#include "tracefs/report/document_parts.h"
#include "tracefs/text/escape.h"

namespace tracefs::report {

namespace {
// The slowest 250 have room even where all of them are escaped.
constexpr size_t kMostSlowBytes = 1'000'000;
constexpr size_t kMostSlowOfBinsBytes = 200'000;
}  // namespace

std::string TextOf(std::string_view bytes, size_t most) {
  if (bytes.size() <= most) return TerminalText(bytes);
  const size_t half = most / 2;
  // A character that is cut in two shows as \xNN, which is as well.
  return TerminalText(bytes.substr(0, half)) + "\u2026(" +
         std::to_string(bytes.size() - 2 * half) + " bytes)\u2026" +
         TerminalText(bytes.substr(bytes.size() - half));
}

size_t EmbeddedBytes(std::string_view text) {
  size_t bytes = text.size() + 3;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') bytes += 5;
    if (c == '"' || c == '\\') ++bytes;
  }
  return bytes;
}

Json SumsAsJson(const tally::Sums& sums) {
  return {{"count", sums.count},     {"errors", sums.errors},
          {"read", sums.read},       {"written", sums.written},
          {"time_ns", sums.time_ns}, {"longest_ns", sums.max_ns},
          {"bytes", sums.bytes}};
}

void AppendSums(const tally::Sums& sums, Json* row) {
  for (const uint64_t number :
       {sums.count, sums.errors, sums.read, sums.written, sums.time_ns,
        sums.max_ns, sums.bytes}) {
    row->push_back(number);
  }
}

Json MakeDocument(Collector& collector,
                  const std::vector<const format::TraceReader*>& traces,
                  const DocumentOptions& options) {
  Json document;
  Json notes = Json::array();
  document["schema"] = "tracefs-report/2";
  document["generator"] = "tracefs-report " + std::string(kVersion);
  document["asked"] = {{"filter", TextOf(options.filter)},
                       {"from", TextOf(options.from)},
                       {"to", TextOf(options.to)},
                       {"narrowed_by", options.asked.narrowed_by}};
  document["time"] = TimeAsJson(collector);
  Json& totals = document["totals"] = SumsAsJson(collector.total());
  totals["untimed"] = collector.untimed();
  totals["before"] = collector.before();
  totals["inferred"] = collector.inferred();
  totals["shortest_ns"] = collector.latency().min();
  totals["p50_ns"] = collector.latency().Quantile(0.5);
  totals["p99_ns"] = collector.latency().Quantile(0.99);
  document["operations"] = OperationsAsJson(collector);
  document["timeline"] = TimelineAsJson(collector, traces);
  document["latency"] = LatencyAsJson(collector);
  std::vector<NodeId> file_rows;
  std::vector<size_t> process_places;
  document["tables"] = TablesAsJson(collector, &file_rows, &notes);
  document["errors"] = ErrorsAsJson(collector);
  document["access"] = AccessAsJson(collector);
  document["slowest"] = SlowestAsJson(collector, collector.slow().OfAll(),
                                      kMostSlowBytes, &notes);
  document["slowest_of_bins"] = SlowestAsJson(
      collector, collector.slow().OfBins(), kMostSlowOfBinsBytes, &notes);
  document["counted"] = CountedAsJson(collector, traces, &notes);
  document["tree"] = TreeAsJson(collector, file_rows, &notes);
  const Json& processes = document["processes"] =
      ProcessesAsJson(collector, &process_places, &notes);
  document["uses"] = UsesAsJson(collector, file_rows, process_places);
  document["flame"] = FlameAsJson(collector, &notes);
  document["traces"] = TracesAsJson(traces);
  document["losses"] = LossesAsJson(collector, traces);
  const Json& subject = document["subject"] =
      SubjectAsJson(collector, traces, processes);
  const std::string known =
      options.title_given ? std::string() : TitleOf(subject);
  document["title"] = known.empty() ? TextOf(options.title) : known;
  document["notes"] = std::move(notes);
  document["verdict"] = VerdictAsJson(collector, traces, options.asked);
  document["summary"] = SummaryAsJson(document);
  return document;
}

std::string EmbeddableJson(const Json& document) {
  const std::string plain = document.dump();
  std::string text;
  text.reserve(plain.size() + plain.size() / 16);
  for (size_t i = 0; i < plain.size(); ++i) {
    switch (plain[i]) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      case '\xe2':
        // U+2028 and U+2029: e2 80 a8, e2 80 a9.
        if (plain.compare(i, 3, "\xe2\x80\xa8") == 0 ||
            plain.compare(i, 3, "\xe2\x80\xa9") == 0) {
          text += plain[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
          i += 2;
          break;
        }
        [[fallthrough]];
      default:
        text += plain[i];
    }
  }
  return text;
}

}  // namespace tracefs::report
