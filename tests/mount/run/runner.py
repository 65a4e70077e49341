"""What the suites of tracefs-run share."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from tracefs_harness import PATIENCE_S, expect_equal  # noqa: E402


class Trace:
    """What a trace says, in its order: operations and process records."""

    def __init__(self, suite, path):
        done = subprocess.run(
            [os.path.join(suite.bin, "tracefs-dump"), "--format", "jsonl",
             path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=PATIENCE_S)
        self.errors = done.stderr.decode()
        expect_equal(done.returncode, 0, "tracefs-dump: " + self.errors)
        self.lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.operations = [e for e in self.lines if "op" in e]
        self.processes = [e for e in self.lines if "process" in e]

    def of(self, kind):
        return [e for e in self.processes if e["process"] == kind]

    def paths(self, *ops):
        return {e.get("path") for e in self.operations if e["op"] in ops}


def run(suite, *arguments, cwd, **options):
    """tracefs-run with these arguments, to its end."""
    return subprocess.run(
        [os.path.join(suite.bin, "tracefs-run"), *arguments], cwd=cwd,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=PATIENCE_S, **options)


def key(event):
    return (event["pid"], event.get("start"))


def tree(processes):
    """By process: parent, the arguments of each program, and the end, from
    records of tracefs-run."""
    found = {}

    def of(who):
        return found.setdefault(who, {"parent": None, "argv": [], "end": None})
    for e in processes:
        # The flags are not always known: whose process a thread is in, is.
        if e["process"] == "fork" and e["child_pid"] != e["pid"]:
            of((e["child_pid"], e["child_start"]))["parent"] = e["pid"]
        elif e["process"] == "exec":
            of(key(e))["argv"].append(tuple(e.get("argv", ())))
        elif e["process"] == "exit" and e["tid"] == e["pid"]:
            of(key(e))["end"] = e.get("signal", e.get("exit_code"))
    return found
