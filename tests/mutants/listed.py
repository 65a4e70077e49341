"""Plants the faults of tests/mutants/ one at a time and says which the tests notice.

Each fault is planted in a copy of the tree (build/mutate/tree), never in the
tree itself, so that whatever ends this program leaves nothing behind. The copy
is built incrementally, the tests of the fault's area run, the copy is mended.
A run that was ended goes on where it was: verdicts are kept in
build/mutate/verdicts.jsonl for as long as neither the fault, nor its file, nor
its tests' sources changed.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

from workshop import ROOT, WORK, Workshop, apart, environment, run

SHOP = Workshop(WORK / "tree")
TREE, BUILD = SHOP.tree, SHOP.build
VERDICTS = WORK / "verdicts.jsonl"
# A fault may make a test wait for ever: each has its own limit in ctest; this
# one is for the compiler.
BUILD_SECONDS = 1200
WORDS = {
    "noticed": "a test of the area failed",
    "survived": "all tests of the area passed",
    "refused": "it does not compile: not a fault that a test could notice",
    "stale": "its text is not in the file just once: mend the list",
    "unsound": "a test of the area fails without it, too",
    "same": "it changes nothing that anyone could see (the list says why)",
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    breaks: str
    old: str
    new: str
    tests: tuple[str, ...]
    same: str
    group: str

    def planted(self, text: str) -> str | None:
        """The file's text with the fault, or None if its place is unclear."""
        if text.count(self.old) != 1:
            return None
        return text.replace(self.old, self.new)


def read_list(path: pathlib.Path) -> list[Mutant]:
    with path.open("rb") as file:
        rows = tomllib.load(file).get("mutant", [])
    mutants = []
    for number, row in enumerate(rows, 1):
        where = f"{path.relative_to(ROOT)}: mutant {number}"
        unknown = set(row) - {"name", "file", "breaks", "old", "new", "tests",
                              "same"}
        missing = {"name", "file", "breaks", "old", "new", "tests"} - set(row)
        if unknown or missing:
            sys.exit(f"mutate: {where}: unknown {sorted(unknown)}, "
                     f"missing {sorted(missing)}")
        mutants.append(Mutant(row["name"], row["file"], row["breaks"],
                              row["old"], row["new"], tuple(row["tests"]),
                              row.get("same", ""), path.stem))
    return mutants


def all_mutants() -> list[Mutant]:
    mutants = []
    for path in sorted((ROOT / "tests" / "mutants").glob("*.toml")):
        mutants += read_list(path)
    names = [mutant.name for mutant in mutants]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        sys.exit(f"mutate: two faults of one name: {sorted(twice)}")
    return mutants


def build(tests, targets: set[str]) -> subprocess.CompletedProcess:
    """Builds what the tests need: their own programs, and, for suites that run
    commands, these."""
    wanted = [test for test in tests if test in targets]
    if len(wanted) != len(tests):
        wanted.append("suites")
    return run(["cmake", "--build", "--preset", "release", "--target"] + wanted,
               seconds=BUILD_SECONDS, cwd=TREE, env=environment())


def passes(tests) -> tuple[bool, str]:
    pattern = "^(" + "|".join(map(re.escape, tests)) + ")$"
    done = run(apart() + ["ctest", "--test-dir", str(BUILD), "-R", pattern,
                "--no-tests=error", "--output-on-failure"], cwd=TREE,
               env=environment())
    failed = re.findall(r"\[  FAILED  \] ([\w./]+)(?: |$|,)", done.stdout)
    failed = failed or re.findall(r"\*\*\*\w+.*", done.stdout)
    return done.returncode == 0, failed[0] if failed else ""


def fingerprint(mutant: Mutant) -> str:
    """A digest of what decides the verdict and is cheap to know: the fault, and
    everything that is compiled or run for it."""
    digest = hashlib.sha256(repr(dataclasses.astuple(mutant)).encode())
    digest.update(tree_digest().encode())
    return digest.hexdigest()


_tree_digest: list[str] = []


def tree_digest() -> str:
    if not _tree_digest:
        digest = hashlib.sha256()
        for path in sorted(TREE.rglob("*")):
            name = str(path.relative_to(TREE))
            if path.suffix in {".cc", ".h", ".py", ".txt"} and \
                    not name.startswith("build") and path.is_file():
                digest.update(name.encode() + b"\0" + path.read_bytes())
        _tree_digest.append(digest.hexdigest())
    return _tree_digest[0]


def kept_verdicts() -> dict[str, dict]:
    kept = {}
    if VERDICTS.exists():
        for line in VERDICTS.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue  # the run that wrote it was ended in its middle
            kept[row["name"]] = row
    return kept


def judge(mutant: Mutant, targets: set[str]) -> tuple[str, str]:
    path = TREE / mutant.file
    if not path.is_file():
        return "stale", "no such file"
    sound = path.read_text()
    planted = mutant.planted(sound)
    if planted is None:
        return "stale", f"found {sound.count(mutant.old)} times"
    if mutant.same:
        return "same", mutant.same
    if reason := unsound(mutant.tests, targets):
        return "unsound", reason
    try:
        path.write_text(planted)
        try:
            built = build(mutant.tests, targets)
        except subprocess.TimeoutExpired:
            return "refused", "the compiler did not end"
        if built.returncode != 0:
            error = re.search(r"error: .*", built.stdout)
            return "refused", error.group(0) if error else "does not build"
        good, failed = passes(mutant.tests)
        return ("survived", "") if good else ("noticed", failed)
    finally:
        path.write_text(sound)


_sound: dict[str, str] = {}


def unsound(tests, targets: set[str]) -> str:
    """Which of the tests fails without a fault, twice: it would notice
    everything. "" if none does."""
    for test in tests:
        if test not in _sound:
            built = build([test], targets)
            if built.returncode != 0:
                sys.exit("mutate: the tree does not build:\n"
                         + built.stdout[-3000:])
            good, failed = passes([test])
            if not good:
                good, failed = passes([test])
            _sound[test] = "" if good else f"{test} fails by itself: {failed}"
        if _sound[test]:
            return _sound[test]
    return ""


def table(rows) -> str:
    lines = ["| fault | file | verdict | by |", "|---|---|---|---|"]
    for mutant, verdict, by in rows:
        by = by.replace("|", "\\|")[:80]
        lines.append(f"| {mutant.name} | {mutant.file} | {verdict} | {by} |")
    count = {word: sum(1 for _, verdict, _ in rows if verdict == word)
             for word in WORDS}
    real = count["noticed"] + count["survived"]
    lines.append("")
    lines.append(", ".join(f"{n} {word}" for word, n in count.items() if n))
    if real:
        lines.append(f"noticed: {count['noticed']} of {real} "
                     f"({100 * count['noticed'] // real} %)")
    return "\n".join(lines)


def main() -> int:
    verdicts = "\n".join(f"  {word:9} {what}" for word, what in WORDS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"verdicts:\n{verdicts}\n\nexit status: 0 "
        "nine of ten or more were noticed and the list is not stale, 1 not so, "
        "2 wrong usage.",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="",
                        help="only faults in files below it")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="only this fault; may be given again")
    parser.add_argument("--group", metavar="LIST",
                        help="only those of tests/mutants/LIST.toml")
    parser.add_argument("--list", action="store_true",
                        help="print the faults, plant none; says which are stale")
    parser.add_argument("--again", action="store_true",
                        help="forget the verdicts of earlier runs")
    arguments = parser.parse_args()

    folder = os.path.normpath(arguments.folder) if arguments.folder else ""
    chosen = [m for m in all_mutants()
              if (not folder or m.file == folder
                  or m.file.startswith(folder + "/"))
              and (not arguments.only or m.name in arguments.only)
              and (not arguments.group or m.group == arguments.group)]
    if not chosen:
        print("mutate: no such fault; next: scripts/mutate --list",
              file=sys.stderr)
        return 2
    if arguments.list:
        stale = 0
        for mutant in chosen:
            path = ROOT / mutant.file
            text = path.read_text() if path.is_file() else ""
            note = "" if mutant.planted(text) else "  STALE"
            stale += bool(note)
            print(f"{mutant.group}: {mutant.name}: {mutant.file}: "
                  f"{mutant.breaks}{note}")
        return 1 if stale else 0

    # TERM, too, must mend the copy and end the tests that run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.again and VERDICTS.exists():
        VERDICTS.unlink()
    SHOP.copy()
    SHOP.configure()
    targets = SHOP.known_targets()
    kept = kept_verdicts()
    left = [m for m in chosen
            if kept.get(m.name, {}).get("fingerprint") != fingerprint(m)]
    rows = []
    for number, mutant in enumerate(chosen, 1):
        if mutant not in left:
            row = kept[mutant.name]
            rows.append((mutant, row["verdict"], row["by"]))
            continue
        begin = time.monotonic()
        verdict, by = judge(mutant, targets)
        rows.append((mutant, verdict, by))
        if verdict == "unsound":
            print(f"[{number}/{len(chosen)}] {mutant.name}: {verdict} {by}",
                  flush=True)
            continue  # asked again the next time
        with VERDICTS.open("a") as file:
            file.write(json.dumps({"name": mutant.name, "verdict": verdict,
                                   "by": by,
                                   "fingerprint": fingerprint(mutant)}) + "\n")
        print(f"[{number}/{len(chosen)}] {mutant.name}: {verdict} {by} "
              f"({time.monotonic() - begin:.0f} s)", flush=True)
    print()
    print(table(rows))
    noticed = sum(1 for _, verdict, _ in rows if verdict == "noticed")
    survived = sum(1 for _, verdict, _ in rows if verdict == "survived")
    wrong = sum(1 for _, verdict, _ in rows if verdict in ("stale", "unsound"))
    return 0 if not wrong and noticed >= 9 * survived else 1


if __name__ == "__main__":
    sys.exit(main())
