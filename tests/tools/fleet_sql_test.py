#!/usr/bin/env python3
"""Questions over Parquet files by host and day: what DuckDB makes of the SQL that
tracefs-report --sql prints is what tracefs-report and tracefs-dump answer from the
traces themselves."""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
import duckdb  # noqa: E402
from command_checks import Commands, Skip, expect, expect_equal, run_checks  # noqa: E402
from scripted_trace import Script  # noqa: E402

HOSTS = 50


class World(Commands):
    def __init__(self, args, folder):
        super().__init__(args.bin, folder)
        self.make = args.make_workload_trace
        self.script_maker = args.make_scripted_trace
        self.npm = args.npm

    def trace(self, name, operations, seed, host, day=0):
        path = os.path.join(self.folder, name)
        subprocess.run([self.make, path, str(operations), "60", "9", str(seed),
                        host, str(day)], check=True)
        return path

    def parquet(self, name, *traces):
        path = os.path.join(self.folder, name)
        self.run("tracefs-dump", "--format", "parquet", "--set", "partition=yes",
                 "-o", path, *traces)
        return path

    def duckdb(self, *statements):
        """The results of the statements, rows as dictionaries."""
        if duckdb.missing(self.npm):
            raise Skip(duckdb.missing(self.npm))
        results = duckdb.ask(self.npm, self.folder, *statements)
        for statement, result in zip(statements, results):
            expect(not isinstance(result, str), result, statement)
        return results

    def sql(self, folder, *words):
        """{title: rows} of what tracefs-report --sql prints."""
        text = self.run("tracefs-report", *words, "--sql", folder)
        statements = [s for s in re.split(r";\n", text) if s.strip()]
        titles = [re.match(r"\s*-- (.*)\n", s) for s in statements]
        results = self.duckdb(*statements)
        return {title[1]: rows for title, rows in zip(titles, results) if title}

    def own(self, traces, *words):
        text = self.run("tracefs-report", *words, "--format", "json", *traces)
        return {t["title"]: t["rows"] for t in json.loads(text)["tables"]}


def plain(value):
    """Numbers as numbers: JSON has 64 bits and sums as texts."""
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", value):
        return float(value)
    return value


NUMBERED = ("files", "processes")


def compare(have, want, what, near=()):
    """The same rows, whatever their order; columns of only one side are left out.
    Percentiles of ours are those of a histogram, 0.8 % wide. SQL counts numbers of
    inodes and processes, ours files and processes, of which some had one number."""
    columns = sorted(set().union(*want) & set().union(*have)) if have else []
    expect(len(have) == len(want) and (columns or not want),
           f"{what}: {len(have)} rows are not {len(want)}: {have[:3]} {want[:3]}")
    texts = [c for c in columns if all(
        isinstance(plain(r.get(c)), (str, int, type(None))) for r in want)
        and c not in NUMBERED and not is_near(c, near)]
    def key(row):
        return [str(plain(row.get(c))) for c in texts]
    for one, other in zip(sorted(have, key=key), sorted(want, key=key)):
        for column in columns:
            a, b = plain(one.get(column)), plain(other.get(column))
            if column in NUMBERED and a is not None and b is not None:
                expect(a <= b, f"{what}: {column}: {a} numbers of {b}")
            elif is_near(column, near) and a is not None and b is not None:
                expect(abs(a - b) <= 0.01 * abs(b) + 1,
                       f"{what}: {column}: {a} is not about {b}")
            else:
                expect_equal(a, b, f"{what}: {column} of {one} and {other}")
    return columns


def is_near(column, near):
    return (re.match(r"p\d+|size_p\d+|mean|size_mean|.*share|run_p50|time_change",
                     column) is not None or column in near)


def small_world(world):
    if not hasattr(world, "small"):
        traces = [world.trace("small.trace", 12000, 3, "alpha")]
        source = os.path.join(world.folder, "src")
        os.mkdir(source)
        work = os.path.join(HERE, "report_command_test.py")
        script = os.path.join(world.folder, "work.py")
        with open(work, encoding="utf-8") as file:
            text = re.search(r'WORK = r"""(.*?)"""', file.read(), re.S)[1]
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        real = os.path.join(world.folder, "work.trace")
        made = subprocess.run(
            [os.path.join(world.bin, "tracefs-run"), "-o", real, "--src", source,
             "--", sys.executable, "-B", script, source],
            capture_output=True, check=False, cwd=source)
        world.real = real if made.returncode == 0 else None
        world.small = {trace: world.parquet(os.path.basename(trace) + ".parquet",
                                            trace)
                       for trace in traces + ([real] if world.real else [])}
        if world.real is None:
            print("no real workload: " + made.stderr.decode()[-200:])
    return world.small


# Questions of groups, and the others whose tables are one table of numbers.
GROUPS = ("files", "errors", "small-io", "fsync", "probes")
OTHERS = ("slowest", "access", "queueing", "lifetimes", "churn", "sharing",
          "double-writes")


def check_questions(world):
    for trace, folder in small_world(world).items():
        for question in GROUPS + OTHERS:
            own = world.own([trace], question, "--top", "all")
            sql = world.sql(folder, question, "--top", "all")
            asked = 0
            for title, rows in sql.items():
                want = own[title]
                if question == "access":
                    want = [r for r in want if r.get("count")]
                if question == "sharing" and title == "sharing":
                    # Ours has names of processes, SQL how many there are.
                    for row in want:
                        row.pop("readers"), row.pop("writers")
                if question == "sharing" and title != "sharing":
                    want = [r for r in want
                            if r["same_process"] + r["other_process"]]
                what = f"{question} [{title}] of {os.path.basename(trace)}"
                if rows or want:
                    columns = compare(rows, want, what)
                    expect(len(columns) >= 2, what, columns)
                asked += 1
            expect(asked >= 1, question)


def check_summary(world):
    for trace, folder in small_world(world).items():
        own = world.own([trace], "summary", "--top", "all")
        sql = world.sql(folder, "summary", "--top", "all")
        for title in ("operations", "processes", "directories", "errors"):
            compare(sql[title], own[title], "summary " + title)
        facts = {r["what"]: r for r in own["summary"]}
        have = sql["summary"][0]
        for what, key, column in (
                ("operations", "count", "operations"),
                ("from the first to the last", "time_ns", "span_ns"),
                ("operations", "time_ns", "time_in_operations_ns"),
                ("read", "bytes", "bytes_read"),
                ("written", "bytes", "bytes_written")):
            expect_equal(int(have[column]), facts[what][key], what)


def check_files_without_a_name_and_exchanged_ones(world):
    """O_TMPFILE with a link and without; two files that change places."""
    s = Script()
    def made(word, ino, path, link=None):
        s.op(word, 1, "a", path, ino=ino, fh=ino)
        named = "" if word == "tmpfile" else path
        s.op("write", 1, "a", named, ino=ino, fh=ino, off=0, len=5, res=5)
        if link:
            s.op("link", 1, "a", named, path2=link, ino=ino)
        s.op("release", 1, "a", link or named, ino=ino, fh=ino)
    s.op("mkdir", 1, "a", "/d", ino=5, mode=0o40755)
    made("tmpfile", 10, "/d", "/d/f")
    made("tmpfile", 11, "/d")
    made("tmpfile", 11, "/d")  # the same number again
    s.op("tmpfile", 1, "a", "/d", ino=12, fh=12)  # still open
    s.op("unlink", 1, "a", "/d/f", ino=10, nlink=1)
    made("create", 20, "/d/one")
    made("create", 21, "/d/two")
    s.op("rename", 1, "a", "/d/one", path2="/d/two", ino=20, flags=2,
         mode=0o100644)
    s.op("read", 2, "b", "/d/one", ino=21, fh=21, off=0, len=5, res=5)
    trace = s.make(world.script_maker, os.path.join(world.folder, "odd.trace"))
    folder = world.parquet("odd", trace)
    for words in (["lifetimes"], ["churn"], ["double-writes"], ["sharing"],
                  ["who", "/d"], ["who", "/d/f"], ["who", "/d/two"]):
        own, sql = (ask(of, *words, "--top", "all") for ask, of in
                    ((world.own, [trace]), (world.sql, folder)))
        title = words[0]
        if title == "sharing":
            for row in own[title]:
                row.pop("readers"), row.pop("writers")
        if sql[title] or own[title]:
            compare(sql[title], own[title], " ".join(words))
    (lives,) = world.own([trace], "lifetimes")["lifetimes"]
    expect_equal([lives[c] for c in ("created", "removed", "replaced")],
                 [6, 3, 0])


def check_closes_beside_removals(world):
    """A close that begins while the removal runs was before it."""
    s = Script()
    for ino, replaced, at in ((10, False, 400), (11, False, 1500),
                              (12, True, 400), (13, True, 1500)):
        s.op("create", 1, "a", f"/{ino}", ino=ino, fh=ino)
        if replaced:
            s.op("create", 1, "a", "/new", ino=ino + 10)
            s.op("rename", 1, "a", "/new", path2=f"/{ino}", ino=ino + 10,
                 mode=0o100644, dur=1000, gap=at - 1000)
        else:
            s.op("unlink", 1, "a", f"/{ino}", ino=ino, nlink=1, dur=1000,
                 gap=at - 1000)
        s.op("release", 1, "a", f"/{ino}", ino=ino, fh=ino)
    trace = s.make(world.script_maker, os.path.join(world.folder, "closes.trace"))
    own = world.own([trace], "lifetimes")["lifetimes"]
    compare(world.sql(world.parquet("closes", trace), "lifetimes")["lifetimes"],
            own, "lifetimes")
    expect_equal([own[0][c] for c in ("created", "removed", "replaced",
                                      "removed_open")], [6, 2, 2, 2])


def check_who(world):
    for trace, folder in small_world(world).items():
        path = "/shared" if trace == world.real else "/d3/f3.h"
        own = world.own([trace], "who", path, "--top", "all")
        sql = world.sql(folder, "who", path, "--top", "all")
        expect(own["who"], "nobody used", path)
        # A process has the name of its last operation in ours.
        for rows in (own["who"], sql["who"]):
            for row in rows:
                row.pop("cname")
        compare(sql["who"], own["who"], "who")
        compare(sql["changes"], own["changes"], "changes")


def check_diff(world):
    """Of two days."""
    a = world.trace("monday.trace", 3000, 5, "alpha")
    b = world.trace("tuesday.trace", 4000, 6, "alpha", 1)
    folder = world.parquet("days", a, b)
    own = world.own([], "diff", a, b, "--top", "all")
    sql = world.sql(folder, "diff", "2026-01-02", "2026-01-03")
    compare(sql["diff"], next(iter(own.values())), "diff")


FILTERS = (
    "op = read", "op != read", "NOT op IN { read write }", "errno = ENOENT",
    "errno != ENOENT", "errno != 0", "errno = 0 AND op = lookup",
    "errno IN { EACCES ENOENT }", "NOT errno = 0", "offset >= 4K",
    "NOT offset >= 4096", "offset = 0 OR length = 512", "offset != 0",
    "result < 0", "result >= 1024", "cuid = 0", "latency >= 2ms", "inode > 130",
    "cname = git OR cname = make", "NOT cname = git", "cname != git",
    "name = f3.h", "name ~ f1*", "name ~ f?.cc", "name ~ f[1-3]*.h",
    "name ~ f[!1-3]*.h", "NOT name ~ *.h", "path ~ /d3/**", "path ~ /*/f3.h",
    "path ~ **/f3.h", "path ~ /**/f3.h", "path = /d3/f3.h", "ext = h",
    "ext IN { h cc }", "NOT ext = h", "cname = \"=cmd()\"", "cname ~ \"=*()\"",
    "NOT sets IN { mode uid }", "sets = mtime OR op = read",
    "NOT new_mode ~ 0400", "NOT new_size > 5",
    "(op = read OR op = write) AND NOT (length > 1024 AND cuid = 0)",
)


def check_filters(world):
    """What DuckDB keeps is what a filter keeps."""
    trace = next(iter(small_world(world)))
    folder = world.small[trace]
    query = os.path.join(world.folder, "count.query")
    with open(query, "w", encoding="ascii") as file:
        file.write("[count]\nby = op\nvalues = count\nsort = count\ntop = all\n")
    statements, want = [], []
    for text in FILTERS:
        sql = world.run("tracefs-report", "--query", query, "--filter", text,
                        "--sql", folder)
        statements += [s for s in re.split(r";\n", sql) if s.strip()]
        own = json.loads(world.run("tracefs-report", "--query", query, "--filter",
                                   text, "--format", "json", trace))
        want.append({r["op"]: r["count"] for r in own["tables"][0]["rows"]})
    results = [rows for rows, s in zip(world.duckdb(*statements), statements)
               if s.lstrip().startswith("-- ")]
    expect_equal(len(results), len(FILTERS))
    for text, rows, counts in zip(FILTERS, results, want):
        expect_equal({r["op"]: plain(r["count"]) for r in rows}, counts, text)
    expect(sum(1 for counts in want if counts) > len(FILTERS) - 3, "mostly nothing",
           [t for t, c in zip(FILTERS, want) if not c])


def check_fifty_hosts(world):
    """A fleet's numbers, and each host's own."""
    traces = [world.trace(f"host{i}.trace", 300, 100 + i, f"node-{i:02}", i % 3)
              for i in range(HOSTS)]
    folder = world.parquet("fleet", *traces)
    parts = [os.path.relpath(os.path.join(at, name), folder)
             for at, _, names in os.walk(folder) for name in names
             if not name.startswith(".")]
    expect_equal(len(parts), HOSTS, parts[:3])
    for part in parts:
        expect(re.fullmatch(r"host=node-\d\d/date=2026-01-0[234]/part-\d+\.parquet",
                            part), part)
    lines = world.run("tracefs-dump", "--by", "host,op", "--values",
                      "count,errors,bytes,time,max,files", "--format", "jsonl",
                      "--top", "all", *traces)
    rows = [json.loads(line) for line in lines.splitlines()]
    expect_equal(len({r["host"] for r in rows}), HOSTS)
    query = os.path.join(world.folder, "fleet.query")
    with open(query, "w", encoding="ascii") as file:
        file.write("[fleet]\nby = host,op\nvalues = count,errors,bytes,time,max,"
                   "files\ntop = all\n")
    compare(world.sql(folder, "--query", query)["fleet"], rows, "fifty hosts")
    # A day's folder holds the day, and no more.
    days = collections.Counter(i % 3 for i in range(HOSTS))
    have = world.duckdb(
        "SELECT date, count(*) AS n FROM read_parquet('" + folder +
        "/*/*/*.parquet', hive_partitioning = true) GROUP BY date ORDER BY date")
    expect_equal([plain(r["n"]) for r in have[0]],
                 [300 * days[d] for d in range(3)], "days")


def check_schema(world):
    """docs/fleet.md tells of every column, with its type."""
    folder = next(iter(small_world(world).values()))
    columns = world.duckdb("DESCRIBE SELECT * FROM read_parquet('" + folder +
                           "/*/*/*.parquet')")[0]
    with open(os.path.join(SOURCE, "docs", "fleet.md"), encoding="utf-8") as file:
        known = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", file.read(), re.M))
    for column in columns:
        expect_equal(known.pop(column["column_name"], None), column["column_type"],
                     column["column_name"])
    expect_equal(known, {}, "columns that no file has")


def check_refusals(world):
    """What has no SQL is said, with the reason; wrong words are wrong usage."""
    for words, text in (
            (("tree",), "the records of processes"),
            (("critical-path",), "the records of processes"),
            (("races",), "the records of processes"),
            (("blocks",), "blocks of 4096 bytes"),
            (("page",), "--sql is for questions"),
            (("errors", "a", "b"), "one folder at most"),
            (("diff", "a", "b"), "A and B are days"),
            (("slowest", "--sort", "path"), "an order of their own"),
            (("errors", "--format", "csv"), "--sql and --format exclude"),
            (("errors", "--filter", "descendant of make"), "has no answer in SQL"),
            (("errors", "--filter", "op = raed"), "unknown operation"),
            (("errors", "--sort", "nothing"), "there is no column nothing")):
        told = world.run("tracefs-report", *words, "--sql", status=2)
        expect(text in told, words, told)
    # A folder's name is a text, not SQL.
    told = world.run("tracefs-report", "errors", "--sql", "/srv/o'clock")
    expect("'/srv/o''clock/host=" in told, told[:300])


CHECKS = (check_questions, check_summary,
          check_files_without_a_name_and_exchanged_ones,
          check_closes_beside_removals, check_who, check_diff, check_filters,
          check_fifty_hosts, check_schema, check_refusals)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--npm", default="")
    parser.add_argument("--make-workload-trace", required=True)
    parser.add_argument("--make-scripted-trace", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracefs-sql-") as folder:
        world = World(args, folder)
        return run_checks(CHECKS, lambda: world)


if __name__ == "__main__":
    sys.exit(main())
