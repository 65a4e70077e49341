#!/usr/bin/env python3
"""What a program was promised to be on the disk when its write returns, the daemon
asks the file system below for. What it asks for is seen by strace.

  durable_test.py --bin build/release/bin [--only NAME]
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    PATIENCE_S, Skip, Suite, expect, expect_equal)

# What is written: how the file is opened, how it is written to, and what each
# call of the daemon has to ask for.
WRITES = {
    b"plain": (0, 0, ""),
    b"rwf-dsync": (0, os.RWF_DSYNC, "DSYNC"),
    b"rwf-sync": (0, os.RWF_SYNC, "SYNC"),
    b"appended": (os.O_APPEND, 0, ""),
    b"appended-dsync": (os.O_APPEND, os.RWF_DSYNC, "DSYNC"),
    b"appended-sync": (os.O_APPEND, os.RWF_SYNC, "SYNC"),
    b"o-dsync": (os.O_DSYNC, 0, "DSYNC"),
    b"o-dsync-rwf-sync": (os.O_DSYNC, os.RWF_SYNC, "SYNC"),
    b"o-sync": (os.O_SYNC, 0, "SYNC"),
    b"o-sync-rwf-dsync": (os.O_SYNC, os.RWF_DSYNC, "SYNC"),
}
WRITE = re.compile(r"pwrite(?:64|v2)\((\d+), .*?\"([a-z-]+)\"(.*)")
OPEN = re.compile(r"open\w*\(.*?(O_\S*).*= (\d+)$")


def asked_for(log):
    """Of each of WRITES, what its call or its descriptor asks for."""
    opened = {}
    asked = {}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := OPEN.search(line):
                opened[match[2]] = match[1]
            elif match := WRITE.search(line):
                flags = opened.get(match[1], "") + match[3]
                asked[match[2].encode()] = (
                    "SYNC" if re.search(r"(RWF|O)_SYNC", flags) else
                    "DSYNC" if re.search(r"(RWF|O)_DSYNC", flags) else "")
    return asked


def writes(suite, visibility):
    source = suite.folder(visibility, "source")
    point = suite.folder(visibility, "mnt")
    log = suite.path(visibility, "strace")
    mount = suite.mount(source, point, suite.path(visibility, "trace"),
                        visibility=visibility)
    with subprocess.Popen(
            ["strace", "-f", "-s", "64", "-o", log,
             "-e", "trace=pwrite64,pwritev2,openat,open_by_handle_at",
             "-p", str(mount.process.pid)],
            stderr=subprocess.PIPE, text=True) as stranger:
        suite.background(stranger)
        expect("attached" in stranger.stderr.readline(), "strace")
        for text, (flags, how, _) in WRITES.items():
            name = os.path.join(point, text.decode())
            fd = os.open(name, os.O_CREAT | os.O_RDWR, 0o644)
            os.close(fd)
            fd = os.open(name, os.O_RDWR | flags)
            expect_equal(os.pwritev(fd, [text], 0, how), len(text), text)
            os.close(fd)
        mount.unmount()
        stranger.stderr.read()
        stranger.wait(PATIENCE_S)
    expect_equal(asked_for(log), {text: asks for text, (_, _, asks)
                                  in WRITES.items()}, "what was asked for")


def mount_options(suite):
    """Nothing is promised that is not kept."""
    source = suite.folder("options", "source")
    point = suite.folder("options", "mnt")
    for word in ("sync", "dirsync"):
        for options in (word, f"noatime,{word}"):
            done = suite.tool("tracefs-mount", source, point, "-o", options)
            expect_equal(done.returncode, 2, done.stderr)
            expect(f"-o {word}" in done.stderr and "below" in done.stderr,
                   done.stderr)
            expect(not os.path.ismount(point), "it is mounted")


def main():
    suite = Suite("durable", __doc__)
    for visibility in ("exact", "auto", "fast"):
        if shutil.which("strace") is None:
            suite.run(f"writes, {visibility}",
                      lambda: Skip("strace is not installed"))
            continue
        suite.run(f"writes, {visibility}", writes, suite, visibility)
    suite.run("options of the mount", mount_options, suite)
    suite.finish()


if __name__ == "__main__":
    main()
