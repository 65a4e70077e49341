"""Deaths of the daemons of a mount with --survive yes, and users who notice
everything (restless.py)."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from processes import children_of, name_of  # noqa: E402
from tracefs_harness import PATIENCE_S, wait_until  # noqa: E402


def daemon_of(mount):
    """The process that serves it, whose parent keeps it; None between two."""
    for child in children_of(mount.pid):
        if name_of(child) == "tracefs-mount":
            return child
    return None


def successions_of(mount):
    """How many daemons have taken the place of another."""
    return mount.messages().count("another daemon serves it")


def kill_daemon(mount):
    """True if there was one."""
    pid = daemon_of(mount)
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def let_daemon_die(mount, point):
    """One daemon dies, and another serves, and says so. One that dies before it
    has said that another program serves leaves that to the next."""
    def said():
        return mount.messages().count("serves it: ")
    count = said()
    # It may be about to begin.
    wait_until(lambda: kill_daemon(mount), "a daemon")
    os.stat(os.path.join(point, "."))
    wait_until(lambda: said() > count, "another daemon")


@contextlib.contextmanager
def daemons_dying(mount, a_second):
    """Kills daemons meanwhile; yields a list, in which their number is."""
    kills = [0]
    over = threading.Event()

    def kill():
        while not over.wait(1 / a_second):
            kills[0] += kill_daemon(mount)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield kills
    finally:
        over.set()
        killer.join()


class User:
    """A process; what it says at its end is more than a pipe holds."""

    def __init__(self, suite, command):
        self.files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.process = suite.background(subprocess.Popen(
            command, stdout=self.files[0], stderr=self.files[1]))

    def poll(self):
        return self.process.poll()

    def said(self):
        """Its output and its errors, once it has ended."""
        self.process.wait(timeout=PATIENCE_S)
        for file in self.files:
            file.seek(0)
        return [file.read() for file in self.files]


def restless_users(suite, source, point, seconds, count, seed=0):
    return [User(suite, [
        sys.executable, os.path.join(HERE, "restless.py"),
        os.path.join(point, f"user-{i}"), str(seconds), str(seed + i),
        os.path.join(source, f"user-{i}")]) for i in range(count)]
