#!/usr/bin/env python3
"""Makes the additions of docs/extending.md in copies of the files they touch.

make_additions.py --list SECTION...       the files, for CMake
make_additions.py --out FOLDER SECTION... writes them below FOLDER
make_additions.py --check                 only looks whether all can be made

A section has tables of files, the first column. A table of two columns names all
files that the section touches: those that link to an example are made of it, the
others are changed as the diffs of the section say, and new sources are in the
CMakeLists.txt of their folder. A table of three says who notices where something
is missing: its files are there, and without a table of two they, or their
folders, are all that diffs touch. What a diff shows stands in its file once.
Otherwise this fails."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = "docs/extending.md"


class Failure(Exception):
    pass


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def section_of(page, name):
    match = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    if match is None:
        raise Failure(f"{PAGE}: no section {name!r}")
    return match[1]


def rows_of(section, columns):
    """(file, the rest of its row) of all tables with so many columns."""
    for table in re.findall(r"^\| file \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", section, re.M):
        for row in table.splitlines():
            cells = re.split(r" ?\| ?", row.strip("|"))
            if len(cells) != columns:
                continue
            folder = ""
            for name in re.findall(r"`([^`]+)`", cells[0]):
                # "a/b.h", "b.cc": in the same folder.
                name = name if "/" in name else os.path.join(folder, name)
                folder = os.path.dirname(name)
                yield name, cells[1]


def files_of(section):
    """{file: the example it is made of, or None}."""
    files = {}
    for name, rest in rows_of(section, 2):
        example = re.search(r"\((examples/[\w.]+)\)", rest)
        files[name] = example and "docs/" + example[1]
    return files


def apply(text, hunk, where):
    lines = [line for line in hunk.splitlines() if line]
    old = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
    if text is None:
        if old:
            raise Failure(f"{where}: there is no such file")
        return new
    found = ("\n" + text).count("\n" + old)
    if found != 1:
        raise Failure(f"{PAGE} quotes {where}, which has these lines "
                      f"{found or 'no'} {'times' if found else 'more'}:\n{old}"
                      "next: quote that file as it is now")
    at = ("\n" + text).index("\n" + old)
    return text[:at] + new + text[at + len(old):]


def made_by(section, made):
    """Changes `made`, {file: text}, as the diffs say; returns what they touch."""
    touched = set()
    for diff in re.findall(r"^```diff\n(.*?)^```", section, re.M | re.S):
        for part in re.split(r"^--- ", diff, flags=re.M)[1:]:
            file, body = part.split("\n", 1)
            touched.add(file)
            for hunk in filter(None, re.split(r"^@@\n", body, flags=re.M)):
                there = os.path.exists(os.path.join(ROOT, file))
                text = made.get(file, read(file) if there else None)
                made[file] = apply(text, hunk, file)
    return touched


def additions(names):
    page = read(PAGE)
    made = {}
    for name in names:
        section = section_of(page, name)
        listed = files_of(section)
        watched = {file for file, _ in rows_of(section, 3)}
        for file in watched:
            if not os.path.exists(os.path.join(ROOT, file)):
                raise Failure(f"{PAGE}: {name}: there is no {file}")
        examples = {file for file, example in listed.items() if example}
        made.update({file: read(listed[file]) for file in examples})
        touched = made_by(section, made) | examples
        if listed and touched != set(listed):
            raise Failure(f"{PAGE}: {name}: the table and the additions differ in "
                          f"{sorted(touched ^ set(listed))}")
        for file in touched:
            folder, base = os.path.split(file)
            if not listed and not {file, folder + "/"} & watched:
                raise Failure(f"{PAGE}: {name}: {file} is in no table")
            built = made.get(folder + "/CMakeLists.txt", "")
            if file.endswith(".cc") and listed.get(file) and base not in built:
                raise Failure(f"{PAGE}: {name}: nothing builds {file}")
    return made


def sections():
    """Those that show what to add."""
    page = read(PAGE)
    return [name for name in re.findall(r"^## (.*)$", page, re.M)
            if "```diff" in section_of(page, name)]


def check():
    """What is wrong with each section by itself, in sentences."""
    wrong = []
    for name in sections():
        try:
            additions([name])
        except Failure as failure:
            wrong.append(str(failure))
    return wrong


def main():
    try:
        if sys.argv[1] == "--check":
            sys.exit("\n".join(check()) or 0)
        if sys.argv[1] == "--list":
            page = read(PAGE)
            files = {file for name in sys.argv[2:]
                     for file in files_of(section_of(page, name))}
            print(";".join(sorted(files)))
            return
        for file, text in additions(sys.argv[3:]).items():
            path = os.path.join(sys.argv[2], file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
    except Failure as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
