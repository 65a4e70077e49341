// A replay that is told to end (SIGINT, SIGTERM, SIGHUP) ends cleanly: what it
// has made is still private, and is removed.
#pragma once

#include <mutex>
#include <set>
#include <thread>

#include "tracefs/replay/player.h"

namespace tracefs::replay {

// One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();

  static bool Happened();

  // While it lives, the player is stopped when it happens.
  class Watching {
   public:
    Watching(Interruption* all, Player* player);
    ~Watching();

   private:
    Interruption* const all_;
    Player* const player_;
  };

 private:
  std::mutex mutex_;
  std::set<Player*> players_;  // guarded by mutex_
  std::jthread watcher_;
};

}  // namespace tracefs::replay
