#!/usr/bin/env python3
"""What clients have changed about the tracers of a mount with --survive yes is
as they left it, however many daemons were killed since.

  control_test.py --bin build/release/bin
"""

import glob
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import (daemon_of, daemons_dying,  # noqa: E402
                    let_daemon_die)
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (Suite, expect,  # noqa: E402
                             expect_equal, wait_until)
from users import restless_users  # noqa: E402

USERS = 2
# A client that asks while a daemon dies gets no answer, and looks what came
# of it.
NO_ANSWER = ("ended the connection", "no control socket", "talking to the mount",
             "connect to")


class Control(Succession):
    def mount(self, output='file = "%s"', **more):
        source, self.point, self.trace, mount = super().mount(output, **more)
        self.made = []
        return source, mount

    def ctl(self, *arguments, status=0):
        return self.suite.command("tracefs-ctl", self.point, *arguments,
                                  status=status)

    def config(self, name, filter_text="", output='file = "%s"', drivers="STR_ALL"):
        """A config of one tracer, and the trace that it makes."""
        trace = self.suite.path(self.base, name)
        config = trace + ".conf"
        with open(config, "w", encoding="utf-8") as file:
            file.write("{ { %s } { stream = { %s } } { %s } }\n" % (
                filter_text, drivers, output.replace("%s", trace)))
        return config, trace

    def tracers(self):
        said = json.loads(self.ctl("list", "--format", "json"))
        return {one["id"]: one for one in said["tracers"]}

    def die(self, mount):
        let_daemon_die(mount, self.point)

    def make(self, name):
        os.mkdir(os.path.join(self.point, name))

    def made_in(self, *traces):
        return [os.path.basename(event["path"])
                for event in self.suite.read(*traces)
                if event["op"] == "mkdir"]

    # --- cases

    def as_they_were_left(self):
        _, mount = self.mount()
        config, added = self.config("added")
        expect_equal(self.ctl("add", config).split()[-1], "2", "its id")
        self.make("a")
        self.die(mount)
        self.make("b")
        self.ctl("set-filter", "2", 'op = mkdir AND cuid = root AND name ~ "k*"')
        self.ctl("stop", "1")
        self.die(mount)
        self.make("c")
        self.make("k1")
        self.die(mount)
        there = self.tracers()
        expect_equal(sorted(there), [1, 2], "tracers")
        expect_equal([there[1]["state"], there[2]["state"]],
                     ["stopped", "running"], "states")
        expect('"k*"' in there[2]["filter"], f"its filter: {there[2]}")
        self.make("k2")
        self.ctl("start", "1")
        self.die(mount)
        self.make("d")
        self.ctl("remove", "2")
        self.suite.command("tracefs-verify", added)
        self.die(mount)
        self.make("k3")
        expect_equal(sorted(self.tracers()), [1], "tracers")
        again, second = self.config("again")
        expect_equal(self.ctl("add", again).split()[-1], "3",
                     "an id that no other has had")
        self.die(mount)
        self.make("e")
        self.ctl("remove", "1")
        self.die(mount)
        self.make("f")
        self.die(mount)
        expect_equal(sorted(self.tracers()), [3], "tracers")
        mount.unmount()
        for trace in (self.trace, added, second):
            self.suite.command("tracefs-verify", trace)
        expect_equal(self.made_in(self.trace), ["a", "b", "d", "k3", "e"],
                     "in the first")
        expect_equal(self.made_in(added), ["a", "b", "k1", "k2"],
                     "in the one that was added")
        expect_equal(self.made_in(second), ["e", "f"], "in the last")

    def several_parts(self):
        """Parts, seals and keys of an added tracer go on, too."""
        _, mount = self.mount()
        keys = self.suite.folder(self.base, "keys", mode=0o700)
        for kind, *names in (("seal", "state", "verify"),
                             ("sign", "sign", "public"), ("secret", "key")):
            self.suite.command("tracefs-keygen", kind,
                               *(os.path.join(keys, name) for name in names))
        sealed, sealed_trace = self.config(
            "sealed", output=f'checksum seal = forward '
            f'key = "file:{keys}/state" sign = ed25519 '
            f'sign_key = "file:{keys}/sign" '
            f'anchor = "file:{keys}/anchors" anchor_every = 1; '
            'file = "%s" buf = 4K rotate_count = 20')
        secret, secret_trace = self.config(
            "secret", output=f'encrypt key = "file:{keys}/key"; file = "%s"')
        self.ctl("add", sealed)
        self.ctl("add", secret)
        made = []
        for death in range(4):
            for i in range(30):
                made.append(f"d{death}-{i}")
                self.make(made[-1])
            self.die(mount)
        mount.unmount()
        parts = sorted(set(glob.glob(sealed_trace + "*")) - {sealed})
        expect(len(parts) > 3, f"parts: {parts}")
        self.suite.command("tracefs-verify", "--key",
                           os.path.join(keys, "verify"), "--key",
                           os.path.join(keys, "public"), "--anchors",
                           os.path.join(keys, "anchors"), *parts)
        expect_equal(self.made_in(*parts), made, "in the sealed one")
        read = self.suite.tool("tracefs-dump", "--key",
                               os.path.join(keys, "key"), "--format", "jsonl",
                               "--filter", "op = mkdir", secret_trace)
        expect_equal(len(read.stdout.splitlines()), len(made),
                     f"in the encrypted one: {read.stderr}")

    def received(self):
        """One that sends to a receiver."""
        _, mount = self.mount()
        folder = self.suite.folder(self.base, "receiver", mode=0o700)
        store = self.suite.folder(self.base, "receiver", "store", mode=0o700)
        socket = os.path.join(folder, "socket")
        receiver = self.suite.background(subprocess.Popen(
            [os.path.join(self.suite.bin, "tracefs-recv"), "--listen",
             "unix:" + socket, "--out", store], stderr=subprocess.PIPE))
        wait_until(lambda: os.path.exists(socket), "the receiver")
        config, _ = self.config("none", output=f'unix = "{socket}" buf = 4K')
        self.ctl("add", config)
        made = []
        for death in range(4):
            for i in range(20):
                made.append(f"d{death}-{i}")
                self.make(made[-1])
            self.die(mount)
        self.ctl("remove", "2")
        mount.unmount()
        receiver.terminate()
        receiver.communicate()
        expect_equal(self.made_in(*glob.glob(os.path.join(store, "*.trace"))),
                     made, "what was received")

    def reloaded(self):
        """A config that was loaded again is the one that goes on."""
        source = self.suite.folder("reloaded", "source", mode=0o777)
        self.base = "reloaded"
        self.point = self.suite.folder(self.base, "mnt")
        traces = [self.suite.path(self.base, f"trace-{i}") for i in range(4)]

        def tracer(i, text=""):
            return (text, "STR_ALL", f'file = "{traces[i]}"')
        mount = self.suite.mount(source, self.point, tracer(0), tracer(1),
                                 transport="dev",
                                 options=("--survive", "yes"))
        self.make("a")
        self.ctl("reload", self.suite.config(tracer(0, "op = mkdir"),
                                             tracer(2), tracer(3)))
        self.die(mount)
        self.make("b")
        there = self.tracers()
        expect_equal([one["output"] for one in there.values()] and
                     sorted(there), [1, 3, 4], "tracers")
        self.ctl("reload", self.suite.config(tracer(0, "op = mkdir"),
                                             tracer(3)))
        self.die(mount)
        self.make("c")
        # It is what the mount has.
        told = self.ctl("reload", self.suite.config(tracer(0, "op = mkdir"),
                                                    tracer(3)))
        expect("2 tracers as they were, 0 with another filter, 0 new, 0 gone"
               in told, told)
        mount.unmount()
        for i, made in enumerate((["a", "b", "c"], ["a"], ["b"], ["b", "c"])):
            self.suite.command("tracefs-verify", traces[i])
            expect_equal(self.made_in(traces[i]), made, f"in trace {i}")

    def rules(self, added):
        """Rules mean the tracers that they meant, and what a reload made of
        that; of a config that was added, or that the mount began with."""
        self.base = "rules-added" if added else "rules-begun"
        source = self.suite.folder(self.base, "source", mode=0o777)
        self.point = self.suite.folder(self.base, "mnt")

        def tracer(name, rule="", text="op = mkdir"):
            return (text, "STR_ALL" + rule,
                    f'file = "{self.suite.path(self.base, name)}"')
        first, second, third = (tracer(name) for name in "abc")
        # The last brace is that of the harness.
        rule = tracer("rules", " }; when seen(unlink) then { stop 1",
                      "op = rmdir")

        def expect_stop(number):
            self.die(mount)
            for one in self.tracers():
                self.ctl("start", str(one))
            victim = os.path.join(self.point, "victim")
            with open(victim, "w", encoding="utf-8"):
                pass
            os.unlink(victim)
            wait_until(lambda: any(one["state"] == "stopped" for one in
                                   self.tracers().values()), "a stop")
            expect_equal([one["id"] for one in self.tracers().values()
                          if one["state"] == "stopped"], [number], "stopped")

        mount = self.suite.mount(source, self.point,
                                 *([first] if added else [second, rule]),
                                 transport="dev",
                                 options=("--survive", "yes"))
        if added:
            self.ctl("add", self.suite.config(second, rule))
        for _ in range(2):
            expect_stop(2 if added else 1)  # the first one of its own file
        told = self.ctl("reload", self.suite.config(third, rule))
        expect("1 tracers as they were" in told, told)
        for _ in range(2):
            expect_stop(4 if added else 3)  # the new one
        mount.unmount()

    def refused(self):
        """What could not go on is refused, and so is what there is no room
        for; neither leaves anything."""
        _, mount = self.mount()
        config, trace = self.config("async", output='async; file = "%s"')
        said = self.suite.tool("tracefs-ctl", self.point, "add", config)
        expect(said.returncode != 0 and "--survive yes" in said.stderr,
               said.stderr)
        expect(not os.path.exists(trace), "its file is there")
        many = self.suite.config(*(
            ("", "STR_ALL", f'file = "{self.suite.path(self.base, f"m{i}")}"')
            for i in range(64)))
        said = self.suite.tool("tracefs-ctl", self.point, "add", many)
        expect(said.returncode != 0 and "has room for 64 tracers"
               in said.stderr or "at most" in said.stderr, said.stderr)
        expect(not glob.glob(self.suite.path(self.base, "m*")[:-1] + "[0-9]*"),
               "files of those are there")
        self.die(mount)
        expect_equal(sorted(self.tracers()), [1], "tracers")
        descriptors = len(os.listdir(f"/proc/{daemon_of(mount)}/fd"))
        for i in range(5):
            config, _ = self.config(f"t{i}")
            self.ctl("add", config)
            self.die(mount)
            self.ctl("remove", str(max(self.tracers())))
        self.die(mount)
        expect(len(os.listdir(f"/proc/{daemon_of(mount)}/fd"))
               <= descriptors + 2, "descriptors of what was removed")
        mount.unmount()

    def shut(self):
        """A mount to which one was added that lets nothing be done unrecorded
        does not go on without traces."""
        _, mount = self.mount()
        config, _ = self.config("audit", output='file = "%s" when_full = fail')
        self.ctl("add", config)
        for _ in range(30):
            daemon = daemon_of(mount)
            if daemon is None:
                break
            os.kill(daemon, signal.SIGSEGV)
            wait_until(lambda d=daemon: daemon_of(mount) != d, "its end")
            time.sleep(0.05)
        wait_until(lambda: mount.process.poll() is not None, "the end")
        expect("goes on without" not in mount.messages(), mount.messages())
        time.sleep(0.5)
        expect(mount.is_mounted(), "what lies below is uncovered")
        subprocess.run(["umount", "-l", self.point], check=True)

    def steered_under_load(self):
        """Tracers come, change and go while daemons die and users work: each
        has what was done between the answer to its coming and its going, once
        each."""
        options = self.suite.options
        source, mount = self.mount()
        users = restless_users(self.suite, source, self.point, options.seconds,
                               USERS)
        wanted = {}
        number = 0
        with daemons_dying(mount, options.kills) as kills:
            while any(user.poll() is None for user in users):
                number += 1
                config, trace = self.config(f"steered-{number}",
                                            output='file = "%s" buf = 4K')
                tracer = self.settled_add(config, trace)
                if tracer is None:
                    continue
                wanted[trace] = [f"s{number}-{i}" for i in range(20)]
                for name in wanted[trace][:10]:
                    self.make(name)
                self.settled("set-filter", tracer, "op = mkdir",
                             done=lambda one: one and one["filter"]
                             == "op = mkdir")
                for name in wanted[trace][10:]:
                    self.make(name)
                if number % 2:
                    self.settled("remove", tracer,
                                 done=lambda one: one is None)
        for user in users:
            _, errors = user.said()
            expect_equal(user.poll(), 0, f"a user noticed: {errors}")
        there = self.tracers()
        mount.unmount()
        expect(kills[0] > 0 and len(wanted) > 1, f"{kills[0]} kills, {wanted}")
        for trace, names in wanted.items():
            self.suite.command("tracefs-verify", trace)
            mine = [name for name in self.made_in(trace)
                    if name.startswith(names[0][:names[0].index("-") + 1])]
            expect_equal(mine, names, f"in {trace}")
        return (f"{kills[0]} kills, {len(wanted)} tracers came, "
                f"{len(there) - 1} of them stayed")

    def by_trace(self, trace):
        while True:
            said = self.suite.tool("tracefs-ctl", self.point, "list",
                                   "--format", "json")
            if said.returncode == 0:
                break
            expect(any(one in said.stderr for one in NO_ANSWER), said.stderr)
            time.sleep(0.02)
        for one in json.loads(said.stdout)["tracers"]:
            if trace in one["config"]:
                return one
        return None

    def settled_add(self, config, trace):
        """Its id; None: it did not come."""
        said = self.suite.tool("tracefs-ctl", self.point, "add", config)
        if said.returncode == 0:
            one = self.by_trace(trace)
            expect(one is not None, "a tracer that came is not there")
            return one["id"]
        expect(any(one in said.stderr for one in NO_ANSWER), said.stderr)
        one = self.by_trace(trace)
        return None if one is None else one["id"]

    def settled(self, command, tracer, *more, done):
        """Does it until it is done."""
        while True:
            said = self.suite.tool("tracefs-ctl", self.point, command,
                                   str(tracer), *more)
            if said.returncode == 0:
                break
            expect(any(one in said.stderr for one in (*NO_ANSWER, "no tracer")),
                   said.stderr)
            one = self.by_id(tracer)
            if done(one):
                return
        expect(done(self.by_id(tracer)), f"{command} was not done")

    def by_id(self, tracer):
        while True:
            said = self.suite.tool("tracefs-ctl", self.point, "list",
                                   "--format", "json")
            if said.returncode == 0:
                break
            expect(any(one in said.stderr for one in NO_ANSWER), said.stderr)
            time.sleep(0.02)
        for one in json.loads(said.stdout)["tracers"]:
            if one["id"] == tracer:
                return one
        return None


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--kills", type=float, default=4, help="a second")


def main():
    suite = Suite("succession-control", __doc__, arguments)
    cases = Control(suite)
    suite.run("as they were left", cases.as_they_were_left)
    suite.run("parts, seals and keys", cases.several_parts)
    suite.run("to a receiver", cases.received)
    suite.run("reloaded", cases.reloaded)
    suite.run("rules of the mount", cases.rules, False)
    suite.run("rules that were added", cases.rules, True)
    suite.run("refused", cases.refused)
    suite.run("stays shut", cases.shut)
    suite.run("steered under load", cases.steered_under_load)
    suite.finish()


main()
