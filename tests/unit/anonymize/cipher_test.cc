// The ciphers against the vectors of their standards: RFC 5297 for AES-SIV, the
// samples of NIST SP 800-38G for FF1.
#include <gtest/gtest.h>

#include <random>

#include "anonymize/base64url.h"
#include "anonymize/cbc.h"
#include "anonymize/ff1.h"
#include "anonymize/siv.h"
#include "tests/unit/anonymize/slow_ff1.h"
#include "tracefs/base/hex.h"
#include "tracefs/crypto/hash.h"

namespace tracefs::anonymize {
namespace {

std::string Bytes(std::string_view hex) {
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') digits += c;
  }
  std::vector<std::byte> bytes(digits.size() / 2);
  EXPECT_TRUE(FromHex(digits, bytes)) << hex;
  return std::string(AsText(bytes));
}

std::string Seal(Siv& siv, const std::string& plain) {
  std::vector<std::byte> out(Siv::kTagBytes + plain.size());
  EXPECT_TRUE(siv.Seal(AsBytes(plain), out.data()).ok());
  return std::string(AsText(out));
}

TEST(Siv, ReproducesRfc5297ExampleA1) {
  const std::string key = Bytes(
      "fffefdfc fbfaf9f8 f7f6f5f4 f3f2f1f0"
      "f0f1f2f3 f4f5f6f7 f8f9fafb fcfdfeff");
  const std::string data =
      Bytes("10111213 14151617 18191a1b 1c1d1e1f 20212223 24252627");
  const ByteSpan associated[] = {AsBytes(data)};
  auto siv = Siv::Create(AsBytes(key), associated);
  ASSERT_TRUE(siv.ok());
  EXPECT_EQ(Seal(*siv, Bytes("11223344 55667788 99aabbcc ddee")),
            Bytes("85632d07 c6e8f37f 950acd32 0a2ecc93"
                  "40c02b96 90c4dc04 daef7f6a fe5c"));
}

TEST(Siv, ReproducesRfc5297ExampleA2) {
  const std::string key = Bytes(
      "7f7e7d7c 7b7a7978 77767574 73727170"
      "40414243 44454647 48494a4b 4c4d4e4f");
  const std::string first = Bytes(
      "00112233 44556677 8899aabb ccddeeff deaddada deaddada"
      "ffeeddcc bbaa9988 77665544 33221100");
  const std::string second = Bytes("10203040 50607080 90a0");
  const std::string nonce = Bytes("09f91102 9d74e35b d84156c5 635688c0");
  const ByteSpan associated[] = {AsBytes(first), AsBytes(second),
                                 AsBytes(nonce)};
  auto siv = Siv::Create(AsBytes(key), associated);
  ASSERT_TRUE(siv.ok());
  EXPECT_EQ(Seal(*siv, "this is some plaintext to encrypt using SIV-AES"),
            Bytes("7bdb6e3b 432667eb 06f4d14b ff2fbd0f cb900f2f ddbe4043"
                  "26601965 c889bf17 dba77ceb 094fa663 b7a3f748 ba8af829"
                  "ea64ad54 4a272e9c 485b62a3 fd5c0d"));
}

// The fast path copies a keyed context: a second value must not see the first.
TEST(Siv, EveryValueStandsAlone) {
  const std::string key(64, 'k');
  auto one = Siv::Create(AsBytes(key));
  ASSERT_TRUE(one.ok());
  for (int i = 0; i < 3; ++i) {
    for (const std::string plain : {"a", "bb", "a"}) {
      auto fresh = Siv::Create(AsBytes(key));
      ASSERT_TRUE(fresh.ok());
      EXPECT_EQ(Seal(*one, plain), Seal(*fresh, plain));
    }
  }
}

TEST(Siv, NoticesAWrongKeyAndAChangedBit) {
  auto right = Siv::Create(AsBytes(std::string(64, 'r')));
  auto wrong = Siv::Create(AsBytes(std::string(64, 'w')));
  ASSERT_TRUE(right.ok() && wrong.ok());
  std::string sealed = Seal(*right, "secret");
  std::byte out[64];
  EXPECT_TRUE(right->Open(AsBytes(sealed), out));
  EXPECT_EQ(AsText({out, 6}), "secret");
  EXPECT_FALSE(wrong->Open(AsBytes(sealed), out));
  for (char& c : sealed) {
    c = static_cast<char>(c ^ 1);
    EXPECT_FALSE(right->Open(AsBytes(sealed), out));
    c = static_cast<char>(c ^ 1);
  }
  EXPECT_FALSE(right->Open(AsBytes(sealed).first(16), out));
  EXPECT_FALSE(right->Seal({}, out).ok());
}

std::vector<uint32_t> Numerals(std::string_view text) {
  std::vector<uint32_t> out;
  for (const char c : text) {
    out.push_back(static_cast<uint32_t>(c >= 'a' ? c - 'a' + 10 : c - '0'));
  }
  return out;
}

TEST(Ff1, OracleReproducesTheNineNistSamples) {
  const std::string keys[] = {
      Bytes("2B7E151628AED2A6ABF7158809CF4F3C"),
      Bytes("2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F"),
      Bytes("2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F"
            "7F036D6F04FC6A94")};
  const std::string tweaks[] = {"", Bytes("39383736353433323130"),
                                Bytes("3737373770717273373737")};
  const char* const expected[3][3] = {
      {"2433477484", "6124200773", "a9tv40mll9kdu509eum"},
      {"2830668132", "2496655549", "xbj3kv35jrawxv32ysr"},
      {"6657667009", "1001623463", "xs8a0azh2avyalyzuwd"}};
  for (int k = 0; k < 3; ++k) {
    for (int sample = 0; sample < 3; ++sample) {
      const bool letters = sample == 2;
      EXPECT_EQ(SlowFf1Encrypt(
                    keys[k], tweaks[sample], letters ? 36 : 10,
                    Numerals(letters ? "0123456789abcdefghi" : "0123456789")),
                Numerals(expected[k][sample]))
          << "key " << k << ", sample " << sample;
    }
  }
}

uint64_t Slow(const std::string& key, uint64_t value, int bits) {
  std::vector<uint32_t> digits;
  for (int i = bits; i-- > 0;) digits.push_back(value >> i & 1);
  uint64_t out = 0;
  for (const uint32_t d : SlowFf1Encrypt(key, "", 2, digits)) {
    out = out << 1 | d;
  }
  return out;
}

TEST(Ff1, AgreesWithTheOracleOnIntegers) {
  std::mt19937_64 random(1);
  for (const int bits : {32, 64}) {
    std::string key(32, '\0');
    for (char& c : key) c = static_cast<char>(random());
    auto ff1 = Ff1::Create(AsBytes(key), bits);
    ASSERT_TRUE(ff1.ok());
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : 0xffffffff;
    std::vector<uint64_t> values = {0, 1, 2, 1000, 65534, mask, mask - 1};
    for (int i = 0; i < 100; ++i) values.push_back(random() & mask);
    std::vector<uint64_t> mapped = values;
    ASSERT_TRUE(ff1->Encrypt(mapped).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(mapped[i], Slow(key, values[i], bits)) << values[i];
      EXPECT_LE(mapped[i], mask);
    }
  }
}

TEST(Ff1, BatchesOfAnySizeAreReversible) {
  auto ff1 = Ff1::Create(AsBytes(std::string(32, 'k')), 32);
  ASSERT_TRUE(ff1.ok());
  for (const size_t n : {1, 2, 511, 512, 513, 1500}) {
    std::vector<uint64_t> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = i * 7;
    std::vector<uint64_t> mapped = values;
    ASSERT_TRUE(ff1->Encrypt(mapped).ok());
    std::vector<uint64_t> alone = {values[n - 1]};
    ASSERT_TRUE(ff1->Encrypt(alone).ok());
    EXPECT_EQ(alone[0], mapped[n - 1]);
    ASSERT_TRUE(ff1->Decrypt(mapped).ok());
    EXPECT_EQ(mapped, values);
  }
}

TEST(Cbc, PadsAndReverses) {
  auto cbc = Cbc::Create(AsBytes(std::string(48, 'k')));
  ASSERT_TRUE(cbc.ok());
  for (const size_t n : {0, 1, 15, 16, 17, 300}) {
    const std::string plain(n, 'x');
    std::string sealed;
    std::string back;
    ASSERT_TRUE(cbc->Seal(plain, &sealed).ok());
    EXPECT_EQ(sealed.size(), (n / 16 + 1) * 16);
    EXPECT_TRUE(cbc->Open(sealed, &back));
    EXPECT_EQ(back, plain);
  }
}

TEST(Base64url, HasOneSpelling) {
  std::mt19937_64 random(1);
  for (size_t n = 0; n < 70; ++n) {
    std::string bytes(n, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    std::string text;
    AppendBase64url(AsBytes(bytes), &text);
    EXPECT_EQ(text.size(), Base64urlSize(n));
    std::vector<std::byte> back;
    ASSERT_TRUE(FromBase64url(text, &back));
    EXPECT_EQ(AsText(back), bytes);
  }
  std::vector<std::byte> out;
  EXPECT_FALSE(FromBase64url("A", &out));
  EXPECT_FALSE(FromBase64url("AB", &out));  // bits that stand for nothing
  EXPECT_FALSE(FromBase64url("A+A=", &out));
}

}  // namespace
}  // namespace tracefs::anonymize
