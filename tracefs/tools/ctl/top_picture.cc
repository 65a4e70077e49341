#include "tracefs/tools/ctl/top_picture.h"

#include <algorithm>
#include <cstdio>

#include "tracefs/export/escape.h"

namespace tracefs {
namespace {

constexpr size_t kColumnsBeforeName = 68;

// Three digits and a unit.
std::string WithUnit(double value, const char* const* units, double step) {
  while (value >= 999.5 && units[1] != nullptr) {
    value /= step;
    ++units;
  }
  char text[48];
  const int digits = value >= 99.95 || value == static_cast<int>(value) ? 0
                     : value >= 9.995                                   ? 1
                                                                        : 2;
  std::snprintf(text, sizeof text, "%.*f%s", digits, value, *units);
  return text;
}

std::string_view OrderName(TopOrder order) {
  switch (order) {
    case TopOrder::kCount:
      return "count";
    case TopOrder::kTime:
      return "time";
    case TopOrder::kErrors:
      return "errors";
    case TopOrder::kBytes:
      return "bytes";
  }
  return "";
}

// At most `columns` code points: names are mostly narrow, and a terminal cuts
// what is too wide in any case.
std::string Cut(const std::string& text, size_t columns) {
  std::string_view rest = text;
  size_t kept = 0;
  for (size_t n = 0; !rest.empty() && n < columns; ++n) {
    const size_t size = std::max<size_t>(FirstCodePoint(rest).size, 1);
    kept += size;
    rest.remove_prefix(size);
  }
  return text.substr(0, kept);
}

// The end of a path says more than its beginning.
std::string CutFront(const std::string& text, size_t columns) {
  size_t points = 0;
  for (std::string_view rest = text; !rest.empty(); ++points) {
    rest.remove_prefix(std::max<size_t>(FirstCodePoint(rest).size, 1));
  }
  if (points <= columns || columns < 4) return Cut(text, columns);
  std::string_view rest = text;
  for (size_t skip = points - columns + 3; skip > 0; --skip) {
    rest.remove_prefix(std::max<size_t>(FirstCodePoint(rest).size, 1));
  }
  return "..." + std::string(rest);
}

std::string Right(const std::string& text, size_t width) {
  return text.size() >= width ? text
                              : std::string(width - text.size(), ' ') + text;
}

std::string RowText(const TopCount& count, double seconds, uint64_t all_ns,
                    const std::string& name) {
  const auto per_second = [&](uint64_t n) {
    return ShortNumber(static_cast<double>(n) / seconds);
  };
  const double share = all_ns == 0 ? 0
                                   : 100 * static_cast<double>(count.ns) /
                                         static_cast<double>(all_ns);
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.1f", share);
  std::string line = Right(per_second(count.count), 8);
  line += Right(per_second(count.errors), 8);
  line += Right(per_second(count.bytes), 9);
  line += Right(percent, 7);
  for (const unsigned p : {50u, 90u, 99u}) {
    line += Right(ShortDuration(count.durations.Percentile(p)), 8);
  }
  line += Right(ShortDuration(count.durations.max()), 8);
  line += "  " + name;
  return line;
}

struct Part {
  TopModel::Kind kind;
  const char* title;
  size_t weight;  // share of the lines
};
constexpr Part kParts[] = {
    {TopModel::kOps, "OPERATION", 4},
    {TopModel::kProcesses, "PROCESS", 3},
    {TopModel::kFiles, "FILE", 4},
    {TopModel::kDirectories, "DIRECTORY", 3},
};

}  // namespace

std::string ShortDuration(uint64_t ns) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s", nullptr};
  return WithUnit(static_cast<double>(ns), kUnits, 1000);
}

std::string ShortNumber(double number) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", nullptr};
  return WithUnit(number, kUnits, 1000);
}

std::vector<std::string> TopPicture(const TopModel& model,
                                    const TopView& view) {
  std::vector<std::string> lines;
  const double seconds =
      std::max(static_cast<double>(model.duration_ns(view.all)) / 1e9, 1e-9);
  const TopCount& total = model.total(view.all);
  std::string head =
      TerminalWord(view.mount) + ": " +
      ShortNumber(static_cast<double>(total.count) / seconds) +
      " operations/s, " +
      ShortNumber(static_cast<double>(total.errors) / seconds) + " errors/s, " +
      ShortNumber(static_cast<double>(total.bytes) / seconds) + "B/s; ";
  char time[32];
  std::snprintf(time, sizeof time, "%.1f s", seconds);
  head += view.all ? "all " + std::string(time) : "last " + std::string(time);
  head += ", by " + std::string(OrderName(view.order));
  if (model.lost() != 0) {
    head += ", " + std::to_string(model.lost()) + " not seen";
  }
  if (view.paused) head += ", paused";
  lines.push_back(head);
  if (view.keys) {
    lines.push_back(
        "q quit  sort: c count  t time  e errors  b bytes   a all/last   "
        "space pause   r reset");
  }

  size_t weights = 0;
  for (const Part& part : kParts) weights += part.weight;
  // Each part has a title and, but for the last, an empty line behind it.
  const size_t used = lines.size() + 2 * std::size(kParts);
  size_t left = view.height > used ? view.height - used : 0;
  for (const Part& part : kParts) {
    const size_t most = left * part.weight / weights;
    const std::vector<TopTable::Row> rows =
        model.table(part.kind, view.all).Rows(view.order, most);
    left -= rows.size();  // what one does not need is for the others
    weights -= part.weight;
    lines.emplace_back();
    lines.push_back(Right("OPS/S", 8) + Right("ERR/S", 8) +
                    Right("BYTES/S", 9) + Right("TIME%", 7) + Right("P50", 8) +
                    Right("P90", 8) + Right("P99", 8) + Right("MAX", 8) + "  " +
                    part.title);
    for (const TopTable::Row& row : rows) {
      std::string name = TerminalWord(row.name);
      if (view.width > kColumnsBeforeName) {
        name = CutFront(name, view.width - kColumnsBeforeName);
      }
      lines.push_back(RowText(*row.count, seconds, total.ns, name));
    }
  }
  if (lines.size() > view.height) lines.resize(view.height);
  for (std::string& line : lines) line = Cut(line, view.width);
  return lines;
}

}  // namespace tracefs
