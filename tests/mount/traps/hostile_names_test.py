#!/usr/bin/env python3
"""Names with anything in them, of sources, mount points and outputs: the mount
is the one that was asked for, the mount table says so, tracefs-ctl finds it and
the trace is where it should be."""

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from tracefs_harness import Skip, Suite, expect, expect_equal, wait_until

# What a name is meant to break: lists of mount options, the mount table, the
# lines of a file, a shell, a terminal, JSON, a command line.
NAMES = {
    "comma": b"a,ro,b",
    "comma at the end": b"a,",
    "an option": b"x,max_read=4096,subtype=none,fsname=y",
    "backslashes": b"a\\b\\,c\\",
    "what looks like octal": b"a\\054ro\\040b",
    "spaces": b" a  b ",
    "newlines": b"a\nb\n",
    "a tab and a bell": b"a\tb\x07",
    "quotes": b"a\"b'c`d",
    "not UTF-8": b"a\xff\xfe\xc3b",
    "UTF-8": "ä\u202e\u2028€".encode(),
    "an escape sequence": b"\x1b[2J\x1b]0;x\x07",
    "a leading dash": b"-o",
    "long dashes": b"--sandbox",
    "an end of options": b"--",
    "a hash and a percent": b"#a%s%n",
    "an equals sign": b"=,=",
    "a deleted file": b"a (deleted)",
    "fields of the mount table": b"a\v-\vfuse.other\fx\rrw,user_id=4711\v",
    "the longest": b"," * 255,
}


def quoted(path):
    """As a config writes it: in a name of an output % begins a word."""
    path = path.replace(b"%", b"%%")
    return '"' + "".join(
        chr(b) if chr(b).isalnum() and b < 128 or b in b"/._-" else f"\\x{b:02x}"
        for b in path) + '"'


def octal(text):
    return re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), text)


def table_of(point, pid="self"):
    """Source, mount options and super options of what is mounted there."""
    with open(f"/proc/{pid}/mountinfo", "rb") as lines:
        for line in lines:
            left, right = line.rstrip(b"\n").split(b" - ")
            fields = left.split(b" ")
            if octal(fields[4]) == point:
                kind, source, options = right.split(b" ")
                return (kind.decode(), octal(source),
                        set(fields[5].decode().split(",")),
                        set(options.decode().split(",")))
    return None


class Place:
    """A source, a mount point and a folder for traces, all of that name."""

    def __init__(self, suite, name):
        self.top = os.fsencode(suite.folder("hostile"))
        self.source = os.path.join(self.top, b"source", name)
        self.point = os.path.join(self.top, b"mnt", name)
        self.traces = os.path.join(self.top, b"traces", name)
        for folder in (self.source, self.point, self.traces):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        # Rotated parts add to the name.
        self.trace = os.path.join(self.traces, name[:240])
        with open(os.path.join(self.source, b"file"), "wb") as out:
            out.write(b"content")

    def config(self, output=None):
        path = os.path.join(self.top, b"config")
        with open(path, "w", encoding="ascii") as out:
            out.write("{ { op = read OR op = open OR op = create }\n"
                      "  { stream = { STR_ALL } }\n  { file = %s } }\n"
                      % quoted(output or self.trace))
        return path


def check_mounted(place, plain):
    """The table is that of a mount with an innocent name but for the names."""
    kind, found, options, super_options = table_of(place.point)
    expect_equal(kind, "fuse.tracefs", "type")
    expect_equal(found, place.source, "source in the mount table")
    expect_equal(options, plain[2], "mount options")
    expect_equal(super_options, plain[3], "options of the file system")


def use(place):
    with open(os.path.join(place.point, b"file"), "rb") as text:
        expect_equal(text.read(), b"content", "what is read")
    with open(os.path.join(place.point, b"new"), "wb") as out:
        out.write(b"x")


def events_of(suite, trace):
    return [(e["op"], e.get("path")) for e in suite.read(trace)]


def ctl(suite, point, *arguments):
    result = subprocess.run([os.path.join(suite.bin, "tracefs-ctl"), point,
                             *arguments], capture_output=True, check=False)
    expect(result.returncode == 0,
           f"tracefs-ctl: {os.fsdecode(result.stderr)}")
    return result.stdout


def plain_table(suite):
    place = Place(suite, b"plain")
    mount = suite.mount(place.source, place.point, config=place.config())
    table = table_of(place.point)
    mount.unmount()
    return table


def source_point_and_output(suite, plain, name):
    place = Place(suite, name)
    mount = suite.mount(place.source, place.point, config=place.config())
    check_mounted(place, plain)
    use(place)
    listed = json.loads(ctl(suite, place.point, "list", "--format", "json"))
    expect_equal(listed["mount"], place.point.decode("utf-8", "replace"),
                 "mount point as tracefs-ctl says it")
    expect_equal(listed["source"], place.source.decode("utf-8", "replace"),
                 "source as tracefs-ctl says it")
    ctl(suite, os.path.join(place.point, b"file"), "flush")
    mount.unmount()
    expect_equal(os.listdir(place.traces), [name[:240]], "traces")
    found = events_of(suite, place.trace)
    for wanted in (("open", "/file"), ("read", "/file"), ("create", "/new")):
        expect(wanted in found, f"{wanted} is not in the trace: {found}")


def over_itself(suite, plain, name):
    place = Place(suite, name)
    place.point = place.source
    # An output inside, beneath the mount.
    mount = suite.mount(place.source, place.point, config=place.config(
        os.path.join(place.source, b"t" + name[:100])))
    check_mounted(place, plain)
    use(place)
    mount.unmount()
    expect(b"t" + name[:100] in os.listdir(place.source), "no trace")


def relative_names(suite, plain, name):
    """As somebody types them who stands there; the table has whole paths."""
    place = Place(suite, name)
    mount = suite.mount(os.path.join(b"source", name),
                        os.path.join(b"mnt", name), config=place.config(),
                        cwd=place.top, point=place.point)
    check_mounted(place, plain)
    use(place)
    mount.unmount()


def added(suite, name):
    """An output that tracefs-ctl opens for the daemon."""
    place = Place(suite, name)
    mount = suite.mount(place.source, place.point, config=place.config())
    more = os.path.join(place.traces, name[:200] + b"-more")
    ctl(suite, place.point, "add", place.config(more))
    use(place)
    mount.unmount()
    expect_equal(sorted(os.listdir(place.traces)),
                 sorted([name[:240], os.path.basename(more)]), "traces")
    expect(("read", "/file") in events_of(suite, more), "no read")


def killed(suite, name):
    """The watchdog finds the mount whatever it is called."""
    place = Place(suite, name)
    mount = suite.mount(place.source, place.point, config=place.config())
    mount.kill()
    wait_until(lambda: table_of(place.point) is None, "the watchdog")


def of_a_user(suite, name):
    if shutil.which("fusermount3") is None:
        return Skip("fusermount3 is not installed")
    place = Place(suite, name)
    # One that fusermount3 finds a name for.
    uid = pwd.getpwnam("nobody").pw_uid
    for folder in (place.source, place.point, place.traces):
        os.chown(folder, uid, uid)
    os.chown(os.path.join(place.source, b"file"), uid, uid)
    device = suite.path("fuse")
    if not os.path.exists(device):
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(10, 229))
        os.chmod(device, 0o666)
    # In a mount namespace of its own, where /dev/fuse is for all.
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    daemon = suite.background(subprocess.Popen(
        ["unshare", "--mount", "sh", "-c",
         f'mount --bind {device} /dev/fuse && exec "$@"', "sh", *user,
         os.path.join(suite.bin, "tracefs-mount"), "--config", place.config(),
         "--foreground", "--", place.source, place.point],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE))
    said = b""
    while b"mounted\n" not in said:
        line = daemon.stderr.readline()
        expect(line, f"it did not mount: {os.fsdecode(said)}")
        said += line
    kind, found, _, options = table_of(place.point, daemon.pid)
    expect_equal((kind, found), ("fuse.tracefs", place.source), "mount table")
    expect_equal(options & {"allow_other", "max_read=4096"}, set(), "options")
    subprocess.run(["nsenter", f"--mount=/proc/{daemon.pid}/ns/mnt", *user,
                    "cat", os.path.join(place.point, b"file")], check=True,
                   capture_output=True)
    daemon.terminate()
    expect_equal(daemon.wait(30), 0, "the daemon's exit status")
    expect(("read", "/file") in events_of(suite, place.trace), "no read")
    return None


def a_name_that_begins_with_a_dash(suite):
    place = Place(suite, b"-x")
    mount = suite.mount(b"-x", place.point, config=place.config(),
                        cwd=os.path.join(place.top, b"source"))
    use(place)
    mount.unmount()


class HostileSuite(Suite):
    def mount(self, source, mount_point, config, point=None, cwd=None):
        """Mounts with a config that is there; all names may be bytes."""
        arguments = (["--config", config, "--foreground", "--visibility",
                      "exact", "--transport", self.options.transport])
        # "--" ends the options, as with every command.
        return self.mount_command(
            [os.path.join(self.bin, "tracefs-mount"), *arguments, b"--",
             source, mount_point], os.fsdecode(point or mount_point), cwd=cwd)


def main():
    suite = HostileSuite("hostile", __doc__)
    plain = plain_table(suite)
    for title, name in NAMES.items():
        suite.run(title, source_point_and_output, suite, plain, name)
    for title in ("comma", "backslashes", "newlines", "not UTF-8",
                  "fields of the mount table"):
        name = NAMES[title]
        suite.run(f"{title}, over itself", over_itself, suite, plain, name)
        suite.run(f"{title}, relative", relative_names, suite, plain, name)
        suite.run(f"{title}, killed", killed, suite, name)
    for title in ("comma", "backslashes", "newlines", "quotes", "not UTF-8",
                  "UTF-8", "a leading dash"):
        suite.run(f"{title}, added", added, suite, NAMES[title])
    for title in ("an option", "backslashes", "spaces", "newlines",
                  "not UTF-8", "quotes", "fields of the mount table"):
        suite.run(f"{title}, of a user", of_a_user, suite, NAMES[title])
    suite.run("a name that begins with a dash", a_name_that_begins_with_a_dash,
              suite)
    suite.finish()


if __name__ == "__main__":
    main()
