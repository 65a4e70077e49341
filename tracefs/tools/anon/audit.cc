#include "tracefs/tools/anon/audit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "anonymize/header_rewriter.h"
#include "anonymize/name_parts.h"
#include "anonymize/plan.h"
#include "tracefs/base/text.h"
#include "tracefs/base/text_dictionary.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/names.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/tools/anon/audit_walk.h"
#include "tracefs/tools/anon/distinct.h"
#include "tracefs/tools/anon/number_form.h"
#include "tracefs/tools/anon/number_set.h"
#include "tracefs/tools/anon/own_words.h"
#include "tracefs/tools/anon/protected_values.h"
#include "tracefs/tools/anon/quasi_groups.h"
#include "tracefs/tools/anon/risk.h"
#include "tracefs/tools/anon/size_audit.h"
#include "tracefs/tools/anon/written_chain.h"

namespace tracefs::anonymize {
namespace {

using format::Argument;
using format::Frame;
using format::Message;
using format::MessageId;
using format::ReadStep;

constexpr size_t kMaxScanned = 1'000'000;
constexpr size_t kMaxScannedBytes = size_t{128} << 20;
constexpr size_t kShownLeaks = 20;
constexpr size_t kMinInRandomBytes = 8;

class Auditor {
 public:
  Auditor(const AuditOptions& options, std::string* report)
      : options_(options),
        report_(*report),
        original_(options.ok_words),
        groups_(options.quasi) {}

  Status Run() {
    if (Status s = ReadPolicy(); !s.ok()) return s;
    if (!options_.original.empty()) {
      if (Status s =
              original_.Read(options_.original, by_.policy, options_.how);
          !s.ok()) {
        return s;
      }
    }
    if (Status s = ReadTrace(); !s.ok()) return s;
    for (auto& [group, numbers] : numbers_) numbers.Settle();
    CheckNumbers();
    sizes_->Tell([this](const std::string& text) { Leak(text); });
    CheckContainer();
    PrintClear();
    PrintDistinct();
    report_ += groups_.Text();
    PrintRisk();
    return Verdict();
  }

 private:
  Status ReadPolicy() {
    // The first block only; the rest is read when the original is known.
    reader::TraceSet traces(options_.how);
    if (Status s = traces.AddTrace({options_.trace, {options_.trace}});
        !s.ok()) {
      return s;
    }
    if (Status s = traces.ReadFirst(0); !s.ok()) {
      return s.Prefixed(options_.trace);
    }
    Result<AnonymisedBy> by =
        ReadOwnProperties(traces.trace(0).description().header);
    if (!by.ok()) return by.status().Prefixed(options_.trace);
    by_ = *std::move(by);
    if (options_.policy != nullptr) by_.policy = *options_.policy;
    return Status::Ok();
  }

  // No message of an operation is ever left out but with its block, nor made:
  // to search for the values of another trace would prove nothing.
  Status CheckOriginal() const {
    if (options_.original.empty() ||
        container_.operations <= original_.operations()) {
      return Status::Ok();
    }
    return Status::Invalid(
        options_.trace + " has " + std::to_string(container_.operations) +
        " operations and " + options_.original + " " +
        std::to_string(original_.operations()) +
        ": it was not made from it; name the original with --against");
  }

  Status ReadTrace() {
    format::TraceContext context;
    return Walk(options_.trace, options_.how,
                {.on_header =
                     [&](const format::SelfDescription& description,
                         const format::Preamble& preamble,
                         std::shared_ptr<const Plan>* plan) {
                       auto made = LookupPlan(by_.policy, description);
                       if (!made.ok()) return made.status();
                       *plan = *std::move(made);
                       plan_ = *plan;
                       sizes_.emplace(*plan_, original_.sizes());
                       MakeStates();
                       CheckPreamble(preamble);
                       context.description = description;
                       for (const auto& [id, a] : description.arguments) {
                         context.widths.Set(id, a.width);
                       }
                       return Status::Ok();
                     },
                 .wants_numbers =
                     [&](const FieldPlan& field) {
                       return Hidden(field) || sizes_->Wants(field) ||
                              field.arg_id == 0 ||
                              field.shape == Shape::kProperty;
                     },
                 .on_argument =
                     [&](const Message& message, const Argument& argument,
                         const FieldPlan& field) {
                       Inspect(message, argument, field);
                     },
                 .on_block =
                     [&](std::vector<std::byte>&& block, const Frame& frame) {
                       groups_.Count(&context, std::move(block), frame);
                     }},
                &container_)
        .Prefixed("audit");
  }

  void CheckPreamble(const format::Preamble& preamble) {
    const auto driver = DriverOfPlainChain(preamble.chain);
    if (!driver) {
      Leak("preamble: the chain text is " + Quoted(preamble.chain) +
           ", not as Tracefs writes it");
    } else if (*driver != kWrittenChain) {
      Scan(*driver, "preamble", 0);
    }
    if (!original_.serial().empty() &&
        AsText(preamble.serial) == original_.serial()) {
      Leak("preamble: the serial is that of the original");
    }
  }

  // The texts of a class, and which of its fields had them: a bit each.
  struct Texts {
    Distinct values;
    std::vector<uint64_t> inspected;
  };
  // What is looked up once for each field.
  struct FieldState {
    bool hidden = false;
    bool dropped = false;          // and must not be there
    bool random_bytes = false;     // what stands for its texts
    size_t place = 0;              // among the fields of its class
    std::string class_name;        // or the field's own
    NumberSet* numbers = nullptr;  // of the field's group
    NumberForm form;               // of its numbers
    std::optional<uint64_t> last;  // number, which came
    bool last_again = false;       // more than once
    Texts* texts = nullptr;        // of the class
  };

  void MakeStates() {
    std::map<std::string_view, size_t> places;
    for (const FieldPlan& field : plan_->fields()) {
      FieldState& state = states_.emplace_back();
      state.hidden = Hidden(field);
      if (!state.hidden) continue;
      state.dropped = field.rule->action == Action::kDrop &&
                      field.shape != Shape::kProperty;
      state.random_bytes = field.rule->action == Action::kPaper ||
                           field.shape == Shape::kNumber ||
                           field.shape == Shape::kBytes;
      if (field.shape == Shape::kNumber) {
        state.form = NumberForm(field, *field.rule);
      }
      state.class_name = GroupOf(field).class_name;
      state.place = places[state.class_name]++;
    }
  }

  void Inspect(const Message& message, const Argument& argument,
               const FieldPlan& field) {
    const std::string_view value = AsText(argument.value);
    if (field.arg_id == 0) {
      Leak("an argument " + std::to_string(argument.id) + " in " +
           format::MessageName(message.msg_id) +
           " that the trace does not describe");
      return;
    }
    if (field.shape == Shape::kProperty && !InspectProperty(value)) return;
    FieldState& state = states_[plan_->NumberOfField(field)];
    if (state.dropped &&
        message.msg_id != static_cast<uint16_t>(MessageId::kStart) &&
        message.msg_id != static_cast<uint16_t>(MessageId::kBlock)) {
      Leak(field.name + ": the policy drops it, and it is there");
    }
    if (sizes_->Wants(field)) sizes_->Look(message, argument, field);
    if (!argument.has_length) {
      if (state.hidden && field.shape == Shape::kNumber &&
          message.msg_id != static_cast<uint16_t>(MessageId::kStart)) {
        CountNumber(LoadWide(argument.value), field, &state);
      }
      return;
    }
    if (!IsOwnWord(static_cast<format::ArgId>(argument.id), value)) {
      LeakWord(value, field.class_name, field.name,
               "which is no word that Tracefs writes there");
    }
    if (state.hidden && !IsNewOf(value, &state)) return;
    if (state.hidden) InspectText(value, field);
    Scan(value, field.name, state.random_bytes ? kMinInRandomBytes : 0);
  }

  // Counts a text, and tells whether this field had another one each time.
  bool IsNewOf(std::string_view value, FieldState* state) {
    if (state->texts == nullptr) state->texts = &texts_[state->class_name];
    const std::optional<uint32_t> number = state->texts->values.Add(value);
    if (!number || state->place >= 64) return true;
    std::vector<uint64_t>& inspected = state->texts->inspected;
    if (*number >= inspected.size()) inspected.resize(*number + size_t{1});
    const uint64_t bit = uint64_t{1} << state->place;
    const bool is_new = (inspected[*number] & bit) == 0;
    inspected[*number] |= bit;
    return is_new;
  }

  void CountNumber(uint64_t number, const FieldPlan& field, FieldState* state) {
    if (state->last == number && state->last_again) return;
    if (state->numbers == nullptr) state->numbers = &numbers_[GroupOf(field)];
    if (state->last != number && !state->form.Fits(number)) {
      LeakNumber(number, field, *state);
    }
    state->last_again = state->last == number;
    state->last = number;
    state->numbers->AddSoon(number);
  }

  // Once for each field.
  void LeakNumber(uint64_t number, const FieldPlan& field,
                  const FieldState& state) {
    if (!told_.insert(field.name).second) return;
    Leak(field.name + ": the policy says '" + RuleText(*field.rule, true) +
         "', and " + std::to_string(number) + " is not " + state.form.Text());
  }

  // False if it is one of tracefs-anon's own, and as it writes them: nothing to
  // search there.
  bool InspectProperty(std::string_view text) {
    std::string_view value = text;
    const std::string_view key = TakeUpTo(value, '=');
    if (IsOwnProperty(key)) {
      const Result<Policy> policy = ParsePolicy(value, "");
      const bool right =
          key == "anon.version" ? value == "1"
          : key == "anon.keys"
              ? IsMadeOf(value,
                         "abcdefghijklmnopqrstuvwxyz0123456789=- "
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
              : key == "anon.policy" && policy.ok() &&
                    PolicyText(*policy, true) == value;
      if (!right) {
        Leak("property " + Quoted(key) + ": not as tracefs-anon writes it");
      }
      return !right;
    }
    const Action action = plan_->PropertyRule(key).action;
    // Words of everyday, which files may be called by, too.
    if (action == Action::kKeep && IsOfTheMachine(key) &&
        original_.HasProperty(key, value)) {
      return false;
    }
    const bool right =
        action == Action::kKeep || (action == Action::kZero && value.empty()) ||
        (action == Action::kEncrypt && value.starts_with("enc:")) ||
        (action == Action::kHmac && value.starts_with("hmac:"));
    if (!right) {
      Leak("property " + Quoted(key) + ": the policy says '" +
           std::string(ActionName(action)) + "', and its value is in clear");
    }
    return true;
  }

  // Whole arguments, however short.
  void InspectText(std::string_view value, const FieldPlan& field) {
    const auto found = original_.words().find(field.class_name);
    if (found == original_.words().end()) return;
    const auto check = [&](std::string_view word) {
      if (!word.empty() && found->second.Has(word)) {
        LeakWord(word, field.class_name, field.name, "as it is");
      }
    };
    const Rule& rule = *field.rule;
    if (rule.action == Action::kPaper) return check(value);
    const auto check_name = [&](std::string_view name) {
      if (IsSpecialName(name)) return;
      const NameParts parts = SplitName(name, rule);
      check(parts.stem);
      if (parts.has_extension) check(parts.extension);
    };
    switch (field.shape) {
      case Shape::kPath:
        for (size_t at = 0; at <= value.size();) {
          const size_t end = std::min(value.find('/', at), value.size());
          check_name(value.substr(at, end - at));
          at = end + 1;
        }
        break;
      case Shape::kComponent:
        check_name(value);
        break;
      case Shape::kXattr:
        check(value);
        check(value.substr(0, value.find('.')));
        check(value.substr(std::min(value.find('.'), value.size() - 1) + 1));
        break;
      default:
        check(value);
        break;
    }
  }

  void Scan(std::string_view value, const std::string& where,
            size_t min_bytes) {
    if (scanned_.Find(value)) return;
    if (scanned_.size() < kMaxScanned &&
        scanned_.bytes().size() < kMaxScannedBytes) {
      scanned_.Add(value);
    }
    std::vector<LeakScan::Hit> hits;
    original_.scan().Find(AsBytes(value), min_bytes, &hits);
    for (const LeakScan::Hit& hit : hits) {
      LeakWord(hit.value, std::string(hit.what), where, hit.form);
    }
  }

  void LeakWord(std::string_view word, const std::string& what,
                const std::string& where, std::string_view form) {
    if (!told_.emplace(what + '\0' + std::string(word)).second) return;
    Leak(where + ": holds " + Quoted(word) + " of " + what + ", " +
         std::string(form));
  }

  // `always`: not only while there are few.
  void Leak(const std::string& text, bool always = false) {
    ++leaks_;
    if (shown_ >= kShownLeaks && !always) return;
    ++shown_;
    report_ += "LEAK  " + text + '\n';
  }

  // Of numbers that stand for others in the order in which these came: how far
  // they can go at most; UINT64_MAX if that is not known, nothing if not all
  // numbers of the group do.
  std::optional<uint64_t> HighestCounted(const NumberGroup& group) const {
    uint64_t most = 0;
    for (const FieldPlan& field : plan_->fields()) {
      if (field.arg_id == 0 || field.shape != Shape::kNumber ||
          !Hidden(field) || GroupOf(field).class_name != group.class_name) {
        continue;
      }
      if (field.rule->action == Action::kMap) {
        most = std::max<uint64_t>(most, 1 + field.rule->keep.size());
      }
    }
    if (most == 0) return std::nullopt;
    NumberSet together;  // numbers of one domain are counted together
    for (const auto& [other, numbers] : numbers_) {
      if (other.class_name == group.class_name) together.AddAll(numbers);
    }
    return together.full() ? UINT64_MAX : most + together.size();
  }

  void CheckNumbers() {
    for (const auto& [group, original] : original_.numbers()) {
      const auto at = numbers_.find(group);
      if (at == numbers_.end()) continue;
      const NumberSet& found = at->second;
      uint64_t same = 0;
      uint64_t example = UINT64_MAX;
      const std::optional<uint64_t> counted = HighestCounted(group);
      if (counted == UINT64_MAX) continue;
      original.ForEach([&](uint64_t number) {
        if (!found.Has(number) || number <= counted.value_or(0)) return;
        ++same;
        example = std::min(example, number);
      });
      // Random numbers meet now and then.
      const double expected = static_cast<double>(original.not_zero()) *
                              static_cast<double>(found.not_zero()) /
                              std::pow(2.0, 8 * group.width);
      const double bound = counted || expected < 0.01
                               ? 0
                               : std::ceil(expected + 5 * std::sqrt(expected));
      if (static_cast<double>(same) <= bound) continue;
      Leak("numbers of " + group.class_name + ": " + std::to_string(same) +
           " of the original are there, for example " +
           std::to_string(example));
    }
  }

  void CheckContainer() {
    const std::pair<uint64_t, std::string_view> counts[] = {
        {container_.unknown_frames, "blocks of an unknown kind"},
        {container_.damaged_bytes, "bytes between blocks or after the last"},
        {container_.frames_after_final, "blocks after the end of the trace"},
        {container_.undecodable, "blocks or messages that cannot be read"},
        {container_.duplicates, "blocks that are there twice"},
    };
    for (const auto& [count, what] : counts) {
      if (count != 0) {
        Leak("container: " + std::to_string(count) + ' ' + std::string(what) +
             ", which nobody shows and anything may be in");
      }
    }
    // A real time beside one that was shifted tells by how much.
    const auto clock = static_cast<uint16_t>(format::ArgId::kClockReal);
    if (container_.real_times != 0 && Hidden(plan_->Field(clock))) {
      Leak("container: " + std::to_string(container_.real_times) +
               " seals or marks of snapshots with the time of day, which the "
               "policy hides",
           /*always=*/true);
    }
    if (container_.embedded_files != 0) {
      Leak("embedded: " + std::to_string(container_.embedded_files) +
               " files with their names or what they hold, which no policy "
               "covers; tracefs-anon leaves them out",
           /*always=*/true);
    }
    if (container_.index_pieces != 0) {
      Leak(
          "index: what was worked out of the trace, in clear; tracefs-anon "
          "leaves it out",
          /*always=*/true);
    }
  }

  // --- The report.

  void PrintClear() {
    std::string fields;
    for (const FieldPlan& field : plan_->fields()) {
      if (field.arg_id == 0 || Hidden(field) ||
          (field.follows != nullptr && Hidden(*field.follows)) ||
          field.class_name == kStructureClass) {
        continue;
      }
      fields += (fields.empty() ? "" : " ") + field.name;
    }
    report_ += "\nIn clear: " + (fields.empty() ? "nothing" : fields) + '\n';
  }

  void PrintDistinct() {
    report_ += "\nHidden, as an attacker sees it:\n";
    char line[128];
    std::snprintf(line, sizeof line, "  %-14s%12s%14s\n", "class", "distinct",
                  "seen once");
    report_ += line;
    for (const auto& [name, counted] : CountClasses()) {
      std::snprintf(line, sizeof line, "  %-14s%12zu%14zu%s\n", name.c_str(),
                    counted.distinct, counted.once,
                    counted.full ? "  (of the first million)" : "");
      report_ += line;
    }
  }

  struct Counted {
    size_t distinct = 0;
    size_t once = 0;
    bool full = false;
  };
  // Of each class: numbers of each width, whatever their unit, and texts.
  std::map<std::string, Counted> CountClasses() const {
    std::map<std::string, Counted> classes;
    std::map<std::pair<std::string, uint16_t>, std::vector<const NumberSet*>>
        by_width;
    for (const auto& [group, numbers] : numbers_) {
      by_width[{group.class_name, group.width}].push_back(&numbers);
    }
    const auto add = [&classes](const std::string& name, const auto& values) {
      Counted& counted = classes[name];
      counted.distinct += values.size();
      counted.once += values.Singletons();
      counted.full = counted.full || values.full();
    };
    for (const auto& [key, sets] : by_width) {
      if (sets.size() == 1) {
        add(key.first, *sets[0]);
        continue;
      }
      NumberSet together;
      for (const NumberSet* const set : sets) together.AddAll(*set);
      add(key.first, together);
    }
    for (const auto& [name, texts] : texts_) add(name, texts.values);
    return classes;
  }

  void PrintRisk() {
    report_ += RiskText(*plan_);
    if (options_.original.empty()) {
      report_ +=
          "  - No original was given (--against): values were not searched "
          "for.\n";
    } else if (original_.scan().full()) {
      report_ += "  - Only the first " + std::to_string(LeakScan::kMaxValues) +
                 " protected values were searched for.\n";
    }
  }

  // What a verdict without leaks covers.
  std::string SearchedFor() {
    if (options_.original.empty()) {
      return " in the container and the header; values were not searched for, "
             "which takes\nthe original (--against)";
    }
    std::string text = ": " + std::to_string(original_.scan().values()) +
                       " protected texts searched for as they are, in UTF-16, "
                       "hex and base64";
    if (original_.scan().full()) text += ", and there are more";
    text +=
        ".\nIt searched for the first 32 bytes of data, and for each argument "
        "and setting of a\nprogram as a whole, both from 8 bytes on; it "
        "compared "
        "texts below 4 bytes and\nextensions with whole values of their class, "
        "and numbers with numbers of theirs\nand with what their action can "
        "make";
    if (container_.operations < original_.operations()) {
      text += ";\n" +
              std::to_string(original_.operations() - container_.operations) +
              " operations of the original are not there";
    }
    return text;
  }

  Status Verdict() {
    if (leaks_ == 0) {
      if (Status s = CheckOriginal(); !s.ok()) return s;
      report_ += "\nNo leak found" + SearchedFor() + ".\n";
      if (options_.policy == nullptr) {
        report_ +=
            "What had to be hidden is what the trace says of its own policy, "
            "and anybody can\nwrite that: name yours with --policy.\n";
      }
      return Status::Ok();
    }
    if (leaks_ > shown_) {
      report_ +=
          "\n... and " + std::to_string(leaks_ - shown_) + " more leaks\n";
    }
    return Status::Corrupt(
        options_.trace + ": " + std::to_string(leaks_) +
        (leaks_ == 1 ? " leak" : " leaks") +
        "; do not share it (words that the policy lists need --policy, other "
        "coincidences --ok WORD)");
  }

  const AuditOptions& options_;
  std::string& report_;
  AnonymisedBy by_;
  std::shared_ptr<const Plan> plan_;  // of the trace

  ProtectedValues original_;

  // About the trace.
  Container container_;
  std::map<std::string, Texts> texts_;  // by class
  std::map<NumberGroup, NumberSet> numbers_;
  std::optional<SizeAudit> sizes_;
  std::vector<FieldState> states_;  // in the order of the plan's fields
  TextDictionary scanned_;
  QuasiGroups groups_;
  std::set<std::string> told_;
  uint64_t leaks_ = 0;
  uint64_t shown_ = 0;  // of these
};

}  // namespace

Status Audit(const AuditOptions& options, std::string* report) {
  return Auditor(options, report).Run();
}

}  // namespace tracefs::anonymize
