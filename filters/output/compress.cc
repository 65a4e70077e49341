#include "filters/output/compress.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>

#include "filters/output/columns.h"
#include "filters/output/payload_filter.h"

namespace tracefs {
namespace {

// Both favour speed: a tracer competes with what it traces.
constexpr int kDefaultZlibLevel = 3;
constexpr int kDefaultZstdLevel = 1;
// For blocks of at most a quarter of what they may have, which end because time
// has passed: there are a few a second, so that effort costs next to nothing,
// and they have less to be compressed by.
constexpr int kDefaultZstdLevelOfShort = 9;
constexpr size_t kUsualBlockBytes = 256 * 1024;

// One algorithm with its working memory. Compresses `in` into `out`; 0 if the
// result does not fit.
class Compressor {
 public:
  virtual ~Compressor() = default;
  // `is_short`: a block of few bytes for its tracer.
  virtual size_t Compress(ByteSpan in, bool is_short,
                          std::span<std::byte> out) = 0;
};

class ZlibCompressor final : public Compressor {
 public:
  explicit ZlibCompressor(int level) {
    ready_ = ::deflateInit(&stream_, level) == Z_OK;
  }
  ZlibCompressor(const ZlibCompressor&) = delete;
  ZlibCompressor& operator=(const ZlibCompressor&) = delete;
  ~ZlibCompressor() override {
    if (ready_) ::deflateEnd(&stream_);
  }

  size_t Compress(ByteSpan in, bool, std::span<std::byte> out) override {
    if (!ready_ || ::deflateReset(&stream_) != Z_OK) return 0;
    stream_.next_in = const_cast<Bytef*>(  // zlib does not write to it
        reinterpret_cast<const Bytef*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    if (::deflate(&stream_, Z_FINISH) != Z_STREAM_END) return 0;
    return out.size() - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool ready_;
};

class ZstdCompressor final : public Compressor {
 public:
  ZstdCompressor(int level, int level_of_short)
      : context_(::ZSTD_createCCtx(), &::ZSTD_freeCCtx),
        level_(level),
        level_of_short_(level_of_short) {}

  size_t Compress(ByteSpan in, bool is_short,
                  std::span<std::byte> out) override {
    if (context_ == nullptr) return 0;
    const size_t n =
        ::ZSTD_compressCCtx(context_.get(), out.data(), out.size(), in.data(),
                            in.size(), is_short ? level_of_short_ : level_);
    return ::ZSTD_isError(n) != 0 ? 0 : n;
  }

 private:
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context_;
  const int level_;
  const int level_of_short_;
};

class CompressFilter final : public PayloadFilter {
 public:
  CompressFilter(const CompressOptions& options,
                 std::unique_ptr<OutputFilter> next)
      : PayloadFilter(options.block_bytes, std::move(next)),
        options_(options) {}

 private:
  Status Begin(const TraceIdentity&) override {
    const int level = options_.level;
    if (options_.algorithm == CompressAlgorithm::kZlib) {
      compressor_ = std::make_unique<ZlibCompressor>(
          level == 0 ? kDefaultZlibLevel : level);
    } else {
      compressor_ = std::make_unique<ZstdCompressor>(
          level == 0 ? kDefaultZstdLevel : level,
          level == 0 ? kDefaultZstdLevelOfShort : level);
    }
    const size_t full = PreferredBlockSize();
    short_bytes_ = (full == 0 ? kUsualBlockBytes : full) / 4;
    return Status::Ok();
  }

  Result<ByteSpan> Encode(ByteSpan block, const BlockInfo&) override {
    if (block.size() > format::kMaxPayloadBytes - kCompressHeadBytes) {
      return Status::Invalid("a block of " + std::to_string(block.size()) +
                             " bytes is too large to compress");
    }
    const ByteSpan sorted = options_.columns ? sorter_.Sort(block) : ByteSpan();
    const bool columns = !sorted.empty();
    const size_t head =
        kCompressHeadBytes + (columns ? kColumnsLengthBytes : 0);
    const std::span<std::byte> payload = memory_.Get(head + block.size());
    std::memset(payload.data(), 0, head);
    StoreLe<uint32_t>(payload.data() + 4, static_cast<uint32_t>(block.size()));
    // What is not smaller is stored.
    size_t size = 0;
    if (block.size() > head) {
      size = compressor_->Compress(
          columns ? sorted : block, block.size() <= short_bytes_,
          payload.subspan(head,
                          block.size() - (head - kCompressHeadBytes) - 1));
    }
    if (size == 0 || block.size() > MaxUncompressedBytes(size)) {
      payload[0] = static_cast<std::byte>(CompressMethod::kStored);
      if (!block.empty()) {
        std::memcpy(payload.data() + kCompressHeadBytes, block.data(),
                    block.size());
      }
      return ByteSpan(payload.first(kCompressHeadBytes + block.size()));
    }
    payload[0] = static_cast<std::byte>(Method(columns));
    if (columns) {
      StoreLe<uint32_t>(payload.data() + kCompressHeadBytes,
                        static_cast<uint32_t>(sorted.size()));
    }
    return ByteSpan(payload.first(head + size));
  }

  CompressMethod Method(bool columns) const {
    if (options_.algorithm == CompressAlgorithm::kZlib) {
      return columns ? CompressMethod::kZlibColumns : CompressMethod::kZlib;
    }
    return columns ? CompressMethod::kZstdColumns : CompressMethod::kZstd;
  }

  void End() override { compressor_.reset(); }

  const CompressOptions options_;
  std::unique_ptr<Compressor> compressor_;
  size_t short_bytes_ = 0;
  ColumnSorter sorter_;
  Scratch memory_;
};

Status Lie() {
  return Status::Corrupt(
      "the compressed data does not make the length that its head promises");
}

class CompressDecoder final : public StageDecoder {
 public:
  CompressDecoder() : zstd_(nullptr, &::ZSTD_freeDCtx) {}
  CompressDecoder(const CompressDecoder&) = delete;
  CompressDecoder& operator=(const CompressDecoder&) = delete;
  ~CompressDecoder() override {
    if (zlib_ready_) ::inflateEnd(&zlib_);
  }

  Status Decode(const BlockId&, ByteSpan payload, DecodeMemory& memory,
                BlockNotes*, ByteSpan* out) override {
    if (payload.size() < kCompressHeadBytes) {
      return Status::Corrupt("too short for the head of compressed data");
    }
    const auto method = static_cast<CompressMethod>(payload[0]);
    const size_t length_untrusted = LoadLe<uint32_t>(payload.data() + 4);
    const ByteSpan body = payload.subspan(kCompressHeadBytes);
    if (length_untrusted > memory.max_bytes() ||
        length_untrusted > MaxUncompressedBytes(body.size())) {
      return Status::Corrupt("compressed data claims to expand to " +
                             std::to_string(length_untrusted) + " bytes from " +
                             std::to_string(body.size()) +
                             ", more than any writer makes");
    }
    if (method == CompressMethod::kStored) {
      if (body.size() != length_untrusted) return Lie();
      *out = body;
      return Status::Ok();
    }
    const std::span<std::byte> block = memory.Get(length_untrusted);
    *out = block;
    switch (method) {
      case CompressMethod::kZlib:
        return Inflate(body, block);
      case CompressMethod::kZstd:
        return Unzstd(body, block);
      case CompressMethod::kZlibColumns:
      case CompressMethod::kZstdColumns:
        return Merge(method, body, memory, block);
      default:
        return Status::Corrupt(
            "compressed with method " +
            std::to_string(static_cast<unsigned>(payload[0])) +
            ", which this reader does not know");
    }
  }

 private:
  Status Merge(CompressMethod method, ByteSpan body, DecodeMemory& memory,
               std::span<std::byte> block) {
    if (body.size() < kColumnsLengthBytes) return Lie();
    const size_t length_untrusted = LoadLe<uint32_t>(body.data());
    // No writer sorts what would grow.
    if (length_untrusted > block.size()) return Lie();
    const std::span<std::byte> columns = memory.GetWork(length_untrusted);
    const ByteSpan compressed = body.subspan(kColumnsLengthBytes);
    const Status status = method == CompressMethod::kZlibColumns
                              ? Inflate(compressed, columns)
                              : Unzstd(compressed, columns);
    return status.ok() ? MergeColumns(columns, block) : status;
  }

  Status Inflate(ByteSpan in, std::span<std::byte> out) {
    if (!zlib_ready_) {
      zlib_ready_ = ::inflateInit(&zlib_) == Z_OK;
      if (!zlib_ready_) return Status::System(ENOMEM, "zlib");
    }
    ::inflateReset(&zlib_);
    std::byte none;  // zlib wants an address even for no bytes
    zlib_.next_in = const_cast<Bytef*>(  // zlib does not write to it
        reinterpret_cast<const Bytef*>(in.data()));
    zlib_.avail_in = static_cast<uInt>(in.size());
    zlib_.next_out = reinterpret_cast<Bytef*>(out.empty() ? &none : out.data());
    zlib_.avail_out = static_cast<uInt>(out.size());
    const int rc = ::inflate(&zlib_, Z_FINISH);
    if (rc != Z_STREAM_END || zlib_.avail_in != 0 || zlib_.avail_out != 0) {
      return Lie();
    }
    return Status::Ok();
  }

  Status Unzstd(ByteSpan in, std::span<std::byte> out) {
    if (zstd_ == nullptr) {
      zstd_.reset(::ZSTD_createDCtx());
      if (zstd_ == nullptr) return Status::System(ENOMEM, "zstd");
    }
    const size_t n = ::ZSTD_decompressDCtx(zstd_.get(), out.data(), out.size(),
                                           in.data(), in.size());
    return ::ZSTD_isError(n) != 0 || n != out.size() ? Lie() : Status::Ok();
  }

  z_stream zlib_{};
  bool zlib_ready_ = false;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> zstd_;
};

}  // namespace

int MaxCompressLevel(CompressAlgorithm algorithm) {
  return algorithm == CompressAlgorithm::kZlib ? 9 : 19;
}

std::unique_ptr<OutputFilter> MakeCompress(const CompressOptions& options,
                                           std::unique_ptr<OutputFilter> next) {
  return std::make_unique<CompressFilter>(options, std::move(next));
}

std::unique_ptr<StageDecoder> MakeCompressDecoder() {
  return std::make_unique<CompressDecoder>();
}

}  // namespace tracefs
