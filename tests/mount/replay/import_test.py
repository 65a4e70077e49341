#!/usr/bin/env python3
"""Traces of others: what strace and fio recorded is, as a trace, the same as what
a mount has recorded, and replays as that does.

  import_test.py --bin build/release/bin
"""

import collections
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402
from workloads import AS_IT_WAS  # noqa: E402
from trees import expect_same_tree, tree_digest  # noqa: E402

STRACE = ["strace", "-f", "-ttt", "-T", "-y", "-s", "1000000"]

# What a kernel asks by itself, or settles without asking.
UNTOLD = {"lookup", "getattr", "flush", "access", "readdir", "statfs",
          "getxattr", "listxattr"}
# Processes, pipes, descriptors that are passed on and copied, folders that are
# gone into, names that change under open files.
WORK = """set -e
mkdir -p a/b/c; echo hello > a/x; cat a/x >> a/y; cat a/x a/y | sort > a/sorted
ln a/x a/hard; ln -s x a/soft; readlink a/soft; cat a/soft; mv a/y a/b
rm a/x; chmod 640 a/b/y; touch -d 2001-02-03 a/hard; truncate -s 100000 a/hard
(cd a/b; echo in > here; mkdir deep; mv here deep; (echo 1; echo 2) > both) &
wait; rmdir a/b/c; ! mkdir a; cp -r a copy; rm -r copy/b; mkfifo pipe
dd if=/dev/urandom of=data bs=5000 count=20 status=none
dd if=data of=part bs=1000 skip=3 seek=5 count=4 conv=notrunc,fsync status=none
python3 - <<'END'
import os
f = os.open("f", os.O_RDWR | os.O_CREAT, 0o640)
os.writev(f, [b"one", b"two" * 300, b""])
os.pwrite(f, b"x" * 10000, 1 << 20)
os.lseek(f, -20, os.SEEK_END)
print(os.read(f, 100))
if os.fork() == 0:
    os.write(f, b"child")
    os._exit(0)
os.wait()
os.write(f, b"parent")
os.posix_fallocate(f, 0, 2 << 20)
os.unlink("f")
os.pwrite(f, b"still here", 7)
os.ftruncate(f, 90)
h = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(h, b"got a name")
os.link(f"/proc/self/fd/{h}", "named", src_dir_fd=h)
os.setxattr("named", "user.a", b"value")
os.removexattr("named", "user.a")
d = os.dup(h)
os.close(h)
os.lseek(d, 4, os.SEEK_SET)
os.write(d, b"THE")
os.fsync(d)
END
"""


def keys(events):
    """What must be the same of each operation, and how often."""
    counted = collections.Counter()
    for event in events:
        op = event["op"]
        # The kernel has its own opinion of what is not there, and of who may.
        if op in UNTOLD or "errno" in event:
            continue
        key = [op]
        # Of a file without a name each side says what it last knew.
        if op not in ("release", "write", "setattr", "fsync", "fallocate"):
            key += [event.get("path"), event.get("path2")]
        for name in ("offset", "size", "target", "xattr"):
            if op not in ("open", "create", "link"):
                key.append(str(event.get(name)))
        if op in ("read", "write"):
            key += [event["result"], event.get("data")]
        if op == "setattr":
            key += [event["valid"] & 15, event.get("new_size")]
        # On the way to a file the kernel reads links by itself.
        counted[repr(key)] = 1 if op == "readlink" else counted[repr(key)] + 1
    return counted


def moved(events):
    """What was read and written where; by file, joined where it goes on."""
    done = collections.Counter()
    def add(op, path, offset, count):
        for at in range(offset, offset + count):
            done[op, path, at] += 1

    for event in events:
        if event["op"] in ("read", "write") and event["result"] > 0:
            add(event["op"], event["path"], event["offset"], event["result"])
        if event["op"] == "copy_file_range" and event["result"] > 0:
            add("read", event["path"], event["offset"], event["result"])
            add("write", event["path2"], event["offset_out"],
                event["result"])
    return done


def differences(got, want):
    lines = [f"- {key} ({count})" for key, count in (want - got).items()]
    lines += [f"+ {key} ({count})" for key, count in (got - want).items()]
    return "\n".join(sorted(lines)[:40])


class Import:
    def __init__(self, suite):
        self.suite = suite
        for program in ("strace", "python3"):
            if shutil.which(program) is None:
                suite.skip_all(f"{program} is not installed")

    def fresh(self, name):
        self.suite.remove(name)
        return self.suite.folder(name)

    def traced(self, folder, name, command, **options):
        """Runs it in a traced folder; the trace."""
        trace = self.suite.path(name)
        if os.path.exists(trace):
            os.unlink(trace)
        mount = self.suite.mount(
            folder, folder, ("", "STR_REPLAY | STR_DATA", f'file = "{trace}"'))
        done = subprocess.run(command, check=False, capture_output=True,
                              **options)
        mount.unmount()
        expect(done.returncode == 0, f"{command}: {done.stdout}{done.stderr}")
        return trace

    def imported(self, log, folder):
        trace = self.suite.path("imported.trace")
        said = self.suite.command("tracefs-import", "--below", folder, "-o",
                                  trace, log)
        return trace, said

    def recorded(self, script):
        """The same work as the mount and as strace saw it, and the tree."""
        folder = self.fresh("work")
        log = self.suite.path("strace.log")
        trace = self.traced(folder, "ours.trace",
                            [*STRACE, "-o", log, "sh", "-c", script],
                            cwd=folder)
        theirs, said = self.imported(log, folder)
        return trace, theirs, tree_digest(folder, times=False), said

    # --- cases

    def same_operations(self):
        ours, theirs, _, said = self.recorded(WORK)
        want = keys(self.suite.read(ours))
        got = keys(self.suite.read(theirs))
        expect(got == want, f"imported (+) and recorded (-):\n"
               f"{differences(got, want)}\n{said}")
        return f"{sum(want.values())} operations"

    def replayed(self):
        """The strace replays to the tree that there was, with its results."""
        _, theirs, want, _ = self.recorded(WORK)
        again = self.fresh("again")
        report = self.suite.tool("tracefs-replay", theirs, "--root", again,
                                 *AS_IT_WAS)
        expect_equal(report.returncode, 0, report.stdout + report.stderr)
        expect_same_tree(tree_digest(again, times=False), want,
                         "the tree of the replayed strace")

    def set_id_bits(self):
        """A new owner ends them, which no line of strace tells."""
        if os.geteuid() != 0:
            raise Skip("owners take root")
        _, theirs, want, _ = self.recorded("""set -e
for i in 1 2 3 4; do echo $i > f$i; done; chmod 6755 f1 f4; chmod 4644 f2
chmod 2644 f3; chown 5:6 f1 f2 f3; mkdir d; chmod 2755 d; chown 5:6 d""")
        again = self.fresh("again")
        report = self.suite.tool("tracefs-replay", theirs, "--root", again,
                                 *AS_IT_WAS)
        expect_equal(report.returncode, 0, report.stdout + report.stderr)
        expect_same_tree(tree_digest(again, times=False), want, "set-id bits")

    def straced(self, *options):
        """What strace wrote of the work, without a mount; log, folder, tree."""
        folder = self.fresh("alone")
        logs = self.fresh("logs")
        log = os.path.join(logs, "log")
        subprocess.run(
            ["strace", *options, "-T", "-y", "-s", "1000000", "-o", log, "sh",
             "-c", WORK], cwd=folder, check=True, capture_output=True)
        return log, folder, tree_digest(folder, times=False)

    def threads_apart(self):
        """The files of strace -ff, by the name that was given to strace."""
        log, folder, want = self.straced("-ff", "-ttt")
        files = os.listdir(os.path.dirname(log))
        expect(len(files) > 10, f"{files}")
        theirs, said = self.imported(log, folder)
        expect("of which 0 could not be read" in said, said)
        again = self.fresh("again")
        report = self.suite.tool("tracefs-replay", theirs, "--root", again,
                                 *AS_IT_WAS)
        expect_equal(report.returncode, 0, report.stdout + report.stderr)
        expect_same_tree(tree_digest(again, times=False), want, "the tree")
        pids = {str(event["pid"]) for event in self.suite.read(theirs)}
        expect(pids <= {name.rsplit(".", 1)[1] for name in files}, f"{pids}")
        return f"{len(files)} files"

    def differences_of_time(self):
        """Times of strace -r are those since the line before, whatever that
        tells."""
        log, folder, want = self.straced("-f", "-r")
        theirs, said = self.imported(log, folder)
        expect("time of day" in said, said)
        again = self.fresh("again")
        report = self.suite.tool("tracefs-replay", theirs, "--root", again,
                                 *AS_IT_WAS)
        expect_equal(report.returncode, 0, report.stdout + report.stderr)
        expect_same_tree(tree_digest(again, times=False), want, "the tree")
        sums, at = set(), 10 ** 9
        with open(log, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                seconds = line.split()[1]
                whole, fraction = seconds.split(".")
                at += int(whole) * 10 ** 9 + int(fraction) * 1000
                sums.add(at)
        made = [event["ts"] for event in self.suite.read(theirs)
                if event["op"] in ("mkdir", "symlink", "rename")]
        expect(made and set(made) <= sums, f"{made} of {len(sums)} times")

    def read_again(self):
        """Other commands take it as any trace."""
        _, theirs, _, _ = self.recorded("echo 1 > a; cat a")
        for command in (("tracefs-report", "summary"),
                        ("tracefs-dump", "--format", "strace"),
                        ("tracefs-dump", "--stats")):
            self.suite.command(*command, theirs)

    def fio_and_strace_agree(self):
        """A trace recorded here and replayed by fio moves the bytes that the
        strace of the same moves when we replay it."""
        if shutil.which("fio") is None:
            raise Skip("fio is not installed")
        ours, theirs, _, _ = self.recorded("""set -e
mkdir d; seq 3000 > d/a; dd if=d/a of=b bs=4k status=none
dd if=b of=/dev/null bs=1k status=none
dd if=b of=d/a bs=700 skip=2 seek=9 count=3 conv=notrunc status=none
python3 -c 'import os; f = os.open("b", os.O_RDWR)
for i in range(40): os.pwrite(f, b"%04d" % i, i * 333)
os.fsync(f)'
cp b c; dd if=c of=/dev/null bs=1k status=none
python3 -c 'import os
os.copy_file_range(os.open("c", os.O_RDONLY), os.open("b", os.O_RDWR), 900, 7, 50)'
""")
        expect(any(e["op"] == "copy_file_range" and e["result"] > 0
                   for e in self.suite.read(ours)), "nothing was copied")
        iolog = self.suite.path("job.iolog")
        self.suite.command("tracefs-dump", "--format", "fio", "--output", iolog,
                           ours)
        folder = self.fresh("by-fio")
        os.mkdir(os.path.join(folder, "d"))
        by_fio = self.traced(
            folder, "by-fio.trace",
            ["fio", "--name=r", f"--read_iolog={iolog}", "--ioengine=psync",
             "--replay_no_stall=1", "--output-format=terse"], cwd=folder)
        # What fio did, once more, by way of its own log and of ours.
        again = self.suite.path("again.trace")
        self.suite.command("tracefs-import", "-o", again, iolog)
        folder = self.fresh("by-us")
        by_us = self.traced(
            folder, "by-us.trace",
            [os.path.join(self.suite.bin, "tracefs-replay"), theirs, "--root",
             folder, "--existing"])
        want = moved(self.suite.read(ours))
        expect(want, "nothing was moved")
        for name, trace in (("fio", by_fio), ("our replay of the strace", by_us),
                            ("the iolog, imported", again)):
            events = self.suite.read(trace)
            got = moved(events)
            # fio lays its files out first, in writes from the begin; we read
            # them in the end, to compare them.
            extra = {"fio": "write", "our replay of the strace": "read"}
            got = collections.Counter({
                key: min(count, want[key]) if key[0] == extra.get(name)
                else count for key, count in got.items()})
            got = +got
            expect(got == want, f"{name}:\n{differences(got, want)}")
        return f"{sum(want.values())} bytes"


def main():
    suite = Suite("import", __doc__.splitlines()[0])
    cases = Import(suite)
    for title, case in {
            "strace says what the mount has recorded": cases.same_operations,
            "a strace is replayed": cases.replayed,
            "set-id bits that a new owner ends": cases.set_id_bits,
            "a file for each thread": cases.threads_apart,
            "differences of time": cases.differences_of_time,
            "commands read what was imported": cases.read_again,
            "fio and a replayed strace move the same bytes":
                cases.fio_and_strace_agree}.items():
        suite.run(title, case)
    suite.finish()


main()
