// The loop around a browser: on a terminal a screen that obeys keys and mouse,
// elsewhere one report after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/screen/browser.h"
#include "tracefs/screen/feed.h"
#include "tracefs/screen/look.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::screen {

struct ViewerOptions {
  Browser::Options browser;
  bool batch = false;          // no screen, even on a terminal
  uint64_t rounds = 0;         // intervals to show; 0: until it is ended
  const View* only = nullptr;  // of a report: all rows of that view
  ColourWish colour = ColourWish::kAuto;
};

// Shows what comes from `feed` until it ends, `q` is pressed, all rounds are
// done, or `stop` is set. A terminal is put back as it was. Without one, and
// without rounds, one report is all.
Status RunViewer(const ViewerOptions& options, Feed& feed, OutputBuffer& out,
                 const std::atomic<bool>& stop);

}  // namespace tracefs::screen
