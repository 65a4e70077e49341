// How predicates and programs are shown to people: the Dump functions of
// check.h and program.h.
#include <algorithm>
#include <bit>
#include <string>

#include "filters/input/check.h"
#include "filters/input/program.h"
#include "filters/input/words.h"
#include "tracefs/base/string_literal.h"
#include "tracefs/event/op.h"
#include "tracefs/event/set_attributes.h"

namespace tracefs {
namespace {

// Longer lists are cut: a dump is for reading.
constexpr size_t kMaxShown = 64;

std::string Name(Field field) { return std::string(Info(field).predicate); }

void AppendCount(size_t all, std::string* out) {
  if (all > kMaxShown) {
    *out += " ... (" + std::to_string(all) + " in all)";
  }
}

std::string OpsText(uint64_t ops) {
  // A long list is shorter as the list of those left out.
  const auto count = static_cast<size_t>(std::popcount(ops));
  const bool others = count > kOpCount / 2;
  std::string words;
  for (size_t i = 0; i < kOpCount; ++i) {
    if (((ops >> i & 1) != 0) == others) continue;
    words += ' ';
    words += OpName(static_cast<Op>(i));
  }
  if ((others ? kOpCount - count : count) == 1) {
    return (others ? "op !=" : "op =") + words;
  }
  return (others ? "op not in {" : "op in {") + words + " }";
}

// `value` is in the order of the field.
std::string OrderedText(Field field, uint64_t value) {
  return ValueText(field, value ^ OrderBias(field));
}

// What `sets` looks for: any of the bits.
std::string SetsText(uint64_t mask) {
  std::string words;
  for (const SetAttribute& attribute : kSettableAttributes) {
    if ((mask & attribute.bits) != 0) (words += ' ') += attribute.name;
  }
  const std::string left = Name(Field::kValid);
  return std::has_single_bit(mask) ? left + " =" + words
                                   : left + " in {" + words + " }";
}

std::string NumberText(Field field, uint64_t mask, const IntervalSet& set) {
  constexpr uint64_t kMax = IntervalSet::kMax;
  if (field == Field::kValid) return SetsText(mask);
  std::string left = Name(field);
  // Modes are always masked to what chmod sets.
  const bool plain =
      mask == kMax || (Info(field).type == FieldType::kOctal && mask == 07777);
  if (!plain) left += " & " + ValueText(field, mask);
  const auto value = [&](uint64_t v) { return OrderedText(field, v); };
  const std::vector<Interval>& intervals = set.intervals();
  if (set.empty()) return left + " in { }";
  if (set.full()) return left + " is known";
  if (intervals.size() == 1) {
    const auto [first, last] = intervals[0];
    if (first == last) return left + " = " + value(first);
    if (first == 0) return left + " <= " + value(last);
    if (last == kMax) return left + " >= " + value(first);
    return left + " in { " + value(first) + ".." + value(last) + " }";
  }
  if (intervals.size() == 2 && intervals[0].first == 0 &&
      intervals[1].last == kMax &&
      intervals[0].last + 2 == intervals[1].first) {
    return left + " != " + value(intervals[0].last + 1);
  }
  std::string text = left + " in {";
  for (size_t i = 0; i < intervals.size() && i < kMaxShown; ++i) {
    text += ' ' + value(intervals[i].first);
    if (intervals[i].last == kMax) {
      text += "..";
    } else if (intervals[i].last != intervals[i].first) {
      text += ".." + value(intervals[i].last);
    }
  }
  AppendCount(intervals.size(), &text);
  return text + " }";
}

// Texts as the language would take them: quoted where they need it.
std::string TextWord(const std::string& text) {
  const bool bare =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte > ' ' && byte != 0x7f &&
               std::string_view("(){},;\"#|&=<>").find(c) ==
                   std::string_view::npos;
      });
  return bare ? text : StringLiteral(text);
}

std::string MatchText(Field field, const TextMatch& match) {
  const std::string left = Name(field);
  switch (match.kind) {
    case TextMatch::Kind::kGlob:
      return left + " ~ " + TextWord(match.texts[0]);
    case TextMatch::Kind::kNoneOf:
      return left + " != " + TextWord(match.texts[0]);
    case TextMatch::Kind::kKnown:
      return left + " is known";
    case TextMatch::Kind::kAnyOf:
      break;
  }
  if (field == Field::kAncestor) {
    return left + " of " + TextWord(match.texts[0]);
  }
  if (match.texts.size() == 1) return left + " = " + TextWord(match.texts[0]);
  std::string text = left + " in {";
  for (size_t i = 0; i < match.texts.size() && i < kMaxShown; ++i) {
    text += ' ' + TextWord(match.texts[i]);
  }
  AppendCount(match.texts.size(), &text);
  return text + " }";
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string Dump(const Predicate& predicate) {
  switch (predicate.form) {
    case Predicate::Form::kOps:
      return OpsText(predicate.ops);
    case Predicate::Form::kNumber:
      return NumberText(predicate.field, predicate.mask, predicate.set);
    case Predicate::Form::kText:
      return MatchText(predicate.field, predicate.text);
  }
  return {};
}

std::string Program::NodeText(const Node& node) const {
  const auto field = static_cast<Field>(node.field);
  const uint64_t bias = OrderBias(field);
  const auto first = node.lo ^ bias;
  switch (node.kind) {
    case NodeKind::kRange: {
      const uint64_t last = first + node.span;
      const IntervalSet set =
          first <= last ? IntervalSet::Range(first, last)
                        : IntervalSet::Range(last + 1, first - 1).Complement();
      return NumberText(field, node.mask, set);
    }
    case NodeKind::kBitmap: {
      std::vector<uint64_t> values;
      for (uint64_t i = 0; i < 64; ++i) {
        if ((node.span >> i & 1) != 0) values.push_back(first + i);
      }
      return NumberText(field, node.mask, IntervalSet::OfAll(values));
    }
    case NodeKind::kTable:
      return NumberText(field, node.mask, data_->tables[node.lo]);
    case NodeKind::kOps:
      return OpsText(node.mask);
    case NodeKind::kNames:
    case NodeKind::kNameList:
    case NodeKind::kCallerName:
    case NodeKind::kDetail:
    case NodeKind::kAncestor:
    case NodeKind::kPath: {
      const auto& list = data_->texts[node.span];
      std::string text = list.size() == 1 ? "" : "any of {";
      for (size_t i = 0; i < list.size() && i < kMaxShown; ++i) {
        if (list.size() > 1) text += i == 0 ? " " : ", ";
        text += MatchText(list[i]->field(), list[i]->match());
      }
      AppendCount(list.size(), &text);
      return list.size() == 1 ? text : text + " }";
    }
    case NodeKind::kDrop:
      return "drop";
    case NodeKind::kKeep:
      return "keep";
  }
  return {};
}

std::string Program::Dump() const {
  std::string out;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    out += std::to_string(i) + ": " + NodeText(node);
    if (node.kind != NodeKind::kDrop && node.kind != NodeKind::kKeep) {
      out += " ? " + std::to_string(node.yes) + " : " + std::to_string(node.no);
    }
    out += '\n';
  }
  return out;
}

std::string Program::DumpDot(std::string_view title) const {
  std::string out = "digraph \"" + Escaped(title) + "\" {\n";
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const std::string id = "n" + std::to_string(i);
    const bool terminal =
        node.kind == NodeKind::kDrop || node.kind == NodeKind::kKeep;
    out += "  " + id + " [label=\"" + Escaped(NodeText(node)) +
           "\", shape=" + (terminal ? "box" : "ellipse") + "];\n";
    if (terminal) continue;
    out +=
        "  " + id + " -> n" + std::to_string(node.yes) + " [label=\"true\"];\n";
    out += "  " + id + " -> n" + std::to_string(node.no) +
           " [label=\"false\", style=dashed];\n";
  }
  return out + "}\n";
}

}  // namespace tracefs
