"""Finds the examples of the documents."""

import json
import re
import shlex


class Example:
    """Text of a document that a reader may take as it is."""

    def __init__(self, place, text, kind):
        self.place = place  # "README.md:38"
        self.text = text
        self.kind = kind  # what it is, see kind_of

    @property
    def first(self):
        return self.text.splitlines()[0] if self.text.strip() else ""


COMMAND = re.compile(r"(tracefs(?:-\w+)?|umount|mount|make|jq|curl|ctest|strace|"
                     r"build/\S+|scripts/\w+|bench/\w+)( |$)")


def kind_of(text, language=""):
    lines = [line for line in text.splitlines() if line.strip()]
    if language in ("cpp", "c++", "diff"):
        return "code"
    if language == "sql":
        return language
    if any(line.startswith("$ ") for line in lines):
        return "session"
    if all(_is_json(line) for line in lines):
        return "json"
    if all(COMMAND.match(line) or line.startswith("    ") for line in lines):
        return "commands"
    if all(re.match(r"[\w.]+:\d+:\d+: ", line) for line in lines):
        return "messages"
    if re.match(r"\w+\s{2,}= ", lines[0]):
        return "grammar"
    if all(re.match(r"\d+: ", line) for line in lines):
        return "program"
    if re.match(r"(# .*\n)*(\w+ )?\{", text.lstrip()) and \
            not text.startswith("# nginx"):
        return "config"
    if re.match(r"aggregate = \{", lines[0]):
        return "entry"
    return "text"


def _is_json(line):
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def of_markdown(name, text):
    for match in re.finditer(r"^```([\w+]*)\n(.*?)^```", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 1
        yield Example(f"{name}:{line}", match[2], kind_of(match[2], match[1]))


def unescape(line):
    """A line of a manual page, as it is shown."""
    line = re.sub(r"\\f[BIRP]", "", line)
    return (line.replace("\\-", "-").replace("\\(aq", "'")
            .replace("\\(dq", '"').replace("\\e", "\\").replace("\\&", ""))


def of_manual(name, text):
    section = ""
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(".SH"):
            section = line[4:].strip().strip('"')
        elif line in (".nf", ".EX"):
            block = []
            start = number
        elif line in (".fi", ".EE") and block is not None:
            if section in ("EXAMPLES", "EXAMPLE"):
                body = "\n".join(block) + "\n"
                yield Example(f"{name}:{start}", body, kind_of(body))
            block = None
        elif block is not None:
            block.append(unescape(line))


def of_help(name, text):
    match = re.search(r"^Examples?:\n((?:  .*\n)+)", text, re.M)
    if match:
        body = re.sub(r"^  ", "", match[1], flags=re.M)
        yield Example(f"{name} --help", body, kind_of(body))


def commands_of(text, session):
    """(command, output that is shown below it) of a block."""
    result = []
    for line in text.splitlines():
        if session and line.startswith("$ "):
            result.append([line[2:], ""])
        elif not session and result and (line.startswith("    ") or
                                         result[-1][0].endswith("\\")):
            result[-1][0] += "\n" + line
        elif not session:
            if line.strip():
                result.append([line, ""])
        elif result:
            result[-1][1] += line + "\n"
    # Words to the reader behind a command: "  # why", or a column of its own.
    for one in result:
        one[0] = re.sub(r"\s{2,}#.*$", "", one[0])
        one[0] = re.sub(r"\s{6,}(the|one|what|small|peers|mounts|builds)\b.*$",
                        "", one[0])
    return [tuple(one) for one in result]


# --- options

def options_of_help(text):
    found = set()
    for line in text.splitlines():
        match = re.match(r"\s+((?:-\w )?\[ )?(-\w, )?(--[\w-]+)", line)
        if match:
            found.add(match[3])
    return found


def options_of_manual(text):
    """Options that a manual page explains: those in the tags of its lists."""
    found = set()
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if i > 0 and lines[i - 1] in (".TP", ".TQ"):
            found |= set(re.findall(r"--[a-z][\w-]*", unescape(line)))
    return found


def words(command):
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()
