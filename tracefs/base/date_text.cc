#include "tracefs/base/date_text.h"

namespace tracefs {
namespace {

// The formats were checked where they are written.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
std::string Text(const tm* fields, const char* format) {
  char text[64];
  return {text, fields == nullptr
                    ? 0
                    : std::strftime(text, sizeof text, format, fields)};
}
#pragma GCC diagnostic pop

}  // namespace

std::string UtcText(time_t seconds, const char* format) {
  tm fields{};
  return Text(::gmtime_r(&seconds, &fields), format);
}

std::string LocalText(time_t seconds, const char* format) {
  tm fields{};
  return Text(::localtime_r(&seconds, &fields), format);
}

}  // namespace tracefs
