#!/usr/bin/env python3
"""While a user makes a call through the mount, root takes the file or the
directory away from him below: once that is done, nothing may change any more.

strace holds the daemon for a millisecond before each of its calls, and the moment
of the change goes through all of them. What is found right after the change is
compared with what is there after the call. The same rounds are made on the
directory below, without delays.

  race_test.py --bin build/release/bin                minutes, for ctest
  race_test.py --bin build/release/bin --all          every setting
"""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

# pylint: disable=wrong-import-position
from tracefs_harness import (TRANSPORTS, VISIBILITIES, Suite,  # noqa: E402
                             expect, expect_equal, wait_until)
from compared import (ACCESS_ACL, ALL, LEFT_TO_KERNEL,  # noqa: E402
                      FS_APPEND_FL, FS_NODUMP_FL, Compared, flags_of, make,
                      make_folder, run_settings, set_flags)
import users  # noqa: E402
from users import told  # noqa: E402

# The daemon waits before each of its calls but these: they look, or hand on
# requests and answers. (It waits before calls that strace does not know.)
AT_ONCE = ("read,readv,pread64,preadv,write,writev,pwrite64,vmsplice,splice,"
           "close,fstat,newfstatat,statx,fcntl,lseek,readlinkat,getdents64,"
           "fgetxattr,getxattr,llistxattr,futex,poll,ppoll,epoll_wait,"
           "epoll_pwait,nanosleep,clock_nanosleep,clock_gettime,gettid,getpid,"
           "mmap,munmap,mprotect,madvise,brk,membarrier,sched_yield,"
           "rt_sigprocmask,rt_sigaction,rt_sigtimedwait,io_uring_enter,rseq,"
           "set_robust_list,clone3,exit,prctl")
DELAY_S = 0.001
UNDISTURBED = -1


class Caller(typing.NamedTuple):
    """Who; whose his files are, and what modes they and directories have; who
    has them then."""
    become: typing.Callable
    owner: int
    group: int
    file_mode: int
    folder_mode: int
    then: int

    def own(self, path, mode):
        os.chown(path, self.owner, self.group)
        os.chmod(path, mode)

    def lose(self, path, mode):
        os.chown(path, self.then, self.then)
        os.chmod(path, mode)


CALLERS = {
    "a user": Caller(users.alice, users.ALICE, users.ALICE, 0o600, 0o755, 0),
    "a member of the group": Caller(users.bob, 0, users.TEAM, 0o660, 0o775, 0),
    "root of a user namespace": Caller(
        users.mapped_root, users.MAPPED + 5, users.MAPPED + 6, 0o600, 0o755,
        0),
    "root without capabilities": Caller(users.bare_root, 0, 0, 0o600, 0o755,
                                        users.BOB),
    "a user who makes devices": Caller(users.maker, users.ALICE, users.ALICE,
                                       0o600, 0o755, 0),
}
SECRET = "unheard-of"
SET_ID = stat.S_ISUID | stat.S_ISGID
# Of what state_of() tells of a file.
MODE, GROUP, CONTENT = 0, 2, 7


def shown_flags(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return flags_of(fd)
    except OSError:
        return "none"
    finally:
        os.close(fd)


def state_of(folder):
    """All that a call could change of what lies there."""
    found = {}
    for at, names, files in os.walk(folder):
        for name in [".", *names, *files]:
            path = os.path.join(at, name)
            st = os.lstat(path)
            content = b""
            attributes = {}
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            if not stat.S_ISLNK(st.st_mode):
                attributes = {key: os.getxattr(path, key)
                              for key in os.listxattr(path)}
            found[path] = (
                oct(st.st_mode), st.st_uid, st.st_gid, st.st_ino, st.st_nlink,
                st.st_size, st.st_mtime_ns, content, sorted(attributes.items()),
                shown_flags(path) if stat.S_ISREG(st.st_mode) else 0)
    return found



# --- what is taken away: prepared, taken away, and what is looked at

def file_of_his(folder, caller):
    path = os.path.join(folder, "file")
    make(path, "content")
    os.setxattr(path, "user.there", b"1")
    caller.own(path, caller.file_mode)
    return lambda: caller.lose(path, 0o4644)


def file_of_his_to_lock(folder, caller):
    """Once it is append-only it cannot be taken away."""
    taking = file_of_his(folder, caller)

    def take_away():
        with contextlib.suppress(PermissionError):
            taking()
    return take_away


def file_of_his_to_link(folder, caller):
    os.chmod(folder, 0o777)
    return file_of_his(folder, caller)


def privileged_file_of_his(folder, caller):
    taking = file_of_his(folder, caller)
    os.chmod(os.path.join(folder, "file"), 0o4000 | caller.file_mode)
    return taking


def full_folder(folder, caller):
    os.chmod(folder, 0o777)
    path = os.path.join(folder, "folder")
    make_folder(path)
    for name in ("file", "other"):
        make(os.path.join(path, name), "content", 0o666)
        caller.own(os.path.join(path, name), 0o666)
    for name in ("empty", "tree"):
        os.mkdir(os.path.join(path, name))
        caller.own(os.path.join(path, name), 0o777)
    make(os.path.join(folder, "outside"), "outside")
    caller.own(os.path.join(folder, "outside"), 0o666)
    return path


def folder_of_his(folder, caller):
    path = full_folder(folder, caller)
    caller.own(path, caller.folder_mode)
    return lambda: caller.lose(path, 0o755)


def shut_folder(folder, caller):
    """It is another's all the time, and open to all at first."""
    path = full_folder(folder, caller)
    caller.lose(path, 0o777)
    return lambda: os.chmod(path, 0o755)


def his_in_a_sticky_folder(folder, caller):
    path = full_folder(folder, caller)
    caller.lose(path, 0o1777)
    names = [os.path.join(path, name) for name in sorted(os.listdir(path))]

    def take_away():
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it was quicker
                caller.lose(name, 0o755)
    return take_away


def others_in_a_folder_made_sticky(folder, caller):
    path = full_folder(folder, caller)
    caller.lose(path, 0o777)
    for name in os.listdir(path):
        caller.lose(os.path.join(path, name), 0o755)
    return lambda: os.chmod(path, 0o1777)


def file_with_a_secret(folder, caller):
    """It is shut, and only then gets what nobody else is to know."""
    path = os.path.join(folder, "file")
    file_of_his(folder, caller)

    def take_away():
        caller.lose(path, 0o600)
        with open(path, "w", encoding="ascii") as out:
            out.write(SECRET)
        os.setxattr(path, "user.there", SECRET.encode())
    return take_away


def folder_with_a_secret(folder, caller):
    path = full_folder(folder, caller)
    link = os.path.join(path, "link")
    os.symlink("target", link)
    caller.own(path, caller.folder_mode)

    def take_away():
        caller.lose(path, 0o700)
        make(os.path.join(path, SECRET))
        os.remove(link)
        os.symlink(SECRET, link)
    return take_away


def file_made_set_id(folder, caller):
    """He may go on writing to it; but not in a set-id program."""
    path = os.path.join(folder, "file")
    make(path, "content")
    caller.own(path, 0o666)
    return lambda: caller.lose(path, 0o6777)


def file_of_another_group(folder, caller):
    """It stays his."""
    path = os.path.join(folder, "file")
    make(path, "content")
    caller.own(path, 0o755)
    return lambda: os.chown(path, -1, caller.then)


def folder_of_another_group(folder, caller):
    path = os.path.join(folder, "folder")
    make_folder(path)
    caller.own(path, 0o2777)

    def take_away():
        os.chown(path, -1, caller.then)
        os.chmod(path, 0o2777)
    return take_away


# --- calls

# With the path of a file, and a descriptor of it that was opened before.
OF_OWNERS = {
    "chmod": lambda p, fd: os.chmod(p, 0o6711),
    "fchmod": lambda p, fd: os.fchmod(fd, 0o604),
    "chown to the same group": lambda p, fd: os.fchown(
        fd, -1, os.fstat(fd).st_gid),
    "times": lambda p, fd: os.utime(p, (1, 2)),
    "times of an open file": lambda p, fd: os.utime(fd, (1, 2)),
    "an ACL": lambda p, fd: os.setxattr(p, "system.posix_acl_access",
                                        ACCESS_ACL),
    "flags": lambda p, fd: set_flags(fd, FS_NODUMP_FL),
}
OF_WRITERS = {
    "the current time": lambda p, fd: os.utime(p),
    "truncate": lambda p, fd: os.truncate(p, 3),
    "open with O_TRUNC": lambda p, fd: os.close(
        os.open(p, os.O_WRONLY | os.O_TRUNC)),
    "open with O_CREAT and O_TRUNC": lambda p, fd: os.close(
        os.open(p, os.O_RDWR | os.O_CREAT | os.O_TRUNC)),
    "a user. attribute": lambda p, fd: os.setxattr(p, "user.new", b"2"),
    "no user. attribute": lambda p, fd: os.removexattr(fd, "user.there"),
}
CLEARING = {"chown(-1, -1)": lambda p, fd: os.chown(p, -1, -1)}
WRITING = {
    "write": lambda p, fd: os.pwrite(fd, b"x", 0),
    "truncate of an open file": lambda p, fd: os.ftruncate(fd, 3),
    "fallocate": lambda p, fd: os.posix_fallocate(fd, 0, 9000),
    "copy into it": lambda p, fd: os.copy_file_range(fd, fd, 3, 0, 7),
}
KEEPING = {
    "chmod, set-gid": lambda p, fd: os.chmod(p, 0o2755),
    "fchmod, set-gid": lambda p, fd: os.fchmod(fd, 0o2711),
}
OF_NAMESPACES = {"chown to another user": lambda p, fd: os.chown(p, 7, -1)}
OF_MAKERS = {"append-only": lambda p, fd: set_flags(fd, FS_APPEND_FL)}


def all_of(path):
    with open(path, encoding="ascii") as text:
        return text.read()


READING = {
    "open to read": lambda p, fd: all_of(p),
    "a user. attribute that is read": lambda p, fd: os.getxattr(
        p, "user.there").decode(),
}


def in_folder(call, name, *others):
    """A call with `name` in the folder, and with others beside or in it."""
    def made(path, _fd):
        outside = os.path.dirname(path)
        return call(os.path.join(path, name),
                    *(os.path.join(path, other[2:]) if other.startswith("./")
                      else os.path.join(outside, other) for other in others))
    return made


LOSING = {
    "unlink": in_folder(os.unlink, "file"),
    "rmdir": in_folder(os.rmdir, "empty"),
    "rename": in_folder(os.rename, "file", "./renamed"),
    "rename over a file": in_folder(os.rename, "file", "./other"),
    "rename to outside": in_folder(os.rename, "file", "moved"),
    "rename from outside": in_folder(lambda to, of: os.rename(of, to), "other",
                                     "outside"),
    "rename of a folder": in_folder(os.rename, "tree", "./forest"),
}
GAINING = {
    "open with O_CREAT": in_folder(lambda p: os.close(
        os.open(p, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)), "new"),
    "mknod": in_folder(lambda p: os.mknod(p, stat.S_IFIFO | 0o644), "new"),
    "mkdir": in_folder(os.mkdir, "new"),
    "symlink": in_folder(lambda p: os.symlink("target", p), "new"),
    "link": in_folder(lambda to, of: os.link(of, to), "new", "outside"),
}
LISTING = {
    "list": lambda p, fd: sorted(os.listdir(p)),
    "look-up": in_folder(os.stat, "file"),
    "read of a link": in_folder(os.readlink, "link"),
}
KEEPING_NEW = {
    "open with O_CREAT, set-gid": in_folder(lambda p: os.close(os.open(
        p, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o2755)), "new"),
    "mknod, set-gid": in_folder(lambda p: os.mknod(p, stat.S_IFREG | 0o2755),
                                "new"),
}
DEVICES = {"mknod of a device": in_folder(lambda p: os.mknod(
    p, stat.S_IFCHR | 0o666, os.makedev(1, 3)), "new")}
# link(2) is for owners where fs.protected_hardlinks says so.
LINKING = {"link": lambda p, fd: os.link(p, p + "-link")}


# --- what must not be afterwards

def anything_else(then, now, _said):
    """What was found once it had been taken away is changed."""
    return now != then


def a_secret(_then, _now, said):
    return SECRET in said


def written_set_id(then, now, _said):
    """The contents are changed, and the set-id bits are there."""
    return any(then.get(path, now[path])[CONTENT] != now[path][CONTENT]
               and int(now[path][MODE], 8) & SET_ID for path in now)


def set_gid_of_others(then, now, _said):
    """A set-gid bit that is new, for the group that it came to."""
    return any(now[path] != then.get(path)
               and stat.S_ISREG(int(now[path][MODE], 8))
               and int(now[path][MODE], 8) & stat.S_ISGID
               and now[path][GROUP] in (0, users.BOB) for path in now)


class Case(typing.NamedTuple):
    """`refused`: whether such a call fails when it comes too late. `atomic`:
    whether one that began before does, too."""
    name: str
    call: typing.Callable
    prepare: typing.Callable
    leaf: str
    wrong: typing.Callable = anything_else
    refused: bool = True
    atomic: bool = True
    flags: int = os.O_RDONLY


def cases_of(title, visibility):
    def each(what, prepare, leaf, calls, **more):
        for name, call in calls.items():
            yield Case(f"{name}, {what}", call, prepare, leaf, **more)

    owns = CALLERS[title].become is not users.bob
    if CALLERS[title].become is users.maker:
        yield from each("a file", file_of_his_to_lock, "file", OF_MAKERS)
        yield from each("a folder", folder_of_his, "folder", DEVICES)
        yield from each("a folder that is shut", shut_folder, "folder", DEVICES)
        return
    yield from each("a file", file_of_his, "file", OF_WRITERS)
    yield from each("a folder", folder_of_his, "folder", LOSING | GAINING)
    yield from each("a folder that is shut", shut_folder, "folder",
                    LOSING | GAINING)
    yield from each("a file", file_made_set_id, "file", WRITING,
                    wrong=written_set_id, refused=False, flags=os.O_RDWR)
    yield from each("a folder of another group", folder_of_another_group,
                    "folder", KEEPING_NEW, wrong=set_gid_of_others,
                    refused=False)
    if visibility == "exact":
        # The kernel decides by what it has just been told: see the page.
        yield from each("a file", file_with_a_secret, "file", READING,
                        wrong=a_secret, atomic=False)
        yield from each("a folder", folder_with_a_secret, "folder", LISTING,
                        wrong=a_secret, atomic=False)
    if owns:
        yield from each("a file", file_of_his, "file", OF_OWNERS)
        yield from each("a file of another group", file_of_another_group,
                        "file", KEEPING, wrong=set_gid_of_others, refused=False)
        yield from each("a set-id file", privileged_file_of_his, "file",
                        CLEARING)
        yield from each("files in a sticky folder", his_in_a_sticky_folder,
                        "folder", LOSING)
    if CALLERS[title].become is users.mapped_root:
        yield from each("a file", file_of_his, "file", OF_NAMESPACES)
    yield from each("a folder that becomes sticky",
                    others_in_a_folder_made_sticky, "folder", LOSING)
    with open("/proc/sys/fs/protected_hardlinks", encoding="ascii") as value:
        if value.read().strip() == "1" and owns:
            yield from each("a file", file_of_his_to_link, "file", LINKING)


# docs/security.md says so: a file is made by root of a namespace, where another
# owner's directory is shut to him but for a capability; and he gives a file away.
# That is asked before.
KNOWN = {f"{name}, a folder" for name in GAINING if name != "link"} | {
    f"{name}, a file" for name in OF_NAMESPACES}


class Asked:
    """A process that has become somebody, and makes a call when it is told to:
    that of one of `cases`, by its number."""

    def __init__(self, become, cases):
        requests, answers = os.pipe(), os.pipe()
        self.cases = cases
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(requests[1])
                os.close(answers[0])
                become()
                os.umask(0)
                self.serve(os.fdopen(requests[0]), answers[1])
            finally:
                os._exit(0)
        os.close(requests[0])
        os.close(answers[1])
        self.requests = os.fdopen(requests[1], "w")
        self.answers = os.fdopen(answers[0])

    def serve(self, requests, answers):
        for line in requests:
            number, path = line.rstrip("\n").split(" ", 1)
            # What was seen before is remembered, as far as the kernel may.
            case = self.cases[int(number)]
            os.stat(path)
            fd = os.open(path, case.flags)
            os.write(answers, b"ready\n")
            requests.readline()
            said = told(case.call, path, fd)
            os.write(answers, said.encode() + b"\n")
            os.close(fd)

    def prepare(self, number, path):
        self.tell(f"{number} {path}")
        expect(self.answer() == "ready", "the caller cannot open its file")

    def tell(self, text):
        self.requests.write(text + "\n")
        self.requests.flush()

    def answer(self):
        return self.answers.readline().rstrip("\n")

    def end(self):
        self.requests.close()
        self.answers.close()
        os.waitpid(self.pid, 0)


def unlock(path):
    """So that it can be removed."""
    fd = os.open(path, os.O_RDONLY)
    set_flags(fd, 0)
    os.close(fd)


@contextlib.contextmanager
def held_up(suite, mount):
    """strace keeps the daemon waiting before each call that decides."""
    log = suite.path("strace.log")
    with open(log, "wb") as out:
        tracer = suite.background(subprocess.Popen(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(mount.pid),
             "-e", f"trace=!{AT_ONCE}",
             "-e", f"inject=!{AT_ONCE}:delay_enter={int(DELAY_S * 1e6)}"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def threads_are_traced():
        with open(log, encoding="utf-8", errors="replace") as said:
            expect(tracer.poll() is None, f"strace has ended: {said.read()}")
        for thread in os.listdir(f"/proc/{mount.pid}/task"):
            with open(f"/proc/{mount.pid}/task/{thread}/status",
                      encoding="ascii") as status:
                if f"TracerPid:\t{tracer.pid}\n" not in status.read():
                    return False
        return True

    wait_until(threads_are_traced, "strace")
    try:
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()


class Races(Compared):
    """The rounds of one setting."""

    def race(self, title, count):
        caller = CALLERS[title]
        cases = list(cases_of(title, self.setting[0]))
        asked = Asked(caller.become, cases)
        wrong = {}
        try:
            with self.mounted() as (source, point):
                for number, case in enumerate(cases):
                    late = self.too_late(caller, case, asked, number, source,
                                         source, count)
                    expect(not late or not case.atomic,
                           f"{case.name}, without the mount: {late}")
                with held_up(self.suite, self.mount):
                    for number, case in enumerate(cases):
                        late = self.too_late(caller, case, asked, number,
                                             source, point, count)
                        if late and case.atomic:
                            wrong[case.name] = late
        finally:
            asked.end()
        known = KNOWN if caller.become is users.mapped_root else set()
        expect_equal({name: said for name, said in wrong.items()
                      if name not in known}, {},
                     "changed after it was taken away")

    def too_late(self, caller, case, asked, number, source, seen, count):
        """What the calls said that came to something after it had been taken
        away."""
        late = []

        def once(moment):
            """What is said and how long it took; it is taken away before the
            call (None), or so many seconds after its begin, or not at all
            (UNDISTURBED)."""
            self.number += 1
            folder = os.path.join(source, f"round-{self.number}")
            os.mkdir(folder)
            take_away = case.prepare(folder, caller)
            asked.prepare(number, os.path.join(
                seen, os.path.basename(folder), case.leaf))
            if moment is None:
                take_away()
                then = state_of(folder)
            begin = time.monotonic()
            asked.tell("")
            if moment is not None and moment != UNDISTURBED:
                time.sleep(moment)
                take_away()
                then = state_of(folder)
            said = asked.answer()
            took = time.monotonic() - begin
            if moment != UNDISTURBED and case.wrong(then, state_of(folder),
                                                    said):
                late.append((said, f"{moment} of {longest}"))
            if case.call in OF_MAKERS.values():
                unlock(os.path.join(folder, case.leaf))
            shutil.rmtree(folder)
            return said, took

        longest = 0
        said, longest = once(UNDISTURBED)
        expect(not said.isupper(), f"{case.name}, while it is his: {said}")
        said, _ = once(None)
        expect(said.isupper() == case.refused and not late,
               f"{case.name}, when it is not his any more: {said} {late}")
        for turn in range(count):
            once((turn + 0.5) * longest / count)
        return late


def options(parser):
    parser.add_argument("--all", action="store_true",
                        help="every visibility over every transport")
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="moments of each call (default: 5)")


def main():
    suite = Suite("races", __doc__, options)
    if shutil.which("strace") is None:
        suite.skip_all("there is no strace")
    settings = [("ext4", "exact", "dev", ALL),
                *(("tmpfs", visibility, "uring", LEFT_TO_KERNEL)
                  for visibility in VISIBILITIES),
                ("tmpfs", "fast", "dev", ALL)]
    if suite.options.all:
        settings = [(kind, visibility, transport, filter_text)
                    for kind in ("ext4", "xfs", "tmpfs")
                    for visibility in VISIBILITIES
                    for transport in TRANSPORTS
                    for filter_text in (ALL, LEFT_TO_KERNEL)]

    def cases(races):
        for title in CALLERS:
            if (suite.options.all or races.setting[0] == "exact"
                    or "user" in title):
                yield (f"calls of {title}", races.race, title,
                       suite.options.rounds)

    run_settings(suite, settings, cases, Races)
    suite.finish()


if __name__ == "__main__":
    main()
