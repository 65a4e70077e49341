"""bench/run where things go wrong: missing peers, too little space, leftover
mounts, peers that crash, hang or corrupt data, interruptions. The row must say
so, the run must go on and nothing may stay mounted. And the statistics."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from evaluation import comparison, configurations, images  # noqa: E402
from evaluation import data_paths, experiments, peers, report  # noqa: E402
from evaluation import request_copies, request_trace  # noqa: E402
from evaluation import runner, scratch, statistics, workloads  # noqa: E402
from evaluation.experiments import Experiment, Target  # noqa: E402
from evaluation.samples import Samples  # noqa: E402
from evaluation.summary import cells, targets  # noqa: E402

BUILD = None


class Touch(workloads.Workload):
    """The shortest workload."""
    sizes = {"smoke": None}
    command = ("true",)

    def commands(self, where):
        return [["touch", f"{where}/x"], list(self.command)]


class Missing(configurations.Configuration):
    def missing(self, context):
        return "not installed"


class Refused(configurations.Daemon):
    """Its daemon ends before it has mounted."""

    def start(self, context, source):
        self.launch(context, ["sh", "-c", "echo no permission >&2; exit 3"],
                    context.scratch.point)


class Crashing(configurations.Tracefs):
    """A file system whose daemon dies and leaves its mount behind."""

    def __init__(self, name):
        super().__init__("full")

    def start(self, context, source):
        where = super().start(context, source)
        self.process.kill()
        self.process.wait()
        return where


class Silent(configurations.Tracefs):
    """A file system that does not answer any more."""

    def __init__(self, name):
        super().__init__("full")

    def start(self, context, source):
        where = super().start(context, source)
        self.process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        while not all(" (" in (s := (t / "stat").read_text())
                      and s.rsplit(") ", 1)[1].startswith("T")
                      for t in tasks.iterdir()):
            time.sleep(0.01)
        return where


class Corrupting(configurations.Configuration):
    """What is written to it does not arrive as it was."""

    def start(self, context, source):
        self.source = source
        return source

    def stop(self):
        path = pathlib.Path(self.source) / runner.Probe.NAME
        path.write_bytes(b"?" + path.read_bytes()[1:])
        return {}


class LeavingMount(configurations.Configuration):
    """Forgets to unmount, twice."""

    def start(self, context, source):
        for _ in range(2):
            subprocess.run(["mount", "-t", "tmpfs", "forgotten",
                            context.scratch.point], check=True)
        return source


class EvaluationTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self._peers = dict(peers.PEERS)
        self._workloads = dict(workloads.WORKLOADS)
        peers.PEERS.update(missing=Missing, refused=Refused, crashing=Crashing,
                           silent=Silent, corrupting=Corrupting, leaving=LeavingMount)
        workloads.WORKLOADS["touch"] = Touch
        self.folder = tempfile.TemporaryDirectory()
        self.disk = pathlib.Path(self.folder.name)
        self.samples = Samples(self.disk / "samples.jsonl")
        self.mounts = self.our_mounts()

    def tearDown(self):
        for table, before in ((peers.PEERS, self._peers),
                              (workloads.WORKLOADS, self._workloads)):
            table.clear()
            table.update(before)
        self.assertEqual(self.our_mounts(), self.mounts)
        self.assertEqual(list(self.disk.glob(scratch.PREFIX + "*")), [])
        self.folder.cleanup()

    def our_mounts(self):
        """Others may mount meanwhile."""
        return [m for m in scratch.mounts() if scratch.PREFIX in m[0]
                or "/fusectl-" in m[0] or m[0].startswith(str(self.disk))]

    def run_all(self, *names, rounds=1, timeout_s=30, experiments=("test",),
                place="tmpfs"):
        experiments = [Experiment(name, name, "touch", ("native",) + names,
                                  "native", place=place)
                       for name in experiments]
        with scratch.Scratch(self.disk, 64 << 20) as place:
            context = runner.Context(
                scratch=place, scale="smoke", build=BUILD, deps=BUILD,
                limits=runner.Limits(rounds, rounds, 60, timeout_s))
            runner.Runner(context, self.samples,
                          runner.Progress(0, quiet=True)).run(experiments)

    def error(self, name):
        found = self.samples.of("test", name)
        self.assertTrue(found)
        return found[-1].get("error", "")

    def test_what_fails_has_a_row_and_the_run_goes_on(self):
        self.run_all("missing", "refused", "corrupting", "leaving", rounds=2)
        self.assertIn("not installed", self.error("missing"))
        self.assertIn("did not mount: status 3: no permission",
                      self.error("refused"))
        self.assertIn("corrupts data", self.error("corrupting"))
        self.assertEqual(len(self.samples.values("test", "native")), 2)
        self.assertEqual(len(self.samples.values("test", "leaving")), 2)
        # What cannot run at all is tried once, what failed twice no more.
        self.assertEqual(len(self.samples.of("test", "missing")), 1)

    def test_each_experiment_has_a_round_before_any_has_two(self):
        self.run_all(experiments=("test", "other"), rounds=2)
        self.assertEqual([(s["experiment"], s["round"])
                          for s in self.samples.all],
                         [("test", 0), ("other", 0), ("test", 1),
                          ("other", 1)])

    def test_a_file_system_that_crashes_is_named_and_unmounted(self):
        if not os.path.exists("/dev/fuse"):
            self.skipTest("needs /dev/fuse")
        self.run_all("crashing")
        self.assertIn("ended during the workload", self.error("crashing"))

    def test_a_file_system_that_does_not_answer_is_aborted(self):
        if not os.path.exists("/dev/fuse"):
            self.skipTest("needs /dev/fuse")
        self.run_all("silent", timeout_s=2)
        self.assertIn("does not answer", self.error("silent"))
        self.assertEqual(len(self.samples.values("test", "native")), 1)

    def test_a_workload_that_hangs_is_ended(self):
        Touch.command = ("sleep", "1000")
        try:
            self.run_all(timeout_s=0.5)
        finally:
            Touch.command = ("true",)
        self.assertIn("hangs", self.error("native"))

    def test_too_little_space_is_said_of_every_configuration(self):
        workloads.WORKLOADS["touch"] = type(
            "Huge", (Touch,), {"needed_bytes": lambda self: 1 << 60})
        self.run_all("missing")
        for name in ("native", "missing"):
            self.assertIn("too little space", self.error(name))

    def test_leftovers_of_dead_runs_are_removed_and_of_living_ones_kept(self):
        paths = {}
        for name, owner in (("dead", "4194305 1"),
                            ("alive", f"{os.getpid()} "
                             f"{scratch.start_time(os.getpid())}")):
            root = self.disk / (scratch.PREFIX + name)
            (root / "mnt").mkdir(parents=True)
            (root / scratch.OWNER).write_text(owner)
            subprocess.run(["mount", "-t", "tmpfs", "x", root / "mnt"],
                           check=True)
            paths[name] = root
        try:
            self.assertEqual(scratch.remove_leftovers([self.disk]),
                             [paths["dead"]])
            self.assertFalse(paths["dead"].exists())
            self.assertEqual(scratch.mount_count(paths["alive"] / "mnt"), 1)
        finally:
            scratch.unmount_below(paths["alive"])
            subprocess.run(["rm", "-r", paths["alive"]], check=True)

    def attached(self):
        """Loop devices of images below our folder."""
        found = subprocess.run(["losetup", "--list", "--noheadings", "--output",
                                "BACK-FILE"], capture_output=True, text=True,
                               check=True)
        return [f for f in found.stdout.split() if f.startswith(str(self.disk))]

    def made(self, place, name):
        """A place that this machine may not have."""
        try:
            return place.place(name)
        except scratch.Failure as failure:
            self.skipTest(str(failure))

    def test_file_systems_of_a_run_go_with_it(self):
        with scratch.Scratch(self.disk, 64 << 20) as place:
            for name in images.MKFS:
                point = self.made(place, name)
                (point / "file").write_bytes(b"x" * 5000)
                self.assertEqual(place.place(name), point)
                self.assertEqual(subprocess.run(
                    ["findmnt", "-n", "-o", "FSTYPE", point], text=True,
                    capture_output=True, check=True).stdout.strip(), name)
            self.assertEqual(len(self.attached()), len(images.MKFS))
        self.assertEqual(self.attached(), [])

    def test_a_file_system_that_cannot_be_had_is_said_and_nothing_stays(self):
        with unittest.mock.patch.dict(images.MKFS, ext4=("mkfs.none",),
                                      xfs=("false",)):
            self.run_all("missing", place="ext4", rounds=2)
            self.assertEqual([s["error"] for s in self.samples.all],
                             ["mkfs.none is not installed"] * 2)
            self.assertTrue(all(s["round"] < 0 for s in self.samples.all))
            with scratch.Scratch(self.disk, 64 << 20) as place:
                for _ in range(2):
                    with self.assertRaisesRegex(scratch.Failure, "false"):
                        place.place("xfs")
                self.assertEqual(list(place.disk.glob("*.img")), [])

    def test_file_systems_of_dead_runs_are_removed(self):
        with unittest.mock.patch.object(tempfile, "tempdir", str(self.disk)):
            place = scratch.Scratch(self.disk, 64 << 20)
        self.addCleanup(place.close)
        self.made(place, "ext4")
        # Killed before it was mounted.
        image = place.disk / "xfs.img"
        image.write_bytes(bytes(1 << 20))
        subprocess.run(["losetup", "--find", image], check=True)
        self.assertEqual(len(self.attached()), 2)
        for root in (place.root, place.disk):
            (root / scratch.OWNER).write_text("4194305 1")
        scratch.remove_leftovers([self.disk])
        self.assertEqual(self.attached(), [])

    def test_a_smoke_run_has_each_part_of_a_data_path(self):
        all_ = [e for e in experiments.EXPERIMENTS if e.shape]
        few = [e for e in experiments.thinned(experiments.EXPERIMENTS)
               if e.shape]
        self.assertLess(len(few), len(all_) / 4)
        for part in (lambda e: e.place, lambda e: e.shape.pattern,
                     lambda e: e.shape.mode, lambda e: e.shape.callers):
            self.assertEqual({part(e) for e in few}, {part(e) for e in all_})
        self.assertEqual({e.place for e in all_}, set(images.MKFS))

    def test_an_interrupted_run_goes_on_where_it_was(self):
        out = self.disk / "out"
        command = [ROOT / "bench/run", "--smoke", "--quiet", "--build", BUILD,
                   "--only", "overhead", "--only", "git", "--rounds", "2",
                   "--out", out, "--disk", self.disk]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        raw = out / "samples.jsonl"
        while process.poll() is None and not (raw.exists()
                                              and raw.stat().st_size):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 3)
        self.assertEqual(self.our_mounts(), self.mounts)
        before = Samples(raw).all
        with open(raw, "a", encoding="utf-8") as file:
            file.write('{"experiment": "overhead", "con')  # cut
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False, timeout=120)
        self.assertIn("going on", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = Samples(raw).all
        self.assertEqual(after[:len(before)], before)
        keys = [(s["experiment"], s["configuration"], s["round"])
                for s in after]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertTrue((out / "finished").exists())

    def test_verdicts_compare_figures_of_the_same_round(self):
        for round_, (base, ours) in enumerate(((1, 2), (10, 20), (100, None))):
            for name, value in (("native", base), ("full", ours)):
                sample = {"experiment": "test", "configuration": name,
                          "round": round_}
                self.samples.add(sample | ({"error": "x"} if value is None else
                                           {"value": value, "unit": "s"}))
        e = Experiment("test", "test", "touch", ("native", "full"), "native",
                       targets=(Target("full", "native", 2.1),
                                Target("full", "native", 1.9),
                                Target("none", "native", 1)))
        found = cells(self.samples, [e])
        full = [c for c in found if c["configuration"] == "full"][0]
        self.assertEqual(full["ratio"]["mean"], 2)
        self.assertEqual(full["ratio"]["half_width"], 0)
        self.assertEqual([t["verdict"] for t in
                          targets(self.samples, [e], found)],
                         ["met", "missed", "not measured"])

    def test_data_paths_are_a_table_with_what_misses_and_what_was_lost(self):
        shape = data_paths.Shape("write", "buffered", 4)
        names = ("native", "P", "none", "full", "gone")
        e = Experiment("data-xfs-write-buffered-4", "x", f"data-{shape}", names,
                       "native", place="xfs", shape=shape,
                       targets=(Target("none", "P", 1), Target("full", "P", 1)))
        plain = Experiment("test", "test", "touch", ("native", "full"),
                           "native", targets=(Target("full", "native", 1),))
        for name, value in (("native", 100), ("P", 50), ("none", 80),
                            ("full", 40)):
            self.samples.add({"experiment": e.name, "configuration": name,
                              "round": 0, "value": value, "unit": "MiB/s",
                              "lost": 3 if name == "none" else 0})
        self.samples.add({"experiment": e.name, "configuration": "gone",
                          "round": -1, "error": "not built"})
        rows = report.write(self.disk, self.samples, [plain, e],
                            {"scale": "quick"})
        page = (self.disk / "README.md").read_text()
        self.assertIn("| path | native, MiB/s | P | none | full | gone |", page)
        self.assertIn("| write, buffered, 4 callers | 100 | 2 | 1.25* | **2.5** "
                      "| – |", page)
        self.assertIn("- gone: not built", page)
        self.assertEqual([(r["experiment"], r["verdict"]) for r in rows],
                         [("test", "not measured"),
                          ("data-xfs", "1 of 2 met")])

    def test_of_several_peers_the_best_counts(self):
        for name, value in (("slow", 4), ("fast", 2), ("full", 3)):
            self.samples.add({"experiment": "test", "configuration": name,
                              "round": 0, "value": value, "unit": "s"})
        e = Experiment("test", "test", "touch", ("slow", "fast", "full"),
                       "slow", targets=(Target("full", ("slow", "fast"), 1),
                                        Target("full", ("slow", "gone"), 1)))
        found = targets(self.samples, [e], cells(self.samples, [e]))
        self.assertEqual([t["measured"] for t in found], [1.5, 0.75])
        self.assertIn("fast", found[0]["what"])


class StatisticsTest(unittest.TestCase):
    def test_half_width_is_students(self):
        # t(0.975, 4) = 2.776; deviation of 1..5 is sqrt(2.5).
        self.assertAlmostEqual(statistics.half_width([1, 2, 3, 4, 5]),
                               2.776 * (2.5 / 5) ** 0.5)
        self.assertEqual(statistics.half_width([1]), float("inf"))

    def test_ratios_pair_rounds(self):
        self.assertEqual(statistics.paired_ratios({0: 2, 2: 9},
                                                  {0: 1, 1: 5, 2: 3}), [2, 3])

    def test_all_predicates_of_a_filter_are_counted(self):
        for n in (1, 10, 50):
            text = configurations.LOADS[f"filter{n}true"][0]
            self.assertEqual(text.count("="), n)


class CopiesTest(unittest.TestCase):
    def test_one_copy_more_is_growth_and_what_a_device_moves_is_none(self):
        table = {"write": {"memcpy": 0.5, "requests": 1.0}}
        for moved, grows in (({"memcpy": 0.6, "requests": 1.0}, False),
                             ({"memcpy": 1.5, "requests": 1.0}, True),
                             ({"memcpy": 0.5, "requests": 1.0,
                               "pwrite64 (O_DIRECT)": 1.0}, False),
                             ({"memcpy": 0.5, "requests": 1.0,
                               "pwrite64": 1.0}, True)):
            found = request_copies.grown(table, {"write": moved}, "full")
            self.assertEqual(bool(found), grows, found)

    def test_any_share_of_direct_writes_may_be_copied_once_to_be_aligned(self):
        table = {"write, direct": {"memcpy": 1.44, "trace": 1.0}}
        for memcpy, grows in ((1.0, False), (1.95, False), (2.44, True)):
            found = request_copies.grown(
                table, {"write, direct": {"memcpy": memcpy, "trace": 1.0}},
                "full")
            self.assertEqual(bool(found), grows, found)

    def test_calls_are_told_apart_by_what_they_move(self):
        def call(name, fd, result, on_fuse=False):
            return request_trace.Call(name, 1, 2, None, on_fuse, fd, result)

        whole = request_copies.BYTES
        moved = request_copies._moved(
            [[call("read", 3, whole, True), call("writev", 3, 16, True)],
             [call("pwrite64", 5, whole), call("pwritev", 6, 2 * whole),
              call("pwrite64", 7, whole), call("fsync", 7, 0)]],
            0, 3, {6}, {5}, whole // 2)
        self.assertEqual(moved, {
            "memcpy": 0.5, "requests": 1, "pwrite64 (O_DIRECT)": 1,
            "trace": 2, "pwrite64": 1})
        self.assertEqual(request_copies.total(moved), 4.5)


class ComparisonTest(unittest.TestCase):
    def cell(self, value, width, rate=False):
        return {"experiment": "e", "configuration": "c", "mean": value,
                "half_width": width, "unit": "x", "higher_is_better": rate}

    def verdict(self, a, b):
        key = ("e", "c")
        return comparison.compare({key: a}, {key: b}, 0.05)[0][6]

    def test_only_what_is_beyond_chance_counts(self):
        self.assertEqual(self.verdict(self.cell(10, 0.1), self.cell(12, 0.1)),
                         "worse")
        self.assertEqual(self.verdict(self.cell(10, 2), self.cell(12, 2)), "")
        self.assertEqual(self.verdict(self.cell(10, 0), self.cell(10.2, 0)),
                         "")

    def test_of_rates_more_is_better(self):
        self.assertEqual(self.verdict(self.cell(10, 0, True),
                                      self.cell(12, 0, True)), "better")

    def test_a_file_that_is_no_result_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(comparison.Unusable):
                comparison.load(folder)
            path = pathlib.Path(folder) / "summary.json"
            path.write_text(json.dumps({"cells": 1}))
            with self.assertRaises(comparison.Unusable):
                comparison.load(path)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build", required=True, type=pathlib.Path)
    given, rest = arguments.parse_known_args()
    BUILD = given.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
