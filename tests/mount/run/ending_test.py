#!/usr/bin/env python3
"""tracefs-run: how it ends. What is left when it is killed, what the command
has mounted, and who gets the signals."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from runner import Trace, run  # noqa: E402
from tracefs_harness import (PATIENCE_S, Suite, expect, expect_equal,  # noqa: E402
                             mount_points, wait_until)


def place(suite, name):
    folder = suite.folder(name)
    return folder, os.path.join(suite.folder(name + "-out"), "t.trace")


def start(suite, *arguments, cwd):
    return suite.background(subprocess.Popen(
        [os.path.join(suite.bin, "tracefs-run"), *arguments], cwd=cwd,
        stderr=subprocess.DEVNULL))


def mounts_of(folder):
    """Processes in whose name space something is mounted there."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/mountinfo", encoding="utf-8",
                      errors="replace") as mounts:
                if any(line.split()[4] == folder for line in mounts):
                    found.append(pid)
        except OSError:
            pass
    return found


def leave_one_behind(suite, name, *options):
    """tracefs-run after its command's end: a process of that goes on and has
    the mount in use."""
    folder, trace = place(suite, name)
    process = start(suite, "-q", "--processes", "off", "--follow-daemons",
                    *options, "-o", trace, "--", "sh", "-c",
                    "setsid sh -c 'echo $$ > pid; exec sleep 1000' "
                    ">/dev/null 2>&1 & : > ended", cwd=folder)
    pid = os.path.join(folder, "pid")
    wait_until(lambda: os.path.exists(pid) and os.path.getsize(pid) and
               os.path.exists(os.path.join(folder, "ended")), "it began")
    children = f"/proc/{process.pid}/task/{process.pid}/children"

    def only_the_mount():
        with open(children, encoding="ascii") as text:
            return len(text.read().split()) == 1
    wait_until(only_the_mount, "the command ended")
    with open(pid, encoding="ascii") as text:
        return folder, trace, process, int(text.read())


def end_left(folder, trace, suite, left):
    os.kill(left, signal.SIGKILL)
    wait_until(lambda: not mounts_of(folder), "its mount has gone")
    wait_until(lambda: subprocess.run(
        [os.path.join(suite.bin, "tracefs-dump"), trace],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0,
        "the trace is complete")


def case_a_kill_after_the_command_leaves_no_mount(suite):
    folder, trace, process, left = leave_one_behind(suite, "killed")
    process.kill()
    process.wait()
    end_left(folder, trace, suite, left)


def case_a_signal_after_the_command_ends_it(suite):
    folder, trace, process, left = leave_one_behind(suite, "told")
    process.send_signal(signal.SIGTERM)
    expect_equal(process.wait(PATIENCE_S), -signal.SIGTERM, "its end")
    end_left(folder, trace, suite, left)


def case_what_the_command_mounted_does_not_hold_it_up(suite):
    folder, trace = place(suite, "inner")
    os.makedirs(os.path.join(folder, "m"))
    script = "mount -t tmpfs none m && mkdir m/n && mount -t tmpfs none m/n"
    for n, more in enumerate(((), ("--processes", "off"),
                              ("--processes", "off", "--follow-daemons"))):
        got = run(suite, *more, "-o", f"{trace}{n}", "--", "sh", "-c", script,
                  cwd=folder)
        expect_equal(got.returncode, 0, got.stderr)
        expect("use the mount" not in got.stderr, got.stderr)
        expect(not mounts_of(folder), "it is there still")
        Trace(suite, f"{trace}{n}")
    expect(folder not in mount_points(), "still mounted")


def case_every_signal_is_the_commands(suite):
    folder, trace = place(suite, "signals")
    program = ("import os, signal, sys\n"
               "wanted = [signal.Signals[n] for n in sys.argv[1].split(',')]\n"
               "wanted += [signal.SIGRTMIN + 3]\n"
               "signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\n"
               "open('ready', 'w').close()\n"
               "for _ in wanted:\n"
               "    print(int(signal.sigwait(wanted)), file=sys.stderr)\n"
               "sys.exit(7)\n")
    names = ("SIGVTALRM", "SIGPROF", "SIGIO", "SIGXCPU", "SIGPWR", "SIGUSR1")
    process = start(suite, "-q", "-o", trace, "--", sys.executable, "-c",
                    program, ",".join(names), cwd=folder)
    wait_until(lambda: os.path.exists(os.path.join(folder, "ready")), "ready")
    for name in names:
        process.send_signal(signal.Signals[name])
    process.send_signal(signal.SIGRTMIN + 3)
    expect_equal(process.wait(PATIENCE_S), 7, "the command's own answer")
    Trace(suite, trace)


def case_limits_are_the_commands_alone(suite):
    folder, trace = place(suite, "limits")
    limits = "ulimit -S -v 4000000; ulimit -S -t 1000; ulimit -S -f 64"
    process = suite.background(subprocess.Popen(
        ["bash", "-c", f'{limits}; exec "$@"', "bash",
         os.path.join(suite.bin, "tracefs-run"), "-q", "-o", trace, "--",
         "sh", "-c", "ulimit -S -v > limit; ulimit -S -t >> limit; "
         ": > ready; while [ ! -e go ]; do sleep 0.05; done"],
        cwd=folder, stderr=subprocess.DEVNULL))
    wait_until(lambda: os.path.exists(os.path.join(folder, "ready")), "ready")
    with open(f"/proc/{process.pid}/task/{process.pid}/children",
              encoding="ascii") as text:
        children = text.read().split()
    held = {}
    for child in children:
        with open(f"/proc/{child}/comm", encoding="ascii") as text:
            name = text.read().strip()
        with open(f"/proc/{child}/limits", encoding="ascii") as text:
            rows = text.read().splitlines()
        held[name] = [row.split()[-3] for row in rows
                      if row.startswith(("Max address", "Max cpu"))]
    with open(os.path.join(folder, "go"), "w", encoding="ascii"):
        pass
    expect_equal(process.wait(PATIENCE_S), 0, "the command")
    with open(os.path.join(folder, "limit"), encoding="ascii") as text:
        expect_equal(text.read().split(), ["4000000", "1000"], "the command's")
    mount = [of for name, of in held.items() if name != "sh"]
    expect(mount and all(one == ["unlimited"] * 2 for one in mount), held)


def main():
    suite = Suite("run_ending", __doc__)
    for case in (case_a_kill_after_the_command_leaves_no_mount,
                 case_a_signal_after_the_command_ends_it,
                 case_what_the_command_mounted_does_not_hold_it_up,
                 case_every_signal_is_the_commands,
                 case_limits_are_the_commands_alone):
        suite.run(case.__name__[5:].replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
