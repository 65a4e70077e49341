#!/usr/bin/env python3
"""What was done to a traced directory, done again to an empty one: each
operation comes to the same, and the tree is the same in the end. What the tree
is, is said by a walk of this suite's own (trees.py), not by tracefs-replay.

  replay_test.py --bin build/release/bin
"""

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    Skip, Suite, expect, expect_equal, wait_until)
from trees import expect_same_tree, tree_digest  # noqa: E402
from workloads import AS_IT_WAS, FILE_RACES, RACES, WORKLOADS  # noqa: E402

FLAGS = "STR_ALL | STR_DATA"
REPLAY = "STR_REPLAY | STR_DATA"
# Of those that round_trips_test.py replays from traces for replays, those that
# traces of everything do for, too.
WITHOUT_STATES = ("names", "holes and offsets", "tar", "git", "make", "sqlite",
                  "fio", "postmark")
SOAK = os.environ.get("TRACEFS_SOAK") == "1"

# Two threads, one after the other: the second one uses what the first one has
# made last of all. An order that is too weak lets it begin at once.
RELAY = f"{sys.executable} -B -c " + '''"
import os, threading
def first():
    for i in range(3000):
        os.mkdir('x')
        os.rename('x', 'y')
        os.rmdir('y')
    os.mkdir('made')
def second():
    thread.join()
    os.rename('made', 'kept')
    os.mkdir('kept/inside')
thread = threading.Thread(target=first)
other = threading.Thread(target=second)
thread.start()
other.start()
other.join()
"'''


def crc32c(data, crc=0):
    """The check of a frame (FORMAT.md, section 2), a bit at a time."""
    crc ^= 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def altered(trace, changes):
    """The trace with bytes of its blocks replaced, and checks that are right."""
    data = bytearray(trace)
    at = struct.unpack_from("<I", data, 8)[0]
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 4)[0]
        payload = bytes(data[at + 40:at + 40 + size])
        other = payload
        for old, new in changes:
            expect(len(old) == len(new), "the length stays")
            other = other.replace(old, new)
        if other != payload:
            data[at + 40:at + 40 + size] = other
            struct.pack_into("<I", data, at + 36,
                             crc32c(data[at:at + 36] + other))
        at += 40 + size
    return bytes(data)


class Replay:
    def __init__(self, suite):
        self.suite = suite

    def record(self, script, kind=None, before=None, flags=FLAGS):
        """Runs it in a traced folder; the trace, and the tree in the end."""
        suite = self.suite
        with contextlib.ExitStack() as stack:
            if kind:
                folder = os.path.join(
                    stack.enter_context(suite.file_system("recorded", kind)),
                    "source")
                os.mkdir(folder)
            else:
                suite.remove("recorded")
                folder = suite.folder("recorded")
            if before:
                subprocess.run(["sh", "-c", before], cwd=folder, check=True)
            trace = suite.path("replay.trace")
            if os.path.exists(trace):
                os.unlink(trace)
            mount = suite.mount(folder, folder,
                                ("", flags, f'file = "{trace}"'))
            done = subprocess.run(
                ["sh", "-c", script], cwd=folder, check=False,
                capture_output=True, env=dict(os.environ, SOURCE=os.getcwd()))
            mount.unmount()
            expect(done.returncode == 0, f"the workload: {done.stderr}")
            return trace, tree_digest(folder, times=False,
                                      exclude=lambda p: p == "lost+found")

    def replay(self, trace, folder, *words, status=0):
        """What tracefs-replay reports."""
        if "--existing" in words:
            os.chmod(folder, 0o700)  # files are given away in it
        done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                               "--format", "json", *AS_IT_WAS, *words)
        report = json.loads(done.stdout) if done.stdout else None
        expect(done.returncode in (status if isinstance(status, tuple)
                                   else (status,)),
               f"tracefs-replay {' '.join(words)} ended with "
               f"{done.returncode}: {brief(report)}{done.stderr}")
        return report or done.stderr

    def empty(self, name="again"):
        self.suite.remove(name)
        return self.suite.folder(name)

    def same(self, trace, want, folder, *words):
        report = self.replay(trace, folder, *words)
        expect_equal((report["differs"], report["end"]["differences"],
                      report["initial"]["failed"]), (0, 0, 0),
                     brief(report))
        got = tree_digest(folder, times=False,
                          exclude=lambda p: p == "lost+found")
        expect_same_tree(got, want, "the replayed tree")
        return report

    # --- cases

    def round_trip(self, name):
        programs, script = WORKLOADS[name]
        for program in programs:
            if shutil.which(program) is None:
                raise Skip(f"{program} is not installed")
        trace, want = self.record("set -e\n" + script)
        report = self.same(trace, want, self.empty())
        return (f"{report['operations']} operations, "
                f"{report['explained']} explained")

    def other_file_systems(self, kind):
        why = self.suite.no_file_system(kind)
        if why:
            raise Skip(why)
        script = "set -e\n" + WORKLOADS["names"][1] + \
            WORKLOADS["holes and offsets"][1]
        trace, want = self.record(script, kind="tmpfs")
        with self.suite.file_system("other", kind) as folder:
            self.same(trace, want, folder)

    def races(self):
        """Recorded results, each time: what fails hangs on who was first."""
        operations = 0
        for _ in range(20 if SOAK else 3):
            trace, want = self.record(" ".join(RACES) + " 300", flags=REPLAY)
            plan = self.suite.path("races.plan")
            self.suite.command("tracefs-replay", trace, "--plan", plan)
            for _ in range(5 if SOAK else 3):
                report = self.same(plan, want, self.empty())
                operations += report["operations"]
            self.same(plan, want, self.empty(), "--order", "global")
            self.same(plan, want, self.empty(), "--timing", "think=0.5")
        return f"{operations} operations"

    def file_races(self):
        """The same of contents and attributes, with another seed each time."""
        if not SOAK:
            raise Skip("only with TRACEFS_SOAK=1")
        operations = 0
        for seed in range(40):
            trace, want = self.record(
                f"{' '.join(FILE_RACES)} 300 {seed}", flags=REPLAY)
            operations += self.same(trace, want, self.empty())["operations"]
        return f"{operations} operations"

    def used_after_removal(self):
        """Who holds a file that has lost its name may still ask for it: that is
        no file of that name, neither to begin with nor later."""
        trace, want = self.record(f"{sys.executable} -B -c " + '''"
import os
os.mkdir('a')
for again in range(2):
    os.mkdir('d')
    f = os.open('f', os.O_CREAT | os.O_RDWR)
    d = os.open('d', os.O_PATH)
    g = os.open('f', os.O_PATH)
    os.chmod('d', 0o433)
    os.rmdir('d')
    os.unlink('f')
    if again:
        os.symlink('a', 'd')
        os.mkdir('f')
    os.fstat(d)
    # What is open has no other name than one of its handles.
    h = os.open(f'/proc/self/fd/{f}', os.O_RDWR)
    os.close(h)
    os.fchmod(f, 0o600)
    os.ftruncate(f, 5)
    os.close(f)
    os.fstat(g)
    os.stat('a')
"''', flags=REPLAY)
        self.same(trace, want, self.empty())

    def number_given_again(self):
        """A directory gets the number of one that was used while it was being
        made: what was asked of the other one is not asked of it."""
        suite = self.suite
        if shutil.which("strace") is None:
            raise Skip("strace is not installed")
        why = suite.no_file_system("ext4")
        if why:
            raise Skip(why)
        with suite.file_system("numbers", "ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            trace = suite.path("numbers.trace")
            mount = suite.mount(source, source, ("", REPLAY, f'file = "{trace}"'))
            top = os.path.join(source, "top")
            os.mkdir(top)
            os.mkdir(os.path.join(top, "old"))
            old = os.open(os.path.join(top, "old"), os.O_PATH)
            os.chmod(os.path.join(top, "old"), 0o433)
            os.rmdir(os.path.join(top, "old"))
            log = suite.path("strace.log")
            # The daemon's call waits, before the store gives it a number.
            slow = suite.background(subprocess.Popen(
                ["strace", "-f", "-o", log, "-p", str(mount.process.pid),
                 "-e", "trace=mkdirat", "-e", "inject=mkdirat:delay_enter=2s"],
                stderr=subprocess.PIPE, text=True))
            expect("attached" in slow.stderr.readline(), "strace")
            makes = threading.Thread(
                target=os.mkdir, args=(os.path.join(top, "new"),))
            makes.start()
            wait_until(lambda: "mkdirat(" in open(log, encoding="utf-8").read(),
                       "the call of the daemon")
            number = os.fstat(old).st_ino
            os.close(old)
            makes.join()
            slow.terminate()
            slow.communicate()
            if os.stat(os.path.join(top, "new")).st_ino != number:
                raise Skip("the store gave it another number")
            mount.unmount()
            want = tree_digest(source, times=False)
        report = self.same(trace, want, self.empty())
        return f"{report['operations']} operations"

    def changes_that_wait(self):
        """Where the store takes long for changes they are made aside: in order
        with who looks, all the same."""
        suite = self.suite
        if shutil.which("strace") is None:
            raise Skip("strace is not installed")
        suite.remove("waits")
        folder = suite.folder("waits")
        trace = suite.path("waits.trace")
        mount = suite.mount(folder, folder, ("", REPLAY, f'file = "{trace}"'))
        path = os.path.join(folder, "f")
        with open(path, "wb"):
            pass
        slow = suite.background(subprocess.Popen(
            ["strace", "-f", "-o", suite.path("waits.log"), "-p",
             str(mount.process.pid), "-e", "trace=fchownat",
             "-e", "inject=fchownat:delay_exit=20ms"],
            stderr=subprocess.PIPE, text=True))
        expect("attached" in slow.stderr.readline(), "strace")

        def change(who):
            for i in range(40):
                os.chown(path, who, i)

        changers = [threading.Thread(target=change, args=(who,))
                    for who in (1, 2)]
        for changer in changers:
            changer.start()
        while any(changer.is_alive() for changer in changers):
            os.stat(path)
        slow.terminate()
        slow.communicate()
        mount.unmount()
        changes, looks = [], []
        for event in suite.read(trace):
            if event["path"] == "/f" and event["op"] in (
                    "setattr", "getattr", "lookup"):
                (changes if event["op"] == "setattr" else looks).append(
                    (event["ts"], event["ts"] + event["dur"]))
        expect_equal(len(changes), 80, "changes")
        expect(looks, "nobody looked")
        for begin, end in changes:
            for other in [*looks, *changes]:
                expect(other == (begin, end) or other[1] < begin
                       or other[0] > end,
                       f"{other} while {begin, end} changed the file")
        return f"{len(looks)} looks"

    def weak_order(self):
        """An order that is too weak comes to something else, which is said."""
        trace, want = self.record(RELAY, flags=REPLAY)
        plan = self.suite.path("relay.plan")
        self.suite.command("tracefs-replay", trace, "--plan", plan)
        for order in ("root", "global"):
            self.same(plan, want, self.empty(), "--order", order)
        for order in ("thread", "none"):
            # By chance the second thread may come late all the same.
            for _ in range(20):
                report = self.replay(plan, self.empty(), "--order", order,
                                     status=(0, 1))
                if not report["good"]:
                    break
            expect(not report["good"] and report["differs"] > 0, brief(report))
            expect(report["ops"]["rename"]["errors"] or order == "none",
                   f"{order}: {report['ops']['rename']}")
            expect(report["mismatches"], brief(report))

    def what_was_there(self):
        """A tree that was there before is made from what the trace shows."""
        trace, want = self.record("""set -e
cat a/f1 a/big > /dev/null; cat a/sub/f2; mv a/sub b; rm a/f1; ls -l a l
mv a/f3 a/f4; cat a/f4; exec 3< a/f5; rm a/f5; cat <&3; exec 3<&-
ln a/f6 a/f7; rm a/f6; cat a/f7
echo more >> a/big; readlink l; ln a/big hard; dd if=a/odd bs=100 skip=3 count=2
""", before="""mkdir -p a/sub; echo one > a/f1; echo two > a/sub/f2
for i in 3 5 6; do echo $i > a/f$i; done
seq 30000 > a/big; ln -s a/f1 l; chmod 750 a; chmod 640 a/big
seq 300 > a/odd""")
        folder = self.empty()
        # Of odd nobody read all: the rest is zeros, which is said.
        report = self.replay(trace, folder, status=1)
        expect_equal((report["differs"], report["end"]["differences"]), (0, 0),
                     brief(report))
        expect_equal((report["good"], report["end"]["made_up_files"]),
                     (False, ["a/odd"]), brief(report))
        got = tree_digest(folder, times=False)
        expect_equal(got["a/odd"].pop("sha256") != want["a/odd"].pop("sha256"),
                     True, "contents that nobody has seen")
        # Nobody asked for its target's bytes.
        expect_same_tree(got, want, "the replayed tree")

    def existing_tree(self):
        """Onto a copy of what was there; a folder that is not empty is refused
        without --existing."""
        before = "mkdir a; seq 1000 > a/f; seq 5 > a/g"
        trace, want = self.record("cp a/f a/h; echo x >> a/g; rm a/f",
                                  before=before)
        folder = self.empty()
        subprocess.run(["sh", "-c", before], cwd=folder, check=True)
        said = self.replay(trace, folder, status=2)
        expect("--existing" in said, said)
        report = self.replay(trace, folder, "--existing")
        expect(report["good"], brief(report))
        expect_same_tree(tree_digest(folder, times=False), want, "the tree")

    def differences_are_named(self):
        trace, _ = self.record("echo 1 > kept; echo 2 > other; cat kept")
        folder = self.empty()
        expected = self.suite.path("expected")
        self.replay(trace, folder)
        with open(expected, "w", encoding="utf-8") as out:
            out.write(self.suite.command("tracefs-replay", "--digest", folder))
        self.replay(trace, self.empty(), "--expect", expected)
        with open(os.path.join(folder, "other"), "a", encoding="utf-8") as out:
            out.write("3")
        os.unlink(os.path.join(folder, "kept"))
        with open(expected, "w", encoding="utf-8") as out:
            out.write(self.suite.command("tracefs-replay", "--digest", folder))
        report = self.replay(trace, self.empty(), "--expect", expected,
                             status=1)
        expect_equal(sorted(line.split(":")[0]
                            for line in report["end"]["first"]),
                     ["kept", "other"], "the paths that differ")

    def mismatch(self):
        """A result that differs is counted, warned of, or ends the replay."""
        trace, _ = self.record("mkdir a; echo 1 > a/f; cat a/f; rm -r a")
        folder = self.empty()
        os.mkdir(os.path.join(folder, "a"))
        report = self.replay(trace, folder, "--existing", status=1)
        expect(report["ops"]["mkdir"]["errors"] ==
               [{"then": "0", "now": "EEXIST", "count": 1}], str(report["ops"]))
        os.mkdir(os.path.join(folder, "a"))
        done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                               "--existing", "--on-mismatch", "abort")
        expect_equal(done.returncode, 1, done.stdout + done.stderr)
        expect("ENOENT then, success now" in done.stderr, done.stderr)

    def selection(self):
        """What others made is there before; a range ends the replay early."""
        trace, _ = self.record("mkdir a; seq 100 > a/f; chmod 600 a/f; cat a/f")
        folder = self.empty()
        report = self.replay(trace, folder, "--filter",
                             "op IN { open read release } AND NOT op = create")
        expect(report["good"] and report["ops"].keys() >= {"read"},
               brief(report))
        expect_equal(os.stat(os.path.join(folder, "a", "f")).st_size, 292,
                     "the size of what others wrote")
        sequence = next(
            i + 1 for i, e in enumerate(
                e for e in self.suite.read(trace)) if e["op"] == "write")
        folder = self.empty()
        self.replay(trace, folder, "--until", str(sequence - 1))
        expect_equal(os.stat(os.path.join(folder, "a", "f")).st_size, 0,
                     "the file before it was written")

    def steps(self):
        """Up to the second folder, one back: only the first one is there."""
        trace, _ = self.record("mkdir a; mkdir b; ls")
        asked = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json"))[
                "operations"]
        shown = self.suite.tool("tracefs-replay", trace, "--root",
                                self.empty(), "--step", input="\n" * asked)
        expect_equal(shown.returncode, 0, shown.stdout + shown.stderr)
        prompts = shown.stdout.split(" ? ")
        number = next(i + 1 for i, text in enumerate(prompts)
                      if text.endswith("mkdir b"))
        folder = self.empty()
        done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                               "--step", input=f"{number}\nb\nq\n")
        expect_equal(done.returncode, 0, done.stdout + done.stderr)
        expect_equal(os.listdir(folder), ["a"], done.stdout)

    def data_modes(self):
        trace, want = self.record("seq 5000 > f; cat f")
        for mode in ("zero", "pattern", "synth"):
            folder = self.empty()
            report = self.replay(trace, folder, "--data", mode)
            expect_equal(report["differs"], 0, mode)
            got = tree_digest(folder, times=False)
            expect_equal((got["f"]["size"], got["f"]["sha256"] ==
                          want["f"]["sha256"]), (want["f"]["size"], False), mode)

    def repeated(self):
        """Looks at what has not changed can be left out; all others are not."""
        trace, want = self.record(
            "mkdir -p a/b; echo 1 > a/b/f; stat a/b/f a/b/f; ln a/b/f a/g; "
            "stat a/g a/b/f; chmod 600 a/g; stat a/b/f; mv a/g a/h; stat a/h; "
            "echo 22 >> a/h; stat a/b/f a/h; rm a/h; stat a/b/f", flags=REPLAY)
        every = self.same(trace, want, self.empty())
        some = self.same(trace, want, self.empty(), "--skip-repeated")
        expect_equal(every["skipped"], 0, "skipped unasked")
        expect(some["skipped"] > 10, str(some["skipped"]))
        expect_equal(some["operations"] + some["skipped"], every["operations"],
                     "all others")
        # What is not done cannot be wrong, but what is left must see it.
        folder = self.empty()
        os.mkdir(os.path.join(folder, "a"))
        os.mkdir(os.path.join(folder, "a", "b"), 0o700)
        self.replay(trace, folder, "--existing", "--skip-repeated", status=1)

    def clones(self):
        trace, want = self.record(WORKLOADS["names"][1])
        folder = self.empty()
        report = self.replay(trace, folder, "--clones", "3")
        expect(report["good"], brief(report))
        for i in (1, 2, 3):
            expect_same_tree(
                tree_digest(os.path.join(folder, f"clone{i}"), times=False),
                want, f"clone {i}")

    def unprivileged(self):
        trace, want = self.record(WORKLOADS["names"][1])
        folder = self.empty()
        plan = self.suite.path("public.plan")
        self.suite.command("tracefs-replay", trace, "--plan", plan)
        os.chmod(plan, 0o644)
        os.chown(folder, 65534, 65534)
        done = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-replay"), plan, "--root",
             folder], check=False, capture_output=True, text=True, user=65534,
            group=65534, extra_groups=[])
        expect_equal(done.returncode, 0, done.stdout + done.stderr)
        got = tree_digest(folder, times=False)
        for entry in [*got.values(), *want.values()]:
            entry.pop("uid"), entry.pop("gid")
        expect_same_tree(got, want, "the tree of an ordinary user")

    def quota(self):
        trace, _ = self.record("seq 1000 > f; seq 1000 > g")
        for limit in (("--max-bytes", "1K"), ("--max-inodes", "1")):
            folder = self.empty()
            self.replay(trace, folder, *limit, status=2)
            expect_equal(os.listdir(folder), [], "said before the first one")

    def states(self):
        """STR_REPLAY: what nobody asked for is known all the same."""
        before = """mkdir -p a/b; echo 1 > a/f; ln -s ../nowhere a/l
mkfifo a/p; truncate -s 1M a/holes; printf x | dd of=a/holes bs=1 seek=500000 \
conv=notrunc status=none; chmod 3711 a/b; chown 5:6 a/f
python3 -c 'import os; os.setxattr("a/f", "user.one", b"1" * 300)
os.setxattr("a/b", "user.two", b"2")'"""
        script = """stat a/f a/l a/p a/b > /dev/null; cat a/f a/holes > /dev/null
python3 -c 'import os; os.setxattr("a/f", "user.three", b"33")'
echo 2 > a/b/g"""
        trace, want = self.record(script, before=before,
                                  flags=REPLAY)
        folder = self.empty()
        self.same(trace, want, folder)
        expect(os.stat(os.path.join(folder, "a/holes")).st_blocks * 512 < 300000,
               "what was a hole is one again")
        said = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json"))
        expect_equal((said["replayable"], said["lacks"]), (True, []), "lacks")
        expect_equal(json.loads(self.suite.command(
            "tracefs-dump", "--check-replayable", "--format", "jsonl", trace)),
            said, "what tracefs-dump says of it")
        # With a checksum of what they held, another tree is seen at once.
        trace, _ = self.record("cat a/f > /dev/null", before=before,
                               flags="STR_REPLAY_CONTENTS | STR_DATA")
        report = self.replay(trace, self.empty())
        expect_equal((report["initial"]["checked"],
                      report["initial"]["other_contents"]), (1, 0),
                     brief(report))
        folder = self.empty()
        subprocess.run(["sh", "-c", before + "\necho 3 > a/f"], cwd=folder,
                       check=True)
        report = self.replay(trace, folder, "--existing", status=1)
        expect_equal((report["initial"]["others"], report["differs"]),
                     (["f"], 1), brief(report))
        # Older flags: the same is missing, and said to be.
        trace, _ = self.record("cat a/f", before=before)
        said = self.suite.command("tracefs-dump", "--check-replayable", trace)
        expect("record with STR_REPLAY" in said, said)

    def copies(self):
        """What was there before and is only copied from is in the trace, or the
        replay says that it made it up."""
        before = "mkdir a; echo hello > a/src; seq 1000 > a/other; seq 9 > a/s"
        script = f"""set -e; cp a/src a/dst; cat a/other > a/o2; mv a/other a/o3
{sys.executable} -c 'import os
f, g = os.open("a/s", os.O_RDONLY), os.open("a/sent", os.O_CREAT | os.O_WRONLY)
os.sendfile(g, f, 0, 100)'"""
        trace, want = self.record(script, before=before, flags=REPLAY)
        kinds = [e["op"] for e in self.suite.read(trace)]
        expect("copy_file_range" in kinds, "nothing was copied")
        report = self.same(trace, want, self.empty())
        expect_equal((report["good"], report["made_up"]), (True, False),
                     brief(report))
        said = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json"))
        expect_equal((said["replayable"], said["lacks"]), (True, []), "lacks")
        # Without bytes.
        trace, want = self.record("cp a/src a/dst; cp a/other a/o2",
                                  before=before, flags="STR_REPLAY")
        said = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json", status=1))
        expect_equal([sorted(lack["files"]) for lack in said["lacks"]
                      if lack["what"] == "files_without_content"],
                     [["a/other", "a/src"]], "files whose contents are unknown")
        folder = self.empty()
        report = self.replay(trace, folder, status=1)
        expect_equal(sorted(report["end"]["made_up_files"]),
                     ["a/dst", "a/o2", "a/other", "a/src"], brief(report))
        text = self.suite.tool("tracefs-replay", trace, "--root", self.empty())
        expect_equal(text.returncode, 1, text.stdout)
        expect("\nas recorded" not in text.stdout and "a/dst" in text.stdout,
               text.stdout)
        # Onto the tree that was there nothing is made up.
        folder = self.empty()
        subprocess.run(["sh", "-c", before], cwd=folder, check=True)
        self.replay(trace, folder, "--existing")
        expect_same_tree(tree_digest(folder, times=False), want, "the tree")
        # A checksum of what it was, also where the copy is all that was seen.
        trace, _ = self.record("cp a/src a/dst", before=before,
                               flags="STR_REPLAY_CONTENTS")
        for text, good in ((before, True), (before + "; echo HELLO > a/src",
                                            False)):
            folder = self.empty()
            subprocess.run(["sh", "-c", text], cwd=folder, check=True)
            report = self.replay(trace, folder, "--existing",
                                 status=0 if good else 1)
            expect_equal((report["initial"]["checked"],
                          report["initial"]["other_contents"]),
                         (1, 0 if good else 1), brief(report))

    def open_before(self):
        """A tracer that begins while files are open tells of them: they are
        open in the replay, too, whatever becomes of their names."""
        self.suite.remove("below")
        folder = self.suite.folder("below")
        for name in ("kept", "renamed", "removed", "nameless"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write("before\n" * 100)
        os.mkdir(os.path.join(folder, "listed"))
        trace = self.suite.path("open.trace")
        if os.path.exists(trace):
            os.unlink(trace)
        point = self.suite.folder("above")
        mount = self.suite.mount(
            folder, point, ("op = statfs", FLAGS,
                            f'file = "{self.suite.path("other.trace")}"'))
        files = {name: os.open(os.path.join(point, name), os.O_RDWR)
                 for name in ("kept", "renamed", "removed", "nameless")}
        listed = os.open(os.path.join(point, "listed"), os.O_RDONLY)
        os.unlink(os.path.join(point, "nameless"))
        self.suite.command("tracefs-ctl", point, "add", self.suite.config(
            ("", REPLAY, f'file = "{trace}"')))
        os.rename(os.path.join(point, "renamed"), os.path.join(point, "moved"))
        os.unlink(os.path.join(point, "removed"))
        for fd in files.values():
            os.pwrite(fd, b"after", 3)
            os.pwrite(fd, b"the end", 1000)
            expect_equal(len(os.pread(fd, 2000, 0)), 1007, "what is read")
            os.close(fd)
        with open(os.path.join(point, "kept"), "rb") as again:
            again.read()
        expect_equal(os.listdir(listed), [], "the folder")
        os.close(listed)
        mount.unmount()
        want = tree_digest(folder, times=False)
        said = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json"))
        expect(not {"handles_before", "unplaced"} &
               {lack["what"] for lack in said["lacks"]}, str(said))
        folder = self.empty()
        report = self.replay(trace, folder)
        expect_equal((report["differs"], report["end"]["differences"],
                      report["untimed_failed"]), (0, 0, 0), brief(report))
        got = tree_digest(folder, times=False)
        expect_same_tree(got, want, "the replayed tree")

    def recorded_end(self):
        """What the store has in the end that no operation tells of is seen."""
        folder = self.suite.folder("below")
        self.suite.remove("below")
        folder = self.suite.folder("below")
        trace = self.suite.path("end.trace")
        if os.path.exists(trace):
            os.unlink(trace)
        mount = self.suite.mount(folder, self.suite.folder("above"),
                                 ("", "STR_REPLAY | STR_DATA",
                                  f'file = "{trace}"'))
        for name in ("one", "two"):
            with open(self.suite.path("above", name), "w",
                      encoding="utf-8") as out:
                out.write("as recorded\n")
        # Behind the mount's back.
        with open(os.path.join(folder, "two"), "w", encoding="utf-8") as out:
            out.write("and changed\n")
        mount.unmount()
        report = self.replay(trace, self.empty(), status=1)
        expect_equal((report["differs"], report["end"]["first"]),
                     (0, ["two: other contents"]), brief(report))

    def undo(self):
        """What one process did is taken back, what others did stays."""
        before = """mkdir -p t/sub/deep; seq 2000 > t/a; seq 50 > t/sub/b
ln t/a t/sub/hard; ln -s a t/link; mkfifo t/pipe; chmod 2750 t/sub
chmod 640 t/a; chown 7:8 t/sub/b; printf '\\001\\000\\377' > t/sub/deep/bin
python3 -c 'import os; os.setxattr("t/sub/b", "user.k", b"v")'"""
        folder_before = self.empty("reference")
        subprocess.run(["sh", "-c", before], cwd=folder_before, check=True)
        cases = {
            "a deleted tree": ("rm -r t", "cname = rm", True),
            "changes of contents": (
                "dd if=/dev/zero of=t/a bs=100 seek=3 count=2 conv=notrunc; "
                "dd if=/dev/zero of=t/sub/b bs=1000 count=1",
                "cname = dd", True),
            "names": ("mv t/sub/b t/a2; mv t/sub t/other; mv t/a2 t/a",
                      "cname = mv", True),
            "new files": ("mkdir n; cp -r t n; chmod 600 t/a", "cname IN "
                          "{ mkdir cp chmod }", True),
            "others' changes": ("dd if=/dev/zero of=t/a count=1; echo >> t/a",
                                "cname = dd", False)}
        for title, (script, filter_text, possible) in cases.items():
            trace, _ = self.record(
                "tar cf - t > /dev/null; cat t/a t/sub/b t/sub/deep/bin "
                "> /dev/null; " + script, before=before,
                flags="STR_REPLAY | STR_DATA | STR_PNAME")
            folder = self.suite.path("recorded")
            now = tree_digest(folder, times=False)
            shown = self.suite.tool("tracefs-replay", trace, "--root", folder,
                                    "--undo", filter_text, *AS_IT_WAS)
            expect_equal(shown.returncode, 0 if possible else 1,
                         title + shown.stdout + shown.stderr)
            expect_same_tree(tree_digest(folder, times=False), now,
                             "shown, not done")
            done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                                   "--undo", filter_text, "--apply",
                                   *AS_IT_WAS)
            expect_equal(done.returncode, 0 if possible else 1,
                         title + done.stdout + done.stderr)
            if possible:
                expect_same_tree(tree_digest(folder, times=False),
                                 tree_digest(folder_before, times=False),
                                 f"{title}:\n{done.stdout}")
            else:
                expect("changed it since" in done.stdout, done.stdout)
                expect_same_tree(tree_digest(folder, times=False), now, title)

    def hostile(self):
        """Whatever a trace says, nothing is touched outside of DIR."""
        trace, _ = self.record(
            "mkdir QQ; echo 1 > QQ/f; mv QQ/f Qabcde; ln -s Qabcde QlinkQ; "
            "ln Qabcde QhardQ; seq 1000 > Qsized; rm Qabcde; rmdir QQ; "
            "mkdir QZQ; echo 2 > QZQ/g; chmod 700 QZQ")
        with open(trace, "rb") as data:
            good = data.read()
        size = struct.pack("<Q", 3893)  # bytes of seq 1000
        expect(b"QQ" in good and size in good, "the names are in the trace")
        changes = {
            "up": [(b"QQ", b"..")], "a path": [(b"Qabcde", b"/tmp/x")],
            "a path up": [(b"Qabcde", b"../out")],
            "NUL": [(b"QZQ", b"Q\0Q")], "dots": [(b"QZQ", b"./.")],
            "slashes": [(b"QQ", b"//")],
            "lengths": [(size, struct.pack("<Q", 1 << 50))],
            "negative lengths": [(size, struct.pack("<q", -4096))],
            "all": [(b"QQ", b".."), (b"Qabcde", b"../out"),
                    (b"QlinkQ", b"../esc"), (b"QZQ", b"../"),
                    (size, struct.pack("<Q", 1 << 62))]}
        around = self.empty("around")
        with open(os.path.join(around, "kept"), "w", encoding="utf-8") as out:
            out.write("kept")
        hostile = self.suite.path("hostile.trace")
        for title, change in changes.items():
            bad = altered(good, change)
            expect(bad != good, f"{title}: nothing was altered")
            with open(hostile, "wb") as out:
                out.write(bad)
            for more in ((), ("--order", "none"), ("--data", "zero"),
                         ("--undo", "cuid = 0", "--apply")):
                folder = self.suite.folder("around", "in")
                done = self.suite.tool("tracefs-replay", hostile, "--root",
                                       folder, "--max-bytes", "10M", *more)
                expect(done.returncode in (0, 1, 2),
                       f"{title} {more}: {done.returncode} {done.stderr}")
                expect_equal(sorted(os.listdir(around)), ["in", "kept"], title)
                with open(os.path.join(around, "kept"),
                          encoding="utf-8") as text:
                    expect_equal(text.read(), "kept", title)
                expect(not os.path.lexists("/tmp/x"), f"{title}: /tmp/x")
                shutil.rmtree(folder)

    def lacking(self):
        """--check says what a trace lacks, before anything is done."""
        trace, _ = self.record("echo 1 > f; cat f", flags="STR_ALL")
        said = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json"))
        expect(said["replayable"], str(said))
        expect_equal({lack["what"] for lack in said["lacks"]},
                     {"writes_without_data", "reads_without_hash",
                      "without_end"}, "lacks")
        trace, _ = self.record("echo 1 > f; cat f",
                               flags="STR_UID | STR_TIMESTAMP")
        said = json.loads(self.suite.command(
            "tracefs-replay", trace, "--check", "--format", "json", status=1))
        expect(not said["replayable"], str(said))
        expect({"without_file", "without_handle", "without_arguments"} <=
               {lack["what"] for lack in said["lacks"]}, str(said))


def brief(report):
    """What is wrong in a report."""
    if not isinstance(report, dict):
        return report
    return json.dumps({key: report[key] for key in (
        "differs", "mismatches", "initial", "end", "untimed_failed",
        "made_up", "unplaced_changes")}, indent=1)[:3000]


def main():
    suite = Suite("replay", __doc__.splitlines()[0])
    if not os.access(os.path.join(suite.bin, "tracefs-replay"), os.X_OK):
        suite.skip_all("tracefs-replay is not built")
    replay = Replay(suite)
    for name in WITHOUT_STATES:
        suite.run(f"round trip: {name}", replay.round_trip, name)
    for kind in ("ext4", "xfs", "btrfs"):
        suite.run(f"recorded on tmpfs, replayed on {kind}",
                  replay.other_file_systems, kind)
    for title, case in {
            "races of eight threads": replay.races,
            "races of eight threads on open files": replay.file_races,
            "used after its removal": replay.used_after_removal,
            "a number that is given again": replay.number_given_again,
            "changes that wait for the store": replay.changes_that_wait,
            "an order that is too weak": replay.weak_order,
            "what was there before": replay.what_was_there,
            "onto an existing tree": replay.existing_tree,
            "differences are named path by path": replay.differences_are_named,
            "results that differ": replay.mismatch,
            "a part of a trace": replay.selection,
            "forward and back": replay.steps,
            "other bytes": replay.data_modes,
            "repeated looks left out": replay.repeated,
            "several clones": replay.clones,
            "as an ordinary user": replay.unprivileged,
            "quota": replay.quota,
            "states of files": replay.states,
            "copies of what was there before": replay.copies,
            "files that were open before": replay.open_before,
            "the end as it was recorded": replay.recorded_end,
            "undo": replay.undo,
            "Malicious: traces that lead elsewhere": replay.hostile,
            "what a trace lacks": replay.lacking}.items():
        suite.run(title, case)
    suite.finish()


main()
