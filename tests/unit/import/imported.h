// Texts of others, imported in memory and read back as any trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/import/import.h"

namespace tracefs::import {

struct Imported {
  Status status;
  ImportCounts counts;
  // "write /a 0+5=5 'hello'": operation, path, second path, offset+length,
  // result or error, bytes; what is not there is left out.
  std::vector<std::string> operations;
  std::vector<uint64_t> times;  // of the operations: when they begin
  std::string bytes;            // of the trace
};

enum class Foreign { kStrace, kFio };

Imported Import(Foreign kind, std::string_view text,
                const ImportOptions& options = {
                    .below = "/w", .folder = "/w", .name = "test"});

// What strace -ff wrote: threads, and their texts.
Imported ImportThreads(const std::vector<std::pair<uint32_t, std::string>>& of,
                       const ImportOptions& options = {
                           .below = "/w", .folder = "/w", .name = "test"});

// The operations but those that nothing comes of: look-ups that found
// something, flush.
std::vector<std::string> Main(const Imported& imported);

}  // namespace tracefs::import
