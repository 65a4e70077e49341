"""What takes names away or moves them: unlink, rmdir, rename."""

import os

from .flags import AT_REMOVEDIR
from .lookup import REFUSED_ON_THE_WAY, Lookup
from .model import Walk


class Remove(Lookup):
    def removed(self, op, dirfd, name):
        walk = self.walk(dirfd, name, False)
        inner = self.inside(walk.path)
        if inner is not None and walk.found:
            self.done(op, path=inner, ino=walk.ino)
            if self.call.ok:
                self.links.pop(walk.path, None)
                self.kept.drop_name(walk.path)

    def sys_unlink(self, name):
        self.removed("unlink", None, name)

    def sys_rmdir(self, name):
        self.removed("rmdir", None, name)

    def sys_unlinkat(self, dirfd, name, flags):
        self.removed("rmdir" if flags & AT_REMOVEDIR else "unlink", dirfd,
                     name)

    def sys_rename(self, old, new):
        self.renamed(None, old, None, new, 0)

    def sys_renameat(self, old_fd, old, new_fd, new):
        self.renamed(old_fd, old, new_fd, new, 0)

    def sys_renameat2(self, old_fd, old, new_fd, new, flags):
        self.renamed(old_fd, old, new_fd, new, flags)

    def renamed(self, old_fd, old, new_fd, new, flags):
        # Both directories are walked before either last name is looked up.
        old_dir, old_name = self.split(old)
        new_dir, new_name = self.split(new)
        from_dir = self.walk_to_dir(old_fd, old, old_dir)
        if from_dir is None:
            return
        into_dir = self.walk_to_dir(new_fd, new, new_dir)
        if into_dir is None:
            return
        crosses = (self.inside(from_dir.path) is None) != (
            self.inside(into_dir.path) is None)
        if crosses:
            return  # EXDEV before anything is looked up
        source = self.last_component(from_dir.path, old_name)
        if source is None:
            return
        goal = self.last_component(into_dir.path, new_name, may_miss=True)
        if goal is None:
            return
        one, two = self.inside(source.path), self.inside(goal.path)
        if one is None or two is None:
            return
        if self.call.ok and goal.found and goal.ino == source.ino:
            return  # two names of one file: nothing to do
        if self.call.error == "ENOTEMPTY" and one.startswith(two + "/"):
            return  # what holds the file is not empty: the kernel knows
        event = self.done("rename", path=one, path2=two, flags=flags)
        if not self.call.ok:
            return
        self.kept.rename(source.path, goal.path, flags & 2)
        moved = [(p, t) for p, t in self.links.items()
                 if (p + "/").startswith(source.path + "/")]
        for path, target in moved:
            del self.links[path]
        if not flags & 2:
            self.links.pop(goal.path, None)
        for path, target in moved:
            self.links[goal.path + path[len(source.path):]] = target
        # Where open directories and working directories are now is read from
        # strace's paths; processes that stand below are not.
        for thread in self.threads.values():
            cwd = thread.process.cwd
            if (cwd + "/").startswith(source.path + "/"):
                thread.process.cwd = goal.path + cwd[len(source.path):]

    @staticmethod
    def split(name):
        stripped = name.rstrip("/")
        folder, _, last = stripped.rpartition("/")
        if stripped.startswith("/") and not folder:
            folder = "/"
        return folder, last

    def walk_to_dir(self, dirfd, whole, folder):
        if folder == "" and not whole.startswith("/"):
            return Walk(self.base(dirfd), True, kind="dir")
        walk = self.walk(dirfd, folder)
        return walk if walk.found and walk.kind in ("dir", None) else None

    def last_component(self, folder, name, may_miss=False):
        where = os.path.join(folder, name)
        inner = self.inside(where)
        if inner is None:
            return Walk(where, os.path.lexists(where))
        walk = self.look_up(where, inner)
        if walk is None:
            # EINVAL, ENOTEMPTY: a directory into itself, or over its parent.
            if self.call.error in REFUSED_ON_THE_WAY | {"EINVAL", "ENOTEMPTY"}:
                return None
            self.fail(f"a lookup of {inner} is missing")
        if not walk.found and not (may_miss and walk.error == "ENOENT"):
            if walk.error != self.call.error:
                self.fail(f"the lookup of {inner} failed with {walk.error}, "
                          "and the call otherwise")
            return None
        return walk
