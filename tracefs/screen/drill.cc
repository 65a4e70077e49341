#include "tracefs/screen/drill.h"

#include <algorithm>

#include "tracefs/base/join.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::screen {
namespace {

// A pattern of just this text.
std::string Literal(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::string Below(std::string_view directory, std::string_view what) {
  std::string pattern = Literal(directory == "/" ? "" : directory);
  return "path ~ " + FilterString((pattern += '/') += what);
}

std::string Is(std::string_view predicate, uint64_t number) {
  return std::string(predicate) + " = " +
         (number == kUnknown ? "unknown" : std::to_string(number));
}

}  // namespace

std::string FilterString(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string word = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (word += '\\') += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      ((word += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      word += c;
    }
  }
  return word + '"';
}

std::string_view DirectoryOf(const ActivityKey& key) {
  const std::string_view path = key.path;
  if (path.empty()) return {};
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return path;
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

bool Term::Matches(const ActivityKey& key) const {
  if (group == Group::kSource) return key.source == number;
  if (key.other) return false;
  switch (group) {
    case Group::kOp:
      return Index(key.op) == number;
    case Group::kProcess:
      return key.pid == number;
    case Group::kCommand:
      return key.comm == text;
    case Group::kFile:
      return key.path == text;
    case Group::kDirectory:
      return DirectoryOf(key) == text;
    case Group::kTree:
      return key.path == text || text == "/" ||
             (key.path.size() > text.size() && key.path.starts_with(text) &&
              key.path[text.size()] == '/');
    case Group::kError:
      return key.error == number;
    case Group::kUser:
      return key.uid == number;
    case Group::kSource:
      break;
  }
  return false;
}

std::string Term::FilterText() const {
  switch (group) {
    case Group::kOp:
      return "op = " + std::string(OpName(static_cast<Op>(number)));
    case Group::kProcess:
      return Is("cpid", number);
    case Group::kCommand:
      return "cname = " + (text.empty() ? "unknown" : FilterString(text));
    case Group::kFile:
      return "path = " + FilterString(text);
    case Group::kDirectory:
      return Below(text, "*");
    case Group::kTree:
      if (text == "/") return "path ~ \"/**\"";
      return "(path = " + FilterString(text) + " OR " + Below(text, "**") + ")";
    case Group::kError: {
      const std::string_view name = ErrnoName(number);
      return "errno = " +
             (name.empty() ? std::to_string(number) : std::string(name));
    }
    case Group::kUser:
      return Is("cuid", number);
    case Group::kSource:
      break;
  }
  return {};
}

bool Drill::Matches(const ActivityKey& key) const {
  return std::all_of(terms.begin(), terms.end(),
                     [&key](const Term& term) { return term.Matches(key); });
}

std::string Drill::FilterText() const {
  std::string text = base;
  if (!base.empty() && !terms.empty()) text = "(" + base + ")";
  for (const Term& term : terms) {
    const std::string more = term.FilterText();
    if (!more.empty()) AppendWord(more, " AND ", &text);
  }
  return text;
}

}  // namespace tracefs::screen
