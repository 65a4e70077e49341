// OutputFile: a file that appears under its name when it is complete, or not at
// all.
#pragma once

#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::anonymize {

// Where a rewritten trace goes.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // Writes all of it or fails.
  virtual Status Write(ByteSpan bytes) = 0;
};

class MemorySink final : public TraceSink {
 public:
  Status Write(ByteSpan bytes) override {
    text_ += AsText(bytes);
    return Status::Ok();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Where the system can (O_TMPFILE), the file has no name until it is complete,
// so that not even SIGKILL leaves a half of it. Elsewhere SIGHUP, SIGINT and
// SIGTERM remove it, where they are not ignored; of one file at a time.
class OutputFile final : public TraceSink {
 public:
  // "-" is standard output, which cannot be taken back. A file of that name
  // must not exist.
  static Result<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept
      : fd_(std::move(other.fd_)),
        path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        done_(std::exchange(other.done_, true)) {}
  // Without Commit nothing stays.
  ~OutputFile() override;

  Status Write(ByteSpan bytes) override;
  // Makes what was written durable and gives it its name.
  Status Commit();

 private:
  OutputFile() = default;
  bool to_stdout() const { return path_ == "-"; }

  UniqueFd fd_;
  std::string path_;
  std::string temporary_;  // its name until it is complete, if it needs one
  bool done_ = false;
};

}  // namespace tracefs::anonymize
