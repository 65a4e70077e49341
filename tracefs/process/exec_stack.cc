// perf_event_open(2), PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER; the
// stack: linux/fs/binfmt_elf.c, create_elf_tables().
#include "tracefs/process/exec_stack.h"

#include <algorithm>

#include "tracefs/process/perf_ring.h"

namespace tracefs {
namespace {

constexpr uint64_t kMaxStackBytes = 65536;

}  // namespace

std::optional<std::string> ArgumentsOnStack(ByteSpan sampled) {
  ByteCursor in(sampled);
  if (in.TakeLe<uint64_t>() != kRegistersOf64Bit) return std::nullopt;
  const auto pointer = in.TakeLe<uint64_t>();
  const auto size = in.TakeLe<uint64_t>();
  if (!pointer || !size || *size > kMaxStackBytes) return std::nullopt;
  const std::optional<ByteSpan> room = in.Take(static_cast<size_t>(*size));
  const auto copied = in.TakeLe<uint64_t>();
  if (!room || !copied || *copied > room->size()) return std::nullopt;
  const ByteSpan stack = room->first(static_cast<size_t>(*copied));
  ByteCursor top(stack);
  const auto count = top.TakeLe<uint64_t>();
  const auto first = top.TakeLe<uint64_t>();
  if (!count || !first || *count == 0 || *first < *pointer ||
      *first - *pointer >= stack.size()) {
    return std::nullopt;
  }
  // They stand one after another.
  const ByteSpan texts = stack.subspan(static_cast<size_t>(*first - *pointer));
  auto end = texts.begin();
  for (uint64_t i = 0; i < *count; ++i) {
    end = std::find(end, texts.end(), std::byte{0});
    if (end == texts.end()) return std::nullopt;
    ++end;
  }
  return std::string(
      AsText(texts.first(static_cast<size_t>(end - texts.begin()))));
}

}  // namespace tracefs
