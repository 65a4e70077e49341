#include "tests/unit/import/imported.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "tests/support/read_records.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::import {
namespace {

using format::Record;

std::string Line(const Record& record) {
  const Event& event = record.event;
  std::string line(OpName(event.op));
  PathBuffer buffer;
  const std::string_view path = PathOf(record, buffer);
  if (!path.empty()) (line += ' ') += path;
  PathBuffer other;
  const std::string_view path2 = NewPathOf(record, other);
  if (!path2.empty()) (line += " > ") += path2;
  const auto number = [&](const char* before, Field f) {
    if (event.Has(f)) {
      (line += before) += std::to_string(static_cast<int64_t>(event.Get(f)));
    }
  };
  number(" ", Field::kOffset);
  number("+", Field::kLength);
  if (event.Has(Field::kErrno) && event.Get(Field::kErrno) != 0) {
    (line += " ! ") +=
        strerrorname_np(static_cast<int>(event.Get(Field::kErrno)));
  } else if (event.op == Op::read_ || event.op == Op::write_) {
    number("=", Field::kResult);
  }
  number(" size ", Field::kNewSize);
  if (record.HasText(Field::kTarget)) {
    (line += " -> ") += record.Text(Field::kTarget);
  }
  if (record.HasText(Field::kXattrName)) {
    (line += " @") += record.Text(Field::kXattrName);
  }
  if (record.HasText(Field::kData)) {
    ((line += " '") += record.Text(Field::kData)) += '\'';
  }
  return line;
}

Result<UniqueFd> Copy(const UniqueFd& fd) {
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

Imported Read(Imported made) {
  if (!made.status.ok()) return made;
  format::TraceReaderOptions how;
  how.report = [&](const format::Report& report) {
    made.operations.push_back("report: " + report.Text());
  };
  test::ReadRecords(
      made.bytes,
      [&](const Record& record) {
        made.operations.push_back(Line(record));
        made.times.push_back(record.event.Get(Field::kTime));
      },
      std::move(how));
  return made;
}

}  // namespace

Imported ImportThreads(const std::vector<std::pair<uint32_t, std::string>>& of,
                       const ImportOptions& options) {
  Imported made;
  std::vector<UniqueFd> fds;
  std::vector<StraceFile> files;
  for (const auto& [tid, text] : of) {
    UniqueFd& fd = fds.emplace_back(::memfd_create("text", MFD_CLOEXEC));
    made.status = WriteAll(fd.get(), AsBytes(text), "memory");
    if (!made.status.ok()) return made;
  }
  for (size_t i = 0; i < of.size(); ++i) {
    files.push_back(
        {.open = [&, i] { return Copy(fds[i]); }, .tid = of[i].first});
  }
  made.status = ImportStrace(
      std::move(files), options,
      [&](ByteSpan bytes) {
        made.bytes += AsText(bytes);
        return Status();
      },
      &made.counts);
  return Read(std::move(made));
}

Imported Import(Foreign kind, std::string_view text,
                const ImportOptions& options) {
  Imported made;
  const UniqueFd fd(::memfd_create("text", MFD_CLOEXEC));
  made.status = WriteAll(fd.get(), AsBytes(text), "memory");
  if (!made.status.ok()) return made;
  const auto write = [&](ByteSpan bytes) {
    made.bytes += AsText(bytes);
    return Status();
  };
  made.status =
      kind == Foreign::kFio
          ? ImportFio(fd.get(), options, write, &made.counts)
          : ImportStrace({{.open = [&] { return Copy(fd); }, .tid = 0}},
                         options, write, &made.counts);
  return Read(std::move(made));
}

std::vector<std::string> Main(const Imported& imported) {
  std::vector<std::string> kept;
  for (const std::string& line : imported.operations) {
    const bool found =
        line.starts_with("lookup") && line.find(" ! ") == line.npos;
    if (!found && !line.starts_with("flush")) kept.push_back(line);
  }
  return kept;
}

}  // namespace tracefs::import
