#!/usr/bin/env python3
"""What is written in a shell's language and in that of AppArmor is without fault."""

import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from staged import ROOT, expect, finish, have, run

FOLDERS = ("scripts", "packaging", "docs", "tests", "bench", "config", ".ci")


def shell_scripts():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if not path.is_file() or path.suffix in (".trace", ".cc", ".h"):
                continue
            with path.open("rb") as file:
                head = file.readline(80)
            if re.match(rb"#!/(usr/bin/env |bin/)(ba)?sh\b|# shellcheck shell=",
                        head):
                yield path


def main():
    checked = 0
    if have("shellcheck"):
        scripts = list(shell_scripts())
        expect(len(scripts) >= 15, f"only {len(scripts)} scripts were found")
        done = run("shellcheck", "-x", *scripts, cwd=ROOT)
        expect(done.returncode == 0, done.stdout + done.stderr)
        checked += 1
    if have("apparmor_parser"):
        for profile in (ROOT / "packaging/apparmor").iterdir():
            done = run("apparmor_parser", "-QK", profile)
            expect(done.returncode == 0, f"{profile.name}: {done.stderr}")
        checked += 1
    if checked == 0:
        sys.exit(77)
    finish("scripts_test")


if __name__ == "__main__":
    main()
