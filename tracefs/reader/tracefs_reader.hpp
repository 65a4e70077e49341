// The C++ face of libtracefs-reader: the calls of tracefs_reader.h with owners,
// views and, instead of codes, exceptions of this header. Nothing of it is in
// the shared library, so that compilers and standard libraries may differ.
//
//   tracefs_reader_cpp::Options options;
//   options.Path("trace.log").Filter("op = write");
//   tracefs_reader_cpp::Reader reader(options);
//   for (const tracefs_reader_cpp::Event& e : reader) {
//     std::cout << e.op() << ' ' << e.text(TRACEFS_FIELD_PATH).value_or("");
//   }
#ifndef TRACEFS_READER_HPP
#define TRACEFS_READER_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tracefs_reader.h"

namespace tracefs_reader_cpp {

// What a call of the library failed with.
class Error : public std::runtime_error {
 public:
  Error(int code, const char* message)
      : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }  // TRACEFS_BAD_DATA, ...

 private:
  int code_;
};

// A report; valid during the call of the function that gets it.
class Report {
 public:
  explicit Report(const tracefs_report* report) : report_(report) {}
  int kind() const { return tracefs_report_kind(report_); }
  std::size_t trace() const { return tracefs_report_trace(report_); }
  std::uint64_t offset() const { return tracefs_report_offset(report_); }
  std::uint64_t number() const { return tracefs_report_number(report_); }
  std::uint64_t count() const { return tracefs_report_count(report_); }
  std::string text() const { return tracefs_report_text(report_); }

 private:
  const tracefs_report* report_;
};

class Options {
 public:
  Options() : options_(tracefs_options_new(), &tracefs_options_free) {
    if (!options_) throw std::bad_alloc();
  }

  Options& Path(const std::string& path) {
    return Check(tracefs_options_add_path(get(), path.c_str()));
  }
  Options& Descriptor(int fd, const std::string& name) {
    return Check(tracefs_options_add_fd(get(), fd, name.c_str()));
  }
  // `bytes` outlive all readers.
  Options& Memory(std::string_view bytes, const std::string& name) {
    return Check(tracefs_options_add_memory(get(), bytes.data(), bytes.size(),
                                            name.c_str()));
  }
  Options& Key(const std::string& source) {
    return Check(tracefs_options_add_key(get(), source.c_str()));
  }
  Options& Filter(const std::string& text) {
    return Check(tracefs_options_set_filter(get(), text.c_str()));
  }
  Options& Range(std::uint64_t from, std::uint64_t to) {
    return Check(tracefs_options_set_range(get(), from, to));
  }
  Options& Set(int what, std::uint64_t value) {
    return Check(tracefs_options_set(get(), what, value));
  }
  Options& Strict(std::uint64_t kinds) {
    return Check(tracefs_options_set_strict(get(), kinds));
  }
  Options& Lenient(std::uint64_t kinds) {
    return Check(tracefs_options_set_lenient(get(), kinds));
  }
  // Must not throw. Outlives nothing: it is kept here, and these options have
  // to outlive the readers made of them.
  Options& OnReport(std::function<void(const Report&)> report) {
    report_ =
        std::make_unique<std::function<void(const Report&)>>(std::move(report));
    return Check(tracefs_options_on_report(
        get(),
        [](void* context, const tracefs_report* r) {
          (*static_cast<std::function<void(const Report&)>*>(context))(
              Report(r));
        },
        report_.get()));
  }

  tracefs_options* get() const { return options_.get(); }

 private:
  Options& Check(int code) {
    if (code < 0) throw Error(code, tracefs_options_message(get()));
    return *this;
  }

  std::unique_ptr<tracefs_options, decltype(&tracefs_options_free)> options_;
  std::unique_ptr<std::function<void(const Report&)>> report_;
};

// Valid until the reader is asked for the next one.
class Event {
 public:
  explicit Event(const tracefs_event* event = nullptr) : event_(event) {}

  std::string_view op() const { return tracefs_event_op(event_); }
  std::optional<std::uint64_t> number(std::uint32_t field) const {
    std::uint64_t value;
    if (!tracefs_event_number(event_, field, &value)) return std::nullopt;
    return value;
  }
  std::optional<std::string_view> text(std::uint32_t field) const {
    const char* text;
    std::size_t size;
    if (!tracefs_event_text(event_, field, &text, &size)) return std::nullopt;
    return std::string_view(text, size);
  }

 private:
  const tracefs_event* event_;
};

class Reader {
 public:
  explicit Reader(const Options& options)
      : reader_(tracefs_reader_open(options.get()), &tracefs_reader_close) {
    if (!reader_) throw std::bad_alloc();
    Check(tracefs_reader_status(get()));
  }

  // False at the end, and where a growing input has no more yet (waiting()).
  bool Next(Event* event) {
    const tracefs_event* next = nullptr;
    const int code = Check(tracefs_reader_next(get(), &next));
    waiting_ = code == TRACEFS_WAIT;
    if (code == TRACEFS_ITEM) *event = Event(next);
    return code == TRACEFS_ITEM;
  }
  bool waiting() const { return waiting_; }

  std::uint64_t count(int kind) const {
    return tracefs_reader_count(get(), kind);
  }
  bool complete() const { return tracefs_reader_complete(get()) != 0; }
  std::optional<std::string> property(const std::string& key,
                                      std::size_t trace = 0) {
    const char* value;
    std::size_t size;
    const int code = Check(
        tracefs_reader_property(get(), trace, key.c_str(), &value, &size));
    if (code != TRACEFS_ITEM) return std::nullopt;
    return std::string(value, size);
  }
  void SeekTime(std::uint64_t time) {
    Check(tracefs_reader_seek_time(get(), time));
  }
  void Columns(const char* columns, ArrowArrayStream* stream) {
    Check(tracefs_reader_columns(get(), columns, stream));
  }

  // For range-based loops, once.
  class Iterator {
   public:
    explicit Iterator(Reader* reader) : reader_(reader) { ++*this; }
    Iterator() = default;
    const Event& operator*() const { return event_; }
    Iterator& operator++() {
      if (!reader_->Next(&event_)) reader_ = nullptr;
      return *this;
    }
    bool operator!=(const Iterator& other) const {
      return reader_ != other.reader_;
    }

   private:
    Reader* reader_ = nullptr;
    Event event_;
  };
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

  tracefs_reader* get() const { return reader_.get(); }

 private:
  int Check(int code) const {
    if (code < 0) throw Error(code, tracefs_reader_message(get()));
    return code;
  }

  std::unique_ptr<tracefs_reader, decltype(&tracefs_reader_close)> reader_;
  bool waiting_ = false;
};

}  // namespace tracefs_reader_cpp

#endif
