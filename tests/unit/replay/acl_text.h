// ACLs as words: "u:rw 1234:rwx g:r m:rwx o:" for the owner, user 1234, the
// owning group, the mask and all others, in the order that the kernel wants.
#pragma once

#include <string>
#include <string_view>

namespace tracefs::replay {

// As the kernel has it (linux/posix_acl_xattr.h).
inline std::string AclText(std::string_view words) {
  const auto little = [](uint64_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8) {
      text += static_cast<char>(value & 255);
    }
    return text;
  };
  std::string acl = little(2, 4);
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const std::string_view who = word.substr(0, word.find(':'));
    unsigned may = 0;
    for (const char c : word.substr(who.size() + 1)) {
      may |= c == 'r' ? 4 : c == 'w' ? 2 : 1;
    }
    const unsigned tag = who == "u"   ? 0x01
                         : who == "g" ? 0x04
                         : who == "m" ? 0x10
                         : who == "o" ? 0x20
                                      : 0x02;
    const uint64_t id = tag == 0x02 ? std::stoul(std::string(who)) : UINT32_MAX;
    acl += little(tag, 2) + little(may, 2) + little(id, 4);
  }
  return acl;
}

}  // namespace tracefs::replay
