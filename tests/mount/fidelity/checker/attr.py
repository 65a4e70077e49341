"""Attributes: stat, and what changes them."""

import strace_log
from kept import ALL, Kept

from .flags import AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, UNCHANGED
from .lookup import Lookup

# FUSE's bits of ARG_VALID.
FATTR_MODE, FATTR_UID, FATTR_GID, FATTR_SIZE = 1, 2, 4, 8
FATTR_ATIME, FATTR_MTIME, FATTR_ATIME_NOW, FATTR_MTIME_NOW = 16, 32, 128, 256
FATTR_COMPARED = 0x1BF
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
STATX_BTIME = 0x800


class Attributes(Lookup):
    def stat(self, dirfd, name, flags=0, follow=True, op="getattr", mask=ALL):
        """stat and its kin: the kernel asks for attributes. That it does is
        compared; how often it asks beside is its own business."""
        walk = self.target(dirfd, name, flags, follow)
        if walk is None or walk.ino is None or not self.call.ok:
            return  # not ours, or the root of the mount
        if op == "statx" and self.next_is("statx"):
            self.take("statx", ino=walk.ino)
            return
        result = [a for a in strace_log.args(self.call)
                  if isinstance(a, dict)][0]
        for event in self.thread.events:
            if self.by_kernel(event, None) is None:
                break
            if (event["op"] == "getattr" and event["ino"] == walk.ino
                    and self.during_call(event)
                    and Kept.same(event, result, mask)):
                self.pop(event, None)
                self.counts["getattr"] += 1
                if walk.ino in self.sizes and (
                        self.sizes[walk.ino] != event["fsize"]):
                    self.fail(f"the checker believed in a size of "
                              f"{self.sizes[walk.ino]}")
                return
        if not self.kept.has_attributes(walk.ino, result, self.call, mask):
            self.fail(f"a getattr of {walk.path} with this result is missing")
        self.hidden["getattr"] += 1

    def sys_stat(self, name, _result):
        self.stat(None, name)

    def sys_lstat(self, name, _result):
        self.stat(None, name, follow=False)

    def sys_fstat(self, fd, _result):
        self.stat(fd, "", AT_EMPTY_PATH)

    def sys_newfstatat(self, dirfd, name, _result, flags):
        self.stat(dirfd, name, flags)

    def sys_statx(self, dirfd, name, flags, mask, _result):
        self.stat(dirfd, name, flags, op="statx" if mask & STATX_BTIME
                  else "getattr", mask=mask)

    def sys_statfs(self, name, _result):
        if self.target(None, name) is not None:
            self.done("statfs")

    def sys_fstatfs(self, fd, _result):
        file = self.traced(fd)
        if file is not None:
            self.done("statfs")

    def setattr(self, walk, valid, **fields):
        if walk is None:
            return
        event = self.done("setattr", ino=walk.ino, **fields)
        if event is not None and (event["valid"] ^ valid) & FATTR_COMPARED:
            self.fail(f"valid of {event} is not {valid:#x}")
        if self.call.ok and "new_size" in fields:
            self.sizes[walk.ino] = fields["new_size"]

    def chmod(self, walk, mode):
        self.setattr(walk, FATTR_MODE, mode=mode & 0o7777)

    def sys_chmod(self, name, mode):
        self.chmod(self.target(None, name), mode)

    def sys_fchmod(self, fd, mode):
        self.chmod(self.target(fd, "", AT_EMPTY_PATH), mode)

    def sys_fchmodat(self, dirfd, name, mode, *_rest):
        self.chmod(self.target(dirfd, name), mode)

    def sys_fchmodat2(self, dirfd, name, mode, flags):
        self.chmod(self.target(dirfd, name, flags), mode)

    def chown(self, walk, uid, gid):
        fields, valid = {}, 0
        if uid not in (-1, UNCHANGED):
            valid |= FATTR_UID
            fields["new_uid"] = uid
        if gid not in (-1, UNCHANGED):
            valid |= FATTR_GID
            fields["new_gid"] = gid
        self.setattr(walk, valid, **fields)

    def sys_chown(self, name, uid, gid):
        self.chown(self.target(None, name), uid, gid)

    def sys_lchown(self, name, uid, gid):
        self.chown(self.target(None, name, AT_SYMLINK_NOFOLLOW), uid, gid)

    def sys_fchown(self, fd, uid, gid):
        self.chown(self.target(fd, "", AT_EMPTY_PATH), uid, gid)

    def sys_fchownat(self, dirfd, name, uid, gid, flags):
        self.chown(self.target(dirfd, name, flags), uid, gid)

    def sys_truncate(self, name, size):
        self.setattr(self.target(None, name), FATTR_SIZE, new_size=size)

    def sys_ftruncate(self, fd, size):
        self.setattr(self.target(fd, "", AT_EMPTY_PATH), FATTR_SIZE,
                     new_size=size)

    def times(self, walk, times):
        fields, valid = {}, 0
        for i, (key, bit, now) in enumerate((
                ("new_atime", FATTR_ATIME, FATTR_ATIME_NOW),
                ("new_mtime", FATTR_MTIME, FATTR_MTIME_NOW))):
            if times is None or times[i]["tv_nsec"] == UTIME_NOW:
                valid |= bit | now
            elif times[i]["tv_nsec"] != UTIME_OMIT:
                valid |= bit
                fields[key] = (times[i]["tv_sec"] * 10**9
                               + times[i]["tv_nsec"])
        if valid:
            self.setattr(walk, valid, **fields)

    def sys_utimensat(self, dirfd, name, times, flags):
        self.times(self.target(dirfd, name, flags), times)
