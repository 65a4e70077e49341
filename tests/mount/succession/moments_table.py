#!/usr/bin/env python3
"""Each operation, its daemon killed in each moment: before its calls below,
after them, before and after its answer. What its caller is told, what is below
and what the trace has must be what they are where nobody is killed.

  moments_table.py --bin build/release/bin             moments that matter
  moments_table.py --bin build/release/bin --all       each call of the thread
"""

import collections
import ctypes
import errno
import json
import os
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemon_of, successions_of  # noqa: E402
from moment import CHANGES, Caller, Watched  # noqa: E402
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (Failure, Suite, decode_event,  # noqa: E402
                             expect, expect_equal, wait_until)

# linux/include/uapi/linux/fuse.h.
LOOKUP, GETATTR, SETATTR, SYMLINK, MKNOD, MKDIR = 1, 3, 4, 6, 8, 9
UNLINK, RMDIR, RENAME, LINK, OPEN, READ, WRITE = 10, 11, 12, 13, 14, 15, 16
RELEASE, FSYNC, SETXATTR, REMOVEXATTR, FLUSH = 18, 20, 21, 24, 25
OPENDIR, READDIR, RELEASEDIR, CREATE, FALLOCATE = 27, 28, 29, 35, 43
RENAME2, COPY, TMPFILE = 45, "47,53", 51

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
PUNCH = 3
BLOCK = 4096
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long,
                           ctypes.c_long]


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def put(path, content=b"content"):
    with open(path, "wb") as out:
        out.write(content)


def rename2(folder, flags):
    checked(LIBC.renameat2(-100, f"{folder}/a".encode(), -100,
                           f"{folder}/b".encode(), flags))


def with_open(path, flags, call):
    fd = os.open(path, flags, 0o640)
    try:
        return call(fd)
    finally:
        os.close(fd)


def create(folder, more):
    return with_open(folder + "/a", os.O_CREAT | os.O_RDWR | more,
                     lambda fd: os.write(fd, b"created"))


def fallocate(folder, mode, offset):
    with_open(folder + "/a", os.O_RDWR, lambda fd: checked(
        LIBC.fallocate(fd, mode, offset, BLOCK)))


def blocks():
    return b"".join(bytes([65 + i]) * BLOCK for i in range(5))


def copy(folder):
    with open(folder + "/a", "rb") as source:
        return with_open(folder + "/b", os.O_WRONLY,
                         lambda fd: os.copy_file_range(source.fileno(), fd, 5))


def attribute(folder, flags):
    os.setxattr(folder + "/a", "user.x", b"new", flags)


class Case:
    """`call(folder)` is made by the mount after `before(folder)` was below it;
    once the daemon has taken its request, `meanwhile(folder)` is below."""

    def __init__(self, title, opcode, call, before=None, meanwhile=None):
        self.title = title
        self.opcode = opcode
        self.call = call
        self.before = before
        self.meanwhile = meanwhile


def file_a(folder):
    put(folder + "/a")


def files_a_b(folder):
    put(folder + "/a", b"a's")
    put(folder + "/b", b"b's")


def folder_a(folder):
    os.mkdir(folder + "/a")


def attribute_of_a(folder):
    file_a(folder)
    os.setxattr(folder + "/a", "user.x", b"old")


def without_a(folder):
    os.unlink(folder + "/a")


CASES = [
    Case("mkdir", MKDIR, lambda f: os.mkdir(f + "/a", 0o750)),
    Case("mkdir, refused", MKDIR, lambda f: os.mkdir(f + "/a"),
         meanwhile=folder_a),
    Case("mknod", MKNOD, lambda f: os.mkfifo(f + "/a", 0o640)),
    Case("mknod, refused", MKNOD, lambda f: os.mkfifo(f + "/a"),
         meanwhile=lambda f: os.mkfifo(f + "/a")),
    Case("symlink", SYMLINK, lambda f: os.symlink("there", f + "/a")),
    Case("symlink, refused", SYMLINK, lambda f: os.symlink("there", f + "/a"),
         meanwhile=lambda f: os.symlink("there", f + "/a")),
    Case("link", LINK, lambda f: os.link(f + "/a", f + "/b"), file_a),
    Case("link, refused", LINK, lambda f: os.link(f + "/a", f + "/b"), file_a,
         lambda f: put(f + "/b", b"another")),
    Case("link, refused by itself", LINK,
         lambda f: os.link(f + "/a", f + "/b"), file_a,
         lambda f: os.link(f + "/a", f + "/b")),
    Case("create", CREATE, lambda f: create(f, 0)),
    Case("create O_EXCL", CREATE, lambda f: create(f, os.O_EXCL)),
    Case("create O_EXCL, refused", CREATE, lambda f: create(f, os.O_EXCL),
         meanwhile=file_a),
    Case("create, another was first", CREATE, lambda f: create(f, 0),
         meanwhile=file_a),
    Case("tmpfile", TMPFILE, lambda f: with_open(
        f, os.O_TMPFILE | os.O_RDWR, lambda fd: os.write(fd, b"x"))),
    Case("unlink", UNLINK, lambda f: os.unlink(f + "/a"), file_a),
    Case("unlink, refused", UNLINK, lambda f: os.unlink(f + "/a"), file_a,
         without_a),
    Case("rmdir", RMDIR, lambda f: os.rmdir(f + "/a"), folder_a),
    Case("rmdir, refused", RMDIR, lambda f: os.rmdir(f + "/a"), folder_a,
         lambda f: os.rmdir(f + "/a")),
    Case("rmdir, not empty", RMDIR, lambda f: os.rmdir(f + "/a"), folder_a,
         lambda f: put(f + "/a/b")),
    Case("rename", RENAME, lambda f: os.rename(f + "/a", f + "/b"), file_a),
    Case("rename over another", RENAME,
         lambda f: os.rename(f + "/a", f + "/b"), files_a_b),
    Case("rename, refused", RENAME, lambda f: os.rename(f + "/a", f + "/b"),
         file_a, without_a),
    Case("rename, no replacing", RENAME2, lambda f: rename2(f, NOREPLACE),
         file_a),
    Case("rename, no replacing, refused", RENAME2,
         lambda f: rename2(f, NOREPLACE), file_a, lambda f: put(f + "/b")),
    Case("exchange", RENAME2, lambda f: rename2(f, EXCHANGE), files_a_b),
    Case("exchange, refused", RENAME2, lambda f: rename2(f, EXCHANGE),
         files_a_b, without_a),
    Case("rename, whiteout", RENAME2, lambda f: rename2(f, WHITEOUT), file_a),
    Case("setxattr", SETXATTR, lambda f: attribute(f, 0), attribute_of_a),
    Case("setxattr XATTR_CREATE", SETXATTR,
         lambda f: attribute(f, os.XATTR_CREATE), file_a),
    Case("setxattr XATTR_CREATE, refused", SETXATTR,
         lambda f: attribute(f, os.XATTR_CREATE), attribute_of_a),
    Case("setxattr XATTR_REPLACE", SETXATTR,
         lambda f: attribute(f, os.XATTR_REPLACE), attribute_of_a),
    Case("setxattr XATTR_REPLACE, refused", SETXATTR,
         lambda f: attribute(f, os.XATTR_REPLACE), file_a),
    Case("removexattr", REMOVEXATTR,
         lambda f: os.removexattr(f + "/a", "user.x"), attribute_of_a),
    Case("removexattr, refused", REMOVEXATTR,
         lambda f: os.removexattr(f + "/a", "user.x"), file_a),
    Case("open to truncate", OPEN, lambda f: with_open(
        f + "/a", os.O_WRONLY | os.O_TRUNC, lambda fd: os.write(fd, b"x")),
         file_a),
    Case("open", OPEN, lambda f: with_open(
        f + "/a", os.O_RDONLY, lambda fd: os.read(fd, 99).decode()), file_a),
    Case("read", READ, lambda f: with_open(
        f + "/a", os.O_RDONLY, lambda fd: os.read(fd, 99).decode()), file_a),
    Case("write", WRITE, lambda f: with_open(
        f + "/a", os.O_WRONLY, lambda fd: os.pwrite(fd, b"new", 2)), file_a),
    Case("append", WRITE, lambda f: with_open(
        f + "/a", os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"new")),
         file_a),
    Case("flush", FLUSH, lambda f: with_open(
        f + "/a", os.O_WRONLY, lambda fd: os.write(fd, b"x")), file_a),
    Case("fsync", FSYNC, lambda f: with_open(f + "/a", os.O_WRONLY, os.fsync),
         file_a),
    Case("release", RELEASE, lambda f: with_open(
        f + "/a", os.O_WRONLY, lambda fd: os.write(fd, b"x")), file_a),
    Case("chmod", SETATTR, lambda f: os.chmod(f + "/a", 0o604), file_a),
    Case("truncate", SETATTR, lambda f: os.truncate(f + "/a", 3), file_a),
    Case("chown", SETATTR, lambda f: os.chown(f + "/a", 1, 2), file_a),
    Case("fallocate", FALLOCATE, lambda f: fallocate(f, 0, 0), file_a),
    Case("punch a hole", FALLOCATE, lambda f: fallocate(f, PUNCH, BLOCK),
         lambda f: put(f + "/a", blocks())),
    Case("copy_file_range", COPY, copy, files_a_b),
    Case("opendir", OPENDIR, lambda f: sorted(os.listdir(f)), files_a_b),
    Case("readdir", READDIR, lambda f: sorted(os.listdir(f)), files_a_b),
    Case("releasedir", RELEASEDIR, lambda f: sorted(os.listdir(f)), files_a_b),
    Case("lookup", LOOKUP, lambda f: os.stat(f + "/a").st_size, file_a),
]

# What the kernel asks as often as it likes.
ASKED = {"lookup", "getattr", "statx", "access", "getxattr", "listxattr",
         "statfs", "readlink"}
OPENS = {"create", "open", "tmpfile", "opendir"}
# When and by whom; what is another in each folder.
ALWAYS_OTHER = {"ts", "dur", "tid", "pid", "ppid", "pgid", "sid", "mtime",
                "lock_owner", "fh_out"}


def state_of(folder):
    """All that is there."""
    found = {}
    numbers = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        st = os.lstat(path)
        content = ""
        if stat.S_ISREG(st.st_mode):
            with open(path, "rb") as file:
                content = repr(file.read())
        elif stat.S_ISLNK(st.st_mode):
            content = os.readlink(path)
        elif stat.S_ISDIR(st.st_mode):
            content = sorted(os.listdir(path))
        attributes = []
        if not stat.S_ISLNK(st.st_mode):
            attributes = sorted((a, os.getxattr(path, a))
                                for a in os.listxattr(path))
        found[name] = (oct(st.st_mode), st.st_nlink, st.st_uid, st.st_gid,
                       st.st_size, content, attributes,
                       numbers.setdefault(st.st_ino, name))
    return found


class Table(Succession):
    def __init__(self, suite):
        super().__init__(suite)
        self.source, self.point, self.trace, self.daemons = self.mount()
        self.folders = {}  # by title: those of its turns, the quiet one first
        self.kills = 0
        self.wrong = []

    def once(self, case, moment):
        """What its caller is told, what is below then, and the moments."""
        turns = self.folders.setdefault(case.title, [])
        name = f"c{len(self.folders)}-{len(turns)}"
        below = os.path.join(self.source, name)
        os.mkdir(below)
        if case.before is not None:
            case.before(below)
        dead = successions_of(self.daemons)
        watched = Watched(self.suite, daemon_of(self.daemons), case.opcode,
                          moment)
        caller = Caller(case.call, os.path.join(self.point, name))
        watched.await_word("taken")
        if case.meanwhile is not None:
            case.meanwhile(below)
        watched.go()
        moments = watched.moments()
        outcome = caller.outcome()
        if moment in moments:
            self.kills += 1
            wait_until(lambda: successions_of(self.daemons) > dead,
                       "another daemon")
        turns.append((name, moment))
        return outcome, state_of(below), moments

    def run(self, case):
        told, there, moments = self.once(case, "never")
        for moment in moments:
            call = moment.rstrip("0123456789").rstrip("<>")
            if not (self.suite.options.all or call in CHANGES
                    or call in ("taken", "reply")):
                continue
            # It need not come: a thread that has served others has its rights.
            now, here, _ = self.once(case, moment)
            if now != told:
                self.wrong.append(f"{case.title}, killed at {moment}: the "
                                  f"caller is told {now!r}, not {told!r}")
            if here != there:
                self.wrong.append(f"{case.title}, killed at {moment}: below "
                                  f"is {here}, not {there}")

    def compare_records(self):
        self.daemons.unmount()
        self.suite.command("tracefs-verify", self.trace)
        read = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-dump"), "--format", "jsonl",
             self.trace], capture_output=True, check=True)
        events = [decode_event(line) for line in read.stdout.splitlines()]
        opened = {event["fh"] for event in events
                  if event["op"] in OPENS and "fh" in event}
        by_folder = collections.defaultdict(list)
        for event in events:
            parts = (event.get("path") or "").split("/")
            if len(parts) > 1 and event["op"] not in ASKED:
                by_folder[parts[1]].append(self.shown(event, parts[1], opened))
        for title, turns in self.folders.items():
            quiet = sorted(by_folder[turns[0][0]])
            expect(quiet or title in ASKED, f"{title} is not in the trace")
            for name, label in turns[1:]:
                if sorted(by_folder[name]) == quiet:
                    continue
                has, had = (collections.Counter(events) for events in
                            (by_folder[name], quiet))
                self.wrong.append(
                    f"{title}, killed at {label}: the trace has\n"
                    f"    {sorted((has - had).elements())} and not\n"
                    f"    {sorted((had - has).elements())}")

    @staticmethod
    def shown(event, folder, opened):
        released = event["op"] in ("release", "releasedir")
        kept = {}
        for key, value in event.items():
            if released and key in ("uid", "gid", "comm", "ppid", "inferred",
                                    "tid", "pid", "pgid", "sid"):
                continue  # of one whose last use was before the death
            if event["op"] == "rmdir" and key in ("fsize", "mtime"):
                continue  # gone with the folder
            if key in ALWAYS_OTHER or "ino" in key:
                value = "there"
            elif key == "fh":
                value = "known" if value in opened else "unknown"
            elif isinstance(value, str):
                value = value.replace("/" + folder, "")
            kept[key] = value
        return json.dumps(kept, sort_keys=True)


def main():
    suite = Suite("moments-table", __doc__, lambda parser: parser.add_argument(
        "--all", action="store_true", help="each call that the thread makes"))
    table = Table(suite)
    whole = suite.stop_mounts
    suite.stop_mounts = lambda: False  # one mount for all cases
    for case in CASES:
        suite.run(case.title, table.run, case)

    def records():
        table.compare_records()
        expect(not table.wrong, f"{len(table.wrong)} differences:\n"
               + "\n".join(table.wrong))
        return f"{table.kills} kills"
    if not suite.failed:
        suite.run("as if nobody had been killed", records)
    suite.stop_mounts = whole
    suite.finish()


if __name__ == "__main__":
    main()
