#!/usr/bin/env python3
"""A hundred mistakes of people who use the commands for the first time. Each
answer names what is wrong and says what to do next, on one line, and the exit
status is that of its kind: 2 wrong usage, 3 the system refused, 1 the data."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from command_checks import Commands, expect, run_checks  # noqa: E402

# The command line, its exit status, and parts of the answer: what is wrong, and
# what to do about it. T is a trace, D a directory, F one with folders in it, N a
# file that is no trace.
SPELLED = """
frobnicate | 2 | frobnicate | tracefs help lists
dupm T | 2 | dupm | did you mean 'dump'?
help filter | 2 | help filter | did you mean 'filters'?
help rum | 2 | help rum | did you mean 'run'?
dump --format josn T | 2 | 'josn' | did you mean 'jsonl'?
dump --format CSV T | 2 | 'CSV' | did you mean 'csv'?
dump --format parket T | 2 | 'parket' | did you mean 'parquet'?
dump --format perfeto T | 2 | 'perfeto' | did you mean 'perfetto'?
dump --fromat csv T | 2 | --fromat | did you mean '--format'?
dump --by operation T | 2 | "operation" | did you mean 'op'?
dump --by file T | 2 | "file" | did you mean 'path'?
dump --by directory T | 2 | "directory" | did you mean 'dir'?
dump --by program T | 2 | "program" | did you mean 'cname'?
dump --by user T | 2 | "user" | did you mean 'cuid'?
dump --by folder T | 2 | "folder" | did you mean 'dir'?
dump --by error T | 2 | "error" | did you mean 'errno'?
dump --by extension T | 2 | "extension" | did you mean 'ext'?
dump --by duration T | 2 | "duration" | did you mean 'latency'?
dump --by op --values cuont T | 2 | "cuont" | did you mean 'count'?
dump --by op --values tme T | 2 | "tme" | did you mean 'time'?
dump --by op --sort tiem T | 2 | "tiem" | did you mean 'time'?
dump --by op --sort size T | 2 | "size" | there are:
dump --filter op=raed T | 2 | --filter:1:4 | did you mean 'read'?
dump --filter pth=/x T | 2 | 'pth' | did you mean 'path'?
dump --filter cnam=sh T | 2 | 'cnam' | did you mean 'cname'?
dump --filter op=read+uid=0 T | 2 | --filter:1:12 | expected AND, OR
dump --filter (op=read T | 2 | --filter:1:1 | never closed
dump --filter errno=ENOENTT T | 2 | ENOENTT | did you mean 'ENOENT'?
dump --filter op T | 2 | --filter:1: | =
dump --hist size --filter op=raed T | 2 | --filter:1:4 | did you mean 'read'?
report slow T | 2 | 'slow' | did you mean 'slowest'?
report sumary T | 2 | 'sumary' | did you mean 'summary'?
report fil T | 2 | 'fil' | did you mean 'files'?
report error T | 2 | 'error' | did you mean 'errors'?
report probe T | 2 | 'probe' | did you mean 'probes'?
report crit T | 2 | 'crit' | did you mean 'critical-path'?
report --format htlm T | 2 | 'htlm' | did you mean 'html'?
report summary --format htm T | 2 | 'htm' | json
report --panel x T | 2 | --panel | for the page
report summary --sort tiem T | 2 | tiem | there are:
ctl D lsit | 2 | 'lsit' | did you mean 'list'?
ctl D top --by op --sort tiem | 2 | tiem | did you mean 'time'?
ctl D top --by op --sort bytes --values count | 2 | bytes | there are:
ctl list D | 2 | the mount comes first | tracefs-ctl D list
run --visibility fats -- true | 2 | 'fats' | exact, auto, fast
run --transport urnig -- true | 2 | 'urnig' | auto, uring, dev
run --processes of -- true | 2 | 'of' | ptrace, off
run --fliter x -- true | 2 | --fliter | did you mean '--filter'?
run --filter op=raed -- true | 2 | --filter:1:4 | did you mean 'read'?
mount --visibility=most D | 2 | 'most' | exact, auto, fast
mount --sandbox none D | 2 | 'none' | on, strict, off
mount --survive maybe D | 2 | 'maybe' | yes, no
mount --queue-threads fast D | 2 | 'fast' | auto, normal, nice, idle
mount --confg x D | 2 | --confg | did you mean '--config'?
"""
MISSING = """
run | 2 | a command to run | --help
report who | 2 | who needs PATH and a TRACE | tracefs-report who PATH TRACE
report who T | 2 | who needs PATH and a TRACE | tracefs-report who PATH TRACE
dump --raw T | 2 | --raw is for tables | --by
report summary --raw --format json T | 2 | --raw is for | json has exact figures
run --root --src D -- true | 2 | --root | needs no --src
run --force -- true | 2 | --force | -o TRACE
run --env --processes off -- true | 2 | --env | needs --processes
run --config x -o y -- true | 2 | --config | does not go
run --src missing -- true | 3 | missing | No such file
run --src N -- true | 3 | N | Not a directory
run --src / -- true | 2 | --src / | --root
run -o N -- true | 3 | N | replace it with --force
run -- no-such-command | 127 | no-such-command | no such command
run -- D/sub | 127 | D/sub | No such file
run -- ./N | 126 | ./N | Permission denied
mount | 2 | SRC | --help
mount D D D | 2 | SRC | --help
mount D --config missing | 3 | missing | No such file
mount missing --config N | 3 | missing | No such file
mount --check missing | 3 | missing | No such file
mount --check N | 2 | N:1: | '{'
mount --check D | 3 | D | directory
mount --dot D | 2 | --dot | --check
mount --fix D | 2 | --fix | --doctor
mount D --config x --config-dir y | 2 | --config-dir | exclude each other
mount D --config-dir D | 2 | --config-dir | --config-key
mount D --survive yes | 2 | --survive yes | --config
mount D --metrics-names | 2 | --metrics-names | --metrics
dump | 2 | TRACE | --help
dump missing | 3 | missing | No such file
dump N | 1 | N | does not start with
dump D | 2 | D | there is no file
dump F | 2 | F | there are files further down: F/*/*
verify F | 2 | F | there are files further down: F/*/*
dump --columns path T | 2 | --columns | --format text
dump --from yesterday T | 2 | "yesterday" | write 20
dump --limit many T | 2 | many | --limit
dump --top 3 T | 2 | --top | --by
dump --plot first T | 2 | first is a moment | count, bytes
dump --plot latency T | 2 | --plot takes one value | count or bytes
dump --sort time T | 2 | --sort | with --by
dump --by op --format ctf T | 2 | 'ctf' | text, csv or jsonl
dump --format csv --output missing/x T | 3 | missing/x | No such file
dump --format sqlite T | 2 | sqlite | --output
report | 2 | TRACE | --help
report missing | 2 | 'missing' | questions:
report N | 1 | N | does not start with
report who T | 2 | who | TRACE
report diff T | 2 | diff | A B
report diff , T | 2 | A names no trace | ','
report summary T missing | 3 | missing | No such file
verify | 2 | trace | --help
verify missing | 3 | missing | No such file
verify --key missing T | 3 | missing | No such file
deps T | 2 | --trace | --help
deps x --trace missing | 3 | missing | No such file
replay T | 2 | --root DIR | --check
replay --root missing T | 3 | missing | No such file
anon T | 2 | --policy | --help
keygen | 2 | kind of key | --help
keygen frobnicate x | 2 | frobnicate | --help
import N | 2 | --output | --help
recv | 2 | --listen | --help
recv --listen nats://host:4222 --out D | 2 | nats://host:4222 | write tcp:HOST:PORT
recv --listen tlss:host:99 --out D | 2 | tlss | did you mean 'tls'?
recv --listen tcp:host --out D | 2 | 'host' | HOST:PORT
recv --listen tcp://:99999 --out D | 2 | '99999' | 1 to 65535
recv --listen tcp://127.0.0.1:0 --out missing | 3 | missing | make it first
ctl | 2 | a mount | --help
ctl D | 2 | a command | --help
ctl missing list | 3 | missing | No such file
ctl D list | 2 | 'D' | findmnt
top missing | 3 | missing | No such file
"""


class World(Commands):
    def __init__(self, arguments, folder):
        super().__init__(arguments.bin, folder)
        shutil.copy(os.path.join(ROOT, "docs/examples/sample.trace"),
                    os.path.join(folder, "T"))
        os.makedirs(os.path.join(folder, "D"), exist_ok=True)
        day = os.path.join(folder, "F", "host=h", "date=d")
        os.makedirs(day, exist_ok=True)
        shutil.copy(os.path.join(folder, "T"), day)
        with open(os.path.join(folder, "N"), "w", encoding="ascii") as file:
            file.write("this is no trace\n")


def judge(w, line):
    """None, or what is wrong with the answer."""
    command, status, what, then = [part.strip() for part in line.split(" | ")]
    words = command.split()
    done = w.finished("tracefs", *words, stdin=subprocess.DEVNULL,
                      timeout=60, env={"STATE_DIRECTORY":
                                       os.path.join(w.folder, "state")})
    said = (done.stderr + (b"" if done.stderr else done.stdout)).decode()
    where = f"tracefs {command}: ended with {done.returncode}: {said}"
    if done.returncode != int(status):
        return f"{where} (expected {status})"
    # A second line may be a caret under the place.
    first = next((one for one in said.splitlines()
                  if "no log:" not in one), "")
    if what not in said:
        return f"{where} (does not name {what})"
    if then not in said:
        return f"{where} (does not say {then})"
    if not re.match(r"tracefs[a-z-]*: ", first):
        return f"{where} (does not say who speaks)"
    if "\\n" in said or "  " in first:
        return f"{where} (is not one sentence)"
    return None


def check_all(w, rows):
    lines = [line for line in rows.splitlines() if line]
    wrong = [text for text in (judge(w, line) for line in lines) if text]
    expect(not wrong, "\n".join([f"{len(wrong)} of {len(lines)}"] + wrong))


def check_what_is_misspelled(w):
    check_all(w, SPELLED)


def check_what_is_missing_or_too_much(w):
    check_all(w, MISSING)


def check_there_are_a_hundred(_):
    expect(len((SPELLED + MISSING).split("\n")) > 103, "too few")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    arguments = parser.parse_args()
    checks = [value for name, value in globals().items()
              if name.startswith("check_") and name != "check_all"]
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(run_checks(checks, lambda: World(arguments, folder)))


if __name__ == "__main__":
    main()
