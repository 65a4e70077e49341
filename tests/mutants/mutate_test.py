#!/usr/bin/env python3
"""scripts/mutate on a file made for it: every kind of fault is made, compiles
and is noticed by the toy's own test; what makes no difference is not."""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

SKIPPED = 77
TOY = r'''
#include <cerrno>
#include <string>
#include <vector>
namespace tracefs {
struct Status {
  int error = 0;
  static Status Ok() { return {}; }
};
}  // namespace tracefs
namespace toy {
using tracefs::Status;
constexpr int kLimit = 10;
constexpr int Twice(int x) { return x < 1 ? 0 : 2 * x; }
template <typename T>
bool Less(T a, T b) { return a < b; }
// Bytes beyond ASCII before what changes: é, ü, and “these”.
bool Below(int x) { return x < kLimit; }
bool Both(bool a, bool b) { return a && b; }
bool Either(bool a, bool b) { return a || b; }
int Choose(bool on) {
  if (on) return 1;
  return 4;
}
int Sum(const std::vector<int>& all) {
  int sum = 0;
  for (int x : all) {
    sum += x;
  }
  return sum;
}
int Steps(int n) {
  int steps = 0;
  while (n != 0) {
    --n;
    ++steps;
  }
  return steps;
}
int Minus(int a, int b) { return a - b; }
int Difference(int a, int b) { return Minus(a, b); }
int Open(int fd) {
  if (fd < 0) return -EBADF;
  return fd;
}
int Named(int what) {
  int n = what;
  switch (what) {
    case 1: n = 5; break;
    default: n += 9; break;
  }
  return n;
}
int Seconds(int ms) { return ms / 1000; }
std::string Text() {
  std::string out;
  out.reserve(9);
  out = "a";
  out.push_back('b');
  return out;
}
int Least(int a, int b) { return a < b ? a : b; }
int Limit() { return kLimit; }
bool Always() { return true; }
Status Checked(int x) {
  if (x == 1) return {};
  if (x == 2) return Status();
  if (x == 3) return Status::Ok();
  return Status{7};
}
int Halvings(int n) {
  int steps = 0;
  for (int left = n; left > 1;) {
    left /= 2;
    ++steps;
  }
  return steps;
}
int Unasked() { return 3; }
}  // namespace toy
'''
# A suite of two cases that runs a command, as tests/support/tracefs_harness.py has
# them, and what such a file is called.
SUITE = r'''
import subprocess, sys, time
from tracefs_harness import Suite
for title, word in ("of numbers", "Numbers"), ("of loops", "Loops"):
    only = [sys.argv[i + 1] for i, w in enumerate(sys.argv) if w == "--only"]
    if only and title not in only:
        continue
    time.sleep(0.2)  # a case ends well before the next reaches anything
    bad = subprocess.run([COMMAND, "--gtest_filter=" + word]).returncode
    print("FAILED: " + title if bad else f"ok: {title} (0.1 s)", flush=True)
'''
# What a program of GoogleTest answers, as far as mutate asks.
TEST = r'''
#include <cstdio>
#include <cstring>
#include <string>
#include "toy.cc"
using namespace toy;
static bool Numbers() {
  return Below(9) && !Below(10) && Below(8) && Both(true, true) &&
         !Both(true, false) && !Both(false, true) && Either(true, false) &&
         Either(false, true) && !Either(false, false) && Choose(true) == 1 &&
         Choose(false) == 4 && Difference(5, 3) == 2 && Open(-2) == -EBADF &&
         Open(0) == 0 && Open(6) == 6 && Named(1) == 5 && Named(2) == 11 &&
         Seconds(2997000) == 2997 && Seconds(999) == 0 && Least(1, 2) == 1 &&
         Least(2, 1) == 1 && Limit() == 10 && Always() &&
         Checked(1).error == 0 && Checked(2).error == 0 &&
         Checked(3).error == 0 && Checked(4).error == 7;
}
static bool Loops() {
  return Sum({3, 4, 5}) == 12 && Steps(3) == 3 && Text() == "ab" &&
         Halvings(8) == 3;
}
int main(int, char** argv) {
  std::string word = argv[1];
  if (word == "--gtest_list_tests") {
    std::puts("Toy.\n  Numbers\n  Loops\n  Broken\n  DISABLED_Not");
    return 0;
  }
  std::string filter;
  for (char** a = argv; *a; ++a)
    if (std::strncmp(*a, "--gtest_filter=", 15) == 0) filter = *a + 15;
  bool good = true;
  if (filter.find("Numbers") != filter.npos) good = Numbers() && good;
  if (filter.find("Loops") != filter.npos) good = Loops() && good;
  if (filter.find("Broken") != filter.npos) good = false;
  return good ? 0 : 1;
}
'''


NEXT = "int Neighbour(int a) { return a < 3 ? 1 : 2; }\n"


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", default="g++")
    compiler = parser.parse_args().compiler
    try:
        import generated
        import kinds
        import points
        import suites
        import syntax
    except SystemExit as end:
        print(end)
        sys.exit(SKIPPED)

    def faults_of(text, refused=frozenset()):
        latin = text.encode().decode("latin-1")
        # A neighbour that compiles together with it has no part in it.
        tree = syntax.Tree({"/toy/toy.cc": latin, "/toy/next.cc": NEXT},
                           ["-x", "c++", "-std=c++20"])
        return points.File("/toy/toy.cc", "toy.cc", latin, tree, refused, 100)

    file = faults_of(TOY)
    expect(not any(p.function == "Neighbour" for p in file.points),
           "faults are of one file")
    expect(not file.tree.errors, f"libclang does not read it: {file.tree.errors}")
    expect({p.kind for p in file.points} == set(kinds.KINDS),
           f"every kind: {sorted({p.kind for p in file.points})}")
    expect(file.text.count("\n") == TOY.count("\n"), "a file keeps its lines")
    expect(file.skipped["constexpr"] and file.skipped["templates"],
           f"what cannot be switched is counted: {file.skipped}")
    expect(not any("reserve" in p.before for p in file.points),
           "what only saves time is no fault")
    lower = faults_of("\n// a line more\n" + TOY)
    expect([p.key("toy.cc") for p in lower.points]
           == [p.key("toy.cc") for p in file.points],
           "a fault keeps its name when its line moves")
    without = faults_of(TOY, {0, 3})
    expect("tracefs_fault(100)" not in without.text
           and "tracefs_fault(101)" in without.text
           and len(without.points) == len(file.points),
           "a refused one is left out and the others keep their numbers")

    with tempfile.TemporaryDirectory() as folder:
        check_verdicts(pathlib.Path(folder), file, compiler, generated, suites)
    print("ok")


def check_verdicts(folder, file, compiler, generated, suites):
    suites.WORK = folder
    suites.LEAST_SECONDS = 1
    (folder / "toy.cc").write_text(
        f'#include "{HERE}/fault.h"\n#line 1\n' + file.text, encoding="latin-1")
    (folder / "test.cc").write_text(TEST)
    built = subprocess.run(
        [compiler, "-std=c++20", "-w", folder / "test.cc", "-o",
         folder / "toy_test"], capture_output=True, text=True, check=False)
    expect(built.returncode == 0, f"it compiles: {built.stderr}")
    suite = suites.Suite("toy_test", "tests/unit/toy",
                         [str(folder / "toy_test")], str(folder), {}, ["unit"])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        broken = suites.probe(suite, 4096, pool)
        expect(broken == ["Toy.Broken"],
               f"a case that fails by itself judges nothing: {broken}")
        verdicts = list(pool.map(
            lambda p: suites.judged(100 + p.number, [suite])[0], file.points))
    check_suite(folder, file, suites)
    check_apart(suites)
    by_verdict = {}
    for point, verdict in zip(file.points, verdicts):
        by_verdict.setdefault(verdict, []).append(
            f"{point.function}: {point.kind}: {point.before} -> {point.after}")
    expect(by_verdict["left"] == ["Least: comparison: a < b -> a <= b"],
           f"only what makes no difference is left: {by_verdict['left']}")
    expect(by_verdict["not reached"] == ["Unasked: constant: 3 -> 4",
                                         "Unasked: constant: 3 -> 2"],
           f"what no test calls is not reached: {by_verdict['not reached']}")

    generated.EQUAL = folder / "equal.txt"
    generated.EQUAL.write_text(
        "# why\ntoy.cc: Least: comparison: a < b -> a <= b\n  Of two equal "
        "ones\n  either is the least.\n")
    expect(generated.equal_ones() == {
        "toy.cc: Least: comparison: a < b -> a <= b":
        "Of two equal ones either is the least."}, "the list of equal ones")
    generated.EQUAL.write_text("toy.cc: a\ntoy.cc: b\n  why\n")
    try:
        generated.equal_ones()
    except SystemExit as end:
        expect("no reason" in str(end), end)
    else:
        expect(False, "an equal one without a reason is refused")


def check_apart(suites):
    """A fault may signal every process that there is."""
    alone = suites.Suite("alone", "", ["sh", "-c", "test $PPID = 1"], "/", {},
                         ["unit"])
    good, _, _ = suites.outcome(alone, [], suites.Took(1, 1))
    expect(good, "a test sees no processes but its own")


def check_suite(folder, file, suites):
    import commands
    commands.WORK = folder
    (folder / "tracefs_harness.py").write_text("Suite = None\n")
    script = folder / "suite.py"
    script.write_text(SUITE.replace("COMMAND", repr(str(folder / "toy_test"))))
    suite = suites.Suite("toy_suite", "", [sys.executable, "-B", str(script)],
                         str(folder), {}, ["mount"])
    commands.probe(suite, 4096, "")
    expect(sorted(suite.cases) == ["of loops", "of numbers"],
           f"each case by itself: {suite.cases}")
    number = {p.function: 100 + p.number for p in file.points}
    for function, verdict in (
            ("Steps", ("noticed", "toy_suite: of loops")),
            ("Always", ("noticed", "toy_suite: of numbers")),
            ("Unasked", ("not reached", ""))):
        got = commands.judged(number[function], [suite], 60)
        expect(got == verdict, f"{function} by a suite of commands: {got}")
    expect(number["Steps"] not in suite.cases["of numbers"].reached,
           "what one case reaches is not what another does")


if __name__ == "__main__":
    main()
