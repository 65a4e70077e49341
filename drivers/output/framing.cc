#include "drivers/output/framing.h"

#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

class Framing final : public OutputFilter {
 public:
  explicit Framing(std::unique_ptr<OutputDriver> driver)
      : driver_(std::move(driver)) {}

  Status Initialize(const TraceIdentity& identity) override {
    serial_ = identity.serial;
    return driver_->Initialize(identity);
  }

  Status Write(ByteSpan block, const BlockInfo& info) override {
    std::array<std::byte, format::kFrameHeaderBytes> header;
    format::EncodeFrameHeader(
        header, {.sequence = info.sequence, .serial = serial_}, block);
    return driver_->Write(header, block, info);
  }

  void Noted() override { driver_->Noted(); }
  Status Flush() override { return driver_->Flush(); }
  Status Release() override { return driver_->Release(); }
  size_t PreferredBlockSize() const override {
    return driver_->PreferredBlockSize();
  }
  std::optional<QueueGauge> Queue() const override { return driver_->Queue(); }

 private:
  const std::unique_ptr<OutputDriver> driver_;
  format::Serial serial_{};
};

}  // namespace

std::unique_ptr<OutputFilter> MakeFraming(
    std::unique_ptr<OutputDriver> driver) {
  return std::make_unique<Framing>(std::move(driver));
}

}  // namespace tracefs
