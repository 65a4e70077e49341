// Reads what files are now, for traces that are to be replayed (STR_REPLAY):
// one by its descriptor, or all those that a trace has touched.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "tracefs/base/unique_fd.h"
#include "tracefs/event/file_state.h"

namespace tracefs {

// `fd`: an O_PATH descriptor; `proc_self_fd`: /proc/self/fd. False if not even
// its attributes can be had. Waits for nothing but metadata of that file.
bool ReadFileState(int proc_self_fd, int fd, FileState* state);

// CRC-32C of a regular file of at most `most` bytes. Nothing if it is longer,
// is no regular file, cannot be read, or may have been changed meanwhile.
std::optional<uint32_t> StableChecksum(int proc_self_fd, int fd, uint64_t most);

// Calls `visit(path, state)` for everything in the tree below `root` that is
// `touched` by its inode number, parents first, on the file system of `root`
// only; goes into directories that are touched. `contents`: reads regular
// files, for their checksum.
void WalkTouched(UniqueFd root, int proc_self_fd,
                 const std::function<bool(uint64_t inode)>& touched,
                 bool contents,
                 const std::function<void(std::string_view path,
                                          const FileState& state)>& visit);

}  // namespace tracefs
