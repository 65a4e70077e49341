"""What the suites of this folder share: configs as text, the stream as oracle."""

import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
# pylint: disable=wrong-import-position
from tracefs_harness import Suite, expect_equal  # noqa: E402


class CountingSuite(Suite):
    """Mounts with configs given as text."""

    def config(self, *tracers):
        path = self.path(f"config-{self._mount_count}")
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(tracers))
        return path


def work(point, files=40):
    """Some of everything, with failures."""
    for i in range(files):
        folder = os.path.join(point, f"d{i % 3}", "deep")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"f{i}.{'ch'[i % 2]}")
        with open(path, "wb", buffering=0) as out:
            for _ in range(i % 4 + 1):
                out.write(b"x" * (100 * i))
        with open(path, "rb", buffering=0) as content:
            while content.read(4096):
                pass
        try:
            os.stat(path + ".missing")
        except FileNotFoundError:
            pass
        if i % 5 == 0:
            os.unlink(path)
        elif i % 7 == 1:
            os.rename(path, path + ".moved")
    for folder in (point, os.path.join(point, "d1"),
                   os.path.join(point, "dotted.h")):
        os.makedirs(folder, exist_ok=True)
        unnamed = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(unnamed, b"x")
        os.close(unnamed)
    os.listdir(point)


def tally(events, key):
    """Sums by key of what a stream recorded: [count, errors, bytes]."""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for event in events:
        entry = sums[key(event)]
        entry[0] += 1
        entry[1] += "errno" in event
        if event["op"] in ("read", "write", "copy_file_range"):
            entry[2] += max(event["result"], 0)
    return dict(sums)


def expect_same_counts(counted, recorded, what):
    for key in sorted(set(counted) | set(recorded), key=str):
        expect_equal(counted.get(key), recorded.get(key), f"{what}, {key}")
