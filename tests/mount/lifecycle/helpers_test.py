#!/usr/bin/env python3
"""The processes beside a daemon, killed one by one while it serves: another
takes the place, or what is missing is told, in the log, in `tracefs-ctl MNT
stats` and in the metrics; and the mount works on."""

import json
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from processes import (adopt_orphans, children_of, descendants_of,  # noqa: E402
                       helpers_of, is_alive, kill_helpers_of, name_of)
from receiver_process import Receiver  # noqa: E402
from tracefs_harness import (Skip, Suite, expect, expect_equal,  # noqa: E402
                             wait_until)


class World:
    """A mount with metrics, and what it says of its helpers."""

    def __init__(self, suite, name, output=None, words="STR_ALL",
                 transport=None, wrapper=()):
        self.suite = suite
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mnt")
        self.trace = suite.path(name, "trace")
        self.metrics = suite.path(name, "metrics")
        with open(os.path.join(self.source, "below"), "w",
                  encoding="ascii") as out:
            out.write("text")
        self.mount = suite.mount(
            self.source, self.point,
            ("", words, output or f'file = "{self.trace}"'),
            transport=transport, wrapper=wrapper,
            options=("--metrics", f"unix:{self.metrics}"))

    def stats(self):
        said = self.suite.command("tracefs-ctl", self.point, "stats",
                                  "--format", "json")
        return {one["kind"]: one for one in json.loads(said)["helpers"]}

    def page(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.metrics)
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b""
            while part := client.recv(1 << 16):
                text += part
        return text.decode()

    def expect_counts(self, kind, living, died, replaced):
        wanted = {"kind": kind, "living": living, "died": died,
                  "replaced": replaced}
        wait_until(lambda: self.stats().get(kind) == wanted,
                   f"{wanted}: {self.stats()}")
        page = self.page()
        for line in (f'tracefs_helpers{{kind="{kind}"}} {living}',
                     f'tracefs_helper_deaths_total{{kind="{kind}"}} {died}',
                     f'tracefs_helper_replacements_total{{kind="{kind}"}} '
                     f'{replaced}'):
            expect(f"\n{line}\n" in page, f"no {line}:\n{page}")
        text = self.suite.command("tracefs-ctl", self.point, "stats")
        died_text = f" ({died} died, {replaced} replaced)" if died else ""
        expect(f"{kind} {living}{died_text}" in text, text)

    def expect_told(self, *words):
        wait_until(lambda: any(all(word in line for word in words)
                               for line in self.mount.messages().split("\n")),
                   f"{words} in the log:\n{self.mount.messages()}")

    def expect_served(self):
        with open(os.path.join(self.point, "below"), encoding="ascii") as back:
            expect_equal(back.read(), "text", "the file below")


def kill(pids):
    expect(pids, "there is none to kill")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def watchdog(suite):
    """It is replaced, with all that it knew; without its keeper it is not, and
    tracefs-ctl unmounts all the same."""
    world = World(suite, "watch")
    world.expect_counts("watch", 1, 0, 0)
    for number in (1, 2):
        kill(helpers_of(world.mount.pid, "tracefs-watch"))
        world.expect_counts("watch", 1, number, number)
        world.expect_served()
    world.expect_told("tracefs-watch", "died")
    kill_helpers_of(world.mount.pid)
    world.expect_counts("watch", 0, 3, 2)
    world.expect_told("tracefs-watch", "died", "umount(8) ends the mount", "no reload")
    world.expect_served()
    done = suite.tool("tracefs-ctl", world.point, "unmount")
    expect_equal(done.returncode, 0, done.stdout + done.stderr)
    expect(not world.mount.is_mounted(), "it is still mounted")
    world.mount.wait(0)
    suite.read(world.trace)


def watchdog_where_children_are_ignored(suite):
    """Whoever starts a mount may have been told nothing of the end of a child."""
    world = World(suite, "ignored",
                  wrapper=("env", "--ignore-signal=CHLD"))
    kill(helpers_of(world.mount.pid, "tracefs-watch"))
    world.expect_counts("watch", 1, 1, 1)
    world.mount.kill()
    wait_until(lambda: not world.mount.is_mounted(), "the watchdog")


def looker(suite):
    """It is replaced when something is to be looked at again."""
    world = World(suite, "look", words="STR_ALL | STR_EXE")
    subprocess.run(["cat", os.path.join(world.point, "below")], check=True,
                   stdout=subprocess.DEVNULL)
    wait_until(lambda: world.stats().get("look", {}).get("living"), "a looker")
    living = world.stats()["look"]["living"]
    kill(helpers_of(world.mount.pid, "tracefs-look"))
    world.expect_counts("look", 0, living, 0)
    world.expect_told("tracefs-look", "died")

    def again():
        # A process that it has not looked at yet.
        subprocess.run(["cat", os.path.join(world.point, "below")], check=True,
                       stdout=subprocess.DEVNULL)
        return world.stats()["look"]["replaced"]

    wait_until(again, "another looker")
    world.mount.unmount()
    exes = [event.get("exe") for event in suite.read(world.trace)
            if event.get("comm") == "cat"]
    expect(any(exe and exe.endswith("cat") for exe in exes[-20:]),
           f"the last ones have no program: {exes[-20:]}")


def dialer(suite):
    """Another makes the next connection; without its keeper the log says that
    there is none."""
    kept = suite.folder("dial", "kept")
    binary = os.path.join(suite.bin, "tracefs-recv")
    address = f"unix:{suite.path('dial', 'socket')}"
    with Receiver(binary, "--listen", address, "--out", kept) as receiver:
        before = set(children_of(os.getpid()))
        world = World(suite, "dial", output=f'{address.replace(":", " = ", 1)}'
                      .replace("unix = ", 'unix = "') + '"')
        keepers = [pid for pid in set(children_of(os.getpid())) - before
                   if name_of(pid) == "tracefs-keep"]
        expect_equal(len(keepers), 1, "keepers of dialers")
        world.expect_served()
        wait_until(lambda: os.listdir(kept), "the trace")
        kill(helpers_of(keepers[0], "tracefs-dial"))
        world.expect_counts("dial", 1, 1, 1)
        world.expect_told("tracefs-dial", address, "died")
        receiver.end()
    # Who made the connection that is needed now?
    with Receiver(binary, "--listen", address, "--out", kept) as receiver:
        world.expect_served()
        world.expect_told("connected again")
        dialers = helpers_of(keepers[0], "tracefs-dial")
        os.kill(keepers[0], signal.SIGKILL)
        kill(dialers)
        wait_until(lambda: not any(map(is_alive, dialers)), "its end")
        world.expect_counts("dial", 0, 2, 1)
        world.expect_told("tracefs-dial", address, "died", "add it again")
        world.expect_served()
        world.mount.unmount()
        receiver.end()
    traces = [os.path.join(folder, name)
              for folder, _, names in os.walk(kept) for name in names
              if not name.startswith(".")]
    expect_equal(len(traces), 1, "traces")
    reads = [event for event in suite.read(*traces) if event["op"] == "open"]
    expect_equal(len(reads), 3, "opens in the trace")


def trial(suite):
    """Nothing takes its place, and nothing but the policy needs it."""
    if suite.no_uring():
        raise Skip(suite.no_uring())
    world = World(suite, "trial", transport="uring")
    world.expect_counts("trial", 1, 0, 0)
    kill(helpers_of(world.mount.pid, "tracefs-trial"))
    world.expect_counts("trial", 0, 1, 0)
    world.expect_told("tracefs-trial", "died", "keep the policy")
    world.expect_served()
    world.mount.unmount()


def all_of_them(suite):
    """A mount whose helpers are all gone serves, and ends by umount(8)."""
    world = World(suite, "all")
    kill_helpers_of(world.mount.pid)
    wait_until(lambda: not any(map(is_alive, descendants_of(world.mount.pid))),
               "their end")
    world.expect_served()
    world.mount.unmount()
    suite.read(world.trace)


def main():
    suite = Suite("helpers", __doc__)
    adopt_orphans()
    for case in (watchdog, watchdog_where_children_are_ignored, looker,
                 dialer, trial, all_of_them):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
