#include "tracefs/tools/anon/audit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "anonymize/header_rewriter.h"
#include "anonymize/name_parts.h"
#include "anonymize/plan.h"
#include "filters/output/table.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/names.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/tools/anon/leak_scan.h"
#include "tracefs/tools/anon/trace_rewriter.h"

namespace tracefs::anonymize {
namespace {

using format::Argument;
using format::ArgumentCursor;
using format::Frame;
using format::FrameReader;
using format::Message;
using format::MessageCursor;
using format::MessageId;
using format::ReadStep;
using Target = PolicyStatement::Target;

constexpr size_t kMaxDistinct = 1'000'000;  // of a class
constexpr size_t kMaxGroups = 1'000'000;
constexpr size_t kMaxScanned = 1'000'000;
constexpr size_t kShownLeaks = 20;
constexpr uint64_t kSmallGroup = 5;
constexpr size_t kDataPrefix = 32;
constexpr size_t kMinInRandomBytes = 8;
// Numbers in text are looked for where they are not everybody's.
constexpr size_t kMinDigits = 4;
constexpr size_t kMinLineBytes = 12;
constexpr size_t kMaxDriverName = 16;

// The driver of a chain text that is as tracers and tracefs-anon write it:
// names of filters, words that their options have, and one spelling, so that
// nothing else can be told by it. Nothing if it is not.
std::optional<std::string> DriverOfPlainChain(std::string_view text) {
  std::vector<ChainStage> stages = ParseChain(text);
  if (stages.empty()) return std::nullopt;
  const ChainStage driver = std::move(stages.back());
  stages.pop_back();
  std::string again;
  for (const ChainStage& stage : stages) {
    const OutputFilterRow* row = FindOutputFilter(stage.name);
    if (row == nullptr) return std::nullopt;
    again += stage.name;
    std::set<std::string_view> given;
    for (const auto& [name, value] : stage.parameters) {
      const bool known = std::any_of(
          row->entry.options.begin(), row->entry.options.end(),
          [&, &name = name, &value = value](const OptionRow& option) {
            return option.name == name && option.type == ValueType::kChoice &&
                   std::find(option.words.begin(), option.words.end(), value) !=
                       option.words.end();
          });
      if (!known || !given.insert(name).second) return std::nullopt;
      again += ' ' + name + '=' + value;
    }
    again += "; ";
  }
  const bool word = !driver.name.empty() &&
                    driver.name.size() <= kMaxDriverName &&
                    std::all_of(driver.name.begin(), driver.name.end(),
                                [](char c) { return c >= 'a' && c <= 'z'; });
  if (!word || again + driver.name != text) return std::nullopt;
  return driver.name;
}

// Properties whose text Tracefs and the kernel choose: no name of a file or a
// user gets into them.
bool IsOfTheMachine(std::string_view key) {
  constexpr std::string_view kKeys[] = {"tracefs.version",
                                        "visibility",
                                        "visibility.invisible",
                                        "os.name",
                                        "os.release",
                                        "host.machine",
                                        "hw.memory_bytes",
                                        "hw.processors",
                                        "hw.processor_model",
                                        "backing.fs_type",
                                        "backing.capacity_bytes",
                                        "backing.free_bytes",
                                        "tracer.state",
                                        "time.zone_offset_s"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

// Distinct values and how often each came, bounded.
class Distinct {
 public:
  void Add(std::string_view value) {
    const auto found = counts_.find(std::string(value));
    if (found != counts_.end()) {
      ++found->second;
    } else if (counts_.size() < kMaxDistinct) {
      counts_.emplace(value, 1);
    } else {
      full_ = true;
    }
  }
  bool Has(std::string_view value) const {
    return counts_.count(std::string(value)) != 0;
  }
  size_t size() const { return counts_.size(); }
  bool full() const { return full_; }
  size_t Singletons() const {
    return static_cast<size_t>(
        std::count_if(counts_.begin(), counts_.end(),
                      [](const auto& c) { return c.second == 1; }));
  }
  const std::unordered_map<std::string, uint64_t>& counts() const {
    return counts_;
  }

 private:
  std::unordered_map<std::string, uint64_t> counts_;
  bool full_ = false;
};

// What is read of one trace: its header once, then every argument.
struct Visitor {
  std::function<Status(const format::SelfDescription&, const format::Preamble&,
                       std::shared_ptr<const Plan>*)>
      on_header;
  std::function<void(const Message&, const Argument&, const FieldPlan&)>
      on_argument;
  // The whole block; may be empty.
  std::function<void(std::vector<std::byte> block, const Frame&)> on_block;
};

// What the container of a trace holds beside blocks.
struct Container {
  uint64_t unknown_frames = 0;
  uint64_t damaged_bytes = 0;
  uint64_t frames_after_final = 0;
  uint64_t undecodable = 0;
  uint64_t duplicates = 0;
};

Status Walk(const std::string& name,
            const format::PayloadDecoderFactory& make_decoder, Visitor visitor,
            Container* container) {
  auto source = format::FdSource::Open(name, false);
  if (!source.ok()) return source.status().Prefixed(name);
  format::ReadStats stats;
  const format::ReportSink no_report;
  FrameReader frames(*std::move(source), false, &stats, &no_report);
  const Result<ReadStep> ready = frames.ReadPreamble();
  if (!ready.ok()) return ready.status().Prefixed(name);
  auto decoder = make_decoder(frames.preamble());
  if (!decoder.ok()) return decoder.status().Prefixed(name);
  std::shared_ptr<const Plan> plan;
  bool final_seen = false;
  std::vector<std::byte> block;
  for (;;) {
    Frame frame;
    const Result<ReadStep> step = frames.Next(&frame);
    if (!step.ok()) return step.status().Prefixed(name);
    if (*step != ReadStep::kItem) break;
    if (frame.header.kind !=
        static_cast<uint16_t>(format::FrameKind::kMessages)) {
      ++container->unknown_frames;
      continue;
    }
    if (final_seen) ++container->frames_after_final;
    if (Status s = (*decoder)->Decode(frame.header, frame.payload, &block);
        !s.ok()) {
      if (plan == nullptr) return s.Prefixed(name);
      ++container->undecodable;
      continue;
    }
    MessageCursor in(block);
    Message message;
    while (in.Next(&message)) {
      final_seen |= message.msg_id == static_cast<uint16_t>(MessageId::kFinal);
      if (plan == nullptr) {
        format::SelfDescription description;
        if (message.msg_id != static_cast<uint16_t>(MessageId::kStart) ||
            !format::ReadStart(message.arguments, &description)) {
          return Status::Corrupt(name + ": the trace has lost its header");
        }
        if (Status s = visitor.on_header(description, frames.preamble(), &plan);
            !s.ok()) {
          return s.Prefixed(name);
        }
      }
      ArgumentCursor arguments(message.arguments, plan->widths());
      Argument argument;
      while (arguments.Next(&argument)) {
        visitor.on_argument(message, argument, plan->Field(argument.id));
      }
      if (arguments.malformed()) ++container->undecodable;
    }
    if (in.malformed()) ++container->undecodable;
    if (visitor.on_block) visitor.on_block(block, frame);
  }
  container->damaged_bytes = stats.damaged_bytes + stats.cut_bytes;
  container->duplicates = stats.duplicate_blocks;
  if (plan == nullptr) {
    return Status::Corrupt(name + ": the trace holds no block");
  }
  return Status::Ok();
}

// A plan that changes nothing: it knows fields and their rules.
Result<std::unique_ptr<const Plan>> Lookup(
    const Policy& policy, const format::SelfDescription& description) {
  return Plan::Make(policy, description, KeySet(), {.reveal = true});
}

bool Hidden(const FieldPlan& field) {
  return field.rule != nullptr && field.rule->action != Action::kKeep;
}

// Numbers that can only be equal by accident when they are hidden.
bool IsPermuted(const Rule& rule) {
  switch (rule.action) {
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

class Auditor {
 public:
  Auditor(const AuditOptions& options, std::string* report)
      : options_(options), report_(*report) {}

  Status Run() {
    if (Status s = ReadPolicy(); !s.ok()) return s;
    if (!options_.original.empty()) {
      if (Status s = ReadOriginal(); !s.ok()) return s;
    }
    if (Status s = ReadTrace(); !s.ok()) return s;
    CheckNumbers();
    CheckContainer();
    PrintClear();
    PrintDistinct();
    PrintGroups();
    PrintRisk();
    return Verdict();
  }

 private:
  // --- What was protected.

  Status ReadPolicy() {
    // The first block only; the rest is read when the original is known.
    auto source = format::FdSource::Open(options_.trace, false);
    if (!source.ok()) return source.status().Prefixed(options_.trace);
    format::TraceReaderOptions reader_options;
    reader_options.decoder = options_.decoder;
    format::TraceReader reader(*std::move(source), std::move(reader_options));
    std::unique_ptr<format::BlockDecoder> block;
    const Result<ReadStep> step = reader.NextBlock(&block);
    if (!step.ok()) return step.status().Prefixed(options_.trace);
    Result<AnonymisedBy> by = ReadOwnProperties(reader.description().header);
    if (!by.ok()) return by.status().Prefixed(options_.trace);
    by_ = *std::move(by);
    if (options_.policy != nullptr) by_.policy = *options_.policy;
    return Status::Ok();
  }

  Status ReadOriginal() {
    Container container;
    return Walk(
        options_.original, options_.decoder,
        {.on_header =
             [&](const format::SelfDescription& description,
                 const format::Preamble& preamble,
                 std::shared_ptr<const Plan>* plan) {
               auto made = Lookup(by_.policy, description);
               if (!made.ok()) return made.status();
               *plan = *std::move(made);
               original_serial_ = AsText(preamble.serial);
               scan_.AddData(original_serial_, "the serial of the original");
               for (const auto& [key, value] : description.header.properties) {
                 ProtectProperty(**plan, key, value);
                 original_properties_[key] = value;
               }
               return Status::Ok();
             },
         .on_argument =
             [&](const Message& message, const Argument& argument,
                 const FieldPlan& field) { Protect(message, argument, field); },
         .on_block = nullptr},
        &container);
  }

  bool IsOk(std::string_view word) const {
    return std::find(options_.ok_words.begin(), options_.ok_words.end(),
                     word) != options_.ok_words.end();
  }

  void ProtectWord(std::string_view word, const std::string& class_name,
                   const Rule& rule) {
    if (word.empty() || IsOk(word) ||
        std::binary_search(rule.keep.begin(), rule.keep.end(), word)) {
      return;
    }
    words_[class_name].Add(word);
    scan_.AddText(word, *names_.insert(class_name).first);
  }

  void ProtectName(std::string_view name, const std::string& class_name,
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

  void ProtectProperty(const Plan& plan, const std::string& key,
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

  void Protect(const Message& message, const Argument& argument,
               const FieldPlan& field) {
    // Properties came with the header.
    if (field.shape == Shape::kProperty || !Hidden(field)) return;
    const std::string_view value = AsText(argument.value);
    const Rule& rule = *field.rule;
    switch (field.shape) {
      case Shape::kNumber:
        if (argument.has_length) return;
        if (message.msg_id == static_cast<uint16_t>(MessageId::kStart)) return;
        ProtectNumber(value, field);
        return;
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
        if (value.size() >= 8) {
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
  void ProtectXattr(std::string_view name, const std::string& class_name,
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

  void ProtectNumber(std::string_view bytes, const FieldPlan& field) {
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), std::min<size_t>(8, bytes.size()));
    if (number == 0) return;
    for (const std::string& kept : field.rule->keep) {
      if (ParseUnsigned(kept) == number) return;
    }
    if (IsPermuted(*field.rule)) numbers_[NumberGroup(field)].Add(bytes);
    const bool identity =
        field.class_name == "uid" || field.class_name == "gid";
    const std::string digits = std::to_string(number);
    if (identity && digits.size() >= kMinDigits) {
      scan_.AddText(digits, *names_.insert(field.class_name).first);
    }
  }

  // Numbers are compared with those of their class and width.
  static std::string NumberGroup(const FieldPlan& field) {
    return (field.class_name.empty() ? field.name : field.class_name) +
           (field.per_second == 0 ? ""
                                  : "/" + std::to_string(field.per_second)) +
           "/" + std::to_string(field.width);
  }

  // --- What there is.

  Status ReadTrace() {
    format::TraceContext context;
    return Walk(options_.trace, options_.decoder,
                {.on_header =
                     [&](const format::SelfDescription& description,
                         const format::Preamble& preamble,
                         std::shared_ptr<const Plan>* plan) {
                       auto made = Lookup(by_.policy, description);
                       if (!made.ok()) return made.status();
                       *plan = *std::move(made);
                       plan_ = *plan;
                       CheckPreamble(preamble);
                       context.description = description;
                       for (const auto& [id, a] : description.arguments) {
                         context.widths.Set(id, a.width);
                       }
                       return Status::Ok();
                     },
                 .on_argument =
                     [&](const Message& message, const Argument& argument,
                         const FieldPlan& field) {
                       Inspect(message, argument, field);
                     },
                 .on_block =
                     [&](std::vector<std::byte> block, const Frame& frame) {
                       CountGroups(&context, std::move(block), frame);
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
    if (!original_serial_.empty() &&
        AsText(preamble.serial) == original_serial_) {
      Leak("preamble: the serial is that of the original");
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
    if (field.rule != nullptr && field.rule->action == Action::kDrop &&
        field.shape != Shape::kProperty &&
        message.msg_id != static_cast<uint16_t>(MessageId::kStart) &&
        message.msg_id != static_cast<uint16_t>(MessageId::kBlock)) {
      Leak(field.name + ": the policy drops it, and it is there");
    }
    if (!argument.has_length) {
      if (field.shape == Shape::kNumber) CountNumber(value, message, field);
      return;
    }
    if (Hidden(field)) {
      InspectText(value, field);
      present_[field.class_name.empty() ? field.name : field.class_name].Add(
          value);
    }
    const bool random_bytes =
        Hidden(field) &&
        (field.rule->action == Action::kPaper ||
         field.shape == Shape::kNumber || field.shape == Shape::kBytes);
    Scan(value, field.name, random_bytes ? kMinInRandomBytes : 0);
  }

  // False if it is one of tracefs-anon's own, and as it writes them: nothing to
  // search there.
  bool InspectProperty(std::string_view text) {
    std::string_view value = text;
    const std::string_view key = TakeUpTo(value, '=');
    if (IsOwnProperty(key)) {
      const Result<Policy> policy = ParsePolicy(value, "");
      const bool right = key == "anon.version" ? value == "1"
                         : key == "anon.keys"
                             ? value.find_first_not_of(
                                   "abcdefghijklmnopqrstuvwxyz0123456789=- "
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == value.npos
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
        IsAsInTheOriginal(key, value)) {
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

  bool IsAsInTheOriginal(std::string_view key, std::string_view value) const {
    const auto found = original_properties_.find(key);
    return found != original_properties_.end() && found->second == value;
  }

  // Whole arguments, however short.
  void InspectText(std::string_view value, const FieldPlan& field) {
    const auto found = words_.find(field.class_name);
    if (found == words_.end()) return;
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
    if (scanned_.size() < kMaxScanned && !scanned_.emplace(value).second) {
      return;
    }
    std::vector<LeakScan::Hit> hits;
    scan_.Find(AsBytes(value), min_bytes, &hits);
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

  void Leak(const std::string& text) {
    ++leaks_;
    if (leaks_ <= kShownLeaks) report_ += "LEAK  " + text + '\n';
  }

  void CountNumber(std::string_view bytes, const Message& message,
                   const FieldPlan& field) {
    if (!Hidden(field) ||
        message.msg_id == static_cast<uint16_t>(MessageId::kStart)) {
      return;
    }
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), std::min<size_t>(8, bytes.size()));
    present_[field.class_name.empty() ? field.name : field.class_name].Add(
        bytes);
    if (number != 0) found_numbers_[NumberGroup(field)].Add(bytes);
  }

  void CheckNumbers() {
    for (const auto& [group, original] : numbers_) {
      const auto found = found_numbers_.find(group);
      if (found == found_numbers_.end()) continue;
      uint64_t same = 0;
      std::string example;
      for (const auto& [bytes, count] : original.counts()) {
        if (!found->second.Has(bytes)) continue;
        ++same;
        example = bytes;
      }
      // Random numbers meet now and then.
      const double width =
          example.empty() ? 8.0 : static_cast<double>(example.size());
      const double expected = static_cast<double>(original.size()) *
                              static_cast<double>(found->second.size()) /
                              std::pow(2.0, 8 * width);
      const double bound =
          expected < 0.01 ? 0 : std::ceil(expected + 5 * std::sqrt(expected));
      if (static_cast<double>(same) <= bound) continue;
      uint64_t number = 0;
      std::memcpy(&number, example.data(), std::min<size_t>(8, example.size()));
      Leak("numbers of " + group.substr(0, group.find('/')) + ": " +
           std::to_string(same) + " of the original are there, for example " +
           std::to_string(number));
    }
  }

  void CheckContainer() {
    const std::pair<uint64_t, std::string_view> counts[] = {
        {container_.unknown_frames, "blocks of an unknown kind"},
        {container_.damaged_bytes, "bytes between blocks or behind the last"},
        {container_.frames_after_final, "blocks behind the end of the trace"},
        {container_.undecodable, "blocks or messages that cannot be read"},
        {container_.duplicates, "blocks that are there twice"},
    };
    for (const auto& [count, what] : counts) {
      if (count != 0) {
        Leak("container: " + std::to_string(count) + ' ' + std::string(what) +
             ", which nobody shows and anything may be in");
      }
    }
  }

  // --- Groups of quasi-identifiers.

  void CountGroups(format::TraceContext* context, std::vector<std::byte> block,
                   const Frame& frame) {
    if (frame.header.sequence == 0) return;
    format::BlockDecoder decoder(context);
    if (!decoder.Open(std::move(block), frame.header.sequence, frame.offset)) {
      return;
    }
    format::Record record;
    while (!decoder.at_end()) {
      decoder.Next(&record);
      std::string group;
      for (const std::string& name : options_.quasi) {
        group += QuasiValue(record, name) + '|';
      }
      const auto found = groups_.find(group);
      if (found != groups_.end()) {
        ++found->second;
      } else if (groups_.size() < kMaxGroups) {
        groups_.emplace(std::move(group), 1);
      } else {
        groups_full_ = true;
      }
      ++operations_;
    }
  }

  static std::string QuasiValue(const format::Record& record,
                                const std::string& name) {
    const FieldInfo* field = nullptr;
    for (const FieldInfo& info : Fields()) {
      if (info.json_key == name || info.trace_name == name) field = &info;
    }
    if (field == nullptr || field->arg_id == 0) return "?";
    if (field->field == Field::kComm && record.event.caller != nullptr &&
        !record.HasText(Field::kComm)) {
      return std::string(record.caller.comm());
    }
    if (IsNumeric(field->field)) {
      if (record.event.Has(field->field)) {
        return std::to_string(record.event.Get(field->field));
      }
      for (const format::ExtraArgument& extra : record.extra) {
        if (extra.id == field->arg_id) return std::string(AsText(extra.value));
      }
      return "-";
    }
    return std::string(record.Text(field->field));
  }

  // --- The report.

  void PrintClear() {
    std::string fields;
    for (const FieldPlan& field : plan_->fields()) {
      if (field.arg_id == 0 || Hidden(field) ||
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
    for (const auto& [name, values] : present_) {
      std::snprintf(line, sizeof line, "  %-14s%12zu%14zu%s\n", name.c_str(),
                    values.size(), values.Singletons(),
                    values.full() ? "  (of the first million)" : "");
      report_ += line;
    }
  }

  void PrintGroups() {
    if (groups_.empty()) return;
    uint64_t smallest = UINT64_MAX;
    size_t single = 0;
    size_t small = 0;
    for (const auto& [group, count] : groups_) {
      smallest = std::min(smallest, count);
      single += count == 1;
      small += count < kSmallGroup;
    }
    std::string names;
    for (const std::string& name : options_.quasi) {
      names += (names.empty() ? "" : ",") + name;
    }
    report_ +=
        "\nOver (" + names + "): " + std::to_string(groups_.size()) +
        " groups of operations, smallest k = " + std::to_string(smallest) +
        "; " + std::to_string(single) + " with one operation, " +
        std::to_string(small) + " with fewer than " +
        std::to_string(kSmallGroup) +
        (groups_full_ ? " (of the first million groups)" : "") + '\n';
  }

  void PrintRisk() {
    bool deterministic = false;
    bool shifted = false;
    bool names = false;
    bool clear_sizes = false;
    bool checksums = false;
    for (const FieldPlan& field : plan_->fields()) {
      if (field.rule == nullptr) continue;
      const Action action = field.rule->action;
      const bool lasting = action == Action::kEncrypt ||
                           action == Action::kFpe || action == Action::kHmac ||
                           action == Action::kMap || action == Action::kPaper;
      deterministic |= lasting;
      shifted |= action == Action::kShift || field.rule->shift;
      names |= field.class_name == "name" && lasting;
      clear_sizes |= field.class_name == "size" && action == Action::kKeep;
      checksums |= field.class_name == "checksum" && action == Action::kKeep;
    }
    report_ += "\nWhat risk remains:\n";
    if (deterministic) {
      report_ +=
          "  - Equal values have equal tokens. Who knows how often something "
          "happened can\n    tell what it was; a user who did something "
          "striking while the trace was made\n    finds it again.\n";
    }
    if (names) {
      report_ +=
          "  - The shape of the tree is visible: known trees (a Linux source, "
          "a package) can\n    be recognised by it.\n";
    }
    if (clear_sizes) {
      report_ +=
          "  - Sizes of files are in clear; known files are recognised by "
          "them.\n";
    }
    if (checksums) {
      report_ +=
          "  - Checksums of data are in clear: contents that can be guessed "
          "can be confirmed.\n";
    }
    if (shifted) {
      report_ +=
          "  - Times are shifted by one constant: who knows the time of one "
          "event knows all.\n";
    }
    report_ +=
        "  - How much was done, by how many, in which order and how fast is "
        "in clear: that\n    is what the trace is for.\n";
    if (options_.original.empty()) {
      report_ +=
          "  - No original was given (--against): values were not searched "
          "for.\n";
    } else if (scan_.full()) {
      report_ += "  - Only the first " + std::to_string(LeakScan::kMaxValues) +
                 " protected values were searched for.\n";
    }
  }

  Status Verdict() {
    if (leaks_ == 0) {
      report_ += "\nNo leak found";
      if (!options_.original.empty()) {
        report_ += ": " + std::to_string(scan_.values()) +
                   " protected texts searched for as they are, in UTF-16, hex "
                   "and base64";
      }
      report_ += ".\n";
      return Status::Ok();
    }
    if (leaks_ > kShownLeaks) {
      report_ +=
          "\n... and " + std::to_string(leaks_ - kShownLeaks) + " more leaks\n";
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

  // Of the original.
  std::string original_serial_;
  std::map<std::string, std::string, std::less<>> original_properties_;
  std::set<std::string> names_;              // classes, at places that stay
  std::map<std::string, Distinct> words_;    // by class
  std::map<std::string, Distinct> numbers_;  // by NumberGroup
  LeakScan scan_;

  // Of the trace.
  Container container_;
  std::map<std::string, Distinct> present_;
  std::map<std::string, Distinct> found_numbers_;
  std::unordered_set<std::string> scanned_;
  std::unordered_map<std::string, uint64_t> groups_;
  bool groups_full_ = false;
  uint64_t operations_ = 0;
  std::set<std::string> told_;
  uint64_t leaks_ = 0;
};

}  // namespace

Status Audit(const AuditOptions& options, std::string* report) {
  return Auditor(options, report).Run();
}

}  // namespace tracefs::anonymize
