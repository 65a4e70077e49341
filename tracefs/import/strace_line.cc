#include "tracefs/import/strace_line.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "tracefs/base/choice.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/text.h"

namespace tracefs::import {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsOctal(char c) { return c >= '0' && c <= '7'; }

void SkipBlanks(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(' '), text->size()));
}

// "1795393323.725200": in ns. At most nine digits behind the point count.
bool TakeSeconds(std::string_view* text, uint64_t* ns) {
  uint64_t seconds = 0;
  constexpr uint64_t kMost = uint64_t{1} << 33;  // so that ns fit
  std::string_view at = *text;
  if (!TakeDecimal(at, &seconds) || seconds > kMost) return false;
  if (!TakePrefix(at, ".")) return false;
  uint64_t fraction = 0;
  uint64_t unit = kNsPerSecond;
  while (!at.empty() && IsDigit(at[0])) {
    if (unit > 1) {
      unit /= 10;
      fraction += static_cast<uint64_t>(at[0] - '0') * unit;
    }
    at.remove_prefix(1);
  }
  if (unit == kNsPerSecond) return false;
  *text = at;
  *ns = seconds * kNsPerSecond + fraction;
  return true;
}

// The end of the string that begins at `i`; npos if it has none.
size_t SkipString(std::string_view text, size_t i) {
  for (++i; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.npos;
}

// The end of the path that begins at `i` with '<': -y writes < and > of names
// with escapes, but -yy writes TCP:[…->…].
size_t SkipPath(std::string_view text, size_t i) {
  int depth = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '<') {
      ++depth;
    } else if (text[i] == '>' && text[i - 1] != '-' && --depth == 0) {
      return i + 1;
    }
  }
  return text.npos;
}

// Whether `text[i]`, a '<', stands before the path of a descriptor.
bool BeginsPath(std::string_view text, size_t i) {
  if (i == 0 || i + 1 >= text.size()) return false;
  const char before = text[i - 1];
  const char behind = text[i + 1];
  return (IsDigit(before) || before == 'D') && behind != '<' && behind != ' ';
}

// The next character from `i` on that is one of `wanted` outside of strings,
// paths, brackets and comments; npos if there is none.
size_t FindOutside(std::string_view text, size_t i, std::string_view wanted) {
  int depth = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') {
      i = SkipString(text, i);
      if (i == text.npos) return i;
      continue;
    }
    if (c == '<' && BeginsPath(text, i)) {
      i = SkipPath(text, i);
      if (i == text.npos) return i;
      continue;
    }
    if (c == '/' && text.substr(i).starts_with("/* ")) {
      const size_t end = text.find("*/", i);
      if (end == text.npos) return end;
      i = end + 2;
      continue;
    }
    if (depth == 0 && wanted.find(c) != wanted.npos) return i;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') depth = std::max(depth - 1, 0);
    ++i;
  }
  return text.npos;
}

std::string_view Trimmed(std::string_view text) {
  SkipBlanks(&text);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Splits at the commas, up to the bracket that ends it all. Returns where that
// is, or npos.
size_t Split(std::string_view text, size_t most,
             std::vector<std::string_view>* parts) {
  size_t i = 0;
  for (;;) {
    const size_t end = FindOutside(text, i, ",)]}");
    const std::string_view part =
        Trimmed(text.substr(i, end == text.npos ? text.npos : end - i));
    const bool last = end == text.npos || text[end] != ',';
    if (parts->size() < most && !(last && part.empty())) parts->push_back(part);
    if (last) return end;
    i = end + 1;
  }
}

// The escapes of C, as strace has them.
void Unescape(std::string_view text, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out->push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    constexpr std::string_view kLetters = "tnvfrabe";
    constexpr std::string_view kMeanings = "\t\n\v\f\r\a\b\x1b";
    if (const size_t at = kLetters.find(c); at != kLetters.npos) {
      out->push_back(kMeanings[at]);
    } else if (c == 'x') {
      unsigned value = 0;
      const char* const from = text.data() + i + 1;
      const char* const to = text.data() + std::min(i + 3, text.size());
      const auto end = std::from_chars(from, to, value, 16).ptr;
      i += static_cast<size_t>(end - from);
      out->push_back(static_cast<char>(value));
    } else if (IsOctal(c)) {
      unsigned value = 0;
      size_t digits = 0;
      while (digits < 3 && i < text.size() && IsOctal(text[i])) {
        value = value * 8 + static_cast<unsigned>(text[i] - '0');
        ++i;
        ++digits;
      }
      --i;
      out->push_back(static_cast<char>(value));
    } else {
      out->push_back(c);
    }
  }
}

constexpr Choice<uint64_t> kFlags[] = {
    {"O_RDONLY", O_RDONLY},
    {"O_WRONLY", O_WRONLY},
    {"O_RDWR", O_RDWR},
    {"O_CREAT", O_CREAT},
    {"O_EXCL", O_EXCL},
    {"O_NOCTTY", O_NOCTTY},
    {"O_TRUNC", O_TRUNC},
    {"O_APPEND", O_APPEND},
    {"O_NONBLOCK", O_NONBLOCK},
    {"O_NDELAY", O_NONBLOCK},
    {"O_DSYNC", O_DSYNC},
    {"O_SYNC", O_SYNC},
    {"O_DIRECT", O_DIRECT},
    {"O_DIRECTORY", O_DIRECTORY},
    {"O_NOFOLLOW", O_NOFOLLOW},
    {"O_NOATIME", O_NOATIME},
    {"O_CLOEXEC", O_CLOEXEC},
    {"O_PATH", O_PATH},
    {"O_TMPFILE", O_TMPFILE},
    {"O_LARGEFILE", 0},
    {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
    {"AT_REMOVEDIR", AT_REMOVEDIR},
    {"AT_SYMLINK_FOLLOW", AT_SYMLINK_FOLLOW},
    {"AT_EMPTY_PATH", AT_EMPTY_PATH},
    {"RENAME_NOREPLACE", RENAME_NOREPLACE},
    {"RENAME_EXCHANGE", RENAME_EXCHANGE},
    {"RENAME_WHITEOUT", RENAME_WHITEOUT},
    {"FALLOC_FL_KEEP_SIZE", FALLOC_FL_KEEP_SIZE},
    {"FALLOC_FL_PUNCH_HOLE", FALLOC_FL_PUNCH_HOLE},
    {"FALLOC_FL_COLLAPSE_RANGE", FALLOC_FL_COLLAPSE_RANGE},
    {"FALLOC_FL_ZERO_RANGE", FALLOC_FL_ZERO_RANGE},
    {"FALLOC_FL_INSERT_RANGE", FALLOC_FL_INSERT_RANGE},
    {"FALLOC_FL_UNSHARE_RANGE", FALLOC_FL_UNSHARE_RANGE},
    {"XATTR_CREATE", XATTR_CREATE},
    {"XATTR_REPLACE", XATTR_REPLACE},
    {"S_IFREG", S_IFREG},
    {"S_IFDIR", S_IFDIR},
    {"S_IFLNK", S_IFLNK},
    {"S_IFIFO", S_IFIFO},
    {"S_IFSOCK", S_IFSOCK},
    {"S_IFCHR", S_IFCHR},
    {"S_IFBLK", S_IFBLK},
    {"S_ISUID", S_ISUID},
    {"S_ISGID", S_ISGID},
    {"S_ISVTX", S_ISVTX},
    {"R_OK", 4},
    {"W_OK", 2},
    {"X_OK", 1},
    {"F_OK", 0},
    {"CLONE_VM", 0x100},
    {"CLONE_FS", 0x200},
    {"CLONE_FILES", 0x400},
    {"CLONE_THREAD", 0x10000},
    {"FD_CLOEXEC", 1},
};

}  // namespace

namespace {

// Whose line it is, and its time. False if it cannot be one of strace's.
bool TakeHead(std::string_view* at, StraceLine* parsed) {
  SkipBlanks(at);
  // "17 ", or "[pid 17] " where strace wrote to the terminal.
  if (TakePrefix(*at, "[pid ")) {
    SkipBlanks(at);
    if (!TakeDecimal(*at, &parsed->tid) || !TakePrefix(*at, "] ")) return false;
  } else if (const size_t end = at->find_first_not_of("0123456789");
             end != 0 && end != at->npos && (*at)[end] == ' ') {
    if (!TakeDecimal(*at, &parsed->tid)) return false;
  }
  SkipBlanks(at);
  parsed->has_time = TakeSeconds(at, &parsed->real_ns);
  SkipBlanks(at);
  // -r beside -ttt: "(+     0.000012)".
  if (TakePrefix(*at, "(+ ")) {
    const size_t end = at->find(')');
    if (end == at->npos) return false;
    at->remove_prefix(end + 1);
    SkipBlanks(at);
  }
  return true;
}

}  // namespace

std::optional<uint64_t> TimeOfStraceLine(std::string_view line) {
  StraceLine parsed;
  if (!TakeHead(&line, &parsed) || !parsed.has_time) return std::nullopt;
  return parsed.real_ns;
}

std::optional<StraceLine> ParseStraceLine(std::string_view line) {
  StraceLine parsed;
  std::string_view at = line;
  if (!TakeHead(&at, &parsed)) return {};
  using Kind = StraceLine::Kind;
  if (TakePrefix(at, "+++ ")) {
    if (TakePrefix(at, "superseded by execve in pid ")) {
      parsed.kind = Kind::kSuperseded;
      if (!TakeDecimal(at, &parsed.other_tid)) return {};
      return parsed;
    }
    parsed.kind = Kind::kExit;
    if (!at.starts_with("exited") && !at.starts_with("killed")) return {};
    return parsed;
  }
  if (at.starts_with("--- ")) {
    parsed.kind = Kind::kSignal;
    return parsed;
  }
  if (TakePrefix(at, "<... ")) {
    const size_t end = at.find(" resumed>");
    if (end == at.npos) return {};
    parsed.kind = Kind::kResumed;
    parsed.name = at.substr(0, end);
    parsed.rest = at.substr(end + std::string_view(" resumed>").size());
    return parsed;
  }
  const size_t bracket = at.find('(');
  if (bracket == 0 || bracket == at.npos || bracket > 64) return {};
  parsed.name = at.substr(0, bracket);
  for (const char c : parsed.name) {
    const bool word = (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_';
    if (!word) return {};
  }
  parsed.rest = at.substr(bracket + 1);
  constexpr std::string_view kUnfinished = "<unfinished ...>";
  if (parsed.rest.ends_with(kUnfinished)) {
    parsed.kind = Kind::kUnfinished;
    parsed.rest.remove_suffix(kUnfinished.size());
  }
  return parsed;
}

void ParseStraceArguments(std::string_view rest, StraceCall* call) {
  *call = {};
  Split(rest, StraceCall::kMostArguments, &call->arguments);
}

bool ParseStraceCall(std::string_view rest, StraceCall* call) {
  *call = {};
  const size_t end = Split(rest, StraceCall::kMostArguments, &call->arguments);
  if (end == rest.npos || rest[end] != ')') return false;
  std::string_view at = rest.substr(end + 1);
  SkipBlanks(&at);
  if (!TakePrefix(at, "=")) return false;
  SkipBlanks(&at);
  size_t i = 0;
  while (i < at.size() && at[i] != ' ') {
    if (at[i] == '<' && BeginsPath(at, i)) {
      i = SkipPath(at, i);
      if (i == at.npos) return false;
    } else {
      ++i;
    }
  }
  call->result = at.substr(0, i);
  at.remove_prefix(i);
  SkipBlanks(&at);
  if (call->result.empty()) return false;
  if (at.starts_with('E')) {
    call->error = at.substr(0, std::min(at.find(' '), at.size()));
  }
  // " <0.000012>", the last word.
  if (at.ends_with('>')) {
    const size_t begin = at.rfind('<');
    std::string_view seconds = at.substr(begin + 1);
    uint64_t ns = 0;
    if (begin != at.npos && TakeSeconds(&seconds, &ns) && seconds == ">") {
      call->duration_ns = ns;
    }
  }
  return true;
}

bool DecodeString(std::string_view token, std::string* text, bool* cut) {
  if (!token.starts_with('"')) return false;
  const size_t end = SkipString(token, 0);
  if (end == token.npos) return false;
  *cut = token.substr(end).starts_with("...");
  Unescape(token.substr(1, end - 2), text);
  return true;
}

bool DecodeDescriptor(std::string_view token, DescriptorArgument* argument) {
  *argument = {};
  if (TakePrefix(token, "AT_FDCWD")) {
    argument->number = DescriptorArgument::kWorkingDirectory;
  } else if (!TakeDecimal(token, &argument->number)) {
    return false;
  }
  if (!token.starts_with('<')) return true;
  const size_t end = SkipPath(token, 0);
  if (end == token.npos) return true;
  std::string_view path = token.substr(1, end - 2);
  constexpr std::string_view kDeleted = "(deleted)";
  argument->deleted = token.substr(end).starts_with(kDeleted);
  // -yy adds what device it is.
  if (const size_t device = path.find('<'); device != path.npos) {
    path = path.substr(0, device);
  }
  Unescape(path, &argument->path);
  argument->has_path = true;
  return true;
}

std::optional<int64_t> DecodeNumber(std::string_view token) {
  const bool negative = TakePrefix(token, "-");
  int base = 10;
  if (TakePrefix(token, "0x")) {
    base = 16;
  } else if (token.size() > 1 && token[0] == '0') {
    base = 8;
  }
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(token.data(), token.data() + token.size(), value, base);
  if (error != std::errc() || end == token.data()) return std::nullopt;
  return static_cast<int64_t>(negative ? -value : value);
}

std::string_view Member(std::string_view token, std::string_view name) {
  if (!token.starts_with('{')) return {};
  std::vector<std::string_view> parts;
  Split(token.substr(1), 64, &parts);
  for (const std::string_view part : parts) {
    if (part.size() > name.size() && part.starts_with(name) &&
        part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<std::string_view> Elements(std::string_view token) {
  std::vector<std::string_view> parts;
  constexpr size_t kMost = 1024;  // IOV_MAX
  if (token.starts_with('[')) Split(token.substr(1), kMost, &parts);
  return parts;
}

uint64_t DecodeFlags(std::string_view token) {
  uint64_t flags = 0;
  while (!token.empty()) {
    const size_t end = std::min(token.find('|'), token.size());
    std::string_view word = token.substr(0, end);
    token.remove_prefix(std::min(end + 1, token.size()));
    word = word.substr(0, std::min(word.find(' '), word.size()));
    const auto* const known =
        std::ranges::find(kFlags, word, &Choice<uint64_t>::word);
    if (known != std::end(kFlags)) {
      flags |= known->value;
    } else if (const auto number = DecodeNumber(word)) {
      flags |= static_cast<uint64_t>(*number);
    }
  }
  return flags;
}

uint64_t CloneFlagsOf(const StraceCall& call) {
  for (std::string_view argument : call.arguments) {
    if (TakePrefix(argument, "flags=")) return DecodeFlags(argument);
    const std::string_view flags = Member(argument, "flags");
    if (!flags.empty()) return DecodeFlags(flags);
  }
  return 0;
}

int ErrnoOf(std::string_view name) {
  static const std::map<std::string_view, int> kNumbers = [] {
    std::map<std::string_view, int> numbers;
    for (int error = 1; error < 256; ++error) {
      if (const char* const known = ::strerrorname_np(error)) {
        numbers.emplace(known, error);
      }
    }
    return numbers;
  }();
  const auto at = kNumbers.find(name);
  return at == kNumbers.end() ? 0 : at->second;
}

}  // namespace tracefs::import
