"""A checker of BuildXL's File Access Trace File that shares nothing with our
writer. Each rule is one that BuildXL's own sources state (github.com/microsoft/
BuildXL at 2f185cd8; paths below Public/Src), named where it is checked:

R  Engine/Processes/SandboxedProcessTraceBuilder.cs, ReadFromStream
W  the same, WriteToStreamCore and ReportFileAccess
T  Engine/UnitTests/Processes/TraceFileBuilderTest.cs
E  Engine/Processes/ReportedFileOperation.cs and RequestedAccess.cs
C  Sandbox/Linux/AccessChecker.cpp
M  Sandbox/Linux/detours.cpp handle_renameat, PTraceSandbox.cpp
   HandleRenameGeneric, ebpf/SyscallHandler.cpp HandleDoubleEvent
D  Documentation/Wiki/Advanced-Features/TraceFile.md
"""

import dataclasses
import os
import re

# E: the order of the enumerators is their numbers.
OPERATIONS = dict(enumerate((
    "Unknown CreateFile CreateProcess GetFileAttributes GetFileAttributesEx Process "
    "FindFirstFileEx FindNextFile CreateDirectory DeleteFile MoveFileSource "
    "MoveFileDestination SetFileInformationByHandleSource "
    "SetFileInformationByHandleDest ZwSetRenameInformationFileSource "
    "ZwSetRenameInformationFileDest ZwSetLinkInformationFile "
    "ZwSetDispositionInformationFile ZwSetModeInformationFile "
    "ZwSetFileNameInformationFileSource ZwSetFileNameInformationFileDest "
    "CopyFileSource CopyFileDestination CreateHardLinkSource "
    "CreateHardLinkDestination RemoveDirectory RemoveDirectorySource "
    "NtQueryDirectoryFile ZwQueryDirectoryFile NtCreateFile ZwCreateFile ZwOpenFile "
    "ChangedReadWriteToReadAccess FirstAllowWriteCheckInProcess "
    "ProcessRequiresPTrace ReparsePointTarget ReparsePointTargetCached "
    "CreateSymbolicLinkSource MoveFileWithProgressSource MoveFileWithProgressDest "
    "MultipleOperations ProcessExit ProcessExec ProcessTreeCompletedAck Readlink "
    "ReadFile WriteFile CreateHardlinkSource CreateHardlinkDest OpenDirectory Close "
    "Probe ProcessBreakaway").split()))
ACCESSES = {0: "None", 1: "Read", 2: "Write", 4: "Probe", 8: "Enumerate",
            16: "EnumerationProbe"}
# W: SkipOperation keeps these out of every file.
NEVER_WRITTEN = {"ChangedReadWriteToReadAccess", "FirstAllowWriteCheckInProcess",
                 "ProcessRequiresPTrace", "ProcessBreakaway"}
# C: what its handlers ask for with each operation that they report. Processes
# ask for nothing; a path that is not there is probed.
ASKED_WITH = {
    "CreateFile": {2}, "CreateDirectory": {2}, "WriteFile": {2}, "DeleteFile": {2},
    "RemoveDirectory": {2, 4}, "ReadFile": {1}, "OpenDirectory": {8},
    "Readlink": {1}, "Close": {1}, "Probe": {4}, "CreateHardlinkSource": {1},
    "CreateHardlinkDest": {2}, "Process": {0, 1}, "ProcessExec": {0, 1},
    "ProcessExit": {0, 1}}
TICKS_1970 = 621355968000000000
TICKS_MOST = 3155378975999999999  # of .NET's DateTime, which R makes of them


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


@dataclasses.dataclass
class Process:
    pid: int
    exe: str
    parent: int
    begin_ns: int
    end_ns: int
    code: int
    line: str


@dataclasses.dataclass
class Row:
    number: int
    pid: int
    path: str
    operation: int
    access: int
    error: int
    augmented: bool
    access_id: int = 0
    correlation: int = 0
    flags: int = 0
    attributes: int = 0


def whole(text, most, what):
    """R: int.Parse, uint.Parse and byte.Parse refuse what is larger."""
    need(re.fullmatch(r"\d+", text), f"{what} is no number: {text!r}")
    need(int(text) <= most, f"{what} is too large: {text}")
    return int(text)


class File:
    def __init__(self, data):
        need(data.endswith(b"\n"), "no line end at the end")
        # R: StreamReader.ReadLine ends a line at \r as well; W: UTF-8.
        need(b"\r" not in data, "a carriage return ends a line for StreamReader")
        self.lines = data.decode("utf-8-sig").split("\n")[:-1]
        self.at = 0
        # W: the eight blocks in this order, each with its count before it.
        self.version = self.number(255)
        need(self.version in (1, 2, 3), f"version {self.version}")
        self.operations = self.names(OPERATIONS)
        self.accesses = self.names(ACCESSES)
        self.processes = {}
        for _ in range(self.number()):
            self.read_process()
        self.paths = {}
        last = 0  # W: OrderBy(x => x.RawValue)
        for _ in range(self.number()):
            # R: Split('=') and its second part: what follows another '=' is lost.
            number, _, path = self.line().partition("=")
            need("=" not in path, f"a '=' in {path!r}")
            number = whole(number, 2**31 - 1, "a path's number")
            need(number > last, "paths are not in order")
            last = number
            self.paths[last] = path
        need(len(set(self.paths.values())) == len(self.paths), "a path twice")
        # R: Contract.Assert(pathsCount == 0).
        need(self.number() == 0, "the second block of paths has some")
        self.rows = [self.read_row(n) for n in range(self.number())]
        if self.version >= 2:
            self.read_extras()
        if self.version >= 3:
            self.read_attributes()
        need(self.at == len(self.lines), "something follows")
        # D, W: only those that were observed.
        need({row.operation for row in self.rows} == set(self.operations),
             "operations that no row has")
        need({row.access for row in self.rows} == set(self.accesses),
             "accesses that no row has")
        need({row.path for row in self.rows} == set(self.paths.values()),
             "paths that no row has")

    def line(self):
        need(self.at < len(self.lines), "it ends too early")
        self.at += 1
        return self.lines[self.at - 1]

    def number(self, most=2**31 - 1):
        return whole(self.line(), most, "a count")

    def names(self, known):
        names = {}
        for _ in range(self.number()):
            number, name = self.line().split("=")
            number = whole(number, 255, "an enumerator")
            # R: Enum.Parse of the name; a dictionary by the number.
            need(known.get(number) == name, f"{number} is not {name}")
            need(name not in NEVER_WRITTEN, name)
            need(number not in names, f"{number} twice")
            names[number] = name
        return names

    def read_process(self):
        # R: Split(',') and Trim('"'): neither may be in the program's path.
        parts = self.line().split(",")
        need(len(parts) == 6, f"no process: {parts}")
        need(re.fullmatch(r'"[^"]*"', parts[1]), f"no program: {parts[1]}")
        pid = whole(parts[0], 2**32 - 1, "a process")
        need(pid not in self.processes, f"process {pid} twice")

        def ns(text):
            return max(whole(text, TICKS_MOST, "a time") - TICKS_1970, 0) * 100
        self.processes[pid] = Process(
            pid, parts[1][1:-1], whole(parts[2], 2**32 - 1, "a parent"),
            ns(parts[3]), ns(parts[4]), whole(parts[5], 2**32 - 1, "an exit code"),
            self.line())

    def read_row(self, expected):
        # W: eight commas; the place after the path is empty for good; R takes
        # the ninth part for the pattern, which has no comma.
        parts = self.line().split(",")
        need(len(parts) == 9, f"no row: {parts}")
        number, pid, path, empty, op, access, error, augmented, pattern = parts
        need(empty == "", f"{empty} where W has nothing")
        # T: rows are found by their numbers.
        need(whole(number, 2**32 - 1, "a row") == expected,
             f"row {number} is not {expected}")
        pid = whole(pid, 2**32 - 1, "a process")
        need(pid in self.processes, f"no process {pid}")
        path = whole(path, 2**31 - 1, "a path")
        need(path in self.paths, f"no path {path}")
        # R: both are looked up in the blocks before.
        op = whole(op, 255, "an operation")
        need(op in self.operations, f"no operation {op}")
        access = whole(access, 255, "an access")
        need(access in self.accesses, f"no access {access}")
        need(access in ASKED_WITH[self.operations[op]],
             f"{self.operations[op]} asks for {self.accesses[access]}")
        need(augmented in ("0", "1"), f"augmented {augmented}")
        need(pattern == "", "a pattern, which Linux has none of")
        return Row(expected, pid, self.paths[path], op, access,
                   whole(error, 2**32 - 1, "an error"), augmented == "1")

    def read_extras(self):
        need(self.number() == len(self.rows), "counts differ")
        seen = set()
        for row in self.rows:
            number, access_id, correlation = (
                whole(n, 2**32 - 1, "an id") for n in self.line().split(","))
            need(number == row.number, "rows are not in order")
            # T: process and id make the key of a dictionary, and a destination
            # has the id of its source, of the same process.
            need((row.pid, access_id) not in seen, "an access id twice")
            need(correlation == 0 or (row.pid, correlation) in seen,
                 f"correlates with {correlation}, which did not come before")
            seen.add((row.pid, access_id))
            row.access_id, row.correlation = access_id, correlation

    def read_attributes(self):
        need(self.number() == len(self.rows), "counts differ")
        for row in self.rows:
            number, flags, attributes = (
                whole(n, 2**32 - 1, "attributes") for n in self.line().split(","))
            need(number == row.number, "rows are not in order")
            row.flags, row.attributes = flags, attributes


def read_folder(folder):
    """A file for each process tree: name -> File."""
    made = {}
    for name in os.listdir(folder):
        if name.startswith("."):
            continue  # the folder is an export's
        with open(os.path.join(folder, name), "rb") as text:
            made[name] = File(text.read())
    return made


def escaped(path):
    """A path of bytes as our exports spell it: %XX of what the format cannot
    hold (docs/exports.md)."""
    out = ""
    for char in path.decode("utf-8", "surrogateescape"):
        if "\udc80" <= char <= "\udcff" or char in "=,%" or ord(char) < 32 or \
                ord(char) == 127:
            out += "".join(f"%{b:02X}" for b in char.encode("utf-8", "surrogateescape"))
        else:
            out += char
    return out


def moves_of(operations):
    """M: a rename is a deletion and a creation; that of a directory those of the
    directory and of everything below it. The pairs of paths, as far as the
    operations before have named what is there. Each operation is (name, failed,
    path, path2, type, flags)."""
    there = {}  # path -> whether it is a directory
    moves = []

    def add(path, is_directory):
        there[path] = is_directory
        while path.count(b"/") > 1:
            path = path[:path.rindex(b"/")]
            there[path] = True
    for op, failed, path, path2, kind, flags in operations:
        if path is None or (failed and op != "lookup"):
            continue
        if op == "lookup" and failed:
            there.pop(path, None)
        elif op in ("lookup", "open", "create", "mknod", "symlink"):
            add(path, kind == "dir")
        elif op in ("mkdir", "opendir", "readdir"):
            add(path, True)
        elif op == "link":
            add(path2, False)
        elif op in ("unlink", "rmdir"):
            there.pop(path, None)
        elif op == "rename":
            need(not flags & 2, "an exchange, which this model does not know")
            tree = [p for p in there if p == path or p.startswith(path + b"/")] or [path]
            moved = [(p, path2 + p[len(path):], there.pop(p, kind == "dir")) for p in tree]
            moves += [(p, q) for p, q, _ in moved]
            for _, q, is_directory in moved:
                add(q, is_directory)
    return moves
