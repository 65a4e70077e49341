"""The operations whose cost to the daemon is looked at, one kind at a time.

Each case does one thing with `count` files that nobody has touched yet, so that
what the kernel has kept does not change which requests come. The files are made
below the mount, before it is there.
"""

import contextlib
import dataclasses
import fcntl
import os
import struct
import time
from typing import Callable

FS_IOC_GETFLAGS = 0x80086601
# Longer than the kernel keeps what it was told of untraced files.
KEPT_S = 1.1
USERS = (1000, 1001)


@dataclasses.dataclass(frozen=True)
class Case:
    """`run(place, i)` is called for each i below place.count; `rows`: what it
    is about, by the kind of request (linux/fuse.h) that the row counts.
    `rest_s`: before it begins, so that the kernel has to ask again."""
    name: str
    rows: dict
    run: Callable
    rest_s: float = 0


class Place:
    """The files of one run, and the descriptors that cases leave for later
    ones."""

    FILES = ("look", "read", "write", "cut", "set", "gone", "old")

    def __init__(self, below, count):
        self.below = below
        self.count = count
        self.point = None  # where it is mounted
        self.fds = {}
        for kind in self.FILES:
            for i in range(count):
                with open(f"{below}/{kind}{i}", "wb") as file:
                    file.write(b"x" * 8192)
        for i in range(count):
            os.mkdir(f"{below}/dir{i}")
            os.mkdir(f"{below}/empty{i}")
            with open(f"{below}/dir{i}/one", "wb"):
                pass
            os.symlink("target", f"{below}/symlink{i}")
        os.mkdir(f"{below}/users", 0o755)
        os.chmod(f"{below}/users", 0o1777)

    def at(self, kind, i):
        return f"{self.point}/{kind}{i}"

    def open(self, kind, i, flags):
        self.fds[kind, i] = os.open(self.at(kind, i), flags, 0o600)

    def fd(self, kind, i):
        return self.fds[kind, i]

    def close(self, kind, i):
        os.close(self.fds.pop((kind, i)))

    def close_all(self):
        for fd in self.fds.values():
            os.close(fd)
        self.fds.clear()


def _missing(place, i):
    with contextlib.suppress(FileNotFoundError):
        os.stat(place.at("missing", i))


def _no_xattr(place, i):
    with contextlib.suppress(OSError):
        os.getxattr(place.at("set", i), "user.none")


def _create_by_turns(place, i):
    """As callers of two users who take turns."""
    os.seteuid(USERS[i % 2])
    try:
        place.fds["turn", i] = os.open(f"{place.point}/users/turn{i}",
                                       os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    finally:
        os.seteuid(0)


def _create_by_user(place, i):
    """As a caller who is not root and stays the same."""
    os.seteuid(USERS[0])
    try:
        place.fds["own", i] = os.open(f"{place.point}/users/own{i}",
                                      os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    finally:
        os.seteuid(0)


def _unlink_by_user(place, i):
    os.seteuid(USERS[0])
    try:
        os.unlink(f"{place.point}/users/own{i}")
    finally:
        os.seteuid(0)


def _flags(place, i):
    fcntl.ioctl(place.fd("look", i), FS_IOC_GETFLAGS, struct.pack("l", 0))


def _list(place, i):
    with os.scandir(place.at("dir", i)) as entries:
        list(entries)


def _tmpfile(place, i):
    place.fds["tmp", i] = os.open(place.point, os.O_TMPFILE | os.O_RDWR)


RDWR = os.O_RDWR
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL

# In this order: what a later one needs an earlier one leaves.
CASES = (
    Case("lookup of a new name", {"": "LOOKUP"},
         lambda p, i: os.stat(p.at("look", i))),
    Case("lookup of a known name", {"": "LOOKUP"},
         lambda p, i: os.stat(p.at("look", i)), rest_s=KEPT_S),
    Case("lookup of a missing name", {"": "LOOKUP"}, _missing),
    Case("open to read", {"": "OPEN"},
         lambda p, i: p.open("look", i, os.O_RDONLY)),
    Case("getattr", {"": "GETATTR"},
         lambda p, i: os.fstat(p.fd("look", i)), rest_s=KEPT_S),
    Case("read", {"": "READ"},
         lambda p, i: os.pread(p.fd("look", i), 4096, 0)),
    Case("lseek to data", {"": "LSEEK"},
         lambda p, i: os.lseek(p.fd("look", i), 1, os.SEEK_DATA)),
    Case("ioctl", {"": "IOCTL"}, _flags),
    Case("release of a reader", {"": "RELEASE", "flush": "FLUSH"},
         lambda p, i: p.close("look", i)),
    Case("open to read and write", {"": "OPEN"},
         lambda p, i: p.open("write", i, RDWR)),
    Case("write", {"": "WRITE"},
         lambda p, i: os.pwrite(p.fd("write", i), b"y" * 4096, 0)),
    Case("fsync", {"": "FSYNC"}, lambda p, i: os.fsync(p.fd("write", i))),
    Case("fallocate", {"": "FALLOCATE"},
         lambda p, i: os.posix_fallocate(p.fd("write", i), 0, 16384)),
    Case("truncate an open file", {"": "SETATTR"},
         lambda p, i: os.ftruncate(p.fd("write", i), 100)),
    Case("release of a writer", {"": "RELEASE"},
         lambda p, i: p.close("write", i)),
    Case("open to truncate", {"": "OPEN"},
         lambda p, i: p.open("cut", i, os.O_WRONLY | os.O_TRUNC)),
    Case("truncate by name", {"": "SETATTR"},
         lambda p, i: os.truncate(p.at("cut", i), 50)),
    Case("chmod", {"": "SETATTR"},
         lambda p, i: os.chmod(p.at("set", i), 0o640)),
    Case("chown", {"": "SETATTR"},
         lambda p, i: os.chown(p.at("set", i), 0, 0)),
    Case("utimes", {"": "SETATTR"},
         lambda p, i: os.utime(p.at("set", i), (1, 1))),
    Case("setxattr", {"": "SETXATTR"},
         lambda p, i: os.setxattr(p.at("set", i), "user.a", b"1")),
    Case("getxattr", {"": "GETXATTR"},
         lambda p, i: os.getxattr(p.at("set", i), "user.a")),
    Case("getxattr of a missing one", {"": "GETXATTR"}, _no_xattr),
    Case("listxattr", {"": "LISTXATTR"},
         lambda p, i: os.listxattr(p.at("set", i))),
    Case("removexattr", {"": "REMOVEXATTR"},
         lambda p, i: os.removexattr(p.at("set", i), "user.a")),
    Case("readlink", {"": "READLINK"},
         lambda p, i: os.readlink(p.at("symlink", i))),
    Case("list a directory",
         {"opendir": "OPENDIR", "readdir": "READDIR",
          "readdirplus": "READDIRPLUS", "releasedir": "RELEASEDIR"}, _list),
    Case("statfs", {"": "STATFS"}, lambda p, i: os.statvfs(p.point)),
    Case("mkdir", {"": "MKDIR"}, lambda p, i: os.mkdir(p.at("made", i))),
    Case("mknod", {"": "MKNOD"},
         lambda p, i: os.mknod(p.at("node", i), 0o100600)),
    Case("symlink", {"": "SYMLINK"},
         lambda p, i: os.symlink("to", p.at("link", i))),
    Case("create", {"": "CREATE"}, lambda p, i: p.open("fresh", i, NEW)),
    Case("write to a new file", {"": "WRITE", "getxattr": "GETXATTR"},
         lambda p, i: os.write(p.fd("fresh", i), b"z" * 4096)),
    Case("release of a new file", {"": "RELEASE"},
         lambda p, i: p.close("fresh", i)),
    Case("create as a user", {"": "CREATE"}, _create_by_user),
    Case("create by two users in turn", {"": "CREATE"}, _create_by_turns),
    Case("tmpfile", {"": "TMPFILE"}, _tmpfile),
    Case("unlink", {"": "UNLINK", "forget": "FORGET",
                    "forgets": "BATCH_FORGET"},
         lambda p, i: os.unlink(p.at("fresh", i))),
    Case("unlink as a user", {"": "UNLINK"}, _unlink_by_user),
    Case("rename", {"": "RENAME"},
         lambda p, i: os.rename(p.at("gone", i), p.at("moved", i))),
    Case("rename over a file", {"": "RENAME"},
         lambda p, i: os.rename(p.at("moved", i), p.at("old", i))),
    Case("rmdir", {"": "RMDIR"}, lambda p, i: os.rmdir(p.at("empty", i))),
    # Last: that there are files with two names changes what others cost.
    Case("link", {"": "LINK"},
         lambda p, i: os.link(p.at("set", i), p.at("second", i))),
    Case("unlink where there are hard links", {"": "UNLINK"},
         lambda p, i: os.unlink(p.at("second", i))),
)


def row_name(case, key):
    return f"{case.name}: {key}" if key else case.name


def run(place, rest_s, count=None, only=None):
    """Runs all cases; [(case, begin, end)], times as time.time() has them.
    `rest_s`: before and after each, for requests that nobody waits for."""
    phases = []
    for case in CASES:
        time.sleep(max(case.rest_s, rest_s))
        begin = time.time()
        for i in range(count or place.count):
            case.run(place, i)
        time.sleep(rest_s)
        if only is None or case.name in only:
            phases.append((case, begin, time.time()))
    return phases
