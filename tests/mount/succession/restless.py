#!/usr/bin/env python3
"""A user of a mount who notices everything: makes random changes in a folder of
its own, knows what must come of each, and ends with an error where something
else does.

  restless.py FOLDER SECONDS SEED

Prints a line of JSON at its end: operations, the longest one in seconds and
which it was; how many writes there were, and which names were made and removed
how, each of which was used once.
"""

import errno
import fcntl
import json
import mmap
import os
import random
import stat
import sys
import time


class Wrong(Exception):
    pass


class Restless:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.folder = folder
        self.files = {}     # name: content
        self.folders = {""}
        self.held = []      # (descriptor, name or None, content)
        self.number = 0
        self.operations = 0
        self.writes = 0
        self.done = []      # operation and name
        self.longest = (0.0, "")
        os.mkdir(folder)
        # One large enough that its listing takes several requests.
        self.note("mkdir", folder)
        os.mkdir(self.path("large"))
        self.large = {f"entry-{i:05}" for i in range(1500)}
        for name in self.large:
            os.close(os.open(self.path(os.path.join("large", name)),
                             os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self.lock = os.open(self.path("lock"), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def note(self, operation, name):
        self.done.append((operation, os.path.basename(name)))

    def put(self, fd, data, at=None):
        put = os.write(fd, data) if at is None else os.pwrite(fd, data, at)
        self.writes += 1
        if put != len(data):
            raise Wrong("a short write")

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_name(self):
        self.number += 1
        return os.path.join(self.random.choice(sorted(self.folders)),
                            f"n{self.number}")

    def some_file(self):
        return self.random.choice(sorted(self.files)) if self.files else None

    def data(self):
        # Short and alike, too: what was appended twice must not look right.
        if self.random.random() < 0.3:
            return b"same\n"
        return self.random.randbytes(self.random.choice((1, 100, 5000, 200000)))

    # --- operations

    def create(self):
        name = self.new_name()
        fd = os.open(self.path(name), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
        data = self.data()
        self.put(fd, data)
        self.note("create", name)
        if len(self.held) < 20 and self.random.random() < 0.3:
            self.held.append([fd, name, data])
        else:
            os.close(fd)
        self.files[name] = data

    def write(self):
        name = self.some_file()
        if name is None:
            return
        content = self.files[name]
        at = self.random.randrange(len(content) + 1)
        data = self.data()
        fd = os.open(self.path(name), os.O_WRONLY)
        self.put(fd, data, at)
        os.close(fd)
        self.set(name, content[:at] + data + content[at + len(data):])

    def append(self):
        name = self.some_file()
        if name is None:
            return
        fd = os.open(self.path(name), os.O_WRONLY | os.O_APPEND)
        content = self.files[name]
        for _ in range(self.random.randrange(1, 6)):
            data = self.data()
            self.put(fd, data)
            content += data
        os.close(fd)
        self.set(name, content)

    def set(self, name, content):
        self.files[name] = content
        for held in self.held:
            if held[1] == name:
                held[2] = content

    def truncate(self):
        name = self.some_file()
        if name is None:
            return
        size = self.random.randrange(len(self.files[name]) + 1)
        os.truncate(self.path(name), size)
        self.set(name, self.files[name][:size])

    def rename(self):
        name = self.some_file()
        if name is None:
            return
        to = (self.new_name() if self.random.random() < 0.7
              else self.some_file())
        if to == name:
            return
        os.rename(self.path(name), self.path(to))
        for held in self.held:
            if held[1] == to:
                held[1] = None
        for held in self.held:
            if held[1] == name:
                held[1] = to
        self.files[to] = self.files.pop(name)

    def unlink(self):
        name = self.some_file()
        if name is None:
            return
        os.unlink(self.path(name))
        self.note("unlink", name)
        del self.files[name]
        for held in self.held:
            if held[1] == name:
                held[1] = None
        self.absent(name)

    def absent(self, name):
        try:
            os.stat(self.path(name))
        except FileNotFoundError:
            return
        raise Wrong(f"{name} is there")

    def mkdir(self):
        name = self.new_name()
        os.mkdir(self.path(name), 0o750)
        self.note("mkdir", name)
        self.folders.add(name)

    def rmdir(self):
        name = self.random.choice(sorted(self.folders))
        if name == "" or any(n.startswith(name + "/")
                             for n in [*self.files, *self.folders]):
            return
        os.rmdir(self.path(name))
        self.note("rmdir", name)
        self.folders.remove(name)
        self.absent(name)

    def exclusive(self):
        name = self.some_file()
        if name is None:
            return
        try:
            os.close(os.open(self.path(name), os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        raise Wrong("a file was made that was there")

    def link(self):
        name = self.some_file()
        if name is None:
            return
        to = self.path(self.new_name())
        os.link(self.path(name), to)
        if os.stat(to).st_ino != os.stat(self.path(name)).st_ino:
            raise Wrong("a link to another file")
        os.unlink(to)
        self.note("unlink", to)

    def symlink(self):
        to = self.path(self.new_name())
        os.symlink("nowhere", to)
        if os.readlink(to) != "nowhere":
            raise Wrong("a link to elsewhere")
        os.unlink(to)
        self.note("symlink", to)
        self.note("unlink", to)

    def chmod(self):
        name = self.some_file()
        if name is None:
            return
        mode = self.random.choice((0o600, 0o640, 0o666))
        os.chmod(self.path(name), mode)
        if stat.S_IMODE(os.stat(self.path(name)).st_mode) != mode:
            raise Wrong("another mode")

    def attribute(self):
        name = self.some_file()
        if name is None:
            return
        path = self.path(name)
        try:
            os.setxattr(path, "user.x", b"y", os.XATTR_CREATE)
        except OSError as e:
            if e.errno == errno.ENOTSUP:
                return
            raise
        if os.getxattr(path, "user.x") != b"y":
            raise Wrong("another attribute")
        os.removexattr(path, "user.x")

    def read(self):
        name = self.some_file()
        if name is None:
            return
        with open(self.path(name), "rb") as file:
            if file.read() != self.files[name]:
                raise Wrong(f"{name} has another content")

    def read_mapped(self):
        name = self.some_file()
        if name is None or not self.files[name]:
            return
        with open(self.path(name), "rb") as file:
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                if mapped[:] != self.files[name]:
                    raise Wrong(f"{name} has another content in a map")

    def read_held(self):
        if not self.held:
            return
        fd, _, content = self.random.choice(self.held)
        if os.fstat(fd).st_size != len(content):
            raise Wrong(f"{os.fstat(fd).st_size} instead of {len(content)} "
                        "bytes in an open file")
        if os.pread(fd, len(content) + 1, 0) != content:
            raise Wrong("an open file has another content")

    def write_held(self):
        if not self.held:
            return
        held = self.random.choice(self.held)
        data = self.data()
        at = self.random.randrange(len(held[2]) + 1)
        self.put(held[0], data, at)
        content = held[2][:at] + data + held[2][at + len(data):]
        held[2] = content
        if held[1] is not None:
            self.set(held[1], content)

    def let_go(self):
        if self.held:
            os.close(self.held.pop(
                self.random.randrange(len(self.held)))[0])

    def listing(self):
        if set(os.listdir(self.path("large"))) != self.large:
            raise Wrong("another listing of a large folder")
        name = self.random.choice(sorted(self.folders))
        here = {n for n in [*self.files, *self.folders] if n}
        want = {os.path.basename(n) for n in here
                if os.path.dirname(n) == name}
        if name == "":
            want |= {"large", "lock"}
        if set(os.listdir(self.path(name))) != want:
            raise Wrong(f"another listing of {name!r}")

    def locked(self):
        other = os.open(self.path("lock"), os.O_RDWR)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        finally:
            os.close(other)
        raise Wrong("a lock was lost")

    def sync(self):
        name = self.some_file()
        if name is None:
            return
        fd = os.open(self.path(name), os.O_RDWR)
        os.fsync(fd)
        os.close(fd)

    OPERATIONS = (create, create, create, write, append, append, truncate,
                  rename, rename, unlink, unlink, mkdir, rmdir, exclusive,
                  link, symlink, chmod, attribute, read, read, read_mapped,
                  read_held, read_held, write_held, let_go, listing, locked,
                  sync)

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            operation = self.random.choice(self.OPERATIONS)
            begin = time.monotonic()
            try:
                operation(self)
            except (OSError, Wrong) as e:
                raise Wrong(f"{operation.__name__}: {e!r}") from e
            took = time.monotonic() - begin
            self.operations += 1
            self.longest = max(self.longest, (took, operation.__name__))
        while self.held:
            self.read_held()
            self.let_go()

    def check(self, folder):
        """The whole tree, by the mount or below it."""
        found = {}
        for where, _, names in os.walk(folder):
            here = os.path.relpath(where, folder)
            for name in names:
                path = os.path.normpath(os.path.join(here, name))
                if path == "lock" or path.startswith("large"):
                    continue
                with open(os.path.join(folder, path), "rb") as file:
                    found[path] = file.read()
        if found != self.files:
            raise Wrong(f"another tree in {folder}: "
                        f"{sorted(set(found) ^ set(self.files))[:10]}")


def main():
    folder, seconds, seed, below = sys.argv[1:]
    one = Restless(folder, int(seed))
    try:
        one.run(float(seconds))
        one.check(folder)
        one.check(below)
    except Wrong as e:
        print(f"restless (seed {seed}): {e}", file=sys.stderr)
        sys.exit(1)
    print(json.dumps({"operations": one.operations,
                      "writes": one.writes, "done": one.done,
                      "longest_s": one.longest[0],
                      "longest": one.longest[1]}))


main()
