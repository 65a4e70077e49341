"""What a workload runs on, by name.

    native                      the directory itself
    LOAD[+OUTPUT][@VISIBILITY][/TRANSPORT]   our mount: LOADS, OUTPUTS below
    a peer's name               peers.py

    full            FULL to a file, --visibility auto, transport by choice
    full+zstd@exact/dev
"""

import json
import os
import subprocess
import time

from .scratch import Failure, run_command, stop_process, unmount

MOUNT_TIMEOUT_S = 20
NEVER = "cuid = 4000000000"  # every request comes, nothing is recorded


def _predicates(count, keep):
    """A filter all of whose predicates must be evaluated: pairs of a false and
    a true one, on different fields, so that none follows from another."""
    false = ["cuid = 9000", "latency = 7770", "result = 9990"]
    true = ["cuid != 9000", "latency != 7770", "result != 9990"]
    pairs = [f"({false[i % 3]}{i} OR {true[(i + 1) % 3]}{i})"
             for i in range((count - 1) // 2)]
    last = "cuid != 4000000000" if keep else NEVER
    if count % 2 == 0:
        pairs.append("cgid != 4000000000")
    return " AND ".join(pairs + [last])


STREAM = "stream = { STR_ALL }"
# name: (filter, assembly driver)
LOADS = {
    "none": (NEVER + " AND op = fsync", STREAM),
    "never": (NEVER, STREAM),
    "light": ("op IN { open close read write }", STREAM),
    "medium": ("op IN { open close read write create unlink }", STREAM),
    # What a watch of auditd reports.
    "changes": ("op IN { open create mknod mkdir unlink rmdir rename link "
                "symlink setattr setxattr removexattr }", STREAM),
    "full": ("", STREAM),
    # And what is read and written itself, which STR_ALL leaves out.
    "full-data": ("", "stream = { STR_ALL | STR_DATA }"),
    "count": ("", "aggregate = { by op, uid, pid, cname, ext; every 10s }"),
}
for _n in (1, 10, 50):
    for _keep in (False, True):
        LOADS[f"filter{_n}{'true' if _keep else 'false'}"] = (
            _predicates(_n, _keep), STREAM)

_SHA = "checksum alg = hmac-sha256 key = file:KEY;"
_AES = "encrypt cipher = aes-256-gcm key = file:KEY;"
_MD5 = "checksum alg = hmac-md5 key = file:KEY;"
_BLOWFISH = "encrypt cipher = bf-cbc key = file:KEY;"
_ZLIB = "compress alg = zlib;"
_ZSTD = "compress alg = zstd;"
# name: output filters, options of the driver, where the trace goes
OUTPUTS = {
    "file": ("", "buf = 256K", "tmpfs"),
    # A message larger than a block is lost: with STR_DATA any request of some
    # size, the largest of which have 1 MiB.
    "large": ("", "buf = 4M", "tmpfs"),
    "unbuffered": ("", "unbuffered", "tmpfs"),
    "md5": (_MD5, "", "tmpfs"),
    "blowfish": (_BLOWFISH, "", "tmpfs"),
    "zlib": (_ZLIB, "", "tmpfs"),
    "paper": (_MD5 + _ZLIB + _BLOWFISH, "", "tmpfs"),
    "sha256": (_SHA, "", "tmpfs"),
    "aes": (_AES, "", "tmpfs"),
    "zstd": (_ZSTD, "", "tmpfs"),
    "today": (_ZSTD + _AES + _SHA, "", "tmpfs"),
    "async": ("async;", "", "tmpfs"),
    "async-sha256": ("async;" + _SHA, "", "tmpfs"),
    "async-aes": ("async;" + _AES, "", "tmpfs"),
    "async-zlib": ("async;" + _ZLIB, "", "tmpfs"),
    "async-zstd": ("async;" + _ZSTD, "", "tmpfs"),
    "async-today": ("async;" + _ZSTD + _AES + _SHA, "", "tmpfs"),
    # The paper's matrix: trace written synchronously or not (W), filters in a
    # thread of their own or not (T). The chain is the paper's.
    "wsync-tsync": (_MD5 + _ZLIB + _BLOWFISH, "", "sync"),
    "wsync-tasync": ("async;" + _MD5 + _ZLIB + _BLOWFISH, "", "sync"),
    "wasync-tsync": (_MD5 + _ZLIB + _BLOWFISH, "", "disk"),
    "wasync-tasync": ("async;" + _MD5 + _ZLIB + _BLOWFISH, "", "disk"),
}


def uring_refused():
    """Why no FUSE file system can use io_uring here, or None."""
    try:
        with open("/sys/module/fuse/parameters/enable_uring",
                  encoding="ascii") as file:
            if file.read().strip() in ("Y", "1"):
                return None
    except OSError:
        return "this kernel has no FUSE over io_uring"
    return ("FUSE over io_uring is off: echo Y > "
            "/sys/module/fuse/parameters/enable_uring")


class Configuration:
    """One way to run a workload. start(), the workload, stop(), in this order;
    stop() also after a start() that failed."""

    def __init__(self, name):
        self.name = name

    def missing(self, context):
        """Why it cannot be run here, or None."""
        return None

    def start(self, context, source):
        """Returns the directory to work in."""
        return source

    def prefix(self):
        """Words before each command of the workload."""
        return []

    def alive(self):
        """Raises Failure if its daemon has ended by itself."""

    def kill(self):
        """Ends what may keep others waiting, at once; from any thread."""

    def stop(self):
        """Ends it; returns what it recorded: events, lost, bytes, …"""
        return {}


class Daemon(Configuration):
    """A file system with a daemon that stays in the foreground."""

    def __init__(self, name):
        super().__init__(name)
        self.process = None
        self.point = None
        self.log = None
        self.mounted = False

    def launch(self, context, command, point):
        """Starts the daemon and waits until it has mounted at `point`."""
        self.log = context.scratch.root / "daemon.log"
        # A leftover of somebody else's at our mount point would be measured.
        before = os.stat(point).st_dev
        self.point = point
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(c) for c in command], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, cwd="/",
                # As daemons do: the kernel's scheduler looks at sessions.
                start_new_session=True)
        end = time.monotonic() + MOUNT_TIMEOUT_S
        while time.monotonic() < end:
            if os.stat(point).st_dev != before:
                self.mounted = True
                return
            if self.process.poll() is not None:
                raise Failure(f"{self.name} did not mount: {self.last_words()}")
            time.sleep(0.005)
        raise Failure(f"{self.name} did not mount within {MOUNT_TIMEOUT_S} s")

    def last_words(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        status = self.process.returncode
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"{how}: {lines[-1]}" if lines else how

    def alive(self):
        if self.mounted and self.process.poll() is not None:
            raise Failure(f"{self.name} ended during the workload: "
                          f"{self.last_words()}")

    def kill(self):
        if self.process is not None:
            self.process.kill()

    def stop(self):
        if self.process is None:
            return {}
        process, self.process = self.process, None
        self.mounted = False
        unmount(self.point)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            stop_process(process)
        return {}


class Tracefs(Daemon):
    """Our mount."""

    def __init__(self, name):
        super().__init__(name)
        rest, _, self.transport = name.partition("/")
        rest, _, self.visibility = rest.partition("@")
        load, _, self.output = rest.partition("+")
        self.output = self.output or "file"
        if load not in LOADS or self.output not in OUTPUTS:
            raise Failure(f"no configuration '{name}'")
        self.filter, self.assembly = LOADS[load]
        self.trace = None
        self.context = None

    def missing(self, context):
        if not (context.bin / "tracefs-mount").exists():
            return f"{context.bin}/tracefs-mount is not built"
        if not os.path.exists("/dev/fuse"):
            return "no /dev/fuse here"
        try:
            self._trace_folder(context, OUTPUTS[self.output][2])
        except Failure as error:
            return str(error)
        return uring_refused() if self.transport == "uring" else None

    def _trace_folder(self, context, kind):
        if kind != "sync":
            return context.scratch.place(kind)
        folder = context.scratch.disk / "sync"
        folder.mkdir(exist_ok=True)
        # All writes below are synchronous, as on a disk mounted with -o sync.
        run_command(["chattr", "+S", folder], 10)
        return folder

    def start(self, context, source):
        self.context = context
        chain, options, kind = OUTPUTS[self.output]
        trace = self.trace = self._trace_folder(context, kind) / "trace"
        trace.unlink(missing_ok=True)
        key = context.scratch.root / "key"
        if "KEY" in chain and not key.exists():
            run_command([context.bin / "tracefs-keygen", "secret", key], 20)
        config = context.scratch.root / "config"
        config.write_text("{ { %s }\n { %s }\n { %s file = \"%s\" %s } }\n" %
                          (self.filter, self.assembly,
                           chain.replace("KEY", str(key)), trace, options))
        command = [context.bin / "tracefs-mount", source, context.scratch.point,
                   "--config", config, "--foreground",
                   "--visibility", self.visibility or "auto"]
        if self.transport:
            command += ["--transport", self.transport]
        self.launch(context, command, context.scratch.point)
        return context.scratch.point

    def stats(self):
        """The tracer's own counters: tracefs-ctl MNT stats."""
        out = run_command([self.context.bin / "tracefs-ctl", self.point,
                           "stats", "--format", "json"], 30)
        return json.loads(out)["tracers"][0]

    def stop(self):
        result = {}
        if self.process is not None and self.process.poll() is None:
            try:
                stats = self.stats()
                result = {"events": stats["encoded"] or stats["counted"],
                          "seen": stats["seen"],
                          "lost": sum(stats["lost"].values()),
                          "stages": stages_of(stats)}
            except (Failure, KeyError, ValueError, IndexError) as error:
                result = {"note": f"no counters: {error}"}
        super().stop()
        if self.trace is not None and self.trace.exists():
            result["bytes"] = self.trace.stat().st_size
            if not self.context.keep_trace:
                self.trace.unlink()
        return result


def stages_of(stats):
    """ns per event of each stage, from tracefs-ctl stats."""
    matched = stats.get("encoded")
    if not matched:
        return {}
    stages = {"filter": stats.get("filter_ns"),
              "encode": stats.get("encode_ns")}
    for stage in stats.get("stages", []):
        stages[stage["name"]] = round(stage["ns"] / matched, 2)
    return {k: v for k, v in stages.items() if v is not None}


def make(name):
    from . import peers  # peers are built on this module
    if name == "native":
        return Configuration(name)
    if name in peers.PEERS:
        return peers.PEERS[name](name)
    return Tracefs(name)
