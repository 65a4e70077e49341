"""The same done twice, to a folder of the backing directory and to one seen
through the mount, while root changes both from below."""

import ast
import contextlib
import fcntl
import os
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import expect_equal  # noqa: E402
from trees import expect_same_tree, tree_digest  # noqa: E402
from users import acting  # noqa: E402

# What decides how much the kernel remembers, and who reads and writes.
LEFT_TO_KERNEL = "op = fsync AND cuid = 4000000000"
ALL = ""

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FS_APPEND_FL, FS_NODUMP_FL = 0x20, 0x40
# An access ACL of u::rwx, u:61009:rwx, g::r-x, m::rwx, o::r-x.
ACCESS_ACL = struct.pack("<I" + "HHI" * 5, 2,
                         1, 7, 0xffffffff, 2, 7, 61009, 4, 5, 0xffffffff,
                         16, 7, 0xffffffff, 32, 5, 0xffffffff)


def make(path, content="", mode=0o644, owner=0, group=None):
    """As root, with no regard for the umask."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(content)
    os.chown(path, owner, owner if group is None else group)
    os.chmod(path, mode)


def make_folder(path, mode=0o755, owner=0, group=None):
    os.mkdir(path)
    os.chown(path, owner, owner if group is None else group)
    os.chmod(path, mode)


def replace(path, **how):
    """Another file comes to bear the name."""
    make(path + ".new", **how)
    os.rename(path + ".new", path)


def flags_of(fd):
    value = bytearray(8)
    fcntl.ioctl(fd, FS_IOC_GETFLAGS, value)
    return struct.unpack("i", value[:4])[0]


def set_flags(fd, added=FS_NODUMP_FL):
    """None are taken away, but of those that are here."""
    kept = flags_of(fd) & ~(FS_APPEND_FL | FS_NODUMP_FL)
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("ii", kept | added, 0))


def expect_same(mounted, direct):
    """Compares what is told. A long list is cut down to the results that
    differ."""
    with contextlib.suppress(ValueError, SyntaxError, IndexError):
        lists = [ast.literal_eval(text.split("; then ")[1])
                 for text in (mounted, direct)]
        differ = [pair for pair in zip(*lists) if pair[0] != pair[1]]
        if differ and len(lists[0]) == len(lists[1]):
            mounted, direct = zip(*differ)
    expect_equal(mounted, direct, "what is told")


class Compared:
    """What is done in one setting: a file system below, how much the kernel may
    remember, and the way requests come."""

    def __init__(self, suite, kind, visibility, transport, filter_text):
        self.suite = suite
        self.kind = kind
        self.setting = visibility, transport, filter_text
        self.number = 0
        self.mount = None

    @contextlib.contextmanager
    def mounted(self):
        visibility, transport, filter_text = self.setting
        with self.suite.file_system("source", self.kind) as source:
            point = self.suite.folder("mnt")
            self.number += 1
            trace = self.suite.path(
                f"trace-{self.kind}-{visibility}-{transport}-{self.number}")
            mount = self.suite.mount(
                source, point, (filter_text, "STR_ALL", f'file = "{trace}"'),
                visibility=visibility, transport=transport)
            self.mount = mount
            yield source, point
            mount.unmount()
            os.remove(trace)

    def compare(self, prepare, warm, change, who, act, hold=None):
        """`prepare(folder)` and `change(folder)` as root below; between them
        `warm(folder)` and then `act(folder)` as `who` where it is seen. First
        `hold(folder)` as root where it is seen."""
        with self.mounted() as (source, point):
            told_by = {}
            for where in ("direct", "mounted"):
                folder = os.path.join(source, where)
                seen = folder if where == "direct" else os.path.join(point,
                                                                     where)
                make_folder(folder, 0o755)
                prepare(folder)
                held = [] if hold is None else hold(seen)
                # One process: what was seen before the change is remembered.
                told_by[where] = self.in_turn(who, warm, act, seen,
                                              lambda f=folder: change(f))
                for fd in held:
                    os.close(fd)
            expect_same(told_by["mounted"], told_by["direct"])
            expect_same_tree(
                tree_digest(os.path.join(source, "mounted"), times=False),
                tree_digest(os.path.join(source, "direct"), times=False),
                "below the mount")
            return told_by["direct"]

    def in_turn(self, who, warm, act, seen, change):
        ready, go = os.pipe(), os.pipe()

        def body():
            first = warm(seen)
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            return f"{first}; then {act(seen)}"

        def between():
            os.read(ready[0], 1)
            change()
            os.write(go[1], b"x")

        thread = threading.Thread(target=between, daemon=True)
        thread.start()
        text = acting(who, body)
        os.write(ready[1], b"x")  # should the process have failed before
        thread.join()
        for pipe in (ready, go):
            os.close(pipe[0])
            os.close(pipe[1])
        return text


def run_settings(suite, settings, cases_of, case_class):
    """Runs the cases (title, function, arguments...) of each setting (kind,
    visibility, transport, filter)."""
    if suite.no_uring():
        print(f"without uring: {suite.no_uring()}")
        settings = [(k, v, "dev", f) for k, v, _, f in settings]
    for kind, visibility, transport, filter_text in dict.fromkeys(settings):
        why = suite.no_file_system(kind)
        if why:
            print(f"[  SKIPPED ] {kind}: {why}")
            continue
        traced = "traced" if filter_text == ALL else "untraced"
        setting = case_class(suite, kind, visibility, transport, filter_text)
        for title, case, *arguments in cases_of(setting):
            suite.run(f"{title}, {kind}, {visibility} over {transport}, "
                      f"{traced}", case, *arguments)
