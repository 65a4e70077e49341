"""The scripted workload of the fidelity suite: every system call that a file
system is asked about, good cases and failures.

usage: scripted.py PART INSIDE OUTSIDE

INSIDE is a folder below the mount, OUTSIDE one beside it. Runs under strace;
what it does is compared with the trace, so it prints nothing and only the
failures it provokes on purpose are passed over.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import socket
import stat
import struct
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = -100, 0x400, 0x1000
# Numbers of x86-64.
SYS_GETDENTS64, SYS_LINKAT, SYS_UTIMENSAT = 217, 265, 280
SYS_FALLOCATE, SYS_RENAMEAT2, SYS_STATX = 285, 316, 332
SYS_OPENAT2, SYS_FACCESSAT2 = 437, 439


def syscall(number, *arguments):
    """A system call that Python's os module lacks."""
    converted = [ctypes.c_char_p(os.fsencode(a)) if isinstance(a, str)
                 else ctypes.c_void_p(ctypes.addressof(a))
                 if isinstance(a, (ctypes.Array, ctypes.Structure))
                 else ctypes.c_long(a) for a in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *converted)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def fails(number, function, *arguments, **named):
    """function(...) must fail with this errno."""
    try:
        function(*arguments, **named)
    except OSError as error:
        if error.errno != number:
            raise
        return
    raise AssertionError(f"{function} did not fail with {number}")


def put(name, data=b"", flags=0, mode=0o644):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, mode)
    if data:
        os.write(fd, data)
    os.close(fd)


def child(function, uid=None, gid=None):
    """function() in a process of its own, as another user perhaps."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if gid is not None:
                os.setgroups([])
                os.setresgid(gid, gid, gid)
            if uid is not None:
                os.setresuid(uid, uid, uid)
            function()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status


# --- the parts

def open_and_close():
    fd = os.open("new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
    os.close(fd)
    fails(errno.EEXIST, os.open, "new", os.O_CREAT | os.O_EXCL)
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT,
                  os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND,
                  os.O_RDONLY | os.O_NOFOLLOW, os.O_RDWR | os.O_SYNC,
                  os.O_RDWR | os.O_DSYNC, os.O_RDONLY | os.O_NONBLOCK,
                  os.O_RDONLY | os.O_NOATIME, os.O_RDONLY | os.O_CLOEXEC,
                  os.O_PATH):
        os.close(os.open("new", flags))
    old = os.umask(0o027)
    os.close(os.open("masked", os.O_WRONLY | os.O_CREAT, 0o666))
    os.umask(old)
    fd = os.open("masked", os.O_RDONLY)
    other = os.dup(fd)
    third = fcntl.fcntl(fd, fcntl.F_DUPFD, 100)
    os.dup2(fd, 50)
    os.dup2(other, 50)  # closes what 50 was
    for each in (fd, other, third, 50):
        os.close(each)
    fails(errno.ENOENT, os.open, "missing", os.O_RDONLY)
    fails(errno.ENOENT, os.open, "missing/below", os.O_RDONLY | os.O_CREAT)
    fails(errno.ENOTDIR, os.open, "new/below", os.O_RDONLY)
    fails(errno.EISDIR, os.open, ".", os.O_WRONLY)
    fails(errno.ENOTDIR, os.open, "new", os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.ENAMETOOLONG, os.open, "n" * 256, os.O_WRONLY | os.O_CREAT)
    how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
    os.close(syscall(SYS_OPENAT2, AT_FDCWD, "new", how, 24))
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.close(os.open("masked", os.O_RDONLY, dir_fd=here))
    os.close(here)
    fd = os.open(".", os.O_RDWR | os.O_TMPFILE, 0o600)
    os.write(fd, b"nameless")
    syscall(SYS_LINKAT, AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "named",
            AT_SYMLINK_FOLLOW)
    os.close(fd)
    fd = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_EXCL, 0o600)
    os.close(fd)


def data():
    fd = os.open("data", os.O_RDWR | os.O_CREAT, 0o644)
    for size in (1, 10, 511, 4096, 4097, 65536):
        os.write(fd, b"x" * size)
    os.write(fd, b"")
    end = os.lseek(fd, 0, os.SEEK_CUR)
    os.pwrite(fd, b"far away", end + 100000)
    os.lseek(fd, 0, os.SEEK_SET)
    while os.read(fd, 10000):
        pass
    assert os.read(fd, 100) == b""
    os.read(fd, 0)
    for offset in (0, 1, 4095, end + 90000, end + 200000):
        os.pread(fd, 777, offset)
    os.preadv(fd, [bytearray(10), bytearray(3), bytearray(100)], 5)
    os.preadv(fd, [bytearray(64)], 7, 0)
    os.pwritev(fd, [b"ab", b"c" * 5000, b""], 11)
    os.lseek(fd, 20, os.SEEK_SET)
    os.readv(fd, [bytearray(8), bytearray(8)])
    os.writev(fd, [b"one", b"two"])
    os.lseek(fd, -5, os.SEEK_END)
    os.read(fd, 50)
    fails(errno.EINVAL, os.lseek, fd, -1, os.SEEK_SET)
    for offset in (0, end + 10, end + 100000):
        os.lseek(fd, offset, os.SEEK_DATA)
        os.lseek(fd, offset, os.SEEK_HOLE)
    fails(errno.ENXIO, os.lseek, fd, 1 << 40, os.SEEK_DATA)
    os.close(fd)

    # Larger than a request may be.
    big = mmap.mmap(-1, 5 << 20)
    fd = os.open("big", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, big)
    os.pwrite(fd, memoryview(big)[100:(3 << 20) + 7], 33)
    os.preadv(fd, [big], 0)
    os.preadv(fd, [memoryview(big)[9:(2 << 20) + 1]], 4 << 20)
    os.close(fd)

    fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for i in range(5):
        os.write(fd, b"line %d\n" % i)
    os.pwrite(fd, b"also at the end", 0)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~os.O_APPEND)
    os.pwrite(fd, b"LINE", 0)
    os.close(fd)
    fd = os.open("log", os.O_RDONLY)
    fails(errno.EBADF, os.write, fd, b"no")
    os.close(fd)

    # A file that is gone but open.
    fd = os.open("gone", os.O_RDWR | os.O_CREAT, 0o644)
    os.unlink("gone")
    os.write(fd, b"still here")
    os.pread(fd, 100, 0)
    os.ftruncate(fd, 4)
    os.fstat(fd)
    os.fsync(fd)
    os.close(fd)


def copying():
    put("from", bytes(range(256)) * 1000)
    source = os.open("from", os.O_RDONLY)
    out = os.open("to", os.O_RDWR | os.O_CREAT, 0o644)
    os.copy_file_range(source, out, 100000)
    os.copy_file_range(source, out, 500, 10, 300000)
    os.copy_file_range(source, out, 1 << 20, 255990)
    os.copy_file_range(source, out, 1 << 20, 1 << 20)  # nothing there
    os.lseek(source, 0, os.SEEK_SET)
    os.sendfile(out, source, 70, 70000)
    os.sendfile(out, source, None, 130000)
    syscall(SYS_FALLOCATE, out, 0, 0, 400000)
    syscall(SYS_FALLOCATE, out, 1, 400000, 100000)  # KEEP_SIZE
    syscall(SYS_FALLOCATE, out, 3, 4096, 8192)  # PUNCH_HOLE
    fails(errno.EOPNOTSUPP, syscall, SYS_FALLOCATE, out, 8, 0, 4096)
    fails(errno.EINVAL, syscall, SYS_FALLOCATE, out, 0, 0, 0)
    os.posix_fallocate(out, 0, 1000)
    os.posix_fadvise(out, 0, 0, os.POSIX_FADV_DONTNEED)
    os.fsync(out)
    os.fdatasync(out)
    os.close(out)
    outside = os.open(os.path.join(OUTSIDE, "copy"),
                      os.O_WRONLY | os.O_CREAT, 0o644)
    os.sendfile(outside, source, 0, 50000)
    fails(errno.EXDEV, os.copy_file_range, source, outside, 100)
    os.close(outside)
    os.close(source)


def names():
    os.mkdir("dir", 0o755)
    os.mkdir("dir/sub", 0o700)
    os.mkdir("other")
    fails(errno.EEXIST, os.mkdir, "dir")
    fails(errno.ENOENT, os.mkdir, "missing/sub")
    fails(errno.ENOTEMPTY, os.rmdir, "dir")
    fails(errno.ENOENT, os.rmdir, "missing")
    put("dir/a", b"a")
    put("dir/b", b"bb")
    fails(errno.ENOTDIR, os.rmdir, "dir/a")
    fails(errno.EISDIR, os.unlink, "dir/sub")
    fails(errno.ENOENT, os.unlink, "dir/missing")
    os.rename("dir/a", "dir/c")
    os.rename("dir/c", "dir/b")  # replaces
    os.rename("dir/b", "other/b")
    fails(errno.ENOENT, os.rename, "dir/missing", "dir/x")
    fails(errno.ENOTEMPTY, os.rename, "dir", "other")
    fails(errno.EINVAL, os.rename, "dir", "dir/sub/below")
    fails(errno.EXDEV, os.rename, "other/b", os.path.join(OUTSIDE, "b"))
    fails(errno.EXDEV, os.link, "other/b", os.path.join(OUTSIDE, "b"))
    put("dir/a", b"again")
    fails(errno.EEXIST, syscall, SYS_RENAMEAT2, AT_FDCWD, "dir/a", AT_FDCWD,
          "other/b", 1)  # NOREPLACE
    syscall(SYS_RENAMEAT2, AT_FDCWD, "dir/a", AT_FDCWD, "dir/z", 1)
    syscall(SYS_RENAMEAT2, AT_FDCWD, "dir/z", AT_FDCWD, "other/b", 2)
    fd = os.open("other/b", os.O_RDONLY)
    os.read(fd, 100)
    os.rename("other", "moved")
    os.read(fd, 100)  # by its new path
    os.rename("moved/b", "moved/c")
    os.pread(fd, 3, 1)
    os.close(fd)
    os.link("moved/c", "moved/hard")
    fails(errno.EEXIST, os.link, "moved/c", "moved/hard")
    fails(errno.EPERM, os.link, "moved", "link-to-dir")
    fd = os.open("moved/c", os.O_RDONLY)
    syscall(SYS_LINKAT, fd, "", AT_FDCWD, "moved/by-fd", AT_EMPTY_PATH)
    os.close(fd)
    os.symlink("moved/c", "soft")
    os.symlink("nowhere", "dangling")
    os.symlink("loop", "loop")
    os.symlink("../" + os.path.basename(os.getcwd()) + "/moved", "soft-dir")
    fails(errno.EEXIST, os.symlink, "x", "soft")
    os.readlink("soft")
    fails(errno.EINVAL, os.readlink, "moved/c")
    fails(errno.ENOENT, os.open, "dangling", os.O_RDONLY)
    fails(errno.ELOOP, os.open, "loop", os.O_RDONLY)
    fails(errno.ELOOP, os.open, "soft", os.O_RDONLY | os.O_NOFOLLOW)
    for name in ("soft", "soft-dir/c", "soft-dir/../soft", "moved/./c"):
        fd = os.open(name, os.O_RDONLY)
        os.read(fd, 10)
        os.close(fd)
    os.lstat("soft")
    os.stat("soft")
    os.rename("soft", "softer")
    os.unlink("softer")
    os.mkfifo("fifo", 0o600)
    os.mknod("regular", stat.S_IFREG | 0o644)
    os.mknod("null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    server.close()
    here = os.open("moved", os.O_RDONLY | os.O_DIRECTORY)
    os.mkdir("in-moved", dir_fd=here)
    os.symlink("c", "in-link", dir_fd=here)
    os.readlink("in-link", dir_fd=here)
    os.unlink("in-link", dir_fd=here)
    os.rmdir("in-moved", dir_fd=here)
    os.fsync(here)
    os.close(here)
    home = os.getcwd()
    os.chdir("moved")
    put("relative", b"r")
    os.rename("../fifo", "fifo")
    os.chdir("..")
    fd = os.open("moved", os.O_RDONLY)
    os.fchdir(fd)
    os.stat("relative")
    os.close(fd)
    os.chdir(home)
    strange = ["with blank", "new\nline", "quote\"back\\slash", "\u00e4\u00f6",
               b"\xff\xfe not utf-8", "x" * 255, "-rf", "a,b)=1<2>"]
    for name in strange:
        put(name, b"?")
        fd = os.open(name, os.O_RDONLY)
        os.read(fd, 10)
        os.close(fd)
        os.unlink(name)


def attributes():
    put("file", b"0123456789")
    os.mkdir("dir")
    os.symlink("file", "link")
    os.stat("file")
    os.lstat("link")
    fd = os.open("file", os.O_RDWR)
    os.fstat(fd)
    out = (ctypes.c_char * 256)()
    for mask in (0x7FF, 0xFFF):  # without and with the birth time
        syscall(SYS_STATX, AT_FDCWD, "file", 0, mask, out)
        syscall(SYS_STATX, fd, "", AT_EMPTY_PATH, mask, out)
    fails(errno.ENOENT, os.stat, "missing")
    os.access("file", os.R_OK)
    os.access("missing", os.F_OK)
    syscall(SYS_FACCESSAT2, AT_FDCWD, "file", 4, 0x200)
    os.chmod("file", 0o600)
    os.fchmod(fd, 0o4755)
    os.chmod("dir", 0o2775)
    os.chmod("link", 0o644)
    fails(errno.ENOENT, os.chmod, "missing", 0o600)
    os.chown("file", 1000, 1001)
    os.chown("file", -1, 0)
    os.fchown(fd, 0, -1)
    os.lchown("link", 7, 8)
    os.truncate("file", 5)
    os.ftruncate(fd, 100000)
    fails(errno.EISDIR, os.truncate, "dir", 1)
    fails(errno.EINVAL, os.ftruncate, fd, -1)
    os.utime("file", ns=(1, 1600000000123456789))
    os.utime(fd, (5, 6))
    os.utime("file")
    os.utime("link", ns=(10**18, 2 * 10**9), follow_symlinks=False)
    os.utime("dir", ns=(-1, -999999999))
    times = (ctypes.c_int64 * 4)(0, (1 << 30) - 2, 77, 88)  # UTIME_OMIT
    syscall(SYS_UTIMENSAT, AT_FDCWD, "file", times, 0)
    times = (ctypes.c_int64 * 4)(3, 4, 0, (1 << 30) - 1)  # UTIME_NOW
    syscall(SYS_UTIMENSAT, AT_FDCWD, "file", times, 0)
    os.statvfs("file")
    os.fstatvfs(fd)
    os.close(fd)


def xattrs():
    put("file", b"x")
    os.setxattr("file", "user.one", b"value")
    os.setxattr("file", "user.empty", b"")
    os.setxattr("file", "user.big", b"v" * 2000)
    os.setxattr("file", "user.one", b"another", os.XATTR_REPLACE)
    fails(errno.EEXIST, os.setxattr, "file", "user.one", b"", os.XATTR_CREATE)
    fails(errno.ENODATA, os.setxattr, "file", "user.none", b"",
          os.XATTR_REPLACE)
    os.getxattr("file", "user.one")
    os.getxattr("file", "user.big")
    fails(errno.ENODATA, os.getxattr, "file", "user.none")
    os.listxattr("file")
    fd = os.open("file", os.O_RDWR)
    os.setxattr(fd, "user.two", b"2")
    os.getxattr(fd, "user.two")
    os.listxattr(fd)
    os.removexattr(fd, "user.two")
    os.close(fd)
    os.removexattr("file", "user.one")
    fails(errno.ENODATA, os.removexattr, "file", "user.one")
    os.symlink("file", "link")
    os.setxattr("link", "trusted.link", b"t", follow_symlinks=False)
    os.getxattr("link", "trusted.link", follow_symlinks=False)
    os.listxattr("link", follow_symlinks=False)
    os.removexattr("link", "trusted.link", follow_symlinks=False)
    fails(errno.EOPNOTSUPP, os.setxattr, "file", "nonsense.x", b"")


def directories():
    os.mkdir("many")
    for i in range(700):
        os.mknod(f"many/entry-{i:04}" + "x" * (i % 60), stat.S_IFREG | 0o600)
    os.listdir("many")
    with os.scandir("many") as entries:
        for entry in entries:
            if entry.name.startswith("entry-000"):
                entry.stat()
    fd = os.open("many", os.O_RDONLY)
    os.listdir(fd)
    os.listdir(fd)
    buffer = (ctypes.c_char * 4096)()
    for _ in range(4):
        syscall(SYS_GETDENTS64, fd, buffer, 4096)
    os.lseek(fd, 0, os.SEEK_SET)
    syscall(SYS_GETDENTS64, fd, buffer, 4096)
    os.close(fd)
    os.mkdir("empty")
    os.listdir("empty")
    fd = os.open("empty", os.O_RDONLY)
    os.rmdir("empty")
    try:
        syscall(SYS_GETDENTS64, fd, buffer, 4096)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    os.close(fd)
    for _, _, _ in os.walk("."):
        pass


def locks():
    put("lock", b"0" * 100)
    fd = os.open("lock", os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 10, 5)
    fcntl.lockf(fd, fcntl.LOCK_UN, 10, 5)
    fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fcntl.flock(fd, fcntl.LOCK_EX)

    def contender():
        other = os.open("lock", os.O_RDWR)
        fails(errno.EAGAIN, fcntl.flock, other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fails(errno.EAGAIN, fcntl.lockf, other,
              fcntl.LOCK_EX | fcntl.LOCK_NB)
        query = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 3, 4, 0)
        fcntl.fcntl(other, fcntl.F_GETLK, query)
        os.close(other)

    child(contender)
    fcntl.flock(fd, fcntl.LOCK_UN)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(0)
    os.isatty(fd)
    os.close(fd)


def callers():
    def as_user():
        for name in ("mine", "theirs"):
            fails(errno.EACCES, os.open, "private/" + name,
                  os.O_RDWR | os.O_CREAT)
        fails(errno.EACCES, os.open, "secret", os.O_RDONLY)
        fails(errno.EACCES, os.mkdir, "below")
        fails(errno.EACCES, os.unlink, "secret")
        fails(errno.EPERM, os.chmod, "secret", 0o777)
        fails(errno.EPERM, os.chown, "secret", 1000, 1000)
        fails(errno.EACCES, os.truncate, "secret", 0)
        fails(errno.EACCES, os.rename, "secret", "public/stolen")
        fails(errno.EPERM, os.setxattr, "readable", "trusted.x", b"")
        fd = os.open("readable", os.O_RDONLY)
        os.read(fd, 10)
        os.close(fd)
        os.chdir("public")
        put("mine", b"mine", mode=0o640)
        os.chmod("mine", 0o600)
        os.stat("mine")
        fails(errno.EPERM, os.chown, "mine", 0, 0)
        fails(errno.EPERM, os.unlink, "roots")  # sticky
        os.mkdir("folder", 0o2775)
        os.rename("mine", "folder/mine")
        os.symlink("folder", "link")
        os.unlink("link")

    os.mkdir("private", 0o700)
    os.mkdir("public")
    os.chmod("public", 0o1777)
    put("secret", b"secret", mode=0o600)
    put("readable", b"readable", mode=0o644)
    put("public/roots", b"root's")
    child(as_user, uid=1000, gid=1001)
    child(lambda: put("public/by-group", b"g"), gid=1002)
    child(lambda: put("public/by-root", b"r"))

    shared = os.open("shared", os.O_RDWR | os.O_CREAT, 0o666)
    os.write(shared, b"parent ")
    # One description, two processes: the offset is shared too.
    child(lambda: os.write(shared, b"child "))
    os.write(shared, b"parent again")
    os.close(shared)

    def work(number):
        name = b"thread-%d" % number
        LIBC.prctl(15, ctypes.c_char_p(name), 0, 0, 0)  # PR_SET_NAME
        for step in range(20):
            file = f"by-thread-{number}-{step}"
            put(file, b"t" * (number + 1))
            with open(file, "rb", buffering=0) as content:
                content.read(100)
            os.rename(file, file + ".done")
            os.stat(file + ".done")
            os.unlink(file + ".done")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def endings():
    """Files that are closed by exec and by exit."""
    kept = os.open("kept", os.O_RDWR | os.O_CREAT, 0o644)
    os.set_inheritable(kept, True)
    dropped = os.open("dropped", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.write(dropped, b"d")

    def run():
        os.write(kept, b"before exec")
        os.execv("/bin/cat", ["cat", "kept", "dropped"])

    child(run)

    # The first request of a new process is the flush of `dropped`, in the
    # middle of its execve.
    for _ in range(5):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)

    def leave():
        fd = os.open("left", os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, b"nobody closes this")
        os.dup(fd)

    child(leave)
    os.write(kept, b"parent")


def no_space():
    """In a file system of a megabyte."""
    fd = os.open("fill", os.O_WRONLY | os.O_CREAT, 0o644)
    block = b"f" * 65536
    try:
        while True:
            os.write(fd, block)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    fails(errno.ENOSPC, os.pwrite, fd, block, 1 << 30)
    fails(errno.ENOSPC, syscall, SYS_FALLOCATE, fd, 0, 0, 1 << 24)
    os.ftruncate(fd, 0)
    os.close(fd)
    os.unlink("fill")


PARTS = {f.__name__: f for f in (
    open_and_close, data, copying, names, attributes, xattrs, directories,
    locks, callers, endings, no_space)}


if __name__ == "__main__":
    part, inside, OUTSIDE = sys.argv[1:]
    os.chdir(inside)
    PARTS[part]()
