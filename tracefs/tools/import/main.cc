// tracefs-import: what others recorded, as a trace of ours. See
// docs/man/tracefs-import.1.
#include "tracefs/tools/import/main.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/replacement.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
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

Result<UniqueFd> OpenText(const std::string& path) {
  // Not held up by a FIFO without a writer.
  UniqueFd in(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!in) return Status::System(errno, Printable(path));
  struct stat st = {};
  if (::fstat(in.get(), &st) != 0) {
    return Status::System(errno, Printable(path));
  }
  if (!S_ISREG(st.st_mode)) {
    return Status::Invalid(Printable(path) +
                           " is no regular file: it is read twice, so put it "
                           "into one");
  }
  return in;
}

// The number after the last point; 0: there is none.
uint32_t ThreadOf(const std::string& path) {
  const size_t point = path.rfind('.');
  if (point == path.npos || path.find('/', point) != path.npos) return 0;
  const auto number = ParseUnsigned(path.substr(point + 1));
  return number && *number <= INT32_MAX ? static_cast<uint32_t>(*number) : 0;
}

// Those that strace -ff -o `path` wrote, if there is no file of that name.
Result<std::vector<std::string>> FilesOf(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return std::vector{path};
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == path.npos ? "." : path.substr(0, slash + 1);
  const std::string begin =
      (slash == path.npos ? path : path.substr(slash + 1)) + ".";
  std::vector<std::string> files;
  if (DIR* const stream = ::opendir(folder.c_str())) {
    while (const dirent* entry = ::readdir(stream)) {
      const std::string name = entry->d_name;
      if (name.starts_with(begin) && ThreadOf(name) != 0 &&
          name.rfind('.') == begin.size() - 1) {
        files.push_back(path + name.substr(begin.size() - 1));
      }
    }
    ::closedir(stream);
  }
  if (files.empty()) return Status::System(ENOENT, Printable(path));
  std::ranges::sort(files);
  return files;
}

Result<std::vector<import::StraceFile>> TextsOf(const ImportCommand& command) {
  std::vector<import::StraceFile> texts;
  for (const std::string& path : command.files) {
    auto files = FilesOf(path);
    if (!files.ok()) return files.status();
    for (const std::string& file : *files) {
      texts.push_back(
          {.open = [file] { return OpenText(file); }, .tid = ThreadOf(file)});
    }
  }
  // The number of a single file may be anything.
  if (texts.size() == 1) texts[0].tid = 0;
  return texts;
}

bool IsOfFio(int fd) {
  std::array<std::byte, 12> begin{};
  return ReadAt(fd, begin, 0) == 12 && AsText(begin) == "fio version ";
}

Status Import(const ImportCommand& command, std::string* said) {
  const std::string name = Printable(command.options.name);
  auto texts = TextsOf(command);
  if (!texts.ok()) return texts.status();
  const Result<UniqueFd> in = texts->front().open();
  if (!in.ok()) return in.status();
  std::string from = command.from;
  if (from.empty()) from = IsOfFio(in->get()) ? "fio" : "strace";
  if (from == "fio" && texts->size() > 1) {
    return Status::Invalid("fio: one FILE at a time");
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
          ? import::ImportFio(in->get(), command.options, write, &counts)
          : import::ImportStrace(*std::move(texts), command.options, write,
                                 &counts);
  if (!status.ok()) return status.Prefixed(name);
  *said = std::to_string(counts.operations) + " operations from " +
          std::to_string(counts.lines) + " lines of " + from + ", of which " +
          std::to_string(counts.unread) + " could not be read\n";
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
