#include "tracefs/control/answer.h"

#include <nlohmann/json.hpp>

#include "tracefs/base/choice.h"
#include "tracefs/base/printable.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

std::string Front(std::optional<uint64_t> id) {
  return id ? "{\"id\":" + std::to_string(*id) + ',' : "{";
}

std::string_view CodeName(StatusCode code) {
  static constexpr Choice<StatusCode> kNames[] = {
      {"ok", StatusCode::kOk},
      {"invalid", StatusCode::kInvalid},
      {"corrupt", StatusCode::kCorrupt},
      {"system", StatusCode::kSystem},
  };
  return WordOf(kNames, code);
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

// More than any answer holds: converting a document to text, or destroying it,
// recurses level by level on the stack, and each value takes many times the
// bytes of its text.
bool IsTooIntricate(std::string_view json) {
  constexpr int kMostLevels = 32;
  constexpr size_t kMostValues = size_t{1} << 19;
  int level = 0;
  size_t values = 1;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++level > kMostLevels) return true;
    } else if (c == '}' || c == ']') {
      --level;
    } else if (c == ',' && ++values > kMostValues) {
      return true;
    }
  }
  return false;
}

std::string TextOf(const Json& json) {
  return JsonWithoutHidden(
      json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Result<std::string> PrintableJson(std::string_view text) {
  if (!IsTooIntricate(text)) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_discarded()) return TextOf(json);
  }
  return Status::Corrupt("it is no JSON");
}

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
  return Front(id) + "\"ok\":false,\"error\":" + TextOf(json) + "}\n";
}

Result<ParsedAnswer> ParseAnswer(std::string_view line) {
  const Status bad = Status::Corrupt("the mount's answer makes no sense");
  if (IsTooIntricate(line)) return bad;
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
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
    answer.result = TextOf(*result);
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
