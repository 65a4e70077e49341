#!/usr/bin/env python3
"""No two definitions of the code have one name: the commands share programs,
where the linker would take the functions of one class for those of the other,
and the file that includes both constants would not compile. And no definition
has a name that nothing else uses."""

import collections
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
ROOMS = ("tracefs", "filters", "drivers", "config", "anonymize")
# Every program has one.
ALLOWED = {"main(int argc, char** argv)"}

TYPE = re.compile(r"(?:struct|class|union|enum class|enum) (?:alignas\(.*?\) )?"
                  r"([\w:]+)(?: final)?(?: : .*)? \{")
FUNCTION = re.compile(r"([\w:~]+(?:operator\S+)?)(\(.*\))(?: const)?"
                      r"(?: noexcept)?(?: : .*)? \{")
CONSTANT = re.compile(r"(?:[\w:]+ )*?(?:constexpr|const|constinit) .*?"
                      r"\b(k[A-Z]\w*)(?:\[.*?\])*(?: =|\{|;)")
ALIAS = re.compile(r"using (\w+) = ")
MACRO = re.compile(r"#define (\w+)(?:\(| |$)")


def declarations_of(text):
    """What stands in namespaces, as (namespaces, its text up to '{' or ';').
    The format puts such a thing, and nothing else, at the begin of a line."""
    inside = []
    waiting = ""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    for line in re.sub(r"//(?! namespace).*", "", text).splitlines():
        line = line.rstrip()
        if found := re.match(r"namespace ?([\w:]*) ?\{$", line):
            inside.append(found[1])
        elif line.startswith("}  // namespace"):
            inside.pop()
        elif line.startswith("#"):
            yield inside, line
        elif waiting or re.match(r"[A-Za-z_~]", line):
            waiting = (waiting + " " + line.strip()).strip()
            if waiting.endswith((";", "{", "}")):
                yield inside, waiting
                waiting = ""


def definitions_of(text):
    """Names, of functions with their parameters; not those of unnamed
    namespaces and static ones, which are a file's own."""
    for inside, said in declarations_of(text):
        if found := MACRO.match(said):
            yield "#define " + found[1]
            continue
        if "" in inside or said.startswith(("extern ", "static ")):
            continue
        said = re.sub(r"^template <.*?> (?=struct|class|inline|[A-Z])", "",
                      said)
        said = re.sub(r"\[\[.*?\]\] ", "", said)
        if found := (TYPE.match(said) or ALIAS.match(said) or
                     CONSTANT.match(said)):
            # A plain enumeration is used by its enumerators.
            plain = re.match(r"enum (?!class)", said)
            yield ("enum " if plain else "") + "::".join((*inside, found[1]))
        elif found := FUNCTION.search(said):
            parameters = re.sub(r"\s+", " ", found[2])
            yield "::".join((*inside, found[1])) + parameters


def repeated(files):
    where = collections.defaultdict(set)
    for name, text in files:
        for one in definitions_of(text):
            where[one].add(name)
    return {one: names for one, names in where.items()
            if len(names) > 1 and one not in ALLOWED}


# A function has its declaration and its definition; all else is defined alone.
# What the linker and the reader's users call is called from elsewhere.
CALLED_FROM_OUTSIDE = re.compile(r"__\w+|tracefs_\w+|LookUpHereOnly|main|"
                                 r"\w*operator\W*|FUSE_USE_VERSION|\w+_H_?|"
                                 r"LLVM\w+|ARROW_\w+")


def words_of(text):
    text = re.sub(r"//.*", "", text)
    return collections.Counter(re.findall(r"\w+", text))


def unused(files, others):
    """`files` are looked through; `others`, texts, may use what is there."""
    used = collections.Counter()
    for text in others:
        used += words_of(text)
    declared = collections.Counter()
    where = {}
    for name, text in files:
        used += words_of(text)
        for last, called in {(re.sub(r"\(.*|^#define ", "", one)
                              .split("::")[-1], "(" in one)
                             for one in definitions_of(text)
                             if not one.startswith("enum ")}:
            declared[last] += 1 + (called and name.endswith(".cc"))
            where[last] = name
    return {one: where[one] for one, times in declared.items()
            if used[one] <= times and not one.startswith("~") and
            not CALLED_FROM_OUTSIDE.fullmatch(one)}


# In a named namespace each is seen in two files, in an unnamed one it is not.
EXAMPLES = {
    "struct X {\n};": "a::X",
    "class X final : public Y {\n};": "a::X",
    "enum X : int {\n};": "enum a::X",
    "union X {\n};": "a::X",
    "template <typename T>\nstruct X {\n};": "a::X",
    "using X = int;": "a::X",
    "int X(int y) {\n  return y;\n}": "a::X(int y)",
    "int Y::X(int y,\n         int z) const {\n}": "a::Y::X(int y, int z)",
    "inline constexpr int kX = 1;": "a::kX",
    "inline constexpr int kX[] = {\n    1};": "a::kX",
    "inline constexpr Row kX = {.name = \"x\",\n    .max = 1};": "a::kX",
    "const char kX[] = \"x\";": "a::kX",
}


def check_examples():
    for text, name in EXAMPLES.items():
        own = f"namespace a {{\n{text}\n}}  // namespace a\n"
        hidden = f"namespace a {{\nnamespace {{\n{text}\n}}  // namespace\n" \
                 "}  // namespace a\n"
        if repeated([("1", own), ("2", own)]) != {name: {"1", "2"}}:
            sys.exit(f"one_definition_test does not see two of: {text}; "
                     f"only {list(definitions_of(own))}")
        if repeated([("1", own), ("2", hidden)]):
            sys.exit(f"one_definition_test sees in an unnamed namespace: {text}")
    macro = "#ifndef X\n#define X 1\n#endif\n"
    if repeated([("1", macro), ("2", macro)]) != {"#define X": {"1", "2"}}:
        sys.exit("one_definition_test does not see two macros of one name")
    declared = "extern const int kX;\nint X(int y);\nstruct Y;\n"
    if repeated([("1", declared), ("2", declared)]):
        sys.exit("one_definition_test takes declarations for definitions")
    header = "namespace a {\nint X();\ninline constexpr int kX = 1;\n" \
             "}  // namespace a\n"
    source = "namespace a {\nint X() {\n  return 1;\n}\n}  // namespace a\n"
    both = [("x.h", header), ("x.cc", source)]
    if unused(both, []) != {"X": "x.cc", "kX": "x.h"}:
        sys.exit("one_definition_test does not see what nothing uses: " +
                 str(unused(both, [])))
    if unused(both, ["EXPECT_EQ(X(), kX);"]):
        sys.exit("one_definition_test takes what is used for unused")


def main():
    check_examples()
    files = [(str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8"))
             for room in ROOMS for path in (SOURCE / room).rglob("*")
             if path.suffix in (".h", ".cc")]
    if len(files) < 100:
        sys.exit(f"only {len(files)} files")
    found = sum(len(list(definitions_of(text))) for _, text in files)
    if found < 4000:
        sys.exit(f"only {found} definitions in {len(files)} files")
    bad = repeated(files)
    for name, places in sorted(bad.items()):
        print(f"{name} is defined in {' and '.join(sorted(places))}")
    others = [path.read_text(encoding="utf-8")
              for folder in ("tests", "bench", "packaging", "cmake")
              for path in (SOURCE / folder).rglob("*")
              if path.suffix in (".h", ".cc", ".c")]
    dead = unused(files, others)
    for name, place in sorted(dead.items()):
        print(f"{place}: nothing uses {name}")
    sys.exit(1 if bad or dead else 0)


if __name__ == "__main__":
    main()
