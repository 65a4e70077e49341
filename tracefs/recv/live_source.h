// LiveSource: one trace on its way to the printer, frame by frame.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tracefs/export/exporter.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs {

// Used by one thread.
class LiveSource {
 public:
  // `max_open_bytes`: of blocks whose operations wait for older ones.
  LiveSource(std::string name, format::PayloadDecoderFactory decoder,
             size_t max_open_bytes);
  LiveSource(const LiveSource&) = delete;
  LiveSource& operator=(const LiveSource&) = delete;

  const std::string& name() const { return name_; }

  // The preamble, then a frame at a time.
  void Add(ByteSpan bytes);
  // Prints what is certain to be the oldest; with `hurry` all there is.
  void Print(Exporter& exporter, bool hurry);
  // Nothing more comes: prints the rest.
  void End(Exporter& exporter);

  // Not ok: it cannot be read any further.
  const Status& status() const { return merger_.status(0); }
  // Since when operations wait for older ones; 0: none does.
  uint64_t waiting_since_ns() const { return waiting_since_ns_; }
  // Bytes that it holds between two calls.
  size_t footprint() const;

 private:
  class Feed;

  const std::string name_;
  Feed* feed_;  // owned by the merger's reader
  format::TraceMerger merger_;
  Exporter* exporter_ = nullptr;  // while it prints
  uint64_t waiting_since_ns_ = 0;
  // What the trace says of itself, and how much that was when it was counted.
  mutable size_t described_bytes_ = 0;
  mutable size_t described_items_ = SIZE_MAX;
};

}  // namespace tracefs
