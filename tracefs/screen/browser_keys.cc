// What keys and clicks do to a browser.
#include <algorithm>

#include "tracefs/screen/browser.h"

namespace tracefs::screen {
namespace {

using Kind = Key::Kind;

Column SortedBy(char key) {
  return key == 'c'   ? Column::kCount
         : key == 't' ? Column::kTime
         : key == 'e' ? Column::kErrors
                      : Column::kBytes;
}

}  // namespace

// While a text to find is typed.
Wish Browser::Type(const Key& key) {
  switch (key.kind) {
    case Kind::kEscape:
      find_.clear();
      typing_ = false;
      break;
    case Kind::kEnter:
      typing_ = false;
      break;
    case Kind::kBackspace:
      while (!find_.empty() && (find_.back() & 0xc0) == 0x80) find_.pop_back();
      if (!find_.empty()) find_.pop_back();
      break;
    case Kind::kText:
      if (find_.size() < 256) find_ += key.text;
      break;
    case Kind::kUp:
      Scroll(-1);
      return Wish::kNothing;
    case Kind::kDown:
      Scroll(1);
      return Wish::kNothing;
    case Kind::kInterrupt:
      return Wish::kQuit;
    default:
      return Wish::kNothing;
  }
  selected_id_.clear();
  Roll();
  return Wish::kNothing;
}

void Browser::Scroll(int64_t by) {
  const auto move = [by](size_t from, size_t most) {
    const auto to = static_cast<int64_t>(from) + by;
    return std::min(to < 0 ? size_t{0} : static_cast<size_t>(to), most);
  };
  if (page_ == Page::kTable) {
    // The first step makes the first row the selected one.
    if (selected_id_.empty() && by > 0 && by == 1) {
      Select(0);
      return;
    }
    Select(move(selected_, SIZE_MAX));
    return;
  }
  page_top_ =
      move(page_top_,
           page_lines_ > page_rows_ ? page_lines_ - page_rows_ : size_t{0});
}

void Browser::SortBy(Column column) {
  if (sort_ == column) {
    ascending_ = !ascending_;
  } else {
    sort_ = column;
    ascending_ = false;
  }
  Roll();
}

void Browser::ShiftSort(int by) {
  const auto count = static_cast<int>(kColumns);
  sort_ = static_cast<Column>((static_cast<int>(sort_) + by + count) % count);
  ascending_ = false;
  Roll();
}

// 0: folds or unfolds the selected row; 1: unfolds all; -1: folds all.
void Browser::Fold(int how) {
  if (!tree_) return;
  if (how > 0) folded_.clear();
  if (how < 0) {
    for (const Row& row : sheet_.rows) {
      if (row.parent && row.depth != 0) folded_.insert(row.id);
    }
  }
  if (how == 0 && selected_ < sheet_.rows.size()) {
    const std::string& id = sheet_.rows[selected_].id;
    if (folded_.erase(id) == 0) folded_.insert(id);
    selected_id_ = id;
  }
  Roll();
}

Wish Browser::Click(const Key& key) {
  for (const Hit& hit : hits_) {
    if (hit.line != key.line || key.column < hit.from || key.column >= hit.to) {
      continue;
    }
    switch (hit.kind) {
      case Hit::Kind::kRow:
        // On the row that is selected already: into it.
        if (!selected_id_.empty() && hit.number == selected_) return Open();
        Select(hit.number);
        return Wish::kNothing;
      case Hit::Kind::kColumn:
        SortBy(static_cast<Column>(hit.number));
        return Wish::kNothing;
      case Hit::Kind::kView:
        return Command(std::string_view(
            &Views(options_.sources.size())[hit.number].key, 1));
      case Hit::Kind::kKey: {
        Key pressed;
        pressed.text = hit.text;
        if (hit.text == "Enter") pressed.kind = Kind::kEnter;
        if (hit.text == "Esc") pressed.kind = Kind::kEscape;
        return Obey(pressed);
      }
    }
  }
  return Wish::kNothing;
}

Wish Browser::Command(std::string_view key) {
  if (key.size() != 1) return Wish::kNothing;
  for (const View& view : Views(options_.sources.size())) {
    if (view.key != key[0]) continue;
    const bool operations = page_ == Page::kOperations;
    following_ = false;
    Show(&view);
    return operations ? Wish::kStopFollowing : Wish::kNothing;
  }
  switch (key[0]) {
    case 'q':
    case 'Q':
      return Wish::kQuit;
    case '?':
    case 'h':
      page_ = page_ == Page::kHelp ? Page::kTable : Page::kHelp;
      page_top_ = 0;
      break;
    case 'l':
      page_ = page_ == Page::kAbout ? Page::kTable : Page::kAbout;
      page_top_ = 0;
      about_ = feed_.About();
      break;
    case 's':
      page_ = page_ == Page::kSpectrogram ? Page::kTable : Page::kSpectrogram;
      page_top_ = 0;
      break;
    case 'o':
      if (page_ == Page::kOperations) return Back();
      page_ = Page::kOperations;
      return Wish::kFollow;
    case 'c':
    case 't':
    case 'e':
    case 'b':
      sort_ = SortedBy(key[0]);
      ascending_ = false;
      break;
    case '<':
      ShiftSort(-1);
      break;
    case '>':
      ShiftSort(1);
      break;
    case 'I':
      ascending_ = !ascending_;
      break;
    case 'T':
      if (view_->group != Group::kProcess &&
          view_->group != Group::kDirectory) {
        Say("processes (2) and directories (4) have a tree");
        break;
      }
      tree_ = !tree_;
      selected_id_.clear();
      break;
    case '+':
    case '-':
    case '*':
      Fold(key[0] == '*' ? 0 : key[0] == '+' ? 1 : -1);
      break;
    case 'a':
      all_ = !all_;
      break;
    case ' ':
    case 'p':
      paused_ = !paused_;
      break;
    case 'r':
      if (!options_.live) break;
      activity_.Reset();
      break;
    case 'H':
      histogram_ = !histogram_;
      break;
    case '/':
    case '\\':
      page_ = Page::kTable;
      typing_ = true;
      break;
    case 'w':
      return Wish::kSave;
    case 'k':
      Scroll(-1);
      return Wish::kNothing;
    case 'j':
      Scroll(1);
      return Wish::kNothing;
    case '[':
      if (!feed_.Zoom(0.5)) Say("a live view has no window of time");
      break;
    case ']':
      if (!feed_.Zoom(2)) Say("this is all the time there is");
      break;
    default:
      return Wish::kNothing;
  }
  Roll();
  return Wish::kNothing;
}

Wish Browser::Obey(const Key& key) {
  said_.clear();
  if (typing_ && key.kind != Kind::kClick && key.kind != Kind::kWheelUp &&
      key.kind != Kind::kWheelDown) {
    return Type(key);
  }
  const auto page = static_cast<int64_t>(page_rows_);
  constexpr int64_t kWheel = 3;
  switch (key.kind) {
    case Kind::kText:
      return Command(key.text);
    case Kind::kEnter:
      if (page_ == Page::kTable) return Open();
      return Back();
    case Kind::kBackspace:
    case Kind::kEscape:
      return Back();
    case Kind::kTab:
    case Kind::kBackTab: {
      const auto views = Views(options_.sources.size());
      const auto here = static_cast<size_t>(view_ - views.data());
      const size_t by = key.kind == Kind::kTab ? 1 : views.size() - 1;
      return Command(
          std::string_view(&views[(here + by) % views.size()].key, 1));
    }
    case Kind::kUp:
      Scroll(-1);
      break;
    case Kind::kDown:
      Scroll(1);
      break;
    case Kind::kLeft:
      if (!feed_.Move(-1)) return Wish::kNothing;
      Roll();
      break;
    case Kind::kRight:
      if (!feed_.Move(1)) return Wish::kNothing;
      Roll();
      break;
    case Kind::kPageUp:
      Scroll(-page);
      break;
    case Kind::kPageDown:
      Scroll(page);
      break;
    case Kind::kHome:
      Scroll(-(int64_t{1} << 40));
      break;
    case Kind::kEnd:
      Scroll(int64_t{1} << 40);
      break;
    case Kind::kWheelUp:
      Scroll(-kWheel);
      break;
    case Kind::kWheelDown:
      Scroll(kWheel);
      break;
    case Kind::kFunction: {
      // As in csysdig and htop.
      constexpr std::string_view kKeys = "?\t//ToHw>q";
      if (key.number < 1 || key.number > kKeys.size()) break;
      const char c = kKeys[key.number - 1];
      if (c == '\t') {
        Key tab;
        tab.kind = Kind::kTab;
        return Obey(tab);
      }
      return Command(std::string_view(&c, 1));
    }
    case Kind::kClick:
      return Click(key);
    case Kind::kInterrupt:
      return Wish::kQuit;
    case Kind::kRedraw:
      break;
  }
  return Wish::kNothing;
}

}  // namespace tracefs::screen
