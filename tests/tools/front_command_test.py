#!/usr/bin/env python3
"""The command `tracefs`: each word of it does what the command of that name does,
and what is neither a command nor a trace is refused."""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from command_checks import Commands, expect, run_checks  # noqa: E402
from command_checks import expect_equal as same  # noqa: E402

SAMPLE = os.path.join(ROOT, "docs/examples/sample.trace")
WORDS = ("run mount ctl import report dump deps replay verify anon keygen "
         "recv").split()


# Of a terminal that is not small.
MOST_LINES = 50


class World(Commands):
    def same_answer(self, front, command):
        """`tracefs FRONT` is COMMAND."""
        one = self.finished("tracefs", *front.split())
        other = self.finished(*command.split())
        same((one.returncode, one.stdout, one.stderr),
             (other.returncode, other.stdout, other.stderr), front)
        expect(one.stdout or one.stderr, front, "says nothing")


def check_every_command_is_behind_its_word(w):
    there = {name.removeprefix("tracefs-") for name in os.listdir(w.bin)
             if name.startswith("tracefs-")}
    same(sorted(there), sorted(WORDS), "commands that were built")
    told = w.run("tracefs", "--help")
    for word in WORDS:
        expect(f"\n  {word} " in told, word, "is not in the help")
        w.same_answer(f"help {word}", f"tracefs-{word} --help")
        w.same_answer(f"{word} --version", f"tracefs-{word} --version")


def check_help_fits_on_a_screen_and_counts_what_it_leaves_out(w):
    for word in WORDS:
        short, whole = (w.run(f"tracefs-{word}", how)
                        for how in ("--help", "--help=all"))
        expect(len(short.splitlines()) <= MOST_LINES, word, short)
        rows = json.loads(w.run(f"tracefs-{word}", "--help=json"))["options"]
        same([row for row in rows if not named(row, whole)], [],
             f"{word} --help=all")
        shown = [row for row in rows if named(row, short)]
        left = re.search(r"--help=all has (\d+) more option", short)
        same(len(shown) + int(left[1] if left else 0), len(rows), word)
        expect("--help=all" in short or short == whole, word)


def named(row, text):
    """Whether the option begins a line."""
    name = "--" + row["name"] if row["name"] else "-" + row["letter"]
    return re.search(rf"^  (-\w \[ )?{re.escape(name)}( |$)", text,
                     re.M) is not None


def check_a_trace_is_summed_up(w):
    w.same_answer(SAMPLE, f"tracefs-report summary {SAMPLE}")
    w.same_answer(f"dump --by op {SAMPLE}", f"tracefs-dump --by op {SAMPLE}")
    shutil.copy(SAMPLE, os.path.join(w.folder, "run"))
    w.same_answer("./run", "tracefs-report summary ./run")


def check_exit_statuses_are_those_of_the_command(w):
    same(w.finished("tracefs", "frobnicate").returncode, 2)
    same(w.finished("tracefs", "dump", "--frobnicate").returncode, 2)
    same(w.finished("tracefs", "dump", "no.trace").returncode, 3)


def check_a_command_that_is_not_installed_is_named(w):
    alone = os.path.join(w.folder, "tracefs")
    shutil.copy(os.path.join(w.bin, "tracefs-dump"), alone)
    for words, name in ((["run", "true"], "tracefs-run"),
                        (["help", "filters"], "man")):
        ended = w.finished(alone, *words, env={"PATH": w.folder})
        same(ended.returncode, 3, name)
        said = ended.stderr.decode()
        expect(f"{name}: " in said and "; next: install" in said, said)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    arguments = parser.parse_args()
    checks = [value for name, value in globals().items()
              if name.startswith("check_")]
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments.bin, folder)
        sys.exit(run_checks(checks, lambda: world))


if __name__ == "__main__":
    main()
