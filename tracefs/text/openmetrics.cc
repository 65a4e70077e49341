#include "tracefs/text/openmetrics.h"

#include <sys/resource.h>

#include <array>
#include <charconv>

#include "tracefs/base/helper_link.h"
#include "tracefs/base/version.h"
#include "tracefs/text/escape.h"

namespace tracefs {

std::string MetricLabel(std::string_view name, std::string_view value) {
  std::string label(name);
  label += "=\"";
  // In UTF-8 text only backslashes, which the line above put there or doubled,
  // and quotes are left to escape.
  for (const char c : TerminalText(value)) {
    if (c == '\\' || c == '"') label += '\\';
    label += c;
  }
  return label + '"';
}

std::string MetricNumber(double value) {
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), error == std::errc() ? end : text.data()};
}

void OpenMetricsPage::Sample(size_t family, std::string_view suffix,
                             std::string_view labels,
                             const std::string& value) {
  std::string& samples = samples_[family];
  samples += families_[family].name;
  samples += suffix;
  if (!labels.empty()) {
    samples += '{';
    samples += labels;
    samples += '}';
  }
  samples += ' ' + value + '\n';
}

void OpenMetricsPage::Count(size_t family, std::string_view labels,
                            uint64_t count) {
  Sample(family, "_total", labels, std::to_string(count));
}

void OpenMetricsPage::Gauge(size_t family, std::string_view labels,
                            uint64_t value) {
  Sample(family, "", labels, std::to_string(value));
}

void OpenMetricsPage::Seconds(size_t family, std::string_view labels,
                              uint64_t ns) {
  constexpr double kSecondsPerNs = 1e-9;
  Sample(family, "_total", labels,
         MetricNumber(static_cast<double>(ns) * kSecondsPerNs));
}

void OpenMetricsPage::AddProcess(size_t build, size_t cpu) {
  Sample(build, "_info", MetricLabel("version", kVersion), "1");
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto us = [](const timeval& t) {
      return static_cast<uint64_t>(t.tv_sec) * 1'000'000 +
             static_cast<uint64_t>(t.tv_usec);
    };
    Seconds(cpu, "", (us(usage.ru_utime) + us(usage.ru_stime)) * 1000);
  }
}

void OpenMetricsPage::AddHelpers(size_t first) {
  for (const HelperCounts& helper : LookAtHelpers()) {
    const std::string kind = MetricLabel("kind", HelperName(helper.kind));
    Gauge(first, kind, helper.living);
    Count(first + 1, kind, helper.died);
    Count(first + 2, kind, helper.replaced);
  }
}

std::string OpenMetricsPage::Text() const {
  std::string text;
  for (size_t i = 0; i < families_.size(); ++i) {
    if (samples_[i].empty()) continue;
    const std::string name(families_[i].name);
    text += "# TYPE " + name + ' ' + std::string(families_[i].type) + '\n';
    if (!families_[i].unit.empty()) {
      text += "# UNIT " + name + ' ' + std::string(families_[i].unit) + '\n';
    }
    text += "# HELP " + name + ' ' + std::string(families_[i].help) + '\n';
    text += samples_[i];
  }
  return text + "# EOF\n";
}

}  // namespace tracefs
