"""A real workload whose names try every format: it copies, renames directories,
maps files, follows links, runs programs and fails; recorded with tracefs-run."""

import os
import subprocess
import sys

from command_checks import Skip

NAMES = [
    b"plain", b"a b", b'quo"te', b"apo'strophe", b"com,ma", b"semi;colon",
    b"bar|bar", b"new\nline", b"tab\tbed", b"cr\rcr", b"pct%41", b"eq=ual",
    b"=cmd()", b"trail  ", b"  lead", b"\xff\xfe", "\u00fcn\u00efc\u00f6d\u00e9".encode(),
    "\u202ertl".encode(), b"<x&y>", b"]]>", b'{"json":1}', b"back\\slash",
    b"0: 1,0,0,0!Exit", b"#hash", b"$(x)`y`", b"-dash", b"co:lon", b"\x1b[2J",
    b"\x7f", "\ufffe".encode(), b"x" * 255]

WORK = r"""
import mmap, os, sys
root = os.fsencode(sys.argv[1])
names = [bytes.fromhex(name) for name in sys.argv[2:]]
def at(*parts): return os.path.join(root, *parts)
for folder in (b"in", b"out", b"tree", b"tree/deep", b"tree/empty"):
    os.mkdir(at(folder))
for i, name in enumerate(names):
    with open(at(b"in", name), "wb") as file:
        file.write(b"d" * (i + 1))
    with open(at(b"tree/deep", name), "wb") as file:
        file.write(b"t")
for i, name in enumerate(names):
    with open(at(b"in", name), "rb") as file:
        file.read()
    source, target = os.open(at(b"in", name), os.O_RDONLY), os.open(
        at(b"out", name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    os.copy_file_range(source, target, i + 1)
    os.close(source), os.close(target)
    if i % 3 == 0:
        os.rename(at(b"out", name), at(b"out", b"moved-" + name[:200]))
    elif i % 3 == 1:
        os.link(at(b"out", name), at(b"out", b"linked-" + name[:200]))
    else:
        os.symlink(name, at(b"out", b"symbolic-" + name[:200]))
    os.path.exists(at(b"out", b"missing-" + name[:200]))
os.rename(at(b"tree"), at(b"wood"))
os.rename(at(b"wood/deep"), at(b"wood/deeper"))
for name in names[:5]:
    with open(at(b"wood/deeper", name), "rb") as file:
        file.read()
# Through a link, and the link itself.
os.symlink(b"in", at(b"link"))
os.stat(at(b"link/plain"))
with open(at(b"link/plain"), "rb") as file: file.read()
os.readlink(at(b"link"))
# Pages, which no call reads or writes.
with open(at(b"mapped"), "w+b") as file:
    file.truncate(3 * 4096)
    pages = mmap.mmap(file.fileno(), 0)
    pages[0:4] = b"page"
    pages[8192:8196] = b"page"
    pages.flush()
    bytes(pages)
    pages.close()
with open(at(b"synced"), "wb") as file:
    file.write(b"s" * 5000)
    file.flush()
    os.fsync(file.fileno())
os.truncate(at(b"synced"), 100)
os.chmod(at(b"synced"), 0o600)
os.utime(at(b"synced"), ns=(1, 2))
with open(at(b"tool"), "wb") as file: file.write(b"#!/bin/sh\nexec cat \"$@\"\n")
os.chmod(at(b"tool"), 0o755)
for words in ([at(b"tool"), at(b"in", names[1])], [b"cp", at(b"in", names[2]), at(b"copied")]):
    if os.fork() == 0:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.execvp(words[0], words)
    os.wait()
if os.fork() == 0:
    left = os.open(at(b"in", names[0]), os.O_RDONLY)  # its end closes it
    os._exit(3)
os.wait()
for name in names[::4]: os.unlink(at(b"wood/deeper", name))
for path in (b"in", b"in/plain/x"):
    try: os.open(at(path), os.O_WRONLY)
    except OSError: pass
os.listdir(at(b"out"))
"""


def record(commands, folder, *more, before=()):
    """The path of the trace, and that of the source. `more`: options of
    tracefs-run; `before`: what runs the workload (strace)."""
    source = os.path.join(folder, "source")
    os.mkdir(source)
    script = os.path.join(folder, "work.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(WORK)
    trace = os.path.join(folder, "real.trace")
    made = subprocess.run(
        [os.path.join(commands, "tracefs-run"), "-o", trace, *more, "--src", source,
         "--", *before, sys.executable, "-B", script, source,
         *(name.hex() for name in NAMES)],
        capture_output=True, check=False, cwd=folder, timeout=300)
    if made.returncode != 0:
        raise Skip("no workload can be recorded: " + made.stderr.decode()[-300:])
    return trace, source
