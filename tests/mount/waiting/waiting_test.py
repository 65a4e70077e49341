#!/usr/bin/env python3
"""Nobody is held up by what another waits for, or has taken.

A lease on a file below, a store below that does not answer, a user who opens
all the files there are: whoever asks for that waits, or is refused, as he would
be below. Everybody else is served, in every visibility and over both
transports, and the daemon ends when it is told to.

  waiting_test.py --bin build/release/bin
"""

import contextlib
import ctypes
import errno
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (Skip, Suite, expect,  # noqa: E402
                             expect_equal, wait_until)

USER = 61001
OTHER = 61002
VISIBILITIES = ("exact", "auto", "fast")
TRANSPORTS = ("dev", "uring")
LIBC = ctypes.CDLL(None, use_errno=True)


class Client:
    """A process that does what it is told, as some user, until it is let go.
    What its body returns, or the number of the error it ends with, is
    outcome()."""

    def __init__(self, user, body, *arguments):
        self._result, result = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            text = "killed"
            try:
                LIBC.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
                LIBC.prctl(1, 9, 0, 0, 0)  # forgotten with the ids
                text = repr(body(*arguments))
            except OSError as error:
                text = errno.errorcode.get(error.errno, str(error))
            except BaseException as error:  # pylint: disable=broad-except
                text = repr(error)
            finally:
                os.write(result, text.encode())
                os._exit(0)
        os.close(result)
        self.text = None

    @property
    def pid(self):
        return self._pid

    def ended(self):
        if self.text is None and os.waitpid(self._pid, os.WNOHANG)[0] != 0:
            with os.fdopen(self._result) as pipe:
                self.text = pipe.read()
        return self.text is not None

    def outcome(self, seconds=20):
        wait_until(self.ended, f"a client (process {self._pid}) to end",
                   seconds)
        return self.text

    def kill(self, number=9):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)


def as_user(user, body, *arguments):
    """What `body` returns, run by that user."""
    return Client(user, body, *arguments).outcome()


class Waiting:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0

    @contextlib.contextmanager
    def mounted(self, visibility, transport, filter_text="", **more):
        self.number += 1
        base = f"case-{self.number}"
        source = self.suite.folder(base, "source", mode=0o777)
        point = self.suite.folder(base, "mnt")
        trace = self.suite.path(base, "trace")
        mount = self.suite.mount(
            source, point, (filter_text, "STR_ALL", f'file = "{trace}"'),
            visibility=visibility, transport=transport, **more)
        mount.trace = trace
        yield source, point, mount
        mount.unmount()
        self.suite.read(trace)
        self.suite.remove(base)

    # --- descriptors

    def descriptors_of_one_user(self, visibility, transport):
        """A user who opens all he can is refused; nobody else notices."""
        with self.mounted(visibility, transport,
                          wrapper=("prlimit", "--nofile=1024:1024")) as (
                              source, point, _):
            for i in range(1200):
                with open(os.path.join(source, f"f{i}"), "wb") as out:
                    out.write(b"content")
                os.chmod(os.path.join(source, f"f{i}"), 0o666)
            go_on, let_go = os.pipe()
            told, tell = os.pipe()
            greedy = Client(USER, open_all, point, 1100, tell, go_on)
            os.close(tell)
            with os.fdopen(told) as pipe:
                held, refused = map(int, pipe.readline().split())
            expect(held >= 50, f"he got no more than {held}")
            expect(refused > 0, "he was refused nothing")
            for user in (0, OTHER):
                expect_equal(as_user(user, work, point, 1100, 1200), "100",
                             f"what user {user} could do meanwhile")
            # Look-ups of names that nobody has asked for yet.
            names = as_user(OTHER, look_up_all, point, 1200)
            expect_equal(names, "1200", "names that can be looked up")
            os.write(let_go, b"x")
            expect_equal(greedy.outcome(), "'done'", "his end")
            wait_until(lambda: as_user(USER, work, point, 0, 40) == "40",
                       "his files to be given back", 20)
        return f"{held} of 1100"


def open_all(folder, count, tell, go_on):
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
    held = []
    refused = 0
    for i in range(count):
        try:
            held.append(os.open(os.path.join(folder, f"f{i}"), os.O_RDWR))
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            refused += 1
    os.write(tell, f"{len(held)} {refused}\n".encode())
    os.read(go_on, 1)
    # What he has, he can use.
    for fd in held:
        os.pread(fd, 10, 0)
        os.close(fd)
    return "done"


def work(folder, begin, end):
    """Opens, reads and closes; how often that went well."""
    done = 0
    for i in range(begin, end):
        with open(os.path.join(folder, f"f{i}"), "rb+") as file:
            done += file.read() == b"content"
    os.listdir(folder)
    return done


def look_up_all(folder, count):
    return sum(os.stat(os.path.join(folder, f"f{i}")).st_size == 7
               for i in range(count))


def main():
    suite = Suite("waiting", __doc__)
    waiting = Waiting(suite)
    for transport in TRANSPORTS:
        for visibility in VISIBILITIES:
            if transport == "uring" and suite.no_uring():
                suite.run(f"all over uring, {visibility}",
                          lambda: Skip(suite.no_uring()))
                continue
            what = f"over {transport}, {visibility}"
            suite.run(f"descriptors of one user, {what}",
                      waiting.descriptors_of_one_user, visibility, transport)
    suite.finish()


if __name__ == "__main__":
    main()
