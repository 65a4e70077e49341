#!/usr/bin/env python3
"""What answers where a broker should be may be anybody: passwords go to no one
who could be listened to, and to no server that the broker names; whatever it
says, a receiver can be ended and stays small.

The servers are made here, and speak as little NATS as the lie takes.
"""
import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from checks import check, exit_status  # noqa: E402

PATIENCE_S = 60
SECRET = "correct horse"


class Server:
    """Hands each connection to `answer`, and keeps what came over all."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.heard = b""
        self.came = threading.Event()
        self.asked = threading.Event()
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            sock, _ = self.listener.accept()
            self.came.set()
            threading.Thread(target=self.talk, args=(sock,),
                             daemon=True).start()

    def talk(self, sock):
        with contextlib.suppress(OSError), sock:
            self.answer(self, sock)

    def listen(self, sock):
        more = sock.recv(65536)
        self.heard += more
        return more

    def listen_for(self, sock, word):
        while word not in self.heard:
            if not self.listen(sock):
                raise ConnectionError


def info(**more):
    return b"INFO " + json.dumps(
        {"server_id": "x", "version": "2.9.10", "proto": 1, "headers": True,
         "max_payload": 1 << 20, "jetstream": True, "auth_required": True,
         **more}).encode() + b"\r\n"


@contextlib.contextmanager
def receiver(servers, *options):
    with tempfile.TemporaryDirectory() as folder:
        password = os.path.join(folder, "password")
        with open(password, "w", encoding="ascii") as file:
            file.write(SECRET + "\n")
        os.mkdir(os.path.join(folder, "out"))
        process = subprocess.Popen(
            [f"{BIN}/tracefs-recv", "--from", f"nats:{servers}", "--out",
             os.path.join(folder, "out"), "--broker-user", "u",
             "--broker-password", password, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def peak_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(next(line for line in file
                        if line.startswith("VmHWM")).split()[1]) >> 10


def a_password_stays_here_without_tls():
    # An address of documentation, where there is nobody.
    with receiver("192.0.2.1:4222") as process:
        said = ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, said = process.communicate(timeout=5)
        check(process.returncode == 2 and "--broker-clear" in said and
              "--ca" in said, "a password without TLS is refused: "
              f"{process.returncode} {said.strip()}")
    with receiver("192.0.2.1:4222", "--broker-clear") as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        check(process.returncode != 2, "unless it is asked for")


def a_password_goes_to_no_server_that_a_broker_names():
    def refuse(server, sock):
        sock.sendall(info(connect_urls=[other.address]))
        server.listen_for(sock, b"\r\n")
        sock.sendall(b"-ERR 'Authorization Violation'\r\n")

    def take(server, sock):
        sock.sendall(info())
        while server.listen(sock):
            pass

    other = Server(take)
    liar = Server(refuse)
    with receiver(liar.address):
        until = time.monotonic() + PATIENCE_S
        while SECRET.encode() not in liar.heard and time.monotonic() < until:
            time.sleep(0.05)
        # Within this host it may go in clear.
        check(SECRET.encode() in liar.heard, "the given broker is asked")
        # The library would try the next one at once.
        other.came.wait(3)
        check(SECRET.encode() not in other.heard,
              "the one that it names gets no password")


def silence(server, sock):
    while server.listen(sock):
        pass


def endless_line(_, sock):
    sock.sendall(b'INFO {"server_id":"')
    while True:
        sock.sendall(b"x" * 65536)


def endless(server, sock, beginning, piece):
    sock.sendall(info(auth_required=False))
    server.listen_for(sock, b"PING")
    sock.sendall(b"PONG\r\n" + beginning)
    while True:
        sock.sendall(piece)


def huge_message(server, sock):
    endless(server, sock, b"MSG _INBOX.x 1 2147483647\r\n", b"x" * 65536)


def endless_messages(server, sock):
    endless(server, sock, b"", b"MSG _INBOX.x 1 5\r\nhello\r\n" * 1000)


def garbage(_, sock):
    sock.sendall(os.urandom(1 << 20))


def half_an_answer(server, sock):
    sock.sendall(info(auth_required=False))
    server.listen_for(sock, b"PING")
    sock.sendall(b"PONG\r\n")
    server.listen_for(sock, b"PUB")
    sock.sendall(b"MSG _INBOX.x 1 100\r\n{")
    silence(server, sock)


# What a stream and its group say of themselves, as far as libnats looks.
STREAM = {"config": {"name": "TRACEFS", "subjects": ["tracefs.>"]}, "state": {}}
GROUP = {"stream_name": "TRACEFS", "name": "tracefs-recv",
         "config": {"durable_name": "tracefs-recv", "ack_policy": "explicit",
                    "filter_subject": "tracefs.>"}}


def requests(server, sock):
    """(subject, reply) of what is published, and the number of what was subscribed
    to for that reply."""
    numbers = {}
    with sock.makefile("rb") as lines:
        for line in lines:
            server.heard += line
            words = line.split()
            if words[:1] == [b"PING"]:
                sock.sendall(b"PONG\r\n")
            elif words[:1] == [b"SUB"]:
                numbers[words[1].rstrip(b"*")] = words[-1]
            elif words[:1] == [b"PUB"]:
                lines.read(int(words[-1]) + 2)
                reply = words[2] if len(words) == 4 else b""
                number = [n for name, n in numbers.items()
                          if reply.startswith(name)]
                yield words[1], reply, (number or [b"0"])[0]


def delivering(ending):
    """A broker that has a stream, and sends messages with that reply."""
    def answer(server, sock):
        sock.sendall(info(auth_required=False))
        for subject, reply, number in requests(server, sock):
            known = {b"STREAM.INFO": STREAM, b"CONSUMER.INFO": GROUP}
            body = next((json.dumps(said).encode() for name, said
                         in known.items() if name in subject), b"{}")
            if b"MSG.NEXT" in subject:
                server.asked.set()
                sock.sendall(b"MSG tracefs.a.b %s %s5\r\nhello\r\n"
                             % (number, ending))
            elif reply:
                sock.sendall(b"MSG %s %s %d\r\n%s\r\n"
                             % (reply, number, len(body), body))
    return answer


def acknowledges_nothing_but_its_stream():
    """Where a broker says an answer should go, it goes with the receiver's rights."""
    for ending, goes in ((b"", b""), (b"payroll.delete ", b"payroll"),
                         (b"$JS.ACK.OTHER.g.1.1.1.1.1 ", b"OTHER"),
                         (b"$JS.ACK ", b"PUB $JS.ACK ")):
        server = Server(delivering(ending))
        with receiver(server.address) as process:
            check(server.asked.wait(PATIENCE_S), "it asks for messages")
            said = process.stderr.readline() + process.stderr.readline()
            check("refused" in said, f"'{ending.decode()}': {said}")
            process.send_signal(signal.SIGTERM)
            status = process.wait(timeout=PATIENCE_S)
            check(status == 0, f"'{ending.decode()}': ends: {status}")
        check(not goes or goes not in server.heard,
              f"'{ending.decode()}': nothing is published there")


def whatever_it_says_a_receiver_ends_when_told():
    for answer in (silence, endless_line, huge_message, endless_messages,
                   garbage, half_an_answer):
        server = Server(answer)
        name = answer.__name__.replace("_", " ")
        with receiver(server.address) as process:
            server.came.wait(PATIENCE_S)
            time.sleep(1)
            if process.poll() is None:
                peak = peak_mib(process)
                check(peak < 256, f"{name}: {peak} MiB")
                process.send_signal(signal.SIGTERM)
            try:
                status = process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                status = "not ended"
            # libnats before 3.6 may crash where a connection ends and messages
            # still come: a lock that is gone ends it by SIGILL, too.
            faults = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGILL) \
                if answer in (huge_message, endless_messages) else ()
            check(status in (0, 3, *faults), f"{name}: ends: {status}")


def main():
    global BIN
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    BIN = parser.parse_args().bin
    a_password_stays_here_without_tls()
    a_password_goes_to_no_server_that_a_broker_names()
    acknowledges_nothing_but_its_stream()
    whatever_it_says_a_receiver_ends_when_told()
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
