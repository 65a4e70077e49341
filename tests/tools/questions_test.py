#!/usr/bin/env python3
"""Every question of docs/questions.md: its command is run as the page has it, on
one made-up workload, and its numbers are compared with sums that Python makes of
what was told to happen, or of the SQLite export."""

import argparse
import collections
import csv
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from command_checks import Commands, Failure, time_at_depth  # noqa: E402
from command_checks import expect_equal as same  # noqa: E402
from scripted_trace import Script  # noqa: E402

PAGE = os.path.join(ROOT, "docs/questions.md")
# What no trace tells.
NOT_ANSWERED = {49}
# Not commands on a trace, or on one of a device: reader_*_test, the tests of
# metrics and mount_extents_test have them.
ELSEWHERE = {54, 56, 57}
ENOENT = 2
EACCES = 13
INODES = {}


def inode(path):
    return INODES.setdefault(path, 100 + len(INODES))


class Workload:
    """A build, a database, a copy, a backup by root, and somebody who renames."""

    def __init__(self):
        self.s = Script()
        self.fh = 0

    def look(self, pid, comm, path, err=0):
        more = {} if err else {"ino": inode(path), "mode": 0o100644,
                               "fuid": 1000, "fgid": 1000, "nlink": 1}
        self.s.op("lookup", pid, comm, path, err=err, **more)

    def open(self, pid, comm, path, flags=0, make=False, **more):
        self.fh += 1
        self.s.op("create" if make else "open", pid, comm, path,
                  ino=inode(path), fh=self.fh, flags=flags, **more)
        return self.fh

    def io(self, word, pid, comm, path, fh, off, size, **more):
        self.s.op(word, pid, comm, path, ino=inode(path), fh=fh, off=off,
                  len=size, res=more.pop("res", size), **more)

    def close(self, pid, comm, path, fh):
        self.s.op("release", pid, comm, path, ino=inode(path), fh=fh,
                  inferred=1)

    def whole(self, word, pid, comm, path, size, step=4096, make=False, **more):
        fh = self.open(pid, comm, path, 1 if word == "write" else 0, make, **more)
        for off in range(0, size, step):
            self.io(word, pid, comm, path, fh, off, min(step, size - off), **more)
        self.close(pid, comm, path, fh)

    def gone(self, pid, comm, path):
        self.s.op("unlink", pid, comm, path, ino=inode(path), nlink=0)
        del INODES[path]
        INODES[("gone", path, len(INODES))] = 100 + len(INODES)

    def compile(self, pid, name, fails):
        s = self.s
        s.fork(100, pid)
        s.exec(pid, f"/bin/gcc -c /src/{name}.c")
        self.look(pid, "gcc", f"/src/{name}.c")
        s.fork(pid, pid + 1)
        s.exec(pid + 1, f"/bin/cc1 /src/{name}.c")
        for i in range(fails):
            self.look(pid + 1, "cc1", f"/inc/missing{i}.h", ENOENT)
        self.whole("read", pid + 1, "cc1", f"/src/{name}.c", 6000)
        for header in ("h0", "h1"):
            self.whole("read", pid + 1, "cc1", f"/inc/{header}.h", 1500)
        self.whole("write", pid + 1, "cc1", f"/tmp/{name}.s", 9000, make=True)
        s.exit(pid + 1)
        s.fork(pid, pid + 2)
        s.exec(pid + 2, f"/bin/as /tmp/{name}.s")
        self.whole("read", pid + 2, "as", f"/tmp/{name}.s", 9000)
        self.whole("write", pid + 2, "as", f"/out/{name}.o", 5000, make=True)
        s.exit(pid + 2)
        self.gone(pid, "gcc", f"/tmp/{name}.s")
        s.exit(pid)

    def build(self):
        s = self.s
        s.exec(100, "/bin/make all")
        self.compile(110, "a", 5)
        self.compile(120, "b", 7)
        s.fork(100, 130)
        s.exec(130, "/bin/ld -o /out/prog")
        for name in ("a", "b"):
            self.whole("read", 130, "ld", f"/out/{name}.o", 5000)
        self.whole("write", 130, "ld", "/out/prog", 20000, make=True)
        self.whole("write", 130, "ld", "/out/map", 700, make=True)
        s.exit(130)
        # Two jobs that do not wait for each other.
        s.fork(100, 140)
        s.fork(100, 141)
        s.exec(140, "/bin/list")
        s.exec(141, "/bin/use")
        self.whole("read", 141, "use", "/list", 300)
        self.whole("write", 140, "list", "/list", 300)
        s.exit(141)
        s.exit(140)
        s.exit(100, 0)

    def database(self):
        s = self.s
        fh = self.open(200, "sqlite3", "/db", 2)
        for i in range(12):
            self.io("write", 200, "sqlite3", "/db", fh, (i * 7 % 5) * 4096, 4096)
            s.op("fsync", 200, "sqlite3", "/db", dur=2_000_000 + 1000 * i,
                 ino=inode("/db"), fh=fh)
        s.op("fsync", 200, "sqlite3", "/db", dur=31_000_000, ino=inode("/db"),
             fh=fh)
        # Another process writes into it, and one that may not.
        other = self.open(201, "vacuum", "/db", 2)
        self.io("write", 201, "vacuum", "/db", other, 0, 512)
        s.op("open", 202, "guest", "/db", err=EACCES, ino=inode("/db"), flags=2)
        self.close(201, "vacuum", "/db", other)
        self.close(200, "sqlite3", "/db", fh)

    def overlap(self):
        """Three reads of one process at the same time."""
        fh = self.open(300, "reader", "/big")
        for i in range(3):
            self.io("read", 300, "reader", "/big", fh, i * 131072, 131072,
                    dur=50_000, gap=-45_000)
        self.s.wait(50_000)
        self.close(300, "reader", "/big", fh)

    def locks(self):
        """One name made afresh three times."""
        for _ in range(3):
            self.whole("write", 310, "git", "/lock", 4, make=True)
            self.gone(310, "git", "/lock")

    def backup(self):
        for path in ("/src/a.c", "/src/b.c", "/out/prog"):
            self.whole("read", 400, "backup", path, 6000, uid=0)

    def rename(self):
        s = self.s
        s.exec(500, "/bin/locker")
        for i in range(6):
            path = f"/docs/d{i}.txt"
            self.look(500, "locker", path)
            s.op("rename", 500, "locker", path, path2=path[:-4] + ".locked",
                 ino=inode(path))
        s.op("setattr", 500, "locker", "/docs/d0.locked", valid=8, new_size=0,
             ino=inode("/docs/d0.txt"), mode=0o100644, size=0)
        s.op("setattr", 500, "locker", "/docs/d1.locked", valid=1,
             new_mode=0o104755, ino=inode("/docs/d1.txt"), mode=0o104755,
             fuid=1000, fgid=1000)
        s.op("setattr", 500, "locker", "/docs/d2.locked", valid=2,
             new_uid=0, ino=inode("/docs/d2.txt"), err=1)
        self.fh += 1
        s.op("open", 500, "locker", "/docs/d5.locked", fh=self.fh,
             ino=inode("/docs/d5.txt"), flags=os.O_WRONLY | os.O_TRUNC)
        self.close(500, "locker", "/docs/d5.locked", self.fh)

    def all(self, *parts):
        for part in parts:
            getattr(self, part)()
        return self.s


def moved(o):
    return o.get("res", 0) if o["op"] in ("read", "write") and \
        not o.get("err") else 0


class World(Commands):
    def __init__(self, arguments, folder):
        super().__init__(arguments.bin, folder)
        INODES.clear()
        script = Workload().all("build", "database", "overlap", "locks",
                                "backup", "rename")
        self.ops = script.operations
        script.make(arguments.make_scripted_trace, os.path.join(folder, "T"))
        INODES.clear()
        before = Workload()
        before.s.other("host", name="other")
        self.before = before.all("build", "database").operations
        before.s.make(arguments.make_scripted_trace, os.path.join(folder, "A"))
        INODES.clear()
        after = Workload()
        after.s.other("host", name="another")
        self.after = after.all("build", "database", "rename",
                               "backup").operations
        after.s.make(arguments.make_scripted_trace, os.path.join(folder, "B"))
        with open(os.path.join(folder, "deps.txt"), "w",
                  encoding="utf-8") as file:
            file.write("/out/a.o: #deps 2, deps mtime 1 (VALID)\n"
                       "    /src/a.c\n    /inc/h0.h\n\n")

    # A command of the page.
    def run(self, words, status=0):  # pylint: disable=arguments-differ
        return super().run(*words, status=status)

    # The same command with exact numbers.
    def rows(self, command):
        return [json.loads(line) for line in
                self.run([*command, "--format", "jsonl"]).splitlines()]

    def tables(self, command):
        text = self.run([*command, "--format", "json", "--top", "all"])
        return [t["rows"] for t in json.loads(text)["tables"]]

    def sums(self, key, value, ops=None, where=lambda o: True):
        found = collections.Counter()
        for o in self.ops if ops is None else ops:
            if where(o):
                found[key(o)] += value(o)
        return found


def one(_):
    return 1


def directory(path, depth=99):
    parts = path.split("/")[1:-1][:depth]
    return "/" + "/".join(parts)


def log2(n):
    return 0 if n == 0 else 1 << (n.bit_length() - 1)


def fails(o):
    return bool(o.get("err"))


def is_io(o):
    return o["op"] in ("read", "write")


ERRNO = {1: "EPERM", ENOENT: "ENOENT", EACCES: "EACCES"}


def q1(w, c):
    facts = {r["what"]: r for r in w.tables(c[0])[1]}
    same(facts["operations"]["count"], len(w.ops))
    metadata = sum(not is_io(o) for o in w.ops)
    same(facts["on metadata"]["count"], metadata)
    same({r["op"]: r["count"] for r in w.tables(c[0])[2]},
         dict(w.sums(lambda o: o["op"], one)))


def q2(w, c):
    read = w.sums(lambda o: directory(o["path"], 1), moved,
                  where=lambda o: o["op"] != "write")
    written = w.sums(lambda o: directory(o["path"], 1), moved,
                     where=lambda o: o["op"] == "write")
    same({r["dir(1)"]: (r["read"], r["written"]) for r in w.rows(c[0])},
         {d: (read[d], written[d]) for d in read | written | w.sums(
             lambda o: directory(o["path"], 1), one)})


def q3(w, c):
    reads = [o for o in w.ops if o["op"] == "read"]
    same({r["from"]: r["count"] for r in w.rows(c[0]) if r["count"]},
         dict(w.sums(lambda o: log2(o["len"]), one, reads)))
    sizes = w.sums(lambda o: (o["op"], o["len"]), one, where=is_io)
    rows = w.rows(c[1])
    same([r["count"] for r in rows[:4]],
         sorted(sizes.values(), reverse=True)[:4])
    for r in rows[:4]:
        same(r["count"], sizes[(r["op"], r["length"])], r)
    same(sum(r["count"] for r in rows), sum(sizes.values()), "with `other`")


def q4(w, c):
    steps = collections.Counter()
    ends = {}
    for o in w.ops:
        if not is_io(o):
            continue
        key = (o["fh"], o["op"])
        at = o["off"]
        steps[(o["op"], "first" if key not in ends else
               "consecutive" if at == ends[key] else
               "forward" if at > ends[key] else "backward")] += 1
        ends[key] = at + o["res"]
    same({(r["direction"], r["step"]): r["count"] for r in w.tables(c[0])[0]
          if r["count"]}, dict(steps))


def q5(w, c):
    rows = list(csv.DictReader(w.run(c[0]).splitlines()))
    same([(int(r["time"]) - Script.BEGIN_NS, int(r["cpid"]), r["op"],
           int(r["offset"]), int(r["length"])) for r in rows],
         [(o["t"], o["pid"], o["op"], o["off"], o["len"]) for o in w.ops
          if o["path"] == "/db" and is_io(o)])


def q6(w, c):
    def key(o):
        return ((Script.BEGIN_NS + o["t"]) // 100_000 * 100_000, o["comm"])
    rows = w.rows(c[0])
    same({(r["time_ns"], r["cname"]): r["count"] for r in rows},
         dict(w.sums(key, one)))
    same(sum(r["bytes"] for r in rows), sum(map(moved, w.ops)))


def q7(w, c):
    rows = w.tables(c[0])[0]
    same(sum(r["created"] for r in rows),
         sum(o["op"] == "create" for o in w.ops))
    same(sum(r["removed"] for r in rows),
         sum(o["op"] == "unlink" for o in w.ops))
    born, ages = {}, []
    for o in w.ops:
        if o["op"] == "create":
            born[o["path"]] = o["t"]
        if o["op"] == "unlink":
            ages.append(o["t"] - born[o["path"]])
    same(max(r.get("max_ns", 0) for r in rows), max(ages))


def q8(w, c):
    seen, first, again = set(), 0, 0
    for o in w.ops:
        if o["op"] == "read":
            for block in range(o["off"] // 4096,
                               (o["off"] + o["res"] - 1) // 4096 + 1):
                key = (o["ino"], block)
                first, again = (first, again + 1) if key in seen else \
                    (first + 1, again)
                seen.add(key)
        elif o["op"] == "write":
            seen |= {(o["ino"], b) for b in range(
                o["off"] // 4096, (o["off"] + o["res"] - 1) // 4096 + 1)}
    rows = [list(r.values()) for r in w.tables(c[0])[0]]
    found = {r[0]: r[1] for r in rows}
    same((found["read first"], found["read again"]),
         (4096 * first, 4096 * again), rows)


def orders(w):
    found = collections.defaultdict(collections.Counter)
    last = {}
    for o in w.ops:
        if is_io(o) and not fails(o):
            if o["ino"] in last:
                kind, pid = last[o["ino"]]
                name = ("w" if o["op"] == "write" else "r") + "a" + kind
                found[o["pid"] == pid][name] += 1
            last[o["ino"]] = (o["op"][0], o["pid"])
    return found


def q9(w, c):
    found = orders(w)
    same({r["order"]: (r["same_process"], r["other_process"])
          for r in w.tables(c[0])[1]},
         {n: (found[True][n], found[False][n])
          for n in ("rar", "raw", "war", "waw")})


def q10(w, c):
    rows = {r["period_ns"]: r for r in w.tables(c[0])[0]}
    begin = w.ops[0]["t"]
    for period in (10**8, 10**9, 10**10, 6 * 10**10):
        counts = w.sums(lambda o, p=period: (o["t"] - begin) // p, one)
        data = w.sums(lambda o, p=period: (o["t"] - begin) // p, moved)
        row = rows[period]
        same((row["periods"], row["count_max"], row["bytes_max"]),
             (max(counts) + 1, max(counts.values()), max(data.values())), period)


def q11(w, c):
    a = w.sums(lambda o: o["op"], one, w.before)
    b = w.sums(lambda o: o["op"], one, w.after)
    same({r["op"]: (r.get("count_a", 0), r.get("count_b", 0))
          for r in w.tables(c[0])[0]}, {op: (a[op], b[op]) for op in a | b})


def q12(w, c):
    same(set(w.run(c[0]).split()) & {o["path"] for o in w.ops},
         {"/out/a.o", "/out/b.o", "/src/a.c", "/src/b.c", "/inc/h0.h",
          "/inc/h1.h", "/tmp/a.s", "/tmp/b.s"})


def q13(w, c):
    same(set(w.run(c[0]).split()) & {o["path"] for o in w.ops},
         {"/tmp/a.s", "/tmp/b.s", "/out/a.o", "/out/b.o", "/out/prog",
          "/out/map"})


def q14(w, c):
    same({(r["class"], r["path"]): r["times"] for r in w.tables(c[0])[0]},
         {("recreated", "/lock"): 2, ("rewritten", "/db"): 1})


def q15(w, c):
    # Of the two jobs that run side by side, and the two that use one database;
    # others waited for each other.
    rows = w.tables(c[0])[0]
    same({(r["path"], r["reader"], r["writer"]) for r in rows},
         {("/list", "/bin/use (141)", "/bin/list (140)"),
          ("/db", "sqlite3 (200)", "vacuum (201)"),
          ("/db", "vacuum (201)", "sqlite3 (200)")})


def q16(w, c):
    text = w.run(c[0], status=1)
    if "/inc/h1.h" not in text or "/inc/h0.h" in text:
        raise Failure(f"h1.h alone is used and not declared: {text}")


def q17(w, c):
    rows = w.tables(c[0])[0]
    counts = w.sums(lambda o: o["pid"], one,
                    where=lambda o: not o.get("inferred"))
    same({r["cpid"]: r["count"] for r in rows if r["count"]}, dict(counts), rows)


def q18(w, c):
    # One that began nobody: the whole waited for it alone.
    spans = collections.defaultdict(list)
    for o in w.ops:
        if not o.get("inferred"):
            spans[(o["comm"], o["pid"])] += [o["t"], o["t"] + o["dur"]]
    longest = max(spans, key=lambda p: max(spans[p]) - min(spans[p]))
    took = max(spans[longest]) - min(spans[longest])
    same([(r["process"], r["cpid"], r["waited_ns"])
          for r in w.tables(c[0])[0]], [(*longest, took)])


def q19(w, c):
    same({(r["dir"], r["cname"]): r["count"] for r in w.rows(c[0])},
         {("/inc", "cc1"): 12})


def q20(w, c):
    same(sum(r["gone"] for r in w.tables(c[0])[0]),
         sum(o["op"] == "unlink" for o in w.ops))


def q21(w, c):
    reads = w.sums(lambda o: o["ino"], one, where=lambda o: o["op"] == "read")
    writes = w.sums(lambda o: o["ino"], one, where=lambda o: o["op"] == "write")
    uses = {r["use"]: r["files"] for r in w.tables(c[0])[1]}
    lives = w.sums(lambda o: o["ino"], one, where=is_io)
    same(uses, {"read only": sum(not writes[i] for i in lives),
                "write only": sum(not reads[i] for i in lives),
                "both": sum(bool(reads[i] and writes[i]) for i in lives)})
    same({(r["path"], r["reads"]) for r in w.tables(c[0])[0]
          if r["path"] == "/inc/h0.h"}, {("/inc/h0.h", 2)})


def q22(w, c):
    rows = w.tables(c[0])[0]
    same({r["cname"]: r["written"] for r in rows}, {"ld": 20000, "backup": 0})
    same(set(w.run(c[1]).split()) & {o["path"] for o in w.ops}, {"/tmp/a.s"})


def q23(w, c):
    text = w.run(shlex.split(c[1]))
    for word in ("fsync", "sqlite3"):
        if word not in text:
            raise Failure(f"no {word}: {text}")


def busy(w, c, key, name):
    bytes_ = w.sums(key, moved)
    time = w.sums(key, lambda o: o["dur"])
    errors = w.sums(key, lambda o: int(fails(o)))
    rows = w.rows(c[0])
    for r in rows[:-1]:
        k = r[name]
        same((r["bytes"], r["time_ns"], r["errors"]),
             (bytes_[k], time[k], errors[k]), k)
    same([r["bytes"] for r in rows[:10]],
         sorted(bytes_.values(), reverse=True)[:10])
    same(sum(r["bytes"] for r in rows), sum(bytes_.values()))


def q24(w, c):
    busy(w, c, lambda o: o["path"], "path")


def q25(w, c):
    busy(w, c, lambda o: f"{o['comm']} {o['pid']}", "process")


def q26(w, c):
    same(len(w.run(c[0]).splitlines()),
         sum(o["dur"] > 10_000_000 for o in w.ops))


def q27(w, c):
    same({(r["op"], r["log2(latency)_ns"]): r["count"] for r in w.rows(c[0])},
         dict(w.sums(lambda o: (o["op"], log2(o["dur"])), one)))


def q28(w, c):
    same({(r["time(1ms)_ns"], r["log2(latency)_ns"]): r["count"]
          for r in w.rows(c[0])},
         dict(w.sums(lambda o: ((Script.BEGIN_NS + o["t"]) // 10**6 * 10**6,
                                log2(o["dur"])), one)))


def q29(w, c):
    same({(r["dir"], r["cname"]): r["written"] for r in w.rows(c[0])},
         dict(w.sums(lambda o: (directory(o["path"]), o["comm"]), moved,
                     where=lambda o: o["op"] == "write")))


def q30(w, c):
    same({(r["errno"], r["cname"]): r["count"] for r in w.rows(c[0])},
         dict(w.sums(lambda o: (ERRNO[o["err"]], o["comm"]), one, where=fails)))


def q31(w, c):
    begin = w.ops[0]["t"]
    same(len(w.run(c[0]).splitlines()),
         sum(10**6 <= o["t"] - begin < 2 * 10**6 for o in w.ops))


def q32(w, c):
    rows = w.tables(c[0])[0]
    syncs = [o for o in w.ops if o["op"] == "fsync"]
    same([(r["cname"], r["path"], r["count"], r["time_ns"], r["max_ns"])
          for r in rows],
         [("sqlite3", "/db", len(syncs), sum(o["dur"] for o in syncs),
           31_000_000)])


def q33(w, c):
    total = [line for line in w.run(c[0]).splitlines()
             if line.startswith("total")]
    same(total[0].split()[1:3],
         [str(len(w.ops)), str(sum(map(fails, w.ops)))])
    # "556 kB", to three digits.
    number, unit = total[0].split()[3:5]
    told = float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit]
    moved_in_all = sum(map(moved, w.ops))
    if abs(told - moved_in_all) > moved_in_all / 200:
        same(f"{number} {unit}", moved_in_all)


def q34(w, c):
    same({(r["path"], r["op"]): r["count"] for r in w.rows(c[0])},
         dict(w.sums(lambda o: (o["path"], o["op"]), one,
                     where=lambda o: o["uid"] == 0)))


def q35(w, c):
    same([(r["op"], r["path"], r["path2"]) for r in w.tables(c[0])[1]],
         [("rename", "/docs/d3.txt", "/docs/d3.locked")])


def q36(w, c):
    rows = list(csv.DictReader(w.run(c[0]).splitlines()))
    same([(r["op"], r["path"], r["path2"]) for r in rows],
         [(o["op"], o["path"], o.get("path2", "")) for o in w.ops
          if o["op"] in ("unlink", "rename") or o.get("valid", 0) & 8
          or o["op"] in ("open", "create") and o["flags"] & os.O_TRUNC])


def q37(w, c):
    same({(r["process"], r["ext"], r["ext2"]): r["count"]
          for r in w.rows(c[0])}, {("locker 500", "txt", "locked"): 6})


def q38(w, c):
    def key(o):
        return (o["comm"], o["path"])
    old = {key(o) for o in w.before if o["op"] == "open"}
    same({(r["cname"], r["path"]) for r in w.tables(c[0])[0]
          if r["verdict"] == "new"},
         {key(o) for o in w.after if o["op"] == "open"} - old)


def q39(w, c):
    same([(r["what"], r.get("old"), r["new"], r.get("set_id"), r.get("errno"))
          for r in w.tables(c[0])[0]],
         [("mode", "0644", "04755", "yes", None),
          ("user", "1000", "0", None, "EPERM")])


def q40(w, c):
    rows = {r["path"]: (r["readers"], r["writers"]) for r in w.tables(c[0])[0]}
    same(rows["/tmp/a.s"], ("as", "cc1"))


def q41(w, c):
    same([r["tree"] for r in w.rows(c[0])], ["1;make;gcc;cc1"])


def q42(w, c):
    took = collections.defaultdict(list)
    for o in w.ops:
        took[o["op"]].append(o["dur"])
    rows = w.rows(c[0])
    same({r["op"]: (r["count"], r["min_ns"], r["mean_ns"], r["max_ns"])
          for r in rows},
         {op: (len(t), min(t), sum(t) // len(t), max(t))
          for op, t in took.items()})
    for r in rows:
        ordered = sorted(took[r["op"]])
        true = ordered[max(0, -(-99 * len(ordered) // 100) - 1)]
        if abs(r["p99_ns"] - true) > 0.008 * true + 1:
            raise Failure(f"p99 of {r['op']}: {r['p99_ns']}, not {true}")


def q43(w, c):
    rows = w.rows(c[0])
    same([(r["op"], r["path"], r["latency_ns"]) for r in rows],
         [("fsync", "/db", 31_000_000)])


def q44(w, c):
    same({r["depth"]: r["time_ns"] for r in w.tables(c[0])[0]},
         time_at_depth([(o["t"], o["dur"]) for o in w.ops]))


def q45(w, c):
    found = [json.loads(line) for line in w.run(c[0]).splitlines()]
    same([o["pid"] for o in found if "op" in o],
         [o["pid"] for o in w.ops if 110 <= o["pid"] <= 112])


def q46(w, c):
    rows = {r.get("errno"): r for r in w.rows(c[0])}
    looked = [o for o in w.ops if o["op"] == "lookup"]
    same({k: r["count"] for k, r in rows.items()},
         {"ENOENT": 12, None: len(looked) - 12})


def q47(w, c):
    same({(r["op"], r.get("errno")): r["count"] for r in w.rows(c[0])},
         dict(w.sums(lambda o: (o["op"], ERRNO.get(o.get("err"))), one)))


def q48(w, c):
    names = {0: "O_RDONLY", 1: "O_WRONLY", 2: "O_RDWR",
             os.O_WRONLY | os.O_TRUNC: "O_WRONLY|O_TRUNC"}
    same({(r["op"], r["flag_names"]): r["count"] for r in w.rows(c[0])},
         dict(w.sums(lambda o: (o["op"], names[o["flags"]]), one,
                     where=lambda o: o["op"] in ("open", "create"))))
    same({(r["op"], r["align(offset)"]): r["count"] for r in w.rows(c[1])},
         dict(w.sums(lambda o: (o["op"], o["off"] & -o["off"]), one,
                     where=is_io)))


def q50(w, c):
    program = ("import sys, tracefs\n"
               "t = tracefs.open(sys.argv[1])\n"
               "print(sum(1 for _ in t))\n")
    done = subprocess.run(
        [sys.executable, "-c", program, os.path.join(w.folder, "T")],
        capture_output=True, check=False,
        env=dict(os.environ,
                 PYTHONPATH=os.path.join(ROOT, "tracefs/reader/python"),
                 TRACEFS_READER_LIBRARY=w.library))
    same((done.stdout.strip(), done.returncode),
         (str(len(w.ops)).encode(), 0), done.stderr.decode())


def q51(w, c):
    w.run(c[0])
    with sqlite3.connect(os.path.join(w.folder, "ops.db")) as db:
        found = dict(db.execute(
            "SELECT op, count(*) FROM operations GROUP BY op"))
        same(found, dict(w.sums(lambda o: o["op"], one)))
        # And the same by our own words.
        by = {(r["cname"], r["op"]): r["time_ns"] for r in w.rows(
            ["tracefs-dump", "--by", "cname,op", "--values", "time", "T"])}
        same({(a, b): t for a, b, t in db.execute(
            "SELECT cname, op, sum(latency) FROM operations "
            "GROUP BY cname, op")}, by)


def q52(w, c):
    rows = list(csv.reader(w.run(c[0]).splitlines()))
    written = w.sums(lambda o: o["path"], moved,
                     where=lambda o: o["op"] == "write")
    same([[r[0], int(r[1])] for r in rows[1:4]],
         [list(p) for p in sorted(written.items(),
                                  key=lambda p: (-p[1], p[0]))[:3]])
    same(sum(int(r[1]) for r in rows[1:]), sum(written.values()))


def q53(w, c):
    found = [json.loads(line) for line in w.run(c[0]).splitlines()]
    same([o["op"] for o in found if "op" in o], [o["op"] for o in w.ops])


def q55(w, c):
    expected = {}
    for host, ops in (("other", w.before), ("another", w.after)):
        for op, n in w.sums(lambda o: o["op"], one, ops).items():
            expected[(host, op)] = n
    same({(r["host"], r["op"]): r["count"] for r in w.rows(c[0])}, expected)


def check_script(w):
    """The trace holds what was told."""
    found = [json.loads(line) for line in
             w.run(["tracefs-dump", "--format", "jsonl", "T"]).splitlines()]
    found = [o for o in found if "op" in o]
    same([(o["ts"] - Script.BEGIN_NS, o["dur"], o["op"], o["pid"], o["comm"],
           o.get("path"), o.get("errno")) for o in found],
         [(o["t"], o["dur"], o["op"], o["pid"], o["comm"], o["path"],
           ERRNO.get(o.get("err"))) for o in w.ops])


def commands_of_page():
    """By number: the commands of the page, as words."""
    found = {}
    with open(PAGE, encoding="utf-8") as page:
        for line in page:
            row = re.match(r"\| (\d+) \| .*? \| (.*) \|$", line)
            if row:
                found[int(row[1])] = re.findall(r"`([^`]+)`", row[2])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    parser.add_argument("--library", required=True)
    arguments = parser.parse_args()
    page = commands_of_page()
    if set(page) | NOT_ANSWERED != set(range(1, 58)):
        sys.exit(f"the page has not each question once: {sorted(page)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments, folder)
        world.library = arguments.library
        try:
            check_script(world)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            failed += 1
        for number, texts in sorted(page.items()):
            if number in ELSEWHERE:
                continue
            commands = [shlex.split(t) if t.startswith("tracefs-") and
                        number != 23 else t for t in texts]
            try:
                globals()[f"q{number}"](world, commands)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"--- question {number}: {texts}")
                traceback.print_exc(limit=-1, file=sys.stdout)
    print(f"{len(page) - len(ELSEWHERE) - failed} questions answered, "
          f"{failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
