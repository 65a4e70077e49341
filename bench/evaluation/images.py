"""File systems of a run's own, each in an image file on the disk behind a loop
device that goes when its mount goes."""

import os
import pathlib
import shutil
import subprocess
import sys

from .commands import Failure, run_command

# mkfs of each place, quiet, and with all that is written later written now:
# otherwise the kernel would write tables of ext4's in the midst of a run.
MKFS = {
    "ext4": ("mkfs.ext4", "-q", "-E",
             "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q"),
}


def attach(name, image, size, point):
    """A new file system of the kind `name` in `image`, mounted at `point`;
    raises Failure, and leaves nothing, where that cannot be had."""
    for program in (MKFS[name][0], "losetup"):
        if not shutil.which(program):
            raise Failure(f"{program} is not installed")
    v = os.statvfs(image.parent)
    if v.f_bavail * v.f_frsize < size:
        raise Failure(f"too little space: an image of {size >> 20} MiB, "
                      f"{v.f_bavail * v.f_frsize >> 20} are free")
    try:
        with open(image, "xb") as file:
            file.truncate(size)
        run_command([*MKFS[name], image], 60)
        device = _loop(image)
        point.mkdir()
        run_command(["mount", "-t", name, device, point], 60)
        # While it is mounted that means: when it is no longer.
        run_command(["losetup", "--detach", device], 30)
    except BaseException as error:
        subprocess.run(["umount", str(point)], capture_output=True,
                       check=False, timeout=60)
        detach(image)
        image.unlink(missing_ok=True)
        if point.exists():
            point.rmdir()
        if isinstance(error, OSError):
            raise Failure(f"no {name} here: {error.strerror}") from None
        raise


def _loop(image):
    """Without a second copy in the page cache, where the disk allows that."""
    find = ["losetup", "--find", "--show", image]
    try:
        return run_command([*find, "--direct-io=on"], 30).strip()
    except Failure as failure:
        detach(image)
        device = run_command(find, 30).strip()
        print(f"run: {image.name} is kept in memory twice: {failure}",
              file=sys.stderr)
        return device


def detach(image):
    """Also of a run that was killed between attaching and mounting."""
    if not shutil.which("losetup"):
        return
    found = subprocess.run(
        ["losetup", "--noheadings", "--output", "NAME", "--associated",
         str(image)], capture_output=True, text=True, check=False, timeout=30)
    for device in found.stdout.split():
        subprocess.run(["losetup", "--detach", device], capture_output=True,
                       check=False, timeout=30)


def detach_all(folder):
    for name in MKFS:
        image = pathlib.Path(folder) / f"{name}.img"
        if image.exists():
            detach(image)
