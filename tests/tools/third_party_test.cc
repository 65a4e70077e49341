// What our output filters make, undone and checked by others: Python's zlib,
// openssl, age and zstd, put together by a verifier written from FORMAT.md.
#include <gtest/gtest.h>
#include <stdio.h>

#include <memory>
#include <sstream>

#include "tests/unit/filters/output/chain_end.h"
#include "tests/unit/tools/sealed_trace.h"
#include "tracefs/base/hex.h"

namespace tracefs {
namespace {

// What a shell command prints, or "" if it fails.
std::string OutputOf(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return text;
  char part[4096];
  while (const size_t n = ::fread(part, 1, sizeof part, pipe)) {
    text.append(part, n);
  }
  return ::pclose(pipe) == 0 ? text : std::string();
}

bool Have(const std::string& command) {
  return !OutputOf(command + " 2>&1 && echo yes").empty();
}

class ThirdPartyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Have("python3 --version") || !Have("openssl version")) {
      GTEST_SKIP() << "python3 and the openssl command are needed";
    }
    verify_ = keys_.folder.Write(
        "verify", KeyLine(KeyKind::kSealVerify, FilledKey(0x22).get()) + "\n");
    const auto signer = Signer::Create(FilledKey(0x33).get());
    public_ = keys_.folder.Write(
        "public",
        KeyLine(KeyKind::kSignPublic, KeySpan(signer->public_key())) + "\n");
    identity_ = keys_.folder.Write(
        "identity", AgeIdentityText(FilledKey(0x44).get()) + "\n");
  }

  // What the other verifier says, a line a frame.
  std::vector<std::string> Lines(const SealedTrace& trace) {
    const std::string path = keys_.folder.Write("trace", trace.Bytes());
    std::istringstream out(OutputOf("python3 " INDEPENDENT_VERIFIER " " + path +
                                    " " + keys_.secret + " " + verify_ + " " +
                                    public_ + " " + identity_));
    std::vector<std::string> lines;
    std::string line;
    while (std::getline(out, line)) lines.push_back(line);
    return lines;
  }

  // The other one reads what we wrote, byte for byte, and finds a change.
  void ExpectAgreement(const std::string& filters, bool finds_changes) {
    const auto trace = SealedTrace::Make(filters, 4, TestSerial());
    const std::vector<std::string> lines = Lines(trace);
    ASSERT_EQ(lines.size(), 4u) << filters;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i], std::to_string(i) + " ok " +
                              Hex(LinkOf(AsBytes(trace.contents[i]))))
          << filters;
    }
    if (!finds_changes) return;
    SealedTrace bad = trace;
    std::string payload = bad.Payload(2);
    payload[payload.size() / 2] ^= 4;
    bad.SetPayload(2, payload);
    const std::vector<std::string> found = Lines(bad);
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[1], lines[1]);
    EXPECT_EQ(found[2].substr(0, 5), "2 bad") << filters;
    EXPECT_EQ(found[3], lines[3]);
  }

  TestKeys keys_;
  std::string verify_, public_, identity_;
};

TEST_F(ThirdPartyTest, PythonsZlibReadsCompress) {
  ExpectAgreement("compress;", true);
  ExpectAgreement("compress level = 9;", true);
}

TEST_F(ThirdPartyTest, TheZstdCommandReadsCompress) {
  if (!Have("zstd --version")) GTEST_SKIP() << "no zstd command";
  ExpectAgreement("compress alg = zstd;", false);
}

TEST_F(ThirdPartyTest, OpensslMacChecksChecksum) {
  const std::string key = keys_.KeyOption();
  ExpectAgreement("checksum" + key + ";", true);
  ExpectAgreement("checksum alg = hmac-md5" + key + ";", true);
  ExpectAgreement("checksum" + keys_.SealOption() + ";", true);
  ExpectAgreement("checksum alg = crc32c;", true);
}

TEST_F(ThirdPartyTest, OpensslPkeyutlChecksSignatures) {
  ExpectAgreement("checksum alg = crc32c" + keys_.SignOption() + ";", true);
  ExpectAgreement("checksum" + keys_.SealOption() + keys_.SignOption() + ";",
                  true);
}

TEST_F(ThirdPartyTest, OpensslEncDecryptsEncrypt) {
  ExpectAgreement("encrypt cipher = aes-128-ctr" + keys_.KeyOption() + ";",
                  false);
  if (!Have("openssl list -providers -provider legacy")) {
    GTEST_SKIP() << "openssl has no legacy provider: bf-cbc not checked";
  }
  ExpectAgreement("encrypt cipher = bf-cbc" + keys_.KeyOption() + ";", false);
}

TEST_F(ThirdPartyTest, PythonsCryptographyDecryptsEncrypt) {
  if (!Have("python3 -c 'import cryptography'")) {
    GTEST_SKIP() << "Python's module cryptography is not installed";
  }
  ExpectAgreement("encrypt" + keys_.KeyOption() + ";", false);
  ExpectAgreement(
      "encrypt cipher = chacha20-poly1305" + keys_.KeyOption() + ";", false);
}

TEST_F(ThirdPartyTest, AgeUnwrapsTheKeyOfEncrypt) {
  if (!Have("age --version")) GTEST_SKIP() << "no age command";
  ExpectAgreement(
      "encrypt cipher = aes-128-ctr recipient = " + keys_.recipient + ";",
      false);
}

TEST_F(ThirdPartyTest, WholeChainsAreUndone) {
  ExpectAgreement("async; compress; encrypt cipher = aes-128-ctr" +
                      keys_.KeyOption() + "; checksum" + keys_.SealOption() +
                      ";",
                  true);
  ExpectAgreement("checksum" + keys_.KeyOption() +
                      "; encrypt cipher = aes-128-ctr" + keys_.KeyOption() +
                      "; throttle ops = 1000000/s; compress;",
                  true);
}

}  // namespace
}  // namespace tracefs
