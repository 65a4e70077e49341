"""A tracefs-recv to send to, and what it is sent."""
import signal
import socket
import struct
import subprocess

WELCOME, ACK, REFUSE = 1, 2, 3
PATIENCE_S = 60
FRAME_BYTES = 40


class Receiver:
    """A tracefs-recv that is ended, whatever happens."""

    def __init__(self, binary, *options, stdout=subprocess.PIPE):
        # Unbuffered: what is read ahead here would be missing at the end.
        self.process = subprocess.Popen([binary, *options], stdout=stdout,
                                        stderr=subprocess.PIPE, bufsize=0)
        self.said = []
        while True:
            line = self.process.stderr.readline().decode()
            self.said.append(line)
            if "listening on" in line or not line:
                break
        self.address = line.rpartition("listening on ")[2].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status") as file:
            return dict(line.split(":", 1) for line in file)[key].strip()

    def end(self):
        """Ends it; exit status, standard output, standard error."""
        self.process.send_signal(signal.SIGTERM)
        return self.await_end()

    def await_end(self):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return (self.process.returncode, (out or b"").decode(),
                "".join(self.said) + err.decode())


def connect(address):
    kind, _, rest = address.partition(":")
    if kind == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(rest)
    else:
        host, _, port = rest.rpartition(":")
        sock = socket.create_connection((host, int(port)))
    sock.settimeout(PATIENCE_S)
    return sock


def hello(preamble):
    return (b"TFSNET1\n" + struct.pack("<IHHQ", 24 + len(preamble), 1, 0, 0) +
            preamble)


def replies(sock):
    """Type and fields of each message of a receiver."""
    buffer = b""
    while True:
        while len(buffer) < 4 or len(buffer) < struct.unpack_from(
                "<HH", buffer)[1]:
            more = sock.recv(4096)
            if not more:
                return
            buffer += more
        kind, length = struct.unpack_from("<HH", buffer)
        yield kind, buffer[4:length]
        buffer = buffer[length:]


def frame_ends(trace):
    """Where the preamble of a trace ends, and where each frame does."""
    ends = [struct.unpack_from("<I", trace, 8)[0]]
    while ends[-1] < len(trace):
        payload = struct.unpack_from("<I", trace, ends[-1] + 4)[0]
        ends.append(ends[-1] + FRAME_BYTES + payload)
    return ends


def send(address, trace):
    """Sends a trace until all of it is acknowledged; the number of the first
    block that it was asked for."""
    ends = frame_ends(trace)
    with connect(address) as sock:
        sock.sendall(hello(trace[:ends[0]]))
        answers = replies(sock)
        kind, fields = next(answers)
        assert kind == WELCOME, f"HELLO was answered with {kind} {fields!r}"
        first = struct.unpack_from("<Q", fields, 4)[0]
        sock.sendall(trace[ends[first]:])
        acked = first
        while acked < len(ends) - 1:
            kind, fields = next(answers)
            assert kind == ACK, f"frames were answered with {kind} {fields!r}"
            acked = struct.unpack_from("<Q", fields)[0]
        return first
