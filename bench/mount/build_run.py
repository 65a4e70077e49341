#!/usr/bin/env python3
"""What tracefs-run costs a build in C, beside a mount that follows no processes
and beside strace.

  bench/mount/build_run.py --bin build/release/bin [--files 120] [--rounds 5]

Workload: make, two jobs, of --files sources of some hundred lines each and a
link, from nothing, in --scratch. Configurations, in random order in every
round:

  plain     no tracer
  mount     tracefs-run --processes off: the same mount and trace, no processes
  run       tracefs-run: processes, too
  strace    strace -f with the same information: processes, and every call that
            names a file or uses a descriptor
  strace-process  strace -f -e trace=process alone

Unit: seconds of wall time, the median, and ratios of medians. Wants a machine
with nothing else to do.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LINES = 150


def prepare(folder, files):
    os.makedirs(folder)
    names = [f"f{i}" for i in range(files)]
    with open(os.path.join(folder, "all.h"), "w", encoding="ascii") as out:
        out.write("#include <stdio.h>\n#include <stdlib.h>\n"
                  "#include <string.h>\n#include <unistd.h>\n")
    for name in names:
        with open(os.path.join(folder, name + ".c"), "w",
                  encoding="ascii") as out:
            out.write('#include "all.h"\n')
            for i in range(LINES):
                out.write(f"int {name}_{i}(int x) {{ return x * {i} + "
                          f"(int)strlen(\"{name}\"); }}\n")
    with open(os.path.join(folder, "main.c"), "w", encoding="ascii") as out:
        out.write("int main(void) { return 0; }\n")
    objects = " ".join(f"{n}.o" for n in ["main"] + names)
    with open(os.path.join(folder, "Makefile"), "w", encoding="ascii") as out:
        out.write(f"e: {objects}\n\tcc -o $@ $^\n"
                  "%.o: %.c all.h\n\tcc -O1 -c -o $@ $<\n")


def commands(options, scratch):
    run = os.path.join(options.bin, "tracefs-run")
    make = ["make", "-s", "-j2"]
    trace = os.path.join(scratch, "trace")
    own = [run, "-q", "-o", trace]
    strace = ["strace", "-f", "-o", trace]
    found = {
        "plain": make,
        "mount": [*own, "--processes", "off", "--", *make],
        "run": [*own, "--", *make],
    }
    if shutil.which("strace"):
        found["strace"] = [*strace, "-s", "100000", "-e",
                           "trace=%process,%file,%desc", *make]
        found["strace-process"] = [*strace, "-s", "100000", "-e",
                                   "trace=%process", *make]
    return found, trace


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--files", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", default=None)
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    scratch = tempfile.mkdtemp(prefix="tracefs-build-", dir=options.scratch)
    took = {}
    try:
        found, trace = commands(options, scratch)
        for round_number in range(options.rounds):
            order = list(found)
            random.shuffle(order)
            for name in order:
                folder = os.path.join(scratch, "source")
                shutil.rmtree(folder, ignore_errors=True)
                if os.path.exists(trace):
                    os.remove(trace)
                prepare(folder, options.files)
                begin = time.monotonic()
                subprocess.run(found[name], cwd=folder, check=True)
                took.setdefault(name, []).append(time.monotonic() - begin)
                print(f"round {round_number + 1} {name:15} "
                      f"{took[name][-1]:7.2f} s", file=sys.stderr)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    middle = {name: statistics.median(times) for name, times in took.items()}
    print(f"{options.files} files, {options.rounds} rounds")
    for name in found:
        print(f"{name:15} {middle[name]:7.2f} s  x {middle[name] / middle['plain']:.2f}")
    print(f"run / mount   {middle['run'] / middle['mount']:.3f}  (at most 1.10)")
    if "strace" in middle:
        print(f"run / strace  {middle['run'] / middle['strace']:.3f}  (at most 0.50)")


if __name__ == "__main__":
    main()
