#!/usr/bin/env python3
"""The sandbox of real daemons, looked at from outside: no descriptor leads out
of it, callers are still found, and a strict one works as well.

What a daemon in it can and cannot do is in tests/unit/daemon."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    Skip, Suite, expect, expect_equal, wait_until)

EVERY_OUTPUT = """
{ {} { stream = { STR_ALL } } { file = "%(out)s/rotated" rotate_count = 20 } }
{ {} { stream = { STR_ALL } } { fifo = "%(out)s/fifo" } }
{ {} { stream = { STR_ALL } }
  { flight = "%(out)s/flight" map = "%(out)s/map" size = 64K rings = 2 } }
{ {} { stream = { STR_ALL } }
  { checksum seal = forward key = "file:%(out)s/state"
      anchor = "file:%(out)s/anchors"; file = "%(out)s/sealed" } }
{ {} { stream = { STR_ALL } }
  { unix = "%(out)s/nobody" when_full = spill "%(out)s/spill" max = 8M } }
"""


class SandboxSuite(Suite):
    def start(self, name, text, *options, visibility="auto", transport=None,
              wrapper=()):
        source = self.folder(name, "source")
        point = self.folder(name, "mnt")
        config = self.path(name, "config")
        with open(config, "w", encoding="ascii") as out:
            out.write(text)
        return self.mount_command(
            [*wrapper, os.path.join(self.bin, "tracefs-mount"), source, point,
             "--config", config, "--foreground", "--visibility", visibility,
             "--transport", transport or self.options.transport, *options],
            point)

    def sandbox_of(self, mount):
        return json.loads(self.command("tracefs-ctl", mount.point, "explain",
                                       "--format", "json"))["sandbox"]


def work(point):
    for i in range(50):
        path = os.path.join(point, f"f{i}")
        with open(path, "wb") as out:
            out.write(b"x" * 5000)
        with open(path, "rb") as text:
            expect_equal(text.read(), b"x" * 5000, path)
        os.rename(path, path + ".moved")
        os.link(path + ".moved", path)
        os.unlink(path)
    expect_equal(len(os.listdir(point)), 50, "files")


def next_part(point, path):
    """Blocks come after a while; the second one begins a part."""
    def made():
        os.path.exists(os.path.join(point, f"missing-{time.monotonic_ns()}"))
        return os.path.exists(path)
    wait_until(made, path)


def mounts_of_the_machine():
    with open("/proc/self/mountinfo", encoding="utf-8",
              errors="surrogateescape") as lines:
        return {line.split()[0] for line in lines}


def directories_of(pid):
    """(descriptor, where it leads, id of its mount) of open directories."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if not stat.S_ISDIR(os.stat(f"/proc/{pid}/fd/{name}").st_mode):
                continue
            path = os.readlink(f"/proc/{pid}/fd/{name}")
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as info:
                mount = [line.split()[1] for line in info
                         if line.startswith("mnt_id:")][0]
        except FileNotFoundError:
            continue
        found.append((name, path, mount))
    return found


def no_descriptor_leads_out(suite):
    out = suite.folder("fds", "out")
    suite.folder("fds", "out", "spill", mode=0o700)
    subprocess.run([os.path.join(suite.bin, "tracefs-keygen"), "seal",
                    out + "/state", out + "/verify"], check=True,
                   capture_output=True)
    mount = suite.start("fds", EVERY_OUTPUT % {"out": out},
                        "--metrics", "unix:" + suite.path("fds", "metrics"))
    work(mount.point)
    directories = directories_of(mount.pid)
    expect(len(directories) >= 7, f"this test sees nothing: {directories}")
    machine = mounts_of_the_machine()
    leaks = [d for d in directories if d[2] in machine]
    expect(not leaks, f"ways out: {leaks}")
    # Later parts are made through these, and the trace keeps its file system
    # from being unmounted meanwhile: its file is on the machine's own mount.
    next_part(mount.point, out + "/rotated.000001")
    mount.unmount()


# Whoever starts a daemon may have files open that it has no business with.
WITH_AN_OPEN_FILE = ("/bin/sh", "-c", 'exec 9< /etc/shadow; exec "$@"', "sh")


def has_open(pid, path):
    files = f"/proc/{pid}/fd"
    return any(os.readlink(os.path.join(files, fd)) == path
               for fd in os.listdir(files))


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as pids:
        return [int(child) for child in pids.read().split()]


def files_of_its_caller_are_closed(suite):
    out = suite.folder("inherited", "out")
    mount = suite.start("inherited", '{ {} { stream = { STR_ALL } } '
                        f'{{ file = "{out}/trace" }} }}',
                        wrapper=WITH_AN_OPEN_FILE)
    work(mount.point)
    for pid in (mount.pid, *children_of(mount.pid)):
        expect(not has_open(pid, "/etc/shadow"),
               f"process {pid} has a file of its caller's open")
    mount.unmount()


def a_command_keeps_files_of_its_caller(suite):
    """But the mount around it does not get them."""
    source = suite.folder("run", "source")
    seen = suite.path("run", "seen")
    command = suite.background(subprocess.Popen(
        [*WITH_AN_OPEN_FILE, os.path.join(suite.bin, "tracefs-run"),
         "--src", source, "--output", suite.path("run", "trace"), "--",
         "/bin/sh", "-c", f"readlink /proc/self/fd/9 > {seen}; exec sleep 60"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    wait_until(lambda: os.path.exists(seen) and os.path.getsize(seen) > 0,
               "the command")
    with open(seen, encoding="utf-8") as path:
        expect_equal(path.read(), "/etc/shadow\n", "what the command has open")
    daemons = []
    for child in children_of(command.pid):
        with open(f"/proc/{child}/comm", encoding="ascii") as comm:
            if comm.read().startswith("tracefs"):
                daemons += [child, *children_of(child)]
    expect(daemons, "no daemon was found")
    for pid in daemons:
        expect(not has_open(pid, "/etc/shadow"), f"process {pid} has it open")
    os.kill(command.pid, signal.SIGTERM)
    command.wait(timeout=60)


def a_receiver_closes_files_of_its_caller(suite):
    listen = suite.path("recv", "socket")
    receiver = suite.background(subprocess.Popen(
        [*WITH_AN_OPEN_FILE, os.path.join(suite.bin, "tracefs-recv"),
         "--listen", "unix:" + listen, "--out", suite.folder("recv", "out")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    wait_until(lambda: os.path.exists(listen), "the receiver")
    wait_until(lambda: not has_open(receiver.pid, "/etc/shadow"),
               "the file of its caller is closed")
    receiver.terminate()
    receiver.wait(timeout=60)


def added_outputs_do_not_lead_out(suite):
    out = suite.folder("add", "out")
    mount = suite.start("add", '{ {} { stream = { STR_ALL } } '
                        f'{{ file = "{out}/first" }} }}')
    more = suite.path("add", "more")
    with open(more, "w", encoding="ascii") as text:
        text.write('{ {} { stream = { STR_ALL } } '
                   f'{{ file = "{out}/second" rotate_count = 20 }} }}\n'
                   '{ {} { stream = { STR_ALL } } '
                   f'{{ flight = "{out}/flight" }} }}')
    suite.command("tracefs-ctl", mount.point, "add", more)
    work(mount.point)
    machine = mounts_of_the_machine()
    leaks = [d for d in directories_of(mount.pid) if d[2] in machine]
    expect(not leaks, f"ways out: {leaks}")
    next_part(mount.point, out + "/second.000001")
    mount.unmount()


def a_busy_output_is_not_unmounted(suite):
    with suite.tmpfs("busy", "out", size="8m") as out:
        mount = suite.start("busy", '{ {} { stream = { STR_ALL } } '
                            f'{{ file = "{out}/trace" }} }}')
        umount = subprocess.run(["umount", out], capture_output=True,
                                check=False)
        expect(umount.returncode != 0, "the trace's file system went away")
        mount.unmount()


def rings_only_serve(suite):
    """What a filter of system calls cannot see: once the rings are there, a
    second one refuses others, to every thread. What these can be asked for is
    in rings_test."""
    why = suite.no_uring()
    if why:
        return Skip(why)
    mount = suite.start("rings", '{ {} { stream = { STR_ALL } } '
                        f'{{ file = "{suite.path("rings", "trace")}" }} }}',
                        transport="uring")
    work(mount.point)
    def leads_to(fd):
        try:
            return os.readlink(f"/proc/{mount.pid}/fd/{fd}")
        except FileNotFoundError:  # closed meanwhile
            return ""

    rings = [fd for fd in os.listdir(f"/proc/{mount.pid}/fd")
             if leads_to(fd) == "anon_inode:[io_uring]"]
    expect(rings, "it has no rings")
    for thread in os.listdir(f"/proc/{mount.pid}/task"):
        with open(f"/proc/{mount.pid}/task/{thread}/status",
                  encoding="ascii") as status:
            expect("\nSeccomp_filters:\t2\n" in status.read(),
                   f"thread {thread} has other filters")
    mount.unmount()
    return f"{len(rings)} rings"


def callers_are_found(suite, sandbox):
    name = f"callers-{sandbox}"
    trace = suite.path(name, "trace")
    mount = suite.start(name, '{ {} { stream = { STR_ALL } } '
                        f'{{ file = "{trace}" }} }}', "--sandbox", sandbox,
                        visibility="exact")
    text = suite.sandbox_of(mount)
    for uid in (0, 65534):
        subprocess.run(["setpriv", f"--reuid={uid}", "--clear-groups", "stat",
                        mount.point], check=True, capture_output=True)
    work(mount.point)
    mount.unmount()
    events = suite.read(trace)
    for uid in (0, 65534):
        expect(any(e["uid"] == uid and e.get("comm") == "stat" and e.get("pid")
                   for e in events), f"no stat of user {uid}")
    expect(all(e.get("comm") for e in events if not e.get("inferred")
               and e.get("pid")), "some callers were not found")
    return text


def a_strict_one_works(suite):
    text = callers_are_found(suite, "strict")
    expect("no file handles" in text, text)
    return text


def a_strict_one_knows_more_files_than_descriptors(suite):
    """Without handles they are found again by their names."""
    trace = suite.path("names", "trace")
    source = suite.folder("names", "source")
    for folder in range(20):
        os.mkdir(os.path.join(source, f"d{folder}"))
        for i in range(100):
            with open(os.path.join(source, f"d{folder}", f"f{i}"), "w",
                      encoding="ascii") as out:
                out.write(f"{folder} {i}")
    mount = suite.start("names", '{ { op = open } { stream = { STR_ALL } } '
                        f'{{ file = "{trace}" }} }}', "--sandbox", "strict",
                        wrapper=["prlimit", "--nofile=512:512"])
    for _ in range(2):
        for folder in range(20):
            for i in range(100):
                path = os.path.join(mount.point, f"d{folder}", f"f{i}")
                with open(path, encoding="ascii") as text:
                    expect_equal(text.read(), f"{folder} {i}", path)
    for folder in range(20):
        os.rename(os.path.join(mount.point, f"d{folder}"),
                  os.path.join(mount.point, f"e{folder}"))
        for i in range(100):
            path = os.path.join(mount.point, f"e{folder}", f"f{i}")
            os.chmod(path, 0o600)
            os.unlink(path)
    mount.unmount()
    expect_equal(sum(e["op"] == "open" and "errno" not in e
                     for e in suite.read(trace)), 4000, "opens")


def main():
    suite = SandboxSuite("sandbox", __doc__)
    for case in (no_descriptor_leads_out, files_of_its_caller_are_closed,
                 a_command_keeps_files_of_its_caller,
                 a_receiver_closes_files_of_its_caller, added_outputs_do_not_lead_out,
                 a_busy_output_is_not_unmounted, rings_only_serve):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.run("callers are found", callers_are_found, suite, "on")
    suite.run("a strict one works", a_strict_one_works, suite)
    suite.run("a strict one knows more files than descriptors",
              a_strict_one_knows_more_files_than_descriptors, suite)
    suite.finish()


if __name__ == "__main__":
    main()
