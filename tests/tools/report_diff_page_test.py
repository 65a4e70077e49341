"""tracefs-report diff A B -o report.html: both sides against sums over tracefs-dump's
JSON Lines, in a browser."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import report_page_test as page_test  # noqa: E402
import report_time_test as time_test  # noqa: E402


class Comparison(time_test.Figures):
    def sides(self):
        """Two different workloads over the same names."""
        return self.workload(), self.workload(9000, 230, 60)

    def page_of(self, a, b, *words):
        path = os.path.join(self.folder.name, "diff.html")
        page_test.report("diff", a, b, "-o", path, *words)
        return path

    def test_tablesAreTheSumsOfBothSides(self):
        a, b = self.sides()
        path = self.page_of(a, b)
        self.open(path)
        for name, key in (("operation", lambda op: op["op"]),
                          ("command", lambda op: op["comm"]),
                          ("path", lambda op: op["path"])):
            self.browser.run(f"shownRows.set('by-{name}', 5000), render()")
            sums = [page_test.sums_by(page_test.operations(side), key)
                    for side in (a, b)]
            heads = self.browser.run(
                f"data.tables.find((it) => it.name === '{name}').columns"
                ".map((it) => it.name)")
            rows = self.table("by-" + name)
            self.assertGreaterEqual(len(rows), 5)
            for text, *cells in rows:
                row = dict(zip(heads[1:], cells))
                if text not in sums[0] and text not in sums[1]:
                    continue  # the line of all others
                none = [0, 0, 0, 0]
                for side, letter in zip(sums, "ab"):
                    has = side.get(text)
                    shown = [row[f"{what}_{letter}"] for what in
                             ("count", "errors", "bytes", "time")]
                    if has is None:
                        self.assertEqual(shown, ["-"] * 4)
                    else:
                        self.are_sums(shown, has, text)
                more = sums[1].get(text, none)[3] - sums[0].get(text, none)[3]
                if more:
                    self.assertEqual(row["time_diff"][0], "+-"[more < 0])
                    self.is_about(row["time_diff"][1:], abs(more), text)
                self.assertEqual(
                    row["verdict"], "new" if text not in sums[0] else
                    "gone" if text not in sums[1] else "slower" if more > 0
                    else "faster" if more < 0 else "same")
            named = {row[0] for row in rows}
            if name != "path":
                self.assertEqual(named, set(sums[0]) | set(sums[1]))
        self.clean(path)

    def test_bothHaveTheirFiguresAndTimeLines(self):
        a, b = self.sides()
        path = self.page_of(a, b)
        self.open(path)
        totals = {row[0]: row[1:] for row in self.browser.run(
            "[...document.querySelectorAll('#totals tbody tr')].map((row) => "
            "[...row.cells].map((it) => it.textContent))")}
        for side, at in ((a, 0), (b, 2)):
            every = page_test.sums_by(page_test.operations(side),
                                      lambda op: 0)[0]
            self.are_sums([totals[name][at] for name in (
                "operations", "errors", "bytes", "in the file system")],
                every, side)
        self.assertEqual(self.browser.run(
            "document.querySelectorAll('#timeline .figure svg').length"), 3)
        # One scale: the same marks of time below both.
        marks = self.browser.run(
            "[...document.querySelectorAll('#timeline .figure svg')].slice(1)"
            ".map((svg) => [...svg.querySelectorAll('text')].map((it) => "
            "it.textContent).filter((it) => it.startsWith('+')))")
        self.assertEqual(marks[0], marks[1])
        self.assertGreater(len(marks[0]), 2)
        self.clean(path)

    def test_searchAndScriptsThatMayNotRun(self):
        path = self.page_of(*self.sides())
        self.open(path)
        self.browser.key("/", "Slash", "/")
        for letter in "f17":
            self.browser.key(letter, text=letter)
        rows = self.table("by-path")
        self.assertGreater(len(rows), 0)
        self.assertTrue(all("f17" in row[0] for row in rows), rows)
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.open(path)
            self.browser.wait(
                "document.querySelectorAll('svg[role=img]').length === 2")
            self.assertGreater(self.browser.run(
                "document.querySelectorAll('#by-operation tbody tr').length"),
                3)
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled",
                              value=False)

    def test_phoneAndPaperLoseNoColumn(self):
        path = self.page_of(*self.sides())
        try:
            for width, media in ((390, "screen"), (720, "print")):
                self.browser.call("Emulation.setDeviceMetricsOverride",
                                  width=width, height=900, mobile=False,
                                  deviceScaleFactor=1)
                self.browser.call("Emulation.setEmulatedMedia", media=media)
                self.open(path)
                self.assertLessEqual(self.browser.run(
                    "document.scrollingElement.scrollWidth"), width)
                wide = self.browser.run(
                    "[...document.querySelectorAll('main table')].filter((it)"
                    f" => it.getBoundingClientRect().right > {width} + 1 && "
                    "getComputedStyle(it.parentElement).overflowX !== 'auto')"
                    ".map((it) => it.ariaLabel)")
                self.assertEqual(wide, [], media)
        finally:
            self.browser.call("Emulation.setEmulatedMedia", media="")
            self.browser.call("Emulation.clearDeviceMetricsOverride")

    def test_hostileNamesAreTexts(self):
        path = self.page_of(self.golden("awkward_names"), self.trace("hostile"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("<script"), 2)
        self.open(path)
        self.clean(path)


class Command(page_test.Traces):
    def test_whatCannotBeDrawnIsRefused(self):
        a = self.workload()
        for words in (("diff", f"{a},{a}", a, "--format", "html"),
                      ("diff", "-", a, "--format", "html"),
                      ("errors", a, "--format", "html")):
            done = page_test.report(*words, status=(2,), input=b"")
            self.assertNotEqual(done.stderr, b"")

    def test_theNameOfTheFileSaysThatItIsAPage(self):
        a = self.workload()
        path = os.path.join(self.folder.name, "named.html")
        page_test.report("diff", a, a, "-o", path)
        with open(path, "rb") as file:
            self.assertTrue(file.read().startswith(b"<!DOCTYPE html>"))
        page_test.report("diff", a, a, "-o", path, "--format", "csv")
        with open(path, "rb") as file:
            self.assertTrue(file.read().startswith(b"op,"))


if __name__ == "__main__":
    page_test.main()
