#!/usr/bin/env python3
"""Commands of every kind in tracefs-run: debuggers, static and set-uid programs,
commands in a sandbox of their own, the build of a Debian package. Each runs as
it does without, and its processes are in the trace."""

import os
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from runner import Trace, run, tree  # noqa: E402
from tracefs_harness import (PATIENCE_S, Skip, Suite, expect, expect_equal,  # noqa: E402
                             mount_points)

NOBODY = 65534


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            raise Skip(f"no {tool}")


def place(suite, name):
    folder = suite.folder(name)
    return folder, os.path.join(suite.folder(name + "-out"), "t.trace")


def write(folder, name, text, mode=0o644):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(path, mode)
    return path


def ends(trace):
    """{words of the last program: how it ended}, of processes that ran one."""
    return {node["argv"][-1]: node["end"]
            for node in tree(trace.processes).values() if node["argv"]}


def case_gdb(suite):
    """A process has one tracer: gdb is let go with what it starts."""
    need("gdb")
    folder, trace = place(suite, "gdb")
    got = run(suite, "-o", trace, "--", "gdb", "-nx", "-batch", "-ex", "run",
              "-ex", "p $_exitcode", "--args", "/bin/sh", "-c",
              "echo debugged > f; exit 9", cwd=folder)
    if "ptrace" in got.stdout + got.stderr and "$1 = 9" not in got.stdout:
        raise Skip("gdb cannot trace here: " + got.stdout[-200:])
    expect("$1 = 9" in got.stdout, got.stdout + got.stderr)
    expect("let go" in got.stderr, got.stderr)
    read = Trace(suite, trace)
    expect("/f" in read.paths("create"), "what the debugged one did is missing")
    expect("gdb" in {e["argv"][0] for e in read.of("exec")}, "gdb itself")


def case_attached_later(suite):
    """Who is followed cannot be traced by another: it is told so, and the
    command goes on."""
    need("strace")
    folder, trace = place(suite, "attached")
    got = run(suite, "-q", "-o", trace, "--", "sh", "-c",
              "sleep 30 & strace -o /dev/null -p $! 2> said; s=$?; kill $!; "
              "wait $! 2>/dev/null; exit $s", cwd=folder)
    expect(got.returncode not in (0, 137), f"{got}")
    with open(os.path.join(folder, "said"), encoding="utf-8") as said:
        expect("Operation not permitted" in said.read(), "what strace said")
    expect_equal(ends(Trace(suite, trace))[("sleep", "30")], "SIGTERM", "end")


def case_static_program(suite):
    need("gcc")
    folder, trace = place(suite, "static")
    write(folder, "s.c", "#include <stdio.h>\nint main(int n, char **v) {\n"
          "  FILE *f = fopen(v[1], \"w\"); fputs(\"x\", f); fclose(f);\n"
          "  return n + 3; }\n")
    made = subprocess.run(["gcc", "-static", "-o", "s", "s.c"], cwd=folder,
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise Skip("no static C library: " + made.stderr[-200:])
    got = run(suite, "-q", "-o", trace, "--", "./s", "made", cwd=folder)
    expect_equal((got.returncode, got.stderr), (5, ""), "exit status")
    read = Trace(suite, trace)
    expect_equal(ends(read), {("./s", "made"): 5}, "its end")
    expect("/made" in read.paths("create"), "what it did")


def case_set_uid_program(suite):
    """Root's is who its owner is, as without."""
    folder, trace = place(suite, "setuid")
    program = os.path.join(folder, "who")
    shutil.copy(os.path.realpath(shutil.which("id")), program)
    os.chown(program, NOBODY, NOBODY)
    os.chmod(program, 0o4755)
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        raise Skip(f"{folder} is mounted nosuid")
    got = run(suite, "-q", "-o", trace, "--", "./who", "-u", cwd=folder)
    expect_equal(got.stdout, f"{NOBODY}\n", got.stderr)
    read = Trace(suite, trace)
    expect_equal(ends(read), {("./who", "-u"): 0}, "its end")
    expect_equal(read.of("exec")[0]["exe"], program, "what it runs")


def case_set_uid_program_of_an_ordinary_user(suite):
    """It runs with his own rights: the kernel gives no others to who is traced
    by somebody who has not got them."""
    folder, trace = place(suite, "setuid-user")
    need("setpriv")
    program = os.path.join(folder, "who")
    shutil.copy(os.path.realpath(shutil.which("id")), program)
    os.chmod(program, 0o4755)
    for path in (folder, os.path.dirname(trace)):
        os.chmod(path, 0o777)
    for path in (suite.bin, folder):
        while path != "/":
            if not os.stat(path).st_mode & stat.S_IXOTH:
                raise Skip(f"{path} is closed to ordinary users")
            path = os.path.dirname(path)
    device = os.path.join(suite.folder("setuid-dev"), "fuse")
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
        os.chmod(device, 0o666)
    except OSError as error:
        raise Skip(f"mknod: {error}") from None
    script = (f"mount --bind {device} /dev/fuse && cd {folder} && exec setpriv "
              f"--reuid {NOBODY} --regid {NOBODY} --clear-groups "
              f"{suite.bin}/tracefs-run -q -o {trace} -- ./who -u")
    got = subprocess.run(["unshare", "-m", "sh", "-c", script],
                         capture_output=True, text=True, timeout=PATIENCE_S,
                         check=False)
    if got.returncode == 3 and "user namespaces" in got.stderr:
        raise Skip(got.stderr.strip())
    expect_equal((got.returncode, got.stdout), (0, f"{NOBODY}\n"), got.stderr)
    expect_equal(ends(Trace(suite, trace)), {("./who", "-u"): 0}, "its end")


# Installs a filter that refuses mkdirat and ptrace, as sandboxes do, and runs
# the rest of the command line.
SECCOMP = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ERRNO, ALLOW = 0x00050000 | 1, 0x7fff0000
refused = {"x86_64": (83, 258, 101), "aarch64": (34, 117)}[os.uname().machine]
code = struct.pack("HBBI", 0x20, 0, 0, 0)  # the number of the call
for i, number in enumerate(refused):
    code += struct.pack("HBBI", 0x15, len(refused) - i, 0, number)
code += struct.pack("HBBI", 0x06, 0, 0, ALLOW)
code += struct.pack("HBBI", 0x06, 0, 0, ERRNO)
data = ctypes.create_string_buffer(code, len(code))
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(data))
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[1], sys.argv[1:])
"""


def case_command_in_a_system_call_filter(suite):
    if os.uname().machine not in ("x86_64", "aarch64"):
        raise Skip("numbers of system calls are not known here")
    folder, trace = place(suite, "seccomp")
    script = "echo x > f; mkdir d; echo $?; (exit 6); exit 4"
    got = run(suite, "-q", "-o", trace, "--", sys.executable, "-c", SECCOMP,
              "sh", "-c", script, cwd=folder)
    expect_equal((got.returncode, got.stdout), (4, "1\n"), got.stderr)
    expect("Operation not permitted" in got.stderr, got.stderr)
    read = Trace(suite, trace)
    found = ends(read)
    expect_equal((found[("sh", "-c", script)], found[("mkdir", "d")]), (4, 1),
                 f"ends: {found}")
    expect(6 in [n["end"] for n in tree(read.processes).values()], "subshell")
    expect("/f" in read.paths("create"), "what it did")


def case_strict_system_call_filter(suite):
    """It may do nothing any more, and is killed for what it does."""
    folder, trace = place(suite, "strict")
    got = run(suite, "-q", "-o", trace, "--", sys.executable, "-c",
              "import ctypes\nctypes.CDLL(None).prctl(22, 1, 0, 0, 0)\n"
              "open('f', 'w')\n", cwd=folder)
    expect_equal(got.returncode, 137, got.stderr)
    expect_equal(list(ends(Trace(suite, trace)).values()), ["SIGKILL"], "end")


def case_command_in_namespaces_of_its_own(suite):
    """As browsers run their children: pids of its own, which the trace tells
    beside those that it is known by."""
    need("unshare")
    folder, trace = place(suite, "namespaces")
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "sh",
               "-c", "echo $$; (exit 5); exit 3"]
    plain = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                           check=False)
    if plain.stdout != "1\n":
        raise Skip(plain.stderr.strip())
    got = run(suite, "-q", "-o", trace, "--", *command, cwd=folder)
    expect_equal((got.returncode, got.stdout), (3, "1\n"), got.stderr)
    read = Trace(suite, trace)
    shell = [e for e in read.of("exec") if e["argv"][0] == "sh"]
    expect_equal([e.get("ns_pid") for e in shell], [1], "its own number")
    expect(shell[0]["pid"] > 1, "the number it is known by")
    expect_equal(sorted(n["end"] for n in tree(read.processes).values()),
                 [3, 3, 5], "ends")


CONTROL = """Source: tracefs-sample
Section: misc
Priority: optional
Maintainer: Nobody <nobody@example.org>
Standards-Version: 4.6.2
Rules-Requires-Root: no

Package: tracefs-sample
Architecture: any
Description: sample
 A package made by a test.
"""
CHANGELOG = """tracefs-sample (1.0) unstable; urgency=low

  * First.

 -- Nobody <nobody@example.org>  Thu, 01 Jan 2026 00:00:00 +0000
"""
RULES = """#!/usr/bin/make -f
stage = debian/tracefs-sample
build build-arch build-indep: sample
sample: sample.c sample.h
\tgcc -O0 -o $@ $<
clean:
\trm -rf sample $(stage) debian/files debian/*.substvars
binary binary-arch: build
\tinstall -D sample $(stage)/usr/bin/tracefs-sample
\tmkdir -p $(stage)/DEBIAN
\tdpkg-gencontrol -P$(stage)
\tdpkg-deb --root-owner-group --build $(stage) ..
binary-indep:
"""


def case_debian_package(suite):
    """With --root: nothing that the build reads escapes, wherever it is."""
    need("dpkg-buildpackage", "gcc", "make", "dpkg-deb")
    folder, trace = place(suite, "package")
    source = os.path.join(folder, "tracefs-sample-1.0")
    write(source, "debian/control", CONTROL)
    write(source, "debian/changelog", CHANGELOG)
    write(source, "debian/rules", RULES, 0o755)
    write(source, "sample.h", "#define STATUS 7\n")
    write(source, "sample.c", '#include <stdlib.h>\n#include "sample.h"\n'
          "int main(void) { exit(STATUS); }\n")
    got = run(suite, "-q", "--root", "-o", trace, "--", "dpkg-buildpackage",
              "-b", "-us", "-uc", "-d", cwd=source)
    expect_equal(got.returncode, 0, got.stdout[-2000:] + got.stderr[-2000:])
    made = [n for n in os.listdir(folder) if n.endswith(".deb")]
    expect_equal(len(made), 1, f"packages: {os.listdir(folder)}")
    package = os.path.join(folder, made[0])
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True,
                            text=True, check=True).stdout
    expect("./usr/bin/tracefs-sample" in listed, listed)
    subprocess.run(["dpkg-deb", "-x", package, os.path.join(folder, "x")],
                   check=True)
    sample = os.path.join(folder, "x/usr/bin/tracefs-sample")
    expect_equal(subprocess.run([sample], check=False).returncode, 7, "it runs")
    read = Trace(suite, trace)
    expect(package in read.paths("create", "rename") or
           any(e.get("path2") == package for e in read.operations), "package")
    programs = {os.path.basename(e["program"]) for e in read.of("exec")}
    expect({"gcc", "dpkg-gencontrol", "dpkg-deb"} <= programs,
           f"programs: {sorted(programs)}")
    # From the package back to what its program was compiled of, also through
    # what the compiler left in /tmp.
    asked = subprocess.run(
        [os.path.join(suite.bin, "tracefs-deps"),
         os.path.join(source, "debian/tracefs-sample/usr/bin/tracefs-sample"),
         "--sources", "--closure", "flow", "--trace", trace],
        capture_output=True, text=True, check=False)
    expect_equal(asked.returncode, 0, asked.stderr)
    sources = set(asked.stdout.splitlines())
    for name in (source + "/sample.c", source + "/sample.h",
                 "/usr/include/stdlib.h"):
        expect(name in sources, f"{name} is missing: {asked.stderr}")
    expect(not [p for p in mount_points() if "tracefs-run." in p], "mounts")


def main():
    suite = Suite("run-commands", __doc__)
    for case in (case_gdb, case_attached_later, case_static_program,
                 case_set_uid_program,
                 case_set_uid_program_of_an_ordinary_user,
                 case_command_in_a_system_call_filter,
                 case_strict_system_call_filter,
                 case_command_in_namespaces_of_its_own, case_debian_package):
        suite.run(case.__name__[5:].replace("_", " "), case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
