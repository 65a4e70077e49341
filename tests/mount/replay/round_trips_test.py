#!/usr/bin/env python3
"""What programs do, recorded once and replayed on each file system: every result
is the recorded one or differs for a known reason, and the tree in the end is the
recorded one, by a walk of this suite's own (trees.py).

  round_trips_test.py --bin build/release/bin [--only NAME]

Some seconds' worth on tmpfs and ext4; with TRACEFS_SOAK=1 all workloads on ext4,
XFS, btrfs and tmpfs.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402
from trees import expect_same_tree, tree_digest  # noqa: E402
from workloads import AS_IT_WAS, WORKLOADS  # noqa: E402

SOAK = os.environ.get("TRACEFS_SOAK") == "1"
KINDS = ("tmpfs", "ext4", "xfs", "btrfs") if SOAK else ("tmpfs", "ext4")
# Those that take seconds.
SLOW = {"autotools", "postgresql", "random calls", "cmake", "threads",
        "make", "sqlite wal"}


def in_tree(path):
    return path == "lost+found"


class RoundTrips:
    def __init__(self, suite):
        self.suite = suite
        self.targets = {}

    def record(self, script):
        """Runs it in a traced folder; the plan, and the tree in the end."""
        suite = self.suite
        suite.remove("recorded")
        folder = suite.folder("recorded")
        trace, plan = suite.path("trip.trace"), suite.path("trip.plan")
        for path in (trace, plan):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        # A database writes more at once than a small block holds.
        mount = suite.mount(folder, folder, (
            "", "STR_REPLAY | STR_DATA", f'file = "{trace}" buf = 4194304'))
        done = subprocess.run(
            ["sh", "-c", "set -e\n" + script], cwd=folder, check=False,
            capture_output=True, env=dict(os.environ, SOURCE=os.getcwd()))
        expect(done.returncode == 0,
               f"the workload: {done.stdout[-500:]}{done.stderr}")
        mount.unmount()
        suite.command("tracefs-replay", trace, "--plan", plan)
        return plan, tree_digest(folder, times=False)

    def replay(self, plan, want, target):
        folder = os.path.join(target, "again")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        done = self.suite.tool("tracefs-replay", plan, "--root", folder,
                               "--format", "json", *AS_IT_WAS)
        expect(done.stdout, done.stderr)
        report = json.loads(done.stdout)
        wrong = {key: report[key] for key in (
            "differs", "mismatches", "initial", "end", "untimed_failed")}
        expect_equal(
            (report["differs"], report["end"]["differences"],
             report["initial"]["failed"]), (0, 0, 0),
            json.dumps(wrong, indent=1)[:3000])
        expect(report["good"], f"not as recorded: made up {report['made_up']}, "
               f"not done {report['unplaced_changes']} changes")
        expect_same_tree(tree_digest(folder, times=False, exclude=in_tree),
                         want, "the replayed tree")
        shutil.rmtree(folder)
        return report

    def trip(self, name):
        programs, script = WORKLOADS[name]
        for program in programs:
            if shutil.which(program) is None:
                raise Skip(f"{program} is not installed")
        plan, want = self.record(script)
        explained, failed = [], []
        for kind, target in self.targets.items():
            try:
                report = self.replay(plan, want, target)
                explained.append(str(report["explained"]))
            except Exception as error:  # pylint: disable=broad-except
                failed.append(f"on {kind}: {error}")
        expect(not failed, "\n".join(failed))
        return (f"{report['operations']} operations; explained: "
                f"{' '.join(explained)}")


def main():
    suite = Suite("round-trips", __doc__.splitlines()[0])
    trips = RoundTrips(suite)
    with contextlib.ExitStack() as stack:
        for kind in KINDS:
            why = suite.no_file_system(kind)
            if why:
                print(f"[  SKIPPED ] {kind}: {why}")
            elif kind == "tmpfs":
                trips.targets[kind] = stack.enter_context(
                    suite.tmpfs("on-tmpfs", size="512m"))
            else:
                trips.targets[kind] = stack.enter_context(
                    suite.loop(f"on-{kind}", kind, 768 << 20))
        for name in WORKLOADS:
            if name in SLOW and not SOAK:
                print(f"[  SKIPPED ] {name}: only with TRACEFS_SOAK=1")
            else:
                suite.run(f"{name} on {', '.join(trips.targets)}", trips.trip,
                          name)
    suite.finish()


main()
