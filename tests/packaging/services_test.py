#!/usr/bin/env python3
"""As systemd runs them: units that it understands, sockets that are handed over,
word of readiness, life and end, and configs and certificates taken anew while all
goes on. systemd itself need not run: it is played here."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
from certificates import make_certificates
from staged import expect, finish, have, must, run

PATIENCE_S = 60


class Manager:
    """The service manager's end of sd_notify(3), and a service of it."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(PATIENCE_S)
        self.heard = []
        self.process = None
        self.said = []  # lines of its standard error

    def start(self, *command, sockets=(), names="", watchdog_us=600000):
        environment = {**os.environ, "NOTIFY_SOCKET": self.path,
                       "WATCHDOG_USEC": str(watchdog_us)}
        if sockets:
            environment.update(LISTEN_FDS=str(len(sockets)),
                               LISTEN_FDNAMES=names)

        def hand_over():
            kept = [os.dup(one.fileno()) for one in sockets]
            kept = [os.dup2(fd, 100 + i) for i, fd in enumerate(kept)]
            for i, fd in enumerate(kept):
                os.dup2(fd, 3 + i, inheritable=True)
                os.close(fd)

        # The number of the process is part of what it is told.
        self.process = subprocess.Popen(
            ["sh", "-c", "LISTEN_PID=$$ exec \"$@\"", "sh",
             *[str(word) for word in command]], env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            close_fds=False, preexec_fn=hand_over)
        self.reader = threading.Thread(
            target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def says(self, text):
        """Waits until its standard error has that."""
        deadline = time.monotonic() + PATIENCE_S
        while not any(text in line for line in self.said):
            if time.monotonic() > deadline:
                expect(False, f"not said: {text}; but {self.said}")
                return
            time.sleep(0.02)

    def hear(self, line):
        """Waits until it has said that."""
        deadline = time.monotonic() + PATIENCE_S
        while line not in self.heard:
            if time.monotonic() > deadline or (
                    self.process.poll() is not None and not line == "STOPPING=1"
            ):
                expect(False, f"not said: {line}; but {self.heard}")
                return
            with contextlib.suppress(TimeoutError):
                self.heard += self.socket.recv(4096).decode().split("\n")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=PATIENCE_S)
        self.reader.join(timeout=PATIENCE_S)
        return status, "".join(self.said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.socket.close()
        os.unlink(self.path)


def check_units(build, folder):
    if not have("systemd-analyze"):
        return
    root = folder / "root"
    must("cmake", "--install", build, "--prefix", "/usr", "--component", "tools",
         env={**os.environ, "DESTDIR": str(root)})
    must("cmake", "--install", build, "--prefix", "/usr", "--component",
         "receiver", env={**os.environ, "DESTDIR": str(root)})
    units = sorted(next(root.rglob("system")).iterdir())
    expect(len(units) == 3, f"units: {units}")
    for unit in units:
        # ExecStart of the build's own prefix.
        text = re.sub(r"(?m)^(Exec\w+=)\S*/(tracefs-\w+)", r"\1/usr/bin/\2",
                      unit.read_text())
        unit.write_text(text)
    system = root / "lib/systemd/system"
    system.mkdir(parents=True, exist_ok=True)
    for unit in units:
        (system / unit.name).write_text(unit.read_text())
    for name in ("sysinit.target", "basic.target", "shutdown.target",
                 "sockets.target", "multi-user.target", "local-fs.target",
                 "network.target", "-.mount", "system.slice", "umount.target"):
        for where in ("/lib/systemd/system", "/usr/lib/systemd/system"):
            if os.path.exists(f"{where}/{name}"):
                (system / name).write_bytes(
                    pathlib.Path(where, name).read_bytes())
                break
    (root / "bin").mkdir(exist_ok=True)
    (root / "bin/kill").write_text("")
    (root / "bin/kill").chmod(0o755)
    for unit in units:
        name = unit.name.replace("@.", "@data.")
        done = run("systemd-analyze", "verify", f"--root={root}", "--man=no",
                   name)
        said = [line for line in (done.stdout + done.stderr).splitlines()
                if "tracefs" in line]
        expect(not said, f"{unit.name}: {said}")
    done = run("systemd-analyze", "security", "--offline=true",
               "--threshold=20", f"--root={root}", "tracefs-recv.service")
    expect(done.returncode == 0, f"exposed: {done.stdout[-300:]}{done.stderr}")
    print("tracefs-recv.service:", done.stdout.strip().splitlines()[-1])
    for command, part in (("systemd-sysusers", "sysusers.d"),
                          ("systemd-tmpfiles", "tmpfiles.d")):
        for file in root.rglob(f"{part}/*.conf"):
            words = ["--create"] if command.endswith("files") else ["--dry-run"]
            done = run(command, *words, f"--root={root}", file)
            expect(done.returncode == 0, f"{file.name}: {done.stderr}")


def certificate_of(address):
    host, port = address
    done = run("openssl", "s_client", "-connect", f"{host}:{port}", "-showcerts",
               input="")
    return re.search(r"CN ?= ?(\w+)", done.stdout)


def check_receiver(commands, folder):
    make_certificates(str(folder), ["first", "second"],
                      "DNS:localhost,IP:127.0.0.1")
    live = folder / "live"
    live.mkdir()
    for end in ("pem", "key"):
        (live / f"host.{end}").write_bytes((folder / f"first.{end}").read_bytes())
    (live / "host.key").chmod(0o600)
    (live / "ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    out = folder / "traces"
    out.mkdir()
    plain, tls = socket.create_server(("127.0.0.1", 0)), socket.create_server(
        ("127.0.0.1", 0))
    with Manager(folder) as manager:
        manager.start(commands / "tracefs-recv", "--systemd", "--out", out,
                      "--ca", live / "ca.pem", "--cert", live / "host.pem",
                      "--tls-key", live / "host.key", sockets=(plain, tls),
                      names="tcp:tls")
        manager.hear("READY=1")
        manager.hear("WATCHDOG=1")
        before = certificate_of(tls.getsockname())
        expect(before and before[1] == "first", f"certificate: {before}")
        staying = socket.create_connection(plain.getsockname())
        for end in ("pem", "key"):
            fresh = live / f"host.{end}.new"
            fresh.write_bytes((folder / f"second.{end}").read_bytes())
            fresh.chmod(0o600)
            fresh.rename(live / f"host.{end}")
        manager.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            now = certificate_of(tls.getsockname())
            if now and now[1] == "second":
                break
        expect(now and now[1] == "second", f"after the reload: {now}")
        staying.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            expect(staying.recv(1) != b"", "a sender was disconnected")
        # What cannot be read leaves all as it was.
        (live / "host.pem").write_text("no certificate")
        manager.process.send_signal(signal.SIGHUP)
        manager.says("stay as they were")
        expect(manager.process.poll() is None, "a bad certificate ends it")
        now = certificate_of(tls.getsockname())
        expect(now and now[1] == "second", f"after a bad one: {now}")
        status, err = manager.end()
        expect(status == 0, f"tracefs-recv ended with {status}: {err}")
        manager.hear("STOPPING=1")


def check_list(commands, folder):
    store = folder / "store"
    store.mkdir()
    for number, name in enumerate(("cn-a.1.trace", "2.trace", "other")):
        (store / name).write_bytes(b"x" * 5000)
        os.utime(store / name, (10**9 + number, 10**9 + number))
    out = must(commands / "tracefs-recv", "--list", store)
    rows = [line.split("\t") for line in out.splitlines()]
    expect([row[:2] for row in rows[1:]] ==
           [["cn-a.1.trace", "cn-a"], ["2.trace", "-"]], f"--list: {out}")
    expect(rows[1][3] == "2001-09-09T01:46:40Z", f"--list: {rows[1]}")
    for words in (("--keep", "soon"), ("--keep-size", "0"),
                  ("--keep-free", "100%")):
        done = run(commands / "tracefs-recv", "--listen", "tcp:127.0.0.1:0",
                   "--out", store, *words)
        expect(done.returncode == 2 and words[0] in done.stderr,
               f"{words}: {done.stderr}")
    done = run(commands / "tracefs-recv", "--list", store / "gone")
    expect(done.returncode == 3, "--list of nothing")


def check_mount(commands, folder):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("mounting takes root and /dev/fuse: not checked")
        return
    tree = folder / "tree"
    tree.mkdir()
    config = folder / "mount.conf"

    def write(*tracers):
        config.write_text("".join(
            "%s { { %s } { stream = { STR_ALL } } { file = \"%s\" } }\n"
            % (name, where, folder / f"{name}.trace")
            for name, where in tracers))

    def tracers():
        told = json.loads(must(commands / "tracefs-ctl", tree, "list",
                               "--format", "json"))
        return {one["name"]: (one["id"], one["filter"])
                for one in told["tracers"]}

    write(("kept", ""), ("other", "op = mkdir"), ("going", "op = rmdir"))
    with Manager(folder) as manager:
        manager.start(commands / "tracefs-mount", "--foreground", "--config",
                      config, tree, tree)
        try:
            manager.hear("READY=1")
            expect(os.path.ismount(tree), "ready, and not mounted")
            manager.hear("WATCHDOG=1")
            before = tracers()
            write(("kept", ""), ("other", "op = unlink"), ("coming", "op = open"))
            manager.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + PATIENCE_S
            while "going" in tracers() and time.monotonic() < deadline:
                time.sleep(0.05)
            after = tracers()
            expect(set(after) == {"kept", "other", "coming"}, f"{after}")
            expect(after.get("kept") == before["kept"], f"{before} {after}")
            expect(after.get("other") == (before["other"][0], "op = unlink"),
                   f"{before} {after}")
            # The same by the command that made it, from another file.
            again = folder / "again.conf"
            again.write_bytes(config.read_bytes().replace(b"op = unlink",
                                                          b"op = symlink"))
            must(commands / "tracefs-mount", "--reload", tree, "--config",
                 again)
            expect(tracers()["other"][1] == "op = symlink", f"{tracers()}")
            must(commands / "tracefs-mount", "--reload", tree)
            expect(tracers() == after, f"{tracers()}, not {after}")
            done = run(commands / "tracefs-mount", "--reload", folder / "no")
            expect(done.returncode != 0 and done.stderr, "--reload of nothing")
            # Refused as a whole; all goes on.
            write(("kept", ""), ("bad", "nonsense = 1"))
            done = run(commands / "tracefs-ctl", tree, "reload")
            expect(done.returncode == 2 and "nonsense" in done.stderr,
                   f"a bad config: {done.stderr}")
            expect(tracers() == after, "a config that was refused changes much")
            # Another chain for a file that is there.
            config.write_text("kept { { } { stream = { STR_ALL } } { compress; "
                              f"file = \"{folder}/kept.trace\" }} }}\n")
            done = run(commands / "tracefs-ctl", tree, "reload")
            expect(done.returncode == 3 and "never replaces" in done.stderr,
                   f"the same file: {done.stderr}")
            expect(tracers() == after, "it was changed all the same")
            (tree / "file").touch()
            status, err = manager.end()
            expect(status == 0, f"tracefs-mount ended with {status}: {err}")
            manager.hear("STOPPING=1")
            done = run(commands / "tracefs-verify", "--accept-unsealed",
                       folder / "kept.trace")
            expect(done.returncode == 0, f"its trace: {done.stdout}")
        finally:
            run("umount", "-l", tree)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    commands = (build / "bin").resolve()
    with tempfile.TemporaryDirectory(prefix="tracefs-services-",
                                     ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        os.chmod(folder, 0o755)
        check_list(commands, folder)
        check_mount(commands, folder)
        check_receiver(commands, folder)
        check_units(build, folder)
    finish("services_test")


if __name__ == "__main__":
    main()
