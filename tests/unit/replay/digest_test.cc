// Digests of trees, and what differs between two, or between one and a plan.
#include "tracefs/replay/digest.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kShaOfA[] =  // printf a | sha256sum
    "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

DigestLine Line(const std::string& path) {
  DigestLine line;
  line.path = path;
  line.mode = S_IFREG | 0644;
  line.uid = 1;
  line.gid = 2;
  line.links = 1;
  line.size = 5;
  line.contents = "sha256=x";
  return line;
}

std::vector<std::string> Differ(std::vector<DigestLine> a,
                                std::vector<DigestLine> b, size_t most = 10,
                                uint64_t* count = nullptr) {
  uint64_t unused = 0;
  return CompareDigests({std::move(a), ""}, {std::move(b), ""}, most,
                        count != nullptr ? count : &unused);
}

TEST(CompareDigestsTest, TellsWhatDiffersPathByPath) {
  EXPECT_THAT(Differ({Line("a"), Line("b")}, {Line("a"), Line("b")}),
              IsEmpty());
  EXPECT_THAT(Differ({Line("a"), Line("c")}, {Line("b"), Line("c"), Line("d")}),
              ElementsAre("a: missing", "b: not expected", "d: not expected"));
  EXPECT_THAT(Differ({Line("a"), Line("b")}, {}),
              ElementsAre("a: missing", "b: missing"));
  DigestLine other = Line("a");
  other.mode = S_IFREG | 0600;
  EXPECT_THAT(Differ({Line("a")}, {other}),
              ElementsAre("a: mode 100600 instead of 100644"));
  other = Line("a");
  other.size = 6;
  EXPECT_THAT(Differ({Line("a")}, {other}),
              ElementsAre("a: size 6 instead of 5"));
  other = Line("a");
  other.links = 2;
  EXPECT_THAT(Differ({Line("a")}, {other}),
              ElementsAre("a: links 2 instead of 1"));
  other = Line("a");
  other.contents = "sha256=y";
  EXPECT_THAT(Differ({Line("a")}, {other}), ElementsAre("a: other contents"));
  other.contents = "-";
  EXPECT_THAT(Differ({Line("a")}, {other}), IsEmpty());
  EXPECT_THAT(Differ({other}, {Line("a")}), IsEmpty());
  for (uint32_t DigestLine::*member : {&DigestLine::uid, &DigestLine::gid}) {
    other = Line("a");
    other.*member = 9;
    EXPECT_THAT(Differ({Line("a")}, {other}), ElementsAre("a: another owner"));
    other.has_owner = false;
    EXPECT_THAT(Differ({Line("a")}, {other}), IsEmpty());
    EXPECT_THAT(Differ({other}, {Line("a")}), IsEmpty());
  }
}

TEST(CompareDigestsTest, CountsWhatItDoesNotName) {
  uint64_t count = 0;
  EXPECT_THAT(Differ({Line("a"), Line("b"), Line("c")}, {}, 2, &count),
              ElementsAre("a: missing", "b: missing"));
  EXPECT_EQ(count, 3u);
}

class DigestTreeTest : public testing::Test {
 protected:
  TreeDigest Of(const DigestOptions& options = {}) {
    const UniqueFd root(::open(folder_.Path("").c_str(), O_PATH));
    auto digest = DigestTree(root.get(), options);
    EXPECT_TRUE(digest.ok());
    return *std::move(digest);
  }
  TempFolder folder_;
};

TEST_F(DigestTreeTest, HasALineForEachFile) {
  folder_.Write("a", "a", 0640);
  ASSERT_EQ(::link(folder_.Path("a").c_str(), folder_.Path("z").c_str()), 0);
  ASSERT_EQ(::mkdir(folder_.Path("d").c_str(), 0750), 0);
  folder_.Write("d/new\nline", "", 0600);
  ASSERT_EQ(::symlink("a", folder_.Path("d/l").c_str()), 0);
  ASSERT_EQ(::mkfifo(folder_.Path("pipe").c_str(), 0604), 0);
  const TreeDigest digest = Of({.owners = false});
  std::vector<std::string> lines;
  for (const DigestLine& line : digest.lines) lines.push_back(line.Text());
  EXPECT_EQ(digest.lines[0].checksum, Crc32c(AsBytes("a")));
  EXPECT_EQ(digest.lines[5].checksum, Crc32c(AsBytes("a")));
  EXPECT_THAT(
      lines,
      ElementsAre(
          "100640 - 2 1 sha256=" + std::string(kShaOfA) + "  a",
          testing::MatchesRegex("40750 - 0 0 -  d"),
          "120777 - 1 0 target=" + std::string(kShaOfA) + "  d/l",
          "100600 - 1 0 sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934c"
          "a495991b7852b855  d/new%0Aline",
          testing::MatchesRegex("10604 - 1 0 -  pipe"),
          "100640 - 2 1 sha256=" + std::string(kShaOfA) + "  z"));
  EXPECT_EQ(digest.Text().substr(digest.Text().rfind("tree")),
            "tree sha256=" + digest.hash + "\n");
}

TEST_F(DigestTreeTest, ComesBackFromItsText) {
  folder_.Write("a", "a", 0640);
  folder_.Write("b\\c", "bc", 0604);
  for (const bool owners : {false, true}) {
    const TreeDigest digest = Of({.owners = owners});
    const auto read = ParseDigest(digest.Text());
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->Text(), digest.Text());
    uint64_t count = 1;
    EXPECT_THAT(CompareDigests(digest, *read, 10, &count), IsEmpty());
    EXPECT_EQ(count, 0u);
  }
}

TEST(ParseDigestTest, NamesOfAllBytesAndLinesInAnyOrderComeBack) {
  TreeDigest digest;
  for (int c = 255; c > 0; --c) {
    if (c == '/') continue;
    DigestLine line;
    line.path = std::string("n") + static_cast<char>(c) + "%41";
    line.mode = 0100644;
    line.contents = "sha256=x";
    digest.lines.push_back(line);
  }
  std::string text;
  for (const DigestLine& line : digest.lines) {
    text += line.Text() + "\n";
    for (const char c : line.Text().substr(line.Text().rfind(' ') + 1)) {
      EXPECT_TRUE(c < 0 || (c > ' ' && c < 0x7f)) << line.Text();
    }
  }
  const auto read = ParseDigest(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->lines.size(), 254u);
  for (const DigestLine& line : digest.lines) {
    EXPECT_EQ(std::ranges::count(read->lines, line.path, &DigestLine::path), 1);
  }
  EXPECT_TRUE(std::ranges::is_sorted(read->lines, {}, &DigestLine::path));
  // And so the order in which they came does not count.
  std::ranges::reverse(digest.lines);
  std::string other;
  for (const DigestLine& line : digest.lines) other += line.Text() + "\n";
  EXPECT_EQ(ParseDigest(other)->hash, read->hash);
}

TEST_F(DigestTreeTest, ContentsAreLeftOutWhereTheyDoNotCount) {
  folder_.Write("a", "a", 0640);
  EXPECT_EQ(Of({.contents = false}).lines[0].contents, "-");
}

TEST(ParseDigestTest, Malicious_WhatIsNoDigestIsNamedByItsLine) {
  const std::string good = "100644 1:2 1 5 sha256=x  a b\n";
  ASSERT_TRUE(ParseDigest(good).ok());
  EXPECT_EQ(ParseDigest(good)->lines[0].path, "a b");
  for (const std::string bad :
       {"", "100648 1:2 1 5 sha256=x  a", "100644 12 1 5 sha256=x  a",
        "100644 1:x 1 5 sha256=x  a", "100644 x:1 1 5 sha256=x  a",
        "100644 1:2 y 5 sha256=x  a", "100644 1:2 1 z sha256=x  a",
        "100644 1:2 1 5   a", "100644 1:2 1 5 sha256=x a",
        "100644 1:2 1 5 sha256=x  "}) {
    const auto read = ParseDigest(good + bad + "\n");
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.status().message(),
              "digest: line 2 is none; tracefs-replay --digest DIR makes one");
  }
  EXPECT_EQ(ParseDigest(good + good).status().message(),
            "digest: 'a%20b' is there twice");
  EXPECT_EQ(ParseDigest(good + "tree sha256=00\n").status().message(),
            "digest: its lines do not give its hash");
}

// A tree of one file "f" against a plan that expects one.
class PlanComparisonTest : public testing::Test {
 protected:
  PlanComparisonTest() {
    entry_.name = "f";
    entry_.mode = S_IFREG | 0644;
    entry_.uid = 1;
    entry_.gid = 2;
    entry_.size = 5;
    entry_.checksum = 77;
    entry_.known = TreeEntry::kMode | TreeEntry::kOwner | TreeEntry::kSize;
    line_.checksum = 77;
  }
  PlanComparison Compare(const DigestOptions& options = {},
                         bool others = false) {
    auto writer = PlanWriter::CreateUnnamed("/tmp");
    EXPECT_TRUE(writer.ok());
    for (const TreeEntry& entry : before_) {
      EXPECT_TRUE(writer->AddFinal(entry).ok());
    }
    EXPECT_TRUE(writer->AddFinal(entry_).ok());
    auto fd = writer->Finish({});
    EXPECT_TRUE(fd.ok());
    auto compared =
        CompareWithPlan(fd->get(), {lines_, ""}, options, others, 1);
    EXPECT_TRUE(compared.ok());
    return *std::move(compared);
  }
  std::string Differs(const DigestOptions& options = {}) {
    lines_ = {line_};
    const PlanComparison compared = Compare(options);
    EXPECT_EQ(compared.difference_count, compared.differences.size());
    return compared.differences.empty() ? "" : compared.differences[0];
  }
  TreeEntry entry_;
  std::vector<TreeEntry> before_;
  DigestLine line_ = Line("f");
  std::vector<DigestLine> lines_;
};

TEST_F(PlanComparisonTest, EachThingThatIsKnownCounts) {
  EXPECT_EQ(Differs(), "");
  line_.mode = S_IFREG | 0600;
  EXPECT_EQ(Differs(), "f: mode 100600 instead of 100644");
  entry_.known &= ~uint32_t{TreeEntry::kMode};
  EXPECT_EQ(Differs(), "");
  line_.mode = S_IFDIR | 0600;
  EXPECT_EQ(Differs(), "f: another type");
  entry_.mode = S_IFCHR;
  EXPECT_EQ(Differs(), "") << "something else is in the place of a device";
}

TEST_F(PlanComparisonTest, OwnersAndSizes) {
  line_.gid = 3;
  EXPECT_EQ(Differs(), "f: another owner");
  EXPECT_EQ(Differs({.owners = false}), "");
  entry_.known &= ~uint32_t{TreeEntry::kOwner};
  line_.uid = 3;
  EXPECT_EQ(Differs(), "");
  line_.size = 6;
  EXPECT_EQ(Differs(), "f: size 6 instead of 5");
  entry_.known &= ~uint32_t{TreeEntry::kSize};
  EXPECT_EQ(Differs(), "");
}

TEST_F(PlanComparisonTest, SetIdBitsCountWhereTheyWereAskedFor) {
  entry_.mode = S_IFREG | 06644;
  EXPECT_EQ(Differs(), "f: mode 100644 instead of 106644");
  EXPECT_EQ(Differs({.set_id = false}), "");
}

TEST_F(PlanComparisonTest, TargetsOfLinks) {
  entry_.mode = S_IFLNK | 0644;
  entry_.target = "a";
  entry_.known = TreeEntry::kTarget | TreeEntry::kMode;
  line_.mode = S_IFLNK | 0777;
  line_.contents = "target=" + std::string(kShaOfA);
  EXPECT_EQ(Differs(), "");
  entry_.target = "b";
  EXPECT_EQ(Differs(), "f: leads elsewhere");
}

TEST_F(PlanComparisonTest, Contents) {
  entry_.known |= TreeEntry::kChecksum;
  EXPECT_EQ(Differs(), "");
  line_.checksum = 78;
  lines_ = {line_};
  PlanComparison compared = Compare();
  EXPECT_THAT(compared.differences, IsEmpty());
  EXPECT_THAT(compared.made_up, ElementsAre("f"));
  EXPECT_EQ(Differs({.prepared = false}), "f: other contents");
  EXPECT_EQ(Differs({.contents = false, .prepared = false}), "");
  EXPECT_EQ(Differs({.recorded_bytes = false, .prepared = false}), "");
  entry_.known |= TreeEntry::kAllBytes;
  EXPECT_EQ(Differs(), "f: other contents");
  line_.contents = "-";
  lines_ = {line_};
  compared = Compare();
  EXPECT_EQ(compared.not_compared, 1u);
  EXPECT_THAT(compared.differences, IsEmpty());
}

TEST_F(PlanComparisonTest, WhatWasMadeUp) {
  entry_.known |= TreeEntry::kMadeUp;
  lines_ = {line_};
  EXPECT_EQ(Compare().made_up_count, 1u);
  const PlanComparison existing = Compare({.prepared = false});
  EXPECT_EQ(existing.made_up_count, 0u);
  EXPECT_EQ(existing.not_compared, 1u);
}

TEST_F(PlanComparisonTest, MissingAndUnexpected) {
  lines_ = {Line("g")};
  const PlanComparison compared = Compare();
  EXPECT_THAT(compared.differences, ElementsAre("g: not expected"));
  EXPECT_EQ(compared.difference_count, 2u);
  EXPECT_THAT(Compare({}, true).differences, ElementsAre("f: missing"));
}

TEST_F(PlanComparisonTest, WhatTheTraceSaysCountsMore) {
  // Worked out: 0600, all bytes known. Recorded: 0644.
  TreeEntry worked_out = entry_;
  worked_out.mode = S_IFREG | 0600;
  worked_out.known |= TreeEntry::kAllBytes | TreeEntry::kChecksum;
  entry_.known |= TreeEntry::kRecorded | TreeEntry::kChecksum;
  line_.checksum = 78;
  before_ = {worked_out};
  EXPECT_EQ(Differs(), "f: other contents") << "all bytes are known of either";
  line_.mode = S_IFREG | 0600;
  EXPECT_EQ(Differs(), "f: mode 100600 instead of 100644");
  std::swap(before_[0], entry_);
  EXPECT_EQ(Differs(), "f: mode 100600 instead of 100644") << "in any order";
}

}  // namespace
}  // namespace tracefs::replay
