#!/usr/bin/env python3
"""How mounts end, and what is left then: of the users, of the mount, of the
trace.

The daemon is killed at random moments under load, and asked to end by signals
and by umount(8), idle and busy. Then: mounts in unusual places, and a trace
that has no room or lies in the traced tree.

  crash_test.py --bin build/release/bin ...                 seconds, for ctest
  crash_test.py --bin build/release/bin ... --rounds 200    many more kills
"""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
READER = os.path.join(HERE, "..", "..", "golden", "independent_reader.py")

# pylint: disable=wrong-import-position
from hammer_account import Comparison  # noqa: E402
from processes import descendants_of, is_alive  # noqa: E402
from tracefs_harness import (PATIENCE_S, TRANSPORTS, Failure,  # noqa: E402
                             Suite, expect, expect_equal, wait_until)
from trees import expect_same_tree, tree_digest  # noqa: E402

PROCESSES = 8
LOAD_S = 0.5
# Blocks are handed on every 250 ms; a busy machine may take longer to do it.
LATE_S = 2


class Case:
    """A folder of its own: source, mnt, logs, trace."""

    number = 0

    def __init__(self, suite):
        Case.number += 1
        self.suite = suite
        self.base = f"case-{Case.number}"
        self.source = suite.folder(self.base, "source")
        self.point = suite.folder(self.base, "mnt")
        self.logs = suite.folder(self.base, "logs")
        self.trace = suite.path(self.base, "trace")

    def hammer(self, seconds, *more, point=None, processes=PROCESSES):
        """Starts the load."""
        options = self.suite.options
        return self.suite.background(subprocess.Popen(
            [options.hammer, point or self.point, self.logs, str(processes),
             str(seconds), str(options.seed + Case.number), *more],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    def wait(self, process, mount):
        """Its end, which must be a good one, and no hang."""
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            mount.kill()  # whoever waits for it cannot be killed before
            raise Failure("the users of the mount hang") from None
        expect(process.returncode == 0,
               f"the users of the mount were disturbed:\n{errors}")

    def compare(self, mount, events, certain_ns=None):
        comparison = Comparison(self.logs, mount.helpers, certain_ns)
        for event in events:
            comparison.add(event)
        calls = comparison.finish()
        return comparison, calls

    def clean(self):
        if not self.suite.options.keep:
            shutil.rmtree(self.suite.path(self.base), ignore_errors=True)


# Messages about the trace itself; all others are operations (FORMAT.md).
OWN_MESSAGES = {"MSG_DEF", "MSG_START", "MSG_BLOCK", "MSG_LOSS", "MSG_FINAL",
                "MSG_CHANGE"}


def message_count(reader_output):
    """Operations in what the independent reader printed."""
    count = 0
    for line in reader_output.splitlines():
        words = line.split()
        if (len(words) > 1 and words[0].isdigit()
                and words[1].startswith("MSG_")
                and not any(words[1].startswith(own) for own in OWN_MESSAGES)):
            count += 1
    return count


class Crash:
    def __init__(self, suite):
        self.suite = suite
        self.random = random.Random(suite.options.seed)

    # --- SIGKILL

    def kill_rounds(self, transport, rounds, longest_s):
        """The daemon is killed again and again over the same directory."""
        case = Case(self.suite)
        kept = lost = 0
        for number in range(rounds):
            last = number == rounds - 1
            # The last one long enough for blocks that must be there.
            delay = (LATE_S + 1 if last
                     else self.random.uniform(0.02, longest_s))
            shutil.rmtree(case.logs)
            os.mkdir(case.logs)
            events, skipped = self._kill_once(case, transport, delay)
            expect(events > 0 or not last, "no event was kept")
            kept += events
            lost += skipped
            # Back to what the next round begins with.
            for name in os.listdir(case.source):
                path = os.path.join(case.source, name)
                (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
            os.unlink(case.trace)
        case.clean()
        return (f"{kept} events kept; {lost} calls of the last moment, or of "
                "the dead, not")

    def _kill_once(self, case, transport, delay_s):
        mount = self.suite.mount(
            case.source, case.point, case.trace, transport=transport,
            visibility=self.random.choice(["exact", "auto"]))
        # The watchdog; over io_uring also who asks in trials of round trips.
        children = descendants_of(mount.pid)
        expect(children, "the daemon has no watchdog")
        load = case.hammer(PATIENCE_S, "--survive")
        time.sleep(delay_s)
        certain_ns = time.time_ns() - LATE_S * 1_000_000_000
        mount.kill()
        try:
            _, errors = load.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failure("the users hang after the daemon's death") from None
        expect(load.returncode == 0, f"a user saw something strange:\n{errors}")
        wait_until(lambda: not mount.is_mounted(),
                   "the watchdog takes the mount away")
        wait_until(lambda: not any(map(is_alive, children)),
                   "the watchdog ends")
        expect_equal(os.listdir(case.point), [], "what is below the mount")

        dump = self.suite.dump(case.trace)
        if not os.path.getsize(case.trace):
            return 0, 0
        expect_equal(dump.status, 1, "tracefs-dump of a cut trace")
        expect("cut" in dump.errors or "no end" in dump.errors
               or "not ended" in dump.errors,
               f"it does not say that the trace was cut:\n{dump.errors}")
        expect("Traceback" not in dump.errors, dump.errors)
        comparison, _ = case.compare(mount, dump.events, certain_ns)
        # Another reader, which knows the syntax only, finds as many.
        if os.path.getsize(case.trace) < 1_000_000:  # it takes its time
            reader = subprocess.run(
                [sys.executable, "-B", READER, case.trace],
                capture_output=True, text=True, check=False)
            expect_equal(message_count(reader.stdout), len(dump.events),
                         "operations that the independent reader found")
        return len(dump.events), comparison.lost

    # --- ends in order

    def ended(self, how, busy):
        """Everything that was answered is in the trace."""
        case = Case(self.suite)
        mount = self.suite.mount(case.source, case.point, case.trace)
        children = descendants_of(mount.pid)
        load = case.hammer(LOAD_S if not busy else 1)
        if not busy:
            case.wait(load, mount)
        else:
            wait_until(lambda: len(os.listdir(case.logs)) > PROCESSES,
                       "the load")
            time.sleep(0.1)
        if isinstance(how, signal.Signals):
            mount.signal(how)
        else:
            command = subprocess.Popen([*how, case.point])
            mount.helpers.append(command.pid)
            expect_equal(command.wait(PATIENCE_S), 0, " ".join(how))
        if busy:
            # Nobody new comes in, and who is there goes on.
            wait_until(lambda: not mount.is_mounted(), "the mount to go")
            expect(load.poll() is None, "the users had ended before")
            case.wait(load, mount)
        mount.wait(0)
        wait_until(lambda: not any(map(is_alive, children)),
                   "the watchdog ends")
        events = self.suite.read(case.trace)
        _, calls = case.compare(mount, events)
        case.clean()
        return f"{calls} calls, {len(events)} events"

    def busy_umount(self):
        """umount(8) of a mount in use is refused and changes nothing."""
        case = Case(self.suite)
        mount = self.suite.mount(case.source, case.point, case.trace)
        load = case.hammer(LOAD_S)
        wait_until(lambda: len(os.listdir(case.logs)) > PROCESSES, "the load")
        umount = subprocess.Popen(["umount", case.point],
                                  stderr=subprocess.PIPE, text=True)
        mount.helpers.append(umount.pid)
        _, errors = umount.communicate()
        expect(umount.returncode != 0 and "busy" in errors,
               f"umount of a busy mount: {umount.returncode} {errors}")
        expect(mount.is_mounted(), "the mount is gone")
        case.wait(load, mount)
        mount.unmount()
        _, calls = case.compare(mount, self.suite.read(case.trace))
        case.clean()
        return f"{calls} calls"

    def held_after_signal(self):
        """A user who never lets go gets an error in the end."""
        case = Case(self.suite)
        mount = self.suite.mount(case.source, case.point, case.trace)
        held = os.open(os.path.join(case.point, "held"),
                       os.O_CREAT | os.O_WRONLY)
        try:
            mount.signal(signal.SIGTERM)
            wait_until(lambda: not mount.is_mounted(), "the mount to go")
            os.write(held, b"still served")
            begin = time.monotonic()
            mount.wait()
            took = time.monotonic() - begin
            expect(took < 30, f"the daemon stayed for {took:.0f} s")
            try:
                os.fstat(held)
                raise Failure("a dead mount answers")
            except OSError as error:
                expect_equal(error.errno, errno.ENOTCONN, "of a dead mount")
        finally:
            try:
                os.close(held)
            except OSError:
                pass  # ENOTCONN: the descriptor is gone all the same
        expect(any(e["op"] == "write" for e in self.suite.read(case.trace)),
               "the last write is not in the trace")
        case.clean()
        return f"after {took:.0f} s"

    # --- a trace without room

    def disk_full(self):
        """Operations go on, and what is lost is counted: said while mounted,
        and in the trace."""
        case = Case(self.suite)
        with self.suite.tmpfs(case.base, "small", size="1m") as small:
            trace = os.path.join(small, "trace")
            filler = os.path.join(small, "filler")
            with open(filler, "wb") as out:
                out.write(bytes(700_000))
            mount = self.suite.mount(case.source, case.point, trace)
            load = case.hammer(LOAD_S)
            case.wait(load, mount)

            def full():
                # A slow machine has not filled it in that time.
                for _ in range(100):
                    os.mkdir(os.path.join(case.point, "more"))
                    os.rmdir(os.path.join(case.point, "more"))
                return "No space left" in mount.messages()

            wait_until(full, "a full disk")
            said = mount.messages().count("No space left")
            expect_equal(said, 1, "times the daemon said so:\n"
                         + mount.messages())
            lost = self._lost_by_stats(case.point)
            expect(lost > 0, "stats tell of no loss")
            # There is room again: events that come now are kept.
            os.unlink(filler)
            marked = os.path.join(case.point, "marked")
            for _ in range(3):
                os.mkdir(marked)
                os.rmdir(marked)
                time.sleep(0.4)
            umount = subprocess.Popen(["umount", case.point])
            mount.helpers.append(umount.pid)
            expect_equal(umount.wait(PATIENCE_S), 0, "umount")
            mount.wait()
            dump = self.suite.dump(trace)
            expect_equal(dump.status, 1, "tracefs-dump of a trace with losses")
            told = re.search(r"(\d+) operations were not recorded", dump.errors)
            expect(told, f"the trace does not tell of the loss:\n{dump.errors}")
            expect(any(e.get("path") == "/marked" for e in dump.events),
                   "nothing is recorded after there was room again")
            seen = len(dump.events) + int(told[1])
            # What was done is all there below, and seen or lost: no more, no
            # less than in the accounts.
            calls = 0
            for name in os.listdir(case.logs):
                with open(os.path.join(case.logs, name), "rb") as log:
                    calls += sum(1 for _ in log)
            expect(seen > calls, f"{seen} events for {calls} calls")
        case.clean()
        return f"{len(dump.events)} events kept, {told[1]} lost and counted"

    def _lost_by_stats(self, point):
        stats = self.suite.command("tracefs-ctl", point, "stats",
                                   "--format", "json")
        found = []

        def walk(value, key=""):
            if isinstance(value, dict):
                for name, inner in value.items():
                    walk(inner, name if "lost" not in key else key)
            elif isinstance(value, list):
                for inner in value:
                    walk(inner, key)
            elif "lost" in key and isinstance(value, int):
                found.append(value)

        walk(json.loads(stats))
        return sum(found)

    # --- unusual places

    def over_itself(self):
        """tracefs-mount /data /data."""
        case = Case(self.suite)
        with open(os.path.join(case.source, "before"), "w",
                  encoding="ascii") as out:
            out.write("here already")
        mount = self.suite.mount(case.source, case.source, case.trace)
        with open(os.path.join(case.source, "before"), encoding="ascii") as was:
            expect_equal(was.read(), "here already", "a file below the mount")
        load = case.hammer(LOAD_S, point=case.source, processes=4)
        case.wait(load, mount)
        inside = tree_digest(case.source, times=True)
        mount.unmount()
        expect_same_tree(tree_digest(case.source, times=True), inside,
                         "the tree below, and as it was in the mount")
        events = [e for e in self.suite.read(case.trace)]
        # Ours, made from within: not in the accounts.
        _, calls = case.compare(mount, events)
        case.clean()
        return f"{calls} calls"

    def inside_the_source(self):
        """The mount point lies in the source: no recursion, no deadlock."""
        case = Case(self.suite)
        point = self.suite.folder(case.base, "source", "deep", "mnt")
        mount = self.suite.mount(case.source, point, case.trace)
        expect_equal(sorted(os.listdir(point)), ["deep"], "the mount's root")
        again = os.path.join(point, "deep", "mnt")
        expect_equal(os.listdir(again), [], "the mount point as the mount "
                     "shows it")
        with open(os.path.join(again, "f"), "wb") as out:
            out.write(b"below the mount point")
        found = subprocess.run(["find", case.source, "-name", "f"],
                               capture_output=True, text=True, check=True,
                               timeout=PATIENCE_S)
        expect_equal(found.stdout.split(), [os.path.join(again, "f")],
                     "find")
        load = case.hammer(LOAD_S, point=point, processes=4)
        case.wait(load, mount)
        mount.unmount()
        with open(os.path.join(point, "f"), "rb") as hidden:
            expect_equal(hidden.read(), b"below the mount point",
                         "the file that the mount point hid")
        _, calls = case.compare(mount, self.suite.read(case.trace))
        case.clean()
        return f"{calls} calls"

    def trace_in_the_tree(self):
        """The trace lies in the traced tree, and somebody follows it there."""
        case = Case(self.suite)
        trace = os.path.join(case.source, "trace")
        mount = self.suite.mount(case.source, case.source, trace)
        seen = self.suite.path(case.base, "seen")
        with open(seen, "wb") as out:
            tail = self.suite.background(subprocess.Popen(
                ["tail", "-c", "+1", "-s", "0.05", "-f", trace], stdout=out))
        load = case.hammer(LOAD_S, point=case.source, processes=4)
        case.wait(load, mount)
        # What the daemon writes is not traced. What tail reads is, twenty times
        # a second and without the data: the trace grows by little, though in
        # silence by something.
        time.sleep(0.8)
        sizes = []
        for _ in range(6):
            time.sleep(0.3)
            sizes.append(os.path.getsize(trace))
        growth = [after - before for before, after in zip(sizes, sizes[1:])]
        expect(min(growth) < 10_000, f"the trace feeds itself: {sizes}")
        tail.terminate()
        tail.wait()
        mount.unmount()
        events = self.suite.read(trace)
        about = [e for e in events if e.get("path") == "/trace"]
        events = [e for e in events if e.get("path") != "/trace"]
        written = [e for e in about
                   if e["op"] in ("write", "fsync", "setattr", "create")]
        expect(not written, f"writing the trace was traced: {written[:2]}")
        read = sum(e["result"] for e in about if e["op"] == "read")
        expect(read >= os.path.getsize(seen),
               f"{read} bytes read of {os.path.getsize(seen)}")
        with open(seen, "rb") as followed, open(trace, "rb") as whole:
            text = followed.read()
            expect(text and whole.read().startswith(text),
                   "tail -f saw something else than the trace")
        _, calls = case.compare(mount, events)
        case.clean()
        return f"{calls} calls, {len(text)} bytes followed"


def options(parser):
    parser.add_argument("--hammer", required=True, metavar="FILE",
                        help="the program of that name")
    parser.add_argument("--rounds", type=int, default=3, metavar="N",
                        help="kills over each transport (default: 3)")
    parser.add_argument("--longest", type=float, default=0.4, metavar="S",
                        help="until a kill, at most (default: 0.4 seconds)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")


def main():
    suite = Suite("crash", __doc__, options)
    crash = Crash(suite)
    for transport in TRANSPORTS:
        suite.run(f"killed, over {transport}", crash.kill_rounds, transport,
                  suite.options.rounds, suite.options.longest)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        suite.run(f"ended by {number.name}", crash.ended, number, False)
    suite.run("ended by umount", crash.ended, ["umount"], False)
    suite.run("ended by SIGTERM under load", crash.ended, signal.SIGTERM, True)
    suite.run("ended by umount -l under load", crash.ended, ["umount", "-l"],
              True)
    suite.run("umount of a busy mount", crash.busy_umount)
    if suite.options.rounds > 3:  # it waits for ten seconds
        suite.run("held after SIGTERM", crash.held_after_signal)
    suite.run("disk full", crash.disk_full)
    suite.run("over itself", crash.over_itself)
    suite.run("inside the source", crash.inside_the_source)
    suite.run("trace in the tree", crash.trace_in_the_tree)
    suite.finish()


if __name__ == "__main__":
    main()
