#!/usr/bin/env python3
"""The answers of tracefs-report and of tracefs-dump --by against sums that Python
makes of the JSON Lines of the same trace, and against workloads whose answer is
known because they were made so. Traces are recorded with tracefs-run where FUSE
is there; what needs none uses the golden traces."""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from command_checks import (Commands, Failure, Skip, expect,  # noqa: E402
                            expect_equal, run_checks)

GOLDEN = os.path.join(os.path.dirname(HERE), "golden", "v1")
WORK = r"""
import os, sys
os.chdir(sys.argv[1])
# Three files that live to the end, five that do not.
for i in range(8):
    with open(f"life{i}", "wb") as f: f.write(b"x" * 1000)
for i in range(5): os.unlink(f"life{i}")
# Written, and replaced by another one.
with open("atomic", "wb") as f: f.write(b"1" * 10)
with open("atomic.new", "wb") as f: f.write(b"2" * 20)
os.rename("atomic.new", "atomic")
# Made afresh under the same name.
for i in range(3):
    with open("lock", "wb") as f: f.write(b"mine")
    os.unlink("lock")
# Rewritten by another process.
with open("shared", "wb") as f: f.write(b"a" * 100)
if os.fork() == 0:
    with open("shared", "r+b") as f: f.write(b"b" * 100)
    os._exit(0)
os.wait()
# Copied: in two pieces, to a file that another process has written, and within
# a directory. None of it rewrites the source.
os.mkdir("copies")
def copy(source, target, size, at=0):
    with open(source, "rb") as a, open(target, "r+b" if at else "wb") as b:
        os.copy_file_range(a.fileno(), b.fileno(), size, at, at)
copy("life7", "copies/life", 600)
copy("life7", "copies/life", 400, 600)
if os.fork() == 0:
    copy("copies/life", "copies/again", 1000)
    os._exit(0)
os.wait()
# Looked for in vain.
for i in range(7): os.path.exists(f"absent{i}")
"""


class World(Commands):
    def __init__(self, commands, folder):
        super().__init__(commands, folder)
        self.work_trace = None

    def operations(self, trace, *words):
        return [o for o in map(json.loads, self.run(
            "tracefs-dump", "--format", "jsonl", *words, trace).splitlines())
            if "op" in o and "alarm" not in o and not o.get("before")]

    def rows(self, trace, *words):
        return [json.loads(line) for line in self.run(
            "tracefs-dump", "--format", "jsonl", *words, trace).splitlines()]

    def report(self, trace, *words):
        text = self.run("tracefs-report", *words[:1], *words[1:], "--format",
                        "json", trace)
        return {t["title"]: t for t in json.loads(text)["tables"]}

    def golden(self, name):
        return os.path.join(GOLDEN, name + ".trace")

    def work(self):
        if self.work_trace is None:
            source = os.path.join(self.folder, "src")
            os.mkdir(source)
            script = os.path.join(self.folder, "work.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write(WORK)
            trace = os.path.join(self.folder, "work.trace")
            made = subprocess.run(
                [os.path.join(self.bin, "tracefs-run"), "-o", trace, "--src",
                 source, "--", sys.executable, "-B", script, source],
                capture_output=True, check=False, cwd=source)
            if made.returncode != 0:
                print("no workload: " + made.stderr.decode()[-300:])
                self.work_trace = ""
            else:
                self.work_trace = trace
        return self.work_trace


def moved(o):
    if o["op"] in ("read", "write", "copy_file_range"):
        return max(o.get("result", 0), 0)
    return 0


def check_groups(world):
    """Each --by equals the same sums over JSON Lines."""
    traces = [world.golden("every_operation")]
    if world.work():
        traces.append(world.work())
    keys = {"op": lambda o: o["op"], "cname": lambda o: o.get("comm"),
            "errno": lambda o: o.get("errno"), "cpid": lambda o: o.get("pid"),
            "path": lambda o: o.get("path")}
    for trace in traces:
        operations = world.operations(trace)
        for key, value in keys.items():
            sums = collections.defaultdict(lambda: [0, 0, 0, 0])
            for o in operations:
                s = sums[value(o)]
                s[0] += 1
                s[1] += "errno" in o
                s[2] += moved(o)
                s[3] += o.get("dur", 0)
                if key == "path" and o["op"] == "copy_file_range" and \
                        "errno" not in o:
                    sums[o.get("path2")][2] += moved(o)
            found = {r.get(key): [r["count"], r["errors"], r["bytes"],
                                  r.get("time_ns", 0)]
                     for r in world.rows(trace, "--by", key)}
            expect_equal(found, dict(sums), f"{trace} by {key}")


def check_totals(world):
    """What is cut off is in `other`; windows add up."""
    trace = world.golden("every_operation")
    every = sum(r["count"] for r in world.rows(trace, "--by", "op"))
    for top in ("1", "5", "37", "1000"):
        rows = world.rows(trace, "--by", "op", "--top", top)
        expect_equal(sum(r["count"] for r in rows), every, f"--top {top}")
    parts = 0
    for window in (("--to", "+11ms"), ("--from", "+11ms", "--to", "50%"),
                   ("--from", "50%")):
        parts += sum(r["count"] for r in
                     world.rows(trace, "--by", "op", *window))
    expect_equal(parts, every, "windows")
    rows = world.rows(trace, "--every", "10ms", "--by", "op", "--top", "2")
    expect_equal(sum(r["count"] for r in rows), every, "--every")
    hist = world.rows(trace, "--hist", "latency")
    expect_equal(sum(r["count"] for r in hist), every, "--hist")


def check_nothing(world):
    """Empty answers, and what was only counted."""
    trace = world.golden("every_operation")
    expect_equal(world.rows(trace, "--by", "op", "--filter", "cuid = 4040404"),
                 [], "nothing")
    for question in world.questions():
        world.run("tracefs-report", question, "--filter", "cuid = 4040404",
                  trace)
        printed = world.run("tracefs-report", question, "--print")
        query = os.path.join(world.folder, "a.query")
        with open(query, "w", encoding="utf-8") as file:
            file.write(printed)
        expect_equal(world.run("tracefs-report", "--query", query, trace),
                     world.run("tracefs-report", question, trace),
                     question + " by its own query")


def check_hostile(world):
    """Names in no form of output break a line."""
    trace = world.golden("awkward_names")
    names = {o["path"] for o in world.operations(trace) if "path" in o}
    for form in ("text", "csv", "md"):
        text = world.run("tracefs-report", "files", "--format", form,
                         "--top", "all", trace)
        for c in text:
            if c != "\n" and (ord(c) < 32 or ord(c) == 127 or
                              0x202a <= ord(c) <= 0x202e):
                raise Failure(f"{form} has {c!r}")
    found = world.report(trace, "files", "--top", "all")["files"]["rows"]
    expect_equal({r["path"] for r in found if "path" in r}, names, "names")


def check_wrong(world):
    trace = world.golden("every_operation")
    for words in (["--by", "opp"], ["--by", "op", "--values", "cuont"],
                  ["--by", "op", "--sort", "nothing"], ["--hist", "path"],
                  ["--top", "3"], ["--by", "op", "--follow"],
                  ["--by", "op", "--format", "xml"], ["--every", "0"]):
        world.run("tracefs-dump", *words, trace, status=2)
    world.run("tracefs-report", "slowets", trace, status=2)
    world.run("tracefs-report", "who", trace, status=2)
    said = world.run("tracefs-report", "files", "--format", "jsn", trace,
                     status=2)
    expect("did you mean 'json'" in said, said)
    said = world.run("tracefs-report", "gone.trace", status=2)
    expect("no question or trace 'gone.trace'" in said, said)
    said = world.run("tracefs-report", status=2)
    expect("no TRACE given" in said, said)
    # Of nothing there is no table.
    for words in (["tracefs-report", "summary"], ["tracefs-dump", "--by", "op"],
                  ["tracefs-report", "files", "--format", "json"]):
        said = world.run(*words, "/nonexistent/trace", status=3)
        expect_equal(said.count("\n"), 1, said)
        expect("cannot open the trace" in said, said)


def check_question_and_traces_in_either_order(world):
    trace = world.golden("every_operation")
    for question in (["summary"], ["slowest"], ["who", "/"]):
        expect_equal(world.run("tracefs-report", trace, *question),
                     world.run("tracefs-report", *question, trace), question)
    expect_equal(world.run("tracefs-report", trace, trace, "files"),
                 world.run("tracefs-report", "files", trace, trace))
    expect_equal(world.run("tracefs-report", trace),
                 world.run("tracefs-report", "summary", trace))


def check_known_work(world):
    """Analyses of a workload that was made for it."""
    trace = world.work()
    if not trace:
        return
    rows = world.report(trace, "lifetimes", "--top", "all")["lifetimes"]["rows"]
    sums = [sum(r[k] for r in rows) for k in ("created", "removed", "replaced")]
    # 8 + 2 + 3 + 1; 5 + 3 unlinked; one replaced.
    expect_equal(sums, [16, 8, 1], "lifetimes")
    found = {(r["class"], os.path.basename(r["path"])): r["times"] for r in
             world.report(trace, "double-writes")["double-writes"]["rows"]}
    expect_equal(found, {("rewritten", "shared"): 1, ("recreated", "lock"): 2,
                         ("replaced", "atomic"): 1}, "double writes")
    absent = [r for r in world.report(trace, "probes", "--top", "all")
              ["by name"]["rows"] if r["name"].startswith("absent")]
    expect_equal(len(absent), 7, "probes")
    shared = world.report(trace, "sharing", "--top", "all")["sharing"]["rows"]
    expect_equal([(os.path.basename(r["path"]), r["waw"]) for r in shared
                  if r["waw"]], [("shared", 1)], "sharing")
    path = next(r["path"] for r in shared if r["path"].endswith("shared"))
    who = json.loads(world.run("tracefs-report", "who", path, "--format",
                               "json", trace))["tables"][0]["rows"]
    expect_equal(sum(r["written"] for r in who), 200, "who")
    diff = json.loads(world.run("tracefs-report", "diff", trace, trace,
                                "--format", "json"))["tables"][0]["rows"]
    expect_equal({r["verdict"] for r in diff}, {"same"}, "diff with itself")


DIFF_WORK = r"""
import os, sys
os.chdir(sys.argv[1])
for i in range(30):
    with open(f"file{i}", "wb") as f:
        f.write(b"x" * 20000)
        if sys.argv[2] == "synced":
            f.flush()
            os.fsync(f.fileno())
if sys.argv[2] == "linked":
    for i in range(7): os.link(f"file{i}", f"link{i}")
"""


def by_op(operations):
    sums = collections.defaultdict(lambda: [0, 0])
    for o in operations:
        sums[o["op"]][0] += 1
        sums[o["op"]][1] += o.get("dur", 0)
    return sums


def check_diff(world):
    """Two runs whose difference is known: one makes its files durable, the other
    links some. What is ranked first is what Python finds in the JSON Lines."""
    traces = {}
    script = os.path.join(world.folder, "diff.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(DIFF_WORK)
    for kind in ("linked", "synced"):
        source = os.path.join(world.folder, kind)
        os.mkdir(source)
        traces[kind] = source + ".trace"
        made = world.finished("tracefs-run", "-o", traces[kind], "--src", source,
                              "--", sys.executable, "-B", script, source, kind)
        if made.returncode != 0:
            raise Skip("no workload: " + made.stderr.decode()[-300:])
    a, b = (by_op(world.operations(traces[k])) for k in ("linked", "synced"))
    text = world.run("tracefs-report", "diff", traces["linked"], traces["synced"],
                     "--format", "json")
    table = json.loads(text)["tables"][0]
    rows = {r["op"]: r for r in table["rows"]}
    expect_equal(rows.keys(), a.keys() | b.keys(), "operations")
    for op, row in rows.items():
        want = [b[op][1] - a[op][1], b[op][0] - a[op][0]]
        expect_equal([row["time_diff_ns"], row["count_diff"]], want, op)
    expect_equal((rows["fsync"]["verdict"], rows["fsync"]["count_diff"]),
                 ("new", 30), "fsync")
    expect_equal((rows["link"]["verdict"], rows["link"]["count_diff"]),
                 ("gone", -7), "link")
    ranks = [(abs(r["time_diff_ns"]), abs(r["count_diff"])) for r in table["rows"]]
    expect_equal(ranks, sorted(ranks, reverse=True), "ranks")
    first = table["rows"][0]["op"]
    expect(f": {first} " in table["summary"], table["summary"])
    shown = world.run("tracefs-report", "diff", traces["linked"], traces["synced"])
    expect_equal(shown.splitlines()[0], table["summary"], "the first line")
    # The other way round everything else is.
    back = json.loads(world.run("tracefs-report", "diff", traces["synced"],
                                traces["linked"], "--format", "json"))["tables"][0]
    expect_equal({r["op"]: -r["time_diff_ns"] for r in back["rows"]},
                 {op: r["time_diff_ns"] for op, r in rows.items()}, "backwards")
    # Sorted by hand: what grew most first, what shrank most last.
    rising = [r["time_diff_ns"] for r in json.loads(world.run(
        "tracefs-report", "diff", traces["linked"], traces["synced"], "--sort",
        "time_diff", "--format", "json"))["tables"][0]["rows"]]
    expect_equal(rising, sorted(rising, reverse=True), "--sort time_diff")


CHECKS = (check_groups, check_totals, check_nothing, check_hostile,
          check_wrong, check_known_work, check_diff)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracefs-report-") as folder:
        world = World(args.bin, folder)
        return run_checks(CHECKS, lambda: world)


if __name__ == "__main__":
    sys.exit(main())
