#!/usr/bin/env python3
"""Another program takes over a mount (`tracefs-ctl MNT upgrade`) while users
work who notice everything (restless.py), and daemons are killed.

  upgrade_test.py --bin build/release/bin                        for ctest
  upgrade_test.py --bin build/release/bin --seconds 600
"""

import contextlib
import fcntl
import json
import mmap
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemon_of, kill_daemon, let_daemon_die  # noqa: E402
from processes import children_of, name_of  # noqa: E402
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (HANG_S, PATIENCE_S, Skip, Suite,  # noqa: E402
                             expect, expect_equal, wait_until)

STATE = b"tracefs-state-2"
# Runs the real one; on trial as it is.
WRAPPER = r"""
#include <string.h>
#include <unistd.h>
enum { LACKS, ENDS };
extern char** environ;
int main(int argc, char** argv) {
  int trial = 0;
  for (char** one = environ; *one; ++one) {
    if (strncmp(*one, "TRACEFS_INHERITANCE_", 20) == 0 &&
        strstr(*one, "\ntrial=")) {
      trial = 1;
    }
  }
  if (!trial && MODE == ENDS) _exit(1);
  for (char** one = environ; *one && !trial; ++one) {
    char* at = strstr(*one, "\ntracer_files=");
    if (at) at[strlen("\ntracer_files=3")] = '9';
  }
  execv(REAL, argv);
  return 1;
}
"""


def upgrade(suite, point):
    """What came of it: the exit status and what was said."""
    return subprocess.run([os.path.join(suite.bin, "tracefs-ctl"), point,
                           "upgrade"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)


def survival_of(suite, point):
    return json.loads(suite.command("tracefs-ctl", point, "stats", "--format",
                                    "json"))["survival"]


class Program:
    """The program of mounts, which is installed again while they run."""

    def __init__(self, suite):
        self.suite = suite
        self.folder = suite.folder(f"program-{id(self)}")
        self.built = os.path.join(suite.bin, "tracefs-mount")
        self.path = os.path.join(self.folder, "tracefs-mount")
        self.version = suite.command("tracefs-mount",
                                     "--version").split("\n")[0].split()[1]
        # It looks for it beside itself.
        os.symlink(os.path.join(suite.bin, "tracefs-ctl"),
                   os.path.join(self.folder, "tracefs-ctl"))
        self.install()

    def install(self, change=lambda program: program, mode=0o755):
        """As a package does: under another name first."""
        with open(self.built, "rb") as file:
            program = change(file.read())
        new = self.path + ".new"
        with open(new, "wb") as file:
            file.write(program)
        os.chmod(new, mode)
        os.rename(new, self.path)

    def other_version(self, number):
        """As long as the one there is; another build in every respect that a
        mount can see."""
        digits = str(number % 10)
        version = self.version[:-1] + digits
        # Compilers put texts after each other, with and without an end.
        there = re.compile(rb"(?<![0-9.])" + re.escape(self.version.encode()) +
                           rb"\0")

        def changed(program):
            program, count = there.subn(version.encode() + b"\0", program)
            expect(count > 0, f"no {self.version} in {self.built}")
            return program + os.urandom(64)

        self.install(changed)
        return version


class Upgrades(Succession):
    def __init__(self, suite):
        super().__init__(suite)
        self.program = Program(suite)

    def mount(self, output='file = "%s"', **more):
        self.program.install()
        # The harness runs what it finds there.
        built, self.suite.bin = self.suite.bin, self.program.folder
        try:
            return super().mount(output, **more)
        finally:
            self.suite.bin = built

    def upgraded(self, point):
        done = upgrade(self.suite, point)
        expect_equal(done.returncode, 0, done.stderr)
        return done.stdout

    # --- cases

    def told(self):
        """Statistics, the log and the trace say so; the process that a service
        manager knows stays."""
        _, point, trace, mount = self.mount()
        before = daemon_of(mount)
        version = self.program.other_version(7)
        said = self.upgraded(point)
        expect(version in said, said)
        expect(daemon_of(mount) != before, "the same daemon")
        with open(f"/proc/{daemon_of(mount)}/exe", "rb") as file:
            program = file.read()
        with open(self.program.path, "rb") as file:
            expect(program == file.read(), "another program runs")
        for _ in range(2):
            os.mkdir(os.path.join(point, f"d{time.monotonic_ns()}"))
            self.upgraded(point)
        # What is still to be said goes with who would say it.
        wait_until(lambda: mount.messages().count(
            "another program serves it") == 3, "the last message")
        let_daemon_die(mount, point)
        os.mkdir(os.path.join(point, "after a death"))
        survival = survival_of(self.suite, point)
        expect_equal((survival["upgrades"], survival["successions"],
                      survival["keeper"], survival["version"]),
                     (3, 1, True, version), "told by stats")
        expect(f"Tracefs {version}" in self.suite.command(
            "tracefs-ctl", point, "stats"), "told to a person")
        mount.unmount()
        said = self.suite.tool("tracefs-dump", trace).stderr
        expect_equal((said.count(f"daemon.upgrade={version}"),
                      said.count("daemon.succession=1")), (3, 1), said)
        expect_equal(mount.messages().count("another program serves it"), 3,
                     mount.messages())
        self.suite.command("tracefs-verify", trace)

    def goes_on(self, point, mount, why, expected):
        """It is refused, with a reason, and nothing has happened."""
        before = daemon_of(mount)
        count = survival_of(self.suite, point)["upgrades"]
        done = upgrade(self.suite, point)
        expect(done.returncode != 0 and expected in done.stderr,
               f"{why}: {done}")
        expect_equal(daemon_of(mount), before, f"{why}: the daemon")
        expect_equal(survival_of(self.suite, point)["upgrades"], count, why)
        os.mkdir(os.path.join(point, why))

    def refusals(self):
        _, point, trace, mount = self.mount()
        program = self.program
        program.install(lambda p: p.replace(STATE, b"tracefs-state-0"))
        self.goes_on(point, mount, "another state", "keeps its state otherwise")
        program.install(mode=0o775)
        self.goes_on(point, mount, "writable", "can be changed by others")
        program.install()
        os.chown(program.path, 1234, -1)
        self.goes_on(point, mount, "foreign", "can be changed by others")
        program.install(mode=0o644)
        self.goes_on(point, mount, "no program", "is no program")
        program.install(lambda p: p[:50000])
        self.goes_on(point, mount, "half a program", "")
        with open("/bin/true", "rb") as file:
            true = file.read()
        program.install(lambda p: true)
        self.goes_on(point, mount, "says nothing", "without a word")
        os.unlink(program.path)
        self.goes_on(point, mount, "gone", "No such file")
        os.mkdir(program.path)
        self.goes_on(point, mount, "a folder", "is no program")
        os.rmdir(program.path)
        # An option that it does not know any more.
        program.install(lambda p: p.replace(b"survive\0", b"revived\0"))
        self.goes_on(point, mount, "an option", "")
        # What a config may say.
        program.install(lambda p: p.replace(b"STR_ALL\0", b"STR_ANY\0"))
        self.goes_on(point, mount, "a word of the config", "STR_ALL")
        program.install()
        self.upgraded(point)
        let_daemon_die(mount, point)
        mount.unmount()
        made = [event["path"] for event in self.suite.read(trace)
                if event["op"] == "mkdir"]
        expect_equal(len(made), len(set(made)), "each once")
        expect_equal(len(made), 10, f"in the trace: {made}")

    def not_of_others(self):
        """Only of a mount that survives."""
        with self.suite.mounted() as (_, point, _):
            done = upgrade(self.suite, point)
            expect(done.returncode != 0 and "--survive yes" in done.stderr,
                   f"{done}")

    def few_descriptors(self):
        _, point, _, mount = self.mount()
        files = [open(os.path.join(point, f"f{i}"), "w", encoding="ascii")
                 for i in range(20)]
        keeper = mount.pid
        used = max(int(fd) for fd in os.listdir(f"/proc/{keeper}/fd"))
        limit = subprocess.run(
            ["prlimit", f"--pid={keeper}", "--raw", "--noheadings",
             "--output=SOFT,HARD", "--nofile"], capture_output=True, text=True,
            check=True).stdout.split()
        subprocess.run(["prlimit", f"--pid={keeper}",
                        f"--nofile={used + 2}:{limit[1]}"], check=True)
        done = upgrade(self.suite, point)
        subprocess.run(["prlimit", f"--pid={keeper}",
                        f"--nofile={limit[0]}:{limit[1]}"], check=True)
        for file in files:
            file.write("x")
            file.close()
        self.upgraded(point)
        mount.unmount()
        return f"exit status {done.returncode}: {done.stderr.strip()}"

    def what_is_open(self):
        """Files, maps, locks and listings go on."""
        _, point, _, mount = self.mount()
        path = os.path.join(point, "file")
        with open(path, "wb+", buffering=0) as file, \
                open(path, "rb+", buffering=0) as mapped:
            file.write(b"0123456789" * 1000)
            mapping = mmap.mmap(mapped.fileno(), 10000)
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.lockf(mapped, fcntl.LOCK_EX, 10, 100)
            for i in range(300):
                os.mkdir(os.path.join(point, f"d{i:03}"))
            folder = os.open(point, os.O_RDONLY)
            listing = os.scandir(folder)
            seen = [next(listing).name for _ in range(10)]
            gone = open(os.path.join(point, "gone"), "w+", encoding="ascii")
            gone.write("still here")
            gone.flush()
            os.unlink(gone.name)
            for turn in range(3):
                self.program.other_version(turn)
                self.upgraded(point)
                mapping[turn] = ord("m")
                file.seek(5000 + 10 * turn)
                file.write(b"written")
                expect_equal(os.pread(mapped.fileno(), 1, turn), b"m", "a map")
                done = subprocess.run(
                    ["flock", "-n", path, "true"], check=False)
                expect(done.returncode != 0, "the lock is lost")
            seen += [entry.name for entry in listing]
            expect_equal(sorted(name for name in seen if name[0] == "d"),
                         [f"d{i:03}" for i in range(300)], "a listing")
            gone.seek(0)
            expect_equal(gone.read(), "still here", "a file without a name")
            gone.close()
            os.close(folder)
            mapping.close()
        mount.unmount()

    def changed_by_clients(self):
        """What was added, filtered, stopped and removed before stays so, and
        can be changed afterwards."""
        _, point, _, mount = self.mount()
        traces = [self.suite.path(f"added-{self.number}-{i}")
                  for i in range(3)]

        def ctl(*words):
            return self.suite.command("tracefs-ctl", point, *words)

        def add(i):
            config = self.suite.config(
                ("", "STR_ALL", f'file = "{traces[i]}"'))
            return ctl("add", config).split()[-1].strip(".")
        first = add(0)
        ctl("set-filter", first, "op == mkdir")
        second = add(1)
        ctl("stop", second)
        self.upgraded(point)
        os.mkdir(os.path.join(point, "one"))
        with open(os.path.join(point, "no"), "w", encoding="ascii"):
            pass
        ctl("start", second)
        os.mkdir(os.path.join(point, "two"))
        third = add(2)
        self.program.other_version(3)
        self.upgraded(point)
        os.mkdir(os.path.join(point, "three"))
        ctl("remove", first)
        listed = json.loads(ctl("list", "--format", "json"))["tracers"]
        expect_equal([str(tracer["id"]) for tracer in listed],
                     ["1", second, third], "tracers")
        mount.unmount()
        for trace, wanted in zip(traces, (["one", "two", "three"],
                                          ["two", "three"], ["three"])):
            made = [event["path"].strip("/") for event in
                    self.suite.read(trace) if event["op"] == "mkdir"]
            expect_equal(made, wanted, trace)
            self.suite.command("tracefs-verify", trace)

    def counted(self):
        """An aggregate goes on; nothing that it counted is lost."""
        self.number += 1
        base = f"case-{self.number}"
        source = self.suite.folder(base, "source")
        point = self.suite.folder(base, "mnt")
        trace = self.suite.path(base, "trace")
        config = self.suite.path(base, "config")
        with open(config, "w", encoding="ascii") as file:
            file.write('{ { op == mkdir } { aggregate = { by op; values count '
                       '} } { file = "%s" } }\n' % trace)
        self.program.install()
        mount = self.suite.mount_command(
            [self.program.path, source, point, "--config", config,
             "--foreground", "--survive", "yes"], point)
        for turn in range(5):
            for i in range(100):
                os.mkdir(os.path.join(point, f"d{turn}-{i}"))
            self.upgraded(point)
        mount.unmount()
        dumped = self.suite.tool("tracefs-dump", trace)
        expect("500" in dumped.stdout and "lost" not in dumped.stderr.replace(
            "lost 0", ""), dumped.stdout[-2000:] + dumped.stderr)

    def the_end_of_the_new(self):
        """A program that ends when there is no daemon: the old one goes on."""
        _, point, _, mount = self.mount()
        other = self.program.folder
        for kill in range(6):
            over = threading.Event()

            def killer(after_s):
                while not over.is_set():
                    if any(name_of(child) == "tracefs-trial"
                           for child in children_of(mount.pid)):
                        time.sleep(after_s)
                        for child in children_of(mount.pid):
                            if name_of(child) == "tracefs-trial":
                                with contextlib.suppress(ProcessLookupError):
                                    os.kill(child, signal.SIGKILL)
                        return
            thread = threading.Thread(target=killer, args=(kill * 0.01,))
            thread.start()
            done = upgrade(self.suite, point)
            over.set()
            thread.join()
            os.mkdir(os.path.join(point, f"d{kill}"))
            expect(done.returncode == 0 or "without a word" in done.stderr,
                   f"{done}")
        expect(os.path.isdir(other), "the program")
        mount.unmount()

    def wrapped(self, mode):
        """A program that is fit on trial, and not when it counts."""
        source = os.path.join(self.program.folder, "wrapper.c")
        made = os.path.join(self.program.folder, "wrapper")
        with open(source, "w", encoding="ascii") as file:
            file.write(WRAPPER)
        subprocess.run(["cc", "-o", made, f'-DREAL="{self.program.built}"',
                        f"-DMODE={mode}", source], check=True)
        with open(made, "rb") as file:
            wrapper = file.read()
        self.program.install(lambda program: wrapper)

    def gives_up_late(self):
        """The new program cannot go on where the old one is gone already: the
        old daemon goes on, and the process that is known stays."""
        if shutil.which("cc") is None:
            raise Skip("no compiler")
        _, point, trace, mount = self.mount()
        before = daemon_of(mount)
        self.wrapped("LACKS")
        self.goes_on(point, mount, "lacks", "the descriptor of 'tracer.1'")
        expect_equal(name_of(mount.pid), "tracefs-standin", "the old keeper")
        expect_equal(survival_of(self.suite, point)["keeper"], True, "a keeper")
        self.program.install()
        os.kill(before, signal.SIGKILL)
        os.mkdir(os.path.join(point, "after a death"))
        self.upgraded(point)
        os.mkdir(os.path.join(point, "after an upgrade"))
        expect_equal(survival_of(self.suite, point)["upgrades"], 1, "upgrades")
        mount.unmount()
        self.made_are(trace, 3)

    def made_are(self, trace, count):
        made = [event["path"] for event in self.suite.read(trace)
                if event["op"] == "mkdir"]
        expect_equal((len(made), len(set(made))), (count, count), f"{made}")

    def ends_late(self):
        """It ends when there is no daemon that serves."""
        if shutil.which("cc") is None:
            raise Skip("no compiler")
        _, point, trace, mount = self.mount()
        self.wrapped("ENDS")
        done = upgrade(self.suite, point)
        expect(done.returncode != 0 and "take over has ended" in done.stderr,
               f"{done}")
        os.mkdir(os.path.join(point, "a"))
        self.program.install()
        self.upgraded(point)
        os.mkdir(os.path.join(point, "b"))
        expect_equal(mount.process.wait(), 1, "the new program")
        subprocess.run(["umount", point], check=True)
        self.suite.command("tracefs-dump", "--wait", trace)
        self.made_are(trace, 2)

    def keeper_killed(self):
        """At any moment of an upgrade: the mount goes on."""
        said = []
        for delay in (0, 0.01, 0.03, 0.06, 0.1, 0.2):
            _, point, trace, mount = self.mount()
            asks = subprocess.Popen(
                [os.path.join(self.suite.bin, "tracefs-ctl"), point,
                 "upgrade"], stderr=subprocess.PIPE, text=True)
            while asks.poll() is None and not any(
                    name_of(child) == "tracefs-trial"
                    for child in children_of(mount.pid)):
                time.sleep(0.001)
            time.sleep(delay)
            os.kill(mount.pid, signal.SIGKILL)
            os.mkdir(os.path.join(point, "a"))
            _, errors = asks.communicate(timeout=PATIENCE_S)
            said.append(asks.returncode)
            expect(asks.returncode != 0 or not errors, errors)
            end = time.monotonic() + PATIENCE_S
            while not survival_of(self.suite, point)["keeper"]:
                expect(time.monotonic() < end, "no keeper comes")
                time.sleep(0.05)
            self.upgraded(point)
            os.mkdir(os.path.join(point, "b"))
            mount.process.wait()
            subprocess.run(["umount", point], check=True)
            self.suite.command("tracefs-dump", "--wait", trace)
            self.made_are(trace, 2)
        return f"exit status of each: {said}"

    def under_load(self, output='file = "%s"', kills=0.0, visibility="auto",
                   **keys):
        options = self.suite.options
        source, point, trace, mount = self.mount(output, visibility=visibility)
        users = self.users(source, point, options.seconds)
        rng = random.Random(options.seed)
        upgrades = deaths = refused = 0
        while any(user.poll() is None for user in users):
            time.sleep(rng.uniform(0, 2 / options.upgrades))
            if rng.random() < kills:
                deaths += kill_daemon(mount)
                continue
            if upgrades % 2 == 0:
                self.program.other_version(upgrades)
            done = upgrade(self.suite, point)
            if done.returncode == 0:
                upgrades += 1
            else:
                # A daemon may die under it.
                expect(kills > 0, f"{done}\n{mount.messages()}")
                refused += 1
        operations, longest, done = self.outcome(users, mount)
        expect(upgrades > 0, "there was no upgrade")
        expect(longest[0] < HANG_S,
               f"{longest[1]} took {longest[0]:.3f} s")
        let_daemon_die(mount, point)
        self.forgets_all(point)
        mount.unmount()
        events, parts = self.compare(trace, done, **keys)
        return (f"{upgrades} upgrades, {deaths} deaths, {refused} not done; "
                f"{operations} operations, none disturbed, all of them among "
                f"{events} in {parts} files; the longest took "
                f"{longest[0] * 1000:.0f} ms ({longest[1]})")

    def sealed(self):
        keys = self.keys()
        anchors = os.path.join(keys, "anchors")
        return self.under_load(
            f'checksum seal = forward key = "file:{keys}/state" '
            f'sign = ed25519 sign_key = "file:{keys}/sign" '
            f'anchor = "file:{anchors}" anchor_every = 3; '
            'file = "%s" buf = 16K rotate_size = 512K', kills=0.2,
            verify=("--key", os.path.join(keys, "verify"), "--key",
                    os.path.join(keys, "public"), "--anchors", anchors))

    def encrypted(self):
        key = ("--key", os.path.join(self.keys(), "key"))
        return self.under_load(
            f'compress; encrypt key = "file:{key[1]}"; file = "%s" buf = 16K',
            kills=0.2, dump=key, verify=key)


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--upgrades", type=float, default=2,
                        help="a second, on average")


def main():
    suite = Suite("upgrade", __doc__, arguments)
    cases = Upgrades(suite)
    suite.run("it is told", cases.told)
    suite.run("refusals", cases.refusals)
    suite.run("not of others", cases.not_of_others)
    suite.run("few descriptors", cases.few_descriptors)
    suite.run("what is open", cases.what_is_open)
    suite.run("changed by clients", cases.changed_by_clients)
    suite.run("counted", cases.counted)
    suite.run("trials that are killed", cases.the_end_of_the_new)
    suite.run("gives up late", cases.gives_up_late)
    suite.run("ends late", cases.ends_late)
    suite.run("keeper killed", cases.keeper_killed)
    suite.run("under load", cases.under_load)
    suite.run("under load, exact", cases.under_load, 'file = "%s"', 0.0,
              "exact")
    suite.run("under load, daemons killed", cases.under_load, 'file = "%s"',
              0.5)
    suite.run("under load, rotated", cases.under_load,
              'file = "%s" buf = 16K rotate_size = 256K', 0.2)
    suite.run("under load, sealed", cases.sealed)
    suite.run("under load, encrypted", cases.encrypted)
    suite.finish()


main()
