#include "tracefs/tools/anon/own_words.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace tracefs::anonymize {

bool IsOwnWord(format::ArgId argument, std::string_view text) {
  constexpr std::string_view kLosses[] = {
      "output_error", "too_large", "queue_full", "throttled",
      "degraded",     "refused",   "overrun",    "died"};
  constexpr std::string_view kEnds[] = {"unmount",
                                        "stop",
                                        "signal",
                                        "error",
                                        "exit",
                                        "destroyed",
                                        "crashes",
                                        "end of the iolog",
                                        "end of the strace"};
  constexpr std::string_view kKeys[] = {"pid",   "ppid", "tree", "tid",
                                        "sid",   "pgid", "uid",  "gid",
                                        "cname", "inode"};
  const auto among = [&text](std::span<const std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
  };
  switch (argument) {
    case format::ArgId::kLossReason:
      return among(kLosses);
    case format::ArgId::kLossTotal:  // with its count before it
      text.remove_prefix(std::min(sizeof(uint64_t), text.size()));
      return among(kLosses);
    case format::ArgId::kEndReason:
      return among(kEnds);
    case format::ArgId::kRuleKey:
      return among(kKeys);
    default:
      return true;
  }
}

bool IsOfTheMachine(std::string_view key) {
  constexpr std::string_view kKeys[] = {"tracefs.version",
                                        "visibility",
                                        "visibility.invisible",
                                        "os.name",
                                        "os.release",
                                        "host.machine",
                                        "hw.memory_bytes",
                                        "hw.processors",
                                        "hw.processor_model",
                                        "backing.fs_type",
                                        "backing.capacity_bytes",
                                        "backing.free_bytes",
                                        "tracer.state",
                                        "time.zone_offset_s"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

}  // namespace tracefs::anonymize
