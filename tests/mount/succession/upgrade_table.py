#!/usr/bin/env python3
"""How long a call has to wait while another program takes over a mount, again
and again, under a load of small files. For people, not for ctest: the figures
are those of the machine.

  upgrade_table.py --bin build/release/bin --upgrades 100 --users 2
  upgrade_table.py --bin build/release/bin --known 20000
"""

import os
import random
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import PATIENCE_S, Suite, expect_equal  # noqa: E402


class User(threading.Thread):
    """As Postmark does it: makes, appends to, reads and removes files."""

    def __init__(self, folder, seed, over):
        super().__init__()
        self.folder = folder
        self.chance = random.Random(seed)
        self.over = over
        self.calls = 0
        # Of each call that took more than 10 ms: when it began, and how long.
        self.slow = []
        self.errors = []

    def timed(self, call, *arguments):
        begin = time.monotonic()
        result = call(*arguments)
        took = time.monotonic() - begin
        self.calls += 1
        if took > 0.01:
            self.slow.append((begin, took))
        return result

    def run(self):
        os.mkdir(self.folder)
        data = self.chance.randbytes(10_000)
        names = {}
        try:
            while not self.over.is_set():
                name = os.path.join(self.folder,
                                    f"f{self.chance.randrange(100)}")
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
                fd = self.timed(os.open, name, flags)
                piece = data[:self.chance.randrange(500, 5_000)]
                self.timed(os.write, fd, piece)
                names[name] = names.get(name, b"") + piece
                if self.timed(os.pread, fd, 1 << 20, 0) != names[name]:
                    self.errors.append(f"{name}: other bytes")
                self.timed(os.close, fd)
                if len(names[name]) > 50_000:
                    self.timed(os.unlink, name)
                    del names[name]
        except OSError as error:
            self.errors.append(str(error))


def arguments(parser):
    parser.add_argument("--upgrades", type=int, default=100)
    parser.add_argument("--users", type=int, default=2)
    parser.add_argument("--known", type=int, default=0,
                        help="files that the kernel knows besides")


def main():
    suite = Suite("upgrade-table", __doc__, arguments)
    options = suite.options

    def measure():
        source = suite.folder("source", mode=0o777)
        point = suite.folder("mnt")
        mount = suite.mount(
            source, point, ("", "STR_ALL", f'file = "{suite.path("trace")}"'),
            transport="dev", visibility="auto", options=("--survive", "yes"))
        for i in range(options.known):
            with open(os.path.join(point, f"known{i}"), "w",
                      encoding="ascii"):
                pass
        over = threading.Event()
        users = [User(os.path.join(point, f"u{i}"), i, over)
                 for i in range(options.users)]
        for user in users:
            user.start()
        spans = []
        for _ in range(options.upgrades):
            begin = time.monotonic()
            done = subprocess.run(
                [os.path.join(suite.bin, "tracefs-ctl"), point, "upgrade"],
                capture_output=True, text=True, timeout=PATIENCE_S,
                check=False)
            expect_equal(done.returncode, 0, done.stderr)
            spans.append((begin, time.monotonic()))
            time.sleep(0.2)
        over.set()
        for user in users:
            user.join()
        mount.unmount()
        expect_equal([error for user in users for error in user.errors], [],
                     "errors")
        # The longest call that each upgrade has held up.
        waits = sorted(max([0.0] + [took for user in users
                                    for at, took in user.slow
                                    if begin <= at + took and at <= end])
                       for begin, end in spans)
        whole = sorted(end - begin for begin, end in spans)

        def at(times, part):
            return times[min(len(times) - 1, int(len(times) * part))] * 1000
        return (f"{len(spans)} upgrades, {sum(user.calls for user in users)} "
                f"calls, load {os.getloadavg()[0]:.0f}; the longest call of "
                f"each: median {at(waits, 0.5):.0f} ms, nine of ten within "
                f"{at(waits, 0.9):.0f} ms, all within {at(waits, 1):.0f} ms; "
                f"from the command to its answer: median "
                f"{at(whole, 0.5):.0f} ms")

    suite.run("upgrades under load", measure)
    suite.finish()


main()
