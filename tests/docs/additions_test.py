"""Adds the field, the operation and the kind of descriptor of docs/extending.md to
a copy of the source by that page alone, and looks at what comes out of it."""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import make_additions  # noqa: E402

PROGRAM = "docs/examples/additions.cc"
SECTIONS = ("A field", "An operation", "A kind of descriptor")
COPIED = ("tracefs", "drivers", "filters", "config", "anonymize", "docs/examples")
# What knows fields and operations, between an event and the lines it becomes.
LINKED = """
tracefs/event/event.cc tracefs/event/field.cc tracefs/event/op.cc
tracefs/event/process_record.cc
tracefs/format/aggregate.cc tracefs/format/alarm.cc
tracefs/format/block_decoder.cc tracefs/format/block_info.cc
tracefs/format/block_names.cc tracefs/format/block_record.cc
tracefs/format/embedded_file.cc tracefs/format/index_piece.cc
tracefs/format/message_cursor.cc tracefs/format/names.cc
tracefs/format/process_message.cc
tracefs/format/report.cc tracefs/format/state_message.cc
tracefs/format/trace_header.cc
tracefs/pipeline/block_builder.cc tracefs/pipeline/left_blocks.cc
tracefs/survive/area.cc drivers/assembly/stream.cc
drivers/assembly/touched_inodes.cc
tracefs/feed/aggregate_lines.cc tracefs/feed/alarm_lines.cc
tracefs/text/cell_width.cc tracefs/text/duration.cc tracefs/text/escape.cc
tracefs/feed/feed_parts.cc tracefs/text/flag_names.cc
tracefs/text/json_writer.cc tracefs/export/jsonl.cc
tracefs/text/output_buffer.cc tracefs/feed/process_lines.cc
tracefs/export/text.cc tracefs/text/time_text.cc
anonymize/fields.cc
""".split() + [PROGRAM]
# Compiled, but not run: that takes a mount.
HANDLERS = ["tracefs/fs/io.cc", "tracefs/fs/file_system.cc"]
# Likewise: it has a case for each kind of descriptor.
OPENER = "tracefs/tools/ctl/request.cc"
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


def put(top, files):
    for name, text in files.items():
        with open(os.path.join(top, name), "w", encoding="utf-8") as file:
            file.write(text)


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
    compiler = [args.compiler, "-std=c++20", "-O0", "-Werror=switch", "-I."]
    if shutil.which("ccache"):
        compiler.insert(0, "ccache")
    with tempfile.TemporaryDirectory() as top:
        for folder in COPIED:
            shutil.copytree(folder, os.path.join(top, folder))
        put(top, make_additions.additions(SECTIONS))
        commands = [compiler + ["-c", name, "-o", name + ".o"]
                    for name in LINKED]
        commands += [compiler + args.fuse + ["-fsyntax-only", name]
                     for name in HANDLERS + [OPENER]]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda command: run(command, top), commands))
        # A library has the files of a folder as one, these among them.
        run([args.compiler, "-Wl,-z,muldefs", "-o", "additions"] +
            [name + ".o" for name in LINKED] + args.library, top)
        shown = run(["./additions"], top)
        if shown != EXPECTED:
            raise Failure(f"It prints\n{shown}and not\n{EXPECTED}")
        # Who forgets the case is told.
        put(top, {OPENER: make_additions.read(OPENER)})
        try:
            run(compiler + ["-fsyntax-only", OPENER], top)
        except Failure as failure:
            if "kFifo" in str(failure):
                return
        raise Failure(f"{OPENER} compiles without the new kind")


if __name__ == "__main__":
    main()
