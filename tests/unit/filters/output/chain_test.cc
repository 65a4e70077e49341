// Chain texts, and the table that everything goes through.
#include "filters/output/chain.h"

#include <gtest/gtest.h>

#include "filters/output/table.h"
#include "tests/unit/filters/output/filter_chain.h"

namespace tracefs {
namespace {

const KeyRing kNoKeys;

TEST(ChainTest, TextHasWhatAReaderNeedsAndNoPaths) {
  EXPECT_EQ(ChainTextOf("file = \"/tmp/secret place\""), "file");
  EXPECT_EQ(ChainTextOf("compress; file = /tmp/x"), "compress alg=zlib; file");
  EXPECT_EQ(ChainTextOf("compress alg = zstd level = 7; file = /tmp/x"),
            "compress alg=zstd; file");
}

TEST(ChainTest, ParsesNamesAndParameters) {
  const std::vector<ChainStage> stages =
      ParseChain(" a;b  x=1 y ;; c z==;file");
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[0].name, "a");
  EXPECT_EQ(stages[1].Get("x"), "1");
  EXPECT_EQ(stages[1].Get("y"), "");
  EXPECT_EQ(stages[1].Get("nothing"), "");
  EXPECT_EQ(stages[2].Get("z"), "=");
  EXPECT_EQ(stages[3].name, "file");
}

TEST(ChainTest, AnUnknownFilterIsNamed) {
  const auto chain =
      ChainDecoder::Create("compress; rot13 n=13; file", &kNoKeys);
  ASSERT_FALSE(chain.ok());
  EXPECT_EQ(chain.status().code(), StatusCode::kInvalid);
  EXPECT_NE(chain.status().message().find("'rot13'"), std::string::npos);
}

TEST(ChainTest, TheDriverMayBeAnything) {
  EXPECT_TRUE(ChainDecoder::Create("carrier-pigeon", &kNoKeys).ok());
  EXPECT_TRUE(ChainDecoder::Create("", &kNoKeys).ok());
}

TEST(ChainTest, Malicious_AnEndlessChainIsRefused) {
  std::string chain;
  for (int i = 0; i < 5000; ++i) chain += "compress;";
  EXPECT_FALSE(ChainDecoder::Create(chain + "file", &kNoKeys).ok());
}

TEST(ChainTest, Malicious_AReaderMayTakeFewerFilters) {
  const std::string three = "compress; compress; compress; ";
  EXPECT_TRUE(
      ChainDecoder::Create(three + "file", &kNoKeys, {.max_filters = 3}).ok());
  const auto four = ChainDecoder::Create(three + "compress; file", &kNoKeys,
                                         {.max_filters = 3});
  ASSERT_FALSE(four.ok());
  EXPECT_NE(four.status().message().find("more than 3"), std::string::npos);
}

// However many filters there are: two results and a room to work in.
TEST(ChainTest, AllFiltersShareTheirMemoryAndGiveItBack) {
  const std::string block(100'000, 'x');
  std::string output;
  for (int i = 0; i < 12; ++i) output += "compress; ";
  const std::vector<Written> written = RunChain(output + "file = x", {block});
  ASSERT_EQ(written.size(), 1u);
  Result<ChainDecoder> decoder =
      ChainDecoder::Create(output + "file", &kNoKeys);
  ASSERT_TRUE(decoder.ok());
  const Result<std::string> decoded = DecodeWith(*decoder, written[0]);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_TRUE(*decoded == block);
  EXPECT_GE(decoder->memory_bytes(), block.size());
  EXPECT_LE(decoder->memory_bytes(), 3 * block.size());
  decoder->Shrink(1000);
  EXPECT_LE(decoder->memory_bytes(), 3000u);
}

TEST(ChainTest, TooManyFiltersAreAnErrorOfTheConfig) {
  std::string output;
  for (size_t i = 0; i < kMaxChainFilters; ++i) output += "compress; ";
  Result<TracerConfig> tracer = ParseOutput(output + "file = x");
  ASSERT_TRUE(tracer.ok()) << tracer.status().message();
  EXPECT_TRUE(CheckChain("t.conf", tracer->output).ok());
  tracer = ParseOutput("compress; " + output + "file = x");
  ASSERT_TRUE(tracer.ok());
  const Status status = CheckChain("t.conf", tracer->output);
  EXPECT_NE(status.message().find("t.conf:1:"), std::string::npos);
}

TEST(ChainTest, AsyncMustBeFirst) {
  Result<TracerConfig> tracer =
      ParseOutput("async buffers = 4; compress; file = x");
  ASSERT_TRUE(tracer.ok()) << tracer.status().message();
  EXPECT_TRUE(CheckChain("t.conf", tracer->output).ok());
  tracer = ParseOutput("compress; async; file = x");
  ASSERT_TRUE(tracer.ok()) << tracer.status().message();
  const Status status = CheckChain("t.conf", tracer->output);
  EXPECT_NE(status.message().find("t.conf:1:21: async must be the first"),
            std::string::npos)
      << status.message();
}

TEST(ChainTest, WhatChangesNoByteNeedsNoInverse) {
  EXPECT_EQ(ChainTextOf("async; throttle ops = 5/s; file = x"),
            "async; throttle; file");
  EXPECT_TRUE(ChainDecoder::Create("async; throttle; file", &kNoKeys).ok());
}

TEST(ChainTest, ALevelBeyondTheAlgorithmIsRefused) {
  const Result<TracerConfig> tracer =
      ParseOutput("compress alg = zlib level = 10; file = x");
  ASSERT_TRUE(tracer.ok()) << tracer.status().message();
  ChainLog log;
  const auto made = MakeFilters(*tracer, &log);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("highest, 9"), std::string::npos);
}

TEST(ChainTest, TheTableIsWellFormed) {
  for (const OutputFilterRow& row : OutputFilters()) {
    EXPECT_EQ(FindOutputFilter(row.entry.name), &row);
    EXPECT_EQ(row.entry.role, EntryRole::kFilter);
    EXPECT_NE(row.make, nullptr);
    EXPECT_FALSE(row.help.empty());
  }
  EXPECT_EQ(FindOutputFilter("nothing"), nullptr);
}

}  // namespace
}  // namespace tracefs
