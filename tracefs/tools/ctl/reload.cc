#include "tracefs/tools/ctl/reload.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/export/escape.h"
#include "tracefs/signed/config_folder.h"
#include "tracefs/tools/ctl/request.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

Status NoSense() {
  return Status::Corrupt("the mount's answer makes no sense");
}

Result<Json> Ask(ControlClient& client, const std::string& request) {
  const Result<std::string> answer = client.Call(request);
  if (!answer.ok()) return answer.status();
  Json json = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return NoSense();
  return json;
}

Result<std::string> ConfigOfMount(const Json& list) {
  const Json file = list.value("config_file", Json());
  if (!file.is_string()) {
    return Status::Invalid(
        "the mount was made without a config file: name one");
  }
  return file.get<std::string>();
}

Result<std::vector<uint32_t>> Ids(const Json& json, const char* name) {
  std::vector<uint32_t> ids;
  for (const Json& id : json.value(name, Json::array())) {
    if (!id.is_number_unsigned() || id > UINT32_MAX) return NoSense();
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

// The requests that give other filters.
Result<std::vector<std::string>> FilterRequests(ControlClient& client,
                                                const Json& difference) {
  std::vector<std::string> requests;
  for (const Json& one : difference.value("filters", Json::array())) {
    if (!one.is_object() || !one.value("filter", Json()).is_string() ||
        !one.value("tracer", Json()).is_number_unsigned()) {
      return NoSense();
    }
    const auto id = one["tracer"].get<uint32_t>();
    Result<std::string> request = FilterRequest(
        client, "set-filter", &id, one["filter"].get<std::string>());
    if (!request.ok()) return request.status();
    requests.push_back(*std::move(request));
  }
  return requests;
}

Status ReloadText(ControlClient& client, const std::string& file,
                  const std::string& text,
                  const std::function<Status(const std::string&)>& tell) {
  if (!IsUtf8(text)) {
    return Status::Invalid(file +
                           ": not UTF-8; write such bytes as \\xHH in quotes");
  }
  const Result<Json> difference =
      Ask(client, Json({{"command", "compare"},
                        {"config", text},
                        {"file", IsUtf8(file) ? file : "config"}})
                      .dump());
  if (!difference.ok()) return difference.status();
  const Json added = difference->value("added", Json());
  if (!added.is_string()) return NoSense();
  const Result<std::vector<uint32_t>> kept = Ids(*difference, "kept");
  const Result<std::vector<uint32_t>> removed = Ids(*difference, "removed");
  if (!kept.ok() || !removed.ok()) return NoSense();

  // All that may be refused comes before what changes anything.
  const Result<std::vector<std::string>> filters =
      FilterRequests(client, *difference);
  if (!filters.ok()) return filters.status().Prefixed(file);
  size_t came = 0;
  if (const auto config = added.get<std::string>(); !config.empty()) {
    NewFiles files;
    const Result<std::string> request =
        AddTextRequest(client, file, config, &files);
    if (!request.ok()) return request.status();
    const Result<std::string> answer =
        client.Call(*request, files.Descriptors());
    if (!answer.ok()) {
      if (answer.status().error() == ETIMEDOUT) files.Keep();
      return answer.status();
    }
    files.Keep();
    const Json ids = Json::parse(*answer, nullptr, false);
    if (ids.is_object()) came = ids.value("ids", Json::array()).size();
  }
  for (const std::string& request : *filters) {
    if (const Result<Json> done = Ask(client, request); !done.ok()) {
      return done.status();
    }
  }
  for (const uint32_t id : *removed) {
    if (const Result<Json> done = Ask(client, TracerRequest("remove", id));
        !done.ok()) {
      return done.status();
    }
  }
  return tell(file + ": " + std::to_string(kept->size()) +
              " tracers as they were, " + std::to_string(filters->size()) +
              " with another filter, " + std::to_string(came) + " new, " +
              std::to_string(removed->size()) + " gone");
}

// --- Signed configs of a directory.

// One at a time: two that compare before either has added would add twice.
Result<UniqueFd> LockState(const std::string& state) {
  UniqueFd fd(::open((state + ".lock").c_str(),
                     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX) != 0) {
    return Status::System(errno, state + ".lock");
  }
  return fd;
}

Status ReloadFolder(ControlClient& client, const Json& list,
                    const std::function<Status(const std::string&)>& tell) {
  const Json folder = list.value("config_dir", Json());
  const Json state = list.value("config_state", Json());
  if (!folder.is_string() || !state.is_string()) return NoSense();
  std::vector<std::string> sources;
  for (const Json& key : list.value("config_keys", Json::array())) {
    if (!key.is_string()) return NoSense();
    sources.push_back(key.get<std::string>());
  }
  // The keys anew: who may sign changes, too.
  auto keys = ReadConfigKeys(sources);
  if (!keys.ok()) return keys.status();
  const auto place = state.get<std::string>();
  const auto lock = LockState(place);
  if (!lock.ok()) return lock.status();
  auto taken = ReadTaken(place);
  if (!taken.ok()) return taken.status();
  const auto choice = ChooseConfig({.folder = folder.get<std::string>(),
                                    .keys = *std::move(keys),
                                    .host = HostName(),
                                    .now_s = RealNs() / kNsPerSecond,
                                    .taken = *std::move(taken)});
  if (!choice.ok()) return choice.status();
  std::string refused;
  for (const RefusedConfig& one : choice->refused) {
    refused +=
        (refused.empty() ? "" : " ") + std::string(ConfigRefusalName(one.why));
  }
  Json seen = {{"command", "config-seen"}, {"refused", refused}};
  Status done;
  if (choice->chosen) {
    const SignedConfig& config = choice->chosen->config;
    done = ReloadText(client, choice->chosen->file, config.text, tell);
    if (done.ok()) {
      done = WriteTaken(place, {config.facts.version, config.digest});
      seen["version"] = config.facts.version;
    }
  }
  const Result<Json> told = Ask(client, seen.dump());
  if (!done.ok()) return done;
  if (!told.ok()) return told.status();
  if (!choice->chosen) {
    return Status::Invalid(folder.get<std::string>() +
                           ": all goes on as it was: " + choice->Text());
  }
  if (refused.empty()) return {};
  return Status::Invalid(folder.get<std::string>() + ": " + choice->Text());
}

}  // namespace

Status Reload(ControlClient& client, const std::string& given,
              const std::function<Status(const std::string&)>& tell) {
  std::string file = given;
  if (file.empty()) {
    const Result<Json> list = Ask(client, SimpleRequest("list"));
    if (!list.ok()) return list.status();
    if (list->contains("config_dir")) return ReloadFolder(client, *list, tell);
    Result<std::string> own = ConfigOfMount(*list);
    if (!own.ok()) return own.status();
    file = *std::move(own);
  }
  const Result<std::string> text = ReadConfigText(file);
  if (!text.ok()) return text.status();
  return ReloadText(client, file, *text, tell);
}

}  // namespace tracefs
