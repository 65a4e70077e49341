#include "tracefs/reader/trace_place.h"

#include <algorithm>
#include <filesystem>

#include "tracefs/base/absolute_path.h"
#include "tracefs/base/printable.h"

namespace tracefs::reader {

TracePlace::TracePlace(const format::TraceHeader& header)
    : TracePlace(header.Get("mount.point"), header.Get("backing.path")) {}

std::vector<std::string> TracePlace::Readings(std::string_view given,
                                              std::string_view folder) const {
  std::vector<std::string> readings;
  const auto add = [&](std::string_view path) {
    if (std::ranges::find(readings, path) == readings.end()) {
      readings.emplace_back(path);
    }
  };
  const std::string absolute = AbsolutePath(folder, given);
  for (const std::string& place : {mount_point_, source_}) {
    std::string_view inside = absolute;
    if (!place.empty() && TakeFolder(place, &inside)) add(inside);
  }
  // What leads upward is of the directory that it begins in, and no other.
  if (!LeadsUpward(given)) add(AbsolutePath("/", given));
  return readings;
}

bool TracePlace::Holds(std::string_view absolute) const {
  return (!mount_point_.empty() && TakeFolder(mount_point_, &absolute)) ||
         (!source_.empty() && TakeFolder(source_, &absolute));
}

std::string TracePlace::Text() const {
  if (mount_point_.empty() || mount_point_ == source_) return source_;
  return source_.empty() ? mount_point_ : mount_point_ + ", from " + source_;
}

std::string WhyNotSeen(std::span<const TracePlace> places,
                       std::string_view given, std::string_view folder,
                       std::string_view of) {
  const std::string nothing =
      "no operation" + std::string(of) + " was recorded on a file ";
  const std::string absolute = AbsolutePath(folder, given);
  std::string where;
  for (const TracePlace& place : places) {
    if (place.Holds(absolute)) return nothing + "of that name";
    const std::string text = Printable(place.Text());
    if (text.empty()) return nothing + "of that name";
    if (where.find(text) != std::string::npos) continue;
    where += (where.empty() ? "" : "; ") + text;
  }
  return "it does not lie in what was traced (" + where + "), and " + nothing +
         "that the trace calls so";
}

std::string WorkingFolder() {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  return error ? "/" : folder;
}

}  // namespace tracefs::reader
