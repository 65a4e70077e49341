// The flight driver: a recorder in memory that keeps the newest blocks and
// writes them out when asked.
//
// Each recording thread has a ring of its own, so that one busy thread does not
// displace what a quiet one has seen; what was displaced is counted exactly.
// With a map file the rings are shared memory that outlives a killed daemon.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/output/output_folder.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/flight_map.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct FlightOptions {
  std::string path = {};  // snapshots are PATH.000001, PATH.000002, …
  size_t buffer_bytes = 0;
  uint64_t ring_bytes = uint64_t{1} << 20;
  uint32_t rings = 32;
  uint64_t keep = 16;  // snapshots; older ones of this recorder are removed
  OutputsStay stay = nullptr;
};

// The rings and their snapshots. Shared by the driver and whoever may ask for a
// snapshot.
class FlightRecorder {
 public:
  // `map`: a new file, open for reading and writing, or none.
  // kInvalid if it is not that. `unused` is called at the end of a recorder
  // that never began, to take back what was made for it; may be empty.
  static Result<std::shared_ptr<FlightRecorder>> Create(
      FlightOptions options, OutputFolder folder, UniqueFd map,
      std::function<void()> unused = nullptr);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Writes what the rings hold to a new file and returns its path. Recording
  // goes on meanwhile: a ring is locked only while it is copied. Threads: any.
  Result<std::string> Snapshot(std::string_view reason);

  std::unique_ptr<OutputDriver> MakeDriver(
      const std::shared_ptr<FlightRecorder>& self);

 private:
  friend class FlightDriver;
  struct Ring {
    explicit Ring(std::span<std::byte> memory) : writer(memory) {}
    std::mutex mu;
    format::FlightRingWriter writer;  // guarded by mu
  };

  FlightRecorder(FlightOptions options, OutputFolder folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}
  Status MapMemory(UniqueFd map);
  Status Begin(const format::Serial& serial, std::string start,
               bool hides_times);
  Status Write(ByteSpan frame_header, ByteSpan payload, const BlockInfo& info);
  QueueGauge Gauge();

  const FlightOptions options_;
  const OutputFolder folder_;
  UniqueFd map_;
  std::function<void()> unused_;
  std::byte* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  std::vector<std::unique_ptr<Ring>> rings_;  // constant once made

  std::mutex mu_;      // guards all below; before a ring's
  std::string start_;  // preamble and block 0; empty before the trace begins
  format::Serial serial_{};
  bool hides_times_ = false;  // no time is written beside the blocks
  uint64_t taken_ = 0;
  uint64_t next_number_ = 1;
  std::deque<std::pair<std::string, OutputFileId>> written_;
};

}  // namespace tracefs
