#!/usr/bin/env python3
"""Locks that come to the daemon because a filter names them, where daemons are
killed (--survive yes): whoever holds one holds it, nobody else gets it, and who
waits gets it in the end.

  locks_test.py --bin build/release/bin
"""

import collections
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemons_dying, let_daemon_die  # noqa: E402
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (PATIENCE_S, Suite, expect,  # noqa: E402
                             expect_equal, wait_until)

HOLDERS = 8
# ARG_LOCK_TYPE.
UNLOCK = 2

# Adds to a number in a file, while it has a lock of the kind that it is told.
HOLDER = """
import fcntl, json, os, struct, sys, time
path, kind, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + seconds
fd = os.open(path, os.O_RDWR)
F_OFD_SETLKW = 38
def lock(what):
    if kind == "flock":
        fcntl.flock(fd, fcntl.LOCK_EX if what == fcntl.F_WRLCK else fcntl.LOCK_UN)
    elif kind == "ofd":
        fcntl.fcntl(fd, F_OFD_SETLKW, struct.pack("hhqqi4x", what, 0, 0, 8, 0))
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX if what == fcntl.F_WRLCK
                    else fcntl.LOCK_UN, 8, 0)
turns, longest = 0, 0
while time.monotonic() < end:
    begin = time.monotonic()
    lock(fcntl.F_WRLCK)
    longest = max(longest, time.monotonic() - begin)
    count = struct.unpack("<Q", os.pread(fd, 8, 0))[0]
    time.sleep(0.001)
    os.pwrite(fd, struct.pack("<Q", count + 1), 0)
    if turns % 3 == 2 and kind != "ofd":
        # A lock that nobody gives back goes with the open file.
        os.close(fd)
        fd = os.open(path, os.O_RDWR)
    else:
        lock(fcntl.F_UNLCK)
    turns += 1
print(json.dumps([turns, longest]))
"""

# Holds a lock until it is told to go on.
KEEPER = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)
fcntl.lockf(fd, fcntl.LOCK_UN, 2, 4)
print("held", flush=True)
sys.stdin.readline()
"""


class Locks(Succession):
    def mount(self):
        _, self.point, self.trace, mount = super().mount(
            filter_text="op IN { getlk setlk flock }", visibility="auto")
        self.file = os.path.join(self.point, "file")
        with open(self.file, "wb") as file:
            file.write(bytes(8))
        return mount

    def die(self, mount):
        let_daemon_die(mount, self.point)

    def tries(self, start, length):
        """Whether somebody else gets a lock on these bytes at once."""
        done = subprocess.run(
            [sys.executable, "-c",
             "import fcntl, os, sys\n"
             "fd = os.open(sys.argv[1], os.O_RDWR)\n"
             "fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, "
             "int(sys.argv[3]), int(sys.argv[2]))",
             self.file, str(start), str(length)], stderr=subprocess.PIPE,
            text=True, check=False)
        expect(done.returncode == 0 or "BlockingIOError" in done.stderr,
               done.stderr)
        return done.returncode == 0

    # --- cases

    def held(self):
        """What is held stays held, byte by byte; what is not does not."""
        mount = self.mount()
        keeper = self.suite.background(subprocess.Popen(
            [sys.executable, "-c", KEEPER, self.file], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True))
        expect_equal(keeper.stdout.readline(), "held\n", "it")
        own = os.open(self.file, os.O_RDWR)
        fcntl.flock(own, fcntl.LOCK_SH)
        for _ in range(3):
            self.die(mount)
            expect_equal([self.tries(0, 1), self.tries(3, 1), self.tries(4, 2),
                          self.tries(6, 4), self.tries(10, 5)],
                         [False, False, True, False, True],
                         "who else gets which bytes")
            other = os.open(self.file, os.O_RDWR)
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                expect(False, "two have it")
            except BlockingIOError:
                pass
            os.close(other)
        # They go with their process, and their file.
        keeper.kill()
        keeper.communicate()
        wait_until(lambda: self.tries(0, 10), "what it held is free")
        self.die(mount)
        expect(self.tries(0, 10), "it is held again")
        os.close(own)
        self.die(mount)
        other = os.open(self.file, os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        mount.unmount()
        self.suite.command("tracefs-verify", self.trace)

    def waited_for(self):
        """Who waits gets it, or is interrupted, whichever daemon is there."""
        mount = self.mount()
        keeper = self.suite.background(subprocess.Popen(
            [sys.executable, "-c", KEEPER, self.file], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True))
        keeper.stdout.readline()
        waits = ("import fcntl, os, signal, sys\n"
                 "signal.signal(signal.SIGALRM, lambda *_: sys.exit(7))\n"
                 "fd = os.open(sys.argv[1], os.O_RDWR)\n"
                 "fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)\n")
        waiting = [self.suite.background(subprocess.Popen(
            [sys.executable, "-c", waits, self.file])) for _ in range(3)]
        time.sleep(0.5)
        for _ in range(3):
            self.die(mount)
        waiting[0].send_signal(signal.SIGALRM)
        expect_equal(waiting[0].wait(PATIENCE_S), 7, "the interrupted one")
        expect_equal([one.poll() for one in waiting[1:]], [None, None],
                     "the others")
        keeper.communicate("go on\n")
        for one in waiting[1:]:
            expect_equal(one.wait(PATIENCE_S), 0, "one that waited")
        mount.unmount()
        self.suite.command("tracefs-verify", self.trace)

    def under_load(self):
        options = self.suite.options
        mount = self.mount()
        said = []
        with daemons_dying(mount, options.kills) as kills:
            for kind in ("posix", "flock", "ofd"):
                with open(self.file, "r+b") as file:
                    file.write(bytes(8))
                holders = [self.suite.background(subprocess.Popen(
                    [sys.executable, "-c", HOLDER, self.file, kind,
                     str(options.seconds)], stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True))
                    for _ in range(HOLDERS)]
                done = []
                for holder in holders:
                    out, errors = holder.communicate(
                        timeout=PATIENCE_S + options.seconds)
                    expect_equal(holder.returncode, 0,
                                 f"{kind}: {errors} {mount.messages()}")
                    done.append(json.loads(out))
                turns = sum(one[0] for one in done)
                with open(self.file, "rb") as file:
                    count = struct.unpack("<Q", file.read(8))[0]
                expect_equal(count, turns, f"{kind}: turns, one at a time")
                said.append((kind, turns, max(one[1] for one in done)))
        expect(kills[0] > 0, "nothing was killed")
        mount.unmount()
        self.suite.command("tracefs-verify", self.trace)
        got = collections.Counter()
        for event in self.suite.read(self.trace):
            if event["result"] < 0 or event["lock_type"] == UNLOCK:
                continue
            got[event["op"]] += 1
        wanted = {"setlk": said[0][1] + said[2][1], "flock": said[1][1]}
        for operation, count in wanted.items():
            expect_equal(got[operation], count, f"{operation} in the trace")
        return (f"{kills[0]} kills; " + ", ".join(
            f"{kind}: {turns} turns, the longest wait {longest:.2f} s"
            for kind, turns, longest in said))


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--kills", type=float, default=5, help="a second")


def main():
    suite = Suite("succession-locks", __doc__, arguments)
    cases = Locks(suite)
    suite.run("held", cases.held)
    suite.run("waited for", cases.waited_for)
    suite.run("under load", cases.under_load)
    suite.finish()


main()
