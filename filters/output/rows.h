// The rows of table.cc: what each filter's own file says of its options.
#pragma once

#include <string_view>

#include "filters/output/table.h"
#include "filters/output/when_full.h"
#include "tracefs/crypto/key_source.h"

namespace tracefs {

OutputFilterRow AnonymizeRow();
OutputFilterRow AsyncRow();
OutputFilterRow ChecksumRow();
OutputFilterRow CompressRow();
OutputFilterRow EncryptRow();
OutputFilterRow ThrottleRow();

// --- What they share.

// `block = N`: the filter gets no larger blocks than this; the smallest of a
// chain holds.
inline constexpr OptionRow kBlockOption = {.name = "block",
                                           .type = ValueType::kSize,
                                           .min = 4096,
                                           .max = uint64_t{16} << 20};

// Of kBlockOrDropOption and kDeadlineOption.
WhenFull WhenFullOf(const ConfigEntry& entry);
Status CheckWhenFull(const ConfigEntry& entry);

// kInvalid where the option is given and names no source.
Status CheckKey(const ConfigEntry& entry, std::string_view option);
// Adds what the option, checked, needs opened; nothing where it is not given.
void WishKey(const ConfigEntry& entry, std::string_view option,
             std::vector<Wish>* wishes);
// The key source of an option that is given and checked, opened by somebody
// else if `given` has it.
KeySource TakeKeySource(const ConfigEntry& entry, std::string_view option,
                        Given* given);

}  // namespace tracefs
