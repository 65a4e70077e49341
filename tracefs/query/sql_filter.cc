#include "tracefs/query/sql_filter.h"

#include <optional>
#include <vector>

#include "filters/input/check.h"
#include "filters/input/name_service.h"
#include "filters/input/ops_with.h"
#include "filters/input/trace_words.h"
#include "tracefs/base/join.h"
#include "tracefs/base/printable.h"
#include "tracefs/event/op.h"
#include "tracefs/export/columns.h"
#include "tracefs/query/sql_text.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::query {
namespace {

using Strings = std::vector<std::string>;

std::string List(const Strings& parts) {
  return "(" + JoinWords(parts, ", ") + ")";
}

// The regular expression, as RE2 and Java know them, that a pattern is.
std::string RegexOf(std::string_view glob, bool path) {
  const std::string_view any_one = path ? "[^/]" : ".";
  std::string out = "^";
  for (size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    if (c == '*') {
      const bool two = i + 1 < glob.size() && glob[i + 1] == '*';
      if (path && two && i > 0 && glob[i - 1] == '/' && i + 2 < glob.size() &&
          glob[i + 2] == '/') {
        out += "(.*/)?";
        i += 2;
        continue;
      }
      if (two) ++i;
      ((out += two ? std::string_view(".") : any_one)) += '*';
    } else if (c == '?') {
      out += any_one;
    } else if (c == '[') {
      const size_t from = i + 1 +
                          (glob.substr(i + 1).starts_with('!') ||
                                   glob.substr(i + 1).starts_with('^')
                               ? 1
                               : 0);
      const size_t end = glob.find(']', from + 1);
      out += from == i + 1 ? "[" : "[^";
      for (const char member : glob.substr(from, end - from)) {
        if (member == '[' || member == ']' || member == '\\' || member == '^') {
          out += '\\';
        }
        out += member;
      }
      out += ']';
      i = end;
    } else {
      const char literal = c == '\\' && i + 1 < glob.size() ? glob[++i] : c;
      // What is escaped in a column is so in the pattern, too; then as a class,
      // because engines differ in what a backslash in a text is.
      for (const char byte : EscapedText({&literal, 1})) {
        const bool plain = (byte >= '0' && byte <= '9') ||
                           (byte >= 'a' && byte <= 'z') ||
                           (byte >= 'A' && byte <= 'Z') || byte == '/' ||
                           byte == '_' || byte == '-' || byte == ' ';
        if (plain) {
          out += byte;
        } else if (byte == '\\' || byte == '^' || byte == '[' || byte == ']') {
          (out += '\\') += byte;
        } else {
          ((out += '[') += byte) += ']';
        }
      }
    }
  }
  return out + '$';
}

class Writer {
 public:
  // `inverted`: below a NOT, where "not known" has to be made false.
  Status Write(const CheckedFilter& filter, bool inverted, std::string* out) {
    using Kind = CheckedFilter::Kind;
    switch (filter.kind) {
      case Kind::kAll:
        return {};
      case Kind::kPredicate:
        return WritePredicate(filter.predicate, inverted, out);
      case Kind::kNot: {
        std::string inner;
        const Status s = Write(filter.children[0], true, &inner);
        *out += "NOT (" + inner + ")";
        return s;
      }
      case Kind::kAnd:
      case Kind::kOr:
        break;
    }
    Strings parts;
    for (const CheckedFilter& child : filter.children) {
      std::string part;
      if (Status s = Write(child, inverted, &part); !s.ok()) return s;
      const bool nested = child.kind == Kind::kAnd || child.kind == Kind::kOr;
      parts.push_back(nested ? "(" + part + ")" : part);
    }
    *out += JoinWords(parts, filter.kind == Kind::kAnd ? " AND " : " OR ");
    return {};
  }

 private:
  static Status Refused(Field field) {
    return Status::Invalid("'" + std::string(Info(field).predicate) +
                           "' has no answer in SQL: leave it out, or ask the "
                           "traces");
  }

  static Status WritePredicate(const Predicate& p, bool inverted,
                               std::string* out) {
    std::string made;
    bool certain = false;  // never NULL
    switch (p.form) {
      case Predicate::Form::kOps: {
        Strings names;
        for (size_t op = 0; op < kOpCount; ++op) {
          if ((p.ops >> op & 1) != 0) {
            names.push_back(SqlText(OpName(static_cast<Op>(op))));
          }
        }
        made = names.empty()       ? "FALSE"
               : names.size() == 1 ? "op = " + names[0]
                                   : "op IN " + List(names);
        certain = true;
        break;
      }
      case Predicate::Form::kNumber:
        if (Status s = Number(p, &made, &certain); !s.ok()) return s;
        if (MeansSeveral(p.field)) {
          std::string ops;
          if (Status s =
                  WritePredicate(PredicateOnOps(p.field), inverted, &ops);
              !s.ok()) {
            return s;
          }
          made = "(" + ops + " AND " + made + ")";
        }
        if (p.field == Field::kInode) {
          if (Status s = OrSecondInode(p, &made); !s.ok()) return s;
          certain = true;
        }
        break;
      case Predicate::Form::kText:
        if (Status s = Text(p, &made); !s.ok()) return s;
        break;
    }
    *out += inverted && !certain ? "coalesce(" + made + ", FALSE)" : made;
    return {};
  }

  // A field that columns have as a word: the words of the numbers in the set.
  static Strings Words(const IntervalSet& set, uint64_t end,
                       std::string_view (*name)(uint64_t)) {
    Strings words;
    for (uint64_t n = 1; n < end; ++n) {
      if (set.Contains(n) && !name(n).empty()) {
        words.push_back(SqlText(name(n)));
      }
    }
    return words;
  }

  static Status Number(const Predicate& p, std::string* out, bool* certain) {
    if (p.field == Field::kErrno) {
      *certain = true;
      *out = Errno(p.set);
      return {};
    }
    if (p.field == Field::kSyscall ||
        Info(p.field).source == FieldSource::kAncestors) {
      return Refused(p.field);
    }
    const Column* const column = FindColumn(Info(p.field).predicate);
    if (column == nullptr || column->source != ColumnSource::kField) {
      return Refused(p.field);
    }
    std::string name = SqlName(column->name);
    if (p.set.full()) {
      *certain = true;
      *out = name + " IS NOT NULL";
      return {};
    }
    if (column->type == ColumnType::kFlag) {
      // Read and write have it; the column does not tell "0" from "absent".
      *certain = true;
      *out = p.set.Contains(1)
                 ? name
                 : "(NOT " + name + " AND op IN ('read', 'write'))";
      return {};
    }
    if (column->type == ColumnType::kWord) {
      const Strings words = Words(p.set, 16, &FileTypeName);
      *out = words.empty() ? "FALSE" : name + " IN " + List(words);
      return {};
    }
    if (p.mask != IntervalSet::kMax) {
      name = "(" + name + " & " + std::to_string(p.mask) + ")";
    }
    *out = Intervals(p.set, name, OrderBias(p.field));
    return {};
  }

  // Either file of a copy will do; neither part of the result is NULL.
  static Status OrSecondInode(Predicate p, std::string* out) {
    p.field = Field::kInodeOut;
    std::string second;
    bool certain = false;
    if (Status s = Number(p, &second, &certain); !s.ok()) return s;
    *out = "(coalesce(" + *out + ", FALSE) OR coalesce(" + second + ", FALSE))";
    return {};
  }

  static std::string Intervals(const IntervalSet& set, const std::string& name,
                               uint64_t bias) {
    const auto text = [bias](uint64_t value) {
      return bias == 0 ? std::to_string(value)
                       : std::to_string(static_cast<int64_t>(value ^ bias));
    };
    Strings single, parts;
    // "another one than 5" is two intervals around it.
    const auto& all = set.intervals();
    if (all.size() == 2 && all[0].first == 0 &&
        all[1].last == IntervalSet::kMax && all[0].last + 2 == all[1].first) {
      return name + " <> " + text(all[0].last + 1);
    }
    for (const Interval& i : all) {
      if (i.first == i.last) {
        single.push_back(text(i.first));
      } else if (i.first == 0) {
        parts.push_back(name + " <= " + text(i.last));
      } else if (i.last == IntervalSet::kMax) {
        parts.push_back(name + " >= " + text(i.first));
      } else {
        parts.push_back(name + " BETWEEN " + text(i.first) + " AND " +
                        text(i.last));
      }
    }
    if (single.size() == 1) parts.push_back(name + " = " + single[0]);
    if (single.size() > 1) parts.push_back(name + " IN " + List(single));
    return parts.size() == 1 ? parts[0] : "(" + JoinWords(parts, " OR ") + ")";
  }

  // Success is no error in the column.
  static std::string Errno(const IntervalSet& set) {
    constexpr uint64_t kEnd = 134;
    const Strings words = Words(set, kEnd, &ErrnoName);
    const Strings others = Words(set.Complement(), kEnd, &ErrnoName);
    const std::string success = "errno IS NULL";
    if (others.empty()) return set.Contains(0) ? "TRUE" : "errno IS NOT NULL";
    if (words.empty()) return set.Contains(0) ? success : "FALSE";
    // Never NULL, so that NOT means what it says.
    if (set.Contains(0)) {
      return words.size() <= others.size()
                 ? "(errno IS NULL OR errno IN " + List(words) + ")"
                 : "(errno IS NULL OR errno NOT IN " + List(others) + ")";
    }
    return words.size() <= others.size()
               ? "coalesce(errno IN " + List(words) + ", FALSE)"
               : "coalesce(errno NOT IN " + List(others) + ", FALSE)";
  }

  static Status Text(const Predicate& p, std::string* out) {
    // Either end matches where there are two.
    Strings columns;
    const bool path = p.field == Field::kPath || p.field == Field::kFirstPath ||
                      p.field == Field::kNewPath;
    if (p.field == Field::kPath) {
      columns = {"path", "path2"};
    } else if (path) {
      columns = {p.field == Field::kNewPath ? "path2" : "path"};
    } else if (p.field == Field::kName) {
      columns = {"path_name", "path2_name"};
    } else if (p.field == Field::kExt) {
      columns = {"path_ext", "path2_ext"};
    } else {
      const Column* const column = FindColumn(Info(p.field).predicate);
      if (column == nullptr ||
          Info(p.field).source == FieldSource::kAncestors) {
        return Refused(p.field);
      }
      columns = {SqlName(column->name)};
    }
    Strings parts;
    for (const std::string& column : columns) {
      Strings texts;
      for (const std::string& text : p.text.texts) {
        texts.push_back(SqlText(EscapedText(text)));
      }
      switch (p.text.kind) {
        case TextMatch::Kind::kAnyOf:
          parts.push_back(texts.size() == 1 ? column + " = " + texts[0]
                                            : column + " IN " + List(texts));
          break;
        case TextMatch::Kind::kNoneOf:
          parts.push_back(texts.size() == 1
                              ? column + " <> " + texts[0]
                              : column + " NOT IN " + List(texts));
          break;
        case TextMatch::Kind::kGlob: {
          const bool slashes =
              path || p.field == Field::kExe || p.field == Field::kCgroup;
          parts.push_back("regexp_matches(" + column + ", " +
                          SqlText(RegexOf(p.text.texts[0], slashes)) + ")");
          break;
        }
        case TextMatch::Kind::kKnown:
          parts.push_back(column + " IS NOT NULL");
          break;
      }
    }
    *out = parts.size() == 1 ? parts[0] : "(" + JoinWords(parts, " OR ") + ")";
    return {};
  }
};

}  // namespace

Result<std::string> SqlCondition(std::string_view filter,
                                 std::string_view origin) {
  const auto ast = ParseFilter(filter, origin);
  if (!ast.ok()) return ast.status();
  const auto checked = CheckFilter(*ast, origin, SystemNameService());
  if (!checked.ok()) return checked.status();
  std::string made;
  if (Status s = Writer().Write(*checked, false, &made); !s.ok()) {
    return s.Prefixed(origin);
  }
  return made;
}

}  // namespace tracefs::query
