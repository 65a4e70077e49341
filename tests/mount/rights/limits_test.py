#!/usr/bin/env python3
"""What a user may not take below he may not take through the mount: the blocks
that ext4 reserves for root, what is beyond a quota, and what is beyond his
RLIMIT_FSIZE; by whatever way he writes, and whoever else has the file open.

Each case is an ext4 of its own in a loop device.

  limits_test.py --bin build/release/bin [--all]
"""

import contextlib
import fcntl
import itertools
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402
import users  # noqa: E402
from users import acting, told  # noqa: E402

LEFT_TO_KERNEL = "op = fsync AND cuid = 4000000000"
ALL = ""
MIB = 1 << 20
SIZE = 48 * MIB
LIMIT = MIB
RESERVE = ["-m", "20", "-b", "4096", "-N", "30000"]
QUOTA = ["-m", "0", "-b", "4096", "-N", "30000", "-O", "quota", "-E",
         "quotatype=usrquota"]


def fill_by_writing(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    wrote = 0
    try:
        while wrote < 2 * SIZE:
            wrote += os.write(fd, b"x" * 65536)
            os.fsync(fd)  # what is refused late is refused now
    finally:
        os.close(fd)


def fill_by_mapping(path):
    """Pages of a sparse file; what cannot be kept is told by msync or SIGBUS."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, 2 * SIZE)
    with mmap.mmap(fd, 2 * SIZE) as mapped:
        for at in range(0, 2 * SIZE, mmap.PAGESIZE):
            mapped[at] = 1
            if at % MIB == 0:
                mapped.flush()
        mapped.flush()


def fill_by_fallocate(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    for at in range(0, 2 * SIZE, 65536):
        os.posix_fallocate(fd, at, 65536)


def fill_by_copying(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    source = os.open(path + ".source", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(source, b"x" * 65536)
    at = 0
    while at < 2 * SIZE:
        at += os.copy_file_range(source, fd, 65536, 0, at)
        os.fsync(fd)


def fill_with_names(path):
    for number in range(100000):
        os.symlink("x" * 1000, f"{path}.{number}")


WAYS = {"writing": fill_by_writing, "mapping": fill_by_mapping,
        "fallocate": fill_by_fallocate, "copying": fill_by_copying,
        "names": fill_with_names}


def root_holds(path):
    """The kernel's own descriptor of the file is made while root opens it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.chown(path, users.ALICE, users.ALICE)
    return fd


def no_quota(suite):
    """Why there are no quotas to be tested; None if there are."""
    if shutil.which("setquota") is None:
        return "setquota is not installed"
    try:
        with suite.loop("try", "ext4", SIZE, QUOTA, "usrquota"):
            return None
    except subprocess.CalledProcessError:
        return "the kernel has no quotas for ext4 (CONFIG_QFMT_V2)"


class Limits:
    def __init__(self, suite, visibility, transport, filter_text):
        self.suite = suite
        self.setting = visibility, transport, filter_text
        self.number = 0

    @contextlib.contextmanager
    def mounted(self, make, mount_options, wrapper=()):
        """(folder below, seen) of a new ext4."""
        visibility, transport, filter_text = self.setting
        self.number += 1
        trace = self.suite.path(
            f"trace-{visibility}-{transport}-{self.number}")
        with self.suite.loop("source", "ext4", SIZE, make,
                             mount_options) as source:
            point = self.suite.folder("mnt")
            mount = self.suite.mount(
                source, point, (filter_text, "STR_ALL", f'file = "{trace}"'),
                visibility=visibility, transport=transport, wrapper=wrapper)
            os.mkdir(os.path.join(source, "dir"))
            os.chown(os.path.join(source, "dir"), users.ALICE, users.ALICE)
            yield source, point
            mount.unmount()

    def reserve(self, way, held):
        """A fifth of the blocks is root's."""
        with self.mounted(RESERVE, "rw") as (source, point):
            path = os.path.join(point, "dir", "file")
            reserved = os.statvfs(source)
            reserved = reserved.f_bfree - reserved.f_bavail
            expect(reserved * 4096 > SIZE // 10, "nothing is reserved")
            fd = root_holds(path) if held else -1
            said = acting(users.alice, lambda: told(WAYS[way], path))
            if held:
                os.close(fd)
            os.sync()
            left = os.statvfs(source)
            expect(said == "ENOSPC" or way == "mapping" and (
                "signal 7" in said or said == "EIO"), said)
            expect(left.f_bfree > reserved * 0.98,
                   f"{left.f_bfree} blocks left of {reserved} for root: {said}")
            expect(left.f_bavail * 4096 < 2 * MIB, f"it is not full: {left}")
        return said

    def roots_own(self):
        """Root may use its reserve where its writes come to the daemon."""
        with self.mounted(RESERVE, "rw") as (source, point):
            path = os.path.join(point, "dir", "file")
            said = acting(lambda: None, lambda: told(fill_by_writing, path))
            os.sync()
            left = os.statvfs(source)
            expect_equal(said, "ENOSPC", "what root is told")
            if self.setting[0] == "exact":
                expect(left.f_bfree * 4096 < 2 * MIB, f"not full: {left}")
            return f"{left.f_bfree * 4096 // MIB} MiB left"

    def quota(self, way, held):
        if self.suite.no_quota:
            return Skip(self.suite.no_quota)
        with self.mounted(QUOTA, "usrquota") as (source, point):
            for user in (users.ALICE, users.BOB):
                subprocess.run(["setquota", "-u", str(user), "0", "4096", "0",
                                "0", source], check=True)
            path = os.path.join(point, "dir", "file")
            fd = root_holds(path) if held else -1
            said = acting(users.alice, lambda: told(WAYS[way], path))
            if held:
                os.close(fd)
            os.sync()
            expect(said in ("EDQUOT",) or way == "mapping" and (
                "signal 7" in said or said == "EIO"), said)
            used = used_by(os.path.join(source, "dir"))
            expect(3.5 * MIB < used <= 4 * MIB, f"{used} bytes of 4 MiB: {said}")
            # And nobody else is shut out.
            os.chmod(os.path.join(source, "dir"), 0o777)
            other = os.path.join(point, "dir", "other")

            def write():
                with open(other, "wb") as out:
                    out.write(b"x" * MIB)

            expect_equal(acting(users.bob, lambda: told(write)), "ok",
                         "the other user")
        return said

    def file_size(self):
        """RLIMIT_FSIZE of the caller, in every way that makes a file larger."""
        with self.mounted([], "rw") as (source, point):
            results = [acting(users.alice, limited, os.path.join(folder, "dir"))
                       for folder in (source, point)]
            expect_equal(results[1], results[0], "what is told")
            return results[0]

    def daemons_file_size(self):
        """And not of whoever mounted: neither callers nor traces are cut."""
        with self.mounted([], "rw", wrapper=(
                "prlimit", f"--fsize={LIMIT}:")) as (_, point):
            path = os.path.join(point, "dir", "file")

            def write():
                with open(path, "wb") as out:
                    for _ in range(64):
                        out.write(b"x" * 65536)
                        out.flush()
                os.truncate(path, 8 * MIB)
                return os.stat(path).st_size

            expect_equal(acting(users.alice, lambda: told(write)),
                         str(8 * MIB), "the size")


def used_by(folder):
    return sum(os.lstat(os.path.join(folder, name)).st_blocks * 512
               for name in os.listdir(folder)) + 4096


def limited(folder):
    """Each call beyond the limit, and whether SIGXFSZ came with it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    signals = []
    signal.signal(signal.SIGXFSZ, lambda *_: signals.append(1))
    path = os.path.join(folder, "limited")
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    source = os.open(path + "2", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(source, b"x" * 65536)
    said = []

    def note(call, *arguments):
        came = told(call, *arguments)
        said.append((came, len(signals), os.fstat(fd).st_size))
        signals.clear()

    note(os.pwrite, fd, b"x" * 65536, LIMIT - 4096)
    note(os.pwrite, fd, b"x" * 65536, LIMIT)
    note(os.posix_fallocate, fd, 0, 2 * LIMIT)
    note(os.ftruncate, fd, 2 * LIMIT)
    note(os.truncate, path, 2 * LIMIT)
    note(os.copy_file_range, source, fd, 65536, 0, LIMIT)
    note(os.copy_file_range, source, fd, 65536, 0, LIMIT - 100)
    note(os.sendfile, fd, source, 0, 65536)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    note(os.write, fd, b"x" * 65536)
    return said


def options(parser):
    parser.add_argument("--all", action="store_true",
                        help="every way in every setting")


def main():
    suite = Suite("limits", __doc__, options)
    why = suite.no_file_system("ext4")
    if why:
        suite.skip_all(why)
    suite.no_quota = no_quota(suite)
    settings = [("exact", "dev", ALL), ("auto", "uring", LEFT_TO_KERNEL)]
    if suite.options.all:
        settings = list(itertools.product(
            ("exact", "auto", "fast"), ("dev", "uring"),
            (ALL, LEFT_TO_KERNEL)))
    if suite.no_uring():
        print(f"without uring: {suite.no_uring()}")
        settings = [(v, "dev", f) for v, _, f in settings]
    for setting in dict.fromkeys(settings):
        limits = Limits(suite, *setting)
        text = f"{setting[0]} over {setting[1]}, " + (
            "traced" if setting[2] == ALL else "untraced")
        for way in WAYS:
            for held in (False, True) if way != "names" else (False,):
                if held and not suite.options.all and way == "copying":
                    continue
                more = ", held by root" if held else ""
                suite.run(f"reserve, {way}{more}, {text}", limits.reserve, way,
                          held)
                suite.run(f"quota, {way}{more}, {text}", limits.quota, way,
                          held)
        suite.run(f"root's reserve, {text}", limits.roots_own)
        suite.run(f"file size, {text}", limits.file_size)
        suite.run(f"the daemon's file size, {text}", limits.daemons_file_size)
    suite.finish()


if __name__ == "__main__":
    main()
