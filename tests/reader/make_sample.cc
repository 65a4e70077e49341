// Writes the sample trace of the benchmarks to a file: make_sample FILE.
#include <cstdio>
#include <fstream>

#include "bench/micro/sample_trace.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_sample FILE\n", stderr);
    return 2;
  }
  std::ofstream out(argv[1], std::ios::binary);
  out << tracefs::bench::SampleTrace();
  return out.flush() ? 0 : 3;
}
