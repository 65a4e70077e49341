"""The system calls that a daemon makes for each request, as strace saw them.

Over /dev/fuse a thread reads one request and answers it before it reads the
next: what it calls in between is that request's. Over io_uring the kind of a
request cannot be seen from outside: there calls are counted by operation.
"""

import collections
import os
import pathlib
import re
import struct
import subprocess
import time

OPCODES = {
    1: "LOOKUP", 2: "FORGET", 3: "GETATTR", 4: "SETATTR", 5: "READLINK",
    6: "SYMLINK", 8: "MKNOD", 9: "MKDIR", 10: "UNLINK", 11: "RMDIR",
    12: "RENAME", 13: "LINK", 14: "OPEN", 15: "READ", 16: "WRITE",
    17: "STATFS", 18: "RELEASE", 20: "FSYNC", 21: "SETXATTR", 22: "GETXATTR",
    23: "LISTXATTR", 24: "REMOVEXATTR", 25: "FLUSH", 27: "OPENDIR",
    28: "READDIR", 29: "RELEASEDIR", 30: "FSYNCDIR", 35: "CREATE",
    39: "IOCTL", 42: "BATCH_FORGET", 43: "FALLOCATE", 44: "READDIRPLUS",
    45: "RENAME2", 46: "LSEEK", 47: "COPY_FILE_RANGE", 51: "TMPFILE",
    52: "STATX",
}
# By number, of strace that does not know them yet.
NAMES = {
    "syscall_0x1c4": "fchmodat2", "syscall_0x1cf": "setxattrat",
    "syscall_0x1d0": "getxattrat", "syscall_0x1d1": "listxattrat",
    "syscall_0x1d2": "removexattrat",
}
# Not of one request: a worker starts or ends, waits for its turn, is traced.
NOT_OF_REQUESTS = {
    "brk", "clone3", "exit", "futex", "madvise", "mmap", "mprotect", "munmap",
    "prctl", "restart_syscall", "rseq", "rt_sigprocmask", "rt_sigreturn",
    "sched_yield", "set_robust_list",
}
HEADER_BYTES = 8  # fuse_in_header: length, opcode
# 1700000000.123456 name(arguments) = result <0.000012>
LINE = re.compile(r"(\d+\.\d+) (\w+)\((.*)\)\s+= (\S+).*<(\d+\.\d+)>$")
# What ioctl(2) on /dev/fuse does, by its number.
IOCTLS = {"0x1": "BACKING_OPEN", "0x2": "BACKING_CLOSE"}


def fuse_fds(pid):
    """The process may close others while they are looked at."""
    fds = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/fuse":
                fds.add(int(fd))
        except FileNotFoundError:
            pass
    return fds


class Trace:
    """strace of all threads of a process, from now until stop()."""

    def __init__(self, pid, folder):
        self.prefix = folder / "calls"
        self.fuse_fds = fuse_fds(pid)
        tasks = pathlib.Path(f"/proc/{pid}/task")
        threads = len(os.listdir(tasks))
        # It looks how threads fare, by the clock and not by request.
        self.apart = [self.prefix.with_suffix(f".{task.name}")
                      for task in tasks.iterdir() if
                      (task / "comm").read_text().startswith("tracefs-policy")]
        # A file for each thread, so that no call is cut in two.
        self.process = subprocess.Popen(
            ["strace", "-ff", "-o", self.prefix, "-ttt", "-T", "-xx",
             "-s", str(HEADER_BYTES), "-p", str(pid)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "attached" in line:
                break
        else:
            raise OSError(f"strace ended with {self.process.wait()}")
        time.sleep(0.01 * threads)

    def stop(self):
        """The calls of each thread, in order: [[Call]]."""
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait(20)
        threads = []
        for path in sorted(self.prefix.parent.glob("calls.*")):
            if path in self.apart:
                continue
            with open(path, encoding="ascii", errors="replace") as lines:
                calls = [self._call(line) for line in lines]
            threads.append([c for c in calls if c is not None])
        return threads

    def _call(self, line):
        found = LINE.match(line)
        if found is None:
            return None
        begin, name, arguments, result, took = found.groups()
        first = arguments.split(",", 1)[0]
        fd = int(first) if first.isdigit() else None
        on_fuse = fd in self.fuse_fds
        opcode = None
        if on_fuse and name == "ioctl":
            number = re.search(r"_IOC\([^,]*, 0xe5, (0x\w+)", arguments)
            name = f"ioctl {IOCTLS.get(number and number[1], '?')}"
        elif on_fuse and name == "read" and not result.startswith("-"):
            opcode = _opcode(arguments)
        name = NAMES.get(name, name)
        return Call(name, float(begin), float(begin) + float(took), opcode,
                    on_fuse, fd, int(result) if result.isdigit() else 0)


# `opcode`: of the request that it read; None for any other call. `result`: 0 for
# what is no number of bytes or the like.
Call = collections.namedtuple("Call",
                              "name begin end opcode on_fuse fd result")


def _opcode(arguments):
    data = re.search(r'"((?:\\x[0-9a-f]{2})+)"', arguments)
    if data is None:
        return None
    raw = bytes.fromhex(data[1].replace("\\x", ""))
    if len(raw) < HEADER_BYTES:
        return None
    number = struct.unpack("=II", raw)[1]
    return OPCODES.get(number, str(number))


def requests(threads):
    """[(opcode, when it was read, Counter of the calls made for it)]; the
    answer itself is none of them."""
    found = []
    for calls in threads:
        current = None
        for call in calls:
            if call.on_fuse and call.name == "read":
                current = None
                if call.opcode is not None:
                    current = collections.Counter()
                    found.append((call.opcode, call.end, current))
            elif current is not None and call.name not in NOT_OF_REQUESTS:
                current[_shown(call)] += 1
    for _, _, calls in found:
        # The first is the answer; FORGETs have none.
        if calls["answer"] > 0:
            calls["answer"] -= 1
        calls["notify"] += calls.pop("answer", 0)
    return found


def _shown(call):
    return "answer" if call.on_fuse and call.name.startswith("write") else \
        call.name


def by_row(threads, phases, row_name):
    """{row: {call: times for each request}} of what came in each phase."""
    rows = {}
    came = requests(threads)
    for case, begin, end in phases:
        for key, opcode in case.rows.items():
            counts = [calls for code, when, calls in came
                      if code == opcode and begin <= when <= end]
            if counts:
                rows[row_name(case, key)] = _means(sum(
                    counts, collections.Counter()), len(counts))
    return rows


def by_operation(threads, phases, count):
    """{operation: {call: times for each}}, all threads together."""
    rows = {}
    for case, begin, end in phases:
        calls = collections.Counter(
            "notify" if c.on_fuse and c.name.startswith("write") else c.name
            for thread in threads for c in thread
            if begin <= c.end <= end and c.name not in NOT_OF_REQUESTS)
        rows[case.name] = _means(calls, count)
    return rows


# What is made less often is of the thread or of the clock: stacks, memory, the
# flusher.
RARE = 0.25


def _means(counter, count):
    means = {name: round(n / count, 1) for name, n in sorted(counter.items())}
    return {name: n for name, n in means.items() if n > RARE}
