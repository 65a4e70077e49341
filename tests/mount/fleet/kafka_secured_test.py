#!/usr/bin/env python3
"""Kafka over TLS, with certificates of both sides, and with users who prove by
SASL who they are: the driver kafka and tracefs-recv. The mock cluster has neither;
kafka_front.py stands before it. Whoever may not is told why, and loses nothing."""

import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "support"))
sys.path.insert(0, os.path.dirname(__file__))
import kafka_cluster as kafka  # noqa: E402
from certificates import make_certificates  # noqa: E402
from fleet_world import Fleet, said  # noqa: E402
from kafka_cluster import Cluster  # noqa: E402
from kafka_front import Front, tls_context  # noqa: E402
from tracefs_harness import (Skip, Suite, expect_equal,  # noqa: E402
                             wait_until)


class Secured:
    """A cluster behind a front, as a Fleet knows it."""

    def __init__(self, cluster, front, driver, receiver):
        self.cluster = cluster
        self.driver = f'kafka = "{front.addresses}" {driver}'
        self.receiver = ["kafka:" + front.addresses, "--redeliver", "6s",
                         *receiver]

    def acknowledged_all(self, group):
        return self.cluster.acknowledged_all(group)


class Pem:
    """Certificates of a server, a host, and of another authority."""

    def __init__(self, suite):
        self.folder = suite.folder("pem")
        self.other = suite.folder("other-pem")
        if not os.path.exists(self.path("server.pem")):
            make_certificates(self.folder, ("server", "host", "elsewhere"),
                              "IP:127.0.0.1,DNS:localhost")
            make_certificates(self.other, ("host",), "DNS:localhost")
            self.sign("server", "expired", "hosts", "-1")
            with open(self.path("nowhere"), "w", encoding="ascii") as out:
                out.write("subjectAltName=DNS:nowhere.example")
            self.sign("server", "nowhere", "nowhere", "2")

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, name, made, hosts, days):
        subprocess.run(
            ["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem",
             "-CAkey", "ca.key", "-CAcreateserial", "-days", days, "-extfile",
             hosts, "-out", f"{made}.pem"], check=True, cwd=self.folder,
            capture_output=True)

    def driver(self, ca=None, cert=None):
        return (f'ca = "{ca or self.path("ca.pem")}" '
                f'cert = "{cert or self.path("host.pem")}" '
                f'key = "{self.path("host.key")}"')

    def receiver(self, ca=None, cert=None):
        return ["--ca", ca or self.path("ca.pem"),
                "--cert", cert or self.path("host.pem"),
                "--tls-key", self.path("host.key")]


def ended(receiver):
    receiver.send_signal(signal.SIGTERM)
    expect_equal(receiver.wait(30), 0, said(receiver))


def blocks_pass_over_tls(suite):
    """Both sides show certificates, and users prove who they are."""
    pem = Pem(suite)
    cluster = Cluster(suite)
    front = Front(cluster.addresses, tls_context(pem.folder, "server"))
    fleet = Fleet(suite, "tls", Secured(cluster, front, pem.driver(),
                                        pem.receiver()), options="buf = 4096")
    for _ in range(4):
        fleet.work(40)
    fleet.mount.unmount()
    fleet.await_all([fleet.receiver()])
    expect_equal(front.peers, {"host"}, "who has shown a certificate")
    front.stop()
    return f"{fleet.expect_same()} events"


def refused(suite, name, context, words, driver=None, receiver=None):
    """Both sides say why, with one of the words; what was recorded waits, and
    goes out when all is well."""
    pem = Pem(suite)
    cluster = Cluster(suite)
    front = Front(cluster.addresses, context)
    fleet = Fleet(suite, name,
                  Secured(cluster, front, driver or pem.driver(),
                          receiver or pem.receiver()))
    fleet.work(30)
    wait_until(lambda: any(word in fleet.mount.messages() for word in words),
               "the driver to say why")
    one = fleet.receiver()
    wait_until(lambda: any(word in said(one) for word in words),
               "the receiver to say why")
    ended(one)
    return cluster, front, fleet


def a_server_that_is_not_who_it_should_be_is_refused(suite):
    """An authority that nobody knows, another name, a certificate that is
    over: nothing is sent to any of them."""
    pem = Pem(suite)
    words = ("verify failed", "expired", "mismatch")
    unknown = os.path.join(pem.other, "ca.pem")
    for name, certificate, ca in (("unknown", "server", unknown),
                                  ("nowhere", "nowhere", None),
                                  ("expired", "expired", None)):
        cluster, front, fleet = refused(
            suite, name, tls_context(pem.folder, certificate), words,
            pem.driver(ca=ca), pem.receiver(ca=ca))
        expect_equal(list(cluster.messages()), [], "messages")
        fleet.give_up()
        front.stop()
        cluster.stop()


def a_certificate_of_ours_that_is_refused_is_told(suite):
    """One of another authority, by the server's words; one that is over, by
    ours, and a new one in its place is taken without a restart."""
    pem = Pem(suite)
    cluster, front, fleet = refused(
        suite, "foreign", tls_context(pem.folder, "server"),
        ("unknown ca", "alert", "SSL", "Disconnected"),
        f'ca = "{pem.path("ca.pem")}" cert = "{pem.other}/host.pem" '
        f'key = "{pem.other}/host.key"',
        ["--ca", pem.path("ca.pem"), "--cert", f"{pem.other}/host.pem",
         "--tls-key", f"{pem.other}/host.key"])
    fleet.give_up()
    front.stop()
    cluster.stop()
    own = pem.path("own.pem")
    pem.sign("host", "own", "hosts", "-1")
    cluster, front, fleet = refused(
        suite, "own", tls_context(pem.folder, "server"),
        (f"'{own}' has expired",), pem.driver(cert=own),
        pem.receiver(cert=own))
    shutil.copy(pem.path("host.pem"), own + ".new")
    os.replace(own + ".new", own)
    wait_until(lambda: "connected again" in fleet.mount.messages(),
               "the driver to be connected")
    fleet.work(30)
    fleet.mount.unmount()
    fleet.await_all([fleet.receiver()])
    front.stop()
    return f"{fleet.expect_same()} events"


def users_prove_who_they_are(suite):
    """By each mechanism, over TLS; SCRAM without it, too. A wrong password is
    told, and a right one in its place taken."""
    pem = Pem(suite)
    users = {"fleet": "right", "collector": "right too"}
    counts = []
    for mechanism, tls in (("plain", True), ("scram-sha-256", False),
                           ("scram-sha-512", True)):
        cluster = Cluster(suite)
        front = Front(cluster.addresses, tls_context(
            pem.folder, "server", clients=False) if tls else None, users)
        files = {}
        for user, password in (("fleet", "wrong"), ("collector", "right too")):
            files[user] = suite.path(f"password-{user}")
            with open(files[user], "w", encoding="ascii") as out:
                out.write(password + "\n")
        ca = pem.path("ca.pem")
        fleet = Fleet(suite, mechanism, Secured(
            cluster, front, (f'ca = "{ca}" ' if tls else "")
            + f'sasl = {mechanism} user = "fleet" '
            f'password = "{files["fleet"]}"',
            [*(["--ca", ca] if tls else []), "--sasl", mechanism,
             "--broker-user", "collector", "--broker-password",
             files["collector"]]))
        fleet.work(30)
        wait_until(lambda: "uthentication" in fleet.mount.messages(),
                   "the driver to say that it may not")
        expect_equal(list(cluster.messages()), [], "messages")
        with open(files["fleet"], "w", encoding="ascii") as out:
            out.write("right\n")
        wait_until(lambda: "connected again" in fleet.mount.messages(),
                   "the driver to be let in")
        fleet.work(30)
        fleet.mount.unmount()
        fleet.await_all([fleet.receiver()])
        expect_equal(front.mechanisms, {mechanism.upper()}, "mechanisms")
        counts.append(f"{fleet.expect_same()} events")
        front.stop()
        cluster.stop()
    return ", ".join(counts)


def ending(case, suite):
    if kafka.missing(suite):
        raise Skip(kafka.missing(suite))
    try:
        return case(suite)
    finally:
        kafka.stop_all()


def main():
    suite = Suite("kafka-secured", __doc__)
    for case in (blocks_pass_over_tls,
                 a_server_that_is_not_who_it_should_be_is_refused,
                 a_certificate_of_ours_that_is_refused_is_told,
                 users_prove_who_they_are):
        suite.run(case.__name__.replace("_", " "), ending, case, suite)
    suite.finish()


if __name__ == "__main__":
    main()
