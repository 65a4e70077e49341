#include "tracefs/tools/ctl/reload.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "config/config.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/mount_note.h"
#include "tracefs/signed/config_folder.h"
#include "tracefs/tools/ctl/answer_json.h"
#include "tracefs/tools/ctl/request.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> Ask(ControlClient& client, const std::string& request) {
  const Result<std::string> answer = client.Call(request);
  if (!answer.ok()) return answer.status();
  Json json = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return NoSense();
  return json;
}

std::optional<uint32_t> IdIn(const Json& object, const char* name) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned() ||
      *found > UINT32_MAX) {
    return std::nullopt;
  }
  return found->get<uint32_t>();
}

Result<std::vector<uint32_t>> Ids(const Json& json, const char* name) {
  const Json all = json.value(name, Json::array());
  if (!all.is_array()) return NoSense();
  std::vector<uint32_t> ids;
  for (const Json& id : all) {
    if (!id.is_number_unsigned() || id > UINT32_MAX) return NoSense();
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

// What has to be done, by the mount's word on what it traces now: about our own
// tracers, which it can only point at, and its own.
struct Difference {
  std::vector<uint32_t> kept;
  std::vector<uint32_t> removed;
  std::string added;  // a config
  // Requests that give tracers of the mount other filters.
  std::vector<std::string> filters;
  // All tracers of the file in order, those that are added without an id. None
  // if the mount does not say: it is of an older version.
  std::vector<FileTracer> order;
};

Result<Difference> Compare(ControlClient& client, const std::string& file,
                           const std::string& text) {
  const std::string name = IsUtf8(file) ? file : "config";
  const Result<Config> config = ParseConfig(text, name, FullSchema());
  if (!config.ok()) return config.status();
  // What a mount with this config would refuse is refused before anything of
  // it is done.
  NameTable names;
  const auto wishes = WishedFiles(*config, SystemNameService(), names);
  if (!wishes.ok()) return wishes.status();
  const Result<Json> answer = Ask(
      client,
      Json({{"command", "compare"}, {"config", text}, {"file", name}}).dump());
  if (!answer.ok()) return answer.status();
  const Result<std::vector<uint32_t>> kept = Ids(*answer, "kept");
  const Result<std::vector<uint32_t>> removed = Ids(*answer, "removed");
  const Result<std::vector<uint32_t>> added = Ids(*answer, "added");
  if (!kept.ok() || !removed.ok() || !added.ok()) return NoSense();
  const Result<std::vector<uint32_t>> order = Ids(*answer, "order");
  if (!order.ok()) return order.status();
  Difference difference;
  difference.kept = *kept;
  difference.removed = *removed;
  const std::vector<TracerConfig>& tracers = config->tracers;
  if (!order->empty() && order->size() != tracers.size()) return NoSense();
  for (size_t i = 0; i < order->size(); ++i) {
    difference.order.push_back(FileTracerOf(tracers[i], (*order)[i]));
  }
  uint32_t before = 0;
  for (const uint32_t number : *added) {
    if (number <= before || number > tracers.size()) return NoSense();
    before = number;
    difference.added += ToText(tracers[number - 1]);
  }
  for (const Json& one : answer->value("filters", Json::array())) {
    const std::optional<uint32_t> id = IdIn(one, "tracer");
    const std::optional<uint32_t> as = IdIn(one, "as");
    if (!id || !as || *as == 0 || *as > tracers.size()) return NoSense();
    Result<std::string> request =
        FilterRequest("set-filter", &*id, tracers[*as - 1].filter);
    if (!request.ok()) return request.status().Prefixed(file);
    difference.filters.push_back(*std::move(request));
  }
  return difference;
}

// The rules of tracers that stay mean those that are in the file now.
Status BindRules(ControlClient& client, const std::vector<FileTracer>& order,
                 std::span<const uint32_t> came) {
  if (order.empty()) return Status::Ok();
  std::vector<uint32_t> ids;
  for (const FileTracer& tracer : order) {
    if (tracer.id == 0 && came.empty()) return NoSense();
    ids.push_back(tracer.id != 0 ? tracer.id : came.front());
    if (tracer.id == 0) came = came.subspan(1);
  }
  return Ask(client,
             Json({{"command", "bind"}, {"tracers", IdsText(ids)}}).dump())
      .status();
}

Status ReloadText(ControlClient& client, const std::string& file,
                  const std::string& text,
                  const std::function<Status(const std::string&)>& tell) {
  if (!IsUtf8(text)) {
    return Status::Invalid(file +
                           ": not UTF-8; write such bytes as \\xHH in quotes");
  }
  // All that may be refused comes before what changes anything.
  const Result<Difference> difference = Compare(client, file, text);
  if (!difference.ok()) return difference.status();
  std::vector<uint32_t> came;
  const std::vector<FileTracer>& order = difference->order;
  if (!difference->added.empty()) {
    NewFiles files;
    const Result<std::string> request =
        AddRequest(client, file, difference->added, &files,
                   order.empty() ? nullptr : &order);
    if (!request.ok()) return request.status();
    const Result<std::string> answer =
        client.Call(*request, files.Descriptors());
    if (!answer.ok()) {
      files.KeepIfUnknown(answer.status());
      return answer.status();
    }
    files.Keep();
    const Json ids = Json::parse(*answer, nullptr, false);
    const Result<std::vector<uint32_t>> all =
        ids.is_object() ? Ids(ids, "ids") : NoSense();
    if (!all.ok()) return all.status();
    came = *all;
  }
  if (Status s = BindRules(client, order, came); !s.ok()) return s;
  for (const std::string& request : difference->filters) {
    if (const Result<Json> done = Ask(client, request); !done.ok()) {
      return done.status();
    }
  }
  for (const uint32_t id : difference->removed) {
    if (const Result<Json> done = Ask(client, TracerRequest("remove", id));
        !done.ok()) {
      return done.status();
    }
  }
  return tell(file + ": " + std::to_string(difference->kept.size()) +
              " tracers as they were, " +
              std::to_string(difference->filters.size()) +
              " with another filter, " + std::to_string(came.size()) +
              " new, " + std::to_string(difference->removed.size()) + " gone");
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

Status ReloadFolder(ControlClient& client, const MountNote& note,
                    const std::function<Status(const std::string&)>& tell) {
  const std::string& folder = note.config_dir;
  const std::string& place = note.config_state;
  // The keys again: they may have changed, too.
  auto keys = ReadConfigKeys(note.config_keys);
  if (!keys.ok()) return keys.status();
  const auto lock = LockState(place);
  if (!lock.ok()) return lock.status();
  auto taken = ReadTaken(place);
  if (!taken.ok()) return taken.status();
  const auto choice = ChooseConfig({.folder = folder,
                                    .keys = *std::move(keys),
                                    .host = HostName(),
                                    .now_s = RealNs() / kNsPerSecond,
                                    .taken = *std::move(taken)});
  if (!choice.ok()) return choice.status();
  std::string refused;
  for (const RefusedConfig& one : choice->refused) {
    AppendWord(ConfigRefusalName(one.why), " ", &refused);
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
    return Status::Invalid(folder +
                           ": all goes on as it was: " + choice->Text());
  }
  if (refused.empty()) return {};
  return Status::Invalid(folder + ": " + choice->Text());
}

}  // namespace

Status Reload(ControlClient& client, const std::string& given,
              const std::function<Status(const std::string&)>& tell) {
  MountNote note{.config = given};
  if (given.empty()) {
    Result<MountNote> own = ReadMountNote(client.mount());
    if (!own.ok() || !own->names_config()) {
      return Status::Invalid(
          "there is no note of the config that the mount was made with: name "
          "it, tracefs-ctl MNT reload FILE");
    }
    note = *std::move(own);
  }
  if (!note.config_dir.empty()) return ReloadFolder(client, note, tell);
  const Result<std::string> text = ReadConfigText(
      note.config, given.empty() ? NamedBy::kNote : NamedBy::kCaller);
  if (!text.ok()) return text.status();
  return ReloadText(client, note.config, *text, tell);
}

}  // namespace tracefs
