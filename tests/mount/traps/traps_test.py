#!/usr/bin/env python3
"""Where pass-through file systems fail: what usual suites do not look at.

Opens of all kinds on one file, programs run right after they were written,
append-only files, lock waiters by the dozen, directories that shrink while they
are listed, a daemon without descriptors, callers of other PID namespaces. What
must come out is what the directory below would give. tests/mount/README.md
lists which test covers what.

  traps_test.py --bin build/release/bin                        for ctest
  traps_test.py --bin ... --entries 100000 --triples           all of it
"""

import argparse
import array
import collections
import contextlib
import ctypes
import errno
import fcntl
import itertools
import mmap
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (TRANSPORTS, VISIBILITIES, Failure,  # noqa: E402
                             Skip, Suite, expect, expect_equal,
                             wait_until)

USER = 61001  # an ordinary user
NOBODY = 65534  # one that fusermount3 finds a name for
SIZES_ASKED = 4000
CASE_S = 60   # the longest a case may take before it counts as a hang

# Filters that leave reads and writes to the kernel (FUSE passthrough), that
# have them all sent, and that do either by who opens the file.
LEFT_TO_KERNEL = "op = fsync AND cuid = 4000000000"
ALL = ""
BY_USER = f"cuid = {USER}"

FS_IOC_GETFLAGS = 0x80086601
FS_IOC_SETFLAGS = 0x40086602
FS_APPEND_FL = 0x20
LIBC = ctypes.CDLL(None, use_errno=True)


def expect_error(numbers, text, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        expect(error.errno in numbers,
               f"{text}: {os.strerror(error.errno)}, not "
               + " or ".join(os.strerror(number) for number in numbers))
        return
    raise Failure(f"{text}: it is not refused")


class Traps:
    def __init__(self, suite):
        self.suite = suite
        self.mounted = suite.mounted

    def in_process(self, mount, body, *arguments):
        """Runs body in a process of its own; what hangs is a failure."""
        end, child_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            text = ""
            try:
                text = str(body(*arguments) or "")
                status = 0
            except Failure as failure:
                text = str(failure)
                status = 1
            except BaseException:  # pylint: disable=broad-except
                text = traceback.format_exc()
                status = 1
            os.write(child_end, text.encode()[:60000])
            os._exit(status)
        os.close(child_end)
        deadline = time.monotonic() + CASE_S
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                mount.kill()
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                os.close(end)
                raise Failure("it hangs")
            time.sleep(0.01)
        with os.fdopen(end) as pipe:
            text = pipe.read()
        expect(os.waitstatus_to_exitcode(status) == 0, text)
        return text

    # --- opens of all kinds on one file

    def open_modes(self, triples):
        """Two (or three) opens of one file at a time, in all kinds and orders,
        some traced and some left to the kernel: none fails, all see the same."""
        with self.mounted(BY_USER) as (_, point, mount):
            return self.in_process(mount, open_all_kinds, point,
                                   3 if triples else 2)

    def open_race(self, threads):
        """Many threads open one file at once, traced and not."""
        with self.mounted(BY_USER) as (_, point, mount):
            return self.in_process(mount, open_at_once, point, threads)

    # --- programs

    def exec_after_write(self, filter_text, visibility):
        """A set-user-id or set-group-id program that somebody has written to is
        none any more, at once."""
        identity = shutil.which("id")
        with self.mounted(filter_text, visibility,
                          options=["-o", "suid"]) as (source, point, mount):
            shutil.copy(identity, os.path.join(source, "program"))
            os.chown(os.path.join(source, "program"), 0, 0)
            program = os.path.join(point, "program")

            def run(who="-u"):
                return subprocess.run([program, who], user=USER, group=USER,
                                      extra_groups=[], capture_output=True,
                                      text=True, check=True).stdout.strip()

            def write():
                os.setgroups([])
                os.setgid(USER)
                os.setuid(USER)
                fd = os.open(program, os.O_WRONLY | os.O_APPEND)
                os.write(fd, b"\0")
                os.close(fd)

            def truncate():
                os.setgroups([])
                os.setgid(USER)
                os.setuid(USER)
                os.truncate(program, os.path.getsize(program) + 1)

            for change in (write, truncate):
                os.chmod(program, 0o4777)
                expect_equal(run(), "0", "the user a set-user-id program runs "
                             "as (-o suid)")
                self.in_process(mount, change)
                expect_equal(run(), str(USER), "the user it runs as right "
                             f"after a {change.__name__} by another user")
                mode = stat.S_IMODE(os.stat(program).st_mode)
                expect_equal(oct(mode), "0o777", "its mode then")
                below = os.stat(os.path.join(source, "program")).st_mode
                expect_equal(oct(stat.S_IMODE(below)), "0o777",
                             "its mode below then")
                os.chmod(program, 0o2777)
                expect_equal(run("-g"), "0", "the group a set-group-id program "
                             "runs as (-o suid)")
                self.in_process(mount, change)
                expect_equal(run("-g"), str(USER), "the group it runs as right "
                             f"after a {change.__name__} by another user")

    def exec_after_mapping(self, filter_text):
        """A program that was written through a mapping runs, also while the
        mapping is dirty."""
        text = b"#!/bin/sh\necho it runs\n"
        with self.mounted(filter_text) as (_, point, mount):
            program = os.path.join(point, "program")

            def body():
                fd = os.open(program, os.O_CREAT | os.O_RDWR, 0o755)
                os.ftruncate(fd, len(text))
                view = mmap.mmap(fd, len(text))
                view[:] = text
                os.close(fd)
                for closed in (False, True):
                    if closed:
                        view.close()
                    out = subprocess.run(["/bin/sh", program],
                                         capture_output=True, check=True)
                    expect_equal(out.stdout, b"it runs\n", "its output")
                out = subprocess.run([program], capture_output=True, check=True)
                expect_equal(out.stdout, b"it runs\n", "its output, executed")

            self.in_process(mount, body)

    # --- files that may be stored to through a map

    def storm_of_sizes(self, visibility):
        """lseek(SEEK_END) over and over on such a file, as databases do, is
        always right; but for `exact` the kernel answers most of it. Times are
        those below a moment after a store, and at once when the storm is over."""
        with self.mounted("op = getattr", visibility) as (source, point, mount):
            self.in_process(mount, ask_for_sizes, source, point)
        asked = sum(event["op"] == "getattr" for event in mount.events)
        if visibility == "exact":
            expect(asked >= SIZES_ASKED, f"only {asked} requests")
        else:
            expect(asked < SIZES_ASKED / 2, f"{asked} requests")

    # --- files with attributes

    def exec_below(self, filter_text, visibility):
        """What is written through the mount and closed runs below at once:
        nobody has it open for writing any more."""
        with self.mounted(filter_text, visibility) as (source, point, _):
            program = os.path.realpath("/bin/true")
            made = os.path.join(point, "made")
            with open(program, "rb") as file, open(made, "wb") as new:
                new.write(file.read())
            os.chmod(made, 0o755)
            # Opened for writing after it was known.
            with open(made, "ab"):
                pass
            below = os.path.join(source, "made")
            wait_until(lambda: not open_for_writing(below),
                       "the file is closed below", CASE_S)
            subprocess.run([below], check=True, timeout=CASE_S)

    def append_only(self, filter_text):
        with self.mounted(filter_text) as (source, point, mount):
            path = os.path.join(point, "log")
            with open(path, "wb") as out:
                out.write(b"first\n")
            try:
                set_flags(path, FS_APPEND_FL)
            except OSError as error:
                if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP):
                    return Skip("no append-only files on this file system")
                raise
            try:
                self.in_process(mount, append_only_body, path)
            finally:
                set_flags(os.path.join(source, "log"), 0)
            with open(os.path.join(source, "log"), "rb") as log:
                expect_equal(log.read(), b"first\nsecond\n", "what is in it")
        return None

    def append_only_mapped(self, filter_text, visibility):
        """A mapping changes nothing in an append-only file, whoever has had it
        open before; appending goes on."""
        with self.mounted(filter_text, visibility) as (source, point, mount):
            for name in ("new", "seen", "held"):
                below = os.path.join(source, name)
                path = os.path.join(point, name)
                with open(below, "wb") as out:
                    out.write(b"first\n")
                held = []
                if name != "new":
                    with open(path, "r+b") as seen:
                        seen.read()
                if name == "held":
                    held.append(os.open(path, os.O_RDONLY))
                try:
                    set_flags(below, FS_APPEND_FL)
                except OSError as error:
                    if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP):
                        return Skip("no append-only files on this file system")
                    raise
                try:
                    self.in_process(mount, append_only_mapped_body, path,
                                    name == "held")
                finally:
                    set_flags(below, 0)
                    for fd in held:
                        os.close(fd)
                with open(below, "rb") as log:
                    expect_equal(log.read(), b"first\nsecond\nthird\n",
                                 f"what is in {name}")
        return None

    # --- locks

    def lock_waiters(self, filter_text, transport, count):
        """Many wait for a lock; everybody else goes on; each gets it."""
        with self.mounted(filter_text, transport=transport) as (_, point,
                                                                mount):
            return self.in_process(mount, many_waiters, point, count)

    def traced_locks_need_dev(self):
        """Over io_uring a waiter would hold up a whole queue: refused."""
        try:
            with self.mounted("op = flock", transport="uring"):
                pass
        except Failure as failure:
            expect("ended with 2" in str(failure) and "dev" in str(failure),
                   f"it is refused with: {failure}")
            return None
        raise Failure("it is not refused")

    # --- directories

    def shrinking_directory(self, visibility, entries):
        """Names that are there all the time are listed once; those that go, at
        most once."""
        with self.mounted("op IN { unlink }", visibility) as (source, point,
                                                             mount):
            folder = os.path.join(source, "many")
            os.mkdir(folder)
            for i in range(entries):
                os.close(os.open(os.path.join(folder, f"entry{i:06}"),
                                 os.O_CREAT | os.O_WRONLY))
            where = os.path.join(point, "many")
            self.in_process(mount, scan_while_deleting, where, entries)
            self.in_process(mount, remove_while_scanning, where)
        return f"{entries} entries"

    # --- a daemon without descriptors

    def descriptors(self, filter_text):
        """Clients get an error when the daemon has no descriptor left, and all
        is as before when they have closed some."""
        with open(os.path.join(self.suite.bin, "tracefs-mount"), "rb") as file:
            if b"__ubsan_" in file.read():
                return Skip("UBSan looks at memory through descriptors")
        with self.mounted(filter_text) as (source, point, mount):
            for i in range(600):
                with open(os.path.join(source, f"f{i}"), "wb") as out:
                    out.write(b"content")
            used = len(os.listdir(f"/proc/{mount.pid}/fd"))
            limit = used + 150
            resource.prlimit(mount.pid, resource.RLIMIT_NOFILE, (limit, limit))
            refused = self.in_process(mount, exhaust, point, 600)
        return f"{refused} of 600 opens refused"

    # --- other PID namespaces

    def other_sessions(self):
        """The kernel shares processors out among sessions. Queue threads let
        their callers stay where they are, and do not starve beside others."""
        try:
            with open("/proc/sys/kernel/sched_autogroup_enabled",
                      encoding="ascii") as text:
                if text.read().strip() != "1":
                    return Skip("no autogroups here")
        except OSError as error:
            return Skip(f"no autogroups here: {error.strerror}")
        try:
            return self.idle_threads()
        except Failure as failure:
            if "not shared out by session" in str(failure):
                return Skip("a cgroup decides here")
            raise

    def idle_threads(self):
        with self.mounted(
                ALL, transport="uring", wrapper=("setsid",),
                options=("--queue-threads", "idle")) as (_, point, mount):
            threads = [int(t) for t in os.listdir(f"/proc/{mount.pid}/task")]
            policies = {os.sched_getscheduler(t) for t in threads}
            with open(f"/proc/{mount.pid}/autogroup",
                      encoding="ascii") as text:
                standing = text.read().split()[1:]
            expect_equal(policies, {os.SCHED_IDLE}, "policies")
            expect_equal(standing, ["nice", "-20"], "standing")
            busy = [self.suite.background(subprocess.Popen(
                        [sys.executable, "-c", "while True: pass"],
                        start_new_session=True))
                    for _ in range(2 * os.cpu_count())]
            begin = time.monotonic()
            for i in range(500):
                path = os.path.join(point, f"f{i}")
                with open(path, "wb"):
                    pass
                os.unlink(path)
            took = time.monotonic() - begin
            for process in busy:
                process.kill()
                process.wait()
            # Several requests each; starving takes a hundred times as long.
            expect(took < 20, f"starves: {took:.1f} s")
        return None

    def measured_threads(self, kind):
        """What was measured, or asked for, is had and told."""
        with self.mounted(
                ALL, transport="uring", wrapper=("setsid",),
                options=("--queue-threads", kind)) as (_, point, mount):
            for i in range(200):
                os.mkdir(os.path.join(point, f"d{i}"))
            said = self.suite.command("tracefs-ctl", point, "explain")
            expect("queue threads" in said, said)
            if kind == "auto":
                expect("round trips: " in said, said)
                return None
            expect("as asked for" in said, said)
            rings = []
            for task in os.listdir(f"/proc/{mount.pid}/task"):
                with open(f"/proc/{mount.pid}/task/{task}/comm",
                          encoding="ascii") as text:
                    if text.read().startswith("fuse-ring"):
                        rings.append(int(task))
            # Those of processors where nobody called have not heard yet.
            found = {os.getpriority(os.PRIO_PROCESS, t) for t in rings}
            want = {"nice": -10, "normal": 0}[kind]
            expect(want in found, f"nice values: {found}")
        return None

    def callers_in_turn(self):
        """Many callers of few processors: how they are served best is tried
        with their requests, and told."""
        with self.mounted(
                ALL, "exact", transport="uring", wrapper=("setsid",)) as (
                    _, point, _):
            def said():
                return self.suite.command("tracefs-ctl", point, "explain")

            if "SCHED_IDLE" not in said():
                return "queue threads do not run before their callers here"
            callers = [subprocess.Popen(
                [sys.executable, "-c",
                 "import os, sys\nwhile True: os.stat(sys.argv[1])", point])
                for _ in range(8 * os.cpu_count())]
            try:
                wait_until(lambda: "requests while callers took turns" in
                           said(), "a trial")
            finally:
                for caller in callers:
                    caller.kill()
                    caller.wait()
            wait_until(lambda: "which gives way" not in said(),
                       "the end of turns")
        return None

    def client_in_namespace(self):
        """A caller in a PID namespace below ours is known by our numbers."""
        with self.mounted(ALL, "exact") as (_, point, mount):
            client = subprocess.Popen(
                ["unshare", "--pid", "--fork", "/bin/sh", "-c",
                 f"echo $$ > {point}/mine; read line"],
                stdin=subprocess.PIPE)
            mine = os.path.join(point, "mine")
            wait_until(lambda: os.path.exists(mine)
                       and os.path.getsize(mine) > 0, "the client")
            with open(f"/proc/{client.pid}/task/{client.pid}/children",
                      encoding="ascii") as children:
                pid = int(children.read())
            with open(mine, encoding="ascii") as number:
                expect_equal(number.read(), "1\n", "its number there")
            client.communicate(b"\n")
        writes = [e for e in mount.events if e["op"] == "write"]
        expect_equal([(e["tid"], e["pid"], e["comm"]) for e in writes],
                     [(pid, pid, "sh")], "who wrote")

    def daemon_in_namespace(self):
        """A caller whom the daemon's PID namespace does not know is served, and
        nobody else's name is put in its place."""
        with self.mounted(ALL, "exact", wrapper=[
                "unshare", "--pid", "--fork", "--kill-child"]) as (_, point,
                                                                   mount):
            with open(os.path.join(point, "f"), "wb") as out:
                out.write(b"from outside")
            os.rename(os.path.join(point, "f"), os.path.join(point, "g"))
        ours = [e for e in mount.events
                if e["op"] in ("create", "write", "rename")]
        expect_equal([e["op"] for e in ours], ["create", "write", "rename"],
                     "what was recorded")
        for event in ours:
            expect(not event.get("pid") and not event.get("comm"),
                   f"somebody's name: {event}")

    def over_another_mount(self, transport):
        """A file system below that asks a server is asked as each caller: the
        server may look at who it is."""
        with self.mounted(ALL, "exact") as (_, below, lower):
            os.chmod(below, 0o777)
            with self.mounted(ALL, "exact", transport=transport,
                              source=below) as (_, point, upper):
                for user in (NOBODY, 0, NOBODY, 0):
                    self.in_process(upper, work_as, user, point)
        seen = collections.defaultdict(set)
        for event in lower.events:
            for name in ("work-of-0", f"work-of-{NOBODY}"):
                # A release has no caller, and it closes.
                if name in event.get("path", "") and event["op"] not in (
                        "flush", "release", "releasedir"):
                    seen[name].add((event["op"], event["uid"]))
        for user in (NOBODY, 0):
            ops = seen[f"work-of-{user}"]
            expect({"lookup", "create", "getattr", "rename", "unlink",
                    "setattr", "listxattr", "opendir"} <=
                   {op for op, _ in ops}, f"what was done: {ops}")
            expect_equal({uid for _, uid in ops}, {user},
                         f"who does {user}'s work: {ops}")

    # --- no root

    def ordinary_user(self, visibility):
        """A mount through fusermount3, without passthrough and capabilities:
        opens of all kinds agree there too, and nobody else sees it."""
        if shutil.which("fusermount3") is None:
            return Skip("fusermount3 is not installed")
        folder = self.suite.folder(f"ordinary-{visibility}")
        command = [sys.executable, "-B", os.path.abspath(__file__),
                   "--bin", self.suite.bin, "--ordinary-user", folder,
                   "--visibility", visibility]
        # In a mount namespace of its own, where /dev/fuse is for all.
        child = self.suite.background(subprocess.Popen(
            ["unshare", "--mount", *command], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True))
        try:
            output, _ = child.communicate(timeout=CASE_S)
        except subprocess.TimeoutExpired:
            raise Failure("it hangs") from None
        expect_equal(child.returncode, 0, f"its exit status; it said\n{output}")
        events = self.suite.read(os.path.join(folder, "trace"))
        expect(any(e["op"] == "write" and e["uid"] == NOBODY for e in events),
               "no write is in the trace")
        if not self.suite.options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        return output.strip()


def open_for_writing(path):
    """Whether running it fails for that. RELEASE comes a moment after close."""
    try:
        subprocess.run([path], check=True, timeout=CASE_S)
    except OSError as error:
        if error.errno == errno.ETXTBSY:
            return True
        raise
    return False


def as_ordinary_user(folder, binaries, visibility):
    """The part of ordinary_user() in the namespace."""
    device = os.path.join(folder, "fuse")
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(10, 229))
    os.chmod(device, 0o666)
    subprocess.run(["mount", "--bind", device, "/dev/fuse"], check=True)
    source = os.path.join(folder, "source")
    point = os.path.join(folder, "mnt")
    for each in (source, point):
        os.mkdir(each)
        os.chown(each, NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    config = os.path.join(folder, "config")
    with open(config, "w", encoding="ascii") as out:
        out.write("{ { } { stream = { STR_ALL } } { file = \"%s\" } }"
                  % os.path.join(folder, "trace"))
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with subprocess.Popen(
            [os.path.join(binaries, "tracefs-mount"), source, point,
             "--config", config, "--foreground", "--visibility", visibility],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, **user) as daemon:
        try:
            said = ""
            for line in daemon.stdout:  # warnings come first
                said += line
                if "mounted" in line:
                    break
            expect("mounted" in said, said)
            expect_error([errno.EACCES], "root", os.listdir, point)
            pid = os.fork()
            if pid == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                try:
                    print(open_all_kinds(point, 2))
                    status = 0
                except BaseException:  # pylint: disable=broad-except
                    traceback.print_exc(file=sys.stdout)
                    status = 1
                sys.stdout.flush()
                os._exit(status)
            _, status = os.waitpid(pid, 0)
            expect_equal(os.waitstatus_to_exitcode(status), 0, "the user")
            with open(os.path.join(source, "file"), "rb") as below:
                expect(below.read().strip(b"\0"), "nothing came through")
            subprocess.run(["fusermount3", "-u", point], check=True, **user)
            expect_equal(daemon.wait(CASE_S), 0, "the daemon's exit status")
        finally:
            daemon.kill()


# --- bodies: run in a process of their own, which may hang

def as_user(uid):
    """This thread opens files as that user (root keeps its capabilities)."""
    LIBC.setfsuid(uid)


def work_as(user, folder):
    """A little of everything, with a name that tells who did it."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    name = os.path.join(folder, f"work-of-{user}")
    os.mkdir(name)
    path = os.path.join(name, "file")
    with open(path, "wb") as out:
        out.write(b"content")
    os.listxattr(path)
    os.chmod(path, 0o600)
    os.rename(path, path + "2")
    os.stat(path + "2")
    os.listdir(name)
    os.unlink(path + "2")
    os.rmdir(name)


class Opened:
    """One open of the file: how, and what it can do."""

    KINDS = {
        "read": (0, os.O_RDONLY, False),
        "write": (0, os.O_RDWR, False),
        "append": (0, os.O_RDWR | os.O_APPEND, False),
        "direct": (0, os.O_RDWR | os.O_DIRECT, False),
        "mapped": (0, os.O_RDWR, True),
        "traced read": (USER, os.O_RDONLY, False),
        "traced write": (USER, os.O_RDWR, False),
        "traced write-only": (USER, os.O_WRONLY, False),
        "traced direct": (USER, os.O_RDWR | os.O_DIRECT, False),
        "traced mapped": (USER, os.O_RDWR, True),
    }
    SIZE = 8192

    def __init__(self, path, kind):
        user, flags, mapped = self.KINDS[kind]
        as_user(user)
        try:
            self.fd = os.open(path, flags)
        finally:
            as_user(0)
        mode = flags & os.O_ACCMODE
        self.reads = mode != os.O_WRONLY
        self.writes = mode != os.O_RDONLY and not flags & os.O_APPEND
        self.map = mmap.mmap(self.fd, self.SIZE) if mapped else None
        # O_DIRECT wants aligned memory, which a mapping is.
        self.page = mmap.mmap(-1, self.SIZE)

    def write(self, content):
        if self.map is not None:
            self.map[:] = content
        else:
            self.page[:] = content
            expect_equal(os.pwritev(self.fd, [self.page], 0), self.SIZE,
                         "bytes written")

    def read(self):
        if self.map is not None:
            return self.map[:]
        expect_equal(os.preadv(self.fd, [self.page], 0), self.SIZE,
                     "bytes read")
        return self.page[:]

    def close(self):
        if self.map is not None:
            self.map.close()
        self.page.close()
        os.close(self.fd)


def open_all_kinds(folder, at_once):
    path = os.path.join(folder, "file")
    with open(path, "wb") as out:
        out.write(bytes(Opened.SIZE))
    os.chmod(path, 0o666)
    count = 0
    content = b""
    for kinds in itertools.product(Opened.KINDS, repeat=at_once):
        text = " + ".join(kinds)
        try:
            opened = []
            for kind in kinds:
                opened.append(Opened(path, kind))
            for number, one in enumerate(opened):
                if not one.writes:
                    continue
                content = bytes([(count + number) % 251 + 1]) * Opened.SIZE
                one.write(content)
                for other, name in zip(opened, kinds):
                    if other.reads:
                        expect_equal(other.read()[::1024], content[::1024],
                                     f"{text}: what {name} reads")
            for one in opened:
                one.close()
        except OSError as error:
            raise Failure(f"{text}: {error}") from None
        count += 1
    return f"{count} combinations"


def open_at_once(folder, threads):
    path = os.path.join(folder, "file")
    with open(path, "wb") as out:
        out.write(b"x" * 4096)
    os.chmod(path, 0o666)
    gate = threading.Barrier(threads)
    failures = []
    rounds = 10

    def work(number):
        try:
            for turn in range(rounds):
                gate.wait(CASE_S)
                as_user(USER if number % 2 else 0)
                fd = os.open(path, os.O_RDWR)
                os.pwrite(fd, b"y", number)
                expect_equal(len(os.pread(fd, 4096, 0)), 4096, "bytes read")
                os.close(fd)
                # All make the same new file: one does, the others open it.
                fd = os.open(os.path.join(folder, f"new{turn}"),
                             os.O_CREAT | os.O_RDWR, 0o666)
                os.pwrite(fd, bytes([number]), number)
                os.close(fd)
        except (OSError, Failure, threading.BrokenBarrierError) as error:
            failures.append(f"thread {number}: {error}")
            gate.abort()

    os.umask(0)
    running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    expect(not failures, "\n".join(failures[:5]))
    for turn in range(rounds):
        with open(os.path.join(folder, f"new{turn}"), "rb") as made:
            expect_equal(made.read(), bytes(range(threads)),
                         "what all wrote into one new file")
    return f"{threads} threads"


def ask_for_sizes(source, point):
    name = "table"
    below = os.path.join(source, name)
    fd = os.open(os.path.join(point, name), os.O_CREAT | os.O_RDWR)
    other = os.open(os.path.join(point, name), os.O_WRONLY | os.O_APPEND)
    size = os.write(fd, bytes(8192))

    def expect_times(when):
        expect_equal(os.fstat(fd).st_mtime_ns, os.stat(below).st_mtime_ns,
                     f"the time of modification {when}")

    with mmap.mmap(fd, 4096) as view:
        for turn in range(SIZES_ASKED):
            if turn % 500 == 0:
                size += os.write(other, bytes(100))
            expect_equal(os.lseek(fd, 0, os.SEEK_END), size, "the size")
            if turn % 1000 == 999:
                view[0] ^= 1
                time.sleep(0.05)  # a few ticks
                expect_times("a moment after a store")
                view.flush()
        for _ in range(10):
            time.sleep(0.05)
            os.lseek(fd, 0, os.SEEK_END)
            expect_times("before a store")
            view[0] ^= 1
            expect_times("right after a store")
            view.flush()
    os.close(other)
    os.close(fd)


def set_flags(path, flags):
    fd = os.open(path, os.O_RDONLY)
    try:
        was = array.array("l", [0])
        fcntl.ioctl(fd, FS_IOC_GETFLAGS, was)
        was[0] = was[0] & ~FS_APPEND_FL | flags
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, was)
    finally:
        os.close(fd)


def append_only_body(path):
    for flags, text in ((os.O_WRONLY, "opening for writing"),
                        (os.O_RDWR, "opening for both"),
                        (os.O_WRONLY | os.O_TRUNC, "truncation at open"),
                        (os.O_WRONLY | os.O_APPEND | os.O_TRUNC,
                         "truncation at open for appending")):
        expect_error([errno.EPERM], text, os.open, path, flags)
    expect_error([errno.EPERM], "truncate", os.truncate, path, 0)
    expect_error([errno.EPERM], "unlink", os.unlink, path)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    # Also of somebody who forgets where the end is.
    expect_equal(os.pwrite(fd, b"second\n", 0), 7, "bytes appended")
    expect_error([errno.EPERM], "ftruncate", os.ftruncate, fd, 0)
    os.close(fd)


def append_only_mapped_body(path, may_be_refused):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"second\n")
    os.close(fd)
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND)
    except PermissionError:
        expect(may_be_refused, "it cannot be opened for appending and reading")
    else:
        # It may be refused at once, or what is stored goes nowhere.
        with contextlib.suppress(OSError):
            with mmap.mmap(fd, 0, mmap.MAP_SHARED) as mapped:
                mapped[0:6] = b"FORGED"
                mapped.flush()
        expect_equal(os.pread(fd, 5, 0), b"first", "what is read")
        os.close(fd)
    os.sync()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"third\n")
    os.close(fd)


def many_waiters(folder, count):
    path = os.path.join(folder, "lock")
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.lockf(fd, fcntl.LOCK_EX)
    waiters = []
    for number in range(2 * count):
        pid = os.fork()
        if pid == 0:
            mine = os.open(path, os.O_RDWR)
            take = fcntl.flock if number < count else fcntl.lockf
            take(mine, fcntl.LOCK_EX)
            with open(os.path.join(folder, f"got{number}"), "wb"):
                pass
            take(mine, fcntl.LOCK_UN)
            os._exit(0)
        waiters.append(pid)
    time.sleep(0.3)  # until they wait
    begin = time.monotonic()
    for i in range(100):
        name = os.path.join(folder, f"other{i}")
        with open(name, "wb") as out:
            out.write(b"x")
        os.stat(name)
        os.unlink(name)
    took = time.monotonic() - begin
    expect(took < 10, f"others are held up: {took:.1f} s")
    got = [n for n in os.listdir(folder) if n.startswith("got")]
    expect_equal(got, [], "who got a lock that is held")
    # One of each kind gives up.
    for number in (0, count):
        os.kill(waiters[number], signal.SIGKILL)
        _, status = os.waitpid(waiters[number], 0)
        expect_equal(os.waitstatus_to_exitcode(status), -signal.SIGKILL,
                     "a waiter that is killed")
    fcntl.lockf(fd, fcntl.LOCK_UN)
    fcntl.flock(fd, fcntl.LOCK_UN)
    for number, pid in enumerate(waiters):
        if number in (0, count):
            continue
        _, status = os.waitpid(pid, 0)
        expect_equal(os.waitstatus_to_exitcode(status), 0, "a waiter")
    got = [n for n in os.listdir(folder) if n.startswith("got")]
    expect_equal(len(got), 2 * count - 2, "who got the lock in the end")
    return f"{2 * count} waiters, others took {took * 1000:.0f} ms"


def scan_while_deleting(folder, entries):
    """Another process deletes half of the names meanwhile."""
    names = os.listdir(folder)
    expect_equal(len(names), entries, "names listed at first")
    generator = random.Random(1)
    going = set(generator.sample(names, entries // 2))
    pid = os.fork()
    if pid == 0:
        for name in going:
            os.unlink(os.path.join(folder, name))
        os._exit(0)
    seen = {}
    with os.scandir(folder) as scan:
        for entry in scan:
            seen[entry.name] = seen.get(entry.name, 0) + 1
    _, status = os.waitpid(pid, 0)
    expect_equal(os.waitstatus_to_exitcode(status), 0, "the deleting process")
    missing = set(names) - going - set(seen)
    expect(not missing, f"{len(missing)} names that were there all the time "
           f"were not listed, as {next(iter(missing), None)}")
    double = [name for name, count in seen.items() if count > 1]
    expect(not double, f"{len(double)} names were listed twice, as {double[:3]}")
    strange = set(seen) - set(names)
    expect(not strange, f"names that never were: {strange}")


def remove_while_scanning(folder):
    """rm -r: each name is removed as soon as it is listed."""
    with os.scandir(folder) as scan:
        for entry in scan:
            os.unlink(os.path.join(folder, entry.name))
    expect_equal(os.listdir(folder), [], "what is left after one scan")
    os.rmdir(folder)


def exhaust(folder, count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    held = []
    refused = 0
    for i in range(count):
        try:
            held.append(os.open(os.path.join(folder, f"f{i}"), os.O_RDWR))
        except OSError as error:
            expect(error.errno in (errno.EMFILE, errno.ENFILE),
                   f"open number {i}: {error}")
            refused += 1
    # Whoever has a file open works on.
    for fd in held[:50]:
        expect_equal(os.pread(fd, 100, 0), b"content", "an open file")
        os.pwrite(fd, b"content", 0)
    for fd in held:
        os.close(fd)
    for turn in range(100):
        try:
            for i in range(0, count, 20):
                with open(os.path.join(folder, f"f{i}"), "rb") as again:
                    expect_equal(again.read(), b"content", "a file afterwards")
            break
        except OSError as error:
            # Releases come when they come.
            expect(turn < 50, f"not as before: {error}")
            time.sleep(0.1)
    with open(os.path.join(folder, "new"), "wb") as out:
        out.write(b"new")
    expect_equal(len(os.listdir(folder)), count + 1, "names")
    return refused


def options(parser):
    parser.add_argument("--entries", type=int, default=3000, metavar="N",
                        help="of the directory that shrinks (default: 3000)")
    parser.add_argument("--triples", action="store_true",
                        help="three opens at a time instead of two")
    parser.add_argument("--threads", type=int, default=50, metavar="N",
                        help="that open one file (default: 50)")
    parser.add_argument("--waiters", type=int, default=12, metavar="N",
                        help="for each kind of lock (default: 12)")


def main():
    if "--ordinary-user" in sys.argv:
        parser = argparse.ArgumentParser()
        for name in ("--bin", "--ordinary-user", "--visibility"):
            parser.add_argument(name)
        wanted = parser.parse_args()
        as_ordinary_user(wanted.ordinary_user, wanted.bin, wanted.visibility)
        return
    suite = Suite("traps", __doc__, options)
    traps = Traps(suite)
    wanted = suite.options
    suite.run("opens of all kinds", traps.open_modes, wanted.triples)
    suite.run("opens at once", traps.open_race, wanted.threads)
    kinds = (("left to the kernel", LEFT_TO_KERNEL), ("traced", ALL))
    for title, text in kinds:
        for visibility in VISIBILITIES:
            suite.run(f"exec after write, {title}, {visibility}",
                      traps.exec_after_write, text, visibility)
    for title, text in kinds:
        for visibility in VISIBILITIES:
            suite.run(f"exec below, {title}, {visibility}", traps.exec_below,
                      text, visibility)
        suite.run(f"exec after mapping, {title}", traps.exec_after_mapping,
                  text)
        suite.run(f"append-only file, {title}", traps.append_only, text)
        for visibility in VISIBILITIES:
            suite.run(f"append-only file mapped, {title}, {visibility}",
                      traps.append_only_mapped, text, visibility)
        suite.run(f"descriptors run out, {title}", traps.descriptors, text)
    for title, text, transport in (
            ("settled by the kernel, over dev", LEFT_TO_KERNEL, "dev"),
            ("settled by the kernel, over uring", LEFT_TO_KERNEL, "uring"),
            ("traced", "op IN { flock setlk }", "dev")):
        suite.run(f"lock waiters, {title}", traps.lock_waiters, text,
                  transport, wanted.waiters)
    suite.run("traced locks need dev", traps.traced_locks_need_dev)
    for visibility in VISIBILITIES:
        suite.run(f"storm of sizes, {visibility}", traps.storm_of_sizes,
                  visibility)
    for visibility in ("exact", "fast"):
        suite.run(f"shrinking directory, {visibility}",
                  traps.shrinking_directory, visibility, wanted.entries)
    for visibility in ("exact", "fast"):
        suite.run(f"mount of an ordinary user, {visibility}",
                  traps.ordinary_user, visibility)
    suite.run("callers in other sessions", traps.other_sessions)
    for kind in ("auto", "normal", "nice"):
        suite.run(f"queue threads, {kind}", traps.measured_threads, kind)
    suite.run("callers in turn", traps.callers_in_turn)
    for transport in TRANSPORTS:
        suite.run(f"over another mount, over {transport}",
                  traps.over_another_mount, transport)
    suite.run("client in a PID namespace", traps.client_in_namespace)
    suite.run("daemon in a PID namespace", traps.daemon_in_namespace)
    suite.finish()


if __name__ == "__main__":
    main()
