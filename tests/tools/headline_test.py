#!/usr/bin/env python3
"""What the summary, the page and its other forms begin with. Every figure is
counted again from the JSON Lines of the trace, without our tables."""

import argparse
import collections
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

from command_checks import Commands, expect, run_checks, time_at_depth  # noqa: E402
from command_checks import expect_equal as same  # noqa: E402
from scripted_trace import Script  # noqa: E402

SAMPLE = os.path.join(ROOT, "docs/examples/sample.trace")
COUNTED = os.path.join(ROOT, "tests/golden/v1/aggregates.trace")
MS = 1_000_000
SIZES = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


class World(Commands):
    def __init__(self, arguments, folder):
        super().__init__(arguments.bin, folder)
        self.maker = arguments.make_scripted_trace

    def made(self, script, name="t.trace"):
        return script.make(self.maker, os.path.join(self.folder, name))

    def lines(self, trace):
        return [json.loads(line) for line in self.run(
            "tracefs-dump", "--format", "jsonl", trace).splitlines()]

    def verdict(self, trace, *words, status=0):
        told = self.run("tracefs-report", "summary", "--format", "json",
                        *words, trace, status=status)
        table = json.loads(told)["tables"][0]
        same(table["title"], "verdict")
        return table["summary"], table["rows"]


def ns_of(text):
    """3 digits, cut: what is told was reached."""
    number, unit = re.fullmatch(r"([\d.]+) (ns|µs|ms|s)", text).groups()
    return float(number) * SIZES[unit]


def same_duration(text, ns):
    expect(0 <= ns - ns_of(text) <= 0.01 * ns + 1, text, "is not", ns)


# What a finding is about: as `tracefs-report --print` and the filter in its
# command say.
KINDS = {
    "fsync": lambda e: e["op"] in ("fsync", "fsyncdir"),
    "locks": lambda e: e["op"] in ("setlk", "flock"),
    "lookups": lambda e: e["op"] == "lookup" and e.get("errno") == "ENOENT",
    "other operations that failed": lambda e: "errno" in e and not (
        e["op"] == "lookup" and e["errno"] == "ENOENT"),
    "reads and writes below": lambda e: e["op"] in ("read", "write") and
        "errno" not in e and e["result"] < 4096,
    "other operations that took": lambda e: e["dur"] >= 100 * MS and
        e["op"] not in ("fsync", "fsyncdir", "setlk", "flock"),
}


def findings_of(operations):
    whole = sum(e["dur"] for e in operations)
    found = []
    for word, is_one in KINDS.items():
        ours = [e["dur"] for e in operations if is_one(e)]
        if sum(ours) and sum(ours) >= whole // 100:
            found.append((sum(ours), len(ours), word))
    return sorted(found, key=lambda row: -row[0])[:5]


def check_figures(w, trace):
    lines = w.lines(trace)
    operations = [e for e in lines if "op" in e]
    begins = [e["ts"] for e in lines]
    ends = [e["ts"] + e.get("dur", 0) for e in lines]
    text, rows = w.verdict(trace)
    elapsed, share, count = re.match(
        r"(\S+ \S+) (?:elapsed|from the first operation to the end of the last), "
        r"(\S+) % of it in the ([\d,]+) file operations? recorded here\.",
        text).groups()
    same_duration(elapsed, max(ends) - min(begins))
    busy = sum(time_at_depth([(e["ts"], e["dur"]) for e in operations]).values())
    exact = 100 * busy / (max(ends) - min(begins))
    expect(abs(exact - float(share)) <= max(0.1, exact / 100) or
           exact > 10 and abs(exact - float(share)) <= 1, share, exact)
    same(int(count.replace(",", "")), len(operations))
    wanted = findings_of(operations)
    same([(row["time_ns"], row["count"]) for row in rows],
         [(ns, n) for ns, n, _ in wanted])
    for row, (_, _, word) in zip(rows, wanted):
        expect(row["what"].startswith(word), row, word)
    return text, rows


def check_of_a_build(w):
    text, rows = check_figures(w, SAMPLE)
    expect(len(rows) >= 3, rows)
    # Where the programs lie that ran, against the records.
    lines = w.lines(SAMPLE)
    ran = [e["exe"] for e in lines if e.get("process") == "exec"]
    outside = [exe for exe in ran if not exe.startswith("/srv/sample/src/")]
    expect(f" {len(outside)} of {len(ran)} programs that ran lie outside "
           "/srv/sample/src (in " in text, text)
    folders = collections.Counter(map(os.path.dirname, outside))
    expect(f"(in {folders.most_common(1)[0][0]}, " in text, text)
    expect("/root" not in text, "nothing is known of it")


def pasted(w, command):
    """What a shell makes of it."""
    done = subprocess.run(
        ["sh", "-c", command], cwd=w.folder, capture_output=True, check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8",
             "PATH": f"{w.bin}:{os.environ['PATH']}"})
    same(done.returncode, 0, f"{command}: {done.stderr}")
    expect(done.stdout, command, "says nothing")
    return done.stdout.decode()


def check_commands_of_findings_answer(w):
    _, rows = w.verdict(SAMPLE)
    shutil.copy(SAMPLE, os.path.join(w.folder, "it's -one.trace"))
    _, odd = w.verdict("it's -one.trace")
    for row in rows + odd:
        pasted(w, row["more"])


def check_commands_of_findings_are_about_the_same(w):
    """What was asked about is asked about again: by filter, time and key, and of
    all parts of a trace."""
    _, rows = w.verdict(SAMPLE, "--filter", "cname = cc1 OR cname = gcc # all\n")
    (failed,) = [row for row in rows if "probes" in row["more"]]
    table = json.loads(pasted(w, failed["more"] + " --format json"))["tables"][0]
    same(sum(row["count"] for row in table["rows"]), failed["count"])
    s = Script()
    more = {"ino": 1, "fh": 1, "res": 0}
    for name in ("sh", "a b"):
        s.op("setlk", 1, name, "/f", dur=7 * MS, **more)
        s.wait(3_000_000_000)
    trace = w.made(s, "locks.trace")
    _, (row,) = w.verdict(trace, "--filter", "cname = 'a b' OR\n path = /no"
                          .replace("'", '"'), "--from", "+1s", "--to", "100%")
    expect("a b" in pasted(w, row["more"]), row["more"])
    table = pasted(w, row["more"] + " --format csv").splitlines()
    same((len(table), table[1].split(",")[:3]), (2, ["/f", "a b", "1"]))
    w.run("tracefs-keygen", "secret", "a key")
    _, (row,) = w.verdict(trace, "--key", "a key", "--utc")
    expect("'--key=a key'" in row["more"] and "--utc" in row["more"], row)
    pasted(w, row["more"])
    page = json.loads(w.run("tracefs-report", "--format", "json", "--key",
                            "a key", "--from=+1s", trace))["verdict"]
    expect("--from=+1s" in page["findings"][0]["command"] and
           "key" not in page["findings"][0]["command"], page)
    os.mkdir(os.path.join(w.folder, "two of them"))
    for name in ("a", "b"):
        shutil.copy(trace, os.path.join(w.folder, "two of them", name))
    _, (row,) = w.verdict("two of them")
    expect(row["more"].endswith(" 'two of them'"), row)
    pasted(w, row["more"])
    with open(trace, "rb") as file:
        done = w.finished("tracefs-report", "summary", "-", "--format", "json",
                          stdin=file)
    (row,) = json.loads(done.stdout)["tables"][0]["rows"]
    expect(row["more"].endswith(" -"), row)
    pasted(w, f"{row['more']} < locks.trace")


def check_all_forms_say_the_same(w):
    text, rows = w.verdict(SAMPLE)
    told = w.run("tracefs", SAMPLE).splitlines()
    same(told[:2], ["verdict", text])
    page = json.loads(w.run("tracefs-report", "--format", "json", SAMPLE))
    same(page["verdict"]["sentences"], text)
    same([(f["time_ns"], f["count"], f["what"])
          for f in page["verdict"]["findings"]],
         [(row["time_ns"], row["count"], row["what"]) for row in rows])
    expect(all(f["command"].endswith(" sample.trace")
               for f in page["verdict"]["findings"]), page["verdict"])
    html = w.run("tracefs-report", "--format", "html", SAMPLE)
    expect(f'<p class="verdict">{text}</p>' in html, "the page")
    plain = w.run("tracefs-report", "--format", "md", SAMPLE).replace("\\", "")
    same(plain.splitlines()[2], text)


def check_overlapping_operations_count_once(w):
    s = Script()
    for pid in range(1, 9):  # eight at the same time, for 10 ms
        s.op("read", pid, "r", "/f", dur=10 * MS, gap=-10 * MS, ino=1, off=0,
             len=8192, res=8192)
    s.wait(40 * MS)
    s.op("getattr", 1, "r", "/f", dur=10 * MS, gap=0, ino=1)
    text, rows = check_figures(w, w.made(s))
    expect(text.startswith("50.0 ms from the first operation") and
           " 40 % of it in the 9 file operations" in text, text)
    same(rows, [])


def check_no_more_than_five_ranked_by_time(w):
    s = Script()
    more = {"ino": 1, "fh": 1}
    s.op("fsync", 1, "c", "/f", dur=5 * MS, res=0, **more)
    s.op("setlk", 1, "c", "/f", dur=7 * MS, res=0, **more)
    s.op("lookup", 1, "c", "/g", dur=6 * MS, err=2)
    s.op("unlink", 1, "c", "/g", dur=3 * MS, err=13)
    s.op("read", 1, "c", "/f", dur=4 * MS, off=0, len=9, res=9, **more)
    s.op("open", 1, "c", "/f", dur=100 * MS, res=0, **more)
    _, rows = check_figures(w, w.made(s))
    same(len(rows), 5)
    same([row["time_ns"] for row in rows],
         [n * MS for n in (100, 7, 6, 5, 4)])


def check_what_is_not_known_is_not_said(w):
    s = Script()
    s.op("getattr", 1, "c", "/f", dur=MS, ino=1)
    text, rows = w.verdict(w.made(s))
    same(rows, [])
    for word in ("outside", "program", "elapsed", "lost"):
        expect(word not in text, word, text)
    s = Script()
    text, rows = w.verdict(w.made(s, "none.trace"))
    same((text, rows), ("No file operation was recorded here.", []))
    text, _ = w.verdict(COUNTED)
    expect("2 file operations recorded here. Others were counted, not recorded "
           "one by one." in text and " less than 0.1 % of it " in text, text)
    s = Script()
    s.other("count", t=s.now, to=s.now + MS, op="read", n=4, errors=0,
            bytes=1)
    text, rows = w.verdict(w.made(s, "counted.trace"))
    same((text, rows),
         ("Operations were counted, not recorded one by one.", []))


def check_losses_and_cuts_are_part_of_it(w):
    with open(SAMPLE, "rb") as file:
        whole = file.read()
    with open(os.path.join(w.folder, "cut.trace"), "wb") as file:
        file.write(whole[:len(whole) * 2 // 3])
    told = w.finished("tracefs-report", "summary", "--format", "json",
                      "cut.trace").stdout
    text = json.loads(told)["tables"][0]["summary"]
    expect(text.endswith(" What came after the end of the trace is not known."),
           text)
    s = Script()
    s.op("getattr", 1, "c", "/f", dur=MS, ino=1)
    s.other("loss", t=s.now, to=s.now + MS, count=12345, reason="queue_full")
    trace = w.made(s, "lost.trace")
    told = w.finished("tracefs-report", "summary", "--format", "json", trace)
    expect(json.loads(told.stdout)["tables"][0]["summary"].endswith(
        " 12,345 operations were lost."), told.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    arguments = parser.parse_args()
    checks = [value for name, value in globals().items()
              if name.startswith("check_") and name != "check_figures"]
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments, folder)
        sys.exit(run_checks(checks, lambda: world))


if __name__ == "__main__":
    main()
