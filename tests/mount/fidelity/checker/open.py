"""open and its kin."""

from kept import arrived_us

from .flags import (O_CLOEXEC, O_COMPARED, O_CREAT, O_EXCL, O_NOFOLLOW, O_PATH,
                    O_TMPFILE, O_TRUNC)
from .lookup import Lookup
from .model import OpenFile


class Open(Lookup):
    def opened(self, dirfd, name, flags, mode):
        call = self.call
        process = self.thread.process
        if flags & O_TMPFILE == O_TMPFILE:
            walk = self.walk(dirfd, name)
            return self.open_tmpfile(walk, flags, mode)
        creates = bool(flags & O_CREAT)
        follow = not (flags & O_NOFOLLOW or (creates and flags & O_EXCL))
        walk = self.walk(dirfd, name, follow, creates)
        inner = self.inside(walk.path)
        file = OpenFile(walk.path, flags, "outside")
        if inner is None or flags & O_PATH:
            if flags & O_PATH and inner is not None:
                file.kind = "other"
                file.ino = walk.ino
        elif not call.ok:
            if creates and walk.error == "ENOENT":
                self.take_if("create", path=inner)
            elif walk.found and walk.kind == "dir":
                self.take_if("opendir", path=inner)
            elif walk.found:
                self.take_if("open", path=inner)
            return
        elif creates and walk.error == "ENOENT":
            event = self.take("create", path=inner, mode=None,
                              umask=process.umask)
            if flags & O_EXCL:
                flags &= ~O_TRUNC  # there is nothing to truncate
            self.compare_flags(event, flags)
            if (event["mode"] ^ mode) & 0o1777:
                self.fail(f"mode of {event} is not {mode:o}")
            file.kind = "file"
            self.sizes[event["ino"]] = 0
            self.kept.note_name(walk.path, event["ino"], "file",
                                arrived_us(event))
        elif walk.kind == "dir" or inner == "/":
            event = self.take("opendir", path=inner)
            file.kind = "dir"
        elif walk.kind == "file":
            # Which of several names it was the kernel says with the lookup.
            several = self.kept.anything and walk.ino in self.hard_linked
            event = self.take("open", path=None if several else inner,
                              ino=walk.ino)
            self.compare_flags(event, flags)
            if flags & O_TRUNC:
                self.sizes[event["ino"]] = 0
            file.kind = "file"
        else:
            file.kind = "other"  # a device, a FIFO: never ours
        if not call.ok:
            return
        if file.kind in ("file", "dir"):
            self.note_handle(file, event)
        process.install(call.result, file, flags & O_CLOEXEC)

    def open_tmpfile(self, walk, flags, mode):
        inner = self.inside(walk.path)
        file = OpenFile(walk.path, flags, "outside")
        if inner is not None and walk.found:
            event = self.done("tmpfile", umask=self.thread.process.umask)
            if event is not None and self.call.ok:
                file.kind = "file"
                self.note_handle(file, event)
                self.sizes[event["ino"]] = 0
        if self.call.ok:
            self.thread.process.install(self.call.result, file,
                                        flags & O_CLOEXEC)

    def compare_flags(self, event, flags):
        if (event["flags"] ^ flags) & O_COMPARED:
            self.fail(f"flags of {event} are not 0{flags:o}")

    def sys_open(self, name, flags, mode=0):
        self.opened(None, name, flags, mode)

    def sys_creat(self, name, mode):
        self.opened(None, name, O_CREAT | O_TRUNC | 1, mode)

    def sys_openat(self, dirfd, name, flags, mode=0):
        self.opened(dirfd, name, flags, mode)

    def sys_openat2(self, dirfd, name, how, _size):
        self.opened(dirfd, name, how["flags"], how.get("mode", 0))
