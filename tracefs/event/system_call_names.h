// Names of system calls by their numbers on this machine: those that the
// headers of its C library knew when this was built, and newer ones whose
// numbers are the same everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tracefs {

struct SystemCallName {
  uint32_t number;
  std::string_view name;
};

// All of them, by number.
std::span<const SystemCallName> SystemCallNames();

// "openat"; empty if there is none known.
std::string_view SystemCallNameOf(uint32_t number);
// Case is ignored.
std::optional<uint32_t> SystemCallNumber(std::string_view name);

// One a line, "257 openat": what the header of a trace says, which may be read
// on another machine.
std::string SystemCallTable();

}  // namespace tracefs
