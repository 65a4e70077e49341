#include "tracefs/fs/closer.h"

#include <utility>

namespace tracefs {

// Nobody waits for it.
class Closer::Task final : public SideTask {
 public:
  explicit Task(Closer& closer) : SideTask(0, 0), closer_(closer) {}
  void Run() override { closer_.CloseAll(); }
  bool CallerIsDying() const override { return false; }
  bool GiveUp() override { return true; }
  void EndUnbegun() override {}
  void Forsake() override {}

 private:
  Closer& closer_;
};

void Closer::Close(SidePool& pool, std::unique_ptr<Handle> handle) {
  std::lock_guard lock(mu_);
  to_close_.push_back(std::move(handle));
  if (!closing_) {
    closing_ = pool.Submit(std::make_shared<Task>(*this), nullptr) ==
               SidePool::Taken::kYes;
  }
}

void Closer::CloseAll() {
  std::unique_lock lock(mu_);
  while (!to_close_.empty()) {
    std::unique_ptr<Handle> next = std::move(to_close_.front());
    to_close_.pop_front();
    lock.unlock();
    next.reset();
    lock.lock();
  }
  closing_ = false;
}

}  // namespace tracefs
