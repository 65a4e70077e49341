#!/usr/bin/env python3
"""Exports of a real workload with names that try every format, read by programs
and grammars of others, and compared with sums that Python makes of JSON Lines;
and exports of traces that were made to break them."""

import argparse
import base64
import collections
import contextlib
import csv
import errno
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
import buildxl_reader  # noqa: E402
import hostile_workload  # noqa: E402
from command_checks import Commands, Skip, expect, expect_equal, run_checks  # noqa: E402
from scripted_trace import Script  # noqa: E402

XMLNS = "{urn:tracefs:trace:1}"
# What carries records of processes; the others say that they do not.
CARRY_PROCESSES = {"text", "jsonl", "sqlite", "strace", "tree", "xray-fdr",
                   "buildxl", "nfsdb", "nfsdb-json"}
FORMATS = ["csv", "xml", "sqlite", "parquet", "ctf", "perfetto", "speedscope",
           "folded", "xray-fdr", "xray-basic", "fio", "strace", "tree", "buildxl",
           "nfsdb", "nfsdb-json", "ocsf", "ecs", "cef", "text"]


def need(*tools):
    for tool in tools:
        path = shutil.which(tool)
        if path:
            return path
    raise Skip(f"{tools[0]} is not installed")


def name_of(record, key):
    """The bytes of a text of a JSON line."""
    if key + "_b64" in record:
        return base64.b64decode(record[key + "_b64"])
    return record[key].encode() if key in record else None


def unescaped(text):
    """The bytes behind text of the listing, of CSV and of tables."""
    def byte(match):
        return (bytes([int(match[1], 16)]) if match[1] else
                {b"n": b"\n", b"t": b"\t", b"\\": b"\\"}[match[2]])
    return re.sub(rb"\\x([0-9a-f]{2})|\\([nt\\])", byte, text.encode())


class World(Commands):
    def __init__(self, options, folder):
        super().__init__(options.bin, folder)
        self.options = options
        self.npm = options.npm
        self.lines = {}

    def real(self):
        if not hasattr(self, "trace"):
            self.trace, self.source = hostile_workload.record(self.bin, self.folder)
        return self.trace

    def told(self, trace):
        """Operations and records of processes, as JSON Lines have them."""
        if trace not in self.lines:
            lines = [json.loads(line) for line in self.run(
                "tracefs-dump", "--format", "jsonl", trace).splitlines()]
            self.lines[trace] = ([r for r in lines if "op" in r],
                                 [r for r in lines if "process" in r])
        return self.lines[trace]

    def export(self, kind, trace, *more):
        """Where it is, and what was said."""
        path = os.path.join(self.folder, kind + "-export")
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.unlink(path)
        done = self.finished("tracefs-dump", "--format", kind, "--output", path,
                             *more, trace, timeout=300)
        expect(done.returncode in (0, 1), kind, done.returncode, done.stderr)
        return path, done.stderr.decode()


def sums(operations):
    """By operation: how many, how many failed, bytes moved."""
    found = collections.defaultdict(lambda: [0, 0, 0])
    for r in operations:
        row = found[r["op"]]
        row[0] += 1
        row[1] += "errno" in r
        if r["op"] in ("read", "write", "copy_file_range") and "errno" not in r:
            row[2] += r["result"]
    return {op: tuple(row) for op, row in found.items()}


def paths(operations):
    return collections.Counter(name_of(r, "path") for r in operations)


def check_every_format_says_what_it_leaves_out(world):
    trace = world.real()
    processes = world.told(trace)[1]
    expect(len(processes) > 5, "too few process records", len(processes))
    for kind in FORMATS:
        _, said = world.export(kind, trace)
        match = re.search(r"(\d+) process records? ", said)
        left = int(match[1]) if match else 0
        expect_equal(left, 0 if kind in CARRY_PROCESSES else len(processes),
                     kind + ": " + said)


def check_csv(world):
    operations, _ = world.told(world.real())
    path, _ = world.export("csv", world.trace, "--columns", "all")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    made = [dict(op=r["op"], **({"errno": r["errno"]} if r["errno"] else {}),
                 result=int(r["result"] or 0)) for r in rows]
    expect_equal(sums(made), sums(operations), "csv")
    expect_equal(collections.Counter(unescaped(r["path"]) if r["path"] else None
                                     for r in rows), paths(operations), "csv")


def check_xml(world):
    operations, processes = world.told(world.real())
    path, _ = world.export("xml", world.trace)
    root = ElementTree.parse(path).getroot()
    rows = root.findall(XMLNS + "operation")
    have = collections.Counter(
        base64.b64decode(r.get("path_b64")) if r.get("path_b64") else
        r.get("path").encode() if r.get("path") is not None else None for r in rows)
    expect_equal(have, paths(operations), "xml")
    left = {e.get("what"): int(e.get("count")) for e in root.findall(XMLNS + "left_out")}
    expect_equal(left, {"process_records": len(processes)}, "xml")
    schema = os.path.join(SOURCE, "tracefs/export/trace.xsd")
    done = subprocess.run([need("xmllint"), "--noout", "--stream", "--schema",
                           schema, path], capture_output=True, check=False)
    expect_equal(done.returncode, 0, done.stderr)


def check_sqlite(world):
    operations, processes = world.told(world.real())
    path, _ = world.export("sqlite", world.trace)
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT op, errno, result, path_raw, path "
                                "FROM operations").fetchall()
        made = [dict(op=r[0], **({"errno": r[1]} if r[1] else {}),
                     result=r[2] or 0) for r in rows]
        expect_equal(sums(made), sums(operations), "sqlite")
        expect_equal(collections.Counter(
            r[3] if r[3] is not None else
            unescaped(r[4]) if r[4] is not None else None for r in rows),
            paths(operations), "sqlite")
        kept = database.execute("SELECT count(*) FROM process_events").fetchone()[0]
        wanted = [r for r in processes if r["process"] in ("fork", "exec", "exit")]
        expect(kept >= len(wanted), "process_events", kept, len(wanted))


NODE = r"""
const { readFileSync } = require('fs');
async function main(path) {
  const { parquetReadObjects, parquetMetadata } = await import('hyparquet');
  const { compressors } = await import('hyparquet-compressors');
  const data = readFileSync(path);
  const file = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const rows = await parquetReadObjects({ file, compressors, utf8: false });
  const meta = parquetMetadata(file);
  const text = (k, v) => typeof v === 'bigint' ? Number(v) :
    v instanceof Uint8Array ? { b64: Buffer.from(v).toString('base64') } : v;
  console.log(JSON.stringify({
    meta: Object.fromEntries(meta.key_value_metadata.map(p => [p.key, p.value])),
    rows: rows.map(r => [r.op, r.errno, r.result, r.path_raw, r.path])}, text));
}
main(process.argv[2]);
"""


def check_parquet(world):
    need("node")
    if not world.npm or not os.path.isdir(
            os.path.join(world.npm, "node_modules", "hyparquet")):
        raise Skip("hyparquet is not installed (scripts/setup)")
    operations, processes = world.told(world.real())
    path, _ = world.export("parquet", world.trace)
    script = os.path.join(world.folder, "read.js")
    with open(script, "w", encoding="ascii") as file:
        file.write(NODE)
    link = os.path.join(world.folder, "node_modules")
    if not os.path.lexists(link):
        os.symlink(os.path.join(os.path.abspath(world.npm), "node_modules"), link)
    done = subprocess.run(["node", script, path], capture_output=True, check=False)
    expect_equal(done.returncode, 0, done.stderr)
    read = json.loads(done.stdout)

    def raw(value):
        return base64.b64decode(value["b64"]) if isinstance(value, dict) else value
    made = [dict(op=r[0], **({"errno": r[1]} if r[1] else {}), result=r[2] or 0)
            for r in read["rows"]]
    expect_equal(sums(made), sums(operations), "parquet")
    have = collections.Counter(
        raw(r[3]) if r[3] is not None else unescaped(r[4])
        if r[4] is not None else None for r in read["rows"])
    expect_equal(have, paths(operations), "parquet")
    expect_equal(json.loads(read["meta"]["tracefs.left_out"]),
                 {"process_records": len(processes)}, "parquet")


def check_ctf(world):
    tool = need("babeltrace2")
    operations, processes = world.told(world.real())
    path, _ = world.export("ctf", world.trace)
    done = subprocess.run([tool, path], capture_output=True, check=False)
    expect_equal(done.returncode, 0, done.stderr)
    names = collections.Counter(re.findall(rb"(?m)^\[[^\]]*\] \(\S+\) (?:\S+ )?(\w+): \{",
                                           done.stdout))
    expect_equal({k.decode(): v for k, v in names.items()},
                 dict(collections.Counter(r["op"] for r in operations)), "ctf")
    moved = sum(int(n) for n in re.findall(
        rb"(?m)(?:read|write|copy_file_range): \{.*\bresult = (\d+)", done.stdout))
    expect_equal(moved, sum(row[2] for row in sums(operations).values()), "ctf")
    shown = subprocess.run([tool, "--output-format=ctf-metadata", path],
                           capture_output=True, check=False).stdout.decode()
    expect(f"left_out_process_records = {len(processes)};" in shown, shown[-3000:])


def check_json_documents(world):
    operations, _ = world.told(world.real())
    path, _ = world.export("perfetto", world.trace)
    with open(path, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] in "Xb"]
    expect_equal(collections.Counter(e["name"].split(" ")[0] for e in events),
                 collections.Counter(r["op"] for r in operations), "perfetto")
    path, _ = world.export("speedscope", world.trace, "--set", "weight=bytes")
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)["profiles"][0]
    moved = sum(row[2] for row in sums(operations).values())
    expect_equal(sum(profile["weights"]), moved, "speedscope")
    path, _ = world.export("folded", world.trace, "--set", "weight=bytes")
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    for line in lines:
        expect(re.fullmatch(r"[^ ]+ \d+", line), line)
    expect_equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines), moved, "folded")


def check_feeds(world):
    """One line an operation or less, each as its schema has it."""
    operations, _ = world.told(world.real())
    for kind in ("ocsf", "ecs", "cef"):
        path, said = world.export(kind, world.trace)
        left = re.search(r"(\d+) operations?[^\n]* left out of", said)
        with open(path, encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")[:-1]
        expect_equal(len(lines) + (int(left[1]) if left else 0), len(operations), kind)
        for line in lines:
            if kind == "cef":
                # ArcSight's grammar: seven bars that no backslash precedes, then
                # pairs whose values hide '=', '\' and line ends.
                head = re.fullmatch(
                    r"(?:.*? )?CEF:[01](?:\|(?:[^|\\\n]|\\[|\\])*){6}\|(?P<pairs>.*)", line)
                expect(head, line)
                expect(re.fullmatch(r"(?:\w+=(?:[^=\\]|\\[=\\nr])*(?: |$))*",
                                    head["pairs"]), line)
            else:
                record = json.loads(line)
                keys = (("class_uid", "time", "activity_id") if kind == "ocsf"
                        else ("@timestamp", "event", "ecs"))
                for key in keys:
                    expect(key in record, key, line)


def check_fio(world):
    operations, _ = world.told(world.real())
    path, _ = world.export("fio", world.trace)
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    expect_equal(lines[0], "fio version 3 iolog", "fio")
    opened, moved = set(), collections.Counter()
    for line in lines[1:]:
        match = re.fullmatch(r"\d+ (\S+) (?:(add|open|close)|(read|write) \d+ (\d+)|"
                             r"(sync|datasync) \d+ \d+)", line)
        expect(match, line)
        if match[2] == "add":
            opened.add(match[1])
        expect(match[1] in opened, "not added before", line)
        if match[3]:
            moved[match[3]] += int(match[4])
    # Names that are no UTF-8 or too long, or have blanks or control characters, are
    # left out.
    def fits(name):
        try:
            return 0 < len(name[1:]) <= 255 and re.fullmatch(r"[^\0- \x7f]+", name.decode())
        except (TypeError, UnicodeDecodeError):
            return False
    want = collections.Counter()
    for r in operations:
        if "errno" in r or not fits(name_of(r, "path")):
            continue
        if r["op"] in ("read", "write"):
            want[r["op"]] += r["result"]
        elif r["op"] == "copy_file_range" and fits(name_of(r, "path2")):
            want.update(read=r["result"], write=r["result"])
    expect_equal(dict(moved), dict(want), "fio")


def check_xray(world):
    tool = need("llvm-xray", "llvm-xray-14")
    operations, processes = world.told(world.real())
    elf = os.path.join(world.folder, "map.elf")

    def xray(*words, status=0):
        done = subprocess.run([tool, *words], capture_output=True, check=False)
        expect_equal(done.returncode, status, f"{words} {done.stderr[-500:]}")
        return done.stdout
    want = collections.Counter(r["op"] for r in operations)
    for kind, more in (("xray-fdr", "version=1"), ("xray-fdr", "version=3"),
                       ("xray-fdr", "version=5"), ("xray-basic", None)):
        path, _ = world.export(kind, world.trace, "--set", "map=" + elf,
                               *(["--set", more] if more else []))
        rows = csv.DictReader(io.StringIO(xray(
            "account", path, "-m", elf, "-format=csv", "-keep-going").decode()))
        have = {r["function"].removeprefix("fs_"): int(r["count"]) for r in rows}
        have.pop("tracefs_start", None)
        expect_equal(have, dict(want), f"{kind} {more}")
        expect(b"digraph" in xray("graph", path, "-m", elf, "-keep-going"), kind)
        shown = xray("convert", "-f", "yaml", "-symbolize", "-m", elf, path)
        if kind == "xray-basic":
            have = collections.Counter(tuple(map(int, found)) for found in re.findall(
                rb"args: \[ (\d+), (\d+) \].*kind: function-enter-arg", shown))
            wanted = collections.Counter(
                (r.get("ino", 0), (-getattr(errno, r["errno"]) if "errno" in r
                                   else r.get("result", 0)) % 2**64) for r in operations)
            expect_equal(have, wanted, "arguments of xray-basic")
            continue
        dump = xray("fdr-dump", "--verify", path)
        events = re.findall(rb"data = '(\{.*\}) *'>", dump)
        told = [json.loads(e) for e in events]
        expect_equal(sorted(json.dumps(r, sort_keys=True) for r in told),
                     sorted(json.dumps(r, sort_keys=True)
                            for r in operations + processes), more)
        # Processors are those that process records have told of.
        cpus = {int(n) for n in re.findall(rb"<CPU: id = (\d+)", dump)}
        known = {r["cpu"] for r in processes if "cpu" in r}
        expect(cpus <= known | {65535}, cpus, known)
        expect(not known or cpus & known, "no processor", cpus, known)


# --- strace

CALLS = {"pread64": "read", "readv": "read", "preadv": "read", "preadv2": "read",
         "pwrite64": "write", "writev": "write", "pwritev": "write",
         "fstat": "stat", "lstat": "stat", "newfstatat": "stat", "statx": "stat",
         "open": "openat", "creat": "openat", "chmod": "fchmodat", "fchmod": "fchmodat",
         "fchmodat2": "fchmodat", "utimes": "utimensat", "futimesat": "utimensat",
         "ftruncate": "truncate", "mkdirat": "mkdir", "unlinkat": "unlink",
         "rmdir": "unlink", "renameat": "rename", "renameat2": "rename",
         "linkat": "link", "symlinkat": "symlink", "readlinkat": "readlink",
         "chown": "lchown", "fchown": "lchown", "fchownat": "lchown",
         "vfork": "clone", "fork": "clone", "clone3": "clone", "mknod": "mknodat"}
# Calls of theirs that move data without being a read or a write by name.
MOVES = {"sendfile", "copy_file_range", "splice"}
LINE = re.compile(r'^(\d+) +\d+\.\d+ (\w+)\((.*)\) += (-?\d+|\?)')


def calls_of(lines, root):
    """How often each thread made each call on each path below the source: of
    strace's own lines the absolute paths, of ours those below the mount."""
    calls = collections.Counter()
    for line in lines:
        match = LINE.match(line)
        if not match or match[2] == "execve" or match[2] == "clone":
            continue
        tid, name, words, result = match.groups()
        found = re.search(r'^-?\d+<([^>]*)>|"((?:[^"\\]|\\.)*)"', words)
        opened = re.search(r"= \d+<([^>]*)>", line)
        if CALLS.get(name, name) == "openat" and opened:
            found = opened  # through links, where it leads
        if name in ("symlink", "symlinkat"):
            found = list(re.finditer(r'"((?:[^"\\]|\\.)*)"()', words))[-1]
        if not found:
            continue
        text = found[1] if found[1] is not None else found.groups()[-1]
        if text is None:
            continue
        text = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), text) \
            if "\\x" in text and root else text
        if root:
            if text != root and not text.startswith(root + "/"):
                continue
            text = text[len(root):] or "/"
        calls[tid, CALLS.get(name, name), text, result == "-1"] += 1
    return calls


def check_strace_shows_no_call_that_never_was(world):
    """The same run under strace itself."""
    strace = need("strace")
    folder = os.path.join(world.folder, "strace")
    os.mkdir(folder)
    log = os.path.join(folder, "strace.log")
    trace, source = hostile_workload.record(
        world.bin, folder, before=(strace, "-f", "-ttt", "-y", "-s", "0",
                                         "-o", log, "-e", "trace=%file,%desc"))
    names = [n for n in hostile_workload.NAMES if re.fullmatch(rb"[a-z]+", n)]
    with open(log, encoding="utf-8", errors="surrogateescape") as file:
        text = re.sub(r'"([^"]*)"\.\.\.', r'"\1"', file.read())
    theirs = calls_of(join_resumed(text.splitlines()), source)
    path, _ = world.export("strace", trace)
    with open(path, encoding="ascii") as file:
        ours_text = file.read()
    ours = calls_of(ours_text.splitlines(), "")
    flags = set(re.findall(r"0x[0-9a-f]+", " ".join(
        re.findall(r"openat\(.*?\", ([^),]*)", ours_text))))
    expect_equal(flags, set(), "raw bits of flags")
    # Names that every spelling of strace leaves as they are.
    plain = re.compile(r"/(?:[\w.-]+/?)*")
    made_up = []
    for (tid, call, name, failed), count in ours.items():
        if not plain.fullmatch(name):
            continue
        if call in ("read", "write"):
            # A call moves data in requests of 1 MiB or less; and so do others.
            have = sum(n for (t, c, p, _), n in theirs.items()
                       if t == tid and p == name and c in {call} | MOVES)
            if have == 0:
                made_up.append((tid, call, name, count))
            continue
        have = theirs.get((tid, call, name, failed), 0)
        if have < count:
            made_up.append((tid, call, name, failed, count, have))
    expect(not made_up, "calls that never were", made_up)
    expect(len(ours) > 100 and names, "too few calls", len(ours))


def join_resumed(lines):
    """Calls that strace has in two lines, as one."""
    begun = {}
    for line in lines:
        tid = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            begun[tid] = line[:-len("<unfinished ...>")].rstrip()
        elif "resumed>" in line and tid in begun:
            yield begun.pop(tid) + line.split("resumed>", 1)[1]
        else:
            yield line


# --- BuildXL

def check_buildxl(world):
    """Its rows are those of a model that keeps the names a trace has told of."""
    operations, _ = world.told(world.real())
    path, _ = world.export("buildxl", world.trace)
    with open(path, "rb") as file:
        made = buildxl_reader.File(file.read())
    expected = buildxl_reader.moves_of(
        [(r["op"], "errno" in r, name_of(r, "path"), name_of(r, "path2"),
          r.get("type"), r.get("flags", 0)) for r in operations])
    mount = os.fsencode(world.source)
    want = [(buildxl_reader.escaped(mount + source), buildxl_reader.escaped(mount + target))
            for source, target in expected]
    have = [(made.rows[row.correlation - 1].path, row.path) for row in made.rows
            if row.correlation and row.operation in (1, 8)]
    expect_equal(sorted(have), sorted(want), "renames")
    expect(any(p.endswith("/deep/plain") for p, _ in have), "nothing below a directory")
    copies = [(name_of(r, "path"), name_of(r, "path2")) for r in operations
              if r["op"] == "copy_file_range" and name_of(r, "path2")]
    pairs = {(made.rows[row.correlation - 1].path, row.path) for row in made.rows
             if row.correlation and row.operation == 46}
    for source, target in copies:
        expect((buildxl_reader.escaped(mount + source),
                buildxl_reader.escaped(mount + target)) in pairs, source, target)


# --- Traces made to deceive

def hostile_scripts():
    huge = 2**64 - 1
    script = Script()
    for name in hostile_workload.NAMES:
        script.op("create", 7, name[:15], b"/" + name, ino=huge, fh=huge, off=huge, len=huge)
        script.op("write", 7, b"\n\"=,|", b"/" + name, ino=1, fh=huge, off=huge, len=huge)
        script.op("rename", 7, b"c", b"/" + name, path2=b"/d/" + name + b"\n9,9,9", ino=1)
        script.op("release", 2**32 - 1, b"c", b"/" + name, fh=huge)
    yield "names", script
    script = Script()
    for i in range(300):
        script.op("mkdir", 1, "m", f"/a/{i}", ino=i + 2, mode=0o40755)
    for i in range(3000):  # a directory that goes round and round, and into itself
        script.op("rename", 1, "m", "/a" if i % 2 == 0 else "/b",
                  path2="/b" if i % 2 == 0 else "/a", ino=5, mode=0o40755)
        script.op("rename", 1, "m", "/a", path2="/a/0/a", ino=5, mode=0o40755)
    yield "moves", script
    script = Script()
    for i in range(2000):  # nothing ever ends
        script.fork(1, 100000 + i)
        script.op("open", 100000 + i, "x", f"/f{i}", fh=i + 1, ino=9, gap=0, dur=2**62)
        script.op("getattr", 100000 + i, "x", f"/f{i}", ino=9)
        script.op("release", 100000 + i, "x", f"/f{i}", fh=i + 1, ino=9)
    yield "unfinished", script
    script = Script()
    for i, size in enumerate((2**63 - 1, 2**63, huge, 2**31)):
        script.op("open", 5, "c", "/from", ino=2, fh=1)
        script.op("create", 5, "c", "/to", ino=3, fh=2)
        script.op("copy_file_range", 5, "c", "/from", path2="/to" if i % 2 else "",
                  ino=2, fh=1, fh_out=2, off=size, off_out=size, len=size, res=size)
        script.op("read", 2**31 + i, "c", "/from", ino=2, fh=1, off=size, len=size,
                  res=size)
        script.op("getxattr", 0, "c", "/from", ino=2, xattr=b"a=\n|\xff", len=size, res=size)
    yield "sizes", script


def check_hostile_traces(world):
    limited = ["prlimit", "--as=3000000000", "--cpu=120"]
    for name, script in hostile_scripts():
        trace = script.make(world.options.make_scripted_trace,
                            os.path.join(world.folder, name + ".hostile"))
        operations, _ = world.told(trace)
        for kind in FORMATS:
            path = os.path.join(world.folder, f"{name}-{kind}")
            done = subprocess.run(
                [*limited, os.path.join(world.bin, "tracefs-dump"), "--format", kind,
                 "--output", path, trace], capture_output=True, check=False, timeout=300)
            expect(done.returncode in (0, 1), name, kind, done.returncode, done.stderr[-500:])
            if kind in ("csv", "cef", "ocsf", "ecs"):
                with open(path, "rb") as file:
                    lines = file.read().count(b"\n") - (kind == "csv")
                left = re.search(rb"(\d+) operations?[^\n]* left out of", done.stderr)
                expect_equal(lines + (int(left[1]) if left else 0), len(operations),
                             f"{name}: rows of {kind}")
            elif kind == "buildxl":
                with open(path, "rb") as file:
                    rows = buildxl_reader.File(file.read()).rows
                expect(len(rows) < 2**22 + 200 * len(operations), name, len(rows))
            elif kind in ("perfetto", "speedscope", "nfsdb-json"):
                with open(path, encoding="utf-8") as file:
                    json.load(file)
            elif kind == "xml":
                ElementTree.parse(path)
            elif kind.startswith("xray") and shutil.which("llvm-xray"):
                # Whatever it is, it is read.
                word = ["fdr-dump", "--verify"] if kind == "xray-fdr" else ["convert", "-f", "yaml"]
                read = subprocess.run(["llvm-xray", *word, path], capture_output=True, check=False)
                expect_equal(read.returncode, 0, f"{name} {kind} {read.stderr[-300:]}")


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--npm", help="where node_modules is")
    parser.add_argument("--make-scripted-trace", required=True)
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    with contextlib.ExitStack() as folders:
        shared = World(options, folders.enter_context(
            tempfile.TemporaryDirectory(prefix="tracefs-real-")))
        return run_checks([check for check in CHECKS if not options.only
                           or check.__name__ in options.only], lambda: shared)


if __name__ == "__main__":
    sys.exit(main())
