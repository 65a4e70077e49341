"""Figures as SVG and PNG: bars with 95 % confidence intervals, as the paper's
figures 6 to 11. Needs matplotlib; without it there are tables only."""

try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None


def available():
    return pyplot is not None


def _save(figure, path):
    figure.tight_layout()
    for suffix in ("svg", "png"):
        figure.savefig(f"{path}.{suffix}", dpi=120)
    pyplot.close(figure)


def bars(path, title, unit, rows, reference=None):
    """rows: [(label, mean, half width or None)]; one bar each. `reference`:
    a label whose height is drawn through all."""
    figure, axes = pyplot.subplots(figsize=(max(5, 0.55 * len(rows) + 2), 4))
    labels = [r[0] for r in rows]
    means = [r[1] for r in rows]
    errors = [r[2] or 0 for r in rows]
    colours = ["#7f7f7f" if label == reference else "#4c72b0"
               for label in labels]
    axes.bar(range(len(rows)), means, yerr=errors, capsize=3, color=colours)
    if reference in labels:
        axes.axhline(means[labels.index(reference)], color="#c44e52",
                     linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(rows)))
    axes.set_xticklabels(labels, rotation=45, ha="right", fontsize=8)
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=9)
    _save(figure, path)


def grouped(path, title, unit, groups, series):
    """series: {label: [(mean, half width or None) or None per group]}."""
    figure, axes = pyplot.subplots(figsize=(max(6, 1.2 * len(groups) + 2), 4))
    width = 0.8 / max(1, len(series))
    for k, (label, cells) in enumerate(series.items()):
        at = [i + k * width for i, c in enumerate(cells) if c]
        axes.bar(at, [c[0] for c in cells if c], width,
                 yerr=[c[1] or 0 for c in cells if c], capsize=2, label=label)
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(groups))])
    axes.set_xticklabels(groups, fontsize=8)
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=7)
    _save(figure, path)
