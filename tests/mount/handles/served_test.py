#!/usr/bin/env python3
"""Servers of NFS (nfs-ganesha) and SMB (Samba) that serve a mount: their clients
get the answers that they get of the directory below.

Servers and clients run in a network and with a /run and a /var of their own."""

import ctypes.util
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from tracefs_harness import (Skip, Suite, expect, expect_equal)  # noqa: E402

GANESHA = "/usr/bin/ganesha.nfsd"
SMBD = "/usr/sbin/smbd"
PATIENCE_S = 60

GANESHA_CONFIG = """
NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = 2049; MNT_Port = 20048;
  Enable_NLM = false; Enable_RQUOTA = false; }}
NFS_KRB5 {{ Active_krb5 = false; }}
NFSv4 {{ Graceless = true; RecoveryRoot = "{run}"; }}
EXPORT {{ Export_Id = 7; Path = "{path}"; Pseudo = "/t"; Access_Type = RW;
  Squash = No_Root_Squash; SecType = sys; Protocols = 3; Transports = TCP;
  Filesystem_Id = 7.7; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = EVENT; }}
"""
SAMBA_CONFIG = """
[global]
  server role = standalone server
  map to guest = Bad User
  guest account = root
  interfaces = lo
  disable netbios = yes
  smb ports = 445
  load printers = no
  private dir = {run}
  lock directory = {run}
  state directory = {run}
  cache directory = {run}
  pid directory = {run}
  ncalrpc dir = {run}/rpc
[t]
  path = {path}
  guest ok = yes
  force user = root
  read only = no
"""
# Its own network, and none of the machine's files of state.
ALONE = ("ip link set lo up && for d in /run /var/lib /var/log /var/cache; do "
         "mount -t tmpfs tracefs-test $d; done && mkdir -p /run/rpcbind "
         "/var/log/samba "
         "/var/lib/samba/private /run/samba && ")


class Served:
    def __init__(self, suite):
        self.suite = suite
        self.number = 0

    def alone(self, script, log):
        """What `script` prints; the log where it fails."""
        done = subprocess.run(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
             "sh", "-c", ALONE + script], capture_output=True, text=True,
            check=False, timeout=2 * PATIENCE_S)
        said = ""
        if os.path.exists(log):
            with open(log, encoding="utf-8", errors="replace") as lines:
                said = lines.read()[-3000:]
        expect_equal(done.returncode, 0, done.stderr + said)
        return done.stdout

    def folder(self):
        """Of servers, which must not lie where ALONE puts something."""
        self.number += 1
        return self.suite.folder(f"run-{self.number}", mode=0o755)

    def ganesha(self, path, forget=None):
        run = self.folder()
        config = os.path.join(run, "config")
        log = os.path.join(run, "log")
        with open(config, "w", encoding="ascii") as out:
            out.write(GANESHA_CONFIG.format(run=run, path=path))
        more = f" --forget {forget}" if forget else ""
        url = f"nfs://127.0.0.1{path}?version=3&mountport=20048&uid=0&gid=0"
        return json.loads(self.alone(
            f"rpcbind && sleep .3 && {GANESHA} -L {log} -f {config} -p {run}/pid && for i in $(seq "
            f"100); do grep -q 'SERVER INITIALIZED' {log} && break; sleep .2; "
            f"done && {sys.executable} {HERE}/nfs_client.py '{url}'{more}",
            log))

    def samba(self, path):
        run = self.folder()
        config = os.path.join(run, "config")
        os.mkdir(os.path.join(run, "rpc"))
        with open(config, "w", encoding="ascii") as out:
            out.write(SAMBA_CONFIG.format(run=run, path=path))
        local = os.path.join(run, "local")
        with open(local, "wb") as out:
            out.write(bytes(range(256)) * 5000)
        back = os.path.join(run, "back")
        commands = "; ".join((
            "mkdir d", "cd d", f"put {local} f", "rename f g", "ls",
            "mkdir e", "rename g e/h", "cd e", "ls", f"get h {back}",
            "del h", "ls", "cd ..", "rmdir e", "del none", "mkdir e",
            "mkdir e"))
        said = self.alone(
            f"{SMBD} -D -s {config} --log-basename={run} && for i in $(seq "
            "50); do smbclient //127.0.0.1/t -U% -c exit > /dev/null 2>&1 && "
            "break; sleep .2; done; smbclient //127.0.0.1/t -U% -c "
            f"'{commands}' 2>&1 || true", os.path.join(run, "log.smbd"))
        with open(local, "rb") as sent, open(back, "rb") as got:
            expect(sent.read() == got.read(), "other bytes came back")
        # Speeds, times and how full the disk is differ.
        lines = []
        for line in said.splitlines():
            words = line.split()
            if "blocks of size" in line or line.startswith(
                    ("putting file", "getting file")):
                continue
            # "  h      A  1280000  Thu Nov 26 11:00:00 2026"
            lines.append(words[:3] if len(words) > 5 and ":" in words[-2]
                         else line)
        return lines

    def mounted(self, visibility):
        self.number += 1
        point = self.suite.folder(f"mnt-{self.number}")
        trace = self.suite.path(f"trace-{self.number}")
        return point, trace, self.suite.mount(
            self.suite.folder(f"source-{self.number}"), point, trace,
            visibility=visibility, options=("--handles", "yes"))

    # --- cases

    def nfs(self, visibility, forgets):
        for needed, found in (
                ("nfs-ganesha-vfs", os.path.exists(GANESHA)),
                ("rpcbind", shutil.which("rpcbind")),
                ("libnfs", ctypes.util.find_library("nfs")),
                ("iproute2", shutil.which("ip"))):
            if not found:
                raise Skip(f"{needed} is not installed: scripts/setup "
                           "--services")
        name = f"{visibility}-{forgets}"
        below = self.suite.folder(f"below-{name}")
        wanted = self.ganesha(below)
        expect_equal(dict(wanted)["many"], "made", "the client")
        point, trace, mount = self.mounted(visibility)
        found = self.ganesha(point, point if forgets else None)
        for want, got in zip(wanted, found):
            expect_equal(got, want, "through the mount")
        mount.unmount()
        seen = {(event["op"], event.get("path"))
                for event in self.suite.read(trace) if event["result"] >= 0}
        for event in (("mkdir", "/d"), ("create", "/d/f"),
                      ("rename", "/d/f"), ("unlink", "/d/e/n4")):
            expect(event in seen, f"{event} is not in the trace")
        return f"{len(wanted)} steps"

    def smb(self, visibility):
        for needed, found in (("samba", os.path.exists(SMBD)),
                              ("smbclient", shutil.which("smbclient")),
                              ("iproute2", shutil.which("ip"))):
            if not found:
                raise Skip(f"{needed} is not installed: scripts/setup "
                           "--services")
        wanted = self.samba(self.suite.folder(f"smb-below-{visibility}"))
        point, _, mount = self.mounted(visibility)
        expect_equal(self.samba(point), wanted, "through the mount")
        mount.unmount()


def main():
    suite = Suite("served", __doc__)
    cases = Served(suite)
    for visibility in ("exact", "auto", "fast"):
        suite.run(f"NFS, {visibility}", cases.nfs, visibility, False)
    suite.run("NFS, while the kernel forgets", cases.nfs, "auto", True)
    for visibility in ("exact", "auto", "fast"):
        suite.run(f"SMB, {visibility}", cases.smb, visibility)
    suite.finish()


main()
