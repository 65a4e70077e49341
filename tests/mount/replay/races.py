"""Eight threads that make, move, change and remove a few names in one directory,
all at once: most of what they ask fails, and which of it hangs on who is first."""

import os
import random
import sys
import threading

THREADS = 8
NAMES = 12


def work(seed, rounds):
    pick = random.Random(seed)
    for _ in range(rounds):
        a, b = (f"d/n{pick.randrange(NAMES)}" for _ in range(2))
        act = pick.choice((
            lambda: os.close(os.open(a, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
            lambda: os.unlink(a), lambda: os.mkdir(a), lambda: os.rmdir(a),
            lambda: os.rename(a, b), lambda: os.link(a, b), lambda: os.stat(a),
            lambda: os.symlink(b, a), lambda: os.listdir("d"),
            lambda: os.chmod(a, 0o400 | pick.randrange(64))))
        try:
            act()
        except OSError:
            pass


def main(folder, rounds):
    os.chdir(folder)
    os.mkdir("d")
    threads = [threading.Thread(target=work, args=(n, rounds))
               for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main(sys.argv[1], int(sys.argv[2]))
