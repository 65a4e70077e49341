// Whether a request took long because its thread lost its processor, and not
// because the store below made it wait: on a busy machine the first is common,
// and handing requests over would only make it busier.
#pragma once

#include <sys/resource.h>

namespace tracefs {

// True if this thread was made to give up its processor (an involuntary context
// switch) since it asked last. One system call: for what took long already.
inline bool LostProcessorSinceAsked() {
  thread_local long last = 0;  // as the kernel begins to count
  struct rusage usage {};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return false;
  const bool lost = usage.ru_nivcsw != last;
  last = usage.ru_nivcsw;
  return lost;
}

}  // namespace tracefs
