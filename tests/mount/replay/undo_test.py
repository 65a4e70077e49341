#!/usr/bin/env python3
"""What --undo says it has taken back is so, byte for byte, and what it refuses is
left as it was. Two processes change a tree in turns; what the tree must be when
the operations of one are taken back is said by a model of this suite's own, which
goes through all operations that were not taken back, by files, not by names.

  undo_test.py --bin build/release/bin [--only NAME]
"""

import hashlib
import json
import os
import random
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402
from workloads import AS_IT_WAS  # noqa: E402

SOAK = os.environ.get("TRACEFS_SOAK") == "1"
FLAGS = "STR_REPLAY | STR_DATA | STR_PID"
# One system call that changes something for each line of standard input.
WORKER = r"""
import json, os, sys
for line in sys.stdin:
    op, *words = json.loads(line)
    if op == "create":
        os.close(os.open(words[0], os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    elif op == "write":
        f = os.open(words[0], os.O_WRONLY)
        os.pwrite(f, bytes.fromhex(words[2]), words[1]); os.close(f)
    elif op == "truncate":
        os.truncate(words[0], words[1])
    elif op == "copy":
        f, g = os.open(words[0], os.O_RDONLY), os.open(words[1], os.O_WRONLY)
        assert os.copy_file_range(f, g, words[4], words[2], words[3]) == words[4]
        os.close(f); os.close(g)
    elif op == "read":
        open(words[0], "rb").read()
    else:
        getattr(os, op)(*words)
    print("done", flush=True)
"""
CHANGES = {"create": ("create",), "write": ("write",),
           "truncate": ("setattr",), "chmod": ("setattr",),
           "copy": ("copy_file_range",), "unlink": ("unlink",),
           "rename": ("rename",), "link": ("link",), "mkdir": ("mkdir",),
           "rmdir": ("rmdir",), "symlink": ("symlink",)}


class Thing:
    """A file, whatever it is called."""

    def __init__(self, kind, content=b"", mode=0o644):
        self.kind = kind
        self.content = content
        self.mode = mode
        self.first = content, mode

    def begin_again(self):
        self.content, self.mode = self.first


class Model:
    """A tree as a dictionary of (directory, name); the top is a Thing, too.

    Where a change was taken back that had made room for a later one, two things
    have a name; whoever still has it when the other has lost it is there."""

    def __init__(self):
        self.top = Thing("dir", mode=0o755)
        self.names = {}
        self.waiting = {}  # those who have a name that is another's just now

    def give(self, at, thing):
        if at in self.names:
            self.waiting.setdefault(at, []).append(self.names[at])
        self.names[at] = thing

    def take(self, at, thing):
        waiting = self.waiting.get(at, [])
        if self.names.get(at) is thing:
            del self.names[at]
            if waiting:
                self.names[at] = waiting.pop()
        elif thing in waiting:
            waiting.remove(thing)

    def path(self, thing):
        if thing is self.top:
            return ""
        for (folder, name), what in self.names.items():
            if what is thing:
                return os.path.join(self.path(folder), name)
        raise KeyError

    def things(self, kind):
        return [t for t in dict.fromkeys(self.names.values())
                if t.kind == kind]

    def folders(self):
        return [self.top, *self.things("dir")]

    def inside(self, thing, folder):
        while thing is not self.top:
            if thing is folder:
                return True
            thing = next(f for (f, _), w in self.names.items() if w is thing)
        return thing is folder

    def do(self, effect):
        op, *words = effect
        if op in ("make", "name"):
            self.give(*words)
        elif op == "unname":
            self.take(*words)
        elif op == "rename":
            at, to, thing, replaced = words
            self.take(at, thing)
            if replaced:
                self.take(to, replaced)
            self.give(to, thing)
        elif op == "bytes":
            thing, offset, data = words
            old = thing.content.ljust(offset, b"\0")
            thing.content = old[:offset] + data + old[offset + len(data):]
        elif op == "size":
            words[0].content = words[0].content[:words[1]].ljust(
                words[1], b"\0")
        elif op == "mode":
            words[0].mode = words[1]

    def digest(self):
        tree = {}
        for (folder, name), thing in self.names.items():
            path = os.path.join(self.path(folder), name)
            tree[path] = (thing.kind,
                          None if thing.kind == "link" else thing.mode,
                          hashlib.sha256(thing.content).hexdigest())
        return tree


def digest_of(root):
    tree = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            st = os.lstat(path)
            content = b""
            kind = {stat.S_IFDIR: "dir", stat.S_IFLNK: "link"}.get(
                stat.S_IFMT(st.st_mode), "file")
            if kind == "file":
                with open(path, "rb") as data:
                    content = data.read()
            elif kind == "link":
                content = os.readlink(path).encode()
            tree[relative] = (kind, None if kind == "link"
                              else stat.S_IMODE(st.st_mode),
                              hashlib.sha256(content).hexdigest())
    tree.pop("lost+found", None)
    return tree


class Story:
    """Random changes of two who take turns, as calls and as effects."""

    def __init__(self, seed, count, others):
        self.random = random.Random(seed)
        self.model = Model()
        self.done = []  # (who, call, effects)
        self.count = count
        self.others = others
        self.names_before = {}

    def name(self):
        # Few names: they are given again.
        return f"n{self.random.randrange(12)}"

    def data(self):
        return self.random.randbytes(self.random.randrange(1, 9000))

    def begin(self, source):
        """What is there before; returns the paths."""
        paths = []
        for folder in ("", "d", "d/e"):
            if folder:
                os.mkdir(os.path.join(source, folder))
                thing = Thing("dir", mode=0o755)
                parent, name = os.path.split(folder)
                at = next(f for f in self.model.folders()
                          if self.model.path(f) == parent)
                self.model.names[at, name] = thing
        for i in range(10):
            folder = self.random.choice(self.model.folders())
            data = self.data()
            path = os.path.join(self.model.path(folder), f"b{i}")
            with open(os.path.join(source, path), "wb") as out:
                out.write(data)
            os.chmod(os.path.join(source, path), 0o640)
            self.model.names[folder, f"b{i}"] = Thing("file", data, 0o640)
            paths.append(path)
        self.names_before = dict(self.model.names)
        return paths

    def without(self, undone):
        """The tree that comes of all changes but those."""
        things = set(self.names_before.values())
        things |= {w for _, _, effects in self.done for e in effects
                   for w in e if isinstance(w, Thing)}
        for thing in things:
            thing.begin_again()
        self.model.names = dict(self.names_before)
        self.model.waiting = {}
        for i, (_, _, effects) in enumerate(self.done):
            for effect in effects if i not in undone else ():
                self.model.do(effect)
        expect(not any(self.model.waiting.values()), "two have one name")
        return self.model.digest()

    def step(self):
        """(call, effects, or None where nothing can be done)"""
        model, rnd = self.model, self.random
        op = rnd.choice(list(CHANGES) + ["write", "create", "unlink"])
        files = model.things("file")
        folder = rnd.choice(model.folders())
        name = self.name()
        new = os.path.join(model.path(folder), name)
        free = (folder, name) not in model.names
        if op in ("create", "mkdir", "symlink") and free:
            kind = {"create": "file", "mkdir": "dir", "symlink": "link"}[op]
            thing = Thing(kind, b"there" if op == "symlink" else b"",
                          0o755 if kind == "dir" else 0o644)
            call = [op, *(["there"] if op == "symlink" else []), new]
            return call, [("make", (folder, name), thing)]
        if op == "rmdir":
            empty = [f for f in model.things("dir") if not any(
                at is f for at, _ in model.names)]
            if not empty:
                return None
            gone = rnd.choice(empty)
            at = next(k for k, w in model.names.items() if w is gone)
            return [op, model.path(gone)], [("unname", at, gone)]
        if not files:
            return None
        file = rnd.choice(files)
        path = model.path(file)
        size = len(file.content)
        if op == "write":
            offset, data = rnd.randrange(size + 2000), self.data()
            return ([op, path, offset, data.hex()], [("bytes", file, offset,
                                                     data)])
        if op == "truncate":
            to = rnd.randrange(size + 3000)
            return [op, path, to], [("size", file, to)]
        if op == "chmod":
            mode = rnd.choice((0o600, 0o644, 0o755, 0o4755))
            return [op, path, mode], [("mode", file, mode)]
        if op == "copy":
            other = rnd.choice(files)
            if other is file or size == 0:
                return None
            offset = rnd.randrange(size)
            count = rnd.randrange(1, size - offset + 1)
            to = rnd.randrange(len(other.content) + 500)
            data = file.content[offset:offset + count]
            return ([op, path, model.path(other), offset, to, count],
                    [("bytes", other, to, data)])
        at = rnd.choice([k for k, w in model.names.items() if w is file])
        old = os.path.join(model.path(at[0]), at[1])
        if op == "unlink":
            return [op, old], [("unname", at, file)]
        if op == "link" and free:
            return [op, old, new], [("name", (folder, name), file)]
        if op == "rename":
            dirs = model.things("dir")
            if dirs and rnd.random() < 0.3:
                moved = rnd.choice(dirs)
                if not free or model.inside(folder, moved):
                    return None
                at = next(k for k, w in model.names.items() if w is moved)
                return ([op, model.path(moved), new],
                        [("rename", at, (folder, name), moved, None)])
            taken = model.names.get((folder, name))
            if taken is file or (taken and taken.kind == "dir"):
                return None
            return ([op, old, new],
                    [("rename", at, (folder, name), file, taken)])
        return None

    def run(self, workers):
        while len(self.done) < self.count:
            made = self.step()
            if made is None:
                continue
            call, effects = made
            who = 1 if self.random.random() < self.others else 0
            worker = workers[who]
            worker.stdin.write(json.dumps(call) + "\n")
            worker.stdin.flush()
            said = worker.stdout.readline()
            expect_equal(said, "done\n", f"{call}")
            for effect in effects:
                self.model.do(effect)
            self.done.append((who, call, effects))


class Undo:
    def __init__(self, suite):
        self.suite = suite

    def record(self, seed, count, others, source, read):
        """A recorded story; the trace, the pids and the digest before."""
        suite = self.suite
        story = Story(seed, count, others)
        paths = story.begin(source)
        before = digest_of(source)
        expect_equal(story.model.digest(), before, "the model")
        trace = suite.path(os.path.basename(source) + ".trace")
        mount = suite.mount(source, source, (
            "", FLAGS, f'file = "{trace}" buf = 1048576'))
        workers = [subprocess.Popen(
            [sys.executable, "-B", "-c", WORKER], cwd=source, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
        try:
            for path in paths:
                if self.known(path, read):
                    workers[2].stdin.write(json.dumps(["read", path]) + "\n")
                    workers[2].stdin.flush()
                    workers[2].stdout.readline()
            story.run(workers)
        finally:
            for worker in workers:
                worker.stdin.close()
                worker.wait()
        mount.unmount()
        expect_equal(digest_of(source), story.model.digest(), "the workload")
        return trace, story, before, [w.pid for w in workers]

    @staticmethod
    def known(path, read):
        return read == 1 or (hash_of(path) % 100) / 100 < read

    def operations(self, trace, story, pids):
        """The number in the trace of each change that the story has made."""
        changes = []
        number = 0
        every = {op for ops in CHANGES.values() for op in ops}
        for event in self.suite.read(trace):
            number += 1
            if (event["op"] in every and "errno" not in event
                    and event.get("pid") in pids[:2]):
                changes.append((number, event))
        expect_equal(len(changes), len(story.done), "changes in the trace")
        for (number, event), (who, call, _) in zip(changes, story.done):
            expect(event["op"] in CHANGES[call[0]]
                   and event["pid"] == pids[who], f"{call} {event}")
        return [number for number, _ in changes]

    def undo(self, trace, source, pid, *words):
        done = self.suite.tool("tracefs-replay", trace, "--root", source,
                               "--undo", f"cpid = {pid}", "--format", "json",
                               *AS_IT_WAS, *words)
        expect(done.returncode in (0, 1), done.stderr)
        said = json.loads(done.stdout)
        expect_equal(said["doubt"], "", done.stdout[-500:])
        expect_equal(done.returncode, 1 if said["not_done"] else 0, "status")
        return said

    def check(self, seed, count, others, source, read=1.0):
        """One story; how many of its operations were taken back."""
        trace, story, before, pids = self.record(seed, count, others, source,
                                                 read)
        numbers = self.operations(trace, story, pids)
        after = digest_of(source)
        shown = self.undo(trace, source, pids[0])
        expect_equal(digest_of(source), after, "what was only shown")
        said = self.undo(trace, source, pids[0], "--apply")
        expect_equal(said["steps"], shown["steps"],
                     "verdicts of who asks and of who has it done")
        verdicts = {}
        for step in said["steps"]:
            verdicts.setdefault(step["operation"], set()).add(
                "not_done" in step)
        expect(all(len(v) == 1 for v in verdicts.values()),
               "an operation is taken back as a whole, or not at all")
        undone = {number for number, v in verdicts.items() if v == {False}}
        want = story.without({i for i, number in enumerate(numbers)
                              if number in undone})
        got = digest_of(source)
        wrong = {path: (got.get(path), want.get(path))
                 for path in got.keys() | want.keys()
                 if got.get(path) != want.get(path)}
        expect(not wrong, f"seed {seed}: {json.dumps(wrong, indent=1)[:1500]}")
        mine = sum(who == 0 for who, _, _ in story.done)
        if others == 0 and read == 1:
            expect_equal((said["not_done"], got), (0, before), "all of it")
        return len(undone), mine

    def stories(self, kind):
        """Of many, what share was taken back."""
        why = self.suite.no_file_system(kind)
        if why:
            raise Skip(why)
        undone = mine = 0
        seeds = 40 if SOAK else 2
        with self.suite.file_system("undone", kind) as folder:
            for seed in range(seeds * 4):
                source = os.path.join(folder, f"{kind}-{seed}")
                os.mkdir(source)
                others = (0, 0, 0.15, 0.5)[seed % 4]
                read = (1, 0.5, 1, 0.7)[seed % 4]
                some, all_of_them = self.check(seed, 150, others, source, read)
                undone += some
                mine += all_of_them
        expect(undone * 3 > mine, f"only {undone} of {mine} were taken back")
        return f"{undone} of {mine} operations"

    def whole_run(self):
        """All that a program did under tracefs-run."""
        suite = self.suite
        why = suite.no_file_system("ext4")
        if why:
            raise Skip(why)
        undone = 0
        with suite.file_system("run", "ext4") as folder:
            for seed in range(100, 140 if SOAK else 102):
                source = os.path.join(folder, f"run-{seed}")
                os.mkdir(source)
                story = Story(seed, 150, 0)
                paths = story.begin(source)
                before = digest_of(source)
                calls = [["read", path] for path in paths]
                while len(story.done) < story.count:
                    made = story.step()
                    if made is not None:
                        calls.append(made[0])
                        story.done.append((0, *made))
                        for effect in made[1]:
                            story.model.do(effect)
                trace = suite.path(f"run-{seed}.trace")
                config = suite.config(("", FLAGS, f'file = "{trace}"'))
                done = suite.tool(
                    "tracefs-run", "--config", config, "--src", source, "--",
                    sys.executable, "-B", "-c", WORKER, cwd=source,
                    input="\n".join(map(json.dumps, calls)) + "\n")
                expect_equal(done.stdout.count("done"), len(calls),
                             done.stdout + done.stderr)
                expect_equal(digest_of(source), story.model.digest(), "the run")
                done = suite.tool("tracefs-replay", trace, "--root", source,
                                  "--undo", "cuid = 0", "--apply", "--format",
                                  "json", *AS_IT_WAS)
                expect_equal(done.returncode, 0, done.stdout + done.stderr)
                expect_equal(digest_of(source), before, "all of it taken back")
                undone += len(json.loads(done.stdout)["steps"])
        return f"{undone} steps"

    def numbers_given_again(self):
        """On ext4 the number of a removed file is given to the next one: that is
        no change of the removed one."""
        why = self.suite.no_file_system("ext4")
        if why:
            raise Skip(why)
        suite = self.suite
        with suite.file_system("reused", "ext4") as folder:
            source = os.path.join(folder, "source")
            os.mkdir(source)
            for i in range(40):
                with open(os.path.join(source, f"f{i}"), "wb") as out:
                    out.write(b"%d" % i * 50)
            before = digest_of(source)
            trace = suite.path("reused.trace")
            mount = suite.mount(source, source, (
                "", FLAGS + " | STR_PNAME", f'file = "{trace}"'))
            subprocess.run(
                ["sh", "-c", "cat f* > /dev/null; for i in $(seq 0 39); do "
                 "rm f$i; sh -c \"echo new > g$i; echo more >> g$i\"; done"],
                cwd=source, check=True)
            mount.unmount()
            done = suite.tool("tracefs-replay", trace, "--root", source,
                              "--undo", "cname = rm", "--apply")
            expect_equal(done.returncode, 0, done.stdout + done.stderr)
            now = digest_of(source)
            expect_equal({p: d for p, d in now.items() if p[0] == "f"}, before,
                         "what was removed")
            expect_equal(sum(p[0] == "g" for p in now), 40, "what others made")

    def changed_afterwards(self):
        """What happens to DIR after the trace is not overwritten."""
        suite = self.suite
        suite.remove("later")
        source = suite.folder("later")
        for name in ("a", "b", "c"):
            with open(os.path.join(source, name), "wb") as out:
                out.write(b"first " * 100)
        trace = suite.path("later.trace")
        mount = suite.mount(source, source, (
            "", FLAGS + " | STR_PNAME", f'file = "{trace}"'))
        subprocess.run(
            ["sh", "-c", "cat a b c > /dev/null; rm a; touch n; for f in b c; do "
             "dd if=/dev/zero of=$f bs=10 count=3 conv=notrunc; done"],
            cwd=source, check=True, capture_output=True)
        mount.unmount()
        with open(os.path.join(source, "b"), "r+b") as out:
            out.write(b"later")
        with open(os.path.join(source, "a"), "wb") as out:
            out.write(b"another")
        with open(os.path.join(source, "n"), "wb") as out:
            out.write(b"more")
        now = digest_of(source)
        for words in ((), ("--apply",)):
            done = suite.tool("tracefs-replay", trace, "--root", source,
                              "--undo", "cname IN { rm dd touch }", *words)
            expect_equal(done.returncode, 1, done.stdout + done.stderr)
            for path in ("a", "b", "n"):
                expect_equal(digest_of(source)[path], now[path], path)
        with open(os.path.join(source, "c"), "rb") as data:
            expect_equal(data.read(), b"first " * 100, "what can be taken back")

    def who_is_not_told(self):
        """A predicate on what the trace does not tell is no answer."""
        suite = self.suite
        suite.remove("who")
        source = suite.folder("who")
        trace = suite.path("who.trace")
        mount = suite.mount(source, source, (
            "", "STR_REPLAY | STR_DATA", f'file = "{trace}"'))
        with open(os.path.join(source, "a"), "wb") as out:
            out.write(b"a")
        mount.unmount()
        for text in (f"cpid = {os.getpid()}", "NOT cname = x", "pid != 1"):
            done = suite.tool("tracefs-replay", trace, "--root", source,
                              "--undo", text)
            expect_equal(done.returncode, 2, done.stdout + done.stderr)
            expect("tells c" in done.stderr and "cuid" in done.stderr and
                   "ctid" in done.stderr, done.stderr)
        suite.command("tracefs-replay", trace, "--root", source, "--undo",
                      "cuid = 0 AND name = \"cpid\"")

    def what_cannot_come_back(self):
        """What the trace does not have is not replaced by zeros, in whole or in
        part."""
        suite = self.suite
        suite.remove("unknown")
        source = suite.folder("unknown")
        for name in ("cut", "gone", "over", "kept"):
            with open(os.path.join(source, name), "wb") as out:
                out.write(name.encode() * 1000)
        trace = suite.path("unknown.trace")
        mount = suite.mount(source, source, (
            "", FLAGS + " | STR_PNAME", f'file = "{trace}"'))
        subprocess.run(
            ["sh", "-c", "truncate -s 10 cut; rm gone; mv kept over; "
             "dd if=/dev/zero of=cut bs=20 count=1 conv=notrunc"],
            cwd=source, check=True, capture_output=True)
        mount.unmount()
        now = digest_of(source)
        for words in ((), ("--apply",)):
            done = suite.tool("tracefs-replay", trace, "--root", source,
                              "--undo", "cname IN { truncate rm mv dd }",
                              "--format", "json", *words)
            expect_equal(done.returncode, 1, done.stdout + done.stderr)
            said = json.loads(done.stdout)
            expect_equal(said["not_done"], len(said["steps"]), done.stdout)
            expect_equal(digest_of(source), now, "nothing is changed")

    def large_holes(self):
        """A file of 6 GiB without bytes takes no room."""
        suite = self.suite
        with suite.tmpfs("small", size="24m") as folder:
            source = os.path.join(folder, "source")
            again = os.path.join(folder, "again")
            os.mkdir(source)
            os.mkdir(again)
            with open(os.path.join(source, "a"), "wb") as out:
                out.write(b"a" * 5000)
            trace = suite.path("holes.trace")
            mount = suite.mount(source, source, (
                "", FLAGS + " | STR_PNAME", f'file = "{trace}"'))
            subprocess.run(
                ["sh", "-c", "cat a > /dev/null; truncate -s 6G a; "
                 "truncate -s 5000 a; truncate -s 6G b; rm b"],
                cwd=source, check=True)
            mount.unmount()
            done = suite.tool("tracefs-replay", trace, "--root", again)
            expect_equal(done.returncode, 0, done.stdout + done.stderr)
            before = os.environ.get("TMPDIR")
            os.environ["TMPDIR"] = folder
            try:
                done = suite.tool(
                    "tracefs-replay", trace, "--root", source, "--undo",
                    "cname = truncate", "--apply")
            finally:
                os.environ.pop("TMPDIR")
                if before is not None:
                    os.environ["TMPDIR"] = before
            expect_equal(done.returncode, 1, done.stdout + done.stderr)
            expect("EDQUOT" not in done.stderr + done.stdout, done.stderr)
            with open(os.path.join(source, "a"), "rb") as data:
                expect_equal(data.read(), b"a" * 5000, "a")


def hash_of(path):
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:4], "big")


def main():
    suite = Suite("undo", __doc__.splitlines()[0])
    if not os.access(os.path.join(suite.bin, "tracefs-replay"), os.X_OK):
        suite.skip_all("tracefs-replay is not built")
    undo = Undo(suite)
    for kind in ("tmpfs", "ext4"):
        suite.run(f"random stories on {kind}", undo.stories, kind)
    for title, case in {
            "what a program did under tracefs-run": undo.whole_run,
            "inode numbers that are given again": undo.numbers_given_again,
            "what happens after the trace": undo.changed_afterwards,
            "who did it is not told": undo.who_is_not_told,
            "what cannot come back": undo.what_cannot_come_back,
            "large holes": undo.large_holes}.items():
        suite.run(title, case)
    suite.finish()


if __name__ == "__main__":
    main()
