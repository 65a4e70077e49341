#include "tests/unit/anonymize/slow_ff1.h"

#include <openssl/evp.h>

#include <cmath>

namespace tracefs::anonymize {
namespace {

__extension__ typedef unsigned __int128 Wide;
using Numerals = std::vector<uint32_t>;

std::string Aes(const std::string& key, const std::string& block) {
  const EVP_CIPHER* cipher = key.size() == 16   ? EVP_aes_128_ecb()
                             : key.size() == 24 ? EVP_aes_192_ecb()
                                                : EVP_aes_256_ecb();
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  std::string out(16, '\0');
  int size = 0;
  EVP_EncryptInit_ex(context, cipher, nullptr,
                     reinterpret_cast<const unsigned char*>(key.data()),
                     nullptr);
  EVP_CIPHER_CTX_set_padding(context, 0);
  EVP_EncryptUpdate(context, reinterpret_cast<unsigned char*>(out.data()),
                    &size, reinterpret_cast<const unsigned char*>(block.data()),
                    16);
  EVP_CIPHER_CTX_free(context);
  return out;
}

std::string Xor(std::string a, const std::string& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(a[i] ^ b[i]);
  return a;
}

// Algorithm 6: CBC-MAC.
std::string Prf(const std::string& key, const std::string& x) {
  std::string y(16, '\0');
  for (size_t i = 0; i < x.size(); i += 16) {
    y = Aes(key, Xor(y, x.substr(i, 16)));
  }
  return y;
}

std::string BigEndian(Wide value, size_t bytes) {
  std::string out(bytes, '\0');
  for (size_t i = bytes; i-- > 0; value >>= 8) {
    out[i] = static_cast<char>(value & 0xff);
  }
  return out;
}

Wide Num(const std::string& bytes) {
  Wide value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

Wide Num(const Numerals& digits, uint32_t radix) {
  Wide value = 0;
  for (const uint32_t d : digits) value = value * radix + d;
  return value;
}

Numerals Str(Wide value, uint32_t radix, size_t length) {
  Numerals digits(length);
  for (size_t i = length; i-- > 0; value /= radix) {
    digits[i] = static_cast<uint32_t>(value % radix);
  }
  return digits;
}

}  // namespace

std::vector<uint32_t> SlowFf1Encrypt(const std::string& key,
                                     const std::string& tweak, uint32_t radix,
                                     const std::vector<uint32_t>& digits) {
  const size_t n = digits.size();
  const size_t t = tweak.size();
  const size_t u = n / 2;
  const size_t v = n - u;
  Numerals a(digits.begin(), digits.begin() + static_cast<long>(u));
  Numerals b(digits.begin() + static_cast<long>(u), digits.end());
  const double bits = std::ceil(static_cast<double>(v) * std::log2(radix));
  const auto bytes = static_cast<size_t>(std::ceil(bits / 8));
  const size_t d = 4 * ((bytes + 3) / 4) + 4;
  const std::string p = BigEndian(0x010201, 3) + BigEndian(radix, 3) +
                        BigEndian(10, 1) + BigEndian(u % 256, 1) +
                        BigEndian(n, 4) + BigEndian(t, 4);
  for (int i = 0; i < 10; ++i) {
    const size_t zeros = (16 - (t + bytes + 1) % 16) % 16;
    const std::string q = tweak + std::string(zeros, '\0') +
                          BigEndian(static_cast<unsigned>(i), 1) +
                          BigEndian(Num(b, radix), bytes);
    const std::string r = Prf(key, p + q);
    std::string s = r;
    for (uint32_t j = 1; s.size() < d; ++j) {
      s += Aes(key, Xor(r, BigEndian(j, 16)));
    }
    const Wide y = Num(s.substr(0, d));
    const size_t m = i % 2 == 0 ? u : v;
    Wide modulus = 1;
    for (size_t j = 0; j < m; ++j) modulus *= radix;
    const Wide c = (Num(a, radix) + y % modulus) % modulus;
    a = b;
    b = Str(c, radix, m);
  }
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace tracefs::anonymize
