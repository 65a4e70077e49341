#include "tracefs/mount/default_trace.h"

#include <time.h>
#include <unistd.h>

#include <filesystem>

#include "tracefs/base/absolute_path.h"
#include "tracefs/base/date_text.h"
#include "tracefs/base/state_folder.h"
#include "tracefs/base/string_literal.h"

namespace tracefs {
namespace {

constexpr size_t kMostNameBytes = 64;
constexpr std::string_view kLocks = "NOT op IN { getlk setlk flock }";

std::string PlainName(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  path.remove_prefix(path.rfind('/') + 1);
  std::string name;
  for (const char c : path.substr(0, kMostNameBytes)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                       (c == '.' && !name.empty());
    name += plain ? c : '_';
  }
  return name.empty() ? "root" : name;
}

}  // namespace

std::string DatedTraceIn(const std::string& folder, std::string_view of) {
  const std::string stem = folder + '/' + PlainName(of) +
                           UtcText(::time(nullptr), "-%Y%m%dT%H%M%SZ");
  std::string name = stem + ".trace";
  std::error_code error;
  for (int i = 2; std::filesystem::exists(name, error); ++i) {
    name = stem + '-' + std::to_string(i) + ".trace";
  }
  return name;
}

Result<std::string> NewTraceOf(const std::string& traced,
                               std::string_view here) {
  const std::string state = StateFolder();
  const std::string folders[] = {
      state.empty() ? state : state + "/traces",
      "/var/tmp/tracefs-" + std::to_string(::geteuid())};
  Status why = Status::Invalid("there is no home directory");
  // Everything lies in the root.
  const bool anywhere = traced == "/";
  for (const std::string& folder : folders) {
    std::string_view below = folder;
    if (folder.empty() || (!anywhere && TakeFolder(traced, &below))) continue;
    why = MakePrivateFolder(folder);
    if (why.ok()) return DatedTraceIn(folder, traced);
  }
  if (!here.empty()) return DatedTraceIn(std::string(here), traced);
  return why.Prefixed("a place for the trace");
}

std::string FilterOr(std::string_view filter) {
  return std::string(filter.empty() ? kLocks : filter);
}

std::string MountConfigText(const std::string& trace, std::string_view rules) {
  return "{ { " + FilterOr({}) + " } { stream = { STR_ALL }; " +
         std::string(rules) +
         "\n}\n{ async; compress; "
         "file = " +
         StringLiteral(WithoutPatterns(trace)) +
         " rotate_size = " + std::to_string(kDefaultPartBytes) +
         " keep = " + std::to_string(kDefaultParts) + " }\n}\n";
}

std::string WithoutPatterns(std::string_view path) {
  std::string name;
  for (const char c : path) name.append(c == '%' ? 2 : 1, c);
  return name;
}

}  // namespace tracefs
