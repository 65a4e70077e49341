// Threads that no signal interrupts.
#pragma once

#include <functional>
#include <thread>

namespace tracefs {

// A thread called `name` (15 bytes are all that the kernel keeps; a literal)
// that does `run` with every signal blocked: they are for the threads that wait
// for them, and SIGPIPE is an error of the call that caused it.
std::thread StartThread(const char* name, std::function<void()> run);

}  // namespace tracefs
