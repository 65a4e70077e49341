"""Two results side by side: what changed by more than chance."""

import json
import pathlib

from .report import table


class Unusable(Exception):
    """Why a result cannot be compared."""


def load(path):
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "summary.json"
    try:
        data = json.loads(path.read_text())
        return data["environment"], {
            (c["experiment"], c["configuration"]): c for c in data["cells"]}
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}; bench/run makes one") from None
    except (ValueError, KeyError, TypeError):
        raise Unusable(f"{path}: no summary of bench/run") from None


def _cost(cell):
    """(mean, half width, what it is): relative to the baseline where there is
    one, as machines and days differ."""
    ratio = cell.get("ratio")
    if ratio and cell.get("baseline") != cell["configuration"]:
        return ratio["mean"], ratio["half_width"], "cost"
    if "mean" not in cell:
        return None
    return cell["mean"], cell["half_width"], cell["unit"]


def compare(a, b, threshold):
    """Rows (experiment, configuration, what, A, B, change, verdict), the worse
    first. Better or worse: by more than `threshold` and both confidence
    intervals; smaller is better but for rates without a baseline."""
    rows = []
    for key in sorted(set(a) & set(b)):
        ours, theirs = _cost(a[key]), _cost(b[key])
        if not ours or not theirs or ours[2] != theirs[2] or not ours[0]:
            continue
        change = theirs[0] / ours[0] - 1
        if ours[2] != "cost" and a[key]["higher_is_better"]:
            change = ours[0] / theirs[0] - 1 if theirs[0] else float("inf")
        noise = (ours[1] or 0) + (theirs[1] or 0)
        clear = (abs(change) > threshold
                 and abs(theirs[0] - ours[0]) > noise)
        verdict = "" if not clear else "worse" if change > 0 else "better"
        rows.append((*key, ours[2], ours[0], theirs[0], change, verdict))
    rank = {"worse": 0, "better": 1, "": 2}
    rows.sort(key=lambda r: (rank[r[6]], -abs(r[5])))
    return rows


def text(rows):
    return table(("experiment", "configuration", "figure", "A", "B", "change",
                  "verdict"),
                 [(e, c, w, f"{x:.4g}", f"{y:.4g}", f"{100 * d:+.1f} %", v)
                  for e, c, w, x, y, d, v in rows])
