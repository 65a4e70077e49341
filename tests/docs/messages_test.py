#!/usr/bin/env python3
"""Every message that the log can hold is in its manual and in the journal's
catalog, with the same number and weight; each is said somewhere, and no number
is there twice."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
LEVELS = {"ERR": "error", "WARNING": "warning", "NOTICE": "notice",
          "INFO": "information"}
_failures = []


def read(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def expect(condition, text):
    if not condition:
        _failures.append(text)


def kinds():
    """(enumerator, name, level, message id) of each."""
    return re.findall(r'NoticeKind\{NoticeId::(k\w+), "(\w+)", LOG_(\w+),\s*'
                      r'"([0-9a-f]{32})"\}', read("tracefs/base/notice.cc"))


def check_table(table):
    declared = re.search(r"enum class NoticeId : uint8_t \{(.*?)\n\};",
                         read("tracefs/base/notice.h"), re.S)[1]
    names = re.findall(r"^  (k\w+),", declared, re.M)
    expect(names == [row[0] for row in table],
           "notice.cc does not have the order of NoticeId")
    for column in (1, 3):
        values = [row[column] for row in table]
        expect(len(set(values)) == len(values), f"twice: {values}")


def check_said(table):
    """Only by those who say it: the table and the log itself aside."""
    said = set()
    for room in ("tracefs", "drivers", "filters"):
        for path in (SOURCE / room).rglob("*.cc"):
            if path.name == "notice.cc":
                continue
            text = path.read_text(encoding="utf-8")
            if re.search(r"Notify\(|LogDatagram\(|Queue\(|Say\(", text):
                said |= set(re.findall(r"NoticeId::(k\w+)", text))
    for row in table:
        expect(row[0] in said, f"nobody says {row[1]}")


def check_manual(table):
    page = read("docs/man/tracefs-messages.7")
    told = re.findall(r"^\.TP\n\.B (\w+)\n\((\w+); ([\w -]+); ([0-9a-f]{32})\)$",
                      page, re.M)
    expect({(row[1], LEVELS[row[2]], row[3]) for row in table} ==
           {(name, level, number) for name, level, _, number in told},
           f"tracefs-messages(7) has other messages: {told}")


def check_catalog(table):
    entries = read("packaging/systemd/tracefs.catalog").split("\n-- ")[1:]
    numbers = [entry[:32] for entry in entries]
    expect(sorted(numbers) == sorted(row[3] for row in table),
           f"tracefs.catalog has other messages: {numbers}")
    for entry in entries:
        head, _, body = entry.partition("\n\n")
        expect("\nSubject: " in head and body.strip(),
               f"tracefs.catalog explains nothing of {entry[:32]}")


def main():
    table = kinds()
    expect(len(table) >= 14, f"only {len(table)} kinds are found")
    check_table(table)
    check_said(table)
    check_manual(table)
    check_catalog(table)
    for failure in _failures:
        print(failure)
    sys.exit(1 if _failures else 0)


if __name__ == "__main__":
    main()
