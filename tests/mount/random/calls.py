#!/usr/bin/env python3
"""calls.py DIR SEED COUNT: COUNT random calls in DIR, as changing users, and a
line for the result of each; then the tree that is left. What is done depends on
the seed and on results only, so that two directories that behave alike give the
same lines.

DIR becomes the root directory of this process: no name leads out of it.

Left out is what a mount is known to do otherwise (the transparency suite says
why, tests/mount/transparency/deviations.cc): device nodes, O_APPEND taken back,
chown of nothing, privileged writes to set-user-id files and fallocate of them;
what file systems are free to answer: offsets in directories, a copy of a file
onto itself, where a hole is that was mapped; and what waits for others: FIFOs.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import stat
import struct
import sys
import zlib

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
# uid, gid, groups
USERS = [(0, 0, []), (65534, 65534, []), (61001, 61001, [61002]),
         (61003, 61002, [])]
SET_ID = stat.S_ISUID | stat.S_ISGID
ATTRIBUTES = ["user.a", "user.b", "trusted.a", "security.x",
              "system.posix_acl_access", "system.posix_acl_default", "bad",
              "user."]
NO_ID = 0xffffffff
# linux/posix_acl_xattr.h: version; tag, permissions, id
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry) for entry in (
        (1, 7, NO_ID), (2, 5, 61001), (4, 5, NO_ID), (16, 7, NO_ID),
        (32, 0, NO_ID)))


class Nothing(Exception):
    """The call is left out, or there is nothing to do it with."""


def call(name, *arguments):
    ctypes.set_errno(0)
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def brief(status):
    """What must be equal; times and numbers cannot."""
    return (oct(status.st_mode), status.st_nlink, status.st_uid, status.st_gid,
            None if stat.S_ISDIR(status.st_mode) else status.st_size)


def content(data):
    return len(data), zlib.crc32(data)


class Calls:
    """One method for each call, named do_…; `chance` decides all arguments."""

    SLOTS = 8

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.open = {}  # slot: descriptor
        self.user = 0
        self.calls = [getattr(self, name) for name in sorted(dir(self))
                      if name.startswith("do_")]
        often = (self.do_open, self.do_write, self.do_pwrite, self.do_mkdir)
        self.weights = [4 if one in often else 1 for one in self.calls]

    # --- arguments

    def one_of(self, *values):
        return self.chance.choice(values)

    def often(self, probability):
        return self.chance.random() < probability

    def path(self):
        path = "/".join(self.one_of(*"abcdef")
                        for _ in range(self.one_of(1, 1, 2, 2, 3)))
        if self.often(0.03):
            path += "/"
        if self.often(0.03):
            path = self.one_of(".", "..", "a/..", "./a", "", "x" * 255,
                               "x" * 256)
        return path

    def descriptor(self):
        if not self.open:
            raise Nothing
        return self.open[self.chance.choice(list(self.open))]

    def written(self):
        """A descriptor that this user may be seen to write to."""
        fd = self.descriptor()
        if self.user == 0 and os.fstat(fd).st_mode & SET_ID:
            raise Nothing
        return fd

    def data(self):
        return (bytes([self.chance.randrange(256)])
                * self.one_of(1, 10, 100, 4096, 5000, 70000))

    def offset(self):
        return self.one_of(0, 1, 100, 4095, 4096, 8192, 100000)

    def length(self):
        return self.one_of(1, 100, 4096, 100000)

    def owners(self):
        ids = [-1, 0, 65534, 61001, 61002, 61003]
        owners = self.one_of(*ids), self.one_of(*ids)
        if owners == (-1, -1):
            raise Nothing
        return owners

    def keep(self, fd):
        slot = self.chance.randrange(self.SLOTS)
        if slot in self.open:
            os.close(self.open[slot])
        self.open[slot] = fd

    # --- open files

    def do_open(self):
        flags = self.one_of(os.O_RDONLY, os.O_WRONLY, os.O_RDWR)
        for flag, probability in (
                (os.O_CREAT, 0.5), (os.O_EXCL, 0.15), (os.O_TRUNC, 0.2),
                (os.O_APPEND, 0.2), (os.O_DIRECTORY, 0.08),
                (os.O_NOFOLLOW, 0.15), (os.O_PATH, 0.05), (os.O_SYNC, 0.05),
                (os.O_NOATIME, 0.05), (os.O_DIRECT, 0.04)):
            if self.often(probability):
                flags |= flag
        if self.often(0.04):
            flags = flags & ~os.O_CREAT | os.O_TMPFILE
        fd = os.open(self.path(), flags, self.one_of(
            0o644, 0o600, 0o666, 0o777, 0o4755, 0o2755, 0o2644, 0, 0o400,
            0o222))
        self.keep(fd)
        return (brief(os.fstat(fd)),
                fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_LARGEFILE)

    def do_close(self):
        if not self.open:
            raise Nothing
        os.close(self.open.pop(self.chance.choice(list(self.open))))

    def do_dup(self):
        self.keep(os.dup(self.descriptor()))

    def do_set_flags(self):
        fd = self.descriptor()
        flags = self.one_of(os.O_APPEND, os.O_NONBLOCK, 0,
                            os.O_APPEND | os.O_NOATIME)
        flags |= fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        fcntl.fcntl(fd, fcntl.F_SETFL, flags)
        return fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_LARGEFILE

    def do_read(self):
        return content(os.read(self.descriptor(), self.length()))

    def do_pread(self):
        return content(os.pread(self.descriptor(), self.length(),
                                self.offset()))

    def do_write(self):
        return os.write(self.written(), self.data())

    def do_pwrite(self):
        return os.pwrite(self.written(), self.data(), self.offset())

    def do_lseek(self):
        fd = self.descriptor()
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise Nothing
        return os.lseek(fd, self.offset(), self.one_of(
            os.SEEK_SET, os.SEEK_CUR, os.SEEK_END))

    def do_ftruncate(self):
        os.ftruncate(self.written(), self.offset())

    def do_fallocate(self):
        fd = self.descriptor()
        if os.fstat(fd).st_mode & SET_ID:
            raise Nothing
        # Modes: KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE.
        return call("fallocate", fd, self.one_of(0, 1, 3, 16, 17, 2),
                    ctypes.c_long(self.offset()),
                    ctypes.c_long(self.one_of(0, 1, 4096, 10000)))

    def do_copy_file_range(self):
        source, target = self.descriptor(), self.written()
        return call("copy_file_range", source, None, target, None,
                    ctypes.c_size_t(self.one_of(0, 10, 5000)), 0)

    def do_sendfile(self):
        target, source = self.written(), self.descriptor()
        if os.fstat(target).st_ino == os.fstat(source).st_ino:
            raise Nothing
        return os.sendfile(target, source, self.offset(), 1000)

    def do_mmap(self):
        fd = self.written()
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
            raise Nothing
        writes = self.often(0.5)
        size = min(status.st_size, 40000)
        at = self.chance.randrange(size)
        with mmap.mmap(fd, size,
                       flags=self.one_of(mmap.MAP_SHARED, mmap.MAP_PRIVATE),
                       prot=mmap.PROT_READ | (writes and mmap.PROT_WRITE)
                       ) as mapped:
            seen = content(mapped[at:at + 100])
            if writes:
                mapped[at:at + 1] = b"M"
                # Seen by read(2) and by stat(2) of the size at once.
                seen = content(os.pread(fd, 100, at)), os.fstat(fd).st_size
                if self.often(0.3):
                    mapped.flush()
        return seen

    def do_fsync(self):
        self.one_of(os.fsync, os.fdatasync)(self.descriptor())

    def do_flock(self):
        fcntl.flock(self.descriptor(), fcntl.LOCK_NB | self.one_of(
            fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN))

    def do_posix_lock(self):
        kind = self.one_of(fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN)
        if kind != fcntl.LOCK_UN:
            kind |= fcntl.LOCK_NB
        fcntl.lockf(self.descriptor(), kind, 10, self.offset())

    def do_fstat(self):
        return brief(os.fstat(self.descriptor()))

    def do_fchmod(self):
        os.fchmod(self.descriptor(), self.one_of(0o644, 0o4755, 0o2777, 0))

    def do_fchown(self):
        os.fchown(self.descriptor(), *self.owners())

    def do_fgetxattr(self):
        return content(os.getxattr(self.descriptor(),
                                   self.one_of(*ATTRIBUTES)))

    # --- names

    def do_stat(self):
        return brief(os.stat(self.path()))

    def do_lstat(self):
        return brief(os.lstat(self.path()))

    def do_access(self):
        return os.access(self.path(), self.chance.randrange(8),
                         effective_ids=self.often(0.5))

    def do_fstatat(self):
        folder = os.open(self.path(), os.O_RDONLY | os.O_DIRECTORY)
        try:
            return brief(os.stat(self.one_of(*"abcdef"), dir_fd=folder,
                                 follow_symlinks=False))
        finally:
            os.close(folder)

    def do_read_whole(self):
        with open(self.path(), "rb", buffering=0) as file:
            return content(file.read(300000))

    def do_list(self):
        return sorted(os.listdir(self.path()))

    def do_mkdir(self):
        os.mkdir(self.path(),
                 self.one_of(0o755, 0o777, 0o700, 0o1777, 0o2775, 0))

    def do_mknod(self):
        os.mknod(self.path(), self.one_of(stat.S_IFREG, stat.S_IFSOCK, 0)
                 | self.one_of(0o644, 0o600, 0o777))

    def do_rmdir(self):
        os.rmdir(self.path())

    def do_unlink(self):
        os.unlink(self.path())

    def do_rename(self):
        os.rename(self.path(), self.path())

    def do_renameat2(self):
        # Flags: NOREPLACE, EXCHANGE.
        return call("renameat2", AT_FDCWD, self.path().encode(), AT_FDCWD,
                    self.path().encode(), self.one_of(0, 1, 2, 3))

    def do_link(self):
        os.link(self.path(), self.path(), follow_symlinks=self.often(0.3))

    def do_symlink(self):
        os.symlink(self.one_of(self.path(), "/a/b", "nowhere", "x" * 4000),
                   self.path())

    def do_readlink(self):
        return os.readlink(self.path())

    def do_truncate(self):
        path = self.path()
        if self.user == 0 and os.stat(path).st_mode & SET_ID:
            raise Nothing
        os.truncate(path, self.offset())

    def do_chmod(self):
        os.chmod(self.path(), self.one_of(
            0o644, 0o600, 0o777, 0o4755, 0o2755, 0o6777, 0o2666, 0, 0o1777))

    def do_chown(self):
        os.chown(self.path(), *self.owners(),
                 follow_symlinks=self.often(0.7))

    def do_utime(self):
        times = self.one_of(None, (1, 2), (10**9, 10**9 + 1))
        path, follow = self.path(), self.often(0.7)
        os.utime(path, times, follow_symlinks=follow)
        if times:
            return os.stat(path, follow_symlinks=follow).st_mtime
        return None

    def do_setxattr(self):
        name = self.one_of(*ATTRIBUTES)
        value = self.data()[:self.one_of(0, 10, 300)]
        if "acl" in name and self.often(0.8):
            value = ACL
        os.setxattr(self.path(), name, value, self.one_of(
            0, 0, os.XATTR_CREATE, os.XATTR_REPLACE),
            follow_symlinks=self.often(0.7))

    def do_getxattr(self):
        return content(os.getxattr(self.path(), self.one_of(*ATTRIBUTES),
                                   follow_symlinks=self.often(0.7)))

    def do_listxattr(self):
        return sorted(os.listxattr(self.path(),
                                   follow_symlinks=self.often(0.7)))

    def do_removexattr(self):
        os.removexattr(self.path(), self.one_of(*ATTRIBUTES))

    # --- the run

    def next(self):
        """One call; what it was and what came of it."""
        if self.often(0.05):
            os.umask(self.one_of(0, 0o22, 0o77, 0o27))
        self.user, gid, groups = (USERS[0] if self.often(0.5)
                                  else self.one_of(*USERS))
        one = self.chance.choices(self.calls, self.weights)[0]
        os.setgroups(groups)
        os.setegid(gid)
        os.seteuid(self.user)
        try:
            result = one()
        except OSError as error:
            result = errno.errorcode.get(error.errno, error.errno)
        except Nothing:
            result = "-"
        finally:
            os.seteuid(0)
            os.setegid(0)
        return f"{one.__name__[3:]} as {self.user}: {result}"

    def close(self):
        for fd in self.open.values():
            os.close(fd)


def print_tree(folder):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        status = os.lstat(path)
        attributes = {
            a: content(os.getxattr(path, a, follow_symlinks=False))
            for a in sorted(os.listxattr(path, follow_symlinks=False))}
        more = ""
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb") as file:
                more = content(file.read())
        elif stat.S_ISLNK(status.st_mode):
            more = os.readlink(path)[:50]
        print(path, brief(status), attributes, more)
        if stat.S_ISDIR(status.st_mode):
            print_tree(path)


def main():
    folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.chroot(folder)
    os.chdir("/")
    calls = Calls(seed)
    for number in range(count):
        print(number, calls.next())
    calls.close()
    print_tree(".")


if __name__ == "__main__":
    main()
