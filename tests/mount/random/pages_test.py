#!/usr/bin/env python3
"""One file through every way there is to its bytes at once: read(2) and write(2),
the same with O_DIRECT, maps, truncation, holes. After each step every way shows
what a plain array of bytes says, and in the end so does the file below.

  pages_test.py --bin build/release/bin                  seconds, for ctest
  pages_test.py --bin build/release/bin --calls 100000 --seed 7

The same calls run in the backing directory first: a difference there is one of
this program. In the spirit of fsx.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (PATIENCE_S, TRANSPORTS,  # noqa: E402
                             VISIBILITIES, Failure, Skip, Suite, expect,
                             expect_equal)

SECTOR = 4096  # what any disk takes
MOST = 300_000
FILTERS = {"all": "", "nothing": "cuid = 4000000000 AND op = fsync"}
HOLE = 0x01 | 0x02  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE


class Wrong(Exception):
    """The file does not hold what it should."""


class Checker:
    """The file, the ways to it, and what should be in it."""

    def __init__(self, path, seed, passes):
        self.path = path
        self.passes = passes
        self.random = random.Random(seed)
        self.model = bytearray()
        self.buffer = mmap.mmap(-1, MOST + SECTOR)  # aligned
        self.libc = ctypes.CDLL(None, use_errno=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644))
        self.map = None
        self.open()
        self.resize(self.random.randrange(1, MOST))

    def open(self):
        # In any order: pages are written back through the first or the last.
        ways = ["plain", "direct"]
        self.random.shuffle(ways)
        for way in ways:
            setattr(self, way, os.open(
                self.path,
                os.O_RDWR | (os.O_DIRECT if way == "direct" else 0)))
        self.remap()

    def remap(self, by=None):
        self.map = mmap.mmap(
            by or self.random.choice((self.plain, self.direct)),
            len(self.model)) if self.model else None

    def unmap(self):
        if self.map is not None:
            self.map.close()
            self.map = None

    def close(self):
        self.unmap()
        fds = [self.plain, self.direct]
        self.random.shuffle(fds)
        for fd in fds:
            os.close(fd)

    # --- steps

    def resize(self, size):
        self.unmap()
        os.ftruncate(self.random.choice((self.plain, self.direct)), size)
        self.model[size:] = bytes(max(0, size - len(self.model)))
        self.remap()

    def part(self):
        at = self.random.randrange(len(self.model))
        return at, min(self.random.choice((1, 100, 5000, 70_000)),
                       len(self.model) - at)

    def sectors(self):
        at = self.random.randrange(len(self.model)) // SECTOR * SECTOR
        return at, SECTOR * self.random.choice((1, 2, 16))

    def bytes(self, size):
        return self.random.randbytes(size)

    def same(self, how, at, got):
        want = bytes(self.model[at:at + len(got)])
        if bytes(got) != want:
            bad = next(i for i, (a, b) in enumerate(zip(got, want)) if a != b)
            raise Wrong(f"{how} at {at + bad} of {len(self.model)}: "
                        f"{got[bad:bad + 8]!r}, not {want[bad:bad + 8]!r}")

    def write(self):
        at, size = self.part()
        data = self.bytes(size)
        if os.pwrite(self.plain, data, at) != size:
            raise Wrong("short write")
        self.model[at:at + size] = data

    def write_directly(self):
        at, size = self.sectors()
        if at + size > MOST:
            return
        self.buffer[:size] = self.bytes(size)
        self.unmap()  # it may grow
        with memoryview(self.buffer) as view:
            done = os.pwritev(self.direct, [view[:size]], at)
        if done != size:
            raise Wrong("short direct write")
        if at + size > len(self.model):
            self.model[len(self.model):] = bytes(at + size - len(self.model))
        self.model[at:at + size] = self.buffer[:size]
        self.remap()

    def write_no_longer_directly(self):
        """fcntl(F_SETFL) takes O_DIRECT away, and any byte may be written. Where
        the kernel passes writes through by itself it does not take it from the
        backing file (linux/fs/fuse/passthrough.c)."""
        if self.passes:
            return
        flags = fcntl.fcntl(self.direct, fcntl.F_GETFL)
        fcntl.fcntl(self.direct, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        at, size = self.part()
        data = self.bytes(size)
        os.pwrite(self.direct, data, at)
        self.model[at:at + size] = data
        self.same("read of what was O_DIRECT", at,
                  os.pread(self.direct, size, at))
        fcntl.fcntl(self.direct, fcntl.F_SETFL, flags)

    def store(self):
        at, size = self.part()
        data = self.bytes(size)
        self.map[at:at + size] = data
        self.model[at:at + size] = data

    def store_to_the_end(self):
        size = self.random.randrange(1, min(9000, len(self.model)) + 1)
        data = self.bytes(size)
        self.map[len(self.model) - size:] = data
        self.model[len(self.model) - size:] = data

    def read(self):
        at, size = self.part()
        got = os.pread(self.plain, size, at)
        if len(got) != size:
            raise Wrong(f"short read: {len(got)} of {size}")
        self.same("read", at, got)

    def read_directly(self):
        at, size = self.sectors()
        with memoryview(self.buffer) as view:
            got = os.preadv(self.direct, [view[:size]], at)
        if got != min(size, len(self.model) - at):
            raise Wrong(f"direct read at {at} of {len(self.model)}: {got}")
        self.same("direct read", at, self.buffer[:got])

    def load(self):
        at, size = self.part()
        self.same("load", at, self.map[at:at + size])

    def cut(self):
        self.resize(self.random.randrange(1, MOST))

    def punch(self):
        at, size = self.part()
        if self.libc.fallocate(self.plain, HOLE, ctypes.c_long(at),
                               ctypes.c_long(size)) != 0:
            error = ctypes.get_errno()
            if error != errno.EOPNOTSUPP:
                raise OSError(error, "fallocate")
            return
        self.model[at:at + size] = bytes(size)

    def sync(self):
        self.map.flush()

    def reopen(self):
        self.close()
        self.open()

    def check(self):
        self.same("the whole file", 0, os.pread(self.plain, MOST, 0))
        if os.fstat(self.direct).st_size != len(self.model):
            raise Wrong("the size")

    def run(self, calls):
        steps = ([self.write, self.write_directly, self.store, self.read,
                  self.read_directly, self.load] * 4
                 + [self.store_to_the_end] * 3
                 + [self.write_no_longer_directly, self.cut, self.punch,
                    self.sync, self.reopen, self.check])
        for number in range(calls):
            step = self.random.choice(steps)
            try:
                step()
            except (Wrong, OSError) as error:
                raise Wrong(f"call {number}, {step.__name__}: {error}") from None
        self.check()
        # The last stores are in the map alone: they must get out by themselves.
        self.store_to_the_end()
        self.close()


def in_child(arguments):
    """The calls, in a process that can be given up."""
    process = subprocess.Popen([sys.executable, "-B", __file__, "--do",
                                *map(str, arguments)], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failure(f"{arguments}: a call hangs") from None
    if process.returncode == 77:
        raise Skip(said.strip())
    expect_equal(process.returncode, 0, f"{arguments}: {said}")


def do(path, seed, calls, passes):
    try:
        checker = Checker(path, int(seed), passes == "passes")
    except OSError as error:
        if error.errno == errno.EINVAL:
            print(f"no O_DIRECT here: {error}")
            return 77
        raise
    try:
        checker.run(int(calls))
    except Wrong as error:
        print(f"seed {seed}: {error}")
        return 1
    with open(path + ".model", "wb") as out:
        out.write(checker.model)
    return 0


def compare(suite, visibility, transport, filter_text):
    with suite.mounted(filter_text, visibility, transport) as (source, point,
                                                               _):
        path = os.path.join(point, "f")
        in_child((path, suite.options.seed, suite.options.calls,
                  "served" if filter_text == "" else "passes"))
        with open(os.path.join(source, "f"), "rb") as below:
            got = below.read()
        with open(os.path.join(source, "f.model"), "rb") as model:
            expect(got == model.read(), f"seed {suite.options.seed}: the file "
                   "below does not hold what was stored last")


def natively(suite):
    path = os.path.join(suite.folder("natively"), "f")
    in_child((path, suite.options.seed, suite.options.calls, "served"))


def options(parser):
    parser.add_argument("--calls", type=int, default=500, metavar="N",
                        help="of each run (default: 500)")
    parser.add_argument("--seed", type=int,
                        default=random.randrange(1_000_000), metavar="N",
                        help="(default: a new one)")


def lose_nothing(suite, visibility, transport):
    """A size that is no multiple of a sector, and one handle, opened O_DIRECT:
    with msync, and by the end of the map alone."""
    with suite.mounted("", visibility, transport) as (source, point, _):
        for name, flush in (("flushed", True), ("left", False)):
            fd = os.open(os.path.join(point, name),
                         os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
            os.ftruncate(fd, 65_000)
            with mmap.mmap(fd, 65_000) as shared:
                shared[:] = b"x" * 65_000
                if flush:
                    shared.flush()
            os.close(fd)
            with open(os.path.join(source, name), "rb") as below:
                expect_equal(below.read().count(b"x"), 65_000,
                             f"bytes of {name}")


def append_only_meanwhile(suite, visibility, transport):
    """Mapped, then made append-only and opened by somebody who appends: what is
    stored gets where it was stored."""
    with suite.mounted("", visibility, transport) as (source, point, _):
        below = os.path.join(source, "log")
        with open(below, "wb") as out:
            out.write(b"-" * 10_000)
        with open(os.path.join(point, "log"), "r+b", buffering=0) as file:
            with mmap.mmap(file.fileno(), 10_000) as shared:
                subprocess.run(["chattr", "+a", below], check=True)
                try:
                    with open(os.path.join(point, "log"), "ab",
                              buffering=0) as log:
                        log.write(b"+")
                        shared[5] = ord("x")
                        shared.flush()
                finally:
                    subprocess.run(["chattr", "-a", below], check=True)
        with open(below, "rb") as text:
            expect_equal(text.read(), b"-----x" + b"-" * 9_994 + b"+",
                         "what is below")


def main():
    if sys.argv[1:2] == ["--do"]:
        sys.exit(do(*sys.argv[2:]))
    suite = Suite("pages", __doc__, options)
    suite.run("natively", natively, suite)
    suite.run_everywhere({
        "O_DIRECT and a size that is not aligned": lose_nothing,
        "append-only meanwhile": append_only_meanwhile})
    for transport in TRANSPORTS:
        for visibility in VISIBILITIES:
            for title, text in FILTERS.items():
                suite.run(f"{title}, {visibility} over {transport}", compare,
                          suite, visibility, transport, text)
    suite.finish()


if __name__ == "__main__":
    main()
