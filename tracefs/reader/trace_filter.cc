#include "tracefs/reader/trace_filter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "filters/input/check.h"
#include "filters/input/compile.h"
#include "filters/input/glob.h"
#include "filters/input/parse.h"
#include "filters/input/trace_words.h"
#include "tracefs/base/time_window.h"
#include "tracefs/base/units.h"
#include "tracefs/format/block_decoder.h"

namespace tracefs {

class TraceFilter::Node {
 public:
  virtual ~Node() = default;
  virtual bool Keep(format::Record& record) const = 0;
};

namespace {

using format::Record;
using NodePtr = std::unique_ptr<const TraceFilter::Node>;

// --- Nodes.

class CompiledNode final : public TraceFilter::Node {
 public:
  explicit CompiledNode(CompiledFilter filter) : filter_(std::move(filter)) {}
  bool Keep(Record& record) const override {
    return filter_.program(record.event.op).Keep(record.event);
  }

 private:
  const CompiledFilter filter_;
};

class JoinNode final : public TraceFilter::Node {
 public:
  JoinNode(Ast::Kind kind, std::vector<NodePtr> children)
      : kind_(kind), children_(std::move(children)) {}
  bool Keep(Record& record) const override {
    if (kind_ == Ast::Kind::kNot) return !children_[0]->Keep(record);
    const bool decides = kind_ == Ast::Kind::kOr;
    for (const NodePtr& child : children_) {
      if (child->Keep(record) == decides) return decides;
    }
    return !decides;
  }

 private:
  const Ast::Kind kind_;
  const std::vector<NodePtr> children_;
};

bool Compare(Comparison comparison, uint64_t have,
             const std::vector<uint64_t>& values) {
  const uint64_t value = values[0];
  switch (comparison) {
    case Comparison::kEqual:
    case Comparison::kIn:
      return std::ranges::find(values, have) != values.end();
    case Comparison::kNotEqual:
      return have != value;
    case Comparison::kLess:
      return have < value;
    case Comparison::kLessEqual:
      return have <= value;
    case Comparison::kGreater:
      return have > value;
    case Comparison::kGreaterEqual:
      return have >= value;
    case Comparison::kMatch:
    case Comparison::kOf:
      break;
  }
  return false;
}

class NumberNode final : public TraceFilter::Node {
 public:
  NumberNode(TraceWord word, Comparison comparison,
             std::vector<uint64_t> values)
      : word_(word), comparison_(comparison), values_(std::move(values)) {}
  // What was not recorded satisfies nothing.
  bool Keep(Record& record) const override {
    const std::optional<uint64_t> have = ValueOf(record);
    return have && Compare(comparison_, *have, values_);
  }

 private:
  std::optional<uint64_t> ValueOf(const Record& record) const {
    const Event& event = record.event;
    const auto field = [&event](Field f) -> std::optional<uint64_t> {
      if (!event.Has(f)) return std::nullopt;
      return event.Get(f);
    };
    switch (word_) {
      case TraceWord::kTime:
        if (record.time_resolution_ns == 0) return std::nullopt;
        return record.real_ns;
      case TraceWord::kFh:
        return field(Field::kFh);
      // A trace holds it only where it is so.
      case TraceWord::kInferred:
        return field(Field::kInferred).value_or(0);
      default:
        return std::nullopt;
    }
  }

  const TraceWord word_;
  const Comparison comparison_;
  const std::vector<uint64_t> values_;
};

class TextNode final : public TraceFilter::Node {
 public:
  TextNode(TraceWord word, Comparison comparison,
           std::vector<std::string> values, std::optional<Glob> glob)
      : word_(word),
        comparison_(comparison),
        values_(std::move(values)),
        glob_(std::move(glob)) {}
  bool Keep(Record& record) const override {
    const std::string_view have = TextOf(record);
    if (have.empty()) return false;
    if (glob_) return glob_->Matches(have);
    const bool found = std::ranges::find(values_, have) != values_.end();
    return found == (comparison_ != Comparison::kNotEqual);
  }

 private:
  std::string_view TextOf(const Record& record) const {
    switch (word_) {
      case TraceWord::kTarget:
        return record.event.target;
      case TraceWord::kXattr:
        return record.event.xattr_name;
      case TraceWord::kHost:
        return record.trace == nullptr
                   ? std::string_view()
                   : record.trace->description.header.Get("host.name");
      default:
        return {};
    }
  }

  const TraceWord word_;
  const Comparison comparison_;
  const std::vector<std::string> values_;
  const std::optional<Glob> glob_;
};

// --- From the tree.

bool HasTraceWord(const Ast& ast) {
  if (ast.kind == Ast::Kind::kPredicate) {
    return FindTraceWord(ast.predicate.field.text) != nullptr;
  }
  return std::ranges::any_of(ast.children, &HasTraceWord);
}

class Maker {
 public:
  Maker(const NameService& users, NameTable& names, std::string_view origin,
        bool utc)
      : users_(users), names_(names), origin_(origin), utc_(utc) {}

  Result<NodePtr> Make(const Ast& ast) const {
    if (!HasTraceWord(ast)) return Compiled(ast);
    if (ast.kind == Ast::Kind::kPredicate) return Predicate(ast.predicate);
    // What is joined and has no such word is compiled as one.
    Ast rest;
    rest.kind = ast.kind;
    std::vector<NodePtr> children;
    for (const Ast& child : ast.children) {
      if (ast.kind != Ast::Kind::kNot && !HasTraceWord(child)) {
        rest.children.push_back(child);
        continue;
      }
      auto made = Make(child);
      if (!made.ok()) return made.status();
      children.push_back(*std::move(made));
    }
    if (!rest.children.empty()) {
      auto made = Compiled(rest.children.size() == 1 ? rest.children[0] : rest);
      if (!made.ok()) return made.status();
      // It is the fastest to answer.
      children.insert(children.begin(), *std::move(made));
    }
    return NodePtr(std::make_unique<JoinNode>(ast.kind, std::move(children)));
  }

 private:
  Result<NodePtr> Compiled(const Ast& ast) const {
    const auto checked = CheckFilter(ast, origin_, users_);
    if (!checked.ok()) return checked.status();
    auto compiled = CompileFilter(*checked, names_);
    if (!compiled.ok()) return compiled.status();
    return NodePtr(std::make_unique<CompiledNode>(*std::move(compiled)));
  }

  Result<NodePtr> Predicate(const AstPredicate& ast) const {
    const TraceWordRow& row = *FindTraceWord(ast.field.text);
    const bool ordered = ast.comparison != Comparison::kEqual &&
                         ast.comparison != Comparison::kNotEqual &&
                         ast.comparison != Comparison::kIn;
    const bool match = ast.comparison == Comparison::kMatch;
    const bool of = ast.comparison == Comparison::kOf;
    if (of || (row.text ? ordered && !match : match)) {
      return ErrorAt(
          origin_, ast.comparison_position,
          "'" + std::string(row.name) + "' cannot be compared with " +
              std::string(ComparisonText(ast.comparison)) + "; it takes " +
              (row.text ? "= != IN ~" : "= != < <= > >= IN"));
    }
    std::vector<uint64_t> numbers;
    std::vector<std::string> texts;
    for (const AstValue& value : ast.values) {
      const AstWord& word = value.words[0];
      if (value.words.size() > 1) {
        return ErrorAt(origin_, value.words[1].position,
                       "'|' joins flags, and '" + std::string(row.name) +
                           "' has none; use IN { … }");
      }
      texts.push_back(word.text);
      if (row.text) continue;
      auto number = NumberOf(row, word);
      if (!number.ok()) return number.status();
      numbers.push_back(*number);
    }
    if (!row.text) {
      return NodePtr(std::make_unique<NumberNode>(row.word, ast.comparison,
                                                  std::move(numbers)));
    }
    std::optional<Glob> glob;
    if (match) {
      auto made = Glob::Compile(texts[0], GlobKind::kName);
      if (!made.ok()) {
        return ErrorAt(origin_, ast.values[0].words[0].position,
                       "\"" + texts[0] + "\" is " + made.status().message());
      }
      glob = *std::move(made);
    }
    return NodePtr(std::make_unique<TextNode>(
        row.word, ast.comparison, std::move(texts), std::move(glob)));
  }

  Result<uint64_t> NumberOf(const TraceWordRow& row,
                            const AstWord& word) const {
    if (const auto number = ParseUnsigned(word.text)) return *number;
    if (row.word != TraceWord::kTime) {
      return ErrorAt(origin_, word.position,
                     "'" + std::string(row.name) + "' takes a number, not \"" +
                         word.text + "\"");
    }
    const auto time = ParseTimeSpec("time", word.text, utc_);
    if (time.ok() && time->kind == TimeSpec::Kind::kAbsolute) {
      return time->value;
    }
    return ErrorAt(origin_, word.position,
                   "'time' takes a date, as \"2026-01-02T14:03:05.25\", or ns "
                   "since 1970, not \"" +
                       word.text + "\"; --from and --to know more");
  }

  const NameService& users_;
  NameTable& names_;
  const std::string_view origin_;
  const bool utc_;
};

}  // namespace

TraceFilter::TraceFilter(std::unique_ptr<const Node> root)
    : root_(std::move(root)) {}
TraceFilter::TraceFilter(TraceFilter&&) noexcept = default;
TraceFilter& TraceFilter::operator=(TraceFilter&&) noexcept = default;
TraceFilter::~TraceFilter() = default;

bool TraceFilter::IsNeeded(std::string_view text) {
  const auto ast = ParseFilter(text);
  return ast.ok() && HasTraceWord(*ast);
}

Result<TraceFilter> TraceFilter::Compile(std::string_view text,
                                         std::string_view origin,
                                         const NameService& users,
                                         NameTable& names, bool utc) {
  const auto ast = ParseFilter(text, origin);
  if (!ast.ok()) return ast.status();
  auto root = Maker(users, names, origin, utc).Make(*ast);
  if (!root.ok()) return root.status();
  return TraceFilter(*std::move(root));
}

bool TraceFilter::Keep(Record& record) const { return root_->Keep(record); }

}  // namespace tracefs
