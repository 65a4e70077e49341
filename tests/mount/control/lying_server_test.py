#!/usr/bin/env python3
"""tracefs-ctl against a control server that lies. The server is a few lines of
Python in the place of a real mount's: of an ordinary user, whom root's tracefs-ctl
must not obey, and of root, as a daemon would be that somebody steers. What it says
is printed, escaped and bounded; nothing that it names is opened, read, made or
connected to."""

import array
import glob
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))
# pylint: disable=wrong-import-position
import own_namespace
from tracefs_harness import (
    Skip, Suite, expect, expect_equal, wait_until)

ALICE = 61011
MALLORY = 61012
SECRET = "the-secret-of-root"
MAX_MEMORY_KIB = 512 << 10


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def as_user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def device_of(point):
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        rows = [line.split() for line in table]
    return [row[2] for row in rows if row[4] == point][-1]


def socket_of(point, uid):
    """Where the mount's control socket lies."""
    places = (["/run/tracefs", "/tmp/tracefs-0*"] if uid == 0 else
              [f"/run/user/{uid}/tracefs", f"/tmp/tracefs-{uid}*"])

    def found():
        return [path for place in places
                for path in glob.glob(f"{place}/{device_of(point)}.sock")]

    # The mount is there a moment before it listens.
    wait_until(found, f"the socket of {point}")
    (path,) = found()
    return path


class Liar:
    """A control server of `uid` at the socket of a mount. `answers`: by command,
    the result, or bytes to send instead of a line. Remembers every request, and of
    every descriptor that came what it is and what can be read from it."""

    def __init__(self, suite, name, path, uid, answers):
        self.log = suite.path(name + ".liar")
        self.answers = answers
        if os.path.exists(self.log):
            os.unlink(self.log)
        os.close(os.open(self.log, os.O_CREAT | os.O_WRONLY, 0o600))
        os.chown(self.log, uid, uid)
        ready = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                become(uid)
                self._serve(path, ready[1])
            finally:
                os._exit(1)
        os.close(ready[1])
        expect_equal(os.read(ready[0], 1), b"r", "the lying server")
        os.close(ready[0])

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def seen(self):
        with open(self.log, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def requests(self):
        return [one["request"] for one in self.seen() if "request" in one]

    def files(self):
        return [one["file"] for one in self.seen() if "file" in one]

    def _serve(self, path, ready):
        if os.path.lexists(path):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(16)
        os.write(ready, b"r")
        while True:
            connection, _ = listener.accept()
            self._note({"connection": True})
            if os.fork() == 0:
                self._talk(connection)
                os._exit(0)
            connection.close()

    def _note(self, what):
        with open(self.log, "a", encoding="utf-8") as out:
            out.write(json.dumps(what) + "\n")

    def _talk(self, connection):
        pending = b""
        while True:
            data, rights, _, _ = connection.recvmsg(
                1 << 20, socket.CMSG_SPACE(253 * 4))
            for level, kind, raw in rights:
                expect_equal((level, kind),
                             (socket.SOL_SOCKET, socket.SCM_RIGHTS), "a message")
                for fd in array.array("i", raw[:len(raw) // 4 * 4]):
                    self._note({"file": self._describe(fd)})
            if not data:
                return
            pending += data
            while b"\n" in pending:
                line, pending = pending.split(b"\n", 1)
                request = json.loads(line)
                self._note({"request": request})
                if not self._answer(connection, request["command"]):
                    return

    @staticmethod
    def _describe(fd):
        text = os.readlink(f"/proc/self/fd/{fd}")
        try:
            os.lseek(fd, 0, os.SEEK_SET)
            text += "=" + os.read(fd, 100).decode("latin-1")
        except OSError:
            pass
        os.close(fd)
        return text

    def _answer(self, connection, command):
        answer = self.answers.get(command, {})
        try:
            if callable(answer):
                answer(connection)
                return False
            if isinstance(answer, bytes):
                connection.sendall(answer)
                return True
            connection.sendall(json.dumps({"ok": True, "result": answer})
                               .encode() + b"\n")
        except OSError:
            return False
        return True


class Scene:
    """A mount of `uid` whose control server is a liar."""

    def __init__(self, suite, name, uid, answers):
        self.suite = suite
        self.uid = uid
        self.name = name
        base = suite.folder(name)
        os.chown(base, uid, uid)
        source = suite.folder(name, "source")
        self.point = suite.folder(name, "mnt")
        for folder in (source, self.point):
            os.chown(folder, uid, uid)
        self.private = suite.folder(name, "private", mode=0o700)
        os.chown(self.private, 0, 0)
        self.secret = os.path.join(self.private, "secret")
        with open(self.secret, "w", encoding="ascii") as out:
            out.write(SECRET)
        os.chmod(self.secret, 0o600)
        self.noted = suite.config(
            ("", "STR_ALL", f'file = "{base}/first.trace"'))
        self.mount = suite.mount_command(
            [*(as_user(uid) if uid else []),
             os.path.join(suite.bin, "tracefs-mount"), source, self.point,
             "--config", self.noted, "--foreground"], self.point)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.config = suite.path(name + ".conf")
        self.trace = os.path.join(base, "own.trace")
        with open(self.config, "w", encoding="ascii") as out:
            out.write('mine { {} { stream = { STR_ALL } } { file = "%s" } }\n'
                      % self.trace)
        self.liar = Liar(suite, name, socket_of(self.point, uid), uid,
                         answers(self) if callable(answers) else answers)

    def made(self, name):
        return os.path.join(self.private, name)

    def files_that_it_names(self):
        port = self.listener.getsockname()[1]
        return [{"path": path, "kind": kind, "sync": False} for path, kind in (
            (self.secret, "read"), (self.secret, "append"),
            (self.made("appended"), "append"), (self.made("new"), "new"),
            (self.made("map"), "map"), (self.private, "directory"),
            (self.made("x"), "folder"), ("env:TRACEFS_TEST_SECRET", "secret"),
            (f"tcp:127.0.0.1:{port}", "dialer"))]

    def ctl(self, *words, **more):
        return self.suite.tool(
            "tracefs-ctl", self.point, *words,
            env={**os.environ, "TRACEFS_TEST_SECRET": SECRET}, **more)

    def expect_nothing_obeyed(self, what):
        """Descriptors: of the config's own trace only. Nothing made or read."""
        expect_equal(os.listdir(self.private), ["secret"], f"{what}: made")
        with open(self.secret, encoding="ascii") as text:
            expect_equal(text.read(), SECRET, what)
        foreign = [file for file in self.liar.files()
                   if not file.startswith(self.trace + "=")
                   and file != self.trace]
        expect_equal(foreign, [], f"{what}: descriptors that were sent")
        expect(SECRET not in json.dumps(self.liar.seen()),
               f"{what}: the secret was sent: {self.liar.seen()}")
        try:
            self.listener.accept()
        except BlockingIOError:
            return
        expect(False, f"{what}: it was connected to")

    def end(self):
        self.liar.end()
        self.listener.close()
        self.mount.kill()
        wait_until(lambda: not self.mount.is_mounted(), "the watchdog")
        for leftover in (self.liar.log,):
            os.unlink(leftover)


# --- What root's tracefs-ctl does for whom

OWNERS = ((ALICE, ()), (ALICE, ("--as-owner",)), (0, ()))


def every_owner(suite, name, answers, body):
    for number, (uid, options) in enumerate(OWNERS):
        scene = Scene(suite, f"{name}-{number}", uid, answers)
        try:
            body(scene, options)
            if uid != 0 and not options:
                # Not even asked.
                expect_equal(scene.liar.seen(), [], "a foreign mount was asked")
        finally:
            scene.end()


def check_names_files(suite):
    """`add`: the server asks for files of root's."""
    def answers(scene):
        return {"check": {"files": scene.files_that_it_names(), "users": [],
                          "groups": []},
                "add": {"ids": [7], "warnings": []}}

    def body(scene, options):
        done = scene.ctl("add", scene.config, *options)
        expect(done.returncode != 0, f"obeyed: {done.stdout}")
        scene.expect_nothing_obeyed("add")

    every_owner(suite, "check", answers, body)


def list_names_a_config(suite):
    """`reload`: the server says which file the mount's config is."""
    def answers(scene):
        return {"list": {"config_file": scene.secret, "tracers": []},
                "compare": {"kept": [], "filters": [], "added": "",
                            "removed": []}}

    def body(scene, options):
        scene.ctl("reload", *options)
        scene.expect_nothing_obeyed("reload")

    every_owner(suite, "list", answers, body)


def list_names_a_folder(suite):
    """`reload`: where configs, keys and state of a mount by --config-dir lie."""
    def answers(scene):
        return {"list": {"config_dir": scene.private,
                         "config_keys": [scene.secret],
                         "config_state": scene.made("state"), "tracers": []}}

    def body(scene, options):
        done = scene.ctl("reload", *options)
        said = done.stdout + done.stderr
        expect(SECRET not in said and scene.secret not in said, said)
        scene.expect_nothing_obeyed("reload")

    every_owner(suite, "folder", answers, body)
    # With a good key, the state is made.
    public = suite.path("public.key")
    suite.command("tracefs-keygen", "sign", suite.path("private.key"), public)
    os.chmod(public, 0o644)

    def with_key(scene):
        return {"list": {**answers(scene)["list"], "config_keys": [public]}}

    every_owner(suite, "folder-key", with_key, body)


def undo_names_a_trace(suite):
    """`undo` and `release --undo`: the server says which trace it is, where what
    was kept lies, and who is held."""
    def answers(scene):
        names = {"trace": scene.secret, "traces": [scene.secret],
                 "kept": scene.private, "mount": "/", "source": scene.private}
        held = [{"hold": 1, "pid": pid} for pid in (1, "x", -4, 2**40)]
        return {"flush": names, "list": {**names, "tracers": []},
                "held": {"holds": held, **names}}

    def body(scene, options):
        for words in (("undo", "cuid = 0"), ("undo", "cuid = 0", "--dry-run"),
                      ("release", "1", "--undo")):
            done = scene.ctl(*words, *options)
            said = done.stdout + done.stderr
            expect(SECRET not in said and scene.private not in said, said)
            scene.expect_nothing_obeyed(words[0])
        expect(all(request["command"] in ("flush", "held", "spare", "release")
                   for request in scene.liar.requests()),
               scene.liar.requests())

    every_owner(suite, "undo", answers, body)


def compare_writes_a_config(suite):
    """`reload FILE`: the server says which tracers of the config are new."""
    def answers(scene):
        text = ('{ {} { stream = { STR_ALL } } { file = "%s" } }\n'
                % scene.made("compared"))
        return {"compare": {"kept": [], "filters": [], "added": text,
                            "removed": []},
                "check": {"files": [{"path": scene.made("compared"),
                                     "kind": "new", "sync": False}],
                          "users": [], "groups": []},
                "add": {"ids": [7], "warnings": []}}

    def body(scene, options):
        done = scene.ctl("reload", scene.config, *options)
        expect(done.returncode != 0, f"obeyed: {done.stdout}")
        scene.expect_nothing_obeyed("reload FILE")

    every_owner(suite, "compare", answers, body)


def reload_to_its_end(suite):
    """`reload FILE` with answers that make sense, and lie in what they name."""
    def answers(scene):
        return {"compare": {"kept": [3], "removed": [4, 5], "added": [1],
                            "filters": [{"tracer": 6, "as": 1,
                                         "filter": scene.secret}],
                            "config_file": scene.secret},
                "check": {"files": [{"path": scene.trace, "kind": "new",
                                     "sync": False}],
                          "users": ["root"], "groups": [], "warnings": [],
                          "secret": scene.files_that_it_names()},
                "add": {"ids": [7], "warnings": [scene.secret]},
                "set-filter": {"file": scene.secret},
                "remove": {"files": scene.files_that_it_names()}}

    def body(scene, options):
        done = scene.ctl("reload", scene.config, *options)
        scene.expect_nothing_obeyed("reload FILE")
        asked = [one["command"] for one in scene.liar.requests()]
        said.append((done.returncode, asked, done.stderr))

    said = []
    every_owner(suite, "whole", answers, body)
    expect(any(status == 0 and asked[-1] == "remove"
               for status, asked, _ in said), f"none came to its end: {said}")


def no_file(scene, path):
    """`reload` while something else than a file lies at `path`."""
    for make in (os.mkfifo, os.mkdir,
                 lambda path: os.symlink(scene.secret, path),
                 lambda path: os.symlink("/dev/zero", path),
                 lambda path: os.mknod(path, stat.S_IFSOCK | 0o600)):
        if os.path.isdir(path):
            os.rmdir(path)
        else:
            os.unlink(path)
        make(path)
        done = scene.ctl("reload", timeout=30)
        expect(done.returncode != 0 and SECRET not in done.stderr,
               f"{done.stdout}{done.stderr}")
        scene.expect_nothing_obeyed("reload")
    os.unlink(path)


def notes_that_are_no_files(suite):
    """What lies where the mount noted its config holds nobody up, nor does what
    lies where that config was."""
    scene = Scene(suite, "note", 0, {"list": {"tracers": []}})
    try:
        notes = [path for place in ("/run/tracefs-configs",
                                    "/tmp/tracefs-0-configs")
                 for path in glob.glob(
                     f"{place}/{device_of(scene.point)}.config")]
        expect_equal(len(notes), 1, "notes of the mount")
        no_file(scene, scene.noted)
        no_file(scene, notes[0])
    finally:
        scene.end()


def compare_picks_tracers_twice(suite):
    """The numbers of tracers: none twice, none that the config has not."""
    for number, added in enumerate(([1, 1], [2], [0], [-1], [1 << 40], ["1"],
                                    {"1": 1}, [[1]])):
        scene = Scene(suite, f"numbers-{number}", 0, {
            "compare": {"kept": [], "filters": [], "added": added,
                        "removed": []},
            "add": {"ids": [7], "warnings": []}})
        try:
            done = scene.ctl("reload", scene.config)
            expect_equal(done.returncode, 1, f"{added}: {done.stderr}")
            expect("makes no sense" in done.stderr, done.stderr)
            expect_equal(scene.liar.files(), [], f"{added}: files")
            expect(not os.path.exists(scene.trace), f"{added}: a trace was made")
        finally:
            scene.end()


# --- What it prints

# A title, a bell, another colour, a line that pretends to be ours, what turns the
# direction of text, an 8-bit control character.
ESCAPES = "\x1b]0;owned\x07\x1b[31mred\r\ntracefs-ctl: fine\u202e\u009b2J"
HIDDEN = ("\x1b", "\x07", "\r", "\u202e", "\u009b", "\x00")


def expect_printable(done, what):
    said = done.stdout + done.stderr
    found = [c for c in HIDDEN if c in said]
    expect_equal(found, [], f"{what}: {said!r}")
    expect("\ntracefs-ctl: fine" not in "\n" + said, f"{what}: {said!r}")
    expect(done.returncode >= 0, f"{what}: ended by {-done.returncode}")


def everywhere(value):
    """Answers whose every text, and every name of a member, is `value`."""
    tracer = {"id": 1, "name": value, "state": value, "kind": value,
              "filter": value, "drivers": value, "output": value,
              "config": value, "written": 1, "lost": {value: 3},
              "error": value, "ops": {value: 1},
              "stages": [{"name": value, "blocks": 1}]}
    alarm = {"number": 1, "time": 1, "key": value, "count": 1, "op": value,
             "pid": 1, "uid": 1, "comm": value, "path": value,
             "exe": value, "cmdline": value, "tty": value, "cgroup": value,
             "ancestors": [{"pid": 1, "comm": value}, value],
             "touched": [value, 7], "not_known": [value],
             "actions": [{"action": value, "tracer": 1, "outcome": value}]}
    common = {"mount": value, "source": value, "visibility": value,
              "sandbox": value, "never_visible": value, "before": value,
              "config_file": value, "tracers": [tracer], "files": [],
              "warnings": [value], "ids": [1], "file": value,
              "choices": [{"subject": value, "choice": value, "why": value,
                           "hides": value, "causes": [
                               {"tracer": 1, "name": value, "op": value,
                                "filter": value}]}],
              "open": {"files": 1, "opened_before": 2, "examples": [
                  {"path": value, "mode": value, "now": value}]},
              "rules": [{"tracer": 1, "rule": 1, "title": value, "text": value,
                         "state": "alarm", "alarms": 3, "told": 3,
                         "last": [alarm]}],
              "kept": [], "added": [], "removed": [], "filters": []}
    return common


JSON = ("--format", "json")
COMMANDS = (("list",), ("list", *JSON), ("explain",), ("explain", *JSON),
            ("stats",), ("stats", *JSON), ("rules",), ("rules", *JSON),
            ("flush",), ("remove", "1"), ("stop", "x"), ("snapshot", "1"),
            ("set-filter", "1", "op = open"), ("reload",), ("tail",),
            ("top", "--once", "--interval", "100ms"),
            ("top", "--once", "--interval", "100ms", "--by", "op"),
            ("top", "--once", "--interval", "100ms", "--view", "files"))


def prints_no_escapes(suite):
    def results(scene):
        values = everywhere(ESCAPES)
        # What every command may look at; the stream after an answer ends at once.
        answers = {name: values for name in (
            "list", "explain", "stats", "rules", "flush", "remove", "stop",
            "start", "snapshot", "set-filter", "compare", "check", "add")}
        # What follows is silent, as of a mount where nothing happens.
        def silent(connection):
            connection.sendall(json.dumps({"ok": True, "result": values})
                               .encode() + b"\n")
            connection.recv(1)

        def unmounted(connection):
            subprocess.run(["umount", "-l", scene.point], check=True)
            words = {"tracers": [{"id": 1, "name": ESCAPES, "error": ESCAPES,
                                  "lost": {ESCAPES: 1}}]}
            connection.sendall(b'{"ok":true,"result":{}}\n'
                               + json.dumps(words, ensure_ascii=False).encode()
                               + b"\n")
            os.kill(os.getppid(), signal.SIGKILL)  # tracefs-ctl waits for that

        answers["watch"] = silent
        answers["tail"] = lambda connection: connection.sendall(
            json.dumps({"ok": True, "result": values}).encode() + b"\n")
        answers["unmount"] = unmounted
        return answers

    def errors(scene):
        error = {"ok": False, "error": {"code": "system", "errno": 5,
                                        "message": ESCAPES}}
        line = json.dumps(error, ensure_ascii=False).encode() + b"\n"
        return {name: line for name in (
            "list", "explain", "stats", "rules", "flush", "remove", "stop",
            "start", "snapshot", "set-filter", "compare", "check", "add",
            "watch", "tail", "unmount")}

    for number, (answers, last) in enumerate((
            (results, ()), (results, ("--format", "json")), (errors, ()))):
        scene = Scene(suite, f"escapes-{number}", 0, answers)
        try:
            # The last one takes the mount away.
            for words in (*COMMANDS, ("add", scene.config),
                          ("reload", scene.config), ("unmount", *last)):
                done = scene.ctl(*words, timeout=60)
                expect_printable(done, f"{number}: {' '.join(words)}")
        finally:
            scene.end()


# What stands in the place of each value of a true answer.
STRANGE = (None, True, -1, 1 << 63, 1 << 64, 1e308, -0.5, "", "x", [], {}, [[]],
           {"x": 1}, "\x00", 0)


def places_in(value, at=()):
    """The way to each value in it, the whole included."""
    yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places_in(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places_in(inner, (*at, number))


def with_another(value, at, other):
    """A copy, with `other` there."""
    if not at:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = with_another(value[at[0]], at[1:], other)
    return copy


def true_answers(suite):
    """What a real mount says, after some work."""
    base = suite.folder("true")
    config = suite.path("true.conf")
    with open(config, "w", encoding="ascii") as out:
        out.write('{ {} { stream = { STR_ALL } }\n'
                  f'  {{ checksum alg = crc32c; compress; file = "{base}/a.trace" }} }}\n'
                  '{ { op = unlink } { stream = { STR_ALL };\n'
                  '    when seen(unlink by pid) then { alarm "gone" } }\n'
                  f'  {{ file = "{base}/b.trace" }} }}\n')
    point = suite.folder("true", "mnt")
    mount = suite.mount_command(
        [os.path.join(suite.bin, "tracefs-mount"), suite.folder("true", "src"),
         point, "--config", config, "--foreground"], point)
    held = open(os.path.join(point, "held"), "w", encoding="ascii")
    for number in range(5):
        with open(os.path.join(point, f"f{number}"), "w",
                  encoding="ascii") as out:
            out.write("x")
        os.unlink(out.name)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(socket_of(point, 0))
    reader = client.makefile("r", encoding="utf-8")
    with open(config, encoding="ascii") as text:
        asked = {"text": text.read()}
    answers = {}
    for name, more in (("list", {}), ("explain", {}), ("stats", {}),
                       ("rules", {}),
                       ("check", {"config": asked["text"], "file": config}),
                       ("compare", {"config": asked["text"], "file": config}),
                       ("set-filter", {"tracer": 1, "filter": "op = open"}),
                       ("flush", {})):
        client.sendall(json.dumps({"command": name, **more}).encode() + b"\n")
        said = json.loads(reader.readline())
        expect(said["ok"], f"{name}: {said}")
        answers[name] = said["result"]
    client.close()
    held.close()
    mount.unmount()
    return answers


def answers_of_other_types(suite):
    """Each value of a true answer is another one, in turn."""
    true = true_answers(suite)
    line = suite.path("other-answer")

    def other(connection):
        with open(line, "rb") as text:
            connection.sendall(text.read())

    def answers(_):
        # Of several questions of a command one gets it.
        return {**true, "add": {"ids": [7], "warnings": []}}

    tried = 0
    for asked in true:
        words = {"check": ("add", None), "compare": ("reload", None),
                 "set-filter": ("set-filter", "1", "op = open")}.get(
                     asked, (asked,))
        scene = Scene(suite, f"types-{asked}", 0, lambda s, a=asked: {
            **answers(s), a: other})
        try:
            words = [scene.config if word is None else word for word in words]
            for number, at in enumerate(places_in(true[asked])):
                strange = (STRANGE if suite.options.all
                           else [STRANGE[number % len(STRANGE)]])
                for value in strange:
                    with open(line, "w", encoding="utf-8") as out:
                        out.write(json.dumps({
                            "ok": True, "result": with_another(
                                true[asked], at, value)}) + "\n")
                    done = scene.ctl(*words, timeout=60)
                    what = f"{asked}, {value!r} at {at}"
                    expect_printable(done, what)
                    expect(done.returncode in (0, 1, 2, 3),
                           f"{what}: {done.returncode}: {done.stderr[-300:]}")
                    expect(os.stat(scene.secret).st_size == len(SECRET), what)
                    if os.path.exists(scene.trace):
                        os.unlink(scene.trace)
                    tried += 1
        finally:
            scene.end()
    return f"{tried} answers"


def stays_within_bounds(suite):
    """Answers without an end, as deep as they are long, or a byte at a time."""
    def endless(connection):
        while True:
            connection.sendall(b"x" * 65536)

    def drip(connection):
        while True:
            connection.sendall(b" ")
            time.sleep(0.1)

    def deep(connection):
        connection.sendall(b'{"ok":true,"result":' + b"[" * 5_000_000
                           + b"]" * 5_000_000 + b"}\n")

    def many(connection):
        connection.sendall(b'{"ok":true,"result":{"tracers":['
                           + b"0," * 7_000_000 + b"0]}}\n")

    def silent(connection):
        connection.recv(1)

    for name, answer in (("endless", endless), ("drip", drip), ("deep", deep),
                         ("many", many), ("silent", silent)):
        scene = Scene(suite, name, 0, {"list": answer})
        try:
            # Its own limit, so that a crash for want of memory shows as one.
            done = subprocess.run(
                ["prlimit", f"--as={MAX_MEMORY_KIB << 10}",
                 os.path.join(suite.bin, "tracefs-ctl"), scene.point, "list",
                 "--timeout", "3"], capture_output=True, text=True, check=False,
                timeout=60)
            expect(done.returncode in (0, 1, 3),
                   f"{name}: {done.returncode}: {done.stderr[-300:]}")
        finally:
            scene.end()


# --- Whose mounts

def all_is_of_ones_own(suite):
    """--all of root leaves the mounts of others alone, unless told."""
    scene = Scene(suite, "all", ALICE, {"list": {"mount": "x", "tracers": []}})
    try:
        def ctl(*words):
            return suite.tool("tracefs-ctl", "--all", *words)

        ctl("list", "--format", "json")
        ctl("stats")
        ctl("reload")
        ctl("top", "--once")
        ctl("unmount")
        expect_equal(scene.liar.seen(), [], "alice's mount was asked")
        told = ctl("list", "--format", "json", "--as-owner").stdout
        expect('{"mount":"x","tracers":[]}' in told, told)
        expect_equal([one["command"] for one in scene.liar.requests()],
                     ["list"], "what alice's mount was asked")
        done = scene.ctl("list")
        expect_equal(done.returncode, 3, done.stderr)
        expect(f"mounted by user {ALICE}: --as-owner" in done.stderr,
               done.stderr)
    finally:
        scene.end()


def acts_as_the_owner(suite):
    """--as-owner: what is opened is opened by that user."""
    def answers(scene):
        def wants(path, kind):
            return {"path": path, "kind": kind, "sync": False}
        return {"check": {"files": [wants(scene.made("deep.trace"), "new")],
                          "users": [], "groups": []},
                "add": {"ids": [7], "warnings": []}}

    scene = Scene(suite, "owner", ALICE, answers)
    try:
        # Root's own config names root's folder: alice may not go there.
        with open(scene.config, "w", encoding="ascii") as out:
            out.write('{ {} { stream = { STR_ALL } } { file = "%s" } }\n'
                      % scene.made("deep.trace"))
        done = scene.ctl("add", scene.config, "--as-owner")
        expect_equal(done.returncode, 3, done.stderr)
        expect("Permission denied" in done.stderr, done.stderr)
        scene.expect_nothing_obeyed("--as-owner")
    finally:
        scene.end()


def root_acts_on_a_real_mount(suite):
    """The honest server of an ordinary user."""
    base = suite.folder("real")
    os.chown(base, ALICE, ALICE)
    for name in ("source", "mnt"):
        os.chown(suite.folder("real", name), ALICE, ALICE)
    point = suite.path("real", "mnt")
    config = suite.config(("", "STR_ALL", f'file = "{base}/one.trace"'))
    mount = suite.mount_command(
        [*as_user(ALICE), os.path.join(suite.bin, "tracefs-mount"),
         suite.path("real", "source"), point, "--config", config,
         "--foreground"], point)
    more = suite.config(("", "STR_ALL", f'file = "{base}/two.trace"'))
    suite.command("tracefs-ctl", point, "list", status=3)
    suite.command("tracefs-ctl", point, "add", more, "--as-owner")
    expect_equal(os.stat(os.path.join(base, "two.trace")).st_uid, ALICE,
                 "whose the trace is")
    told = suite.command("tracefs-ctl", point, "reload", "--as-owner")
    expect("1 tracers as they were, 0 with another filter, 0 new, 1 gone"
           in told, told)
    suite.command("tracefs-ctl", point, "unmount", "--as-owner")
    mount.wait(0)


def umount_needs_no_word(suite):
    """umount(8) of root's takes the mount away, whatever its server says."""
    helper = os.path.join(suite.bin, "umount.fuse.tracefs")
    if not os.path.exists(helper):
        return Skip("there is no umount.fuse.tracefs in this build")

    def lies(connection):
        connection.sendall(b'{"ok":true,"result":{}}\n{"tracers":[]}\n')

    for number, answer in enumerate((lies, b'{"ok":false,"error":{"code":'
                                     b'"system","errno":16,"message":"no"}}\n')):
        scene = Scene(suite, f"umount-{number}", ALICE, {"unmount": answer})
        try:
            done = suite.tool("umount.fuse.tracefs", scene.point,
                              env={**os.environ,
                                   "TRACEFS_UMOUNT_PATIENCE": "2"})
            expect_equal(done.returncode, 0, done.stderr)
            expect(not scene.mount.is_mounted(), "it is still mounted")
        finally:
            scene.end()
    return None


# --- Where sockets lie

def a_taken_name_is_no_obstacle(suite):
    """Another user made /tmp/tracefs-UID first, with a server in it; the mount is
    controlled all the same, and the other is never asked."""
    taken = f"/tmp/tracefs-{ALICE}"

    def clear():
        for path in glob.glob(taken + "*"):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)

    kinds = {
        "a folder": lambda: os.mkdir(taken),
        "a file": lambda: open(taken, "wb").close(),
        "a link": lambda: os.symlink("/tmp", taken)}
    for name, take in kinds.items():
        clear()
        take()
        os.lchown(taken, MALLORY, MALLORY)
        if name == "a folder":
            os.chmod(taken, 0o777)
        case = "taken-" + name.split()[1]
        base = suite.folder(case)
        os.chown(base, ALICE, ALICE)
        for folder in ("source", "mnt"):
            os.chown(suite.folder(case, folder), ALICE, ALICE)
        point = suite.path(case, "mnt")
        config = suite.config(("", "STR_ALL", f'file = "{base}/x.trace"'))
        mount = suite.mount_command(
            [*as_user(ALICE), os.path.join(suite.bin, "tracefs-mount"),
             suite.path(case, "source"), point, "--config", config,
             "--foreground"], point)
        expect("no tracefs-ctl" not in mount.messages(), mount.messages())
        liar = None
        if name == "a folder":
            liar = Liar(suite, case, f"{taken}/{device_of(point)}.sock",
                        MALLORY, {"list": {"mount": "mallory"}})
        for words in ((), ("--as-owner",)):
            done = subprocess.run(
                [*(as_user(ALICE) if not words else []),
                 os.path.join(suite.bin, "tracefs-ctl"), point, "list", *JSON,
                 *words], capture_output=True, text=True, check=False,
                timeout=60)
            expect_equal(done.returncode, 0, f"{name}: {done.stderr}")
            expect_equal(json.loads(done.stdout)["mount"], point, name)
        if liar is not None:
            expect_equal(liar.seen(), [], "who took the name was asked")
            liar.end()
        mount.unmount()
    clear()


def runtime_directory_of_others(suite):
    """$XDG_RUNTIME_DIR is used if it is the user's own and closed to others."""
    good = suite.folder("xdg", "good", mode=0o700)
    os.chown(good, ALICE, ALICE)
    opened = suite.folder("xdg", "open", mode=0o755)
    os.chown(opened, ALICE, ALICE)
    foreign = suite.folder("xdg", "foreign", mode=0o700)
    os.chown(foreign, MALLORY, MALLORY)
    link = suite.path("xdg", "link")
    os.symlink(good, link)
    for folder, used in ((good, True), (opened, False), (foreign, False),
                         (link, False), ("relative", False)):
        case = f"xdg-{os.path.basename(folder)}"
        base = suite.folder(case)
        os.chown(base, ALICE, ALICE)
        for name in ("source", "mnt"):
            os.chown(suite.folder(case, name), ALICE, ALICE)
        point = suite.path(case, "mnt")
        config = suite.config(("", "STR_ALL", f'file = "{base}/x.trace"'))
        run = ["env", f"XDG_RUNTIME_DIR={folder}", *as_user(ALICE)]
        mount = suite.mount_command(
            [*run, os.path.join(suite.bin, "tracefs-mount"),
             suite.path(case, "source"), point, "--config", config,
             "--foreground"], point)
        in_it = os.path.exists(
            os.path.join(folder, "tracefs", f"{device_of(point)}.sock"))
        expect_equal(in_it, used, f"{case}: the socket is in it")
        done = subprocess.run(
            [*run, os.path.join(suite.bin, "tracefs-ctl"), point, "list"],
            capture_output=True, text=True, check=False, timeout=60)
        expect_equal(done.returncode, 0, done.stderr)
        mount.unmount()


def runtime_directory_of_root(suite):
    """What is in the environment of root's command leads nowhere."""
    folder = suite.folder("root-xdg", mode=0o700)
    scene = Scene(suite, "root-xdg-mount", 0, {"list": {"mount": "right"}})
    try:
        told = suite.tool("tracefs-ctl", scene.point, "list", *JSON,
                          env={**os.environ, "XDG_RUNTIME_DIR": folder})
        expect_equal(json.loads(told.stdout)["mount"], "right", told.stderr)
        expect_equal(os.listdir(folder), [], "what root made there")
    finally:
        scene.end()


def main():
    # Root's --all is about the mounts of this suite alone.
    own_namespace.enter({"tracefs-alice": ALICE, "tracefs-mallory": MALLORY},
                        alone=True)
    suite = Suite("lying-server", __doc__, lambda parser: parser.add_argument(
        "--all", action="store_true", help="each value of another type by every "
        "strange one"))
    for case in (check_names_files, list_names_a_config, list_names_a_folder,
                 undo_names_a_trace,
                 compare_writes_a_config, compare_picks_tracers_twice,
                 reload_to_its_end, notes_that_are_no_files,
                 prints_no_escapes, answers_of_other_types, stays_within_bounds,
                 all_is_of_ones_own,
                 acts_as_the_owner, root_acts_on_a_real_mount,
                 umount_needs_no_word, a_taken_name_is_no_obstacle,
                 runtime_directory_of_others, runtime_directory_of_root):
        suite.run(case.__name__, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
