#!/usr/bin/env python3
"""Many more files than the daemon may have descriptors.

A tree is walked, read and removed through a mount that may have but a few
descriptors. How much memory each file costs is measured, and bounded. By
default small; --files 1000000 --descriptors 1024 is what is promised.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from tracefs_harness import (  # pylint: disable=wrong-import-position
    Skip, Suite, expect, expect_equal)

IN_A_FOLDER = 1000
# What the daemon needs for itself, whatever the tree: buffers, stacks.
FIXED_BYTES = 16 << 20
BYTES_PER_FILE = 400


def options(parser):
    parser.add_argument("--files", type=int, default=20000, metavar="N")
    parser.add_argument("--descriptors", type=int, default=256, metavar="N")


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_tree(top, count):
    for number in range(count):
        folder = os.path.join(top, f"d{number // IN_A_FOLDER}")
        if number % IN_A_FOLDER == 0:
            os.makedirs(folder)
        with open(os.path.join(folder, f"file-{number}"), "wb") as out:
            if number % 100 == 0:
                out.write(b"%d" % number)


def walk(top):
    """Asks each file for its size; returns how many there are, and bytes."""
    files = size = 0
    for folder, _, names in os.walk(top):
        for name in names:
            size += os.lstat(os.path.join(folder, name)).st_size
            files += 1
    return files, size


def read_some(top, count):
    for number in range(0, count, 100):
        path = os.path.join(top, f"d{number // IN_A_FOLDER}", f"file-{number}")
        with open(path, "rb") as file:
            expect_equal(file.read(), b"%d" % number, path)


def remove(top):
    for folder, folders, names in os.walk(top, topdown=False):
        for name in names:
            os.unlink(os.path.join(folder, name))
        for name in folders:
            os.rmdir(os.path.join(folder, name))


def tree(suite, visibility, transport):
    if transport == "uring":
        why = suite.no_uring()
        if why:
            return Skip(why)
    wanted = suite.options
    base = f"{visibility}-{transport}"
    point = suite.folder(base, "mnt")
    trace = suite.path(base, "trace")
    with suite.tmpfs(base, "source", size="90%") as source:
        make_tree(os.path.join(source, "tree"), wanted.files)
        limit = wanted.descriptors
        # Nothing is recorded, so that the kernel may keep all it wants.
        mount = suite.mount(
            source, point, ("op = statfs", "STR_ALL", f'file = "{trace}"'),
            visibility=visibility, transport=transport,
            wrapper=["prlimit", f"--nofile={limit}:{limit}"])
        before = resident_bytes(mount.pid)
        top = os.path.join(point, "tree")
        expect_equal(walk(top), walk(os.path.join(source, "tree")),
                     "files and bytes")
        each = (resident_bytes(mount.pid) - before) / wanted.files
        read_some(top, wanted.files)
        held = len(os.listdir(f"/proc/{mount.pid}/fd"))
        expect(held <= limit, f"{held} descriptors")
        remove(top)
        expect_equal(os.listdir(source), ["tree"], "what is left")
        mount.unmount()
    if not sanitized(suite):
        expect(each <= BYTES_PER_FILE + FIXED_BYTES / wanted.files,
               f"{each:.0f} bytes for each file")
    return (f"{wanted.files} files, {limit} descriptors, "
            f"{each:.0f} bytes for each file")


def sanitized(suite):
    """Whether memory is the sanitizer's rather than ours."""
    with open(os.path.join(suite.bin, "tracefs-mount"), "rb") as program:
        content = program.read()
    return b"__asan_init" in content or b"__tsan_init" in content


def main():
    suite = Suite("scale", __doc__, options)
    for visibility, transport in (("fast", "uring"), ("auto", "dev")):
        suite.run(f"tree, {visibility} over {transport}", tree, suite,
                  visibility, transport)
    suite.finish()


if __name__ == "__main__":
    main()
