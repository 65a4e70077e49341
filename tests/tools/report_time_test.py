"""The page that tracefs-report makes, in a browser: what a chosen time makes of
each panel, against sums over tracefs-dump's JSON Lines; the time line; search;
what leads from one thing to another; small screens and paper."""
import collections
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import report_page_test as page_test  # noqa: E402


class Figures(page_test.Opened):
    """How figures of the page are compared with numbers."""

    def choose(self, path, trace, first, end):
        """Opens the page with that time chosen; the operations in it."""
        self.open(path, f"#timeline?from={first}&to={end}")
        begin, last = self.browser.run("chosenTime()")
        origin = int(self.browser.run("data.time.origin_ns"))
        inside = [op for op in page_test.operations(trace) if "ts" in op
                  and begin <= op["ts"] - origin < last]
        self.assertGreater(len(inside), 0)
        return inside

    def is_about(self, text, number, what):
        """A figure of three digits, the rest cut, is of that number."""
        if number == 0:
            self.assertIn(text, ("0 B", "-"), what)
            return
        digits, unit = text.replace(",", "").split(" ")
        factor = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "ns": 1,
                  "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10}[unit]
        step = 10.0 ** -len(digits.partition(".")[2])
        self.assertLessEqual(float(digits) * factor, number * 1.0001, what)
        self.assertGreater((float(digits) + step) * factor, number * 0.9999,
                           what)

    def are_sums(self, cells, sums, what):
        """count, errors, bytes, time as they are shown."""
        self.assertEqual([int(cells[0].replace(",", "")),
                          int(cells[1].replace(",", ""))], sums[:2], what)
        self.is_about(cells[2], sums[2], what)
        self.is_about(cells[3], sums[3], what)


class ChosenTime(Figures):
    def test_aChosenTimeIsThatOfTilesAndOperations(self):
        for trace, first, end in ((self.workload(), 20, 90),
                                  (self.trace("toy"), 0, 200),
                                  (self.workload(60000, 900, 300), 3, 40)):
            path = self.page(trace)
            inside = self.choose(path, trace, first, end)
            every = page_test.sums_by(inside, lambda op: 0)[0]
            tiles = self.browser.run(
                "Object.fromEntries([...document.querySelectorAll('.tile')]"
                ".map((it) => [it.id, it.querySelector('b').textContent]))")
            self.are_sums([tiles["tile-" + name] for name in (
                "operations", "errors", "bytes", "time")], every, "tiles")
            by_op = page_test.sums_by(inside, lambda op: op["op"])
            rows = {row[0]: row[1:] for row in self.table("operations")}
            self.assertEqual(set(rows), set(by_op))
            for op, cells in rows.items():
                self.are_sums(cells, by_op[op], op)
                took = sorted(o["dur"] for o in inside
                              if o["op"] == op and "dur" in o)
                for share, text in zip((0.5, 0.9, 0.99, 0.999, 1), cells[4:]):
                    if not took:
                        self.assertEqual(text, "-")
                        continue
                    exact = took[max(0, math.ceil(share * len(took) - 1e-6)
                                     - 1)]
                    digits, unit = text.split(" ")
                    shown_ns = float(digits) * {"ns": 1, "µs": 1e3, "ms": 1e6,
                                                "s": 1e9}[unit]
                    # Rows of durations are an eighth wide, below 64 ns eight.
                    self.assertLessEqual(abs(shown_ns - exact),
                                         max(0.08 * exact, 8), (op, share))
            self.clean(path)

    def test_aChosenTimeIsThatOfTables(self):
        keys = {"files": lambda op: op["path"],
                "directories": lambda op: op["path"].rsplit("/", 1)[0] or "/",
                "commands": lambda op: op["comm"],
                "users": lambda op: str(op["uid"])}
        trace = self.workload()
        path = self.page(trace)
        inside = [op for op in self.choose(path, trace, 30, 120)]
        count = len(inside)
        for name, key in keys.items():
            self.browser.run(
                f"shownRows.set('{name}', 5000), "
                f"change('files', {{table: '{name}'}})")
            sums = page_test.sums_by(inside, key)
            rows = self.table(name)
            self.assertGreater(len(rows), 1)
            for text, *cells in rows:
                if text != "others":
                    self.are_sums(cells, sums[text], f"{name} {text}")
            self.assertEqual(sum(int(row[1].replace(",", ""))
                                 for row in rows), count, name)
        failed = collections.Counter((op["errno"], op["op"], op["comm"])
                                     for op in inside if op.get("errno"))
        self.assertEqual({tuple(row[:3]): int(row[3].replace(",", ""))
                          for row in self.table("errors")}, dict(failed))
        matrix = self.table("error-matrix")
        self.assertEqual(sum(int(row[-1].replace(",", "")) for row in matrix),
                         sum(failed.values()))
        slowest = sorted((op["dur"] for op in inside), reverse=True)[:5]
        for row, took in zip(self.table("slowest"), slowest):
            self.is_about(row[1], took, "slowest")
        self.assertEqual(sum(int(row[1].replace(",", ""))
                             for row in self.table("latency")), count)
        self.clean(path)

    def test_aChosenTimeIsThatOfTreesAndProcesses(self):
        trace = self.workload()
        path = self.page(trace)
        inside = self.choose(path, trace, 30, 120)
        self.browser.run("change('tree', {tree: 'count', flame: 'count', "
                         "places: 'commands', heat: 'count'})")
        for name in ("tree", "flame", "places", "processes"):
            self.browser.run(f"shownRows.set('{name}', 5000)")
        self.browser.run("processView().shown.forEach((i) => "
                         "folded.set(i, false)), render()")
        number = lambda text: int(text.replace(",", ""))  # noqa: E731
        tree = {row[0]: number(row[1]) for row in self.table("tree")}
        self.assertEqual(tree["/"], len(inside))
        by_folder = page_test.sums_by(inside, lambda op: op["path"].rsplit("/", 1)[0])
        unknown = tree.get("/(times not kept apart)", 0)
        for folder, sums in by_folder.items():
            self.assertLessEqual(tree.get(folder, 0), sums[0])
            self.assertGreaterEqual(tree.get(folder, 0) + unknown, sums[0])
        self.assertLess(unknown, len(inside) / 10)
        flame = {row[0]: number(row[1]) for row in self.table("flame")}
        self.assertEqual(flame["all"], len(inside))
        by_comm = page_test.sums_by(inside, lambda op: op["comm"])
        for comm, sums in by_comm.items():
            self.assertLessEqual(flame[comm], sums[0])
        self.assertEqual(sum(flame[comm] for comm in by_comm) +
                         flame.get("(times not kept apart)", 0), len(inside))
        self.assertEqual({row[0]: number(row[1])
                          for row in self.table("places")},
                         {comm: sums[0] for comm, sums in by_comm.items()})
        by_pid = page_test.sums_by(inside, lambda op: op["pid"])
        rows = {int(row[0].lstrip("+\u2212").split(" ")[0]): row[5:]
                for row in self.table("processes")
                if row[0].lstrip("+\u2212")[0].isdigit()}
        self.assertLessEqual(set(by_pid), set(rows))
        for pid, cells in rows.items():
            if cells[0] != "-":
                self.are_sums(cells, by_pid.get(pid, [0, 0, 0, 0]), pid)
        self.assertLess(sum(cells[0] == "-" for cells in rows.values()), 10)
        self.clean(path)

    def test_aChosenTimeIsThatOfAccessPatterns(self):
        trace = self.workload()
        path = self.page(trace)
        inside = self.choose(path, trace, 30, 120)
        begin, ends = inside[0]["ts"], {}
        last = inside[-1]["ts"]
        for way in ("read", "write"):
            classes = collections.Counter()
            for op in page_test.operations(trace):
                if op["op"] != way:
                    continue
                end = ends.get((way, op["fh"]))
                if begin <= op["ts"] <= last:
                    classes["first" if end is None else
                            "consecutive" if op["offset"] == end else
                            "forward" if op["offset"] > end else
                            "backward"] += 1
                ends[way, op["fh"]] = op["offset"] + op["result"]
            drawn = dict(re.match(rf"(\w+): ([\d,]+) {way}s", it).groups()
                         for it in self.browser.run(
                             "[...document.querySelectorAll('#access rect "
                             "title')].map((it) => it.textContent)")
                         if f" {way}s," in it)
            self.assertEqual({name: int(n.replace(",", ""))
                              for name, n in drawn.items()}, dict(classes))
            sizes = collections.Counter(op["size"].bit_length()
                                        for op in inside if op["op"] == way)
            self.assertEqual(sorted(int(row[2].replace(",", "")) for row in
                                    self.table(f"sizes-{way}")),
                             sorted(sizes.values()))
        self.clean(path)


class Looks(Figures):
    def test_theTimeLineZoomsAndBack(self):
        path = self.page(self.workload())
        self.open(path)
        marks = ("[...document.querySelectorAll('#timeline svg text')]"
                 ".map((it) => it.textContent).filter((it) => "
                 "/^[+]/.test(it))")
        before = self.browser.run(marks)
        self.browser.run("choose(40, 60)")
        chosen = self.browser.run("chosenTime()")
        self.browser.run("document.getElementById('zoom-in').click()")
        self.assertIn("zoom=40-60", self.browser.run("location.hash"))
        for text in self.browser.run(marks):
            digits, unit = text[1:].split(" ")
            at = float(digits) * {"µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
            self.assertTrue(chosen[0] * 0.999 <= at <= chosen[1] * 1.001, text)
        # Dragging now chooses within what is shown.
        self.browser.run(
            "document.querySelector('#timeline .hit').scrollIntoView("
            "{behavior: 'instant', block: 'center'})")
        box = self.browser.run(
            "(({x, y, width, height}) => ({x, y, width, height}))(document."
            "querySelector('#timeline .hit').getBoundingClientRect())")
        y = box["y"] + box["height"] * 0.5
        self.browser.mouse("mousePressed", box["x"] + 2, y, 1)
        self.browser.mouse("mouseMoved", box["x"] + box["width"] / 2, y, 1)
        self.browser.mouse("mouseReleased", box["x"] + box["width"] / 2, y)
        first, end = self.browser.run("chosenBins()")
        self.assertEqual(first, 40)
        self.assertTrue(48 <= end <= 52, end)
        self.browser.run("document.getElementById('zoom-out').click()")
        self.assertEqual(self.browser.run(marks), before)
        self.clean(path)

    def test_aSpikeFlattensNothing(self):
        """One bin a thousand times as high as the others."""
        path = self.page(self.workload())
        self.open(path)
        heights = """(() => {
          const all = new Map();
          for (const path of document.querySelectorAll('#timeline path')) {
            for (const [, x, a, b] of path.getAttribute('d').matchAll(
                /M([\\d.]+) ([\\d.]+)V([\\d.]+)H/g)) {
              all.set(x, (all.get(x) || 0) + Number(a) - Number(b));
            }
          }
          return [...all.values()].sort((a, b) => a - b);
        })()"""
        self.browser.run("data.operations[0].bins[9] = 1000 * Math.max("
                         "...data.operations[0].bins)")
        middle = {}
        for scale in ("auto", "linear", "log"):
            self.browser.run(f"change('timeline', {{scale: '{scale}'}})")
            found = self.browser.run(heights)
            middle[scale] = found[len(found) // 2]
        self.assertLess(middle["linear"], 2)
        self.assertGreater(middle["auto"], 40)
        self.assertGreater(middle["log"], 20)
        self.browser.run("change('timeline', {scale: 'auto'})")
        self.assertRegex(self.browser.run(
            "document.querySelector('#timeline .says-so').textContent"),
            "^1 of ")
        self.clean(path)

    def test_searchNarrowsEveryPanelOrItSaysWhyNot(self):
        path = self.page(self.workload())
        self.open(path)
        whole = self.browser.run(
            "Object.fromEntries(Object.keys(panels).map((id) => [id, document."
            "querySelector(`#${id} > .body`)?.textContent.length]))")
        self.browser.run("change('', {q: 'f17'})")
        for panel, length in whole.items():
            if length is None:
                continue
            now, said = self.browser.run(
                f"[document.querySelector('#{panel} > .body').innerText, "
                f"[...document.querySelectorAll('#{panel} .says-so')]"
                ".map((it) => it.textContent).join(' ')]")
            self.assertTrue("earch" in said or len(now) < length, panel)
        names = self.browser.run(
            "[...document.querySelectorAll('#slowest tbody tr, "
            "#files tbody tr')].map((it) => it.textContent)")
        self.assertGreater(len(names), 0)
        self.assertTrue(all("f17" in name for name in names), names)
        self.clean(path)

    def test_aFileOpensWhoUsedIt(self):
        trace = self.workload()
        path = self.page(trace)
        self.open(path)
        ops = page_test.operations(trace)
        button = "document.querySelector('#files tbody button.row')"
        name = self.browser.run(button + ".textContent")
        self.browser.run(button + ".click()")
        rows = self.browser.run(
            "[...document.querySelectorAll('#files .links table')].map((it) =>"
            " [...it.tBodies[0].rows].map((row) => [...row.cells].map((cell) "
            "=> cell.textContent)))")
        of_file = [op for op in ops if op.get("path") == name]
        by_pid = page_test.sums_by(of_file, lambda op: op["pid"])
        self.assertGreater(len(rows[0]), 1)
        for process, *cells in rows[0]:
            self.are_sums(cells, by_pid[int(process.split(" ")[0])], process)
        by_op = page_test.sums_by(of_file, lambda op: (op["comm"], op["op"]))
        self.assertGreater(len(rows[1]), 1)
        for comm, op, *cells in rows[1]:
            self.are_sums(cells, by_op[comm, op], (comm, op))
        # And on to the process, which opens its files.
        pid = int(rows[0][0][0].split(" ")[0])
        self.browser.run("document.querySelector('#files .links button.row')"
                         ".click()")
        files = self.browser.run(
            "[...document.querySelectorAll('#processes .links tbody tr')]"
            ".map((row) => [...row.cells].map((it) => it.textContent))")
        by_path = page_test.sums_by([op for op in ops if op["pid"] == pid],
                          lambda op: op["path"])
        self.assertIn(name, [row[0] for row in files])
        for file, *cells in files:
            self.are_sums(cells, by_path[file], file)
        self.clean(path)

    def test_idleProcessesAreLeftOut(self):
        trace = self.trace("toy")
        path = self.page(trace)
        self.open(path)
        self.browser.run("processView().shown.forEach((i) => "
                         "folded.set(i, false)), render()")
        shown_rows = [int(row[0].lstrip("+\u2212").split(" ")[0])
                      for row in self.table("processes")
                      if row[0].lstrip("+\u2212")[0].isdigit()]
        processes = page_test.document(trace)["processes"]
        did = {op["pid"] for op in page_test.operations(trace) if "pid" in op}
        above = set(did)
        for at in reversed(range(1, len(processes["pid"]))):
            if processes["pid"][at] in above and processes["parent"][at]:
                above.add(processes["pid"][processes["parent"][at]])
        self.assertLessEqual(set(shown_rows), above)
        self.assertLessEqual(did & set(processes["pid"]), set(shown_rows))
        self.clean(path)

    def test_phoneAndPaperLoseNoColumn(self):
        path = self.page(self.workload())
        self.browser.call("Emulation.setDeviceMetricsOverride", width=390,
                          height=844, deviceScaleFactor=1, mobile=True)
        try:
            self.open(path)
            self.assertLessEqual(self.browser.run(
                "document.scrollingElement.scrollWidth"), 390)
            # Whatever does not fit can be scrolled to.
            lost = self.browser.run("""
              [...document.querySelectorAll('main table')].map((table) => {
                const box = table.closest('.scroll');
                if (box) box.scrollLeft = box.scrollWidth;
                const it = [...table.rows[0].cells].at(-1);
                const {left, right, width} = it.getBoundingClientRect();
                const is = getComputedStyle(it).display !== 'none';
                if (it.closest('details:not([open])')) return '';
                return is && width > 0 && left >= 0 && right <= 391 ? '' :
                  `${table.ariaLabel} ${left} ${right}`;
              }).filter((it) => it !== '')""")
            self.assertEqual(lost, [])
        finally:
            self.browser.call("Emulation.clearDeviceMetricsOverride")
        self.browser.call("Emulation.setDeviceMetricsOverride", width=720,
                          height=1000, deviceScaleFactor=1, mobile=False)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        try:
            self.open(path)
            wide = self.browser.run("""(print(true),
              [...document.querySelectorAll('main table, main svg')]
              .filter((it) => it.getBoundingClientRect().right > 721)
              .map((it) => it.ariaLabel || it.className))""")
            self.assertEqual(wide, [])
        finally:
            self.browser.call("Emulation.setEmulatedMedia", media="")
            self.browser.call("Emulation.clearDeviceMetricsOverride")

    def test_theFirstScreenHasTilesAndTheTimeLine(self):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=1366,
                          height=768, deviceScaleFactor=1, mobile=False)
        try:
            for trace in (self.workload(), self.golden("damaged"),
                          self.trace("toy")):
                self.open(self.page(trace))
                places = self.browser.run(
                    "['.tiles', '#timeline svg', '#completeness'].map((it) => "
                    "document.querySelector(it).getBoundingClientRect()."
                    "bottom)")
                self.assertEqual(places, sorted(places))
                self.assertLess(places[2], 768, os.path.basename(trace))
                self.assertEqual(self.browser.run(
                    "document.querySelectorAll('.tile').length"), 6)
        finally:
            self.browser.call("Emulation.clearDeviceMetricsOverride")

    def test_noTimeIsWrittenWhereNoneIsKnown(self):
        for trace in self.some():
            self.open(self.page(trace))
            self.assertNotRegex(self.browser.run("document.body.innerText"),
                                r"(?<![\d.])0 ns", os.path.basename(trace))

    def test_thePageIsCalledAfterTheCommand(self):
        """A trace that tracefs-run records of a command whose arguments have
        lines."""
        run = os.path.join(page_test.arguments.bin, "tracefs-run")
        folder = os.path.join(self.folder.name, "run")
        os.makedirs(folder, exist_ok=True)
        trace = os.path.join(self.folder.name, "run.trace")
        script = "ls > list\ncat list nothing"
        done = subprocess.run([run, "-q", "--src", folder, "-o", trace, "--",
                               "sh", "-c", script], capture_output=True,
                              check=False) if os.path.exists(run) else None
        if done is None or not os.path.exists(trace):
            self.skipTest("tracefs-run records nothing here")
        self.open(self.page(trace))
        self.assertEqual(self.browser.run(
            "document.querySelector('h1').textContent"),
            "sh -c 'ls > list\u21b5cat list nothing'")
        self.assertIn(os.uname().nodename, self.browser.run(
            "document.querySelector('header .when').textContent"))
        self.assertNotIn("\\n", self.browser.run("document.body.innerText"))
        self.clean(self.page(trace))


if __name__ == "__main__":
    page_test.main()
