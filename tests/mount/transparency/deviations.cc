// Where the mount differs from the backing directory, and why it must.
#include "tests/mount/transparency/runner.h"

namespace tracefs::transparency {
namespace {

constexpr Deviation kDeviations[] = {
    {"io.pwritev2_noappend",
     "a FUSE write says that the file is open for appending, not that this "
     "one call must not append"},
    {"open.append_taken_back",
     "reads and writes that the kernel passes through go to a file that it "
     "opened with the flags of the open; no one is told when fcntl(F_SETFL) "
     "takes O_APPEND away",
     /*always=*/false},
    {"fresh.mapped_read",
     "where mapped I/O is recorded nobody is told of the mmap(2) itself: a "
     "file "
     "is read when its pages come in",
     /*always=*/false},
    {"fresh.mapped_store",
     "as above: a file is written when its pages go out (msync, munmap, fsync, "
     "close, or the kernel's own time)",
     /*always=*/false},
    {"io.bad_buffers",
     "direct I/O pins the caller's buffer before it asks where the file ends: "
     "EFAULT instead of 0",
     /*always=*/false},
    {"misc.file_handles",
     "files have handles for open_by_handle_at(2) with --handles yes only; "
     "otherwise asking for one says so (EOPNOTSUPP)"},
    {"misc.ioctl_for_the_block_size",
     "the kernel answers by itself, also where the backing file system (an "
     "overlay) would refuse",
     /*always=*/false},
    {"misc.access_to_immutable_file",
     "FUSE has no word for inode flags: the kernel asks its own inode, which "
     "has none; every call that would change the file still fails",
     /*always=*/false},
    {"misc.append_flag_of_append_only_file",
     "as above: O_APPEND can be switched off; writes append all the same",
     /*always=*/false},
    {"misc.append_only_file_is_not_mapped",
     "as above: a shared mapping is not refused; but what is stored to it "
     "never "
     "reaches the file (traps, \"append-only file mapped\"), unless through a "
     "descriptor that is older than chattr +a",
     /*always=*/false},
    {"misc.file_seals",
     "seals belong to tmpfs files; the kernel knows them by their own inode",
     /*always=*/false},
    {"misc.fiemap", "the kernel asks no FUSE daemon for extents",
     /*always=*/false},
    {"space.fallocate_collapse", "the kernel passes no such request on",
     /*always=*/false},
    {"space.fallocate_insert", "the kernel passes no such request on",
     /*always=*/false},
    {"space.fallocate_unshare", "the kernel passes no such request on",
     /*always=*/false},
    {"space.refused_fallocate_of_a_setid_file",
     "the kernel has the bits cleared (SETATTR) before it asks for the space, "
     "which a file system that lacks the mode then refuses",
     /*always=*/false},
    {"attr.root_writes_to_what_became_setid",
     "the kernel passes all writes through with one set of credentials, of "
     "which it must not know whether the writer may keep the bits: they clear "
     "them. (An open that finds the bits has its writes sent to us.)",
     /*always=*/false},
    {"misc.reflink",
     "the kernel knows no clones of FUSE files (EOPNOTSUPP); copy_file_range "
     "is "
     "passed on and shares blocks",
     /*always=*/false},
    {"io.seek_behind_the_largest_file",
     "the kernel takes all of FUSE's files for as large as files can be",
     /*always=*/false},
};

}  // namespace

std::span<const Deviation> Deviations() { return kDeviations; }

}  // namespace tracefs::transparency
