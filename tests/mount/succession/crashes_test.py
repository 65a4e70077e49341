#!/usr/bin/env python3
"""A mount with --survive yes whose daemons crash, and whose keepers are killed.

  crashes_test.py --bin build/release/bin
"""

import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from processes import (adopt_orphans, descendants_of, helpers_of,  # noqa: E402
                       is_alive, name_of)
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (PATIENCE_S, Suite, expect,  # noqa: E402
                             expect_equal, wait_until)

# As tracefs/survive/keeper.h has them.
MOST_CRASHES = 10


class Crashes(Succession):
    def mount(self, output="", **more):  # pylint: disable=arguments-differ
        return super().mount(f'file = "%s" {output}', **more)

    # A keeper that was killed leaves them to this process.
    def named(self, mount, name):
        for one in [mount.pid, *descendants_of(mount.pid),
                    *descendants_of(os.getpid())]:
            if name_of(one) == name and is_alive(one):
                return one
        return None

    def kill_keepers(self, mount):
        """Both, so that neither replaces the other."""
        os.kill(mount.pid, signal.SIGSTOP)
        for one in (self.named(mount, "tracefs-spare"), mount.pid):
            os.kill(one, signal.SIGKILL)
        mount.process.wait()

    def daemon(self, mount):
        return self.named(mount, "tracefs-mount")

    def keeper(self, mount):
        return self.named(mount, "tracefs-keeper")

    def crash(self, mount):
        """False: there is none any more."""
        before = self.daemon(mount)
        if before is None:
            return False
        os.kill(before, signal.SIGSEGV)
        wait_until(lambda: self.daemon(mount) != before, "its end")
        return True

    def crash_until_the_end(self, mount):
        """There may be none for a moment, before the next."""
        def ended():
            self.crash(mount)
            time.sleep(0.05)
            return mount.process.poll() is not None
        wait_until(ended, "the end")

    def stats(self, point):
        return json.loads(self.suite.command(
            "tracefs-ctl", point, "stats", "--format", "json"))

    def make(self, point, name):
        with open(os.path.join(point, name), "w", encoding="ascii") as file:
            file.write(name)

    # --- cases

    def goes_on_untraced(self):
        """Where daemons crash, the traces end in order and the mount goes
        on, whatever dies afterwards."""
        source, point, trace, mount = self.mount()
        held = open(os.path.join(point, "held"), "w", encoding="ascii")
        self.make(point, "traced")
        for _ in range(MOST_CRASHES + 1):
            expect(self.crash(mount), "it is gone:\n" + mount.messages())
            os.stat(os.path.join(point, "."))
        wait_until(lambda: "goes on without" in mount.messages(),
                   "a message about it")
        self.make(point, "untraced")
        self.suite.command("tracefs-verify", trace)
        survival = self.stats(point)["survival"]
        expect_equal(survival["tracing"], False, "tracing")
        expect_equal(survival["crashes"], MOST_CRASHES + 1, "crashes")
        os.kill(self.daemon(mount), signal.SIGKILL)
        held.write("held")
        held.close()
        self.make(point, "untraced, too")
        for name in ("held", "traced", "untraced", "untraced, too"):
            with open(os.path.join(source, name), encoding="ascii") as file:
                expect_equal(file.read(), name, f"what was written to {name}")
        mount.unmount()
        self.suite.command("tracefs-verify", trace)
        names = {os.path.basename(event.get("path", ""))
                 for event in self.suite.read(trace)}
        expect("traced" in names, f"the trace lacks its beginning: {names}")
        expect(not {"untraced", "untraced, too"} & names,
               "it goes on where it has ended")
        with open(trace, "rb") as file:
            end = file.read()[-2000:]
        expect(b"daemon.tracing" in end and b"crashes" in end,
               "the end of the trace does not say why")

    def ends_if_that_crashes_too(self):
        """Daemons that crash without traces are given up."""
        _, _, trace, mount = self.mount()
        self.crash_until_the_end(mount)
        wait_until(lambda: not mount.is_mounted(), "the mount goes")
        expect("the mount ends: daemons crash again and again"
               in mount.messages(), mount.messages())
        self.suite.command("tracefs-verify", trace)

    def stays_shut(self):
        """Where nothing may be done unrecorded, nothing is done."""
        source, point, _, mount = self.mount(output="when_full = fail")
        self.crash_until_the_end(mount)
        time.sleep(0.5)
        expect(mount.is_mounted(), "what lies below is uncovered")
        try:
            self.make(point, "unrecorded")
            expect(False, "something was done")
        except OSError:
            pass
        expect_equal(os.listdir(source), [], "what is below")
        subprocess.run(["umount", "-l", point], check=True)

    def deadly_request(self):
        """A request that three daemons have crashed at gets EIO; others that
        were served at the time go on."""
        below = self.suite.folder("deadly-below", mode=0o777)
        source = self.suite.folder("deadly-source")
        store = self.suite.mount(below, source,
                                 self.suite.path("deadly-store-trace"),
                                 visibility="auto")
        _, point, trace, mount = self.mount(source=source, visibility="auto")
        self.make(point, "before")
        time.sleep(0.5)  # until it is closed below, too
        os.kill(store.pid, signal.SIGSTOP)
        try:
            caller = subprocess.Popen(
                ["mkdir", os.path.join(point, "deadly")],
                stderr=subprocess.PIPE, text=True)

            def at_it():
                daemon = self.daemon(mount)
                if daemon is None:
                    return False
                for task in os.listdir(f"/proc/{daemon}/task"):
                    try:
                        with open(f"/proc/{daemon}/task/{task}/stack",
                                  encoding="ascii") as file:
                            if "request_wait_answer" in file.read():
                                return True
                    except OSError:
                        continue
                return False

            for _ in range(3):
                wait_until(at_it, "it serves the request")
                expect(self.crash(mount), mount.messages())
            _, error = caller.communicate(timeout=PATIENCE_S)
        finally:
            os.kill(store.pid, signal.SIGCONT)
        expect("Input/output error" in error, f"mkdir: {error!r}")
        wait_until(lambda: "it got EIO" in mount.messages(), "a message")
        os.mkdir(os.path.join(point, "after"))
        expect_equal(self.stats(point)["survival"]["refused"], 1, "refused")
        mount.unmount()
        store.unmount()
        self.suite.command("tracefs-verify", trace)
        with open(trace, "rb") as file:
            expect(b"daemon.refused" in file.read(),
                   "the trace does not tell of it")

    def keepers_killed(self):
        """A spare takes the place of each keeper, and daemons go on to be
        replaced."""
        _, point, trace, mount = self.mount()
        made = 0
        for number in range(1, 4):
            daemon = self.daemon(mount)
            os.kill(self.keeper(mount), signal.SIGKILL)
            wait_until(lambda n=number: f"in its place ({n} so far)"
                       in mount.messages(), "a message")
            expect_equal(self.daemon(mount), daemon, "the daemon")
            for _ in range(2):
                os.kill(self.daemon(mount), signal.SIGKILL)
                os.mkdir(os.path.join(point, f"d{made}"))
                made += 1
        survival = self.stats(point)["survival"]
        expect_equal((survival["keepers"], survival["successions"],
                      survival["keeper"]), (3, 6, True), "counted")
        subprocess.run(["umount", point], check=True)
        wait_until(lambda: self.daemon(mount) is None
                   and self.keeper(mount) is None
                   and self.named(mount, "tracefs-spare") is None,
                   "all of them end")
        self.suite.command("tracefs-verify", trace)
        found = sorted(event["path"].rsplit("/", 1)[-1]
                       for event in self.suite.read(trace)
                       if event["op"] == "mkdir")
        expect_equal(found, sorted(f"d{i}" for i in range(made)),
                     "directories in the trace")

    def keeper_and_daemon_killed(self):
        """Nobody notices that either."""
        _, point, _, mount = self.mount()
        held = open(os.path.join(point, "held"), "w", encoding="ascii")
        keeper, daemon = mount.pid, self.daemon(mount)
        os.kill(keeper, signal.SIGKILL)
        os.kill(daemon, signal.SIGKILL)
        held.write("x")
        held.close()
        os.mkdir(os.path.join(point, "d"))
        subprocess.run(["umount", point], check=True)

    def all_killed(self):
        """Then it goes away as any mount does, and the next one starts."""
        source, point, trace, mount = self.mount()
        os.mkdir(os.path.join(point, "d"))
        daemon = self.daemon(mount)
        self.kill_keepers(mount)
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not mount.is_mounted(),
                   "the watchdog takes the mount away")
        again = self.suite.mount(source, point, trace + "-2", transport="dev",
                                 options=("--survive", "yes"))
        expect(os.path.isdir(os.path.join(point, "d")), "the next mount")
        again.unmount()

    def without_keepers(self):
        """Without keeper and spare the daemon goes on, and says so."""
        _, point, _, mount = self.mount()
        daemon = self.daemon(mount)
        self.kill_keepers(mount)
        wait_until(lambda: "would start another daemon is gone"
                   in mount.messages(), "a message")
        os.mkdir(os.path.join(point, "a"))
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not mount.is_mounted(),
                   "the watchdog takes the mount away")

    def spare_killed(self):
        """The keeper makes another."""
        _, point, _, mount = self.mount()
        spare = self.named(mount, "tracefs-spare")
        os.kill(spare, signal.SIGKILL)
        wait_until(lambda: self.named(mount, "tracefs-spare")
                   not in (None, spare), "another")
        os.kill(mount.pid, signal.SIGKILL)
        os.kill(self.daemon(mount), signal.SIGKILL)
        os.mkdir(os.path.join(point, "a"))
        subprocess.run(["umount", point], check=True)

    def watchdog_replaced(self):
        """A watchdog that took the place of another is known to all later
        daemons."""
        _, point, _, mount = self.mount()
        for number in range(3):
            before = helpers_of(mount.pid, "tracefs-watch")[0]
            os.kill(before, signal.SIGKILL)
            # The daemon looks after it each second.
            wait_until(lambda b=before: mount.messages().count("tracefs-watch")
                       > number and helpers_of(mount.pid, "tracefs-watch")
                       not in ([], [b]), "another watchdog")
            time.sleep(1.5)
            os.kill(self.daemon(mount), signal.SIGKILL)
            os.mkdir(os.path.join(point, f"d{number}"))
        expect(mount.is_mounted(), "it was taken away")
        mount.signal(signal.SIGTERM)
        mount.wait(0)
        expect(not mount.is_mounted(), "it is still mounted")


def main():
    suite = Suite("crashes", __doc__)
    adopt_orphans()
    cases = Crashes(suite)
    suite.run("goes on untraced", cases.goes_on_untraced)
    suite.run("ends if that crashes, too", cases.ends_if_that_crashes_too)
    suite.run("stays shut", cases.stays_shut)
    suite.run("a deadly request", cases.deadly_request)
    suite.run("keepers killed", cases.keepers_killed)
    suite.run("keeper and daemon killed", cases.keeper_and_daemon_killed)
    suite.run("all killed", cases.all_killed)
    suite.run("keeper and spare killed", cases.without_keepers)
    suite.run("spare killed", cases.spare_killed)
    suite.run("watchdog replaced", cases.watchdog_replaced)
    suite.finish()


main()
