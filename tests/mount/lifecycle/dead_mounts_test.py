#!/usr/bin/env python3
"""What a mount leaves when its daemon and its helpers are killed, and that it is
not in the way of the next one."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import time

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
        os.kill(pid, signal.SIGSTOP)  # or it makes another one meanwhile
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

    def is_dead(self):
        try:
            os.listdir(self.point)
            return False
        except OSError as error:
            return error.errno in (errno.ENOTCONN, errno.ECONNABORTED)

    def expect_dead(self):
        expect(self.point in mount_points(), "the mount is gone")
        # Once the last of those that were killed has let go of it.
        wait_until(self.is_dead, "the mount to be dead")

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


# By then what was done is in the trace's file.
KEPT_S = 1


class Intruder(threading.Thread):
    """Makes a directory after another at a place, whatever it is told."""

    def __init__(self, point):
        super().__init__(daemon=True)
        self.point = point
        self.made = {}  # name: when
        self.told = set()
        self.done = threading.Event()

    def run(self):
        for number in itertools.count():
            if self.done.is_set():
                return
            name = f"made-{number}"
            try:
                os.mkdir(os.path.join(self.point, name))
                self.made[name] = time.monotonic()
                time.sleep(0.005)
            except OSError as error:
                self.told.add(error.errno)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()


def what_stays_shut(suite, over_itself):
    """Where operations fail that cannot be recorded, the next mount takes the
    place of the dead one: there is no moment in which what lies below is
    bare."""
    place = Place(suite, f"shut-{over_itself}", over_itself)
    config = suite.config(("", "STR_ALL",
                           f'file = "{place.out}/trace-%serial" '
                           'when_full = fail'))
    bare = os.open(place.point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
        with Intruder(place.point) as intruder:
            wait_until(lambda: len(intruder.made) > 3, "the first directories")
            kills = []
            for _ in range(3):
                time.sleep(KEPT_S)
                begin = time.monotonic()
                place.kill_all()
                kills.append((begin - KEPT_S, time.monotonic()))
                run = place.mount(config=config)
                expect_equal(run.returncode, 0, run.stderr)
                expect("took the place of the dead mount" in run.stderr,
                       run.stderr)
                count = len(intruder.made)
                wait_until(lambda: len(intruder.made) > count + 3, "more")
                expect_equal(stack_at(place.point), 1, "mounts at that place")
        expect(intruder.told <= {errno.ENOTCONN, errno.ECONNABORTED},
               f"what he was told: {intruder.told}")
        made = {name for name in os.listdir(bare) if name.startswith("made")}
        if not over_itself:
            expect_equal(made, set(), "what was made on the bare directory")
            made = {name for name in os.listdir(place.source)
                    if name.startswith("made")}
        expect(made, "nothing was made")
        # A new watchdog knows its duty, too.
        time.sleep(KEPT_S)
        place.kill_all()
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
        os.kill(place.daemon(), signal.SIGKILL)
        wait_until(place.is_dead, "the dead mount")
        # And root opens it, in order.
        done = suite.tool("tracefs-ctl", place.point, "unmount")
        expect("its traces lack is not known" in done.stderr, done.stderr)
        expect(place.point not in mount_points(), "it is still mounted")
        known = set()
        for name in os.listdir(place.out):
            known |= {os.path.basename(event["path"]) for event in suite.dump(
                os.path.join(place.out, name)).events if "path" in event}
        # What was made just before a daemon was killed was in its memory; of
        # what was made as it was killed, its maker was told an error.
        missing = [name for name in (made - known) & intruder.made.keys()
                   if not any(begin <= intruder.made[name] <= end
                              for begin, end in kills)]
        expect(not missing, f"in no trace: {sorted(missing)[:5]}")
    finally:
        os.close(bare)
        place.clean()
    return f"{len(made)} directories, all in the traces"


def what_does_not_come_up_stays_shut(suite):
    """A new mount that fails leaves the dead one."""
    place = Place(suite, "fails")
    config = suite.config(("", "STR_ALL",
                           f'file = "{place.out}/trace-%serial" '
                           'when_full = fail'))
    try:
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
        place.kill_all()
        wrong = suite.config(("", "STR_ALL",
                              f'file = "{place.out}/none/trace" '
                              'when_full = fail'))
        run = place.mount(config=wrong)
        expect(run.returncode != 0, "it came up")
        place.expect_dead()
        config = suite.config(("", "STR_ALL",
                               f'file = "{place.out}/trace-%serial" '
                               'when_full = fail'))
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
    finally:
        place.clean()


def an_ordinary_users_stays_shut(suite):
    """Who may not put one mount beneath another is told what to do."""
    place = Place(suite, "shut-user")
    config = suite.config(("", "STR_ALL",
                           f'file = "{place.out}/trace-%serial" '
                           'when_full = fail'))
    try:
        run = place.mount(config=config)
        expect_equal(run.returncode, 0, run.stderr)
        place.kill_all()
        run = subprocess.run(
            ["setpriv", "--bounding-set=-sys_admin",
             os.path.join(suite.bin, "tracefs-mount"), place.source,
             place.point, "--config", config], capture_output=True, text=True,
            check=False)
        expect_equal(run.returncode, 3, run.stderr)
        expect("when_full = fail" in run.stderr and "umount" in run.stderr,
               run.stderr)
        place.expect_dead()
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
        suite.run(f"what stays shut, over itself: {over_itself}",
                  what_stays_shut, suite, over_itself)
    for case in (without_its_watchdog, what_does_not_come_up_stays_shut,
                 an_ordinary_users_stays_shut, the_mounts_of_others):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
