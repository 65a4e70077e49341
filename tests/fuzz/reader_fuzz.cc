// The C interface on any bytes: all ways of reading find the same events, and
// none of them harms. Inputs: fuzzed_trace.h; the corpus is that of trace_fuzz.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzzed_trace.h"
#include "tests/fuzz/structured_trace.h"
#include "tracefs/reader/tracefs_reader.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Report(void* context, const tracefs_report* report) {
  Require(tracefs_report_kind(report) < TRACEFS_REPORT_KINDS);
  *static_cast<size_t*>(context) +=
      std::string(tracefs_report_text(report)).size();
}

class Input {
 public:
  explicit Input(const std::string& trace) : options_(tracefs_options_new()) {
    tracefs_options_add_memory(options_, trace.data(), trace.size(), "input");
    tracefs_options_set(options_, TRACEFS_MEMORY_BYTES, 1 << 16);
    tracefs_options_set(options_, TRACEFS_THREADS, 1);
    tracefs_options_on_report(options_, &Report, &report_bytes_);
  }
  ~Input() {
    tracefs_reader_close(reader_);
    tracefs_options_free(options_);
  }
  tracefs_options* options() { return options_; }
  tracefs_reader* Open() { return reader_ = tracefs_reader_open(options_); }

 private:
  size_t report_bytes_ = 0;
  tracefs_options* const options_;
  tracefs_reader* reader_ = nullptr;
};

uint64_t Events(const std::string& trace, int* end) {
  Input input(trace);
  tracefs_reader* const reader = input.Open();
  const tracefs_event* event;
  uint64_t n = 0;
  volatile uint64_t checksum = 0;  // reads what it is given
  while ((*end = tracefs_reader_next(reader, &event)) == TRACEFS_ITEM) {
    ++n;
    for (uint32_t f = 0; (f = tracefs_field_after(f)) != 0;) {
      const char* text;
      size_t size;
      uint64_t number;
      (void)tracefs_event_number(event, f, &number);
      if (tracefs_event_text(event, f, &text, &size)) {
        if (size != 0)
          checksum = checksum + static_cast<uint8_t>(text[size - 1]);
      }
    }
    tracefs_argument extra;
    for (size_t i = 0; tracefs_event_extra(event, i, &extra) == TRACEFS_ITEM;
         ++i) {
      Require(extra.name != nullptr);
    }
  }
  return n;
}

uint64_t Rows(const std::string& trace, uint64_t file_order, uint64_t threads,
              bool* failed) {
  Input input(trace);
  tracefs_options_set(input.options(), TRACEFS_FILE_ORDER, file_order);
  tracefs_options_set(input.options(), TRACEFS_THREADS, threads);
  tracefs_reader* const reader = input.Open();
  ArrowArrayStream stream;
  *failed = true;
  if (tracefs_reader_columns(reader, "ts,op,path,path_raw,comm,result,errno",
                             &stream) != TRACEFS_ITEM) {
    return 0;
  }
  uint64_t n = 0;
  for (;;) {
    ArrowArray array;
    *failed = stream.get_next(&stream, &array) != 0;
    if (*failed || array.release == nullptr) break;
    n += static_cast<uint64_t>(array.length);
    array.release(&array);
  }
  stream.release(&stream);
  return n;
}

void Messages(const std::string& trace) {
  Input input(trace);
  tracefs_reader* const reader = input.Open();
  tracefs_message message;
  while (tracefs_reader_next_message(reader, &message) == TRACEFS_ITEM) {
    size_t at = 0;
    tracefs_argument argument;
    while (tracefs_reader_next_argument(reader, &at, &argument) ==
           TRACEFS_ITEM) {
      Require(at <= message.size);
    }
  }
}

void Blocks(const std::string& trace) {
  Input input(trace);
  tracefs_reader* const reader = input.Open();
  tracefs_block block;
  size_t bytes = 0;
  while (tracefs_reader_next_block(reader, &block) == TRACEFS_ITEM) {
    bytes += block.size;
  }
  Require(bytes <= trace.size());
}

void Seek(const std::string& trace) {
  Input input(trace);
  tracefs_reader* const reader = input.Open();
  uint64_t first;
  uint64_t last;
  if (tracefs_reader_time_span(reader, &first, &last) != TRACEFS_ITEM) return;
  (void)tracefs_reader_seek_time(reader, first / 2 + last / 2);
  const tracefs_event* event;
  while (tracefs_reader_next(reader, &event) == TRACEFS_ITEM) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string trace =
      tracefs::fuzz::MakeTrace({reinterpret_cast<const char*>(data), size});
  int end;
  const uint64_t events = Events(trace, &end);
  for (const uint64_t file_order : {0, 1}) {
    for (const uint64_t threads : {1, 2}) {
      bool failed;
      const uint64_t rows = Rows(trace, file_order, threads, &failed);
      Require(failed == (end < 0));
      Require(failed || rows == events);
    }
  }
  Messages(trace);
  Blocks(trace);
  Seek(trace);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  return tracefs::fuzz::MutateTrace(data, size, max, seed);
}
