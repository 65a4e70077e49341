// A program of somebody else in C++: the same as program.c counts.
#include <iostream>
#include <tracefs_reader.hpp>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    int reports = 0;
    tracefs_reader_cpp::Options options;
    options.Path(argv[1]);
    options.OnReport([&](const tracefs_reader_cpp::Report&) { ++reports; });
    if (argc > 2) options.Filter(argv[2]);
    tracefs_reader_cpp::Reader reader(options);
    unsigned long events = 0;
    unsigned long of_root = 0;
    for (const tracefs_reader_cpp::Event& event : reader) {
      ++events;
      if (event.number(TRACEFS_FIELD_UID) == std::uint64_t{0}) ++of_root;
    }
    std::cout << events << " events, " << of_root << " of root, " << reports
              << " reports, " << (reader.complete() ? "complete" : "incomplete")
              << "\n";
    return 0;
  } catch (const tracefs_reader_cpp::Error& error) {
    std::cerr << error.what() << "\n";
    return -error.code();
  }
}
