#!/usr/bin/env python3
"""The Python wheel: its list is right, it is the same when it is made again, and the
module in it reads a trace with the library in it, wherever it is unpacked."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MAKE = ROOT / "packaging/wheel.py"
MODULE = ROOT / "tracefs/reader/python/tracefs"
TRACE = ROOT / "docs/examples/sample.trace"


def fail(text):
    sys.exit(f"wheel_test: {text}")


def made(library, folder):
    done = subprocess.run(
        [sys.executable, "-B", MAKE, "--version", "1.2.3", "--module", MODULE,
         "--library", library, folder], check=True, text=True,
        stdout=subprocess.PIPE, env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
    return pathlib.Path(done.stdout.strip())


def check_list(wheel):
    """RECORD has all files, with their sums, as pip wants them."""
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        record = next(name for name in names if name.endswith("/RECORD"))
        rows = list(csv.reader(io.StringIO(files.read(record).decode())))
        if {row[0] for row in rows} != names or len(rows) != len(names):
            fail(f"RECORD lists {rows}, and there are {names}")
        for name, digest, size in rows:
            if name == record:
                continue
            data = files.read(name)
            sha = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            if (digest, size) != ("sha256=" + sha.decode().rstrip("="),
                                  str(len(data))):
                fail(f"RECORD is wrong about {name}")


def check_module(wheel, folder):
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("TRACEFS_", "LD_", "PYTHONPATH"))}
    done = subprocess.run(
        [sys.executable, "-B", "-c",
         "import sys, tracefs\n"
         "maps = open('/proc/self/maps').read()\n"
         "print(next(l.split()[-1] for l in maps.splitlines() if 'tracefs-reader'"
         " in l))\n"
         "print(sum(1 for _ in tracefs.open(sys.argv[1])))", TRACE],
        env=dict(environment, PYTHONPATH=folder), check=True, text=True,
        stdout=subprocess.PIPE)
    library, count = done.stdout.split()
    if not library.startswith(str(folder)):
        fail(f"the module reads with {library}, not with the library beside it")
    if int(count) != 483:
        fail(f"{count} operations, not 483")


def main():
    library = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        folders = [pathlib.Path(place, name) for name in ("one", "two", "three")]
        for folder in folders:
            folder.mkdir()
        wheel, again = made(library, folders[0]), made(library, folders[1])
        if wheel.read_bytes() != again.read_bytes():
            fail("made again, the wheel is another one")
        check_list(wheel)
        check_module(wheel, folders[2])
    print("ok: wheel")


if __name__ == "__main__":
    main()
