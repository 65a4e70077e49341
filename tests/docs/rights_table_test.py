#!/usr/bin/env python3
"""Where the daemon acts with more than its caller has is listed twice, for
readers of the code (tracefs/fs/callers_rights.h) and of docs/security.md. The two
lists have the same rows, and the page names a test for each."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = SOURCE / "docs/security.md"
CODE = SOURCE / "tracefs/fs/callers_rights.h"


def rows_of_page(text):
    """(what, with what, who decides, tested by), without marks of Markdown."""
    section = text.split("\n## With more than the caller has\n")[1]
    table = re.search(r"^\| what .*\n\|[-|]+\n((?:\|.*\n)+)", section, re.M)[1]
    return [[cell.strip() for cell in line.replace("`", "").strip("|").split("|")]
            for line in table.splitlines()]


def rows_of_code(text):
    """(what, with what, who decides): three lines each, which may go on."""
    comment = "\n".join(line[2:] for line in text.splitlines()
                        if line.startswith("//"))
    found = re.findall(r"^ \+ (.*?)\n   with: (.*?)\n   decided by: (.*?)\n"
                       r"(?= \+|\n| -|\Z)", comment + "\n", re.M | re.S)
    return [[" ".join(cell.split()) for cell in row] for row in found]


def main():
    page = rows_of_page(PAGE.read_text(encoding="utf-8"))
    code = rows_of_code(CODE.read_text(encoding="utf-8"))
    wrong = []
    if len(page) < 10 or len(page) != len(code):
        wrong.append(f"{len(page)} rows in the page, {len(code)} in the code")
    for there, here in zip(page, code):
        if there[:2] != here[:2]:
            wrong.append(f"the page says {there[:2]}, the code {here[:2]}")
        elif not there[2].startswith(here[2]):
            wrong.append(f"{here[0]}: the page lets decide '{there[2]}', "
                         f"the code '{here[2]}'")
        if len(there) != 4 or not there[3]:
            wrong.append(f"{there[0]}: no test")
    for line in wrong:
        print(f"rights_table: {line}")
    sys.exit(1 if wrong else 0)


main()
