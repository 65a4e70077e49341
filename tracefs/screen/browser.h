// Browser: what a screen shows and what keys do to it. Knows no terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/screen/activity.h"
#include "tracefs/screen/feed.h"
#include "tracefs/screen/keys.h"
#include "tracefs/screen/sheet.h"
#include "tracefs/screen/view.h"

namespace tracefs::screen {

enum class Page : uint8_t { kTable, kHelp, kOperations, kAbout, kSpectrogram };

// What a click at a place does.
struct Hit {
  enum class Kind : uint8_t { kRow, kColumn, kView, kKey };
  size_t line = 0;
  size_t from = 0;  // columns, half-open
  size_t to = 0;
  Kind kind{};
  size_t number = 0;  // of a row, a Column, or a view
  std::string text;   // of a key
};

// What the loop around it has to do.
enum class Wish : uint8_t { kNothing, kQuit, kFollow, kStopFollowing, kSave };

// Used by one thread.
class Browser {
 public:
  struct Options {
    std::string title;                 // the mounts, or the traces; any bytes
    std::vector<std::string> sources;  // the mounts; any bytes
    std::string filter;                // that all has passed
    const View* view = nullptr;        // null: operations
    Column sort = Column::kCount;
    bool ascending = false;
    bool all = false;  // since the start, else the last interval
    bool live = true;  // numbers are a second's, but with `all`
  };

  Browser(Options options, Feed& feed);

  // --- What happens to it.

  // Reads what the feed has; true if there is something new.
  Result<bool> Take();
  Wish Obey(const Key& key);
  // What was drawn: where rows and columns are, for clicks; how many rows a
  // page has room for, and how many lines there are for it, with those above
  // and below; of the table nothing of that.
  void Drawn(std::vector<Hit> hits, size_t rows, size_t page_lines);
  // Fails where the operations cannot be listed.
  Status Follow();

  // --- What there is to draw.

  const Options& options() const { return options_; }
  const Activity& activity() const { return activity_; }
  const View& view() const { return *view_; }
  Page page() const { return page_; }
  Column sort() const { return sort_; }
  bool ascending() const { return ascending_; }
  bool all() const { return all_; }
  bool rates() const { return options_.live && !all_; }
  bool paused() const { return paused_; }
  bool tree() const { return tree_; }
  bool typing() const { return typing_; }
  bool histogram() const { return histogram_; }
  const std::string& find() const { return find_; }
  const Drill& drill() const { return drill_; }
  const Sheet& sheet() const { return sheet_; }
  size_t selected() const { return selected_; }
  // The first row, or line of a page, that is shown.
  size_t top() const { return page_ == Page::kTable ? top_ : page_top_; }
  const std::vector<Notice>& notices() const { return notices_; }
  const std::deque<std::string>& lines() const { return lines_; }
  const std::vector<std::string>& about() const { return about_; }
  std::string Window() const { return feed_.Window(); }
  // For the histogram: the selected row's, or all there is.
  const ActivityCounts& Chosen() const;
  // A message for the line of notices, until the next key.
  void Say(std::string text) { said_ = std::move(text); }
  const std::string& said() const { return said_; }
  // The rows as CSV, with a title line.
  std::string Csv() const;

  // Lines of operations that are kept.
  static constexpr size_t kMaxLines = 10000;

 private:
  struct Step {
    const View* view;
    size_t terms;
    std::string selected_id;
    std::string find;
    bool tree;
  };

  void Roll();
  void Select(size_t row);
  void Show(const View* view);
  Wish Open();
  Wish Back();
  Wish Type(const Key& key);
  Wish Command(std::string_view key);
  Wish Click(const Key& key);
  void Scroll(int64_t by);
  void SortBy(Column column);
  void ShiftSort(int by);
  void Fold(int how);

  const Options options_;
  Feed& feed_;
  Activity activity_;
  const View* view_;
  Page page_ = Page::kTable;
  Column sort_;
  bool ascending_;
  bool all_;
  bool paused_ = false;
  bool tree_ = false;
  bool typing_ = false;
  bool histogram_ = false;
  bool following_ = false;
  std::string find_;
  Drill drill_;
  std::vector<Step> steps_;
  std::set<std::string> folded_;
  Sheet sheet_;
  std::string selected_id_;
  size_t selected_ = 0;
  size_t top_ = 0;
  size_t page_top_ = 0;
  size_t page_rows_ = 10;
  size_t page_lines_ = 0;
  std::vector<Notice> notices_;
  std::vector<std::string> about_;
  std::deque<std::string> lines_;
  std::vector<Hit> hits_;
  std::string said_;
};

}  // namespace tracefs::screen
