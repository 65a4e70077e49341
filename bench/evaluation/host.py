"""What this host takes for the steps that a request is made of: figures of two
hosts differ by these before they differ by anything of ours."""

import json
import time

from . import configurations
from .scratch import Failure, run_command, unmount_below

# A stat that reaches the daemon, over each transport.
ROUND_TRIPS = {"getattr over /dev/fuse": "P-nocache",
               "getattr over io_uring": "Pu-nocache"}


def costs(context):
    """Medians in ns by step; a step that cannot be taken has the reason."""
    found = {}
    try:
        found |= json.loads(run_command(
            [context.build / "bench/host_costs"], 60))
    except (Failure, ValueError) as error:
        found["system call"] = str(error)
    source = context.scratch.tmpfs / "source"
    source.mkdir()
    for step, name in ROUND_TRIPS.items():
        found[step] = _round_trip(context, configurations.make(name), source)
    for child in source.iterdir():
        run_command(["rm", "-rf", child], 60)
    source.rmdir()
    return found


def _round_trip(context, configuration, source):
    missing = configuration.missing(context)
    if missing:
        return missing
    try:
        where = configuration.start(context, source)
        time.sleep(0.05)  # its threads are started
        out = run_command([context.build / "bench/op_latency", where, "--op",
                           "stat", "--count", "5000"], 60)
        return json.loads(out)["stat"]["p50"]
    except (Failure, OSError, ValueError, KeyError) as error:
        return str(error)
    finally:
        configuration.stop()
        unmount_below(context.scratch.point)


def text(found):
    """One line, in the units that people think in."""
    return "; ".join(
        f"{step} {ns} ns" if isinstance(ns, int) and ns < 1000
        else f"{step} {ns / 1000:.1f} µs" if isinstance(ns, (int, float))
        else f"{step}: {ns}" for step, ns in found.items())
