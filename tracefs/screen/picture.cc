#include "tracefs/screen/picture.h"

#include <algorithm>

#include "tracefs/screen/frame_lines.h"
#include "tracefs/screen/help.h"
#include "tracefs/screen/latency_lines.h"
#include "tracefs/screen/table_lines.h"
#include "tracefs/text/cell_width.h"

namespace tracefs::screen {
namespace {

// The lines of a page, safe already, from the one on that is shown first.
template <typename Lines>
void AddPage(const Lines& texts, size_t top, size_t most, bool utf8,
             Picture* picture) {
  for (size_t i = top; i < texts.size() && i < top + most; ++i) {
    picture->lines.emplace_back(ForTerminal(texts[i], utf8));
  }
  picture->page_lines = texts.size();
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
      AddPage(HelpLines(browser.options().live,
                        browser.options().sources.size(), width),
              browser.top(), room, means.utf8, &picture);
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
    lines.push_back(KeyLine(browser, picture.page_lines > browser.top() + room,
                            height - 1, width, &picture.hits));
  }
  lines.resize(height);
  for (Line& line : lines) line.Cut(width);
  std::erase_if(picture.hits,
                [height](const Hit& hit) { return hit.line >= height; });
  return picture;
}

}  // namespace tracefs::screen
