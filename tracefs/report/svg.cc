#include "tracefs/report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tracefs/base/printable.h"

namespace tracefs::report {

std::string XmlText(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

namespace {

// Of DejaVu Sans, which is a wide one, at 11 pixels.
double WidthOf(std::string_view character) {
  const char c = character[0];
  if (character.size() > 1 || static_cast<unsigned char>(c) >= 0x80) return 11;
  if (std::string_view("mMwW@%").find(c) != std::string_view::npos) return 10;
  if (std::string_view("ijlI.,:;'|!/()[] -ftr").find(c) !=
      std::string_view::npos) {
    return 4.4;
  }
  return c >= 'A' && c <= 'Z' ? 7.8 : 7;
}

// The first character, at least a byte.
std::string_view FirstOf(std::string_view text) {
  return text.substr(0, std::max<size_t>(1, FirstCodePoint(text).size));
}

}  // namespace

double TextWidth(std::string_view text) {
  double width = 0;
  while (!text.empty()) {
    const std::string_view first = FirstOf(text);
    width += WidthOf(first);
    text.remove_prefix(first.size());
  }
  return width;
}

std::string Fitting(std::string_view text, double width) {
  constexpr double kEllipsis = 11;
  if (TextWidth(text) <= width) return std::string(text);
  std::string kept;
  double used = kEllipsis;
  while (!text.empty()) {
    const std::string_view first = FirstOf(text);
    used += WidthOf(first);
    if (used > width) break;
    kept += first;
    text.remove_prefix(first.size());
  }
  return kept.empty() ? kept : kept + "\u2026";
}

std::string Coordinate(double value) {
  const double tenths = std::round(value * 10);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*f",
                std::fmod(tenths, 10) == 0 ? 0 : 1, tenths / 10);
  return text.data();
}

SvgWriter::SvgWriter(double width, double height, std::string_view label)
    : width_(width), height_(height), label_(label) {}

void SvgWriter::Rect(double x, double y, double width, double height,
                     std::string_view style, std::string_view title) {
  shapes_ += "<rect x=\"" + Coordinate(x) + "\" y=\"" + Coordinate(y) +
             "\" width=\"" + Coordinate(width) + "\" height=\"" +
             Coordinate(height) + "\" class=\"" + std::string(style) + "\"";
  shapes_ +=
      title.empty() ? "/>" : "><title>" + XmlText(title) + "</title></rect>";
}

void SvgWriter::Line(double x1, double y1, double x2, double y2,
                     std::string_view style) {
  Path("M" + Coordinate(x1) + " " + Coordinate(y1) + "L" + Coordinate(x2) +
           " " + Coordinate(y2),
       style);
}

void SvgWriter::Text(double x, double y, std::string_view text,
                     std::string_view style, Anchor anchor) {
  shapes_ += "<text x=\"" + Coordinate(x) + "\" y=\"" + Coordinate(y) +
             "\" class=\"" + std::string(style) + "\"";
  if (anchor == Anchor::kMiddle) shapes_ += " text-anchor=\"middle\"";
  if (anchor == Anchor::kEnd) shapes_ += " text-anchor=\"end\"";
  shapes_ += ">" + XmlText(text) + "</text>";
}

void SvgWriter::Path(std::string_view d, std::string_view style) {
  if (d.empty()) return;
  shapes_ += "<path d=\"" + std::string(d) + "\" class=\"" +
             std::string(style) + "\"/>";
}

std::string SvgWriter::Finish(std::string_view style) const {
  const std::string width = Coordinate(width_);
  const std::string height = Coordinate(height_);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                    width + " " + height + "\" role=\"img\" aria-label=\"" +
                    XmlText(label_) + "\"";
  if (!style.empty()) {
    svg += " width=\"" + width + "\" height=\"" + height + "\"><style>" +
           std::string(style) + "</style><rect width=\"" + width +
           "\" height=\"" + height + "\" class=\"ground\"/";
  }
  return svg + ">" + shapes_ + "</svg>";
}

}  // namespace tracefs::report
