#include "tests/unit/drivers/output/driven_trace.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/trace_builder.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs {

using test::TraceBuilder;

DrivenTrace::DrivenTrace(size_t blocks, size_t events, const std::string& chain)
    : events_(events) {
  TraceBuilder trace(chain);
  uint64_t number = 0;
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t e = 0; e < events; ++e) {
      Event event;
      event.op = Op::write_;
      event.Set(Field::kTime, TraceBuilder::kMonotonicNs + ++number);
      event.Set(Field::kResult, 7);
      trace.Add(event);
    }
    trace.EndBlock();
  }
  trace.Finish();
  const std::string& bytes = trace.bytes();
  const std::vector<size_t>& offsets = trace.frame_offsets();
  preamble_ = bytes.substr(0, offsets[0]);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const size_t end = i + 1 < offsets.size() ? offsets[i + 1] : bytes.size();
    frames_.push_back(bytes.substr(offsets[i], end - offsets[i]));
  }
}

TraceIdentity DrivenTrace::Identity(BlockLost lost) const {
  TraceIdentity identity;
  identity.tracer_id = 1;
  const auto preamble = format::DecodePreamble(AsBytes(preamble_));
  EXPECT_TRUE(preamble.ok());
  identity.serial = preamble->serial;
  identity.preamble = preamble_;
  identity.lost = std::move(lost);
  return identity;
}

Status DrivenTrace::Write(OutputDriver& driver, size_t block,
                          uint32_t source) const {
  const ByteSpan frame = AsBytes(frames_[block]);
  const bool last = block + 1 == frames_.size();
  return driver.Write(frame.first(format::kFrameHeaderBytes),
                      frame.subspan(format::kFrameHeaderBytes),
                      {.sequence = block,
                       .events = block == 0 || last ? 0 : events_,
                       .last = last,
                       .source = source});
}

void DrivenTrace::WriteAll(OutputDriver& driver) const {
  ASSERT_TRUE(driver.Initialize(Identity()).ok());
  for (size_t i = 0; i < size(); ++i) {
    const Status status = Write(driver, i);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_TRUE(driver.Flush().ok());
  const Status released = driver.Release();
  EXPECT_TRUE(released.ok()) << released.message();
}

std::string DrivenTrace::Bytes() const {
  std::string bytes = preamble_;
  for (const std::string& frame : frames_) bytes += frame;
  return bytes;
}

namespace {

ReadBack Read(std::unique_ptr<format::ByteSource> source) {
  ReadBack back;
  format::TraceReaderOptions options;
  options.report = [&back](const format::Report& report) {
    back.reports += report.Text() + "\n";
  };
  format::TraceMerger merger;
  merger.Add(std::make_unique<format::TraceReader>(std::move(source),
                                                   std::move(options)));
  format::Record record;
  while (merger.Next(&record) == format::ReadStep::kItem) {
    back.numbers.push_back(record.event.Get(Field::kTime) -
                           TraceBuilder::kMonotonicNs);
  }
  if (!merger.status(0).ok()) back.error = merger.status(0).message();
  back.stats = merger.reader(0).stats();
  return back;
}

}  // namespace

ReadBack ReadFiles(const std::vector<std::string>& paths) {
  if (paths.size() == 1) {
    auto source = format::FdSource::Open(paths[0], /*follow=*/false);
    if (!source.ok()) return {.error = source.status().message()};
    return Read(*std::move(source));
  }
  return Read(std::make_unique<format::FileChain>(paths, /*follow=*/false));
}

ReadBack ReadBytes(const std::string& bytes) {
  return Read(std::make_unique<format::MemorySource>(AsBytes(bytes)));
}

std::vector<uint64_t> Range(uint64_t first, uint64_t last) {
  std::vector<uint64_t> numbers;
  for (uint64_t n = first; n <= last; ++n) numbers.push_back(n);
  return numbers;
}

}  // namespace tracefs
