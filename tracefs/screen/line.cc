#include "tracefs/screen/line.h"

#include "tracefs/text/cell_width.h"

namespace tracefs::screen {

Line& Line::Add(std::string_view text, Look look) {
  if (text.empty()) return *this;
  width_ += WidthOf(text);
  if (!parts_.empty() && parts_.back().look == look) {
    parts_.back().text += text;
  } else {
    parts_.push_back({std::string(text), look});
  }
  return *this;
}

Line& Line::AddRight(std::string_view text, size_t width, Look look) {
  const size_t own = WidthOf(text);
  if (own < width) Add(std::string(width - own, ' '), look);
  return Add(text, look);
}

Line& Line::Cut(size_t width) {
  size_t used = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const size_t own = WidthOf(parts_[i].text);
    if (used + own > width) {
      parts_[i].text = CutEnd(parts_[i].text, width - used);
      used += WidthOf(parts_[i].text);
      parts_.resize(i + 1);
      break;
    }
    used += own;
  }
  width_ = used;
  return *this;
}

Line& Line::Fill(size_t width, Look look) {
  if (width_ < width) Add(std::string(width - width_, ' '), look);
  return *this;
}

Line& Line::Dress(Look look) {
  const std::string text = Plain();
  parts_.assign(1, {text, look});
  return *this;
}

std::string Line::Plain() const {
  std::string text;
  for (const Part& part : parts_) text += part.text;
  return text;
}

std::string Line::Drawn(bool colour) const {
  std::string text;
  for (const Part& part : parts_) {
    const std::string_view begin = Begin(part.look, colour);
    if (begin.empty()) {
      text += part.text;
    } else {
      ((text += begin) += part.text) += "\x1b[0m";
    }
  }
  return text;
}

}  // namespace tracefs::screen
