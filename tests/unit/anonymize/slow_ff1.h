// SlowFf1: FF1 of NIST SP 800-38G, step by step as Algorithm 7 has it, for any
// radix up to 36: the oracle for the product's, which knows radix 2 only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tracefs::anonymize {

// `digits` are numerals below `radix`; the key has 16, 24 or 32 bytes.
std::vector<uint32_t> SlowFf1Encrypt(const std::string& key,
                                     const std::string& tweak, uint32_t radix,
                                     const std::vector<uint32_t>& digits);

}  // namespace tracefs::anonymize
