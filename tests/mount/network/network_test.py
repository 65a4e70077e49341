#!/usr/bin/env python3
"""The output drivers tcp, tls and unix of a real mount, and tracefs-recv.

Senders and receivers are killed at random moments and networks are cut; then
what arrived is compared with what was done in the mount. `--rounds N` makes it
a soak test (scripts/soak-network).
"""

import collections
import contextlib
import glob
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "support"))
# pylint: disable=wrong-import-position,import-error
from certificates import make_certificates  # noqa: E402
from tracefs_harness import (Skip, Suite, expect, expect_equal,
                             wait_until)

SUITE = Suite(
    "network", __doc__,
    lambda parser: (
        parser.add_argument("--rounds", type=int, default=2,
                            help="kills or cuts per case (default: 2)"),
        parser.add_argument("--seed", type=int, default=1)))
RANDOM = random.Random(SUITE.options.seed)
ROUNDS = SUITE.options.rounds


class Receiver:
    """A tracefs-recv that can be killed and started again."""

    def __init__(self, listen, *arguments, out=None, namespace=None):
        self.listen = listen
        self.arguments = list(arguments)
        self.out = out
        self.namespace = namespace
        self.process = None
        self.address = None
        self.log = SUITE.path(f"recv-{id(self)}.log")
        self.start()

    def start(self):
        command = [os.path.join(SUITE.bin, "tracefs-recv"),
                   "--listen", self.listen] + self.arguments
        if self.out:
            command += ["--out", self.out]
        if self.namespace:
            command = ["ip", "netns", "exec", self.namespace] + command
        with open(self.log, "wb") as log:
            self.process = SUITE.background(subprocess.Popen(
                command, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if self.out else subprocess.PIPE,
                stderr=log))

        def ready():
            expect(self.process.poll() is None,
                   "tracefs-recv ended: " + self.messages())
            return re.search(r"listening on (\S+)\n", self.messages())

        wait_until(ready, "tracefs-recv")
        self.address = ready().group(1)
        # The same port when it is started again.
        self.listen = self.address

    def messages(self):
        with open(self.log, encoding="utf-8", errors="replace") as text:
            return text.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        expect_equal(self.process.wait(20), 0, "tracefs-recv's exit status")


def output(receiver, options="", filters=""):
    """The output section for a receiver."""
    kind, where = receiver.address.split(":", 1)
    if kind == "seqpacket":
        kind, options = "unix", "seqpacket " + options
    return f'{filters} {kind} = "{where}" retry = 200ms {options}'


def folders(name):
    source = SUITE.folder(name, "source")
    point = SUITE.folder(name, "mount")
    out = SUITE.folder(name, "out")
    return source, point, out


def traces(out):
    return sorted(glob.glob(os.path.join(out, "*.trace")))


ONLY_MKDIR = "op = mkdir"


class Worker:
    """Makes directories 0, 1, 2, … in a mount; what was made is known."""

    def __init__(self, point):
        self.point = point
        self.made = 0

    def work(self, count):
        for _ in range(count):
            os.mkdir(os.path.join(self.point, f"d{self.made}"))
            self.made += 1

    def expect_all(self, events):
        got = [event["path"] for event in events if event["op"] == "mkdir"]
        want = [f"/d{i}" for i in range(self.made)]
        counts = collections.Counter(got)
        expect(not [path for path in got if counts[path] > 1],
               "an operation was recorded twice")
        missing = [path for path in want if path not in counts]
        expect(not missing, f"{len(missing)} of {len(want)} operations are "
               f"missing, the first is {missing[:1]}")
        expect_equal(len(got), len(want), "operations")


def loss_counts(trace):
    """What a trace itself counts as lost, by reason."""
    text = subprocess.run(
        [os.path.join(SUITE.bin, "tracefs-dump"), "--stats", "--format",
         "jsonl", trace], capture_output=True, text=True, check=False).stdout
    match = re.search(r'"lost":\{([^}]*)\}', text)
    return {reason: int(number) for reason, number
            in re.findall(r'"(\w+)":(\d+)', match.group(1))}


def lost_in(out):
    return sum(sum(loss_counts(trace).values())
               for trace in glob.glob(os.path.join(out, "*.trace")))


# --- Cases.

def every_transport(listen):
    source, point, out = folders("transports")
    receiver = Receiver(listen, out=out)
    mount = SUITE.mount(source, point, ("", "STR_ALL", output(
        receiver, filters="async; compress alg = zstd;")))
    worker = Worker(point)
    worker.work(50)
    mount.unmount()
    receiver.stop()
    expect_equal(len(traces(out)), 1, "traces")
    worker.expect_all(SUITE.read(*traces(out)))
    SUITE.remove("transports")


def over_tls():
    source, point, out = folders("tls")
    try:
        pem = SUITE.folder("pem")
        make_certificates(pem, ("recv", "host"), "IP:127.0.0.1")
    except FileNotFoundError:
        return Skip("there is no openssl command")
    receiver = Receiver("tls:127.0.0.1:0", "--ca", f"{pem}/ca.pem", "--cert",
                        f"{pem}/recv.pem", "--tls-key", f"{pem}/recv.key",
                        out=out)
    mount = SUITE.mount(source, point, ("", "STR_ALL", output(
        receiver, f'ca = "{pem}/ca.pem" cert = "{pem}/host.pem" '
        f'key = "{pem}/host.key"')))
    worker = Worker(point)
    worker.work(50)
    receiver.kill()
    worker.work(50)
    receiver.start()
    worker.work(50)
    mount.unmount()
    receiver.stop()
    expect(os.path.basename(traces(out)[0]).startswith("cn-host."),
           "the trace has no name of its sender")
    worker.expect_all(SUITE.read(*traces(out)))
    SUITE.remove("tls")
    return None


def added_later():
    """A daemon in its sandbox reaches receivers that came up later: who adds
    the tracer brings certificates, spill directory and connections along."""
    source, point, out = folders("later")
    try:
        pem = SUITE.folder("later-pem")
        make_certificates(pem, ("recv", "host"), "IP:127.0.0.1")
    except FileNotFoundError:
        return Skip("there is no openssl command")
    spool = SUITE.folder("later-spool")
    os.chmod(spool, 0o700)
    over_tls_out = SUITE.folder("later-tls")
    secure = Receiver("tls:127.0.0.1:0", "--ca", f"{pem}/ca.pem", "--cert",
                      f"{pem}/recv.pem", "--tls-key", f"{pem}/recv.key",
                      out=over_tls_out)
    local = Receiver("unix:" + SUITE.path("later.sock"), out=out)
    mount = SUITE.mount(source, point, (
        ONLY_MKDIR, "STR_ALL", f'file = "{SUITE.path("later.trace")}"'))
    for receiver, rest in (
            (secure, f'ca = "{pem}/ca.pem" cert = "{pem}/host.pem" '
             f'key = "{pem}/host.key" when_full = spill "{spool}" max = 64M'),
            (local, "")):
        config = SUITE.config(("", "STR_ALL", output(receiver, rest)))
        SUITE.command("tracefs-ctl", point, "add", config)
    worker = Worker(point)
    worker.work(50)
    secure.kill()
    worker.work(50)
    secure.start()
    worker.work(50)
    mount.unmount()
    secure.stop()
    local.stop()
    worker.expect_all(SUITE.read(*traces(over_tls_out)))
    worker.expect_all(SUITE.read(*traces(out)))
    expect_equal(os.listdir(spool), [], "left in the spill directory")
    for name in ("later", "later-pem", "later-spool", "later-tls"):
        SUITE.remove(name)
    return None


def live_lines():
    source, point, _ = folders("live")
    receiver = Receiver("tcp:127.0.0.1:0", "--format", "jsonl")
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL",
                                        output(receiver)))
    Worker(point).work(5)
    lines = [receiver.process.stdout.readline() for _ in range(5)]
    expect(all(b'"op":"mkdir"' in line for line in lines),
           f"not the operations: {lines}")
    mount.unmount()
    # The reader goes away: no error.
    receiver.process.stdout.close()
    receiver.stop()
    SUITE.remove("live")


def no_receiver_at_start():
    """The mount goes on, and what was recorded is sent later."""
    source, point, out = folders("late")
    receiver = Receiver("tcp:127.0.0.1:0", out=out)
    receiver.kill()
    mount = SUITE.mount(source, point, ("", "STR_ALL", output(receiver)))
    expect("trying again" in mount.messages(), "it says nothing")
    worker = Worker(point)
    worker.work(20)
    receiver.start()
    mount.unmount()
    receiver.stop()
    worker.expect_all(SUITE.read(*traces(out)))
    SUITE.remove("late")


def killed_receivers(policy, name):
    source, point, out = folders(name)
    spool = SUITE.folder(name, "spool", mode=0o700)
    receiver = Receiver("tcp:127.0.0.1:0", out=out)
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", output(
        receiver, policy.replace("SPOOL", spool), filters="async;")))
    worker = Worker(point)
    for _ in range(ROUNDS):
        worker.work(RANDOM.randrange(200))
        time.sleep(RANDOM.random() * 0.4)
        receiver.kill()
        worker.work(RANDOM.randrange(200))
        time.sleep(RANDOM.random() * 0.4)
        receiver.start()
    worker.work(50)
    mount.unmount()
    receiver.stop()
    worker.expect_all(SUITE.read(*traces(out)))
    expect_equal(os.listdir(spool), [], "what is left in the spill directory")
    SUITE.remove(name)


def dropped_and_counted():
    """Every operation is in the trace or in its counts."""
    source, point, out = folders("drop")
    receiver = Receiver("tcp:127.0.0.1:0", out=out)
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", output(
        receiver, "when_full = drop queue = 64K buf = 4K")))
    worker = Worker(point)
    for _ in range(ROUNDS):
        worker.work(300)
        receiver.kill()
        worker.work(900)
        receiver.start()
        time.sleep(0.5)
    mount.unmount()
    receiver.stop()
    events = SUITE.dump(*traces(out)).events
    lost = lost_in(out)
    expect(lost > 0, "nothing was lost; make the queue smaller")
    expect_equal(len(events) + lost, worker.made, "recorded and counted")
    SUITE.remove("drop")
    return f"{lost} of {worker.made} lost, all counted"


def degraded():
    source, point, out = folders("degrade")
    receiver = Receiver("tcp:127.0.0.1:0", out=out)
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", output(
        receiver, "when_full = degrade queue = 64K buf = 4K",
        filters="async;")))
    worker = Worker(point)
    receiver.kill()
    worker.work(3000)
    receiver.start()
    mount.unmount()
    receiver.stop()
    events = SUITE.dump(*traces(out)).events
    stats = subprocess.run(
        [os.path.join(SUITE.bin, "tracefs-dump"), "--stats", *traces(out)],
        capture_output=True, text=True, check=False).stdout
    match = re.search(r"only counted: mkdir\s+([\d,]+)", stats)
    expect(match, "no counts by kind:\n" + stats)
    expect_equal(len(events) + int(match.group(1).replace(",", "")), worker.made,
                 "recorded and counted")
    SUITE.remove("degrade")


def failed():
    """Without a receiver nothing is done that could not be recorded."""
    source, point, out = folders("fail")
    receiver = Receiver("tcp:127.0.0.1:0", out=out)
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", output(
        receiver, "when_full = fail queue = 128K buf = 4K")))
    worker = Worker(point)
    worker.work(10)
    receiver.kill()
    refused = 0
    for _ in range(5000):
        try:
            worker.work(1)
        except OSError as error:
            expect_equal(error.errno, 5, "EIO")
            refused += 1
    expect(refused > 0, "nothing was refused")
    # Others than the audited ones go on.
    os.listdir(point)
    receiver.start()
    wait_until(lambda: can_work(worker), "operations after the outage")
    mount.unmount()
    receiver.stop()
    dump = SUITE.dump(*traces(out))
    worker.expect_all(dump.events)
    SUITE.remove("fail")
    return f"{refused} refused, nothing missing"


def can_work(worker):
    try:
        worker.work(1)
        return True
    except OSError:
        return False


def killed_daemon():
    """What a daemon that was killed had written is sent by the next one."""
    source, point, out = folders("killed")
    spool = SUITE.folder("killed", "spool", mode=0o700)
    receiver = Receiver("tcp:127.0.0.1:0", out=out)
    section = output(receiver,
                     f'unbuffered when_full = spill "{spool}" max = 64M')
    worker = Worker(point)
    for _ in range(ROUNDS):
        mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", section))
        worker.work(RANDOM.randrange(100))
        if RANDOM.random() < 0.7:
            receiver.kill()
            worker.work(RANDOM.randrange(100))
        mount.kill()
        wait_until(lambda: not mount.is_mounted(), "the watchdog's unmount")
        if receiver.process.poll() is not None:
            receiver.start()
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", section))
    wait_until(lambda: len(os.listdir(spool)) <= 1, "what was left is sent")
    mount.unmount()
    receiver.stop()
    # Those traces have no end, but all that was done.
    worker.expect_all(SUITE.dump(*traces(out)).events)
    expect_equal(os.listdir(spool), [], "what is left in the spill directory")
    SUITE.remove("killed")


@contextlib.contextmanager
def network_namespace(name):
    def ip(*arguments, check=True):
        return subprocess.run(["ip", *arguments], check=check,
                              capture_output=True)

    link = f"tfs{os.getpid() % 10000}"
    ip("netns", "add", name)
    try:
        ip("link", "add", link + "a", "type", "veth", "peer", "name",
           link + "b", "netns", name)
        ip("addr", "add", "198.18.7.1/30", "dev", link + "a")
        ip("link", "set", link + "a", "up")
        ip("-n", name, "addr", "add", "198.18.7.2/30", "dev", link + "b")
        ip("-n", name, "link", "set", link + "b", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield lambda up: ip("link", "set", link + "a", "up" if up else "down")
    finally:
        ip("link", "del", link + "a", check=False)
        ip("netns", "del", name, check=False)


def cut_networks(policy, name):
    source, point, out = folders(name)
    spool = SUITE.folder(name, "spool", mode=0o700)
    namespace = f"tracefs-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        try:
            connect = stack.enter_context(network_namespace(namespace))
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            return Skip(f"no network namespaces here: {error}")
        receiver = Receiver("tcp:198.18.7.2:0", out=out, namespace=namespace)
        mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", output(
            receiver, "timeout = 1s " + policy.replace("SPOOL", spool))))
        worker = Worker(point)
        for _ in range(ROUNDS):
            worker.work(RANDOM.randrange(300))
            time.sleep(RANDOM.random() * 0.3)
            connect(False)
            worker.work(RANDOM.randrange(300))
            time.sleep(RANDOM.random() * 1.5)
            connect(True)
            time.sleep(RANDOM.random() * 0.3)
        worker.work(50)
        mount.unmount()
        receiver.stop()
    worker.expect_all(SUITE.read(*traces(out)))
    SUITE.remove(name)
    return None


def peer_that_never_reads():
    """A write to the mount never waits longer than the deadline."""
    source, point, _ = folders("deaf")
    deaf = SUITE.background(subprocess.Popen(
        [sys.executable, "-c",
         "import socket,time\ns=socket.create_server(('127.0.0.1',0))\n"
         "print(s.getsockname()[1],flush=True)\nk=[]\n"
         "while True: k.append(s.accept())"],
        stdout=subprocess.PIPE, text=True))
    port = int(deaf.stdout.readline())
    section = (f'tcp = "127.0.0.1:{port}" when_full = block deadline = 500ms '
               'queue = 64K buf = 4K')
    mount = SUITE.mount(source, point, (ONLY_MKDIR, "STR_ALL", section))
    worker = Worker(point)
    longest = 0
    for _ in range(1500):
        begin = time.monotonic()
        worker.work(1)
        longest = max(longest, time.monotonic() - begin)
    expect(longest < 5, f"an operation took {longest:.1f} s")
    begin = time.monotonic()
    subprocess.run(["umount", point], check=True)
    # What could not be delivered is an error of the daemon's, and said.
    mount.wait(3)
    expect(time.monotonic() - begin < 60, "the end took too long")
    expect("could not be delivered" in mount.messages(), mount.messages())
    deaf.kill()
    deaf.wait()
    SUITE.remove("deaf")
    return f"the longest operation took {longest:.2f} s"


def bad_configs():
    """Each mistake is named, with what to do."""
    def check(section, *texts):
        config = SUITE.config(("", "STR_ALL", section))
        result = subprocess.run(
            [os.path.join(SUITE.bin, "tracefs-mount"), "--check", config],
            capture_output=True, text=True, check=False)
        expect_equal(result.returncode, 2, f"{section}: exit status")
        for text in texts:
            expect(text in result.stderr, f"{section}: {result.stderr}")

    check('tpc = "h:1"', "did you mean 'tcp'", "known:", "unix")
    check('tcp = "h"', "lacks a port")
    check('tcp = "h:1" when_full = spil', "did you mean 'spill'")
    check('tcp = "h:1" when_full = spill', "expected a text after 'spill'")
    check('tcp = "h:1" when_full = spill "/d"', "needs max")
    check('tcp = "h:1" when_full = drop deadline = 1s', "when_full = block")
    check('tls = "h:1"', "needs the option 'ca'")
    check('unix = ""', "is empty")


def main():
    for listen in ("tcp:127.0.0.1:0", "unix:" + SUITE.path("s"),
                   "seqpacket:" + SUITE.path("q")):
        SUITE.run("every operation over " + listen.split(":")[0],
                  every_transport, listen)
    SUITE.run("every operation over tls", over_tls)
    SUITE.run("added to a running mount", added_later)
    SUITE.run("live JSON Lines", live_lines)
    SUITE.run("no receiver at the start", no_receiver_at_start)
    SUITE.run("receivers killed, block", killed_receivers,
              "when_full = block deadline = 30s", "kill-block")
    SUITE.run("receivers killed, spill", killed_receivers,
              'when_full = spill "SPOOL" max = 64M', "kill-spill")
    SUITE.run("drop counts what it loses", dropped_and_counted)
    SUITE.run("degrade counts by kind", degraded)
    SUITE.run("fail refuses what it cannot record", failed)
    SUITE.run("daemons killed, spill", killed_daemon)
    SUITE.run("networks cut, block", cut_networks,
              "when_full = block deadline = 30s", "cut-block")
    SUITE.run("networks cut, spill", cut_networks,
              'when_full = spill "SPOOL" max = 64M', "cut-spill")
    SUITE.run("a peer that never reads", peer_that_never_reads)
    SUITE.run("mistakes in configs", bad_configs)
    SUITE.finish()


if __name__ == "__main__":
    main()
