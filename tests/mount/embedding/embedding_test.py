#!/usr/bin/env python3
"""A trace says how it was recorded: what tracefs-dump --extract gives back
records the same again."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../support"))

from tracefs_harness import Suite, expect, expect_equal  # noqa: E402

# In place of FOLDER: where the traces go.
CONFIG = """# Two tracers, one with a name, and a filter of several lines.
changes { { op IN { write rename unlink }  # what changes files
   AND cuid = 0 }
 { stream = { STR_POST_OP | STR_PID | STR_UID | STR_TIMESTAMP } }
 { compress alg=zstd; file = "FOLDER/changes.trace" buf = 64k } }
{ { } { stream = { STR_ALL } } { file = "FOLDER/all.trace" } }
"""
TRACES = ("changes.trace", "all.trace")


def work(point):
    for name in ("a", "b'c"):
        with open(os.path.join(point, name), "w", encoding="ascii") as file:
            file.write("text")
    os.rename(os.path.join(point, "a"), os.path.join(point, "d"))
    os.unlink(os.path.join(point, "d"))


def record(suite, base, config):
    source = suite.folder(base, "source it's")
    point = suite.folder(base, "mnt")
    mount = suite.mount_command(
        [os.path.join(suite.bin, "tracefs-mount"), source, point, "--config",
         config, "--foreground", "--transport", "dev"], point)
    work(point)
    mount.unmount()


def extracted(suite, trace, what, status=0):
    return suite.command("tracefs-dump", "--extract", what, trace,
                         status=status)


def again(suite):
    traces = [suite.path("out", name) for name in TRACES]
    suite.folder("out")
    first = suite.path("first.conf")
    with open(first, "w", encoding="utf-8") as out:
        out.write(CONFIG.replace("FOLDER", suite.path("out")))
    record(suite, "first", first)
    configs = [extracted(suite, trace, "config") for trace in traces]
    operations = [[event.get("op") for event in suite.read(trace)]
                  for trace in traces]
    expect("write" in operations[0] and "lookup" in operations[1],
           f"too little was recorded: {operations}")

    second = suite.path("second.conf")
    with open(second, "w", encoding="utf-8") as out:
        out.write("".join(configs))
    for trace in traces:
        os.remove(trace)
    record(suite, "second", second)
    for trace, config, before in zip(traces, configs, operations):
        expect_equal(extracted(suite, trace, "config"), config,
                     "the config of what was recorded again")
        after = [event.get("op") for event in suite.read(trace)]
        # The kernel asks for other things as it likes.
        expect_equal([op for op in after if op in ("write", "unlink")],
                     [op for op in before if op in ("write", "unlink")],
                     "what was recorded again")
    expect("IN" in extracted(suite, traces[0], "filter"), "no filter")
    expect(extracted(suite, traces[0], "dag").startswith("0: "), "no DAG")


def command_and_environment(suite):
    trace = suite.path("said.trace")
    os.environ["TZ"] = "Europe/Vienna"
    os.environ["TRACEFS_TEST_SECRET"] = "do-not-keep-me"
    config = suite.path("said.conf")
    with open(config, "w", encoding="utf-8") as out:
        out.write('{ { } { stream = { STR_ALL } } { file = "%s" } }' % trace)
    record(suite, "said", config)
    command = extracted(suite, trace, "command")
    expect(command.startswith(os.path.join(suite.bin, "tracefs-mount") + " '"),
           f"not the command that recorded: {command}")
    expect("source it'\\''s'" in command, f"not quoted for a shell: {command}")
    environment = extracted(suite, trace, "environment")
    expect("TZ=Europe/Vienna\n" in environment, environment)
    header = suite.command("tracefs-dump", "--header", trace)
    expect("do-not-keep-me" not in header, "a secret was kept")
    versions = extracted(suite, trace, "versions")
    expect("libfuse 3." in versions and "zstd 1." in versions, versions)


def anonymised(suite):
    trace = suite.path("said.trace")
    hidden = suite.path("hidden.trace")
    suite.command("tracefs-keygen", "secret", suite.path("anon.key"))
    suite.command("tracefs-anon", "--policy", "research", "--keys",
                  suite.path("anon.key"), trace, hidden)
    for what in ("config", "command", "environment"):
        extracted(suite, hidden, what, status=1)


def main():
    suite = Suite("embedding", __doc__)
    suite.run("what is extracted records the same again", again, suite)
    suite.run("command, environment and versions are kept",
              command_and_environment, suite)
    suite.run("an anonymised trace says nothing of it", anonymised, suite)
    suite.finish()


if __name__ == "__main__":
    main()
