#!/usr/bin/env python3
"""Unknown senders flood a tracefs-recv: with traces, with files, with connections,
and with what never comes to an end. What others sent stays, and they are served.

Each address of 127/8 is another sender to the receiver.
"""
import argparse
import contextlib
import glob
import os
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from checks import check, exit_status  # noqa: E402
from certificates import make_certificates  # noqa: E402
from receiver_process import (ACK, ForgedTraces, Receiver,  # noqa: E402
                              Refused, connect, frame_ends, hello, replies,
                              send, send_over)

FLOOD = "127.0.0.9"
HONEST = "127.0.0.3"


def refused(function, *arguments):
    """Why it was refused; empty if it was not."""
    try:
        function(*arguments)
    except (Refused, OSError) as why:
        return str(why) or "refused"
    return ""


def stored(out, trace):
    """Whether all of a trace is among the files of a directory."""
    for name in glob.glob(f"{out}/*.trace"):
        with open(name, "rb") as file:
            if file.read() == trace:
                return True
    return False


def disk_bytes(out):
    total = 0
    for entry in os.scandir(out):
        with contextlib.suppress(FileNotFoundError):
            total += os.stat(entry.path).st_blocks * 512
    return total


def receiver(out, *options):
    return Receiver(f"{BIN}/tracefs-recv", "--listen", "tcp:127.0.0.1:0",
                    "--out", out, "--quiet", *options)


def traces_stay_where_one_floods():
    """--keep-size: whoever has most pays, and not who sent first."""
    mine = TRACES.trace(1, 60_000)
    floods = ["127.0.0.9", "127.0.0.10"]
    with tempfile.TemporaryDirectory() as out:
        with receiver(out) as running:
            send(running.address, mine, HONEST)
            for n in range(40):
                send(running.address, TRACES.trace(100 + n, 60_000),
                     floods[n % 2])
            running.end()
        # It looks at the directory when it starts.
        with receiver(out, "--keep-size", "1M") as running:
            while disk_bytes(out) > 1 << 20:
                time.sleep(0.05)
            running.end()
        check(stored(out, mine), "a flood pushes out no trace of another "
              "address")


def files_are_left_for_others():
    """--max-traces: one sender cannot have all the places."""
    with tempfile.TemporaryDirectory() as out, \
            receiver(out, "--max-traces", "20") as running:
        for n in range(20):
            send(running.address, TRACES.trace(100 + n), FLOOD)
        check("--max-traces" in refused(send, running.address,
                                        TRACES.trace(200), FLOOD),
              "who has all the places is refused one more")
        why = refused(send, running.address, TRACES.trace(1), HONEST)
        check(not why, f"another one still gets one {why}")


def connections_are_left_for_others():
    """--max-clients: those of a few who sent a block each, and wait."""
    with tempfile.TemporaryDirectory() as out, \
            receiver(out, "--listen", f"unix:{out}/socket", "--max-clients",
                     "20", "--max-per-peer", "8") as running:
        open_ones = []
        for n in range(24):
            sock = connect(running.address, f"127.0.1.{1 + n // 8}")
            open_ones.append(sock)
            if refused(send_over, sock, TRACES.trace(100 + n)):
                sock.close()
        why = refused(send, running.address, TRACES.trace(1), HONEST)
        check(not why, f"another address still gets a connection {why}")
        for sock in open_ones:
            sock.close()
    with tempfile.TemporaryDirectory() as out, \
            receiver(out, "--listen", f"unix:{out}/socket", "--max-clients",
                     "20") as running:
        many = [connect(running.address, f"127.0.2.{1 + n}")
                for n in range(20)]
        for n, sock in enumerate(many):
            send_over(sock, TRACES.trace(200 + n))
        why = refused(send, f"unix:{out}/socket", TRACES.trace(2))
        check(not why, "a user gets one where each is another address's "
              f"{why}")
        many.append(connect(running.address, "127.0.2.99"))
        send_over(many[-1], TRACES.trace(250))
        check("more than" in refused(send, running.address, TRACES.trace(3),
                                     HONEST),
              "an address does not, for none of them has more than one")


def another_address_cannot_take_a_trace_over():
    """The serial of a trace is no secret: it is all that TCP says."""
    mine = TRACES.trace(1, blocks=4)
    ends = frame_ends(mine)
    with tempfile.TemporaryDirectory() as out, receiver(out) as running:
        with connect(running.address, HONEST) as sock:
            sock.sendall(hello(mine[:ends[0]]))
            answers = replies(sock)
            next(answers)
            sock.sendall(mine[ends[0]:ends[2]])
            next(answers)
            send(running.address, mine, FLOOD)
            # The honest one is still connected, and goes on.
            sock.sendall(mine[ends[2]:])
            kind, fields = next(answers)
            check(kind == ACK, f"who sends a trace keeps it: {fields}")


def slow_ones_delay_nobody():
    """Who never ends a greeting, a handshake, a block or a question, and who
    never reads an answer."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(folder, ["host"], "DNS:localhost,IP:127.0.0.1")
        out = os.path.join(folder, "out")
        os.mkdir(out)
        tls = [f"--{option}={folder}/{name}"
               for option, name in (("ca", "ca.pem"), ("cert", "host.pem"),
                                    ("tls-key", "host.key"))]
        with socket.create_server(("127.0.0.1", 0)) as free:
            metrics = f"127.0.0.1:{free.getsockname()[1]}"
        with receiver(out, "--listen", "tls:127.0.0.1:0", *tls, "--metrics",
                      metrics) as running:
            plain, secured = [address[0] for address in addresses_of(running)]
            slow = []
            trace = TRACES.trace(100, 1000)
            for n in range(30):
                # Nothing; half a HELLO; half a block; no TLS; half of it.
                sock = connect(plain, f"127.0.3.{1 + n}")
                sock.sendall([b"", hello(trace)[:20]][n % 2])
                slow.append(sock)
                sock = connect(secured, f"127.0.3.{1 + n}")
                sock.sendall([b"", b"\x16\x03\x01\x02\x00\x01"][n % 2])
                slow.append(sock)
                sock = connect("tcp:" + metrics, f"127.0.3.{1 + n}")
                sock.sendall([b"", b"GET /metrics HTTP/1.1\r\n"][n % 2])
                slow.append(sock)
            # One that asks for pages and reads none of them.
            deaf = socket.socket()
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, port = metrics.split(":")
            deaf.connect((host, int(port)))
            deaf.setblocking(False)
            asked = 0
            try:
                while asked < 1000:
                    asked += deaf.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
                                       b"\r\n") and 1
            except (BlockingIOError, ConnectionError):
                pass
            served = []

            def serve():
                send(plain, TRACES.trace(1, 100_000), HONEST)
                served.append("plain")
                context = ssl.create_default_context(
                    cafile=f"{folder}/ca.pem")
                context.load_cert_chain(f"{folder}/host.pem",
                                        f"{folder}/host.key")
                sock = context.wrap_socket(connect(secured, HONEST),
                                           server_hostname="localhost")
                send_over(sock, TRACES.trace(2, 100_000))
                served.append("tls")
                page = urllib.request.urlopen(f"http://{metrics}/metrics",
                                              timeout=60).read()
                served.append("metrics" if b"tracefs_recv" in page else "")

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            # Less than the receiver's own patience with any of them would be
            # no proof; what matters is that they are there all the while.
            thread.join(8)
            check(served == ["plain", "tls", "metrics"],
                  f"slow ones delay nobody: served {served}")
            for sock in slow:
                sock.close()


def addresses_of(running):
    """Where a receiver listens, of each --listen."""
    while len([l for l in running.said if "listening on" in l]) < 2:
        running.said.append(running.process.stderr.readline().decode())
    return [[line.rpartition("listening on ")[2].strip()]
            for line in running.said if "listening on" in line]


def main():
    global BIN, TRACES
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    given = parser.parse_args()
    BIN = given.bin
    with open(f"{given.golden}/worked_example.trace", "rb") as file:
        TRACES = ForgedTraces(file.read())
    traces_stay_where_one_floods()
    files_are_left_for_others()
    connections_are_left_for_others()
    another_address_cannot_take_a_trace_over()
    slow_ones_delay_nobody()
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
