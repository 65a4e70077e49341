"""Other tracers and pass-through file systems, as configurations.

Each says what it does not record (`blind`), so that cheap-because-blind shows
beside its figure. Those that record give events, bytes and what they lost, as
far as they tell.
"""

import re
import shutil
import signal
import subprocess
import time

from .configurations import Configuration, Daemon, uring_refused
from .scratch import Failure, run_command, stop_process


def _lines(path, pattern=b"\n"):
    """How often `pattern` is in a file."""
    count = 0
    with open(path, "rb") as file:
        tail = b""
        while chunk := file.read(1 << 20):
            data = tail + chunk
            count += data.count(pattern)
            tail = data[-(len(pattern) - 1):] if len(pattern) > 1 else b""
    return count


class PassthroughHp(Daemon):
    """libfuse's example: the floor of FUSE file systems."""
    blind = "records nothing"
    options = ()
    uring = False

    def _program(self, context):
        return context.deps / "bin/passthrough_hp"

    def missing(self, context):
        if not self._program(context).exists():
            return "not built: scripts/setup --bench"
        return uring_refused() if self.uring else None

    def start(self, context, source):
        self.launch(context, [self._program(context), "--foreground",
                              *self.options,
                              *(("-o", "io_uring") if self.uring else ()),
                              source, context.scratch.point],
                    context.scratch.point)
        return context.scratch.point


class PassthroughHpNoCache(PassthroughHp):
    options = ("--nocache", "--direct-io")


class PassthroughHpUring(PassthroughHp):
    uring = True


class PassthroughHpUringNoCache(PassthroughHpNoCache):
    uring = True


class PackagedFileSystem(Daemon):
    """`PROGRAM -f SOURCE POINT`."""
    blind = "records nothing"
    program = ""
    options = ()

    def missing(self, context):
        return None if shutil.which(self.program) else "not installed"

    def start(self, context, source):
        self.launch(context, [self.program, "-f", *self.options, source,
                              context.scratch.point], context.scratch.point)
        return context.scratch.point


class Bindfs(PackagedFileSystem):
    program = "bindfs"


class Mergerfs(PackagedFileSystem):
    program = "mergerfs"
    options = ("-o", "minfreespace=0")  # its default refuses below 4 GiB


class LoggedFs(Daemon):
    """Mounts over the directory itself; logs every operation as text."""
    blind = ("no flush, locks or extended attributes; fsync is not passed on, "
             "which flatters it")

    def missing(self, context):
        return None if shutil.which("loggedfs") else "not installed"

    def start(self, context, source):
        config = context.scratch.root / "loggedfs.xml"
        config.write_text(
            '<?xml version="1.0"?><loggedFS logEnabled="true" '
            'printProcessName="true"><includes><include extension=".*" '
            'uid="*" action=".*" retname=".*"/></includes></loggedFS>')
        self.records = context.scratch.tmpfs / "peer.log"
        self.records.unlink(missing_ok=True)
        self.launch(context, ["loggedfs", "-f", "-p", "-c", config, "-l",
                              self.records, source], source)
        return source

    def stop(self):
        super().stop()
        return _take(self.__dict__.get("records"))


def _take(records, pattern=b"\n"):
    """Counts and removes what a peer has written."""
    if records is None or not records.exists():
        return {}
    result = {"events": _lines(records, pattern),
              "bytes": records.stat().st_size, "lost": None}
    records.unlink()
    return result


class Wrapper(Configuration):
    """A tracer that starts the workload itself: `PROGRAM … COMMAND`."""
    blind = ""
    program = ""

    def __init__(self, name):
        super().__init__(name)
        self.records = None

    def missing(self, context):
        return None if shutil.which(self.program) else "not installed"

    def start(self, context, source):
        self.records = context.scratch.tmpfs / "peer.log"
        self.records.unlink(missing_ok=True)
        return source

    def stop(self):
        return _take(self.records)


class Strace(Wrapper):
    blind = "no mapped files, io_uring or NFS server; only what it starts"
    program = "strace"

    def prefix(self):
        return ["strace", "-f", "-ttt", "-T", "-y", "-e",
                "trace=%file,%desc", "-A", "-o", str(self.records)]

    def stop(self):
        result = super().stop()
        if result:
            result["lost"] = 0  # the traced process waits
        return result


class StraceSeccomp(Strace):
    blind = "open, close, read and write only, of what it starts"

    def prefix(self):
        return ["strace", "-f", "--seccomp-bpf", "-ttt", "-T", "-y", "-e",
                "trace=open,openat,creat,close,read,write,pread64,pwrite64,"
                "readv,writev", "-A", "-o", str(self.records)]


class PerfTrace(Wrapper):
    blind = "open, close, read and write only; descriptors, not always paths"
    program = "perf"

    def prefix(self):
        # It does not append: a file for each command.
        self.parts.append(self.records.with_name(f"peer.{len(self.parts)}.log"))
        return ["perf", "trace", "-o", str(self.parts[-1]), "-e",
                "open,openat,creat,close,read,write,pread64,pwrite64,readv,"
                "writev", "--"]

    def __init__(self, name):
        super().__init__(name)
        self.parts = []

    def stop(self):
        result = {"events": 0, "bytes": 0, "lost": 0}
        for part in self.parts:
            if part.exists():
                result["lost"] += sum(
                    int(n) for n in re.findall(rb"LOST (\d+) events",
                                               part.read_bytes()))
                for key, value in _take(part).items():
                    result[key] += value or 0
        if not result["events"]:
            result["note"] = "recorded nothing"
        return result


class Fatrace(Configuration):
    """fanotify, on the file system that the source is on."""
    blind = ("no stat, failed or attribute operations; merges events of a file; "
             "no offsets, sizes or results")

    def missing(self, context):
        return None if shutil.which("fatrace") else "not installed"

    def __init__(self, name):
        super().__init__(name)
        self.process = None
        self.records = None

    def start(self, context, source):
        # On the disk, where it would not see itself write to what it watches.
        place = (context.scratch.disk if str(source).startswith(
            str(context.scratch.tmpfs)) else context.scratch.tmpfs)
        self.records = place / "peer.log"
        self.records.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["fatrace", "-c", "-t", "-o", self.records], cwd=source,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(0.3)  # it does not say when it is ready
        if self.process.poll() is not None:
            text = self.process.stderr.read().decode(errors="replace")
            raise Failure("fatrace ended: " + text.strip())
        return source

    def alive(self):
        if self.process is not None and self.process.poll() is not None:
            raise Failure("fatrace ended during the workload")

    def stop(self):
        if self.process is not None:
            process, self.process = self.process, None
            stop_process(process, signal.SIGINT)
            process.stderr.close()
        return _take(self.records)


class Auditd(Configuration):
    """A watch on the directory and an auditd of our own; the kernel's audit
    settings are put back afterwards."""
    blind = "only opens and changes: no reads, writes, closes or stat"
    settings = {"enabled": "-e", "backlog_limit": "-b"}

    def __init__(self, name):
        super().__init__(name)
        self.process = None
        self.rule = None
        self.before = {}
        self.records = None

    def missing(self, context):
        for program in ("auditd", "auditctl"):
            if not shutil.which(program):
                return "not installed"
        try:
            status = self._status()
        except Failure as error:
            return str(error)
        if status.get("pid", "0") != "0":
            return "another auditd runs"
        return None

    @staticmethod
    def _status():
        out = run_command(["auditctl", "-s"], 10)
        return dict(line.split()[:2] for line in out.splitlines()
                    if len(line.split()) >= 2)

    def start(self, context, source):
        folder = context.scratch.root / "audit"
        folder.mkdir(exist_ok=True)
        self.records = folder / "audit.log"
        self.records.unlink(missing_ok=True)
        (folder / "auditd.conf").write_text(
            f"log_file = {self.records}\nlog_format = RAW\nlog_group = root\n"
            "flush = INCREMENTAL_ASYNC\nfreq = 1000\nmax_log_file = 4000\n"
            "max_log_file_action = IGNORE\nspace_left = 75\n"
            "space_left_action = IGNORE\nadmin_space_left = 50\n"
            "admin_space_left_action = IGNORE\ndisk_full_action = IGNORE\n"
            "disk_error_action = IGNORE\nplugin_dir = " + str(folder) + "\n"
            "q_depth = 8000\n")
        self.before = self._status()
        self.process = subprocess.Popen(
            ["auditd", "-n", "-s", "enable", "-c", folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 5
        while self._status().get("pid", "0") == "0":
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure("auditd did not start")
            time.sleep(0.05)
        run_command(["auditctl", "-b", "8192"], 10)
        self.rule = ["-w", str(source), "-p", "rwxa", "-k", "tracefs-bench"]
        run_command(["auditctl", *self.rule], 10)
        return source

    def stop(self):
        lost = None
        if self.process is None:
            return {}
        try:
            if self.rule is not None:
                rule, self.rule = self.rule, None
                run_command(["auditctl", "-W", *rule[1:]], 10)
            lost = (int(self._status()["lost"])
                    - int(self.before.get("lost", 0)))
        except (Failure, KeyError, ValueError):
            pass
        process, self.process = self.process, None
        stop_process(process)
        for name, option in self.settings.items():
            if name in self.before:
                subprocess.run(["auditctl", option, self.before[name]],
                               capture_output=True, check=False)
        result = _take(self.records, b"type=SYSCALL ")
        if result:
            result["lost"] = lost
        return result


PEERS = {
    "P": PassthroughHp,
    "P-nocache": PassthroughHpNoCache,
    "Pu": PassthroughHpUring,
    "Pu-nocache": PassthroughHpUringNoCache,
    "bindfs": Bindfs,
    "mergerfs": Mergerfs,
    "loggedfs": LoggedFs,
    "strace": Strace,
    "strace-seccomp": StraceSeccomp,
    "fatrace": Fatrace,
    "auditd": Auditd,
    "perf-trace": PerfTrace,
}


def blind_text(name):
    """What a peer does not record; "" for anything but a peer."""
    return PEERS[name].blind if name in PEERS else ""
