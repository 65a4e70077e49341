#!/usr/bin/env python3
"""Configs from one place: tracefs-mount --config-dir takes what is signed and for
this host, now and when it changes, and refuses everything else while it goes on as
it was. tracefs-ctl --all asks every mount of the host."""

import hashlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))
# pylint: disable=wrong-import-position
from tracefs_harness import (
    Suite, expect, expect_equal, mount_points, wait_until)

LIMIT = 1 << 20


class Fleet:
    """A directory of configs, its keys, and a mount that goes by it."""

    def __init__(self, suite, name):
        self.suite = suite
        self.name = name
        self.folder = suite.folder(name, "configs")
        self.private = suite.path(name, "private.key")
        self.public = suite.path(name, "public.key")
        self.state = suite.path(name, "state", "taken")
        suite.command("tracefs-keygen", "sign", self.private, self.public)
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mnt")
        self.unsigned = suite.path(name, "unsigned.conf")

    def write(self, trace, filter_text=""):
        with open(self.unsigned, "w", encoding="ascii") as out:
            out.write('{ { %s } { stream = { STR_ALL } } { file = "%s" } }\n'
                      % (filter_text, self.suite.path(self.name, trace)))
        return self.unsigned

    def sign(self, name, version, *options, key=None, **config):
        self.write(**config)
        path = os.path.join(self.folder, name)
        self.suite.command("tracefs-keygen", "sign-config", "--key",
                           key or self.private, "--config-version",
                           str(version), *options, self.unsigned, path)
        return path

    def words(self):
        return ["--config-dir", self.folder, "--config-key", self.public,
                "--config-state", self.state]

    def mount(self):
        suite = self.suite
        return suite.mount_command(
            [os.path.join(suite.bin, "tracefs-mount"), self.source, self.point,
             "--foreground", "--transport", suite.options.transport,
             *self.words()], self.point)

    def refused_mount(self):
        """What tracefs-mount says that does not begin."""
        done = self.suite.tool("tracefs-mount", self.source, self.point,
                               "--foreground", *self.words())
        expect_equal(done.returncode, 2, done.stderr)
        return done.stderr

    def list(self):
        return json.loads(self.suite.command("tracefs-ctl", self.point, "list",
                                             "--format", "json"))

    def outputs(self):
        return sorted(os.path.basename(str(t["config"]).split('file = "')[1]
                                       .split('"')[0])
                      for t in self.list()["tracers"])

    def refusals(self):
        return self.list()["config_refused"]

    def wait_version(self, version):
        wait_until(lambda: self.list()["config_version"] == version,
                   f"version {version}: {self.list()}")

    def wait_refused(self, reason, before=0):
        wait_until(lambda: self.refusals().get(reason, 0) > before,
                   f"{reason}: {self.refusals()}")


def begins_and_changes(suite):
    """The newest one is begun with, a newer one is taken by itself, a filter
    changes in the tracer that runs, and the state outlives the mount."""
    fleet = Fleet(suite, "changes")
    fleet.sign("old.conf", 1, trace="one.trace")
    fleet.sign("now.conf", 2, trace="two.trace")
    mount = fleet.mount()
    expect_equal(fleet.list()["config_version"], 2, "the version")
    expect_equal(fleet.outputs(), ["two.trace"], "the outputs")
    # The same tracer with another filter: it goes on.
    ids = [t["id"] for t in fleet.list()["tracers"]]
    fleet.sign("now.conf", 3, trace="two.trace", filter_text="op = mkdir")
    fleet.wait_version(3)
    expect_equal([t["id"] for t in fleet.list()["tracers"]], ids, "the tracers")
    # Another tracer, in a file that is moved into place.
    other = fleet.sign(".next.conf", 4, trace="three.trace")
    os.rename(other, os.path.join(fleet.folder, "next.conf"))
    fleet.wait_version(4)
    expect_equal(fleet.outputs(), ["three.trace"], "the outputs")
    os.mkdir(os.path.join(fleet.point, "seen"))
    mount.unmount()
    events = suite.read(suite.path("changes", "three.trace"))
    expect("mkdir" in {e["op"] for e in events}, "the new tracer saw nothing")
    # What was taken is remembered: the older ones alone are not begun with.
    os.unlink(os.path.join(fleet.folder, "next.conf"))
    expect("is older than 4" in fleet.refused_mount(), "rolled back at a start")


def refuses(suite):
    """Unsigned, forged, expired, rolled back, forked, unreadable: counted by
    reason, and what runs goes on."""
    fleet = Fleet(suite, "refuses")
    first = fleet.sign("good.conf", 5, trace="kept.trace")
    with open(first, "rb") as file:
        good = file.read()
    mount = fleet.mount()
    ids = [t["id"] for t in fleet.list()["tracers"]]

    def put(name, data):
        # As a whole, so that each is judged once.
        path = os.path.join(fleet.folder, "." + name)
        with open(path, "wb") as out:
            out.write(data)
        os.rename(path, os.path.join(fleet.folder, name))

    def gone(name):
        os.unlink(os.path.join(fleet.folder, name))

    with open(fleet.write(trace="evil.trace"), "rb") as file:
        evil = file.read()
    put("a.conf", evil)
    fleet.wait_refused("unsigned")
    gone("a.conf")
    # One byte of what was signed, and a signature by somebody else.
    put("a.conf", good.replace(b"kept", b"fake"))
    fleet.wait_refused("forged")
    gone("a.conf")
    other = suite.path("refuses", "other.key")
    suite.command("tracefs-keygen", "sign", other, other + ".pub")
    before = fleet.refusals()["forged"]
    fleet.sign("a.conf", 99, key=other, trace="evil.trace")
    fleet.wait_refused("forged", before)
    gone("a.conf")
    fleet.sign("a.conf", 6, "--expires", "2001-02-03", trace="evil.trace")
    fleet.wait_refused("expired")
    gone("a.conf")
    # Beside a newer one an older one is just old; alone it is a roll-back.
    fleet.sign("good.conf", 4, trace="evil.trace")
    fleet.wait_refused("rolled_back")
    fleet.sign("good.conf", 5, trace="evil.trace")
    fleet.wait_refused("forked")
    put("good.conf", good)
    # What is no file, and what has no end.
    os.mkfifo(os.path.join(fleet.folder, ".pipe"))
    os.rename(os.path.join(fleet.folder, ".pipe"),
              os.path.join(fleet.folder, "pipe.conf"))
    fleet.wait_refused("unreadable")
    gone("pipe.conf")
    before = fleet.refusals()["unreadable"]
    os.symlink("/etc/passwd", os.path.join(fleet.folder, ".link"))
    os.rename(os.path.join(fleet.folder, ".link"),
              os.path.join(fleet.folder, "link.conf"))
    fleet.wait_refused("unreadable", before)
    gone("link.conf")
    before = fleet.refusals()["unreadable"]
    with open(os.path.join(fleet.folder, ".huge"), "wb") as out:
        out.truncate(1 << 40)
    os.rename(os.path.join(fleet.folder, ".huge"),
              os.path.join(fleet.folder, "huge.conf"))
    fleet.wait_refused("unreadable", before)
    gone("huge.conf")
    expect_equal([t["id"] for t in fleet.list()["tracers"]], ids, "the tracers")
    expect_equal(fleet.list()["config_version"], 5, "the version")
    # reload says which and why.
    put("a.conf", evil)
    told = suite.command("tracefs-ctl", fleet.point, "reload", status=2)
    expect("a.conf: it is not signed" in told, told)
    gone("a.conf")
    # A good signature under a config that cannot be taken changes nothing.
    with open(fleet.unsigned, "w", encoding="ascii") as out:
        out.write("{ { cudi = 1 } { stream = { STR_ALL } } { file = x } }\n")
    suite.command("tracefs-keygen", "sign-config", "--key", fleet.private,
                  "--config-version", "7", fleet.unsigned,
                  os.path.join(fleet.folder, "good.conf"))
    told = suite.command("tracefs-ctl", fleet.point, "reload", status=2)
    expect("did you mean 'cuid'" in told, told)
    expect_equal([t["id"] for t in fleet.list()["tracers"]], ids, "the tracers")
    expect_equal(fleet.list()["config_version"], 5, "the version")
    # And version 7 was not taken: it may be signed again.
    fleet.sign("good.conf", 7, trace="kept.trace")
    fleet.wait_version(7)
    mount.unmount()


def refuses_to_begin(suite):
    fleet = Fleet(suite, "begin")
    expect("there is none" in fleet.refused_mount(), "an empty directory")
    with open(fleet.write(trace="x.trace"), "rb") as file:
        evil = file.read()
    with open(os.path.join(fleet.folder, "a.conf"), "wb") as out:
        out.write(evil)
    expect("it is not signed" in fleet.refused_mount(), "unsigned")
    # Not even the names in it were looked at.
    expect(not os.path.exists(suite.path("begin", "x.trace")), "a trace of it")
    expect(not os.path.exists(fleet.state), "remembered")
    for words, text in (
            (["--config-dir", fleet.folder], "--config-dir needs --config-key"),
            (["--config-key", fleet.public], "--config-key goes with"),
            (["--config", fleet.unsigned, *fleet.words()], "exclude each other"),
            (["--config-dir", fleet.folder, "--config-key", fleet.private],
             "holds more than public keys")):
        done = suite.tool("tracefs-mount", fleet.source, fleet.point,
                          "--foreground", *words)
        expect_equal(done.returncode, 2, done.stderr)
        expect(text in done.stderr, done.stderr)


def rolls_out(suite):
    """Who is among the first per cent is known beforehand, and stays."""
    digest = hashlib.sha256(b"tracefs-rollout\n"
                            + socket.gethostname().encode()).digest()
    place = int.from_bytes(digest[:8], "big") % 10000
    fleet = Fleet(suite, "rollout")
    fleet.sign("all.conf", 1, trace="all.trace")
    share = lambda n: f"{n // 100}.{n % 100:02}%"
    fleet.sign("some.conf", 2, "--rollout", share(place), trace="some.trace")
    told = suite.command("tracefs-keygen", "verify-config", "--key",
                         fleet.public, os.path.join(fleet.folder, "some.conf"))
    expect("version 2, for others than this host" in told, told)
    mount = fleet.mount()
    expect_equal(fleet.list()["config_version"], 1, "the version")
    fleet.sign("some.conf", 2, "--rollout", share(place + 1),
               trace="some.trace")
    fleet.wait_version(2)
    expect_equal(fleet.outputs(), ["some.trace"], "the outputs")
    expect_equal(fleet.refusals(), {}, "the refusals")
    # The same version for more hosts is no other config.
    fleet.sign("some.conf", 2, trace="some.trace")
    told = suite.command("tracefs-ctl", fleet.point, "reload")
    expect("1 tracers as they were" in told, told)
    expect_equal(fleet.refusals(), {}, "the refusals")
    mount.unmount()
    for word in ("0", "101%", "-1%", "1.234%", "%", "x%"):
        done = suite.tool("tracefs-keygen", "sign-config", "--key",
                          fleet.private, "--config-version", "1", "--rollout",
                          word, fleet.unsigned, suite.path("rollout", "no"))
        expect_equal(done.returncode, 2, word)


def is_replaced_while_read(suite):
    """Somebody who writes the files over and over: nothing but whole configs is
    ever taken."""
    fleet = Fleet(suite, "torn")
    path = fleet.sign("a.conf", 1, trace="a.trace")
    with open(path, "rb") as file:
        first = file.read()
    other = fleet.sign("b.conf", 2, trace="a.trace", filter_text="op = " * 0)
    with open(other, "rb") as file:
        second = file.read()
    os.unlink(other)
    mount = fleet.mount()
    end = threading.Event()

    def tear():
        # In place, so that half of one and half of another are seen.
        turn = 0
        while not end.is_set():
            turn += 1
            data = (first, second)[turn % 2]
            with open(path, "r+b") as out:
                out.write(data[:len(data) // 2])
                out.flush()
                out.write(data[len(data) // 2:])
            end.wait(0.001)

    thread = threading.Thread(target=tear)
    thread.start()
    try:
        for _ in range(30):
            suite.tool("tracefs-ctl", fleet.point, "reload")
    finally:
        end.set()
        thread.join()
    with open(path, "wb") as out:
        out.write(second)
    fleet.wait_version(2)
    expect_equal(fleet.outputs(), ["a.trace"], "the outputs")
    mount.unmount()
    suite.read(suite.path("torn", "a.trace"))


def asks_all_mounts(suite):
    points = []
    mounts = []
    for i in range(3):
        point = suite.folder("all", f"mnt{i}")
        points.append(point)
        mounts.append(suite.mount(suite.folder("all", f"source{i}"), point,
                                  suite.path("all", f"{i}.trace")))
    def ctl(*words, status=0):
        # Where there are no mounts but ours: those of others are left alone.
        away = [p for p in mount_points("fuse.tracefs") if p not in points]
        script = "".join(f"umount -l {shlex.quote(p)} && " for p in away)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script + 'exec "$@"', "sh",
             os.path.join(suite.bin, "tracefs-ctl"), "--all", *words],
            capture_output=True, text=True, check=False, timeout=120)
        expect_equal(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    told = ctl("list", "--format", "json")
    lines = [json.loads(line) for line in told.splitlines()]
    expect_equal([line["mount"] for line in lines], points, "the mounts")
    text = ctl("stats")
    for point in points:
        expect(f"{point}:\n" in text, text)
    # One that does not answer keeps nobody from asking the others.
    mounts[1].signal(signal.SIGSTOP)
    try:
        told = ctl("flush", "--timeout", "2", status=3)
    finally:
        mounts[1].signal(signal.SIGCONT)
    expect(all(point + ":" in told for point in points), told)
    expect("tracefs-ctl: " in told, told)
    top = ctl("top", "--once", "--interval", "100ms")
    # One picture of all; its head has room for the end of their places.
    expect(points[-1][-12:] in top and top.count("OPERATION") == 1, top)
    ctl("reload")
    for words, text in ((("tail",), "does not go with tail"),
                        (("remove", "1"), "does not go with remove"),
                        (("rules", "--follow"), "rules --follow")):
        told = suite.command("tracefs-ctl", "--all", *words, status=2)
        expect(text in told, told)
    for mount in mounts:
        mount.unmount()


def main():
    suite = Suite("fleet-control", __doc__)
    for case in (begins_and_changes, refuses, refuses_to_begin, rolls_out,
                 is_replaced_while_read, asks_all_mounts):
        suite.run(case.__name__, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
