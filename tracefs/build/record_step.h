// From the operations of a trace to steps.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/build/file_step.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/record.h"

namespace tracefs::build {

// Who did it, as the operation tells: pid 0 if it does not.
ProcessKey CallerOf(const format::Record& record);
void SetCaller(const format::Record& record, FileStep* step);

// Used by one thread.
class RecordSteps {
 public:
  // `mount_point`: where the paths of the trace begin; nullptr: as the trace's
  // header says.
  explicit RecordSteps(const std::string* mount_point = nullptr)
      : mount_point_(mount_point) {}

  // The operation as a step, whose views last until the next call and as long
  // as the record does. Null for what is no operation that was done: those that
  // were about to run.
  const FileStep* Of(const format::Record& record);

 private:
  std::string_view Place(const format::TraceContext* trace,
                         std::string_view path, std::string* out) const;

  const std::string* const mount_point_;
  FileStep step_;
  PathBuffer buffer_;
  PathBuffer buffer2_;
  std::string path_;
  std::string path2_;
};

}  // namespace tracefs::build
