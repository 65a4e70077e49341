#include "tracefs/mount/fuse_messages.h"

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "tracefs/base/clock.h"
#include "tracefs/fs/fuse_api.h"

namespace tracefs {
namespace {

constexpr uint64_t kQuietNs = 60 * kNsPerSecond;

struct LastMessage {
  std::mutex mu;
  std::string text;
  uint64_t said_ns = 0;
  uint64_t since = 0;  // how often it came and was not said
};

void Say(fuse_log_level /*level*/, const char* format, va_list values) {
  static LastMessage last;
  std::array<char, 1024> buffer;
  std::vsnprintf(buffer.data(), buffer.size(), format, values);
  const std::string_view text = buffer.data();
  const uint64_t now = MonotonicNs();
  const std::lock_guard lock(last.mu);
  if (text == last.text && now - last.said_ns < kQuietNs) {
    ++last.since;
    return;
  }
  if (last.since != 0) {
    std::fprintf(stderr, "tracefs-mount: that came %ju more times: %s",
                 static_cast<uintmax_t>(last.since), last.text.c_str());
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
  last.text = text;
  last.said_ns = now;
  last.since = 0;
}

}  // namespace

void BoundFuseMessages() { fuse_set_log_func(Say); }

}  // namespace tracefs
