#!/usr/bin/env python3
"""No event lost, none doubled: many processes at once, against their own count.

`hammer` keeps, for each of its processes, an account of every call that must
have reached the file system. The trace must have exactly these events, process
by process and in their order, with the same path, handle, offset and result;
every handle must be released once; and where the kernel lets its requests be
counted (tests/support/request_counter.py) the numbers of all operations, those
included that the kernel makes by itself, must be the kernel's.

  stress_test.py --bin build/release/bin                    seconds, for ctest
  stress_test.py --bin build/release/bin --seconds 60       each case a minute
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from hammer_account import ACCOUNTED, OPENS, Comparison  # noqa: E402
from request_counter import RequestCounter, Unavailable  # noqa: E402
from tracefs_harness import (PATIENCE_S, TRANSPORTS,  # noqa: E402
                             VISIBILITIES, Failure, Skip, Suite, expect,
                             expect_equal)

# stress-ng's own names. Left out are those that need what no FUSE mount has.
STRESSORS = """
    access chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fcntl
    file-ioctl filename flock fpunch fstat hdd iomix link lockf lockofd mmap
    open readahead rename revio seal seek symlink touch utime
    xattr""".split()


def expect_well(status, errors):
    """tracefs-dump found nothing wrong."""
    expect(status == 0 and not errors,
           f"tracefs-dump ended with {status}:\n{errors}")


def compare_counts(events, requests, killed=False):
    """What to say of them. `killed`: some callers were killed, and so some
    requests never reached the daemon."""
    if requests.why:
        return f"; not counted by the kernel: {requests.why}"
    if killed:
        for op, count in events.items():
            expect(count <= requests.sent.get(op, 0),
                   f"{count} events {op} of {requests.sent.get(op, 0)} requests")
        expect_equal(sum(events.values()), requests.answered,
                     "all events, and requests that were answered; "
                     f"events {events}, sent {requests.sent}")
        return ", as many as were answered"
    expect_equal(events, requests.sent,
                 "events of each kind, and requests that the kernel sent")
    return ", as many as the kernel sent"


class Requests:
    """What the kernel counted up to umount(8)."""

    def __init__(self, sent=None, answered=0, why=""):
        self.sent = sent
        self.answered = answered
        self.why = why  # it could not


class Stress:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0

    def run(self, visibility, transport, output="", unseen=()):
        """`output`: output filters before the file. `unseen`: operations that
        the filter leaves out, and the kernel so does by itself."""
        suite = self.suite
        self.number += 1
        base = f"case-{self.number}"
        source = suite.folder(base, "source")
        point = suite.folder(base, "mnt")
        logs = suite.folder(base, "logs")
        trace = suite.path(base, "trace")
        rule = f"NOT op IN {{ {' '.join(unseen)} }}" if unseen else ""
        mount = suite.mount(source, point,
                            (rule, "STR_ALL", f'{output} file = "{trace}"'),
                            visibility=visibility, transport=transport)
        requests = self._counted(
            mount, lambda: self._hammer(mount, point, logs))
        comparison = Comparison(logs, ignored=mount.helpers,
                                unseen=unseen)
        self._read(trace, comparison.add)
        calls = comparison.finish()
        total = sum(comparison.by_op.values())
        text = (f"{calls} calls of {len(comparison.accounts)} processes, "
                f"{total} events")
        expect_equal(comparison.nameless, 0, "events without a process")
        text += compare_counts(dict(comparison.by_op), requests)
        if not suite.options.keep:
            shutil.rmtree(suite.path(base), ignore_errors=True)
        return text

    def _counted(self, mount, work):
        """Does `work` and unmounts."""
        try:
            counter = RequestCounter(mount.point)
        except Unavailable as unavailable:
            work()
            mount.unmount()
            return Requests(why=str(unavailable))
        with counter:
            work()
            # Nobody waits for the answer to a release.
            before = -1
            while counter.answered() != before:
                before = counter.answered()
                time.sleep(0.2)
            # Before the kernel can give the number of this connection to
            # another mount.
            requests = Requests(counter.counts(), before)
        mount.unmount()
        return requests

    def _hammer(self, mount, point, logs):
        options = self.suite.options
        self._work(mount, options.seconds,
                   [options.hammer, point, logs, str(options.processes),
                    str(options.seconds), str(options.seed + self.number)])

    def _work(self, mount, seconds, command, cwd=None):
        process = self.suite.background(subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=cwd))
        try:
            output, _ = process.communicate(timeout=seconds + PATIENCE_S)
        except subprocess.TimeoutExpired:
            # Whoever waits for the daemon cannot be killed before it.
            mount.kill()
            process.kill()
            raise Failure("the processes hang") from None
        expect(process.returncode == 0,
               f"{command[0]} ended with {process.returncode}:\n{output}")

    def stress_ng(self, visibility, transport):
        """The file-system stressors of stress-ng, which verify what they read
        back, on a recorded mount; then the trace must be whole."""
        if shutil.which("stress-ng") is None:
            return Skip("stress-ng is not installed")
        suite = self.suite
        seconds = suite.options.stress_ng
        self.number += 1
        base = f"case-{self.number}"
        source = suite.folder(base, "source")
        point = suite.folder(base, "mnt")
        trace = suite.path(base, "trace")
        mount = suite.mount(
            source, point, ("", "STR_ALL", f'file = "{trace}"'),
            visibility=visibility, transport=transport)
        command = ["stress-ng", "--timeout", str(seconds), "--verify",
                   "--temp-path", point]
        for stressor in STRESSORS:
            command += [f"--{stressor}", "1"]
        requests = self._counted(
            mount, lambda: self._work(mount, seconds, command,
                                      cwd=suite.scratch))
        # Pids come round within seconds here: the name tells whose it is.
        table = self._dump("--stats", "--filter",
                           f"NOT (ctid = {mount.helpers[-1]} AND "
                           "cname = umount)", trace)
        rows = [line.split() for line in table.splitlines()[1:]]
        got = {row[0]: int(row[1].replace(",", "")) for row in rows}
        total = got.pop("total")
        expect(not os.listdir(source), f"left behind: {os.listdir(source)}")
        if not suite.options.keep:
            shutil.rmtree(suite.path(base), ignore_errors=True)
        return f"{total} events" + compare_counts(got, requests, killed=True)

    def errors_noticed(self):
        """The comparison objects to a lost, a doubled and a wrong event."""
        suite = self.suite
        source = suite.folder("errors", "source")
        point = suite.folder("errors", "mnt")
        logs = suite.folder("errors", "logs")
        trace = suite.path("errors", "trace")
        mount = suite.mount(source, point, trace)
        self._work(mount, 1, [suite.options.hammer, point, logs, "3", "0.5",
                              str(suite.options.seed)])
        mount.unmount()
        events = []
        self._read(trace, events.append)
        pids = {int(name) for name in os.listdir(logs)}
        told = [i for i, event in enumerate(events)
                if event["pid"] in pids and event["op"] in
                ACCOUNTED - {"getxattr"}]
        if not told:
            return "no call was recorded"
        generator = random.Random(suite.options.seed)
        for kind in ("lost", "doubled", "result", "path", "fh", "release"):
            for i in generator.sample(told, min(200, len(told))):
                event = events[i]
                wrong = events[i:i + 1]
                if kind == "lost":
                    wrong = []
                elif kind == "doubled":
                    wrong = [event, event]
                elif kind == "result" and "errno" not in event:
                    wrong = [{**event, "result": event["result"] + 1}]
                elif kind == "path" and event["op"] in ("create", "unlink"):
                    wrong = [{**event, "path": event["path"] + "x"}]
                elif kind == "fh" and event["op"] in ("read", "write"):
                    wrong = [{**event, "fh": event["fh"] + 1}]
                elif kind == "release" and event["op"] in OPENS:
                    wrong = [event, {**event, "op": "release"}]
                else:
                    continue
                break
            comparison = Comparison(logs)
            try:
                for each in events[:i] + wrong + events[i + 1:]:
                    comparison.add(each)
                comparison.finish()
            except Failure:
                continue
            raise Failure(f"not noticed ({kind}): {event}")
        return None

    def _read(self, trace, add):
        """Streams the trace: a minute of it does not fit into memory."""
        with tempfile.TemporaryFile(dir=self.suite.scratch) as errors:
            with subprocess.Popen(
                    [os.path.join(self.suite.bin, "tracefs-dump"), "--format",
                     "jsonl", trace],
                    stdout=subprocess.PIPE, stderr=errors) as dump:
                for line in dump.stdout:
                    add(json.loads(line))
                status = dump.wait()
            errors.seek(0)
            text = errors.read().decode("utf-8", "replace")
        expect_well(status, text)

    def _dump(self, *arguments):
        dump = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-dump"), *arguments],
            capture_output=True, text=True, check=False)
        expect_well(dump.returncode, dump.stderr)
        return dump.stdout


def options(parser):
    parser.add_argument("--hammer", required=True, metavar="FILE",
                        help="the program of that name")
    parser.add_argument("--seconds", type=float, default=0.7, metavar="N",
                        help="how long each case works (default: 0.7)")
    parser.add_argument("--stress-ng", type=int, default=2, metavar="N",
                        help="the same for stress-ng (default: 2)")
    parser.add_argument("--processes", type=int, default=16, metavar="N",
                        help="how many at once (default: 16)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")


def main():
    suite = Suite("stress", __doc__, options)
    stress = Stress(suite)
    for visibility in VISIBILITIES:
        for transport in TRANSPORTS:
            suite.run(f"{visibility} over {transport}", stress.run, visibility,
                      transport)
    # FUSE passthrough: the kernel's count shows that none of these came.
    suite.run("reads and writes left to the kernel", stress.run, "auto", "dev",
              "", ("read", "write", "flush"))
    suite.run("compressed by a thread of its own", stress.run, "exact", "dev",
              "async; compress;")
    suite.run("errors noticed", stress.errors_noticed)
    for visibility, transport in (("exact", "dev"), ("auto", "uring")):
        suite.run(f"stress-ng, {visibility} over {transport}",
                  stress.stress_ng, visibility, transport)
    suite.finish()


if __name__ == "__main__":
    main()
