"""What docs/questions.md asks, answered by Python from the JSON Lines of a trace
and compared with what the commands answer. Shares no code with them.

Each function q_…(model, ask) raises what differs. ask(words…) runs a command on
the trace with exact figures.
"""

import collections
import math
import re

from command_checks import time_at_depth

FIRST = 10**6


def directory(path, depth=None):
    if path is None:
        return None
    parts = path.split("/")[1:-1]
    return "/" + "/".join(parts if depth is None else parts[:depth])


def extension(path):
    name = (path or "").rsplit("/", 1)[-1]
    dot = name.rfind(".")
    return name[dot + 1:] if dot > 0 else ""


def without_count(process):
    """NAME PID of a process: the second one of a number is "NAME PID (2)", and
    jsonl, of which the model is made, does not tell them apart."""
    return re.sub(r" \(\d+\)$", "", process)


def log2(number):
    return 0 if number <= 0 else 1 << (number.bit_length() - 1)


class Model:
    """Operations of a trace, and what each read and wrote of which file."""

    def __init__(self, events):
        self.ops = events

    @staticmethod
    def fails(o):
        return bool(o.get("errno"))

    @staticmethod
    def transfers(o):
        """(way, inode, path, offset, bytes) of each file of an operation."""
        if o.get("errno") or o.get("result", -1) < 0:
            return []
        if o["op"] == "read":
            return [("read", o["ino"], o.get("path"), o["offset"],
                     o["result"])]
        if o["op"] == "write":
            return [("written", o["ino"], o.get("path"), o["offset"],
                     o["result"])]
        if o["op"] == "copy_file_range":
            return [("read", o["ino"], o.get("path"), o["offset"],
                     o["result"]),
                    ("written", o["ino_out"], o.get("path2"), o["offset_out"],
                     o["result"])]
        return []

    def moved(self, o):
        return self.transfers(o)[0][4] if self.transfers(o) else 0

    def count(self, key, where=lambda o: True, value=lambda o: 1):
        found = collections.Counter()
        for o in self.ops:
            if where(o):
                found[key(o)] += value(o)
        return found

    def bytes_by(self, key):
        """(read, written) by key(path) of the file that was read or written."""
        found = collections.defaultdict(lambda: [0, 0])
        for o in self.ops:
            for way, _, path, _, size in self.transfers(o):
                found[key(path)][way == "written"] += size
        return {k: tuple(v) for k, v in found.items()}


def same(got, want, what=""):
    if got != want:
        if isinstance(got, dict) and isinstance(want, dict):
            wrong = [(k, got.get(k), want.get(k))
                     for k in sorted(set(got) | set(want), key=repr)
                     if got.get(k) != want.get(k)]
            raise AssertionError(f"{what} {len(wrong)} differ, as (key, "
                                 f"answered, expected): {wrong[:6]}")
        raise AssertionError(f"{what} answered {str(got)[:400]}, "
                             f"expected {str(want)[:400]}")


def q_operations(m, ask):
    """1, 42, 47: how many of each, how they fail, how long they take."""
    same({(r["op"], r.get("errno")): r["count"]
          for r in ask.rows("op,errno", "count")},
         dict(m.count(lambda o: (o["op"], o.get("errno")))))
    took = collections.defaultdict(list)
    for o in m.ops:
        took[o["op"]].append(o["dur"])
    for r in ask.rows("op", "count,min,mean,p50,p99,max"):
        times = sorted(took.pop(r["op"]))
        same((r["count"], r["min_ns"], r["mean_ns"], r["max_ns"]),
             (len(times), times[0], sum(times) // len(times), times[-1]),
             r["op"])
        for share in (50, 99):
            true = times[max(0, math.ceil(share * len(times) / 100) - 1)]
            if abs(r[f"p{share}_ns"] - true) > 0.008 * true + 1:
                raise AssertionError(f"p{share} of {r['op']}: {r}, not {true}")
    same(dict(took), {})


def q_bytes(m, ask):
    """2, 24: how much is read and written, by directory and by file."""
    for keys, key in (("dir(1)", lambda p: directory(p, 1)),
                      ("dir", directory), ("path", lambda p: p),
                      ("ext", extension)):
        found = {r.get(keys) or None if keys != "ext" else r.get(keys) or "":
                 (r["read"], r["written"])
                 for r in ask.rows(keys, "read,written")
                 if r["read"] or r["written"]}
        want = {k: v for k, v in m.bytes_by(key).items() if any(v)}
        same(found, want, keys)


def q_totals(m, ask):
    """24, 25: bytes, time and errors by process."""
    found = collections.defaultdict(lambda: [0, 0, 0, 0])
    for r in ask.rows("process", "count,bytes,time,errors"):
        row = found[without_count(r["process"])]
        for at, value in enumerate(("count", "bytes", "time_ns", "errors")):
            row[at] += r[value]
    found = {k: tuple(v) for k, v in found.items()}
    want = collections.defaultdict(lambda: [0, 0, 0, 0])
    for o in m.ops:
        row = want[f"{o.get('comm', '')} {o['pid']}"]
        for at, value in enumerate((1, m.moved(o), o["dur"],
                                    int(m.fails(o)))):
            row[at] += value
    same(found, {k: tuple(v) for k, v in want.items()})


def q_sizes(m, ask):
    """3, 48: sizes and alignment of requests."""
    def is_io(o):
        return o["op"] in ("read", "write")
    same({(r["op"], r["length"]): r["count"] for r in ask.rows(
        "op,length", "count", "op IN { read write }")},
         dict(m.count(lambda o: (o["op"], o["size"]), is_io)))
    same({(r["op"], r["align(offset)"]): r["count"] for r in ask.rows(
        "op,align(offset)", "count", "op IN { read write }")},
         dict(m.count(lambda o: (o["op"], o["offset"] & -o["offset"]), is_io)))


def q_latencies(m, ask):
    """27: how latencies are distributed."""
    same({(r["op"], r["log2(latency)_ns"]): r["count"]
          for r in ask.rows("op,log2(latency)", "count")},
         dict(m.count(lambda o: (o["op"], log2(o["dur"])))))


def q_missing(m, ask):
    """19, 30, 46: what is not found, and who fails."""
    def absent(o):
        return o["op"] == "lookup" and o.get("errno") == "ENOENT"
    same({(r.get("dir") or None, r["cname"]): r["count"] for r in ask.rows(
        "dir,cname", "count", "op = lookup AND errno = ENOENT")},
         dict(m.count(lambda o: (directory(o.get("path")), o["comm"]),
                      absent)))
    same({(r["errno"], r["cname"]): r["count"] for r in ask.rows(
        "errno,cname", "count", "errno != 0")},
         dict(m.count(lambda o: (o["errno"], o["comm"]), m.fails)))


def q_who_fills(m, ask):
    """29: who fills which directory, copies included."""
    want = collections.Counter()
    for o in m.ops:
        for way, _, path, _, size in m.transfers(o):
            if way == "written" and size:
                want[(directory(path), o.get("comm"))] += size
    same({(r.get("dir") or None, r["cname"]): r["written"]
          for r in ask.rows("dir,cname", "written") if r["written"]},
         dict(want))


def q_renames(m, ask):
    """37: what is renamed to what."""
    found = collections.Counter()
    for r in ask.rows("process,ext,ext2", "count", "op = rename"):
        found[without_count(r["process"]), r.get("ext") or "",
              r.get("ext2") or ""] += r["count"]
    same(dict(found),
         dict(m.count(lambda o: (f"{o['comm']} {o['pid']}",
                                 extension(o["path"]), extension(o["path2"])),
                      lambda o: o["op"] == "rename")))


def q_opens(m, ask):
    """An open that creates is an open."""
    same(sum(r["count"] for r in ask.rows("op", "count", "op = open")),
         sum(o["op"] in ("open", "create", "tmpfile") for o in m.ops))
    same(sum(r["count"] for r in ask.rows("op", "count", "op = close")),
         sum(o["op"] == "release" for o in m.ops))


def q_rates(m, ask):
    """10: how much there is at the busiest time."""
    begin = min(o["ts"] for o in m.ops)
    rows = {r["period_ns"]: r for r in ask.tables("rates")[0]}
    for period in (10**8, 10**9, 10**10):
        counts, data = collections.Counter(), collections.Counter()
        for o in m.ops:
            counts[(o["ts"] - begin) // period] += 1
            data[(o["ts"] - begin) // period] += m.moved(o)
        same((rows[period]["count_max"], rows[period]["bytes_max"]),
             (max(counts.values()), max(data.values())), period)


def q_queueing(m, ask):
    """44: how many at the same time."""
    same({r["depth"]: r["time_ns"] for r in ask.tables("queueing")[0]},
         time_at_depth([(o["ts"], o["dur"]) for o in m.ops]))


def q_syncs(m, ask):
    """32: who waits for disks."""
    want = collections.defaultdict(lambda: [0, 0])
    for o in m.ops:
        if o["op"] in ("fsync", "fsyncdir"):
            row = want[(o.get("comm"), o.get("path"))]
            row[0] += 1
            row[1] += o["dur"]
    same({(r["cname"], r.get("path")): [r["count"], r["time_ns"]]
          for r in ask.tables("fsync")[0]}, dict(want))


ALL = [f for name, f in sorted(globals().items()) if name.startswith("q_")]
