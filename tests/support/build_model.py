"""Answers to questions about builds, worked out from the lines of
`tracefs-dump --format jsonl` in the slowest way there is: what every access was,
and every arrow from what a process did to what can only come after it. It knows
no pipes, no directories that are moved, and no threads.
"""

import collections
import json
import os

READ, WRITE, ABSENT = "read", "write", "absent"
MISSED = ("lookup", "open", "getattr", "statx", "access", "readlink", "unlink",
          "rename")


def accesses(line):
    """(path, kind) of one operation, by what open(2), read(2) … say."""
    op, path, path2 = line["op"], line.get("path"), line.get("path2")
    if "errno" in line:
        return [(path, ABSENT)] if op in MISSED and line["errno"] in (
            "ENOENT", "ENOTDIR") else []
    flags = line.get("flags", 0)
    if op in ("open", "create"):
        how = flags & os.O_ACCMODE
        kinds = [READ] if how != os.O_WRONLY else []
        if how != os.O_RDONLY or op == "create":
            kinds.append(WRITE)
        return [(path, kind) for kind in kinds]
    return {"read": [(path, READ)], "write": [(path, WRITE)],
            "fallocate": [(path, WRITE)], "mknod": [(path, WRITE)],
            "symlink": [(path, WRITE)],
            "copy_file_range": [(path, READ), (path2, WRITE)],
            "rename": [(path, READ), (path2, WRITE)],
            "link": [(path, READ), (path2, WRITE)]}.get(op, [])


class Process:
    def __init__(self, begin):
        self.parent = None
        self.begin, self.end = begin, None
        self.run = 0


class Model:
    def __init__(self, text):
        self.processes = {}
        # {(path, kind): {(pid, run): [first, last]}}
        self.uses = collections.defaultdict(dict)
        self.last_writer = {}
        self.twice = set()  # (path, who wrote it, who wrote it next)
        for line in map(json.loads, text.splitlines()):
            if "process" in line:
                self.take_process(line)
            elif "op" in line and line["pid"] in self.processes:
                self.take(line)

    def take_process(self, line):
        me = self.processes.setdefault(line["pid"], Process(line["ts"]))
        if line["process"] == "fork" and line["child_pid"] != line["pid"]:
            child = Process(line["ts"])
            child.parent = line["pid"]
            assert line["child_pid"] not in self.processes, "a pid again"
            self.processes[line["child_pid"]] = child
        elif line["process"] == "exec":
            me.run += 1
        elif line["process"] == "exit" and line["tid"] == line["pid"]:
            me.end = line["ts"]

    def take(self, line):
        who = (line["pid"], self.processes[line["pid"]].run)
        if self.processes[who[0]].end is not None:
            return  # a late close
        end = line["ts"] + line["dur"]
        found = accesses(line)
        if line["op"] == "release" and who in self.uses[line["path"], WRITE]:
            found = [(line["path"], WRITE)]
        for path, kind in found:
            if kind == WRITE and line["op"] != "release":
                last = self.last_writer.get(path, who[0])
                self.last_writer[path] = who[0]
                if last != who[0]:
                    self.twice.add((path, last, who[0]))
            times = self.uses[path, kind].setdefault(who, [line["ts"], end])
            times[1] = max(times[1], end)

    # --- What was it made from?

    def sources(self, target):
        found, left = {target}, [target]
        for path in left:
            for pid, _ in self.uses[path, WRITE]:
                for (other, kind), users in list(self.uses.items()):
                    if kind == READ and other not in found and any(
                            who[0] == pid for who in users):
                        found.add(other)
                        left.append(other)
        return found - {target}

    # --- Who comes first?

    def line_up(self, pid):
        """It and those above it."""
        line = []
        while pid is not None:
            line.append(pid)
            pid = self.processes[pid].parent
        return line

    def before(self, first, at, then, later):
        """Follows the arrows up from `first` to who both are below of, as far as
        each ends before the next does something, and down again."""
        ups, downs = self.line_up(first), self.line_up(then)
        common = next(pid for pid in ups if pid in downs)
        for pid in ups[:ups.index(common)]:
            end = self.processes[pid].end
            if end is None or end < at:
                return False
            at = end
        for pid in downs[:downs.index(common)][::-1]:
            if self.processes[pid].begin < at:
                return False
            at = self.processes[pid].begin
        return at <= later

    def double_writes(self):
        """By processes that do not descend from each other."""
        return {(path, first, second) for path, first, second in self.twice
                if first not in self.line_up(second) and
                second not in self.line_up(first)}

    def races(self):
        found = set()
        for (path, kind), writers in list(self.uses.items()):
            if kind != WRITE:
                continue
            for writer, (begin, end) in writers.items():
                for reader, (at, _) in self.uses[path, READ].items():
                    self.race(found, path, reader[0], at, writer[0], begin, end)
                for reader, (at, _) in self.uses[path, ABSENT].items():
                    if reader in self.uses[path, READ] or at >= begin or (
                            reader[0] in self.line_up(writer[0])):
                        continue
                    if not self.before(reader[0], at, writer[0], begin):
                        found.add(("probed-before-write", path, reader[0],
                                   writer[0]))
        return found

    def race(self, found, path, reader, at, writer, begin, end):
        if at < begin and not self.before(reader, at, writer, begin):
            found.add(("read-before-write", path, reader, writer))
        elif begin <= at < end and not (
                self.before(writer, begin, reader, at) and
                self.before(reader, at, writer, end)):
            found.add(("read-during-write", path, reader, writer))
