// Patterns of files and of command lines, as fnmatch(3) has them without flags:
// `*` matches '/', too.
#pragma once

#include <string>
#include <vector>

namespace tracefs::build {

bool MatchesAny(const std::vector<std::string>& patterns,
                const std::string& text);

// Which of them match `text`: bit k is 0x80 >> (k % 8) of byte k / 8, as CAS
// has it. As many bytes as that takes.
std::string MatchBits(const std::vector<std::string>& patterns,
                      const std::string& text);

}  // namespace tracefs::build
