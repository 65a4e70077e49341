// SvgWriter: a picture, shape by shape. Colours come from style sheets by class
// (web/style.css), so that a picture in the page is light or dark as the page
// is.
#pragma once

#include <string>
#include <string_view>

namespace tracefs::report {

// Text for an XML or HTML document, between tags or in a quoted attribute.
std::string XmlText(std::string_view text);
// About how wide a text is in the font of pictures.
double TextWidth(std::string_view text);
// As much of a text as there is room for, with an ellipsis if that is not all;
// "" where there is no room for two characters.
std::string Fitting(std::string_view text, double width);

class SvgWriter {
 public:
  // `label`: what the picture shows, with its main number, for who cannot see
  // it.
  SvgWriter(double width, double height, std::string_view label);

  // `title` shows when one points at it; may be empty. Texts are escaped here.
  void Rect(double x, double y, double width, double height,
            std::string_view style, std::string_view title = {});
  void Line(double x1, double y1, double x2, double y2, std::string_view style);
  enum class Anchor { kStart, kMiddle, kEnd };
  void Text(double x, double y, std::string_view text,
            std::string_view style = "t", Anchor anchor = Anchor::kStart);
  // `d`: of a path element.
  void Path(std::string_view d, std::string_view style);

  // The element. `style`: for a picture that stands alone, its style sheet.
  std::string Finish(std::string_view style = {}) const;

 private:
  const double width_;
  const double height_;
  const std::string label_;
  std::string shapes_;
};

// A coordinate: at most one decimal.
std::string Coordinate(double value);

}  // namespace tracefs::report
