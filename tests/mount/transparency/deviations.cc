// Where the mount differs from the backing directory, and why it must.
#include "tests/mount/transparency/runner.h"

namespace tracefs::transparency {
namespace {

constexpr Deviation kDeviations[] = {
    {"special.open_device_nodes",
     "mounts are nodev unless asked otherwise (fuse(8), -o dev)"},
    {"exec.setuid_program",
     "mounts are nosuid unless asked otherwise (fuse(8), -o suid)"},
    {"io.pwritev2_noappend",
     "a FUSE write says that the file is open for appending, not that this "
     "one call must not append"},
    {"io.bad_buffers",
     "direct I/O pins the caller's buffer before it asks where the file ends: "
     "EFAULT instead of 0",
     /*always=*/false},
};

}  // namespace

std::span<const Deviation> Deviations() { return kDeviations; }

}  // namespace tracefs::transparency
