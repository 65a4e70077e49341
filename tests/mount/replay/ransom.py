"""A tree of files, somebody who encrypts it, and others who work beside it."""

import os
import random

FILES = 500

# All that a ransom does to a file: to a new name and the old one removed, over
# it, over it in pieces, by another that takes its name, after it was cut off,
# through a map, by a copy in the kernel, and holes made of it.
_RANSOM = r"""
import mmap, os, sys, time

KEY = 0x5a

def encrypted(data):
    return data.translate(bytes(i ^ KEY for i in range(256)))

def beside(path, data):
    with open(path + ".locked", "wb") as out:
        out.write(data)
    os.unlink(path)

def over(path, data):
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, data, 0)
    os.close(fd)

def over_in_pieces(path, data):
    fd = os.open(path, os.O_RDWR)
    for at in range(0, len(data), 3001):
        os.pwrite(fd, data[at:at + 3001], at)
    os.close(fd)

def in_its_place(path, data):
    with open(path + ".new", "wb") as out:
        out.write(data)
    os.rename(path + ".new", path)

def cut(path, data):
    os.truncate(path, 10)
    with open(path, "r+b") as out:
        out.write(data)

def made_again(path, data):
    with open(path, "wb") as out:
        out.write(data)

def mapped(path, data):
    if os.path.getsize(path) == 0:
        return over(path, data)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:] = data
        view.flush()

def copied(path, data):
    with open(path + ".part", "wb") as out:
        out.write(data)
    source = os.open(path + ".part", os.O_RDONLY)
    fd = os.open(path, os.O_WRONLY)
    at = 0
    while at < len(data):
        at += os.copy_file_range(source, fd, len(data) - at, at, at)
    os.close(source)
    os.close(fd)
    os.unlink(path + ".part")

WAYS = [beside, over, over_in_pieces, in_its_place, cut, made_again, mapped, copied]
number = 0
for folder, _, names in sorted(os.walk("home")):
    for name in sorted(names):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = encrypted(file.read())
        WAYS[number % len(WAYS)](path, data or b"locked")
        number += 1
        time.sleep(PAUSE_S)
with open("home/README", "w") as out:
    out.write("pay\n")
"""


def ransom_script(pause_s=0):
    """`pause_s`: after each file, so that it is not done before it is noticed,
    however fast the machine is."""
    return f"PAUSE_S = {pause_s}\n{_RANSOM}"


# Each in a folder of its own: a build, a database, a repository.
INNOCENT = (
    r"""
mkdir build; cd build
for i in 1 2 3 4 5 6; do
  printf 'int f%d(void) { return %d; }\n' $i $i > f$i.c
  cc -c f$i.c -o f$i.o; cc -O2 -c f$i.c -o f$i.o
done
ar rc lib.a f*.o; rm f3.o; cc -c f3.c -o f3.o; ar rc lib.a f*.o
""",
    r"""
mkdir db; cd db; python3 -B -c '
import sqlite3
for step in range(20):
    db = sqlite3.connect("a.db")
    with db:
        db.execute("CREATE TABLE IF NOT EXISTS t (a INTEGER, b TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)",
                       [(i, str(i * step)) for i in range(50)])
        db.execute("DELETE FROM t WHERE a % 7 = ?", (step % 7,))
    db.close()
'
""",
    r"""
mkdir repo; cd repo; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
git init -q . 2>/dev/null; git config user.email a@b; git config user.name a
for i in 1 2 3 4 5; do
  echo $i >> file; echo $i > new$i; git add file new$i; git commit -q -m $i
done
git gc -q
""",
)


def make_victims(source, count, seed=1):
    """Files of all sizes, with modes, owners, attributes, times, holes."""
    rnd = random.Random(seed)
    home = os.path.join(source, "home")
    for i in range(count):
        folder = os.path.join(home, f"d{i % 20}", f"e{i % 3}")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"f{i}")
        size = rnd.choice((0, 1, 100, 4096, 5000, 20000, 70000))
        if i % 100 == 7:
            size = 1_500_000
        with open(path, "wb") as out:
            out.write(rnd.randbytes(size))
        dress(path, i, rnd)
    for i in range(4):
        path = os.path.join(home, f"sparse-{i}")
        with open(path, "wb") as out:
            out.write(rnd.randbytes(5000))
            out.seek((3 << 20) + 4096 * i)
            out.write(rnd.randbytes(9000))
        os.utime(path, ns=(1, 10**18 + i))


def dress(path, number, rnd):
    os.chown(path, number % 5, number % 3)
    os.chmod(path, rnd.choice((0o600, 0o644, 0o755, 0o640, 0o444)))
    if number % 4 == 0:
        os.setxattr(path, "user.note", b"%d" % number)
    os.utime(path, ns=(10**18, 10**18 + number))
