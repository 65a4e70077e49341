// What tracefs-dump prints of a trace, in every form that golden files keep.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/dump/dump.h"

namespace tracefs::test {

// File extension to contents: ".txt", ".jsonl", ".stats" and ".err", what goes
// to standard error, with the exit status as its last line.
inline std::map<std::string, std::string> ListTrace(const std::string& path) {
  std::map<std::string, std::string> listings;
  const auto run = [&](const std::string& extension, DumpOptions options) {
    options.traces = {path};
    options.time = TimeStyle::kUtc;
    const std::atomic<bool> stop = false;
    StringOutput out;
    StringOutput err;
    const int status = Dump(options, out, err, stop);
    (void)err.Flush();
    listings[extension] = out.text();
    if (extension != ".txt") return;
    // Without the folder, which depends on where this runs.
    std::string errors = err.text();
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (size_t at; (at = errors.find(folder)) != std::string::npos;) {
      errors.erase(at, folder.size());
    }
    listings[".err"] = errors + "exit " + std::to_string(status) + "\n";
  };
  DumpOptions asked;
  run(".txt", asked);
  asked.format = "jsonl";
  run(".jsonl", asked);
  asked = {};
  asked.stats = true;
  run(".stats", asked);
  return listings;
}

}  // namespace tracefs::test
