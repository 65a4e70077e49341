"""Directories, mounts and processes of one run, and their removal: nothing
stays mounted, whatever a peer, a workload or the user (Ctrl-C) did."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from . import images
from .commands import Failure, run_command

PREFIX = "tracefs-bench-"
OWNER = "owner"  # file in a run's root: its maker's pid and start time


class NoAnswer(Failure):
    """A file system had to be aborted."""


def mounts():
    """(mount point, "major:minor" of its device), innermost last."""
    with open("/proc/self/mountinfo", encoding="utf-8",
              errors="surrogateescape") as lines:
        fields = [line.split() for line in lines]
    return [(f[4].encode("utf-8", "surrogateescape").decode("unicode_escape"),
             f[2]) for f in fields]


def mount_count(point):
    return sum(1 for p, _ in mounts() if p == str(point))


def _abort_fuse(device):
    """Ends a FUSE connection whose daemon does not answer."""
    major, minor = device.split(":")
    if major != "0":
        return  # a disk; a connection may have its minor number
    folder = "/sys/fs/fuse/connections"
    private = None
    if not os.path.ismount(folder):
        folder = private = tempfile.mkdtemp(prefix="fusectl-")
        subprocess.run(["mount", "-t", "fusectl", "fusectl", private],
                       capture_output=True, check=False)
    try:
        with open(f"{folder}/{minor}/abort", "w", encoding="ascii") as file:
            file.write("1")
    except OSError:
        pass  # no such connection: not a FUSE mount, or gone
    finally:
        if private is not None:
            subprocess.run(["umount", private], capture_output=True,
                           check=False)
            os.rmdir(private)


def unmount(point, wait_s=5):
    """Takes the topmost mount at `point` away; by force if it must be."""
    before = mount_count(point)
    if before == 0:
        return
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        try:
            done = subprocess.run(["umount", str(point)], capture_output=True,
                                  timeout=wait_s, check=False)
        except subprocess.TimeoutExpired:
            break
        if done.returncode == 0 or mount_count(point) < before:
            return
        time.sleep(0.05)
    for p, device in reversed(mounts()):
        if p == str(point):
            _abort_fuse(device)
            break
    subprocess.run(["umount", "-l", str(point)], capture_output=True,
                   check=False, timeout=60)


@contextlib.contextmanager
def patience(roots, seconds, kill):
    """Around what may wait for a file system that never answers: after that
    time kill() is called, all FUSE connections below `roots` end, and the calls
    with them: NoAnswer. Aborting alone is not enough over io_uring, where a
    stopped daemon keeps what it has been handed."""
    over = threading.Event()

    def give_up():
        over.set()
        kill()
        for point, device in mounts():
            if any(point == str(r) or point.startswith(f"{r}/")
                   for r in roots):
                _abort_fuse(device)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except OSError as error:
        if over.is_set():
            raise NoAnswer(f"does not answer: aborted after {seconds:g} s "
                          f"({error.strerror})") from None
        raise
    finally:
        timer.cancel()
        # Giving up ends with a mount to take away.
        timer.join(10)


def unmount_below(root):
    """Everything mounted at or below `root`, innermost first."""
    root = str(root)
    for point, _ in reversed(mounts()):
        if point == root or point.startswith(root + "/"):
            unmount(point)


def start_time(pid):
    """Distinguishes a process from a later one with the same number."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[19]


def _owner_is_dead(root):
    """Only where it is known: what has no owner is not ours to remove."""
    try:
        pid, start = (root / OWNER).read_text().split()
    except (OSError, ValueError):
        return False
    try:
        return start_time(pid) != start
    except OSError:
        return True


def remove_leftovers(folders):
    """What runs that were killed have left in `folders`; returns the paths."""
    removed = []
    for folder in folders:
        for root in pathlib.Path(folder).glob(PREFIX + "*"):
            if root.is_dir() and _owner_is_dead(root):
                unmount_below(root)
                images.detach_all(root)
                # Never through a mount that did not go away.
                if not any(p.startswith(str(root)) for p, _ in mounts()):
                    shutil.rmtree(root, ignore_errors=True)
                removed.append(root)
    return removed


def stop_process(process, first=signal.SIGTERM, wait_s=20):
    """Ends a child of ours, in the end by SIGKILL; returns its status."""
    if process.poll() is None and first is not None:
        process.send_signal(first)
    try:
        return process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(wait_s)


class Scratch:
    """root/ with a tmpfs and a mount point; disk/ on a disk's file system, and
    there images of file systems that are mounted in root/ when asked for."""

    def __init__(self, disk, tmpfs_bytes, image_bytes=512 << 20):
        self.image_bytes = image_bytes
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
        self.disk = None
        try:
            (self.root / OWNER).write_text(
                f"{os.getpid()} {start_time(os.getpid())}")
            self.tmpfs = self.root / "tmpfs"
            self.point = self.root / "mnt"
            for folder in (self.tmpfs, self.point):
                folder.mkdir()
            run_command(["mount", "-t", "tmpfs", "-o", f"size={tmpfs_bytes}",
                         "tracefs-bench", self.tmpfs], 30)
            self.disk = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir=disk))
            (self.disk / OWNER).write_text((self.root / OWNER).read_text())
        except BaseException:
            self.close()
            raise

    def place(self, name):
        """Raises Failure where this machine has no such file system."""
        if name not in images.MKFS:
            return self.tmpfs if name == "tmpfs" else self.disk
        point = self.root / name
        if not point.exists():
            images.attach(name, self.disk / f"{name}.img", self.image_bytes,
                          point)
        return point

    def free_bytes(self, name):
        v = os.statvfs(self.place(name))
        return v.f_bavail * v.f_frsize

    def close(self):
        unmount_below(self.root)
        for root in (self.disk, self.root):
            if root is not None:
                unmount_below(root)
                images.detach_all(root)
                shutil.rmtree(root, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
