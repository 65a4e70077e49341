"""tracefs-report TRACE -o report.html: the data of its panels against sums over
tracefs-dump's JSON Lines, and the page in a real browser."""
import argparse
import base64
import collections
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import browser  # noqa: E402

arguments = None
DATA_OPS = ("read", "write", "copy_file_range")


def command(*words, status=(0, 1), **more):
    done = subprocess.run(words, capture_output=True, check=False, **more)
    if done.returncode not in status:
        raise AssertionError(f"{words}: {done.returncode} {done.stderr!r}")
    return done


def report(*words, **more):
    return command(os.path.join(arguments.bin, "tracefs-report"), *words, **more)


def document(trace, *words):
    return json.loads(report("page", "--format", "json", trace, *words).stdout)


def operations(trace):
    """The operations that ran, as dictionaries."""
    lines = command(os.path.join(arguments.bin, "tracefs-dump"), "--format",
                    "jsonl", trace).stdout.decode("utf-8")
    every = (json.loads(line) for line in lines.splitlines())
    return [op for op in every
            if "op" in op and not op.get("before") and "count" not in op
            and "event" not in op and "alarm" not in op]


def moved(op):
    result = op.get("result", 0)
    return result if op["op"] in DATA_OPS and result > 0 else 0


def sums_by(ops, key):
    """count, errors, bytes, time by what `key` says."""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for op in ops:
        row = sums[key(op)]
        row[0] += 1
        row[1] += 1 if op.get("errno") else 0
        row[2] += 0 if op.get("errno") else moved(op)
        row[3] += op.get("dur", 0)
    return dict(sums)


def shown(text):
    """As the page shows a name, where nothing of it is hidden."""
    return text.replace("\\", "\\\\")


def is_plain(text):
    return text is not None and text.isascii() and text.isprintable()


def tree_total(tree, key):
    return (sum(tree[key]) +
            sum(folded[key] for folded in tree["folded"].values()))


class Traces(unittest.TestCase):
    """Traces to make pages of."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tracefs-page-")
        cls.addClassCleanup(cls.folder.cleanup)

    def trace(self, scene, *words):
        path = os.path.join(self.folder.name, scene + "".join(words) + ".trace")
        if not os.path.exists(path):
            command(arguments.make_build_trace, scene, path, *words)
        return path

    def workload(self, operations=6000, files=200, processes=60):
        path = os.path.join(self.folder.name,
                            f"w{operations}-{files}-{processes}.trace")
        if not os.path.exists(path):
            command(arguments.make_workload_trace, path, str(operations),
                    str(files), str(processes))
        return path

    def golden(self, name):
        return os.path.join(arguments.golden, name + ".trace")

    def page(self, trace, *words):
        path = os.path.join(self.folder.name,
                            os.path.basename(trace) + ".html")
        report(trace, "-o", path, *words)
        return path

    def some(self):
        return [self.trace("toy"), self.trace("hostile"),
                self.trace("findings"), self.workload(),
                *map(self.golden, ("every_operation", "awkward_names",
                                   "order_and_resolution", "processes",
                                   "worked_example", "changed", "damaged"))]


class Data(Traces):
    def test_everyPanelHasTheSumsOfTheOperations(self):
        for trace in self.some():
            with self.subTest(trace=os.path.basename(trace)):
                self.compare(document(trace), operations(trace))

    def compare(self, page, ops):
        every = sums_by(ops, lambda op: 0).get(0, [0, 0, 0, 0])
        totals = page["totals"]
        self.assertEqual(
            [totals["count"], totals["errors"],
             totals["read"] + totals["written"], totals["time_ns"]], every)
        by_op = sums_by(ops, lambda op: op["op"])
        self.assertEqual(
            {row["op"]: [row["count"], row["errors"],
                         row["read"] + row["written"], row["time_ns"]]
             for row in page["operations"]}, by_op)
        timed = [op for op in ops if "ts" in op]
        self.assertEqual(totals["untimed"], len(ops) - len(timed))
        for row in page["operations"]:
            self.assertEqual(sum(row["bins"]), sum(
                1 for op in timed if op["op"] == row["op"]))
        cells = page["latency"]["cells"]
        self.assertEqual(sum(cells[2::3]),
                         sum(1 for op in timed if "dur" in op))
        for tree in ("tree", "flame", "processes"):
            self.assertEqual(tree_total(page[tree], "count"), every[0], tree)
            self.assertEqual(tree_total(page[tree], "time_ns"), every[3], tree)
        for name, table in page["tables"].items():
            rows = table["rows"] + [[""] + table["other"]]
            self.assertEqual(sum(row[1] for row in rows), every[0], name)
            self.assertEqual(sum(row[5] for row in rows), every[3], name)
        self.compare_names(page["tables"], ops)
        errors = collections.Counter((op["errno"], op["op"])
                                     for op in ops if op.get("errno"))
        found = collections.Counter()
        for errno, op, _, count in page["errors"]["rows"]:
            found[errno, op] += count
        self.assertEqual(found, errors)
        slowest = sorted((op["dur"] for op in ops if "dur" in op),
                         reverse=True)[:250]
        self.assertEqual([row[1] for row in page["slowest"]], slowest)

    def compare_names(self, tables, ops):
        keys = {"files": lambda op: op.get("path"),
                "commands": lambda op: op.get("comm", "-"),
                "users": lambda op: str(op["uid"]) if "uid" in op else "-"}
        for name, key in keys.items():
            sums = sums_by(ops, key)
            for text, *row in tables[name]["rows"]:
                if not is_plain(text) or "\\" in text or "(" in text:
                    continue
                self.assertIn(text, sums, name)
                self.assertEqual([row[0], row[1], row[2] + row[3], row[4]],
                                 sums[text], f"{name} {text}")

    def test_aWindowOfARowIsTheSumOfItsSeries(self):
        trace = self.workload()
        page, ops = document(trace), operations(trace)
        time = page["time"]
        origin = int(time["origin_ns"])

        def bin_of(op):
            return (op["ts"] - origin - time["coarse_begin_ns"]) \
                // time["coarse_bin_ns"]
        table = page["tables"]["files"]
        checked = 0
        for row, series in zip(table["rows"], table["series"]):
            if series is None:
                continue
            expected = sums_by([op for op in ops if op.get("path") == row[0]],
                               bin_of)
            found = {series[i]: [series[i + 1], series[i + 2], series[i + 3],
                                 series[i + 4]]
                     for i in range(0, len(series), 5)}
            self.assertEqual(found, expected, row[0])
            checked += 1
        self.assertGreater(checked, 20)

    def test_accessPatternsAreThoseOfAHandle(self):
        ops = operations(self.workload())
        page = document(self.workload())
        for way in ("read", "write"):
            expected = collections.defaultdict(lambda: [0, 0])
            sizes = collections.Counter()
            ends = {}
            for op in ops:
                if op["op"] != way:
                    continue
                end = ends.get(op["fh"])
                row = expected["first" if end is None else
                               "consecutive" if op["offset"] == end else
                               "forward" if op["offset"] > end else "backward"]
                row[0] += 1
                row[1] += op["result"]
                sizes[op["size"]] += 1
                ends[op["fh"]] = op["offset"] + op["result"]
            access = page["access"][way]
            self.assertEqual({name: [count, size] for name, count, size
                              in access["classes"] if count}, dict(expected))
            self.assertEqual(len(expected), 4)
            self.assertEqual({size: count for size, count
                              in access["common"]}, dict(sizes))

    def test_processesHaveTheirParentsExitsAndCommands(self):
        trace = self.trace("toy")
        processes = document(trace)["processes"]
        self.assertTrue(processes["recorded"])
        lines = command(os.path.join(arguments.bin, "tracefs-dump"), "--format",
                        "jsonl", trace).stdout.decode().splitlines()
        forks = {}
        for line in map(json.loads, lines):
            if "child_pid" in line:
                forks[line["child_pid"]] = line["pid"]
        pids = processes["pid"]
        for child, parent in forks.items():
            if child not in pids:
                continue
            at = pids.index(child)
            self.assertEqual(pids[processes["parent"][at]], parent)
        self.assertGreater(len(forks), 3)
        self.assertIn("0", processes["exit"])
        self.assertTrue(any(processes["command"]))

    def test_onlyCounts_areTold(self):
        """Tables of what drivers counted, against the lines of the dump."""
        trace = self.golden("aggregates")
        page = document(trace)
        lines = command(os.path.join(arguments.bin, "tracefs-dump"), "--format",
                        "jsonl", trace).stdout.decode().splitlines()
        told = collections.defaultdict(lambda: [0, 0, 0])
        for line in map(json.loads, lines):
            if "count" in line:
                sums = told[line["tracer"], line["aggregate"], line["scope"]]
                for i, key in enumerate(("count", "errors", "bytes")):
                    sums[i] += line.get(key, 0)
        for table in page["counted"]:
            of = (table["tracer"], table["aggregate"])
            sums = max(told[*of, "period"], told[*of, "total"])
            for i, key in enumerate(("count", "errors", "bytes")):
                if key not in table["values"]:
                    continue
                at = table["values"].index(key)
                self.assertEqual(table["sum"][at], sums[i], (of, key))
                rows = [row[len(table["by"]) + at] for row in table["rows"]]
                rows.append(table["other"][at] if table["other"] else 0)
                self.assertEqual(sum(rows), sums[i], (of, key))
        self.assertEqual({(t["tracer"], t["aggregate"])
                          for t in page["counted"]},
                         {of[:2] for of in told})
        for form in ("html", "md"):
            text = report("page", "--format", form, trace).stdout.decode()
            self.assertNotRegex(text.split("application/json")[0],
                                r"\b(op|comm|uid|errno|dir)=")
            self.assertIn("by operation", text)

    def test_lossesAndDamageAreTheFirstSentence(self):
        for name in ("damaged", "processes"):
            page = document(self.golden(name))
            self.assertEqual(page["summary"][0]["level"], "bad")
        whole = document(self.trace("toy"))
        self.assertNotIn("bad", [s["level"] for s in whole["summary"]])

    def test_nothingAndOneOperation(self):
        page = document(self.workload(0))
        self.assertEqual(page["totals"]["count"], 0)
        self.compare(document(self.workload(1)), operations(self.workload(1)))
        trace = self.workload()
        first = operations(trace)[0]["ts"]
        page = document(trace, "--from", f"@{first}", "--to", f"@{first + 1}")
        self.assertEqual(page["totals"]["count"],
                         sum(1 for op in operations(trace)
                             if op["ts"] == first))

    def test_filterAndTimesAreThoseOfTheDump(self):
        trace = self.workload()
        page = document(trace, "--filter", "op = read")
        self.assertEqual([row["op"] for row in page["operations"]], ["read"])
        self.assertEqual(page["asked"]["filter"], "op = read")


class Files(Traces):
    def test_madeAgainItIsTheSameByteByByte(self):
        trace = self.workload()
        first, second = (report(trace, "--format", form).stdout
                         for form in ("html", "html"))
        self.assertEqual(first, second)
        self.assertLess(len(first), 3 << 20)

    def test_hostileNamesEndNoElement(self):
        with open(self.page(self.golden("awkward_names")), "rb") as file:
            text = file.read().decode("utf-8")
        data = text.split('<script type="application/json" id="data">')[1]
        data = data.split("</script>")[0]
        self.assertNotRegex(data, "[<>&\u2028\u2029\u202e]")
        json.loads(data)
        self.assertEqual(text.count("<script"), 2)
        # What turns the direction of text, or is no text, is spelled out.
        self.assertNotRegex(text, "[\u202a-\u202e\u2066-\u2069\x00-\x08]")

    def test_namesCanBeUndone(self):
        table = document(self.golden("awkward_names"))["tables"]["files"]
        names = set()
        for row in table["rows"]:
            raw = re.sub(rb"\\(\\|n|t|r|x([0-9a-fA-F]{2}))",
                         lambda m: bytes([int(m[2], 16)]) if m[2] else
                         {b"\\": b"\\", b"n": b"\n", b"t": b"\t",
                          b"r": b"\r"}[m[1]], row[0].encode())
            names.add(raw)
        for op in operations(self.golden("awkward_names")):
            path = op.get("path")
            raw = (base64.b64decode(op["path_b64"]) if "path_b64" in op
                   else path.encode() if path else None)
            if raw and b"//" not in raw and len(raw) < 900:
                self.assertIn(raw, names)

    def test_picturesStandAlone(self):
        trace = self.trace("toy")
        for panel in ("timeline", "latency", "directories", "tree",
                      "processes", "access", "flame"):
            svg = report(trace, "--format", "svg", "--panel", panel).stdout
            if subprocess.run(["which", "xmllint"], capture_output=True,
                              check=False).returncode == 0:
                command("xmllint", "--noout", "-", input=svg, status=(0,))
            self.assertIn(b"<style>", svg)

    def test_pngNeedsTheProgramAndSaysSo(self):
        trace = self.trace("toy")
        bare = report(trace, "--format", "png", "--panel", "timeline",
                      status=(3,), env={"PATH": "/nonexistent"})
        self.assertIn(b"librsvg2-bin", bare.stderr)
        if subprocess.run(["which", "rsvg-convert"], capture_output=True,
                          check=False).returncode == 0:
            png = report(trace, "--format", "png", "--panel", "tree").stdout
            self.assertTrue(png.startswith(b"\x89PNG"))
            self.assertGreater(len(set(self.pixels(png))), 20)

    def pixels(self, png):
        """The bytes of its picture: of one that has colours, many kinds."""
        data, at = b"", 8
        while at < len(png):
            size = int.from_bytes(png[at:at + 4], "big")
            if png[at + 4:at + 8] == b"IDAT":
                data += png[at + 8:at + 8 + size]
            at += 12 + size
        return zlib.decompress(data)

    def test_wrongPanelsAndFormatsAreRefused(self):
        trace = self.trace("toy")
        for words in (("--format", "svg"), ("--format", "svg", "--panel", "x"),
                      ("--format", "json", "--panel", "tree"),
                      ("--format", "pdf")):
            done = report(trace, *words, status=(2,))
            self.assertNotEqual(done.stderr, b"")

    def test_markdownHasTheTablesAndNoMarkup(self):
        text = report(self.golden("awkward_names"), "--format",
                      "md").stdout.decode()
        self.assertIn("## Operations", text)
        self.assertNotIn("<script", text)


@unittest.skipUnless(browser.find(), "no chromium: install it to test the page")
class Opened(Traces):
    """Pages in a browser."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.__exit__)

    def open(self, path, fragment=""):
        self.browser.open(path, fragment)
        self.browser.wait("document.documentElement.dataset.ready === '1'")

    def clean(self, path):
        self.assertEqual(self.browser.complaints(), [])
        others = [url for url in self.browser.requests()
                  if url.split("#")[0] not in (f"file://{path}", "about:blank")]
        self.assertEqual(others, [])

    def table(self, name):
        return self.browser.run(
            f"[...document.querySelectorAll('table[data-table=\"{name}\"] "
            "tbody tr')].map((row) => [...row.cells].map((it) => "
            "it.textContent))")


class Page(Opened):
    def test_panelsShowTheirData(self):
        for trace in self.some() + [self.golden("aggregates"),
                                    self.workload(0), self.workload(1)]:
            with self.subTest(trace=os.path.basename(trace)):
                path = self.page(trace)
                os.chmod(path, stat.S_IRUSR)
                self.open(path)
                self.clean(path)
                ops = operations(trace)
                by_op = sums_by(ops, lambda op: op["op"])
                self.assertEqual(
                    {row[0]: int(row[1].replace(",", ""))
                     for row in self.table("operations")},
                    {op: sums[0] for op, sums in by_op.items()})
                names = {row[0] for row in self.table("files")}
                for path_of, _ in list(sums_by(
                        ops, lambda op: op.get("path")).items())[:20]:
                    if is_plain(path_of) and len(ops) < 200:
                        self.assertIn(shown(path_of), names)
                for panel in self.browser.run("Object.keys(panels)"):
                    empty = self.browser.run(
                        f"document.querySelector('#{panel} > .body')"
                        "?.textContent.trim() === ''")
                    self.assertNotEqual(empty, True, panel)
                os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)

    def test_whatWasCountedIsToldInWords(self):
        path = self.page(self.golden("aggregates"))
        self.open(path, "#counted?sort=count")
        self.clean(path)
        heads = self.browser.run(
            "[...document.querySelectorAll('[data-table=counted-1] thead th')]"
            ".map((it) => it.textContent)")
        page = document(self.golden("aggregates"))["counted"][0]
        self.assertEqual(heads[:len(page["by"])], page["by"])
        rows = self.table("counted-1")
        self.assertEqual(len(rows), len(page["rows"]) + bool(page["other"]))
        for row in rows:
            self.assertEqual(len(row), len(heads))
            self.assertNotRegex(" ".join(row), r"\w=|^\d+\.\d+\.\d+:")

    def test_labelsOfPicturesNeitherMeetNorLeave(self):
        """Of axes and legends, as they are drawn; boxes keep theirs inside. On
        screens of phones, of laptops and larger ones."""
        for width in (390, 1366, 2200):
            with self.subTest(width=width):
                self.browser.call("Emulation.setDeviceMetricsOverride",
                                  width=width, height=768, mobile=False,
                                  deviceScaleFactor=1)
                try:
                    self.check_labels()
                finally:
                    self.browser.call("Emulation.clearDeviceMetricsOverride")

    def check_labels(self):
        for trace in (self.workload(), self.workload(1), self.trace("toy"),
                      self.golden("aggregates"), self.golden("damaged"),
                      self.golden("every_operation")):
            path = self.page(trace)
            self.open(path)
            found = self.browser.run("""
              [...document.querySelectorAll('.figure svg')].flatMap((svg) => {
                const all = [...svg.querySelectorAll('text:not(.on)')]
                  .map((it) => [it.getBoundingClientRect(), it.textContent]);
                const frame = svg.getBoundingClientRect(), found = [];
                all.forEach(([a, text], i) => {
                  if (a.left < frame.left - 1 || a.right > frame.right + 1) {
                    found.push(text);
                  }
                  for (const [b, other] of all.slice(i + 1)) {
                    if (a.left < b.right - 1 && b.left < a.right - 1 &&
                        a.top < b.bottom - 3 && b.top < a.bottom - 3) {
                      found.push(`${text} on ${other}`);
                    }
                  }
                });
                const boxes = [...svg.querySelectorAll('rect.box')]
                  .map((it) => it.getBoundingClientRect());
                for (const it of svg.querySelectorAll('text.on')) {
                  const a = it.getBoundingClientRect();
                  if (!boxes.some((b) => a.left >= b.left - 1 &&
                                  a.right <= b.right + 1 &&
                                  a.top >= b.top - 3)) {
                    found.push(`${it.textContent} leaves its box`);
                  }
                }
                return found;
              })""")
            self.assertEqual(found, [], os.path.basename(trace))
            # Marks of an axis are different ones.
            times = self.browser.run("""
              [...document.querySelectorAll('#timeline svg text')]
                .map((it) => it.textContent).filter((it) => /^[+]|[/]s$/.test(it))
            """)
            self.assertEqual(len(times), len(set(times)), times)

    def test_searchLeavesWhatMatches(self):
        path = self.page(self.workload())
        self.open(path)
        before = len(self.table("files"))
        self.browser.key("/", "Slash", "/")
        self.assertEqual(self.browser.run("document.activeElement.id"), "search")
        for letter in "f17":
            self.browser.key(letter, text=letter)
        rows = self.table("files")
        self.assertTrue(0 < len(rows) < before, rows)
        self.assertTrue(all("f17" in row[0] for row in rows))
        self.clean(path)

    def test_titlesSort(self):
        path = self.page(self.workload())
        self.open(path, "#files?sort=count")
        title = ("document.querySelector('#files th[aria-sort] button')")

        def counts():
            return [int(row[1].replace(",", "")) for row in self.table("files")
                    if row[0] != "others"]
        self.assertEqual(counts(), sorted(counts(), reverse=True))
        self.browser.run(title + ".click()")
        self.assertEqual(counts(), sorted(counts()))
        self.assertEqual(self.browser.run(
            title + ".parentElement.getAttribute('aria-sort')"), "ascending")
        self.clean(path)

    def test_arrowKeysChooseATimeAndTheLinkKeepsIt(self):
        trace = self.workload()
        path = self.page(trace)
        self.open(path)
        self.browser.run("document.querySelector('#timeline svg').focus()")
        self.browser.key("ArrowRight")
        self.browser.key("ArrowRight")
        self.check_window(trace)
        fragment = self.browser.run("location.hash")
        self.assertIn("from=", fragment)
        shown_now = self.table("operations")
        self.open(path, fragment)
        self.assertEqual(self.table("operations"), shown_now)
        self.browser.run("document.querySelector('#timeline svg').focus()")
        self.browser.key("Escape")
        self.assertNotIn("from=", self.browser.run("location.hash"))
        self.clean(path)

    def test_draggingChoosesATime(self):
        trace = self.workload()
        path = self.page(trace)
        self.open(path)
        self.browser.run(
            "document.querySelector('#timeline .hit').scrollIntoView("
            "{behavior: 'instant', block: 'center'})")
        box = self.browser.run(
            "(({x, y, width, height}) => ({x, y, width, height}))(document."
            "querySelector('#timeline .hit').getBoundingClientRect())")
        y = box["y"] + box["height"] * 0.8
        left, right = (box["x"] + box["width"] * s for s in (0.3, 0.6))
        self.browser.mouse("mousePressed", left, y, 1)
        self.browser.mouse("mouseMoved", (left + right) / 2, y, 1)
        self.browser.mouse("mouseMoved", right, y, 1)
        self.browser.mouse("mouseReleased", right, y)
        self.check_window(trace)
        self.clean(path)

    def check_window(self, trace):
        """What the page counts in its chosen time is what the trace has."""
        begin, end = self.browser.run("chosenTime()")
        origin = int(self.browser.run("data.time.origin_ns"))
        inside = [op for op in operations(trace)
                  if begin <= op["ts"] - origin < end]
        self.assertGreater(len(inside), 0)
        self.assertEqual(
            {row[0]: int(row[1].replace(",", ""))
             for row in self.table("operations") if row[1] != "0"},
            {op: sums[0] for op, sums
             in sums_by(inside, lambda op: op["op"]).items()})

    def test_boxesOpenAndLeadBack(self):
        path = self.page(self.workload())
        self.open(path)
        for panel, key in (("tree", "root"), ("flame", "top")):
            self.browser.run(
                f"[...document.querySelectorAll('#{panel} rect.box')][1]"
                ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            self.assertIn(key + "=", self.browser.run("location.hash"))
            self.browser.run(
                f"document.querySelector('#{panel} .bar button').click()")
            self.assertNotIn(key + "=", self.browser.run("location.hash"))
        self.clean(path)

    def test_csvIsNoFormulaAndTheDataIsWhole(self):
        path = self.page(self.trace("toy"))
        self.open(path)
        for cell, text in (("=1+1", "\\x3d1+1"), ("@x", "\\x40x"),
                           ("a,b", '"a,b"'), ('a"b', '"a""b"'),
                           ("-x", "\\x2dx"), (-5, "-5"),
                           ("a; =1", "a; \\x3d1"), ("\t=1", "\\x09\\x3d1"),
                           ("\uff1d1", "\\xef\\xbc\\x9d1")):
            self.assertEqual(
                self.browser.run(f"csvCell({json.dumps(cell)})"), text)
        self.assertEqual(
            json.loads(self.browser.run(
                "document.getElementById('data').textContent")),
            document(self.trace("toy")))

    def test_thePolicyLetsNothingElseRun(self):
        path = self.page(self.trace("toy"))
        self.open(path)
        self.browser.run("(() => { const it = document.createElement('script');"
                         "it.textContent = 'window.ran = 1';"
                         "document.body.append(it); })()")
        self.assertIsNone(self.browser.run("window.ran"))
        self.assertEqual(self.browser.run(
            "fetch('data:,x').then(() => 'got', () => 'refused')"), "refused")

    def test_withoutScriptsThereArePicturesAndTables(self):
        path = self.page(self.trace("toy"))
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.open(path)
            self.browser.wait(
                "document.querySelectorAll('svg[role=img]').length === 7")
            self.assertGreater(self.browser.run(
                "document.querySelectorAll('tbody tr').length"), 20)
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled",
                              value=False)

    def test_lightDarkAndNarrow(self):
        path = self.page(self.trace("toy"))
        backgrounds = {}
        for scheme in ("light", "dark"):
            self.browser.call("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": scheme}])
            self.open(path)
            backgrounds[scheme] = self.browser.run(
                "getComputedStyle(document.body).backgroundColor")
            self.browser.screenshot(os.path.join(self.folder.name,
                                                 scheme + ".png"))
        self.assertEqual(backgrounds["light"], "rgb(255, 255, 255)")
        self.assertNotEqual(backgrounds["dark"], backgrounds["light"])
        self.browser.call("Emulation.setDeviceMetricsOverride", width=360,
                          height=740, deviceScaleFactor=1, mobile=True)
        self.open(path)
        self.assertLessEqual(self.browser.run(
            "document.scrollingElement.scrollWidth"), 360)
        self.browser.call("Emulation.clearDeviceMetricsOverride")

    def test_everythingHasAName(self):
        path = self.page(self.trace("toy"))
        self.open(path)
        nameless = self.browser.run("""
          [...document.querySelectorAll('svg, button, a, input, select, table')]
            .filter((it) => !it.closest('[aria-hidden]'))
            .filter((it) => !(it.getAttribute('aria-label') ||
                              it.labels?.length || it.textContent.trim()))
            .map((it) => it.outerHTML.slice(0, 100))""")
        self.assertEqual(nameless, [])
        self.assertEqual(self.browser.run("document.documentElement.lang"), "en")


def main(module="__main__"):
    """Of this file, and of others that test the page."""
    global arguments
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--make-build-trace", required=True)
    parser.add_argument("--make-workload-trace", required=True)
    arguments, rest = parser.parse_known_args()
    if not browser.find():
        print("no chromium: the page is not opened; scripts/setup installs it")
    unittest.main(module, argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
