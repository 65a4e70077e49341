// What web/ has, as it was when this was built (embed.cmake).
#pragma once

#include <string_view>

namespace tracefs::report {

extern const std::string_view kPageStyle;     // web/page.css
extern const std::string_view kPictureStyle;  // web/picture.css
extern const std::string_view kPageScript;    // web/*.js, in their order

}  // namespace tracefs::report
