// LiveFeed: what `tracefs-ctl top` shows: counts of one or more mounts as they
// tell them, and on demand their operations.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/control/client.h"
#include "tracefs/export/exporter.h"
#include "tracefs/screen/feed.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/ctl/live_trace.h"

namespace tracefs {

// Used by one thread.
class LiveFeed final : public screen::Feed {
 public:
  struct Options {
    std::vector<std::string> mounts;
    std::string filter;
    std::chrono::milliseconds interval{};
    std::chrono::seconds patience{};
  };

  // Begins to watch; fails as ControlClient does, or if the filter is wrong.
  static Result<std::unique_ptr<LiveFeed>> Open(const Options& options);

  // Feed:
  void AddDescriptors(std::vector<pollfd>* fds) const override;
  Result<bool> Take(screen::Activity* activity) override;
  bool ended() const override;
  std::vector<screen::Notice> Notices() override;
  std::vector<std::string> About() override;
  Status Follow(const std::string& filter) override;
  void StopFollowing() override;
  Status TakeLines(std::vector<std::string>* lines) override;

  // OK, or why the stream of a mount could not be read.
  Status status() const;

 private:
  struct Mount {
    std::string path;
    std::unique_ptr<LiveTrace> counts;
    bool ended = false;
    // The interval that is being told.
    bool pending = false;
    uint64_t from_ns = 0;
    uint64_t to_ns = 0;
    uint64_t last_end_ns = 0;  // by our clock
    // For questions; may be closed by the other side at any time.
    std::unique_ptr<ControlClient> asking;
    // Operations, while they are listed.
    std::unique_ptr<LiveTrace> operations;
    std::unique_ptr<StringOutput> text;
    std::unique_ptr<Exporter> exporter;
  };

  explicit LiveFeed(const Options& options) : options_(options) {}
  Status Watch(const std::string& path);
  void Count(size_t source, const format::AggregateRecord& record);
  bool TakeCounts(size_t source);
  Result<std::string> Ask(Mount& mount, const std::string& request);
  void AddNotices(Mount& mount, std::vector<screen::Notice>* notices);

  const Options options_;
  std::vector<Mount> mounts_;
  screen::Activity* activity_ = nullptr;  // during Take
  bool fresh_ = false;
};

}  // namespace tracefs
