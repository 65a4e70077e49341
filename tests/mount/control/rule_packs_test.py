#!/usr/bin/env python3
"""The packs of config/samples/rules: each fires in a scripted attack and says who it
was, and none in builds, work with git, databases, backups, a package upgrade and
cleaning up."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
from tracefs_harness import Suite, expect, expect_equal  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..",
                                    ".."))
PACKS = os.path.join(ROOT, "config/samples/rules")

# Each is a program of its own that is run in the mount; `every` does something
# so many times, at so many a second.
PACED = """
import os, time
def every(times, rate, do):
    begin = time.monotonic()
    for i in range(times):
        do(i)
        ahead = begin + i / rate - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
"""
ATTACKS = {
    "mass-deletion": (["mass deletion"], """
        os.mkdir("del")
        for i in range(2200): open(f"del/{i}", "w").close()
        every(2200, 260, lambda i: os.unlink(f"del/{i}"))
        """),
    "ransomware": (["mass rename", "mass overwrite"], """
        os.mkdir("docs")
        for i in range(600): open(f"docs/{i}.doc", "w").write("text")
        def encrypt(i):
            with open(f"docs/{i}.doc", "r+b") as file: file.write(b"XXXX")
            os.rename(f"docs/{i}.doc", f"docs/{i}.doc.locked")
        every(600, 90, encrypt)
        """),
    "credentials": (["a file with credentials was read by an unusual program"],
                    """
        open("home/.ssh/id_rsa").read()
        """),
    "set-id": (["a set-uid or set-gid bit was set"], """
        open("shell", "w").close()
        os.chmod("shell", 0o4755)
        """),
    "log-tampering": (["a log was cut, overwritten or removed"], """
        open("var/log/auth.log", "w").close()
        """),
    "churn": (["files are made and removed without end"], """
        def churn(i):
            open(f"chunk{i}", "w").close()
            os.unlink(f"chunk{i}")
        every(1800, 200, churn)
        """),
}


class Mounted:
    """A mount over itself with rules and without a config."""

    def __init__(self, suite, name, rules):
        self.suite = suite
        self.folder = suite.folder(name, "tree")
        for path, text in (("home/.ssh/id_rsa", "key"),
                           ("var/log/auth.log", "somebody logged in\n")):
            path = os.path.join(self.folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
        self.state = suite.path(name, "state")
        done = suite.tool("tracefs-mount", self.folder, "--rules", rules,
                          env=dict(os.environ, STATE_DIRECTORY=self.state))
        expect_equal(done.returncode, 0, done.stderr)

    def alarms(self):
        """Unmounts; the titles of all alarms in the trace."""
        self.suite.command("tracefs-ctl", self.folder, "unmount")
        folder = os.path.join(self.state, "traces")
        told = self.suite.command("tracefs-dump", "--format", "jsonl", folder)
        lines = [json.loads(line) for line in told.splitlines()]
        expect(any("op" in e for e in lines), "no operation was recorded")
        return [e for e in lines if "alarm" in e]


def run(folder, *words, **more):
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, **more)


def attack(mount, script):
    run(mount.folder, sys.executable, "-c",
        PACED + textwrap.dedent(script))


def all_packs(suite):
    path = suite.path("all.rules")
    with open(path, "w", encoding="utf-8") as out:
        for name in sorted(os.listdir(PACKS)):
            with open(os.path.join(PACKS, name), encoding="utf-8") as pack:
                out.write(pack.read())
    return path


def case_each_fires_in_its_attack(suite):
    expect_equal(sorted(os.listdir(PACKS)),
                 sorted(name + ".rules" for name in ATTACKS), "packs")
    for name, (titles, script) in ATTACKS.items():
        mount = Mounted(suite, name, os.path.join(PACKS, name + ".rules"))
        attack(mount, script)
        alarms = mount.alarms()
        expect_equal({e["alarm"] for e in alarms}, set(titles), name)
        # Whose work it was is in the alarm itself.
        for e in alarms:
            expect(e.get("comm", "").startswith("python") and "uid" in e and
                   "pid" in e, e)


def case_files_that_are_emptied_one_after_the_other(suite):
    """Without being opened."""
    mount = Mounted(suite, "emptied", os.path.join(PACKS, "ransomware.rules"))
    attack(mount, """
        os.mkdir("docs")
        for i in range(600): open(f"docs/{i}.doc", "w").write("text")
        every(600, 90, lambda i: os.truncate(f"docs/{i}.doc", 1))
        """)
    expect_equal({e["alarm"] for e in mount.alarms()}, {"mass overwrite"}, "alarms")


def case_a_log_is_cut_or_overwritten_in_place(suite):
    """By a size that is not 0, by writing over what it says, by a hole in it; not by
    what appends, touches it, or copies one with a hole at its end."""
    log = "var/log/auth.log"
    for name, words in (
            ("smaller", ["truncate", "-s", "2", log]),
            ("over", ["dd", "if=/dev/zero", "of=" + log, "bs=4", "count=1",
                      "conv=notrunc"]),
            ("edited", [sys.executable, "-c", f"open('{log}', 'r+').write('no')"]),
            ("hole", ["fallocate", "-p", "-o", "0", "-l", "4", log]),
            ("login", [sys.executable, "-c",
                       "open('var/log/wtmp', 'r+').write('no')"])):
        mount = Mounted(suite, name, os.path.join(PACKS, "log-tampering.rules"))
        with open(os.path.join(mount.folder, "var/log/wtmp"), "a",
                  encoding="ascii") as out:
            out.write("logins")
        run(mount.folder, *words)
        expect_equal([e["alarm"] for e in mount.alarms()],
                     ["a log was cut, overwritten or removed"], name)
    mount = Mounted(suite, "kept", os.path.join(PACKS, "log-tampering.rules"))
    tools = suite.folder("kept", "bin")
    folder = os.path.join(mount.folder, "var/log")
    shutil.copy(shutil.which("dd"), os.path.join(tools, "sshd-session"))
    with open(os.path.join(folder, "lastlog"), "wb") as out:
        out.write(b"x" * 4096)
        out.seek(1 << 20)
        out.write(b"y")
    with open(suite.path("holes"), "wb") as out:
        out.truncate(2 << 20)
    for words in (["touch", log], ["touch", "-d", "2020-01-01", log],
                  ["chmod", "640", log], ["sh", "-c", f"echo more >> {log}"],
                  ["cp", "--sparse=always", suite.path("holes"), "var/log/copy"],
                  [os.path.join(tools, "sshd-session"), "if=/dev/zero",
                   "of=var/log/lastlog", "bs=4", "count=1", "conv=notrunc"]):
        run(mount.folder, *words)
    expect_equal([(e["comm"], e["op"], e["path"]) for e in mount.alarms()], [],
                 "false alarms")


def case_set_id_files_that_are_only_touched(suite):
    """The bit has been there all the while; one made without a name gets it."""
    mount = Mounted(suite, "touched", os.path.join(PACKS, "set-id.rules"))
    tool = os.path.join(mount.folder, "tool")
    run(mount.folder, "touch", "tool")
    # Past the rule: dpkg may.
    tools = suite.folder("touched", "bin")
    shutil.copy(shutil.which("chmod"), os.path.join(tools, "dpkg"))
    run(mount.folder, os.path.join(tools, "dpkg"), "4755", tool)
    run(mount.folder, "touch", "tool")
    run(mount.folder, "touch", "-d", "2020-01-01", "tool")
    run(mount.folder, "chmod", "0755", "tool")
    run(mount.folder, sys.executable, "-c",
        "import os; os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)")
    expect_equal([e["op"] for e in mount.alarms()], ["tmpfile"], "alarms")


def case_mass_deletion_at_once(suite):
    """As fast as one can, and not of what can be had again."""
    for folder, titles in (("home", {"mass deletion"}), ("node_modules", set())):
        mount = Mounted(suite, folder, os.path.join(PACKS, "mass-deletion.rules"))
        attack(mount, f"""
            os.makedirs("{folder}/x")
            for i in range(10000): open(f"{folder}/x/{{i}}", "w").close()
            """)
        run(mount.folder, "rm", "-rf", f"{folder}/x")
        expect_equal({e["alarm"] for e in mount.alarms()}, titles, folder)


def case_a_log_is_replaced_or_taken_away(suite):
    """What `sed -i`, `ln -sf /dev/null` and mv do; not what those do who make logs
    or turn them over."""
    for name, script in (
            ("rewritten", """
            open("var/log/other", "w").write("nobody logged in")
            os.rename("var/log/other", "var/log/auth.log")
            """),
            ("linked", """
            os.symlink("/dev/null", "link")
            os.rename("link", "var/log/auth.log")
            """),
            ("away", """
            os.rename("var/log/auth.log", "home/x")
            """)):
        mount = Mounted(suite, name, os.path.join(PACKS, "log-tampering.rules"))
        attack(mount, script)
        expect_equal([e["alarm"] for e in mount.alarms()],
                     ["a log was cut, overwritten or removed"], name)
    mount = Mounted(suite, "made", os.path.join(PACKS, "log-tampering.rules"))
    run(mount.folder, "touch", "var/log/new.log")
    run(mount.folder, "chmod", "640", "var/log/new.log")
    run(mount.folder, "chown", "1:1", "var/log/new.log")
    run(mount.folder, "install", "-m", "640", "/dev/null", "var/log/newer.log")
    for old, new in (("auth.log.1", "auth.log.2"), ("auth.log", "auth.log.1"),
                     ("new.log", "new.log-20260101"), ("newer.log", "newer.log.old")):
        if not os.path.exists(os.path.join(mount.folder, "var/log", old)):
            run(mount.folder, "cp", "var/log/auth.log", "var/log/" + old)
        run(mount.folder, "mv", "var/log/" + old, "var/log/" + new)
    expect_equal([(e["comm"], e["op"], e["path"]) for e in mount.alarms()], [],
                 "false alarms")


def case_programs_that_have_a_use_for_credentials(suite):
    """Sisters of those that read the same files: accounts, databases, git by HTTP."""
    mount = Mounted(suite, "used", os.path.join(PACKS, "credentials.rules"))
    tools = suite.folder("used", "bin")
    for file in ("shadow", "gshadow", "shadow-", ".pgpass", ".netrc"):
        with open(os.path.join(mount.folder, "home", file), "x",
                  encoding="ascii") as out:
            out.write("secret")
    for tool, file in (("userdel", "shadow"), ("gpasswd", "gshadow"),
                       ("systemd-sysusers", "shadow"), ("chage", "shadow"),
                       ("pg_dump", ".pgpass"), ("pg_restore", ".pgpass"),
                       ("git-remote-https", ".netrc"), ("wget", ".netrc")):
        shutil.copy(shutil.which("head"), os.path.join(tools, tool))
        run(mount.folder, os.path.join(tools, tool), "home/" + file)
    shutil.copy(shutil.which("head"), os.path.join(tools, "stranger"))
    run(mount.folder, os.path.join(tools, "stranger"), "home/shadow-")
    alarms = mount.alarms()
    # The old passwords of most users are those of today.
    expect_equal([(e["comm"], e["path"]) for e in alarms if e["pid"] != os.getpid()],
                 [("stranger", "/home/shadow-")], "alarms")


def parent_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return int(next(line.split()[1] for line in status
                        if line.startswith("PPid:")))


def above():
    """This process and those above it, as /proc has them."""
    pids = [os.getpid()]
    while parent_of(pids[-1]) != 0:
        pids.append(parent_of(pids[-1]))
    return pids


READS = """
import os, sys, time
open("home/x", "w").close()
open("home/.ssh/id_rsa").read()
time.sleep(float(sys.argv[1]))
"""


def case_an_alarm_says_who_it_was(suite):
    mount = Mounted(suite, "who", os.path.join(PACKS, "credentials.rules"))
    words = [sys.executable, "-c", READS, "4", "x\n\x1b[2J" + "y" * 100000]
    run(mount.folder, *words, start_new_session=True)
    told = suite.command("tracefs-ctl", mount.folder, "rules")
    alarm, = mount.alarms()
    expect_equal(alarm["exe"], os.path.realpath(sys.executable), "exe")
    line = " ".join(words)
    expect(line.startswith(alarm["cmdline"]) and
           len(line) > len(alarm["cmdline"]) > 1000, alarm["cmdline"][:200])
    expect_equal([a["pid"] for a in alarm["ancestors"]], above(), "ancestors")
    with open("/proc/self/comm", encoding="utf-8") as comm:
        expect_equal(alarm["ancestors"][0]["comm"], comm.read().strip(), "comm")
    expect_equal((alarm["sid"], alarm["tty"]), (alarm["pid"], "none"), "session")
    expect_equal(alarm["touched"][0], "/home/.ssh/id_rsa", "touched")
    expect("not_known" not in alarm, alarm.get("not_known"))
    # One printable line for each, in all that people look at.
    for text in (told, suite.command("tracefs-dump", os.path.join(
            mount.state, "traces"))):
        lines = [l for l in text.splitlines() if "-c" in l and READS[1:9] in l]
        expect(lines and all(l.isprintable() and len(l) < 30000 for l in lines),
               text[:2000])
    for feed in ("ocsf", "ecs", "cef"):
        text = suite.command("tracefs-dump", "--format", feed,
                             os.path.join(mount.state, "traces"))
        line = next(l for l in text.splitlines() if "unusual program" in l)
        expect(line.isprintable() and len(line) < 30000, line[:2000])
        for part in (alarm["exe"], "import os, sys, time",
                     str(alarm["ancestors"][0]["pid"]), "/home/.ssh/id_rsa"):
            expect(part in line, f"{feed}: no {part} in {line[:3000]}")


def case_what_is_not_known_is_left_out_and_said(suite):
    mount = Mounted(suite, "gone", os.path.join(PACKS, "credentials.rules"))
    run(mount.folder, "head", "home/.ssh/id_rsa")
    alarm, = mount.alarms()
    expect("exe" not in alarm and "cmdline" not in alarm, alarm)
    expect(set(alarm["not_known"]) >= {"exe", "cmdline"}, alarm)
    expect_equal(alarm["ancestors"][0]["pid"], os.getpid(), "the parent lives")


def build(folder):
    for i in range(40):
        with open(os.path.join(folder, f"f{i}.c"), "w",
                  encoding="ascii") as out:
            out.write(f"int f{i}(void) {{ return {i}; }}\n")
    objects = " ".join(f"f{i}.o" for i in range(40))
    with open(os.path.join(folder, "Makefile"), "w", encoding="ascii") as out:
        out.write(f"lib.a: {objects}\n\tar rcs $@ $^\n"
                  "clean:\n\trm -f *.o lib.a\n")
    for _ in range(2):
        run(folder, "make", "-j2")
        run(folder, "make", "clean")


def git(folder):
    def call(*words):
        run(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", *words)
    call("init", ".")
    for version in range(3):
        for i in range(200):
            with open(os.path.join(folder, f"text{i}"), "w",
                      encoding="ascii") as out:
                out.write(f"{version} {i}\n" * 20)
        call("add", ".")
        call("commit", "-m", f"version {version}")
        if version == 0:
            call("branch", "old")
    call("checkout", "old")
    call("checkout", "-")
    call("rm", "-r", "-q", ".")
    call("reset", "--hard")
    call("gc")


def database(folder):
    for mode in ("DELETE", "WAL"):
        with contextlib.closing(sqlite3.connect(
                os.path.join(folder, mode + ".db"),
                isolation_level=None)) as db:
            db.execute(f"PRAGMA journal_mode={mode}")
            db.execute("PRAGMA synchronous=OFF")
            db.execute("CREATE TABLE t (a, b)")
            for i in range(2500):
                db.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * 100))
            db.execute("DELETE FROM t WHERE a % 2")
            db.execute("VACUUM")


def package(folder, version):
    """A made package whose upgrade replaces all of its 400 files, as packages do."""
    tree = os.path.join(folder, f"made-{version}")
    os.makedirs(os.path.join(tree, "DEBIAN"))
    with open(os.path.join(tree, "DEBIAN/control"), "w", encoding="ascii") as out:
        out.write(f"Package: made\nVersion: {version}\nArchitecture: all\n"
                  "Maintainer: nobody <nobody@localhost>\nDescription: made\n")
    for kind, count in (("lib/made", 300), ("share/doc/made", 60), ("bin", 40)):
        os.makedirs(os.path.join(tree, "usr", kind))
        for i in range(count):
            path = os.path.join(tree, "usr", kind, f"made{i}")
            with open(path, "w", encoding="ascii") as out:
                out.write(f"{version} {i}\n" * 50)
            os.chmod(path, 0o755 if kind == "bin" else 0o644)
    made = tree + ".deb"
    run(folder, "dpkg-deb", "--build", "--root-owner-group", tree, made)
    return made


def upgrade(mount):
    """dpkg in a root of its own, below the mount."""
    elsewhere = mount.suite.folder("packages")
    root = os.path.join(mount.folder, "root")
    for folder in ("info", "updates", "triggers"):
        os.makedirs(os.path.join(root, "var/lib/dpkg", folder))
    for name in ("status", "available"):
        with open(os.path.join(root, "var/lib/dpkg", name), "x", encoding="ascii"):
            pass
    os.makedirs(os.path.join(root, "var/log"))
    for version in ("1.0", "1.1"):
        # The root is empty: there is nothing to run in it.
        run(elsewhere, "dpkg", "--root", root, "--force-not-root",
            "--log", os.path.join(root, "var/log/dpkg.log"),
            "--install", package(elsewhere, version))
    with open(os.path.join(root, "usr/bin/made7"), encoding="ascii") as file:
        expect(file.read().startswith("1.1 7"), "dpkg has not upgraded")
    run(elsewhere, "dpkg", "--root", root, "--force-not-root",
        "--log", os.path.join(root, "var/log/dpkg.log"), "--purge", "made")


def backup(mount):
    elsewhere = mount.suite.folder("backup")
    run(mount.folder, "tar", "czf", os.path.join(elsewhere, "all.tgz"), ".")
    run(mount.folder, "cp", "-a", ".", os.path.join(elsewhere, "copy"))
    if shutil.which("rsync"):
        for _ in range(2):
            run(mount.folder, "rsync", "-a", "--delete", ".",
                os.path.join(elsewhere, "synced"))
    os.makedirs(os.path.join(mount.folder, "restored"))
    run(os.path.join(mount.folder, "restored"), "tar", "xzf",
        os.path.join(elsewhere, "all.tgz"))


def case_none_fires_in_normal_work(suite):
    mount = Mounted(suite, "normal", all_packs(suite))
    folders = {}
    for name in ("build", "git", "database", "logs"):
        folders[name] = os.path.join(mount.folder, name)
        os.mkdir(folders[name])
    for tool, work in (("gcc", build), ("git", git)):
        if shutil.which(tool) and shutil.which("make"):
            work(folders[work.__name__])
    database(folders["database"])
    backup(mount)
    if shutil.which("dpkg-deb"):
        upgrade(mount)
    # Logs are written to, and turned over.
    log = os.path.join(mount.folder, "var/log/auth.log")
    with open(log, "a", encoding="ascii") as out:
        out.write("somebody logged out\n")
    os.rename(log, log + ".1")
    with open(log, "x", encoding="ascii") as out:
        out.write("a new day\n")
    run(os.path.dirname(log), "gzip", "auth.log.1")
    run(mount.folder, "rm", "-rf", "restored", "git", "build")
    alarms = mount.alarms()
    expect_equal([(e["alarm"], e.get("comm"), e.get("path")) for e in alarms],
                 [], "false alarms")


def case_mistakes_have_a_place_in_the_file(suite):
    path = suite.path("wrong.rules")
    with open(path, "w", encoding="ascii") as out:
        out.write("# A rule.\nwhen seen(op = raed) then { };\n")
    folder = suite.folder("wrong")
    done = suite.tool("tracefs-mount", folder, "--rules", path)
    expect_equal(done.returncode, 2, done.stderr)
    expect(f"{path}:2:16: " in done.stderr and "did you mean 'read'?" in
           done.stderr, done.stderr)
    done = suite.tool("tracefs-mount", folder, "--rules", "missing")
    expect_equal(done.returncode, 3, done.stderr)
    expect("--rules missing: No such file" in done.stderr, done.stderr)
    done = suite.tool("tracefs-mount", folder, "--rules", path, "--config", "x")
    expect_equal(done.returncode, 2, done.stderr)
    expect("--rules is for mounts without a config" in done.stderr, done.stderr)


def main():
    suite = Suite("rule-packs", __doc__)
    suite.run_cases(globals())
    suite.finish()


if __name__ == "__main__":
    main()
