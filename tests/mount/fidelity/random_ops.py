"""A random workload for the fidelity suite: several processes, each in a folder
of its own, and one file that all of them read and write.

usage: random_ops.py SEED STEPS PROCESSES INSIDE

The same arguments give the same calls in each process. Failures are part of it.
"""

import fcntl
import os
import random
import sys

NAMES = [f"{c}{n}" for c in "abc" for n in range(4)] + ["d0", "d1", "d0/x",
                                                        "d0/y", "d1/x"]


class Player:
    def __init__(self, seed, shared):
        self.random = random.Random(seed)
        self.shared = os.open(shared, os.O_RDWR)
        self.fds = []
        self.number = seed
        self.steps = [getattr(self, name) for name in dir(self)
                      if name.startswith("do_")]

    def play(self, count):
        for _ in range(count):
            step = self.random.choice(self.steps)
            try:
                step()
            except OSError:
                pass
        while self.fds:
            os.close(self.fds.pop())
        os.close(self.shared)

    def name(self):
        return self.random.choice(NAMES)

    def fd(self):
        if not self.fds:
            self.do_open()
        return self.random.choice(self.fds)

    def size(self):
        return self.random.choice((0, 1, 7, 512, 4096, 5000, 70000, 1200000))

    def place(self):
        return self.random.choice((0, 1, 4095, 4096, 100000))

    def do_open(self):
        flags = self.random.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR,
                                    os.O_RDWR))
        for extra in (os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC,
                      os.O_APPEND):
            if self.random.random() < 0.4:
                flags |= extra
        self.fds.append(os.open(self.name(), flags, self.random.choice(
            (0o644, 0o600, 0o755))))
        if len(self.fds) > 8:
            os.close(self.fds.pop(self.random.randrange(8)))

    def do_close(self):
        if self.fds:
            os.close(self.fds.pop(self.random.randrange(len(self.fds))))

    def do_dup(self):
        self.fds.append(os.dup(self.fd()))

    def do_read(self):
        os.read(self.fd(), self.size())

    def do_write(self):
        os.write(self.fd(), b"w" * self.size())

    def do_pread(self):
        os.pread(self.fd(), self.size(), self.place())

    def do_pwrite(self):
        os.pwrite(self.fd(), b"p" * self.size(), self.place())

    def do_readv(self):
        os.readv(self.fd(), [bytearray(self.size()), bytearray(10)])

    def do_lseek(self):
        os.lseek(self.fd(), self.place(), self.random.choice(
            (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END, os.SEEK_DATA,
             os.SEEK_HOLE)))

    def do_shared(self):
        place = self.number * 1000 + self.random.randrange(1000)
        os.pwrite(self.shared, b"s" * self.random.randrange(1, 100), place)
        os.pread(self.shared, 100, self.random.randrange(5000))

    def do_stat(self):
        os.stat(self.name())

    def do_fstat(self):
        os.fstat(self.fd())

    def do_access(self):
        os.access(self.name(), os.R_OK)

    def do_unlink(self):
        os.unlink(self.name())

    def do_rename(self):
        os.rename(self.name(), self.name())

    def do_link(self):
        os.link(self.name(), self.name())

    def do_symlink(self):
        os.symlink(self.random.choice(("a0", "d0", "nowhere", "b1")),
                   self.name())

    def do_readlink(self):
        os.readlink(self.name())

    def do_mkdir(self):
        os.mkdir(self.random.choice(("d0", "d1", "c3")))

    def do_rmdir(self):
        os.rmdir(self.random.choice(("d0", "d1", "c3")))

    def do_list(self):
        os.listdir(self.random.choice((".", "d0", "d1")))

    def do_truncate(self):
        os.truncate(self.name(), self.size())

    def do_ftruncate(self):
        os.ftruncate(self.fd(), self.size())

    def do_chmod(self):
        os.chmod(self.name(), self.random.choice((0o644, 0o600, 0o755)))

    def do_chown(self):
        os.chown(self.name(), self.random.choice((-1, 0, 5)),
                 self.random.choice((-1, 0, 5)))

    def do_utime(self):
        os.utime(self.name(), ns=(self.random.randrange(1 << 60),
                                  self.random.randrange(1 << 60)))

    def do_fsync(self):
        os.fdatasync(self.fd())

    def do_fallocate(self):
        os.posix_fallocate(self.fd(), self.place(), self.size() + 1)

    def do_copy(self):
        os.copy_file_range(self.fd(), self.fd(), self.size(), self.place())

    def do_xattr(self):
        name = self.name()
        os.setxattr(name, "user.k", b"v" * self.random.randrange(100))
        os.getxattr(name, "user.k")
        os.listxattr(name)
        if self.random.random() < 0.5:
            os.removexattr(name, "user.k")

    def do_lock(self):
        fcntl.lockf(self.fd(), fcntl.LOCK_EX | fcntl.LOCK_NB,
                    self.random.randrange(1, 100), self.random.randrange(100))


def main():
    seed, steps, processes = (int(a) for a in sys.argv[1:4])
    os.chdir(sys.argv[4])
    with open("shared", "wb") as shared:
        shared.write(b"0" * 10000)
    children = []
    for number in range(processes):
        os.mkdir(f"p{number}")
        pid = os.fork()
        if pid == 0:
            os.chdir(f"p{number}")
            Player(seed * 100 + number, "../shared").play(steps)
            os._exit(0)
        children.append(pid)
    for pid in children:
        _, status = os.waitpid(pid, 0)
        assert status == 0, status


if __name__ == "__main__":
    main()
