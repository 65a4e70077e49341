#include "tracefs/import/import.h"

#include <utility>

#include "tracefs/base/version.h"
#include "tracefs/import/line_reader.h"
#include "tracefs/import/strace_pass.h"

namespace tracefs::import {

format::TraceHeader ForeignHeader(std::string_view source,
                                  const ImportOptions& options,
                                  uint64_t first_ns) {
  format::TraceHeader header;
  // One clock is all there is.
  header.clock = {.monotonic_ns = first_ns, .real_ns = first_ns};
  header.Set("tracefs.version", kVersion);
  header.Set("imported.from", source);
  header.Set("imported.name", options.name);
  header.Set("mount.point", options.below);
  header.Set("visibility", "imported");
  header.Set("visibility.invisible",
             "look-ups on the way to a file; reads and writes of mapped files");
  header.Set("filter.text", "");
  header.Set("drivers", "stream");
  header.Set("output.chain", "file");
  return header;
}

Status ImportStrace(std::vector<StraceFile> files, const ImportOptions& options,
                    const TraceOutput::Write& write, ImportCounts* counts) {
  StraceFiles lines(std::move(files));
  std::string_view line;
  uint32_t tid = 0;
  if (Status s = lines.Rewind(); !s.ok()) return s;
  Foundling found;
  uint64_t first_ns = 0;
  {
    ImportCounts unused;
    StracePass pass(options.below, options.folder, &found, nullptr, &unused);
    while (lines.Next(&line, &tid)) {
      if (Status s = pass.Take(line, tid); !s.ok()) return s;
    }
    if (Status s = pass.Finish(); !s.ok()) return s;
    first_ns = pass.first_ns();
    if (pass.is_relative() && lines.many()) {
      return Status::Corrupt(
          "strace -r tells times since the line before, of whichever file: the "
          "files of -ff cannot be put in order; record with -ttt");
    }
  }
  if (!lines.status().ok()) return lines.status();
  if (first_ns == 0) {
    return Status::Corrupt(
        "there is no call with a time: record with strace -f -ttt -T -y");
  }
  TraceOutput out(write, ForeignHeader("strace", options, first_ns),
                  options.name + std::to_string(first_ns));
  if (Status s = out.Begin(); !s.ok()) return s;
  StracePass pass(options.below, options.folder, &found, &out, counts);
  if (Status s = lines.Rewind(); !s.ok()) return s;
  while (lines.Next(&line, &tid)) {
    if (Status s = pass.Take(line, tid); !s.ok()) return s;
  }
  if (!lines.status().ok()) return lines.status();
  if (Status s = pass.Finish(); !s.ok()) return s;
  for (uint64_t i = 0; i < lines.too_long(); ++i) {
    counts->left_out.Add("lines that are too long");
    ++counts->unread;
  }
  return out.End("end of the strace");
}

}  // namespace tracefs::import
