// Closer: closes handles where that may take forever. One thread of the side
// pool closes all of them, so that those that hang do not fill the pool.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "tracefs/fs/handle.h"
#include "tracefs/fs/side_pool.h"

namespace tracefs {

// Threads: any. Lives as long as threads of the pool do.
class Closer {
 public:
  // `pool`: has been started, and is the same each time.
  void Close(SidePool& pool, std::unique_ptr<Handle> handle);

 private:
  class Task;
  void CloseAll();

  std::mutex mu_;
  std::deque<std::unique_ptr<Handle>> to_close_;  // guarded by mu_
  bool closing_ = false;                          // the same
};

}  // namespace tracefs
