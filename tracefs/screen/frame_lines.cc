#include "tracefs/screen/frame_lines.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs::screen {
namespace {

struct KeyHint {
  std::string_view key;  // as it is pressed
  std::string_view text;
};

}  // namespace

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
             std::to_string(total.errors) + " err, " + SizeText(total.bytes);
  }
  const std::string time = std::string(browser.all() ? "; all " : "; last ") +
                           SpanText(static_cast<uint64_t>(seconds * 1e9));
  std::string window = browser.Window();
  if (!window.empty()) window = " (" + window + ")";
  std::string sort = ", by " + std::string(Info(browser.sort()).name);
  if (browser.ascending()) sort += " ascending";
  const std::string paused = browser.paused() ? ", paused" : "";
  // What there is no room for is left out whole, and that it stands still last.
  for (const std::string& rest :
       {time + window + sort + paused, time + window + paused, time + paused}) {
    if (WidthOf(title + rest) <= width) return title + rest;
  }
  return title + paused;
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

Line KeyLine(const Browser& browser, bool more, size_t line, size_t width,
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
    if (more) text.Add("(more below)");
  }
  return text;
}

Line TabLine(const Browser& browser, size_t line, size_t width,
             std::vector<Hit>* hits) {
  Line tabs;
  const auto views = Views(browser.options().sources.size());
  for (size_t i = 0; i < views.size(); ++i) {
    const View& view = views[i];
    const bool here = &view == &browser.view();
    const size_t from = tabs.width();
    tabs.Add(std::string(1, view.key) + ' ' + std::string(view.name),
             here ? Look::kTabHere : Look::kTab);
    hits->push_back({line, from, tabs.width(), Hit::Kind::kView, i, {}});
    tabs.Add("  ");
  }
  return tabs.Cut(width);
}

}  // namespace tracefs::screen
