// What libfuse has to say. It goes to standard error, as it does by itself, but
// not the same line for each request: where there can be no more threads, it
// says so with each.
#pragma once

namespace tracefs {

// From now on, in this process: a line that was just said is said once more
// after a minute, with how often it came.
void BoundFuseMessages();

}  // namespace tracefs
