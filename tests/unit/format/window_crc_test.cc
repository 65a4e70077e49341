// The CRC of a range equals the CRC computed over its bytes.
#include "tracefs/format/window_crc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tracefs/base/crc32c.h"

namespace tracefs::format {
namespace {

TEST(WindowCrcTest, EqualsTheCrcOfTheBytes) {
  std::mt19937_64 random(3);
  std::vector<std::byte> bytes(100'000);
  for (std::byte& b : bytes) b = std::byte(random());
  const ByteSpan all = bytes;
  for (int round = 0; round < 20; ++round) {
    WindowCrc crc;
    uint64_t front = random() % 100;
    crc.Start(front);
    while (front < bytes.size()) {
      for (int i = 0; i < 5; ++i) {
        uint64_t begin = front + random() % (bytes.size() - front + 1);
        uint64_t end = front + random() % (bytes.size() - front + 1);
        if (i == 0) begin = end = front;
        if (begin > end) std::swap(begin, end);
        ASSERT_EQ(crc.Of(begin, end, all.subspan(front)),
                  Crc32c(all.subspan(begin, end - begin)))
            << begin << ' ' << end;
      }
      const uint64_t step = 1 + random() % (random() % 2 ? 100 : 20'000);
      const uint64_t to = std::min<uint64_t>(front + step, bytes.size());
      crc.Advance(to, all.subspan(front));
      front = to;
    }
  }
}

TEST(WindowCrcTest, CombinesTwoCrcs) {
  std::mt19937_64 random(4);
  std::vector<std::byte> bytes(5'000);
  for (std::byte& b : bytes) b = std::byte(random());
  const ByteSpan all = bytes;
  for (const size_t cut : {0, 1, 36, 4096, 4999, 5000}) {
    const uint32_t first = Crc32c(all.first(cut));
    const uint32_t second = Crc32c(all.subspan(cut));
    EXPECT_EQ(CrcOfBoth(first, second, bytes.size() - cut), Crc32c(all));
    EXPECT_EQ(CrcOfSecond(first, Crc32c(all), bytes.size() - cut), second);
  }
}

}  // namespace
}  // namespace tracefs::format
