#!/usr/bin/env python3
"""What an operation names is recorded as it was when the operation began, in
every visibility and over both transports, whatever else is recorded.

Only the operation itself is recorded here: nothing has told the trace of the
file before.
"""

import ctypes
import fcntl
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect_equal  # noqa: E402


AT_FDCWD, AT_SYMLINK_FOLLOW, RENAME_EXCHANGE = -100, 0x400, 2


def call(name, old, new, flags):
    """renameat2(2) or linkat(2)"""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new),
                flags) != 0:
        raise OSError(ctypes.get_errno(), name)


class Case:
    """A mount with a tracer for each filter, and what they record."""

    number = 0

    def __init__(self, suite, visibility, transport, *filters):
        self.suite = suite
        Case.number += 1
        base = f"case-{Case.number}"
        self.point = suite.folder(base, "mnt")
        self.traces = [suite.path(base, f"trace-{n}")
                       for n in range(len(filters))]
        self.mount = suite.mount(
            suite.folder(base, "source"), self.point,
            *((text, "STR_ALL", f'file = "{trace}"')
              for text, trace in zip(filters, self.traces)),
            visibility=visibility, transport=transport)

    def path(self, name):
        return os.path.join(self.point, name)

    def make(self, *names):
        for name in names:
            if name.endswith("/"):
                os.mkdir(self.path(name))
            else:
                with open(self.path(name), "w", encoding="ascii") as file:
                    file.write(name)

    def end(self, *keys):
        """Unmounts; for each tracer the `keys` of what it recorded."""
        self.mount.unmount()
        events = [self.suite.read(trace) for trace in self.traces]
        return [[tuple(e.get(k) for k in keys) for e in each]
                for each in events]


def link(suite, *mount):
    case = Case(suite, *mount, "op = link", "op = link AND path = /a",
                "op = link AND path = /d/s", "op = link AND name = x")
    case.make("a", "d/", "e/")
    os.symlink("nowhere", case.path("d/s"))
    os.link(case.path("a"), case.path("b"))
    os.link(case.path("d/s"), case.path("e/l"), follow_symlinks=False)
    # It has had no name before.
    fd = os.open(case.path("d"), os.O_TMPFILE | os.O_RDWR, 0o600)
    call("linkat", f"/proc/self/fd/{fd}", case.path("e/t"), AT_SYMLINK_FOLLOW)
    os.close(fd)
    links = [("/a", "/b"), ("/d/s", "/e/l"), (None, "/e/t")]
    expect_equal(case.end("path", "path2"), [links, links[:1], links[1:2], []],
                 "links")


def rename(suite, *mount):
    case = Case(suite, *mount, "op = rename", "op = rename AND path = /d/b",
                "op = rename AND name = f")
    case.make("a", "d/", "e/", "e/c", "f")
    os.rename(case.path("a"), case.path("d/b"))
    os.rename(case.path("d/b"), case.path("e/c"))  # replaces a file
    os.rename(case.path("d"), case.path("e/d"))
    renames = [("/a", "/d/b"), ("/d/b", "/e/c"), ("/d", "/e/d")]
    call("renameat2", case.path("f"), case.path("e/d"), RENAME_EXCHANGE)
    os.rename(case.path("f"), case.path("g"))
    renames += [("/f", "/e/d"), ("/f", "/g")]
    expect_equal(case.end("path", "path2"),
                 [renames, renames[:2], renames[3:]], "renames")


def exchange(suite, *mount):
    """Both files have the other's name from then on."""
    case = Case(suite, *mount, "op = setattr", "op = setattr AND path = /d/b",
                "op = setattr AND name = a")
    case.make("a", "d/", "d/b")
    opened = [os.open(case.path(name), os.O_RDWR) for name in ("a", "d/b")]
    for fd in opened:
        os.fchmod(fd, 0o600)
    call("renameat2", case.path("a"), case.path("d/b"), RENAME_EXCHANGE)
    for fd in opened:
        os.fchmod(fd, 0o640)
        os.close(fd)
    paths = [("/a",), ("/d/b",), ("/d/b",), ("/a",)]
    expect_equal(case.end("path"), [paths, paths[1:3], [paths[0], paths[3]]],
                 "changes")


def removal(suite, *mount):
    case = Case(suite, *mount, "op IN { unlink rmdir }",
                "op = unlink AND path = /d/b", "op = rmdir AND name = e",
                "op = unlink AND name = h2")
    case.make("d/", "d/b", "e/", "h")
    os.link(case.path("h"), case.path("h2"))
    number = os.stat(case.path("d/b")).st_ino
    os.unlink(case.path("d/b"))
    os.rmdir(case.path("e"))
    os.unlink(case.path("h2"))
    os.unlink(case.path("h"))
    got = case.end("path", "ino")
    expect_equal(got[0][0], ("/d/b", number), "the first removal")
    expect_equal([[e[0] for e in each] for each in got],
                 [["/d/b", "/e", "/h2", "/h"], ["/d/b"], ["/e"], ["/h2"]],
                 "removals")


def attributes(suite, *mount):
    case = Case(suite, *mount, "op = setattr", "op = setattr AND path = /a",
                "op = setattr AND name = b")
    case.make("a", "d/")
    fd = os.open(case.path("a"), os.O_WRONLY)
    os.chmod(case.path("a"), 0o600)
    os.rename(case.path("a"), case.path("d/b"))
    os.chmod(case.path("d/b"), 0o640)
    os.rename(case.path("d"), case.path("e"))
    os.utime(case.path("e/b"), (1, 1))
    os.ftruncate(fd, 3)
    os.unlink(case.path("e/b"))
    os.fchmod(fd, 0o600)  # the last name stays known
    os.close(fd)
    paths = [("/a",), ("/d/b",), ("/e/b",), ("/e/b",), ("/e/b",)]
    expect_equal(case.end("path"), [paths, paths[:1], paths[1:]], "setattrs")


def lock(suite, visibility, transport):
    if transport == "uring":
        return Skip("lock requests do not come over io_uring")
    case = Case(suite, visibility, transport, "op = flock AND flags = 1",
                "op = flock AND path = /a AND flags = 1")
    case.make("a")
    with open(case.path("a"), "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiter = suite.background(subprocess.Popen(
            ["flock", case.path("a"), "true"]))
        # It waits for as long as the file has had another name.
        time.sleep(0.5)
        os.rename(case.path("a"), case.path("b"))
        fcntl.flock(held, fcntl.LOCK_UN)
        waiter.wait()
    # The first is ours, which did not wait.
    expect_equal([each[-1:] for each in case.end("path", "lock_type")],
                 [[("/a", 1)]] * 2, "locks")
    return None


def looked_at_meanwhile(suite, *mount):
    """However often others look names up while they change, the old one does
    not come back."""
    case = Case(suite, *mount, "op = setattr")
    os.mkdir(case.path("a"))
    case.make("a/x")
    others = [suite.background(subprocess.Popen(
        [sys.executable, "-c", LOOK_AT_BOTH, case.point])) for _ in range(3)]
    inside = os.open(case.path("a"), os.O_PATH)
    now, new = "a", "b"
    paths = []
    for _ in range(1500):
        os.rename(case.path(now), case.path(new))
        os.utime("x", dir_fd=inside)
        paths.append((f"/{new}/x",))
        now, new = new, now
    os.close(inside)
    for other in others:
        other.kill()
        other.wait()
    got = case.end("path")[0]
    expect_equal(len(got), len(paths), "how many are recorded")
    expect_equal([pair for pair in zip(got, paths) if pair[0] != pair[1]], [],
                 "paths that are not those of the moment")


LOOK_AT_BOTH = """
import os, sys
while True:
    for name in "ab":
        try:
            os.stat(os.path.join(sys.argv[1], name))
        except FileNotFoundError:
            pass
"""

CASES = {"link": link, "rename": rename, "exchange": exchange,
         "removal": removal, "looked at meanwhile": looked_at_meanwhile,
         "attributes": attributes, "lock that is waited for": lock}


def main():
    suite = Suite("names", __doc__)
    suite.run_everywhere(CASES)
    suite.finish()


if __name__ == "__main__":
    main()
