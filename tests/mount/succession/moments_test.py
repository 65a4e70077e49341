#!/usr/bin/env python3
"""The daemon of a mount with --survive yes is killed in a chosen moment: when a
call below has been made, and nobody knows yet what came of it (strace(1) holds
it there).

  moments_test.py --bin build/release/bin
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from deaths import daemon_of, successions_of  # noqa: E402
from succession_cases import Succession  # noqa: E402
from tracefs_harness import (PATIENCE_S, Skip, Suite, expect,  # noqa: E402
                             expect_equal, wait_until)

# Longer than anything takes until the daemon is killed.
HELD_S = 60

RENAME = """
import ctypes, sys
done = ctypes.CDLL(None, use_errno=True).renameat2(
    -100, sys.argv[1].encode(), -100, sys.argv[2].encode(), int(sys.argv[3]))
sys.exit(ctypes.get_errno() if done else 0)
"""
RENAME_WHITEOUT = 4


def killed_after(suite, mount, call, work, made):
    """Runs `work`, a command, and kills the daemon after its `call` below,
    which is there once `made()`; the command's status."""
    daemon = daemon_of(mount)
    said = suite.path("strace.said")
    with open(said, "w", encoding="utf-8") as errors:
        holds = suite.background(subprocess.Popen(
            ["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e",
             f"inject={call}:delay_exit={HELD_S}s", "-p", str(daemon)],
            stderr=errors))

    def attached():
        with open(said, encoding="utf-8") as text:
            if holds.poll() is not None:
                raise Skip("strace cannot be had: " + text.read())
            return "attached" in text.read()
    wait_until(attached, "strace")
    working = suite.background(subprocess.Popen(work))
    wait_until(made, call)
    os.kill(daemon, signal.SIGKILL)
    holds.kill()  # it would hold what is dead, too
    holds.wait(PATIENCE_S)
    status = working.wait(PATIENCE_S)
    wait_until(lambda: successions_of(mount) == 1, "another daemon")
    return status


def case_a_rename_with_a_whiteout_is_made_once(suite):
    if shutil.which("strace") is None:
        raise Skip("needs strace")
    world = Succession(suite)
    source, point, trace, mount = world.mount()
    with open(os.path.join(source, "a"), "w", encoding="ascii") as out:
        out.write("contents")
    if subprocess.run([sys.executable, "-c", RENAME, source + "/a",
                       source + "/c", str(RENAME_WHITEOUT)],
                      check=False).returncode != 0:
        raise Skip("no whiteouts there")
    os.remove(source + "/a")
    os.rename(source + "/c", source + "/a")
    status = killed_after(
        suite, mount, "renameat2",
        [sys.executable, "-c", RENAME, point + "/a", point + "/b",
         str(RENAME_WHITEOUT)], lambda: os.path.exists(source + "/b"))
    expect_equal(status, 0, "the rename")
    with open(os.path.join(point, "b"), encoding="ascii") as text:
        expect_equal(text.read(), "contents", "what was renamed")
    left = os.stat(os.path.join(source, "a"))
    expect(stat.S_ISCHR(left.st_mode) and left.st_rdev == 0, "the whiteout")
    mount.unmount()
    read = subprocess.run(
        [os.path.join(suite.bin, "tracefs-dump"), "--format", "jsonl",
         "--filter", "op = rename", trace], capture_output=True, check=True)
    renames = [event for event in map(json.loads, read.stdout.splitlines())
               if event.get("op") == "rename"]
    expect_equal(len(renames), 1, "renames in the trace")


def main():
    suite = Suite("moments", __doc__)
    for case in (case_a_rename_with_a_whiteout_is_made_once,):
        suite.run(case.__name__[5:].replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
