#!/usr/bin/env python3
"""Builds in tracefs-run and in a recorded mount: what the compiler itself says
that an object was made from (gcc -MD) is among what tracefs-deps says, for every
object. What is left over lies outside what was traced.

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
# A program and a library of a package whose sources and config.h are made.
AUTOTOOLS = {
    "configure.ac": """AC_INIT([sample], [1])
AM_INIT_AUTOMAKE([foreign])
AC_CONFIG_HEADERS([config.h])
AC_PROG_CC
AC_PROG_RANLIB
AM_PROG_AR
AC_CONFIG_FILES([Makefile lib/Makefile src/Makefile])
AC_OUTPUT
""",
    "Makefile.am": "SUBDIRS = lib src\n",
    "lib/Makefile.am": """noinst_LIBRARIES = libsample.a
libsample_a_SOURCES = one.c two.c lib.h
nodist_libsample_a_SOURCES = table.h
BUILT_SOURCES = table.h
CLEANFILES = table.h
table.h: table.txt
\tsed 's/.*/#define & 1/' $(srcdir)/table.txt | sort > $@
EXTRA_DIST = table.txt
""",
    "lib/lib.h": "int one(void);\nint two(void);\n",
    "lib/one.c": '#include <config.h>\n#include <string.h>\n#include "lib.h"\n'
                 '#include "table.h"\nint one(void) { return FIRST; }\n',
    "lib/two.c": '#include <stdlib.h>\n#include "lib.h"\n'
                 "int two(void) { return abs(-2); }\n",
    "lib/table.txt": "SECOND\nFIRST\n",
    "src/Makefile.am": """bin_PROGRAMS = sample
sample_SOURCES = main.c
sample_CPPFLAGS = -I$(top_srcdir)/lib
sample_LDADD = ../lib/libsample.a
""",
    "src/main.c": '#include <config.h>\n#include <stdio.h>\n#include <lib.h>\n'
                  'int main(void) { return puts(VERSION) < 0 || one() + two() '
                  "!= 3; }\n",
}


def depfiles(folder):
    """{object: files it depends on}, by the compiler."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            # automake has .Po in .deps, and an empty one for what was not made.
            if not name.endswith((".d", ".Po")):
                continue
            with open(os.path.join(where, name), encoding="utf-8") as text:
                rule = text.read().replace("\\\n", " ")
            if rule.startswith("#"):
                continue
            target, files = rule.split("\n")[0].split(":", 1)
            base = folder
            if not os.path.isabs(target):
                # CMake's compiler runs in its build folder, make's in the top,
                # automake's above .deps.
                for start in (where, folder, os.path.join(folder, "build"),
                              os.path.dirname(where)):
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

    def project(self, *tools):
        """A folder with its sources, and where the trace may be."""
        self.need(*tools)
        project = self.suite.options.project
        if not os.path.isdir(project):
            raise Skip(f"{project} is not there: scripts/setup gets it")
        self.suite.remove("source")
        folder = self.suite.path("source")
        shutil.copytree(project, folder, symlinks=True)
        return folder, self.new_trace()

    @staticmethod
    def need(*tools):
        for tool in tools:
            if shutil.which(tool) is None:
                raise Skip(f"{tool} is not installed")

    def new_trace(self):
        trace = self.suite.path("build.trace")
        if os.path.exists(trace):
            os.unlink(trace)
        return trace

    def run(self, folder, trace, script, *options):
        """Builds in tracefs-run."""
        done = self.suite.tool("tracefs-run", "-q", *options, "-o", trace, "--",
                               "sh", "-e", "-c", script, cwd=folder)
        expect_equal(done.returncode, 0, done.stderr[-2000:])

    def record(self, folder, trace, script):
        """Builds in a mount that follows no processes."""
        mount = self.suite.mount(
            folder, folder,
            ("NOT op IN { read write getlk setlk flock }", "STR_ALL",
             f'compress; file = "{trace}"'), visibility="auto")
        done = subprocess.run(["sh", "-e", "-c", script], cwd=folder,
                              check=False, capture_output=True, text=True)
        expect_equal(done.returncode, 0, done.stderr[-2000:])
        mount.unmount()

    def compiler_agrees(self, folder, trace, at_least, everything=False):
        """`everything`: also what lies outside the folder was traced."""
        declared = depfiles(folder)
        expect(len(declared) >= at_least, f"{len(declared)} objects")
        text, told = self.ask(trace, *sorted(declared), "--format", "json")
        pairs = 0
        left_over = set()
        for answer in json.loads(text):
            ours = set(map(os.path.realpath, answer["files"]))
            wanted = set(map(os.path.realpath, declared[answer["target"]]))
            expect(wanted, f"{answer['target']} depends on nothing")
            left_over |= wanted - ours
            pairs += len(wanted & ours)
            if everything:
                continue
            # What is beyond it is of the project, too, and no other source.
            for extra in ours - wanted:
                expect(not re.search(r"\.[ch]$", extra) or
                       os.path.basename(extra) in ("config.h",),
                       f"{answer['target']} does not need {extra}")
        print(f"  {len(declared)} objects, {pairs} dependencies; left over, "
              f"as they lie outside: {len(left_over)}")
        outside = {f for f in left_over if not f.startswith(folder + "/")}
        expect_equal(left_over - outside, set(), "left over of the project")
        expect(not everything or not outside, f"left over: {outside}")
        expect(everything or "read nothing that was traced" in told,
               "the assembler reads a file outside the mount")

    def cmake_project(self):
        folder, trace = self.project("cmake", "make", "gcc")
        self.run(folder, trace, CMAKE)
        self.compiler_agrees(folder, trace, 100)
        library = os.path.join(folder, "build", "libtommath.a")
        sources, _ = self.ask(trace, library, "--sources")
        names = {os.path.basename(n) for n in sources.splitlines()}
        want = {n for n in os.listdir(folder) if re.match(r"bn_.*\.c$", n)}
        expect(want <= names, f"the library lacks {want - names}")
        made, _ = self.ask(trace, "--reverse",
                           os.path.join(folder, "bn_mp_add.c"))
        expect("build/libtommath.a\n" in made, made)

    def autotools_project(self):
        """With --root: nothing is left over, /usr/include and what the compiler
        leaves in /tmp included."""
        self.need("autoreconf", "automake", "make", "gcc")
        self.suite.remove("package")
        folder = self.suite.folder("package")
        for name, text in AUTOTOOLS.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        subprocess.run(["autoreconf", "-i"], cwd=folder, check=True,
                       capture_output=True)
        trace = self.new_trace()
        self.run(folder, trace, "./configure > /dev/null; make > /dev/null",
                 "--root")
        self.compiler_agrees(folder, trace, 3, everything=True)
        program = os.path.join(folder, "src/sample")
        text, _ = self.ask(trace, program, "--closure", "flow", "--format",
                           "json")
        ours = set(json.loads(text)[0]["files"])
        made = {"config.h", "lib/table.h", "lib/libsample.a", "lib/one.o",
                "lib/table.txt", "config.h.in", "src/main.c", "lib/two.c"}
        missing = {m for m in made if os.path.join(folder, m) not in ours}
        expect_equal(missing, set(), "what the program was made from")
        text, _ = self.ask(trace, "--reverse",
                           os.path.join(folder, "lib/table.txt"))
        expect(program + "\n" in text, f"made from table.txt: {text}")

    def make_project(self):
        folder, trace = self.project("make", "gcc")
        self.record(folder, trace, MAKE)
        self.compiler_agrees(folder, trace, 10)
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
    suite.run("a CMake project in tracefs-run", builds.cmake_project)
    suite.run("an autotools project in tracefs-run", builds.autotools_project)
    suite.run("a make project in a mount", builds.make_project)
    suite.finish()


if __name__ == "__main__":
    main()
