// Writes the trace of sample_trace.h to standard output, for scripts that time
// commands (bench/query).
#include <cstdio>

#include "bench/micro/sample_trace.h"

int main() {
  const std::string& trace = tracefs::bench::SampleTrace();
  const size_t written = std::fwrite(trace.data(), 1, trace.size(), stdout);
  return written == trace.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
