// Commands as a user types them, in a folder of the test's own.
#pragma once

#include <stdio.h>
#include <sys/wait.h>

#include <string>

namespace tracefs {

struct Outcome {
  int status = -1;     // -1: ended by a signal
  std::string output;  // both streams
};

inline Outcome RunInShell(const std::string& folder,
                          const std::string& command) {
  Outcome outcome;
  FILE* const pipe =
      ::popen(("cd " + folder + " && { " + command + "; } 2>&1").c_str(), "re");
  char part[4096];
  while (const size_t n = ::fread(part, 1, sizeof part, pipe)) {
    outcome.output.append(part, n);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace tracefs
