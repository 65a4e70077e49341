// PayloadFilter: what the filters that change bytes have in common. Each block
// becomes one payload and goes on at once, so that every block stands alone.
#pragma once

#include <memory>

#include "filters/output/scratch.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// The smaller of two block sizes, 0 meaning "any".
size_t SmallerBlock(size_t a, size_t b);

class PayloadFilter : public OutputFilter {
 public:
  // `block_bytes`: the filter's own `block` option, 0 if it has none.
  PayloadFilter(size_t block_bytes, std::unique_ptr<OutputFilter> next)
      : block_bytes_(block_bytes), next_(std::move(next)) {}

  Status Initialize(const TraceIdentity& identity) final;
  Status Write(ByteSpan block, const BlockInfo& info) final;
  void Noted() final {
    OnNoted();
    next_->Noted();
  }
  Status Flush() final { return next_->Flush(); }
  Status Release() final;
  size_t PreferredBlockSize() const final;

 protected:
  // The four steps of a filter. Begin before, End after everything else.
  virtual Status Begin(const TraceIdentity&) { return Status::Ok(); }
  // Whether it changes times: TraceIdentity::hides_times for who comes after.
  virtual bool HidesTimes() const { return false; }
  // Makes the payload, in the filter's own memory; it is used until the next
  // call. The same block may come again after a stage behind has refused it.
  virtual Result<ByteSpan> Encode(ByteSpan block, const BlockInfo& info) = 0;
  // The payload made last was taken by the next stage.
  virtual void Accepted(const BlockInfo&) {}
  virtual void OnNoted() {}
  virtual void End() {}

 private:
  const size_t block_bytes_;
  const std::unique_ptr<OutputFilter> next_;
};

}  // namespace tracefs
