#include "filters/input/check.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "filters/input/glob.h"
#include "filters/input/habits.h"
#include "filters/input/trace_words.h"
#include "filters/input/words.h"
#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/unit_habits.h"
#include "tracefs/base/units.h"
#include "tracefs/event/op.h"
#include "tracefs/event/set_attributes.h"

namespace tracefs {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;
// st_mode holds the file's type too; `mode` means what chmod sets.
constexpr uint64_t kPermissionBits = 07777;
constexpr size_t kMaxNameBytes = 255;
constexpr size_t kMaxCallerNameBytes = 63;
constexpr size_t kMaxDetailBytes = 1024;  // as much as is recorded of one
static_assert(kOpCount <= 64, "Predicate::ops has one bit an operation");

bool IsText(FieldType type) {
  return type == FieldType::kName || type == FieldType::kText;
}

std::string_view OperatorsOf(const FieldInfo& info) {
  if (info.field == Field::kSyscall || info.field == Field::kValid) {
    return "= != IN";
  }
  switch (info.type) {
    case FieldType::kOp:
    case FieldType::kFileType:
      return "= != IN";
    case FieldType::kOctal:
    case FieldType::kOpenFlags:
    case FieldType::kName:
    case FieldType::kText:
      return "= != IN ~";
    default:
      return "= != < <= > >= IN";
  }
}

bool Allows(const FieldInfo& info, Comparison comparison) {
  const bool bits_or_text = OperatorsOf(info).ends_with('~');
  switch (comparison) {
    case Comparison::kEqual:
    case Comparison::kNotEqual:
    case Comparison::kIn:
      return true;
    case Comparison::kMatch:
      return bits_or_text;
    case Comparison::kOf:  // the parser knows where
      return info.field == Field::kAncestor;
    default:
      return OperatorsOf(info).find('<') != std::string_view::npos;
  }
}

// The greatest value the field can have, in its own order.
uint64_t Greatest(const FieldInfo& info) {
  if (info.type == FieldType::kOctal) return kPermissionBits;
  if (info.width >= 8) return IntervalSet::kMax;
  return (uint64_t{1} << (8 * info.width)) - 1;
}

std::optional<uint64_t> ParseOctal(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 8);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

class Checker {
 public:
  Checker(std::string_view file, const NameService& names)
      : file_(file), names_(names) {}

  Status Check(const Ast& ast, CheckedFilter* out) const {
    out->kind = ast.kind;
    if (ast.kind == Ast::Kind::kPredicate) {
      if (AsksIfKnown(ast.predicate)) return CheckKnown(ast.predicate, out);
      return CheckPredicate(ast.predicate, &out->predicate);
    }
    out->children.resize(ast.children.size());
    for (size_t i = 0; i < ast.children.size(); ++i) {
      if (Status s = Check(ast.children[i], &out->children[i]); !s.ok()) {
        return s;
      }
    }
    return Status::Ok();
  }

 private:
  Status Error(const AstWord& word, const std::string& message) const {
    return ErrorAt(file_, word.position, message);
  }

  // Of fields that are found out a bare `unknown` is no value but the lack of
  // one.
  static bool IsUnknown(const AstWord& word) {
    return !word.quoted && SameButForCase(word.text, "unknown");
  }
  static bool AsksIfKnown(const AstPredicate& ast) {
    const FieldInfo* info = FieldByPredicate(ast.field.text);
    if (info == nullptr || !MayBeUnknown(info->field)) return false;
    return std::any_of(
        ast.values.begin(), ast.values.end(),
        [](const AstValue& value) { return IsUnknown(value.words[0]); });
  }

  Status CheckKnown(const AstPredicate& ast, CheckedFilter* out) const {
    const FieldInfo& info = *FieldByPredicate(ast.field.text);
    const bool equal = ast.comparison == Comparison::kEqual ||
                       ast.comparison == Comparison::kOf;
    if (!equal && ast.comparison != Comparison::kNotEqual) {
      const auto word = std::find_if(
          ast.values.begin(), ast.values.end(),
          [](const AstValue& value) { return IsUnknown(value.words[0]); });
      return Error(word->words[0],
                   "'unknown' is compared with = and != only; quote it if it "
                   "is meant literally");
    }
    Predicate known;
    known.field = info.field;
    if (IsText(info.type)) {
      known.form = Predicate::Form::kText;
      known.text = {.kind = TextMatch::Kind::kKnown, .texts = {}};
    } else {
      known.form = Predicate::Form::kNumber;
      known.set = IntervalSet::Range(0, IntervalSet::kMax);
    }
    if (!equal) {
      out->predicate = std::move(known);
      return Status::Ok();
    }
    out->kind = Ast::Kind::kNot;
    out->children.resize(1);
    out->children[0].kind = Ast::Kind::kPredicate;
    out->children[0].predicate = std::move(known);
    return Status::Ok();
  }

  Status CheckPredicate(const AstPredicate& ast, Predicate* out) const {
    const FieldInfo* info = FieldByPredicate(ast.field.text);
    if (info == nullptr) {
      if (const TraceWordRow* const row = FindTraceWord(ast.field.text)) {
        return Error(ast.field, "'" + std::string(row->name) +
                                    "' is known of a trace only: "
                                    "tracefs-dump --filter takes it");
      }
      return Error(ast.field,
                   "unknown predicate " + Quoted(ast.field.text) +
                       DidYouMeanPredicate(ast.field.text, PredicateWords()));
    }
    const std::string name(info->predicate);
    if (!Allows(*info, ast.comparison)) {
      return ErrorAt(file_, ast.comparison_position,
                     "'" + name + "' cannot be compared with " +
                         std::string(ComparisonText(ast.comparison)) +
                         "; it takes " + std::string(OperatorsOf(*info)));
    }
    for (const AstValue& value : ast.values) {
      if (value.words.size() > 1 && info->type != FieldType::kOpenFlags) {
        return Error(value.words[1], "'|' joins flags, and '" + name +
                                         "' has none; use IN { … }");
      }
    }
    out->field = info->field;
    if (IsText(info->type)) return CheckText(*info, ast, out);
    if (info->type == FieldType::kOp) return CheckOps(ast, out);
    out->form = Predicate::Form::kNumber;
    if (info->field == Field::kValid) return CheckSets(ast, out);
    if (ast.comparison == Comparison::kMatch) {
      return CheckBits(*info, ast.values[0], out);
    }
    return CheckNumbers(*info, ast, out);
  }

  // --- op ------------------------------------------------------------------

  // `open` is what the user calls so, whichever request it became.
  static uint64_t OpsNamed(Op op) {
    uint64_t ops = uint64_t{1} << Index(op);
    if (op != Op::open_) return ops;
    for (size_t i = 0; i < kOpCount; ++i) {
      if (OpensFile(static_cast<Op>(i))) ops |= uint64_t{1} << i;
    }
    return ops;
  }

  Status CheckOps(const AstPredicate& ast, Predicate* out) const {
    out->form = Predicate::Form::kOps;
    for (const AstValue& value : ast.values) {
      const AstWord& word = value.words[0];
      const auto op = OpFromName(word.text);
      if (!op) {
        return Error(word, "unknown operation " + Quoted(word.text) +
                               DidYouMeanOp(word.text, OpWords()));
      }
      out->ops |= OpsNamed(*op);
    }
    out->named_ops = out->ops;
    if (ast.comparison == Comparison::kNotEqual) {
      out->ops ^= kAllOps;
    }
    return Status::Ok();
  }

  // --- numbers -------------------------------------------------------------

  Status CheckNumbers(const FieldInfo& info, const AstPredicate& ast,
                      Predicate* out) const {
    if (info.type == FieldType::kOctal) out->mask = kPermissionBits;
    std::vector<uint64_t> values;
    for (const AstValue& value : ast.values) {
      uint64_t number = 0;
      if (Status s = Number(info, value, &number); !s.ok()) return s;
      values.push_back(number ^ OrderBias(info.field));
    }
    const uint64_t v = values[0];
    const auto nothing = [&](const char* side) {
      return Error(ast.values[0].words[0],
                   "no value of '" + std::string(info.predicate) + "' lies " +
                       side + " " + Quoted(ast.values[0].words[0].text));
    };
    constexpr uint64_t kMax = IntervalSet::kMax;
    switch (ast.comparison) {
      case Comparison::kEqual:
      case Comparison::kIn:
      case Comparison::kMatch:
      case Comparison::kOf:
        out->set = IntervalSet::OfAll(values);
        break;
      case Comparison::kNotEqual:
        out->set = IntervalSet::Of(v).Complement();
        break;
      case Comparison::kLess:
        if (v == 0) return nothing("below");
        out->set = IntervalSet::Range(0, v - 1);
        break;
      case Comparison::kLessEqual:
        out->set = IntervalSet::Range(0, v);
        break;
      case Comparison::kGreater:
        if (v == Greatest(info)) return nothing("above");
        out->set = IntervalSet::Range(v + 1, kMax);
        break;
      case Comparison::kGreaterEqual:
        out->set = IntervalSet::Range(v, kMax);
        break;
    }
    return Status::Ok();
  }

  // A setattr sets several attributes, and any of them satisfies.
  Status CheckSets(const AstPredicate& ast, Predicate* out) const {
    uint64_t bits = 0;
    for (const AstValue& value : ast.values) {
      const AstWord& word = value.words[0];
      const auto known = SetAttributeFromWord(word.text);
      if (!known) {
        return Error(
            word, "unknown attribute " + Quoted(word.text) +
                      " (known: " + JoinWords(SetAttributeWords(), " ") + ")" +
                      DidYouMean(word.text, SetAttributeWords()));
      }
      bits |= *known;
    }
    out->mask = ast.comparison == Comparison::kNotEqual
                    ? kEveryAttribute & ~bits
                    : bits;
    out->set = IntervalSet::Range(1, IntervalSet::kMax);
    return Status::Ok();
  }

  // `flags ~ A | B`, `mode ~ 0111`: all these bits are set.
  Status CheckBits(const FieldInfo& info, const AstValue& value,
                   Predicate* out) const {
    uint64_t want = 0;
    out->mask = 0;
    for (const AstWord& word : value.words) {
      FlagBits flag;
      if (Status s = Flag(info, word, &flag); !s.ok()) return s;
      const uint64_t common = out->mask & flag.mask;
      if ((want & common) != (flag.bits & common)) {
        return Error(word, Quoted(word.text) +
                               " and the words before it exclude each other");
      }
      out->mask |= flag.mask;
      want |= flag.bits;
    }
    if (out->mask == 0) {
      return Error(value.words[0], Quoted(value.words[0].text) +
                                       " has no bit to look for; use =");
    }
    out->set = IntervalSet::Of(want);
    return Status::Ok();
  }

  // One word of a value that consists of bits.
  Status Flag(const FieldInfo& info, const AstWord& word,
              FlagBits* flag) const {
    if (info.type == FieldType::kOpenFlags) {
      if (const auto known = FlagFromWord(word.text)) {
        *flag = *known;
        return Status::Ok();
      }
      if (!word.text.empty() && (word.text[0] < '0' || word.text[0] > '9')) {
        return Error(word, "unknown flag " + Quoted(word.text) +
                               DidYouMean(word.text, FlagWords()));
      }
    }
    uint64_t bits = 0;
    if (Status s = PlainNumber(info, word, &bits); !s.ok()) return s;
    *flag = {bits, bits};
    return Status::Ok();
  }

  Status Number(const FieldInfo& info, const AstValue& value,
                uint64_t* number) const {
    *number = 0;
    for (const AstWord& word : value.words) {
      if (info.type != FieldType::kOpenFlags) {
        return PlainNumber(info, word, number);
      }
      FlagBits flag;
      if (Status s = Flag(info, word, &flag); !s.ok()) return s;
      *number |= flag.bits;
    }
    return Status::Ok();
  }

  Status PlainNumber(const FieldInfo& info, const AstWord& word,
                     uint64_t* number) const {
    const std::string name(info.predicate);
    std::optional<uint64_t> parsed;
    std::string wanted;
    if (info.field == Field::kSyscall) return CallNumber(word, number);
    switch (info.type) {
      case FieldType::kSigned:
        return SignedNumber(info, word, number);
      case FieldType::kOctal:
        parsed = ParseOctal(word.text);
        wanted = "an octal number, as 0644";
        break;
      case FieldType::kDurationNs:
        parsed = ParseDuration(word.text);
        if (!parsed) parsed = ParseUnsigned(word.text);
        wanted = "a duration, as 250us, 10ms or 2s";
        break;
      case FieldType::kErrno:
        parsed = ErrnoFromWord(word.text);
        if (!parsed) parsed = ParseUnsigned(word.text);
        wanted = "an error, as EIO or 5";
        if (!parsed) {
          wanted += ", not " + Quoted(word.text);
          return Error(word, "'" + name + "' takes " + wanted +
                                 DidYouMean(word.text, ErrnoWords()));
        }
        break;
      case FieldType::kFileType:
        parsed = FileTypeFromWord(word.text);
        if (!parsed) {
          return Error(word, "unknown file type " + Quoted(word.text) +
                                 " (known: file dir link fifo sock char "
                                 "block)" +
                                 DidYouMean(word.text, FileTypeWords()));
        }
        break;
      case FieldType::kUser:
      case FieldType::kGroup:
        parsed = ParseUnsigned(word.text);
        if (!parsed) return ResolveName(info, word, number);
        break;
      case FieldType::kOpenFlags:
        parsed = ParseUnsigned(word.text);
        wanted = "flags, as O_CREAT | O_EXCL or 0xc0";
        break;
      default:
        parsed = ParseSize(word.text);
        wanted = "a number, as 4096, 0x1000 or 4K";
        break;
    }
    if (!parsed) {
      return Error(word, "'" + name + "' takes " + wanted + ", not " +
                             Quoted(word.text) + DidYouMeanNumber(word.text));
    }
    if (*parsed > Greatest(info)) {
      return Error(word, Quoted(word.text) + " is too large for '" + name +
                             "', which ends at " +
                             ValueText(info.field, Greatest(info)));
    }
    *number = *parsed;
    return Status::Ok();
  }

  Status CallNumber(const AstWord& word, uint64_t* number) const {
    const auto known = SystemCallFromWord(word.text);
    const auto plain = ParseUnsigned(word.text);
    if (!known && (!plain || *plain > UINT32_MAX)) {
      return Error(word, "unknown system call " + Quoted(word.text) +
                             DidYouMean(word.text, SystemCallWords()));
    }
    *number = known ? *known : *plain;
    return Status::Ok();
  }

  Status SignedNumber(const FieldInfo& info, const AstWord& word,
                      uint64_t* number) const {
    const bool negative = word.text.starts_with('-');
    const auto parsed =
        ParseSize(std::string_view(word.text).substr(negative ? 1 : 0));
    if (!parsed || *parsed > kSignBit - (negative ? 0 : 1)) {
      return Error(word, "'" + std::string(info.predicate) +
                             "' takes a number, as -1 or 4K, not " +
                             Quoted(word.text) + DidYouMeanNumber(word.text));
    }
    *number = negative ? ~*parsed + 1 : *parsed;
    return Status::Ok();
  }

  Status ResolveName(const FieldInfo& info, const AstWord& word,
                     uint64_t* number) const {
    const bool user = info.type == FieldType::kUser;
    const auto id = user ? names_.UserId(word.text) : names_.GroupId(word.text);
    if (!id.ok()) {
      return id.status().Prefixed(
          ErrorAt(file_, word.position, info.predicate).message());
    }
    if (!*id) {
      return Error(word, std::string("there is no ") +
                             (user ? "user " : "group ") + Quoted(word.text));
    }
    *number = **id;
    return Status::Ok();
  }

  // --- text ----------------------------------------------------------------

  Status CheckText(const FieldInfo& info, const AstPredicate& ast,
                   Predicate* out) const {
    out->form = Predicate::Form::kText;
    const bool glob = ast.comparison == Comparison::kMatch;
    out->text.kind = glob ? TextMatch::Kind::kGlob
                     : ast.comparison == Comparison::kNotEqual
                         ? TextMatch::Kind::kNoneOf
                         : TextMatch::Kind::kAnyOf;
    std::vector<std::string>& texts = out->text.texts;
    for (const AstValue& value : ast.values) {
      const AstWord& word = value.words[0];
      if (Status s = CheckTextValue(info, word, glob); !s.ok()) return s;
      texts.push_back(word.text);
    }
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return Status::Ok();
  }

  // Refuses what no text of the field can ever be.
  Status CheckTextValue(const FieldInfo& info, const AstWord& word,
                        bool glob) const {
    const std::string& text = word.text;
    const std::string name(info.predicate);
    if (text.empty()) {
      return Error(word, "no '" + name + "' is ever empty");
    }
    if (glob) {
      const auto compiled =
          Glob::Compile(text, info.shape == DataShape::kPath ? GlobKind::kPath
                                                             : GlobKind::kName);
      if (!compiled.ok()) {
        return Error(word, Quoted(text) + " is " + compiled.status().message());
      }
    } else if (!word.quoted && text.find_first_of("*?[") != std::string::npos) {
      return Error(word, Quoted(text) +
                             " looks like a pattern: use ~, or "
                             "quote it if it is meant literally");
    }
    switch (info.field) {
      case Field::kName:
        if (text.find('/') != std::string::npos) {
          return Error(word, "a name holds no '/': " + Quoted(text) +
                                 " can only be a path");
        }
        break;
      case Field::kExt:
        if (text.find_first_of("./") != std::string::npos) {
          return Error(word,
                       "an extension holds no '.' and no '/': " + Quoted(text) +
                           "; it is written without its dot");
        }
        break;
      case Field::kPath:
      case Field::kFirstPath:
      case Field::kNewPath:
        return CheckPath(word, glob);
      default:
        break;
    }
    const size_t limit = info.field == Field::kComm ? kMaxCallerNameBytes
                         : info.source == FieldSource::kDetails
                             ? kMaxDetailBytes
                             : kMaxNameBytes;
    if (!glob && text.size() > limit) {
      return Error(word, "no '" + name + "' is longer than " +
                             std::to_string(limit) + " bytes");
    }
    return Status::Ok();
  }

  Status CheckPath(const AstWord& word, bool glob) const {
    const std::string& text = word.text;
    const bool rooted =
        text[0] == '/' || (glob && std::string_view("*?[\\").find(text[0]) !=
                                       std::string_view::npos);
    if (!rooted) {
      return Error(word, "a path begins with '/', the mount point; " +
                             Quoted(text) + " does not");
    }
    if (text.size() > 1 && text.ends_with('/')) {
      return Error(word, "no path ends in '/', as " + Quoted(text) + " does");
    }
    if (text.find("//") != std::string::npos) {
      return Error(word, "no path holds '//', as " + Quoted(text) + " does");
    }
    return Status::Ok();
  }

  std::string_view file_;
  const NameService& names_;
};

}  // namespace

bool MayBeUnknown(Field field) {
  switch (Info(field).source) {
    case FieldSource::kCaller:
    case FieldSource::kSyscall:
    case FieldSource::kDetails:
    case FieldSource::kAncestors:
      return true;
    default:
      return false;
  }
}

uint64_t OrderBias(Field field) {
  return Info(field).type == FieldType::kSigned ? kSignBit : 0;
}

Result<CheckedFilter> CheckFilter(const Ast& ast, std::string_view file,
                                  const NameService& names) {
  CheckedFilter filter;
  if (Status s = Checker(file, names).Check(ast, &filter); !s.ok()) return s;
  return filter;
}

}  // namespace tracefs
