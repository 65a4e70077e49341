#include "filters/input/parse.h"

#include <algorithm>
#include <array>

#include "filters/input/trace_words.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/string_literal.h"
#include "tracefs/event/field.h"

namespace tracefs {
namespace {

constexpr std::array<std::string_view, 9> kComparisons = {
    "=", "!=", "<", "<=", ">", ">=", "IN", "~", "of"};

constexpr std::array<std::string_view, 4> kKeywords = {"AND", "OR", "NOT",
                                                       "IN"};

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

// The bytes of a value that stands without quotes. The rest means something
// to the grammar or is easily mistaken for it.
bool IsBareByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte <= ' ' || byte == 0x7f) return false;
  return std::string_view("(){},;\"#|&=<>").find(c) == std::string_view::npos;
}

// Upper or lower case, not a mix: "And" is more likely a mistake.
bool IsKeyword(std::string_view word, std::string_view keyword) {
  if (word == keyword) return true;
  return word.size() == keyword.size() &&
         std::equal(word.begin(), word.end(), keyword.begin(),
                    [](char a, char b) { return a == b - 'A' + 'a'; });
}

bool IsAnyKeyword(std::string_view word) {
  return std::any_of(
      kKeywords.begin(), kKeywords.end(),
      [&](std::string_view keyword) { return IsKeyword(word, keyword); });
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, SourcePosition start)
      : in_(text, file, start) {}

  Result<Ast> Parse() {
    in_.SkipSpace();
    Ast ast;
    if (in_.AtEnd()) return ast;
    if (Status s = ParseOr(0, &ast); !s.ok()) return s;
    if (in_.AtEnd()) return ast;
    return UnexpectedAfterExpression();
  }

 private:
  // The word or byte at the cursor, for "found …".
  std::string_view Next() const { return in_.Next(IsWordByte); }
  std::string Found() const {
    return in_.Found(IsWordByte, "the end of the filter");
  }

  Status UnexpectedAfterExpression() const {
    if (in_.Peek() == ')') {
      return in_.ErrorHere("this ')' closes no '('");
    }
    return in_.ErrorHere("expected AND, OR or the end, found " + Found() +
                         DidYouMean(Next(), kKeywords));
  }

  bool TakeKeyword(std::string_view keyword, std::string_view symbol) {
    if (!symbol.empty() && in_.Rest().starts_with(symbol)) {
      in_.Advance(symbol.size());
    } else if (IsKeyword(Next(), keyword)) {
      in_.Advance(keyword.size());
    } else {
      return false;
    }
    in_.SkipSpace();
    return true;
  }

  // Puts what `parse` reads, separated by the keyword, into one n-ary node.
  template <typename ParseChild>
  Status ParseChain(Ast::Kind kind, std::string_view keyword,
                    std::string_view symbol, Ast* ast, ParseChild parse) {
    if (Status s = parse(ast); !s.ok()) return s;
    if (!TakeKeyword(keyword, symbol)) return Status::Ok();
    Ast chain;
    chain.kind = kind;
    Append(std::move(*ast), &chain);
    do {
      Ast next;
      if (Status s = parse(&next); !s.ok()) return s;
      Append(std::move(next), &chain);
    } while (TakeKeyword(keyword, symbol));
    *ast = std::move(chain);
    return Status::Ok();
  }

  static void Append(Ast child, Ast* chain) {
    if (child.kind != chain->kind) {
      chain->children.push_back(std::move(child));
      return;
    }
    for (Ast& grandchild : child.children) {
      chain->children.push_back(std::move(grandchild));
    }
  }

  Status ParseOr(size_t depth, Ast* ast) {
    return ParseChain(Ast::Kind::kOr, "OR", "||", ast,
                      [&](Ast* child) { return ParseAnd(depth, child); });
  }

  Status ParseAnd(size_t depth, Ast* ast) {
    return ParseChain(Ast::Kind::kAnd, "AND", "&&", ast,
                      [&](Ast* child) { return ParseFactor(depth, child); });
  }

  // "under" "(" or ")": the same of the process, or of one above it.
  Status ParseUnder(size_t depth, Ast* ast) {
    const AstWord under = {"under", in_.position(), false};
    in_.Advance(under.text.size());
    in_.SkipSpace();
    if (in_.Peek() != '(') {
      return in_.ErrorHere("expected '(' after 'under', found " + Found());
    }
    Ast inner;
    if (Status s = ParseFactor(depth, &inner); !s.ok()) return s;
    ast->kind = Ast::Kind::kOr;
    return SpreadUnder(under, inner, ast);
  }

  // Becomes what `descendant of` says, so that whatever knows that knows this.
  Status SpreadUnder(const AstWord& under, const Ast& inner, Ast* chain) {
    if (inner.kind == Ast::Kind::kOr) {
      for (const Ast& child : inner.children) {
        if (Status s = SpreadUnder(under, child, chain); !s.ok()) return s;
      }
      return Status::Ok();
    }
    const AstPredicate& asked = inner.predicate;
    const FieldInfo* const info = FieldByPredicate(asked.field.text);
    const bool known =
        inner.kind == Ast::Kind::kPredicate && info != nullptr &&
        (info->field == Field::kComm || info->field == Field::kPid) &&
        (asked.comparison == Comparison::kEqual ||
         asked.comparison == Comparison::kIn);
    if (!known) {
      return ErrorAt(in_.file(), under.position,
                     "under( ) takes cname and cpid, with = or IN, and OR "
                     "between them: no more is known of ancestors");
    }
    chain->children.push_back(inner);
    for (const AstValue& value : asked.values) {
      if (++predicates_ > kMaxFilterPredicates) {
        return in_.ErrorHere("more than " +
                             std::to_string(kMaxFilterPredicates) +
                             " predicates");
      }
      Ast above;
      above.kind = Ast::Kind::kPredicate;
      above.predicate.field = {"descendant", under.position, false};
      above.predicate.comparison = Comparison::kOf;
      above.predicate.comparison_position = asked.comparison_position;
      above.predicate.values.push_back(value);
      chain->children.push_back(std::move(above));
    }
    return Status::Ok();
  }

  // { NOT } ( "(" or ")" | under | predicate )
  Status ParseFactor(size_t depth, Ast* ast) {
    bool negated = false;
    while (in_.Peek(1) != '=' && TakeKeyword("NOT", "!")) negated = !negated;
    Ast inner;
    if (in_.Peek() == '(') {
      const SourcePosition open = in_.position();
      if (depth == kMaxFilterNesting) {
        return in_.ErrorHere("more than " + std::to_string(kMaxFilterNesting) +
                             " parentheses inside each other");
      }
      in_.Advance();
      in_.SkipSpace();
      if (Status s = ParseOr(depth + 1, &inner); !s.ok()) return s;
      if (in_.AtEnd()) {
        return ErrorAt(in_.file(), open, "this '(' is never closed");
      }
      if (in_.Peek() != ')') {
        return in_.ErrorHere("expected AND, OR or ')', found " + Found() +
                             DidYouMean(Next(), kKeywords));
      }
      in_.Advance();
      in_.SkipSpace();
    } else if (SameButForCase(Next(), "under")) {
      if (Status s = ParseUnder(depth, &inner); !s.ok()) return s;
    } else {
      inner.kind = Ast::Kind::kPredicate;
      if (Status s = ParsePredicate(&inner.predicate); !s.ok()) return s;
    }
    if (!negated) {
      *ast = std::move(inner);
    } else if (inner.kind == Ast::Kind::kNot) {
      *ast = Ast(std::move(inner.children[0]));
    } else {
      ast->kind = Ast::Kind::kNot;
      ast->children.push_back(std::move(inner));
    }
    return Status::Ok();
  }

  Status ParsePredicate(AstPredicate* predicate) {
    const std::string_view word = in_.AtEnd() ? "" : Next();
    if (word.empty() || !IsWordByte(word[0]) || IsAnyKeyword(word)) {
      return in_.ErrorHere("expected a predicate, found " + Found());
    }
    if (++predicates_ > kMaxFilterPredicates) {
      return in_.ErrorHere("more than " + std::to_string(kMaxFilterPredicates) +
                           " predicates");
    }
    if (word.size() > kMaxFilterWordBytes) {
      return in_.ErrorHere("a word longer than " +
                           std::to_string(kMaxFilterWordBytes) + " bytes");
    }
    predicate->field = {std::string(word), in_.position(), false};
    in_.Advance(word.size());
    in_.SkipSpace();
    if (IsFlagWord(predicate->field.text) && !ComparisonFollows()) {
      predicate->comparison_position = predicate->field.position;
      predicate->comparison = Comparison::kEqual;
      predicate->values.push_back({{{"1", predicate->field.position, false}}});
      return Status::Ok();
    }
    if (Status s = ParseComparison(predicate); !s.ok()) return s;
    if (predicate->comparison != Comparison::kIn) {
      predicate->values.emplace_back();
      return ParseValue(&predicate->values.back());
    }
    return ParseSet(predicate);
  }

  // A flag alone asks whether it is set.
  static bool IsFlagWord(std::string_view word) {
    const FieldInfo* const info = FieldByPredicate(word);
    if (info != nullptr) return IsFlag(info->field);
    const TraceWordRow* const row = FindTraceWord(word);
    return row != nullptr && row->word == TraceWord::kInferred;
  }
  bool ComparisonFollows() const {
    if (in_.Peek() == '!') return in_.Peek(1) == '=';
    return (in_.Peek() != 0 && std::string_view("=<>~").find(in_.Peek()) !=
                                   std::string_view::npos) ||
           IsKeyword(Next(), "IN");
  }

  Status ParseComparison(AstPredicate* predicate) {
    predicate->comparison_position = in_.position();
    const std::string_view rest = in_.Rest();
    // Longer ones first. "==" is what programmers type.
    constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
        {"==", Comparison::kEqual},     {"!=", Comparison::kNotEqual},
        {"<=", Comparison::kLessEqual}, {">=", Comparison::kGreaterEqual},
        {"=", Comparison::kEqual},      {"<", Comparison::kLess},
        {">", Comparison::kGreater},    {"~", Comparison::kMatch},
    };
    if (FieldByPredicate(predicate->field.text) == &Info(Field::kAncestor)) {
      if (!TakeKeyword("OF", "")) {
        return in_.ErrorHere("expected 'of' after " +
                             Quoted(predicate->field.text) + ", found " +
                             Found());
      }
      predicate->comparison = Comparison::kOf;
      return Status::Ok();
    }
    for (const auto& [symbol, comparison] : kSymbols) {
      if (!rest.starts_with(symbol)) continue;
      in_.Advance(symbol.size());
      predicate->comparison = comparison;
      in_.SkipSpace();
      return Status::Ok();
    }
    if (TakeKeyword("IN", "")) {
      predicate->comparison = Comparison::kIn;
      return Status::Ok();
    }
    return in_.ErrorHere("expected an operator (= != < <= > >= IN ~) after " +
                         Quoted(predicate->field.text) + ", found " + Found());
  }

  // "{" value { [","] value } "}"
  Status ParseSet(AstPredicate* predicate) {
    const SourcePosition open = in_.position();
    if (in_.Peek() != '{') {
      return in_.ErrorHere("expected '{' after IN, found " + Found());
    }
    in_.Advance();
    in_.SkipSpace();
    while (in_.Peek() != '}') {
      if (in_.AtEnd()) {
        return ErrorAt(in_.file(), open, "this '{' is never closed");
      }
      predicate->values.emplace_back();
      if (Status s = ParseValue(&predicate->values.back()); !s.ok()) return s;
      if (in_.Peek() == ',') {
        in_.Advance();
        in_.SkipSpace();
      }
    }
    if (predicate->values.empty()) {
      return ErrorAt(in_.file(), open, "an empty set matches nothing");
    }
    in_.Advance();
    in_.SkipSpace();
    return Status::Ok();
  }

  // word { "|" word }
  Status ParseValue(AstValue* value) {
    for (;;) {
      if (++values_ > kMaxFilterValues) {
        return in_.ErrorHere("more than " + std::to_string(kMaxFilterValues) +
                             " values");
      }
      value->words.emplace_back();
      if (Status s = ParseWord(&value->words.back()); !s.ok()) return s;
      in_.SkipSpace();
      if (in_.Peek() != '|' || in_.Peek(1) == '|') return Status::Ok();
      in_.Advance();
      in_.SkipSpace();
    }
  }

  Status ParseWord(AstWord* word) {
    word->position = in_.position();
    if (in_.Peek() == '"') {
      word->quoted = true;
      auto text = in_.TakeString(kMaxFilterWordBytes);
      if (!text.ok()) return text.status();
      word->text = *std::move(text);
      return Status::Ok();
    }
    const size_t begin = in_.offset();
    while (IsBareByte(in_.Peek())) in_.Advance();
    const std::string_view text = in_.Since(begin);
    if (text.empty() || IsAnyKeyword(text)) {
      const std::string found =
          text.empty() ? Found() : Quoted(text) + " (a name needs quotes)";
      return ErrorAt(in_.file(), word->position,
                     "expected a value, found " + found);
    }
    if (text.size() > kMaxFilterWordBytes) {
      return ErrorAt(in_.file(), word->position,
                     "a word longer than " +
                         std::to_string(kMaxFilterWordBytes) + " bytes");
    }
    word->text = std::string(text);
    return Status::Ok();
  }

  TextCursor in_;
  size_t predicates_ = 0;
  size_t values_ = 0;
};

void DumpWord(const AstWord& word, std::string* out) {
  *out += word.quoted ? StringLiteral(word.text) : word.text;
}

void DumpPredicate(const AstPredicate& predicate, std::string* out) {
  *out += predicate.field.text;
  *out += ' ';
  *out += ComparisonText(predicate.comparison);
  const bool set = predicate.comparison == Comparison::kIn;
  if (set) *out += " {";
  for (const AstValue& value : predicate.values) {
    for (const AstWord& word : value.words) {
      *out += &word == &value.words.front() ? " " : " | ";
      DumpWord(word, out);
    }
    if (set && &value != &predicate.values.back()) *out += ',';
  }
  if (set) *out += " }";
}

void DumpTo(const Ast& ast, std::string* out) {
  switch (ast.kind) {
    case Ast::Kind::kAll:
      *out += "# all";
      return;
    case Ast::Kind::kPredicate:
      DumpPredicate(ast.predicate, out);
      return;
    case Ast::Kind::kNot:
      *out += "NOT (";
      DumpTo(ast.children[0], out);
      *out += ')';
      return;
    case Ast::Kind::kAnd:
    case Ast::Kind::kOr:
      *out += '(';
      for (const Ast& child : ast.children) {
        if (&child != &ast.children.front()) {
          *out += ast.kind == Ast::Kind::kAnd ? " AND " : " OR ";
        }
        DumpTo(child, out);
      }
      *out += ')';
      return;
  }
}

}  // namespace

std::string_view ComparisonText(Comparison comparison) {
  return kComparisons[static_cast<size_t>(comparison)];
}

Result<Ast> ParseFilter(std::string_view text, std::string_view file,
                        SourcePosition start) {
  if (text.size() > kMaxFilterBytes) {
    return ErrorAt(
        file, start,
        "a filter longer than " + std::to_string(kMaxFilterBytes) + " bytes");
  }
  return Parser(text, file, start).Parse();
}

std::string Dump(const Ast& ast) {
  std::string out;
  DumpTo(ast, &out);
  return out;
}

}  // namespace tracefs
