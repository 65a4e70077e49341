#include "tracefs/screen/plain_report.h"

#include <algorithm>

#include "tracefs/screen/frame_lines.h"
#include "tracefs/screen/table_lines.h"

namespace tracefs::screen {

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
