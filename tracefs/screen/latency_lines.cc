#include "tracefs/screen/latency_lines.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>

#include "tracefs/tally/histogram.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs::screen {
namespace {

std::string Bar(double share, size_t width, bool utf8) {
  const auto full =
      static_cast<size_t>(share * static_cast<double>(width) + 0.5);
  std::string bar;
  const size_t cells = share > 0 ? std::max<size_t>(full, 1) : 0;
  for (size_t i = 0; i < cells; ++i) bar += utf8 ? "\xe2\x96\x88" : "#";
  return bar;
}

}  // namespace

std::vector<Line> HistogramLines(const ActivityCounts& counts,
                                 std::string_view of, size_t width,
                                 size_t height, const Means& means) {
  std::vector<Line> lines;
  if (height < 2) return lines;
  std::string title =
      "durations of " + std::string(of) + ": " + std::to_string(counts.count);
  lines.emplace_back(title, Look::kTitle);
  std::vector<uint64_t> octaves(66);
  counts.durations.ForEach([&octaves](uint16_t bucket, uint64_t count) {
    octaves[static_cast<size_t>(std::bit_width(tally::HistogramLow(bucket)))] +=
        count;
  });
  size_t first = 0;
  size_t last = octaves.size();
  while (first < last && octaves[first] == 0) ++first;
  while (last > first && octaves[last - 1] == 0) --last;
  const size_t room = height - 1;
  bool cut_low = false;
  bool cut_high = false;
  while (last - first > room) {
    // The rarer end is put to its neighbour.
    if (octaves[first] < octaves[last - 1]) {
      octaves[first + 1] += octaves[first];
      cut_low = true;
      ++first;
    } else {
      octaves[last - 2] += octaves[last - 1];
      cut_high = true;
      --last;
    }
  }
  uint64_t most = 1;
  uint64_t all = 0;
  for (size_t i = first; i < last; ++i) {
    most = std::max(most, octaves[i]);
    all += octaves[i];
  }
  uint64_t so_far = 0;
  for (size_t i = first; i < last; ++i) {
    so_far += octaves[i];
    const uint64_t low = i == 0 ? 0 : uint64_t{1} << (i - 1);
    char percent[16];
    std::snprintf(percent, sizeof percent, "%5.1f %% ",
                  100 * static_cast<double>(so_far) /
                      static_cast<double>(std::max<uint64_t>(all, 1)));
    Line line;
    const bool put_together =
        (i == first && cut_low) || (i + 1 == last && cut_high);
    line.AddRight((put_together ? i == first ? "<" : ">" : "") +
                      UnitForTerminal(
                          DurationText(i == first && cut_low ? 2 * low : low),
                          means.utf8),
                  8)
        .AddRight(std::to_string(octaves[i]), 10)
        .AddRight(percent, 9);
    if (width > line.width() + 4) {
      line.Add(Bar(static_cast<double>(octaves[i]) / static_cast<double>(most),
                   width - line.width() - 1, means.utf8),
               Look::kAccent);
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<Line> SpectrogramLines(const Browser& browser, size_t width,
                                   size_t height, const Means& means) {
  constexpr size_t kFirst = 8;  // 128 ns
  constexpr size_t kLead = 10;
  static constexpr std::string_view kShades = " .:-=+*#%@";
  static constexpr const char* kBlocks[] = {" ", "\xe2\x96\x91", "\xe2\x96\x92",
                                            "\xe2\x96\x93", "\xe2\x96\x88"};
  std::vector<Line> lines;
  const auto& past = browser.activity().past();
  const size_t columns = width > kLead + 10 ? (width - kLead) / 2 : 0;
  const size_t octaves = std::min<size_t>(columns, 33);
  std::string scale = "    OPS/S ";
  for (size_t i = 0; i < octaves; i += 5) {
    scale = PadEnd(scale, kLead + 2 * i) +
            UnitForTerminal(DurationText(uint64_t{1} << (kFirst + i - 1)),
                            means.utf8);
  }
  lines.emplace_back(CutEnd(scale, kLead + 2 * octaves), Look::kHead);
  for (size_t n = 0; n < past.size() && lines.size() < height; ++n) {
    const Activity::Past& one = past[past.size() - 1 - n];
    Line line;
    line.AddRight(ShortNumber(static_cast<double>(one.count) * 1e9 /
                              std::max<double>(static_cast<double>(one.ns), 1)),
                  kLead - 1)
        .Add(" ");
    for (size_t i = 0; i < octaves; ++i) {
      uint64_t count = one.octaves[std::min<size_t>(kFirst + i, 64)];
      // What is beyond an end counts there.
      if (i == 0) {
        for (size_t j = 0; j < kFirst; ++j) count += one.octaves[j];
      }
      if (i + 1 == octaves) {
        for (size_t j = kFirst + i + 1; j < 65; ++j) count += one.octaves[j];
      }
      const auto depth = static_cast<size_t>(std::bit_width(count));
      const std::string cell =
          means.utf8 ? kBlocks[std::min<size_t>((depth + 2) / 3, 4)]
                     : std::string(1, kShades[std::min<size_t>(depth, 9)]);
      line.Add(cell + cell, depth > 9 ? Look::kBad : Look::kAccent);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace tracefs::screen
