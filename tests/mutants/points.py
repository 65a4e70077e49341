"""Faults from the syntax tree of a C++ file, and the file with all of them.

Each place where a fault can be becomes an expression or a statement that asks
tracefs_fault(number) whether this is the one that is switched on
(fault.h). A file keeps its lines, so that what a compiler says of it is true.

Places that cannot be switched while the program runs are counted and left
alone: constexpr functions and variables, templates, arguments of macros,
labels of cases, types.
"""

import collections
import re

import syntax
from kinds import (COMMUTE, ERRNO, FREE, FUNCTIONS, INTEGERS, JUMPS, LOOPS,
                   MOVED, SCOPES, SLOTS, SUCCESS, TEMPLATES, TURNED, UNITS, Kind,
                   Point)

class File:
    """Text and the faults of one file; `refused` are numbers that do not
    compile, `base` is what is added to a number to make it the program's."""

    def __init__(self, path: str, name: str, text: str, tree: syntax.Tree,
                 refused=frozenset(), base=0):
        self.path, self.name = path, name
        self.base, self.refused = base, refused
        self.source = syntax.Source(text)
        self.tree = tree
        self.points: list[Point] = []
        self.skipped = collections.Counter()
        self.skipping: list[str] = []
        self.above: list = []
        self.function = ""
        self.result = None  # of the function: its cursor
        pieces = []
        for cursor in tree.tops[path]:
            pieces += self.declaration(cursor)
        self.text = self.joined(0, len(text), pieces)

    def in_macro(self, start: int, end: int) -> bool:
        return self.tree.in_macro(self.path, start, end)

    # Pieces are (start, end, text) that replace something.
    def joined(self, start, end, pieces) -> str:
        out, at = [], start
        for s, e, text in sorted(pieces, key=lambda piece: piece[:2]):
            if s < at or e > end:
                continue
            out += [self.source.text[at:s], text]
            at = e
        return "".join(out) + self.source.text[at:end]

    def declaration(self, cursor) -> list:
        if cursor.kind in SCOPES:
            return [piece for child in cursor.get_children()
                    for piece in self.declaration(child)]
        if cursor.kind in TEMPLATES:
            return self.passed_over("templates", cursor)
        if cursor.kind == Kind.VAR_DECL:
            return self.passed_over("tables and constants", cursor)
        if cursor.kind not in FUNCTIONS or not cursor.is_definition():
            return []
        start = cursor.extent.start.offset
        if {"constexpr", "consteval"} & set(
                self.source.words(start, cursor.location.offset)):
            return self.passed_over("constexpr", cursor)
        scopes, at = [cursor.spelling], cursor.semantic_parent
        while at is not None and at.kind in SCOPES and \
                at.kind != Kind.NAMESPACE:
            scopes.insert(0, at.spelling)
            at = at.semantic_parent
        self.function, self.result = "::".join(scopes), cursor
        pieces = self.children(cursor)
        self.function, self.result = "", None
        return pieces

    def passed_over(self, why, cursor) -> list:
        """Counts what would be faults in it."""
        self.skipping.append(why)
        self.children(cursor)
        self.skipping.pop()
        return []

    def fault(self, kind, start, end, after, before=None) -> str | None:
        """Adds a fault of this place; the question whether it is on, or None
        if it cannot be one."""
        if self.skipping:
            self.skipped[self.skipping[-1]] += 1
            return None
        before = before or self.source.plain(start, end)
        if before is None or after is None:
            self.skipped["preprocessor"] += 1
            return None
        number = len(self.points)
        self.points.append(Point(number, kind, self.function,
                                 self.source.line(start),
                                 self.source.line(max(start, end - 1)),
                                 before, after))
        if number in self.refused:
            return None
        return f"tracefs_fault({self.base + number})"

    def children(self, cursor) -> list:
        pieces = []
        for child in cursor.get_children():
            pieces += self.visit(child, cursor)
        return pieces

    def visit(self, cursor, parent) -> list:
        self.above.append(parent)
        pieces = self.pieces(cursor, parent)
        self.above.pop()
        return pieces

    def extent(self, cursor) -> tuple[int, int]:
        return cursor.extent.start.offset, cursor.extent.end.offset

    def inner(self, cursor, pieces=None) -> str:
        start, end = self.extent(cursor)
        return self.joined(start, end,
                           self.children(cursor) if pieces is None else pieces)

    def pieces(self, cursor, parent) -> list:
        start, end = self.extent(cursor)
        if end <= start or cursor.kind.is_reference():
            return []
        file = cursor.location.file
        if file and file.name != self.path:
            return []
        if self.in_macro(start, end):
            if "(" in self.source.text[start:end]:
                self.skipped["macros"] += 1
            return []
        if cursor.kind in TEMPLATES:
            return self.passed_over("templates", cursor)
        if cursor.kind in (Kind.STATIC_ASSERT, Kind.PARM_DECL) or \
                cursor.kind == Kind.CALL_EXPR and cursor.spelling in FREE:
            return []
        if cursor.kind == Kind.VAR_DECL:
            return self.variable(cursor)
        if cursor.kind in (Kind.STRUCT_DECL, Kind.CLASS_DECL, Kind.ENUM_DECL):
            outer = self.function, self.result
            pieces = [] if cursor.kind == Kind.ENUM_DECL else \
                self.declaration(cursor)
            self.function, self.result = outer
            return pieces
        if cursor.kind == Kind.LAMBDA_EXPR:
            outer, self.result = self.result, None
            pieces = self.children(cursor)
            self.result = outer
            return pieces
        text = self.expression(cursor, parent, start, end) \
            if cursor.kind.is_expression() else None
        if text is None and cursor.kind.is_statement():
            statement = self.statement(cursor)
            if statement is not None:
                return [statement]
        if text is None:
            pieces = self.children(cursor)
            if not pieces and not self.may_go(cursor):
                return []
            text = self.joined(start, end, pieces)
            if text == self.source.text[start:end] and \
                    parent.kind not in SLOTS:
                return pieces
        return self.slot(cursor, parent, start, end, text)

    def variable(self, cursor) -> list:
        words = self.source.words(cursor.extent.start.offset,
                                  cursor.location.offset)
        name_end = cursor.location.offset + len(cursor.spelling)
        if "constexpr" in words:
            return self.passed_over("constexpr", cursor)
        pieces = []
        for child in cursor.get_children():
            start = child.extent.start.offset
            if child.kind.is_expression() and (
                    start >= name_end or start == cursor.location.offset) and \
                    self.source.token_before(start) != "[":
                pieces += self.visit(child, cursor)
        return pieces

    # ---- expressions

    def expression(self, cursor, parent, start, end) -> str | None:
        if cursor.kind == Kind.BINARY_OPERATOR or \
                cursor.spelling.startswith("operator") and \
                cursor.kind == Kind.CALL_EXPR:
            return self.binary(cursor, parent, start, end)
        if cursor.kind == Kind.CALL_EXPR:
            return self.call(cursor, parent, start, end)
        if cursor.kind == Kind.INTEGER_LITERAL:
            return self.number(parent, start, end)
        if cursor.kind == Kind.CXX_BOOL_LITERAL_EXPR:
            text = self.source.text[start:end]
            other = {"true": "false", "false": "true"}.get(text)
            asks = other and self.fault("constant", start, end, other)
            return f"({asks} != {text})" if asks else None
        if cursor.kind == Kind.DECL_REF_EXPR:
            return self.constant(cursor, parent, start, end)
        if cursor.kind == Kind.CONDITIONAL_OPERATOR:
            return self.choice(cursor)
        return None

    def operands(self, cursor):
        """The two sides of a binary operator and what is between them."""
        sides = [child for child in cursor.get_children()
                 if child.kind.is_expression()]
        start, end = self.extent(cursor)
        if cursor.kind == Kind.CALL_EXPR:
            sides = [s for s in sides if self.extent(s)[1] > self.extent(s)[0]
                     and not s.spelling.startswith("operator")
                     or s.kind == Kind.CALL_EXPR]
            sides.sort(key=lambda side: self.extent(side))
        if len(sides) < 2:
            return None
        left, right = sides[0], sides[-1]
        (s1, e1), (s2, e2) = self.extent(left), self.extent(right)
        if s1 != start or e2 != end or e1 > s2:
            return None
        words = self.source.words(e1, s2)
        return (left, right, words[0]) if len(words) == 1 else None

    def binary(self, cursor, parent, start, end) -> str | None:
        found = self.operands(cursor)
        if not found:
            return None
        left, right, operator = found
        if operator in TURNED:
            return self.comparison(cursor, parent, left, right, operator)
        if operator in ("&&", "||") and cursor.kind == Kind.BINARY_OPERATOR:
            return self.logical(cursor, left, right, operator)
        return None

    def comparison(self, cursor, parent, left, right, operator) -> str | None:
        start, end = self.extent(cursor)
        plain = [self.source.plain(*self.extent(side))
                 for side in (left, right)]
        if None in plain:
            return None
        text = self.inner(cursor)
        made = False
        if operator in MOVED:
            after = f"{plain[0]} {MOVED[operator]} {plain[1]}"
            asks = self.fault("comparison", start, end, after)
            if asks:
                text, made = f"{asks} ? ({after}) : ({text})", True
            if parent.kind == Kind.FOR_STMT and operator == "<":
                after = f"{plain[0]} + 1 < {plain[1]}"
                last = self.fault("iteration", start, end, after)
                if last:
                    text, made = f"{last} ? ({after}) : ({text})", True
        asks = self.fault("comparison", start, end,
                          f"{plain[0]} {TURNED[operator]} {plain[1]}")
        if asks:
            return f"({asks} != static_cast<bool>({text}))"
        return f"({text})" if made else None

    def logical(self, cursor, left, right, operator) -> str | None:
        start, end = self.extent(cursor)
        ways = {"&&": "({} || ({}))", "||": "(!{} && ({}))"}
        pieces = []
        for side, other in ((left, right), (right, left)):
            s, e = self.extent(side)
            inside = self.joined(s, e, self.visit(side, cursor))
            bare = side
            while bare.kind in (Kind.UNEXPOSED_EXPR,):
                below = list(bare.get_children())
                if len(below) != 1 or self.extent(below[0]) != (s, e):
                    break
                bare = below[0]
            below = self.operands(bare) if bare.kind == Kind.BINARY_OPERATOR \
                else None
            if not (side is left and below and below[2] == operator):
                asks = self.fault("side", start, end,
                                  self.source.plain(*self.extent(other)))
                if asks:
                    inside = ways[operator].format(asks, inside)
            pieces.append((s, e, inside))
        return self.joined(start, end, pieces)

    def number(self, parent, start, end) -> str | None:
        text = self.source.text[start:end]
        match = re.fullmatch(r"(0[xX][0-9a-fA-F']+|[0-9']+)([uUlLzZ]*)", text)
        if not match or parent.kind in (Kind.DECL_REF_EXPR, Kind.ENUM_DECL,
                                        Kind.MEMBER_REF_EXPR):
            return None
        if self.source.token_before(start) in ("<", ",") and \
                self.source.next_token(end)[0] == ">":
            return None
        if self.compared():
            return None
        value = int(match[1].replace("'", ""),
                    8 if re.fullmatch("0[0-7']+", match[1]) else 0)
        others = [str(value + 1)] + ([str(value - 1)] if value else [])
        if str(value) in UNITS:
            others.append(UNITS[str(value)])
        out = text
        for other in others:
            asks = self.fault("constant", start, end, other + match[2])
            if asks:
                out = f"{asks} ? {other}{match[2]} : {out}"
        return f"({out})" if out != text else None

    def compared(self) -> bool:
        """One more on one side is what moving the comparison does."""
        parent = next((p for p in reversed(self.above)
                       if p.kind != Kind.UNEXPOSED_EXPR), None)
        if parent is None or parent.kind != Kind.BINARY_OPERATOR:
            return False
        found = self.operands(parent)
        return bool(found and found[2] in MOVED)

    def constant(self, cursor, parent, start, end) -> str | None:
        name = self.source.text[start:end]
        variable = cursor.referenced
        if not re.fullmatch(r"(\w+::)*k[A-Z]\w*", name) or \
                variable is None or variable.kind != Kind.VAR_DECL or \
                variable.type.get_canonical().kind.name not in INTEGERS or \
                self.compared() or \
                self.source.token_before(start) == "<":
            return None
        asks = self.fault("constant", start, end, f"{name} + 1")
        return f"({asks} ? tracefs_moved({name}) : {name})" if asks else None

    def choice(self, cursor) -> str | None:
        parts = [c for c in cursor.get_children() if c.kind.is_expression()]
        if len(parts) != 3:
            return None
        pieces = [self.condition(parts[0], cursor)]
        for part in parts[1:]:
            pieces += self.visit(part, cursor)
        return self.inner(cursor, pieces)

    def condition(self, cursor, parent):
        """A condition, negated unless its own operators give as much."""
        start, end = self.extent(cursor)
        inside = self.joined(start, end, self.visit(cursor, parent))
        bare = cursor
        while bare.kind in (Kind.UNEXPOSED_EXPR, Kind.PAREN_EXPR):
            below = list(bare.get_children())
            if len(below) != 1:
                break
            bare = below[0]
        found = self.operands(bare) if bare.kind in (
            Kind.BINARY_OPERATOR, Kind.CALL_EXPR) else None
        if found and (found[2] in TURNED or found[2] in ("&&", "||")) or \
                bare.kind == Kind.CXX_BOOL_LITERAL_EXPR or \
                self.in_macro(start, end):
            return start, end, inside
        plain = self.source.plain(start, end)
        asks = self.fault("condition", start, end, plain and f"!({plain})")
        if asks:
            inside = f"({asks} != static_cast<bool>({inside}))"
        return start, end, inside

    def call(self, cursor, parent, start, end) -> str | None:
        arguments = list(cursor.get_arguments())
        text = self.source.text[start:end]
        called = cursor.referenced
        if len(arguments) < 2 or not text.endswith(")") or \
                cursor.spelling in COMMUTE or called is not None and \
                called.kind == Kind.CONSTRUCTOR and parent.kind in (
                    Kind.VAR_DECL, Kind.CONSTRUCTOR):
            return None
        extents = [self.extent(a) for a in arguments]
        inside = None
        for i in range(len(arguments) - 1):
            (s1, e1), (s2, e2) = extents[i], extents[i + 1]
            if not start < s1 < e1 < s2 < e2 < end or \
                    self.source.words(e1, s2) != [","] or \
                    self.type_of(arguments[i]) != self.type_of(arguments[i + 1]):
                continue
            one, two = self.source.plain(s1, e1), self.source.plain(s2, e2)
            head = self.source.plain(start, s1)
            tail = self.source.plain(e2, end)
            if None in (one, two, head, tail) or one == two:
                continue
            after = f"{head}{two}, {one}{tail}"
            asks = self.fault("arguments", start, end, after)
            if asks:
                inside = inside or self.inner(cursor)
                inside = f"({asks} ? {after} : {inside})"
        return inside

    def type_of(self, cursor) -> str:
        name = cursor.type.get_canonical().spelling.rstrip("& ")
        return name if "*" in name else name.removeprefix("const ")

    # ---- statements

    def may_go(self, cursor) -> bool:
        bare = cursor
        while bare.kind == Kind.UNEXPOSED_EXPR:
            below = list(bare.get_children())
            if len(below) != 1:
                break
            bare = below[0]
        if bare.kind == Kind.CALL_EXPR:
            return bare.spelling not in FREE
        if bare.kind == Kind.BINARY_OPERATOR:
            found = self.operands(bare)
            return bool(found and found[2] == "=")
        if bare.kind == Kind.UNARY_OPERATOR:
            words = self.source.words(*self.extent(bare))
            return bool({"++", "--"} & {*words[:1], *words[-1:]})
        if bare.kind == Kind.RETURN_STMT:
            return not list(bare.get_children())
        return bare.kind in JUMPS or bare.kind in (
            Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.CXX_DELETE_EXPR,
            Kind.CSTYLE_CAST_EXPR, Kind.CXX_STATIC_CAST_EXPR)

    def ends_switch(self, cursor, past) -> bool:
        return cursor.kind == Kind.BREAK_STMT and \
            self.source.next_token(past)[0] == "}" and \
            len(self.above) > 1 and self.above[-2].kind == Kind.SWITCH_STMT

    def slot(self, cursor, parent, start, end, text) -> list:
        """A statement that may be left out, if it is one."""
        after, past = self.source.next_token(end)
        if parent.kind not in SLOTS or after != ";" or \
                not self.may_go(cursor) or \
                self.ends_switch(cursor, past) or \
                self.source.token_before(start) not in (
                    "{", "}", ";", ")", "else", ":", "do"):
            return [(start, end, text)]
        asks = self.fault("statement", start, past, "")
        if not asks:
            return [(start, end, text)]
        return [(start, past, f"{{ if (!{asks}) {text}; }}")]

    def whole(self, cursor) -> tuple[int, int]:
        """A statement with the semicolon that ends its last part."""
        start, end = self.extent(cursor)
        after, past = self.source.next_token(end)
        return start, past if after == ";" else end

    def statement(self, cursor):
        if cursor.kind == Kind.IF_STMT:
            return self.branch(cursor)
        if cursor.kind in LOOPS:
            return self.loop(cursor)
        if cursor.kind == Kind.RETURN_STMT:
            return self.returned(cursor)
        if cursor.kind == Kind.CASE_STMT:
            below = list(cursor.get_children())
            pieces = [p for child in below[1:]
                      for p in self.visit(child, cursor)]
            start, end = self.whole(cursor)
            return start, end, self.joined(start, end, pieces)
        if cursor.kind == Kind.DEFAULT_STMT:
            return self.otherwise(cursor)
        return None

    def controlled(self, cursor, ends):
        """Pieces of the parts of a statement; the part that one of the tokens
        `ends` ends is its condition."""
        pieces, seen = [], False
        parts = list(cursor.get_children())
        for part in parts:
            s, e = self.extent(part)
            after, _ = self.source.next_token(e)
            if part.kind.is_expression() and not seen and after in ends and \
                    not any(self.extent(other)[1] == e and other != part
                            for other in parts):
                seen = True
                pieces.append(self.condition(part, cursor))
            else:
                pieces += self.visit(part, cursor)
        return pieces

    def branch(self, cursor):
        start, end = self.whole(cursor)
        if self.source.words(start, end)[1:2] == ["constexpr"]:
            parts = list(cursor.get_children())[1:]
            pieces = [p for part in parts for p in self.visit(part, cursor)]
        else:
            pieces = self.controlled(cursor, (")",))
        return start, end, self.joined(start, end, pieces)

    def loop(self, cursor):
        start, end = self.whole(cursor)
        parts = list(cursor.get_children())
        if cursor.kind == Kind.WHILE_STMT:
            pieces = self.controlled(cursor, (")",))
        else:
            pieces = self.children(cursor)
        text = self.joined(start, end, pieces)
        body = parts[-1] if parts else None
        if cursor.kind not in (Kind.FOR_STMT, Kind.CXX_FOR_RANGE_STMT) or \
                body is None or body.kind != Kind.COMPOUND_STMT:
            return start, end, text
        turn = f"tracefs_turn_{start}"
        head = self.source.plain(start, self.extent(body)[0])
        leaves = []
        # Where nothing is done between turns the second would be the first.
        asks = not re.search(r"; ?\)$", head or "") and self.fault(
            "iteration", start, self.extent(body)[0],
            head and head + " without the first")
        if asks:
            leaves.append(f"{turn} == 1 && {asks}")
        if cursor.kind == Kind.CXX_FOR_RANGE_STMT:
            match = re.search(r" : ((?:\*|this ?-> ?)?[\w. ]+)\)$", head or "")
            if match:
                asks = self.fault("iteration", start, self.extent(body)[0],
                                  head + " without the last")
                if asks:
                    leaves.append(f"{asks} && {turn} == std::size({match[1]})")
        if not leaves:
            return start, end, text
        inside = self.joined(*self.extent(body), [
            p for p in pieces if p[0] > self.extent(body)[0]
            or p[:2] != self.extent(body)])
        whole = [p for p in pieces if p[:2] == self.extent(body)]
        if whole:
            inside = whole[0][2]
        skip = f"{{ ++{turn}; if (({') || ('.join(leaves)})) continue; "
        opened = skip + inside[1:]
        outer = [p for p in pieces if p[1] <= self.extent(body)[0]]
        text = self.joined(start, end, outer + [(*self.extent(body), opened)])
        return start, end, f"{{ std::size_t {turn} = 0; {text} }}"

    def otherwise(self, cursor):
        start, end = self.whole(cursor)
        text = self.joined(start, end, self.children(cursor))
        asks = self.fault("default", start, end, "default: break;")
        if asks:
            text = re.sub(r"^default\s*:", f"default: if ({asks}) break; ",
                          text, count=1)
        return start, end, text

    def returned(self, cursor):
        start, end = self.extent(cursor)
        values = [c for c in cursor.get_children() if c.kind.is_expression()]
        after, past = self.source.next_token(end)
        if not values or after != ";":
            return None
        value = values[0]
        s, e = self.extent(value)
        if self.in_macro(s, e):
            return start, end, self.source.text[start:end]
        plain = self.source.plain(s, e)
        returns = self.type_name(self.result.result_type) if self.result \
            else ""
        if self.type_name(value.type) == "bool" and returns == "bool":
            inside = self.condition(value, cursor)[2]
            return start, end, self.joined(start, end, [(s, e, inside)])
        inside = self.joined(s, e, self.visit(value, cursor))
        text = self.joined(start, end, [(s, e, inside)])
        success = self.success(returns, plain)
        if success is None:
            return start, end, text
        asks = self.fault("error", start, end, f"return {success}")
        if asks:
            text = f"{{ if ({asks}) return {success}; {text}; }}"
            return start, past, text
        return start, end, text

    def type_name(self, kind) -> str:
        return kind.get_canonical().spelling

    def success(self, returns, plain) -> str | None:
        """What a function of this type returns where nothing is wrong, if what
        it returns is an error."""
        if plain is None or self.result is None:
            return None
        whole = self.type_name(self.result.result_type)
        if returns == "tracefs::Status":
            return None if SUCCESS.fullmatch(
                plain.replace(" ", "")) else "::tracefs::Status()"
        is_error = re.search(r"\bStatus\b|\bstatus\b|Error\b|\berror\b", plain)
        if returns.startswith("tracefs::Result<") and is_error or \
                returns.startswith("std::optional<") and \
                plain.replace(" ", "") in ("std::nullopt", "{}"):
            if "(anonymous" in whole or "(lambda" in whole:
                words = self.source.words(self.result.extent.start.offset,
                                          self.result.location.offset)
                whole = " ".join(w for w in words
                                 if w not in ("static", "inline"))
            return f"tracefs_value<{whole}>()"
        if returns in ("int", "long", "ssize_t") and ERRNO.fullmatch(plain):
            return "0"
        return None
