#!/usr/bin/env python3
"""import tracefs: events, columns, pandas, SQLite, Arrow capsules, errors.

Run with a Python that has numpy and pandas where there is one (Debian's
python3-pandas); their cases are skipped elsewhere."""

import argparse
import base64
import ctypes
import datetime
import gc
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests/golden/v1"

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--build", type=pathlib.Path, required=True)
ARGUMENTS, REST = PARSER.parse_known_args()
os.environ["TRACEFS_READER_LIBRARY"] = str(
    ARGUMENTS.build / "lib/libtracefs-reader.so.1")
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tracefs/reader/python"))

import tracefs  # noqa: E402  pylint: disable=wrong-import-position

EVERY = GOLDEN / "every_operation.trace"
AWKWARD = GOLDEN / "awkward_names.trace"
SAMPLE_EVENTS = 210_000


def dumped(trace):
    """What tracefs-dump says: the oracle."""
    lines = subprocess.run(
        [str(ARGUMENTS.build / "bin/tracefs-dump"), "--format", "jsonl",
         str(trace)], capture_output=True, check=False).stdout.splitlines()
    return [json.loads(line) for line in lines]


class TablesAndReports(unittest.TestCase):
    """Made by the commands, as in a terminal: against sums over JSON Lines."""
    sample = ROOT / "docs/examples/sample.trace"

    def setUp(self):
        os.environ["TRACEFS_COMMANDS"] = str(ARGUMENTS.build / "bin")

    def sums(self, where=lambda e: True):
        counts, times = {}, {}
        for e in dumped(self.sample):
            if "op" in e and where(e):
                counts[e["op"]] = counts.get(e["op"], 0) + 1
                times[e["op"]] = times.get(e["op"], 0) + e["dur"]
        return counts, times

    def test_tables_are_the_sums(self):
        counts, times = self.sums()
        table = tracefs.open(self.sample).by("op", sort="time")
        self.assertEqual({row["op"]: row["count"] for row in table}, counts)
        self.assertEqual([row["time_ns"] for row in table],
                         sorted(times.values(), reverse=True))
        self.assertEqual(len(tracefs.open(self.sample).by("op", top=3)), 4,
                         "three and the others")

    def test_they_are_of_what_was_opened(self):
        first = min(e["ts"] for e in dumped(self.sample) if "op" in e)
        middle = first + 300_000_000
        counts, _ = self.sums(lambda e: e["ts"] >= middle and
                              e["op"] in ("read", "write"))
        trace = tracefs.open(self.sample, start=middle).filter(
            "op IN { read write }")
        self.assertEqual({row["op"]: row["count"] for row in trace.by()},
                         counts)

    def test_notebooks_draw_them(self):
        drawn = tracefs.open(self.sample).by("path,op")._repr_html_()
        self.assertTrue(drawn.startswith("<table><thead><tr><th>path</th>"))
        table = tracefs.Table([{"a": "<b>&", "n": 1}, {"a": None}])
        self.assertIn("<td>&lt;b&gt;&amp;</td><td>1</td>", table._repr_html_())
        self.assertEqual(repr(table), "a     n\n<b>&  1\n")

    def test_the_page(self):
        report = tracefs.open(self.sample).report()
        self.assertTrue(report.html.startswith("<!DOCTYPE html>"))
        self.assertNotIn("<script", report._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.html"
            report.save(path)
            self.assertEqual(path.read_text(encoding="utf-8"), report.html)

    def test_complaints_are_raised(self):
        trace = tracefs.open(self.sample)
        with self.assertRaisesRegex(tracefs.UsageError, "did you mean 'op'"):
            trace.by("operation")
        os.environ["TRACEFS_COMMANDS"] = "/nonexistent"
        with self.assertRaisesRegex(tracefs.SystemRefused, "install the"):
            trace.by("op")
        with self.assertRaises(tracefs.UsageError):
            tracefs.open(self.sample, text=lambda name, text: None).by("op")

    def test_what_they_lack_is_told(self):
        damaged = tracefs.open(GOLDEN / "damaged.trace")
        with self.assertWarnsRegex(tracefs.IncompleteWarning, "damaged.trace"):
            self.assertEqual(
                sum(row["count"] for row in damaged.by("op")),
                sum("op" in e for e in dumped(GOLDEN / "damaged.trace")))
        with self.assertWarnsRegex(tracefs.IncompleteWarning, "damaged.trace"):
            damaged.report()
        strict = tracefs.open(GOLDEN / "damaged.trace", strict=True)
        with self.assertRaisesRegex(tracefs.DataError, "damaged.trace"):
            strict.by("op")
        with self.assertRaisesRegex(tracefs.DataError, "damaged.trace"):
            strict.report()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tracefs.open(self.sample, strict=True).by("op")


class WithSample(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tracefs-python-")
        cls.sample = pathlib.Path(cls.folder.name) / "sample.trace"
        subprocess.run([str(ARGUMENTS.build / "tests/reader/make_sample"),
                        str(cls.sample)], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)


class EventsTest(WithSample):
    def test_events_say_what_the_dump_says(self):
        for trace in (EVERY, AWKWARD):
            lines = dumped(trace)
            events = list(tracefs.open(trace))
            self.assertEqual(len(events), len(lines))
            for event, line in zip(events, lines):
                for name in ("ts", "op", "dur", "pid", "uid", "path", "path2",
                             "ino", "offset", "size", "result", "errno",
                             "comm", "tracer"):
                    if name + "_b64" in line:
                        continue
                    self.assertEqual(event[name], line.get(name), name)

    def test_names_of_any_bytes_come_back(self):
        paths = [event["path"] for event in tracefs.open(AWKWARD)]
        self.assertTrue(any(path and "\udcff" in path for path in paths))
        for path in filter(None, paths):
            os.fsencode(path)  # as it was on the disk

    def test_filters(self):
        events = list(tracefs.open(EVERY, where="op = write"))
        self.assertTrue(events)
        self.assertEqual({event["op"] for event in events}, {"write"})
        failed = list(tracefs.open(EVERY).filter("errno != 0"))
        self.assertTrue(all(event["errno"] for event in failed))

    def test_filters_may_have_comments(self):
        trace = tracefs.open(EVERY, where="op = read # or write").filter(
            "errno = 0 # done")
        self.assertEqual([e["op"] for e in trace],
                         [e["op"] for e in dumped(EVERY)
                          if e.get("op") == "read" and "errno" not in e])

    def test_columns_are_what_is_asked_for(self):
        event = next(tracefs.open(EVERY).events(["op", "umask"]))
        self.assertEqual(list(event), ["op", "umask"])
        self.assertEqual(tracefs.fields()["umask"], int)
        self.assertEqual(tracefs.fields()["path"], str)

    def test_header_and_span(self):
        trace = tracefs.open(EVERY)
        self.assertEqual(trace.header["host.name"], "testbox")
        times = [event["ts"] for event in trace if event["ts"]]
        self.assertEqual(trace.time_span, (min(times), max(times)))
        self.assertIs(trace.complete, True)

    def test_ranges(self):
        times = tracefs.open(self.sample).columns(["ts"])["ts"]
        middle = times[len(times) // 2]
        later = tracefs.open(self.sample, start=middle).columns(["ts"])["ts"]
        self.assertEqual(later, times[len(times) // 2:])
        earlier = tracefs.open(self.sample, end=middle).columns(["ts"])["ts"]
        self.assertEqual(earlier, times[:len(times) // 2])
        moment = datetime.datetime.fromtimestamp(
            times[-1] // 10**9 + 1, datetime.timezone.utc)
        self.assertEqual(list(tracefs.open(self.sample, start=moment)), [])

    def test_orders_have_the_same_events(self):
        by_time = tracefs.open(self.sample).columns(["ts", "path"])
        by_block = tracefs.open(self.sample, threads=2).columns(
            ["ts", "path"], ordered=False)
        self.assertEqual(sorted(zip(*by_time.values())),
                         sorted(zip(*by_block.values())))

    def test_descriptors(self):
        with open(EVERY, "rb") as file:
            trace = tracefs.open(file.fileno())
            self.assertEqual(len(list(trace)), len(dumped(EVERY)))

    def test_messages_are_those_of_an_independent_reader(self):
        listed = subprocess.run(
            [sys.executable, str(ROOT / "tests/golden/independent_reader.py"),
             str(GOLDEN / "later_version.trace")], capture_output=True,
            text=True, check=False).stdout.splitlines()
        want = [tuple(line.split(" ", 2)[:2]) for line in listed
                if line[0].isdigit() and " unknown " not in line]
        trace = tracefs.open(GOLDEN / "later_version.trace")
        got = [(str(message.block), message.name)
               for message in trace.messages(operations=True)]
        self.assertEqual(got, want)
        few = [message.id for message in trace.messages()]
        self.assertTrue(all(number < 256 or number > 600 for number in few))
        self.assertLess(len(few), len(got))

    def test_processes_are_those_of_the_golden_lines(self):
        lines = [json.loads(line) for line in
                 (GOLDEN / "processes.jsonl").read_text("ascii").splitlines()]
        want = [line for line in lines if "process" in line]
        trace = tracefs.open(GOLDEN / "processes.trace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tracefs.IncompleteWarning)
            got = list(trace.processes())
        self.assertEqual(len(got), len(want))
        self.assertGreater(len(want), 10)
        for line, process in zip(want, got):
            self.assertEqual(process.kind, line["process"])
            for key in ("ts", "pid", "tid"):
                self.assertEqual(getattr(process, key), line[key])
            for key in ("ppid", "ns_pid", "child_pid", "child_tid",
                        "child_ns_pid", "program", "exe", "cwd", "comm",
                        "cgroup", "source", "cpu", "exit_code"):
                self.assertEqual(getattr(process, key), line.get(key), key)
            self.assertEqual(process.key, line["start"] << 22 | line["pid"])
            argv = line.get("argv")
            if "argv_b64" in line:
                argv = [os.fsdecode(base64.b64decode(one))
                        for one in line["argv_b64"]]
            self.assertEqual(process.argv, argv)
            self.assertEqual(process.pipes, [
                (pipe["fd"], pipe["access"], pipe["inode"])
                for pipe in line.get("pipes", [])])
            self.assertEqual(process.late, line.get("late", False))
            self.assertEqual(process.incomplete, line.get("incomplete", False))
            self.assertEqual(process.core_dumped, line.get("core", False))
            self.assertEqual(process.exit_signal is not None, "signal" in line)
            self.assertEqual(process.environment,
                             {"PATH": "/bin"} if "env" in line else None)
        # Within a range, and not beside events.
        middle = want[5]["ts"]
        later = tracefs.open(GOLDEN / "processes.trace", start=middle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tracefs.IncompleteWarning)
            self.assertEqual([p.ts for p in later.processes()],
                             [w["ts"] for w in want if w["ts"] >= middle])
            self.assertEqual(len(list(trace)), len(lines) - len(want))

    def test_columns_have_the_words_of_filters_too(self):
        pairs = {"time": "ts", "latency": "dur", "ctid": "tid", "cpid": "pid",
                 "cppid": "ppid", "cuid": "uid", "cgid": "gid",
                 "cname": "comm", "inode": "ino", "length": "size"}
        words = tracefs.open(EVERY).columns(list(pairs))
        keys = tracefs.open(EVERY).columns(list(pairs.values()))
        self.assertEqual(list(words), list(pairs))
        for word, key in pairs.items():
            self.assertEqual(words[word], keys[key], word)
        self.assertTrue(any(isinstance(v, str) for v in words["cname"]))
        guide = (ROOT / "docs/reader.md").read_text("utf-8")
        for name in [*pairs, *pairs.values()]:
            self.assertIn(f"`{name}`", guide)

    def test_texts_may_be_replaced(self):
        def hide(field, text):
            return b"<" + text + b">" if field == "path" else None
        path = next(iter(tracefs.open(EVERY, text=hide)))["path"]
        self.assertTrue(path.startswith("</") and path.endswith(">"))

        def fail(field, text):
            raise KeyError(field, text)
        with self.assertRaises(KeyError):
            list(tracefs.open(EVERY, text=fail))


class FaultsTest(unittest.TestCase):
    def test_what_is_missing_is_told(self):
        trace = tracefs.open(GOLDEN / "damaged.trace")
        with self.assertWarns(tracefs.IncompleteWarning):
            list(trace)
        self.assertIs(trace.complete, False)
        self.assertTrue(trace.findings)
        self.assertGreater(sum(trace.counts.values()), 0)
        self.assertIn(trace.findings[0].kind, tracefs.KINDS)

    def test_strictness_raises(self):
        with self.assertRaises(tracefs.DataError):
            list(tracefs.open(GOLDEN / "damaged.trace", strict=True))
        list(tracefs.open(EVERY, strict=True))
        with self.assertRaises(tracefs.UsageError):
            tracefs.open(EVERY, strict=["nonsense"])

    def test_errors_name_the_next_step(self):
        with self.assertRaisesRegex(tracefs.SystemRefused, "nonexistent"):
            tracefs.open("/nonexistent")
        with self.assertRaisesRegex(tracefs.UsageError, "opp"):
            tracefs.open(EVERY, where="opp = read")
        with self.assertRaisesRegex(tracefs.UsageError, "nonsense"):
            tracefs.open(EVERY).columns(["nonsense"])
        with self.assertRaises(tracefs.TraceError):
            list(tracefs.open(GOLDEN / "too_new.trace"))
        with self.assertRaises(tracefs.UsageError):
            tracefs.open()

    def test_half_read_traces_are_let_go(self):
        for _ in range(20):
            events = iter(tracefs.open(EVERY))
            next(events)
            del events
        gc.collect()


class SqliteTest(WithSample):
    def test_rows_are_events(self):
        trace = tracefs.open(self.sample)
        rows = trace.to_sqlite(self.path("a.db"))
        self.assertEqual(rows, SAMPLE_EVENTS)
        database = sqlite3.connect(self.path("a.db"))
        by_op = dict(database.execute(
            "SELECT op, count(*) FROM operations GROUP BY op"))
        counted = {}
        for op in trace.columns(["op"])["op"]:
            counted[op] = counted.get(op, 0) + 1
        self.assertEqual(by_op, counted)
        database.close()

    def test_names_that_are_no_utf8_are_blobs(self):
        database = sqlite3.connect(":memory:")
        tracefs.open(AWKWARD).to_sqlite(database, table='a "b"')
        kinds = {kind for kind, in database.execute(
            'SELECT DISTINCT typeof(path) FROM "a ""b"""')}
        self.assertIn("blob", kinds)
        self.assertIn("text", kinds)


class PandasTest(WithSample):
    @classmethod
    def setUpClass(cls):
        try:
            import pandas  # noqa: F401  pylint: disable=unused-import
        except ImportError:
            raise unittest.SkipTest(
                "this Python has no pandas (python3-pandas)") from None
        super().setUpClass()

    def test_types(self):
        frame = tracefs.open(self.sample).to_pandas()
        self.assertEqual(len(frame), SAMPLE_EVENTS)
        self.assertEqual(str(frame["ts"].dtype), "datetime64[ns]")
        self.assertEqual(str(frame["op"].dtype), "category")
        self.assertEqual(str(frame["uid"].dtype), "uint32")
        self.assertEqual(str(frame["offset"].dtype), "UInt64")
        self.assertTrue(frame["errno"].isna().any())

    def test_values(self):
        import pandas
        for trace in (EVERY, AWKWARD, self.sample):
            names = ["ts", "op", "path", "size", "result", "errno", "inferred"]
            for ordered in (True, False):
                frame = tracefs.open(trace).to_pandas(names, ordered=ordered)
                lists = tracefs.open(trace).columns(names, ordered=ordered)
                for name in ("op", "errno", "size", "result"):
                    got = [None if pandas.isna(value) else value
                           for value in frame[name]]
                    self.assertEqual(got, lists[name], name)
                self.assertEqual(
                    [value.value for value in frame["ts"]], lists["ts"])

    def test_times_of_a_frame_are_times_of_the_trace(self):
        import pandas
        times = tracefs.open(self.sample).columns(["ts"])["ts"]
        moment = tracefs.open(self.sample).to_pandas(["ts"])["ts"].iloc[1001]
        for start in (moment, moment.tz_localize("UTC"),
                      moment.tz_localize("UTC").tz_convert("Asia/Tokyo")):
            self.assertIsInstance(start, pandas.Timestamp)
            later = tracefs.open(self.sample, start=start).columns(["ts"])["ts"]
            self.assertEqual(later, [ts for ts in times if ts >= times[1001]])

    def test_the_same_question_has_the_same_answer_everywhere(self):
        trace = tracefs.open(self.sample, where="errno = 0")
        frame = trace.to_pandas(["op", "size"])
        by_pandas = frame.groupby("op", observed=True)["size"].sum()
        database = sqlite3.connect(":memory:")
        trace.to_sqlite(database)
        by_sqlite = dict(database.execute(
            "SELECT op, coalesce(sum(size), 0) FROM operations GROUP BY op"))
        by_events = {}
        for event in trace:
            by_events[event["op"]] = (by_events.get(event["op"], 0)
                                      + (event["size"] or 0))
        self.assertEqual({op: int(n) for op, n in by_pandas.items()},
                         by_sqlite)
        self.assertEqual(by_sqlite, by_events)


class ArrowTest(WithSample):
    def take(self, capsule):
        """As a consumer does: moves the stream out."""
        from tracefs._library import ArrowArrayStream
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        address = api.PyCapsule_GetPointer(capsule, b"arrow_array_stream")
        inside = ArrowArrayStream.from_address(address)
        stream = ArrowArrayStream()
        ctypes.memmove(ctypes.byref(stream), address, ctypes.sizeof(stream))
        ctypes.memset(ctypes.addressof(inside)
                      + ArrowArrayStream.release.offset, 0, 8)
        return stream

    def test_a_capsule_gives_all_rows(self):
        from tracefs._arrow import Stream
        trace = tracefs.open(self.sample)
        capsule = trace.__arrow_c_stream__()
        self.assertIn("arrow_array_stream", repr(capsule))
        stream = self.take(capsule)
        del capsule, trace
        gc.collect()
        batches = Stream(stream)
        rows = 0
        while (batch := batches.next()[1]) is not None:
            rows += batch.rows
        self.assertEqual(rows, SAMPLE_EVENTS)

    def test_a_capsule_that_nobody_takes_is_let_go(self):
        from tracefs import _arrow
        held = len(_arrow._held)
        capsule = tracefs.open(EVERY).__arrow_c_stream__()
        self.assertEqual(len(_arrow._held), held + 1)
        del capsule
        gc.collect()
        self.assertEqual(len(_arrow._held), held)

    def test_views_hold_their_batch(self):
        views = [memoryview(batch.data(0)).cast("B").cast("q")
                 for batch in tracefs.open(self.sample).batches(["ts"])]
        gc.collect()
        self.assertEqual(sum(len(view) for view in views), SAMPLE_EVENTS)
        self.assertEqual(list(views[0][:3]),
                         tracefs.open(self.sample).columns(["ts"])["ts"][:3])


class SpeedTest(WithSample):
    """Printed, not demanded: machines differ."""

    def rate(self, title, work):
        begin = time.process_time()
        work()
        took = time.process_time() - begin
        print(f"{title}: {SAMPLE_EVENTS / took / 1e3:,.0f} thousand events/s "
              "of processor time")

    def test_speed(self):
        trace = tracefs.open(self.sample, threads=1)
        names = ["ts", "op", "dur", "pid", "path", "size", "result", "errno"]
        for ordered in (True, False):
            title = "by time" if ordered else "by block"
            self.rate(f"eight columns, {title}", lambda o=ordered: [
                None for _ in trace.batches(names, ordered=o)])
        self.rate("dictionaries of all common columns", lambda: [
            None for _ in trace])


if __name__ == "__main__":
    warnings.simplefilter("error", ResourceWarning)
    unittest.main(argv=[sys.argv[0], *REST])
