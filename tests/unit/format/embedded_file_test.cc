// FILE messages come back as written; what does not go together is refused.
#include "tracefs/format/embedded_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs {
namespace {

using format::EmbeddedFile;
using test::TraceBuilder;

constexpr std::string_view kHash = "0123456789abcdef0123456789abcdef";

EmbeddedFile File() {
  EmbeddedFile file;
  file.path = "/Makefile";
  file.size = 4;
  file.mtime_ns = 77;
  file.mode = 0100644;
  file.hash = AsBytes(kHash);
  file.has_content = true;
  file.content = AsBytes("all:");
  return file;
}

// Writes one into a trace, reads that, and looks at what comes out. Returns how
// many did.
int Back(const EmbeddedFile& file,
         const std::function<void(const EmbeddedFile&)>& look) {
  std::vector<std::byte> memory(size_t{1} << 16);
  format::MessageWriter out(memory);
  EXPECT_TRUE(WriteEmbeddedFile(out, file));
  TraceBuilder trace;
  trace.AddBytes(AsText(out.bytes()));
  trace.EndBlock(TraceBuilder::kMonotonicNs);
  trace.Finish();
  int count = 0;
  format::TraceReaderOptions options;
  options.file = [&](const EmbeddedFile& read) {
    ++count;
    look(read);
  };
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(trace.bytes())),
      std::move(options));
  std::unique_ptr<format::BlockDecoder> block;
  for (;;) {
    const auto step = reader.NextBlock(&block);
    if (!step.ok() || *step != format::ReadStep::kItem) break;
  }
  EXPECT_EQ(reader.stats().files, 1u);
  EXPECT_TRUE(reader.stats().unknown_messages.empty());
  return count;
}

TEST(EmbeddedFileTest, ComesBackAsWritten) {
  EmbeddedFile file = File();
  file.sure = EmbeddedFile::Sure::kByTime;
  EXPECT_EQ(Back(file,
                 [](const EmbeddedFile& read) {
                   EXPECT_EQ(read.path, "/Makefile");
                   EXPECT_EQ(read.size, 4u);
                   EXPECT_EQ(read.mtime_ns, 77u);
                   EXPECT_EQ(read.mode, 0100644u);
                   EXPECT_EQ(read.sure, EmbeddedFile::Sure::kByTime);
                   EXPECT_EQ(AsText(read.hash), kHash);
                   EXPECT_EQ(AsText(read.content), "all:");
                   EXPECT_TRUE(read.has_content);
                 }),
            1);
}

TEST(EmbeddedFileTest, AnEmptyFileHasContents) {
  EmbeddedFile file = File();
  file.size = 0;
  file.content = {};
  EXPECT_EQ(Back(file,
                 [](const EmbeddedFile& read) {
                   EXPECT_TRUE(read.has_content);
                   EXPECT_TRUE(read.content.empty());
                 }),
            1);
}

TEST(EmbeddedFileTest, WhatWasLeftOutSaysWhy) {
  EmbeddedFile file;
  file.path = "/a.mk";
  file.left_out = "too large";
  EXPECT_EQ(Back(file,
                 [](const EmbeddedFile& read) {
                   EXPECT_EQ(read.left_out, "too large");
                   EXPECT_FALSE(read.has_content);
                 }),
            1);
  EmbeddedFile more;
  more.left_out = "too large";
  more.count = 12;
  EXPECT_EQ(Back(more,
                 [](const EmbeddedFile& read) {
                   EXPECT_TRUE(read.path.empty());
                   EXPECT_EQ(read.count, 12u);
                 }),
            1);
}

TEST(EmbeddedFileTest, Malicious_WhatDoesNotGoTogetherIsRefused) {
  const auto nothing = [](const EmbeddedFile&) {};
  EmbeddedFile longer = File();
  longer.size = 5;
  EXPECT_EQ(Back(longer, nothing), 0);
  EmbeddedFile short_hash = File();
  short_hash.hash = AsBytes(kHash.substr(1));
  EXPECT_EQ(Back(short_hash, nothing), 0);
  EmbeddedFile nameless = File();
  nameless.path = {};
  EXPECT_EQ(Back(nameless, nothing), 0);
}

TEST(EmbeddedFileTest, WhatDoesNotFitIsNotWrittenInPart) {
  std::vector<std::byte> memory(80);
  format::MessageWriter out(memory);
  EXPECT_FALSE(WriteEmbeddedFile(out, File()));
  EXPECT_EQ(out.size(), 0u);
}

}  // namespace
}  // namespace tracefs
