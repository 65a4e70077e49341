#include "tracefs/fs/handed_request.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "tracefs/base/unique_fd.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/fs/op_scope.h"

namespace tracefs {

thread_local constinit HandedRequest* HandedRequest::current_ = nullptr;

Interruptible*& InterruptHandler() {
  static Interruptible* handler = nullptr;
  return handler;
}

HandedRequest::HandedRequest(fuse_req_t req, FileSystem& fs, Op op,
                             const Event* about, bool before_told, size_t bytes,
                             std::function<void()> handler)
    : SideTask(RequestSource::OfThread().unique, fuse_req_ctx(req)->uid, bytes),
      req_(req),
      fs_(fs),
      op_(op),
      context_(*fuse_req_ctx(req)),
      begin_ns_(about == nullptr ? 0 : about->Get(Field::kTime)),
      before_told_(before_told),
      handler_(std::move(handler)),
      replies_(RequestSource::OfThread().replies) {
  if (about == nullptr) return;
  operands_.emplace(*about);
  parked_.emplace(fs_.sink(), begin_ns_);
}

void HandedRequest::Run() {
  // Forsaken before this thread got a processor: the request may be gone.
  if (answered_.load()) return;
  current_ = this;
  if (fs_.area() != nullptr) fs_.area()->Begin(unique());
  handler_();
  current_ = nullptr;
  // It cannot be given up any more: it is answered.
  for (const Handle* handle : handles_) {
    if (handle->LeaveAsLast()) {
      fs_.CloseAside(std::unique_ptr<Handle>(const_cast<Handle*>(handle)));
    }
  }
  for (Inode* inode : inodes_) fs_.inodes().Unretain(*inode);
}

void HandedRequest::Pin(Inode& inode) {
  fs_.inodes().Retain(inode);
  inodes_.push_back(&inode);
  pinned_.store(true);
}

void HandedRequest::Pin(const Handle& handle) {
  handle.Enter();
  handles_.push_back(&handle);
  Pin(handle.inode);
}

int HandedRequest::Answer(const std::function<int()>& reply) {
  if (answered_.exchange(true)) return -ENOENT;
  return replies_ == nullptr ? reply() : replies_->Run(reply);
}

bool HandedRequest::GiveUp() {
  if (!pinned_.load()) return false;
  Answer([this] { return fuse_reply_err(req_, EINTR); });
  return true;
}

void HandedRequest::EndUnbegun() {
  current_ = this;
  {
    OpScope op(req_, op_);
    if (operands_) op.Restore(*operands_);
    op.ReplyError(EINTR);
  }
  current_ = nullptr;
}

// The kernel queues a SIGKILL for each thread of a process that a signal is
// going to end.
bool HandedRequest::CallerIsDying() const {
  if (context_.pid == 0) return false;
  const std::string path = std::to_string(context_.pid) + "/status";
  const UniqueFd file(::openat(fs_.proc(), path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  std::array<char, 4096> text;
  const ssize_t n = ::read(file.get(), text.data(), text.size() - 1);
  if (n <= 0) return false;
  text[static_cast<size_t>(n)] = '\0';
  constexpr std::string_view kPending = "\nSigPnd:\t";
  const size_t at = std::string_view(text.data()).find(kPending);
  if (at == std::string_view::npos) return false;
  const uint64_t pending =
      std::strtoull(text.data() + at + kPending.size(), nullptr, 16);
  return (pending & (uint64_t{1} << (SIGKILL - 1))) != 0;
}

}  // namespace tracefs
