"""Who acts in the suite of rights, and how: in a process of its own that has
become that user and tells what came of each call."""

import ctypes
import errno
import os
import signal
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
ALICE = 61001
BOB = 61003
TEAM = 61002           # a group that BOB is in by setgroups(2) only
MAPPED = 165536        # the first of 65536 ids of a user namespace
PR_SET_KEEPCAPS = 8
PR_SET_DUMPABLE = 4
CAP_DAC_OVERRIDE, CAP_FOWNER = 1, 3
CAP_LINUX_IMMUTABLE, CAP_MKNOD, CAP_SETFCAP = 9, 27, 31
CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION_3 = 0x20080522


def become(uid, gid, groups=()):
    os.setgroups(list(groups))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    LIBC.prctl(PR_SET_DUMPABLE, 1)


def alice():
    become(ALICE, ALICE)


def bob():
    become(BOB, BOB, [TEAM])


def able():
    """An ordinary user who may override what directories say."""
    alice_with(1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER)


def maker():
    """And one who may make what only root makes, where he may make anything."""
    alice_with(1 << CAP_LINUX_IMMUTABLE | 1 << CAP_MKNOD | 1 << CAP_SETFCAP)


def alice_with(bits):
    LIBC.prctl(PR_SET_KEEPCAPS, 1)
    become(ALICE, ALICE)
    header = struct.pack("<II", CAPABILITY_VERSION_3, 0)
    data = struct.pack("<IIIIII", bits, bits, 0, 0, 0, 0)
    if LIBC.syscall(126, header, data) != 0:  # capset
        raise OSError(ctypes.get_errno(), "capset")


def bare_root():
    """User 0, as of a container that was given no capability."""
    header = struct.pack("<II", CAPABILITY_VERSION_3, 0)
    os.setgroups([])
    if LIBC.syscall(126, header, bytes(24)) != 0:  # capset
        raise OSError(ctypes.get_errno(), "capset")
    LIBC.prctl(PR_SET_DUMPABLE, 1)


def mapped_root():
    """Root of a user namespace, whose ids are 65536 from MAPPED on."""
    ready, go = os.pipe(), os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.read(ready[0], 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{parent}/{name}", "w", encoding="ascii") as out:
                out.write(f"0 {MAPPED} 65536")
        os.write(go[1], b"x")
        os._exit(0)
    if LIBC.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    os.waitpid(pid, 0)
    for pipe in (ready, go):
        os.close(pipe[0])
        os.close(pipe[1])
    become(0, 0)


def told(call, *arguments, **named):
    """What came of a call: its result, or the error's name."""
    try:
        result = call(*arguments, **named)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "ok" if result is None else str(result)


def acting(who, body, *arguments, seconds=60):
    """What `body` returns (as text), run in a process that `who()` made."""
    end, child_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = ""
        try:
            who()
            signal.alarm(seconds)
            text = str(body(*arguments))
        except BaseException as error:  # pylint: disable=broad-except
            text = f"{type(error).__name__}: {error}"
        os.write(child_end, text.encode()[:60000])
        os._exit(0)
    os.close(child_end)
    with os.fdopen(end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        text += f" killed by signal {os.WTERMSIG(status)}"
    return text
