#!/usr/bin/env python3
"""What goes wrong with brokers between hosts, and what the operator sees of it:
certificates that have expired, credentials that are taken away, a full disk of
one of three servers. Nothing that was recorded is lost by any of it."""

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
from fleet_world import said  # noqa: E402
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


def stored(fleet):
    """All is stored, and as it should be."""
    receiver = fleet.receiver()

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

        def has_stream():
            try:
                with NatsClient(servers[1].address) as client:
                    info = client.request("$JS.API.STREAM.INFO.TRACEFS")
                    return "state" in info and info["state"]["messages"] > 0
            except OSError:
                return False
        wait_until(has_stream, "the stream")
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
                 credentials_that_are_taken_away_are_told,
                 a_full_disk_of_one_server_loses_nothing):
        suite.run(case.__name__.replace("_", " "), ending, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
