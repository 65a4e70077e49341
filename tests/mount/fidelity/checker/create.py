"""What makes names: mkdir, mknod, symlink, link."""

from kept import arrived_us

from .flags import AT_EMPTY_PATH, AT_SYMLINK_FOLLOW
from .lookup import Lookup


class Create(Lookup):
    def made(self, event, path, kind):
        """The number of an inode that is gone may be given again."""
        if event is not None and self.call.ok:
            self.sizes.pop(event.get("ino"), None)
            self.kept.note_name(path, event["ino"], kind, arrived_us(event))

    def sys_mkdir(self, name, mode, dirfd=None):
        walk = self.walk(dirfd, name, False, creates=True)
        inner = self.inside(walk.path)
        if inner is not None and walk.error == "ENOENT":
            event = self.done("mkdir", path=inner,
                              umask=self.thread.process.umask)
            if event is not None and (event["mode"] ^ mode) & 0o1777:
                self.fail(f"mode of {event} is not {mode:o}")
            self.made(event, walk.path, "dir")

    def sys_mkdirat(self, dirfd, name, mode):
        self.sys_mkdir(name, mode, dirfd)

    def sys_mknod(self, name, mode, device=0, dirfd=None):
        walk = self.walk(dirfd, name, False, creates=True)
        inner = self.inside(walk.path)
        if inner is not None and walk.error == "ENOENT":
            # A regular file made with mknod is a mknod as well.
            event = self.done("mknod", path=inner,
                              umask=self.thread.process.umask)
            if event is not None and (event["mode"] ^ mode) & 0o171777 & ~(
                    self.thread.process.umask):
                self.fail(f"mode of {event} is not {mode:o}")
            self.made(event, walk.path, event and event.get("type"))

    def sys_mknodat(self, dirfd, name, mode, device=0):
        self.sys_mknod(name, mode, device, dirfd)

    def sys_symlink(self, target, name, dirfd=None):
        walk = self.walk(dirfd, name, False, creates=True)
        inner = self.inside(walk.path)
        if inner is not None and walk.error == "ENOENT":
            self.made(self.done("symlink", path=inner, target=target),
                      walk.path, "link")
            if self.call.ok:
                self.links[walk.path] = target

    def sys_symlinkat(self, target, dirfd, name):
        self.sys_symlink(target, name, dirfd)

    def sys_link(self, old, new):
        self.link(None, old, None, new, 0)

    def sys_linkat(self, old_fd, old, new_fd, new, flags):
        self.link(old_fd, old, new_fd, new, flags)

    def link(self, old_fd, old, new_fd, new, flags):
        if old == "" and flags & AT_EMPTY_PATH:
            source = self.target(old_fd, old, flags)
        elif old.startswith("/proc/"):
            source = None  # the file behind a descriptor
        else:
            source = self.walk(old_fd, old, bool(flags & AT_SYMLINK_FOLLOW))
            if not source.found:
                return
        walk = self.walk(new_fd, new, False, creates=True)
        inner = self.inside(walk.path)
        if inner is None or walk.error != "ENOENT":
            return
        if source is not None and self.inside(source.path) is None:
            return
        ino = source.ino if source else None
        named = source and not (self.kept.anything
                                and ino in self.hard_linked)
        event = self.done("link", ino=ino, path2=inner,
                          path=self.inside(source.path) if named else None)
        if event is not None and self.call.ok:
            self.hard_linked.add(event["ino"])
            self.kept.note_name(walk.path, event["ino"], event.get("type"),
                                arrived_us(event))
            if source and source.path in self.links:
                self.links[walk.path] = self.links[source.path]
