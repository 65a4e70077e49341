// WatchedSource: an input that another thread may watch, and end.
#pragma once

#include <errno.h>

#include <atomic>
#include <memory>
#include <utility>

#include "tracefs/format/byte_source.h"

namespace tracefs::reader {

// What another thread sees of the inputs of a reader.
struct Watch {
  std::atomic<bool> cancelled = false;
  std::atomic<uint64_t> done_bytes = 0;
};

class WatchedSource final : public format::ByteSource {
 public:
  // `watch` outlives it.
  WatchedSource(std::unique_ptr<ByteSource> source, Watch* watch)
      : source_(std::move(source)), watch_(watch) {}

  Result<size_t> Read(std::span<std::byte> out) override {
    if (watch_->cancelled.load(std::memory_order_relaxed)) return Cancelled();
    Result<size_t> n = source_->Read(out);
    if (n.ok()) {
      watch_->done_bytes.fetch_add(*n, std::memory_order_relaxed);
      at_ += *n;
    }
    return n;
  }
  bool MayGrow() override { return source_->MayGrow(); }
  bool WriterLives() override { return source_->WriterLives(); }
  void Marked(format::FrameKind kind, const format::Serial& serial,
              const format::PartMark& mark) override {
    source_->Marked(kind, serial, mark);
  }
  bool AwaitsPart() override { return source_->AwaitsPart(); }
  std::optional<uint64_t> Size() override { return source_->Size(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) override {
    if (watch_->cancelled.load(std::memory_order_relaxed)) return Cancelled();
    return source_->ReadAt(offset, out);
  }
  Status Seek(uint64_t offset) override {
    // What is passed over is done, too.
    if (offset > at_) {
      watch_->done_bytes.fetch_add(offset - at_, std::memory_order_relaxed);
    }
    at_ = offset;
    return source_->Seek(offset);
  }

 private:
  static Status Cancelled() {
    return Status::System(ECANCELED, "reading was cancelled");
  }

  const std::unique_ptr<ByteSource> source_;
  Watch* const watch_;
  uint64_t at_ = 0;
};

}  // namespace tracefs::reader
