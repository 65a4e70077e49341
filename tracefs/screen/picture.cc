#include "tracefs/screen/picture.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "tracefs/format/histogram.h"
#include "tracefs/screen/cell_width.h"
#include "tracefs/screen/help.h"

namespace tracefs::screen {
namespace {

// How a table is drawn.
struct TableStyle {
  std::vector<Column> columns;
  Column sort{};
  double seconds = 0;  // numbers are divided by that; 0: they are sums
  uint64_t all_ns = 0;
  size_t width = 0;
  bool utf8 = true;
};

std::string CellText(const Row& row, Column column, const TableStyle& style) {
  const auto number = [&](uint64_t n) {
    if (style.seconds == 0) {
      return n < 10'000'000 ? std::to_string(n)
                            : ShortNumber(static_cast<double>(n));
    }
    return ShortNumber(static_cast<double>(n) / style.seconds);
  };
  switch (column) {
    case Column::kCount:
      return number(row.counts.count);
    case Column::kErrors:
      return number(row.counts.errors);
    case Column::kBytes:
      return number(row.counts.bytes);
    case Column::kTime: {
      const double share = style.all_ns == 0
                               ? 0
                               : 100 * static_cast<double>(row.counts.ns) /
                                     static_cast<double>(style.all_ns);
      char text[16];
      std::snprintf(text, sizeof text, "%.1f", share);
      return text;
    }
    default:
      return ShortDuration(row.In(column));
  }
}

Line HeadLine(std::string_view title, const TableStyle& style, size_t line,
              std::vector<Hit>* hits) {
  Line head;
  for (const Column column : style.columns) {
    const size_t from = head.width();
    const ColumnInfo& info = Info(column);
    const bool sorted = column == style.sort;
    const Look look = sorted ? Look::kHeadSorted : Look::kHead;
    if (column == Column::kName) {
      head.Add("  ", Look::kHead).Add(title, look);
      head.Fill(style.width, Look::kHead);
    } else {
      head.AddRight(style.seconds == 0 ? info.total : info.rate, info.width,
                    look);
    }
    if (hits != nullptr) {
      hits->push_back({line,
                       from,
                       head.width(),
                       Hit::Kind::kColumn,
                       static_cast<size_t>(column),
                       {}});
    }
  }
  return head.Cut(style.width);
}

Line RowLine(const Row& row, const TableStyle& style) {
  Line line;
  for (const Column column : style.columns) {
    if (column == Column::kName) continue;
    const bool bad = column == Column::kErrors && row.counts.errors != 0;
    line.AddRight(CellText(row, column, style), Info(column).width,
                  bad ? Look::kBad : Look::kPlain);
  }
  std::string lead = "  " + std::string(2 * row.depth, ' ');
  if (row.parent) lead += row.folded ? "+ " : "- ";
  if (!row.parent && row.depth != 0) lead += "  ";
  line.Add(lead);
  const std::string name =
      row.other ? row.name : SafeWord(row.name, style.utf8);
  const size_t room =
      style.width > line.width() ? style.width - line.width() : 0;
  // The end of a path says more than its beginning.
  const std::string shown = CutWord(name, room);
  return line.Add(shown, row.other ? Look::kAccent : Look::kPlain)
      .Cut(style.width);
}

TableStyle StyleOf(const Browser& browser, const Sheet& sheet, size_t width,
                   const Means& means) {
  TableStyle style;
  style.columns = ColumnsFor(width, browser.sort());
  style.sort = browser.sort();
  const uint64_t ns = browser.activity().duration_ns(browser.all());
  if (browser.rates()) {
    style.seconds = std::max(static_cast<double>(ns) / 1e9, 1e-9);
  }
  style.all_ns = sheet.total.ns;
  style.width = width;
  style.utf8 = means.utf8;
  return style;
}

// What is looked at has a fourth of the width, but no less than 8.
std::string Title(const Browser& browser, const ActivityCounts& total,
                  size_t width, const Means& means) {
  const double seconds =
      static_cast<double>(browser.activity().duration_ns(browser.all())) / 1e9;
  std::string title = SafeWord(browser.options().title, means.utf8);
  const size_t room = std::max<size_t>(width / 4, 8);
  title = CutWord(title, room);
  title += ": ";
  if (browser.rates()) {
    const auto rate = [&](uint64_t n) {
      return ShortNumber(static_cast<double>(n) / std::max(seconds, 1e-9));
    };
    title += rate(total.count) + " ops/s, " + rate(total.errors) + " err/s, " +
             rate(total.bytes) + "B/s";
  } else {
    title += std::to_string(total.count) + " ops, " +
             std::to_string(total.errors) + " err, " +
             ShortNumber(static_cast<double>(total.bytes)) + "B";
  }
  char time[48];
  std::snprintf(time, sizeof time, "; %s %.1f s",
                browser.all() ? "all" : "last", seconds);
  title += time;
  if (const std::string window = browser.Window(); !window.empty()) {
    title += " (" + window + ")";
  }
  title += ", by " + std::string(Info(browser.sort()).name);
  if (browser.ascending()) title += " ascending";
  if (browser.paused()) title += ", paused";
  return title;
}

Line NoticeLine(const Browser& browser, const Means& means) {
  Line line;
  if (!browser.said().empty()) {
    return Line(SafeText(browser.said(), means.utf8), Look::kAccent);
  }
  for (const Notice& notice : browser.notices()) {
    if (line.width() != 0) line.Add("  ");
    line.Add(ForTerminal(notice.text, means.utf8),
             notice.level == Notice::Level::kBad    ? Look::kBad
             : notice.level == Notice::Level::kGood ? Look::kGood
                                                    : Look::kPlain);
  }
  return line;
}

Line FilterLine(const Browser& browser, const Means& means) {
  Line line;
  const std::string filter = browser.drill().FilterText();
  line.Add("filter: ")
      .Add(filter.empty() ? "(everything)" : SafeText(filter, means.utf8),
           filter.empty() ? Look::kPlain : Look::kAccent);
  if (browser.typing() || !browser.find().empty()) {
    line.Add("  find: ")
        .Add(SafeText(browser.find(), means.utf8), Look::kKey)
        .Add(browser.typing() ? "_" : "", Look::kKey);
  }
  return line;
}

struct KeyHint {
  std::string_view key;  // as it is pressed
  std::string_view text;
};

// The bottom line: the more important first, as many as have room.
Line KeyLine(const Browser& browser, size_t line, size_t width,
             std::vector<Hit>* hits) {
  static constexpr KeyHint kTable[] = {
      {"q", "quit"},      {"?", "help"},     {"Enter", "open"},
      {"Esc", "back"},    {"/", "find"},     {"o", "operations"},
      {">", "sort"},      {"T", "tree"},     {"H", "histogram"},
      {"p", "pause"},     {"a", "all/last"}, {"s", "spectrogram"},
      {"l", "recording"}, {"w", "save"},     {"r", "reset"}};
  static constexpr KeyHint kOther[] = {
      {"q", "quit"}, {"Esc", "back"}, {"?", "help"}, {"p", "pause"}};
  static constexpr KeyHint kTyping[] = {{"Enter", "keep"},
                                        {"Esc", "everything"}};
  Line text;
  const auto add = [&](std::span<const KeyHint> hints) {
    for (const KeyHint& hint : hints) {
      const size_t wanted = hint.key.size() + hint.text.size() + 3;
      if (text.width() + wanted > width) return;
      const size_t from = text.width();
      text.Add(hint.key, Look::kKey).Add(" ").Add(hint.text).Add("  ");
      hits->push_back({line, from, text.width() - 2, Hit::Kind::kKey, 0,
                       std::string(hint.key)});
    }
  };
  if (browser.typing()) {
    add(kTyping);
  } else if (browser.page() == Page::kTable) {
    add(kTable);
  } else {
    add(kOther);
  }
  return text;
}

Line TabLine(const Browser& browser, size_t line, size_t width,
             std::vector<Hit>* hits) {
  Line tabs;
  for (size_t i = 0; i < Views().size(); ++i) {
    const View& view = Views()[i];
    if (view.group == Group::kSource && browser.options().sources.size() < 2) {
      continue;
    }
    const bool here = &view == &browser.view();
    const size_t from = tabs.width();
    tabs.Add(std::string(1, view.key) + ' ' + std::string(view.name),
             here ? Look::kTabHere : Look::kTab);
    hits->push_back({line, from, tabs.width(), Hit::Kind::kView, i, {}});
    tabs.Add("  ");
  }
  return tabs.Cut(width);
}

std::string Bar(double share, size_t width, bool utf8) {
  const auto full =
      static_cast<size_t>(share * static_cast<double>(width) + 0.5);
  std::string bar;
  const size_t cells = share > 0 ? std::max<size_t>(full, 1) : 0;
  for (size_t i = 0; i < cells; ++i) bar += utf8 ? "\xe2\x96\x88" : "#";
  return bar;
}

// Durations by power of two, at most so many lines; ends are put together.
std::vector<Line> HistogramLines(const ActivityCounts& counts,
                                 std::string_view of, size_t width,
                                 size_t height, const Means& means) {
  std::vector<Line> lines;
  if (height < 2) return lines;
  std::string title =
      "durations of " + std::string(of) + ": " + std::to_string(counts.count);
  lines.emplace_back(title, Look::kTitle);
  std::vector<uint64_t> octaves(66);
  for (const auto& [bucket, count] : counts.durations.buckets()) {
    octaves[static_cast<size_t>(
        std::bit_width(format::HistogramLow(bucket)))] += count;
  }
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
    std::snprintf(percent, sizeof percent, "%5.1f%% ",
                  100 * static_cast<double>(so_far) /
                      static_cast<double>(std::max<uint64_t>(all, 1)));
    Line line;
    const bool put_together =
        (i == first && cut_low) || (i + 1 == last && cut_high);
    line.AddRight((put_together ? i == first ? "<" : ">" : "") +
                      ShortDuration(i == first && cut_low ? 2 * low : low),
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

// Time downwards, the last interval first; duration to the right.
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
  std::string scale(kLead + 2 * octaves, ' ');
  for (size_t i = 0; i < octaves; i += 5) {
    const std::string mark = ShortDuration(uint64_t{1} << (kFirst + i - 1));
    scale.replace(kLead + 2 * i, std::min(mark.size(), scale.size() - kLead),
                  mark);
  }
  lines.emplace_back("    OPS/S " + scale.substr(kLead), Look::kHead);
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

// The lines of a page, safe already, from the one on that is shown first.
template <typename Lines>
void AddPage(const Lines& texts, size_t top, size_t most, bool utf8,
             Picture* picture) {
  for (size_t i = top; i < texts.size() && i < top + most; ++i) {
    picture->lines.emplace_back(ForTerminal(texts[i], utf8));
  }
}

void AddTable(const Browser& browser, size_t width, size_t room,
              const Means& means, Picture* picture) {
  const Sheet& sheet = browser.sheet();
  const TableStyle style = StyleOf(browser, sheet, width, means);
  picture->lines.push_back(HeadLine(browser.view().title, style,
                                    picture->lines.size(), &picture->hits));
  if (room == 0) return;
  --room;
  size_t panel = 0;
  if (browser.histogram()) panel = std::min<size_t>(room / 2, 14);
  picture->rows = room - panel;
  // It may have been drawn for a larger screen.
  size_t top = browser.top();
  if (picture->rows != 0 && browser.selected() >= top + picture->rows) {
    top = browser.selected() + 1 - picture->rows;
  }
  for (size_t i = top; i < sheet.rows.size() && i < top + picture->rows; ++i) {
    picture->hits.push_back(
        {picture->lines.size(), 0, width, Hit::Kind::kRow, i, {}});
    Line line = RowLine(sheet.rows[i], style);
    if (i == browser.selected()) {
      line.Fill(width, Look::kPlain).Dress(Look::kSelected);
    }
    picture->lines.push_back(line);
  }
  if (panel == 0) return;
  const bool chosen = &browser.Chosen() != &sheet.total;
  std::string of =
      chosen ? SafeWord(sheet.rows[browser.selected()].name, means.utf8)
             : "all rows";
  for (Line& line : HistogramLines(browser.Chosen(), of, width, panel, means)) {
    picture->lines.push_back(std::move(line));
  }
}

}  // namespace

Picture Draw(const Browser& browser, size_t width, size_t height,
             const Means& means) {
  // With fewer lines the table comes first.
  constexpr size_t kRoomForTabs = 16;
  Picture picture;
  if (width == 0 || height == 0) return picture;
  std::vector<Line>& lines = picture.lines;
  lines.emplace_back(Title(browser, browser.sheet().total, width, means),
                     Look::kTitle);
  const Line notices = NoticeLine(browser, means);
  if (height >= kRoomForTabs || notices.width() != 0) lines.push_back(notices);
  if (height >= kRoomForTabs) {
    lines.push_back(TabLine(browser, lines.size(), width, &picture.hits));
  }
  if (height >= kRoomForTabs || browser.typing() || !browser.find().empty() ||
      !browser.drill().FilterText().empty()) {
    lines.push_back(FilterLine(browser, means));
  }
  const size_t used = lines.size() + 1;  // and the keys
  const size_t room = height > used ? height - used : 0;
  picture.rows = room;
  switch (browser.page()) {
    case Page::kTable:
      if (room != 0) AddTable(browser, width, room, means, &picture);
      break;
    case Page::kHelp:
      AddPage(HelpLines(browser.options().live), browser.top(), room,
              means.utf8, &picture);
      break;
    case Page::kAbout:
      AddPage(browser.about(), browser.top(), room, means.utf8, &picture);
      break;
    case Page::kOperations:
      AddPage(browser.lines(), browser.top(), room, means.utf8, &picture);
      break;
    case Page::kSpectrogram:
      for (Line& line : SpectrogramLines(browser, width, room, means)) {
        lines.push_back(std::move(line));
      }
      break;
  }
  while (lines.size() + 1 < height) lines.emplace_back();
  if (height > 1) {
    lines.resize(height - 1);
    lines.push_back(KeyLine(browser, height - 1, width, &picture.hits));
  }
  lines.resize(height);
  for (Line& line : lines) line.Cut(width);
  std::erase_if(picture.hits,
                [height](const Hit& hit) { return hit.line >= height; });
  return picture;
}

std::vector<std::string> Report(const Browser& browser, const View* only,
                                size_t width, size_t height,
                                const Means& means) {
  struct Section {
    const View* view;
    size_t weight;  // share of the lines
  };
  const std::vector<Section> sections =
      only != nullptr ? std::vector<Section>{{only, 1}}
                      : std::vector<Section>{{FindView("operations"), 4},
                                             {FindView("processes"), 3},
                                             {FindView("files"), 4},
                                             {FindView("directories"), 3}};
  std::vector<std::string> lines;
  lines.push_back(Title(browser, browser.sheet().total, width, means));
  if (const Line notices = NoticeLine(browser, means); notices.width() != 0) {
    lines.push_back(notices.Plain());
  }
  size_t weights = 0;
  for (const Section& section : sections) weights += section.weight;
  // Each has a title and an empty line before it.
  const size_t used = lines.size() + 2 * sections.size();
  size_t left = height > used ? height - used : 0;
  for (const Section& section : sections) {
    SheetOptions options;
    options.group = section.view->group;
    options.drill = browser.drill();
    options.sort = browser.sort();
    options.ascending = browser.ascending();
    options.sources = browser.options().sources;
    const Sheet sheet =
        MakeSheet(browser.activity().table(browser.all()), options);
    const TableStyle style = StyleOf(browser, sheet, width, means);
    size_t most = left * section.weight / weights;
    if (only != nullptr) most = sheet.rows.size();
    most = std::min(most, sheet.rows.size());
    left -= std::min(left, most);  // what one does not need is for the others
    weights -= section.weight;
    lines.emplace_back();
    lines.push_back(HeadLine(section.view->title, style, 0, nullptr).Plain());
    while (lines.back().ends_with(' ')) lines.back().pop_back();
    for (size_t i = 0; i < most; ++i) {
      lines.push_back(RowLine(sheet.rows[i], style).Plain());
    }
  }
  return lines;
}

}  // namespace tracefs::screen
