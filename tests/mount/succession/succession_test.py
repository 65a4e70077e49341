#!/usr/bin/env python3
"""A mount outlives its daemon (--survive yes): it is killed at random moments
while users work who notice everything (restless.py).

  succession_test.py --bin build/release/bin                     for ctest
  succession_test.py --bin build/release/bin --seconds 600 --kills 10
"""

import glob
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemon_of, kill_daemon, successions_of  # noqa: E402
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (HANG_S, PATIENCE_S, Suite,  # noqa: E402
                             expect, expect_equal)


class Killer:
    """Kills the daemon of a mount, so many times a second."""

    def __init__(self, mount, a_second, seed):
        self.mount = mount
        self.gap_s = 1 / a_second
        self.random = random.Random(seed)
        self.kills = 0

    def run(self, going_on):
        in_vain = 0
        serving = 0
        while going_on():
            time.sleep(self.random.uniform(0, 2 * self.gap_s))
            # Some are killed before they serve, but users must get on, too.
            now = successions_of(self.mount)
            in_vain = 0 if now > serving else in_vain + 1
            serving = now
            if in_vain > 2 and self.kills > 0:
                continue
            self.kills += kill_daemon(self.mount)


class Deaths(Succession):
    def unmounted_meanwhile(self):
        """An unmount while there is no daemon ends the trace as any does."""
        _, point, trace, mount = self.mount()
        with open(os.path.join(point, "a"), "w", encoding="ascii") as file:
            file.write("x")
        os.kill(mount.pid, signal.SIGSTOP)
        os.kill(daemon_of(mount), signal.SIGKILL)
        umount = subprocess.Popen(["umount", "-l", point])
        time.sleep(0.2)
        os.kill(mount.pid, signal.SIGCONT)
        expect_equal(umount.wait(), 0, "umount")
        mount.wait(0)
        self.suite.command("tracefs-verify", trace)

    def told(self):
        """Statistics, metrics and the trace's own words."""
        _, point, trace, mount = self.mount()
        for _ in range(3):
            os.kill(daemon_of(mount), signal.SIGKILL)
            os.stat(os.path.join(point, "."))
            os.mkdir(os.path.join(point, f"d{time.monotonic_ns()}"))
        stats = json.loads(self.suite.command("tracefs-ctl", point, "stats",
                                              "--format", "json"))
        expect_equal(stats["survival"]["successions"], 3, "successions")
        expect_equal(stats["survival"]["keeper"], True, "a keeper")
        expect("another takes its place" in
               self.suite.command("tracefs-ctl", point, "explain"), "explain")
        mount.unmount()
        said = self.suite.tool("tracefs-dump", trace).stderr
        expect_equal(said.count("daemon.succession="), 3, said)
        expect_equal(successions_of(mount), 3, "messages")

    def refusals(self):
        """What it cannot go with is refused with a sentence."""
        source = self.suite.folder("refused", "source")
        point = self.suite.folder("refused", "mnt")
        tracefs = os.path.join(self.suite.bin, "tracefs-mount")
        file = f'file = "{self.suite.path("refused", "trace")}"'
        for filter_text, output, more in (
                ("STR_REPLAY", file, ()),
                ("", "async; " + file, ()),
                ("", 'unix = "/nowhere" when_full = spill '
                 f'"{self.suite.folder("spill", mode=0o700)}" max = 8M', ()),
                ("", f'flight = "{self.suite.path("refused", "x")}" size = 64K', ()),
                ("", file, ("--transport", "uring")),
                ("", file, ("--sandbox", "strict"))):
            flags = "STR_ALL"
            if filter_text.startswith("STR_"):
                filter_text, flags = "", filter_text
            config = self.suite.config((filter_text, flags, output))
            done = subprocess.run(
                [tracefs, source, point, "--config", config, "--foreground",
                 "--survive", "yes", *more], capture_output=True, text=True,
                timeout=PATIENCE_S, check=False)
            expect(done.returncode != 0 and "--survive yes" in done.stderr,
                   f"{filter_text} {output} {more}: {done.stderr}")

    # --- cases

    def sealed(self):
        keys = self.keys()
        anchors = os.path.join(keys, "anchors")
        said = self.killed_under_load(
            "auto",
            f'checksum seal = forward key = "file:{keys}/state" '
            f'sign = ed25519 sign_key = "file:{keys}/sign" '
            f'anchor = "file:{anchors}" anchor_every = 3; '
            'file = "%s" buf = 16K rotate_size = 512K',
            verify=("--key", os.path.join(keys, "verify"), "--key",
                    os.path.join(keys, "public"), "--anchors", anchors))
        # One epoch for one trace, however many daemons wrote it.
        with open(os.path.join(keys, "state"), encoding="ascii") as file:
            left = [int(first) for first in re.findall(
                r"^[0-9]+ ([0-9]+) [0-9a-f]+$", file.read(), re.M)]
        expect_equal(min(left), 1, "the first epoch that was not taken")
        return said

    def encrypted(self):
        key = ("--key", os.path.join(self.keys(), "key"))
        return self.killed_under_load(
            "auto", f'compress; encrypt key = "file:{key[1]}"; file = "%s" '
            "buf = 16K", dump=key, verify=key)

    def kept(self):
        """Parts that are too old are removed, whichever daemon made them."""
        _, point, trace, mount = self.mount(
            output='file = "%s" buf = 4K rotate_count = 50 keep = 3')
        killer = Killer(mount, 20, self.suite.options.seed)
        end = time.monotonic() + 4
        made = 0

        def going_on():
            nonlocal made
            for _ in range(20):
                os.mkdir(os.path.join(point, f"d{made}"))
                made += 1
            return time.monotonic() < end

        killer.run(going_on)
        mount.unmount()
        parts = sorted(glob.glob(trace + "*"))
        expect_equal(len(parts), 3, f"parts of {made} operations: {parts}")
        found = [event["path"] for event in self.suite.read(*parts)
                 if event["op"] == "mkdir"]
        expect_equal(len(found), len(set(found)), "once each")
        expect(found and found[-1].endswith(f"d{made - 1}"),
               f"the last one is not there: {found[-3:]}")
        return f"{killer.kills} kills"

    def received(self, recv_dies):
        """What waits for a receiver is known to later daemons."""
        base = self.suite.folder(f"received-{self.number}")
        os.chmod(base, 0o700)
        address = "unix:" + os.path.join(base, "socket")
        store = os.path.join(base, "store")
        os.mkdir(store, 0o700)

        def start():
            return self.suite.background(subprocess.Popen(
                [os.path.join(self.suite.bin, "tracefs-recv"), "--listen",
                 address, "--out", store], stderr=subprocess.PIPE))
        receiver = [start()]
        over = threading.Event()

        def restless():
            while recv_dies and not over.wait(1.5):
                receiver[0].kill()
                receiver[0].communicate()
                over.wait(0.3)
                receiver[0] = start()
        dying = threading.Thread(target=restless)
        dying.start()
        try:
            return self.killed_under_load(
                "auto", f'unix = "{os.path.join(base, "socket")}" buf = 8K '
                "retry = 200ms",
                traces=os.path.join(store, "*.trace"))
        finally:
            over.set()
            dying.join()
            receiver[0].kill()
            receiver[0].communicate()

    def killed_under_load(self, visibility, output='file = "%s"', **keys):
        options = self.suite.options
        source, point, trace, mount = self.mount(output,
                                                 visibility=visibility)
        killer = Killer(mount, options.kills, options.seed)
        users = self.users(source, point, options.seconds)
        killer.run(lambda: any(user.poll() is None for user in users))
        operations, longest, done = self.outcome(users, mount)
        expect(killer.kills > 0, "nothing was killed")
        expect(longest[0] < HANG_S,
               f"{longest[1]} took {longest[0]:.3f} s, "
               f"{killer.kills} kills")
        self.forgets_all(point)
        mount.unmount()
        events, parts = self.compare(trace, done, **keys)
        return (f"{killer.kills} kills, {operations} operations, none "
                f"disturbed, all of them among {events} in {parts} files; "
                f"the longest took {longest[0] * 1000:.0f} ms "
                f"({longest[1]})")

    def killed_while_it_appends(self):
        """SIGKILL ends a write(2) early: what it has put there is neither lost
        nor there twice."""
        source, point, _, mount = self.mount()
        killer = Killer(mount, 20, self.suite.options.seed)
        end = time.monotonic() + self.suite.options.seconds
        pieces = [random.Random(i).randbytes(1 << 20) for i in range(20)]
        wrong = []
        appended = 0

        def appends():
            nonlocal appended
            for turn in itertools.count():
                path = os.path.join(point, f"f{turn}")
                fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
                for piece in pieces:
                    os.write(fd, piece)
                os.close(fd)
                below = os.path.join(source, f"f{turn}")
                with open(below, "rb") as file:
                    if file.read() != b"".join(pieces):
                        wrong.append(f"{below}: {os.path.getsize(below)} bytes")
                os.unlink(path)
                appended += len(pieces)
                if time.monotonic() > end:
                    return

        user = threading.Thread(target=appends)
        user.start()
        killer.run(user.is_alive)
        user.join()
        expect_equal(wrong, [], f"files with another content, "
                     f"{killer.kills} kills")
        mount.unmount()
        return f"{killer.kills} kills, {appended} writes of 1 MiB"

    def ends_in_order(self):
        """What was killed and succeeded ends like any other mount."""
        _, point, _, mount = self.mount()
        with open(os.path.join(point, "a"), "w", encoding="ascii") as file:
            file.write("x")
        before = daemon_of(mount)
        expect(before is not None, "there is no daemon")
        os.kill(before, signal.SIGKILL)
        expect_equal(open(os.path.join(point, "a"), encoding="ascii").read(),
                     "x", "after a succession")
        expect(daemon_of(mount) != before, "the same daemon")
        mount.signal(signal.SIGTERM)
        mount.wait(0)
        expect(not mount.is_mounted(), "it is still mounted")


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=float, default=5,
                        help="a second, on average")


def main():
    suite = Suite("succession", __doc__, arguments)
    cases = Deaths(suite)
    suite.run("ends in order after a death", cases.ends_in_order)
    suite.run("unmounted while there is no daemon", cases.unmounted_meanwhile)
    suite.run("it is told", cases.told)
    suite.run("refusals", cases.refusals)
    suite.run("killed under load, auto", cases.killed_under_load, "auto")
    suite.run("killed under load, exact", cases.killed_under_load, "exact")
    suite.run("killed while it appends", cases.killed_while_it_appends)
    suite.run("killed under load, rotated", cases.killed_under_load, "auto",
              'file = "%s" buf = 16K rotate_size = 256K')
    suite.run("old parts are removed", cases.kept)
    suite.run("killed under load, sealed", cases.sealed)
    suite.run("killed under load, encrypted", cases.encrypted)
    suite.run("killed under load, received", cases.received, False)
    suite.run("killed under load, receiver, too", cases.received, True)
    suite.finish()


main()
