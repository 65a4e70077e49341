// The encryption filter: unreadable without a key, and loud when changed.
#include "filters/output/encrypt.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/filters/output/filter_chain.h"
#include "tests/unit/filters/output/test_keys.h"

namespace tracefs {
namespace {

const std::vector<std::string> kBlocks = {"the first secret of this trace", "",
                                          "the second secret of this trace"};

class EncryptTest : public testing::Test {
 protected:
  std::vector<std::string> Authenticated() const {
    return {"encrypt" + keys_.KeyOption() + ";",
            "encrypt cipher = chacha20-poly1305" + keys_.KeyOption() + ";",
            "encrypt recipient = " + keys_.recipient + ";"};
  }
  std::vector<std::string> All() const {
    std::vector<std::string> all = Authenticated();
    all.push_back("encrypt cipher = aes-128-ctr" + keys_.KeyOption() + ";");
    all.push_back("encrypt cipher = bf-cbc" + keys_.KeyOption() + ";");
    return all;
  }

  Result<std::string> Decode(const std::string& variant, const Written& written,
                             const format::Serial& serial = TestSerial()) {
    return DecodeWith(DecoderOf(variant), written, serial);
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

TEST_F(EncryptTest, NothingOfTheContentsShows) {
  for (const std::string& variant : All()) {
    for (const Written& written : RunChain(variant + " file = x", kBlocks)) {
      EXPECT_EQ(written.payload.find("secret"), std::string::npos) << variant;
    }
  }
}

TEST_F(EncryptTest, EqualBlocksOfOneTraceOrOfTwoLookDifferent) {
  for (const std::string& variant : All()) {
    std::set<std::string> bodies;
    for (int trace = 0; trace < 2; ++trace) {
      const std::vector<std::string> equal(3, std::string(64, 'e'));
      for (const Written& written : RunChain(variant + " file = x", equal)) {
        EXPECT_TRUE(
            bodies.insert(written.payload.substr(written.payload.size() - 64))
                .second)
            << variant;
      }
    }
  }
}

TEST_F(EncryptTest, ABlockThatWasRefusedDoesNotUseItsKeyAgain) {
  ChainLog log;
  const auto filters = MustMakeFilters(
      "encrypt cipher = aes-128-ctr" + keys_.KeyOption() + "; file = x", &log);
  ASSERT_TRUE(filters->Initialize(TestIdentity()).ok());
  log.fail_writes = 1;
  EXPECT_FALSE(filters->Write(AsBytes("aaaaaaaaaa"), {.sequence = 0}).ok());
  EXPECT_TRUE(filters->Write(AsBytes("bbbbbbbbbb"), {.sequence = 0}).ok());
  EXPECT_EQ(LoadLe<uint64_t>(log.written[0].payload.data() + 32), 1u);
  EXPECT_EQ(*Decode("encrypt cipher = aes-128-ctr" + keys_.KeyOption() + ";",
                    log.written[0]),
            "bbbbbbbbbb");
}

TEST_F(EncryptTest, Malicious_EveryFlippedBitIsFound) {
  for (const std::string& variant : Authenticated()) {
    const Written good = RunChain(variant + " file = x", kBlocks)[2];
    for (size_t bit = 0; bit < 8 * good.payload.size(); ++bit) {
      Written bad = good;
      bad.payload[bit / 8] ^= static_cast<char>(1 << bit % 8);
      EXPECT_FALSE(Decode(variant, bad).ok()) << variant << " bit " << bit;
    }
  }
}

TEST_F(EncryptTest, Malicious_EveryCutIsFound) {
  for (const std::string& variant : Authenticated()) {
    for (const Written& good : RunChain(variant + " file = x", kBlocks)) {
      for (size_t size = 0; size < good.payload.size(); ++size) {
        EXPECT_FALSE(
            Decode(variant, {good.payload.substr(0, size), good.info}).ok());
      }
    }
  }
}

TEST_F(EncryptTest, Malicious_AnotherPlaceOrTraceIsFound) {
  for (const std::string& variant : Authenticated()) {
    const auto written = RunChain(variant + " file = x", kBlocks);
    Written moved = written[2];
    moved.info.sequence = 1;
    EXPECT_FALSE(Decode(variant, moved).ok()) << variant;
    EXPECT_FALSE(Decode(variant, written[2], TestSerial(0x77)).ok());
  }
}

// What such a cipher cannot notice is what was changed, and no more than that.
TEST_F(EncryptTest,
       Malicious_WithoutAuthenticationAChangeIsAChangeOfThatPlace) {
  for (const std::string cipher : {"aes-128-ctr", "bf-cbc"}) {
    const std::string variant =
        "encrypt cipher = " + cipher + keys_.KeyOption() + ";";
    const Written good = RunChain(variant + " file = x", kBlocks)[2];
    const std::string& text = kBlocks[2];
    ASSERT_EQ(*Decode(variant, good), text);
    for (size_t i = 0; i < good.payload.size(); ++i) {
      Written bad = good;
      bad.payload[i] ^= 0x40;
      const Result<std::string> changed = Decode(variant, bad);
      const Result<std::string> cut =
          Decode(variant, {good.payload.substr(0, i), good.info});
      if (i < kEncryptHeadBytes) {
        EXPECT_FALSE(cut.ok()) << cipher << i;
        EXPECT_TRUE(!changed.ok() || changed->size() <= good.payload.size());
        continue;
      }
      const size_t at = i - kEncryptHeadBytes;
      if (cipher == "aes-128-ctr") {
        std::string expected = text;
        expected[at] ^= 0x40;
        ASSERT_TRUE(changed.ok() && cut.ok()) << i;
        EXPECT_EQ(*changed, expected);
        EXPECT_EQ(*cut, text.substr(0, at));
        continue;
      }
      // A block of eight and a byte of the next; the rest is as it was, or the
      // padding does not fit any more.
      EXPECT_FALSE(cut.ok() && *cut == text) << i;
      if (!changed.ok()) continue;
      EXPECT_NE(*changed, text) << i;
      EXPECT_EQ(changed->substr(0, at / 8 * 8), text.substr(0, at / 8 * 8));
    }
  }
}

TEST_F(EncryptTest, AMissingKeyIsNamed) {
  const auto shared = DecodeChain(
      "encrypt cipher=aes-256-gcm; file", KeyRing(),
      RunChain("encrypt" + keys_.KeyOption() + "; file = x", kBlocks)[0]);
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(shared.status().code(), StatusCode::kInvalid);
  EXPECT_NE(
      shared.status().message().find(KeyIdText(IdOfKey(FilledKey(0x11).get()))),
      std::string::npos)
      << shared.status().message();
  const auto wrapped = DecodeChain(
      "encrypt cipher=aes-256-gcm; file", KeyRing(),
      RunChain("encrypt recipient = " + keys_.recipient + "; file = x",
               kBlocks)[0]);
  ASSERT_FALSE(wrapped.ok());
  EXPECT_NE(wrapped.status().message().find("identity"), std::string::npos);
}

TEST_F(EncryptTest, SeveralRecipientsReadTheSameTrace) {
  const std::string other =
      AgeRecipientText(*RecipientOfIdentity(FilledKey(0x55).get()));
  const auto written = RunChain(
      "encrypt recipient = \"" + other + "," + keys_.recipient + "\"; file = x",
      kBlocks);
  KeyRing second;
  ASSERT_TRUE(second.Add({KeyKind::kAgeIdentity, FilledKey(0x55)}).ok());
  for (const KeyRing* keys : {&second, &keys_.all}) {
    const auto block =
        DecodeChain("encrypt cipher=aes-256-gcm; file", *keys, written[0]);
    ASSERT_TRUE(block.ok()) << block.status().message();
    EXPECT_EQ(*block, kBlocks[0]);
  }
}

TEST_F(EncryptTest, ImpossibleOptionsAreRefusedWithAWayOut) {
  const std::string key = keys_.KeyOption();
  std::string many = keys_.recipient;
  for (int i = 0; i < 16; ++i) many += "," + keys_.recipient;
  const std::pair<std::string, const char*> cases[] = {
      {"encrypt", "tracefs-keygen secret"},
      {"encrypt recipient = " + keys_.recipient + key, "either"},
      {"encrypt key = 0123456789", "never stands in a config"},
      {"encrypt key = file:/nonexistent", "/nonexistent"},
      {"encrypt recipient = age1qqqqqqqq", "'age1qqqqqqqq'"},
      {"encrypt recipient = \"" + many + "\"", "more than 16"},
      {"encrypt recipient = \"" + keys_.recipient + ",\"", "no age recipient"},
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

TEST_F(EncryptTest, AnIdentityInTheConfigIsRefusedAndNotRepeated) {
  const std::string identity = AgeIdentityText(FilledKey(0x44).get());
  ChainLog log;
  const auto tracer =
      ParseOutput("encrypt recipient = " + identity + "; file = x");
  ASSERT_TRUE(tracer.ok());
  const auto made = MakeFilters(*tracer, &log);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message().find("AGE-SECRET"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
