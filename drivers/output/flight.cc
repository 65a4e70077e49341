#include "drivers/output/flight.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "drivers/output/trace_file.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/ownership.h"

namespace tracefs {
namespace {

constexpr size_t kDefaultBlockBytes = 256 * 1024;
// A ring of few, large blocks would forget much at a time.
constexpr size_t kBlocksInRing = 8;
constexpr std::string_view kMap = "flight map";

}  // namespace

class FlightDriver final : public OutputDriver {
 public:
  explicit FlightDriver(std::shared_ptr<FlightRecorder> recorder)
      : recorder_(std::move(recorder)) {}

  Status Initialize(const TraceIdentity& identity) override {
    serial_ = identity.serial;
    preamble_ = identity.preamble;
    hides_times_ = identity.hides_times;
    return Status::Ok();
  }
  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    if (info.sequence != 0) {
      return recorder_->Write(frame_header, payload, info);
    }
    // Block 0 describes the trace; it has a place of its own.
    return recorder_->Begin(serial_,
                            preamble_ + std::string(AsText(frame_header)) +
                                std::string(AsText(payload)),
                            hides_times_);
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override {
    const FlightOptions& options = recorder_->options_;
    const size_t most = static_cast<size_t>(options.ring_bytes) / kBlocksInRing;
    return std::min(
        options.buffer_bytes != 0 ? options.buffer_bytes : kDefaultBlockBytes,
        most);
  }
  std::optional<QueueGauge> Queue() const override {
    return recorder_->Gauge();
  }

 private:
  const std::shared_ptr<FlightRecorder> recorder_;
  format::Serial serial_{};
  bool hides_times_ = false;
  std::string preamble_;
};

Result<std::shared_ptr<FlightRecorder>> FlightRecorder::Create(
    FlightOptions options, OutputFolder folder, UniqueFd map,
    std::function<void()> unused) {
  constexpr uint64_t kPage = 4096;
  options.ring_bytes = (options.ring_bytes + kPage - 1) / kPage * kPage;
  if (options.rings * options.ring_bytes > format::kMaxFlightBytes) {
    return Status::Invalid(
        "flight: rings times size is more than 4 GiB; make one of them "
        "smaller");
  }
  folder.Enclose();
  std::shared_ptr<FlightRecorder> recorder(
      new FlightRecorder(std::move(options), std::move(folder)));
  recorder->unused_ = std::move(unused);
  if (Status s = recorder->MapMemory(std::move(map)); !s.ok()) return s;
  return recorder;
}

FlightRecorder::~FlightRecorder() {
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
  const bool stays =
      options_.stay != nullptr ? options_.stay->load() : !start_.empty();
  if (!stays && unused_) unused_();
}

Status FlightRecorder::MapMemory(UniqueFd map) {
  map_ = std::move(map);
  const size_t rings_bytes =
      static_cast<size_t>(options_.rings * options_.ring_bytes);
  memory_bytes_ = format::kFlightHeadBytes + rings_bytes;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (map_) {
    flags = MAP_SHARED;
    struct stat st;
    if (::fstat(map_.get(), &st) != 0 || !S_ISREG(st.st_mode) ||
        st.st_size != 0 ||
        (::fcntl(map_.get(), F_GETFL) & O_ACCMODE) != O_RDWR) {
      return Status::Invalid(
          "flight map: not a new file, open for reading and writing");
    }
    if (Status s = CheckOwnership(map_.get(), {.one_name = true}, "flight map");
        !s.ok()) {
      return s;
    }
    // All of it now: a page without a block on the disk would be a SIGBUS.
    int rc;
    do {
      rc = ::fallocate(map_.get(), 0, 0, static_cast<off_t>(memory_bytes_));
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
      return Status::System(
          errno, "flight map of " + std::to_string(memory_bytes_) +
                     " bytes (needs a file system that can reserve space)");
    }
    // First the magic: a daemon killed from here on leaves a map.
    const std::string head = format::EncodeFlightMapHead(
        {.rings = options_.rings, .ring_bytes = options_.ring_bytes});
    if (Status s = WriteAllAt(map_.get(), AsBytes(head), 0, kMap); !s.ok()) {
      return s;
    }
  }
  void* const memory = ::mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                              flags, map_.get(), 0);
  if (memory == MAP_FAILED) {
    return Status::System(errno, "memory of the flight recorder");
  }
  memory_ = static_cast<std::byte*>(memory);
  for (uint32_t i = 0; i < options_.rings; ++i) {
    rings_.push_back(std::make_unique<Ring>(std::span<std::byte>(
        memory_ + format::kFlightHeadBytes + i * options_.ring_bytes,
        static_cast<size_t>(options_.ring_bytes))));
  }
  return Status::Ok();
}

std::unique_ptr<OutputDriver> FlightRecorder::MakeDriver(
    const std::shared_ptr<FlightRecorder>& self) {
  return std::make_unique<FlightDriver>(self);
}

Status FlightRecorder::Begin(const format::Serial& serial, std::string start,
                             bool hides_times) {
  if (map_) {
    if (Status s = WriteAllAt(map_.get(), AsBytes(start), memory_bytes_, kMap);
        !s.ok()) {
      return s;
    }
  }
  std::lock_guard lock(mu_);
  serial_ = serial;
  start_ = std::move(start);
  hides_times_ = hides_times;
  return Status::Ok();
}

Status FlightRecorder::Write(ByteSpan frame_header, ByteSpan payload,
                             const BlockInfo& info) {
  Ring& ring = *rings_[info.source % rings_.size()];
  std::lock_guard lock(ring.mu);
  if (ring.writer.Write(frame_header, payload, info.events)) {
    return Status::Ok();
  }
  return Status::System(EMSGSIZE,
                        "a block larger than a ring of the flight recorder");
}

QueueGauge FlightRecorder::Gauge() {
  QueueGauge gauge;
  gauge.limit_bytes = options_.rings * options_.ring_bytes;
  for (const std::unique_ptr<Ring>& ring : rings_) {
    std::lock_guard lock(ring->mu);
    gauge.blocks += ring->writer.kept_blocks();
    gauge.bytes += ring->writer.used();
    gauge.overwritten += ring->writer.overwritten_events();
  }
  return gauge;
}

Result<std::string> FlightRecorder::Snapshot(std::string_view reason) {
  std::lock_guard lock(mu_);
  if (start_.empty()) {
    return Status::Invalid("the flight recorder has not begun");
  }
  std::vector<std::vector<std::byte>> copies;
  for (const std::unique_ptr<Ring>& ring : rings_) {
    std::lock_guard ring_lock(ring->mu);
    const size_t used = ring->writer.used();
    if (used == 0) continue;
    const ByteSpan memory = ring->writer.memory().first(used);
    copies.emplace_back(memory.begin(), memory.end());
  }
  const std::vector<ByteSpan> rings(copies.begin(), copies.end());
  const std::string trace =
      format::MakeSnapshot(start_, serial_, rings,
                           {.number = taken_ + 1,
                            .real_ns = hides_times_ ? 0 : RealNs(),
                            .reason = std::string(reason)});
  OutputFileId id;
  std::string name;
  Result<UniqueFd> fd = Status();
  // A number that is taken belongs to an earlier recorder.
  for (int attempt = 0; attempt < 100000; ++attempt) {
    name = folder_.Numbered(next_number_++);
    fd = folder_.Make(name, O_WRONLY, &id);
    if (fd.ok() || fd.status().error() != EEXIST) break;
  }
  if (!fd.ok()) return fd.status().Prefixed("snapshot");
  const std::string path = folder_.PathOf(name);
  TraceFile file(*std::move(fd), "snapshot '" + path + "'");
  Status status = file.Append({AsBytes(trace)});
  const Status closed = file.Close(/*durable=*/true);
  if (status.ok()) status = closed;
  if (!status.ok()) {
    folder_.Remove(name, id);
    return status;
  }
  ++taken_;
  written_.emplace_back(name, id);
  while (options_.keep != 0 && written_.size() > options_.keep) {
    folder_.Remove(written_.front().first, written_.front().second);
    written_.pop_front();
  }
  return path;
}

}  // namespace tracefs
