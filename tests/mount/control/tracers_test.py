#!/usr/bin/env python3
"""How many tracers a mount has, what they are called, and what a mount leaves that
does not begin, or does not end."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))
# pylint: disable=wrong-import-position
from tracefs_harness import Skip, Suite, expect, expect_equal, wait_until

MOST = 64  # as config/REFERENCE.md has it
FILE_SYSTEMS = ("tmpfs", "overlay", "ext4", "xfs", "btrfs")


def write_config(suite, name, tracers):
    path = suite.path(name)
    with open(path, "w", encoding="ascii") as out:
        for tracer in tracers:
            out.write("%s { { %s } { stream = { STR_ALL } } { %s } }\n" % tracer)
    return path


def many(suite, case, count, first=0):
    return [(f"t{i}", "op = mkdir", f'file = "{suite.path(case, f"trace-{i}")}"')
            for i in range(first, first + count)]


def mount(suite, case, tracers, *options):
    source = suite.folder(case, "source")
    point = suite.folder(case, "mnt")
    config = write_config(suite, case + ".conf", tracers)
    return suite.mount_command(
        [os.path.join(suite.bin, "tracefs-mount"), source, point, "--foreground",
         "--transport", suite.options.transport, "--config", config, *options],
        point)


def ctl(suite, point, *words, status=0):
    return suite.command("tracefs-ctl", point, *words, status=status)


# --- 64 tracers

def as_many_as_documented(suite):
    """All 64 record; the 65th is refused and leaves nothing, until one goes."""
    case = "many"
    suite.folder(case)
    running = mount(suite, case, many(suite, case, MOST))
    os.mkdir(os.path.join(running.point, "one"))
    one_more = write_config(suite, "more.conf", many(suite, case, 1, MOST))
    said = ctl(suite, running.point, "add", one_more, status=2)
    expect("64 tracers run already" in said and "stop one" in said, said)
    expect(not os.path.exists(suite.path(case, f"trace-{MOST}")),
           "the refused tracer has left its file")
    ctl(suite, running.point, "remove", "t7")
    ctl(suite, running.point, "add", one_more)
    os.mkdir(os.path.join(running.point, "two"))
    running.unmount()
    for i in range(MOST + 1):
        paths = [event["path"] for event in
                 suite.read(suite.path(case, f"trace-{i}"))]
        expect_equal(paths, (["/one"] if i == 7 else
                             ["/two"] if i == MOST else ["/one", "/two"]),
                     f"tracer {i}")


def many_with_keys(suite):
    """Each tracer that is added brings two descriptors, a file and a key, and all
    come with one request."""
    case = "keys"
    suite.folder(case)
    key = suite.path(case, "secret.key")
    suite.command("tracefs-keygen", "secret", key)
    running = mount(suite, case, many(suite, case, 1))
    tracers = [(name, filter_text, f'encrypt key = "file:{key}"; {output}')
               for name, filter_text, output in many(suite, case, MOST - 1, 1)]
    ctl(suite, running.point, "add", write_config(suite, "keys.conf", tracers))
    os.mkdir(os.path.join(running.point, "one"))
    running.unmount()
    for i in range(1, MOST):
        told = suite.command("tracefs-dump", "--key", key,
                             suite.path(case, f"trace-{i}"))
        expect("/one" in told, f"tracer {i}: {told}")


def an_added_trace_is_named_by_its_date(suite):
    """%date is put in by tracefs-ctl, %% stays a %, and %serial is refused: who
    makes the file does not know it."""
    case = "dated"
    suite.folder(case)
    running = mount(suite, case, many(suite, case, 1))
    begin = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    ctl(suite, running.point, "add", write_config(
        suite, "dated.conf", [(
            "t", "op = mkdir",
            f'file = "{suite.path(case, "50%%-%date-%%date.trace")}"')]))
    os.mkdir(os.path.join(running.point, "one"))
    said = ctl(suite, running.point, "add", write_config(
        suite, "serial.conf", [("s", "", f'file = "{suite.path(case, "%serial")}"')]),
        status=2)
    expect("%serial is for the config that a mount begins with" in said and
           "serial.conf:1:" in said, said)
    running.unmount()
    name, = [name for name in os.listdir(suite.path(case)) if name.startswith("50")]
    end = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    expect(name.startswith("50%-") and name.endswith("Z-%date.trace") and
           begin <= name[4:20] <= end, name)
    expect_equal([event["path"] for event in suite.read(suite.path(case, name))],
                 ["/one"], "what it has")


def one_too_many_in_a_config(suite):
    case = "too-many"
    suite.folder(case)
    config = write_config(suite, case + ".conf", many(suite, case, MOST + 1))
    done = suite.tool("tracefs-mount", suite.folder(case, "source"),
                      suite.folder(case, "mnt"), "--config", config)
    expect_equal(done.returncode, 2, done.stderr)
    expect("more than 64 tracers" in done.stderr, done.stderr)
    expect_equal(sorted(os.listdir(suite.path(case))), ["mnt", "source"],
                 "what is left")


def rules_count_too(suite):
    """A tracer feeds the rules of another: those are counted before a file is
    made."""
    case = "rules"
    suite.folder(case)
    config = suite.path(case + ".conf")
    with open(config, "w", encoding="ascii") as out:
        for i in range(MOST):
            out.write('{ { op = mkdir } { stream = { STR_ALL }; '
                      'when rate(mkdir) > 5/s then { alarm "a" } } '
                      '{ file = "%s" } }\n' % suite.path(case, f"trace-{i}"))
    done = suite.tool("tracefs-mount", suite.folder(case, "source"),
                      suite.folder(case, "mnt"), "--config", config)
    expect_equal(done.returncode, 2, done.stderr)
    expect("at most 64 run at a time" in done.stderr, done.stderr)
    expect_equal(sorted(os.listdir(suite.path(case))), ["mnt", "source"],
                 "what is left")


# --- Mounts that do not begin

def what_fails_leaves_nothing(suite):
    """Whatever a mount fails for, and however far it came: the same command works
    once the reason is gone."""
    case = "failing"
    source = suite.folder(case, "source")
    point = suite.folder(case, "mnt")
    good = ("good", "", f'compress; file = "{suite.path(case, "good")}"')
    rotated = ("rotated", "",
               f'file = "{suite.path(case, "rotated")}" rotate_count = 1000')
    flight = ("flight", "", f'flight = "{suite.path(case, "flight")}" '
                            f'map = "{suite.path(case, "map")}"')
    broken = ("broken", "", 'file = "/dev/full"')  # refuses its first bytes
    plain = suite.path(case, "plain")
    open(plain, "wb").close()
    kept = {"source", "mnt", "plain"}

    def refused(tracers, at, *options):
        config = write_config(suite, case + ".conf", tracers)
        done = suite.tool("tracefs-mount", source, at, "--config", config,
                          "--transport", suite.options.transport, *options)
        expect(done.returncode in (2, 3), f"{done.returncode}: {done.stderr}")
        expect_equal(set(os.listdir(suite.path(case))), kept, done.stderr)
        return done.stderr

    three = [good, rotated, flight]
    refused([*three, broken], point)
    refused(three, suite.path(case, "no-such-place"))
    said = refused(three, plain)
    expect("Not a directory" in said, said)
    refused(three, point, "-o", "nonsense")
    running = mount(suite, case, three)
    os.mkdir(os.path.join(running.point, "works"))
    running.unmount()
    # What has begun stays, though nothing else happened.
    for trace in ("good", "rotated"):
        expect([e for e in suite.read(suite.path(case, trace))
                if e["op"] == "mkdir"], f"{trace} has no mkdir")


# --- Names

def a_name_is_as_good_as_an_id(suite):
    case = "named"
    running = mount(suite, case, [
        ("all", "op = mkdir", f'file = "{suite.path(case, "all")}"'),
        ("box", "op = mkdir", f'flight = "{suite.path(case, "box")}"')])

    def state(name):
        listed = json.loads(ctl(suite, running.point, "list", "--format", "json"))
        return {t["name"]: t for t in listed["tracers"]}[name]

    ctl(suite, running.point, "stop", "all")
    expect_equal(state("all")["state"], "stopped", "stop NAME")
    ctl(suite, running.point, "start", "all")
    expect_equal(state("all")["state"], "running", "start NAME")
    ctl(suite, running.point, "set-filter", "all", "op = rmdir")
    expect_equal(state("all")["filter"], "op = rmdir", "set-filter NAME")
    made = ctl(suite, running.point, "snapshot", "box").strip()
    expect(os.path.exists(made), made)
    said = ctl(suite, running.point, "stop", "al", status=2)
    expect("no tracer is named 'al'" in said and "'all'" in said, said)
    # Of two with one name neither is guessed.
    again = write_config(suite, "again.conf", [
        ("all", "", f'file = "{suite.path(case, "again")}"')])
    ctl(suite, running.point, "add", again)
    said = ctl(suite, running.point, "stop", "all", status=2)
    expect("more than one tracer" in said and "1 3" in said, said)
    ctl(suite, running.point, "stop", "3")
    ctl(suite, running.point, "remove", "box")
    running.unmount()


# --- What an unmount waits for

def in_another_namespace(*command):
    return ["unshare", "--mount", "--propagation", "private", *command]


def begin_unmount(suite, point, *options):
    return suite.background(subprocess.Popen(
        [os.path.join(suite.bin, "tracefs-ctl"), point, "unmount", *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))


def an_unmount_names_what_it_waits_for(suite):
    """A copy of the mount in another mount namespace keeps its daemon alive: it is
    named, with a process that is there; the wait ends by time, by a signal, and
    when the copy goes."""
    case = "waiting"
    running = mount(suite, case, [
        ("all", "op = mkdir", f'file = "{suite.path(case, "all")}"')])
    holder = suite.background(subprocess.Popen(
        in_another_namespace("sleep", "600")))
    wait_until(lambda: os.readlink(f"/proc/{holder.pid}/ns/mnt")
               != os.readlink("/proc/self/ns/mnt"), "the namespace")
    waiting = begin_unmount(suite, running.point, "--timeout", "4")
    first = waiting.stderr.readline()
    expect(f"process {holder.pid} (sleep)" in first and running.point in first
           and "mount namespace" in first, first)
    expect_equal(waiting.wait(), 3, "the status after --timeout")
    last = waiting.stderr.read()
    expect("not complete after 4s" in last and str(holder.pid) in last, last)
    expect(running.process.poll() is None, "the daemon has ended")
    holder.terminate()
    holder.wait()
    running.wait(0)
    expect_equal(suite.read(suite.path(case, "all")), [], "the trace")


def an_unmount_can_be_interrupted(suite):
    case = "interrupted"
    running = mount(suite, case, [
        ("all", "op = mkdir", f'file = "{suite.path(case, "all")}"')])
    holder = suite.background(subprocess.Popen(
        in_another_namespace("sleep", "600")))
    wait_until(lambda: os.readlink(f"/proc/{holder.pid}/ns/mnt")
               != os.readlink("/proc/self/ns/mnt"), "the namespace")
    waiting = begin_unmount(suite, running.point)
    waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    expect_equal(waiting.wait(), 3, "the status after SIGINT")
    said = waiting.stderr.read()
    expect("not complete yet" in said and str(holder.pid) in said, said)
    # It goes on when the holder does not.
    holder.terminate()
    holder.wait()
    running.wait(0)


def a_busy_mount_names_its_users(suite):
    case = "busy"
    running = mount(suite, case, [
        ("all", "op = mkdir", f'file = "{suite.path(case, "all")}"')])
    name = os.path.join(running.point, "in use\x1b[31m")
    with open(name, "w", encoding="ascii"):
        holder = suite.background(subprocess.Popen(
            ["sleep", "600"], cwd=running.point, stdin=subprocess.DEVNULL))
        said = ctl(suite, running.point, "unmount", status=3)
    expect(f"process {holder.pid} (sleep) has its working directory in it"
           in said, said)
    expect(f"process {os.getpid()} (" in said and "an open file" in said, said)
    expect("\x1b" not in said, "a name reaches the terminal")
    expect(running.is_mounted(), "it is gone")
    holder.terminate()
    holder.wait()
    ctl(suite, running.point, "unmount")
    running.wait(0)


# --- What a header says of the directory below

def the_file_system_below_is_named(suite, kind):
    why = suite.no_file_system(kind)
    if why:
        return Skip(why)
    with suite.file_system("below-" + kind, kind) as below:
        source = os.path.join(below, "deep", "er")
        os.makedirs(source)
        point = suite.folder("mnt-" + kind)
        trace = suite.path(kind + ".trace")
        config = write_config(suite, kind + ".conf",
                              [("all", "op = mkdir", f'file = "{trace}"')])
        running = suite.mount_command(
            [os.path.join(suite.bin, "tracefs-mount"), source, point,
             "--foreground", "--transport", suite.options.transport,
             "--config", config], point)
        running.unmount()
        header = suite.command("tracefs-dump", "--header", trace)
    found = [line.split(None, 1)[1] for line in header.splitlines()
             if line.strip().startswith("backing.fs_type")]
    expect_equal(found, [kind], header)
    return None


def main():
    suite = Suite("tracers", __doc__)
    for case in (as_many_as_documented, many_with_keys,
                 an_added_trace_is_named_by_its_date, one_too_many_in_a_config,
                 rules_count_too, what_fails_leaves_nothing,
                 a_name_is_as_good_as_an_id,
                 an_unmount_names_what_it_waits_for,
                 an_unmount_can_be_interrupted, a_busy_mount_names_its_users):
        suite.run(case.__name__.replace("_", " "), case, suite)
    for kind in FILE_SYSTEMS:
        suite.run(f"{kind} below is named", the_file_system_below_is_named,
                  suite, kind)
    suite.finish()


if __name__ == "__main__":
    main()
