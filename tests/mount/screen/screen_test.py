#!/usr/bin/env python3
"""`tracefs-ctl top` and `tracefs-dump --browse` in a terminal emulator (tmux):
what stands on screens of three sizes is what was done below the mount, and
keys and mouse do what they say. Names that would drive a terminal do not."""

import collections
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
            text = screen.shows("find: file03")
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
        "tracefs-ctl", point, "list", "--format", "json").stdout)["tracers"]) == 1,
        "nobody watches any more")
    mount.unmount()


def grouped(suite):
    """The words of tracefs-dump --by, live, and the same sums."""
    source, point = suite.folder("by.src"), suite.folder("by.mnt")
    trace = suite.path("by.trace")
    mount = suite.mount(source, point, trace)
    by = ["--by", "op,cname,dir(1)", "--values", "count,errors,bytes"]
    told = suite.path("told.jsonl")
    with open(told, "w", encoding="utf-8") as out:
        watching = subprocess.Popen(
            [os.path.join(suite.bin, "tracefs-ctl"), point, "top", *by,
             "--format", "json",
             "--interval", "300ms", "--rounds", "1000000"], stdout=out)

    def counted():
        sums = collections.Counter()
        with open(told, encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                key = (row["op"], row.get("cname"), row.get("dir(1)"))
                for value in ("count", "errors", "bytes"):
                    sums[(*key, value)] += row[value]
        return sums

    def by_op(sums, op):
        return sum(n for key, n in sums.items()
                   if key[0] == op and key[-1] == "count")
    wait_until(lambda: len(json.loads(suite.tool(
        "tracefs-ctl", point, "list", "--format", "json").stdout)["tracers"]) == 2,
        "somebody watches")
    os.mkdir(os.path.join(point, "d"))
    work(os.path.join(point, "d"))
    try:
        os.stat(os.path.join(point, "d", "missing"))
    except FileNotFoundError:
        pass
    wait_until(lambda: by_op(counted(), "release") == FILES, "all is told")
    watching.terminate()
    expect_equal(watching.wait(60), 0, "exit status")
    live = counted()
    mount.unmount()
    rows = [json.loads(line) for line in suite.tool(
        "tracefs-dump", *by, "--top", "all", "--format", "jsonl", "--filter",
        "op IN { create write read release mkdir }", trace)
        .stdout.splitlines()]
    expect(len(rows) >= 5, f"too little: {rows}")
    for row in rows:
        for value in ("count", "errors", "bytes"):
            key = (row["op"], row.get("cname"), row.get("dir(1)"), value)
            expect_equal(live[key], row[value], f"{key}")


def grouped_badly(suite):
    """What a mount cannot count is refused in words that help."""
    source, point = suite.folder("bad.src"), suite.folder("bad.mnt")
    mount = suite.mount(source, point, suite.path("bad.trace"))
    ctl = os.path.join(suite.bin, "tracefs-ctl")
    for words, text in (
            (["--by", "opp"], "did you mean 'op'"),
            (["--by", "fh"], "nothing can be counted by 'fh'"),
            (["--by", "op", "--values", "count,files"], "does not count files"),
            (["--by", "op", "--top", "5000"], "1 to 2000"),
            (["--by", "op", "--sort", "nothing"], "no column"),
            (["--by", "op", "--view", "files"], "exclude"),
            (["--top", "5"], "--by"), (["--format", "json"], "--by"),
            (["--by", "op; every 1s"], "--by")):
        done = subprocess.run([ctl, point, "top", "--interval", "200ms", *words],
                              capture_output=True, text=True, check=False)
        expect_equal(done.returncode, 2, f"{words}: {done.stderr}")
        expect(text in done.stderr, f"{words}: {done.stderr}")
    table = subprocess.run([ctl, point, "top", "--by", "op", "--interval",
                            "200ms", "op = getattr"], capture_output=True,
                           text=True, check=False)
    expect_equal(table.returncode, 0, table.stderr)
    expect("operations in" in table.stdout, table.stdout)
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


def full_width(suite):
    """A line as wide as the terminal keeps its last character."""
    source, point = suite.folder("wide.src"), suite.folder("wide.mnt")
    trace = suite.path("wide.trace")
    mount = suite.mount(source, point, trace)
    with open(os.path.join(point, "f" + "0" * 200 + "7"), "w",
              encoding="ascii"):
        pass
    mount.unmount()
    screen = Screen(suite, (60, 20), os.path.join(suite.bin, "tracefs-dump"),
                    "--browse", trace)
    try:
        screen.shows("^q quit")
        screen.press("3")
        text = screen.shows(r"\.\.\.0+7?$")
        line = next(line for line in text.splitlines()
                    if re.search(r"\.\.\.0+7?$", line))
        expect(len(line) == 60 and line.endswith("07"), repr(line))
    finally:
        screen.close()


def main():
    suite = Suite("screen", __doc__)
    if shutil.which("tmux") is None:
        suite.skip_all("tmux is not installed (scripts/setup)")
    suite.run("live screens show what was done", live, suite)
    suite.run("groups are counted live as of a trace", grouped, suite)
    suite.run("what a mount cannot count is refused", grouped_badly, suite)
    suite.run("names do not drive the terminal", nasty, suite)
    suite.run("a trace is browsed", browsed, suite)
    suite.run("lines of full width are whole", full_width, suite)
    suite.finish()


if __name__ == "__main__":
    main()
