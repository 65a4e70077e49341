// What web/ has, as it was when this was built (embed.cmake).
#pragma once

#include <string_view>

namespace tracefs::report {

extern const std::string_view kPageStyle;     // web/page.css
extern const std::string_view kPictureStyle;  // web/picture.css
// web/*.js, in their order: of a page, and of one that compares two runs.
extern const std::string_view kPageScript;
extern const std::string_view kComparisonScript;

}  // namespace tracefs::report
