"""Listings of directories."""

import os

from .lookup import Lookup


class Directories(Lookup):
    @staticmethod
    def entry_sizes(entries):
        """Bytes of these entries as READDIR and as READDIRPLUS answer."""
        plain = plus = 0
        for entry in entries:
            name = len(os.fsencode(entry["d_name"]))
            plain += (24 + name + 7) & ~7
            plus += (152 + name + 7) & ~7
        return plain, plus

    def sys_getdents64(self, fd, entries, count):
        file = self.traced(fd)
        if file is None:
            return
        known = self.kept.has_listing(file.ino)
        if self.call.ok:
            self.kept.note_listing(file.path, file.ino, entries,
                                   self.call.next_us)
        if (known
                and not self.next_is("readdir", fh=file.fh,
                                     offset=file.position)):
            self.hidden["readdir"] += 1
            if self.call.ok and entries:
                file.position = entries[-1]["d_off"] & (2**64 - 1)
            return
        event = self.done("readdir", fh=file.fh, ino=file.ino,
                          offset=file.position)
        if event is None or not self.call.ok:
            return
        if event["result"] not in self.entry_sizes(entries):
            self.fail(f"{len(entries)} entries are {self.entry_sizes(entries)}"
                      f" bytes, not those of {event}")
        if entries:
            file.position = entries[-1]["d_off"] & (2**64 - 1)
