"""Users of a mount who notice everything (restless.py)."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import PATIENCE_S  # noqa: E402


class User:
    """A process; what it says at its end is more than a pipe holds."""

    def __init__(self, suite, command):
        self.files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.process = suite.background(subprocess.Popen(
            command, stdout=self.files[0], stderr=self.files[1]))

    def poll(self):
        return self.process.poll()

    def said(self):
        """Its output and its errors, once it has ended."""
        self.process.wait(timeout=PATIENCE_S)
        for file in self.files:
            file.seek(0)
        return [file.read() for file in self.files]


def restless_users(suite, source, point, seconds, count, seed=0):
    return [User(suite, [
        sys.executable, os.path.join(HERE, "restless.py"),
        os.path.join(point, f"user-{i}"), str(seconds), str(seed + i),
        os.path.join(source, f"user-{i}")]) for i in range(count)]
