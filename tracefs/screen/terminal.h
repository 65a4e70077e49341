// Terminal: standard input and output as a screen of its own, with keys and
// mouse, until it goes.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tracefs/screen/line.h"
#include "tracefs/screen/look.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::screen {

// Used by one thread.
class Terminal {
 public:
  // Both are terminals (CanDraw).
  explicit Terminal(OutputBuffer& out);
  // Puts the terminal back as it was.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    size_t width = 80;
    size_t height = 24;
    bool operator==(const Size&) const = default;
  };
  Size size() const;
  // Writes the lines that differ from those before.
  Status Show(const std::vector<Line>& lines, bool colour);
  // The next Show writes all lines.
  void Forget() { shown_.clear(); }
  // What was typed; false if there will be no more.
  bool Read(std::string* bytes);

 private:
  OutputBuffer& out_;
  termios before_{};
  bool raw_ = false;
  Size shown_size_;
  std::vector<std::string> shown_;
};

}  // namespace tracefs::screen
