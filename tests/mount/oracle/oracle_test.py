#!/usr/bin/env python3
"""Seven pieces of real work, each traced by strace and by a mount in one run.

What strace saw, by call, thread, path and bytes, is added up beside what the
trace says (account.py). What people ask of the trace is computed by Python from
its JSON Lines, beside what the commands answer (questions.py). fidelity_test
compares every request of small pieces of work; this one compares large ones. A
replay leaves the same tree, by digests of Python's.
"""

import collections
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "fidelity"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
import questions  # noqa: E402
import strace_log  # noqa: E402
from account import StraceAccount, TraceAccount  # noqa: E402
from command_checks import Commands  # noqa: E402
from tracefs_harness import Failure, Skip, Suite, expect  # noqa: E402
from trees import expect_same_tree, tree_digest  # noqa: E402
from workloads import WORKS  # noqa: E402

WORK_S = 900
SHOWN = 12


class Run:
    """One piece of work, recorded twice."""

    def __init__(self, suite, work):
        name = work.name.replace(" ", "-")
        self.outside = suite.folder(name, "outside")
        self.source = suite.folder(name, "source")
        self.again = suite.folder(name, "again")
        self.point = suite.folder(name, "mnt")
        self.trace = suite.path(name, "trace")
        log = suite.path(name, "strace")
        work.before(self.outside, suite.options)
        mount = suite.mount(self.source, self.point,
                            ("", "STR_ALL | STR_REPLAY | STR_DATA",
                             f'file = "{self.trace}" buf = 4M'),
                            visibility=suite.options.visibility)
        output = suite.path(name, "output")
        with open(output, "wb") as out:
            process = suite.background(subprocess.Popen(
                ["strace", *strace_log.STRACE_OPTIONS, "-o", log,
                 "-e", strace_log.STRACE_CALLS, "--", "/bin/bash", "-euc",
                 work.script, "bash", self.outside], cwd=self.point,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                umask=0o022, env={**os.environ, "LC_ALL": "C",
                                  "CCACHE_DISABLE": "1"}))
            try:
                status = process.wait(WORK_S)
            except subprocess.TimeoutExpired:
                mount.kill()
                process.kill()
                raise Failure(f"the work took over {WORK_S} s") from None
        with open(output, "rb") as out:
            expect(status == 0, f"the work ended with {status}:\n"
                   + out.read().decode("utf-8", "replace")[-2000:])
        mount.unmount()
        ours = {process.pid, *mount.helpers}
        self.events = [e for e in suite.read(self.trace)
                       if e.get("pid") not in ours]
        calls = strace_log.read_log(log)
        expect(calls and self.events, "nothing was recorded")
        self.calls = len(calls)
        self.seen = StraceAccount(self.point, calls, self.point)
        self.told = TraceAccount(self.events)


def differences(title, seen, told, leave=lambda key: False):
    """Lines about keys whose sums differ."""
    wrong = []
    for key in sorted(set(seen) | set(told), key=repr):
        if seen[key] != told[key] and not leave(key):
            wrong.append(f"  {title} {key}: strace {seen[key]}, "
                         f"trace {told[key]}")
    return wrong


def all_differences(seen, told):
    wrong = differences("bytes", seen.data, told.data,
                        lambda key: key[1] == "read"
                        and (key[0], key[2]) in seen.by_pages)
    wrong += differences("copied", seen.copies, told.copies)
    return wrong + differences("calls", seen.names, told.names)


def compare(run, visibility):
    """Returns how many sums went by another name of the same file, which the
    kernel's cache of names causes where names are kept."""
    wrong = all_differences(run.seen, run.told)
    other_names = 0
    if visibility != "exact" and wrong:
        other_names = len(wrong)
        linked = run.seen.linked
        wrong = all_differences(run.seen.under_one_name(linked),
                                run.told.under_one_name(linked))
    expect(not wrong, f"{len(wrong)} sums differ:\n" + "\n".join(wrong[:SHOWN]))
    return other_names


class Ask(Commands):
    """Questions to one trace, answered with exact figures."""

    def __init__(self, suite, trace):
        super().__init__(suite.bin, suite.scratch)
        self.trace = trace

    def rows(self, keys, values, where=None):
        chosen = ["--filter", where] if where else []
        text = self.run("tracefs-dump", *chosen, "--by", keys, "--values",
                        values, "--top", "all", "--format", "jsonl",
                        self.trace)
        return [json.loads(line) for line in text.splitlines()]

    def tables(self, question):
        text = self.run("tracefs-report", question, "--format", "json",
                        "--top", "all", self.trace)
        return [t["rows"] for t in json.loads(text)["tables"]]


def answer(suite, run):
    model = questions.Model(
        [e for e in suite.read(run.trace) if "op" in e])
    wrong = []
    for question in questions.ALL:
        try:
            question(model, Ask(suite, run.trace))
        except AssertionError as error:
            wrong.append(f"{question.__name__}: {error}")
    expect(not wrong, "answers that differ:\n" + "\n".join(wrong))


def replay(suite, run):
    done = suite.tool("tracefs-replay", run.trace, "--root", run.again,
                      "--format", "json", "--users", "recorded", "--set-id",
                      timeout=WORK_S)
    expect(done.returncode == 0, f"the replay ended with {done.returncode}:\n"
           f"{done.stdout[-1500:]}{done.stderr[-500:]}")
    expect_same_tree(tree_digest(run.again, times=False),
                     tree_digest(run.source, times=False), "the replayed tree")


def case(suite, work):
    why = work.missing(suite.options)
    if why:
        return Skip(why)
    run = Run(suite, work)
    other_names = compare(run, suite.options.visibility)
    answer(suite, run)
    replay(suite, run)
    ops = collections.Counter(e["op"] for e in run.events)
    if not suite.options.keep:
        suite.remove(work.name.replace(" ", "-"))
    return (f"{run.calls} calls, {len(run.events)} operations, "
            f"{sum(run.seen.data.values())} bytes, "
            f"{ops['copy_file_range']} copies, "
            f"{other_names} sums under another name of the file")


def options(parser):
    parser.add_argument("--visibility", default="exact",
                        choices=("exact", "auto", "fast"))
    parser.add_argument("--project", metavar="DIR",
                        help="source with a configure script")


def main():
    suite = Suite("oracle", __doc__, options)
    if shutil.which("strace") is None:
        suite.run("oracle", lambda: Skip("strace is not installed"))
        suite.finish()
    for work in WORKS:
        suite.run(work.name, case, suite, work)
    suite.finish()


if __name__ == "__main__":
    main()
