// The words of the filter language: fields, operations, error names, flag
// names, file types. One place for reading them, listing them in messages and
// printing them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/event/field.h"

namespace tracefs {

// Every word of a kind, for NearestWord.
std::span<const std::string_view> PredicateWords();
std::span<const std::string_view> OpWords();  // with `close`
std::span<const std::string_view> ErrnoWords();
std::span<const std::string_view> FlagWords();
std::span<const std::string_view> FileTypeWords();
std::span<const std::string_view> SystemCallWords();
std::span<const std::string_view> SetAttributeWords();

// "EIO" -> 5.
std::optional<uint64_t> ErrnoFromWord(std::string_view word);

// A flag's bits and the bits that tell whether it is set: of O_RDONLY the two
// of the access mode, none of which is one.
struct FlagBits {
  uint64_t bits = 0;
  uint64_t mask = 0;
};
std::optional<FlagBits> FlagFromWord(std::string_view word);

// "file dir link fifo sock char block" -> S_IFMT >> 12, as kType has it.
// A name of this machine.
std::optional<uint64_t> SystemCallFromWord(std::string_view word);
std::optional<uint64_t> FileTypeFromWord(std::string_view word);

// What a setattr sets: "size" -> its bit of kValid.
std::optional<uint64_t> SetAttributeFromWord(std::string_view word);

// A number of a field as the language writes it: "EIO", "dir", "0644", "-1",
// "0x400", "25".
std::string ValueText(Field field, uint64_t value);

}  // namespace tracefs
