#!/usr/bin/env python3
"""tracefs-deps on traces of made-up builds whose answers were worked out by hand,
and on a million opens."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

NINJA_DEPS = """a.o: #deps 2, deps mtime 1 (VALID)
    a.c
    a.h

"""
NINJA_QUERY = """prog:
  input: link
    a.o
    | lds
    || all
  outputs:
lds:
  input: gen
    build.sh
  outputs:
    prog
a.o:
  input: cc
    a.c
  outputs:
    prog
old.o:
  input: cc
    a.c
  outputs:
"""
NINJA_GRAPH = """digraph ninja {
rankdir="LR"
node [fontsize=10, shape=box, height=0.25]
edge [fontsize=10]
"0x1" [label="a.o"]
"0x2" [label="cc", shape=ellipse]
"0x2" -> "0x1"
"0x3" -> "0x2" [arrowhead=none]
"0x4" -> "0x2" [arrowhead=none style=dotted]
"0x3" [label="a.c"]
"0x4" [label="a.h"]
"0x5" -> "0x6" [label=" gen"]
"0x5" [label="build.sh"]
"0x6" [label="lds"]
}
"""
MAKE = """# GNU Make 4.3
# Make data base

# Files

# Not a target:
.c.o:
#  Builtin rule

all: prog
#  Phony target

a.o: a.c
#  File is very old.
\tgcc -c a.c -o a.o

lds: build.sh
prog: a.o lds | dir

# files hash-table stats:
"""


class Test:
    def __init__(self, options, folder):
        self.deps = os.path.abspath(
            os.path.join(options.bin, "tracefs-deps"))
        self.make = options.make_build_trace
        self.folder = folder

    def trace(self, scene, *more):
        path = os.path.join(self.folder, scene + "".join(more) + ".trace")
        if not os.path.exists(path):
            subprocess.run([self.make, scene, path, *more], check=True)
        return path

    def ask(self, scene, *arguments, status=0):
        done = subprocess.run(
            [self.deps, *arguments, "--trace", self.trace(scene)], cwd="/",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.err = done.stderr.decode()
        assert done.returncode == status, (done.returncode, self.err)
        return done.stdout.decode()

    def names(self, *arguments, **more):
        return [line.removeprefix("/src/")
                for line in self.ask(*arguments, **more).splitlines()]

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    # --- What was it made from?

    def test_the_hand_worked_sets_come_out(self):
        flow = ("--closure", "flow")
        everything = ["a.c", "a.h", "a.o", "build.sh", "lds", "many.txt"]
        assert self.names("toy", "prog", *flow) == everything
        assert self.names("toy", "prog", *flow, "--no-pipes") == []
        assert "sort (7) read nothing that was traced" in self.err, self.err
        less = ["a.c", "a.h", "a.o", "lds"]
        assert self.names("toy", "prog", *flow, "--exclude", "*lds") == less
        assert self.names("toy", "prog", *flow, "--exclude-command",
                          "*build.sh*") == less
        assert self.names("toy", "/src/prog", "--sources") == [
            "a.c", "a.h", "build.sh", "many.txt"]
        answer = json.loads(self.ask("toy", "prog", "--format", "json"))[0]
        assert {p["pid"] for p in answer["processes"]} == {3, 5, 6, 7}
        assert answer["target"] == "/src/prog" and answer["written"]

    def test_a_target_may_be_told_as_reports_do(self):
        expect = self.names("toy", "/src/prog")
        for way in ("/prog", "prog", "./prog", "//prog", "/src//./prog"):
            assert self.names("toy", way) == expect, way

    def test_a_wrapping_shell_stands_for_what_it_ran(self):
        assert self.names("toy", "prog", "--closure", "flow", "--no-pipes",
                          "--wrap-shells", "--direct") == ["a.o", "lds"]

    def test_a_broken_chain_is_mended_and_told(self):
        assert self.names("broken", "a.o") == ["a.c", "a.h"]
        assert "gcc -c a.c (2) counts instead" in self.err, self.err
        assert self.names("broken", "a.o", "--closure", "flow") == []
        assert "is not known" in self.err

    def test_notes_of_silent_programs_stay_short(self):
        assert len(self.names("silent", "all", "--closure", "flow")) == 7
        told = self.err.splitlines()
        assert len(told) == 6 and "2 more processes" in told[-1], told
        assert all("pack xxx" in line and "-o all" in line and
                   len(line) < 300 for line in told[:-1]), told

    def test_a_copy_of_an_older_trace_wrote_what_its_handle_was_opened_as(self):
        assert self.names("copy", "out", "--closure", "flow") == ["in"]
        assert self.names("copy", "--reverse", "in") == ["out"]
        assert "copies" not in self.err
        assert self.names("unknown-copy", "--reverse", "in") == []
        assert "1 copies wrote to files that the trace does not say" in self.err

    def test_reverse_says_what_is_made_again(self):
        assert self.names("toy", "--reverse", "a.h") == ["a.o", "prog"]
        assert self.names("toy", "--reverse", "--direct", "a.h") == ["a.o"]

    def test_formats_of_build_tools_are_theirs(self):
        dep = self.ask("toy", "lds", "--format", "depfile")
        assert dep == "/src/lds: \\\n /src/build.sh \\\n /src/many.txt\n", dep
        dyn = self.ask("toy", "lds", "--format", "dyndep")
        assert dyn == ("ninja_dyndep_version = 1\n"
                       "build lds: dyndep | build.sh many.txt\n"), dyn
        dot = self.ask("toy", "lds", "--format", "dot")
        assert dot.startswith("digraph") and dot.count("->") == 3, dot
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg"], input=dot.encode(), check=True,
                           stdout=subprocess.DEVNULL)
        commands = json.loads(self.ask("toy", "--compile-commands"))
        assert commands == [{
            "directory": "/src", "file": "/src/a.c", "output": "/src/a.o",
            "arguments": ["/usr/bin/gcc", "-c", "a.c", "-o", "a.o"]}], commands

    def test_make_and_ninja_read_hostile_names_as_they_are(self):
        for name in ("a b", "$a", "#x"):
            dep = self.ask("hostile", name + "2", "--format", "depfile")
            dyn = self.ask("hostile", name + "2", "--format", "dyndep")
            assert dep.count(": \\\n") == 1 and dyn.count("\n") == 2
        assert "a\\ b" in self.ask("hostile", "a b2", "--format", "depfile")
        assert "$$a" in self.ask("hostile", "$a2", "--format", "depfile")
        # A backslash before what make would take for a mark is one of two.
        for name in ("a\\ b", "a\\\\#b", "a\\", "a\\b", "a:b", "#x", "a,b"):
            self.make_finds(name)
        # What comes after it would be run.
        for name in ("a;b", "a|b", "a=b", "a%b"):
            self.ask("hostile", name + "2", "--format", "depfile", status=2)
            assert "make takes" in self.err and "--format json" in self.err
        self.ask("hostile", "a\nb2", "--format", "depfile", status=2)
        assert "--format json" in self.err
        answer = json.loads(self.ask("hostile", "a\nb2", "--format", "json"))
        assert "/src/ina\nb" in answer[0]["files"]
        assert "\x1b" not in self.ask("hostile", "\x1b[2J2")

    def make_finds(self, name):
        """Make knows what is needed as the file that has that name."""
        dep = self.ask("hostile", name + "2", "--format", "depfile")
        needed = "/src/in" + name
        rule = os.path.join(self.folder, "rule")
        with open(rule, "w", encoding="utf-8") as out:
            out.write(dep)
        made = subprocess.run(
            ["make", "-k", "-n", "-r", "-R", "-f", rule], check=False,
            capture_output=True, text=True,
            env={**os.environ, "LC_ALL": "C"})
        assert f"No rule to make target '{needed}'" in made.stderr, made.stderr

    def test_a_target_that_is_not_there_is_told(self):
        self.ask("toy", "nothing", status=1)
        assert "not in the trace" in self.err
        self.ask("toy", "a.c")
        assert "no process was seen to write it" in self.err

    def test_relative_folders_begin_where_the_command_runs(self):
        def ask(*words):
            return subprocess.run(
                [self.deps, *words, "--trace", self.trace("toy"),
                 "--mount-point", self.folder + "/build"],
                cwd=self.folder, capture_output=True, text=True, check=False)
        for words in (("--build-dir", "build/sub", "../lds"),
                      ("--build-dir", self.folder + "/build", "lds"),
                      ("build/lds",)):
            found = ask(*words)
            assert found.stdout.splitlines() == [
                self.folder + "/build/" + name
                for name in ("build.sh", "many.txt")], (words, found)
        assert ask("--build-dir", "elsewhere", "../lds").returncode == 1

    def test_the_config_says_what_a_compiler_is(self):
        config = self.write("specs.json", '{"gcc_spec": ["*/make"]}')
        commands = json.loads(self.ask("toy", "--compile-commands", "--config",
                                       config))
        assert commands == [], commands
        config = self.write("specs.json", '{"gcc_spec": ["*/gcc"]}')
        commands = json.loads(self.ask("toy", "--compile-commands", "--config",
                                       config))
        assert [c["file"] for c in commands] == ["/src/a.c"], commands

    # --- Other questions

    def test_sets_tell_what_each_command_did(self):
        sets = {s["pid"]: s for s in
                json.loads(self.ask("broken", "--sets", "--format", "json"))}
        assert sets[3]["read"] == ["/src/a.c", "/src/a.h"]
        assert sets[3]["absent"] == ["/src/inc/a.h"]
        assert sets[4]["written"] == ["/src/a.o"]
        assert self.ask("broken", "--sets", "cc1").count("cc1") == 1

    def test_undeclared_inputs_and_outputs_are_found(self):
        def kinds(option, text, status):
            path = self.write("declared", text)
            found = json.loads(self.ask("toy", option, path, "--build-dir",
                                        "/src", "--format", "json",
                                        status=status))
            return sorted((d["kind"], d["output"][5:], d.get("file", "")[5:])
                          for d in found)
        assert kinds("--check-ninja", NINJA_DEPS + NINJA_QUERY, 1) == [
            ("never-made", "old.o", ""),
            ("undeclared-input", "lds", "many.txt")]
        assert kinds("--check-ninja", NINJA_GRAPH, 1) == [
            ("undeclared-input", "lds", "many.txt")]
        assert kinds("--check-make", MAKE, 1) == [
            ("never-made", "all", ""),
            ("undeclared-input", "a.o", "a.h"),
            ("undeclared-input", "lds", "many.txt")]
        assert kinds("--check-make", MAKE.replace("a.o: a.c", "a.o: a.c a.h")
                     .replace("lds: build.sh", "lds: build.sh many.txt"),
                     0) == [("never-made", "all", "")]
        self.ask("toy", "--check-make", self.write("x", "nothing\n"), status=1)
        self.ask("toy", "--check-ninja", self.write("x", "nothing\n"), status=1)

    def test_double_writes_are_of_three_kinds(self):
        found = json.loads(self.ask("findings", "--double-writes", "--format",
                                    "json"))
        assert [(f["file"], f["kind"]) for f in found] == [
            ("/src/log", "rewritten"), ("/src/lock", "recreated"),
            ("/src/out", "replaced")], found
        assert json.loads(self.ask("toy", "--double-writes", "--format",
                                   "json")) == []

    def test_races_between_jobs_are_of_three_kinds(self):
        found = json.loads(self.ask("findings", "--races", "--format", "json"))
        assert sorted((f["kind"], f["file"], f["reader_pid"], f["writer_pid"])
                      for f in found) == [
            ("probed-before-write", "/src/late.h", 10, 11),
            ("read-before-write", "/src/early.h", 10, 11),
            ("read-during-write", "/src/big", 12, 11)], found

    def test_absent_and_unused_are_listed(self):
        assert self.ask("findings", "--absent") == "2 /src/inc/never.h\n"
        assert self.names("toy", "--unused") == ["prog"]
        assert self.names("toy", "--unused", "prog") == []

    def test_what_was_changed_between_two_builds_is_told(self):
        reasons = json.loads(self.ask("second", "--rebuilt",
                                      self.trace("first"), "prog", "--format",
                                      "json"))
        found = [(r["file"][5:], r["reason"], r.get("input", "")[5:])
                 for r in reasons]
        assert found == [("prog", "input-made", "a.o"),
                         ("a.o", "command", ""),
                         ("a.o", "input-added", "b.h"),
                         ("a.o", "input-removed", "a.h"),
                         ("a.o", "input-changed", "a.c")], found
        self.ask("first", "--rebuilt", self.trace("first"), "prog")

    # --- Bad input

    def test_wrong_usage_is_2_and_a_missing_trace_3(self):
        for words in ([], ["--races", "--absent"], ["x", "--closure", "all"],
                      ["x", "--format", "svg"], ["--races", "--format", "dot"],
                      ["x", "--negate"], ["x", "--module", "y"]):
            self.ask("toy", *words, status=2)
        done = subprocess.run([self.deps, "x", "--trace", "/nowhere"],
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 3, done
        config = self.write("config", '{"rbm_wrapping_binaries": 3}')
        self.ask("toy", "prog", "--config", config, status=2)

    def test_a_trace_cut_anywhere_is_answered_as_far_as_it_goes(self):
        with open(self.trace("toy"), "rb") as whole:
            data = whole.read()
        for part in range(1, 20):
            cut = self.trace("toy") + ".cut"
            with open(cut, "wb") as out:
                out.write(data[:len(data) * part // 20])
            done = subprocess.run(
                [self.deps, "prog", "--trace", cut], check=False,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            assert done.returncode == 1, (part, done)

    # --- Size

    def test_a_million_opens_are_answered(self):
        trace = self.trace("big", "1000000")
        for name, words in {
                "deps": ["prog0"],
                "reverse": ["--reverse", "include/d1/header1.h"],
                "graph": ["--format", "dot", "prog0"],
                "rebuilt": ["--rebuilt", trace, "prog0"],
                "races": ["--races"]}.items():
            done = subprocess.run([self.deps, *words, "--trace", trace],
                                  cwd="/", stdout=subprocess.PIPE, check=True)
            if name == "deps":
                # 2,000 headers as far as they are used, sources and objects.
                assert done.stdout.count(b"\n") > 2 * 19000
            if name == "graph":
                assert done.stdout.count(b" -> ") > 1000000
            if name == "rebuilt":
                # Each object was made by the same command from the same.
                assert done.stdout.count(b" was made again") > 19000
        os.unlink(trace)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-build-trace", required=True)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        test = Test(options, folder)
        for name in [n for n in dir(test) if n.startswith("test_")]:
            try:
                getattr(test, name)()
                print("ok  ", name)
            except (AssertionError, KeyError, IndexError, ValueError) as error:
                failed += 1
                print("FAIL", name, repr(error)[:2000])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
