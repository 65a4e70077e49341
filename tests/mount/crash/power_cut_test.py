#!/usr/bin/env python3
"""What is left when the power goes, whenever it goes: docs/durability.md.

Each case has our commands do something under strace. Of what they wrote and
synced, every state is made that a power cut may legally leave (power_cut.py),
or a sample where there are too many, and looked at: what somebody was told to
be safe is there, no key is used twice, files that are replaced are whole.

  power_cut_test.py --bin build/release/bin                     seconds, for ctest
  power_cut_test.py --bin build/release/bin --states 40 --table    the table
"""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
import disk_log  # noqa: E402
import power_cut  # noqa: E402
from power_cut_cases import CASES  # noqa: E402
from tracefs_harness import (PATIENCE_S, Failure, Suite,  # noqa: E402
                             expect, expect_equal)


# --- Recording and looking

def record(case):
    """Plays a case under strace; the log of it."""
    prefix = os.path.join(case.base, "strace", "log")
    os.mkdir(os.path.dirname(prefix))
    before = power_cut.tree_of(case.disk)
    played = subprocess.run(
        [*disk_log.STRACE, "-o", prefix, "-e",
         "trace=" + ",".join(sorted(disk_log.CALLS)), sys.executable, "-B",
         os.path.abspath(__file__), "--play", case.title, case.base, case.bin],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        # A sanitizer that looks for leaks cannot be traced.
        env={**os.environ, "ASAN_OPTIONS": ":".join(
            [os.environ.get("ASAN_OPTIONS", ""), "detect_leaks=0"])})
    expect(played.returncode == 0,
           f"the recording failed:\n{played.stdout}{played.stderr}")
    log = disk_log.DiskLog(case.disk, prefix, before, case.told)
    # Both tell of the same files, or the model is of no use.
    for step in log.steps:
        step.durable = step.durable or step.kind not in ("sync", "mark")
    whole = power_cut.Leaving(
        [s for s in log.steps if s.kind not in ("sync", "mark")],
        power_cut.Choice(1, 1, 1, 1)).tree(log.tree)
    expect_equal(power_cut.difference(whole, power_cut.tree_of(case.disk)), [],
                 "files that were followed wrongly")
    for step in log.steps:
        step.durable = step.before
    return log


def play(title, base, binaries):
    CASES[title](base, binaries).play()


def cut(suite, title):
    base = suite.folder(title.replace(" ", "-"))
    os.mkdir(os.path.join(base, "disk"), 0o700)
    case = CASES[title](base, suite.bin)
    case.title = title
    case.prepare()
    log = record(case)
    operations = sum(s.kind != "mark" for s in log.steps)
    tried = wrong = 0
    first = None
    left = os.path.join(base, "left")
    cuts = power_cut.Cuts(log, suite.options.seed, suite.options.states,
                          suite.options.every)
    for tree, marks in cuts.states():
        power_cut.put(tree, left)
        tried += 1
        try:
            case.check(left, marks)
        except Failure as failure:
            wrong += 1
            first = first or failure
    expect(tried > 2, f"only {tried} states: {operations} steps recorded")
    whole = f"{cuts.whole} of {cuts.moments}"
    suite.table.append(
        f"| {title} | {operations} | {tried} | {whole} | {wrong} |")
    if not suite.options.keep:
        shutil.rmtree(base)
    expect(not wrong, f"{wrong} of {tried} states are wrong, first:\n{first}")
    return f"{operations} operations, {tried} states, all of {whole} moments"


def arguments(parser):
    parser.add_argument("--fleet-disk", required=True)
    parser.add_argument("--states", type=int, default=1,
                        help="drawn for each moment, beside seven that are "
                             "always looked at")
    parser.add_argument("--every", type=int, default=200, metavar="N",
                        help="all states of a moment that has no more than N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true")


def main():
    if sys.argv[1:2] == ["--play"]:
        play(*sys.argv[2:])
        return
    suite = Suite("power_cut", __doc__, arguments)
    if shutil.which("strace") is None:
        suite.skip_all("strace is not installed")
    os.environ["FLEET_DISK"] = suite.options.fleet_disk
    suite.table = []
    for title in CASES:
        suite.run(title, cut, suite, title)
    if suite.options.table:
        print("| case | operations | states | moments with all | wrong |\n"
              "|---|---|---|---|---|")
        print("\n".join(suite.table))
    suite.finish()


if __name__ == "__main__":
    main()
