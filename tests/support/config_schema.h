// Tables of names for tests of the config grammar: the forms that real drivers
// and filters have, and one of every value type.
#pragma once

#include <string_view>

#include "config/schema.h"

namespace tracefs::testing {

inline constexpr std::string_view kStreamFlags[] = {
    "STR_POST_OP", "STR_PRE_OP",    "STR_PID",
    "STR_UID",     "STR_TIMESTAMP", "STR_ALL"};
inline constexpr OptionRow kStreamOptions[] = {
    {.name = "data", .type = ValueType::kSize, .max = 65536}};
inline constexpr EntryRow kAssembly[] = {
    {.name = "stream",
     .role = EntryRole::kAssembly,
     .value = {.type = ValueType::kFlags, .words = kStreamFlags},
     .options = kStreamOptions},
    {.name = "aggregate",
     .role = EntryRole::kAssembly,
     .value = {.type = ValueType::kBlock, .required = true}},
    {.name = "when",
     .role = EntryRole::kRule,
     .value = {.type = ValueType::kRest}},
};

inline constexpr std::string_view kAlgorithms[] = {"crc32c", "hmac-sha256"};
inline constexpr OptionRow kChecksumOptions[] = {
    {.name = "alg", .type = ValueType::kChoice, .words = kAlgorithms},
    {.name = "block", .type = ValueType::kSize, .min = 512, .max = 1 << 20},
    {.name = "key", .type = ValueType::kText}};
inline constexpr OptionRow kCompressOptions[] = {
    {.name = "level", .type = ValueType::kCount, .min = 1, .max = 19},
    {.name = "alg", .alias = "algorithm", .type = ValueType::kText}};
inline constexpr OptionRow kEncryptOptions[] = {
    {.name = "key", .type = ValueType::kText, .required = true}};
inline constexpr OptionRow kFileOptions[] = {
    {.name = "buf", .type = ValueType::kSize, .min = 4096, .max = 1 << 30},
    {.name = "flush", .type = ValueType::kDuration},
    {.name = "sync"},
    {.name = "unbuffered"}};
inline constexpr OptionRow kFlightOptions[] = {
    {.name = "size", .type = ValueType::kSize},
    {.name = "map", .type = ValueType::kText},
    {.name = "trigger", .type = ValueType::kText},
    {.name = "every", .type = ValueType::kDuration},
    {.name = "keep", .type = ValueType::kCount}};
inline constexpr std::string_view kFileAliases[] = {"filename"};
inline constexpr std::string_view kPolicies[] = {"block", "spill", "fail"};
inline constexpr OptionRow kNetOptions[] = {
    {.name = "when_full",
     .type = ValueType::kChoice,
     .words = kPolicies,
     .word_with_text = "spill"},
    {.name = "max", .type = ValueType::kSize},
    {.name = "ca", .type = ValueType::kText},
    {.name = "cert", .type = ValueType::kText},
    {.name = "key", .type = ValueType::kText}};
inline constexpr OptionRow kKafkaOptions[] = {
    {.name = "when_full",
     .type = ValueType::kChoice,
     .words = kPolicies,
     .word_with_text = "spill"},
    {.name = "max", .type = ValueType::kSize},
    {.name = "ca", .type = ValueType::kText},
    {.name = "user", .type = ValueType::kText},
    {.name = "password", .type = ValueType::kText}};
inline constexpr EntryRow kOutput[] = {
    {.name = "async", .role = EntryRole::kFilter},
    {.name = "checksum",
     .role = EntryRole::kFilter,
     .options = kChecksumOptions},
    {.name = "compress",
     .role = EntryRole::kFilter,
     .options = kCompressOptions},
    {.name = "encrypt", .role = EntryRole::kFilter, .options = kEncryptOptions},
    {.name = "file",
     .role = EntryRole::kDriver,
     .aliases = kFileAliases,
     .value = {.type = ValueType::kText, .required = true},
     .options = kFileOptions},
    {.name = "flight",
     .role = EntryRole::kDriver,
     .value = {.type = ValueType::kText, .required = true},
     .options = kFlightOptions},
    {.name = "tcp",
     .role = EntryRole::kDriver,
     .value = {.type = ValueType::kText, .required = true},
     .options = kNetOptions},
    {.name = "tls",
     .role = EntryRole::kDriver,
     .value = {.type = ValueType::kText, .required = true},
     .options = kNetOptions},
    {.name = "unix",
     .role = EntryRole::kDriver,
     .value = {.type = ValueType::kText, .required = true},
     .options = kNetOptions},
    {.name = "kafka",
     .role = EntryRole::kDriver,
     .value = {.type = ValueType::kText, .required = true},
     .options = kKafkaOptions},
};

inline constexpr ConfigSchema kConfigSchema = {kAssembly, kOutput};

}  // namespace tracefs::testing
