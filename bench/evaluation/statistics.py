"""Means with 95 % confidence intervals (Student's t), and paired ratios."""

import math

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond, the
# normal distribution's is near enough (1.96 against 2.04 at 31).
T95 = [math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
       2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
       2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
       2.042]


def mean(values):
    return math.fsum(values) / len(values)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def half_width(values):
    """Half of the mean's 95 % confidence interval; infinite for one value."""
    n = len(values)
    if n < 2:
        return math.inf
    m = mean(values)
    variance = math.fsum((v - m) ** 2 for v in values) / (n - 1)
    t = T95[n - 1] if n - 1 < len(T95) else 1.96
    return t * math.sqrt(variance / n)


def relative_half_width(values):
    m = mean(values)
    return half_width(values) / abs(m) if m else math.inf


def paired_ratios(values, baseline):
    """Ratios of figures by round: only rounds that have both count."""
    return [values[r] / baseline[r] for r in sorted(values)
            if r in baseline and baseline[r]]


def summary(values):
    """What is kept of some values; None for none. half_width is None where
    there is only one."""
    if not values:
        return None
    width = half_width(values)
    return {"n": len(values), "mean": mean(values), "median": median(values),
            "half_width": None if math.isinf(width) else width}
