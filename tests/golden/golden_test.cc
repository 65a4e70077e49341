// Traces of every version of the format are read as they always were.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/golden/listing.h"

namespace tracefs::test {
namespace {

namespace fs = std::filesystem;

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(GoldenTest, EveryTraceOfEveryVersionIsListedAsBefore) {
  size_t traces = 0;
  for (const auto& version : fs::directory_iterator("tests/golden")) {
    if (!version.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(version.path())) {
      if (entry.path().extension() != ".trace") continue;
      ++traces;
      for (const auto& [extension, text] : ListTrace(entry.path().string())) {
        fs::path expected = entry.path();
        expected.replace_extension(extension);
        EXPECT_EQ(text, Contents(expected)) << expected;
      }
    }
  }
  EXPECT_GE(traces, 7u);
}

// The worked example of FORMAT.md, section 12: its hex is the golden trace.
TEST(GoldenTest, TheExampleOfTheFormatPageIsATrace) {
  std::ifstream page("tracefs/format/FORMAT.md");
  std::string line;
  bool in_example = false;
  std::string bytes;
  while (std::getline(page, line)) {
    if (line.starts_with("## 12.")) in_example = true;
    // "  44  54 46 42 1a   frame magic"
    if (!in_example || line.size() < 8 || line[4] == ' ') continue;
    if (!std::all_of(line.begin(), line.begin() + 5, [](char c) {
          return c == ' ' || (c >= '0' && c <= '9');
        })) {
      continue;
    }
    EXPECT_EQ(std::stoul(line.substr(0, 5)), bytes.size()) << line;
    // Bytes are pairs of digits with one blank between; two blanks end them.
    for (size_t at = 7; at + 1 < line.size() && line[at] != ' '; at += 3) {
      bytes += static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16));
    }
  }
  EXPECT_EQ(bytes, Contents("tests/golden/v1/worked_example.trace"));
}

}  // namespace
}  // namespace tracefs::test
