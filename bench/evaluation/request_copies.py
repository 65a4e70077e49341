"""How often the daemon moves each byte that a caller reads or writes.

By its system calls: what they return, so that each byte is one that the kernel
copied into or out of the daemon's memory. And by itself: memcpy and memmove, of
copies of some size (workload/count_copies.cc). I/O with O_DIRECT below is not
copied: the device reads and writes the daemon's memory."""

import contextlib
import math
import mmap
import os
import pathlib
import struct
import time

BYTES = 4 << 20
BLOCK = 64 << 10
MODES = ("buffered", "direct", "mapped")
# Until a block of the trace has been written for its age.
REST_S = 0.7
READS = ("read", "pread64", "preadv", "preadv2")
WRITES = ("write", "pwrite64", "pwritev", "pwritev2", "writev")
MOVES = (*READS, *WRITES, "splice", "vmsplice", "copy_file_range", "sendfile")
# Less is headers and names.
LEAST = 0.05
SLACK = 0.25


class Copied:
    """What the daemon copied by itself so far."""

    def __init__(self, folder, shim):
        self.path = pathlib.Path(folder) / "copied"
        self.path.write_bytes(bytes(8))
        self.words = ("env", f"COUNT_COPIES={self.path}",
                      f"LD_PRELOAD={shim}")

    def bytes(self):
        return struct.unpack("=Q", self.path.read_bytes())[0]


def _read(path, mode):
    fd = os.open(path, os.O_RDONLY | (os.O_DIRECT if mode == "direct" else 0))
    with contextlib.closing(mmap.mmap(-1, BLOCK)) as memory:
        if mode == "mapped":
            with mmap.mmap(fd, BYTES, prot=mmap.PROT_READ) as whole:
                assert len(bytes(whole)) == BYTES
        else:
            for at in range(0, BYTES, BLOCK):
                assert os.preadv(fd, [memory], at) == BLOCK
    return fd


def _write(path, mode):
    fd = os.open(path, os.O_RDWR | (os.O_DIRECT if mode == "direct" else 0))
    with contextlib.closing(mmap.mmap(-1, BLOCK)) as memory:
        memory.write(b"w" * BLOCK)
        if mode == "mapped":
            with mmap.mmap(fd, BYTES) as whole:
                whole[:] = b"w" * BYTES
                whole.flush()
        else:
            for at in range(0, BYTES, BLOCK):
                assert os.pwritev(fd, [memory], at) == BLOCK
    return fd


WORK = {"read": _read, "write": _write}


def _fds(pid, name):
    """{descriptor: its flags} of the daemon, of files of that name."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            info = pathlib.Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
        except FileNotFoundError:
            continue
        if os.path.basename(target) == name:
            found[int(fd)] = int(info.split("flags:")[1].split()[0], 8)
    return found


def run(place, pid, trace, copied):
    """{row: {what: times for each byte}}; `trace`: strace, which this ends."""
    phases = []
    recording = _fds(pid, "trace")
    try:
        for what, work in WORK.items():
            for mode in MODES:
                name = f"{what}-{mode}"
                below = pathlib.Path(place.below) / name
                below.write_bytes(b"x" * BYTES)
                # What was done before, and its trace, is not this one's.
                time.sleep(REST_S)
                before, begin = copied.bytes(), time.time()
                fd = work(f"{place.point}/{name}", mode)
                direct = {n for n, flags in _fds(pid, name).items()
                          if flags & os.O_DIRECT}
                os.close(fd)
                time.sleep(REST_S)
                phases.append((f"{what}, {mode}", begin, time.time(), direct,
                               copied.bytes() - before))
    finally:
        threads = trace.stop()
    return {name: _moved(threads, begin, end, recording, direct, own)
            for name, begin, end, direct, own in phases}


def _moved(threads, begin, end, recording, direct, own):
    moved = {"memcpy": own}
    for call in (c for calls in threads for c in calls):
        if call.name in MOVES and begin <= call.end <= end and call.result > 0:
            what = _what(call, recording, direct)
            moved[what] = moved.get(what, 0) + call.result
    shares = {what: round(n / BYTES, 2) for what, n in sorted(moved.items())}
    return {what: n for what, n in shares.items() if n > LEAST}


def _what(call, recording, direct):
    if call.on_fuse:
        return "requests" if call.name in READS else "answers"
    if call.fd in recording:
        return "trace"
    return f"{call.name} (O_DIRECT)" if call.fd in direct else call.name


def total(moved):
    """Copies by a processor."""
    return round(sum(n for what, n in moved.items()
                     if not what.endswith("(O_DIRECT)")), 2)


def most(row, moved):
    """What total() is at most: of O_DIRECT writes any share may be copied to
    where it is aligned, by where libfuse happened to receive it."""
    if not row.endswith("direct"):
        return total(moved)
    own = moved.get("memcpy", 0)
    return total({**moved, "memcpy": math.ceil(own)})


def grown(table, measured, where):
    """Lines about bytes that are moved more often than in the table. One more
    copy is far above what differs from run to run, such as what is read ahead."""
    return [f"{where}, {row}: each byte copied {total(moved)} times, not "
            f"{total(table[row])}" for row, moved in measured.items()
            if row in table and total(moved) > most(row, table[row]) + SLACK]
