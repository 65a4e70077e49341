#pragma once

#include <cstring>
#include <string_view>

namespace tracefs {

// Puts `text` where there is room for it; returns the end.
inline char* PutText(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace tracefs
