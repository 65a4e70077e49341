#!/usr/bin/env python3
"""The trace of a mount against strace of the same work, in every visibility.

Each case runs a workload under strace in a fresh mount and has the checker
compare the two, request by request (checker/; the rules are in MAPPING.md).
"""

import os
import random
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
import strace_log  # noqa: E402
from checker import Checker, Mismatch, request_total  # noqa: E402
from checker.requests import KERNEL_ERRORS  # noqa: E402
from scripted import PARTS  # noqa: E402
from tracefs_harness import (PATIENCE_S, Failure, Skip, Suite,  # noqa: E402
                             expect)


def python(*arguments):
    # -I: no folder of the mount is searched for modules.
    return [sys.executable, "-I", "-S", "-B", *arguments]


# Lock requests come only where a filter names them, and not over io_uring.
LOCKS = {"getlk", "setlk", "flock"}
# Always true.
EVERYTHING = "op IN { getlk setlk flock } OR NOT op IN { getlk setlk flock }"
ALL_BUT_LOCKS = "NOT op IN { getlk setlk flock }"


# But for access, which does not come with default_permissions.
ALL_OPS = set("""
    lookup getattr setattr readlink symlink mknod mkdir unlink rmdir rename link
    open create tmpfile read write flush release fsync opendir readdir
    releasedir fsyncdir statfs setxattr getxattr listxattr removexattr getlk
    setlk flock fallocate lseek copy_file_range ioctl poll statx""".split())


class Fidelity:
    def __init__(self, suite):
        self.suite = suite
        self.locks = suite.options.transport != "uring"
        self.visibility = suite.options.visibility
        self.number = 0
        self.ops = set()

    def traced_run(self, command, cwd=None, source=None, then=None):
        """Runs command(inside, outside) under strace in a mount of
        `source` and compares. Returns what to say of it."""
        self.number += 1
        base = f"case-{self.number}"
        source = source or self.suite.folder(base, "source")
        point = self.suite.folder(base, "mnt")
        outside = self.suite.folder(base, "outside", mode=0o777)
        work = os.path.join(source, "work")
        os.makedirs(work)
        os.chmod(work, 0o755)
        trace = self.suite.path(base, "trace")
        log = self.suite.path(base, "strace")
        mount = self.suite.mount(
            source, point, (EVERYTHING if self.locks else ALL_BUT_LOCKS,
                            "STR_ALL", f'file = "{trace}"'),
            visibility=self.visibility)
        inside = os.path.join(point, "work")
        arguments = command(inside, outside)
        cwd = inside if cwd == "inside" else outside
        with open(self.suite.path(base, "output"), "wb") as output:
            process = self.suite.background(subprocess.Popen(
                ["strace", *strace_log.STRACE_OPTIONS, "-o", log,
                 "-e", strace_log.STRACE_CALLS, "--", *arguments],
                cwd=cwd, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, umask=0o022))
            try:
                status = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                # Whoever waits for the daemon cannot be killed before it.
                mount.kill()
                process.kill()
                raise Failure("the workload hangs") from None
        with open(self.suite.path(base, "output"), "rb") as output:
            expect(status == 0, f"the workload ended with {status}:\n"
                   + output.read().decode("utf-8", "replace"))
        mount.unmount()
        # strace itself asks whether the file of a descriptor still exists.
        ours = {process.pid, *mount.helpers}
        everything = self.suite.read(trace)
        events = [e for e in everything if e.get("pid") not in ours]
        others = [e for e in everything if e.get("pid") in ours]
        calls = strace_log.read_log(log)
        expect(calls and events, "nothing was recorded")
        root = calls[0].tid, os.path.basename(arguments[0])[:15]

        def compare(events):
            checker = Checker(point, calls, events, root, cwd,
                              locks=self.locks, visibility=self.visibility,
                              others=others)
            checker.run()
            return checker

        try:
            checker = compare(events)
        except Mismatch as mismatch:
            raise Failure(str(mismatch)) from None
        expect(request_total(checker) == len(events),
               f"{request_total(checker)} requests were compared, and "
               f"{len(events)} are in the trace")
        self.ops |= set(checker.counts)
        if not self.suite.options.keep:
            shutil.rmtree(self.suite.path(base), ignore_errors=True)
        expect(checker.late_names <= 1 + len(events) // 1000,
               f"{checker.late_names} requests have a later path")
        expect(checker.comm_lag <= 5 + len(events) // 20,
               f"{checker.comm_lag} requests have an earlier process name")
        if then:
            return then(compare, events, checker.compared, self.visibility)
        return (f"{len(events)} requests of {len(calls)} calls, "
                f"{sum(checker.kernel_requests.values())} by the kernel itself"
                f", {checker.late_names} with a later path"
                f", {checker.comm_lag} with an earlier comm"
                f", {sum(checker.hidden.values())} answers kept")

    def scripted(self, part, then=None):
        def command(inside, outside):
            return python(os.path.join(HERE, "scripted.py"), part, inside,
                          outside)
        if part != "no_space":
            return self.traced_run(command, then=then)
        with self.suite.tmpfs("full", size="1m") as source:
            return self.traced_run(command, source=source)


    def all_ops(self):
        """No operation has been left out of the workloads."""
        if self.suite.options.only:
            return Skip("only some cases were run")
        if self.suite.passed + len(self.suite.failed) == 0:
            return Skip("nothing could be compared here")
        missing = ALL_OPS - self.ops - (set() if self.locks else LOCKS)
        expect(not missing, f"never compared: {sorted(missing)}")
        return f"{len(self.ops)} operations"

    def random(self, seed, steps, processes):
        return self.traced_run(lambda inside, _: python(
            os.path.join(HERE, "random_ops.py"), str(seed), str(steps),
            str(processes), inside))

    def commands(self, script, tools):
        for tool in tools:
            if shutil.which(tool) is None:
                return Skip(f"{tool} is not installed")
        return self.traced_run(lambda inside, outside: [
            "/bin/sh", "-euc", script, "sh", inside, outside], cwd="inside")


# What the checker must notice when it is wrong in the trace.
ALWAYS = ["errno", "pid", "tid", "uid", "gid"]
FIELDS = {
    "lookup": ["path"], "open": ["path", "ino", "flags"],
    "create": ["path", "flags", "mode", "umask", "fh"],
    "tmpfile": ["umask", "ino"], "opendir": ["path"],
    "read": ["ino", "fh", "offset", "result", "path"],
    "write": ["ino", "fh", "offset", "result", "path"],
    "flush": ["fh", "ino"], "unlink": ["path", "ino"],
    "rmdir": ["path", "ino"], "mkdir": ["path", "mode", "umask"],
    "mknod": ["path", "mode"], "rename": ["path", "path2", "flags"],
    "link": ["ino", "path2"], "symlink": ["path", "target"],
    "readlink": ["path", "target"], "fsync": ["fh", "flags"],
    "fallocate": ["fh", "flags", "offset", "size"],
    "copy_file_range": ["fh", "fh_out", "offset", "offset_out", "result"],
    "setattr": ["ino", "valid"], "lseek": ["fh", "flags", "offset", "result"],
    "getxattr": ["ino", "xattr", "size"], "removexattr": ["ino", "xattr"],
    "setxattr": ["ino", "xattr", "size", "flags"],
    "listxattr": ["ino", "size"], "setlk": ["fh", "lock_type", "flags"],
    "readdir": ["fh", "offset", "result"], "statx": ["ino"],
}


def corrupt(value):
    return value + "x" if isinstance(value, str) else (value or 0) + 1


# The kernel may answer these by itself: one less is no error then, and one more
# is another call's.
MAY_BE_KEPT = {"lookup", "getattr", "statx", "readlink", "readdir"}


def expect_noticed(compare, events, compared, visibility, count=50):
    """Traces with one error each: the checker must object to every one."""
    generator = random.Random(1)
    kinds = [("dropped", None), ("doubled", None)]
    # A handle of one of these may be told with any of its names.
    linked = {e["ino"] for e in events if e["op"] == "link" and "errno" not in e}
    for number in range(count):
        event = generator.choice(compared)
        where = events.index(event)
        wrong = list(events)
        kind, key = generator.choice(kinds + [
            ("changed", key) for key in FIELDS.get(event["op"], []) + ALWAYS])
        if (kind != "changed" and visibility != "exact"
                and event["op"] in MAY_BE_KEPT):
            continue
        if kind == "dropped":
            if event.get("errno") in KERNEL_ERRORS:
                continue  # which it finds by itself, too
            del wrong[where]
        elif kind == "doubled":
            wrong.insert(where, event)
        elif key == "errno":
            wrong[where] = {**event, "errno": "EIO"}
        elif key == "path" and ("path" not in event or "fh" in event
                                and event.get("ino") in linked):
            continue  # of a file without a name, or with several
        elif key == "result" and "errno" in event:
            continue  # the error says it
        else:
            wrong[where] = {**event, key: corrupt(event.get(key))}
        try:
            compare(wrong)
        except Mismatch:
            continue
        raise Failure(f"the checker accepts a trace in which this is {kind} "
                      f"({key}): {event}")
    return f"{count} errors noticed"


# What people run. Arguments: the folder inside the mount, one outside.
COREUTILS = """
mkdir -p tree/a/b tree/c
for i in 1 2 3 4 5; do echo "file $i" > tree/a/f$i; done
cat tree/a/f1 tree/a/f2 >> tree/c/both
ln tree/a/f1 tree/c/hard
ln -s ../a/f2 tree/c/soft
dd if=/dev/zero of=tree/big bs=64k count=40 2>/dev/null
dd if=tree/big of=tree/part bs=1000 skip=3 count=5 2>/dev/null
cp -a tree copy
cp tree/a/f3 tree/a/f3.copy
mv copy/a/f1 copy/c/moved
mv copy "$2/moved-out"
mv "$2/moved-out" back
touch -d 2001-02-03 tree/a/f4
chmod -R u+rwX,go-w tree
ls -lR tree
find . -type f -size +1k
du -s .
head -c 100 tree/big | wc -c
tar cf all.tar tree
mkdir out
tar xpf all.tar -C out
diff -r tree out/tree
sort -o tree/c/both tree/c/both
rm -rf back out
sync -d tree/big
truncate -s 12345 tree/big
stat tree/big
"""
COMPILER = """
for n in one two three; do
  echo "int $n(void) { return 1; }" > $n.c
done
echo 'int one(void); int main(void) { return one() - 1; }' > main.c
for n in one two three main; do cc -O1 -c $n.c -o $n.o; done
ar rcs libnumbers.a one.o two.o three.o
cc main.o libnumbers.a -o program
./program
"""
GIT = """
export GIT_CONFIG_NOSYSTEM=1 HOME="$2" GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e
export GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
git init -q repository
cd repository
for i in 1 2 3; do
  mkdir -p d$i
  echo $i > d$i/file
  git add .
  git commit -qm "commit $i"
done
git status --porcelain
git gc -q
git log --oneline
"""
SQLITE = """
sqlite3 data.db 'create table t(a, b); insert into t values (1, 2), (3, 4);'
sqlite3 data.db 'select sum(a) from t; update t set b = 9;'
sqlite3 data.db 'pragma integrity_check;'
"""


def options(parser):
    parser.add_argument("--visibility", default="exact",
                        choices=("exact", "auto", "fast"))
    parser.add_argument("--random", type=int, default=2, metavar="N",
                        help="random workloads to run (default: 2)")
    parser.add_argument("--steps", type=int, default=400, metavar="N",
                        help="steps of each of their processes")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of the first random workload")


def main():
    suite = Suite("fidelity", __doc__, options)
    fidelity = Fidelity(suite)
    if shutil.which("strace") is None:
        suite.run("fidelity", lambda: Skip("strace is not installed"))
        suite.finish()
    for part in PARTS:
        suite.run(f"scripted {part}", fidelity.scripted, part)
    for part in ("data", "names", "attributes"):
        suite.run(f"errors noticed in {part}", fidelity.scripted, part,
                  expect_noticed)
    suite.run("coreutils", fidelity.commands, COREUTILS, ["tar", "diff"])
    suite.run("compiler", fidelity.commands, COMPILER, ["cc", "ar"])
    suite.run("git", fidelity.commands, GIT, ["git"])
    suite.run("sqlite", fidelity.commands, SQLITE, ["sqlite3"])
    first = suite.options.seed
    for seed in range(first, first + suite.options.random):
        suite.run(f"random, seed {seed}", fidelity.random, seed,
                  suite.options.steps, 3)
    suite.run("every operation was compared", fidelity.all_ops)
    suite.finish()


if __name__ == "__main__":
    main()
