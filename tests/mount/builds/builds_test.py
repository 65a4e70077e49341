#!/usr/bin/env python3
"""Builds in a recorded mount: what the compiler itself says that an object was
made from (gcc -MD) is among what tracefs-deps says, for every object.

  builds_test.py --bin build/release/bin --project FOLDER
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402

CMAKE = """
cmake -S . -B build -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_C_FLAGS=-O0 > /dev/null
make -C build -j2 > /dev/null
"""
# The project's own makefile, with -MD; a part of its objects is enough.
MAKE = """
make -f makefile.unix -j2 CFLAGS='-O0 -I. -MD' \
  $(ls bn_mp_a*.c bn_mp_s*.c | sed 's/c$/o/') > /dev/null
"""


def depfiles(folder):
    """{object: files it depends on}, by the compiler."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".d"):
                continue
            with open(os.path.join(where, name), encoding="utf-8") as text:
                rule = text.read().replace("\\\n", " ")
            target, files = rule.split("\n")[0].split(":", 1)
            base = folder
            if not os.path.isabs(target):
                # CMake's compiler runs in its build folder, make's in the top.
                for start in (where, folder, os.path.join(folder, "build")):
                    if os.path.exists(os.path.join(start, target)):
                        base = start
            found[os.path.normpath(os.path.join(base, target))] = {
                os.path.normpath(os.path.join(base, f)) for f in files.split()}
    return found


class Builds:
    def __init__(self, suite):
        self.suite = suite
        self.deps = os.path.join(suite.bin, "tracefs-deps")

    def ask(self, trace, *words, status=0):
        done = subprocess.run([self.deps, *words, "--trace", trace], check=False,
                              capture_output=True, text=True)
        expect_equal(done.returncode, status, f"{words}: {done.stderr}")
        return done.stdout, done.stderr

    def record(self, script):
        """The folder it was built in, and the trace of that."""
        for tool in ("cmake", "make", "gcc"):
            if shutil.which(tool) is None:
                raise Skip(f"{tool} is not installed")
        project = self.suite.options.project
        if not os.path.isdir(project):
            raise Skip(f"{project} is not there: scripts/setup gets it")
        self.suite.remove("source")
        folder = self.suite.path("source")
        shutil.copytree(project, folder, symlinks=True)
        trace = self.suite.path("build.trace")
        if os.path.exists(trace):
            os.unlink(trace)
        mount = self.suite.mount(
            folder, folder,
            ("NOT op IN { read write getlk setlk flock }", "STR_ALL",
             f'compress; file = "{trace}"'), visibility="auto")
        done = subprocess.run(["sh", "-e", "-c", script], cwd=folder,
                              check=False, capture_output=True, text=True)
        expect_equal(done.returncode, 0, done.stderr[-2000:])
        mount.unmount()
        return folder, trace

    def compiler_agrees(self, script, at_least):
        folder, trace = self.record(script)
        declared = depfiles(folder)
        expect(len(declared) >= at_least, f"{len(declared)} objects")
        text, told = self.ask(trace, *sorted(declared), "--format", "json")
        pairs = 0
        for answer in json.loads(text):
            ours = set(answer["files"])
            wanted = {f for f in declared[answer["target"]]
                      if f.startswith(folder + "/")}
            expect(wanted, f"{answer['target']} depends on nothing")
            expect(wanted <= ours, f"{answer['target']}: {wanted - ours}")
            pairs += len(wanted)
            # What is beyond it is of the project, too, and no other source.
            for extra in ours - wanted:
                expect(not re.search(r"\.[ch]$", extra) or
                       os.path.basename(extra) in ("config.h",),
                       f"{answer['target']} does not need {extra}")
        print(f"  {len(declared)} objects, {pairs} dependencies")
        expect("read nothing that was traced" in told,
               "the assembler reads a file outside the mount")
        return folder, trace

    def cmake_project(self):
        folder, trace = self.compiler_agrees(CMAKE, 100)
        library = os.path.join(folder, "build", "libtommath.a")
        sources, _ = self.ask(trace, library, "--sources")
        names = {os.path.basename(n) for n in sources.splitlines()}
        want = {n for n in os.listdir(folder) if re.match(r"bn_.*\.c$", n)}
        expect(want <= names, f"the library lacks {want - names}")
        made, _ = self.ask(trace, "--reverse",
                           os.path.join(folder, "bn_mp_add.c"))
        expect("build/libtommath.a\n" in made, made)

    def make_project(self):
        folder, trace = self.compiler_agrees(MAKE, 10)
        listed = subprocess.run(
            ["make", "-f", "makefile.unix", "-pn", "CFLAGS=-O0 -I. -MD"],
            cwd=folder, check=False, capture_output=True, text=True).stdout
        declared = self.suite.path("declared")
        with open(declared, "w", encoding="utf-8") as out:
            out.write(listed)
        text, _ = self.ask(trace, "--check-make", declared, "--build-dir",
                           folder, "--format", "json", status=1)
        # -MD's files are of no rule: make was not told of them.
        found = {d["file"][-2:] for d in json.loads(text)
                 if d["kind"] == "undeclared-output"}
        expect_equal(found, {".d"}, "undeclared outputs")


def options(parser):
    parser.add_argument("--project", required=True, metavar="FOLDER",
                        help="what scripts/setup got: the source of a project")


def main():
    suite = Suite("builds", __doc__, options)
    builds = Builds(suite)
    suite.run("a CMake project", builds.cmake_project)
    suite.run("a make project", builds.make_project)
    suite.finish()


if __name__ == "__main__":
    main()
