"""A mount namespace for a suite in which ordinary users may mount: /dev/fuse is
for all there, and the users have names."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile

from tracefs_harness import mount_points


def enter(users, alone=False):
    """Goes on there, from the begin of the program. `users`: numbers by names.
    `alone`: without the tracefs mounts of others."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        return  # the suite says so
    if os.environ.pop("TRACEFS_TEST_NAMESPACE", "") == "":
        os.environ["TRACEFS_TEST_NAMESPACE"] = "own"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
                              sys.executable, "-B", *sys.argv])
    if alone:
        for point in mount_points("fuse.tracefs"):
            subprocess.run(["umount", "--lazy", point], check=True)
    with tempfile.TemporaryDirectory(prefix="tracefs-fuse-") as folder:
        node = os.path.join(folder, "fuse")
        os.mknod(node, stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
        os.chmod(node, 0o666)
        names = os.path.join(folder, "passwd")
        shutil.copy("/etc/passwd", names)
        with open(names, "a", encoding="utf-8") as out:
            for name, uid in users.items():
                out.write(f"{name}:x:{uid}:{uid}::/:/bin/sh\n")
        subprocess.run(["mount", "--bind", node, "/dev/fuse"], check=True)
        subprocess.run(["mount", "--bind", names, "/etc/passwd"], check=True)
