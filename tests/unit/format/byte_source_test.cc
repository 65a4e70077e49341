// Files one after the other are as one file; what grows and what has ended.
#include "tracefs/format/byte_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/filters/output/temp_folder.h"

namespace tracefs::format {
namespace {

// The rest of a source, read `most` bytes at a time.
std::string Rest(ByteSource& source, size_t most) {
  std::string text;
  std::vector<std::byte> part(most);
  for (;;) {
    const Result<size_t> n = source.Read(part);
    EXPECT_TRUE(n.ok()) << n.status().message();
    if (!n.ok() || *n == 0) return text;
    text += AsText(ByteSpan(part).first(*n));
  }
}

class FileChainTest : public testing::Test {
 protected:
  FileChainTest() {
    const char* const parts[] = {"", "0123456789", "abc", "", "XYZ", ""};
    for (size_t i = 0; i < std::size(parts); ++i) {
      paths_.push_back(folder_.Write("part" + std::to_string(i), parts[i]));
      whole_ += parts[i];
    }
  }

  TempFolder folder_;
  std::vector<std::string> paths_;
  std::string whole_;
};

TEST_F(FileChainTest, ReadsAllOfThemFromFrontToBack) {
  for (size_t most = 1; most < 20; ++most) {
    FileChain chain(paths_, /*follow=*/false);
    EXPECT_EQ(Rest(chain, most), whole_) << most;
  }
  FileChain none({}, false);
  EXPECT_EQ(Rest(none, 1), "");
}

TEST_F(FileChainTest, GoesOnFromEachByte) {
  FileChain chain(paths_, false);
  EXPECT_EQ(chain.Size(), whole_.size());
  for (size_t at = 0; at <= whole_.size(); ++at) {
    ASSERT_TRUE(chain.Seek(at).ok());
    EXPECT_EQ(Rest(chain, 4), whole_.substr(at)) << at;
  }
}

TEST_F(FileChainTest, ReadsAtEachByteWhereverReadingIs) {
  FileChain chain(paths_, false);
  std::byte first;
  ASSERT_TRUE(chain.Read({&first, 1}).ok());
  for (int step = 0; step < 3 * static_cast<int>(whole_.size()); ++step) {
    const size_t at = static_cast<size_t>(step * 7) % whole_.size();
    std::byte byte;
    const Result<size_t> n = chain.ReadAt(at, {&byte, 1});
    ASSERT_TRUE(n.ok()) << n.status().message();
    ASSERT_EQ(*n, 1u) << at;
    EXPECT_EQ(static_cast<char>(byte), whole_[at]) << at;
  }
  EXPECT_EQ(*chain.ReadAt(whole_.size(), {&first, 1}), 0u);
  EXPECT_EQ(Rest(chain, 3), whole_.substr(1));
}

TEST_F(FileChainTest, TheLastFileIsReadToItsEnd) {
  paths_.pop_back();  // the empty one
  FileChain chain(paths_, false);
  for (size_t at = 0; at < whole_.size(); ++at) {
    std::byte byte;
    ASSERT_EQ(*chain.ReadAt(at, {&byte, 1}), 1u) << at;
    EXPECT_EQ(static_cast<char>(byte), whole_[at]) << at;
  }
}

TEST_F(FileChainTest, HasASizeOnlyOfFilesThatAreAllThere) {
  ASSERT_EQ(::unlink(paths_[2].c_str()), 0);
  EXPECT_EQ(FileChain(paths_, false).Size(), std::nullopt);
  FileChain chain(paths_, false);
  std::byte byte;
  EXPECT_FALSE(chain.Seek(0).ok());
  EXPECT_FALSE(chain.ReadAt(0, {&byte, 1}).ok());
  ASSERT_EQ(::mkfifo(paths_[2].c_str(), 0600), 0);
  EXPECT_EQ(FileChain(paths_, false).Size(), std::nullopt);
  ASSERT_EQ(::unlink(paths_[2].c_str()), 0);
  FileChain missing(paths_, false);
  std::vector<std::byte> part(100);
  ASSERT_EQ(*missing.Read(part), 10u);
  const auto error = missing.Read(part);
  EXPECT_EQ(error.status().error(), ENOENT);
  EXPECT_NE(error.status().message().find(paths_[2]), std::string::npos);
}

TEST_F(FileChainTest, OnlyTheLastMayGrow) {
  FileChain chain(paths_, /*follow=*/true);
  EXPECT_FALSE(chain.MayGrow());  // nothing was read yet
  EXPECT_EQ(Rest(chain, 5), whole_);
  EXPECT_TRUE(chain.MayGrow());
  folder_.Write("part5", "more");
  EXPECT_EQ(Rest(chain, 5), "more");
  folder_.Write("part5", "");  // cut behind the reader's back
  EXPECT_FALSE(chain.MayGrow());
}

// The parts of a rotated trace, found one after the other.
TEST_F(FileChainTest, LaterPartsAreFoundWhereOneHasEnded) {
  Serial serial{};
  std::vector<std::string> asked;
  std::vector<std::string> there = {paths_[1], paths_[2]};
  FileChain chain({paths_[1]}, /*follow=*/true,
                  [&](const std::string& path, const Serial&, uint64_t part) {
                    asked.push_back(path + " " + std::to_string(part));
                    return there;
                  });
  EXPECT_EQ(chain.Size(), 10u);
  EXPECT_EQ(Rest(chain, 100), "0123456789");
  EXPECT_FALSE(chain.AwaitsPart()) << "it has no mark yet";
  EXPECT_TRUE(asked.empty());
  chain.Marked(FrameKind::kPartEnd, serial, {.part = 4});
  EXPECT_TRUE(chain.AwaitsPart());
  EXPECT_EQ(Rest(chain, 100), "abc") << "and not again the first";
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0], paths_[1] + " 4");
  // It is part of the whole by now.
  ASSERT_TRUE(chain.Seek(11).ok());
  EXPECT_EQ(Rest(chain, 100), "bc");
  // A part that has not ended may grow as long as somebody writes it.
  asked.clear();
  chain.Marked(FrameKind::kPart, serial, {.part = 5});
  EXPECT_EQ(Rest(chain, 100), "");
  EXPECT_TRUE(asked.empty());
  folder_.Write("part2", "abcdef");
  EXPECT_EQ(Rest(chain, 100), "def");
  // In vain it is not looked for without end.
  chain.Marked(FrameKind::kPartEnd, serial, {.part = 5});
  int looks = 0;
  while (chain.AwaitsPart() && looks < 100'000) {
    EXPECT_EQ(Rest(chain, 100), "");
    ++looks;
  }
  EXPECT_EQ(static_cast<size_t>(looks), asked.size());
  EXPECT_GT(looks, 1);
  EXPECT_LT(looks, 100'000);
  EXPECT_EQ(asked.back(), paths_[2] + " 5");
}

TEST_F(FileChainTest, OnePartMayBeGoneBeforeItsTurn) {
  std::vector<std::string> there = {folder_.Path("gone"), paths_[4]};
  const auto later = [&](const std::string&, const Serial&, uint64_t) {
    return there;
  };
  FileChain chain({paths_[1]}, true, later);
  EXPECT_EQ(Rest(chain, 100), "0123456789");
  chain.Marked(FrameKind::kPartEnd, Serial{}, {.part = 0});
  EXPECT_EQ(Rest(chain, 100), "XYZ");
  // Without a mark, or nobody who knows of others, it is missing.
  for (const bool follow : {false, true}) {
    FileChain plain({paths_[1], folder_.Path("gone")}, follow);
    std::vector<std::byte> part(100);
    ASSERT_TRUE(plain.Read(part).ok());
    const auto missing = plain.Read(part);
    EXPECT_EQ(missing.status().error(), ENOENT);
    EXPECT_NE(missing.status().message().find("gone"), std::string::npos);
  }
  FileChain still({paths_[1]}, /*follow=*/false, later);
  still.Marked(FrameKind::kPartEnd, Serial{}, {.part = 0});
  EXPECT_EQ(Rest(still, 100), "0123456789") << "it is not followed";
}

TEST_F(FileChainTest, ASourceBeginsWhereItsFileStands) {
  UniqueFd fd(::open(paths_[1].c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::lseek(fd.get(), 4, SEEK_SET), 4);
  FdSource source(std::move(fd), false);
  EXPECT_EQ(source.Size(), 6u);
  EXPECT_EQ(Rest(source, 100), "456789");
  std::byte byte;
  ASSERT_EQ(*source.ReadAt(2, {&byte, 1}), 1u);
  EXPECT_EQ(static_cast<char>(byte), '6');
  ASSERT_TRUE(source.Seek(1).ok());
  EXPECT_EQ(Rest(source, 100), "56789");
  EXPECT_TRUE(source.MayGrow());
  folder_.Write("part1", "012");
  EXPECT_EQ(source.Size(), 0u);
  EXPECT_FALSE(source.MayGrow());
}

TEST_F(FileChainTest, APipeHasNoSizeAndEnds) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  FdSource source(UniqueFd{ends[0]}, /*follow=*/true);
  EXPECT_EQ(source.Size(), std::nullopt);
  EXPECT_FALSE(source.Seek(0).ok());
  EXPECT_TRUE(source.MayGrow());
  EXPECT_EQ(Rest(source, 10), "");  // nothing yet, and it does not wait
  EXPECT_TRUE(source.MayGrow());
  ASSERT_EQ(::write(ends[1], "abc", 3), 3);
  EXPECT_EQ(Rest(source, 2), "abc");
  EXPECT_TRUE(source.MayGrow());
  ::close(ends[1]);
  EXPECT_EQ(Rest(source, 2), "");
  EXPECT_FALSE(source.MayGrow());
}

TEST_F(FileChainTest, WhatCannotBeReadIsAnError) {
  EXPECT_EQ(FdSource::Open(folder_.Path(""), false).status().error(), EISDIR);
  EXPECT_EQ(FdSource::Open(folder_.Path("none"), false).status().error(),
            ENOENT);
  auto opened = FdSource::Open(paths_[2], false);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(Rest(**opened, 2), "abc");
}

}  // namespace
}  // namespace tracefs::format
