"""The ways that data can take between a caller and a disk: patterns, modes and
numbers of callers, each on file systems of its own.

Left out, so that a file system takes some twenty minutes: 4 callers but for
plain buffered I/O, since they lie between 1 and 16; blocks other than 1 MiB in
order and 4 KiB at random; queues of asynchronous I/O, for which many callers
stand; patterns that mix reads and writes; cold writes, for a whole block is
overwritten without being read; `full@exact` with many callers.
"""

import dataclasses

FILE_SYSTEMS = ("ext4", "xfs")
PATTERNS = ("read", "randread", "write", "randwrite")
READ_MODES = ("buffered", "cold", "direct", "mapped", "mapped-cold")
WRITE_MODES = ("buffered", "direct", "mapped")


@dataclasses.dataclass(frozen=True)
class Shape:
    """A path without its file system."""
    pattern: str  # fio's word
    mode: str
    callers: int

    def __str__(self):
        return f"{self.pattern}-{self.mode}-{self.callers}"

    @property
    def title(self):
        callers = "1 caller" if self.callers == 1 else f"{self.callers} callers"
        return f"{self.pattern}, {self.mode}, {callers}"

    @property
    def random(self):
        return self.pattern.startswith("rand")

    @property
    def writes(self):
        return self.pattern.endswith("write")

    @property
    def mapped(self):
        return self.mode.startswith("mapped")

    @property
    def cold(self):
        """Nothing is in memory before. Direct I/O passes that by, but who serves
        it might not."""
        return self.mode.endswith("cold") or self.mode == "direct"


def _shapes():
    for pattern in PATTERNS:
        for mode in WRITE_MODES if pattern.endswith("write") else READ_MODES:
            for callers in (1, 4, 16, 64):
                if callers != 4 or mode == "buffered":
                    yield Shape(pattern, mode, callers)


SHAPES = tuple(_shapes())


def distinct(paths):
    """Of (file system, shape) those with a file system, a pattern, a mode or a
    number of callers that none before has."""
    seen = set()
    kept = []
    for fs, shape in paths:
        words = {("fs", fs), ("pattern", shape.pattern), ("mode", shape.mode),
                 ("callers", shape.callers)}
        if words - seen:
            kept.append((fs, shape))
        seen |= words
    return kept
