// Part of the document: what was traced, where and when, as far as traces say.
#include <time.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/date_text.h"
#include "tracefs/headline/headline.h"
#include "tracefs/report/document_parts.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

constexpr size_t kMostCommandBytes = 300;
constexpr int64_t kDay_s = 86'400;

// The one thing that all of them say; "" if they differ, or one says nothing.
template <typename Of>
std::string CommonTo(const std::vector<const format::TraceReader*>& traces,
                     Of of) {
  std::string common;
  for (const format::TraceReader* const trace : traces) {
    const std::string text(of(*trace));
    if (text.empty() || (!common.empty() && common != text)) return {};
    common = text;
  }
  return common;
}

std::string Property(const format::TraceReader& trace, std::string_view key) {
  return std::string(trace.description().header.Get(key));
}

bool IsOfRun(const format::TraceReader& trace) {
  const std::string line = Property(trace, "command.line");
  const std::string_view program =
      std::string_view(line).substr(0, line.find(' '));
  return program.substr(program.rfind('/') + 1) == "tracefs-run" ||
         line.starts_with("tracefs run ");
}

// What stands behind "--" of tracefs-run, which is what it ran.
std::string CommandBehind(const format::TraceReader& trace) {
  const std::string line = Property(trace, "command.line");
  const size_t at = IsOfRun(trace) ? line.find(" -- ") : line.npos;
  return at == line.npos ? std::string() : line.substr(at + 4);
}

// Without "--": the arguments of the first process, which it began.
std::string FirstCommand(const Json& processes) {
  for (size_t i = 1; i < processes["parent"].size(); ++i) {
    if (processes["parent"][i] != 0 || processes["command"][i] == "") continue;
    return processes["command"][i].get<std::string>();
  }
  return {};
}

// "2026-01-02 03:04:05" as clocks showed it there.
std::string ClockText(uint64_t real_ns, int64_t offset_s) {
  const auto seconds = static_cast<time_t>(
      static_cast<int64_t>(real_ns / 1'000'000'000) + offset_s);
  return UtcText(seconds, "%Y-%m-%d %H:%M:%S");
}

// "UTC", "UTC+02:00".
std::string ZoneText(int64_t offset_s) {
  if (offset_s == 0) return "UTC";
  const long minutes = std::labs(static_cast<long>(offset_s)) / 60;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "UTC%c%02ld:%02ld",
                offset_s < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return text.data();
}

}  // namespace

Json SubjectAsJson(const Collector& collector,
                   const std::vector<const format::TraceReader*>& traces,
                   const Json& processes) {
  std::string command = CommonTo(traces, CommandBehind);
  if (command.empty() && traces.size() == 1 && IsOfRun(*traces[0])) {
    command = FirstCommand(processes);
  } else {
    command = TextOf(command, kMostCommandBytes);
  }
  const std::string zone = CommonTo(traces, [](const auto& trace) {
    return Property(trace, "time.zone_offset_s");
  });
  int64_t offset_s = 0;
  std::from_chars(zone.data(), zone.data() + zone.size(), offset_s);
  if (std::abs(offset_s) > kDay_s) offset_s = 0;  // no place has that
  Json subject = {
      {"command", std::move(command)},
      {"host", TextOf(CommonTo(traces,
                               [](const auto& trace) {
                                 return Property(trace, "host.name");
                               }),
                      100)},
      {"directory", TextOf(CommonTo(traces,
                                    [](const auto& trace) {
                                      return MountPointOf(trace.context());
                                    }),
                           kMostCommandBytes)},
      {"begin", ""},
      {"end", ""},
      {"zone", ZoneText(offset_s)}};
  if (!collector.grid().empty()) {
    subject["begin"] = ClockText(collector.grid().first_ns(), offset_s);
    subject["end"] = ClockText(collector.grid().last_ns(), offset_s);
  }
  return subject;
}

std::string TitleOf(const Json& subject) {
  const std::string command = subject["command"];
  if (!command.empty()) return OneLine(command);
  const std::string directory = subject["directory"];
  return directory.empty() ? std::string() : "Operations below " + directory;
}

}  // namespace tracefs::report
