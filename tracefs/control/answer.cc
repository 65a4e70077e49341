#include "tracefs/control/answer.h"

#include <nlohmann/json.hpp>

#include "tracefs/base/printable.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

std::string Front(std::optional<uint64_t> id) {
  return id ? "{\"id\":" + std::to_string(*id) + ',' : "{";
}

std::string_view CodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalid:
      return "invalid";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kSystem:
      return "system";
  }
  return "";
}

// The status of an error member; its text is complete already.
Status StatusOf(const Json& error) {
  const std::string code = error.value("code", "");
  const std::string message = error.value("message", "");
  if (code == "invalid") return Status::Invalid(message);
  if (code == "corrupt") return Status::Corrupt(message);
  const auto number = error.find("errno");
  const bool known = number != error.end() && number->is_number_integer();
  return Status::SystemSaid(known ? number->get<int>() : 0, message);
}

}  // namespace

std::string OkLine(std::optional<uint64_t> id, std::string_view result) {
  std::string line = Front(id) + "\"ok\":true,\"result\":";
  line += result;
  return line + "}\n";
}

std::string ErrorLine(std::optional<uint64_t> id, const Status& error) {
  // Messages may quote a config, or a file name that is not UTF-8.
  const Json json = {{"code", CodeName(error.code())},
                     {"errno", error.error()},
                     {"message", error.message()}};
  return Front(id) + "\"ok\":false,\"error\":" +
         JsonWithoutHidden(
             json.dump(-1, ' ', false, Json::error_handler_t::replace)) +
         "}\n";
}

Result<ParsedAnswer> ParseAnswer(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const Status bad = Status::Corrupt("the mount's answer makes no sense");
  if (!json.is_object()) return bad;
  ParsedAnswer answer;
  const auto ok = json.find("ok");
  if (ok == json.end() || !ok->is_boolean()) return bad;
  if (const auto id = json.find("id");
      id != json.end() && id->is_number_unsigned()) {
    answer.id = id->get<uint64_t>();
  }
  if (ok->get<bool>()) {
    const auto result = json.find("result");
    if (result == json.end()) return bad;
    answer.result = JsonWithoutHidden(
        result->dump(-1, ' ', false, Json::error_handler_t::replace));
    return answer;
  }
  const auto error = json.find("error");
  if (error == json.end() || !error->is_object()) return bad;
  for (const char* member : {"code", "message"}) {
    const auto found = error->find(member);
    if (found == error->end() || !found->is_string()) return bad;
  }
  answer.status = StatusOf(*error);
  return answer;
}

}  // namespace tracefs
