// Plan: a policy applied to one trace's self-description. Says for each
// argument, property and message what becomes of it, with which key, and where
// the policy said so. Default deny: what no statement covers is an error that
// names it. Immutable once made; any thread reads it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "anonymize/fields.h"
#include "anonymize/key_set.h"
#include "anonymize/policy.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/trace_header.h"

namespace tracefs::anonymize {

// Holds what is too long for a name: sealed bytes, beside the name's token in
// the same message (FORMAT.md, section 9).
inline constexpr auto kSealedName =
    static_cast<uint16_t>(format::ArgId::kSealedName);

// What the rewriter does with an argument.
enum class Treatment : uint8_t {
  kUnknown,     // of an id that nobody described: an error
  kCopy,        // as it is
  kDrop,        //
  kNumber,      // a number of the same width instead, by its slot
  kKeepNumber,  // stays if it is listed, else dropped
  kDuration,    // quantised so that the end of the operation is
  kOpaque,      // a number becomes opaque bytes, or back
  kText,        // a text instead, by its slot
  kProperty,    // by the rule of its key
  kSealed,      // a sealed name: taken up when names are revealed
  kPipes,       // ARG_PIPES: the inodes within as ARG_INODE, by its slot
  kHistogram,   // of sizes: its buckets as ARG_LENGTH, by its slot
};

// What is done to the numbers of one domain, width and rule.
struct NumberSlot {
  Action action{};
  bool reveal = false;
  uint16_t width = 0;
  bool is_signed = false;
  bool is_time = false;
  std::string domain;
  SecretKey key;               // of the domain; zeros if it needs none
  uint64_t shift = 0;          // added
  uint64_t step = 1;           // of kQuantise, in units of the field
  std::vector<uint64_t> keep;  // sorted
};

// What is done to the texts of one domain, shape and rule.
struct TextSlot {
  Action action{};
  bool reveal = false;
  Shape shape{};
  std::string domain;
  SecretKey key;
  Rule rule;
  // Subtrees whose names can be revealed although the domain's key is missing.
  std::vector<const DerivedKey*> subtrees;
};

struct FieldPlan {
  uint16_t arg_id = 0;
  std::string name;
  std::string class_name;  // "" where this version does not know the field
  std::string domain;
  uint16_t width = 0;  // 0 = variable
  Shape shape{};
  uint64_t per_second = 0;
  const Rule* rule = nullptr;
  Treatment treatment = Treatment::kUnknown;
  int slot = -1;  // of numbers or texts
  // For times that become opaque: what becomes of them in BLOCK and START,
  // where a number must stand.
  int clock_slot = -1;
  // Of what can only be kept, and holds values of another field: that one. They
  // become what its values become, or are left out.
  const FieldPlan* follows = nullptr;
};

// The step of a quantised field, in its units.
uint64_t StepOf(const Rule& rule, uint64_t per_second);

// Hide: by `policy`. Reveal: what `policy` did, as the trace's header tells, is
// undone for the domains in `reveal` and left as it is for all others.
struct PlanOptions {
  bool reveal = false;
  std::set<std::string, std::less<>> domains = {};
  std::string day = {};  // of daily keys
};

class Plan {
 public:
  // kInvalid, naming field, statement and next step: the policy does not cover
  // something, names what no trace has, contradicts itself, or a key is
  // missing. All uncovered fields are named at once. The trace may be hostile.
  static Result<std::unique_ptr<const Plan>> Make(
      Policy policy, const format::SelfDescription& description,
      const KeySet& keys, const PlanOptions& options);

  const Policy& policy() const { return policy_; }
  const PlanOptions& options() const { return options_; }
  const format::ArgumentWidths& widths() const { return widths_; }
  // Every argument, by id.
  const std::vector<FieldPlan>& fields() const { return fields_; }
  const FieldPlan& Field(uint16_t arg_id) const {
    if (arg_id < low_.size()) return fields_[low_[arg_id]];
    const auto found = high_.find(arg_id);
    return fields_[found == high_.end() ? 0 : found->second];
  }
  // Where one of them stands among them.
  size_t NumberOfField(const FieldPlan& field) const {
    return static_cast<size_t>(&field - fields_.data());
  }
  const std::vector<NumberSlot>& numbers() const { return numbers_; }
  const std::vector<TextSlot>& texts() const { return texts_; }
  // The slot of a number, null where it is kept or left out.
  const NumberSlot* NumberOf(uint16_t arg_id) const {
    const FieldPlan& field = Field(arg_id);
    return field.treatment == Treatment::kNumber
               ? &numbers_[static_cast<size_t>(field.slot)]
               : nullptr;
  }

  // The rule of a property of the header, and the key of property values.
  const Rule& PropertyRule(std::string_view key) const;
  const SecretKey& property_key() const { return property_key_; }
  bool reveals_properties() const { return reveals_properties_; }

  // False: messages of this kind are left out. Of unknown kinds only: those
  // that this version knows are kept.
  bool KeepsMessage(uint16_t msg_id) const {
    return dropped_messages_.count(msg_id) == 0;
  }
  // A kind that this version knows, or that the policy covers.
  bool KnowsMessage(uint16_t msg_id) const;

  // Some value is mapped by order of appearance: blocks cannot be rewritten in
  // parallel.
  bool needs_order() const { return needs_order_; }
  // Names have a key for each directory.
  bool has_tree() const { return has_tree_; }
  // Durations end with quantised times: the times' step and unit.
  const NumberSlot* quantised_time() const { return quantised_time_; }

  // Ids of the keys in use, by domain.
  const std::map<std::string, std::string>& key_ids() const { return key_ids_; }

  // A human's table: field, class, domain, action, where it says so.
  std::string Explain() const;

 private:
  Plan() = default;
  Status Compile(const format::SelfDescription& description,
                 const KeySet& keys);
  Status AddFields(const format::SelfDescription& description);
  Status CheckMessages(const format::SelfDescription& description);
  Status CheckProperties(const format::SelfDescription& description);
  Status CheckNames(const format::SelfDescription& description) const;
  Status CheckTimes() const;
  Status Treat(FieldPlan* field, const KeySet& keys);
  Status TreatNumber(FieldPlan* field, const KeySet& keys);
  Status TreatText(FieldPlan* field, const KeySet& keys);
  Status ShiftClock(FieldPlan* field, const KeySet& keys);
  void Follow();
  int AddSlot(NumberSlot slot);
  Status TakeKey(std::string_view what, const std::string& domain,
                 const KeySet& keys, SecretKey* key);
  bool Reveals(const FieldPlan& field) const;

  Policy policy_;
  PlanOptions options_;
  format::ArgumentWidths widths_;
  std::vector<FieldPlan> fields_;  // [0] is of unknown arguments
  std::array<uint16_t, 256> low_{};
  std::unordered_map<uint16_t, size_t> high_;
  std::vector<NumberSlot> numbers_;
  std::vector<TextSlot> texts_;
  std::map<std::string, std::string> key_ids_;
  SecretKey property_key_;
  bool reveals_properties_ = false;
  std::set<uint16_t> dropped_messages_;
  std::set<uint16_t> kept_messages_;
  bool needs_order_ = false;
  bool has_tree_ = false;
  const NumberSlot* quantised_time_ = nullptr;
};

}  // namespace tracefs::anonymize
