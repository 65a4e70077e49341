"""A reader of BuildXL's File Access Trace File, written from its grammar alone.
It refuses whatever does not hold: counts, ids in order, every number resolved."""

import dataclasses
import os
import re

OPERATIONS = {
    1: "CreateFile", 5: "Process", 8: "CreateDirectory", 9: "DeleteFile",
    25: "RemoveDirectory", 41: "ProcessExit", 42: "ProcessExec", 44: "Readlink",
    45: "ReadFile", 46: "WriteFile", 47: "CreateHardlinkSource",
    48: "CreateHardlinkDest", 49: "OpenDirectory", 50: "Close", 51: "Probe"}
ACCESSES = {0: "None", 1: "Read", 2: "Write", 4: "Probe", 8: "Enumerate"}
TICKS_1970 = 621355968000000000


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


class File:
    def __init__(self, data):
        need(data.endswith(b"\n"), "no line end at the end")
        self.lines = data.decode("utf-8").split("\n")[:-1]
        self.at = 0
        self.version = self.number()
        need(self.version in (1, 2, 3), f"version {self.version}")
        self.operations = self.names(OPERATIONS)
        self.accesses = self.names(ACCESSES)
        self.processes = {}
        for _ in range(self.number()):
            self.read_process()
        self.paths = {}
        last = 0x10000000
        for _ in range(self.number()):
            text = self.line()
            number, path = text.split("=", 1)
            # As the reader of BuildXL does it: what follows another '=' is lost.
            need("=" not in path, f"a '=' in {path!r}")
            need(int(number) > last, "paths are not in order")
            need(int(number) < 2 ** 31, "a number that is no int32")
            last = int(number)
            self.paths[last] = path
        need(len(set(self.paths.values())) == len(self.paths), "a path twice")
        need(self.number() == 0, "the second block of paths has some")
        self.rows = [self.read_row(n) for n in range(self.number())]
        if self.version >= 2:
            self.read_extras()
        if self.version >= 3:
            self.read_attributes()
        need(self.at == len(self.lines), "something follows")
        used = {row.operation for row in self.rows}
        need(used == set(self.operations), "operations that no row has")

    def line(self):
        need(self.at < len(self.lines), "it ends too early")
        self.at += 1
        return self.lines[self.at - 1]

    def number(self):
        text = self.line()
        need(re.fullmatch(r"\d+", text), f"no number: {text!r}")
        return int(text)

    def names(self, known):
        names = {}
        for _ in range(self.number()):
            number, name = self.line().split("=")
            need(known.get(int(number)) == name, f"{number} is not {name}")
            need(int(number) not in names, f"{number} twice")
            names[int(number)] = name
        return names

    def read_process(self):
        match = re.fullmatch(
            r'(\d+),"([^",]*)",(\d+),(\d+),(\d+),(\d+)', self.line())
        need(match, f"no process: {self.lines[self.at - 1]!r}")
        pid, exe, parent, begin, end, code = match.groups()
        need(int(pid) < 2 ** 32 and int(code) < 2 ** 32, "not uint32")
        need(int(pid) not in self.processes, f"process {pid} twice")

        def ns(ticks):
            return max(int(ticks) - TICKS_1970, 0) * 100
        self.processes[int(pid)] = Process(int(pid), exe, int(parent), ns(begin),
                                           ns(end), int(code), self.line())

    def read_row(self, expected):
        match = re.fullmatch(
            r"(\d+),(\d+),(\d*),(\d*),(\d+),(\d+),(\d+),([01]),(.*)",
            self.line())
        need(match, f"no row: {self.lines[self.at - 1]!r}")
        number, pid, mpath, path, op, access, error, augmented, pattern = (
            match.groups())
        need(int(number) == expected, f"row {number} is not {expected}")
        need(int(pid) in self.processes, f"no process {pid}")
        need(path == "" and int(mpath) in self.paths, f"no path {mpath}{path}")
        need(int(op) in self.operations, f"no operation {op}")
        need(int(access) in self.accesses, f"no access {access}")
        need(pattern == "", "a pattern")
        return Row(expected, int(pid), self.paths[int(mpath)], int(op),
                   int(access), int(error), augmented == "1")

    def read_extras(self):
        need(self.number() == len(self.rows), "counts differ")
        seen = set()
        for row in self.rows:
            number, access_id, correlation = map(int, self.line().split(","))
            need(number == row.number, "rows are not in order")
            need((row.pid, access_id) not in seen, "an access id twice")
            need(correlation == 0 or (row.pid, correlation) in seen,
                 f"correlates with {correlation}, which did not come before")
            seen.add((row.pid, access_id))
            row.access_id, row.correlation = access_id, correlation

    def read_attributes(self):
        need(self.number() == len(self.rows), "counts differ")
        for row in self.rows:
            number, flags, attributes = map(int, self.line().split(","))
            need(number == row.number, "rows are not in order")
            need(max(flags, attributes) < 2 ** 32, "not uint32")
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
