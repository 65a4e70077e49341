#!/usr/bin/env python3
"""What it costs to tell the system call of each operation (STR_SYSCALL).

  bench/mount/syscall_cost.py --bin build/release/bin [--transactions 20000]
                              [--rounds 5]

Workload: Postmark in a mount over --scratch, recorded with STR_ALL, and with
STR_ALL | STR_SYSCALL, in random order in every round. Unit: seconds of wall
time, the median, and the ratio of medians (at most 1.10). Needs root, postmark
and tracepoints; wants a machine with nothing else to do.
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

FLAGS = {"without": "STR_ALL", "with": "STR_ALL | STR_SYSCALL"}


def postmark(folder, options):
    script = (f"set location {folder}\nset number {options.files}\n"
              f"set transactions {options.transactions}\nset seed 1\n"
              "run\nquit\n")
    begin = time.monotonic()
    subprocess.run(["postmark"], input=script, text=True, check=True,
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def measure(flags, scratch, options):
    source = os.path.join(scratch, "source")
    point = os.path.join(scratch, "mnt")
    trace = os.path.join(scratch, "trace")
    config = os.path.join(scratch, "config")
    for folder in (source, point):
        os.makedirs(folder, exist_ok=True)
    if os.path.exists(trace):
        os.remove(trace)
    with open(config, "w", encoding="utf-8") as out:
        out.write("{ { NOT op IN { getlk setlk flock } } "
                  f'{{ stream = {{ {flags} }} }} {{ file = "{trace}" }} }}\n')
    subprocess.run([os.path.join(options.bin, "tracefs-mount"), source, point,
                    "--config", config], check=True, capture_output=True)
    try:
        return postmark(point, options)
    finally:
        subprocess.run(["umount", point], check=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--transactions", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", default="/dev/shm",
                        help="a directory of a tmpfs (default: /dev/shm)")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    if shutil.which("postmark") is None:
        sys.exit("postmark is not installed (scripts/setup bench)")
    scratch = tempfile.mkdtemp(prefix="tracefs-syscall-", dir=options.scratch)
    took = {name: [] for name in FLAGS}
    try:
        for _ in range(options.rounds):
            for name in random.sample(list(FLAGS), len(FLAGS)):
                took[name].append(measure(FLAGS[name], scratch, options))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    middle = {name: statistics.median(times) for name, times in took.items()}
    for name, times in took.items():
        print(f"{name:8} {middle[name]:7.2f} s  {min(times):.2f} to "
              f"{max(times):.2f}")
    print(f"with / without  {middle['with'] / middle['without']:.3f}  "
          "(at most 1.10)")


if __name__ == "__main__":
    main()
