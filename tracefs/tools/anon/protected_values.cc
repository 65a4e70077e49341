#include "tracefs/tools/anon/protected_values.h"

#include <algorithm>

#include "anonymize/name_parts.h"
#include "anonymize/sizes.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"

namespace tracefs::anonymize {
namespace {

using format::Argument;
using format::Message;
using format::MessageId;

constexpr size_t kDataPrefix = 32;
constexpr size_t kMinData = 8;
// Numbers in text are looked for where they are not everybody's.
constexpr size_t kMinDigits = 4;
constexpr size_t kMinLineBytes = 12;
// Values of each field are remembered up to this many.
constexpr size_t kMaxSeen = 250'000;
constexpr size_t kMaxSeenBytes = size_t{16} << 20;

// Numbers that can only be equal by accident when they are hidden; of those
// that are counted, all beyond the count (Auditor).
bool IsReplaced(const Rule& rule) {
  switch (rule.action) {
    case Action::kMap:
    case Action::kFpe:
    case Action::kHmac:
    case Action::kRandom:
    case Action::kEncrypt:
    case Action::kPaper:
    case Action::kShift:
    case Action::kDrop:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status ProtectedValues::Read(const std::string& trace, const Policy& policy,
                             const reader::TraceSet::Options& options) {
  Container container;
  const Status status = Walk(
      trace, options,
      {.on_header =
           [&](const format::SelfDescription& description,
               const format::Preamble& preamble,
               std::shared_ptr<const Plan>* plan) {
             auto made = LookupPlan(policy, description);
             if (!made.ok()) return made.status();
             *plan = *std::move(made);
             serial_ = AsText(preamble.serial);
             scan_.AddData(serial_, "the serial of the original");
             plan_ = *plan;
             MakeStates(*plan_);
             for (const auto& [key, value] : description.header.properties) {
               ProtectProperty(**plan, key, value);
               properties_[key] = value;
             }
             return Status::Ok();
           },
       .wants_numbers = [](const FieldPlan& field) { return Hidden(field); },
       .on_argument =
           [&](const Message& message, const Argument& argument,
               const FieldPlan& field) {
             Protect(message, argument, &states_[plan_->NumberOfField(field)]);
           },
       .on_block = nullptr},
      &container);
  for (auto& [group, numbers] : numbers_) numbers.Settle();
  operations_ = container.operations;
  return status;
}

bool ProtectedValues::HasProperty(std::string_view key,
                                  std::string_view value) const {
  const auto found = properties_.find(key);
  return found != properties_.end() && found->second == value;
}

bool ProtectedValues::IsOk(std::string_view word) const {
  return std::find(ok_words_.begin(), ok_words_.end(), word) != ok_words_.end();
}

void ProtectedValues::ProtectWord(std::string_view word,
                                  const std::string& class_name,
                                  const Rule& rule) {
  if (word.empty() || IsOk(word) ||
      std::binary_search(rule.keep.begin(), rule.keep.end(), word)) {
    return;
  }
  words_[class_name].Add(word);
  scan_.AddText(word, *names_.insert(class_name).first);
}

void ProtectedValues::ProtectName(std::string_view name,
                                  const std::string& class_name,
                                  const Rule& rule) {
  if (IsSpecialName(name) || IsOk(name) ||
      std::binary_search(rule.keep.begin(), rule.keep.end(), name)) {
    return;
  }
  const NameParts parts = SplitName(name, rule);
  ProtectWord(parts.stem, class_name, rule);
  // Extensions are words of everyday: only whole arguments count.
  if (parts.has_extension && !ShowsExtension(rule, parts.extension) &&
      !IsOk(parts.extension)) {
    words_[class_name].Add(parts.extension);
  }
}

void ProtectedValues::ProtectProperty(const Plan& plan, const std::string& key,
                                      std::string_view value) {
  if (plan.PropertyRule(key).action == Action::kKeep) return;
  const std::string& what = *names_.insert("property " + key).first;
  const auto add = [&](std::string_view text) {
    if (!IsOk(text)) scan_.AddText(text, what);
  };
  // A number or a short word says nothing of where it is from.
  const bool tells = value.size() >= kMinLineBytes || key == "host.name" ||
                     key.ends_with("path") || key.ends_with(".point");
  if (tells) add(value);
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view line = TakeUpTo(rest, '\n');
    if (line.size() >= kMinLineBytes) add(line);
  }
}

void ProtectedValues::MakeStates(const Plan& plan) {
  for (const FieldPlan& field : plan.fields()) {
    FieldState& state = states_.emplace_back();
    state.field = &field;
    // Properties came with the header.
    state.hidden = Hidden(field) && field.shape != Shape::kProperty;
    if (!state.hidden || field.shape != Shape::kNumber) continue;
    for (const std::string& kept : field.rule->keep) {
      if (const auto number = ParseUnsigned(kept))
        state.keep.push_back(*number);
    }
    if (IsReplaced(*field.rule)) state.numbers = &numbers_[GroupOf(field)];
    state.is_identity = field.class_name == "uid" || field.class_name == "gid";
    state.is_size = TellsOfSize(field.arg_id) == SizeTell::kSize;
  }
}

void ProtectedValues::Protect(const Message& message, const Argument& argument,
                              FieldState* state) {
  if (!state->hidden) return;
  if (state->field->shape == Shape::kNumber) {
    if (argument.has_length ||
        message.msg_id == static_cast<uint16_t>(MessageId::kStart)) {
      return;
    }
    const uint64_t number = LoadWide(argument.value);
    if (state->last == number) return;
    state->last = number;
    ProtectNumber(number, state);
    return;
  }
  const std::string_view value = AsText(argument.value);
  if (state->texts.Find(value)) return;
  if (state->texts.size() < kMaxSeen &&
      state->texts.bytes().size() < kMaxSeenBytes) {
    state->texts.Add(value);
  }
  ProtectText(value, *state->field);
}

void ProtectedValues::ProtectText(std::string_view value,
                                  const FieldPlan& field) {
  const Rule& rule = *field.rule;
  switch (field.shape) {
    case Shape::kPath:
      for (size_t at = 0; at <= value.size();) {
        const size_t end = std::min(value.find('/', at), value.size());
        ProtectName(value.substr(at, end - at), field.class_name, rule);
        at = end + 1;
      }
      return;
    case Shape::kComponent:
      ProtectName(value, field.class_name, rule);
      return;
    case Shape::kExtension:
      if (!ShowsExtension(rule, value) && !IsOk(value)) {
        words_[field.class_name].Add(value);
      }
      return;
    case Shape::kXattr:
      ProtectXattr(value, field.class_name, rule);
      return;
    case Shape::kBytes:
      if (field.arg_id == static_cast<uint16_t>(format::ArgId::kArgv) ||
          field.arg_id == static_cast<uint16_t>(format::ArgId::kEnviron)) {
        while (!value.empty()) {
          const std::string_view one = TakeUpTo(value, '\0');
          if (one.size() >= kMinData && !IsOk(one)) {
            scan_.AddText(one, *names_.insert(field.class_name).first);
          }
        }
        return;
      }
      if (value.size() >= kMinData) {
        scan_.AddData(value.substr(0, kDataPrefix),
                      *names_.insert(field.class_name).first);
      }
      return;
    default:
      ProtectWord(value, field.class_name, rule);
      return;
  }
}

// Told from what the kernel's manual says (xattr(7)), not from what the
// rewriter keeps: an error there must show here.
void ProtectedValues::ProtectXattr(std::string_view name,
                                   const std::string& class_name,
                                   const Rule& rule) {
  if (std::binary_search(rule.keep.begin(), rule.keep.end(), name)) return;
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string_view space = name.substr(0, dot);
  const std::string_view rest = name.substr(std::min(dot + 1, name.size()));
  const bool public_space = space == "user" || space == "trusted" ||
                            space == "system" || space == "security" ||
                            space == "os2" || space == "osx" ||
                            space == "hurd" || space == "btrfs";
  if (dot == name.size() || !public_space) {
    ProtectWord(name, class_name, rule);
    ProtectWord(space, class_name, rule);
  }
  if (!rest.empty()) ProtectWord(rest, class_name, rule);
}

void ProtectedValues::ProtectNumber(uint64_t number, FieldState* state) {
  if (number == 0 || std::find(state->keep.begin(), state->keep.end(),
                               number) != state->keep.end()) {
    return;
  }
  if (state->numbers != nullptr) state->numbers->AddSoon(number);
  if (state->is_size) sizes_.Add(number);
  if (!state->is_identity || !state->identities.Add(number)) return;
  const std::string digits = std::to_string(number);
  if (digits.size() >= kMinDigits) {
    scan_.AddText(digits, *names_.insert(state->field->class_name).first);
  }
}

}  // namespace tracefs::anonymize
