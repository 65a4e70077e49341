// OpenMetrics text (openmetrics.io, version 1.0), for whatever a daemon counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs {

// name="value": any bytes, made UTF-8, with what the format escapes escaped.
std::string MetricLabel(std::string_view name, std::string_view value);

// The shortest text of that number.
std::string MetricNumber(double value);

class OpenMetricsPage {
 public:
  struct Family {
    std::string_view name, type, unit, help;
  };

  // `families` outlive it; the calls below name them by their index.
  explicit OpenMetricsPage(std::span<const Family> families)
      : families_(families), samples_(families.size()) {}

  void Sample(size_t family, std::string_view suffix, std::string_view labels,
              const std::string& value);
  // Of a counter.
  void Count(size_t family, std::string_view labels, uint64_t count);
  void Gauge(size_t family, std::string_view labels, uint64_t value);
  // Of a counter of time.
  void Seconds(size_t family, std::string_view labels, uint64_t ns);

  // What every daemon has: the version that runs, and its processor time.
  void AddProcess(size_t build, size_t cpu);
  // Its helpers (tracefs/base/helper_link.h): a gauge and two counters, of the
  // kinds that it has or had. Three families in a row from `first` on.
  void AddHelpers(size_t first);
  static constexpr std::array<Family, 3> kHelperFamilies = {{
      {"tracefs_helpers", "gauge", "",
       "Processes beside the daemon that live, by kind."},
      {"tracefs_helper_deaths", "counter", "", "Of them, those that died."},
      {"tracefs_helper_replacements", "counter", "",
       "Of those that died, how many others took the place."},
  }};

  // All families that have samples, each with its own together, and the end
  // mark.
  std::string Text() const;

 private:
  const std::span<const Family> families_;
  std::vector<std::string> samples_;
};

}  // namespace tracefs
