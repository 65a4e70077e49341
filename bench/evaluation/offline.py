"""Costs other than timed workloads on a mount. Each study yields cells, which
the runner's samples keep like any other: (row, function returning a sample).
"""

import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

from . import configurations
from .experiments import Target
from .runner import empty
from .scratch import Failure, run_command
from .workloads import MiB, Postmark

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]
                    / "tests/support"))
import request_counter  # noqa: E402  (what the suites count requests with)


@dataclasses.dataclass(frozen=True)
class Study:
    name: str
    title: str
    cells: object  # function(context) -> iterable of (row, function)
    rounds: dict  # by scale
    unit: str
    baseline: str = ""  # a row
    paper: str = ""
    bound: str = ""
    tried: str = ""
    targets: tuple = ()  # relative to the baseline row


# --- Single stages, with Google Benchmark

# row: (figure, limit, higher is better, what it is)
MICRO_TARGETS = {
    "record_bench/BM_RecordFull": ("ns", 500, "hot path, FULL, per operation"),
    "record_bench/BM_EncodeFull": ("items", 3e6, "encoder, messages/s"),
    "record_bench/BM_CountByOpAndUid": ("ns", 150, "counting by op and uid"),
    "filter_bench/BM_OnePredicate": ("ns", 5, "filter of 1 predicate"),
    "filter_bench/BM_AllEvaluated/predicates:50/keep:1":
        ("ns", 60, "filter of 50 predicates, all evaluated"),
    "recv_bench/BM_ReceiveTcp": ("items", 3e5, "one tracefs-recv, events/s"),
    "jsonl_bench/BM_Export/jsonl": ("items", 1e6, "JSON Lines, messages/s"),
    "output_filters_bench/Run/hmac_sha256":
        ("bytes", 1e9, "checksum, bytes/s"),
    "output_filters_bench/Run/aes_256_gcm":
        ("bytes", 1.5e9, "aes-256-gcm, bytes/s"),
    "output_filters_bench/Run/zstd_default": ("bytes", 3e8, "zstd, bytes/s"),
}


def _micro_row(program, scale):
    # A time per benchmark; smoke: one iteration is enough. The first one, whose
    # memory is new, is not measured.
    seconds = {"smoke": 0.001, "quick": 0.3, "full": 1}[scale]
    out = run_command([program, "--benchmark_format=json",
                       f"--benchmark_min_warmup_time={seconds / 3:.3f}",
                       f"--benchmark_min_time={seconds}"], 600)
    rows = {}
    for b in json.loads(out[out.index("{"):])["benchmarks"]:
        if b.get("error_occurred") or b.get("run_type") == "aggregate":
            continue
        scale_ns = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[b["time_unit"]]
        ns = b["cpu_time"] * scale_ns
        items, byte_rate = b.get("items_per_second"), b.get("bytes_per_second")
        rows[b["name"]] = {"value": ns, "unit": "ns", "detail": {
            "items": items, "bytes": byte_rate}}
    return rows


def micro(context):
    programs = sorted((context.build / "bench").glob("*_bench"))
    if not programs:
        raise Failure("no micro benchmark is built (libbenchmark-dev)")
    for program in programs:
        def run(program=program):
            return [(f"{program.name}/{name}", sample) for name, sample in
                    _micro_row(program, context.scale).items()]
        yield program.name, run


# --- Instructions per event

def instructions(context):
    def run():
        program = context.build / "bench/record_loop"
        if not program.exists():
            raise Failure("record_loop is not built (libbenchmark-dev)")
        if not shutil.which("valgrind"):
            raise Failure("valgrind is not installed")
        counts = []
        events = (500, 1500) if context.scale == "smoke" else (20000, 120000)
        for number in events:
            out = context.scratch.root / "callgrind.out"
            run_command(["valgrind", "--tool=callgrind",
                         f"--callgrind-out-file={out}", program, number], 600)
            counts.append(int(re.search(r"^(?:summary|totals): (\d+)",
                                        out.read_text(), re.M).group(1)))
        per_event = (counts[1] - counts[0]) / (events[1] - events[0])
        return {"value": per_event, "unit": "instructions"}
    yield "FULL, per event", run


# --- Requests for each system call, from the kernel's own tracepoint

_CALLS = ("stat", "stat-missing", "open-close", "read-4k", "write-4k", "fsync",
          "readdir", "getxattr", "chmod", "create", "rename", "unlink",
          "mkdir", "rmdir")


def requests(context):
    program = context.build / "bench/op_latency"
    count = 20 if context.scale == "smoke" else 1000
    for name in ("P", "none", "full@fast", "full", "full@exact"):
        def run(name=name):
            source = context.scratch.tmpfs / "source"
            source.mkdir(exist_ok=True)
            configuration = configurations.make(name)
            missing = configuration.missing(context)
            if missing:
                raise Failure(missing)
            rows = {}
            try:
                where = configuration.start(context, source)
                with request_counter.RequestCounter(str(where)) as counter:
                    for call in _CALLS:
                        # What preparing takes is measured and taken away.
                        few = _requests_of(counter, program, where, call, 1)
                        many = _requests_of(counter, program, where, call,
                                            1 + count)
                        kinds = {k: round((many.get(k, 0) - few.get(k, 0))
                                          / count, 2)
                                 for k in sorted(set(many) | set(few))}
                        rows[call] = {k: v for k, v in kinds.items() if v > 0}
            except request_counter.Unavailable as error:
                raise Failure(str(error)) from None
            finally:
                configuration.stop()
                shutil.rmtree(source, ignore_errors=True)
            total = sum(sum(r.values()) for r in rows.values()) / len(rows)
            return {"value": total, "unit": "requests/call", "detail": rows}
        yield name, run


def _requests_of(counter, program, where, call, number):
    # A call that needs what another makes runs behind it.
    chain = {"rename": ["create"], "unlink": ["create", "rename"],
             "rmdir": ["mkdir"]}.get(call, [])
    results = []
    for ops in (chain, chain + [call]):
        empty(where)
        before = counter.counts()
        if ops:
            words = [w for op in ops for w in ("--op", op)]
            run_command([program, where, "--count", number, *words], 120)
        after = counter.counts()
        results.append({k: after[k] - before.get(k, 0) for k in after})
    if not chain:
        return results[1]
    return {k: results[1].get(k, 0) - results[0].get(k, 0)
            for k in set(results[0]) | set(results[1])}


# --- The anonymiser: section 4.8 of the paper

_STRINGS = ("name", "comm", "exe", "cgroup", "xattr")
ANON_ROWS = {
    "null": (),
    "names+strings": _STRINGS,
    "uid+gid": ("uid", "gid"),
    "names+strings+uid+gid": _STRINGS + ("uid", "gid"),
    "+pid": _STRINGS + ("uid", "gid", "pid"),
    "+timestamps": _STRINGS + ("uid", "gid", "pid", "time", "clock"),
}
_ANON_CLASSES = ("structure", "totals", "uid", "gid", "pid", "name", "comm",
                 "exe", "cgroup", "xattr", "time", "clock", "data", "checksum",
                 "inode", "handle", "lock-owner", "duration", "size", "io",
                 "result", "mode", "device", "request")


def _policy(classes, action):
    kept = [c for c in _ANON_CLASSES if c not in classes]
    # Properties of the header, which cost nothing, are dropped: a policy must
    # name one by one what it keeps.
    text = ", ".join(kept) + " = keep;\nproperty * = drop;\n"
    for c in classes:
        text += f"{c} = {_todays(c) if action == 'today' else 'paper'};\n"
    return text


def _todays(c):
    return {"uid": "fpe", "gid": "fpe", "pid": "fpe", "time": "shift",
            "clock": "shift", "name": "encrypt", "exe": "encrypt ext join",
            "cgroup": "encrypt ext join"}.get(c, "encrypt")


def anonymise(context):
    """Input: the trace of a Postmark under FULL, made once."""
    tool = context.bin / "tracefs-anon"
    if not tool.exists():
        def missing():
            raise Failure("tracefs-anon is not built")
        yield "null", missing
        return
    trace = context.scratch.tmpfs / "anon.in"
    out = context.scratch.tmpfs / "anon.out"
    count = context.scratch.tmpfs / "anon.count"

    def make_trace():
        source = context.scratch.tmpfs / "source"
        source.mkdir(exist_ok=True)
        full = configurations.make("full@exact")
        keep = dataclasses.replace(context, keep_trace=True)
        recorded = {}
        try:
            where = full.start(keep, source)
            workload = Postmark(dataclasses.replace(
                context, scale="smoke" if context.scale == "smoke"
                else "quick"))
            for command in workload.commands(where):
                run_command(command, 600)
        finally:
            recorded = full.stop()
            shutil.rmtree(source, ignore_errors=True)
        (context.scratch.tmpfs / "trace").rename(trace)
        count.write_text(str(recorded["events"]))
        run_command([context.bin / "tracefs-keygen", "secret",
                     context.scratch.root / "anon.key"], 20)

    def one(policy, *more):
        if not trace.exists():
            make_trace()
        path = context.scratch.root / "anon.policy"
        path.write_text(policy)
        out.unlink(missing_ok=True)
        begin = time.monotonic()
        named = policy if "\n" not in policy else path
        run_command([tool, "--quiet", "--policy", named, "--keys",
                     context.scratch.root / "anon.key", *more, trace, out],
                    600)
        seconds = time.monotonic() - begin
        size = trace.stat().st_size
        return {"value": seconds, "unit": "s", "detail": {
            "messages_per_s": int(count.read_text()) / seconds,
            "mib_per_s": size / seconds / MiB,
            "growth": out.stat().st_size / size - 1}}

    for row, classes in ANON_ROWS.items():
        for action in ("paper", "today") if classes else ("paper",):
            name = row if not classes else f"{row} ({action})"
            yield name, lambda c=classes, a=action: one(
                _policy(c, a), "--threads", "1")
    yield "research", lambda: one("research", "--threads", "1")
    yield "research, no cache", lambda: one("research", "--threads", "1",
                                            "--cache", "0")
    yield "research, 2 threads", lambda: one("research", "--threads", "2")


STUDIES = [
    Study("micro", "Single stages", micro,
          {"smoke": 1, "quick": 1, "full": 5}, "ns",
          bound="Instructions and cache misses of one core."),
    Study("instructions", "Instructions of the hot path (callgrind)",
          instructions, {"smoke": 1, "quick": 1, "full": 1}, "instructions",
          bound="A regression figure: the same on every machine with the same "
          "compiler, to within a per cent."),
    Study("requests", "Requests for each system call", requests,
          {"smoke": 1, "quick": 1, "full": 1}, "requests/call",
          bound="What the kernel must ask with this visibility."),
    Study("anonymise", "Anonymising a Postmark FULL trace", anonymise,
          {"smoke": 1, "quick": 3, "full": 10}, "s", baseline="null",
          paper="Rate −30.5 % with all of it protected, 48.2 % of the trace.",
          bound="Cryptography for each new value; a memo cache for the rest.",
          targets=(Target("research, 2 threads", "research", 1 / 1.8,
                          "two threads ≥ 1.8 × one"),)),
]


def chosen(only):
    return [s for s in STUDIES if not only or s.name in only]


def run_study(study, context, samples, progress):
    """Runs what is not in `samples` yet."""
    try:
        for round_ in range(study.rounds[context.scale]):
            for row, cell in study.cells(context):
                # A cell of several rows is known by the row it begins with.
                if any(s["round"] == round_ and
                       (s["configuration"] + "/").startswith(row + "/")
                       for s in samples.of(study.name)):
                    continue
                if any(s["round"] < 0
                       for s in samples.of(study.name, row)):
                    continue
                _run_cell(study, row, cell, round_, samples, progress)
    except Failure as error:
        samples.add({"experiment": study.name, "configuration": study.name,
                     "round": -1, "error": str(error)})
        progress.say(f"  {study.name}: {error}")
    finally:
        for name in ("anon.in", "anon.out"):
            (context.scratch.tmpfs / name).unlink(missing_ok=True)


def _run_cell(study, row, cell, round_, samples, progress):
    progress.now(f"{study.name}: {row}")
    try:
        result = cell()
    except (Failure, OSError, ValueError, KeyError, AttributeError,
            subprocess.SubprocessError) as error:
        samples.add({"experiment": study.name, "configuration": row,
                     "round": -1, "error": str(error)})
        progress.say(f"  {study.name}, {row}: {error}")
        return
    for name, sample in ([(row, result)] if isinstance(result, dict)
                         else result):
        samples.add({"experiment": study.name, "configuration": name,
                     "round": round_, **sample})
