#include "tracefs/mount/end_notice.h"

#include <utility>

namespace tracefs {

void EndNotice::Tell(std::string line) {
  std::lock_guard lock(mu_);
  if (std::exchange(told_, true)) return;
  rest_ = std::move(line);
  if (wake_) wake_();
}

std::string EndNotice::Take(size_t max) {
  std::lock_guard lock(mu_);
  std::string taken = rest_.substr(0, max);
  rest_.erase(0, taken.size());
  return taken;
}

bool EndNotice::ended() const {
  std::lock_guard lock(mu_);
  return told_;
}

void EndNotice::OnMore(std::function<void()> wake) {
  std::lock_guard lock(mu_);
  wake_ = std::move(wake);
  if (told_) wake_();
}

}  // namespace tracefs
