#!/usr/bin/env python3
"""Each file includes what it uses, itself or through what it includes. Whole
rooms are compiled as one, where a file also sees what its neighbours include:
what it lacks is found only by whoever compiles it by itself."""

import functools
import pathlib
import re
import sys

from one_definition_test import ROOMS, SOURCE, TYPE, CONSTANT, declarations_of

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
# Types and constants of two words at least: functions are too often members of
# something else, and so are single words.
NAME = re.compile(r"\b(k?[A-Z][a-z0-9]+[A-Z]\w*)\b")


@functools.cache
def read(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def includes(path):
    return tuple(SOURCE / name for name in INCLUDE.findall(read(path))
                 if (SOURCE / name).exists())


def reached_from(path):
    reached, todo = set(), [path]
    while todo:
        at = todo.pop()
        if at not in reached:
            reached.add(at)
            todo += includes(at)
    return reached


def code_of(path):
    text = re.sub(r'R"\w*\((?:.|\n)*?\)\w*"', '""', read(path))
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"//.*", "", text)


def declared_in(header):
    """Names at the outermost level of a namespace that a file cannot use
    without this header."""
    for inside, said in declarations_of(read(header)):
        if "" in inside:
            continue
        said = re.sub(r"^template <.*?> (?=struct|class)", "", said)
        if found := TYPE.match(said) or CONSTANT.match(said):
            yield found[1]


def main():
    homes = {}
    files = []
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*")):
            if path.suffix == ".h":
                for name in declared_in(path):
                    homes.setdefault(name, set()).add(path)
            if path.suffix in (".h", ".cc"):
                files.append(path)
    wrong = []
    for path in files:
        code = code_of(path)
        reached = reached_from(path)
        for name in sorted(set(NAME.findall(code)) & set(homes)):
            if homes[name] & reached:
                continue
            # Its own thing of that name, a forward declaration, or a member.
            own = (rf"(?:struct|class|enum|using|typename) {name}\b|"
                   rf"\b(?:constexpr|const) [^;]*\b{name}\b|"
                   rf"[\w>&*] {name}\(|^  +{name}[,; =]|(?:\.|->|::){name}\b")
            if re.search(own, code, re.M) or any(
                    re.search(rf"(?:struct|class|using) {name}\b|"
                              rf"constexpr [^;]*\b{name}\b", read(at))
                    for at in reached):
                continue
            wrong.append(f"{path.relative_to(SOURCE)} uses {name} and includes "
                         f"nothing that leads to "
                         f"{min(homes[name]).relative_to(SOURCE)}")
    for line in wrong:
        print(line)
    print(f"{len(files)} files, {len(homes)} names, {len(wrong)} wrong")
    if len(files) < 100 or len(homes) < 100:
        sys.exit("almost nothing was looked at")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
