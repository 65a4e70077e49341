#!/usr/bin/env python3
"""Files with several names: each operation is recorded by the name that was used
for it, in every visibility and over both transports. The oracle is this program,
which knows by which name it opened what."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Suite, expect, expect_equal  # noqa: E402

HANDLED = ("open", "read", "write", "fsync", "flush", "release", "fallocate")


def made_below(source):
    os.makedirs(os.path.join(source, "d", "e"))
    with open(os.path.join(source, "d", "b"), "wb") as out:
        out.write(b"x" * 9000)
    os.link(os.path.join(source, "d", "b"), os.path.join(source, "d/e/c"))


def told(events):
    """[(path, [operations])] of each open, in order."""
    opens = {}
    for event in events:
        if event["op"] in HANDLED and "fh" in event:
            opens.setdefault(event["fh"], []).append(event)
    for fh, of in opens.items():
        paths = {event.get("path") for event in of}
        expect(len(paths) == 1, f"handle {fh} has several paths: "
               f"{[(e['op'], e.get('path')) for e in of]}")
    return [of[0]["path"] for _, of in sorted(opens.items())]


def turns(suite, visibility, transport):
    """Opened by one name and the other in turn, at once and with both open."""
    used = []
    with suite.mounted("", visibility, transport) as (source, point, mount):
        made_below(source)

        def open_by(name):
            used.append(name)
            return open(point + name, "r+b", buffering=0)

        for i in range(20):
            with open_by(("/d/b", "/d/e/c")[i % 2]) as file:
                file.read(10)
        with open_by("/d/b") as one, open_by("/d/e/c") as other:
            for i in range(5):
                for file in (one, other):
                    file.seek(i)
                    file.write(b"y")
                    file.read(3)
                    os.fsync(file.fileno())
        # Somebody looks while it is open.
        with open_by("/d/b") as file:
            os.stat(point + "/d/e/c")
            file.read(10)
        for name in ("/d/b", "/d/e/c", "/d/b"):
            os.chmod(point + name, 0o640)
    expect_equal(told(mount.events), used, "opens, by name")
    expect_equal([e["path"] for e in mount.events if e["op"] == "setattr"],
                 ["/d/b", "/d/e/c", "/d/b"], "changes of attributes")


def made_meanwhile(suite, visibility, transport):
    """A second name is given to a file that is open by the first, which is then
    used on; that name is changed, and taken away."""
    with suite.mounted("", visibility, transport) as (source, point, mount):
        with open(os.path.join(source, "a"), "wb") as out:
            out.write(b"x" * 100)
        with open(point + "/a", "rb", buffering=0) as file:
            os.link(point + "/a", point + "/b")
            file.read(1)  # /a
            with open(point + "/b", "rb", buffering=0) as other:
                other.read(2)  # /b
                file.read(3)  # /a
                os.rename(point + "/a", point + "/z")
                file.read(4)  # /z
                other.read(5)  # /b
                os.unlink(point + "/z")
                other.read(6)  # /b
    reads = [(e["path"], e["result"]) for e in mount.events
             if e["op"] == "read"]
    expect_equal(reads, [("/a", 1), ("/b", 2), ("/a", 3), ("/z", 4), ("/b", 5),
                         ("/b", 6)], "reads")


def first_name_goes_on(suite, visibility, transport):
    """After link(2) it is the old name by which the file is known."""
    with suite.mounted("op IN { open read link }", visibility,
                       transport) as (source, point, mount):
        with open(os.path.join(source, "a"), "wb") as out:
            out.write(b"x" * 100)
        with open(point + "/a", "rb") as file:
            file.read(1)
        os.link(point + "/a", point + "/b")
        with open(point + "/a", "rb") as file:
            file.read(1)
        with open(point + "/b", "rb") as file:
            file.read(1)
    expect_equal([e["path"] for e in mount.events if e["op"] == "open"],
                 ["/a", "/a", "/b"], "opens")


def at_once(suite, visibility, transport):
    """Two threads use a name each at the same time: whatever an open was told
    by, what is done through it is told by, too."""
    with suite.mounted("", visibility, transport) as (source, point, mount):
        made_below(source)

        def use(name):
            for i in range(100):
                with open(point + name, "r+b", buffering=0) as file:
                    file.read(10)
                    file.seek(i)
                    file.write(b"y")

        threads = [threading.Thread(target=use, args=(name,))
                   for name in ("/d/b", "/d/e/c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expect_equal(len(told(mount.events)), 200, "opens")


def main():
    suite = Suite("links", __doc__)
    suite.run_everywhere({"in turn": turns, "at once": at_once,
                          "made meanwhile": made_meanwhile,
                          "the first name goes on": first_name_goes_on})
    suite.finish()


if __name__ == "__main__":
    main()
