#!/usr/bin/env python3
"""The aggregate driver through a mount: what it counts is what a stream beside
it records."""

import os
import time

from counting_suite import CountingSuite, expect_same_counts, tally, work
from tracefs_harness import expect, expect_equal

STREAM = '{ { %s } { stream = { STR_ALL } } { file = "%s" } }'
COUNT = '{ { %s } { aggregate = { %s } } { %s file = "%s" } }'


def aggregates(suite, trace, scope="total"):
    return [e for e in suite.read(trace) if e.get("scope") == scope]


def sums(records, key):
    return {key(r): [r["count"], r["errors"], r["bytes"]] for r in records}


def both(suite, name, by, key, filter_text="", output=""):
    """Works below a mount with a stream and an aggregate; both must agree."""
    source = suite.folder(name, "source")
    point = suite.folder(name, "mnt")
    stream = suite.path(name, "stream")
    count = suite.path(name, "count")
    mount = suite.mount(
        source, point, STREAM % (filter_text, stream),
        COUNT % (filter_text, f"by {by}; top 1000; values errors bytes; "
                 "memory 4M", output, count))
    work(point)
    mount.unmount()
    events = suite.read(stream)
    expect(len(events) > 200, f"only {len(events)} operations")
    counted = sums(aggregates(suite, count), key)
    expect_same_counts(counted, tally(events, key), by)
    return events


def path_of(event):
    """What has no name (O_TMPFILE) has no path once it is open."""
    return event.get("path", "")


def by_operation_and_user(suite):
    both(suite, "op", "op, uid", lambda e: (e["op"], e["uid"]))


def by_caller(suite):
    # A flush of a process that ends may lack its caller, in both the same.
    both(suite, "caller", "op, pid, cname",
         lambda e: (e["op"], e.get("pid"), e.get("comm")))


def by_place(suite):
    def extension(event):
        if "ext" in event:
            return event["ext"]
        name = os.path.basename(path_of(event))
        return name.rpartition(".")[2] if name.rfind(".") > 0 else ""

    both(suite, "place", "ext", extension)


def by_directory(suite):
    def top(event):
        if "dir" in event:
            return event["dir"]
        return "/".join(os.path.dirname(path_of(event)).split("/")[:2])

    both(suite, "directory", "dir(1)", top, 'op != statfs')


def by_path_and_name(suite):
    """As a trace has them, also what has no name (O_TMPFILE)."""
    # A file is released some time after it was closed, and may be renamed
    # just then.
    settled = "NOT op IN { statfs release }"
    both(suite, "path", "path, op", lambda e: (path_of(e), e["op"]),
         settled)
    both(suite, "name", "name",
         lambda e: e.get("name", os.path.basename(path_of(e))),
         settled)
    both(suite, "all-of-it", "dir",
         lambda e: e["dir"] if "dir" in e else os.path.dirname(path_of(e)),
         settled)


def a_filter_and_a_chain(suite):
    both(suite, "chain", "op", lambda e: e["op"], "op IN { read write open }",
         "async; compress alg = zstd;")


def periods_are_written_while_it_runs(suite):
    source = suite.folder("periods", "source")
    point = suite.folder("periods", "mnt")
    trace = suite.path("periods", "trace")
    mount = suite.mount(source, point,
                        COUNT % ("", "by op; every 1s", "", trace))
    end = time.monotonic() + 2.6
    while time.monotonic() < end:
        os.listdir(point)
        time.sleep(0.01)
    while_running = [e for e in suite.dump(trace).events
                     if e.get("scope") == "period"]
    expect(len({e["ts"] for e in while_running}) >= 2,
           f"periods seen while it ran: {len(while_running)}")
    mount.unmount()
    periods = aggregates(suite, trace, "period")
    totals = aggregates(suite, trace)
    for total in totals:
        expect_equal(sum(p["count"] for p in periods if p["op"] == total["op"]),
                     total["count"], total["op"])
    ends = sorted({(p["from"], p["ts"]) for p in periods})
    for (_, one_end), (next_begin, _) in zip(ends, ends[1:]):
        expect(next_begin >= one_end, "periods overlap")


def a_wrong_clause_is_refused_by_check(suite):
    config = suite.config("{ { } { aggregate = { by op;\n  evry 10s } } "
                          '{ file = "x" } }')
    result = suite.tool("tracefs-mount", "--check", config)
    expect_equal(result.returncode, 2, "status")
    expect(":2:3: aggregate: 'evry' is no clause; did you mean 'every'?"
           in result.stderr, result.stderr)


def main():
    suite = CountingSuite("aggregate", __doc__)
    for case in (by_operation_and_user, by_caller, by_place, by_directory,
                 by_path_and_name, a_filter_and_a_chain,
                 periods_are_written_while_it_runs,
                 a_wrong_clause_is_refused_by_check):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
