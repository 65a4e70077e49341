#!/usr/bin/env python3
"""`tracefs-ctl top` and `tracefs-dump --browse` in a terminal emulator (tmux):
what stands on screens of three sizes is what was done below the mount, and
keys and mouse do what they say. Names that would drive a terminal do not."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))
from tracefs_harness import Suite, expect, expect_equal, wait_until  # noqa

SIZES = ((50, 12), (80, 24), (300, 80))
FILES = 12
READS = 7
with open("/proc/self/comm", encoding="ascii") as comm:
    COMM = comm.read().strip()
NASTY = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"


class Screen:
    """A command in a tmux of its own."""

    made = 0

    def __init__(self, suite, size, *words, **environment):
        Screen.made += 1
        self.name = f"tracefs-screen-{os.getpid()}-{Screen.made}"
        environment = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **environment}
        env = [f"{key}={value}" for key, value in environment.items()]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]),
                  "-y", str(size[1]), "env", *env, *words)
        self.tmux("set-option", "-g", "remain-on-exit", "on")

    def tmux(self, *arguments):
        run = subprocess.run(["tmux", "-L", self.name, *arguments],
                             capture_output=True, timeout=60)
        return run.stdout.decode("utf-8", "replace")

    def text(self):
        return self.tmux("capture-pane", "-p")

    def coloured(self):
        return self.tmux("capture-pane", "-p", "-e")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def shows(self, pattern):
        def found():
            self.last = self.text()
            return re.search(pattern, self.last, re.M)
        try:
            wait_until(found, f"{pattern!r} on the screen", 60)
        except Exception as error:
            raise type(error)(f"{error}\n{self.last}") from None
        return self.last

    def close(self):
        self.tmux("kill-server")


def work(folder):
    """So many files, each written once and read several times."""
    for i in range(FILES):
        path = os.path.join(folder, f"file{i:02}")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, b"x" * 1000)
        for _ in range(READS):
            os.pread(fd, 10, 0)
        os.close(fd)


def number_of(screen, name, column=0):
    for line in screen.splitlines():
        words = line.split()
        if words and words[-1] == name:
            return int(words[column])
    raise AssertionError(f"{name} is not in\n{screen}")


def live(suite):
    source, point = suite.folder("live.src"), suite.folder("live.mnt")
    mount = suite.mount(source, point, suite.path("beside.trace"))
    ctl = os.path.join(suite.bin, "tracefs-ctl")
    for size in SIZES:
        folder = suite.folder("live.src", f"{size[0]}")
        seen = os.path.join(point, os.path.basename(folder))
        screen = Screen(suite, size, ctl, point, "top", "--interval", "300ms")
        try:
            screen.shows("^q quit")
            work(seen)
            screen.press("a", "1")
            text = screen.shows(r"^ +%d .*\bread$" % (FILES * READS))
            expect_equal(number_of(text, "write"), FILES, "writes")
            for line in text.splitlines():
                expect(len(line) <= size[0], f"too wide: {line!r}")
            # Into the operation, its process, one file of it.
            screen.press("/")
            screen.type("write")
            screen.press("Enter", "Enter")
            text = screen.shows("filter: op = write")
            expect_equal(number_of(
                screen.shows(r"PROCESS\s*$"), f"{COMM}[{os.getpid()}]"),
                FILES, "writes of this process")
            screen.press("Enter")
            screen.shows(r"FILE\s*$")
            screen.press("/")
            screen.type("file03")
            text = screen.shows("file03")
            expect("file04" not in text, f"found too much:\n{text}")
            screen.press("Escape", "Escape", "Escape", "Escape")
            # Sorted by name, then by count; a click on the title, too.
            screen.press("3")
            if size[0] >= 80:
                screen.press("<")
                screen.shows("by name")
                screen.press("c")
                screen.shows("by count")
                screen.press("p")
                screen.shows("paused")
                screen.press("p")
            lines = screen.text().splitlines()
            at = next(i for i, line in enumerate(lines)
                      if re.search(r"FILE\s*$", line))
            column = lines[at].index("TIME%") + 2
            screen.type(f"\x1b[<0;{column + 1};{at + 1}M")
            if size[0] >= 80:
                screen.shows("by time")
            screen.press("?")
            screen.shows("select a row")
            screen.press("q")
            wait_until(lambda: "dead" in screen.tmux(
                "list-panes", "-F", "#{?pane_dead,dead,}"), "it has ended")
        finally:
            screen.close()
    wait_until(lambda: len(json.loads(suite.tool(
        "tracefs-ctl", point, "list", "--json").stdout)["tracers"]) == 1,
        "nobody watches any more")
    mount.unmount()


def nasty(suite):
    source, point = suite.folder("nasty.src"), suite.folder("nasty.mnt")
    mount = suite.mount(source, point, suite.path("nasty.trace"))
    ctl = os.path.join(suite.bin, "tracefs-ctl")
    for environment in ({}, {"LC_ALL": "C", "LANG": "C", "NO_COLOR": "1"}):
        screen = Screen(suite, (200, 30), ctl, point, "top", "--interval",
                        "300ms", **environment)
        try:
            screen.shows("^q quit")
            for i in range(3):
                open(os.path.join(point, f"{i}{NASTY}"), "w").close()
            screen.press("a", "3")
            screen.shows(r"\\x1b\[2J")
            text = screen.coloured()
            for one in ("\u202e", "\x9b", "\x07"):
                expect(one not in text, f"{one!r} on the screen")
            expect("owned" not in screen.tmux(
                "display-message", "-p", "#{pane_title}"), "the title")
            if environment:
                expect(not re.search(r"\x1b\[[0-9;]*3[0-7]m", text),
                       f"colours:\n{text!r}")
        finally:
            screen.close()
    mount.unmount()


def browsed(suite):
    source, point = suite.folder("read.src"), suite.folder("read.mnt")
    trace = suite.path("read.trace")
    mount = suite.mount(source, point, trace)
    work(point)
    mount.unmount()
    dump = os.path.join(suite.bin, "tracefs-dump")
    wanted = suite.read(trace)
    reads = sum(event["op"] == "read" for event in wanted)
    screen = Screen(suite, (100, 30), dump, "--browse", trace)
    try:
        text = screen.shows(r"\bread$")
        expect_equal(number_of(text, "read"), reads, "reads")
        expect(f"{len(wanted)} ops" in text, text)
        screen.press("3")
        screen.shows("file05")
        screen.press("[")
        screen.shows(r"\(\+.* \.\. \+")
        screen.press("]")
        screen.shows(f"{len(wanted)} ops")
    finally:
        screen.close()
    plain = subprocess.run([dump, "--browse", trace], capture_output=True,
                           stdin=subprocess.DEVNULL, text=True, check=True)
    expect_equal(number_of(plain.stdout, "read"), reads, "reads as text")


def main():
    suite = Suite("screen", __doc__)
    if shutil.which("tmux") is None:
        suite.skip_all("tmux is not installed (scripts/setup)")
    suite.run("live screens show what was done", live, suite)
    suite.run("names do not drive the terminal", nasty, suite)
    suite.run("a trace is browsed", browsed, suite)
    suite.finish()


if __name__ == "__main__":
    main()
