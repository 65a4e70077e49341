#!/usr/bin/env python3
"""The processes in a trace of tracefs-run: as strace sees them, and none
missing."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from runner import Trace, key, run, tree  # noqa: E402
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402

SOAK = os.environ.get("TRACEFS_SOAK") == "1"

SCRIPT = r"""
set +e
echo one two | cat | sort > sorted
(exit 3)
( /bin/true; exit 4 ) &
sh -c 'kill -TERM $$' &
wait
x=$(printf '%s\n' 'a "b"	c' "$(echo inner)")
/bin/echo "$x" "" 'new
line' > out &
/bin/false || /bin/true
if ! ls /no/such/file 2>/dev/null; then env true; fi
wait
exit 7
"""

CMAKE = """cmake_minimum_required(VERSION 3.13)
project(t C)
add_library(l STATIC a.c b.c c.c d.c)
add_executable(e main.c)
target_link_libraries(e l)
"""


# Names that are others each time: of gcc's files, and in configure scripts of
# what has the script's pid or a random word in it.
# A random word may begin with digits: it comes first.
CHOSEN = ((r"/tmp/cc\w{6}", "/tmp/ccXXXXXX"),
          (r"\./conf[A-Za-z0-9]{6}/", "./confXXXXXX/"),
          (r"\bconf\d+", "confPID"))


def shape(of, who):
    """A process without its number: the programs it ran, its end, and its
    children in any order."""
    node = of[who]
    children = [shape(of, child) for child, other in of.items()
                if other["parent"] == who]

    def plain(word):
        for pattern, name in CHOSEN:
            word = re.sub(pattern, name, word + "/")[:-1]
        return word
    argv = [tuple(map(plain, words)) for words in node["argv"]]
    return (argv, node["end"], sorted(children, key=repr))


def difference(got, want, where="the command"):
    """The first thing that two trees do not have in common."""
    if got[:2] != want[:2]:
        return f"{where}: got {got[:2]}, want {want[:2]}"
    other = [c for c in got[2] if c not in want[2]]
    missing = [c for c in want[2] if c not in got[2]]
    below = f"{where} / {str(got[0])[:100]}"
    if other and missing:
        return difference(other[0], missing[0], below)
    if other or missing:
        return f"{below}: too many {other[:1]}, missing {missing[:1]}"
    return f"{below}: {len(got[2])} children, want {len(want[2])}"


def shape_of_trace(processes):
    found = tree(processes)
    by_pid = {}
    # The tests are short: no pid is used twice.
    for pid, start in found:
        expect(pid not in by_pid, f"pid {pid} twice")
        by_pid[pid] = (pid, start)
    for node in found.values():
        node["parent"] = by_pid.get(node["parent"])
    roots = [k for k, v in found.items() if v["parent"] is None]
    expect_equal(len(roots), 1, "roots")
    return shape(found, roots[0])


def unescape(text):
    return text.encode("latin1").decode("unicode_escape") \
        .encode("latin1").decode("utf-8")


def as_run(path, words, cwd):
    """The arguments that a program gets: a script's interpreter gets others than
    execve(2) was given."""
    try:
        with open(os.path.join(cwd, path), "rb") as program:
            first = program.readline(256)
    except OSError:
        return words
    if not first.startswith(b"#!"):
        return words
    interpreter = os.fsdecode(first[2:].strip()).split(None, 1)
    return (*interpreter, path, *words[1:])


def shape_of_strace(folder, cwd):
    """From one file for each process (strace -ff)."""
    found = {}
    for name in os.listdir(folder):
        pid = int(name.rsplit(".", 1)[1])
        found.setdefault(pid, {"parent": None, "argv": [], "end": None})
    threads = set()
    for name in os.listdir(folder):
        pid = int(name.rsplit(".", 1)[1])
        with open(os.path.join(folder, name), encoding="latin1") as lines:
            for line in lines:
                made = re.match(r"(?:v?fork|clone3?)\(.*\) += (\d+)", line)
                if made:
                    if "CLONE_THREAD" in line:
                        threads.add(int(made[1]))
                    else:
                        found[int(made[1])]["parent"] = pid
                ran = re.match(r'execve\("((?:[^"\\]|\\.)*)", \[(.*)\], .*\) '
                               '= 0', line)
                if ran:
                    words = tuple(unescape(word) for word in
                                  re.findall(r'"((?:[^"\\]|\\.)*)"', ran[2]))
                    found[pid]["argv"].append(
                        as_run(unescape(ran[1]), words, cwd))
                end = re.match(r"\+\+\+ (?:exited with (\d+)|killed by (\w+))",
                               line)
                if end:
                    found[pid]["end"] = int(end[1]) if end[1] else end[2]
    for thread in threads:
        found.pop(thread, None)
    roots = [k for k, v in found.items() if v["parent"] is None]
    expect_equal(len(roots), 1, "roots of strace")
    return shape(found, roots[0])


def compare(suite, name, command, prepare):
    if shutil.which("strace") is None:
        return Skip("no strace")
    # The same directory both times: it is in arguments.
    folder = suite.folder(name)
    prepare(folder)
    seen = suite.folder(name + "-strace")
    subprocess.run(["strace", "-ff", "-o", os.path.join(seen, "t"), "-s",
                    "1000000", "-v", "-e",
                    "trace=execve,clone,clone3,fork,vfork", *command],
                   cwd=folder, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    want = shape_of_strace(seen, folder)
    suite.remove(name)
    folder = suite.folder(name)
    prepare(folder)
    trace = os.path.join(suite.folder(name + "-out"), "t.trace")
    got = run(suite, "-q", "-o", trace, "--", *command, cwd=folder)
    expect_equal(got.stderr, "", "errors")
    ours = shape_of_trace(Trace(suite, trace).processes)
    expect(ours == want, difference(ours, want))
    return f"{count(want)} processes"


def count(node):
    return 1 + sum(count(child) for child in node[2])


def case_script(suite):
    """Pipes, jobs in the background, subshells."""
    def prepare(folder):
        with open(os.path.join(folder, "script"), "w", encoding="ascii") as out:
            out.write(SCRIPT)
    return compare(suite, "script", ["sh", "script"], prepare)


def sources(folder):
    for name in "abcd":
        with open(os.path.join(folder, name + ".c"), "w",
                  encoding="ascii") as out:
            out.write(f"int {name}(void) {{ return 1; }}\n")
    with open(os.path.join(folder, "main.c"), "w", encoding="ascii") as out:
        out.write("int a(void); int main(void) { return a() - 1; }\n")


def case_ninja(suite):
    """CMake's own runs are compared, too, where it is a soak."""
    if shutil.which("cmake") is None or shutil.which("ninja") is None:
        return Skip("no cmake or no ninja")

    def prepare(folder):
        sources(folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w",
                  encoding="ascii") as out:
            out.write(CMAKE)
        if not SOAK:
            subprocess.run(["cmake", "-G", "Ninja", "-B", "build"], cwd=folder,
                           check=True, stdout=subprocess.DEVNULL)
    command = ["ninja", "-C", "build", "-j4"]
    if SOAK:
        command = ["sh", "-c",
                   "cmake -G Ninja -B build && ninja -C build -j4"]
    return compare(suite, "ninja", command, prepare)


def case_autotools(suite):
    """A part of what configure does, and make; all of it where it is a soak."""
    for tool in ("autoreconf", "automake", "make", "gcc"):
        if shutil.which(tool) is None:
            return Skip(f"no {tool}")

    def prepare(folder):
        sources(folder)
        with open(os.path.join(folder, "configure.ac"), "w",
                  encoding="ascii") as out:
            out.write("AC_INIT([t],[1])\nAM_INIT_AUTOMAKE([foreign])\n"
                      "AC_PROG_CC\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n")
        with open(os.path.join(folder, "Makefile.am"), "w",
                  encoding="ascii") as out:
            out.write("bin_PROGRAMS = e\ne_SOURCES = main.c a.c b.c c.c d.c\n")
        subprocess.run(["autoreconf", "-i"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not SOAK:
            subprocess.run(["./configure"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
    # Job slots of make depend on time: one after the other.
    first = "./configure" if SOAK else "./config.status"
    return compare(suite, "autotools", ["sh", "-c", f"{first} && make"],
                   prepare)


def case_none_is_missing(suite):
    """Each with its arguments and its end."""
    number = 10000 if SOAK else 500
    folder = suite.folder("many")
    trace = os.path.join(suite.folder("many-out"), "t.trace")
    got = run(suite, "-q", "-o", trace, "--", "sh", "-c",
              f"i=0; while [ $i -lt {number} ]; do "
              "/bin/sh -c 'exit $1' x $((i % 100)) $i & "
              "i=$((i+1)); [ $((i % 50)) = 0 ] && wait; done; wait",
              cwd=folder)
    expect_equal((got.returncode, got.stderr), (0, ""), "the command")
    found = tree(Trace(suite, trace).processes)
    ends = {}
    for node in found.values():
        words = node["argv"][0] if node["argv"] else ()
        if len(words) == 6:
            ends[int(words[5])] = (int(words[4]), node["end"])
    expect_equal(sorted(ends), list(range(number)), "numbers")
    wrong = {i: e for i, e in ends.items() if e[0] != e[1] or e[0] != i % 100}
    expect_equal(wrong, {}, "ends")
    return f"{len(found)} processes"


def case_threads(suite):
    """Threads are told of as such, and a process ends when all of it has."""
    folder = suite.folder("threads")
    trace = os.path.join(suite.folder("threads-out"), "t.trace")
    code = ("import threading, os\n"
            "ts = [threading.Thread(target=lambda: open('f', 'a').close()) "
            "for _ in range(4)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]\n"
            "os._exit(2)\n")
    got = run(suite, "-q", "-o", trace, "--", sys.executable, "-c", code,
              cwd=folder)
    expect_equal(got.returncode, 2, got.stderr)
    read = Trace(suite, trace)
    made = [e for e in read.of("fork") if e["child_pid"] == e["pid"]]
    expect_equal(len(made), 4, "threads")
    ended = {e["tid"] for e in read.of("exit")}
    expect(all(e["child_tid"] in ended for e in made), "ends of threads")
    expect_equal([n["end"] for n in tree(read.processes).values()], [2], "end")


# Ends while other threads make further ones, outside Python's lock.
ENDS_AMID_THREADS = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
start = ctypes.cast(libc.sched_yield, ctypes.c_void_p)

def make():
    made = ctypes.c_ulong()
    while True:
        libc.pthread_create(ctypes.byref(made), None, start, None)
        libc.pthread_join(made, None)

for _ in range(8):
    threading.Thread(target=make, daemon=True).start()
time.sleep(0.05)
libc._exit(5)
"""


def case_ends_while_it_makes_threads(suite):
    """Nobody tells of a thread that was made at that moment: the process ends
    all the same."""
    folder = suite.folder("amid")
    trace = os.path.join(suite.folder("amid-out"), "t.trace")
    with open(os.path.join(folder, "ends.py"), "w", encoding="ascii") as out:
        out.write(ENDS_AMID_THREADS)
    times = 200 if SOAK else 20
    got = run(suite, "-q", "-o", trace, "--", "sh", "-c",
              f"for i in $(seq {times}); do "
              f"timeout -s KILL 60 '{sys.executable}' ends.py; "
              "[ $? = 5 ] || exit; done; exit 7", cwd=folder)
    expect_equal((got.returncode, got.stderr), (7, ""), "the command")
    ends = [node["end"] for node in tree(Trace(suite, trace).processes).values()
            if any("ends.py" in argv for argv in node["argv"])
            and node["argv"][-1][0] != "timeout"]
    expect_equal(ends, [5] * times, "ends")


def case_pipes(suite):
    """Who could write to whom: `cat | sort`, and a subshell that runs
    nothing."""
    folder = suite.folder("pipes")
    trace = os.path.join(suite.folder("pipes-out"), "t.trace")
    got = run(suite, "-q", "-o", trace, "--", "bash", "-c",
              "cat /dev/null | sort; (echo a; echo b) | wc -l",
              cwd=folder)
    expect_equal(got.returncode, 0, got.stderr)
    read = Trace(suite, trace)
    programs = {key(e): e["argv"][0] for e in read.of("exec")}
    ends = {}
    for e in read.of("pipes"):
        for pipe in e["pipes"]:
            if pipe["fd"] < 2:
                ends[(programs.get(key(e)), pipe["fd"])] = (pipe["inode"],
                                                            pipe["access"])
    expect_equal(ends[("cat", 1)], (ends[("sort", 0)][0], "w"), "cat to sort")
    expect_equal(ends[("sort", 0)][1], "r", "sort reads")
    # The subshell is bash still.
    subshell = [p for e in read.of("pipes") for p in e["pipes"]
                if p["fd"] == 1 and p["inode"] == ends[("wc", 0)][0]]
    expect(subshell and subshell[0]["access"] == "w", "the subshell to wc")


def main():
    suite = Suite("run-processes", __doc__)
    for case in (case_script, case_ninja, case_autotools,
                 case_none_is_missing, case_threads,
                 case_ends_while_it_makes_threads, case_pipes):
        suite.run(case.__name__[5:].replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
