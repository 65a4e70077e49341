"""Path walks: the look-ups and links that lead to a file."""

import os
import re

import strace_log
from kept import arrived_us

from .descriptors import Descriptors
from .flags import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW
from .model import Walk

# Errors that end a path walk early.
REFUSED_ON_THE_WAY = {"EACCES", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EFAULT"}
PROC_FD = re.compile(r"/proc/(?:self|thread-self|\d+)/fd/(\d+)")


class Lookup(Descriptors):
    def inside(self, path):
        """The path in the trace's terms, or None if it is not ours."""
        if path == self.mount:
            return "/"
        if path.startswith(self.mount + "/"):
            return path[len(self.mount):]
        return None

    def base(self, dirfd):
        if dirfd is None or isinstance(dirfd, str):
            return self.thread.process.cwd
        number = getattr(dirfd, "number", dirfd)
        if number == AT_FDCWD:
            return self.thread.process.cwd
        # strace reads where the directory is now from /proc.
        return dirfd.path

    def walk(self, dirfd, name, follow=True, creates=False):
        """Takes the look-ups of a path walk; what was found at its end."""
        at = "/" if name.startswith("/") else self.base(dirfd)
        parts = [p for p in name.split("/") if p not in ("", ".")]
        follow = follow or name.endswith(("/", "/."))
        found = Walk(at, True, kind="dir")
        links = 0
        while parts:
            part = parts.pop(0)
            if part == "..":
                at = os.path.dirname(at)
                found = Walk(at, True, kind="dir")
                continue
            where = os.path.join(at, part)
            inner = self.inside(where)
            number = PROC_FD.fullmatch(where)
            if number and (parts or follow):
                # Goes straight to the file.
                file = self.file(int(number[1]))
                if file is None:
                    return Walk(where, False, error="ENOENT")
                found = Walk(file.path, True, file.ino, file.kind)
                at = file.path
                continue
            if inner is None or inner == "/":
                # Not ours; what lies there we take from the machine itself.
                found = Walk(where, os.path.lexists(where))
                at = where
                continue
            found = self.look_up(where, inner)
            if found is None:
                if self.call.error not in REFUSED_ON_THE_WAY:
                    self.fail(f"a lookup of {inner} is missing")
                return Walk(where, False, error=self.call.error)
            if not found.found:
                if parts and self.call.ok:
                    self.fail(f"{inner} cannot have failed with {found.error}")
                if not parts and creates and found.error == "ENOENT":
                    return found
                if found.error != self.call.error:
                    self.fail(f"the lookup of {inner} failed with "
                              f"{found.error}, and the call otherwise")
                return found
            if found.kind == "link" and (parts or follow):
                links += 1
                if links > 40:
                    return Walk(where, False, error="ELOOP")
                target = self.kept.target(found.ino)
                if self.next_is("readlink", ino=found.ino):
                    target = self.take(
                        "readlink", path=None if found.ino in
                        self.hard_linked else inner)["target"]
                    self.kept.note_target(found.ino, target)
                elif target is not None:
                    self.hidden["readlink"] += 1
                elif self.call.ok:
                    self.fail(f"{inner} is a symbolic link: a readlink "
                              "is missing")
                else:
                    return Walk(where, False, error=self.call.error)
                if self.links.get(where, target) != target:
                    self.fail(f"{inner} points to {self.links[where]!r}, "
                              f"not to {target!r}")
                parts = [p for p in target.split("/")
                         if p not in ("", ".")] + parts
                if target.startswith("/"):
                    at = "/"
                found = Walk(at, True, kind="dir")
                continue
            at = where
        return found

    def look_up(self, where, inner):
        """What a name means: by its lookup, or as the kernel knew it. None:
        neither is there."""
        event = self.peek()
        if (event is not None and event["op"] == "lookup"
                and self.is_lookup_of(event, inner)
                and (not self.kept.anything or self.during_call(event))):
            error = event.get("errno")
            self.take("lookup", error)
            if error is None:
                self.kept.note_name(where, event["ino"], event["type"],
                                    arrived_us(event))
                return Walk(where, True, event["ino"], event["type"])
            if error == "ENOENT":
                self.kept.note_name(where, None, None, arrived_us(event))
            return Walk(where, False, error=error)
        known = self.kept.name(where, inner, self.call)
        if known is None:
            return None
        self.hidden["lookup"] += 1
        if known.ino is None:
            return Walk(where, False, error="ENOENT")
        return Walk(where, True, known.ino, known.kind)

    def target(self, dirfd, name, flags=0, follow_by_default=True):
        """A path that may be empty with AT_EMPTY_PATH; None if not ours."""
        if name is None or (name == "" and flags & AT_EMPTY_PATH):
            file = self.file(dirfd)
            if file is not None:
                return Walk(file.path, True, file.ino,
                            file.kind) if file.ino else None
            return None
        follow = follow_by_default and not flags & AT_SYMLINK_NOFOLLOW
        walk = self.walk(dirfd, name, follow)
        return walk if walk.found and self.inside(walk.path) else None

    def check_path(self, event, file):
        """strace's path of a descriptor is the kernel's own."""
        fd = strace_log.args(self.call)[0]
        if file.ino in self.hard_linked:
            return
        if fd.deleted and event.get("path") is None:
            return  # made without a name
        # The last name of a file stays known.
        want = self.inside(fd.path)
        if not self.named_late(event, event.get("path"), want):
            self.fail(f"path of {event} is not {want}")

    # --- calls that walk, and then ask nothing or what the link says

    def sys_chdir(self, name):
        walk = self.walk(None, name)
        if self.call.ok:
            self.thread.process.cwd = walk.path

    def sys_fchdir(self, fd):
        if self.call.ok:
            self.thread.process.cwd = fd.path

    def sys_access(self, name, _mode):
        self.target(None, name)

    def sys_faccessat(self, dirfd, name, *_rest):
        self.target(dirfd, name)

    def sys_faccessat2(self, dirfd, name, _mode, flags):
        self.target(dirfd, name, flags)

    def sys_inotify_add_watch(self, _fd, name, _mask):
        self.target(None, name)

    def sys_readlink(self, name, text, size, dirfd=None):
        walk = self.walk(dirfd, name, False)
        inner = self.inside(walk.path)
        if inner is not None and walk.found:
            target = self.kept.target(walk.ino)
            if target is not None and not self.next_is("readlink",
                                                       ino=walk.ino):
                self.hidden["readlink"] += 1
            else:
                event = self.done("readlink", ino=walk.ino, path=None if
                                  walk.ino in self.hard_linked else inner)
                if event is None or not self.call.ok:
                    return
                target = event["target"]
                self.kept.note_target(walk.ino, target)
            # A buffer that is full may hold a part of it only.
            cut = self.call.ok and len(os.fsencode(text)) >= int(size)
            if self.call.ok and not (target.startswith(text) if cut
                                     else target == text):
                self.fail(f"{target!r} was read as {text!r}")

    def sys_readlinkat(self, dirfd, name, text, size):
        if name == "":
            file = self.file(dirfd)
            if file is not None and file.ino is not None:
                if (self.kept.target(file.ino) is None
                        or self.next_is("readlink", ino=file.ino)):
                    self.done("readlink", ino=file.ino)
                else:
                    self.hidden["readlink"] += 1
            return
        self.sys_readlink(name, text, size, dirfd)
