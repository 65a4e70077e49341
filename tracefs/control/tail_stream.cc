#include "tracefs/control/tail_stream.h"

namespace tracefs {
namespace {

class TailStream final : public ControlStream {
 public:
  TailStream(std::shared_ptr<BlockQueue> queue, std::function<void()> on_end)
      : queue_(std::move(queue)), on_end_(std::move(on_end)) {}
  ~TailStream() override {
    queue_->SetWake(nullptr);
    on_end_();
  }

  std::string Take(size_t max) override { return queue_->Take(max); }
  bool ended() const override { return queue_->ended(); }
  void OnMore(std::function<void()> wake) override {
    queue_->SetWake(std::move(wake));
  }

 private:
  const std::shared_ptr<BlockQueue> queue_;
  const std::function<void()> on_end_;
};

}  // namespace

std::shared_ptr<ControlStream> MakeTailStream(std::shared_ptr<BlockQueue> queue,
                                              std::function<void()> on_end) {
  return std::make_shared<TailStream>(std::move(queue), std::move(on_end));
}

}  // namespace tracefs
