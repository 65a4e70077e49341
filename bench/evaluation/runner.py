"""Runs experiments: rounds in random order, each configuration paired with its
baseline in the same round, until the figures are good enough or a limit is
reached. A cell that fails leaves a sample with the reason; the run goes on."""

import dataclasses
import os
import pathlib
import random
import shutil
import sys
import time

from . import configurations, workloads
from .scratch import Failure, NoAnswer, patience, run_command, unmount_below
from .statistics import relative_half_width

GOOD_ENOUGH = 0.05  # of the mean: the paper's


@dataclasses.dataclass
class Limits:
    """How often an experiment is repeated."""
    min_rounds: int
    max_rounds: int
    seconds: float  # of one experiment, all rounds; no new one afterwards
    timeout_s: float  # of one command of a workload


LIMITS = {
    "smoke": Limits(1, 1, 60, 60),
    "quick": Limits(3, 5, 240, 300),
    "full": Limits(5, 30, 5400, 3600),
}


@dataclasses.dataclass
class Context:
    """What every part of a run needs to know."""
    scratch: object
    scale: str
    build: pathlib.Path
    deps: pathlib.Path
    limits: Limits
    keep_trace: bool = False

    @property
    def bin(self):
        return self.build / "bin"


class Progress:
    """One line on the terminal: what runs, how far, how long still."""

    def __init__(self, cells, quiet=False):
        self._left = cells
        self._seconds = []
        self._quiet = quiet
        self._line = sys.stderr.isatty()

    def now(self, text):
        if self._quiet:
            return
        left = "?"
        if self._seconds:
            recent = self._seconds[-50:]
            left_s = self._left * sum(recent) / len(recent)
            left = time.strftime("%H:%M:%S", time.gmtime(left_s))
        text = f"[{self._left} to go, at most about {left}] {text}"
        if self._line:
            print("\r" + text[:118].ljust(118), end="", file=sys.stderr,
                  flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def done(self, cells, seconds=None):
        self._left = max(0, self._left - cells)
        if seconds is not None:
            self._seconds.append(seconds)

    def say(self, text):
        if self._line and not self._quiet:
            print("\r" + " " * 118 + "\r", end="", file=sys.stderr)
        print(text, file=sys.stderr, flush=True)


def busy_seconds():
    """CPU time that all processors have used so far: daemons' as well."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(t) for t in file.readline().split()[1:9]]
    user, nice, system, _, _, irq, softirq, _ = ticks
    hertz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hertz, system / hertz


class Probe:
    """Known data written through a configuration: is it below afterwards?"""
    NAME = "tracefs-bench-probe"

    def __init__(self, where, source):
        self._below = pathlib.Path(source) / self.NAME
        self._data = random.Random(1).randbytes(200001)
        path = pathlib.Path(where) / self.NAME
        with open(path, "wb") as file:
            for begin in range(0, len(self._data), 30000):
                file.write(self._data[begin:begin + 30000])
            file.flush()
            os.fsync(file.fileno())
        if path.read_bytes() != self._data:
            raise Failure("corrupts data: reads differ from what was written")

    def check(self):
        try:
            data = self._below.read_bytes()
            self._below.unlink()
        except OSError as error:
            raise Failure(f"corrupts data: {error.strerror} below") from None
        if data != self._data:
            raise Failure("corrupts data: what is below differs from what was "
                          "written")


def empty(folder):
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3\n")


def measure(context, workload, configuration, source, cold):
    """One run; returns a sample's figures. Raises Failure or OSError; nothing
    is mounted afterwards in any case."""
    recorded = {}
    probe = None
    roots = (context.scratch.root, source)
    try:
        with patience(roots, context.limits.timeout_s, configuration.kill):
            where = configuration.start(context, source)
            if not workload.read_only:
                probe = Probe(where, source)
            workload.before(where)
        commands = workload.commands(where)
        if cold:
            drop_caches()
        cpu, system = busy_seconds()
        begin = time.monotonic()
        outputs = [run_command(configuration.prefix() + c,
                               context.limits.timeout_s) for c in commands]
        elapsed = time.monotonic() - begin
        cpu_end, system_end = busy_seconds()
        value, detail = workload.value(outputs, elapsed)
        configuration.alive()
    except NoAnswer:
        raise
    except (Failure, OSError) as failure:
        try:
            configuration.alive()
        except Failure as death:  # then that is the reason
            raise death from failure
        raise
    finally:
        with patience(roots, context.limits.timeout_s, configuration.kill):
            recorded = configuration.stop() or {}
    if probe is not None:
        probe.check()
    sample = {"value": value, "unit": workload.unit, "elapsed": elapsed,
              "cpu": cpu_end - cpu, "system": system_end - system}
    if detail is not None:
        sample["detail"] = detail
    return sample | recorded


class Runner:
    def __init__(self, context, samples, progress, seed=1):
        self.context = context
        self.samples = samples
        self.progress = progress
        self.seed = seed
        self._spent_s = {}  # by experiment

    def run(self, experiments):
        """A round of each, then the next: a run that is stopped early has fewer
        rounds, not fewer experiments. Returns nothing: see samples."""
        for round_ in range(self.context.limits.max_rounds):
            for experiment in experiments:
                self.progress.done(len(experiment.configurations)
                                   - self._round(experiment, round_))

    def _error(self, experiment, name, round_, text):
        self.samples.add({"experiment": experiment.name, "configuration": name,
                          "round": round_, "error": text})
        self.progress.say(f"  {experiment.name}, {name}: {text}")

    def _given_up(self, experiment, name):
        """Twice in a row it failed, or it cannot run here at all."""
        samples = self.samples.of(experiment.name, name)
        return (any(s["round"] < 0 for s in samples)
                or (len(samples) >= 2
                    and all("error" in s for s in samples[-2:])))

    def _finished(self, experiment):
        limits = self.context.limits
        for name in experiment.configurations:
            if self._given_up(experiment, name):
                continue
            rounds = len(self.samples.of(experiment.name, name))
            values = list(self.samples.values(experiment.name, name).values())
            if rounds >= limits.max_rounds:
                continue
            if (rounds < limits.min_rounds or len(values) < 2
                    or relative_half_width(values) > GOOD_ENOUGH):
                return False
        return True

    def _round(self, experiment, round_):
        """Returns how many cells were run."""
        limits = self.context.limits
        order = [name for name in experiment.configurations
                 if not self.samples.has(experiment.name, name, round_)
                 and not self._given_up(experiment, name)]
        spent = self._spent_s.get(experiment.name, 0)
        if not order or self._finished(experiment) or (
                round_ >= limits.min_rounds and spent > limits.seconds):
            return 0
        random.Random(f"{self.seed}{experiment.name}{round_}").shuffle(order)
        begin = time.monotonic()
        workload = workloads.WORKLOADS[experiment.workload](self.context)
        try:
            place = self.context.scratch.place(experiment.place)
        except Failure as missing:
            for name in order:
                self._error(experiment, name, -1, str(missing))
            return 0
        source = place / "source"
        try:
            self._prepare(experiment, workload, source)
            for name in order:
                self._cell(experiment, workload, name, round_, source)
        except (Failure, OSError) as error:
            for name in experiment.configurations:
                if not self.samples.of(experiment.name, name):
                    self._error(experiment, name, -1, str(error))
        finally:
            workload.end(source)
            unmount_below(source)
            shutil.rmtree(source, ignore_errors=True)
        self._spent_s[experiment.name] = spent + time.monotonic() - begin
        return len(order)

    def _prepare(self, experiment, workload, source):
        missing = workload.missing()
        if missing:
            raise Failure(missing)
        needed = workload.needed_bytes()
        free = self.context.scratch.free_bytes(experiment.place)
        if needed > free:
            raise Failure(f"too little space: needs {needed >> 20} MiB in "
                          f"{experiment.place}, {free >> 20} are free")
        unmount_below(source)
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        self.progress.now(f"{experiment.name}: preparing")
        workload.prepare(source)

    def _cell(self, experiment, workload, name, round_, source):
        self.progress.now(f"{experiment.name}, round {round_ + 1}: {name}")
        begin = time.monotonic()
        try:
            configuration = configurations.make(name)
            missing = configuration.missing(self.context)
            if missing:
                self._error(experiment, name, -1, missing)
                self.progress.done(1)
                return
            sample = measure(self.context, workload, configuration, source,
                             experiment.cold)
            self.samples.add({"experiment": experiment.name,
                              "configuration": name, "round": round_, **sample})
        except (Failure, OSError, ValueError, KeyError) as error:
            self._error(experiment, name, round_, str(error))
        finally:
            # Whatever happened: nothing stays at the mount point.
            unmount_below(self.context.scratch.point)
            if workload.leaves_nothing:
                unmount_below(source)
                empty(source)
        self.progress.done(1, time.monotonic() - begin)
