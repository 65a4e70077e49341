"""Sockets, ioctl and poll."""

import stat

from .lookup import Lookup
from .model import OpenFile


class Special(Lookup):
    def sys_bind(self, _fd, address, _size):
        name = address.get("sun_path") if isinstance(address, dict) else None
        if isinstance(name, str):
            self.sys_mknod(name, stat.S_IFSOCK | 0o777)

    def sys_connect(self, _fd, address, _size):
        name = address.get("sun_path") if isinstance(address, dict) else None
        if isinstance(name, str):
            self.target(None, name)

    def sys_ioctl(self, fd, command, *_rest):
        file = self.traced(fd)
        if file is None:
            return
        if self.next_is("open") or self.next_is("opendir"):
            # Flags of chattr(1): on a handle of the kernel's own.
            event = self.take(self.peek()["op"], ino=file.ino)
            self.kernel_requests["open for an ioctl"] += 1
            private = OpenFile(file.path, 0, "file")
            self.note_handle(private, event)
            self.take("ioctl", fh=private.fh)
        elif self.next_is("ioctl"):
            self.take("ioctl", self.call.error, fh=file.fh, command=command)

    def sys_poll(self, fds, *_rest):
        for entry in fds or []:
            file = self.traced(entry["fd"])
            if file is not None and self.next_is("poll"):
                self.take("poll", fh=file.fh)

    sys_ppoll = sys_poll
