#!/usr/bin/env python3
"""Where on the device lies what was written and what had to be fetched
(STR_EXTENTS): traces say what filefrag and debugfs say of the files below, on
ext4, XFS and btrfs; and tracefs-report sums up what a few lines of Python sum up.

  extents_test.py --bin build/release/bin [--only NAME]
"""

import errno
import fcntl
import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
# pylint: disable=wrong-import-position
from deaths import let_daemon_die  # noqa: E402
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402

KINDS = ("ext4", "xfs", "btrfs")
BLOCK = 4096
MIB = 1 << 20
FLAGS = "STR_ALL | STR_EXTENTS"
FIEMAP = 0xC020660B
FIBMAP = 1
# What filefrag calls some of the flags.
FILEFRAG_WORDS = {"unknown_loc": "unknown", "encrypted": "encrypted",
                  "not_aligned": "not-aligned"}
LEFT_OUT = {"last", "eof", "merged"}  # of the list, not of the extent


def parts(text):
    """[(logical, length, physical, {flags})] of the text of a trace."""
    found = []
    for word in text.split():
        match = re.fullmatch(r"(\d+)\+(\d+)@(\d+)(?::(.*))?", word)
        expect(match, f"not an extent: {word!r} in {text!r}")
        flags = set(filter(None, (match[4] or "").split(",")))
        found.append((int(match[1]), int(match[2]), int(match[3]),
                      flags - LEFT_OUT))
    return found


def joined(extents):
    """Neighbours that are one: a trace cuts at the parts that were written."""
    made = []
    for logical, length, physical, flags in sorted(extents, key=lambda e: e[0]):
        if made:
            before = made[-1]
            if (before[0] + before[1] == logical and before[3] == flags and
                    before[2] + before[1] == physical):
                made[-1] = (before[0], before[1] + length, before[2], flags)
                continue
        made.append((logical, length, physical, flags))
    return made


def within(extents, ranges):
    """Of extents what lies in the pages of these ranges: a file system may
    reserve more than was written."""
    found = []
    for logical, length, physical, flags in extents:
        for begin, end in ranges:
            first = max(logical, begin // BLOCK * BLOCK)
            last = min(logical + length, -(-end // BLOCK) * BLOCK)
            if first < last:
                found.append((first, last - first, physical + first - logical,
                              flags))
    return found


def filefrag(path, sync=False):
    """The same of a file, as filefrag(8) says it."""
    if shutil.which("filefrag") is None:
        raise Skip("filefrag (e2fsprogs) is not installed")
    said = subprocess.run(["filefrag", "-v", "-e", "-b1",
                           *(["-s"] if sync else []), path],
                          capture_output=True, text=True, check=True).stdout
    found = []
    for line in said.splitlines():
        match = re.match(r"\s*\d+:\s*(\d+)\.\.\s*(\d+):\s*(\d+)\.\.\s*\d+:"
                         r"\s*(\d+):(.*)", line)
        if not match:
            continue
        rest = match[5].split(":")[-1].strip()
        flags = {FILEFRAG_WORDS.get(w, w) for w in rest.split(",") if w}
        found.append((int(match[1]), int(match[4]), int(match[3]),
                      flags - LEFT_OUT))
    return found


def debugfs_blocks(device, path):
    """{logical block: physical block} of an ext4, as debugfs(8) says it."""
    if shutil.which("debugfs") is None:
        raise Skip("debugfs (e2fsprogs) is not installed")
    said = subprocess.run(["debugfs", "-R", f"dump_extents -l {path}", device],
                          capture_output=True, text=True, check=True).stdout
    blocks = {}
    for line in said.splitlines():
        match = re.match(r"\s*\d+/\s*\d+\s+\d+/\s*\d+\s+(\d+)\s*-\s*(\d+)\s+"
                         r"(\d+)\s*-\s*(\d+)\s+\d+", line)
        if match:
            first, last, start = int(match[1]), int(match[2]), int(match[3])
            for i in range(last - first + 1):
                blocks[first + i] = start + i
    return blocks


def of_paths(events, op, word):
    """{path: [events]} of those that say so of their extents."""
    found = {}
    for event in events:
        if event["op"] == op and word in event.get("extents_of", "").split(","):
            found.setdefault(event["path"], []).append(event)
    return found


def device_of(path):
    number = os.stat(path).st_dev
    return number


class Extents:
    def __init__(self, suite):
        self.suite = suite

    def store(self, kind, **more):
        why = self.suite.no_file_system(kind)
        if why:
            raise Skip(why)
        return self.suite.loop("store-" + kind, kind, 400 << 20, **more)

    def mount(self, source, visibility="exact", transport=None, filter_text="",
              flags=FLAGS, options=()):
        suite = self.suite
        trace = suite.path("trace")
        if os.path.exists(trace):
            os.remove(trace)
        point = suite.folder("mnt")
        mount = suite.mount(source, point,
                            (filter_text, flags, f'file = "{trace}"'),
                            visibility=visibility, transport=transport,
                            options=options)
        return mount, point, trace

    # --- what was written

    def written(self, kind, visibility, transport):
        """Whole files, holes, pieces, appended, preallocated and mapped ones:
        what was synced lies where filefrag says."""
        with self.store(kind) as source:
            mount, point, trace = self.mount(source, visibility, transport)
            work = {}

            def name(what, *ranges):
                work[what] = ranges
                return os.path.join(point, what)

            with open(name("whole", (0, 3 * MIB + 5)), "wb") as f:
                f.write(os.urandom(3 * MIB + 5))
                f.flush()
                os.fsync(f.fileno())
            places = [i * 16 * BLOCK + 100 for i in range(6)]
            with open(name("holes", *((at, at + 2 * BLOCK) for at in places)),
                      "wb") as f:
                for at in places:
                    os.pwrite(f.fileno(), os.urandom(2 * BLOCK), at)
                os.fdatasync(f.fileno())
            with open(name("appended", (0, 150000)), "ab") as f:
                for i in range(5):
                    f.write(os.urandom(30000))
                    f.flush()
                os.fsync(f.fileno())
            with open(name("reserved", (0, MIB)), "wb") as f:
                os.posix_fallocate(f.fileno(), 0, MIB)
                os.pwrite(f.fileno(), os.urandom(BLOCK * 4), BLOCK * 32)
                os.fsync(f.fileno())
            with open(name("mapped", (8 * BLOCK, 24 * BLOCK)), "w+b") as f:
                f.truncate(64 * BLOCK)
                with mmap.mmap(f.fileno(), 64 * BLOCK) as m:
                    m[8 * BLOCK:24 * BLOCK] = os.urandom(16 * BLOCK)
                    m.flush()
                os.fsync(f.fileno())
            below = {what: within(filefrag(os.path.join(source, what)), ranges)
                     for what, ranges in work.items()}
            device = device_of(os.path.join(source, "whole"))
            mount.unmount()
            events = self.suite.read(trace)
            synced = of_paths(events, "fsync", "written")
            for what, expected in below.items():
                got = synced.get("/" + what)
                expect(got, f"{what}: no fsync says where it lies: "
                       f"{[e for e in events if e.get('path') == '/' + what]}")
                expect_equal(len(got), 1, what)
                expect_equal(got[0]["extents_dev"], device, what)
                expect("extents_left_out" not in got[0], what)
                expect("extents_errno" not in got[0], str(got[0]))
                expect_equal(joined(parts(got[0].get("extents", ""))),
                             joined(expected), f"{what} on {kind}")
            if kind == "ext4":
                expect(any("unwritten" in e[3] for e in below["reserved"]),
                       "the file system reserved nothing")

    def next_time(self, suite, visibility, transport):
        """Only what was written since the fsync before; and nothing by who
        wrote nothing."""
        del suite
        with self.store("ext4") as source:
            mount, point, trace = self.mount(source, visibility, transport)
            path = os.path.join(point, "f")
            with open(path, "wb", buffering=0) as f:
                f.write(os.urandom(64 * BLOCK))
                os.fsync(f.fileno())
                os.pwrite(f.fileno(), b"x" * 10, 20 * BLOCK)
                os.pwrite(f.fileno(), b"x" * BLOCK, 40 * BLOCK + 1)
                os.fsync(f.fileno())
                os.fsync(f.fileno())
            below = filefrag(os.path.join(source, "f"))
            mount.unmount()
            events = [e for e in self.suite.read(trace) if e["op"] == "fsync"]
            expect_equal(len(events), 3, "fsyncs")
            second = parts(events[1]["extents"])
            expect_equal([(e[0], e[1]) for e in second],
                         [(20 * BLOCK, BLOCK), (40 * BLOCK, 2 * BLOCK)],
                         "the parts that were written")
            start = below[0][2]
            for logical, _, physical, _ in second:
                if len(below) == 1:
                    expect_equal(physical, start + logical, "where")
            expect("extents_of" not in events[2], "nothing was written")

    def closed(self, suite, visibility, transport):
        """A close without fsync: what is not allocated yet is said to be so, and
        nothing was allocated for the answer."""
        del suite
        with self.store("ext4") as source:
            mount, point, trace = self.mount(source, visibility, transport)
            with open(os.path.join(point, "f"), "wb") as f:
                f.write(os.urandom(16 * BLOCK))
            # The release comes after close(2) has returned.
            os.stat(os.path.join(point, "f"))
            self.suite.command("tracefs-ctl", point, "flush")
            mount.unmount()
            releases = of_paths(self.suite.read(trace), "release", "written")
            got = parts(releases["/f"][0]["extents"])
            expect_equal([(e[0], e[1]) for e in got], [(0, 16 * BLOCK)], "parts")
            expect("delalloc" in got[0][3], str(got))

    def by_debugfs(self):
        """ext4's own tool, which reads the device, says the same."""
        with self.store("ext4") as source:
            mount, point, trace = self.mount(source)
            with open(os.path.join(point, "f"), "wb") as f:
                for i in range(8):
                    os.pwrite(f.fileno(), os.urandom(3 * BLOCK), i * 9 * BLOCK)
                os.fsync(f.fileno())
            mount.unmount()
            subprocess.run(["sync", "-f", source], check=True)
            block = os.statvfs(source).f_bsize
            blocks = debugfs_blocks(self.suite.path("store-ext4.image"), "/f")
            got = {}
            [event] = of_paths(self.suite.read(trace), "fsync", "written")["/f"]
            for logical, length, physical, _ in parts(event["extents"]):
                for i in range(length // block):
                    got[logical // block + i] = physical // block + i
            expect_equal(got, blocks, "blocks")

    def many(self):
        """More parts than are kept: one over all of them, and that is said; more
        extents than are kept: the rest is counted."""
        with self.store("ext4") as source:
            mount, point, trace = self.mount(source)
            with open(os.path.join(point, "f"), "wb") as f:
                for i in range(200):
                    os.pwrite(f.fileno(), b"x" * BLOCK, i * 3 * BLOCK)
                os.fsync(f.fileno())
            below = filefrag(os.path.join(source, "f"))
            mount.unmount()
            [event] = of_paths(self.suite.read(trace), "fsync", "written")["/f"]
            expect("widened" in event["extents_of"].split(","), str(event))
            got = parts(event["extents"])
            expect_equal(len(got), 64, "extents")
            expect_equal(got, below[:64], "the first ones")
            end = got[-1][0] + got[-1][1]
            expect_equal(event["extents_left_out"],
                         below[-1][0] + below[-1][1] - end, "left out")

    # --- kinds of extents

    def on_btrfs(self):
        """Inline, compressed."""
        with self.store("btrfs", mount_options="compress-force=zstd") as source:
            mount, point, trace = self.mount(source)
            with open(os.path.join(point, "inline"), "wb") as f:
                f.write(b"few")
                f.flush()
                os.fsync(f.fileno())
            with open(os.path.join(point, "small"), "wb") as f:
                f.write(b"abcdefgh" * 40000)
                f.flush()
                os.fsync(f.fileno())
            below = {n: filefrag(os.path.join(source, n))
                     for n in ("inline", "small")}
            mount.unmount()
            events = of_paths(self.suite.read(trace), "fsync", "written")
            [inline] = events["/inline"]
            [got] = parts(inline["extents"])
            expect("inline" in got[3], str(got))
            [small] = events["/small"]
            got = parts(small["extents"])
            expect(all("encoded" in e[3] for e in got), str(got))
            expect_equal(got, below["small"], "compressed")
            files = self.ask(trace)[0]
            by_path = {r["path"]: r for r in files}
            expect_equal(by_path["/inline"]["inline"], 1.0, "share")
            expect_equal(by_path["/small"]["compressed"], 1.0, "share")

    def shared(self, kind):
        """What a clone shares is said to be so."""
        with self.store(kind) as source:
            mount, point, trace = self.mount(source)
            with open(os.path.join(point, "a"), "wb") as f:
                f.write(os.urandom(MIB))
                f.flush()
                os.fsync(f.fileno())
            with open(os.path.join(point, "a"), "rb") as a, \
                    open(os.path.join(point, "b"), "wb") as b:
                left = MIB
                while left:
                    left -= os.copy_file_range(a.fileno(), b.fileno(), left)
                os.fsync(b.fileno())
            below = filefrag(os.path.join(source, "b"))
            mount.unmount()
            [event] = of_paths(self.suite.read(trace), "fsync", "written")["/b"]
            got = joined(parts(event["extents"]))
            expect_equal(got, joined(below), "b")
            expect(all("shared" in e[3] for e in got), str(got))
            by_path = {r["path"]: r for r in self.ask(trace)[0]}
            expect_equal(by_path["/b"]["shared"], 1.0, "share")

    # --- reads

    def fetched(self, suite, visibility, transport):
        """A read says where it was fetched from if it was not in memory, and
        nothing if it was."""
        del suite
        with self.store("ext4") as source:
            for name in ("cold", "warm"):
                with open(os.path.join(source, name), "wb") as f:
                    f.write(os.urandom(8 * MIB))
                    f.flush()
                    os.fsync(f.fileno())
            self.drop(os.path.join(source, "cold"))
            with open(os.path.join(source, "warm"), "rb") as f:
                f.read()
            mount, point, trace = self.mount(source, visibility, transport)
            for name in ("cold", "warm"):
                with open(os.path.join(point, name), "rb", buffering=0) as f:
                    # Backwards, or the kernel would read ahead.
                    for i in reversed(range(8)):
                        os.posix_fadvise(f.fileno(), 0, 0,
                                         os.POSIX_FADV_RANDOM)
                        os.pread(f.fileno(), 2 * BLOCK, i * MIB)
            below = filefrag(os.path.join(source, "cold"))
            mount.unmount()
            events = self.suite.read(trace)
            cold = of_paths(events, "read", "read").get("/cold", [])
            expect(cold, "no read says that it had to be fetched")
            unknown = [e for e in events
                       if "cold-unknown" in e.get("extents_of", "")]
            if unknown:
                raise Skip("this kernel has no cachestat(2)")
            expect(not of_paths(events, "read", "read").get("/warm"),
                   "one that was in memory is said to have been fetched")
            seen = set()
            for event in cold:
                for logical, length, physical, _ in parts(event["extents"]):
                    seen.add(logical // MIB)
                    expect(any(b[0] <= logical and
                               logical + length <= b[0] + b[1] and
                               b[2] + logical - b[0] == physical
                               for b in below),
                           f"{logical}+{length}@{physical} is not in {below}")
            expect_equal(seen, set(range(8)), "the parts that were read")

    def drop(self, path):
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    # --- what cannot be known

    def passed_through(self):
        """Where the kernel writes by itself, it is the whole file."""
        with self.store("ext4") as source:
            mount, point, trace = self.mount(
                source, "fast", filter_text="op IN { fsync release }")
            with open(os.path.join(point, "f"), "wb", buffering=0) as f:
                f.write(os.urandom(16 * BLOCK))
                os.fsync(f.fileno())
                os.pwrite(f.fileno(), b"x", 3 * BLOCK)
                os.fsync(f.fileno())
            below = filefrag(os.path.join(source, "f"))
            mount.unmount()
            events = [e for e in self.suite.read(trace) if e["op"] == "fsync"]
            expect_equal(len(events), 2, "fsyncs")
            if any(e["extents_of"] == "written" for e in events):
                # Without passthrough they are seen, though not recorded.
                expect_equal([(e[0], e[1]) for e in
                              parts(events[1]["extents"])],
                             [(3 * BLOCK, BLOCK)], "the second one")
                return "no passthrough here"
            for event in events:
                expect_equal(event["extents_of"], "file", str(event))
                expect_equal(joined(parts(event["extents"])), joined(below),
                             "the whole file")
            return None

    def in_memory(self):
        """A file system that lies nowhere says so."""
        with self.suite.tmpfs("memory", size="16m") as source:
            os.chmod(source, 0o755)
            mount, point, trace = self.mount(source)
            with open(os.path.join(point, "f"), "wb") as f:
                f.write(b"x" * 100)
                f.flush()
                os.fsync(f.fileno())
            mount.unmount()
            [event] = of_paths(self.suite.read(trace), "fsync", "written")["/f"]
            expect_equal(event["extents_errno"], "EOPNOTSUPP", str(event))
            expect("extents" not in event, str(event))
            missed = self.ask(trace)[2]
            expect(any("EOPNOTSUPP" in row["what"] for row in missed),
                   str(missed))

    def not_asked(self):
        """Without the flag there is nothing of it."""
        with self.store("ext4") as source:
            mount, point, trace = self.mount(source, flags="STR_ALL")
            with open(os.path.join(point, "f"), "wb") as f:
                f.write(b"x" * 100)
                f.flush()
                os.fsync(f.fileno())
            mount.unmount()
            for event in self.suite.read(trace):
                expect(not [k for k in event if k.startswith("extents")],
                       str(event))
            said = json.loads(self.suite.command(
                "tracefs-report", "extents", "--format", "json", trace))
            expect("STR_EXTENTS" in json.dumps(said), str(said))

    def through_the_mount(self):
        """The kernel asks no FUSE daemon for extents."""
        with self.store("ext4") as source:
            mount, point, _ = self.mount(source)
            path = os.path.join(point, "f")
            with open(path, "wb") as f:
                f.write(b"x" * BLOCK)
            with open(path, "rb") as f:
                try:
                    fcntl.ioctl(f, FIEMAP, bytearray(struct.pack(
                        "=QQLLLL", 0, BLOCK, 0, 0, 0, 0)))
                    expect(False, "FIEMAP was answered")
                except OSError as error:
                    expect_equal(error.errno, errno.EOPNOTSUPP, "FIEMAP")
                # 0: no block, whatever is in the file.
                block = bytearray(struct.pack("=L", 0))
                fcntl.ioctl(f, FIBMAP, block)
                expect_equal(struct.unpack("=L", block)[0], 0, "FIBMAP")
            mount.unmount()

    # --- death

    def survives(self):
        """What a dead daemon had noted is not guessed: it is the whole file."""
        with self.store("ext4") as source:
            mount, point, trace = self.mount(
                source, options=("--survive", "yes"))
            with open(os.path.join(point, "f"), "wb", buffering=0) as f:
                f.write(os.urandom(8 * BLOCK))
                let_daemon_die(mount, point)
                os.pwrite(f.fileno(), b"x", 5 * BLOCK)
                os.fsync(f.fileno())
                os.pwrite(f.fileno(), b"x", 6 * BLOCK)
                os.fsync(f.fileno())
            below = filefrag(os.path.join(source, "f"))
            mount.unmount()
            events = [e for e in self.suite.read(trace) if e["op"] == "fsync"]
            expect_equal([e["extents_of"] for e in events],
                         ["file", "written"], "of what")
            expect_equal(joined(parts(events[0]["extents"])), joined(below),
                         "the whole file")

    # --- the question

    def ask(self, *traces):
        text = self.suite.command("tracefs-report", "extents", "--format",
                                  "json", "--top", "all", *traces)
        return [t["rows"] for t in json.loads(text)["tables"]]

    def question(self):
        """What tracefs-report sums up, from JSON Lines and a second time."""
        with self.store("ext4") as source:
            for name in ("x", "y"):
                with open(os.path.join(source, name), "wb") as f:
                    f.write(os.urandom(4 * MIB))
                    f.flush()
                    os.fsync(f.fileno())
                self.drop(os.path.join(source, name))
            mount, point, trace = self.mount(source)
            with open(os.path.join(point, "x"), "rb", buffering=0) as x, \
                    open(os.path.join(point, "y"), "rb", buffering=0) as y, \
                    open(os.path.join(point, "z"), "wb", buffering=0) as z:
                for i in (0, 7, 3, 3, 12, 1):
                    for f in (x, y):
                        os.posix_fadvise(f.fileno(), 0, 0,
                                         os.POSIX_FADV_RANDOM)
                        os.pread(f.fileno(), 8 * BLOCK, i * 256 * 1024)
                    os.pwrite(z.fileno(), os.urandom(BLOCK), i * 5 * BLOCK)
                    os.fsync(z.fileno())
            mount.unmount()
            check_report(self.suite, trace, self.ask(trace))


    def requests(self):
        """An fsync's time by requests of the block layer, which perf recorded,
        and a second time from its text."""
        perf = shutil.which("perf")
        if perf is None:
            raise Skip("perf is not installed")
        with self.store("ext4") as source:
            mount, point, trace = self.mount(source)
            data, text = self.suite.path("perf.data"), self.suite.path("requests")
            work = ("for i in 1 2 3; do dd if=/dev/urandom bs=64k count=8 "
                    f"of={point}/f$i conv=fsync 2>/dev/null; done")
            done = subprocess.run(
                [perf, "record", "-q", "-k", "CLOCK_MONOTONIC", "-a",
                 "-e", "block:block_rq_issue", "-e", "block:block_rq_complete",
                 "-o", data, "--", "sh", "-c", work],
                capture_output=True, text=True, check=False)
            mount.unmount()
            if not os.path.exists(data):
                raise Skip(f"perf records no requests here: {done.stderr}")
            with open(text, "w", encoding="utf-8") as out:
                subprocess.run([perf, "script", "--ns", "-i", data], stdout=out,
                               stderr=subprocess.DEVNULL, check=True)
            said = json.loads(self.suite.command(
                "tracefs-report", "disk", text, "--format", "json", "--top",
                "all", trace))["tables"][0]["rows"]
            synced = of_paths(self.suite.read(trace), "fsync", "written")
            rows = {row["path"]: row for row in said}
            expect_equal(set(rows), {"/f1", "/f2", "/f3"}, "operations")
            for path, row in rows.items():
                check_requests(row, synced[path][0], requests_of(text))
            # Not a recording, or of another time.
            self.suite.command("tracefs-report", "disk", trace, trace, status=1)


def requests_of(path):
    """[(device, first byte, bytes, ns, ns)] of what perf script printed."""
    begun, found = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            match = re.search(r"(\d+)\.(\d{9}): +block:block_rq_(\w+): (\d+),(\d+) "
                              r"\w+ .*?\(\) (\d+) \+ (\d+)", line)
            if not match:
                continue
            now = int(match[1]) * 10**9 + int(match[2])
            device = os.makedev(int(match[4]), int(match[5]))
            sector, sectors = int(match[6]), int(match[7])
            if match[3] == "complete" and sectors == 0 and sector < 1 << 60:
                continue  # the second end of a write with a flush
            key = (device, sector if sectors else None)
            if match[3] == "issue":
                begun.setdefault(key, []).append(now)
            elif begun.get(key):
                found.append((device, sector * 512 if sectors else 0,
                              sectors * 512, begun[key].pop(0), now))
    return found


def check_requests(row, event, requests):
    clock = row["time_ns"] - event["ts"]
    expect_equal(clock, 0, "the operation")
    mine = [(begin, size) for _, size, begin, flags in parts(event["extents"])
            if not flags & {"delalloc", "unknown", "inline"}]
    data = [r for r in requests if r[0] == event["extents_dev"] and
            any(r[1] < b + s and b < r[1] + r[2] for b, s in mine)]
    expect(data, "perf saw no request of the file")
    expect(row["requests"] >= 1, str(row))
    # What is under way is at most as long as all requests together.
    expect(0 < row["data_ns"] <= sum(r[4] - r[3] for r in data), str(row))
    expect_equal(row["data_ns"] + row["elsewhere_ns"] + row["rest_ns"],
                 row["latency_ns"], "the parts of an fsync")


def check_report(suite, trace, tables):
    """Seek distances and layouts from the lines of a trace."""
    files, steps, _ = tables
    ends, distances, accesses, layouts = {}, {}, {}, {}
    for event in suite.read(trace):
        of = event.get("extents_of", "").split(",")
        device = event.get("extents_dev")
        for logical, length, physical, flags in parts(event.get("extents", "")):
            layout = layouts.setdefault(event["path"], {})
            for i in range(length // BLOCK):
                layout[logical // BLOCK + i] = (
                    None if flags & {"delalloc", "unknown", "inline"}
                    else physical // BLOCK + i)
            if "file" in of or flags & {"delalloc", "unknown", "inline",
                                        "encoded"}:
                continue
            accesses[device] = accesses.get(device, 0) + 1
            if device in ends:
                distances.setdefault(device, []).append(
                    abs(physical - ends[device]))
            ends[device] = physical + length
    expect(distances, "the workload has no steps")
    expect_equal(len(steps), len(accesses), "devices")
    for row in steps:
        major, minor = map(int, row["device"].split(":"))
        device = os.makedev(major, minor)
        seen = sorted(distances[device])
        expect_equal(row["accesses"], accesses[device], "accesses")
        expect(abs(row["sequential"] - seen.count(0) / len(seen)) < 1e-9,
               f"sequential: {row} {seen}")
        expect_equal(row["distance_max"], seen[-1], "max")
        for share, column in ((0.5, "distance_p50"), (0.99, "distance_p99")):
            rank = max(1, int(share * len(seen) + 0.999999))
            want = seen[min(rank, len(seen)) - 1]
            # A bucket of the histogram is that wide.
            expect(abs(row[column] - want) <= want * 0.008 + 1,
                   f"{column}: {row[column]}, not {want}, of {seen}")
    by_path = {row["path"]: row for row in files}
    expect_equal(set(by_path), set(layouts), "files")
    for path, layout in layouts.items():
        expect_equal(by_path[path]["bytes"], len(layout) * BLOCK, path)
        blocks = [layout[b] for b in sorted(layout) if layout[b] is not None]
        jumps = sum(b != a + 1 for a, b in zip(blocks, blocks[1:]))
        want = jumps / max(len(blocks) - 1, 1)
        expect(abs(by_path[path]["fragmentation"] - want) < 1e-9,
               f"{path}: {by_path[path]}, not {want}")


def main():
    suite = Suite("extents", __doc__)
    extents = Extents(suite)
    for kind in KINDS:
        for transport in ("dev", "uring"):
            for visibility in ("exact", "auto", "fast"):
                suite.run(f"written to {kind}, {visibility} over {transport}",
                          extents.written, kind, visibility, transport)
    suite.run_everywhere({"what was written since": extents.next_time,
                          "closed": extents.closed,
                          "fetched": extents.fetched})
    suite.run("debugfs says the same", extents.by_debugfs)
    suite.run("many parts", extents.many)
    suite.run("btrfs has other kinds", extents.on_btrfs)
    for kind in ("xfs", "btrfs"):
        suite.run(f"shared on {kind}", extents.shared, kind)
    suite.run("passed through", extents.passed_through)
    suite.run("nowhere", extents.in_memory)
    suite.run("not asked", extents.not_asked)
    suite.run("FIEMAP through the mount", extents.through_the_mount)
    suite.run("a daemon dies", extents.survives)
    suite.run("the question", extents.question)
    suite.run("requests of the block layer", extents.requests)
    suite.finish()


if __name__ == "__main__":
    main()
