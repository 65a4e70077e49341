// Rotated traces as tracefs-verify and tracefs-dump see them: written by the
// real file driver, then lost, mixed up and changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "drivers/output/file.h"
#include "tests/unit/filters/output/chain_end.h"
#include "tests/unit/tools/sealed_trace.h"
#include "tracefs/format/marks.h"
#include "tracefs/reader/trace_files.h"
#include "tracefs/tools/dump/dump.h"
#include "tracefs/tools/verify/verify.h"

namespace tracefs {
namespace {

constexpr size_t kBlocks = 12;

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

class RotatedTest : public testing::Test {
 protected:
  RotatedTest() {
    verify_key_ = keys_.folder.Write(
        "verify", KeyLine(KeyKind::kSealVerify, FilledKey(0x22).get()));
    folder_ = keys_.folder.Path("d");
  }

  // Writes a trace through `filters` to folder_, three blocks a file.
  void WriteTrace(const std::string& filters, uint8_t serial = 0x10,
                  const std::string& name = "t") {
    std::filesystem::create_directory(folder_);
    const SealedTrace trace =
        SealedTrace::Make(filters, kBlocks, TestSerial(serial));
    OutputFileId id;
    auto driver = FileDriver::Create(
        {.path = folder_ + "/" + name, .rotation = {.events = 3}}, &id);
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    TraceIdentity identity;
    identity.serial = trace.serial;
    identity.preamble = trace.preamble;
    ASSERT_TRUE((*driver)->Initialize(identity).ok());
    for (size_t i = 0; i < kBlocks; ++i) {
      const ByteSpan frame = AsBytes(trace.frames[i]);
      ASSERT_TRUE(
          (*driver)
              ->Write(frame.first(format::kFrameHeaderBytes),
                      frame.subspan(format::kFrameHeaderBytes),
                      {.sequence = i, .events = 1, .last = i + 1 == kBlocks})
              .ok());
    }
    ASSERT_TRUE((*driver)->Release().ok());
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  void Replace(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }

  Outcome RunVerify(const std::string& key, bool accept_unsealed = false) {
    VerifyOptions options;
    if (!key.empty()) options.keys = {key};
    options.traces = {folder_};
    options.accept_unsealed = accept_unsealed;
    StringOutput out;
    StringOutput err;
    Outcome outcome;
    outcome.status = Verify(options, out, err);
    EXPECT_TRUE(err.Flush().ok());
    outcome.out = out.text();
    outcome.err = err.text();
    return outcome;
  }
  Outcome RunDump(bool follow = false) {
    DumpOptions options;
    options.follow = follow;
    options.traces = {folder_};
    options.stats = true;
    StringOutput out;
    StringOutput err;
    const std::atomic<bool> stop{false};
    Outcome outcome;
    outcome.status = Dump(options, out, err, stop);
    outcome.out = out.text();
    outcome.err = err.text();
    return outcome;
  }

  TestKeys keys_;
  std::string verify_key_;
  std::string folder_;
};

TEST_F(RotatedTest, AFolderOfFilesVerifiesAsOneTrace) {
  const std::vector<std::pair<std::string, std::string>> variants = {
      {"checksum" + keys_.SealOption() + ";", verify_key_},
      {"checksum" + keys_.KeyOption() + ";", keys_.secret},
      {"compress; encrypt" + keys_.KeyOption() + ";", keys_.secret},
      {"compress; encrypt" + keys_.KeyOption() + "; checksum" +
           keys_.KeyOption() + ";",
       keys_.secret}};
  for (const auto& [filters, key] : variants) {
    WriteTrace(filters);
    ASSERT_GE(Files().size(), 3u);
    const Outcome outcome = RunVerify(key);
    EXPECT_EQ(outcome.status, 0) << filters << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("0-11"), std::string::npos) << outcome.out;
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(RotatedTest, WithoutASealItPassesUnlessKeysAreGiven) {
  WriteTrace("checksum alg = crc32c;");
  const Outcome without = RunVerify("");
  EXPECT_EQ(without.status, 0) << without.out;
  EXPECT_NE(without.out.find("not sealed"), std::string::npos) << without.out;
  EXPECT_EQ(RunVerify(verify_key_).status, 1);
  const Outcome accepted = RunVerify(verify_key_, /*accept_unsealed=*/true);
  EXPECT_EQ(accepted.status, 0) << accepted.out;
}

TEST_F(RotatedTest, NamesDoNotMatter) {
  WriteTrace("checksum" + keys_.SealOption() + ";");
  const std::vector<std::string> files = Files();
  std::filesystem::rename(files[0], folder_ + "/z");
  std::filesystem::rename(files[1], folder_ + "/y");
  std::filesystem::rename(files[2], folder_ + "/x");
  EXPECT_EQ(RunVerify(verify_key_).status, 0);
  const std::vector<TraceFiles> joined = JoinParts(Files());
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0].paths[0], folder_ + "/z");
  EXPECT_EQ(joined[0].paths[2], folder_ + "/x");
  EXPECT_NE(joined[0].name.find("and"), std::string::npos);
}

TEST_F(RotatedTest, OneFileStandsForAllThatLieBesideIt) {
  WriteTrace("");
  const std::vector<std::string> files = Files();
  ASSERT_GE(files.size(), 3u);
  // Of another trace, of none, and called otherwise.
  std::filesystem::copy(files[1], folder_ + "/other");
  Replace(files[0] + ".000999", "not a trace");
  Replace(files[0] + ".1", "not a part");
  for (const std::string& file : files) EXPECT_EQ(AllParts(file), files);
  EXPECT_EQ(AllParts(folder_ + "/other"), std::vector{folder_ + "/other"});
  EXPECT_EQ(AllParts(files[0] + ".000999"), std::vector{files[0] + ".000999"});
  EXPECT_EQ(AllParts("nowhere/t"), std::vector<std::string>{"nowhere/t"});
  std::filesystem::remove(files[0] + ".000999");
  std::filesystem::remove(files[0]);
  const std::vector<std::string> rest(files.begin() + 1, files.end());
  EXPECT_EQ(AllParts(files[0]), rest);
  EXPECT_EQ(AllParts(files[2]), rest);
}

TEST_F(RotatedTest, AMissingFileIsNamed) {
  for (const bool sealed : {true, false}) {
    for (size_t gone = 0; gone < 3; ++gone) {
      WriteTrace(sealed ? "checksum" + keys_.SealOption() + ";" : "");
      std::filesystem::remove(Files()[gone]);
      const Outcome outcome = RunVerify(sealed ? verify_key_ : "", !sealed);
      EXPECT_EQ(outcome.status, 1) << gone << outcome.out;
      EXPECT_NE(outcome.out.find("missing"), std::string::npos) << outcome.out;
      EXPECT_NE(outcome.out.find("part " + std::to_string(gone) + " of"),
                std::string::npos)
          << outcome.out;
      std::filesystem::remove_all(folder_);
    }
  }
}

TEST_F(RotatedTest, EveryFlippedByteIsFound) {
  WriteTrace("checksum" + keys_.SealOption() + ";");
  std::mt19937 random(1);
  for (const std::string& file : Files()) {
    const std::string text = TempFolder::Read(file);
    for (size_t at = random() % 13; at < text.size(); at += 13) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (random() % 8)));
      Replace(file, changed);
      EXPECT_EQ(RunVerify(verify_key_).status, 1) << file << " byte " << at;
    }
    Replace(file, text);
  }
  EXPECT_EQ(RunVerify(verify_key_).status, 0);
}

TEST_F(RotatedTest, AnExchangedBlockWithoutAKeyBreaksTheLink) {
  WriteTrace("");
  const std::string file = Files()[1];
  std::string text = TempFolder::Read(file);
  // The last block of the second part, before its end mark, gets other
  // contents and the right CRC.
  ByteSpan rest = AsBytes(text);
  rest = rest.subspan(*format::PreambleLength(rest));
  size_t last = 0;
  size_t size = 0;
  while (!rest.empty()) {
    format::FrameHeader header;
    ASSERT_TRUE(format::DecodeFrameHeader(
        rest.first<format::kFrameHeaderBytes>(), &header));
    if (header.kind == 1) {
      last = text.size() - rest.size();
      size = format::kFrameHeaderBytes + header.payload_bytes;
    }
    rest = rest.subspan(format::kFrameHeaderBytes + header.payload_bytes);
  }
  std::string frame = text.substr(last, size);
  format::FrameHeader header;
  ASSERT_TRUE(format::DecodeFrameHeader(
      AsBytes(frame).first<format::kFrameHeaderBytes>(), &header));
  std::string payload = frame.substr(format::kFrameHeaderBytes);
  payload[60] = static_cast<char>(payload[60] ^ 1);
  text.replace(last, size, MakeFrame(header, payload));
  Replace(file, text);
  const Outcome outcome = RunVerify("", /*accept_unsealed=*/true);
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_NE(outcome.out.find("does not belong"), std::string::npos)
      << outcome.out;
}

TEST_F(RotatedTest, ABlockThatCallsItselfAMarkIsMissed) {
  // Readers skip marks and unknown kinds: a way to hide a block.
  for (const uint16_t kind : {2, 16, 17, 18}) {
    const std::string sealed = "checksum" + keys_.SealOption() + ";";
    SealedTrace trace =
        SealedTrace::Make(sealed, kBlocks, TestSerial(uint8_t(kind)));
    for (const size_t block : {size_t{1}, size_t{5}, kBlocks - 1}) {
      SealedTrace changed = trace;
      changed.frames[block] =
          MakeFrame({.sequence = block, .serial = trace.serial, .kind = kind},
                    trace.Payload(block));
      std::filesystem::create_directory(folder_);
      Replace(folder_ + "/t", changed.Bytes());
      const Outcome outcome = RunVerify(verify_key_);
      EXPECT_EQ(outcome.status, 1)
          << "kind " << kind << ", block " << block << "\n"
          << outcome.out;
      std::filesystem::remove_all(folder_);
    }
  }
}

TEST_F(RotatedTest, TheSameFileTwiceIsFound) {
  WriteTrace("checksum" + keys_.SealOption() + ";");
  std::filesystem::copy(Files()[1], folder_ + "/again");
  EXPECT_EQ(RunVerify(verify_key_).status, 1);
}

TEST_F(RotatedTest, ACutLastFileIsFound) {
  WriteTrace("checksum" + keys_.SealOption() + ";");
  const std::string file = Files().back();
  const std::string text = TempFolder::Read(file);
  for (size_t size = 45; size < text.size(); size += 17) {
    Replace(file, text.substr(0, size));
    EXPECT_EQ(RunVerify(verify_key_).status, 1) << size;
  }
}

TEST_F(RotatedTest, DumpReadsAFolderInOrder) {
  WriteTrace("");
  const Outcome whole = RunDump();
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.err, "");
  std::filesystem::remove(Files()[1]);
  const Outcome gap = RunDump();
  EXPECT_EQ(gap.status, 1);
  EXPECT_NE(gap.err.find("missing"), std::string::npos) << gap.err;
}

TEST_F(RotatedTest, FollowingEndsWithTheTraceOrWithAWholePart) {
  WriteTrace("");
  const Outcome whole = RunDump(/*follow=*/true);
  EXPECT_EQ(whole.status, 0) << whole.err;
  std::filesystem::remove(Files().back());
  const Outcome part = RunDump(/*follow=*/true);
  EXPECT_EQ(part.status, 0) << part.err;
  EXPECT_NE(part.err.find("goes on in part"), std::string::npos) << part.err;
}

TEST_F(RotatedTest, AReaderWrittenFromTheSpecificationReadsThePartsToo) {
  WriteTrace("");
  std::string all;
  std::vector<std::string> inputs = Files();
  for (const std::string& file : inputs) all += TempFolder::Read(file);
  inputs.push_back(keys_.folder.Write("all", all));
  for (const std::string& file : inputs) {
    const std::string command =
        "python3 -B tests/golden/independent_reader.py '" + file +
        "' >/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << file;
  }
}

TEST_F(RotatedTest, DumpTellsTwoTracesInAFolderApart) {
  WriteTrace("");
  WriteTrace("", 0x50, "u");
  EXPECT_EQ(JoinParts(Files()).size(), 2u);
  EXPECT_EQ(RunDump().status, 0);
}

TEST_F(RotatedTest, AnEmptyFolderIsAnError) {
  std::filesystem::create_directory(folder_);
  const Outcome outcome = RunDump();
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("no file"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
