#!/usr/bin/env python3
"""The anonymiser as an output filter of a real mount: nothing that is protected
leaves the host, what leaves is a trace like any other, and the keys give back
what was there.

Each case records the same workload twice on the same mount: anonymised, and by
a second tracer as it is.
"""

import base64
import collections
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
# pylint: disable=wrong-import-position
import judge  # noqa: E402
from tracefs_harness import (Suite, decode_event, expect,  # noqa: E402
                             expect_equal, verdicts)

UID = 3_141_592_653
GID = 2_718_281_828
PROCESS = "embezzlebot"
DATA = "unmistakable data"
# What the workload is recognised by; none of it in any policy or in our prose.
WORDS = ["grotesque-folder", "ledger-of-doom", "offshore.xlsx", "renamed-alibi",
         "whistle-target", "user.blackmail",
         DATA, PROCESS, "never-seen-name", "raised-later"]
# Run by the process above, in the mount. Renames come before the file is opened:
# a close does not wait for its RELEASE, and of two operations at the same time
# either tracer may have either one first, and so the path of it.
WORKLOAD = """
import os
os.setgid(%d)
os.setuid(%d)
os.mkdir("grotesque-folder")
for i in range(60):
    path = "grotesque-folder/renamed-alibi-%%d" %% i
    created = "grotesque-folder/ledger-of-doom-%%d.offshore.xlsx" %% i
    os.mknod(created)
    os.rename(created, path)
    with open(path, "wb", buffering=0) as out:
        out.write(b"unmistakable data %%d " %% i * 50)
    with open(path, "rb", buffering=0) as content:
        content.read()
with open("grotesque-folder/created", "xb"):
    pass
os.symlink("whistle-target/of/a/link", "grotesque-folder/link")
os.readlink("grotesque-folder/link")
os.setxattr("grotesque-folder/renamed-alibi-0", "user.blackmail",
            b"hush-money-value")
os.getxattr("grotesque-folder/renamed-alibi-0", "user.blackmail")
os.listdir("grotesque-folder")
try:
    os.stat("grotesque-folder/never-seen-name")
except FileNotFoundError:
    pass
os.chown("grotesque-folder/renamed-alibi-1", %d, %d)
os.unlink("grotesque-folder/renamed-alibi-2")
""" % (GID, UID, UID, GID)


class Case:
    """One mount with a tracer that hides and one that does not."""

    def __init__(self, suite, name):
        self.suite = suite
        self.command = suite.command
        self.source = suite.folder(name, "source", mode=0o777)
        self.point = suite.folder(name, "mnt")
        self.out = suite.folder(name, "out")
        self.key = os.path.join(self.out, "anon.key")
        self.secret = os.path.join(self.out, "secret")
        for path in (self.key, self.secret):
            self.command("tracefs-keygen", "secret", path)
        self.plain = os.path.join(self.out, "plain")

    def record(self, *outputs, flags="STR_ALL | STR_DATA", at_end=None):
        """The workload, as each of the output sections has it, and plain.
        `at_end` is called before the mount goes."""
        # A filter has names, too, and stands in the header of the trace.
        condition = f'name != "never-seen-name" OR cname = "{PROCESS}"'
        mount = self.suite.mount(
            self.source, self.point,
            *[(condition, flags, text.format(key=self.key, out=self.out,
                                             secret=self.secret))
              for text in outputs],
            (condition, flags, f'file = "{self.plain}" buf = 16K'))
        program = os.path.join(self.out, PROCESS)
        # A process has the name of its executable.
        shutil.copy(os.path.realpath(sys.executable), program)
        environment = {**os.environ, "PYTHONHOME": sys.base_prefix}
        subprocess.run([program, "-c", WORKLOAD], cwd=self.point, check=True,
                       env=environment)
        self.command("tracefs-ctl", self.point, "set-filter", "1",
                     condition + ' OR name = "raised-later"')
        os.mkdir(os.path.join(self.point, "raised-later"))
        if at_end is not None:
            at_end()
        mount.unmount()
        recorded = self.bytes_of(self.plain)
        for word in WORDS:
            expect(word in recorded or word in DATA and "DATA" not in flags,
                   f"no {word} was recorded")

    @staticmethod
    def bytes_of(*paths):
        data = b""
        for path in paths:
            with open(path, "rb") as trace:
                data += trace.read()
        return data.decode("latin-1")

    def expect_hidden(self, *traces, policy):
        """No word in any form, and the audit finds no leak."""
        data = self.bytes_of(*traces)
        for word in WORDS + [self.source, self.point]:
            for form in forms(word):
                expect(form not in data, f"{form!r} is in {traces}")
        for number in (UID, GID):
            for form in (number.to_bytes(4, "little"), str(number).encode()):
                expect(form.decode("latin-1") not in data,
                       f"{number} is in {traces}")
        whole = traces[0]
        if len(traces) > 1:
            whole = os.path.join(self.out, "together")
            with open(whole, "wb") as out:
                out.write(data.encode("latin-1"))
        said = self.command("tracefs-anon", "--audit", whole, "--policy",
                            policy, "--against", self.plain)
        expect("LEAK" not in said, said)
        return whole

    def events(self, *traces):
        """As they are listed, but for the tracer's number."""
        run = subprocess.run(
            [os.path.join(self.suite.bin, "tracefs-dump"), "--key",
             self.secret, "--format", "jsonl", *traces],
            capture_output=True, text=True, check=False)
        expect_equal(run.returncode, 0, f"dump of {traces}: {run.stderr}")
        events = [decode_event(line) for line in run.stdout.splitlines()]
        for event in events:
            event.pop("tracer")
        return events


def forms(word):
    """How a text could show."""
    plain = word.encode()
    yield word
    yield plain.hex()
    for i in range(3):
        # Within a longer text; the ends depend on what is beside them.
        coded = base64.b64encode(bytes(i) + plain)
        yield coded[4:-4].decode()


def expect_same_events(got, want, what):
    """The same operations, and between them the same times: each tracer has
    looked at the clock for itself, so they may all differ by a little."""
    got, want = ([sorted(events, key=lambda e: e["ts"])
                  for events in (got, want)])
    expect_equal(len(got), len(want), f"{what}: operations")
    apart = {g.pop("ts") - w.pop("ts") for g, w in zip(got, want)}
    expect(len(apart) == 1 and abs(min(apart)) < 1_000_000,
           f"{what}: times differ by {apart}")
    for pair in zip(got, want):
        expect_equal(*pair, what)


def everything_comes_back(suite):
    """partner: hidden in every form; with the key, every field of every event
    as the second tracer has it."""
    case = Case(suite, "partner")
    hidden = os.path.join(case.out, "hidden")
    # With this profile the keys of a day open that day's traces.
    day = time.strftime("%Y-%m-%d", time.gmtime())
    case.record('anonymize policy = partner key = "file:{key}"; '
                'file = "{out}/hidden" buf = 16K')
    case.expect_hidden(hidden, policy="partner")
    said = case.command("tracefs-verify", "--accept-unsealed", hidden)
    expect(not verdicts(said) & {"bad", "missing"}, said)
    revealed = os.path.join(case.out, "revealed")
    case.command("tracefs-anon", "--reveal", "all", "--keys", case.key, hidden,
                 revealed)
    original = case.events(case.plain)
    expect_same_events(case.events(revealed), original, "revealed")
    # What was hidden is the same number of operations, and of each the same.
    expect_equal(collections.Counter(e["op"] for e in case.events(hidden)),
                 collections.Counter(e["op"] for e in original), "operations")
    # Half of it, with half of the keys.
    for domain in ("uid", "name"):
        case.command("tracefs-keygen", "--derive", domain, "--key", case.key,
                     "--day", day, os.path.join(case.out, domain + ".key"))
    part = os.path.join(case.out, "part")
    uid_key = os.path.join(case.out, "uid.key")
    case.command("tracefs-anon", "--reveal", "uid", "--keys", uid_key, hidden,
                 part)
    expect_equal(sorted(e["uid"] for e in case.events(part)),
                 sorted(e["uid"] for e in original), "users")
    for word in WORDS:
        expect(word not in case.bytes_of(part), f"{word} came back, too")
    none = os.path.join(case.out, "none")
    said = case.command("tracefs-anon", "--reveal", "name", "--keys", uid_key,
                        hidden, none, status=2)
    expect("no key for domain name" in said, said)
    case.command("tracefs-anon", "--reveal", "name", "--keys",
                 os.path.join(case.out, "name.key"), hidden, none)
    expect_equal(sorted(e.get("path", "") for e in case.events(none)),
                 sorted(e.get("path", "") for e in original), "paths")
    return f"{len(original)} operations"


def before_other_filters(suite):
    """research: in a thread of its own, then compressed, encrypted, sealed."""
    case = Case(suite, "research")
    hidden = os.path.join(case.out, "hidden")
    case.record('async; anonymize policy = research key = "file:{key}"; '
                'compress alg = zstd; encrypt key = "file:{secret}"; '
                'checksum key = "file:{secret}"; file = "{out}/hidden" '
                'buf = 16K')
    said = case.command("tracefs-verify", "--key", case.secret, hidden)
    expect_equal(verdicts(said), {"ok"}, said)
    # Decrypted, for who looks for words: the same trace, without the chain.
    clear = os.path.join(case.out, "clear")
    case.command("tracefs-anon", "--trace-key", case.secret, "--reveal", "uid",
                 "--keys", case.key, hidden, clear)
    original = case.events(case.plain)
    expect_equal(sorted(e["uid"] for e in case.events(clear)),
                 sorted(e["uid"] for e in original), "users")
    for word in WORDS:
        expect(word not in case.bytes_of(clear), f"{word} is in it")
    said = case.command("tracefs-anon", "--trace-key", case.secret, "--audit",
                        hidden, "--policy", "research", "--against",
                        case.plain)
    expect("LEAK" not in said, said)
    return f"{len(original)} operations"


def times_in(data, *windows):
    """Numbers of 8 bytes in `data`, wherever they stand, that are in one of the
    windows."""
    numbers = (int.from_bytes(data[at:at + 8], "little")
               for at in range(len(data) - 7))
    return [n for n in numbers for first, last in windows if first <= n <= last]


def no_real_time_stands_beside(suite):
    """public, which shifts times: neither a seal nor the mark of a snapshot has
    the real one, by which the shift would be known."""
    case = Case(suite, "beside")
    clocks = (time.time_ns, time.monotonic_ns)
    begin = [clock() for clock in clocks]
    sealed = os.path.join(case.out, "sealed")
    case.record('anonymize policy = public key = "file:{key}"; '
                'checksum key = "file:{secret}" heartbeat = 1s; '
                'file = "{out}/sealed" buf = 16K',
                'anonymize policy = public key = "file:{key}"; '
                'flight = "{out}/flight"',
                at_end=lambda: case.command("tracefs-ctl", case.point,
                                            "snapshot", "2"))
    windows = [(first, clock()) for first, clock in zip(begin, clocks)]
    with open(case.plain, "rb") as plain:
        expect(times_in(plain.read(), *windows), "times are not found at all")
    snapshot = os.path.join(case.out, "flight.000001")
    for path in (sealed, snapshot):
        with open(path, "rb") as trace:
            expect_equal(times_in(trace.read(), *windows), [], path)
        said = case.command("tracefs-anon", "--trace-key", case.secret,
                            "--audit", path, "--policy", "public")
        expect("LEAK" not in said, said)
    said = case.command("tracefs-verify", "--key", case.secret, sealed)
    expect_equal(verdicts(said), {"ok"}, said)
    return f"{len(case.events(snapshot))} operations"


def rotated(suite):
    """public, into many files: each describes itself anew."""
    case = Case(suite, "public")
    case.record('anonymize policy = public key = "file:{key}"; '
                'file = "{out}/part" buf = 8K rotate_size = 64K',
                flags="STR_ALL | STR_PRE_OP")
    parts = sorted(os.path.join(case.out, n) for n in os.listdir(case.out)
                   if n.startswith("part"))
    expect(len(parts) > 2, f"only {parts}")
    whole = case.expect_hidden(*parts, policy="public")
    expect_equal(collections.Counter(e["op"] for e in case.events(*parts)),
                 collections.Counter(e["op"] for e in case.events(case.plain)),
                 "operations")
    # Only what was shifted comes back; the key is of no use for the rest.
    revealed = os.path.join(case.out, "revealed")
    case.command("tracefs-anon", "--reveal", "all", "--keys", case.key, whole,
                 revealed)
    for word in WORDS:
        expect(word not in case.bytes_of(revealed), f"{word} came back")
    return f"{len(parts)} files"


# Files of odd lengths, read and written in every way that tells of one.
SIZES = """
import os
os.mkdir("sizes")
for i in range(40):
    length = 10_007 + 977 * i
    path = "sizes/file-%d" % i
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x" * length)
    os.lseek(fd, 0, os.SEEK_END)
    os.lseek(fd, -length, os.SEEK_END)
    while os.read(fd, 4096):
        pass
    os.pread(fd, 65536, length)
    with open(path + ".copy", "wb") as out:
        os.copy_file_range(fd, out.fileno(), length, 0)
    os.truncate(path, 100_003 + length)
    os.truncate(path, length - 13)
    os.truncate(path, length)
    os.truncate(path + ".copy", 1_000_003 + length)
    os.stat(path)
    os.close(fd)
"""


def nothing_of_the_original_is_found(suite):
    """A stranger who compares the lines of both traces finds no number and no
    text of the original, and no size by adding up; nor does the audit. It does
    where a policy of before left results in clear."""
    source = suite.folder("judged", "source", mode=0o777)
    point = suite.folder("judged", "mnt")
    out = suite.folder("judged", "out")
    key = os.path.join(out, "anon.key")
    suite.command("tracefs-keygen", "secret", key)
    config = os.path.join(out, "config")
    count = ("aggregate = { by path; values count bytes size }")
    with open(config, "w", encoding="utf-8") as text:
        text.write('{ { } { stream = { STR_ALL | STR_REPLAY } } '
                   f'{{ file = "{out}/calls" }} }}\n'
                   f'{{ {{ }} {{ {count} }} {{ file = "{out}/counts" }} }}\n')
    mount = suite.mount_command(
        [os.path.join(suite.bin, "tracefs-mount"), source, point, "--config",
         config, "--foreground"], point)
    for program in (SIZES, WORKLOAD):
        subprocess.run([sys.executable, "-c", program], cwd=point, check=True)
    mount.unmount()

    def listed(trace):
        return judge.lines(suite.command("tracefs-dump", "--format", "jsonl",
                                         os.path.join(out, trace)))

    kept = {"json", "html", "xlsx"}
    for trace in ("calls", "counts"):
        original = listed(trace)
        # The judge can find something.
        expect(judge.found(original, original), f"nothing in {trace} itself")
        plain = os.path.join(out, trace)
        hidden = os.path.join(out, trace + ".public")
        suite.command("tracefs-anon", "-q", "--policy", "public", "--keys", key,
                      plain, hidden)
        expect_equal(judge.found(original, listed(trace + ".public"), kept), [],
                     f"{trace}, public")
        said = suite.command("tracefs-anon", "--audit", hidden, "--policy",
                             "public", "--against", plain)
        expect("No leak found" in said, said)
        # As it was: the header of such a trace says so of itself.
        policy = os.path.join(out, "before.policy")
        with open(policy, "w", encoding="utf-8") as text:
            text.write("use public;\nio, result = keep;\n")
        said = suite.command("tracefs-anon", "-q", "--policy", policy, "--keys",
                             key, plain, os.path.join(out, "none"), status=2)
        expect("would still be told by ARG_OFFSET" in said, said)
        with open(policy, "w", encoding="utf-8") as text:
            text.write("use public;\nsize, io, result = keep;\n")
        before = os.path.join(out, trace + ".before")
        suite.command("tracefs-anon", "-q", "--policy", policy, "--keys", key,
                      plain, before)
        told = judge.found(original, listed(trace + ".before"), kept)
        expect(any("size" in line or "bytes" in line for line in told) or
               trace == "counts", told)
        run = subprocess.run(
            [os.path.join(suite.bin, "tracefs-anon"), "--audit", before,
             "--policy", "public", "--against", plain],
            capture_output=True, text=True, check=False)
        expect_equal(run.returncode, 1, run.stdout + run.stderr)
        field = "ARG_RESULT" if trace == "calls" else "ARG_BYTE_COUNT"
        expect(f"LEAK  {field}: the policy " in run.stdout,
               run.stdout)
    return f"{len(original)} lines of counts"


def main():
    suite = Suite("anonymize", __doc__)
    for case in (everything_comes_back, before_other_filters,
                 no_real_time_stands_beside, rotated,
                 nothing_of_the_original_is_found):
        suite.run(case.__name__.replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
