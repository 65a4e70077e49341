// ExportOutput: where tracefs-dump writes what it makes of traces.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tracefs/base/replacement.h"
#include "tracefs/base/status.h"
#include "tracefs/export/table.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/text/safe_numbers.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {

// Used by one thread. What is not committed leaves no trace.
class ExportOutput {
 public:
  // `standard` is for what goes to standard output, and outlives this. kInvalid
  // for a binary format that would go to a terminal.
  static Result<std::unique_ptr<ExportOutput>> Open(const DumpOptions& options,
                                                    OutputBuffer& standard);

  OutputBuffer& buffer() {
    return safe_ ? static_cast<OutputBuffer&>(*safe_) : Plain();
  }
  // Of formats that make it themselves; "" for others.
  const std::string& path() const { return path_; }
  bool to_file() const { return place_.has_value(); }

  // Writes what is buffered.
  Status Flush();
  // All is written: puts it in its place.
  Status Commit();

 private:
  explicit ExportOutput(OutputBuffer& standard) : standard_(standard) {}
  OutputBuffer& Plain() {
    return file_ ? static_cast<OutputBuffer&>(*file_) : standard_;
  }

  OutputBuffer& standard_;
  std::optional<Replacement> place_;
  std::optional<FdOutput> file_;
  std::optional<SafeNumbers> safe_;
  std::string path_;
};

}  // namespace tracefs
