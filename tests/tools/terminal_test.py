#!/usr/bin/env python3
"""What commands do on a terminal only: the pager, and how far long work is."""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

GOLDEN = "every_operation.trace"


class Terminal:
    """A pseudo terminal, and what was written to it."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        self.text = b""
        # A test that fails may leave it waiting.
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        while True:
            try:
                part = os.read(self.master, 65536)
            except OSError:  # all who had it open have closed it
                return
            if not part:
                return
            self.text += part

    def close(self):
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1
        self.thread.join()
        os.close(self.master)
        return self.text.decode(errors="replace").replace("\r\n", "\n")


class OnATerminal(unittest.TestCase):
    arguments = None
    folder = None

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = cls.holder.name
        cls.trace = os.path.join(cls.arguments.golden, GOLDEN)
        cls.long = os.path.join(cls.folder, "long.trace")
        subprocess.run([cls.arguments.make_workload_trace, cls.long, "200000",
                        "1000", "10"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def command(self, *words):
        return [os.path.join(self.arguments.bin, words[0]), *words[1:]]

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items()
               if k not in ("PAGER", "TRACEFS_PAGER", "LESS", "SUDO_UID",
                            "PKEXEC_UID", "DOAS_USER")}
        env.update({"TERM": "xterm", "LC_ALL": "C.UTF-8", **more})
        return {k: v for k, v in env.items() if v is not None}

    def run_on(self, words, output=True, errors=True, env=None, **more):
        """The exit status and what the terminal shows; or, where standard output
        is none, what comes out of it."""
        terminal = Terminal()
        child = subprocess.Popen(
            self.command(*words), stdin=subprocess.DEVNULL,
            stdout=terminal.slave if output else subprocess.PIPE,
            stderr=terminal.slave if errors else subprocess.PIPE,
            env=env or self.environment(**more))
        os.close(terminal.slave)
        terminal.slave = -1
        out, err = child.communicate(timeout=120)
        shown = terminal.close()
        return child.returncode, shown, (out or b"").decode(), (
            err or b"").decode()

    # --- The pager

    MARK = "sed 's/^/P:/'"

    def assert_paged(self, shown, what):
        lines = [line for line in shown.splitlines() if line]
        self.assertTrue(lines and all(line.startswith("P:") for line in lines),
                        f"{what}: {shown[:300]!r}")

    def assert_not_paged(self, shown, what):
        self.assertTrue(shown and "P:" not in shown, f"{what}: {shown[:300]!r}")

    def commands(self):
        return ([self.words("tracefs-dump"),
                 self.words("tracefs-dump", "--by", "op", "--top", "all"),
                 self.words("tracefs-dump", "--header"),
                 self.words("tracefs-report", "errors"),
                 ["tracefs-deps", "--absent", "--format", "json", "--trace",
                  self.trace]])

    def words(self, *words):
        return [*words, self.trace]

    def test_text_goes_through_the_pager_of_the_environment(self):
        for words in self.commands():
            status, shown, _, _ = self.run_on(words, TRACEFS_PAGER=self.MARK)
            self.assertIn(status, (0, 1), words)
            self.assert_paged(shown, words)
            # It is the same text.
            _, _, plain, errors = self.run_on(words, output=False, errors=False)
            lines = sorted(line.removeprefix("P:")
                           for line in shown.splitlines())
            self.assertEqual(lines, sorted((plain + errors).splitlines()))

    def test_the_nearest_word_says_which_pager(self):
        words = self.words("tracefs-dump", "--by", "op", "--top", "all")
        for env, paged in (({"PAGER": self.MARK}, True),
                           ({"PAGER": "false", "TRACEFS_PAGER": self.MARK}, True),
                           ({"PAGER": self.MARK, "TRACEFS_PAGER": ""}, False),
                           ({"PAGER": self.MARK, "TRACEFS_PAGER": "cat"}, False),
                           ({"PAGER": ""}, False),
                           ({"PAGER": self.MARK, "TERM": "dumb"}, False),
                           ({"PAGER": self.MARK, "TERM": None}, False)):
            status, shown, _, _ = self.run_on(words, **env)
            self.assertEqual(status, 0, env)
            (self.assert_paged if paged else self.assert_not_paged)(shown, env)
        _, shown, _, _ = self.run_on([*words, "--pager", self.MARK],
                                     TRACEFS_PAGER="cat")
        self.assert_paged(shown, "--pager")
        for more in (["--no-pager"], ["--pager", "cat"]):
            _, shown, _, _ = self.run_on([*words, *more],
                                         TRACEFS_PAGER=self.MARK)
            self.assert_not_paged(shown, more)
        status, shown, _, _ = self.run_on(
            [*words, "--no-pager", "--pager", "less"])
        self.assertEqual(status, 2, shown)

    def test_variables_of_another_user_run_nothing(self):
        words = self.words("tracefs-dump", "--by", "op", "--top", "all")
        own = str(os.getuid())
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "less"), "w", encoding="ascii") as out:
            out.write("#!/bin/sh\necho secure: $LESSSECURE\nexec cat\n")
        os.chmod(out.name, 0o755)
        path = folder + ":" + os.environ["PATH"]
        for name, value in (("SUDO_UID", "4321"), ("SUDO_UID", "x"),
                            ("PKEXEC_UID", "4321"), ("DOAS_USER", "u")):
            status, shown, _, _ = self.run_on(
                words, **{name: value}, PAGER=self.MARK, PATH=path,
                LESSSECURE="0", TRACEFS_PAGER=self.MARK)
            self.assertEqual(status, 0, name)
            self.assert_not_paged(shown, name)
            self.assertIn("secure: 1", shown)
            # What is typed is run.
            _, shown, _, _ = self.run_on([*words, "--pager", self.MARK],
                                         **{name: value})
            self.assert_paged(shown, name)
        _, shown, _, _ = self.run_on(words, SUDO_UID=own, PAGER=self.MARK)
        self.assert_paged(shown, "his own")

    def test_less_shows_a_short_answer_and_ends(self):
        if subprocess.run(["sh", "-c", "command -v less"], check=False,
                          stdout=subprocess.DEVNULL).returncode:
            self.skipTest("less is not installed")
        status, shown, _, _ = self.run_on(
            self.words("tracefs-dump", "--by", "op", "--top", "1"))
        self.assertEqual(status, 0)
        self.assertIn("other(", shown)

    def test_what_is_no_terminal_has_no_pager(self):
        for words in self.commands():
            _, _, out, _ = self.run_on(words, output=False,
                                       TRACEFS_PAGER=self.MARK)
            self.assert_not_paged(out, words)
            _, _, out, _ = self.run_on([*words, "--pager", self.MARK],
                                       output=False)
            self.assert_not_paged(out, words)
        place = os.path.join(self.folder, "out.txt")
        status, shown, _, _ = self.run_on(
            self.words("tracefs-dump", "--output", place),
            TRACEFS_PAGER=self.MARK)
        self.assertEqual((status, shown), (0, ""))

    def test_what_is_shown_does_not_depend_on_the_pager(self):
        words = ["tracefs-dump", "--by", "path", "--values", "count", self.long]
        # Not beside what is said of the progress.
        _, paged, _, _ = self.run_on(words, errors=False,
                                     TRACEFS_PAGER=self.MARK)
        _, plain, _, _ = self.run_on([*words, "--no-pager"], errors=False)
        def table(text):
            return [line.removeprefix("P:") for line in text.splitlines()]
        self.assertEqual(table(paged), table(plain))
        self.assertEqual(len(table(plain)), 1 + 20 + 1)

    def test_a_pager_that_ends_early_is_no_error(self):
        for pager in ("true", "head -n 1", "exec <&-; sleep 0.2", "no-such-pager"):
            status, shown, _, _ = self.run_on(["tracefs-dump", self.long],
                                              TRACEFS_PAGER=pager)
            self.assertEqual(status, 0, f"{pager}: {shown[-300:]}")
            self.assertNotIn("tracefs-dump:", shown)

    def test_the_exit_status_is_ours(self):
        cut = os.path.join(self.folder, "cut.trace")
        with open(self.long, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read(os.path.getsize(self.long) // 2))
        status, shown, _, _ = self.run_on(
            ["tracefs-dump", "--by", "op", cut], TRACEFS_PAGER=self.MARK)
        self.assertEqual(status, 1)
        # What is wrong is told where the reader is, behind the answer.
        self.assertIn("P:tracefs-dump: ", shown.splitlines()[-1])
        status, shown, _, _ = self.run_on(
            ["tracefs-dump", "--by", "op", "/nonexistent"],
            TRACEFS_PAGER=self.MARK)
        self.assertEqual(status, 3)

    def test_an_interrupt_is_for_the_pager(self):
        """Who leaves a search in the pager still sees what there is."""
        ready = os.path.join(self.folder, "ready")
        sent = os.path.join(self.folder, "sent")
        pager = (f"trap '' INT; : > {ready}; "
                 f"until [ -e {sent} ]; do sleep 0.01; done; "
                 "sed 's/^/P:/' | tail -n 1")
        terminal = Terminal()
        child = subprocess.Popen(self.command("tracefs-dump", self.trace),
                                 stdout=terminal.slave, stderr=terminal.slave,
                                 env=self.environment(TRACEFS_PAGER=pager))
        os.close(terminal.slave)
        terminal.slave = -1
        while not os.path.exists(ready):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        with open(sent, "wb"):
            pass
        self.assertEqual(child.wait(60), 0)
        self.assert_paged(terminal.close(), "interrupted")

    # --- Progress

    def hasty(self):
        """The environment of a command for which time passes as it looks."""
        env = self.environment(LD_PRELOAD=self.arguments.hasty_clock)
        # A sanitizer wants to be the first that is loaded.
        env["ASAN_OPTIONS"] = ":".join(
            filter(None, [env.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        return env

    def long_commands(self):
        out = os.path.join(self.folder, "out")
        key = os.path.join(self.folder, "key")
        if not os.path.exists(key):
            subprocess.run(self.command("tracefs-keygen", "secret", key),
                           check=True)
        return {
            "dump": ["tracefs-dump", "--by", "path", self.long],
            "dump export": ["tracefs-dump", "--format", "csv", "--output",
                            out + ".csv", self.long],
            "question": ["tracefs-report", "files", self.long],
            "page": ["tracefs-report", self.long, "-o", out + ".html"],
            "diff": ["tracefs-report", "diff", self.long, self.long],
            "deps": ["tracefs-deps", "--absent", "--trace", self.long],
            "verify": ["tracefs-verify", self.long],
            "anon": ["tracefs-anon", "--policy", "research", "--keys", key,
                     self.long, out + ".trace"],
        }

    def test_long_work_says_how_far_it_is_and_how_long_it_takes(self):
        for name, words in self.long_commands().items():
            status, shown, _, _ = self.run_on(words, output=False,
                                              env=self.hasty())
            self.assertIn(status, (0, 1), f"{name}: {shown[-300:]}")
            told = re.findall(r"\r\x1b\[K *(\d+) % of [\d.]+ \w+, "
                              r"\d+ (?:s|min) left", shown)
            self.assertGreater(len(set(told)), 1, f"{name}: {shown!r}")
            # Nothing of it stays.
            after = shown[shown.rindex(" left"):]
            self.assertIn("\r\x1b[K", after, name)

    def test_where_nobody_looks_nothing_is_said(self):
        for name, words in self.long_commands().items():
            _, _, _, errors = self.run_on(words, output=False, errors=False,
                                          env=self.hasty())
            self.assertNotIn("%", errors, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--make-workload-trace", required=True)
    parser.add_argument("--hasty-clock", required=True)
    OnATerminal.arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
