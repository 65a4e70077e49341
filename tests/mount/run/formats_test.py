#!/usr/bin/env python3
"""What tracefs-run recorded, for BuildXL and for CAS: an operation of each kind
comes out as its row of their formats' tables, in order, with its error. And
anonymised: nothing of commands, programs, directories and environments is left,
but the tree of processes is."""

import base64
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from runner import Trace, run, tree  # noqa: E402
import buildxl_reader  # noqa: E402
import nfsdb_reader  # noqa: E402
from tracefs_harness import Suite, expect, expect_equal  # noqa: E402

# One operation of each kind, with nothing else in between. Probes are not
# counted: the kernel asks for names whenever it likes.
WORK = r"""
import errno, os, sys
def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, error
        return
    assert False, arguments
fails(errno.ENOENT, os.stat, "nothing")
os.stat("old")
os.access("old", os.W_OK)
os.statvfs("old")
fails(errno.ENODATA, os.getxattr, "old", "user.none")
os.listdir("d")
fd = os.open("old", os.O_RDONLY); os.read(fd, 5); os.close(fd)
fd = os.open("old", os.O_WRONLY | os.O_TRUNC); os.write(fd, b"more"); os.close(fd)
fails(errno.EEXIST, os.open, "old", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
fd = os.open("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY); os.close(fd)
os.mkfifo("fifo")
os.symlink("old", "link")
os.readlink("link")
os.chmod("old", 0o600)
os.setxattr("old", "user.k", b"v")
os.removexattr("old", "user.k")
os.mkdir("made")
fails(errno.EEXIST, os.mkdir, "made")
os.rmdir("made")
os.link("old", "hard")
os.rename("old", "moved")
os.rename("d", "e")
fails(errno.ENOENT, os.rename, "nothing", "else")
os.unlink("new")
if os.fork() == 0:
    os.execv("/bin/sh", ["sh", "-c", "exit 9"])
os.wait()
reads, writes = os.pipe()
until_exec, ends = os.pipe()
if os.fork() == 0:
    os.dup2(reads, 0); os.close(writes)
    os.execv("/bin/sh", ["sh", "-c", "cat > piped"])
# CAS looks at the siblings' programs when one begins: the shell's is there.
os.close(ends); os.read(until_exec, 1)
if os.fork() == 0:
    os.dup2(writes, 1); os.execv("/bin/echo", ["echo", "piped"])
os.close(writes); os.wait(); os.wait()
os._exit(7)
"""
READ, WRITE, ENUMERATE = 1, 2, 8
# (operation, access, error, path) by the table of the formats.
ROWS = (
    [(49, ENUMERATE, 0, "d"), (50, READ, 0, "d")] +
    [(45, READ, 0, "old")] * 2 + [(50, READ, 0, "old")] +
    [(46, WRITE, 0, "old")] * 2 + [(50, READ, 0, "old")] +
    [(1, WRITE, 0, "new"), (50, READ, 0, "new")] +
    [(1, WRITE, 0, "fifo"), (1, WRITE, 0, "link"), (44, READ, 0, "link")] +
    [(46, WRITE, 0, "old")] * 3 +
    [(8, WRITE, 0, "made"), (25, WRITE, 0, "made")] +
    [(47, READ, 0, "old"), (48, WRITE, 0, "hard")] +
    [(9, WRITE, 0, "old"), (1, WRITE, 0, "moved")] +
    [(25, WRITE, 0, "d"), (8, WRITE, 0, "e")] + [(9, WRITE, 0, "new")])
PROBE = 51
PROCESS_ROWS = (5, 41, 42)


class Recorded:
    """One run of it, for all cases."""

    def __init__(self, suite):
        self.suite = suite
        self.folder = suite.folder("work")
        os.mkdir(os.path.join(self.folder, "d"))
        with open(os.path.join(self.folder, "old"), "w",
                  encoding="ascii") as out:
            out.write("content")
        self.trace = os.path.join(suite.folder("out"), "t.trace")
        self.words = [sys.executable, "-I", "-S", "-c", WORK]
        got = run(suite, "-q", "--visibility", "exact", "-o", self.trace, "--",
                  *self.words, cwd=self.folder)
        expect_equal((got.returncode, got.stderr), (7, ""), "the work")
        self.read = Trace(suite, self.trace)
        self.pid = next(e["pid"] for e in self.read.of("exec")
                        if e["argv"] == self.words)

    def export(self, name, *more):
        done = self.suite.tool("tracefs-dump", "--format", name, *more,
                               self.trace)
        expect_equal(done.returncode, 0, done.stderr)
        return done.stdout.encode()

    def inside(self, path):
        return os.path.relpath(path, self.folder)

    def the_rows_of_buildxl(self):
        made = buildxl_reader.File(self.export("buildxl"))
        mine = [r for r in made.rows if r.pid == self.pid]
        rows = []
        for r in mine:
            row = (r.operation, r.access, r.error, self.inside(r.path))
            failed = r.error != 0
            if r.operation in (PROBE, *PROCESS_ROWS) or failed:
                continue
            # A directory is read until nothing more comes.
            if r.operation == 49 and rows and rows[-1] == row:
                continue
            rows.append(row)
        # A file is closed by the kernel when it likes, but before the next open.
        closes = [r for r in rows if r[0] == 50]
        others = [r for r in rows if r[0] != 50]
        expect_equal(others, [r for r in ROWS if r[0] != 50], "rows")
        expect_equal(closes, [r for r in ROWS if r[0] == 50], "closes")
        probes = {(r.error, self.inside(r.path)) for r in mine
                  if r.operation == PROBE}
        # 61: ENODATA, of the attribute that is none.
        expect({(0, "old"), (2, "nothing"), (61, "old")} <= probes,
               f"probes: {probes}")
        expect("complete (visibility exact), lost 0" in
               made.processes[0].line, made.processes[0].line)
        process = made.processes[self.pid]
        expect_equal((process.code, process.exe),
                     (7, os.path.realpath(sys.executable)), "process")
        expect(process.begin_ns < process.end_ns, "times")
        expect_equal([r.operation for r in mine
                      if r.operation in PROCESS_ROWS], [42, 41], "its rows")
        children = [p for p in made.processes.values()
                    if p.parent == self.pid]
        expect_equal(sorted(p.code for p in children), [0, 0, 9], "children")
        expect(not any("t.trace" in p for p in made.paths.values()), "itself")

    def a_file_of_buildxl_for_each_tree(self):
        """tracefs-run's command is one tree."""
        whole = buildxl_reader.File(self.export("buildxl"))
        folder = os.path.join(self.suite.folder("split"), "trees")
        self.export("buildxl", "--set", "split=yes", "--output", folder)
        made = buildxl_reader.read_folder(folder)
        mine = made[f"{self.pid}.txt"]
        expect({self.pid} < set(mine.processes), "its children are with it")
        expect_equal(sum(len(m.rows) for m in made.values()), len(whole.rows),
                     "rows of all files")
        expect_equal([(r.operation, r.path, r.error) for r in mine.rows],
                     [(r.operation, r.path, r.error) for r in whole.rows
                      if r.pid in mine.processes and r.pid != 0], "its rows")

    def the_events_of_cas(self):
        raw = nfsdb_reader.Database(self.export(
            "nfsdb", "--set", "mounts=yes", "--set", "comm=yes"))
        expect_equal(raw.mounts, [(self.folder.encode(), self.folder.encode(),
                                   b"fuse.tracefs")], "mounts")
        entries = json.loads(self.export("nfsdb-json"))
        by_name = {(e["p"], e["x"]): e for e in entries}
        mine = raw.processes[self.pid]
        expect_equal(mine.status, 7, "exit status")
        opened = {p.decode(): how for p, how in mine.runs[-1]["o"].items()}
        want = {"d": 2, "old": 2, "new": 1, "link": 1, "hard": 1, "moved": 1,
                "e": 1}
        # A directory that is moved was opened for reading, and moved away: read.
        want["d"] = 0
        expect_equal({self.inside(p): how for p, how in opened.items()}, want,
                     "opens of the raw file")
        entry = by_name[self.pid, 1]
        expect_equal(entry["v"], self.words, "arguments")
        expect_equal((entry["w"], entry["!"]), (self.folder, 7), "directory")
        modes = {self.inside(o["p"]): o["m"] for o in entry["o"]}
        for name, how in want.items():
            if name in modes:
                expect_equal(modes[name] & 3, how, f"mode of {name}")
        # Of what is there at the end its type shows, of the rest nothing.
        expect_equal({n: modes[n] >> 2 for n in ("moved", "e", "old", "new")},
                     {"moved": 0x18, "e": 0x14, "old": 0, "new": 0}, "types")
        expect_equal(len(entry["c"]), 3, "children")
        codes = sorted(by_name[c["p"], max(x for p, x in by_name
                                           if p == c["p"])]["!"]
                       for c in entry["c"])
        expect_equal(codes, [0, 0, 9], "their ends")
        echo = next(e for e in entries if e["v"][:1] == ["echo"])
        shell = next(e for e in entries if e["v"][-1:] == ["cat > piped"]
                     and e["x"] == 1)
        for pipes in (echo["i"], [{"p": p, "x": x} for p, x in
                                  raw.processes[echo["p"]].runs[-1]["i"]]):
            expect({"p": shell["p"], "x": 1} in pipes, f"pipes: {pipes}")


SECRETS = {
    "argv": "whistleblower-argument",
    "environment": "CONFIDENTIAL_TOKEN=hush",
    "folder": "acquisition-of-acme",
    "program": "audit-the-board",
}


def forms(word):
    yield word.encode()
    yield word.encode().hex().encode()
    yield base64.b64encode(word.encode())[:-4]


def case_anonymised(suite):
    """By every profile."""
    folder = suite.folder("secret", SECRETS["folder"])
    out = suite.folder("secret-out")
    program = os.path.join(folder, SECRETS["program"])
    with open(program, "w", encoding="ascii") as text:
        text.write("#!/bin/sh\n(exit 5)\ncat /dev/null | sort\n"
                   f": {SECRETS['argv']} > made\nexit 3\n")
    os.chmod(program, 0o755)
    plain = os.path.join(out, "plain")
    key, value = SECRETS["environment"].split("=")
    # Not compressed: what is in it can be looked for.
    config = suite.config(("", "STR_ALL | STR_ENVIRONMENT",
                           f'file = "{plain}"'))
    got = run(suite, "-q", "--config", config, "--", program,
              SECRETS["argv"], cwd=folder, env={**os.environ, key: value})
    expect_equal(got.returncode, 3, got.stderr)
    with open(plain, "rb") as data:
        original = data.read()
    for word in SECRETS.values():
        expect(word.encode() in original, f"{word} was not recorded")
    secret = os.path.join(out, "anon.key")
    suite.command("tracefs-keygen", "secret", secret)
    want = shape(Trace(suite, plain))
    for policy in ("research", "public", "partner", "ids-share"):
        hidden = os.path.join(out, policy)
        suite.command("tracefs-anon", "--policy", policy, "--keys", secret,
                      plain, hidden)
        with open(hidden, "rb") as data:
            there = data.read()
        for what, word in SECRETS.items():
            # ids-share keeps the names of programs: they are what it is for.
            kept = policy == "ids-share" and what in ("program", "folder")
            for form in forms(word):
                expect(kept or form not in there, f"{policy}: {what} {form}")
        # The tree is what it was, whatever its processes are called.
        expect_equal(shape(Trace(suite, hidden)), want, policy)
        if policy != "ids-share":
            said = suite.command("tracefs-anon", "--audit", hidden, "--against",
                                 plain, "--policy", policy)
            expect("LEAK" not in said, said)
    revealed = os.path.join(out, "revealed")
    suite.command("tracefs-anon", "--reveal", "all", "--keys", secret,
                  os.path.join(out, "partner"), revealed)
    expect_equal(records(Trace(suite, revealed)), records(Trace(suite, plain)),
                 "what comes back")
    # What a policy forgets to hide is found.
    leaky = os.path.join(out, "leaky.policy")
    with open(leaky, "w", encoding="ascii") as text:
        text.write("use research;\ndata = keep;\n")
    open_trace = os.path.join(out, "open")
    suite.command("tracefs-anon", "--policy", leaky, "--keys", secret, plain,
                  open_trace)
    said = suite.command("tracefs-anon", "--audit", open_trace, "--against",
                         plain, "--policy", "research", status=1)
    expect("LEAK" in said and "ARG_ARGV" in said and "ARG_ENVIRON" in said, said)


def shape(trace):
    """Ends and children of processes, whatever they are called."""
    found = tree(trace.processes)

    def below(pid):
        return sorted((node["end"], len(node["argv"]), below(who[0]))
                      for who, node in found.items() if node["parent"] == pid)
    tops = {node["parent"] for node in found.values()} - {
        who[0] for who in found}
    expect_equal(len(tops), 1, "who started it all")
    return below(tops.pop())


def records(trace):
    return [{k: v for k, v in e.items() if k != "tracer"}
            for e in trace.processes]


def main():
    suite = Suite("run-formats", __doc__)
    recorded = []

    def case(name):
        if not recorded:
            recorded.append(Recorded(suite))
        return getattr(recorded[0], name)()
    for name in ("the_rows_of_buildxl", "a_file_of_buildxl_for_each_tree",
                 "the_events_of_cas"):
        suite.run(name.replace("_", " "), case, name)
    suite.run("anonymised", case_anonymised, suite)
    suite.finish()


if __name__ == "__main__":
    main()
