#!/usr/bin/env python3
"""Traces of several machines, and of several mounts of one, answered together:
numbers of processes are a machine's own, numbers and names of files a mount's. What
questions say of both is what they say of each, added up."""

import argparse
import collections
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "support"))
# pylint: disable=wrong-import-position
from command_checks import Commands, expect, expect_equal, run_checks
from scripted_trace import Script

# Cells of rows that are no sums: quantiles, and shares of a whole.
NOT_ADDED = {"p50", "p90", "p99", "max", "share", "bytes_share", "run_p50",
             "run_max", "time", "first", "last", "deepest", "median", "mean",
             "gap", "exit"}
NAMES = {"cpid", "cppid", "cuid", "log2(result)"}
PATHS = [f"/d{i % 2}/f{i}" for i in range(6)]


def work(seed, **origin):
    """Some processes that use the same files. Pids, inodes, handles and names are
    the same for every seed; what is done with them is not."""
    dice = random.Random(seed)
    script = Script()
    for key, value in origin.items():
        if key == "host":
            script.other("host", name=value)
        else:
            script.other("property", key=key.replace("_", "."), value=value)
    files = {}  # inode by path
    made = 0
    script.exec(100, "/bin/make")
    pids = list(range(101, 101 + dice.randrange(3, 6)))
    for pid in pids:
        script.fork(100, pid)
        script.exec(pid, f"/bin/tool{pid} {seed}")
    for _ in range(150):
        pid = dice.choice(pids)
        comm = f"tool{pid}"
        path = dice.choice(PATHS)
        wait = dice.randrange(1, 5000)
        if path not in files:
            made += 1
            files[path] = 500 + made
            script.op("create", pid, comm, path, gap=wait, ino=files[path],
                      fh=made, mode=0o100644)
            script.op("write", pid, comm, path, gap=wait, ino=files[path],
                      fh=made, off=0, len=4096 * dice.randrange(1, 9),
                      res=4096)
            script.op("release", pid, comm, path, gap=wait, ino=files[path],
                      fh=made)
            continue
        number = files[path]
        what = dice.choice("rrrwwumn")
        if what in "rw":
            script.op("read" if what == "r" else "write", pid, comm, path,
                      gap=wait, ino=number, fh=1000 + number,
                      off=4096 * dice.randrange(4), len=4096, res=4096)
        elif what == "u":
            script.op("unlink", pid, comm, path, gap=wait, ino=number, nlink=1)
            del files[path]
        elif what == "m":
            script.op("setattr", pid, comm, path, gap=wait, ino=number, valid=1,
                      new_mode=0o100600 + dice.randrange(64), mode=0o100644,
                      fuid=0, fgid=0)
        else:
            to = dice.choice([p for p in PATHS if p != path])
            script.op("rename", pid, comm, path, path2=to, gap=wait, ino=number,
                      mode=0o100644)
            files[to] = files.pop(path)
    for pid in [*pids, 100]:
        script.exit(pid, dice.randrange(2))
    return script


class World(Commands):
    def __init__(self, commands, folder, maker):
        super().__init__(commands, folder)
        self.maker = maker

    def make(self, name, **how):
        work(**how).make(self.maker, os.path.join(self.folder, name))
        return name

    def tables(self, question, *traces):
        text = self.run("tracefs-report", *question, *traces, "--format",
                        "json", "--top", "all")
        return json.loads(text)["tables"]

    def added(self, question, *traces):
        """Of each table: the sums of rows that are called alike."""
        found = []
        for table in self.tables(question, *traces):
            sums = collections.Counter()
            for row in table["rows"]:
                if "bar" in row or "from_ns" in row:  # its ranges follow from all there is
                    sums["count"] += row["count"]
                    continue
                name = tuple((k, v) for k, v in row.items()
                             if k in NAMES or isinstance(v, str) and
                             k not in ("readers", "writers", "ops", "host"))
                added = {k: v for k, v in row.items()
                         if isinstance(v, int) and k not in NAMES and
                         k.removesuffix("_ns") not in NOT_ADDED}
                for k, v in (added or {"rows": 1}).items():
                    sums[(*name, k)] += v
            found.append(sums)
        return found


# Questions whose answer of several is the sum of those of each.
SUMS = [["tree"], ["access"], ["blocks"], ["lifetimes"], ["sharing"],
        ["double-writes"], ["races"], ["churn"], ["uses"], ["permissions"],
        ["who", "/d0/f0"], ["files"], ["errors"], ["small-io"]]


def check_sums(world, a, b, questions):
    wrong = []
    for question in questions:
        both = world.added(question, a, b)
        alone = [x + y for x, y in zip(world.added(question, a),
                                       world.added(question, b))]
        # A working set is of seconds, and an hour's at most.
        tables = range(2) if question == ["blocks"] else range(len(both))
        for i in tables:
            # A Counter drops sums of 0.
            if +both[i] != +alone[i]:
                wrong.append((*question, i, "too much", dict(both[i] - alone[i]),
                              "too little", dict(alone[i] - both[i])))
    expect(not wrong, "\n".join(map(str, wrong)))


def two_machines_answer_as_each_of_them(world):
    for seed in range(4):
        a = world.make("a.trace", seed=2 * seed, host="one")
        b = world.make("b.trace", seed=2 * seed + 1, host="another")
        check_sums(world, a, b, SUMS)


def two_mounts_of_a_machine_have_files_of_their_own(world):
    a = world.make("a.trace", seed=20, host="one", mount_point="/a",
                   backing_path="/x/a")
    b = world.make("b.trace", seed=21, host="one", mount_point="/b",
                   backing_path="/x/b")
    # Processes of a machine are the same on both.
    check_sums(world, a, b, [q for q in SUMS if q not in (
        ["tree"], ["races"], ["files"])])


def who_tells_processes_of_two_machines_apart(world):
    a = world.make("a.trace", seed=24, host="one")
    b = world.make("b.trace", seed=25, host="another")
    rows = world.tables(["who", "/d0/f0"], a, b)[0]["rows"]
    expect_equal({r["host"] for r in rows}, {"one", "another"}, rows)
    for name in (a, b):
        alone = world.tables(["who", "/d0/f0"], name)[0]["rows"]
        expect("host" not in alone[0], alone)
        host = "one" if name == a else "another"
        expect_equal([{**r, "host": host} for r in alone],
                     [r for r in rows if r["host"] == host], name)


def a_tree_of_processes_does_not_cross_machines(world):
    a = world.make("a.trace", seed=30, host="one")
    b = world.make("b.trace", seed=31, host="another")

    def shape(*traces):
        return sorted(line.strip("│├└─ ").split(" ")[0]
                      for line in world.run("tracefs-dump", "--format", "tree",
                                            "--set", "bars=no", *traces)
                      .splitlines() if line.strip() and
                      "elapsed" not in line)
    expect_equal(shape(a, b), sorted(shape(a) + shape(b)))


def what_a_file_was_made_from_is_asked_of_one_machine(world):
    a = world.make("a.trace", seed=40, host="one")
    b = world.make("b.trace", seed=41, host="another")
    done = world.finished("tracefs-deps", "/d0/f0", "--trace", a, "--trace", b)
    expect_equal((done.returncode, done.stdout), (2, b""), done.stderr)
    expect(b"a.trace and b.trace are of two hosts, one and another" in
           done.stderr, done.stderr)
    b = world.make("b.trace", seed=41, host="one")
    world.run("tracefs-deps", "/d0/f0", "--trace", a, "--trace", b)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return run_checks(
            [two_machines_answer_as_each_of_them,
             two_mounts_of_a_machine_have_files_of_their_own,
             who_tells_processes_of_two_machines_apart,
             a_tree_of_processes_does_not_cross_machines,
             what_a_file_was_made_from_is_asked_of_one_machine],
            lambda: World(arguments.bin, folder, arguments.make_scripted_trace))


if __name__ == "__main__":
    sys.exit(main())
