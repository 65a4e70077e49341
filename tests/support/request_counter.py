"""Counts the requests that the kernel sends to one FUSE mount.

The kernel's own tracepoint fuse:fuse_request_send, counted in the kernel (a
counting perf event for each kind of request and processor, with a filter on the
connection), so that nothing can be lost on the way. Whoever compares these
numbers with a trace knows what is missing in it.

    with RequestCounter(point) as counter:    # right after mounting
        ...
        mount.unmount()
        counts = counter.counts()             # {"lookup": 12, ...}

Needs root and a kernel with tracepoints: Unavailable says what is missing.
"""

import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import tempfile

# linux/fuse.h, by the names that traces use. Not counted: FORGET and its
# batches, INTERRUPT, INIT, DESTROY, which are not operations.
OPCODES = {
    1: "lookup", 3: "getattr", 4: "setattr", 5: "readlink", 6: "symlink",
    8: "mknod", 9: "mkdir", 10: "unlink", 11: "rmdir", 12: "rename",
    13: "link", 14: "open", 15: "read", 16: "write", 17: "statfs",
    18: "release", 20: "fsync", 21: "setxattr", 22: "getxattr",
    23: "listxattr", 24: "removexattr", 25: "flush", 27: "opendir",
    28: "readdir", 29: "releasedir", 30: "fsyncdir", 31: "getlk", 32: "setlk",
    33: "setlk", 34: "access", 35: "create", 39: "ioctl", 40: "poll",
    43: "fallocate", 44: "readdir", 45: "rename", 46: "lseek",
    47: "copy_file_range", 51: "tmpfile", 52: "statx", 53: "copy_file_range",
}

PERF_EVENT_OPEN = 298  # x86-64; elsewhere Unavailable
PERF_TYPE_TRACEPOINT = 2
PERF_ATTR_BYTES = 64  # PERF_ATTR_SIZE_VER0
PERF_DISABLED = 1
PERF_IOC_SET_FILTER = 0x40082406
PERF_IOC_ENABLE = 0x2400


class Unavailable(Exception):
    """Why requests cannot be counted here."""


def connection_of(point):
    """The minor number of the mount's device, which is the connection's."""
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if fields[4] == point:
                found = fields[2]
    if found is None:
        raise Unavailable(f"nothing is mounted at {point}")
    return int(found.split(":")[1])


def tracepoint_ids(*names):
    """The numbers of tracepoints, from a private mount of tracefs."""
    with tempfile.TemporaryDirectory() as folder:
        mount = subprocess.run(["mount", "-t", "tracefs", "nodev", folder],
                               capture_output=True, text=True, check=False)
        if mount.returncode != 0:
            raise Unavailable("the kernel's tracefs cannot be mounted")
        try:
            numbers = []
            for name in names:
                path = os.path.join(folder, "events/fuse", name, "id")
                with open(path, encoding="ascii") as text:
                    numbers.append(int(text.read()))
            return numbers
        except FileNotFoundError:
            raise Unavailable("no tracepoints of FUSE requests") from None
        finally:
            subprocess.run(["umount", folder], check=True)


def open_event(tracepoint, processor, condition):
    """A counter of that tracepoint's hits that meet `condition`."""
    if os.uname().machine != "x86_64":
        raise Unavailable("the number of perf_event_open is not known here")
    # It counts nothing before it has its filter.
    attr = struct.pack("=IIQQQQQ", PERF_TYPE_TRACEPOINT, PERF_ATTR_BYTES,
                       tracepoint, 0, 0, 0,
                       PERF_DISABLED).ljust(PERF_ATTR_BYTES, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(PERF_EVENT_OPEN, attr, -1, processor, -1, 8)  # CLOEXEC
    if fd < 0:
        error = ctypes.get_errno()
        if error == errno.ENODEV:
            return None  # this processor is off
        raise Unavailable(f"perf_event_open: {os.strerror(error)}")
    # The ioctl takes a pointer to text, for which fcntl.ioctl has no form.
    if (libc.ioctl(fd, PERF_IOC_SET_FILTER, condition.encode()) != 0
            or libc.ioctl(fd, PERF_IOC_ENABLE, 0) != 0):
        error = ctypes.get_errno()
        os.close(fd)
        raise Unavailable(f"filter of a perf event: {os.strerror(error)}")
    return fd


class RequestCounter(contextlib.AbstractContextManager):
    """Counts from its making on."""

    def __init__(self, point):
        self._events = []  # (name of the operation, descriptor)
        self._connection = f"connection == {connection_of(point)}"
        send, end = tracepoint_ids("fuse_request_send", "fuse_request_end")
        try:
            for opcode, name in OPCODES.items():
                self._add(name, send, f" && opcode == {opcode}")
            self._add("", end, "")
        except BaseException:
            self.close()
            raise

    def _add(self, name, tracepoint, condition):
        for processor in range(os.cpu_count()):
            event = open_event(tracepoint, processor,
                               self._connection + condition)
            if event is not None:
                self._events.append((name, event))

    def counts(self):
        """Counts requests sent, by operation. Those of callers who were killed
        before the daemon took them never reach it, and count as well."""
        counts = self._read()
        counts.pop("", None)
        return counts

    def answered(self):
        """The number of requests that the daemon has answered by now."""
        return self._read().get("", 0)

    def _read(self):
        counts = {}
        for name, event in self._events:
            (count,) = struct.unpack("=Q", os.read(event, 8))
            if count:
                counts[name] = counts.get(name, 0) + count
        return counts

    def close(self):
        for _, event in self._events:
            os.close(event)
        self._events = []

    def __exit__(self, *_):
        self.close()
