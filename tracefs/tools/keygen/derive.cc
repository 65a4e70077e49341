#include "tracefs/tools/keygen/derive.h"

#include <fcntl.h>

#include "anonymize/session.h"
#include "tracefs/crypto/seal_state.h"

namespace tracefs {
namespace {

struct DeriveOptions {
  std::string key;
  std::string day;
  std::string subtree;
  std::string policy;
  std::vector<AgeRecipient> recipients = {};
  std::string domain = {};
  std::string file = {};
};

Result<DeriveOptions> Parse(const CommandLine& given,
                            const std::vector<std::string>& words) {
  DeriveOptions options = {.key = given.Text("key"),
                           .day = given.Text("day"),
                           .subtree = given.Text("subtree"),
                           .policy = given.Text("policy")};
  for (const std::string& text : given.Texts("recipient")) {
    AgeRecipient recipient;
    if (!ParseAgeRecipient(text, &recipient)) {
      return Status::Invalid(
          "--recipient takes age1…, as age-keygen -y or "
          "tracefs-keygen age prints it");
    }
    options.recipients.push_back(recipient);
  }
  if (words.size() != 2) {
    return Status::Invalid(
        "--derive takes a domain and the new file (see tracefs-keygen "
        "--help)");
  }
  options.domain = words[0];
  options.file = words[1];
  if (options.key.empty()) {
    return Status::Invalid(
        "--derive needs --key MASTER, made with "
        "'tracefs-keygen secret'");
  }
  if (options.recipients.size() > kMaxAgeRecipients) {
    return Status::Invalid("more than " + std::to_string(kMaxAgeRecipients) +
                           " recipients");
  }
  if (options.subtree.empty() != options.policy.empty()) {
    return Status::Invalid(
        "--subtree and --policy go together: the policy says how the "
        "directory appears in the trace");
  }
  if (!options.subtree.empty() && options.domain != "name") {
    return Status::Invalid("--subtree is for the domain name");
  }
  return options;
}

Result<anonymize::DerivedKey> Derive(const DeriveOptions& options) {
  const Result<KeySource> source = ParseKeyArgument(options.key);
  if (!source.ok()) return source.status().Prefixed("--key");
  anonymize::KeySet master;
  if (Status s = master.Add(*source); !s.ok()) return s.Prefixed("--key");
  if (options.subtree.empty()) {
    return anonymize::MakeDomainKey(master, options.domain, options.day);
  }
  const Result<anonymize::Policy> policy =
      anonymize::LoadPolicy(options.policy);
  if (!policy.ok()) return policy.status();
  return anonymize::MakeSubtreeKey(*policy, master, options.day,
                                   options.subtree);
}

}  // namespace

Status DeriveKeyFile(const CommandLine& given,
                     const std::vector<std::string>& words) {
  const Result<DeriveOptions> options = Parse(given, words);
  if (!options.ok()) return options.status();
  const Result<anonymize::DerivedKey> key = Derive(*options);
  if (!key.ok()) return key.status();
  Result<std::string> line =
      anonymize::DerivedKeyLine(*key, options->recipients);
  if (!line.ok()) return line.status();
  std::string text = "# Tracefs: reveals domain " + key->domain;
  if (!key->subtree.empty()) text += ", one subtree,";
  if (!key->day.empty()) text += " of " + key->day;
  text += " (tracefs-anon --reveal)\n";
  text.reserve(text.size() + line->size() + 1);  // no copy stays behind
  text += *line + '\n';
  Status status =
      CreateSecretFile(options->file, "key file '" + options->file + "'", text);
  for (std::string* s : {&text, &*line}) {
    Wipe(std::as_writable_bytes(std::span(*s)));
  }
  return status;
}

}  // namespace tracefs
