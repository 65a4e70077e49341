// Bytes on their way in and out, holes or not: what is copied, and its
// checksum, are those of the file as it reads.
#include "tracefs/keep/kept_source.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <string>

#include "tests/unit/keep/kept_world.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"

namespace tracefs::keep {
namespace {

constexpr uint64_t kPiece = 256 << 10;  // that is read at once

class KeptSourceTest : public KeptWorld {
 protected:
  // A file with holes, and how it reads.
  UniqueFd Sparse(uint64_t bytes, std::mt19937_64& random, std::string* text) {
    UniqueFd fd = Hole(bytes);
    text->assign(bytes, '\0');
    for (uint64_t at = 0; at < bytes;) {
      const uint64_t left = bytes - at;
      const uint64_t hole = std::min(left, 4096 * (random() % 20));
      const uint64_t data = std::min(left - hole, 1 + random() % (2 * kPiece));
      for (uint64_t i = 0; i < data; ++i) {
        (*text)[at + hole + i] = static_cast<char>(random());
      }
      EXPECT_TRUE(
          WriteAllAt(fd.get(),
                     AsBytes(std::string_view(*text).substr(at + hole, data)),
                     at + hole, "")
              .ok());
      at += hole + data;
    }
    return fd;
  }

  static std::string AllOf(int fd) {
    std::string text(SizeOf(fd), '\0');
    EXPECT_EQ(::pread(fd, text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    return text;
  }

  void ExpectSame(int fd, const std::string& text, uint64_t begin,
                  uint64_t length, uint64_t at) {
    const std::string want = text.substr(begin, length);
    const uint32_t crc = Crc32c(AsBytes(want));
    uint32_t checksum = ~crc;
    EXPECT_EQ(ChecksumOf(fd, begin, length, &checksum), 0);
    EXPECT_EQ(checksum, crc) << begin << " " << length;
    checksum = ~crc;
    const UniqueFd to = File("");
    EXPECT_EQ(CopyBytes(fd, begin, length, to.get(), at, &checksum), 0);
    EXPECT_EQ(checksum, crc) << begin << " " << length;
    std::string got = AllOf(to.get());
    EXPECT_LE(got.size(), at + length);
    got.resize(at + length);  // a hole at its end is not there
    EXPECT_TRUE(got == std::string(at, '\0') + want) << begin << " " << length;
  }
};

TEST_F(KeptSourceTest, RoundTrip_AnyRangeOfAFileWithHoles) {
  std::mt19937_64 random(7);
  for (int file = 0; file < 6; ++file) {
    std::string text;
    const uint64_t size = 3 * kPiece + random() % kPiece;
    const UniqueFd fd = Sparse(size, random, &text);
    ExpectSame(fd.get(), text, 0, size, 0);
    for (int i = 0; i < 10; ++i) {
      const uint64_t begin = random() % size;
      ExpectSame(fd.get(), text, begin, random() % (size - begin + 1),
                 random() % 9000);
    }
  }
}

TEST_F(KeptSourceTest, RoundTrip_WherePiecesEnd) {
  std::string text(3 * kPiece, '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 31 >> 7);
  }
  const UniqueFd fd = File(text);
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, kPiece - 1, kPiece,
                                kPiece + 1, 2 * kPiece, 2 * kPiece + 1}) {
    ExpectSame(fd.get(), text, 0, length, 0);
    ExpectSame(fd.get(), text, 5, length, 7);
  }
}

TEST_F(KeptSourceTest, BytesThatAreNotThereAreAnError) {
  const UniqueFd fd = File("0123456789");
  std::byte room[10];
  EXPECT_EQ(ReadBytes(fd.get(), room, 0), 0);
  EXPECT_EQ(static_cast<char>(room[9]), '9');
  EXPECT_EQ(ReadBytes(fd.get(), room, 1), ENODATA);
  EXPECT_EQ(ReadBytes(fd.get(), room, 10), ENODATA);
  EXPECT_EQ(ReadBytes(fd.get(), std::span(room).first(1), 9), 0);
  EXPECT_EQ(ReadBytes(-1, room, 0), EBADF);
}

TEST_F(KeptSourceTest, WhatCannotBeReadOrWrittenIsAnError) {
  const UniqueFd fd = File("0123456789");
  const UniqueFd to(::open((top_ + "/to").c_str(), O_CREAT | O_RDONLY, 0600));
  uint32_t checksum = 7;
  EXPECT_EQ(CopyBytes(fd.get(), 0, 10, to.get(), 0, &checksum), EBADF);
  const UniqueFd blind(
      ::open((top_ + "/source").c_str(), O_TMPFILE | O_WRONLY, 0600));
  ASSERT_TRUE(WriteAllAt(blind.get(), AsBytes("0123456789"), 0, "").ok());
  EXPECT_EQ(ChecksumOf(blind.get(), 0, 10, &checksum), EBADF);
  EXPECT_EQ(checksum, 7u);
}

}  // namespace
}  // namespace tracefs::keep
