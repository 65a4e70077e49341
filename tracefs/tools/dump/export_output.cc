#include "tracefs/tools/dump/export_output.h"

#include <unistd.h>

#include <utility>

#include "tracefs/tools/dump/extract.h"

namespace tracefs {

Result<std::unique_ptr<ExportOutput>> ExportOutput::Open(
    const DumpOptions& options, OutputBuffer& standard) {
  const ExportKind kind =
      KindOf(*FindExportFormat(options.format), options.exported);
  std::unique_ptr<ExportOutput> made(new ExportOutput(standard));
  if (options.output.empty()) {
    if (kind == ExportKind::kBinary && ::isatty(STDOUT_FILENO) == 1) {
      return Status::Invalid("--format " + options.format +
                             " is not for a terminal: name a file with "
                             "--output");
    }
  } else {
    const bool folder =
        kind == ExportKind::kFolder || options.extract == kExtractFiles;
    auto place =
        Replacement::Begin(options.output, folder ? Replacement::Kind::kFolder
                                                  : Replacement::Kind::kFile);
    if (!place.ok()) return place.status().Prefixed("--output");
    made->place_.emplace(*std::move(place));
    if (folder || kind == ExportKind::kFile) {
      if (!made->place_->replaces()) {
        return Status::Invalid("--output: --format " + options.format +
                               " needs a file that can be read, too");
      }
      made->path_ = made->place_->path();
    } else {
      made->file_.emplace(made->place_->fd());
    }
  }
  if (options.safe_numbers) made->safe_.emplace(made->Plain());
  return made;
}

Status ExportOutput::Flush() {
  if (safe_) {
    if (Status s = safe_->Flush(); !s.ok()) return s;
  }
  return Plain().Flush();
}

Status ExportOutput::Commit() {
  return place_ ? place_->Commit() : Status::Ok();
}

}  // namespace tracefs
