"""Holds a trace against strace's record of the same work.

For each thread the system calls, in order, say which requests must be in the
trace, in order, with which arguments and results; MAPPING.md lists the rules.
The checker walks both sequences at once: a request too many, too few, in the
wrong place or with a wrong value is an error. Nothing is taken from the trace
to say what the trace should hold, but for file handles and the targets of
symbolic links (which are compared with what strace saw being created).
"""

import collections
import os
import re
import stat

import strace_log
from kept import ALL, ARRIVED, Kept, arrived_us

MAX_REQUEST = 1 << 20

O_ACCMODE, O_CREAT, O_EXCL, O_TRUNC = 3, 0o100, 0o200, 0o1000
O_APPEND, O_DIRECT, O_DIRECTORY = 0o2000, 0o40000, 0o200000
O_NOFOLLOW, O_CLOEXEC, O_PATH = 0o400000, 0o2000000, 0o10000000
O_TMPFILE = 0o20000000 | O_DIRECTORY
# What reaches the file system of open(2)'s flags, but for O_CREAT and O_EXCL.
O_COMPARED = (O_ACCMODE | O_TRUNC | O_APPEND | O_DIRECT | 0o4000  # O_NONBLOCK
              | 0o4010000 | 0o1000000)  # O_SYNC, O_NOATIME
AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW = -100, 0x200, 0x100
AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, AT_EACCESS = 0x400, 0x1000, 0x200

CLONE_FS, CLONE_FILES, CLONE_THREAD = 0x200, 0x400, 0x10000
UNCHANGED = 0xFFFFFFFF

# FUSE's bits of ARG_VALID.
FATTR_MODE, FATTR_UID, FATTR_GID, FATTR_SIZE = 1, 2, 4, 8
FATTR_ATIME, FATTR_MTIME, FATTR_ATIME_NOW, FATTR_MTIME_NOW = 16, 32, 128, 256
FATTR_COMPARED = 0x1BF
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2

# Errors the kernel finds itself, before it asks the file system.
KERNEL_ERRORS = {
    "EACCES", "EPERM", "EBADF", "EFAULT", "EINVAL", "EISDIR", "ELOOP",
    "ENOTDIR", "ENXIO", "EXDEV", "EMFILE", "ENFILE", "EEXIST", "ENOENT",
    "EBUSY", "EFBIG", "ESPIPE", "ETXTBSY", "EOPNOTSUPP", "ENAMETOOLONG",
    "EMLINK", "EOVERFLOW", "EROFS", "EINTR", "ENOTTY", "ERANGE", "E2BIG",
    "ENODATA",
}
# Of a path walk that ends early.
REFUSED_ON_THE_WAY = {"EACCES", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EFAULT"}
# Asked by the kernel on its own account: to know whether a write clears a
# file's capabilities, and to decide a permission.
POSIX_ACLS = {"system.posix_acl_access", "system.posix_acl_default"}
KERNEL_XATTRS = POSIX_ACLS | {"security.capability"}
STATX_BTIME = 0x800
PROC_FD = re.compile(r"/proc/(?:self|thread-self|\d+)/fd/(\d+)")
# Real times of a trace are as exact as FORMAT.md section 6 promises.
CLOCK_SLACK_US = 1000
# How long after its answer a request may still be on its way to the trace,
# where processors are scarce.
LATE_NAME_US = 1000000


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


class Checker:
    def __init__(self, mount, calls, events, root, cwd, umask=0o022,
                 locks=True, visibility="exact", others=()):
        """`mount`: the mount point. `root`: (pid, comm) of the first process;
        `cwd`: where it began. `locks`: lock requests are in the trace.
        `visibility`: what the kernel may have answered by itself, from what
        was asked here or for `others`."""
        self.locks = locks
        self.kept = Kept(visibility, [*events, *others], CLOCK_SLACK_US)
        self.hidden = collections.Counter()  # of those answers
        self.mount = mount
        self.calls = calls
        self.counts = collections.Counter()  # what was compared, by op
        self.compared = []  # the events themselves
        self.kernel_requests = collections.Counter()
        self.files = {}  # fh -> OpenFile
        self.mapped = set()  # inodes whose pages come and go by themselves
        self.links = {}  # absolute path -> target, as strace saw symlink(2)
        self.threads = {}
        self.call = None
        self.thread = None
        self.asked_xattr = None  # the name that a getxattr asks for
        self.comm_lag = 0  # requests that still had an old name
        self.late_names = 0  # and those that had a new path already
        # When, and the last components of both names.
        self.renames = [(c.begin_us, *self.last_names(c)) for c in calls
                        if c.ok and c.name.startswith(("rename", "link"))]
        self.hard_linked = set()
        self.sizes = {}  # inode -> size, where it is known for sure
        self.cached = collections.defaultdict(set)  # inode -> page numbers
        self.releases = []
        self.inferred = []
        by_tid = collections.defaultdict(collections.deque)
        for event in events:
            if event["op"] in ("release", "releasedir"):
                self.releases.append(event)
            elif event.get("inferred"):
                self.inferred.append(event)
            else:
                by_tid[event["tid"]].append(event)
        self.by_tid = by_tid
        pid, comm = root
        process = Process(pid, cwd, umask, os.getuid(), os.getgid())
        for fd in (0, 1, 2):
            self.install(process, fd, OpenFile("", 0, "outside"), False)
        self.threads[pid] = Thread(pid, process, comm, by_tid[pid])

    @staticmethod
    def last_names(call):
        names = [a for a in strace_log.args(call) if isinstance(a, str)]
        return [n.rstrip("/").rpartition("/")[2] for n in names]

    # --- the two sequences

    def run(self):
        known = {c.tid for c in self.calls}
        for tid in self.by_tid:
            if tid not in known:
                raise Mismatch(
                    f"requests of thread {tid}, which strace does not know: "
                    f"{self.by_tid[tid][0]}")
        for call in self.calls:
            self.call = call
            self.thread = self.threads.get(call.tid)
            if self.thread is None:
                raise Mismatch(f"no clone of this thread was seen: {call}")
            handler = getattr(self, "sys_" + call.name, None)
            if handler is None:
                continue
            arguments = strace_log.args(call)
            self.asked_xattr = (arguments[1] if "getxattr" in call.name
                                else None)
            handler(*arguments)
        self.check_rest()

    def fail(self, text):
        upcoming = "\n".join(f"    {e}" for e in
                             list(self.thread.events)[:6])
        raise Mismatch(f"{text}\n  call: {self.call}\n"
                       f"  the thread's next requests in the trace:\n"
                       f"{upcoming or '    none'}")

    def by_kernel(self, event, direct):
        """What this request is called if the kernel made it on its own
        account, else None. `direct`: (handle, offset) of a read that was asked
        for."""
        op = event["op"]
        if op == "getattr":
            return op
        if (op == "getxattr" and event.get("xattr") in KERNEL_XATTRS
                and event["xattr"] != self.asked_xattr):
            return f"getxattr {event['xattr']}"
        if (op == "read" and event.get("mapped")
                and event["ino"] in self.mapped):
            return "read of a mapped file"
        if (op == "read" and event["fh"] in self.files
                and self.files[event["fh"]].kind == "exec"):
            return "read of a program that is run"
        if (op == "flush"
                and self.thread.process.late_flushes[event["fh"]] > 0):
            return "flush at exit or exec"
        return None

    def peek(self, direct=None):
        """The thread's next request that a call stands for."""
        for event in self.thread.events:
            if self.by_kernel(event, direct) is None:
                return event
        return None

    def pop(self, wanted, direct):
        """Takes the requests up to and including `wanted`, or all."""
        events = self.thread.events
        while events:
            event = events.popleft()
            event[ARRIVED] = self.call.next_us
            self.check_caller(event)
            if event is wanted:
                return
            name = self.by_kernel(event, direct)
            if name is None:
                self.fail(f"no call stands for {event}")
            if event["op"] == "flush":
                self.thread.process.late_flushes[event["fh"]] -= 1
                self.files[event["fh"]].flushed(event)
            self.kernel_requests[name] += 1

    def take(self, op, error=None, **fields):
        """The next request must be `op` with these values."""
        direct = fields.get("fh"), fields.get("offset")
        event = self.peek(direct)
        if event is None or event["op"] != op:
            self.fail(f"a {op} is missing ({fields})")
        self.pop(event, direct)
        self.counts[op] += 1
        self.compared.append(event)
        if error is True:
            if "errno" not in event:
                self.fail(f"{event} should have failed")
        elif event.get("errno") != error:
            self.fail(f"errno of {event} is not {error}")
        for key, want in fields.items():
            if want is None or event.get(key) == want:
                continue
            if key not in ("path", "path2") or not self.named_late(
                    event, event.get(key), want):
                self.fail(f"{key} of {event} is not {want!r}")
        return event

    def is_lookup_of(self, event, inner):
        folder, _, name = inner.rpartition("/")
        got_folder, _, got_name = event.get("path", "").rpartition("/")
        return name == got_name and self.named_late(event, got_folder, folder)

    def named_late(self, event, got, want):
        """Paths are looked up when the answer is on its way: a rename that
        follows at once may come first. True if one did."""
        if got is None or got == want:
            return got == want
        for when, old, new in self.renames:
            if (event["ts"] // 1000 - CLOCK_SLACK_US <= when
                    <= event["ts"] // 1000 + LATE_NAME_US
                    and old in want.split("/") and new in got.split("/")):
                self.late_names += 1
                return True
        return False

    def take_if(self, op, **fields):
        """As take(), but it may be missing if the call failed with an error
        that the kernel can find by itself."""
        event = self.peek()
        if (event is not None and event["op"] == op
                and event.get("errno") == self.call.error):
            return self.take(op, self.call.error, **fields)
        if self.call.error not in KERNEL_ERRORS:
            self.fail(f"{op} is missing, and only the file system can have "
                      f"found {self.call.error}")
        return None

    def done(self, op, **fields):
        """The request that the call as a whole stands for."""
        if self.call.ok:
            return self.take(op, **fields)
        return self.take_if(op, **fields)

    def check_caller(self, event):
        thread = self.thread
        process = thread.process
        if event.get("pid") != process.pid:
            self.fail(f"pid of {event} is not {process.pid}")
        if (event["uid"], event["gid"]) != (process.uid, process.gid):
            self.fail(f"caller of {event} is not {process.uid}:{process.gid}")
        if event.get("comm") != thread.comm:
            # The kernel tells of exec and prctl a moment later.
            if event.get("comm") not in thread.old_comms:
                self.fail(f"comm of {event} is not {thread.comm!r}")
            self.comm_lag += 1

    # --- paths

    def inside(self, path):
        """The path in the trace's terms, or None if it is not ours."""
        if path == self.mount:
            return "/"
        if path.startswith(self.mount + "/"):
            return path[len(self.mount):]
        return None

    def base(self, dirfd):
        if dirfd is None or isinstance(dirfd, str):
            return self.thread.process.cwd
        number = getattr(dirfd, "number", dirfd)
        if number == AT_FDCWD:
            return self.thread.process.cwd
        # strace reads where the directory is now from /proc.
        return dirfd.path

    def walk(self, dirfd, name, follow=True, creates=False):
        """Takes the look-ups of a path walk; what was found at its end."""
        at = "/" if name.startswith("/") else self.base(dirfd)
        parts = [p for p in name.split("/") if p not in ("", ".")]
        follow = follow or name.endswith(("/", "/."))
        found = Walk(at, True, kind="dir")
        links = 0
        while parts:
            part = parts.pop(0)
            if part == "..":
                at = os.path.dirname(at)
                found = Walk(at, True, kind="dir")
                continue
            where = os.path.join(at, part)
            inner = self.inside(where)
            number = PROC_FD.fullmatch(where)
            if number and (parts or follow):
                # Goes straight to the file.
                file = self.file(int(number[1]))
                if file is None:
                    return Walk(where, False, error="ENOENT")
                found = Walk(file.path, True, file.ino, file.kind)
                at = file.path
                continue
            if inner is None or inner == "/":
                # Not ours; what lies there we take from the machine itself.
                found = Walk(where, os.path.lexists(where))
                at = where
                continue
            found = self.look_up(where, inner)
            if found is None:
                if self.call.error not in REFUSED_ON_THE_WAY:
                    self.fail(f"a lookup of {inner} is missing")
                return Walk(where, False, error=self.call.error)
            if not found.found:
                if parts and self.call.ok:
                    self.fail(f"{inner} cannot have failed with {found.error}")
                if not parts and creates and found.error == "ENOENT":
                    return found
                if found.error != self.call.error:
                    self.fail(f"the lookup of {inner} failed with "
                              f"{found.error}, and the call otherwise")
                return found
            if found.kind == "link" and (parts or follow):
                links += 1
                if links > 40:
                    return Walk(where, False, error="ELOOP")
                target = self.kept.target(found.ino)
                if self.next_is("readlink", ino=found.ino):
                    target = self.take(
                        "readlink", path=None if found.ino in
                        self.hard_linked else inner)["target"]
                    self.kept.note_target(found.ino, target)
                elif target is not None:
                    self.hidden["readlink"] += 1
                elif self.call.ok:
                    self.fail(f"{inner} is a symbolic link: a readlink "
                              "is missing")
                else:
                    return Walk(where, False, error=self.call.error)
                if self.links.get(where, target) != target:
                    self.fail(f"{inner} points to {self.links[where]!r}, "
                              f"not to {target!r}")
                parts = [p for p in target.split("/")
                         if p not in ("", ".")] + parts
                if target.startswith("/"):
                    at = "/"
                found = Walk(at, True, kind="dir")
                continue
            at = where
        return found

    def look_up(self, where, inner):
        """What a name means: by its lookup, or as the kernel knew it. None:
        neither is there."""
        event = self.peek()
        if (event is not None and event["op"] == "lookup"
                and self.is_lookup_of(event, inner)
                and (not self.kept.anything or self.during_call(event))):
            error = event.get("errno")
            self.take("lookup", error)
            if error is None:
                self.kept.note_name(where, event["ino"], event["type"],
                                    arrived_us(event))
                return Walk(where, True, event["ino"], event["type"])
            if error == "ENOENT":
                self.kept.note_name(where, None, None, arrived_us(event))
            return Walk(where, False, error=error)
        known = self.kept.name(where, inner, self.call)
        if known is None:
            return None
        self.hidden["lookup"] += 1
        if known.ino is None:
            return Walk(where, False, error="ENOENT")
        return Walk(where, True, known.ino, known.kind)

    def next_is(self, op, **fields):
        event = self.peek()
        return (event is not None and event["op"] == op
                and all(event.get(k) == v for k, v in fields.items()))

    def target(self, dirfd, name, flags=0, follow_by_default=True):
        """A path that may be empty with AT_EMPTY_PATH; None if not ours."""
        if name is None or (name == "" and flags & AT_EMPTY_PATH):
            file = self.file(dirfd)
            if file is not None:
                return Walk(file.path, True, file.ino,
                            file.kind) if file.ino else None
            return None
        follow = follow_by_default and not flags & AT_SYMLINK_NOFOLLOW
        walk = self.walk(dirfd, name, follow)
        return walk if walk.found and self.inside(walk.path) else None

    # --- descriptors

    def install(self, process, fd, file, close_on_exec):
        process.fds[fd] = file
        if close_on_exec:
            process.close_on_exec.add(fd)
        else:
            process.close_on_exec.discard(fd)

    def file(self, fd):
        number = getattr(fd, "number", fd)
        file = self.thread.process.fds.get(number)
        return file

    def traced(self, fd):
        file = self.file(fd)
        return file if file is not None and file.traced else None

    def close_fd(self, number):
        process = self.thread.process
        file = process.fds.pop(number, None)
        process.close_on_exec.discard(number)
        if file is None:
            return
        if file.traced and file.kind == "file":
            file.flushed(self.take(
                "flush", None if self.call.ok else self.call.error,
                fh=file.fh, ino=file.ino))

    def drop_all(self, process, numbers):
        """exec and exit close these; their flushes come when they come."""
        for number in list(numbers):
            file = process.fds.pop(number, None)
            process.close_on_exec.discard(number)
            if file is None:
                continue
            if file.traced and file.kind == "file":
                process.late_flushes[file.fh] += 1

    def check_path(self, event, file):
        """strace's path of a descriptor is the kernel's own."""
        fd = strace_log.args(self.call)[0]
        if file.ino in self.hard_linked:
            return
        if fd.deleted and event.get("path") is None:
            return  # made without a name
        # Of a file without a name the last one stays known.
        want = self.inside(fd.path)
        if not self.named_late(event, event.get("path"), want):
            self.fail(f"path of {event} is not {want}")

    # --- open and close

    def opened(self, dirfd, name, flags, mode):
        call = self.call
        process = self.thread.process
        if flags & O_TMPFILE == O_TMPFILE:
            walk = self.walk(dirfd, name)
            return self.open_tmpfile(walk, flags, mode)
        creates = bool(flags & O_CREAT)
        follow = not (flags & O_NOFOLLOW or (creates and flags & O_EXCL))
        walk = self.walk(dirfd, name, follow, creates)
        inner = self.inside(walk.path)
        file = OpenFile(walk.path, flags, "outside")
        if inner is None or flags & O_PATH:
            if flags & O_PATH and inner is not None:
                file.kind = "other"
                file.ino = walk.ino
        elif not call.ok:
            if creates and walk.error == "ENOENT":
                self.take_if("create", path=inner)
            elif walk.found and walk.kind == "dir":
                self.take_if("opendir", path=inner)
            elif walk.found:
                self.take_if("open", path=inner)
            return
        elif creates and walk.error == "ENOENT":
            event = self.take("create", path=inner, mode=None,
                              umask=process.umask)
            if flags & O_EXCL:
                flags &= ~O_TRUNC  # there is nothing to truncate
            self.compare_flags(event, flags)
            if (event["mode"] ^ mode) & 0o1777:
                self.fail(f"mode of {event} is not {mode:o}")
            file.kind = "file"
            self.sizes[event["ino"]] = 0
            self.kept.note_name(walk.path, event["ino"], "file",
                                arrived_us(event))
        elif walk.kind == "dir" or inner == "/":
            event = self.take("opendir", path=inner)
            file.kind = "dir"
        elif walk.kind == "file":
            # Which of several names it was the kernel says with the lookup.
            several = self.kept.anything and walk.ino in self.hard_linked
            event = self.take("open", path=None if several else inner,
                              ino=walk.ino)
            self.compare_flags(event, flags)
            if flags & O_TRUNC:
                self.sizes[event["ino"]] = 0
            file.kind = "file"
        else:
            file.kind = "other"  # a device, a FIFO: never ours
        if not call.ok:
            return
        if file.kind in ("file", "dir"):
            self.note_handle(file, event)
        self.install(process, call.result, file, flags & O_CLOEXEC)

    def open_tmpfile(self, walk, flags, mode):
        inner = self.inside(walk.path)
        file = OpenFile(walk.path, flags, "outside")
        if inner is not None and walk.found:
            event = self.done("tmpfile", umask=self.thread.process.umask)
            if event is not None and self.call.ok:
                file.kind = "file"
                self.note_handle(file, event)
                self.sizes[event["ino"]] = 0
        if self.call.ok:
            self.install(self.thread.process, self.call.result, file,
                         flags & O_CLOEXEC)

    def note_handle(self, file, event):
        if event["fh"] in self.files:
            self.fail(f"the handle of {event} was given before")
        file.fh = event["fh"]
        file.ino = event["ino"]
        self.files[file.fh] = file

    def compare_flags(self, event, flags):
        if (event["flags"] ^ flags) & O_COMPARED:
            self.fail(f"flags of {event} are not 0{flags:o}")

    def sys_open(self, name, flags, mode=0):
        self.opened(None, name, flags, mode)

    def sys_creat(self, name, mode):
        self.opened(None, name, O_CREAT | O_TRUNC | 1, mode)

    def sys_openat(self, dirfd, name, flags, mode=0):
        self.opened(dirfd, name, flags, mode)

    def sys_openat2(self, dirfd, name, how, _size):
        self.opened(dirfd, name, how["flags"], how.get("mode", 0))

    def sys_close(self, fd):
        if self.call.error != "EBADF":
            self.close_fd(getattr(fd, "number", fd))

    def sys_close_range(self, first, last, _flags):
        for number in sorted(self.thread.process.fds):
            if first <= number <= last:
                self.close_fd(number)

    def duplicate(self, old, new, close_on_exec):
        if not self.call.ok:
            return
        file = self.file(old)
        if new == getattr(old, "number", old):
            return
        self.close_fd(new)
        if file is not None:
            self.install(self.thread.process, new, file, close_on_exec)

    def sys_dup(self, old):
        self.duplicate(old, self.call.result, False)

    def sys_dup2(self, old, _new):
        self.duplicate(old, self.call.result, False)

    def sys_dup3(self, old, _new, flags):
        self.duplicate(old, self.call.result, flags & O_CLOEXEC)

    def sys_fcntl(self, fd, command, argument=0, *_rest):
        process = self.thread.process
        number = getattr(fd, "number", fd)
        file = self.file(fd)
        if command in (0, 0x406):  # F_DUPFD, F_DUPFD_CLOEXEC
            self.duplicate(fd, self.call.result, command == 0x406)
        elif command == 2 and self.call.ok:  # F_SETFD
            if argument & 1:
                process.close_on_exec.add(number)
            else:
                process.close_on_exec.discard(number)
        elif command == 4 and self.call.ok and file is not None:  # F_SETFL
            kept = O_APPEND | O_DIRECT
            file.flags = (file.flags & ~kept) | (argument & kept)
        elif (command in (5, 6, 7, 36, 37, 38) and self.locks
              and self.traced(fd)):
            # F_GETLK, F_SETLK, F_SETLKW, and those of open files.
            fields = {"offset": argument["l_start"], "size": argument["l_len"]}
            if command in (5, 36):
                # strace prints the lock that was found, not that asked for.
                self.done("getlk", fh=file.fh)
            elif self.call.error == "EAGAIN":
                self.take("setlk", "EAGAIN", fh=file.fh, **fields)
            else:
                self.done("setlk", fh=file.fh, lock_type=argument["l_type"],
                          flags=1 if command in (7, 38) else 0, **fields)

    def sys_flock(self, fd, operation):
        file = self.traced(fd)
        if file is not None and self.locks:
            kind = {1: 0, 2: 1, 8: 2}[operation & ~4]
            waits = 1 if kind != 2 and not operation & 4 else 0
            self.take("flock", self.call.error, fh=file.fh, lock_type=kind,
                      flags=waits)

    # --- data

    def transfer(self, op, file, offset, count, appends=False):
        """Requests of one read or write: whole, or split at MAX_REQUEST."""
        call = self.call
        if count == 0:
            return offset
        if not call.ok:
            event = self.take_if(op, fh=file.fh, ino=file.ino)
            return event["offset"] if event else offset
        left, done = count, 0
        while left > 0:
            event = self.peek((file.fh, offset + done))
            if (done > 0 and (event is None or event["op"] != op
                              or event.get("fh") != file.fh)):
                break
            if not done and appends and event and event["op"] == op:
                offset = self.sizes.get(file.ino, event["offset"])
            error = event.get("errno") if event and done else None
            event = self.take(op, error, fh=file.fh, ino=file.ino,
                              offset=offset + done)
            self.check_path(event, file)
            size, got = event["size"], event["result"]
            if error is not None:
                break
            # Pages of the caller's buffer, of which the first and last may be
            # used in part, are what is limited.
            if size > min(left, MAX_REQUEST) or (
                    size < left and size < MAX_REQUEST - 4096):
                self.fail(f"size of {event}: {left} bytes were left to do")
            left -= size
            done += got
            if got < size:
                break
        if op == "write":
            self.grew(file.ino, offset + done)
        if done != call.result:
            self.fail(f"{op}s of {done} bytes in the trace, strace saw "
                      f"{call.result} of {count}")
        return offset

    def grew(self, ino, end):
        if ino in self.sizes:
            self.sizes[ino] = max(self.sizes[ino], end)

    def length(self, value):
        if isinstance(value, list):
            return sum(v["iov_len"] for v in value)
        return value

    def plain(self, op, fd, count):
        file = self.traced(fd)
        if file is None or file.kind != "file":
            return
        appends = op == "write" and file.flags & O_APPEND
        offset = self.transfer(op, file, file.position, count, appends)
        if self.call.ok and count > 0:
            file.position = offset + self.call.result

    def positioned(self, op, fd, count, offset, flags=0):
        file = self.traced(fd)
        if file is None or file.kind != "file":
            return
        appends = op == "write" and (file.flags & O_APPEND or flags & 0x10)
        if offset in (-1, 2**64 - 1):  # preadv2: the current position
            self.plain(op, fd, count)
        else:
            self.transfer(op, file, offset, count, appends)

    def sys_read(self, fd, _data, count):
        self.plain("read", fd, count)

    def sys_write(self, fd, _data, count):
        self.plain("write", fd, count)

    def sys_readv(self, fd, vector, _count):
        self.plain("read", fd, self.length(vector))

    def sys_writev(self, fd, vector, _count):
        self.plain("write", fd, self.length(vector))

    def sys_pread64(self, fd, _data, count, offset):
        self.positioned("read", fd, count, offset)

    def sys_pwrite64(self, fd, _data, count, offset):
        self.positioned("write", fd, count, offset)

    def sys_preadv(self, fd, vector, _count, offset):
        self.positioned("read", fd, self.length(vector), offset)

    def sys_pwritev(self, fd, vector, _count, offset):
        self.positioned("write", fd, self.length(vector), offset)

    def sys_preadv2(self, fd, vector, _count, offset, flags):
        self.positioned("read", fd, self.length(vector), offset, flags)

    def sys_pwritev2(self, fd, vector, _count, offset, flags):
        self.positioned("write", fd, self.length(vector), offset, flags)

    def sys_lseek(self, fd, offset, whence):
        file = self.file(fd)
        if file is None:
            return
        if file.traced and file.kind == "file" and whence in (3, 4):
            event = self.done("lseek", fh=file.fh, offset=offset & (2**64 - 1),
                              flags=whence)
            if event is not None and self.call.ok and (
                    event["result"] != self.call.result):
                self.fail(f"result of {event}")
        if file.traced and file.kind == "file" and whence == 1 and (
                self.call.ok and self.call.result != file.position + offset):
            self.fail(f"the checker believed to be at {file.position}")
        if self.call.ok:
            file.position = self.call.result

    def sys_sendfile(self, out, source, offset, count):
        """The kernel reads whole pages into its cache, ahead too, and does not
        ask again for what is there. It writes what it moves, in any split."""
        reader, writer = self.traced(source), self.traced(out)
        given = offset[0] if isinstance(offset, list) else None
        start = given if given is not None else (
            reader.position if reader else 0)
        put = 0
        while self.call.ok:
            event = self.peek()
            if event is None or not self.during_call(event):
                break
            if reader and event["op"] == "read" and event["fh"] == reader.fh:
                if event["offset"] % 4096:
                    break
                self.take("read")
                self.cache(event)
            elif (writer and event["op"] == "write"
                  and event["fh"] == writer.fh and put < self.call.result):
                self.take("write", offset=writer.position + put)
                put += event["result"]
            else:
                break
        if self.call.ok:
            if writer and put != self.call.result:
                self.fail(f"{put} bytes written in the trace")
            if reader and self.call.result > 0:
                pages = range(start // 4096,
                              (start + self.call.result - 1) // 4096 + 1)
                missing = set(pages) - self.cached[reader.ino]
                if missing:
                    self.fail(f"nobody read the pages {sorted(missing)}")
            if writer:
                writer.position += put
                if put:
                    self.grew(writer.ino, writer.position)
            if reader and given is None:
                reader.position += self.call.result

    sys_sendfile64 = sys_sendfile

    def cache(self, event):
        first = event["offset"] // 4096
        self.cached[event["ino"]].update(
            range(first, (event["offset"] + event["size"] + 4095) // 4096))

    def sys_copy_file_range(self, source, offset_in, out, offset_out, count,
                            _flags):
        reader, writer = self.traced(source), self.traced(out)
        if reader is None or writer is None:
            return
        begin = offset_in[0] if offset_in else reader.position
        into = offset_out[0] if offset_out else writer.position
        if self.call.ok and self.call.result > 0:
            event = self.take("copy_file_range", fh=reader.fh, offset=begin,
                              fh_out=writer.fh, offset_out=into,
                              result=self.call.result)
            if event["size"] > count:
                self.fail(f"size of {event}")
        elif not self.call.ok:
            self.take_if("copy_file_range", fh=reader.fh, offset=begin)
        elif self.next_is("copy_file_range", fh=reader.fh, result=0):
            self.take("copy_file_range", offset=begin)
        if self.call.ok:
            if not offset_in:
                reader.position += self.call.result
            if not offset_out:
                writer.position += self.call.result
            if self.call.result > 0:
                self.grew(writer.ino, into + self.call.result)

    def sys_fallocate(self, fd, mode, offset, length):
        file = self.traced(fd)
        if file is not None:
            self.done("fallocate", fh=file.fh, flags=mode, offset=offset,
                      size=length)
            if self.call.ok and not mode & 1:  # KEEP_SIZE
                self.grew(file.ino, offset + length)

    def synced(self, fd, data_only):
        file = self.traced(fd)
        if file is not None:
            op = "fsyncdir" if file.kind == "dir" else "fsync"
            self.take(op, self.call.error, fh=file.fh, flags=data_only)

    def sys_fsync(self, fd):
        self.synced(fd, 0)

    def sys_fdatasync(self, fd):
        self.synced(fd, 1)

    def sys_mmap(self, _address, _length, _protection, _flags, fd, *_rest):
        file = self.traced(fd)
        if file is not None and self.call.ok:
            self.mapped.add(file.ino)

    def sys_msync(self, *_arguments):
        while self.next_is("fsync"):
            self.take("fsync")

    # --- attributes

    def stat(self, dirfd, name, flags=0, follow=True, op="getattr", mask=ALL):
        """stat and its kin: the kernel asks for attributes. That it does is
        compared; how often it asks beside is its own business."""
        walk = self.target(dirfd, name, flags, follow)
        if walk is None or walk.ino is None or not self.call.ok:
            return  # not ours, or the root of the mount
        if op == "statx" and self.next_is("statx"):
            self.take("statx", ino=walk.ino)
            return
        result = [a for a in strace_log.args(self.call)
                  if isinstance(a, dict)][0]
        for event in self.thread.events:
            if self.by_kernel(event, None) is None:
                break
            if (event["op"] == "getattr" and event["ino"] == walk.ino
                    and self.during_call(event)
                    and Kept.same(event, result, mask)):
                self.pop(event, None)
                self.counts["getattr"] += 1
                if walk.ino in self.sizes and (
                        self.sizes[walk.ino] != event["fsize"]):
                    self.fail(f"the checker believed in a size of "
                              f"{self.sizes[walk.ino]}")
                return
        if not self.kept.has_attributes(walk.ino, result, self.call, mask):
            self.fail(f"a getattr of {walk.path} with this result is missing")
        self.hidden["getattr"] += 1

    def during_call(self, event):
        return (self.call.begin_us - CLOCK_SLACK_US
                <= event["ts"] // 1000 <= self.call.next_us + CLOCK_SLACK_US)

    def sys_stat(self, name, _result):
        self.stat(None, name)

    def sys_lstat(self, name, _result):
        self.stat(None, name, follow=False)

    def sys_fstat(self, fd, _result):
        self.stat(fd, "", AT_EMPTY_PATH)

    def sys_newfstatat(self, dirfd, name, _result, flags):
        self.stat(dirfd, name, flags)

    def sys_statx(self, dirfd, name, flags, mask, _result):
        self.stat(dirfd, name, flags, op="statx" if mask & STATX_BTIME
                  else "getattr", mask=mask)

    def sys_access(self, name, _mode):
        self.target(None, name)

    def sys_faccessat(self, dirfd, name, *_rest):
        self.target(dirfd, name)

    def sys_faccessat2(self, dirfd, name, _mode, flags):
        self.target(dirfd, name, flags)

    def sys_statfs(self, name, _result):
        if self.target(None, name) is not None:
            self.done("statfs")

    def sys_fstatfs(self, fd, _result):
        file = self.traced(fd)
        if file is not None:
            self.done("statfs")

    def setattr(self, walk, valid, **fields):
        if walk is None:
            return
        event = self.done("setattr", ino=walk.ino, **fields)
        if event is not None and (event["valid"] ^ valid) & FATTR_COMPARED:
            self.fail(f"valid of {event} is not {valid:#x}")
        if self.call.ok and "new_size" in fields:
            self.sizes[walk.ino] = fields["new_size"]

    def chmod(self, walk, mode):
        self.setattr(walk, FATTR_MODE, mode=mode & 0o7777)

    def sys_chmod(self, name, mode):
        self.chmod(self.target(None, name), mode)

    def sys_fchmod(self, fd, mode):
        self.chmod(self.target(fd, "", AT_EMPTY_PATH), mode)

    def sys_fchmodat(self, dirfd, name, mode, *_rest):
        self.chmod(self.target(dirfd, name), mode)

    def sys_fchmodat2(self, dirfd, name, mode, flags):
        self.chmod(self.target(dirfd, name, flags), mode)

    def chown(self, walk, uid, gid):
        fields, valid = {}, 0
        if uid not in (-1, UNCHANGED):
            valid |= FATTR_UID
            fields["new_uid"] = uid
        if gid not in (-1, UNCHANGED):
            valid |= FATTR_GID
            fields["new_gid"] = gid
        self.setattr(walk, valid, **fields)

    def sys_chown(self, name, uid, gid):
        self.chown(self.target(None, name), uid, gid)

    def sys_lchown(self, name, uid, gid):
        self.chown(self.target(None, name, AT_SYMLINK_NOFOLLOW), uid, gid)

    def sys_fchown(self, fd, uid, gid):
        self.chown(self.target(fd, "", AT_EMPTY_PATH), uid, gid)

    def sys_fchownat(self, dirfd, name, uid, gid, flags):
        self.chown(self.target(dirfd, name, flags), uid, gid)

    def sys_truncate(self, name, size):
        self.setattr(self.target(None, name), FATTR_SIZE, new_size=size)

    def sys_ftruncate(self, fd, size):
        self.setattr(self.target(fd, "", AT_EMPTY_PATH), FATTR_SIZE,
                     new_size=size)

    def times(self, walk, times):
        fields, valid = {}, 0
        for i, (key, bit, now) in enumerate((
                ("new_atime", FATTR_ATIME, FATTR_ATIME_NOW),
                ("new_mtime", FATTR_MTIME, FATTR_MTIME_NOW))):
            if times is None or times[i]["tv_nsec"] == UTIME_NOW:
                valid |= bit | now
            elif times[i]["tv_nsec"] != UTIME_OMIT:
                valid |= bit
                fields[key] = (times[i]["tv_sec"] * 10**9
                               + times[i]["tv_nsec"])
        if valid:
            self.setattr(walk, valid, **fields)

    def sys_utimensat(self, dirfd, name, times, flags):
        self.times(self.target(dirfd, name, flags), times)

    # --- names

    def sys_mkdir(self, name, mode, dirfd=None):
        walk = self.walk(dirfd, name, False, creates=True)
        inner = self.inside(walk.path)
        if inner is not None and walk.error == "ENOENT":
            event = self.done("mkdir", path=inner,
                              umask=self.thread.process.umask)
            if event is not None and (event["mode"] ^ mode) & 0o1777:
                self.fail(f"mode of {event} is not {mode:o}")
            self.made(event, walk.path, "dir")

    def made(self, event, path, kind):
        """The number of an inode that is gone may be given again."""
        if event is not None and self.call.ok:
            self.sizes.pop(event.get("ino"), None)
            self.kept.note_name(path, event["ino"], kind, arrived_us(event))

    def sys_mkdirat(self, dirfd, name, mode):
        self.sys_mkdir(name, mode, dirfd)

    def sys_mknod(self, name, mode, device=0, dirfd=None):
        walk = self.walk(dirfd, name, False, creates=True)
        inner = self.inside(walk.path)
        if inner is not None and walk.error == "ENOENT":
            # A regular file made with mknod is a mknod as well.
            event = self.done("mknod", path=inner,
                              umask=self.thread.process.umask)
            if event is not None and (event["mode"] ^ mode) & 0o171777 & ~(
                    self.thread.process.umask):
                self.fail(f"mode of {event} is not {mode:o}")
            self.made(event, walk.path, event and event.get("type"))

    def sys_mknodat(self, dirfd, name, mode, device=0):
        self.sys_mknod(name, mode, device, dirfd)

    def sys_symlink(self, target, name, dirfd=None):
        walk = self.walk(dirfd, name, False, creates=True)
        inner = self.inside(walk.path)
        if inner is not None and walk.error == "ENOENT":
            self.made(self.done("symlink", path=inner, target=target),
                      walk.path, "link")
            if self.call.ok:
                self.links[walk.path] = target

    def sys_symlinkat(self, target, dirfd, name):
        self.sys_symlink(target, name, dirfd)

    def sys_link(self, old, new):
        self.link(None, old, None, new, 0)

    def sys_linkat(self, old_fd, old, new_fd, new, flags):
        self.link(old_fd, old, new_fd, new, flags)

    def link(self, old_fd, old, new_fd, new, flags):
        if old == "" and flags & AT_EMPTY_PATH:
            source = self.target(old_fd, old, flags)
        elif old.startswith("/proc/"):
            source = None  # the file behind a descriptor
        else:
            source = self.walk(old_fd, old, bool(flags & AT_SYMLINK_FOLLOW))
            if not source.found:
                return
        walk = self.walk(new_fd, new, False, creates=True)
        inner = self.inside(walk.path)
        if inner is None or walk.error != "ENOENT":
            return
        if source is not None and self.inside(source.path) is None:
            return
        ino = source.ino if source else None
        named = source and not (self.kept.anything
                                and ino in self.hard_linked)
        event = self.done("link", ino=ino, path2=inner,
                          path=self.inside(source.path) if named else None)
        if event is not None and self.call.ok:
            self.hard_linked.add(event["ino"])
            self.kept.note_name(walk.path, event["ino"], event.get("type"),
                                arrived_us(event))
            if source and source.path in self.links:
                self.links[walk.path] = self.links[source.path]

    def removed(self, op, dirfd, name):
        walk = self.walk(dirfd, name, False)
        inner = self.inside(walk.path)
        if inner is not None and walk.found:
            self.done(op, path=inner, ino=walk.ino)
            if self.call.ok:
                self.links.pop(walk.path, None)
                self.kept.drop_name(walk.path)

    def sys_unlink(self, name):
        self.removed("unlink", None, name)

    def sys_rmdir(self, name):
        self.removed("rmdir", None, name)

    def sys_unlinkat(self, dirfd, name, flags):
        self.removed("rmdir" if flags & AT_REMOVEDIR else "unlink", dirfd,
                     name)

    def sys_rename(self, old, new):
        self.renamed(None, old, None, new, 0)

    def sys_renameat(self, old_fd, old, new_fd, new):
        self.renamed(old_fd, old, new_fd, new, 0)

    def sys_renameat2(self, old_fd, old, new_fd, new, flags):
        self.renamed(old_fd, old, new_fd, new, flags)

    def renamed(self, old_fd, old, new_fd, new, flags):
        # Both directories are walked before either last name is looked up.
        old_dir, old_name = self.split(old)
        new_dir, new_name = self.split(new)
        from_dir = self.walk_to_dir(old_fd, old, old_dir)
        if from_dir is None:
            return
        into_dir = self.walk_to_dir(new_fd, new, new_dir)
        if into_dir is None:
            return
        crosses = (self.inside(from_dir.path) is None) != (
            self.inside(into_dir.path) is None)
        if crosses:
            return  # EXDEV before anything is looked up
        source = self.last_component(from_dir.path, old_name)
        if source is None:
            return
        goal = self.last_component(into_dir.path, new_name, may_miss=True)
        if goal is None:
            return
        one, two = self.inside(source.path), self.inside(goal.path)
        if one is None or two is None:
            return
        if self.call.ok and goal.found and goal.ino == source.ino:
            return  # two names of one file: nothing to do
        if self.call.error == "ENOTEMPTY" and one.startswith(two + "/"):
            return  # what holds the file is not empty: the kernel knows
        event = self.done("rename", path=one, path2=two, flags=flags)
        if not self.call.ok:
            return
        self.kept.rename(source.path, goal.path, flags & 2)
        moved = [(p, t) for p, t in self.links.items()
                 if (p + "/").startswith(source.path + "/")]
        for path, target in moved:
            del self.links[path]
        if not flags & 2:
            self.links.pop(goal.path, None)
        for path, target in moved:
            self.links[goal.path + path[len(source.path):]] = target
        # Where open directories and working directories are now is read from
        # strace's paths; processes that stand below are not.
        for thread in self.threads.values():
            cwd = thread.process.cwd
            if (cwd + "/").startswith(source.path + "/"):
                thread.process.cwd = goal.path + cwd[len(source.path):]

    @staticmethod
    def split(name):
        stripped = name.rstrip("/")
        folder, _, last = stripped.rpartition("/")
        if stripped.startswith("/") and not folder:
            folder = "/"
        return folder, last

    def walk_to_dir(self, dirfd, whole, folder):
        if folder == "" and not whole.startswith("/"):
            return Walk(self.base(dirfd), True, kind="dir")
        walk = self.walk(dirfd, folder)
        return walk if walk.found and walk.kind in ("dir", None) else None

    def last_component(self, folder, name, may_miss=False):
        where = os.path.join(folder, name)
        inner = self.inside(where)
        if inner is None:
            return Walk(where, os.path.lexists(where))
        walk = self.look_up(where, inner)
        if walk is None:
            # EINVAL, ENOTEMPTY: a directory into itself, or over its parent.
            if self.call.error in REFUSED_ON_THE_WAY | {"EINVAL", "ENOTEMPTY"}:
                return None
            self.fail(f"a lookup of {inner} is missing")
        if not walk.found and not (may_miss and walk.error == "ENOENT"):
            if walk.error != self.call.error:
                self.fail(f"the lookup of {inner} failed with {walk.error}, "
                          "and the call otherwise")
            return None
        return walk

    def sys_readlink(self, name, text, _size, dirfd=None):
        walk = self.walk(dirfd, name, False)
        inner = self.inside(walk.path)
        if inner is not None and walk.found:
            target = self.kept.target(walk.ino)
            if target is not None and not self.next_is("readlink",
                                                       ino=walk.ino):
                self.hidden["readlink"] += 1
            else:
                event = self.done("readlink", ino=walk.ino, path=None if
                                  walk.ino in self.hard_linked else inner)
                if event is None or not self.call.ok:
                    return
                target = event["target"]
                self.kept.note_target(walk.ino, target)
            if self.call.ok and not target.startswith(text):
                self.fail(f"{target!r} does not begin with {text!r}")

    def sys_readlinkat(self, dirfd, name, text, size):
        if name == "":
            file = self.file(dirfd)
            if file is not None and file.ino is not None:
                if (self.kept.target(file.ino) is None
                        or self.next_is("readlink", ino=file.ino)):
                    self.done("readlink", ino=file.ino)
                else:
                    self.hidden["readlink"] += 1
            return
        self.sys_readlink(name, text, size, dirfd)

    # --- directories

    @staticmethod
    def entry_sizes(entries):
        """Bytes of these entries as READDIR and as READDIRPLUS answer."""
        plain = plus = 0
        for entry in entries:
            name = len(os.fsencode(entry["d_name"]))
            plain += (24 + name + 7) & ~7
            plus += (152 + name + 7) & ~7
        return plain, plus

    def sys_getdents64(self, fd, entries, count):
        file = self.traced(fd)
        if file is None:
            return
        known = self.kept.has_listing(file.ino)
        if self.call.ok:
            self.kept.note_listing(file.path, file.ino, entries,
                                   self.call.next_us)
        if (known
                and not self.next_is("readdir", fh=file.fh,
                                     offset=file.position)):
            self.hidden["readdir"] += 1
            if self.call.ok and entries:
                file.position = entries[-1]["d_off"] & (2**64 - 1)
            return
        event = self.done("readdir", fh=file.fh, ino=file.ino,
                          offset=file.position)
        if event is None or not self.call.ok:
            return
        if event["result"] not in self.entry_sizes(entries):
            self.fail(f"{len(entries)} entries are {self.entry_sizes(entries)}"
                      f" bytes, not those of {event}")
        if entries:
            file.position = entries[-1]["d_off"] & (2**64 - 1)

    # --- extended attributes

    def xattr(self, op, walk, **fields):
        if walk is None:
            return None
        if fields.get("xattr") in POSIX_ACLS:
            # The kernel reads and writes ACLs through a cache and a form of
            # its own.
            if self.next_is(op, ino=walk.ino, xattr=fields["xattr"]):
                self.take(op, self.peek().get("errno"))
            return None
        event = self.done(op, ino=walk.ino, **fields)
        if event is not None and self.call.ok and op in ("getxattr",
                                                         "listxattr"):
            if event["result"] != self.call.result:
                self.fail(f"result of {event} is not {self.call.result}")
        return event

    def sys_setxattr(self, name, key, _value, size, flags, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("setxattr", walk, xattr=key, size=size, flags=flags)

    def sys_lsetxattr(self, name, *rest):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_setxattr(None, *rest, walk=walk)

    def sys_fsetxattr(self, fd, *rest):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_setxattr(None, *rest, walk=walk)

    def sys_getxattr(self, name, key, _value, size, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("getxattr", walk, xattr=key, size=size)

    def sys_lgetxattr(self, name, *rest):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_getxattr(None, *rest, walk=walk)

    def sys_fgetxattr(self, fd, *rest):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_getxattr(None, *rest, walk=walk)

    def sys_listxattr(self, name, _list, size, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("listxattr", walk, size=size)

    def sys_llistxattr(self, name, *rest):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_listxattr(None, *rest, walk=walk)

    def sys_flistxattr(self, fd, *rest):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_listxattr(None, *rest, walk=walk)

    def sys_removexattr(self, name, key, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("removexattr", walk, xattr=key)

    def sys_lremovexattr(self, name, key):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_removexattr(None, key, walk=walk)

    def sys_fremovexattr(self, fd, key):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_removexattr(None, key, walk=walk)

    # --- sockets

    def sys_bind(self, _fd, address, _size):
        name = address.get("sun_path") if isinstance(address, dict) else None
        if isinstance(name, str):
            self.sys_mknod(name, stat.S_IFSOCK | 0o777)

    def sys_connect(self, _fd, address, _size):
        name = address.get("sun_path") if isinstance(address, dict) else None
        if isinstance(name, str):
            self.target(None, name)

    # --- what only walks

    def sys_chdir(self, name):
        walk = self.walk(None, name)
        if self.call.ok:
            self.thread.process.cwd = walk.path

    def sys_fchdir(self, fd):
        if self.call.ok:
            self.thread.process.cwd = fd.path

    def sys_inotify_add_watch(self, _fd, name, _mask):
        self.target(None, name)

    # --- ioctl and poll

    def sys_ioctl(self, fd, command, *_rest):
        file = self.traced(fd)
        if file is None:
            return
        if self.next_is("open") or self.next_is("opendir"):
            # Flags of chattr(1): on a handle of the kernel's own.
            event = self.take(self.peek()["op"], ino=file.ino)
            self.kernel_requests["open for an ioctl"] += 1
            private = OpenFile(file.path, 0, "file")
            self.note_handle(private, event)
            self.take("ioctl", fh=private.fh)
        elif self.next_is("ioctl"):
            self.take("ioctl", self.call.error, fh=file.fh, command=command)

    def sys_poll(self, fds, *_rest):
        for entry in fds or []:
            file = self.traced(entry["fd"])
            if file is not None and self.next_is("poll"):
                self.take("poll", fh=file.fh)

    sys_ppoll = sys_poll

    # --- processes

    def cloned(self, flags):
        if not self.call.ok:
            return
        child = self.call.result
        parent = self.thread
        if flags & CLONE_THREAD:
            process = parent.process
        else:
            process = parent.process.fork(child)
        thread = Thread(child, process, parent.comm, self.by_tid[child])
        thread.old_comms |= parent.old_comms
        self.threads[child] = thread

    def sys_clone(self, *_arguments):
        found = [a for a in self.call.args.split(", ")
                 if a.startswith("flags=")]
        self.cloned(strace_log.parse_value(found[0]))

    def sys_clone3(self, arguments, *_rest):
        self.cloned(arguments["flags"])

    def sys_fork(self, *_arguments):
        self.cloned(0)

    sys_vfork = sys_fork

    def sys_execve(self, name, *_rest):
        if self.call.begin_us == self.calls[0].begin_us:
            return  # strace's own start of the command
        walk = self.walk(None, name)
        inner = self.inside(walk.path)
        if inner is not None and walk.kind == "file" and (
                self.next_is("open", ino=walk.ino)):
            event = self.take("open")
            file = OpenFile(walk.path, 0, "exec")
            self.note_handle(file, event)
            self.mapped.add(walk.ino)
        if not self.call.ok:
            return
        process = self.thread.process
        self.drop_all(process, set(process.close_on_exec))
        self.rename_thread(os.path.basename(name)[:15])

    def sys_exit_group(self, *_arguments):
        self.drop_all(self.thread.process, set(self.thread.process.fds))

    def rename_thread(self, comm):
        self.thread.old_comms.add(self.thread.comm)
        self.thread.comm = comm

    def sys_prctl(self, option, *rest):
        if option == 15 and self.call.ok:  # PR_SET_NAME
            self.rename_thread(rest[0][:15])

    def sys_umask(self, mask):
        self.thread.process.umask = mask

    def identity(self, uid=None, gid=None):
        if not self.call.ok:
            return
        if uid not in (None, -1, UNCHANGED):
            self.thread.process.uid = uid
        if gid not in (None, -1, UNCHANGED):
            self.thread.process.gid = gid

    def sys_setuid(self, uid):
        self.identity(uid=uid)

    def sys_setgid(self, gid):
        self.identity(gid=gid)

    def sys_setreuid(self, _real, effective):
        self.identity(uid=effective)

    def sys_setregid(self, _real, effective):
        self.identity(gid=effective)

    def sys_setresuid(self, _real, effective, _saved):
        self.identity(uid=effective)

    def sys_setresgid(self, _real, effective, _saved):
        self.identity(gid=effective)

    def sys_setfsuid(self, uid):
        self.identity(uid=uid)

    def sys_setfsgid(self, gid):
        self.identity(gid=gid)

    # --- the end

    def check_rest(self):
        """Flushes at exit, releases, and nothing that no call stands for."""
        late = collections.defaultdict(collections.Counter)
        for thread in self.threads.values():
            process = thread.process
            self.thread = thread
            self.drop_all(process, set(process.fds))
        for thread in self.threads.values():
            self.thread = thread
            if self.peek() is not None:
                self.fail("requests that no system call stands for")
            self.pop(None, None)
        for thread in self.threads.values():
            left = +thread.process.late_flushes
            if left:
                raise Mismatch(f"process {thread.process.pid} ended and left "
                               f"these handles without a flush: {dict(left)}")
        self.check_releases()
        self.check_inferred()

    def check_releases(self):
        seen = collections.Counter(e["fh"] for e in self.releases)
        for fh, file in self.files.items():
            if seen[fh] != 1:
                raise Mismatch(f"handle {fh} ({file.path}) was released "
                               f"{seen[fh]} times")
        for event in self.releases:
            file = self.files.get(event["fh"])
            if file is None:
                raise Mismatch(f"{event} is of a handle nobody opened")
            self.counts[event["op"]] += 1
            if event["ino"] != file.ino:
                raise Mismatch(f"{event} is of inode {file.ino}")
            if not event.get("inferred"):
                raise Mismatch(f"{event}: the kernel names no caller")
            closer = file.last_flush[1]
            if closer is not None and event["tid"] != closer:
                raise Mismatch(f"{event}: {closer} closed it last")

    def check_inferred(self):
        """Requests without a caller come from mapped files only."""
        for event in self.inferred:
            if event["op"] not in ("read", "write", "getattr", "fsync"):
                raise Mismatch(f"{event} has a caller")
            if event["op"] != "fsync" and event["ino"] not in self.mapped:
                raise Mismatch(f"{event}: nobody maps that file")
            self.kernel_requests[f"{event['op']} of a mapped file"] += 1


def request_total(checker):
    return sum(checker.counts.values()) + sum(checker.kernel_requests.values())
