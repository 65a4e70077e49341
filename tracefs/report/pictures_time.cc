// Pictures with time from left to right.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tracefs/report/axis.h"
#include "tracefs/report/pictures.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

constexpr double kLeft = 70;
constexpr double kRight = kPictureWidth - 10;
constexpr size_t kLevels = 8;   // of heat: classes h0 to h7
constexpr size_t kColours = 7;  // c0 to c6, and cx for others
constexpr const char* kNoTime = "No operation has a time.";

// Where the time of a document stands in a picture.
struct Scale {
  double left = kLeft;
  double ns_begin = 0;
  double ns_length = 1;

  explicit Scale(const Json& document, double from = kLeft) : left(from) {
    const Json& time = document["time"];
    ns_length = std::max(1.0, static_cast<double>(NumberAt(time, "length_ns")));
  }
  double X(double ns) const {
    const double share = std::clamp(ns / ns_length, 0.0, 1.0);
    return left + share * (kRight - left);
  }
};

void DrawTimeAxis(const Scale& scale, double y, SvgWriter* svg) {
  const double step = RoundTimeStep(scale.ns_length, 10);
  for (const double ns : Multiples(0, scale.ns_length, step)) {
    const double x = scale.X(ns);
    const std::string text = (ns == 0 ? "" : "+") + TickTimeText(ns, step);
    svg->Line(x, y, x, y + 4, "axis");
    svg->Text(x, y + 16, text, "t",
              x + TextWidth(text) / 2 > kPictureWidth
                  ? SvgWriter::Anchor::kEnd
                  : SvgWriter::Anchor::kMiddle);
  }
  svg->Line(scale.left, y, kRight, y, "axis");
}

// Cells of a heat map, a path for each level.
class HeatCells {
 public:
  HeatCells(double largest) : largest_(largest) {}

  void Add(double x, double y, double width, double height, double value) {
    if (value <= 0) return;
    const double share = std::log1p(value) / std::log1p(largest_);
    const auto level =
        std::min(kLevels - 1, static_cast<size_t>(share * double{kLevels}));
    paths_[level] += "M" + Coordinate(x) + " " + Coordinate(y) + "h" +
                     Coordinate(width) + "v" + Coordinate(height) + "h-" +
                     Coordinate(width) + "z";
  }
  void Draw(SvgWriter* svg) const {
    for (size_t i = 0; i < kLevels; ++i) {
      svg->Path(paths_[i], "h" + std::to_string(i));
    }
  }
  // Which colour is how many, in a line of its own.
  void DrawLegend(double x, SvgWriter* svg) const {
    const std::string from = "operations in a cell: 1";
    svg->Text(x, 11, from);
    x += TextWidth(from) + 6;
    for (size_t i = 0; i < kLevels; ++i) {
      svg->Rect(x + 14 * static_cast<double>(i), 2, 14, 10,
                "h" + std::to_string(i));
    }
    svg->Text(x + 14 * double{kLevels} + 6, 11,
              CountText(static_cast<uint64_t>(largest_)) + " (logarithmic)");
  }

 private:
  const double largest_;
  std::array<std::string, kLevels> paths_;
};

struct CoarseBins {
  double begin;
  double width;
  explicit CoarseBins(const Json& time)
      : begin(time["coarse_begin_ns"].get<double>()),
        width(time["coarse_bin_ns"].get<double>()) {}
  double X(const Scale& scale, uint64_t bin) const {
    return scale.X(begin + width * static_cast<double>(bin));
  }
};

constexpr double kTimelineTop = 36;

// The top of a scale on which one bin that is far above nearly all others does
// not flatten these: it is cut. As web/timeline.js has it.
double UsefulTop(const std::vector<double>& sums) {
  std::vector<double> some;
  for (const double sum : sums) {
    if (sum > 0) some.push_back(sum);
  }
  if (some.empty()) return 1;
  std::ranges::sort(some);
  const double usual = some[(some.size() - 1) * 95 / 100];
  return some.back() > 4 * usual ? 1.5 * usual : some.back();
}

// A mark on each bin that is cut, and how high the highest is.
void DrawCuts(const std::vector<double>& sums, double most, double per_second,
              const std::function<double(size_t)>& x_of, SvgWriter* svg) {
  std::string d;
  size_t highest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] > sums[highest]) highest = i;
    if (sums[i] <= most) continue;
    d += "M" + Coordinate(x_of(i) - 4) + " " + Coordinate(kTimelineTop) +
         "l4 -6l4 6z";
  }
  if (d.empty()) return;
  svg->Path(d, "cut");
  const std::string text = RoundNumberText(sums[highest] * per_second);
  const double half = TextWidth(text) / 2 + 4;
  svg->Text(std::clamp(x_of(highest), kLeft + half, kRight - half),
            kTimelineTop - 8, text, "t", SvgWriter::Anchor::kMiddle);
}

}  // namespace

SvgWriter DrawTimeline(const Json& document) {
  const Json& time = document["time"];
  const uint64_t bins = NumberAt(time, "bins");
  if (bins == 0) return NothingToDraw(kNoTime);
  constexpr double kTop = kTimelineTop;
  constexpr double kBottom = 220;
  const Scale scale(document);
  const double bin_ns = time["bin_ns"].get<double>();
  const double begin = time["begin_ns"].get<double>();
  // The operations with most counts have a colour each.
  std::vector<const Json*> order;
  for (const Json& op : document["operations"]) order.push_back(&op);
  for (const Json& op : document["timeline"]["counted"]) order.push_back(&op);
  std::stable_sort(order.begin(), order.end(),
                   [](const Json* a, const Json* b) {
                     return NumberAt(*a, "count") > NumberAt(*b, "count");
                   });
  std::vector<double> sums(bins);
  for (const Json* op : order) {
    for (size_t i = 0; i < bins; ++i) sums[i] += (*op)["bins"][i].get<double>();
  }
  const double highest =
      std::max(1.0, *std::max_element(sums.begin(), sums.end()));
  const double most = std::min(highest, UsefulTop(sums));
  const double per_second = 1e9 / bin_ns;
  SvgWriter svg(kPictureWidth, kBottom + 24,
                "Operations over time; at most " +
                    RoundNumberText(highest * per_second) + " a second");
  const auto y = [&](double value) {
    return kBottom - value / most * (kBottom - kTop);
  };
  // What is cut keeps the shares of its parts.
  const auto shown = [&](size_t bin, double value) {
    return sums[bin] > most ? value / sums[bin] * most : value;
  };
  const double step = RoundStep(most * per_second, 5);
  for (const double rate : Multiples(step, most * per_second, step)) {
    const double at = y(rate / per_second);
    svg.Line(kLeft, at, kRight, at, "grid");
    svg.Text(kLeft - 6, at + 4, RoundNumberText(rate), "t",
             SvgWriter::Anchor::kEnd);
  }
  svg.Text(kLeft - 6, kTop - 10, "ops/s", "t", SvgWriter::Anchor::kEnd);
  std::vector<double> below(bins);
  double legend = kLeft + 8;
  const auto layer = [&](const Json& numbers, const std::string& style) {
    std::string d;
    for (size_t i = 0; i < bins; ++i) {
      const double value = numbers[i].get<double>();
      if (value == 0) continue;
      const double x = scale.X(begin + bin_ns * static_cast<double>(i));
      const double end = scale.X(begin + bin_ns * static_cast<double>(i + 1));
      const double base = y(shown(i, below[i]));
      d += "M" + Coordinate(x) + " " + Coordinate(base) + "V" +
           Coordinate(y(shown(i, below[i] + value))) + "H" +
           Coordinate(std::max(end, x + 0.6)) + "V" + Coordinate(base) + "z";
      below[i] += value;
    }
    svg.Path(d, style);
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string style =
        i < kColours ? "c" + std::to_string(i) : std::string("cx");
    layer((*order[i])["bins"], style);
    if (i > kColours) continue;
    const std::string name =
        i < kColours ? (*order[i])[order[i]->contains("op") ? "op" : "name"]
                           .get<std::string>()
                     : "others";
    svg.Rect(legend, 2, 10, 10, style);
    svg.Text(legend + 14, 11, name);
    legend += 30 + TextWidth(name);
  }
  DrawCuts(
      sums, most, per_second,
      [&](size_t bin) {
        return scale.X(begin + bin_ns * (static_cast<double>(bin) + 0.5));
      },
      &svg);
  // Where operations are missing.
  for (const Json& loss : document["losses"]["seen"]) {
    const double x = scale.X(loss[0].get<double>());
    svg.Rect(std::max(kLeft, x - 1.5), kTop, 3, kBottom - kTop, "loss",
             loss[2].get<std::string>() + ": " +
                 CountText(loss[1].get<uint64_t>()) + " operations missing");
  }
  DrawTimeAxis(scale, kBottom, &svg);
  return svg;
}

SvgWriter DrawLatency(const Json& document) {
  const Json& cells = document["latency"]["cells"];
  if (cells.empty()) return NothingToDraw("No operation has a duration.");
  const Json& rows = document["latency"]["rows"];
  size_t low = rows.size();
  size_t high = 0;
  double largest = 1;
  for (size_t i = 0; i < cells.size(); i += 3) {
    const auto row = cells[i + 1].get<size_t>();
    low = std::min(low, row);
    high = std::max(high, row);
    largest = std::max(largest, cells[i + 2].get<double>());
  }
  constexpr double kTop = 24;
  const double step =
      std::clamp(220.0 / static_cast<double>(high - low + 1), 8.0, 16.0);
  const double bottom = kTop + step * static_cast<double>(high - low + 1);
  const Scale scale(document);
  const CoarseBins bins(document["time"]);
  SvgWriter svg(kPictureWidth, bottom + 24,
                "Latency over time; 99 of 100 operations took at most " +
                    SpanText(NumberAt(document["totals"], "p99_ns")));
  HeatCells heat(largest);
  for (size_t i = 0; i < cells.size(); i += 3) {
    const auto bin = cells[i].get<uint64_t>();
    const auto row = cells[i + 1].get<size_t>();
    const double x = bins.X(scale, bin);
    heat.Add(x, bottom - step * static_cast<double>(row - low + 1),
             std::max(1.0, bins.X(scale, bin + 1) - x), step,
             cells[i + 2].get<double>());
  }
  heat.Draw(&svg);
  heat.DrawLegend(kLeft, &svg);
  // Where in the rows a duration lies.
  const auto begin_of = [&](size_t row) { return rows[row].get<double>(); };
  const auto top = static_cast<uint64_t>(
      high + 1 < rows.size() ? begin_of(high + 1) : begin_of(high));
  for (const uint64_t ns : LogTimeTicks(
           static_cast<uint64_t>(std::max(begin_of(low), begin_of(1))), top)) {
    size_t row = low;
    while (row < high && begin_of(row + 1) <= static_cast<double>(ns)) ++row;
    const double length =
        row + 1 < rows.size() ? begin_of(row + 1) - begin_of(row) : 1;
    const double share = std::clamp(
        (static_cast<double>(ns) - begin_of(row)) / length, 0.0, 1.0);
    const double y = bottom - step * (static_cast<double>(row - low) + share);
    svg.Line(kLeft - 4, y, kLeft, y, "axis");
    svg.Text(kLeft - 6, y + 4,
             TickTimeText(static_cast<double>(ns), static_cast<double>(ns)),
             "t", SvgWriter::Anchor::kEnd);
  }
  DrawTimeAxis(scale, bottom, &svg);
  return svg;
}

SvgWriter DrawDirectories(const Json& document) {
  constexpr double kNames = 260;
  constexpr double kStep = 16;
  constexpr size_t kMost = 24;
  const Json& table = document["tables"]["directories"];
  std::vector<size_t> shown;
  double largest = 1;
  for (size_t i = 0; i < table["series"].size() && shown.size() < kMost; ++i) {
    const Json& series = table["series"][i];
    if (series.is_null()) continue;
    shown.push_back(i);
    for (size_t p = 0; p < series.size(); p += 5) {
      largest = std::max(largest, series[p + 1].get<double>());
    }
  }
  if (shown.empty()) return NothingToDraw(kNoTime);
  constexpr double kTop = 20;
  const double bottom = kTop + kStep * static_cast<double>(shown.size());
  const Scale scale(document, kNames);
  const CoarseBins bins(document["time"]);
  SvgWriter svg(kPictureWidth, bottom + 24,
                "Operations in directories over time; most of all in " +
                    table["rows"][shown[0]][0].get<std::string>());
  HeatCells heat(largest);
  for (size_t line = 0; line < shown.size(); ++line) {
    const double y = kTop + kStep * static_cast<double>(line);
    const Json& series = table["series"][shown[line]];
    for (size_t p = 0; p < series.size(); p += 5) {
      const auto bin = series[p].get<uint64_t>();
      const double x = bins.X(scale, bin);
      heat.Add(x, y, std::max(1.0, bins.X(scale, bin + 1) - x), kStep - 1,
               series[p + 1].get<double>());
    }
    svg.Text(
        kNames - 6, y + 12,
        Fitting(table["rows"][shown[line]][0].get<std::string>(), kNames - 8),
        "t", SvgWriter::Anchor::kEnd);
  }
  heat.Draw(&svg);
  heat.DrawLegend(kNames, &svg);
  DrawTimeAxis(scale, bottom, &svg);
  return svg;
}

SvgWriter DrawProcesses(const Json& document) {
  constexpr double kNames = 300;
  constexpr double kStep = 15;
  constexpr size_t kMost = 60;
  const Json& processes = document["processes"];
  const size_t size = processes["name"].size();
  // The ones that matter most, as they stand in the tree.
  std::vector<std::vector<size_t>> children(size);
  std::vector<size_t> by_count;
  for (size_t i = 1; i < size; ++i) {
    children[processes["parent"][i].get<size_t>()].push_back(i);
    if (!processes["begin_ns"][i].is_null()) by_count.push_back(i);
  }
  if (by_count.empty()) return NothingToDraw("No process is known.");
  std::stable_sort(by_count.begin(), by_count.end(), [&](size_t a, size_t b) {
    return processes["time_ns"][a].get<uint64_t>() >
           processes["time_ns"][b].get<uint64_t>();
  });
  std::vector<bool> shown(size);
  size_t lines = 0;
  for (size_t i = 0; i < by_count.size() && lines < kMost; ++i) {
    for (size_t at = by_count[i]; at != 0 && !shown[at];
         at = processes["parent"][at].get<size_t>()) {
      shown[at] = true;
      ++lines;
    }
  }
  const double bottom = 4 + kStep * static_cast<double>(lines);
  const Scale scale(document, kNames);
  SvgWriter svg(kPictureWidth, bottom + 24,
                "Life times of " + CountText(lines) + " processes of " +
                    CountText(by_count.size()));
  double y = 4;
  std::vector<std::pair<size_t, size_t>> left;  // node, depth
  left.emplace_back(0, 0);
  while (!left.empty()) {
    const auto [node, depth] = left.back();
    left.pop_back();
    for (size_t i = children[node].size(); i-- > 0;) {
      left.emplace_back(children[node][i], depth + 1);
    }
    if (!shown[node]) continue;
    const double indent =
        8.0 * static_cast<double>(std::min<size_t>(depth, 12));
    std::string text = OneLine(processes["command"][node].get<std::string>());
    if (text.empty()) text = processes["name"][node].get<std::string>();
    if (processes["pid"][node] != 0) {
      text =
          std::to_string(processes["pid"][node].get<uint64_t>()) + " " + text;
    }
    svg.Text(indent, y + 11, Fitting(text, kNames - indent - 8));
    if (!processes["begin_ns"][node].is_null()) {
      const double x = scale.X(processes["begin_ns"][node].get<double>());
      const double end = scale.X(processes["end_ns"][node].get<double>());
      const bool ended = processes["ended"][node] != 0;
      const std::string exit = processes["exit"][node].get<std::string>();
      const bool failed = !exit.empty() && exit != "0";
      svg.Rect(x, y + 2, std::max(1.5, end - x), kStep - 4,
               failed  ? "bad"
               : ended ? "c0"
                       : "c0 open",
               text + ": " +
                   CountText(processes["count"][node].get<uint64_t>()) +
                   " operations" + (exit.empty() ? "" : ", exit " + exit));
    }
    y += kStep;
  }
  DrawTimeAxis(scale, bottom, &svg);
  return svg;
}

}  // namespace tracefs::report
