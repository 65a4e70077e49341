#!/usr/bin/env python3
"""Random calls have the same results, and leave the same tree behind, in the
backing directory and through the mount.

  random_test.py --bin build/release/bin                     seconds, for ctest
  random_test.py --bin build/release/bin --runs 100 --seed 7 --calls 5000
"""

import os
import random
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (PATIENCE_S, TRANSPORTS,  # noqa: E402
                             VISIBILITIES, Failure, Suite, expect,
                             expect_equal)
from trees import expect_same_tree, tree_digest  # noqa: E402

# What decides how the kernel does reads and writes, and what it keeps.
FILTERS = {
    "all": "",
    "nothing": "cuid = 4000000000 AND op = fsync",
    "names": "op IN { lookup create unlink rename }",
    "one user's data": "cuid = 61003 AND op IN { read write }",
    "data but no maps": "op IN { read write } AND NOT mapped",
    # They are renamed while they are open.
    "data of some files": "op IN { read write } AND name IN { a c e }",
}


def options(parser):
    parser.add_argument("--runs", type=int, default=2, metavar="N",
                        help="of each case (default: 2)")
    parser.add_argument("--calls", type=int, default=1000, metavar="N",
                        help="of each run (default: 1000)")
    parser.add_argument("--seed", type=int,
                        default=random.randrange(1_000_000), metavar="N",
                        help="of the first run (default: a new one)")


def run(suite, folder, seed):
    """What calls.py says of itself in `folder`."""
    process = suite.background(subprocess.Popen(
        [sys.executable, "-B", os.path.join(HERE, "calls.py"), folder,
         str(seed), str(suite.options.calls)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"seed {seed}: a call hangs") from None
    expect_equal(process.returncode, 0, f"seed {seed}: {output[-2000:]}")
    return output.splitlines()


def compare(suite, name, visibility, transport, filter_text, served=False):
    """`served`: over a file system that asks a server (a mount of ours), whose
    every call may hang."""
    with suite.tmpfs("source", size="512m") as source:
        point = suite.folder("mnt")
        lower = None
        if served:
            lower = suite.mount(source, suite.folder("lower"),
                                (FILTERS["nothing"], "STR_ALL",
                                 f'file = "{suite.path(name)} lower"'),
                                visibility="exact", transport="dev")
            source = lower.point
        trace = suite.path(f"{name} trace")
        mount = suite.mount(source, point, (filter_text, "STR_ALL",
                                            f'file = "{trace}"'),
                            visibility=visibility, transport=transport)
        for seed in range(suite.options.seed,
                          suite.options.seed + suite.options.runs):
            folders = [os.path.join(source, f"{where}-{seed}")
                       for where in ("direct", "mounted")]
            for folder in folders:
                os.mkdir(folder)
                os.chmod(folder, 0o777)
            want = run(suite, folders[0], seed)
            got = run(suite, os.path.join(point, os.path.basename(folders[1])),
                      seed)
            for ours, theirs in zip(got, want):
                expect_equal(ours, theirs, f"seed {seed}")
            expect_equal(len(got), len(want), f"seed {seed}: lines")
            expect_same_tree(*(tree_digest(f, times=False)
                               for f in reversed(folders)),
                             f"seed {seed}: below the mount")
            for folder in folders:
                shutil.rmtree(folder)
        mount.unmount()
        os.remove(trace)
        if lower:
            lower.unmount()
            os.remove(f"{suite.path(name)} lower")
    return (f"{suite.options.runs} times {suite.options.calls} calls from seed "
            f"{suite.options.seed}")


def main():
    suite = Suite("random", __doc__, options)
    expect(suite.options.runs > 0 and suite.options.calls > 0,
           "--runs and --calls take 1 or more")
    for transport in TRANSPORTS:
        for visibility in VISIBILITIES:
            for name, filter_text in FILTERS.items():
                title = f"{visibility} over {transport}, {name} traced"
                suite.run(title, compare, suite, title, visibility, transport,
                          filter_text)
            title = f"{visibility} over {transport}, over another mount"
            suite.run(title, compare, suite, title, visibility, transport,
                      FILTERS["all"], True)
    suite.finish()


if __name__ == "__main__":
    main()
