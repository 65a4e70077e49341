// Words of command lines as a shell takes them (POSIX, Shell Command Language,
// 2.2.2: single quotes).
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// The word, in quotes where it needs them.
std::string ShellWord(std::string_view word);

// The same of a path, for a command that is shown to people: it is no option,
// and does nothing to a terminal.
std::string ShellPath(std::string_view path);

}  // namespace tracefs
