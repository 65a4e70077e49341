"""Reads what `strace -ff -ttt -T -y -xx -X raw -v` wrote: one file a thread,
every string in hex, every constant a number, so that nothing in a name or in
data can be taken for syntax.

    1795251058.848337 openat(-100<\\x2f…>, "\\x61", 0x80442, 0640) = 3<…> <0.000075>
"""

import glob
import math
import os
import re

# -A: a number that comes again adds to the file of the process that had it.
# --seccomp-bpf: no stop at calls that nobody asked for.
STRACE_OPTIONS = ["-ff", "--seccomp-bpf", "-A", "-ttt", "-T", "-y", "-xx", "-X", "raw", "-v",
                  "-s", "300"]
# What can cause a request, change a descriptor, a working directory, a umask,
# an identity or a name.
STRACE_CALLS = ("trace=%file,%desc,%process,%creds,prctl,umask,msync,munmap,"
                "bind,connect")

LINE = re.compile(r"^(\d+)\.(\d{6}) ([a-z_0-9]+)\((.*)\)\s+= "
                  r"(-?\d+|0x[0-9a-f]+|\?)(<(?:\\x[0-9a-f]{2})*>)?"
                  r"(?: ([A-Z0-9_]+))?.*?(?: <(\d+)\.(\d{6})>)?$")
HEX_BYTE = re.compile(r"\\x([0-9a-f]{2})")
COMMENT = re.compile(r" /\* [^*]* \*/")
# What an argument was before and after the call: "[70] => [100]".
AFTER = re.compile(r" => (\[[^\]]*\]|\{[^}]*\}|[^,)]+)")


class ParseError(Exception):
    pass


class Fd:
    """An argument or result like 3</path>."""

    def __init__(self, number, path, deleted):
        self.number = number
        self.path = path
        self.deleted = deleted

    def __repr__(self):
        return f"{self.number}<{self.path}>"


def number_of(fd):
    """An Fd's; of one that was not open, strace tells the number alone."""
    return getattr(fd, "number", fd)


class Syscall:
    """One finished system call."""

    # end_us is early by what strace did between noting the begin and letting
    # the thread go on; next_us is when its next call began.
    __slots__ = ("tid", "begin_us", "end_us", "next_us", "name", "args", "result",
                 "result_path", "error", "text")

    def __repr__(self):
        return f"[{self.tid}] {self.text}"

    @property
    def ok(self):
        return self.error is None


def unhex(text):
    return os.fsdecode(bytes(int(h, 16) for h in HEX_BYTE.findall(text)))


def split_arguments(text):
    """Splits at the commas that are in no bracket or string."""
    depth = 0
    start = 0
    in_string = False
    for i, c in enumerate(text):
        if c == '"':
            in_string = not in_string
        elif in_string:
            continue
        elif c in "([{<":
            # "<<" and "<" of shifts do not occur with -X raw.
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    if text[start:].strip():
        yield text[start:].strip()


def parse_value(text):
    """A number, a string (str), an Fd, a list, a dict, or None for NULL.
    Anything else stays what it is, wrapped in Raw."""
    if text == "NULL":
        return None
    if text.startswith('"'):
        return unhex(text)  # longer than -s it is cut: "…"...
    if re.fullmatch(r"-?\d+", text):
        # strace writes modes in octal with a leading zero.
        if len(text) > 1 and text[0] == "0":
            return int(text, 8)
        return int(text)
    if re.fullmatch(r"0x[0-9a-f]+", text):
        return int(text, 16)
    found = re.fullmatch(r"(-?\d+)<((?:\\x[0-9a-f]{2})*)>(?:\(deleted\))?",
                         text)
    if found:
        return Fd(int(found[1]), unhex(found[2]), text.endswith(")"))
    if text.startswith("[") and text.endswith("]"):
        return [parse_value(t) for t in split_arguments(text[1:-1])]
    if text.startswith("{") and text.endswith("}"):
        fields = {}
        for part in split_arguments(text[1:-1]):
            key, _, value = part.partition("=")
            fields[key] = parse_value(value)
        return fields
    found = re.fullmatch(r"[a-z_]+=(.*)", text)  # flags=…, child_stack=…
    if found:
        return parse_value(found[1])
    if re.fullmatch(r"[0-9a-fx|]*", text):
        total = 0
        for part in text.split("|"):
            total |= int(part or "0", 0)  # statx's flags may be "" or "|0x1000"
        return total
    return Raw(text)


class Raw(str):
    """Text of strace's that means nothing to us."""


def microseconds(seconds, fraction):
    return int(seconds) * 1000000 + int(fraction)


def parse_line(tid, line):
    """A Syscall, or None for a signal, an exit or a call without an end."""
    found = LINE.match(COMMENT.sub("", line))
    if not found:
        if re.match(r"^\d+\.\d+ (---|\+\+\+)", line):
            return None
        # Killed inside it, or execve from another thread.
        if re.match(r"^\d+\.\d+ [a-z_0-9]+\(.*(<unfinished \.\.\.>|= \?.*)$",
                    line):
            return None
        raise ParseError(f"strace of {tid}: {line!r}")
    call = Syscall()
    call.tid = tid
    call.text = line
    call.begin_us = microseconds(found[1], found[2])
    call.end_us = call.begin_us
    call.next_us = math.inf
    if found[8]:
        call.end_us += microseconds(found[8], found[9])
    call.name = found[3]
    call.args = found[4]
    call.result = None if found[5] == "?" else parse_value(found[5])
    call.result_path = unhex(found[6]) if found[6] else None
    call.error = found[7] if call.result == -1 else None
    return call


# Calls that make a descriptor do so just before they end; between their begin
# and that, another thread may give back the same number.
TAKES_EFFECT_AT_END = {"open", "openat", "openat2", "creat", "dup", "dup2",
                       "dup3", "fcntl"}

TAKES_FREE_NUMBER = {"open", "openat", "openat2", "creat", "dup"}


def effect_us(call):
    return call.end_us if call.name in TAKES_EFFECT_AT_END else call.begin_us


def read_log(prefix):
    """All calls of all threads, in the order they took effect; those of one
    thread in their own. Arguments are parsed when a call is looked at:
    args(call)."""
    calls = []
    for path in glob.glob(glob.escape(prefix) + ".*"):
        tid = int(path.rsplit(".", 1)[1])
        previous = None
        with open(path, encoding="ascii", errors="replace") as lines:
            for line in lines:
                call = parse_line(tid, line.rstrip("\n"))
                if call is None:
                    continue
                if previous is not None:
                    previous.next_us = call.begin_us
                previous = call
                calls.append(call)
    calls.sort(key=effect_us)  # stable
    return calls


def args(call):
    return [parse_value(t) for t in split_arguments(AFTER.sub("", call.args))]
