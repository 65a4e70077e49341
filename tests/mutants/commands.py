"""Suites whose cases run one after the other, those that run commands and mounts
among them: which cases reach a fault, and what they say with one fault switched
on."""

import hashlib
import json
import mmap
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import threading
import time

import suites as tests
from workshop import WORK, apart, end, environment

PATIENCE = 900  # for all of a suite, without a fault
# What tests/support/tracefs_harness.py says of a case that passed, and GoogleTest;
# and command_checks.py and checks.py, whose cases cannot be run one by one.
PASSED = re.compile(r"(?:ok:|\[       OK \]) (.*) \((?:([\d.]+) s|(\d+) ms)\)"
                    r"|ok\s+\S")
FAILED = re.compile(r"FAILED:? +(.*)|FAIL: (.*)|\[  FAILED  \] (\S+)")


def _alone():
    resource.setrlimit(resource.RLIMIT_DATA, (tests.MEMORY, tests.MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (tests.FILE, tests.FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def watched(suite, arguments, seconds, on_line, more=None):
    """Runs a suite line by line until on_line() says so; its exit status, or
    None if it did not end by itself."""
    with tempfile.TemporaryDirectory(prefix="mutate-",
                                     ignore_cleanup_errors=True) as scratch:
        os.chmod(scratch, 0o755)
        with subprocess.Popen(
                apart() + suite.command + arguments, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True, text=True, errors="replace",
                cwd=suite.cwd, preexec_fn=_alone,
                env=environment() | suite.env | (more or {})
                | {"TMPDIR": scratch}) as process:
            late = threading.Timer(seconds, end, [process])
            late.start()
            try:
                if any(on_line(line.rstrip("\n")) for line in process.stdout):
                    return None
                status = process.wait()
                return status if status >= 0 else None
            finally:
                late.cancel()
                end(process)


def choosable(suite) -> bool:
    """Whether single cases of it can be run."""
    if tests.is_gtest(suite):
        return True
    script = next((w for w in suite.command if w.endswith(".py")), "")
    return bool(script) and "import Suite" in re.sub(
        r"(from tracefs_harness import)[^#]*?\bSuite\b", r"\1 Suite",
        pathlib.Path(script).read_text())


def digest_of(suite) -> str:
    """Of the files that decide what a suite says, but the product's."""
    digest = hashlib.sha256(suite.name.encode())
    for word in suite.command:
        if word.endswith(".py") or tests.is_gtest(suite):
            digest.update(pathlib.Path(word).read_bytes())
    return digest.hexdigest()


def probe(suite, size, digest) -> None:
    """Notes what each case of a suite reaches; known for as long as `digest`,
    that of the planted files, and the suite's own files stay the same."""
    digest += digest_of(suite)
    kept = WORK / "reach" / f"{suite.name}.json"
    if kept.exists():
        known = json.loads(kept.read_text())
        if known["digest"] == digest:
            suite.cases = {n: tests.Case(s, frozenset(r))
                           for n, (s, r) in known["cases"].items()}
            return
    with tempfile.NamedTemporaryFile(prefix="mutate-reach-") as file:
        os.ftruncate(file.fileno(), size)
        os.chmod(file.name, 0o666)
        with mmap.mmap(file.fileno(), size) as reached:
            _record(suite, file.name, reached)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({
        "digest": digest, "cases": {n: (c.seconds, sorted(c.reached))
                                    for n, c in suite.cases.items()}}))


def _record(suite, name, reached) -> None:
    single = choosable(suite)
    cases, bad = {}, []
    # What was reached since the last case ended is this one's.
    since = set()

    def line(text):
        failed, passed = FAILED.match(text), PASSED.match(text)
        if not failed and not passed:
            return False
        data = bytes(reached)
        since.update(m.start() for m in re.finditer(rb"\x01", data))
        reached[:] = bytes(len(data))
        if failed:
            bad.append(text)
        elif single and passed[1]:
            seconds = float(passed[2]) if passed[2] else int(passed[3]) / 1000
            cases[passed[1]] = tests.Case(seconds, frozenset(since))
        if failed or single:
            since.clear()
        return False

    begin = time.monotonic()
    status = watched(suite, [], PATIENCE, line,
                     {"TRACEFS_FAULT_REACH": name})
    if single:
        suite.cases = cases
    elif status == 0 and not bad:
        line("ok  all")
        suite.cases = {"": tests.Case(time.monotonic() - begin, frozenset(since))}
    if bad or not suite.cases:
        print(f"mutate: {suite.name}: ends with {status} by itself: "
              f"{'; '.join(bad)[:200]}", flush=True)


def judged(number, suites, budget) -> tuple[str, str]:
    """The verdict on a fault by the cases that reach it, the shortest first, as
    many as take no longer than the budget."""
    ways = sorted((case.seconds, suite.name, title) for suite in suites
                  for title, case in suite.cases.items()
                  if number in case.reached)
    if not ways:
        return "not reached", ""
    named = {suite.name: suite for suite in suites}
    chosen, spent = {}, 0.0
    for seconds, name, title in ways:
        spent += seconds
        if chosen and spent > budget:
            break
        chosen.setdefault(name, []).append((title, seconds))
    for name, cases in chosen.items():
        failed = ""
        # A busy machine may make one fail, but not twice.
        for _ in range(2):
            failed = _failure(named[name], cases, number)
            if not failed or failed == "does not end":
                break
        if failed:
            return "noticed", f"{name}: {failed}"
    return "left", ""


def _failure(suite, cases, number) -> str:
    """What fails first in these cases of a suite; "" if nothing does."""
    if tests.is_gtest(suite):
        words = ["--gtest_fail_fast", "--gtest_brief=1", "--gtest_filter="
                 + ":".join(title for title, _ in cases)]
    else:
        words = [w for title, _ in cases if title
                 for w in ("--only", title)]
    found = []

    def line(text):
        failed = FAILED.match(text)
        if failed:
            found.append(next(g for g in failed.groups() if g is not None))
        return bool(failed)

    seconds = sum(seconds for _, seconds in cases)
    status = watched(suite, words, 30 + 5 * seconds, line,
                     {"TRACEFS_FAULT": str(number)})
    if found:
        return found[0]
    if status is None:
        return "does not end"
    return "" if status in (0, tests.SKIPPED) else f"exit status {status}"
