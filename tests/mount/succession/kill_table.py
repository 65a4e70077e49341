#!/usr/bin/env python3
"""Real work while daemons are killed at random moments (--survive yes): what
each piece of work must come to is known, and a line of a table says what it
met with.

  kill_table.py --bin build/release/bin                      for ctest
  kill_table.py --bin build/release/bin --seconds 60 --kills 10
"""

import glob
import os
import random
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import successions_of  # noqa: E402
from processes import (adopt_orphans, descendants_of, is_alive,  # noqa: E402
                       name_of)
from tracefs_harness import Suite, expect, wait_until  # noqa: E402
from works import Work  # noqa: E402

# In so many of the deaths the keeper is killed, too.
KEEPERS = 0.2


class Deaths(threading.Thread):
    """Kills daemons, and now and then their keepers."""

    def __init__(self, mount, a_second, seed):
        super().__init__(daemon=True)
        self.mount = mount
        self.gap_s = 1 / a_second
        self.random = random.Random(seed)
        self.daemons = 0
        self.keepers = 0
        self.spared = set()
        self.over = threading.Event()

    def named(self, name):
        for one in [self.mount.pid, *descendants_of(self.mount.pid),
                    *descendants_of(os.getpid())]:
            if (name_of(one) == name and is_alive(one)
                    and one not in self.spared):
                return one
        return None

    def kill(self, name):
        one = self.named(name)
        if one is None:
            return 0
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            return 0
        return 1

    def run(self):
        serving = 0
        in_vain = 0
        while not self.over.wait(self.random.uniform(0, 2 * self.gap_s)):
            now = successions_of(self.mount)
            in_vain = 0 if now > serving else in_vain + 1
            serving = now
            if in_vain > 2 and self.daemons > 0:
                continue  # the work must get on, too
            if (self.random.random() < KEEPERS
                    and self.named("tracefs-spare") is not None):
                self.keepers += self.kill("tracefs-keeper")
            self.daemons += self.kill("tracefs-mount")


class Caller(threading.Thread):
    """Makes folders, and knows which, and how long the longest call took."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = folder
        self.made = 0
        self.longest_s = 0.0
        self.error = None
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.005):
            begin = time.monotonic()
            try:
                os.mkdir(os.path.join(self.folder, f"call-{self.made}"))
            except OSError as e:
                self.error = e
                return
            self.longest_s = max(self.longest_s, time.monotonic() - begin)
            self.made += 1


class KillTable:
    def __init__(self, suite):
        self.suite = suite
        self.lines = []

    def work(self, name):
        options = self.suite.options
        source = self.suite.folder(name, "source", mode=0o777)
        point = self.suite.folder(name, "mnt")
        trace = self.suite.path(name, "trace")
        mount = self.suite.mount(
            source, point, ("", "STR_ALL",
                            f'compress; file = "{trace}" rotate_size = 64M'),
            transport="dev", visibility="auto", options=("--survive", "yes"))
        folder = os.path.join(point, "work")
        os.mkdir(folder)
        os.mkdir(os.path.join(point, "calls"))
        calm = self.suite.mount(
            self.suite.folder(name, "calm-source", mode=0o777),
            self.suite.folder(name, "calm"), self.suite.path(name, "calm-trace"),
            transport="dev", visibility="auto")
        caller = Caller(os.path.join(point, "calls"))
        deaths = Deaths(mount, options.kills, options.seed)
        deaths.spared = {calm.pid}
        caller.start()
        deaths.start()
        try:
            work = Work(options.seconds, os.path.join(source, "work"),
                        calm.point)
            done = getattr(work, name)(folder)
        finally:
            deaths.over.set()
            deaths.join()
            caller.over.set()
            caller.join()
        expect(caller.error is None, f"a call failed: {caller.error}")
        expect(deaths.daemons > 0, "nothing was killed")
        calm.unmount()
        subprocess.run(["umount", point], check=True)
        wait_until(lambda: deaths.named("tracefs-mount") is None
                   and deaths.named("tracefs-keeper") is None, "all end")
        parts = sorted(glob.glob(trace + "*"))
        self.suite.command("tracefs-verify", *parts)
        made = {}
        for event in self.suite.read(*parts, only="op = mkdir"):
            where = event.get("path", "").split("/")
            if where[-2:-1] == ["calls"] and event["result"] >= 0:
                made[where[-1]] = made.get(where[-1], 0) + 1
        wrong = [n for n in range(caller.made) if made.get(f"call-{n}") != 1]
        self.lines.append(
            f"| {name}, {done} | {deaths.daemons} | {deaths.keepers} | 0 | "
            f"{caller.longest_s:.2f} s | {len(wrong)} of {caller.made} |")
        expect(not wrong, f"not once in the trace: {wrong[:10]}")
        return self.lines[-1]


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=float, default=5,
                        help="a second, on average")


def main():
    suite = Suite("kills", __doc__, arguments)
    adopt_orphans()
    table = KillTable(suite)
    for name in ("git", "build", "sqlite", "locks", "postgresql", "pages",
                 "users", "maps"):
        suite.run(name, table.work, name)
    print("| work | deaths | of keepers | errors | longest call | "
          "calls lost |")
    print("|---|---:|---:|---:|---:|---:|")
    print("\n".join(table.lines), flush=True)
    suite.finish()


main()
