// Threads that no signal interrupts.
#pragma once

#include <functional>
#include <thread>

#include "tracefs/base/status.h"

namespace tracefs {

// Makes `thread` one called `name` (15 bytes are all that the kernel keeps; a
// literal) that does `run` with every signal blocked: they are for the threads
// that wait for them, and SIGPIPE is an error of the call that caused it.
// kSystem, and `thread` stays as it was, where the system has no more threads.
Status StartThread(const char* name, std::function<void()> run,
                   std::thread* thread);

}  // namespace tracefs
