// How libfuse's rings are set up: it asks for rings whose completions interrupt
// their thread wherever it is. A thread that serves FUSE waits in
// io_uring_enter(2) anyway, and there it can run them itself (DEFER_TASKRUN,
// which needs to know that nobody else submits): 4 % of the time of Postmark.
//
// The linker leads libfuse's calls of io_uring_queue_init_params() here
// (--wrap); there are no others in this program. Nothing may answer a request
// of a ring from another thread, which libfuse does not allow either (its issue
// 1443).
// Sources: io_uring_setup(2); libfuse, lib/fuse_uring.c.
#include <liburing.h>

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's.
int __real_io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                      io_uring_params* params);

int __wrap_io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                      io_uring_params* params) {
  io_uring_params deferred = *params;
  deferred.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const int result =
      __real_io_uring_queue_init_params(entries, ring, &deferred);
  if (result == 0) {
    *params = deferred;
    return 0;
  }
  // A kernel without it (it came with Linux 6.1) says EINVAL.
  return __real_io_uring_queue_init_params(entries, ring, params);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
