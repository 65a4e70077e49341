#include "tracefs/reader/trace_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "tracefs/base/folder.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/marks.h"
#include "tracefs/text/shell_word.h"

namespace tracefs {
namespace {

struct Place {
  format::Serial serial{};
  uint64_t part = 0;
};

// Which part of which trace a file is: the mark follows the preamble.
std::optional<Place> PlaceOf(const std::string& path) {
  struct stat st;
  // Opening a FIFO would wait, and reading it would use it up.
  if (path == "-" || ::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) {
    return std::nullopt;
  }
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::vector<std::byte> start(format::kMaxPreambleBytes + 256);
  const ssize_t n = ::pread(fd.get(), start.data(), start.size(), 0);
  if (n <= 0) return std::nullopt;
  const ByteSpan bytes = ByteSpan(start).first(static_cast<size_t>(n));
  const Result<size_t> length = format::PreambleLength(bytes);
  if (!length.ok() || *length > bytes.size()) return std::nullopt;
  const auto frame = format::FrameAt(bytes.subspan(*length), std::nullopt);
  if (!frame ||
      frame->header.kind != static_cast<uint16_t>(format::FrameKind::kPart)) {
    return std::nullopt;
  }
  const auto mark = format::DecodePartMark(frame->payload);
  if (!mark) return std::nullopt;
  return Place{.serial = frame->header.serial, .part = mark->part};
}

// Paths, sorted.
struct InFolder {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

Result<InFolder> ReadFolder(const std::string& name) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(name.c_str()),
                                                   &::closedir);
  if (folder == nullptr) return Status::System(errno, Printable(name));
  InFolder found;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string path = name + '/' + entry->d_name;
    struct stat st;
    if (::lstat(path.c_str(), &st) != 0) continue;
    if (S_ISREG(st.st_mode)) found.files.push_back(path);
    if (S_ISDIR(st.st_mode) && entry->d_name[0] != '.') {
      found.folders.push_back(path);
    }
  }
  std::ranges::sort(found.files);
  std::ranges::sort(found.folders);
  return found;
}

// "; name what is in its folders: DIR/*/*" of a folder that has files below;
// empty where there are none.
std::string FilesFurtherDown(std::string pattern,
                             std::vector<std::string> folders) {
  constexpr int kDeepest = 4;
  while (pattern.size() > 1 && pattern.ends_with('/')) pattern.pop_back();
  pattern = ShellPath(pattern);
  for (int depth = 0; depth < kDeepest && !folders.empty(); ++depth) {
    pattern += "/*";
    std::vector<std::string> below;
    for (const std::string& folder : folders) {
      Result<InFolder> in_it = ReadFolder(folder);
      if (!in_it.ok()) continue;
      if (!in_it->files.empty()) {
        return "; there are files further down: " + pattern;
      }
      below.insert(below.end(), in_it->folders.begin(), in_it->folders.end());
    }
    folders = std::move(below);
  }
  return {};
}

// What lies beside `path` with the name that a mount gives a part of its trace.
std::vector<std::string> NamedAsParts(const std::string& path) {
  constexpr size_t kDigits = 6;
  const auto is_number = [](std::string_view text) {
    return text.size() == kDigits && IsMadeOf(text, kDecimalDigits);
  };
  const size_t slash = path.rfind('/');
  const size_t name_at = slash == std::string::npos ? 0 : slash + 1;
  const std::string folder = name_at == 0 ? "." : path.substr(0, name_at);
  std::string base = path.substr(name_at);
  if (const size_t dot = base.rfind('.');
      dot != base.npos && is_number(std::string_view(base).substr(dot + 1))) {
    base.resize(dot);
  }
  const UniqueFd dir(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto names = NamesInFolder(dir.get());
  std::vector<std::string> files;
  for (const std::string& name :
       names.ok() ? *names : std::vector<std::string>()) {
    std::string_view rest = name;
    if (!TakePrefix(rest, base)) continue;
    if (rest.empty() || (TakePrefix(rest, ".") && is_number(rest))) {
      files.push_back(path.substr(0, name_at) + name);
    }
  }
  return files;
}

}  // namespace

Status AddFiles(const std::string& name, std::vector<std::string>* files) {
  struct stat st;
  if (name == "-" || ::stat(name.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    files->push_back(name);
    return Status::Ok();
  }
  auto in_it = ReadFolder(name);
  if (!in_it.ok()) return in_it.status();
  std::vector<std::string>& found = in_it->files;
  if (found.empty()) {
    return Status::Invalid(Printable(name) +
                           ": there is no file in this folder" +
                           FilesFurtherDown(name, in_it->folders));
  }
  files->insert(files->end(), found.begin(), found.end());
  return Status::Ok();
}

std::vector<std::string> AllParts(const std::string& path) {
  std::vector<TraceFiles> traces = JoinParts(NamedAsParts(path));
  const auto found = std::ranges::find_if(traces, [&](const TraceFiles& trace) {
    // Its first part may be gone, which has the name of the whole.
    return std::ranges::find(trace.paths, path) != trace.paths.end() ||
           (traces.size() == 1 && ::access(path.c_str(), F_OK) != 0);
  });
  return found == traces.end() ? std::vector{path} : std::move(found->paths);
}

std::vector<std::string> LaterParts(const std::string& path,
                                    const format::Serial& serial,
                                    uint64_t part) {
  const auto look = [&] {
    std::map<uint64_t, std::string> parts;
    for (std::string& file : NamedAsParts(path)) {
      const std::optional<Place> place = PlaceOf(file);
      if (place && place->serial == serial && place->part > part) {
        parts.emplace(place->part, std::move(file));
      }
    }
    return parts;
  };
  auto parts = look();
  // While a folder is read, a file that comes may be seen and the one that came
  // before it not.
  if (!parts.empty() && parts.begin()->first != part + 1) parts = look();
  std::vector<std::string> files;
  for (auto& [number, file] : parts) {
    if (number != parts.begin()->first + files.size()) break;
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<TraceFiles> JoinParts(const std::vector<std::string>& files) {
  struct Group {
    std::optional<format::Serial> serial;
    std::vector<std::pair<uint64_t, std::string>> parts;
  };
  std::vector<Group> groups;
  for (const std::string& file : files) {
    const std::optional<Place> place = PlaceOf(file);
    auto group = groups.end();
    if (place) {
      group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
        return g.serial == place->serial;
      });
    }
    if (group == groups.end()) group = groups.insert(groups.end(), Group{});
    if (place) group->serial = place->serial;
    group->parts.emplace_back(place ? place->part : 0, file);
  }
  std::vector<TraceFiles> traces;
  for (Group& group : groups) {
    std::sort(group.parts.begin(), group.parts.end());
    TraceFiles& trace = traces.emplace_back();
    trace.name = group.parts.front().second;
    if (group.parts.size() > 1) {
      trace.name += " and " + std::to_string(group.parts.size() - 1) + " more";
    }
    for (auto& [part, path] : group.parts) {
      trace.paths.push_back(std::move(path));
    }
  }
  return traces;
}

}  // namespace tracefs
