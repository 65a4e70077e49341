#!/usr/bin/env python3
"""Mounts that fail closed (when_full = fail): is anything done that is not in
the trace, by a user who tries it all the time while outputs fail and processes
are killed? The trace, the answers he got and the directory below are compared.
"""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
# pylint: disable=wrong-import-position
from processes import (children_of, descendants_of, helpers_of,  # noqa: E402
                       kill_helpers_of, name_of)
from tracefs_harness import (PATIENCE_S, Suite, expect,  # noqa: E402
                             expect_equal, wait_until)

USER = 65534
ONLY_MKDIR = "op = mkdir"
# An intention before each operation, its result after it; neither waits.
STRICT = "STR_ALL | STR_PRE_OP"
SUITE = Suite("audit", __doc__)


def strict(trace):
    return (ONLY_MKDIR, STRICT, f'file = "{trace}" unbuffered when_full = fail')


class Place:
    """A source that everybody may write to, where it is mounted, a trace."""

    number = 0

    def __init__(self, over_itself=False):
        Place.number += 1
        name = self.name = f"case-{Place.number}"
        self.source = SUITE.folder(name, "source", mode=0o777)
        self.point = (self.source if over_itself
                      else SUITE.folder(name, "mnt", mode=0o777))
        self.trace = SUITE.path(name, "trace")
        # What lies below, whatever is mounted there.
        self.below = [os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                      for path in {self.source, self.point}]

    def made_below(self):
        """Directories that are there, whichever way they came."""
        return {name for fd in self.below for name in os.listdir(fd)}

    def mount(self, *more, visibility="exact"):
        return SUITE.mount(self.source, self.point, strict(self.trace),
                           visibility=visibility, options=more)

    def clean(self):
        for fd in self.below:
            os.close(fd)
        SUITE.remove(self.name)


class Intruder:
    def __init__(self, place, uid=USER, wrapper=()):
        self.stop_file = os.path.join(os.path.dirname(place.point), "stop")
        self.log = SUITE.path(place.name, "made")
        with open(self.log, "wb") as out:
            self.process = SUITE.background(subprocess.Popen(
                [*wrapper, sys.executable, "-B",
                 os.path.join(HERE, "intruder.py"), place.point, "d",
                 str(uid)], stdout=out, stderr=subprocess.PIPE, text=True))
        wait_until(lambda: len(self.made()) > 20, "the first directories")

    def lines(self):
        with open(self.log, encoding="ascii") as text:
            return text.read().splitlines()

    def made(self):
        return {line for line in self.lines() if not line.startswith("closed")}

    def closed(self):
        """The last thing he was told, if that was a refusal."""
        lines = self.lines()
        if lines and lines[-1].startswith("closed"):
            return int(lines[-1].split()[1])
        return 0

    def stop(self):
        with open(self.stop_file, "wb"):
            pass
        _, said = self.process.communicate(timeout=PATIENCE_S)
        os.unlink(self.stop_file)
        return said


def recorded(trace):
    """Names of directories in the trace: of intentions and of results."""
    return {os.path.basename(event["path"]) for event in SUITE.dump(trace).events}


def expect_all_recorded(place, intruder):
    known = recorded(place.trace)
    expect(known, "nothing was recorded")
    unknown = place.made_below() - known
    expect(not unknown, f"{len(unknown)} directories are in no trace: "
           f"{sorted(unknown)[:5]}")
    expect(intruder.made() <= known, "somebody made what is in no trace")


def expect_shut(mount, place):
    """Nobody gets in; only root opens it."""
    expect(mount.is_mounted(), "the mount is gone")
    for uid in (0, USER):
        done = subprocess.run(["ls", place.point], user=uid, group=uid,
                              capture_output=True, text=True, check=False,
                              cwd="/")
        expect(done.returncode != 0 and "not connected" in done.stderr,
               f"uid {uid} at a shut mount: {done.stdout}{done.stderr}")
    refused = subprocess.run(["umount", place.point], user=USER, group=USER,
                             capture_output=True, text=True, check=False,
                             cwd="/")
    expect(refused.returncode != 0, "an ordinary user opened it")
    expect(mount.is_mounted(), "the mount is gone")


def open_it(mount, place):
    done = subprocess.run(["umount", place.point], capture_output=True,
                          text=True, check=False, cwd="/")
    expect_equal(done.returncode, 0, f"umount by root: {done.stderr}")
    expect(not mount.is_mounted(), "it is still mounted")
    os.listdir(place.point)


# --- What is killed.

def kill_daemon(mount):
    mount.kill()


def kill_watchdog_first(mount):
    kill_helpers_of(mount.pid)
    time.sleep(0.2)
    mount.kill()


def kill_replaced_watchdog(mount):
    """The one that takes its place knows that the mount stays shut."""
    before = helpers_of(mount.pid, "tracefs-watch")
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: set(helpers_of(mount.pid, "tracefs-watch")) - set(before),
               "another watchdog")
    mount.kill()


def kill_at_once(mount):
    for pid in [*descendants_of(mount.pid), mount.pid]:
        os.kill(pid, signal.SIGKILL)
    mount.process.wait()


def end_connection(mount):
    """As an administrator does with a mount that hangs."""
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        minor = [line.split()[2].split(":")[1] for line in lines
                 if line.split()[4] == mount.point][-1]
    control = SUITE.folder("connections")
    subprocess.run(["mount", "-t", "fusectl", "tracefs-test", control],
                   check=True)
    try:
        with open(os.path.join(control, minor, "abort"), "w",
                  encoding="ascii") as out:
            out.write("1")
    finally:
        subprocess.run(["umount", control], check=True)
    mount.process.wait(PATIENCE_S)


KILLS = {"the daemon": kill_daemon,
         "the watchdog, then the daemon": kill_watchdog_first,
         "a watchdog, its heir's daemon": kill_replaced_watchdog,
         "all at once": kill_at_once,
         "the connection": end_connection}


def killed(how, over_itself):
    place = Place(over_itself=over_itself)
    mount = place.mount()
    helpers = descendants_of(mount.pid)
    intruder = Intruder(place)
    KILLS[how](mount)
    # Time for whoever takes the mount away, and for him to get in.
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}")
                               for pid in helpers), "the end of the helpers")
    time.sleep(0.3)
    expect_shut(mount, place)
    intruder.stop()
    expect_equal(intruder.closed(), errno.ENOTCONN, "what he was told")
    expect_all_recorded(place, intruder)
    count = len(intruder.made())
    open_it(mount, place)
    place.clean()
    return f"{count} directories, all in the trace"


def killed_in_private():
    """tracefs-run: the command goes on, with errors and nothing else."""
    place = Place(over_itself=True)
    config = SUITE.config(strict(place.trace))
    intruder = Intruder(
        place, 0, wrapper=(os.path.join(SUITE.bin, "tracefs-run"), "--quiet",
                           "--config", config, "--src", place.source, "--"))

    def daemon():
        for pid in children_of(intruder.process.pid):
            if name_of(pid) == "tracefs-run":
                return pid
        return None

    wait_until(daemon, "the daemon")
    pid = daemon()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: intruder.closed() == errno.ENOTCONN,
               "the command to notice")
    time.sleep(0.5)
    intruder.stop()
    expect_equal(intruder.closed(), errno.ENOTCONN, "what the command is told")
    expect_all_recorded(place, intruder)
    place.clean()


def ended_in_order(how):
    """What root ends opens: the mount is away, and the trace whole."""
    place = Place(over_itself=True)
    mount = place.mount()
    intruder = Intruder(place)
    intruder.stop()
    if how == "umount":
        mount.unmount()
    else:
        mount.signal(signal.SIGTERM)
        mount.wait(0)
    expect(not mount.is_mounted(), "it is still mounted")
    expect_all_recorded(place, intruder)
    expect_equal(SUITE.dump(place.trace).status, 0, "the trace")
    place.clean()


def late():
    """A tracer that is added later makes the mount one that stays shut."""
    place = Place()
    mount = SUITE.mount(place.source, place.point, SUITE.path(place.name, "any"))
    config = SUITE.path(place.name, "config")
    with open(config, "w", encoding="utf-8") as out:
        out.write("{ { %s } { stream = { %s } } { %s } }" % strict(place.trace))
    SUITE.command("tracefs-ctl", place.point, "add", config)
    intruder = Intruder(place)
    mount.kill()
    time.sleep(0.5)
    expect_shut(mount, place)
    intruder.stop()
    expect_all_recorded(place, intruder)
    open_it(mount, place)
    place.clean()


def steered():
    """Users may not stop it; root may, and it is told."""
    place = Place()
    mount = place.mount()
    for command in (["stop", "1"], ["remove", "1"], ["set-filter", "1", ""],
                    ["unmount"]):
        done = SUITE.tool("tracefs-ctl", place.point, *command, user=USER,
                          group=USER, cwd="/")
        expect(done.returncode != 0, f"a user may {command[0]}")
    expect(mount.is_mounted(), "a user has ended it")
    said = SUITE.command("tracefs-ctl", place.point, "explain")
    expect("refused (EIO)" in said and "stays shut" in said,
           f"explain says nothing of it:\n{said}")
    header = SUITE.command("tracefs-dump", "--header", place.trace, status=None)
    expect(re.search(r"output.when_full\s+fail", header), header)
    SUITE.command("tracefs-ctl", place.point, "stop", "1")
    wait_until(lambda: "is done from here on, and not recorded"
               in mount.messages(), "what the log tells")
    said = SUITE.command("tracefs-ctl", place.point, "explain")
    expect("refused (EIO)" not in said and "stays shut" in said, said)
    mount.kill()
    expect_shut(mount, place)
    open_it(mount, place)
    place.clean()


def others_are_taken_away():
    """Without the policy a dead mount goes, as ever."""
    place = Place()
    mount = SUITE.mount(place.source, place.point, place.trace)
    mount.kill()
    wait_until(lambda: not mount.is_mounted(), "the watchdog to take it away")
    place.clean()


# --- Outputs that fail.

def make_many(point, count, threads=16, prefix="t"):
    """mkdir by many threads at once: how many were made, how many refused."""
    totals = [0, 0]
    others = []
    lock = threading.Lock()

    def work(number):
        for i in range(count):
            try:
                os.mkdir(os.path.join(point, f"{prefix}{number}-{i}"))
                which = 0
            except OSError as error:
                which = 1
                if error.errno != errno.EIO:
                    others.append(error)
            with lock:
                totals[which] += 1

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    expect(not others, f"refused with another errno: {others[:3]}")
    return totals


def fill(folder):
    """Takes all the room that is left there; returns what gives it back."""
    ballast = os.path.join(folder, "ballast")
    with open(ballast, "wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(1 << 16))
        except OSError as error:
            expect_equal(error.errno, errno.ENOSPC, "a full disk")
    return ballast


def full_disk(output):
    """Somebody else fills the disk at once: what is under way has its room, and
    what comes then is refused before it is done."""
    place = Place()
    with SUITE.tmpfs(place.name, "small", size="96m") as small:
        trace = os.path.join(small, "trace")
        mount = SUITE.mount(place.source, place.point, (
            ONLY_MKDIR, "STR_ALL",
            f'file = "{trace}" {output} when_full = fail'))
        ballast = []

        def fill_soon():
            wait_until(lambda: len(place.made_below()) > 300, "some work")
            ballast.append(fill(small))

        filler = threading.Thread(target=fill_soon)
        filler.start()
        made, refused = make_many(place.point, 200)
        filler.join()
        # What was left of a step that was taken before is used up, too.
        more = 0
        while refused == 0 and more < 100:
            again = make_many(place.point, 200, prefix=f"m{more}")
            made, refused, more = made + again[0], again[1], more + 1
        expect(refused > 0, "nothing was refused")
        os.unlink(ballast[0])

        def works():
            try:
                os.mkdir(os.path.join(place.point, "afterwards"))
                return True
            except OSError:
                return False

        wait_until(works, "operations once there is room")
        mount.unmount()
        traces = sorted(os.path.join(small, name) for name in os.listdir(small))
        stats = SUITE.command("tracefs-dump", "--stats", *traces, status=None)
        lost = re.findall(r"no_space|output_error|queue_full", stats)
        expect(not lost, f"something was lost:\n{stats}")
        expect_equal(len(SUITE.dump(*traces).events), made + 1,
                     "recorded operations")
        expect_equal(len(place.made_below()), made + 1, "directories below")
    place.clean()
    return f"{made} made and recorded, {refused} refused"


def limited(output):
    """A limit of the size of files is reached; others than us set it."""
    place = Place()
    config = SUITE.config((ONLY_MKDIR, "STR_ALL",
                           f'file = "{place.trace}" {output} when_full = fail'))
    mount = SUITE.mount_command(
        ["prlimit", "--fsize=262144", os.path.join(SUITE.bin, "tracefs-mount"),
         place.source, place.point, "--config", config, "--foreground",
         "--visibility", "exact", "--transport", SUITE.options.transport],
        place.point)
    made = refused = rounds = 0
    while refused == 0 and rounds < 40:
        again = make_many(place.point, 100, prefix=f"m{rounds}-")
        made, refused, rounds = made + again[0], again[1], rounds + 1
    expect(refused > 0, f"nothing was refused of {made}")
    mount.signal(signal.SIGTERM)
    mount.wait()
    traces = sorted(os.path.join(SUITE.path(place.name), name)
                    for name in os.listdir(SUITE.path(place.name))
                    if name.startswith("trace"))
    stats = SUITE.command("tracefs-dump", "--stats", *traces, status=None)
    lost = re.findall(r"no_space|output_error|queue_full|cut there", stats)
    expect(not lost, f"something was lost:\n{stats}")
    expect_equal(len(SUITE.dump(*traces).events), made, "recorded operations")
    expect_equal(len(place.made_below()), made, "directories below")
    place.clean()
    return f"{made} made and recorded, {refused} refused"


def deep(block):
    """A path that is longer than a block of the trace hides nothing."""
    place = Place()
    mount = SUITE.mount(place.source, place.point, (
        ONLY_MKDIR, "STR_ALL",
        f'file = "{place.trace}" buf = {block} when_full = fail'))
    here = os.open(place.point, os.O_RDONLY | os.O_DIRECTORY)
    names = []
    for number in range(400):
        name = f"{number:03d}" + "x" * 252
        os.mkdir(name, dir_fd=here)
        names.append(name)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    mount.unmount()
    dump = SUITE.dump(place.trace)
    expect_equal(dump.errors, "", "what tracefs-dump says")
    expect_equal([os.path.basename(e["path"]) for e in dump.events], names,
                 "recorded directories")
    subprocess.run(["rm", "-rf", *(os.path.join(place.source, n)
                                   for n in os.listdir(place.source))],
                   check=True)
    place.clean()


def main():
    for over_itself in (False, True):
        where = "over itself" if over_itself else "elsewhere"
        for how in KILLS:
            SUITE.run(f"killed: {how}, mounted {where}", killed, how,
                      over_itself)
    SUITE.run("killed under tracefs-run", killed_in_private)
    for how in ("umount", "SIGTERM"):
        SUITE.run(f"ended by {how}", ended_in_order, how)
    SUITE.run("added later", late)
    SUITE.run("stopped by users and by root", steered)
    SUITE.run("mounts without the policy", others_are_taken_away)
    for output in ("buf = 4K", "", "rotate_size = 64K", "unbuffered"):
        SUITE.run(f"full disk, {output or 'large blocks'}", full_disk, output)
    for output in ("buf = 4K", "unbuffered"):
        SUITE.run(f"files that may not grow, {output}", limited, output)
    for block in ("4K", "64K"):
        SUITE.run(f"a path longer than a block of {block}", deep, block)
    SUITE.finish()


if __name__ == "__main__":
    main()
