#!/usr/bin/env python3
"""`bytes`, `read` and `written` mean one thing in every command, view and
export: what the programs of a workload of copies, splice, sendfile, mapped
files, appends and truncations say that they transferred."""

import collections
import json
import os
import re
import sqlite3
import subprocess
import sys

from counting_suite import CountingSuite
from measured import words_of
from tracefs_harness import expect, expect_equal, wait_until

# Prints what it read and wrote by file, as the system calls returned it. Files
# that are mapped or sent are whole pages, each of which is moved once.
WORK = r"""
import json, mmap, os, sys
sums = {}
copied = 0
def add(path, read=0, written=0):
    s = sums.setdefault("/" + path, [0, 0])
    s[0] += read
    s[1] += written
def opened(path, flags):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return os.open(path, flags, 0o644)
def make(path, size):
    fd = opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    add(path, written=os.write(fd, b"x" * size))
    os.close(fd)
def read(path, piece):
    fd = os.open(path, os.O_RDONLY)
    while True:
        got = len(os.read(fd, piece))
        add(path, read=got)
        if not got: break
    os.close(fd)
def copy(source, target, size, to=0):
    global copied
    a = os.open(source, os.O_RDONLY)
    b = opened(target, os.O_WRONLY | os.O_CREAT)
    while size:
        n = os.copy_file_range(a, b, size, offset_dst=to)
        if n == 0: break
        copied += n
        add(source, read=n)
        add(target, written=n)
        size -= n
        to += n
    os.close(a)
    os.close(b)
for i in range(3):
    fd = opened("in/appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    add("in/appended", written=os.write(fd, b"a" * 10001))
    os.close(fd)
make("in/read", 9000)
read("in/read", 4000)
copy("in/appended", "out/copied", 30003)
copy("in/appended", "out/copied", 5, to=3)
copy("in/appended", "in/beside", 100000)   # ends with the source
make("in/itself", 8192)
copy("in/itself", "in/itself", 4096, to=8192)
make("in/sent", 65536)
fd = os.open("in/sent", os.O_RDONLY)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
at = 0
while at < 65536:
    at += os.sendfile(out, fd, at, 65536 - at)
add("in/sent", read=at)
os.close(fd)
ends = os.pipe()
os.write(ends[1], b"s" * 4096)
fd = opened("out/spliced", os.O_WRONLY | os.O_CREAT)
add("out/spliced", written=os.splice(ends[0], fd, 4096))
os.close(fd)
make("in/mapped", 65536)
fd = os.open("in/mapped", os.O_RDONLY)
with mmap.mmap(fd, 65536, prot=mmap.PROT_READ) as m:
    assert m[:].count(b"x") == 65536
add("in/mapped", read=65536)
os.close(fd)
fd = opened("out/stored", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 65536)
with mmap.mmap(fd, 65536) as m:
    m[:] = b"y" * 65536
    m.flush()
add("out/stored", written=65536)
os.close(fd)
make("out/sparse", 100)
os.truncate("out/sparse", 6 << 30)
os.truncate("out/sparse", 50)
fd = os.open("out/sparse", os.O_RDWR)
os.posix_fallocate(fd, 0, 1 << 20)
os.close(fd)
try:
    os.read(os.open("out/sparse", os.O_WRONLY), 10)
except OSError:
    pass
print(json.dumps([sums, copied]))
"""
KEYS = ("read", "written")


def directory(path):
    return os.path.dirname(path) or "/"


class Told:
    """What the workload says, by file; and of all."""

    def __init__(self, text):
        files, self.copied = json.loads(text)
        self.files = {path: tuple(sums) for path, sums in files.items()}
        # Pages of a map that is only stored to are read first.
        self.loose = {"/out/stored"}
        self.read, self.written = (sum(f[i] for f in self.files.values())
                                   for i in range(2))


def expect_files(found, told, what):
    """(read, written) by path; files that moved nothing may be missing."""
    for path, (read, written) in told.files.items():
        have = found.pop(path, (0, 0))
        expect_equal(have[1], written, f"{what}: written of {path}")
        if path in told.loose:
            expect(read <= have[0] <= read + 65536, f"{what}: {path}: {have}")
        else:
            expect_equal(have[0], read, f"{what}: read of {path}")
    left = {p: s for p, s in found.items() if p and any(s)}
    expect_equal(left, {}, f"{what}: other files")


def rows(suite, *words):
    return [json.loads(line) for line in suite.tool(
        "tracefs-dump", "--format", "jsonl", *words).stdout.splitlines()]


class Model:
    """The same sums from JSON Lines, by a few lines of its own."""

    def __init__(self, events):
        self.events = [e for e in events if "op" in e and not e.get("before")
                       and "scope" not in e]
        self.files = collections.defaultdict(lambda: [0, 0])
        self.ops = collections.Counter()
        self.read = self.written = self.bytes = 0
        for e in self.events:
            n = 0 if "errno" in e else max(e.get("result", 0), 0)
            if e["op"] in ("read", "copy_file_range"):
                self.files[e["path"]][0] += n
                self.read += n
            if e["op"] in ("write", "copy_file_range"):
                copied = e["op"] == "copy_file_range"
                self.files[e["path2" if copied else "path"]][1] += n
                self.written += n
            if e["op"] in ("read", "write", "copy_file_range"):
                self.bytes += n
                self.ops[e["op"]] += n


def check_dump(suite, trace, told, model):
    """--by in its forms, and --stats."""
    values = ["--values", "count,bytes,read,written", "--top", "all"]
    by_path = {r.get("path"): r for r in rows(suite, "--by", "path", *values,
                                              trace)}
    expect_files({p: tuple(r[k] for k in KEYS) for p, r in by_path.items()},
                 told, "--by path")
    for row in by_path.values():
        expect_equal(row["bytes"], row["read"] + row["written"], f"{row}")
    expect_equal(sum(r["count"] for r in by_path.values()), len(model.events),
                 "operations by path")
    inodes = {e["path2"]: e["ino_out"] for e in model.events
              if e["op"] == "copy_file_range"}
    by_inode = {r.get("inode"): r for r in rows(
        suite, "--by", "inode", *values, trace)}
    expect(len(inodes) == 3, f"{inodes}")
    for path, inode in inodes.items():
        expect_equal([by_inode[inode][k] for k in KEYS],
                     [by_path[path][k] for k in KEYS], f"inode of {path}")
    folders = collections.Counter()
    for path, (read, written) in model.files.items():
        folders[directory(path), "read"] += read
        folders[directory(path), "written"] += written
    for row in rows(suite, "--by", "dir", *values, trace):
        for key in KEYS:
            expect_equal(row[key], folders[row.get("dir"), key], f"{row}")
        expect_equal(row["bytes"], row["read"] + row["written"], f"{row}")
    for row in rows(suite, "--by", "op", *values, trace):
        expect_equal(row["bytes"], model.ops[row["op"]], f"{row}")
    (total,) = rows(suite, "--by", "tracer", *values, trace)
    expect_equal([total[k] for k in ("count", "bytes", "read", "written")],
                 [len(model.events), model.bytes, model.read, model.written],
                 "all together")
    stats = {r["op"]: r["bytes"] for r in rows(suite, "--stats", trace)
             if "op" in r}
    expect_equal({op: n for op, n in stats.items() if n},
                 {op: n for op, n in model.ops.items() if n}, "--stats")


def check_report(suite, trace, told, model):
    """summary, uses and the page."""
    def tables(question):
        return json.loads(suite.tool("tracefs-report", question, "--top", "all",
                                     "--format", "json", trace).stdout)["tables"]
    facts = {r["what"]: r for table in tables("summary")
             for r in table["rows"] if "what" in r}
    expect_equal((facts["read"]["bytes"], facts["written"]["bytes"]),
                 (model.read, model.written), "summary")
    expect_files({r["path"]: tuple(r[k] for k in KEYS)
                  for r in tables("uses")[0]["rows"]}, told, "uses")
    blocks = {r["what"]: r["bytes"] for r in tables("blocks")[0]["rows"]}
    expect(blocks["written first"] + blocks["overwritten"] >= model.written,
           f"blocks: {blocks}")
    access = collections.Counter()
    for row in tables("access")[0]["rows"]:
        access[row["direction"]] += row["bytes"]
    expect_equal((access["read"], access["write"]),
                 (model.read, model.written), "access")
    page = json.loads(suite.tool("tracefs-report", "page", "--format", "json",
                                 trace).stdout)
    expect_equal([page["totals"][k] for k in KEYS],
                 [model.read, model.written], "the page")
    tree = page["tree"]
    paths = {}
    for i, (name, parent) in enumerate(zip(tree["name"], tree["parent"])):
        paths[i] = "" if parent is None else f"{paths[parent]}/{name}"
    expect_files({paths[i]: (tree["read"][i], tree["written"][i])
                  for i in paths}, told, "the tree of the page")
    writers = json.loads(suite.tool("tracefs-report", "who", "/out/copied",
                                    "--format", "json", trace).stdout)
    expect_equal([(r["read"], r["written"])
                  for r in writers["tables"][0]["rows"]],
                 [told.files["/out/copied"]], "who")


def check_sqlite(suite, trace, told, model):
    if "sqlite" not in suite.tool("tracefs-dump", "--help=all").stdout:
        return
    path = trace + ".db"
    suite.command("tracefs-dump", "--format", "sqlite", "-o", path, trace)
    with sqlite3.connect(path) as db:
        files = db.execute("SELECT path, bytes_read, bytes_written "
                           "FROM file_bytes").fetchall()
        expect_files({p: (r, w) for p, r, w in files}, told, "file_bytes")
        expect_equal(db.execute("SELECT sum(bytes_read), sum(bytes_written) "
                                "FROM process_bytes").fetchone(),
                     (model.read, model.written), "process_bytes")
        expect_equal({op: n for op, n in db.execute(
            "SELECT op, bytes FROM operation_counts") if n},
            {op: n for op, n in model.ops.items() if n}, "operation_counts")


def size(text):
    """`1.50 MB` as bytes, and how exact it is."""
    match = re.fullmatch(r"([\d.]+) ([kMGT]?)B", text)
    expect(match, f"no size: {text}")
    unit = 1000 ** " kMGT".index(match[2] or " ")
    digits = len(match[1].partition(".")[2])
    return float(match[1]) * unit, unit * 10 ** -digits


def run(suite):
    """tracefs-run: its trace in all views, and what it says at the end."""
    source = suite.folder("run")
    trace = suite.path("run.trace")
    script = suite.path("work.py")
    with open(script, "w", encoding="utf-8") as out:
        out.write(WORK)
    done = subprocess.run(
        [os.path.join(suite.bin, "tracefs-run"), "-o", trace, "--src", source,
         "--", sys.executable, "-B", script, suite.path("sent")],
        cwd=source, capture_output=True, text=True, check=False, timeout=300)
    expect_equal(done.returncode, 0, done.stderr)
    told = Told(done.stdout.splitlines()[0])
    model = Model(suite.read(trace))
    expect_files({p: tuple(s) for p, s in model.files.items()}, told, "jsonl")
    check_dump(suite, trace, told, model)
    check_report(suite, trace, told, model)
    check_sqlite(suite, trace, told, model)
    total = next(line for line in (done.stdout + done.stderr).splitlines()
                 if line.endswith("  total"))
    near, step = size(words_of(total)[4])
    expect(near <= model.bytes < near + step, f"{total}: not {model.bytes}")


def live(suite):
    """What a mount counts by itself: aggregates, metrics and top."""
    source, point = suite.folder("live", "source"), suite.folder("live", "mnt")
    stream, count = suite.path("stream"), suite.path("count")
    script = suite.path("live.py")
    with open(script, "w", encoding="utf-8") as out:
        out.write(WORK)
    mount = suite.mount(
        source, point, '{ { } { stream = { STR_ALL } } { file = "%s" } }'
        % stream, '{ { } { aggregate = { by op; values bytes size }; aggregate '
        '= { by op, path; values bytes; top 1000; memory 4M }; '
        'aggregate = { by dir(1) } } { file = "%s" } }' % count,
        options=["--metrics", "127.0.0.1:0"])
    address = re.search(r"metrics at (\S+)", mount.messages())[1]
    told_top = suite.path("top.jsonl")
    with open(told_top, "w", encoding="utf-8") as out:
        watching = subprocess.Popen(
            [os.path.join(suite.bin, "tracefs-ctl"), point, "top", "--by",
             "op", "--values", "count,bytes", "--format", "json",
             "--interval", "300ms",
             "--rounds", "1000000"], stdout=out)
    wait_until(lambda: len(json.loads(suite.tool(
        "tracefs-ctl", point, "list", "--format", "json").stdout)["tracers"]) == 3,
        "somebody watches")
    done = subprocess.run([sys.executable, "-B", script, suite.path("sent2")],
                          cwd=point, capture_output=True, text=True,
                          check=False, timeout=300)
    expect_equal(done.returncode, 0, done.stderr)
    told = Told(done.stdout)

    def watched():
        sums = collections.Counter()
        with open(told_top, encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                sums[row["op"]] += row["bytes"]
        return sums

    def served():
        page = subprocess.run(["curl", "-s", f"http://{address}/metrics"],
                              capture_output=True, text=True, check=True).stdout
        return {m[1]: int(m[2]) for m in re.finditer(
            r'tracefs_aggregate_transferred_bytes_total\{[^}\n]*aggregate="1"'
            r'[^}\n]*op="(\w+)"[^}\n]*\} (\d+)', page)}
    moved = {"write": told.written - told.copied,
             "copy_file_range": told.copied}
    for found, what in ((watched, "top"), (served, "metrics")):
        wait_until(lambda f=found: {op: f().get(op) for op in moved} == moved,
                   f"{what} tells {moved}")
    watching.terminate()
    watching.wait(60)
    mount.unmount()
    model = Model(suite.read(stream))
    expect_files({p: tuple(s) for p, s in model.files.items()}, told, "jsonl")
    for row in rows(suite, "--by", "op", "--values", "bytes,read,written",
                    count):
        expect_equal(row["bytes"], model.ops[row["op"]], f"counted: {row}")
    # Each driver answers what it has the keys for.
    by_path = {r["path"]: r["bytes"] for r in rows(
        suite, "--by", "path", "--values", "bytes", "--top", "all", count)
        if r.get("bytes")}
    expect_equal(by_path, {p: sum(s) for p, s in model.files.items()
                           if sum(s)}, "counted by path")
    by_dir = {r["dir(1)"]: r["bytes"] for r in rows(
        suite, "--by", "dir(1)", "--values", "bytes", count) if r.get("bytes")}
    folders = collections.Counter()
    for path, sums in model.files.items():
        folders[directory(path)] += sum(sums)
    expect_equal(by_dir, {d: n for d, n in folders.items() if n},
                 "counted by directory")
    refused = suite.tool("tracefs-dump", "--by", "dir", count)
    expect_equal((refused.returncode, "dir(1)" in refused.stderr), (2, True),
                 "whole directories are not known: " + refused.stderr)


def main():
    suite = CountingSuite("bytes", __doc__)
    for case in (run, live):
        suite.run(case.__name__, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
