"""Holds a trace against strace's record of the same work.

For each thread the system calls, in order, say which requests must be in the
trace, in order, with which arguments and results; MAPPING.md lists the rules.
The checker walks both sequences at once: a request too many, too few, in the
wrong place or with a wrong value is an error. Nothing is taken from the trace
to say what the trace should hold, but for file handles and the targets of
symbolic links (which are compared with what strace saw being created).

One file per family of system calls, as tracefs/fs has one per family of
operations: sys_NAME() of a call takes the requests that the call stands for.
"""

import collections
import itertools

import strace_log
from strace_log import number_of

from .attr import Attributes
from .create import Create
from .dir import Directories
from .io import Io
from .lock import Lock
from .model import Mismatch
from .open import Open
from .process import Processes
from .remove import Remove
from .special import Special
from .xattr import Xattrs


class Checker(Open, Lock, Io, Attributes, Create, Remove, Directories, Xattrs,
              Special, Processes):
    def run(self):
        known = {c.tid for c in self.calls}
        for tid in self.by_tid:
            if tid not in known:
                raise Mismatch(
                    f"requests of thread {tid}, which strace does not know: "
                    f"{self.by_tid[tid][0]}")
        done = set()
        for i, call in enumerate(self.calls):
            for one in [*self.closes_before(i), call]:
                if one not in done:
                    done.add(one)
                    self.follow(one)
        self.check_rest()

    def follow(self, call):
        self.call = call
        self.thread = self.threads.get(call.tid)
        if self.thread is None:
            raise Mismatch(f"no clone of this thread was seen: {call}")
        handler = getattr(self, "sys_" + call.name, None)
        if handler is None:
            return
        arguments = strace_log.args(call)
        self.asked_xattr = (arguments[1] if "getxattr" in call.name
                            else None)
        handler(*arguments)

    def closes_before(self, at):
        """An open ends later than strace tells. If its number is still taken,
        another thread gave it back before: that thread's calls up to then."""
        call = self.calls[at]
        thread = self.threads.get(call.tid)
        if call.name not in strace_log.TAKES_FREE_NUMBER or thread is None or (
                not call.ok or call.result not in thread.process.fds):
            return []
        earlier = collections.defaultdict(list)
        for later in itertools.islice(self.calls, at + 1, None):
            if later.begin_us > call.next_us:
                break
            earlier[later.tid].append(later)
            other = self.threads.get(later.tid)
            if other is not None and other.process is thread.process and (
                    later.name == "close" and later.tid != call.tid and
                    number_of(strace_log.args(later)[0]) == call.result):
                return earlier[later.tid]
        return []

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
