// The compression filter: round trips, and payloads that lie.
#include "filters/output/compress.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "tests/unit/filters/output/chain_end.h"

namespace tracefs {
namespace {

constexpr CompressAlgorithm kBoth[] = {CompressAlgorithm::kZlib,
                                       CompressAlgorithm::kZstd};

std::vector<Written> Compress(const CompressOptions& options,
                              const std::vector<std::string>& blocks) {
  ChainLog log;
  const auto filter = MakeCompress(options, std::make_unique<ChainEnd>(&log));
  EXPECT_TRUE(filter->Initialize(TestIdentity()).ok());
  uint64_t sequence = 0;
  for (const std::string& block : blocks) {
    EXPECT_TRUE(filter->Write(AsBytes(block), {.sequence = sequence++}).ok());
  }
  EXPECT_TRUE(filter->Release().ok());
  EXPECT_EQ(log.calls, (std::vector<std::string>{"initialize", "release"}));
  return log.written;
}

Result<std::string> Decode(std::string_view payload) {
  const auto decoder = MakeCompressDecoder();
  DecodeMemory memory;
  BlockNotes notes;
  ByteSpan out;
  if (Status s = decoder->Decode({}, AsBytes(payload), memory, &notes, &out);
      !s.ok()) {
    return s;
  }
  return std::string(AsText(out));
}

std::string Payload(CompressMethod method, uint32_t length,
                    std::string_view body) {
  std::string payload(kCompressHeadBytes, '\0');
  payload[0] = static_cast<char>(method);
  StoreLe<uint32_t>(payload.data() + 4, length);
  return payload + std::string(body);
}

TEST(CompressTest, EveryBlockStandsAlone) {
  for (const CompressAlgorithm algorithm : kBoth) {
    for (const int level : {0, 1, MaxCompressLevel(algorithm)}) {
      const std::vector<std::string> blocks = SampleBlocks();
      const std::vector<Written> written =
          Compress({.algorithm = algorithm, .level = level}, blocks);
      ASSERT_EQ(written.size(), blocks.size());
      for (size_t i = written.size(); i-- > 0;) {
        const auto decoded = Decode(written[i].payload);
        ASSERT_TRUE(decoded.ok()) << decoded.status().message();
        EXPECT_TRUE(*decoded == blocks[i]) << "block " << i;
        EXPECT_EQ(written[i].info.sequence, i);
      }
    }
  }
}

TEST(CompressTest, TextShrinks) {
  const std::vector<std::string> text = {SampleBlocks()[3]};
  for (const CompressAlgorithm algorithm : kBoth) {
    const auto written = Compress({.algorithm = algorithm}, text);
    EXPECT_LT(written[0].payload.size(), text[0].size() / 5);
  }
}

TEST(CompressTest, ZstdTakesMoreEffortWithBlocksThatEndEarly) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < 64 * 1024) {
    text += "/src/module_" + std::to_string(random() % 300) + "/part.h\n";
  }
  const auto size = [&text](int level, size_t block_bytes) {
    return Compress({.algorithm = CompressAlgorithm::kZstd,
                     .level = level,
                     .columns = false,
                     .block_bytes = block_bytes},
                    {text})[0]
        .payload.size();
  };
  EXPECT_EQ(size(0, 4 * text.size()), size(9, 0));
  EXPECT_EQ(size(0, 4 * text.size() - 4), size(1, 0));
  EXPECT_LT(size(9, 0), size(1, 0));
}

TEST(CompressTest, WhatDoesNotShrinkIsStored) {
  const std::string noise = SampleBlocks()[4];
  for (const CompressAlgorithm algorithm : kBoth) {
    const auto written = Compress({.algorithm = algorithm}, {noise});
    EXPECT_TRUE(written[0].payload ==
                Payload(CompressMethod::kStored, noise.size(), noise));
  }
}

TEST(CompressTest, ZlibsOwnFunctionReadsThePayload) {
  const std::string text = SampleBlocks()[3];
  const std::string payload = Compress({}, {text})[0].payload;
  ASSERT_EQ(payload[0], static_cast<char>(CompressMethod::kZlib));
  ASSERT_EQ(LoadLe<uint32_t>(payload.data() + 4), text.size());
  std::string out(text.size(), '\0');
  uLongf size = out.size();
  ASSERT_EQ(::uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                         reinterpret_cast<const Bytef*>(payload.data() +
                                                        kCompressHeadBytes),
                         payload.size() - kCompressHeadBytes),
            Z_OK);
  EXPECT_TRUE(out == text);
}

TEST(CompressTest, ABlockThatWasRefusedMayComeAgain) {
  ChainLog log;
  const auto filter = MakeCompress({}, std::make_unique<ChainEnd>(&log));
  ASSERT_TRUE(filter->Initialize(TestIdentity()).ok());
  log.fail_writes = 1;
  EXPECT_FALSE(filter->Write(AsBytes("aaaaaaaa"), {}).ok());
  EXPECT_TRUE(filter->Write(AsBytes("bbbbbbbb"), {}).ok());
  ASSERT_EQ(log.written.size(), 1u);
  EXPECT_EQ(*Decode(log.written[0].payload), "bbbbbbbb");
}

TEST(CompressTest, TheSmallestBlockSizeOfAChainHolds) {
  ChainLog log;
  const auto preferred = [&](size_t own, size_t next) {
    return MakeCompress({.block_bytes = own},
                        std::make_unique<ChainEnd>(&log, next))
        ->PreferredBlockSize();
  };
  EXPECT_EQ(preferred(0, 0), 0u);
  EXPECT_EQ(preferred(8192, 0), 8192u);
  EXPECT_EQ(preferred(0, 8192), 8192u);
  EXPECT_EQ(preferred(4096, 8192), 4096u);
  EXPECT_EQ(preferred(16384, 8192), 8192u);
}

TEST(CompressTest, Malicious_EveryCutFails) {
  const std::string text = SampleBlocks()[3].substr(0, 3000);
  for (const CompressAlgorithm algorithm : kBoth) {
    const auto written = Compress({.algorithm = algorithm}, {text});
    const std::string& payload = written[0].payload;
    for (size_t size = 0; size < payload.size(); ++size) {
      EXPECT_FALSE(Decode(payload.substr(0, size)).ok()) << size;
    }
    EXPECT_FALSE(Decode(payload + "x").ok());
  }
}

TEST(CompressTest, Malicious_FlippedBytesNeverCrash) {
  const std::string text = SampleBlocks()[3].substr(0, 3000);
  for (const CompressAlgorithm algorithm : kBoth) {
    const auto written = Compress({.algorithm = algorithm}, {text});
    for (size_t i = 0; i < written[0].payload.size(); ++i) {
      std::string bad = written[0].payload;
      bad[i] = static_cast<char>(bad[i] ^ 0x55);
      const auto decoded = Decode(bad);
      // zstd has no check of its own here: that is checksum's work.
      if (decoded.ok()) {
        EXPECT_EQ(decoded->size(), text.size());
      }
    }
  }
}

TEST(CompressTest, Malicious_LengthsThatLie) {
  std::string zeros(100000, '\0');
  std::string body(1000, '\0');
  uLongf size = body.size();
  ASSERT_EQ(
      ::compress(reinterpret_cast<Bytef*>(body.data()), &size,
                 reinterpret_cast<const Bytef*>(zeros.data()), zeros.size()),
      Z_OK);
  body.resize(size);
  EXPECT_TRUE(Decode(Payload(CompressMethod::kZlib, 100000, body)).ok());
  for (const uint32_t lie :
       {0u, 1u, 99999u, 100001u, 64u << 20, (64u << 20) + 1, 0xffffffffu}) {
    EXPECT_FALSE(Decode(Payload(CompressMethod::kZlib, lie, body)).ok());
    EXPECT_FALSE(Decode(Payload(CompressMethod::kZstd, lie, body)).ok());
    EXPECT_FALSE(Decode(Payload(CompressMethod::kStored, lie, body)).ok());
  }
}

TEST(CompressTest, Malicious_ABombIsRefusedBeforeItIsUnpacked) {
  const auto decoded = Decode(Payload(CompressMethod::kZstd, 64u << 20, "xyz"));
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.status().message().find("more than any writer makes"),
            std::string::npos)
      << decoded.status().message();
}

// No writer sorts what would grow, so whoever unpacks columns that claim more
// than their block has only been made to hold memory.
TEST(CompressTest, Malicious_ColumnsThatClaimMoreThanTheirBlockAreNotUnpacked) {
  constexpr uint32_t kBlock = 4096;
  const std::string columns(1000 * kBlock, '\0');
  std::string zlib(::compressBound(columns.size()), '\0');
  uLongf size = zlib.size();
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(zlib.data()), &size,
                       reinterpret_cast<const Bytef*>(columns.data()),
                       columns.size()),
            Z_OK);
  zlib.resize(size);
  for (const uint32_t claim : {kBlock + 1, 1000 * kBlock}) {
    std::string body(kColumnsLengthBytes, '\0');
    StoreLe<uint32_t>(body.data(), claim);
    const std::string payload =
        Payload(CompressMethod::kZlibColumns, kBlock, body + zlib);
    DecodeMemory memory;
    BlockNotes notes;
    ByteSpan out;
    EXPECT_EQ(MakeCompressDecoder()
                  ->Decode({}, AsBytes(payload), memory, &notes, &out)
                  .code(),
              StatusCode::kCorrupt);
    EXPECT_LE(memory.bytes(), 2 * kBlock) << claim;
  }
}

TEST(CompressTest, Malicious_ABlockBeyondTheReadersLimitIsNotUnpacked) {
  const std::string payload =
      Compress({.columns = false}, {std::string(100'000, 'x')})[0].payload;
  for (const size_t limit : {99'999U, 100'000U}) {
    DecodeMemory memory(limit);
    BlockNotes notes;
    ByteSpan out;
    const Status status = MakeCompressDecoder()->Decode({}, AsBytes(payload),
                                                        memory, &notes, &out);
    EXPECT_EQ(status.ok(), limit == 100'000) << status.message();
    EXPECT_EQ(memory.bytes() == 0, limit == 99'999);
  }
}

TEST(CompressTest, AnUnknownMethodIsNamed) {
  const auto decoded = Decode(Payload(static_cast<CompressMethod>(9), 1, "x"));
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.status().message().find("method 9"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
