#!/usr/bin/env python3
"""What a hostile trace gets from whoever replays it or takes it back as root:
nothing that outlives the replay as a right, unless it was asked for by kind. What
was left out is told, and the tree is not said to be as recorded.

  privileges_test.py --bin build/release/bin [--only NAME]
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    Suite, expect, expect_equal, wait_until)
from trees import expect_same_tree, tree_digest  # noqa: E402
from workloads import ACL, CAPABILITY, USER, record  # noqa: E402

OPTIONS = {"set_id": ("--set-id",), "security_xattrs": ("--security-xattrs",),
           "trusted_xattrs": ("--trusted-xattrs",), "devices": ("--devices",),
           "owners": ("--users", "recorded")}


def xattrs(words):
    return (f"{sys.executable} -B -c 'import os; os.setxattr(\"" +
            "\", ".join(words[:1]) + f"\", \"{words[1]}\", "
            f"bytes.fromhex(\"{words[2]}\"))'")


# What a trace may ask for, by kind, as commands.
HOSTILE = {
    "set_id": "cp /bin/true suid; chmod 4755 suid; cp /bin/true sgid; "
              "chmod 2755 sgid; mkdir d; chmod 2777 d; mkfifo p; chmod 6755 p",
    "set_id at creation": f"""{sys.executable} -B -c "
import os, stat
os.umask(0)
os.close(os.open('suid', os.O_CREAT | os.O_WRONLY, 0o6755))
os.mknod('node', stat.S_IFREG | 0o6755)
os.mkdir('d', 0o3777)
" """,
    "security_xattrs": "cp /bin/true f; " + xattrs(
        ["f", "security.capability", CAPABILITY]),
    "trusted_xattrs": "mkdir f; " + xattrs(
        ["f", "trusted.overlay.opaque", "79"]),
    "owners": f"echo 1 > f; chown {USER}:{USER} f; mkdir d; chown {USER} d",
    "owners by ACL": "echo 1 > f; " + xattrs(
        ["f", "system.posix_acl_access", ACL]),
    "devices": "mknod null c 1 3; mknod disk b 8 0",
}


def rights(folder):
    """What in a tree is a right, by kinds."""
    found = set()
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                continue
            if st.st_mode & 0o6000:
                found.add("set_id")
            if (st.st_uid, st.st_gid) != (0, 0):
                found.add("owners")
            if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
                found.add("devices")
            for key in os.listxattr(path):
                kind = {"security": "security_xattrs",
                        "trusted": "trusted_xattrs",
                        "system": "owners"}.get(key.split(".")[0])
                if kind:
                    found.add(kind)
    return found


class Privileges:
    def __init__(self, suite):
        self.suite = suite

    def record(self, script, before="true"):
        return record(self.suite, script, before)

    def empty(self, name="again"):
        self.suite.remove(name)
        return self.suite.folder(name)

    def replay(self, trace, folder, *words):
        done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                               "--format", "json", *words)
        expect(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def left_out(self, title):
        """By an operation of the trace, and from the tree that was there."""
        kind = title.split(" ")[0]
        script = HOSTILE[title]
        used = "find . -ls > /dev/null; cat $(find . -type f) > /dev/null"
        for before, does in (("true", script), (script, used)):
            trace, source = self.record(does, before)
            # A device that was there is no file of the tree.
            if before != "true" and kind == "devices":
                continue
            expect(kind in rights(source), f"recorded: {rights(source)}")
            folder = self.empty()
            status, report = self.replay(trace, folder)
            expect_equal(rights(folder), set(), "rights by default")
            expect_equal((status, report["good"]), (1, False), "verdict")
            expect(report["left_out"].get(kind, 0) > 0, report["left_out"])
            expect_equal(report["differs"], 0, report["mismatches"])
            text = self.suite.tool("tracefs-replay", trace, "--root",
                                   self.empty()).stdout
            expect(OPTIONS[kind][0] in text and "\nas recorded" not in text, text)
            said = json.loads(self.suite.tool(
                "tracefs-replay", trace, "--check", "--format", "json").stdout)
            expect(said["left_out_unasked"].get(kind, 0) > 0, said)
            # Each kind is asked for by itself.
            for asked, words in OPTIONS.items():
                folder = self.empty()
                _, report = self.replay(trace, folder, *words)
                expect((kind in rights(folder)) == (asked == kind),
                       f"{words}: {rights(folder)}")
                expect((kind in report["left_out"]) == (asked != kind),
                       f"{words}: {report['left_out']}")

    def program_that_is_there(self):
        """Writing to a set-user-ID program ends that it is one, also where root
        writes, as it does where anybody else does."""
        trace, _ = self.record("echo mine > prog", before="echo > prog")
        folder = self.empty()
        path = os.path.join(folder, "prog")
        shutil.copy("/bin/true", path)
        os.chmod(path, 0o4755)
        self.replay(trace, folder, "--existing")
        with open(path, "rb") as data:
            expect(data.read(5) == b"mine\n", "it was written to")
        expect_equal(rights(folder), set(), "what others now run as root")

    def slow(self, *words, mode=0o777):
        """A replay that works for seconds, in a folder where all may write."""
        trace, source = self.record(
            "mkdir -m 777 a; echo 1 > a/f; chmod 666 a/f; sleep 3; "
            "echo 2 > a/g; cat a/f > /dev/null")
        folder = self.empty()
        os.chmod(folder, mode)
        process = self.suite.background(subprocess.Popen(
            [os.path.join(self.suite.bin, "tracefs-replay"), trace, "--root",
             folder, "--timing", "original", *words], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True))
        wait_until(lambda: os.listdir(folder), "the replay's begin")
        return process, folder, source

    def worked_in_privately(self):
        """Who may write to the directory gets at nothing before it is done."""
        process, folder, source = self.slow()
        reached = subprocess.run(
            ["sh", "-c", "cd $0 && for i in $(seq 20); do "
             "ls */ */*/ 2> /dev/null; sleep 0.05; done", folder], check=False,
            capture_output=True, text=True, user=USER, group=USER,
            extra_groups=[]).stdout
        expect(process.poll() is None, "it was done before anybody looked")
        said = process.communicate()
        expect_equal((reached, process.returncode), ("", 0), said)
        expect_same_tree(tree_digest(folder, times=False),
                         tree_digest(source, times=False), "the tree")

    def interrupted(self):
        """What is half made is nobody's, and is removed; what a killed one has
        left nobody else can enter."""
        process, folder, _ = self.slow()
        process.terminate()
        said = process.communicate()
        expect_equal((process.returncode, os.listdir(folder)), (3, []), said)
        process, folder, _ = self.slow()
        process.kill()
        process.communicate()
        left = os.listdir(folder)
        expect_equal((len(left), stat.S_IMODE(os.stat(os.path.join(
            folder, left[0])).st_mode)), (1, 0o700), left)
        done = self.suite.tool("tracefs-replay", self.suite.path(
            "recorded.trace"), "--root", folder)
        expect(done.returncode == 2 and left[0] in done.stderr, done.stderr)

    def interrupted_steps(self):
        """So is what was made step by step, whoever waits for whom."""
        trace, _ = self.record("mkdir a; echo 1 > a/f; echo 2 > a/g")
        for typed in ("", "\n", "\n\n1"):  # the last is no whole line
            folder = self.empty()
            process = self.suite.background(subprocess.Popen(
                [os.path.join(self.suite.bin, "tracefs-replay"), trace,
                 "--root", folder, "--step"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            process.stdin.write(typed)
            process.stdin.flush()
            text = ""
            while text.count(" ? ") <= typed.count("\n"):
                text += process.stdout.read(1)
            process.send_signal(signal.SIGINT)
            said = process.communicate()
            expect_equal((process.returncode, os.listdir(folder)), (3, []),
                         said)
        process = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-replay"), trace, "--root",
             folder, "--step"], input="\n1\nb\nc\n", text=True, check=True,
            capture_output=True)
        expect_equal(sorted(os.listdir(os.path.join(folder, "a"))),
                     ["f", "g"], process.stdout)

    def shared_tree(self):
        """Root does not work in a tree that others can change meanwhile."""
        trace, _ = self.record("echo 1 > a/f", before="mkdir a")
        for owner, mode, refused in ((USER, 0o755, True), (0, 0o777, True),
                                     (0, 0o755, False)):
            folder = self.empty()
            inside = os.path.join(folder, "a")
            os.mkdir(inside)
            os.chown(inside, owner, owner)
            os.chmod(inside, mode)
            done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                                   "--existing")
            expect_equal((done.returncode == 2, os.listdir(inside)),
                         (refused, [] if refused else ["f"]), done.stderr)
            if refused:
                expect("chmod 700" in done.stderr, done.stderr)
                # Nobody else gets in there.
                os.chmod(folder, 0o700)
                self.suite.tool("tracefs-replay", trace, "--root", folder,
                                "--existing")
                expect_equal(os.listdir(inside), ["f"], "what was made")

    def links_as_clones(self):
        """A link where a clone is to be leads nowhere."""
        trace, _ = self.record("echo 1 > f")
        folder, other = self.empty(), self.empty("elsewhere")
        os.symlink(other, os.path.join(folder, "clone2"))
        done = self.suite.tool("tracefs-replay", trace, "--root", folder,
                               "--clones", "2")
        expect(done.returncode != 0, done.stdout)
        expect_equal(os.listdir(other), [], "what the link led to")

    def links_that_are_typed(self):
        """A link in the path of DIR leads there if root made it; those of
        others, who could lead it elsewhere, are refused."""
        trace, _ = self.record("echo 1 > f")
        users = self.empty("users")
        os.chown(users, USER, USER)
        for owner in (0, USER):
            folder = self.empty()
            os.mkdir(os.path.join(folder, "in"))
            for name, path, to in (("last", "last", folder + "/in"),
                                   ("middle", "middle/in", "../again"),
                                   ("two", "two", "middle/in")):
                link = os.path.join(users, name)
                if os.path.lexists(link):
                    os.unlink(link)
                os.symlink(to, link)
                os.lchown(link, owner if name != "two" else 0, owner)
                done = self.suite.tool("tracefs-replay", trace, "--root",
                                       os.path.join(users, path))
                made = os.path.join(folder, "in", "f")
                expect_equal((done.returncode, os.path.exists(made)),
                             (2, False) if owner == USER else (0, True),
                             done.stderr)
                if owner == USER:
                    expect(f"user {USER}" in done.stderr, done.stderr)
                else:
                    os.unlink(made)
        for path, what in (("missing", "No such file"), ("f", "directory")):
            with open(os.path.join(folder, "f"), "w", encoding="ascii"):
                pass
            done = self.suite.tool("tracefs-replay", trace, "--root",
                                   os.path.join(folder, path))
            expect(done.returncode != 0 and what in done.stderr, done.stderr)

    def plans_of_others(self):
        """A plan is not written to what others may have made first."""
        trace, _ = self.record("echo 1 > f")
        users = self.empty("users")
        secret = self.suite.path("secret")
        plan = os.path.join(users, "plan")
        def make(call, *words):
            with open(secret, "w", encoding="ascii") as out:
                out.write("mine")
            if os.path.lexists(plan):
                os.unlink(plan)
            call(*words)

        def users_own():
            shutil.copy(secret, plan)
            os.chown(plan, USER, USER)

        for how in ((os.symlink, secret, plan), (os.link, secret, plan),
                    (os.mkfifo, plan), (users_own,)):
            make(*how)
            done = self.suite.tool("tracefs-replay", trace, "--plan", plan,
                                   timeout=60)
            expect(done.returncode != 0 and "plan" in done.stderr, done)
            with open(secret, encoding="ascii") as text:
                expect_equal(text.read(), "mine", "root's file")
        make(lambda: None)
        for _ in range(2):  # its own is written once more
            self.suite.command("tracefs-replay", trace, "--plan", plan)

    def endless_holes(self):
        """One truncate makes a file that nobody has the time to read."""
        with self.suite.tmpfs("large", size="16m") as place:
            source = os.path.join(place, "source")
            again = os.path.join(place, "again")
            os.mkdir(source)
            os.mkdir(again)
            trace = self.suite.path("holes.trace")
            mount = self.suite.mount(
                source, source,
                ("", "STR_ALL | STR_DATA", f'file = "{trace}"'))
            subprocess.run(["truncate", "-s", str(1 << 61),
                            os.path.join(source, "f")], check=True)
            mount.unmount()
            done = self.suite.tool("tracefs-replay", trace, "--root", again,
                                   timeout=60)
            expect_equal(os.stat(os.path.join(again, "f")).st_size, 1 << 61,
                         "the size")
            expect("not compared" in done.stdout
                   and "\nas recorded" not in done.stdout, done.stdout)
            said = self.suite.tool("tracefs-replay", "--digest", again,
                                   timeout=60)
            expect(" - " in said.stdout, said.stdout)

    def undo_gives_nothing(self):
        """A trace tells that a file was a set-user-ID program: taking back gives
        that to what lies there only when told so."""
        cases = {
            "set_id": ("cp /bin/true f; chmod 4755 f", "cat f > /dev/null; chmod 755 f",
                       "chmod"),
            "set_id of what is gone": ("cp /bin/true f; chmod 4755 f",
                                       "cat f > /dev/null; rm f", "rm"),
            "security_xattrs of what is gone": (
                HOSTILE["security_xattrs"], "cat f > /dev/null; rm f", "rm"),
            "security_xattrs of what is written to": (
                HOSTILE["security_xattrs"], "cat f > /dev/null; "
                "dd if=/dev/zero of=f bs=3 count=1 conv=notrunc", "dd"),
            "owners": (f"echo 1 > f; chown {USER} f", "cat f; chown 0 f", "chown")}
        for title, (before, script, who) in cases.items():
            kind = title.split(" ")[0]
            trace, source = self.record(script, before)
            expect_equal(rights(source), set(), title)
            words = ("--undo", f"cname = {who}", "--apply")
            done = self.suite.tool("tracefs-replay", trace, "--root", source,
                                   *words)
            expect_equal((done.returncode, rights(source)), (1, set()),
                         f"{title}: {done.stdout}{done.stderr}")
            expect(OPTIONS[kind][0] in done.stdout, done.stdout)
            done = self.suite.tool("tracefs-replay", trace, "--root", source,
                                   *words, *OPTIONS[kind])
            expect_equal((done.returncode, rights(source)), (0, {kind}),
                         f"{title}: {done.stdout}{done.stderr}")


def main():
    suite = Suite("privileges", __doc__.splitlines()[0])
    privileges = Privileges(suite)
    for title in HOSTILE:
        suite.run(f"Malicious: {title}", privileges.left_out, title)
    for title, case in {
            "Malicious: a program that is there":
                privileges.program_that_is_there,
            "worked in privately": privileges.worked_in_privately,
            "ended before its time": privileges.interrupted,
            "ended between two steps": privileges.interrupted_steps,
            "a tree that others can change": privileges.shared_tree,
            "Malicious: links where clones are to be":
                privileges.links_as_clones,
            "Malicious: links that are typed": privileges.links_that_are_typed,
            "Malicious: plans of others": privileges.plans_of_others,
            "Malicious: endless holes": privileges.endless_holes,
            "Malicious: undo gives nothing unasked":
                privileges.undo_gives_nothing}.items():
        suite.run(title, case)
    suite.finish()


main()
