#include "tracefs/screen/help.h"

#include <algorithm>
#include <string_view>

#include "tracefs/screen/column.h"
#include "tracefs/screen/view.h"

namespace tracefs::screen {
namespace {

constexpr size_t kIndent = 17;  // "  4 directories", and some room

// `help` behind `what`, on as many lines as it needs.
void AddEntry(std::string_view what, std::string_view help, size_t width,
              std::vector<std::string>* lines) {
  const size_t room = std::max(width, 2 * kIndent) - kIndent;
  std::string line = "  " + std::string(what);
  do {
    line.resize(std::max(line.size() + 1, kIndent), ' ');
    size_t end = help.size();
    if (end > room) {
      end = help.rfind(' ', room);
      if (end == help.npos) end = room;
    }
    lines->push_back(line.append(help.substr(0, end)));
    line.clear();
    help.remove_prefix(end);
    if (help.starts_with(' ')) help.remove_prefix(1);
  } while (!help.empty());
}

}  // namespace

std::vector<std::string> HelpLines(bool live, size_t sources, size_t width) {
  std::vector<std::string> lines = {"Keys"};
  const auto add = [&](std::string_view what, std::string_view help) {
    AddEntry(what, help, width, &lines);
  };
  add("arrows j k", "select a row; page up, page down, home, end");
  add("Enter", "open the row: the filter gets narrower");
  add("Esc, <-", "back (backspace)");
  add("/ F3", "find: only rows with this text, as you type");
  add("o F6", live ? "the operations that the filter keeps, live"
                   : "the operations that the filter keeps");
  const auto views = Views(sources);
  add(std::string("1 .. ") + views.back().key + ", Tab",
      "another view of the same operations");
  add("c t e b", "sort by count, time, errors, bytes");
  add("< > F9", "sort by the column before, after; I the other way");
  add("T F5", "tree of processes or directories; * + - fold");
  add("H F7", "histogram of the selected row");
  add("s", "spectrogram: durations over time");
  add("a", live ? "all since the start, or the last interval"
                : "all, or the part of the time that is shown");
  if (live) {
    add("p, blank", "pause");
    add("r", "forget what was counted");
    add("l", "what records: tracers, losses, alarms");
  } else {
    add("<- ->", "earlier, later; [ ] a shorter, a longer part of the time");
    add("l", "what the traces say of themselves");
  }
  add("w F8", "save the rows as CSV");
  add("q F10", "quit");
  add("mouse", "a title sorts, a row is selected, again: opened; wheel");
  lines.emplace_back();
  lines.emplace_back("Views");
  for (const View& view : views) {
    add(std::string(1, view.key) + ' ' + std::string(view.name), view.help);
  }
  lines.emplace_back();
  lines.emplace_back("Columns");
  for (const ColumnInfo& info : Columns()) {
    if (!info.total.empty()) add(live ? info.rate : info.total, info.help);
  }
  lines.emplace_back();
  lines.emplace_back("The filter in the fourth line is for --filter, and for");
  lines.emplace_back("tracefs-ctl set-filter.");
  return lines;
}

}  // namespace tracefs::screen
