"""A copy of the tree in which faults are planted, and programs run in it.

Faults are never planted in the tree itself, so that whatever ends mutate leaves
nothing behind."""

import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "build" / "mutate"


def end_session(process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end(process) -> None:
    """Ends a process and all of its session."""
    end_session(process)
    process.wait()


def _cpu_of(process) -> float:
    """What a process that has ended used of processors, with its children."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    ticks = stat.rsplit(")", 1)[1].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def run(arguments, seconds=None, **more) -> subprocess.CompletedProcess:
    """Runs a command in a session of its own and ends all of it on a timeout.
    `cpu` of the result is what it used."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          start_new_session=True, text=True, errors="replace",
                          **more) as process:
        late = threading.Event()

        def end_late():
            late.set()
            end_session(process)

        timer = threading.Timer(seconds, end_late) if seconds else None
        try:
            if timer:
                timer.start()
            output = process.stdout.read()
            cpu = _cpu_of(process)
        except BaseException:
            end(process)
            raise
        finally:
            if timer:
                timer.cancel()
        process.wait()
        if late.is_set():
            raise subprocess.TimeoutExpired(arguments, seconds)
        done = subprocess.CompletedProcess(arguments, process.returncode,
                                           output, None)
        done.cpu = cpu
        return done


def environment() -> dict[str, str]:
    deps = os.environ.get("TRACEFS_DEPS_DIR", str(ROOT / "build" / "deps"))
    return os.environ | {"TRACEFS_DEPS_DIR": deps}


@functools.cache
def apart() -> list[str]:
    """What runs a test of a program with a fault: processes, mounts and a network
    of its own, so that whatever a fault makes of it ends with it. A signal that
    a fault sends to everybody would else end all that the user runs."""
    ways = [["unshare", *user, "--mount", "--pid", "--fork", "--kill-child",
             "--mount-proc", "--net", "sh", "-c",
             'ip link set lo up; "$@"; exit $?', "sh"]
            for user in ([], ["--user", "--map-current-user", "--keep-caps"])]
    for way in ways:
        done = subprocess.run([*way, "sh", "-c", "test $PPID = 1"],
                              capture_output=True, check=False)
        if done.returncode == 0:
            return way
    sys.exit("mutate: unshare(1) cannot give tests processes of their own, and a "
             "fault may signal all of yours\nmutate: next: run it as root, or "
             "allow user namespaces")


class Workshop:
    def __init__(self, tree: pathlib.Path):
        self.tree = tree
        self.build = tree / "build" / "release"

    def copy(self, instead=None, head=None) -> None:
        """Makes the copy like the tree, but for files whose content `instead`
        names, and copies that begin with `head`; files that are alike keep their
        times, so that nothing is compiled again for them."""
        instead = instead or {}
        self.tree.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
        wanted = {os.fsdecode(name) for name in listed if name}
        for name in sorted(wanted):
            source, copy = ROOT / name, self.tree / name
            if source.is_symlink() or not source.is_file():
                continue
            if head and copy.exists() and copy.read_bytes().startswith(head):
                continue
            data = instead[name] if name in instead else source.read_bytes()
            if not copy.exists() or copy.read_bytes() != data:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(data)
            shutil.copymode(source, copy)
        for copy in self.tree.rglob("*"):
            name = str(copy.relative_to(self.tree))
            if name.split(os.sep)[0] != "build" and copy.is_file() \
                    and name not in wanted:
                copy.unlink()

    def configure(self, *options) -> None:
        # With an older libfuse half of what the suites look at would be missing.
        deps = pathlib.Path(environment()["TRACEFS_DEPS_DIR"])
        if not deps.is_dir():
            sys.exit(f"mutate: there is no {deps}\nmutate: next: scripts/setup")
        if (self.build / "build.ninja").exists():
            # There may be other tests than when it was configured.
            run(["ninja", "-C", str(self.build), "build.ninja"],
                env=environment())
            return
        done = run(["cmake", "--preset", "release",
                    f"-DTRACEFS_DEPS_DIR={deps}", *options],
                   cwd=self.tree, env=environment())
        if done.returncode != 0:
            sys.exit(f"mutate: cannot configure the copy:\n{done.stdout}\n"
                     "mutate: next: scripts/setup")

    def known_targets(self) -> set[str]:
        done = run(["ninja", "-C", str(self.build), "-t", "targets", "all"])
        return set(re.findall(r"^([\w-]+): phony", done.stdout, re.M))
