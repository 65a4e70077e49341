#include "tracefs/export/output_buffer.h"

#include <errno.h>
#include <unistd.h>

namespace tracefs {

Status OutputBuffer::Flush() {
  const std::string_view text(begin_.get(),
                              static_cast<size_t>(at_ - begin_.get()));
  at_ = begin_.get();
  if (status_.ok() && !text.empty()) status_ = Emit(text);
  return status_;
}

void OutputBuffer::MakeRoom(size_t n) {
  (void)Flush();  // the error stays in status()
  if (n <= capacity_) return;
  capacity_ = n;
  begin_.reset(new char[n]);
  at_ = begin_.get();
}

Status FdOutput::Emit(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return Status::System(errno, "cannot write the output");
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace tracefs
