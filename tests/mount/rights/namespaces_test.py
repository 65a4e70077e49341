#!/usr/bin/env python3
"""Users of user namespaces may do through the mount what they may do there: 22
calls by each of four callers, whose 88 results and the trees left behind are
those of the bare directory; in every visibility, over both transports, traced
or not, over the source and elsewhere, which are 24 settings.

  namespaces_test.py --bin build/release/bin
"""

import ast
import ctypes
import os
import stat
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (TRANSPORTS, VISIBILITIES, Skip,  # noqa: E402
                             Suite, expect, expect_equal)
from compared import ALL, LEFT_TO_KERNEL, make, make_folder  # noqa: E402
from trees import expect_same_tree, tree_digest  # noqa: E402
import users  # noqa: E402
from users import acting, told  # noqa: E402

ONE = users.MAPPED + 5
AT_FDCWD = -100


def unshare_mapping_one(number):
    """A namespace in which the caller's own id is root's, and no other is."""
    if users.LIBC.unshare(users.CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {number} 1"),
                       ("gid_map", f"0 {number} 1")):
        with open(f"/proc/self/{name}", "wb", buffering=0) as out:
            out.write(text.encode())


def own_root():
    users.alice()
    unshare_mapping_one(users.ALICE)


def mapped_user():
    users.mapped_root()
    users.become(5, 5)


def nested_root():
    users.mapped_root()
    unshare_mapping_one(0)


CALLERS = {"root of a namespace": users.mapped_root,
           "user of a namespace": mapped_user,
           "root of a user's own namespace": own_root,
           "root of a namespace in another": nested_root}


def prepare(folder):
    for name, owner, mode in (("mapped", ONE, 0o600),
                              ("alice", users.ALICE, 0o600),
                              ("root", 0, 0o644),
                              ("set-id", ONE, 0o6755)):
        make(os.path.join(folder, "f-" + name), "content", mode, owner)
    for name, owner, mode in (("mapped", ONE, 0o700),
                              ("alice", users.ALICE, 0o700),
                              ("root", 0, 0o755), ("sticky", 0, 0o1777),
                              ("set-gid", ONE, 0o2777)):
        make_folder(os.path.join(folder, "d-" + name), mode, owner)
    make(os.path.join(folder, "d-mapped", "moved"), "x", 0o600, ONE)
    for name, owner in (("mapped", ONE), ("root", 0)):
        make(os.path.join(folder, "d-sticky", name), "x", 0o666, owner)


def write(path):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        return os.write(fd, b"more")
    finally:
        os.close(fd)


def read(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def create(path, mode=0o2755):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))


def battery(folder):
    """22 results."""
    os.umask(0o022)
    at = lambda name: os.path.join(folder, name)
    return [told(call, *arguments) for call, *arguments in (
        (read, at("f-mapped")), (write, at("f-mapped")),
        (read, at("f-alice")), (write, at("f-root")),
        (os.chmod, at("f-mapped"), 0o6755), (os.chmod, at("f-root"), 0o666),
        (os.chown, at("f-mapped"), 7, 7), (os.chown, at("f-alice"), -1, 0),
        (os.chown, at("f-root"), 0, 0), (os.chown, at("f-set-id"), -1, -1),
        (create, at("d-mapped/made")), (create, at("d-alice/made")),
        (create, at("d-root/made")), (create, at("d-set-gid/made")),
        (os.unlink, at("d-sticky/mapped")), (os.unlink, at("d-sticky/root")),
        (os.rename, at("d-mapped/moved"), at("d-sticky/moved")),
        (os.link, at("f-root"), at("d-sticky/link")),
        (os.mknod, at("d-mapped/null"), stat.S_IFCHR | 0o666,
         os.makedev(1, 3)),
        (os.setxattr, at("f-mapped"), "user.a", b"1"),
        (os.setxattr, at("f-mapped"), "trusted.a", b"1"),
        (os.utime, at("f-alice"), (1, 2)))]


def opened_by_handle(point, handle):
    """What comes of opening a file of the directory below by its handle, with
    the mount as where it is."""
    text = ctypes.create_string_buffer(handle)
    fd = os.open(point, os.O_RDONLY)
    got = users.LIBC.open_by_handle_at(fd, text, os.O_RDONLY)
    return "opened" if got >= 0 else "refused"


def handle_of(path):
    room = 128
    text = ctypes.create_string_buffer(struct.pack("Ii", room, 0) +
                                       bytes(room))
    mount = ctypes.c_int()
    if users.LIBC.name_to_handle_at(AT_FDCWD, path.encode(), text,
                                    ctypes.byref(mount), 0) != 0:
        raise Skip("no handles below")
    return text.raw


def compared(suite, visibility, transport, covered, filter_text):
    """All results in one setting."""
    with suite.file_system("source", "tmpfs") as source:
        bare = suite.folder("bare")
        subprocess.run(["mount", "--bind", source, bare], check=True)
        try:
            point = source if covered else suite.folder("mnt")
            number = len(os.listdir(suite.scratch))
            trace = suite.path(f"trace-{number}-{visibility}-{transport}-"
                               f"{covered}-{filter_text != ALL}")
            mount = suite.mount(source, point, (filter_text, "STR_ALL",
                                                f'file = "{trace}"'),
                                visibility=visibility, transport=transport)
            results = 0
            for at, (title, who) in enumerate(CALLERS.items()):
                folders = {}
                said = {}
                for where, seen in (("direct", bare), ("mounted", point)):
                    name = f"{at}-{where}"
                    folders[where] = os.path.join(bare, name)
                    make_folder(folders[where], 0o755)
                    prepare(folders[where])
                    said[where] = acting(who, battery,
                                         os.path.join(seen, name))
                expect_equal(said["mounted"], said["direct"], title)
                expect_same_tree(tree_digest(folders["mounted"], times=False),
                                 tree_digest(folders["direct"], times=False),
                                 title)
                results += len(ast.literal_eval(said["direct"]))
                secret = handle_of(os.path.join(folders["direct"], "f-root"))
                expect_equal(acting(who, opened_by_handle, point, secret),
                             "refused", f"{title}, by a handle")
            mount.unmount()
            expect(results == 88, f"{results} results")
            return f"{results} results"
        finally:
            suite.stop_mounts()
            subprocess.run(["umount", "-l", bare], check=True)


def main():
    suite = Suite("namespaces", __doc__)
    for visibility in VISIBILITIES:
        for transport in TRANSPORTS:
            for covered in (False, True):
                for filter_text in (ALL, LEFT_TO_KERNEL):
                    suite.run(
                        f"{visibility} over {transport}, "
                        f"{'over the source' if covered else 'elsewhere'}, "
                        f"{'traced' if filter_text == ALL else 'untraced'}",
                        compared, suite, visibility, transport, covered,
                        filter_text)
    suite.finish()


if __name__ == "__main__":
    main()
