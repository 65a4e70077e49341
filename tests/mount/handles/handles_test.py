#!/usr/bin/env python3
"""File handles of a mount (--handles yes), as servers of NFS use them: they lead
to their file after the kernel has forgotten it and after a new mount, and never
to another file, nor out of the source."""

import ctypes
import errno
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from tracefs_harness import (Skip, Suite, expect, expect_equal,  # noqa: E402
                             wait_until)

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = itertools.count()
FILES = 40
# linux/include/linux/exportfs.h: FILEID_INO64_GEN, of FUSE: the node id in two
# halves, the upper one first, and the generation.
FUSE_HANDLE = 0x81
KINDS = ("tmpfs", "ext4", "xfs", "btrfs")


class Handle(ctypes.Structure):
    """struct file_handle of open_by_handle_at(2)."""
    _fields_ = [("size", ctypes.c_uint), ("type", ctypes.c_int),
                ("bytes", ctypes.c_ubyte * 128)]

    @staticmethod
    def of(path):
        handle = Handle(size=128)
        mount = ctypes.c_int()
        if LIBC.name_to_handle_at(-100, os.fsencode(path),
                                  ctypes.byref(handle), ctypes.byref(mount),
                                  0) != 0:
            raise OSError(ctypes.get_errno(), path)
        return handle

    @staticmethod
    def forged(node, generation=1):
        handle = Handle(size=12, type=FUSE_HANDLE)
        handle.bytes[:12] = struct.pack("=III", node >> 32, node & 0xffffffff,
                                        generation)
        return handle

    def node(self):
        upper, lower, _ = struct.unpack("=III", bytes(self.bytes[:12]))
        return upper << 32 | lower

    def open(self, mount, flags=os.O_RDONLY):
        at = os.open(mount, os.O_RDONLY)
        try:
            fd = LIBC.open_by_handle_at(at, ctypes.byref(self), flags)
            if fd < 0:
                raise OSError(ctypes.get_errno(), "open_by_handle_at")
            return fd
        finally:
            os.close(at)

    def content(self, mount):
        fd = self.open(mount)
        try:
            return os.read(fd, 100).decode()
        finally:
            os.close(fd)


def is_stale(handle, point):
    try:
        os.close(handle.open(point))
    except OSError as e:
        expect_equal(e.errno, errno.ESTALE, "the error")
        return True
    return False


class Handles:
    def __init__(self, suite, visibility, transport):
        self.suite = suite
        self.visibility = visibility
        self.transport = transport

    def mount(self, source):
        number = next(NUMBERS)
        self.trace = self.suite.path(f"trace-{number}")
        self.point = self.suite.folder(f"mnt-{number}")
        self.mounted = self.suite.mount(
            source, self.point, self.trace, visibility=self.visibility,
            transport=self.transport, options=("--handles", "yes"))
        return self.point

    def inodes(self):
        return json.loads(self.suite.command(
            "tracefs-ctl", self.point, "stats", "--format", "json"))["inodes"]

    def forget(self, *mounts):
        """A remount drops all names that nobody uses, and FUSE no longer keeps
        an inode without a name (linux/fs/super.c, reconfigure_super)."""
        for point in mounts:
            subprocess.run(["mount", "-i", "-o", "remount", point], check=True)

    def made(self, source):
        os.makedirs(os.path.join(source, "a/b"))
        for i in range(FILES):
            with open(os.path.join(source, f"a/b/f{i}"), "w",
                      encoding="ascii") as out:
                out.write(f"content {i}")

    def handles(self):
        return [Handle.of(os.path.join(self.point, f"a/b/f{i}"))
                for i in range(FILES)]

    def expect_all(self, handles, folder):
        for i, handle in enumerate(handles):
            expect_equal(handle.content(self.point), f"content {i}", f"f{i}")
        fd = folder.open(self.point, os.O_RDONLY | os.O_DIRECTORY)
        expect_equal(len(os.listdir(fd)), FILES, "names")
        expect_equal(os.readlink(f"/proc/self/fd/{fd}"),
                     os.path.join(self.point, "a/b"), "where it is")
        os.close(fd)

    # --- cases

    def outlives(self, kind, below=""):
        """The kernel's memory, and the mount."""
        if why := self.suite.no_file_system(kind):
            raise Skip(why)
        name = f"{kind}-{self.visibility}-{self.transport}-{bool(below)}"
        with self.suite.file_system(name, kind) as store:
            source = os.path.join(store, below) if below else store
            os.makedirs(source, exist_ok=True)
            self.made(source)
            self.mount(source)
            handles = self.handles()
            folder = Handle.of(os.path.join(self.point, "a/b"))
            self.expect_all(handles, folder)
            self.forget(self.point)
            wait_until(lambda: self.inodes() < FILES, "the kernel forgets")
            self.forget(store)
            self.expect_all(handles, folder)
            before = self.trace
            self.mounted.unmount()
            self.mount(source)
            if not below:
                self.forget(store)
            self.expect_all(handles, folder)
            self.mounted.unmount()
            for trace in (before, self.trace):
                read = [event for event in self.suite.read(trace)
                        if event["op"] == "read" and event["result"] > 0]
                expect(len(read) >= FILES, f"{len(read)} reads")
                expect(all(event["path"].startswith("/a/b/f")
                           for event in read if "path" in event),
                       f"paths: {read[:3]}")

    def is_stale_when_gone(self):
        with self.suite.file_system(f"gone-{self.visibility}-{self.transport}",
                                    "tmpfs") as source:
            self.made(source)
            self.mount(source)
            gone, replaced, kept = self.handles()[:3]
            b = os.path.join(self.point, "a/b")
            os.unlink(os.path.join(b, "f0"))
            with open(os.path.join(b, "new"), "w", encoding="ascii") as out:
                out.write("another")
            os.rename(os.path.join(b, "new"), os.path.join(b, "f1"))
            os.rename(os.path.join(b, "f2"), os.path.join(b, "elsewhere"))
            self.forget(self.point)
            expect(is_stale(gone, self.point), "an unlinked file was opened")
            expect(is_stale(replaced, self.point),
                   "a replaced file was opened")
            expect_equal(kept.content(self.point), "content 2", "renamed")
            self.mounted.unmount()

    def does_not_lead_out(self):
        """Ids that are right for files beside the source."""
        kind = "ext4"
        if why := self.suite.no_file_system(kind):
            raise Skip(why)
        name = f"outside-{self.visibility}-{self.transport}"
        with self.suite.file_system(name, kind) as store:
            outside = os.path.join(store, "outside")
            inside = os.path.join(store, "inside")
            self.made(outside)
            self.made(inside)
            # Their ids, from a mount of everything.
            self.mount(store)
            wanted = [Handle.of(os.path.join(self.point, "outside", path))
                      for path in ("a", "a/b", "a/b/f1", "a/b/f2", ".")]
            top = Handle.of(self.point)
            self.mounted.unmount()
            self.mount(inside)
            expect(Handle.of(os.path.join(self.point, "a/b/f1")).node() !=
                   wanted[2].node(), "the same file")
            draw = random.Random(self.suite.options.seed)
            forged = [Handle.forged(draw.getrandbits(bits))
                      for bits in (8, 16, 32, 64) for _ in range(100)]
            forged += [Handle.forged(number << 32 | low) for number in range(9)
                       for low in range(30)]
            forged += [Handle.forged(handle.node(), 2) for handle in wanted]
            for handle in wanted + forged:
                try:
                    fd = handle.open(self.point)
                except OSError as e:
                    expect(e.errno in (errno.ESTALE, errno.ENOTDIR), str(e))
                    continue
                path = os.readlink(f"/proc/self/fd/{fd}")
                number = os.fstat(fd).st_ino
                os.close(fd)
                found = subprocess.run(
                    ["find", inside, "-inum", str(number)], check=True,
                    capture_output=True, text=True).stdout
                expect(found != "", f"{path} with number {number} was opened")
            # The root of a mount is node 1, whatever is mounted.
            fd = top.open(self.point, os.O_RDONLY | os.O_DIRECTORY)
            expect_equal(os.fstat(fd).st_ino, os.stat(inside).st_ino, "root")
            os.close(fd)
            self.mounted.unmount()

    def beside_changes(self):
        """Handles are opened while names come and go and all is forgotten
        again and again: each leads to its own file or is stale."""
        with self.suite.file_system(f"busy-{self.visibility}-{self.transport}",
                                    "tmpfs") as source:
            self.made(source)
            self.mount(source)
            end = time.monotonic() + self.suite.options.seconds
            known = {}  # node: content, of files that were made
            wrong = []
            opened = 0

            def changes(thread):
                draw = random.Random(thread)
                mine = []
                for i in range(1 << 30):
                    if time.monotonic() > end:
                        return
                    path = os.path.join(self.point, f"t{thread}-{i}")
                    with open(path, "w", encoding="ascii") as out:
                        out.write(path)
                    try:
                        known[Handle.of(path).node()] = path
                    except OSError as e:
                        wrong.append(f"{path}: {e}")
                    mine.append(path)
                    if len(mine) > 20:
                        os.unlink(mine.pop(draw.randrange(len(mine))))

            def opens(thread):
                nonlocal opened
                draw = random.Random(thread)
                while time.monotonic() < end:
                    nodes = list(known.items())
                    if not nodes:
                        continue
                    node, content = draw.choice(nodes[-100:])
                    try:
                        found = Handle.forged(node).content(self.point)
                    except OSError as e:
                        if e.errno != errno.ESTALE:
                            wrong.append(str(e))
                        continue
                    opened += 1
                    # It may be opened before it was written.
                    if found not in ("", content):
                        wrong.append(f"{found} instead of {content}")

            threads = [threading.Thread(target=work, args=(i,))
                       for i in range(3) for work in (changes, opens)]
            for thread in threads:
                thread.start()
            while time.monotonic() < end:
                self.forget(self.point)
                time.sleep(0.02)
            for thread in threads:
                thread.join()
            expect_equal(wrong[:5], [], "files that were found")
            expect(opened > 100, f"only {opened} were opened")
            self.mounted.unmount()
            return f"{opened} opened"


def without(suite):
    """Without the option there are none, and nobody keeps one in vain."""
    source = suite.folder("without", "source")
    with open(os.path.join(source, "f"), "w", encoding="ascii") as out:
        out.write("x")
    point = suite.folder("without", "mnt")
    mounted = suite.mount(source, point, suite.path("without", "trace"))
    try:
        Handle.of(os.path.join(point, "f"))
    except OSError as e:
        expect_equal(e.errno, errno.EOPNOTSUPP, "the error")
    else:
        raise AssertionError("there is a handle")
    mounted.unmount()


def refusals(suite):
    source = suite.folder("refused", "source")
    for more in (("--survive", "yes"), ("--sandbox", "strict")):
        refused = suite.tool("tracefs-mount", source, "--config",
                             suite.config(suite.path("refused", "trace")),
                             "--handles", "yes", *more)
        expect(refused.returncode != 0 and "--handles yes" in refused.stderr,
               f"{more}: {refused.stderr}")


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)


def main():
    suite = Suite("handles", __doc__, arguments)
    for transport in ("dev", "uring"):
        for visibility in ("exact", "auto", "fast"):
            cases = Handles(suite, visibility, transport)
            how = f"{visibility}, {transport}"
            for kind in KINDS:
                suite.run(f"outlives {kind}, {how}", cases.outlives, kind)
            suite.run(f"outlives a part of tmpfs, {how}", cases.outlives,
                      "tmpfs", "part")
            suite.run(f"stale when gone, {how}", cases.is_stale_when_gone)
            suite.run(f"does not lead out, {how}", cases.does_not_lead_out)
            suite.run(f"beside changes, {how}", cases.beside_changes)
    suite.run("without", without, suite)
    suite.run("refusals", refusals, suite)
    suite.finish()


main()
