#!/usr/bin/env python3
"""What a table of the source has, the other places have, too: questions, panels,
commands, kinds of descriptors and pages stand where they are looked for, and what
docs/extending.md quotes of files stands in them. Needs no build."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/support"))

import make_additions  # noqa: E402


def read(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def must(pattern, text, what):
    found = re.findall(pattern, text, re.M | re.S)
    if not found:
        sys.exit(f"places_test: found no {what}; next: look at how it reads them")
    return found


def missing(names, page, pattern, what):
    """For each of the names that has no place in that page: a sentence."""
    text = read(page)
    return [f"{page} has nothing of {what} {name!r}; next: add it there, as "
            "docs/extending.md says" for name in names
            if not re.search(pattern.format(re.escape(name)), text, re.M)]


def questions():
    table = read("tracefs/tools/report/questions.h")
    names = must(r'^    \{"([\w-]+)",', table, "questions")
    names = [name.replace("-", "\\-") for name in names]
    page = "docs/man/tracefs-report.1"
    either = [name for name in names
              if missing([name.replace("\\", "")], page, r"^\.BI? {}\b", "")]
    return missing(either, page, r"^\.BI? {}( |$)", "the question")


def panels():
    table = must(r"kPanels\[\] = \{(.*?)\n\};", read("tracefs/report/page.cc"),
                 "panels")[0]
    rows = must(r'^    \{"(\w+)",\s+"([^"]*)"', table, "panels")
    drawn = must(r"^const panels = \{(.*?)\};",
                 read("tracefs/report/web/panels.js"), "drawers")[0]
    drawers = set(re.findall(r"(?:^|[ {])(\w+):", re.sub(r"\(.*\)", "", drawn)))
    ids = [name for name, _ in rows]
    wrong = [f"tracefs/report/web/panels.js draws {name!r}, which is no panel of "
             "tracefs/report/page.cc" for name in sorted(drawers - set(ids))]
    # It is text with or without scripts.
    wrong += [f"tracefs/report/web/panels.js does not draw the panel {name!r}"
              for name in ids if name not in drawers | {"configuration"}]
    return wrong + missing([title for _, title in rows], "docs/report.md",
                           r"^\| {} \|", "the panel")


def members():
    """Of the document: its schema has each."""
    names = set()
    for path in (SOURCE / "tracefs/report").glob("document*.cc"):
        names |= set(re.findall(r'\bdocument\["(\w+)"\]',
                                path.read_text(encoding="utf-8")))
    if "slowest" not in names:
        sys.exit("places_test: found no members of the document")
    return missing(sorted(names - {"schema"}), "docs/report.md",
                   r"^\| (?:`\w+`, )*`{}`", "the member")


def commands():
    listed = must(r"foreach\(command IN ITEMS ([\w\s]+)\)",
                  read("tracefs/tools/CMakeLists.txt"), "commands")[0].split()
    wrong = missing(listed, "tracefs/tools/together/main.cc",
                    r'^    {{"tracefs-{}", &', "the command")
    wrong += missing(listed, "tracefs/tools/together/front_command.cc",
                     r'^    {{"{}", "', "the command")
    for name in listed:
        if not (SOURCE / f"docs/man/tracefs-{name}.1").exists():
            wrong.append(f"docs/man/tracefs-{name}.1 is not there")
    names = [path.stem for path in (SOURCE / "docs/man").glob("tracefs-*.1")]
    pages = r"^\.BR? {}(?: \(|[ ,.;]|$)"
    return wrong + missing(names, "docs/man/tracefs.7", pages, "the command")


def descriptors():
    kinds = must(r'^  X\(k\w+, "(\w+)"\)', read("tracefs/pipeline/wish.h"),
                 "kinds of descriptors")
    return missing(kinds, "docs/control-protocol.md", r"^\| `{}` \|", "the kind")


def pages():
    """Each page of docs has a line in the index, and begins with a paragraph that
    says what it answers."""
    names = sorted(path.name for path in (SOURCE / "docs").glob("*.md")
                   if path.name != "README.md")
    wrong = missing(names, "docs/README.md", r"^\| .* \| \[{0}\]\({0}\) \|$",
                    "the page")
    for name in names:
        if not re.match(r"# [^\n]+\n\n[A-Z`][^\n|$#]{20,}\n", read("docs/" + name)):
            wrong.append(f"docs/{name} does not begin with a paragraph; next: say "
                         "there what the page answers")
    return wrong


def main():
    wrong = make_additions.check()
    for look in (questions, panels, members, commands, descriptors, pages):
        wrong += look()
    for sentence in wrong:
        print(f"places_test: {sentence}", file=sys.stderr)
    print(f"{'FAILED' if wrong else 'ok'}: {len(make_additions.sections())} "
          "sections of docs/extending.md, six tables")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
