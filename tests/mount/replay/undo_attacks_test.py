#!/usr/bin/env python3
"""Taking back as root, in a directory that belongs to somebody else: after any one
of its system calls the owner exchanges names, directories or links; any one of them
fails; it is told to end between any two. What was proved is what is changed, of an
operation all is taken back or nothing, and what was not is told.

  undo_attacks_test.py --bin build/release/bin [--only NAME]
"""

import collections
import contextlib
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    Suite, expect, expect_equal, wait_until)
from workloads import record  # noqa: E402

USER = 12345
# What looks at files, and what changes them.
LOOKING = ("openat2", "newfstatat", "open")
CHANGING = ("renameat2", "unlinkat", "mkdirat", "mknodat", "symlinkat",
            "linkat", "chmod", "fchmod", "fchownat", "setxattr",
            "removexattr", "openat2", "open", "pwrite64", "ftruncate",
            "fallocate", "copy_file_range")
ERRORS = ("EIO", "ENOSPC")


class Scene:
    """What is there, what is done and taken back, and what the owner does in the
    middle of that. `secret`: what nobody may touch, by path in the directory."""

    def __init__(self, before, script, who, exchange, secret):
        self.before = before
        self.script = script
        self.who = who
        self.exchange = exchange
        self.secret = secret


def exchanged(folder, one, other):
    """As far as there are such names at the moment."""
    for of, to in ((one, "spare"), (other, one), ("spare", other)):
        with contextlib.suppress(FileNotFoundError):
            os.rename(os.path.join(folder, of), os.path.join(folder, to))


SECRET = "echo 54321 > secret; chmod 600 secret"
SECRETS = "mkdir -m 755 secrets; echo 54321 > secrets/f; chmod 600 secrets/f"
SCENES = {
    "a mode, and another file of that name": Scene(
        f"echo 12345 > f; chmod 666 f; {SECRET}", "cat f; chmod 600 f",
        "chmod", ("f", "secret"), "secret"),
    "a mode, and another directory": Scene(
        f"mkdir d; echo 12345 > d/f; chmod 666 d/f; {SECRETS}",
        "cat d/f; chmod 600 d/f", "chmod", ("d", "secrets"), "secrets/f"),
    "a mode, and a link to a directory": Scene(
        f"mkdir d; echo 12345 > d/f; chmod 666 d/f; {SECRETS}; "
        "ln -s secrets link", "cat d/f; chmod 600 d/f", "chmod",
        ("d", "link"), "secrets/f"),
    "a mode, and a link to a file": Scene(
        f"echo 12345 > f; chmod 666 f; {SECRET}; ln -s secret link",
        "cat f; chmod 600 f", "chmod", ("f", "link"), "secret"),
    "contents, and another file": Scene(
        f"echo 12345 > f; {SECRET}", "cat f; dd if=/dev/zero of=f bs=3 count=1 "
        "conv=notrunc", "dd", ("f", "secret"), "secret"),
    "contents, and a link to a file": Scene(
        f"echo 12345 > f; {SECRET}; ln -s secret link",
        "cat f; dd if=/dev/zero of=f bs=3 count=1 conv=notrunc", "dd",
        ("f", "link"), "secret"),
    "removal, and another directory": Scene(
        f"mkdir d; {SECRETS}", "cp /dev/null d/f", "cp", ("d", "secrets"),
        "secrets/f"),
    "removal, and another file": Scene(
        SECRET, "cp /dev/null f", "cp", ("f", "secret"), "secret"),
    "a name, and another file": Scene(
        f"echo 12345 > a; {SECRET}", "cat a; mv a f", "mv", ("f", "secret"),
        "secret"),
    "making, and another directory": Scene(
        f"mkdir d; echo 12345 > d/g; {SECRETS}", "cat d/g; rm d/g", "rm",
        ("d", "secrets"), "secrets/f"),
}
# Operations that take several steps to take back.
GROUPS = {
    "a file that was renamed over another": (
        "echo 1 > a; echo 22 > b", "cat a b; mv a b", "mv"),
    "a file that was removed": (
        "seq 9000 > a; chmod 640 a", "cat a; rm a", "rm"),
    "contents that were cut off": (
        "seq 9000 > a", "cat a; truncate -s 10 a", "truncate"),
    "names that were exchanged": (
        "echo 1 > a; mkdir b; echo 2 > b/c", "cat a b/c; "
        f"{sys.executable} -c \"import ctypes; ctypes.CDLL(None).renameat2("
        "-100, b'a', -100, b'b', 2)\"", "python3"),
    "a directory that was removed": ("mkdir d", "ls d; rmdir d", "rmdir"),
    "a directory that was made": ("true", "mkdir d", "mkdir"),
    "a link that was removed": ("ln -s t l", "readlink l; rm l", "rm"),
    "a second name that was removed": (
        "echo 1 > a; ln a b", "cat a b; rm b", "rm"),
}


def state_of(path):
    st = os.lstat(path)
    with open(path, "rb") as data:
        return (oct(st.st_mode), st.st_uid, st.st_nlink, st.st_mtime_ns,
                data.read(), os.listxattr(path))


def tree_of(folder):
    """Names, kinds, modes and contents; whose a file is by its other names."""
    tree = {}
    for at, folders, files in os.walk(folder):
        for name in sorted(folders + files):
            path = os.path.join(at, name)
            st = os.lstat(path)
            content = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as data:
                    content = data.read()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(path).encode()
            tree[os.path.relpath(path, folder)] = (
                oct(st.st_mode), st.st_nlink,
                hashlib.sha256(content).hexdigest())
    return tree


class Attacks:
    def __init__(self, suite):
        self.suite = suite
        self.log = suite.path("strace.log")

    def recorded(self, before, script):
        """A trace, and a pattern of the tree that it leaves."""
        trace, source = record(self.suite, script, before)
        self.suite.remove("pattern")
        pattern = self.suite.path("pattern")
        subprocess.run(["cp", "-a", source, pattern], check=True)
        return trace, pattern

    def fresh(self, pattern, owner=0):
        """The tree as the trace leaves it. What matters is whose its
        directories are."""
        self.suite.remove("tree")
        tree = self.suite.path("tree")
        subprocess.run(["cp", "-a", pattern, tree], check=True)
        os.chown(tree, owner, owner)
        return tree

    def start(self, trace, tree, who, *strace):
        """--undo --apply under strace, which keeps a log."""
        return self.suite.background(subprocess.Popen(
            ["strace", "-f", "-o", self.log, *strace,
             os.path.join(self.suite.bin, "tracefs-replay"), trace, "--root",
             tree, "--undo", f"cname = {who}", "--apply"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))

    def calls(self, trace, tree, who, names):
        """Those that are made once it has begun to change the tree, as (name,
        the how manieth of that name)."""
        process = self.start(trace, tree, who, "-e", "trace=" + ",".join(names))
        said, _ = process.communicate(timeout=100)
        expect_equal(process.returncode, 0, said)
        counts = collections.Counter()
        found = []
        main = None
        with open(self.log, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                call = re.match(r"(\d+) +(\w+)\((.*)", line)
                main = main or (call and call[1])
                if not call or call[1] != main:
                    continue
                counts[call[2]] += 1
                if found or ".tracefs-undo-" in call[3]:
                    found.append((call[2], counts[call[2]]))
        expect(len(found) > 5, f"calls: {found}")
        return found

    def stopped_after(self, trace, tree, who, call, act):
        """`act(pid)` while it is stopped after that call. Status and output."""
        name, number = call
        if os.path.exists(self.log):
            os.remove(self.log)
        process = self.start(
            trace, tree, who, "-e", f"trace={name}",
            "-e", f"inject={name}:signal=SIGSTOP:when={number}")

        def has(text):
            with contextlib.suppress(FileNotFoundError):
                with open(self.log, encoding="utf-8", errors="replace") as log:
                    return re.search(r"(\d+) +" + text, log.read())

        stop = "--- stopped by SIGSTOP"
        wait_until(lambda: has(stop) or process.poll() is not None, "the stop")
        stopped = has(stop)
        expect(stopped, f"not stopped after {call}")
        act(int(stopped[1]))
        os.kill(int(stopped[1]), signal.SIGCONT)
        said, _ = process.communicate(timeout=100)
        return process.returncode, said

    # --- cases

    def owners_exchange(self, scene):
        trace, pattern = self.recorded(scene.before, scene.script)
        changes = self.calls(trace, self.fresh(pattern, USER), scene.who,
                             LOOKING + CHANGING)
        results = collections.Counter()
        for call in changes:
            tree = self.fresh(pattern, USER)
            secret = os.path.join(tree, scene.secret)
            before = state_of(secret)
            # It is told by its inode: the name goes to and fro.
            held = os.open(secret, os.O_RDONLY)
            status, said = self.stopped_after(
                trace, tree, scene.who, call,
                lambda _, at=tree: exchanged(at, *scene.exchange))
            expect(os.fstat(held).st_nlink > 0, f"{call}: removed. {said}")
            exchanged(tree, *scene.exchange)
            os.close(held)
            expect(os.path.exists(secret), f"{call}: taken away. {said}")
            expect_equal(state_of(secret), before, f"after {call}: {said}")
            expect(status in (0, 1), f"{call}: {status}, {said}")
            expect_equal([name for name in os.listdir(tree)
                          if name.startswith(".")], [], f"left, after {call}")
            results[status] += 1
        expect(results[0] and results[1], results)
        return f"{dict(results)} by status"

    def owner_fills(self):
        """A directory that is to go gets a file from whoever has it open."""
        trace, pattern = self.recorded("true", "mkdir d; mkdir d/e")
        results = collections.Counter()
        for call in self.calls(trace, self.fresh(pattern, USER), "mkdir",
                               LOOKING + CHANGING):
            tree = self.fresh(pattern, USER)
            held = os.open(os.path.join(tree, "d"), os.O_RDONLY)
            filled = []

            def fill(_, at=held, done=filled):
                with contextlib.suppress(FileNotFoundError):
                    os.close(os.open("mine", os.O_CREAT | os.O_WRONLY,
                                     dir_fd=at))
                    done.append(True)

            status, said = self.stopped_after(trace, tree, "mkdir", call, fill)
            os.close(held)
            expect_equal(sorted(tree_of(tree)),
                         ["d", "d/mine"] if filled else [],
                         f"after {call}: {said}")
            expect_equal(status, 1 if filled else 0, said)
            results[status] += 1
        expect(results[0] and results[1], results)
        return f"{dict(results)} by status"

    def all_or_nothing(self, before, script, who, endings):
        """`endings(trace, tree, who, call)` are ways to end it at a call:
        functions that do so, and give status and output."""
        trace, pattern = self.recorded(before, script)
        tree = self.fresh(pattern)
        calls = self.calls(trace, tree, who, CHANGING)
        done, undone = tree_of(pattern), tree_of(tree)
        expect(done != undone, "nothing is taken back")
        results = collections.Counter()
        for call in calls:
            for ending in endings(call):
                tree = self.fresh(pattern)
                status, said = ending(trace, tree, who, call)
                now = tree_of(tree)
                left = [name for name in now if name.startswith(".")]
                for name in left:  # where it could not be removed
                    expect(name in said, f"{call}: {name} is left: {said}")
                    expect(now.pop(name)[1] == 2, f"{call}: with folders")
                expect(now in (done, undone),
                       f"{call}: half of it is taken back: {now}\n{said}")
                expect_equal(status == 0, now == undone and not left,
                             f"{call}: is told as {status}: {said}")
                results["taken back" if now == undone else "not"] += 1
        expect(results["not"], results)
        return f"{dict(results)}"

    def failing(self, *scene):
        def with_error(error):
            def run(trace, tree, who, call):
                name, number = call
                process = self.start(
                    trace, tree, who, "-e", f"trace={name}",
                    "-e", f"inject={name}:error={error}:when={number}")
                said, _ = process.communicate(timeout=100)
                return process.returncode, said
            return run

        return self.all_or_nothing(*scene, lambda _: map(with_error, ERRORS))

    def limited(self, before, script, who):
        """Whoever runs it may write no large files: neither the plan (3), which
        holds all contents, nor what is taken back (1)."""
        trace, pattern = self.recorded(before, script)
        tree = self.fresh(pattern)
        done = subprocess.run(
            ["prlimit", "--fsize=131072",
             os.path.join(self.suite.bin, "tracefs-replay"), trace, "--root",
             tree, "--undo", f"cname = {who}", "--apply"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=100)
        expect(done.returncode in (1, 3),
               f"{done.returncode}: {done.stdout}")
        expect_equal(tree_of(tree), tree_of(pattern), done.stdout)

    def interrupted(self, *scene):
        def told_to_end(trace, tree, who, call):
            return self.stopped_after(
                trace, tree, who, call,
                lambda pid: os.kill(pid, signal.SIGINT))

        return self.all_or_nothing(*scene, lambda _: [told_to_end])


def main():
    suite = Suite("undo-attacks", __doc__.splitlines()[0])
    if shutil.which("strace") is None:
        suite.skip_all("there is no strace")
    attacks = Attacks(suite)
    for title, scene in SCENES.items():
        suite.run(f"Malicious: {title}", attacks.owners_exchange, scene)
    suite.run("Malicious: a directory that is filled", attacks.owner_fills)
    for title, scene in GROUPS.items():
        suite.run(f"calls that fail: {title}", attacks.failing, *scene)
    for title, scene in list(GROUPS.items())[:2]:
        suite.run(f"told to end: {title}", attacks.interrupted, *scene)
    for title in ("a file that was removed", "contents that were cut off"):
        before, *scene = GROUPS[title]
        suite.run(f"files that may not grow: {title}", attacks.limited,
                  before.replace("9000", "90000"), *scene)
    suite.finish()


main()
