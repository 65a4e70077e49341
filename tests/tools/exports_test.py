#!/usr/bin/env python3
"""What tracefs-dump exports, read back by programs of others. JSON Lines, whose
own tests read them, are the reference: each format tells the same operations."""

import argparse
import base64
import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from command_checks import Commands, Skip, expect, expect_equal, run_checks  # noqa: E402

XMLNS = "{urn:tracefs:trace:1}"
# Words of filters, where JSON Lines have another key.
KEYS = {"time": "ts", "latency": "dur", "ctid": "tid", "cpid": "pid",
        "cuid": "uid", "cgid": "gid", "cname": "comm", "inode": "ino",
        "new_mode": "mode", "length": "size"}


def need(tool):
    path = shutil.which(tool)
    if path is None:
        raise Skip(f"{tool} is not installed")
    return path


def unescaped(text):
    """The bytes behind escaped text."""
    out = bytearray()
    rest = text.encode()
    while rest:
        match = re.match(rb"\\x([0-9a-f]{2})|\\([nt\\])", rest)
        if match is None:
            out += rest[:1]
            rest = rest[1:]
            continue
        out += (bytes([int(match[1], 16)]) if match[1] else
                {b"n": b"\n", b"t": b"\t", b"\\": b"\\"}[match[2]])
        rest = rest[match.end():]
    return bytes(out)


def bytes_of(record, key):
    """A text of a JSON line, or nothing."""
    if key + "_b64" in record:
        return base64.b64decode(record[key + "_b64"])
    return record[key].encode() if key in record else None


class World(Commands):
    def __init__(self, options, folder):
        super().__init__(options.bin, folder)
        self.dump = os.path.join(self.bin, "tracefs-dump")
        self.golden = options.golden
        self.npm = options.npm

    def traces(self):
        return [name for name in sorted(os.listdir(self.golden))
                if name.endswith(".trace") and name != "too_new.trace"]

    def run(self, *arguments, status=(0, 1), **more):
        done = subprocess.run([self.dump, *arguments], capture_output=True,
                              check=False, timeout=120, **more)
        expect(done.returncode in status, arguments, done.returncode, done.stderr)
        return done

    def trace(self, name):
        return os.path.join(self.golden, name)

    def reference(self, trace, *arguments):
        lines = self.run("--format", "jsonl", *arguments, trace).stdout
        return [record for record in map(json.loads, lines.splitlines())
                if "op" in record and "alarm" not in record and "from" not in record]

    def processes(self, trace):
        lines = self.run("--format", "jsonl", trace).stdout
        return [record for record in map(json.loads, lines.splitlines())
                if "process" in record]

    def made(self, kind, trace, *arguments, name="export"):
        path = os.path.join(self.folder, name)
        self.run("--format", kind, "--output", path, *arguments, trace)
        return path


def check_csv(world):
    for name in world.traces():
        trace = world.trace(name)
        for arguments in ([], ["--set", "safe=no"]):
            path = world.made("csv", trace, *arguments)
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            reference = world.reference(trace)
            expect_equal(len(rows), len(reference), name)
            for row, record in zip(rows, reference):
                for column, value in row.items():
                    key = KEYS.get(column, column)
                    if column in ("cname", "path", "path2"):
                        want = bytes_of(record, key)
                        if want is None and column == "path2":
                            want = bytes_of(record, "new_name")
                        expect_equal(unescaped(value), want or b"", column)
                    elif column in ("inferred", "before"):
                        expect_equal(value, "1" if record.get(key) else "", column)
                    elif value.startswith("b64:"):
                        expect_equal(column, "cuid", "of what is opaque")
                        expect_equal(value[4:], record.get("ARG_UID_b64"), column)
                    else:
                        expect_equal(value, str(record.get(key, "")), column)


def check_csv_columns(world):
    trace = world.trace("every_operation.trace")
    out = world.run("--format", "csv", "--columns", "op,comm,host", trace).stdout
    lines = out.decode().splitlines()
    expect_equal(lines[0], "op,cname,host")
    expect(all(line.endswith(",cc1plus,testbox") for line in lines[1:]), lines[1])
    wrong = world.run("--format", "csv", "--columns", "op,pth", trace, status=(2,))
    expect(b"did you mean 'path'" in wrong.stderr, wrong.stderr)
    iso = world.run("--format", "csv", "--columns", "time", "--time-format", "iso",
                    "--utc", world.trace("worked_example.trace")).stdout
    expect(re.fullmatch(rb"time\n(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{9})?Z\n){2}", iso), iso)


def check_xml(world):
    schema = os.path.join(SOURCE, "tracefs/export/trace.xsd")
    for name in world.traces():
        trace = world.trace(name)
        path = world.made("xml", trace)
        reference = world.reference(trace)
        root = ElementTree.parse(path).getroot()
        operations = root.findall(XMLNS + "operation")
        expect_equal(len(operations), len(reference), name)
        for operation, record in zip(operations, reference):
            expect_equal(operation.get("op"), record["op"])
            for column in ("path", "path2", "cname"):
                value = operation.get(column)
                encoded = operation.get(column + "_b64")
                have = base64.b64decode(encoded) if encoded else (value or "").encode()
                want = bytes_of(record, KEYS.get(column, column))
                if want is None and column == "path2":
                    want = bytes_of(record, "new_name")
                expect_equal(have, want or b"", column)
            for column in ("time", "latency", "inode", "result", "errno", "tracer"):
                expect_equal(operation.get(column, ""),
                             str(record.get(KEYS.get(column, column), "")), column)
        if shutil.which("xmllint"):
            subprocess.run(["xmllint", "--noout", "--stream", "--schema", schema, path],
                           check=True, capture_output=True)
    need("xmllint")


def check_json_documents(world):
    jq = shutil.which("jq")
    for name in world.traces():
        trace = world.trace(name)
        reference = world.reference(trace)
        for kind in ("perfetto", "speedscope"):
            path = world.made(kind, trace)
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            if jq:
                subprocess.run([jq, "-e", "type", path], check=True, capture_output=True)
            if kind == "perfetto":
                shown = [e for e in document["traceEvents"] if e["ph"] in "Xb"]
                told = [r for r in reference if "ts" in r and not r.get("before")]
                expect_equal(len(shown), len(told), name)
                check_nesting(document["traceEvents"])
            else:
                profile = document["profiles"][0]
                expect_equal(len(profile["samples"]), len(profile["weights"]))
                total = sum(r.get("dur", 0) for r in reference if not r.get("before"))
                expect_equal(sum(profile["weights"]), total, name)
                expect_equal(profile["endValue"], total, name)


def check_nesting(events):
    """Complete events of one thread lie in each other or apart."""
    threads = {}
    for event in events:
        if event["ph"] != "X":
            continue
        begin, end = event["ts"], event["ts"] + event["dur"]
        open_ends = threads.setdefault((event["pid"], event["tid"]), [])
        while open_ends and open_ends[-1] <= begin + 1e-6:
            open_ends.pop()
        expect(not open_ends or end <= open_ends[-1] + 1e-6, event)
        open_ends.append(end)


def check_folded(world):
    for name in world.traces():
        trace = world.trace(name)
        reference = [r for r in world.reference(trace) if not r.get("before")]
        for weight, total in (
                ("time", sum(r.get("dur", 0) for r in reference)),
                ("operations", len(reference)),
                ("bytes", sum(max(r.get("result", 0), 0) for r in reference
                              if r["op"] in ("read", "write", "copy_file_range")))):
            out = world.run("--format", "folded", "--set", "weight=" + weight, trace).stdout
            lines = out.decode().splitlines()
            for line in lines:
                expect(re.fullmatch(r"[^ ]+ \d+", line), line)
            expect_equal(sum(int(line.split(" ")[1]) for line in lines), total, name)


STRACE = re.compile(
    r'(?P<pid>\d+) +(?P<ts>\d+\.\d{6}) (?P<call>\w+)\((?P<args>.*)\) += '
    r'(?P<result>-?\d+|\?)(?P<file><.*>)?( (?P<errno>E\w+) \(.*\))?( <(?P<took>\d+\.\d{6})>)?')
# How strace tells of processes.
PROCESS_LINE = re.compile(
    r"\d+ +\d+\.\d{6} (?:(?P<what>clone|execve)\(.*\) = \d+|"
    r"\+\+\+ (?:exited with|killed by) .* \+\+\+)")
PROCESS_CALLS = {"fork": "clone", "exec": "execve", "exit": None}


def check_strace(world):
    for name in world.traces():
        trace = world.trace(name)
        done = world.run("--format", "strace", "--set", "lookups=yes", trace)
        told = [r for r in world.reference(trace)
                if r["op"] not in ("flush", "poll") and not r.get("before")]
        lines = []
        processes = []
        for line in done.stdout.decode("ascii").splitlines():
            (processes if PROCESS_LINE.fullmatch(line) else lines).append(line)
        expect_equal(
            [PROCESS_LINE.fullmatch(line)["what"] for line in processes],
            [PROCESS_CALLS[r["process"]] for r in world.processes(trace)
             if r["process"] in PROCESS_CALLS], name)
        expect_equal(len(lines), len(told), name)
        for line, record in zip(lines, told):
            match = STRACE.fullmatch(line)
            expect(match, line)
            if "ts" in record:
                seconds, micros = match["ts"].split(".")
                expect_equal(int(seconds) * 10**6 + int(micros), record["ts"] // 1000)
            expect_equal(match["errno"], record.get("errno"), line)


def check_strace_by_others(world):
    """strace's own tools: the merger of logs and the graph of processes."""
    merge = need("strace-log-merge")
    trace = world.trace("every_operation.trace")
    log = world.made("strace", trace, name="strace-log")
    with open(log, encoding="ascii") as file:
        lines = [line.split(" ", 1)[1].lstrip() for line in file]
    prefix = os.path.join(world.folder, "merge")
    with open(prefix + ".4243", "w", encoding="ascii") as file:
        file.writelines(lines)
    merged = subprocess.run([merge, prefix], check=True, capture_output=True, text=True)
    expect_equal([line.split(" ", 1)[1].lstrip() for line in merged.stdout.splitlines()],
                 [line.rstrip("\n") for line in lines])
    packed = "/usr/share/doc/strace/examples/strace-graph.gz"
    if not os.path.exists(packed) or not shutil.which("perl"):
        raise Skip("strace-graph or perl is not installed")
    graph = os.path.join(world.folder, "strace-graph")
    with open(graph, "wb") as file:
        subprocess.run(["zcat", packed], check=True, stdout=file)
    # It shows processes that were executed.
    with open(log, "r+", encoding="ascii") as file:
        text = file.read()
        file.seek(0)
        file.write('4243  1767323044.000000 execve("/bin/cc1plus", ["cc1plus"], 0x1) = 0 '
                   "<0.000001>\n" + text)
    done = subprocess.run(["perl", graph, log], capture_output=True, text=True, check=False)
    expect_equal(done.returncode, 0, done.stderr)
    expect("cannot parse" not in done.stderr, done.stderr)
    expect("cc1plus" in done.stdout, done.stdout)


def check_fio(world):
    fio = need("fio")
    trace = world.trace("every_operation.trace")
    log = world.made("fio", trace, name="iolog")
    with open(log, encoding="ascii") as file:
        lines = file.read().splitlines()
    expect_equal(lines[0], "fio version 3 iolog")
    root = os.path.join(world.folder, "fio")
    os.mkdir(root)
    for name in {line.split()[1] for line in lines[1:]}:
        os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(root, name), "wb") as file:
            file.truncate(1 << 20)
    done = subprocess.run(
        [fio, "--name=replay", "--read_iolog=" + log, "--ioengine=psync",
         "--replay_no_stall=1", "--output-format=json"],
        cwd=root, capture_output=True, check=False, text=True, timeout=60)
    expect_equal(done.returncode, 0, done.stdout + done.stderr)
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    for kind in ("read", "write"):
        ios = [line.split() for line in lines if f" {kind} " in line]
        expect_equal(job[kind]["total_ios"], len(ios), kind)
        expect_equal(job[kind]["io_bytes"], sum(int(io[4]) for io in ios), kind)


def check_safe_numbers(world):
    trace = world.trace("every_operation.trace")
    plain = world.run("--format", "jsonl", trace).stdout.decode().splitlines()
    safe = world.run("--format", "jsonl", "--safe-numbers", trace).stdout.decode().splitlines()
    expect_equal(len(plain), len(safe))
    quoted = 0
    for a, b in zip(map(json.loads, plain), map(json.loads, safe)):
        expect_equal(a.keys(), b.keys())
        for key, value in a.items():
            if isinstance(value, int) and abs(value) > 2**53 - 1:
                quoted += 1
                value = str(value)
            expect_equal(b[key], value, key)
    expect(quoted >= len(plain), quoted)
    world.run("--format", "csv", "--safe-numbers", trace, status=(2,))


def check_time_windows(world):
    trace = world.trace("every_operation.trace")
    all_of_them = world.reference(trace)
    begin, end = all_of_them[0]["ts"], all_of_them[-1]["ts"]
    middle = (begin + end) // 2

    def window(*arguments):
        return world.reference(trace, *arguments)

    expect_equal(window("--from", f"@{middle}"),
                 [r for r in all_of_them if r["ts"] >= middle])
    expect_equal(window("--to", f"@{middle}"),
                 [r for r in all_of_them if r["ts"] < middle])
    expect_equal(window("--to", "40%") + window("--from", "40%", "--to", "100%"),
                 all_of_them)
    expect_equal(window("--from", "+10ms", "--to", "+20ms"),
                 [r for r in all_of_them if 10**7 <= r["ts"] - begin < 2 * 10**7])
    expect_equal(window("--from", "-10ms"),
                 [r for r in all_of_them if end - r["ts"] <= 10**7])
    # The trace is of 2026-01-02 03:04:05 UTC.
    for text in ("2026-01-02T03:04:05.01Z", "2026-01-02T04:04:05.010+01:00"):
        expect_equal(window("--from", text), [r for r in all_of_them
                                              if r["ts"] - begin >= 10**7])
    for text in ("2026-01-02T03:04:05.01", "2026-01-02 03:04:05.01", "03:04:05.010"):
        expect_equal(window("--from", text, "--utc"),
                     [r for r in all_of_them if r["ts"] - begin >= 10**7])
    expect_equal(window("--from", "2026-01-02", "--to", "2026-01-03", "--utc"),
                 all_of_them)
    expect_equal(window("--from", "2026-01-03", "--utc"), [])
    # The last one before takes 1.5 us.
    late = f"@{all_of_them[-1]['ts'] + 1}"
    expect_equal(window("--from", late), [])
    expect_equal(len(window("--from", late, "--overlapping")), 1)
    # A window beside the trace is no answer without a word.
    for words, said in (
            (("--from", "2026-01-03"), b"last operation, which began at 2026-01-02T"),
            (("--to", "03:00"), b"first operation, which began at 2026-01-02T03:"),
            (("--from", "03:00", "--to", "03:03"), b"first operation"),
            (("--from", "2026-01-02"), b"")):
        for form in ([], ["--by", "op"], ["--stats"]):
            done = world.run(*form, *words, "--utc", trace)
            expect(said in done.stderr and bool(said) == bool(done.stderr),
                   words, form, done.stderr)
    done = world.run("--from", "04:00", "--to", "03:00", "--utc", trace,
                     status=(2,))
    expect(b"--from (2026-01-02T04:00:00.000000Z) is later than --to (2026-01-02T03"
           in done.stderr, done.stderr)
    for wrong in ("yesterday", "25:00", "101%", "+5", "2026-13-01"):
        done = world.run("--from", wrong, trace, status=(2,))
        expect(b"is no time" in done.stderr, wrong, done.stderr)
    for more in ([], ["--by", "op"]):
        done = world.run("--from", "75%", "--to", "25%", *more, trace, status=(2,))
        expect(b"is later than --to" in done.stderr, done.stderr)
    piped = subprocess.run(f"cat {trace} | {world.dump} --from 25% -", shell=True,
                           capture_output=True, check=False)
    expect_equal(piped.returncode, 2, piped.stderr)


def check_output_is_whole_or_not_at_all(world):
    trace = world.trace("every_operation.trace")
    old = os.path.join(world.folder, "old")
    with open(old, "w", encoding="ascii") as file:
        file.write("as it was")
    os.chmod(old, 0o640)
    link = os.path.join(world.folder, "link")
    os.symlink("old", link)
    world.run("--format", "csv", "--columns", "op", "-o", link, trace, status=(0,))
    expect(os.path.islink(link), "the link was replaced")
    expect_equal(os.stat(old).st_mode & 0o777, 0o640)
    with open(old, encoding="ascii") as file:
        expect(file.read().startswith("op\nlookup\n"), "not replaced")
    # A wrong trace leaves what was there; and nothing lies about.
    before = sorted(os.listdir(world.folder))
    world.run("--format", "csv", "-o", old, os.path.join(world.folder, "none"), status=(3,))
    world.run("--format", "csv", "-o", world.folder, trace, status=(2,))
    full = subprocess.run(
        ["bash", "-c", 'ulimit -f 1; trap "" XFSZ; "$0" --format xml -o "$1" "$2"',
         world.dump, old, trace], capture_output=True, check=False)
    expect_equal(full.returncode, 3, full.stderr)
    expect_equal(sorted(os.listdir(world.folder)), before)
    with open(old, encoding="ascii") as file:
        expect(file.read().startswith("op\nlookup\n"), "what was there is gone")
    # Nor does what can be opened, but has nothing of a trace in it.
    for content, arguments in ((b"", []), (b"no trace" * 100, []),
                               (b"", ["--by", "op"]),
                               (b"no trace" * 100, ["--by", "op"]),
                               (b"no trace" * 100, ["--hist", "latency"]),
                               (b"no trace" * 100, ["--by", "dir(2)"]),
                               (None, ["--extract", "environment"])):
        bad = trace
        if content is not None:
            bad = os.path.join(world.folder, "bad")
            with open(bad, "wb") as file:
                file.write(content)
        elif world.run(*arguments, trace).stdout:
            continue
        done = world.run(*arguments, "-o", old, bad)
        expect(done.returncode != 0 and b"is as it was" in done.stderr, done.stderr)
        with open(old, encoding="ascii") as file:
            expect(file.read().startswith("op\nlookup\n"), "what was there is gone")
    for arguments in (["--format", "sqlite"], ["--format", "ctf"], ["--format", "xml"]):
        world.run("--extract", "config", *arguments, "-o",
                  os.path.join(world.folder, "no"), trace, status=(2,))
    os.remove(os.path.join(world.folder, "bad"))
    # A limit of the file's size that nobody ignored, and a line that is hung up.
    limited = subprocess.run(
        ["bash", "-c", 'ulimit -f 1; "$0" --format xml -o "$1" "$2"',
         world.dump, old, trace], capture_output=True, check=False)
    expect_equal(limited.returncode, 3, limited.stderr)
    hung_up = subprocess.Popen([world.dump, "--format", "csv", "-o", old, "-"],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP,
                                                                signal.SIG_DFL))
    while not [name for name in os.listdir(world.folder) if ".part-" in name]:
        expect(hung_up.poll() is None, "it ended before it was to")
        time.sleep(0.01)
    hung_up.send_signal(signal.SIGHUP)
    with open(trace, "rb") as file:
        said = hung_up.communicate(file.read(), timeout=60)[1]
    expect_equal(hung_up.returncode, 3, said)
    expect_equal(sorted(os.listdir(world.folder)), before)
    # A full device, and a reader that goes away.
    if os.path.exists("/dev/full"):
        done = world.run("--format", "csv", "-o", "/dev/full", trace, status=(3,))
        expect(b"No space left" in done.stderr, done.stderr)
    for kind in ("csv", "xml", "strace", "perfetto"):
        gone = subprocess.run(["bash", "-c", '"$0" --format "$1" "$2" | head -c 1 >/dev/null; '
                               'exit ${PIPESTATUS[0]}', world.dump, kind, trace],
                              capture_output=True, check=False)
        expect_equal(gone.returncode, 0, gone.stderr)


def check_live_and_later_are_the_same(world):
    """What is listed while a trace grows, and what of the whole file."""
    whole = world.trace("every_operation.trace")
    with open(whole, "rb") as file:
        data = file.read()
    for kind in ("jsonl", "text", "csv", "ecs", "strace"):
        growing = os.path.join(world.folder, "growing")
        with open(growing, "wb") as file, subprocess.Popen(
                [world.dump, "--format", kind, "--follow", growing],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as live:
            for at in range(0, len(data), 1500):
                file.write(data[at:at + 1500])
                file.flush()
                time.sleep(0.02)
            shown = live.communicate(timeout=30)[0]
        expect_equal(shown, world.run("--format", kind, whole).stdout, kind)


# --- The same numbers, however they are asked for.


def counts_of(world, trace):
    """What --stats says: {operation: (count, errors, ns, bytes)}."""
    lines = world.run("--stats", "--format", "jsonl", trace).stdout.decode().splitlines()
    rows = [row for row in map(json.loads, lines) if "op" in row and "aggregate" not in row]
    return {row["op"]: (row["count"], row["errors"], row.get("dur_total", 0), row["bytes"])
            for row in rows if row["count"] != 0}


QUERY = """SELECT op, count(*), count(errno), coalesce(sum(latency), 0),
  coalesce(sum(CASE WHEN op IN ('read', 'write', 'copy_file_range') AND errno IS NULL
    THEN result END), 0) FROM {} WHERE NOT before GROUP BY op"""


def check_sqlite(world):
    if b"sqlite" not in world.run("--help=all").stdout:
        raise Skip("built without SQLite")
    for name in world.traces():
        trace = world.trace(name)
        path = world.made("sqlite", trace, "--set", "indices=yes", name=name + ".db")
        with sqlite3.connect(path) as database:
            expect_equal(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            counts = {row[0]: row[1:] for row in database.execute(QUERY.format("operations"))}
            expect_equal(counts, counts_of(world, trace), name)
            database.row_factory = sqlite3.Row
            rows = database.execute("SELECT * FROM operations")
            compare_rows(map(dict, rows), world.reference(trace), name)
            for view in ("operation_counts", "file_bytes", "process_bytes", "errors",
                         "slowest", "double_writes"):
                database.execute(f"SELECT * FROM {view}").fetchall()
            properties = {row["key"]: row["value"] for row in
                          database.execute("SELECT key, value FROM meta")}
            expect("tracefs.version" in properties, properties)
    if shutil.which("sqlite3"):
        out = subprocess.run(["sqlite3", path, "SELECT count(*) FROM ops"], check=True,
                             capture_output=True).stdout
        expect(int(out) >= 0, out)


def compare_rows(rows, reference, name):
    """Rows of a table with every column, and what JSON Lines tell."""
    rows = list(rows)
    expect_equal(len(rows), len(reference), name)
    for row, record in zip(rows, reference):
        for column in ("time", "latency", "op", "ctid", "cpid", "cuid", "inode", "fh",
                       "offset", "length", "result", "errno", "tracer"):
            want = record.get(KEYS.get(column, column))
            have = row[column]
            if want is not None and column not in ("op", "errno", "result"):
                have, want = have % 2**64, want % 2**64
            expect_equal(have, want, f"{name}: {column}")
        for column in ("path", "path2", "cname"):
            want = bytes_of(record, KEYS.get(column, column))
            if want is None and column == "path2":
                want = bytes_of(record, "new_name")
            have = row[column]
            expect_equal(None if have is None else unescaped(have), want, column)
            raw = row.get(column + "_raw")
            if raw is not None:
                expect_equal(bytes(raw), want, column + "_raw")


NODE = r"""
const { readFileSync, writeSync } = require('fs');
const json = value => JSON.stringify(value, (key, v) =>
  typeof v === 'bigint' ? Number.isSafeInteger(Number(v)) ? Number(v) : {big: String(v)}
  : v instanceof Uint8Array ? {bytes: Buffer.from(v).toString('base64')} : v);
async function hyparquet(path) {
  const { parquetReadObjects, parquetMetadata } = await import('hyparquet');
  const { compressors } = await import('hyparquet-compressors');
  const data = readFileSync(path);
  const file = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const rows = await parquetReadObjects({ file, compressors, utf8: false });
  const meta = parquetMetadata(file);
  return { rows, meta: { rows: meta.num_rows, groups: meta.row_groups.length,
    properties: Object.fromEntries(meta.key_value_metadata.map(p => [p.key, p.value])) } };
}
async function duckdb(...queries) {
  const { DuckDBInstance } = require('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const results = [];
  for (const query of queries) {
    results.push((await connection.runAndReadAll(query)).getRowsJson());
  }
  return results;
}
({ hyparquet, duckdb })[process.argv[2]](...process.argv.slice(3))
  .then(value => writeSync(1, json(value)), error => { console.error(error); process.exit(1); });
"""


def node(world, module, *arguments):
    need("node")
    if not world.npm or not os.path.isdir(os.path.join(world.npm, "node_modules", module)):
        raise Skip(f"{module} is not installed (scripts/setup)")
    script = os.path.join(world.folder, "read.js")
    with open(script, "w", encoding="ascii") as file:
        file.write(NODE)
    link = os.path.join(world.folder, "node_modules")
    if not os.path.exists(link):
        os.symlink(os.path.join(os.path.abspath(world.npm), "node_modules"), link)
    done = subprocess.run(["node", script, *arguments], capture_output=True, check=False,
                          timeout=120)
    expect_equal(done.returncode, 0, done.stderr.decode())

    def plain(value):
        if "big" in value:
            return int(value["big"])
        return base64.b64decode(value["bytes"]) if "bytes" in value else value

    with open(os.path.join(world.folder, "out.json"), "wb") as file:
        file.write(done.stdout)
    return json.loads(done.stdout, object_hook=plain)


def check_parquet_by_hyparquet(world):
    for name, rows in (("every_operation", 7), ("awkward_names", 100000),
                       ("later_version", 1), ("aggregates", 1)):
        trace = world.trace(name + ".trace")
        path = world.made("parquet", trace, "--set", f"rows={rows}", name=name)
        read = node(world, "hyparquet", "hyparquet", path)
        reference = world.reference(trace)
        expect_equal(read["meta"]["rows"], len(reference))
        expect_equal(read["meta"]["groups"], -(-len(reference) // rows))
        expect("testbox" in read["meta"]["properties"]["tracefs.traces"],
               read["meta"]["properties"])
        compare_rows(read["rows"], reference, name)


def check_parquet_by_duckdb(world):
    parts = os.path.join(world.folder, "parts")
    queries = []
    traces = ["every_operation.trace", "awkward_names.trace", "order_and_resolution.trace"]
    for name in traces:
        path = world.made("parquet", world.trace(name), "--set", "rows=10",
                          name=name + ".parquet")
        queries.append(QUERY.format(f"'{path}'"))
    world.run("--format", "parquet", "--set", "partition=yes", "-o", parts,
              world.trace(traces[0]))
    queries.append(QUERY.format(
        f"read_parquet('{parts}/*/*/*.parquet', hive_partitioning = true)"))
    queries.append("SELECT DISTINCT host, date FROM "
                   f"read_parquet('{parts}/*/*/*.parquet', hive_partitioning = true)")
    path = os.path.join(world.folder, traces[0] + ".parquet")
    middle = world.reference(world.trace(traces[0]))[30]["ts"]
    queries.append(f"SELECT count(*), min(epoch_ns(timestamp)) FROM '{path}' "
                   f"WHERE time >= {middle}")
    # Statistics and values agree.
    queries.append(f"SELECT max(inode), min(result), max(path) FROM '{path}'")
    results = node(world, "@duckdb/node-api", "duckdb", *queries)
    for name, rows in zip(traces + traces[:1], results):
        have = {row[0]: tuple(map(int, row[1:])) for row in rows}
        expect_equal(have, counts_of(world, world.trace(name)), name)
    reference = world.reference(world.trace(traces[0]))
    expect_equal(results[4], [["testbox", "2026-01-02"]])
    late = [r for r in reference if r["ts"] >= middle]
    expect_equal([int(v) for v in results[5][0]], [len(late), middle])
    expect_equal(int(results[6][0][0]), max(r["ino"] for r in reference if "ino" in r))


def check_pandas(world):
    """Debian's pandas, of csv and of SQLite."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pandas"], capture_output=True,
                      check=False).returncode:
        raise Skip("python3-pandas is not installed")
    trace = world.trace("every_operation.trace")
    made = world.made("csv", trace, "--columns", "all", name="ops.csv")
    database = world.made("sqlite", trace, name="ops.db")
    script = r"""
import json, sqlite3, sys, pandas as pd
def counts(t):
    t = t[t.before.fillna(0) == 0]
    moved = t.result.where(t.op.isin(["read", "write", "copy_file_range"]) & t.errno.isna(), 0)
    g = t.assign(moved=moved).groupby("op").agg(
        n=("op", "size"), errors=("errno", "count"), ns=("latency", "sum"), b=("moved", "sum"))
    return {op: [int(v) for v in row] for op, row in zip(g.index, g.values)}
print(json.dumps([counts(pd.read_csv(sys.argv[1])),
  counts(pd.read_sql("SELECT * FROM operations", sqlite3.connect(sys.argv[2])))]))
"""
    out = subprocess.run([python, "-c", script, made, database], check=True,
                         capture_output=True).stdout
    want = {op: list(row) for op, row in counts_of(world, trace).items()}
    for have in json.loads(out):
        expect_equal(have, want)


def check_ctf(world):
    babeltrace = need("babeltrace2")
    for name in world.traces():
        trace = world.trace(name)
        reference = world.reference(trace)
        path = world.made("ctf", trace, name=name + ".ctf")
        done = subprocess.run([babeltrace, "--clock-seconds", "--no-delta", path],
                              capture_output=True, check=False, text=True,
                              errors="surrogateescape")
        expect_equal(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        expect_equal(len(lines), len(reference), name)
        for line, record in zip(lines, reference):
            match = re.match(r"\[(\d+)\.(\d{9})\] (.* )?(\w+): \{", line)
            expect(match, line)
            expect_equal(match[4], record["op"], line)
            if "ts" in record and "{ time =" not in line and ", time =" not in line:
                expect_equal(int(match[1] + match[2]), record["ts"], line)
            for column in ("latency", "inode", "ctid", "result"):
                if KEYS.get(column, column) in record:
                    expect(f"{column} = {record[KEYS.get(column, column)]}" in line, line)
            if "path" in record:
                expect("path = " in line, line)
        losses = json.loads(world.run("--stats", "--format", "jsonl", trace)
                            .stdout.decode().splitlines()[-1])["lost"]
        discarded = sum(map(int, re.findall(r"discarded (\d+) event", done.stderr)))
        expect_equal(discarded, sum(losses.values()), done.stderr)


def llvm_xray():
    for name in ("llvm-xray", "llvm-xray-14"):
        if shutil.which(name):
            return name
    raise Skip("llvm-xray is not installed")


def check_xray(world):
    tool = llvm_xray()
    for name in ("every_operation", "order_and_resolution", "awkward_names"):
        trace = world.trace(name + ".trace")
        counts = counts_of(world, trace)
        for kind, choices in (("xray-fdr", ["version=1"]), ("xray-fdr", ["version=3"]),
                              ("xray-fdr", ["version=5"]), ("xray-basic", [])):
            elf = os.path.join(world.folder, "map.elf")
            arguments = [word for choice in choices + ["map=" + elf]
                         for word in ("--set", choice)]
            log = world.made(kind, trace, *arguments)
            told = [r for r in world.reference(trace) if "ts" in r and not r.get("before")]

            def run(*command):
                done = subprocess.run([tool, *command], capture_output=True, check=False,
                                      text=True)
                expect_equal(done.returncode, 0, f"{kind} {choices} {command}: {done.stderr}")
                return done.stdout

            if kind == "xray-fdr":
                dump = run("fdr-dump", "--verify", log)  # of basic ones it knows nothing
                enters = dump.count("Function Enter")
                starts = len({(r.get("pid"), r.get("tid")) for r in told})
                expect(enters >= len(told) + min(starts, 1), name, enters, len(told))
            rows = list(csv.DictReader(io.StringIO(
                run("account", log, "-m", elf, "-format=csv", "-keep-going"))))
            have = {row["function"].removeprefix("fs_"): int(row["count"]) for row in rows
                    if row["function"] != "tracefs_start"}
            want = {}
            for record in told:
                want[record["op"]] = want.get(record["op"], 0) + 1
            expect_equal(have, want, f"{kind} {choices} {name}")
            if told == [r for r in world.reference(trace) if not r.get("before")]:
                expect_equal(have, {op: row[0] for op, row in counts.items()})
            took = {row["function"].removeprefix("fs_"): float(row["sum"]) for row in rows}
            for op in have:
                ns = sum(r.get("dur", 0) for r in told if r["op"] == op)
                expect(abs(took[op] * 1e9 - ns) <= 0.01 * ns + 1, op, took[op], ns)
            # llvm-xray 14 itself ends at a signal where it is to add up the
            # stacks of fifteen threads.
            threads = len(set(re.findall(r"Thread ID: (\d+)", dump)))
            how = "-aggregate-threads" if threads < 8 else "-per-thread-stacks"
            stacks = run("stack", log, "-m", elf, "-all-stacks", "-stack-format=flame",
                         how, "-aggregation-type=time")
            expect("fs_" in stacks or not told, stacks)
            expect("digraph" in run("graph", log, "-m", elf, "-keep-going"), "no graph")
            run("convert", "-f", "yaml", "-symbolize", "-m", elf, log)


def check_trace_words(world):
    """Predicates that only a trace answers, against the same in Python."""
    trace = world.trace("every_operation.trace")
    rows = world.reference(trace)
    middle = rows[len(rows) // 2]["ts"]
    for text, keep in (
            (f"time >= {middle}", lambda r: r["ts"] >= middle),
            ("time < 2026-01-02T03:04:05.01Z AND op != read",
             lambda r: r["ts"] < 1767323045010000000 and r["op"] != "read"),
            ("ppid = 1 OR fh = 21", lambda r: r.get("ppid") == 1 or r.get("fh") == 21),
            ("NOT fh > 0 AND cname = cc1plus",
             lambda r: not r.get("fh", 0) > 0 and r.get("comm") == "cc1plus"),
            ("path2 ~ /out/*", lambda r: r.get("path2", "").startswith("/out/")),
            ("target = ../target", lambda r: r.get("target") == "../target"),
            ("xattr != user.other AND op = getxattr",
             lambda r: r.get("xattr") is not None and r["op"] == "getxattr"),
            ("inferred OR host = nobody", lambda r: r.get("inferred", False)),
            ("host IN { testbox x } AND NOT inferred", lambda r: not r.get("inferred"))):
        have = world.reference(trace, "--filter", text)
        expect_equal(have, [r for r in rows if keep(r)], text)
    for wrong in ("time = noon", "fh ~ 3", "host < a", "ppid = x"):
        done = world.run("--filter", wrong, trace, status=(2,))
        expect(b"--filter:1:" in done.stderr, done.stderr)


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")
          and name != "check_nesting"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--npm", help="where node_modules is")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    with contextlib.ExitStack() as folders:
        def world():
            return World(options, folders.enter_context(
                tempfile.TemporaryDirectory(prefix="tracefs-exports-")))
        return run_checks([check for check in CHECKS if not options.only
                           or check.__name__ in options.only], world)


if __name__ == "__main__":
    sys.exit(main())
