#!/usr/bin/env python3
"""What goes wrong with brokers between hosts, and what the operator sees of it:
certificates that have expired, credentials that are taken away, a full disk of
one of three servers, a broker that was away for long, other tenants, receivers
that have one name. Nothing that was recorded is lost by any of it."""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
sys.path.insert(0, os.path.dirname(__file__))
import fleet_world  # noqa: E402
import nats_servers  # noqa: E402
from certificates import make_certificates  # noqa: E402
from fleet_world import (a_full_disk_is_waited_for, counted,  # noqa: E402
                         said)
from nats_servers import NatsClient, NatsServer  # noqa: E402
from tracefs_harness import (Failure, Skip, Suite, expect,  # noqa: E402
                             expect_equal, wait_until)


class Secured(nats_servers.Broker):
    """A server that wants TLS, or a user, of both sides."""

    def __init__(self, server, driver, receiver):
        super().__init__([server])
        self.driver += " " + driver
        self.receiver += receiver


def expire(folder, name):
    """A certificate of the same key that was good until yesterday."""
    subprocess.run(
        ["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem",
         "-CAkey", "ca.key", "-CAcreateserial", "-days", "-1", "-extfile",
         "hosts", "-out", f"{name}-expired.pem"], check=True, cwd=folder,
        capture_output=True)


def started(server):
    server.start()
    wait_until(server.answers, "nats-server")
    return server


def tls(folder, name):
    return (f'tls {{ cert_file: "{folder}/{name}.pem", key_file: '
            f'"{folder}/server.key", ca_file: "{folder}/ca.pem", '
            "verify: true }")


def stored(fleet, receiver=None):
    """All is stored, and as it should be."""
    receiver = receiver or fleet.receiver()

    def same():
        expect(receiver.poll() is None, said(receiver))
        try:
            return fleet.traces() and fleet.expect_same()
        except Failure:
            return False
    wait_until(same, "all to be stored")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    return f"{fleet.expect_same()} events"


def ended(receiver):
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))


def messages_in(server):
    with NatsClient(server.address) as client:
        return client.request("$JS.API.STREAM.INFO.TRACEFS")["state"]["messages"]


def an_expired_certificate_of_the_server_is_told(suite):
    pem = suite.folder("pem")
    make_certificates(pem, ("server", "host"), "IP:127.0.0.1,DNS:localhost")
    expire(pem, "server")
    server = NatsServer(suite, "expired", tls(pem, "server-expired"))
    server.start()
    broker = Secured(
        server,
        f'ca = "{pem}/ca.pem" cert = "{pem}/host.pem" key = "{pem}/host.key"',
        ["--ca", f"{pem}/ca.pem", "--cert", f"{pem}/host.pem", "--tls-key",
         f"{pem}/host.key"])
    fleet = fleet_world.Fleet(suite, "expired-fleet", broker)
    fleet.work(50)
    wait_until(lambda: "certificate" in fleet.mount.messages(),
               "the driver to say that it is the certificate")
    receiver = fleet.receiver()
    wait_until(lambda: "certificate" in said(receiver),
               "the receiver to say that it is the certificate")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    # A good one, and nobody is started anew but the server.
    server.kill()
    server.configure(tls(pem, "server"))
    server.start()
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be connected")
    fleet.work(50)
    fleet.mount.unmount()
    return stored(fleet)


def an_expired_certificate_of_ours_is_told(suite):
    """It is the driver's and the receiver's own: whose it is, and since when."""
    pem = suite.folder("own-pem")
    make_certificates(pem, ("server", "host"), "IP:127.0.0.1,DNS:localhost")
    expire(pem, "host")
    good = os.path.join(pem, "good.pem")
    shutil.copy(os.path.join(pem, "host.pem"), good)
    own = os.path.join(pem, "host.pem")
    shutil.copy(os.path.join(pem, "host-expired.pem"), own)
    server = NatsServer(suite, "own-expired", tls(pem, "server"))
    server.start()
    broker = Secured(
        server, f'ca = "{pem}/ca.pem" cert = "{own}" key = "{pem}/host.key"',
        ["--ca", f"{pem}/ca.pem", "--cert", own, "--tls-key",
         f"{pem}/host.key"])
    fleet = fleet_world.Fleet(suite, "own-fleet", broker)
    fleet.work(50)
    told = f"'{own}' has expired"
    wait_until(lambda: told in fleet.mount.messages(),
               "the driver to say which certificate it is")
    receiver = fleet.receiver()
    wait_until(lambda: told in said(receiver),
               "the receiver to say which certificate it is")
    fleet.work(50)
    # A new one is put in its place: nobody is started anew.
    os.replace(good, own)
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be connected")
    fleet.mount.unmount()
    return stored(fleet, receiver)


def a_broker_that_was_away_for_long(suite):
    """Longer than it knows what it has: what it took, but could not say so, is
    sent again, and is there twice. It is stored once."""
    server = started(NatsServer(suite, "long"))
    with NatsClient(server.address) as client:
        answer = client.request("$JS.API.STREAM.CREATE.TRACEFS", json.dumps({
            "name": "TRACEFS", "subjects": ["tracefs.>"], "storage": "file",
            "duplicate_window": 100_000_000}).encode())
        expect("error" not in answer, str(answer))
    spill = suite.folder("long-spill", mode=0o700)
    fleet = fleet_world.Fleet(
        suite, "long-fleet", nats_servers.Broker([server]),
        options=f'when_full = spill "{spill}" max = 64M timeout = 1s')
    fleet.work(50)

    wait_until(lambda: messages_in(server) > 0, "something in the stream")
    server.process.send_signal(signal.SIGSTOP)
    try:
        fleet.work(100)
        # It has them in its socket; the driver gives up and keeps them.
        wait_until(lambda: "trying again" in fleet.mount.messages(),
                   "the driver to give up")
    finally:
        server.process.send_signal(signal.SIGCONT)
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be connected again")
    fleet.work(20)
    # And gone for a while.
    server.kill()
    fleet.work(100)
    wait_until(lambda: os.listdir(spill), "something in the spill directory")
    server.start()
    fleet.mount.unmount()
    expect_equal(os.listdir(spill), [], "the spill directory")
    # It has taken these once more, as from one who was never told.
    with NatsClient(server.address) as client:
        for subject, headers, body in list(client.messages("TRACEFS"))[-5:]:
            answer = client.request(subject, body, headers=headers)
            expect("duplicate" not in answer, str(answer))
    messages = messages_in(server)
    receiver = fleet.receiver()
    result = stored(fleet, receiver)
    counts = counted(receiver)
    expect_equal(counts["stored"] + counts["doubled"], messages, "messages")
    expect(counts["doubled"] >= 5, str(counts))
    return f"{result}, {counts}"


def another_tenant_gets_nothing_in(suite):
    """Neither under our subject, nor, in an account of its own, at all."""
    users = """
    authorization { users: [
      { user: boss, password: "boss" },
      { user: ours, password: "ours" },
      { user: other, password: "other", permissions: { publish: {
          allow: [ "other.>", "$JS.API.>", "_INBOX.>" ] } } } ] }"""
    server = NatsServer(suite, "tenants", users)
    server.start()
    boss = {"user": "boss", "pass": "boss"}
    wait_until(lambda: server.answers(**boss), "nats-server")
    for name in ("ours", "other"):
        with open(suite.path(name), "w", encoding="ascii") as out:
            out.write(name + "\n")

    def broker(name):
        return Secured(
            server, f'user = "{name}" password = "{suite.path(name)}"',
            ["--broker-user", name, "--broker-password", suite.path(name)])
    ours = fleet_world.Fleet(suite, "our-fleet", broker("ours"))
    ours.work(30)
    other = fleet_world.Fleet(suite, "other-fleet", broker("other"))
    other.work(30)
    wait_until(lambda: "ermission" in other.mount.messages(),
               "the other tenant's driver to say that it may not")
    ours.mount.unmount()
    result = stored(ours)
    with NatsClient(server.address, **boss) as client:
        serials = {headers["Nats-Msg-Id"].rpartition("-")[0]
                   for _, headers, _ in client.messages("TRACEFS")}
    expect_equal(len(serials), 1, "traces in the stream")
    other.give_up()
    return result


def two_receivers_of_one_name(suite):
    """And directories of their own: a mistake of the operator's. Each stores
    what it gets, says that there are gaps, and together they have all."""
    server = started(NatsServer(suite, "one-name"))
    fleet = fleet_world.Fleet(suite, "one-name-fleet",
                              nats_servers.Broker([server]),
                              options="buf = 4096")
    second = suite.folder("one-name-fleet", "second")
    receivers = [fleet.receiver("--gap", "1s"),
                 fleet.receiver("--gap", "1s", out=second)]

    def shared():
        fleet.work(20)
        return (fleet.traces() and
                glob.glob(f"{second}/host=*/date=*/*.trace"))
    wait_until(shared, "both to get something")
    for _ in range(10):
        fleet.work(40)
    fleet.mount.unmount()
    fleet.await_all(receivers)
    counts = [counted(one) for one in receivers]
    expect(counts[0]["never"] + counts[1]["never"] > 0,
           "nobody says that blocks never came")
    # What one was slow to acknowledge the other gets, too.
    stored = counts[0]["stored"] + counts[1]["stored"]
    expect(stored >= messages_in(server),
           f"{stored} blocks in the two directories of {messages_in(server)}")
    # What the operator does then: another group, with one directory, as long as
    # the broker has it all.
    third = suite.folder("one-name-fleet", "third")
    again = fleet.receiver("--group", "again", out=third)
    wait_until(lambda: fleet.broker.acknowledged_all("again"), "all again")
    ended(again)
    events = suite.read(*glob.glob(f"{third}/host=*/date=*/*.trace"))
    return f"{fleet.expect_same(events)} events, {counts}"


def credentials_that_are_taken_away_are_told(suite):
    password = suite.path("revoked-password")
    with open(password, "w", encoding="ascii") as out:
        out.write("one\n")
    users = ("authorization {{ users: [ {{ user: boss, password: \"right\" }}, "
             "{{ user: fleet, password: \"{}\" }} ] }}")
    server = NatsServer(suite, "revoked", users.format("one"))
    server.start()
    boss = {"user": "boss", "pass": "right"}
    wait_until(lambda: server.answers(**boss), "nats-server")
    broker = Secured(server, f'user = "fleet" password = "{password}"',
                     ["--broker-user", "fleet", "--broker-password", password])
    fleet = fleet_world.Fleet(suite, "revoked-fleet", broker)
    fleet.work(50)

    def has_messages():
        with NatsClient(server.address, **boss) as client:
            info = client.request("$JS.API.STREAM.INFO.TRACEFS")
            return "state" in info and info["state"]["messages"] > 0
    wait_until(has_messages, "something in the stream")
    server.configure(users.format("two"))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "uth" in fleet.mount.messages(),
               "the driver to say that it may no more")
    receiver = fleet.receiver()
    wait_until(lambda: "uth" in said(receiver), "the receiver to say so")
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))
    fleet.work(50)
    with open(password, "w", encoding="ascii") as out:
        out.write("two\n")
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be let in")
    fleet.mount.unmount()
    return stored(fleet)


def a_full_disk_of_one_server_loses_nothing(suite):
    servers = nats_servers.cluster(suite, ["d1", "d2", "d3"])
    with suite.tmpfs("d1", size="8m") as small:
        for server in servers:
            server.start()
        for server in servers:
            wait_until(server.answers, "nats-server")
        fleet = fleet_world.Fleet(
            suite, "full-fleet", nats_servers.Broker(servers),
            options="replicas = 3 queue = 256M when_full = block "
            "deadline = 60s buf = 4096")
        fleet.work(50)
        nats_servers.await_stream(servers[1])
        with open(os.path.join(small, "ballast"), "wb", buffering=0) as out:
            try:
                while True:
                    out.write(bytes(65536))
            except OSError:
                pass
        expect(shutil.disk_usage(small).free < 65536, "a full disk")
        for _ in range(10):
            fleet.work(60)
        fleet.mount.unmount()
        # A new group may have to wait until the operator has made room, and has
        # started again the server that gave up; the stream has kept all.
        os.unlink(os.path.join(small, "ballast"))
        servers[0].kill()
        started(servers[0])
        result = stored(fleet)
        nats_servers.stop_all()
    return result


def a_full_disk_of_the_receiver_loses_nothing(suite):
    """As traces and as tables. What it has it keeps, though the broker would not
    send it again for an hour."""
    results = []
    for arguments in ((), ("--format", "jsonl", "--every", "200ms")):
        name = "full-" + ("tables" if arguments else "traces")
        server = started(NatsServer(suite, name))
        broker = nats_servers.Broker([server])
        broker.receiver[broker.receiver.index("--redeliver") + 1] = "1h"
        results.append(a_full_disk_is_waited_for(
            suite, name, broker, arguments, lambda: messages_in(server)))
        nats_servers.stop_all()
    return f"{results} events"


def ending(case, suite):
    """Runs a case and ends the servers that it started."""
    if nats_servers.missing():
        raise Skip(nats_servers.missing())
    try:
        return case(suite)
    finally:
        nats_servers.stop_all()


def main():
    suite = Suite("fleet-faults", __doc__)
    for case in (an_expired_certificate_of_the_server_is_told,
                 an_expired_certificate_of_ours_is_told,
                 a_broker_that_was_away_for_long,
                 another_tenant_gets_nothing_in, two_receivers_of_one_name,
                 credentials_that_are_taken_away_are_told,
                 a_full_disk_of_one_server_loses_nothing,
                 a_full_disk_of_the_receiver_loses_nothing):
        suite.run(case.__name__.replace("_", " "), ending, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
