// --wait: a trace is complete when its writer has let go of it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace tracefs {

// Returns when nobody writes the files and folders of `names` any more, as far
// as that can be seen (tracefs/base/writer_lock.h); false if `stop`, which may
// be null, was set before. `tell` is called once, with one line, if there is
// something to wait for. What is not there, or is not a file, is not waited
// for.
bool WaitForWriters(const std::vector<std::string>& names,
                    const std::function<void(const std::string&)>& tell,
                    const std::atomic<bool>* stop);

}  // namespace tracefs
