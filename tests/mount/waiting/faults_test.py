#!/usr/bin/env python3
"""What goes wrong below reaches the caller as it is, and the trace.

Each operation of a store fails with each of many errors, is cut short, is slow,
or the store goes away. The same system calls are made on the store itself and
through a mount over it, in every visibility and over both transports: their
results are the same. An error is in the trace, with the operation that met it;
nothing is leaked, and who asks for something else is served.

  faults_test.py --bin build/release/bin
"""

import collections
import ctypes
import errno
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from faulty_store import faulty_store  # noqa: E402
from tracefs_harness import (Suite, expect, expect_equal,  # noqa: E402
                             wait_until)

ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "ESTALE", "EINTR", "EACCES",
          "ENOMEM", "ETIMEDOUT")
SIZE = 8192
SLOW_MS = 30
AT_CWD = -100
REMOVE_FOLDER = 0x200
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
# Not through Python: it makes calls again that were interrupted.
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.lseek.restype = LIBC.read.restype = LIBC.write.restype = ctypes.c_long
LIBC.copy_file_range.restype = LIBC.readlink.restype = ctypes.c_long
LIBC.syscall.restype = ctypes.c_long
GETDENTS64 = {"x86_64": 217, "aarch64": 61}.get(os.uname().machine)


class Failed(Exception):
    """A system call that failed; the text is the name of its error."""


def call(name, *arguments):
    """What a function of libc returns."""
    values = [os.fsencode(a) if isinstance(a, str) else
              ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    got = getattr(LIBC, name)(*values)
    if got < 0:
        number = ctypes.get_errno()
        raise Failed(errno.errorcode.get(number, str(number)))
    return got


class Opened:
    """A descriptor of its own, for one call that the store makes fail."""

    def __init__(self, path, flags=os.O_RDWR):
        self.fd = call("open", path, flags)

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        LIBC.close(self.fd)


def with_fd(name, *arguments, flags=os.O_RDWR):
    def body(folder):
        with Opened(f"{folder}/f", flags) as fd:
            return call(name, fd, *arguments)
    return body


def with_path(name, *arguments, leaf="f"):
    return lambda folder: call(name, f"{folder}/{leaf}", *arguments)


def with_two(name, leaf, other):
    return lambda folder: call(name, f"{folder}/{leaf}", f"{folder}/{other}")


def read_all(folder):
    """How much each read brought, until the end or an error."""
    got = []
    buffer = ctypes.create_string_buffer(1024)
    with Opened(f"{folder}/f", os.O_RDONLY) as fd:
        while not got or got[-1] != 0:
            try:
                got.append(call("read", fd, buffer, 1024))
            except Failed as failed:
                return got + [str(failed)]
    return got


def write_twice(folder):
    with Opened(f"{folder}/f", os.O_WRONLY) as fd:
        got = [call("write", fd, b"x" * 4096, 4096)]
        return got + [call("write", fd, b"x" * 4096, 4096)]


def list_folder(folder):
    with Opened(f"{folder}/d", DIRECTORY) as fd:
        buffer = ctypes.create_string_buffer(4096)
        return call("syscall", GETDENTS64, fd, buffer, 4096) > 0


def copy(folder):
    with Opened(f"{folder}/f") as source, Opened(f"{folder}/g") as target:
        return call("copy_file_range", source, None, target, None, SIZE, 0)


def close_it(folder):
    fd = call("open", f"{folder}/f", os.O_RDWR)
    return call("close", fd)


def sync_folder(folder):
    with Opened(f"{folder}/d", DIRECTORY) as fd:
        return call("fsync", fd)


ROOM = ctypes.create_string_buffer(4096)
CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY
Call = collections.namedtuple("Call", "fault recorded make")
# By what the store calls it: how it is asked for, and as what it is recorded.
CALLS = (
    Call("getattr", {"lookup", "getattr"}, with_path("access", 0)),
    Call("open", {"open"}, lambda folder: bool(
        LIBC.close(call("open", f"{folder}/f", os.O_RDWR)) == 0)),
    Call("create", {"create"}, lambda folder: bool(
        LIBC.close(call("open", f"{folder}/new", CREATE, 0o600)) == 0)),
    Call("read", {"read"}, read_all),
    Call("write", {"write"}, with_fd("write", b"x" * 4096, 4096)),
    Call("opendir", {"opendir"}, lambda folder: bool(
        LIBC.close(call("open", f"{folder}/d", DIRECTORY)) == 0)),
    Call("readdir", {"readdir"}, list_folder),
    Call("mkdir", {"mkdir"}, with_path("mkdir", 0o700, leaf="new")),
    Call("mknod", {"mknod"}, with_path("mknod", 0o010600, 0, leaf="new")),
    Call("unlink", {"unlink"}, with_path("unlink")),
    Call("rmdir", {"rmdir"}, with_path("rmdir", leaf="empty")),
    Call("rename", {"rename"}, with_two("rename", "f", "new")),
    Call("link", {"link"}, with_two("link", "f", "new")),
    Call("symlink", {"symlink"},
         lambda folder: call("symlink", "to", f"{folder}/new")),
    Call("readlink", {"readlink"}, with_path("readlink", ROOM, 100, leaf="l")),
    Call("truncate", {"setattr"}, with_path("truncate", 100)),
    Call("chmod", {"setattr"}, with_path("chmod", 0o640)),
    Call("chown", {"setattr"}, with_path("lchown", 1, 1)),
    Call("utimens", {"setattr"}, lambda folder: call(
        "utimensat", AT_CWD, f"{folder}/f", None, 0)),
    Call("fallocate", {"fallocate"}, with_fd("fallocate", 0, 0, 2 * SIZE)),
    Call("lseek", {"lseek"}, with_fd("lseek", 0, os.SEEK_HOLE)),
    Call("copy", {"copy_file_range"}, copy),
    Call("flush", {"flush"}, close_it),
    Call("fsync", {"fsync"}, with_fd("fsync")),
    Call("fsyncdir", {"fsyncdir"}, sync_folder),
    Call("statfs", {"statfs"}, with_path("statfs", ROOM)),
    Call("setxattr", {"setxattr"}, with_path("setxattr", "user.b", b"v", 1, 0)),
    Call("getxattr", {"getxattr"}, with_path("getxattr", "user.a", ROOM, 100)),
    Call("listxattr", {"listxattr"}, with_path("listxattr", ROOM, 4096)),
    Call("removexattr", {"removexattr"}, with_path("removexattr", "user.a")),
)


def furnish(folder):
    """What each call finds."""
    os.makedirs(f"{folder}/d")
    os.mkdir(f"{folder}/empty")
    for name in ("f", "g", "d/e"):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(b"a" * SIZE)
    os.symlink("f", f"{folder}/l")
    os.setxattr(f"{folder}/f", "user.a", b"v")


def outcome(make, folder):
    try:
        return make(folder)
    except Failed as failed:
        return str(failed)


def descriptors(mount):
    return len(os.listdir(f"/proc/{mount.pid}/fd"))


class Faults:
    def __init__(self):
        self.number = 0

    def outcomes(self, suite, visibility, transport, cases, check=None):
        """Makes the call of each case (title, call, rule) on a store that does
        as the rule says, and through a mount; they come to the same. Returns
        what came of it by title, and the events of the mount. `check` is given
        the mount while it is there."""
        self.number += 1
        with faulty_store(suite, f"store-{self.number}") as store:
            for title, _, _ in cases:
                for side in ("straight", "mounted"):
                    furnish(f"{store.below}/{side}/{title}")
            os.mkdir(f"{store.below}/other")
            furnish(f"{store.below}/other/well")
            rules = [f"{made.fault} /*/{title}/* {rule}"
                     for title, made, rule in cases]
            got = {}
            with suite.mounted("", visibility, transport,
                               source=store.point) as (_, point, mount):
                for (title, made, _), rule in zip(cases, rules):
                    store.rules.set(rule)
                    want = outcome(made.make, f"{store.point}/straight/{title}")
                    got[title] = outcome(made.make,
                                         f"{point}/mounted/{title}")
                    expect_equal(got[title], want, f"{title}: through the mount")
                    with open(f"{point}/other/well/f", "rb") as file:
                        expect_equal(len(file.read()), SIZE,
                                     f"{title}: what else was read")
                if check:
                    store.rules.set(*rules)
                    check(point, mount)
                store.rules.set()
            return got, mount.events

    def errors(self, suite, visibility, transport):
        cases = [(f"{made.fault}-{name}", made,
                  f"error {getattr(errno, name)}")
                 for made in CALLS for name in ERRORS]

        # One error of each operation: what leaks with one does with all.
        some = cases[::len(ERRORS)]

        def leaks_nothing(point, mount):
            def again():
                for title, made, _ in some:
                    outcome(made.make, f"{point}/mounted/{title}")
            again()
            before = descriptors(mount)
            for _ in range(8):
                again()
            expect(descriptors(mount) <= before + 8,
                   f"{before} descriptors became {descriptors(mount)}")

        got, events = self.outcomes(suite, visibility, transport, cases,
                                    leaks_nothing)
        recorded = {(event["op"], event.get("errno"),
                     event.get("path", "").split("/")[2])
                    for event in events
                    if event.get("path", "").count("/") > 1}
        failed = collections.Counter()
        for title, made, rule in cases:
            name = title.split("-")[1]
            expect(got[title] != 0 or made.fault == "release",
                   f"{title} did not fail: {got[title]}")
            if name not in str(got[title]):
                continue  # below it is another one, or none
            failed[made.fault] += 1
            expect(any((op, name, title) in recorded for op in made.recorded),
                   f"{title}: not in the trace")
        expect_equal({made.fault for made in CALLS} - set(failed), set(),
                     "what never failed")
        return f"{sum(failed.values())} errors of {len(cases)} cases"

    def short(self, suite, visibility, transport):
        """What is done in part is said to be so, and recorded."""
        by_fault = {made.fault: made for made in CALLS}
        write = Call("write", {"write"}, write_twice)
        cases = [("write-in-one", by_fault["write"],
                  f"error {errno.ENOSPC} from 1000"),
                 ("write-then-full", write, f"error {errno.ENOSPC} from 4096"),
                 ("write-then-half", write, f"error {errno.EDQUOT} from 5000"),
                 ("read-then-broken", by_fault["read"],
                  f"error {errno.EIO} from 4096")]
        got, events = self.outcomes(suite, visibility, transport, cases)
        expect_equal(got, {"write-in-one": 1000, "write-then-full": "ENOSPC",
                           "write-then-half": [4096, 904],
                           "read-then-broken": [1024] * 4 + ["EIO"]},
                     "what came of it")
        results = collections.defaultdict(list)
        for event in events:
            path = event.get("path", "").split("/")
            if event["op"] == "write" and path[1:2] == ["mounted"]:
                results[path[2]].append(event.get("errno", event.get("result")))
        expect_equal(dict(results),
                     {"write-in-one": [1000], "write-then-full": [4096, "ENOSPC"],
                      "write-then-half": [4096, 904]}, "what is recorded")

    def slow(self, suite, visibility, transport):
        """What takes its time below does so here, and that is recorded."""
        cases = [(f"{made.fault}-slow", made, f"delay {SLOW_MS}")
                 for made in CALLS]
        _, events = self.outcomes(suite, visibility, transport, cases)
        slow = {(event["op"], event["path"].split("/")[2]) for event in events
                if event.get("path", "").startswith("/mounted/")
                and event["dur"] >= SLOW_MS * 1_000_000}
        missing = [title for title, made, _ in cases
                   if not any((op, title) in slow for op in made.recorded)]
        expect_equal(missing, [], "what was not recorded as slow")

    def gone(self, suite, visibility, transport):
        """A store that has gone is as it is below; the mount can be taken
        away, and its trace is whole."""
        self.number += 1
        with faulty_store(suite, f"store-{self.number}") as store:
            for made in CALLS:
                for side in ("straight", "mounted"):
                    furnish(f"{store.below}/{side}/{made.fault}")
            with suite.mounted("", visibility, transport,
                               source=store.point) as (_, point, _):
                store.process.kill()
                store.process.wait()
                wait_until(lambda: outcome(
                    CALLS[0].make, f"{store.point}/straight/getattr")
                    == "ENOTCONN", "the store to be gone")
                for made in CALLS:
                    expect_equal(
                        outcome(made.make, f"{point}/mounted/{made.fault}"),
                        outcome(made.make,
                                f"{store.point}/straight/{made.fault}"),
                        f"{made.fault} of a store that has gone")


def main():
    suite = Suite("faults", __doc__)
    faults = Faults()
    suite.run_everywhere({"errors": faults.errors, "short": faults.short,
                          "slow": faults.slow, "gone": faults.gone})
    suite.finish()


if __name__ == "__main__":
    main()
