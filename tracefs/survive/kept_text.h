// Texts that a daemon leaves to the next: each is there as a whole or not at
// all, whatever moment the daemon is killed at. It lies in places of the area
// of its own (Area::Hold), and is there from the moment on at which the word
// that names it is written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/survive/area.h"

namespace tracefs::survive {

// The longest one.
inline constexpr size_t kMostKeptBytes = size_t{256} << 20;

// What `word` names from now on; what it named before is gone. kSystem ENOBUFS,
// and nothing has changed, if there is no room or the text is too long. One
// thread at a time for each word.
Status KeepText(Area& area, std::atomic<uint64_t>& word, std::string_view text);
// What it names; nothing if it names none, or what it names is no text. The
// text itself may be anything.
std::optional<std::string> KeptText(Area& area, uint64_t word);
void ForgetText(Area& area, std::atomic<uint64_t>& word);

// In a daemon that begins: what none of `words` names goes. One before was
// killed when it wrote that.
void ForgetLostTexts(Area& area,
                     const std::vector<std::atomic<uint64_t>*>& words);

}  // namespace tracefs::survive
