"""Adds the field and the operation of docs/extending.md to a copy of the source
by that page alone, and looks at what comes out of it."""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import make_additions  # noqa: E402

PAGE = make_additions.PAGE
PROGRAM = "docs/examples/additions.cc"
SECTIONS = ("A field", "An operation")
COPIED = ("tracefs", "drivers/assembly", "anonymize", "docs/examples")
# What knows fields and operations, between an event and the lines it becomes.
LINKED = """
tracefs/event/event.cc tracefs/event/field.cc tracefs/event/op.cc
tracefs/event/process_record.cc
tracefs/format/aggregate.cc tracefs/format/alarm.cc
tracefs/format/block_decoder.cc tracefs/format/block_info.cc
tracefs/format/block_names.cc tracefs/format/block_record.cc
tracefs/format/message_cursor.cc tracefs/format/names.cc
tracefs/format/process_message.cc
tracefs/format/report.cc tracefs/format/state_message.cc
tracefs/format/trace_header.cc
tracefs/pipeline/block_builder.cc drivers/assembly/stream.cc
drivers/assembly/touched_inodes.cc
tracefs/feed/aggregate_lines.cc tracefs/feed/alarm_lines.cc
tracefs/text/duration.cc tracefs/text/escape.cc
tracefs/feed/feed_parts.cc tracefs/text/flag_names.cc
tracefs/text/json_writer.cc tracefs/export/jsonl.cc
tracefs/text/output_buffer.cc tracefs/feed/process_lines.cc
tracefs/export/text.cc tracefs/text/time_text.cc
anonymize/fields.cc
""".split() + [PROGRAM]
# Compiled, but not run: that takes a mount.
HANDLERS = ["tracefs/fs/io.cc", "tracefs/fs/file_system.cc"]
EXPECTED = """\
--:--:--              - -                    -     read     priority=4
{"op":"read","tracer":0,"priority":4}
--:--:--              - -                    -     bmap     offset=3 size=4096
{"op":"bmap","offset":3,"size":4096,"tracer":0}
ARG_PRIORITY: request
MSG_READ: priority 1
MSG_BMAP: priority 0
"""


class Failure(Exception):
    pass


def apply(top, text):
    """Makes the changes of a section; returns the files it changes."""
    changed = set()
    for block in re.findall(r"^```diff\n--- (.*?)^```", text, re.M | re.S):
        name, _, hunk = block.partition("\n")
        path = os.path.join(top, name)
        with open(path, encoding="utf-8") as file:
            source = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(make_additions.apply(source, hunk, name))
        changed.add(name)
    return changed


def check_table(title, text, changed):
    """Each file that is changed is listed, and what is listed exists."""
    listed = set()
    for row in re.findall(r"^\| (`.*?) \|", text, re.M):
        folder = ""
        for name in re.findall(r"`(.*?)`", row):
            if not os.path.exists(os.path.join(folder, name)):
                raise Failure(f"{PAGE}, {title}: no file {name}")
            listed.add(os.path.join(folder, name))
            folder = os.path.dirname(name)
    for name in changed:
        if name not in listed and os.path.dirname(name) + "/" not in listed:
            raise Failure(f"{PAGE}, {title}: {name} is not in its table")


def run(command, top):
    made = subprocess.run(command, cwd=top, capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        raise Failure(f"{' '.join(command)}\n{made.stderr}")
    return made.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--library", action="append", required=True)
    parser.add_argument("fuse", nargs="*", help="flags to compile handlers")
    args = parser.parse_args()
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    compiler = [args.compiler, "-std=c++20", "-O0", "-Werror=switch", "-I."]
    if shutil.which("ccache"):
        compiler.insert(0, "ccache")
    with tempfile.TemporaryDirectory() as top:
        for folder in COPIED:
            shutil.copytree(folder, os.path.join(top, folder))
        for title in SECTIONS:
            text = make_additions.section_of(page, title)
            check_table(title, text, apply(top, text))
        commands = [compiler + ["-c", name, "-o", name + ".o"]
                    for name in LINKED]
        commands += [compiler + args.fuse + ["-fsyntax-only", name]
                     for name in HANDLERS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda command: run(command, top), commands))
        # A library has the files of a folder as one, these among them.
        run([args.compiler, "-Wl,-z,muldefs", "-o", "additions"] +
            [name + ".o" for name in LINKED] + args.library, top)
        shown = run(["./additions"], top)
        if shown != EXPECTED:
            raise Failure(f"It prints\n{shown}and not\n{EXPECTED}")


if __name__ == "__main__":
    main()
