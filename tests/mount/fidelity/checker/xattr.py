"""Extended attributes."""

from .flags import AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW
from .lookup import Lookup
from .requests import POSIX_ACLS


class Xattrs(Lookup):
    def xattr(self, op, walk, **fields):
        if walk is None:
            return None
        if fields.get("xattr") in POSIX_ACLS:
            # The kernel reads and writes ACLs through a cache and a form of
            # its own.
            if self.next_is(op, ino=walk.ino, xattr=fields["xattr"]):
                self.take(op, self.peek().get("errno"))
            return None
        event = self.done(op, ino=walk.ino, **fields)
        if event is not None and self.call.ok and op in ("getxattr",
                                                         "listxattr"):
            if event["result"] != self.call.result:
                self.fail(f"result of {event} is not {self.call.result}")
        return event

    def sys_setxattr(self, name, key, _value, size, flags, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("setxattr", walk, xattr=key, size=size, flags=flags)

    def sys_lsetxattr(self, name, *rest):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_setxattr(None, *rest, walk=walk)

    def sys_fsetxattr(self, fd, *rest):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_setxattr(None, *rest, walk=walk)

    def sys_getxattr(self, name, key, _value, size, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("getxattr", walk, xattr=key, size=size)

    def sys_lgetxattr(self, name, *rest):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_getxattr(None, *rest, walk=walk)

    def sys_fgetxattr(self, fd, *rest):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_getxattr(None, *rest, walk=walk)

    def sys_listxattr(self, name, _list, size, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("listxattr", walk, size=size)

    def sys_llistxattr(self, name, *rest):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_listxattr(None, *rest, walk=walk)

    def sys_flistxattr(self, fd, *rest):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_listxattr(None, *rest, walk=walk)

    def sys_removexattr(self, name, key, walk=False):
        if walk is False:
            walk = self.target(None, name)
        self.xattr("removexattr", walk, xattr=key)

    def sys_lremovexattr(self, name, key):
        walk = self.target(None, name, AT_SYMLINK_NOFOLLOW)
        self.sys_removexattr(None, key, walk=walk)

    def sys_fremovexattr(self, fd, key):
        walk = self.target(fd, "", AT_EMPTY_PATH)
        self.sys_removexattr(None, key, walk=walk)
