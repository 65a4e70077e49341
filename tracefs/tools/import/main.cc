// tracefs-import: what others recorded, as a trace of ours. See
// docs/man/tracefs-import.1.
#include "tracefs/tools/import/main.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/replacement.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/command/front.h"
#include "tracefs/import/import.h"
#include "tracefs/tools/import/options.h"

namespace tracefs {
namespace {

constexpr std::string_view kName = "tracefs-import";

void Append(std::string_view title, const import::Tally& tally,
            std::string* text) {
  if (tally.counts().empty()) return;
  ((*text += title) += ":\n");
  for (const auto& [what, count] : tally.counts()) {
    *text += "  " + std::to_string(count) + " " + Printable(what) + "\n";
  }
}

Status Import(const ImportCommand& command, std::string* said) {
  const std::string name = Printable(command.file);
  const UniqueFd in(::open(command.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return Status::System(errno, name);
  struct stat st = {};
  if (::fstat(in.get(), &st) != 0) return Status::System(errno, name);
  if (!S_ISREG(st.st_mode)) {
    return Status::Invalid(name +
                           " is no regular file: it is read twice, so put it "
                           "into one");
  }
  std::string from = command.from;
  if (from.empty()) {
    std::array<std::byte, 12> begin{};
    const ssize_t got = ReadAt(in.get(), begin, 0);
    const bool fio = got == 12 && AsText(begin) == "fio version ";
    from = fio ? "fio" : "strace";
  }
  Result<Replacement> made =
      Replacement::Begin(command.output, Replacement::Kind::kFile);
  if (!made.ok()) return made.status();
  const auto write = [&](ByteSpan bytes) {
    return WriteAll(made->fd(), bytes, Printable(command.output));
  };
  import::ImportCounts counts;
  const Status status =
      from == "fio"
          ? import::ImportFio(in.get(), command.options, write, &counts)
          : import::ImportStrace(in.get(), command.options, write, &counts);
  if (!status.ok()) return status.Prefixed(name);
  *said = std::to_string(counts.operations) + " operations from " +
          std::to_string(counts.lines) + " lines of " + from + "\n";
  Append("left out", counts.left_out, said);
  Append("guessed", counts.guessed, said);
  if (counts.operations == 0) {
    return Status::Corrupt(
        name + ": nothing in it is an operation on a file" +
        (from == "strace" ? " below " + Printable(command.options.below) : ""));
  }
  return made->Commit();
}

}  // namespace

int ImportMain(int argc, char** argv) {
  return RunCommand({kName, &ImportHelp}, ParseImportOptions(argc, argv),
                    [](const ImportCommand& command) {
                      std::string said;
                      const Status status = Import(command, &said);
                      if (said.empty()) return Finish(kName, status);
                      if (status.ok()) return FinishWith(kName, said);
                      (void)FinishWith(kName, said);
                      return Finish(kName, status);
                    });
}

}  // namespace tracefs
