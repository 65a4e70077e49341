// ControlRequest: one line of the control protocol, checked (docs/control-
// protocol.md). What comes over the socket may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/passed_files.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Bytes of one request, its line end included. A config (1 MiB) and its escapes
// fit.
inline constexpr size_t kMaxRequestBytes = size_t{4} << 20;
inline constexpr size_t kMaxRequestFiles = kMaxPassedFiles;
inline constexpr size_t kMaxRequestMembers = 16;   // of the object
inline constexpr size_t kMaxTableMembers = 65536;  // of all objects in it

struct ControlRequest {
  // Names to numbers.
  using Table = std::map<std::string, uint64_t, std::less<>>;

  std::optional<uint64_t> id;  // chosen by the client, returned to it
  std::string command;
  std::map<std::string, std::string, std::less<>> texts;
  Table numbers;
  std::map<std::string, Table, std::less<>> tables;
  std::vector<UniqueFd> files;  // in the order in which they were sent

  // Parses one line. On failure `id` is set all the same if it could be read.
  static Status Parse(std::string_view line, ControlRequest* request);

  // kInvalid if there are members other than these: nothing is ignored.
  Status CheckMembers(std::initializer_list<std::string_view> known) const;
  // The member of that name and kind; kInvalid if there is none.
  Result<std::string> Text(std::string_view name) const;
  Result<uint32_t> Number(std::string_view name) const;
  // Likewise; empty if there is none.
  const Table& NamesOf(std::string_view name) const;
};

}  // namespace tracefs
