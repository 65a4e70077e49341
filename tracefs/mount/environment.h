// What the header of a trace says about the machine and the mount (FORMAT.md,
// section 5).
#pragma once

#include <string>

#include "tracefs/format/trace_header.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/transport.h"

namespace tracefs {

// What all traces of a mount have in common: version, command line, a few
// variables of the environment, versions of libraries, host, operating system,
// hardware, boot and time zone; path, file-system type, device and capacity of
// the traced directory, on which `source` is open; and what the kernel does not
// report. Anything unknown is left out.
format::TraceHeader CommonHeader(const MountOptions& options, int source);

// "transport=uring,allow_other"
std::string MountOptionsText(const MountOptions& options,
                             const TransportChoice& transport);

}  // namespace tracefs
