#!/usr/bin/env python3
"""What a mount does when it cannot have what it needs.

Memory, threads and the processor are taken from the daemon by control groups
that the suite makes, and given back, and its clock is put forward and back.
Users do work all the while of which they know what must come: they may wait,
but get no error and no other bytes. After that the trace must have every file
that was made, once, and the mount must do what it refused meanwhile.

  starvation_test.py --bin build/release/bin \
      --stepped-clock build/release/tests/support/stepped_clock.so
"""

import collections
import contextlib
import ctypes
import glob
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import (daemons_dying, kill_daemon,  # noqa: E402
                    successions_of)
from processes import helpers_of  # noqa: E402
from tracefs_harness import (TRANSPORTS, VISIBILITIES, Skip,  # noqa: E402
                             Suite, expect, expect_equal, mount_points,
                             wait_until)

MIB = 1 << 20
HOUR_NS = 3600 * 10**9
WRITERS = 8
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PTRACE_DETACH, PTRACE_INTERRUPT = 0x4206, 17, 0x4207


# --- control groups

class Group:
    """A control group of one controller, in either version of the kernel's
    interface; it goes with the case."""

    def __init__(self, controller, name):
        apart = f"/sys/fs/cgroup/{controller}"
        self.is_apart = os.path.isdir(apart)
        root = apart if self.is_apart else "/sys/fs/cgroup"
        if not self.is_apart:
            with self._reading(f"{root}/cgroup.subtree_control") as text:
                if controller not in text.read().split():
                    raise Skip(f"no control groups limit {controller} here")
        self.folder = f"{root}/{name}"
        try:
            os.mkdir(self.folder)
        except OSError as error:
            raise Skip(f"no control group can be made: {error}") from error

    @staticmethod
    def _reading(path):
        try:
            return open(path, encoding="ascii")
        except OSError as error:
            raise Skip(f"{path}: {error.strerror}") from error

    def set(self, apart, unified, value):
        """Writes to the file that is called so in version 1, or 2."""
        name = apart if self.is_apart else unified
        with open(f"{self.folder}/{name}", "w", encoding="ascii") as out:
            out.write(str(value))

    def get(self, apart, unified):
        name = apart if self.is_apart else unified
        with self._reading(f"{self.folder}/{name}") as text:
            return text.read()

    def processes(self):
        return [int(pid) for pid in
                self.get("cgroup.procs", "cgroup.procs").split()]

    def tasks(self):
        """Its threads."""
        return self.get("tasks", "cgroup.threads").split()

    def take(self, pid):
        self.set("cgroup.procs", "cgroup.procs", pid)

    def wrapper(self):
        """A command that runs another one in the group."""
        return ["sh", "-c",
                f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh"]


@contextlib.contextmanager
def group(controller, suite=None):
    """`suite`: whose mounts are ended first if the case fails."""
    made = Group(controller, f"tracefs-test-{os.getpid()}")
    try:
        yield made
    except BaseException:
        if suite is not None:
            suite.stop_mounts()
        raise
    finally:
        wait_until(lambda: not made.processes(), "an empty control group")
        os.rmdir(made.folder)


def kills(memory):
    """How often the kernel has killed somebody for want of memory there."""
    for line in memory.get("memory.oom_control", "memory.events").splitlines():
        name, count = line.split()
        if name == "oom_kill":
            return int(count)
    raise Skip("this kernel does not count who is killed for want of memory")


# --- users

def write_and_check(folder, until, said):
    """Makes, reads, moves and removes files, small and large, until it is
    told to end. Says how many it made, or what went wrong."""
    made = 0
    path = folder
    try:
        os.mkdir(folder)
        while not until.is_set():
            size = 1 if made % 8 == 7 else 16
            data = os.urandom(MIB // size)
            path = f"{folder}/{made}"
            with open(path, "wb", buffering=0) as out:
                out.write(data)
            made += 1
            with open(path, "rb") as file:
                if file.read() != data:
                    raise ValueError(f"{path} has other bytes")
            os.rename(path, path + ".old")
            if os.path.exists(path):
                raise ValueError(f"{path} is there after it was moved")
            if made % 4 == 0:
                os.remove(path + ".old")
        said.put((os.path.basename(folder), made, None))
    except (OSError, ValueError) as error:
        said.put((os.path.basename(folder), made, f"{path}: {error!r}"))


class Users:
    """Processes that work in a mount."""

    def __init__(self, point):
        self._until = multiprocessing.Event()
        self._said = multiprocessing.Queue()
        self._all = [multiprocessing.Process(
            target=write_and_check, daemon=True,
            args=(f"{point}/user{i}", self._until, self._said))
            for i in range(WRITERS)]
        for user in self._all:
            user.start()

    def at_work(self):
        return any(user.is_alive() for user in self._all)

    def work_for(self, seconds):
        time.sleep(seconds)
        return self

    def end(self):
        """Files made by each, by the name of his folder. Nobody was told an
        error."""
        self._until.set()
        said = [self._said.get(timeout=60) for _ in self._all]
        for user in self._all:
            user.join(60)
            expect(not user.is_alive(), "a user hangs")
        expect_equal([wrong for _, _, wrong in said if wrong], [],
                     "what users were told")
        return {name: made for name, made, _ in said}


def done_and_recorded(events, made):
    """The files that users made, and those that the trace has: no others, and
    each created once."""
    recorded = collections.Counter(
        e["path"].lstrip("/") for e in events
        if e.get("op") == "create" and not e.get("errno"))
    done = collections.Counter(f"{user}/{i}" for user, count in made.items()
                               for i in range(count))
    expect_equal(dict(recorded - done), {}, "recorded, and not done")
    return done, recorded


def expect_all_recorded(events, made):
    """Each file that a user made is in the trace, created once."""
    done, recorded = done_and_recorded(events, made)
    expect_equal(dict(done - recorded), {}, "done, and not recorded")
    expect_equal([e for e in events if e.get("lost")], [], "losses")


# --- cases

def in_little_memory(suite, visibility, transport):
    """64 MiB for a daemon whom eight users send requests of up to 1 MiB."""
    with group("memory", suite) as memory:
        memory.set("memory.limit_in_bytes", "memory.max", 64 * MIB)
        with suite.mounted(visibility=visibility, transport=transport,
                           wrapper=memory.wrapper()) as (_, point, mount):
            users = Users(point).work_for(2)
            said = suite.command("tracefs-ctl", point, "explain")
            made = users.end()
            expect_equal(kills(memory), 0, "daemons killed for want of memory")
        expect_all_recorded(mount.events, made)
    expect("the limit of its control group" in " ".join(said.split()),
           f"explain does not tell of the limit:\n{said}")
    return f"{sum(made.values())} files"


def everything_short(suite, visibility, transport):
    """256 descriptors, 64 MiB, no more threads, and 512 KiB for the trace. What
    is not in the trace is told as lost, and users notice nothing."""
    with group("memory", suite) as memory, group("pids", suite) as pids, \
            suite.tmpfs("little", size="512k") as little:
        memory.set("memory.limit_in_bytes", "memory.max", 64 * MIB)
        suite.remove("short")
        source, point = suite.folder("short"), suite.folder("short-mnt")
        trace = f"{little}/trace"
        mount = suite.mount(
            source, point, trace, visibility=visibility, transport=transport,
            wrapper=["prlimit", "--nofile=256", *memory.wrapper(),
                     *pids.wrapper()])
        make_no_more_threads(pids, point)
        users = Users(point).work_for(0.5)
        wait_until(lambda: "No space left" in mount.messages()
                   or not users.at_work(), "the end of the room for the trace")
        made = users.work_for(0.5).end()
        expect_equal(kills(memory), 0, "daemons killed for want of memory")
        subprocess.run(["umount", point], check=False, capture_output=True)
        mount.wait(3)  # not all is in its trace
        dump = suite.dump(trace)
    done, recorded = done_and_recorded(dump.events, made)
    expect(mount.messages().count("error creating thread") <= 1,
           "libfuse says again and again what it cannot have")
    told = re.search(r"ended with (\d+) lost", mount.messages())
    expect(told, "no losses are told of")
    expect(int(told[1]) >= len(done) - len(recorded),
           f"{len(done) - len(recorded)} files are not in the trace")
    return (f"{len(done)} files, {len(recorded)} of them in the trace, "
            f"{told[1]} operations lost")


def killed_for_memory(suite, visibility):
    """The kernel kills the daemon, as its group has no memory left; another
    takes its place when there is some."""
    with group("memory", suite) as memory:
        with suite.mounted(visibility=visibility, transport="dev",
                           wrapper=memory.wrapper(),
                           options=["--survive", "yes"]) as (_, point, mount):
            users = Users(point).work_for(0.5)
            used = int(memory.get("memory.usage_in_bytes", "memory.current"))
            before = kills(memory)
            # What is left are pages of files, which go, and then nothing.
            for share in range(9, 0, -1):
                with contextlib.suppress(OSError):
                    memory.set("memory.limit_in_bytes", "memory.max",
                               used * share // 10)
                time.sleep(0.05)
                if kills(memory) > before:
                    break
            killed = kills(memory) - before
            memory.set("memory.limit_in_bytes", "memory.max", -1
                       if memory.is_apart else "max")
            made = users.work_for(0.5).end()
        expect_all_recorded(mount.events, made)
    if killed == 0:
        return Skip("the kernel found memory in each limit")
    return f"killed {killed} times, {sum(made.values())} files"


def make_no_more_threads(pids, point):
    """From now on: it serves, so it has those that it begins with."""
    os.listdir(point)
    pids.set("pids.max", "pids.max", 1)


def without_threads(suite, visibility, transport):
    """No thread and no process can be made. What needs one is refused and
    leaves nothing; everything else goes on, and then that, too."""
    with group("pids", suite) as pids:
        with suite.mounted(visibility=visibility, transport=transport,
                           wrapper=pids.wrapper()) as (_, point, mount):
            make_no_more_threads(pids, point)
            users = Users(point)
            late = f"{mount.trace}-late"
            config = suite.config(("", "STR_ALL", f'async; file = "{late}"'))
            refused = suite.tool("tracefs-ctl", point, "add", config)
            listed = suite.command("tracefs-ctl", point, "list")
            made = users.work_for(1).end()
            expect(refused.returncode != 0 and refused.stderr,
                   f"a tracer without its thread was added: {refused}")
            expect(late not in listed, f"it is there:\n{listed}")
            pids.set("pids.max", "pids.max", "max")
            suite.command("tracefs-ctl", point, "add", config)
            os.mkdir(f"{point}/later")
        expect_all_recorded(mount.events, made)
    return f"{sum(made.values())} files; {refused.stderr.strip()}"


def without_processes(suite):
    """Daemon and spare are killed when no process can be made. Another of each
    follows when one can; users wait."""
    with group("pids", suite) as pids:
        with suite.mounted(visibility="auto", transport="dev",
                           wrapper=pids.wrapper(),
                           options=["--survive", "yes"]) as (_, point, mount):
            users = Users(point).work_for(0.3)
            pids.set("pids.max", "pids.max", 1)
            spare, = helpers_of(mount.pid, "tracefs-spare")
            os.kill(spare, signal.SIGKILL)
            expect(kill_daemon(mount), "there is no daemon")
            time.sleep(suite.options.seconds)
            expect_equal((successions_of(mount), mount.process.poll()),
                         (0, None), "without a process")
            pids.set("pids.max", "pids.max", "max")
            wait_until(lambda: successions_of(mount) == 1, "another daemon")
            wait_until(lambda: helpers_of(mount.pid, "tracefs-spare"),
                       "another spare")
            made = users.work_for(0.5).end()
        expect_all_recorded(mount.events, made)
    return f"{sum(made.values())} files"


def short_and_killed(suite, what):
    """Little of everything, and the daemon is killed again and again: users
    notice nothing, and what is not in the trace is told as lost."""
    with group("memory", suite) as memory, group("pids", suite) as pids, \
            suite.tmpfs("little", size="512k") as little:
        wrapper = []
        if what in ("descriptors", "all"):
            wrapper += ["prlimit", "--nofile=256"]
        if what in ("memory", "all"):
            memory.set("memory.limit_in_bytes", "memory.max", 128 * MIB)
            wrapper += memory.wrapper()
        if what in ("threads", "all"):
            wrapper += pids.wrapper()
        suite.remove("dying")
        source = suite.folder("dying", "source", mode=0o777)
        point = suite.folder("dying", "mnt")
        trace = (f"{little}/trace" if what in ("disk", "all")
                 else suite.path("dying", "trace"))
        mount = suite.mount(source, point, trace, visibility="auto",
                            transport="dev", wrapper=wrapper,
                            options=["--survive", "yes"])
        if what in ("threads", "all"):
            os.listdir(point)
            pids.set("pids.max", "pids.max", len(pids.tasks()))
        users = Users(point)
        with daemons_dying(mount, 5) as deaths:
            made = users.work_for(2 * suite.options.seconds).end()
        pids.set("pids.max", "pids.max", "max")
        subprocess.run(["umount", point], check=False, capture_output=True)
        mount.wait(3 if what in ("disk", "all") else 0)
        dump = suite.dump(trace)
    done, recorded = done_and_recorded(dump.events, made)
    lost = re.search(r"ended with (\d+) lost", mount.messages())
    expect(int(lost[1] if lost else 0) >= len(done) - len(recorded),
           f"{len(done) - len(recorded)} files are not in the trace, and not "
           f"told of:\n{mount.messages()[-2000:]}")
    return (f"{deaths[0]} deaths, {len(done)} files, {len(recorded)} of them "
            "in the trace")


def started_with(suite, pids, most, transport, words):
    """A mount that may have so many tasks. It ends, and nothing is mounted; or
    it says that it is there, and serves: which of both."""
    suite.remove("few")
    source, point = suite.folder("few"), suite.folder("few-mnt")
    trace = suite.path(f"few-{most}.trace")
    config = suite.config(
        ("", "STR_ALL", f'file = "{trace}" unbuffered when_full = fail'))
    pids.set("pids.max", "pids.max", most)
    said = suite.path(f"few-{most}.said")
    with open(said, "wb") as out:
        mount = subprocess.Popen(
            [*pids.wrapper(), os.path.join(suite.bin, "tracefs-mount"), source,
             point, "--config", config, "--foreground", "--transport",
             transport, *words], stdout=out, stderr=out)
    suite.background(mount)

    def told():
        with open(said, encoding="utf-8", errors="replace") as text:
            return text.read()
    wait_until(lambda: mount.poll() is not None or ": mounted\n" in told(),
               f"with {most} tasks it is there or ends: {told()}")
    if mount.poll() is None:
        served = subprocess.run(["ls", point], timeout=10)
        expect_equal(served.returncode, 0, f"{most} tasks: {told()}")
        pids.set("pids.max", "pids.max", "max")
        mount.terminate()
        expect_equal(mount.wait(30), 0, told())
    else:
        expect_equal(mount.returncode, 3, told())
        expect(": mounted\n" not in told(), f"{most} tasks: {told()}")
        expect("not permitted" not in told(), told())
    expect(point not in mount_points(), f"{most} tasks: it is mounted")
    return ": mounted\n" in told()


def too_few_threads(suite, transport, words):
    """One limit after the other. Where a mount is told, it is served."""
    with group("pids", suite) as pids:
        most = 1
        while not started_with(suite, pids, most, transport, words):
            most += 1
            expect(most < 40, "it never begins")
    return f"it takes {most} tasks"


@contextlib.contextmanager
def frozen(mount, how):
    """Everything that serves the mount stands still."""
    if how == "frozen":
        with group("freezer") as freezer:
            freezer.take(mount.pid)
            freezer.set("freezer.state", "cgroup.freeze",
                        "FROZEN" if freezer.is_apart else 1)
            try:
                yield
            finally:
                freezer.set("freezer.state", "cgroup.freeze",
                            "THAWED" if freezer.is_apart else 0)
                with open(f"{os.path.dirname(freezer.folder)}/cgroup.procs",
                          "w", encoding="ascii") as out:
                    out.write(str(mount.pid))
    elif how == "stopped":
        os.kill(mount.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(mount.pid, signal.SIGCONT)
    else:
        threads = [int(t) for t in os.listdir(f"/proc/{mount.pid}/task")]
        for thread in threads:
            if LIBC.ptrace(PTRACE_SEIZE, thread, 0, 0) != 0:
                raise Skip("this process may trace no other one")
            LIBC.ptrace(PTRACE_INTERRUPT, thread, 0, 0)
            os.waitpid(thread, 0x40000000)  # __WALL
        try:
            yield
        finally:
            for thread in threads:
                LIBC.ptrace(PTRACE_DETACH, thread, 0, 0)


def standing_still(suite, how, visibility, transport, options=()):
    """A daemon that does nothing for a while: users wait, and go on."""
    with suite.mounted(visibility=visibility, transport=transport,
                       options=options) as (_, point, mount):
        users = Users(point).work_for(0.3)
        with frozen(mount, how):
            time.sleep(suite.options.seconds)
            expect(mount.is_mounted(), "the mount was taken away")
        made = users.work_for(0.5).end()
    expect_all_recorded(mount.events, made)
    return f"{sum(made.values())} files"


def stepping_clock(suite, visibility, transport):
    """The real time goes forward by an hour, back by two, and forward again.
    Durations stay what they were, and no file of the trace is begun early."""
    if suite.options.stepped_clock is None:
        return Skip("--stepped-clock is not given")
    clock = suite.path("clock")
    stepped = {"LD_PRELOAD": suite.options.stepped_clock,
               "ASAN_OPTIONS": "verify_asan_link_order=0",
               "TRACEFS_TEST_CLOCK": clock}
    trace = suite.path("clock-trace-%serial")
    with open(clock, "wb") as out:
        out.write(bytes(8))
    source, point = suite.folder("clocked"), suite.folder("clock-mnt")
    mount = suite.mount(
        source, point,
        ("", "STR_ALL", f'file = "{trace}" rotate_time = 30m'),
        visibility=visibility, transport=transport,
        wrapper=["env", *(f"{name}={value}" for name, value in stepped.items())])
    users = Users(point)
    begin = time.time()
    for hours in (1, -1, 0):
        users.work_for(0.4)
        with open(clock, "r+b") as out:
            out.write((hours * HOUR_NS).to_bytes(8, "little", signed=True))
        now = int(subprocess.check_output(["date", "+%s"],
                                          env={**os.environ, **stepped}))
        expect(abs(now - time.time() - hours * 3600) < 60,
               "the clock does not step")
    made = users.work_for(0.4).end()
    mount.unmount()
    took_ns = (time.time() - begin) * 1e9
    parts = sorted(glob.glob(suite.path("clock-trace-*")))
    expect_equal(len(parts), 1, "files of the trace")
    events = suite.read(*parts)
    expect_all_recorded(events, made)
    expect_equal([e for e in events if not 0 <= e.get("dur", 0) <= took_ns], [],
                 "operations that took longer than all of them")
    for path in [clock, *parts]:
        os.remove(path)
    suite.remove("clocked")
    return f"{sum(made.values())} files"


def without_watches(suite):
    """No folder can be watched: a mount with --config-dir does without, and
    says what to raise."""
    configs = suite.folder("configs")
    point = suite.folder("unwatched")
    key = suite.path("config.pub")
    suite.command("tracefs-keygen", "sign", suite.path("config.key"), key)
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
         'echo 0 > /proc/sys/user/max_inotify_instances || exit 77; exec "$@"',
         "sh", os.path.join(suite.bin, "tracefs-mount"), "--config-dir",
         configs, "--config-key", key, suite.folder("unwatched-source"), point],
        capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77 or "unshare" in done.stderr:
        return Skip(f"no user namespace without watches: {done.stderr}")
    # The folder is empty, which it finds when it looks there.
    expect_equal(done.returncode, 2, f"exit status:\n{done.stderr}")
    expect("user.max_inotify_instances" in done.stderr,
           f"it does not say what to raise:\n{done.stderr}")
    expect("no config to begin with" in done.stderr,
           f"it did not look there:\n{done.stderr}")
    return None


def main():
    def arguments(parser):
        parser.add_argument("--stepped-clock", metavar="FILE",
                            help="what puts a command's clock forward and back")
        parser.add_argument("--seconds", type=float, default=2,
                            help="how long a daemon stands still (default: 2)")

    suite = Suite("starvation", __doc__.split("\n", 1)[0], arguments)
    for transport in TRANSPORTS:
        for visibility in VISIBILITIES:
            where = f"{visibility} over {transport}"
            suite.run(f"64 MiB of memory, {where}", in_little_memory, suite,
                      visibility, transport)
            suite.run(f"no threads, {where}", without_threads, suite,
                      visibility, transport)
            suite.run(f"everything short, {where}", everything_short, suite,
                      visibility, transport)
        suite.run(f"a clock put forward and back, over {transport}",
                  stepping_clock, suite, "auto", transport)
        for how in ("frozen", "stopped", "traced"):
            suite.run(f"a daemon {how}, over {transport}", standing_still,
                      suite, how, "auto", transport)
    for visibility in VISIBILITIES:
        suite.run(f"killed for want of memory, {visibility}",
                  killed_for_memory, suite, visibility)
    suite.run("a daemon stopped that another may follow", standing_still,
              suite, "stopped", "auto", "dev", ["--survive", "yes"])
    for words in ((), ("--survive", "yes")):
        suite.run(" ".join(("too few threads to begin with", *words)),
                  too_few_threads, suite, "dev", words)
    suite.run("no process where a daemon is to follow", without_processes,
              suite)
    for what in ("descriptors", "memory", "threads", "disk", "all"):
        suite.run(f"short of {what}, and killed", short_and_killed, suite, what)
    suite.run("no folder can be watched", without_watches, suite)
    suite.finish()


if __name__ == "__main__":
    main()
