"""What power_cut_test.py has our commands do, and what must be left of it."""

import json
import os
import re
import shutil
import struct
import subprocess
import time

import power_cut
from receiver_process import (ACK, WELCOME, ForgedTraces, Receiver, connect,
                              crc32c, frame_ends, hello, replies, send)
from tracefs_harness import (PATIENCE_S, expect, expect_equal, mount_points,
                             wait_until)

HERE = os.path.dirname(os.path.abspath(__file__))
PATTERN = os.path.join(HERE, "..", "..", "golden", "v1", "copies.trace")
# A path that is never there: looking for it marks a moment in the log.
MARK = "/power-cut-mark/"
# Kinds of frames that are no blocks.
FIRST_MARK = 16


def mark(text):
    os.path.exists(MARK + text)


def marked(call, arguments):
    if call.name == "newfstatat" and arguments[1].startswith(MARK):
        yield arguments[1][len(MARK):]


class Case:
    """What is played (under strace, in a process of its own) and what must be
    left of it. `self.disk` is the folder on the disk that loses its power."""

    def __init__(self, base, binaries):
        self.base = base
        self.bin = binaries
        self.disk = os.path.join(base, "disk")

    def path(self, *parts):
        return os.path.join(self.disk, *parts)

    def beside(self, *parts):
        return os.path.join(self.base, *parts)

    def run(self, tool, *arguments, **options):
        return subprocess.run([os.path.join(self.bin, tool), *arguments],
                              capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, **options)

    def done(self, tool, *arguments):
        """Runs a command that must go well, and marks that it did."""
        ended = self.run(tool, *arguments)
        expect(ended.returncode == 0, f"{tool}: {ended.stderr}")
        mark(f"{tool} {arguments[0]}")
        return ended.stdout

    def prepare(self):
        """Before the recording."""

    def told(self, call, arguments):
        """Texts of what somebody was told by a call."""
        yield from marked(call, arguments)

    def play(self):
        raise NotImplementedError

    def check(self, left, marks):
        """Raises a Failure. `left`: a folder that the power cut has left."""
        raise NotImplementedError


def read(path):
    """Bytes of a file; None if it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def left_files(left, prefix):
    return sorted(os.path.join(left, name) for name in os.listdir(left)
                  if name.startswith(prefix))


def copied(source, target):
    """A file as somebody wrote it who was killed before he synced it."""
    with open(target, "wb") as out:
        out.write(read(source))


def whole_blocks(data):
    """How many frames a trace begins with."""
    return len(frames(data))


def frames(data):
    """Kind and number of the whole frames that a trace begins with (FORMAT.md,
    section 2)."""
    at = struct.unpack_from("<I", data, 8)[0] if len(data) > 12 else 0
    found = []
    while 40 <= at <= len(data) - 40:
        head, begin = data[at:at + 40], at + 40
        at = begin + struct.unpack_from("<I", head, 4)[0]
        crc, = struct.unpack_from("<I", head, 36)
        if at > len(data) or crc32c(head[:36] + data[begin:at]) != crc:
            break
        found.append((struct.unpack_from("<H", head, 32)[0],
                      struct.unpack_from("<Q", head, 8)[0]))
    return found


# --- Files that are there as a whole or not at all

class Keys(Case):
    """tracefs-keygen: a key is whole or absent, and there once it has ended."""

    def play(self):
        self.done("tracefs-keygen", "secret", self.path("secret"))
        self.done("tracefs-keygen", "seal", self.path("seal"),
                  self.path("seal-verify"))
        self.done("tracefs-keygen", "sign", self.path("sign"),
                  self.path("sign-public"))
        self.done("tracefs-keygen", "age", self.path("age"))

    def check(self, left, marks):
        made = {m.split()[1] for m in marks}
        for name in ("secret", "seal", "seal-verify", "sign", "sign-public",
                     "age"):
            now = read(os.path.join(left, name))
            whole = read(self.path(name))
            expect(now in (None, whole), f"{name} is there in part: {now!r}")
            expect(now is not None or name.split("-")[0] not in made,
                   f"{name} was made and is not there")
        # Of a pair neither is of use alone, and keys never replace a file.
        strange = [n for n in os.listdir(left) if n.startswith(".")]
        expect(not strange, f"left over: {strange}")


class SignedConfig(Case):
    """tracefs-keygen sign-config, three times over one file."""

    def prepare(self):
        self.run("tracefs-keygen", "sign", self.beside("private"),
                 self.beside("public"))
        with open(self.beside("config"), "w", encoding="ascii") as out:
            out.write('{ {} {} { file = "/srv/trace" } }\n')

    def play(self):
        for version in "123":
            self.run("tracefs-keygen", "sign-config", "--key",
                     self.beside("private"), "--config-version",
                     version, self.beside("config"), self.path("signed"))
            mark(version)

    def check(self, left, marks):
        now = os.path.join(left, "signed")
        if not os.path.exists(now):
            expect(not marks, "it was signed and is not there")
            return
        said = self.run("tracefs-keygen", "verify-config", "--key",
                        self.beside("public"), now)
        expect(said.returncode == 0, f"damaged: {said.stdout}{said.stderr}")
        found = re.search(rb"version[ =:]+(\d+)", read(now))
        expect(found and int(found[1]) >= int((marks or ["0"])[-1]),
               f"version {found and found[1]} after {marks}")


class Anonymised(Case):
    """tracefs-anon: its output is whole or absent."""

    def prepare(self):
        self.run("tracefs-keygen", "secret", self.beside("key"))

    def play(self):
        self.done("tracefs-anon", "--policy", "partner", "--keys",
                  self.beside("key"), PATTERN, self.path("out"))

    def check(self, left, marks):
        now, whole = read(os.path.join(left, "out")), read(self.path("out"))
        expect(now in (None, whole), "it is there in part")
        expect(now is not None or not marks, "it was made and is not there")


class Exported(Case):
    """tracefs-dump over a folder that it made before: the old one or the new."""

    def play(self):
        for filter_text in ("op = close", "op = read"):
            self.done("tracefs-dump", "--format", "ctf", "--filter",
                      filter_text, "--output", self.path("out"), PATTERN)
            shutil.copytree(self.path("out"), os.path.join(
                self.base, "version-" + filter_text.split()[-1]))

    def check(self, left, marks):
        now = os.path.join(left, "out")
        whole = [power_cut.tree_of(self.beside(f"version-{v}"))
                 for v in ("close", "read")]
        there = power_cut.tree_of(now) if os.path.isdir(now) else None
        allowed = ([None, *whole], whole, whole[1:])[len(marks)]
        expect(there in allowed,
               f"neither the old nor the new: {sorted(there or ())}")


# --- Traces

class Mounted(Case):
    """A mount whose trace is on the disk; operations are marked when the caller
    had his answer."""

    CHAIN = ""
    MOUNTS = 1
    DIRECTORIES = 12

    def prepare(self):
        for name in ("source", "mnt"):
            os.mkdir(self.beside(name))

    def config(self, number):
        path = self.beside(f"config-{number}")
        with open(path, "w", encoding="ascii") as out:
            out.write("{ { op = mkdir } {} { %s } }\n" % self.CHAIN.format(
                disk=self.disk, number=number, base=self.base))
        return path

    def told(self, call, arguments):
        if call.name in ("mkdir", "mkdirat") and call.ok:
            path = arguments[-2]
            if path.startswith(self.beside("mnt", "d")):
                yield os.path.basename(path)

    def play(self):
        point = self.beside("mnt")
        for number in range(self.MOUNTS):
            log = self.beside(f"daemon-{number}.log")
            with open(log, "wb") as out:
                daemon = subprocess.Popen(
                    [os.path.join(self.bin, "tracefs-mount"),
                     self.beside("source"), point, "--config",
                     self.config(number), "--foreground"], stdout=out,
                    stderr=out, stdin=subprocess.DEVNULL)
            try:
                wait_until(lambda: point in mount_points()
                           or daemon.poll() is not None, "the mount")
                with open(log, encoding="utf-8") as text:
                    expect(daemon.poll() is None, text.read())
                for i in range(self.DIRECTORIES):
                    os.mkdir(os.path.join(point, f"d{number}.{i}"))
                subprocess.run(["umount", point], check=True)
                daemon.wait(PATIENCE_S)
            finally:
                if daemon.poll() is None:
                    daemon.kill()
                    subprocess.run(["umount", "-l", point], check=False)
            with open(log, encoding="utf-8") as text:
                expect(daemon.returncode == 0, text.read())

    def recorded(self, traces):
        """Directories that traces tell of."""
        said = self.run("tracefs-dump", "--format", "jsonl", *traces)
        expect(said.returncode in (0, 1), f"tracefs-dump: {said.stderr}")
        return {os.path.basename(json.loads(line)["path"])
                for line in said.stdout.splitlines()
                if json.loads(line)["op"] == "mkdir"}

    def expect_recorded(self, left, marks):
        traces = left_files(left, "trace")
        missing = set(marks) - (self.recorded(traces) if traces else set())
        expect(not missing,
               f"of {len(marks)} operations that were answered "
               f"{sorted(missing)} are not in {os.listdir(left)}")


class Synced(Mounted):
    """file … unbuffered sync: what was answered is in the trace."""

    CHAIN = 'checksum alg = crc32c; file = "{disk}/trace" buf = 4K unbuffered sync'

    def check(self, left, marks):
        self.expect_recorded(left, marks)
        for trace in left_files(left, "trace"):
            said = self.run("tracefs-verify", "--unfinished", trace)
            expect(said.returncode in (0, 1),
                   f"tracefs-verify: {said.returncode} {said.stderr}")


class Rotated(Synced):
    """The same in several files."""

    CHAIN = ('checksum alg = crc32c; file = "{disk}/trace" buf = 4K unbuffered sync '
             'rotate_count = 4')


class Sealed(Mounted):
    """A sealing state and anchors beside two traces: no epoch comes twice, and
    no anchor accuses a trace."""

    MOUNTS = 2
    DIRECTORIES = 4
    CHAIN = ('checksum alg = hmac-sha256 key = "file:{disk}/state" '
             'seal = forward anchor = "file:{disk}/anchors" anchor_every = 1; '
             'file = "{disk}/trace-{number}" buf = 4K unbuffered sync')

    def prepare(self):
        super().prepare()
        self.run("tracefs-keygen", "seal", self.path("state"),
                 self.beside("verify"))

    def check(self, left, marks):
        self.expect_recorded(left, marks)
        state = read(os.path.join(left, "state"))
        expect(state, "the sealing state is gone")
        found = re.search(rb"tracefs-seal-state-1 \w{16}\n\d+ (\d+) \w{64}\n",
                          state)
        expect(found, f"the sealing state is damaged: {state!r}")
        used = [n for n in range(self.MOUNTS)
                if read(os.path.join(left, f"trace-{n}"))]
        for epoch in used:
            expect(int(found[1]) > epoch,
                   f"epoch {epoch} is in a trace, and the next is "
                   f"{int(found[1])}")
        anchored = re.findall(
            rb"^tracefs-anchor serial=(\w{32}) block=(\d+) last=[01] "
            rb"hash=\w{64}$", read(os.path.join(left, "anchors")) or b"", re.M)
        for n in range(self.MOUNTS):
            trace = os.path.join(left, f"trace-{n}")
            data = read(trace) or b""
            blocks = whole_blocks(data)
            for serial, block in anchored:
                expect(serial.decode() != data[16:32].hex()
                       or int(block) < blocks,
                       f"an anchor of block {int(block)}, and {blocks} are "
                       "there")
            said = self.run("tracefs-verify", "--unfinished", "--key",
                            self.beside("verify"), trace) if blocks else None
            expect(said is None or not re.search("^bad .*[0-9]+$", said.stdout,
                                                 re.M),
                   f"tracefs-verify: {said and said.stdout}")


# --- Receivers

class Received(Case):
    """tracefs-recv, killed between: what it acknowledged is there."""

    def prepare(self):
        os.mkdir(self.path("out"))

    @staticmethod
    def trace(blocks):
        with open(PATTERN, "rb") as file:
            return ForgedTraces(file.read()).trace(1, 700, blocks=blocks)

    def receiver(self, out):
        return Receiver(os.path.join(self.bin, "tracefs-recv"), "--listen",
                        "tcp:127.0.0.1:0", "--out", out, "--quiet")

    def told(self, call, arguments):
        if call.name != "sendto" or not isinstance(arguments[1], str):
            return
        data = os.fsencode(arguments[1])
        while len(data) >= 4:
            kind, length = struct.unpack_from("<HH", data)
            if kind == ACK and length == 12:
                yield struct.unpack_from("<Q", data, 4)[0]
            elif kind == WELCOME and length == 20:
                yield struct.unpack_from("<Q", data, 8)[0]
            elif not 1 <= kind <= 3 or length < 4:
                return
            data = data[length:]

    def play(self):
        trace = self.trace(9)
        ends = frame_ends(trace)
        out = self.path("out")
        with self.receiver(out) as running, connect(running.address) as sock:
            answers = replies(sock)
            sock.sendall(hello(trace[:ends[0]]))
            expect_equal(next(answers)[0], WELCOME, "the answer")
            for n in range(3):
                sock.sendall(trace[ends[n]:ends[n + 1]])
                expect_equal(next(answers)[0], ACK, "the answer")
            # Half of what comes next; then the process is gone.
            sock.sendall(trace[ends[3]:ends[4] + 20])
            time.sleep(0.01)
        for blocks in (6, 9):
            with self.receiver(out) as running:
                send(running.address, trace[:ends[blocks]])
                if blocks == 9:
                    running.end()

    def check(self, left, marks):
        acknowledged = max(marks, default=0)
        files = left_files(os.path.join(left, "out"), "")
        expect(files or not acknowledged, f"{acknowledged} blocks were "
               "acknowledged, and no file is there")
        for path in files:
            whole = whole_blocks(read(path))
            expect(whole >= acknowledged,
                   f"of {acknowledged} acknowledged blocks {whole} are there")


class ReceivedAfterAKill(Received):
    """The same over a file that the receiver before was killed over: nothing
    of it was durable, and what it holds is acknowledged with the first word."""

    def prepare(self):
        super().prepare()
        os.mkdir(self.beside("killed"))
        trace = self.trace(4)
        with self.receiver(self.beside("killed")) as running:
            send(running.address, trace[:frame_ends(trace)[3]])

    def play(self):
        name, = os.listdir(self.beside("killed"))
        copied(self.beside("killed", name), self.path("out", name))
        os.chmod(self.path("out", name), 0o600)
        with self.receiver(self.path("out")) as running:
            expect_equal(send(running.address, self.trace(4)), 3, "went on at")
            running.end()


class Fleet(Case):
    """A receiver of a group stores blocks by day, one of them late; the one
    before was killed before anything was durable."""

    BEFORE = ["2026-01-30:0", "2026-01-30:1"]
    BLOCKS = ["2026-01-30:0", "2026-01-30:1", "2026-01-30:2", "2026-01-31:4",
              "2026-01-31:3", "2026-01-31:5", "2026-02-01:6"]

    def store(self, root, blocks):
        subprocess.run([os.environ["FLEET_DISK"], "store", root, *blocks], check=True)

    def prepare(self):
        os.mkdir(self.beside("killed"))
        self.store(self.beside("killed"), self.BEFORE)

    def play(self):
        shutil.copytree(self.beside("killed"), self.disk, dirs_exist_ok=True,
                        copy_function=copied)
        self.store(self.disk, self.BLOCKS)

    def check(self, left, marks):
        there = set()
        for folder, _, files in os.walk(left):
            for name in files:
                data = read(os.path.join(folder, name))
                there |= {number for kind, number in frames(data)
                          if kind < FIRST_MARK}
        missing = {int(m) for m in marks} - there
        expect(not missing, f"blocks {sorted(missing)} need not come again, "
               f"and {sorted(there)} are there")


class Merged(Case):
    """Small tables become a large one: each line stays, once."""

    MORE = []
    SERIAL = "1" * 32

    def prepare(self):
        day = self.path("host=web", "date=2026-01-31")
        os.makedirs(day)
        for first, last in ((1, 3), (4, 5), (6, 9), (12, 12)):
            with open(os.path.join(
                    day, f"{self.SERIAL}-{first:012}-{last:012}.jsonl"), "w",
                    encoding="ascii") as out:
                out.writelines(f"{n:0100}\n" for n in range(first, last + 1))

    def merge(self, root):
        subprocess.run([os.environ["FLEET_DISK"], "merge", root, *self.MORE], check=True)

    def play(self):
        self.merge(self.disk)

    @staticmethod
    def lines(root):
        day = os.path.join(root, "host=web", "date=2026-01-31")
        return sorted(int(line) for name in os.listdir(day)
                      if not name.startswith(".")
                      for line in read(os.path.join(day, name)).splitlines())

    WHOLE = [*range(1, 10), 12]

    def check(self, left, marks):
        if not self.MORE:
            expect_equal(self.lines(left), self.WHOLE, "lines")
        # Where folders cannot be exchanged the next turn puts it right.
        self.merge(left)
        expect_equal(self.lines(left), self.WHOLE, "lines after the next turn")


class MergedOneByOne(Merged):
    """The same where a file system cannot exchange folders."""

    MORE = ["one-by-one"]


CASES = {
    "keys": Keys,
    "signed config": SignedConfig,
    "anonymised trace": Anonymised,
    "exported folder": Exported,
    "trace": Synced,
    "rotated trace": Rotated,
    "sealing state and anchors": Sealed,
    "receiver": Received,
    "receiver after a kill": ReceivedAfterAKill,
    "receiver of a fleet": Fleet,
    "merged tables": Merged,
    "merged one by one": MergedOneByOne,
}
