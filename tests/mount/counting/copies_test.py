#!/usr/bin/env python3
"""Copies have two ends: what is recorded of cp, cat and copy_file_range(2) is
what strace saw, filters and rules match either end, and the bytes are there or
said to be left out."""

import base64
import os
import re
import shutil
import subprocess
import sys

from counting_suite import CountingSuite
from tracefs_harness import Skip, expect, expect_equal

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../golden"))
# pylint: disable=wrong-import-position
from independent_reader import crc32c  # noqa: E402

STREAM = '{ { %s } { stream = { %s } } { file = "%s" } }'
MIB = 1 << 20

# In the mount; each makes something below /out from something below /in.
WORK = r"""
cp in/small.txt out/by-cp.txt
cp in/large out/by-cp
cp --reflink=never in/large out/by-writes
cat in/small.txt > out/by-cat.txt
cp in/small.txt in/beside.txt
cp out/by-cp.txt in/back.txt
mv out/by-cat.txt out/moved.txt
ln in/small.txt out/linked.txt
"""

COPY = re.compile(r"copy_file_range\((\d+)<([^>]*)>, \[?(\w+)\]?.*?, "
                  r"(\d+)<([^>]*)>, .*\) = (\d+)$")


def prepare(suite, name):
    source = suite.folder(name, "source")
    for folder in ("in", "out"):
        os.mkdir(os.path.join(source, folder))
    with open(os.path.join(source, "in/small.txt"), "wb") as out:
        out.write(bytes(range(256)) * 300)
    with open(os.path.join(source, "in/large"), "wb") as out:
        out.write(b"large " * 500000)
    return source, suite.folder(name, "mnt")


def copies_of_strace(log, point):
    """(source, destination, bytes) of each call that copied something."""
    calls = []
    for line in open(log, encoding="utf-8", errors="replace"):
        call = COPY.search(line.strip())
        if call and call[6] != "0":
            calls.append((call[2].removeprefix(point),
                          call[5].removeprefix(point), int(call[6])))
    return calls


def has(event, test):
    """Whether one of the paths is below that folder, or so called."""
    return any(test(event[key]) for key in ("path", "path2") if key in event)


def key(event):
    return tuple(event.get(k) for k in ("ts", "dur", "op", "tid", "path",
                                        "path2", "ino", "result"))


def either_end(suite, visibility):
    if shutil.which("strace") is None:
        raise Skip("no strace")
    source, point = prepare(suite, visibility)
    large = os.stat(os.path.join(source, "in/large")).st_ino  # only copied from
    copied = lambda e: e["op"] == "copy_file_range"  # noqa: E731
    filters = [
        ("", lambda e: True),
        ("path ~ /out/**", lambda e: has(e, lambda p: p.startswith("/out/"))),
        ("path1 ~ /out/**", lambda e: e.get("path", "").startswith("/out/")),
        ("path2 ~ /out/**", lambda e: e.get("path2", "").startswith("/out/")),
        ("op = copy_file_range AND path2 ~ /out/**",
         lambda e: copied(e) and e["path2"].startswith("/out/")),
        ("op = copy_file_range AND name = by-cp",
         lambda e: copied(e) and e["path2"] == "/out/by-cp"),
        ("op = copy_file_range AND NOT ext = txt",
         lambda e: copied(e) and not has(e, lambda p: p.endswith(".txt"))),
        (f"op = copy_file_range AND inode = {large}",
         lambda e: copied(e) and large in (e["ino"], e["ino_out"])),
        (f"op = copy_file_range AND inode2 = {large}",
         lambda e: copied(e) and large == e["ino_out"]),
    ]
    traces = [suite.path(visibility, f"trace{i}") for i in range(len(filters))]
    log = suite.path(visibility, "strace.log")
    mount = suite.mount(
        source, point, *(STREAM % (f, "STR_ALL", t)
                         for (f, _), t in zip(filters, traces)),
        visibility=visibility)
    subprocess.run(["strace", "-f", "-y", "-o", log, "-e",
                    "trace=copy_file_range", "sh", "-ec", WORK],
                   cwd=point, check=True, timeout=120)
    mount.unmount()

    everything = suite.read(traces[0])
    seen = copies_of_strace(log, point)
    expect(len(seen) >= 4, f"strace saw {seen}")
    expect_equal([(e["path"], e["path2"], e["result"]) for e in everything
                  if copied(e) and e["result"] > 0], seen, "copies")
    for event in filter(copied, everything):
        opens = {e["fh"]: e for e in everything
                 if e["op"] in ("open", "create")}
        for fh, ino, path in (("fh", "ino", "path"),
                              ("fh_out", "ino_out", "path2")):
            expect_equal((event[ino], event[path]),
                         (opens[event[fh]]["ino"], opens[event[fh]]["path"]),
                         f"{path} of {event}")
        expect("offset_out" in event, event)
    for (text, wanted), trace in list(zip(filters, traces))[1:]:
        want = [key(e) for e in everything if wanted(e)]
        expect(want or "inode2" in text, f"nothing to find with {text}")
        # Begin times too: one operation has one in all traces.
        expect_equal([key(e) for e in suite.read(trace)], want,
                     f"captured by {text}")
        expect_equal([key(e) for e in
                      suite.dump(traces[0], only=text).events], want,
                     f"found in the trace by {text}")


def an_audit_alone_sees_copies(suite):
    """With no other tracer nothing else keeps the kernel from doing it alone."""
    for visibility in ("exact", "auto", "fast"):
        name = f"audit-{visibility}"
        source, point = prepare(suite, name)
        trace = suite.path(name, "trace")
        mount = suite.mount(
            source, point,
            STREAM % ("path ~ /out/** AND op != lookup", "STR_ALL", trace),
            visibility=visibility)
        subprocess.run(["cp", "in/large", "out/large"], cwd=point, check=True)
        mount.unmount()
        size = os.path.getsize(os.path.join(source, "in/large"))
        events = suite.read(trace)
        written = sum(e["result"] for e in events
                      if e["op"] in ("write", "copy_file_range"))
        expect_equal(written, size, f"bytes into /out, {visibility}: {events}")


def a_rule_sees_the_destination(suite):
    source, point = prepare(suite, "rule")
    trace = suite.path("rule", "trace")
    rule = ('when seen(op = copy_file_range AND path ~ /out/** by pid) '
            'then { alarm "exported" }')
    mount = suite.mount(
        source, point,
        '{ { op = copy_file_range } { stream = { STR_ALL }; %s } '
        '{ file = "%s" } }' % (rule, trace))
    subprocess.run(["cp", "in/small.txt", "in/other"], cwd=point, check=True)
    subprocess.run(["cp", "in/small.txt", "out/other"], cwd=point, check=True)
    mount.unmount()
    alarms = [e for e in suite.read(trace) if "alarm" in e]
    expect_equal([(e["alarm"], e.get("path2")) for e in alarms],
                 [("exported", "/out/other")], "alarms")


def bytes_or_word_that_they_are_left_out(suite):
    source, point = prepare(suite, "data")
    plain, data, checksum = (suite.path("data", t) for t in "pdc")
    wanted = "op = copy_file_range"
    mount = suite.mount(
        source, point,
        STREAM % (wanted, "STR_ALL", plain),
        STREAM % (wanted, "STR_ALL | STR_DATA", data),
        STREAM % (wanted, "STR_ALL | STR_DATA_CKSUM", checksum))
    lengths = (1, 4096, 70000, MIB, MIB + 1)
    with open(os.path.join(source, "in/large"), "rb") as content:
        large = content.read()
    for length in lengths:
        with open(os.path.join(point, "in/large"), "rb") as here, \
                open(os.path.join(point, f"out/{length}"), "wb") as there:
            done = os.copy_file_range(here.fileno(), there.fileno(), length, 5)
            expect_equal(done, length, "copied at once")
    mount.unmount()
    for length in lengths:
        with open(os.path.join(source, f"out/{length}"), "rb") as content:
            expect(content.read() == large[5:5 + length], "the copy itself")
    events = {t: [e for e in suite.read(t) if e["result"] > 0]
              for t in (plain, data, checksum)}
    for trace, of in events.items():
        expect_equal([e["result"] for e in of], list(lengths), trace)
    for event in events[plain]:
        expect(not {"data_b64", "data_crc", "data_left_out"} & set(event),
               event)
    for of, told in ((data, "data_b64"), (checksum, "data_crc")):
        for event in events[of]:
            size = event["result"]
            expect_equal((told in event, event.get("data_left_out", False)),
                         (size <= MIB, size > MIB), f"{size} bytes in {of}")
    for event in events[data][:-1]:
        content = base64.b64decode(event["data_b64"])
        expect(content == large[5:5 + event["result"]], "bytes")
    for event in events[checksum][:3]:
        expect_equal(event["data_crc"], crc32c(large[5:5 + event["result"]]),
                     "checksum")
    text = suite.command("tracefs-dump", data)
    expect_equal(text.count(" data_left_out"), 1, "text of the trace")


def what_would_have_to_be_waited_for_is_left_out(suite):
    """A file system in between can not say what it has in memory."""
    source, between = prepare(suite, "store")
    point = suite.folder("store", "above")
    data = suite.path("store", "data")
    store = suite.mount(source, between, STREAM % ("op = mknod", "STR_ALL",
                                                   suite.path("store", "none")))
    mount = suite.mount(
        between, point, STREAM % ("op = copy_file_range", "STR_ALL | STR_DATA",
                                  data))
    with open(os.path.join(point, "in/large"), "rb") as here, \
            open(os.path.join(point, "out/copy"), "wb") as there:
        done = os.copy_file_range(here.fileno(), there.fileno(), 4096, 5)
        expect_equal(done, 4096, "copied at once")
    mount.unmount()
    store.unmount()
    with open(os.path.join(source, "out/copy"), "rb") as content:
        expect(len(content.read()) == 4096, "the copy itself")
    [event] = [e for e in suite.read(data) if e["result"] > 0]
    expect("data_b64" not in event and event.get("data_left_out"), event)


def opens_agree_with_closes(suite):
    source, point = prepare(suite, "opens")
    light = suite.path("opens", "light")
    created = suite.path("opens", "created")
    mount = suite.mount(
        source, point,
        STREAM % ("op IN { open close }", "STR_ALL", light),
        STREAM % ("op = open AND flags ~ O_CREAT AND result >= 0",
                  "STR_ALL", created))
    subprocess.run(["sh", "-ec", WORK], cwd=point, check=True)
    os.close(os.open(os.path.join(point, "in"), os.O_TMPFILE | os.O_RDWR))
    mount.unmount()
    events = suite.read(light)
    opened = [e["fh"] for e in events if e["op"] != "release" and
              "errno" not in e]
    closed = [e["fh"] for e in events if e["op"] == "release"]
    expect_equal(sorted(opened), sorted(closed), "handles")
    expect_equal({e["op"] for e in events},
                 {"open", "create", "tmpfile", "release"}, "operations")
    expect_equal(sorted(e["fh"] for e in suite.read(created)),
                 sorted(e["fh"] for e in events
                        if e["op"] == "create" and "errno" not in e),
                 "created")


def main():
    suite = CountingSuite("copies", __doc__)
    for visibility in ("exact", "auto", "fast"):
        suite.run(f"either end, {visibility}", either_end, suite, visibility)
    for case in (an_audit_alone_sees_copies, a_rule_sees_the_destination,
                 bytes_or_word_that_they_are_left_out,
                 what_would_have_to_be_waited_for_is_left_out,
                 opens_agree_with_closes):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
