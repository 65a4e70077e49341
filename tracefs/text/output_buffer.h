// OutputBuffer: where exporters write, a large buffer in front of a file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// Used by one thread.
class OutputBuffer {
 public:
  explicit OutputBuffer(size_t capacity = size_t{1} << 20)
      : capacity_(capacity), begin_(new char[capacity]), at_(begin_.get()) {}
  virtual ~OutputBuffer() = default;
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  // Room for at least `n` bytes; Commit tells how far it was used. Writes out
  // what is buffered if need be.
  char* Reserve(size_t n) {
    if (n > static_cast<size_t>(begin_.get() + capacity_ - at_)) MakeRoom(n);
    return at_;
  }
  void Commit(char* end) { at_ = end; }

  void Append(std::string_view text) {
    char* at = Reserve(text.size());
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    Commit(at + text.size());
  }

  // Writes out what is buffered. After the first error everything is dropped
  // and the error stays.
  Status Flush();
  const Status& status() const { return status_; }

 protected:
  virtual Status Emit(std::string_view text) = 0;

 private:
  void MakeRoom(size_t n);

  size_t capacity_;
  std::unique_ptr<char[]> begin_;
  char* at_;
  Status status_;
};

// Does not own the descriptor. An error keeps its errno (EPIPE: the reader
// went away).
class FdOutput : public OutputBuffer {
 public:
  explicit FdOutput(int fd) : fd_(fd) {}

 protected:
  Status Emit(std::string_view text) override;

 private:
  const int fd_;
};

class StringOutput : public OutputBuffer {
 public:
  // What was flushed.
  const std::string& text() const { return text_; }
  void Clear() { text_.clear(); }

 protected:
  Status Emit(std::string_view text) override {
    text_ += text;
    return {};
  }

 private:
  std::string text_;
};

}  // namespace tracefs
