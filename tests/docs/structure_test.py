#!/usr/bin/env python3
"""docs/architecture.md is true: rooms and wings, who includes whom, walks,
figures; and scripts/structure, which checks that, notices a page that is wrong.
tests/mount/README.md names all suites."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
STRUCTURE = SOURCE / "scripts" / "structure"
FILES = {
    "CMakeLists.txt": "foreach(folder IN ITEMS\n  tracefs/low tracefs/mid "
                      "tracefs/high ${tests})\n",
    "tracefs/low/low.h": "void Low();\n",
    "tracefs/mid/mid.h": "class Mid {\n  void Do();\n};\n",
    "tracefs/high/high.cc": '#include "tracefs/low/low.h"\n'
                            '#include "tracefs/mid/mid.h"\n'
                            "void High() { Low(); }\n" + "\n" * 300,
    "docs/architecture.md": """# Shared
| room | what | may include |
|---|---|---|
| `tracefs/low/` | low | |
| `tracefs/mid/` | mid | |

<!-- scripts/structure: graph shared -->
<!-- end -->
# Reads: on top
| room | what | may include |
|---|---|---|
| `tracefs/high/` | high | low `mid/mid.h` |

<!-- scripts/structure: graph reads -->
<!-- end -->
<!-- scripts/structure: figures -->
| | files |
|---|---|
| then, product | 1 |
<!-- end -->
<!-- scripts/structure: rooms -->
<!-- end -->
## A walk
1. `tracefs/high/high.cc: High`
2. `tracefs/mid/mid.h: Mid::Do`
""",
}


def run(*arguments):
    done = subprocess.run([sys.executable, "-B", STRUCTURE, *arguments],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def tree(folder, change=None, text=None, written=True):
    """A tree of three rooms, whose page is true but for `text`, which is put
    at the end of the file `change`."""
    for name, content in FILES.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    if written:
        run("--write", folder)
    if change:
        path = pathlib.Path(folder, change)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write(text)


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


CASES = [
    # what is added to which file, what is said of it
    ("tracefs/low/low.h", '#include "tracefs/high/high.h"\n',
     "tracefs/low/low.h includes tracefs/high/high.h: tracefs/high comes "
     "after tracefs/low"),
    ("tracefs/mid/mid.h", '#include "tracefs/low/low.h"\n',
     "the plan has no tracefs/mid -> tracefs/low"),
    ("tracefs/high/high.cc", '#include "tracefs/mid/other.h"\n',
     "includes tracefs/mid/other.h: the plan has no"),
    ("docs/architecture.md", "3. `tracefs/mid/mid.h: Mid::Undo`\n",
     "tracefs/mid/mid.h has no Mid::Undo"),
    ("docs/architecture.md", "3. `tracefs/mid/gone.h: Gone`\n",
     "there is no tracefs/mid/gone.h"),
    ("docs/architecture.md", "3. `tracefs/high/high.cc: High`\n",
     "A walk: tracefs/high is entered again, at High"),
    ("docs/architecture.md", "| `tracefs/new/` | new | |\n",
     "tracefs/new is in docs/architecture.md, and not a room"),
    ("tracefs/mid/mid.h", '#include "tracefs/high/high.cc"\n',
     "the wing shared needs none other"),
    ("tracefs/mid/mid.h", '#include "tracefs/low/low.h"\n',
     "the graph of shared in docs/architecture.md is not that of the code"),
    ("tracefs/mid/mid.h", "\n" * 201,
     "says that tracefs/mid has 3 lines; it has 204"),
    ("tracefs/high/new.cc", "\n" * 7, "says 307 lines of product; there are 314"),
    ("tests/test.py", "\n", "says 0 lines of tests; there are 1"),
]
# What is no fault yet: the page need not change with every line of code.
PASSES = [
    ("tracefs/mid/mid.h", "\n" * 5),
]


def check_suites():
    """tests/mount/README.md has a row for each suite, and for nothing else."""
    mount = SOURCE / "tests" / "mount"
    page = (mount / "README.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w.]+/?)` \|", page, re.M))
    suites = {path.name + "/" for path in mount.iterdir()
              if path.is_dir() and any(path.glob("*_test.*"))}
    suites |= {path.name for path in mount.glob("*_test.*")}
    expect(rows == suites, "tests/mount/README.md differs from the suites: "
           f"{sorted(rows ^ suites)}")


def main():
    check_suites()
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, written=False)
        status, said = run("--check", folder)
        expect(status == 1 and "is not that of the code" in said and
               "has no figures of tracefs/low" in said,
               f"a page without its graph passes: {said}")
        tree(folder)
        status, said = run("--check", folder)
        expect((status, said) == (0, ""), f"a true page does not pass: {said}")
        page = pathlib.Path(folder, "docs/architecture.md").read_text(
            encoding="utf-8")
        expect("| then, product | 1 |\n| now, product | 3 |" in page and
               "| mid | 1 | 3 | 3 |" in page,
               f"figures are not written:\n{page}")
        expect('  r2["high"]\n  r2 --> r0\n' not in page,
               f"a wing's drawing has arrows to the first wing:\n{page}")
    for change, text, want in CASES:
        with tempfile.TemporaryDirectory() as folder:
            tree(folder, change, text)
            status, said = run("--check", folder)
            expect(status == 1 and want in said,
                   f"{text.strip()} in {change}: got {said!r}, not {want!r}")
    for change, text in PASSES:
        with tempfile.TemporaryDirectory() as folder:
            tree(folder, change, text)
            status, said = run("--check", folder)
            expect((status, said) == (0, ""),
                   f"{len(text)} lines more in {change}: got {said!r}")
    status, said = run("--check")
    expect(status == 0, f"this tree:\n{said}")
    print(f"ok: {len(CASES) + len(PASSES) + 4} cases")


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main()
