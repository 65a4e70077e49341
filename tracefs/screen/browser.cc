#include "tracefs/screen/browser.h"

#include <algorithm>

#include "tracefs/text/csv_text.h"

namespace tracefs::screen {

Browser::Browser(Options options, Feed& feed)
    : options_(std::move(options)),
      feed_(feed),
      view_(options_.view != nullptr ? options_.view : Views(1).data()),
      sort_(options_.sort),
      ascending_(options_.ascending),
      all_(options_.all) {
  drill_.base = options_.filter;
}

Result<bool> Browser::Take() {
  bool fresh = false;
  if (!paused_) {
    const Result<bool> ended = feed_.Take(&activity_);
    if (!ended.ok()) return ended;
    fresh = *ended;
  }
  if (fresh) {
    notices_ = feed_.Notices();
    if (page_ == Page::kAbout) about_ = feed_.About();
    Roll();
  }
  if (following_ && !paused_) {
    std::vector<std::string> lines;
    if (Status s = feed_.TakeLines(&lines); !s.ok()) Say(s.message());
    const bool at_end = page_top_ + page_rows_ >= lines_.size();
    for (std::string& line : lines) {
      if (lines_.size() == kMaxLines) {
        lines_.pop_front();
        if (page_top_ != 0) --page_top_;
      }
      lines_.push_back(std::move(line));
    }
    // Who looks at the last line sees what comes.
    if (options_.live && at_end && lines_.size() > page_rows_) {
      page_top_ = lines_.size() - page_rows_;
    }
    fresh |= !lines.empty();
  }
  return fresh;
}

void Browser::Roll() {
  SheetOptions options;
  options.group = view_->group;
  options.drill = drill_;
  options.find = find_;
  options.sort = sort_;
  options.ascending = ascending_;
  options.tree = tree_;
  options.folded = folded_;
  options.sources = options_.sources;
  sheet_ = MakeSheet(activity_.table(all_), options);
  // The same row stays selected, wherever it is now.
  const auto at =
      std::find_if(sheet_.rows.begin(), sheet_.rows.end(),
                   [this](const Row& row) { return row.id == selected_id_; });
  if (!selected_id_.empty() && at != sheet_.rows.end()) {
    Select(static_cast<size_t>(at - sheet_.rows.begin()));
  } else if (selected_id_.empty()) {
    selected_ = 0;
    top_ = 0;
  } else {
    selected_ = std::min(
        selected_, sheet_.rows.empty() ? size_t{0} : sheet_.rows.size() - 1);
  }
  if (top_ > selected_) top_ = selected_;
}

void Browser::Select(size_t row) {
  if (sheet_.rows.empty()) return;
  selected_ = std::min(row, sheet_.rows.size() - 1);
  selected_id_ = sheet_.rows[selected_].id;
  if (selected_ < top_) top_ = selected_;
  if (selected_ >= top_ + page_rows_) top_ = selected_ + 1 - page_rows_;
}

const ActivityCounts& Browser::Chosen() const {
  if (selected_id_.empty() || selected_ >= sheet_.rows.size()) {
    return sheet_.total;
  }
  return sheet_.rows[selected_].counts;
}

void Browser::Drawn(std::vector<Hit> hits, size_t rows, size_t page_lines) {
  page_lines_ = page_lines;
  hits_ = std::move(hits);
  page_rows_ = std::max<size_t>(rows, 1);
  if (page_ == Page::kTable && selected_ >= top_ + page_rows_) {
    top_ = selected_ + 1 - page_rows_;
  }
}

void Browser::Show(const View* view) {
  view_ = view;
  page_ = Page::kTable;
  selected_id_.clear();
  Roll();
}

Status Browser::Follow() {
  lines_.clear();
  page_top_ = 0;
  const Status status = feed_.Follow(drill_.FilterText());
  following_ = status.ok();
  return status;
}

// Into the selected row.
Wish Browser::Open() {
  if (selected_ >= sheet_.rows.size()) return Wish::kNothing;
  const Row& row = sheet_.rows[selected_];
  if (row.other) {
    Say("what is summed up here cannot be told apart");
    return Wish::kNothing;
  }
  steps_.push_back({view_, drill_.terms.size(), row.id, find_, tree_});
  drill_.terms.push_back(row.term);
  find_.clear();
  if (view_->into.empty()) {
    page_ = Page::kOperations;
    return Wish::kFollow;
  }
  tree_ = false;
  Show(FindView(view_->into));
  return Wish::kNothing;
}

Wish Browser::Back() {
  if (page_ != Page::kTable) {
    const bool operations = page_ == Page::kOperations;
    page_ = Page::kTable;
    if (operations) {
      following_ = false;
      // It was what the last step led to.
      if (!steps_.empty() && steps_.back().view == view_ &&
          steps_.back().terms < drill_.terms.size() && view_->into.empty()) {
        drill_.terms.resize(steps_.back().terms);
        selected_id_ = steps_.back().selected_id;
        find_ = steps_.back().find;
        steps_.pop_back();
      }
    }
    Roll();
    return operations ? Wish::kStopFollowing : Wish::kNothing;
  }
  if (!find_.empty()) {
    find_.clear();
    Roll();
    return Wish::kNothing;
  }
  if (steps_.empty()) return Wish::kNothing;
  const Step step = steps_.back();
  steps_.pop_back();
  drill_.terms.resize(step.terms);
  find_ = step.find;
  tree_ = step.tree;
  Show(step.view);
  selected_id_ = step.selected_id;
  Roll();
  return Wish::kNothing;
}

std::string Browser::Csv() const {
  std::string text = std::string(view_->name) +
                     ",count,errors,bytes,time_ns,p50_ns,p99_ns,max_ns\n";
  for (const Row& row : sheet_.rows) {
    text += CsvText(row.name);
    for (const Column column :
         {Column::kCount, Column::kErrors, Column::kBytes, Column::kTime,
          Column::kP50, Column::kP99, Column::kMax}) {
      text += ',' + std::to_string(row.In(column));
    }
    text += '\n';
  }
  return text;
}

}  // namespace tracefs::screen
