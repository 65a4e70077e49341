// The checksum filter: every change shows, nothing else does.
#include "filters/output/checksum.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "tests/unit/filters/output/filter_chain.h"
#include "tests/unit/filters/output/test_keys.h"
#include "tracefs/base/crc32c.h"

namespace tracefs {
namespace {

const std::vector<std::string> kBlocks = {"block zero", "", "block two",
                                          "the last one"};

class ChecksumTest : public testing::Test {
 protected:
  // All ways to protect a block.
  std::vector<std::string> Variants() const {
    const std::string key = keys_.KeyOption();
    return {"checksum alg = crc32c;",
            "checksum" + key + ";",
            "checksum alg = hmac-md5" + key + ";",
            "checksum" + keys_.SealOption() + ";",
            "checksum" + keys_.SealOption() + keys_.SignOption() + ";",
            "checksum alg = crc32c" + keys_.SignOption() + ";"};
  }

  Result<std::string> Decode(const std::string& variant, const Written& written,
                             BlockNotes* notes = nullptr,
                             const format::Serial& serial = TestSerial()) {
    return DecodeWith(DecoderOf(variant), written, serial, notes);
  }

  ChainDecoder& DecoderOf(const std::string& variant) {
    const auto found = decoders_.find(variant);
    if (found != decoders_.end()) return found->second;
    auto decoder =
        ChainDecoder::Create(ChainTextOf(variant + " file = x"), &keys_.all);
    EXPECT_TRUE(decoder.ok()) << decoder.status().message();
    return decoders_.emplace(variant, *std::move(decoder)).first->second;
  }

  TestKeys keys_;
  std::map<std::string, ChainDecoder> decoders_;
};

TEST_F(ChecksumTest, Malicious_EveryFlippedBitIsFound) {
  for (const std::string& variant : Variants()) {
    const auto written = RunChain(variant + " file = x", kBlocks);
    for (const Written& good : written) {
      ASSERT_TRUE(Decode(variant, good).ok());
      for (size_t bit = 0; bit < 8 * good.payload.size(); ++bit) {
        Written bad = good;
        bad.payload[bit / 8] ^= static_cast<char>(1 << bit % 8);
        BlockNotes notes;
        const auto block = Decode(variant, bad, &notes);
        if (!block.ok()) {
          EXPECT_EQ(block.status().code(), StatusCode::kCorrupt);
          continue;
        }
        // A key id that was changed names a key that nobody has.
        EXPECT_TRUE(variant.find("crc32c") == variant.npos ||
                    variant.find("sign") != variant.npos);
        const ChecksumNote& note = notes.checksums[0];
        EXPECT_FALSE(note.keyed && (note.signature_checked ||
                                    variant.find("sign") == variant.npos))
            << variant << " bit " << bit;
      }
    }
  }
}

TEST_F(ChecksumTest, Malicious_EveryCutIsFound) {
  for (const std::string& variant : Variants()) {
    const auto written = RunChain(variant + " file = x", kBlocks);
    for (const Written& good : written) {
      for (size_t size = 0; size < good.payload.size(); ++size) {
        EXPECT_FALSE(
            Decode(variant, {good.payload.substr(0, size), good.info}).ok());
      }
      EXPECT_FALSE(Decode(variant, {good.payload + "x", good.info}).ok());
    }
  }
}

TEST_F(ChecksumTest, Malicious_AnotherPlaceOrTraceIsFound) {
  for (const std::string& variant : Variants()) {
    const auto written = RunChain(variant + " file = x", kBlocks);
    Written moved = written[2];
    moved.info.sequence = 3;
    EXPECT_FALSE(Decode(variant, moved).ok()) << variant;
    EXPECT_FALSE(Decode(variant, written[2], nullptr, TestSerial(0x77)).ok())
        << variant;
  }
}

TEST_F(ChecksumTest, Malicious_AWeakerAlgorithmThanAnnouncedIsRefused) {
  const auto written = RunChain("checksum alg = crc32c; file = x", kBlocks);
  const auto block =
      DecodeChain("checksum alg=hmac-sha256; file", keys_.all, written[0]);
  ASSERT_FALSE(block.ok());
  EXPECT_NE(block.status().message().find("announces another"),
            std::string::npos);
}

TEST_F(ChecksumTest, TheTagIsThatOfTheSpecification) {
  const auto written =
      RunChain("checksum" + keys_.KeyOption() + "; file = x", kBlocks);
  const std::string& payload = written[2].payload;
  const size_t tagged = payload.size() - 32;
  std::string message = "tracefs-checksum";
  message += AsText(TestSerial());
  message += std::string("\2\0\0\0\0\0\0\0", 8);
  message += payload.substr(0, tagged);
  std::array<std::byte, 32> tag;
  HmacSha256(FilledKey(0x11).get(), AsBytes(message), tag);
  EXPECT_EQ(payload.substr(tagged), AsText(tag));
  EXPECT_EQ(payload.substr(88, tagged - 88), "block two");
}

TEST_F(ChecksumTest, TheCrcIsThatOfTheSpecification) {
  const auto written = RunChain("checksum alg = crc32c; file = x", kBlocks);
  const std::string& payload = written[2].payload;
  std::string message = "tracefs-checksum";
  message += AsText(TestSerial());
  message += std::string("\2\0\0\0\0\0\0\0", 8);
  message += payload.substr(0, payload.size() - 4);
  EXPECT_EQ(LoadLe<uint32_t>(payload.data() + payload.size() - 4),
            Crc32c(AsBytes(message)));
}

TEST_F(ChecksumTest, BlocksAreLinkedFromThePreambleToTheEnd) {
  for (const std::string& variant : Variants()) {
    const auto written = RunChain(variant + " file = x", kBlocks);
    Digest link = LinkOf(AsBytes("the preamble"));
    uint64_t previous = kNoPrevious;
    for (size_t i = 0; i < written.size(); ++i) {
      BlockNotes notes;
      ASSERT_TRUE(Decode(variant, written[i], &notes).ok());
      ASSERT_EQ(notes.checksums.size(), 1u);
      const ChecksumNote& note = notes.checksums[0];
      EXPECT_EQ(note.head.link, link);
      EXPECT_EQ(note.head.previous, previous);
      EXPECT_EQ(note.head.last, i + 1 == written.size());
      EXPECT_TRUE(note.tag_checked);
      EXPECT_EQ(note.keyed, variant.find("crc32c") == variant.npos);
      EXPECT_EQ(note.signature_checked, variant.find("sign") != variant.npos);
      link = note.own_link;
      previous = i;
    }
  }
}

// Beside times that a stage before has shifted, a real one tells by how much.
TEST_F(ChecksumTest, WhereTimesAreHiddenItTellsOnlyHowMuchLaterABlockIs) {
  TraceIdentity identity = TestIdentity();
  identity.hides_times = true;
  uint64_t last = 0;
  for (const Written& written : RunChain(
           "checksum" + keys_.KeyOption() + "; file = x", kBlocks, identity)) {
    ChecksumHead head;
    ASSERT_TRUE(DecodeChecksumHead(AsBytes(written.payload), &head));
    EXPECT_EQ(head.real_ns, 0u);
    EXPECT_LT(head.monotonic_ns, uint64_t{60} * 1'000'000'000);
    EXPECT_GE(head.monotonic_ns, last);
    last = head.monotonic_ns;
  }
  EXPECT_NE(last, 0u);
}

TEST_F(ChecksumTest, ABlockThatWasNeverWrittenLeavesNoHoleInTheLinks) {
  ChainLog log;
  const auto filters =
      MustMakeFilters("checksum" + keys_.SealOption() + "; file = x", &log);
  ASSERT_TRUE(filters->Initialize(TestIdentity()).ok());
  EXPECT_TRUE(filters->Write(AsBytes("a"), {.sequence = 0}).ok());
  log.fail_writes = 2;
  EXPECT_FALSE(filters->Write(AsBytes("b"), {.sequence = 1}).ok());
  // Tried again under the same number, then given up.
  EXPECT_FALSE(filters->Write(AsBytes("B"), {.sequence = 1}).ok());
  EXPECT_TRUE(filters->Write(AsBytes("c"), {.sequence = 2}).ok());
  ASSERT_EQ(log.written.size(), 2u);
  BlockNotes first, second;
  const std::string chain = "checksum alg=hmac-sha256 seal=forward; file";
  ASSERT_TRUE(
      DecodeChain(chain, keys_.all, log.written[0], TestSerial(), &first).ok());
  ASSERT_TRUE(
      DecodeChain(chain, keys_.all, log.written[1], TestSerial(), &second)
          .ok());
  EXPECT_EQ(second.checksums[0].head.previous, 0u);
  EXPECT_EQ(second.checksums[0].head.link, first.checksums[0].own_link);
}

TEST_F(ChecksumTest, ASealedBlockCannotBeSealedAgain) {
  ChainLog log;
  const auto filters =
      MustMakeFilters("checksum" + keys_.SealOption() + "; file = x", &log);
  ASSERT_TRUE(filters->Initialize(TestIdentity()).ok());
  EXPECT_TRUE(filters->Write(AsBytes("truth"), {.sequence = 5}).ok());
  const Status status = filters->Write(AsBytes("lie"), {.sequence = 5});
  EXPECT_NE(status.message().find("erased"), std::string::npos);
  EXPECT_FALSE(filters->Write(AsBytes("lie"), {.sequence = 4}).ok());
}

TEST_F(ChecksumTest, EachTraceHasAnEpochOfItsOwn) {
  const std::string output = "checksum" + keys_.SealOption() + "; file = x";
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto written = RunChain(output, kBlocks);
    BlockNotes notes;
    ASSERT_TRUE(
        Decode("checksum" + keys_.SealOption() + ";", written[1], &notes).ok());
    EXPECT_EQ(notes.checksums[0].head.epoch, epoch);
    EXPECT_TRUE(notes.checksums[0].keyed);
  }
}

TEST_F(ChecksumTest, WithoutTheKeyABlockIsReadButNotTrusted) {
  const auto written =
      RunChain("checksum" + keys_.KeyOption() + "; file = x", kBlocks);
  BlockNotes notes;
  const auto block = DecodeChain("checksum alg=hmac-sha256; file", KeyRing(),
                                 written[0], TestSerial(), &notes);
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(*block, kBlocks[0]);
  EXPECT_FALSE(notes.checksums[0].tag_checked);
  EXPECT_FALSE(notes.checksums[0].keyed);
}

TEST_F(ChecksumTest, AnchorsFixTheFirstEveryNthAndTheLastBlock) {
  const std::string path = keys_.folder.Path("anchors");
  const std::vector<std::string> blocks(8, "b");
  const std::string output = "checksum" + keys_.KeyOption() +
                             " anchor = \"file:" + path +
                             "\" anchor_every = 3; file = x";
  const auto written = RunChain(output, blocks);
  std::istringstream lines(TempFolder::Read(path));
  std::string line;
  std::vector<uint64_t> anchored;
  while (std::getline(lines, line)) {
    const auto anchor = ParseAnchor("Jan  1 00:00:00 host x[1]: " + line);
    ASSERT_TRUE(anchor) << line;
    EXPECT_EQ(anchor->serial, TestSerial());
    EXPECT_EQ(anchor->last, anchor->block == 7);
    const std::string& payload = written[anchor->block].payload;
    EXPECT_EQ(anchor->hash, LinkOf(AsBytes(payload).last(32)));
    anchored.push_back(anchor->block);
  }
  EXPECT_EQ(anchored, (std::vector<uint64_t>{0, 3, 6, 7}));
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST(AnchorTest, Malicious_LinesThatAreNone) {
  const std::string good = AnchorText({.serial = TestSerial(), .block = 3});
  ASSERT_TRUE(ParseAnchor(good));
  ASSERT_TRUE(ParseAnchor(good + "\r\n"));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseAnchor(good.substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseAnchor("tracefs-anchor serial= block= last= hash="));
}

// What a config must not say, and what the message must.
TEST_F(ChecksumTest, ImpossibleOptionsAreRefusedWithAWayOut) {
  const std::string key = keys_.KeyOption();
  const std::pair<std::string, const char*> cases[] = {
      {"checksum", "tracefs-keygen secret"},
      {"checksum alg = hmac-md5", "alg = hmac-md5 needs a key"},
      {"checksum seal = forward", "tracefs-keygen seal"},
      {"checksum alg = crc32c" + key, "crc32c has no key"},
      {"checksum alg = crc32c seal = forward", "crc32c has no key"},
      {"checksum key = 00112233", "never stands in a config"},
      {"checksum key = file:/proc/nonexistent/key", "/proc/nonexistent/key"},
      {"checksum key = \"file:" + keys_.sign + "\"", "a signing key"},
      {"checksum key = \"file:" + keys_.state + "\"", "sealing state"},
      {"checksum seal = forward" + key, "is not one, or is damaged"},
      {"checksum seal = forward key = env:X", "needs key = file:PATH"},
      {"checksum sign = ed25519" + key, "belong together"},
      {"checksum sign_key = file:x" + key, "belong together"},
      {"checksum anchor_every = 3" + key, "without anchor"},
      {"checksum anchor = nowhere" + key, "syslog or file:PATH"},
      {"checksum anchor = file:" + key, "syslog or file:PATH"},
      {"checksum alg = crc32c anchor = syslog", "would fix nothing"},
      {"checksum anchor = file:/proc/nonexistent/a" + key,
       "/proc/nonexistent/a"},
  };
  for (const auto& [filter, expected] : cases) {
    ChainLog log;
    const auto tracer = ParseOutput(filter + "; file = x");
    ASSERT_TRUE(tracer.ok()) << filter << tracer.status().message();
    const auto made = MakeFilters(*tracer, &log);
    ASSERT_FALSE(made.ok()) << filter;
    EXPECT_NE(made.status().message().find(expected), std::string::npos)
        << filter << ": " << made.status().message();
  }
}

// --- Anchor files that others had first.

std::string AnchorRefusal(const std::string& path) {
  return MakeFileAnchors(path).status().message();
}

TEST(AnchorFileTest, OursIsAppendedTo) {
  const TempFolder folder;
  const std::string path = folder.Write("anchors", "before\n");
  const auto anchors = MakeFileAnchors(path);
  ASSERT_TRUE(anchors.ok()) << anchors.status().message();
  (*anchors)->Put({});
  EXPECT_EQ(TempFolder::Read(path).rfind("before\ntracefs-anchor ", 0), 0u);
}

TEST(AnchorFileTest, DataLoss_ALineThatWasCutOffSpoilsNoneAfterIt) {
  const TempFolder folder;
  const std::string path = folder.Path("anchors");
  const std::string line = AnchorText({.serial = TestSerial(), .block = 7});
  for (size_t left = 1; left < line.size(); ++left) {
    {
      std::ofstream cut(path, std::ios::trunc);
      cut << line << '\n' << line.substr(0, left);
    }
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    for (const uint64_t block : {8, 9}) {
      const auto anchors = MakeFileAnchors(path);
      ASSERT_TRUE(anchors.ok()) << anchors.status().message();
      (*anchors)->Put({.serial = TestSerial(), .block = block});
    }
    std::ifstream file(path);
    std::vector<uint64_t> blocks;
    size_t lines = 0;
    for (std::string text; std::getline(file, text); ++lines) {
      if (const auto anchor = ParseAnchor(text))
        blocks.push_back(anchor->block);
    }
    ASSERT_EQ(blocks, (std::vector<uint64_t>{7, 8, 9})) << left;
    ASSERT_EQ(lines, 4u) << "no empty ones";
  }
}

TEST(AnchorFileTest, ANewOneIsForUsAlone) {
  const TempFolder folder;
  ASSERT_EQ(AnchorRefusal(folder.Path("anchors")), "ok");
  struct stat st;
  ASSERT_EQ(::stat(folder.Path("anchors").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
}

TEST(AnchorFileTest, Malicious_LinksAreNotFollowed) {
  const TempFolder folder;
  const std::string victim = folder.Write("victim", "");
  ASSERT_EQ(::symlink("victim", folder.Path("soft").c_str()), 0);
  EXPECT_NE(AnchorRefusal(folder.Path("soft")).find("must not be a link"),
            std::string::npos);
  ASSERT_EQ(::symlink("none", folder.Path("dangling").c_str()), 0);
  EXPECT_NE(AnchorRefusal(folder.Path("dangling")), "ok");
  ASSERT_EQ(::link(victim.c_str(), folder.Path("hard").c_str()), 0);
  EXPECT_NE(AnchorRefusal(folder.Path("hard")).find("2 names"),
            std::string::npos);
}

TEST(AnchorFileTest, Malicious_FilesOfOthersAreRefused) {
  const TempFolder folder;
  EXPECT_NE(AnchorRefusal(folder.Write("group", "", 0660)), "ok");
  EXPECT_NE(AnchorRefusal(folder.Write("all", "", 0606)), "ok");
  ASSERT_EQ(::mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  EXPECT_NE(AnchorRefusal(folder.Path("fifo")), "ok");  // and does not hang
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  const std::string theirs = folder.Write("theirs", "");
  ASSERT_EQ(::chown(theirs.c_str(), 65534, 65534), 0);
  EXPECT_NE(AnchorRefusal(theirs).find("belongs to user 65534"),
            std::string::npos);
}

}  // namespace
}  // namespace tracefs
