"""A file system below a mount that fails, waits or hangs as it is told: the
program fault_fs, whose rules fault_fs.cc explains."""

import contextlib
import os
import subprocess

from tracefs_harness import wait_until


class Rules:
    """What fault_fs is to do."""

    def __init__(self, path):
        self.path = path
        self.set()

    def set(self, *lines):
        # At once: it is read at any time.
        with open(self.path + "-new", "w", encoding="ascii") as out:
            out.write("".join(line + "\n" for line in lines))
        os.rename(self.path + "-new", self.path)


class FaultyStore:
    def __init__(self, below, point, rules, process):
        self.below = below  # without faults
        self.point = point
        self.rules = rules
        self.process = process


@contextlib.contextmanager
def faulty_store(suite, base):
    """fault_fs over a new folder of the suite. At the end mounts over it are
    stopped: they may wait for it."""
    below = suite.folder(base, "below", mode=0o777)
    point = suite.folder(base, "faulty")
    rules = Rules(suite.path(base, "rules"))
    process = suite.background(subprocess.Popen(
        [os.path.join(suite.bin, "..", "tests", "support", "fault_fs"), below,
         point, rules.path]))
    wait_until(lambda: os.path.ismount(point), "fault_fs")
    try:
        yield FaultyStore(below, point, rules, process)
    finally:
        rules.set()
        subprocess.run(["umount", "-l", point], check=False)
        suite.stop_mounts()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
