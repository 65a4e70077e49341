#!/usr/bin/env python3
"""One number for one thing, also where no trace is asked: what metrics, live
screens and the end of tracefs-run tell of the operations of a mount, and what a
replay tells of how they went then, is what a few lines of Python make of the
trace."""

import json
import os
import re
import subprocess
import sys
import urllib.request

from counting_suite import CountingSuite
from measured import (SHARES, bucket, count_of, expect_near, expect_text,
                      expect_text_near, truth, words_of)
from tracefs_harness import expect, expect_equal, wait_until

READS = 400
# What unmounting does not do.
OPS = ("create", "open", "read", "write", "release")
CONFIG = ('{ { } { stream = { STR_ALL } } { file = "%s" } }',
          '{ { } { aggregate = { by op; values bytes size latency } } '
          '{ file = "%s" } }')


def work(folder):
    """Reads of all sizes, among them those that get nothing, and the rest that
    a program does."""
    path = os.path.join(folder, "file")
    with open(path, "wb", buffering=0) as out:
        for i in range(50):
            out.write(b"x" * (100 * i + 1))
    fd = os.open(path, os.O_RDONLY)
    for i in range(READS):
        os.pread(fd, 1 + 37 * i % 5000, 311 * i)
    os.close(fd)
    for i in range(20):
        try:
            os.stat(os.path.join(folder, f"missing{i}"))
        except FileNotFoundError:
            pass


def expect_quantiles(found, told, what):
    """`found`: by the names of truth()."""
    for name in SHARES:
        if name in found:
            expect_near(found[name], told[name], f"{what}: {name}")


def samples_of(page):
    """{(name, op, le): value} of the aggregate driver."""
    samples = {}
    for name, labels, value in re.findall(
            r"^tracefs_aggregate_(\w+)\{([^}\n]*)\} (\S+)$", page, re.M):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        samples[name, labels.get("op"), labels.get("le")] = float(value)
    return samples


def expect_metrics(samples, told):
    for op, row in told.items():
        for name, key in (("operations_total", "count"),
                          ("errors_total", "errors"),
                          ("transferred_bytes_total", "bytes"),
                          ("latency_seconds_count", "timed")):
            expect_equal(int(samples.get((name, op, None), 0)), row[key],
                         f"metrics: {name} of {op}")
        seconds = samples["latency_seconds_sum", op, None]
        expect(abs(seconds * 1e9 - row["time"]) < 1, f"metrics: time of {op}: "
               f"{seconds} for {row['time']}")
        # Of quantiles a histogram has the bucket.
        bounds = sorted((float(le), n) for (name, of, le), n in samples.items()
                        if (name, of) == ("latency_seconds_bucket", op))
        expect_equal(int(bounds[-1][1]), row["timed"], f"{op}: up to +Inf")
        for le, n in bounds[:-1]:
            # What is in the bucket of the bound itself is on either side.
            first, last = bucket(round(le * 1e9))
            low = sum(ns < first for ns in row["times"])
            high = sum(ns <= last for ns in row["times"])
            expect(low <= n <= high, f"metrics: {op} up to {le}: {n}, and not "
                   f"{low} to {high}")


def expect_top(path, told):
    """What one interval tells is right; all of them together are the whole."""
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for op, row in told.items():
        mine = [r for r in rows if r["op"] == op]
        for key, name in (("count", "count"), ("errors", "errors"),
                          ("bytes", "bytes"), ("time", "time_ns")):
            expect_equal(sum(r[name] for r in mine), row[key],
                         f"top: {key} of {op}")
        expect_equal(max(r["max_ns"] for r in mine), row["max"],
                     f"top: max of {op}")
        if len(mine) == 1:
            expect_equal(mine[0]["mean_ns"], row["mean"], f"top: mean of {op}")
            expect_quantiles({n: mine[0][n + "_ns"] for n in SHARES}, row,
                             f"top: {op}")


def told_by(suite, trace):
    events = suite.read(trace)
    told = {op: row for op, row in truth(events).items() if op in OPS}
    expect_equal(set(told), set(OPS), "the workload")
    for op, row in told.items():
        row["times"] = [e["dur"] for e in events
                        if e["op"] == op and "dur" in e]
    expect_equal(told["read"]["count"], READS, "the workload")
    return told


def live(suite):
    source, point = suite.folder("live", "source"), suite.folder("live", "mnt")
    stream, count = suite.path("stream"), suite.path("count")
    mount = suite.mount(source, point, CONFIG[0] % stream, CONFIG[1] % count,
                        options=["--metrics", "127.0.0.1:0"])
    address = re.search(r"metrics at (\S+)", mount.messages())[1]
    top = suite.path("top.jsonl")
    with open(top, "w", encoding="utf-8") as out:
        watching = subprocess.Popen(
            [os.path.join(suite.bin, "tracefs-ctl"), point, "top", "--by", "op",
             "--values", "count,errors,bytes,time,mean,p50,p90,p99,p999,max",
             "--top", "100", "--format", "json", "--interval", "2s",
             "--rounds", "1000000"], stdout=out)
    wait_until(lambda: len(json.loads(suite.tool(
        "tracefs-ctl", point, "list", "--format", "json").stdout)["tracers"]) == 3,
        "somebody watches")
    work(point)

    def page():
        with urllib.request.urlopen(f"http://{address}/metrics",
                                    timeout=30) as answer:
            return samples_of(answer.read().decode("utf-8"))

    def watched():
        with open(top, encoding="utf-8") as lines:
                return sum(row["count"] for row in map(json.loads, lines)
                       if row["op"] == "release")
    wait_until(lambda: page().get(("operations_total", "release", None)) == 2,
               "metrics have all")
    wait_until(lambda: watched() == 2, "top has all", 60)
    watching.terminate()
    expect_equal(watching.wait(60), 0, "exit status of top")
    served = page()
    mount.unmount()
    told = told_by(suite, stream)
    expect_metrics(served, told)
    expect_top(top, told)
    browsed(suite, stream, told)
    replayed(suite, stream, told)


def browsed(suite, trace, told):
    """The screen of operations, as text."""
    text = subprocess.run(
        [os.path.join(suite.bin, "tracefs-dump"), "--browse", trace],
        capture_output=True, stdin=subprocess.DEVNULL, text=True,
        check=True).stdout
    lines = [words_of(line) for line in text.splitlines() if line]
    names = next(line for line in lines if line[-1] == "OPERATION")
    whole = sum(row["time"] for row in truth(suite.read(trace)).values())
    for op, row in told.items():
        found = dict(zip(names, next(l for l in lines if l[-1] == op)))
        for name, key in (("OPS", "count"), ("ERRORS", "errors"),
                          ("BYTES", "bytes"), ("MEAN", "mean"),
                          ("MAX", "max")):
            expect_text(found[name], row[key], f"--browse: {key} of {op}")
        share = 100 * row["time"] / whole
        expect(abs(float(found["TIME%"]) - share) < 0.1,
               f"--browse: time of {op}: {found['TIME%']} for {share}")
        for name in ("p50", "p90", "p99"):
            expect_text_near(found[name.upper()], row[name],
                             f"--browse: {name} of {op}")


def replayed(suite, trace, told):
    """What a replay says of how long operations took when they were recorded,
    and how many it has done."""
    done = suite.tool("tracefs-replay", "--format", "json", trace, "--root",
                      suite.folder("replayed"))
    outcome = json.loads(done.stdout)
    for op, row in told.items():
        found = outcome["ops"][op]
        expect_equal((found["count"], found["same"]), (row["count"],) * 2,
                     f"replay: {op}")
        then = found["then_ns"]
        expect_equal((then["sum"], then["max"]), (row["time"], row["max"]),
                     f"replay: sum and max of {op}")
        expect_quantiles({n: then[n] for n in ("p50", "p99")}, row,
                         f"replay: {op}")
    expect_equal((outcome["bytes_read"], outcome["bytes_written"]),
                 (told["read"]["bytes"], told["write"]["bytes"]),
                 "bytes of the replay")


def at_the_end(suite):
    """The table that tracefs-run prints, and the files below it."""
    source, trace = suite.folder("run"), suite.path("run.trace")
    script = suite.path("work.py")
    with open(__file__, encoding="utf-8") as mine:
        text = mine.read()
    begin = text.index("def work(")
    with open(script, "w", encoding="utf-8") as out:
        out.write(f"import os\nREADS = {READS}\n" +
                  text[begin:text.index("def expect_quantiles")] +
                  "work('.')\n")
    done = subprocess.run(
        [os.path.join(suite.bin, "tracefs-run"), "-o", trace, "--",
         sys.executable, "-B", script], cwd=source, capture_output=True,
        text=True, check=False, timeout=300)
    expect_equal(done.returncode, 0, done.stderr)
    events = [e for e in suite.read(trace) if "op" in e]
    told = truth(events)
    expect_equal(told["read"]["count"], READS, "the workload")
    told["total"] = {key: sum(row.get(key, 0) for row in told.values())
                     for key in ("count", "errors", "bytes", "time", "timed")}
    told["total"]["max"] = max(e["dur"] for e in events if "dur" in e)
    told["total"]["mean"] = told["total"]["time"] // told["total"]["timed"]
    lines = done.stderr.splitlines()
    begin = next(i for i, line in enumerate(lines) if "% time" in line)
    end = next(i for i, line in enumerate(lines) if line.endswith("  total"))
    expect_equal({line.split()[-1] for line in lines[begin + 1:end + 1]},
                 set(told), "operations")
    for line in lines[begin + 1:end + 1]:
        words = words_of(line)
        if len(words) == 7:  # no bytes
            words.insert(4, "0 B")
        share, time, count, errors, size, mean, longest, op = words
        row = told[op]
        expect_equal((count_of(count), count_of(errors)),
                     (row["count"], row["errors"]),
                     f"counts of {op}")
        for found, key in ((time, "time"), (size, "bytes"), (mean, "mean"),
                           (longest, "max")):
            expect_text(found, row.get(key, 0), f"at the end: {key} of {op}")
        expect(abs(float(share) - 100 * row["time"] / told["total"]["time"])
               < 0.01, line)
    # The slowest ones, slowest first.
    begin = lines.index(" slowest") + 1
    slowest = sorted((e["dur"] for e in events if "dur" in e), reverse=True)
    for line, ns in zip(lines[begin:begin + 5], slowest):
        expect_text(words_of(line)[0], ns, line)
    used = [e["path"] for e in events if "path" in e and "errno" not in e]
    expect(f" most used of {len(set(used))} files" in lines, done.stderr)
    line = next(line for line in lines if line.endswith("  /file"))
    count, size, _ = words_of(line)
    expect_equal(count_of(count), used.count("/file"), line)
    expect_text(size, told["read"]["bytes"] + told["write"]["bytes"], line)


def main():
    suite = CountingSuite("numbers", __doc__)
    for case in (live, at_the_end):
        suite.run(case.__name__, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
