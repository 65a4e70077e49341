#!/usr/bin/env python3
"""Traces that were made to deceive: whatever contents, names and identities they
invent, tracefs-replay does not say "as recorded", "replayable" or undone of what it
has not compared, and nothing outside of DIR, or of others, is touched.

  deceit_test.py --bin build/release/bin --make-scripted-trace MAKER
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "support"))

# pylint: disable=wrong-import-position
from scripted_trace import Script  # noqa: E402

ARGUMENTS = None
ROOT = 1
FILE = 0o100644


class Tale(Script):
    """Operations of a process, with what a recorder would have said."""

    def tell(self, word, **more):
        self.op(word, 50, "teller", gap=1000, uid=0, **more)

    def made(self, path, ino, fh, **more):
        told = {"parent_ino": ROOT, **more}
        self.tell("create", path=path, ino=ino, fh=fh, mode=FILE, nlink=1,
                  size=0, fuid=0, fgid=0, flags=2, new_mode=0o644, **told)

    def found(self, path, ino, size, nlink=1):
        self.tell("lookup", path=path, parent_ino=ROOT, ino=ino, mode=FILE,
                  nlink=nlink, size=size, fuid=0, fgid=0)

    def opened(self, path, ino, fh, flags=2):
        self.tell("open", path=path, ino=ino, fh=fh, flags=flags)

    def wrote(self, path, ino, fh, data, offset=0, size=None, **more):
        size = len(data) if size is None else size
        self.tell("write", path=path, ino=ino, fh=fh, off=offset, len=size,
                  res=size, **({"data": data} if data else {}), **more)

    def read(self, path, ino, fh, data, size=None, asked=4096, **more):
        size = len(data) if size is None else size
        self.tell("read", path=path, ino=ino, fh=fh, off=0, len=asked,
                  res=size, **({"data": data} if data else {}), **more)

    def copied(self, path, ino, fh, count, **more):
        self.tell("copy_file_range", path=path, ino=ino, fh=fh, off=0,
                  off_out=0, len=count, res=count, **more)

    def closed(self, path, ino, fh):
        self.tell("release", path=path, ino=ino, fh=fh)

    def removed(self, path, ino, **more):
        self.tell("unlink", path=path, parent_ino=ROOT, ino=ino, **more)

    def renamed(self, path, to, ino):
        self.tell("rename", path=path, path2=to, parent_ino=ROOT,
                  new_parent_ino=ROOT, ino=ino)


class DeceitTest(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.path("around", "root")
        os.makedirs(self.root)

    def path(self, *parts):
        return os.path.join(self.folder.name, *parts)

    def run_tool(self, tale, *words):
        trace = tale.make(ARGUMENTS.make_scripted_trace, self.path("T"))
        return subprocess.run(
            [os.path.join(ARGUMENTS.bin, "tracefs-replay"), trace, *words],
            capture_output=True, text=True, check=False)

    def replayed(self, tale, *words):
        done = self.run_tool(tale, "--root", self.root, *words)
        self.assertEqual(os.listdir(self.path("around")), ["root"])
        return done

    def deceives(self, tale, check=True):
        """Neither --check nor a replay says that all is well."""
        if check:
            done = self.run_tool(tale, "--check", "--format", "json")
            said = json.loads(done.stdout)
            self.assertEqual((done.returncode, said["replayable"]), (1, False),
                             done.stdout)
        done = self.replayed(tale)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertNotIn("\nas recorded", done.stdout)
        return done

    def honest(self, tale):
        done = self.run_tool(tale, "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.replayed(tale)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\nas recorded\n", done.stdout)

    # --- as recorded

    def test_what_is_all_told_is_as_recorded(self):
        tale = Tale()
        tale.made("/f", 10, 1)
        tale.wrote("/f", 10, 1, "hello")
        tale.read("/f", 10, 1, "hello")
        tale.closed("/f", 10, 1)
        self.honest(tale)

    def test_no_operations_are_nothing_recorded(self):
        self.deceives(Tale())

    def test_a_checksum_is_no_content(self):
        tale = Tale()
        tale.found("/f", 10, 5)
        tale.opened("/f", 10, 1)
        tale.read("/f", 10, 1, "", size=5, data_crc=12345)
        self.deceives(tale)

    def test_a_read_without_bytes_is_not_compared(self):
        tale = Tale()
        tale.found("/f", 10, 5)
        tale.opened("/f", 10, 1)
        tale.read("/f", 10, 1, "", size=5)
        tale.removed("/f", 10)
        self.deceives(tale)

    def test_data_shorter_than_what_was_read(self):
        tale = Tale()
        tale.found("/f", 10, 5)
        tale.opened("/f", 10, 1)
        tale.read("/f", 10, 1, "hel", size=5)
        self.deceives(tale)

    def test_data_shorter_than_what_was_written(self):
        tale = Tale()
        tale.made("/f", 10, 1)
        tale.wrote("/f", 10, 1, "hel", size=5)
        self.deceives(tale, check=False)

    def test_data_that_contradicts_its_checksum(self):
        tale = Tale()
        tale.made("/f", 10, 1)
        tale.wrote("/f", 10, 1, "hello", data_crc=1)
        self.deceives(tale, check=False)

    def test_contents_that_nobody_read(self):
        tale = Tale()
        tale.found("/f", 10, 5)
        done = self.deceives(tale)
        self.assertIn("\n  f\n", done.stdout)

    def test_contents_that_contradict_each_other(self):
        tale = Tale()
        tale.found("/f", 10, 5)
        tale.opened("/f", 10, 1)
        tale.read("/f", 10, 1, "hello")
        tale.read("/f", 10, 1, "world")
        self.deceives(tale, check=False)

    def test_a_handle_of_two_files(self):
        tale = Tale()
        for path, ino in (("/a", 10), ("/b", 11)):
            tale.made(path, ino, ino)
            tale.wrote(path, ino, ino, "12345")
            tale.closed(path, ino, ino)
        tale.opened("/a", 10, 5)
        tale.opened("/b", 11, 5)
        tale.wrote("/a", 10, 5, "other")
        self.deceives(tale)

    def test_a_rename_of_something_else(self):
        tale = Tale()
        for path, ino in (("/a", 10), ("/c", 11)):
            tale.made(path, ino, ino)
            tale.wrote(path, ino, ino, f"{ino:05}")
            tale.closed(path, ino, ino)
        tale.renamed("/a", "/b", 11)
        self.deceives(tale)

    def test_inode_numbers_that_are_given_again(self):
        tale = Tale()
        for i in range(5):
            tale.made(f"/f{i}", 10, i + 1)
            tale.wrote(f"/f{i}", 10, i + 1, f"hello {i}")
            tale.closed(f"/f{i}", 10, i + 1)
            tale.removed(f"/f{i}", 10, nlink=1)
        tale.made("/kept", 10, 9)
        self.honest(tale)

    def test_names_that_lead_out(self):
        for path in ("/../out", "/..", "/d/../../out"):
            tale = Tale()
            tale.made("/f", 10, 1)
            tale.made(path, 11, 2, parent_ino=99)
            tale.wrote(path, 11, 2, "out")
            self.deceives(tale)
            os.unlink(os.path.join(self.root, "f"))

    def test_operations_that_were_lost(self):
        tale = Tale()
        tale.made("/f", 10, 1)
        tale.other("loss", t=tale.now, to=tale.now + 1, count=3, reason="full")
        self.deceives(tale)

    # --- copies, also of traces that tell their destination by numbers only

    def copies(self, known, **to):
        tale = Tale()
        tale.found("/src", 10, 5)
        tale.opened("/src", 10, 1, flags=0)
        if known:
            tale.read("/src", 10, 1, "hello")
        tale.made("/dst", 11, 2)
        tale.copied("/src", 10, 1, 5, **to)
        return tale

    def test_copies_of_what_is_known(self):
        for to in ({"fh_out": 2}, {"fh_out": 2, "ino_out": 11},
                   {"fh_out": 2, "ino_out": 11, "path2": "/dst",
                    "new_parent_ino": ROOT}):
            self.honest(self.copies(True, **to))
            with open(os.path.join(self.root, "dst"), encoding="ascii") as data:
                self.assertEqual(data.read(), "hello")
            for name in ("src", "dst"):
                os.unlink(os.path.join(self.root, name))

    def test_copies_that_tell_their_bytes(self):
        self.honest(self.copies(False, fh_out=2, ino_out=11, data="hello"))
        with open(os.path.join(self.root, "dst"), encoding="ascii") as data:
            self.assertEqual(data.read(), "hello")

    def test_copies_of_what_is_not_known(self):
        done = self.deceives(self.copies(False, fh_out=2, ino_out=11))
        self.assertIn("dst", done.stdout)
        self.assertIn("src", done.stdout)

    def test_copies_to_nowhere(self):
        done = self.run_tool(self.copies(True), "--check")
        self.assertIn("! 1 changes", done.stdout)
        self.deceives(self.copies(True))

    def test_copies_of_other_bytes_than_those_told(self):
        self.deceives(self.copies(True, fh_out=2, ino_out=11, data="world"),
                      check=False)

    # --- undone

    def undone(self, tale, contents, *words):
        """The verdicts of --apply; nothing of DIR is changed otherwise."""
        for name, data in contents.items():
            with open(os.path.join(self.root, name), "w",
                      encoding="ascii") as out:
                out.write(data)
        shown = self.run_tool(tale, "--root", self.root, "--undo", "cuid = 0",
                              "--format", "json", *words)
        done = self.run_tool(tale, "--root", self.root, "--undo", "cuid = 0",
                             "--format", "json", "--apply", *words)
        self.assertEqual(shown.returncode, done.returncode,
                         shown.stdout + done.stdout)
        said = json.loads(done.stdout)
        self.assertEqual(json.loads(shown.stdout)["steps"], said["steps"])
        now = {}
        for name in os.listdir(self.root):
            path = os.path.join(self.root, name)
            if os.path.islink(path):
                now[name] = os.readlink(path)
                continue
            with open(path, encoding="ascii") as data:
                now[name] = data.read()
        return done.returncode, said, now

    def overwritten(self):
        tale = Tale()
        tale.found("/f", 10, 5)
        tale.opened("/f", 10, 1)
        tale.read("/f", 10, 1, "aaaaa")
        tale.wrote("/f", 10, 1, "bbbbb")
        tale.closed("/f", 10, 1)
        return tale

    def test_what_is_as_told_is_undone(self):
        status, _, now = self.undone(self.overwritten(), {"f": "bbbbb"})
        self.assertEqual((status, now), (0, {"f": "aaaaa"}))

    def test_a_file_of_other_contents_is_not_undone(self):
        for data in ("ccccc", "bbbbbb", ""):
            status, said, now = self.undone(self.overwritten(), {"f": data})
            self.assertEqual((status, now), (1, {"f": data}), said)

    def test_a_mode_that_was_given_since_stays(self):
        tale = Tale()
        tale.found("/f", 10, 0)
        tale.tell("setattr", path="/f", ino=10, valid=1, new_mode=0o600,
                  mode=0o100600, nlink=1, size=0, fuid=0, fgid=0)
        file = os.path.join(self.root, "f")
        for mode, status, left in ((0o600, 0, 0o644), (0o4711, 1, 0o4711)):
            with open(file, "w", encoding="ascii"):
                os.chmod(file, mode)
            said = self.undone(tale, {})
            self.assertEqual((said[0], os.stat(file).st_mode & 0o7777),
                             (status, left), said)

    def test_a_link_that_leads_elsewhere_by_now_stays(self):
        tale = Tale()
        tale.tell("symlink", path="/l", parent_ino=ROOT, ino=12, target="then",
                  mode=0o120777, nlink=1, size=4, fuid=0, fgid=0)
        link = os.path.join(self.root, "l")
        for target, status in (("then", 0), ("now!", 1)):
            os.symlink(target, link)
            said = self.undone(tale, {})
            self.assertEqual((said[0], said[2]),
                             (status, {"l": target} if status else {}), said)

    def test_a_removed_file_does_not_replace_another(self):
        tale = self.overwritten()
        tale.removed("/f", 10, nlink=1)
        status, _, now = self.undone(tale, {"f": "mine"})
        self.assertEqual((status, now), (1, {"f": "mine"}))

    def test_what_a_lying_trace_made_is_not_removed(self):
        tale = Tale()
        tale.made("/f", 10, 1)
        tale.wrote("/f", 10, 1, "hello")
        status, _, now = self.undone(tale, {"f": "mine!"})
        self.assertEqual((status, now), (1, {"f": "mine!"}))

    def test_names_that_nobody_told_are_not_made_again(self):
        tale = Tale()
        tale.found("/f", 10, 5, nlink=2)
        tale.opened("/f", 10, 1)
        tale.read("/f", 10, 1, "hello")
        tale.closed("/f", 10, 1)
        tale.removed("/f", 10, nlink=2)
        status, _, now = self.undone(tale, {})
        self.assertEqual((status, now), (1, {}))

    def test_nothing_is_undone_by_a_trace_that_contradicts_itself(self):
        tale = self.overwritten()
        tale.renamed("/gone", "/f", 77)
        tale.opened("/f", 77, 3)
        tale.read("/f", 77, 3, "other")
        status, said, now = self.undone(tale, {"f": "bbbbb"})
        self.assertEqual((status, now), (1, {"f": "bbbbb"}), said)


if __name__ == "__main__":
    PARSER = argparse.ArgumentParser()
    PARSER.add_argument("--bin", required=True)
    PARSER.add_argument("--make-scripted-trace", required=True)
    ARGUMENTS, REST = PARSER.parse_known_args()
    unittest.main(argv=[sys.argv[0], *REST])
