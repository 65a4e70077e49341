// Line: a line of a screen, in parts that look differently.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/screen/look.h"

namespace tracefs::screen {

// Takes only text that is safe for a terminal.
class Line {
 public:
  Line() = default;
  explicit Line(std::string_view text, Look look = Look::kPlain) {
    Add(text, look);
  }

  Line& Add(std::string_view text, Look look = Look::kPlain);
  // The text at the end, or at the front, of so many cells; no shorter.
  Line& AddRight(std::string_view text, size_t width, Look look = Look::kPlain);
  // No wider than that; then, with Fill, just as wide.
  Line& Cut(size_t width);
  Line& Fill(size_t width, Look look);
  // All of it looks like that.
  Line& Dress(Look look);

  size_t width() const { return width_; }
  std::string Plain() const;
  std::string Drawn(bool colour) const;

 private:
  struct Part {
    std::string text;
    Look look;
  };
  std::vector<Part> parts_;
  size_t width_ = 0;
};

}  // namespace tracefs::screen
