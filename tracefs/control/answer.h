// The answers of the control protocol as text (docs/control-protocol.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// {"id":1,"ok":true,"result":…} and a line end. `result` is JSON.
std::string OkLine(std::optional<uint64_t> id, std::string_view result);
// {"id":1,"ok":false,"error":{"code":"invalid","errno":0,"message":"…"}} and a
// line end.
std::string ErrorLine(std::optional<uint64_t> id, const Status& error);

// JSON from a peer, on one line, and without characters that a terminal would
// obey. kCorrupt if it is not JSON, or nests deeper or has more values than any
// answer.
Result<std::string> PrintableJson(std::string_view text);

// An answer, as the client sees it: printable as it is.
struct ParsedAnswer {
  std::optional<uint64_t> id;
  Status status;
  std::string result;  // JSON, if `status` is OK
};
// kCorrupt if the line is not an answer.
Result<ParsedAnswer> ParseAnswer(std::string_view line);

}  // namespace tracefs
