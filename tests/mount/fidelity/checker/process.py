"""Processes: what they inherit, run and become."""

import os

import strace_log

from .flags import UNCHANGED
from .lookup import Lookup
from .model import OpenFile, Thread

CLONE_THREAD = 0x10000


class Processes(Lookup):
    def cloned(self, flags):
        if not self.call.ok:
            return
        child = self.call.result
        parent = self.thread
        if flags & CLONE_THREAD:
            process = parent.process
        else:
            process = parent.process.fork(child)
        thread = Thread(child, process, parent.comm, self.by_tid[child])
        thread.old_comms |= parent.old_comms
        self.threads[child] = thread

    def sys_clone(self, *_arguments):
        found = [a for a in self.call.args.split(", ")
                 if a.startswith("flags=")]
        self.cloned(strace_log.parse_value(found[0]))

    def sys_clone3(self, arguments, *_rest):
        self.cloned(arguments["flags"])

    def sys_fork(self, *_arguments):
        self.cloned(0)

    sys_vfork = sys_fork

    def sys_execve(self, name, *_rest):
        if self.call.begin_us == self.calls[0].begin_us:
            return  # strace's own start of the command
        walk = self.walk(None, name)
        inner = self.inside(walk.path)
        if inner is not None and walk.kind == "file" and (
                self.next_is("open", ino=walk.ino)):
            event = self.take("open")
            file = OpenFile(walk.path, 0, "exec")
            self.note_handle(file, event)
            self.mapped.add(walk.ino)
        if not self.call.ok:
            return
        process = self.thread.process
        self.drop_all(process, set(process.close_on_exec))
        self.rename_thread(os.path.basename(name)[:15])

    def sys_exit_group(self, *_arguments):
        self.drop_all(self.thread.process, set(self.thread.process.fds))

    def rename_thread(self, comm):
        self.thread.old_comms.add(self.thread.comm)
        self.thread.comm = comm

    def sys_prctl(self, option, *rest):
        if option == 15 and self.call.ok:  # PR_SET_NAME
            self.rename_thread(rest[0][:15])

    def sys_umask(self, mask):
        self.thread.process.umask = mask

    def identity(self, uid=None, gid=None):
        if not self.call.ok:
            return
        if uid not in (None, -1, UNCHANGED):
            self.thread.process.uid = uid
        if gid not in (None, -1, UNCHANGED):
            self.thread.process.gid = gid

    def sys_setuid(self, uid):
        self.identity(uid=uid)

    def sys_setgid(self, gid):
        self.identity(gid=gid)

    def sys_setreuid(self, _real, effective):
        self.identity(uid=effective)

    def sys_setregid(self, _real, effective):
        self.identity(gid=effective)

    def sys_setresuid(self, _real, effective, _saved):
        self.identity(uid=effective)

    def sys_setresgid(self, _real, effective, _saved):
        self.identity(gid=effective)

    def sys_setfsuid(self, uid):
        self.identity(uid=uid)

    def sys_setfsgid(self, gid):
        self.identity(gid=gid)
