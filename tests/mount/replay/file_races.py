"""Eight threads that use a few files in three directories, all at once: contents,
sizes, modes and extended attributes, by names, by handles and after removal.

  file_races.py FOLDER ROUNDS SEED
"""

import os
import random
import sys
import threading

THREADS = 8
NAMES = 8
FOLDERS = ("d", "d/s", "e")


def work(seed, rounds):
    pick = random.Random(seed)
    files = []

    def open_one(name):
        truncates = os.O_TRUNC if pick.random() < 0.2 else 0
        files.append(os.open(name, os.O_CREAT | os.O_RDWR | truncates, 0o644))
        if len(files) > 3:
            os.close(files.pop(0))

    def use(act):
        if files:
            act(pick.choice(files), pick.randrange(9000))

    def copy():
        if len(files) > 1:
            os.copy_file_range(files[0], files[1], 3000,
                               pick.randrange(5000), pick.randrange(5000))

    for _ in range(rounds):
        a, b = (f"{pick.choice(FOLDERS)}/n{pick.randrange(NAMES)}"
                for _ in range(2))
        mode = 0o400 | pick.randrange(64)
        byte = bytes([pick.randrange(256)])
        act = pick.choice((
            lambda: open_one(a), lambda: open_one(a), lambda: os.unlink(a),
            lambda: os.mkdir(a), lambda: os.rmdir(a), lambda: os.rename(a, b),
            lambda: os.rename(a, b), lambda: os.link(a, b), lambda: os.stat(a),
            lambda: os.symlink(b, a), lambda: os.readlink(a),
            lambda: os.listdir(pick.choice(FOLDERS)), lambda: os.access(a, 4),
            lambda: os.chmod(a, mode),
            lambda: os.truncate(a, pick.randrange(9000)),
            lambda: os.mkdir("d/s"), lambda: os.rmdir("d/s"),
            lambda: os.rename("d/s", a), lambda: os.rename(a, "d/s"),
            lambda: os.setxattr(a, "user.x", byte),
            lambda: os.getxattr(a, "user.x"),
            lambda: os.removexattr(a, "user.x"),
            lambda: use(lambda f, at: os.pwrite(f, byte * (at // 2), at)),
            lambda: use(lambda f, at: os.pread(f, 6000, at)),
            lambda: use(lambda f, at: os.fstat(f)), lambda: use(os.ftruncate),
            lambda: use(lambda f, at: os.fchmod(f, mode)), copy,
            lambda: use(lambda f, at: os.posix_fallocate(f, at, 3000)),
            lambda: use(lambda f, at: os.lseek(f, at, os.SEEK_DATA))))
        try:
            act()
        except OSError:
            pass


def main(folder, rounds, seed):
    os.chdir(folder)
    os.mkdir("d")
    os.mkdir("e")
    threads = [threading.Thread(target=work, args=(seed * THREADS + n, rounds))
               for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
