#!/usr/bin/env python3
"""tracefs-recv as a command: what it gives up before it reads from the network,
and that it works without it.

Needs root for all but the first cases; exit status 77 if none can be run.
"""
import argparse
import contextlib
import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import receiver_process  # noqa: E402
from receiver_process import frame_ends, send  # noqa: E402

NOBODY = "nobody"


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def expect_equal(got, want, text):
    expect(got == want, f"{text}: got {got!r}, want {want!r}")


def start(*options):
    return receiver_process.Receiver(f"{BIN}/tracefs-recv", *options)


def golden(name):
    with open(f"{GOLDEN}/{name}.trace", "rb") as file:
        return file.read()


@contextlib.contextmanager
def folder(owner=None):
    path = tempfile.mkdtemp(prefix="tracefs-recv-")
    try:
        if owner is not None:
            os.chown(path, pwd.getpwnam(owner).pw_uid, -1)
        yield path
    finally:
        shutil.rmtree(path)


def expect_quiet_sandbox(err):
    expect("sandbox refused" not in err, err)


def keeps_traces_in_the_sandbox():
    trace = golden("every_operation")
    with folder() as out, folder() as other:
        path = f"{other}/socket"
        with start("--listen", f"unix:{path}", "--out", out) as receiver:
            expect_equal(receiver.status("NoNewPrivs"), "1", "NoNewPrivs")
            if not SANITIZED:
                expect_equal(receiver.status("Seccomp"), "2", "Seccomp")
            expect_equal(send(receiver.address, trace), 0, "first block")
            # Found again, looked through, and nothing sent twice.
            blocks = len(frame_ends(trace)) - 1
            expect_equal(send(receiver.address, trace), blocks, "first block")
            status, _, err = receiver.end()
        expect_equal(status, 0, err)
        expect_quiet_sandbox(err)
        files = glob.glob(f"{out}/*.trace")
        expect_equal(len(files), 1, "files")
        with open(files[0], "rb") as file:
            expect(file.read() == trace, "the trace is another one")
        expect(not os.path.exists(path), "the socket is left behind")


def prints_in_the_sandbox():
    for name in ("every_operation", "awkward_names", "changed"):
        trace = golden(name)
        with start("--listen", "tcp:127.0.0.1:0", "--format",
                   "text") as receiver:
            send(receiver.address, trace)
            status, out, err = receiver.end()
        expect_equal(status, 0, err)
        expect_quiet_sandbox(err)
        dump = subprocess.run([f"{BIN}/tracefs-dump",
                               f"{GOLDEN}/{name}.trace"],
                              capture_output=True, text=True)
        expect_equal(out.splitlines(), dump.stdout.splitlines(), name)


def root_keeps_no_right():
    with folder() as out:
        with start("--listen", "tcp:127.0.0.1:0", "--out",
                      out) as receiver:
            for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
                if SANITIZED:
                    continue
                expect_equal(int(receiver.status(name), 16), 0, name)
            pid = receiver.process.pid
            expect_equal(os.listdir(f"/proc/{pid}/root"), ["proc"],
                         "what its root directory holds")
            for space in ("mnt", "net", "ipc", "uts"):
                expect(os.readlink(f"/proc/{pid}/ns/{space}") !=
                       os.readlink(f"/proc/self/ns/{space}"),
                       f"it shares our namespace {space}")
            send(receiver.address, golden("every_operation"))
            expect_equal(receiver.end()[0], 0, "exit status")


def turns_into_a_user():
    nobody = pwd.getpwnam(NOBODY)
    for sandbox in ("on", "off"):
        with folder(owner=NOBODY) as out:
            with start("--listen", "tcp:127.0.0.1:0", "--out", out,
                          "--user", NOBODY, "--sandbox", sandbox) as receiver:
                ids = str(nobody.pw_uid)
                expect_equal(receiver.status("Uid").split(), 4 * [ids], "Uid")
                expect_equal(receiver.status("Gid").split(),
                             4 * [str(nobody.pw_gid)], "Gid")
                expect("0" not in receiver.status("Groups").split(),
                       receiver.status("Groups"))
                expect_equal(int(receiver.status("CapEff"), 16), 0, "CapEff")
                send(receiver.address, golden("every_operation"))
                send(receiver.address, golden("every_operation"))
                status, _, err = receiver.end()
            expect_equal(status, 0, err)
            expect_quiet_sandbox(err)
            [file] = glob.glob(f"{out}/*.trace")
            expect_equal(os.stat(file).st_uid, nobody.pw_uid, "owner")


def a_directory_of_others_is_refused():
    with folder() as out:
        with start("--listen", "tcp:127.0.0.1:0", "--out", out, "--user",
                      NOBODY) as receiver:
            status, _, err = receiver.await_end()
            expect_equal(status, 3, err)
            expect(out in err and "--user" in err, err)


def the_list_tells_sizes_and_what_they_take():
    with folder() as out:
        for name, size in (("a.trace", 5), ("b.trace", 1 << 20)):
            with open(f"{out}/{name}", "wb") as file:
                file.write(b"x" * 5)
                file.truncate(size)
        told = subprocess.run([f"{BIN}/tracefs-recv", "--list", out], check=True,
                              capture_output=True, text=True).stdout
        head, *rows = [line.split("\t") for line in told.splitlines()]
        expect_equal(head, ["#trace", "sender", "bytes", "last block",
                            "bytes on disk"], "columns")
        for row in rows:
            st = os.stat(f"{out}/{row[0]}")
            expect_equal((row[2], row[4]),
                         (str(st.st_size), str(st.st_blocks * 512)), row[0])
        expect_equal(len(rows), 2, "rows")
        # As a receiver stores what comes from a broker.
        day = f"{out}/host=alpha/date=2026-01-02"
        os.makedirs(day)
        with open(f"{day}/1f.trace", "wb") as file:
            file.write(b"x" * 7)
        told = subprocess.run([f"{BIN}/tracefs-recv", "--list", out], check=True,
                              capture_output=True, text=True).stdout
        expect_equal([line.split("\t")[:3] for line in told.splitlines()
                      if "host=" in line],
                     [["host=alpha/date=2026-01-02/1f.trace", "host=alpha", "7"]],
                     "of a host")


def an_unknown_user_is_refused():
    with folder() as out:
        with start("--listen", "tcp:127.0.0.1:0", "--out", out, "--user",
                      "no such user") as receiver:
            status, _, err = receiver.await_end()
            expect_equal(status, 2, err)
            expect("no such user" in err, err)


def main():
    global BIN, GOLDEN, SANITIZED
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--sanitized", action="store_true")
    given = parser.parse_args()
    BIN, GOLDEN, SANITIZED = given.bin, given.golden, given.sanitized
    cases = [keeps_traces_in_the_sandbox, prints_in_the_sandbox,
             the_list_tells_sizes_and_what_they_take,
             an_unknown_user_is_refused]
    if os.geteuid() == 0:
        cases += [root_keeps_no_right, turns_into_a_user,
                  a_directory_of_others_is_refused]
    else:
        print("not root: what root gives up is not tested")
    failed = 0
    for case in cases:
        began = time.monotonic()
        try:
            case()
            verdict = "ok"
        except Exception:
            traceback.print_exc()
            verdict = "FAILED"
            failed += 1
        print(f"{verdict:6} {case.__name__} ({time.monotonic() - began:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
