"""Real work whose outcome is known: git, builds, data bases, locks, maps, random
calls. Each is given a folder in a mount, and raises where something is not as
it must be."""

import glob
import mmap
import os
import pwd
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
RANDOM = os.path.join(HERE, "..", "random")
sys.path.insert(0, RANDOM)

# pylint: disable=wrong-import-position
from pages_test import Checker  # noqa: E402
from tracefs_harness import Skip, expect, expect_equal  # noqa: E402

LOCK_HOLDERS = 64

HOLDER = """
import fcntl, os, struct, sys, time
path, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
fd = os.open(path, os.O_RDWR)
turns = 0
while time.monotonic() < end:
    fcntl.lockf(fd, fcntl.LOCK_EX)
    count = struct.unpack("<Q", os.pread(fd, 8, 0))[0]
    os.pwrite(fd, struct.pack("<Q", count + 1), 0)
    fcntl.lockf(fd, fcntl.LOCK_UN)
    turns += 1
print(turns)
"""

WRITERS = 8

# One of several that have the same file mapped: each changes every eighth page,
# and knows what is there.
MAPPER = """
import mmap, os, random, sys, time, zlib
path, number, writers, end = (sys.argv[1], int(sys.argv[2]), int(sys.argv[3]),
                              time.monotonic() + float(sys.argv[4]))
PAGE = 4096
one = random.Random(number)
fd = os.open(path, os.O_RDWR)
size = os.fstat(fd).st_size
mine = list(range(number, size // PAGE, writers))
known = {page: bytes(PAGE) for page in mine}
shared = mmap.mmap(fd, size)
stores = 0
while time.monotonic() < end:
    page = one.choice(mine)
    if shared[page * PAGE:(page + 1) * PAGE] != known[page]:
        sys.exit(f"page {page} holds something else")
    known[page] = one.randbytes(PAGE)
    shared[page * PAGE:(page + 1) * PAGE] = known[page]
    stores += 1
    what = one.random()
    if what < 0.1:
        shared.flush(page * PAGE, PAGE)
        if os.pread(fd, PAGE, page * PAGE) != known[page]:
            sys.exit(f"page {page} is read otherwise")
    elif what < 0.12:
        shared.close()
        os.close(fd)
        fd = os.open(path, os.O_RDWR)
        shared = mmap.mmap(fd, size)
shared.flush()
print(stores, zlib.crc32(b"".join(known[page] for page in mine)))
"""


class Work:
    """Each is given a folder in the mount, and raises where something is not
    as it must be. Returns what was done."""

    def __init__(self, seconds, source, calm):
        self.seconds = seconds
        self.source = source  # the same folder, below the mount
        self.calm = calm      # where nobody is killed

    def until_then(self):
        end = time.monotonic() + self.seconds
        number = 0
        while time.monotonic() < end:
            yield number
            number += 1

    @staticmethod
    def done(*command, **more):
        ran = subprocess.run(command, capture_output=True, text=True,
                             check=False, **more)
        expect(ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def git(self, folder):
        def git(*command):
            return self.done("git", "-C", folder, "-c", "user.name=n", "-c",
                             "user.email=e", *command)
        git("init", "-q")
        commits = 0
        for number in self.until_then():
            for i in range(10):
                name = os.path.join(folder, f"f{(number * 7 + i) % 50}")
                with open(name, "a", encoding="ascii") as file:
                    file.write(f"{number} {i}\n" * 50)
            git("add", ".")
            git("commit", "-qm", f"number {number}")
            commits += 1
            if number % 20 == 19:
                git("gc", "-q")
        git("fsck", "--full", "--strict")
        expect_equal(int(git("rev-list", "--count", "HEAD")), commits,
                     "commits")
        return f"{commits} commits"

    def build(self, folder):
        files = 12
        for i in range(files):
            with open(os.path.join(folder, f"f{i}.c"), "w",
                      encoding="ascii") as file:
                file.write(f"#include <stdio.h>\nint f{i}(void) "
                           f"{{ return {i}; }}\n")
        with open(os.path.join(folder, "main.c"), "w",
                  encoding="ascii") as file:
            file.write("#include <stdio.h>\n" + "".join(
                f"int f{i}(void);\n" for i in range(files)) +
                "int main(void) { printf(\"%d\\n\", " +
                "+".join(f"f{i}()" for i in range(files)) + "); }\n")
        with open(os.path.join(folder, "Makefile"), "w",
                  encoding="ascii") as file:
            file.write("sum: main.o " +
                       " ".join(f"f{i}.o" for i in range(files)) +
                       "\n\tcc -o $@ $^\nclean:\n\trm -f *.o sum\n")
        builds = 0
        for _ in self.until_then():
            self.done("make", "-C", folder, "-j2", "-s")
            expect_equal(self.done(os.path.join(folder, "sum")).strip(),
                         str(sum(range(files))), "what was built")
            self.done("make", "-C", folder, "-s", "clean")
            builds += 1
        return f"{builds} builds"

    def sqlite(self, folder):
        base = sqlite3.connect(os.path.join(folder, "base"), timeout=60)
        base.execute("create table t (k integer primary key, v integer)")
        base.executemany("insert into t values (?, 0)",
                         [(i,) for i in range(1000)])
        base.commit()
        one = random.Random(1)
        total = 0
        turns = 0
        for turns in self.until_then():
            for _ in range(10):
                by = one.randrange(100)
                base.execute("update t set v = v + ? where k = ?",
                             (by, one.randrange(1000)))
                total += by
            base.commit()
        expect_equal(base.execute("pragma integrity_check").fetchone()[0],
                     "ok", "the base")
        expect_equal(base.execute("select sum(v) from t").fetchone()[0],
                     total, "the sum")
        base.close()
        return f"{turns + 1} transactions"

    def locks(self, folder):
        path = os.path.join(folder, "count")
        with open(path, "wb") as file:
            file.write(bytes(8))
        holders = [subprocess.Popen(
            [sys.executable, "-c", HOLDER, path, str(self.seconds)],
            stdout=subprocess.PIPE, text=True) for _ in range(LOCK_HOLDERS)]
        turns = sum(int(holder.communicate()[0]) for holder in holders)
        with open(path, "rb") as file:
            expect_equal(int.from_bytes(file.read(8), "little"), turns,
                         "turns that were counted under the lock")
        return f"{turns} turns of {LOCK_HOLDERS}"

    def postgresql(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found or shutil.which("runuser") is None:
            raise Skip("PostgreSQL is not installed")
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            raise Skip("there is no user postgres") from None
        os.chown(folder, user.pw_uid, user.pw_gid)
        data = os.path.join(folder, "data")

        def run(program, *command):
            return self.done("runuser", "-u", "postgres", "--",
                             os.path.join(found[-1], program), *command,
                             cwd="/")
        run("initdb", "-D", data, "-k", "-A", "trust")
        run("pg_ctl", "-D", data, "-w", "-t", "120", "-s", "-l",
            os.path.join(folder, "log"), "-o",
            f"-c listen_addresses= -c unix_socket_directories={folder}",
            "start")
        try:
            run("pgbench", "-h", folder, "-i", "-q", "-s", "1", "postgres")
            said = run("pgbench", "-h", folder, "-c", "4", "-T",
                       str(int(self.seconds)), "postgres")
            sums = run("psql", "-h", folder, "-At", "-c",
                       "select (select sum(abalance) from pgbench_accounts),"
                       "(select sum(bbalance) from pgbench_branches),"
                       "(select sum(tbalance) from pgbench_tellers),"
                       "(select sum(delta) from pgbench_history)", "postgres")
        finally:
            run("pg_ctl", "-D", data, "-w", "-s", "-m", "fast", "stop")
        expect_equal(len(set(sums.strip().split("|"))), 1, f"sums: {sums}")
        run("pg_checksums", "-D", data)
        count = next(line for line in said.splitlines()
                     if "actually processed" in line)
        expect("failed transactions: 0" in said
               or "failed" not in said, said)
        return count.split(":")[1].strip() + " transactions"

    def pages(self, folder):
        """One file by every way there is to its bytes."""
        calls = 0
        for number in self.until_then():
            checker = Checker(os.path.join(folder, "f"), number, passes=False)
            checker.run(200)
            calls += 200
            with open(os.path.join(self.source, "f"), "rb") as below:
                expect(below.read() == bytes(checker.model),
                       f"seed {number}: the file below holds something else")
        return f"{calls} calls"

    def users(self, folder):
        """Random calls of four processes, each as several users: they come to
        what the same calls come to where nobody is killed."""
        calls = os.path.join(RANDOM, "calls.py")

        def run(where, seeds):
            folders = [os.path.join(where, str(seed)) for seed in seeds]
            for one in folders:
                os.mkdir(one)
                os.chmod(one, 0o777)
            running = [subprocess.Popen(
                [sys.executable, "-B", calls, one, str(seed), "300"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                       for one, seed in zip(folders, seeds)]
            said = [one.communicate()[0].splitlines() for one in running]
            for one in folders:
                shutil.rmtree(one)
            return said

        done = 0
        for number in self.until_then():
            seeds = range(4 * number, 4 * number + 4)
            for seed, got, want in zip(seeds, run(folder, seeds),
                                       run(self.calm, seeds)):
                for ours, theirs in zip(got, want):
                    expect_equal(ours, theirs, f"seed {seed}")
                expect_equal(len(got), len(want), f"seed {seed}: lines")
                done += len(got)
        return f"{done} calls of 4"

    def maps(self, folder):
        """Several processes store in one mapped file."""
        path = os.path.join(folder, "f")
        with open(path, "wb") as file:
            file.truncate(WRITERS * 64 * mmap.PAGESIZE)
        writers = [subprocess.Popen(
            [sys.executable, "-c", MAPPER, path, str(number), str(WRITERS),
             str(self.seconds)], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True) for number in range(WRITERS)]
        said = [writer.communicate()[0] for writer in writers]
        with open(os.path.join(self.source, "f"), "rb") as below:
            content = below.read()
        pages = [content[at:at + mmap.PAGESIZE]
                 for at in range(0, len(content), mmap.PAGESIZE)]
        stores = 0
        for number, (writer, text) in enumerate(zip(writers, said)):
            expect_equal(writer.returncode, 0, text)
            count, crc = map(int, text.split())
            stores += count
            expect_equal(zlib.crc32(b"".join(pages[number::WRITERS])), crc,
                         f"what is below of writer {number}")
        return f"{stores} stores of {WRITERS}"
