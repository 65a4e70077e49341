#!/usr/bin/env python3
"""Output drivers and chains of filters on a real mount: what is left of a trace
when the daemon is killed, rotation, devices, FIFOs, flight recorders, full
disks, and configs that make no sense."""

import collections
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from tracefs_harness import (HANG_S, Failure, Skip, Suite,  # noqa: E402
                             decode_event, expect, expect_equal, verdicts,
                             wait_until)

# The daemon's flush interval, and what a busy machine may add to it.
FLUSH_S = 0.25
SLACK_S = 0.75


class Place:
    """A source, a mount point and a folder for outputs of one case."""

    def __init__(self, suite, name):
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mnt")
        self.out = suite.folder(name, "out")


def make_files(folder, count, prefix="f"):
    for i in range(count):
        with open(os.path.join(folder, f"{prefix}{i}"), "w",
                  encoding="ascii") as out:
            out.write("x")


def created(events):
    return [os.path.basename(e["path"]) for e in events
            if e["op"] == "create" and "errno" not in e]


def snapshot_counts(text):
    """(operations, overwritten) of what tracefs-dump says of a snapshot."""
    words = text.split("): ", 1)[1].split()
    return int(words[0]), int(words[3])


# --- A trace that is cut

def keys(suite):
    folder = suite.folder("keys")
    secret = os.path.join(folder, "secret")
    if not os.path.exists(secret):
        with open(secret, "w", encoding="ascii") as out:
            out.write("tracefs-secret-1 " + "5a" * 32 + "\n")
        os.chmod(secret, 0o600)
    return secret


def chains(secret):
    filters = {"checksum": f'checksum key = "file:{secret}"',
               "compress": "compress alg = zstd",
               "encrypt": f'encrypt key = "file:{secret}"'}
    yield ""
    for names in itertools.permutations(filters):
        yield "".join(filters[n] + "; " for n in names)
    yield "async; " + "".join(filters[n] + "; " for n in filters)
    yield ("async; throttle bytes = 1G/s; " + filters["encrypt"] + "; "
           + filters["compress"] + "; throttle ops = 1G/s; "
           + filters["checksum"] + "; ")


def killed_loses_an_interval(suite):
    """Each chain: what was done longer ago than the flush interval before the
    SIGKILL is in the trace. All chains trace the same mount."""
    place = Place(suite, "killed")
    secret = keys(suite)
    all_chains = list(chains(secret))
    for round_number in range(2):
        traces = [os.path.join(place.out, f"t{round_number}-{i}")
                  for i in range(len(all_chains))]
        mount = suite.mount(place.source, place.point,
                            *[("op = create", "STR_ALL",
                               f'{chain} file = "{trace}"')
                              for chain, trace in zip(all_chains, traces)])
        done = {}
        end = time.monotonic() + 2.0 + 0.13 * round_number
        number = 0
        while time.monotonic() < end:
            name = f"r{round_number}-{number}"
            with open(os.path.join(place.point, name), "wb"):
                pass
            done[name] = time.monotonic()
            number += 1
        killed = time.monotonic()
        mount.kill()
        wait_until(lambda m=mount: not m.is_mounted(), "the mount to go")
        must = {n for n, t in done.items()
                if t < killed - FLUSH_S - SLACK_S}
        expect(len(must) > 10, f"only {len(must)} operations to look for")
        for chain, trace in zip(all_chains, traces):
            run = subprocess.run(
                [os.path.join(suite.bin, "tracefs-dump"), "--key", secret,
                 "--format", "jsonl", trace],
                capture_output=True, text=True, check=False)
            expect("without a FINAL" in run.stderr or "cut" in run.stderr,
                   f"{chain}: {run.stderr}")
            missing = [n for n in must if f'/{n}"' not in run.stdout]
            expect(not missing, f"{chain}: {len(missing)} of {len(must)} "
                   f"operations are missing: {missing[:5]}")
    return f"{len(all_chains)} chains, twice"


# --- Files

def rotation(suite):
    place = Place(suite, "rotation")
    # In the traced tree itself, mounted over: nothing of the trace is traced.
    trace = os.path.join(place.source, "t")
    mount = suite.mount(
        place.source, place.source,
        ("", "STR_ALL", f'file = "{trace}" buf = 4K rotate_size = 64K'))
    # By somebody else, so that workers have his ids when a file is full.
    os.mkdir(os.path.join(place.source, "d"))
    os.chmod(os.path.join(place.source, "d"), 0o777)
    subprocess.run(
        [sys.executable, "-c",
         "import os\n"
         "os.setgid(65534); os.setuid(65534); os.umask(0)\n"
         "for i in range(400):\n"
         "    open(f'd/f{i}', 'w').close()\n"],
        cwd=place.source, check=True)
    mount.unmount()
    parts = sorted(n for n in os.listdir(place.source) if n.startswith("t"))
    expect(len(parts) > 3, f"only {parts}")
    expect_equal(parts[1], "t.000001", "name of the second file")
    for name in parts:
        status = os.stat(os.path.join(place.source, name))
        expect_equal((status.st_uid, status.st_mode & 0o7777), (0, 0o600),
                     f"owner and mode of {name}")
    paths = [os.path.join(place.source, n) for n in parts]
    events = suite.read(*paths)
    expect_equal(len(created(events)), 400, "files that were created")
    of_trace = [e for e in events
                if os.path.basename(e.get("path", "")) in parts]
    expect(not of_trace, f"the trace traced itself: {of_trace[:3]}")
    # A folder holds one chain.
    chain = suite.folder("rotation", "chain")
    for path in paths:
        os.rename(path, os.path.join(chain, os.path.basename(path)))
    said = suite.command("tracefs-verify", "--accept-unsealed", chain)
    expect(not verdicts(said) & {"bad", "missing"}, said)
    expect_equal(len(suite.read(chain)), len(events), "read from the folder")
    # What a summary says to run next is about all parts, too.
    told = json.loads(suite.command("tracefs-report", "summary", "--format",
                                    "json", chain))["tables"][0]["rows"]
    expect(told, "nothing to run next")
    for row in told:
        done = subprocess.run(
            row["more"], shell=True, check=False, capture_output=True,
            env={**os.environ, "PATH": f"{suite.bin}:{os.environ['PATH']}"})
        expect_equal(done.returncode, 0, f"{row['more']}: {done.stderr}")
    os.remove(os.path.join(chain, parts[2]))
    said = suite.command("tracefs-verify", "--accept-unsealed", chain,
                         status=1)
    expect("part 2 of the trace" in said, said)
    return f"{len(parts)} files"


def a_finished_part_is_a_file_as_any_other(suite):
    """What is read of a part that no tracer writes any more is recorded with its
    data, and so is whatever gets its inode number later."""
    place = Place(suite, "finished")
    trace = os.path.join(place.out, "t")
    mount = suite.mount(
        place.source, place.point,
        ("op = open", "STR_ALL",
         f'file = "{trace}" buf = 4K rotate_count = 20'),
        ("op IN { open read }", "STR_ALL | STR_DATA",
         f'file = "{place.out}/all"'))
    make_files(place.source, 200)
    for i in range(200):
        with open(os.path.join(place.point, f"f{i}"), "rb"):
            pass
    suite.command("tracefs-ctl", place.point, "flush")
    parts = sorted(n for n in os.listdir(place.out) if n.startswith("t"))
    expect(len(parts) > 2, f"only {parts}")
    # In the traced tree by another name, met for the first time.
    for name in (parts[0], parts[1], parts[-1]):
        os.link(os.path.join(place.out, name),
                os.path.join(place.source, name))
        with open(os.path.join(place.point, name), "rb") as part:
            expect(part.read(8), f"nothing is in {name}")
    mount.unmount()
    events = [(os.path.basename(e["path"]), e)
              for e in suite.read(os.path.join(place.out, "all"))]
    met = {parts[0], parts[1], parts[-1]}
    expect(met <= {name for name, e in events if e["op"] == "open"},
           f"of {met} some went untraced")
    expect_equal({name for name, e in events
                  if e["op"] == "read" and e.get("data_left_out")},
                 {parts[-1]}, "whose data is left out")
    expect({parts[0], parts[1]} <=
           {name for name, e in events if "data" in e or "data_b64" in e},
           "the data of finished parts")


def same_operations(got, want, what):
    """In any order: what follows hands on after a second what is still open."""
    def lines(events):
        return collections.Counter(json.dumps(e, sort_keys=True)
                                   for e in events)
    more, less = lines(got) - lines(want), lines(want) - lines(got)
    expect(not more and not less,
           f"{what}: {len(got)} operations for {len(want)}, "
           f"{list(more)[:2]} for {list(less)[:2]}")


class Follower:
    """tracefs-dump --follow of some traces, and what it has listed so far."""

    def __init__(self, suite, name, *traces):
        self.path = suite.path(name)
        with open(self.path, "w", encoding="ascii") as out:
            self.process = subprocess.Popen(
                [os.path.join(suite.bin, "tracefs-dump"), "--follow",
                 "--format", "jsonl", *traces],
                stdout=out, stderr=subprocess.PIPE, text=True)
        suite.background(self.process)

    def events(self):
        with open(self.path, encoding="utf-8") as lines:
            return [decode_event(line) for line in lines.read().split("\n")
                    if line.endswith("}")]

    def shows(self, name):
        wait_until(lambda: name in created(self.events()),
                   f"{name} in {self.path}")

    def end(self, status):
        _, said = self.process.communicate(timeout=HANG_S)
        expect_equal(self.process.returncode, status, said)
        return said


def following_goes_on_in_later_parts(suite):
    """What is listed while a rotated trace grows is what its parts have."""
    place = Place(suite, "followed")
    trace = os.path.join(place.out, "t")
    tracer = ("", "STR_ALL", f'file = "{trace}" buf = 4K rotate_count = 60')

    def parts():
        return sorted(os.listdir(place.out))

    def work(prefix, mount):
        make_files(place.point, 200, prefix)
        suite.command("tracefs-ctl", mount.point, "flush")

    for killed in (False, True):
        mount = suite.mount(place.source, place.point, tracer)
        first = Follower(suite, "first", trace)
        work("a", mount)
        first.shows("a199")
        expect(len(parts()) > 3, f"only {parts()}")
        late = Follower(suite, "late", trace)
        folder = Follower(suite, "folder", place.out)
        begin = parts()[-1]
        last = Follower(suite, "last", os.path.join(place.out, begin))
        for follower in (late, folder):
            follower.shows("a199")
        # Several parts between two looks.
        first.process.send_signal(signal.SIGSTOP)
        work("b", mount)
        first.process.send_signal(signal.SIGCONT)
        first.shows("b199")
        if killed:
            mount.kill()
            wait_until(lambda m=mount: not m.is_mounted(), "the mount to go")
        else:
            mount.unmount()
        whole = suite.read(place.out, status=int(killed))
        expect(len(created(whole)) >= 400, "not all files in the parts")
        for follower in (first, late, folder):
            said = follower.end(status=int(killed))
            expect("goes on" not in said and "missing" not in said, said)
            same_operations(follower.events(), whole, follower.path)
        last.end(status=int(killed))
        named = [os.path.join(place.out, n) for n in parts() if n >= begin]
        some = last.events()
        expect("b199" in created(some), "the last part ended early")
        expect(len(some) < len(whole), "more than the last parts")
        same_operations(some, suite.read(*named, status=int(killed)),
                        "the last parts")
        for name in parts():
            os.remove(os.path.join(place.out, name))
        for name in os.listdir(place.source):
            os.remove(os.path.join(place.source, name))
    mount = suite.mount(place.source, place.point,
                        (*tracer[:2], tracer[2] + " keep = 2"))
    follower = Follower(suite, "kept", trace)
    # No more than stays.
    make_files(place.point, 5, "a")
    suite.command("tracefs-ctl", mount.point, "flush")
    follower.shows("a4")
    follower.process.send_signal(signal.SIGSTOP)
    work("b", mount)
    follower.process.send_signal(signal.SIGCONT)
    follower.shows("b199")
    mount.unmount()
    said = follower.end(status=1)
    expect("are missing" in said and "are not there" in said, said)
    names = created(follower.events())
    expect({f"a{i}" for i in range(5)} <= set(names), "what was there")
    expect("b0" not in names, "b0 was not lost")
    kept = suite.read(place.out)
    expect({e["ts"] for e in kept} <= {e["ts"] for e in follower.events()},
           "operations of the last parts")


def rotation_at_runtime(suite):
    """A tracer that is added to a sandboxed mount makes its files, too."""
    place = Place(suite, "added")
    mount = suite.mount(place.source, place.point,
                        os.path.join(place.out, "first"))
    config = suite.path("added.conf")
    with open(config, "w", encoding="ascii") as out:
        out.write('{ {} {} { file = "%s" buf = 4K rotate_count = 200 keep = 3 '
                  '} }\n{ {} {} { fifo = "%s" } }\n'
                  '{ {} {} { flight = "%s" size = 64K map = "%s" } }\n' %
                  tuple(os.path.join(place.out, n)
                        for n in ("t", "fifo", "flight", "map")))
    suite.command("tracefs-ctl", place.point, "add", config)
    make_files(place.point, 400)
    suite.command("tracefs-ctl", place.point, "flush")
    said = suite.command("tracefs-ctl", place.point, "snapshot", "4")
    expect_equal(said.strip(), os.path.join(place.out, "flight.000001"),
                 "the snapshot")
    said = suite.command("tracefs-ctl", place.point, "snapshot", "2",
                         status=2)
    expect("no flight recorder" in said, said)
    mount.unmount()
    parts = [n for n in os.listdir(place.out) if n.startswith("t")]
    expect_equal(len(parts), 3, f"files kept of {parts}")
    suite.read(*[os.path.join(place.out, n) for n in parts])
    suite.read(os.path.join(place.out, "flight.000001"))


def full_disk(suite):
    """A full disk costs events, which are counted, and no user's operation."""
    place = Place(suite, "full")
    with suite.tmpfs("full", "disk", size="512k") as disk:
        trace = os.path.join(disk, "t")
        mount = suite.mount(place.source, place.point, trace)
        for i in range(8):
            make_files(place.point, 500, f"f{i}-")
        subprocess.run(["umount", place.point], check=True)
        mount.wait()
        expect("No space left" in mount.messages(), mount.messages())
        dump = suite.dump(trace)
        expect("output_error" in dump.errors, dump.errors)
        expect("damaged" not in dump.errors, dump.errors)
        lost = int(dump.errors.split(" operations were not recorded")[0]
                   .split()[-1])
        expect(lost > 0, "nothing was lost")
    expect_equal(len(os.listdir(place.source)), 4000, "files made")
    return f"{lost} operations counted as lost"


# --- A full disk under sealed traces

# Small blocks, so that a disk of a few hundred KiB holds many.
BLOCK = 8 << 10
SEALED = {
    "hmac": 'checksum key = "file:{secret}"; file = "{trace}" buf = 8K',
    "forward": 'checksum seal = forward key = "file:{state}"; '
               'file = "{trace}" buf = 8K',
    "all": 'async; compress alg = zstd; encrypt key = "file:{secret}"; '
           'checksum seal = forward key = "file:{state}"; '
           'file = "{trace}" buf = 8K',
}


class SealedTraces:
    """Sealed traces of one mount on a small disk, and beside them one on a
    large disk that tells what there was to record."""

    def __init__(self, suite, name, disk):
        self.suite = suite
        self.place = Place(suite, name)
        self.disk = disk
        self.number = 0
        secret = keys(suite)
        self.keys = {}  # for tracefs-verify
        self.control = os.path.join(self.place.out, "control")
        self.traces = {}
        tracers = [("op = create", "STR_ALL", f'file = "{self.control}"')]
        for kind, chain in SEALED.items():
            self.traces[kind] = os.path.join(disk, kind)
            state = os.path.join(self.place.out, "state-" + kind)
            verify = os.path.join(self.place.out, "verify-" + kind)
            suite.command("tracefs-keygen", "seal", state, verify)
            self.keys[kind] = (["--key", secret] if kind == "hmac" else
                               ["--key", verify, "--key", secret])
            tracers.append(("op = create", "STR_ALL", chain.format(
                secret=secret, state=state, trace=self.traces[kind])))
        self.mount = suite.mount(self.place.source, self.place.point, *tracers)

    def work(self, count=100):
        """Makes files; every one must be there below."""
        make_files(self.place.point, count, f"w{self.number}-")
        self.number += 1
        expect_equal(len(os.listdir(self.place.source)),
                     len(os.listdir(self.place.point)), "files below")

    def lost(self):
        """What each sealed tracer says while mounted that it has lost."""
        self.suite.command("tracefs-ctl", self.place.point, "flush",
                           status=None)
        stats = json.loads(self.suite.command(
            "tracefs-ctl", self.place.point, "stats", "--format", "json"))
        return [sum(t["lost"].values()) for t in stats["tracers"][1:]]

    def fill(self, but=0):
        """Takes what room the disk has `but` some bytes, and works until all
        have lost something more."""
        before = self.lost()
        filler = os.path.join(self.disk, "filler")
        with open(filler, "ab", buffering=0) as out:
            for size in (1 << 16, 1 << 10, 1):
                with contextlib.suppress(OSError):
                    while True:
                        out.write(bytes(size))
            out.truncate(out.tell() - but)

        def all_lost():
            self.work()
            return all(a > b for a, b in zip(self.lost(), before))

        wait_until(all_lost, "a loss in every trace")

    def free(self):
        """Makes room, and works until every trace grows again."""
        os.remove(os.path.join(self.disk, "filler"))
        sizes = self.sizes()

        def all_grow():
            self.work()
            self.lost()  # flushes
            return all(now > size + 2 * BLOCK
                       for now, size in zip(self.sizes(), sizes))

        try:
            wait_until(all_grow, "every trace to go on")
        except Failure as failure:
            room = os.statvfs(self.disk)
            raise Failure(f"{failure}: from {sizes} to {self.sizes()}, lost "
                          f"{self.lost()}, {room.f_bavail * room.f_bsize} "
                          f"bytes free\n{self.mount.messages()}") from None

    def sizes(self):
        return [os.path.getsize(t) for t in self.traces.values()]

    def unmount(self):
        """Returns what was done."""
        subprocess.run(["umount", self.place.point], check=True)
        self.mount.wait()
        expect("No space left" in self.mount.messages(),
               self.mount.messages())
        recorded = created(self.suite.read(self.control))
        expect_equal(sorted(recorded), sorted(os.listdir(self.place.source)),
                     "what was done")
        return recorded

    def kill(self):
        """Returns what was done."""
        self.mount.kill()
        wait_until(lambda: not self.mount.is_mounted(), "the mount to go")
        return os.listdir(self.place.source)

    def expect_good(self, recorded, cut=False):
        """All that is in a trace is verified, and what is not was counted: all
        of it, or in a trace that was `cut` all but the end. Says what the
        traces have lost."""
        said = []
        for kind, trace in self.traces.items():
            verdict = self.suite.command("tracefs-verify", *self.keys[kind],
                                         trace, status=None)
            ranges = [line.split() for line in verdict.splitlines()]
            expect_equal({r[0] for r in ranges} - {"missing", "trace"}, {"ok"},
                         f"{kind}: {verdict}")
            run = subprocess.run(
                [os.path.join(self.suite.bin, "tracefs-dump"),
                 *self.keys[kind], "--format", "jsonl", trace],
                capture_output=True, text=True, check=False)
            expect_equal(run.returncode, 1, f"{kind}: {run.stderr}")
            expect("damaged" not in run.stderr, f"{kind}: {run.stderr}")
            kept = created([decode_event(line)
                            for line in run.stdout.splitlines()])
            expect_equal(len(set(kept)), len(kept), f"{kind}: kept twice")
            expect(set(kept) <= set(recorded), f"{kind}: kept, never done")
            lost = int(run.stderr.split(" operations were not recorded")[0]
                       .split()[-1])
            expect_equal("without a FINAL" in run.stderr, cut,
                         f"{kind}: {run.stderr}")
            if cut:
                expect(ranges[-2][0] == "missing", f"{kind}: {verdict}")
                expect(len(kept) + lost <= len(recorded),
                       f"{kind}: {len(kept)} kept and {lost} counted as lost "
                       f"of {len(recorded)}")
            else:
                expect_equal(len(kept) + lost, len(recorded),
                             f"{kind}: kept and counted as lost")
            said.append(f"{kind} {lost}")
        return "lost of {}: {}".format(len(recorded), ", ".join(said))


def full_disk_sealed(suite):
    """Full, room again, full until the end: all that a sealed trace has is
    good, and what it has not is counted. There is room for the end."""
    with suite.tmpfs("sealed", "disk", size="700k") as disk:
        sealed = SealedTraces(suite, "sealed", disk)
        sealed.work()
        sealed.fill()
        sealed.free()
        sealed.fill()
        return sealed.expect_good(sealed.unmount())


def full_disk_mid_block(suite):
    """A file system that cannot keep room for a file: a disk that is full cuts
    a block in its middle. The part that was written is taken back."""
    if not shutil.which("mkfs.ext2"):
        return Skip("no mkfs.ext2")
    image = suite.path("ext2")
    with open(image, "wb") as out:
        # Far more than the traces come to: a filler makes it full, not they.
        out.truncate(8 << 20)
    subprocess.run(["mkfs.ext2", "-q", "-b", "1024", "-m", "0", image],
                   check=True)
    disk = suite.folder("cut", "disk")
    if subprocess.run(["mount", "-o", "loop", image, disk], check=False,
                      capture_output=True).returncode != 0:
        return Skip("no ext2 on a loop device")
    try:
        sealed = SealedTraces(suite, "cut", disk)
        sealed.work()
        for room in (1, 3, 5, 7):
            sealed.fill(room << 10)
            sealed.free()
        said = sealed.expect_good(sealed.unmount())
        # Killed while it is full: good up to the last whole block.
        for trace in sealed.traces.values():
            os.remove(trace)
        sealed = SealedTraces(suite, "cut again", disk)
        sealed.work()
        sealed.fill(5 << 10)
        sealed.free()
        sealed.fill(3 << 10)
        sealed.expect_good(sealed.kill(), cut=True)
    finally:
        suite.stop_mounts()
        subprocess.run(["umount", "-l", disk], check=True)
    return said



def device(suite):
    place = Place(suite, "device")
    image = os.path.join(place.out, "image")
    with open(image, "wb") as out:
        out.truncate(4 << 20)
    loop = subprocess.run(["losetup", "-f", "--show", image],
                          capture_output=True, text=True, check=False)
    if loop.returncode != 0:
        return Skip("no loop device")
    path = loop.stdout.strip()
    try:
        mount = suite.mount(place.source, place.point,
                            ("", "STR_ALL", f'compress; device = "{path}"'))
        make_files(place.point, 50)
        mount.unmount()
        expect_equal(len(created(suite.read(path))), 50, "read back")
    finally:
        subprocess.run(["losetup", "-d", path], check=True)
    return None


# --- FIFO

def fifo(suite):
    place = Place(suite, "fifo")
    path = os.path.join(place.out, "fifo")
    # Waits for a reader at most half a second, once.
    mount = suite.mount(
        place.source, place.point,
        ("op = create", "STR_ALL",
         f'fifo = "{path}" unbuffered when_full = block deadline = 500ms'))
    begin = time.monotonic()
    make_files(place.point, 200, "nobody")
    took = time.monotonic() - begin
    expect(took < 10, f"200 files took {took:.1f} s without a reader")
    got = []
    reader = threading.Thread(target=lambda: got.append(
        subprocess.run(["cat", path], capture_output=True, check=True).stdout))
    reader.start()
    time.sleep(0.3)
    make_files(place.point, 200, "somebody")
    mount.unmount()
    reader.join(30)
    expect(got, "the reader does not end")
    copy = os.path.join(place.out, "copy")
    with open(copy, "wb") as out:
        out.write(got[0])
    dump = suite.dump(copy)
    names = created(dump.events)
    here = [n for n in names if n.startswith("somebody")]
    expect_equal(len(here), 200, "operations while there was a reader")
    lost = int(dump.errors.split(" operations were not recorded")[0]
               .split()[-1])
    expect_equal(lost + len(names), 400, "read and counted as lost")


def users_of_traces(suite):
    """What others do to trace files that lie in the mount is recorded, by the
    tracer that writes them as by any other; the data is not, by which a trace
    would double with each look at it."""
    place = Place(suite, "users")
    elsewhere = os.path.join(place.out, "t")
    mine, read_only = (os.path.join(place.source, n) for n in ("mine", "looked"))
    mount = suite.mount(
        place.source, place.point,
        ("", "STR_ALL", f'file = "{elsewhere}"'),
        ("", "STR_ALL", f'file = "{mine}"'),
        ("op = read", "STR_ALL | STR_DATA | STR_DATA_CKSUM",
         f'file = "{read_only}"'))
    make_files(place.point, 100, "a")
    suite.command("tracefs-ctl", place.point, "flush")

    def shell(text):
        return subprocess.run(["sh", "-c", text], cwd=place.point, check=True,
                              capture_output=True).stdout

    seen = [len(shell("cat looked"))]
    for _ in range(10):
        shell("cat looked looked")
        suite.command("tracefs-ctl", place.point, "flush")
        seen.append(len(shell("cat looked")))
    expect(seen[-1] < seen[0] + 40_000, f"it feeds itself: {seen}")
    shell("chmod 640 mine; cp mine copy; echo mine >> mine; "
          "truncate -s 100 mine")
    mount.unmount()
    events = suite.read(elsewhere)
    about = [e for e in events if e.get("path") == "/mine"]
    expect({"chmod", "cp", "sh", "truncate"} <= {e.get("comm") for e in about},
           f"who is missing: {about}")
    expect_equal([(e["comm"], e["result"]) for e in about if e["op"] == "write"],
                 [("sh", 5)], "writes, of which the daemon's are none")
    expect_equal([e["comm"] for e in about if e["op"] == "setattr"],
                 ["chmod", "truncate"], "changes of attributes")
    looked = [e for e in events if e.get("path") == "/looked"
              and e["op"] == "read"]
    by_itself = [e for e in suite.read(read_only) if e["path"] == "/looked"]
    expect_equal([(e["offset"], e["result"]) for e in by_itself],
                 [(e["offset"], e["result"]) for e in looked],
                 "reads, by the tracer that writes it and by another")
    expect(sum(e["result"] for e in looked) > sum(seen), f"{len(looked)} reads")
    withheld = [e for e in by_itself if "data" in e or "data_b64" in e
                or "data_crc" in e]
    expect(not withheld, f"data of it: {withheld[:1]}")
    expect(all(e.get("data_left_out") for e in by_itself if e["result"]),
           "it is said nowhere that data is left out")


# --- Flight recorder

def flight(suite):
    place = Place(suite, "flight")
    prefix = os.path.join(place.out, "f")
    memory = os.path.join(place.out, "map")
    # Files made by one thread: everything lands in few rings.
    mount = suite.mount(
        place.source, place.point,
        ("op = create OR op = mkdir OR op = rmdir", "STR_ALL",
         f'flight = "{prefix}" size = 64K rings = 1 buf = 4K map = "{memory}" '
         'trigger = "errno = ENOTEMPTY OR latency > 1h" every = 0'))

    def read(number):
        path = f"{prefix}.{number:06}"
        wait_until(lambda: os.path.exists(path), path)
        # It appears before it is complete.
        wait_until(lambda: suite.dump(path).status == 0, f"{path} is whole")
        return suite.dump(path)

    make_files(place.point, 100, "a")
    suite.command("tracefs-ctl", place.point, "snapshot", "1")
    first = read(1)
    expect_equal(created(first.events), [f"a{i}" for i in range(100)],
                 "the first snapshot")
    # Recording goes on, and overwrites.
    make_files(place.point, 2000, "b")
    mount.signal(signal.SIGUSR2)
    second = read(2)
    kept, overwritten = snapshot_counts(second.errors)
    expect("(signal)" in second.errors, second.errors)
    expect_equal(kept, len(second.events), "operations in the snapshot")
    expect_equal(kept + overwritten, 2100, "all operations")
    expect(overwritten > 0, "nothing was overwritten")
    expect_equal(created(second.events)[-1], "b1999", "the newest")
    # What triggers is in the snapshot that it triggers.
    os.makedirs(os.path.join(place.point, "d", "e"))
    try:
        os.rmdir(os.path.join(place.point, "d"))
        raise Failure("rmdir of a full directory")
    except OSError:
        pass
    third = read(3)
    expect("(trigger)" in third.errors, third.errors)
    expect_equal([e["errno"] for e in third.events if e["op"] == "rmdir"],
                 ["ENOTEMPTY"], "the operation that triggered")
    # After a SIGKILL the map tells the end, to the last answer.
    make_files(place.point, 50, "c")
    mount.kill()
    wait_until(lambda: not mount.is_mounted(), "the mount to go")
    last = suite.dump(memory)
    expect_equal(last.status, 0, last.errors)
    kept, overwritten = snapshot_counts(last.errors)
    expect_equal(kept + overwritten, 2100 + 3 + 50, "operations in the map")
    expect_equal(created(last.events)[-50:], [f"c{i}" for i in range(50)],
                 "the last ones")
    expect("(map)" in last.errors, last.errors)


def flight_async(suite):
    """What waits in memory is lost with the daemon, and the dump says so."""
    place = Place(suite, "flight-async")
    memory = os.path.join(place.out, "map")
    mount = suite.mount(
        place.source, place.point,
        ("op = create", "STR_ALL",
         f'async; flight = "{place.out}/f" map = "{memory}"'))
    make_files(place.point, 100, "a")
    mount.kill()
    wait_until(lambda: not mount.is_mounted(), "the mount to go")
    last = suite.dump(memory)
    expect_equal(last.status, 0, last.errors)
    expect("without what async still held" in last.errors, last.errors)
    names = created(last.events)
    expect_equal(names, [f"a{i}" for i in range(len(names))], "from the first")


def trigger_by_path(suite):
    """A trigger that looks at names and callers, like any filter."""
    place = Place(suite, "trigger")
    prefix = os.path.join(place.out, "f")
    mount = suite.mount(
        place.source, place.point,
        ("", "STR_ALL", f'flight = "{prefix}" trigger = '
         '"op = unlink AND path ~ /box/* AND cname ~ python*"'))
    box = os.path.join(place.point, "box")
    os.mkdir(box)
    make_files(box, 3)
    make_files(place.point, 3)
    os.unlink(os.path.join(place.point, "f0"))
    time.sleep(0.3)
    expect(not os.path.exists(prefix + ".000001"), "an early snapshot")
    os.unlink(os.path.join(box, "f0"))
    wait_until(lambda: os.path.exists(prefix + ".000001"), "the snapshot")
    mount.unmount()


def trigger_by_details(suite):
    """And at all that is known of callers only where somebody asks."""
    place = Place(suite, "details")
    with open(os.path.join(place.source, "f"), "w") as out:
        out.write("x")
    triggers = {"exe": "cexe ~ **/cat", "args": "cargs ~ cat*",
                "ancestor": f"descendant of {os.getpid()}", "other": "cexe = /no/such"}
    mount = suite.mount(place.source, place.point, *(
        ("", "STR_ALL", f'flight = "{os.path.join(place.out, name)}" '
         f'trigger = "op = open AND {trigger}" every = 0')
        for name, trigger in triggers.items()))
    subprocess.run(["cat", os.path.join(place.point, "f")], check=True,
                   stdout=subprocess.DEVNULL)
    for name in triggers.keys() - {"other"}:
        path = os.path.join(place.out, name + ".000001")
        wait_until(lambda p=path: os.path.exists(p), f"the snapshot by {name}")
    mount.unmount()
    expect(not os.path.exists(os.path.join(place.out, "other.000001")),
           "a snapshot of what does not match")


# --- The paper's section 2.8

def heartbeat(suite):
    """A trace that promises blocks gets them though nothing happens."""
    place = Place(suite, "heartbeat")
    beating, silent = (os.path.join(place.out, name)
                       for name in ("beating", "silent"))
    mount = suite.mount(place.source, place.point, *(
        ("op = mkdir", "STR_ALL",
         f'checksum alg = crc32c {promise}; file = "{trace}"')
        for trace, promise in ((beating, "heartbeat = 1s"), (silent, ""))))

    def await_beat():
        size = os.path.getsize(beating)
        wait_until(lambda: os.path.getsize(beating) > size, "a heartbeat", 20)

    await_beat()
    size = os.path.getsize(silent)
    for _ in range(3):
        await_beat()
    expect_equal(os.path.getsize(silent), size, "bytes where none is promised")
    mount.unmount()
    expect_equal(suite.read(beating), [], "operations")


def profiles(suite):
    """What the sample for debugging has recorded is there when the host dies in
    the next moment; the one for studies has everything at the end."""
    place = Place(suite, "profiles")
    samples = os.path.join(os.path.dirname(__file__), "..", "..", "..",
                           "config", "samples")
    for name in ("debug", "study"):
        with open(os.path.join(samples, name + ".conf"),
                  encoding="utf-8") as sample:
            text = sample.read().replace("/var/tmp/", place.out + "/")
        # A running mount takes a name that is written out.
        text = text.replace("-%date", "")
        with open(suite.path(name), "w", encoding="utf-8") as out:
            out.write(text)

    def mounted(name):
        mount = suite.mount(place.source, place.point, (
            "op = mknod", "STR_ALL",
            f'file = "{os.path.join(place.out, "other-" + name)}"'))
        suite.command("tracefs-ctl", place.point, "add", suite.path(name))
        return mount

    mount = mounted("debug")
    database = os.path.join(place.point, "db")
    os.mkdir(database)
    make_files(database, 20)
    for i in range(20):
        os.rename(f"{database}/f{i}", f"{database}/g{i}")
    with open(f"{database}/g0", "rb") as synced:
        os.fsync(synced.fileno())
    os.unlink(f"{database}/g1")
    mount.kill()
    wait_until(lambda: not mount.is_mounted(), "the mount to go")
    trace = os.path.join(place.out, "tracefs-debug.trace")
    told = collections.Counter((e["op"], "result" in e)
                               for e in suite.dump(trace).events)
    expect_equal(told, {(op, done): count for done in (False, True)
                        for op, count in (("create", 20), ("rename", 20),
                                          ("fsync", 1), ("unlink", 1))},
                 "told before and after each operation")

    mount = mounted("study")
    make_files(place.point, 100)
    mount.unmount()
    trace = os.path.join(place.out, "tracefs-study.trace")
    expect_equal(len(created(suite.read(trace))), 100, "files of the study")


# --- Configs that make no sense

def bad_configs(suite):
    place = Place(suite, "bad")
    secret = keys(suite)
    world = os.path.join(place.out, "world")
    short = os.path.join(place.out, "short")
    there = os.path.join(place.out, "there")
    for path, text, mode in ((world, "tracefs-secret-1 " + "11" * 32, 0o644),
                             (short, "tracefs-secret-1 1122", 0o600),
                             (there, "precious", 0o600)):
        with open(path, "w", encoding="ascii") as out:
            out.write(text + "\n")
        os.chmod(path, mode)
    new = os.path.join(place.out, "new")
    # (output section, words of the message, exit status)
    cases = [
        (f'compres; file = "{new}"', ["'compres'", "did you mean 'compress'"], 2),
        (f'flie = "{new}"', ["'flie'", "did you mean 'file'"], 2),
        (f'flihgt = "{new}"', ["did you mean 'flight'"], 2),
        (f'compress; async; file = "{new}"', ["async must be the first"], 2),
        (f'async; file = "{new}" unbuffered', ["exclude each other"], 2),
        (f'file = "{new}"; compress', ["last"], 2),
        ("compress", ["output driver"], 2),
        (f'file = "{new}" buf = 1', ["4096"], 2),
        (f'compress block = 1T; file = "{new}"', ["block"], 2),
        (f'compress level = 12; file = "{new}"', ["level", "9"], 2),
        (f'file = "{new}" rotate_size = 1K', ["rotate_size", "65536"], 2),
        (f'file = "{new}" keep = 5', ["rotate_size"], 2),
        (f'fifo = "{new}" deadline = 1s', ["when_full = block"], 2),
        (f'flight = "{new}" every = 1s', ["no trigger"], 2),
        (f'flight = "{new}" size = 1G rings = 1000', ["4 GiB"], 2),
        (f'flight = "{new}" trigger = "erno = EIO"',
         ["trigger", "'erno'", "errno"], 2),
        (f'checksum; file = "{new}"', ["key"], 2),
        (f'checksum key = "file:{place.out}/absent"; file = "{new}"',
         ["absent", "No such file"], 3),
        (f'checksum key = "file:{world}"; file = "{new}"',
         [world, "chmod 600"], 2),
        (f'checksum key = "file:{short}"; file = "{new}"', [short], 2),
        (f'checksum key = 00112233; file = "{new}"', ["file:"], 2),
        (f'encrypt recipient = age1nonsense; file = "{new}"', ["age1"], 2),
        (f'file = "{there}"', ["never replaces"], 3),
        (f'file = "{place.out}/no/such"', ["No such file"], 3),
        (f'device = "{there}"', ["no block device", "file ="], 2),
        (f'fifo = "{there}"', ["not a FIFO"], 2),
        (f'flight = "{new}" map = "{there}"', ["tracefs-dump", "remove"], 3),
    ]
    for output, words, status in cases:
        config = suite.config(("", "STR_ALL", output))
        run = subprocess.run(
            [os.path.join(suite.bin, "tracefs-mount"), place.source,
             place.point, "--config", config],
            capture_output=True, text=True, check=False)
        for word in words:
            expect(word in run.stderr,
                   f"{output}: no {word!r} in\n{run.stderr}")
        expect("5a5a5a" not in run.stderr and "00112233" not in run.stderr,
               f"{output}: the key is in the message\n{run.stderr}")
        expect_equal(run.returncode, status, f"{output}: {run.stderr}")
        expect(not os.path.exists(new), f"{output}: left a file behind")
    with open(there, encoding="ascii") as text:
        expect_equal(text.read(), "precious\n", "the file that was there")
    del secret
    return f"{len(cases)} configs"


def unwritable(suite):
    """A read-only file system, and a folder without rights to it."""
    place = Place(suite, "unwritable")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", place.out],
                   check=True)
    try:
        config = suite.config(os.path.join(place.out, "t"))
        run = subprocess.run(
            [os.path.join(suite.bin, "tracefs-mount"), place.source,
             place.point, "--config", config],
            capture_output=True, text=True, check=False)
        expect_equal(run.returncode, 3, run.stderr)
        expect(os.path.join(place.out, "t") in run.stderr
               and "Read-only" in run.stderr, run.stderr)
    finally:
        subprocess.run(["umount", place.out], check=True)


def main():
    suite = Suite("output", __doc__)
    for case in (killed_loses_an_interval, rotation,
                 a_finished_part_is_a_file_as_any_other,
                 following_goes_on_in_later_parts, rotation_at_runtime,
                 full_disk, full_disk_sealed, full_disk_mid_block, device, fifo,
                 users_of_traces, flight, flight_async, trigger_by_path,
                 trigger_by_details, heartbeat, profiles, bad_configs,
                 unwritable):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
