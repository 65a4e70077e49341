#!/usr/bin/env python3
"""What is installed is there and complete, can be moved, runs, finds nothing by
where it was built, and reads well."""

import argparse
import os
import pathlib
import re
import stat
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from staged import ROOT, commands, expect, finish, have, install, must, run

# Whatever else may come: an installation without one of these is none.
WANTED = """
include/tracefs_reader.h include/tracefs_reader.hpp
*/libtracefs-reader.so.1 */pkgconfig/tracefs-reader.pc
*/cmake/tracefs-reader/tracefs-reader-config.cmake
lib/python3/dist-packages/tracefs/__init__.py
share/man/man5/tracefs.conf.5 share/man/man5/tracefs-trace.5
share/man/man1/tracefs.1 share/man/man7/tracefs-filter.7 share/man/man7/tracefs.7
share/man/man3/libtracefs-reader.3
share/doc/tracefs/samples/full.conf share/doc/tracefs/CHANGELOG.md
share/tracefs/dashboards/*.json
""".split() + [f"bin/{page.stem}" for page in
               (pathlib.Path(ROOT) / "docs/man").glob("*.1")]
# The kernel's file system, trace-cmd and libtracefs have these.
NOT_OURS = re.compile(r"/(mount\.tracefs|trace-cmd.*|libtracefs\.(so|a).*|"
                      r"libtracefs\.pc|tracefs/tracefs\.h)$")


def check_files(prefix):
    for pattern in WANTED:
        expect(list(prefix.glob(pattern)), f"{pattern} is not installed")
    for path in prefix.rglob("*"):
        name = "/" + str(path.relative_to(prefix))
        expect(not NOT_OURS.search(name), f"{name} belongs to others")
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            expect(mode & 0o022 == 0, f"{name} can be written by others")
        expect("__pycache__" not in name, f"{name} is left over")


def check_programs(prefix, version):
    programs = commands(prefix)
    for folder in ("sbin", "lib"):
        programs += [path for path in (prefix / folder).rglob("*")
                     if path.is_file() and
                     path.read_bytes()[:4] == b"\x7fELF"]
    for path in programs:
        dynamic = must("readelf", "-d", path)
        expect("RUNPATH" not in dynamic and "RPATH" not in dynamic,
               f"{path.name} looks for libraries where it was built")
        if path.parent.name not in ("bin", "sbin"):
            continue
        # From elsewhere, and by a name alone.
        done = run(path.name, "--version", cwd="/",
                   env={"PATH": str(path.parent)})
        expect(done.returncode == 0 and version in done.stdout,
               f"{path.name} --version: {done.stdout}{done.stderr}")
        section = 8 if path.parent.name == "sbin" else 1
        page = prefix / f"share/man/man{section}/{path.name}.{section}"
        expect(page.exists(), f"{path.name} has no manual page")


def check_size(build, prefix):
    """Without symbols, and where the compiler was told what is shipped."""
    if "CMAKE_BUILD_TYPE:STRING=Release" not in (
            build / "CMakeCache.txt").read_text():
        return
    must("cmake", "--install", build, "--prefix", prefix, "--strip")
    sizes = {path: path.stat().st_size for part in ("bin", "sbin", "lib")
             for path in (prefix / part).rglob("*")
             if path.is_file() and not path.is_symlink()}
    expect(sum(sizes.values()) <= 15_000_000, f"more than 15 MB: {sizes}")
    expect(len(sizes) > 4, f"{sizes}")


def check_names(prefix):
    """A program with several names is the one it was started by, whatever it is
    told its name is; where there is no name, what it is told counts."""
    for path in commands(prefix):
        told = must(path, "--help")
        expect(path.name in told[:200], f"{path.name} --help: {told[:80]}")
    dump = prefix / "bin/tracefs-dump"

    def version_of(file, called, *more):
        done = run(called, "--version", *more, executable=file)
        return done.stdout.split(" ")[0]

    expect(version_of(str(dump), "tracefs-verify") == "tracefs-dump",
           "argument 0 makes another command of it")
    expect(version_of(str(dump), "") == "tracefs-dump", "without argument 0")
    fd = os.open(dump, os.O_RDONLY | os.O_CLOEXEC)
    try:
        reader = os.memfd_create("program", 0)
        os.sendfile(reader, fd, 0, dump.stat().st_size)
        out = run("tracefs-verify", "--version", pass_fds=(reader,),
                  executable=f"/proc/self/fd/{reader}")
        expect(out.stdout.startswith("tracefs-verify "),
               f"a descriptor that is executed: {out.stdout}{out.stderr}")
    finally:
        os.close(fd)
        os.close(reader)


def check_pages(prefix, version):
    pages = sorted((prefix / "share/man").rglob("*.*"))
    lint = have("mandoc")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        title = text[:text.index("\n")]
        expect(version in title and re.search(r'"\d{4}-\d\d-\d\d"', title),
               f"{page.name}: {title}")
        named = re.findall(r"\b(?:config|filters|docs|tests|scripts|drivers)/"
                           r"[a-z]\S*\.(?:md|conf)", text)
        expect(not named, f"{page.name} names {named} of the source tree")
        if have("man"):
            done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                       page, env={**os.environ, "LC_ALL": "C.UTF-8",
                                  "MANROFFSEQ": "", "MANWIDTH": "100"})
            expect(not done.stderr, f"{page.name}: {done.stderr}")
            told = run("lexgrog", page).stdout
            expect("unknown" not in told and " - " in told,
                   f"{page.name}: apropos will not find it: {told}")
        if lint:
            done = run("mandoc", "-Tlint", "-W", "warning", page)
            expect(done.returncode == 0, f"{page.name}: {done.stdout}")
    check_references(pages)


def check_changes(prefix, version):
    """What is new is told of this version, which was not released before."""
    text = (prefix / "share/doc/tracefs/CHANGELOG.md").read_text(
        encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.M)
    expect(headings[:1] == [version] and headings.count(version) == 1,
           f"the changelog's headings: {headings}")


def check_references(pages):
    """What a page of ours sends readers to is there."""
    there = {page.name for page in pages}
    for page in pages:
        text = re.sub(r"\\f[BIR]|\\", "", page.read_text(encoding="utf-8"))
        for name, section in re.findall(
                r"\b((?:lib)?tracefs[\w.-]*|u?mount\.fuse\.tracefs) ?"
                r"\((\d)\)", text):
            expect(f"{name}.{section}" in there,
                   f"{page.name} refers to {name}({section})")


def check_moved(prefix, to):
    """As a whole it works elsewhere, too."""
    prefix.rename(to)
    out = must(to / "bin/tracefs-dump", "--format", "jsonl",
               ROOT / "tests/golden/v1/every_operation.trace")
    expect(out.count("\n") > 10, f"tracefs-dump says {out}")
    environment = {**os.environ, "PYTHONPATH":
                   str(to / "lib/python3/dist-packages"),
                   "LD_LIBRARY_PATH": str(next(to.rglob(
                       "libtracefs-reader.so.1")).parent),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    must("/usr/bin/python3", "-c", "import tracefs", env=environment)


def check_destdir(build, folder):
    """With DESTDIR, and nothing outside of it; another part's name is told."""
    destination = folder / "destination"
    must("cmake", "--install", build, "--component", "tools",
         env={**os.environ, "DESTDIR": str(destination)})
    found = list(destination.rglob("tracefs-mount"))
    expect(len(found) >= 1, f"DESTDIR holds {list(destination.rglob('*'))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    version = re.search(r"project\(tracefs VERSION ([\d.]+)",
                        (ROOT / "CMakeLists.txt").read_text())[1]
    with tempfile.TemporaryDirectory(prefix="tracefs-installed-") as folder:
        folder = pathlib.Path(folder)
        os.chmod(folder, 0o755)
        prefix = folder / "prefix"
        install(build, prefix)
        check_files(prefix)
        check_programs(prefix, version)
        check_names(prefix)
        check_pages(prefix, version)
        check_changes(prefix, version)
        check_size(build, folder / "stripped")
        check_destdir(build, folder)
        check_moved(prefix, folder / "elsewhere")
    finish("installed_test")


if __name__ == "__main__":
    main()
