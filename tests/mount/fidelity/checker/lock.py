"""fcntl and flock: flags of descriptors, and locks."""

from strace_log import number_of

from .flags import O_APPEND, O_DIRECT
from .lookup import Lookup


class Lock(Lookup):
    def sys_fcntl(self, fd, command, argument=0, *_rest):
        process = self.thread.process
        number = number_of(fd)
        file = self.file(fd)
        if command in (0, 0x406):  # F_DUPFD, F_DUPFD_CLOEXEC
            self.duplicate(fd, self.call.result, command == 0x406)
        elif command == 2 and self.call.ok:  # F_SETFD
            if argument & 1:
                process.close_on_exec.add(number)
            else:
                process.close_on_exec.discard(number)
        elif command == 4 and self.call.ok and file is not None:  # F_SETFL
            kept = O_APPEND | O_DIRECT
            file.flags = (file.flags & ~kept) | (argument & kept)
        elif (command in (5, 6, 7, 36, 37, 38) and self.locks
              and self.traced(fd)):
            # F_GETLK, F_SETLK, F_SETLKW, and those of open files.
            self.record_lock(file, command, argument)

    def record_lock(self, file, command, argument):
        fields = {"offset": argument["l_start"], "size": argument["l_len"]}
        if command in (5, 36):
            # strace prints the lock that was found, not that asked for.
            self.done("getlk", fh=file.fh)
        elif self.call.error == "EAGAIN":
            self.take("setlk", "EAGAIN", fh=file.fh, **fields)
        else:
            self.done("setlk", fh=file.fh, lock_type=argument["l_type"],
                      flags=1 if command in (7, 38) else 0, **fields)

    def sys_flock(self, fd, operation):
        file = self.traced(fd)
        if file is not None and self.locks:
            kind = {1: 0, 2: 1, 8: 2}[operation & ~4]
            waits = 1 if kind != 2 and not operation & 4 else 0
            self.take("flock", self.call.error, fh=file.fh, lock_type=kind,
                      flags=waits)
