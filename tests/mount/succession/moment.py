#!/usr/bin/env python3
"""Kills a daemon in a chosen moment (ptrace(2)).

  moment.py DAEMON ABOUT MOMENT

ABOUT is a request, by its FUSE opcode (or one of several: 47,53), of which the
first one counts; or a file, to which the daemon writes. Says "attached", and of
a request "taken" when a thread has read it, which then waits for a line. Each
call of the thread that serves the request, or each one on the file, is two
moments: it begins ("mkdirat>1") and has ended ("mkdirat<1", its first one); the
first of a request is "taken1". The daemon is killed in the MOMENT of that name.
Says at its end, in JSON, which there were.
"""

import ctypes
import errno
import json
import os
import platform
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (HANG_S, Failure, Skip, expect,  # noqa: E402
                             wait_until)

PTRACE_SYSCALL = 24
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
PTRACE_GET_SYSCALL_INFO = 0x420e
TRACESYSGOOD, TRACECLONE = 1, 8
WALL = 0x40000000
ENTRY, EXIT = 1, 2

# Others are called by their numbers.
NAMES = {"x86_64": {
    0: "read", 1: "write", 3: "close", 5: "fstat", 17: "pread64",
    18: "pwrite64", 20: "writev", 74: "fsync", 75: "fdatasync",
    77: "ftruncate", 188: "setxattr", 197: "removexattr", 257: "openat",
    258: "mkdirat", 259: "mknodat", 260: "fchownat", 262: "newfstatat",
    263: "unlinkat", 264: "renameat", 265: "linkat", 266: "symlinkat",
    268: "fchmodat", 280: "utimensat", 285: "fallocate", 296: "pwritev",
    303: "name_to_handle_at", 316: "renameat2", 326: "copy_file_range",
    328: "pwritev2", 452: "fchmodat2", 463: "setxattrat", 466: "removexattrat",
}}.get(platform.machine())

# What changes something.
CHANGES = {"mkdirat", "mknodat", "symlinkat", "linkat", "openat", "unlinkat",
           "renameat", "renameat2", "setxattrat", "removexattrat", "setxattr",
           "removexattr", "pwrite64", "pwritev2", "fallocate",
           "copy_file_range", "fchmodat", "fchmodat2", "fchownat", "ftruncate",
           "utimensat", "write", "writev", "pwritev", "fsync", "fdatasync",
           "close"}

# Of these, what no thread does but for a request.
DONE_ELSEWHERE = CHANGES - {"write", "writev", "pwritev", "openat", "close"}


class SyscallInfo(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint8), ("pad", ctypes.c_uint8 * 3),
                ("arch", ctypes.c_uint32), ("ip", ctypes.c_uint64),
                ("sp", ctypes.c_uint64), ("nr", ctypes.c_uint64),
                ("args", ctypes.c_uint64 * 6), ("more", ctypes.c_uint64 * 4)]

    def result(self):
        return ctypes.c_int64(self.nr).value


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                        ctypes.c_void_p]


def ptrace(request, tid, address=0, data=0):
    if LIBC.ptrace(request, tid, address, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Tracer:
    def __init__(self, daemon, about, moment):
        self.daemon = daemon
        self.moment = moment
        self.opcodes = (set(map(int, about.split(",")))
                        if about[0].isdigit() else None)
        self.file = about
        self.thread = None    # that serves the request
        self.unique = None    # its number
        self.elsewhere = False  # some other thread goes on with it
        self.entered = {}     # by thread: number of the call and arguments
        self.moments = []

    def attach(self):
        seen = set()
        while True:
            new = {int(t) for t in os.listdir(f"/proc/{self.daemon}/task")}
            if new == seen:
                return
            for tid in new - seen:
                try:
                    ptrace(PTRACE_SEIZE, tid, 0, TRACESYSGOOD | TRACECLONE)
                    ptrace(PTRACE_INTERRUPT, tid)
                except OSError as e:
                    # A new one of one that is traced already.
                    if e.errno not in (errno.EPERM, errno.ESRCH):
                        raise
            seen = new

    def is_about(self, fd):
        try:
            link = os.readlink(f"/proc/{self.daemon}/fd/{fd}")
        except OSError:
            return False
        return link == ("/dev/fuse" if self.opcodes is not None else self.file)

    def reach(self, label):
        count = sum(one.startswith(label) for one in self.moments)
        self.moments.append(f"{label}{count + 1}")
        if self.moments[-1] == self.moment:
            os.kill(self.daemon, signal.SIGKILL)
            return True
        return False

    def number_at(self, address, size):
        with open(f"/proc/{self.daemon}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return int.from_bytes(memory.read(size), sys.byteorder)

    def take(self, tid, buffer):
        """A request has been read."""
        if self.number_at(buffer + 4, 4) not in self.opcodes:
            return False
        self.unique = self.number_at(buffer + 8, 8)
        self.thread = tid
        print("taken", flush=True)
        sys.stdin.readline()
        return self.reach("taken")

    def at_call(self, tid):
        """True if that is all."""
        info = SyscallInfo()
        ptrace(PTRACE_GET_SYSCALL_INFO, tid, ctypes.sizeof(info),
               ctypes.addressof(info))
        if info.op == ENTRY:
            self.entered[tid] = (info.nr, list(info.args))
        elif info.op != EXIT or tid not in self.entered:
            return False
        number, args = self.entered[tid]
        name = NAMES.get(number, f"call-{number}")
        end = ">" if info.op == ENTRY else "<"
        if self.opcodes is None:
            return (name in CHANGES and self.is_about(args[0])
                    and self.reach(name + end))
        if self.thread is None:
            return (name == "read" and info.op == EXIT and info.result() >= 40
                    and self.is_about(args[0]) and self.take(tid, args[1]))
        if name in ("write", "writev") and self.is_about(args[0]):
            out = args[1] if name == "write" else self.number_at(args[1], 8)
            if self.number_at(out + 8, 8) != self.unique:
                return False
            return self.reach("reply" + end) or info.op == EXIT
        if name == "read" and tid == self.thread and self.is_about(args[0]):
            self.elsewhere = True
        if self.elsewhere:
            return name in DONE_ELSEWHERE and self.reach(name + end)
        return tid == self.thread and self.reach(name + end)

    def run(self):
        self.attach()
        print("attached", flush=True)
        while True:
            try:
                tid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                return
            if not os.WIFSTOPPED(status):
                continue
            number, event = os.WSTOPSIG(status), status >> 16
            passed = 0
            try:
                if number == signal.SIGTRAP | 0x80:
                    if self.at_call(tid):
                        return
                elif event == 0:
                    passed = number
                ptrace(PTRACE_SYSCALL, tid, 0, passed)
            except ProcessLookupError:
                continue


class Watched:
    """The daemon of a mount, which is killed in that moment of the request or
    file. Made by a case. Of a request `await_word`, `go`, then `moments`."""

    def __init__(self, suite, daemon, about, moment):
        if NAMES is None:
            raise Skip("the numbers of calls are not known here")
        self.tracer = suite.background(subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), str(daemon),
             str(about), moment], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True))
        self.await_word("attached")

    def await_word(self, word):
        line = self.tracer.stdout.readline()
        expect(line == word + "\n", f"moment.py says {line!r}, not {word!r}")

    def go(self):
        self.tracer.stdin.write("\n")
        self.tracer.stdin.flush()

    def moments(self):
        """All up to the one that it was killed in, if that came."""
        line = self.tracer.stdout.readline()
        self.tracer.wait(HANG_S)
        expect(line, "moment.py has ended without a word")
        return json.loads(line)


class Caller:
    """A process that makes a call, and what came of it."""

    def __init__(self, call, *arguments):
        self.reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid != 0:
            os.close(writes)
            return
        outcome = "?"
        try:
            outcome = call(*arguments)
        except OSError as e:
            outcome = errno.errorcode.get(e.errno, str(e.errno))
        except BaseException as e:  # pylint: disable=broad-except
            outcome = repr(e)
        finally:
            os.write(writes, json.dumps(outcome).encode())
            os._exit(0)

    def outcome(self):
        def ended():
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        try:
            wait_until(ended, "a call", HANG_S)
        except Failure:
            os.kill(self.pid, signal.SIGKILL)
            raise
        with open(self.reads, encoding="ascii") as said:
            return json.loads(said.read())


def main():
    signal.alarm(2 * HANG_S)
    tracer = Tracer(int(sys.argv[1]), sys.argv[2], sys.argv[3])
    tracer.run()
    print(json.dumps(tracer.moments), flush=True)


if __name__ == "__main__":
    main()
