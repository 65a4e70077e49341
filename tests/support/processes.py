"""The processes of a mount: which one serves it, and those beside it."""

import ctypes
import os
import signal
import subprocess

PR_SET_CHILD_SUBREAPER = 36


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as pids:
            return [int(child) for child in pids.read().split()]
    except OSError:
        return []


def descendants_of(pid):
    """Parents before their children."""
    found = []
    for child in children_of(pid):
        found += [child, *descendants_of(child)]
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as name:
            return name.read().strip()
    except OSError:
        return ""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8",
                  errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def helpers_of(pid, name):
    """Living ones below that process, by their name."""
    return [one for one in descendants_of(pid)
            if name_of(one) == name and is_alive(one)]


def kill_helpers_of(pid):
    """All of them for good: keepers first, so that none comes back."""
    killed = descendants_of(pid)
    for one in killed:
        os.kill(one, signal.SIGKILL)
    return killed


def adopt_orphans():
    """Processes whose parents end become children of this one, among them
    those that daemons let go of."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def daemon_of(point):
    """Who listens at the control socket of the mount there."""
    status = os.stat(point)
    name = f"/run/tracefs/{os.major(status.st_dev)}:" \
           f"{os.minor(status.st_dev)}.sock"
    said = subprocess.run(["ss", "-xlpH", "src", name],
                          capture_output=True, text=True, check=True)
    return int(said.stdout.split("pid=", 1)[1].split(",")[0])
