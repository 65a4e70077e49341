#include "tracefs/tools/dump/browse.h"

#include "tracefs/base/join.h"
#include "tracefs/screen/viewer.h"
#include "tracefs/tools/dump/dump.h"
#include "tracefs/tools/dump/main.h"
#include "tracefs/tools/dump/trace_feed.h"

namespace tracefs {
namespace {

int Complain(OutputBuffer& err, const Status& status) {
  err.Append(kDumpSays + status.message() + '\n');
  (void)err.Flush();  // nobody to tell
  return ExitStatus(status);
}

}  // namespace

int Browse(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
           const std::atomic<bool>& stop) {
  const auto feed = TraceFeed::Open(InputOf(options), stop);
  if (!feed.ok()) return Complain(err, feed.status());
  screen::ViewerOptions viewer;
  viewer.browser.title = JoinWords(options.traces, " ");
  viewer.browser.sources = {viewer.browser.title};
  viewer.browser.filter = options.filter;
  viewer.browser.all = true;
  viewer.browser.live = false;
  viewer.colour = options.colour;
  const Status status = screen::RunViewer(viewer, **feed, out, stop);
  if (!status.ok()) return Complain(err, status);
  if (!(*feed)->problems().empty()) {
    err.Append((*feed)->problems());
    (void)err.Flush();
  }
  return (*feed)->exit_code();
}

}  // namespace tracefs
