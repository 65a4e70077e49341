"""Faults made from the syntax tree of each file of a room: all of them compiled
at once, switched on one at a time (TRACEFS_FAULT), judged by the tests that
reach them."""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys

import commands
import suites as tests
from workshop import ROOT, WORK, Workshop, environment, run

HERE = pathlib.Path(__file__).resolve().parent
EQUAL = HERE / "equal.txt"
VERDICTS = WORK / "generated.jsonl"
MOST = 4096  # faults of a file
BUILD_SECONDS = 3600
HEAD = b'#include "tests/mutants/fault.h"\n#line 1\n'


@dataclasses.dataclass
class Made:
    """A file with its faults."""
    name: str
    room: str
    base: int
    digest: str
    text: str
    rows: list[dict]  # points.Point as a dict, and "key"
    skipped: dict[str, int]


@dataclasses.dataclass
class Fault:
    number: int
    room: str
    file: Made
    row: dict
    verdict: str = ""
    by: str = ""

    @property
    def key(self) -> str:
        # What is left out leaves a blank at the end of its name.
        return self.row["key"].strip()

    def take(self, verdict: str, by: str) -> None:
        """The verdict of further tests; what others reached was reached."""
        if verdict != "not reached" or not self.verdict:
            self.verdict, self.by = verdict, by

    def shown(self) -> str:
        after = self.row["after"] or "(left out)"
        # Which of several of one name it is, as equal.txt has to say.
        which = re.search(r" #\d+$|$", self.key)[0]
        return (f"{self.file.name}:{self.row['line']}: {self.row['kind']} in "
                f"{self.row['function']}{which}: {self.verdict}\n"
                f"-  {self.row['before']}\n+  {after}")


def all_rooms() -> list[str]:
    text = (ROOT / "CMakeLists.txt").read_text()
    loop = re.search(r"foreach\(folder IN ITEMS(.*?)\)\n", text, re.S)
    words = [w for w in loop[1].split() if not w.startswith("$")]
    rooms = []
    for word in words:
        folders = {str(p.parent.relative_to(ROOT))
                   for p in (ROOT / word).rglob("*.cc")}
        rooms += [word] if word != "tracefs/tools" else sorted(folders)
    return rooms


def room_named(word: str) -> str:
    found = [r for r in all_rooms() if word.rstrip("/") in (
        r, r.removeprefix("tracefs/"))]
    if not found:
        sys.exit(f"mutate: no room {word}\nmutate: next: one of "
                 f"{' '.join(r.removeprefix('tracefs/') for r in all_rooms())}")
    return found[0]


def room_of(file: str, rooms: list[str]) -> str:
    inside = [r for r in rooms if file.startswith(r + "/")]
    return max(inside, key=len, default="")


def room_files(room: str, rooms: list[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard",
         "--", room], cwd=ROOT, check=True, capture_output=True, text=True)
    return [f for f in sorted(listed.stdout.split())
            if f.endswith(".cc") and room_of(f, rooms) == room
            and (ROOT / f).is_file()]


def tool_digest() -> str:
    digest = hashlib.sha256()
    for name in ("syntax.py", "kinds.py", "points.py"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


class Store:
    """A JSON object in a file of the work folder."""

    def __init__(self, name: str):
        self.path = WORK / name
        self.rows = json.loads(self.path.read_text()) \
            if self.path.exists() else {}

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.rows))
        new.replace(self.path)


def numbers(files) -> dict[str, int]:
    """The first number of each file: the same in every run, so that a file is
    compiled again only when it changed."""
    store = Store("numbers.json")
    for file in files:
        # 0 is what the program has before it has read the environment.
        store.rows.setdefault(file, (len(store.rows) + 1) * MOST)
    store.save()
    return store.rows


@dataclasses.dataclass
class Unit:
    """Files that compile together; some are made by the build."""
    names: list[str]
    arguments: list[str]

    def paths(self) -> dict[str, pathlib.Path]:
        copy = WORK / "generated"
        return {n: ROOT / n if (ROOT / n).exists() else copy / n
                for n in self.names}


def make(unit, names, rooms, bases, refused, tool) -> list[Made]:
    """The faults of those files `names` of a unit."""
    paths = unit.paths()
    texts = {n: p.read_bytes() for n, p in paths.items()}
    made, left = [], []
    for name in names:
        digest = hashlib.sha256(texts[name] + tool.encode()).hexdigest()[:32]
        numbers_left_out = sorted(refused.get(digest, []))
        what = hashlib.sha256(json.dumps(
            [digest, bases[name], numbers_left_out,
             unit.arguments]).encode()).hexdigest()[:32]
        kept = WORK / "points" / f"{what}.json"
        if kept.exists():
            made.append(Made(**json.loads(kept.read_text())))
        else:
            left.append((name, digest, set(numbers_left_out), kept))
    if not left:
        return made
    import points
    import syntax
    decoded = {str(paths[n]): t.decode("latin-1") for n, t in texts.items()}
    tree = syntax.Tree(decoded, unit.arguments)
    if tree.errors:
        print(f"mutate: {unit.names[0]}: libclang says {tree.errors[0]}",
              file=sys.stderr)
    for name, digest, left_out, kept in left:
        path = str(paths[name])
        file = points.File(path, name, decoded[path], tree, left_out,
                           bases[name])
        if len(file.points) > MOST:
            sys.exit(f"mutate: {name}: {len(file.points)} faults, more than "
                     f"{MOST}")
        one = Made(name, rooms[name], bases[name], digest, file.text,
                   rows_of(file, left_out), dict(file.skipped))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(dataclasses.asdict(one)))
        made.append(one)
    return made


def rows_of(file, left_out) -> list[dict]:
    seen = collections.Counter()
    rows = []
    for point in file.points:
        key = point.key(file.name)
        seen[key] += 1
        row = dataclasses.asdict(point)
        row["key"] = key if seen[key] == 1 else f"{key} #{seen[key]}"
        row["refused"] = point.number in left_out
        rows.append(row)
    return rows


def units_of(build: pathlib.Path) -> list[Unit]:
    """What compiles together, and what a parser has to know of it."""
    tree = build.parent.parent
    found, seen = [], set()

    def place(word):
        return word if str(build) in word else word.replace(str(tree), str(ROOT))

    for row in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(row["file"])
        if not path.is_relative_to(tree):
            continue
        words = shlex.split(row["command"])
        kept = ["-x", "c++"]
        for at, word in enumerate(words):
            if word.startswith(("-I", "-D", "-std")):
                kept.append(place(word))
            elif word == "-isystem":
                kept += [word, place(words[at + 1])]
        # Files that compile together are one that includes them.
        parts = re.findall(r'^#include "(/.*)"$', path.read_text(), re.M) \
            if "Unity" in path.parts and path.exists() else [path]
        names = [str(p.relative_to(tree)) for p in map(pathlib.Path, parts)]
        if not seen & set(names):
            seen.update(names)
            found.append(Unit(names, kept))
    return found


class Planting:
    """Makes the faults of some rooms, and a build with all of them."""

    def __init__(self, rooms: list[str], jobs: int):
        self.jobs = jobs
        self.shop = Workshop(WORK / "generated")
        self.every = all_rooms()
        self.files = {f: room for room in rooms
                      for f in room_files(room, self.every)}
        self.base = numbers(self.files)
        self.refused = Store("refused.json")
        self.made: dict[str, Made] = {}

    def configure(self) -> None:
        self.shop.copy(head=HEAD)
        options = ["-DTRACEFS_TESTS=ON",
                   "-DCMAKE_CXX_COMPILER_LAUNCHER="
                   f"{self.shop.tree / 'tests/mutants/compile'}"]
        # As the developer's own build, whose objects ccache has of every room
        # but those with faults.
        cache = ROOT / "build" / "release" / "CMakeCache.txt"
        text = cache.read_text() if cache.exists() else ""
        for name in ("TRACEFS_WERROR", "CMAKE_EXE_LINKER_FLAGS"):
            found = re.search(rf"^{name}:\w+=(.+)$", text, re.M)
            options += [f"-D{name}={found[1]}"] if found else []
        self.shop.configure(*options)

    def generate(self, files) -> None:
        units = [(unit, [n for n in unit.names if n in files])
                 for unit in units_of(self.shop.build)]
        units = [(unit, names) for unit, names in units if names]
        tool = tool_digest()
        with concurrent.futures.ProcessPoolExecutor(self.jobs) as pool:
            for found in pool.map(
                    make, *zip(*units), *([same] * len(units) for same in (
                        self.files, self.base, self.refused.rows, tool))):
                self.made |= {made.name: made for made in found}

    def build(self, targets) -> None:
        for attempt in range(30):
            self.shop.copy({f: HEAD + m.text.encode("latin-1")
                            for f, m in self.made.items()})
            done = run(["ninja", "-C", str(self.shop.build), "-k", "0",
                        f"-j{self.jobs}", *targets], seconds=BUILD_SECONDS,
                       env=environment() | {
                           # As in CMakePresets.json, which ninja does not know.
                           "CCACHE_BASEDIR": str(self.shop.tree),
                           "CCACHE_NOHASHDIR": "1"})
            if done.returncode == 0:
                return
            again = self.refuse(done.stdout, attempt)
            if not again:
                sys.exit("mutate: the tree does not build without faults:\n"
                         + done.stdout[-4000:])
            self.refused.save()
            self.generate(again)
        sys.exit("mutate: the compiler refuses more and more of it")

    def refuse(self, output: str, attempt: int) -> set[str]:
        """Leaves out the faults that the compiler does not take: the one before
        the place of an error, later all of its line, in the end all of its
        file."""
        tree = re.escape(str(self.shop.tree))
        touched = set()
        for found in re.finditer(
                rf"^(?:{tree}/|(?:\.\./)+|\./)?(\S+?):(\d+):(\d+):\s+"
                r"(?:error:|fatal error:|required from here)", output, re.M):
            made = self.made.get(found[1])
            if made is None:
                continue
            line, column = int(found[2]), int(found[3])
            lines = made.text.split("\n")
            before = lines[line - 1][:column + 1] if line <= len(lines) else ""
            near = re.findall(r"tracefs_fault\((\d+)\)", before)
            if attempt < 5 and near:
                bad = {int(near[-1]) - made.base}
            else:
                bad = {r["number"] for r in made.rows
                       if r["line"] <= line <= r["last_line"]}
            old = set(self.refused.rows.get(made.digest, []))
            if attempt > 12 or not bad - old and attempt > 6:
                bad = {r["number"] for r in made.rows}
            if bad - old:
                touched.add(made.name)
                self.refused.rows[made.digest] = sorted(old | bad)
        return touched

    def faults(self) -> list[Fault]:
        return [Fault(made.base + row["number"], made.room, made, row)
                for made in self.made.values() for row in made.rows
                if not row["refused"]]


def equal_ones() -> dict[str, str]:
    """Faults that change nothing for any input, and why."""
    found, key = {}, ""
    for number, line in enumerate(EQUAL.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            found[key] = (found[key] + " " + line.strip()).strip()
        elif key and not found[key]:
            sys.exit(f"mutate: {EQUAL.name}:{number}: the fault before it has "
                     "no reason")
        else:
            key = line.strip()
            found[key] = ""
    return found


def changed_lines(since: str) -> dict[str, set[int]]:
    done = subprocess.run(["git", "diff", "-U0", since, "--", "*.cc"], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"mutate: {done.stderr.strip()}")
    lines: dict[str, set[int]] = {}
    file = ""
    for line in done.stdout.splitlines():
        if line.startswith("+++ "):
            file = line[6:]
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if hunk:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + count))
    return lines


class Verdicts:
    """What earlier runs found. A fault that was noticed stays so while its file
    does; others are asked again when a test changed."""

    def __init__(self, again: bool):
        self.noticed, self.others = {}, {}
        if VERDICTS.exists() and not again:
            for line in VERDICTS.read_text().splitlines():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    continue  # the run that wrote it was ended in its middle
                name = row["key"], row["digest"]
                if row["verdict"] == "noticed":
                    self.noticed[name] = row
                else:
                    self.others[*name, row["judges"]] = row
        elif VERDICTS.exists():
            VERDICTS.unlink()

    def known(self, fault: Fault, judges: str) -> bool:
        name = fault.key, fault.file.digest
        row = self.noticed.get(name) or self.others.get((*name, judges))
        if row:
            fault.take(row["verdict"], row["by"])
        return bool(row)

    def add(self, fault: Fault, verdict: str, by: str, judges: str) -> None:
        fault.take(verdict, by)
        with VERDICTS.open("a") as file:
            file.write(json.dumps({
                "key": fault.key, "digest": fault.file.digest,
                "verdict": verdict, "by": by, "judges": judges}) + "\n")


def linked(room: str, shop: Workshop, among) -> list:
    """The suites whose program contains the room."""
    found = []
    archive = re.compile(rf"^{re.escape(room)}/CMakeFiles/.*\.o$", re.M)
    for suite in among:
        done = run(["ninja", "-C", str(shop.build), "-t", "inputs",
                    f"tests/{suite.name}"])
        if archive.search(done.stdout):
            found.append(suite)
    return found


def digest_of(parts) -> str:
    return hashlib.sha256("".join(sorted(parts)).encode()).hexdigest()[:32]


class Judge:
    """Judges faults of rooms by tests that come ever nearer to the user."""

    def __init__(self, planting, options):
        self.planting, self.options = planting, options
        self.equal = equal_ones()
        self.verdicts = Verdicts(options.again)
        self.registered = tests.registered(planting.shop.build)
        self.size = max(m.base for m in planting.made.values()) + MOST

    def build(self, suites) -> None:
        targets = self.planting.shop.known_targets()
        words = {w for s in suites for w in tests.targets(s)}
        self.planting.build(sorted(words & targets))

    def further(self, rooms) -> list:
        """Unit tests that link one of the rooms, and suites that run commands,
        with mounts and without."""
        wanted = self.options.suites
        if self.options.own:
            return []
        units = [s for s in self.registered.values() if tests.is_unit(s)]
        found = {s.name: s for room in rooms
                 for s in linked(room, self.planting.shop, units)}
        found |= {n: s for n, s in self.registered.items()
                  if {"mount", "tools"} & set(s.labels)
                  and (wanted is not None or self.options.changed is None
                       and "slow" not in s.labels)}
        return [s for n, s in found.items() if re.search(wanted or "", n)]

    def stage(self, name, faults, judges, one) -> None:
        """Asks one(fault) of each fault that no test has noticed yet."""
        left = [f for f in faults if not self.verdicts.known(f, judges)]
        print(f"mutate: {name}: {len(left)} faults", flush=True)

        def ask(fault):
            self.verdicts.add(fault, *one(fault), judges)

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(ask, left))

    def still_open(self, faults) -> list:
        return [f for f in faults if f.key not in self.equal
                and f.verdict != "noticed"]

    def own(self, room) -> list:
        return tests.of_room(room, self.registered, self.planting.shop.build)

    def by_own(self, room, faults) -> None:
        faults = self.still_open(faults)
        suites = self.own(room)
        if not suites or not faults:
            return
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for suite in suites:
                for case in tests.probe(suite, self.size, pool):
                    print(f"mutate: {suite.name}: {case} fails by itself",
                          flush=True)
        judges = digest_of(hashlib.sha256(s.binary.read_bytes()).hexdigest()
                           for s in suites)
        self.stage(f"{room}: its unit tests", faults, judges,
                   lambda f: tests.judged(f.number, suites))

    def by_others(self, rooms, faults) -> None:
        faults = self.still_open(faults)
        suites = self.further(rooms) if faults else []
        if not suites:
            return
        self.build(suites)
        digest = digest_of(m.digest for m in self.planting.made.values())
        print(f"mutate: what {len(suites)} more suites reach", flush=True)
        for suite in suites:
            commands.probe(suite, self.size, digest)
        judges = digest_of([digest, str(self.options.seconds)] + [
            commands.digest_of(s) for s in suites])
        self.stage("other tests", faults, judges,
                   lambda f: commands.judged(f.number, suites,
                                             self.options.seconds))

    def end(self, faults) -> None:
        for fault in faults:
            if fault.key in self.equal:
                fault.verdict, fault.by = "equal", self.equal[fault.key]


def table(rooms, faults) -> str:
    lines = ["| room | planted | noticed | equal | left | not reached | noticed "
             "of what could be |", "|---|---|---|---|---|---|---|"]
    total = collections.Counter()
    for room in [*rooms, ""]:
        count = collections.Counter(f.verdict for f in faults
                                    if f.room == room) if room else total
        planted = sum(count.values())
        total += count if room else collections.Counter()
        if not planted:
            continue
        real = planted - count["equal"]
        share = f"{100 * count['noticed'] / real:.0f} %" if real else "–"
        lines.append(f"| {room or 'all'} | {planted} | {count['noticed']} | "
                     f"{count['equal']} | {count['left']} | "
                     f"{count['not reached']} | {share} |")
    return "\n".join(lines)


def parsed(arguments):
    parser = argparse.ArgumentParser(
        prog="mutate", description=__doc__,
        epilog="exit status: 0 done, 1 an entry of tests/mutants/equal.txt "
        "fits nothing, 2 wrong usage.")
    parser.add_argument("--room", action="append", default=[], metavar="R",
                        help="faults of this room; may be given again")
    parser.add_argument("--all", action="store_true", help="of every room")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="SINCE",
                        help="only on lines that changed since this commit "
                        "(default: what is not committed)")
    parser.add_argument("--sample", type=int, metavar="N",
                        help="only N of each room")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="which N")
    parser.add_argument("--kind", action="append", help="only of this kind")
    parser.add_argument("--file", help="only in files whose path contains this")
    parser.add_argument("--list", action="store_true",
                        help="print the faults, judge none")
    parser.add_argument("--own", action="store_true",
                        help="only the room's own unit tests")
    parser.add_argument("--suites", metavar="REGEX",
                        help="which others survivors go on to (default: unit "
                        "tests that link the room and, but with --changed, "
                        "suites with commands and mounts that are not slow)")
    parser.add_argument("--seconds", type=int, default=60, metavar="N",
                        help="what those may take for one fault (60)")
    parser.add_argument("--again", action="store_true",
                        help="forget the verdicts of earlier runs")
    parser.add_argument("--jobs", type=int, default=2, metavar="N",
                        help="tests at a time (2)")
    return parser.parse_args(arguments)


def chosen_faults(options, faults, rooms, lines) -> list[Fault]:
    if lines is not None:
        faults = [f for f in faults if lines.get(f.file.name, set()) & set(
            range(f.row["line"], f.row["last_line"] + 1))]
    if options.kind:
        faults = [f for f in faults if f.row["kind"] in options.kind]
    if options.file:
        faults = [f for f in faults if options.file in f.file.name]
    if options.sample is None:
        return faults
    chosen = []
    for room in rooms:
        those = sorted((f for f in faults if f.room == room),
                       key=lambda f: f.key)
        order = random.Random(f"{options.seed} {room}")
        chosen += order.sample(those, min(options.sample, len(those)))
    return chosen


def main(arguments) -> int:
    options = parsed(arguments)
    os.nice(5)
    lines = None
    if options.changed is not None:
        lines = changed_lines(options.changed)
        every = all_rooms()
        rooms = sorted({room_of(f, every) for f in lines} - {""})
        if options.room:
            asked = {room_named(r) for r in options.room}
            rooms = [r for r in rooms if r in asked]
        if not rooms:
            print("mutate: no file of a room changed since", options.changed)
            return 0
    else:
        rooms = all_rooms() if options.all else [
            room_named(r) for r in options.room]
    planting = Planting(rooms, options.jobs)
    planting.configure()
    planting.generate(planting.files)
    if options.list:
        faults = chosen_faults(options, planting.faults(), rooms, lines)
        for fault in faults:
            print(f"{fault.row['line']}: {fault.key}")
        return stale_entries(planting)

    print(f"mutate: {len(planting.faults())} faults in {len(planting.made)} "
          "files; building", flush=True)
    judge = Judge(planting, options)
    judge.build([s for room in rooms for s in judge.own(room)])
    # By now it is known what does not compile.
    faults = chosen_faults(options, planting.faults(), rooms, lines)
    for room in rooms:
        judge.by_own(room, [f for f in faults if f.room == room])
    judge.by_others(rooms, faults)
    judge.end(faults)
    return report(planting, rooms, faults)


def report(planting, rooms, faults) -> int:
    print()
    for fault in faults:
        if fault.verdict in ("left", "not reached"):
            print(fault.shown())
    print()
    print(table(rooms, faults))
    refused = sum(r["refused"] for m in planting.made.values() for r in m.rows)
    skipped = collections.Counter()
    for made in planting.made.values():
        skipped.update(made.skipped)
    print(f"\nnot planted: {refused} that do not compile, "
          + ", ".join(f"{n} in {why}" for why, n in skipped.items()))
    return stale_entries(planting)


def stale_entries(planting) -> int:
    keys = {row["key"].strip() for made in planting.made.values() for row in made.rows}
    stale = [key for key in equal_ones()
             if key.split(":")[0] in planting.made and key not in keys]
    for key in stale:
        print(f"mutate: {EQUAL.name}: no such fault: {key}")
    return 1 if stale else 0
