#!/usr/bin/env python3
"""Whose inputs are whose, where builds are not a row of commands: process
substitution, make in make, words of commands in files, launchers of compilers.
What was made from what is read off the bytes themselves, or said by the
compiler.

  jobs_test.py --bin build/release/bin
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from answers_test import Answers  # noqa: E402
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402

SUBSTITUTION = r"""
sort <(cat a) <(cat b; cat c) > o-sort
paste <(sort a | uniq) b > o-paste
cat --show-ends <(cat a) > o-option
tee >(cat - a > o-tee) < c > o-beside
wait $!
exec 9< <(cat secret)
cat a > o-held
exec 9<&-
cat /proc/self/fd/61 61< <(cat b) > o-proc
cat b > o-plain
"""

MAKEFILE = """
out: top.txt
\t$(MAKE) -C lib && cat lib/all.txt top.txt > out
"""
INNER = """
all: all.txt other.txt
all.txt: x.txt y.txt
\tcat x.txt y.txt > $@
other.txt: secret.txt
\tcat secret.txt > $@
"""

RESPONSES = """
gcc @args
gcc -pipe -O0 -c main.c @flags
gcc @objects -o prog
ar rc libx.a @objects
gcc -c plain.c -o plain.o
"""

GIVES_WAY = r"""
bash -c 'read x < setup; echo $x > in; exec cat other > o-after'
bash -c 'exec > o-both; cat setup; exec cat other'
bash -c 'cat setup > o-child; exec cat late > /dev/null'
"""

LAUNCHERS = """
ccache gcc -c a.c -o a.o
rm a.o
ccache gcc -c a.c -o a.o
CCACHE_DISABLE=1 ccache gcc -c b.c -o b.o
PATH=LINKS:$PATH gcc -c c.c -o c.o
CCACHE_DISABLE=1 PATH=LINKS:$PATH gcc -c d.c -o d.o
gcc -c e.c -o e.o
LINKS/distcc gcc -c f.c -o f.o
CCACHE_PREFIX=LINKS/distcc ccache gcc -c g.c -o g.o
ccache LINKS/distcc gcc -c h.c -o h.o
"""
# Runs what it is told, as distcc does where no other host is there.
DISTCC = """
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int status = 1;
  if (argc > 1 && fork() == 0) return execvp(argv[1], argv + 1);
  return wait(&status) < 0 || status != 0;
}
"""


class Jobs(Answers):
    def files(self, name, texts):
        self.suite.remove(name)
        folder = self.suite.folder(name)
        for each, text in texts.items():
            path = os.path.join(folder, each)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
        return folder

    def found(self, trace, folder, *words):
        """Of one target, the files that are left in the folder."""
        return {os.path.relpath(f, folder)
                for f in self.deps(trace, *words)[0]["files"]
                if f.startswith(folder + "/") and os.path.isfile(f)}

    @staticmethod
    def of_bytes(folder, name, inputs):
        """The inputs whose one word is in a file."""
        with open(os.path.join(folder, name), encoding="ascii") as file:
            text = file.read()
        return {each for each in inputs if f"word-{each}-" in text}

    # --- Process substitution

    def substitution(self):
        if shutil.which("bash") is None:
            raise Skip("bash is not installed")
        inputs = ("a", "b", "c", "secret")
        folder = self.files("substitution", {
            "script": SUBSTITUTION,
            **{each: f"word-{each}-\n" for each in inputs}})
        trace = self.run("substitution", folder, "bash -e script")
        for name in re.findall(r"o-[a-z]+", SUBSTITUTION):
            want = self.of_bytes(folder, name, inputs)
            expect(want and "secret" not in want, f"{name} has {want}")
            for closure in ("flow", "both"):
                got = self.found(trace, folder, "--closure", closure,
                                 os.path.join(folder, name))
                expect_equal(got & set(inputs), want, f"{name}, {closure}")

    def told_by_another(self):
        """Who writes into a pipe has read nothing, but what it ran has: both
        ways."""
        folder = self.files("told", {"a": "a\n", "b": "b\n"})
        trace = self.run("told", folder, "sh -c 'cat a > /dev/null; echo x' | "
                         "cat > out; cat b > /dev/null")
        out = os.path.join(folder, "out")
        expect_equal(self.found(trace, folder, out), {"a"}, "made from")
        for name, made in (("a", {"out"}), ("b", set())):
            expect_equal(self.found(trace, folder, "--reverse",
                                    os.path.join(folder, name)), made, name)

    def own_products(self):
        """What a job makes and reads again is nothing it is made from."""
        folder = self.files("own", {"a": "a\n"})
        trace = self.run("own", folder, "sh -c 'cat a > mid; cat mid > end; "
                         "echo x' | cat > log; :")
        for name, made in (("a", {"mid", "end", "log"}), ("mid", {"end"})):
            path = os.path.join(folder, name)
            expect_equal(self.found(trace, folder, "--reverse", path), made,
                         name)
        for name in ("mid", "end", "log"):
            got = self.found(trace, folder, os.path.join(folder, name))
            expect_equal("mid" in got, name == "end", name)

    # --- make in make

    def make_in_make(self):
        inputs = {f"lib/{x}.txt": f"word-{x}-\n" for x in ("x", "y", "secret")}
        folder = self.files("make-in-make", {
            "Makefile": MAKEFILE, "lib/Makefile": INNER,
            "top.txt": "word-top-\n", **inputs})
        trace = self.run("make-in-make", folder, "make > /dev/null")
        made = ("out", "lib/all.txt", "lib/other.txt")
        words = ("x", "y", "secret", "top")
        for name in made:
            want = {("" if word == "top" else "lib/") + word + ".txt"
                    for word in self.of_bytes(folder, name, words)}
            for closure in ("flow", "both", "tree"):
                got = self.found(trace, folder, "--closure", closure,
                                 os.path.join(folder, name))
                expect_equal({g for g in got if g.endswith(".txt")} - set(made),
                             want, f"{name}, {closure}")
        for word in words:
            source = ("" if word == "top" else "lib/") + word + ".txt"
            got = self.found(trace, folder, "--closure", "tree", "--reverse",
                             os.path.join(folder, source))
            expect_equal(got, {name for name in made if word in
                               self.of_bytes(folder, name, words)}, word)
        declared = os.path.join(self.out, "declared")
        with open(declared, "w", encoding="ascii") as out:
            out.write("# Make data base\n\n# Files\n\n"
                      "out: top.txt lib/all.txt lib/Makefile\n\n")
        differences = self.deps(trace, "--check-make", declared, "--build-dir",
                                folder)
        expect_equal(differences, [], "what is not declared")

    # --- A program that gives way to another

    def gives_way(self):
        """What was written before an exec is not made from what is read after it."""
        names = ("setup", "other", "late")
        folder = self.files("gives-way", {x: f"word-{x}-\n" for x in names})
        trace = self.run("gives-way", folder, GIVES_WAY)
        made = ("in", "o-after", "o-both", "o-child")
        for closure in ("flow", "both", "tree"):
            for name in made:
                want = self.of_bytes(folder, name, names)
                got = self.found(trace, folder, "--closure", closure,
                                 os.path.join(folder, name))
                # A shell may have looked at what it wrote down before.
                expect(want <= got and got - set(made) <= want | {"setup"},
                       f"{name}, {closure}: {got}, its bytes are of {want}")
            got = self.found(trace, folder, "--closure", closure, "--reverse",
                             os.path.join(folder, "other"))
            expect_equal(got, {"o-after", "o-both"}, f"made from other, {closure}")
        found, = self.deps(trace, os.path.join(folder, "in"))
        expect_equal([p["command"].split()[0] for p in found["processes"]],
                     ["bash"], "who wrote it")

    # --- A compiler alone

    def compiler_alone(self):
        """Nothing that was traced begins it: it is one job, not one of each of
        its programs."""
        folder = self.files("alone", {"a.c": '#include "a.h"\n',
                                      "a.h": "int a;\n"})
        trace = self.run("alone", folder, "exec gcc -c a.c -o a.o")
        expect_equal(self.found(trace, folder, os.path.join(folder, "a.o")),
                     {"a.c", "a.h"}, "a.o")

    # --- Words in files

    def responses(self):
        folder = self.files("responses", {
            "inc/x.h": "int x(void);\n",
            "a.c": "#include <x.h>\nint x(void) { return X; }\n",
            "main.c": "#include <x.h>\nint main(void) { return x(); }\n",
            "plain.c": "int plain;\n",
            "args": "-Iinc @more\n-c a.c -o 'a.o'\n", "more": "-DX=1\n",
            "flags": "-Iinc @deep\n", "deep": "-o main.o\n",
            "objects": "a.o @rest\n", "rest": "main.o\n"})
        trace = self.run("responses", folder, RESPONSES)

        def includes(source):
            said = subprocess.run(["gcc", "-MM", "-Iinc", source], cwd=folder,
                                  check=True, capture_output=True, text=True)
            return set(said.stdout.replace("\\", "").split()[1:])
        want = {"a.o": includes("a.c") | {"args", "more"},
                "main.o": includes("main.c") | {"flags", "deep"}}
        want["prog"] = want["a.o"] | want["main.o"] | {
            "objects", "rest", "a.o", "main.o"}
        want["libx.a"] = want["prog"]
        want["plain.o"] = {"plain.c"}
        for name, files in want.items():
            got = self.found(trace, folder, os.path.join(folder, name))
            expect_equal(got, files, name)
        for name in ("args", "more", "flags", "deep", "objects",
                     "rest"):
            got = self.found(trace, folder, "--reverse",
                             os.path.join(folder, name))
            expect_equal(got, {made for made, files in want.items()
                               if name in files}, f"made from {name}")
        commands = {os.path.relpath(c["file"], folder): c
                    for c in self.commands(trace)}
        expect_equal({name: (c["arguments"][1:], c.get("output"))
                      for name, c in commands.items()},
                     {"a.c": (["@args"], None),
                      "main.c": (["-pipe", "-O0", "-c", "main.c", "@flags"],
                                 None),
                      "plain.c": (["-c", "plain.c", "-o", "plain.o"],
                                  os.path.join(folder, "plain.o"))},
                     "commands")
        # "This should run the compilation step."
        for name, command in commands.items():
            made = os.path.join(folder, name[:-1] + "o")
            os.unlink(made)
            subprocess.run(command["arguments"], cwd=command["directory"],
                           check=True)
            expect(os.path.exists(made), f"{command} makes {made}")
        compiled = collections.Counter(
            file for entry in json.loads(self.export(trace, "nfsdb-json"))
            if "d" in entry for file in entry["d"]["f"])
        expect_equal(compiled, collections.Counter(
            c["file"] for c in commands.values()), "nfsdb")

    def commands(self, trace):
        done = self.suite.tool("tracefs-deps", "--compile-commands", "--trace",
                               trace)
        expect_equal(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    # --- Launchers

    def launchers(self):
        if shutil.which("ccache") is None:
            raise Skip("ccache is not installed")
        names = "abcdefgh"
        folder = self.files("launchers", {
            f"{x}.c": f"int {x};\n" for x in names})
        self.suite.remove("links")
        links = self.suite.folder("links")
        os.symlink(shutil.which("ccache"), os.path.join(links, "gcc"))
        subprocess.run(["gcc", "-x", "c", "-", "-o",
                        os.path.join(links, "distcc")], check=True,
                       input=DISTCC.encode())
        self.suite.remove("cache")
        cache = self.suite.folder("cache")
        trace = self.run(
            "launchers", folder, f"export CCACHE_DIR={cache}\n" +
            LAUNCHERS.replace("LINKS", links))
        want = collections.Counter(
            {(f"{folder}/{x}.c", f"{folder}/{x}.o"): 2 if x == "a" else 1
             for x in names})
        got = collections.Counter(
            (c["file"], c.get("output")) for c in self.commands(trace))
        expect_equal(got, want, "compile commands")
        got = collections.Counter()
        for entry in json.loads(self.export(trace, "nfsdb-json")):
            for pair in zip(entry.get("d", {}).get("f", ()),
                            entry.get("d", {}).get("o", ())):
                got[pair] += 1
        expect_equal(got, want, "nfsdb")


def main():
    suite = Suite("build-jobs", __doc__)
    jobs = []

    def case(name):
        if not jobs:
            jobs.append(Jobs(suite))
        return getattr(jobs[0], name)()
    for name in ("substitution", "told_by_another", "own_products",
                 "make_in_make", "compiler_alone", "responses",
                 "gives_way", "launchers"):
        suite.run(name.replace("_", " "), case, name)
    suite.finish()


if __name__ == "__main__":
    main()
