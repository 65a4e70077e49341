#!/usr/bin/env python3
"""A rule holds who makes it fire (`hold`): changes of files wait until an operator
decides, or the time is up; changes of names are refused, so that nobody else waits in
that directory. Nobody stays hanging, whatever ends first.

  hold_test.py --bin build/release/bin [--only NAME]
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "replay"))

# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    Failure, Suite, expect, expect_equal, wait_until)
from workloads import AS_IT_WAS  # noqa: E402

TRANSPORTS = ("dev", "uring")
# Writes until there is a file `enough`, and says what became of it: the errno, or
# done.
WRITER = r"""
import os, sys
try:
    fd = os.open("victim", os.O_RDWR)
    while not os.path.exists("enough"):
        for i in range(100):
            os.pwrite(fd, b"%06d" % i, 0)
    print("done")
except OSError as error:
    print(error.errno)
"""
REMOVER = r"""
import os, time
refused = 0
for i in range(3000):
    try:
        open(f"v{i}", "x").close()
        os.unlink(f"v{i}")
    except OSError as error:
        refused = error.errno
        break
    time.sleep(0.001)
print(refused)
"""


class Held:
    """A mount in which writing to `victim` much, or making files, is held."""

    def __init__(self, suite, action, transport="dev"):
        self.suite = suite
        name = f"held-{suite._mount_count}"  # pylint: disable=protected-access
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mnt")
        with open(os.path.join(self.source, "victim"), "wb") as out:
            out.write(os.urandom(1000))
        self.trace = suite.path(name, "trace")
        rule = ('when rate((op = write AND name = victim) OR op = create by pid)'
                f' > 30/1s then {{ alarm "too much"; {action} ')
        self.mount = suite.mount(
            self.source, self.point,
            ("", f'STR_ALL }}; {rule}', f'file = "{self.trace}"'),
            visibility="auto", transport=transport)

    def start(self, script, *words):
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", script, *words], cwd=self.point,
            stdout=subprocess.PIPE, text=True)
        self.suite.background(process)
        return process

    def ctl(self, *words, status=0):
        return self.suite.command("tracefs-ctl", self.point, *words,
                                  status=status)

    def enough(self):
        with open(os.path.join(self.source, "enough"), "w", encoding="ascii"):
            pass

    def held(self):
        return json.loads(self.ctl("held", "--format", "json"))["holds"]

    def wait_for(self, process):
        """Until it is held and waits; the hold."""
        wait_until(lambda: any(h["waiting"] for h in self.held()), "the hold")
        hold = self.held()[0]
        expect_equal(hold["pid"], process.pid, "who is held")
        expect_equal(hold["waiting"][0]["pid"], process.pid, "who waits")
        expect_equal(hold["waiting"][0]["op"], "write", "for what")
        expect_equal(hold["waiting"][0]["path"], "/victim", "of which file")
        return hold["hold"]

    def innocent(self):
        """What another process takes in the same directory, in seconds."""
        begin = time.monotonic()
        done = subprocess.run(
            ["sh", "-ec", "echo x > other; mv other other2; cat victim "
             "> /dev/null; rm other2; ls > /dev/null"], cwd=self.point,
            check=False, timeout=60)
        expect_equal(done.returncode, 0, "an innocent process")
        return time.monotonic() - begin

    def actions(self):
        """What the trace tells of holds."""
        self.mount.unmount()
        out = self.suite.command("tracefs-dump", "--format", "jsonl",
                                 self.trace)
        return [action for line in out.splitlines()
                for action in json.loads(line).get("actions", ())]


def decided(suite, transport):
    """go-on and fail, by an operator."""
    for how, said in (("--go-on", "done"), ("--fail", str(errno.EPERM))):
        at = Held(suite, "hold for 60s", transport)
        writer = at.start(WRITER)
        hold = at.wait_for(writer)
        at.innocent()
        expect_equal(writer.poll(), None, "it waits")
        text = at.ctl("held")
        expect("too much" in text and f"process {writer.pid}" in text and
               "waits: " in text and ", write /victim, since" in text, text)
        at.ctl("release", str(hold), how)
        if how == "--go-on":
            # The rule may fire again when it has been calm: not within this.
            wait_until(lambda: not at.held(), "the end of the hold")
            at.enough()
        expect_equal(writer.communicate(timeout=60)[0].strip(), said, how)
        told = at.actions()
        expect(any(f"of process {writer.pid} and all below it" in a and
                   "for 60000 ms, then fail" in a for a in told), told)
        expect(any("as tracefs-ctl decided" in a for a in told), told)


def by_itself(suite, transport):
    """When the time is up."""
    for then, said in (("fail", str(errno.EPERM)), ("go on", "done")):
        at = Held(suite, f"hold for 2s then {then}", transport)
        writer = at.start(WRITER)
        at.wait_for(writer)
        wait_until(lambda: not at.held(), "the end of the hold")
        at.enough()
        expect_equal(writer.communicate(timeout=60)[0].strip(), said, then)
        wait_until(lambda: not at.held(), "the end of the hold")
        expect(any("its time is up" in a for a in at.actions()), then)


def names(suite, transport):
    """Changes of names are refused at once, and nobody else waits there."""
    at = Held(suite, "hold for 30s", transport)
    remover = at.start(REMOVER)
    expect_equal(remover.communicate(timeout=60)[0].strip(),
                 str(errno.EPERM), "it is refused")
    hold = at.held()[0]
    expect(hold["refused"] > 0 and not hold["waiting"], hold)
    at.innocent()
    at.ctl("release", str(hold["hold"]), "--go-on")
    at.mount.unmount()


# Tries to change names of all kinds until each is refused, then an attribute.
CHANGER = r"""
import os, time
tried = {
    "create": lambda: open("made", "x").close(),
    "unlink": lambda: os.unlink("victim"),
    "mkdir": lambda: os.mkdir("folder"),
    "symlink": lambda: os.symlink("anywhere", "sym"),
    "link": lambda: os.link("victim", "second"),
    "rename": lambda: os.rename("victim", "moved"),
    "mknod": lambda: os.mkfifo("pipe"),
}
for i in range(3000):
    try:
        open(f"v{i}", "x").close()
    except OSError:
        break
    time.sleep(0.001)
for name, attempt in tried.items():
    try:
        attempt()
        print(name, "was done")
    except OSError as error:
        print(name, error.errno)
print("all", flush=True)
try:
    os.chmod("victim", 0o600)
except OSError as error:
    print("chmod", error.errno)
"""


def told_of(suite, transport):
    """What was refused is in the trace with its names: nobody else has them."""
    at = Held(suite, "hold for 60s then fail", transport)
    changer = at.start(CHANGER)
    wait_until(lambda: any(h["waiting"] for h in at.held()), "the chmod")
    at.ctl("release", str(at.held()[0]["hold"]), "--fail")
    said = changer.communicate(timeout=60)[0].split()
    wanted = {("create", "/made", None), ("unlink", "/victim", None),
              ("mkdir", "/folder", None), ("symlink", "/sym", None),
              ("link", "/victim", "/second"), ("rename", "/victim", "/moved"),
              ("mknod", "/pipe", None), ("setattr", "/victim", None)}
    expect_equal(said.count(str(errno.EPERM)), len(wanted), f"refused: {said}")
    at.mount.unmount()
    out = suite.command("tracefs-dump", "--format", "jsonl", at.trace)
    events = [json.loads(line) for line in out.splitlines()]
    refused = {(e["op"], e.get("path"), e.get("path2")) for e in events
               if e.get("errno") == "EPERM" and e["pid"] == changer.pid}
    # It was held by the refusal of one of those that it made first.
    expect_equal({r for r in refused if not (r[1] or "").startswith("/v")
                  or r[1] == "/victim"}, wanted, "what was refused")


def innocents(suite, transport):
    """Many wait, and others go on: also in their directory and of their user."""
    at = Held(suite, "hold for 60s", transport)
    parent = at.start("""
import os, subprocess, sys, time
fd = os.open("victim", os.O_RDWR)
try:
    while True:
        os.pwrite(fd, b"x", 0)
except OSError: pass
""")
    hold = at.wait_for(parent)
    took = sorted(at.innocent() for _ in range(5))
    expect(took[2] < 20, f"others took {took}")
    at.ctl("release", str(hold), "--fail")
    parent.communicate(timeout=60)
    at.mount.unmount()
    return f"others took {took[2] * 1000:.0f} ms"


# Takes no for an answer, and goes on: its errors, and what it did, until `enough`.
STUBBORN = r"""
import os
refused = done = 0
fd = os.open("victim", os.O_RDWR)
while not os.path.exists("enough"):
    try:
        os.pwrite(fd, b"%06d" % done, 0)
        done += 1
    except OSError:
        refused += 1
        print("refused", refused, flush=True)
"""


def stubborn(suite, transport):
    """A process that goes on after a hold ended in a failure is held again:
    nobody has let it go."""
    at = Held(suite, "hold for 60s", transport)
    writer = at.start(STUBBORN)
    first = at.wait_for(writer)
    at.ctl("release", str(first), "--fail")
    expect_equal(writer.stdout.readline().strip(), "refused 1", "what waited")
    second = at.wait_for(writer)
    expect(second != first, "a hold of its own")
    # Whom an operator lets go is not held again while he goes on.
    at.ctl("release", str(second), "--go-on")
    time.sleep(2)
    expect_equal(at.held(), [], "nobody")
    at.enough()
    expect_equal(writer.communicate(timeout=60)[0].strip(), "", "it went on")
    at.mount.unmount()


def below(suite, transport):
    """What a held process starts is held, too, and more than there is room for
    is refused."""
    at = Held(suite, "hold for 60s", transport)
    for i in range(48):
        with open(os.path.join(at.source, f"f{i}"), "wb"):
            pass
    parent = at.start("""
import os, subprocess, sys, time
children = [subprocess.Popen(
    [sys.executable, "-c", "import sys, os; sys.stdin.read()\\n"
     "try: os.truncate(sys.argv[1], 5); print('done')\\n"
     "except OSError as e: print(e.errno)", f"f{i}"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for i in range(48)]
import threading
ended = []
def write():
    fd = os.open("victim", os.O_RDWR)
    try:
        while not ended: os.pwrite(fd, b"x", 0)
    except OSError: pass
thread = threading.Thread(target=write); thread.start()
time.sleep(3)
for child in children: child.stdin.close()
print(",".join(sorted(child.stdout.read().strip() for child in children)))
ended.append(1)
thread.join()
""")
    wait_until(lambda: any(h["waiting"] and h["refused"] for h in at.held()),
               "a full lot")
    hold = at.held()[0]
    # Over io_uring each takes a place in a queue.
    if transport == "dev":
        expect_equal(len(hold["waiting"]), 32, "who waits")
    at.innocent()
    at.ctl("release", str(hold["hold"]), "--go-on")
    said = parent.communicate(timeout=90)[0].strip().split(",")
    expect(said.count(str(errno.EPERM)) >= 17, said)
    expect(said.count("done") >= 1, said)
    at.mount.unmount()


def killed(suite, transport):
    """SIGKILL ends its wait."""
    at = Held(suite, "hold for 10m", transport)
    writer = at.start(WRITER)
    hold = at.wait_for(writer)
    writer.kill()
    writer.wait(timeout=30)
    wait_until(lambda: not at.held()[0]["waiting"], "its place")
    at.ctl("release", str(hold), "--fail")
    # The same by the command, of the process that the caller names.
    writer = at.start(WRITER)
    time.sleep(11)  # a rule is calm for 10 s before it fires again
    hold = at.wait_for(writer)
    at.ctl("release", str(hold), "--kill", str(writer.pid))
    expect_equal(writer.wait(timeout=30), -signal.SIGKILL, "killed")
    at.mount.unmount()


def ends(suite, transport):
    """The end of its tracer, or of the connection, is the end of a hold."""
    at = Held(suite, "hold for 10m", transport)
    writer = at.start(WRITER)
    at.wait_for(writer)
    at.ctl("stop", "1")
    at.enough()
    expect_equal(writer.communicate(timeout=60)[0].strip(), "done", "stopped")
    at.mount.unmount()
    at = Held(suite, "hold for 10m", transport)
    writer = at.start(WRITER)
    at.wait_for(writer)
    subprocess.run(["umount", "-f", "-l", at.point], check=False)
    out = writer.communicate(timeout=60)[0].strip()
    expect(out.isdigit(), f"an error: {out}")
    at.mount.process.wait(timeout=60)


def each_rule(suite, transport):
    """What one rule lets go another goes on holding."""
    at = Held(suite, "hold for 60s }; when rate(op = write AND name = victim "
              "by pid) > 60/1s then { hold for 60s then go on", transport)
    writer = at.start(WRITER)
    # The second has seen enough only if the first let it go on.
    at.ctl("release", str(at.wait_for(writer)), "--go-on")
    wait_until(lambda: any(h["rule"] == 2 and h["waiting"] for h in at.held()),
               "the second rule")
    for hold in at.held():
        if hold["rule"] == 1:
            at.ctl("release", str(hold["hold"]), "--go-on")
    expect_equal(writer.poll(), None, "it waits for the second")
    at.enough()
    (hold,) = at.held()
    at.ctl("release", str(hold["hold"]), "--go-on")
    expect_equal(writer.communicate(timeout=60)[0].strip(), "done", "both")
    at.mount.unmount()


MANY = r"""
import os, sys
os.setgroups([]); os.setgid(61000); os.setuid(61000)
try:
    fd = os.open("victim", os.O_RDWR)
    for i in range(3000):
        os.pwrite(fd, b"%06d" % i, 0)
    print("done")
except OSError as error:
    print(error.errno)
"""


def many_processes(suite, transport):
    """Who goes on in ever more processes is held as a user, though the rule
    fires more often than anybody is told."""
    at = Held(suite, "hold for 60s", transport)
    os.chmod(os.path.join(at.source, "victim"), 0o666)
    for _ in range(8):
        writers = [at.start(MANY) for _ in range(12)]
        wait_until(lambda: len([p for p in writers if p.poll() is not None])
                   + sum(len(h["waiting"]) for h in at.held()) >= len(writers),
                   "all of them to wait or end")
        for hold in at.held():
            if "pid" in hold:
                continue
            expect_equal(hold["uid"], 61000, "the user who is held")
            for one in at.held():
                at.ctl("release", str(one["hold"]), "--fail")
            for writer in writers:
                writer.communicate(timeout=60)
            at.mount.unmount()
            return
        for writer in writers:
            if writer.poll() is None:
                writer.kill()
            writer.communicate(timeout=60)
    raise Failure("the user was never held")


def undone(suite, transport):
    """What the held process did is taken back while it is held."""
    at = Held(suite, "hold for 5m", transport)
    at.mount.unmount()
    with open(os.path.join(at.source, "victim"), "rb") as file:
        before = file.read()
    trace = at.trace + "2"
    rule = ('when rate(op = write AND name = victim by pid) > 30/1s '
            'then { hold for 5m ')
    at.mount = suite.mount(
        at.source, at.point,
        ("", f'STR_KEEP | STR_PID | STR_PROCESS }} keep_in = "{at.trace}-kept"; {rule}',
         f'file = "{trace}"'), visibility="auto", transport=transport)
    writer = at.start(WRITER)
    hold = at.wait_for(writer)
    at.ctl("release", str(hold), "--undo", *AS_IT_WAS)
    expect_equal(writer.communicate(timeout=60)[0].strip(), str(errno.EPERM),
                 "what waited")
    at.mount.unmount()
    with open(os.path.join(at.source, "victim"), "rb") as file:
        expect_equal(file.read(), before, "every byte")


def refused(suite):
    """What makes no sense is said."""
    at = Held(suite, "hold for 60s")
    for words, why in ((("release", "9", "--go-on"), "there is no hold 9"),
                       (("release", "x", "--fail"), "no number"),
                       (("release", "1"), "what is to become"),
                       (("release", "1", "--undo"), "there is no hold 1")):
        said = at.ctl(*words, status=2)
        expect(why in said, said)
    expect("nobody is held" in at.ctl("held"), "held")
    at.mount.unmount()


def main():
    suite = Suite("hold_test", __doc__)
    for transport in TRANSPORTS:
        for title, case in (("an operator decides", decided),
                            ("the time is up", by_itself),
                            ("names do not wait", names),
                            ("what is refused is told", told_of),
                            ("others go on", innocents),
                            ("who goes on is held again", stubborn),
                            ("what a held process starts", below),
                            ("a signal ends a wait", killed),
                            ("nobody stays hanging", ends),
                            ("each rule for itself", each_rule),
                            ("ever more processes", many_processes),
                            ("it is taken back while it is held", undone)):
            suite.run(f"{title}, over {transport}", case, suite, transport)
    suite.run("what makes no sense", refused, suite)
    suite.finish()


if __name__ == "__main__":
    main()
