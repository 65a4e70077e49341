// Keys and cryptography, against published vectors and other programs' output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "tests/support/memory_scan.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/text.h"
#include "tracefs/crypto/age.h"
#include "tracefs/crypto/bech32.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/key_tree.h"
#include "tracefs/crypto/signature.h"

namespace tracefs {
namespace {

std::string FromHexText(std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  EXPECT_TRUE(FromHex(digits, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// The key 00 01 02 … 1f.
SecretKey CountingKey() {
  SecretKey key;
  for (size_t i = 0; i < kKeyBytes; ++i) key.get()[i] = std::byte(i);
  return key;
}

TEST(HashTest, Sha256OfFips180) {
  constexpr std::string_view kAbc =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  Sha256 hash;
  hash.Update(AsBytes("abc"));
  EXPECT_EQ(Hex(hash.Finish()), kAbc);
  hash.Reset();
  hash.Update(AsBytes("forgotten"));
  hash.Reset();
  hash.Update(AsBytes("a"));
  hash.Update(AsBytes("bc"));
  EXPECT_EQ(Hex(hash.Finish()), kAbc);
}

TEST(HashTest, AnErrorIsOneAndSaysOfWhat) {
  const Status status = CryptoError("BF-CBC");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kSystem);
  EXPECT_EQ(status.error(), ENOTSUP);
  EXPECT_NE(status.message().find("BF-CBC: OpenSSL: no reason given"),
            std::string::npos);
}

TEST(HashTest, AnErrorHasTheReasonOnce) {
  ERR_raise(ERR_LIB_USER, ERR_R_MALLOC_FAILURE);
  EXPECT_THAT(CryptoError("X").message(),
              testing::HasSubstr("X: OpenSSL: error:"));
  EXPECT_THAT(CryptoError("X").message(), testing::HasSubstr("no reason given"))
      << "the queue is empty then";
}

TEST(HashTest, EachByteIsRandom) {
  for (const size_t size : {0u, 1u, 32u, 257u, 5000u}) {
    // What others have left in it says nothing.
    errno = EINTR;
    std::vector<std::byte> any(size);
    for (int i = 0; i < 12; ++i) {
      std::vector<std::byte> bytes(size);
      ASSERT_TRUE(RandomBytes(bytes).ok());
      for (size_t at = 0; at < size; ++at) any[at] |= bytes[at];
    }
    // That a byte is 0 each time happens once in 2^96.
    EXPECT_EQ(std::ranges::count(any, std::byte{0}), 0) << size;
  }
}

TEST(HashTest, HmacSha256OfRfc4231Case2) {
  std::array<std::byte, 32> tag;
  HmacSha256(AsBytes("Jefe"), AsBytes("what do ya want for nothing?"), tag);
  EXPECT_EQ(Hex(tag),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(HashTest, HmacMd5OfRfc2104) {
  Result<Mac> mac = Mac::Create("MD5");
  ASSERT_TRUE(mac.ok());
  ASSERT_EQ(mac->size(), 16u);
  for (int again = 0; again < 2; ++again) {
    std::array<std::byte, 16> tag;
    mac->Start(AsBytes("Jefe"));
    mac->Update(AsBytes("what do ya want "));
    mac->Update(AsBytes("for nothing?"));
    mac->Finish(tag.data());
    EXPECT_EQ(Hex(tag), "750c783e6ab0b503eaa86e310a5db738");
  }
}

TEST(HashTest, HkdfOfRfc5869) {
  std::array<std::byte, 42> out;
  const std::string key(22, '\x0b');
  Hkdf(AsBytes(key), AsBytes(FromHexText("000102030405060708090a0b0c")),
       FromHexText("f0f1f2f3f4f5f6f7f8f9"), out);
  EXPECT_EQ(Hex(out),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
            "34007208d5b887185865");
  // Case 3: neither salt nor info.
  Hkdf(AsBytes(key), {}, "", out);
  EXPECT_EQ(Hex(out),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
            "9d201395faa4b61a96c8");
}

TEST(HashTest, HkdfOfLessIsTheBeginningOfMore) {
  std::array<std::byte, 100> most{};
  Hkdf(AsBytes("key"), AsBytes("salt"), "info", most);
  EXPECT_EQ(std::ranges::count(std::span(most).last(4), std::byte{0}), 0);
  for (size_t size = 0; size <= most.size(); ++size) {
    std::vector<std::byte> less(size + 1, std::byte{7});
    Hkdf(AsBytes("key"), AsBytes("salt"), "info", std::span(less).first(size));
    EXPECT_TRUE(std::ranges::equal(std::span(less).first(size),
                                   std::span(most).first(size)))
        << size;
    EXPECT_EQ(less[size], std::byte{7});
  }
}

TEST(HashTest, HexRefusesWhatIsNone) {
  std::array<std::byte, 2> out;
  EXPECT_TRUE(FromHex("0aFf", out));
  EXPECT_EQ(Hex(out), "0aff");
  for (const char* bad :
       {"", "0a", "0afg", "0aff0", "0x0a", " 0af", "0a:f", "0a@f", "0aGf",
        "0a`f", "0agf", "0a/f", "0af:", "0af@", "0af/"}) {
    EXPECT_FALSE(FromHex(bad, out)) << bad;
  }
}

TEST(SignatureTest, OfRfc8032Test1) {
  SecretKey key;
  ASSERT_TRUE(FromHex(
      "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      key.get()));
  const auto signer = Signer::Create(key.get());
  ASSERT_TRUE(signer.ok());
  EXPECT_EQ(Hex(signer->public_key()),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const auto signature = signer->Sign({});
  ASSERT_TRUE(signature.ok());
  EXPECT_EQ(Hex(*signature),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
  EXPECT_TRUE(VerifySignature(signer->public_key(), {}, *signature));
  EXPECT_FALSE(VerifySignature(signer->public_key(), AsBytes("x"), *signature));
  EXPECT_FALSE(VerifySignature(signer->public_key(), {}, AsBytes("short")));
}

TEST(SecretTest, IdsOfKeysAreThoseOfAnotherProgram) {
  // hashlib.sha256(b"tracefs-key-id-1" + bytes(range(32)))
  EXPECT_EQ(KeyIdText(IdOfKey(CountingKey().get())), "8df4c512ec9a112c");
}

// --- Key tree. The expected keys were computed by hand-written Python.

TEST(KeyTreeTest, KeysAreThoseOfTheSpecification) {
  KeyTreeReader reader(CountingKey().get());
  const std::pair<uint64_t, const char*> expected[] = {
      {0, "d39e75d5dbe63d74362ce519a9d8d54adf70c61f073341dd4de3195b53139ede"},
      {1, "1dae79b1f2800cb177569da1cae122e684165915c3e298d8a6b309941e65ca0f"},
      {~uint64_t{0},
       "aacb0be85f9068de271fd1f11d89cb6acbafe2aac99133ee138c7e2518ca33de"},
      {0x0123456789abcdef,
       "520d914ac29ff3c190869443072fa47ca5770395fa512985904bce44ca1aee7d"},
      {1, "1dae79b1f2800cb177569da1cae122e684165915c3e298d8a6b309941e65ca0f"},
  };
  for (const auto& [number, hex] : expected) {
    EXPECT_EQ(Hex(reader.KeyOf(number)), hex) << number;
  }
}

TEST(KeyTreeTest, WriterAndReaderAgreeWhateverIsSkipped) {
  KeyTreeReader reader(CountingKey().get());
  std::mt19937_64 random(3);
  for (int run = 0; run < 20; ++run) {
    KeyTreeWriter writer(CountingKey().get());
    uint64_t number = 0;
    for (int i = 0; i < 40; ++i) {
      const auto key = writer.KeyOf(number);
      ASSERT_TRUE(key);
      EXPECT_TRUE(EqualSecrets(*key, reader.KeyOf(number)));
      const uint64_t step = random() >> (random() % 64);
      if (number + step < number) break;
      number += step;
    }
  }
}

TEST(KeyTreeTest, WhatIsForgottenStaysForgotten) {
  KeyTreeWriter writer(CountingKey().get());
  EXPECT_EQ(writer.first(), 0u);
  ASSERT_TRUE(writer.KeyOf(7));
  EXPECT_EQ(writer.first(), 7u);
  EXPECT_FALSE(writer.KeyOf(6));
  ASSERT_TRUE(writer.KeyOf(7));
  writer.ForgetBelow(8);
  EXPECT_FALSE(writer.KeyOf(7));
  ASSERT_TRUE(writer.KeyOf(8));
  ASSERT_TRUE(writer.KeyOf(~uint64_t{0}));
  EXPECT_FALSE(writer.KeyOf(8));
}

TEST(KeyTreeTest, ASavedStateHoldsNoEarlierKeyAndGoesOn) {
  KeyTreeReader reader(CountingKey().get());
  KeyTreeWriter writer(CountingKey().get());
  for (uint64_t number = 0; number < 70; ++number) {
    std::string text;
    writer.Save(&text);
    EXPECT_LE(text.size(), KeyTreeWriter::kMaxSavedBytes);
    auto loaded = KeyTreeWriter::Load(text);
    ASSERT_TRUE(loaded) << text;
    EXPECT_EQ(loaded->first(), number);
    EXPECT_TRUE(EqualSecrets(*loaded->KeyOf(number), reader.KeyOf(number)));
    if (number > 0) {
      // No seed of the state leads to an earlier key: all stand higher.
      EXPECT_EQ(text.find(Hex(reader.KeyOf(number - 1))), text.npos);
      EXPECT_FALSE(KeyTreeWriter::Load(text)->KeyOf(number - 1));
    }
    writer.ForgetBelow(number + 1);
  }
}

TEST(KeyTreeTest, Malicious_StatesThatAreNone) {
  KeyTreeWriter writer(CountingKey().get());
  writer.ForgetBelow(3);
  std::string good;
  writer.Save(&good);
  ASSERT_TRUE(KeyTreeWriter::Load(good));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(KeyTreeWriter::Load(good.substr(0, size))) << size;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = 'z';
    EXPECT_FALSE(KeyTreeWriter::Load(bad)) << i;
  }
  EXPECT_FALSE(KeyTreeWriter::Load(good + good));
  // Lines that are right and not in their order: one left out, one twice, two
  // exchanged. Keys of what is between would be lost, or made twice.
  std::vector<std::string> lines;
  for (std::string_view rest = good; !rest.empty();) {
    lines.push_back(std::string(TakeUpTo(rest, '\n')) + '\n');
  }
  ASSERT_GT(lines.size(), 3u);
  const auto joined = [](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& line : all) text += line;
    return text;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    auto other = lines;
    other.insert(other.begin() + static_cast<ptrdiff_t>(i), lines[i]);
    EXPECT_FALSE(KeyTreeWriter::Load(joined(other))) << i << " twice";
    other = lines;
    other.erase(other.begin() + static_cast<ptrdiff_t>(i));
    // Without its first it is the state of a later trace.
    EXPECT_EQ(KeyTreeWriter::Load(joined(other)).has_value(), i == 0) << i;
    other = lines;
    std::swap(other[i], other[(i + 1) % lines.size()]);
    EXPECT_FALSE(KeyTreeWriter::Load(joined(other))) << i << " exchanged";
  }
  EXPECT_FALSE(KeyTreeWriter::Load("64 1 " + std::string(64, '0') +
                                   "\n"));  // not a node of the tree
}

TEST(KeyTreeTest, Malicious_ATreeThatBeginsAgain) {
  std::string root;
  KeyTreeWriter(CountingKey().get()).Save(&root);
  EXPECT_TRUE(KeyTreeWriter::Load(root));
  EXPECT_FALSE(KeyTreeWriter::Load(root + root));
}

TEST(KeyTreeTest, Malicious_MoreNodesThanATreeHas) {
  std::string text;
  for (size_t i = 0; i < 80; ++i) {
    text += "0 " + std::to_string(i) + ' ' + std::string(64, '0') + '\n';
    EXPECT_FALSE(KeyTreeWriter::Load(text)) << i;
  }
}

// --- Ciphers

TEST(CipherTest, AreFoundByNameAndId) {
  for (const CipherRow& row : Ciphers()) {
    EXPECT_EQ(FindCipher(row.name), &row);
    EXPECT_EQ(FindCipher(row.id), &row);
  }
  EXPECT_EQ(FindCipher("rot13"), nullptr);
}

TEST(CipherTest, OpeningWritesWhatItSaysAndNoMore) {
  for (const CipherRow& row : Ciphers()) {
    auto cipher = Cipher::Create(row.id);
    ASSERT_TRUE(cipher.ok());
    const std::string key(row.key_bytes, 'k');
    const std::string iv(row.iv_bytes, 'i');
    for (const size_t size : {0u, 1u, 8u, 16u, 17u}) {
      std::string sealed(size + row.pad_bytes + row.tag_bytes, '\0');
      const auto n = cipher->Seal(AsBytes(key), AsBytes(iv), {},
                                  AsBytes(std::string(size, 'p')),
                                  std::as_writable_bytes(std::span(sealed)));
      ASSERT_TRUE(n.ok());
      std::string opened(sealed.size() + 64, '#');
      const auto m =
          cipher->Open(AsBytes(key), AsBytes(iv), {}, AsBytes(sealed).first(*n),
                       std::as_writable_bytes(std::span(opened)));
      ASSERT_TRUE(m.ok());
      EXPECT_EQ(opened[*m], '#') << row.name << ' ' << size;
    }
  }
}

TEST(CipherTest, SealsAndOpensEverySize) {
  for (const CipherRow& row : Ciphers()) {
    auto cipher = Cipher::Create(row.id);
    ASSERT_TRUE(cipher.ok()) << cipher.status().message();
    const std::string key(row.key_bytes, 'k');
    const std::string iv(row.iv_bytes, 'i');
    for (const size_t size : {0u, 1u, 7u, 8u, 15u, 16u, 17u, 4096u, 100003u}) {
      const std::string plain(size, 'p');
      std::string sealed(size + row.pad_bytes + row.tag_bytes, '\0');
      const auto n = cipher->Seal(AsBytes(key), AsBytes(iv), AsBytes("head"),
                                  AsBytes(plain),
                                  std::as_writable_bytes(std::span(sealed)));
      ASSERT_TRUE(n.ok()) << row.name << n.status().message();
      sealed.resize(*n);
      EXPECT_TRUE(size < 8 || sealed.find(plain) == sealed.npos);
      std::string opened(sealed.size(), '\0');
      const auto m = cipher->Open(AsBytes(key), AsBytes(iv), AsBytes("head"),
                                  AsBytes(sealed),
                                  std::as_writable_bytes(std::span(opened)));
      ASSERT_TRUE(m.ok()) << row.name << m.status().message();
      EXPECT_TRUE(opened.substr(0, *m) == plain);
      if (row.tag_bytes == 0) continue;
      EXPECT_FALSE(cipher
                       ->Open(AsBytes(key), AsBytes(iv), AsBytes("heaD"),
                              AsBytes(sealed),
                              std::as_writable_bytes(std::span(opened)))
                       .ok());
    }
  }
}

TEST(CipherTest, Malicious_ShorterThanItsTag) {
  auto cipher = Cipher::Create(CipherId::kAes256Gcm);
  ASSERT_TRUE(cipher.ok());
  const std::string key(32, 'k');
  EXPECT_FALSE(
      cipher->Open(AsBytes(key), AsBytes("iviviviviviv"), {}, AsBytes("x"), {})
          .ok());
}

TEST(CipherTest, WhatIsTooLongIsRefusedAndNotRead) {
  // OpenSSL counts in int. Nothing here may be read: it is not there.
  const size_t size = size_t{1} << 31;
  void* const place =
      ::mmap(nullptr, 2 * size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) GTEST_SKIP() << "no room for addresses";
  auto* const bytes = static_cast<std::byte*>(place);
  const std::string key(32, 'k');
  for (const CipherRow& row : Ciphers()) {
    auto cipher = Cipher::Create(row.id);
    ASSERT_TRUE(cipher.ok()) << cipher.status().message();
    const ByteSpan of_key = AsBytes(key).first(row.key_bytes);
    const ByteSpan iv = AsBytes(key).first(row.iv_bytes);
    for (const size_t length : {size - 1, size, size + 17}) {
      EXPECT_FALSE(
          cipher->Seal(of_key, iv, {}, {bytes, length}, {bytes + size, size})
              .ok());
      EXPECT_FALSE(
          cipher->Open(of_key, iv, {}, {bytes, length}, {bytes + size, size})
              .ok());
    }
  }
  ::munmap(place, 2 * size);
}

// --- Bech32 and age

TEST(Bech32Test, OfBip173) {
  std::array<std::byte, 20> data;
  // A segwit program of BIP 173 without its version digit is not a valid
  // example, hence one of its plain vectors: zero bytes of data.
  EXPECT_TRUE(Bech32Decode("a12uel5l", "a", std::span(data).first(0)));
  EXPECT_TRUE(Bech32Decode("A12UEL5L", "a", std::span(data).first(0)));
  EXPECT_FALSE(Bech32Decode("A12uEL5L", "a", std::span(data).first(0)));
  EXPECT_FALSE(Bech32Decode("a12uel5m", "a", std::span(data).first(0)));
}

TEST(Bech32Test, OneLetterOfTheOtherCaseIsTooMuch) {
  const std::array<std::byte, 32> data{std::byte{3}};
  std::array<std::byte, 32> out;
  const std::string lower = Bech32Encode("age", data);
  std::string upper = lower;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  EXPECT_TRUE(Bech32Decode(lower, "age", out));
  EXPECT_TRUE(Bech32Decode(upper, "age", out));
  for (size_t i = 0; i < lower.size(); ++i) {
    if (lower[i] == upper[i]) continue;
    std::string mixed = lower;
    mixed[i] = upper[i];
    EXPECT_FALSE(Bech32Decode(mixed, "age", out)) << i;
    mixed = upper;
    mixed[i] = lower[i];
    EXPECT_FALSE(Bech32Decode(mixed, "age", out)) << i;
  }
}

TEST(Bech32Test, RoundTripAndEveryTypo) {
  std::mt19937 random(1);
  for (size_t size = 0; size < 40; ++size) {
    std::vector<std::byte> data(size);
    for (std::byte& b : data) b = std::byte(random());
    const std::string text = Bech32Encode("age", data);
    std::vector<std::byte> back(size);
    ASSERT_TRUE(Bech32Decode(text, "age", back)) << text;
    EXPECT_EQ(back, data);
    for (size_t i = 0; i < text.size(); ++i) {
      std::string bad = text;
      bad[i] = bad[i] == 'q' ? 'p' : 'q';
      EXPECT_FALSE(Bech32Decode(bad, "age", back)) << bad;
    }
  }
}

// Made by age-keygen and age 1.1.1: the bytes 00 01 … 1f for two recipients.
constexpr std::string_view kIdentity1 =
    "AGE-SECRET-KEY-"
    "1XGNK0ZWATSLQ6JU5A5ANTWYSX2UKDS5CM2EP4ZY82MND3VMR7MHSQ5E0GJ";
constexpr std::string_view kIdentity2 =
    "AGE-SECRET-KEY-"
    "1PRE7XNEPT5KNNUDHKKS8VUREWZPK2VC3659FTKAPHVLL24AASCXQ3LWL75";
constexpr std::string_view kRecipient1 =
    "age19vgp70np2j8pcsq35juaquvuz784vn0k42vyjvktrxelme5taq5qvcalup";
constexpr std::string_view kAgeFile =
    "6167652d656e6372797074696f6e2e6f72672f76310a2d3e20583235353139205572687030"
    "54354562636f3756437658755642314a5161416d534248794f797366772b7164375a716978"
    "6b0a735a4e67416f3173694d58364174772b5a304e7a3678745357455731386f2f326c4a38"
    "343451726c3069300a2d3e20583235353139205572383235767232664850782b5859395650"
    "506c426f6b59375965655a4d7a534870414f61503735656c550a6943444938595473524d49"
    "4a707a4f6f674b2b546c332b43713145426a71334f34456b7168514b7a336c510a2d2d2d20"
    "48344e61304a7370656a51577141494f4d3637685a4378346757497247416f735a61413770"
    "5748754278770a49e66dfbb83cca2c82afdd9d647ecef5680958aed9f0cec3743020f3a357"
    "b645145efbd17046a0c0685ac05c3c97158407f8009f3389a9781389485bf066da7c";

SecretKey Identity(std::string_view text) {
  SecretKey identity;
  EXPECT_TRUE(ParseAgeIdentity(text, &identity));
  return identity;
}

std::vector<SecretKey> Identities(std::string_view text) {
  std::vector<SecretKey> identities;
  identities.push_back(Identity(text));
  return identities;
}

TEST(AgeTest, KeysAreThoseOfAgeKeygen) {
  const auto recipient = RecipientOfIdentity(Identity(kIdentity1).get());
  ASSERT_TRUE(recipient.ok());
  EXPECT_EQ(AgeRecipientText(*recipient), kRecipient1);
  EXPECT_EQ(AgeIdentityText(Identity(kIdentity1).get()), kIdentity1);
  AgeRecipient parsed;
  ASSERT_TRUE(ParseAgeRecipient(kRecipient1, &parsed));
  EXPECT_EQ(parsed, *recipient);
}

TEST(AgeTest, ReadsWhatAgeWrote) {
  const std::string file = FromHexText(kAgeFile);
  for (const std::string_view identity : {kIdentity1, kIdentity2}) {
    const auto key = AgeUnwrapKey(AsBytes(file), Identities(identity));
    ASSERT_TRUE(key.ok()) << key.status().message();
    EXPECT_TRUE(EqualSecrets(key->get(), CountingKey().get()));
  }
}

TEST(AgeTest, EachRecipientReadsWhatWeWroteAndNobodyElse) {
  std::vector<AgeRecipient> recipients(2);
  ASSERT_TRUE(ParseAgeRecipient(kRecipient1, &recipients[0]));
  recipients[1] = *RecipientOfIdentity(CountingKey().get());
  const auto file = AgeWrapKey(recipients, CountingKey().get());
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<SecretKey> second;  // identities of the second recipient
  second.push_back(CountingKey());
  std::vector<SecretKey> first = Identities(kIdentity1);
  for (std::vector<SecretKey>* identities : {&first, &second}) {
    const auto key = AgeUnwrapKey(AsBytes(*file), *identities);
    ASSERT_TRUE(key.ok()) << key.status().message();
    EXPECT_TRUE(EqualSecrets(key->get(), CountingKey().get()));
  }
  const auto other = AgeUnwrapKey(AsBytes(*file), Identities(kIdentity2));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), StatusCode::kInvalid);
  const auto none = AgeUnwrapKey(AsBytes(*file), {});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("identity"), std::string::npos);
}

TEST(AgeTest, ARecipientThatMakesNoSecretIsRefused) {
  const AgeRecipient zero{};
  EXPECT_FALSE(AgeWrapKey(std::span(&zero, 1), CountingKey().get()).ok());
}

TEST(AgeTest, Malicious_EveryCutAndEveryFlip) {
  const std::string file = FromHexText(kAgeFile);
  const std::vector<SecretKey> identities = Identities(kIdentity1);
  for (size_t i = 0; i < file.size(); ++i) {
    EXPECT_FALSE(AgeUnwrapKey(AsBytes(file.substr(0, i)), identities).ok());
    std::string bad = file;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(AgeUnwrapKey(AsBytes(bad), identities).ok()) << i;
  }
}

TEST(AgeTest, Malicious_EndlessStanzas) {
  std::string file = "age-encryption.org/v1\n";
  for (int i = 0; i < 5000; ++i) file += "-> x\n\n";
  EXPECT_FALSE(AgeUnwrapKey(AsBytes(file), Identities(kIdentity1)).ok());
}

// What is no age file is told from one that is not for us.
TEST(AgeTest, StanzasAreTakenAsTheFormatHasThem) {
  const std::string file = FromHexText(kAgeFile);
  const size_t first = file.find("-> ");
  const size_t end = file.find("---");
  const auto code_with = [&](const std::string& more) {
    const std::string changed = file.substr(0, first) + more + file.substr(end);
    std::vector<SecretKey> identities;
    identities.push_back(CountingKey());  // of nobody
    return AgeUnwrapKey(AsBytes(changed), identities).status().code();
  };
  const std::string stanza =
      file.substr(first, file.find("-> ", first + 1) - first);
  EXPECT_EQ(code_with(stanza), StatusCode::kInvalid);
  // A line of 64 digits before the last one of the body.
  const size_t body = stanza.find('\n') + 1;
  EXPECT_EQ(code_with(stanza.substr(0, body) + std::string(64, 'A') + '\n' +
                      stanza.substr(body)),
            StatusCode::kCorrupt);
  // Of other types: whatever its body, as many as there may be.
  const std::string other = "-> other thing\n" + std::string(64, 'B') + "\n\n";
  std::string many;
  for (size_t i = 0; i < 2 * kMaxAgeRecipients; ++i) many += other;
  EXPECT_EQ(code_with(many), StatusCode::kInvalid);
  EXPECT_EQ(code_with(many + other), StatusCode::kCorrupt);
  EXPECT_EQ(code_with("-> other\n" + std::string(65, 'B') + "\n\n"),
            StatusCode::kCorrupt);
}

#if defined(__x86_64__)
// From there the dynamic linker, a signal or the compiler writes them to the
// stack.
TEST(SecretTest, ACopiedKeyIsInNoVectorRegister) {
  const SecretKey key = test::KeyNumber(5);
  asm volatile(
      "xorps %%xmm0, %%xmm0\n xorps %%xmm1, %%xmm1\n xorps %%xmm2, %%xmm2\n"
      "xorps %%xmm3, %%xmm3\n xorps %%xmm4, %%xmm4\n xorps %%xmm5, %%xmm5\n"
      "xorps %%xmm6, %%xmm6\n xorps %%xmm7, %%xmm7\n xorps %%xmm8, %%xmm8\n"
      "xorps %%xmm9, %%xmm9\n xorps %%xmm10, %%xmm10\n"
      "xorps %%xmm11, %%xmm11\n xorps %%xmm12, %%xmm12\n"
      "xorps %%xmm13, %%xmm13\n xorps %%xmm14, %%xmm14\n"
      "xorps %%xmm15, %%xmm15\n" ::
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
            "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
            "xmm15");
  struct alignas(16) {
    std::byte bytes[512];
  } state;
  const KeyTreeWriter writer(key.Clone().get());
  asm volatile("fxsave %0" : "=m"(state));
  EXPECT_EQ(writer.first(), 0u);
  for (const size_t half : {size_t{0}, kKeyBytes / 2}) {
    const test::Masked part(key.get().subspan(half, kKeyBytes / 2));
    for (size_t i = 0; i + part.size() <= sizeof state.bytes; ++i) {
      EXPECT_FALSE(part.IsAt(state.bytes + i)) << i;
    }
  }
}
#endif

// The seeds on the way from the root to the key of 0, but for those in between.
std::vector<test::Masked> PathToFirst(unsigned number) {
  std::vector<test::Masked> path;
  SecretKey seed = test::KeyNumber(number);
  path.emplace_back(seed.get());
  for (int height = 63; height >= 0; --height) {
    SecretKey child;
    HmacSha256(seed.get(), AsBytes(std::string_view("tracefs-key-tree\0", 17)),
               child.get());
    seed = std::move(child);
    if (height < 2) path.emplace_back(seed.get());
  }
  return path;
}

// Not on a disk, by being swapped out or in a core dump.
TEST(SecretTest, SecretsStayInMemory) {
  SecretMemory memory(kKeyBytes);
  const auto at = reinterpret_cast<uintptr_t>(memory.bytes().data());
  std::ifstream maps("/proc/self/smaps");
  std::string line, flags;
  for (bool inside = false; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      inside = begin <= at && at < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      flags = line + ' ';
    }
  }
  if (flags.empty()) GTEST_SKIP() << "the kernel does not tell of memory";
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  rlimit most;
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &most), 0);
  if (most.rlim_cur > 1 << 20) {
    EXPECT_NE(flags.find(" lo "), std::string::npos) << flags;
  }
}

// Forward security is about what is in memory, in libraries too.
TEST(KeyTreeTest, WhatLeadsToAForgottenKeyIsNowhereInMemory) {
  const std::vector<test::Masked> path = PathToFirst(3);
  KeyTreeWriter writer(test::KeyNumber(3).get());
  EXPECT_GE(test::CopiesInMemory(path[0]), 1U);
  ASSERT_TRUE(writer.KeyOf(0));
  EXPECT_GE(test::CopiesInMemory(path.back()), 1U);
  writer.ForgetBelow(1);
  for (const test::Masked& seed : path) {
    EXPECT_EQ(test::CopiesInMemory(seed), 0U);
  }
}

TEST(KeyTreeTest, AKeyThatWasNeverUsedIsForgottenEverywhere) {
  const std::vector<test::Masked> path = PathToFirst(4);
  KeyTreeWriter writer(test::KeyNumber(4).get());
  writer.ForgetBelow(1);
  for (const test::Masked& seed : path) {
    EXPECT_EQ(test::CopiesInMemory(seed), 0U);
  }
}

TEST(KeyTreeTest, ALoadedStateForgetsEverywhere) {
  const std::vector<test::Masked> path = PathToFirst(6);
  std::string text;
  KeyTreeWriter(test::KeyNumber(6).get()).Save(&text);
  auto loaded = KeyTreeWriter::Load(text);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(test::CopiesInMemory(path[0]), 1U);
  loaded->ForgetBelow(1);
  for (const test::Masked& seed : path) {
    EXPECT_EQ(test::CopiesInMemory(seed), 0U);
  }
}

}  // namespace
}  // namespace tracefs
