"""The machine, its programs and what was measured with which build."""

import os
import pathlib
import platform
import shutil
import subprocess

from . import host

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _output(*argv):
    try:
        done = subprocess.run([str(a) for a in argv], capture_output=True,
                              text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def _field(path, key):
    try:
        for line in pathlib.Path(path).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    except OSError:
        pass
    return None


def _text(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def _file_system(path):
    return _output("stat", "-f", "-c", "%T", path)


# Packages whose versions say what was compared.
PACKAGES = ("postmark", "fio", "googletest", "git", "g++", "make", "cmake",
            "bindfs", "mergerfs", "loggedfs", "strace", "fatrace", "auditd",
            "linux-perf", "valgrind", "postgresql-15",
            "sqlite3")


def describe(context, disk):
    versions = {}
    for package in PACKAGES:
        version = _output("dpkg-query", "-W", "-f=${Version}", package)
        if version:
            versions[package] = version
    stamp = _text(context.deps / "libfuse/stamp")
    mount = context.bin / "tracefs-mount"
    return {
        "revision": _output("git", "-C", ROOT, "describe", "--always",
                            "--dirty", "--abbrev=12"),
        "tracefs-mount": _output(mount, "--version"),
        "build": context.build.name,
        "scale": context.scale,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processor": _field("/proc/cpuinfo", "model name"),
        "processors": os.cpu_count(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "distribution": _field_release(),
        "disk file system": _file_system(disk),
        "io_uring for FUSE": _text("/sys/module/fuse/parameters/enable_uring"),
        "clock source": _text("/sys/devices/system/clocksource/clocksource0/"
                              "current_clocksource"),
        "load before": _text("/proc/loadavg"),
        "costs of this host": host.text(host.costs(context)),
        "libfuse of passthrough_hp": (stamp or "").splitlines()[-1:],
        "packages": versions,
        "valgrind": bool(shutil.which("valgrind")),
    }


def _field_release():
    for line in (_text("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None
