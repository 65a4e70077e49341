#!/usr/bin/env python3
"""A specification in Markdown as a manual page, so that the two cannot differ.

Knows what the specifications use: headings, paragraphs, lists, tables (a
definition for each row), code, emphasis and links. Links to specifications that
are pages themselves become their names."""

import argparse
import os
import re
import sys

PAGES = {"REFERENCE.md": "tracefs.conf(5)", "LANGUAGE.md": "tracefs-filter(7)",
         "FORMAT.md": "tracefs-trace(5)"}
# Where the package keeps what the sources have elsewhere.
PLACES = {"samples/": "/usr/share/doc/tracefs/samples"}


def escape(text):
    return text.replace("\\", "\\e")


def plain(text):
    """Roff of a line without markup."""
    return escape(text).replace("-", "\\-").replace("`", "\\(ga").replace(
        "'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti").replace(
            '"', "\\(dq")


def link(match):
    text, target = match.groups()
    name = os.path.basename(target.split("#")[0])
    if name in PAGES and (text.endswith(".md") or text == "how"):
        return PAGES[name]
    for end, place in PLACES.items():
        if target.rstrip("/").endswith(end.rstrip("/")):
            return place
    return text


def inline(text):
    """Roff of a paragraph with markup."""
    text = re.sub(r"\[([^\]]*)\]\(([^)\s]*)\)", link, text)
    parts = re.split(r"(`[^`]*`|\*\*[^*]+\*\*|(?<!\w)\*[^*\s][^*]*\*(?!\w))",
                     text)
    made = []
    for part in parts:
        if len(part) > 1 and part[0] == "`" == part[-1]:
            name = part[1:-1].replace("\\|", "|")
            name = PAGES.get(os.path.basename(name), name)
            made.append("\\fB" + plain(name) + "\\fR")
        elif part.startswith("**") and len(part) > 4:
            made.append("\\fB" + plain(part[2:-2]) + "\\fR")
        elif part.startswith("*") and part.endswith("*") and len(part) > 2:
            made.append("\\fI" + plain(part[1:-1]) + "\\fR")
        else:
            made.append(escape(part.replace("\\|", "|").replace("\\_", "_")))
    return "".join(made)


def guarded(line):
    """A line of text that roff does not take for a request."""
    return "\\&" + line if line[:1] in (".", "'") else line


def wrapped(text, columns=79):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > columns:
            lines.append(guarded(line))
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        lines.append(guarded(line))
    return lines


def cells(line):
    return [cell.strip() for cell in
            re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def table(rows):
    head, out = cells(rows[0]), []
    for row in rows[2:]:
        have = cells(row)
        out += [".TP", guarded(inline(have[0]) or "\\(en")]
        said = []
        for i, cell in enumerate(have[1:], 1):
            label = head[i] if i < len(head) and len(head) > 2 else ""
            if cell:
                said.append((inline(label) + ": " if label else "") +
                            inline(cell))
        out += wrapped("; ".join(said)) or ["\\&"]
    return out + [".PP"]


def body(lines):
    out, i = [], 0
    begun = False  # something was said since the last heading

    def paragraph():
        if begun:
            out.append(".PP")

    while i < len(lines):
        line = lines[i]
        if line.startswith("```"):
            end = next(j for j in range(i + 1, len(lines))
                       if lines[j].lstrip().startswith("```"))
            paragraph()
            out.append(".RS 4\n.nf")
            out += [guarded(plain(text)) if text.strip() else ""
                    for text in lines[i + 1:end]]
            out.append(".fi\n.RE")
            i, begun = end + 1, True
        elif line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            title = plain(line[level:].strip().replace("`", ""))
            out.append(f".SH {title.upper()}" if level <= 2
                       else f".SS {title}")
            i, begun = i + 1, False
        elif line.startswith("|"):
            end = i
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            out += table(lines[i:end])
            i, begun = end, False
        elif re.match(r"\s*([-*]|\d+\.) ", line):
            mark = re.match(r"\s*([-*]|\d+\.) ", line)
            text = [line[mark.end():]]
            i += 1
            while i < len(lines) and lines[i].startswith("  ") and not re.match(
                    r"\s*([-*]|\d+\.) |\s*```", lines[i]):
                text.append(lines[i].strip())
                i += 1
            sign = mark.group(1)
            out.append(".IP \\(bu 2" if sign in "-*" else f'.IP "{sign}" 4')
            out += wrapped(inline(" ".join(text)))
            begun = True
        elif not line.strip():
            i += 1
        elif line.lstrip().startswith("```"):
            # Code that belongs to a list.
            end = next(j for j in range(i + 1, len(lines))
                       if lines[j].lstrip().startswith("```"))
            out.append(".RS 4\n.nf")
            out += [guarded(plain(text.strip())) if text.strip() else ""
                    for text in lines[i + 1:end]]
            out.append(".fi\n.RE")
            i, begun = end + 1, True
        elif line.startswith("<!--"):
            i += 1
        else:
            text = []
            while i < len(lines) and lines[i].strip() and not re.match(
                    r"#|```|\||([-*]|\d+\.) ", lines[i]):
                text.append(lines[i].strip())
                i += 1
            paragraph()
            out += wrapped(inline(" ".join(text)))
            begun = True
    while out and out[-1] == ".PP":
        out.pop()
    # A paragraph before a heading is none.
    return [text for at, text in enumerate(out)
            if text != ".PP" or not out[at + 1].startswith((".S", ".TP", ".IP",
                                                            ".PP"))]


def page(options):
    with open(options.source, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("# "))
    title = options.name.upper()
    return "\n".join([
        f'.TH {title} {options.section} "{options.date}" '
        f'"Tracefs {options.version}" "{options.manual}"',
        ".SH NAME", f"{options.name} \\- {options.about}", ".SH DESCRIPTION",
        *body(lines[first + 1:]), ".SH SEE ALSO",
        *[f".BR {name} ({section})" + ("," if more else "")
          for name, section, more in see_also(options.see)], ""])


def see_also(names):
    for i, name in enumerate(names):
        word, section = name.rstrip(")").split("(")
        yield word, section, i + 1 < len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("name", "section", "about", "manual", "version", "date"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--see", type=lambda text: text.split(","))
    parser.add_argument("source")
    parser.add_argument("output")
    options = parser.parse_args()
    text = page(options)
    # What is no page lies beside them, not in a source tree.
    text = re.sub(r"(?:\w+/)*([A-Z]+\.md)\b",
                  lambda m: PAGES.get(m[1], "/usr/share/doc/tracefs/" + m[1]),
                  text)
    text = re.sub(r"\bdocs/([\w-]+\.md)\b", r"/usr/share/doc/tracefs/\1", text)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
