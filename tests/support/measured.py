"""The truth about a workload, from JSON Lines and by the words of the
specification alone, and whether a number that a command prints is it."""

import re

SHARES = {"p50": (1, 2), "p90": (9, 10), "p99": (99, 100),
          "p999": (999, 1000)}


def bucket(value):
    """First and last value of FORMAT.md's bucket (section 8a)."""
    width = 1 << max(value.bit_length() - 7, 0)
    return value // width * width, value // width * width + width - 1


def moved(event):
    content = event["op"] in ("read", "write", "copy_file_range")
    return 0 if not content or "errno" in event else event.get("result", 0)


def truth(events):
    """What is known of each operation."""
    told = {}
    for op in {e["op"] for e in events}:
        mine = [e for e in events if e["op"] == op]
        times = sorted(e["dur"] for e in mine if "dur" in e)
        row = {"count": len(mine), "errors": sum("errno" in e for e in mine),
               "bytes": sum(map(moved, mine)), "timed": len(times)}
        if times:
            row |= {"time": sum(times), "mean": sum(times) // len(times),
                    "min": times[0], "max": times[-1]}
            for name, (part, whole) in SHARES.items():
                row[name] = times[-(-len(times) * part // whole) - 1]
        told[op] = row
    return told


def expect_near(found, exact, what):
    """Quantiles are known by their bucket."""
    low, high = bucket(exact)
    if not low <= found <= high:
        raise AssertionError(f"{what}: {found} is not in {(low, high)}")


def words_of(line):
    """The words of a line, in which a number and its unit are one."""
    joined = re.sub(r"(\d) (?=(?:ns|[µu]s|ms|s|min|h|B|[kMGTPE]B)(?: |$))",
                    "\\1\0", line)
    return [word.replace("\0", " ") for word in joined.split()]


def count_of(text):
    """A count for people: "1,234"."""
    if not re.fullmatch(r"\d{1,3}(,\d{3})*", text):
        raise AssertionError(f"no count: {text!r}")
    return int(text.replace(",", ""))


def in_digits(text, what):
    """A number for people, as units.h says (three digits, cut, a blank and a unit):
    its digits as a whole number, and how many units such a digit is."""
    found = re.fullmatch(r"([\d.]+)(?: (ns|[µu]s|ms|s|B|kB|MB|GB))?", text)
    if found is None:
        raise AssertionError(f"{what}: no number with a unit: {text!r}")
    unit = {"µs": 10 ** 3, "us": 10 ** 3, "ms": 10 ** 6, "s": 10 ** 9, "kB": 10 ** 3,
            "MB": 10 ** 6, "GB": 10 ** 9}.get(found[2], 1)
    digits = found[1].replace(".", "")
    if unit > 1 and len(digits) < 3:
        raise AssertionError(f"{what}: {text} has fewer than three digits")
    return int(digits), unit, 10 ** len(found[1].partition(".")[2])


def expect_text(text, exact, what):
    told, unit, parts = in_digits(text, what)
    if told != exact * parts // unit:
        raise AssertionError(f"{what}: {text} for {exact}")


def expect_text_near(text, exact, what):
    """Of a quantile, which is known by its bucket."""
    told, unit, parts = in_digits(text, what)
    low, high = bucket(exact)
    if not low * parts // unit <= told <= high * parts // unit:
        raise AssertionError(f"{what}: {text} for {exact}")
