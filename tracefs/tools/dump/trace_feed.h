// TraceFeed: what `tracefs-dump --browse` shows: the operations of traces,
// counted, and their lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/screen/feed.h"

namespace tracefs {

// Used by one thread. Traces are read again for each part of the time and for
// each list of operations: memory does not grow with them.
class TraceFeed final : public screen::Feed {
 public:
  // As many parts of equal length as the time that is shown is counted in.
  static constexpr uint64_t kSlices = 60;

  // Options as of a query; `stop` ends reading.
  static Result<std::unique_ptr<TraceFeed>> Open(
      const reader::InputOptions& options, const std::atomic<bool>& stop);

  // Feed:
  void AddDescriptors(std::vector<pollfd>*) const override {}
  Result<bool> Take(screen::Activity* activity) override;
  bool ended() const override { return read_; }
  std::vector<screen::Notice> Notices() override { return notices_; }
  std::vector<std::string> About() override { return about_; }
  Status Follow(const std::string& filter) override;
  void StopFollowing() override { lines_.clear(); }
  Status TakeLines(std::vector<std::string>* lines) override;
  bool Move(int steps) override;
  bool Zoom(double factor) override;
  std::string Window() const override;

  // What was wrong with the traces, and the exit status that it comes to.
  const std::string& problems() const { return problems_; }
  int exit_code() const { return exit_code_; }

 private:
  TraceFeed(const reader::InputOptions& options, const std::atomic<bool>& stop)
      : options_(options), stop_(stop) {}
  reader::InputOptions Part() const;
  Status Read(screen::Activity* activity);
  bool Show(TimeRange part);

  const reader::InputOptions options_;
  const std::atomic<bool>& stop_;
  TimeRange all_;   // zeros where it is not known
  TimeRange part_;  // what is shown of it
  bool read_ = false;
  std::vector<screen::Notice> notices_;
  std::vector<std::string> about_;
  std::vector<std::string> lines_;
  std::string problems_;
  int exit_code_ = 0;
};

}  // namespace tracefs
