#!/usr/bin/env python3
"""What a process did is taken back on the mounted tree (tracefs-ctl MNT undo), while
others work there: a ransom, which a rule holds and which is then undone beside a build, a
database and a repository; what others changed stays; an undo that is killed comes to
the same end when it is run again. What is right is said by digests of the tree from
before, which Python makes.

  live_undo_test.py --bin build/release/bin [--only NAME]

TRACEFS_LONG_RANSOM=5000 in the environment: so many files instead of 120.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
import own_namespace  # noqa: E402
from keep_test import expect_tree, state_of, stream  # noqa: E402
from ransom import INNOCENT, make_victims, ransom_script  # noqa: E402
from tracefs_harness import (  # noqa: E402
    Skip, Suite, expect, expect_equal, wait_until)
from workloads import ACL, AS_IT_WAS  # noqa: E402

KINDS = ("ext4", "xfs", "btrfs")
FILES = int(os.environ.get("TRACEFS_LONG_RANSOM", "120"))
OWNER = 61021
# Few files in a second where the machine is busy.
RULE = ("when rate(op = open AND NOT op IN { create tmpfile } AND errno = 0 "
        "AND size > 0 AND (flags ~ O_WRONLY OR flags ~ O_RDWR) "
        "AND NOT name ~ \"*.o\" AND NOT name ~ \"*.db\" "
        "AND NOT cname IN { git } by pid) > 15/10s "
        "then { alarm \"mass overwrite\"; hold for 10m }")
# They go on until the file `stop` is there; each round in a folder of its own.
BUSY = 'n=0; while [ ! -e "$STOP" ]; do n=$((n+1)); mkdir "$1$n"; ' \
       '(cd "$1$n"; set -e; eval "$WORK") || exit 1; done; echo $n > "$1.rounds"'


class LiveUndo:
    def __init__(self, suite):
        self.suite = suite

    def store(self, kind):
        why = self.suite.no_file_system(kind)
        if why:
            raise Skip(why)
        return self.suite.file_system("live-" + kind, kind)

    def mount(self, source, kept, more="", transport=None, **options):
        """The source over itself; what is destroyed is kept."""
        trace = self.suite.path(os.path.basename(source) + ".trace")
        if os.path.exists(trace):
            os.remove(trace)
        return self.suite.mount(source, source, (
            "", self.with_rule(kept, more) if more else stream(kept),
            f'file = "{trace}" buf = 1048576'),
            visibility="auto", transport=transport, **options), trace

    @staticmethod
    def with_rule(kept, rule):
        # Suite.config closes one brace of the section.
        return (f'STR_KEEP | STR_PID | STR_PROCESS }} keep_in = "{kept}"; '
                f'{rule[:rule.rindex("}")]}')

    def undo(self, mnt, question, *words, status=0, grants=AS_IT_WAS, **options):
        done = self.suite.tool("tracefs-ctl", mnt, "undo", question, "--format",
                               "json", *grants, *words, timeout=600, **options)
        said = json.loads(done.stdout) if done.stdout else {}
        left = [step for step in said.get("steps", ()) if "not_done" in step]
        expect_equal(done.returncode, status, json.dumps(
            [said.get("doubt"), left[:20]], indent=1) + done.stderr[-2000:])
        if not done.stdout:
            return done.stderr
        expect_equal(said["doubt"], "", done.stdout[-500:])
        return said

    @staticmethod
    def process(source, script):
        """Runs it in the tree; its number."""
        with subprocess.Popen([sys.executable, "-B", "-c", script],
                              cwd=source) as process:
            expect_equal(process.wait(), 0, "the script")
        return process.pid

    @staticmethod
    def rooms(source):
        return [n for n in os.listdir(source) if n.startswith(".tracefs-undo-")]

    # --- a ransom, from its alarm to the last byte

    def ransom(self, kind, transport=None):
        suite = self.suite
        with self.store(kind) as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            make_victims(source, FILES)
            home = os.path.join(source, "home")
            before = state_of(home)
            mount, _ = self.mount(source, folder + "/kept", RULE, transport)
            # What others had done by then, and what they do meanwhile.
            for text in INNOCENT:
                subprocess.run(["sh", "-ec", text], cwd=source, check=True,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            done_before = {name: state_of(os.path.join(source, name))
                           for name in ("build", "db", "repo")}
            stop = suite.path("stop")
            busy = [subprocess.Popen(
                ["sh", "-c", BUSY, "sh", f"busy{i}-"], cwd=source,
                env={**os.environ, "STOP": stop, "WORK": text},
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for i, text in enumerate(INNOCENT)]
            for process in busy:
                suite.background(process)
            with subprocess.Popen(
                    [sys.executable, "-B", "-c", ransom_script(0.02)],
                    cwd=source,
                    stderr=subprocess.DEVNULL) as ransomer:
                suite.background(ransomer)
                wait_until(lambda: self.held(source), "the hold")
                hold = self.held(source)[0]
                expect_equal(hold["pid"], ransomer.pid, "who is held")
                expect(any(state_of(home).get(path) != entry
                           for path, entry in before.items()
                           if "sha256" in entry), "something was destroyed")
                begin = time.monotonic()
                said = json.loads(self.suite.tool(
                    "tracefs-ctl", source, "release", str(hold["hold"]),
                    "--undo", "--format", "json", *AS_IT_WAS,
                    timeout=600).stdout)
                took = time.monotonic() - begin
                expect(ransomer.wait() != 0, "it could not go on")
            expect_equal(said["doubt"], "", "the trace")
            expect_equal(said["not_done"], 0, said)
            expect_tree(state_of(home), before, "what was taken back")
            for name, state in done_before.items():
                expect_tree(state_of(os.path.join(source, name)), state, name)
            with open(stop, "w", encoding="utf-8"):
                pass
            for process in busy:
                errors = process.communicate(timeout=120)[1]
                expect_equal(process.returncode, 0, errors)
            os.remove(stop)
            self.check_innocent(source)
            expect_equal(self.rooms(source), [], "folders to work in")
            mount.unmount()
            expect_tree(state_of(home), before, "below the mount")
        return f"{len(said['steps'])} steps in {took:.1f} s"

    def held(self, source):
        return json.loads(self.suite.command("tracefs-ctl", source, "held",
                                             "--format", "json"))["holds"]

    @staticmethod
    def check_innocent(source):
        """By those who know their files."""
        rounds = 0
        for name in os.listdir(source):
            folder = os.path.join(source, name)
            if not name.startswith("busy") or not os.path.isdir(folder):
                continue
            rounds += 1
            for what, check in (
                    ("repo", ["git", "-c", "safe.directory=*", "fsck",
                              "--strict"]),
                    ("build", ["sh", "-ec", "ar t lib.a | grep -c f6.o"])):
                if os.path.isdir(os.path.join(folder, what)):
                    subprocess.run(check, cwd=os.path.join(folder, what),
                                   check=True, capture_output=True)
            if os.path.isdir(os.path.join(folder, "db")):
                out = subprocess.run(
                    [sys.executable, "-c", "import sqlite3; print(sqlite3."
                     "connect('a.db').execute('PRAGMA integrity_check')"
                     ".fetchone()[0])"], cwd=os.path.join(folder, "db"),
                    check=True, capture_output=True, text=True).stdout
                expect_equal(out.strip(), "ok", folder)
        expect(rounds >= 3, "others worked meanwhile")

    # --- what stays, and what comes back

    def others(self):
        """What others changed since stays, and is told; all else comes back."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            for name in ("mine", "both", "after", "moved"):
                with open(os.path.join(source, name), "wb") as out:
                    out.write(os.urandom(9000))
            before = state_of(source)
            mount, _ = self.mount(source, folder + "/kept")
            pid = self.process(source, """
import os
for name in ("mine", "both", "after", "moved"):
    with open(name, "r+b") as out:
        out.write(b"gone" * 1000)
os.mkdir("dir")
open("dir/made", "w").write("by it")
""")
            self.process(source, """
import os
with open("both", "r+b") as out:
    out.write(b"theirs")
os.rename("moved", "elsewhere")
""")
            now = state_of(source)
            shown = self.undo(source, f"cpid = {pid}", "--dry-run", status=1)
            expect_tree(state_of(source), now, "a dry run changes nothing")
            with open(os.path.join(source, "after"), "r+b") as out:
                out.write(b"theirs, too")
            theirs = state_of(source)
            said = self.undo(source, f"cpid = {pid}", status=1)
            kept_back = {s["step"] for s in said["steps"] if "not_done" in s}
            expect(all("both" in s or "after" in s for s in kept_back), said)
            expect(len(shown["steps"]) == len(said["steps"]), shown)
            want = dict(theirs)
            want["mine"] = before["mine"]
            # Wherever others have moved it.
            want["elsewhere"] = before["moved"]
            for name in ("dir", "dir/made"):
                del want[name]
            expect_tree(state_of(source), want, "the tree")
            mount.unmount()

    def outside(self):
        """What was changed below the mount, which no trace tells, stays."""
        with self.store("ext4") as folder:
            source, point = folder + "/source", folder + "/point"
            os.mkdir(source)
            os.mkdir(point)
            with open(source + "/f", "wb") as out:
                out.write(os.urandom(9000))
            trace = self.suite.path("outside.trace")
            mount = self.suite.mount(source, point, (
                "", stream(folder + "/kept"), f'file = "{trace}"'),
                visibility="auto")
            pid = self.process(point, "open('f', 'r+b').write(b'gone' * 9)")
            time.sleep(0.05)
            with open(source + "/f", "r+b") as out:
                out.seek(5000)
                out.write(b"same size")
            now = state_of(source)
            # Who only reads it does not stand for that change.
            self.process(point, "open('f', 'rb').read()")
            said = self.undo(point, f"cpid = {pid}", status=1)
            expect_equal(said["not_done"], len(said["steps"]), said)
            expect_tree(state_of(source), now, "it stays")
            mount.unmount()
            # Nor later, though the trace has a checksum with that change in it.
            said = json.loads(self.suite.tool(
                "tracefs-replay", trace, "--root", source, "--undo",
                f"cpid = {pid}", "--apply", "--format", "json",
                *AS_IT_WAS).stdout)
            expect(said["steps"], said)
            expect_equal(said["not_done"], len(said["steps"]), said)
            expect_tree(state_of(source), now, "it stays when it is over")

    def below(self, flags, status, comes_back):
        """What a process did, and one below it whose parent did nothing here."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            for name in ("a", "b"):
                with open(os.path.join(source, name), "wb") as out:
                    out.write(b"before")
            before = state_of(source)
            trace = self.suite.path(f"below-{status}.trace")
            mount = self.suite.mount(source, source, (
                "", f'{flags} }} keep_in = "{folder}/kept" keep = {{',
                f'file = "{trace}"'), visibility="auto")
            # The shell in between has its directory elsewhere.
            pid = self.process(source, """
import os, subprocess
open("a", "wb").write(b"mine")
subprocess.run(["sh", "-c", f"sh -c 'echo mine > {os.getcwd()}/b; true'; true"],
               check=True, cwd="/")
""")
            now = state_of(source)
            said = self.undo(source, f"under(cpid = {pid})", status=status)
            if status == 2:
                expect("STR_PROCESS" in said, said)
            else:
                expect_equal(said["doubtful_callers"], status, said)
            left = state_of(source)
            for name in ("a", "b"):
                expect_equal(left[name], (before if name in comes_back
                                          else now)[name], name)
            mount.unmount()

    def mapped(self):
        """What was written through a map, and not handed on yet."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            with open(os.path.join(source, "f"), "wb") as out:
                out.write(os.urandom(50_000))
            before = state_of(source)
            mount, _ = self.mount(source, folder + "/kept")
            pid = self.process(source, """
import mmap, os
with open("f", "r+b") as file:
    view = mmap.mmap(file.fileno(), 0)
    view[100:200] = b"x" * 100
    os._exit(0)
""")
            self.undo(source, f"cpid = {pid}")
            expect_tree(state_of(source), before, "as it was")
            mount.unmount()

    @contextlib.contextmanager
    def ruined(self, files):
        """A mounted tree after a ransom: where it is, what it was like before,
        and the number of the process."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            make_victims(source, files)
            before = state_of(source)
            mount, _ = self.mount(source, folder + "/kept")
            yield source, before, self.process(source, ransom_script())
            mount.unmount()

    def twice(self):
        """An undo is taken back by another one."""
        with self.ruined(40) as (source, before, pid):
            ruined = state_of(source)
            done = self.suite.tool("tracefs-ctl", source, "undo",
                                   f"cpid = {pid}", *AS_IT_WAS)
            expect_equal(done.returncode, 0, done.stdout + done.stderr)
            expect_tree(state_of(source), before, "taken back")
            other = re.search(r"undo 'cpid = (\d+)'", done.stderr)[1]
            self.undo(source, f"cpid = {other}")
            # Modification times come back where they were kept; what an undo
            # made anew has new ones.
            def plain(state):
                for entry in state.values():
                    entry.pop("mtime_ns", None)
                return state
            expect_tree(plain(state_of(source)), plain(ruined), "and back again")

    def killed(self):
        """Killed again and again, and then not: the same end."""
        with self.ruined(120) as (source, before, pid):
            command = [os.path.join(self.suite.bin, "tracefs-ctl"), source,
                       "undo", f"cpid = {pid}", *AS_IT_WAS]
            halfway = 0
            for patience in (0.0, 0.03, 0.1):
                with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as undo:
                    while undo.poll() is None and not self.works(source):
                        time.sleep(0.001)
                    time.sleep(patience)
                    undo.send_signal(signal.SIGKILL)
                    undo.wait()
                halfway += undo.returncode == -signal.SIGKILL
                if undo.returncode != -signal.SIGKILL:
                    break
            expect(halfway > 0, "none was killed halfway")
            left = self.rooms(source)
            said = self.undo(source, f"cpid = {pid}") if left else None
            expect_equal(self.rooms(source), [],
                         f"folders to work in; before {left}: "
                         f"{json.dumps(said)[-800:]}")
            expect_tree(state_of(source), before, "as it was")
        return f"{halfway} were killed"

    def works(self, source):
        """An undo has a folder that is not one of those left before."""
        rooms = self.rooms(source)
        known = getattr(self, "known_rooms", set())
        new = set(rooms) - known
        self.known_rooms = known | new
        return bool(new)

    def at_once(self):
        """One undo at a time."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            mount, _ = self.mount(source, folder + "/kept")
            pid = self.process(source, "open('f', 'w').write('x')")
            room = os.path.join(source, ".tracefs-undo-other")
            os.mkdir(room, mode=0o700)
            held = os.open(room, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
            said = self.undo(source, f"cpid = {pid}", status=3)
            expect("another undo is at work" in said, said)
            os.close(held)
            os.rmdir(room)
            mount.unmount()

    # --- whose rights

    def owner(self):
        """An ordinary user takes back what happened in a mount of his own."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            for name in (folder, source):
                os.makedirs(name, exist_ok=True)
                os.chown(name, OWNER, OWNER)
                os.chmod(name, 0o755)
            as_owner = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}",
                        "--clear-groups"]
            subprocess.run([*as_owner, "sh", "-ec", "for i in 1 2 3; do "
                            "head -c 9000 /dev/urandom > f$i; done; "
                            "echo mine > kept; echo mine > written; "
                            "echo ours > shared"],
                           cwd=source, check=True)
            # What he may not write to is still his.
            for name in ("kept", "written"):
                path = os.path.join(source, name)
                os.setxattr(path, "user.a", b"1")
                os.utime(path, ns=(10 ** 18, 10 ** 18))
                os.chmod(path, 0o444)
            os.setxattr(os.path.join(source, "shared"),
                        "system.posix_acl_access", bytes.fromhex(ACL))
            before = state_of(source)
            place = self.suite.folder("owner-traces")
            os.chown(place, OWNER, OWNER)
            for name in (self.suite.scratch, place):
                os.chmod(name, 0o755)
            trace = os.path.join(place, "trace")
            mount = self.suite.mount(source, source, (
                "", stream(place + "/kept"), f'file = "{trace}"'),
                visibility="auto", wrapper=as_owner)
            with subprocess.Popen([
                    *as_owner, "sh", "-ec", "cd $0; ls -l > /dev/null; rm f1; "
                    "truncate -s 10 f2; mv f3 f4; rm -f kept shared; chmod u+w written; "
                    "echo gone > written; chmod 444 written",
                    source]) as process:
                expect_equal(process.wait(), 0, "the script")
            question = f"cuid = {OWNER}"
            said = self.undo(source, question, status=3, grants=())
            expect("--as-owner" in said, said)
            command = [*as_owner, os.path.join(self.suite.bin, "tracefs-ctl"),
                       source, "undo", question]
            done = subprocess.run([*command, "--dry-run"], text=True,
                                  capture_output=True, check=False)
            expect_equal(done.returncode, 1, done.stdout + done.stderr)
            told = [line for line in done.stdout.splitlines()
                    if "not done" in line]
            expect(len(told) == 1 and "shared" in told[0]
                   and "--users recorded" in told[0], done.stdout)
            done = subprocess.run([*command, "--users", "recorded"], text=True,
                                  capture_output=True, check=False)
            expect_equal(done.returncode, 0, done.stdout + done.stderr)
            mount.unmount()
            expect_tree(state_of(source), before, "as it was")

    def rotated(self):
        """A trace in several files is one, whichever of them is named."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            for i in range(200):
                with open(f"{source}/f{i}", "wb") as out:
                    out.write(b"before")
            before = state_of(source)
            place = self.suite.folder("rotated")
            trace = place + "/trace"
            mount = self.suite.mount(source, source, (
                "", stream(folder + "/kept"),
                f'file = "{trace}" rotate_size = 64K buf = 4096'),
                visibility="auto")
            destroy = ("for i in range(200): "
                       "open('f%d' % i, 'r+b').write(b'gone')")
            pid = self.process(source, destroy)
            parts = sorted(os.listdir(place))
            expect(len(parts) > 2, parts)
            self.undo(source, f"cpid = {pid}")
            expect_tree(state_of(source), before, "taken back on the mount")
            pid = self.process(source, destroy)
            mount.unmount()
            for name in (parts[0], parts[2]):
                said = json.loads(self.suite.tool(
                    "tracefs-replay", os.path.join(place, name), "--root",
                    source, "--undo", f"cpid = {pid}", "--format", "json",
                    *AS_IT_WAS).stdout)
                expect_equal((said["not_done"], said["doubt"],
                              len(said["steps"])), (0, "", 200), name)
            os.remove(trace)
            said = json.loads(self.suite.tool(
                "tracefs-replay", os.path.join(place, parts[1]), "--root",
                source, "--undo", f"cpid = {pid}", "--format", "json",
                *AS_IT_WAS).stdout)
            why = {step.get("not_done", "") for step in said["steps"]}
            expect(all("parts before number 1 " in text for text in why)
                   or said["doubt"], why)

    # --- what is refused

    def kept_elsewhere(self):
        """A trace does not say where what was kept lies: its file is the
        daemon's to write. The note does, or the caller."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            with open(source + "/f", "wb") as out:
                out.write(os.urandom(9000))
            before = state_of(source)
            trace = self.suite.path("earlier.trace")
            mount = self.suite.mount(source, source, (
                "", stream(folder + "/one"), f'file = "{trace}"'),
                visibility="auto")
            pid = self.process(source, "import os; os.unlink('f')")
            mount.unmount()
            mount, _ = self.mount(source, folder + "/two")
            said = self.undo(source, f"cpid = {pid}", "--trace", trace, status=1)
            expect_equal(said["not_done"], len(said["steps"]), said)
            expect(not os.path.exists(source + "/f"), "it is not read")
            self.undo(source, f"cpid = {pid}", "--trace", trace, "--kept",
                      folder + "/one")
            expect_tree(state_of(source), before, "as it was")
            mount.unmount()

    def refusals(self):
        suite = self.suite
        source, point = suite.folder("plain"), suite.folder("plain-mnt")
        flight = f'flight = "{suite.path("flight")}" size = 1M trigger = "errno = EIO"'
        mount = suite.mount(source, point, ("", "STR_REPLAY", flight))
        said = self.undo(point, "cpid = 1", status=2)
        expect("--root MNT --undo" in said and "--trace" in said, said)
        mount.unmount()
        trace, other = suite.path("a.trace"), suite.path("b.trace")
        mount = suite.mount(source, point,
                            ("", "STR_REPLAY", f'file = "{trace}"'),
                            ("", "STR_REPLAY", f'file = "{other}"'))
        said = self.undo(point, "cpid = 1", status=2)
        expect(trace in said and other in said, said)
        os.chmod(trace, 0o666)
        said = self.undo(point, "cuid = 1", "--trace", trace, status=2)
        expect("a.trace" in said, said)
        os.chmod(trace, 0o600)
        said = self.undo(point, "cname = rm", "--trace", trace, status=2)
        expect("no operation of the trace tells cname" in said, said)
        said = self.undo(point, "nonsense = 1", "--trace", trace, status=2)
        expect("undo:1:1" in said, said)
        said = suite.tool("tracefs-ctl", point, "undo", "cuid = 12345",
                          "--trace", trace)
        expect_equal(said.returncode, 0, said.stderr)
        expect("no change in the trace matches" in said.stderr, said.stderr)
        mount.unmount()
        there = suite.folder("there")
        mount = suite.mount(source, there, ("", "STR_REPLAY", flight))
        said = self.undo(there, "cuid = 1", "--trace", trace, status=2)
        expect("is of the mount at" in said and "plain-mnt" in said, said)
        mount.unmount()

    def in_use(self):
        """Who has a file open that is given back is told."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            with open(source + "/f", "wb") as out:
                out.write(os.urandom(9000))
            mount, _ = self.mount(source, folder + "/kept")
            pid = self.process(source, "open('f', 'r+b').write(b'gone')")
            with open(source + "/f", "rb"):
                done = self.suite.tool("tracefs-ctl", source, "undo",
                                       f"cpid = {pid}", *AS_IT_WAS)
            expect_equal(done.returncode, 0, done.stderr)
            expect(f"process {os.getpid()}" in done.stderr, done.stderr)
            mount.unmount()

    def encrypted(self):
        """By the key that is named."""
        with self.store("ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            with open(source + "/f", "wb") as out:
                out.write(os.urandom(9000))
            before = state_of(source)
            key = self.suite.path("key")
            self.suite.command("tracefs-keygen", "secret", key)
            trace = self.suite.path("encrypted.trace")
            mount = self.suite.mount(source, source, (
                "", stream(folder + "/kept"),
                f'encrypt key = "file:{key}"; file = "{trace}"'), visibility="auto")
            pid = self.process(source, "import os; os.unlink('f')")
            self.undo(source, f"cpid = {pid}", status=2)
            self.undo(source, f"cpid = {pid}", "--key", key)
            expect_tree(state_of(source), before, "as it was")
            mount.unmount()


def main():
    own_namespace.enter({"tracefs-owner": OWNER})
    suite = Suite("live_undo_test", __doc__)
    live = LiveUndo(suite)
    suite.run("what others changed since stays", live.others)
    suite.run("what was changed below the mount stays", live.outside)
    keep = "STR_KEEP | STR_PID"
    suite.run("all below a process, by process records", live.below,
              keep + " | STR_PROCESS", 0, "ab")
    suite.run("who may be below a process is told", live.below,
              keep + " | STR_PPID | STR_PNAME", 1, "a")
    suite.run("without parents nobody knows who is below", live.below, keep, 2,
              "")
    suite.run("what was written through a map comes back", live.mapped)
    suite.run("an undo is taken back", live.twice)
    suite.run("an undo that was killed comes to the same end", live.killed)
    suite.run("one undo at a time", live.at_once)
    suite.run("an ordinary owner undoes", live.owner)
    suite.run("a trace in several files", live.rotated)
    suite.run("who uses a file is told", live.in_use)
    suite.run("an encrypted trace", live.encrypted)
    suite.run("what was kept is where the caller says", live.kept_elsewhere)
    suite.run("what cannot be is refused", live.refusals)
    for kind in KINDS:
        suite.run(f"a ransom is taken back beside others on {kind}",
                  live.ransom, kind)
    suite.run("a ransom is taken back beside others over io_uring",
              live.ransom, "ext4", "uring")
    suite.finish()


if __name__ == "__main__":
    main()
