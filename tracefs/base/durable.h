// What outlives a loss of power: docs/durability.md has the table. A file that
// was synced is there, but its name only if its folder was synced, too.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// The folder that a path is in.
std::string FolderOfPath(const std::string& path);

// Makes durable what a file or folder holds. Not every file system can; then
// there is nothing more to do. kSystem, with `what`, if it is not on the disk.
Status SyncDescriptor(int fd, std::string_view what);

// Makes names in a folder durable, those that were made, changed and taken
// away. `folder`: any descriptor of it, of O_PATH too.
Status SyncFolder(int folder, std::string_view what);
// The same of the folder that `path` is in.
Status SyncFolderOf(const std::string& path);

}  // namespace tracefs
