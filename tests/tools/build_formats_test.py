#!/usr/bin/env python3
"""What tracefs-dump makes of traces of builds for BuildXL and for CAS, read by
readers that know nothing but the formats; and the tree of processes."""

import argparse
import base64
import json
import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))

import buildxl_reader  # noqa: E402
import nfsdb_reader  # noqa: E402

READ, WRITE, PROBE, ENUMERATE = 1, 2, 4, 8
# What one operation of each kind must become, in order (operation, access).
ROWS = (
    [(51, PROBE)] * 8 + [(49, ENUMERATE)] * 2 + [(50, READ)] +
    [(45, READ), (46, WRITE), (46, WRITE), (45, READ)] + [(1, WRITE)] * 3 +
    [(46, WRITE)] * 5 + [(45, READ), (46, WRITE)] + [(45, READ), (46, WRITE)] +
    [(8, WRITE), (25, WRITE), (9, WRITE)] + [(9, WRITE), (1, WRITE)] +
    [(25, WRITE), (8, WRITE)] + [(47, READ), (48, WRITE)] + [(44, READ)] +
    [(50, READ)])


class Test:
    def __init__(self, options, folder):
        self.dump = os.path.join(options.bin, "tracefs-dump")
        self.make = options.make_build_trace
        self.folder = folder

    def trace(self, scene, *more):
        path = os.path.join(self.folder, scene + "".join(more) + ".trace")
        if not os.path.exists(path):
            subprocess.run([self.make, scene, path, *more], check=True)
        return path

    def export(self, scene, *arguments, status=0):
        done = subprocess.run(
            [self.dump, *arguments, self.trace(scene)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=False)
        assert done.returncode == status, (done.returncode, done.stderr)
        self.err = done.stderr.decode()
        return done.stdout

    def buildxl(self, scene, *more):
        return buildxl_reader.File(
            self.export(scene, "--format", "buildxl", *more))

    # --- BuildXL

    def test_each_operation_is_the_row_of_the_table(self):
        for version in ("1", "2", "3"):
            made = self.buildxl("rows", "--set", f"version={version}")
            assert made.version == int(version)
            rows = [(row.operation, row.access) for row in made.rows
                    if row.pid == 2 and row.operation not in (5, 41, 42)]
            assert rows == ROWS, rows
        assert "1 operation left out of" in self.err, self.err  # flush

    def test_errors_augmented_rows_and_correlations_are_told(self):
        made = self.buildxl("rows")
        missed = [row for row in made.rows if row.path == "/src/none"]
        assert [row.error for row in missed] == [2]
        assert [row.number for row in made.rows if row.augmented] == [
            row.number for row in made.rows if row.operation == 50
            and row.path == "/src/g"]
        pairs = [(made.rows[row.correlation - 1].path, row.path)
                 for row in made.rows if row.correlation]
        assert pairs == [("/src/f", "/src/copy"), ("/src/f", "/src/g"),
                         ("/src/d", "/src/e"), ("/src/g", "/src/h")], pairs
        for row in made.rows:
            if row.correlation:
                assert made.rows[row.correlation - 1].access_id == (
                    row.correlation)

    def test_attributes_are_those_of_the_files(self):
        made = self.buildxl("rows")
        by_path = {(row.path, row.operation): row for row in made.rows}
        assert by_path["/src/d", 49].attributes == 0x10
        assert by_path["/src/f", 45].attributes == 0x80
        assert by_path["/src/none", 51].attributes == 0xFFFFFFFF
        assert 0x80000080 in [row.flags for row in made.rows]  # O_SYNC

    def test_processes_have_true_times_and_what_became_of_them(self):
        made = self.buildxl("toy")
        one = made.processes[5]
        assert one.exe == "/bin/bash" and one.parent == 1 and one.code == 0
        assert one.line == "/bin/bash /src/build.sh all"
        # TraceBuilder's clocks; a scene ticks in microseconds.
        base = 1_767_323_045_000_000_000
        assert base < one.begin_ns < one.end_ns < base + 10 ** 6
        assert made.processes[7].code == 128 + 13
        assert made.processes[9].code == 2
        events = [row.operation for row in made.rows if row.pid == 5
                  and row.operation in (5, 41, 42)]
        assert events == [5, 42, 41]

    def test_the_marker_says_whether_it_is_complete(self):
        assert "complete (visibility exact), lost 0" in (
            self.buildxl("toy").processes[0].line)
        filtered = self.buildxl("toy", "--filter", "op = open")
        assert "filtered: op = open" in filtered.processes[0].line

    def test_one_process_tree_can_be_chosen(self):
        made = self.buildxl("toy", "--set", "root-pid=9")
        assert set(made.processes) == {0, 6, 7, 9}
        assert {row.pid for row in made.rows} == {6, 7, 9}

    def test_each_tree_of_processes_can_have_a_file(self):
        for scene in ("toy", "hostile"):
            whole = self.buildxl(scene)
            folder = os.path.join(self.folder, scene + "-trees")
            self.export(scene, "--format", "buildxl", "--set", "split=yes",
                        "--output", folder)
            made = buildxl_reader.read_folder(folder)
            # Whoever was there all the time is no part of what he starts.
            tops = {pid for pid, p in whole.processes.items() if p.parent == 1}
            if any(row.pid == 1 for row in whole.rows):
                tops.add(1)
            assert set(made) == {f"{top}.txt" for top in tops}, made.keys()
            for name, file in made.items():
                top = int(name[:-4])
                pids = {pid for pid in whole.processes if pid != 0 and
                        self.root_of(whole, pid) == top}
                assert set(file.processes) == pids | {0}, (name, pids)
                want = [(r.pid, r.path, r.operation, r.access, r.error)
                        for r in whole.rows if r.pid in pids]
                assert want == [(r.pid, r.path, r.operation, r.access, r.error)
                                for r in file.rows], name
        self.export("toy", "--format", "buildxl", "--set", "split=yes",
                    status=2)

    @staticmethod
    def root_of(whole, pid):
        while whole.processes[pid].parent not in (0, 1):
            pid = whole.processes[pid].parent
        return pid

    def test_each_file_is_named_once_and_the_trace_never(self):
        text = self.export("toy", "--format", "buildxl").decode()
        assert text.count("=/src/a.c\n") == 1
        assert "toy.trace" not in text

    def test_names_that_break_the_format_are_escaped_or_refused(self):
        made = self.buildxl("hostile")
        names = set(made.paths.values())
        for name in ("a%3Db", "a%2Cb", "a|b", "a%0Ab", "a%25b", "%FF%FE", "a b"):
            assert "/src/" + name in names, name
        self.export("hostile", "--format", "buildxl", "--set", "escape=fail",
                    status=2)
        assert "--set escape=percent" in self.err

    # --- CAS

    def nfsdb_json(self, scene, *more):
        entries = json.loads(
            self.export(scene, "--format", "nfsdb-json", *more))
        nfsdb_reader.check_entries(entries)
        return entries

    def test_the_raw_file_and_the_json_agree(self):
        for scene in ("toy", "rows", "broken", "findings", "hostile"):
            raw = nfsdb_reader.Database(
                self.export(scene, "--format", "nfsdb"))
            entries = self.nfsdb_json(scene)
            by_name = {(e["p"], e["x"]): e for e in entries}
            for upid, process in raw.processes.items():
                for x, run in enumerate(process.runs):
                    entry = by_name[upid, x]
                    self.same(scene, process, x, run, entry)
            assert len(by_name) == sum(len(p.runs)
                                       for p in raw.processes.values())

    @staticmethod
    def same(scene, process, x, run, entry):
        def text(data):
            try:
                return data.decode()
            except UnicodeDecodeError:
                return "".join(chr(b) if b < 128 else f"\\x{b:02x}"
                               for b in data)
        where = (scene, process.upid, x)
        parent = process.parent or (-1, 0)
        if x > 0 or process.parent:
            assert text(run["b"]) == entry["b"], where
            assert text(run["w"]) == entry["w"], where
        # What ran when recording began has no line of its own.
        if x > 0 or parent[1] > 0:
            assert [text(a) for a in run["v"]] == entry["v"], where
        assert entry["r"] == {"p": parent[0], "x": parent[1]}, where
        assert [c for c, _ in run["c"]] == [c["p"] for c in entry["c"]], where
        if x == len(process.runs) - 1 and process.status is not None:
            assert entry["!"] == process.status & 255, where
        assert sorted(run["i"]) == sorted(
            (r["p"], r["x"]) for r in entry["i"]), (where, entry["i"])
        opened = {text(path): how for path, how in run["o"].items()}
        for path, how in opened.items():
            mine = [o for o in entry["o"] if o["p"] == path]
            assert len(mine) == 1 and mine[0]["m"] & 3 == how, (where, path)
        assert set(opened) == {o["p"] for o in entry["o"]}, where

    def test_what_no_line_of_the_raw_file_can_hold_is_left_out(self):
        raw = nfsdb_reader.Database(self.export("long", "--format", "nfsdb"))
        assert "2 operations left out of" in self.err, self.err
        run = raw.processes[2].runs[1]
        # An argument goes on in other lines; a name cannot, unless it has
        # ends of lines where it may be split.
        assert [len(word) for word in run["v"]] == [9, 5000, 5001]
        assert sorted(map(len, run["o"])) == [1805, 3006], map(len, run["o"])
        assert run["w"] == b"", run["w"]
        opened = {o["p"] for e in self.nfsdb_json("long") for o in e["o"]}
        assert sorted(map(len, opened)) == [1805, 2005, 3006]

    def test_a_shell_passes_on_no_pipes_that_it_has_read(self):
        text = self.export("substitutions", "--format", "nfsdb")
        raw = nfsdb_reader.Database(text)
        for pid in range(2, 502):
            assert raw.processes[pid].runs[1]["i"] == [(1, 0)], pid
        # Each command has as many lines as the first.
        assert text.count(b"\n") < 500 * 20, text.count(b"\n")

    def test_the_root_comes_first_whoever_ends_first(self):
        entries = self.nfsdb_json("toy")
        assert (entries[0]["p"], entries[0]["x"]) == (1, 0)

    def test_links_on_the_way_are_no_opens(self):
        entries = self.nfsdb_json("rows")
        opened = {o["p"]: o["m"] & 3 for e in entries for o in e["o"]}
        assert opened["/src/link"] == 1, "it was made"  # and then read

    def test_a_copy_writes_what_the_handle_was_opened_as(self):
        by_path = {o["p"]: o for e in self.nfsdb_json("copy") for o in e["o"]}
        assert by_path["/src/in"]["m"] & 3 == 0 and by_path["/src/in"]["s"] == 900
        assert by_path["/src/out"]["m"] & 3 == 1
        assert by_path["/src/out"]["s"] == 777, by_path["/src/out"]

    def test_a_compilation_stands_on_the_driver_with_all_its_folders(self):
        by_name = {(e["p"], e["x"]): e for e in self.nfsdb_json("compile")}
        made = by_name[2, 1]["d"]
        assert "d" not in by_name[3, 1]
        assert made["f"] == ["/src/a.c"] and made["o"] == ["/src/a.o"]
        # Those that the compiler looks into by itself, as far as they are there.
        assert made["i"] == ["/src/inc", "/usr/lib/gcc/x86_64-linux-gnu/12/include",
                             "/usr/include/x86_64-linux-gnu", "/usr/include"]
        assert made["p"] == 0 and made["s"] == 1

    def test_names_and_mounts_are_in_the_raw_file_where_asked(self):
        plain = nfsdb_reader.Database(self.export("rows", "--format", "nfsdb"))
        assert plain.mounts == [] and plain.processes[2].names == []
        more = nfsdb_reader.Database(self.export(
            "rows", "--format", "nfsdb", "--set", "comm=yes", "--set",
            "mounts=yes"))
        assert more.mounts == [(b"/src", b"/src", b"fuse.tracefs")], more.mounts
        assert more.processes[2].names == [b"a|b\nc"], more.processes[2].names

    def test_entries_are_as_documented(self):
        by_name = {(e["p"], e["x"]): e for e in self.nfsdb_json("toy")}
        cat = by_name[6, 1]
        assert cat["i"] == [{"p": 7, "x": 0}, {"p": 7, "x": 1}], cat["i"]
        assert [o["m"] for o in cat["o"]] == [0x60, 0x60]
        assert by_name[1, 0]["r"] == {"p": -1, "x": 0}
        assert by_name[7, 1]["r"] == by_name[7, 0]["r"] == {"p": 9, "x": 1}
        assert by_name[7, 0]["b"] == "" and by_name[7, 1]["b"] == "/usr/bin/sort"
        assert {c["p"] for c in by_name[1, 0]["c"]} == {2, 5, 9}
        assert by_name[5, 0]["v"] == ["/usr/bin/make", "all"]  # as forked
        assert "!" not in by_name[5, 0] and by_name[5, 1]["!"] == 0
        assert by_name[7, 1]["!"] == 128 + 13
        # sort writes prog before it is sort; the file is there at the end.
        assert by_name[7, 0]["o"][0]["m"] == 0x61

    def test_postprocessing_finds_compilers_wrappers_and_patterns(self):
        config = os.path.join(self.folder, "bas_config.json")
        with open(config, "w", encoding="ascii") as out:
            json.dump({"exclude_command_variants": {"*": ["*build.sh*"]}}, out)
        entries = self.nfsdb_json("toy", "--set", "config=" + config)
        by_name = {(e["p"], e["x"]): e for e in entries}
        assert by_name[2, 1]["d"]["f"] == ["/src/a.c"]
        assert by_name[6, 1]["m"] == 9 and by_name[7, 1]["m"] == 9
        assert "m" not in by_name[2, 1]
        bits = {name: base64.b64decode(e["n"]) for name, e in by_name.items()}
        assert [n for n, b in bits.items() if b != b"\0"] == [(5, 1)]
        assert bits[5, 1] == b"\x80"
        plain = self.nfsdb_json("toy", "--set", "post=no")
        assert not any(set(e) & set("dltmn") for e in plain)

    def test_side_files_have_what_belongs_beside_it(self):
        sides = {name: os.path.join(self.folder, name + ".json")
                 for name in ("env", "mounts", "stats")}
        self.nfsdb_json("toy", *[word for name, path in sides.items()
                                 for word in ("--set", f"{name}={path}")])
        with open(sides["stats"], encoding="ascii") as stats:
            assert json.load(stats)["dropped"] == 0
        with open(sides["mounts"], encoding="ascii") as mounts:
            assert json.load(mounts)[0]["t"] == "/src"
        with open(sides["env"], encoding="ascii") as env:
            assert json.load(env) == {}

    # --- The tree

    def test_the_tree_shows_who_started_whom(self):
        lines = self.export("toy", "--format", "tree").decode().splitlines()
        tree = [line[line.index("] ") + 56:] for line in lines[1:]]
        assert len(tree) == 7, lines
        assert any("|-5 /bin/bash /src/build.sh all" in l for l in lines), lines
        assert any("| `-3 /usr/lib/gcc/cc1 -D X a.c" in l for l in lines), lines
        seven = [l for l in lines if "7 /usr/bin/sort" in l][0]
        assert "sig 13" in seven

    def test_names_cannot_forge_lines_of_the_tree(self):
        lines = self.export("hostile", "--format", "tree").decode().splitlines()
        assert len(lines) == 1 + 1 + 26, lines
        assert "\x1b" not in "".join(lines)

    # --- Memory

    def test_large_exports_are_the_same_whatever_is_spooled(self):
        trace = self.trace("big", "200000")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        sizes = {}
        for name in ("buildxl", "nfsdb", "nfsdb-json"):
            done = subprocess.run([self.dump, "--format", name, trace],
                                  stdout=subprocess.PIPE, check=True)
            sizes[name] = len(done.stdout)
            if name == "buildxl":
                made = buildxl_reader.File(done.stdout)
                assert len(made.rows) > 200000
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"200,000 operations: {sizes}, at most {max(before, after)} kB")
        assert after < 400_000, after


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
            except (AssertionError, buildxl_reader.Wrong, nfsdb_reader.Wrong,
                    KeyError, IndexError, ValueError) as error:
                failed += 1
                print("FAIL", name, repr(error)[:2000])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
