"""What programs did to the files below one folder, as strace tells it: writes,
names made and taken away, and what was made durable.

The programs run as `strace -ff -ttt -T -xx -X raw` records them, so nothing of
ours says what they did. Descriptors are followed from call to call, through
copies and children, for a daemon in its sandbox opens files through private
copies of mounts whose paths strace cannot tell.
"""

import os

import strace_log
from strace_log import number_of

STRACE = ["strace", "-ff", "-ttt", "-T", "-xx", "-X", "raw", "-s", "4000000",
          "--seccomp-bpf"]
CALLS = {
    "open", "openat", "openat2", "creat", "open_tree", "close", "dup", "dup2",
    "dup3", "fcntl", "write", "pwrite64", "writev", "pwritev", "pwritev2",
    "lseek", "ftruncate", "truncate", "fallocate", "fsync", "fdatasync",
    "syncfs", "link", "linkat", "unlink", "unlinkat", "rename", "renameat",
    "renameat2", "mkdir", "mkdirat", "rmdir", "symlink", "symlinkat", "clone",
    "clone3", "fork", "vfork", "execve", "newfstatat", "sendto", "sendmsg",
    # Would change files unseen.
    "mmap", "copy_file_range", "sendfile", "splice", "sync_file_range"}

AT_FDCWD = -100
O_APPEND, O_TRUNC, O_CREAT = os.O_APPEND, os.O_TRUNC, os.O_CREAT
O_TMPFILE = 0o20200000
O_CLOEXEC = os.O_CLOEXEC
# With MAP_SHARED and PROT_WRITE stores reach the file.
PROT_WRITE, MAP_SHARED = 2, 1
CLONE_FILES, CLONE_THREAD = 0x400, 0x10000
F_DUPFD, F_DUPFD_CLOEXEC = 0, 1030
FALLOC_FL_KEEP_SIZE = 1
RENAME_EXCHANGE = 2


class Unknown(Exception):
    """A call that this does not follow."""


class File:
    def __init__(self, number):
        self.number = number
        self.bytes = bytearray()


class Folder:
    def __init__(self, number):
        self.number = number
        self.names = {}


class Step:
    """Something that a power cut may undo, or (`sync`) that it may not.

    kind   about
    write  (file, offset, bytes)
    size   (file, size)
    name   ((folder, name, inode or None), …): all of them or none
    sync   inodes; all that ended before `covers_us` is durable then
    mark   a text: somebody was told something
    """

    def __init__(self, kind, about, begin_us, end_us, covers_us=None):
        self.kind = kind
        self.about = about
        self.begin_us = begin_us
        self.end_us = end_us
        self.covers_us = covers_us
        self.before = False  # the recording
        self.durable = False

    # When it may begin to matter, or does.
    @property
    def at_us(self):
        return self.end_us if self.kind in ("sync", "mark") else self.begin_us


class Open:
    """An open file description."""

    def __init__(self, inode, flags):
        self.inode = inode
        self.flags = flags
        self.offset = 0


class DiskLog:
    """The steps of all calls that strace recorded. `before`: what was below
    `root` then, as tree_of() says it. `told(call, arguments)` returns the texts
    of marks for a call."""

    def __init__(self, root, prefix, before, told):
        self.root = os.path.normpath(root)
        self.told = told
        self.steps = []
        self.inodes = []
        self.tree = self._new(Folder)
        self._begin_with(self.tree, before)
        self.process_of = {}
        self.tables = {}
        for call in self._calls(prefix):
            self._follow(call)
        # Marks and syncs count from their ends on.
        self.steps.sort(key=lambda step: step.at_us)

    def _begin_with(self, folder, names):
        for name, inside in names.items():
            inode = self._new(Folder if isinstance(inside, dict) else File)
            folder.names[name] = inode
            self._durable("name", ((folder, name, inode),))
            if isinstance(inode, Folder):
                self._begin_with(inode, inside)
            else:
                inode.bytes.extend(inside)
                self._durable("write", (inode, 0, inside))

    def _durable(self, kind, about):
        step = Step(kind, about, 0, 0)
        step.before = step.durable = True
        self.steps.append(step)

    @staticmethod
    def _calls(prefix):
        calls = [c for c in strace_log.read_log(prefix)
                 if c.name in CALLS and (c.ok or c.name == "newfstatat")]
        calls.sort(key=lambda call: call.begin_us)
        return calls

    def _new(self, kind):
        inode = kind(len(self.inodes))
        self.inodes.append(inode)
        return inode

    # --- descriptors

    def _table(self, tid):
        return self.tables.setdefault(self.process_of.setdefault(tid, tid), {})

    def _open(self, call, fd):
        return self._table(call.tid).get(number_of(fd), (None, False))[0]

    def _set(self, call, number, description, cloexec):
        table = self._table(call.tid)
        if description is None:
            table.pop(number, None)
        else:
            table[number] = (description, cloexec)

    # --- names

    def _walk(self, start, parts):
        for part in parts:
            if part in ("", "."):
                continue
            if not isinstance(start, Folder) or part == "..":
                return None
            start = start.names.get(part)
        return start

    def _place(self, call, at, path):
        """The folder and the name that a path means; (None, "") if it lies
        outside. The root itself is (tree, "")."""
        if path.startswith("/proc/self/fd/"):
            return None, ""
        if path.startswith("/") or at == AT_FDCWD:
            path = os.path.normpath(path)
            if path == self.root:
                return self.tree, ""
            if not path.startswith(self.root + "/"):
                return None, ""
            start, path = self.tree, path[len(self.root) + 1:]
        else:
            description = self._open(call, at)
            if description is None:
                return None, ""
            start = description.inode
        parts = [p for p in path.split("/") if p not in ("", ".")]
        if not parts:
            return start, ""
        return self._walk(start, parts[:-1]), parts[-1]

    def _find(self, call, at, path):
        if path.startswith("/proc/self/fd/"):
            description = self._open(call, int(path.rsplit("/", 1)[1]))
            return description and description.inode
        folder, name = self._place(call, at, path)
        if folder is None or not name:
            return folder
        return folder.names.get(name)

    # --- steps

    def _step(self, kind, about, call):
        self.steps.append(Step(kind, about, call.begin_us, call.end_us))

    def _sync(self, call, inodes, covers_us):
        self.steps.append(Step("sync", inodes, call.begin_us, call.end_us,
                               covers_us))

    def _name(self, call, *changes):
        for folder, name, inode in changes:
            if inode is None:
                folder.names.pop(name, None)
            else:
                folder.names[name] = inode
        self._step("name", changes, call)

    def _resize(self, call, file, size):
        if isinstance(file, File) and size != len(file.bytes):
            del file.bytes[size:]
            file.bytes.extend(bytes(size - len(file.bytes)))
            self._step("size", (file, size), call)

    def _write(self, call, fd, data, offset=None):
        description = self._open(call, fd)
        if description is None or not isinstance(description.inode, File):
            return
        file, data = description.inode, data[:call.result]
        if offset is None:
            if description.flags & O_APPEND:
                description.offset = len(file.bytes)
            offset = description.offset
            description.offset += len(data)
        if len(file.bytes) < offset:
            file.bytes.extend(bytes(offset - len(file.bytes)))
        file.bytes[offset:offset + len(data)] = data
        self._step("write", (file, offset, data), call)
        if description.flags & os.O_DSYNC:
            self._sync(call, [file], call.end_us)

    # --- calls

    def _follow(self, call):
        arguments = strace_log.args(call)
        for text in self.told(call, arguments):
            self._step("mark", text, call)
        handler = getattr(self, "_do_" + call.name, None)
        if handler is not None:
            handler(call, *arguments)

    def _do_open(self, call, path, flags, *_):
        self._do_openat(call, AT_FDCWD, path, flags)

    def _do_creat(self, call, path, _):
        self._do_openat(call, AT_FDCWD, path, O_CREAT | O_TRUNC | os.O_WRONLY)

    def _do_openat2(self, call, at, path, how, *_):
        self._do_openat(call, at, path, how["flags"])

    def _do_openat(self, call, at, path, flags, *_):
        inode = self._find(call, number_of(at), path)
        if inode is not None and flags & O_TMPFILE == O_TMPFILE:
            inode = self._new(File)
        elif inode is None and flags & O_CREAT:
            folder, name = self._place(call, number_of(at), path)
            if folder is not None:
                inode = self._new(File)
                self._name(call, (folder, name, inode))
        elif isinstance(inode, File) and flags & O_TRUNC:
            self._resize(call, inode, 0)
        self._set(call, number_of(call.result), inode and Open(inode, flags),
                  flags & O_CLOEXEC)

    def _do_open_tree(self, call, at, path, *_):
        inode = self._find(call, number_of(at), path)
        self._set(call, number_of(call.result), inode and Open(inode, 0), True)

    def _do_close(self, call, fd):
        self._set(call, number_of(fd), None, False)

    def _do_dup(self, call, fd):
        self._set(call, number_of(call.result), self._open(call, fd), False)

    def _do_dup2(self, call, fd, *_):
        self._do_dup(call, fd)

    _do_dup3 = _do_dup2

    def _do_fcntl(self, call, fd, command, *_):
        if command in (F_DUPFD, F_DUPFD_CLOEXEC):
            self._set(call, number_of(call.result), self._open(call, fd),
                      command == F_DUPFD_CLOEXEC)

    def _do_lseek(self, call, fd, *_):
        description = self._open(call, fd)
        if description is not None:
            description.offset = call.result

    def _do_write(self, call, fd, data, _):
        if self._open(call, fd) is not None:
            self._write(call, fd, os.fsencode(data))

    def _do_pwrite64(self, call, fd, data, _, offset):
        if self._open(call, fd) is not None:
            self._write(call, fd, os.fsencode(data), offset)

    def _do_writev(self, call, fd, pieces, *_):
        if self._open(call, fd) is not None:
            self._write(call, fd, gathered(pieces))

    def _do_pwritev(self, call, fd, pieces, _, offset, *__):
        if self._open(call, fd) is not None:
            self._write(call, fd, gathered(pieces), offset)

    _do_pwritev2 = _do_pwritev

    def _do_ftruncate(self, call, fd, size):
        description = self._open(call, fd)
        if description is not None:
            self._resize(call, description.inode, size)

    def _do_truncate(self, call, path, size):
        self._resize(call, self._find(call, AT_FDCWD, path), size)

    def _do_fallocate(self, call, fd, mode, *_):
        if mode != FALLOC_FL_KEEP_SIZE:
            self._unknown(call, fd)

    def _unknown(self, call, fd):
        description = self._open(call, fd)
        if description is not None and isinstance(description.inode, File):
            raise Unknown(call.text[:200])

    def _do_mmap(self, call, _, __, protection, flags, fd, *___):
        if flags & MAP_SHARED and protection & PROT_WRITE:
            self._unknown(call, fd)

    def _do_copy_file_range(self, call, _, __, fd, *___):
        self._unknown(call, fd)

    def _do_splice(self, call, _, __, fd, *___):
        self._unknown(call, fd)

    def _do_sendfile(self, call, fd, *_):
        self._unknown(call, fd)

    def _do_fsync(self, call, fd):
        description = self._open(call, fd)
        if description is not None:
            self._sync(call, [description.inode], call.begin_us)

    _do_fdatasync = _do_fsync

    def _do_syncfs(self, call, fd):
        if self._open(call, fd) is not None:
            self._sync(call, list(self.inodes), call.begin_us)

    def _do_link(self, call, old, new):
        self._do_linkat(call, AT_FDCWD, old, AT_FDCWD, new)

    def _do_linkat(self, call, at, old, new_at, new, *_):
        inode = self._find(call, number_of(at), old)
        folder, name = self._place(call, number_of(new_at), new)
        if inode is not None and folder is not None:
            self._name(call, (folder, name, inode))

    def _do_unlink(self, call, path):
        self._do_unlinkat(call, AT_FDCWD, path)

    _do_rmdir = _do_unlink

    def _do_unlinkat(self, call, at, path, *_):
        folder, name = self._place(call, number_of(at), path)
        if folder is not None:
            self._name(call, (folder, name, None))

    def _do_rename(self, call, old, new):
        self._do_renameat2(call, AT_FDCWD, old, AT_FDCWD, new)

    def _do_renameat(self, call, at, old, new_at, new):
        self._do_renameat2(call, at, old, new_at, new)

    def _do_renameat2(self, call, at, old, new_at, new, flags=0):
        folder, name = self._place(call, number_of(at), old)
        other, other_name = self._place(call, number_of(new_at), new)
        if folder is None and other is None:
            return
        if folder is None or other is None:
            raise Unknown(call.text[:200])
        inode = folder.names[name]
        left = other.names[other_name] if flags & RENAME_EXCHANGE else None
        self._name(call, (folder, name, left), (other, other_name, inode))

    def _do_mkdir(self, call, path, *_):
        self._do_mkdirat(call, AT_FDCWD, path)

    def _do_mkdirat(self, call, at, path, *_):
        folder, name = self._place(call, number_of(at), path)
        if folder is not None and name:
            self._name(call, (folder, name, self._new(Folder)))

    def _do_symlink(self, call, _, path):
        self._do_symlinkat(call, _, AT_FDCWD, path)

    def _do_symlinkat(self, call, _, at, path):
        if self._place(call, number_of(at), path)[0] is not None:
            raise Unknown(call.text[:200])

    # --- processes

    def _child(self, call, flags):
        child = number_of(call.result)
        parent = self._table(call.tid)
        if flags & CLONE_THREAD:
            self.process_of[child] = self.process_of[call.tid]
            return
        self.process_of[child] = child
        self.tables[child] = parent if flags & CLONE_FILES else dict(parent)

    def _do_fork(self, call, *_):
        self._child(call, 0)

    _do_vfork = _do_fork

    def _do_clone(self, call, *arguments):
        found = [a for a in call.args.split(", ") if a.startswith("flags=")]
        flags = strace_log.parse_value(found[0]) if found else arguments[1]
        self._child(call, flags)

    def _do_clone3(self, call, what, *_):
        self._child(call, what["flags"])

    def _do_execve(self, call, *_):
        process = self.process_of.setdefault(call.tid, call.tid)
        self.tables[process] = {
            fd: one for fd, one in self._table(call.tid).items() if not one[1]}


def gathered(pieces):
    return b"".join(os.fsencode(piece["iov_base"]) for piece in pieces)
