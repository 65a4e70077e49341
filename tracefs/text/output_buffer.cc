#include "tracefs/text/output_buffer.h"

#include <errno.h>

#include "tracefs/base/file_io.h"

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
  return WriteAll(fd_, AsBytes(text), "cannot write the output");
}

}  // namespace tracefs
