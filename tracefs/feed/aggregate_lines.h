// What was counted for one key, as a line of text and as one of JSON.
#pragma once

#include <string>

#include "tracefs/format/aggregate.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {

// The value of a part of a key: a number, a name, or bytes as they are.
std::string AggregateKeyText(const format::AggregateKeyPart& part);

// The key as text: the operation by its name, other parts as `label=value`.
// "(other)" and "(all)" where there is none.
std::string AggregateKeysText(const format::AggregateRecord& record);
// The same as members of a JSON object; parts have the names they have in
// operations.
void PutAggregateKey(const format::AggregateRecord& record, JsonWriter* json);

// Without the time, without a line end: what follows it in a listing.
std::string AggregateText(const format::AggregateRecord& record);

// One object and a line end. `ts` is the end of the period, `from` its
// beginning; parts of the key have the names they have in operations.
std::string AggregateJson(const format::AggregateRecord& record);

}  // namespace tracefs
