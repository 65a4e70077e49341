"""What the mount suites share: mounting, running commands, reading traces.

A suite is a Python program that ctest runs with `--bin DIR` (the commands of
one build tree, so that sanitizer builds are tested by the same suites). It
builds a Suite, runs its cases and ends with suite.finish(): exit status 0 all
passed, 1 something failed (a mount or a daemon left behind counts), 77 the
machine cannot mount.

    suite = Suite("crash")
    mount = suite.mount(source, point, trace)
    ...
    mount.unmount()
    events = suite.read(trace)
"""

import argparse
import atexit
import base64
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SKIPPED = 77
# What a sanitizer or a busy machine may take; nothing is timed here.
PATIENCE_S = 120
# A call that takes longer hangs, however slow and busy the machine is.
HANG_S = 30
VISIBILITIES = ("exact", "auto", "fast")
TRANSPORTS = ("dev", "uring")
# sched.h and sys/mount.h.
CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8


class Failure(Exception):
    """An expectation that does not hold; the text says which."""


class Skip(Exception):
    """Returned or raised by a case that cannot run here."""

    def __init__(self, why):
        super().__init__(why)
        self.why = why


def expect(condition, text):
    if not condition:
        raise Failure(text)


def expect_equal(got, want, text):
    if got != want:
        raise Failure(f"{text}:\n  got  {got!r}\n  want {want!r}")


def wait_until(condition, what, seconds=PATIENCE_S):
    """Polls condition() until it is true; a Failure after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)


def mount_points(kind=None):
    """Mount points of this namespace, innermost last; of that type of file
    system."""
    with open("/proc/self/mountinfo", "rb") as lines:
        fields = [line.split(b" ") for line in lines]
    # Blanks and backslashes are written in octal.
    return [os.fsdecode(re.sub(rb"\\([0-7]{3})",
                               lambda m: bytes([int(m[1], 8)]), f[4]))
            for f in fields
            if kind is None or f[f.index(b"-") + 1] == kind.encode()]


class Dump:
    """What tracefs-dump made of a trace."""

    def __init__(self, status, errors, events):
        self.status = status
        self.errors = errors
        self.events = events


class Mount:
    """A running tracefs-mount, a child of ours."""

    def __init__(self, process, point, log, mounted_before):
        self.process = process
        self.point = point
        self.log = log
        self.helpers = []  # pids of commands that unmounted it
        self.trace = None  # see Suite.mounted()
        self.events = []
        self.deaths = contextlib.ExitStack()  # see Suite.mount()
        self._mounted_before = mounted_before

    @property
    def pid(self):
        return self.process.pid

    def is_mounted(self):
        return mount_points().count(self.point) > self._mounted_before

    def messages(self):
        """What the daemon wrote to its standard error."""
        with open(self.log, encoding="utf-8", errors="replace") as text:
            return text.read()

    def unmount(self):
        """umount(8) and the end of the daemon, which must be a good one."""
        # Somebody who has just ended may hold a file for a moment longer.
        end = time.monotonic() + PATIENCE_S
        while True:
            umount = subprocess.Popen(["umount", self.point],
                                      stderr=subprocess.PIPE, text=True)
            self.helpers.append(umount.pid)
            _, errors = umount.communicate()
            if umount.returncode == 0:
                break
            expect("busy" in errors and time.monotonic() < end,
                   f"umount {self.point}: {errors}")
            time.sleep(0.05)
        self.wait(0)

    def wait(self, status=None):
        """Waits for the daemon's end; fails unless it ends with `status`."""
        try:
            got = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"the daemon of {self.point} does not end") from None
        self.deaths.close()
        if status is not None:
            expect(got == status, f"the daemon ended with {got}, not {status}:"
                   f"\n{self.messages()}")
            expect(not self.is_mounted(), f"{self.point} is still mounted")
            expect("refused the system call" not in self.messages(),
                   f"the sandbox is too tight:\n{self.messages()}")
        return got

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """SIGKILL, as the kernel's memory killer would."""
        self.deaths.close()
        self.process.kill()
        self.process.wait()


class Suite:
    """Cases, the scratch folder they use, and what must not survive them."""

    def __init__(self, name, description, arguments=None):
        """`arguments(parser)` adds the suite's own options."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--bin", required=True, metavar="DIR",
                            help="folder of tracefs-mount and tracefs-dump")
        parser.add_argument("--transport", default="dev",
                            help="passed to tracefs-mount (default: dev)")
        parser.add_argument("--only", metavar="TEXT", action="append",
                            help="run the cases whose name contains TEXT; may "
                            "be given again")
        parser.add_argument("--killed", type=float, metavar="TIMES",
                            help="daemons may die (--survive yes), and do so "
                            "many times a second")
        parser.add_argument("--keep", action="store_true",
                            help="keep the scratch folder")
        if arguments:
            arguments(parser)
        self.options = parser.parse_args()
        self.name = name
        self.bin = os.path.abspath(self.options.bin)
        self.failed = []
        self.passed = 0
        self.skipped = []
        self._kills = []  # of each mount, with --killed
        self._mounts = []
        self._mount_count = 0
        self._children = []
        self._require_machine()
        self._stand_apart()
        self._mounts_before = mount_points()
        self.scratch = os.path.realpath(
            tempfile.mkdtemp(prefix=f"tracefs-{name}-"))
        # Ordinary users of the tests walk through it.
        os.chmod(self.scratch, 0o755)
        # What has no other place is kept here, not where root keeps it.
        os.environ.setdefault("STATE_DIRECTORY",
                              os.path.join(self.scratch, "state"))
        # Nothing stays mounted when somebody ends the suite, either.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self._owner = os.getpid()
        atexit.register(self._end)

    def _end(self):
        if os.getpid() == self._owner:
            self.stop_mounts()

    def _require_machine(self):
        if not os.path.exists("/dev/fuse"):
            self.skip_all("there is no /dev/fuse")
        if os.geteuid() != 0:
            self.skip_all("only root may mount for other users")
        for tool in ("tracefs-mount", "tracefs-dump"):
            if not os.access(os.path.join(self.bin, tool), os.X_OK):
                self.skip_all(f"{tool} is not in {self.bin}")

    def _stand_apart(self):
        """Goes into a mount namespace of its own, without the tracefs mounts of
        others: whatever copies the namespace would keep theirs from ending,
        and theirs what is mounted here."""
        libc = ctypes.CDLL(None, use_errno=True)
        private = ctypes.c_ulong(MS_REC | MS_PRIVATE)
        if (libc.unshare(CLONE_NEWNS) != 0
                or libc.mount(b"none", b"/", None, private, None) != 0):
            self.skip_all("no mount namespace: "
                          + os.strerror(ctypes.get_errno()))
        for point in reversed(mount_points("fuse.tracefs")):
            libc.umount2(os.fsencode(point), MNT_DETACH | UMOUNT_NOFOLLOW)

    def no_uring(self):
        """Why mounts over io_uring cannot be tested; None if they can."""
        try:
            with open("/sys/module/fuse/parameters/enable_uring",
                      encoding="ascii") as value:
                if value.read().strip() != "Y":
                    return "the kernel's FUSE over io_uring is switched off"
        except OSError:
            return "the kernel offers no FUSE over io_uring"
        return None

    def skip_all(self, why):
        print(f"skipped: {self.name}: {why}")
        sys.exit(SKIPPED)

    # --- files and folders of a case

    def folder(self, *parts, mode=0o755):
        path = os.path.join(self.scratch, *parts)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return path

    def path(self, *parts):
        return os.path.join(self.scratch, *parts)

    def remove(self, *parts):
        shutil.rmtree(self.path(*parts), ignore_errors=True)

    @contextlib.contextmanager
    def tmpfs(self, *parts, size):
        """A small file system of its own, to be filled."""
        point = self.folder(*parts)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}",
                        "tracefs-test", point], check=True)
        try:
            yield point
        finally:
            self.stop_mounts()
            subprocess.run(["umount", "-l", point], check=True)

    def no_file_system(self, kind):
        """Why no file system of that kind can be made; None if one can."""
        with open("/proc/filesystems", encoding="ascii") as lines:
            if kind not in {line.split()[-1] for line in lines}:
                return f"the kernel has no {kind}"
        if kind in ("tmpfs", "overlay"):
            return None
        tool = f"mkfs.{kind}"
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
        if not os.path.exists("/dev/loop-control"):
            return "there are no loop devices"
        return None

    @contextlib.contextmanager
    def loop(self, name, kind, size, make=(), mount_options="rw"):
        """A new file system in a loop device, mounted; see no_file_system()."""
        point = self.folder(name)
        image = self.path(name + ".image")
        with open(image, "wb") as out:
            out.truncate(size)
        quiet = {"ext4": ["-q", "-F"], "xfs": ["-q"], "btrfs": ["-q"]}[kind]
        for last in (False, False, True):
            # mkfs.btrfs looks at all mounts, and fails where one ends meanwhile.
            made = subprocess.run([f"mkfs.{kind}", *quiet, *make, image],
                                  capture_output=True, text=True, check=False)
            if made.returncode == 0:
                break
            expect(not last, made.stderr)
        subprocess.run(["mount", "-o", f"loop,{mount_options}", image, point],
                       check=True, capture_output=True)
        try:
            yield point
        finally:
            self.stop_mounts()
            subprocess.run(["umount", "-l", point], check=True)
            os.remove(image)

    @contextlib.contextmanager
    def file_system(self, name, kind):
        """A new, empty file system of some hundred MiB, mounted."""
        if kind == "tmpfs":
            with self.tmpfs(name, size="64m") as point:
                os.chmod(point, 0o755)
                yield point
        elif kind == "overlay":
            with self.tmpfs(name + "-layers", size="64m") as layers:
                for layer in ("lower", "upper", "work"):
                    os.mkdir(os.path.join(layers, layer))
                point = self.folder(name)
                subprocess.run(
                    ["mount", "-t", "overlay", "-o", ",".join(
                        f"{layer}dir={layers}/{layer}"
                        for layer in ("lower", "upper", "work")),
                     "tracefs-test", point], check=True)
                try:
                    yield point
                finally:
                    self.stop_mounts()
                    subprocess.run(["umount", "-l", point], check=True)
        else:
            with self.loop(name, kind, 400 << 20) as point:
                yield point

    # --- mounts

    def config(self, *tracers):
        """A config file; a tracer is a trace path or (filter, stream flags,
        output section)."""
        path = self.path(f"config-{self._mount_count}")
        with open(path, "w", encoding="utf-8") as out:
            for tracer in tracers:
                if isinstance(tracer, str):
                    tracer = ("", "STR_ALL", f'file = "{tracer}"')
                out.write("{ { %s } { stream = { %s } } { %s } }\n" % tracer)
        return path

    def mount(self, source, point, *tracers, visibility="exact",
              transport=None, options=(), wrapper=()):
        """Mounts and waits until it is there. Returns a Mount. `options`: more
        of tracefs-mount's; `wrapper`: a command that runs tracefs-mount. Skips
        the case if it is to be over io_uring, and that cannot be had."""
        transport = transport or self.options.transport
        if transport == "uring" and self.no_uring():
            raise Skip(self.no_uring())
        if self.options.killed:
            if transport == "uring":
                raise Skip("daemons that may die do not serve over io_uring")
            options = (*options, "--survive", "yes")
        config = self.config(*tracers)
        mount = self.mount_command(
            [*wrapper, os.path.join(self.bin, "tracefs-mount"), source,
             point, "--config", config, "--foreground",
             "--visibility", visibility,
             "--transport", transport, *options],
            point)
        if self.options.killed:
            self._let_die(mount)
        return mount

    def _let_die(self, mount):
        """Its daemons, until it ends."""
        from deaths import daemons_dying  # which needs this module
        self._kills.append(mount.deaths.enter_context(
            daemons_dying(mount, self.options.killed)))

    @contextlib.contextmanager
    def mounted(self, filter_text="", visibility="auto", transport=None,
                source=None, ended=False, **more):
        """A mount of a new folder, or of `source`. It is unmounted at the end
        of a case that goes well (`ended`: the case has done so), and its trace
        is read. Yields (source, point, mount); mount.trace is the path of the
        trace, mount.events what was in it, once that is read."""
        base = f"mounted-{self._mount_count}"
        source = source or self.folder(base, "source", mode=0o777)
        point = self.folder(base, "mnt")
        trace = self.path(base, "trace")
        mount = self.mount(
            source, point, (filter_text, "STR_ALL", f'file = "{trace}"'),
            visibility=visibility, transport=transport, **more)
        mount.trace = trace
        yield source, point, mount
        if not ended:
            mount.unmount()
        mount.events += self.read(trace)
        if not self.options.keep:
            self.remove(base)

    def mount_command(self, command, point, cwd=None):
        """The same with a whole command line, which says --foreground."""
        self._mount_count += 1
        log = self.path(f"daemon-{self._mount_count}.log")
        before = mount_points().count(point)
        with open(log, "wb") as out:
            process = subprocess.Popen(command, cwd=cwd,
                                       stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out)
        mount = Mount(process, point, log, before)
        self._mounts.append(mount)

        def ready():
            expect(process.poll() is None,
                   f"tracefs-mount ended with {process.returncode}:\n"
                   + mount.messages())
            return "mounted" in mount.messages()

        wait_until(ready, "the mount")
        expect(mount.is_mounted(), f"{point} is not mounted")
        return mount

    def background(self, process):
        """Has `process` (a Popen) killed if the case leaves it behind."""
        self._children.append(process)
        return process

    def stop_mounts(self):
        """Ends what a failed case left; True if there was anything."""
        found = False
        for mount in reversed(self._mounts):
            if mount.process.poll() is None:
                found = True
                # Before umount, which would wait for a daemon that hangs.
                mount.kill()
            if mount.is_mounted():
                found = True
                subprocess.run(["umount", "-l", mount.point], check=False,
                               capture_output=True)
        self._mounts = []
        # After the daemons: whoever waits for one of them cannot be killed.
        for child in self._children:
            if child.poll() is None:
                found = True
                child.kill()
                child.wait()
        self._children = []
        return found

    # --- commands

    def tool(self, name, *arguments, **options):
        """Runs one of the commands, for its status, stdout and stderr."""
        return subprocess.run([os.path.join(self.bin, name), *arguments],
                              capture_output=True, text=True, check=False,
                              timeout=options.pop("timeout", PATIENCE_S),
                              **options)

    def command(self, name, *arguments, status=0):
        """What one of the commands says; fails unless it ends with `status`
        (None: any)."""
        done = self.tool(name, *arguments)
        expect(status is None or done.returncode == status,
               f"{name} {' '.join(arguments)} ended with {done.returncode}, "
               f"not {status}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    # --- traces

    def read(self, *traces, status=0, only=None):
        """The events of complete traces, in the order of their times."""
        dump = self.dump(*traces, only=only)
        expect(dump.status == status,
               f"tracefs-dump ended with {dump.status}:\n{dump.errors}")
        return dump.events

    def dump(self, *traces, only=None):
        """Events of traces in any state. `only`: a filter expression."""
        command = [os.path.join(self.bin, "tracefs-dump"), "--format", "jsonl"]
        if only:
            command += ["--filter", only]
        with tempfile.TemporaryFile(dir=self.scratch) as errors:
            with subprocess.Popen(command + list(traces),
                                  stdout=subprocess.PIPE,
                                  stderr=errors) as process:
                events = [decode_event(line) for line in process.stdout]
                status = process.wait()
            errors.seek(0)
            text = errors.read().decode("utf-8", "replace")
        return Dump(status, text, events)

    # --- cases

    def run(self, title, case, *arguments):
        """Runs one case; a failure is reported, the next case runs."""
        only = self.options.only
        if only and not any(text in title for text in only):
            return
        begin = time.monotonic()
        try:
            why = case(*arguments)
            if self.stop_mounts():
                raise Failure("it left a process or a mount behind")
        except Skip as skip:
            why = skip
            self.stop_mounts()
        except Exception as error:  # pylint: disable=broad-except
            self._describe(title, error)
            self.failed.append(title)
            self.stop_mounts()
            sys.stdout.flush()
            return
        took = time.monotonic() - begin
        if isinstance(why, Skip):
            self.skipped.append(title)
            # ctest's summary of googletest looks for this form.
            print(f"[  SKIPPED ] {title}: {why.why}")
        else:
            self.passed += 1
            print(f"ok: {title} ({took:.1f} s)" + (f": {why}" if why else ""))
        sys.stdout.flush()

    def run_cases(self, functions):
        """Runs those of a module's `functions` that are called case_…, as
        case(self)."""
        for name, case in list(functions.items()):
            if name.startswith("case_"):
                self.run(name[5:].replace("_", " "), case, self)

    def run_everywhere(self, cases):
        """Runs each of {title: case} as case(self, visibility, transport) in
        every visibility and over both transports."""
        for transport in TRANSPORTS:
            for visibility in VISIBILITIES:
                for title, case in cases.items():
                    self.run(f"{title}, {visibility} over {transport}", case,
                             self, visibility, transport)

    def _describe(self, title, error):
        print(f"FAILED: {title}")
        if isinstance(error, Failure):
            print(str(error))
        else:
            traceback.print_exception(error)
        if isinstance(error, subprocess.CalledProcessError):
            for text in (error.stdout, error.stderr):
                if text:
                    print(text if isinstance(text, str)
                          else text.decode("utf-8", "replace"))
        for mount in self._mounts:
            text = mount.messages()
            if text.strip() != "tracefs-mount: mounted":
                print(f"--- the daemon of {mount.point} said:\n{text}")

    def finish(self):
        self.stop_mounts()
        left = [p for p in mount_points() if p not in self._mounts_before
                and p.startswith(self.scratch)]
        for point in reversed(left):
            print(f"FAILED: left mounted: {point}")
            self.failed.append("nothing left mounted")
            subprocess.run(["umount", "-l", point], check=False)
        if self.options.keep or (self.failed and os.environ.get("TRACEFS_KEEP")):
            print(f"kept: {self.scratch}")
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)
        if self.options.killed:
            print(f"{sum(map(sum, self._kills))} daemons were killed")
        print(f"{self.passed} passed, {len(self.failed)} failed, "
              f"{len(self.skipped)} skipped")
        for title in self.failed:
            print(f"  failed: {title}")
        if self.failed:
            sys.exit(1)
        sys.exit(SKIPPED if self.passed == 0 else 0)


def verdicts(said):
    """What tracefs-verify has found: the first words of its lines. Serials and
    paths after them may hold any word."""
    return {line.split()[0] for line in said.splitlines()} - {"trace", "proof"}


def decode_event(line):
    event = json.loads(line)
    for key in [k for k in event if k.endswith("_b64") and k != "data_b64"]:
        event[key[:-4]] = os.fsdecode(base64.b64decode(event.pop(key)))
    return event
