#!/usr/bin/env python3
"""Recordings that nobody wrote a config for: where they go, what is in them, and
what is left alone."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from runner import Trace, run  # noqa: E402
from tracefs_harness import Skip, Suite, expect, expect_equal  # noqa: E402

DATE = r"-20\d{6}T\d{6}Z(-\d+)?\.trace"


class Place:
    """A directory to trace, and a folder for states."""

    def __init__(self, suite, name):
        self.suite = suite
        self.folder = suite.folder(name, "work")
        self.state = suite.path(name, "state")
        self.env = dict(os.environ, STATE_DIRECTORY=self.state)
        with open(os.path.join(self.folder, "f"), "w", encoding="ascii") as out:
            out.write("text")

    def run(self, *words, env=None):
        return run(self.suite, *words, cwd=self.folder, env=env or self.env)

    def traces(self):
        folder = os.path.join(self.state, "traces")
        return sorted((os.path.join(folder, name)
                       for name in os.listdir(folder)), key=os.path.getmtime)

    def header(self, trace):
        return self.suite.command("tracefs-dump", "--extract", "config", trace)


def mode(path):
    return os.stat(path).st_mode & 0o7777


def case_a_run_does_not_see_its_trace(suite):
    place = Place(suite, "unseen")
    for _ in range(2):
        done = place.run("--", "sh", "-c", "find . | sort; cat f")
        expect_equal((done.returncode, done.stdout), (0, ".\n./f\ntext"),
                     done.stderr)
    traces = place.traces()
    expect_equal(len(traces), 2, "each run has its own")
    expect(f" trace: {traces[1]}\n" in done.stderr, done.stderr)
    for trace in traces:
        expect(re.fullmatch("work" + DATE, os.path.basename(trace)), trace)
        expect_equal(mode(trace), 0o600, "of the trace")
        expect("compress" in place.header(trace), "it is not compressed")
        expect("/f" in Trace(suite, trace).paths("read"), "what was read")
    expect_equal(mode(os.path.dirname(trace)), 0o700, "of the folder")


def case_an_ordinary_user_has_it_in_his_state_home(suite):
    place = Place(suite, "user")
    home = suite.folder("user", "home")
    for path in (place.folder, home):
        os.chown(path, 65534, 65534)
    env = {"PATH": os.environ["PATH"], "HOME": home}
    # /dev/fuse is lent to him: where it is root's alone he could not mount.
    device = os.path.join(suite.folder("user-dev"), "fuse")
    try:
        os.mknod(device, 0o20666, os.stat("/dev/fuse").st_rdev)
        os.chmod(device, 0o666)
    except OSError as error:
        raise Skip(f"mknod: {error}")
    script = (f"mount --bind {device} /dev/fuse && cd {place.folder} && exec "
              "setpriv --reuid 65534 --regid 65534 --clear-groups "
              f"{suite.bin}/tracefs-run -- cat f")

    def recorded(**more):
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script], env={**env, **more},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode == 3 and "user namespaces" in done.stderr:
            raise Skip(done.stderr.strip())
        expect_equal((done.returncode, done.stdout), (0, "text"), done.stderr)
        return re.search(r" trace: (.*)\n", done.stderr)[1]
    expect(recorded().startswith(home + "/.local/state/tracefs/traces/work-"),
           "without XDG_STATE_HOME")
    own = os.path.join(home, "own")
    expect(recorded(XDG_STATE_HOME=own).startswith(
        own + "/tracefs/traces/work-"), "with it")
    expect(recorded(XDG_STATE_HOME="not/absolute").startswith(
        home + "/.local/state/"), "a relative one is ignored")


def case_a_state_folder_in_the_traced_tree_is_not_used(suite):
    place = Place(suite, "inside")
    place.state = os.path.join(place.folder, "state")
    script = (f"mount -t tmpfs none /var/tmp && {{ SETUP }} && "
              f"STATE_DIRECTORY={place.state} {suite.bin}/tracefs-run -- "
              "find . 2>&1 | sort")

    def recorded(setup):
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script.replace("{ SETUP }", setup)],
            cwd=place.folder, text=True, stdout=subprocess.PIPE, check=True)
        return done.stdout
    said = recorded("true")
    trace = re.search(r" trace: (.*)\n", said)[1]
    expect(re.fullmatch("/var/tmp/tracefs-0/work" + DATE, trace), trace)
    expect("\n./state" not in said, said)
    # In a folder where anybody can write, what was put there first is not used.
    for trap in ("ln -s /etc /var/tmp/tracefs-0",
                 "mkdir -m 777 /var/tmp/tracefs-0",
                 "mkdir -m 700 /var/tmp/tracefs-0 && "
                 "chown 1000 /var/tmp/tracefs-0"):
        trace = re.search(r" trace: (.*)\n", recorded(trap))[1]
        expect(re.fullmatch(re.escape(place.folder) + "/work" + DATE, trace),
               f"{trap}: {trace}")


def case_force_replaces_and_nothing_else_does(suite):
    place = Place(suite, "force")
    trace = os.path.join(place.folder, "kept.trace")
    with open(trace, "w", encoding="ascii") as out:
        out.write("precious")

    def content():
        with open(trace, "rb") as file:
            return file.read()
    done = place.run("-o", "kept.trace", "--", "true")
    expect_equal(done.returncode, 3, done.stderr)
    expect("kept.trace: it is there already; choose another name, or replace "
           "it with --force" in done.stderr, done.stderr)
    expect_equal(content(), b"precious", "without --force")
    for words in (["--filter", "op = writ"], ["--src", "missing"]):
        done = place.run("--force", "-o", "kept.trace", *words, "--", "true")
        expect(done.returncode in (2, 3), done.stderr)
        expect_equal(content(), b"precious", "nothing was recorded")
    done = place.run("--force", "-o", "kept.trace", "--", "cat", "f")
    expect_equal(done.returncode, 0, done.stderr)
    expect("/f" in Trace(suite, trace).paths("read"), "the new one")
    expect_equal(sorted(os.listdir(place.folder)), ["f", "kept.trace"], "left")
    expect_equal(place.run("--force", "--", "true").returncode, 2, "alone")
    # What bears the name that the old one has meanwhile is somebody's.
    with open(trace + ".replaced", "w", encoding="ascii") as out:
        out.write("not ours")
    done = place.run("--force", "-o", "kept.trace", "--", "true")
    expect_equal(done.returncode, 0, done.stderr)
    with open(trace + ".replaced", encoding="ascii") as file:
        expect_equal(file.read(), "not ours", "a file beside it")
    os.remove(trace + ".replaced")
    # No name is too long to be replaced.
    longest = os.path.join(place.folder, "l" * 255)
    shutil.copy(trace, longest)
    done = place.run("--force", "-o", longest, "--", "cat", "f")
    expect_equal(done.returncode, 0, done.stderr)
    expect("/f" in Trace(suite, longest).paths("read"), "the new one")
    expect_equal(sorted(os.listdir(place.folder)),
                 ["f", "kept.trace", "l" * 255], "left")


def case_no_place_in_a_config_that_nobody_wrote(suite):
    place = Place(suite, "noplace")
    done = place.run("-o", "missing/x.trace", "--", "true")
    expect_equal(done.returncode, 3, done.stderr)
    expect("missing/x.trace" in done.stderr and
           not re.search(r"\d:\d", done.stderr), done.stderr)


def case_a_mount_needs_a_directory_and_no_more(suite):
    place = Place(suite, "mount")
    said = []
    for content in ("one", "two"):
        done = suite.tool("tracefs-mount", "work", cwd=os.path.dirname(
            place.folder), env=place.env)
        expect_equal(done.returncode, 0, done.stderr)
        said.append(re.search(r"tracefs-mount: recording to (\S+), at most "
                              r"[0-9.]+ GB; next: tracefs-ctl work unmount\n",
                              done.stderr)[1])
        with open(os.path.join(place.folder, "f"), "w",
                  encoding="ascii") as out:
            out.write(content)
        listed = suite.command("tracefs-ctl", place.folder, "list")
        expect("NOT op IN { getlk setlk flock }" in listed and
               "(no config)" not in listed, listed)
        suite.command("tracefs-ctl", place.folder, "unmount")
    traces = place.traces()
    expect_equal(said, traces, "what was said")
    for trace in traces:
        expect(re.fullmatch("work" + DATE, os.path.basename(trace)), trace)
        config = place.header(trace)
        for word in ("compress", "rotate_size = 268435456", "keep = 4"):
            expect(word in config, f"no {word} in {config}")
        expect("/f" in Trace(suite, trace).paths("write"), "what was written")
    elsewhere = suite.folder("mount", "elsewhere")
    done = suite.tool("tracefs-mount", place.folder, elsewhere, env=place.env)
    expect_equal(done.returncode, 0, done.stderr)
    with open(os.path.join(elsewhere, "f"), encoding="ascii") as file:
        expect_equal(file.read(), "two", "through the other name")
    suite.command("tracefs-ctl", elsewhere, "unmount")


def case_a_mount_without_a_place_says_so(suite):
    place = Place(suite, "nowhere")
    shutil.rmtree(place.state, ignore_errors=True)
    with open(place.state, "w", encoding="ascii"):
        pass  # a file where the folder should be
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c",
         "mount -t tmpfs none /var/tmp && touch /var/tmp/tracefs-0 && "
         f"{suite.bin}/tracefs-mount ."], cwd=place.folder, env=place.env,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect_equal(done.returncode, 3, done.stderr)
    expect("a place for the trace: /var/tmp/tracefs-0: " in done.stderr,
           done.stderr)


def main():
    suite = Suite("without-config", __doc__)
    suite.run_cases(globals())
    suite.finish()


if __name__ == "__main__":
    main()
