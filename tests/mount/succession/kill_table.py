#!/usr/bin/env python3
"""Real work while daemons are killed at random moments (--survive yes): what
each piece of work must come to is known, and a line of a table says what it
met with.

  kill_table.py --bin build/release/bin                      for ctest
  kill_table.py --bin build/release/bin --seconds 60 --kills 10
"""

import glob
import os
import pwd
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import successions_of  # noqa: E402
from processes import (adopt_orphans, descendants_of, is_alive,  # noqa: E402
                       name_of)
from tracefs_harness import (Skip, Suite, expect, expect_equal,  # noqa: E402
                             wait_until)

# In so many of the deaths the keeper is killed, too.
KEEPERS = 0.2
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


class Deaths(threading.Thread):
    """Kills daemons, and now and then their keepers."""

    def __init__(self, mount, a_second, seed):
        super().__init__(daemon=True)
        self.mount = mount
        self.gap_s = 1 / a_second
        self.random = random.Random(seed)
        self.daemons = 0
        self.keepers = 0
        self.over = threading.Event()

    def named(self, name):
        for one in [self.mount.pid, *descendants_of(self.mount.pid),
                    *descendants_of(os.getpid())]:
            if name_of(one) == name and is_alive(one):
                return one
        return None

    def kill(self, name):
        one = self.named(name)
        if one is None:
            return 0
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            return 0
        return 1

    def run(self):
        serving = 0
        in_vain = 0
        while not self.over.wait(self.random.uniform(0, 2 * self.gap_s)):
            now = successions_of(self.mount)
            in_vain = 0 if now > serving else in_vain + 1
            serving = now
            if in_vain > 2 and self.daemons > 0:
                continue  # the work must get on, too
            if (self.random.random() < KEEPERS
                    and self.named("tracefs-spare") is not None):
                self.keepers += self.kill("tracefs-keeper")
            self.daemons += self.kill("tracefs-mount")


class Caller(threading.Thread):
    """Makes folders, and knows which, and how long the longest call took."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = folder
        self.made = 0
        self.longest_s = 0.0
        self.error = None
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.005):
            begin = time.monotonic()
            try:
                os.mkdir(os.path.join(self.folder, f"call-{self.made}"))
            except OSError as e:
                self.error = e
                return
            self.longest_s = max(self.longest_s, time.monotonic() - begin)
            self.made += 1


class Work:
    """Each is given a folder in the mount, and raises where something is not
    as it must be. Returns what was done."""

    def __init__(self, seconds):
        self.seconds = seconds

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


class KillTable:
    def __init__(self, suite):
        self.suite = suite
        self.lines = []

    def work(self, name):
        options = self.suite.options
        source = self.suite.folder(name, "source", mode=0o777)
        point = self.suite.folder(name, "mnt")
        trace = self.suite.path(name, "trace")
        mount = self.suite.mount(
            source, point, ("", "STR_ALL",
                            f'compress; file = "{trace}" rotate_size = 64M'),
            transport="dev", visibility="auto", options=("--survive", "yes"))
        folder = os.path.join(point, "work")
        os.mkdir(folder)
        os.mkdir(os.path.join(point, "calls"))
        caller = Caller(os.path.join(point, "calls"))
        deaths = Deaths(mount, options.kills, options.seed)
        caller.start()
        deaths.start()
        try:
            done = getattr(Work(options.seconds), name)(folder)
        finally:
            deaths.over.set()
            deaths.join()
            caller.over.set()
            caller.join()
        expect(caller.error is None, f"a call failed: {caller.error}")
        expect(deaths.daemons > 0, "nothing was killed")
        subprocess.run(["umount", point], check=True)
        wait_until(lambda: deaths.named("tracefs-mount") is None
                   and deaths.named("tracefs-keeper") is None, "all end")
        parts = sorted(glob.glob(trace + "*"))
        self.suite.command("tracefs-verify", *parts)
        made = {}
        for event in self.suite.read(*parts, only="op = mkdir"):
            where = event.get("path", "").split("/")
            if where[-2:-1] == ["calls"] and event["result"] >= 0:
                made[where[-1]] = made.get(where[-1], 0) + 1
        wrong = [n for n in range(caller.made) if made.get(f"call-{n}") != 1]
        self.lines.append(
            f"| {name}, {done} | {deaths.daemons} | {deaths.keepers} | 0 | "
            f"{caller.longest_s:.2f} s | {len(wrong)} of {caller.made} |")
        expect(not wrong, f"not once in the trace: {wrong[:10]}")
        return self.lines[-1]


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=float, default=5,
                        help="a second, on average")


def main():
    suite = Suite("kills", __doc__, arguments)
    adopt_orphans()
    table = KillTable(suite)
    for name in ("git", "build", "sqlite", "locks", "postgresql"):
        suite.run(name, table.work, name)
    print("| work | deaths | of keepers | errors | longest call | "
          "calls lost |")
    print("|---|---:|---:|---:|---:|---:|")
    print("\n".join(table.lines), flush=True)
    suite.finish()


main()
