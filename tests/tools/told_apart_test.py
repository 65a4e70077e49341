#!/usr/bin/env python3
"""Processes and files that have the same number one after the other, traces of
one mount in several files, and what a trace does not tell: answers must not mix
them up."""

import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from command_checks import expect_equal as same  # noqa: E402
from command_checks import run_checks  # noqa: E402
from known_answers_test import MS, World  # noqa: E402
from scripted_trace import Script  # noqa: E402


def ops(s, pid, comm, path, words, start, ino=10, fh=1, **more):
    for word in words.split():
        s.op(word, pid, comm, path, ino=ino, fh=fh, off=0, len=10,
             res=10 if word in ("read", "write") else 0, start=start, **more)


def rows_of(w, words, *traces):
    return [json.loads(line) for line in w.run(
        "tracefs-dump", "--format", "jsonl", *words, *traces).splitlines()]


def reused(by_records):
    """A pid that two processes have one after the other: told apart by when they
    began, or only by the records of their ends."""
    s = Script()
    first, second = (0, 0) if by_records else (100, 900)
    ops(s, 5, "alpha", "/a", "create write read", first)
    ops(s, 5, "alpha", "/f", "create", first, ino=11, fh=2)
    if by_records:
        s.other("exit", t=s.now, pid=5, start=0)
        s.other("fork", t=s.now, pid=1, child=5, child_start=0)
    s.wait(10 * MS)
    ops(s, 5, "beta", "/a", "open write write", second, fh=3)
    return s


def check_pids_that_come_again(w):
    for by_records in (False, True):
        trace = w.trace(reused(by_records))
        same(sorted((r["cname"], r["cpid"], r["count"], r["written"])
                    for r in who(w, "/a", trace)),
             [("alpha", 5, 3, 10), ("beta", 5, 3, 20)], by_records)
        (doubled,) = w.tables("double-writes", trace)
        same([(r["class"], r["times"], r["writers"]) for r in doubled],
             [("rewritten", 1, "alpha beta")], by_records)
        shared, orders = w.tables("sharing", trace)
        same([(r["path"], r["raw"], r["war"], r["waw"]) for r in shared],
             [("/a", 0, 1, 0)], by_records)
        same({r["order"]: r["same_process"] for r in orders},
             {"rar": 0, "raw": 1, "war": 0, "waw": 1}, by_records)
        uses = w.tables("uses", trace)[0]
        same([(r["path"], r["readers"], r["writers"]) for r in uses],
             [("/a", "alpha", "alpha beta")], by_records)
        facts = {r["what"]: r for r in w.tables("summary", trace)[1]}
        same(facts["processes"]["count"], 2, by_records)
        same(sorted((r["process"], r["count"]) for r in rows_of(
            w, ["--by", "process", "--values", "count"], trace)),
             [("alpha 5", 4), ("beta 5 (2)", 3)], by_records)
        same([r["processes"] for r in rows_of(
            w, ["--by", "path", "--values", "processes"], trace)], [2, 1])
        # The second one did not think for the time that the first was gone.
        thought = w.tables("pauses", trace)[1]
        same(sum(r["count"] for r in thought), 5, by_records)


def check_operations_of_who_has_gone(w):
    """What the kernel closes for a process comes after its pid went on."""
    s = Script()
    ops(s, 5, "alpha", "/a", "create write", 100)
    ops(s, 5, "beta", "/b", "create write", 900, ino=11, fh=2)
    ops(s, 5, "alpha", "/a", "release", 100)
    same([(r["cname"], r["count"]) for r in who(w, "/a", w.trace(s))],
         [("alpha", 3)])


def check_hosts_whose_files_and_processes_are_counted(w):
    traces = []
    for host in ("one", "two"):
        s = Script()
        s.other("host", name=host)
        ops(s, 5, "alpha", "/a", "create write", 100)
        traces.append(w.trace(s))
    same(sorted((r["host"], r["files"], r["processes"]) for r in rows_of(
        w, ["--by", "host", "--values", "files,processes"], *traces)),
         [("one", 1, 1), ("two", 1, 1)])


def check_queues_of_each_process(w):
    """Two operations of a pid at the same time, but of two processes."""
    s = Script()
    s.op("read", 5, "alpha", "/a", ino=1, dur=10 * MS, gap=-9 * MS, start=100)
    s.op("read", 5, "beta", "/a", ino=1, dur=10 * MS, start=900)
    same(w.ask("queueing", s)[1], [])


def a_day():
    """Processes, files under several names, open files, a pid and an inode
    number that come again."""
    s = Script()
    s.other("host", name="here")
    s.exec(1, "/bin/make")
    s.fork(1, 5)
    s.exec(5, "/bin/alpha")
    ops(s, 5, "alpha", "/a", "create write", 50, mode=0o100644)
    s.op("read", 5, "alpha", "/b", ino=20, fh=7, off=0, len=4096, res=4096)
    s.op("rename", 5, "alpha", "/a", path2="/c", ino=10, mode=0o100644)
    s.op("read", 5, "alpha", "/b", ino=20, fh=7, off=4096, len=4096, res=4096)
    ops(s, 5, "alpha", "/c", "write release", 50)
    s.op("read", 1, "make", "/b", ino=20, fh=9, off=0, len=10, res=10,
         dur=5 * MS, gap=-4 * MS)
    s.op("read", 1, "make", "/b", ino=20, fh=9, off=10, len=10, res=10,
         dur=5 * MS)
    s.exit(5)
    s.other("fork", t=s.now, pid=1, child=5, child_start=900)
    ops(s, 5, "beta", "/c", "open read write", 900, fh=2)
    s.op("unlink", 5, "beta", "/c", ino=10, nlink=1, start=900)
    ops(s, 5, "beta", "/d", "create write read", 900, fh=3)
    ops(s, 5, "beta", "/c", "release", 900, fh=2)
    s.op("setattr", 1, "make", "/d", ino=10, valid=1, new_mode=0o600)
    s.op("release", 5, "alpha", "/b", ino=20, fh=7)
    s.other("exit", t=s.now, pid=5, start=900)
    s.exit(1)
    return s


def check_one_mount_in_two_files(w):
    """Cut anywhere, the two files are answered as the one that they were."""
    whole = a_day()
    lines = whole.lines
    one = w.trace(whole)
    asked = [(q,) for q in (
        "summary", "tree", "files", "access", "blocks", "lifetimes", "sharing",
        "double-writes", "races", "churn", "errors", "small-io", "slowest",
        "queueing", "critical-path", "uses", "rates", "pauses", "permissions")]
    asked += [("who", "/c"), ("who", "/d")]

    def answer(words, *traces):
        text = w.run("tracefs-report", words[0], "--format", "json", "--top",
                     "all", *words[1:], *traces)
        # The commands that show more name the files.
        return [t["rows"] for t in json.loads(text)["tables"]
                if t["title"] != "verdict"]

    expected = {words: answer(words, one) for words in asked}
    dumped = [["--by", "process", "--values", "count,files"],
              ["--by", "tree", "--values", "count"],
              ["--by", "path", "--values", "count,processes"]]
    lists = [rows_of(w, words, one) for words in dumped]
    for cut in range(3, len(lines), 3):
        halves = []
        for part in (lines[1:cut], lines[cut:]):
            s = Script()
            s.lines = [lines[0], *part]
            halves.append(w.trace(s))
        for words in asked:
            same(answer(words, *halves), expected[words], (cut, words))
        for words, rows in zip(dumped, lists):
            same(rows_of(w, words, *halves), rows, (cut, words))


def check_what_falls_into_other(w):
    """Of two rows together no quantile can be told by what it is of each; of
    what was only counted nothing is known but that."""
    s = Script()
    for i in range(6):
        s.op("read", 1, "a", f"/f{i}", ino=i + 1, fh=i, off=0, len=1, res=1,
             dur=1000 * (i + 1))
    other = rows_of(w, ["--by", "path", "--values", "count,p50,p99,max,mean",
                        "--top", "2", "--sort", "count"], w.trace(s))[-1]
    same({k: v for k, v in other.items() if v is not None},
         {"path": "other(4)", "count": 4})


def check_what_was_only_counted(w):
    s = Script()
    s.other("count", t=0, to=5, op="read", n=10, total=1)
    s.other("count", t=0, to=5, op="lookup", n=3, errors=2, total=1)
    trace = w.trace(s)
    rows = {r["op"]: r for r in rows_of(
        w, ["--by", "op", "--values", "count,errors,bytes,read,files,processes"],
        trace)}
    same({k: v for k, v in rows["read"].items() if v is not None},
         {"op": "read", "count": 10, "errors": 0})
    same({k: v for k, v in rows["lookup"].items() if v is not None},
         {"op": "lookup", "count": 3, "errors": 2, "bytes": 0, "read": 0})


def check_diff_of_what_is_not_known(w):
    """A side that does not tell how long it took is not faster."""
    known, unknown = Script(), Script()
    for s, dur in ((known, "1000"), (unknown, None)):
        for i in range(3):
            s.other("read", t=1000 * i, pid=1, comm="a", path="/f", ino=1, fh=1,
                    off=0, len=1, res=1, **({"dur": dur} if dur else {}))
    text = w.run("tracefs-report", "diff", "--format", "json",
                 w.trace(known), w.trace(unknown))
    (table,) = json.loads(text)["tables"]
    (row,) = table["rows"]
    same((row["verdict"], row.get("time_diff_ns"), row.get("time_b_ns"),
          row["count_diff"]), ("unknown", None, None, 0))
    same("No time is known" in table["summary"], True, table["summary"])


def check_losses_are_told_when_they_happened(w):
    """A loss is told in a block that comes later: it belongs to when it was."""
    def script(told_at):
        s = Script()
        for i in range(10):
            if i == told_at:
                s.block()
                s.other("loss", reason="queue_full", count=7, t=1050 * MS,
                        to=1150 * MS)
            s.op("lookup", 1, "a", "/x", dur=1000, gap=500 * MS - 1000)
        return s
    for told_at in (3, 9):
        trace = w.trace(script(told_at))
        page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                                trace, status=1))
        same(page["losses"]["seen"], [[1050 * MS, 7, "queue_full"]], told_at)
        for words, lost in ((["--to", "+1100ms"], True),
                            (["--to", "+1s"], False),
                            (["--from", "+1s", "--to", "+2s"], True),
                            (["--from", "+2s"], False)):
            for command in (["tracefs-dump", "--by", "op", "--values",
                             "count"], ["tracefs-report", "slowest"]):
                done = w.finished(*command, *words, trace)
                same((done.returncode, b"7 operations were not recorded" in
                      done.stderr), (int(lost), lost),
                     (told_at, words, command, done.stderr))


def one_number_two_files():
    """/a is removed, and /b gets its inode number; /c is known all the time."""
    s = Script()
    ops(s, 1, "alpha", "/a", "create write release", 10, mode=0o100644)
    ops(s, 1, "alpha", "/c", "write", 10, ino=12, fh=9)
    s.op("unlink", 1, "alpha", "/a", ino=10, nlink=1)
    ops(s, 2, "beta", "/b", "create write release", 20, fh=2, mode=0o100644)
    s.op("rename", 2, "beta", "/b", path2="/d", ino=10, mode=0o100644)
    ops(s, 2, "beta", "/d", "write", 20, fh=3)
    return s


def check_files_behind_a_filter(w):
    """What a filter, or a window, leaves out still tells one file from another;
    it counts for nothing."""
    s = one_number_two_files()
    trace = w.trace(s)
    renamed = next(o["t"] for o in s.operations if o["op"] == "rename")
    for words in (("--filter", "op = write"),
                  ("--filter", "op = write", "--from", "+1us")):
        same([(r["cname"], r["count"]) for r in who(w, "/a", trace,
                                                    words=words)],
             [("alpha", 1)], words)
        same([(r["cname"], r["count"]) for r in who(w, "/b", trace,
                                                    words=words)],
             [("beta", 2)], words)
        uses = w.tables("uses", trace, *words)[0]
        same(sorted((r["path"], r["writes"]) for r in uses),
             [("/a", 1), ("/c", 1), ("/d", 2)], words)
        facts = {r["what"]: r["count"]
                 for r in w.tables("summary", trace, *words)[1] if "count" in r}
        same((facts["operations"], facts["files and directories"]), (4, 3),
             words)
        (every,) = rows_of(w, ["--by", "op", "--values", "count,files", *words],
                           trace)
        same((every["count"], every["files"]), (4, 3), words)
    late = ("--from", f"+{renamed}ns")
    same([(r["cname"], r["count"]) for r in who(w, "/b", trace, words=late)],
         [("beta", 2)])
    same(w.tables("lifetimes", trace, "--filter", "op = create")[0][0]["removed"],
         1)
    # What is asked about was not there before the window.
    same(sum(r["created"] for r in w.tables("lifetimes", trace, *late)[0]), 0)


def check_copies_that_failed(w):
    """Who then reads and writes uses the same two files."""
    s = Script()
    ops(s, 1, "cp", "/a", "open", 10, ino=10)
    ops(s, 1, "cp", "/b", "create", 10, ino=11, fh=2)
    s.op("copy_file_range", 1, "cp", "/a", path2="/b", ino=10, fh=1, off=0,
         ino_out=11, fh_out=2, off_out=0, len=10, err=18)
    ops(s, 1, "cp", "/a", "read", 10, ino=10)
    ops(s, 1, "cp", "/b", "write", 10, ino=11, fh=2)
    same([(r["cname"], r["files"]) for r in rows_of(
        w, ["--by", "cname", "--values", "files"], w.trace(s))], [("cp", 2)])


def check_what_failed_at_first(w):
    """Nothing came before it; who then reads it reads the same file."""
    s = Script()
    s.op("getxattr", 1, "cp", "/a", ino=10, err=61)
    ops(s, 1, "cp", "/a", "read", 10, ino=10, fh=1)
    trace = w.trace(s)
    same([(r["cname"], r["files"]) for r in rows_of(
        w, ["--by", "cname", "--values", "files"], trace)], [("cp", 1)])
    same([(r["cname"], r["count"], r["errors"]) for r in who(w, "/a", trace)],
         [("cp", 2, 1)])


def check_files_that_the_trace_itself_hides(w):
    s = Script()
    s.other("property", key="filter.text", value="op = write")
    ops(s, 1, "alpha", "/a", "write", 10)
    ops(s, 2, "beta", "/b", "write", 20, fh=2)
    text = w.run("tracefs-report", "who", "/a", w.trace(s))
    same("its filter left out create mknod mkdir unlink rename link" in
         " ".join(text.split()), True, text)
    # What is no such filter is not complained of.
    s = Script()
    s.other("property", key="filter.text", value="NOT op = getlk")
    ops(s, 1, "alpha", "/a", "write", 10)
    text = w.run("tracefs-report", "who", "/a", w.trace(s))
    same("left out" in text, False, text)


def check_nothing_left_is_no_nothing_recorded(w):
    s = Script()
    ops(s, 1, "alpha", "/a", "write", 10)
    trace = w.trace(s)
    for words, by in ((["--filter", "op = read"], "--filter"),
                      (["--filter", "op = read", "--to", "+1s"],
                       "--filter and --to")):
        text = " ".join(w.run("tracefs-report", "summary", *words,
                              trace).split())
        same(f"No file operation is left by {by}" in text, True, text)
        page = json.loads(w.run("tracefs-report", "page", "--format", "json",
                                *words, trace))
        same(by in page["verdict"]["sentences"], True, page["verdict"])


def check_operations_without_a_time(w):
    s = Script()
    s.op("lookup", 1, "a", "/x")
    s.op("lookup", 1, "a", "/x")
    s.other("lookup", pid=1, comm="a", path="/y", timeless=1)
    trace = w.trace(s)
    for command in (["tracefs-dump", "--by", "path", "--values", "count"],
                    ["tracefs-dump", "--by", "process"],
                    ["tracefs-report", "slowest"]):
        done = w.finished(*command, "--from", "+0s", trace)
        same(b"1 operation has no time" in done.stderr, True,
             (command, done.stderr))
        done = w.finished(*command, trace)
        same(b"no time" in done.stderr, False, (command, done.stderr))


def who(w, path, *traces, words=()):
    text = w.run("tracefs-report", "who", "--format", "json", "--top", "all",
                 *words, path, *traces)
    return json.loads(text)["tables"][0]["rows"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.make_workload_trace = None
    with tempfile.TemporaryDirectory() as folder:
        return run_checks(
            [check for name, check in sorted(globals().items())
             if name.startswith("check_") and arguments.only in name],
            lambda: World(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
