// One walk over the arguments of a message, by a table that says for each
// argument which member of a record it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs::format {

template <typename Record>
struct ArgumentRow {
  ArgId id;
  void (*take)(const Argument& argument, Record* record);
};

// Values as members have them; 0 or false of an argument of another width.
inline void TakeValue(const Argument& argument, bool* value) {
  *value = argument.As<uint8_t>() != 0;
}
inline void TakeValue(const Argument& argument, uint32_t* value) {
  *value = argument.As<uint32_t>();
}
inline void TakeValue(const Argument& argument, uint64_t* value) {
  *value = argument.As<uint64_t>();
}
inline void TakeValue(const Argument& argument,
                      std::optional<uint64_t>* value) {
  *value = argument.As<uint64_t>();
}
template <typename Text>  // std::string or a view into the message
void TakeValue(const Argument& argument, Text* value) {
  *value = AsText(argument.value);
}

// The `take` of a row whose argument is a member, or a member of a member.
template <auto kMember, auto... kInner>
struct Into {
  template <typename Record>
  static void Take(const Argument& argument, Record* record) {
    if constexpr (sizeof...(kInner) == 0) {
      TakeValue(argument, &(record->*kMember));
    } else {
      Into<kInner...>::Take(argument, &(record->*kMember));
    }
  }
};

// Puts all that `rows` have into the record; `otherwise` takes the other
// arguments. False if the message ends within an argument: the record then has
// what came before.
template <typename Record, size_t kRows, typename Otherwise>
bool TakeArguments(ByteSpan arguments, const ArgumentWidths& widths,
                   const ArgumentRow<Record> (&rows)[kRows], Record* record,
                   Otherwise otherwise) {
  ArgumentCursor in(arguments, widths);
  Argument argument;
  while (in.Next(&argument)) {
    const auto row = std::find_if(
        std::begin(rows), std::end(rows), [&](const ArgumentRow<Record>& r) {
          return static_cast<uint16_t>(r.id) == argument.id;
        });
    if (row == std::end(rows)) {
      otherwise(argument);
    } else {
      row->take(argument, record);
    }
  }
  return !in.malformed();
}
template <typename Record, size_t kRows>
bool TakeArguments(ByteSpan arguments, const ArgumentWidths& widths,
                   const ArgumentRow<Record> (&rows)[kRows], Record* record) {
  return TakeArguments(arguments, widths, rows, record, [](const Argument&) {});
}

}  // namespace tracefs::format
