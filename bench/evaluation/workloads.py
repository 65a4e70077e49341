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
    """
    sizes = {"smoke": None, "quick": [], "full": []}

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

    def commands(self, where):
        size = min(self.size, 256) if self.random else self.size
        more = [f"--io_size={max(1, size // 4)}m"] if self.random else []
        return [["fio", "--name=bench", f"--filename={where}/big",
                 f"--rw={self.kind}", f"--bs={self.block}", f"--size={size}m",
                 "--ioengine=psync", "--invalidate=0", "--overwrite=1",
                 "--output-format=json", "--randseed=1", *more]]

    def value(self, outputs, elapsed):
        out = outputs[-1]
        job = json.loads(out[out.index("{"):])["jobs"][0]
        side = job["write" if "write" in self.kind else "read"]
        return side["bw_bytes"] / MiB, None


def fio(kind, block="1m", random=False):
    return type("Fio", (Fio,), {"kind": kind, "block": block, "random": random})


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
        if self.daemon is not None:
            subprocess.run(["umount", "-l", source], check=False,
                           capture_output=True)
            try:
                self.daemon.wait(10)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
            self.daemon = None

    def commands(self, where):
        files = " ".join(str(n + 1) for n in range(self.size[0]))
        return [["sh", "-c", f"for i in {files}; do dd if={where}/slow$i "
                 "of=/dev/null bs=64k 2>/dev/null & done; wait"]]


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
}
for _n in (1, 2, 4, 8, 16):
    WORKLOADS[f"postmark-{_n}"] = scaled_postmark(_n)
