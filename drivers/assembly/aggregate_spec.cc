#include "drivers/assembly/aggregate_spec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "drivers/assembly/key_counts.h"
#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"
#include "tracefs/event/field.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/constants.h"

namespace tracefs {
namespace {

using From = AggregateKey::From;

constexpr std::string_view kClauses[] = {"by",   "values", "every",
                                         "sort", "top",    "memory"};
constexpr std::string_view kValues[] = {"count", "errors", "bytes", "latency",
                                        "size"};

// What keys can be in order of, and the value that has it.
struct SortName {
  std::string_view name;
  AggregateSort sort;
  std::string_view value;
};
constexpr SortName kSortNames[] = {
    {"count", AggregateSort::kCount, "count"},
    {"errors", AggregateSort::kErrors, "errors"},
    {"bytes", AggregateSort::kBytes, "bytes"},
    {"time", AggregateSort::kTime, "latency"},
    {"mean", AggregateSort::kMean, "latency"},
    {"max", AggregateSort::kMax, "latency"},
};

// How many times as many keys are kept as are shown: a key that a `top`-th part
// of a quarter of the events belongs to is never missed.
constexpr size_t kSpareKeys = 4;

struct KeyName {
  std::string_view name;  // or any other name that filters know it by
  From from;
  Field field;
};

constexpr KeyName kKeyNames[] = {
    {"op", From::kOp, Field::kOp},
    {"uid", From::kNumber, Field::kUid},
    {"gid", From::kNumber, Field::kGid},
    {"pid", From::kNumber, Field::kPid},
    {"tid", From::kNumber, Field::kTid},
    {"ppid", From::kNumber, Field::kPpid},
    {"sid", From::kNumber, Field::kSid},
    {"pgid", From::kNumber, Field::kPgid},
    {"cname", From::kComm, Field::kComm},
    {"ext", From::kExt, Field::kExt},
    {"name", From::kName, Field::kName},
    {"dir", From::kDir, Field::kPath},
    {"path", From::kPath, Field::kPath},
    {"inode", From::kNumber, Field::kInode},
    {"type", From::kNumber, Field::kType},
    {"errno", From::kNumber, Field::kErrno},
};

uint16_t ArgOf(const KeyName& name) {
  switch (name.from) {
    case From::kOp:
      return static_cast<uint16_t>(format::ArgId::kKeyOp);
    case From::kDir:
      return static_cast<uint16_t>(format::ArgId::kDirectory);
    default:
      return Info(name.field).arg_id;
  }
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, SourcePosition position)
      : in_(text, file, position), begin_(position) {}

  Result<AggregateSpec> Parse() {
    for (;;) {
      in_.SkipSpace();
      if (in_.AtEnd()) break;
      if (in_.Peek() == ';') {
        in_.Advance();
        continue;
      }
      if (Status s = ParseClause(); !s.ok()) return s;
    }
    if (Status s = CheckSort(); !s.ok()) return s;
    if (Status s = CheckMemory(); !s.ok()) return s;
    return spec_;
  }

 private:
  // The word at the cursor; empty if there is none.
  std::string_view TakeWord() {
    in_.SkipSpace();
    position_ = in_.position();
    return in_.TakeWord(IsWordByte);
  }

  Status Expected(std::string_view what) const {
    const std::string found =
        in_.AtEnd() ? std::string("the end") : Quoted(in_.Rest().substr(0, 1));
    return in_.ErrorHere("aggregate: expected " + std::string(what) +
                         ", found " + found);
  }

  Status ErrorAtWord(const std::string& message) const {
    return ErrorAt(in_.file(), position_, "aggregate: " + message);
  }

  bool AtClauseEnd() {
    in_.SkipSpace();
    return in_.AtEnd() || in_.Peek() == ';';
  }

  Status ParseClause() {
    const std::string_view word = TakeWord();
    if (word.empty()) {
      return Expected("a clause (by, values, every, sort, top, memory)");
    }
    const auto* const found =
        std::find(std::begin(kClauses), std::end(kClauses), word);
    if (found == std::end(kClauses)) {
      return ErrorAtWord(Quoted(word) + " is no clause" +
                         DidYouMean(word, kClauses) +
                         " (known: by values every sort top memory)");
    }
    bool& seen = seen_[static_cast<size_t>(found - std::begin(kClauses))];
    if (seen) return ErrorAtWord(Quoted(word) + " is given twice");
    seen = true;
    if (word == "by") return ParseKeys();
    if (word == "values") return ParseValues();
    if (word == "sort") return ParseSort();
    return ParseNumber(word);
  }

  Status ParseKeys() {
    do {
      const std::string_view word = TakeWord();
      if (word.empty()) return Expected("what to count by");
      const auto* const found = std::find_if(
          std::begin(kKeyNames), std::end(kKeyNames),
          [&](const KeyName& k) { return SameField(k.name, word); });
      if (found == std::end(kKeyNames)) {
        std::vector<std::string_view> known;
        std::string list;
        for (const KeyName& k : kKeyNames) {
          known.push_back(k.name);
          list += ' ';
          list += k.name;
        }
        return ErrorAtWord("nothing can be counted by " + Quoted(word) +
                           DidYouMean(word, known) + " (known:" + list + ")");
      }
      AggregateKey key;
      key.from = found->from;
      key.arg_id = ArgOf(*found);
      key.field = static_cast<uint8_t>(Index(found->field));
      for (const AggregateKey& other : spec_.keys) {
        if (other.arg_id == key.arg_id) {
          return ErrorAtWord("by " + Quoted(word) + " is given twice");
        }
      }
      if (spec_.keys.size() == AggregateSpec::kMaxKeys) {
        return ErrorAtWord("more than " +
                           std::to_string(AggregateSpec::kMaxKeys) +
                           " parts of a key");
      }
      if (Status s = ParseDepth(&key); !s.ok()) return s;
      spec_.keys.push_back(key);
      in_.SkipSpace();
      if (in_.Peek() == ',') {
        in_.Advance();
        if (AtClauseEnd()) return Expected("what else to count by");
      }
    } while (!AtClauseEnd());
    return Status::Ok();
  }

  // "(2)" behind dir.
  Status ParseDepth(AggregateKey* key) {
    if (key->from != From::kDir) return Status::Ok();
    in_.SkipSpace();
    if (in_.Peek() != '(') return Status::Ok();
    in_.Advance();
    const std::string_view word = TakeWord();
    const std::optional<uint64_t> depth = ParseUnsigned(word);
    if (!depth || *depth == 0 || *depth > 64) {
      return ErrorAtWord("dir(N) needs a depth of 1 to 64, not " +
                         Quoted(word));
    }
    key->depth = static_cast<uint32_t>(*depth);
    in_.SkipSpace();
    if (in_.Peek() != ')') return Expected("')'");
    in_.Advance();
    return Status::Ok();
  }

  Status ParseValues() {
    spec_.errors = spec_.bytes = spec_.latency = spec_.size = false;
    do {
      const std::string_view word = TakeWord();
      if (word.empty()) {
        return Expected("a value (count, errors, bytes, latency, size)");
      }
      if (word == "errors") {
        spec_.errors = true;
      } else if (word == "bytes") {
        spec_.bytes = true;
      } else if (word == "latency") {
        spec_.latency = true;
      } else if (word == "size") {
        spec_.size = true;
      } else if (word != "count") {  // which is always there
        return ErrorAtWord(Quoted(word) + " is no value" +
                           DidYouMean(word, kValues) +
                           " (known: count errors bytes latency size)");
      }
      in_.SkipSpace();
      if (in_.Peek() == ',') in_.Advance();
    } while (!AtClauseEnd());
    return Status::Ok();
  }

  // "time", or "-time": the least first.
  Status ParseSort() {
    std::string_view word = TakeWord();
    sort_position_ = position_;
    if (word.empty()) {
      return Expected(
          "what to sort by (count, errors, bytes, time, mean, max)");
    }
    spec_.ascending = word.starts_with('-');
    if (spec_.ascending) word.remove_prefix(1);
    const auto* const found =
        std::ranges::find(kSortNames, word, &SortName::name);
    if (found == std::end(kSortNames)) {
      std::vector<std::string_view> known;
      for (const SortName& name : kSortNames) known.push_back(name.name);
      return ErrorAtWord("keys cannot be sorted by " + Quoted(word) +
                         DidYouMean(word, known) +
                         " (known: count errors bytes time mean max)");
    }
    spec_.sort = found->sort;
    sort_value_ = found->value;
    if (!AtClauseEnd()) return Expected("';' after sort");
    return Status::Ok();
  }

  // Clauses stand in any order: what is sorted by has to be counted.
  Status CheckSort() const {
    const bool counted = sort_value_ == "errors"    ? spec_.errors
                         : sort_value_ == "bytes"   ? spec_.bytes || spec_.size
                         : sort_value_ == "latency" ? spec_.latency
                                                    : true;
    if (counted) return Status::Ok();
    return ErrorAt(in_.file(), sort_position_,
                   "aggregate: to sort by this, say " + Quoted(sort_value_) +
                       " among the values");
  }

  Status ParseNumber(std::string_view clause) {
    const std::string_view word = TakeWord();
    if (clause == "every") {
      const std::optional<uint64_t> ns = ParseDuration(word);
      if (!ns || *ns < AggregateSpec::kMinEveryNs ||
          *ns > AggregateSpec::kMaxEveryNs) {
        return ErrorAtWord("every needs a duration of 1s to 24h, not " +
                           Quoted(word));
      }
      spec_.every_ns = *ns;
    } else if (clause == "top") {
      const std::optional<uint64_t> top = ParseUnsigned(word);
      if (!top || *top == 0 || *top > AggregateSpec::kMaxTop) {
        return ErrorAtWord("top needs a number of 1 to " +
                           std::to_string(AggregateSpec::kMaxTop) + ", not " +
                           Quoted(word));
      }
      spec_.top = static_cast<size_t>(*top);
    } else {
      const std::optional<uint64_t> bytes = ParseSize(word);
      if (!bytes || *bytes < AggregateSpec::kMinMemory ||
          *bytes > AggregateSpec::kMaxMemory) {
        return ErrorAtWord("memory needs a size of 256K to 256M, not " +
                           Quoted(word));
      }
      spec_.memory = static_cast<size_t>(*bytes);
    }
    if (!AtClauseEnd()) {
      return Expected("';' after " + std::string(clause));
    }
    return Status::Ok();
  }

  size_t CapacityWith(size_t bytes) const {
    return KeyCounts::Capacity(
        {.bytes = bytes, .latency = spec_.latency, .size = spec_.size});
  }

  Status CheckMemory() const {
    const size_t wanted = spec_.top * kSpareKeys;
    if (CapacityWith(spec_.memory) >= wanted) return Status::Ok();
    size_t enough = spec_.memory;
    while (enough < AggregateSpec::kMaxMemory &&
           CapacityWith(enough) < wanted) {
      enough = std::min(2 * enough, AggregateSpec::kMaxMemory);
    }
    const std::string advice =
        CapacityWith(enough) >= wanted
            ? "say memory " + std::to_string(enough >> 10) + "K"
            : "with these values top is at most " +
                  std::to_string(CapacityWith(enough) / kSpareKeys);
    return ErrorAt(in_.file(), begin_,
                   "aggregate: there is memory for " +
                       std::to_string(CapacityWith(spec_.memory)) +
                       " keys, too little to find the top " +
                       std::to_string(spec_.top) + "; " + advice);
  }

  TextCursor in_;
  const SourcePosition begin_;
  SourcePosition position_;  // of the word taken last
  SourcePosition sort_position_;
  std::string_view sort_value_ = "count";
  std::array<bool, std::size(kClauses)> seen_{};
  AggregateSpec spec_;
};

}  // namespace

std::string KeysText(const AggregateSpec& spec) {
  std::string text;
  for (const AggregateKey& key : spec.keys) {
    AppendWord(format::AggregateKeyLabel(key.arg_id), " ", &text);
    if (key.depth != 0) text += '(' + std::to_string(key.depth) + ')';
  }
  return text;
}

Result<AggregateSpec> ParseAggregateSpec(std::string_view text,
                                         std::string_view file,
                                         SourcePosition position) {
  return Parser(text, file, position).Parse();
}

}  // namespace tracefs
