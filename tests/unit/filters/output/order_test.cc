// Filters in any order and number: what goes in comes out.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/filters/output/filter_chain.h"
#include "tests/unit/filters/output/test_keys.h"

namespace tracefs {
namespace {

class OrderTest : public testing::Test {
 protected:
  // Runs a chain and expects to read everything back, by the chain text.
  void ExpectRoundTrip(const std::string& filters) {
    const std::string output = filters + " file = x";
    const std::vector<std::string> blocks = SampleBlocks();
    const std::vector<Written> written = RunChain(output, blocks);
    ASSERT_EQ(written.size(), blocks.size()) << filters;
    const std::string chain = ChainTextOf(output);
    // Backwards: blocks stand alone.
    for (size_t i = blocks.size(); i-- > 0;) {
      const auto block = DecodeChain(chain, keys_.all, written[i]);
      ASSERT_TRUE(block.ok()) << chain << ": " << block.status().message();
      EXPECT_TRUE(*block == blocks[i]) << chain << ", block " << i;
    }
  }

  TestKeys keys_;
};

TEST_F(OrderTest, EveryKindOfEveryFilter) {
  const std::string key = keys_.KeyOption();
  for (const std::string& filters :
       {std::string("compress;"), std::string("compress alg = zstd;"),
        std::string("checksum alg = crc32c;"), "checksum" + key + ";",
        "checksum alg = hmac-md5" + key + ";",
        "checksum" + keys_.SealOption() + ";",
        "checksum" + key + keys_.SignOption() + ";",
        "checksum alg = crc32c" + keys_.SignOption() + ";",
        "encrypt" + key + ";", "encrypt cipher = chacha20-poly1305" + key + ";",
        "encrypt cipher = aes-128-ctr" + key + ";",
        "encrypt cipher = bf-cbc" + key + ";",
        "encrypt recipient = " + keys_.recipient + ";",
        "encrypt cipher = bf-cbc recipient = " + keys_.recipient + ";"}) {
    ExpectRoundTrip(filters);
  }
}

TEST_F(OrderTest, EveryPermutationOfChecksumCompressEncrypt) {
  for (const std::string& checksum :
       {"checksum" + keys_.KeyOption(), "checksum" + keys_.SealOption(),
        std::string("checksum alg = crc32c")}) {
    for (const char* compress : {"compress", "compress alg = zstd"}) {
      for (const std::string& encrypt :
           {"encrypt" + keys_.KeyOption(),
            "encrypt cipher = bf-cbc recipient = " + keys_.recipient}) {
        std::vector<std::string> filters = {checksum, compress, encrypt};
        std::sort(filters.begin(), filters.end());
        do {
          ExpectRoundTrip(filters[0] + ";" + filters[1] + ";" + filters[2] +
                          ";");
        } while (std::next_permutation(filters.begin(), filters.end()));
      }
    }
  }
}

TEST_F(OrderTest, EveryPermutationWithAsyncBeforeAndThrottleInBetween) {
  const std::string throttle = "throttle bytes = 1G/s";
  std::vector<std::string> filters = {"checksum" + keys_.KeyOption(),
                                      "compress alg = zstd",
                                      "encrypt" + keys_.KeyOption(), throttle};
  std::sort(filters.begin(), filters.end());
  int permutations = 0;
  do {
    std::string all;
    for (const std::string& filter : filters) all += filter + "; ";
    ExpectRoundTrip(all);
    ExpectRoundTrip("async; " + all);
    ++permutations;
  } while (std::next_permutation(filters.begin(), filters.end()));
  EXPECT_EQ(permutations, 24);
}

TEST_F(OrderTest, TheSameFilterTwice) {
  const std::string key = keys_.KeyOption();
  ExpectRoundTrip("compress; compress;");
  ExpectRoundTrip("checksum" + key + "; checksum" + key + ";");
  ExpectRoundTrip("encrypt" + key + "; encrypt" + key + ";");
}

TEST_F(OrderTest, EncryptingTwiceWithOneKeyDoesNotUndoItself) {
  // With a stream cipher and equal keys and counters it would.
  const std::string encrypt =
      "encrypt cipher = aes-128-ctr" + keys_.KeyOption() + ";";
  const std::string secret = "a text long enough not to appear by chance";
  const auto written = RunChain(encrypt + encrypt + " file = x", {secret});
  EXPECT_EQ(written[0].payload.find(secret), std::string::npos);
}

TEST_F(OrderTest, TheEffectiveBlockSizeIsTheSmallest) {
  ChainLog log;
  const auto filters = MustMakeFilters(
      "compress block = 256K; checksum alg = crc32c block = 8K; "
      "encrypt block = 64K" +
          keys_.KeyOption() + "; file = x",
      &log);
  EXPECT_EQ(filters->PreferredBlockSize(), 8192u);
}

}  // namespace
}  // namespace tracefs
