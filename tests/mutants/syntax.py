"""A C++ file as mutate sees it: its tokens, its syntax tree, its macros."""

import bisect
import glob
import re
import sys

# Debian puts the bindings of libclang where its own python3 looks only.
sys.path.append("/usr/lib/python3/dist-packages")

try:
    from clang import cindex
except ImportError:
    sys.exit("mutate: there are no Python bindings of libclang\n"
             "mutate: next: apt-get install python3-clang-14 (or scripts/setup)")

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?:u8|[uUL])?R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"'
    r'|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?\'(?:\\.|[^\'\\\n])*\''
    r"|[A-Za-z_]\w*|\.?\d(?:'?[\w.])*"
    r"|<=>|<<=|>>=|\.\.\.|->\*?|\+\+|--|&&|\|\||::|[-+*/%&|^<>=!]=|<<|\S",
    re.S)


def index() -> "cindex.Index":
    try:
        return cindex.Index.create()
    except cindex.LibclangError:
        found = sorted(glob.glob("/usr/lib/llvm-*/lib/libclang*.so.1"))
        if not found:
            sys.exit("mutate: there is no libclang\n"
                     "mutate: next: apt-get install libclang1-14")
        cindex.Config.loaded = False
        cindex.Config.set_library_file(found[0])
        return cindex.Index.create()


class Source:
    """Text with one character for each byte, so that offsets are libclang's."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = [(m.start(), m.end()) for m in TOKEN.finditer(text)
                       if not m.group().startswith(("//", "/*"))]
        self.starts = [start for start, _ in self.tokens]
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]

    def line(self, offset: int) -> int:
        return bisect.bisect_right(self.lines, offset)

    def next_token(self, offset: int) -> tuple[str, int]:
        """The first token at or after an offset, and where it ends."""
        at = bisect.bisect_left(self.starts, offset)
        if at == len(self.tokens):
            return "", len(self.text)
        start, end = self.tokens[at]
        return self.text[start:end], end

    def token_before(self, offset: int) -> str:
        at = bisect.bisect_left(self.starts, offset) - 1
        return self.text[slice(*self.tokens[at])] if at >= 0 else ""

    def words(self, start: int, end: int) -> list[str]:
        first = bisect.bisect_left(self.starts, start)
        last = bisect.bisect_left(self.starts, end)
        return [self.text[s:e] for s, e in self.tokens[first:last]]

    def plain(self, start: int, end: int) -> str | None:
        """What is between two offsets on one line, without comments; None if
        that cannot be (lines for the preprocessor, raw strings of many lines)."""
        if re.search(r"^\s*#", self.text[start:end], re.M):
            return None
        first = bisect.bisect_left(self.starts, start)
        last = bisect.bisect_left(self.starts, end)
        parts, at = [], start
        for s, e in self.tokens[first:last]:
            # Whatever is between tokens is blanks and comments.
            parts.append(" " if s > at and parts else "")
            parts.append(self.text[s:e])
            at = e
        text = "".join(parts)
        return None if "\n" in text else text


class Tree:
    """The syntax trees of files that compile together: reading the headers takes
    the time, and is done once."""

    def __init__(self, texts: dict[str, str], arguments: list[str]):
        unit = cindex.TranslationUnit
        paths = list(texts)
        whole = [(path, text.encode("latin-1")) for path, text in texts.items()]
        main = paths[0]
        if len(paths) > 1:
            main = f"{paths[0]}.together.cc"
            whole.append((main, "".join(f'#include "{path}"\n'
                                        for path in paths).encode()))
        self.unit = index().parse(
            main, args=arguments, unsaved_files=whole,
            options=unit.PARSE_DETAILED_PROCESSING_RECORD)
        self.errors = [str(d) for d in self.unit.diagnostics if d.severity >= 3]
        # Where macros with arguments are used: nothing inside can be changed.
        self.macros = {path: [] for path in paths}
        self.tops = {path: [] for path in paths}
        for cursor in self.unit.cursor.get_children():
            path = cursor.location.file and cursor.location.file.name
            if path not in self.tops:
                continue
            start, end = cursor.extent.start.offset, cursor.extent.end.offset
            if cursor.kind == cindex.CursorKind.MACRO_INSTANTIATION:
                self.macros[path].append((start, end))
            elif not cursor.kind.is_preprocessing():
                self.tops[path].append(cursor)
        for macros in self.macros.values():
            macros.sort()

    def in_macro(self, path: str, start: int, end: int) -> bool:
        macros = self.macros[path]
        at = bisect.bisect_right(macros, (start, 1 << 60)) - 1
        return at >= 0 and macros[at][1] >= end and macros[at][1] > start
