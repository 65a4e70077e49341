#include "tracefs/tools/replay/stepper.h"

#include <cstdio>
#include <iostream>

#include "tracefs/base/printable.h"
#include "tracefs/base/units.h"
#include "tracefs/event/op.h"

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

bool Stepper::Before(const replay::Action& action) {
  if (going_ || done_ < free_until_) {
    ++done_;
    return true;
  }
  while (true) {
    out_.Append(Line(action) + " ? ");
    (void)out_.Flush();
    std::string answer;
    if (!std::getline(std::cin, answer) || answer == "q") return false;
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
