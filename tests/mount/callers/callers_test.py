#!/usr/bin/env python3
"""Who asked, and from which system call: what filters and traces say of callers
is what strace and /proc say of them."""

import collections
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal, wait_until  # noqa: E402

FLAGS = ("STR_ALL | STR_SYSCALL | STR_EXE | STR_CMDLINE | STR_CGROUP | STR_TTY")

# One of each kind of call, and a program that runs others.
WORK = r"""
import mmap, os, subprocess, sys
os.chdir(sys.argv[1])
os.mkdir("d"); os.mkdir("d/e", 0o700)
fd = os.open("d/a.c", os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o644)
os.write(fd, b"x" * 5000); os.pwrite(fd, b"y", 4000)
os.lseek(fd, 0, 0); os.read(fd, 100); os.pread(fd, 50, 10)
os.readv(fd, [bytearray(10), bytearray(20)]); os.writev(fd, [b"a", b"b"])
os.fsync(fd); os.fdatasync(fd); os.ftruncate(fd, 100); os.fstat(fd)
os.fchmod(fd, 0o600); os.posix_fallocate(fd, 0, 8192); os.close(fd)
os.stat("d/a.c"); os.lstat("d/a.c"); os.access("d/a.c", os.R_OK)
os.chmod("d/a.c", 0o640); os.utime("d/a.c"); os.truncate("d/a.c", 10)
os.link("d/a.c", "d/b.c"); os.symlink("a.c", "d/l"); os.readlink("d/l")
os.rename("d/b.c", "d/c.c"); os.listdir("d"); os.statvfs(".")
os.setxattr("d/a.c", "user.k", b"v"); os.getxattr("d/a.c", "user.k")
os.listxattr("d/a.c"); os.removexattr("d/a.c", "user.k")
os.mkfifo("d/f"); os.unlink("d/f"); os.rmdir("d/e")
for name in ("nothing", "d/nothing"):
    try: os.stat(name)
    except OSError: pass
with open("run.sh", "w") as f: f.write("#!/bin/sh\ncat d/a.c >/dev/null\n")
os.chmod("run.sh", 0o755)
subprocess.run(["./run.sh"], check=True)
subprocess.run("cp d/a.c d/x | cat; ls -l d >/dev/null & wait; mv d/x d/y",
               shell=True, check=True)
os.unlink("d/y")
"""


def tracer(filter_text, trace, flags=FLAGS):
    return filter_text, flags, f'file = "{trace}"'


def need(tool):
    if shutil.which(tool) is None:
        raise Skip(f"no {tool}")


def no_tracepoints(suite):
    """Why system calls cannot be traced here, or None."""
    if not hasattr(suite, "why_no_calls"):
        source = suite.folder("probe", "source")
        point = suite.folder("probe", "mnt")
        try:
            suite.mount(source, point, tracer(
                "", suite.path("probe", "t"), "STR_SYSCALL")).unmount()
            suite.why_no_calls = None
        except Exception as error:
            text = str(error)
            if "tracepoint" not in text and "tracefs" not in text:
                raise
            suite.why_no_calls = text.strip().splitlines()[-1]
    return suite.why_no_calls


def need_calls(suite):
    why = no_tracepoints(suite)
    if why:
        raise Skip(why)


def traced(suite, name, work, *filters, flags=FLAGS):
    """Runs `work(point)` below a mount with a tracer for each filter; returns
    the paths of their traces."""
    source = suite.folder(name, "source", mode=0o777)
    point = suite.folder(name, "mnt")
    traces = [suite.path(name, f"trace{i}") for i in range(len(filters))]
    mount = suite.mount(source, point, *(
        tracer(f, t, flags) for f, t in zip(filters, traces)))
    try:
        work(point)
    finally:
        mount.unmount()
    return traces


LINE = re.compile(r"^(\d+) +(\d+)\.(\d{6}) (.*)$")
CALL = re.compile(r"^([a-z_0-9]+)\(")
RESUMED = re.compile(r"^<\.\.\. ([a-z_0-9]+) resumed>")
TAKEN = re.compile(r"<(\d+)\.(\d{6})>$")


def strace_calls(path):
    """tid -> [(begin_us, end_us, name)], of `strace -f -ttt -T`. What a call
    took is counted from a moment after the time that is printed, by as much as
    strace had to wait for a processor: it lasts until the next begins."""
    calls = {}
    begun = {}
    for line in open(path, errors="replace"):
        match = LINE.match(line.rstrip("\n"))
        if not match:
            continue
        tid = int(match[1])
        now = int(match[2]) * 1000000 + int(match[3])
        rest = match[4]
        resumed = RESUMED.match(rest)
        call = CALL.match(rest)
        taken = TAKEN.search(rest)
        spent = int(taken[1]) * 1000000 + int(taken[2]) if taken else None
        if resumed:
            begin = begun.pop(tid, now)
            end = begin + spent if spent is not None else now
            calls.setdefault(tid, []).append((begin, end, resumed[1]))
        elif call and "<unfinished" in rest:
            begun[tid] = now
            calls.setdefault(tid, []).append((now, now + 10**9, call[1]))
        elif call:
            end = now + spent if spent is not None else now + 10**9
            calls.setdefault(tid, []).append((now, end, call[1]))
    return {tid: [(begin, max(end, after), name)
                  for (begin, end, name), (after, _, _)
                  in zip(own, own[1:] + own[-1:])]
            for tid, own in calls.items()}


def the_call_is_the_one_that_strace_saw(suite):
    need("strace")
    need_calls(suite)
    log = suite.path("strace.log")
    traces = traced(
        suite, "strace", lambda point: subprocess.run(
            ["strace", "-f", "-ttt", "-T", "-o", log, sys.executable, "-S",
             "-c", WORK, point], check=True, timeout=120), "")
    calls = strace_calls(log)
    known = unknown = 0
    names = set()
    wrong = []
    for event in suite.read(*traces):
        if event.get("tid") not in calls:
            continue
        if "syscall" not in event:
            if not event.get("inferred") and not event.get("mapped"):
                unknown += 1
            continue
        known += 1
        names.add(event["syscall"])
        at = event["ts"] // 1000
        # The clocks of both are compared to a fraction of a millisecond.
        near = [name for begin, end, name in calls[event["tid"]]
                if begin - 300 <= at <= end + 300]
        if event["syscall"] not in near:
            wrong.append((event["op"], event.get("path"), event["syscall"],
                          near))
    expect_equal(wrong, [], "other calls than strace saw")
    expect(known > 200, f"only {known} operations with a call")
    # On a busy machine the rings are soon written over.
    expect(unknown <= known // 4, f"{unknown} of {known} are unknown")
    for name in ("openat", "read", "pwrite64", "close", "execve", "mkdir",
                 "fsync", "getdents64", "unlink", "rename", "exit_group"):
        expect(any(n == name or n.startswith(name) for n in names),
               f"no {name} among {sorted(names)}")


def a_filter_takes_calls_by_name_and_number(suite):
    need_calls(suite)

    def work(point):
        path = os.path.join(point, "f")
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        os.pwrite(fd, b"1", 0)
        os.write(fd, b"2")
        os.close(fd)
        os.stat(path)

    one, two, three = traced(suite, "names", work, "syscall = pwrite64",
                             "syscall != unknown AND NOT syscall = pwrite64",
                             "syscall = unknown")
    expect_equal([e["op"] for e in suite.read(one)], ["write"], "pwrite64")
    events = suite.read(two)
    expect(all(e["syscall"] not in ("pwrite64", "") for e in events), events)
    expect("write" in {e["syscall"] for e in events}, events)
    expect(all("syscall" not in e for e in suite.read(three)), "unknown")
    number = suite.dump(two, only="syscall = write").events
    expect_equal([e["op"] for e in number], ["write"], "offline")
    header = suite.tool("tracefs-dump", "--header", two).stdout
    expect(re.search(r"\b257 openat\b", header) or "openat" in header,
           "the header does not name the calls")


def calls_are_known_while_other_tracepoints_take_over(suite):
    """The daemon's threads are left out by a filter that is set once; when it
    has new ones, tracepoints with another filter take the place of the first."""
    need_calls(suite)
    source = suite.folder("anew", "source")
    point = suite.folder("anew", "mnt")
    trace = suite.path("anew", "trace")
    mount = suite.mount(source, point, tracer("", trace, "STR_SYSCALL"))

    def tracepoints():
        files = f"/proc/{mount.pid}/fd"
        return sum("perf_event" in os.readlink(os.path.join(files, name))
                   for name in os.listdir(files))

    def work(name, until):
        while time.monotonic() < until:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            os.unlink(name)
            time.sleep(0.002)

    try:
        before = tracepoints()
        threads = [threading.Thread(target=work, args=(
            os.path.join(point, f"f{i}"), time.monotonic() + 3))
            for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: tracepoints() == before * 3 // 2,
                   "one more in each ring")
    finally:
        mount.unmount()
    expected = {"create": "openat", "unlink": "unlink"}
    calls = collections.Counter(
        (e["op"], e.get("syscall")) for e in suite.read(trace)
        if e["op"] in expected)
    # On a busy machine the rings are soon written over.
    unknown = sum(calls.pop((op, None), 0) for op in expected)
    expect_equal(set(calls), set(expected.items()), "calls")
    expect(unknown <= calls.total() // 4, f"{unknown} unknown beside {calls}")


def callers_are_who_proc_says(suite):
    seen = {}

    def work(point):
        script = os.path.join(point, "..", "work.sh")
        with open(script, "w") as out:
            out.write(f"#!/bin/sh\n: >{point}/f\n/bin/cat {point}/f\n"
                      f"/usr/bin/env cat {point}/f 'two words'\n")
        os.chmod(script, 0o755)
        subprocess.run([script], stderr=subprocess.DEVNULL)
        seen["me"] = os.getpid()

    everything, exe, arguments, group, parent, tty = traced(
        suite, "callers", work, "op = open AND path = /f",
        "op = open AND cexe ~ **/cat", "op = open AND cargs ~ \"*two words\"",
        "op = open AND ccgroup != unknown", f"cppid = {os.getpid()}",
        "op = open AND ctty != unknown")
    # Not the create, with which the shell is met for the first time.
    opens = lambda trace: [e for e in suite.read(trace)  # noqa: E731
                           if e["op"] == "open"]
    events = opens(everything)
    expect(len(events) >= 2, events)
    cats = [e for e in events if e["comm"] == "cat"]
    expect_equal(len(cats), 2, f"cats in {events}")
    for event in cats:
        expect_equal(event.get("exe"), os.path.realpath(shutil.which("cat")),
                     f"exe of {event}")
        with open("/proc/self/cgroup") as text:
            expect(event["cgroup"] in text.read(), f"cgroup of {event}")
    expect_equal([e["cmdline"].startswith("/bin/cat ") for e in cats],
                 [True, False], f"arguments of {cats}")
    expect_equal(len(suite.read(exe)), 2, "cexe")
    expect_equal(len(suite.read(arguments)), 1, "cargs")
    expect_equal(len(opens(group)), len(events), "ccgroup")
    expect_equal(len(opens(tty)), len(events), "ctty")
    mine = {e["comm"] for e in suite.read(parent)}
    expect(mine <= {"work.sh"} or mine, f"children of mine: {mine}")
    # The same words from the trace alone.
    for only, count in (("cexe ~ **/cat", 2), ("cargs ~ \"*two words\"", 1),
                        ("cexe = unknown", 0), ("ctty = unknown", 0)):
        expect_equal(len(suite.dump(everything, only=f"op = open AND {only}")
                         .events), count, only)


def descendants_are_found_by_number_and_name(suite):
    def work(point):
        # A program below us, and one below a shell below us.
        subprocess.run(["/bin/sh", "-c",
                        f"/bin/cat {point}/f; /bin/sh -c 'cat {point}/f; :'; "
                        ":"], check=True)
        with open(os.path.join(point, "f")):
            pass

    me = os.getpid()

    def prepared(point):
        open(os.path.join(point, "f"), "w").close()
        work(point)

    by_number, by_name, nobody, unknown = traced(
        suite, "descend", prepared, f"op = open AND descendant of {me}",
        "op = open AND descendant of sh AND cname = cat",
        "op = open AND descendant of no_such_one",
        "op = open AND descendant of unknown")
    comms = [e["comm"] for e in suite.read(by_number)]
    expect_equal(comms.count("cat"), 2, f"descendants: {comms}")
    expect_equal(len(suite.read(by_name)), 2, "by name")
    expect(not any(e["pid"] == me for e in suite.read(by_number)),
           "a process is no descendant of itself")
    expect_equal(suite.read(nobody), [], "descendants of nobody")
    expect_equal(suite.read(unknown), [], "of unknown ancestors")


def nobody_waits_for_a_process_in_execve(suite):
    """A close-on-exec descriptor of ours is closed in the middle of execve(2),
    where /proc/PID/exe and others cannot be read until we have answered."""
    def work(point):
        program = ("import os, sys\n"
                   "fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\n"
                   "os.execv('/bin/true', ['true'])\n")
        begin = time.monotonic()
        for i in range(20):
            subprocess.run([sys.executable, "-S", "-c", program,
                            os.path.join(point, f"f{i}")], check=True,
                           timeout=20)
        expect(time.monotonic() - begin < 30, "it takes too long")

    trace, = traced(suite, "exec", work, "cexe != /nothing")
    expect(len(suite.read(trace)) > 20, "callers are unknown")


def every_process_of_the_machine_is_in_the_trace(suite):
    pids = []

    def work(point):
        for _ in range(100):
            process = subprocess.Popen(["/bin/sh", "-c", f": >{point}/f; exit 7"])
            process.wait()
            pids.append(process.pid)

    try:
        trace, = traced(suite, "processes", work, "op = create OR op = open",
                        flags="STR_ALL | STR_PROCESS")
    except Exception as error:
        if "process records" in str(error):
            raise Skip(str(error).strip().splitlines()[-1]) from None
        raise
    events = suite.dump(trace).events
    by_pid = {}
    for event in events:
        if event.get("process") == "fork":
            by_pid.setdefault(event.get("child_pid"), []).append(event)
        elif "process" in event:
            by_pid.setdefault(event["pid"], []).append(event)
    lost = suite.tool("tracefs-dump", "--stats", trace).stdout
    missing = []
    for pid in pids:
        kinds = {e["process"] for e in by_pid.get(pid, [])}
        if not {"fork", "exec", "exit"} <= kinds:
            missing.append((pid, sorted(kinds)))
    expect(not missing or "overrun" in lost, f"not there, nor lost: {missing}")
    codes = [e.get("exit_code") for pid in pids for e in by_pid.get(pid, [])
             if e["process"] == "exit"]
    expect(codes.count(7) >= 95, f"exit codes: {codes}")
    programs = [e for pid in pids for e in by_pid.get(pid, [])
                if e["process"] == "exec"]
    expect(all(e.get("comm") == "sh" for e in programs), "names of programs")
    # Who is gone at once has none, as a rule by the proc connector.
    told = [e["argv"][:2] for e in programs if e.get("argv")]
    expect(all(words == ["/bin/sh", "-c"] for words in told), told)
    running = [e for e in events if e.get("process") == "running"]
    expect(any(e["pid"] == os.getpid() for e in running), "who was there")
    starts = {e["child_pid"]: e["child_start"] for e in events
              if e.get("process") == "fork"}
    for event in events:
        if event.get("process") == "exec" and event["pid"] in starts:
            expect_equal(event["start"], starts[event["pid"]], "its start")


def main():
    suite = Suite("callers", __doc__)
    for case in (the_call_is_the_one_that_strace_saw,
                 a_filter_takes_calls_by_name_and_number,
                 calls_are_known_while_other_tracepoints_take_over,
                 callers_are_who_proc_says,
                 descendants_are_found_by_number_and_name,
                 nobody_waits_for_a_process_in_execve,
                 every_process_of_the_machine_is_in_the_trace):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
