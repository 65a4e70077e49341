// Output filters, per core: bytes of blocks a second through one filter into
// nothing, and how much smaller blocks become.
//
// Blocks are those of the sample trace or, if TRACEFS_BENCH_TRACE names a trace
// that was written without filters, of that one: a FULL trace of Postmark gives
// the figures of the README. Baseline: a copy of each block. Targets: checksum
// 1 GB/s, aes-256-gcm 1.5 GB/s, zstd 300 MB/s; zstd and zlib 10 times smaller.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "bench/micro/sample_trace.h"
#include "filters/output/checksum.h"
#include "filters/output/compress.h"
#include "filters/output/encrypt.h"
#include "tracefs/format/frame_reader.h"

namespace tracefs {
namespace {

// Blocks of operations; at most some dozens of megabytes.
const std::vector<std::string>& Blocks() {
  static const std::vector<std::string>* const blocks = [] {
    std::string bytes;
    if (const char* path = std::getenv("TRACEFS_BENCH_TRACE")) {
      std::ifstream in(path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    } else {
      bytes = bench::SampleTrace();
    }
    auto* made = new std::vector<std::string>();
    format::ReadStats stats;
    const format::ReportSink report;
    format::FrameReader frames(
        std::make_unique<format::MemorySource>(AsBytes(bytes)),
        /*follow=*/false, &stats, &report);
    format::Frame frame;
    for (size_t sum = 0; sum < (size_t{32} << 20);) {
      const auto step = frames.Next(&frame);
      if (!step.ok() || *step != format::ReadStep::kItem) break;
      made->emplace_back(AsText(frame.payload));
      sum += made->back().size();
    }
    return made;
  }();
  return *blocks;
}

class Counting final : public OutputFilter {
 public:
  explicit Counting(uint64_t* bytes) : bytes_(bytes) {}
  Status Initialize(const TraceIdentity&) override { return Status::Ok(); }
  Status Write(ByteSpan block, const BlockInfo&) override {
    *bytes_ += block.size();
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 0; }

 private:
  uint64_t* const bytes_;
};

SecretKey AnyKey() {
  SecretKey key;
  std::memset(key.get().data(), 7, kKeyBytes);
  return key;
}

using Maker = std::unique_ptr<OutputFilter> (*)(std::unique_ptr<OutputFilter>);

void Run(benchmark::State& state, Maker make) {
  uint64_t out = 0;
  const auto filter = make(std::make_unique<Counting>(&out));
  if (Blocks().empty() || !filter->Initialize({}).ok()) {
    state.SkipWithError("no blocks, or the filter did not start");
    return;
  }
  uint64_t in = 0;
  uint64_t sequence = 0;
  for (auto _ : state) {
    const std::string& block = Blocks()[sequence % Blocks().size()];
    if (!filter->Write(AsBytes(block), {.sequence = sequence}).ok()) {
      state.SkipWithError("a block was refused");
      return;
    }
    ++sequence;
    in += block.size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(in));
  state.counters["smaller"] =
      out == 0 ? 0 : static_cast<double>(in) / static_cast<double>(out);
}

void BM_Copy(benchmark::State& state) {
  std::string to;
  uint64_t in = 0;
  for (auto _ : state) {
    const std::string& block =
        Blocks()[static_cast<size_t>(state.iterations()) % Blocks().size()];
    to = block;
    benchmark::DoNotOptimize(to.data());
    in += block.size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(in));
}
BENCHMARK(BM_Copy);

template <ChecksumAlgorithm kAlgorithm>
std::unique_ptr<OutputFilter> Checksum(std::unique_ptr<OutputFilter> next) {
  ChecksumOptions options;
  options.algorithm = kAlgorithm;
  if (kAlgorithm != ChecksumAlgorithm::kCrc32c) options.key = AnyKey();
  return MakeChecksum(std::move(options), std::move(next));
}

std::unique_ptr<OutputFilter> Signed(std::unique_ptr<OutputFilter> next) {
  ChecksumOptions options;
  options.algorithm = ChecksumAlgorithm::kCrc32c;
  options.signer = *Signer::Create(AnyKey().get());
  return MakeChecksum(std::move(options), std::move(next));
}

template <CompressAlgorithm kAlgorithm, int kLevel>
std::unique_ptr<OutputFilter> Compress(std::unique_ptr<OutputFilter> next) {
  return MakeCompress({.algorithm = kAlgorithm, .level = kLevel},
                      std::move(next));
}

template <CipherId kCipher>
std::unique_ptr<OutputFilter> Encrypt(std::unique_ptr<OutputFilter> next) {
  EncryptOptions options;
  options.cipher = kCipher;
  options.key = AnyKey();
  return MakeEncrypt(std::move(options), std::move(next));
}

constexpr auto kZlib = CompressAlgorithm::kZlib;
constexpr auto kZstd = CompressAlgorithm::kZstd;

BENCHMARK_CAPTURE(Run, crc32c, &Checksum<ChecksumAlgorithm::kCrc32c>);
BENCHMARK_CAPTURE(Run, hmac_md5, &Checksum<ChecksumAlgorithm::kHmacMd5>);
BENCHMARK_CAPTURE(Run, hmac_sha256, &Checksum<ChecksumAlgorithm::kHmacSha256>);
BENCHMARK_CAPTURE(Run, ed25519, &Signed);
BENCHMARK_CAPTURE(Run, aes_256_gcm, &Encrypt<CipherId::kAes256Gcm>);
BENCHMARK_CAPTURE(Run, chacha20_poly1305,
                  &Encrypt<CipherId::kChaCha20Poly1305>);
BENCHMARK_CAPTURE(Run, aes_128_ctr, &Encrypt<CipherId::kAes128Ctr>);
BENCHMARK_CAPTURE(Run, bf_cbc, &Encrypt<CipherId::kBlowfishCbc>);
BENCHMARK_CAPTURE(Run, zlib_1, &Compress<kZlib, 1>);
BENCHMARK_CAPTURE(Run, zlib_default, &Compress<kZlib, 0>);
BENCHMARK_CAPTURE(Run, zlib_6, &Compress<kZlib, 6>);
BENCHMARK_CAPTURE(Run, zlib_9, &Compress<kZlib, 9>);
BENCHMARK_CAPTURE(Run, zstd_default, &Compress<kZstd, 0>);
BENCHMARK_CAPTURE(Run, zstd_3, &Compress<kZstd, 3>);
BENCHMARK_CAPTURE(Run, zstd_9, &Compress<kZstd, 9>);

}  // namespace
}  // namespace tracefs
