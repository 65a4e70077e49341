#!/usr/bin/env python3
"""What is said of builds that were worked out before: copies by every way there
is, jobs of make with a race and without, a build with another option, and what
CAS is given of all that.

  answers_test.py --bin build/release/bin
"""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
import build_model  # noqa: E402
import nfsdb_reader  # noqa: E402
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402

COPY = r"""
cat in > o-cat
cat in more > o-two
cp in o-cp
install -m 644 in o-install
dd if=in of=o-dd bs=4k 2> /dev/null
tail -c +11 in > o-tail
PYTHON -I -S -c '
import os
def ends(name):
    return os.open("in", os.O_RDONLY), os.open(name, os.O_WRONLY | os.O_CREAT)
i, o = ends("o-sendfile"); os.sendfile(o, i, 0, 1 << 20)
i, o = ends("o-range"); os.copy_file_range(i, o, 5000, 100, 50)
i, o = ends("o-splice"); r, w = os.pipe()
n = os.splice(i, w, 4096); os.splice(r, o, n)
'
cat o-cp > o-second
"""
# One file each; of all "in" is a source.
COPIES = ("o-cat", "o-two", "o-cp", "o-install", "o-dd", "o-tail",
          "o-sendfile", "o-range", "o-splice", "o-second")

# Objects, an archive and a program by several jobs, with recipes of several
# lines; GEN is what use.o should wait for, and WAIT what makes it be late.
MAKEFILE = """
OBJECTS = a.o b.o c.o d.o
all: gen.h prog
prog: main.o libx.a use.o
\tgcc main.o use.o libx.a -o prog
libx.a: $(OBJECTS)
\trm -f libx.a
\tar rc libx.a $(OBJECTS)
\tranlib libx.a
$(OBJECTS) main.o: %.o: %.c
\trm -f $@
\tgcc -Iinc $(FLAGS) -c $< -o $@
gen.h:
\t$(WAIT); echo 'int gen;' | cat > $@
use.o: use.c $(GEN)
\ttest ! -e gen.h || cat gen.h
\ttouch $(OUT)/looked
\tcp use.c use2.c; gcc $(FLAGS) -c use2.c -o $@
"""
# Until use.o has looked, wherever that is noted.
LATE = "while ! test -e $(OUT)/looked; do sleep 0.05; done"
# What takes no time.
SOON = ":"


class Answers:
    def __init__(self, suite):
        self.suite = suite
        for tool in ("make", "gcc", "ar"):
            if shutil.which(tool) is None:
                raise Skip(f"{tool} is not installed")
        self.out = suite.folder("out")

    def run(self, name, folder, script, *options):
        trace = os.path.join(self.out, name + ".trace")
        if os.path.exists(trace):
            os.unlink(trace)
        done = self.suite.tool("tracefs-run", "-q", *options, "-o", trace, "--",
                               "sh", "-e", "-c", script, cwd=folder)
        expect_equal(done.returncode, 0, done.stderr[-2000:])
        return trace

    def deps(self, trace, *words):
        done = self.suite.tool("tracefs-deps", *words, "--format", "json",
                               "--trace", trace)
        expect_equal(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def export(self, trace, name, *more):
        done = self.suite.tool("tracefs-dump", "--format", name, *more, trace)
        expect_equal(done.returncode, 0, done.stderr)
        return done.stdout

    # --- Copies

    def copies(self):
        self.suite.remove("copies")
        folder = self.suite.folder("copies")
        for name, size in (("in", 9000), ("more", 500)):
            with open(os.path.join(folder, name), "wb") as out:
                out.write(os.urandom(size))
        trace = self.run("copies", folder,
                         COPY.replace("PYTHON", sys.executable))
        path = {name: os.path.join(folder, name) for name in
                ("in", "more", *COPIES)}
        for name in COPIES:
            found = self.deps(trace, "--closure", "flow", path[name])[0]
            want = {"o-two": {"in", "more"}, "o-second": {"in", "o-cp"}}
            expect_equal(set(found["files"]) & set(path.values()),
                         {path[n] for n in want.get(name, {"in"})}, name)
        for source in ("in", "more"):
            expect_equal(self.deps(trace, path[source])[0]["files"], [],
                         f"what {source} was made from")
        made = self.deps(trace, "--reverse", "--closure", "flow", path["in"])[0]
        expect_equal({os.path.basename(n) for n in made["files"]}, set(COPIES),
                     "what is made from it")
        expect_equal(self.deps(trace, "--double-writes"), [], "written twice")
        expect_equal(self.deps(trace, "--races"), [], "races")
        entries = json.loads(self.export(trace, "nfsdb-json"))
        nfsdb_reader.check_entries(entries)
        sizes = {}
        for entry in entries:
            for opened in entry["o"]:
                how = opened["m"] & 3
                sizes[opened["p"]] = opened["s"]
                expect(opened["p"] not in (path["in"], path["more"]) or how == 0,
                       f"{opened} is only read")
        for name in ("in", *COPIES):
            expect_equal(sizes[path[name]], os.path.getsize(path[name]), name)

    # --- A script

    def script(self):
        """Its commands are jobs of their own: none has what another one read."""
        self.suite.remove("script")
        folder = self.suite.folder("script")
        for name in ("x", "y", "secret"):
            with open(os.path.join(folder, name), "w", encoding="ascii") as out:
                out.write(name)
        trace = self.run("script", folder, "cp x o1; cat secret > /dev/null; touch "
                         "stamp; cp y o2")

        def found(*words):
            return {os.path.basename(f)
                    for f in self.deps(trace, *words)[0]["files"]
                    if f.startswith(folder + "/")}
        for name, want in (("o1", {"x"}), ("o2", {"y"}), ("stamp", set())):
            expect_equal(found(os.path.join(folder, name)), want, name)
        for name, want in (("x", {"o1"}), ("secret", set())):
            expect_equal(found("--reverse", os.path.join(folder, name)), want,
                         f"made from {name}")

    # --- make

    def project(self, name):
        self.suite.remove(name)
        folder = self.suite.folder(name)
        with open(os.path.join(folder, "Makefile"), "w",
                  encoding="ascii") as out:
            out.write(MAKEFILE)
        # inc is a link that the compiler goes through for every header.
        os.mkdir(os.path.join(folder, "include"))
        os.symlink("include", os.path.join(folder, "inc"))
        texts = {f"{x}.c": f"#include <x.h>\nint {x}(void) {{ return {i}; }}\n"
                 for i, x in enumerate("abcd")}
        texts["main.c"] = "#include <x.h>\nint main(void) { return a(); }\n"
        texts["use.c"] = "int use;\n"
        texts["include/x.h"] = "int a(void);\n"
        for each, text in texts.items():
            with open(os.path.join(folder, each), "w",
                      encoding="ascii") as out:
                out.write(text)
        looked = os.path.join(self.out, "looked")
        if os.path.exists(looked):
            os.unlink(looked)
        return folder

    def make(self, name, *settings, options=()):
        folder = self.project(name)
        words = " ".join(f"'{each}'" for each in settings)
        trace = self.run(name, folder,
                         f"make -j4 OUT={self.out} WAIT={SOON} {words} > "
                         "/dev/null",
                         *options)
        return folder, trace

    def races(self):
        folder, trace = self.make("racing", "WAIT=" + LATE)
        found = self.deps(trace, "--races")
        expect_equal({(race["kind"], race["file"]) for race in found},
                     {("probed-before-write", os.path.join(folder, "gen.h"))},
                     f"the race: {found}")
        # The same with a header that an earlier build has left.
        folder = self.project("racing")
        with open(os.path.join(folder, "gen.h"), "w", encoding="ascii") as old:
            old.write("int old;\n")
        trace = self.run(
            "racing", folder,
            f"make -j4 OUT={self.out} -W use.c -B 'WAIT={LATE}' > /dev/null")
        found = self.deps(trace, "--races")
        expect_equal({(race["kind"], race["file"]) for race in found},
                     {("read-before-write", os.path.join(folder, "gen.h"))},
                     f"the race: {found}")

    def no_races(self):
        for options in ((), ("--visibility", "exact")):
            _, trace = self.make("in-order", "GEN=gen.h", options=options)
            expect_equal(self.deps(trace, "--races"), [], f"races {options}")

    def rebuilt(self):
        for options in ((), ("--root",)):
            folder, old = self.make("rebuilt-1", "GEN=gen.h", "FLAGS=-O1",
                                    options=options)
            kept = os.path.join(self.out, "before.trace")
            os.rename(old, kept)
            script = (f"make -B -j4 OUT={self.out} WAIT={SOON} GEN=gen.h "
                      "FLAGS=-O2 > /dev/null")
            now = self.run("rebuilt-2", folder, script, *options)
            reasons = self.deps(now, "--rebuilt", kept,
                                os.path.join(folder, "a.o"))
            told = [(r["reason"], os.path.basename(r["file"])) for r in reasons]
            expect_equal(told, [("command", "a.o")], f"{options}: {reasons}")
            for key, level in (("before", "-O1"), ("after", "-O2")):
                expect_equal(reasons[0][key],
                             f"gcc -Iinc {level} -c a.c -o a.o", options)
            again = self.run("rebuilt-3", folder, script, *options)
            reasons = self.deps(again, "--rebuilt", now,
                                os.path.join(folder, "a.o"))
            expect_equal([r["reason"] for r in reasons], ["nothing-seen"],
                         f"{options}: {reasons}")

    def as_the_model_says(self):
        """Of a build with a race and of one without."""
        for name, settings in (("racing", ["WAIT=" + LATE]),
                               ("in-order", ["GEN=gen.h"])):
            folder, trace = self.make(name, *settings)
            model = build_model.Model(self.export(trace, "jsonl"))
            races = {(race["kind"], race["file"][len(folder):],
                      race["reader_pid"], race["writer_pid"])
                     for race in self.deps(trace, "--races")}
            expect_equal(races, model.races(), f"races of {name}")
            twice = {(each["file"][len(folder):], each["first_pid"],
                      each["second_pid"])
                     for each in self.deps(trace, "--double-writes")}
            expect_equal(twice, model.double_writes(), f"written twice: {name}")
            expect("/libx.a" in {path for path, _, _ in twice}, "ar and ranlib")
            made = ["/a.o", "/libx.a", "/prog", "/use.o", "/use2.c", "/gen.h"]
            answers = self.deps(trace, "--closure", "flow", "--no-pipes",
                                *(folder + target for target in made))
            sources = {target: model.sources(target) for target in made}
            for target, answer in zip(made, answers):
                expect_equal({f[len(folder):] for f in answer["files"]},
                             sources[target], f"{name}: sources of {target}")
            expect("/libx.a" in sources["/prog"], "sources of the program")
            reverse = self.deps(trace, "--reverse", "--closure", "flow",
                                "--no-pipes", folder + "/use.c")[0]["files"]
            expect_equal({f[len(folder):] for f in reverse} & set(made),
                         {t for t in made if "/use.c" in sources[t]},
                         f"{name}: made from use.c")

    # --- CAS

    def cas(self):
        folder, trace = self.make("for-cas", "GEN=gen.h", options=("--root",))
        raw = nfsdb_reader.Database(self.export(trace, "nfsdb").encode(
            "utf-8", "surrogateescape"))
        entries = json.loads(self.export(trace, "nfsdb-json"))
        nfsdb_reader.check_entries(entries)
        by_name = {(e["p"], e["x"]): e for e in entries}
        expect_equal(set(by_name), {(p.upid, run.index)
                                    for p in raw.processes.values()
                                    for run in p.runs}, "executions")
        for process in raw.processes.values():
            for run in process.runs:
                self.same(process, run, by_name[process.upid, run.index])
        compiled = {os.path.basename(f): e for e in entries if "d" in e
                    for f in e["d"]["f"]}
        expect_equal(set(compiled), {"a.c", "b.c", "c.c", "d.c", "main.c",
                                     "use2.c"}, "compiled")
        for name, entry in compiled.items():
            expect_equal(entry["v"][0], "gcc", f"{name} stands on the driver")
            expect("/usr/include" in entry["d"]["i"], f"folders: {entry['d']}")
        linked = {e["l"]: e["t"] for e in entries if "l" in e}
        expect_equal(linked, {os.path.join(folder, "libx.a"): 0,
                              os.path.join(folder, "prog"): 1}, "linked")
        opened = {o["p"] for e in entries for o in e["o"]}
        expect(os.path.join(folder, "include/x.h") in opened, "the header")
        expect(os.path.join(folder, "inc") not in opened, "the link to it")

    def folders(self):
        """The compiler says itself where it looks for headers."""
        self.suite.remove("folders")
        folder = self.suite.folder("folders")
        os.mkdir(os.path.join(folder, "own"))
        for name in ("a.c", "b.cc"):
            with open(os.path.join(folder, name), "w",
                      encoding="ascii") as out:
                out.write("#include <stddef.h>\n")
        drivers = [each for each in ("gcc", "g++") if shutil.which(each)]
        commands = [f"{driver} -Iown -c {name}" for driver, name in
                    zip(drivers, ("a.c", "b.cc"))]
        trace = self.run("folders", folder, "; ".join(commands), "--root")
        made = {" ".join(e["v"]): e["d"]["i"] for e in json.loads(
            self.export(trace, "nfsdb-json")) if "d" in e}
        for command in commands:
            said = subprocess.run([*command.split(), "-v", "-E"], cwd=folder,
                                  check=True, capture_output=True,
                                  text=True).stderr
            said = said[said.index("search starts here:"):
                        said.index("End of search list.")]
            want = [os.path.realpath(os.path.join(folder, line.strip()))
                    for line in said.splitlines() if "search" not in line]
            got = list(dict.fromkeys(map(os.path.realpath, made[command])))
            expect_equal(got, want, command)

    @staticmethod
    def same(process, run, entry):
        where = (process.upid, run.index)
        if process.parent:
            expect_equal(entry["r"], {"p": process.parent[0],
                                      "x": process.parent[1]}, where)
            expect_equal(run["b"].decode(), entry["b"], where)
            expect_equal([a.decode() for a in run["v"]], entry["v"], where)
        expect_equal([c for c, _ in run["c"]], [c["p"] for c in entry["c"]],
                     where)
        # The parser forgets a writer that has ended before its reader's exec.
        expect(set(run["i"]) <= {(r["p"], r["x"]) for r in entry["i"]},
               f"{where}: {run['i']} {entry['i']}")
        modes = {o["p"]: o["m"] & 3 for o in entry["o"]}
        expect_equal(modes, {p.decode(): how for p, how in run["o"].items()},
                     where)


def main():
    suite = Suite("build-answers", __doc__)
    answers = []

    def case(name):
        if not answers:
            answers.append(Answers(suite))
        return getattr(answers[0], name)()
    for name in ("copies", "script", "races", "no_races", "as_the_model_says",
                 "rebuilt", "cas", "folders"):
        suite.run(name.replace("_", " "), case, name)
    suite.finish()


if __name__ == "__main__":
    main()
