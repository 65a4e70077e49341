#!/usr/bin/env python3
"""Analyses of traces whose answer is known because they were made so, and of
traces that are odd: one operation, only counts, losses, a clock that jumps."""

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from exports_test import unescaped  # noqa: E402
from command_checks import Commands, Failure, run_checks  # noqa: E402
from command_checks import expect_equal as same  # noqa: E402
from measured import words_of  # noqa: E402
from scripted_trace import Script  # noqa: E402

GOLDEN = os.path.join(ROOT, "tests/golden/v1")
MS = 1_000_000
DIRECTORY = 0o40755


class World(Commands):
    def __init__(self, arguments, folder):
        super().__init__(arguments.bin, folder)
        self.maker = arguments.make_scripted_trace
        self.workload_maker = arguments.make_workload_trace
        self.made = 0

    def trace(self, script):
        self.made += 1
        return script.make(self.maker,
                           os.path.join(self.folder, f"{self.made}.trace"))

    def tables(self, question, trace, *words):
        text = self.run("tracefs-report", question, "--format", "json",
                        "--top", "all", *words, trace)
        return [t["rows"] for t in json.loads(text)["tables"]]

    def ask(self, question, script, *words):
        return self.tables(question, self.trace(script), *words)


def reads(s, fh, offsets, size=4096, pid=1, word="read"):
    for off in offsets:
        s.op(word, pid, "reader", f"/f{fh}", ino=fh, fh=fh, off=off, len=size,
             res=size)
    s.op("release", pid, "reader", f"/f{fh}", ino=fh, fh=fh)


def check_access(w):
    """Ten consecutive, ten strided, ten in disorder, one alone."""
    s = Script()
    reads(s, 1, range(0, 40960, 4096))
    reads(s, 2, range(0, 163840, 16384))
    reads(s, 3, [9, 4, 77, 2, 31, 8, 55, 1, 90, 6], size=1)
    reads(s, 4, [0])
    reads(s, 5, range(0, 40960, 4096), word="write")
    opens = {(r["direction"], r["pattern"]): (r["opens"], r["run_max"])
             for r in w.ask("access", s)[1] if r["opens"]}
    same(opens, {("read", "sequential"): (1, 40960),
                 ("read", "strided"): (1, 4096), ("read", "random"): (1, 1),
                 ("read", "single"): (1, 4096),
                 ("write", "sequential"): (1, 40960)})


def check_blocks(w):
    """Eight written, three of them again, two read twice (what was written here
    is not new), six cut off, the others removed; one of another file read."""
    s = Script()
    reads(s, 1, range(0, 32768, 4096), word="write")
    reads(s, 1, range(0, 12288, 4096), word="write")
    for _ in range(2):
        reads(s, 1, range(0, 8192, 4096))
    reads(s, 2, [0])
    s.op("setattr", 1, "cut", "/f1", ino=1, valid=8, new_size=8192)
    s.op("unlink", 1, "rm", "/f1", ino=1, nlink=0)
    found = {r["what"]: r["bytes"] // 4096 for r in w.ask("blocks", s)[0]}
    same(found, {"read first": 1, "read again": 4, "written first": 8,
                 "overwritten": 3, "removed with the file": 2, "cut off": 6})


def check_blocks_of_names(w):
    """Blocks go with the last name and the last descriptor, not with a name;
    who gets a number again gets no blocks with it."""
    def blocks(s):
        return {r["what"]: r["bytes"] // 4096 for r in w.ask("blocks", s)[0]
                if r["bytes"]}

    def whole(s, path, ino, fh, count, word="write", flags=0):
        s.op("create" if word == "write" else "open", 1, "a", path, ino=ino,
             fh=fh, flags=flags)
        for i in range(count):
            s.op(word, 1, "a", path, ino=ino, fh=fh, off=4096 * i, len=4096,
                 res=4096)

    def close(s, path, ino, fh):
        s.op("release", 1, "a", path, ino=ino, fh=fh)
    # One of two names goes.
    s = Script()
    whole(s, "/tmp", 10, 1, 3)
    close(s, "/tmp", 10, 1)
    s.op("link", 1, "a", "/tmp", path2="/kept", ino=10)
    s.op("unlink", 1, "a", "/tmp", ino=10)
    whole(s, "/kept", 10, 2, 3, "read")
    same(blocks(s), {"written first": 3, "read again": 3})
    close(s, "/kept", 10, 2)
    s.op("unlink", 1, "a", "/kept", ino=10)
    same(blocks(s), {"written first": 3, "read again": 3,
                     "removed with the file": 3})
    # A new version takes the name, and the next one the number of the old.
    s = Script()
    for i in range(4):
        whole(s, "/lock", 20 + i % 2, 30 + i, 2)
        close(s, "/lock", 20 + i % 2, 30 + i)
        s.op("rename", 1, "a", "/lock", path2="/index", ino=20 + i % 2,
             mode=0o100644)
    same(blocks(s), {"written first": 8, "removed with the file": 6})
    # Removed as soon as it is open.
    s = Script()
    s.op("create", 1, "a", "/t", ino=40, fh=1)
    s.op("unlink", 1, "a", "/t", ino=40)
    for word in ("write", "read"):
        for i in range(2):
            s.op(word, 1, "a", "/t", ino=40, fh=1, off=4096 * i, len=4096,
                 res=4096)
    close(s, "/t", 40, 1)
    whole(s, "/u", 40, 2, 1)
    same(blocks(s), {"written first": 3, "read again": 2,
                     "removed with the file": 2})
    # An open that truncates.
    s = Script()
    whole(s, "/o", 50, 1, 4)
    close(s, "/o", 50, 1)
    s.op("open", 1, "a", "/o", ino=50, fh=2, flags=os.O_WRONLY | os.O_TRUNC)
    s.op("write", 1, "a", "/o", ino=50, fh=2, off=0, len=4096, res=4096)
    same(blocks(s), {"written first": 5, "cut off": 4})


def check_races(w):
    """A job reads what another one writes: before it, while it writes, after it
    was written; the last is no race, nor is what a job does alone."""
    for order, expected in (("rw", "read-before-write"),
                            ("wrw", "read-during-write"), ("wr", None)):
        s = Script()
        s.exec(1, "/bin/make")
        for pid in (2, 3):
            s.fork(1, pid)
            s.exec(pid, f"/bin/job{pid}")
        for step in order:
            reads(s, 7, [0], pid=2 if step == "r" else 3,
                  word="read" if step == "r" else "write")
        reads(s, 9, [0], pid=2)
        reads(s, 9, [0], pid=2, word="write")
        for pid in (2, 3, 1):
            s.exit(pid)
        same([(r["path"], r["race"]) for r in w.ask("races", s)[0]],
             [("/f7", expected)] if expected else [], order)


def check_queueing(w):
    """Five that begin a ms after each other and end at the same time."""
    s = Script()
    for i in range(5):
        s.op("read", 1, "deep", f"/f{i}", ino=i + 1, dur=(5 - i) * MS,
             gap=MS - (5 - i) * MS)
    tables = w.ask("queueing", s)
    same({r["depth"]: r["time_ns"] for r in tables[0]},
         {n: MS for n in range(1, 6)})
    same([(r["count"], r["overlapping"], r["deepest"]) for r in tables[1]],
         [(5, 4, 5)])


def check_critical_path(w):
    """make waits 10 ms for a, then 20 ms for b, who waits 15 ms for c."""
    s = Script()
    s.exec(1, "/bin/make")
    s.wait(MS)
    s.fork(1, 2)
    s.exec(2, "/bin/a")
    s.wait(10 * MS)
    s.exit(2)
    s.fork(1, 3)
    s.exec(3, "/bin/b")
    s.fork(1, 5)
    s.exec(5, "/bin/beside")
    s.wait(2 * MS)
    s.exit(5)
    s.fork(3, 4)
    s.exec(4, "/bin/c")
    s.wait(15 * MS)
    s.exit(4)
    s.wait(3 * MS)
    s.exit(3)
    s.wait(MS)
    s.exit(1)
    found = {r["process"]: r["waited_ns"] for r in w.ask("critical-path", s)[0]}
    # What ran beside it was waited for by nobody.
    same(found, {"make": 2 * MS, "a": 10 * MS, "b": 5 * MS, "c": 15 * MS})


def check_critical_path_of_a_run(w):
    """Of what tracefs-run runs, and of what a shell runs that lives on, whoever
    began it: the path is that of the run."""
    def path(s):
        (table,) = json.loads(w.run(
            "tracefs-report", "critical-path", "--format", "json", "--top",
            "all", w.trace(s)))["tables"]
        return ({r["process"]: r["waited_ns"] for r in table["rows"]},
                " ".join(table["notes"]))

    def run(s):
        s.fork(1, 2)
        s.exec(2, "/bin/sh")
        s.wait(MS)
        s.fork(2, 3)
        s.exec(3, "/bin/sleep")
        s.wait(10 * MS)
        s.exit(3)
        s.wait(MS)
        s.exit(2)

    expect = {"sh": 2 * MS, "sleep": 10 * MS}
    s = Script()
    run(s)
    found, notes = path(s)
    same(found, expect)
    same(("12.0 ms" in notes and "of sh 2" in notes, "records" in notes),
         (True, False), notes)
    # It did something itself, but is not told of but by that.
    s.op("getattr", 1, "tracefs-run", "/x", ino=1)
    same(path(s)[0], expect)
    # A shell that is known and lives on; another one beside it is shorter.
    s = Script()
    s.exec(9, "/bin/other")
    s.exec(1, "/bin/bash")
    s.exit(9)
    run(s)
    found, notes = path(s)
    same(found, {"bash": 0, **expect})
    same(("no process records" in notes, "end of bash 1 was not recorded" in
          notes), (False, True), notes)
    # The sample has what a shell did in two thirds of a second.
    (rows,) = w.tables("critical-path",
                       os.path.join(ROOT, "docs/examples/sample.trace"))
    waited = {}
    for row in rows:
        waited[row["process"]] = waited.get(row["process"], 0) + row["waited_ns"]
    same((600 < sum(waited.values()) / MS < 700, {"sh", "gcc", "cc1", "as", "ld",
                                                   "mv", "dd"} <= waited.keys()),
         (True, True), waited)


def check_compilers_behind_a_launcher(w):
    """A hit of ccache runs no compiler, a miss runs one that writes elsewhere,
    and some give way to the compiler or to each other: what was to be compiled
    is told once, and as it was said."""
    s = Script()
    s.exec(1, "/bin/make")
    for pid, name in ((2, "a"), (3, "b")):
        s.fork(1, pid)
        s.exec(pid, f"/usr/bin/ccache gcc -c /{name}.c -o /{name}.o")
        if name == "b":
            s.fork(pid, 4)
            s.exec(4, "/usr/bin/gcc -c /b.c -o /tmp.1.o")
            s.exit(4)
        s.exit(pid)
    for pid, launchers in ((5, "ccache"), (6, "ccache distcc"),
                           (7, "ccache base_dir=/x"), (8, "distcc")):
        s.fork(1, pid)
        s.exec(pid, f"/usr/bin/{launchers} gcc -c /{pid}.c -o /{pid}.o")
        if pid in (5, 6):
            words = f"/usr/bin/gcc -c /{pid}.c -o /{pid}.o"
            s.exec(pid, words if pid == 5 else words.replace("gcc", "distcc gcc"))
        if pid != 8:
            s.fork(pid, 10 + pid)
            s.exec(10 + pid, "/usr/bin/gcc -c /tmp.i -o /tmp.2.o" if pid != 5 else
                   f"/usr/lib/gcc/x/12/cc1 -quiet /{pid}.c -o /tmp.s")
            s.exit(10 + pid)
        s.exit(pid)
    s.exit(1)
    trace = w.trace(s)
    made = json.loads(w.run("tracefs-deps", "--compile-commands", "--trace",
                            trace))
    want = [(f"/{x}.c", f"/{x}.o") for x in "ab5678"]
    same([(m["file"], m["output"]) for m in made], want)
    same([os.path.basename(m["arguments"][0]) for m in made], ["gcc"] * 6)
    entries = json.loads(w.run("tracefs-dump", "--format", "nfsdb-json", trace))
    same(sorted((f, o) for e in entries if "d" in e
                for f, o in zip(e["d"]["f"], e["d"]["o"], strict=True)),
         sorted(want))


def check_a_run_that_is_one_compilation(w):
    """gcc's passes hand over in /tmp, which is not traced: what cc1 read is in
    what as wrote. A shell that runs two programs is not one job."""
    for top, found in (("/usr/bin/gcc -c /a.c", ["/a.c"]),
                       ("/bin/sh /build.sh", [])):
        s = Script()
        s.exec(1, top)
        for pid, name, word, path, flags in (
                (2, "cc1", "open", "/a.c", 0), (3, "as", "create", "/a.o", 1)):
            s.fork(1, pid)
            s.exec(pid, f"/usr/bin/{name}")
            s.op(word, pid, name, path, ino=pid, fh=pid, flags=flags,
                 mode=0o100644)
            s.op("release", pid, name, path, ino=pid, fh=pid)
            s.exit(pid)
        s.exit(1)
        same(w.run("tracefs-deps", "/a.o", "--trace", w.trace(s)).split(),
             found, top)


def check_where_compilers_write(w):
    """As gcc and clang take it: with or without a blank, short or long."""
    s = Script()
    s.exec(1, "/bin/make")
    for pid, output in enumerate(("-o o/a.o", "-oo/a.o", "--output o/a.o",
                                  "--output=o/a.o", "-openmp", ""), 2):
        s.fork(1, pid)
        s.exec(pid, f"/usr/bin/gcc -c /a.c {output}".strip())
        s.exit(pid)
    s.exit(1)
    made = json.loads(w.run("tracefs-deps", "--compile-commands", "--trace",
                            w.trace(s)))
    folder = made[0]["directory"].rstrip("/")
    same([m["output"] for m in made],
         [f"{folder}/{name}" for name in ["o/a.o"] * 4 + ["penmp", "a.o"]])


def check_churn(w):
    """Of ten files that are made six go again: two empty, five unread."""
    s = Script()
    for i in range(10):
        s.op("create", 1, "sh", f"/t/{i}", ino=100 + i, fh=i)
        if i not in (0, 1):
            s.op("write", 1, "sh", f"/t/{i}", ino=100 + i, fh=i, off=0, len=10,
                 res=10)
        if i in (2, 9):
            s.op("read", 1, "sh", f"/t/{i}", ino=100 + i, fh=i, off=0, len=10,
                 res=10)
    for i in range(6):
        s.op("unlink", 1, "sh", f"/t/{i}", ino=100 + i, nlink=0)
    same(w.ask("churn", s)[0],
         [{"dir": "/t", "cname": "sh", "created": 10, "gone": 6, "empty": 2,
           "unread": 5, "written": 80, "thrown_away": 40}])


def check_tree(w):
    """Who began whom, with which end."""
    s = Script()
    s.exec(1, "/bin/make")
    for pid in (2, 3):
        s.fork(1, pid)
        s.exec(pid, f"/bin/job{pid}")
        for _ in range(pid):
            s.op("lookup", pid, f"job{pid}", "/x", err=2)
        s.exit(pid, pid - 2)
    s.exit(1)
    same([(r["process"].strip(), r["cpid"], r.get("cppid"), r["count"],
           r["errors"], r.get("exit")) for r in w.ask("tree", s)[0]],
         [("make", 1, None, 0, 0, 0), ("job2", 2, 1, 2, 2, 0),
          ("job3", 3, 1, 3, 3, 1)])


def make_file(s, path, inode, size=10, pid=1):
    s.op("create", pid, "sh", path, ino=inode, fh=inode, mode=0o100644)
    s.op("write", pid, "sh", path, ino=inode, fh=inode, off=0, len=size,
         res=size)
    s.op("release", pid, "sh", path, ino=inode, fh=inode)


def check_lifetimes(w):
    """Three of four files end, of which one is replaced; one is renamed."""
    s = Script()
    begin = {}
    for i, name in enumerate("abcd"):
        begin[name] = s.now
        make_file(s, f"/{name}", 10 + i)
    s.op("rename", 1, "sh", "/a", path2="/b", ino=10, mode=0o100644)
    s.wait(50 * MS)
    oldest = s.now - begin["c"]
    s.op("unlink", 1, "sh", "/c", ino=12, nlink=0)
    s.op("unlink", 1, "sh", "/b", ino=10, nlink=0)
    oldest = max(oldest, s.operations[-1]["t"] - begin["a"])
    row = w.ask("lifetimes", s)[0][0]
    same((row["created"], row["removed"], row["replaced"], row["thrown_away"],
          row["max_ns"]), (4, 2, 1, 30, oldest))


def check_files_that_outlive_their_names(w):
    """What is done through a descriptor belongs to the file that is gone; the
    number it had may be given to another one at once."""
    s = Script()
    for i in range(3):
        fh = 10 + i
        path = f"/t{i}"
        s.op("create", 1, "a", path, ino=40, fh=fh)
        s.op("unlink", 1, "a", path, ino=40)
        for word in ("write", "read"):
            s.op(word, 1, "a", path, ino=40, fh=fh, off=0, len=100, res=100)
        s.op("release", 1, "a", path, ino=40, fh=fh)
    # And where it is not seen that it goes.
    for i in range(2):
        make_file(s, f"/unseen{i}", 41)
    trace = w.trace(s)
    rows = w.tables("lifetimes", trace)[0]
    same([sum(r[c] for r in rows) for c in
          ("created", "removed", "removed_open", "thrown_away")],
         [5, 3, 3, 300])
    same(sorted((r["path"], r["use"]) for r in w.tables("uses", trace)[0]),
         [(f"/t{i}", "both") for i in range(3)] +
         [(f"/unseen{i}", "write only") for i in range(2)])
    same(w.tables("sharing", trace)[1][1]["same_process"], 3)


def check_files_made_without_a_name(w):
    """O_TMPFILE: what is told of one is its directory, which is not its name. It
    is called what a link calls it; without one it goes with its last close."""
    s = Script()
    s.op("mkdir", 1, "a", "/d", ino=5, mode=DIRECTORY)
    born = s.now
    for ino, links in ((10, True), (11, False), (12, False)):
        s.op("tmpfile", 1, "a", "/d", ino=ino, fh=ino, nlink=0)
        s.op("write", 1, "a", "", ino=ino, fh=ino, off=0, len=5, res=5)
        if links:
            s.op("link", 1, "a", "", path2="/d/f", ino=ino, nlink=1)
            s.op("read", 1, "a", "/d/f", ino=ino, fh=ino, off=0, len=5, res=5)
        s.op("release", 1, "a", "/d/f" if links else "", ino=ino, fh=ino)
    # The number of one that has gone is given again.
    make_file(s, "/d/next", 12)
    s.op("unlink", 1, "a", "/d/f", ino=10, nlink=1)
    age = s.operations[-1]["t"] - born
    trace = w.trace(s)
    same(sorted((r["path"], r["use"], r["written"])
                for r in w.tables("uses", trace)[0]),
         [("(never named, made in /d, inode 11)", "write only", 5),
          ("(never named, made in /d, inode 12)", "write only", 5),
          ("/d/f", "both", 5), ("/d/next", "write only", 10)])
    same(w.tables("double-writes", trace)[0], [])
    same([(r["dir"], r["cname"], r["created"], r["gone"], r["unread"])
          for r in w.tables("churn", trace)[0]],
         [("/d", "a", 3, 3, 2), ("/d", "sh", 1, 0, 0)])
    lives = {r["cname"]: r for r in w.tables("lifetimes", trace)[0]}
    same([lives["a"][c] for c in ("created", "removed", "removed_open",
                                  "thrown_away", "max_ns")],
         [3, 3, 0, 15, age])

    def who(path):
        users, changes = [t["rows"] for t in json.loads(w.run(
            "tracefs-report", "who", "--format", "json", path,
            trace))["tables"]]
        return ([(r["count"], r["read"], r["written"]) for r in users],
                [r["op"] for r in changes])
    same(who("/d"), ([(1, 0, 0)], ["mkdir"]))
    same(who("/d/f"), ([(6, 5, 5)], ["tmpfile", "link", "unlink"]))
    # Two files that are linked to one name, one after the other.
    s = Script()
    for ino in (10, 11):
        s.op("tmpfile", 1, "a", "/d", ino=ino, fh=ino, nlink=0)
        s.op("write", 1, "a", "", ino=ino, fh=ino, off=0, len=5, res=5)
        s.op("link", 1, "a", "", path2="/d/f", ino=ino, nlink=1)
        s.op("release", 1, "a", "/d/f", ino=ino, fh=ino)
        s.op("unlink", 1, "a", "/d/f", ino=ino, nlink=1)
    same([(r["class"], r["path"], r["times"])
          for r in w.ask("double-writes", s)[0]], [("recreated", "/d/f", 1)])


def check_files_with_several_names(w):
    """A file goes with the last of its names, also of those that it had before
    the trace began, and is called by one that it still has."""
    def use(s, word, path, fh, pid=1):
        s.op("open", pid, f"p{pid}", path, ino=10, fh=fh, nlink=2)
        s.op(word, pid, f"p{pid}", path, ino=10, fh=fh, off=0, len=8192,
             res=8192)
        s.op("release", pid, f"p{pid}", path, ino=10, fh=fh)

    def answers(s):
        trace = w.trace(s)
        removed = {r["what"]: r["bytes"] for r in w.tables("blocks", trace)[0]}
        return ([(r["path"], r["use"]) for r in w.tables("uses", trace)[0]],
                removed["removed with the file"],
                [r["raw"] for r in w.tables("sharing", trace)[0]])
    # `ln a b` was before.
    s = Script()
    use(s, "write", "/a", 1)
    s.op("unlink", 1, "p1", "/a", ino=10, nlink=2)
    use(s, "read", "/b", 2, pid=2)
    same(answers(s), ([("/b", "both")], 0, [1]))
    s.op("unlink", 1, "p1", "/b", ino=10, nlink=1)
    same(answers(s), ([("/b", "both")], 8192, [1]))
    # Of names that nothing else was done with the last removal is one, too.
    s = Script()
    use(s, "write", "/a", 1)
    s.op("unlink", 1, "p1", "/a", ino=10, nlink=2)
    s.op("unlink", 1, "p1", "/b", ino=10, nlink=1)
    same(answers(s)[1], 8192)
    # An open with O_CREAT finds it by either name, known or not.
    for told in ([("/b", {})], [("/c", {"nlink": 2})], []):
        s = Script()
        make_file(s, "/a", 10)
        s.op("link", 1, "sh", "/a", path2="/b", ino=10)
        for path, more in told:
            s.op("create", 1, "sh", path, ino=10, fh=1, **more)
            s.op("release", 1, "sh", path, ino=10, fh=1)
        same([r["created"] for r in w.ask("lifetimes", s)[0]], [1], told)
    # The first of two goes; told with the number of links, and without.
    for told in ({"nlink": 2}, {}):
        s = Script()
        make_file(s, "/tmp1", 10)
        s.op("link", 1, "sh", "/tmp1", path2="/final", ino=10)
        s.op("unlink", 1, "sh", "/tmp1", ino=10, **told)
        same(answers(s)[0], [("/final", "write only")], told)
        for word, fh in (("read", 2), ("write", 3)):
            use(s, word, "/final", fh)
        same(answers(s)[0], [("/final", "both")], told)
        last = {"nlink": 1} if told else {}
        s.op("unlink", 1, "sh", "/final", ino=10, **last)
        same(answers(s)[:2], ([("/final", "both")], 8192), told)


def check_a_close_beside_the_removal_is_before_it(w):
    """The kernel tells of a close a little after it: what began while the unlink
    ran was no longer open when it had run."""
    def removed_open(closes):
        s = Script()
        for fh in range(len(closes)):
            s.op("create" if fh == 0 else "open", 1, "a", "/f", ino=10, fh=fh,
                 dur=10, gap=0)
        s.op("unlink", 1, "a", "/f", ino=10, nlink=1, dur=1000, gap=-1000)
        begin = s.now
        for fh, at in enumerate(closes):
            s.now = begin + at
            s.op("release", 1, "a", "/f", ino=10, fh=fh)
        return [r["removed_open"] for r in w.ask("lifetimes", s)[0]]
    same(removed_open((400,)), [0])
    same(removed_open((400, 900)), [0])
    same(removed_open((400, 1200)), [1])
    same(removed_open((1200,)), [1])


def check_who_follows_the_file(w):
    """The file that was called so is followed as long as it has a name or is
    open, and no longer."""
    def paths(s):
        return [(r["op"], r["path"]) for r in w.ask("who", s, "/a")[1]]

    # One of two names goes; the number of links is not recorded.
    s = Script()
    make_file(s, "/a", 10)
    s.op("link", 1, "sh", "/a", path2="/b", ino=10)
    s.op("unlink", 1, "sh", "/a", ino=10)
    s.op("setattr", 2, "chmod", "/b", ino=10, valid=1, new_mode=0o100600)
    s.op("unlink", 1, "sh", "/b", ino=10)
    # Its number is free.
    s.op("setattr", 2, "chmod", "/c", ino=10, valid=1, new_mode=0o100600)
    expect = [("create", "/a"), ("link", "/a"), ("unlink", "/a"),
              ("setattr", "/b"), ("unlink", "/b")]
    same(paths(s), expect)
    # Another file takes its name.
    s = Script()
    make_file(s, "/a", 10)
    make_file(s, "/new", 11)
    s.op("rename", 1, "sh", "/new", path2="/a", ino=11, mode=0o100644)
    s.op("setattr", 2, "chmod", "/c", ino=10, valid=1, new_mode=0o100600)
    s.op("rename", 1, "sh", "/a", path2="/z", ino=11, mode=0o100644)
    s.op("setattr", 2, "chmod", "/z", ino=11, valid=1, new_mode=0o100600)
    same(paths(s), [("create", "/a"), ("create", "/new"), ("rename", "/new"),
                    ("rename", "/a"), ("setattr", "/z")])
    # Somebody has it open still.
    s = Script()
    s.op("create", 1, "sh", "/a", ino=10, fh=1, mode=0o100644)
    s.op("unlink", 1, "sh", "/a", ino=10)
    s.op("write", 1, "sh", "/a", ino=10, fh=1, off=0, len=7, res=7)
    s.op("setattr", 1, "sh", "", ino=10, valid=8, new_size=0)
    s.op("release", 1, "sh", "/a", ino=10, fh=1)
    make_file(s, "/c", 10)
    same(len(paths(s)), 3)


def check_files_that_never_had_a_name(w):
    """What is known of them is told in place of a path."""
    s = Script()
    for ino in (7, 8):
        s.op("tmpfile", 1, "a", "/d", ino=ino, fh=ino, nlink=0)
        s.op("write", 1, "a", ino=ino, fh=ino, off=0, len=5, res=5)
        s.op("write", 2, "b", ino=ino, fh=ino, off=0, len=5, res=5)
    s.op("link", 1, "a", "/d/#8", path2="/d/named", ino=8)
    s.op("read", 2, "b", ino=9, fh=9, off=0, len=5, res=5)
    for ino in (7, 8, 9):
        s.op("release", 1, "a", ino=ino, fh=ino)
    trace = w.trace(s)
    never = "(never named, made in /d, inode 7)"
    for question, paths in (
            ("uses", [never, "/d/named", "(name not known, inode 9)"]),
            ("sharing", [never, "/d/named"]),
            ("double-writes", [never, "/d/named"])):
        same(sorted(r["path"] for r in w.tables(question, trace)[0]),
             sorted(paths), question)


def check_filters_of_what_is_set(w):
    """Which attributes a setattr changes, and to what; a mask or a mode that means
    something else to other operations is none."""
    s = Script()
    s.op("getattr", 1, "a", "/stat", ino=10, valid=0x7ff)
    s.op("access", 1, "a", "/access", ino=10, new_mode=2)
    s.op("create", 1, "a", "/create", ino=11, fh=1, new_mode=0o104755,
         mode=0o104755)
    for name, valid, more in (
            ("mode", 1, {"new_mode": 0o604}), ("uid", 2, {"new_uid": 5}),
            ("gid", 4, {"new_gid": 5}), ("cut", 8, {"new_size": 2}),
            ("grown", 0x48, {"new_size": 1 << 20}), ("times", 0x30, {}),
            ("touch", 0x1b0, {}), ("none", 0, {}),
            ("all", 0x3f, {"new_mode": 0o600, "new_uid": 0, "new_gid": 0,
                           "new_size": 0})):
        s.op("setattr", 1, "a", "/" + name, ino=10, valid=valid, mode=0o104755,
             size=7, **more)
    trace = w.trace(s)
    everything = [o["path"] for o in s.operations]
    for text, paths in (
            ("sets = size", ["/cut", "/grown", "/all"]),
            ("sets = size AND new_size < 7", ["/cut", "/all"]),
            ("sets IN { mode uid gid }", ["/mode", "/uid", "/gid", "/all"]),
            ("sets != size", ["/mode", "/uid", "/gid", "/times", "/touch", "/all"]),
            ("NOT sets = size", [p for p in everything
                                 if p not in ("/cut", "/grown", "/all")]),
            ("sets = mtime AND NOT sets = mtime_now", ["/times", "/all"]),
            ("new_mode ~ 04000", ["/create"]),
            ("new_mode ~ 2 OR new_mode ~ 4", ["/create", "/mode"]),
            ("NOT new_mode ~ 0400", [p for p in everything
                                     if p not in ("/create", "/mode", "/all")]),
            ("new_uid = 5 OR new_gid = 5", ["/uid", "/gid"]),
            ("mode ~ 04000 AND op = setattr AND sets = mode", ["/mode", "/all"])):
        told = w.run("tracefs-dump", "--filter", text, "--format", "jsonl", trace)
        same([json.loads(line)["path"] for line in told.splitlines()], paths)


def written(w, s, path):
    """By whom, as [(name, bytes)]."""
    return sorted((r["cname"], r["written"]) for r in w.ask("who", s, path)[0]
                  if r["written"])


def write_file(s, path, ino, pid, comm, size):
    s.op("create", pid, comm, path, ino=ino, fh=ino, mode=0o100644)
    s.op("write", pid, comm, path, ino=ino, fh=ino, off=0, len=size, res=size)
    s.op("release", pid, comm, path, ino=ino, fh=ino)


def check_who_wrote_it_under_another_name(w):
    """Editors write a new file and move it over the old one; directories above
    are moved as well."""
    s = Script()
    write_file(s, "/d/doc", 10, 1, "first", 100)
    write_file(s, "/d/.doc.swp", 11, 2, "vim", 200)
    write_file(s, "/d/other", 12, 3, "cat", 300)
    s.op("rename", 2, "vim", "/d/.doc.swp", path2="/d/doc", ino=11,
         mode=0o100644)
    same(written(w, s, "/d/doc"), [("first", 100), ("vim", 200)])
    same([(r["op"], r["path"]) for r in w.ask("who", s, "/d/doc")[1]],
         [("create", "/d/doc"), ("create", "/d/.doc.swp"),
          ("rename", "/d/.doc.swp")])
    # By any of the names; the number of operations counts the rename once.
    rows = w.ask("who", s, "/d/doc")[0]
    same(sum(r["count"] for r in rows), 7)
    same(written(w, s, "/d/.doc.swp"), [("vim", 200)])
    s.op("rename", 4, "mv", "/d", path2="/e", ino=5, mode=DIRECTORY)
    same(written(w, s, "/e/doc"), [("vim", 200)])
    s.op("mkdir", 4, "mkdir", "/top", ino=6, mode=DIRECTORY)
    s.op("rename", 4, "mv", "/e", path2="/top/f", ino=5, mode=DIRECTORY)
    s.op("rename", 5, "mv", "/top/f/doc", path2="/top/f/final", ino=11,
         mode=0o100644)
    same(written(w, s, "/top/f/final"), [("vim", 200)])
    same(written(w, s, "/top/f/other"), [("cat", 300)])
    # Without numbers of inodes, by names alone.
    plain = Script()
    for line in ("/t", "/u"):
        plain.op("create", 1, "sh", line, fh=7)
        plain.op("write", 1, "sh", line, fh=7, off=0, len=5, res=5)
        plain.op("release", 1, "sh", line, fh=7)
    plain.op("rename", 1, "mv", "/t", path2="/v")
    same(written(w, plain, "/v"), [("mv", 5)])


def check_who_is_not_led_astray(w):
    """Numbers and names that are used again, or made up."""
    # The number of a file that is gone is another's.
    s = Script()
    write_file(s, "/old", 10, 1, "old", 10)
    s.op("unlink", 1, "rm", "/old", ino=10, nlink=0)
    write_file(s, "/tmp", 10, 2, "new", 20)
    s.op("rename", 2, "mv", "/tmp", path2="/a", ino=10, mode=0o100644)
    same(written(w, s, "/a"), [("mv", 20)])
    # It went unseen.
    s = Script()
    write_file(s, "/old", 10, 1, "old", 10)
    write_file(s, "/a", 10, 2, "new", 20)
    same(written(w, s, "/a"), [("new", 20)])
    # A handle is used again for another file.
    s = Script()
    s.op("open", 1, "one", "/x", ino=10, fh=1)
    s.op("open", 2, "two", "/a", ino=11, fh=1)
    s.op("write", 2, "two", "/a", ino=11, fh=1, off=0, len=3, res=3)
    s.op("rename", 1, "one", "/x", path2="/y", ino=10, mode=0o100644)
    same(written(w, s, "/y"), [])
    # A directory moved into itself, names exchanged that are not there, a
    # rename without an end: nothing comes of it.
    s = Script()
    s.op("mkdir", 1, "evil", "/d", ino=1, mode=DIRECTORY)
    write_file(s, "/d/f", 2, 1, "evil", 1)
    s.op("rename", 1, "evil", "/d", path2="/d/d", ino=1, mode=DIRECTORY)
    s.op("rename", 1, "evil", "/nothing", path2="/a", flags=2)
    s.op("rename", 1, "evil", "/d/f", ino=2)
    s.op("unlink", 1, "evil", "/never", ino=2, nlink=0)
    same(written(w, s, "/a"), [])
    # A rename that failed moves nothing.
    s = Script()
    write_file(s, "/t", 10, 1, "t", 5)
    s.op("rename", 1, "mv", "/t", path2="/a", ino=10, err=13, mode=0o100644)
    same(written(w, s, "/a"), [])
    # Tried again, it works: the first attempt counts once, although it concerned
    # both the name and the file.
    s.op("rename", 1, "mv", "/t", path2="/a", ino=10, mode=0o100644)
    same([(r["count"], r["errors"]) for r in w.ask("who", s, "/a")[0]],
         [(5, 1)])
    # Of two mounts with the same numbers each has files of its own.
    both = []
    for host in ("one", "two"):
        s = Script()
        s.other("host", name=host)
        write_file(s, "/t" if host == "one" else "/u", 10, 1, host, 5)
        if host == "two":
            s.op("rename", 1, "mv", "/u", path2="/a", ino=10, mode=0o100644)
        both.append(w.trace(s))
    text = w.run("tracefs-report", "who", "--format", "json", "/a", *both)
    rows = json.loads(text)["tables"][0]["rows"]
    same([(r["cname"], r["written"]) for r in rows], [("mv", 5)])


def check_paths_as_people_say_them(w):
    """As reports print them, by the path of the machine, from where one stands;
    and what is not there is told, each time with status 1."""
    s = Script()
    point = os.path.join(w.folder, "mnt")
    source = os.path.join(w.folder, "src")
    s.other("property", key="mount.point", value=point)
    s.other("property", key="backing.path", value=source)
    write_file(s, "/d/a", 10, 1, "me", 5)
    trace = w.trace(s)

    def ask(*words, cwd=None, tool="tracefs-report"):
        done = subprocess.run(
            [os.path.join(w.bin, tool), *words], cwd=cwd or w.folder,
            capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    os.makedirs(os.path.join(point, "d"), exist_ok=True)
    here = os.path.join(point, "d")
    ways = [("/d/a", None), ("d/a", None), ("//d/./a", None),
            ("/x/../d/a", None), (point + "/d/a", None),
            (source + "/d/a", None), ("mnt/d/a", None), ("a", here),
            ("./a", here), ("../d/a", here)]
    for way, cwd in ways:
        status, out, err = ask("who", "--format", "csv", way, trace, cwd=cwd)
        same((status, out.splitlines()[1].split(",")[0]), (0, "me"), way + err)
        status, out, err = ask(way, "--trace", trace, cwd=cwd,
                               tool="tracefs-deps")
        same(status, 0, f"deps {way}: {err}")
    for way, cwd, said in (("/elsewhere/a", None, "does not lie in what"),
                           ("../a", w.folder, "does not lie in what"),
                           (point + "/d/b", None, "was recorded on a file"),
                           (point + "2/d/a", None, "does not lie in what"),
                           ("b", here, "was recorded on a file")):
        for tool, words in (("tracefs-report", ("who", way, trace)),
                            ("tracefs-deps", (way, "--trace", trace))):
            status, out, err = ask(*words, cwd=cwd, tool=tool)
            same(status, 1, f"{tool} {way}")
            if said not in err or "nobody" in out + err:
                raise Failure(f"{tool} {way}: {out} {err}")


def check_filters_by_paths_of_the_machine_get_advice(w):
    s = Script()
    s.other("property", key="mount.point", value="/mnt/x")
    write_file(s, "/d/a", 10, 1, "me", 5)
    trace = w.trace(s)
    for tool, words in (("tracefs-dump", ("--filter", "{}", trace)),
                        ("tracefs-dump", ("--filter", "{}", "--by", "op",
                                          "--values", "count", trace)),
                        ("tracefs-report", ("files", "--filter", "{}", trace)),
                        ("tracefs-replay", ("--check", "--filter", "{}",
                                            trace))):
        for path, advised in (("path = /mnt/x/d/a", True),
                              ("NOT path ~ \"/mnt/x/**\"", True),
                              ("path = /mnt/xy", False), ("path = /d/a", False)):
            done = w.finished(tool, *(path if v == "{}" else v for v in words))
            said = (done.stdout + done.stderr).decode()
            same("paths of the trace begin at /mnt/x" in said, advised,
                 f"{tool} {path}: {said}")


def check_what_cannot_be_known_is_said(w):
    """Where the answer is that there is nothing, what the trace cannot tell."""
    s = Script()
    s.other("property", key="filter.text", value="op = write")
    s.other("property", key="visibility", value="fast")
    s.other("property", key="visibility.invisible", value="many lookups")
    write_file(s, "/d/a", 10, 1, "me", 5)
    s.other("loss", reason="overflow", count=7, t=s.now, to=s.now)
    trace = w.trace(s)
    for tool, words in (("tracefs-report", ("who", "/b", trace)),
                        ("tracefs-deps", ("/b", "--trace", trace))):
        done = subprocess.run([os.path.join(w.bin, tool), *words],
                              capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        for text in ("op = write", "visibility fast", "many lookups",
                     "7 operations were lost"):
            if text not in said:
                raise Failure(f"{tool} does not say {text}: {said}")
    # A question about some of them says so.
    done = subprocess.run(
        [os.path.join(w.bin, "tracefs-report"), "who", "--filter", "cuid = 5",
         "/d/a", trace], capture_output=True, text=True, check=False)
    same((done.returncode, "that the question is about" in done.stderr),
         (1, True))


def check_percentiles_between_extremes(w):
    """One operation has one duration."""
    s = Script()
    for i, ns in enumerate((1_000_003, 1_007_999, 7_654_321, 1_015_807)):
        s.op("getattr", 1, "a", f"/f{i}", dur=ns, ino=i + 1)
    rows = [json.loads(line) for line in w.run(
        "tracefs-dump", "--format", "jsonl", "--by", "path", "--values",
        "min,p50,p99,max", w.trace(s)).splitlines()]
    same(len(rows), 4)
    for row in rows:
        same(len({v for k, v in row.items() if k != "path"}), 1, row)


def check_renamed_directories(w):
    """What is in a directory is found under its new name."""
    for mode in (DIRECTORY, None):
        s = Script()
        make_file(s, "/old/deep/gone", 10)
        make_file(s, "/old/deep/stays", 11)
        make_file(s, "/older", 12)
        told = {} if mode is None else {"mode": mode}
        s.op("rename", 1, "sh", "/old", path2="/new", ino=5, **told)
        s.wait(5 * MS)
        # Without its inode only the name says which file it is.
        s.op("unlink", 1, "sh", "/new/deep/gone")
        s.op("read", 2, "cat", "", ino=11, off=0, len=10, res=10)
        trace = w.trace(s)
        row = w.tables("lifetimes", trace)[0][0]
        same((row["created"], row["removed"]), (3, 1), mode)
        same(sorted(r["path"] for r in w.tables("uses", trace)[0]),
             ["/new/deep/gone", "/new/deep/stays", "/older"], mode)
        same([r["path"] for r in w.tables("sharing", trace)[0]],
             ["/new/deep/stays"], mode)
    # Two that change places.
    s = Script()
    make_file(s, "/a/f", 10)
    make_file(s, "/b/g", 11)
    s.op("rename", 1, "sh", "/a", path2="/b", ino=5, mode=DIRECTORY, flags=2)
    same(sorted(r["path"] for r in w.ask("uses", s)[0]), ["/a/g", "/b/f"])


def check_double_writes(w):
    """Written by two, made afresh twice, replaced once; a lock file by one
    process alone is no more than recreated."""
    s = Script()
    make_file(s, "/log", 10, pid=1)
    s.op("write", 2, "b", "/log", ino=10, fh=9, off=0, len=5, res=5)
    for i in range(3):
        make_file(s, "/lock", 20 + i)
        s.op("unlink", 1, "sh", "/lock", ino=20 + i, nlink=0)
    make_file(s, "/out", 30)
    make_file(s, "/out.new", 31)
    s.op("rename", 1, "sh", "/out.new", path2="/out", ino=31, mode=0o100644)
    # More than are kept by name.
    for pid in [*range(100, 112), *range(100, 112)]:
        s.op("write", pid, f"job{pid}", "/many", ino=40, fh=pid, off=0, len=4,
             res=4)
    rows = w.ask("double-writes", s)[0]
    same({(r["class"], r["path"]): r["times"] for r in rows},
         {("rewritten", "/log"): 1, ("recreated", "/lock"): 2,
          ("replaced", "/out"): 1, ("rewritten", "/many"): 11})
    same([r["writers"].endswith("job107 and more") for r in rows
          if r["path"] == "/many"], [True])


def check_sharing(w):
    """Reads after reads and writes, by others."""
    s = Script()
    for pid, word in ((1, "write"), (2, "read"), (3, "read"), (4, "write"),
                      (5, "write"), (5, "read")):
        s.op(word, pid, f"p{pid}", "/f", ino=10, fh=pid, off=0, len=4, res=4)
    tables = w.ask("sharing", s)
    row = tables[0][0]
    same((row["rar"], row["raw"], row["war"], row["waw"]), (1, 1, 1, 1))
    same({r["order"]: r["same_process"] for r in tables[1]},
         {"rar": 0, "raw": 1, "war": 0, "waw": 0})


def check_rates(w):
    """Seven in the third second, one in the first and in the last."""
    s = Script()
    s.op("lookup", 1, "a", "/x")
    s.wait(2_100 * MS)
    for _ in range(7):
        s.op("write", 1, "a", "/x", ino=1, fh=1, off=0, len=100, res=100)
    s.wait(57_000 * MS)
    s.op("lookup", 1, "a", "/x")
    rows = {r["period_ns"]: r for r in w.ask("rates", s)[0]}
    second = rows[1000 * MS]
    same((second["periods"], second["count_max"], second["count_p50"],
          second["bytes_max"], second["busiest_ns"] - Script.BEGIN_NS),
         (60, 7, 0, 700, 2000 * MS))
    same((rows[60_000 * MS]["periods"], rows[60_000 * MS]["count_max"]), (1, 9))


def check_under(w):
    """A process, what it began, and nobody else."""
    s = Script()
    s.exec(7, "/bin/make")
    for parent, pid, name in ((7, 2, "gcc"), (2, 3, "cc1"), (7, 4, "ld")):
        s.fork(parent, pid)
        s.exec(pid, f"/bin/{name}")
        for _ in range(pid):
            s.op("lookup", pid, name, "/x", err=2)
    s.op("lookup", 9, "other", "/x", err=2)
    trace = w.trace(s)

    def counts(text):
        return {r["cname"]: r["count"] for r in map(json.loads, w.run(
            "tracefs-dump", "--filter", text, "--by", "cname", "--format",
            "jsonl", trace).splitlines())}
    same(counts("under(cname = gcc)"), {"gcc": 2, "cc1": 3})
    same(counts("under(cpid = 7)"), {"gcc": 2, "cc1": 3, "ld": 4})
    same(counts("under(cname IN { cc1 other })"), {"cc1": 3, "other": 1})
    same(counts("NOT under(cname = gcc OR cpid = 4)"), {"other": 1})
    # Also where another part needs the trace.
    same(counts("under(cname = gcc) AND inferred = 0"), {"gcc": 2, "cc1": 3})


def check_diff_of_several_runs(w):
    """What a run lacks counts as 0 in sums; a mean or a percentile is that of
    the runs that have one."""
    def run(*durations):
        s = Script()
        s.op("write", 1, "a", "/x", ino=1, fh=1, off=0, len=8, res=8, dur=5000)
        for ns in durations:
            s.op("fsync", 1, "a", "/x", ino=1, fh=1, dur=ns)
        return w.trace(s)
    with_one, without = run(2_870_000), run()
    both, again = ",".join([with_one, without]), ",".join([with_one] * 2)

    def fsync(a, b):
        (table,) = json.loads(w.run("tracefs-report", "diff", a, b, "--format",
                                    "json"))["tables"]
        (row,) = (r for r in table["rows"] if r["op"] == "fsync")
        return row
    row = fsync(both, again)
    for name in ("mean", "p99"):
        same((row[f"{name}_a_ns"], row[f"{name}_b_ns"]), (2_870_000,) * 2, name)
    # Half of one, rounded.
    same((row["time_a_ns"], row["time_b_ns"], row["count_a"], row["count_b"]),
         (1_435_000, 2_870_000, 1, 1))
    row = fsync(",".join([run(1000, 3000), run(4000)]), without)
    same((row["mean_a_ns"], row.get("mean_b_ns"), row["verdict"]),
         (3000, None, "gone"))


def check_diff_of_a_trace_with_a_comma_in_its_name(w):
    s = Script()
    s.op("read", 1, "r", "/f", ino=1, off=0, len=1, res=1, dur=MS)
    plain = w.trace(s)
    named = os.path.join(w.folder, "a, b.trace")
    shutil.copy(plain, named)
    for side in (named, f"{plain},{plain}"):
        (table,) = json.loads(w.run("tracefs-report", "diff", side, plain,
                                    "--format", "json"))["tables"]
        same([(r["count_a"], r["count_b"]) for r in table["rows"]], [(1, 1)])
    same("<html" in w.run("tracefs-report", "diff", named, plain, "--format",
                          "html"), True)


def check_plots_have_the_heights_of_shares(w):
    """Four of five operations in the first second, one in the third."""
    s = Script()
    for i in range(5):
        if i == 4:
            s.wait(2000 * MS)
        s.op("read", 1, "r", "/f", ino=1, off=0, len=1, res=1, dur=(i + 1) * MS)
    for value, shares in (("share", (0.8, 0.2)), ("time_share", (10 / 15, 5 / 15)),
                          ("count", (4, 1)), ("time", (10 * MS, 5 * MS)),
                          ("max", (4 * MS, 5 * MS))):
        (row,) = [json.loads(line) for line in w.run(
            "tracefs-dump", "--plot", value, "--every", "1s", "--format", "jsonl",
            w.trace(s), env={"LC_ALL": "C"}).splitlines()]
        told = {k.removesuffix("_ns"): v for k, v in row.items()}
        same(abs(told["max"] - max(shares)) < 1e-6, True, (value, row))
        if "sum" in told:
            same(abs(told["sum"] - sum(shares)) < 1e-6, True, (value, row))
        same(told["plot"], "".join(
            str(1 + int(7 * share / max(shares))) if share else " "
            for share in (shares[0], 0, shares[1])), (value, row))
    text = w.run("tracefs-dump", "--plot", "count", "--every", "1s", w.trace(s))
    same("3 periods of 1.00 s" in text, True, text)


def check_a_replay_says_which_way_its_time_differs(w):
    """What took an hour, and begins at once, takes no hour again."""
    s = Script()
    s.op("mkdir", 1, "sh", "/d", ino=2, mode=0o755, dur=3600 * 1000 * MS)
    done = w.finished("tracefs-replay", w.trace(s), "--root",
                      tempfile.mkdtemp(dir=w.folder), "--timing", "original")
    same(re.findall("took (.*) % (.*) than asked", done.stdout.decode()),
         [("100.0", "less")], done)


def check_plots_keep_nothing_and_0_apart(w):
    """Rows of a plot are those of the table of the same key."""
    s = Script()
    for i in range(3):
        s.op("open", 1, "a", "/x", ino=1, fh=1, **({"flags": 0} if i == 0 else {}))
    s.op("open", 1, "a", "/x", ino=1, fh=1, flags=1)
    trace = w.trace(s)

    def rows(*words):
        return sorted((str(r.get("flags")), r.get("count", r.get("sum")))
                      for r in map(json.loads, w.run(
                          "tracefs-dump", "--by", "flags", *words, "--format",
                          "jsonl", trace).splitlines()))
    same(len(rows()), 3)
    same(rows("--plot", "count", "--every", "10s"), rows())


def check_pauses(w):
    """Every fourth operation comes late; each process thinks for its own time."""
    s = Script()
    for i in range(12):
        s.op("lookup", 1 + i % 2, f"p{i % 2}", "/x", dur=1000,
             gap=7000 if i % 4 == 3 else 1000)

    def counts(trace, value):
        return {r["from_ns"]: r["count"] for r in map(json.loads, w.run(
            "tracefs-dump", "--hist", value, "--format", "jsonl",
            trace).splitlines()) if r["count"]}
    trace = w.trace(s)
    begins = [o["t"] for o in s.operations]
    gaps = [b - a for a, b in zip(begins, begins[1:])]
    thinks = [b - a - 1000 for a, b in zip(begins, begins[2:])]

    def histogram(values):
        found = {}
        for v in values:
            low = 0 if v == 0 else 1 << (v.bit_length() - 1)
            found[low] = found.get(low, 0) + 1
        return found
    same(counts(trace, "gap"), histogram(gaps))
    same(counts(trace, "think"), histogram(thinks))
    same([{r["from_ns"]: r["count"] for r in t if r["count"]}
          for t in w.tables("pauses", trace)],
         [histogram(gaps), histogram(thinks)])
    s = Script()
    make_file(s, "/a", 10)
    s.op("unlink", 1, "rm", "/a", ino=10, nlink=0)
    same(counts(w.trace(s), "lifetime"),
         histogram([s.operations[-1]["t"] - s.operations[0]["t"]]))


def check_linear_histograms(w):
    """Even rows have what lies in them; many empty ones are one."""
    s = Script()
    sizes = [0, 1, 999, 1000, 1001, 1999, 2500, 9000, 9999, 1 << 40]
    for i, size in enumerate(sizes):
        s.op("read", 1, "a", "/x", ino=1, fh=1, off=i, len=size, res=size,
             dur=100 + 10 * i, gap=1000 + 100 * i)
    trace = w.trace(s)

    def rows(value):
        return [json.loads(line) for line in w.run(
            "tracefs-dump", "--hist", value, "--format", "jsonl",
            trace).splitlines()]
    for value, key, width, values in (
            ("length,linear=1000", "from", 1000, sizes),
            ("size,linear=4K", "from", 4096, sizes),
            ("latency,linear=30ns", "from_ns", 30,
             [100 + 10 * i for i in range(len(sizes))]),
            ("gap,linear=250ns", "from_ns", 250,
             [b["t"] - a["t"] for a, b in zip(s.operations, s.operations[1:])])):
        have = rows(value)
        expected = {}
        for v in values:
            expected[v - v % width] = expected.get(v - v % width, 0) + 1
        name = key if key in have[0] else key + "_bytes"
        same({r[name]: r["count"] for r in have if r["count"]}, expected, value)
        # Each row begins where the one before has ended.
        to = name.replace("from", "to")
        same([r[name] for r in have[1:]], [r[to] + 1 for r in have[:-1]], value)
    same(len(rows("length,linear=1000")), 3 + 1 + 1 + 1 + 1)
    same([(r["linear(length,4K)"], r["count"]) for r in map(json.loads, w.run(
        "tracefs-dump", "--by", "linear(length,4K)", "--values", "count",
        "--sort", "-linear(length,4K)", "--format", "jsonl",
        trace).splitlines())], [(0, 7), (8192, 2), (1 << 40, 1)])
    for wrong in ("length,linear=0", "length,linear=1ms", "latency,linear=1K",
                  "length,log", "length,linear=", "gap,linear=-1", "path,linear=1"):
        w.run("tracefs-dump", "--hist", wrong, trace, status=2)


def check_places_are_shown_on_a_terminal(w):
    """With a line and a caret; where nobody reads it, without."""
    config = os.path.join(w.folder, "broken.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write('{\n { op = open }\n { stream = { STR_ALL } }\n'
                   '\t{ file = "/tmp/x" buf = 10MB }\n}\n')
    trace = w.trace(Script())
    for words, line, place in (
            (["tracefs-dump", "--filter", "op = open AND op = stat", trace],
             "op = open AND op = stat", "stat"),
            (["tracefs-dump", "--filter", "op = opem", "--by", "op", trace],
             "op = opem", "opem"),
            (["tracefs-report", "summary", "--filter", "latency > 10secs",
              trace], "latency > 10secs", "10secs"),
            (["tracefs-mount", "--check", config],
             '{ file = "/tmp/x" buf = 10MB }', "10MB")):
        reader, terminal = os.openpty()
        done = subprocess.run([os.path.join(w.bin, words[0]), *words[1:]],
                              stdout=subprocess.PIPE, stderr=terminal,
                              check=False)
        os.close(terminal)
        text = b""
        try:
            while part := os.read(reader, 65536):
                text += part
        except OSError:
            pass
        os.close(reader)
        same(done.returncode, 2, text)
        lines = text.decode().replace("\r", "").splitlines()
        same(len(lines), 3, lines)
        same(lines[1].strip(), line)
        same(lines[1][lines[2].index("^"):].split()[0], place, lines)
        same("did you mean" in lines[0], True, lines)
        silent = subprocess.run([os.path.join(w.bin, words[0]), *words[1:]],
                                capture_output=True, check=False)
        same(silent.stderr.decode().splitlines(), lines[:1])


# --- odd traces

def questions(w, trace, status=0):
    for question in w.questions():
        for form in ("text", "json", "csv", "md"):
            text = w.run("tracefs-report", question, "--format", form, trace,
                         status=status)
            if form == "json":
                json.loads(text)
    for form in ("html", "json", "md"):
        w.run("tracefs-report", "--format", form, trace, "-o",
              os.path.join(w.folder, "page"), status=status)


def check_one_operation(w):
    s = Script()
    s.op("read", 1, "a", "/x", ino=1, fh=1, off=0, len=4, res=4)
    trace = w.trace(s)
    questions(w, trace)
    for words in (["--by", "op,path"], ["--hist", "latency"], ["--every", "1s"],
                  ["--hist", "size"]):
        rows = [json.loads(line) for line in w.run(
            "tracefs-dump", *words, "--format", "jsonl", trace).splitlines()]
        same(sum(r["count"] for r in rows), 1, words)
    same("read" in w.run("tracefs-dump", "--browse", trace), True)
    same("1" in w.run("tracefs-dump", "--plot", "count", trace), True)


def check_no_operation(w):
    trace = w.trace(Script())
    questions(w, trace)
    same(w.run("tracefs-dump", "--by", "op", "--format", "jsonl", trace), "")


def check_only_counts(w):
    """What aggregate drivers counted is answered from, or said what there is."""
    questions(w, os.path.join(GOLDEN, "aggregates.trace"))
    s = Script()
    for op, uid, n in (("read", 0, 5), ("read", 1000, 7), ("write", 0, 11)):
        s.other("count", t=0, to=10 * MS, op=op, uid=uid, n=n, errors=1)
    trace = w.trace(s)
    questions(w, trace)

    def counts(key):
        return {r[key]: (r["count"], r["errors"]) for r in map(
            json.loads, w.run("tracefs-dump", "--by", key, "--format", "jsonl",
                              trace).splitlines())}
    same(counts("op"), {"read": (12, 2), "write": (11, 1)})
    same(counts("cuid"), {0: (16, 2), 1000: (7, 1)})
    # What the tracer had no room for is `other`, with which totals add up.
    s.other("count", t=0, to=10 * MS, n=1000, errors=9, other=1)
    trace = w.trace(s)
    for shown in ([], ["--top", "1"]):
        rows = [json.loads(line) for line in w.run(
            "tracefs-dump", "--by", "op", "--format", "jsonl", *shown,
            trace).splitlines()]
        same(sum(row["count"] for row in rows), 1023)
        same(sum(row["errors"] for row in rows), 12)
    same(rows[-1]["op"], "other(1 and more)")
    same(w.run("tracefs-dump", "--by", "op", trace).splitlines()[-1].split()[:3],
         ["other", "1,000", "9"])
    # A histogram tells the longest operation, but not the shortest one.
    took = Script()
    took.other("count", t=0, to=10 * MS, op="read", uid=0, n=5, took=800)
    (row,) = map(json.loads, w.run(
        "tracefs-dump", "--by", "op", "--values", "mean,min,max", "--format",
        "jsonl", w.trace(took)).splitlines())
    same(row, {"op": "read", "mean_ns": 800, "max_ns": 800})
    refused = subprocess.run(
        [os.path.join(w.bin, "tracefs-dump"), "--by", "path", trace],
        capture_output=True, check=False)
    same((refused.returncode, b"counted by" in refused.stderr), (2, True),
         refused.stderr.decode())


def check_counts_that_are_no_part_of_the_answer_are_told(w):
    s = Script()
    s.other("count", t=0, to=10 * MS, op="read", uid=0, n=5, bytes=50)
    counts = w.trace(s)
    s = Script()
    write_file(s, "/a", 10, 1, "me", 5)
    operations = w.trace(s)
    told = "counts of an aggregate driver"
    for words, expected in (((counts,), False), ((operations,), False),
                            ((operations, counts), True),
                            (("--filter", "op = read", counts), True)):
        done = w.finished("tracefs-dump", "--by", "op", "--values", "count",
                          *words)
        same((done.returncode, told in (done.stdout + done.stderr).decode()),
             (0, expected), str(words))


def check_several_drivers_count(w):
    """Of several aggregate drivers of a tracer, the one that has the keys
    answers, and each operation counts once."""
    s = Script()
    s.other("property", key="aggregate.copies", value="both files")
    s.other("property", key="aggregate.2", value="dir(1)")
    for op, n, size in (("read", 5, 50), ("copy_file_range", 2, 7)):
        s.other("count", t=0, to=10 * MS, aggregate=1, op=op, uid=0, n=n,
                bytes=size)
    for folder, n in (("/a", 4), ("/b", 3)):
        s.other("count", t=0, to=10 * MS, aggregate=2, dir=folder, n=n,
                bytes=30)
    trace = w.trace(s)

    def rows(*words):
        return [json.loads(line) for line in w.run(
            "tracefs-dump", *words, "--format", "jsonl", trace).splitlines()]
    same(rows("--by", "op", "--values", "count,bytes,read,written"),
         [{"op": "read", "count": 5, "bytes": 50, "read": 50, "written": 0},
          {"op": "copy_file_range", "count": 2, "bytes": 7, "read": 7,
           "written": 7}])
    same(rows("--by", "cuid", "--values", "count"), [{"cuid": 0, "count": 7}])
    # Of what was not counted by operation it is not known what was read.
    same(rows("--by", "dir(1)", "--values", "count,bytes,read"),
         [{"dir(1)": "/a", "count": 4, "bytes": 30},
          {"dir(1)": "/b", "count": 3, "bytes": 30}])
    for keys in ("dir", "dir(2)", "op,dir(1)"):
        refused = subprocess.run(
            [os.path.join(w.bin, "tracefs-dump"), "--by", keys, trace],
            capture_output=True, check=False)
        same((refused.returncode, b"dir(1)" in refused.stderr), (2, True),
             refused.stderr.decode())
    told = w.run("tracefs-dump", "--stats", trace)
    for words in ("read uid=0 ", "copy_file_range uid=0 ", "dir=/a ", "dir=/b "):
        same(words in told, True, told)
    told = [r for r in rows("--stats") if "aggregate" in r]
    same([(r["aggregate"], r.get("op"), r.get("uid"), r.get("dir"), r["count"])
          for r in told],
         [(1, "read", 0, None, 5), (1, "copy_file_range", 0, None, 2),
          (2, None, None, "/a", 4), (2, None, None, "/b", 3)])


def check_losses(w):
    """Operations before and after are there, and what is missing is told."""
    s = Script()
    s.op("read", 1, "a", "/x", ino=1, fh=1, off=0, len=4, res=4)
    s.other("loss", t=s.now, to=s.now + MS, count=12345, reason="queue_full")
    s.wait(2 * MS)
    s.op("read", 1, "a", "/x", ino=1, fh=1, off=4, len=4, res=4)
    trace = w.trace(s)
    questions(w, trace, status=1)
    page = json.loads(w.run("tracefs-report", "--format", "json", trace,
                            status=1))
    same(page["losses"]["operations"], 12345)
    same(page["totals"]["count"], 2)
    if not any("12" in line["text"] and line["level"] == "bad"
               for line in page["summary"]):
        raise Failure(f"the page says it first: {page['summary']}")
    done = subprocess.run([os.path.join(w.bin, "tracefs-dump"), "--by", "op",
                           trace], capture_output=True, check=False)
    same((done.returncode, b"12345" in done.stderr), (1, True), done.stderr)


def check_clock_that_jumps(w):
    """An hour back in the middle: nothing is lost, and it is told."""
    s = Script()
    for real in (Script.BEGIN_NS, Script.BEGIN_NS - 3_600_000 * MS,
                 Script.BEGIN_NS + 3_600_000 * MS):
        s.block()
        s.other("clock", real=real)
        for i in range(10):
            s.op("write", 1, "a", "/x", ino=1, fh=1, off=4 * i, len=4, res=4)
    trace = w.trace(s)
    questions(w, trace)
    facts = {r["what"]: r for r in w.tables("summary", trace)[1]}
    same((facts["operations"]["count"], facts["written"]["bytes"],
          facts["times the clock went back"]["count"]), (30, 120, 1), facts)
    for words in (["--by", "op"], ["--every", "1s"], ["--by", "hour"]):
        rows = [json.loads(line) for line in w.run(
            "tracefs-dump", *words, "--format", "jsonl", trace).splitlines()]
        same(sum(r["count"] for r in rows), 30, words)


def check_stats_of_counted_copies(w):
    """The bytes of a copy, counted for both files, are in the total once; where
    copies cannot be told apart, that is said."""
    def total(*counts):
        s = Script()
        s.other("property", key="aggregate.copies", value="both files")
        for number, more in enumerate(counts):
            s.other("count", t=0, to=10 * MS, aggregate=1, n=1 - number % 2,
                    bytes=700, **more)
        told = w.run("tracefs-dump", "--stats", w.trace(s))
        line = next(l for l in told.splitlines() if l.startswith("total"))
        return words_of(line)[3], "in the total twice" in told

    same(total({"op": "copy_file_range", "dir": "/a"},
               {"op": "copy_file_range", "dir": "/b"}), ("700 B", False), "copies")
    same(total({"dir": "/a"}, {"dir": "/b"}), ("1.40 kB", True), "by directory")
    same(total({"op": "read", "dir": "/a"}, {"op": "read", "dir": "/b"}),
         ("1.40 kB", False), "reads")


def check_formulas(w):
    """No cell of CSV is one, wherever a spreadsheet may begin a cell, unless it
    is asked for; and the names come back."""
    s = Script()
    s.exec(1, "/bin/=cmd()")
    for name in ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "plain", "a,b\"c",
                 "=\"x\",1", " =1", "a;=1", "a; \u00a0+1;-2", "\uff1d1", "\uff20x",
                 "\\x3d1"):
        make_file(s, f"/{name}", 100 + len(s.operations))
        s.op("lookup", 1, name[:15], f"/{name}", err=2)
        s.op("rename", 1, "=r", f"/{name}", path2=f"/{name}2",
             ino=s.operations[-4]["ino"], mode=0o100644)
    trace = w.trace(s)
    commands = [["tracefs-report", q, "--format", "csv"]
                for q in w.questions()]
    commands.append(["tracefs-report", "diff", "--by", "cname,path", "--format",
                     "csv", trace])
    for words in (["--by", "cname,path,ext,name,process,tree"], []):
        commands.append(["tracefs-dump", "--format", "csv", *words])
    # What OWASP lists, and where else a cell may begin.
    formula = re.compile("[\t\r\n]|(^|;)\\s*[=+@\uff1d\uff0b\uff0d\uff20-]")
    number = re.compile(r"-?[0-9.]+(e-?[0-9]+)?")

    def formulas(command):
        return [cell for row in csv.reader(io.StringIO(
            w.run(*command, trace), newline=""))
                for cell in row
                if formula.search(cell) and not number.fullmatch(cell)]

    for command in commands:
        same(formulas(command), [], command)
    same(bool(formulas(["tracefs-dump", "--format", "csv", "--set", "safe=no"])),
         True, "raw")
    same(bool(formulas(["tracefs-report", "files", "--format", "csv", "--raw"])),
         True, "raw")
    w.run("tracefs-report", "files", "--format", "json", "--raw", trace, status=2)

    def names(*words):
        rows = csv.DictReader(io.StringIO(w.run(
            "tracefs-dump", "--format", "csv", *words, trace)))
        return [unescaped(row["path"]) for row in rows]

    same(names(), names("--set", "safe=no"), "names")


def check_terminal_without_utf8(w):
    """Pictures are of ASCII there, and of blocks else."""
    s = Script()
    for i in range(40):
        s.op("read", 1, "a", "/x\u00e4\u202e", ino=1, fh=1, off=4 * i, len=4,
             res=4, gap=1000 * i)
    trace = w.trace(s)
    for words in (["tracefs-dump", "--plot", "count"],
                  ["tracefs-dump", "--hist", "latency"],
                  ["tracefs-dump", "--format", "tree"],
                  ["tracefs-report", "tree"]):
        text = w.run(*words, trace, env={"LC_ALL": "C"})
        if not text.isascii():
            raise Failure(f"{words}: {text}")
    same(w.run("tracefs-dump", "--plot", "count", trace).isascii(), False)


def check_a_million(w):
    """A million files and processes: bounded memory, and totals that add up."""
    count = 1_000_000
    trace = os.path.join(w.folder, "million.trace")
    subprocess.run([w.workload_maker, trace, str(count), str(count),
                    str(count)], check=True)
    for words in (["tracefs-dump", "--by", "path", "--values", "count",
                   "--top", "5", "--format", "jsonl"],
                  ["tracefs-dump", "--by", "process,path", "--values", "count",
                   "--top", "5", "--format", "jsonl"],
                  ["tracefs-report", "lifetimes", "--format", "json"],
                  ["tracefs-report", "tree", "--top", "1", "--format", "json"]):
        with tempfile.TemporaryFile() as out:
            child = subprocess.Popen(
                [os.path.join(w.bin, words[0]), *words[1:], trace], stdout=out)
            _, status, used = os.wait4(child.pid, 0)
            out.seek(0)
            text = out.read().decode()
        same(status, 0, words)
        if not w.sanitized and used.ru_maxrss > 400 * 1024:
            raise Failure(f"{words}: {used.ru_maxrss // 1024} MiB")
        if "jsonl" in words:
            same(sum(json.loads(line)["count"] for line in text.splitlines()),
                 count, words)


def check_exact(w):
    """With room for few keys --exact has each of many, whole."""
    count = 200_000
    trace = os.path.join(w.folder, "many.trace")
    subprocess.run([w.workload_maker, trace, str(count), str(count),
                    "300"], check=True)

    def rows(*words):
        return [json.loads(line) for line in w.run(
            "tracefs-dump", "--format", "jsonl", *words, trace).splitlines()]
    by = ["--by", "path,op", "--values", "count,bytes,time,p99,share"]
    whole = rows(*by, "--memory", "1G")
    little = [*by, "--memory", "1M"]
    expect = "missed" in rows(*little)[0]
    same(expect, True, "1M is too little")
    same(rows(*little, "--exact"), whole)
    for sort in ("count", "-time", "path"):
        cut = rows(*by, "--memory", "1G", "--sort", sort, "--top", "7")
        same(rows(*little, "--exact", "--sort", sort, "--top", "7"), cut, sort)
    same(rows(*little, "--exact", "--every", "20s", "--top", "3"),
         rows(*by, "--memory", "1G", "--every", "20s", "--top", "3"))
    w.run("tracefs-dump", *little, "--exact", trace, status=3,
          env={"TMPDIR": "/nonexistent"})
    for wrong in (["--by", "op", "--values", "count,files", "--exact"],
                  ["--sort", "latency", "--exact"], ["--exact"],
                  ["--hist", "gap", "--exact"]):
        w.run("tracefs-dump", *wrong, trace, status=2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    parser.add_argument("--make-workload-trace", required=True)
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments, folder)
        world.sanitized = arguments.sanitized
        return run_checks(
            [check for name, check in sorted(globals().items())
             if name.startswith("check_") and arguments.only in name],
            lambda: world)


if __name__ == "__main__":
    sys.exit(main())
