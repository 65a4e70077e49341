#!/usr/bin/env python3
"""tracefs-run: a command in a private mount of its directory. What the command
has, what is left when it ends, and what is said when it cannot run."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from runner import Trace, key, run, tree  # noqa: E402
from command_checks import time_at_depth  # noqa: E402
from tracefs_harness import (PATIENCE_S, Skip, Suite, expect, expect_equal,  # noqa: E402
                             mount_points, wait_until)


def place(suite, name):
    folder = suite.folder(name)
    trace = os.path.join(suite.folder(name + "-out"), "t.trace")
    return folder, trace


def gone(folder):
    return folder not in mount_points()


def case_the_command_is_as_without(suite):
    folder, trace = place(suite, "as_without")
    os.mkdir(os.path.join(folder, "sub"))
    script = ('pwd; echo "$WORD"; cat; id -u; ulimit -n; '
              'echo data > made; cat made >/dev/null; ls -d /; exit 5')
    environment = dict(os.environ, WORD="two words")
    got = run(suite, "-q", "-o", trace, "--src", folder, "--", "sh", "-c",
              script, cwd=os.path.join(folder, "sub"), env=environment,
              input="from stdin\n")
    want = subprocess.run(["sh", "-c", script],
                          cwd=os.path.join(folder, "sub"), env=environment,
                          input="from stdin\n", stdout=subprocess.PIPE,
                          text=True)
    expect_equal(got.returncode, 5, "exit status: " + got.stderr)
    expect_equal(got.stdout, want.stdout, "what it printed")
    expect_equal(got.stderr, "", "with --quiet")
    expect(gone(folder), "still mounted")
    read = Trace(suite, trace)
    expect("/sub/made" in read.paths("create"), "the new file is not in there")
    first = read.of("exec")[0]
    expect_equal(first["argv"], ["sh", "-c", script], "arguments")
    expect_equal(first["cwd"], os.path.join(folder, "sub"), "cwd")
    expect_equal(tree(read.processes)[key(first)]["end"], 5, "its end")
    # Records stand before what the processes they tell of did.
    began = set()
    for e in read.lines:
        if e.get("process") == "fork":
            began.add(e["child_pid"])
        elif "op" in e and not e.get("inferred") and e.get("pid"):
            expect(e["pid"] in began, f"an operation before its fork: {e}")


def case_summary(suite):
    folder, trace = place(suite, "summary")
    got = run(suite, "-o", trace, "--", "sh", "-c",
              "echo x > f; cat f missing; true", cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    for word in ("operations", "slowest", "most used", "/f", "processes:",
                 "losses: none", "never seen:", trace):
        expect(word in got.stderr, f"no {word!r} in: {got.stderr}")


def case_it_begins_with_the_verdict(suite):
    """How long the command ran, by our own clock; how much of that was in
    operations, by the trace; and where else programs lie."""
    folder, trace = place(suite, "verdict")
    begin = time.monotonic()
    got = run(suite, "-o", trace, "--", "sh", "-c",
              "sleep 0.5; echo x > f; cat f missing; true", cwd=folder)
    longest = time.monotonic() - begin
    told = got.stderr.splitlines()
    at = next(i for i, line in enumerate(told) if line.startswith(" sh -c "))
    said = re.match(r" (\S+?) (ms|s) elapsed, (less than )?(\S+) % of it in the "
                    r"(\d+) file operations recorded here\. (\d+) of (\d+) "
                    r"programs that ran lie outside (\S+) \(in (\S+)\); file "
                    r"operations outside \8 were not recorded: tracefs-run "
                    r"--root records them\.$", told[at + 1])
    expect(said, told[at + 1])
    elapsed = float(said[1]) / (1000 if said[2] == "ms" else 1)
    expect(0.5 <= elapsed <= longest, f"{elapsed} s of {longest} s")
    read = Trace(suite, trace)
    spans = [(e["ts"], e["dur"]) for e in read.operations]
    share = sum(time_at_depth(spans).values()) / elapsed / 1e7
    expect(abs(share - float(said[4])) <= 0.1 or said[3], f"{share}: {said[0]}")
    ran = [e["exe"] for e in read.of("exec")]
    expect_equal((int(said[5]), int(said[6]), int(said[7]), said[8]),
                 (len(spans), len(ran), len(ran), folder), said[0])
    expect_equal({os.path.dirname(exe) for exe in ran}, {said[9]}, said[0])
    summary = subprocess.run([os.path.join(suite.bin, "tracefs"), trace],
                             stdout=subprocess.PIPE, text=True, check=True)
    expect_equal(summary.stdout.splitlines()[1], told[at + 1].strip(),
                 "what tracefs TRACE says")
    everything = run(suite, "--root", "-o", trace + ".2", "--", "true", cwd=folder)
    if everything.returncode == 0:
        expect("elapsed, " in everything.stderr and
               "outside" not in everything.stderr, everything.stderr)
    # Without process records nothing is known of programs.
    alone = run(suite, "--processes", "off", "-o", trace + ".3", "--", "cat", "f",
                cwd=folder)
    expect("s elapsed, " in alone.stderr and "program" not in
           alone.stderr.partition("elapsed")[2].partition("\n")[0],
           alone.stderr)


def case_without_the_device_the_doctor_is_named(suite):
    folder, trace = place(suite, "no-device")
    script = ("mount --bind /dev/null {dev} && mount -t tmpfs none /dev && "
              "touch /dev/null && mount --bind {dev} /dev/null && ")
    dev = os.path.join(suite.folder("lent"), "null")
    with open(dev, "w", encoding="ascii"):
        pass
    for last in (f"tracefs-run -o {trace} -- true",
                 f"tracefs-mount {folder} --log none"):
        got = subprocess.run(
            ["unshare", "-m", "sh", "-c",
             script.format(dev=dev) + f"exec {suite.bin}/{last}"], cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE_S)
        expect_equal(got.returncode, 3, got.stderr)
        expect("/dev/fuse: No such file or directory; next: tracefs-mount "
               "--doctor" in got.stderr and "\\n" not in got.stderr,
               got.stderr)


def case_exit_statuses(suite):
    folder, trace = place(suite, "statuses")
    plain = os.path.join(folder, "plain")
    with open(plain, "w", encoding="ascii") as out:
        out.write("no program\n")
    n = iter(range(100))

    def status(*words):
        return run(suite, "-q", "-o", f"{trace}{next(n)}", *words, cwd=folder)
    expect_equal(status("--", "no-such-command-here").returncode, 127, "name")
    expect_equal(status("--", "./missing").returncode, 127, "path")
    expect_equal(status("--", plain).returncode, 126, "not executable")
    expect_equal(status("--", folder).returncode, 126, "a directory")
    expect(not os.listdir(os.path.dirname(trace)), "a trace of nothing")
    expect_equal(status("sh", "-c", "kill -9 $$").returncode, 137, "signal")
    expect_equal(status("sh", "-c", "exit 300").returncode, 44, "exit 300")
    for words in ([], ["--nonsense", "true"], ["--processes=x", "true"],
                  ["--filter", "op =", "true"], ["--src", "/", "true"]):
        got = status(*words)
        expect_equal(got.returncode, 2, f"{words}: {got.stderr}")
        expect(got.stderr.startswith("tracefs-run: "), got.stderr)
    got = status("--src", "/no/such", "true")
    expect_equal(got.returncode, 3, got.stderr)
    first = trace + "exists"
    open(first, "w", encoding="ascii").close()
    got = run(suite, "-o", first, "true", cwd=folder)
    expect_equal(got.returncode, 3, "an old file is not replaced")
    expect_equal(os.path.getsize(first), 0, "the old file")
    expect(gone(folder), "still mounted")


def case_filter_and_environment(suite):
    folder, trace = place(suite, "filter")
    got = run(suite, "-q", "--env", "-o", trace, "--filter", "op = create",
              "--", "env", "-i", "A=b c", "sh", "-c", "echo > f; cat f",
              cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    read = Trace(suite, trace)
    expect_equal({e["op"] for e in read.operations}, {"create"}, "operations")
    shell = [e for e in read.of("exec") if e["argv"][0] == "sh"][0]
    expect_equal(shell["env"], ["A=b c"], "environment")


def case_config(suite):
    folder, trace = place(suite, "config")
    config = trace + ".conf"
    with open(config, "w", encoding="utf-8") as out:
        out.write("{ { } { stream = { STR_ALL | STR_PROCESS } } "
                  f'{{ compress; file = "{trace}"; }} }}')
    got = run(suite, "--config", config, "true", cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    expect_equal(len(Trace(suite, trace).of("exec")), 1, "programs")


def case_killed(suite):
    folder, trace = place(suite, "killed")
    process = subprocess.Popen(
        [os.path.join(suite.bin, "tracefs-run"), "-o", trace, "--", "sh", "-c",
         "echo $$ > pid; sleep 1000"], cwd=folder, stderr=subprocess.DEVNULL)
    pid_file = os.path.join(folder, "pid")
    wait_until(lambda: os.path.exists(pid_file) and os.path.getsize(pid_file),
               "the command began")
    with open(pid_file, encoding="ascii") as text:
        pid = int(text.read())
    process.kill()
    process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its command died")
    wait_until(lambda: not users_of(folder), "its mount has gone")
    expect(gone(folder), "still mounted")
    # The trace ends in order all the same.
    wait_until(lambda: subprocess.run(
        [os.path.join(suite.bin, "tracefs-dump"), trace],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0,
        "the trace is complete")


def users_of(folder):
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


def case_signals(suite):
    folder, trace = place(suite, "signals")
    process = subprocess.Popen(
        [os.path.join(suite.bin, "tracefs-run"), "-q", "-o", trace, "--", "sh",
         "-c", "trap 'exit 7' TERM; : > ready; while :; do sleep 0.05; done"],
        cwd=folder)
    wait_until(lambda: os.path.exists(os.path.join(folder, "ready")), "ready")
    process.send_signal(signal.SIGTERM)
    expect_equal(process.wait(PATIENCE_S), 7, "the command's own answer")
    Trace(suite, trace)


def case_daemons(suite):
    folder, trace = place(suite, "daemons")
    script = ("setsid sh -c 'sleep 1; echo late > late; exit 3' "
              ">/dev/null 2>&1 & echo done")
    begin = time.monotonic()
    got = run(suite, "-o", trace, "--", "sh", "-c", script, cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    expect(time.monotonic() - begin < 60, "it waited")
    expect("left behind" in got.stderr, got.stderr)
    expect(gone(folder), "still mounted")
    Trace(suite, trace)  # it is complete
    wait_until(lambda: os.path.exists(os.path.join(folder, "late")),
               "the daemon goes on")
    wait_until(lambda: not users_of(folder), "its mount has gone")
    os.remove(os.path.join(folder, "late"))
    got = run(suite, "-q", "--follow-daemons", "-o", trace + "2", "--", "sh",
              "-c", script, cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    read = Trace(suite, trace + "2")
    expect("/late" in read.paths("create"), "what the daemon did is not there")
    ends = [e["end"] for e in tree(read.processes).values()]
    expect(3 in ends and None not in ends, f"ends: {ends}")


def case_nested(suite):
    folder, trace = place(suite, "nested")
    got = run(suite, "-q", "-o", trace, "--",
              os.path.join(suite.bin, "tracefs-run"), "-q", "-o",
              trace + ".inner", "--", "sh", "-c", "echo > f; exit 4",
              cwd=folder)
    expect_equal(got.returncode, 4, got.stderr)
    inner = Trace(suite, trace + ".inner")
    expect("/f" in inner.paths("create"), "the inner one")
    expect_equal(len(inner.of("exec")), 1, "programs of the inner one")
    expect("/f" in Trace(suite, trace).paths("create"), "the outer one")


def case_tracers_are_let_go(suite):
    if subprocess.run(["which", "strace"],
                      stdout=subprocess.DEVNULL).returncode != 0:
        return Skip("no strace")
    folder, trace = place(suite, "tracers")
    got = run(suite, "-o", trace, "--", "sh", "-c",
              "strace -f -o out sh -c 'exit 9'; echo $?", cwd=folder)
    expect_equal(got.stdout, "9\n", got.stderr)
    expect("let go" in got.stderr, got.stderr)
    with open(os.path.join(folder, "out"), encoding="ascii") as text:
        expect("exited with 9" in text.read(), "what strace saw")


def case_mounts_below(suite):
    folder, trace = place(suite, "below")
    with suite.tmpfs("below", "other", size="1m") as below:
        with open(os.path.join(below, "f"), "w", encoding="ascii") as out:
            out.write("there\n")
        got = run(suite, "-q", "-o", trace, "--", "cat", "other/f", cwd=folder)
    expect_equal(got.stdout, "there\n", got.stderr)
    expect("/other/f" in Trace(suite, trace).paths("open"), "not recorded")


def case_root(suite):
    folder, trace = place(suite, "root")
    got = run(suite, "-q", "--root", "-o", trace, "--", "sh", "-c",
              "pwd; echo x > f; cat /etc/hostname >/dev/null; "
              "test -e /proc/self/exe && test -c /dev/null && test -d /sys/dev",
              cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    expect_equal(got.stdout, folder + "\n", "its directory")
    read = Trace(suite, trace)
    expect(os.path.join(folder, "f") in read.paths("create"), "its own file")
    expect(any(p and p.endswith("/libc.so.6") for p in read.paths("open")),
           "libraries")
    expect("/etc/hostname" in read.paths("open"), "/etc")
    expect(not [p for p in mount_points() if "tracefs-run." in p], "mounts")
    expect(not [p for p in os.listdir("/tmp") if p.startswith("tracefs-run.")],
           "a folder is left")


def case_ordinary_user(suite):
    """As nobody, in a user name space of his own. /dev/fuse is lent to him in
    a private mount name space, where it is root's alone on this machine."""
    folder, trace = place(suite, "user")
    os.chmod(folder, 0o777)
    os.chmod(os.path.dirname(trace), 0o777)
    up = folder
    while up != "/":
        if not os.stat(up).st_mode & 0o001:
            return Skip(f"{up} is closed to ordinary users")
        up = os.path.dirname(up)
    for folder_up in (suite.bin, os.path.dirname(folder)):
        while folder_up != "/":
            if not os.stat(folder_up).st_mode & 0o001:
                return Skip(f"{folder_up} is closed to ordinary users")
            folder_up = os.path.dirname(folder_up)
    device = os.path.join(suite.folder("user-dev"), "fuse")
    try:
        os.mknod(device, 0o20666, os.stat("/dev/fuse").st_rdev)
        os.chmod(device, 0o666)
    except OSError as error:
        return Skip(f"mknod: {error}")
    script = (f"mount --bind {device} /dev/fuse && cd {folder} && "
              f"exec setpriv --reuid 65534 --regid 65534 --clear-groups "
              f"{suite.bin}/tracefs-run -o {trace} -- sh -c "
              f"'id -u; echo x > f; cat f; exit 6'")
    got = subprocess.run(["unshare", "-m", "sh", "-c", script],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=PATIENCE_S)
    if got.returncode == 3 and "user namespaces" in got.stderr:
        return Skip(got.stderr.strip())
    expect_equal((got.returncode, got.stdout), (6, "65534\nx\n"), got.stderr)
    # Others than he are not told apart there.
    expect("a user namespace: owners" in suite.command(
        "tracefs-dump", "--header", trace), "what is different for him")
    expect("/f" in Trace(suite, trace).paths("create"), "its file")


def case_a_mount_that_was_stopped_for_a_while_goes_on(suite):
    """Its process is the child of tracefs-run that is not the command."""
    folder, trace = place(suite, "mount-stopped")
    script = ("for child in $(cat /proc/$PPID/task/$PPID/children); do "
              "test $child = $$ || mount=$child; done; "
              "kill -STOP $mount; sleep 0.2; kill -CONT $mount; "
              "for i in 1 2 3; do echo $i > f$i; done")
    got = run(suite, "-o", trace, "--", "sh", "-c", script, cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    expect("the mount ended" not in got.stderr, got.stderr)
    expect(Trace(suite, trace).paths("create") >= {"/f1", "/f2", "/f3"},
           "what was written afterwards")
    wait_until(lambda: not users_of(folder), "its mount has gone")


def case_a_command_that_its_own_child_resumes_goes_on(suite):
    folder, trace = place(suite, "resumed")
    script = "(sleep 0.3; kill -CONT $$) & kill -STOP $$; echo done"
    for n, processes in enumerate(("ptrace", "off")):
        got = run(suite, "-q", "--processes", processes, "-o", f"{trace}{n}",
                  "--", "sh", "-c", script, cwd=folder)
        expect_equal((got.returncode, got.stdout), (0, "done\n"), got.stderr)


# It says where it is, and repeats a line; the second one catches Ctrl-Z and
# then stops by the signal that nobody can catch, as ls(1) does.
COMMANDS = ("sh -c 'echo here; read line; echo got $line'",
            "python3 -c 'import os, signal, sys; "
            "signal.signal(signal.SIGTSTP, "
            "lambda *_: os.kill(os.getpid(), signal.SIGSTOP)); "
            'print("here", flush=True); print("got", sys.stdin.readline())\'')


def case_job_control(suite):
    """In a terminal: stopped with its command by Ctrl-Z, and on again."""
    for n, command in enumerate(COMMANDS):
        folder, trace = place(suite, f"jobs{n}")
        stop_and_resume(suite, command, folder, trace)
        Trace(suite, trace)


def stop_and_resume(suite, command, folder, trace):
    leader, follower = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "-i"], stdin=follower, stdout=follower,
        stderr=follower, cwd=folder, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540e, 0))
    os.close(follower)
    seen = b""

    def wait_for(text):
        nonlocal seen
        until = time.monotonic() + PATIENCE_S
        while text not in seen:
            expect(time.monotonic() < until, f"no {text!r} in {seen!r}")
            if select.select([leader], [], [], 0.2)[0]:
                seen += os.read(leader, 4096)
        seen = seen[seen.index(text) + len(text):]
    os.write(leader, b"PS1='ready> '\n")
    wait_for(b"ready> ")
    wait_for(b"ready> ")
    os.write(leader, f"{suite.bin}/tracefs-run -q -o {trace} -- {command}\n"
             .encode())
    wait_for(b"here\r\n")
    time.sleep(0.3)
    os.write(leader, b"\x1a")
    wait_for(b"Stopped")
    wait_for(b"ready> ")
    os.write(leader, b"fg\n")
    wait_for(b"tracefs-run")
    time.sleep(0.3)
    os.write(leader, b"a line\n")
    wait_for(b"got a line")
    wait_for(b"ready> ")
    os.write(leader, b"exit\n")
    shell.wait(PATIENCE_S)
    os.close(leader)


def main():
    suite = Suite("run", __doc__)
    for case in (case_the_command_is_as_without, case_summary,
                 case_it_begins_with_the_verdict,
                 case_without_the_device_the_doctor_is_named,
                 case_exit_statuses, case_filter_and_environment, case_config,
                 case_killed, case_signals, case_daemons, case_nested,
                 case_tracers_are_let_go, case_mounts_below, case_root,
                 case_ordinary_user,
                 case_a_mount_that_was_stopped_for_a_while_goes_on,
                 case_a_command_that_its_own_child_resumes_goes_on,
                 case_job_control):
        suite.run(case.__name__[5:].replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
