#include "tracefs/tools/ctl/upgrade.h"

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <thread>

#include "tracefs/control/client.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/ctl/answer_json.h"
#include "tracefs/tools/ctl/request.h"

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr auto kBetweenAsks = std::chrono::milliseconds(50);

uint64_t UpgradesIn(const Json& survival) {
  return survival.is_object() && survival.contains("upgrades") &&
                 survival["upgrades"].is_number_unsigned()
             ? survival["upgrades"].get<uint64_t>()
             : 0;
}

Result<Json> Survival(ControlClient& client) {
  const Result<std::string> answer = client.Call(SimpleRequest("stats"));
  if (!answer.ok()) return answer.status();
  const Json json = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return NoSense();
  return json.value("survival", Json::object());
}

bool IsEnd(const Status& status) {
  return status.error() == ECONNRESET || status.error() == EPIPE;
}

}  // namespace

Result<std::string> UpgradeAndWait(const std::string& mount_point,
                                   std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  Result<ControlClient> client = ControlClient::Connect(mount_point, patience);
  if (!client.ok()) return client.status();
  const Result<Json> before = Survival(*client);
  if (!before.ok()) return before.status();
  const Status refused = client->Call(SimpleRequest("upgrade")).status();
  if (!IsEnd(refused)) return refused.ok() ? NoSense() : refused;
  // Its daemon has ended. The next one serves the same socket.
  while (Clock::now() < deadline) {
    client = ControlClient::Connect(mount_point, patience);
    if (!client.ok()) return client.status();
    const Result<Json> now = Survival(*client);
    if (now.ok() && UpgradesIn(*now) > UpgradesIn(*before)) return now->dump();
    if (now.ok()) {
      return Status::SystemSaid(
          ECONNRESET,
          "the daemon was killed meanwhile, and another goes on "
          "with the same program; ask again");
    }
    if (!IsEnd(now.status())) return now.status();
    std::this_thread::sleep_for(kBetweenAsks);
  }
  return Status::SystemSaid(ETIMEDOUT, "no daemon answers");
}

Result<std::string> UpgradeText(const std::string& json) {
  const Json survival = Json::parse(json, nullptr, false);
  if (!survival.is_object()) return NoSense();
  return "Tracefs " + TerminalText(TextIn(survival, "version")) +
         " serves it now\n";
}

}  // namespace tracefs
