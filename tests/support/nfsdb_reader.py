"""A reader of CAS's raw .nfsdb, written from its grammar alone, that makes of it
what its parser does: entries for executions, as in .nfsdb.json."""

import re

HEAD = re.compile(rb"0: (\d+),(\d+),(\d+),(\d+)!(\w+(?:\[\d+\])?)\|(.*)", re.S)


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


def fields(data):
    found = dict(re.findall(rb"(\w+)=(\d+),", data))
    rebuilt = b"".join(k + b"=" + v + b"," for k, v in found.items())
    need(rebuilt == data, f"not fields: {data!r}")
    return {k.decode(): int(v) for k, v in found.items()}


class Events:
    """The events of each process: (time, name, data), texts put together."""

    def __init__(self, data):
        lines = data.split(b"\n")
        need(lines[0].startswith(b"INITCWD="), "no INITCWD")
        need(lines[-1] == b"", "no line end at the end")
        self.initial = lines[0][8:]
        self.of = {}
        for line in lines[1:-1]:
            match = HEAD.fullmatch(line)
            need(match, f"no event: {line!r}")
            upid, _, seconds, ns, name, rest = match.groups()
            need(int(upid) > 0, "a process 0")
            need(int(ns) < 10 ** 9, "too many ns")
            time = int(seconds) * 10 ** 9 + int(ns)
            mine = self.of.setdefault(int(upid), [])
            name = name.decode()
            if name in ("Cont", "Cont_end"):
                need(mine, "Cont without a text")
                mine[-1] = (mine[-1][0], mine[-1][1], mine[-1][2] + b"\n" + rest)
                continue
            need(not mine or mine[-1][0] <= time, f"{upid} is not in order")
            mine.append((time, name, rest))


class Process:
    def __init__(self, upid):
        self.upid = upid
        self.parent = None
        self.runs = [self.new_run()]
        self.fds = {}  # descriptor: (pipe, "r" or "w")
        self.status = None
        self.names = []  # it gave itself

    @staticmethod
    def new_run():
        return {"b": b"", "w": b"", "v": [], "c": [], "o": {}, "i": []}


def mode(flags):
    return flags & 3


class Database:
    def __init__(self, data):
        self.events = Events(data)
        self.processes = {}
        self.mounts = []  # (source, target, type)
        self.pipes = 0
        everything = []
        for upid, events in self.events.of.items():
            everything += [(time, order, upid)
                           for order, (time, _, _) in enumerate(events)]
        # Processes wait for each other's forks only: time is good enough, as
        # each is in order and a fork comes before what the child does.
        self.left = {upid: list(events)
                     for upid, events in self.events.of.items()}
        for _, _, upid in sorted(everything):
            if self.left[upid]:
                self.take(upid)
        for upid, events in self.left.items():
            need(not events, f"{upid}: {events[:1]} has no place")

    def process(self, upid):
        return self.processes.setdefault(upid, Process(upid))

    def text(self, upid, key, size):
        need(self.left[upid], f"{key} is missing")
        _, name, data = self.left[upid].pop(0)
        need(name == key, f"{name} instead of {key}")
        need(size is None or len(data) == size, f"{key} has {len(data)}, not {size}")
        return data

    def take(self, upid):
        _, name, data = self.left[upid].pop(0)
        me = self.process(upid)
        run = me.runs[-1]
        if name == "SysClone":
            self.clone_flags = fields(data)["flags"]
            _, name, data = self.left[upid].pop(0)
            need(name == "SchedFork", "SysClone without SchedFork")
            child = self.fork(me, fields(data)["pid"])
            run["c"].append((child.upid, self.clone_flags))
        elif name == "SchedFork":
            run["c"].append((self.fork(me, fields(data)["pid"]).upid, 0))
        elif name == "New_proc":
            self.exec(me, fields(data))
        elif name == "Exit":
            me.status = fields(data)["status"]
        elif name == "Open":
            sizes = fields(data)
            path = self.text(upid, "FN", sizes["fnamesize"])
            self.text(upid, "FO", sizes["forigsize"])
            self.open(run, path, mode(sizes["flags"]))
        elif name == "Close":
            me.fds.pop(fields(data)["fd"], None)
        elif name == "Pipe":
            ends = fields(data)
            self.pipes += 1
            me.fds[ends["fd1"]] = (self.pipes, "r")
            me.fds[ends["fd2"]] = (self.pipes, "w")
        elif name == "Dup":
            dup = fields(data)
            need(dup["oldfd"] in me.fds, "dup of nothing")
            me.fds[dup["newfd"]] = me.fds[dup["oldfd"]]
        elif name in ("RenameFrom", "LinkFrom"):
            key = name[0]
            old = self.text(upid, key + "F", fields(data)["fnamesize"])
            _, other, data = self.left[upid].pop(0)
            need(other == name.replace("From", "To"), other)
            new = self.text(upid, key + "T", fields(data)["fnamesize"])
            events = self.left[upid]
            if events and events[0][1] == name.replace("From", "Failed"):
                events.pop(0)
                return
            self.open(run, old, 0)
            self.open(run, new, 1)
        elif name == "Symlink":
            sizes = fields(data)
            self.text(upid, "ST", sizes["targetnamesize"])
            self.open(run, self.text(upid, "SL", sizes["linknamesize"]), 1)
        elif name == "Comm":
            me.names.append(self.text(upid, "CN", fields(data)["size"]))
        elif name == "Mount":
            sizes = fields(data)
            need("flags" in sizes, "a mount without flags")
            self.mounts.append((
                self.text(upid, "MS", sizes["sourcenamesize"]),
                self.text(upid, "MT", sizes["targetnamesize"]),
                self.text(upid, "MX", sizes["typenamesize"])))
        else:
            raise Wrong(f"unknown event {name}")

    @staticmethod
    def open(run, path, how):
        known = run["o"].get(path)
        run["o"][path] = how if known in (None, how) else 2

    def fork(self, me, upid):
        need(upid not in self.processes or self.processes[upid].parent is None,
             f"{upid} is forked twice")
        child = self.process(upid)
        child.parent = (me.upid, len(me.runs) - 1)
        child.fds = dict(me.fds)
        child.runs[0].update(b=me.runs[-1]["b"], w=me.runs[-1]["w"],
                             v=me.runs[-1]["v"])
        return child

    def exec(self, me, sizes):
        upid = me.upid
        run = Process.new_run()
        run["b"] = self.text(upid, "PI", sizes["prognameisize"])
        self.text(upid, "PP", sizes["prognamepsize"])
        run["w"] = self.text(upid, "CW", sizes["cwdsize"])
        while self.left[upid] and self.left[upid][0][1].startswith("A["):
            need(self.left[upid][0][1] == f"A[{len(run['v'])}]", "arguments")
            run["v"].append(self.left[upid].pop(0)[2])
        self.text(upid, "End_of_args", 0)
        need(sum(len(a) + 1 for a in run["v"]) == sizes["argsize"], "argsize")
        me.runs.append(run)
        self.find_pipes(me)

    def find_pipes(self, me):
        """By the rule of CAS, at each exec."""
        if me.parent is None:
            return
        x = len(me.runs) - 1
        above = self.processes[me.parent[0]]
        for pipe, end in set(me.fds.values()):
            if end == "w" and (pipe, "r") in above.fds.values():
                me.runs[x]["i"].append((above.upid, len(above.runs) - 1))
        for other in self.processes.values():
            if other is me or other.parent is None or (
                    other.parent[0] != me.parent[0]):
                continue
            for writer, reader in ((me, other), (other, me)):
                out, into = writer.fds.get(1), reader.fds.get(0)
                if not out or not into or out[0] != into[0] or (
                        (out[1], into[1]) != ("w", "r")):
                    continue
                edges = writer.runs[-1]["i"]
                for index in range(len(reader.runs)):
                    if (reader.upid, index) not in edges:
                        edges.append((reader.upid, index))
