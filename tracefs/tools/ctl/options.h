// What tracefs-ctl was asked for: its command line, checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/export/exporter.h"
#include "tracefs/replay/target_tree.h"
#include "tracefs/screen/column.h"
#include "tracefs/screen/look.h"
#include "tracefs/screen/view.h"
#include "tracefs/tools/ctl/live_table.h"

namespace tracefs {

enum class CtlCommand {
  kList,
  kExplain,
  kStats,
  kFlush,
  kAdd,
  kReload,
  kRemove,
  kStop,
  kStart,
  kSetFilter,
  kSnapshot,
  kRules,
  kHeld,
  kRelease,
  kUndo,
  kTail,
  kTop,
  kUpgrade,
  kUnmount,
};

struct CtlOptions {
  HelpWish help = {};
  bool version = false;
  std::string mount;
  bool all = false;  // every mount of the host that is ours, not `mount`
  // As root: mounts of other users, too, with the rights of those.
  bool as_owner = false;
  CtlCommand command{};
  // Of remove, stop, start, set-filter, snapshot: an id or a name.
  std::string tracer;
  std::string filter;   // of set-filter, tail, top, undo
  std::string file;     // of add; of reload, if not the mount's own
  bool json = false;    // the mount's own answer
  bool follow = false;  // of rules
  std::chrono::seconds patience{60};
  std::string format = "text";               // of tail
  TimeStyle time = TimeStyle::kLocal;        // of tail
  TimeForm form = TimeForm::kClock;          // likewise
  std::chrono::milliseconds interval{2000};  // of top
  // Of top, pictures; of tail, operations. 0: until it is ended.
  uint64_t rounds = 0;
  // Of top.
  bool batch = false;
  screen::Column sort = screen::Column::kCount;
  const screen::View* view = nullptr;  // null: it was not said
  std::vector<std::string> also;       // more mounts
  screen::ColourWish colour = screen::ColourWish::kAuto;
  std::optional<LiveTableOptions> table;  // --by: instead of the screen
  // Of release.
  enum class HoldEnd { kNone, kGoOn, kFail, kUndo };
  uint32_t hold = 0;
  HoldEnd end = HoldEnd::kNone;
  uint32_t kill = 0;  // that process; 0: none
  // Of undo.
  bool dry_run = false;
  bool yes = false;                 // do not ask
  std::vector<std::string> traces;  // empty: the mount's own
  std::vector<std::string> keys;
  std::string kept;
  replay::TargetOptions target;  // what may be given back
};

// kInvalid with a message that says what to do.
Result<CtlOptions> ParseCtlOptions(int argc, const char* const* argv);
// The text of --help.
HelpPage CtlHelp();

}  // namespace tracefs
