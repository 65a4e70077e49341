"""A thread's requests in the trace, which its calls take one by one."""

import collections
import os

import strace_log
from kept import ARRIVED, Kept

from .model import Mismatch, OpenFile, Process, Thread

# Errors the kernel finds itself, before it asks the file system.
KERNEL_ERRORS = {
    "EACCES", "EPERM", "EBADF", "EFAULT", "EINVAL", "EISDIR", "ELOOP",
    "ENOTDIR", "ENXIO", "EXDEV", "EMFILE", "ENFILE", "EEXIST", "ENOENT",
    "EBUSY", "EFBIG", "ESPIPE", "ETXTBSY", "EOPNOTSUPP", "ENAMETOOLONG",
    "EMLINK", "EOVERFLOW", "EROFS", "EINTR", "ENOTTY", "ERANGE", "E2BIG",
    "ENODATA",
}
# Asked by the kernel on its own account: to know whether a write clears a
# file's capabilities, and to decide a permission.
POSIX_ACLS = {"system.posix_acl_access", "system.posix_acl_default"}
KERNEL_XATTRS = POSIX_ACLS | {"security.capability"}
# Real times of a trace are as exact as FORMAT.md section 6 promises.
CLOCK_SLACK_US = 1000
# How long after its answer a request may still be on its way to the trace,
# where processors are scarce.
LATE_NAME_US = 1000000


class Requests:
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
            process.install(fd, OpenFile("", 0, "outside"), False)
        self.threads[pid] = Thread(pid, process, comm, by_tid[pid])

    @staticmethod
    def last_names(call):
        names = [a for a in strace_log.args(call) if isinstance(a, str)]
        return [n.rstrip("/").rpartition("/")[2] for n in names]

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

    def next_is(self, op, **fields):
        event = self.peek()
        return (event is not None and event["op"] == op
                and all(event.get(k) == v for k, v in fields.items()))

    def during_call(self, event):
        return (self.call.begin_us - CLOCK_SLACK_US
                <= event["ts"] // 1000 <= self.call.next_us + CLOCK_SLACK_US)
