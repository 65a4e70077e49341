#!/usr/bin/env python3
"""How a mount begins and ends, as its owner sees it: what `tracefs-mount` in
the background answers for, when a trace is complete, and who is told of what
was lost."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from processes import daemon_of  # noqa: E402
from tracefs_harness import (Failure, Skip, Suite, expect, expect_equal,  # noqa: E402
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


def ctl(suite, *arguments, **options):
    return suite.tool("tracefs-ctl", *arguments, **options)


class Background:
    """A mount in the background, as users have it: nothing is left of its
    command once it is there."""

    def __init__(self, suite, place, *tracers, options=(), point=None,
                 source=None, **run):
        self.suite = suite
        self.point = point or place.point
        config = suite.config(*tracers)
        suite._mount_count += 1
        self.run = suite.tool("tracefs-mount", source or place.source,
                              self.point, "--config", config, "--transport",
                              suite.options.transport, *options, **run)

    def __enter__(self):
        expect_equal(self.run.returncode, 0, self.run.stderr)
        return self

    def __exit__(self, *_):
        if self.point in mount_points():
            subprocess.run(["umount", "-l", self.point], check=False)

    def pid(self):
        """That of the daemon: it owns the control socket."""
        return daemon_of(self.point)


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
    for number in range(4):
        trace = place.trace(f"trace-{number}")
        with Background(suite, place,
                        ("", "STR_ALL",
                         SLOW_CHAIN.format(key=key) + f'file = "{trace}"')):
            make_work(place.point, 800)
            run = ctl(suite, place.point, "unmount")
            expect_equal((run.returncode, run.stdout, run.stderr), (0, "", ""),
                         "tracefs-ctl unmount")
            size = os.path.getsize(trace)
            expect(place.point not in mount_points(), "it is still mounted")
        dump = suite.tool("tracefs-dump", "--stats", "--key", key, trace)
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
        run = suite.tool("tracefs-dump", trace)
        expect_equal(run.returncode, 1, run.stderr)
        expect("still being written" in run.stderr and "--wait" in run.stderr,
               run.stderr)
        run = suite.tool("tracefs-verify", "--accept-unsealed", trace)
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
    expect_equal(suite.tool("tracefs-dump", "--wait", trace).returncode, 0,
                 "a complete trace")
    with open(trace, "rb") as whole, open(place.trace("cut"), "wb") as cut:
        cut.write(whole.read()[:-200])
    run = suite.tool("tracefs-dump", "--wait", place.trace("cut"))
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
        run = suite.tool("tracefs-dump", "--wait", trace)
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
    for number in range(2):
        trace = place.trace(f"{number}/trace")
        os.mkdir(os.path.dirname(trace))
        with Background(suite, place,
                        ("", "STR_ALL", SLOW_CHAIN.format(key=key)
                         + f'file = "{trace}" rotate_size = 64K')) as mount:
            make_work(place.point, 1600)
            subprocess.run(["umount", mount.point], check=True)
            run = suite.tool("tracefs-dump", "--wait", "--stats", "--key", key,
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
    run = suite.tool("tracefs-dump", "--wait", place.trace())
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


# In a mount namespace of its own: when the mount of that number is gone, takes
# the number for one of its own, and stays in it.
TAKES_ITS_NUMBER = """
umount -l "$1"; echo ready
n=0
until grep -q " 0:$2 " /proc/self/mountinfo; do
  n=$((n + 1)); [ $n -lt 400 ]; mount -t tmpfs none "$3"; sleep 0.01
done
cd "$3"; echo taken; exec sleep 60
"""


def an_end_accuses_nobody_else(suite):
    """A receiver that says nothing is waited for, and told as what it is; whoever
    got the number of the mount that is gone does not use it."""
    place = Place(suite, "accused")
    at = os.path.join(place.out, "socket")
    receiver = socket.socket(socket.AF_UNIX)
    receiver.bind(at)
    receiver.listen()
    with receiver, Background(suite, place, ("", "STR_ALL", f'unix = "{at}"')):
        make_work(place.point, 5)
        minor = os.minor(os.stat(place.point).st_dev)
        other = subprocess.Popen(
            ["unshare", "-m", "sh", "-ec", TAKES_ITS_NUMBER, "sh", place.point,
             str(minor), place.source], stdout=subprocess.PIPE, text=True)
        suite.background(other)
        expect_equal(other.stdout.readline(), "ready\n", "a namespace")
        run = ctl(suite, place.point, "unmount")
        other.kill()
        expect_equal(other.stdout.read(), "taken\n", "whose number it is")
        expect_equal(run.returncode, 1, run.stderr)
        expect("waiting for the outputs" in run.stderr and
               "still uses it" not in run.stderr, run.stderr)
        lost = run.stderr + run.stdout
        expect("could not be delivered: " in lost and "ok" not in lost.split(
            "could not be delivered: ")[1], lost)


# --- Whom a mount in the background tells

class Receiver:
    """A log's socket, as journald and syslogd have it: datagrams, kept."""

    def __init__(self, path):
        self.path = path
        self.said = []
        self.socket = None
        self.open()

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()
        os.unlink(self.path)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.said.append(self.socket.recv(65536).decode())
        return self.said

    def wait_for(self, *words):
        """The first datagram with all the words."""
        def found():
            return [d for d in self.read() if all(w in d for w in words)]
        try:
            wait_until(found, f"{words} in the log")
        except Failure as failure:
            raise Failure(f"{failure}; it has {self.said}") from None
        return found()[0]


def losses_reach_the_log(suite, kind):
    """A mount in the background says when it lost something, once and not for
    each block, when an output fails and with what it has ended."""
    place = Place(suite, "log-" + kind)
    log = Receiver(place.trace("socket"))
    with suite.tmpfs("log-" + kind, "disk", size="256k") as disk:
        full = os.path.join(disk, "trace")
        with Background(suite, place, full,
                        ("", "STR_ALL", "throttle ops = 1/s when_full = drop; "
                         f'file = "{place.trace()}"'),
                        options=["--log", f"{kind}:{log.path}"]):
            log.wait_for("serves " + place.source)
            for i in range(20):
                make_work(place.point, 100)
                ctl(suite, place.point, "flush")
            lost = log.wait_for("tracer 2", "are not in its trace", "throttled")
            log.wait_for("No space left", full)
            if kind == "journal":
                fields = dict(line.split("=", 1) for line in lost.splitlines())
                expect_equal((fields["PRIORITY"], fields["TRACEFS_NOTICE"],
                              fields["TRACEFS_MOUNT"],
                              fields["SYSLOG_IDENTIFIER"]),
                             ("4", "lost", place.point, "tracefs-mount"), lost)
                expect_equal(len(fields["MESSAGE_ID"]), 32, lost)
            else:
                expect(lost.startswith("<28>") and "tracefs-mount[" in lost
                       and f": {place.point}: " in lost, lost)
            expect(len(log.said) < 20, f"too much is said: {log.said}")
            expect_equal(ctl(suite, place.point, "unmount").returncode, 1,
                         "unmount")
        log.wait_for("has ended (unmount)", "tracer 1: ")
        log.wait_for("tracer 2 has ended with")
    log.close()


def a_restarted_log_is_found_again(suite):
    """The sandbox reaches no socket; the watchdog does."""
    place = Place(suite, "restart")
    log = Receiver(place.trace("socket"))
    with Background(suite, place, place.trace(),
                    options=["--log", f"syslog:{log.path}"]):
        log.wait_for("serves")
        log.close()
        log.open()
        ctl(suite, place.point, "unmount")
        log.wait_for("has ended")
    log.close()


def a_dead_daemon_reaches_the_log(suite):
    place = Place(suite, "dead")
    log = Receiver(place.trace("socket"))
    with Background(suite, place, place.trace(),
                    options=["--log", f"journal:{log.path}"]) as mount:
        pid = mount.pid()
        os.kill(pid, signal.SIGKILL)
        said = log.wait_for("TRACEFS_NOTICE=died", place.point)
        expect(f"process {pid}" in said and "PRIORITY=3" in said, said)
        wait_until(lambda: place.point not in mount_points(), "the mount to go")
    log.close()


def a_log_that_is_not_there(suite):
    """Asked for by name it is an error; nobody asked: the mount works."""
    place = Place(suite, "nolog")
    for kind in ("syslog", "journal"):
        run = Background(suite, place, place.trace(),
                         options=["--log", f"{kind}:{place.out}/none"]).run
        expect_equal(run.returncode, 3, run.stderr)
        expect("none" in run.stderr, run.stderr)
        expect(not os.path.exists(place.trace()), "an output was made")
    for where in ("nonsense", "stderr:/x", "syslog:relative"):
        run = Background(suite, place, place.trace(),
                         options=["--log", where]).run
        expect_equal(run.returncode, 2, run.stderr)
    with Background(suite, place, place.trace(), options=["--log", "none"]):
        make_work(place.point, 1)
        ctl(suite, place.point, "unmount")


# A /dev of its own, with a syslogd's socket in it.
WITH_DEV_LOG = """
mkdir dev && mount -t tmpfs none dev && touch dev/fuse dev/null dev/urandom
for each in fuse null urandom; do mount --bind /dev/$each dev/$each; done
mount --rbind dev /dev || exit 90
python3 -c 'import socket, sys
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
open("ready", "w")
with open("said", "w") as out:
    while True:
        text = log.recv(65536).decode()
        out.write(text + chr(10))
        out.flush()
        if "has ended" in text: sys.exit(0)' &
while [ ! -e ready ]; do sleep 0.02; done
"$1/tracefs-mount" source mnt --config "$2" || exit 91
"$1/tracefs-ctl" mnt add "$4" || exit 93
touch mnt/file
"$1/tracefs-ctl" mnt unmount || exit 92
wait
"$1/tracefs-verify" --key "$3" --anchors said trace &&
  "$1/tracefs-verify" --key "$3" --anchors said later
"""


def anchors_reach_syslog(suite):
    """Under the sandbox, too, and of a tracer that comes later: the anchors of
    syslog fix the trace; and by default a mount in the background logs there."""
    place = Place(suite, "anchor")
    folder = suite.folder("anchor")
    suite.folder("anchor", "mnt")
    key = place.key()
    checksum = f'checksum key = "file:{key}" anchor = syslog;'
    config = suite.config(("", "STR_ALL",
                           f'{checksum} file = "{folder}/trace"'))
    later = os.path.join(folder, "later.conf")
    with open(later, "w", encoding="utf-8") as out:
        out.write('{ { } { } { %s file = "%s/later" } }' % (checksum, folder))
    run = subprocess.run(["unshare", "--mount", "sh", "-c", WITH_DEV_LOG, "sh",
                          suite.bin, config, key, later], cwd=folder, text=True,
                         capture_output=True, check=False, timeout=120)
    expect_equal(run.returncode, 0, run.stdout + run.stderr)
    with open(os.path.join(folder, "said"), encoding="utf-8") as said:
        text = said.read()
    expect("tracefs-anchor serial=" in text and "last=1" in text, text)
    expect("serves" in text, text)


def no_syslog_for_anchors(suite):
    """Where nobody takes them, the mount says so and is not made."""
    if os.path.exists("/dev/log"):
        return Skip("this machine has a syslog")
    place = Place(suite, "noanchor")
    run = Background(suite, place, (
        "", "STR_ALL", f'checksum key = "file:{place.key()}" anchor = syslog; '
        f'file = "{place.trace()}"')).run
    expect_equal(run.returncode, 3, run.stderr)
    expect("anchor = syslog" in run.stderr and "/dev/log" in run.stderr,
           run.stderr)
    return None


# --- What a mount is

def options_the_kernel_refuses(suite):
    """What fails after the command could have said "mounted" fails the
    command; max_read works."""
    place = Place(suite, "options")
    with Background(suite, place, place.trace(),
                    options=["-o", "max_read=65536"]):
        with open(os.path.join(place.point, "file"), "wb") as out:
            out.write(os.urandom(1 << 20))
        with open(os.path.join(place.point, "file"), "rb") as back, \
                open(os.path.join(place.source, "file"), "rb") as below:
            expect(back.read() == below.read(), "the file is another one")
        ctl(suite, place.point, "unmount")
    run = Background(suite, place, place.trace("second"),
                     options=["-o", "max_read=x"]).run
    expect_equal(run.returncode, 2, run.stderr)


def flags_of(point):
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if fields[4] == point and " fuse.tracefs " in line:
                return set(fields[5].split(",")), fields
    raise Failure(f"{point} is not mounted")


def flags_of_the_source(suite):
    """Root's mount has the source's suid, dev, exec and atime, unless -o says
    otherwise."""
    place = Place(suite, "flags")
    words = {"nosuid", "nodev", "noexec", "noatime", "nodiratime"}
    cases = [("suid,dev,exec,relatime", (), set()),
             ("nosuid,nodev", (), {"nosuid", "nodev"}),
             ("noexec,noatime", (), {"noexec", "noatime"}),
             ("nodiratime", (), {"nodiratime"}),
             ("nosuid", ("-o", "suid"), set()),
             ("suid,dev", ("-o", "nosuid,nodev,noexec"),
              {"nosuid", "nodev", "noexec"}),
             ("noatime", ("-o", "relatime"), set()),
             ("relatime", ("-o", "noatime"), {"noatime"})]
    for number, (source, options, wanted) in enumerate(cases):
        subprocess.run(["mount", "-t", "tmpfs", "-o", source, "none",
                        place.source], check=True)
        try:
            with Background(suite, place, place.trace(str(number)),
                            options=options):
                expect_equal(flags_of(place.point)[0] & words, wanted,
                             f"{source} {options}")
                ctl(suite, place.point, "unmount")
        finally:
            subprocess.run(["umount", place.source], check=True)


def times_of_the_source(suite):
    """-o noatime keeps the access times below; without it reads set them."""
    place = Place(suite, "atime")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "strictatime", "none",
                    place.source], check=True)
    try:
        for options, kept in (((), False), (("-o", "noatime"), True),
                              (("-o", "ro"), True)):
            name = f"file-{len(options)}-{kept}-{''.join(options)}"
            below = os.path.join(place.source, name)
            with open(below, "w", encoding="ascii") as out:
                out.write("text")
            os.utime(below, ns=(10**18, 10**18))
            with Background(suite, place, place.trace(name), options=options):
                with open(os.path.join(place.point, name), "rb") as back:
                    expect_equal(back.read(), b"text", "the file")
                ctl(suite, place.point, "unmount")
            expect_equal(os.stat(below).st_atime_ns == 10**18, kept,
                         f"{options}: the time was kept")
    finally:
        subprocess.run(["umount", place.source], check=True)


def remount_read_only(suite):
    """mount(8) makes the mount read-only and back, and no flag gets lost."""
    place = Place(suite, "remount")
    with Background(suite, place, place.trace(),
                    options=["-o", "nosuid,noexec"]):
        before = flags_of(place.point)[0]
        path = os.path.join(place.point, "file")
        make_work(place.point, 1)
        for option, writable in (("ro", False), ("rw", True)):
            run = subprocess.run(["mount", "-i", "-o", f"remount,{option}",
                                  place.point], capture_output=True, text=True,
                                 check=False)
            expect_equal(run.returncode, 0, run.stderr)
            try:
                with open(path, "wb"):
                    pass
                done = True
            except OSError as error:
                expect_equal(error.errno, 30, "EROFS")
                done = False
            expect_equal(done, writable, f"writes after {option}")
            expect_equal(flags_of(place.point)[0] - {"ro", "rw"},
                         before - {"ro", "rw"}, "flags")
        ctl(suite, place.point, "unmount")


def from_where_one_stands(suite):
    """`tracefs-mount . .` says that the shell stands below; the mount table has
    the whole path of the source."""
    place = Place(suite, "here")
    with Background(suite, place, place.trace(), source=".", point=".",
                    cwd=place.source) as mount:
        mount.point = place.source
        expect('cd "$PWD"' in mount.run.stderr, mount.run.stderr)
        expect_equal(flags_of(place.source)[1][-2], place.source,
                     "the source in the mount table")
        expect_equal(ctl(suite, place.source, "unmount").returncode, 0, "end")
    with Background(suite, place, place.trace("2"), source="source",
                    cwd=os.path.dirname(place.source)) as mount:
        expect("$PWD" not in mount.run.stderr, mount.run.stderr)
        expect_equal(flags_of(place.point)[1][-2], place.source,
                     "the source in the mount table")
        ctl(suite, place.point, "unmount")


def an_output_is_used_again(suite):
    """A name with %date or %serial is another one each time; one without says
    what to do, also where `keep` has left later parts only."""
    place = Place(suite, "again")
    template = place.trace("t%%-%date-%serial")
    for _ in range(2):
        with Background(suite, place, template):
            make_work(place.point, 1)
            ctl(suite, place.point, "unmount")
    names = os.listdir(place.out)
    expect_equal(len(names), 2, str(names))
    for name in names:
        _, date, serial = name.split("-")
        expect(name.startswith("t%-") and len(date) == 16 and len(serial) == 32,
               name)
        said = suite.tool("tracefs-verify", "--accept-unsealed", "--serial",
                          serial, place.trace(name))
        expect_equal(said.returncode, 0, said.stdout)
    run = Background(suite, place, place.trace(names[0].replace("%", "%%"))).run
    expect_equal(run.returncode, 3, run.stderr)
    expect("%date" in run.stderr, run.stderr)
    run = Background(suite, place, place.trace("50%.trace")).run
    expect_equal(run.returncode, 2, run.stderr)
    expect("%%" in run.stderr, run.stderr)
    with open(place.trace("kept.000007"), "wb"):
        pass
    run = Background(suite, place, (
        "", "STR_ALL",
        f'file = "{place.trace("kept")}" rotate_size = 64K keep = 2')).run
    expect_equal(run.returncode, 3, run.stderr)
    expect("kept.000007" in run.stderr and "%date" in run.stderr, run.stderr)
    with Background(suite, place, place.trace("plain")):
        run = ctl(suite, place.point, "add",
                  suite.config(place.trace("added-%serial")))
        expect_equal(run.returncode, 2, run.stderr)
        expect("write its name out" in run.stderr, run.stderr)
        ctl(suite, place.point, "unmount")


def the_next_mount_tells_of_the_last(suite):
    """One that was killed, or that lost something, is told of once, by the
    next mount there and by its `list`."""
    place = Place(suite, "before")
    lossy = ("", "STR_ALL", "throttle ops = 1/s when_full = drop; "
             f'file = "{place.trace("lossy-%date-%serial")}"')
    whole = place.trace("whole-%serial")
    for tracer, kill, words in ((whole, True, "ended without a word"),
                                (lossy, False, "throttled"),
                                (whole, False, "")):
        with Background(suite, place, tracer) as mount:
            for _ in range(5):
                make_work(place.point, 20)
                ctl(suite, place.point, "flush")
            if kill:
                os.kill(mount.pid(), signal.SIGKILL)
                wait_until(lambda: place.point not in mount_points(), "its end")
            else:
                ctl(suite, place.point, "unmount")
        with Background(suite, place, whole) as mount:
            said = "was here before: " in mount.run.stderr
            expect_equal(said, words != "", mount.run.stderr)
            expect(words in mount.run.stderr, mount.run.stderr)
            listed = ctl(suite, place.point, "list")
            expect(words in listed.stdout, listed.stdout)
            ctl(suite, place.point, "unmount")


def main():
    suite = Suite("lifecycle", __doc__)
    for case in (unmount_waits, a_living_writer_is_told,
                 a_killed_writer_is_not_waited_for, umount_then_wait,
                 unmount_of_what_is_in_use, unmount_by_its_user,
                 unmount_tells_what_was_lost, an_end_accuses_nobody_else):
        suite.run(case.__name__.replace("_", " "), case, suite)
    for kind in ("journal", "syslog"):
        suite.run(f"losses reach the {kind}", losses_reach_the_log, suite, kind)
    for case in (a_restarted_log_is_found_again, a_dead_daemon_reaches_the_log,
                 a_log_that_is_not_there, anchors_reach_syslog,
                 no_syslog_for_anchors, options_the_kernel_refuses,
                 flags_of_the_source, times_of_the_source, remount_read_only,
                 from_where_one_stands, an_output_is_used_again,
                 the_next_mount_tells_of_the_last):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
