// EndNotice: the one line that a client which asked for the end of the mount
// gets when all outputs are complete.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "tracefs/control/handler.h"

namespace tracefs {

// Threads: any.
class EndNotice final : public ControlStream {
 public:
  // Says it, once; nothing follows.
  void Tell(std::string line);

  std::string Take(size_t max) override;
  bool ended() const override;
  void OnMore(std::function<void()> wake) override;

 private:
  mutable std::mutex mu_;
  // Guarded by mu_.
  std::string rest_;
  bool told_ = false;
  std::function<void()> wake_;
};

}  // namespace tracefs
