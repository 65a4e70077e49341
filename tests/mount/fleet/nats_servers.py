"""Real nats-servers on loopback, and a client of their protocol that shares
nothing with libnats: an oracle for what is in a stream, and a forger."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess

from tracefs_harness import wait_until


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


RUNNING = []


def stop_all():
    while RUNNING:
        RUNNING.pop().kill()


class NatsServer:
    """One server, which can be killed and started again with what it keeps."""

    def __init__(self, suite, name, config="", cluster=None):
        self.suite = suite
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.name = name
        self.cluster = cluster or ""
        self.config = suite.path(name + ".conf")
        self.log = suite.path(name + ".log")
        self.process = None
        self.configure(config)

    def configure(self, config):
        """What it reads when it starts, and at SIGHUP."""
        with open(self.config, "w", encoding="ascii") as out:
            out.write(f'listen: "{self.address}"\nserver_name: {self.name}\n'
                      "jetstream { store_dir: "
                      f'"{self.suite.path(self.name)}" }}\n'
                      f"{self.cluster}\n{config}\n")

    def start(self):
        with open(self.log, "ab") as log:
            self.process = self.suite.background(subprocess.Popen(
                ["nats-server", "-c", self.config], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log))
        RUNNING.append(self)
        return self

    def kill(self):
        if self in RUNNING:
            RUNNING.remove(self)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def answers(self, **options):
        try:
            with NatsClient(self.address, **options):
                return True
        except OSError:
            return False


def cluster(suite, names):
    """Servers that keep streams together."""
    routes = {name: free_port() for name in names}
    servers = []
    for name in names:
        others = ", ".join(f"nats://127.0.0.1:{port}"
                          for port in routes.values())
        servers.append(NatsServer(
            suite, name, cluster="cluster { name: fleet, listen: "
            f'"127.0.0.1:{routes[name]}", routes: [ {others} ] }}'))
    return servers


def await_stream(server):
    """Until it has something of the stream."""
    def has_stream():
        try:
            with NatsClient(server.address) as client:
                info = client.request("$JS.API.STREAM.INFO.TRACEFS")
                return "state" in info and info["state"]["messages"] > 0
        except OSError:
            return False
    wait_until(has_stream, "the stream")


def missing():
    return None if shutil.which("nats-server") else "nats-server is missing"


class Broker:
    """Servers, as a Fleet knows them."""

    def __init__(self, servers):
        self.servers = servers
        addresses = ",".join(server.address for server in servers)
        self.driver = f'nats = "{addresses}" create'
        self.receiver = ["nats:" + addresses, "--create", "--redeliver", "2s"]

    def acknowledged_all(self, group):
        try:
            with NatsClient(self.servers[0].address) as client:
                return client.acknowledged_all("TRACEFS", group)
        except OSError:
            return False


class NatsClient:
    """The text protocol: CONNECT, PUB, HPUB, SUB, MSG."""

    def __init__(self, address, **options):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.stream = self.socket.makefile("rb")
        if not self.stream.readline().startswith(b"INFO "):
            raise OSError("no INFO")
        self.send(b"CONNECT " + json.dumps(
            {"verbose": False, "headers": True, **options}).encode()
            + b"\r\nPING\r\n")
        self.await_word(b"PONG")
        self.requests = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stream.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def await_word(self, word):
        while True:
            line = self.stream.readline()
            if line.startswith(b"PING"):
                self.send(b"PONG\r\n")
            elif line.startswith(word):
                return line
            elif line.startswith(b"-ERR") or not line:
                raise OSError(line.decode() or "the server has hung up")

    def request(self, subject, body=b"", headers=None):
        """What is answered, as JSON."""
        self.requests += 1
        inbox = f"_INBOX.test{os.getpid()}.{id(self)}.{self.requests}"
        self.send(f"SUB {inbox} {self.requests}\r\n".encode())
        if headers:
            head = ("NATS/1.0\r\n" + "".join(
                f"{name}: {value}\r\n" for name, value in headers.items())
                + "\r\n").encode()
            self.send(f"HPUB {subject} {inbox} {len(head)} "
                      f"{len(head) + len(body)}\r\n".encode()
                      + head + body + b"\r\n")
        else:
            self.send(f"PUB {subject} {inbox} {len(body)}\r\n".encode()
                      + body + b"\r\n")
        words = self.await_word((b"MSG", b"HMSG")).split()
        answer = self.stream.read(int(words[-1]))
        self.stream.readline()
        if words[0] == b"HMSG":
            raise OSError(answer.decode())
        return json.loads(answer)

    def messages(self, stream):
        """(subject, headers, body) of all that a stream holds."""
        state = self.request(f"$JS.API.STREAM.INFO.{stream}")["state"]
        for number in range(state["first_seq"], state["last_seq"] + 1):
            found = self.request(f"$JS.API.STREAM.MSG.GET.{stream}",
                                 json.dumps({"seq": number}).encode())
            message = found.get("message")
            if message is None:
                continue
            lines = base64.b64decode(message.get("hdrs", "")).decode()
            headers = dict(line.split(": ", 1)
                           for line in lines.split("\r\n") if ": " in line)
            yield (message["subject"], headers,
                   base64.b64decode(message.get("data", "")))

    def acknowledged_all(self, stream, group):
        info = self.request(f"$JS.API.CONSUMER.INFO.{stream}.{group}")
        return (not info.get("error") and info["num_pending"] == 0
                and info["num_ack_pending"] == 0)
