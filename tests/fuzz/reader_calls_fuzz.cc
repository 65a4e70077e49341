// Fuzz target: the C interface called in any order with any arguments that its
// header allows, on hostile traces. The input is a program, one call in two
// bytes, up to a byte 0xFF, and a trace (fuzzed_trace.h).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzzed_trace.h"
#include "tests/fuzz/structured_trace.h"
#include "tracefs/reader/tracefs_reader.h"

namespace {

volatile uint64_t g_read = 0;

void Require(bool condition) {
  if (!condition) std::abort();
}

// All bytes, and what should follow them.
void ReadAll(const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    g_read = g_read + static_cast<uint8_t>(text[i]);
  }
}
void ReadString(const char* text) {
  Require(text != nullptr);
  ReadAll(text, std::strlen(text) + 1);
}

void Report(void*, const tracefs_report* report) {
  Require(tracefs_report_kind(report) < TRACEFS_REPORT_KINDS);
  g_read = g_read + tracefs_report_trace(report) +
           tracefs_report_offset(report) + tracefs_report_number(report) +
           tracefs_report_count(report);
  ReadString(tracefs_report_text(report));
}

constexpr uint64_t kNumbers[] = {0,          1,          2,
                                 7,          255,        65536,
                                 UINT32_MAX, UINT64_MAX, UINT64_MAX / 2,
                                 1ULL << 63, 1ULL << 20, 0x10003};
constexpr const char* kTexts[] = {"",
                                  "op",
                                  "path",
                                  "ts,op,path",
                                  "op = write",
                                  "(((",
                                  "machine",
                                  "a\xff\xfe",
                                  "%s%n",
                                  "extra",
                                  "path ~ \"/**\"",
                                  "cname = sh OR op IN { read write }",
                                  "ts,,op",
                                  "nosuch",
                                  "file:/nonexistent",
                                  "filter"};

uint64_t Number(uint8_t n) { return kNumbers[n % std::size(kNumbers)]; }
const char* Text(uint8_t n) { return kTexts[n % std::size(kTexts)]; }

class Caller {
 public:
  explicit Caller(std::string_view trace)
      : trace_(trace), options_(tracefs_options_new()) {
    Require(options_ != nullptr);
    tracefs_options_on_report(options_, &Report, nullptr);
    tracefs_options_set(options_, TRACEFS_MEMORY_BYTES, 1 << 16);
    tracefs_options_set(options_, TRACEFS_THREADS, 1);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    End();
    tracefs_options_free(options_);
  }

  void Call(uint8_t what, uint8_t with) {
    if (what % 32 < 10) {
      CallOptions(what % 32, with);
    } else {
      CallReader(what % 32, with);
    }
  }

 private:
  void End() {
    if (stream_.release != nullptr) stream_.release(&stream_);
    stream_.release = nullptr;
    if (reader_ != nullptr) tracefs_reader_close(reader_);
    reader_ = nullptr;
    event_ = nullptr;
  }

  void CallOptions(int what, uint8_t with) {
    switch (what) {
      case 0:
        if (inputs_++ < 4) {
          tracefs_options_add_memory(options_, trace_.data(), trace_.size(),
                                     Text(with));
        }
        break;
      case 1:
        tracefs_options_set(options_, static_cast<int>(with) - 3,
                            // Threads and memory without bound are asked for
                            // by the caller himself.
                            with == 5 || with == 6 ? with : Number(with / 8));
        tracefs_options_set(options_, TRACEFS_THREADS, 1 + with % 2);
        break;
      case 2:
        tracefs_options_set_filter(options_, Text(with));
        break;
      case 3:
        tracefs_options_set_range(options_, Number(with), Number(with / 12));
        break;
      case 4:
        tracefs_options_set_strict(options_, Number(with));
        break;
      case 5:
        tracefs_options_set_lenient(options_, Number(with));
        break;
      case 6:
        tracefs_options_add_key(options_, Text(with));
        break;
      case 7:
        tracefs_options_add_fd(options_, -static_cast<int>(with), Text(with));
        break;
      case 8:
        ReadString(tracefs_options_message(options_));
        break;
      default:
        End();
        reader_ = tracefs_reader_open(options_);
        Require(reader_ != nullptr);
    }
  }

  void CallReader(int what, uint8_t with) {
    if (what == 10) {
      ReadFields(with);
      return;
    }
    if (reader_ == nullptr) return;
    const char* text = nullptr;
    const char* key = nullptr;
    size_t size = 0;
    size_t key_size = 0;
    uint64_t first = 0;
    uint64_t last = 0;
    unsigned version = 0;
    unsigned least = 0;
    switch (what) {
      case 11:
      case 12:
      case 13:
      case 14:
        for (int i = 0; i <= with % 16; ++i) {
          if (tracefs_reader_next(reader_, &event_) != TRACEFS_ITEM) {
            event_ = nullptr;
            break;
          }
          ReadFields(with);
        }
        break;
      case 15:
        event_ = nullptr;
        ReadMessage(with);
        break;
      case 16: {
        event_ = nullptr;
        tracefs_block block{};
        if (tracefs_reader_next_block(reader_, &block) == TRACEFS_ITEM) {
          ReadAll(static_cast<const char*>(block.bytes), block.size);
        }
        break;
      }
      case 17:
        event_ = nullptr;
        ReadProcess();
        break;
      case 18:
        event_ = nullptr;
        tracefs_reader_seek_time(reader_, Number(with));
        break;
      case 19:
        event_ = nullptr;
        tracefs_reader_seek_block(reader_, Number(with / 12), Number(with));
        break;
      case 20:
        event_ = nullptr;
        if (tracefs_reader_time_span(reader_, &first, &last) == TRACEFS_ITEM) {
          tracefs_reader_seek_time(reader_, first / 2 + last / 2);
        }
        break;
      case 21:
        if (tracefs_reader_property(reader_, Number(with / 16), Text(with),
                                    &text, &size) == TRACEFS_ITEM) {
          ReadAll(text, size);
        }
        break;
      case 22:
        if (tracefs_reader_property_at(reader_, with % 3, Number(with / 3),
                                       &key, &key_size, &text,
                                       &size) == TRACEFS_ITEM) {
          ReadAll(key, key_size);
          ReadAll(text, size);
        }
        break;
      case 23:
        tracefs_reader_format(reader_, Number(with), &version, &least);
        break;
      case 24:
        ReadString(tracefs_reader_message(reader_));
        g_read = g_read + static_cast<uint64_t>(tracefs_reader_status(reader_));
        break;
      case 25:
        g_read = g_read +
                 tracefs_reader_count(reader_, static_cast<int>(Number(with)));
        tracefs_reader_complete(reader_);
        break;
      case 26:
        if (tracefs_reader_traces(reader_) != 0) {
          ReadString(tracefs_reader_trace_name(
              reader_, with % tracefs_reader_traces(reader_)));
        }
        break;
      case 27:
        tracefs_reader_progress(reader_, &first, &last);
        break;
      case 28:
        tracefs_reader_stop(reader_);
        break;
      case 29:
        tracefs_reader_cancel(reader_);
        break;
      default:
        event_ = nullptr;
        ReadColumns(with);
    }
  }

  void ReadFields(uint8_t with) const {
    const auto field = static_cast<uint32_t>(Number(with) + with);
    if (const char* name = tracefs_field_name(field)) ReadString(name);
    tracefs_field_type(field);
    tracefs_field_after(field);
    tracefs_field_by_name(Text(with));
    if (event_ == nullptr) return;
    const char* text = nullptr;
    size_t size = 0;
    uint64_t number = 0;
    for (uint32_t f = field, n = 0; n < 200; ++n) {
      tracefs_event_number(event_, f, &number);
      if (tracefs_event_text(event_, f, &text, &size) == 1) {
        ReadAll(text, size);
      }
      f = tracefs_field_after(f);
    }
    ReadString(tracefs_event_op(event_));
    tracefs_argument argument{};
    for (const size_t n : {size_t{0}, size_t{1}, size_t{with}, SIZE_MAX}) {
      if (tracefs_event_extra(event_, n, &argument) == TRACEFS_ITEM) {
        ReadString(argument.name);
        ReadAll(static_cast<const char*>(argument.value), argument.size);
      }
    }
  }

  void ReadMessage(uint8_t with) const {
    tracefs_message message{};
    if (tracefs_reader_next_message(reader_, &message) != TRACEFS_ITEM) return;
    ReadString(message.name);
    ReadAll(static_cast<const char*>(message.bytes), message.size);
    // Where nobody said that an argument begins, too.
    size_t at = with < 200 ? 0 : Number(with);
    tracefs_argument argument{};
    while (tracefs_reader_next_argument(reader_, &at, &argument) ==
           TRACEFS_ITEM) {
      Require(at <= message.size);
      ReadString(argument.name);
      ReadAll(static_cast<const char*>(argument.value), argument.size);
    }
  }

  void ReadProcess() const {
    tracefs_process process{};
    if (tracefs_reader_next_process(reader_, &process) != TRACEFS_ITEM) return;
    for (const tracefs_text& text :
         {process.program, process.exe, process.cwd, process.argv,
          process.environment, process.comm, process.cgroup}) {
      ReadAll(text.text, text.size);
    }
    for (size_t i = 0; i < process.pipe_count; ++i) {
      g_read = g_read + process.pipes[i].inode;
    }
  }

  void ReadColumns(uint8_t with) {
    if (stream_.release == nullptr) {
      if (tracefs_reader_columns(reader_, Text(with), &stream_) !=
          TRACEFS_ITEM) {
        stream_.release = nullptr;
        return;
      }
    }
    ArrowSchema schema{};
    if (stream_.get_schema(&stream_, &schema) == 0) schema.release(&schema);
    ArrowArray batch{};
    if (stream_.get_next(&stream_, &batch) == 0 && batch.release != nullptr) {
      g_read = g_read + static_cast<uint64_t>(batch.length);
      batch.release(&batch);
    }
  }

  const std::string trace_;
  tracefs_options* const options_;
  tracefs_reader* reader_ = nullptr;
  const tracefs_event* event_ = nullptr;
  ArrowArrayStream stream_{};
  int inputs_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\xff'), input.size());
  Caller caller(
      tracefs::fuzz::MakeTrace(input.substr(std::min(end + 1, size))));
  for (size_t at = 0; at + 1 < std::min<size_t>(end, 256); at += 2) {
    caller.Call(data[at], data[at + 1]);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\xff');
  if (end == input.npos || seed % 4 == 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  const size_t head = end + 1;
  if (seed % 2 == 0) {
    return head + tracefs::fuzz::MutateTrace(data + head, size - head,
                                             max - head, seed);
  }
  // Another program for the same trace.
  std::string calls(input.substr(0, end));
  const size_t had = calls.size();
  calls.resize(had + 32);
  calls.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(calls.data()), had,
                                calls.size()));
  std::replace(calls.begin(), calls.end(), '\xff', '\xfe');
  return tracefs::fuzz::PutBack(calls + std::string(input.substr(end)), data,
                                max);
}
