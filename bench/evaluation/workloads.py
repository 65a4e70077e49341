"""What is run and timed.

A workload prepares its input once in the source directory (untimed), then runs
commands in the directory a configuration gives. Sizes come by scale: smoke (it
works at all), quick, full (the paper's, where it had the workload).
"""

import json
import os
import pathlib
import shutil
import subprocess
import time

from .data_paths import SHAPES
from .scratch import Failure, run_command

MiB = 1 << 20


class Workload:
    unit = "s"
    # Rates: higher is better; else times, lower is better.
    higher_is_better = False
    # The source is emptied after each run, so that all start alike.
    leaves_nothing = False
    read_only = False
    programs = ()  # that must be installed

    def __init__(self, context):
        self.context = context
        self.size = self.sizes[context.scale]

    def needed_bytes(self):
        """Room that it takes in the source directory."""
        return 64 * MiB

    def missing(self):
        for program in self.programs:
            if not shutil.which(program):
                return f"{program} is not installed"
        return None

    def prepare(self, source):
        pass

    def end(self, source):
        """Undoes what prepare() did beyond files in the source."""

    def before(self, where):
        """Untimed, before each run."""

    def commands(self, where):
        raise NotImplementedError

    def value(self, outputs, elapsed):
        """The figure of one run, and details for the report or None."""
        return elapsed, None


class Postmark(Workload):
    programs = ("postmark",)
    leaves_nothing = True
    # files, transactions, subdirectories; full: section 4.2 of the paper
    sizes = {"smoke": (50, 100, 5), "quick": (5000, 20000, 50),
             "full": (20000, 200000, 200)}
    processes = 1

    def needed_bytes(self):
        return self.size[0] * 12000 * 2 + 16 * MiB

    def _script(self, number, where, share):
        files, transactions, folders = (max(1, s // share) for s in self.size)
        script = self.context.scratch.root / f"postmark.{number}"
        # The paper's file sizes are Postmark's 512 B to 10 KB.
        script.write_text(f"set location {where}\nset number {files}\n"
                          f"set transactions {transactions}\n"
                          f"set subdirectories {folders}\n"
                          "set size 512 10240\n"
                          "set report terse\nrun\nquit\n")
        return script

    def commands(self, where):
        if self.processes == 1:
            return [["postmark", self._script(0, where, 1)]]
        starts = []
        for number in range(self.processes):
            folder = pathlib.Path(where) / f"p{number}"
            folder.mkdir()
            script = self._script(number, folder, self.processes)
            starts.append(f"postmark {script} > /dev/null & p{number}=$!")
        waits = [f"wait $p{n} || exit 1" for n in range(self.processes)]
        return [["sh", "-c", "\n".join(starts + waits)]]


class PostmarkQuick(Postmark):
    """The quick set at every scale: where many configurations are compared."""
    sizes = dict(Postmark.sizes, full=Postmark.sizes["quick"])


def scaled_postmark(processes):
    # Section 4.7 of the paper: the same work by 1 to 16 processes.
    return type(f"Postmark{processes}", (Postmark,), {
        "processes": processes,
        "sizes": {"smoke": (320, 640, 64), "quick": (5000, 20000, 64),
                  "full": (10000, 100000, 100)}})


class Compile(Workload):
    """googletest and googlemock of Debian's package googletest (C++, some 70
    compilations with its tests; `quick`: the libraries, 4), configured and built
    by CMake and make. It stands for the paper's Am-utils, which is in no Debian
    release any more."""
    programs = ("cmake", "make", "c++")
    source = pathlib.Path("/usr/src/googletest")
    sizes = {"smoke": None, "quick": [],
             "full": ["-Dgtest_build_samples=ON", "-Dgtest_build_tests=ON",
                      "-Dgmock_build_tests=ON"]}

    def missing(self):
        if self.size is not None and not self.source.exists():
            return "the package googletest is not installed"
        return super().missing()

    def needed_bytes(self):
        return (16 if self.size is None else 1024) * MiB

    def prepare(self, source):
        project = pathlib.Path(source) / "project"
        if self.size is not None:
            shutil.copytree(self.source, project)
            return
        project.mkdir()
        (project / "one.c").write_text("int main(void) { return 0; }\n")

    def before(self, where):
        shutil.rmtree(pathlib.Path(where) / "build", ignore_errors=True)

    def commands(self, where):
        if self.size is None:
            return [["cc", "-o", f"{where}/build", f"{where}/project/one.c"]]
        return [["cmake", "-S", f"{where}/project", "-B", f"{where}/build",
                 "-G", "Unix Makefiles", *self.size],
                ["make", "-C", f"{where}/build", "-s", f"-j{os.cpu_count()}"]]


class CompileMany(Compile):
    """libtommath of Debian's source package (150 C files), which scripts/setup
    gets: where a target asks for 60 files and `quick` has no minutes for C++.
    It is compiled: without ccache, which it would use where there is one.
    """
    sizes = {"smoke": None, "quick": ["-DENABLE_CCACHE=OFF"],
             "full": ["-DENABLE_CCACHE=OFF"]}

    def __init__(self, context):
        super().__init__(context)
        self.source = context.deps / "src/project"

    def missing(self):
        if self.size is not None and not self.source.exists():
            return "scripts/setup could not get the source of libtommath"
        return super().missing()


class OpenClose(Workload):
    """Section 4.6 of the paper; workload/open_close.cc."""
    leaves_nothing = True
    sizes = {"smoke": (2, 50), "quick": (10, 3000), "full": (10, 300000)}

    def commands(self, where):
        threads, pairs = self.size
        return [[self.context.build / "bench/open_close", where, "--threads",
                 str(threads), "--pairs", str(pairs)]]

    def value(self, outputs, elapsed):
        return json.loads(outputs[-1])["seconds"], None


class Fio(Workload):
    """fio on one big file; a rate, so that its start does not count."""
    programs = ("fio",)
    unit = "MiB/s"
    higher_is_better = True
    # MiB of the file
    sizes = {"smoke": 4, "quick": 1024, "full": 1024}
    kind = "read"
    block = "1m"
    random = False

    def needed_bytes(self):
        return self.size * MiB * 5 // 4

    def prepare(self, source):
        run_command(["dd", "if=/dev/urandom", f"of={source}/big", "bs=1M",
                     f"count={self.size}"], 300)

    def more(self):
        """How much of the file, and how."""
        size = min(self.size, 256) if self.random else self.size
        words = [f"--bs={self.block}", f"--size={size}m", "--ioengine=psync"]
        return words + ([f"--io_size={max(1, size // 4)}m"] if self.random
                        else [])

    def commands(self, where):
        return [["fio", "--name=bench", f"--filename={where}/big",
                 f"--rw={self.kind}", "--invalidate=0", "--overwrite=1",
                 "--output-format=json", "--randseed=1", *self.more()]]

    def value(self, outputs, elapsed):
        out = outputs[-1]
        job = json.loads(out[out.index("{"):])["jobs"][0]
        side = job["write" if "write" in self.kind else "read"]
        return side["bw_bytes"] / MiB, None


def fio(kind, block="1m", random=False):
    return type("Fio", (Fio,), {"kind": kind, "block": block, "random": random})


class DataPath(Fio):
    """One of data_paths.py: callers who share a file, each with a part of its
    own where they go through it in order."""
    # MiB of the file; milliseconds of what is no single pass
    sizes = {"smoke": (4, 50), "quick": (512, 700), "full": (512, 2000)}
    shape = None

    def __init__(self, context):
        super().__init__(context)
        self.size, self.ms = self.size

    def before(self, where):
        if not self.shape.cold:
            run_command(["dd", f"if={where}/big", "of=/dev/null", "bs=1M"], 60)
        # Not what the run before has written.
        os.sync()

    def more(self):
        shape = self.shape
        words = [f"--numjobs={shape.callers}", "--group_reporting",
                 "--ioengine=" + ("mmap" if shape.mapped else "psync")]
        if shape.mode == "direct":
            words.append("--direct=1")
        if shape.mapped and shape.writes:
            # What a caller has stored is in the file after msync, not before.
            words.append("--end_fsync=1")
        part = self.size * 1024 // (1 if shape.random else shape.callers)  # KiB
        words += [f"--bs={4 if shape.random else min(1024, part)}k",
                  f"--size={part}k"]
        if not shape.random:
            words.append(f"--offset_increment={part}k")
        if shape.random or not shape.mode.endswith("cold"):
            # So long that the callers overlap; one pass may be over before the
            # last has begun. What is cold is so only once.
            words += ["--time_based", f"--runtime={self.ms}ms"]
        return words


def data_path(shape):
    return type("DataPath", (DataPath,), {"shape": shape,
                                          "kind": shape.pattern})


class Walk(Workload):
    """Metadata of 100,000 files, warm: find, du and tar."""
    programs = ("find", "du", "tar")
    sizes = {"smoke": 200, "quick": 100000, "full": 100000}

    def needed_bytes(self):
        return self.size * 4096 * 2

    def prepare(self, source):
        make_tree(pathlib.Path(source) / "tree", self.size)

    def _walk(self, where):
        return (f"find {where}/tree -size +100k && du -s {where}/tree && "
                f"tar cf - -C {where} tree | cat > /dev/null")

    def before(self, where):
        run_command(["find", f"{where}/tree", "-newer", "/etc/passwd"], 600)

    def commands(self, where):
        return [["sh", "-c", self._walk(where)]]


def make_tree(tree, count):
    for d in range(count // 100):
        sub = tree / f"d{d // 32}" / f"e{d}"
        sub.mkdir(parents=True)
        for f in range(100):
            (sub / f"f{f}").write_bytes(b"x" * (f * 7))


GIT = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-c",
       "gc.auto=0", "-c", "core.fsmonitor=false", "-c", "safe.directory=*"]


class Git(Workload):
    """add, commit, status, checkout, clone and gc of a tree."""
    programs = ("git",)
    leaves_nothing = True
    sizes = {"smoke": 100, "quick": 2000, "full": 20000}

    def needed_bytes(self):
        return self.size * 4096 * 8

    def before(self, where):
        make_tree(pathlib.Path(where) / "repo" / "tree", self.size)

    def commands(self, where):
        repo = ["-C", f"{where}/repo"]
        return [GIT + ["init", "-q", f"{where}/repo"],
                GIT + repo + ["add", "."],
                GIT + repo + ["commit", "-q", "-m", "one"],
                GIT + repo + ["status", "-s"],
                GIT + repo + ["checkout", "-q", "-b", "two"],
                GIT + repo + ["mv", "tree/d0", "tree/moved"],
                GIT + repo + ["commit", "-q", "-a", "-m", "two"],
                GIT + repo + ["checkout", "-q", "-"],
                GIT + ["clone", "-q", f"{where}/repo", f"{where}/clone"],
                GIT + repo + ["gc", "-q"]]


class GitStatus(Walk):
    """git status over 100,000 files, warm."""
    programs = ("git",)

    def prepare(self, source):
        super().prepare(source)
        for words in (["init", "-q"], ["add", "."],
                      ["commit", "-q", "-m", "one"]):
            run_command(GIT + ["-C", f"{source}/tree", *words], 600)

    def before(self, where):
        # The index remembers device and inode numbers: they are the mount's.
        run_command(GIT + ["-C", f"{where}/tree", "status", "-s"], 600)

    def commands(self, where):
        return [GIT + ["-C", f"{where}/tree", "status", "-s"]]


class SlowRead(Workload):
    """16 processes reading files of their own from a file system whose every
    read takes 5 ms (tests/support/slow_fs.cc)."""
    read_only = True
    sizes = {"smoke": (2, 1), "quick": (16, 16), "full": (16, 16)}

    def __init__(self, context):
        super().__init__(context)
        self.daemon = None

    def missing(self):
        if not (self.context.build / "tests/support/slow_fs").exists():
            return "tests/support/slow_fs is not built"
        return None

    def prepare(self, source):
        files, mib = self.size
        self.daemon = subprocess.Popen(
            [self.context.build / "tests/support/slow_fs", source, str(files),
             str(mib), "5"], stdout=subprocess.DEVNULL)
        for _ in range(500):
            if os.path.exists(f"{source}/slow1"):
                return
            time.sleep(0.01)
        raise Failure("slow_fs did not mount")

    def end(self, source):
        end_daemon(self.daemon, source)
        self.daemon = None

    def commands(self, where):
        files = " ".join(str(n + 1) for n in range(self.size[0]))
        return [["sh", "-c", f"for i in {files}; do dd if={where}/slow$i "
                 "of=/dev/null bs=64k 2>/dev/null & done; wait"]]


class Waiting(Workload):
    """Many callers, each with names of its own, on a store that takes 5 ms for
    `slow` and nothing of which the kernel keeps (tests/support/fault_fs.cc):
    a cold disk, a server. workload/callers.cc."""
    sizes = {"smoke": 5, "quick": 60, "full": 200}  # names of each caller
    what = "lookup"
    slow = "getattr"  # a word of fault_fs
    callers = 16
    DELAY_MS = 5

    def __init__(self, context):
        super().__init__(context)
        self.daemon = None
        self.program = context.build / "bench/callers"

    def missing(self):
        for program in (self.program,
                        self.context.build / "tests/support/fault_fs"):
            if not program.exists():
                return f"{program.name} is not built"
        return None

    def _command(self, where, what):
        return [self.program, where, what, "--callers", str(self.callers),
                "--each", str(self.size)]

    def prepare(self, source):
        store = self.context.scratch.tmpfs / "store"
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir()
        run_command(self._command(store, "prepare"), 60)
        rules = self.context.scratch.root / "rules"
        rules.write_text(f"{self.slow} * delay {self.DELAY_MS}\n")
        before = os.stat(source).st_dev
        self.daemon = subprocess.Popen(
            [self.context.build / "tests/support/fault_fs", store, source,
             rules], stdout=subprocess.DEVNULL, start_new_session=True)
        for _ in range(500):
            if os.stat(source).st_dev != before:
                return
            time.sleep(0.01)
        raise Failure("fault_fs did not mount")

    def end(self, source):
        end_daemon(self.daemon, source)
        self.daemon = None
        shutil.rmtree(self.context.scratch.tmpfs / "store", ignore_errors=True)

    def commands(self, where):
        return [self._command(where, self.what)]

    def value(self, outputs, elapsed):
        return json.loads(outputs[-1])["seconds"], None


def waiting(what, slow, callers):
    return type("Waiting", (Waiting,), {"what": what, "slow": slow,
                                        "callers": callers})


def end_daemon(daemon, source):
    """The daemon of a file system that a workload has mounted at `source`."""
    if daemon is None:
        return
    subprocess.run(["umount", "-l", source], check=False, capture_output=True)
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


class Pgbench(Workload):
    """PostgreSQL's own benchmark, four clients, with the server's data in the
    mount. Transactions a second."""
    unit = "1/s"
    higher_is_better = True
    # scale, seconds
    sizes = {"smoke": (1, 1), "quick": (10, 10), "full": (50, 60)}

    def __init__(self, context):
        super().__init__(context)
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        self.bin = found[-1] if found else None

    def missing(self):
        if self.bin is None or not shutil.which("pgbench"):
            return "postgresql is not installed"
        return None

    def needed_bytes(self):
        return (200 + 40 * self.size[0]) * MiB

    def _as_postgres(self, *words):
        return ["setpriv", "--reuid=postgres", "--regid=postgres",
                "--clear-groups", *words]

    def prepare(self, source):
        # It refuses to run as root.
        for folder in (self.context.scratch.root, self.context.scratch.disk,
                       source):
            os.chmod(folder, 0o755)
        shutil.chown(source, "postgres", "postgres")
        self.sockets = self.context.scratch.root / "pg"
        self.sockets.mkdir(exist_ok=True)
        shutil.chown(self.sockets, "postgres", "postgres")
        run_command(self._as_postgres(
            self.bin / "initdb", "-D", f"{source}/data", "-A", "trust"), 120)
        run_command(["sh", "-c", self._script(
            source, f"pgbench -h {self.sockets} -i -q -s {self.size[0]} "
            "postgres 2>&1")], 300)

    def _script(self, where, work):
        run = " ".join(str(w) for w in self._as_postgres())
        server = f"{run} {self.bin}/pg_ctl -D {where}/data -w"
        return (f"cd / && {server} -l {self.sockets}/log -o \"-k {self.sockets}"
                f" -c listen_addresses=''\" start > /dev/null || exit 1\n"
                f"{run} {work}\nstatus=$?\n{server} -m fast stop > /dev/null\n"
                "exit $status\n")

    def commands(self, where):
        return [["sh", "-c", self._script(
            where, f"pgbench -h {self.sockets} -c 4 -j 2 -n -T {self.size[1]} "
            "postgres")]]

    def value(self, outputs, elapsed):
        for line in outputs[-1].splitlines():
            if line.startswith("tps = "):
                return float(line.split()[2]), None
        raise Failure("pgbench prints no rate")


class Sqlite(Workload):
    """Rows inserted, changed and read by the sqlite3 command, a transaction
    each."""
    programs = ("sqlite3",)
    leaves_nothing = True
    sizes = {"smoke": 20, "quick": 3000, "full": 30000}

    def commands(self, where):
        script = self.context.scratch.root / "sqlite.sql"
        with open(script, "w", encoding="ascii") as file:
            file.write("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);\n")
            for i in range(self.size):
                file.write(f"INSERT INTO t VALUES({i}, hex({i * 7919}));\n"
                           f"SELECT v FROM t WHERE id = {i // 2};\n")
                if i % 4 == 0:
                    file.write(f"UPDATE t SET v = 'x' WHERE id = {i // 3};\n")
        return [["sqlite3", "-init", "/dev/null", f"{where}/db",
                 f".read {script}"]]


class BigTree(Walk):
    """git-like reading of a tree shaped as Chromium's: a dozen files a folder,
    seven levels deep: find, and a stat of each file."""
    sizes = {"smoke": 200, "quick": 60000, "full": 400000}

    def prepare(self, source):
        folder = pathlib.Path(source) / "tree"
        for d in range(max(1, self.size // 12)):
            # Digits of the number as folders: 8 in each, as deep as they go.
            sub = folder.joinpath(*(f"d{c}" for c in f"{d:o}"))
            sub.mkdir(parents=True, exist_ok=True)
            for f in range(12):
                (sub / f"file{f}.cc").write_bytes(b"x" * (f * 300))

    def _walk(self, where):
        return f"find {where}/tree -type f -size +3k | wc -l"


class OpLatency(Workload):
    """Percentiles of single system calls; workload/op_latency.cc. The figure
    is the median time of a stat."""
    unit = "µs"
    leaves_nothing = True
    sizes = {"smoke": 20, "quick": 2000, "full": 20000}

    def commands(self, where):
        return [[self.context.build / "bench/op_latency", where, "--count",
                 str(self.size)]]

    def value(self, outputs, elapsed):
        detail = json.loads(outputs[-1])
        return detail["stat"]["p50"] / 1000, detail


class RandomLatency(Fio):
    """Median time of one 4 KiB operation."""
    unit = "µs"
    higher_is_better = False
    random = True
    block = "4k"

    def value(self, outputs, elapsed):
        out = outputs[-1]
        job = json.loads(out[out.index("{"):])["jobs"][0]
        side = job["write" if "write" in self.kind else "read"]
        return 1e6 / max(side["iops"], 1e-9), None


WORKLOADS = {
    "postmark": Postmark,
    "postmark-quick": PostmarkQuick,
    "compile": Compile,
    "compile-many": CompileMany,
    "openclose": OpenClose,
    "seqread": fio("read"),
    "seqwrite": fio("write"),
    "randread": type("RandRead", (RandomLatency,), {"kind": "randread"}),
    "randwrite": type("RandWrite", (RandomLatency,), {"kind": "randwrite"}),
    "walk": Walk,
    "git": Git,
    "git-status": GitStatus,
    "slow": SlowRead,
    "op-latency": OpLatency,
    "pgbench": Pgbench,
    "sqlite": Sqlite,
    "big-tree": BigTree,
}
# What takes 5 ms in the store, by what its callers do.
WAITS = {"lookup": "getattr", "create": "create", "read": "read"}
for _what, _slow in WAITS.items():
    for _n in (1, 16, 64):
        WORKLOADS[f"waiting-{_what}-{_n}"] = waiting(_what, _slow, _n)
for _n in (1, 2, 4, 8, 16):
    WORKLOADS[f"postmark-{_n}"] = scaled_postmark(_n)
for _shape in SHAPES:
    WORKLOADS[f"data-{_shape}"] = data_path(_shape)
