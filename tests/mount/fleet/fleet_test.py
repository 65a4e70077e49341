#!/usr/bin/env python3
"""Traces of many hosts over brokers: the driver nats of a real mount in its
sandbox, real nats-servers, and tracefs-recv --from that is killed. What is
stored must be, event by event, what the file driver kept beside."""

import collections
import glob
import json
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
sys.path.insert(0, os.path.dirname(__file__))
import nats_servers  # noqa: E402
from nats_servers import NatsClient, NatsServer  # noqa: E402
from tracefs_harness import (Skip, Suite, decode_event, expect,  # noqa: E402
                             expect_equal, wait_until)

SOAK = bool(os.environ.get("TRACEFS_SOAK"))
HOST = os.uname().nodename
GROUP = "tracefs-recv"


class Fleet:
    """A mount with two tracers, one to a broker and one to a file beside."""

    def __init__(self, suite, name, servers, options="", filters="",
                 file_filters=None):
        if nats_servers.missing():
            raise Skip(nats_servers.missing())
        self.suite = suite
        self.name = name
        self.source = suite.folder(name, "source")
        self.point = suite.folder(name, "mount")
        self.out = suite.folder(name, "out")
        self.beside = suite.path(name, "beside.trace")
        self.servers = servers
        self.addresses = ",".join(s.address for s in servers)
        beside = filters if file_filters is None else file_filters
        self.mount = suite.mount(
            self.source, self.point,
            ("", "STR_ALL", f'{filters} nats = "{self.addresses}" create '
             f"retry = 200ms {options}"),
            ("", "STR_ALL", f'{beside} file = "{self.beside}"'))
        self.made = 0

    def work(self, count):
        for _ in range(count):
            path = os.path.join(self.point, f"f{self.made}")
            with open(path, "w", encoding="ascii") as out:
                out.write(str(self.made))
            self.made += 1

    def receiver(self, *arguments, out=None):
        log = self.suite.path(self.name, f"recv-{random.random()}.log")
        with open(log, "wb") as errors:
            process = self.suite.background(subprocess.Popen(
                [os.path.join(self.suite.bin, "tracefs-recv"), "--from",
                 "nats:" + self.addresses, "--create", "--out",
                 out or self.out, "--redeliver", "2s",
                 *arguments],
                stdin=subprocess.DEVNULL, stderr=errors))
        process.log = log
        return process

    def await_all(self, receivers, stop=True):
        """Until all that is in the stream was acknowledged."""
        def done():
            for receiver in receivers:
                expect(receiver.poll() is None, said(receiver))
            try:
                with NatsClient(self.servers[0].address) as client:
                    return client.acknowledged_all("TRACEFS", GROUP)
            except OSError:
                return False
        wait_until(done, "all blocks to be acknowledged")
        for receiver in receivers if stop else ():
            receiver.send_signal(signal.SIGTERM)
            expect_equal(receiver.wait(30), 0, said(receiver))

    def traces(self):
        return sorted(glob.glob(f"{self.out}/host={HOST}/date=*/*.trace"))

    def expect_same(self, events=None):
        want = plain(self.suite.read(self.beside))
        got = plain(self.suite.read(*self.traces()) if events is None
                    else events)
        missing, more = want - got, got - want
        expect(not missing and not more,
               f"{sum(missing.values())} events of {sum(want.values())} are "
               f"missing, {sum(more.values())} are too many; "
               f"{list(missing)[:1]} {list(more)[:1]}")
        return sum(want.values())


def said(process):
    with open(process.log, encoding="utf-8", errors="replace") as text:
        return text.read()


def plain(events):
    """Events with how often each is there, but for who recorded it: each
    tracer has a pair of clocks of its own."""
    return collections.Counter(
        json.dumps({k: v for k, v in event.items()
                    if k not in ("ts", "tracer")}, sort_keys=True)
        for event in events)


def started(server):
    server.start()
    wait_until(server.answers, "nats-server")
    return server


def messages_put_together_are_the_trace(suite):
    """An oracle of its own takes them out of the stream."""
    server = started(NatsServer(suite, "alone"))
    fleet = Fleet(suite, "together", [server], filters="compress alg = zstd;")
    fleet.work(300)
    fleet.mount.unmount()
    whole = suite.path("together", "whole.trace")
    with NatsClient(server.address) as client, open(whole, "wb") as out:
        messages = list(client.messages("TRACEFS"))
        for _, _, body in messages:
            out.write(body)
    ids = [headers["Nats-Msg-Id"] for _, headers, _ in messages]
    expect_equal(len(set(ids)), len(ids), "messages with an id of their own")
    expect({subject for subject, _, _ in messages}
           == {f"tracefs.{HOST.replace('.', '_')}.trace"}, "the subject")
    count = fleet.expect_same(suite.read(whole))
    return f"{count} events in {len(messages)} messages"


def stored_traces_are_what_the_file_driver_kept(suite):
    """And verify, sealed, with a file of a group of two that is shared."""
    server = started(NatsServer(suite, "two"))
    secret = suite.path("secret")
    with open(secret, "w", encoding="ascii") as out:
        out.write("tracefs-secret-1 " + "5a" * 32 + "\n")
    os.chmod(secret, 0o600)
    seal = f'checksum key = "file:{secret}";'
    fleet = Fleet(suite, "stored", [server], options="buf = 4096",
                  filters=seal)
    receivers = [fleet.receiver("--key", secret) for _ in range(2)]
    for _ in range(5):
        fleet.work(40)
    fleet.mount.unmount()
    fleet.await_all(receivers)
    count = fleet.expect_same()
    expect_equal(len(fleet.traces()), 1, "one file for one trace and day")
    suite.command("tracefs-verify", "--key", secret, *fleet.traces())
    return f"{count} events"


def killed_receivers_lose_and_double_nothing(suite, kills=4):
    """kill -9, two in turn."""
    server = started(NatsServer(suite, "killed"))
    fleet = Fleet(suite, "killers", [server], options="buf = 4096")
    receivers = [fleet.receiver(), fleet.receiver()]
    for number in range(kills):
        fleet.work(60)
        victim = number % 2
        receivers[victim].send_signal(signal.SIGKILL)
        receivers[victim].wait()
        receivers[victim] = fleet.receiver()
    fleet.mount.unmount()
    fleet.await_all(receivers)
    return f"{fleet.expect_same()} events, {kills} kills"


def a_broker_that_is_away_costs_nothing(suite):
    """Blocks wait in the spill directory, twice."""
    server = NatsServer(suite, "away")
    spill = suite.folder("spill", mode=0o700)
    fleet = Fleet(suite, "away-fleet", [server],
                  options=f'when_full = spill "{spill}" max = 64M')
    fleet.work(100)
    wait_until(lambda: os.listdir(spill), "something in the spill directory")
    started(server)
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to say that it is connected")
    fleet.work(100)
    server.kill()
    fleet.work(100)
    started(server)
    fleet.mount.unmount()
    expect_equal(os.listdir(spill), [], "the spill directory")
    fleet.await_all([fleet.receiver()])
    return f"{fleet.expect_same()} events"


def wrong_credentials_are_told(suite):
    password = suite.path("password")
    with open(password, "w", encoding="ascii") as out:
        out.write("wrong\n")
    server = NatsServer(suite, "closed",
                        'authorization { user: fleet, password: "right" }')
    server.start()
    right = {"user": "fleet", "pass": "right"}
    wait_until(lambda: server.answers(**right), "nats-server")
    fleet = Fleet(suite, "closed-fleet", [server],
                  options=f'user = "fleet" password = "{password}"')
    fleet.work(50)
    wait_until(lambda: "uthoriz" in fleet.mount.messages(),
               "the driver to say that it may not")
    # It is told once, and what is right then is taken without a restart.
    with open(password, "w", encoding="ascii") as out:
        out.write("right\n")
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be let in")
    fleet.mount.unmount()
    with NatsClient(server.address, **right) as client:
        whole = suite.path("closed-fleet", "whole.trace")
        with open(whole, "wb") as out:
            for _, _, body in client.messages("TRACEFS"):
                out.write(body)
    return f"{fleet.expect_same(suite.read(whole))} events"


def what_is_forged_is_refused(suite):
    """Damaged, doubled, of unknown hosts, of another host than its subject."""
    server = started(NatsServer(suite, "forged"))
    fleet = Fleet(suite, "forged-fleet", [server])
    fleet.work(50)
    fleet.mount.unmount()
    token = HOST.replace(".", "_")
    with NatsClient(server.address) as client:
        messages = list(client.messages("TRACEFS"))
        subject, headers, body = messages[-1]

        def forge(to, head, what):
            answer = client.request(to, what, headers={
                "Tracefs-Host": HOST, "Tracefs-Tracer": "trace", **head})
            expect("seq" in answer, str(answer))

        forge(subject, {}, body)  # doubled, without its id
        forge(subject, {}, messages[0][2])
        forge(subject, {}, b"nonsense")
        forge(subject, {}, b"")
        forge(subject, {}, body[:-1])
        forge(subject, {}, body[:-5] + b"?" + body[-4:])
        forge(subject, {"Tracefs-Host": "other"}, body)
        forge(subject, {"Tracefs-Host": "../../etc"}, body)
        forge("tracefs.mallory.trace", {"Tracefs-Host": "mallory"}, body)
        forge(f"tracefs.{token}", {}, body)
    hosts = suite.path("hosts")
    with open(hosts, "w", encoding="ascii") as out:
        out.write(f"# ours\n{HOST}\n")
    receiver = fleet.receiver("--hosts", hosts)
    fleet.await_all([receiver])
    text = said(receiver)
    expect("8 refused" in text and "2 doubled" in text, text)
    expect_equal(os.listdir(fleet.out).count("host=mallory"), 0, "mallory")
    expect_equal(len([n for n in os.listdir(fleet.out)
                      if n.startswith("host=")]), 1, "hosts")
    return f"{fleet.expect_same()} events"


def tables_have_each_event_once(suite):
    """JSON Lines and Parquet, by two receivers that are killed meanwhile."""
    server = started(NatsServer(suite, "tables"))
    fleet = Fleet(suite, "tables-fleet", [server], options="buf = 4096",
                  filters="compress alg = zstd;")
    arguments = ("--format", "jsonl", "--every", "200ms")
    receivers = [fleet.receiver(*arguments) for _ in range(2)]
    for number in range(2):
        fleet.work(60)
        receivers[number % 2].send_signal(signal.SIGKILL)
        receivers[number % 2].wait()
        receivers[number % 2] = fleet.receiver(*arguments)
    fleet.mount.unmount()
    fleet.await_all(receivers)
    events = []
    files = glob.glob(f"{fleet.out}/host={HOST}/date=*/*.jsonl")
    for path in files:
        with open(path, "rb") as lines:
            events += [decode_event(line) for line in lines]
    expect(not glob.glob(f"{fleet.out}/host={HOST}/date=*/.tmp-*"),
           "what a killed receiver left")
    count = fleet.expect_same(events)
    # What is in the stream comes again, all of it, to a group of another name.
    receiver = fleet.receiver("--format", "jsonl", "--group", "again")
    def all_came():
        with NatsClient(server.address) as client:
            info = client.request("$JS.API.CONSUMER.INFO.TRACEFS.again")
            return (not info.get("error") and info["num_pending"] == 0)
    wait_until(all_came, "all blocks to come again")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    expect("stored 0 blocks; " in said(receiver), said(receiver))
    parquet = suite.folder("tables-fleet", "parquet")
    receiver = fleet.receiver("--format", "parquet", "--group", "parquet",
                              "--every", "1s", out=parquet)
    wait_until(lambda: glob.glob(f"{parquet}/host={HOST}/date=*/*.parquet"),
               "a Parquet file")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    try:
        import pandas
        rows = sum(len(pandas.read_parquet(path, columns=["op"])) for path in
                   glob.glob(f"{parquet}/host={HOST}/date=*/*.parquet"))
        expect_equal(rows, count, "rows of Parquet")
    except ImportError:
        for path in glob.glob(f"{parquet}/host={HOST}/date=*/*.parquet"):
            with open(path, "rb") as file:
                data = file.read()
            expect(data[:4] == data[-4:] == b"PAR1", "no Parquet file")
    return f"{count} events in {len(files)} files"


def a_node_is_killed_under_load(suite, kills=1):
    """Three servers keep the stream; each in turn is killed."""
    servers = nats_servers.cluster(suite, ["n1", "n2", "n3"])
    for server in servers:
        server.start()
    for server in servers:
        wait_until(server.answers, "nats-server")
    fleet = Fleet(suite, "cluster", servers,
                  # The end of the trace waits for a leader, too.
                  options="replicas = 3 queue = 256M when_full = block "
                  "deadline = 60s")
    receiver = fleet.receiver()

    def has_stream():
        try:
            with NatsClient(servers[0].address) as client:
                info = client.request("$JS.API.STREAM.INFO.TRACEFS")
                return "state" in info and info["state"]["messages"] > 0
        except OSError:
            return False
    fleet.work(50)
    wait_until(has_stream, "the stream")
    for number in range(kills):
        victim = servers[number % 3]
        victim.kill()
        for _ in range(10):
            fleet.work(30)
        victim.start()
        wait_until(victim.answers, "nats-server")
        fleet.work(50)
    fleet.mount.unmount()
    fleet.await_all([receiver])
    return f"{fleet.expect_same()} events, {kills} kills"


def a_feed_is_lines_in_messages(suite):
    server = started(NatsServer(suite, "feed"))
    fleet = Fleet(suite, "feed-fleet", [server], options="feed = ocsf")
    fleet.work(40)
    fleet.mount.unmount()
    creates = 0
    with NatsClient(server.address) as client:
        for _, _, body in client.messages("TRACEFS"):
            for line in body.decode().splitlines():
                creates += (json.loads(line)["activity_id"] == 1)
    want = [e for e in suite.read(fleet.beside)
            if e["op"] in ("create", "mkdir", "link", "symlink", "mknod")]
    expect_equal(creates, len(want), "files that were created")
    return f"{creates} files"


def added_to_a_running_mount(suite):
    """tracefs-ctl starts the courier: the daemon could not."""
    server = started(NatsServer(suite, "added"))
    with suite.mounted(ended=True) as (_, point, mount):
        config = suite.config(("", "STR_ALL",
                               f'nats = "{server.address}" create'))
        suite.command("tracefs-ctl", point, "add", config)
        for i in range(20):
            with open(os.path.join(point, f"a{i}"), "wb"):
                pass
        mount.unmount()
        whole = suite.path("added.trace")
        with NatsClient(server.address) as client, open(whole, "wb") as out:
            for _, _, body in client.messages("TRACEFS"):
                out.write(body)
        names = [e["path"] for e in suite.read(whole) if e["op"] == "create"]
        expect_equal(names, [f"/a{i}" for i in range(20)], "created")
    return f"{len(names)} files"


def ending(case, *arguments):
    """Runs a case and ends the servers that it started."""
    try:
        return case(*arguments)
    finally:
        nats_servers.stop_all()


def main():
    suite = Suite("fleet", __doc__)
    cases = (messages_put_together_are_the_trace,
             stored_traces_are_what_the_file_driver_kept,
             killed_receivers_lose_and_double_nothing,
             a_broker_that_is_away_costs_nothing, wrong_credentials_are_told,
             what_is_forged_is_refused, tables_have_each_event_once,
             a_node_is_killed_under_load, a_feed_is_lines_in_messages,
             added_to_a_running_mount)
    for case in cases:
        suite.run(case.__name__.replace("_", " "), ending, case, suite)
    if SOAK:
        suite.run("receivers are killed for a long time", ending,
                  killed_receivers_lose_and_double_nothing, suite, 2000)
        suite.run("nodes are killed for a long time", ending,
                  a_node_is_killed_under_load, suite, 60)
    suite.finish()


if __name__ == "__main__":
    main()
