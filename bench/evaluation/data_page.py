"""The table of data paths: a row for each, a column for each configuration."""

ABOUT = """Time to native, medians of rounds; in **bold** what misses a target: no
slower than the better of P and Pu, and recorded in order at most 1.1 of native.
With * events were lost, so that less was recorded than is said.
"""


def paths(experiments):
    return [e for e in experiments if getattr(e, "shape", None)]


def apart(verdicts, experiments):
    """The targets of all else, and a line for each file system: a row for each
    path would hide the others."""
    places = {e.name: e.place for e in paths(experiments)}
    rows = [r for r in verdicts if r["experiment"] not in places]
    for place in dict.fromkeys(places.values()):
        mine = [r["verdict"] for r in verdicts
                if places.get(r["experiment"]) == place
                and r["verdict"] != "not measured"]
        rows.append({"experiment": f"data-{place}",
                     "what": "targets of data paths", "measured": None,
                     "half_width": None, "n": None, "verdict":
                     f"{mine.count('met')} of {len(mine)} met"})
    return rows


def _cell(cell, missed, number):
    ratio = (cell or {}).get("ratio")
    if not ratio:
        return "–"
    text = number(ratio["median"]) + ("*" if cell.get("lost") else "")
    return f"**{text}**" if missed else text


def sections(experiments, cells, verdicts, table, number):
    """Titles and tables, one for each file system."""
    by_name = {(c["experiment"], c["configuration"]): c for c in cells}
    missed = {(r["experiment"], r["what"].partition(" ")[0])
              for r in verdicts if r["verdict"] == "missed"}
    text = []
    for place in dict.fromkeys(e.place for e in paths(experiments)):
        mine = [e for e in paths(experiments) if e.place == place]
        names = list(dict.fromkeys(c for e in mine for c in e.configurations
                                   if c != e.baseline))
        rows = []
        for e in mine:
            native = by_name.get((e.name, e.baseline), {})
            rows.append([e.shape.title, number(native.get("median"))] + [
                _cell(by_name.get((e.name, name)), (e.name, name) in missed,
                      number) for name in names])
        errors = {f"{c['configuration']}: {c['error']}" for e in mine
                  for c in cells if c["experiment"] == e.name
                  and c.get("error")}
        text += [f"## Data paths on {place}\n", ABOUT,
                 table(["path", "native, MiB/s", *names], rows)]
        text += [f"- {error}" for error in sorted(errors)]
    return text
