"""What the kernel may answer by itself in each visibility, of what a trace of
everything holds: names, the lack of names, attributes, targets of links and
listings, each for as long as the mount told it to keep them and no longer.

The checker notes what was answered, and asks here where a request is missing.
"""

import bisect
import collections
import os

# Kernel time-outs are rounded up to ticks (4 ms where there are 250 a second)
# and begin when the answer has arrived.
TICKS_US = 2 * 10_000
HOUR_US = 3_600_000_000

# (names, missing names, attributes) in microseconds, where all is recorded:
# tracefs/fs/cache_policy.cc.
TIMES = {
    "exact": (0, 0, 0),
    "auto": (10_000, 0, 10_000),
    "fast": (HOUR_US, 1_000_000, HOUR_US),
}
KINDS = {4: "dir", 8: "file", 10: "link", 1: "fifo", 12: "sock", 2: "char",
         6: "block"}
# Bits of statx(2)'s mask.
MASK = {"fmode": 0x3, "nlink": 0x4, "fuid": 0x8, "fgid": 0x10, "ino": 0x100,
        "fsize": 0x200}
ALL = 0x7FF

Name = collections.namedtuple("Name", "ino kind when_us")


# When the caller had the answer at the latest: its next call began then. The
# kernel counts from there, and a thread may have to wait for its processor.
ARRIVED = "arrived_us"


def arrived_us(event):
    return event.get(ARRIVED, (event["ts"] + event.get("dur", 0)) // 1000)


class Kept:
    """The kernel's caches, as far as they are allowed to hide requests."""

    def __init__(self, visibility, events, slack_us):
        self.names_us, self.missing_us, self.attributes_us = TIMES[visibility]
        self.wide = visibility == "fast"  # links and listings as well
        self.anything = visibility != "exact"
        self.slack_us = slack_us + TICKS_US
        self.names = {}  # absolute path -> Name; ino None: there is none
        self.targets = {}  # inode -> target of a link that was read
        self.listed = set()  # inodes that READDIRPLUS may have told of
        self.folders = set()  # inodes of directories whose listing is kept
        # Threads run side by side: what another one was answered may stand
        # later in the order of the calls.
        self.by_path = collections.defaultdict(list)  # inner path -> Names
        self.attributes = collections.defaultdict(list)  # inode -> events
        if not self.anything:
            return
        for event in sorted(events, key=lambda e: e["ts"]):
            if "fmode" in event:
                self.attributes[event["ino"]].append(event)
            if "errno" not in event and event["op"] in (
                    "lookup", "create", "mkdir", "mknod", "symlink", "link"):
                path = event.get("path2" if event["op"] == "link" else "path")
                self.by_path[path].append(
                    Name(event["ino"], event.get("type"), arrived_us(event)))

    # --- names

    def note_name(self, path, ino, kind, when_us):
        self.names[path] = Name(ino, kind, when_us)

    def drop_name(self, path):
        for known in [p for p in self.names
                      if p == path or p.startswith(path + "/")]:
            del self.names[known]

    def rename(self, old, new, exchange):
        def below(path):
            return [(p, self.names.pop(p)) for p in list(self.names)
                    if p == path or p.startswith(path + "/")]
        moved, replaced = below(old), below(new)
        for path, name in moved:
            self.names[new + path[len(old):]] = name
        if exchange:
            for path, name in replaced:
                self.names[old + path[len(new):]] = name

    def name(self, path, inner, call):
        """The name that needed no lookup in this call; None: it needed one."""
        if not self.anything:
            return None
        known = self.names.get(path)
        if known is not None and self.valid(known, call):
            return known
        for one in reversed(self.by_path.get(inner, [])):
            if one.when_us <= call.next_us + self.slack_us:
                return one if self.valid(one, call) else None
        return None

    def valid(self, name, call):
        time_us = self.missing_us if name.ino is None else self.names_us
        if time_us == 0:
            return False
        return call.begin_us <= name.when_us + time_us + self.slack_us

    # --- attributes

    def has_attributes(self, ino, result, call, mask=ALL):
        """Whether the kernel may have had this result of a stat."""
        if not self.anything:
            return False
        events = self.attributes.get(ino, [])
        last = bisect.bisect_right(
            events, (call.next_us + self.slack_us) * 1000,
            key=lambda e: e["ts"])
        for event in reversed(events[:last]):
            if (call.begin_us > arrived_us(event) + self.attributes_us
                    + self.slack_us):
                break
            if self.same(event, result, mask):
                return True
        return self.wide and ino in self.listed

    @staticmethod
    def same(event, result, mask=ALL):
        for ours, theirs in (("fmode", "mode"), ("nlink", "nlink"),
                             ("fuid", "uid"), ("fgid", "gid"),
                             ("fsize", "size"), ("ino", "ino")):
            want = result.get("st_" + theirs, result.get("stx_" + theirs))
            if want is not None and MASK[ours] & mask and event[ours] != want:
                return False
        return True

    # --- directories and links

    def note_listing(self, path, ino, entries, when_us):
        if not self.wide:
            return
        self.folders.add(ino)
        for entry in entries:
            if entry["d_name"] in (".", ".."):
                continue
            self.listed.add(entry["d_ino"])
            where = os.path.join(path, entry["d_name"])
            self.note_name(where, entry["d_ino"], KINDS.get(entry["d_type"]),
                           when_us)

    def has_listing(self, ino):
        return self.wide and ino in self.folders

    def note_target(self, ino, target):
        self.targets[ino] = target

    def target(self, ino):
        return self.targets.get(ino) if self.wide else None
