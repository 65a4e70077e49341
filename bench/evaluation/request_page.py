"""The table of what requests cost as a page, and why one makes more than one
call."""

import time

from .request_cases import CASES
from .request_copies import total

_ATTRIBUTES = "the answer carries attributes, which no other call returns"
_HELD = ("the file is held by an O_PATH descriptor, so that its number means "
         "no other file while the kernel knows it")
_WHO = ("once for each change of caller on a thread: files are made and names "
        "changed as their caller")
_KERNEL_HOLDS = ("once for each file: the kernel reads and writes it by itself "
                 "from then on (passthrough)")

# Of a call beside a row's own one: (beginning of the row's name, call).
_POWERS = ("what user 0 may do is read from /proc: the kernel does not say, and his "
           "number alone means nothing; kept for 50 ms, so under strace nearly each "
           "call asks")
REASONS = (
    ("", "setfsuid", _WHO), ("", "setfsgid", _WHO), ("", "umask", _WHO),
    ("", "capset", "once for each change between calls made with the daemon's "
     "rights and with no more than the caller's"),
    ("", "recvfrom", "has this caller run another program meanwhile? The "
     "kernel's report is there before the program goes on; not under "
     "tracefs-run, which tells through shared memory"),
    ("", "ioctl BACKING_OPEN", _KERNEL_HOLDS),
    ("", "ioctl BACKING_CLOSE", _KERNEL_HOLDS),
    ("", "notify", "the first open that may store through a map: what the "
     "kernel has kept of the file's attributes is forgotten, once"),
    *((row, call, _POWERS) for row in ("chown", "fallocate", "listxattr")
      for call in ("openat", "read", "close")),
    ("lookup of a new name", "newfstatat", _ATTRIBUTES),
    ("lookup of a new name", "openat", _HELD),
    ("lookup of a new name", "openat2", _HELD),
    ("lookup of a known name", "openat", "so does one that may be new"),
    ("open to read", "statx", "append-only files do not pass through; asked "
     "before the first open"),
    ("open to", "newfstatat", "set-user-id files do not pass their writes "
     "through"),
    ("lseek", "openat", "the kernel reads by itself: opened when needed"),
    ("ioctl", "openat", "the kernel reads by itself: opened when needed"),
    ("chmod", "newfstatat", _ATTRIBUTES), ("chown", "newfstatat", _ATTRIBUTES),
    ("utimes", "newfstatat", _ATTRIBUTES),
    ("truncate", "newfstatat", _ATTRIBUTES),
    ("truncate by name", "openat", "opened without waiting, for somebody may "
     "hold a lease on it"),
    ("truncate by name", "close", "as opened"),
    ("list a directory", "getdents64", "the second says that there are no "
     "more"),
    ("list a directory", "newfstatat", "attributes of each entry"),
    ("list a directory", "openat", "each new entry is held"),
    ("mk", "newfstatat", _ATTRIBUTES), ("mk", "openat", _HELD),
    ("symlink", "newfstatat", _ATTRIBUTES), ("symlink", "openat", _HELD),
    ("create", "newfstatat", _ATTRIBUTES), ("create", "openat", _HELD),
    ("tmpfile", "newfstatat", _ATTRIBUTES), ("tmpfile", "openat", _HELD),
    ("unlink: forget", "close", "of what held the file"),
    ("unlink", "newfstatat", "the event says which file it was; or names of a "
     "file that has several are told apart"),
    ("rmdir", "newfstatat", "the event says which directory it was"),
    ("rename", "newfstatat", "which file has the new name now; the event says "
     "which one it was"),
    ("link", "newfstatat", _ATTRIBUTES),
)
TITLES = {"none": "nothing recorded", "full": "everything recorded, `auto`",
          "exact": "everything recorded, `exact`"}


def reason(row, call):
    for beginning, named, text in REASONS:
        if row.startswith(beginning) and named == call:
            return text
    return None


def _own_call(row, calls):
    """The one call of a row that needs no reason."""
    for call in calls:
        if reason(row, call) is None:
            return call
    return next(iter(calls), None)


def without_reason(table):
    """Calls beside a row's own one that nobody has given a reason for."""
    missing = []
    for load, rows in table.get("dev", {}).items():
        for row, calls in rows.items():
            own = _own_call(row, calls)
            missing += [f"{load}, {row}: {call}" for call in calls
                        if call != own and reason(row, call) is None]
    return missing


_ORDER = [case.name for case in CASES]


def _place(row):
    return _ORDER.index(row.partition(":")[0]), row


def _calls_text(calls):
    return ", ".join(name if n == 1 else f"{name} × {n:g}"
                     for name, n in calls.items()) or "none"


def text(table):
    loads = [load for load in TITLES if load in table["dev"]]
    lines = [
        "# What a request costs the daemon",
        "",
        "Made by `bench/request_costs --write`; `bench_request_costs_dev` "
        "fails where a",
        "request comes to make more system calls than stand here.",
        "",
        "## System calls",
        "",
        "Between the reading of a request from /dev/fuse and its answer, which "
        "are two",
        "more; over io_uring the two are one `io_uring_enter`. Means; what "
        "comes less than",
        "once in four requests is left out.",
        "",
        "| request | " + " | ".join(TITLES[load] for load in loads) + " |",
        "|---|" + "---|" * len(loads)]
    # A table that has been read again has them by name.
    rows = sorted({row for load in loads for row in table["dev"][load]},
                  key=_place)
    for row in rows:
        cells = [_calls_text(table["dev"][load][row])
                 if row in table["dev"][load] else "-" for load in loads]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    lines += ["", "One call is what the request is. The others:", ""]
    for beginning, call, why in REASONS:
        about = f"{beginning}…: " if beginning else ""
        lines.append(f"- {about}`{call}`: {why}.")
    if "copies" in table:
        lines += _copies(table["copies"])
    if "processor" in table:
        lines += _processor(table["processor"])
    return "\n".join(lines) + "\n"


_COPIED = {"none": "nothing recorded", "full": "operations recorded",
           "data": "operations and data recorded"}


def _copies(table):
    loads = [load for load in _COPIED if load in table]
    lines = [
        "",
        "## Copies",
        "",
        "How often the daemon moves each byte that a caller reads or writes, "
        "over /dev/fuse",
        "(4 MiB, 64 KiB a call): bytes that its system calls return, and those "
        "that memcpy",
        "and memmove copy in its own memory. `requests` are read from /dev/fuse "
        "and",
        "`answers` written to it, `trace` is the trace file; with O_DIRECT "
        "below a device",
        "moves the bytes and no processor, so that they are not in the sum. "
        "What the kernel",
        "copies without the daemon, as for a file without a mount, is not "
        "counted. Over",
        "io_uring it copies requests and answers, too, but in no system call "
        "that says how",
        "many bytes. `memcpy` of O_DIRECT writes is of those that libfuse did "
        "not receive at",
        "a multiple of a sector.", "",
        "| path | " + " | ".join(_COPIED[load] for load in loads) + " |",
        "|---|" + "---|" * len(loads)]
    for row in table[loads[0]]:
        lines.append(f"| {row} | " + " | ".join(
            _moves_text(table[load][row]) for load in loads) + " |")
    return lines


def _moves_text(moved):
    if not moved:
        return "0"
    return f"{total(moved):g}: " + ", ".join(
        what if n == 1 else f"{what} × {n:g}" for what, n in moved.items())


def _processor(table):
    loads = [load for load in TITLES if load in table]
    lines = [
        "",
        "## Processor",
        "",
        "Of the daemon for each operation, all of its requests together, over "
        "/dev/fuse:",
        "instructions outside the kernel, allocations, locks and copies "
        "(callgrind), and,",
        "as this host had them on "
        f"{time.strftime('%-d %B %Y')}, switches of threads and processor time "
        "with the",
        "kernel's part (µs).", ""]
    for load in loads:
        lines += [f"{TITLES[load][0].upper()}{TITLES[load][1:]}:", "",
                  "| operation | instructions | allocations | locks | copies "
                  "| switches | µs |", "|---|---:|---:|---:|---:|---:|---:|"]
        for name, c in table[load].items():
            lines.append(
                f"| {name} | {c['instructions']:,} | {c['allocations']} | "
                f"{c['locks']} | {c['copies']} | {c['switches']} | {c['us']} "
                "|")
        lines.append("")
    return lines[:-1]
