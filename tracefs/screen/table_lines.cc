#include "tracefs/screen/table_lines.h"

#include <algorithm>
#include <string>

#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs::screen {
namespace {

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
                               : 100 * static_cast<double>(row.counts.time_ns) /
                                     static_cast<double>(style.all_ns);
      return Decimal(share, 1);
    }
    default:
      return UnitForTerminal(DurationText(row.In(column)), style.utf8);
  }
}

}  // namespace

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
  style.all_ns = sheet.total.time_ns;
  style.width = width;
  style.utf8 = means.utf8;
  return style;
}

}  // namespace tracefs::screen
