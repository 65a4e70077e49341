#include "drivers/output/fifo.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "tracefs/base/ownership.h"
#include "tracefs/format/marks.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// How often a reader is looked for while one is waited for.
constexpr auto kLook = std::chrono::milliseconds(5);
// At the end even a driver that never waits gives its reader this long.
constexpr auto kFarewell = std::chrono::seconds(1);
// What a pipe may hold without root's privileges; fewer switches than 64 KiB.
constexpr int kPipeBytes = 1 << 20;

Status CheckFifo(int fd, const std::string& path) {
  return CheckOwnership(fd, {.type = S_IFIFO, .one_name = true},
                        "FIFO '" + path + "'");
}

class Fifo final : public OutputDriver {
 public:
  Fifo(FifoOptions options, OutputFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  Status Initialize(const TraceIdentity& identity) override {
    preamble_ = identity.preamble;
    serial_ = identity.serial;
    lost_ = identity.lost;
    return Status::Ok();
  }

  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    if (info.sequence == 0) {
      // Kept for all readers; one that is there already gets it now.
      head_ = std::string(AsText(frame_header)) + std::string(AsText(payload));
      if (Connect(/*next_block=*/1)) Push(Clock::now());
      return Status::Ok();
    }
    const auto deadline = Clock::now() + Patience();
    while (!Connect(info.sequence)) {
      if (Clock::now() >= deadline) return Drop(info, "nobody reads the FIFO");
      std::this_thread::sleep_for(kLook);
    }
    if (!Push(deadline)) {
      return Drop(info, fd_ ? "the reader of the FIFO is too slow"
                            : "the reader of the FIFO went away");
    }
    waited_in_vain_ = false;
    pending_ = std::string(AsText(frame_header)) + std::string(AsText(payload));
    pushed_ = 0;
    pending_info_ = info;
    Push(Clock::now());
    return Status::Ok();
  }

  Status Flush() override {
    if (fd_) Push(Clock::now() + Patience());
    return Status::Ok();
  }

  Status Release() override {
    if (fd_ && !Push(Clock::now() +
                     std::max<nanoseconds>(options_.deadline, kFarewell))) {
      Disconnect();
    }
    fd_.Reset();
    return Status::Ok();
  }

  size_t PreferredBlockSize() const override { return options_.buffer_bytes; }

 private:
  nanoseconds Patience() const {
    return waited_in_vain_ ? nanoseconds(0) : options_.deadline;
  }

  Status Drop(const BlockInfo& info, std::string_view why) {
    waited_in_vain_ = true;
    // The totals at the end are for readers; where there is none, nothing is
    // lost with them.
    if (info.last) return Status::Ok();
    return DroppedStatus(LossReason::kQueueFull, why);
  }

  // True if there is a reader. A new one gets what a trace begins with.
  bool Connect(uint64_t next_block) {
    if (fd_) return true;
    // Without a reader this fails (ENXIO) instead of waiting for one.
    fd_ = folder_.Find(folder_.base(), O_WRONLY | O_NONBLOCK);
    if (!fd_) return false;
    // Each time: somebody may have put another one in its place.
    if (Status s = CheckFifo(fd_.get(), options_.path); !s.ok()) {
      fd_.Reset();
      if (!std::exchange(reported_, true)) {
        std::fprintf(stderr, "tracefs: %s\n", s.message().c_str());
      }
      return false;
    }
    static_cast<void>(::fcntl(fd_.get(), F_SETPIPE_SZ, kPipeBytes));
    pending_ = preamble_;
    if (next_block > 1 && !preamble_.empty()) {  // a trace, not a feed
      pending_ += format::EncodePartMark(
          format::FrameKind::kPart, serial_,
          {.part = std::max<uint64_t>(readers_, 1), .block = next_block});
    }
    pending_ += head_;
    pushed_ = 0;
    pending_info_.reset();
    ++readers_;
    return true;
  }

  void Disconnect() {
    fd_.Reset();
    pending_.clear();
    // It was taken, and will never be whole.
    if (const auto info = std::exchange(pending_info_, std::nullopt);
        info && lost_) {
      lost_(*info, DroppedStatus(LossReason::kQueueFull,
                                 "the reader of the FIFO went away"));
    }
  }

  // Writes what is pending, until `deadline`. True if nothing is left.
  bool Push(Clock::time_point deadline) {
    while (pushed_ < pending_.size()) {
      const ssize_t n = ::write(fd_.get(), pending_.data() + pushed_,
                                pending_.size() - pushed_);
      if (n > 0) {
        pushed_ += static_cast<size_t>(n);
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN) {
        Disconnect();
        return false;
      }
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return false;
      pollfd room = {.fd = fd_.get(), .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, static_cast<int>(left.count()));
    }
    pending_.clear();
    pending_info_.reset();
    return true;
  }

  const FifoOptions options_;
  const OutputFolder folder_;
  std::string preamble_;
  format::Serial serial_{};
  std::string head_;  // the frame of block 0
  BlockLost lost_;

  UniqueFd fd_;  // open while there is a reader
  uint64_t readers_ = 0;
  // Being written: what a reader begins with, or one block.
  std::string pending_;
  size_t pushed_ = 0;
  std::optional<BlockInfo> pending_info_;
  bool waited_in_vain_ = false;
  bool reported_ = false;  // that it is not ours
};

std::string What(const std::string& path) { return "FIFO '" + path + "'"; }

// Whether what is there is one to write to.
Status CheckThere(const std::string& path, const OutputFolder& folder) {
  const UniqueFd there = folder.Find(folder.base(), O_PATH);
  if (!there) return Status::System(errno, What(path));
  return CheckFifo(there.get(), path);
}

}  // namespace

Status FifoDriver::Probe(const std::string& path, const OutputFolder& folder) {
  return folder.Has(folder.base()) ? CheckThere(path, folder)
                                   : folder.CheckWritable();
}

Result<std::unique_ptr<OutputDriver>> FifoDriver::Create(FifoOptions options,
                                                         OutputFolder folder) {
  if (::mkfifoat(folder.fd(), folder.base().c_str(), 0600) != 0 &&
      errno != EEXIST) {
    return Status::System(errno, What(options.path));
  }
  if (Status s = CheckThere(options.path, folder); !s.ok()) return s;
  folder.Enclose();
  return std::unique_ptr<OutputDriver>(
      std::make_unique<Fifo>(std::move(options), std::move(folder)));
}

}  // namespace tracefs
