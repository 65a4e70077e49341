// PagedOutput: standard output, through a pager where it is a terminal.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/command/command_line.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

struct PagerWish {
  bool never = false;
  std::string command;  // for sh; "": what the environment says
};

// --pager and --no-pager.
void AddPagerOptions(CommandOptions* options);
PagerWish ReadPagerOptions(const CommandLine& given);

// Which pager there is: --pager, $TRACEFS_PAGER, $PAGER, else less or more.
// Where another user's environment may have come along (sudo) the variables are
// not looked at, and less runs no commands.
// "": none, as where the terminal is dumb, or the word is "cat".
std::string PagerCommand(const PagerWish& wish);

// How wide the terminal is that standard output is; 0: it is none. To be asked
// before a pager begins.
size_t TerminalColumns();

// The pager begins with the first output: who writes nothing has none, and what
// is decided by whether standard output is a terminal is decided before. From
// then on standard error goes into it, too, if that was a terminal, and an
// interrupt is for the pager alone. A reader who ends it shows as EPIPE.
// Used by one thread.
class PagedOutput final : public OutputBuffer {
 public:
  explicit PagedOutput(PagerWish wish) : wish_(std::move(wish)) {}
  // Writes what is left, and waits until the pager has ended.
  ~PagedOutput() override;

 protected:
  Status Emit(std::string_view text) override;

 private:
  void Begin();
  void Start(const std::string& command);

  const PagerWish wish_;
  bool begun_ = false;
  pid_t pager_ = -1;
  UniqueFd output_;  // as they were before the pager came
  UniqueFd errors_;
};

}  // namespace tracefs
