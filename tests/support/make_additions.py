#!/usr/bin/env python3
"""Makes the additions of docs/extending.md in copies of the files they touch.

make_additions.py --list SECTION...       the files, for CMake
make_additions.py --out FOLDER SECTION... writes them below FOLDER

A section has a table of its files, the first column. Those that link to an
example are made of it; the others are changed as the diffs of the section say.
The table and the additions name the same files, new sources are in the
CMakeLists.txt of their folder, and what a diff shows stands in its file once:
otherwise this fails."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = "docs/extending.md"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def section_of(page, name):
    match = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    if match is None:
        sys.exit(f"{PAGE}: no section {name!r}")
    return match[1]


def files_of(section):
    """The table: {file: the example it is made of, or None}."""
    files = {}
    for cell, rest in re.findall(r"^\| (`[^|]*?) \|(.*)", section, re.M):
        example = re.search(r"\((examples/[\w.]+)\)", rest)
        for name in re.findall(r"`([^`]+)`", cell):
            files[name] = example and "docs/" + example[1]
    return files


def apply(text, hunk, where):
    lines = [line for line in hunk.splitlines() if line]
    old = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
    if text is None:
        return new if not old else sys.exit(f"{where}: there is no such file")
    if ("\n" + text).count("\n" + old) != 1:
        sys.exit(f"{PAGE}: {where} does not have this once:\n{old}")
    at = ("\n" + text).index("\n" + old)
    return text[:at] + new + text[at + len(old):]


def additions(names):
    page = read(PAGE)
    made = {}
    for name in names:
        section = section_of(page, name)
        listed = files_of(section)
        touched = {file for file, example in listed.items() if example}
        made.update({file: read(listed[file]) for file in touched})
        for diff in re.findall(r"^```diff\n(.*?)^```", section, re.M | re.S):
            for part in re.split(r"^--- ", diff, flags=re.M)[1:]:
                file, body = part.split("\n", 1)
                touched.add(file)
                for hunk in filter(None, re.split(r"^@@\n", body, flags=re.M)):
                    there = os.path.exists(os.path.join(ROOT, file))
                    text = made.get(file, read(file) if there else None)
                    made[file] = apply(text, hunk, file)
        if touched != set(listed):
            sys.exit(f"{PAGE}: {name}: the table and the additions differ in "
                     f"{sorted(touched ^ set(listed))}")
        for file in touched:
            folder, base = os.path.split(file)
            built = made.get(folder + "/CMakeLists.txt", "")
            if file.endswith(".cc") and listed[file] and base not in built:
                sys.exit(f"{PAGE}: {name}: nothing builds {file}")
    return made


def main():
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


if __name__ == "__main__":
    main()
