"""From raw samples to figures: means, paired ratios, verdicts. What `compare`
reads is this module's summary.json."""

from . import offline
from .statistics import mean, median, paired_ratios, summary
from .workloads import WORKLOADS


def cost_ratios(samples, experiment, configuration, against, rate):
    """What it costs relative to another configuration, by rounds that have
    both; of rates the inverse, so that smaller is always better."""
    ours = samples.values(experiment, configuration)
    theirs = samples.values(experiment, against)
    return paired_ratios(theirs, ours) if rate else paired_ratios(ours, theirs)


def best_peer(samples, experiment, configuration, against, rate):
    """Among several: the one that ours compares worst with, and the ratios."""
    names = (against,) if isinstance(against, str) else against
    found = [(cost_ratios(samples, experiment, configuration, name, rate), name)
             for name in names]
    measured = [f for f in found if f[0]]
    return max(measured, key=lambda f: median(f[0])) if measured else found[0]


def _is_rate(experiment):
    workload = getattr(experiment, "workload", None)
    return workload is not None and WORKLOADS[workload].higher_is_better


def _mean_of(samples, key):
    values = [s[key] for s in samples if s.get(key) is not None]
    return mean(values) if values else None


def cells(samples, experiments):
    """One dictionary for each configuration of each experiment."""
    result = []
    for e in experiments:
        names = list(getattr(e, "configurations", ()))
        for s in samples.of(e.name):
            if s["configuration"] not in names:
                names.append(s["configuration"])
        for name in names:
            mine = samples.of(e.name, name)
            if not mine:
                continue
            good = [s for s in mine if "error" not in s]
            cell = {"experiment": e.name, "configuration": name,
                    "higher_is_better": _is_rate(e)}
            if good:
                cell["unit"] = good[0]["unit"]
                cell |= summary([s["value"] for s in good])
                if e.baseline:
                    cell["baseline"] = e.baseline
                    cell["ratio"] = summary(cost_ratios(
                        samples, e.name, name, e.baseline, _is_rate(e)))
                for key in ("elapsed", "cpu", "system", "events", "bytes",
                            "lost"):
                    cell[key] = _mean_of(good, key)
                if cell["bytes"] is not None and cell["events"]:
                    cell["bytes_per_event"] = cell["bytes"] / cell["events"]
                if cell["events"] and cell["elapsed"]:
                    cell["events_per_s"] = cell["events"] / cell["elapsed"]
                for key in ("stages", "detail"):
                    found = [s[key] for s in good if s.get(key)]
                    if found:
                        cell[key] = _medians(found)
                notes = {s["note"] for s in good if s.get("note")}
                if notes:
                    cell["note"] = "; ".join(sorted(notes))
            errors = [s["error"] for s in mine if "error" in s]
            if errors:
                cell["error"] = errors[-1]
                cell["failed"] = len(errors)
            result.append(cell)
    return result


def _medians(items):
    """Element by element, of dictionaries of the same shape."""
    if isinstance(items[0], dict):
        keys = dict.fromkeys(k for i in items for k in i)
        return {k: _medians([i[k] for i in items if k in i]) for k in keys}
    numbers = [i for i in items if isinstance(i, (int, float))]
    return median(numbers) if numbers else items[0]


def _verdict(measured, limit):
    return "met" if measured <= limit else "missed"


def targets(samples, experiments, all_cells):
    """All targets with what was measured: measured and limit are costs."""
    rows = []
    for e in experiments:
        for t in e.targets:
            ratios, peer = best_peer(samples, e.name, t.configuration,
                                     t.against, _is_rate(e))
            s = summary(ratios)
            text = t.text or "cost"
            rows.append({
                "experiment": e.name,
                "what": f"{t.configuration} ≤ {t.limit:.3g} × {peer}"
                        + (f" ({text})" if t.text else ""),
                "measured": s["median"] if s else None,
                "half_width": s["half_width"] if s else None,
                "n": s["n"] if s else 0, "limit": t.limit,
                "verdict": _verdict(s["median"], t.limit) if s
                else "not measured"})
    by_name = {(c["experiment"], c["configuration"]): c for c in all_cells}
    wanted = {e.name for e in experiments}
    rows += [r for r in _derived(by_name) if r["experiment"] in wanted]
    return rows


def _row(experiment, what, measured, limit, at_least):
    """A target on an absolute figure."""
    if measured is None:
        verdict = "not measured"
    elif at_least:
        verdict = "met" if measured >= limit else "missed"
    else:
        verdict = _verdict(measured, limit)
    sign = "≥" if at_least else "≤"
    return {"experiment": experiment, "what": f"{what} {sign} {limit:.4g}",
            "measured": measured, "half_width": None, "n": None,
            "limit": limit, "verdict": verdict, "at_least": at_least}


def _derived(by_name):
    for name, (key, limit, text) in offline.MICRO_TARGETS.items():
        cell = next((c for (e, n), c in by_name.items() if e == "micro"
                     and (n == name or n.startswith(name + "/"))), {})
        value = (cell.get("mean") if key == "ns"
                 else (cell.get("detail") or {}).get(key))
        yield _row("micro", f"{text} ({'ns' if key == 'ns' else '1/s'})",
                   value, limit, key != "ns")
    outputs = "outputs-postmark-quick-full"
    plain = by_name.get((outputs, "full+file"), {}).get("bytes_per_event")
    for name in ("zstd", "zlib"):
        packed = by_name.get((outputs, f"full+{name}"),
                             {}).get("bytes_per_event")
        yield _row(outputs, f"trace shrinks by {name}, times",
                   plain / packed if plain and packed else None, 10, True)
    trip = (by_name.get(("latency", "never@exact"), {}).get("detail") or
            {}).get("stat", {}).get("p50")
    for name in ("randread", "randwrite"):
        traced = by_name.get((name, "full"), {}).get("mean")
        yield _row(name, "traced 4 KiB, in getattr round trips",
                   traced * 1000 / trip if traced and trip else None, 1.3,
                   False)
    for row, key, limit, at_least, text in (
            ("null", "messages_per_s", 3e6, True, "null rewrite, messages/s"),
            ("research", "messages_per_s", 1e6, True,
             "all protected, messages/s"),
            ("research, no cache", "messages_per_s", 4e5, True,
             "without the cache, messages/s"),
            ("research", "growth", 0.10, False, "growth of the trace")):
        detail = by_name.get(("anonymise", row), {}).get("detail") or {}
        yield _row("anonymise", text, detail.get(key), limit, at_least)


# Targets other than timings: what shows them.
SHOWN_BY_TESTS = (
    ("a trace cut by SIGKILL loses at most the last flush interval",
     "ctest -R mount_crash_test"),
    ("1 M distinct keys counted in at most 64 MiB", "ctest -R aggregate_test"),
    ("1000 tracers added and removed under load, none of the others' events "
     "lost or doubled", "ctest -R control_mount_test"),
)
