#!/usr/bin/env python3
"""Logs of strace and fio that were made to do harm to who imports them, root for
example: memory, files and links in place of logs, names, numbers, and what the
trace that comes of it does in a replay.

  hostile_logs_test.py --bin build/release/bin
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

ARGUMENTS = None
MEMORY = 2 << 30
SECRET = b"of root"
USER = 12345


class HostileLogs(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="tracefs-logs-")
        self.addCleanup(held.cleanup)
        self.folder = held.name
        self.out = self.path("out.trace")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, lines):
        with open(self.path(name), "wb") as log:
            for line in lines:
                log.write(line if isinstance(line, bytes) else line.encode())
                log.write(b"\n")
        return self.path(name)

    def tool(self, name, *words, seconds=100, **more):
        return subprocess.run([os.path.join(ARGUMENTS.bin, name), *words],
                              capture_output=True, timeout=seconds,
                              check=False, **more)

    def imported(self, log, *words, **more):
        done = self.tool("tracefs-import", "-o", self.out, "--below", "/w",
                         *words, log, **more)
        self.assertIn(done.returncode, (0, 1, 2, 3), done)
        for said in (done.stdout, done.stderr):
            self.assertNotIn(b"\x1b", said)
        return done

    def events(self):
        done = self.tool("tracefs-dump", "--format", "jsonl", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_forks_do_not_multiply_what_is_open(self):
        count = 12_000
        lines = [f'9 1.{n:06} openat(AT_FDCWD</w>, "f", O_RDONLY) = {n + 3}</w/f>'
                 for n in range(count)]
        lines += [f"9 2.{n:06} fork() = {n + 10}" for n in range(count)]
        done = self.imported(
            self.write("log", lines), preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (MEMORY, MEMORY)))
        self.assertEqual(done.returncode, 0, done.stderr[:2000])
        self.assertIn(b"that a child inherited", done.stdout + done.stderr)

    def test_a_fifo_in_place_of_a_log_holds_nobody_up(self):
        os.mkfifo(self.path("log"))
        self.assertEqual(self.imported(self.path("log")).returncode, 2)
        # One of the files of strace -ff.
        self.write("many.1", ['1.0 openat(AT_FDCWD</w>, "f", O_RDONLY) = 3'])
        os.mkfifo(self.path("many.2"))
        self.assertEqual(self.imported(self.path("many")).returncode, 2)
        self.assertFalse(os.path.exists(self.out))

    @unittest.skipIf(os.geteuid() != 0, "only root has others' files")
    def test_what_others_made_in_place_of_the_output(self):
        log = self.write("log", ['9 1.0 mkdir("/w/d", 0777) = 0'])
        secret = self.path("secret")
        shared = self.path("shared")
        self.out = os.path.join(shared, "out.trace")
        with open(secret, "wb") as out:
            out.write(SECRET)
        os.mkdir(shared)
        for owner, mode, refused in ((USER, 0o1777, True), (0, 0o1777, False),
                                     (USER, 0o755, False)):
            os.chmod(shared, mode)
            for make in (lambda: os.symlink(secret, self.out),
                         lambda: os.mkfifo(self.out),
                         lambda: open(self.out, "wb").close()):
                make()
                os.lchown(self.out, owner, owner)
                if os.path.islink(self.out) or refused:
                    done = self.imported(log)
                    self.assertEqual(done.returncode, 2 if refused else 0,
                                     done)
                    with open(secret, "rb") as text:
                        self.assertEqual(text.read() == SECRET, refused)
                    with open(secret, "wb") as out:
                        out.write(SECRET)
                os.unlink(self.out)

    NAMES = ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a/../../b",
             "x" * 5000, "x/" * 3000, r"\33[2J\33]0;title\7", r"\0\0", r"\377",
             r"a\nb", "a\" = 3</w/../etc>", "%s%n", "=1+1", "/w/../../root/x"]

    def hostile_lines(self):
        numbers = [-1, 0, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63,
                   (1 << 64) - 1, 10 ** 40, -(1 << 63)]
        stamp = 1.0
        for name in self.NAMES:
            for call in (f'openat(AT_FDCWD</w>, "{name}", O_RDWR|O_CREAT, 0644)'
                         f" = 3</w/{name}>", f'mkdir("{name}", 0777) = 0',
                         f'symlink("{name}", "/w/l") = 0',
                         f'rename("/w/l", "{name}") = 0',
                         f'link("{name}", "/w/{name}") = 0',
                         f'chdir("{name}") = 0', f'unlink("/w/{name}") = 0',
                         f'execve("{name}", ["{name}"], 0x1) = 0'):
                stamp += 0.001
                yield f"9 {stamp:.6f} {call}"
        yield '9 3.0 openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 06777) = 3</w/f>'
        for number in numbers:
            for call in (f'pwrite64(3</w/f>, "abc"..., {number}, {number})',
                         f"ftruncate(3</w/f>, {number})",
                         f"fallocate(3</w/f>, 0, {number}, {number})",
                         f"lseek(3</w/f>, {number}, SEEK_SET)",
                         f"fchmod(3</w/f>, {number})",
                         f"fchown(3</w/f>, {number}, {number})",
                         f"close_range({number}, {number}, 0)",
                         f'mknod("/w/n", S_IFCHR|0{number}, makedev({number}, 1))',
                         f"dup2(3</w/f>, {number})"):
                stamp += 0.001
                yield f"9 {stamp:.6f} {call} = {number}"
                yield f"{number} {stamp:.6f} {call} = 0"
                yield f"9 {number}.0 {call} = ? <unavailable>"
        yield "9 " + "(" * 100_000
        yield "9 4.0 openat(" + "[{" * 50_000
        yield b"\xff\xfe\x00\x01" * 1000

    def test_names_and_numbers(self):
        log = self.write("log", self.hostile_lines())
        done = self.imported(log)
        self.assertEqual(done.returncode, 0, done.stderr)
        for event in self.events():
            for key in ("path", "path2"):
                parts = event.get(key, "").split("/")
                self.assertNotIn("..", parts, event)
        # And what comes of it stays in its folder, and gives no rights.
        root = self.path("root")
        os.mkdir(root)
        before = sorted(os.listdir(self.folder))
        done = self.tool("tracefs-replay", self.out, "--root", root,
                         "--max-bytes", "64M")
        self.assertGreaterEqual(done.returncode, 0, done)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        for at, folders, files in os.walk(root):
            for name in folders + files:
                status = os.lstat(os.path.join(at, name))
                if not os.path.islink(os.path.join(at, name)):
                    self.assertEqual(status.st_mode & 0o6000, 0, name)

    def test_of_fio(self):
        lines = ["fio version 3 iolog"]
        for name in self.NAMES:
            name = name.replace(" ", "")
            lines += [f"1 {name} add", f"2 {name} open",
                      f"3 {name} write {1 << 63} {1 << 62}",
                      f"4 {name} read -1 -1", f"5 {name} write 0 2147483647",
                      f"{1 << 64} {name} trim 0 1", f"6 {name} close"]
        log = self.write("iolog", lines)
        self.imported(log, "--from", "fio")
        if os.path.exists(self.out):
            for event in self.events():
                self.assertNotIn("..", event.get("path", "").split("/"), event)
        many = ["fio version 2 iolog"] + [f"/w/{n} add" for n in range(250_000)]
        self.imported(self.write("many", many), "--from", "fio",
                      preexec_fn=lambda: resource.setrlimit(
                          resource.RLIMIT_AS, (MEMORY, MEMORY)))


def main():
    global ARGUMENTS  # pylint: disable=global-statement
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
