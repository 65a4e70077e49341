#include "filters/output/anonymize.h"
#include "filters/output/rows.h"

namespace tracefs {
namespace {

constexpr OptionRow kOptions[] = {
    {.name = "policy", .type = ValueType::kText, .required = true},
    {.name = "key", .type = ValueType::kText},
    kBlockOption,
};

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs inputs) {
  const std::string name(entry.Text("policy"));
  Result<anonymize::Policy> policy = anonymize::LoadPolicy(
      name, anonymize::IsProfile(name) ? UniqueFd() : inputs.given.Take());
  if (!policy.ok()) return policy.status().Prefixed("anonymize: policy");
  anonymize::KeySet keys;
  if (entry.Has("key")) {
    const Status added = keys.Add(TakeKeySource(entry, "key", &inputs.given));
    if (!added.ok()) return added.Prefixed("anonymize: key");
  }
  return MakeAnonymize(*std::move(policy), std::move(keys),
                       entry.Number("block"), std::move(next));
}

Status Check(const ConfigEntry& entry) { return CheckKey(entry, "key"); }

std::vector<Wish> Wishes(const ConfigEntry& entry) {
  std::vector<Wish> wishes;
  const std::string policy(entry.Text("policy"));
  if (!anonymize::IsProfile(policy)) {
    wishes.push_back({.path = policy, .kind = Wish::Kind::kRead});
  }
  WishKey(entry, "key", &wishes);
  return wishes;
}

}  // namespace

OutputFilterRow AnonymizeRow() {
  return {.entry = {.name = "anonymize",
                    .role = EntryRole::kFilter,
                    .options = kOptions},
          .help =
              "hides names, users and more by a policy, for good or for "
              "who has a key",
          .needs_messages = true,
          .in_chain_text = false,
          .make = &Make,
          .wishes = &Wishes,
          .check = &Check};
}

}  // namespace tracefs
