// Paths by their text alone; no file system is asked.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// `path` relative to the working directory made absolute, without "." and "..".
std::string AbsolutePath(std::string_view cwd, std::string_view path);

// Whether a relative path leads out of the directory that it begins in.
bool LeadsUpward(std::string_view path);

// What remains of an absolute path below `folder`, with its slash ("/" for the
// folder itself). False, and nothing changed, if it does not lie there.
bool TakeFolder(std::string_view folder, std::string_view* path);

}  // namespace tracefs
