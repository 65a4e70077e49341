"""Trees of files: everything that a user can see of one, and comparisons."""

import errno
import hashlib
import os
import stat

from tracefs_harness import Failure


def tree_digest(root, exclude=lambda path: False, times=True):
    """Everything a user can see of a tree: {relative path: description}.
    Equal trees give equal dictionaries; hard links are told by the group of
    names they join, not by inode numbers."""
    tree = {}
    links = {}
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            if exclude(relative):
                continue
            tree[relative] = describe(path, times)
            status = os.lstat(path)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                links.setdefault((status.st_dev, status.st_ino),
                                 []).append(relative)
    for names in links.values():
        for name in names:
            tree[name]["same file as"] = sorted(names)
    return tree


def describe(path, times=True):
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    entry = {
        "mode": oct(status.st_mode), "uid": status.st_uid,
        "gid": status.st_gid,
    }
    if kind != stat.S_IFDIR:
        entry["nlink"] = status.st_nlink
    if times and kind != stat.S_IFLNK:
        entry["mtime_ns"] = status.st_mtime_ns
    if kind == stat.S_IFREG:
        entry["size"] = status.st_size
        with open(path, "rb") as content:
            entry["sha256"] = hashlib.file_digest(content,
                                                  "sha256").hexdigest()
    elif kind == stat.S_IFLNK:
        entry["target"] = os.readlink(path)
    elif kind in (stat.S_IFCHR, stat.S_IFBLK):
        entry["device"] = status.st_rdev
    try:
        names = sorted(os.listxattr(path, follow_symlinks=False))
        if names:
            entry["xattrs"] = {
                n: os.getxattr(path, n, follow_symlinks=False).hex()
                for n in names}
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
    return entry


def expect_same_tree(got, want, what, limit=10):
    differences = []
    for path in sorted(set(got) | set(want)):
        if got.get(path) != want.get(path):
            differences.append(
                f"  {path}:\n    got  {got.get(path, 'nothing')}\n"
                f"    want {want.get(path, 'nothing')}")
    if differences:
        more = len(differences) - limit
        text = "\n".join(differences[:limit])
        raise Failure(f"{what}: {len(differences)} paths differ\n{text}"
                      + (f"\n  and {more} more" if more > 0 else ""))
