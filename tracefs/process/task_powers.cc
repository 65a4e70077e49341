#include "tracefs/process/task_powers.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "tracefs/base/file_io.h"
#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/process/proc_text.h"

namespace tracefs {
namespace {

// A task may be in 65,536 groups (NGROUPS_MAX), of ten digits each.
constexpr size_t kMaxTextBytes = 1 << 20;

std::string ReadAll(int proc, uint32_t tid, const char* name) {
  const std::string path = std::to_string(tid) + "/" + name;
  const UniqueFd fd(::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  Result<std::string> text = ReadText(fd.get(), kMaxTextBytes, name);
  return text.ok() ? *std::move(text) : std::string();
}

// The next number of the line; false at its end.
template <typename T>
bool Take(std::string_view& line, T* value, int base = 10) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), *value, base);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return true;
}

// Real, effective, saved and file-system id.
bool ActsFor(std::string_view status, std::string_view key, uint32_t id) {
  std::optional<std::string_view> line = LineOf(status, key);
  uint32_t ids[4];
  return line && Take(*line, &ids[0]) && Take(*line, &ids[1]) &&
         Take(*line, &ids[2]) && Take(*line, &ids[3]) && ids[3] == id;
}

}  // namespace

IdRanges IdRanges::Parse(std::string_view map) {
  IdRanges parsed;
  while (!map.empty()) {
    std::string_view line = TakeUpTo(map, '\n');
    uint32_t inside;
    IdRange range;
    if (Take(line, &inside) && Take(line, &range.first) &&
        Take(line, &range.count)) {
      parsed.ranges_.push_back(range);
    }
  }
  return parsed;
}

std::optional<TaskPowers> ParsePowers(std::string_view status, uint32_t fsuid,
                                      uint32_t fsgid) {
  std::optional<std::string_view> groups = LineOf(status, "\nGroups:\t");
  std::optional<std::string_view> effective = LineOf(status, "\nCapEff:\t");
  TaskPowers powers;
  if (!groups || !effective || !ActsFor(status, "\nUid:\t", fsuid) ||
      !ActsFor(status, "\nGid:\t", fsgid) ||
      !Take(*effective, &powers.capabilities, 16)) {
    return std::nullopt;
  }
  for (gid_t group; Take(*groups, &group);) powers.groups.push_back(group);
  return powers;
}

std::optional<TaskPowers> ReadPowers(int proc, uint32_t tid, uint32_t fsuid,
                                     uint32_t fsgid, uint64_t wanted) {
  if (tid == 0) return std::nullopt;
  std::optional<TaskPowers> powers =
      ParsePowers(ReadAll(proc, tid, "status"), fsuid, fsgid);
  if (powers && (powers->capabilities & wanted) != 0) {
    powers->uids = IdRanges::Parse(ReadAll(proc, tid, "uid_map"));
    powers->gids = IdRanges::Parse(ReadAll(proc, tid, "gid_map"));
  }
  return powers;
}

}  // namespace tracefs
