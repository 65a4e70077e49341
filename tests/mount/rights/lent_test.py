#!/usr/bin/env python3
"""The daemon lends nobody a right that he does not hold over that file or
directory at that moment: where root changes owners and modes from below, what
comes of a user's calls through the mount is what comes of them there.

First in turn (all that the kernel remembers of the file is old), then in races
with whoever changes it, and then chown(-1, -1), which changes nothing but may
clear set-id bits.

  lent_test.py --bin build/release/bin                seconds, for ctest
  lent_test.py --bin build/release/bin --all          every setting
"""

import contextlib
import ctypes
import errno
import os
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
from compared import (ACCESS_ACL, ALL, LEFT_TO_KERNEL,  # noqa: E402
                      Compared, make, make_folder, run_settings, set_flags)
import users  # noqa: E402
from users import acting, told  # noqa: E402

AT_FDCWD = -100
# CAP_NET_RAW, permitted and effective (VFS_CAP_REVISION_2).
FILE_CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
SET_ID = stat.S_ISUID | stat.S_ISGID

CALLERS = {"a user": users.alice, "a member of the group": users.bob,
           "a user with capabilities": users.able,
           "root of a user namespace": users.mapped_root,
           "root without capabilities": users.bare_root}


def mode_of(fd):
    status = os.fstat(fd)
    return f"{status.st_mode:o} of {status.st_uid}:{status.st_gid}"


def creations(folder):
    """Every way to make a file with a set-gid bit, and what it then has."""
    os.umask(0)
    said = []

    def note(call, *arguments):
        came = told(call, *arguments)
        said.append(mode_of(int(came)) if came.isdigit() else came)

    directory = os.open(folder, os.O_RDONLY)
    for mode in (0o2755, 0o2644, 0o6711, 0o755):
        note(os.open, os.path.join(folder, f"opened-{mode:o}"),
             os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        note(os.mknod, os.path.join(folder, f"node-{mode:o}"),
             stat.S_IFREG | mode)
        note(os.mknod, os.path.join(folder, f"fifo-{mode:o}"),
             stat.S_IFIFO | mode)
        note(os.open, folder, os.O_RDWR | os.O_TMPFILE, mode)
        note(lambda name, mode: os.mknod(name, mode, dir_fd=directory),
             f"at-{mode:o}", stat.S_IFREG | mode)
    note(os.mkdir, os.path.join(folder, "directory"), 0o2755)
    return said


def write_to(path, flags):
    fd = os.open(path, flags)
    try:
        return os.write(fd, b"new")
    finally:
        os.close(fd)


def changes(path, fd):
    """Every call that changes what a file is, by name and by descriptor.
    "owner": for the owner; "writer": for whoever may write as well."""
    return {
        "owner": [
            (os.chmod, path, 0o4755), (os.chmod, path, 0o2755),
            (os.fchmod, fd, 0o4755), (os.fchmod, fd, 0o2755),
            (os.fchmod, fd, 0o6711), (os.fchmod, fd, 0o644),
            (os.chown, path, -1, users.TEAM), (os.fchown, fd, -1, users.TEAM),
            (os.chown, path, users.ALICE, -1),
            (os.fchown, fd, users.ALICE, users.ALICE),
            (os.utime, path, (1, 2)), (os.utime, fd, (1, 2)),
            (os.setxattr, fd, "system.posix_acl_access", ACCESS_ACL),
            (os.removexattr, fd, "system.posix_acl_access"),
            (set_flags, fd)],
        "writer": [
            (os.utime, path), (os.utime, fd),
            (os.setxattr, path, "user.one", b"1"),
            (os.setxattr, fd, "user.two", b"2"),
            (os.removexattr, fd, "user.there"),
            (os.truncate, path, 3),
            (write_to, path, os.O_WRONLY), (write_to, path, os.O_RDWR),
            (write_to, path, os.O_WRONLY | os.O_TRUNC),
            (write_to, path, os.O_RDWR | os.O_CREAT | os.O_TRUNC),
            (write_to, path, os.O_WRONLY | os.O_APPEND)]}


class Lent(Compared):
    # --- in turn

    def set_gid_by_creation(self, who):
        """In a directory that has become set-gid for a group below."""
        def prepare(folder):
            os.umask(0)
            for name, owner in (("dir", 0), ("mapped", users.MAPPED + 5)):
                make_folder(os.path.join(folder, name), 0o777, owner)

        def warm(folder):
            return [os.stat(os.path.join(folder, name)).st_mode
                    for name in ("dir", "mapped")]

        def change(folder):
            for name, group in (("dir", users.TEAM),
                                ("mapped", users.MAPPED + 7)):
                path = os.path.join(folder, name)
                os.chown(path, -1, group)
                os.chmod(path, 0o2777)

        def act(folder):
            return [creations(os.path.join(folder, name))
                    for name in ("dir", "mapped")]

        said = self.compare(prepare, warm, change, who, act)
        if who is users.alice:
            expect("100755 of 61001:61002" in said, said)

    def set_gid_of_members(self, who):
        """And who is in the group keeps the bit, as below."""
        def prepare(folder):
            make_folder(os.path.join(folder, "dir"), 0o2777, 0, users.TEAM)
            make_folder(os.path.join(folder, "mapped"), 0o2777,
                        users.MAPPED + 5, users.MAPPED + 7)
            make(os.path.join(folder, "file"), "x", 0o755, users.BOB,
                 users.TEAM)

        def act(folder):
            said = [creations(os.path.join(folder, name))
                    for name in ("dir", "mapped")]
            path = os.path.join(folder, "file")
            said += [told(os.chmod, path, mode) for mode in (0o2755, 0o2711)]
            said.append(told(os.setxattr, path, "system.posix_acl_access",
                             ACCESS_ACL))
            return said

        said = self.compare(prepare, lambda _: "", lambda _: None, who, act)
        if who is users.bob:
            expect("102755 of 61003:61002" in said, said)

    def files_given_away(self, who, owner, new_owner, kind):
        """Files that were `owner`'s when the caller opened them, and are
        another's now."""
        count = len(changes("", 0)[kind])

        def prepare(folder):
            for number in range(count):
                path = os.path.join(folder, str(number))
                make(path, "content", 0o666, owner)
                os.setxattr(path, "user.there", b"1")

        held = []

        def warm(folder):
            held[:] = [os.open(os.path.join(folder, str(number)), os.O_RDONLY)
                       for number in range(count)]
            return [os.fstat(fd).st_uid for fd in held]

        def change(folder):
            for number in range(count):
                path = os.path.join(folder, str(number))
                os.chown(path, new_owner, new_owner)
                os.chmod(path, 0o755)

        def act(folder):
            said = []
            for number, fd in enumerate(held):
                path = os.path.join(folder, str(number))
                call, *arguments = changes(path, fd)[kind][number]
                said.append(told(call, *arguments))
            return said

        said = self.compare(prepare, warm, change, who, act)
        if who is users.alice:
            # Setting modes and ACLs, and all that takes the right to write.
            expect(said.count("EPERM") + said.count("EACCES") >= count - 2,
                   said)

    def files_shared(self):
        """Whoever may change a file by a group or a capability still does."""
        for who, owner, group, mode in (
                (users.bob, 0, users.TEAM, 0o664),
                (users.able, 0, 0, 0o600),
                (users.mapped_root, users.MAPPED + 5, users.MAPPED + 6, 0o600),
                (users.mapped_root, users.MAPPED + 5, 0, 0o600),
                (users.mapped_root, 0, users.MAPPED + 5, 0o640),
                (users.bare_root, users.ALICE, users.ALICE, 0o600),
                (users.bare_root, 0, 0, 0o600),
                (lambda: None, users.ALICE, users.ALICE, 0o600)):
            for kind in ("owner", "writer"):
                self.changed_by(who, owner, group, mode, kind)

    def changed_by(self, who, owner, group, mode, kind):
        count = len(changes("", 0)[kind])

        def prepare(folder):
            for number in range(count):
                path = os.path.join(folder, str(number))
                make(path, "content", mode, owner, group)
                os.setxattr(path, "user.there", b"1")

        def act(folder):
            said = []
            for number in range(count):
                path = os.path.join(folder, str(number))
                opened = told(os.open, path, os.O_RDONLY)
                fd = int(opened) if opened.isdigit() else -1
                call, *arguments = changes(path, fd)[kind][number]
                said.append((told(call, *arguments), fd >= 0))
            return said

        self.compare(prepare, lambda _: "", lambda _: None, who, act)

    # --- descriptors that another has opened

    def descriptors_passed(self, who):
        """What root has opened, and a process that is not root has: it may do
        with it what the descriptor allows, and no more."""
        opened = {}
        flags = {"both": os.O_RDWR, "read": os.O_RDONLY, "path": os.O_PATH,
                 "append": os.O_WRONLY | os.O_APPEND}

        def prepare(folder):
            for name in flags:
                make(os.path.join(folder, name), "content", 0o600)
                for attribute in ("user.there", "trusted.there"):
                    os.setxattr(os.path.join(folder, name), attribute, b"1")
            make_folder(os.path.join(folder, "dir"), 0o700)
            make(os.path.join(folder, "dir", "inside"), "content", 0o600)

        def hold(folder):
            for name, how in flags.items():
                opened[name] = os.open(os.path.join(folder, name), how)
            opened["dir"] = os.open(os.path.join(folder, "dir"), os.O_RDONLY)
            return list(opened.values())

        def again(fd, how):
            return os.close(os.open(f"/proc/self/fd/{fd}", how))

        def act(folder):
            said = []
            folder_fd = opened["dir"]
            for name in flags:
                fd = opened[name]
                for call, *arguments in (
                        (os.pread, fd, 100, 0), (os.write, fd, b"more"),
                        (os.ftruncate, fd, 5), (os.fchmod, fd, 0o6777),
                        (os.fchown, fd, os.getuid(), -1), (os.utime, fd),
                        (os.utime, fd, (1, 2)),
                        (os.posix_fallocate, fd, 0, 9000),
                        (os.setxattr, fd, "user.new", b"1"),
                        (os.getxattr, fd, "user.there"), (os.listxattr, fd),
                        (os.getxattr, fd, "trusted.there"),
                        (os.removexattr, fd, "user.there"),
                        (set_flags, fd), (again, fd, os.O_RDONLY),
                        (again, fd, os.O_RDWR),
                        (again, fd, os.O_WRONLY | os.O_TRUNC),
                        (os.chmod, f"/proc/self/fd/{fd}", 0o4755),
                        (os.truncate, f"/proc/self/fd/{fd}", 1),
                        (os.copy_file_range, opened["both"], fd, 3, 0, 0)):
                    said.append((name, call.__name__, told(call, *arguments)))
                said.append((name, "link", told(
                    lambda at=fd, n=name: os.link(
                        f"/proc/self/fd/{at}", os.path.join(folder, n + "-2"),
                        follow_symlinks=True))))
            for call, arguments, named in (
                    (os.open, ("inside", os.O_RDONLY), {"dir_fd": folder_fd}),
                    (os.access, ("inside", os.R_OK), {"dir_fd": folder_fd}),
                    (os.mkdir, ("made",), {"dir_fd": folder_fd}),
                    (os.unlink, ("inside",), {"dir_fd": folder_fd}),
                    (os.rename, ("inside", "other"),
                     {"src_dir_fd": folder_fd, "dst_dir_fd": folder_fd}),
                    (os.listdir, (folder_fd,), {}), (os.fchdir, (folder_fd,), {}),
                    (os.fchmod, (folder_fd, 0o777), {})):
                said.append((call.__name__, told(call, *arguments, **named)))
            return said

        self.compare(prepare, lambda _: "", lambda _: None, who, act,
                     hold=hold)

    # --- handles

    def handles(self):
        """The mount gives none, and opens none: neither those of the directory
        below, which root may open there, nor made-up ones of its own."""
        def of(handle_type, text):
            return struct.pack("Ii", len(text), handle_type) + text

        def opened(folder, handle):
            at = os.open(folder, os.O_RDONLY)
            try:
                fd = users.LIBC.open_by_handle_at(
                    at, ctypes.create_string_buffer(handle), os.O_RDWR)
                return "opened" if fd >= 0 else errno.errorcode[
                    ctypes.get_errno()]
            finally:
                os.close(at)

        def handle_of(path):
            room = ctypes.create_string_buffer(of(0, bytes(128)))
            came = users.LIBC.name_to_handle_at(
                AT_FDCWD, path.encode(), room, ctypes.byref(ctypes.c_int()), 0)
            return room.raw if came == 0 else errno.errorcode[
                ctypes.get_errno()]

        with self.mounted() as (source, point):
            make(os.path.join(source, "file"), "content", 0o666)
            below = handle_of(os.path.join(source, "file"))
            os.stat(os.path.join(point, "file"))
            number = os.stat(os.path.join(point, "file")).st_ino
            made_up = [of(kind, struct.pack(layout, node, generation))
                       for kind, layout in ((0x81, "=QI"), (1, "=II"))
                       for node in (1, 2, number & 0xffffffff)
                       for generation in (0, 1)]
            said = {}
            for title, who in [*CALLERS.items(), ("root", lambda: None)]:
                expect_equal(acting(who, handle_of,
                                    os.path.join(point, "file")),
                             "ENOTSUP", f"{title} asks for a handle")
                said[title] = acting(who, opened, source, below)
                for handle in (below, *made_up):
                    came = acting(who, opened, point, handle)
                    expect(came in ("ESTALE", "EPERM", "ENOTSUP"),
                           f"{title} opens {handle!r}: {came}")
            expect_equal(said, {**dict.fromkeys(CALLERS, "EPERM"),
                                "root": "opened"}, "below")

    # --- races

    def race(self, who, below, user, seconds):
        """What comes of `user(folder, until)` while `below(folder)` runs again
        and again; once below and once through the mount."""
        with self.mounted() as (source, point):
            results = {}
            for where in ("direct", "mounted"):
                folder = os.path.join(source, where)
                make_folder(folder, 0o777)
                ended = threading.Event()
                noted = set()

                def change(at=folder, end=ended, notes=noted):
                    while not end.is_set():
                        notes.update(below(at) or ())

                thread = threading.Thread(target=change)
                below(folder)
                thread.start()
                try:
                    seen = folder if where == "direct" else os.path.join(
                        point, where)
                    text = acting(who, user, seen, time.monotonic() + seconds)
                finally:
                    ended.set()
                    thread.join()
                results[where] = text, noted
            return results

    def creation_race(self, who, seconds):
        """A directory is set-gid for a moment, again and again."""
        def below(folder):
            path = os.path.join(folder, "dir")
            if not os.path.isdir(path):
                os.mkdir(path)
            os.chown(path, 0, users.TEAM)
            os.chmod(path, 0o2777)
            os.chmod(path, 0o777)

        def user(folder, until):
            os.umask(0)
            made = {}
            directory = os.path.join(folder, "dir")
            while time.monotonic() < until:
                for way in (lambda p: os.close(os.open(
                        p, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o2755)),
                            lambda p: os.mknod(p, stat.S_IFREG | 0o2755)):
                    path = os.path.join(directory, "made")
                    came = told(way, path)
                    if came == "ok":
                        status = os.stat(path)
                        came = f"{status.st_mode:o}:{status.st_gid}"
                        os.unlink(path)
                    made[came] = made.get(came, 0) + 1
            return made

        results = self.race(who, below, user, seconds)
        for where, (text, _) in results.items():
            for group in (users.TEAM, 65534):  # as a namespace tells it
                expect(f"102755:{group}" not in text, f"{where}: {text}")
        text = results["mounted"][0]
        expect("100755:" in text and "102755:" in text, text)
        return text

    def chmod_race(self, who, owner, seconds):
        """A file is its user's and root's in turn; he asks for set-id bits."""
        def below(folder):
            path = os.path.join(folder, "file")
            if not os.path.exists(path):
                make(path, "content", 0o755, owner)
            noted = set()
            os.chown(path, 0, 0)
            for _ in range(20):
                status = os.stat(path)
                # A chmod that had begun before; the bits go with the chown.
                if status.st_mode & SET_ID:
                    noted.add(f"{status.st_mode:o} of {status.st_uid}")
            os.chmod(path, 0o755)
            os.chown(path, owner, owner)
            return noted

        def user(folder, until):
            said = {}
            fd = os.open(os.path.join(folder, "file"), os.O_RDONLY)
            while time.monotonic() < until:
                os.fstat(fd)  # whose it is at this moment
                for mode in (0o6755, 0o755):
                    came = told(os.fchmod, fd, mode)
                    said[came] = said.get(came, 0) + 1
            return said

        results = self.race(who, below, user, seconds)
        expect_equal(results["mounted"][1], results["direct"][1],
                     "set-id bits of root's file")
        expect("EPERM" in results["mounted"][0], results["mounted"][0])
        return results["mounted"][0]

    # --- chown(-1, -1)

    def chown_of_nobody(self, who):
        """It clears set-id bits and capabilities of files that are the
        caller's, and of nobody else's."""
        modes = (0o755, 0o4755, 0o2755, 0o6755, 0o2745, 0o4711, 0o600)
        owners = (users.ALICE, users.BOB, 0, users.MAPPED + 5)
        names = [(f"{kind}-{owner}-{mode:o}", kind, owner, mode)
                 for kind in ("plain", "able", "held") for owner in owners
                 for mode in modes]

        def prepare(folder):
            for name, kind, owner, mode in names:
                path = os.path.join(folder, name)
                make(path, "content", mode, owner)
                if kind == "able":
                    os.setxattr(path, "security.capability", FILE_CAPABILITY)
            for owner in owners:
                make_folder(os.path.join(folder, f"dir-{owner}"), 0o6755,
                            owner)

        def warm(folder):
            return [os.stat(os.path.join(folder, name[0])).st_mode
                    for name in names]

        def act(folder):
            said = []
            everything = [name[0] for name in names] + [
                f"dir-{owner}" for owner in owners]
            for name in everything:
                path = os.path.join(folder, name)
                before = os.lstat(path)
                time.sleep(0.002)
                came = told(os.chown, path, -1, -1)
                after = os.lstat(path)
                if name.startswith("held"):
                    # Before a write to such a file the kernel asks the same of
                    # the daemon, which must not fail: it strips nothing, and
                    # says so or not.
                    came = "ok or EPERM"
                said.append((name, came, f"{after.st_mode:o}",
                             after.st_ctime_ns != before.st_ctime_ns))
            return said

        def hold(folder):
            return [os.open(os.path.join(folder, name), os.O_WRONLY)
                    for name, kind, _, _ in names if kind == "held"]

        self.compare(prepare, warm, lambda _: None, who, act, hold=hold)

    def writing_clears(self):
        """Whoever may write to another's set-id file clears its bits by that,
        and what is run then is not privileged."""
        def prepare(folder):
            for mode in (0o4777, 0o2777, 0o6777, 0o2767):
                for way in ("write", "truncate", "fallocate", "map"):
                    path = os.path.join(folder, f"{way}-{mode:o}")
                    make(path, "content", mode, users.BOB)
                    os.setxattr(path, "security.capability", FILE_CAPABILITY)

        def act(folder):
            said = []
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                fd = os.open(path, os.O_RDWR)
                before = mode_of(fd)
                {"write": lambda f: os.write(f, b"x"),
                 "truncate": lambda f: os.ftruncate(f, 2),
                 "fallocate": lambda f: os.posix_fallocate(f, 0, 100),
                 "map": lambda f: None}[name.split("-")[0]](fd)
                said.append((name, before, mode_of(fd)))
                os.close(fd)
            return said

        self.compare(prepare, lambda _: "", lambda _: None, users.alice, act)


def options(parser):
    parser.add_argument("--all", action="store_true",
                        help="every visibility over every transport")
    parser.add_argument("--seconds", type=float, default=1, metavar="N",
                        help="of a race (default: 1)")


def cases_of(lent, seconds):
    for title, who in CALLERS.items():
        yield f"set-gid by creation, {title}", lent.set_gid_by_creation, who
        yield f"set-gid of members, {title}", lent.set_gid_of_members, who
        yield f"chown(-1, -1), {title}", lent.chown_of_nobody, who
        yield f"descriptors passed, {title}", lent.descriptors_passed, who
    for title, who, owner, new_owner in (
            ("a user", users.alice, users.ALICE, 0),
            ("root of a user namespace", users.mapped_root,
             users.MAPPED + 5, 0),
            ("root without capabilities", users.bare_root, 0, users.BOB)):
        for kind in ("owner", "writer"):
            yield (f"files given away, {title}, as {kind}",
                   lent.files_given_away, who, owner, new_owner, kind)
        if who is not users.bare_root:
            yield (f"chmod in a race, {title}", lent.chmod_race, who, owner,
                   seconds)
    yield "handles", lent.handles
    yield "files shared", lent.files_shared
    yield "writing clears", lent.writing_clears
    for title, who in (("a user", users.alice),
                       ("root of a user namespace", users.mapped_root)):
        yield (f"set-gid by creation in a race, {title}", lent.creation_race,
               who, seconds)


def main():
    suite = Suite("lent", __doc__, options)
    settings = [("ext4", "exact", "dev", ALL),
                ("tmpfs", "auto", "uring", LEFT_TO_KERNEL),
                ("xfs", "fast", "dev", ALL)]
    if suite.options.all:
        settings = [(kind, visibility, transport, filter_text)
                    for kind in ("ext4", "xfs", "btrfs", "overlay", "tmpfs")
                    for visibility in VISIBILITIES
                    for transport in TRANSPORTS
                    for filter_text in (ALL, LEFT_TO_KERNEL)]
    run_settings(suite, settings, lambda lent: cases_of(
        lent, suite.options.seconds), Lent)
    suite.finish()


if __name__ == "__main__":
    main()
