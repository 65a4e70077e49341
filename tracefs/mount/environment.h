// What the header of a trace says of the machine and the mount (FORMAT.md,
// section 5).
#ifndef TRACEFS_MOUNT_ENVIRONMENT_H_
#define TRACEFS_MOUNT_ENVIRONMENT_H_

#include <string>

#include "tracefs/format/trace_header.h"

namespace tracefs {

// Adds version, host, operating system, hardware, boot and time zone. What
// cannot be found out is left out.
void DescribeMachine(format::TraceHeader* header);

// Adds path, file-system type, device and capacity of the traced directory;
// `fd` is open on it.
void DescribeBacking(const std::string& path, int fd,
                     format::TraceHeader* header);

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_ENVIRONMENT_H_
