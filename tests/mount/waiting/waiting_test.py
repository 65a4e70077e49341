#!/usr/bin/env python3
"""Nobody is held up by what another waits for, or has taken.

A lease on a file below, a store below that does not answer, a user who opens
all the files there are: whoever asks for that waits, or is refused, as he would
be below. Everybody else is served, in every visibility and over both
transports, and the daemon ends when it is told to.

  waiting_test.py --bin build/release/bin
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from faulty_store import Rules, faulty_store  # noqa: E402
from tracefs_harness import (HANG_S, TRANSPORTS, VISIBILITIES,  # noqa: E402
                             Skip, Suite, expect, expect_equal, wait_until)

# Files that are not in memory, and how long a slow disk takes for each read.
COLD = 64
KIB = 16 << 10
SLOW_MS = 40
MANY = 1000
USER = 61001
OTHER = 61002
LIBC = ctypes.CDLL(None, use_errno=True)


class Client:
    """A process that does what it is told, as some user, until it is let go.
    What its body returns, or the number of the error it ends with, is
    outcome()."""

    def __init__(self, user, body, *arguments):
        self._result, result = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            text = ""
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                LIBC.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
                LIBC.prctl(1, 9, 0, 0, 0)  # forgotten with the ids
                text = repr(body(*arguments))
            except OSError as error:
                text = errno.errorcode.get(error.errno, str(error))
            except BaseException as error:  # pylint: disable=broad-except
                text = repr(error)
            finally:
                os.write(result, text.encode())
                os._exit(0)
        os.close(result)
        self.text = None

    @property
    def pid(self):
        return self._pid

    def ended(self):
        if self.text is None and os.waitpid(self._pid, os.WNOHANG)[0] != 0:
            with os.fdopen(self._result) as pipe:
                self.text = pipe.read()
        return self.text is not None

    def outcome(self, seconds=20):
        wait_until(self.ended, f"a client (process {self._pid}) to end",
                   seconds)
        return self.text

    def kill(self, number=9):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)


def as_user(user, body, *arguments):
    """What `body` returns, run by that user."""
    return Client(user, body, *arguments).outcome()


class Waiting:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0

    @contextlib.contextmanager
    def over_faults(self, visibility, transport, filter_text="", **more):
        """A mount over a file system that does as its rules say (fault_fs.cc).
        Yields (folder below that, mount point, mount, rules)."""
        self.number += 1
        with faulty_store(self.suite, f"faults-{self.number}") as store:
            with self.suite.mounted(filter_text, visibility, transport,
                                    source=store.point, **more) as (
                                        _, point, mount):
                yield store.below, point, mount, store.rules
                store.rules.set()

    @contextlib.contextmanager
    def over_disk(self, visibility, transport, make, **more):
        """A mount over ext4 on a disk that does as rules say: an image in a
        file system of fault_fs. `make(folder)` fills it; nothing of that is in
        memory when the mount begins. Yields (point, mount, rules)."""
        self.number += 1
        base = f"disk-{self.number}"
        below = self.suite.folder(base, "below", mode=0o777)
        faulty = self.suite.folder(base, "faulty")
        disk = self.suite.folder(base, "disk", mode=0o777)
        rules = Rules(self.suite.path(base, "rules"))
        image = os.path.join(below, "image")
        with open(image, "wb") as out:
            out.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        process = self.suite.background(subprocess.Popen(
            [os.path.join(self.suite.bin, "..", "tests", "support", "fault_fs"),
             below, faulty, rules.path]))
        wait_until(lambda: os.path.ismount(faulty), "fault_fs")
        device = ""
        try:
            # Past the page cache, so that its requests come side by side.
            made = subprocess.run(
                ["losetup", "--find", "--show", "--direct-io=on",
                 os.path.join(faulty, "image")], text=True, capture_output=True,
                check=False)
            if made.returncode != 0:
                raise Skip(f"no loop device: {made.stderr.strip()}")
            device = made.stdout.strip()
            mount_disk = ["mount", "-t", "ext4", device, disk]
            subprocess.run(mount_disk, check=True)
            make(disk)
            subprocess.run(["umount", disk], check=True)
            subprocess.run(mount_disk, check=True)
            os.chmod(disk, 0o777)
            with self.suite.mounted("", visibility, transport, source=disk,
                                    **more) as (_, point, mount):
                yield point, mount, rules
                rules.set()
        finally:
            rules.set()
            self.suite.stop_mounts()
            subprocess.run(["umount", disk], check=False, capture_output=True)
            if device:
                subprocess.run(["losetup", "-d", device], check=False)
            subprocess.run(["umount", "-l", faulty], check=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)

    # --- disks

    def waiting_disk(self, visibility, transport):
        """A disk that becomes slow holds up those who wait for it, and nobody
        else."""
        with self.over_disk(visibility, transport,
                            lambda disk: make_cold(disk, 4 * COLD)) as (
                                point, mount, rules):
            hot = os.path.join(point, "hot")
            as_user(OTHER, ask_often, hot, 20)
            # Two or three requests on each processor's queue find it out.
            rules.set(f"read /image delay {SLOW_MS}")
            as_user(USER, read_all, point, 0, 4)
            # What one needs for an eighth, on a machine as busy as it is.
            begin = time.monotonic()
            as_user(USER, read_all, point, 8, 16)
            alone = 8 * (time.monotonic() - begin)
            begin = time.monotonic()
            clients = [Client(USER, read_all, point, COLD + 4 * i,
                              COLD + 4 * (i + 1)) for i in range(16)]
            time.sleep(SLOW_MS / 2000)
            typical = float(as_user(OTHER, ask_often, hot, 20))
            for client in clients:
                expect_equal(client.outcome(60), str(4 * KIB),
                             "what was read of a cold file")
            took = time.monotonic() - begin
            expect(took < 0.75 * alone, f"16 who wait took {took:.2f} s, "
                   f"which one after another take {alone:.2f} s")
            # Behind those in a queue it would wait each time.
            expect(typical < SLOW_MS, f"another waited {typical:.0f} ms")
            rules.set()
            for i in range(8):
                as_user(USER, read_all, point, 2 * COLD + 8 * i,
                        2 * COLD + 8 * (i + 1))
            told = self.explain(mount, "waits below")
        return f"{took:.2f} of {alone:.2f} s, hot {typical:.1f} ms; {told}"

    def to_the_disk(self, transport):
        """What goes to the disk each time waits in threads from the first on,
        however fast the page cache serves others."""
        with self.over_disk("auto", transport,
                            lambda disk: make_cold(disk, 4)) as (
                                point, mount, rules):
            rules.set(f"read /image delay {SLOW_MS / 2:.0f}",
                      f"write /image delay {SLOW_MS / 2:.0f}")
            hot = os.path.join(point, "hot")
            for _ in range(8):
                for _ in range(20):
                    with open(hot, "rb") as file:
                        file.read()
                read_directly(os.path.join(point, "d1", "f"))
                write_directly(os.path.join(point, "d2", "f"), os.O_DIRECT)
                write_directly(os.path.join(point, "d3", "f"), os.O_DSYNC)
            told = self.explain(mount, "waits below", "why")
            # Those that lost their processor meanwhile are not counted.
            for kind in ("read (O_DIRECT)", "write (O_DIRECT, O_SYNC)"):
                here, aside = waits_of(told, kind)
                expect_equal((here, aside > 0), (0, True),
                             f"waits of {kind} ({told})")

    def explain(self, mount, subject, key="choice"):
        answer = self.suite.command("tracefs-ctl", mount.point, "explain",
                                    "--format", "json")
        return next(c[key] for c in json.loads(answer)["choices"]
                    if c["subject"] == subject)

    # --- leases

    def lease(self, visibility, transport, call):
        """Who opens or truncates a file on which somebody below holds a lease
        waits for it, can be interrupted, and holds up nobody."""
        began = 0
        with self.suite.mounted("", visibility, transport) as (source, point,
                                                               mount):
            make_files(source, 20)
            with Lease(os.path.join(source, "f0")) as lease:
                held = os.path.join(point, "f0")
                # The kernel sends one truncation of a file at a time.
                count = 1 if call == "truncate" else 80
                clients = [Client(USER, CALLS[call], held)
                           for _ in range(count)]
                began += count
                wait_until(lambda: lease.asked_for, "the lease to be asked for")
                time.sleep(0.3)
                expect_equal([c.text for c in clients if c.ended()], [],
                             "who did not wait")
                for user in (OTHER, 0, USER):
                    begin = time.monotonic()
                    expect_equal(as_user(user, live, point, 1, 20), "19",
                                 f"what user {user} could do meanwhile")
                    took = time.monotonic() - begin
                    expect(took < HANG_S, f"user {user} needed {took:.1f} s")
                for number, text in ((signal.SIGUSR1, "EINTR"),
                                     (signal.SIGTERM, ""),
                                     (signal.SIGKILL, "")):
                    victim = clients.pop()
                    victim.kill(number)
                    expect_equal(victim.outcome(10), text,
                                 f"what signal {number} does")
                    if not clients:
                        clients.append(Client(USER, CALLS[call], held))
                        began += 1
                        time.sleep(0.2)
                expect(not lease.broken, "the lease was broken too soon")
            expect_equal({c.outcome(20) for c in clients}, {"'done'"},
                         "what the others got when it was given up")
        # Each is recorded once, with all the time it took.
        waits = [e for e in mount.events if e.get("path") == "/f0"
                 and e["uid"] == USER
                 and e["op"] == ("setattr" if call == "truncate" else "open")]
        expect_equal(len(waits), began, "what is recorded of them")
        errors = collections.Counter(e.get("errno", "") for e in waits)
        # A killed client may be let go before its call has ended.
        expect(set(errors) <= {"", "EINTR"} and 1 <= errors["EINTR"] <= 3,
               f"how they ended: {errors}")
        short = [e for e in waits if e["dur"] < 100_000_000
                 and (call != "read" or visibility == "exact")]
        expect_equal(short, [], "waits that took no time")

    def many_leases(self, transport):
        """Who has more that waits than fits waits for that, too; nobody else
        does."""
        with self.suite.mounted("", "exact", transport) as (source, point, _):
            make_files(source, 20)
            with Lease(os.path.join(source, "f0")) as lease:
                held = os.path.join(point, "f0")
                clients = [Client(USER, CALLS["open"], held)
                           for _ in range(150)]
                wait_until(lambda: lease.asked_for, "the lease to be asked for")
                time.sleep(1.5)
                for user in (OTHER, 0):
                    expect_equal(as_user(user, live, point, 1, 20), "19",
                                 f"what user {user} could do meanwhile")
                victim = clients.pop()
                victim.kill(signal.SIGKILL)
                expect_equal(victim.outcome(10), "", "a killed one")
                expect_equal([c.text for c in clients if c.ended()], [],
                             "who did not wait")
            outcomes = collections.Counter(c.outcome(30) for c in clients)
            expect_equal(outcomes, {"'done'": 149}, "outcomes")

    # --- very many

    def thousand_callers(self, transport):
        """A thousand at once on a store that takes its time: all are served,
        and who comes meanwhile is not behind them."""
        with self.over_faults("auto", transport) as (below, point, _, rules):
            make_files(below, 20)
            many = os.path.join(below, "many")
            os.mkdir(many)
            make_files(many, MANY)
            rules.set("getattr /many/* delay 20")
            client = Client(USER, stat_all_at_once,
                            os.path.join(point, "many"), MANY)
            begin = time.monotonic()
            expect_equal(as_user(OTHER, live, point, 1, 20), "19",
                         "what another could do meanwhile")
            took = time.monotonic() - begin
            expect_equal(client.outcome(120), str({"": MANY}), "outcomes")
        return f"another needed {took:.1f} s"

    def greedy_user(self, transport):
        """One who has thousands of requests in flight that nobody answers:
        some wait, the rest are refused, and others are served."""
        count = 10000 if os.environ.get("TRACEFS_SOAK") == "1" else 2 * MANY
        with self.over_faults("auto", transport) as (below, point, _, rules):
            make_files(below, 20)
            os.mkdir(os.path.join(below, "dead"))
            rules.set("any /dead/* hang")
            client = Client(USER, stat_all_at_once,
                            os.path.join(point, "dead"), count)
            time.sleep(3)
            expect(not client.ended(), "his requests did not wait")
            begin = time.monotonic()
            for user in (OTHER, 0):
                expect_equal(as_user(user, live, point, 1, 20), "19",
                             f"what user {user} could do meanwhile")
            took = time.monotonic() - begin
            client.kill(signal.SIGKILL)
            client.outcome(60)
        return f"others needed {took:.1f} s beside {count}"

    # --- requests that end in the midst of others

    def lock_given_by_a_close(self, visibility, transport):
        """A close that gives a lock to one who waits for it ends, too, and both
        are answered."""
        with self.over_faults(visibility, transport,
                              "op IN { setlk flush }") as (
                                  below, point, mount, _):
            make_files(below, 1)
            path = os.path.join(point, "f0")
            holder = Client(USER, lock_and_close, path, 1)
            time.sleep(0.3)
            waiter = Client(USER, lock_and_close, path, 0)
            expect_equal((holder.outcome(20), waiter.outcome(20)),
                         ("'closed'", "'closed'"), "how both ended")
        ended = collections.Counter(e["op"] for e in mount.events
                                    if e["uid"] == USER)
        expect(ended["flush"] == 2 and ended["setlk"] >= 2,
               f"what is recorded: {ended}")

    def killed_unbegun(self, visibility, transport):
        """What was put aside, and never begun since its caller was killed, is
        in the trace with its name."""
        with self.over_faults(visibility, transport,
                              "NOT op = statfs") as (
                                  below, point, mount, rules):
            make_files(below, 1)
            folder = os.path.join(below, "many")
            os.mkdir(folder)
            os.chmod(folder, 0o777)
            make_files(folder, 300)
            rules.set("any /many/* hang")
            client = Client(USER, stat_all_at_once,
                            os.path.join(point, "many"), 300)
            # Many that wait, and go on waiting: the store does not answer.
            wait_until(lambda: all(self.asides(mount) > 50
                                   for _ in range(4)), "many that wait")
            client.kill(signal.SIGKILL)
            client.outcome(30)
            wait_until(lambda: self.asides(mount) == 0, "none that waits")
        asked = [e for e in mount.events if e["uid"] == USER
                 and e["op"] == "lookup"]
        expect(sum(e.get("errno") == "EINTR" for e in asked) > 50,
               f"{len(asked)} look-ups")
        expect_equal([e for e in asked if not e.get("path")], [],
                     "those without a name")

    def asides(self, mount):
        """How many wait for a thread, a moment later."""
        time.sleep(0.25)
        told = self.explain(mount, "waits below")  # "112 run, 9 wait, 0 were"
        return int(re.search(r"(\d+) wait, ", told).group(1))

    def killed_while_listing(self, visibility, transport):
        """Who is killed while a slow directory is listed leaves nothing
        behind: what he was about to be told of can go."""
        with self.over_faults(visibility, transport,
                              "op = readdir") as (
                                  below, point, mount, rules):
            # Nothing else looks them up, and so nobody forgets them.
            os.mkdir(os.path.join(below, "d"))
            folder = os.path.join(point, "d")
            make_files(os.path.join(below, "d"), 200)
            os.chmod(os.path.join(below, "d"), 0o777)
            rules.set("getattr /d/* delay 10")
            for _ in range(4):
                client = Client(USER, os.listdir, folder)
                time.sleep(0.4)
                client.kill(signal.SIGKILL)
                client.outcome(20)
            rules.set()
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            wait_until(lambda: self.inodes(mount) < 10,
                       "the inodes of files that are gone to go, too")

    def inodes(self, mount):
        stats = json.loads(self.suite.command(
            "tracefs-ctl", mount.point, "stats", "--format", "json"))
        return stats["inodes"]

    # --- a store that does not answer

    def dead_store(self, visibility, transport):
        """Who asks a store that does not answer waits; others are served, and
        whoever is killed ends."""
        with self.over_faults(visibility, transport) as (below, point, mount,
                                                         rules):
            make_files(below, 20)
            os.mkdir(os.path.join(below, "dead"))
            os.chmod(os.path.join(below, "dead"), 0o777)
            make_files(os.path.join(below, "dead"), 3)
            rules.set("any /dead/* hang")
            clients = [Client(USER, CALLS[name],
                              os.path.join(point, "dead", f"f{i % 3}"))
                       for i, name in enumerate(
                           ["open", "stat", "unlink", "truncate", "list"] * 12)]
            # Listing the folder itself goes on, but for its entries.
            time.sleep(1)
            hung = [c for c in clients if not c.ended()]
            expect(len(hung) >= 40, f"only {len(hung)} hang")
            for user in (OTHER, 0, USER):
                begin = time.monotonic()
                expect_equal(as_user(user, live, point, 1, 20), "19",
                             f"what user {user} could do meanwhile")
                took = time.monotonic() - begin
                expect(took < HANG_S, f"user {user} needed {took:.1f} s")
            # All: in the kernel others queue up behind one in a folder.
            for client in hung:
                client.kill(signal.SIGKILL)
            for client in hung:
                expect_equal(client.outcome(30), "", "a killed one")
            expect_equal(as_user(USER, live, point, 1, 20), "19",
                         "what their user can do then")
        return f"{len(hung)} hung"

    def dead_close(self, transport):
        """Closing what a dead store has to be told of holds up nobody, nor does
        it when who closes is killed and the file goes on being closed."""
        with self.over_faults("exact", transport) as (below, point, _, rules):
            make_files(below, 20)
            os.mkdir(os.path.join(below, "dead"))
            make_files(os.path.join(below, "dead"), 40)
            go_on, let_go = os.pipe()
            clients = [Client(USER, open_and_close,
                              os.path.join(point, "dead", f"f{i}"), go_on)
                       for i in range(40)]
            time.sleep(1)
            rules.set("flush /dead/* hang")
            os.write(let_go, b"x" * 40)
            time.sleep(0.5)
            expect_equal([c.text for c in clients if c.ended()], [],
                         "who did not wait")
            for killed in (False, True):
                if killed:
                    for client in clients:
                        client.kill()
                    for client in clients:
                        client.outcome(30)
                for user in (OTHER, 0, USER):
                    begin = time.monotonic()
                    expect_equal(as_user(user, live, point, 1, 20), "19",
                                 f"what user {user} could do meanwhile")
                    took = time.monotonic() - begin
                    expect(took < HANG_S, f"user {user} needed {took:.1f} s")

    def dead_store_end(self, transport, how):
        """umount -l and TERM end a mount whose callers hang."""
        with self.over_faults("exact", transport, ended=True) as (
                below, point, mount, rules):
            make_files(below, 5)
            os.mkdir(os.path.join(below, "dead"))
            make_files(os.path.join(below, "dead"), 1)
            rules.set("any /dead/* hang")
            clients = [Client(USER, CALLS[name],
                              os.path.join(point, "dead", "f0"))
                       for name in ["open", "stat", "unlink"] * 5]
            time.sleep(1)
            if how == "TERM":
                mount.signal(signal.SIGTERM)
                # Those who wait are let go when the connection ends.
                for client in clients:
                    expect(client.outcome(60) in ("ENOTCONN", "ECONNABORTED",
                                                  "ENOENT", "EIO"),
                           f"a caller got {client.text}")
            else:
                subprocess.run(["umount", "-l", point], check=True)
                for client in clients:
                    client.kill(signal.SIGKILL)
                for client in clients:
                    client.outcome(60)
            wait_until(lambda: not mount.is_mounted(), "the mount to go", 60)
            # The trace is whole though threads hang: they end with the server
            # that they wait for, which the kernel insists on.
            wait_until(lambda: self.suite.dump(mount.trace).status == 0,
                       "the trace to be complete", 60)
            rules.set()
            mount.wait(0)

    # --- faults

    def readdir_error(self, visibility, transport):
        """An error in the midst of a listing comes after what was read before
        it."""
        with self.over_faults(visibility, transport) as (below, point, _,
                                                         rules):
            os.mkdir(os.path.join(below, "many"))
            for i in range(1000):
                with open(os.path.join(below, "many", f"entry{i:04}"), "wb"):
                    pass
            many = os.path.join(point, "many")
            rules.set(f"readdir /many error {errno.EIO}")
            expect_equal(list_until_error(many), (0, "EIO"),
                         "a listing with an error at once")
            rules.set(f"readdir /many error {errno.EIO} from 600")
            names, error = list_until_error(many)
            expect_equal(error, "EIO", "how a listing ends")
            # "." and ".." are two of them.
            expect_equal(names, 598, "names before the error")
            rules.set()
            expect_equal(list_until_error(many), (1000, None),
                         "without an error")

    def short_write(self, visibility, transport):
        """What could be written before the disk was full counts."""
        with self.over_faults(visibility, transport) as (_, point, _, rules):
            path = os.path.join(point, "file")
            rules.set(f"write /file error {errno.ENOSPC} from 10000")
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
            expect_equal(os.write(fd, b"x" * 16384), 10000, "bytes written")
            try:
                os.write(fd, b"x")
                expect(False, "more could be written")
            except OSError as error:
                expect_equal(error.errno, errno.ENOSPC, "the error")
            os.close(fd)
            expect_equal(os.path.getsize(path), 10000, "its size")

    # --- descriptors

    def descriptors_of_one_user(self, visibility, transport):
        """A user who opens all he can is refused; nobody else notices."""
        with self.suite.mounted("", visibility, transport, wrapper=(
                "prlimit", "--nofile=1024:1024")) as (source, point, _):
            for i in range(1200):
                with open(os.path.join(source, f"f{i}"), "wb") as out:
                    out.write(b"content")
                os.chmod(os.path.join(source, f"f{i}"), 0o666)
            go_on, let_go = os.pipe()
            told, tell = os.pipe()
            greedy = Client(USER, open_all, point, 1100, tell, go_on)
            os.close(tell)
            with os.fdopen(told) as pipe:
                held, refused = map(int, pipe.readline().split())
            expect(held >= 50, f"he got no more than {held}")
            expect(refused > 0, "he was refused nothing")
            for user in (0, OTHER):
                expect_equal(as_user(user, work, point, 1100, 1200), "100",
                             f"what user {user} could do meanwhile")
            # Look-ups of names that nobody has asked for yet.
            names = as_user(OTHER, look_up_all, point, 1200)
            expect_equal(names, "1200", "names that can be looked up")
            os.write(let_go, b"x")
            expect_equal(greedy.outcome(), "'done'", "his end")
            wait_until(lambda: as_user(USER, work, point, 0, 40) == "40",
                       "his files to be given back", 20)
        return f"{held} of 1100"


class Lease:
    """A write lease (fcntl(2)) that its holder, a process of root, keeps for
    as long as it may, or until the end."""

    def __init__(self, path):
        self._told, tell = os.pipe()
        go_on, self._let_go = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            LIBC.prctl(1, 9, 0, 0, 0)
            os.close(self._let_go)
            signal.signal(signal.SIGIO, lambda *_: os.write(tell, b"a"))
            fd = os.open(path, os.O_RDWR)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            os.write(tell, b"h")
            os.read(go_on, 1)
            still = fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_UNLCK
            os.write(tell, b"k" if still else b"b")
            os._exit(0)
        os.close(tell)
        os.close(go_on)
        self.said = b""

    def _listen(self):
        while select.select([self._told], [], [], 0)[0]:
            got = os.read(self._told, 100)
            self.said += got
            if not got:
                return

    @property
    def asked_for(self):
        self._listen()
        return b"a" in self.said

    @property
    def broken(self):
        self._listen()
        return b"b" in self.said

    def __enter__(self):
        wait_until(lambda: self._listen() or b"h" in self.said, "the lease", 10)
        return self

    def __exit__(self, *_):
        os.write(self._let_go, b"x")
        os.waitpid(self._pid, 0)
        os.close(self._let_go)
        os.close(self._told)


def make_files(folder, count):
    for i in range(count):
        with open(os.path.join(folder, f"f{i}"), "wb") as out:
            out.write(b"content")
        os.chmod(os.path.join(folder, f"f{i}"), 0o666)


def interruptible(call):
    """`call`, whose wait a SIGUSR1 ends."""
    def body(path):
        class Interrupted(OSError):
            pass

        def interrupt(*_):
            raise Interrupted(errno.EINTR, "interrupted")

        signal.signal(signal.SIGUSR1, interrupt)
        call(path)
        return "done"
    return body


CALLS = {
    "open": interruptible(lambda path: os.close(os.open(path, os.O_RDWR))),
    "read": interruptible(lambda path: os.close(os.open(path, os.O_RDONLY))),
    "truncate": interruptible(lambda path: os.truncate(path, 3)),
    "stat": interruptible(os.stat),
    "unlink": interruptible(os.unlink),
    "list": interruptible(lambda path: os.stat(os.path.dirname(path) + "/f0")),
}


def live(folder, begin, end):
    """Some of everything; how many files that went well for."""
    done = 0
    for i in range(begin, end):
        path = os.path.join(folder, f"f{i}")
        os.stat(path)
        with open(path, "rb+") as file:
            done += file.read() == b"content"
            file.seek(0)
            file.write(b"content")
        mine = os.path.join(folder, f"of-{os.getuid()}-{i}")
        with open(mine, "wb") as file:
            file.write(b"x")
        os.rename(mine, mine + "b")
        os.unlink(mine + "b")
    os.listdir(folder)
    return done


def open_and_close(path, go_on):
    fd = os.open(path, os.O_RDWR)
    os.read(go_on, 1)
    os.close(fd)


def make_cold(disk, count):
    """Folders with a file each, so that each look-up and each read has
    something of its own to wait for."""
    for i in range(count):
        folder = os.path.join(disk, f"d{i}")
        os.mkdir(folder, 0o755)
        with open(os.path.join(folder, "f"), "wb") as out:
            out.write(b"x" * KIB)
        os.chmod(folder, 0o755)
    with open(os.path.join(disk, "hot"), "wb") as out:
        out.write(b"content")


def read_directly(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as page:  # which O_DIRECT wants to be aligned
        expect_equal(os.preadv(fd, [page], 0), 4096, "bytes read directly")
    os.close(fd)


def write_directly(path, flag):
    fd = os.open(path, os.O_WRONLY | flag)
    with mmap.mmap(-1, 4096) as page:
        expect_equal(os.pwritev(fd, [page], 0), 4096, "bytes written")
    os.close(fd)


def waits_of(told, kind):
    """(in a queue, in threads) of what explain tells."""
    found = re.search(re.escape(kind) + r" [\d.]+ ?[mµun]?s at most, (\d+) waited in a "
                      r"queue, (\d+) in threads", told)
    expect(found is not None, f"nothing of {kind} in: {told}")
    return int(found[1]), int(found[2])


def stat_all_at_once(folder, count):
    """How often each error came of as many stat(2) at a time."""
    errors = collections.Counter()
    begin = threading.Barrier(count)

    def ask(i):
        begin.wait()
        try:
            os.stat(os.path.join(folder, f"f{i}"))
            errors[""] += 1
        except OSError as error:
            errors[errno.errorcode[error.errno]] += 1

    threading.stack_size(128 << 10)
    threads = [threading.Thread(target=ask, args=(i,), daemon=True)
               for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(errors)


def lock_and_close(path, seconds):
    fd = os.open(path, os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX)
    time.sleep(seconds)
    os.close(fd)
    return "closed"


def read_all(folder, begin, end):
    done = 0
    for i in range(begin, end):
        with open(os.path.join(folder, f"d{i}", "f"), "rb") as file:
            done += len(file.read())
    return done


def ask_often(path, count):
    """What a stat(2) of what is in memory mostly took, in ms."""
    times = []
    for _ in range(count):
        begin = time.monotonic()
        os.stat(path)
        times.append(time.monotonic() - begin)
        time.sleep(0.015)  # longer than names are kept
    return sorted(times)[count // 2] * 1000


def list_until_error(folder):
    """How many names a listing gives, and the error it ends with."""
    names = 0
    try:
        with os.scandir(folder) as entries:
            for _ in entries:
                names += 1
    except OSError as error:
        return names, errno.errorcode[error.errno]
    return names, None


def open_all(folder, count, tell, go_on):
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
    held = []
    refused = 0
    for i in range(count):
        try:
            held.append(os.open(os.path.join(folder, f"f{i}"), os.O_RDWR))
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            refused += 1
    os.write(tell, f"{len(held)} {refused}\n".encode())
    os.read(go_on, 1)
    # What he has, he can use.
    for fd in held:
        os.pread(fd, 10, 0)
        os.close(fd)
    return "done"


def work(folder, begin, end):
    """Opens, reads and closes; how often that went well."""
    done = 0
    for i in range(begin, end):
        with open(os.path.join(folder, f"f{i}"), "rb+") as file:
            done += file.read() == b"content"
    os.listdir(folder)
    return done


def look_up_all(folder, count):
    return sum(os.stat(os.path.join(folder, f"f{i}")).st_size == 7
               for i in range(count))


def main():
    suite = Suite("waiting", __doc__)
    waiting = Waiting(suite)
    for transport in TRANSPORTS:
        for visibility in VISIBILITIES:
            what = f"over {transport}, {visibility}"
            suite.run(f"descriptors of one user, {what}",
                      waiting.descriptors_of_one_user, visibility, transport)
            for call in ("open", "read", "truncate"):
                suite.run(f"lease, {call}, {what}", waiting.lease, visibility,
                          transport, call)
            suite.run(f"dead store, {what}", waiting.dead_store, visibility,
                      transport)
            if transport == "dev":  # the other one traces no locks
                suite.run(f"lock given by a close, {what}",
                          waiting.lock_given_by_a_close, visibility, transport)
            suite.run(f"killed unbegun, {what}", waiting.killed_unbegun,
                      visibility, transport)
            suite.run(f"killed while listing, {what}",
                      waiting.killed_while_listing, visibility, transport)
            suite.run(f"error of readdir, {what}", waiting.readdir_error,
                      visibility, transport)
            suite.run(f"full disk in mid write, {what}", waiting.short_write,
                      visibility, transport)
        suite.run(f"a disk that waits, over {transport}", waiting.waiting_disk,
                  "auto", transport)
        suite.run(f"what goes to the disk, over {transport}",
                  waiting.to_the_disk, transport)
        suite.run(f"many leases, over {transport}", waiting.many_leases,
                  transport)
        suite.run(f"a thousand callers, over {transport}",
                  waiting.thousand_callers, transport)
        suite.run(f"one greedy user, over {transport}", waiting.greedy_user,
                  transport)
        suite.run(f"closing over a dead store, over {transport}",
                  waiting.dead_close, transport)
        for how in ("TERM", "umount"):
            suite.run(f"end over a dead store, {how}, over {transport}",
                      waiting.dead_store_end, transport, how)
    suite.finish()


if __name__ == "__main__":
    main()
