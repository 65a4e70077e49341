"""Which faults there are, and what of the syntax tree can have them."""

import dataclasses
import re

from syntax import cindex

Kind = cindex.CursorKind

KINDS = {
    "comparison": "a comparison moved by one or turned round",
    "condition": "a condition negated",
    "side": "one side of && or || dropped",
    "statement": "a statement without a value left out",
    "constant": "a number changed by one or by a unit, a flag turned",
    "arguments": "two arguments of one type swapped",
    "error": "an error returned as success",
    "iteration": "the first or last iteration left out",
    "default": "the default of a switch left out",
}
MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
# Another unit of the same thing: seconds for milliseconds, bytes for kilobytes.
UNITS = {"1000": "1", "1000000": "1000", "1000000000": "1000000",
         "1024": "1000", "3600": "60", "60": "1"}
# What gives the same whichever argument comes first, or what only costs time.
COMMUTE = {"min", "max", "swap", "abs_diff", "gcd", "iter_swap", "exchange"}
FREE = {"reserve", "shrink_to_fit", "prefetch", "__builtin_prefetch"}
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR,
             Kind.DESTRUCTOR, Kind.CONVERSION_FUNCTION}
SCOPES = {Kind.NAMESPACE, Kind.LINKAGE_SPEC, Kind.CLASS_DECL, Kind.STRUCT_DECL,
          Kind.UNEXPOSED_DECL, Kind.UNION_DECL}
TEMPLATES = {Kind.FUNCTION_TEMPLATE, Kind.CLASS_TEMPLATE,
             Kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION}
LOOPS = {Kind.FOR_STMT, Kind.WHILE_STMT, Kind.DO_STMT, Kind.CXX_FOR_RANGE_STMT}
SLOTS = LOOPS | {Kind.COMPOUND_STMT, Kind.IF_STMT, Kind.CASE_STMT,
                 Kind.DEFAULT_STMT, Kind.LABEL_STMT}
JUMPS = {Kind.BREAK_STMT, Kind.CONTINUE_STMT}
INTEGERS = {"INT", "UINT", "LONG", "ULONG", "LONGLONG", "ULONGLONG", "SHORT",
            "USHORT", "CHAR_S", "UCHAR", "SCHAR"}
# What is returned as a Status without an error, without its blanks.
SUCCESS = re.compile(r"\{\}|Status\{\}|Status(::Ok)?\(\)")
ERRNO = re.compile(r"-?\s*(errno|E[A-Z0-9]+|err|error|error_)|-\s*1")


@dataclasses.dataclass
class Point:
    number: int  # within its file
    kind: str
    function: str
    line: int
    last_line: int
    before: str
    after: str

    def key(self, file: str) -> str:
        """Names a fault for as long as its text stays, wherever its line is."""
        return f"{file}: {self.function}: {self.kind}: " \
               f"{self.before} -> {self.after}"
