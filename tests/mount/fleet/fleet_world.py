"""A mount whose traces go to a broker and, beside, to a file; receivers of them;
and what is stored compared with what the file has."""

import collections
import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import time

from receiver_process import ForgedTraces, frame_ends
from tracefs_harness import decode_event, expect, expect_equal, wait_until

HOST = os.uname().nodename
# Long runs, with TRACEFS_SOAK=1: how long each of them is.
SOAK_SECONDS = float(os.environ.get("TRACEFS_SOAK_SECONDS", "3600"))
GROUP = "tracefs-recv"


def arguments(parser):
    parser.add_argument("--npm", help="folder with node_modules: DuckDB")


class Fleet:
    """A mount with two tracers, one to a broker and one to a file beside."""

    def __init__(self, suite, name, broker, options="", filters="",
                 file_filters=None):
        """`broker`: what a driver is told of it (`driver`), what a receiver is
        (`receiver`, a list), and whether a group has acknowledged all
        (`acknowledged_all`)."""
        self.suite = suite
        self.broker = broker
        self.name = name
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mount")
        self.out = suite.folder(name, "out")
        self.beside = suite.path(name, "beside.trace")
        beside = filters if file_filters is None else file_filters
        self.mount = suite.mount(
            self.source, self.point,
            ("", "STR_ALL", f"{filters} {broker.driver} retry = 200ms {options}"),
            ("", "STR_ALL", f'{beside} file = "{self.beside}"'))
        self.made = 0

    def work(self, count):
        for _ in range(count):
            path = os.path.join(self.point, f"f{self.made}")
            with open(path, "w", encoding="ascii") as out:
                out.write(str(self.made))
            self.made += 1

    def give_up(self):
        """Ends the mount whose blocks nobody takes, without waiting for it."""
        self.mount.kill()
        # Unless its watchdog has done it.
        subprocess.run(["umount", "-l", self.point], check=False,
                       capture_output=True)
        wait_until(lambda: not self.mount.is_mounted(), "the mount to go")

    def receiver(self, *arguments, out=None):
        log = self.suite.path(self.name, f"recv-{random.random()}.log")
        with open(log, "wb") as errors:
            process = self.suite.background(subprocess.Popen(
                [os.path.join(self.suite.bin, "tracefs-recv"), "--from",
                 *self.broker.receiver, "--out", out or self.out,
                 *arguments],
                stdin=subprocess.DEVNULL, stderr=errors))
        process.log = log
        return process

    def await_all(self, receivers, stop=True):
        """Until all that is in the stream was acknowledged."""
        def done():
            for receiver in receivers:
                expect(receiver.poll() is None, said(receiver))
            return self.broker.acknowledged_all(GROUP)
        wait_until(done, "all blocks to be acknowledged")
        for receiver in receivers if stop else ():
            receiver.send_signal(signal.SIGTERM)
            expect_equal(receiver.wait(30), 0, said(receiver))

    def traces(self):
        return sorted(glob.glob(f"{self.out}/host={HOST}/date=*/*.trace"))

    def tables(self):
        return glob.glob(f"{self.out}/host={HOST}/date=*/*.jsonl")

    def lines(self):
        """The events of all tables of JSON Lines."""
        events = []
        for path in self.tables():
            with open(path, "rb") as lines:
                events += [decode_event(line) for line in lines]
        return events

    def expect_same(self, events=None):
        want = plain(self.suite.read(self.beside))
        got = plain(self.suite.read(*self.traces()) if events is None
                    else events)
        missing, more = want - got, got - want
        expect(not missing and not more,
               f"{sum(missing.values())} events of {sum(want.values())} are "
               f"missing, {sum(more.values())} are too many; "
               f"{list(missing)[:1]} {list(more)[:1]}")
        return sum(want.values())


def said(process):
    with open(process.log, encoding="utf-8", errors="replace") as text:
        return text.read()


def plain(events):
    """Events with how often each is there, but for who recorded it: each
    tracer has a pair of clocks of its own."""
    return collections.Counter(
        json.dumps({k: v for k, v in event.items()
                    if k not in ("ts", "tracer")}, sort_keys=True)
        for event in events)


def secret_file(suite, name, digits):
    path = suite.path(name)
    with open(path, "w", encoding="ascii") as out:
        out.write("tracefs-secret-1 " + digits * 32 + "\n")
    os.chmod(path, 0o600)
    return path


def encrypted_fleet(suite, name, broker, kind=Fleet):
    """One whose blocks only a key opens; (fleet, file of the key)."""
    secret = secret_file(suite, name + "-secret", "a5")
    return kind(suite, name, broker,
                filters=f'compress; encrypt key = "file:{secret}";',
                file_filters=""), secret


def sealed_fleet(suite, name, broker, kind=Fleet, file_filters=None):
    """One whose blocks a key seals; (fleet, file of the key)."""
    secret = secret_file(suite, "secret", "5a")
    return kind(suite, name, broker, options="buf = 4096",
                filters=f'checksum key = "file:{secret}";',
                file_filters=file_filters), secret


def two_receivers_store_what_verifies(fleet, secret):
    """As the file beside has it, in one file that they share."""
    receivers = [fleet.receiver("--key", secret) for _ in range(2)]
    for _ in range(5):
        fleet.work(40)
    fleet.mount.unmount()
    fleet.await_all(receivers)
    count = fleet.expect_same()
    expect_equal(len(fleet.traces()), 1, "one file for one trace and day")
    fleet.suite.command("tracefs-verify", "--key", secret, *fleet.traces())
    return f"{count} events"


def receivers_killed_in_turn_lose_nothing(fleet, kills):
    """kill -9, of two; nothing is doubled either."""
    receivers = [fleet.receiver(), fleet.receiver()]
    for number in range(kills):
        fleet.work(60)
        victim = number % 2
        receivers[victim].send_signal(signal.SIGKILL)
        receivers[victim].wait()
        receivers[victim] = fleet.receiver()
    fleet.mount.unmount()
    fleet.await_all(receivers)
    return f"{fleet.expect_same()} events, {kills} kills"


def receivers_killed_at_random_lose_nothing(fleet, secret, seconds):
    """kill -9 for a long time, of two that share the work, and of both at once
    now and then; what is stored verifies, too."""
    draw = random.Random(21)
    arguments = ("--key", secret)
    receivers = [fleet.receiver(*arguments) for _ in range(2)]
    kills = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pause = time.monotonic() + draw.uniform(0.05, 6)
        while time.monotonic() < pause:
            fleet.work(5)
            time.sleep(0.5)
        for victim in draw.choice([[0], [1], [0, 1]]):
            expect(receivers[victim].poll() is None, said(receivers[victim]))
            receivers[victim].send_signal(signal.SIGKILL)
            receivers[victim].wait()
            os.unlink(receivers[victim].log)
            receivers[victim] = fleet.receiver(*arguments)
            kills += 1
    fleet.mount.unmount()
    fleet.await_all(receivers)
    count = fleet.expect_same()
    fleet.suite.command("tracefs-verify", "--key", secret, *fleet.traces())
    return f"{count} events, {kills} kills in {seconds} s"


def lines_of_killed_receivers(fleet):
    """The events of the JSON Lines that two receivers stored, each of which was
    killed and came back meanwhile."""
    arguments = ("--format", "jsonl", "--every", "200ms")
    receivers = [fleet.receiver(*arguments) for _ in range(2)]
    for number in range(2):
        fleet.work(60)
        receivers[number % 2].send_signal(signal.SIGKILL)
        receivers[number % 2].wait()
        receivers[number % 2] = fleet.receiver(*arguments)
    fleet.mount.unmount()
    fleet.await_all(receivers)
    return fleet.lines()


def tables_need_the_key(fleet, secret):
    """Without it nothing is acknowledged, and who has it then gets all."""
    fleet.work(30)
    fleet.mount.unmount()
    arguments = ("--format", "jsonl", "--every", "200ms")
    receiver = fleet.receiver(*arguments)
    wait_until(lambda: "without a key" in said(receiver),
               "the receiver to say that it lacks the key")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    expect(" 0 left for lack" not in said(receiver), said(receiver))
    expect(not fleet.broker.acknowledged_all(GROUP), "nothing acknowledged")
    expect(not fleet.tables(), "no table")
    fleet.await_all([fleet.receiver(*arguments, "--key", secret)])
    return f"{fleet.expect_same(fleet.lines())} events"


def unsealed(trace, way):
    """The blocks of a plain trace as one who has no key would pass them off as
    sealed: each a preamble and a frame."""
    ends = frame_ends(trace)
    forged = ForgedTraces(trace)
    serial = way.encode().ljust(16)[:16]
    for number, (begin, end) in enumerate(zip(ends, ends[1:])):
        payload = trace[begin + 40:end]
        if way == "nothing but the word":
            yield (forged.preamble(serial, "checksum") +
                   forged.frame(serial, number, payload))
        else:
            # FORMAT.md, section 11.2: hmac-sha256 under a key of that id.
            head = struct.pack("<BBHI8s8sQQQQ32s", 3, 0, 88, 0, b"EVILKEY!",
                               b"", 0, 2**64 - 1, 0, 0, b"")
            yield (forged.preamble(serial, "checksum alg=hmac-sha256; file") +
                   forged.frame(serial, number, head + payload + bytes(32)))


def forged_seals_are_not_stored(fleet, secret, send):
    """`fleet` is sealed, but not in the file beside. `send`: a message of the
    host "victim"."""
    fleet.work(50)
    fleet.mount.unmount()
    with open(fleet.beside, "rb") as file:
        plain_trace = file.read()
    for way in ("nothing but the word", "a key nobody has"):
        for body in unsealed(plain_trace, way):
            send(body)
    blocks = len(frame_ends(plain_trace)) - 1
    receiver = fleet.receiver("--key", secret, "--format", "jsonl",
                              "--every", "200ms")
    wait_until(lambda: "victim' stay with the broker" in said(receiver) and
               said(receiver).count("of host 'victim': it is neither sealed")
               >= blocks and fleet.tables(), "all to be judged")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    # A broker sends again what is answered late.
    expect(counted(receiver)["left"] >= blocks
           and counted(receiver)["refused"] >= blocks, said(receiver))
    expect_equal([n for n in os.listdir(fleet.out) if n.startswith("host=")],
                 [f"host={HOST}"], "hosts")
    return f"{fleet.expect_same(fleet.lines())} events"


def another_key_leaves_blocks_with_the_broker(fleet, secret, other):
    """Its receiver takes none of them, and loses none."""
    fleet.work(30)
    fleet.mount.unmount()
    arguments = ("--format", "jsonl", "--every", "200ms")
    receiver = fleet.receiver(*arguments, "--key", other)
    wait_until(lambda: "stay with the broker" in said(receiver),
               "the receiver to say that it has another key")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    expect(" 0 refused" in said(receiver), said(receiver))
    expect(not fleet.tables(), "no table")
    fleet.await_all([fleet.receiver(*arguments, "--key", other,
                                    "--key", secret)])
    return f"{fleet.expect_same(fleet.lines())} events"


def counted(receiver):
    """What it said in the end."""
    return {name: int(re.search(pattern, said(receiver))[1]) for name, pattern in
            (("stored", r"stored (\d+) blocks"), ("doubled", r"(\d+) doubled"),
             ("never", r"(\d+) never came"), ("left", r"(\d+) left"),
             ("refused", r"(\d+) refused"))}


def a_full_disk_is_waited_for(suite, name, broker, arguments, messages):
    """What could not be stored is stored once there is room; `messages` are in
    the stream."""
    fleet = Fleet(suite, name + "-fleet", broker, options="buf = 4096")
    with suite.tmpfs(name + "-fleet", "out", size="256k") as small:
        receiver = fleet.receiver(*arguments)
        fleet.work(1000)
        wait_until(lambda: "trying again" in said(receiver),
                   "the disk to become full")
        fleet.work(40)
        fleet.mount.unmount()
        subprocess.run(["mount", "-o", "remount,size=50m", small], check=True)
        fleet.await_all([receiver])
        expect("takes traces again" in said(receiver), said(receiver))
        counts = counted(receiver)
        expect_equal((counts["stored"], counts["doubled"]), (messages(), 0),
                     "blocks stored, and doubled")
        return fleet.expect_same(fleet.lines() if arguments else None)
