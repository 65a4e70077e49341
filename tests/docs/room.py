"""A room to run documents in: the machine's programs, and /home, /data, /var,
/etc, /run and the like made for the occasion. It is a root of its own in mount,
pid and network namespaces of its own, so that examples run as they are written,
change nothing outside, and leave nothing behind."""

import os
import shutil
import subprocess
import sys
import tempfile

FRESH = ("home", "data", "var", "mnt", "srv", "tmp", "run", "root", "media")


def enter(arguments):
    """Starts this program again in namespaces of its own; returns in there."""
    if "TRACEFS_ROOM" in os.environ:
        return
    os.environ["TRACEFS_ROOM"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
                          "--net", "--pid", "--fork", "--kill-child",
                          "--mount-proc", sys.executable, "-B", *arguments])


def _bind(source, target):
    os.makedirs(target, exist_ok=True)
    subprocess.run(["mount", "--rbind", source, target], check=True)


class Room:
    """The commands are in /commands, the sources in /source (read-only)."""

    def __init__(self, source, commands):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.scratch = tempfile.mkdtemp(prefix="tracefs-docs-")
        self.root = os.path.join(self.scratch, "root")
        os.mkdir(self.root)
        # Not below the folder of others: it must outlive nobody.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "docs",
                        self.root], check=True)
        for name in os.listdir("/"):
            path = "/" + name
            if name in FRESH or name in ("etc", "proc"):
                continue
            if os.path.islink(path):
                os.symlink(os.readlink(path), os.path.join(self.root, name))
            elif name in ("usr", "bin", "sbin", "dev", "sys") or \
                    name.startswith("lib"):
                _bind(path, os.path.join(self.root, name))
        for name in FRESH:
            os.makedirs(os.path.join(self.root, name))
        os.chmod(os.path.join(self.root, "tmp"), 0o1777)
        for name in ("var/tmp", "var/log", "var/lib", "var/spool",
                     "etc/tracefs", "etc/ssl", "etc/alternatives"):
            os.makedirs(os.path.join(self.root, name))
        proc = os.path.join(self.root, "proc")
        os.mkdir(proc)
        subprocess.run(["mount", "-t", "proc", "proc", proc], check=True)
        for name in ("passwd", "group", "hosts", "nsswitch.conf", "ld.so.cache",
                     "ld.so.conf", "localtime", "services", "protocols"):
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, os.path.join(self.root, "etc"))
        for name in ("ssl", "alternatives"):
            if os.path.isdir("/etc/" + name):
                _bind("/etc/" + name, os.path.join(self.root, "etc", name))
        with open(self.path("/etc/passwd"), "a", encoding="ascii") as users:
            users.write("alice:x:54321:54321::/home/alice:/bin/sh\n")
        _bind(source, self.path("/source"))
        _bind(commands, self.path("/commands"))
        for folder in _libraries(commands):
            _bind(folder, self.path(folder))

    def path(self, inside):
        return self.root + inside

    def write(self, inside, text, mode=0o644):
        path = self.path(inside)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)

    def start(self, script, cwd="/"):
        environment = {"PATH": "/commands:/usr/local/sbin:/usr/local/bin:"
                               "/usr/sbin:/usr/bin:/sbin:/bin",
                       "HOME": "/root", "LANG": "C.UTF-8", "TZ": "UTC"}
        return subprocess.Popen(
            ["chroot", self.root, "/bin/sh", "-c", f"cd '{cwd}' && {script}"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace",
            start_new_session=True)

    def run(self, script, cwd="/", patience=120):
        process = self.start(script, cwd)
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            err += f"\n(it did not end within {patience} s)"
        return process.returncode, out, err

    def tidy(self):
        """Takes away all mounts of ours, those on top first."""
        with open("/proc/self/mounts", encoding="utf-8") as lines:
            points = [line.split()[1] for line in lines
                      if "fuse" in line.split()[2]]
        for point in reversed(points):
            if point.startswith(self.root):
                subprocess.run(["umount", point], check=False,
                               capture_output=True)

    def leave(self):
        self.tidy()
        subprocess.run(["umount", "-R", "-l", self.root], check=False)
        shutil.rmtree(self.scratch, ignore_errors=True)


def _libraries(commands):
    """Folders of libraries that are not among the system's."""
    folders = set()
    for name in os.listdir(commands):
        if not name.startswith("tracefs-"):
            continue
        ldd = subprocess.run(["ldd", os.path.join(commands, name)],
                             capture_output=True, text=True, check=False)
        for line in ldd.stdout.splitlines():
            words = line.split()
            if "=>" in words and len(words) > 2 and words[2].startswith("/"):
                folder = os.path.dirname(words[2])
                if not folder.startswith(("/usr", "/lib", "/bin")):
                    folders.add(folder)
    return sorted(folders)
