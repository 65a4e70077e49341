#include "tracefs/pipeline/stage_meter.h"

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

class StageMeter final : public OutputFilter {
 public:
  StageMeter(StageProbe& probe, std::unique_ptr<OutputFilter> next)
      : counters_(probe.counters), next_(std::move(next)) {
    probe.stage = next_.get();
  }

  Status Initialize(const TraceIdentity& identity) override {
    return next_->Initialize(identity);
  }
  Status Write(ByteSpan block, const BlockInfo& info) override {
    const uint64_t begin = MonotonicNs();
    Status status = next_->Write(block, info);
    counters_.ns.Add(MonotonicNs() - begin);
    counters_.blocks.Add(1);
    counters_.bytes.Add(block.size());
    if (!status.ok()) counters_.refused.Add(1);
    return status;
  }
  void Noted() override { next_->Noted(); }
  Status Flush() override { return next_->Flush(); }
  Status Release() override { return next_->Release(); }
  size_t PreferredBlockSize() const override {
    return next_->PreferredBlockSize();
  }

 private:
  StageCounters& counters_;
  const std::unique_ptr<OutputFilter> next_;
};

}  // namespace

std::unique_ptr<OutputFilter> Metered(StageProbe& probe,
                                      std::unique_ptr<OutputFilter> next) {
  return std::make_unique<StageMeter>(probe, std::move(next));
}

}  // namespace tracefs
