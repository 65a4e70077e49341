// What the tests of the reading library share: traces, and readers of memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/reader/tracefs_reader.h"

namespace tracefs::test {

inline constexpr uint64_t kStepNs = 1'000'000;

// `blocks` blocks of ten operations each, a millisecond apart: an open and
// reads by processes "cc1" of users 1000 and 1001, of /src/a.c and /src/b.h.
inline TraceBuilder Sample(size_t blocks = 1, std::string chain = "file") {
  TraceBuilder trace(std::move(chain));
  for (size_t b = 0; b < blocks; ++b) {
    CallerInfo caller;
    caller.pid = 50;
    memcpy(caller.comm_bytes.data(), "cc1", 3);
    caller.comm_size = 3;
    const uint32_t process = trace.DefineProcess(caller);
    const uint32_t src = trace.DefinePath(trace.DefinePath(0, ""), "src");
    const uint32_t files[] = {trace.DefinePath(src, "a.c"),
                              trace.DefinePath(src, "b.h")};
    for (uint64_t i = 0; i < 10; ++i) {
      Event event;
      event.op = i % 5 == 0 ? Op::open_ : Op::read_;
      event.Set(Field::kTime,
                TraceBuilder::kMonotonicNs + (10 * b + i) * kStepNs);
      event.Set(Field::kLatency, 1000 + i);
      event.Set(Field::kUid, 1000 + i % 2);
      event.SetResult(static_cast<int64_t>(10 * i), i == 9 ? EIO : 0);
      trace.Add(event, {.path = files[i % 2], .process = process});
    }
    trace.EndBlock();
  }
  return trace;
}

inline std::string SampleBytes(size_t blocks = 1) {
  TraceBuilder trace = Sample(blocks);
  trace.Finish();
  return trace.bytes();
}

inline uint64_t TimeOf(uint64_t event) {
  return TraceBuilder::kRealNs + event * kStepNs;
}

struct OptionsDeleter {
  void operator()(tracefs_options* o) const { tracefs_options_free(o); }
};
struct ReaderDeleter {
  void operator()(tracefs_reader* r) const { tracefs_reader_close(r); }
};
using OptionsPtr = std::unique_ptr<tracefs_options, OptionsDeleter>;
using ReaderPtr = std::unique_ptr<tracefs_reader, ReaderDeleter>;

// What was reported: kinds in order, and how often each.
struct Reports {
  std::vector<int> kinds;
  std::vector<std::string> texts;
  bool with_texts = false;

  static void Take(void* context, const tracefs_report* report) {
    auto* const self = static_cast<Reports*>(context);
    self->kinds.push_back(tracefs_report_kind(report));
    if (self->with_texts) {
      self->texts.emplace_back(tracefs_report_text(report));
    }
  }
};

// A reader of memory, which outlives it.
class MemoryReader {
 public:
  explicit MemoryReader(const std::string& bytes) : options_(Make(bytes)) {}

  tracefs_options* options() { return options_.get(); }
  Reports& reports() { return reports_; }
  MemoryReader& Reporting() {
    tracefs_options_on_report(options(), &Reports::Take, &reports_);
    return *this;
  }
  tracefs_reader* get() {
    if (reader_ == nullptr) reader_.reset(tracefs_reader_open(options()));
    return reader_.get();
  }
  // Reads all events; how many.
  uint64_t Drain() {
    const tracefs_event* event;
    uint64_t n = 0;
    while ((code_ = tracefs_reader_next(get(), &event)) == TRACEFS_ITEM) ++n;
    return n;
  }
  int code() const { return code_; }  // of the last call
  std::string message() { return tracefs_reader_message(get()); }
  uint64_t count(int kind) { return tracefs_reader_count(get(), kind); }

 private:
  static OptionsPtr Make(const std::string& bytes) {
    OptionsPtr options(tracefs_options_new());
    tracefs_options_add_memory(options.get(), bytes.data(), bytes.size(),
                               "input");
    return options;
  }

  Reports reports_;
  OptionsPtr options_;
  ReaderPtr reader_;
  int code_ = 0;
};

inline std::string Text(const tracefs_event* event, uint32_t field) {
  const char* text;
  size_t size;
  if (!tracefs_event_text(event, field, &text, &size)) return "-";
  return {text, size};
}
inline int64_t Number(const tracefs_event* event, uint32_t field) {
  uint64_t value;
  return tracefs_event_number(event, field, &value)
             ? static_cast<int64_t>(value)
             : -999;
}

// Columns of the whole stream: text, or "NULL", a row; released at once.
struct Table {
  std::vector<std::string> names;
  std::vector<std::string> formats;
  std::vector<std::vector<std::string>> rows;
  size_t batches = 0;
  int error = 0;
};
Table ReadTable(tracefs_reader* reader, const char* columns);

}  // namespace tracefs::test
