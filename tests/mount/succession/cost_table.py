#!/usr/bin/env python3
"""What --survive yes costs when nobody dies: processor time of a loop of small
files (made, appended to, read, removed), by the caller and by the daemon, on a
mount with and on one without, by turns. For people, not for ctest: the figures
are those of the machine.

  cost_table.py --bin build/release/bin --turns 20 --files 500
"""

import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemon_of  # noqa: E402
from tracefs_harness import Suite  # noqa: E402


def processor_s(pid):
    """Of all its threads, in nanoseconds where the kernel says so."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat",
                      encoding="ascii") as file:
                total += int(file.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9


def loop(folder, files, seed):
    """As Postmark does it: sizes from 500 bytes to 10 KB."""
    chance = random.Random(seed)
    data = chance.randbytes(10_000)
    names = [os.path.join(folder, f"f{i}") for i in range(files)]
    for name in names:
        with open(name, "wb") as file:
            file.write(data[:chance.randrange(500, 10_000)])
    for _ in range(2 * files):
        name = chance.choice(names)
        if chance.random() < 0.5:
            with open(name, "rb") as file:
                file.read()
        else:
            with open(name, "ab") as file:
                file.write(data[:chance.randrange(500, 5_000)])
    for name in names:
        os.unlink(name)


def arguments(parser):
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--files", type=int, default=500)


def main():
    suite = Suite("survival-cost", __doc__, arguments)
    options = suite.options
    def measure():
        mounts = {}
        for kind in ("no", "yes"):
            source = suite.folder(kind, "source", mode=0o777)
            point = suite.folder(kind, "mnt")
            mounts[kind] = (point, suite.mount(
                source, point,
                ("", "STR_ALL", f'file = "{suite.path(kind, "trace")}"'),
                transport="dev", visibility="auto",
                options=("--survive", kind)))
        spent = {kind: [] for kind in mounts}
        for turn in range(options.turns):
            for kind in sorted(mounts, reverse=turn % 2 == 1):
                point, mount = mounts[kind]
                daemon = daemon_of(mount) or mount.pid
                before = processor_s(daemon)
                own = time.process_time()
                loop(point, options.files, turn)
                spent[kind].append((processor_s(daemon) - before,
                                    time.process_time() - own))
        lines = []
        for which, what in ((0, "daemon"), (1, "caller")):
            without, with_it = (
                statistics.median(one[which] for one in spent[kind])
                for kind in ("no", "yes"))
            ratios = sorted(a[which] / b[which] for a, b in
                            zip(spent["yes"], spent["no"]))
            lines.append(
                f"{what} {without * 1000:.0f} -> {with_it * 1000:.0f} ms "
                f"(x {statistics.median(ratios):.3f}, half of the turns "
                f"{ratios[len(ratios) // 4]:.3f} to "
                f"{ratios[len(ratios) * 3 // 4]:.3f})")
        for _, mount in mounts.values():
            mount.unmount()
        return "; ".join(lines)

    suite.run("processor time", measure)
    suite.finish()


main()
