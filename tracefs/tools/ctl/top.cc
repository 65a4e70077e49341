#include "tracefs/tools/ctl/top.h"

#include <memory>

#include "tracefs/base/join.h"
#include "tracefs/screen/viewer.h"
#include "tracefs/tools/ctl/live_feed.h"

namespace tracefs {

Status Top(const CtlOptions& options, OutputBuffer& out,
           const std::atomic<bool>& stop) {
  std::vector<std::string> mounts = {options.mount};
  mounts.insert(mounts.end(), options.also.begin(), options.also.end());
  const Result<std::unique_ptr<LiveFeed>> feed =
      LiveFeed::Open({.mounts = mounts,
                      .filter = options.filter,
                      .interval = options.interval,
                      .patience = options.patience});
  if (!feed.ok()) return feed.status();
  screen::ViewerOptions viewer;
  viewer.browser.title = JoinWords(mounts, " ");
  viewer.browser.sources = mounts;
  viewer.browser.filter = options.filter;
  viewer.browser.view = options.view;
  viewer.browser.sort = options.sort;
  viewer.only = options.view;
  viewer.batch = options.batch;
  viewer.rounds = options.rounds;
  viewer.colour = options.colour;
  const Status status = screen::RunViewer(viewer, **feed, out, stop);
  return status.ok() ? (*feed)->status() : status;
}

}  // namespace tracefs
