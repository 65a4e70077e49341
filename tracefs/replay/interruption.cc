#include "tracefs/replay/interruption.h"

#include <signal.h>

#include <atomic>
#include <chrono>

#include "tracefs/base/thread.h"

namespace tracefs::replay {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<bool> happened = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void Note(int) { happened = true; }

}  // namespace

Interruption::Interruption()
    : watcher_([this](const std::stop_token& end) {
        while (!end.stop_requested()) {
          if (happened) {
            const std::lock_guard lock(mutex_);
            for (Player* const player : players_) player->Stop();
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
      }) {
  struct sigaction action {};
  action.sa_handler = &Note;
  for (const int number : kSignals) {
    struct sigaction was;
    // Who ignores it (nohup) goes on doing so.
    if (::sigaction(number, nullptr, &was) == 0 && was.sa_handler != SIG_IGN) {
      ::sigaction(number, &action, nullptr);
    }
  }
}

Interruption::~Interruption() { watcher_.request_stop(); }

bool Interruption::Happened() { return happened; }

Interruption::Watching::Watching(Interruption* all, Player* player)
    : all_(all), player_(player) {
  const std::lock_guard lock(all_->mutex_);
  all_->players_.insert(player_);
}

Interruption::Watching::~Watching() {
  const std::lock_guard lock(all_->mutex_);
  all_->players_.erase(player_);
}

}  // namespace tracefs::replay
