#!/usr/bin/env python3
"""The installed library: a C program by pkg-config, a CMake project by
find_package and a Python script, all outside the tree, find it, build, and
count the same as tracefs-dump; and what it hands out is what was promised."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Has ctypes and nothing more, as the module needs nothing more.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else (
    sys.executable)


def run(*command, fails=False, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True,
                          text=True, check=False, **options)
    if (done.returncode != 0) != fails:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}"
                 f"{done.stderr}")
    return done.stdout


def expect(condition, text):
    if not condition:
        sys.exit(f"install_test: {text}")


class Installed:
    def __init__(self, build, prefix):
        self.prefix = prefix
        for component in ("reader", "reader-dev", "reader-python"):
            run("cmake", "--install", build, "--prefix", prefix,
                "--component", component)
        found = list(prefix.rglob("libtracefs-reader.so.1"))
        expect(len(found) == 1, f"one library is installed, not {found}")
        self.library = found[0]
        self.folder = found[0].parent
        self.environment = dict(
            os.environ, PKG_CONFIG_PATH=str(self.folder / "pkgconfig"),
            TRACEFS_COMMANDS=str(build / "bin"),
            PYTHONDONTWRITEBYTECODE="1",
            PYTHONPATH=str(prefix / "lib/python3/dist-packages"))

    def build_c(self, to):
        flags = run("pkg-config", "--cflags", "--libs", "tracefs-reader",
                    env=self.environment).split()
        run("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
            HERE / "outside/program.c", "-o", to, *flags,
            f"-Wl,-rpath,{self.folder}")

    def build_cmake(self, folder):
        shutil.copytree(HERE / "outside", folder / "project")
        run("cmake", "-S", folder / "project", "-B", folder / "made",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", folder / "made")
        return folder / "made/outside_cpp"


def dump_counts(dump, trace, where):
    words = [dump, "--format", "jsonl", trace]
    if where:
        words[1:1] = ["--filter", where]
    done = subprocess.run([str(word) for word in words], capture_output=True,
                          check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    operations = [line for line in lines if "op" in line and "aggregate" not in
                  line and "alarm" not in line and "rule" not in line]
    return len(operations), sum(line.get("uid") == 0 for line in operations)


def check_counts(installed, folder, dump):
    installed.build_c(folder / "program_c")
    commands = {
        "C": [folder / "program_c"],
        "C++ with CMake": [installed.build_cmake(folder)],
        "Python": [PYTHON, HERE / "outside/script.py"]}
    golden = ROOT / "tests/golden/v1"
    for name in ("every_operation", "damaged", "later_version"):
        for where in ("", "op = read OR op = open"):
            trace = golden / f"{name}.trace"
            said = {}
            for title, words in commands.items():
                words = [*words, trace] + ([where] if where else [])
                said[title] = run(*words, env=installed.environment)
            expect(len(set(said.values())) == 1,
                   f"{name}: they do not say the same: {said}")
            events, of_root = map(int, re.match(
                r"(\d+) events, (\d+) of root", said["C"]).groups())
            expect((events, of_root) == dump_counts(dump, trace, where),
                   f"{name} {where}: tracefs-dump says something else than "
                   f"{said['C']}")
            expect(("incomplete" in said["C"]) == (name == "damaged"),
                   f"{name}: {said['C']}")
    run(folder / "program_c", golden / "too_new.trace", fails=True)
    run(folder / "program_c", golden / "every_operation.trace", "nonsense =",
        fails=True)


def check_page(installed, folder):
    """The programs of docs/reader.md are built and run as they stand there."""
    page = (ROOT / "docs/reader.md").read_text(encoding="utf-8")
    blocks = {}
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page,
                                     re.M | re.S):
        blocks.setdefault(language, text)
    trace = ROOT / "tests/golden/v1/every_operation.trace"
    (folder / "writes.c").write_text(blocks["c"], encoding="utf-8")
    flags = run("pkg-config", "--cflags", "--libs", "tracefs-reader",
                env=installed.environment).split()
    run("cc", "-Wall", "-Werror", folder / "writes.c", "-o", folder / "writes",
        *flags, f"-Wl,-rpath,{installed.folder}")
    said = run(folder / "writes", trace)
    expect(said.strip(), "the C program of docs/reader.md finds no write")
    (folder / "page").mkdir()
    (folder / "page/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(page LANGUAGES C)\n"
        "add_executable(writes ../writes.c)\n" + blocks["cmake"],
        encoding="utf-8")
    run("cmake", "-S", folder / "page", "-B", folder / "page/made",
        f"-DCMAKE_PREFIX_PATH={installed.prefix}")
    run("cmake", "--build", folder / "page/made")
    shutil.copy(trace, folder / "trace.log")
    (folder / "page.py").write_text(blocks["python"], encoding="utf-8")
    done = subprocess.run([PYTHON, folder / "page.py"], cwd=folder, text=True,
                          env=installed.environment, capture_output=True,
                          check=False)
    expect(done.returncode == 0 or "No module named" in done.stderr,
           f"the Python of docs/reader.md:\n{done.stderr}")


def handed_out(library):
    """Names of functions, with their version."""
    names = set()
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        name = line.split()[-1]
        if not name.startswith("TRACEFS_READER_"):
            names.add(name)
    return names


def check_interface(library):
    promised = ROOT / "tests/abi/libtracefs-reader.so.1.symbols"
    want = set(promised.read_text(encoding="ascii").split())
    got = handed_out(library)
    expect(want <= got, f"no longer handed out: {sorted(want - got)}")
    expect(got <= want, f"handed out and not in {promised}: "
           f"{sorted(got - want)}: add them, and to the map file")
    needed = re.findall(r"NEEDED.*\[(.*?)\]",
                        run("readelf", "-d", library))
    expect(not any("fuse" in name for name in needed), f"needs {needed}")
    described = ROOT / "tests/abi/libtracefs-reader.so.1.abi"
    if not shutil.which("abidiff") or not described.exists():
        print("install_test: no abidiff (package abigail-tools): types of the "
              "interface are not compared")
        return
    # Status: bit 4 is any change, bit 8 an incompatible one.
    done = subprocess.run(
        ["abidiff", "--exported-interfaces-only", "--drop-private-types",
         "--header-file2", ROOT / "tracefs/reader/tracefs_reader.h",
         "--no-added-syms", described, library],
        capture_output=True, text=True, check=False)
    expect(done.returncode & 8 == 0 and done.returncode & 3 == 0,
           f"the interface has changed:\n{done.stdout}{done.stderr}")


def check_sizes(installed, folder):
    """Structures of the interface keep their layout."""
    program = folder / "sizes.c"
    program.write_text("""
#include <stddef.h>
#include <stdio.h>
#include <tracefs_reader.h>
int main(void) {
  printf("%zu %zu %zu %zu %zu %zu %zu %zu\\n", sizeof(tracefs_argument),
         offsetof(tracefs_argument, number), sizeof(tracefs_message),
         offsetof(tracefs_message, size), sizeof(tracefs_block),
         offsetof(tracefs_block, kind), sizeof(struct ArrowArray),
         sizeof(struct ArrowSchema));
  return 0;
}
""", encoding="ascii")
    flags = run("pkg-config", "--cflags", "tracefs-reader",
                env=installed.environment).split()
    run("cc", program, "-o", folder / "sizes", *flags)
    said = run(folder / "sizes").split()
    expect(said == ["64", "40", "88", "48", "80", "40", "80", "72"],
           f"sizes and offsets have changed: {said}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracefs-install-") as folder:
        folder = pathlib.Path(folder)
        installed = Installed(arguments.build, folder / "prefix")
        check_interface(installed.library)
        check_sizes(installed, folder)
        check_page(installed, folder)
        check_counts(installed, folder, arguments.build / "bin/tracefs-dump")
    print("install_test: all is well")


if __name__ == "__main__":
    main()
