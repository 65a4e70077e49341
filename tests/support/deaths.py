"""Deaths of the daemons of a mount with --survive yes."""

import contextlib
import os
import signal
import threading

from processes import children_of, name_of
from tracefs_harness import wait_until


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
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        yield kills
    finally:
        over.set()
        killer.join()
