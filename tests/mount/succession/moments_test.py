#!/usr/bin/env python3
"""The daemon of a mount with --survive yes is killed at a chosen moment: after it
has made a call below and before its result is known (strace(1) holds it there);
or while the mount ends. moments_table.py beside this one goes
through all operations.

  moments_test.py --bin build/release/bin
"""

import collections
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemon_of, let_daemon_die, successions_of  # noqa: E402
from moment import Caller, Watched  # noqa: E402
from processes import (children_of, descendants_of, is_alive,  # noqa: E402
                       name_of)
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (HANG_S, PATIENCE_S, Skip, Suite,  # noqa: E402
                             expect, expect_equal, wait_until)

# Longer than anything takes until the daemon is killed.
HELD_S = 60

RENAME = """
import ctypes, sys
done = ctypes.CDLL(None, use_errno=True).renameat2(
    -100, sys.argv[1].encode(), -100, sys.argv[2].encode(), int(sys.argv[3]))
sys.exit(ctypes.get_errno() if done else 0)
"""
RENAME_WHITEOUT = 4
RELEASE, TMPFILE = 18, 51  # linux/include/uapi/linux/fuse.h


def killed_after(suite, mount, call, work, made):
    """Runs `work`, a command, and kills the daemon after its `call` below,
    which is there once `made()`; the command's status."""
    daemon = daemon_of(mount)
    said = suite.path("strace.said")
    with open(said, "w", encoding="utf-8") as errors:
        holds = suite.background(subprocess.Popen(
            ["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e",
             f"inject={call}:delay_exit={HELD_S}s", "-p", str(daemon)],
            stderr=errors))

    def attached():
        with open(said, encoding="utf-8") as text:
            if holds.poll() is not None:
                raise Skip("strace cannot be had: " + text.read())
            return "attached" in text.read()
    wait_until(attached, "strace")
    working = suite.background(subprocess.Popen(work))
    wait_until(made, call)
    os.kill(daemon, signal.SIGKILL)
    holds.kill()  # it would hold what is dead, too
    holds.wait(PATIENCE_S)
    status = working.wait(PATIENCE_S)
    wait_until(lambda: successions_of(mount) == 1, "another daemon")
    return status


def case_a_rename_with_a_whiteout_is_made_once(suite):
    if shutil.which("strace") is None:
        raise Skip("needs strace")
    source, point, trace, mount = suite.world.mount()
    with open(os.path.join(source, "a"), "w", encoding="ascii") as out:
        out.write("contents")
    if subprocess.run([sys.executable, "-c", RENAME, source + "/a",
                       source + "/c", str(RENAME_WHITEOUT)],
                      check=False).returncode != 0:
        raise Skip("no whiteouts there")
    os.remove(source + "/a")
    os.rename(source + "/c", source + "/a")
    status = killed_after(
        suite, mount, "renameat2",
        [sys.executable, "-c", RENAME, point + "/a", point + "/b",
         str(RENAME_WHITEOUT)], lambda: os.path.exists(source + "/b"))
    expect_equal(status, 0, "the rename")
    with open(os.path.join(point, "b"), encoding="ascii") as text:
        expect_equal(text.read(), "contents", "what was renamed")
    left = os.stat(os.path.join(source, "a"))
    expect(stat.S_ISCHR(left.st_mode) and left.st_rdev == 0, "the whiteout")
    mount.unmount()
    read = subprocess.run(
        [os.path.join(suite.bin, "tracefs-dump"), "--format", "jsonl",
         "--filter", "op = rename", trace], capture_output=True, check=True)
    renames = [event for event in map(json.loads, read.stdout.splitlines())
               if event.get("op") == "rename"]
    expect_equal(len(renames), 1, "renames in the trace")


def case_a_name_that_is_gone_is_not_another_one(suite):
    """Of two names one is removed, and the daemon is killed."""
    source, point, trace, mount = suite.world.mount()
    for name in ("gone", "real (deleted)"):
        with open(os.path.join(point, name), "w", encoding="ascii") as held:
            os.link(held.name, held.name + "-2")
            if name == "gone":
                os.unlink(held.name)
            held.write("x")
            let_daemon_die(mount, point)
    mount.unmount()
    expect_equal(sorted(event["path"] for event in suite.read(
        trace, only="op = write")), ["/gone", "/real (deleted)"],
                 f"written to ({os.listdir(source)} is there)")


def case_who_waits_for_the_mount_is_told_that_it_is_there(suite):
    """Its first daemon is killed when it is about to say so."""
    if shutil.which("strace") is None:
        raise Skip("needs strace")
    source, point = suite.folder("told", "source"), suite.folder("told", "mnt")
    out = suite.path("told", "messages")
    with open(out, "w", encoding="utf-8") as messages:
        holds = suite.background(subprocess.Popen(
            ["strace", "-f", "-o", os.devnull, "-P", out, "-e", "trace=write",
             "-e", f"inject=write:delay_enter={HELD_S}s",
             os.path.join(suite.bin, "tracefs-mount"), source, point,
             "--config", suite.config(suite.path("told", "trace")),
             "--foreground", "--visibility", "exact", "--transport", "dev",
             "--survive", "yes"], stdout=messages, stderr=messages))

    def is_held():
        """The first daemon, which serves, and stands still."""
        for daemon in descendants_of(holds.pid):
            tasks = f"/proc/{daemon}/task"
            with contextlib.suppress(OSError):
                names = {name_of(task) for task in os.listdir(tasks)}
                with open(f"/proc/{daemon}/stat", encoding="ascii") as text:
                    if "tracefs-worker" in names and ") t " in text.read():
                        return daemon
        return None

    def said():
        with open(out, encoding="utf-8") as messages:
            return messages.read()
    wait_until(is_held, "a daemon that is about to say that it serves")
    while is_held() is None or time.sleep(0.2) or is_held() is None:
        expect(not said(), "it was not held")
    keeper = children_of(holds.pid)[0]
    os.kill(is_held(), signal.SIGKILL)
    holds.kill()
    holds.wait(PATIENCE_S)
    try:
        wait_until(lambda: "mounted" in said(), "its word", HANG_S)
        os.mkdir(os.path.join(point, "a"))
    finally:
        subprocess.run(["umount", "-l", point], check=True)
        wait_until(lambda: not is_alive(keeper), "its end")


def case_a_close_is_recorded_once(suite):
    """Also where the store is asked for something at the close."""
    source, point = suite.folder("close", "source"), suite.folder("close", "m")
    trace = suite.path("close", "trace")
    mount = suite.mount(
        source, point, ("", "STR_ALL | STR_EXTENTS", f'file = "{trace}"'),
        transport="dev", options=("--survive", "yes"))

    def closed(name, moment):
        dead = successions_of(mount)
        watched = Watched(suite, daemon_of(mount), RELEASE, moment)
        with open(os.path.join(point, name), "w", encoding="ascii") as out:
            out.write("content")
        watched.await_word("taken")
        watched.go()
        found = watched.moments()
        wait_until(lambda: moment not in found or successions_of(mount) > dead,
                   "another daemon")
        return found
    moments = closed("never", "never")
    for moment in moments:
        closed(moment, moment)
    mount.unmount()
    found = collections.Counter((event["path"], event["tid"], event["uid"])
                                for event in suite.read(
                                    trace, only="op = release"))
    expect_equal(found, {("/" + name, os.getpid(), os.geteuid()): 1
                         for name in ("never", *moments)},
                 "closes in the trace")
    return ", ".join(moments)


def case_a_file_without_a_name_is_made_once(suite):
    """Its record has the number that it has."""
    def make(point):
        fd = os.open(point, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(fd, b"content")
        if os.pread(fd, 9, 0) != b"content":
            return "another content"
        return os.fstat(fd).st_ino

    def made(mount, point, moment):
        dead = successions_of(mount)
        watched = Watched(suite, daemon_of(mount), TMPFILE, moment)
        caller = Caller(make, point)
        watched.await_word("taken")
        watched.go()
        found = watched.moments()
        number = caller.outcome()
        wait_until(lambda: moment not in found or successions_of(mount) > dead,
                   "another daemon")
        return number, found

    # It gives no number to two files.
    with suite.tmpfs("nameless", size="16m") as source:
        _, point, trace, mount = suite.world.mount(source=source)
        number, moments = made(mount, point, "never")
        numbers = [number] + [made(mount, point, moment)[0]
                              for moment in moments]
        wait_until(lambda: not suite.world.known(point), "all forgotten")
        mount.unmount()
    expect_equal([event["ino"] for event in suite.read(
        trace, only="op = tmpfile")], numbers, "files in the trace")
    return ", ".join(moments)


def ended(suite, how, moment):
    """A mount is ended by `how(mount, point)`, and its daemon killed in that
    moment of what it then does to the trace. The operations in there, its words
    about itself, and the moments. It has ended well, and so the next mount there
    hears."""
    source, point, trace, mount = suite.world.mount()
    for name in ("a", "b"):
        os.mkdir(os.path.join(point, name))
    watched = Watched(suite, daemon_of(mount), trace, moment)
    os.mkdir(os.path.join(point, "c"))
    how(mount, point)
    moments = watched.moments()
    mount.wait(0)
    following = suite.mount(source, point, trace + "-2", transport="dev")
    expect("before" not in following.messages(), following.messages())
    following.unmount()
    suite.command("tracefs-verify", trace)
    dump = suite.dump(trace)
    expect_equal(dump.status, 0, dump.errors)
    made = sorted(event["path"] for event in dump.events
                  if event["op"] in ("mkdir", "release", "releasedir"))
    with open(trace, "rb") as file:
        end = file.read()[-300:]
    shutil.rmtree(suite.path(suite.world.base))
    return made, [word for word in (b"signal", b"unmount") if word in end], \
        moments


def as_if_not_killed(suite, how, chosen=list):
    made, end, moments = ended(suite, how, "never")
    expect(len(moments) > 3, f"moments of its end: {moments}")
    some = chosen(moments)
    for moment in some:
        # It need not come: blocks are written from time to time.
        now, now_end, _ = ended(suite, how, moment)
        expect_equal((now, now_end), (made, end), f"killed at {moment}")
    return f"{len(some)} kills: {', '.join(some)}"


def case_an_unmount_ends_the_trace(suite):
    return as_if_not_killed(suite, lambda _, point: subprocess.run(
        ["umount", point], check=True))


def case_a_signal_ends_the_trace(suite):
    return as_if_not_killed(
        suite, lambda mount, _: mount.signal(signal.SIGTERM))


def case_a_signal_ends_the_trace_of_files_in_use(suite):
    def end(mount, point):
        holds = suite.background(subprocess.Popen(
            ["sleep", "1000"], stdin=open(os.path.join(point, "held"), "w"),
            cwd=os.path.join(point, "a")))
        mount.signal(signal.SIGTERM)
        wait_until(lambda: mount.process.poll() is not None, "its end")
        holds.kill()
    # Each takes as long as users are given to let go: the last blocks.
    return as_if_not_killed(suite, end, lambda moments: [
        one for one in moments if one.startswith("pwritev>")][-2:])


def main():
    suite = Suite("moments", __doc__)
    suite.world = Succession(suite)
    suite.run_cases(globals())
    suite.finish()


if __name__ == "__main__":
    main()
