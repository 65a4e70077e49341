#!/usr/bin/env python3
"""A receiver as an administrator watches it: its metrics and health, its log by
number, a disk that fills up and has room again, keys that are taken anew while
senders stay."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
import receiver_process
from processes import descendants_of, is_alive, name_of
from receiver_process import frame_ends, send
from staged import expect, finish, must, run

PATIENCE_S = 60
GOLDEN = pathlib.Path(HERE).parent / "golden/v1"


def wait_until(what, text):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    expect(False, f"never: {text}")
    return None


class Journal:
    """A journal that keeps what it is sent, as fields."""

    def __init__(self, folder):
        self.path = str(folder / "journal")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.entries = []
        threading.Thread(target=self.read, daemon=True).start()

    def restart(self):
        """Another socket at the same place, as a daemon has that was restarted."""
        before = self.socket
        os.unlink(self.path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        before.shutdown(socket.SHUT_RDWR)
        before.close()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        mine = self.socket
        while True:
            try:
                entry = mine.recv(65536).decode()
            except OSError:
                return
            if not entry:
                return
            self.entries.append(dict(line.split("=", 1)
                                     for line in entry.splitlines()
                                     if "=" in line))

    def of(self, notice):
        return [entry for entry in self.entries
                if entry.get("TRACEFS_NOTICE") == notice]


class Watched(receiver_process.Receiver):
    """A receiver with metrics at a free port, read to the end of its lines."""

    def __init__(self, binary, *options):
        super().__init__(binary, "--metrics", "127.0.0.1:0", *options)
        first = "".join(self.said)
        self.base = "http://" + first.partition("metrics at ")[2].split()[0]

    def get(self, path, **headers):
        asked = urllib.request.Request(self.base + path, headers=headers)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(name + " "):
                return float(line.rpartition(" ")[2])
        return None


def check_metrics(commands, folder):
    journal = Journal(folder)
    out = folder / "kept"
    out.mkdir()
    trace = (GOLDEN / "every_operation.trace").read_bytes()
    blocks = len(frame_ends(trace)) - 1
    with Watched(commands / "tracefs-recv", "--listen", "tcp:127.0.0.1:0",
                 "--out", out, "--log", f"journal:{journal.path}") as receiver:
        expect(receiver.get("/health") == (200, "ok\n"), "health")
        expect(receiver.get("/")[0] == 404, "another page")
        send(receiver.address, trace)
        with contextlib.suppress(AssertionError, StopIteration):
            send(receiver.address, b"TFS?" + bytes(40) + trace)
        page = receiver.get("/metrics",
                            Accept="application/openmetrics-text")[1]
        for name, value in (("tracefs_recv_blocks_total", blocks),
                            ("tracefs_recv_traces", 1),
                            ("tracefs_recv_welcomed_total", 1),
                            ("tracefs_recv_disk_up", 1)):
            wait_until(lambda name=name, value=value:
                       receiver.metric(name) == value, f"{name} {value}")
        expect(0 < receiver.metric("tracefs_recv_disk_free_bytes") <=
               receiver.metric("tracefs_recv_disk_size_bytes"), page)
        wait_until(lambda: receiver.metric("tracefs_recv_senders") == 0,
                   "senders that have gone are not counted")
        expect(page.endswith("# EOF\n"), "the page has no end")
        status, _, err = receiver.end()
    expect(status == 0 and "sandbox refused" not in err, err)
    for notice, priority in (("receiving", "5"), ("sender", "6"),
                             ("ended", "5")):
        said = wait_until(lambda notice=notice: journal.of(notice),
                          f"{notice} in the log")
        expect(said and said[0]["PRIORITY"] == priority and
               said[0]["SYSLOG_IDENTIFIER"] == "tracefs-recv" and
               len(said[0]["MESSAGE_ID"]) == 32, f"{notice}: {said}")
    expect(f"{blocks} blocks" in journal.of("ended")[-1]["MESSAGE"],
           f"totals: {journal.of('ended')}")


def check_log_again(commands, folder):
    """A log that was restarted is found again, though the receiver is shut in."""
    journal = Journal(folder)
    out = folder / "kept"
    out.mkdir()
    for sandbox in ("on", "off"):
        with Watched(commands / "tracefs-recv", "--listen", "tcp:127.0.0.1:0",
                     "--out", out, "--sandbox", sandbox, "--log",
                     f"journal:{journal.path}") as receiver:
            wait_until(lambda: journal.of("receiving"), "receiving in the log")
            helpers = descendants_of(receiver.process.pid)
            # One, and its keeper.
            names = ["tracefs-keep", "tracefs-log"] if sandbox == "on" else []
            expect(list(map(name_of, helpers)) == names,
                   f"--sandbox {sandbox}: {helpers}")
            for helper in helpers:
                expect(open_files(helper) <= {"/dev/null", "socket"},
                       f"it holds {open_files(helper)}")
                expect(status_of(helper, "CapPrm").strip("0") == "" and
                       status_of(helper, "NoNewPrivs") == "1",
                       "the log's process has powers")
            journal.restart()
            journal.entries.clear()
            status, _, err = receiver.end()
            expect(status == 0 and "sandbox refused" not in err, err)
            wait_until(lambda: journal.of("ended"),
                       f"--sandbox {sandbox}: the restarted log hears of the end")
        for helper in helpers:
            wait_until(lambda helper=helper: not is_alive(helper),
                       "the log's process ends")


def status_of(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":", 1) for line in text.splitlines())[key].strip()


def open_files(pid):
    return {os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0]
            for name in os.listdir(f"/proc/{pid}/fd")}


def check_full_disk(commands, folder):
    if os.geteuid() != 0:
        print("a disk of one's own takes root: not checked")
        return
    journal = Journal(folder)
    disk = folder / "disk"
    disk.mkdir()
    done = run("mount", "-t", "tmpfs", "-o", "size=64k", "tracefs-test", disk)
    if done.returncode != 0:
        print(f"no tmpfs here: {done.stderr}: not checked")
        return
    try:
        filler = disk / ".filler"
        with contextlib.suppress(OSError), filler.open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
        trace = (GOLDEN / "every_operation.trace").read_bytes()
        with Watched(commands / "tracefs-recv", "--listen", "tcp:127.0.0.1:0",
                     "--out", disk, "--log",
                     f"journal:{journal.path}") as receiver:
            try:
                send(receiver.address, trace)
                expect(False, "a full disk takes a trace")
            except (AssertionError, StopIteration, OSError):
                pass
            wait_until(lambda: receiver.get("/health")[0] == 503, "ill health")
            text = receiver.get("/health")[1]
            expect("No space" in text, f"health: {text}")
            wait_until(lambda: receiver.metric("tracefs_recv_disk_up") == 0,
                       "disk_up 0")
            said = wait_until(lambda: journal.of("disk_full"), "disk_full")
            expect(said and said[0]["PRIORITY"] == "3", f"disk_full: {said}")
            filler.unlink()
            send(receiver.address, trace)
            wait_until(lambda: receiver.get("/health")[0] == 200,
                       "health with room again")
            wait_until(lambda: journal.of("output_back"), "output_back")
            status, _, err = receiver.end()
        expect(status == 0, err)
    finally:
        run("umount", "-l", disk)


def encrypted_trace(commands, folder, name, key):
    """Of a mount whose key is a credential, as systemd hands them over."""
    tree = folder / f"tree-{name}"
    tree.mkdir()
    trace = folder / f"{name}.trace"
    config = folder / f"{name}.conf"
    config.write_text("{ {} { stream = { STR_ALL } } { encrypt key = "
                      f"credential:{key}; file = \"{trace}\" }} }}\n")
    environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(folder / "keys")}
    must(commands / "tracefs-mount", "--config", config, tree, tree,
         env=environment)
    try:
        (tree / f"file-{name}").touch()
    finally:
        must(commands / "tracefs-ctl", tree, "unmount")
    return trace.read_bytes()


def check_keys(commands, folder):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("mounting takes root and /dev/fuse: not checked")
        return
    keys = folder / "keys"
    keys.mkdir(mode=0o700)
    for name in ("one", "two"):
        must(commands / "tracefs-keygen", "secret", keys / name)
        # What newer service managers leave to an ACL, whose mask this is.
        (keys / name).chmod(0o440)
    traces = {name: encrypted_trace(commands, folder, name, key)
              for name, key in (("one", "one"), ("early", "two"),
                                ("two", "two"))}
    (keys / "one").chmod(0o444)
    (folder / "one.trace").unlink()
    config = folder / "one.conf"
    done = run(commands / "tracefs-mount", "--config", config, folder, folder,
               env={**os.environ, "CREDENTIALS_DIRECTORY": str(keys)})
    expect(done.returncode == 2 and "credential 'one'" in done.stderr,
           f"a credential that all may read: {done.stderr}")
    run("umount", "-l", folder)
    done = run(commands / "tracefs-mount", "--config", config, folder, folder)
    expect(done.returncode != 0 and "LoadCredential" in done.stderr,
           f"no credentials: {done.stderr}")
    place = folder / "ring"

    def put(*names, text=""):
        fresh = folder / "ring.new"
        fresh.write_text("".join((keys / name).read_text() for name in names) +
                         text)
        fresh.chmod(0o600)
        fresh.rename(place)

    put("one")
    with Watched(commands / "tracefs-recv", "--listen", "tcp:127.0.0.1:0",
                 "--format", "jsonl", "--key", place) as receiver:
        staying = receiver_process.connect(receiver.address)
        send(receiver.address, traces["one"])
        # Whether it is refused or not: there is no key for it.
        with contextlib.suppress(AssertionError, StopIteration, OSError):
            send(receiver.address, traces["early"])

        def reload(result, times):
            receiver.process.send_signal(signal.SIGHUP)
            wait_until(lambda: receiver.metric(
                f'tracefs_recv_reloads_total{{result="{result}"}}') == times,
                f"reload: {result}")

        put(text="no key\n")
        reload("refused", 1)
        put("one", "two")
        reload("done", 1)
        send(receiver.address, traces["two"])
        staying.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            expect(staying.recv(1) != b"", "a sender was disconnected")
        status, out, err = receiver.end()
    expect(status == 0 and "sandbox refused" not in err, err)
    expect("stay as they were" in err, f"nothing is said of it: {err}")
    paths = {json.loads(line).get("path") for line in out.splitlines()}
    for name in traces:
        expect((f"/file-{name}" in paths) == (name != "early"),
               f"file-{name} and {paths}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    commands = (parser.parse_args().build / "bin").resolve()
    for check in (check_metrics, check_log_again, check_full_disk, check_keys):
        with tempfile.TemporaryDirectory(prefix="tracefs-receiver-",
                                         ignore_cleanup_errors=True) as folder:
            try:
                check(commands, pathlib.Path(folder))
            except (OSError, AssertionError, StopIteration,
                    subprocess.SubprocessError) as error:
                expect(False, f"{check.__name__}: {error!r}")
    finish("receiver_test")


if __name__ == "__main__":
    main()
