#include "tracefs/tools/replay/stepper.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "tracefs/base/printable.h"
#include "tracefs/base/units.h"
#include "tracefs/event/op.h"
#include "tracefs/replay/interruption.h"

namespace tracefs {
namespace {

std::string Line(const replay::Action& a) {
  std::string line =
      std::to_string(a.sequence) + " " + std::string(OpName(a.op));
  if (!a.name.empty()) line += " " + Printable(a.name);
  if (!a.new_name.empty()) line += " -> " + Printable(a.new_name);
  if (a.length != 0) {
    line += " " + std::to_string(a.length) + " at " + std::to_string(a.offset);
  }
  return line;
}

}  // namespace

void Stepper::Restart() {
  free_until_ = again_at_ > 0 ? again_at_ - 1 : 0;
  again_at_ = 0;
  done_ = 0;
}

bool Stepper::NextLine(std::string* line) {
  constexpr int kLookMs = 50;
  while (true) {
    if (const size_t end = input_.find('\n'); end != input_.npos) {
      *line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return true;
    }
    pollfd in = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    // The signal may come to another thread.
    const int ready = ::poll(&in, 1, kLookMs);
    if (replay::Interruption::Happened()) return false;
    if (ready <= 0) continue;
    char text[256];
    const ssize_t n = ::read(STDIN_FILENO, text, sizeof text);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    input_.append(text, static_cast<size_t>(n));
  }
}

bool Stepper::Before(const replay::Action& action) {
  if (going_ || done_ < free_until_) {
    ++done_;
    return true;
  }
  while (true) {
    out_.Append(Line(action) + " ? ");
    (void)out_.Flush();
    std::string answer;
    if (!NextLine(&answer) || answer == "q") return false;
    if (answer == "b") {
      if (done_ == 0) {
        out_.Append("this is the first one\n");
        continue;
      }
      again_at_ = done_;
      return false;
    }
    if (answer == "c") {
      going_ = true;
    } else if (!answer.empty()) {
      const auto count = ParseUnsigned(answer);
      if (!count || *count == 0) {
        out_.Append("Enter, a number, b, c or q\n");
        continue;
      }
      free_until_ = done_ + *count;
    }
    ++done_;
    return true;
  }
}

}  // namespace tracefs
