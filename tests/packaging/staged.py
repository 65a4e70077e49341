"""An installation in a folder of its own, for tests of what is installed."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = ("tools", "receiver", "reader", "reader-dev", "reader-python", "doc")
_failures = []


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True,
                          text=True, check=False, **options)


def must(*command, **options):
    done = run(*command, **options)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}"
                 f"{done.stderr}")
    return done.stdout


def expect(condition, text):
    """Goes on after a failure, so that all are seen at once."""
    if not condition:
        _failures.append(text)


def have(program):
    found = shutil.which(program)
    if found is None:
        print(f"no {program} here: what needs it is not checked")
    return found is not None


def install(build, prefix, *parts):
    """A part at a time, as packages do; without DESTDIR, below a prefix."""
    for part in parts or PARTS:
        must("cmake", "--install", build, "--prefix", prefix, "--component",
             part)


def commands(prefix):
    return sorted((prefix / "bin").iterdir())


def finish(name):
    for failure in _failures:
        print(f"{name}: {failure}")
    if _failures:
        sys.exit(1)
    print(f"{name}: all is well")
