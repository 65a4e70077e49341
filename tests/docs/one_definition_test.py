#!/usr/bin/env python3
"""No two classes of the code have one name: the commands share programs, where
the linker would take the functions of one for those of the other."""

import collections
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
ROOMS = ("tracefs", "filters", "drivers", "config", "anonymize")


def classes_of(text):
    """With their namespaces; not those of unnamed ones, which are a file's own."""
    inside = []
    for line in text.splitlines():
        if found := re.match(r"namespace ?([\w:]*) ?\{$", line):
            inside.append(found[1])
        elif line.startswith("}  // namespace"):
            inside.pop()
        elif (found := re.match(
                r"(?:struct|class|union|enum class) (\w+)(?: final)?"
                r"(?: :.*)? ?\{", line)) and "" not in inside:
            yield "::".join((*inside, found[1]))


def repeated(files):
    where = collections.defaultdict(set)
    for name, text in files:
        for one in classes_of(text):
            where[one].add(name)
    return {one: names for one, names in where.items() if len(names) > 1}


def main():
    own = "namespace a {\nstruct X {\n}  // namespace a\n"
    hidden = "namespace a {\nnamespace {\nstruct X {\n}  // namespace\n" \
             "}  // namespace a\n"
    if repeated([("1", own), ("2", own)]) != {"a::X": {"1", "2"}}:
        sys.exit("one_definition_test does not see two classes of one name")
    if repeated([("1", own), ("2", hidden)]):
        sys.exit("one_definition_test sees classes in unnamed namespaces")
    files = [(str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8"))
             for room in ROOMS for path in (SOURCE / room).rglob("*")
             if path.suffix in (".h", ".cc")]
    if len(files) < 100:
        sys.exit(f"only {len(files)} files")
    bad = repeated(files)
    for name, places in sorted(bad.items()):
        print(f"{name} is defined in {' and '.join(sorted(places))}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
