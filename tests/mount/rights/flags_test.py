#!/usr/bin/env python3
"""What a mount says of set-user-id programs, file capabilities, devices,
programs and symbolic links is what the source's own mount says, unless -o says
otherwise: each is tried by a user, there and through the mount.

  flags_test.py --bin build/release/bin
"""

import os
import shutil
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import Suite, expect, expect_equal  # noqa: E402
import users  # noqa: E402
from users import acting, told  # noqa: E402

FLAGS = ("rw", "nosuid", "nodev", "noexec", "nosymfollow",
         "nosuid,nodev,noexec,nosymfollow")


def fill(folder):
    """One of each, for users to try."""
    program = os.path.join(folder, "id")
    shutil.copy(shutil.which("id"), program)
    os.chown(program, users.ALICE, users.ALICE)
    os.chmod(program, 0o6755)
    shutil.copy(shutil.which("cat"), os.path.join(folder, "able"))
    os.chmod(os.path.join(folder, "able"), 0o755)
    # CAP_DAC_READ_SEARCH, effective.
    os.setxattr(os.path.join(folder, "able"), "security.capability",
                bytes.fromhex("0100000204000000" + "00000000" * 3))
    with open(os.path.join(folder, "secret"), "w", encoding="ascii") as out:
        out.write("secret")
    os.chmod(os.path.join(folder, "secret"), 0o600)
    os.mknod(os.path.join(folder, "null"), stat.S_IFCHR | 0o666,
             os.makedev(1, 3))
    os.chmod(os.path.join(folder, "null"), 0o666)
    os.symlink("id", os.path.join(folder, "link"))


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        return type(error).__name__
    return done.stdout.strip() or f"status {done.returncode}"


def tried(folder):
    at = {name: os.path.join(folder, name) for name in os.listdir(folder)}
    return {"set-user-id": run(at["id"], "-u"), "set-gid": run(at["id"], "-g"),
            "capabilities": run(at["able"], at["secret"]),
            "device": told(os.close, os.open(at["null"], os.O_RDONLY))
            if told(os.open, at["null"], os.O_RDONLY).isdigit()
            else told(os.open, at["null"], os.O_RDONLY),
            "link": told(lambda: os.close(os.open(at["link"], os.O_RDONLY)))}


def as_source(suite, flags, covered, given):
    """`given`: of -o; then it is as if the source had these."""
    source, bare = suite.folder("source"), suite.folder("bare")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "flags", source],
                   check=True)
    trace = suite.path(f"trace-{flags}-{covered}-{given}")
    try:
        fill(source)
        subprocess.run(["mount", "--bind", source, bare], check=True)
        for point, what in ((source, flags), (bare, given or flags)):
            subprocess.run(["mount", "-o", f"remount,bind,{what}", point],
                           check=True)
        native = acting(users.bob, tried, bare)
        point = source if covered else suite.folder("mnt")
        mount = suite.mount(source, point, ("", "STR_ALL", f'file = "{trace}"'),
                            options=("-o", given) if given else ())
        seen = acting(users.bob, tried, point)
        mount.unmount()
        expect_equal(seen, native, "what comes of each")
        if flags == "rw" and not given:
            expect(str(users.ALICE) in seen and "secret'" in seen, seen)
        return seen
    finally:
        suite.stop_mounts()
        for point in (bare, source):
            subprocess.run(["umount", "-l", point], check=False,
                           capture_output=True)


def refused_access_times(suite, given, mounts):
    """In a user namespace the kernel does not let access times of a mount of the
    machine be changed: that is not passed over."""
    source, point = suite.folder("locked"), suite.folder("locked-mnt")
    config = suite.config(("", "STR_ALL",
                           f'file = "{suite.path("locked-" + given)}"'))
    script = ('"$0" "$1" "$2" --config "$3" -o "$4" || exit 9; '
              'grep -c " $2 " /proc/self/mountinfo; umount "$2"')
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script,
         os.path.join(suite.bin, "tracefs-mount"), source, point, config, given],
        capture_output=True, text=True, check=False, timeout=60)
    expect("access times" in done.stderr, done.stderr)
    expect_equal((done.returncode, done.stdout.strip()),
                 (0, "1") if mounts else (9, ""), done.stderr)


def main():
    suite = Suite("flags", __doc__)
    for flags in FLAGS:
        for covered in (False, True):
            where = "over the source" if covered else "elsewhere"
            suite.run(f"of a source with {flags}, {where}", as_source, suite,
                      flags, covered, None)
    for given in ("nosuid,nodev", "noexec", "nosymfollow"):
        suite.run(f"-o {given}", as_source, suite, "rw", False, given)
    for given, mounts in (("noatime", False), ("nodiratime", False),
                          ("ro", True)):
        suite.run(f"-o {given} where access times are locked",
                  refused_access_times, suite, given, mounts)
    suite.finish()


if __name__ == "__main__":
    main()
