"""Judges of what is written for CAS, which share nothing with what writes it:
its parser's rules for the raw .nfsdb, and its library's for .nfsdb.json, told
again from their sources, rule by rule. Names in brackets are functions of
Samsung/CAS (4448ff8): etrace_parser in bas/etrace_parser/{main,parser}.cpp,
libetrace in bas/nfsdb/pyetrace.c.
"""

import re

# [parser_main] reads with getline(line, 2048), and stops at a longer line.
LINE_ROOM = 2047

# [parse_*_short_arguments]: the numbers of each event, in this order, where the
# last one must be the last of the line; those in brackets may be missing.
NUMBERS = {
    "New_proc": "argsize prognameisize prognamepsize cwdsize",
    "SchedFork": "pid", "SysClone": "flags", "Exit": "status",
    "Open": "fnamesize forigsize flags mode fd", "Close": "fd",
    "Pipe": "fd1 fd2 flags", "Dup": "oldfd newfd flags",
    "RenameFrom": "fnamesize", "RenameTo": "fnamesize",
    "LinkFrom": "fnamesize", "LinkTo": "fnamesize",
    "Symlink": "targetnamesize [resolvednamesize] linknamesize",
    "Mount": "[sourcenamesize] targetnamesize [typenamesize] flags",
    "Comm": "size",
}
# [Tag]: names of texts, and what stands alone.
TEXTS = {"PI", "PP", "CW", "FN", "FO", "RF", "RT", "LF", "LT", "ST", "SR",
         "SL", "MS", "MT", "MX", "CN"}
ALONE = {"End_of_args", "Cont_end", "SysCloneFailed", "RenameFailed",
         "LinkFailed"}


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


class Line:
    """[parse_generic_args]"""

    def __init__(self, text):
        need(len(text) < LINE_ROOM, f"a line of {len(text)} bytes")
        # A C string ends at the first NUL.
        need(b"\0" not in text, f"a NUL in {text!r}")
        # [parse_line] "0: " is in front of all.
        match = re.fullmatch(rb"0: (\d+),(\d+),(\d+),(\d+)!(.*)", text, re.S)
        need(match, f"no event: {text!r}")
        self.upid, self.cpu, seconds, ns = map(int, match.groups()[:4])
        need(0 < self.upid < 2 ** 63, f"process {self.upid}")
        need(ns < 10 ** 9, f"{ns} ns")
        self.time = seconds * 10 ** 9 + ns
        data = match[5]
        # An argument has a bracket before any bar, and no bar of its own.
        bar, bracket = data.find(b"|"), data.find(b"[")
        self.index = None
        if bracket >= 0 and (bar < 0 or bracket < bar):
            match = re.match(rb"A\[(\d+)\]", data)
            need(match, f"no argument: {data!r}")
            self.name, self.index = "A", int(match[1])
            self.rest = data[match.end():]
            return
        need(bar >= 0, f"no bar in {data!r}")
        self.name = data[:bar].decode("ascii", "replace")
        self.rest = data[bar + 1:]
        need(self.name in NUMBERS or self.name in TEXTS or self.name == "Cont"
             or (self.name in ALONE and self.rest == b""), f"what is {data!r}?")

    def numbers(self):
        text, values = self.rest.decode("ascii", "replace"), {}
        for key in NUMBERS[self.name].split():
            name = key.strip("[]")
            match = re.match(rf"{name}=(\d+)(,|$)", text)
            if match is None and key != name:
                continue
            need(match, f"{self.name}: no {name} in {text!r}")
            values[name], text = int(match[1]), text[match.end():]
            ended = match[2] == ""
        need(text == "" and ended, f"{self.name}|{self.rest!r} goes on")
        return values


class Run:
    """[Execution]: of a fork only the arguments are its parent's."""

    def __init__(self, index):
        self.index = index
        self.begin = self.end = 0
        self.values = {"b": b"", "w": b"", "v": [], "c": [], "o": {}, "i": []}

    def __getitem__(self, key):
        return self.values[key]

    def __setitem__(self, key, value):
        self.values[key] = value

    def open(self, path, how):
        """[add_open_file] Opens that differ are one for both."""
        known = self["o"].get(path)
        self["o"][path] = how if known in (None, how) else 2


class Process:
    def __init__(self, upid):
        self.upid = upid
        self.parent = None
        self.runs = [Run(0)]
        self.status = None
        self.names = []  # it gave itself
        self.fds = {}  # of pipes: {descriptor: (pipe, "r" or "w")}


class Database:
    """What the parser makes of a file; it raises Wrong where that complains."""

    def __init__(self, data):
        lines = data.split(b"\n")
        need(len(lines[0]) < LINE_ROOM, "too long a first line")
        need(lines[0].startswith(b"INITCWD="), "no INITCWD")
        need(lines[-1] == b"", "no line end at the end")
        self.initial = lines[0][8:]
        self.processes = {}
        self.mounts = []  # (source, target, type)
        self.calls = []  # of pipes: (time, process, name, values)
        events = {}
        times = set()
        for text in lines[1:-1]:
            line = Line(text)
            # [cache_hit] std::sort by time alone, and [parser_main] that of all
            # calls: what has one time with another comes in any order.
            need(line.time not in times, f"a time twice: {text!r}")
            times.add(line.time)
            events.setdefault(line.upid, []).append(line)
        for upid, mine in events.items():
            mine.sort(key=lambda line: line.time)
            process = self.process(upid)
            process.runs[0].begin = mine[0].time
            process.runs[-1].end = mine[-1].time
            Reader(self, process, mine).read()
        for process in self.processes.values():
            for run in process.runs:
                for child, _ in run["c"]:
                    # [get_child_cids] warns of a child without an entry.
                    need(child in events, f"{child} has no line")
                    self.processes[child].runs[0]["v"] = run["v"]
        Pipes(self).find()

    def process(self, upid):
        return self.processes.setdefault(upid, Process(upid))


class Reader:
    """[process_events] of one process."""

    def __init__(self, database, process, lines):
        self.database, self.me, self.left = database, process, lines[::-1]
        self.fds = {}  # of files, in this run

    def read(self):
        while self.left:
            line = self.left.pop()
            action = getattr(self, "on_" + line.name.lower(), None)
            need(action, f"{line.name} has no place here")
            action(line, line.numbers() if line.name in NUMBERS else {})

    def next(self, name):
        need(self.left and self.left[-1].name == name, f"no {name}: {self.left[-1:]}")
        return self.left.pop()

    def text(self, key, size):
        """[parse_long_argument] Cont is another line of it; Cont_end, whose own
        text is dropped, ends it. A wrong size rejects the rest of the process."""
        text = self.next(key).rest
        continued = False
        while self.left and self.left[-1].name == "Cont":
            text += b"\n" + self.left.pop().rest
            continued = True
        if continued:
            self.next("Cont_end")
        # The same key again would replace what was read, not go on with it.
        need(not self.left or self.left[-1].name != key, f"{key} twice")
        need(len(text) == size, f"{key} has {len(text)}, not {size}")
        return text

    def arguments(self):
        """[parse_arguments] Of one index all lines are one argument."""
        words = []
        last = None
        while self.left and self.left[-1].name in ("A", "Cont", "Cont_end"):
            line = self.left.pop()
            if line.name == "A" and line.index == last:
                words[-1] += line.rest
            elif line.name == "A":
                need(line.index == len(words), f"argument {line.index}")
                last = line.index
                words.append(line.rest)
            elif line.name == "Cont":
                words[-1] += b"\n" + line.rest
        return words

    def call(self, line, values):
        self.database.calls.append((line.time, self.me.upid, line.name, values,
                                    len(self.me.runs) - 1))

    def on_new_proc(self, line, sizes):
        run = Run(len(self.me.runs))
        self.text("PI", sizes["prognameisize"])
        run["b"] = self.text("PP", sizes["prognamepsize"])
        run["w"] = self.text("CW", sizes["cwdsize"])
        run["v"] = self.arguments()
        self.next("End_of_args")
        need(sum(len(word) + 1 for word in run["v"]) == sizes["argsize"],
             "argsize")
        self.me.runs[-1].end = run.begin = line.time
        self.me.runs.append(run)
        self.fds = {}
        self.call(line, {})

    def on_schedfork(self, line, values, flags=0):
        child = self.database.process(values["pid"])
        need(child.parent is None, f"{child.upid} is forked twice")
        child.parent = (self.me.upid, len(self.me.runs) - 1)
        self.me.runs[-1]["c"].append((child.upid, flags))
        self.call(line, values)

    def on_sysclone(self, _, values):
        fork = self.next("SchedFork")
        self.on_schedfork(fork, fork.numbers(), values["flags"])

    def on_exit(self, line, values):
        # [ExitArguments] a char.
        self.me.status = values["status"] & 255
        need(not self.left, f"{self.me.upid} does something after its end")
        self.call(line, values)

    def on_open(self, _, values):
        path = self.text("FN", values["fnamesize"])
        self.text("FO", values["forigsize"])
        # [fd_table] an open of a descriptor that was not closed replaces it.
        need(values["fd"] not in self.fds, f"{values['fd']} is open")
        need(values["fd"] < 2 ** 31, "no int")
        self.fds[values["fd"]] = path
        self.me.runs[-1].open(path, values["flags"] & 3)

    def on_close(self, line, values):
        self.fds.pop(values["fd"], None)
        self.call(line, values)

    def on_pipe(self, line, values):
        self.call(line, values)

    def on_dup(self, line, values):
        self.call(line, values)

    def pair(self, key, values):
        """A rename or a link opens both: RenameFailed after RenameTo is too
        late."""
        old = self.text(key[0] + "F", values["fnamesize"])
        to = self.next(key + "To")
        new = self.text(key[0] + "T", to.numbers()["fnamesize"])
        self.me.runs[-1].open(old, 0)
        self.me.runs[-1].open(new, 1)

    def on_renamefrom(self, _, values):
        self.pair("Rename", values)

    def on_linkfrom(self, _, values):
        self.pair("Link", values)

    def on_symlink(self, _, sizes):
        self.text("ST", sizes["targetnamesize"])
        if "resolvednamesize" in sizes:
            self.me.runs[-1].open(
                self.text("SR", sizes["resolvednamesize"]), 0)
        self.me.runs[-1].open(self.text("SL", sizes["linknamesize"]), 1)

    def on_comm(self, _, values):
        self.me.names.append(self.text("CN", values["size"]))

    def on_mount(self, _, sizes):
        self.database.mounts.append(tuple(
            self.text(key, sizes[name]) for key, name in (
                ("MS", "sourcenamesize"), ("MT", "targetnamesize"),
                ("MX", "typenamesize"))))


class Pipes:
    """[parser_main] Who can write what another one reads: at each exec, from a
    child to its parent by any descriptors, and from the standard output of one
    child to the standard input of another."""

    def __init__(self, database):
        self.processes = database.processes
        self.calls = sorted(database.calls, key=lambda call: call[0])
        self.fds = {}
        self.children = {}
        self.index = {}
        self.count = 0

    def find(self):
        for _, upid, name, values, run in self.calls:
            # The table of whoever comes first is made; others get one forked.
            mine = self.fds.setdefault(upid, {})
            self.index[upid] = run
            if name == "Pipe":
                self.count += 1
                mine[values["fd1"]] = (self.count, "r")
                mine[values["fd2"]] = (self.count, "w")
            elif name == "Dup":
                need(values["oldfd"] in mine, "dup of nothing")
                mine[values["newfd"]] = mine[values["oldfd"]]
            elif name == "Close":
                mine.pop(values["fd"], None)
            elif name == "SchedFork":
                need(values["pid"] not in self.fds, "forked too late")
                self.fds[values["pid"]] = dict(mine)
                self.children.setdefault(upid, set()).add(values["pid"])
                self.index[values["pid"]] = 0
            elif name == "New_proc":
                self.exec(upid)
            elif name == "Exit" and self.processes[upid].parent:
                parent = self.processes[upid].parent[0]
                self.children[parent].discard(upid)

    def exec(self, upid):
        parent = self.processes[upid].parent
        if parent is None:
            return
        above = self.fds[parent[0]].values()
        if any(end == "w" and (pipe, "r") in above
               for pipe, end in self.fds[upid].values()):
            self.edge(upid, parent[0])
        for other in self.children[parent[0]] - {upid}:
            for writer, reader in ((upid, other), (other, upid)):
                out = self.fds[writer].get(1)
                into = self.fds[reader].get(0)
                if out and into and (out[0], "w", "r") == (
                        into[0], out[1], into[1]):
                    self.edge(writer, reader)

    def edge(self, writer, reader):
        edges = self.processes[writer].runs[self.index[writer]]["i"]
        if (reader, self.index[reader]) not in edges:
            edges.append((reader, self.index[reader]))


# --- .nfsdb.json


def unsigned(entry, key):
    """PyLong_AsUnsignedLong: neither negative nor anything else."""
    value = entry[key]
    need(isinstance(value, int) and 0 <= value < 2 ** 64,
         f"{key} is {value!r} in {entry}")
    return value


def texts(values):
    need(isinstance(values, list) and all(isinstance(v, str) for v in values),
         f"no texts: {values!r}")


def check_compilation(made):
    """[create_nfsdb]"""
    for key in "fiho":
        texts(made[key])
    for key in "du":
        for each in made[key]:
            texts([each["n"], each["v"]])
    need(made["s"] in (1, 2, 3), f"language {made['s']}")
    unsigned(made, "p")


def check_entries(entries):
    """[create_nfsdb, nfsdb_entry_get_parent, get_child_cids, RootPid.get_data]
    of a whole .nfsdb.json."""
    runs = {}
    for entry in entries:
        pid, index = unsigned(entry, "p"), unsigned(entry, "x")
        # A run is looked up by its place among those of its process.
        need(index == len(runs.setdefault(pid, [])), f"{pid}: {index} comes now")
        runs[pid].append(entry)
        for key in ("s", "e"):
            unsigned(entry, key)
        texts([entry["b"], entry["w"]])
        texts(entry["v"])
        for child in entry["c"]:
            unsigned(child, "p"), unsigned(child, "f")
        for opened in entry["o"]:
            texts([opened["p"]])
            for key in ("b", "e", "m", "s"):
                unsigned(opened, key)
            need(opened["b"] <= opened["e"], f"closed before: {opened}")
        paths = [opened["p"] for opened in entry["o"]]
        need(len(paths) == len(set(paths)), f"{pid}: a path twice")
        for time in entry["u"]:
            unsigned(time, "c"), unsigned(time, "t")
        if "l" in entry:
            texts([entry["l"]])
            need(unsigned(entry, "t") in (0, 1), "linked how?")
        if "m" in entry:
            unsigned(entry, "m")
        if "d" in entry:
            check_compilation(entry["d"])
    need(entries and entries[0]["x"] == 0 and entries[0]["r"]["p"] == -1,
         "the first entry is not the root's")
    for entry in entries:
        parent = entry["r"]
        unsigned(parent, "x")
        # All runs of a process have the parent that forked it.
        need(parent == runs[entry["p"]][0]["r"], f"parents of {entry['p']}")
        if parent["p"] == -1:
            need(parent["x"] == 0, "a parent that is none")
        else:
            need(parent["x"] < len(runs.get(parent["p"], [])),
                 f"no parent {parent}")
            need(any(c["p"] == entry["p"] for c in
                     runs[parent["p"]][parent["x"]]["c"]), f"child of {parent}")
        for child in entry["c"]:
            need(child["p"] in runs, f"no child {child}")
        for reader in entry["i"]:
            need(unsigned(reader, "x") < len(runs.get(unsigned(reader, "p"), [])),
                 f"no reader {reader}")
        if "!" in entry:
            need(entry is runs[entry["p"]][-1], "it ends before its last run")
