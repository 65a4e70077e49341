#!/usr/bin/env python3
"""Every operation carries the name that its thread has at that moment, and
process records are the kernel's. The programs traced say themselves what the
kernel calls them; strace and the proc connector say the rest."""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
# pylint: disable=wrong-import-position
from kernel_events import KernelEvents  # noqa: E402
from tracefs_harness import PATIENCE_S, Skip, Suite, expect, expect_equal  # noqa: E402

SOAK = os.environ.get("TRACEFS_SOAK") == "1"
NAMES = [f"p{i}" for i in range(8)]
MADE = re.compile(r"/(?:by/)?by-(.+)-(\d+)$")


def programs(suite, folder):
    os.makedirs(folder, exist_ok=True)
    for name in NAMES:
        shutil.copy(suite.options.namer, os.path.join(folder, name))
    return os.path.join(folder, NAMES[0])


def work(program, folder):
    """Commands that make files named after who makes them."""
    for _ in range(20 if SOAK else 4):
        yield [program, "say", folder, *NAMES[1:], *NAMES, *NAMES]
    yield [program, "rename", folder, "200"]
    yield [program, "threads", folder, "30"]
    yield [program, "thread-exec", folder, *NAMES[1:4]]
    yield [program, "vfork", folder, "60", *NAMES[1:]]


def check_names(events):
    """Of all that was done with a file that is named after its maker."""
    wrong = []
    count = 0
    for event in events:
        made = MADE.match(event.get("path", ""))
        if "op" not in event or not made:
            continue
        count += 1
        got = (event.get("comm"), str(event.get("tid")))
        if got != made.groups():
            wrong.append((event["op"], event["path"], *got,
                          event.get("inferred")))
    expect(not wrong, f"{len(wrong)} of {count} carry another name: "
           f"{wrong[:5]}")
    expect(count > 500, f"only {count} operations")
    return f"{count} operations"


def mounted_with_programs(suite, name, place):
    source = suite.folder(name, "source")
    point = suite.folder(name, "mnt")
    os.mkdir(os.path.join(source, "by"))
    outside = programs(suite, suite.path(name, "programs"))
    programs(suite, os.path.join(source, "programs"))
    program = {"outside": outside,
               "inside": os.path.join(point, "programs", NAMES[0])}[place]
    trace = suite.path(name, "trace")
    mount = suite.mount(source, point, trace)
    try:
        for command in work(program, os.path.join(point, "by")):
            subprocess.run(command, check=True, timeout=PATIENCE_S)
    finally:
        mount.unmount()
    return suite.read(trace)


def names_follow_exec_at_a_mount(suite):
    return check_names(mounted_with_programs(suite, "outside", "outside"))


def names_follow_programs_that_lie_in_the_mount(suite):
    """Their pages are read while execve(2) is under way."""
    return check_names(mounted_with_programs(suite, "inside", "inside"))


def run(suite, trace, command, folder):
    done = subprocess.Popen(
        [os.path.join(suite.bin, "tracefs-run"), "-q", "-o", trace, "--",
         *command], cwd=folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    _, errors = done.communicate(timeout=PATIENCE_S)
    expect_equal(errors, "", "errors")
    return done


def names_follow_exec_in_a_run(suite):
    folder = suite.folder("run")
    os.mkdir(os.path.join(folder, "by"))
    program = programs(suite, suite.path("run-programs"))
    script = suite.path("run-script")
    with open(script, "w", encoding="ascii") as out:
        for command in work(program, "by"):
            out.write(" ".join(command) + "\n")
    trace = suite.path("run-trace")
    run(suite, trace, ["/bin/sh", script], folder)
    events = suite.read(trace)
    names = {e["comm"] for e in events if "comm" in e}
    expect("tracefs-run" not in names, f"tracefs-run among {sorted(names)}")
    return check_names(events)


def kernel_events():
    try:
        with KernelEvents():
            pass
    except OSError as error:
        raise Skip(f"no proc connector: {error}") from None
    return KernelEvents()


def expect_same(got, want, what):
    """Of two dicts; says what one has and the other has not."""
    expect_equal(dict(got.items() - want.items()),
                 dict(want.items() - got.items()), what)


def check_records(suite, name, command):
    """The records of a run are what the kernel told of the same processes."""
    folder = suite.folder(name)
    trace = suite.path(name + "-trace")
    with kernel_events() as kernel:
        run(suite, trace, command(folder), folder)
    if kernel.lost:
        raise Skip("the kernel lost events")
    records = [e for e in suite.dump(trace).events if "process" in e]
    forks = [e for e in records if e["process"] == "fork"]
    root = forks[0]["child_pid"]
    ours = kernel.below(root)
    # The first is made by tracefs-run.
    want = sorted(c for p, c, _ in kernel.forks if p in ours)
    expect_same(collections.Counter(e["child_tid"] for e in forks[1:]),
                collections.Counter(want), "forks")
    want = collections.Counter(p for p in kernel.execs if p in ours)
    got = collections.Counter(e["pid"] for e in records
                              if e["process"] == "exec")
    expect_same(got, want, "execs")
    without = [e for e in records if e["process"] == "exec" and
               not e.get("argv")]
    expect_equal(without, [], "execs without arguments")
    # Of a process that a thread replaced, the kernel tells two ends.
    want = {t: s & 0xff7f for t, p, s in kernel.ends if p in ours and t == p}
    got = {e["tid"]: e.get("exit_code", 0) << 8 if "signal" not in e
           else signal.Signals[e["signal"]].value for e in records
           if e["process"] == "exit" and e["tid"] == e["pid"]}
    expect_same(got, want, "ends")
    threads = {t for t, p, _ in kernel.ends if p in ours and t != p}
    got = {e["tid"] for e in records
           if e["process"] == "exit" and e["tid"] != e["pid"]}
    expect(got <= threads, f"ends of threads: {got - threads}")
    return f"{len(forks)} processes and threads"


def records_of_those_killed_at_once(suite):
    program = programs(suite, suite.path("kill-programs"))
    return check_records(suite, "kill", lambda folder: [
        program, "kill", folder, "1000" if SOAK else "200", NAMES[1]])


def records_of_those_killed_while_they_fork(suite):
    program = programs(suite, suite.path("storm-programs"))
    return check_records(suite, "storm", lambda folder: [
        program, "fork-storm", folder, "200" if SOAK else "40"])


def records_of_vfork_and_threads(suite):
    program = programs(suite, suite.path("vfork-programs"))

    def command(folder):
        script = suite.path("vfork-script")
        with open(script, "w", encoding="ascii") as out:
            out.write(f"{program} vfork . 40 {' '.join(NAMES[1:])}\n"
                      f"{program} thread-exec . {' '.join(NAMES[1:3])}\n"
                      f"{program} threads . 2\n")
        return ["/bin/sh", script]
    return check_records(suite, "vfork", command)


def records_of_scripts_and_long_arguments(suite):
    """Arguments are those that execve(2) was given, all of them."""
    folder = suite.folder("long")
    script = suite.path("long-script")
    long_one = "x" * 100000
    with open(script, "w", encoding="ascii") as out:
        out.write('#!/bin/sh -e\n/bin/true "$@"\nexec /bin/echo "$1"\n')
    os.chmod(script, 0o755)
    words = ["a b", "", long_one, *map(str, range(5000))]
    trace = suite.path("long-trace")
    run(suite, trace, [script, *words], folder)
    got = [(e["program"], e["argv"]) for e in suite.dump(trace).events
           if e.get("process") == "exec"]
    expect_equal(got, [(script, ["/bin/sh", "-e", script, *words]),
                       ("/bin/true", ["/bin/true", *words]),
                       ("/bin/echo", ["/bin/echo", words[0]])], "programs")


MAKEFILE = """OBJECTS = $(patsubst %,f%.o,{numbers})
all: prog
prog: $(OBJECTS)
\tgcc -o $@ $^
%.o: %.c common.h
\tgcc -c -o $@ $<
main: prog
\t./prog
"""


def opens_of(log):
    """(name, path) of each open(2) that succeeded, of `strace -f -Y`."""
    begin = re.compile(r'(\d+)<(.*?)> +(?:open|openat|creat)\('
                       r'(?:AT_FDCWD[^,]*, )?"([^"]*)"')
    end = re.compile(r"(\d+)<.*\) += \d+")
    begun = {}
    with open(log, encoding="latin1") as lines:
        for line in lines:
            call = begin.match(line)
            if call and "O_DIRECTORY" not in line:
                begun[call[1]] = (call[2], call[3])
            ended = end.match(line)
            if ended and ended[1] in begun:
                yield begun.pop(ended[1])


def names_in_a_build_are_those_of_strace(suite):
    """Which program opened which file, by `strace --decode-pids=comm` without
    us, and by a trace of the same build."""
    for tool in ("strace", "make", "gcc"):
        if shutil.which(tool) is None:
            raise Skip(f"no {tool}")

    def prepare():
        suite.remove("make")
        folder = suite.folder("make")
        number = 12
        for i in range(number):
            with open(os.path.join(folder, f"f{i}.c"), "w",
                      encoding="ascii") as out:
                out.write('#include "common.h"\n' + (
                    "int main(void) { return 0; }\n" if i == 0 else
                    f"int f{i}(void) {{ return COMMON; }}\n"))
        with open(os.path.join(folder, "common.h"), "w",
                  encoding="ascii") as out:
            out.write("#define COMMON 1\n")
        with open(os.path.join(folder, "Makefile"), "w",
                  encoding="ascii") as out:
            out.write(MAKEFILE.replace("{numbers}", " ".join(
                map(str, range(number)))))
        return folder

    folder = prepare()
    log = suite.path("make-strace")
    try:
        subprocess.run(["strace", "-f", "-Y", "-o", log, "-e",
                        "trace=open,openat,creat", "make", "-j2", "main"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError:
        raise Skip("strace does not know --decode-pids=comm") from None
    want = {(comm, os.path.basename(path)) for comm, path in opens_of(log)
            if os.path.dirname(os.path.normpath(
                os.path.join(folder, path))) == folder}
    folder = prepare()
    trace = suite.path("make-trace")
    run(suite, trace, ["make", "-j2", "main"], folder)
    events = [e for e in suite.read(trace) if e.get("op") in ("open", "create")
              and "errno" not in e]
    # What execve(2) opens is no open(2).
    got = {(e["comm"], os.path.basename(e["path"])) for e in events
           if "FMODE_EXEC" not in str(e.get("flags")) and
           not int(e.get("flags", 0)) & 0x20}
    expect_equal(got - want, set(), "opened by others than strace saw")
    expect_equal(want - got, set(), "not seen")
    expect(len(want) > 30, want)
    return f"{len(want)} pairs of program and file"


def main():
    suite = Suite("names", __doc__, lambda parser: parser.add_argument(
        "--namer", required=True))
    for case in (names_follow_exec_at_a_mount,
                 names_follow_programs_that_lie_in_the_mount,
                 names_follow_exec_in_a_run,
                 records_of_those_killed_at_once,
                 records_of_those_killed_while_they_fork,
                 records_of_vfork_and_threads,
                 records_of_scripts_and_long_arguments,
                 names_in_a_build_are_those_of_strace):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
