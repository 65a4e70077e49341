// Looks for secrets in the memory of this process.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/secret.h"

namespace tracefs::test {

// Bytes that can be compared with, but that are nowhere as they are.
class Masked {
 public:
  explicit Masked(ByteSpan secret) {
    // Never unmasked, not even in registers: what is called next may put these
    // on the stack.
    bytes_.resize(secret.size());
    for (size_t i = 0; i < secret.size(); ++i) {
      const volatile std::byte* const one = &secret[i];
      bytes_[i] = *one ^ kMask;
    }
  }
  size_t size() const { return bytes_.size(); }
  bool IsAt(const std::byte* at) const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if ((at[i] ^ kMask) != bytes_[i]) return false;
    }
    return true;
  }

 private:
  static constexpr std::byte kMask{0xA5};
  std::vector<std::byte> bytes_;
};

// A key that only this test knows, by its number: the caller wipes it.
inline SecretKey KeyNumber(unsigned number) {
  SecretKey key;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    key.get()[i] = static_cast<std::byte>(i * i * 7 + i * number + 13);
  }
  return key;
}

// How often `secret` is in what this process can write to.
inline size_t CopiesInMemory(const Masked& secret) {
  std::ifstream maps("/proc/self/maps");
  const UniqueFd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(memory);
  constexpr size_t kPiece = size_t{1} << 20;
  // Its own pages, so that what is found is not found in here again.
  SecretMemory room(kPiece);
  const std::span<std::byte> buffer = room.bytes();
  size_t copies = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) != 3 ||
        access[0] != 'r' || access[1] != 'w') {
      continue;
    }
    const auto own = reinterpret_cast<unsigned long>(buffer.data());
    for (unsigned long at = begin; at < end;) {
      // Pieces overlap by all but one byte of the secret.
      const unsigned long stop = at < own ? std::min(end, own) : end;
      if (at >= own && at < own + kPiece) {
        at = own + kPiece;
        continue;
      }
      const ssize_t n =
          ::pread(memory.get(), buffer.data(), std::min(kPiece, stop - at),
                  static_cast<off_t>(at));
      if (n <= 0) break;
      const auto got = static_cast<size_t>(n);
      for (size_t i = 0; i + secret.size() <= got; ++i) {
        if (secret.IsAt(buffer.data() + i)) ++copies;
      }
      at += got;
      if (got == kPiece) at -= secret.size() - 1;
    }
  }
  return copies;
}

}  // namespace tracefs::test
