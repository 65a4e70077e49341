"""Traces of what a test tells, for answers that are known because the test made
them so: Script collects operations and process records, and has
make_scripted_trace write them down."""

import subprocess


def encoded(text):
    return "".join(f"%{b:02x}" if b <= 32 or b == 37 or b >= 127 else chr(b)
                   for b in os_bytes(text))


def os_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


class Script:
    # TraceBuilder's begin, 2026-01-02 03:04:05 UTC.
    BEGIN_NS = 1_767_323_045_000_000_000

    def __init__(self):
        self.now = 0
        self.lines = []
        self.operations = []  # dicts, in order
        self.parents = {}  # by pid

    def _line(self, word, **pairs):
        self.lines.append(" ".join(
            [word] + [f"{k}={encoded(str(v) if isinstance(v, int) else v)}"
                      for k, v in pairs.items()]))

    def wait(self, ns):
        self.now += ns

    def fork(self, parent, child):
        self.parents[child] = parent
        self._line("fork", t=self.now, pid=parent, child=child)

    def exec(self, pid, command):
        self._line("exec", t=self.now, pid=pid,
                   ppid=self.parents.get(pid, 1), argv=command)

    def exit(self, pid, code=0):
        self._line("exit", t=self.now, pid=pid, code=code)

    def block(self):
        self._line("block")

    def other(self, word, **pairs):
        self._line(word, **pairs)

    def op(self, word, pid, comm, path="", dur=1000, gap=1000, **more):
        """The next operation begins `dur` and `gap` later."""
        told = dict(t=self.now, dur=dur, pid=pid, comm=comm,
                    ppid=self.parents.get(pid, 1), **more)
        told.setdefault("uid", 1000)
        if path:
            told["path"] = path
        self._line(word, **told)
        self.operations.append(dict(told, op=word, path=path))
        self.now += dur + gap

    def make(self, maker, path):
        subprocess.run([maker, path], input="\n".join(self.lines).encode(),
                       check=True)
        return path
