#include "tracefs/event/extents.h"

#include <linux/fiemap.h>

#include <charconv>
#include <limits>

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

struct FlagName {
  uint32_t bit;
  std::string_view name;
};

constexpr FlagName kFlagNames[] = {
    {FIEMAP_EXTENT_LAST, "last"},
    {FIEMAP_EXTENT_UNKNOWN, "unknown"},
    {FIEMAP_EXTENT_DELALLOC, "delalloc"},
    {FIEMAP_EXTENT_ENCODED, "encoded"},
    {FIEMAP_EXTENT_DATA_ENCRYPTED, "encrypted"},
    {FIEMAP_EXTENT_NOT_ALIGNED, "not-aligned"},
    {FIEMAP_EXTENT_DATA_INLINE, "inline"},
    {FIEMAP_EXTENT_DATA_TAIL, "tail"},
    {FIEMAP_EXTENT_UNWRITTEN, "unwritten"},
    {FIEMAP_EXTENT_MERGED, "merged"},
    {FIEMAP_EXTENT_SHARED, "shared"},
};

template <typename Number>
void AppendNumber(Number number, int base, std::string* text) {
  char digits[20];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  text->append(digits, end);
}

bool TakeFlag(std::string_view word, uint32_t* flags) {
  for (const FlagName& flag : kFlagNames) {
    if (flag.name != word) continue;
    *flags |= flag.bit;
    return true;
  }
  if (!TakePrefix(word, "0x")) return false;
  uint32_t others = 0;
  const auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), others, 16);
  *flags |= others;
  return error == std::errc() && end == word.data() + word.size();
}

bool EndsBelowMax(uint64_t begin, uint64_t length) {
  return length <= std::numeric_limits<uint64_t>::max() - begin;
}

}  // namespace

bool Extent::has_place() const {
  constexpr uint32_t kNowhere = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
                                FIEMAP_EXTENT_DATA_INLINE;
  return (flags & kNowhere) == 0;
}

void AppendExtent(const Extent& extent, std::string* text) {
  if (!text->empty()) *text += ' ';
  AppendNumber(extent.logical, 10, text);
  *text += '+';
  AppendNumber(extent.length, 10, text);
  *text += '@';
  AppendNumber(extent.physical, 10, text);
  char before = ':';
  uint32_t left = extent.flags;
  for (const FlagName& flag : kFlagNames) {
    if ((left & flag.bit) == 0) continue;
    left &= ~flag.bit;
    *text += before;
    *text += flag.name;
    before = ',';
  }
  if (left == 0) return;
  *text += before;
  *text += "0x";
  AppendNumber(left, 16, text);
}

bool TakeExtent(std::string_view* text, Extent* extent) {
  std::string_view rest = *text;
  Extent taken;
  if (!TakeDecimal(rest, &taken.logical) || !TakePrefix(rest, "+") ||
      !TakeDecimal(rest, &taken.length) || !TakePrefix(rest, "@") ||
      !TakeDecimal(rest, &taken.physical) ||
      !EndsBelowMax(taken.logical, taken.length) ||
      !EndsBelowMax(taken.physical, taken.length)) {
    return false;
  }
  std::string_view words = TakeUpTo(rest, ' ');
  if (!words.empty() && !TakePrefix(words, ":")) return false;
  while (!words.empty()) {
    if (!TakeFlag(TakeUpTo(words, ','), &taken.flags)) return false;
  }
  *text = rest;
  *extent = taken;
  return true;
}

bool SaysOfExtents(std::string_view of, std::string_view word) {
  while (!of.empty()) {
    if (TakeUpTo(of, ',') == word) return true;
  }
  return false;
}

}  // namespace tracefs
