"""The accounts that the processes of tests/mount/stress/hammer keep, and a trace.

    comparison = Comparison(logs)
    for event in events:          # more or less in the order of their times
        comparison.add(event)     # a Failure unless the accounts have it next
    comparison.finish()           # a Failure if they have more
"""

import collections
import errno
import heapq
import os

from tracefs_harness import Failure, expect, expect_equal

# What the processes account for. The rest (look-ups and the like) is known to
# the kernel only.
ACCOUNTED = set("""
    create open read write flush fsync fallocate setattr copy_file_range unlink
    rename link symlink readlink mkdir rmdir setxattr getxattr removexattr
    statfs opendir""".split())
OPENS = {"create", "open", "opendir"}
# What the kernel asks for before a write or to decide a permission.
KERNELS_XATTRS = {"security.capability", "system.posix_acl_access",
                  "system.posix_acl_default"}
# What a call gives whose daemon dies.
OF_A_DEAD_MOUNT = {errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED,
                   errno.EINTR, errno.EIO}
# Events that are held back to be put in order.
HELD = 10_000
# How far apart the clocks of two blocks may be.
CLOCKS_NS = 5_000_000
# Events of a process whose daemon was killed that need no call.
FEW = 8


class Account:
    """The log of one process, line by line."""

    def __init__(self, path, unseen):
        self.pid = int(os.path.basename(path))
        self._unseen = unseen
        self.lines = 0
        self.ahead = None  # the rest, where not all need be in the trace
        self.unmatched = 0  # events of the last moment without a call
        self._log = open(path, encoding="ascii")

    def next(self):
        """The next call that made a request, or None at the end."""
        if self._log.closed:
            return None
        for line in self._log:
            ns, op, path, path2, handle, offset, result = line.split("\t")
            if op in self._unseen:
                continue
            # Nothing to copy: the kernel knows that without asking.
            if op == "copy_file_range" and int(result) == 0:
                continue
            self.lines += 1
            return {"ns": int(ns), "op": op, "path": path, "path2": path2,
                    "handle": int(handle), "offset": int(offset),
                    "result": int(result)}
        self._log.close()
        return None


class Comparison:
    """Events against the accounts."""

    def __init__(self, folder, ignored=(), certain_ns=None, unseen=()):
        """`ignored`: processes whose events are not looked at. `certain_ns`: a
        call before this real time must be in the trace, a later one need not
        (default: all must). `unseen`: operations that were not traced."""
        self._held = []
        self._number = 0
        self._ignored = set(ignored)
        self._certain_ns = certain_ns
        self.accounts = {}
        for name in os.listdir(folder):
            account = Account(os.path.join(folder, name), unseen)
            self.accounts[account.pid] = account
        expect(self.accounts, "no process kept an account")
        self.by_op = collections.Counter()  # all events
        self.nameless = 0                   # without a process
        self.lost = 0                       # calls that need not be there
        self._handles = {}  # (pid, number in the account) -> handle of the trace
        self._open = {}     # handle of the trace -> how it was opened

    def add(self, event):
        # An operation that took long may be listed after later ones.
        self._number += 1
        heapq.heappush(self._held, (event["ts"], self._number, event))
        if len(self._held) > HELD:
            self._compare(heapq.heappop(self._held)[2])

    def _compare(self, event):
        op = event["op"]
        if event["tid"] in self._ignored:
            return
        self.by_op[op] += 1
        if op in ("release", "releasedir"):
            opened = self._open.pop(event["fh"], None)
            expect(opened is not None or self._certain_ns is not None,
                   f"released twice, or never opened: {event}")
            return
        if op in OPENS and "errno" not in event:
            expect(event["fh"] not in self._open,
                   f"a handle that is in use already: {event}")
            self._open[event["fh"]] = event
        if "inferred" not in event and "pid" not in event:
            self.nameless += 1
        # A process has one thread. That has to do where the daemon did not
        # find out in time whose thread it was.
        account = self.accounts.get(event["tid"])
        if account is None or op not in ACCOUNTED:
            return
        if op == "getxattr" and event.get("xattr") in KERNELS_XATTRS:
            return
        if self._certain_ns is None:
            call = account.next()
            expect(call is not None, f"more events than calls of process "
                   f"{account.pid}, from {event} on")
            self._same(account, call, event)
        else:
            self._look_ahead(account, event)

    def _look_ahead(self, account, event):
        """Calls before the one that made the event may be lost."""
        if account.ahead is None:
            account.ahead = collections.deque(iter(account.next, None))
        first = "no call is left"
        for number, call in enumerate(account.ahead):
            # What began after the event did not make it.
            if call["ns"] > event["ts"] + CLOCKS_NS:
                break
            try:
                self._same(account, dict(call), event)
            except Failure as failure:
                if number == 0:
                    first = str(failure)
                if self._may_be_lost(call):
                    continue
                raise
            self.lost += number
            for _ in range(number + 1):
                account.ahead.popleft()
            return
        # What was being done when the daemon died was recorded, but the caller
        # may not have learnt of it. And of two calls whose blocks do not agree on
        # the clock the later one was found first.
        is_late = event["ts"] >= self._certain_ns - CLOCKS_NS
        if is_late and account.unmatched < FEW:
            account.unmatched += 1
            return
        # A process that ends closes what it has open.
        expect(event["op"] == "flush", f"an event without a call of process "
               f"{account.pid}: {event}; {first}")

    def _may_be_lost(self, call):
        return self._certain_ns is not None and call["ns"] >= self._certain_ns

    def _same(self, account, call, event):
        """The event is what that call must give."""
        where = f"call {account.lines} of process {account.pid}"
        expect_equal(event["op"], call["op"],
                     f"{where}: {call} in the account, {event} in the trace")
        opened = call["op"] in OPENS and call["result"] >= 0
        if opened:
            call["result"] = 0
        got = {key: event.get(key) for key in ("path", "path2", "offset")}
        want = dict(got)
        for key in ("path", "path2"):
            if call[key] != "-":
                want[key] = call[key]
        if call["offset"] >= 0:
            want["offset"] = call["offset"]
        if call["handle"] >= 0 and not opened:
            got["fh"] = event.get("fh")
            want["fh"] = self._handles.get((account.pid, call["handle"]))
            if want["fh"] is None and self._certain_ns is not None:
                want["fh"] = got["fh"]  # the opening is lost
        got["result"] = event["result"]
        want["result"] = call["result"]
        if "errno" in event:
            got["result"] = -getattr(errno, event["errno"])
        if -call["result"] in OF_A_DEAD_MOUNT:
            # It was done, and the daemon died before it could say so.
            want.update(result=got["result"], fh=got.get("fh"))
            got.setdefault("fh")
        expect_equal(got, want, f"{where}, {call['op']}")
        if opened:
            self._handles[account.pid, call["handle"]] = event["fh"]

    def finish(self):
        while self._held:
            self._compare(heapq.heappop(self._held)[2])
        for account in self.accounts.values():
            left = account.ahead or list(iter(account.next, None))
            for call in left:
                expect(self._may_be_lost(call), f"lost: {len(left)} calls of "
                       f"process {account.pid}, from {call} on")
            self.lost += len(left)
        expect(not self._open or self._certain_ns is not None,
               f"{len(self._open)} handles were never released, as "
               f"{next(iter(self._open.values()), None)}")
        return sum(account.lines for account in self.accounts.values())
