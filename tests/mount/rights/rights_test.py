#!/usr/bin/env python3
"""Nobody gains a right through the mount that the directory below does not
give, also where others change that directory meanwhile; and nobody loses one.

Each case does the same twice: to a folder of the backing directory, and to one
seen through the mount. What callers are told, and the trees left behind, must
be equal.

  rights_test.py --bin build/release/bin                seconds, for ctest
  rights_test.py --bin build/release/bin --all          every setting
"""

import contextlib
import mmap
import os
import random
import stat
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (TRANSPORTS, VISIBILITIES, Suite,  # noqa: E402
                             expect, expect_equal)
from compared import (ALL, LEFT_TO_KERNEL, Compared, make,  # noqa: E402
                      make_folder, replace, run_settings)
import users  # noqa: E402
from users import acting, told  # noqa: E402

def opened(path, flags):
    """Whose file an open gives, and what is in it."""
    fd = os.open(path, flags, 0o640)
    try:
        status = os.fstat(fd)
        return f"of {status.st_uid}, {status.st_size} bytes"
    finally:
        os.close(fd)


class Rights(Compared):
    # --- creation that meets a file

    def create_meets_a_file(self):
        """A name that was missing a moment ago is a file of somebody."""
        kinds = {"secret": 0o600, "readable": 0o644, "open": 0o666}
        flags = {"plain": os.O_RDWR, "truncating": os.O_RDWR | os.O_TRUNC,
                 "reading": os.O_RDONLY, "exclusive": os.O_RDWR | os.O_EXCL,
                 "appending": os.O_WRONLY | os.O_APPEND}
        names = [(f"{kind}-{how}", mode, flag) for kind, mode in kinds.items()
                 for how, flag in flags.items()]

        def warm(folder):
            return [told(os.stat, os.path.join(folder, name))
                    for name, _, _ in names]

        def change(folder):
            for name, mode, _ in names:
                make(os.path.join(folder, name), "content", mode)
            # And what cannot be opened at all.
            os.mkdir(os.path.join(folder, "folder"))
            os.symlink("secret-plain", os.path.join(folder, "link"))

        def act(folder):
            return [told(opened, os.path.join(folder, name), flag | os.O_CREAT)
                    for name, _, flag in names] + [
                        told(opened, os.path.join(folder, name),
                             os.O_RDWR | os.O_CREAT)
                        for name in ("folder", "link")]

        self.compare(lambda folder: os.chmod(folder, 0o777), warm, change,
                     users.alice, act)

    def create_race(self, seconds):
        """Root's file comes and goes while a user makes and opens that name."""
        with self.mounted() as (source, point):
            os.chmod(source, 0o777)
            name = os.path.join(source, "name")
            # Root's own, and linked into place in one step.
            make(os.path.join(source, "secret"), "secret", 0o600)
            ended = threading.Event()

            def below():
                while not ended.is_set():
                    for step in (lambda: os.link(name + ".secret", name),
                                 lambda: os.unlink(name)):
                        with contextlib.suppress(FileExistsError,
                                                 FileNotFoundError):
                            step()

            os.rename(os.path.join(source, "secret"), name + ".secret")

            def user():
                results = {}
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    path = os.path.join(point, "name")
                    came = told(opened, path, os.O_RDWR | os.O_CREAT)
                    results[came] = results.get(came, 0) + 1
                    told(os.unlink, path)
                return results

            thread = threading.Thread(target=below)
            thread.start()
            try:
                text = acting(users.alice, user)
            finally:
                ended.set()
                thread.join()
            expect("of 0" not in text and "Error" not in text, text)
            expect(f"of {users.ALICE}, 0 bytes" in text, text)
            expect("EACCES" in text, f"they never met: {text}")
            # The kernel asks again, but only once.
            counts = eval(text)  # pylint: disable=eval-used
            expect(counts.get("ESTALE", 0) * 10 < sum(counts.values()), text)
            with open(name + ".secret", encoding="utf-8") as secret:
                expect_equal(secret.read(), "secret", "what is in it")
            return text

    def exclusive_race(self, names):
        """One makes a file below and one through the mount, at the same moment:
        it is new to one of them only."""
        with self.mounted() as (source, point):
            os.chmod(source, 0o777)
            turn = mmap.mmap(-1, 8)  # shared: the number that is being made

            def maker(folder):
                made = []
                chance = random.Random(1)
                for number in range(names):
                    path = os.path.join(folder, str(number))
                    if folder == point:
                        turn[:] = struct.pack("Q", number + 1)
                    else:
                        while struct.unpack("Q", turn[:])[0] <= number:
                            pass
                        # About as long as it takes the other one.
                        for _ in range(chance.randrange(300)):
                            pass
                    came = told(os.open, path,
                                os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
                    if came != "EEXIST":
                        expect(came.isdigit(), came)
                        made.append(number)
                        os.close(int(came))
                return made

            results = {}

            def run(where, folder):
                results[where] = acting(users.alice, maker, folder)

            threads = [threading.Thread(target=run, args=arguments)
                       for arguments in (("below", source), ("seen", point))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            made = {where: set(eval(text))  # pylint: disable=eval-used
                    for where, text in results.items()}
            expect_equal(made["below"] & made["seen"], set(),
                         "files that are new to both")
            expect_equal(len(made["below"] | made["seen"]), names, "files made")
            return f"{len(made['seen'])} of {names} through the mount"

    # --- names that come to mean something else

    def sticky_directory(self):
        """Others' files in a sticky directory that bear a name of ours."""
        names = ("removed", "moved", "swapped", "replaced")

        def prepare(folder):
            make_folder(os.path.join(folder, "sticky"), 0o1777)
            for name in names:
                make(os.path.join(folder, "sticky", name), "mine",
                     owner=users.ALICE)
            make(os.path.join(folder, "sticky", "source"), "mine",
                 owner=users.ALICE)
            make_folder(os.path.join(folder, "sticky", "folder"), 0o777,
                        users.ALICE)

        def warm(folder):
            os.chdir(os.path.join(folder, "sticky"))
            return [oct(os.stat(name).st_mode) for name in
                    (*names, "source", "folder", ".")]

        def change(folder):
            for name in names:
                replace(os.path.join(folder, "sticky", name),
                        content="root's", mode=0o666)
            os.rmdir(os.path.join(folder, "sticky", "folder"))
            make_folder(os.path.join(folder, "sticky", "folder"), 0o777)

        def act(_):
            return [told(os.unlink, "removed"),
                    told(os.rename, "moved", "elsewhere"),
                    told(exchange, "swapped", "source"),
                    told(os.rename, "source", "replaced"),
                    told(os.rmdir, "folder"),
                    sorted(os.listdir("."))]

        self.compare(prepare, warm, change, users.alice, act)

    def shut_directory(self):
        """A directory that is shut below, while the kernel remembers it open."""
        self.shut(users.alice, 0o777, 0, 0o755)

    def shut_to_the_group(self):
        self.shut(users.bob, 0o770, users.TEAM, 0o750)

    def shut(self, who, before, group, after):
        def prepare(folder):
            make_folder(os.path.join(folder, "dir"), before, 0, group)
            for name in ("removed", "moved", "linked", "replaced"):
                make(os.path.join(folder, "dir", name), "content", 0o666)
            os.mkdir(os.path.join(folder, "dir", "folder"))

        def warm(folder):
            os.chdir(os.path.join(folder, "dir"))
            return [oct(os.stat(name).st_mode) for name in
                    (".", "removed", "moved", "linked", "replaced", "folder")]

        def change(folder):
            os.chmod(os.path.join(folder, "dir"), after)

        def act(_):
            return [told(os.unlink, "removed"),
                    told(os.rmdir, "folder"),
                    told(os.rename, "moved", "elsewhere"),
                    told(os.link, "linked", "another"),
                    told(os.rename, "moved", "replaced"),
                    told(os.mkdir, "made"),
                    told(os.symlink, "x", "symlink"),
                    told(os.mknod, "node", stat.S_IFIFO | 0o600),
                    told(opened, "created", os.O_RDWR | os.O_CREAT),
                    told(opened, ".", os.O_RDWR | os.O_TMPFILE)]

        said = self.compare(prepare, warm, change, who, act)
        expect(said.count("EACCES") == 10, f"nothing was shut: {said}")

    # --- rights by something else than user and group

    def names_of(self, who, owner, group, mode, victim):
        """Everything that changes names, where `who` may do it below."""
        def prepare(folder):
            make_folder(os.path.join(folder, "dir"), mode, owner, group)
            for name in ("removed", "moved", "swapped", "swapped2", "linked",
                         "replaced"):
                make(os.path.join(folder, "dir", name), "content", 0o666,
                     victim)
            make_folder(os.path.join(folder, "dir", "folder"), 0o777, victim)
            make_folder(os.path.join(folder, "dir", "full"), 0o777, victim)
            make(os.path.join(folder, "dir", "full", "x"), owner=victim)

        def act(folder):
            if told(os.chdir, os.path.join(folder, "dir")) != "ok":
                return "no way in"
            return [told(os.unlink, "removed"),
                    told(os.rmdir, "folder"),
                    told(os.rmdir, "full"),
                    told(os.rename, "moved", "elsewhere"),
                    told(exchange, "swapped", "swapped2"),
                    told(os.link, "linked", "another"),
                    told(os.rename, "elsewhere", "replaced"),
                    told(os.mkdir, "made"),
                    told(os.rename, "made", "full/made"),
                    told(os.symlink, "x", "symlink"),
                    told(os.mknod, "node", stat.S_IFIFO | 0o600),
                    told(opened, "created", os.O_RDWR | os.O_CREAT),
                    told(os.unlink, "created"),
                    told(os.rename, "missing", "x"),
                    told(os.unlink, "missing"),
                    told(opened, ".", os.O_RDWR | os.O_TMPFILE)]

        return self.compare(prepare, lambda _: "", lambda _: None, who, act)

    def by_group(self):
        said = self.names_of(users.bob, 0, users.TEAM, 0o770, 0)
        expect("EACCES" not in said, f"the group may not: {said}")

    def by_capability(self):
        said = self.names_of(users.able, 0, 0, 0o1700, users.BOB)
        expect("EACCES" not in said and "EPERM" not in said,
               f"capabilities do not help: {said}")

    def by_namespace(self):
        """Root of a user namespace, over files of its users and of others."""
        one, other = users.MAPPED + 5, users.MAPPED + 6
        said = self.names_of(users.mapped_root, one, one, 0o1700, other)
        expect("EACCES" not in said and "EPERM" not in said,
               f"root of the namespace may not: {said}")
        # A stranger's file in its own sticky directory, and the reverse.
        said = self.names_of(users.mapped_root, one, one, 0o1700, users.BOB)
        expect("EPERM" in said, f"others' files are not safe: {said}")
        self.names_of(users.mapped_root, users.BOB, users.BOB, 0o700, one)
        self.names_of(users.mapped_root, 0, 0, 0o1777, 0)

    def by_nothing(self):
        self.names_of(users.alice, users.BOB, users.BOB, 0o755, users.ALICE)
        self.names_of(users.alice, users.BOB, users.BOB, 0o1777, users.BOB)
        self.names_of(users.bob, 0, users.TEAM, 0o1770, users.ALICE)

    # --- what the daemon does for itself

    def rotated_trace(self):
        """Parts of a trace are made by threads that act for a user, in a folder
        that is not his."""
        traces = self.suite.folder("traces", mode=0o700)
        try:
            self.rotated_trace_in(traces)
        finally:
            self.suite.remove("traces")

    def rotated_trace_in(self, traces):
        files = 1500
        with self.suite.file_system("source", self.kind) as source:
            os.chmod(source, 0o777)
            point = self.suite.folder("mnt")
            trace = os.path.join(traces, "trace")
            mount = self.suite.mount(
                source, point,
                ("", "STR_ALL", f'file = "{trace}" buf = 4K rotate_size = 64K'),
                visibility=self.setting[0], transport=self.setting[1])

            def work():
                for number in range(files):
                    path = os.path.join(point, f"file-{number}")
                    opened(path, os.O_RDWR | os.O_CREAT)
                    os.unlink(path)

            expect_equal(acting(users.alice, work), "None", "the work")
            mount.unmount()
            parts = [os.path.join(traces, name)
                     for name in sorted(os.listdir(traces))]
            sizes = [os.stat(part).st_size for part in parts]
            expect(len(parts) > 2, f"parts of {sizes} bytes")
            for part in parts:
                expect_equal(os.stat(part).st_uid, 0, f"the owner of {part}")
            events = self.suite.read(*parts)
            expect_equal(len([e for e in events if e["op"] == "unlink"]),
                         files, "unlinks in the trace")


def exchange(one, other):
    if users.LIBC.renameat2(-100, one.encode(), -100, other.encode(), 2) != 0:
        number = users.ctypes.get_errno()
        raise OSError(number, "")


def options(parser):
    parser.add_argument("--all", action="store_true",
                        help="every visibility over every transport")
    parser.add_argument("--seconds", type=float, default=2, metavar="N",
                        help="of a race (default: 2)")


def main():
    suite = Suite("rights", __doc__, options)
    settings = [("ext4", "exact", "dev", ALL),
                ("tmpfs", "auto", "uring", LEFT_TO_KERNEL),
                ("overlay", "fast", "dev", LEFT_TO_KERNEL),
                ("xfs", "auto", "dev", ALL),
                ("btrfs", "fast", "uring", LEFT_TO_KERNEL)]
    if suite.options.all:
        settings = [(kind, visibility, transport, filter_text)
                    for kind in ("ext4", "xfs", "btrfs", "overlay", "tmpfs")
                    for visibility in VISIBILITIES
                    for transport in TRANSPORTS
                    for filter_text in (ALL, LEFT_TO_KERNEL)]
    run_settings(suite, settings, lambda rights: (
        ("creation that meets a file", rights.create_meets_a_file),
        ("creation in a race", rights.create_race, suite.options.seconds),
        ("exclusive creation in a race", rights.exclusive_race, 2000),
        ("files replaced in a sticky directory", rights.sticky_directory),
        ("a directory shut below", rights.shut_directory),
        ("a directory shut to its group", rights.shut_to_the_group),
        ("names by group", rights.by_group),
        ("names by capability", rights.by_capability),
        ("names by user namespace", rights.by_namespace),
        ("names of others", rights.by_nothing),
        ("parts of a trace", rights.rotated_trace)), Rights)
    suite.finish()


if __name__ == "__main__":
    main()
