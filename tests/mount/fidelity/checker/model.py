"""Who works, and on which open files, as strace's calls tell it."""

import collections


class Mismatch(Exception):
    pass


class OpenFile:
    """An open file description: what dup and fork share."""

    def __init__(self, path, flags, kind):
        self.path = path  # absolute, when it was opened
        self.flags = flags
        self.kind = kind  # "file", "dir", "other" (no handle), "outside"
        self.fh = None
        self.ino = None
        self.position = 0
        self.last_flush = (0, None)  # when, and by which thread

    @property
    def traced(self):
        return self.fh is not None

    def flushed(self, event):
        self.last_flush = max(self.last_flush, (event["ts"], event["tid"]))


class Process:
    """What the threads of a process share."""

    def __init__(self, pid, cwd, umask, uid, gid):
        self.pid = pid
        self.cwd = cwd
        self.umask = umask
        self.uid = uid
        self.gid = gid
        self.fds = {}
        self.close_on_exec = set()
        self.late_flushes = collections.Counter()  # by fh: exec, exit

    def install(self, fd, file, close_on_exec):
        self.fds[fd] = file
        if close_on_exec:
            self.close_on_exec.add(fd)
        else:
            self.close_on_exec.discard(fd)

    def remove(self, fd):
        """Its file; None if it is not open."""
        self.close_on_exec.discard(fd)
        return self.fds.pop(fd, None)

    def fork(self, pid):
        child = Process(pid, self.cwd, self.umask, self.uid, self.gid)
        child.fds = dict(self.fds)
        child.close_on_exec = set(self.close_on_exec)
        return child


class Thread:
    def __init__(self, tid, process, comm, events):
        self.tid = tid
        self.process = process
        self.comm = comm
        self.old_comms = {comm}
        self.events = events


class Walk:
    """How a path walk ended."""

    def __init__(self, path, found, ino=None, kind=None, error=None):
        self.path = path
        self.found = found
        self.ino = ino
        self.kind = kind
        self.error = error
