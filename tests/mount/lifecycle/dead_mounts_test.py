#!/usr/bin/env python3
"""What a mount leaves when its daemon and its helpers are killed, and that it is
not in the way of the next one."""

import errno
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from processes import daemon_of, helpers_of, kill_helpers_of  # noqa: E402
from tracefs_harness import (Suite, expect, expect_equal, mount_points,  # noqa: E402
                             wait_until)


def stack_at(point):
    """How many mounts lie at that place, by the kernel's table."""
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        return sum(line.split()[4] == point for line in lines)


class Place:
    def __init__(self, suite, name, over_itself=False):
        self.suite = suite
        self.source = suite.folder(name, "source")
        self.point = self.source if over_itself else suite.folder(name, "mnt")
        self.out = suite.folder(name, "out")
        with open(os.path.join(self.source, "below"), "w",
                  encoding="ascii") as out:
            out.write("text")
        self.number = 0

    def config(self, chain=""):
        self.number += 1
        return self.suite.config(
            ("", "STR_ALL",
             f'{chain} file = "{self.out}/trace-{self.number}"'))

    def mount(self, *options, config=None):
        """In the background, as a service that starts again."""
        return self.suite.tool("tracefs-mount", self.source, self.point,
                               "--config", config or self.config(),
                               "--transport", self.suite.options.transport,
                               *options)

    def daemon(self):
        return daemon_of(self.point)

    def kill_all(self):
        """The daemon, and its helpers before it, as the end of a control group
        does."""
        pid = self.daemon()
        expect(helpers_of(pid, "tracefs-watch"), "no watchdog")
        kill_helpers_of(pid)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its end")
        self.expect_dead()

    def cut(self):
        """Its connection, as root may at any time; nobody is left to unmount."""
        pid = self.daemon()
        kill_helpers_of(pid)
        minor = os.minor(os.stat(self.point).st_dev)
        control = self.suite.folder("connections")
        subprocess.run(["mount", "-t", "fusectl", "none", control], check=True)
        try:
            with open(f"{control}/{minor}/abort", "w",
                      encoding="ascii") as out:
                out.write("1")
        finally:
            subprocess.run(["umount", control], check=True)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its end")
        self.expect_dead()

    def expect_dead(self):
        expect(self.point in mount_points(), "the mount is gone")
        try:
            os.listdir(self.point)
            dead = False
        except OSError as error:
            dead = error.errno in (errno.ENOTCONN, errno.ECONNABORTED)
        expect(dead, "the mount is not dead")

    def expect_served(self, run):
        expect_equal(run.returncode, 0, run.stderr)
        expect("took away the dead mount" in run.stderr, run.stderr)
        with open(os.path.join(self.point, "below"), encoding="ascii") as back:
            expect_equal(back.read(), "text", "the file below")
        expect_equal(stack_at(self.point), 1, "mounts at that place")

    def clean(self):
        while self.point in mount_points():
            subprocess.run(["umount", "-l", self.point], check=True)


def next_mount(suite, over_itself, how):
    """The next mount of a service takes the dead one away and serves."""
    place = Place(suite, f"next-{over_itself}-{how}", over_itself)
    try:
        for _ in range(2):
            run = place.mount()
            expect_equal(run.returncode, 0, run.stderr)
            getattr(place, how)()
            place.expect_served(place.mount())
            done = suite.tool("tracefs-ctl", place.point, "unmount")
            expect_equal(done.returncode, 0, done.stderr)
            expect(place.point not in mount_points(), "it is still mounted")
    finally:
        place.clean()


def without_its_watchdog(suite):
    """umount(8) ends the mount and its traces as always; a signal ends the
    daemon, and what is left is not in the way of the next."""
    place = Place(suite, "no-watchdog")
    try:
        for by_signal in (False, True):
            run = place.mount()
            expect_equal(run.returncode, 0, run.stderr)
            trace = os.path.join(place.out, f"trace-{place.number}")
            pid = place.daemon()
            kill_helpers_of(pid)
            with open(os.path.join(place.point, "below"),
                      encoding="ascii") as back:
                expect_equal(back.read(), "text", "the file below")
            if by_signal:
                os.kill(pid, signal.SIGTERM)
            else:
                subprocess.run(["umount", place.point], check=True)
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its end")
            dump = suite.tool("tracefs-dump", trace)
            expect_equal(dump.returncode, 0, dump.stderr)
            expect("open" in dump.stdout, dump.stdout)
            expect_equal(place.point in mount_points(), by_signal,
                         "it is still there")
        place.expect_served(place.mount())
    finally:
        place.clean()


def what_stays_shut(suite):
    """Where operations fail that cannot be recorded, what lies below does not
    become bare: the dead mount stays, and the error says what to do."""
    place = Place(suite, "shut")
    config = suite.config(("", "STR_ALL",
                           f'file = "{place.out}/trace-%serial" '
                           'when_full = fail'))
    try:
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
        place.kill_all()
        run = place.mount(config=config)
        expect_equal(run.returncode, 3, run.stderr)
        expect("when_full = fail" in run.stderr and "umount" in run.stderr,
               run.stderr)
        place.expect_dead()
        subprocess.run(["umount", place.point], check=True)
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
    finally:
        place.clean()


def the_mounts_of_others(suite):
    """A dead mount that another user made is not ours to take away."""
    place = Place(suite, "others")
    tracer = suite.folder("others", "theirs")
    fuse = os.open("/dev/fuse", os.O_RDWR)
    try:
        done = subprocess.run(
            ["mount", "-i", "-t", "fuse.tracefs", "-o",
             f"fd={fuse},rootmode=40000,user_id=4711,group_id=4711,"
             "allow_other", tracer, place.point],
            pass_fds=[fuse], capture_output=True, text=True, check=False)
        expect_equal(done.returncode, 0, done.stderr)
        os.close(fuse)
        fuse = -1
        run = place.mount()
        expect_equal(run.returncode, 3, run.stderr)
        place.expect_dead()
    finally:
        if fuse >= 0:
            os.close(fuse)
        place.clean()


def main():
    suite = Suite("dead-mounts", __doc__)
    for over_itself in (False, True):
        for how in ("kill_all", "cut"):
            suite.run(f"next mount, {how}, over itself: {over_itself}",
                      next_mount, suite, over_itself, how)
    for case in (without_its_watchdog, what_stays_shut,
                 the_mounts_of_others):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
