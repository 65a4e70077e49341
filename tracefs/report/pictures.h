// Pictures of a document, drawn without a browser: those of the page where
// there are no scripts, on paper, and of --format svg and png.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tracefs/report/document.h"
#include "tracefs/report/svg.h"

namespace tracefs::report {

struct Picture {
  std::string_view name;  // of its panel in the page
  std::string_view title;
  SvgWriter (*draw)(const Json& document);
};

// In the order of the page.
std::span<const Picture> Pictures();
const Picture* FindPicture(std::string_view name);

// pictures_time.cc
SvgWriter DrawTimeline(const Json& document);
SvgWriter DrawLatency(const Json& document);
SvgWriter DrawDirectories(const Json& document);
SvgWriter DrawProcesses(const Json& document);
// pictures_shape.cc
SvgWriter DrawTree(const Json& document);
SvgWriter DrawFlame(const Json& document);
SvgWriter DrawAccess(const Json& document);

// --- What they share.
inline constexpr double kPictureWidth = 960;
uint64_t NumberAt(const Json& json, const char* key);
// A picture that says why there is none.
SvgWriter NothingToDraw(std::string_view why);

}  // namespace tracefs::report
