#include "anonymize/header_rewriter.h"

#include "tracefs/base/join.h"
#include "tracefs/base/text.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/format/names.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;
using format::SelfDescription;
using Target = PolicyStatement::Target;

constexpr std::string_view kPrefix = "anon.";
constexpr std::string_view kPolicyKey = "anon.policy";
constexpr std::string_view kKeysKey = "anon.keys";
constexpr std::string_view kVersionKey = "anon.version";
constexpr std::string_view kAnonVersion = "1";
constexpr std::string_view kSealedNameName = "ARG_SEALED_NAME";

std::string KeysText(const std::map<std::string, std::string>& ids) {
  return JoinWords(
      ids, " ", [](const auto& key) { return key.first + '=' + key.second; });
}

// The policy that is still in force after this plan has revealed.
Policy PolicyLeft(const Plan& plan) {
  Policy policy = plan.policy();
  for (const FieldPlan& field : plan.fields()) {
    if (field.rule == nullptr || field.slot < 0) continue;
    if (field.treatment == Treatment::kText &&
        !plan.texts()[static_cast<size_t>(field.slot)].subtrees.empty()) {
      continue;  // only some of it
    }
    Rule rule;
    if (field.rule->action == Action::kQuantise) {
      rule = *field.rule;
      rule.shift = false;
    }
    std::erase_if(policy.statements, [&](const PolicyStatement& s) {
      return s.target == Target::kField && s.name == field.name;
    });
    policy.statements.push_back(
        {.target = Target::kField, .name = field.name, .rule = rule});
  }
  if (plan.reveals_properties()) {
    for (PolicyStatement& s : policy.statements) {
      // "property * = keep" is none: what it stood for has gone anyway.
      if (s.target == Target::kProperty && s.rule.action == Action::kEncrypt) {
        s.rule.action = s.name == "*" ? Action::kDrop : Action::kKeep;
      }
    }
  }
  return policy;
}

}  // namespace

bool IsOwnProperty(std::string_view key) { return key.starts_with(kPrefix); }

void AddOwnProperties(const Plan& plan, const SelfDescription& description,
                      NewHeader* header) {
  std::map<std::string, std::string> ids = plan.key_ids();
  Policy policy = plan.policy();
  if (plan.options().reveal) {
    const Result<AnonymisedBy> was = ReadOwnProperties(description.header);
    if (!was.ok()) return;
    ids = was->key_ids;
    policy = PolicyLeft(plan);
    for (const auto& [domain, id] : plan.key_ids()) ids.erase(domain);
  }
  header->properties.emplace_back(kVersionKey, kAnonVersion);
  header->properties.emplace_back(kPolicyKey, PolicyText(policy, true));
  header->properties.emplace_back(kKeysKey, KeysText(ids));
}

std::vector<std::byte> EncodeStart(const SelfDescription& description,
                                   const NewHeader& header) {
  SelfDescription names;
  const bool described =
      !description.messages.empty() || !description.arguments.empty();
  if (described) {
    names.messages = description.messages;
    names.arguments = description.arguments;
  } else {
    for (const uint16_t id : format::BuiltInMessages()) {
      names.messages[id] = format::MessageName(id);
    }
    for (const format::ArgumentInfo& a : format::BuiltInArguments()) {
      names.arguments[a.arg_id] = {a.width, static_cast<uint8_t>(a.type),
                                   std::string(a.name)};
    }
  }
  names.arguments[kSealedName] = {0, static_cast<uint8_t>(FieldType::kBytes),
                                  std::string(kSealedNameName)};

  size_t size = 256;
  for (const auto& [id, name] : names.messages) size += 8 + name.size();
  for (const auto& [id, a] : names.arguments) size += 11 + a.name.size();
  for (const auto& [key, value] : header.properties) {
    size += 7 + key.size() + value.size();
  }
  std::vector<std::byte> block(size);
  format::MessageWriter out(block);
  out.Begin(static_cast<uint16_t>(format::MessageId::kStart));
  out.Put<uint32_t>(ArgId::kTracerId, header.tracer_id);
  out.Put<uint64_t>(ArgId::kClockMonotonic, header.clock.monotonic_ns);
  out.Put<uint64_t>(ArgId::kClockReal, header.clock.real_ns);
  const auto append_u16 = [](std::string* text, uint16_t n) {
    *text += static_cast<char>(n & 255);
    *text += static_cast<char>(n >> 8);
  };
  for (const auto& [id, name] : names.messages) {
    std::string value;
    append_u16(&value, id);
    out.PutText(ArgId::kMessageName, value + name);
  }
  for (const auto& [id, a] : names.arguments) {
    std::string value;
    append_u16(&value, id);
    append_u16(&value, a.width);
    value += static_cast<char>(a.type);
    out.PutText(ArgId::kArgumentName, value + a.name);
  }
  for (const auto& [key, value] : header.properties) {
    out.PutText(ArgId::kProperty, key + '=' + value);
  }
  out.End();
  block.resize(out.size());
  return block;
}

Result<AnonymisedBy> ReadOwnProperties(const format::TraceHeader& header) {
  const std::string_view version = header.Get(kVersionKey);
  if (version.empty()) {
    return Status::Invalid(
        "the trace does not say that tracefs-anon made it: there is nothing "
        "to reveal");
  }
  if (version != kAnonVersion) {
    return Status::Invalid("the trace was anonymised by scheme " +
                           Quoted(version) + "; this version knows " +
                           std::string(kAnonVersion) + ": use a newer Tracefs");
  }
  AnonymisedBy by;
  Result<Policy> policy =
      ParsePolicy(header.Get(kPolicyKey), "the trace's policy");
  if (!policy.ok()) return Status::Corrupt(policy.status().message());
  by.policy = *std::move(policy);
  std::string_view keys = header.Get(kKeysKey);
  while (!keys.empty()) {
    const std::string_view word = TakeUpTo(keys, ' ');
    const size_t equals = word.find('=');
    if (equals == word.npos) continue;
    by.key_ids.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return by;
}

}  // namespace tracefs::anonymize
