#!/usr/bin/env python3
"""No switch over operations has a `default:`: the compiler refuses a new
operation wherever somebody has to decide what becomes of it (docs/extending.md;
for lists of a few there is tracefs/event/op_set.h)."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
ROOMS = ("tracefs", "filters", "drivers", "config", "anonymize")


def switches_of(text):
    """(line, body) of each, by the indentation that the format gives them."""
    for begin in re.finditer(r"^( *)switch \(", text, re.M):
        end = re.compile(rf"^{begin[1]}\}}", re.M).search(text, begin.end())
        yield text.count("\n", 0, begin.start()) + 1, begin[1], \
            text[begin.end():end.start() if end else len(text)]


def swallowing(text):
    """Lines of switches over operations, of which a new one would be lost."""
    for line, indent, body in switches_of(text):
        own = rf"^{indent}  "
        if re.search(own + r"case Op::", body, re.M) and \
                re.search(own + r"default:", body, re.M):
            yield line


BAD = """void F(Op op) {
  switch (op) {
    case Op::read_:
      return;
    default:
      return;
  }
}
"""


def main():
    if list(swallowing(BAD)) != [2]:
        sys.exit("operations_test does not see a default")
    inner = BAD.replace("    default:\n      return;\n", "    case Op::write_:\n"
                        "      switch (1) {\n        default:\n"
                        "          return;\n      }\n")
    if list(swallowing(inner)):
        sys.exit("operations_test takes another switch's default for it")
    seen = 0
    bad = []
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            text = path.read_text(encoding="utf-8")
            seen += len(re.findall(r"case Op::", text))
            bad += [f"{path.relative_to(SOURCE)}:{line}: the default of this "
                    "switch swallows a new operation; next: name all of them, "
                    "or use IsAmong" for line in swallowing(text)]
    if seen < 100:
        sys.exit(f"only {seen} cases of operations")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
