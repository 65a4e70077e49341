#!/usr/bin/env python3
"""One number for one thing: count, errors, bytes, time, mean, quantiles, access
and the tree of processes are the same in every command, page and export, and
those that a few lines of Python make of JSON Lines."""

import argparse
import collections
import json
import os
import random
import re
import signal
import sqlite3
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from command_checks import Commands, expect, run_checks  # noqa: E402
from command_checks import expect_equal as same  # noqa: E402
from measured import SHARES, bucket, expect_near, truth  # noqa: E402
from scripted_trace import Script  # noqa: E402

# --- the same as commands tell it: {op: {name: number}}, names as above

class World(Commands):
    def __init__(self, arguments, folder):
        super().__init__(arguments.bin, folder)
        self.maker = arguments.make_scripted_trace
        self.made = 0

    def trace(self, script):
        self.made += 1
        return script.make(self.maker,
                           os.path.join(self.folder, f"{self.made}.trace"))

    def lines(self, *words):
        return [json.loads(line) for line in self.run(
            "tracefs-dump", "--format", "jsonl", *words).splitlines()]

    def tables(self, question, trace):
        return [t["rows"] for t in json.loads(self.run(
            "tracefs-report", question, "--format", "json", "--top", "all",
            trace))["tables"]]


def of_by(w, trace):
    names = ("count", "errors", "bytes", "time", "mean", "min", "p50", "p90",
             "p99", "p999", "max")
    return {r["op"]: {n: r[k] for n in names
                      for k in (n, n + "_ns") if r.get(k) is not None}
            for r in w.lines("--by", "op", "--values", ",".join(names),
                             "--top", "all", trace)}


def of_stats(w, trace):
    other = {"dur_total": "time", "dur_max": "max"}
    return {r["op"]: {other.get(k, k): v for k, v in r.items()
                      if k in ("count", "errors", "bytes", *other)}
            for r in w.lines("--stats", trace) if "op" in r}


def of_page(w, trace):
    page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                            trace))
    if page["operations"]:
        rows = page["operations"]
    else:  # what was counted
        (table,) = page["counted"]
        rows = [dict(zip(["op"] + table["values"], row))
                for row in table["rows"]]
    other = {"time_ns": "time", "shortest_ns": "min", "longest_ns": "max",
             "p50_ns": "p50", "p90_ns": "p90", "p99_ns": "p99",
             "p999_ns": "p999"}
    return {r["op"]: {other.get(k, k): v for k, v in r.items()
                      if k in ("count", "errors", "bytes", "timed", *other)}
            for r in rows}


def of_summary(w, trace):
    names = ("count", "errors", "bytes", "time", "p50", "p99", "max")
    (table,) = [t for t in w.tables("summary", trace) if t and "op" in t[0] and
                "bytes" in t[0]]
    return {r["op"]: {n: r[k] for n in names
                      for k in (n, n + "_ns") if r.get(k) is not None}
            for r in table}


def of_aggregates(w, trace):
    """As they are listed: the last totals of each operation."""
    found = {}
    for row in w.lines(trace):
        if "scope" in row and "op" in row:
            latency = row["latency"]
            found[row["op"]] = {
                "count": row["count"], "errors": row["errors"],
                "bytes": row["bytes"], "time": latency["sum"],
                **{n: latency[n] for n in ("max", *SHARES)}}
    return found


def of_sqlite(w, trace):
    path = trace + ".db"
    w.run("tracefs-dump", "--format", "sqlite", "-o", path, trace)
    with sqlite3.connect(path) as db:
        found = {op: dict(zip(("count", "errors", "bytes", "time", "max"), row))
                 for op, *row in db.execute(
                     "SELECT op, count, errors, coalesce(bytes, 0), latency, "
                     "latency_max FROM operation_counts")}
        for op, row in found.items():  # exact: SQL has every operation
            times = [ns for ns, in db.execute(
                "SELECT latency FROM runs WHERE op = ? AND latency NOT NULL "
                "ORDER BY latency", (op,))]
            row |= {"min": times[0], "mean": sum(times) // len(times)}
    return found


def expect_one(told, views):
    """Exact ones are exact; what is known by buckets is in that of the truth,
    and the same wherever as much is known of the ends."""
    quantiles = collections.defaultdict(set)
    for view, rows in views.items():
        same(set(rows), set(told), f"{view}: operations")
        for op, row in rows.items():
            for name, number in row.items():
                what = f"{view}: {name} of {op}"
                exact = told[op].get(name, 0)
                if name not in SHARES:
                    same(number, exact, what)
                    continue
                expect_near(number, exact, what)
                quantiles[op, name].add(number)
    for (op, name), found in quantiles.items():
        # Aggregates have no minimum: one that is in its bucket may differ.
        if bucket(told[op]["min"]) != bucket(told[op][name]):
            same(len(found), 1, f"{name} of {op}: {found}")
    expect(any(len(found) == 1 for found in quantiles.values()), quantiles)


# --- checks

def workload(s):
    """Of each kind one, some or many; quick, slow and equal ones."""
    random.seed(7)
    spread = [int(random.lognormvariate(11, 2)) for _ in range(1500)]
    for i, dur in enumerate(spread):
        s.op("read", 1, "a", "/f", ino=1, fh=1, off=i, len=9000, dur=dur,
             **({"err": 5} if i % 50 == 0 else {"res": i % 8192}))
    for i in range(100):
        s.op("write", 1 + i % 2, "b", "/g", ino=2, fh=2, off=i, len=100,
             res=100, dur=125_754 if i else 126_000)
    for i in range(3):
        s.op("copy_file_range", 2, "b", "/f", path2="/g", ino=1, ino_out=2,
             fh=1, fh_out=2, off=0, off_out=0, len=65536, res=65536,
             dur=1_000_003 + i)
    s.op("fsync", 2, "b", "/g", ino=2, fh=2, dur=7)
    for _ in range(2):
        s.op("lookup", 2, "b", "/none", err=2, dur=4_000_000_000)


def check_operations(w):
    s = Script()
    workload(s)
    trace = w.trace(s)
    told = truth(w.lines(trace))
    same(told["read"]["errors"], 30, "the model")
    expect_one(told, {"--by": of_by(w, trace), "--stats": of_stats(w, trace),
                      "page": of_page(w, trace), "sqlite": of_sqlite(w, trace),
                      "summary": of_summary(w, trace)})
    facts = {r["what"]: r for r in w.tables("summary", trace)[1]}
    everything = {name: sum(row.get(name, 0) for row in told.values())
                  for name in ("count", "errors", "bytes", "time")}
    same(facts["operations"]["count"], everything["count"], "summary")
    same(facts["failed"]["count"], everything["errors"], "summary")
    same(facts["operations"]["time_ns"], everything["time"], "summary")
    same(max(facts["read"]["bytes"], facts["written"]["bytes"]),
         max(told["read"]["bytes"], told["write"]["bytes"]) +
         told["copy_file_range"]["bytes"], "summary")
    page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                            trace))["totals"]
    same((page["count"], page["errors"], page["bytes"], page["time_ns"]),
         tuple(everything.values()), "totals of the page")


def check_counted(w):
    """The same operations, and what a driver counts of them instead."""
    s, counted = Script(), Script()
    workload(s)
    told = truth(w.lines(w.trace(s)))
    for op, row in told.items():
        mine = [o for o in s.operations if o["op"] == op]
        counted.other("count", t=0, to=s.now, total=1, op=op, n=row["count"],
                      errors=row["errors"], bytes=row["bytes"],
                      times=",".join(str(o["dur"]) for o in mine))
    trace = w.trace(counted)
    expect_one(told, {"--by": of_by(w, trace), "page": of_page(w, trace),
                      "--stats": of_stats(w, trace),
                      "jsonl": of_aggregates(w, trace)})


def check_counted_of_a_part_of_the_time(w):
    """Whole periods within --from and --to, and no total: of what is cut no part
    is known, which is said."""
    s = Script()
    for i, n in enumerate((5, 15, 25, 35)):
        s.other("count", t=i * 100, to=(i + 1) * 100, op="write", n=n)
    s.other("count", t=0, to=400, total=1, op="write", n=80)
    trace = w.trace(s)

    def counts(begin, end):
        words = [word for option, t in (("--from", begin), ("--to", end))
                 if t is not None for word in (option, f"@{s.BEGIN_NS + t}")]
        done = w.finished("tracefs-dump", "--by", "op", "--values", "count",
                          "--format", "jsonl", *words, trace)
        page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                                *words, trace))
        found = sum(row["count"] for row in
                    map(json.loads, done.stdout.splitlines()))
        said = "--from or --to cuts is left out"
        drawn = sum(row[1 + table["values"].index("count")]
                    for table in page["counted"] for row in table["rows"])
        same(drawn, found, f"page {words}")
        same(said in " ".join(page["notes"]), said in done.stderr.decode(),
             f"notes {words}")
        return found, said in done.stderr.decode()
    for begin, end, expected in ((None, None, (80, False)), (0, 400, (80, False)),
                                 (200, None, (60, False)), (200, 400, (60, False)),
                                 (100, 300, (40, False)), (None, 200, (20, False)),
                                 (150, None, (60, True)), (150, 250, (0, True)),
                                 (None, 250, (20, True))):
        found, said = counts(begin, end)
        same((found, said), expected, f"{begin} {end}")


def check_files_that_several_processes_wrote(w):
    """A process that gets another name, by prctl(2) or exec(2), is still one;
    one pid on two machines is two. The question counts the same."""
    s = Script()
    def write(path, ino, pid, comm):
        s.op("write", pid, comm, path, ino=ino, fh=pid, off=0, len=4, res=4)
    for name in ("before", "after"):
        write("/renamed", 10, 1, name)
    for pid, name in ((2, "sh"), (3, "sh"), (3, "cat")):
        write("/log", 11, pid, name)
    for pid in range(100, 112):
        write("/many", 12, pid, "job")
    path = os.path.join(w.folder, "several.db")
    trace = w.trace(s)
    w.run("tracefs-dump", "--format", "sqlite", "-o", path, trace)
    with sqlite3.connect(path) as db:
        told = {name: (writers, size) for name, writers, size in
                db.execute("SELECT * FROM double_writes")}
    same(told, {"/log": (2, 12), "/many": (12, 48)})
    (rows,) = w.tables("double-writes", trace)
    same({r["path"]: (r["times"] + 1, r["written"]) for r in rows}, told)
    others = Script()
    others.other("host", name="far")
    others.op("write", 1, "before", "/renamed", ino=20, fh=1, off=0, len=4, res=4)
    os.unlink(path)
    w.run("tracefs-dump", "--format", "sqlite", "-o", path, trace,
          w.trace(others))
    with sqlite3.connect(path) as db:
        same(dict(db.execute("SELECT path, writers FROM double_writes")),
             {"/log": 2, "/many": 12, "/renamed": 2})


def check_means_without_durations(w):
    """Operations that tell no duration take no part in means and quantiles."""
    s = Script()
    for dur in (1000, 3000, 10, 20):
        s.op("read", 1, "a", "/f", ino=1, fh=1, off=0, len=1, res=1, dur=dur)
    s.lines[2:] = [re.sub(r" dur=\d+", "", line) for line in s.lines[2:]]
    told = truth(w.lines(trace := w.trace(s)))
    same(told["read"]["mean"], 2000, "the model")
    expect_one(told, {"--by": of_by(w, trace), "--stats": of_stats(w, trace),
                      "page": of_page(w, trace)})


def check_copies_count_once_by_what_is_no_file(w):
    """Whoever and whenever: only files are two in a copy."""
    s = Script()
    s.exec(1, "/bin/cp")
    s.op("read", 1, "cp", "/a", ino=6, fh=6, off=0, len=10, res=10)
    s.op("write", 1, "cp", "/b", ino=7, fh=7, off=0, len=1012, res=1012)
    s.op("copy_file_range", 1, "cp", "/a", path2="/b", ino=6, ino_out=7, fh=6,
         fh_out=7, off=0, off_out=0, len=700, res=700)
    s.exit(1)
    trace = w.trace(s)
    for key in ("op", "cname", "cpid", "process", "tree", "cuid", "hour",
                "host", "container", "flag_names", "log2(latency)"):
        rows = w.lines("--by", key, "--values", "bytes,read,written,size_max",
                       trace)
        same([sum(r[c] for r in rows) for c in ("bytes", "read", "written")],
             [1722, 710, 1712], key)
        same(max(r["size_max"] for r in rows), 1012, key)


def check_files_that_are_only_copied_to(w):
    """They are on the page although no operation counts for them."""
    s = Script()
    s.op("open", 1, "cp", "/out/b.bin", ino=7, fh=7)
    s.op("copy_file_range", 1, "cp", "/in/a", path2="/out/b.bin", ino=6,
         ino_out=7, fh=6, fh_out=7, off=0, off_out=0, len=700, res=700)
    trace = w.trace(s)
    words = ["--filter", "op IN { read write copy_file_range }", trace]
    tables = json.loads(w.run("tracefs-report", "page", "--format", "json",
                              *words))["tables"]
    for table, key in (("files", "path"), ("directories", "dir"),
                       ("extensions", "ext")):
        told = sorted((row.get(key, ""), row["count"], row["bytes"])
                      for row in w.lines("--by", key, "--values", "count,bytes",
                                         *words))
        same(len(told), 2, table)
        shown = sorted((row[0] if key != "ext" or row[0] == "bin" else "",
                        row[1], row[7])
                       for row in tables[table]["rows"])
        same(shown, told, table)
        same(tables[table]["other"][6], 0, table)


def check_access(w):
    """Steps of reads and writes: the ready question and the page."""
    s = Script()
    random.seed(3)
    at = collections.Counter()
    for i in range(600):
        fh = random.randrange(1, 5)
        if random.random() < 0.03:
            s.op("release", 1, "a", f"/{fh % 2}", ino=fh % 2, fh=fh)
            at[fh] = 0
            continue
        if random.random() < 0.3:
            at[fh] = random.randrange(0, 1 << 20)
        s.op(random.choice(["read", "write"]), 1, "a", f"/{fh % 2}",
             ino=fh % 2, fh=fh, off=at[fh], len=4096, res=4096)
        at[fh] += 4096
    # Without a handle: a file is known by its inode.
    for i in range(20):
        s.op("read", 1, "a", f"/{i % 2}", ino=i % 2 + 7, off=i // 2 * 10,
             len=10, res=10)
    trace = w.trace(s)
    steps, ends = collections.Counter(), {}
    for e in w.lines(trace):
        file = (e.get("fh", 0), e["ino"])
        if e["op"] == "release":
            ends.pop(("read", file), None)
            ends.pop(("write", file), None)
            continue
        end = ends.get((e["op"], file))
        step = ("first" if end is None else "consecutive"
                if e["offset"] == end else "forward"
                if e["offset"] > end else "backward")
        steps[e["op"], step] += 1
        ends[e["op"], file] = e["offset"] + e["result"]
    same({(r["direction"], r["step"]): r["count"]
          for r in w.tables("access", trace)[0] if r["count"]}, dict(steps),
         "tracefs-report access")
    page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                            trace))["access"]
    same({(way, name): n for way in ("read", "write")
          for name, n, _ in page[way]["classes"] if n}, dict(steps), "page")


def check_processes(w):
    """Who is in the tree, under whom, and did how much: also who is heard of
    before his beginning is told, and after his end."""
    s = Script()
    s.exec(1, "/bin/make")
    s.fork(1, 2)
    s.exec(2, "/bin/cc")
    for _ in range(3):
        s.op("lookup", 2, "cc", "/x", err=2)
    # Its first operation comes before the record of its beginning.
    s.op("write", 3, "ld", "/o", ino=5, fh=5, off=0, len=10, res=10)
    s.lines[-1] = s.lines[-1].replace(" ppid=1", "")
    s.fork(2, 3)
    s.exit(3)
    s.exit(2, 1)
    # Files are closed for it after its end.
    s.op("release", 2, "cc", "/x", ino=4, fh=4)
    s.op("copy_file_range", 1, "make", "/a", path2="/b", ino=6, ino_out=7,
         fh=6, fh_out=7, off=0, off_out=0, len=100, res=100)
    s.exit(1)
    trace = w.trace(s)
    expected = {1: (None, 1, 0, 100), 2: (1, 4, 3, 0), 3: (2, 1, 0, 10)}
    rows = w.tables("tree", trace)[0]
    parents, line = {}, []
    for r in rows:
        depth = (len(r["process"]) - len(r["process"].lstrip())) // 2
        del line[depth:]
        parents[r["cpid"]] = line[-1] if line else None
        line.append(r["cpid"])
    same(len(rows), len(expected), "rows of the tree")
    same({r["cpid"]: (parents[r["cpid"]], r["count"], r["errors"], r["bytes"])
          for r in rows}, expected, "tracefs-report tree")
    drawn, line = {}, []
    text = w.run("tracefs-dump", "--format", "tree", "--set", "bars=no", trace)
    for row in text.splitlines()[1:]:
        found = re.fullmatch(r" *\S+ \S+ +\S+ +(\d+) +(\d+) +(\S+ B) +(\S+ B)  "
                             r"([ |`-]*)(\d+) .*", row)
        expect(found, "no line of a tree:", row)
        depth = len(found[5]) // 2
        del line[depth:]
        drawn[int(found[6])] = (line[-1] if line else None, int(found[1]),
                                int(found[2]))
        line.append(int(found[6]))
    same(drawn, {pid: row[:3] for pid, row in expected.items()},
         "--format tree")
    tree = json.loads(w.run("tracefs-report", "page", "--format", "json",
                            trace))["processes"]
    known = {}
    for i, pid in enumerate(tree["pid"]):
        if pid:
            parent = tree["pid"][tree["parent"][i]]
            known[pid] = (parent or None, tree["count"][i], tree["errors"][i],
                          tree["bytes"][i])
    same(known, expected, "page")


def check_ends_of_processes(w):
    """Which processes there were and how they ended, as their records say: also
    where one has the pid that another had before, and an operation of the first
    one is told late."""
    trace = os.path.join(ROOT, "tests/golden/v1/processes.trace")
    records = [json.loads(line) for line in w.run(
        "tracefs-dump", "--format", "jsonl", trace, status=1).splitlines()]
    def status(record):
        if "signal" not in record:
            return record["exit_code"]
        name = record["signal"]
        number = name.removeprefix("SIG")
        return 128 + (int(number) if number.isdecimal() else
                      signal.Signals[name])

    ends = sorted((r["pid"], status(r)) for r in records
                  if r.get("process") == "exit" and
                  r.get("tid", r["pid"]) == r["pid"])
    expect(len(ends) > len({pid for pid, _ in ends}), "a pid used twice:", ends)
    tree = json.loads(w.run("tracefs-report", "tree", "--format", "json",
                            "--top", "all", trace, status=1))["tables"][0]
    known = sorted({(r[who], r[began]) for r in records
                    for who, began in (("pid", "start"),
                                       ("child_pid", "child_start"))
                    if "process" in r and who in r})
    pids = [pid for pid, _ in known]
    same(sorted(r["cpid"] for r in tree["rows"]), pids, "tracefs-report tree")
    same(sorted((r["cpid"], r["exit"]) for r in tree["rows"] if "exit" in r),
         ends, "tracefs-report tree")
    page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                            trace, status=1))["processes"]
    same(sorted((pid, 128 + int(end.split()[1]) if "signal" in end
                 else int(end)) for pid, end in zip(page["pid"], page["exit"])
                if end), ends, "page")
    same(sorted(filter(None, page["pid"])), pids, "processes of the page")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    arguments = parser.parse_args()
    checks = [value for name, value in globals().items()
              if name.startswith("check_")]
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments, folder)
        sys.exit(run_checks(checks, lambda: world))


if __name__ == "__main__":
    main()
