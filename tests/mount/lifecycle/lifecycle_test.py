#!/usr/bin/env python3
"""How a mount begins and ends, as its owner sees it: what `tracefs-mount` in
the background answers for, when a trace is complete, and who is told of what
was lost."""

import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from tracefs_harness import (Skip, Suite, expect, expect_equal,  # noqa: E402
                             mount_points, wait_until)

# What takes long to write: the strongest compression and the slowest cipher.
SLOW_CHAIN = ('async buffers = 64; compress alg = zlib level = 9; '
              'encrypt cipher = bf-cbc key = "file:{key}"; '
              'checksum alg = crc32c; ')


class Place:
    """A source, a mount point and a folder for outputs of one case."""

    def __init__(self, suite, name):
        self.suite = suite
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mnt")
        self.out = suite.folder(name, "out")

    def trace(self, name="trace"):
        return os.path.join(self.out, name)

    def key(self):
        path = os.path.join(self.out, "key")
        with open(path, "w", encoding="ascii") as out:
            out.write("tracefs-secret-1 " + "5a" * 32 + "\n")
        os.chmod(path, 0o600)
        return path


def tool(suite, name, *arguments, **options):
    return subprocess.run([os.path.join(suite.bin, name), *arguments],
                          capture_output=True, text=True, check=False,
                          timeout=options.pop("timeout", 120), **options)


def ctl(suite, *arguments, **options):
    return tool(suite, "tracefs-ctl", *arguments, **options)


class Background:
    """A mount in the background, as users have it: nothing is left of its
    command once it is there."""

    def __init__(self, suite, place, *tracers, options=(), point=None,
                 source=None, **run):
        self.suite = suite
        self.point = point or place.point
        config = suite.config(*tracers)
        suite._mount_count += 1
        self.run = tool(suite, "tracefs-mount", source or place.source,
                        self.point, "--config", config, "--transport",
                        suite.options.transport, *options, **run)

    def __enter__(self):
        expect_equal(self.run.returncode, 0, self.run.stderr)
        return self

    def __exit__(self, *_):
        if self.point in mount_points():
            subprocess.run(["umount", "-l", self.point], check=False)

    def pid(self):
        """Of the daemon: it owns the control socket."""
        status = os.stat(self.point)
        name = f"/run/tracefs/{os.major(status.st_dev)}:" \
               f"{os.minor(status.st_dev)}.sock"
        said = subprocess.run(["ss", "-xlpH", "src", name],
                              capture_output=True, text=True, check=True)
        return int(said.stdout.split("pid=", 1)[1].split(",")[0])


def make_work(folder, count):
    for i in range(count):
        path = os.path.join(folder, f"file-{i}")
        with open(path, "wb") as out:
            out.write(b"x" * 100)
        os.rename(path, path + "-renamed")


# --- When a trace is complete

def unmount_waits(suite):
    """`tracefs-ctl MNT unmount` returns when the slowest chain is through: the
    next command finds FINAL, each time."""
    place = Place(suite, "unmount")
    key = place.key()
    for number in range(6):
        trace = place.trace(f"trace-{number}")
        with Background(suite, place,
                        ("", "STR_ALL",
                         SLOW_CHAIN.format(key=key) + f'file = "{trace}"')):
            make_work(place.point, 1500)
            run = ctl(suite, place.point, "unmount")
            expect_equal((run.returncode, run.stdout, run.stderr), (0, "", ""),
                         "tracefs-ctl unmount")
            size = os.path.getsize(trace)
            expect(place.point not in mount_points(), "it is still mounted")
        dump = tool(suite, "tracefs-dump", "--stats", "--key", key, trace)
        expect_equal(dump.returncode, 0, dump.stderr)
        expect_equal(os.path.getsize(trace), size, "the size of the trace")


def a_living_writer_is_told(suite):
    """A trace whose writer lives is told from one that was cut, by dump and by
    verify; --wait waits for its end, and only as long as it takes."""
    place = Place(suite, "living")
    trace = place.trace()
    with Background(suite, place, trace) as mount:
        make_work(place.point, 10)
        ctl(suite, place.point, "flush")
        run = tool(suite, "tracefs-dump", trace)
        expect_equal(run.returncode, 1, run.stderr)
        expect("still being written" in run.stderr and "--wait" in run.stderr,
               run.stderr)
        run = tool(suite, "tracefs-verify", "--accept-unsealed", trace)
        expect_equal(run.returncode, 1, run.stdout)
        expect("still being written (--wait" in run.stdout, run.stdout)
        waiting = [suite.background(subprocess.Popen(
            [os.path.join(suite.bin, name), *options, "--wait", trace],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            for name, options in (("tracefs-dump", ()),
                                  ("tracefs-verify", ("--accept-unsealed",)))]
        for one in waiting:
            expect("waiting" in one.stderr.readline(), "says that it waits")
            expect(one.poll() is None, "did not wait")
        subprocess.run(["umount", mount.point], check=True)
        for one in waiting:
            said, errors = one.communicate(timeout=60)
            expect_equal(one.returncode, 0, said + errors)
    # Nobody writes it any more: nothing is waited for.
    expect_equal(tool(suite, "tracefs-dump", "--wait", trace).returncode, 0,
                 "a complete trace")
    with open(trace, "rb") as whole, open(place.trace("cut"), "wb") as cut:
        cut.write(whole.read()[:-200])
    run = tool(suite, "tracefs-dump", "--wait", place.trace("cut"))
    expect_equal(run.returncode, 1, run.stderr)
    expect("still being written: its writer" not in run.stderr, run.stderr)


def a_killed_writer_is_not_waited_for(suite):
    """The lock ends with the process, and --follow with it."""
    place = Place(suite, "killed")
    trace = place.trace()
    with Background(suite, place, trace) as mount:
        make_work(place.point, 10)
        ctl(suite, place.point, "flush")
        follow = suite.background(subprocess.Popen(
            [os.path.join(suite.bin, "tracefs-dump"), "--follow", trace],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        expect(follow.stdout.readline() != "", "follows")
        os.kill(mount.pid(), signal.SIGKILL)
        run = tool(suite, "tracefs-dump", "--wait", trace)
        expect_equal(run.returncode, 1, run.stderr)
        expect("was cut there" in run.stderr, run.stderr)
        said, errors = follow.communicate(timeout=60)
        expect_equal(follow.returncode, 1, errors)
        wait_until(lambda: place.point not in mount_points(), "the mount to go")


def umount_then_wait(suite):
    """The plain umount(8) with --wait behind it, as a pipeline has it; also for
    the folder of a rotated trace, which goes on in new files meanwhile."""
    place = Place(suite, "pipeline")
    key = place.key()
    for number in range(4):
        trace = place.trace(f"{number}/trace")
        os.mkdir(os.path.dirname(trace))
        with Background(suite, place,
                        ("", "STR_ALL", SLOW_CHAIN.format(key=key)
                         + f'file = "{trace}" rotate_size = 64K')) as mount:
            make_work(place.point, 1500)
            subprocess.run(["umount", mount.point], check=True)
            run = tool(suite, "tracefs-dump", "--wait", "--stats", "--key", key,
                       os.path.dirname(trace))
            expect_equal(run.returncode, 0, run.stderr)
            expect(len(os.listdir(os.path.dirname(trace))) > 1, "rotated")


def unmount_of_what_is_in_use(suite):
    """EBUSY is said with what to do, and nothing has changed; a second mount of
    the same file system is named."""
    place = Place(suite, "busy")
    with Background(suite, place, place.trace()) as mount:
        make_work(place.point, 1)
        inside = os.path.join(place.point, "folder")
        os.mkdir(inside)
        run = ctl(suite, inside, "unmount")
        expect_equal(run.returncode, 2, run.stderr)
        expect(f"name '{place.point}'" in run.stderr, run.stderr)
        with open(os.path.join(place.point, "file-0-renamed"), "rb"):
            run = ctl(suite, place.point, "unmount")
            expect_equal(run.returncode, 3, run.stderr)
            expect("fuser" in run.stderr, run.stderr)
        expect(mount.point in mount_points(), "it is gone")
        copy = suite.folder("busy", "copy")
        subprocess.run(["mount", "--bind", place.point, copy], check=True)
        try:
            run = ctl(suite, place.point, "unmount")
            expect_equal(run.returncode, 3, run.stderr)
            expect(f"'{copy}'" in run.stderr, run.stderr)
            make_work(copy, 1)
        finally:
            run = ctl(suite, copy, "unmount")
            subprocess.run(["umount", "-l", copy], check=False,
                           capture_output=True)
    run = tool(suite, "tracefs-dump", "--wait", place.trace())
    expect_equal(run.returncode, 0, run.stderr)


# In a mount namespace of its own, where /dev/fuse is for all.
AS_ITS_USER = """
mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse || exit 90
mkdir source mnt && chown 65534:65534 . source mnt
as_user() {
  setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
as_user "$1/tracefs-mount" source mnt --config "$2" 2>log || { cat log; exit 91; }
as_user touch mnt/file || exit 92
as_user "$1/tracefs-ctl" mnt unmount || exit 93
! grep -q "$PWD/mnt " /proc/self/mountinfo || exit 94
"$1/tracefs-dump" trace
"""


def unmount_by_its_user(suite):
    """An ordinary user's mount, which only fusermount3 can take away."""
    if shutil.which("fusermount3") is None:
        return Skip("fusermount3 is not installed")
    folder = suite.folder("user")
    config = suite.config(os.path.join(folder, "trace"))
    os.chmod(config, 0o644)
    run = subprocess.run(["unshare", "--mount", "sh", "-c", AS_ITS_USER, "sh",
                          suite.bin, config], cwd=folder, capture_output=True,
                         text=True, check=False, timeout=120)
    expect_equal(run.returncode, 0, run.stdout + run.stderr)
    expect("create   /file" in run.stdout, run.stdout)
    return None


def unmount_tells_what_was_lost(suite):
    """Losses are a failure of the command that ends the mount."""
    place = Place(suite, "lossy")
    trace = place.trace()
    with Background(suite, place,
                    ("", "STR_ALL", f'throttle ops = 1/s when_full = drop; file = "{trace}"')):
        for _ in range(5):
            make_work(place.point, 50)
            ctl(suite, place.point, "flush")
        run = ctl(suite, place.point, "unmount")
        expect_equal(run.returncode, 1, run.stderr)
        expect("tracer 1: " in run.stderr and "throttled" in run.stderr,
               run.stderr)


def main():
    suite = Suite("lifecycle", __doc__)
    for case in (unmount_waits, a_living_writer_is_told,
                 a_killed_writer_is_not_waited_for, umount_then_wait,
                 unmount_of_what_is_in_use, unmount_by_its_user,
                 unmount_tells_what_was_lost):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
