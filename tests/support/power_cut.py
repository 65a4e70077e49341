"""What a power cut may leave of what programs did (disk_log.py).

The model is what POSIX promises and no more, as in ALICE (OSDI '14) and
CrashMonkey (OSDI '18):

- What fsync, fdatasync or O_DSYNC covered is there: bytes and size of a file,
  names in a folder. A file's own sync says nothing of its name.
- Of later writes each sector of 512 bytes is there or not, and the file is as
  long as any of them made it; what is missing reads as before, or as zeros.
- Of later names each is there or not, whatever became of others (file systems
  with a journal keep the order; the worst ones do not). Two changes of one name
  keep their order, and a rename is there as a whole or not at all.
"""

import hashlib
import os
import random
import shutil

from disk_log import File, Folder

SECTOR = 512


class Cuts:
    """States at every moment of a log, told apart: a few for each moment, and all
    (Every) where they are no more than `most`."""

    def __init__(self, log, seed, per_moment, most=0):
        self.log = log
        self.random = random.Random(seed)
        self.per_moment = per_moment
        self.most = most
        self.moments = 0
        self.whole = 0  # those of which all states were made
        self.marks = []
        self.seen = set()

    def states(self):
        """Yields (tree, marks): a tree is {name: bytes or tree}."""
        present = []
        steps = self.log.steps
        for i, step in enumerate(steps):
            if step.kind == "mark":
                self.marks.append(step.about)
            elif step.kind == "sync":
                self._make_durable(present, step)
            else:
                present.append(step)
            # A sync leaves fewer states, a mark asks more of the same ones.
            last = i + 1 == len(steps)
            if not last and (step.kind == "sync" or step.before
                             or steps[i + 1].kind == "mark"):
                continue
            yield from self._states_of(present)

    @staticmethod
    def _make_durable(present, sync):
        for step in present:
            if step.end_us > sync.covers_us:
                continue
            if step.kind == "name":
                # A rename between folders is one entry of a journal.
                inodes = [step.about[-1][0]]
            else:
                inodes = [step.about[0]]
            if any(inode in sync.about for inode in inodes):
                step.durable = True

    def _states_of(self, present):
        self.moments += 1
        yield from self._told_apart(present, self._choices())
        count = 0
        every = Every()
        # Counted before they are looked at: a part of them shows nothing that
        # those drawn do not.
        while count <= self.most:
            Leaving(present, every)
            count += 1
            if not every.advance():
                break
        if count <= self.most:
            self.whole += 1
            yield from self._told_apart(present, Every.choices())

    def _told_apart(self, present, choices):
        for choose in choices:
            tree = Leaving(present, choose).tree(self.log.tree)
            key = digest_of(tree, len(self.marks))
            if key not in self.seen:
                self.seen.add(key)
                yield tree, list(self.marks)

    def _choices(self):
        yield Choice(1, 1, 1, 1)  # nothing is lost
        yield Choice(0, 0, 0, 0)  # all is that may be
        yield Choice(1, 1, 0, 0)  # names without contents
        yield Choice(1, 1, 0, 1)  # … of the right size
        yield Choice(0, 0, 1, 1)  # contents without names
        yield Choice(0, 1, 1, 1)  # of names only what took some away
        yield Choice(1, 0, 1, 1)  # all but that
        for _ in range(self.per_moment):
            yield Choice(self.random.choice((0.2, 0.5, 0.8, 1)),
                         self.random.choice((0, 0.2, 0.5, 0.8, 1)),
                         self.random.choice((0.1, 0.5, 0.9, 1)),
                         self.random.choice((0.2, 0.5, 0.8)), self.random)


class Choice:
    """How likely a name, a removal of one, a sector, a size is there."""

    def __init__(self, name, removal, sector, size, source=None):
        self.likely = {"name": name, "removal": removal, "sector": sector,
                       "size": size}
        self.random = source

    def begin(self, step):
        """Each sector is drawn for itself."""

    def __call__(self, what):
        likely = self.likely[what]
        return likely == 1 or (likely != 0 and self.random.random() < likely)


class Every:
    """All combinations, one after the other: each name and each change of a size
    is there or not, each write is, or is not, or only what it made of the size.
    That some sectors of a write are there and others not is only drawn."""

    def __init__(self):
        self.digits = []  # [choice, of how many]
        self.at = 0
        self.kind = self.digit = None

    @classmethod
    def choices(cls):
        every = cls()
        yield every
        while every.advance():
            yield every

    def begin(self, step):
        self.kind, self.digit = step.kind, None

    def __call__(self, what):
        if self.digit is None:
            if self.at == len(self.digits):
                self.digits.append([0, 3 if self.kind == "write" else 2])
            self.digit = self.digits[self.at][0]
            self.at += 1
        return self.digit == 2 or (self.digit == 1 and what != "sector")

    def advance(self):
        del self.digits[self.at:]
        self.at = 0
        while self.digits and self.digits[-1][0] + 1 == self.digits[-1][1]:
            self.digits.pop()
        if not self.digits:
            return False
        self.digits[-1][0] += 1
        return True


class Leaving:
    """One state: what of `present` is there."""

    def __init__(self, present, choose):
        self.choose = choose
        self.files = {}
        self.folders = {}
        last = self._last_durable(present)
        held = set()
        for i, step in enumerate(present):
            choose.begin(step)
            if step.kind == "name":
                keys = [(folder.number, name)
                        for folder, name, _ in step.about]
                # What a later durable change of the name rests on is there.
                if not (step.durable or any(i < last.get(k, -1) for k in keys)):
                    removal = all(inode is None for *_, inode in step.about)
                    if held.intersection(keys) or not choose(
                            "removal" if removal else "name"):
                        held.update(keys)
                        continue
                for folder, name, inode in step.about:
                    names = self.folders.setdefault(folder, {})
                    if inode is None:
                        names.pop(name, None)
                    else:
                        names[name] = inode
            else:
                self._change(step)

    @staticmethod
    def _last_durable(present):
        return {(folder.number, name): i
                for i, step in enumerate(present)
                if step.kind == "name" and step.durable
                for folder, name, _ in step.about}

    def _change(self, step):
        file = step.about[0]
        data = self.files.setdefault(file, bytearray())
        if step.kind == "size":
            size = step.about[1]
            if step.durable or self.choose("size"):
                del data[size:]
                data.extend(bytes(size - len(data)))
            return
        _, offset, written = step.about
        end = offset + len(written)
        if len(data) < end and (step.durable or self.choose("size")):
            data.extend(bytes(end - len(data)))
        for sector in range(offset // SECTOR, (end + SECTOR - 1) // SECTOR):
            if step.durable or self.choose("sector"):
                low = max(offset, sector * SECTOR)
                high = min(end, (sector + 1) * SECTOR, len(data))
                if low < high:
                    data[low:high] = written[low - offset:high - offset]

    def tree(self, folder):
        left = {}
        for name, inode in self.folders.get(folder, {}).items():
            if isinstance(inode, Folder):
                left[name] = self.tree(inode)
            elif isinstance(inode, File):
                left[name] = bytes(self.files.get(inode, b""))
        return left


def digest_of(tree, *more):
    digest = hashlib.sha256(repr(more).encode())

    def add(at):
        for name in sorted(at):
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            if isinstance(at[name], dict):
                digest.update(b"{")
                add(at[name])
                digest.update(b"}")
            else:
                digest.update(hashlib.sha256(at[name]).digest())

    add(tree)
    return digest.digest()


def put(tree, path):
    """Writes a state to a folder, which is emptied first."""
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path, 0o700)
    for name, inside in tree.items():
        place = os.path.join(path, name)
        if isinstance(inside, dict):
            put(inside, place)
        else:
            with open(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600),
                      "wb") as out:
                out.write(inside)


def tree_of(path):
    """What is really there, to be held against all of a log."""
    tree = {}
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            tree[entry.name] = tree_of(entry.path)
        elif entry.is_file(follow_symlinks=False):
            with open(entry.path, "rb") as file:
                tree[entry.name] = file.read()
    return tree


def difference(tree, other, path=""):
    """Names of what is not the same in both."""
    names = []
    for name in sorted(set(tree) | set(other)):
        one, two = tree.get(name), other.get(name)
        if isinstance(one, dict) and isinstance(two, dict):
            names += difference(one, two, path + name + "/")
        elif one != two:
            names.append(path + name)
    return names
