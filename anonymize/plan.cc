#include "anonymize/plan.h"

#include <algorithm>

#include "anonymize/rule_facts.h"
#include "anonymize/sizes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"
#include "tracefs/format/names.h"

namespace tracefs::anonymize {
namespace {

using format::SelfDescription;
using Target = PolicyStatement::Target;

// A trace that names more is hostile.
constexpr size_t kMaxFields = 4096;
// Shifts are whole seconds below this: 34 years. Added to any time of this
// century, ns of 63 bits do not overflow, and neither does an uptime in
// seconds, of 32 bits.
constexpr uint64_t kMaxShiftSeconds = uint64_t{1} << 30;

bool IsText(Shape shape) {
  return shape != Shape::kNumber && shape != Shape::kStructure;
}

bool IsTimeClass(std::string_view class_name) {
  return class_name == "time" || class_name == "clock";
}

Shape ShapeOfUnknown(const SelfDescription::Argument& argument) {
  if (argument.width != 0) return Shape::kNumber;
  switch (static_cast<FieldType>(argument.type)) {
    case FieldType::kName:
      return Shape::kComponent;
    case FieldType::kText:
      return Shape::kWord;
    default:
      return Shape::kBytes;
  }
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool KnowsKind(uint16_t msg_id) {
  const auto& known = format::BuiltInMessages();
  return std::find(known.begin(), known.end(), msg_id) != known.end();
}

// Empty if the action suits the field, else why not.
std::string WhyNot(const FieldPlan& field, const Rule& rule) {
  const Action action = rule.action;
  const std::string name(ActionName(action));
  if (field.shape == Shape::kStructure || field.shape == Shape::kProperty) {
    return action == Action::kKeep
               ? ""
               : "it holds the trace together and can only be kept";
  }
  const bool number = field.shape == Shape::kNumber;
  if (number && IsTimeClass(field.class_name)) {
    switch (action) {
      case Action::kKeep:
      case Action::kDrop:
      case Action::kZero:
      case Action::kShift:
      case Action::kQuantise:
      case Action::kPaper:
        break;
      default:
        return "'" + name +
               "' would destroy the order of operations; times can be kept, "
               "shifted, quantised, dropped or zero";
    }
  }
  switch (action) {
    case Action::kFpe:
      if (!number || field.width < 4) {
        return "'fpe' needs an integer of 32 or 64 bits: smaller domains can "
               "be guessed";
      }
      break;
    case Action::kShift:
    case Action::kQuantise:
    case Action::kBucket:
      if (!number || field.width < 4) return "'" + name + "' needs a number";
      break;
    case Action::kHmac:
    case Action::kRandom:
    case Action::kMap:
      if (number && field.width < 4) {
        return "'" + name + "' needs an integer of 32 or 64 bits";
      }
      if (field.shape == Shape::kBytes && action == Action::kMap) {
        return "'map' is not for data";
      }
      break;
    default:
      break;
  }
  const bool name_like = field.shape == Shape::kPath ||
                         field.shape == Shape::kComponent ||
                         field.shape == Shape::kExtension;
  if (!name_like && (rule.keep_dots || rule.keep_marks || rule.keep_digits ||
                     rule.extension != ExtensionRule::kEncrypt)) {
    return "keep-dots, keep-marks, keep-digits and ext are options of names";
  }
  if (rule.keep_namespace && field.shape != Shape::kXattr) {
    return "keep-namespace is an option of names of attributes";
  }
  if (rule.tree && (field.class_name != "name" || action != Action::kEncrypt)) {
    return "'tree' is an option of 'name = encrypt'";
  }
  if (rule.pad != 0 && (action != Action::kEncrypt || number)) {
    return "'pad' is an option of 'encrypt', for texts";
  }
  return "";
}

}  // namespace

uint64_t StepOf(const Rule& rule, uint64_t per_second) {
  const uint64_t unit = per_second == 0 ? 1 : kNsPerSecond / per_second;
  return std::max<uint64_t>(1, rule.step / unit);
}

Result<std::unique_ptr<const Plan>> Plan::Make(
    Policy policy, const SelfDescription& description, const KeySet& keys,
    const PlanOptions& options) {
  std::unique_ptr<Plan> plan(new Plan);
  plan->policy_ = std::move(policy);
  plan->options_ = options;
  if (Status s = plan->Compile(description, keys); !s.ok()) return s;
  return std::unique_ptr<const Plan>(std::move(plan));
}

Status Plan::Compile(const SelfDescription& description, const KeySet& keys) {
  if (Status s = AddFields(description); !s.ok()) return s;
  if (Status s = CheckMessages(description); !s.ok()) return s;
  if (Status s = CheckNames(description); !s.ok()) return s;
  if (Status s = CheckProperties(description); !s.ok()) return s;
  // Slots are pointed to from now on.
  numbers_.reserve(2 * fields_.size());
  texts_.reserve(fields_.size());
  for (FieldPlan& field : fields_) {
    if (Status s = Treat(&field, keys); !s.ok()) return s;
  }
  Follow();
  if (Status s = CheckTimes(); !s.ok()) return s;
  if (!options_.reveal) {
    if (Status s = CheckSizes(fields_); !s.ok()) return s;
  }
  const NumberSlot* time = NumberOf(Info(tracefs::Field::kTime).arg_id);
  if (time != nullptr && time->action == Action::kQuantise) {
    quantised_time_ = time;
  }
  for (const PolicyStatement& s : policy_.statements) {
    if (s.target != Target::kProperty || !RuleNeedsKey(s.rule)) continue;
    if (options_.reveal && options_.domains.count(kPropertyDomain) == 0) break;
    if (Status taken =
            TakeKey("property " + s.name, std::string(kPropertyDomain), keys,
                    &property_key_);
        !taken.ok()) {
      return taken;
    }
    reveals_properties_ = options_.reveal;
    break;
  }
  return Status::Ok();
}

Status Plan::AddFields(const SelfDescription& description) {
  fields_.emplace_back();
  if (description.arguments.size() > kMaxFields) {
    return Status::Corrupt("the trace describes " +
                           std::to_string(description.arguments.size()) +
                           " arguments, more than any can have");
  }
  std::map<uint16_t, SelfDescription::Argument> all = description.arguments;
  for (const format::ArgumentInfo& known : format::BuiltInArguments()) {
    const auto [at, added] = all.try_emplace(
        known.arg_id,
        SelfDescription::Argument{known.width, static_cast<uint8_t>(known.type),
                                  std::string(known.name)});
    if (!added &&
        (at->second.width != known.width || at->second.name != known.name)) {
      return Status::Corrupt(
          "the trace says that argument " + std::to_string(known.arg_id) +
          " is " + Quoted(at->second.name) + ", of " +
          std::to_string(at->second.width) + " bytes; it is " +
          std::string(known.name) + ", of " + std::to_string(known.width));
    }
  }
  std::string uncovered;
  for (const auto& [id, argument] : all) {
    if (!IsPlainName(argument.name)) {
      return Status::Corrupt("the trace names an argument " +
                             Quoted(argument.name) + ", which is no name");
    }
    FieldPlan field;
    field.arg_id = id;
    field.name = argument.name;
    field.width = argument.width;
    if (const format::ArgumentInfo* known = format::FindArgument(id)) {
      const ClassInfo& of = InfoOf(known->data_class);
      field.class_name = of.name;
      field.domain = of.domain;
      field.shape = known->shape;
      field.per_second = UnitsPerSecond(*known);
      field.rule = policy_.Find(Target::kClass, of.name);
    } else if (id == kSealedName) {
      field.class_name = kStructureClass;
      field.shape = Shape::kStructure;
      field.rule = policy_.Find(Target::kClass, kStructureClass);
    } else {
      field.domain = argument.name;
      field.shape = ShapeOfUnknown(argument);
    }
    if (const Rule* own = policy_.Find(Target::kField, argument.name)) {
      field.rule = own;
    }
    if (field.rule == nullptr && !options_.reveal &&
        description.arguments.count(id) != 0) {
      AppendWord(field.name, ", ", &uncovered);
      if (field.class_name.empty()) uncovered += " (of a later version)";
    }
    widths_.Set(id, field.width);
    if (id < low_.size()) {
      low_[id] = static_cast<uint16_t>(fields_.size());
    } else {
      high_[id] = fields_.size();
    }
    fields_.push_back(std::move(field));
  }
  if (uncovered.empty()) return Status::Ok();
  return Status::Invalid("policy " + policy_.name +
                         " does not say what becomes of " + uncovered +
                         "; add a statement for each, 'drop' if in doubt");
}

Status Plan::CheckMessages(const SelfDescription& description) {
  for (const auto& [id, name] : description.messages) {
    if (KnowsKind(id)) continue;
    if (!IsPlainName(name)) {
      return Status::Corrupt("the trace names a message " + Quoted(name) +
                             ", which is no name");
    }
    const Rule* rule = policy_.Find(Target::kMessage, name);
    if (rule == nullptr && !options_.reveal) {
      return Status::Invalid("policy " + policy_.name +
                             " does not say what becomes of messages " + name +
                             ", which a later version writes; add 'message " +
                             name + " = drop;'");
    }
    if (rule != nullptr && rule->action == Action::kDrop) {
      dropped_messages_.insert(id);
    } else {
      kept_messages_.insert(id);
    }
  }
  for (const PolicyStatement& s : policy_.statements) {
    if (s.target != Target::kMessage) continue;
    if (s.rule.action != Action::kKeep && s.rule.action != Action::kDrop) {
      return Status::Invalid(Where(s.rule) +
                             "a message can be kept or dropped, no more");
    }
    for (const uint16_t id : format::BuiltInMessages()) {
      if (format::MessageName(id) == s.name) {
        return Status::Invalid(Where(s.rule) + s.name +
                               " is known and its arguments have actions of "
                               "their own; totals would no longer agree "
                               "without it");
      }
    }
  }
  return Status::Ok();
}

bool Plan::KnowsMessage(uint16_t msg_id) const {
  return kept_messages_.count(msg_id) != 0 ||
         dropped_messages_.count(msg_id) != 0 || KnowsKind(msg_id);
}

Status Plan::CheckNames(const SelfDescription& description) const {
  std::vector<std::string_view> known;
  for (const FieldPlan& field : fields_) {
    if (field.arg_id != 0) known.push_back(field.name);
  }
  for (const PolicyStatement& s : policy_.statements) {
    if (s.target == Target::kField &&
        std::find(known.begin(), known.end(), s.name) == known.end()) {
      return Status::Invalid(Where(s.rule) + "no trace has a field " +
                             Quoted(s.name) + DidYouMean(s.name, known));
    }
    if (s.target == Target::kMessage && !options_.reveal &&
        std::none_of(description.messages.begin(), description.messages.end(),
                     [&](const auto& m) { return m.second == s.name; })) {
      return Status::Invalid(Where(s.rule) + "the trace has no message " +
                             Quoted(s.name));
    }
  }
  return Status::Ok();
}

Status Plan::CheckProperties(const SelfDescription& description) {
  for (const PolicyStatement& s : policy_.statements) {
    if (s.target != Target::kProperty) continue;
    switch (s.rule.action) {
      case Action::kKeep:
        if (s.name == "*") {
          return Status::Invalid(Where(s.rule) +
                                 "properties to keep must be named one by "
                                 "one: a later version may add any");
        }
        break;
      case Action::kDrop:
      case Action::kZero:
      case Action::kEncrypt:
      case Action::kHmac:
        break;
      default:
        return Status::Invalid(
            Where(s.rule) +
            "properties can be kept, dropped, zero, encrypted or hmac");
    }
  }
  if (options_.reveal) return Status::Ok();
  for (const auto& [key, value] : description.header.properties) {
    if (key.starts_with("anon.")) continue;
    if (policy_.Find(Target::kProperty, key) == nullptr &&
        policy_.Find(Target::kProperty, "*") == nullptr) {
      return Status::Invalid("policy " + policy_.name +
                             " does not say what becomes of the property " +
                             Quoted(key) +
                             "; add 'property * = drop;' or one for it");
    }
  }
  return Status::Ok();
}

const Rule& Plan::PropertyRule(std::string_view key) const {
  static const Rule kKeep;
  static const Rule kDrop = {.action = Action::kDrop};
  const Rule* rule = policy_.Find(Target::kProperty, key);
  if (rule == nullptr) rule = policy_.Find(Target::kProperty, "*");
  if (rule == nullptr) return options_.reveal ? kKeep : kDrop;
  return *rule;
}

bool Plan::Reveals(const FieldPlan& field) const {
  const Rule& rule = *field.rule;
  return RuleNeedsKey(rule) && (IsReversible(rule.action) || rule.shift) &&
         options_.domains.count(rule.action == Action::kPaper ? field.name
                                                              : field.domain);
}

Status Plan::TakeKey(std::string_view what, const std::string& domain,
                     const KeySet& keys, SecretKey* key) {
  std::optional<SecretKey> found = keys.Find(domain, options_.day);
  if (!found) {
    return Status::Invalid(
        std::string(what) + " needs the key of domain " + domain +
        (options_.day.empty() ? "" : " for " + options_.day) +
        "; give --keys with a master secret (tracefs-keygen secret) or with "
        "that key (tracefs-keygen --derive)");
  }
  key_ids_[domain] = KeyIdText(IdOfKey(found->get()));
  *key = *std::move(found);
  return Status::Ok();
}

Status Plan::Treat(FieldPlan* field, const KeySet& keys) {
  if (field->arg_id == 0) return Status::Ok();
  if (field->rule == nullptr) {
    if (options_.reveal) field->treatment = Treatment::kCopy;
    return Status::Ok();
  }
  const Rule& rule = *field->rule;
  if (field->shape == Shape::kProperty) {
    field->treatment = Treatment::kProperty;
    return Status::Ok();
  }
  if (field->arg_id == kSealedName) {
    field->treatment = options_.reveal ? Treatment::kSealed : Treatment::kCopy;
    return Status::Ok();
  }
  if (const std::string why = WhyNot(*field, rule); !why.empty()) {
    return Status::Invalid(Where(rule) + field->name + ": " + why);
  }
  if (options_.reveal && !Reveals(*field)) {
    field->treatment = Treatment::kCopy;
    return rule.action == Action::kPaper && field->per_second != 0
               ? ShiftClock(field, keys)
               : Status::Ok();
  }
  switch (rule.action) {
    case Action::kKeep:
      field->treatment = Treatment::kCopy;
      return Status::Ok();
    case Action::kDrop:
      field->treatment = Treatment::kDrop;
      return Status::Ok();
    case Action::kPaper:
      if (field->per_second != 0) {
        if (Status s = ShiftClock(field, keys); !s.ok()) return s;
      }
      return TreatText(field, keys);
    case Action::kEncrypt:
      return TreatText(field, keys);
    default:
      return IsText(field->shape) ? TreatText(field, keys)
                                  : TreatNumber(field, keys);
  }
}

// What holds the trace together and what was counted is kept, but for values of
// other fields in it: inodes of pipes, sums of lengths. Where nothing of the
// same kind can stand in their place, they are left out.
void Plan::Follow() {
  const FieldPlan& inode = Field(Info(tracefs::Field::kInode).arg_id);
  const FieldPlan& length = Field(Info(tracefs::Field::kLength).arg_id);
  // Sums of what was permuted would be sums of nothing.
  const bool coarse = length.treatment == Treatment::kNumber &&
                      !length.rule->shift &&
                      (length.rule->action == Action::kBucket ||
                       length.rule->action == Action::kQuantise ||
                       length.rule->action == Action::kZero);
  for (FieldPlan& field : fields_) {
    const SizeTell tells = TellsOfSize(field.arg_id);
    const bool pipes =
        field.arg_id == static_cast<uint16_t>(format::ArgId::kPipes);
    if (!pipes && !IsCounted(tells)) continue;
    field.follows = pipes ? &inode : &length;
    if (field.treatment != Treatment::kCopy || field.follows->rule == nullptr ||
        field.follows->treatment == Treatment::kCopy) {
      continue;
    }
    // Nothing that a key opens was put in the place of sums.
    if (options_.reveal && !pipes) continue;
    field.treatment = Treatment::kDrop;
    if (pipes && inode.treatment == Treatment::kNumber) {
      field.treatment = Treatment::kPipes;
    } else if (coarse && tells == SizeTell::kSum) {
      field.treatment = Treatment::kNumber;
    } else if (coarse && tells == SizeTell::kHistogram) {
      field.treatment = Treatment::kHistogram;
    }
    if (field.treatment != Treatment::kDrop) field.slot = field.follows->slot;
  }
}

Status Plan::TreatNumber(FieldPlan* field, const KeySet& keys) {
  const Rule& rule = *field->rule;
  NumberSlot slot;
  slot.action = rule.action;
  slot.reveal = options_.reveal;
  slot.width = field->width;
  slot.is_signed = field->class_name == "result";
  slot.is_time = field->per_second != 0;
  slot.domain = field->domain;
  for (const std::string& word : rule.keep) {
    const auto value = ParseUnsigned(word);
    if (!value) {
      return Status::Invalid(Where(rule) + field->name + " is a number: " +
                             Quoted(word) + " cannot be kept");
    }
    slot.keep.push_back(*value);
  }
  std::sort(slot.keep.begin(), slot.keep.end());
  slot.step = StepOf(rule, field->per_second);
  if (RuleNeedsKey(rule)) {
    if (Status s = TakeKey(field->name, field->domain, keys, &slot.key);
        !s.ok()) {
      return s;
    }
  }
  if (rule.action == Action::kShift || rule.shift) {
    std::byte bytes[8];
    DeriveInto(slot.key.get(), "shift", bytes);
    const auto number = LoadLe<uint64_t>(bytes);
    slot.shift =
        field->per_second == 0
            ? number
            : (1 + number % (kMaxShiftSeconds - 1)) * field->per_second;
    if (options_.reveal) {
      slot.shift = ~slot.shift + 1;
      slot.step = 1;
    }
  }
  const Rule* of_time = Field(Info(tracefs::Field::kTime).arg_id).rule;
  const bool with_times = of_time != nullptr &&
                          of_time->action == Action::kQuantise &&
                          field->class_name == "duration";
  field->treatment = rule.action == Action::kKeepValues ? Treatment::kKeepNumber
                     : rule.action == Action::kQuantise && with_times
                         ? Treatment::kDuration
                         : Treatment::kNumber;
  needs_order_ |= rule.action == Action::kMap;
  field->slot = AddSlot(std::move(slot));
  return Status::Ok();
}

// Fields that are treated alike share a slot, and its cache.
int Plan::AddSlot(NumberSlot slot) {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const NumberSlot& other = numbers_[i];
    if (other.action == slot.action && other.width == slot.width &&
        other.domain == slot.domain && other.keep == slot.keep &&
        other.shift == slot.shift && other.step == slot.step &&
        other.is_signed == slot.is_signed) {
      return static_cast<int>(i);
    }
  }
  numbers_.push_back(std::move(slot));
  return static_cast<int>(numbers_.size() - 1);
}

// Where times become opaque, clocks are shifted.
Status Plan::ShiftClock(FieldPlan* field, const KeySet& keys) {
  if (options_.reveal && options_.domains.count(field->domain) == 0) {
    return Status::Ok();
  }
  Rule shift;
  shift.action = Action::kShift;
  FieldPlan clock = *field;
  clock.rule = &shift;
  if (Status s = TreatNumber(&clock, keys); !s.ok()) return s;
  field->clock_slot = clock.slot;
  return Status::Ok();
}

Status Plan::TreatText(FieldPlan* field, const KeySet& keys) {
  const Rule& rule = *field->rule;
  TextSlot slot;
  slot.action = rule.action;
  slot.reveal = options_.reveal;
  slot.shape = IsText(field->shape) ? field->shape : Shape::kBytes;
  slot.rule = rule;
  // In the paper every argument has a key of its own.
  slot.domain = rule.action == Action::kPaper ? field->name : field->domain;
  if (RuleNeedsKey(rule)) {
    if (options_.reveal && rule.tree && !keys.Find(slot.domain, options_.day)) {
      for (const DerivedKey* key : keys.Subtrees()) {
        if (key->domain == slot.domain && key->day == options_.day) {
          slot.subtrees.push_back(key);
        }
      }
    }
    if (slot.subtrees.empty()) {
      if (Status s = TakeKey(field->name, slot.domain, keys, &slot.key);
          !s.ok()) {
        return s;
      }
    }
  }
  needs_order_ |= rule.action == Action::kMap;
  has_tree_ |= rule.tree;
  field->treatment =
      IsText(field->shape) ? Treatment::kText : Treatment::kOpaque;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const TextSlot& other = texts_[i];
    if (other.domain == slot.domain && other.shape == slot.shape &&
        RuleText(other.rule, false) == RuleText(rule, false)) {
      field->slot = static_cast<int>(i);
      return Status::Ok();
    }
  }
  field->slot = static_cast<int>(texts_.size());
  texts_.push_back(std::move(slot));
  return Status::Ok();
}

}  // namespace tracefs::anonymize
