// Little-endian values at the end of a string.
#pragma once

#include <string>

#include "tracefs/base/bytes.h"

namespace tracefs {

template <typename T>
void AppendLe(T value, std::string* out) {
  char bytes[sizeof value];
  StoreLe<T>(bytes, value);
  out->append(bytes, sizeof bytes);
}

}  // namespace tracefs
