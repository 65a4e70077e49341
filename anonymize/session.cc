#include "anonymize/session.h"

#include <algorithm>

#include "anonymize/fields.h"
#include "anonymize/header_rewriter.h"
#include "anonymize/name_mapper.h"
#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/format/names.h"

namespace tracefs::anonymize {
namespace {

constexpr uint64_t kNsPerDay = uint64_t{86'400} * 1'000'000'000;
constexpr uint64_t kDays = uint64_t{130} * 366;  // to the year 2100

// The day of the keys a trace was anonymised with: its clock may have been
// shifted, but key ids tell.
Result<std::string> FindDay(const AnonymisedBy& by, const KeySet& keys,
                            const std::vector<std::string>& domains) {
  for (const DerivedKey& key : keys.derived()) {
    const auto id = by.key_ids.find(key.domain);
    if (id == by.key_ids.end()) continue;
    if (!key.subtree.empty()
            ? key.domain_key_id == id->second
            : KeyIdText(IdOfKey(key.key.get())) == id->second) {
      return key.day;
    }
  }
  if (keys.has_master() && !domains.empty()) {
    const std::string& wanted = by.key_ids.at(domains.front());
    for (uint64_t n = 0; n < kDays; ++n) {
      std::string day = DayOf(n * kNsPerDay);
      const SecretKey key = DomainKey(keys.master(), domains.front(), day);
      if (KeyIdText(IdOfKey(key.get())) == wanted) return day;
    }
  }
  return Status::Invalid(
      "the keys given are wrong: they serve no day that this trace can be of");
}

std::string Joined(const std::map<std::string, std::string>& ids) {
  const std::string text =
      JoinWords(ids, ", ", [](const auto& id) { return id.first; });
  return text.empty() ? "none" : text;
}

}  // namespace

Result<std::unique_ptr<const Plan>> MakeHidePlan(
    const Policy& policy, const KeySet& keys,
    const format::SelfDescription& description) {
  PlanOptions options;
  if (policy.daily) {
    if (!description.has_clock) {
      return Status::Invalid(
          "the policy has daily keys, and the trace does not say of which day "
          "it is");
    }
    options.day = DayOf(description.header.clock.real_ns);
  }
  return Plan::Make(policy, description, keys, options);
}

Result<std::unique_ptr<const Plan>> MakeRevealPlan(
    const std::vector<std::string>& domains, const KeySet& keys,
    const format::SelfDescription& description) {
  Result<AnonymisedBy> by = ReadOwnProperties(description.header);
  if (!by.ok()) return by.status();
  const bool all =
      std::find(domains.begin(), domains.end(), "all") != domains.end();
  std::vector<std::string> wanted;
  if (!all) wanted = domains;
  std::vector<std::string_view> known;
  for (const auto& [domain, id] : by->key_ids) {
    known.push_back(domain);
    if (all) wanted.push_back(domain);
  }
  for (const std::string& domain : wanted) {
    if (by->key_ids.count(domain) == 0) {
      return Status::Invalid("the trace has nothing hidden in domain " +
                             Quoted(domain) + DidYouMean(domain, known) +
                             "; there are " + Joined(by->key_ids));
    }
  }
  PlanOptions options;
  options.reveal = true;
  if (by->policy.daily) {
    Result<std::string> day = FindDay(*by, keys, wanted);
    if (!day.ok()) return day.status();
    options.day = *std::move(day);
  }
  for (const std::string& domain : wanted) {
    const std::string& id = by->key_ids.at(domain);
    const auto wrong = [&](const std::string& other) {
      return Status::Invalid("the key for domain " + domain +
                             " is wrong: the trace was made with key " + id +
                             ", this is key " + other);
    };
    if (const auto key = keys.Find(domain, options.day)) {
      const std::string given = KeyIdText(IdOfKey(key->get()));
      if (given != id) return wrong(given);
      options.domains.insert(domain);
      continue;
    }
    bool subtree = false;
    for (const DerivedKey* key : keys.Subtrees()) {
      if (key->domain != domain) continue;
      if (key->domain_key_id != id) return wrong("of " + key->domain_key_id);
      subtree = true;
    }
    if (subtree) {
      options.domains.insert(domain);
    } else if (!all) {
      return Status::Invalid("there is no key for domain " + domain +
                             " (its id is " + id +
                             ") in what --keys gave; ask whoever has the "
                             "master for 'tracefs-keygen --derive " +
                             domain + "'");
    }
  }
  if (options.domains.empty()) {
    return Status::Invalid("--keys has no key for any domain of the trace: " +
                           Joined(by->key_ids));
  }
  Result<std::unique_ptr<const Plan>> plan =
      Plan::Make(by->policy, description, keys, options);
  if (!plan.ok()) return plan;
  const bool undoes =
      (*plan)->reveals_properties() ||
      std::any_of((*plan)->fields().begin(), (*plan)->fields().end(),
                  [](const FieldPlan& f) { return f.slot >= 0; });
  if (!undoes) {
    return Status::Invalid(
        "nothing of this can be revealed: it was hidden one way, by hmac or "
        "random");
  }
  return plan;
}

Result<DerivedKey> MakeDomainKey(const KeySet& master,
                                 const std::string& domain,
                                 const std::string& day) {
  if (!master.has_master()) {
    return Status::Invalid(
        "keys are derived from a master secret, made with 'tracefs-keygen "
        "secret'");
  }
  std::vector<std::string_view> known = {kPropertyDomain};
  for (const ClassInfo& c : Classes()) {
    if (!c.domain.empty()) known.push_back(c.domain);
  }
  // The paper's scheme, and fields of later versions, go by single fields.
  const bool field = domain.starts_with("ARG_");
  if (!field && std::find(known.begin(), known.end(), domain) == known.end()) {
    return Status::Invalid("there is no domain " + Quoted(domain) +
                           DidYouMean(domain, known));
  }
  if (!day.empty() && !IsDay(day)) {
    return Status::Invalid(Quoted(day) + " is no day: write 2026-11-21");
  }
  DerivedKey key;
  key.domain = domain;
  key.day = day;
  key.key = DomainKey(master.master(), domain, day);
  return key;
}

Result<DerivedKey> MakeSubtreeKey(const Policy& policy, const KeySet& master,
                                  const std::string& day,
                                  std::string_view directory) {
  using Target = PolicyStatement::Target;
  const Rule* rule = policy.Find(Target::kField, Info(Field::kName).trace_name);
  if (rule == nullptr) rule = policy.Find(Target::kClass, "name");
  if (rule == nullptr || rule->action != Action::kEncrypt || !rule->tree) {
    return Status::Invalid(
        "a subtree can be disclosed alone where the policy says 'name = "
        "encrypt tree'; policy " +
        policy.name + " does not");
  }
  if (policy.daily == day.empty()) {
    return Status::Invalid(policy.daily
                               ? "the policy has daily keys: say --day"
                               : "the policy has no daily keys: leave --day "
                                 "out");
  }
  if (!directory.starts_with('/')) {
    return Status::Invalid(
        "the subtree is a path from the root of the mount, and begins with /");
  }
  Result<DerivedKey> key = MakeDomainKey(master, "name", day);
  if (!key.ok()) return key;
  TextSlot slot;
  slot.action = Action::kEncrypt;
  slot.shape = Shape::kComponent;
  slot.domain = key->domain;
  slot.key = key->key.Clone();
  slot.rule = *rule;
  MapTables maps;
  Result<TextMapper> mapper = TextMapper::Create(&slot, 0, &maps);
  if (!mapper.ok()) return mapper.status();
  key->domain_key_id = KeyIdText(IdOfKey(key->key.get()));
  DirectoryKey here = mapper->root();
  while (!directory.empty()) {
    const std::string_view name = TakeUpTo(directory, '/');
    if (name.empty()) continue;
    std::vector<std::string> sealed;
    const TextContext context = {
        .random = nullptr, .sealed = &sealed, .directory = here};
    key->subtree += '/';
    if (Status s = mapper->Map(name, context, &key->subtree); !s.ok()) return s;
    here = mapper->Child(here, name);
  }
  if (key->subtree.empty()) key->subtree = "/";
  key->key = here->Clone();
  return key;
}

}  // namespace tracefs::anonymize
