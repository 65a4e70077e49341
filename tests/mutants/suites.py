"""The tests of a build: which belong to a room, which cases reach a fault, and
what they say with one fault switched on."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from workshop import WORK, apart, environment, run

# Files and memory that a fault may make a test ask for; what the tests use
# themselves is far below. But what survives a daemon is a file with room for all
# there may ever be, of which little is used, and who only looks at it has it
# aside, as memory of his own.
FILE = 64 << 30
MEMORY = FILE + (8 << 30)
SKIPPED = 77
# More than what a test takes without a fault: by then it is an endless loop, or
# waits for what never comes.
LEAST_CPU, LEAST_SECONDS = 2, 8
# Cases that together take no longer than this come first.
QUICK_CPU = 0.1


@dataclasses.dataclass
class Suite:
    name: str
    folder: str  # of the CMakeLists.txt that registers it
    command: list[str]
    cwd: str
    env: dict[str, str]
    labels: list[str]
    cases: dict[str, "Case"] = dataclasses.field(default_factory=dict)

    @property
    def binary(self) -> pathlib.Path:
        return pathlib.Path(self.command[0])


@dataclasses.dataclass
class Case:
    seconds: float
    reached: frozenset[int]
    cpu: float = 0


def registered(build: pathlib.Path) -> dict[str, Suite]:
    done = run(["ctest", "--test-dir", str(build), "--show-only=json-v1"])
    listing = json.loads(done.stdout[done.stdout.index("{"):])
    nodes = listing["backtraceGraph"]["nodes"]
    files = listing["backtraceGraph"]["files"]
    tree = build.parent.parent
    suites = {}
    for test in listing["tests"]:
        node, folder = test["backtrace"], ""
        while node is not None and not folder:
            file = pathlib.Path(files[nodes[node]["file"]])
            if file.name == "CMakeLists.txt":
                folder = str(file.parent.relative_to(tree))
            node = nodes[node].get("parent")
        about = {p["name"]: p["value"] for p in test.get("properties", [])}
        # Of what is not built yet ctest does not know the path.
        command = test.get("command") or [
            str(build / "tests" / test["name"])]
        suites[test["name"]] = Suite(
            test["name"], folder, command,
            about.get("WORKING_DIRECTORY", str(tree)),
            dict(e.split("=", 1) for e in about.get("ENVIRONMENT", [])),
            about.get("LABELS", []))
    return suites


def sources(build: pathlib.Path) -> dict[str, set[str]]:
    """The files of each target, as paths in the tree."""
    tree = build.parent.parent
    found: dict[str, set[str]] = {}
    for row in json.loads((build / "compile_commands.json").read_text()):
        match = re.search(r"CMakeFiles/([^/ ]+)\.dir/", row["command"])
        path = pathlib.Path(row["file"])
        if match and path.is_relative_to(tree):
            found.setdefault(match[1], set()).add(str(path.relative_to(tree)))
    return found


def of_room(room: str, suites: dict[str, Suite],
            build: pathlib.Path) -> list[Suite]:
    """The unit tests of a room: those in the folder of its name, and others that
    include it by name if there is no such folder."""
    tests = {n: s for n, s in suites.items() if "unit" in s.labels
             and s.command[0].startswith(str(build / "tests"))}
    folder = "tests/unit/" + room.removeprefix("tracefs/")
    own = [s for s in tests.values()
           if s.folder == folder or s.folder.startswith(folder + "/")]
    if own:
        return own
    tree = build.parent.parent
    files = sources(build)
    include = f'#include "{room}/'
    return [s for n, s in tests.items()
            if any(include in (tree / f).read_text(errors="replace")
                   for f in files.get(n, ())
                   if (tree / f).is_file() and f.startswith("tests/"))]


def _limits(cpu: int):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


@dataclasses.dataclass
class Took:
    """What a run takes, by the processor and by the clock; the second says
    little on a busy machine."""
    cpu: float
    seconds: float


def outcome(suite: Suite, arguments, usual: Took, more=None):
    """Runs a suite; whether it passes, what failed first, and what it took.
    `usual` is what it takes without a fault."""
    limit = int(LEAST_CPU + 5 * usual.cpu)
    scratch = tempfile.mkdtemp(prefix="mutate-")
    os.chmod(scratch, 0o755)  # some tests become other users
    begin = time.monotonic()
    try:
        done = run(apart() + suite.command + arguments,
                   seconds=LEAST_SECONDS + 4 * usual.seconds,
                   cwd=suite.cwd, preexec_fn=_limits(limit),
                   env=environment() | suite.env | (more or {})
                   | {"TMPDIR": scratch})
    except subprocess.TimeoutExpired:
        return False, "does not end", usual
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    took = Took(done.cpu, time.monotonic() - begin)
    if done.returncode in (0, SKIPPED):
        return True, "", took
    failed = re.findall(r"\[  FAILED  \] ([\w./]+)(?: |$|,)", done.stdout)
    if failed:
        return False, failed[0], took
    if done.returncode < 0:
        return False, signal.Signals(-done.returncode).name, took
    return False, f"exit status {done.returncode}", took


def listed_cases(suite: Suite) -> list[str]:
    done = run([str(suite.binary), "--gtest_list_tests"], cwd=suite.cwd,
               env=environment() | suite.env)
    cases, group = [], ""
    for line in done.stdout.splitlines():
        word = line.split("#")[0].strip()
        if line and not line[0].isspace() and word.endswith("."):
            group = word
        elif line.startswith("  ") and group and "DISABLED_" not in group + word:
            cases.append(group + word)
    return cases


def is_gtest(suite: Suite) -> bool:
    return suite.binary.parent.name == "tests" and "fuzz" not in suite.labels \
        and len(suite.command) == 1


def targets(suite: Suite) -> list[str]:
    """What may have to be built for it."""
    if is_gtest(suite):
        return [suite.name]
    return ["suites"] + [pathlib.Path(word).name for word in suite.command
                         if "/tests/" in word and not word.endswith(".py")]


def is_unit(suite: Suite) -> bool:
    return "unit" in suite.labels and is_gtest(suite)


def probe(suite: Suite, size: int, pool) -> list[str]:
    """Runs each case alone without a fault and notes what it reaches; returns
    those that fail, which then judge nothing. Known of a binary that was probed
    before."""
    digest = hashlib.sha256(suite.binary.read_bytes()).hexdigest()[:32]
    kept = WORK / "reach" / f"{suite.name}.json"
    if kept.exists():
        known = json.loads(kept.read_text())
        if known["digest"] == digest:
            suite.cases = {n: Case(s, frozenset(r), cpu)
                           for n, (s, r, cpu) in known["cases"].items()}
            return known["unsound"]
    unsound = []

    def one(case):
        with tempfile.NamedTemporaryFile(prefix="mutate-reach-") as file:
            os.ftruncate(file.fileno(), size)
            good, _, took = outcome(suite, [f"--gtest_filter={case}"],
                                    Took(20, 20),
                                    {"TRACEFS_FAULT_REACH": file.name})
            data = pathlib.Path(file.name).read_bytes()
            reached = [m.start() for m in re.finditer(rb"\x01", data)]
            return case, good, took, reached

    for case, good, took, reached in pool.map(one, listed_cases(suite)):
        if good:
            suite.cases[case] = Case(took.seconds, frozenset(reached), took.cpu)
        else:
            unsound.append(case)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({
        "digest": digest, "unsound": unsound,
        "cases": {n: (c.seconds, sorted(c.reached), c.cpu)
                  for n, c in suite.cases.items()}}))
    return unsound


def judged(number: int, suites: list[Suite]) -> tuple[str, str]:
    """The verdict on a fault, and by which case: the quickest come first."""
    ways = []
    for suite in suites:
        cases = sorted((n for n, c in suite.cases.items()
                        if number in c.reached),
                       key=lambda n: suite.cases[n].cpu)
        quick, spent = 0, 0.0
        while quick < len(cases):
            spent += suite.cases[cases[quick]].cpu
            if quick and spent > QUICK_CPU:
                break
            quick += 1
        for part in (cases[:quick], cases[quick:]):
            if part:
                ways.append((Took(sum(suite.cases[n].cpu for n in part),
                                  sum(suite.cases[n].seconds for n in part)),
                             suite, part))
    for usual, suite, cases in sorted(ways, key=lambda way: way[0].cpu):
        good, failed, _ = outcome(
            suite, ["--gtest_fail_fast", "--gtest_brief=1",
                    "--gtest_filter=" + ":".join(cases)], usual,
            {"TRACEFS_FAULT": str(number)})
        if not good:
            return "noticed", f"{suite.name}: {failed}"
    return ("left", "") if ways else ("not reached", "")
