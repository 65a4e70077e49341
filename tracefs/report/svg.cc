#include "tracefs/report/svg.h"

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

std::string Shortened(std::string_view text, size_t most) {
  std::string kept;
  for (size_t count = 0; !text.empty(); ++count) {
    const size_t size = FirstCodePoint(text).size;
    const size_t bytes = size == 0 ? 1 : size;
    if (count + 1 >= most && text.size() > bytes) return kept + "\u2026";
    kept += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return kept;
}

size_t CharactersIn(double width) {
  return width < 7 ? 0 : static_cast<size_t>(width / 6.3);
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
