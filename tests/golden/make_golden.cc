// Adds the traces of golden_traces.h to a folder, and to every trace there what
// tracefs-dump prints of it: make_golden tests/golden/v1. What is there already
// stays as it is; look at what is new before it is committed.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "tests/golden/listing.h"
#include "tests/support/golden_traces.h"

namespace {

void WriteIfNew(const std::filesystem::path& path, const std::string& bytes) {
  if (std::filesystem::exists(path)) return;
  std::ofstream(path, std::ios::binary) << bytes;
  std::cout << path.string() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_golden FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : tracefs::test::MakeGoldenTraces()) {
    WriteIfNew(folder / (name + ".trace"), bytes);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".trace") continue;
    for (const auto& [extension, text] :
         tracefs::test::ListTrace(path.string())) {
      WriteIfNew(path.replace_extension(extension), text);
    }
  }
  return 0;
}
