#include "tests/support/slow_filter.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace tracefs::testing {
namespace {

// A number the language can write. Tests use valid ones only.
uint64_t NumberSlowly(const FieldInfo& info, const std::string& text,
                      const FakeNames& names) {
  static const std::map<std::string, uint64_t> kWords = {
      {"EIO", EIO},         {"ENOENT", ENOENT}, {"EACCES", EACCES},
      {"O_RDONLY", 0},      {"O_WRONLY", 1},    {"O_RDWR", 2},
      {"O_CREAT", O_CREAT}, {"O_EXCL", O_EXCL}, {"O_APPEND", O_APPEND},
      {"file", 8},          {"dir", 4},         {"link", 10},
      {"fifo", 1},          {"sock", 12},       {"char", 2},
      {"block", 6}};
  const auto word = kWords.find(text);
  if (word != kWords.end()) return word->second;
  if (info.type == FieldType::kUser) {
    const auto id = names.UserId(text);
    if (id.ok() && *id) return **id;
  }
  if (info.type == FieldType::kGroup) {
    const auto id = names.GroupId(text);
    if (id.ok() && *id) return **id;
  }
  if (info.type == FieldType::kOctal) {
    return std::strtoull(text.c_str(), nullptr, 8);
  }
  char* end = nullptr;
  const bool negative = text[0] == '-';
  uint64_t value = std::strtoull(text.c_str() + (negative ? 1 : 0), &end, 0);
  static const std::map<std::string, uint64_t> kUnits = {
      {"", 1},           {"K", 1024},       {"M", 1048576},
      {"G", 1073741824}, {"ns", 1},         {"us", 1000},
      {"ms", 1000000},   {"s", 1000000000}, {"m", 60000000000}};
  value *= kUnits.at(end);
  return negative ? 0 - value : value;
}

bool CompareSlowly(const FieldInfo& info, Comparison comparison, uint64_t a,
                   uint64_t b) {
  const bool less = info.type == FieldType::kSigned
                        ? static_cast<int64_t>(a) < static_cast<int64_t>(b)
                        : a < b;
  switch (comparison) {
    case Comparison::kEqual:
    case Comparison::kIn:
    case Comparison::kOf:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
      return less;
    case Comparison::kLessEqual:
      return less || a == b;
    case Comparison::kGreater:
      return !less && a != b;
    case Comparison::kGreaterEqual:
      return !less;
    case Comparison::kMatch:
      return (a & b) == b;
  }
  return false;
}

// As linux/fuse.h numbers them.
bool SetsSlowly(const AstPredicate& p, Op op, uint64_t valid) {
  static const std::map<std::string, int> kBits = {
      {"mode", 0},  {"uid", 1},   {"gid", 2},       {"size", 3},
      {"atime", 4}, {"mtime", 5}, {"atime_now", 7}, {"mtime_now", 8}};
  if (op != Op::setattr_) return false;
  for (const auto& [word, bit] : kBits) {
    if ((valid >> bit & 1) == 0) continue;
    for (const AstValue& v : p.values) {
      const bool same = v.words[0].text == word;
      if (p.comparison == Comparison::kNotEqual ? !same && bit <= 5 : same) {
        return true;
      }
    }
  }
  return false;
}

bool NumericSlowly(const FieldInfo& info, const AstPredicate& p, Event& event,
                   const FakeNames& names) {
  // A copy has two files.
  if (info.field == Field::kInode &&
      NumericSlowly(Info(Field::kInodeOut), p, event, names)) {
    return true;
  }
  const bool of_request =
      info.source == FieldSource::kRequest || info.field == Field::kType;
  if (of_request && (Info(event.op).request_fields & Bit(info.field)) == 0) {
    return false;
  }
  if (info.source == FieldSource::kCaller) event.NeedCaller();
  if (info.source == FieldSource::kAttributes) event.NeedAttributes();
  if (!event.Has(info.field)) return false;
  uint64_t value = event.Get(info.field);
  if (info.field == Field::kValid) return SetsSlowly(p, event.op, value);
  if (info.field == Field::kArgMode && event.op == Op::access_) return false;
  if (info.type == FieldType::kOctal) value &= 07777;
  for (const AstValue& v : p.values) {
    if (p.comparison == Comparison::kMatch) {
      bool all = true;
      for (const AstWord& word : v.words) {
        const uint64_t bits = NumberSlowly(info, word.text, names);
        const bool access = word.text == "O_RDONLY" ||
                            word.text == "O_WRONLY" || word.text == "O_RDWR";
        all = all && (access ? (value & 3) == bits : (value & bits) == bits);
      }
      if (all) return true;
      continue;
    }
    uint64_t number = 0;
    for (const AstWord& word : v.words) {
      number |= NumberSlowly(info, word.text, names);
    }
    if (CompareSlowly(info, p.comparison, value, number)) return true;
  }
  return false;
}

// The texts the event has of this field.
std::vector<std::string> TextsOf(Field field, Event& event) {
  std::vector<std::string> texts;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) texts.emplace_back(text);
  };
  if (field == Field::kComm) {
    event.NeedCaller();
    if (event.caller != nullptr) add(event.caller->comm());
  } else if (field == Field::kPath || field == Field::kFirstPath ||
             field == Field::kNewPath) {
    PathBuffer buffer;
    if (field != Field::kNewPath) add(PathOf(event, buffer));
    if (field != Field::kFirstPath) add(NewPathOf(event, buffer));
  } else {
    std::vector<std::string> names;
    if (!event.name.empty()) names.emplace_back(event.name);
    if (!event.new_name.empty()) names.emplace_back(event.new_name);
    std::vector<uint64_t> files = {event.node};
    if (event.op == Op::copy_file_range_) files.push_back(event.new_parent);
    for (const uint64_t file : files) {
      if (file == 0) continue;
      event.resolver->ForEachName(
          file, &names, [](void* context, std::string_view name) {
            static_cast<std::vector<std::string>*>(context)->emplace_back(name);
          });
    }
    for (const std::string& name : names) {
      add(field == Field::kExt ? ExtensionOf(name) : name);
    }
  }
  return texts;
}

bool TextSlowly(const FieldInfo& info, const AstPredicate& p, Event& event) {
  const bool path = info.shape == DataShape::kPath;
  for (const std::string& text : TextsOf(info.field, event)) {
    for (const AstValue& value : p.values) {
      const std::string& word = value.words[0].text;
      switch (p.comparison) {
        case Comparison::kNotEqual:
          if (text != word) return true;
          break;
        case Comparison::kMatch:
          if (GlobSlowly(word, text, path)) return true;
          break;
        default:
          if (text == word) return true;
      }
    }
  }
  return false;
}

bool PredicateSlowly(const AstPredicate& p, Event& event,
                     const FakeNames& names) {
  const FieldInfo& info = *FieldByPredicate(p.field.text);
  if (info.field == Field::kOp) {
    for (const AstValue& value : p.values) {
      const std::string& word = value.words[0].text;
      const bool same = OpFromName(word) == event.op ||
                        (word == "open" &&
                         (event.op == Op::create_ || event.op == Op::tmpfile_));
      if (same != (p.comparison == Comparison::kNotEqual)) return true;
    }
    return false;
  }
  if (IsNumeric(info.field)) return NumericSlowly(info, p, event, names);
  return TextSlowly(info, p, event);
}

}  // namespace

bool EvalSlowly(const Ast& ast, Event& event, const FakeNames& names) {
  switch (ast.kind) {
    case Ast::Kind::kAll:
      return true;
    case Ast::Kind::kPredicate:
      return PredicateSlowly(ast.predicate, event, names);
    case Ast::Kind::kNot:
      return !EvalSlowly(ast.children[0], event, names);
    case Ast::Kind::kAnd:
      for (const Ast& child : ast.children) {
        if (!EvalSlowly(child, event, names)) return false;
      }
      return true;
    case Ast::Kind::kOr:
      for (const Ast& child : ast.children) {
        if (EvalSlowly(child, event, names)) return true;
      }
      return false;
  }
  return false;
}

bool GlobSlowly(std::string_view pattern, std::string_view text, bool path) {
  if (pattern.empty()) return text.empty();
  const std::string_view rest = pattern.substr(1);
  switch (pattern[0]) {
    case '*': {
      const bool crosses = !path || rest.starts_with('*');
      std::string_view after = rest;
      while (after.starts_with('*')) after.remove_prefix(1);
      for (size_t n = 0;; ++n) {
        if (GlobSlowly(after, text.substr(n), path)) return true;
        if (n == text.size() || (text[n] == '/' && !crosses)) return false;
      }
    }
    case '/':
      // "/**/" may also be one '/'.
      if (path && rest.starts_with("**") && text.starts_with('/')) {
        std::string_view after = rest;
        while (after.starts_with('*')) after.remove_prefix(1);
        if (after.starts_with('/') && GlobSlowly(after, text, path)) {
          return true;
        }
      }
      break;
    case '?':
      return !text.empty() && !(path && text[0] == '/') &&
             GlobSlowly(rest, text.substr(1), path);
    case '\\':
      return !text.empty() && text[0] == rest[0] &&
             GlobSlowly(rest.substr(1), text.substr(1), path);
    case '[': {
      if (text.empty() || (path && text[0] == '/')) return false;
      size_t i = 0;
      const bool negated = rest[i] == '!' || rest[i] == '^';
      if (negated) ++i;
      bool in = false;
      const auto take = [&] {
        if (rest[i] == '\\') ++i;
        return static_cast<unsigned char>(rest[i++]);
      };
      const auto c = static_cast<unsigned char>(text[0]);
      for (bool first = true; first || rest[i] != ']'; first = false) {
        const unsigned char from = take();
        unsigned char to = from;
        if (rest[i] == '-' && rest[i + 1] != ']') {
          ++i;
          to = take();
        }
        in = in || (from <= c && c <= to);
      }
      return in != negated &&
             GlobSlowly(rest.substr(i + 1), text.substr(1), path);
    }
    default:
      break;
  }
  return !text.empty() && text[0] == pattern[0] &&
         GlobSlowly(rest, text.substr(1), path);
}

}  // namespace tracefs::testing
