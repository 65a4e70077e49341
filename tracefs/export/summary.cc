#include "tracefs/export/summary.h"

#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

void AppendTerminalText(std::string_view text, std::string* out) {
  AppendJsonString(TerminalText(text), out);
}

}  // namespace

std::string TracesAsJson(const ExportSummary& summary) {
  std::string out = "[";
  for (const format::TraceContext* trace : summary.traces) {
    const format::TraceHeader& header = trace->description.header;
    out += out.size() == 1 ? "{\"name\":" : ",{\"name\":";
    AppendTerminalText(trace->name, &out);
    out += ",\"tracer\":" + std::to_string(header.tracer_id);
    out += ",\"bad\":";
    out += trace->stats.Bad() ? "true" : "false";
    out += ",\"operations\":" + std::to_string(trace->stats.events);
    out += ",\"lost\":{";
    bool first = true;
    for (const auto& [reason, count] : trace->stats.losses) {
      if (!first) out += ',';
      first = false;
      AppendTerminalText(reason, &out);
      out += ':' + std::to_string(count);
    }
    out += "},\"properties\":{";
    first = true;
    for (const auto& [key, value] : header.properties) {
      if (!first) out += ',';
      first = false;
      AppendTerminalText(key, &out);
      out += ':';
      AppendTerminalText(value, &out);
    }
    out += "}}";
  }
  return out + "]";
}

}  // namespace tracefs
