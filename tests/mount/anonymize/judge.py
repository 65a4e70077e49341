"""What of an original can be found in its anonymised trace: both as JSON Lines,
compared line by line, without a line of the anonymiser's code or tables."""

import itertools
import json
import re

# Whom, what and which.
IDENTITIES = ("uid gid new_uid new_gid fuid fgid pid tid ppid sid pgid lock_pid "
              "ino parent_ino new_parent_ino ino_out fh fh_out lock_owner "
              "rdev").split()
TEXTS = "path path2 name new_name target comm exe cgroup xattr dir".split()
SIZES = ("fsize", "new_size")
# Words of the format and of no user.
ORDINARY = {"user", "security", "system", "trusted", "text", "file"}


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def walk(value, key=""):
    """All (key, number or text) in a JSON value; of a process's pipes, too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from walk(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner, key)
    elif not isinstance(value, bool):
        yield key, value


def is_class(number):
    return number & (number - 1) == 0


def words(value):
    return {word for part in re.split(r"[/.]", value)
            for word in re.findall(r"[\w-]+", part) if len(word) >= 5}


def found(original, anonymised, kept_words=()):
    """What is there and should not be, as lines for people."""
    told = []
    text = "\n".join(json.dumps(line) for line in anonymised)
    numbers = {int(n) for n in re.findall(r"(?<![\w.-])\d+(?![\w.-])", text)}
    protected = {}
    texts = {}
    for line in original:
        for key, value in walk(line):
            if key in IDENTITIES + ["inode"] + list(SIZES) and \
                    isinstance(value, int):
                protected.setdefault(value, key)
            if key in TEXTS and isinstance(value, str):
                for word in words(value):
                    texts.setdefault(word, key)
    # Small numbers are met everywhere.
    for number, key in protected.items():
        if number >= 10_000 and not is_class(number) and number in numbers:
            told.append(f"{key} {number} is there")
    for word, key in texts.items():
        if word not in kept_words and word not in ORDINARY and word in text:
            told.append(f"{key} holds {word}")
    told += sizes_that_follow(original, anonymised)
    return told


def sizes_that_follow(original, anonymised):
    """Sizes that come out exactly by adding up, file by file and open by
    open."""
    told = []
    if len(original) != len(anonymised):
        return [f"{len(original)} lines became {len(anonymised)}"]
    ends = {}
    sums = {}
    sizes = {}
    for before, after in zip(original, anonymised):
        if "op" not in before or "ino" not in before:
            continue
        key = before["ino"], before.get("fh")
        if before.get("fsize"):
            sizes[key] = sizes[before["ino"], None] = before["fsize"]
        if before["op"] in ("read", "write") and after.get("result", -1) > 0:
            end = after.get("offset", 0) + after["result"]
            ends.setdefault(key, set()).add(end)
            sums[key] = sums.get(key, 0) + after["result"]
        if before["op"] == "lseek" and after.get("result", -1) > 0:
            ends.setdefault(key, set()).add(after["result"])
    for key in itertools.chain(ends, sums):
        size = sizes.get(key) or sizes.get((key[0], None), 0)
        if is_class(size) or size < 1000:
            continue
        if size in ends.get(key, ()) or size == sums.get(key):
            told.append(f"file {key[0]} has {size} bytes, as follows from its "
                        "transfers")
    return sorted(set(told))
