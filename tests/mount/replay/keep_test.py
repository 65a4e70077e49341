#!/usr/bin/env python3
"""What an operation destroys is kept first (STR_KEEP), and --undo gives all of it
back, though no byte of any file is in the trace. What is right is said by a model (undo_test.py) and by digests of the tree from before,
on file systems that clone and on some that do not.

  keep_test.py --bin build/release/bin [--only NAME]
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
import undo_test  # noqa: E402
from ransom import FILES, INNOCENT, make_victims, ransom_script  # noqa: E402
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402
from trees import tree_digest  # noqa: E402
from workloads import ACL, AS_IT_WAS, CAPABILITY  # noqa: E402

KINDS = ("tmpfs", "ext4", "xfs", "btrfs")
CLONES = ("xfs", "btrfs")
# Changes of rights, each alone in its trace: what was there before, and what is
# to be taken back.
WORDS = f"""
import os
from os import chmod, chown, mkdir, removexattr, setxattr, unlink
ACL = bytes.fromhex("{ACL}")
CAPABILITY = bytes.fromhex("{CAPABILITY}")
def acl(path, kind="access", value=ACL):
    setxattr(path, "system.posix_acl_" + kind, value)
def put(path, mode):
    with open(path, "w") as file:
        file.write("it was there\\n")
    chmod(path, mode)
"""
# What a file was is read behind the first look at it.
LOOK = """
import time
for folder, _, names in os.walk("."):
    for name in names:
        os.lstat(os.path.join(folder, name))
time.sleep(0.1)
"""
RIGHTS = {
    "an ACL": (
        "put('f', 0o644)", "acl('f')"),
    "an ACL that is removed": (
        "put('f', 0o640); acl('f')",
        "removexattr('f', 'system.posix_acl_access')"),
    "a mode": ("put('f', 0o640)", "chmod('f', 0o666)"),
    "a program that is written to": (
        "put('f', 0o755); setxattr('f', 'security.capability', CAPABILITY)",
        "f = os.open('f', os.O_WRONLY); os.pwrite(f, b'x', 3); os.close(f)"),
    "a program that is given away": (
        "put('f', 0o755); setxattr('f', 'security.capability', CAPABILITY)",
        "chown('f', 7, 8)"),
    "an owner": ("put('f', 0o640)", "chown('f', 7, 8)"),
    "an attribute": ("put('f', 0o640); setxattr('f', 'user.a', b'1')",
                     "setxattr('f', 'user.a', b'2')"),
    "what is older than the ACL that its folder gives": (
        "mkdir('d'); put('d/f', 0o640); mkdir('d/e'); acl('d', 'default')",
        "unlink('d/f'); os.rmdir('d/e')"),
}


def stream(kept, more="", keep=""):
    """The assembly section of Suite.config, which closes the last brace."""
    return f'STR_KEEP | STR_PID }} keep_in = "{kept}" {more} keep = {{ {keep}'


def state_of(root):
    """All that a user sees, but for the times of directories."""
    tree = tree_digest(root, exclude=lambda p: p.startswith("lost+found"))
    for entry in tree.values():
        if "sha256" not in entry:
            entry.pop("mtime_ns", None)
    return tree


def expect_tree(got, want, what):
    wrong = {p: (got.get(p), want.get(p)) for p in got.keys() | want.keys()
             if got.get(p) != want.get(p)}
    expect(not wrong, f"{what}: {len(wrong)} differ: "
           f"{json.dumps(wrong, indent=1)[:1500]}")


class KeptStories(undo_test.Undo):
    """The random stories of undo_test.py without any bytes in the trace."""

    kept = ""

    def record(self, seed, count, others, source, read):
        self.suite.remove(self.kept)
        undo_test.FLAGS = stream(self.kept)
        return super().record(seed, count, others, source, read)


class Keep:
    def __init__(self, suite):
        self.suite = suite
        self.stats = {}

    def place(self, folder, name="source"):
        source = os.path.join(folder, name)
        os.mkdir(source)
        return source, os.path.join(folder, name + "-kept")

    def store(self, kind):
        why = self.suite.no_file_system(kind)
        if why:
            raise Skip(why)
        return self.suite.file_system("kept-" + kind, kind)

    def traced(self, source, assembly, script, *arguments, status=0):
        """Runs a script in a recorded tree: the trace, and its process."""
        suite = self.suite
        trace = suite.path(os.path.basename(source) + ".trace")
        if os.path.exists(trace):
            os.remove(trace)
        mount = suite.mount(source, source, (
            "", assembly, f'file = "{trace}" buf = 1048576'),
            visibility="auto")
        with subprocess.Popen([sys.executable, "-B", "-c", script, *arguments],
                              cwd=source) as process:
            expect_equal(process.wait(), status, "the script")
        self.stats = self.ask(source)
        mount.unmount()
        return trace, process.pid

    def ask(self, source):
        return json.loads(self.suite.command("tracefs-ctl", source, "stats",
                                             "--format", "json"))

    def undo(self, trace, source, pid, *words, status=0):
        done = self.suite.tool("tracefs-replay", trace, "--root", source,
                               "--undo", f"cpid = {pid}", "--format", "json",
                               *AS_IT_WAS, *words)
        expect_equal(done.returncode, status,
                     done.stdout[-3000:] + done.stderr[-2000:])
        said = json.loads(done.stdout)
        expect_equal(said["doubt"], "", done.stdout[-500:])
        return said

    def stories(self, kind):
        """All that a process did."""
        undone = mine = 0
        with self.store(kind) as folder:
            stories = KeptStories(self.suite)
            for seed in range(200, 204):
                source, kept = self.place(folder, f"{kind}-{seed}")
                stories.kept = kept
                # It expects all of it back where nobody else was there.
                some, all_of_them = stories.check(seed, 150, 0, source, read=1)
                undone += some
                mine += all_of_them
        return f"{undone} of {mine} operations"

    # --- a ransom

    def ransom(self, kind):
        """Five hundred files, and three who work beside it."""
        suite = self.suite
        with self.store(kind) as folder:
            source, kept = self.place(folder)
            make_victims(source, FILES)
            before = state_of(os.path.join(source, "home"))
            trace = suite.path(f"ransom-{kind}.trace")
            mount = suite.mount(source, source, (
                "", stream(kept, more="keep_max = 200M"),
                f'file = "{trace}" buf = 1048576'), visibility="auto")
            beside = [subprocess.Popen(["sh", "-ec", text], cwd=source,
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
                      for text in INNOCENT]
            with subprocess.Popen([sys.executable, "-B", "-c",
                                   ransom_script()], cwd=source) as ransomer:
                expect_equal(ransomer.wait(), 0, "the ransom")
            for process in beside:
                errors = process.communicate()[1]
                expect_equal(process.returncode, 0, errors)
            told = self.ask(source)["kept"]
            mount.unmount()
            expect_equal((told["failed"], told["removed"]), (0, 0), "losses")
            if kind in CLONES:
                expect(told["cloned"] > 0, "nothing was cloned")
            work = {name: state_of(os.path.join(source, name))
                    for name in os.listdir(source) if name != "home"}
            now = state_of(os.path.join(source, "home"))
            expect(all(now.get(path) != entry for path, entry in before.items()
                       if "sha256" in entry), "all of it was destroyed")
            said = self.undo(trace, source, ransomer.pid, "--apply")
            expect_equal(said["not_done"], 0, said)
            expect_tree(state_of(os.path.join(source, "home")), before,
                        "what was taken back")
            for name, state in work.items():
                expect_tree(state_of(os.path.join(source, name)), state, name)
            sparse = os.stat(os.path.join(source, "home", "sparse-1"))
            expect(sparse.st_blocks * 512 < sparse.st_size / 2, "holes")
        return (f"{len(said['steps'])} steps, {told['bytes'] >> 10} KiB kept, "
                f"of these {told['cloned'] >> 10} cloned")

    # --- what was kept is data from another end

    @staticmethod
    def homes(kept):
        """The folders of traces in it."""
        return [name for name in os.listdir(kept) if not name.startswith(".")]

    def hostile(self):
        """Changed, gone, somebody else's, moved."""
        with self.store("xfs") as folder:
            source, kept = self.place(folder)
            for name, size in (("small", 5000), ("large", 3 << 20),
                               ("other", 7000)):
                with open(os.path.join(source, name), "wb") as out:
                    out.write(os.urandom(size))
            before = state_of(source)
            trace, pid = self.traced(source, stream(kept), """
import os
for name in ("small", "large", "other"):
    os.unlink(name)
""")
            parts = {event["path"][1:]: event for event in
                     self.suite.read(trace) if event["op"] == "unlink"}
            home = os.path.join(kept, self.homes(kept)[0])

            def object_of(name):
                return os.path.join(home, str(parts[name]["kept"]))

            def refused(names, why, *words):
                for apply in ((), ("--apply",)):
                    said = self.undo(trace, source, pid, *words, *apply,
                                     status=1)
                    expect_equal(len([s for s in said["steps"]
                                      if "not_done" in s]), len(names), said)
                    for step in said["steps"]:
                        if "not_done" in step:
                            expect(why in step["not_done"], step)
                left = state_of(source)
                expect(not set(names) & left.keys(), "nothing half done")
                for name in left:
                    os.remove(os.path.join(source, name))

            def change(name, at):
                with open(object_of(name), "r+b") as file:
                    file.seek(at)
                    byte = file.read(1)
                    file.seek(at)
                    file.write(bytes([byte[0] ^ 1]))

            change("small", parts["small"]["kept_at"] + 17)
            refused(["small"], "was changed since")
            change("small", parts["small"]["kept_at"] + 17)
            os.chmod(home, 0o755)
            refused(list(parts), "the folder of what was kept")
            os.chmod(home, 0o700)
            os.chown(home, 7, 7)
            refused(list(parts), "the folder of what was kept")
            os.chown(home, 0, 0)
            os.rename(kept, kept + "-moved")
            refused(list(parts), "--kept says where it is now")
            self.undo(trace, source, pid, "--kept", kept + "-moved", "--apply")
            expect_tree(state_of(source), before, "moved")
            for name in parts:
                os.remove(os.path.join(source, name))
            os.rename(kept + "-moved", kept)
            change("large", 12345)
            refused(["large"], "was changed since")
            os.truncate(object_of("other"), parts["other"]["kept_at"] + 5)
            refused(["large", "other"], "was changed since")
            os.remove(object_of("large"))
            os.symlink("/etc/passwd", object_of("large"))
            refused(["large", "other"], "what was kept of it")
            shutil.rmtree(kept)
            refused(list(parts), "the folder of what was kept")

    def budget(self):
        """The oldest goes, and the trace says so."""
        with self.store("ext4") as folder:
            source, kept = self.place(folder)
            for i in range(40):
                with open(os.path.join(source, f"f{i}"), "wb") as out:
                    out.write(os.urandom(100_000))
            before = state_of(source)
            trace, pid = self.traced(source, stream(kept, "keep_max = 1M"), """
import os
for i in range(40):
    os.unlink(f"f{i}")
""")
            told = self.stats["kept"]
            expect(told["removed"] > 0 and told["held"] <= 1 << 20, told)
            objects = {e["path"][1:]: e["kept"] for e in self.suite.read(trace)
                       if e["op"] == "unlink"}
            first = max(e.get("kept_from", 0) for e in self.suite.read(trace))
            gone = {name for name, number in objects.items() if number < first}
            expect(20 < len(gone) < 40, gone)
            said = self.undo(trace, source, pid, "--apply", status=1)
            for step in said["steps"]:
                name = step["step"].split()[2].rstrip(",")
                expect_equal("not_done" in step, name in gone, step)
                expect("keep_max" in step.get("not_done", "keep_max"), step)
            expect_tree(state_of(source), {n: s for n, s in before.items()
                                           if n not in gone}, "the rest")
            # What a mount has left goes before what the next one keeps.
            homes = set(self.homes(kept))
            self.traced(source, stream(kept, "keep_max = 1M"), """
import os
for name in os.listdir("."):
    os.unlink(name)
""")
            expect(not homes & set(self.homes(kept)), "an earlier trace's went")

    def full(self):
        """No room for it: the operation goes on, or does nothing."""
        for when, status in (("go_on", 0), ("fail", 3)):
            with self.suite.tmpfs("full", size="4m") as room, \
                    self.store("ext4") as folder:
                source, _ = self.place(folder)
                with open(os.path.join(source, "f"), "wb") as out:
                    out.write(os.urandom(6 << 20))
                before = state_of(source)
                trace, pid = self.traced(
                    source, stream(room + "/kept", f"when_not_kept = {when}"),
                    """
import errno, os, sys
bad = 0
for what in (lambda: os.truncate("f", 10), lambda: open("f", "wb").close(),
             lambda: os.unlink("f")):
    try:
        what()
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        bad += 1
sys.exit(bad)
""", status=status)
                failed = self.stats["kept"]["failed"]
                if when == "fail":
                    expect_equal(failed, 3, "counted")
                    expect_tree(state_of(source), before, "nothing was done")
                    continue
                expect_equal(failed, 1, "counted")
                events = self.suite.read(trace)
                expect_equal([e["not_kept"] for e in events
                              if "not_kept" in e], ["ENOSPC"], "told")
                said = self.undo(trace, source, pid, "--apply", status=1)
                expect(any("could not be kept: No space left"
                           in step.get("not_done", "")
                           for step in said["steps"]), said)

    def chosen(self):
        """Only what the filter says; the same bytes once."""
        with self.store("ext4") as folder:
            source, kept = self.place(folder)
            os.mkdir(os.path.join(source, "home"))
            same = os.urandom(50_000)
            for name in ("home/a.doc", "home/b.doc", "home/c.tmp", "d.doc",
                         "home/big.doc"):
                with open(os.path.join(source, name), "wb") as out:
                    out.write(same * (4 if "big" in name else 1))
            trace, _ = self.traced(
                source, stream(kept, keep='path ~ "/home/*" AND ext = doc AND '
                               'size < 100K'), """
import os
for name in ("home/a.doc", "home/b.doc", "home/c.tmp", "d.doc",
             "home/big.doc"):
    os.unlink(name)
""")
            expect_equal(sorted(e["path"] for e in self.suite.read(trace)
                                if "kept" in e),
                         ["/home/a.doc", "/home/b.doc"], "what was chosen")
            told = self.stats["kept"]
            expect_equal((told["parts"], told["same"], told["held"]),
                         (2, 50_000, 50_000), "the same bytes once")

    def rights(self, title):
        """Who may do what is as before, whatever the kernel changed along."""
        with self.store("ext4") as folder:
            source, kept = self.place(folder, re.sub(r"\W", "-", title))
            had, does = RIGHTS[title]
            subprocess.run([sys.executable, "-B", "-c", WORDS + had],
                           cwd=source, check=True)
            before = state_of(source)
            trace, pid = self.traced(source, stream(kept), WORDS + LOOK + does)
            expect(state_of(source) != before, "nothing was changed")
            said = self.undo(trace, source, pid, "--apply")
            expect_equal(said["not_done"], 0, said)
            expect_tree(state_of(source), before, title)

    def chosen_by_callers(self):
        """By all that a filter may ask of who does it."""
        if not shutil.which("bash"):
            raise Skip("no bash")
        with self.store("ext4") as folder:
            for number, keep in enumerate((
                    "cname = bash", "cexe ~ **/bash",
                    'cargs ~ "bash -c*"', f"descendant of {os.getpid()}",
                    "NOT cexe ~ **/bash")):
                source, kept = self.place(folder, f"by-caller-{number}")
                with open(os.path.join(source, "a"), "w") as out:
                    out.write("as it was")
                trace, _ = self.traced(source, stream(kept, keep=keep), """
import subprocess
subprocess.run(["bash", "-c", "echo xx > a; true"], check=True)
""")
                # What bash cuts off as it opens the file.
                expect_equal(any("kept" in e for e in self.suite.read(trace)),
                             not keep.startswith("NOT"), keep)

    def unnoticed(self):
        """No access time, link or other name tells of it."""
        with self.store("xfs") as folder:
            source, kept = self.place(folder)
            for name in ("open", "linked", "written"):
                with open(os.path.join(source, name), "wb") as out:
                    out.write(os.urandom(2 << 20))
                os.utime(os.path.join(source, name), (1000, 2000))
            os.link(os.path.join(source, "linked"),
                    os.path.join(source, "other"))
            trace, pid = self.traced(source, stream(kept), """
import os
os.stat("other")
fd = os.open("open", os.O_RDWR)
os.unlink("open")
assert os.fstat(fd).st_nlink == 0
os.pwrite(fd, b"later", 0)
os.unlink("linked")
assert os.stat("other").st_nlink == 1
w = os.open("written", os.O_WRONLY)
os.pwrite(w, b"x" * 100000, 4097)
st = os.stat("written")
assert st.st_atime == 1000, st
assert st.st_nlink == 1
assert sorted(os.listdir(".")) == ["other", "written"]
""")
            self.undo(trace, source, pid, "--apply")
            for name in ("open", "written", "linked"):
                st = os.stat(os.path.join(source, name))
                expect_equal(st.st_size, 2 << 20, name)
            expect_equal(os.stat(os.path.join(source, "open")).st_mtime, 2000,
                         "the time of its last change")

    def refusals(self):
        """What cannot be is refused with its reason."""
        suite = self.suite
        source, point = suite.folder("plain"), suite.folder("point")
        trace = suite.path("plain.trace")

        def said(assembly, *words):
            config = suite.config(("", assembly, f'file = "{trace}"'))
            done = suite.tool("tracefs-mount", source, point, "--config",
                              config, *words)
            expect_equal(done.returncode, 2, done.stderr)
            return done.stderr

        expect("lies in the source" in said(stream(source + "/kept")), "inside")
        expect(not os.listdir(source), "it was left there")
        expect("takes the flag STR_KEEP" in said(
            'STR_ALL } keep_in = "/tmp/x" keep = {'), "without the flag")
        mine = suite.folder("mine", mode=0o700)
        os.mkdir(os.path.join(mine, "letters"))
        with open(os.path.join(mine, "letters", "1"), "wb") as file:
            file.truncate(2 << 20)
        told = said(stream(mine, "keep_max = 1M"))
        expect(mine in told and "empty" in told, f"a foreign folder: {told}")
        expect_equal(os.listdir(mine), ["letters"], "what is in it")
        expect_equal(os.listdir(os.path.join(mine, "letters")), ["1"], "and deeper")
        expect("absolute" in said(stream("kept")), "a relative path")
        expect("STR_KEEP" in said(stream(suite.path("kept")), "--survive",
                                  "yes"), "surviving")
        shared = suite.folder("shared", mode=0o755)
        os.chmod(shared, 0o755)
        expect("shared" in said(stream(shared)), "others may look into it")


def main():
    suite = Suite("keep_test", __doc__)
    keep = Keep(suite)
    for kind in KINDS:
        suite.run(f"all comes back on {kind}", keep.stories, kind)
        suite.run(f"a ransom is taken back on {kind}", keep.ransom, kind)
    suite.run("what was kept is looked at before it is used", keep.hostile)
    suite.run("the oldest goes when the budget is used up", keep.budget)
    suite.run("no room for what is to be kept", keep.full)
    suite.run("only what is chosen is kept, and the same once", keep.chosen)
    for title in RIGHTS:
        suite.run(f"rights as before: {title}", keep.rights, title)
    suite.run("what certain callers destroy is kept", keep.chosen_by_callers)
    suite.run("nobody notices", keep.unnoticed)
    suite.run("what cannot be is refused", keep.refusals)
    suite.finish()


if __name__ == "__main__":
    main()
