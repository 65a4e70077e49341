#!/usr/bin/env python3
"""Each reason for which --undo leaves an operation alone, planted by itself.

What is to be taken back is done in a recorded tree; then exactly one thing happens
that forbids it, in the trace by another process or after it. That reason must be
told and no other, and the tree stays as it is. The same without what was planted
is taken back as a whole: nothing else was in the way.

  undo_refusals_test.py --bin build/release/bin [--only NAME]
"""

import contextlib
import ctypes
import errno
import json
import os
import re
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from keep_test import stream  # noqa: E402
from tracefs_harness import Suite, expect, expect_equal  # noqa: E402
from trees import tree_digest  # noqa: E402
from workloads import AS_IT_WAS, USER  # noqa: E402

FLAGS = "STR_REPLAY | STR_DATA | STR_PID"
LEFT = "it is not as the trace has left it"
NOT_COMPARED = ("what it holds by now cannot be compared with what the trace "
                "has left: not all of its bytes are in the trace")
RENAME_EXCHANGE = 2
GROUP = 7777


def put(path, text):
    """Makes a file, or writes over its first bytes."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(fd, text.encode(), 0)
    os.close(fd)


def read(path):
    with open(path, "rb") as file:
        file.read()


def exchange(one, two):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, one.encode(), -100, two.encode(),
                      RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), one)


def fails(error, function, *words):
    try:
        function(*words)
    except OSError as told:
        expect_equal(told.errno, error, "the error")
        return
    raise AssertionError("it succeeded")


def become_member():
    os.setgroups([GROUP])
    os.setgid(USER)
    os.setuid(USER)


def allocate(path):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.posix_fallocate(fd, 0, 1 << 60)
    finally:
        os.close(fd)


def immutable(sign, path):
    subprocess.run(["chattr", sign + "i", path], check=True)


def fill_up(path):
    """Until there is no room, and then makes some again."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    written = 1
    try:
        while written:
            written = os.write(fd, bytes(50000))
    except OSError as error:
        expect_equal(error.errno, errno.ENOSPC, "the error")
    os.close(fd)
    os.unlink(path)


def nothing():
    pass


class Case:
    """`before` the trace; what is `mine`, to be taken back; then what forbids it:
    `other` in the trace, by somebody else, or `after` it. All are called in the
    tree. `unplanted`: what replaces `before` where the plant is in it.
    `consequence`: what is then told of operations before that one. `filter`, and
    `stops`: what the trace leaves out where it is planted. `flags`: None keeps
    what is destroyed."""

    # pylint: disable=too-many-arguments
    def __init__(self, why, mine, before=nothing, other=nothing, after=nothing,
                 unplanted=None, consequence=None, flags=FLAGS, left_out="",
                 stops=False):
        self.why = why
        self.reasons = {why, consequence} - {None}
        self.mine = mine
        self.before = before
        self.other = other
        self.after = after
        self.unplanted = unplanted
        self.flags = flags
        self.left_out = left_out
        self.stops = stops

    def stream(self, trace):
        return self.flags or stream(trace + "-kept")


def calls(*steps):
    def run():
        for function, *words in steps:
            function(*words)
    return run


A = (put, "a", "before")
READ = (read, "a")
NOT_SHOWN = ("others may have changed it unseen, and not all of its bytes are in "
             "the trace to show that they have not")
BY_ROOT = "cuid = 0"
BY_USER = (os.setuid, USER)
FOR_ALL = (os.chmod, "a", 0o666)
CASES = {
    # --- what the trace was not to tell
    "others' bytes that a filter leaves out": Case(
        NOT_SHOWN, calls((put, "a", "mine!!")), before=calls(A, FOR_ALL),
        other=calls(BY_USER, (put, "a", "theirs")), flags=None,
        left_out=BY_ROOT),
    "a new file with others' bytes that a filter leaves out": Case(
        NOT_SHOWN, calls((put, "new", "mine!!"), (os.chmod, "new", 0o666)),
        other=calls(BY_USER, (put, "new", "theirs")), flags=None,
        left_out=BY_ROOT),
    "others' mode that a filter leaves out": Case(
        LEFT, calls(READ, (os.chmod, "a", 0o640)),
        before=calls(A, (os.chown, "a", USER, -1)),
        other=calls(BY_USER, (os.chmod, "a", 0o604)),
        left_out="NOT (op = setattr AND cuid = %d)" % USER),
    "a file whose ACL is in no trace": Case(
        "what its group may do may be said by an ACL, which is not in the trace",
        calls(READ, (os.unlink, "a")), before=calls(A, (os.chmod, "a", 0o640)),
        unplanted=calls(A), flags="STR_ALL | STR_DATA | STR_PID"),
    "others' bytes that came while the tracer was stopped": Case(
        NOT_SHOWN, calls((put, "a", "mine!!")), before=calls(A),
        other=calls((put, "a", "theirs")), flags=None, stops=True),
    "a new file whose bytes are in no trace": Case(
        NOT_COMPARED, calls((put, "new", "mine!!")),
        after=calls((put, "new", "theirs")), flags="STR_REPLAY | STR_PID"),
    # --- names
    "a new name moved": Case(
        "that name was taken away or given to another since",
        calls((put, "new", "x")), other=calls((os.rename, "new", "moved"))),
    "another file of that name": Case(
        "that name was taken away or given to another since",
        calls((put, "new", "x")),
        other=calls((put, "same", "x"), (os.rename, "same", "new"))),
    "a new folder in use": Case(
        "something is in it", calls((os.mkdir, "new")),
        after=calls((put, "new/of-others", "x"))),
    "the only name": Case(
        "it is the only name by now", calls((os.link, "a", "b")),
        calls(A), other=calls((os.unlink, "a"))),
    "the name in use": Case(
        "its name is another's by now", calls(READ, (os.unlink, "a")),
        calls(A), after=calls((put, "a", "other"))),
    "the folder gone": Case(
        "its directory is not there", calls((read, "d/a"), (os.unlink, "d/a")),
        calls((os.mkdir, "d"), (put, "d/a", "x")),
        other=calls((os.rmdir, "d"))),
    "no name left": Case(
        "no other name of it is left", calls(READ, (os.unlink, "b")),
        calls(A, (os.link, "a", "b")), other=calls((os.unlink, "a"))),
    "a renamed one moved on": Case(
        "it has not that name any more", calls((os.rename, "a", "b")),
        calls(A), other=calls((os.rename, "b", "c"))),
    "the former name in use": Case(
        "its former name is another's by now", calls((os.rename, "a", "b")),
        calls(A), after=calls((put, "a", "other"))),
    "the former folder gone": Case(
        "its former directory is not there", calls((os.rename, "d/a", "b")),
        calls((os.mkdir, "d"), (put, "d/a", "x")),
        other=calls((os.rmdir, "d"))),
    "the former folder inside": Case(
        "its former directory is in it by now",
        calls((os.rename, "d/sub", "sub")), calls((os.makedirs, "d/sub")),
        other=calls((os.rename, "d", "sub/d"))),
    "one of two exchanged": Case(
        "they have not these names any more", calls((exchange, "a", "b")),
        calls(A, (put, "b", "x")), other=calls((os.rename, "b", "c"))),
    "one of two in the other": Case(
        "one of them is in the other by now",
        calls((exchange, "one/x", "two/y")),
        calls((os.makedirs, "one/x"), (os.makedirs, "two/y")),
        other=calls((os.rename, "one", "two/y/one"))),
    # --- state
    "new contents": Case(
        LEFT, calls((put, "new", "mine")), after=calls((put, "new", "them"))),
    "changed contents": Case(
        LEFT, calls(READ, (put, "a", "mine")), calls(A),
        after=calls((put, "a", "them"))),
    "changed mode": Case(
        LEFT, calls(READ, (os.chmod, "a", 0o600)), calls(A, (os.chmod, "a", 0o644)),
        after=calls((os.chmod, "a", 0o640))),
    "changed owner": Case(
        LEFT, calls(READ, (os.chmod, "a", 0o600)), calls(A, (os.chmod, "a", 0o644)),
        after=calls((os.chown, "a", 7, 8))),
    "changed in the trace": Case(
        "operation N changed it since", calls(READ, (put, "a", "mine")),
        calls(A), other=calls((put, "a", "them"))),
    "changed and gone": Case(
        "it is not there any more", calls(READ, (os.chmod, "a", 0o600)),
        calls(A, (os.chmod, "a", 0o644)), other=calls((os.unlink, "a"))),
    # --- what the trace knows
    "bytes nobody read": Case(
        "the bytes that it had are not in the trace",
        calls((put, "a", "mine")), calls(A), unplanted=nothing),
    "a file nobody read": Case(
        "what it held is not in the trace", calls((os.unlink, "a")),
        calls(A), unplanted=calls((os.mkfifo, "a"))),
    "a device": Case(
        "device nodes are not made", calls((os.unlink, "a")),
        calls((os.mknod, "a", 0o600 | stat.S_IFCHR, os.makedev(1, 3))),
        unplanted=calls((os.mkfifo, "a"))),
    "contents nobody read": Case(
        NOT_COMPARED, calls((os.chmod, "a", 0o600)),
        calls(A, (os.chmod, "a", 0o644)), unplanted=calls((os.mkfifo, "a"))),
    "a name that nobody used": Case(
        "it has names that the trace does not tell",
        calls((read, "c"), (os.unlink, "c")),
        calls((put, "c", "x"), (os.link, "c", "c2")),
        unplanted=calls((put, "c", "x"))),
    # --- what hangs together
    "one that a later one rests on": Case(
        LEFT, calls(READ, (put, "a", "mine"), (os.chmod, "a", 0o600)),
        calls(A, (os.chmod, "a", 0o644)), after=calls((os.chmod, "a", 0o640)),
        consequence="operation N, which came later, is not taken back"),
    "one whose file is gone by a later one": Case(
        "its name is another's by now",
        calls(READ, (put, "a", "mine"), (os.unlink, "a")), calls(A),
        after=calls((put, "a", "other")),
        consequence="it is not there any more"),
}
# What hinders nothing: all that is mine is taken back.
HARMLESS = {
    "a disk that was full": Case(
        "", calls((put, "new", "x"), (fill_up, "large"))),
    "what a further group may do": Case(
        "", calls((put, "new", "x")),
        calls((put, "shared", "x"), (os.chmod, "shared", 0o660),
              (os.chown, "shared", 0, GROUP), (os.chmod, ".", 0o777)),
        other=calls((become_member,), (put, "shared", "theirs"),
                    (put, "their-own", "x"), (os.chown, "their-own", -1, GROUP)),
        after=calls((os.unlink, "their-own"), (put, "shared", "x"),
                    (os.truncate, "shared", 1))),
    "a look at one of two names": Case(
        "", calls((os.stat, "c"), (put, "new", "x")),
        calls((put, "c", "x"), (os.link, "c", "c2"))),
    "calls that failed, and might not here": Case(
        "", calls((put, "new", "x"), (fails, errno.EFBIG, allocate, "new"),
                  (fails, errno.EPERM, os.unlink, "c"),
                  (fails, errno.EPERM, put, "c", "mine")),
        calls((put, "c", "before"), (immutable, "+", "c")),
        after=calls((immutable, "-", "c"))),
    "contents of a file with a name that nobody used": Case(
        "", calls((read, "c"), (put, "c", "mine")),
        calls((put, "c", "before"), (os.link, "c", "c2"))),
}
ON_A_SMALL_DISK = ("a disk that was full",)
# Reasons that no case plants, and why.
NOT_PLANTED = {
    "DIR itself is left as it is": "it forbids every change of DIR",
    "its directory is not known": "of damaged traces",
    "what was kept of it is not what was destroyed": "of damaged traces",
    "the trace does not say what it was": "of damaged traces",
    "the value that it had is not in the trace":
        "traces that can be undone have the values of attributes",
    "what it had is not in the trace": "of attributes that no trace lacks now",
    "it has got another name since": "a file without a name gets none again",
    "what it held was not kept, since its maker removed it":
        "undo_test.py, inode numbers that are given again",
    "one of them was removed, and what it held was not kept":
        "the same of exchanged ones",
}
SOURCES = ("undo.cc", "undo_plan.cc", "undo_survey.cc")


def every_reason_has_a_case(_):
    """A reason that is new in the code needs a case here."""
    told = set()
    for name in SOURCES:
        with open(os.path.join(HERE, "..", "..", "..", "tracefs", "replay",
                               name), encoding="utf-8") as file:
            text = re.sub(r'"\s*\n\s*"', "", file.read())
        told |= set(re.findall(
            r'(?:return|Refuse\(|RefuseUnknown\(a,|kNot\w+\[\] =)\s*"([^"]{4,}[^" ])"',
            text))
        told |= {"operation N" + rest for rest in re.findall(
            r'std::to_string\([\w>-]+\) \+\s*"([^"]+)"', text)
            if rest.startswith((" changed", ", which"))}
    planted = {reason for case in CASES.values() for reason in case.reasons}
    expect_equal(told - planted - set(NOT_PLANTED), set(),
                 "reasons without a case")
    expect_equal((planted | set(NOT_PLANTED)) - told, set(),
                 "cases of reasons that are never told")


class Player:
    """A process that does its part of a case when it is told to."""

    def __init__(self, source, title, part):
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.abspath(__file__), "--part", title,
             part, source],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        expect_equal(self.process.stdout.readline(), "ready\n", part)

    def play(self):
        out, _ = self.process.communicate("go\n")
        expect_equal((self.process.returncode, out), (0, "done\n"), "a part")


def play(title, part, source):
    print("ready", flush=True)
    sys.stdin.readline()
    os.chdir(source)
    getattr({**CASES, **HARMLESS}[title], part)()
    print("done", flush=True)


def reasons(suite, source, trace, pid, *words):
    """Why steps are not taken back; empty if all are."""
    done = suite.tool("tracefs-replay", trace, "--root", source, "--undo",
                      f"cpid = {pid}", "--format", "json", *AS_IT_WAS, *words)
    expect(done.returncode in (0, 1), done.stdout + done.stderr)
    said = json.loads(done.stdout)
    expect(said["steps"], "nothing was to be taken back")
    expect_equal(said["doubt"], "", "doubt")
    return {re.sub(r"operation \d+", "operation N",
                   re.sub(r": its (filter|tracer) .*", "", step["not_done"]))
            for step in said["steps"] if "not_done" in step}


def tree(suite, title, planted, source=None):
    """A recorded tree: (source, trace, pid, digest before)."""
    case = {**CASES, **HARMLESS}[title]
    name = ("planted " if planted else "control ") + title
    source = source or suite.folder(name)
    os.chdir(source)
    (case.before if planted else case.unplanted or case.before)()
    before = tree_digest(source, times=False)
    os.chdir("/")
    trace = suite.path(name + ".trace")
    players = [Player(source, title, part) for part in ("mine", "other")]
    mount = suite.mount(source, source, (
        case.left_out if planted else "", case.stream(trace),
        f'file = "{trace}" buf = 1048576'))
    players[0].play()
    if planted:
        for word in ("stop", "start"):
            if case.stops:
                suite.command("tracefs-ctl", source, word, "1")
            if word == "stop":
                players[1].play()
    players[1].process.kill()
    mount.unmount()
    if planted:
        os.chdir(source)
        case.after()
        os.chdir("/")
    return source, trace, players[0].pid, before


def refuses(suite, title):
    source, trace, pid, before = tree(suite, title, planted=False)
    expect_equal(reasons(suite, source, trace, pid, "--apply"), set(),
                 "refused, though nothing forbids it")
    expect_equal(tree_digest(source, times=False), before, "the tree before")
    source, trace, pid, _ = tree(suite, title, planted=True)
    now = tree_digest(source, times=False)
    for words in ((), ("--apply",)):
        expect_equal(reasons(suite, source, trace, pid, *words),
                     CASES[title].reasons, "reasons")
        expect_equal(tree_digest(source, times=False), now,
                     "what was refused is left alone")


def hinders_nothing(suite, title):
    with suite.tmpfs("small", size="200k") if title in ON_A_SMALL_DISK \
            else contextlib.nullcontext() as source:
        all_comes_back(suite, title, source)


def all_comes_back(suite, title, source):
    source, trace, pid, before = tree(suite, title, True, source)
    expect_equal(reasons(suite, source, trace, pid, "--apply"), set(),
                 "refused, though nothing forbids it")
    expect_equal(tree_digest(source, times=False), before, "the tree before")


def main():
    if sys.argv[1:2] == ["--part"]:
        play(*sys.argv[2:])
        return
    suite = Suite("undo_refusals", __doc__)
    suite.run("every reason has a case", every_reason_has_a_case, suite)
    for title in CASES:
        suite.run(title, refuses, suite, title)
    for title in HARMLESS:
        suite.run(f"no hindrance: {title}", hinders_nothing, suite, title)
    suite.finish()


if __name__ == "__main__":
    main()
