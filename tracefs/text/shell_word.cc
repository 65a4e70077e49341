#include "tracefs/text/shell_word.h"

#include "tracefs/base/text.h"
#include "tracefs/text/escape.h"

namespace tracefs {

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "-_./:=,@%+";
  if (!word.empty() && IsMadeOf(word, kPlain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string ShellPath(std::string_view path) {
  return ShellWord((path.starts_with('-') ? "./" : "") + TerminalText(path));
}

}  // namespace tracefs
