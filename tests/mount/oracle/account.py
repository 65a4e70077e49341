"""Who did what to which file, added up twice: from strace's log, and from the
JSON Lines of a trace. Neither knows of the other.

A key of `data` is (thread, "read" or "written", path); of `copies` (thread, from,
to); both have bytes. A key of `names` is (thread, what, path, second path or
None), and has a count. Paths are relative to the mount.
"""

import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fidelity"))

# pylint: disable=wrong-import-position
import strace_log  # noqa: E402
from strace_log import Fd  # noqa: E402

CLONE_FS = 0x200
AT_REMOVEDIR = 0x200


class Account:
    def __init__(self):
        self.data = collections.Counter()
        self.copies = collections.Counter()
        self.names = collections.Counter()
        # (thread, path) of what the kernel read in pages of its own for
        # sendfile, splice or exec.
        self.by_pages = set()
        # Names that a file had beside others, or before them.
        self.linked = {}


    def under_one_name(self, linked):
        """The same sums with one of a file's names for all that it had."""
        merged = Account()
        for name in ("data", "copies", "names"):
            for key, value in getattr(self, name).items():
                key = tuple(linked.get(part, part) for part in key)
                getattr(merged, name)[key] += value
        merged.by_pages = {(tid, linked.get(path, path))
                           for tid, path in self.by_pages}
        return merged


class Cwd:
    def __init__(self, path):
        self.path = path


class StraceAccount(Account):
    """Adds up the calls of strace_log.read_log() that reach below `point`."""

    def __init__(self, point, calls, cwd):
        super().__init__()
        self.point = point
        self.cwd = {}
        self.first_cwd = cwd
        self.path_only = {}  # descriptors that O_PATH made
        for call in calls:
            handler = getattr(self, "sys_" + call.name, None)
            if handler is None or not call.ok or call.result is None:
                continue
            self.call = call
            self.tid = call.tid
            handler(*strace_log.args(call))

    def _cwd(self, tid):
        return self.cwd.setdefault(tid, Cwd(self.first_cwd))

    def _began(self, flags):
        """The child has its own current directory, but for threads."""
        mine = self._cwd(self.tid)
        self.cwd[self.call.result] = mine if flags & CLONE_FS else \
            Cwd(mine.path)

    def sys_fork(self):
        self._began(0)

    sys_vfork = sys_fork

    def sys_clone(self, _stack, flags, *_):
        self._began(flags)

    def sys_clone3(self, how, *_):
        self._began(how["flags"])

    def _below(self, path):
        """The path relative to the mount, or None."""
        if path == self.point:
            return "/"
        if path is not None and path.startswith(self.point + "/"):
            return path[len(self.point):]
        return None

    def _resolve(self, path, folder=None):
        """Of a name in an argument; the folder is an Fd or the current one."""
        if path is None:
            path = ""
        base = folder.path if isinstance(folder, Fd) else \
            self._cwd(self.tid).path
        # How libc changes a mode without following a link.
        found = re.fullmatch(r"/proc/self/fd/(\d+)", path)
        if found:
            return self.path_only.get((self.tid, int(found[1])))
        return self._below(os.path.normpath(os.path.join(base, path)))

    def _name(self, what, path, second=None):
        if path is not None or second is not None:
            self.names[(self.tid, what, path, second)] += 1

    # --- who runs

    def sys_execve(self, path, *_):
        self.by_pages.add((self.tid, self._resolve(path)))
        self._name("open", self._resolve(path))  # by the kernel

    def sys_chdir(self, path):
        base = self._cwd(self.tid)
        base.path = os.path.normpath(os.path.join(base.path, path))

    def sys_fchdir(self, fd):
        self._cwd(self.tid).path = fd.path

    # --- data

    def _data(self, what, fd, count):
        path = self._below(fd.path) if isinstance(fd, Fd) else None
        if path is not None and count:
            self.data[(self.tid, what, path)] += count

    def sys_read(self, fd, *_):
        self._data("read", fd, self.call.result)

    def sys_write(self, fd, *_):
        self._data("written", fd, self.call.result)

    sys_readv = sys_pread64 = sys_preadv = sys_preadv2 = sys_read
    sys_writev = sys_pwrite64 = sys_pwritev = sys_pwritev2 = sys_write

    def sys_sendfile(self, out, source, *_):
        self._through_pages(source, out)

    def sys_splice(self, source, _offset, out, *_):
        self._through_pages(source, out)

    def _through_pages(self, source, out):
        path = self._below(source.path)
        if path is not None:
            self.by_pages.add((self.tid, path))
        self._data("written", out, self.call.result)

    def sys_copy_file_range(self, source, _from, out, *_):
        one, two = self._below(source.path), self._below(out.path)
        if self.call.result and (one is not None or two is not None):
            self.copies[(self.tid, one, two)] += self.call.result

    # --- names

    def _opened(self, path, flags):
        if self.call.result_path:
            path = self._below(self.call.result_path)
        if flags & os.O_PATH:
            self.path_only[(self.tid, self.call.result)] = path
        else:
            self._name("open", path)

    def sys_open(self, path, flags, *_):
        self._opened(self._resolve(path), flags)

    def sys_openat(self, folder, path, flags, *_):
        self._opened(self._resolve(path, folder), flags)

    def sys_openat2(self, folder, path, how, *_):
        self._opened(self._resolve(path, folder), how["flags"])

    def sys_creat(self, path, *_):
        self._opened(self._resolve(path), 0)

    def sys_mkdir(self, path, *_):
        self._name("mkdir", self._resolve(path))

    def sys_mkdirat(self, folder, path, *_):
        self._name("mkdir", self._resolve(path, folder))

    def sys_rmdir(self, path):
        self._name("rmdir", self._resolve(path))

    def sys_unlink(self, path):
        self._name("unlink", self._resolve(path))

    def sys_unlinkat(self, folder, path, flags):
        self._name("rmdir" if flags & AT_REMOVEDIR else "unlink",
                   self._resolve(path, folder))

    def _renamed(self, old, new):
        self._name("rename", old, new)
        if old in self.linked:
            self.linked[new] = self.linked[old]

    def sys_rename(self, old, new):
        self._renamed(self._resolve(old), self._resolve(new))

    def sys_renameat(self, folder, old, new_folder, new, *_):
        self._renamed(self._resolve(old, folder),
                      self._resolve(new, new_folder))

    sys_renameat2 = sys_renameat

    def _linked(self, old, new):
        self._name("link", old, new)
        self.linked[new] = self.linked.setdefault(old, old)

    def sys_link(self, old, new):
        self._linked(self._resolve(old), self._resolve(new))

    def sys_linkat(self, folder, old, new_folder, new, *_):
        self._linked(self._resolve(old, folder),
                     self._resolve(new, new_folder))

    def sys_symlink(self, _target, path):
        self._name("symlink", self._resolve(path))

    def sys_symlinkat(self, _target, folder, path):
        self._name("symlink", self._resolve(path, folder))

    def sys_fsync(self, fd):
        self._name("fsync", self._below(fd.path))

    sys_fdatasync = sys_fsync

    def sys_ftruncate(self, fd, *_):
        self._name("truncate", self._below(fd.path))

    def sys_truncate(self, path, *_):
        self._name("truncate", self._resolve(path))

    def sys_fchmod(self, fd, *_):
        self._name("chmod", self._below(fd.path))

    def sys_chmod(self, path, *_):
        self._name("chmod", self._resolve(path))

    def sys_fchmodat(self, folder, path, *_):
        self._name("chmod", self._resolve(path, folder))

    def sys_fallocate(self, fd, *_):
        self._name("fallocate", self._below(fd.path))


FATTR_MODE = 1
FATTR_SIZE = 8


class TraceAccount(Account):
    """Adds up the lines of `tracefs-dump --format jsonl`."""

    PLAIN = {"mkdir", "unlink", "rmdir", "symlink", "fallocate"}

    def __init__(self, events):
        super().__init__()
        for e in events:
            if e.get("errno") or e.get("result", 0) < 0:
                continue
            self._add(e, e["op"], e.get("tid"), e.get("path"))

    def _add(self, e, op, tid, path):
        # A mapped page, or what the kernel does on its own account.
        if e.get("inferred") or e.get("mapped"):
            return
        if op in ("read", "write"):
            if e["result"]:
                self.data[(tid, "read" if op == "read" else "written",
                           path)] += e["result"]
        elif op == "copy_file_range":
            self.copies[(tid, path, e.get("path2"))] += e["result"]
        elif op in ("open", "create", "tmpfile", "opendir"):
            self.names[(tid, "open", path, None)] += 1
        elif op in ("rename", "link"):
            self.names[(tid, op, path, e["path2"])] += 1
        elif op in ("fsync", "fsyncdir"):
            self.names[(tid, "fsync", path, None)] += 1
        elif op in self.PLAIN:
            self.names[(tid, op, path, None)] += 1
        elif op == "setattr":
            valid = int(str(e.get("valid", 0)), 0)
            if valid & FATTR_SIZE:
                self.names[(tid, "truncate", path, None)] += 1
            if valid & FATTR_MODE:
                self.names[(tid, "chmod", path, None)] += 1
