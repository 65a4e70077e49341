// What libfuse does not reveal about a request: its number, by which the kernel
// says later that its caller has been interrupted, and its queue, to learn
// whether callers take turns there.
//
// libfuse's own mechanism for this costs each request a lock and a list
// operation, and does not work over io_uring. Here requests are inspected on
// their way into libfuse: the linker redirects its calls here (--wrap), which
// needs the static library. Sources: linux/include/uapi/linux/fuse.h; libfuse,
// lib/fuse_lowlevel.c.
#include <linux/fuse.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tracefs/fs/handed_request.h"
#include "tracefs/mount/served_requests.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's.
extern "C" {

struct fuse_req;
struct fuse_chan;

void __real_fuse_session_process_buf_internal(fuse_session* session,
                                              const fuse_buf* buffer,
                                              fuse_chan* channel);

void __wrap_fuse_session_process_buf_internal(fuse_session* session,
                                              const fuse_buf* buffer,
                                              fuse_chan* channel) {
  fuse_in_header header{};
  if ((buffer->flags & FUSE_BUF_IS_FD) == 0 && buffer->size >= sizeof header) {
    std::memcpy(&header, buffer->mem, sizeof header);
  }
  uint64_t interrupted;
  if (header.opcode == FUSE_INTERRUPT &&
      buffer->size >= sizeof header + sizeof interrupted) {
    std::memcpy(&interrupted,
                static_cast<const char*>(buffer->mem) + sizeof header,
                sizeof interrupted);
    if (tracefs::InterruptHandler() != nullptr &&
        tracefs::InterruptHandler()->Interrupt(interrupted)) {
      return;  // no answer is expected
    }
  }
  tracefs::RequestSource::OfThread().unique = header.unique;
  __real_fuse_session_process_buf_internal(session, buffer, channel);
}

#if TRACEFS_HAVE_FUSE_URING
void __real_fuse_session_process_uring_cqe(fuse_session* session,
                                           fuse_req* request, void* header,
                                           void* op_in, void* payload,
                                           size_t size);

void __wrap_fuse_session_process_uring_cqe(fuse_session* session,
                                           fuse_req* request, void* header,
                                           void* op_in, void* payload,
                                           size_t size) {
  const auto* const in = static_cast<const fuse_in_header*>(header);
  tracefs::RequestSource::OfThread().unique = in->unique;
  tracefs::ServedRequests::Queues().Note(in->pid);
  __real_fuse_session_process_uring_cqe(session, request, header, op_in,
                                        payload, size);
}
#endif

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
