// tracefs-verify against attackers. Each mutation of a trace has its expected
// verdicts; THREATS.md in filters/output says what each attacker has.
#include "tracefs/tools/verify/verify.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include "filters/output/anchor.h"
#include "tests/unit/filters/output/chain_end.h"
#include "tests/unit/tools/sealed_trace.h"
#include "tracefs/base/hex.h"
#include "tracefs/format/block_info.h"
#include "tracefs/tools/verify/trace_judge.h"

namespace tracefs {
namespace {

constexpr size_t kBlocks = 10;

struct Outcome {
  int status = -1;
  std::string verdicts;  // "ok 0-4, bad 5, ok 6-9"
  std::string out;
  std::string err;
};

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    verify_key_ = keys_.folder.Write(
        "verify", KeyLine(KeyKind::kSealVerify, FilledKey(0x22).get()));
    const auto signer = Signer::Create(FilledKey(0x33).get());
    public_key_ = keys_.folder.Write(
        "public", KeyLine(KeyKind::kSignPublic, KeySpan(signer->public_key())));
    sealed_ = "checksum" + keys_.SealOption() + ";";
    shared_ = "checksum" + keys_.KeyOption() + ";";
  }

  Outcome RunWith(VerifyOptions options) {
    StringOutput out;
    StringOutput err;
    Outcome outcome;
    outcome.status = Verify(options, out, err);
    EXPECT_TRUE(err.Flush().ok());
    outcome.out = out.text();
    outcome.err = err.text();
    std::istringstream lines(outcome.out);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string verdict, name, numbers;
      words >> verdict >> name >> numbers;
      if (verdict == "trace" || verdict == "proof") continue;
      if (!outcome.verdicts.empty()) outcome.verdicts += ", ";
      outcome.verdicts += verdict + ' ' + numbers;
    }
    return outcome;
  }

  Outcome Check(const std::string& bytes, const std::string& key) {
    VerifyOptions options;
    options.keys = {key};
    // A new file each time: one that is cut waits for the disk.
    std::filesystem::remove(keys_.folder.Path("trace"));
    options.traces = {keys_.folder.Write("trace", bytes)};
    return RunWith(std::move(options));
  }
  Outcome Check(const SealedTrace& trace, const std::string& key) {
    return Check(trace.Bytes(), key);
  }
  // By the key that belongs to the filters.
  std::string KeyFor(const std::string& filters) const {
    if (filters.find("seal = forward") != filters.npos) return verify_key_;
    if (filters.find("crc32c sign") != filters.npos) return public_key_;
    return keys_.secret;
  }
  std::vector<std::string> Variants() const {
    return {
        shared_,
        "checksum alg = hmac-md5" + keys_.KeyOption() + ";",
        sealed_,
        "checksum alg = crc32c" + keys_.SignOption() + ";",
        "compress; checksum" + keys_.KeyOption() + ";",
        "checksum" + keys_.KeyOption() + "; compress alg = zstd;",
        "encrypt" + keys_.KeyOption() + "; checksum" + keys_.KeyOption() + ";",
        "encrypt" + keys_.KeyOption() + ";"};
  }

  TestKeys keys_;
  std::string verify_key_, public_key_, sealed_, shared_;
};

TEST_F(VerifyTest, CleanTracesAreOk) {
  for (const std::string& filters : Variants()) {
    for (const size_t blocks : {size_t{2}, size_t{3}, kBlocks}) {
      const auto trace = SealedTrace::Make(filters, blocks, TestSerial());
      const Outcome outcome = Check(trace, KeyFor(filters));
      EXPECT_EQ(outcome.status, 0) << filters << outcome.out << outcome.err;
      EXPECT_EQ(outcome.verdicts, "ok 0-" + std::to_string(blocks - 1));
    }
  }
}

// --- The table: what an attacker without a key can do.

struct Mutation {
  const char* name;
  std::function<void(SealedTrace&)> apply;
  const char* expected;
};

std::vector<Mutation> Mutations() {
  using T = SealedTrace;
  const auto flip_payload = [](size_t at_from_end) {
    return [=](T& t) {
      std::string payload = t.Payload(5);
      payload[payload.size() - 1 - at_from_end] ^= 1;
      t.SetPayload(5, payload);
    };
  };
  return {
      {"nothing", [](T&) {}, "ok 0-9"},
      {"a bit without the CRC", [](T& t) { t.frames[5][60] ^= 1; },
       "ok 0-4, bad 5, ok 6-9"},
      {"a bit of a frame's magic", [](T& t) { t.frames[5][0] ^= 1; },
       "ok 0-4, bad 5, ok 6-9"},
      {"a bit of a frame's length", [](T& t) { t.frames[5][4] ^= 1; },
       "ok 0-4, bad 5, ok 6-9"},
      {"a bit of a frame's number", [](T& t) { t.frames[5][8] ^= 1; },
       "ok 0-4, bad 5, ok 6-9"},
      {"a bit of a frame's serial", [](T& t) { t.frames[5][16] ^= 1; },
       "ok 0-4, bad 5, ok 6-9"},
      {"the last bit", flip_payload(0), "ok 0-4, bad 5, ok 6-9"},
      {"a bit in the tag", flip_payload(20), "ok 0-4, bad 5, ok 6-9"},
      {"a bit of the contents", flip_payload(40), "ok 0-4, bad 5, ok 6-9"},
      {"a block cut short",
       [](T& t) {
         const std::string payload = t.Payload(5);
         t.SetPayload(5, payload.substr(0, payload.size() - 1));
       },
       "ok 0-4, bad 5, ok 6-9"},
      {"a block emptied", [](T& t) { t.SetPayload(5, ""); },
       "ok 0-4, bad 5, ok 6-9"},
      {"one removed", [](T& t) { t.frames.erase(t.frames.begin() + 5); },
       "ok 0-4, missing 5, ok 6-9"},
      {"the first removed", [](T& t) { t.frames.erase(t.frames.begin()); },
       "missing 0, ok 1-9"},
      {"some removed",
       [](T& t) { t.frames.erase(t.frames.begin() + 3, t.frames.begin() + 7); },
       "ok 0-2, missing 3-6, ok 7-9"},
      {"one removed, the others renumbered",
       [](T& t) {
         t.frames.erase(t.frames.begin() + 5);
         for (size_t i = 5; i < t.frames.size(); ++i) t.SetNumber(i, i);
       },
       "ok 0-4, bad 5-8, missing -"},
      {"one there twice",
       [](T& t) { t.frames.insert(t.frames.begin() + 6, t.frames[5]); },
       "ok 0-5, bad 5, ok 6-9"},
      {"one again at the end", [](T& t) { t.frames.push_back(t.frames[5]); },
       "ok 0-9, bad 5"},
      {"two swapped", [](T& t) { std::swap(t.frames[5], t.frames[6]); },
       "ok 0-4, bad 5, ok 6-9"},
      {"one moved far",
       [](T& t) {
         const std::string moved = t.frames[2];
         t.frames.erase(t.frames.begin() + 2);
         t.frames.insert(t.frames.begin() + 7, moved);
       },
       "ok 0-1, bad 2, ok 3-9"},
      {"two with exchanged numbers",
       [](T& t) {
         t.SetNumber(5, 6);
         t.SetNumber(6, 5);
       },
       "ok 0-4, bad 5-6, ok 7-9"},
      {"the end cut off", [](T& t) { t.frames.resize(7); },
       "ok 0-6, missing -"},
      {"only the last removed", [](T& t) { t.frames.pop_back(); },
       "ok 0-8, missing -"},
      {"nothing but the preamble", [](T& t) { t.frames.clear(); }, "missing -"},
      {"a forged block at the end",
       [](T& t) {
         t.frames.push_back(
             MakeFrame({.sequence = 10, .serial = t.serial}, "forged"));
       },
       "ok 0-9, bad 10"},
      {"a forged block with a huge number",
       [](T& t) {
         t.frames.insert(
             t.frames.begin() + 4,
             MakeFrame({.sequence = ~uint64_t{0} - 1, .serial = t.serial},
                       "forged"));
       },
       "ok 0-9, bad 18446744073709551614"},
      {"junk between blocks",
       [](T& t) { t.frames.insert(t.frames.begin() + 4, "some junk here"); },
       "ok 0-9, bad -"},
      {"junk at the end", [](T& t) { t.frames.push_back("some junk here"); },
       "ok 0-9, bad -"},
  };
}

TEST_F(VerifyTest, EveryMutationIsFoundAndNamed) {
  for (const std::string& filters : Variants()) {
    const auto good = SealedTrace::Make(filters, kBlocks, TestSerial());
    for (const Mutation& mutation : Mutations()) {
      SealedTrace bad = good;
      mutation.apply(bad);
      const Outcome outcome = Check(bad, KeyFor(filters));
      // Compressed data has bits that mean nothing. Where compression comes
      // after the checksum, a flip of one leaves the contents as sealed.
      const std::string_view name = mutation.name;
      if (filters.ends_with("compress alg = zstd;") &&
          name.find(" bit") != std::string_view::npos &&
          outcome.verdicts == "ok 0-9") {
        continue;
      }
      EXPECT_EQ(outcome.verdicts, mutation.expected)
          << mutation.name << " of " << filters << "\n"
          << outcome.out << outcome.err;
      EXPECT_EQ(outcome.status, bad.Bytes() == good.Bytes() ? 0 : 1)
          << mutation.name;
    }
  }
}

TEST_F(VerifyTest, ABlockOfAnotherTraceWithTheSameNumberIsBad) {
  for (const std::string& filters : Variants()) {
    auto trace = SealedTrace::Make(filters, kBlocks, TestSerial());
    const auto other = SealedTrace::Make(filters, kBlocks, TestSerial(0x60));
    trace.frames[5] = other.frames[5];
    EXPECT_EQ(Check(trace, KeyFor(filters)).verdicts, "ok 0-4, bad 5, ok 6-9")
        << filters;
    trace.SetSerial(5, trace.serial);
    EXPECT_EQ(Check(trace, KeyFor(filters)).verdicts, "ok 0-4, bad 5, ok 6-9")
        << filters;
  }
}

TEST_F(VerifyTest, EveryCutOfASmallTraceIsFound) {
  for (const std::string& filters : {sealed_, shared_}) {
    const std::string bytes =
        SealedTrace::Make(filters, 3, TestSerial()).Bytes();
    for (size_t size = 0; size < bytes.size(); ++size) {
      const Outcome outcome = Check(bytes.substr(0, size), KeyFor(filters));
      EXPECT_EQ(outcome.status, 1) << size << outcome.out << outcome.err;
    }
  }
}

TEST_F(VerifyTest, EveryFlippedByteOfASmallTraceIsFound) {
  for (const std::string& filters : {sealed_, shared_}) {
    const std::string bytes =
        SealedTrace::Make(filters, 3, TestSerial()).Bytes();
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string bad = bytes;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      const Outcome outcome = Check(bad, KeyFor(filters));
      EXPECT_NE(outcome.status, 0) << "byte " << i << outcome.out;
    }
  }
}

// Random mutations, several at a time: none is overlooked, and no block that
// was not touched loses its trust to the tags.
TEST_F(VerifyTest, RandomMutationsAreFound) {
  const char* runs_text = std::getenv("TRACEFS_VERIFY_RUNS");
  const int runs = runs_text == nullptr ? 300 : std::atoi(runs_text);
  const auto good = SealedTrace::Make(sealed_, kBlocks, TestSerial());
  const auto other = SealedTrace::Make(sealed_, kBlocks, TestSerial(0x60));
  std::mt19937 random(11);
  for (int run = 0; run < runs; ++run) {
    SealedTrace bad = good;
    for (unsigned i = random() % 3 + 1; i > 0 && !bad.frames.empty(); --i) {
      const size_t at = random() % bad.frames.size();
      const size_t to = random() % bad.frames.size();
      switch (random() % 7) {
        case 0: {
          std::string payload = bad.Payload(at);
          payload[random() % payload.size()] ^=
              static_cast<char>(1 << random() % 8);
          bad.SetPayload(at, payload);
          break;
        }
        case 1:
          bad.frames.erase(bad.frames.begin() + static_cast<ptrdiff_t>(at));
          break;
        case 2:
          bad.frames.insert(bad.frames.begin() + static_cast<ptrdiff_t>(to),
                            bad.frames[at]);
          break;
        case 3:
          std::swap(bad.frames[at], bad.frames[to]);
          break;
        case 4:
          bad.SetNumber(at, random() % 12);
          break;
        case 5:
          bad.frames[at] = other.frames[at % other.frames.size()];
          bad.SetSerial(at, bad.serial);
          break;
        case 6:
          bad.frames.resize(at);
          break;
      }
    }
    const Outcome outcome = Check(bad, verify_key_);
    EXPECT_EQ(outcome.status, bad.Bytes() == good.Bytes() ? 0 : 1)
        << run << outcome.out;
  }
}

TEST_F(VerifyTest, CleanTracesRaiseNoAlarm) {
  const char* runs_text = std::getenv("TRACEFS_VERIFY_RUNS");
  const int runs = runs_text == nullptr ? 100 : std::atoi(runs_text);
  const std::vector<std::string> variants = Variants();
  std::mt19937 random(5);
  for (int run = 0; run < runs; ++run) {
    const std::string& filters = variants[random() % variants.size()];
    format::Serial serial;
    for (std::byte& b : serial) b = std::byte(random());
    const auto trace = SealedTrace::Make(filters, 2 + random() % 20, serial);
    const Outcome outcome = Check(trace, KeyFor(filters));
    ASSERT_EQ(outcome.status, 0) << filters << outcome.out << outcome.err;
  }
}

// --- The preamble and the kind of protection.

TEST_F(VerifyTest, AnEditedPreambleIsFound) {
  for (const std::string& filters : {sealed_, shared_}) {
    auto trace = SealedTrace::Make(filters, kBlocks, TestSerial());
    trace.SetChain(trace.chain.substr(0, trace.chain.size() - 4) + "tcp");
    const Outcome outcome = Check(trace, KeyFor(filters));
    EXPECT_EQ(outcome.verdicts, "bad 0, ok 1-9");
    EXPECT_NE(outcome.out.find("preamble"), std::string::npos);
  }
}

TEST_F(VerifyTest, ADamagedPreambleCostsNoBlockIfTheChainIsGiven) {
  auto trace = SealedTrace::Make(sealed_, kBlocks, TestSerial());
  trace.preamble[10] ^= 0x40;
  VerifyOptions options;
  options.keys = {verify_key_};
  options.chain = trace.chain;
  options.traces = {keys_.folder.Write("trace", trace.Bytes())};
  const Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.verdicts, "ok 0-9, bad -") << outcome.out;
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(VerifyTest, StrippedOfAllSealsItIsUnsealed) {
  auto trace = SealedTrace::Make(sealed_, kBlocks, TestSerial());
  trace.SetChain("file");
  for (size_t i = 0; i < kBlocks; ++i) {
    const std::string payload = trace.Payload(i);
    trace.SetPayload(i,
                     payload.substr(kChecksumHeadBytes,
                                    payload.size() - kChecksumHeadBytes - 32));
  }
  const Outcome outcome = Check(trace, verify_key_);
  EXPECT_EQ(outcome.verdicts, "unsealed 0-9");
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(VerifyTest, AWeakerChecksumIsNotAccepted) {
  auto trace = SealedTrace::Make(shared_, kBlocks, TestSerial());
  const auto weak =
      SealedTrace::Make("checksum alg = crc32c;", kBlocks, TestSerial());
  trace.frames[5] = weak.frames[5];
  EXPECT_EQ(Check(trace, keys_.secret).verdicts, "ok 0-4, bad 5, ok 6-9");
  // The whole trace exchanged for one that anyone can make.
  EXPECT_EQ(Check(weak, keys_.secret).verdicts, "unsealed 0-9");
}

// Without keys the question is whether a trace is damaged.
TEST_F(VerifyTest, WithoutKeysAnUndamagedTraceWithoutASealPasses) {
  for (const std::string& filters : {std::string("checksum alg = crc32c;"),
                                     std::string("compress;"), std::string()}) {
    auto trace = SealedTrace::Make(filters, kBlocks, TestSerial());
    VerifyOptions options;
    const auto check = [&] {
      options.traces = {keys_.folder.Write("trace", trace.Bytes())};
      return RunWith(options);
    };
    EXPECT_EQ(check().verdicts, "unsealed 0-9");
    EXPECT_EQ(check().status, 0);
    EXPECT_NE(check().out.find("no accidental damage; not sealed: nothing says "
                               "who wrote it"),
              std::string::npos)
        << check().out;
    options.quiet = true;
    EXPECT_EQ(check().out, "");
    options.quiet = false;
    std::string& frame = trace.frames[5];
    frame.back() = static_cast<char>(frame.back() ^ 1);
    EXPECT_EQ(check().verdicts, "unsealed 0-4, bad 5, unsealed 6-9");
    EXPECT_EQ(check().status, 1);
    EXPECT_EQ(check().out.find("no accidental damage"), std::string::npos);
    trace.frames.erase(trace.frames.begin() + 5);
    EXPECT_EQ(check().verdicts, "unsealed 0-4, missing 5, unsealed 6-9");
    EXPECT_EQ(check().status, 1);
    EXPECT_EQ(check().out.find("no block is missing"), std::string::npos);
    trace.frames.pop_back();
    EXPECT_EQ(check().verdicts,
              "unsealed 0-4, missing 5, unsealed 6-8, missing -");
  }
}

// Every checksum of a forgery is right: it is never told that all is well.
TEST_F(VerifyTest, AForgedTraceIsNeverCalledOk) {
  const auto forged = SealedTrace::Make("", kBlocks, TestSerial());
  VerifyOptions options;
  options.traces = {keys_.folder.Write("trace", forged.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts, "unsealed 0-9");
  options.accept_unsealed = true;
  EXPECT_EQ(RunWith(options).verdicts, "unsealed 0-9");
  // A preamble that claims a seal: its tags are asked for.
  auto claims = forged;
  claims.SetChain("checksum alg=hmac-sha256; file");
  options.traces = {keys_.folder.Write("trace", claims.Bytes())};
  EXPECT_EQ(RunWith(options).status, 2);
}

TEST_F(VerifyTest, WhereKeysAreGivenUnsealedIsAFaultUnlessAccepted) {
  const auto trace =
      SealedTrace::Make("checksum alg = crc32c;", kBlocks, TestSerial());
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("trace", trace.Bytes())};
  options.quiet = true;
  EXPECT_EQ(RunWith(options).verdicts, "unsealed 0-9");
  EXPECT_EQ(RunWith(options).status, 1);
  options.accept_unsealed = true;
  EXPECT_EQ(RunWith(options).verdicts, "");
  EXPECT_EQ(RunWith(options).status, 0);
}

TEST_F(VerifyTest, ATraceStillBeingWrittenMayLackItsEnd) {
  auto trace = SealedTrace::Make(sealed_, kBlocks, TestSerial());
  trace.frames.pop_back();
  VerifyOptions options;
  options.keys = {verify_key_};
  options.unfinished = true;
  options.traces = {keys_.folder.Write("trace", trace.Bytes())};
  EXPECT_EQ(RunWith(options).status, 0);
}

// --- Keys.

TEST_F(VerifyTest, WithoutAKeyItAsksForOne) {
  const auto trace = SealedTrace::Make(shared_, kBlocks, TestSerial());
  VerifyOptions options;
  options.traces = {keys_.folder.Write("trace", trace.Bytes())};
  const Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--key"), std::string::npos);
}

TEST_F(VerifyTest, TheWrongKeyIsNamedAsSuch) {
  const std::string wrong = keys_.folder.Write(
      "wrong", KeyLine(KeyKind::kSecret, FilledKey(0x99).get()));
  const auto trace = SealedTrace::Make(shared_, kBlocks, TestSerial());
  const Outcome outcome = Check(trace, wrong);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find(KeyIdText(IdOfKey(FilledKey(0x11).get()))),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("not among those given"), std::string::npos);
}

TEST_F(VerifyTest, AnExchangedKeyIdIsBad) {
  for (const std::string& filters : {sealed_, shared_}) {
    auto trace = SealedTrace::Make(filters, kBlocks, TestSerial());
    std::string payload = trace.Payload(5);
    payload[8] ^= 1;
    trace.SetPayload(5, payload);
    EXPECT_EQ(Check(trace, KeyFor(filters)).verdicts, "ok 0-4, bad 5, ok 6-9");
  }
}

TEST_F(VerifyTest, TheChecksumIsEnoughWithoutTheKeyThatDecrypts) {
  const auto trace = SealedTrace::Make(
      "compress; encrypt recipient = " + keys_.recipient + "; " + sealed_,
      kBlocks, TestSerial());
  EXPECT_EQ(Check(trace, verify_key_).verdicts, "ok 0-9");
}

// --- Root on the host, from block 7 on: he has the keys of blocks 7, 8, …

class CompromiseTest : public VerifyTest {
 protected:
  CompromiseTest()
      : trace_(SealedTrace::Make(sealed_, kBlocks, TestSerial())) {}

  // Block `number` as root can write it, if he can: after the block in frame
  // `after`.
  std::string Forge(uint64_t number, size_t after, uint64_t key_number,
                    bool last = false) {
    const std::string before = trace_.Payload(after);
    ChecksumHead head;
    EXPECT_TRUE(DecodeChecksumHead(AsBytes(before), &head));
    head.previous = after;
    head.link = LinkOf(AsBytes(before).last(32));
    head.last = last;
    const SecretKey key =
        BlockKey(FilledKey(0x22), 0, trace_.serial, key_number);
    return MakeFrame(
        {.sequence = number, .serial = trace_.serial},
        ForgePayload(head, trace_.serial, number, "a lie", key.get()));
  }

  SealedTrace trace_;
};

TEST_F(CompromiseTest, FromThenOnHeCanForge) {
  // This is what is not promised; it shows that the forgeries below are good.
  trace_.frames.resize(7);
  trace_.frames.push_back(Forge(7, 6, 7, /*last=*/true));
  EXPECT_EQ(Check(trace_, verify_key_).verdicts, "ok 0-7");
}

TEST_F(CompromiseTest, AnOldBlockSealedWithALaterKeyIsBad) {
  trace_.frames[3] = Forge(3, 2, 8);
  EXPECT_EQ(Check(trace_, verify_key_).verdicts, "ok 0-2, bad 3, ok 4-9");
}

TEST_F(CompromiseTest, CuttingThePastAndGoingOnIsFound) {
  // Blocks 4 to 6 go; block 7 claims that they never were.
  trace_.frames.resize(4);
  trace_.frames.push_back(Forge(7, 3, 7, /*last=*/true));
  const Outcome outcome = Check(trace_, verify_key_);
  EXPECT_EQ(outcome.verdicts, "ok 0-3, missing 4-6, ok 7");
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(CompromiseTest, CuttingThePastAndRenumberingIsFound) {
  trace_.frames.resize(4);
  trace_.frames.push_back(Forge(4, 3, 7, /*last=*/true));
  EXPECT_EQ(Check(trace_, verify_key_).verdicts, "ok 0-3, bad 4, missing -");
}

TEST_F(CompromiseTest, AForgedSuccessorDoesNotHideWhatItReplaces) {
  // He exchanges block 7 for one that follows another block 6.
  trace_.frames[7] = Forge(7, 5, 7);
  EXPECT_NE(Check(trace_, verify_key_).status, 0);
}

TEST_F(CompromiseTest, AnAnchorFixesThePast) {
  // He cuts the trace at 4, before the compromise, and ends it: the file alone
  // looks cut. The anchor of block 6 was kept elsewhere.
  std::vector<std::string> lines;
  for (const uint64_t number : {uint64_t{0}, uint64_t{6}}) {
    lines.push_back(
        AnchorText({.serial = trace_.serial,
                    .block = number,
                    .last = false,
                    .hash = LinkOf(AsBytes(trace_.Payload(number)).last(32))}));
  }
  VerifyOptions options;
  options.keys = {verify_key_};
  options.anchors = {keys_.folder.Write(
      "anchors", "noise\nJan 1 host x: " + lines[0] + "\n" + lines[1])};
  options.traces = {keys_.folder.Write("trace", trace_.Bytes())};
  EXPECT_EQ(RunWith(options).status, 0);
  SealedTrace cut = trace_;
  cut.frames.resize(4);
  options.traces = {keys_.folder.Write("trace", cut.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts, "ok 0-3, missing 6, missing -");
  // A block other than the anchored one, though well sealed.
  SealedTrace other = trace_;
  other.frames[6] = Forge(6, 5, 6);
  options.traces = {keys_.folder.Write("trace", other.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts, "ok 0-5, bad 6, ok 7-9");
}

TEST_F(CompromiseTest, ManyAnchorsOfOneGapAreOneLine) {
  std::string lines;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    lines += AnchorText({.serial = trace_.serial,
                         .block = i,
                         .hash = LinkOf(AsBytes(trace_.Payload(i)).last(32))}) +
             '\n';
  }
  VerifyOptions options;
  options.keys = {verify_key_};
  // The same anchors may be in two logs.
  options.anchors = {keys_.folder.Write("anchors", lines + lines)};
  SealedTrace cut = trace_;
  cut.frames.resize(4);
  options.traces = {keys_.folder.Write("cut", cut.Bytes())};
  Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.verdicts, "ok 0-3, missing 4-9, missing -");
  EXPECT_NE(outcome.out.find("there are anchors for 6 of them"),
            std::string::npos)
      << outcome.out;
  // What is between two gaps is not missing.
  SealedTrace two = trace_;
  two.frames.erase(two.frames.begin() + 7, two.frames.begin() + 9);
  two.frames.erase(two.frames.begin() + 2, two.frames.begin() + 4);
  options.traces = {keys_.folder.Write("two", two.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts,
            "ok 0-1, missing 2-3, ok 4-6, missing 7-8, ok 9, missing 2-3, "
            "missing 7-8");
  SealedTrace stripped = SealedTrace::Make("", kBlocks, TestSerial());
  options.traces = {keys_.folder.Write("stripped", stripped.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts, "unsealed 0-9, bad 0-9");
}

TEST_F(CompromiseTest, AnOldTraceUnderANewNameIsFoundByItsSerialOrAnchors) {
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("today", trace_.Bytes())};
  options.serial = Hex(TestSerial(0x70));
  EXPECT_EQ(RunWith(options).verdicts, "ok 0-9, bad -");
  options.serial = Hex(TestSerial());
  EXPECT_EQ(RunWith(options).status, 0);
  options.serial.clear();
  options.anchors = {keys_.folder.Write(
      "anchors", AnchorText({.serial = TestSerial(0x70), .block = 1}))};
  EXPECT_EQ(RunWith(options).verdicts, "ok 0-9, missing -");
}

TEST_F(CompromiseTest, ATraceThatAnchorsAloneNameIsTold) {
  // It was removed as a whole, the last one of its state: no epoch is missing.
  const std::string gone = Hex(TestSerial(0x70));
  const std::string all =
      AnchorText({.serial = trace_.serial,
                  .block = 0,
                  .hash = LinkOf(AsBytes(trace_.Payload(0)).last(32))}) +
      '\n';
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("left", trace_.Bytes())};
  options.anchors = {keys_.folder.Write("one", all)};
  Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  options.anchors = {keys_.folder.Write(
      "two", all + AnchorText({.serial = TestSerial(0x70), .block = 1}))};
  outcome = RunWith(options);
  // A log may have anchors of traces that lie elsewhere.
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_NE(outcome.err.find("a trace that is not among these, removed or "
                             "elsewhere: serial " +
                             gone + "\n"),
            std::string::npos)
      << outcome.err;
}

TEST_F(CompromiseTest, ATraceTwiceUnderTwoNamesIsFound) {
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("a", trace_.Bytes()),
                    keys_.folder.Write("b", trace_.Bytes())};
  EXPECT_EQ(RunWith(options).status, 1);
}

TEST_F(CompromiseTest, AnEpochUsedTwiceIsFound) {
  // The sealing state was set back, as by a restored backup.
  const std::string state = keys_.folder.Path("copy");
  ASSERT_TRUE(SealState::Create(state, FilledKey(0x22).get()).ok());
  const auto again =
      SealedTrace::Make("checksum seal = forward key = \"file:" + state + "\";",
                        kBlocks, TestSerial(0x60));
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("a", trace_.Bytes()),
                    keys_.folder.Write("b", again.Bytes())};
  const Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("set back"), std::string::npos) << outcome.out;
}

TEST_F(CompromiseTest, WithAVerifySecretAKeyTheHostKeptProvesNothing) {
  // Root makes a whole trace with the shared secret that the host still has.
  const auto forged = SealedTrace::Make(shared_, kBlocks, TestSerial());
  VerifyOptions options;
  options.keys = {verify_key_, keys_.secret};
  options.traces = {keys_.folder.Write("trace", forged.Bytes())};
  EXPECT_EQ(RunWith(options).status, 1);
}

// --- What counts as proof, one rule after the other: what is given, what the
// trace has, and what is said.

TEST_F(CompromiseTest, EachRuleOfTrustByItself) {
  const std::string other_public = keys_.folder.Write(
      "other-public",
      KeyLine(KeyKind::kSignPublic,
              KeySpan(Signer::Create(FilledKey(0x44).get())->public_key())));
  const std::string identity = keys_.folder.Write(
      "identity", AgeIdentityText(FilledKey(0x44).get()) + "\n");
  const std::string signed_only =
      "checksum alg = crc32c" + keys_.SignOption() + ";";
  const std::string to_recipient =
      "encrypt recipient = \"" + keys_.recipient + "\";";
  const std::string to_shared = "encrypt" + keys_.KeyOption() + ";";
  const struct {
    const char* rule;
    std::string filters;
    std::vector<std::string> given;
    const char* expected;
  } rules[] = {
      {"a signature by who is named", signed_only, {public_key_}, "ok 0-9"},
      {"a signature by another one", signed_only, {other_public}, "bad 0-9"},
      {"the right one among several",
       signed_only,
       {other_public, public_key_},
       "ok 0-9"},
      {"a shared secret", shared_, {keys_.secret}, "ok 0-9"},
      {"a verify secret", sealed_, {verify_key_}, "ok 0-9"},
      {"a verify secret beside a key that the host kept",
       sealed_,
       {verify_key_, keys_.secret},
       "ok 0-9"},
      {"a key that the host kept, where there is a verify secret",
       shared_,
       {verify_key_, keys_.secret},
       "bad 0-9"},
      {"a signature, which the host can make, where there is a verify secret",
       signed_only,
       {verify_key_, public_key_},
       "bad 0-9"},
      {"a cipher of a shared secret", to_shared, {keys_.secret}, "ok 0-9"},
      {"the same, which the host can make, where there is a verify secret",
       to_shared,
       {verify_key_, keys_.secret},
       "bad 0-9"},
      {"recipients alone: whoever knows them can write to them",
       to_recipient,
       {identity},
       "unsealed 0-9"},
  };
  for (const auto& rule : rules) {
    const auto trace = SealedTrace::Make(rule.filters, kBlocks, TestSerial());
    VerifyOptions options;
    options.keys = rule.given;
    options.traces = {keys_.folder.Write("trace", trace.Bytes())};
    const Outcome outcome = RunWith(options);
    EXPECT_EQ(outcome.verdicts, rule.expected) << rule.rule << '\n'
                                               << outcome.out << outcome.err;
    EXPECT_EQ(outcome.status, outcome.verdicts == "ok 0-9" ? 0 : 1)
        << rule.rule;
  }
}

TEST_F(CompromiseTest, EachRuleOfEndsAndAnchorsByItself) {
  const auto anchor = [&](uint64_t number, bool last, uint64_t of) {
    return AnchorText({.serial = trace_.serial,
                       .block = number,
                       .last = last,
                       .hash = LinkOf(AsBytes(trace_.Payload(of)).last(32))}) +
           '\n';
  };
  SealedTrace without_end = trace_;
  without_end.frames.pop_back();
  SealedTrace gap = without_end;
  gap.frames.erase(gap.frames.begin() + 4);
  SealedTrace beheaded = without_end;
  beheaded.frames.erase(beheaded.frames.begin());
  SealedTrace stripped = trace_;
  stripped.SetChain("file");
  for (size_t i = 0; i < kBlocks; ++i) {
    const std::string payload = trace_.Payload(i);
    stripped.SetPayload(
        i, payload.substr(kChecksumHeadBytes,
                          payload.size() - kChecksumHeadBytes - 32));
  }
  const struct {
    const char* rule;
    const SealedTrace& trace;
    std::string anchors;
    bool unfinished;
    bool accept_unsealed;
    const char* expected;
    int status;
  } rules[] = {
      {"an end is asked for", without_end, "", false, false,
       "ok 0-8, missing -", 1},
      {"but not of an unfinished one", without_end, "", true, false, "ok 0-8",
       0},
      {"of which nothing else may lack", gap, "", true, false,
       "ok 0-3, missing 4, ok 5-8", 1},
      {"nor its beginning", beheaded, "", true, false, "missing 0, ok 1-8", 1},
      {"nor what an anchor names", without_end, anchor(9, false, 9), true,
       false, "ok 0-8, missing 9", 1},
      {"a last anchor says where the end is", trace_, anchor(9, true, 9), false,
       false, "ok 0-9", 0},
      {"an end elsewhere", trace_, anchor(7, true, 7), false, false,
       "ok 0-9, bad -", 1},
      {"an end that lacks, also of an unfinished one", without_end,
       anchor(8, true, 8), true, false, "ok 0-8, bad -", 1},
      {"an anchor of another block of that number", trace_, anchor(5, false, 6),
       false, false, "ok 0-4, bad 5, ok 6-9", 1},
      {"what is not sealed, although an anchor names it", stripped,
       anchor(5, false, 5), false, true, "unsealed 0-9, bad 5", 1},
      {"what is not sealed, and no anchor names", stripped, "", false, true,
       "unsealed 0-9", 0},
  };
  for (const auto& rule : rules) {
    VerifyOptions options;
    options.keys = {verify_key_};
    options.unfinished = rule.unfinished;
    options.accept_unsealed = rule.accept_unsealed;
    if (!rule.anchors.empty()) {
      options.anchors = {keys_.folder.Write("anchors", rule.anchors)};
    }
    options.traces = {keys_.folder.Write("trace", rule.trace.Bytes())};
    const Outcome outcome = RunWith(options);
    EXPECT_EQ(outcome.verdicts, rule.expected) << rule.rule << '\n'
                                               << outcome.out << outcome.err;
    EXPECT_EQ(outcome.status, rule.status) << rule.rule;
  }
}

TEST_F(CompromiseTest, ClocksThatJumpRaiseNoAlarm) {
  SealedTrace trace = trace_;
  trace.frames.resize(1);
  std::string before = trace_.Payload(0);
  for (uint64_t number = 1; number < 6; ++number) {
    ChecksumHead head;
    ASSERT_TRUE(DecodeChecksumHead(AsBytes(before), &head));
    head.previous = number - 1;
    head.link = LinkOf(AsBytes(before).last(32));
    head.last = number == 5;
    head.real_ns = number % 2 == 0 ? 0 : ~uint64_t{0};
    const SecretKey key = BlockKey(FilledKey(0x22), 0, trace.serial, number);
    before = ForgePayload(head, trace.serial, number, "x", key.get());
    trace.frames.push_back(
        MakeFrame({.sequence = number, .serial = trace.serial}, before));
  }
  EXPECT_EQ(Check(trace, verify_key_).status, 0);
}

TEST_F(CompromiseTest, SilenceBeyondThePromisedHeartbeatIsFound) {
  for (const bool silent : {false, true}) {
    SealedTrace trace = trace_;
    trace.frames.clear();
    ChecksumHead head;
    ASSERT_TRUE(DecodeChecksumHead(AsBytes(trace_.Payload(0)), &head));
    head.heartbeat_ms = 5000;
    std::string before;
    for (uint64_t number = 0; number < 4; ++number) {
      if (number != 0) {
        head.previous = number - 1;
        head.link = LinkOf(AsBytes(before).last(32));
      }
      head.monotonic_ns +=
          silent && number == 2 ? 60'000'000'000 : 5'200'000'000;
      head.last = number == 3;
      const SecretKey key = BlockKey(FilledKey(0x22), 0, trace.serial, number);
      before = ForgePayload(head, trace.serial, number, "x", key.get());
      trace.frames.push_back(
          MakeFrame({.sequence = number, .serial = trace.serial}, before));
    }
    const Outcome outcome = Check(trace, verify_key_);
    EXPECT_EQ(outcome.verdicts, silent ? "ok 0-3, missing -" : "ok 0-3")
        << outcome.out;
  }
}

// --- What the tracer could not record.

// A block with a LOSS message of each reason and, where it is the last, FINAL.
std::string LossBlock(const std::vector<std::pair<std::string, uint64_t>>& lost,
                      uint64_t final_total) {
  std::vector<std::byte> memory(8192);
  format::MessageWriter writer(memory);
  EXPECT_TRUE(format::WriteBlockHead(
      writer, {.tracer_id = 1, .clock = ClockPair::Now()}));
  for (const auto& [reason, count] : lost) {
    EXPECT_TRUE(format::WriteLoss(writer, {.reason = reason, .count = count}));
  }
  if (final_total != 0) {
    EXPECT_TRUE(format::WriteFinal(
        writer, {.tracer_id = 1,
                 .clock = ClockPair::Now(),
                 .op_totals = {},
                 .loss_totals = {{"queue_full", final_total}},
                 .end_reason = "stop"}));
  }
  return std::string(AsText(writer.bytes()));
}

TEST_F(VerifyTest, LossesThatTheTraceStatesAreMissing) {
  auto trace = SealedTrace::Make("", 4, TestSerial());
  trace.SetPayload(1, LossBlock({{"queue_full", 3}, {"throttled", 1}}, 0));
  trace.SetPayload(2, LossBlock({{"queue_full", 4}}, 0));
  trace.SetPayload(3, LossBlock({}, 7));
  VerifyOptions options;
  options.traces = {keys_.folder.Write("lossy", trace.Bytes())};
  Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.verdicts, "unsealed 0-3, missing -, missing -");
  EXPECT_EQ(outcome.status, 1);
  for (const char* text :
       {"7 operations were not recorded: queue_full",
        "1 operation was not recorded: throttled", "no accidental damage"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
  }
  options.accept_losses = true;
  outcome = RunWith(options);
  EXPECT_EQ(outcome.verdicts, "unsealed 0-3");
  EXPECT_EQ(outcome.status, 0);
  // What the block said that is gone is in the last one, too.
  options.accept_losses = false;
  trace.frames.erase(trace.frames.begin() + 1);
  options.traces = {keys_.folder.Write("gap", trace.Bytes())};
  outcome = RunWith(options);
  EXPECT_NE(outcome.out.find("7 operations were not recorded: queue_full"),
            std::string::npos)
      << outcome.out;
}

// --- Several files.

// A stray byte after each of many frames, of which every other one is missing.
// Looking at all damage for each gap would take minutes.
TEST(TraceJudgeTest, ManyDamagedPlacesAreJudgedInOnePass) {
  constexpr uint64_t kFrames = 400'000;
  const KeyRing keys;
  std::vector<Anchor> anchors;
  for (uint64_t i = 0; i < kFrames; i += 2) {
    anchors.push_back({.serial = TestSerial(), .block = i});
  }
  TraceJudge judge({.keys = &keys, .unfinished = true, .anchors = anchors},
                   TestSerial());
  const std::clock_t begin = std::clock();
  for (uint64_t i = 0; i < kFrames; ++i) {
    judge.AddFrame({.serial = TestSerial(), .sequence = 2 * i}, 41 * i, 0,
                   Status::Ok(), {}, /*has_final=*/false);
    judge.AddDamage(41 * i + 40, 1, /*cut=*/false);
  }
  const std::vector<JudgedRange> found = judge.Judge();
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 20);
  // Each frame, each gap as the damage that is there, the last damage, and each
  // anchor, as no key covers its block.
  EXPECT_EQ(found.size(), kFrames + (kFrames - 1) + 1 + kFrames / 2);
}

TEST_F(VerifyTest, RotatedFilesAreOneTrace) {
  const auto whole = SealedTrace::Make(sealed_, kBlocks, TestSerial());
  ASSERT_EQ(::mkdir(keys_.folder.Path("d").c_str(), 0700), 0);
  // Each file begins with the preamble and a copy of block 0.
  std::vector<std::string> files(3, whole.preamble + whole.frames[0]);
  for (size_t i = 1; i < kBlocks; ++i)
    files[i * 3 / kBlocks] += whole.frames[i];
  // Names that do not sort in order.
  keys_.folder.Write("d/t.9", files[0]);
  keys_.folder.Write("d/t.1", files[1]);
  const std::string third = keys_.folder.Write("d/t.3", files[2]);
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Path("d")};
  const Outcome outcome = RunWith(options);
  EXPECT_EQ(outcome.verdicts.substr(0, 3), "ok ") << outcome.out;
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  std::filesystem::remove(third);
  EXPECT_EQ(RunWith(options).status, 1);
}

TEST_F(VerifyTest, SeveralTracesAreJudgedEachByItself) {
  const auto first = SealedTrace::Make(sealed_, 4, TestSerial());
  auto second = SealedTrace::Make(sealed_, 6, TestSerial(0x60));
  second.frames.erase(second.frames.begin() + 2);
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("a", first.Bytes()),
                    keys_.folder.Write("b", second.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts, "ok 0-3, ok 0-1, missing 2, ok 3-5");
}

TEST_F(VerifyTest, WhatIsNoTraceIsAnError) {
  VerifyOptions options;
  options.keys = {verify_key_};
  options.traces = {keys_.folder.Write("x", "not a trace at all")};
  EXPECT_EQ(RunWith(options).status, 1);
  options.traces = {keys_.folder.Path("missing")};
  EXPECT_EQ(RunWith(options).status, 3);
  ASSERT_EQ(::mkdir(keys_.folder.Path("empty").c_str(), 0700), 0);
  options.traces = {keys_.folder.Path("empty")};
  EXPECT_EQ(RunWith(options).status, 2);
}

TEST_F(VerifyTest, QuietPrintsOnlyWhatIsWrong) {
  auto trace = SealedTrace::Make(sealed_, kBlocks, TestSerial());
  VerifyOptions options;
  options.keys = {verify_key_};
  options.quiet = true;
  options.traces = {keys_.folder.Write("trace", trace.Bytes())};
  EXPECT_EQ(RunWith(options).out, "");
  trace.frames.erase(trace.frames.begin() + 5);
  options.traces = {keys_.folder.Write("trace", trace.Bytes())};
  EXPECT_EQ(RunWith(options).verdicts, "missing 5");
}

TEST_F(VerifyTest, OptionsThatMakeNoSenseAreRefused) {
  const char* none[] = {"tracefs-verify"};
  EXPECT_FALSE(ParseVerifyOptions(1, none).ok());
  const char* twice[] = {"tracefs-verify", "-", "-"};
  EXPECT_FALSE(ParseVerifyOptions(3, twice).ok());
  const char* unknown[] = {"tracefs-verify", "--kei", "x", "t"};
  EXPECT_FALSE(ParseVerifyOptions(4, unknown).ok());
  VerifyOptions options;
  options.serial = "123";
  options.traces = {"t"};
  EXPECT_EQ(RunWith(options).status, 2);
}

}  // namespace
}  // namespace tracefs
