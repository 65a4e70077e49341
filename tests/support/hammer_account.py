"""The accounts that the processes of tests/mount/stress/hammer keep, and a trace.

    comparison = Comparison(logs)
    for event in events:          # in the order of their times
        comparison.add(event)     # a Failure unless the accounts have it next
    comparison.finish()           # a Failure if they have more
"""

import collections
import errno
import os

from tracefs_harness import expect, expect_equal

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


class Account:
    """The log of one process, line by line."""

    def __init__(self, path):
        self.pid = int(os.path.basename(path))
        self.lines = 0
        self._log = open(path, encoding="ascii")

    def next(self):
        """The next call that made a request, or None at the end."""
        for line in self._log:
            ns, op, path, path2, handle, offset, result = line.split("\t")
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
    """Events in the order of their times against the accounts."""

    def __init__(self, folder, ignored=()):
        """`ignored`: processes whose events are not looked at."""
        self._ignored = set(ignored)
        self.accounts = {}
        for name in os.listdir(folder):
            account = Account(os.path.join(folder, name))
            self.accounts[account.pid] = account
        expect(self.accounts, "no process kept an account")
        self.by_op = collections.Counter()  # all events
        self.nameless = 0                   # without a process
        self.pathless = 0
        self._handles = {}  # (pid, number in the account) -> handle of the trace
        self._open = {}     # handle of the trace -> how it was opened

    def add(self, event):
        op = event["op"]
        if event["tid"] in self._ignored:
            return
        self.by_op[op] += 1
        if op in ("release", "releasedir"):
            opened = self._open.pop(event["fh"], None)
            expect(opened is not None,
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
        call = account.next()
        expect(call is not None, f"more events than calls of process "
               f"{account.pid}, from {event} on")
        self._same(account, call, event)

    def _same(self, account, call, event):
        """The event is what that call must give."""
        where = f"call {account.lines} of process {account.pid}"
        expect_equal(event["op"], call["op"],
                     f"{where}: {call} in the account, {event} in the trace")
        if call["op"] in OPENS and call["result"] >= 0:
            self._handles[account.pid, call["handle"]] = event["fh"]
            call["result"] = 0
        got = {key: event.get(key) for key in ("path", "path2", "offset")}
        want = dict(got)
        for key in ("path", "path2"):
            if call[key] == "-":
                continue
            # The folder may be gone before the event is written.
            if key == "path" and event.get(key) is None:
                self.pathless += 1
            else:
                want[key] = call[key]
        if call["offset"] >= 0:
            want["offset"] = call["offset"]
        if call["handle"] >= 0:
            got["fh"] = event.get("fh")
            want["fh"] = self._handles[account.pid, call["handle"]]
        got["result"] = event["result"]
        want["result"] = call["result"]
        if "errno" in event:
            got["result"] = -getattr(errno, event["errno"])
        expect_equal(got, want, f"{where}, {call['op']}")

    def finish(self):
        for account in self.accounts.values():
            call = account.next()
            expect(call is None, f"lost: call {account.lines} of process "
                   f"{account.pid} and what follows: {call}")
        expect(not self._open, f"{len(self._open)} handles were never "
               f"released, as {next(iter(self._open.values()), None)}")
        return sum(account.lines for account in self.accounts.values())
