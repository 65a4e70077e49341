#!/usr/bin/env python3
"""Mapped I/O is recorded wherever a filter can match reads or writes of the
file, in every visibility and over both transports: pages as they come in and go
out, marked, and the bytes of read(2) and write(2) as before, unmarked.
"""

import mmap
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Suite, expect, expect_equal  # noqa: E402

PAGE = 4096
SIZE = 40 * PAGE + 100  # more than is read around a page, and a part of one


class Case:
    """A mount with one tracer, and what it records of /f."""

    number = 0

    def __init__(self, suite, visibility, transport, text,
                 flags="STR_ALL | STR_DATA_CKSUM"):
        self.suite = suite
        Case.number += 1
        base = f"case-{Case.number}"
        self.source = suite.folder(base, "source")
        self.point = suite.folder(base, "mnt")
        self.trace = suite.path(base, "trace")
        self.content = bytes(range(256)) * (SIZE // 256 + 1)
        self.content = self.content[:SIZE]
        for name in ("f", "other"):
            with open(os.path.join(self.source, name), "wb") as file:
                file.write(self.content)
        self.mount = suite.mount(
            self.source, self.point, (text, flags, f'file = "{self.trace}"'),
            visibility=visibility, transport=transport)

    def path(self, name="f"):
        return os.path.join(self.point, name)

    def explain(self):
        """What is said of reads and writes, and of maps."""
        return self.suite.command("tracefs-ctl", self.point, "explain")

    def end(self):
        self.mount.unmount()
        return [e for e in self.suite.read(self.trace)
                if e["op"] in ("read", "write")]


def pages(events):
    """Numbers of the pages that these reads or writes cover."""
    found = set()
    for event in events:
        if event["result"] > 0:
            found.update(range(event["offset"] // PAGE,
                               (event["offset"] + event["result"] - 1)
                               // PAGE + 1))
    return found


def of(events, operation, mapped):
    return [e for e in events
            if e["op"] == operation and bool(e.get("mapped")) == mapped]


def load(suite, *mount):
    """Loads from a map: every page comes in, for the process that touched
    it; read(2) does not."""
    case = Case(suite, *mount, "op IN { read write }")
    with open(case.path(), "rb", buffering=0) as file:
        expect_equal(file.read(1000), case.content[:1000], "what was read")
        with mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED,
                       mmap.PROT_READ) as shared:
            expect(shared[:] == case.content, "the map holds something else")
    events = case.end()
    expect_equal([(e["offset"], e["result"])
                  for e in of(events, "read", False)], [(0, 1000)], "reads")
    expect_equal(pages(of(events, "read", True)), set(range(41)), "pages in")
    for event in events:
        expect(event.get("path") == "/f" and event.get("pid") == os.getpid(),
               f"who and where: {event}")


def store(suite, *mount):
    """Stores to a map: the pages go out, in nobody's name but of whoever had
    the file open; those of write(2) do not."""
    case = Case(suite, *mount, "op IN { read write }")
    with open(case.path(), "r+b", buffering=0) as file:
        with mmap.mmap(file.fileno(), 0) as shared:
            shared[3 * PAGE + 5] = 1
            shared[30 * PAGE] = 2
            shared.flush()
            file.seek(7 * PAGE)
            file.write(b"by hand")
            expect_equal(shared[7 * PAGE:7 * PAGE + 7], b"by hand",
                         "a write is seen in the map")
            shared[20 * PAGE] = 3
            file.seek(20 * PAGE)
            expect_equal(file.read(1), b"\x03", "a store is read at once")
            shared[40 * PAGE + 99] = 4
    with open(os.path.join(case.source, "f"), "rb") as below:
        content = below.read()
    want = bytearray(case.content)
    want[3 * PAGE + 5], want[30 * PAGE], want[20 * PAGE] = 1, 2, 3
    want[7 * PAGE:7 * PAGE + 7] = b"by hand"
    want[40 * PAGE + 99] = 4
    expect(content == bytes(want), "the file below holds something else")
    events = case.end()
    expect_equal([(e["offset"], e["result"])
                  for e in of(events, "write", False)],
                 [(7 * PAGE, 7)], "writes")
    out = of(events, "write", True)
    expect_equal(pages(out), {3, 20, 30, 40}, "pages out")
    for event in out:
        expect(event.get("inferred") and event.get("pid") == os.getpid()
               and event.get("path") == "/f", f"who and where: {event}")
        expect("data_crc" in event, f"no data: {event}")


def kernels_time(suite, *mount):
    """What nobody flushes is written back when its last map goes."""
    case = Case(suite, *mount, "op = write")
    child = os.fork()
    if child == 0:
        fd = os.open(case.path(), os.O_RDWR)
        shared = mmap.mmap(fd, 0)
        os.close(fd)
        shared[PAGE] = 77
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    events = case.end()
    expect_equal(pages(of(events, "write", True)), {1}, "pages out")
    with open(os.path.join(case.source, "f"), "rb") as below:
        expect_equal(below.read()[PAGE], 77, "the byte below")


def program(suite, *mount):
    """A program that is run is read page by page."""
    case = Case(suite, *mount, "op = read")
    shutil.copy("/bin/true", os.path.join(case.source, "program"))
    os.chmod(os.path.join(case.source, "program"), 0o755)
    process = subprocess.Popen([case.path("program")])
    expect_equal(process.wait(), 0, "its end")
    events = case.end()
    come = [e for e in of(events, "read", True)
            if e.get("path") == "/program"]
    expect(come, f"no page of the program came in: {events}")
    expect({e["pid"] for e in come} == {process.pid},
           f"for another process: {come}")


def sent(suite, *mount):
    """sendfile(2) goes through the page cache, and is marked like it."""
    case = Case(suite, *mount, "op = read")
    with open(case.path(), "rb", buffering=0) as file, \
            open(os.devnull, "wb", buffering=0) as null:
        done = 0
        while done < SIZE:
            done += os.sendfile(null.fileno(), file.fileno(), done,
                                SIZE - done)
    events = case.end()
    expect_equal(of(events, "read", False), [], "reads")
    expect_equal(pages(of(events, "read", True)), set(range(41)), "pages in")


def touch(case, name):
    """Reads, writes, loads and stores."""
    with open(case.path(name), "r+b", buffering=0) as file:
        file.read(100)
        file.write(b"x")
        with mmap.mmap(file.fileno(), 0) as shared:
            shared[3 * PAGE] = shared[9 * PAGE] ^ 1


def left_out(suite, visibility, transport):
    """NOT mapped: maps are the kernel's again, and it is said."""
    case = Case(suite, visibility, transport,
                "op IN { read write } AND NOT mapped")
    said = case.explain()
    touch(case, "f")
    events = case.end()
    expect_equal([(e["op"], e["offset"]) for e in events],
                 [("read", 0), ("write", 100)], "reads and writes")
    hidden = "all mapped I/O" in said
    expect(hidden == (visibility != "exact"), f"it is said otherwise:\n{said}")


def alone(suite, *mount):
    """mapped: nothing but pages."""
    case = Case(suite, *mount, "mapped")
    said = case.explain()
    touch(case, "f")
    events = case.end()
    expect({(e["op"], e.get("mapped")) for e in events}
           == {("read", True), ("write", True)}, f"not just pages: {events}")
    expect("all mapped I/O" not in said, f"it is said otherwise:\n{said}")


def one_file(suite, *mount):
    """A filter that names a file has its maps, and no other's."""
    case = Case(suite, *mount, "op IN { read write } AND name = f")
    touch(case, "f")
    touch(case, "other")
    events = case.end()
    expect_equal({e["path"] for e in events}, {"/f"}, "files")
    expect(pages(of(events, "write", True)) == {3}, f"pages out: {events}")


def later(suite, visibility, transport):
    """Files that were open before a tracer came mix with those opened since,
    and the other way round."""
    case = Case(suite, visibility, transport, "op = mkdir")
    trace = suite.path(f"case-{Case.number}", "later")
    config = suite.path(f"case-{Case.number}", "later.conf")
    with open(config, "w", encoding="ascii") as out:
        out.write('{ { op IN { read write } } { stream = { STR_ALL } } '
                  f'{{ file = "{trace}" }} }}\n')
    with open(case.path(), "r+b", buffering=0) as before, \
            mmap.mmap(before.fileno(), 0) as old:
        added = suite.command("tracefs-ctl", case.point, "add", config)
        number = "".join(c for c in added if c.isdigit())
        touch(case, "f")
        touch(case, "other")
        old[PAGE] = 9
        before.seek(PAGE)
        expect_equal(before.read(1), b"\x09", "a store is read at once")
    held = open(case.path("other"), "r+b", buffering=0)
    with held, mmap.mmap(held.fileno(), 0) as new:
        suite.command("tracefs-ctl", case.point, "remove", number)
        touch(case, "f")
        touch(case, "other")
        new[2 * PAGE] = 8
        held.seek(2 * PAGE)
        expect_equal(held.read(1), b"\x08", "a store is read at once")
    case.end()
    events = suite.read(trace)
    marked = {e["path"] for e in of(events, "write", True)}
    # In exact all of it was seen; else /f was being passed through.
    expect_equal(marked, {"/other"} | ({"/f"} if visibility == "exact"
                                       else set()), "pages out")


CASES = {"loads": load, "stores": store, "stores of the killed": kernels_time,
         "program": program, "sendfile": sent, "left out": left_out,
         "alone": alone, "one file": one_file,
         "tracers that come and go": later}


def main():
    suite = Suite("mapped", __doc__)
    suite.run_everywhere(CASES)
    suite.finish()


if __name__ == "__main__":
    main()
