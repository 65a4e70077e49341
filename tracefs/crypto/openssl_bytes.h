// Bytes as OpenSSL takes them.
#pragma once

#include <cstddef>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs {

inline const unsigned char* OpenSslBytes(ByteSpan bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline const unsigned char* OpenSslBytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
inline unsigned char* OpenSslBytes(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}

}  // namespace tracefs
