#!/usr/bin/env python3
"""Traces of many hosts over brokers: the driver nats of a real mount in its
sandbox, real nats-servers, and tracefs-recv --from that is killed. What is
stored must be, event by event, what the file driver kept beside."""

import contextlib
import glob
import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
sys.path.insert(0, os.path.dirname(__file__))
import duckdb  # noqa: E402
import fleet_world  # noqa: E402
import nats_servers  # noqa: E402
from fleet_world import (HOST, SOAK_SECONDS,  # noqa: E402
                         another_key_leaves_blocks_with_the_broker,
                         encrypted_fleet, forged_seals_are_not_stored,
                         lines_of_killed_receivers,
                         receivers_killed_at_random_lose_nothing,
                         receivers_killed_in_turn_lose_nothing, said,
                         sealed_fleet, secret_file, tables_need_the_key,
                         two_receivers_store_what_verifies)
from nats_servers import NatsClient, NatsServer  # noqa: E402
from tracefs_harness import (Skip, Suite, expect, expect_equal,  # noqa: E402
                             wait_until)

SOAK = bool(os.environ.get("TRACEFS_SOAK"))


class Fleet(fleet_world.Fleet):
    """With nats-servers."""

    def __init__(self, suite, name, servers, options="", **more):
        if nats_servers.missing():
            raise Skip(nats_servers.missing())
        super().__init__(suite, name, nats_servers.Broker(servers), options,
                         **more)


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
           == {f"tracefs.{HOST.replace('_', '=').replace('.', '_')}.trace"}, "the subject")
    count = fleet.expect_same(suite.read(whole))
    return f"{count} events in {len(messages)} messages"


def stored_traces_are_what_the_file_driver_kept(suite):
    """And verify, sealed, with a file of a group of two that is shared."""
    server = started(NatsServer(suite, "two"))
    return two_receivers_store_what_verifies(
        *sealed_fleet(suite, "stored", [server], Fleet))


def killed_receivers_lose_and_double_nothing(suite, kills=4):
    """kill -9, two in turn."""
    server = started(NatsServer(suite, "killed"))
    fleet = Fleet(suite, "killers", [server], options="buf = 4096")
    return receivers_killed_in_turn_lose_nothing(fleet, kills)


def receivers_killed_for_a_long_time(suite):
    server = started(NatsServer(suite, "random-kills"))
    return receivers_killed_at_random_lose_nothing(
        *sealed_fleet(suite, "random", [server], Fleet), SOAK_SECONDS)


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


def forged_seals_are_not_taken(suite):
    server = started(NatsServer(suite, "unsealed"))
    fleet, secret = sealed_fleet(suite, "unsealed-fleet", [server], Fleet,
                                 file_filters="")

    def send(body):
        with NatsClient(server.address) as client:
            answer = client.request("tracefs.victim.trace", body, headers={
                "Tracefs-Host": "victim", "Tracefs-Tracer": "trace"})
            expect("seq" in answer, str(answer))
    return forged_seals_are_not_stored(fleet, secret, send)


def tables_have_each_event_once(suite):
    """JSON Lines and Parquet, by two receivers that are killed meanwhile."""
    server = started(NatsServer(suite, "tables"))
    fleet = Fleet(suite, "tables-fleet", [server], options="buf = 4096",
                  filters="compress alg = zstd;")
    events = lines_of_killed_receivers(fleet)
    files = fleet.tables()
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
    return f"{count} events in {len(files)} files"


def small_files_become_large_ones(suite):
    """While others of them come, whoever does it is killed, and somebody asks
    questions: of all that were asked the answer never has a row twice, or one
    less than the one before."""
    server = started(NatsServer(suite, "merged"))
    fleet = Fleet(suite, "merged-fleet", [server], options="buf = 4096",
                  filters="compress alg = zstd;")
    arguments = ("--format", "parquet", "--every", "100ms", "--merge", "1s")
    receivers = [fleet.receiver(*arguments) for _ in range(2)]
    table = (f"read_parquet('{fleet.out}/host=*/date=*/*.parquet', "
             "hive_partitioning = true)")
    rows = (f"SELECT count(*) AS n, count(DISTINCT (tracer, time, op, path, "
            f"ctid, latency)) AS different FROM {table}")

    def ask():
        """None: nothing is there yet, or a file was gone by then."""
        (answer,) = duckdb.ask(suite.options.npm, suite.path("merged-fleet"),
                               rows)
        if isinstance(answer, str):
            expect("No files found" in answer or "annot open file" in answer
                   or "No such file" in answer, answer)
            return None
        expect_equal(answer[0]["n"], answer[0]["different"], "rows")
        return int(answer[0]["n"])
    files, before, asked = [], 0, 0
    for number in range(8):
        fleet.work(30)
        receivers[number % 2].send_signal(signal.SIGKILL)
        receivers[number % 2].wait()
        receivers[number % 2] = fleet.receiver(*arguments)
        files.append(len(glob.glob(f"{fleet.out}/host=*/date=*/*.parquet")))
        answer = None if duckdb.missing(suite.options.npm) else ask()
        if answer is not None:
            asked += 1
            expect(answer >= before, f"{before} rows have become {answer}")
            before = answer
    fleet.mount.unmount()
    fleet.await_all(receivers, stop=False)

    wait_until(lambda: len(glob.glob(
        f"{fleet.out}/host=*/date=*/*.parquet")) <= 8, "few files")
    for receiver in receivers:
        receiver.send_signal(signal.SIGTERM)
        expect_equal(receiver.wait(30), 0, said(receiver))
    want = sum(fleet_world.plain(suite.read(fleet.beside)).values())
    if asked:
        expect_equal(ask(), want, "rows")
    return f"{want} events, {asked} questions, files: {files}"


def blocks_that_lack_their_key_stay_with_the_broker(suite):
    server = started(NatsServer(suite, "keyless-server"))
    fleet, secret = encrypted_fleet(suite, "keyless", [server], Fleet)
    return tables_need_the_key(fleet, secret)


def blocks_under_another_key_stay_with_the_broker(suite):
    server = started(NatsServer(suite, "other-server"))
    fleet, secret = encrypted_fleet(suite, "other", [server], Fleet)
    return another_key_leaves_blocks_with_the_broker(
        fleet, secret, secret_file(suite, "another", "c3"))


def started_cluster(suite, name, options=""):
    """(servers, fleet, key of its seals): three that keep the stream together,
    which is there."""
    servers = nats_servers.cluster(suite, [f"{name}{i}" for i in range(3)])
    for server in servers:
        server.start()
    for server in servers:
        wait_until(server.answers, "nats-server")
    secret = secret_file(suite, name + "-secret", "5a")
    fleet = Fleet(suite, name, servers,
                  # The end of the trace waits for a leader, too.
                  options="replicas = 3 queue = 256M when_full = block "
                  "deadline = 60s " + options,
                  filters=f'checksum key = "file:{secret}";')
    fleet.work(50)
    nats_servers.await_stream(servers[0])
    return servers, fleet, secret


def stored_by(fleet, receivers, secret):
    """What is left comes; all of it verifies, and is that of the file."""
    fleet.mount.unmount()
    fleet.await_all(receivers)
    suite = fleet.suite
    suite.command("tracefs-verify", "--key", secret, *fleet.traces())
    return f"{fleet.expect_same()} events"


def a_node_is_killed_under_load(suite):
    """Three servers keep the stream; one is killed and comes back."""
    servers, fleet, secret = started_cluster(suite, "cluster")
    receiver = fleet.receiver()
    servers[0].kill()
    for _ in range(10):
        fleet.work(30)
    started(servers[0])
    fleet.work(50)
    return stored_by(fleet, [receiver], secret)


def all_three_servers_are_restarted(suite):
    """At once, under load, while a receiver takes what they have."""
    servers, fleet, secret = started_cluster(suite, "restarted")
    receiver = fleet.receiver()
    for server in servers:
        server.kill()
    for _ in range(10):
        fleet.work(30)
    wait_until(lambda: "trying again" in said(receiver),
               "the receiver to say that they are gone")
    for server in servers:
        server.start()
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be connected")
    fleet.work(50)
    return stored_by(fleet, [receiver], secret)


def a_node_is_killed_every_ten_seconds(suite, seconds):
    """Each in turn, whatever the others are doing, under load."""
    servers, fleet, secret = started_cluster(suite, "soaked")
    receivers = [fleet.receiver() for _ in range(2)]
    kills = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        victim = servers[kills % 3]
        victim.kill()
        kills += 1
        back = time.monotonic() + 3
        next_one = time.monotonic() + 10
        while time.monotonic() < next_one:
            fleet.work(30)
            time.sleep(0.25)
            if victim.process.poll() is not None and time.monotonic() > back:
                victim.start()
    return stored_by(fleet, receivers, secret) + f", {kills} kills"


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


class Log:
    """A syslog's socket, kept until it is read."""

    def __init__(self, path):
        self.path = path
        self.said = ""
        self.open()

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()
        os.unlink(self.path)

    def has(self, words):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.said += self.socket.recv(65536).decode() + "\n"
        return words in self.said


def a_receiver_is_watched(suite):
    """Its metrics and health know whether the broker is there, and what was
    stored; its log hears of it, after a restart of the log, too."""
    server = started(NatsServer(suite, "watched-server"))
    fleet = Fleet(suite, "watched", [server])
    log = Log(suite.path("watched", "log"))
    receiver = fleet.receiver("--metrics", "127.0.0.1:0", "--log",
                              f"syslog:{log.path}")
    wait_until(lambda: "metrics at " in said(receiver), "metrics")
    base = "http://" + said(receiver).partition("metrics at ")[2].split()[0]

    def get(path):
        try:
            with urllib.request.urlopen(base + path, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(name):
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                for line in get("/metrics")[1].splitlines()
                if not line.startswith("#")}[name]

    wait_until(lambda: log.has("takes traces from nats:"), "the log to hear")
    fleet.work(50)
    fleet.mount.unmount()
    fleet.await_all([receiver], stop=False)
    wait_until(lambda: metric("tracefs_recv_blocks_total") > 0, "blocks")
    expect(metric("tracefs_recv_bytes_total") > 1000, get("/metrics")[1])
    expect_equal(metric("tracefs_recv_broker_up"), 1, "broker_up")
    expect(metric("tracefs_recv_disk_free_bytes") > 0, "room on the disk")
    expect_equal(get("/health"), (200, "ok\n"), "health")
    # The log's daemon is restarted, and the broker dies.
    log.close()
    log.open()
    server.kill()
    wait_until(lambda: metric("tracefs_recv_broker_up") == 0, "broker_up 0")
    status, why = get("/health")
    expect(status == 503 and "broker" in why, f"health: {status} {why}")
    wait_until(lambda: log.has("; trying again"), "the log to hear of it")
    started(server)
    wait_until(lambda: metric("tracefs_recv_broker_up") == 1, "it to be back")
    expect_equal(metric("tracefs_recv_broker_losses_total"), 1, "losses")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    expect(log.has("has ended: stored "), log.said)
    fleet.expect_same()
    log.close()


def ending(case, *arguments):
    """Runs a case and ends the servers that it started."""
    try:
        return case(*arguments)
    finally:
        nats_servers.stop_all()


def main():
    suite = Suite("fleet", __doc__, fleet_world.arguments)
    cases = (messages_put_together_are_the_trace,
             stored_traces_are_what_the_file_driver_kept,
             killed_receivers_lose_and_double_nothing,
             a_broker_that_is_away_costs_nothing, wrong_credentials_are_told,
             what_is_forged_is_refused, forged_seals_are_not_taken, tables_have_each_event_once,
             small_files_become_large_ones,
             blocks_that_lack_their_key_stay_with_the_broker,
             blocks_under_another_key_stay_with_the_broker,
             a_node_is_killed_under_load, all_three_servers_are_restarted,
             a_feed_is_lines_in_messages,
             added_to_a_running_mount, a_receiver_is_watched)
    for case in cases:
        suite.run(case.__name__.replace("_", " "), ending, case, suite)
    if SOAK:
        suite.run("receivers are killed at random for a long time", ending,
                  receivers_killed_for_a_long_time, suite)
        suite.run("a node is killed every ten seconds for a long time", ending,
                  a_node_is_killed_every_ten_seconds, suite, SOAK_SECONDS)
    suite.finish()


if __name__ == "__main__":
    main()
