"""What descriptors stand for, and the calls that only move them."""

from strace_log import number_of

from .flags import O_CLOEXEC
from .requests import Requests


class Descriptors(Requests):
    def file(self, fd):
        number = number_of(fd)
        return self.thread.process.fds.get(number)

    def traced(self, fd):
        file = self.file(fd)
        return file if file is not None and file.traced else None

    def note_handle(self, file, event):
        if event["fh"] in self.files:
            self.fail(f"the handle of {event} was given before")
        file.fh = event["fh"]
        file.ino = event["ino"]
        self.files[file.fh] = file

    def close_fd(self, number):
        file = self.thread.process.remove(number)
        if file is None:
            return
        if file.traced and file.kind == "file":
            file.flushed(self.take(
                "flush", None if self.call.ok else self.call.error,
                fh=file.fh, ino=file.ino))

    def drop_all(self, process, numbers):
        """exec and exit close these; their flushes come when they come."""
        for number in list(numbers):
            file = process.remove(number)
            if file is None:
                continue
            if file.traced and file.kind == "file":
                process.late_flushes[file.fh] += 1

    def sys_close(self, fd):
        if self.call.error != "EBADF":
            self.close_fd(number_of(fd))

    def sys_close_range(self, first, last, _flags):
        for number in sorted(self.thread.process.fds):
            if first <= number <= last:
                self.close_fd(number)

    def duplicate(self, old, new, close_on_exec):
        if not self.call.ok:
            return
        file = self.file(old)
        if new == number_of(old):
            return
        self.close_fd(new)
        if file is not None:
            self.thread.process.install(new, file, close_on_exec)

    def sys_dup(self, old):
        self.duplicate(old, self.call.result, False)

    def sys_dup2(self, old, _new):
        self.duplicate(old, self.call.result, False)

    def sys_dup3(self, old, _new, flags):
        self.duplicate(old, self.call.result, flags & O_CLOEXEC)
