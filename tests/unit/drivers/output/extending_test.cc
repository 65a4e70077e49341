// docs/extending.md: the code it shows is that of docs/examples, and works.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "drivers/output/table.h"
#include "filters/output/table.h"
#include "tests/unit/drivers/output/driven_trace.h"
#include "tests/unit/filters/output/chain_end.h"

namespace tracefs {

// Declared in rows.h, if they were not just examples.
OutputFilterRow InvertRow();
OutputDriverRow PipeRow();

namespace {

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ExtendingTest, ThePageShowsTheCodeAsItIs) {
  const std::string page = ReadText("docs/extending.md");
  const std::string code = ReadText("docs/examples/invert_filter.cc") +
                           ReadText("docs/examples/pipe_driver.cc");
  ASSERT_FALSE(page.empty());
  const std::string fence = "```cpp\n";
  int blocks = 0;
  for (size_t at = page.find(fence); at != page.npos;
       at = page.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    const std::string block =
        page.substr(begin, page.find("```", begin) - begin);
    EXPECT_NE(code.find(block), std::string::npos) << block;
    ++blocks;
  }
  EXPECT_EQ(blocks, 6);
}

TEST(ExtendingTest, TheFilterRoundTrips) {
  const OutputFilterRow row = InvertRow();
  ChainLog log;
  OutputFilterFacts facts;
  const auto filter =
      row.make(ConfigEntry(), std::make_unique<ChainEnd>(&log), &facts);
  ASSERT_TRUE(filter.ok());
  ASSERT_TRUE((*filter)->Initialize(TestIdentity()).ok());
  const std::vector<std::string> blocks = SampleBlocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_TRUE((*filter)->Write(AsBytes(blocks[i]), {.sequence = i}).ok());
  }
  ASSERT_TRUE((*filter)->Release().ok());
  const KeyRing keys;
  const auto decoder = row.make_decoder({}, &keys);
  ASSERT_TRUE(decoder.ok());
  DecodeMemory memory;
  BlockNotes notes;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ByteSpan out;
    ASSERT_TRUE(
        (*decoder)
            ->Decode({}, AsBytes(log.written[i].payload), memory, &notes, &out)
            .ok());
    EXPECT_EQ(AsText(out), blocks[i]);
    if (blocks[i].empty()) continue;
    EXPECT_NE(log.written[i].payload, blocks[i]);
  }
}

TEST(ExtendingTest, TheDriverWritesATrace) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ConfigEntry entry;
  entry.name = "pipe";
  entry.value.number = static_cast<uint64_t>(writer.get());
  OutputDriverFacts facts;
  auto driver = PipeRow().make(entry, &facts);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  writer.Reset();
  const DrivenTrace trace(3, 2, "pipe");
  trace.WriteAll(**driver);
  std::string text(1 << 16, '\0');
  const ssize_t n = ::read(reader.get(), text.data(), text.size());
  ASSERT_GT(n, 0);
  text.resize(static_cast<size_t>(n));
  EXPECT_EQ(text, trace.Bytes());
}

}  // namespace
}  // namespace tracefs
