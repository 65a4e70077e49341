"""What suites of commands share: they run the commands of one build tree on
traces and compare what these answer with an independent computation. A suite is a
list of checks, functions that take a world and raise what does not hold."""

import os
import re
import subprocess
import sys
import traceback

SKIPPED = 77  # as the exit status of a suite
# What is shown of values that differ.
MOST = 1500


class Failure(Exception):
    """An expectation that does not hold; the text says which."""


class Skip(Exception):
    """Raised by a check that cannot run here; the text says why."""


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(map(str, what))[:2 * MOST])


def time_at_depth(spans):
    """How long so many of these (begin, duration) overlapped, by how many."""
    edges = sorted([(at, 1) for at, _ in spans] +
                   [(at + duration, -1) for at, duration in spans])
    depth, last, times = 0, 0, {}
    for at, step in edges:
        if depth and at != last:
            times[depth] = times.get(depth, 0) + at - last
        depth += step
        last = at
    return times


def expect_equal(a, b, what=""):
    if a != b:
        raise Failure(f"{what}\n  answered: {str(a)[:MOST]}\n"
                      f"  expected: {str(b)[:MOST]}")


class Commands:
    """The commands in a folder, run in another one, in a locale and a time zone
    that do not depend on the machine."""

    def __init__(self, commands, folder):
        self.bin = os.path.abspath(commands)
        self.folder = folder

    def questions(self):
        """Ready questions that take nothing but traces, of --help."""
        found = re.findall(r"^  ([a-z][a-z-]*) +[^A-Z\s].*\(text\b.*\)$",
                           self.run("tracefs-report", "--help"), re.M)
        expect("summary" in found and "who" not in found, found)
        return found

    def finished(self, command, *words, env=None, **more):
        """What became of a command: its status, output and errors, as bytes."""
        return subprocess.run(
            [os.path.join(self.bin, command), *words], capture_output=True,
            check=False, cwd=self.folder,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", **(env or {})},
            **more)

    def run(self, command, *words, status=0, env=None):
        """The output of a command that ends with that status; its errors, too,
        where that says there are some."""
        done = self.finished(command, *words, env=env)
        if done.returncode != status:
            raise Failure(f"{command} {words}: {done.returncode}\n"
                          f"{done.stdout.decode()[:MOST]}"
                          f"{done.stderr.decode()}")
        return done.stdout.decode() + (done.stderr.decode() if status > 1
                                       else "")


def run_checks(checks, world):
    """Runs them, and says of each how it went. `world`: a function that makes a
    world, called for each. Returns the exit status of the suite."""
    failed = skipped = 0
    for check in checks:
        try:
            check(world())
            print(f"ok      {check.__name__}", flush=True)
        except Skip as why:
            skipped += 1
            print(f"skipped {check.__name__}: {why}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED  {check.__name__}", flush=True)
            traceback.print_exc(limit=-3, file=sys.stdout)
    if failed:
        return 1
    return SKIPPED if skipped and skipped == len(checks) else 0
