#!/usr/bin/env python3
"""A client of NFS 3 in user space (libnfs), that does a bit of everything and
prints what came of each step, as JSON.

  nfs_client.py URL [--forget MOUNT]

--forget: after each step the kernel is made to forget what nobody uses of the
mount that is served, so that the server's handles have to lead back to it."""

import argparse
import ctypes
import json
import os
import subprocess


class Url(ctypes.Structure):
    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p),
                ("file", ctypes.c_char_p)]


class Stat(ctypes.Structure):
    """struct nfs_stat_64."""
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "dev", "ino", "mode", "nlink", "uid", "gid", "rdev", "size", "blksize",
        "blocks", "atime", "mtime", "ctime", "atime_ns", "mtime_ns",
        "ctime_ns", "used")]


class Entry(ctypes.Structure):
    """The beginning of struct nfsdirent."""
    _fields_ = [("next", ctypes.c_void_p), ("name", ctypes.c_char_p)]


LIBRARY = ctypes.CDLL("libnfs.so.13")
for name in ("nfs_init_context", "nfs_get_error"):
    getattr(LIBRARY, name).restype = ctypes.c_void_p
LIBRARY.nfs_parse_url_dir.restype = ctypes.POINTER(Url)
LIBRARY.nfs_readdir.restype = ctypes.POINTER(Entry)


class Client:
    def __init__(self, url):
        self.context = ctypes.c_void_p(LIBRARY.nfs_init_context())
        parsed = LIBRARY.nfs_parse_url_dir(self.context, url.encode())
        if not parsed:
            raise SystemExit("URL: " + self.error())
        if LIBRARY.nfs_mount(self.context, parsed.contents.server,
                             parsed.contents.path) != 0:
            raise SystemExit("mount: " + self.error())

    def error(self):
        return ctypes.string_at(LIBRARY.nfs_get_error(self.context)).decode()

    def call(self, name, *arguments):
        return getattr(LIBRARY, "nfs_" + name)(self.context, *arguments)

    def open(self, path, flags):
        handle = ctypes.c_void_p()
        result = self.call("open", path, flags, ctypes.byref(handle))
        return handle if result == 0 else result

    def write(self, handle, data, at):
        return self.call("pwrite", handle, ctypes.c_uint64(at),
                         ctypes.c_uint64(len(data)), data)

    def read(self, handle, size, at):
        buffer = ctypes.create_string_buffer(size)
        got = self.call("pread", handle, ctypes.c_uint64(at),
                        ctypes.c_uint64(size), buffer)
        return got, buffer.raw[:max(got, 0)].decode()

    def stat(self, path):
        st = Stat()
        result = self.call("lstat64", path, ctypes.byref(st))
        return result or [oct(st.mode), st.nlink, st.size]

    def names(self, path):
        folder = ctypes.c_void_p()
        result = self.call("opendir", path, ctypes.byref(folder))
        if result != 0:
            return result
        found = []
        while entry := self.call("readdir", folder):
            found.append(entry.contents.name.decode())
        LIBRARY.nfs_closedir(self.context, folder)
        return sorted(found)


def steps(one, other):
    """Each is a name and what it comes to."""
    def made(path, data):
        handle = one.open(path, os.O_CREAT | os.O_RDWR)
        if not isinstance(handle, ctypes.c_void_p):
            return handle
        result = one.write(handle, data, 0)
        one.call("close", handle)
        return result

    yield "mkdir", lambda: one.call("mkdir", b"/d")
    yield "mkdir again", lambda: one.call("mkdir", b"/d")
    yield "create", lambda: made(b"/d/f", b"some bytes")
    yield "stat", lambda: one.stat(b"/d/f")
    yield "missing", lambda: one.stat(b"/d/none")
    yield "link", lambda: one.call("link", b"/d/f", b"/d/g")
    yield "two names", lambda: one.stat(b"/d/g")
    yield "symlink", lambda: one.call("symlink", b"f", b"/d/s")
    yield "names", lambda: one.names(b"/d")
    yield "chmod", lambda: one.call("chmod", b"/d/f", 0o640)
    yield "mode", lambda: one.stat(b"/d/f")
    yield "truncate", lambda: one.call("truncate", b"/d/f",
                                       ctypes.c_uint64(4))
    yield "size", lambda: one.stat(b"/d/g")
    yield "rename", lambda: one.call("rename", b"/d/f", b"/d/h")
    yield "renamed", lambda: [one.stat(b"/d/f"), one.stat(b"/d/h")]
    yield "mkdir below", lambda: one.call("mkdir", b"/d/e")
    yield "rename over a folder", lambda: one.call("rename", b"/d/h", b"/d/e")
    yield "move", lambda: one.call("rename", b"/d/h", b"/d/e/h")
    yield "rmdir full", lambda: one.call("rmdir", b"/d")

    # A file that stays open while the kernel forgets, and while it is renamed.
    held = {}

    def hold():
        held["it"] = one.open(b"/d/e/h", os.O_RDWR)
        return "a handle" if isinstance(held["it"], ctypes.c_void_p) else "none"
    yield "open", hold
    yield "write", lambda: one.write(held["it"], b"0123456789", 0)
    yield "rename open", lambda: one.call("rename", b"/d/e/h", b"/d/i")
    yield "write on", lambda: one.write(held["it"], b"abc", 10)
    yield "read", lambda: one.read(held["it"], 100, 0)
    yield "fsync", lambda: one.call("fsync", held["it"])

    def beside():
        held["other"] = other.open(b"/d/i", os.O_RDWR)
        return other.read(held["other"], 5, 8)
    yield "another client", beside
    yield "close", lambda: [one.call("close", held["it"]),
                            other.call("close", held["other"])]

    def many():
        for i in range(200):
            result = made(b"/d/e/n%d" % i, b"x" * (i + 1))
            if result != i + 1:
                return result
        return "made"
    yield "many", many
    yield "all of them", lambda: one.names(b"/d/e")

    def gone():
        return [one.call("unlink", b"/d/e/n%d" % i) for i in range(0, 200, 2)]
    yield "unlink", gone
    yield "the rest", lambda: [one.stat(b"/d/e/n%d" % i) for i in range(200)]
    yield "unlink a folder", lambda: one.call("unlink", b"/d/e")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--forget")
    options = parser.parse_args()
    one, other = Client(options.url), Client(options.url)
    said = []
    for name, step in steps(one, other):
        said.append((name, step()))
        if options.forget:
            subprocess.run(["mount", "-i", "-o", "remount", options.forget],
                           check=True)
    print(json.dumps(said))


main()
