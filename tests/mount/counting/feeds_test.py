#!/usr/bin/env python3
"""feed = ocsf | ecs | cef: what files and FIFOs get is what
a native trace beside it has, as the published schemas want it."""

import collections
import json
import os
import threading

from counting_suite import CountingSuite, work  # finds the harness
import schemas
from tracefs_harness import expect, expect_equal

TRACER = '{ { %s } { stream = { STR_ALL } } { %s } }'
# Failures are events, too; names of every kind.
NAMES = ["plain.c", "two words", 'quo"te', "back\\slash", "new\nline", "bar|bar",
         "eq=ual a=b", "n\u00e4me", os.fsdecode(b"\xff\xfe"), "]square"]


def awkward_work(point):
    work(point, files=12)
    for name in NAMES:
        path = os.path.join(point, name)
        with open(path, "wb", buffering=0) as out:
            out.write(b"x" * 10)
        os.rename(path, path + ".2")
        os.chmod(path + ".2", 0o4755)
        os.unlink(path + ".2")


def printable(path):
    """As the feeds write what is not UTF-8."""
    try:
        path.encode()
        return path
    except UnicodeEncodeError:
        # Backslashes and line ends are escaped with it.
        raw = os.fsencode(path)
        return "".join(chr(b) if 0x20 <= b < 0x7f and b != 0x5c
                       else "\\\\" if b == 0x5c else "\\x%02x" % b
                       for b in raw)


def wanted(events):
    return collections.Counter(settle((
        e["op"], printable(e["path2"] if e["op"] == "rename" else e["path"]),
        e.get("errno"))) for e in events if "path" in e)


def settle(key):
    """The kernel sends a release when it likes: one tracer may still find the
    file's old name, another the new one."""
    return (key[0], "", key[2]) if key[0] == "release" else key


OF_OCSF = (json.loads, schemas.check_ocsf, lambda e: (
    e["unmapped"]["op"], e["file_result" if e["activity_id"] == 5 else "file"]
    .get("path"), e.get("status_code")))
OF_ECS = (json.loads, schemas.check_ecs, lambda e: (
    e["event"]["action"], e["file"].get("path"),
    e.get("error", {}).get("code")))
OF_CEF = (lambda line: line, schemas.check_cef, lambda line: (
    lambda p: (p["act"], p.get("filePath"), p.get("reason")))(
        schemas.parse_cef(line)[1]))
FEEDS = {"ocsf": OF_OCSF, "ecs": OF_ECS, "cef": OF_CEF}


def got(lines, feed):
    read, check, key = FEEDS[feed]
    counter = collections.Counter()
    for line in lines:
        event = read(line)
        check(event)
        if key(event)[1] is not None:
            counter[settle(key(event))] += 1
    return counter


def compare(have, want, what):
    missing = want - have
    extra = have - want
    expect(not missing and not extra,
           f"{what}: missing {list(missing.items())[:5]}, "
           f"too many {list(extra.items())[:5]}")
    expect(sum(have.values()) > 150, f"{what}: only {sum(have.values())}")


def run(suite, name, output, also=lambda: None):
    """Works below a mount with a native tracer and one with `output`."""
    source = suite.folder(name, "source")
    point = suite.folder(name, "mnt")
    native = suite.path(name, "native")
    mount = suite.mount(source, point, TRACER % ("", f'file = "{native}"'),
                        TRACER % ("", output))
    also()
    awkward_work(point)
    mount.unmount()
    return wanted(suite.read(native))


def a_file_gets_events(suite):
    for feed in FEEDS:
        path = suite.path(f"{feed}.events")
        want = run(suite, f"file-{feed}", f'async; file = "{path}" feed = {feed}')
        with open(path, encoding="utf-8", newline="\n") as lines:
            compare(got((l[:-1] for l in lines), feed), want, feed)


def dump_makes_the_same_events(suite):
    source = suite.folder("dump", "source")
    point = suite.folder("dump", "mnt")
    trace = suite.path("dump", "trace")
    mount = suite.mount(source, point, TRACER % ("", f'file = "{trace}"'))
    awkward_work(point)
    mount.unmount()
    want = wanted(suite.read(trace))
    for feed in FEEDS:
        result = suite.command("tracefs-dump", "--format", feed, trace)
        expect_equal(result.returncode, 0, result.stderr)
        compare(got(result.stdout.split("\n")[:-1], feed), want, feed)


def a_fifo_gets_events(suite):
    path = suite.path("events.fifo")
    os.mkfifo(path)
    data = []

    def read():
        with open(path, "rb") as fifo:
            data.append(fifo.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    want = run(suite, "fifo", f'fifo = "{path}" feed = cef when_full = block')
    reader.join(20)
    lines = data[0].decode().split("\n")
    expect_equal(lines.pop(), "", "the last line")
    compare(got(lines, "cef"), want, "fifo")


def wrong_configs_are_refused(suite):
    cases = {
        'compress; file = "x" feed = cef':
            ":1:35: 'compress' changes the blocks that feed = cef has to read",
        'file = "x" feed = cfe': "one of native ocsf ecs cef",
        'file = "x" feed = cef rotate_size = 1M': "a feed is not rotated",
    }
    for output, text in cases.items():
        config = suite.config(TRACER % ("", output))
        result = suite.command("tracefs-mount", "--check", config)
        expect_equal(result.returncode, 2, f"{output}: {result.stderr}")
        expect(text in result.stderr, f"{output}: {result.stderr}")
    config = suite.config('{ { } { aggregate = { by op } } '
                          '{ file = "x" feed = ecs } }')
    result = suite.command("tracefs-mount", "--check", config)
    expect("feed = ecs has no place for counts" in result.stderr,
           result.stderr)


def main():
    suite = CountingSuite("feeds", __doc__)
    for case in (a_file_gets_events, dump_makes_the_same_events,
                 a_fifo_gets_events, wrong_configs_are_refused):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
