"""Which workload runs on which configurations, what the paper measured there,
what we want to reach, and what bounds it."""

import dataclasses

from .configurations import LOADS
from .data_paths import FILE_SYSTEMS, SHAPES, Shape, distinct
from .workloads import WAITS


@dataclasses.dataclass(frozen=True)
class Target:
    """`configuration` shall take at most `limit` times what `against` takes
    (rates: reach at least 1/limit of it); of several, the best of them."""
    configuration: str
    against: str | tuple
    limit: float
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    workload: str
    configurations: tuple
    baseline: str
    place: str = "tmpfs"
    cold: bool = False  # caches dropped before each run, as in the paper
    paper: str = ""  # what section 4 of the paper says of it
    bound: str = ""  # what bounds our figure
    tried: str = ""  # what was tried where a target is missed
    targets: tuple = ()
    peers: bool = False  # compared with peers: an extra table
    shape: Shape | None = None  # a row of the table of data paths


RECORDED = ("file", "unbuffered", "md5", "blowfish", "zlib", "paper",
            "sha256", "aes", "zstd", "today")
PASSTHROUGH = ("P", "Pu")
PASSTHROUGH_NOCACHE = ("P-nocache", "Pu-nocache")
PEERS = ("P", "P-nocache", "bindfs", "mergerfs", "loggedfs", "strace",
         "strace-seccomp", "fatrace", "auditd", "perf-trace")
OURS = ("none", "light", "medium", "changes", "full", "full@exact")

# Ours records at least what the peer does, so it must not take longer.
AHEAD = (("none", "P"), ("none", "bindfs"), ("none", "mergerfs"),
         ("full@exact", "P-nocache"), ("full@exact", "loggedfs"),
         ("full@exact", "strace"), ("light", "strace-seccomp"),
         ("light", "fatrace"), ("changes", "auditd"), ("light", "perf-trace"))


def _peer(workload, title, place="tmpfs", **kwargs):
    targets = tuple(Target(ours, peer, 1, "ahead of every peer")
                    for ours, peer in AHEAD)
    return Experiment(
        f"peers-{workload}", f"{title}: beside other tracers and pass-through "
        "file systems", workload, ("native",) + OURS + PEERS, "native",
        place=place, peers=True, targets=targets + kwargs.pop("more", ()),
        bound="Requests times their round trip to the daemon; tracers without a "
        "file system have no such trip but stop the caller (strace) or see less "
        "(the column beside).", **kwargs)


def _outputs(workload, load, title, paper, place="tmpfs", cold=False):
    cells = tuple(f"{load}+{o}" for o in RECORDED)
    where = "-disk" if place == "disk" else ""
    return Experiment(
        f"outputs-{workload}-{load}{where}",
        f"{title}, {load.upper()}, by output filter", workload,
        ("never",) + cells, "never", place=place, cold=cold, paper=paper,
        bound="The encoder and the chain run after the reply, on the processor "
        "that the next request needs: their CPU time (stages) per event.")


EXPERIMENTS = [
    Experiment(
        "postmark", "Postmark: the mount by itself and with each load",
        "postmark",
        ("native", "P", "Pu", "none", "light", "medium", "full", "never",
         "full@exact", "P-nocache", "Pu-nocache"), "P",
        paper="Ext3 is the baseline there, no user space is crossed: FULL "
        "+12.4 % elapsed, MEDIUM +10.0 %, LIGHT +5.9 %.",
        bound="Number of requests times their round trip (over io_uring about "
        "11 µs on the machines seen so far, half of it the switch to the queue "
        "thread and back).",
        tried="Over io_uring the scheduler moves the caller off the queue "
        "thread's processor at each reply: queue threads at nice −10 (kept) "
        "help by a fifth; SCHED_FIFO, SCHED_BATCH and busy threads do not.",
        targets=(Target("none", PASSTHROUGH, 0.65),
                 Target("light", PASSTHROUGH, 0.75),
                 Target("full", PASSTHROUGH, 0.85),
                 Target("full@exact", PASSTHROUGH_NOCACHE, 0.70))),
    Experiment(
        "postmark-disk", "Postmark on a disk, warm", "postmark",
        ("native", "P", "Pu", "none", "full"), "P", place="disk",
        bound="As above, and the file system's own time for names and sizes.",
        targets=(Target("none", PASSTHROUGH, 0.85),
                 Target("full", PASSTHROUGH, 0.95))),
    Experiment(
        "overhead", "Postmark: recording and counting against the same "
        "requests unrecorded", "postmark", ("never", "count", "full"), "never",
        paper="FULL +12.4 % elapsed over Ext3.",
        bound="Event, caller and encoder: 0.1 to 0.2 µs of CPU time per "
        "operation, plus the first look at each new process.",
        targets=(Target("count", "never", 1.02), Target("full", "never", 1.03))),
    _outputs("postmark-quick", "full", "Postmark",
             "FILE +12.4 %; +3.7 points with encryption, +2.8 checksum, +6.1 "
             "compression."),
    _outputs("postmark-quick", "medium", "Postmark",
             "FILE +10.0 %; +2.2 encryption, +0.9 checksum, +5.2 compression."),
    _outputs("postmark-quick", "light", "Postmark",
             "5.9 to 11.3 % with all configurations."),
    _outputs("postmark", "full", "Postmark on a disk, cold",
             "FILE +12.4 %; +3.7 points with encryption, +2.8 checksum, +6.1 "
             "compression.", "disk", True),
    _outputs("compile", "full", "Compile",
             "Am-utils: FILE +1.7 %; +0.7 checksum, +1.3 encryption, 2.7 % "
             "compression, 5.3 % all, 2.7 % unbuffered.", "disk", True),
    _outputs("compile", "medium", "Compile",
             "Am-utils: FILE +1.1 %; checksum and encryption below +1, "
             "compression +2.3.", "disk", True),
    _outputs("compile", "light", "Compile",
             "Am-utils: below 1 %; filters at most +1.1.", "disk", True),
    Experiment(
        "output-filters", "Postmark FULL: what each output filter adds when "
        "it runs in a thread of its own", "postmark-quick",
        ("full", "full+async", "full+async-sha256", "full+async-zstd",
         "full+async-zlib", "full+async-aes", "full+async-today"), "full",
        paper="+2.8 points checksum, +3.7 encryption, +6.1 compression.",
        bound="On two processors that the workload fills, what the chain takes "
        "is missing elsewhere: CPU time per byte of the algorithm.",
        targets=(Target("full+async-sha256", "full", 1.02),
                 Target("full+async-zstd", "full", 1.03),
                 Target("full+async-zlib", "full", 1.08),
                 Target("full+async-aes", "full", 1.02),
                 Target("full+async-today", "full", 1.12))),
    Experiment(
        "filters", "Postmark: filters of 1, 10 and 50 predicates, all "
        "evaluated, to a file in memory (the paper: /dev/null)",
        "postmark-quick",
        tuple(f"filter{n}{k}" for n in (1, 10, 50)
              for k in ("false", "true")), "filter1false",
        paper="System time of an Am-utils build, 1/10/50 predicates: FALSE "
        "4.5/8.7/16.1 %, TRUE 11.0/12.6/21.8 %; elapsed at most 4 %.",
        bound="About 1 ns for each predicate that is evaluated: 50 ns of a "
        "request's 11 µs."),
    Experiment(
        "async-postmark", "Postmark: synchronous trace file (W), filters in a "
        "thread of their own (T)", "postmark-quick",
        ("never", "full+wsync-tsync", "full+wsync-tasync", "full+wasync-tsync",
         "full+wasync-tasync"), "full+wasync-tsync",
        paper="Synchronous writes +3.0 %; the asynchronous filter −6.0 % with "
        "them, about 0 without.",
        bound="The disk's time for a synchronous write of a block, unless "
        "`async` hides it."),
    Experiment(
        "async-openclose", "OpenClose: synchronous trace file (W), filters in "
        "a thread of their own (T)", "openclose",
        ("native", "never", "full+wsync-tsync", "full+wsync-tasync",
         "full+wasync-tsync", "full+wasync-tasync"), "full+wasync-tsync",
        paper="Synchronous writes × 2.3; the asynchronous filter −3.9 % with "
        "them, −7.5 % without.",
        bound="Opens and closes are nothing but requests: the round trip, and "
        "the disk where the trace is written synchronously."),
    Experiment(
        "visibility", "Postmark FULL: every visibility and transport",
        "postmark-quick",
        ("native",) + tuple(f"{load}@{v}/{t}" for load in ("none", "full")
                            for v in ("exact", "auto", "fast")
                            for t in ("uring", "dev")), "native",
        bound="What the kernel may answer by itself decides the number of "
        "requests; the transport decides the time of each."),
    Experiment(
        "seqread", "Sequential read of 1 GiB, tmpfs", "seqread",
        ("native", "none", "full"), "native",
        targets=(Target("none", "native", 1 / 0.9),
                 Target("full", "native", 1 / 0.45)),
        bound="Untraced: the kernel's passthrough. Traced: one more copy, and "
        "a round trip for each request."),
    Experiment(
        "seqwrite", "Sequential write of 1 GiB, tmpfs", "seqwrite",
        ("native", "none", "full"), "native",
        targets=(Target("none", "native", 1 / 0.9),
                 Target("full", "native", 1 / 0.45)),
        bound="As for reading."),
    Experiment(
        "seqread-disk", "Sequential read of 1 GiB, disk, cold", "seqread",
        ("native", "none", "full"), "native", place="disk", cold=True,
        targets=(Target("none", "native", 1 / 0.95),
                 Target("full", "native", 1.10)), bound="The disk."),
    Experiment(
        "seqwrite-disk", "Sequential write of 1 GiB, disk", "seqwrite",
        ("native", "none", "full"), "native", place="disk", cold=True,
        targets=(Target("none", "native", 1 / 0.95),
                 Target("full", "native", 1.10)),
        bound="The page cache of the file system below, then the disk."),
    Experiment(
        "randread", "4 KiB random read from the page cache", "randread",
        ("native", "none", "full"), "native",
        targets=(Target("none", "native", 1 / 0.85),),
        bound="Untraced: the passthrough's own system call inside the kernel. "
        "Traced: one round trip per operation."),
    Experiment(
        "randwrite", "4 KiB random write to the page cache", "randwrite",
        ("native", "none", "full"), "native",
        targets=(Target("none", "native", 1 / 0.85),), bound="As for reading."),
    Experiment(
        "compile", "Compile of 150 C files, from tmpfs", "compile-many",
        ("native", "full", "full@exact"), "native",
        paper="Am-utils: FULL +1.7 % over Ext3.",
        bound="The compiler; headers are looked up more often than opened.",
        targets=(Target("full", "native", 1.03),
                 Target("full@exact", "native", 1.10))),
    Experiment(
        "slow", "16 processes reading from a store with 5 ms latency", "slow",
        ("native", "full"), "native",
        targets=(Target("full", "native", 1 / 0.9),),
        bound="How many requests may be on their way at once."),
    Experiment(
        "walk", "find, du and tar over 100,000 files, warm", "walk",
        ("native", "none@fast", "full@fast", "full"), "native",
        targets=(Target("none@fast", "native", 1.2),),
        bound="Untraced in `fast`: opendir and open of each file; else requests "
        "times round trip."),
    Experiment(
        "git-status", "git status over 100,000 files, warm", "git-status",
        ("native", "none@fast", "full"), "native",
        targets=(Target("none@fast", "native", 1.5),),
        bound="As for find."),
    Experiment(
        "git", "git: add, commit, checkout, clone and gc", "git",
        ("native", "P", "none", "full", "full@exact"), "native",
        bound="Small files made and renamed: requests times round trip."),
    Experiment(
        "pgbench", "PostgreSQL: pgbench with four clients, disk", "pgbench",
        ("native", "none", "full", "full@exact"), "native", place="disk",
        bound="fsync of the log, which the disk takes its time for; requests "
        "for each page that is read or written.",
        targets=(Target("full", "native", 1 / 0.95),
                 Target("full@exact", "native", 1 / 0.75))),
    Experiment(
        "sqlite", "SQLite: small transactions", "sqlite",
        ("native", "P", "Pu", "none", "full", "full@exact"), "native",
        bound="A journal is made, written and removed for each transaction: "
        "requests times round trip."),
    Experiment(
        "big-tree", "find over a deep tree of many folders, warm", "big-tree",
        ("native", "P", "Pu", "none@fast", "none", "full"), "native",
        bound="OPENDIR, READDIR and RELEASEDIR of each folder."),
    _peer("postmark-quick", "Postmark", more=(
        Target("full", "loggedfs", 0.1),
        Target("full", "strace", 0.2))),
    _peer("compile", "Compile"),
    _peer("openclose", "OpenClose"),
    _peer("walk", "Metadata of 100,000 files"),
    _peer("seqread", "Sequential read"),
    Experiment(
        "latency", "Time of single system calls", "op-latency",
        ("native", "P", "none", "never@exact", "full", "full@exact",
         "full@exact/dev", "loggedfs"), "native",
        paper="Not measured there.",
        bound="One round trip for each request that a call needs; see the "
        "requests table."),
]
for _n in (1, 2, 4, 8, 16):
    EXPERIMENTS.append(Experiment(
        f"scaling-{_n}", f"Postmark by {_n} processes", f"postmark-{_n}",
        ("native", "P", "Pu", "none", "full", "full+today"), "native",
        paper="1 process: 383 s on Ext3, 444 s traced; 16 processes: ÷ 5.6 "
        "and ÷ 3.3.",
        bound="Processors: two of them serve callers and daemon.",
        targets=(Target("none", "Pu", 0.80), Target("full", "Pu", 1.00))
        if _n == 16 else ()))
for _what in WAITS:
    for _n in (1, 16, 64):
        EXPERIMENTS.append(Experiment(
            f"waiting-{_what}-{_n}", f"A store that takes 5 ms for each "
            f"{_what}: {_n} callers", f"waiting-{_what}-{_n}",
            ("native", "P", "Pu", "none/dev", "none/uring", "full/dev",
             "full/uring"), "native",
            bound="How many requests may be inside the store at once, and how "
            "often each asks it.",
            targets=tuple(Target(f"{load}/{transport}", "native", 1 / 0.9)
                          for load in ("none", "full")
                          for transport in ("dev", "uring"))))
for _fs in FILE_SYSTEMS:
    for _shape in SHAPES:
        EXPERIMENTS.append(Experiment(
            f"data-{_fs}-{_shape}", f"Data paths: {_shape.title} on {_fs}",
            f"data-{_shape}",
            ("native", "P", "Pu", "none", "full", "full-data+large")
            # Where the kernel keeps nothing; how that scales is in `full`.
            + (("full@exact",) if _shape.callers == 1 else ()), "native",
            place=_fs, cold=_shape.cold, shape=_shape,
            bound="Copies (REQUEST_COSTS.md) and round trips, then the disk.",
            targets=(() if _shape.random
                     else (Target("full", "native", 1.10),))
            + tuple(Target(load, PASSTHROUGH, 1)
                    for load in ("none", "full"))))

assert all(f"filter{n}true" in LOADS for n in (1, 10, 50))


def chosen(only):
    """Experiments whose name is one of `only` or begins with one and '-';
    all for none."""
    return [e for e in EXPERIMENTS
            if not only or any(e.name == o or e.name.startswith(o + "-")
                               for o in only)]


def thinned(experiments):
    """Each configuration once, and with every experiment its baseline: enough
    to see that all of it works. Of data paths those that have something new."""
    seen = set()
    result = []
    kept = distinct((e.place, e.shape) for e in experiments if e.shape)
    for e in experiments:
        if e.shape and (e.place, e.shape) not in kept:
            continue
        new = tuple(c for c in e.configurations
                    if c == e.baseline or c not in seen)
        if len(new) == 1 and len(e.configurations) > 1:
            new = (e.baseline, "full") if e.shape else (e.baseline,) + tuple(
                c for c in e.configurations if c != e.baseline)[:1]
        seen.update(new)
        result.append(dataclasses.replace(e, configurations=new))
    return result
