#!/usr/bin/env python3
"""Whatever the daemon needs lies inside the tree that the mount covers: its
config, keys, policy, certificates, outputs, spill directory, working directory,
the program itself, the place of its control socket. It must serve all the same,
and go on to rotate, reload and take more tracers.

A daemon that looks something up below its own mount before it serves waits for
itself, and whoever touches the mount waits with it. So nothing here touches a
mount but in a process with a time limit, and after that limit the connection is
aborted: this suite ends, whatever hangs."""

import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
# pylint: disable=wrong-import-position
from tracefs_harness import (  # noqa: E402
    PATIENCE_S, Failure, Suite, expect, mount_points, wait_until)

EVERYTHING = """
{ {} { stream = { STR_ALL } } { file = "%(t)s/plain" } }
{ {} { stream = { STR_ALL } } { file = "%(t)s/rotated" rotate_count = 50 } }
{ {} { stream = { STR_ALL } } { fifo = "%(t)s/fifo" } }
{ {} { stream = { STR_ALL } }
  { flight = "%(t)s/flight" map = "%(t)s/map" size = 64K rings = 2 } }
{ {} { stream = { STR_ALL } }
  { checksum seal = forward key = "file:%(t)s/state"
      anchor = "file:%(t)s/anchors"; file = "%(t)s/sealed" } }
{ {} { stream = { STR_ALL } }
  { compress; encrypt key = "file:%(t)s/key"; file = "%(t)s/secret" } }
{ {} { stream = { STR_ALL } }
  { anonymize policy = "%(t)s/policy" key = "file:%(t)s/key";
    file = "%(t)s/anonymous" } }
{ {} { stream = { STR_ALL } }
  { unix = "%(t)s/nobody" when_full = spill "%(t)s/spill" max = 8M } }
"""
TLS = """
{ {} { stream = { STR_ALL } }
  { tls = "localhost:9" ca = "%(t)s/ca" cert = "%(t)s/ca" key = "%(t)s/ca.key"
    when_full = drop } }
"""


class CoveredSuite(Suite):
    """A Suite whose commands are freed from a mount that does not answer."""

    def ours(self):
        """Processes that have the scratch folder in their command line."""
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as words:
                    if os.fsencode(self.scratch) in words.read():
                        yield int(name)
            except OSError:
                pass

    def free(self):
        """Aborts the connections of mounts that our processes see and made,
        and kills what is left: it may have waited where no signal reaches."""
        numbers = set()
        pids = list(self.ours())
        for pid in pids:
            try:
                with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as lines:
                    numbers |= {re.search(r" 0:(\d+) ", line)[1]
                                for line in lines
                                if " fuse.tracefs " in line
                                and re.search(r" 0:(\d+) ", line)}
            except OSError:
                pass
        # Mounts that were there before are somebody else's.
        numbers -= self.others
        control = self.folder("connections")
        subprocess.run(["mount", "-t", "fusectl", "none", control], check=True)
        for number in sorted(numbers):
            try:
                with open(f"{control}/{number}/abort", "w",
                          encoding="ascii") as abort:
                    abort.write("1")
            except OSError:
                pass
        subprocess.run(["umount", control], check=True)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def begin(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as lines:
            self.others = set(re.findall(r" 0:(\d+) .* fuse\.", lines.read()))

    def patiently(self, what, *command, status=0, cwd=None, env=None):
        """What `command` says. A Failure if it ends with another status, or
        not at all."""
        log = self.path("said")
        with open(log, "wb") as out:
            child = subprocess.Popen(command, cwd=cwd, env=env, stdout=out,
                                     stdin=subprocess.DEVNULL, stderr=out,
                                     start_new_session=True)
        try:
            got = child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.free()
            child.kill()
            child.wait(PATIENCE_S)
            raise Failure(f"{what} hangs") from None
        with open(log, encoding="utf-8", errors="replace") as text:
            said = text.read()
        expect(status is None or got == status,
               f"{what} ended with {got}, not {status}:\n{said}")
        return said

    def furnish(self, name):
        """A tree with all that EVERYTHING and TLS name, and with programs."""
        tree = self.folder(name)
        for program in ("tracefs-mount", "tracefs-ctl"):
            shutil.copy(os.path.realpath(os.path.join(self.bin, program)),
                        os.path.join(tree, program))
        os.symlink("tracefs-mount", os.path.join(tree, "tracefs-run"))
        self.command("tracefs-keygen", "secret", f"{tree}/key")
        self.command("tracefs-keygen", "seal", f"{tree}/state",
                     f"{tree}/verify")
        for file, text in (("policy", "use research;\n"), ("note", "hello\n")):
            with open(os.path.join(tree, file), "w", encoding="ascii") as out:
                out.write(text)
        os.mkdir(os.path.join(tree, "spill"), 0o700)
        text = EVERYTHING
        if shutil.which("openssl"):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                 "-subj", "/CN=localhost", "-days", "2", "-keyout",
                 f"{tree}/ca.key", "-out", f"{tree}/ca"], check=True,
                capture_output=True)
            text += TLS
        with open(os.path.join(tree, "config"), "w", encoding="ascii") as out:
            out.write(text % {"t": tree})
        return tree


def work(suite, tree, names=60):
    """As somebody who finds the tree behind the mount."""
    suite.patiently("work in the mount", "sh", "-c",
                    f"i=0; while [ $i -lt {names} ]; do echo x > made$i; "
                    "cat made$i; mv made$i moved; i=$((i+1)); done; "
                    "cat note config key > /dev/null", cwd=tree)


def names_of(events):
    return {e["path"].rsplit("/", 1)[-1] for e in events if "path" in e}


def case_over_itself(suite, sandbox, elsewhere):
    """SRC and MNT are the tree; or another one is mounted over it."""
    tree = suite.furnish(f"tree-{sandbox}-{elsewhere}")
    source = tree
    if elsewhere:
        # What the caller called by its name is what lies below the mount.
        source = suite.folder(f"source-{sandbox}")
        with open(os.path.join(source, "note"), "w", encoding="ascii") as out:
            out.write("note")
        for name in ("config", "key"):
            shutil.copy(os.path.join(tree, name), source)
    suite.patiently(
        "tracefs-mount", "./tracefs-mount", source, ".", "--config", "config",
        "--sandbox", sandbox, "--transport", suite.options.transport, cwd=tree)
    work(suite, tree)
    ctl = os.path.join(suite.bin, "tracefs-ctl")
    if not elsewhere:
        # By the program in the tree: its pages come through the mount.
        ctl = os.path.join(tree, "tracefs-ctl")
    listed = suite.patiently("list", ctl, tree, "list", "--format", "json")
    expect("rotated" in listed, listed)
    # A receiver that is not there has acknowledged nothing.
    suite.patiently("flush", ctl, tree, "flush", status=None)
    suite.patiently("snapshot", ctl, tree, "snapshot", "4")
    more = suite.path("more")
    with open(more, "w", encoding="ascii") as out:
        out.write('{ { op = rename } { stream = { STR_ALL } }'
                  f' {{ file = "{suite.path("beside-" + sandbox)}" }} }}\n')
    suite.patiently("add", ctl, tree, "add", more, status=None)
    inside = os.path.join(tree, "later.conf")
    suite.patiently("a config in the mount", "sh", "-c",
                    f"cat > {inside} <<'end'\n{{ {{}} {{ stream = {{ STR_ALL }} }} "
                    f'{{ file = "{tree}/added" }} }}\nend\n')
    # Taken or refused: an answer is what is asked for.
    suite.patiently("add what lies in the mount", ctl, tree, "add", inside,
                    status=None)
    suite.patiently("reload of what lies in the mount", ctl, tree, "reload",
                    inside, status=None)
    work(suite, tree, names=5)
    suite.patiently("umount", "umount", tree)
    trace = os.path.join(tree, "plain")
    seen = suite.read(trace)
    expect({"made0", "made59", "note"} <= names_of(seen),
           f"not in {trace}: {sorted(names_of(seen))[:20]}")
    rotated = [n for n in os.listdir(tree) if n.startswith("rotated")]
    expect(len(rotated) > 2, f"not rotated: {rotated}")
    expect(os.path.exists(os.path.join(tree, "flight.000001")), "no snapshot")


def case_run(suite, where):
    """tracefs-run with its config, trace and command in the traced tree."""
    tree = suite.furnish(f"run-{where}")
    how = {"here": [], "src": ["--src", tree], "root": ["--root"]}[where]
    suite.patiently("tracefs-run --config", "./tracefs-run", *how,
                    "--config", "config", "--", "sh", "-c",
                    "cat note; echo x > made", cwd=tree)
    expect({"note", "made"} <= names_of(
        suite.read(os.path.join(tree, "plain"))), "the trace of the config")
    suite.patiently("tracefs-run -o", "./tracefs-run", *how, "-o", "out.trace",
                    "--", "sh", "-c", "cat note; ./tracefs-ctl --help",
                    cwd=tree)
    expect("tracefs-ctl" in names_of(
        suite.read(os.path.join(tree, "out.trace"))), "the trace of -o")


def case_system_directory(suite, directory):
    """Of a mount namespace of its own: the control socket, the clock's zone,
    the libraries and the certificates of the machine lie below."""
    config = suite.path("config-" + directory.replace("/", "-"))
    trace = config + ".trace"
    with open(config, "w", encoding="ascii") as out:
        out.write('{ {} { stream = { STR_ALL } } { compress; file = "%s" } }\n'
                  % trace)
    folder = directory.rstrip("/") or "/"
    steps = " && ".join([
        f"{suite.bin}/tracefs-mount {folder} {folder} --config {config} "
        f"--transport {suite.options.transport} --sandbox $0",
        f"ls {folder} > /dev/null", "date > /dev/null",
        f"{suite.bin}/tracefs-ctl {folder} list",
        f"{suite.bin}/tracefs-ctl {folder} flush", f"umount -l {folder}"])
    for sandbox in ("on", "off"):
        said = suite.patiently(
            f"a mount over {folder}, sandbox {sandbox}", "unshare", "-m",
            "--propagation", "private", "sh", "-c", steps, sandbox)
        expect("no tracefs-ctl" not in said, said)
        wait_until(lambda: suite.dump(trace).status == 0, "the end of it")
        expect(names_of(suite.read(trace)), "nothing was recorded")
        os.remove(trace)


def case_refused_directory(suite, directory):
    """What libfuse itself needs to mount cannot be covered, and is not."""
    config = suite.config(suite.path("never"))
    for command in (["tracefs-mount", directory, directory], ["tracefs-run",
                    "--src", directory]):
        words = [os.path.join(suite.bin, command[0]), *command[1:],
                 "--config", config]
        if command[0] == "tracefs-run":
            words += ["--", "true"]
        said = suite.patiently(
            f"{command[0]} over {directory}", "unshare", "-m", "--propagation",
            "private", *words, status=2)
        expect("cannot be covered" in said, said)


def guarded(suite, case, *arguments):
    """A case that fails leaves nothing that others would wait for."""
    try:
        return case(suite, *arguments)
    except Exception:
        suite.free()
        for point in reversed(mount_points()):
            if point.startswith(suite.scratch):
                subprocess.run(["umount", "-l", point], check=False,
                               timeout=PATIENCE_S)
        raise


def main():
    suite = CoveredSuite("covered", __doc__)
    suite.begin()
    for sandbox in ("on", "off"):
        for elsewhere in (False, True):
            suite.run("all in the tree, mounted "
                      + ("elsewhere" if elsewhere else "over itself")
                      + f", sandbox {sandbox}",
                      guarded, suite, case_over_itself, sandbox, elsewhere)
    for where in ("here", "src", "root"):
        suite.run(f"all in the tree, tracefs-run {where}", guarded, suite,
                  case_run, where)
    for directory in ("/run", "/proc"):
        suite.run(f"not over {directory}", guarded, suite,
                  case_refused_directory, directory)
    for directory in ("/tmp", "/etc", "/usr", "/var", "/dev"):
        suite.run(f"over {directory}", guarded, suite, case_system_directory,
                  directory)
    suite.finish()


if __name__ == "__main__":
    main()
