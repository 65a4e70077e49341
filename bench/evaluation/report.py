"""The tables and the page of a run."""

import json

from . import data_page, plots, summary
from .configurations import OUTPUTS
from .peers import PEERS, blind_text


def _number(value, digits=3):
    if value is None:
        return ""
    if abs(value) >= 10000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"


def _plus_minus(s):
    if not s:
        return ""
    width = s.get("half_width")
    if width is None:
        return _number(s["mean"]) + " (once)"
    share = 100 * width / abs(s["mean"]) if s["mean"] else 0
    return f"{_number(s['mean'])} ± {share:.1f} %"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(c).replace("|", "\\|") for c in r) + " |"
              for r in rows]
    return "\n".join(lines) + "\n"


def _remark(cell):
    words = []
    if cell.get("error"):
        often = (f" ({cell['failed']} times)" if cell["failed"] > 1 else "")
        words.append(f"**{cell['error']}**{often}")
    if cell.get("note"):
        words.append(cell["note"])
    if blind_text(cell["configuration"]):
        words.append(blind_text(cell["configuration"]))
    return "; ".join(words)


def experiment_table(cells):
    unit = next((c["unit"] for c in cells if "unit" in c), "")
    baseline = next((c["baseline"] for c in cells if "baseline" in c), "")
    rows = []
    for c in cells:
        events = c.get("events")
        lost = c.get("lost")
        rows.append((
            c["configuration"], _plus_minus(c) if "mean" in c else "–",
            _plus_minus(c.get("ratio")), _number(c.get("cpu")),
            _number(c.get("system")), _number(events),
            "" if events is None else "not told" if lost is None
            else _number(lost), _number(c.get("bytes_per_event")),
            c.get("n", 0), _remark(c)))
    return table(("configuration", unit or "figure",
                  f"cost to {baseline}" if baseline else "", "CPU s",
                  "system s", "events", "lost", "bytes/event", "runs",
                  "remarks"), rows)


def stages_table(cells):
    rows = []
    names = list(dict.fromkeys(n for c in cells for n in c.get("stages", {})))
    for c in cells:
        if c.get("stages"):
            rows.append([c["configuration"]]
                        + [_number(c["stages"].get(n)) for n in names])
    return ("ns per event of each stage, from the tracer's own counters:\n\n"
            + table(["configuration"] + names, rows)) if rows else ""


def detail_table(cells):
    """The lines on single calls: percentiles, or requests by kind."""
    rows, header = [], None
    for c in cells:
        for key, d in (c.get("detail") or {}).items():
            if not isinstance(d, dict):
                continue
            if "p50" in d:
                header = ("call", "configuration", "p50 µs", "p90", "p99",
                          "p99.9", "max")
                rows.append((key, c["configuration"]) + tuple(
                    _number(d[p] / 1000) for p in
                    ("p50", "p90", "p99", "p999", "max")))
            else:
                header = ("call", "configuration", "requests", "which")
                rows.append((key, c["configuration"],
                             _number(sum(d.values())),
                             ", ".join(f"{v:g} {k}" for k, v in d.items())))
    order = {}
    for r in rows:
        order.setdefault(r[0], len(order))
    rows.sort(key=lambda r: order[r[0]])
    return table(header, rows) if rows else ""


def flat_detail_table(cells):
    rows, keys = [], []
    for c in cells:
        d = c.get("detail") or {}
        if d and not any(isinstance(v, dict) for v in d.values()):
            keys += [k for k in d if k not in keys]
            rows.append((c, d))
    if not rows:
        return ""
    return table(["row"] + keys, [[c["configuration"]]
                                  + [_number(d.get(k)) for k in keys]
                                  for c, d in rows])


def sizes_table(cells):
    """Trace sizes, rates and ratios by output filter."""
    rows = []
    plain = {(c["experiment"], c["configuration"].partition("+")[0]):
             c.get("bytes_per_event") for c in cells
             if c["configuration"].endswith("+file")}
    for c in cells:
        load, _, output = c["configuration"].partition("+")
        if output not in OUTPUTS or not c.get("bytes_per_event"):
            continue
        base = plain.get((c["experiment"], load))
        rows.append((c["experiment"], c["configuration"],
                     _number((c["bytes"] or 0) / (1 << 20)),
                     _number(c.get("events")), _number(c["bytes_per_event"]),
                     _number(c.get("events_per_s")),
                     _number(base / c["bytes_per_event"]) if base else ""))
    return table(("experiment", "configuration", "MiB", "events",
                  "bytes/event", "events/s", "smaller by"), rows) if rows else ""


def targets_table(rows):
    return table(("where", "target", "measured", "runs", "verdict"), [
        (r["experiment"], r["what"],
         _number(r["measured"]) + (f" ± {r['half_width']:.2g}"
                                   if r["half_width"] is not None else ""),
         r["n"] if r["n"] is not None else "", r["verdict"]) for r in rows])


def _request_share(cells, by_name):
    """How much of the time requests and their round trip explain."""
    trip = (by_name.get(("latency", "never@exact"), {}).get("detail")
            or {}).get("stat", {}).get("p50")
    c = next((c for c in cells if c["configuration"] in ("full@exact", "full")
              and c.get("events") and c.get("elapsed")), None)
    if not trip or not c:
        return ""
    return (f" Here: {c['events']:,.0f} requests of `{c['configuration']}` × "
            f"{trip / 1000:.1f} µs are "
            f"{100 * c['events'] * trip / 1e9 / c['elapsed']:.0f} % of its "
            "elapsed time (over 100: they overlap).")


def _peers_line(cells):
    words = [f"{c['configuration']} {_plus_minus(c['ratio'])}" for c in cells
             if c["configuration"] in PEERS and c.get("ratio")]
    return "; ".join(words) or "none measured"


def _ours_line(cells):
    words = [f"{c['configuration']} {_plus_minus(c['ratio'])}" for c in cells
             if c["configuration"] not in PEERS and c.get("ratio")
             and c["configuration"] != c.get("baseline")]
    return "; ".join(words) or "see the table"


def _plot(folder, e, cells):
    rows = [(c["configuration"], c["mean"], c["half_width"]) for c in cells
            if "mean" in c]
    if not rows or not plots.available() or len(rows) > 40:
        return ""
    unit = next(c["unit"] for c in cells if "unit" in c)
    plots.bars(folder / e.name, e.title, unit, rows, e.baseline)
    return f"![{e.title}](plots/{e.name}.svg)\n"


def _plot_groups(folder, all_cells):
    """Postmark by processes, and the loads by output filter, in one figure
    each, as in the paper."""
    if not plots.available():
        return ""
    text = ""
    by_name = {(c["experiment"], c["configuration"]): c for c in all_cells}

    def cell(experiment, configuration):
        c = by_name.get((experiment, configuration), {})
        return (c["mean"], c["half_width"]) if "mean" in c else None

    processes = [n for n in (1, 2, 4, 8, 16)
                 if (f"scaling-{n}", "native") in by_name]
    if processes:
        plots.grouped(folder / "scaling", "Postmark by processes", "s",
                      processes, {name: [cell(f"scaling-{n}", name)
                                         for n in processes]
                                  for name in ("native", "none", "full")})
        text += "![Postmark by processes](plots/scaling.svg)\n"
    for workload in ("postmark-quick", "compile"):
        loads = [x for x in ("full", "medium", "light")
                 if (f"outputs-{workload}-{x}", "never") in by_name]
        used = [o for o in OUTPUTS if any(
            (f"outputs-{workload}-{x}", f"{x}+{o}") in by_name for x in loads)]
        if loads:
            title = f"{workload} by output filter"
            plots.grouped(folder / f"outputs-{workload}", title, "s", loads, {
                o: [cell(f"outputs-{workload}-{x}", f"{x}+{o}")
                    for x in loads] for o in used})
            text += f"![{title}](plots/outputs-{workload}.svg)\n"
    return text


def write(folder, samples, experiments, environment):
    """summary.json, tables.md, plots/ and the page README.md. Returns the
    targets, of data paths how many are met."""
    all_cells = summary.cells(samples, experiments)
    verdicts = summary.targets(samples, experiments, all_cells)
    (folder / "summary.json").write_text(json.dumps(
        {"environment": environment, "cells": all_cells, "targets": verdicts},
        indent=1, ensure_ascii=False))
    plot_folder = folder / "plots"
    plot_folder.mkdir(exist_ok=True)
    by_name = {(c["experiment"], c["configuration"]): c for c in all_cells}
    tables = ["# Tables\n"]
    named = data_page.apart(verdicts, experiments)
    page = [f"# Evaluation, {environment['scale']}\n",
            "Costs are ratios of the same round (times; of rates the "
            "inverse): below 1 is faster than the baseline. ± is half the "
            "95 % confidence interval in per cent of the mean.\n",
            "## Targets\n", targets_table(named)]
    page.append("Not timings, but shown by tests: " + "; ".join(
        f"{what} (`{how}`)" for what, how in summary.SHOWN_BY_TESTS) + ".\n")
    for e in experiments:
        cells = [c for c in all_cells if c["experiment"] == e.name]
        if not cells:
            continue
        figure = experiment_table(cells)
        extra = [t for t in (stages_table(cells), detail_table(cells),
                             flat_detail_table(cells)) if t]
        tables += [f"## {e.title} (`{e.name}`)\n", figure, *extra]
        if getattr(e, "shape", None):
            continue  # a row of a table below
        page += [f"## {e.title} (`{e.name}`)\n", _plot(plot_folder, e, cells)]
        if e.baseline:
            page.append(f"- **Ours** (cost to {e.baseline}): "
                        f"{_ours_line(cells)}")
            page.append(f"- **Peers**: {_peers_line(cells)}")
        page += [f"- **The paper's**: {e.paper or 'not measured there'}",
                 f"- **What bounds it**: {e.bound}"
                 + _request_share(cells, by_name)]
        missed = [r["what"] for r in verdicts
                  if r["experiment"] == e.name and r["verdict"] == "missed"]
        if missed:
            page.append(f"- **Missed**: {'; '.join(missed)}. Tried: "
                        + (e.tried or "nothing beyond the above"))
        page += ["", figure, *extra]
    page += data_page.sections(experiments, all_cells, verdicts, table, _number)
    sizes = sizes_table(all_cells)
    if sizes:
        title = "## Trace sizes, rates and compression\n"
        tables += [title, sizes]
        page += [title, "The paper: 18.8:1 on Am-utils, 8 to 21 elsewhere.\n",
                 sizes]
    page.append(_plot_groups(plot_folder, all_cells))
    rows = [(k, ", ".join(f"{p} {v}" for p, v in value.items())
             if isinstance(value, dict) else value)
            for k, value in environment.items()]
    page += ["## Environment\n", table(("what", "value"), rows)]
    if not plots.available():
        page.append("No plots: matplotlib is not installed "
                    "(scripts/setup --bench).\n")
    (folder / "tables.md").write_text("\n".join(tables))
    (folder / "README.md").write_text("\n".join(page))
    return named
