#!/usr/bin/env python3
"""A build record that stands alone: tracefs-run --embed keeps what the command
read, byte for byte, and says what it left out; and what tracefs-deps answers from
the trace's index is what it answers from the trace.

  record_test.py --bin build/release/bin
"""

import collections
import json
import os
import shutil
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "golden"))

# pylint: disable=wrong-import-position
import build_model  # noqa: E402
from independent_reader import crc32c  # noqa: E402
from tracefs_harness import (PATIENCE_S, Skip, Suite, expect,  # noqa: E402
                             expect_equal)

HEADER = 40
MSG_FILE, MSG_INDEX = 17, 18
# Two objects, a library and a program, with a header that is made; what each is
# made from is in the script.
MAKEFILE = """
include rules.mk
all: prog
table.h: table.txt
\tsort table.txt > table.h
a.o: a.c table.h
\tcat a.c table.h > a.o
b.o: b.c
\tcat b.c > b.o
prog: a.o b.o
\tcat a.o b.o > prog
\trm -f old
"""
FILES = {"Makefile": MAKEFILE, "rules.mk": "X = 1\n", "a.c": "int a;\n",
         "b.c": "int b;\n", "table.txt": "b\na\n", "unread.mk": "Y = 2\n",
         "old": "old\n"}

# Every question and every form of an answer.
QUESTIONS = (
    ["prog"], ["a.o", "b.o", "prog"], ["--reverse", "a.c"],
    ["--reverse", "--format", "json", "table.txt"],
    ["--direct", "prog"], ["--no-pipes", "prog"],
    ["--closure", "flow", "prog"], ["--closure", "tree", "prog"],
    ["--wrap-shells", "prog"], ["--exclude", "*.o", "prog"],
    ["--exclude-command", "*sort*", "prog"],
    ["--exclude", "*.c", "--negate", "prog"],
    ["--direct", "--module", "*.o", "prog"], ["--job-maker", "sh", "prog"],
    ["--sources", "prog"], ["--format", "json", "prog", "a.o"],
    ["--format", "dot", "prog"], ["--format", "depfile", "prog"],
    ["--format", "dyndep", "prog"], ["--reverse", "--format", "dot", "a.c"],
    ["--compile-commands"], ["--sets"], ["--sets", "--format", "json"],
    ["--sets", "sort"], ["--check-ninja", "ninja.txt"],
    ["--check-make", "make.txt"], ["--double-writes"],
    ["--double-writes", "--all", "--format", "json"], ["--races"],
    ["--races", "--format", "json"], ["--absent"],
    ["--absent", "--format", "json"], ["--unused"],
    ["--unused", "--format", "json", "prog"], ["no-such-file"],
    ["--rebuilt", "TRACE", "prog"],
    ["--rebuilt", "TRACE", "--format", "json", "a.o"],
)


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(text if isinstance(text, bytes) else text.encode())
    # Nothing was changed within a tick of being read.
    time.sleep(0.05)


def contents(folder):
    """{path below it: bytes} of all files."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if name != ".tracefs-export":
                with open(path, "rb") as text:
                    found[os.path.relpath(path, folder)] = text.read()
    return found


class Frames:
    """The frames of a trace whose chain has no filters, as they can be changed."""

    def __init__(self, path):
        with open(path, "rb") as trace:
            data = trace.read()
        begin = struct.unpack_from("<I", data, 8)[0]
        self.preamble, self.frames = data[:begin], []
        while begin < len(data):
            size = struct.unpack_from("<I", data, begin + 4)[0]
            self.frames.append((data[begin:begin + HEADER],
                                data[begin + HEADER:begin + HEADER + size]))
            begin += HEADER + size

    def kinds(self, number):
        """The message ids in a block."""
        payload, at, found = self.frames[number][1], 0, []
        while at < len(payload):
            kind, length = struct.unpack_from("<HI", payload, at)
            found.append(kind)
            at += length
        return found

    def with_message(self, kind):
        return [i for i in range(len(self.frames)) if kind in self.kinds(i)]

    def replace(self, number, old, new):
        header, payload = self.frames[number]
        expect(old in payload and len(old) == len(new), f"{old!r} in the block")
        payload = payload.replace(old, new)
        crc = struct.pack("<I", crc32c(header[:36] + payload))
        self.frames[number] = (header[:36] + crc, payload)

    def write(self, path):
        with open(path, "wb") as trace:
            trace.write(self.preamble)
            for header, payload in self.frames:
                trace.write(header + payload)


class Records:
    def __init__(self, suite):
        self.suite = suite
        if shutil.which("make") is None:
            raise Skip("make is not installed")
        for name in ("work", "out", "given"):
            suite.remove(name)
        self.folder = suite.folder("work")
        self.out = suite.folder("out")
        os.chmod(self.folder, 0o755)
        self.trace = os.path.join(self.out, "t.trace")

    def run(self, *words, cwd=None, status=0, trace=None):
        done = self.suite.tool("tracefs-run", "-o", trace or self.trace,
                               "--force", *words, cwd=cwd or self.folder)
        expect_equal(done.returncode, status, done.stderr[-2000:])
        return done.stderr

    def config(self, chain):
        path = os.path.join(self.out, "c.conf")
        with open(path, "w", encoding="utf-8") as config:
            config.write("{ { NOT op IN { getlk setlk flock } } { stream = "
                         "{ STR_ALL | STR_PROCESS } } { %s file = \"%s\" } }\n"
                         % (chain, self.trace))
        return path

    def record(self, chain, *words, command=("make",)):
        """With a config; what tracefs-run says."""
        if os.path.exists(self.trace):
            os.unlink(self.trace)
        done = self.suite.tool("tracefs-run", "--config", self.config(chain),
                               *words, "--", *command, cwd=self.folder)
        expect_equal(done.returncode, 0, done.stderr[-2000:])
        return done.stderr

    def build(self, *words):
        write(self.folder, FILES)
        return self.run(*words, "--", "make")

    def ask(self, *words, trace=None):
        done = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-deps"), *words, "--trace",
             trace or self.trace], cwd=self.folder, capture_output=True,
            timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout, done.stderr

    def has_index(self, trace=None, *words):
        status, out, _ = self.ask("--check-index", *words, trace=trace)
        return status == 0 and b"is that of the trace" in out

    def extract(self, *words, trace=None, status=0):
        given = self.suite.path("given")
        shutil.rmtree(given, ignore_errors=True)
        done = self.suite.tool("tracefs-dump", "--extract", "files", "-o", given,
                               *words, trace or self.trace)
        expect_equal(done.returncode, status, done.stderr)
        self.said = done.stderr
        return contents(given) if os.path.isdir(given) else {}

    def listed(self):
        """{path: size or why it is left out}"""
        done = self.suite.tool("tracefs-dump", "--extract", "files", self.trace)
        return dict(reversed(line.rsplit(": ", 1))
                    for line in done.stdout.splitlines())

    def lines(self):
        done = self.suite.tool("tracefs-dump", "--format", "jsonl", self.trace)
        return [json.loads(line) for line in done.stdout.splitlines()]


# --- What is embedded.


def case_what_a_build_is_made_by_is_kept_byte_for_byte(suite):
    records = Records(suite)
    said = records.build("--embed")
    expect_equal(records.extract(),
                 {name: FILES[name].encode() for name in ("Makefile",
                                                          "rules.mk")},
                 "files")
    expect("embedded 2 files" in said, said)


def case_patterns_choose(suite):
    records = Records(suite)
    write(records.folder, {**FILES, "deep/er/x.inc": "deep\n"})
    records.run("--embed=*.c,*/er/*", "--", "sh", "-c",
                "make; cat deep/er/x.inc")
    expect_equal(set(records.extract()), {"a.c", "b.c", "deep/er/x.inc"},
                 "files")


def case_scripts_that_are_run_are_kept(suite):
    records = Records(suite)
    write(records.folder, {"build.sh": "#!/bin/sh\nexit 0\n"})
    os.chmod(os.path.join(records.folder, "build.sh"), 0o755)
    time.sleep(0.05)
    records.run("--embed", "--", "./build.sh")
    expect_equal(records.extract(), {"build.sh": b"#!/bin/sh\nexit 0\n"},
                 "files")
    mode = os.stat(os.path.join(suite.path("given"), "build.sh")).st_mode
    expect(mode & 0o100, "it can be run")


def case_what_is_no_longer_what_was_read_is_left_out_and_named(suite):
    records = Records(suite)
    write(records.folder, {name: name for name in (
        "written.mk", "removed.mk", "replaced.mk", "touched.mk", "new.mk",
        "same.mk", "cut.mk")})
    said = records.run("--embed", "--", "sh", "-c", """
        cat *.mk > /dev/null; sleep 0.1
        echo more >> written.mk; rm removed.mk; mv new.mk replaced.mk
        chmod 600 touched.mk; : > cut.mk""")
    found = records.listed()
    expect_equal(
        {path: why for path, why in found.items() if "left out" in why},
        {"/written.mk": "left out, changed since it was read",
         "/cut.mk": "left out, changed since it was read",
         "/removed.mk": "left out, removed since it was read",
         "/new.mk": "left out, removed since it was read",
         "/replaced.mk": "left out, replaced since it was read"}, "left out")
    expect_equal(found["/touched.mk"], "10 bytes, attributes changed since",
                 "a file whose mode was changed")
    expect_equal(found["/same.mk"], "7 bytes", "an unchanged one")
    expect_equal(set(records.extract()), {"touched.mk", "same.mk"}, "files")
    expect("left out 5" in said, said)


def case_changes_from_outside_are_noticed(suite):
    """By who does not use the mount: no operation tells of them."""
    records = Records(suite)
    write(records.folder, {"a.mk": "as it was\n"})
    go = os.path.join(records.out, "go")
    os.mkfifo(go)
    child = subprocess.Popen(
        [os.path.join(suite.bin, "tracefs-run"), "-q", "--embed", "-o",
         records.trace, "--", "sh", "-c", f"cat a.mk; read line < {go}"],
        cwd=records.folder, stdout=subprocess.DEVNULL)
    with open(go, "w", encoding="ascii") as fifo:
        time.sleep(0.1)
        write(records.folder, {"a.mk": "something else\n"})
        fifo.write("go\n")
    expect_equal(child.wait(PATIENCE_S), 0, "the command")
    expect_equal(records.listed(),
                 {"/a.mk": "left out, changed since it was read"}, "left out")


def case_sizes_are_bounded(suite):
    records = Records(suite)
    write(records.folder, {"a.mk": os.urandom(3000), "b.mk": os.urandom(2000),
                           "c.mk": os.urandom(500)})
    said = records.run("--embed", "--embed-file-max", "2500", "--embed-max",
                       "2100", "--", "sh", "-c",
                       "cat a.mk b.mk c.mk > /dev/null")
    expect_equal(records.listed(),
                 {"/a.mk": "left out, too large", "/b.mk": "2000 bytes",
                  "/c.mk": "left out, no room left"}, "files")
    expect("1 too large" in said and "1 no room left" in said, said)


def case_each_content_is_there_once(suite):
    records = Records(suite)
    text = os.urandom(100_000)
    names = [f"{i}.mk" for i in range(10)]
    write(records.folder, {name: text for name in names})
    records.run("--embed", "--", "sh", "-c", "cat *.mk > /dev/null")
    expect_equal(records.extract(), {name: text for name in names}, "files")
    expect(os.path.getsize(records.trace) < 2 * len(text),
           f"{os.path.getsize(records.trace)} bytes")


def case_no_secret_is_kept_without_being_named(suite):
    records = Records(suite)
    write(records.folder, FILES)
    environ = {**os.environ, "SECRET_TOKEN": "swordfish", "CC": "mycc",
               "WANTED": "this"}
    done = subprocess.run(
        [os.path.join(suite.bin, "tracefs-run"), "-q", "--embed", "--embed-env",
         "WANTED", "-o", records.trace, "--", "make"], cwd=records.folder,
        env=environ, capture_output=True, timeout=PATIENCE_S, check=False)
    expect_equal(done.returncode, 0, done.stderr)
    kept = suite.tool("tracefs-dump", "--extract", "environment",
                      records.trace).stdout.splitlines()
    expect("CC=mycc" in kept and "WANTED=this" in kept, f"{kept}")
    expect("swordfish" not in suite.tool(
        "tracefs-dump", "--header", records.trace).stdout, "a secret")


def case_a_command_that_fails_is_as_without(suite):
    records = Records(suite)
    write(records.folder, FILES)
    done = suite.tool("tracefs-run", "--embed", "-o", records.trace, "--", "sh",
                      "-c", "cat rules.mk; exit 7", cwd=records.folder)
    expect_equal((done.returncode, done.stdout), (7, "X = 1\n"), done.stderr)
    expect_equal(set(records.extract()), {"rules.mk"}, "files")


def case_the_whole_root(suite):
    records = Records(suite)
    write(records.folder, FILES)
    records.run("--root", f"--embed={records.folder}/*.mk", "--", "make")
    below = records.folder[1:]
    expect_equal(records.extract(), {f"{below}/rules.mk": b"X = 1\n"}, "files")
    expect(records.has_index(), "an index")


def case_an_ordinary_user(suite):
    """/dev/fuse is lent to him in a private mount name space."""
    records = Records(suite)
    write(records.folder, FILES)
    for path in (records.folder, records.out):
        os.chmod(path, 0o777)
    for path in (suite.bin, records.folder):
        while path != "/":
            if not os.stat(path).st_mode & 0o001:
                raise Skip(f"{path} is closed to ordinary users")
            path = os.path.dirname(path)
    device = os.path.join(suite.folder("user-dev"), "fuse")
    try:
        os.mknod(device, 0o20666, os.stat("/dev/fuse").st_rdev)
        os.chmod(device, 0o666)
    except OSError as error:
        raise Skip(f"mknod: {error}") from None
    # What he may not read was not read.
    os.chmod(os.path.join(records.folder, "unread.mk"), 0o600)
    script = (f"mount --bind {device} /dev/fuse && cd {records.folder} && "
              f"exec setpriv --reuid 65534 --regid 65534 --clear-groups "
              f"{suite.bin}/tracefs-run --embed -o {records.trace} -- sh -c "
              "'cat unread.mk; make'")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script],
                          capture_output=True, text=True, check=False,
                          timeout=PATIENCE_S)
    if done.returncode == 3 and "user namespaces" in done.stderr:
        raise Skip(done.stderr.strip())
    expect_equal(done.returncode, 0, done.stderr)
    expect_equal(set(records.extract()), {"Makefile", "rules.mk"}, "files")
    expect(records.has_index(), "an index")


def case_processes_that_are_left_behind(suite):
    """They may go on: then there are files, and no index."""
    records = Records(suite)
    write(records.folder, FILES)
    said = records.run("--embed", "--", "sh", "-c",
                       "cat rules.mk; sleep 2 > /dev/null 2>&1 &")
    expect_equal(set(records.extract()), {"rules.mk"}, "files")
    expect("no index: others still use the mount" in said, said)
    expect(not records.has_index(), "no index")


# --- Hostile traces.


def plain(suite):
    """Records of a build, in a trace whose blocks can be changed."""
    records = Records(suite)
    write(records.folder, FILES)
    records.record("", "--embed")
    return records, Frames(records.trace)


def case_hostile_paths_stay_in_the_folder(suite):
    records, frames = plain(suite)
    number = frames.with_message(MSG_FILE)[0]
    outside = os.path.join(suite.scratch, "s.mk")
    for path in (b"/../s.mk", b"/./ax.mk", b"//aax.mk", b"/..//.mk",
                 b"/rules.m/", b"/s\0les.mk", b"../s\0.mk "):
        evil = Frames(records.trace)
        evil.replace(number, b"/rules.mk", path.ljust(9, b"k")[:9])
        evil.write(os.path.join(records.out, "evil.trace"))
        got = records.extract(trace=os.path.join(records.out, "evil.trace"),
                              status=1)
        expect_equal(set(got), {"Makefile"}, f"{path}: {records.said}")
        expect(not os.path.exists(outside), f"{path} led out")


def case_contents_that_are_not_what_was_read_are_told(suite):
    records, frames = plain(suite)
    frames.replace(frames.with_message(MSG_FILE)[0], b"X = 1\n", b"X = 2\n")
    frames.write(records.trace)
    got = records.extract(status=1)
    expect_equal(set(got), {"Makefile"}, "files")
    expect("not what was read" in records.said, records.said)


def case_one_file_is_not_the_folder_of_another(suite):
    """What is in the way is told; nothing is followed."""
    records, frames = plain(suite)
    frames.replace(frames.with_message(MSG_FILE)[0], b"/Makefile",
                   b"/rules.mk")
    frames.write(records.trace)
    expect_equal(len(records.extract(status=1)), 1, "one of the two")


def case_anonymised_traces_embed_nothing(suite):
    records = Records(suite)
    records.build("--embed")
    key = os.path.join(records.out, "key")
    hidden = os.path.join(records.out, "hidden.trace")
    expect_equal(suite.tool("tracefs-keygen", "secret", key).returncode, 0, "")
    done = suite.tool("tracefs-anon", "--policy", "research", "--keys", key,
                      records.trace, hidden)
    expect_equal(done.returncode, 0, done.stderr)
    expect_equal(records.extract(trace=hidden, status=1), {}, "files")
    expect(not records.has_index(hidden), "no index")
    done = suite.tool("tracefs-anon", "--audit", hidden, "--against",
                      records.trace, "--policy", "research")
    expect_equal(done.returncode, 0, done.stdout + done.stderr)


def case_an_audit_finds_what_is_embedded(suite):
    """As a careless tool would leave it in an anonymised trace."""
    records, frames = plain(suite)
    key = os.path.join(records.out, "key")
    hidden = os.path.join(records.out, "hidden.trace")
    suite.tool("tracefs-keygen", "secret", key)
    done = suite.tool("tracefs-anon", "--policy", "research", "--keys", key,
                      records.trace, hidden)
    expect_equal(done.returncode, 0, done.stderr)
    careless = Frames(hidden)
    for kind in (MSG_FILE, MSG_INDEX):
        number = frames.with_message(kind)[0]
        payload = frames.frames[number][1]
        head = careless.frames[number][0]
        head = head[:4] + struct.pack("<I", len(payload)) + head[8:36]
        crc = struct.pack("<I", crc32c(head + payload))
        careless.frames[number] = (head + crc, payload)
    careless.write(hidden)
    done = suite.tool("tracefs-anon", "--audit", hidden, "--against",
                      records.trace, "--policy", "research")
    expect_equal(done.returncode, 1, done.stdout + done.stderr)
    expect("embedded: " in done.stdout and "index: " in done.stdout,
           done.stdout)


# --- The index.


def written_inputs(lines):
    """{path: {paths}}: what the writers of each file read, by data flow, worked
    out from the lines of a trace alone."""
    reads, writers = collections.defaultdict(set), collections.defaultdict(set)
    for line in lines:
        if "op" not in line:
            continue
        for path, kind in build_model.accesses(line):
            if kind == build_model.READ:
                reads[line["pid"]].add(path)
            elif kind == build_model.WRITE:
                writers[path].add(line["pid"])
    answers = {}
    for target in writers:
        found, queue = set(), [target]
        while queue:
            for pid in writers.get(queue.pop(), ()):
                fresh = reads[pid] - found - {target}
                found |= fresh
                queue += fresh
        answers[target] = found
    return answers


def case_the_index_answers_what_a_stranger_works_out(suite):
    records = Records(suite)
    records.build("--index")
    expect(records.has_index(), "an index")
    answers = written_inputs(records.lines())
    for target in ("prog", "a.o", "b.o", "table.h"):
        status, out, _ = records.ask("--closure", "flow", "--no-pipes", target)
        expect_equal(status, 0, target)
        # Programs and libraries lie outside.
        expect_equal(set(out.decode().split()),
                     {records.folder + path for path in answers["/" + target]},
                     target)


# Something of all that questions are about: objects, pipes, files that are
# written twice, never read, not there.
ALL_SORTS = """
make
if command -v gcc > /dev/null; then gcc -c a.c -o c.o; fi
sort table.txt | cat > piped
sh -c 'echo x > twice'; sh -c 'echo y > twice'
cat not-there 2> /dev/null
mkdir made; echo x > made/a; mv made moved; cat moved/a > from-moved
true
"""


def case_answers_from_the_index_and_from_the_trace_are_alike(suite):
    records = Records(suite)
    write(records.folder, FILES)
    records.run("--index", "--", "sh", "-c", ALL_SORTS)
    expect(records.has_index(), "an index")
    with open(os.path.join(records.folder, "ninja.txt"), "w",
              encoding="ascii") as text:
        text.write("a.o: #deps 1, deps mtime 1 (VALID)\n    b.c\n\n")
    with open(os.path.join(records.folder, "make.txt"), "w",
              encoding="utf-8") as text:
        subprocess.run(["make", "-pn"], cwd=records.folder, stdout=text,
                       check=False)
    empty = []
    for words in QUESTIONS:
        words = [records.trace if word == "TRACE" else word for word in words]
        answer = records.ask(*words)
        expect_equal(answer, records.ask("--no-index", *words), " ".join(words))
        if len(answer[1]) < 5:
            empty.append(words[0])
    expect(len(empty) <= 7, f"nothing to compare: {empty}")


def case_what_the_index_does_not_have_is_read(suite):
    """Paths elsewhere, and several traces."""
    records = Records(suite)
    records.build("--index")
    moved = records.ask("--mount-point", "/elsewhere", "/elsewhere/prog")
    expect(b"/elsewhere/a.c" in moved[1], f"{moved}")
    twice = subprocess.run(
        [os.path.join(suite.bin, "tracefs-deps"), "prog", "--trace",
         records.trace, "--trace", records.trace], cwd=records.folder,
        capture_output=True, check=False)
    expect(b"a.c" in twice.stdout, f"{twice}")


def case_the_index_is_what_is_read(suite):
    """Blocks of operations that cannot be read do not matter then."""
    records, frames = plain(suite)
    before = records.ask("prog")
    number = next(i for i in range(1, len(frames.frames))
                  if any(kind >= 256 for kind in frames.kinds(i)))
    header, payload = frames.frames[number]
    frames.frames[number] = (header, payload[:100] + bytes(len(payload) - 100))
    frames.write(records.trace)
    expect_equal(records.ask("prog"), before, "from the index")
    expect_equal(records.ask("--no-index", "prog")[0], 1, "from the trace")
    expect_equal(records.ask("--check-index")[0], 1, "a check reads it")


def case_a_lying_index_is_found(suite):
    records, frames = plain(suite)
    expect(records.has_index(), "an index")
    number = frames.with_message(MSG_INDEX)[0]
    frames.replace(number, b"table.txt", b"table.lie")
    frames.write(records.trace)
    expect(b"table.lie" in records.ask("prog")[1], "it is believed so far")
    status, out, _ = records.ask("--check-index")
    expect_equal(status, 1, "found")
    expect(b"something else than the trace" in out, f"{out}")


def case_an_index_of_another_trace_is_not_used(suite):
    """Nor one of a trace from which something was taken, or to which something
    was added."""
    records, frames = plain(suite)
    good = records.ask("--no-index", "prog")
    index = frames.with_message(MSG_INDEX)
    operations = [i for i in range(1, index[0])
                  if any(kind >= 256 for kind in frames.kinds(i))]

    # One operation's block changed, with all checksums right.
    other = Frames(records.trace)
    payload = other.frames[operations[0]][1]
    other.replace(operations[0], payload[-8:], bytes(8))
    other.write(records.trace)
    _, _, said = records.ask("prog")
    expect(b"index was made of something else" in said, f"{said}")

    # A block gone, and the end gone.
    for gone in ([operations[0]], [len(frames.frames) - 1]):
        less = Frames(records.trace)
        less.frames = [frame for i, frame in enumerate(frames.frames)
                       if i not in gone]
        less.write(records.trace)
        expect_equal(records.ask("prog")[0], 1, f"without {gone}")
    frames.write(records.trace)
    expect_equal(records.ask("prog"), good, "the whole one")


def case_a_hostile_index_harms_nobody(suite):
    """Any byte of it may be anything: an answer comes, or the trace is read."""
    records, frames = plain(suite)
    number = frames.with_message(MSG_INDEX)[0]
    payload = frames.frames[number][1]
    begin = payload.rindex(b"deps 2") + 80
    for at in range(begin, len(payload), max(1, (len(payload) - begin) // 150)):
        for byte in (0, 0x7f, 0xff):
            evil = Frames(records.trace)
            header = frames.frames[number][0]
            changed = payload[:at] + bytes([byte]) + payload[at + 1:]
            crc = struct.pack("<I", crc32c(header[:36] + changed))
            evil.frames[number] = (header[:36] + crc, changed)
            path = os.path.join(records.out, "evil.trace")
            evil.write(path)
            status, _, said = records.ask("--races", trace=path)
            expect(status in (0, 1, 2), f"byte {at} as {byte}: {status} {said}")


def case_a_trace_gets_an_index_later(suite):
    """Of a compressed trace and a plain one; the answers stay what they were."""
    records = Records(suite)
    write(records.folder, FILES)
    for chain in ("compress;", ""):
        records.record(chain)
        expect(not records.has_index(), "no index yet")
        before = records.ask("--format", "json", "prog")
        lines = records.lines()
        status, out, said = records.ask("--index")
        expect_equal(status, 0, f"{out} {said}")
        expect(records.has_index(), chain)
        expect_equal(records.ask("--format", "json", "prog"), before, chain)
        expect_equal(records.lines(), lines, "operations")
        said = suite.tool("tracefs-verify", records.trace).stdout
        expect_equal([line for line in said.splitlines()
                      if line.startswith("bad")], [], "verified")
        expect_equal(records.ask("--index")[0], 2, "it has one already")


def case_a_sealed_trace_gets_no_index_later(suite):
    """What is added later would not be sealed."""
    records = Records(suite)
    write(records.folder, FILES)
    key = os.path.join(records.out, "key")
    suite.tool("tracefs-keygen", "secret", key)
    records.record(f'checksum alg = hmac-sha256 key = "file:{key}";')
    with open(records.trace, "rb") as trace:
        before = trace.read()
    status, out, _ = records.ask("--index", "--key", key)
    expect_equal(status, 2, f"{out}")
    expect(b"not protected" in out, f"{out}")
    with open(records.trace, "rb") as trace:
        expect_equal(trace.read() == before, True, "the trace is as it was")


def case_chains_cover_what_is_added(suite):
    """Compressed, sealed and encrypted like all else."""
    records = Records(suite)
    write(records.folder, FILES)
    key = os.path.join(records.out, "key")
    suite.tool("tracefs-keygen", "secret", key)
    for chain, keys in (("compress;", []),
                        (f'compress; checksum alg = hmac-sha256 key = "file:{key}";',
                         []),
                        (f'compress; encrypt key = "file:{key}";', ["--key", key])):
        said = records.record(chain, "--embed", *keys)
        expect("embedded 2 files" in said, said)
        expect_equal(set(records.extract("--key", key)),
                     {"Makefile", "rules.mk"}, chain)
        expect(records.has_index(None, "--key", key), chain)
        expect_equal(records.ask("--key", key, "prog"),
                     records.ask("--key", key, "--no-index", "prog"), chain)
        if "hmac" in chain:
            done = suite.tool("tracefs-verify", "--key", key, records.trace)
            expect_equal(done.returncode, 0, done.stdout + done.stderr)
        with open(records.trace, "rb") as trace:
            expect(MAKEFILE.encode() not in trace.read(), "in clear")


def case_what_cannot_be_is_refused_with_a_sentence(suite):
    records = Records(suite)
    write(records.folder, FILES)
    key = os.path.join(records.out, "key")
    suite.tool("tracefs-keygen", "secret", key)
    for chain, driver, why in (
            (f'encrypt key = "file:{key}";', "", "say with --key"),
            ("", "rotate_size = 1M", "rotated"),
            ("", None, "several tracers")):
        path = records.config(chain)
        with open(path, encoding="utf-8") as config:
            text = config.read()
        if driver is None:
            text += text.replace(records.trace, records.trace + "2")
        else:
            text = text.replace(f'"{records.trace}"',
                                f'"{records.trace}" {driver}')
        with open(path, "w", encoding="utf-8") as config:
            config.write(text)
        done = suite.tool("tracefs-run", "--embed", "--config", path, "--",
                          "touch", "was-run", cwd=records.folder)
        expect_equal(done.returncode, 2, done.stderr)
        expect(why in done.stderr, done.stderr)
        expect(not os.path.exists(os.path.join(records.folder, "was-run")),
               "it was not run")


def main():
    suite = Suite("record", __doc__)
    suite.run_cases(globals())
    suite.finish()


if __name__ == "__main__":
    main()
