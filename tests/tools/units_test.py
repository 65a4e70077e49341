#!/usr/bin/env python3
"""One way to write a number with a unit: 126 µs, 1.04 MB, 12.5 %, in whatever a
command prints for people. --raw has the exact figures, those of JSON Lines."""

import argparse
import json
import os
import re
import sys
import tempfile
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from command_checks import Commands, expect, run_checks  # noqa: E402
from command_checks import expect_equal as same  # noqa: E402
from scripted_trace import Script  # noqa: E402

TRACE = os.path.join(ROOT, "docs/examples/sample.trace")

# For people: what each command prints of one trace.
COMMANDS = [
    "tracefs-dump T",
    "tracefs-dump --stats T",
    "tracefs-dump --header T",
    "tracefs-dump --by op T",
    "tracefs-dump --by op,cname --values count,bytes,read,written,time,share T",
    "tracefs-dump --by path --values mean,p50,p99,max --every 5ms T",
    "tracefs-dump --hist latency T",
    "tracefs-dump --hist size T",
    "tracefs-dump --hist gap T",
    "tracefs-dump --plot bytes --every 1ms T",
    "tracefs-dump --sort latency T",
    "tracefs-dump --browse T",
    "tracefs-dump --format tree T",
    "tracefs-verify T",
    "tracefs-report diff T T",
    "tracefs-report --format md T",
    "tracefs-deps --races --trace T",
]

UNITS = r"(?:ns|us|µs|μs|usec|ms|msec|sec|secs|min|[kKMGTPE]i?B|[kKMG]b|bytes/s)"
# A unit right behind its number, other names of the same unit, and percent
# without a blank.
SECOND_STYLES = [
    re.compile(rf"(?<![\w.%-])[+-]?\d[\d,.]*{UNITS}(?![\w])"),
    re.compile(r"(?<![\w.%-])[+-]?\d[\d,.]*[sB](?![\w./])"),
    re.compile(r"\d (?:us|μs|usec|msec|sec|KB|kb|Mb)(?!\w)"),
    re.compile(r"\d%"),
]
# What somebody wrote himself, and commands that are shown to be run.
QUOTED = re.compile(r"tracefs-\w+ .*$|\bfilter\b.*$|\"[^\"]*\"|%H|/\S*")


def told(w, command):
    words = [TRACE if word == "T" else word for word in command.split()]
    done = w.finished(*words)
    return done.stdout.decode() + done.stderr.decode()


def check_nobody_has_a_second_style(w):
    commands = COMMANDS + [f"tracefs-report {q} T" for q in w.questions()]
    wrong, numbers = [], 0
    for command in commands:
        text = told(w, command)
        expect(text.strip(), f"{command} prints nothing")
        for line in text.splitlines():
            bare = QUOTED.sub("", line)
            numbers += len(re.findall(r"\d (?:ns|µs|ms|s|k?B|MB|%)(?!\w)", bare))
            wrong += [f"{command}: {found[0]!r} in {line!r}"
                      for style in SECOND_STYLES
                      if (found := style.search(bare))]
    same("\n".join(wrong), "")
    expect(numbers > 300, f"only {numbers} numbers with a unit were seen")


def cells(line):
    return re.split(r" {2,}", line.strip())


def check_raw_has_the_figures_of_json(w):
    for table in (["--by", "op"], ["--by", "cname", "--values",
                                   "count,bytes,time,mean,p99,share"]):
        head, *lines = w.run("tracefs-dump", *table, "--raw", TRACE).splitlines()
        rows = [json.loads(line) for line in w.run(
            "tracefs-dump", *table, "--format", "jsonl", TRACE).splitlines()]
        same([dict(zip(cells(head), cells(line))) for line in lines],
             [{key: row[key] if isinstance(row[key], str) else
               f"{row[key]:.9g}" if isinstance(row[key], float) else
               str(row[key]) for key in cells(head)} for row in rows])
    for question in ("slowest", "files", "errors"):
        text = w.run("tracefs-report", question, "--raw", TRACE)
        expect(not re.search(r"\d (?:ns|µs|ms|s|kB|MB|%)(?!\w)",
                             "\n".join(line for line in text.splitlines()
                                       if "  " in line)), text)


def width(text):
    """As Python's own tables of Unicode have it."""
    return sum(0 if unicodedata.category(c) in ("Mn", "Me") else
               2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def check_columns_stand_below_each_other_in_every_script(w):
    names = ["plain", "größe", "файл", "文件", "ファイル", "파일", "e\u0301tude",
             "ملف", "שלום", "ไฟล์", "हिन्दी", "📁"]
    s = Script()
    for i, name in enumerate(names):
        s.op("getattr", 1, "c", "/" + name, dur=10 ** (i % 8), ino=i + 1)
    trace = s.make(w.maker, os.path.join(w.folder, "scripts.trace"))
    head, *rows = w.run("tracefs-dump", "--by", "path", trace).splitlines()
    same(len(rows), len(names))
    # Where the head's second column ends, all its cells end.
    end = width(head[:head.index("count") + len("count")])
    for row in rows:
        found = re.match(r"(\S+ +\d+)", row)
        same(width(found[1]), end, row)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    arguments = parser.parse_args()
    checks = [value for name, value in globals().items()
              if name.startswith("check_")]
    with tempfile.TemporaryDirectory() as folder:
        world = Commands(arguments.bin, folder)
        world.maker = arguments.make_scripted_trace
        sys.exit(run_checks(checks, lambda: world))


if __name__ == "__main__":
    main()
