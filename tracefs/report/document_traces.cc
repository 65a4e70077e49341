// Parts of the document about the traces themselves: what they say of
// themselves, what they lack.
#include "tracefs/format/frame.h"
#include "tracefs/headline/headline.h"
#include "tracefs/report/document_parts.h"
#include "tracefs/text/escape.h"

namespace tracefs::report {
namespace {

// A config or a DAG may be long; more of it is in the trace.
constexpr size_t kMostValueBytes = 8192;
constexpr size_t kMostPropertyBytes = 100'000;
constexpr size_t kMostTraces = 64;

// As TextOf, but lines stay lines: a config has some.
std::string LinesOf(std::string_view value) {
  std::string text;
  while (value.ends_with('\n')) value.remove_suffix(1);
  for (size_t end = 0; end != value.npos; value.remove_prefix(end + 1)) {
    end = value.find('\n');
    text += (text.empty() ? "" : "\n") + TerminalText(value.substr(0, end));
    if (end == value.npos) break;
  }
  return text;
}

Json TraceAsJson(const format::TraceReader& trace, size_t* bytes_left) {
  const format::ReadStats& stats = trace.stats();
  const format::TraceHeader& header = trace.description().header;
  Json properties = Json::array();
  size_t left_out = 0;
  for (const auto& [key, value] : header.properties) {
    const std::string text = value.size() > kMostValueBytes
                                 ? TextOf(value, kMostValueBytes)
                                 : LinesOf(value);
    const size_t bytes = EmbeddedBytes(text) + key.size();
    if (bytes > *bytes_left) {
      ++left_out;
      continue;
    }
    *bytes_left -= bytes;
    properties.push_back({TextOf(key, 100), text});
  }
  Json lost = Json::object();
  for (const auto& [reason, count] : stats.losses) {
    lost[TextOf(reason, 100)] = count;
  }
  Json damage = Json::object();
  const auto tell = [&](const char* what, uint64_t count) {
    if (count != 0) damage[what] = count;
  };
  tell("damaged bytes", stats.damaged_bytes);
  tell("bytes cut off at the end", stats.cut_bytes);
  tell("missing blocks", stats.missing_blocks);
  tell("unreadable blocks", stats.undecodable_blocks);
  tell("malformed messages", stats.malformed_messages);
  tell("operations that FINAL counts and are not there", stats.MissingEvents());
  tell("operations listed after later ones", stats.unordered_events);
  return {{"name", TextOf(trace.context().name)},
          {"serial", format::SerialText(trace.preamble().serial)},
          {"chain", TextOf(trace.preamble().chain, 200)},
          {"tracer", header.tracer_id},
          {"complete", !stats.Bad()},
          {"final", stats.final_record.has_value()},
          {"snapshot", stats.snapshot.has_value()},
          {"operations", stats.events},
          {"process_records", stats.process_records},
          {"lost", std::move(lost)},
          {"damage", std::move(damage)},
          {"visibility", TextOf(header.Get("visibility"), 100)},
          {"invisible", TextOf(header.Get("visibility.invisible"), 4000)},
          {"properties", std::move(properties)},
          {"properties_left_out", left_out}};
}

}  // namespace

Json TracesAsJson(const std::vector<const format::TraceReader*>& traces) {
  Json result = Json::array();
  size_t bytes_left = kMostPropertyBytes;
  for (const format::TraceReader* const trace : traces) {
    if (result.size() == kMostTraces) break;
    result.push_back(TraceAsJson(*trace, &bytes_left));
  }
  return result;
}

Json LossesAsJson(const Collector& collector,
                  const std::vector<const format::TraceReader*>& traces) {
  const uint64_t origin = OriginOf(collector);
  uint64_t lost = 0;
  size_t incomplete = 0;
  for (const format::TraceReader* const trace : traces) {
    lost += trace->stats().lost_events + trace->stats().MissingEvents();
    if (trace->stats().Bad()) ++incomplete;
  }
  // Where a trace does not say when, a loss is drawn where the operations were
  // that had been handed out when it was told: it is told in a block after it.
  Json seen = Json::array();
  for (const LossSeen& loss : collector.losses()) {
    seen.push_back({loss.real_ns == 0 ? 0 : Since(origin, loss.real_ns),
                    loss.count, TextOf(loss.reason, 100)});
  }
  return {{"operations", lost},
          {"traces", traces.size()},
          {"incomplete_traces", incomplete},
          {"seen", std::move(seen)},
          {"seen_left_out", collector.losses_left_out()}};
}

Json VerdictAsJson(const Collector& collector,
                   const std::vector<const format::TraceReader*>& traces,
                   const HeadlineFacts& asked) {
  std::vector<const format::TraceContext*> contexts;
  for (const format::TraceReader* const trace : traces) {
    contexts.push_back(&trace->context());
  }
  const HeadlineText text = collector.headline().Finish(contexts, asked);
  Json findings = Json::array();
  for (const Saving& finding : text.findings) {
    findings.push_back({{"time_ns", finding.time_ns},
                        {"count", finding.count},
                        {"what", finding.what},
                        {"command", TextOf(finding.command)}});
  }
  const auto known = [](uint64_t ns) { return ns == 0 ? Json() : Json(ns); };
  return {{"sentences", text.sentences},
          {"elapsed_ns", known(text.elapsed_ns)},
          {"covered_ns", known(text.covered_ns)},
          {"findings", std::move(findings)}};
}

}  // namespace tracefs::report
