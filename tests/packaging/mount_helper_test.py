#!/usr/bin/env python3
"""mount(8), fstab and umount(8) know the type fuse.tracefs, with the meaning that
options have elsewhere. Runs in mount and pid namespaces of its own, in which
helpers lie where mount(8) looks for them."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from staged import expect, finish, have, must, run

SKIPPED = 77
PATIENCE_S = 60
NOBODY = 65534


def enter():
    """Starts this program again where mounts are its own."""
    if "TRACEFS_ENTERED" in os.environ:
        return
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("mounting takes root and /dev/fuse")
        sys.exit(SKIPPED)
    os.environ["TRACEFS_ENTERED"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
                          "--pid", "--fork", "--kill-child", "--mount-proc",
                          sys.executable, "-B", *sys.argv])


class World:
    def __init__(self, commands, folder):
        self.commands = commands
        self.folder = folder
        helpers = folder / "sbin"
        helpers.mkdir()
        for name in ("mount.fuse.tracefs", "umount.fuse.tracefs"):
            os.symlink(commands / name, helpers / name)
        # /sbin with two more files; the machine's own stays as it is.
        done = run("mount", "-t", "overlay", "-o",
                   f"lowerdir={helpers}:/usr/sbin", "overlay", "/usr/sbin")
        if done.returncode != 0:
            print(f"no overlay here: {done.stderr}")
            sys.exit(SKIPPED)
        must("mount", "-t", "tmpfs", "run", "/run")
        os.mkdir("/run/mount")
        self.source = folder / "source"
        self.point = folder / "point"
        self.source.mkdir()
        self.point.mkdir()
        self.number = 0

    def config(self, chain=""):
        """A config with a trace of its own: both names."""
        self.number += 1
        trace = self.folder / f"{self.number}.trace"
        config = self.folder / f"{self.number}.conf"
        config.write_text("{ { } { stream = { STR_ALL } } { %s file = \"%s\" } "
                          "}\n" % (chain, trace))
        return config, trace

    def mount(self, *options, chain="", source=None):
        config, trace = self.config(chain)
        done = run("mount", "-t", "fuse.tracefs", "-o",
                   ",".join([f"config={config}", *options]),
                   source or self.source, self.point, cwd="/")
        return done, trace

    def mounted(self):
        """type, source and options of what lies there; None: nothing of ours."""
        out = run("findmnt", "-J", "-o", "FSTYPE,SOURCE,VFS-OPTIONS,FS-OPTIONS",
                  "-M", self.point).stdout
        if not out:
            return None
        return json.loads(out)["filesystems"][-1]

    def umount(self, *words):
        return run("umount", *words, self.point)

    def daemons(self):
        """How many there are; what one has started for itself is not another."""
        parents = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # of one that nobody has waited for yet it is empty
                words = (entry / "cmdline").read_bytes().split(b"\0")
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if b"tracefs-mount" in words[0]:
                    parents[entry.name] = stat[1]
        return sum(parent not in parents for parent in parents.values())

    def daemons_are(self, count):
        """Sooner or later: of one that has ended its watchdog goes last."""
        deadline = time.monotonic() + PATIENCE_S
        while self.daemons() != count and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.daemons() == count

    def complete(self, trace):
        return run(self.commands / "tracefs-verify", "--accept-unsealed",
                   trace).returncode == 0


def check_plain(world):
    done, trace = world.mount()
    expect(done.returncode == 0, f"mount: {done.stderr}")
    there = world.mounted()
    expect(there and there["fstype"] == "fuse.tracefs" and
           there["source"] == str(world.source), f"findmnt: {there}")
    options = (there["vfs-options"] + "," + there["fs-options"]).split(",")
    expect("nosuid" not in options and "nodev" not in options,
           f"nobody asked for these: {options}")
    again, _ = world.mount()
    expect(again.returncode == 32, f"a second one: {again.returncode}")
    expect("already" in again.stderr, again.stderr)
    (world.point / "file").write_text("text")
    expect(world.umount().returncode == 0, "umount")
    expect(world.mounted() is None, "it is still mounted")
    expect(world.complete(trace), "umount returned before the trace was whole")
    expect(world.daemons_are(0), "a daemon stays")


def check_options(world):
    kept = {"ro": "ro", "nosuid": "nosuid", "noexec": "noexec",
            "noatime": "noatime"}
    for option in ("ro", "nosuid", "noexec", "noatime", "relatime",
                   "strictatime", "nofail", "_netdev", "noauto", "x-a", "X-b",
                   "comment=z", "silent", "async", "visibility=exact",
                   "allow_other", "max_read=65536"):
        done, _ = world.mount(option)
        expect(done.returncode == 0, f"-o {option}: {done.stderr}")
        there = world.mounted()
        if option in kept and there:
            expect(kept[option] in (there["vfs-options"] + "," +
                                    there["fs-options"]).split(","),
                   f"-o {option}: {there}")
        expect(world.umount().returncode == 0, f"umount after -o {option}")
    for option, text in (("lazytime", "below"), ("sync", "below"),
                         ("dirsync", "below"), ("visibility=exakt", "exact"),
                         ("bogus=1", "bogus"), ("fsname=x", "not for others"),
                         ("user_id=1000", "not for others")):
        done, _ = world.mount(option)
        expect(done.returncode == 1 and text in done.stderr,
               f"-o {option}: {done.returncode} {done.stderr}")
        expect(world.mounted() is None, f"mounted with -o {option}")
    for name in ("a,suid,dev", "a b", "a\\c"):
        (world.folder / name).mkdir()
        config, _ = world.config()
        done = run(world.commands / "mount.fuse.tracefs", world.folder / name,
                   world.point, "-o", f"rw,nosuid,nodev,config={config}")
        there = world.mounted()
        expect(there and there["source"] == str(world.folder / name) and
               "nosuid" in there["vfs-options"], f"{name}: {there}")
        world.umount()
    quoted = world.folder / "with, comma.conf"
    config, _ = world.config()
    config.rename(quoted)
    done = run("mount", "-t", "fuse.tracefs", "-o", f'config="{quoted}"',
               world.source, world.point)
    expect(done.returncode == 0, f"a comma in a config's name: {done.stderr}")
    world.umount()


def check_failures(world):
    config, trace = world.config()

    def mount(options, source=world.source):
        done = run("mount", "-t", "fuse.tracefs", "-o", options, source,
                   world.point)
        expect(world.mounted() is None, f"{options}: something is mounted")
        return done

    gone = world.folder / "gone"
    for what, options, source in (
            ("no source", f"config={config}", gone),
            ("no config", f"config={gone}", world.source)):
        done = mount(options, source)
        expect(done.returncode in (1, 32) and done.stderr,
               f"{what}: {done.returncode} {done.stderr}")
        done = mount(options + ",nofail", source)
        expect(done.returncode == 0 and done.stderr,
               f"{what}, nofail: {done.returncode} {done.stderr}")
    trace.touch()  # is no reason: it comes after what is to be traced
    done = mount(f"config={config}", gone)
    expect(done.returncode == 32 and str(gone) in done.stderr and
           str(trace) not in done.stderr, f"no source: {done.stderr}")
    trace.unlink()
    bad = world.folder / "bad.conf"
    bad.write_text("{ { nonsense = 1 } { } { file = x } }")
    done = mount(f"config={bad}")
    expect(done.returncode == 1 and "nonsense" in done.stderr,
           f"a bad config: {done.returncode} {done.stderr}")
    done = run("mount", "-f", "-t", "fuse.tracefs", "-o", f"config={config}",
               world.source, world.point)
    expect(done.returncode == 0 and world.mounted() is None, "mount -f mounts")
    # Another command reads what mount prints: the daemon must let go of it.
    out = subprocess.run(f"mount -t fuse.tracefs -o config={config} "
                         f"{world.source} {world.point} | cat", shell=True,
                         timeout=60, check=False, capture_output=True)
    expect(out.returncode == 0 and world.mounted(), "mount | cat")
    world.umount()
    done = run("mount", "-t", "tracefs", "nodev", world.point)
    expect(done.returncode != 0 or
           run("findmnt", "-no", "FSTYPE", world.point).stdout.strip() ==
           "tracefs", "the kernel's tracefs is not what is mounted")
    if done.returncode == 0:
        world.umount()


def check_without_config(world):
    """It records to a dated trace of its own, as tracefs-mount does; rules=FILE
    watches."""
    must("mount", "-t", "tmpfs", "lib", "/var/lib")
    try:
        done = run("mount", "-f", "-t", "fuse.tracefs", world.source, world.point)
        expect(done.returncode == 0 and world.mounted() is None, "mount -f mounts")
        rules = world.folder / "made.rules"
        rules.write_text('when seen(op = mkdir) then { alarm "made" };')
        for options in ((), ("-o", f"rules={rules}")):
            done = run("mount", "-t", "fuse.tracefs", *options, world.source,
                       world.point)
            expect(done.returncode == 0 and world.mounted(),
                   f"without config=: {done.returncode} {done.stderr}")
            (world.point / f"made{len(options)}").mkdir()
            expect(world.umount().returncode == 0, "umount")
            # The second one of a second has another name.
        traces = sorted(pathlib.Path("/var/lib/tracefs/traces").iterdir(),
                        key=os.path.getmtime)
        told = [run(world.commands / "tracefs-dump", "--format", "jsonl",
                    trace).stdout for trace in traces]
        expect(len(told) == 2 and all('"op":"mkdir"' in t for t in told) and
               ['"alarm":"made"' in t for t in told] == [False, True],
               f"{traces}: {told}")
        expect(run("mount", "-t", "fuse.tracefs", "-o",
                   f"rules={rules},config=/x", world.source,
                   world.point).returncode == 1, "rules= beside config=")
    finally:
        must("umount", "/var/lib")


def check_fstab(world):
    config, trace = world.config()
    fstab = world.folder / "fstab"
    fstab.write_text(f"{world.source} {world.point} fuse.tracefs "
                     f"config={config},nofail,x-systemd.automount 0 0\n")
    for _ in range(2):
        done = run("mount", "-a", "-T", fstab)
        expect(done.returncode == 0, f"mount -a: {done.stderr}")
    expect(world.daemons_are(1), "mount -a has mounted it twice")
    (world.point / "from-fstab").touch()
    expect(world.umount().returncode == 0, "umount of what fstab has mounted")
    expect(world.complete(trace), "its trace is not complete")
    expect(not pathlib.Path("/run/mount/utab").read_text().strip(),
           "a line stays in utab")
    # The command line comes behind what fstab has, and counts.
    other, _ = world.config()
    fstab.write_text(f"{world.source} {world.point} fuse.tracefs config={trace},"
                     "visibility=fast,log=journal 0 0\n")
    done = run("mount", "-T", fstab, "-o", f"config={other},visibility=exact,"
               "log=none", world.point)
    expect(done.returncode == 0 and world.mounted(), f"overruled: {done.stderr}")
    said = run(world.commands / "tracefs-ctl", world.point, "explain").stdout
    expect("--visibility exact" in said, f"overruled: {said}")
    expect(world.umount().returncode == 0, "umount of what was overruled")


def check_remount(world):
    done, _ = world.mount("nosuid")
    expect(done.returncode == 0, done.stderr)
    expect(world.daemons_are(1), "more than one daemon")

    def remount(options):
        return run("mount", "-o", "remount," + options, world.point)

    expect(remount("ro").returncode == 0, "remount,ro")
    there = world.mounted()
    expect("ro" in there["fs-options"].split(",") and
           "nosuid" in there["vfs-options"].split(","), f"remount,ro: {there}")
    try:
        (world.point / "x").touch()
        expect(False, "writable after remount,ro")
    except OSError:
        pass
    done = remount("rw")
    expect(done.returncode == 0, f"remount,rw: {done.stderr}")
    with open(world.point / "held", "w", encoding="ascii"):
        expect(remount("ro").returncode == 32, "read-only under a writer")
    done = remount("visibility=exact")
    expect(done.returncode == 1 and "visibility" in done.stderr,
           f"remount,visibility=exact: {done.returncode} {done.stderr}")
    expect(remount("visibility=auto").returncode == 0, "the same visibility")
    expect(remount("noexec").returncode == 0 and
           "noexec" in world.mounted()["vfs-options"], "remount,noexec")
    config, trace = world.config()
    expect(remount(f"config={config}").returncode == 0 and trace.exists(),
           "remount,config=")
    expect(world.daemons_are(1), "a remount has started a daemon")
    expect(world.umount().returncode == 0, "umount after remounts")


def check_complete(world, rounds):
    """Each umount returns when all is in the trace, whatever the chain does."""
    key = world.folder / "key"
    must(world.commands / "tracefs-keygen", "secret", key)
    chain = (f"compress level = 9; encrypt key = \"file:{key}\"; "
             f"checksum key = \"file:{key}\"; ")
    for number in range(rounds):
        done, trace = world.mount(chain=chain)
        expect(done.returncode == 0, done.stderr)
        for i in range(300):
            (world.point / "many").write_text(str(i))
        words = (["-c"], [], ["-n"])[number % 3]
        done = world.umount(*words)
        expect(done.returncode == 0, f"umount {words}: {done.stderr}")
        done = run(world.commands / "tracefs-verify", "--accept-unsealed",
                   "--key", key, trace)
        expect(done.returncode == 0,
               f"round {number}, umount {words}: {done.stdout}{done.stderr}")


def check_twice(world):
    """A second start of the same, by whatever way, is told and makes nothing."""
    done, trace = world.mount()
    expect(done.returncode == 0, done.stderr)
    config, other = world.config()
    done = run(world.commands / "tracefs-mount", world.source, world.point,
               "--config", config)
    expect(done.returncode == 3 and "already" in done.stderr and
           "tracefs-ctl" in done.stderr, f"{done.returncode} {done.stderr}")
    expect(not other.exists(), "it has made a trace")
    expect(world.daemons_are(1), "there are two daemons")
    expect(world.umount().returncode == 0 and world.mounted() is None,
           "one umount is not enough")
    # The trace of the first is no place for the next one's.
    done = run("mount", "-t", "fuse.tracefs", "-o",
               f"config={trace.with_suffix('.conf')}", world.source,
               world.point)
    expect(done.returncode == 32 and "never replaces" in done.stderr and
           str(trace) in done.stderr, f"{done.returncode} {done.stderr}")
    dated = world.folder / "dated.conf"
    dated.write_text("{ { } { stream = { STR_ALL } } { file = "
                     f"\"{world.folder}/dated-%date-%serial.trace\" }} }}\n")
    for number in (1, 2):
        done = run("mount", "-t", "fuse.tracefs", "-o", f"config={dated}",
                   world.source, world.point)
        expect(done.returncode == 0, done.stderr)
        world.umount()
        expect(len(list(world.folder.glob("dated-*.trace"))) == number,
               "with %serial each start has a trace of its own")


def check_full_disk(world):
    """As of a full /var: told before anything is mounted; nofail goes on."""
    disk = world.folder / "disk"
    disk.mkdir()
    must("mount", "-t", "tmpfs", "-o", "size=8m", "full", disk)
    try:
        with contextlib.suppress(OSError), (disk / "all").open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
        config = world.folder / "full.conf"
        config.write_text("{ { } { stream = { STR_ALL } } { file = "
                          f"\"{disk}/trace\" }} }}\n")

        def mount(*more):
            return run("mount", "-t", "fuse.tracefs", "-o",
                       ",".join((f"config={config}", *more)), world.source,
                       world.point)

        done = mount()
        expect(done.returncode == 32 and "No space left" in done.stderr and
               f"{disk}/trace" in done.stderr,
               f"a full disk: {done.returncode} {done.stderr}")
        expect(world.mounted() is None, "a full disk: it is mounted")
        done = mount("nofail")
        expect(done.returncode == 0 and "No space left" in done.stderr,
               f"a full disk, nofail: {done.returncode} {done.stderr}")
        expect(not (disk / "trace").exists(), "an empty trace is left behind")
        (disk / "all").unlink()
        done = mount()
        expect(done.returncode == 0, f"with room again: {done.stderr}")
        if done.returncode != 0:
            return
        # It fills up while work goes on, which must not notice.
        with contextlib.suppress(OSError), (disk / "all").open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
        for number in range(2000):
            (world.point / "many").write_text(str(number))
        expect((world.source / "many").read_text() == "1999", "work was lost")
        done = world.umount()
        expect(done.returncode == 0 and "not all is in the traces" in
               done.stderr, f"umount: {done.returncode} {done.stderr}")
    finally:
        run("umount", "-l", disk)


def check_keys(world):
    """Keys that are not there, not to be read, or to be read by all."""
    key = world.folder / "some.key"
    config = world.folder / "key.conf"
    trace = world.folder / "key.trace"
    config.write_text("{ { } { stream = { STR_ALL } } { encrypt key = "
                      f"\"file:{key}\"; file = \"{trace}\" }} }}\n")

    def mount(what, *words):
        done = run("mount", "-t", "fuse.tracefs", "-o", f"config={config}",
                   world.source, world.point)
        expect(done.returncode in (1, 32) and str(key) in done.stderr and
               all(word in done.stderr for word in words),
               f"{what}: {done.returncode} {done.stderr}")
        expect(world.mounted() is None and not trace.exists(),
               f"{what}: something was made")

    mount("no key", "No such file")
    must(world.commands / "tracefs-keygen", "secret", key)
    key.chmod(0o644)
    mount("a key that all may read", "chmod")
    key.chmod(0o600)
    os.chown(key, NOBODY, NOBODY)
    mount("a key of somebody else", f"user {NOBODY}")
    os.chown(key, 0, 0)
    key.write_text("nonsense\n")
    mount("no key in it", "tracefs-keygen")


def check_user(world):
    """By a line of fstab with `user`, as somebody who may not mount otherwise."""
    if have("fusermount3") is False or have("setpriv") is False:
        return
    must("mknod", "-m", "666", world.folder / "fuse", "c", "10", "229")
    must("mount", "--bind", world.folder / "fuse", "/dev/fuse")
    place = world.folder / "user"
    for part in ("source", "point", "out"):
        (place / part).mkdir(parents=True)
        os.chown(place / part, NOBODY, NOBODY)
    config = place / "user.conf"
    config.write_text("{ { } { stream = { STR_ALL } } { file = "
                      f"\"{place}/out/trace\" }} }}\n")
    fstab = world.folder / "user.fstab"
    line = f"{place}/source {place}/point fuse.tracefs config={config}"
    fstab.write_text(f"{line},user,noauto 0 0\n")
    must("mount", "--bind", fstab, "/etc/fstab")
    there = must("stat", "-f", "-c", "%T", world.commands).strip()

    def as_somebody(uid, *words):
        return run("setpriv", f"--reuid={uid}", f"--regid={uid}",
                   "--clear-groups", *words, cwd="/")

    try:
        if as_somebody(NOBODY, world.commands / "tracefs-mount",
                       "--version").returncode != 0:
            print(f"others may not run what is built here ({there}): mounts of "
                  "users are not checked")
            return
        point = place / "point"
        done = as_somebody(NOBODY, "mount", point)
        expect(done.returncode == 0, f"user: {done.returncode} {done.stderr}")
        options = run("findmnt", "-no", "FSTYPE,VFS-OPTIONS", point).stdout
        expect("fuse.tracefs" in options and
               all(word in options for word in ("nosuid", "nodev", "noexec")),
               f"user: {options}")
        done = as_somebody(NOBODY, "touch", point / "file")
        expect((place / "source/file").exists(), f"user: {done.stderr}")
        done = as_somebody(NOBODY - 1, "umount", point)
        expect(done.returncode != 0, "another user may unmount it")
        done = as_somebody(NOBODY, "umount", point)
        expect(done.returncode == 0, f"umount: {done.returncode} {done.stderr}")
        expect(world.complete(place / "out/trace"),
               "umount returned before the trace of a user was whole")
        expect(run("findmnt", point).returncode != 0, "user: still mounted")
        # What no user can be given is told, not taken away in silence.
        (place / "out/trace").unlink()
        fstab.write_text(f"{line},user,noauto,suid,dev,exec 0 0\n")
        done = as_somebody(NOBODY, "mount", point)
        options = run("findmnt", "-no", "VFS-OPTIONS", point).stdout
        expect(done.returncode == 0 and "nosuid" in options and
               "nodev" in options, f"suid,dev for a user: {options} "
               f"{done.returncode} {done.stderr}")
        as_somebody(NOBODY, "umount", point)
    finally:
        for one in (place / "point", "/etc/fstab", "/dev/fuse"):
            run("umount", "-l", one)


def check_in_use_and_copies(world):
    done, _ = world.mount()
    expect(done.returncode == 0, done.stderr)
    with open(world.point / "open", "w", encoding="ascii"):
        done = world.umount()
        expect(done.returncode == 32 and "in use" in done.stderr,
               f"in use: {done.returncode} {done.stderr}")
    copy = world.folder / "copy"
    copy.mkdir()
    must("mount", "--bind", world.point, copy)
    done = run("umount", "-c", world.point, timeout=30)
    expect(done.returncode == 0, f"one of two places: {done.stderr}")
    (copy / "still").touch()
    expect((world.source / "still").exists(), "the copy serves no more")
    done = run("umount", "-c", copy)
    expect(done.returncode == 0, f"the last place: {done.stderr}")


def check_stopped(world):
    """A daemon that does not answer keeps nobody."""
    done, _ = world.mount()
    expect(done.returncode == 0, done.stderr)
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == "tracefs-mount":
                pids.append(int(path.parent.name))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    done = run("umount", "-c", world.point, timeout=100,
               env={**os.environ, "TRACEFS_UMOUNT_PATIENCE": "2"})
    expect(done.returncode == 0 and done.stderr,
           f"stopped: {done.returncode} {done.stderr}")
    expect(time.monotonic() - begin < 60, "it took as long as it liked")
    expect(world.mounted() is None, "it is still mounted")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    enter()
    with tempfile.TemporaryDirectory(prefix="tracefs-helper-",
                                     ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        world = World((build / "bin").resolve(), pathlib.Path(folder))
        try:
            for check in (check_plain, check_options, check_failures,
                          check_without_config, check_fstab, check_twice, check_full_disk, check_keys,
                          check_user, check_remount, check_in_use_and_copies,
                          check_stopped):
                check(world)
                while world.mounted():
                    expect(False, f"{check.__name__} leaves a mount behind")
                    run("umount", "-l", world.point)
            check_complete(world, rounds=6)
        finally:
            for place in (world.folder / "copy", world.point, "/usr/sbin"):
                run("umount", "-l", place)
    finish("mount_helper_test")


if __name__ == "__main__":
    main()
