#include "tracefs/command/progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/file_io.h"
#include "tracefs/reader/trace_files.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

constexpr uint64_t kPauseNs = 200 * kNsPerMs;
constexpr char kClearLine[] = "\r\033[K";

std::string Left(uint64_t seconds) {
  if (seconds < 100) return std::to_string(seconds) + " s";
  if (seconds < 100 * 60) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds / 3600) + " h";
}

void Say(const std::string& text) {
  // There is nobody to tell if this fails.
  static_cast<void>(WriteAll(STDERR_FILENO, AsBytes(text), {}));
}

}  // namespace

std::string ProgressText(uint64_t done_bytes, uint64_t all_bytes,
                         uint64_t elapsed_ns) {
  done_bytes = std::min(done_bytes, all_bytes);
  const double share = all_bytes == 0 ? 1
                                      : static_cast<double>(done_bytes) /
                                            static_cast<double>(all_bytes);
  std::array<char, 16> percent;
  snprintf(percent.data(), percent.size(), "%4.0f %%", share * 100);
  std::string text = percent.data();
  text += " of " + SizeText(all_bytes);
  if (share > 0 && elapsed_ns >= kNsPerSecond) {
    const double left = static_cast<double>(elapsed_ns) * (1 - share) / share;
    text +=
        ", " + Left(static_cast<uint64_t>(left / kNsPerSecond + 0.5)) + " left";
  }
  return text;
}

Progress::Progress(const std::vector<std::string>& traces)
    : shown_(::isatty(STDERR_FILENO) == 1 && !traces.empty()),
      begin_ns_(MonotonicNs()),
      next_ns_(begin_ns_ + kNsPerSecond) {
  if (!shown_) return;
  std::vector<std::string> paths;
  for (const std::string& trace : traces) {
    if (!AddFiles(trace, &paths).ok()) shown_ = false;
  }
  for (const std::string& path : paths) {
    struct stat st = {};
    if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) {
      shown_ = false;
      return;
    }
    all_bytes_ += static_cast<uint64_t>(st.st_size);
  }
}

Progress::~Progress() { Hide(); }

void Progress::Hide() {
  if (told_) Say(kClearLine);
  told_ = false;
}

void Progress::Tell(uint64_t done_bytes) {
  if (!shown_) return;
  const uint64_t now = MonotonicNs();
  if (now < next_ns_) return;
  next_ns_ = now + kPauseNs;
  told_ = true;
  Say(kClearLine + ProgressText(done_bytes, all_bytes_, now - begin_ns_));
}

}  // namespace tracefs
